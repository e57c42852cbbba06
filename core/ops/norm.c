/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * norm.c - layer_norm and its gradient.
 *
 * Owns the two definitions. Statistics are taken over the last n_axes axes of each row (norm.h says
 * how); half precision is computed in f32. To add a norm: its own file beside this one, on norm.h.
 */
#include "ops/norm.h"

static inline double mean_variance(const double *x, uint64_t n, double *variance)
{
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += x[k];
    }
    double mean = sum / (double)n;
    double squares = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        squares += (x[k] - mean) * (x[k] - mean);
    }
    *variance = squares / (double)n;
    return mean;
}

/* ---- layer_norm ------------------------------------------------------------------------------ */

static const burn_role layer_norm_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gamma", BURN_ROLE_OPTIONAL | BURN_ROLE_LINE, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("beta", BURN_ROLE_OPTIONAL | BURN_ROLE_LINE, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static axis_set last_axes(uint32_t rank, uint32_t n)
{
    axis_set set = {n, {0}};
    for (uint32_t i = 0; i < n; i++) {
        set.axes[i] = (int64_t)(rank - n + i);
    }
    return set;
}

static axis_set leading_axes(uint32_t rank, uint32_t n_last)
{
    axis_set set = {rank - n_last, {0}};
    for (uint32_t i = 0; i < set.n; i++) {
        set.axes[i] = (int64_t)i;
    }
    return set;
}

/* The shape of the last n axes. */
static burn_meta tail_of(const burn_meta *x, uint32_t n)
{
    burn_meta tail = *x;
    tail.rank = (uint8_t)n;
    memset(tail.dims, 0, sizeof(tail.dims));
    for (uint32_t i = 0; i < n; i++) {
        tail.dims[i] = x->dims[x->rank - n + i];
    }
    return tail;
}

static int32_t check_layer_norm(const char *op, const burn_infer *a, const burn_attrs_norm *attrs)
{
    const burn_meta *x = a->in[0];
    if (attrs->n_axes >= 1 && attrs->n_axes <= x->rank) {
        return BURN_OK;
    }
    return burni_fail(a->err, BURN_E_INVALID,
                      "%s: n_axes is %u, but x has rank %u; use 1 to the rank of x", op,
                      (unsigned)attrs->n_axes, (unsigned)x->rank);
}

static int32_t layer_norm_infer(const burn_infer *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("layer_norm", a->err);
    }
    int32_t code = check_layer_norm("layer_norm", a, attrs);
    if (code != BURN_OK) {
        return code;
    }
    burn_meta tail = tail_of(a->in[0], attrs->n_axes);
    for (uint32_t i = 1; i < 3 && i < a->n_in && code == BURN_OK; i++) {
        if (burni_nn_present(a->in[i])) {
            code = burni_nn_check_shape("layer_norm", "the normalised part of x", &tail,
                                        layer_norm_roles[i].name, a->in[i], a->err);
        }
    }
    return code != BURN_OK ? code : burni_infer_same(a);
}

static int32_t layer_norm_vjp(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    burn_value *g = a->grad_out[0];
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = NULL;
    }
    if (attrs == NULL || g == NULL) {
        return attrs == NULL ? BURN_E_INVALID : BURN_OK;
    }
    if (a->wanted[0] || a->wanted[1]) {
        burn_value *in[3] = {a->in[0], a->in[1], g};
        burn_value *out[3] = {NULL, NULL, NULL};
        (void)b->emit(b->ctx, BURN_OP_LAYER_NORM_GRAD, a->attrs, a->attrs_size, in, 3, out, 3);
        for (uint32_t i = 0; i < 3; i++) {
            a->grad_in[i] = a->wanted[i] ? out[i] : NULL;
        }
    } else if (a->wanted[2]) {
        axis_set leading = leading_axes(a->in_meta[0].rank, attrs->n_axes);
        burn_value *sum = sum_over(b, burni_nn_widen(b, g), &leading);
        a->grad_in[2] = burni_nn_narrow(b, sum, a->in_meta[0].dtype);
    }
    return BURN_OK;
}

static const uint32_t layer_norm_saves[] = {
    BURN_SAVE_IN(0) | BURN_SAVE_IN(1),
    BURN_SAVE_IN(0),
    0,
};

static int32_t layer_norm_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    axis_set set = last_axes(a->in_meta[0].rank, attrs->n_axes);
    moments m = moments_of(b, burni_nn_widen(b, a->in[0]), &set, attrs->eps);
    burn_value *y = burn_b_mul(b, m.centred, m.rstd);
    y = scaled(b, y, burni_nn_widen(b, a->in[1]));
    y = shifted(b, y, burni_nn_widen(b, a->in[2]));
    a->out[0] = burni_nn_narrow(b, y, a->in_meta[0].dtype);
    return BURN_OK;
}

/* x as rows * n. */
static uint64_t row_length(const burn_meta *x, uint32_t n_axes)
{
    burn_meta tail = tail_of(x, n_axes);
    return (uint64_t)burni_nn_numel(&tail);
}

