/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * batch_norm.c - batch_norm and its gradient; the channel axis is 1.
 *
 * Owns the two definitions. Running statistics are not updated here: in training batch_norm hands
 * out the batch's mean and biased variance, which carry no gradient, and the layer assigns. In
 * evaluation it passes its statistics through. norm.h has what is shared with layer_norm.
 */
#include "ops/norm.h"

/* ---- batch_norm ------------------------------------------------------------------------------ */

static const burn_role batch_norm_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gamma", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("beta", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("mean", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("var", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("mean", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("var", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
};

/* Every axis but the channel's. */
static axis_set batch_axes(uint32_t rank)
{
    axis_set set = {0, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        if (i != 1) {
            set.axes[set.n++] = (int64_t)i;
        }
    }
    return set;
}

static burn_meta channel_shape(const burn_meta *x)
{
    burn_meta c = *x;
    c.rank = 1;
    memset(c.dims, 0, sizeof(c.dims));
    c.dims[0] = x->dims[1];
    return c;
}

/* [c] as [c, 1, 1, ...], which lines up with x's channel axis. */
static burn_value *per_channel(const burn_builder *b, burn_value *v, const burn_meta *x)
{
    int64_t dims[BURN_MAX_RANK] = {x->dims[1], 1, 1, 1, 1, 1, 1, 1};
    return v == NULL || x->rank == 2 ? v : burn_b_reshape(b, v, x->rank - 1u, dims);
}

/* The reverse: a statistic that kept its axes, as [c]. */
static burn_value *as_vector(const burn_builder *b, burn_value *v, const burn_meta *x)
{
    return burn_b_reshape(b, v, 1, &x->dims[1]);
}

/* Values per channel. */
static int64_t batch_count(const burn_meta *x)
{
    int64_t dims[BURN_MAX_RANK] = {0};
    memcpy(dims, x->dims, sizeof(dims));
    dims[1] = 1;
    return burni_numel(x->rank, dims);
}

/* What both ops ask of x, training and the statistics, which are operands `mean` and `mean + 1`. */
static int32_t check_batch_norm(const char *op, const burn_infer *a, const burn_attrs_norm *attrs,
                                uint32_t mean)
{
    const burn_meta *x = a->in[0];
    char text[192];
    if (x->rank < 2) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: x has shape %s; it needs a batch axis and a channel axis, [n,c,...]",
                          op, burni_shape_text(text, sizeof(text), x->rank, x->dims));
    }
    if (attrs->training && batch_count(x) <= 1) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: x has shape %s, but batch_norm needs more than one value per "
                          "channel in training; use a larger batch, or evaluation mode",
                          op, burni_shape_text(text, sizeof(text), x->rank, x->dims));
    }
    if (!attrs->training && (a->n_in < mean + 2 || !burni_nn_present(a->in[mean]) ||
                             !burni_nn_present(a->in[mean + 1]))) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "%s: operands mean and var are required when training is 0", op);
    }
    return BURN_OK;
}

static int32_t check_channel_operands(const char *op, const burn_infer *a, const burn_role *roles,
                                      const uint32_t *operands, uint32_t n)
{
    burn_meta c = channel_shape(a->in[0]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = operands[i];
        if (k >= a->n_in || !burni_nn_present(a->in[k])) {
            continue;
        }
        int32_t code = burni_nn_check_shape(op, "the channel axis of x", &c, roles[k].name,
                                            a->in[k], a->err);
        if (code != BURN_OK) {
            return code;
        }
    }
    return BURN_OK;
}

static int32_t batch_norm_infer(const burn_infer *a)
{
    const uint32_t channel_operands[] = {1, 2, 3, 4};
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("batch_norm", a->err);
    }
    int32_t code = check_batch_norm("batch_norm", a, attrs, 3);
    if (code == BURN_OK) {
        code = check_channel_operands("batch_norm", a, batch_norm_roles, channel_operands, 4);
    }
    if (code == BURN_OK) {
        burn_meta c = channel_shape(a->in[0]);
        burni_nn_copy_shape(&a->out[0], a->in[0]);
        burni_nn_copy_shape(&a->out[1], &c);
        burni_nn_copy_shape(&a->out[2], &c);
    }
    return code;
}

static int32_t batch_norm_vjp(const burn_builder *b, const burn_vjp *a)
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
        /* In training the statistics are computed anew: as operands they would be constants to a
         * second derivative. */
        burn_value *mean = attrs->training ? NULL : a->in[3];
        burn_value *var = attrs->training ? NULL : a->in[4];
        burn_value *in[5] = {a->in[0], a->in[1], g, mean, var};
        burn_value *out[3] = {NULL, NULL, NULL};
        (void)b->emit(b->ctx, BURN_OP_BATCH_NORM_GRAD, a->attrs, a->attrs_size, in, 5, out, 3);
        for (uint32_t i = 0; i < 3; i++) {
            a->grad_in[i] = a->wanted[i] ? out[i] : NULL;
        }
    } else if (a->wanted[2]) {
        axis_set set = batch_axes(a->in_meta[0].rank);
        burn_value *sum = sum_over(b, burni_nn_widen(b, g), &set);
        a->grad_in[2] = burni_nn_narrow(b, sum, a->in_meta[0].dtype);
    }
    return BURN_OK;
}

