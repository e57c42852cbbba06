/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_tmpl.h - the loops of nn_lines.h for element type T, as table TABLE. I is the
 * integer type as wide as T; EXP and SQRT are functions of T, WIDEN reads 8 elements as doubles.
 *
 * Included by nn_lines_f32_tmpl.c and nn_lines_f64.c. Sums run in LANES f64 lanes, element i in
 * lane i % LANES, which are added up in order at the end; this is what vector units do, and it does
 * not depend on their width. Statistics are taken off in f64 before anything is cut to T, so large
 * means cost no digits.
 */

enum { LANES = 16 };

static double fold(const double lanes[LANES])
{
    double sum = 0;
    for (int l = 0; l < LANES; l++) {
        sum += lanes[l];
    }
    return sum;
}

typedef T lane_values __attribute__((vector_size(LANES * sizeof(T)), aligned(4)));
typedef I lane_masks __attribute__((vector_size(LANES * sizeof(T)), aligned(4)));

/* Lanes of the larger numbers; where one is NaN, `odd` is set. */
static inline lane_values keep_larger(lane_values best, const T *x, lane_masks *odd)
{
    lane_values value;
    memcpy(&value, x, sizeof(value));
    lane_masks above = value > best;
    *odd |= value != value;
    return (lane_values)(((lane_masks)value & above) | ((lane_masks)best & ~above));
}

/* Four chains, so that no comparison waits for the one before. */
static double line_max(const void *px, int64_t n)
{
    enum { CHAINS = 4 };
    const T *x = px;
    lane_values best[CHAINS];
    lane_masks odd[CHAINS] = {{0}}; /* lanes that saw a NaN */
    int64_t i = 0;
    for (int c = 0; c < CHAINS; c++) {
        best[c] = (lane_values){0} - (T)INFINITY;
    }
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
        for (int c = 0; c < CHAINS; c++) {
            best[c] = keep_larger(best[c], x + i + c * LANES, &odd[c]);
        }
    }
    for (; i + LANES <= n; i += LANES) {
        best[0] = keep_larger(best[0], x + i, &odd[0]);
    }
    T top = (T)-INFINITY;
    I any = 0;
    for (int c = 0; c < CHAINS; c++) {
        for (int l = 0; l < LANES; l++) {
            top = best[c][l] > top ? best[c][l] : top;
            any |= odd[c][l];
        }
    }
    for (; i < n; i++) {
        top = x[i] > top ? x[i] : top;
        any |= x[i] != x[i];
    }
    return any != 0 ? (double)NAN : (double)top;
}

/* The lanes in two vectors of f64, as compilers keep them in registers. */
enum { HALF = LANES / 2 };
typedef struct lane_sums {
    flex_doubles half[2];
} lane_sums;

static inline lane_sums open_lanes(const double lanes[LANES])
{
    lane_sums s;
    memcpy(&s.half[0], lanes, sizeof(s.half[0]));
    memcpy(&s.half[1], lanes + HALF, sizeof(s.half[1]));
    return s;
}

static inline void close_lanes(double lanes[LANES], const lane_sums *s)
{
    memcpy(lanes, &s->half[0], sizeof(s->half[0]));
    memcpy(lanes + HALF, &s->half[1], sizeof(s->half[1]));
}

/* Adds a piece to the lanes; it starts at a multiple of LANES. */
static void add_piece(double lanes[LANES], const T *x, int64_t n)
{
    int64_t i = 0;
    lane_sums s = open_lanes(lanes);
    for (; i + LANES <= n; i += LANES) {
        s.half[0] += WIDEN(x + i);
        s.half[1] += WIDEN(x + i + HALF);
    }
    close_lanes(lanes, &s);
    for (; i < n; i++) {
        lanes[i % LANES] += (double)x[i];
    }
}

