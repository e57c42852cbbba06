/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_tmpl.h - the loops of nn_lines.h for element type T, as table TABLE. I is the
 * integer type as wide as T; EXP and SQRT are functions of T, EXP_LANES is EXP(x - shift) of LANES
 * elements, WIDEN reads FLEX_WIDE elements as doubles. LARGEST_LANE, EXP_BLOCK and FAR_SOFTMAX name
 * the includer's own loops where it has them; lines of at most ONE_PASS_MOST elements are read once
 * for their moments, where that is defined: of a T that has fewer digits than f64.
 *
 * Included by nn_lines_f32_tmpl.c and nn_lines_f64.c. Sums run in LANES f64 lanes, element i in
 * lane i % LANES (exp adds four of a lane in T first, moments of short lines have two sets of
 * lanes), which are added up pairwise at the end; this is what vector units do, and it does not
 * depend on their width. Statistics are f64, and a mean is taken off in a way that costs no
 * digits, however large it is.
 */

enum { LANES = FLEX_LINE_LANES, BLOCK = FLEX_LINE_BLOCK, PARTS = LANES / FLEX_WIDE };

#define LINE_INLINE static inline __attribute__((always_inline))

/* The lanes as vectors that compilers keep in registers. */
typedef struct lane_sums {
    flex_doubles part[PARTS];
} lane_sums;

static double fold(const lane_sums *s)
{
    return flex_fold_doubles(s->part, PARTS);
}

/* n < LANES elements, then zeros: the end of a line as a whole vector. */
LINE_INLINE void pad_line(T padded[LANES], const T *x, int n)
{
    for (int l = 0; l < LANES; l++) {
        padded[l] = l < n ? x[l] : (T)0;
    }
}

LINE_INLINE void keep_larger(T *best, const T *x, int count)
{
    for (int l = 0; l < count; l++) {
        best[l] = x[l] > best[l] ? x[l] : best[l];
    }
}

#if !defined(LARGEST_LANE)
LINE_INLINE T largest_lane(T best[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        keep_larger(best, best + width, width);
    }
    return best[0];
}
#define LARGEST_LANE largest_lane
#endif

/* Several chains, so that no comparison waits for the one before. */
static double line_max(const void *px, int64_t n)
{
    enum { CHAINS = 4 };
    const T *x = px;
    T best[LANES];
    int64_t i = 0;
    for (int l = 0; l < LANES; l++) {
        best[l] = (T)-INFINITY;
    }
    if (n >= CHAINS * LANES) {
        T chains[CHAINS * LANES];
        memcpy(chains, x, sizeof(chains));
        for (i = CHAINS * LANES; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
            keep_larger(chains, x + i, CHAINS * LANES);
        }
        for (int c = 0; c < CHAINS; c++) {
            keep_larger(best, chains + c * LANES, LANES);
        }
    }
    for (; i + LANES <= n; i += LANES) {
        keep_larger(best, x + i, LANES);
    }
    if (i < n) {
        const int rest = (int)(n - i);
        for (int l = 0; l < LANES; l++) {
            T value = l < rest ? x[i + l] : (T)-INFINITY;
            best[l] = value > best[l] ? value : best[l];
        }
    }
    return (double)LARGEST_LANE(best);
}

LINE_INLINE void add_lanes(lane_sums *s, const T *x)
{
    for (int k = 0; k < PARTS; k++) {
        s->part[k] += WIDEN(x + k * FLEX_WIDE);
    }
}

#if !defined(EXP_BLOCK)
/* out = exp(x - by) for a block; also the sums of the elements that are LANES apart. */
LINE_INLINE void exp_block(T *out, T sums[LANES], const T *x, T by)
{
    for (int i = 0; i < BLOCK; i += LANES) {
        EXP_LANES(out + i, x + i, by);
    }
    for (int l = 0; l < LANES; l++) {
        sums[l] = (out[l] + out[l + LANES]) + (out[l + 2 * LANES] + out[l + 3 * LANES]);
    }
}
#define EXP_BLOCK exp_block
#endif

/*
 * Asks for the line that comes next at the same place, while this one is computed. Four values at a
 * time are added up in T, all of the same sign: that is off by one part in 2^23 (f32) at most, and
 * saves three of four conversions, which take as long as half of exp.
 */
LINE_INLINE double exp_line(T *out, const T *x, T by, int64_t n, const T *next)
{
    lane_sums s = {{{0}}};
    T some[LANES];
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (int k = 0; k < BLOCK; k += LANES) {
            __builtin_prefetch(next + i + k);
        }
        EXP_BLOCK(out + i, some, x + i, by);
        add_lanes(&s, some);
    }
    for (; i + LANES <= n; i += LANES) {
        __builtin_prefetch(next + i);
        EXP_LANES(out + i, x + i, by);
        add_lanes(&s, out + i);
    }
    if (i < n) {
        pad_line(some, x + i, (int)(n - i));
        EXP_LANES(some, some, by);
        pad_line(some, some, (int)(n - i));
        memcpy(out + i, some, (size_t)(n - i) * sizeof(T));
        add_lanes(&s, some);
    }
    return fold(&s);
}