static int32_t layer_norm_eval(const burn_eval *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("layer_norm", a->err);
    }
    const double *gamma = burni_nn_present(&a->in[1].meta) ? a->in[1].f : NULL;
    const double *beta = burni_nn_present(&a->in[2].meta) ? a->in[2].f : NULL;
    uint64_t n = row_length(&a->in[0].meta, attrs->n_axes);
    for (uint64_t at = 0; n > 0 && at < a->in[0].n; at += n) {
        double variance;
        double mean = mean_variance(a->in[0].f + at, n, &variance);
        double rstd = 1.0 / sqrt(variance + attrs->eps);
        for (uint64_t k = 0; k < n; k++) {
            double y = (a->in[0].f[at + k] - mean) * rstd;
            y = gamma != NULL ? y * gamma[k] : y;
            a->out[0].f[at + k] = beta != NULL ? y + beta[k] : y;
        }
    }
    return BURN_OK;
}

/* ---- samples of layer_norm ------------------------------------------------------------------- */

static const double far_values[] = {40000, 40001, 40002, 40003, 80000, 80001, 80002, 80003};
static const double wide_values[] = {300, -300, 300, -300};
static const double vast_values[] = {1e20, -1e20, 2e20, -2e20};
static const double zero_values[] = {0};

#define WIDE_DTYPES (BURN_BIT(F32) | BURN_BIT(F64))

static const norm_sample layer_norm_table[] = {
    {"affine", 2, {5, 7}, 1, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"plain", 2, {3, 13}, 1, 0, 0, 1e-5, 0, 0, NULL, 0},
    {"gamma only", 3, {2, 3, 5}, 1, 0, HAS_GAMMA, 1e-5, 0, 0, NULL, 0},
    {"beta only", 2, {4, 6}, 1, 0, HAS_BETA, 1e-3, 0, 0, NULL, 0},
    {"two axes", 4, {2, 3, 4, 5}, 2, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"all axes", 2, {3, 4}, 2, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"no rows", 2, {0, 4}, 1, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"empty rows", 2, {3, 0}, 1, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"large mean", 2, {2, 4}, 1, 0, HAS_GAMMA | HAS_BETA, 1e-5, 0, 8, far_values, WIDE_DTYPES},
    {"squares beyond f16", 2, {1, 4}, 1, 0, 0, 1e-5, 0, 4, wide_values, 0},
    {"squares beyond f32", 2, {3, 21}, 1, 0, HAS_GAMMA, 1e-5, 0, 4, vast_values, WIDE_DTYPES},
    {"zeros with a tiny eps", 2, {1, 10}, 1, 0, 0, 1e-12, 0, 1, zero_values, 0},
    {"gamma of a wrong shape", 2, {3, 4}, 1, 0, WRONG_GAMMA, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
    {"no axes", 2, {3, 4}, 0, 0, 0, 1e-5, BURN_E_INVALID, 0, NULL, 0},
    {"more axes than x has", 2, {3, 4}, 3, 0, 0, 1e-5, BURN_E_INVALID, 0, NULL, 0},
};

static int32_t layer_norm_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(layer_norm_table) / sizeof(layer_norm_table[0])) {
        return BURN_E_END;
    }
    const norm_sample *s = &layer_norm_table[i];
    const int64_t wrong[1] = {99};
    const int64_t *tail = s->n_axes <= s->rank ? s->dims + (s->rank - s->n_axes) : s->dims;
    begin_norm_sample(out, s);
    optional_tensor(out, 1, (s->has & HAS_GAMMA) != 0, s->n_axes, tail);
    optional_tensor(out, 2, (s->has & HAS_BETA) != 0, s->n_axes, tail);
    if ((s->has & WRONG_GAMMA) != 0) {
        burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, wrong);
    }
    return BURN_OK;
}

static const burni_special layer_norm_special[] = {
    {"affine", "special values", 0, 1},
    {"two axes", "special values, beta", 0, 5},
};

static int32_t layer_norm_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, layer_norm_samples, layer_norm_special,
                                 BURNI_N_SPECIAL(layer_norm_special));
}

const burn_op_def burn_op_def_layer_norm = {
    BURNI_DEF(LAYER_NORM, layer_norm),
    .summary = "(x - mean) / sqrt(var + eps) * gamma + beta over the last axes",
    .n_in = 3,
    .n_out = 1,
    .roles = layer_norm_roles,
    .attrs = norm_attrs,
    .n_attrs = N_NORM_ATTRS,
    .attrs_size = sizeof(burn_attrs_norm),
    .fuse = BURN_FUSE_LINES,
    .infer = layer_norm_infer,
    .vjp = layer_norm_vjp,
    .vjp_saves = layer_norm_saves,
    .decompose = layer_norm_decompose,
    .eval = layer_norm_eval,
    .samples = layer_norm_all_samples,
};

/* ---- layer_norm_grad ------------------------------------------------------------------------- */

static const burn_role layer_norm_grad_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gamma", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("ggamma", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gbeta", 0, 0, BURN_SET_FLOAT),
};