/* `out` may be the line itself: no element needs another's. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

static double line_exp(void *pout, const void *px, double shift, int64_t n)
{
    enum { PIECE = 512 };
    T *out = pout;
    const T *x = px;
    T s = (T)shift;
    double lanes[LANES] = {0};
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t end = n - i < PIECE ? n : i + PIECE;
        INDEPENDENT
        for (int64_t k = i; k < end; k++) {
            out[k] = EXP(x[k] - s);
        }
        add_piece(lanes, out + i, end - i);
    }
    return fold(lanes);
}

static double line_sum(const void *px, int64_t n)
{
    double lanes[LANES] = {0};
    add_piece(lanes, px, n);
    return fold(lanes);
}

static double line_sum_squares(const void *px, double mean, int64_t n)
{
    const T *x = px;
    double lanes[LANES] = {0};
    int64_t i = 0;
    lane_sums s = open_lanes(lanes);
    for (; i + LANES <= n; i += LANES) {
        flex_doubles low = WIDEN(x + i) - mean;
        flex_doubles high = WIDEN(x + i + HALF) - mean;
        s.half[0] += low * low;
        s.half[1] += high * high;
    }
    close_lanes(lanes, &s);
    for (; i < n; i++) {
        double d = (double)x[i] - mean;
        lanes[i % LANES] += d * d;
    }
    return fold(lanes);
}

static double line_dot(const void *px, const void *py, int64_t n)
{
    const T *x = px;
    const T *y = py;
    double lanes[LANES] = {0};
    int64_t i = 0;
    lane_sums s = open_lanes(lanes);
    for (; i + LANES <= n; i += LANES) {
        s.half[0] += WIDEN(x + i) * WIDEN(y + i);
        s.half[1] += WIDEN(x + i + HALF) * WIDEN(y + i + HALF);
    }
    close_lanes(lanes, &s);
    for (; i < n; i++) {
        lanes[i % LANES] += (double)x[i] * (double)y[i];
    }
    return fold(lanes);
}

static void line_scale(void *out, const void *px, double by, int64_t n)
{
    const T *x = px;
    T *y = out;
    T f = (T)by;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] * f;
    }
}

static void line_add(void *out, const void *px, double what, int64_t n)
{
    const T *x = px;
    T *y = out;
    T a = (T)what;
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] + a;
    }
}

static void line_softmax_grad(void *out, const void *py, const void *pg, double s, int64_t n)
{
    const T *y = py;
    const T *g = pg;
    T *gx = out;
    T sum = (T)s;
    for (int64_t i = 0; i < n; i++) {
        gx[i] = y[i] * (g[i] - sum);
    }
}

static void line_log_softmax_grad(void *out, const void *py, const void *pg, double s, int64_t n)
{
    const T *y = py;
    const T *g = pg;
    T *gx = out;
    T sum = (T)s;
    for (int64_t i = 0; i < n; i++) {
        gx[i] = g[i] - EXP(y[i]) * sum;
    }
}

static void line_affine(void *out, const void *px, double mean, double by, double beta, int64_t n)
{
    const T *x = px;
    T *y = out;
    T f = (T)by;
    T b = (T)beta;
    for (int64_t i = 0; i < n; i++) {
        y[i] = (T)((double)x[i] - mean) * f + b;
    }
}

static void line_normalize(void *out, const void *px, double mean, double inv, const void *pgamma,
                           const void *pbeta, int64_t n)
{
    const T *gamma = pgamma;
    const T *beta = pbeta;
    T *y = out;
    line_affine(out, px, mean, inv, 0.0, n);
    if (gamma != NULL) {
        for (int64_t i = 0; i < n; i++) {
            y[i] *= gamma[i];
        }
    }
    if (beta != NULL) {
        for (int64_t i = 0; i < n; i++) {
            y[i] += beta[i];
        }
    }
}

static void line_norm_sums(double sums[2], const void *px, const void *pg, const void *pgamma,
                           double mean, double inv, int64_t n)
{
    const T *x = px;
    const T *g = pg;
    const T *gamma = pgamma;
    double plain[LANES] = {0};
    double times[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            double gg = (double)g[i + l] * (gamma != NULL ? (double)gamma[i + l] : 1.0);
            plain[l] += gg;
            times[l] += gg * (((double)x[i + l] - mean) * inv);
        }
    }
    for (; i < n; i++) {
        double gg = (double)g[i] * (gamma != NULL ? (double)gamma[i] : 1.0);
        plain[i % LANES] += gg;
        times[i % LANES] += gg * (((double)x[i] - mean) * inv);
    }
    sums[0] = fold(plain);
    sums[1] = fold(times);
}

static void line_norm_grad(void *out, const void *px, const void *pg, const void *pgamma,
                           double mean, double inv, double by, const double c[2], int64_t n)
{
    const T *x = px;
    const T *g = pg;
    const T *gamma = pgamma;
    T *gx = out;
    double c0 = c[0];
    double c1 = c[1];
    if (gamma == NULL) {
        for (int64_t i = 0; i < n; i++) {
            gx[i] = (T)(by * ((double)g[i] - c0 - ((double)x[i] - mean) * inv * c1));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double gg = (double)g[i] * (double)gamma[i];
        gx[i] = (T)(by * (gg - c0 - ((double)x[i] - mean) * inv * c1));
    }
}

static void line_add_param_grads(double *gamma, double *beta, const void *px, const void *pg,
                                 double mean, double inv, int64_t n)
{
    const T *x = px;
    const T *g = pg;
    for (int64_t i = 0; i < n; i++) {
        gamma[i] += (double)g[i] * (((double)x[i] - mean) * inv);
        beta[i] += (double)g[i];
    }
}

static double line_sum_square_differences(const void *px, const void *py, int64_t n)
{
    const T *x = px;
    const T *y = py;
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            double d = (double)(x[i + l] - y[i + l]);
            lanes[l] += d * d;
        }
    }
    for (; i < n; i++) {
        double d = (double)(x[i] - y[i]);
        lanes[i % LANES] += d * d;
    }
    return fold(lanes);
}

static void line_square_differences(void *out, const void *px, const void *py, int64_t n)
{
    const T *x = px;
    const T *y = py;
    T *z = out;
    for (int64_t i = 0; i < n; i++) {
        T d = x[i] - y[i];
        z[i] = d * d;
    }
}

static inline __attribute__((always_inline)) void take_tap(T *restrict y, int32_t *restrict index,
                                                           const T *restrict from, int64_t step,
                                                           int32_t at, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        T value = from[x * step];
        T best = y[x];
        int take = !(value <= best) & (best == best);
        y[x] = take ? value : best;
        index[x] = take ? at + (int32_t)(x * step) : index[x];
    }
}

static void line_max_tap(void *y, int32_t *index, const void *from, int64_t step, int32_t at,
                         int64_t n)
{
    if (step == 1) { /* strides that the compiler knows become vector code */
        take_tap(y, index, from, 1, at, n);
    } else if (step == 2) {
        take_tap(y, index, from, 2, at, n);
    } else {
        take_tap(y, index, from, step, at, n);
    }
}