static const uint32_t batch_norm_saves[] = {
    BURN_SAVE_IN(0) | BURN_SAVE_IN(1) | BURN_SAVE_IN(3) | BURN_SAVE_IN(4),
    BURN_SAVE_IN(0) | BURN_SAVE_IN(3) | BURN_SAVE_IN(4),
    0,
    0,
    0,
};

/* The statistics in use, wide, lined up with x. */
static moments batch_moments(const burn_builder *b, burn_value *x, const burn_meta *meta,
                             const burn_attrs_norm *attrs, burn_value *mean, burn_value *var)
{
    if (attrs->training) {
        axis_set set = batch_axes(meta->rank);
        return moments_of(b, x, &set, attrs->eps);
    }
    moments m;
    m.mean = per_channel(b, burni_nn_widen(b, mean), meta);
    m.var = per_channel(b, burni_nn_widen(b, var), meta);
    m.centred = burn_b_sub(b, x, m.mean);
    m.rstd = rstd_of(b, m.var, attrs->eps);
    return m;
}

static int32_t batch_norm_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    const burn_meta *meta = &a->in_meta[0];
    burn_value *x = burni_nn_widen(b, a->in[0]);
    moments m = batch_moments(b, x, meta, attrs, a->in[3], a->in[4]);
    burn_value *y = burn_b_mul(b, m.centred, m.rstd);
    y = scaled(b, y, per_channel(b, burni_nn_widen(b, a->in[1]), meta));
    y = shifted(b, y, per_channel(b, burni_nn_widen(b, a->in[2]), meta));
    a->out[0] = burni_nn_narrow(b, y, meta->dtype);
    a->out[1] = a->in[3];
    a->out[2] = a->in[4];
    if (attrs->training) {
        /* An infinite mean is NaN once what is left of it was added. */
        axis_set set = batch_axes(meta->rank);
        burn_value *mean = burn_b_where(b, burn_b_is_nan(b, m.mean), mean_of(b, x, &set), m.mean);
        a->out[1] = burni_nn_narrow(b, as_vector(b, mean, meta), meta->dtype);
        a->out[2] = burni_nn_narrow(b, as_vector(b, m.var, meta), meta->dtype);
    }
    return BURN_OK;
}

/* x as batch * channels * inner. */
typedef struct planes {
    uint64_t batch;
    uint64_t channels;
    uint64_t inner;
} planes;

static planes split_planes(const burn_meta *x)
{
    planes p = {(uint64_t)x->dims[0], (uint64_t)x->dims[1], 1};
    for (uint32_t i = 2; i < x->rank; i++) {
        p.inner *= (uint64_t)x->dims[i];
    }
    return p;
}

static uint64_t plane_at(const planes *p, uint64_t channel, uint64_t k)
{
    return ((k / p->inner) * p->channels + channel) * p->inner + k % p->inner;
}

static double channel_variance(const double *x, const planes *p, uint64_t channel, double *mean)
{
    uint64_t n = p->batch * p->inner;
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += x[plane_at(p, channel, k)];
    }
    *mean = sum / (double)n;
    double squares = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        double d = x[plane_at(p, channel, k)] - *mean;
        squares += d * d;
    }
    return squares / (double)n;
}

static int32_t batch_norm_eval(const burn_eval *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("batch_norm", a->err);
    }
    const double *x = a->in[0].f;
    planes p = split_planes(&a->in[0].meta);
    for (uint64_t c = 0; c < p.channels; c++) {
        double mean;
        double var;
        if (attrs->training) {
            var = channel_variance(x, &p, c, &mean);
        } else {
            mean = a->in[3].f[c];
            var = a->in[4].f[c];
        }
        a->out[1].f[c] = mean;
        a->out[2].f[c] = var;
        double gamma = burni_nn_present(&a->in[1].meta) ? a->in[1].f[c] : 1.0;
        double beta = burni_nn_present(&a->in[2].meta) ? a->in[2].f[c] : 0.0;
        for (uint64_t k = 0; k < p.batch * p.inner; k++) {
            uint64_t at = plane_at(&p, c, k);
            a->out[0].f[at] = (x[at] - mean) / sqrt(var + attrs->eps) * gamma + beta;
        }
    }
    return BURN_OK;
}