static int32_t layer_norm_grad_infer(const burn_infer *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("layer_norm_grad", a->err);
    }
    int32_t code = check_layer_norm("layer_norm_grad", a, attrs);
    if (code == BURN_OK) {
        code = burni_nn_check_shape("layer_norm_grad", "x", a->in[0], "g", a->in[2], a->err);
    }
    if (code != BURN_OK) {
        return code;
    }
    burn_meta tail = tail_of(a->in[0], attrs->n_axes);
    if (burni_nn_present(a->in[1])) {
        code = burni_nn_check_shape("layer_norm_grad", "the normalised part of x", &tail, "gamma",
                                    a->in[1], a->err);
    }
    burni_nn_copy_shape(&a->out[0], a->in[0]);
    burni_nn_copy_shape(&a->out[1], &tail);
    burni_nn_copy_shape(&a->out[2], &tail);
    return code;
}

static int32_t layer_norm_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    uint8_t dtype = a->in_meta[0].dtype;
    axis_set set = last_axes(a->in_meta[0].rank, attrs->n_axes);
    axis_set leading = leading_axes(a->in_meta[0].rank, attrs->n_axes);
    burn_value *g = burni_nn_widen(b, a->in[2]);
    moments m = moments_of(b, burni_nn_widen(b, a->in[0]), &set, attrs->eps);
    burn_value *xhat = burn_b_mul(b, m.centred, m.rstd);
    burn_value *d = scaled(b, g, burni_nn_widen(b, a->in[1]));
    burn_value *ggamma = sum_over(b, burn_b_mul(b, g, xhat), &leading);
    burn_value *gbeta = sum_over(b, g, &leading);
    a->out[0] = burni_nn_narrow(b, through_moments(b, &m, xhat, d, &set), dtype);
    a->out[1] = burni_nn_narrow(b, ggamma, dtype);
    a->out[2] = burni_nn_narrow(b, gbeta, dtype);
    return BURN_OK;
}

/* One row: adds to ggamma and gbeta, writes gx. */
static void layer_norm_grad_row(const double *x, const double *gamma, const double *g, uint64_t n,
                                double eps, double *gx, double *ggamma, double *gbeta)
{
    double variance;
    double mean = mean_variance(x, n, &variance);
    double rstd = 1.0 / sqrt(variance + eps);
    double mean_d = 0.0;
    double mean_dx = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        double xhat = (x[k] - mean) * rstd;
        double d = gamma != NULL ? g[k] * gamma[k] : g[k];
        mean_d += d / (double)n;
        mean_dx += d * xhat / (double)n;
        ggamma[k] += g[k] * xhat;
        gbeta[k] += g[k];
    }
    for (uint64_t k = 0; k < n; k++) {
        double xhat = (x[k] - mean) * rstd;
        double d = gamma != NULL ? g[k] * gamma[k] : g[k];
        gx[k] = rstd * (d - mean_d - xhat * mean_dx);
    }
}

static int32_t layer_norm_grad_eval(const burn_eval *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("layer_norm_grad", a->err);
    }
    const double *gamma = burni_nn_present(&a->in[1].meta) ? a->in[1].f : NULL;
    uint64_t n = row_length(&a->in[0].meta, attrs->n_axes);
    for (uint64_t k = 0; k < n; k++) {
        a->out[1].f[k] = 0.0;
        a->out[2].f[k] = 0.0;
    }
    for (uint64_t at = 0; n > 0 && at < a->in[0].n; at += n) {
        layer_norm_grad_row(a->in[0].f + at, gamma, a->in[2].f + at, n, attrs->eps,
                            a->out[0].f + at, a->out[1].f, a->out[2].f);
    }
    return BURN_OK;
}

static int32_t layer_norm_grad_samples(uint32_t i, burn_sample *out)
{
    if (i >= 8) {
        return BURN_E_END;
    }
    const norm_sample *s = &layer_norm_table[i];
    begin_norm_sample(out, s);
    optional_tensor(out, 1, (s->has & HAS_GAMMA) != 0, s->n_axes, s->dims + (s->rank - s->n_axes));
    burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    return BURN_OK;
}

static const burni_special layer_norm_grad_special[] = {
    {"affine", "special values", 0, 1},
    {"two axes", "special values, g", 0, 4},
};

static int32_t layer_norm_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, layer_norm_grad_samples, layer_norm_grad_special,
                                 BURNI_N_SPECIAL(layer_norm_grad_special));
}

const burn_op_def burn_op_def_layer_norm_grad = {
    BURNI_DEF(LAYER_NORM_GRAD, layer_norm_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradients of layer_norm: of x, gamma and beta",
    .n_in = 3,
    .n_out = 3,
    .roles = layer_norm_grad_roles,
    .attrs = norm_attrs,
    .n_attrs = N_NORM_ATTRS,
    .attrs_size = sizeof(burn_attrs_norm),
    .infer = layer_norm_grad_infer,
    .decompose = layer_norm_grad_decompose,
    .eval = layer_norm_grad_eval,
    .samples = layer_norm_grad_all_samples,
};