enum { WINDOWS = 16 };

/* WINDOWS values, and their positions; loads and stores need no alignment. */
typedef T values __attribute__((vector_size(WINDOWS * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef I places __attribute__((vector_size(WINDOWS * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef int64_t wides __attribute__((vector_size(WINDOWS * 8), aligned(8), may_alias));

#define LANE_NUMBERS 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30

/* Elements `step` apart. */
static inline __attribute__((always_inline)) values load_apart(const T *from, int64_t step)
{
    if (step == 1) {
        return *(const values *)(const void *)from;
    }
    if (step == 2) {
        values low = *(const values *)(const void *)from;
        values high = *(const values *)(const void *)(from + WINDOWS);
        return __builtin_shufflevector(low, high, EVEN_LANES);
    }
    values some;
    for (int64_t l = 0; l < WINDOWS; l++) {
        some[l] = from[l * step];
    }
    return some;
}

/* WINDOWS maxima side by side. */
static inline __attribute__((always_inline)) void max_windows(T *y, int64_t *index, const T *from,
                                                              I at, int64_t step, int64_t ny,
                                                              int64_t nx, const flex_maxima *m)
{
    values best = (values){0} - (T)INFINITY;
    const places first = (places){LANE_NUMBERS} * (I)step + at;
    places where = first;
    for (int64_t ky = 0; ky < ny; ky++) {
        for (int64_t kx = 0; kx < nx; kx++) {
            int64_t tap = ky * m->pitch + kx * m->dilation;
            values x = load_apart(from + tap, step);
            places take = ~(places)(x <= best) & (places)(best == best);
            best = (values)(((places)x & take) | ((places)best & ~take));
            where = ((first + (I)tap) & take) | (where & ~take);
        }
    }
    *(values *)(void *)y = best;
    *(wides *)(void *)index = __builtin_convertvector(where, wides);
}

static void max_some(T *y, int64_t *index, const T *from, I at, const flex_maxima *m)
{
    if (m->step == 2 && m->ny == 2 && m->nx == 2) {
        max_windows(y, index, from, at, 2, 2, 2, m);
    } else if (m->step == 2) {
        max_windows(y, index, from, at, 2, m->ny, m->nx, m);
    } else if (m->step == 1) {
        max_windows(y, index, from, at, 1, m->ny, m->nx, m);
    } else {
        max_windows(y, index, from, at, m->step, m->ny, m->nx, m);
    }
}

/* The few windows before the end of the array. */
static void max_rest(T *y, int64_t *index, const T *from, I at, const flex_maxima *m, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        T best = (T)-INFINITY;
        int64_t where = at + x * m->step;
        for (int64_t ky = 0; ky < m->ny; ky++) {
            for (int64_t kx = 0; kx < m->nx; kx++) {
                int64_t tap = ky * m->pitch + kx * m->dilation + x * m->step;
                T value = from[tap];
                if (!(value <= best) && best == best) {
                    best = value;
                    where = at + tap;
                }
            }
        }
        y[x] = best;
        index[x] = where;
    }
}

static void line_maxima(void *py, int64_t *index, const flex_maxima *m)
{
    T *y = py;
    const T *from = m->from;
    int64_t reach = (m->ny - 1) * m->pitch + (m->nx - 1) * m->dilation + WINDOWS * m->step;
    for (int64_t x = 0; x < m->n; x += WINDOWS) {
        int64_t n = m->n - x < WINDOWS ? m->n - x : WINDOWS;
        I at = (I)(m->at + x * m->step);
        const T *first = from + x * m->step;
        if (x * m->step + reach > m->room_in) {
            max_rest(y + x, index + x, first, at, m, n);
        } else if (x + WINDOWS <= m->room_out) {
            max_some(y + x, index + x, first, at, m);
        } else {
            T y_rest[WINDOWS];
            int64_t index_rest[WINDOWS];
            max_some(y_rest, index_rest, first, at, m);
            memcpy(y + x, y_rest, (size_t)n * sizeof(T));
            memcpy(index + x, index_rest, (size_t)n * sizeof(*index));
        }
    }
}

static void line_adam(void *pp, void *pm, void *pv, const void *pg, const flex_adam *k, int64_t n)
{
    T *restrict p = pp;
    T *restrict m = pm;
    T *restrict v = pv;
    const T *restrict grad = pg;
    T b1 = (T)k->beta1;
    T b2 = (T)k->beta2;
    T c1 = (T)(1.0 - k->beta1);
    T c2 = (T)(1.0 - k->beta2);
    T decay = (T)k->decay;
    T shrink = (T)k->shrink;
    T step = (T)k->step;
    T root = (T)sqrt(k->bias2);
    T eps = (T)k->eps;
    for (int64_t i = 0; i < n; i++) {
        T g = grad[i] + decay * p[i];
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        p[i] = p[i] * shrink - step * m[i] / (SQRT(v[i]) / root + eps);
    }
}

static void line_sgd(void *pp, void *pv, const void *pg, const flex_sgd *k, int64_t n)
{
    T *restrict p = pp;
    T *restrict v = pv;
    const T *restrict grad = pg;
    T lr = (T)k->lr;
    T decay = (T)k->decay;
    T momentum = (T)k->momentum;
    T keep = (T)k->keep;
    if (v == NULL) {
        for (int64_t i = 0; i < n; i++) {
            p[i] -= lr * (grad[i] + decay * p[i]);
        }
        return;
    }
    int first = k->first;
    int nesterov = k->nesterov;
    for (int64_t i = 0; i < n; i++) {
        T g = grad[i] + decay * p[i];
        v[i] = first ? g : momentum * v[i] + keep * g;
        p[i] -= lr * (nesterov ? g + momentum * v[i] : v[i]);
    }
}

const flex_lines TABLE = {
    .dtype = TABLE_DTYPE,
    .max = line_max,
    .exp = line_exp,
    .sum = line_sum,
    .sum_squares = line_sum_squares,
    .dot = line_dot,
    .scale = line_scale,
    .add = line_add,
    .softmax_grad = line_softmax_grad,
    .log_softmax_grad = line_log_softmax_grad,
    .normalize = line_normalize,
    .affine = line_affine,
    .norm_sums = line_norm_sums,
    .norm_grad = line_norm_grad,
    .add_param_grads = line_add_param_grads,
    .sum_square_differences = line_sum_square_differences,
    .square_differences = line_square_differences,
    .max_tap = line_max_tap,
    .maxima = line_maxima,
    .adam = line_adam,
    .sgd = line_sgd,
};