/* The variance itself is beyond f32 and comes out as inf; what it normalizes is not. */
static const double vast_values[] = {1e20, -1e20, 2e20, -2e20, 3e20};

static const norm_sample batch_norm_table[] = {
    {"training", 4, {3, 2, 2, 5}, 0, 1, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"training, plain", 2, {7, 3}, 0, 1, 0, 1e-5, 0, 0, NULL, 0},
    {"training, rank 3", 3, {2, 3, 5}, 0, 1, HAS_GAMMA, 1e-3, 0, 0, NULL, 0},
    {"training, batch of one", 4, {1, 3, 4, 4}, 0, 1, HAS_GAMMA | HAS_BETA, 1e-5, 0, 0, NULL, 0},
    {"evaluation", 4, {2, 3, 3, 3}, 0, 0, HAS_GAMMA | HAS_BETA | HAS_STATS, 1e-5, 0, 0, NULL, 0},
    {"evaluation of one row", 2, {1, 5}, 0, 0, HAS_STATS, 1e-5, 0, 0, NULL, 0},
    {"evaluation of no rows", 2, {0, 5}, 0, 0, HAS_BETA | HAS_STATS, 1e-5, 0, 0, NULL, 0},
    {"training, squares beyond f32", 2, {20, 3}, 0, 1, HAS_GAMMA, 1e-5, 0, 5, vast_values,
     BURN_BIT(F32) | BURN_BIT(F64)},
    {"training without a second value", 4, {1, 3, 1, 1}, 0, 1, 0, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
    {"training of one row", 2, {1, 3}, 0, 1, HAS_GAMMA, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
    {"training of no rows", 2, {0, 3}, 0, 1, 0, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
    {"evaluation without statistics", 2, {4, 3}, 0, 0, 0, 1e-5, BURN_E_INVALID, 0, NULL, 0},
    {"gamma of a wrong shape", 2, {4, 3}, 0, 1, WRONG_GAMMA, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
    {"no channel axis", 1, {4}, 0, 1, 0, 1e-5, BURN_E_SHAPE, 0, NULL, 0},
};

/* Statistics as operands i and i + 1: the variance is positive. */
static void statistics(burn_sample *out, uint32_t i, const norm_sample *s)
{
    int present = (s->has & HAS_STATS) != 0;
    optional_tensor(out, i, present, 1, &s->dims[1]);
    optional_tensor(out, i + 1, present, 1, &s->dims[1]);
    if (present) {
        out->in[i + 1].fill = BURN_FILL_UNIFORM;
        burni_sample_range(out, i + 1, 0.25, 2.0);
    }
}

static int32_t batch_norm_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(batch_norm_table) / sizeof(batch_norm_table[0])) {
        return BURN_E_END;
    }
    const norm_sample *s = &batch_norm_table[i];
    const int64_t wrong[1] = {99};
    begin_norm_sample(out, s);
    optional_tensor(out, 1, (s->has & HAS_GAMMA) != 0, 1, &s->dims[1]);
    optional_tensor(out, 2, (s->has & HAS_BETA) != 0, 1, &s->dims[1]);
    statistics(out, 3, s);
    if ((s->has & WRONG_GAMMA) != 0) {
        burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, wrong);
    }
    return BURN_OK;
}

static const burni_special batch_norm_special[] = {
    {"training, plain", "special values", 0, 1},
    {"evaluation", "special values, evaluation", 0, 1},
};

static int32_t batch_norm_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, batch_norm_samples, batch_norm_special,
                                 BURNI_N_SPECIAL(batch_norm_special));
}

const burn_op_def burn_op_def_batch_norm = {
    BURNI_DEF(BATCH_NORM, batch_norm),
    .summary = "(x - mean) / sqrt(var + eps) * gamma + beta per channel (axis 1)",
    .n_in = 5,
    .n_out = 3,
    .roles = batch_norm_roles,
    .attrs = norm_attrs,
    .n_attrs = N_NORM_ATTRS,
    .attrs_size = sizeof(burn_attrs_norm),
    .infer = batch_norm_infer,
    .vjp = batch_norm_vjp,
    .vjp_saves = batch_norm_saves,
    .decompose = batch_norm_decompose,
    .eval = batch_norm_eval,
    .samples = batch_norm_all_samples,
};

/* ---- batch_norm_grad ------------------------------------------------------------------------- */

static const burn_role batch_norm_grad_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gamma", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("mean", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("var", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("ggamma", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gbeta", 0, 0, BURN_SET_FLOAT),
};