static double line_exp(void *out, const void *x, double shift, int64_t n)
{
    return exp_line(out, x, (T)shift, n, x);
}

static double line_sum(const void *px, int64_t n)
{
    const T *x = px;
    lane_sums s = {{{0}}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        add_lanes(&s, x + i);
    }
    if (i < n) {
        T tail[LANES];
        pad_line(tail, x + i, (int)(n - i));
        add_lanes(&s, tail);
    }
    return fold(&s);
}

LINE_INLINE void add_squares(lane_sums *s, const T *x, double mean)
{
    for (int k = 0; k < PARTS; k++) {
        flex_doubles d = WIDEN(x + k * FLEX_WIDE) - mean;
        s->part[k] = flex_fma_doubles(d, d, s->part[k]);
    }
}

static double line_sum_squares(const void *px, double mean, int64_t n)
{
    const T *x = px;
    lane_sums s = {{{0}}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        add_squares(&s, x + i, mean);
    }
    double sum = fold(&s);
    for (; i < n; i++) {
        double d = (double)x[i] - mean;
        sum += d * d;
    }
    return sum;
}

/* Two passes; in each half of the next line is asked for. */
LINE_INLINE void moments_twice(double moments[2], const T *x, int64_t n, const T *next)
{
    const int64_t whole = n - n % LANES;
    lane_sums s = {{{0}}};
    lane_sums squares = {{{0}}};
    for (int64_t i = 0; i < whole; i += LANES) {
        __builtin_prefetch(next + i / 2);
        add_lanes(&s, x + i);
    }
    double sum = fold(&s);
    for (int64_t i = whole; i < n; i++) {
        sum += (double)x[i];
    }
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < whole; i += LANES) {
        __builtin_prefetch(next + (whole + i) / 2);
        add_squares(&squares, x + i, mean);
    }
    double sum_squares = fold(&squares);
    for (int64_t i = whole; i < n; i++) {
        double d = (double)x[i] - mean;
        sum_squares += d * d;
    }
    moments[0] = mean;
    moments[1] = sum_squares / (double)n;
}

#if defined(ONE_PASS_MOST)
enum { SETS = 2 /* of lanes: as many chains of additions */ };

/*
 * One pass, of d = x - x[0] in f64: the variance is mean(d^2) - mean(d)^2. Its two terms are at
 * most n + 1 times as large as it is, since x[0] is one of the n and adds (x[0] - mean)^2 / n to it
 * by itself. So of 53 bits log2(n) may be lost: with n <= ONE_PASS_MOST more are left than T has
 * (docs/adr/046).
 */
LINE_INLINE void moments_once(double moments[2], const T *x, int64_t n, const T *next)
{
    const double first = (double)x[0];
    lane_sums s[SETS] = {{{{0}}}};
    lane_sums squares[SETS] = {{{{0}}}};
    int64_t i = 0;
    for (; i + SETS * LANES <= n; i += SETS * LANES) {
        for (int set = 0; set < SETS; set++) {
            const T *from = x + i + set * LANES;
            __builtin_prefetch(next + i + set * LANES);
            for (int k = 0; k < PARTS; k++) {
                flex_doubles d = WIDEN(from + k * FLEX_WIDE) - first;
                s[set].part[k] += d;
                squares[set].part[k] = flex_fma_doubles(d, d, squares[set].part[k]);
            }
        }
    }
    double sum = fold(&s[0]) + fold(&s[1]);
    double sum_squares = fold(&squares[0]) + fold(&squares[1]);
    for (; i < n; i++) {
        double d = (double)x[i] - first;
        sum += d;
        sum_squares += d * d;
    }
    const double mean = sum / (double)n;
    const double variance = sum_squares / (double)n - mean * mean;
    moments[0] = first + mean;
    moments[1] = variance < 0.0 ? 0.0 : variance; /* by the bound it is not */
}
#endif

static void line_moments(double moments[2], const void *x, int64_t n, const void *next)
{
#if defined(ONE_PASS_MOST)
    if (n <= ONE_PASS_MOST) {
        moments_once(moments, x, n, next);
        return;
    }
#endif
    moments_twice(moments, x, n, next);
}

LINE_INLINE void add_products(lane_sums *s, const T *x, const T *y)
{
    for (int k = 0; k < PARTS; k++) {
        flex_doubles a = WIDEN(x + k * FLEX_WIDE);
        s->part[k] = flex_fma_doubles(a, WIDEN(y + k * FLEX_WIDE), s->part[k]);
    }
}

