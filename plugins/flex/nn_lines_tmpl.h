/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_tmpl.h - the loops of nn_lines.h for element type T, with EXP and SQRT, as table TABLE.
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

static double line_max(const void *px, int64_t n)
{
    const T *x = px;
    T best[LANES];
    T odd[LANES]; /* turns NaN with the first NaN */
    for (int l = 0; l < LANES; l++) {
        best[l] = (T)-INFINITY;
        odd[l] = 0;
    }
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            T value = x[i + l];
            best[l] = value > best[l] ? value : best[l];
            odd[l] += value == value ? 0 : value;
        }
    }
    for (; i < n; i++) {
        best[0] = x[i] > best[0] ? x[i] : best[0];
        odd[0] += x[i] == x[i] ? 0 : x[i];
    }
    T top = best[0];
    T nan = odd[0];
    for (int l = 1; l < LANES; l++) {
        top = best[l] > top ? best[l] : top;
        nan += odd[l];
    }
    return nan == nan ? (double)top : (double)nan;
}

static double line_exp(void *pout, const void *px, double shift, int64_t n)
{
    T *out = pout;
    const T *x = px;
    T s = (T)shift;
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        T e[LANES];
        for (int l = 0; l < LANES; l++) {
            e[l] = EXP(x[i + l] - s);
        }
        for (int l = 0; l < LANES; l++) {
            out[i + l] = e[l];
            lanes[l] += (double)e[l];
        }
    }
    for (; i < n; i++) {
        T e = EXP(x[i] - s);
        out[i] = e;
        lanes[i % LANES] += (double)e;
    }
    return fold(lanes);
}

static double line_sum(const void *px, int64_t n)
{
    const T *x = px;
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            lanes[l] += (double)x[i + l];
        }
    }
    for (; i < n; i++) {
        lanes[i % LANES] += (double)x[i];
    }
    return fold(lanes);
}

static double line_sum_squares(const void *px, double mean, int64_t n)
{
    const T *x = px;
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            double d = (double)x[i + l] - mean;
            lanes[l] += d * d;
        }
    }
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
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            lanes[l] += (double)x[i + l] * (double)y[i + l];
        }
    }
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
    .adam = line_adam,
    .sgd = line_sgd,
};