static int32_t batch_norm_grad_infer(const burn_infer *a)
{
    const uint32_t channel_operands[] = {1, 3, 4};
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("batch_norm_grad", a->err);
    }
    int32_t code = check_batch_norm("batch_norm_grad", a, attrs, 3);
    if (code == BURN_OK) {
        code = burni_nn_check_shape("batch_norm_grad", "x", a->in[0], "g", a->in[2], a->err);
    }
    if (code == BURN_OK) {
        code = check_channel_operands("batch_norm_grad", a, batch_norm_grad_roles,
                                      channel_operands, 3);
    }
    if (code == BURN_OK) {
        burn_meta c = channel_shape(a->in[0]);
        burni_nn_copy_shape(&a->out[0], a->in[0]);
        burni_nn_copy_shape(&a->out[1], &c);
        burni_nn_copy_shape(&a->out[2], &c);
    }
    return code;
}

static int32_t batch_norm_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    const burn_meta *meta = &a->in_meta[0];
    axis_set set = batch_axes(meta->rank);
    burn_value *x = burni_nn_widen(b, a->in[0]);
    burn_value *g = burni_nn_widen(b, a->in[2]);
    moments m = batch_moments(b, x, meta, attrs, a->in[3], a->in[4]);
    burn_value *xhat = burn_b_mul(b, m.centred, m.rstd);
    burn_value *d = scaled(b, g, per_channel(b, burni_nn_widen(b, a->in[1]), meta));
    burn_value *gx = attrs->training ? through_moments(b, &m, xhat, d, &set)
                                     : burn_b_mul(b, d, m.rstd);
    a->out[0] = burni_nn_narrow(b, gx, meta->dtype);
    a->out[1] = burni_nn_narrow(b, sum_over(b, burn_b_mul(b, g, xhat), &set), meta->dtype);
    a->out[2] = burni_nn_narrow(b, sum_over(b, g, &set), meta->dtype);
    return BURN_OK;
}

static void batch_norm_grad_channel(const burn_eval *a, const burn_attrs_norm *attrs,
                                    const planes *p, uint64_t c)
{
    const double *x = a->in[0].f;
    const double *g = a->in[2].f;
    double gamma = burni_nn_present(&a->in[1].meta) ? a->in[1].f[c] : 1.0;
    double mean;
    double var;
    if (attrs->training) {
        var = channel_variance(x, p, c, &mean);
    } else {
        mean = a->in[3].f[c];
        var = a->in[4].f[c];
    }
    double rstd = 1.0 / sqrt(var + attrs->eps);
    double sum_g = 0.0;
    double sum_gx = 0.0;
    uint64_t n = p->batch * p->inner;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t at = plane_at(p, c, k);
        sum_g += g[at];
        sum_gx += g[at] * (x[at] - mean) * rstd;
    }
    a->out[1].f[c] = sum_gx;
    a->out[2].f[c] = sum_g;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t at = plane_at(p, c, k);
        double xhat = (x[at] - mean) * rstd;
        double centre = attrs->training ? (sum_g + xhat * sum_gx) / (double)n : 0.0;
        a->out[0].f[at] = gamma * rstd * (g[at] - centre);
    }
}

static int32_t batch_norm_grad_eval(const burn_eval *a)
{
    const burn_attrs_norm *attrs = BURNI_ATTRS(a, burn_attrs_norm);
    if (attrs == NULL) {
        return burni_no_attrs("batch_norm_grad", a->err);
    }
    planes p = split_planes(&a->in[0].meta);
    for (uint64_t c = 0; c < p.channels; c++) {
        batch_norm_grad_channel(a, attrs, &p, c);
    }
    return BURN_OK;
}

static int32_t batch_norm_grad_samples(uint32_t i, burn_sample *out)
{
    if (i >= 7) {
        return BURN_E_END;
    }
    const norm_sample *s = &batch_norm_table[i];
    begin_norm_sample(out, s);
    optional_tensor(out, 1, (s->has & HAS_GAMMA) != 0, 1, &s->dims[1]);
    burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    statistics(out, 3, s);
    return BURN_OK;
}

static const burni_special batch_norm_grad_special[] = {
    {"training, plain", "special values", 0, 1},
    {"evaluation", "special values, evaluation", 0, 5},
};

static int32_t batch_norm_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, batch_norm_grad_samples, batch_norm_grad_special,
                                 BURNI_N_SPECIAL(batch_norm_grad_special));
}

const burn_op_def burn_op_def_batch_norm_grad = {
    BURNI_DEF(BATCH_NORM_GRAD, batch_norm_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradients of batch_norm: of x, gamma and beta",
    .n_in = 5,
    .n_out = 3,
    .roles = batch_norm_grad_roles,
    .attrs = norm_attrs,
    .n_attrs = N_NORM_ATTRS,
    .attrs_size = sizeof(burn_attrs_norm),
    .infer = batch_norm_grad_infer,
    .decompose = batch_norm_grad_decompose,
    .eval = batch_norm_grad_eval,
    .samples = batch_norm_grad_all_samples,
};