static double line_dot(const void *px, const void *py, int64_t n)
{
    const T *x = px;
    const T *y = py;
    lane_sums s = {{{0}}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        add_products(&s, x + i, y + i);
    }
    if (i < n) {
        T a[LANES];
        T b[LANES];
        pad_line(a, x + i, (int)(n - i));
        pad_line(b, y + i, (int)(n - i));
        add_products(&s, a, b);
    }
    return fold(&s);
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

static void line_softmax(void *out, const void *x, int64_t n, const void *next)
{
    double sum = exp_line(out, x, (T)line_max(x, n), n, next);
    line_scale(out, out, 1.0 / sum, n);
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

/*
 * The mean in two parts: near it the first difference is exact, and the second is made of digits
 * that T has. Elsewhere each rounds once.
 */
static void line_affine(void *out, const void *px, double mean, double by, double beta, int64_t n)
{
    const T *x = px;
    T *y = out;
    const T f = (T)by;
    const T b = (T)beta;
    const T most = (T)mean;
    const T rest = most - most == (T)0 ? (T)(mean - (double)most) : (T)0;
    FLEX_LINE_LOOP
    for (int64_t i = 0; i < n; i++) {
        y[i] = ((x[i] - most) - rest) * f + b;
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

LINE_INLINE void add_norm_lanes(lane_sums *plain, lane_sums *times, const T *x, const T *g,
                                const T *gamma, double mean, double inv)
{
    for (int k = 0; k < PARTS; k++) {
        flex_doubles gg = WIDEN(g + k * FLEX_WIDE);
        if (gamma != NULL) {
            gg *= WIDEN(gamma + k * FLEX_WIDE);
        }
        plain->part[k] += gg;
        flex_doubles d = (WIDEN(x + k * FLEX_WIDE) - mean) * inv;
        times->part[k] = flex_fma_doubles(gg, d, times->part[k]);
    }
}

static void line_norm_sums(double sums[2], const void *px, const void *pg, const void *pgamma,
                           double mean, double inv, int64_t n)
{
    const T *x = px;
    const T *g = pg;
    const T *gamma = pgamma;
    lane_sums plain = {{{0}}};
    lane_sums times = {{{0}}};
    int64_t i = 0;
    for (; gamma == NULL && i + LANES <= n; i += LANES) {
        add_norm_lanes(&plain, &times, x + i, g + i, NULL, mean, inv);
    }
    for (; i + LANES <= n; i += LANES) {
        add_norm_lanes(&plain, &times, x + i, g + i, gamma + i, mean, inv);
    }
    sums[0] = fold(&plain);
    sums[1] = fold(&times);
    for (; i < n; i++) {
        double gg = (double)g[i] * (gamma != NULL ? (double)gamma[i] : 1.0);
        sums[0] += gg;
        sums[1] += gg * (((double)x[i] - mean) * inv);
    }
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

/* A gradient and what decay adds to it; nothing without decay: 0 times an infinite parameter is no
 * number. `decays` is known where this is called, so that loops do not ask. */
LINE_INLINE T decayed(T g, T p, T decay, int decays)
{
    return decays ? g + decay * p : g;
}

LINE_INLINE void adam_some(T *restrict p, T *restrict m, T *restrict v, const T *restrict grad,
                           const flex_adam *k, int64_t n, int decays)
{
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
        T g = decayed(grad[i], p[i], decay, decays);
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        p[i] = p[i] * shrink - step * m[i] / (SQRT(v[i]) / root + eps);
    }
}

static void line_adam(void *p, void *m, void *v, const void *grad, const flex_adam *k, int64_t n)
{
    if (k->decay != 0.0) {
        adam_some(p, m, v, grad, k, n, 1);
    } else {
        adam_some(p, m, v, grad, k, n, 0);
    }
}

LINE_INLINE void sgd_some(T *restrict p, T *restrict v, const T *restrict grad, const flex_sgd *k,
                          int64_t n, int decays)
{
    T lr = (T)k->lr;
    T decay = (T)k->decay;
    T momentum = (T)k->momentum;
    T keep = (T)k->keep;
    if (v == NULL) {
        for (int64_t i = 0; i < n; i++) {
            p[i] -= lr * decayed(grad[i], p[i], decay, decays);
        }
        return;
    }
    int first = k->first;
    int nesterov = k->nesterov;
    for (int64_t i = 0; i < n; i++) {
        T g = decayed(grad[i], p[i], decay, decays);
        v[i] = first ? g : momentum * v[i] + keep * g;
        p[i] -= lr * (nesterov ? g + momentum * v[i] : v[i]);
    }
}

static void line_sgd(void *p, void *v, const void *grad, const flex_sgd *k, int64_t n)
{
    if (k->decay != 0.0) {
        sgd_some(p, v, grad, k, n, 1);
    } else {
        sgd_some(p, v, grad, k, n, 0);
    }
}

#if !defined(FAR_SOFTMAX)
#define FAR_SOFTMAX NULL
#endif

const flex_lines TABLE = {
    .dtype = TABLE_DTYPE,
    .max = line_max,
    .exp = line_exp,
    .softmax = line_softmax,
    .far_softmax = FAR_SOFTMAX,
    .moments = line_moments,
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
    .square_differences = line_square_differences,
    .max_tap = line_max_tap,
    .maxima = line_maxima,
    .adam = line_adam,
    .sgd = line_sgd,
};
