/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * softmax.c - softmax and log_softmax along one axis, and their gradients.
 *
 * Owns the four definitions. Rows are shifted by their maximum; a row of -inf gives NaN. The
 * gradients take the forward's output, are made by vjp only and have no vjp of their own: higher
 * orders differentiate their decompositions. To add a relative (say softmin): one more definition
 * with an eval of one lane.
 */
#include "ops/nn.h"

#include <math.h>

/* ---- shared ---- */

static const burn_attr axis_attrs[] = {
    BURNI_ATTR(burn_attrs_axis, axis, BURN_ATTR_I64, BURN_ATTR_KEY, "the axis that is normalised"),
};

static const burn_role forward_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const burn_role gradient_roles[] = {
    BURNI_ROLE("y", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t forward_saves[] = {BURN_SAVE_OUT(0)};

static int32_t infer_axis(const char *op, const burn_infer *a)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return burni_no_attrs(op, a->err);
    }
    int32_t code = burni_check_axis(op, attrs->axis, a->in[0]->rank, a->err);
    if (code != BURN_OK) {
        return code;
    }
    if (a->n_in > 1) {
        code = burni_nn_check_shape(op, "y", a->in[0], "g", a->in[1], a->err);
    }
    return code != BURN_OK ? code : burni_infer_same(a);
}

static int32_t emit_gradient(const burn_builder *b, const burn_vjp *a, uint64_t op)
{
    a->grad_in[0] = NULL;
    if (a->grad_out[0] != NULL && a->wanted[0]) {
        burn_value *in[2] = {a->out[0], a->grad_out[0]};
        a->grad_in[0] = burn_b_emit(b, op, a->attrs, in, 2);
    }
    return BURN_OK;
}

/* x as outer * n * inner around the axis. */
typedef struct lanes {
    uint64_t outer;
    uint64_t n;
    uint64_t inner;
} lanes;

static lanes split_lanes(const burn_meta *meta, int64_t axis)
{
    lanes s = {1, 1, 1};
    for (uint32_t i = 0; i < meta->rank; i++) {
        uint64_t dim = (uint64_t)meta->dims[i];
        if ((int64_t)i < axis) {
            s.outer *= dim;
        } else if ((int64_t)i == axis) {
            s.n = dim;
        } else {
            s.inner *= dim;
        }
    }
    return s;
}

/* One lane: `x` and `g` are read, `y` written, elements are `step` apart; g may be NULL. */
typedef void (*lane_fn)(const double *x, const double *g, double *y, uint64_t n, uint64_t step);

static int32_t eval_lanes(const char *op, const burn_eval *a, lane_fn lane)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return burni_no_attrs(op, a->err);
    }
    lanes s = split_lanes(&a->in[0].meta, attrs->axis);
    for (uint64_t i = 0; i < s.outer && s.n > 0; i++) {
        for (uint64_t k = 0; k < s.inner; k++) {
            uint64_t at = i * s.n * s.inner + k;
            const double *g = a->n_in > 1 ? a->in[1].f + at : NULL;
            lane(a->in[0].f + at, g, a->out[0].f + at, s.n, s.inner);
        }
    }
    return BURN_OK;
}

static double lane_max(const double *x, uint64_t n, uint64_t step)
{
    double max = x[0];
    for (uint64_t k = 1; k < n; k++) {
        if (x[k * step] > max) {
            max = x[k * step];
        }
    }
    return max;
}

/* ---- samples ---- */

typedef struct axis_sample {
    const char *name;
    uint32_t flags;
    int32_t error;
    uint32_t rank;
    int64_t dims[4];
    int64_t axis;
    uint8_t fill;
    uint32_t n_values;
    const double *values;
} axis_sample;

static const double masked_values[] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 1.0, -HUGE_VAL, 2.0};
static const double large_values[] = {1000.0, 1001.0, 999.0, -1000.0, -1001.0, 0.5};

static const axis_sample axis_samples[] = {
    {"matrix", 0, 0, 2, {3, 5}, 1, BURN_FILL_NORMAL, 0, NULL},
    {"first axis", 0, 0, 2, {7, 3}, 0, BURN_FILL_NORMAL, 0, NULL},
    {"middle axis", 0, 0, 4, {2, 3, 5, 2}, 2, BURN_FILL_NORMAL, 0, NULL},
    {"vector of 131", 0, 0, 1, {131}, 0, BURN_FILL_NORMAL, 0, NULL},
    {"one element", 0, 0, 2, {4, 1}, 1, BURN_FILL_NORMAL, 0, NULL},
    {"empty axis", 0, 0, 2, {3, 0}, 1, BURN_FILL_NORMAL, 0, NULL},
    {"no rows", 0, 0, 2, {0, 4}, 1, BURN_FILL_NORMAL, 0, NULL},
    {"large values", BURN_SAMPLE_NO_GRAD, 0, 2, {2, 3}, 1, BURN_FILL_VALUES, 6, large_values},
    {"rows with -inf", BURN_SAMPLE_NO_GRAD, 0, 2, {2, 3}, 1, BURN_FILL_VALUES, 6, masked_values},
    {"special values", BURN_SAMPLE_NO_GRAD, 0, 2, {9, 5}, 1, BURN_FILL_SPECIAL, 0, NULL},
    {"axis out of range", BURN_SAMPLE_ERROR, BURN_E_INVALID, 2, {2, 3}, 7, BURN_FILL_NORMAL, 0,
     NULL},
};

static int32_t forward_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(axis_samples) / sizeof(axis_samples[0])) {
        return BURN_E_END;
    }
    const axis_sample *s = &axis_samples[i];
    burn_attrs_axis attrs;
    burni_sample_begin(out, s->name, 32.0, 256.0);
    out->flags = s->flags;
    out->error = s->error;
    burni_sample_tensor(out, 0, 0, s->fill, s->rank, s->dims);
    out->in[0].n_values = s->n_values;
    out->in[0].values = s->values;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.axis = s->axis;
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    return BURN_OK;
}

/* The same shapes, with an output-like operand (lo..hi) and a gradient; no special values. */
static int32_t gradient_samples(uint32_t i, burn_sample *out, double lo, double hi)
{
    uint32_t skipped = i < 7 ? i : i + 3;
    int32_t code = forward_samples(skipped, out);
    if (code != BURN_OK) {
        return code;
    }
    const axis_sample *s = &axis_samples[skipped];
    burni_sample_tensor(out, 0, 0, BURN_FILL_UNIFORM, s->rank, s->dims);
    out->in[0].lo = lo;
    out->in[0].hi = hi;
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    return BURN_OK;
}

/* ---- softmax ---- */

static int32_t softmax_infer(const burn_infer *a)
{
    return infer_axis("softmax", a);
}

static int32_t softmax_vjp(const burn_builder *b, const burn_vjp *a)
{
    return emit_gradient(b, a, BURN_OP_SOFTMAX_GRAD);
}

static int32_t softmax_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    if (burni_nn_numel(&a->in_meta[0]) == 0) {
        a->out[0] = a->in[0]; /* a maximum over nothing would be an error */
        return BURN_OK;
    }
    burn_value *x = burni_nn_widen(b, a->in[0]);
    burn_value *max = burn_b_reduce1(b, BURN_OP_MAX, x, attrs->axis, 1);
    burn_value *e = burn_b_exp(b, burn_b_sub(b, x, max));
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, e, attrs->axis, 1);
    a->out[0] = burni_nn_narrow(b, burn_b_div(b, e, sum), a->in_meta[0].dtype);
    return BURN_OK;
}

static void softmax_lane(const double *x, const double *g, double *y, uint64_t n, uint64_t step)
{
    (void)g;
    double max = lane_max(x, n, step);
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += exp(x[k * step] - max);
    }
    for (uint64_t k = 0; k < n; k++) {
        y[k * step] = exp(x[k * step] - max) / sum;
    }
}

static int32_t softmax_eval(const burn_eval *a)
{
    return eval_lanes("softmax", a, softmax_lane);
}

const burn_op_def burn_op_def_softmax = {
    BURNI_DEF(SOFTMAX, softmax),
    .summary = "exp(x) / sum(exp(x)) along an axis, shifted by the maximum",
    .n_in = 1,
    .n_out = 1,
    .roles = forward_roles,
    .attrs = axis_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(burn_attrs_axis),
    .fuse = BURN_FUSE_LINES,
    .infer = softmax_infer,
    .vjp = softmax_vjp,
    .vjp_saves = forward_saves,
    .decompose = softmax_decompose,
    .eval = softmax_eval,
    .samples = forward_samples,
};

/* ---- log_softmax ---- */

static int32_t log_softmax_infer(const burn_infer *a)
{
    return infer_axis("log_softmax", a);
}

static int32_t log_softmax_vjp(const burn_builder *b, const burn_vjp *a)
{
    return emit_gradient(b, a, BURN_OP_LOG_SOFTMAX_GRAD);
}

static int32_t log_softmax_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    if (burni_nn_numel(&a->in_meta[0]) == 0) {
        a->out[0] = a->in[0];
        return BURN_OK;
    }
    burn_value *x = burni_nn_widen(b, a->in[0]);
    burn_value *max = burn_b_reduce1(b, BURN_OP_MAX, x, attrs->axis, 1);
    burn_value *shifted = burn_b_sub(b, x, max);
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, burn_b_exp(b, shifted), attrs->axis, 1);
    burn_value *y = burn_b_sub(b, shifted, burn_b_log(b, sum));
    a->out[0] = burni_nn_narrow(b, y, a->in_meta[0].dtype);
    return BURN_OK;
}

static void log_softmax_lane(const double *x, const double *g, double *y, uint64_t n,
                             uint64_t step)
{
    (void)g;
    double max = lane_max(x, n, step);
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += exp(x[k * step] - max);
    }
    for (uint64_t k = 0; k < n; k++) {
        y[k * step] = x[k * step] - max - log(sum);
    }
}

static int32_t log_softmax_eval(const burn_eval *a)
{
    return eval_lanes("log_softmax", a, log_softmax_lane);
}

const burn_op_def burn_op_def_log_softmax = {
    BURNI_DEF(LOG_SOFTMAX, log_softmax),
    .summary = "x - log(sum(exp(x))) along an axis, shifted by the maximum",
    .n_in = 1,
    .n_out = 1,
    .roles = forward_roles,
    .attrs = axis_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(burn_attrs_axis),
    .fuse = BURN_FUSE_LINES,
    .infer = log_softmax_infer,
    .vjp = log_softmax_vjp,
    .vjp_saves = forward_saves,
    .decompose = log_softmax_decompose,
    .eval = log_softmax_eval,
    .samples = forward_samples,
};

/* ---- softmax_grad: y (g - sum(y g)) ---- */

static int32_t softmax_grad_infer(const burn_infer *a)
{
    return infer_axis("softmax_grad", a);
}

static int32_t softmax_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    burn_value *y = burni_nn_widen(b, a->in[0]);
    burn_value *g = burni_nn_widen(b, a->in[1]);
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, burn_b_mul(b, y, g), attrs->axis, 1);
    burn_value *gx = burn_b_mul(b, y, burn_b_sub(b, g, sum));
    a->out[0] = burni_nn_narrow(b, gx, a->in_meta[0].dtype);
    return BURN_OK;
}

static void softmax_grad_lane(const double *y, const double *g, double *gx, uint64_t n,
                              uint64_t step)
{
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += y[k * step] * g[k * step];
    }
    for (uint64_t k = 0; k < n; k++) {
        gx[k * step] = y[k * step] * (g[k * step] - sum);
    }
}

static int32_t softmax_grad_eval(const burn_eval *a)
{
    return eval_lanes("softmax_grad", a, softmax_grad_lane);
}

static int32_t softmax_grad_samples(uint32_t i, burn_sample *out)
{
    return gradient_samples(i, out, 0.0, 1.0);
}

static const burni_special softmax_grad_special[] = {
    {"matrix", "special values", 0, 2},
    {"first axis", "special values, first axis", 0, 2},
};

static int32_t softmax_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, softmax_grad_samples, softmax_grad_special,
                                 BURNI_N_SPECIAL(softmax_grad_special));
}

const burn_op_def burn_op_def_softmax_grad = {
    BURNI_DEF(SOFTMAX_GRAD, softmax_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradient of softmax from its output and the output's gradient",
    .n_in = 2,
    .n_out = 1,
    .roles = gradient_roles,
    .attrs = axis_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(burn_attrs_axis),
    .fuse = BURN_FUSE_LINES,
    .infer = softmax_grad_infer,
    .decompose = softmax_grad_decompose,
    .eval = softmax_grad_eval,
    .samples = softmax_grad_all_samples,
};

/* ---- log_softmax_grad: g - exp(y) sum(g) ---- */

static int32_t log_softmax_grad_infer(const burn_infer *a)
{
    return infer_axis("log_softmax_grad", a);
}

static int32_t log_softmax_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *attrs = BURNI_ATTRS(a, burn_attrs_axis);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    burn_value *y = burni_nn_widen(b, a->in[0]);
    burn_value *g = burni_nn_widen(b, a->in[1]);
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, g, attrs->axis, 1);
    burn_value *gx = burn_b_sub(b, g, burn_b_mul(b, burn_b_exp(b, y), sum));
    a->out[0] = burni_nn_narrow(b, gx, a->in_meta[0].dtype);
    return BURN_OK;
}

static void log_softmax_grad_lane(const double *y, const double *g, double *gx, uint64_t n,
                                  uint64_t step)
{
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++) {
        sum += g[k * step];
    }
    for (uint64_t k = 0; k < n; k++) {
        gx[k * step] = g[k * step] - exp(y[k * step]) * sum;
    }
}

static int32_t log_softmax_grad_eval(const burn_eval *a)
{
    return eval_lanes("log_softmax_grad", a, log_softmax_grad_lane);
}

static int32_t log_softmax_grad_samples(uint32_t i, burn_sample *out)
{
    return gradient_samples(i, out, -4.0, 0.0);
}

static const burni_special log_softmax_grad_special[] = {
    {"matrix", "special values", 0, 2},
    {"first axis", "special values, first axis", 0, 2},
};

static int32_t log_softmax_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, log_softmax_grad_samples, log_softmax_grad_special,
                                 BURNI_N_SPECIAL(log_softmax_grad_special));
}

const burn_op_def burn_op_def_log_softmax_grad = {
    BURNI_DEF(LOG_SOFTMAX_GRAD, log_softmax_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradient of log_softmax from its output and the output's gradient",
    .n_in = 2,
    .n_out = 1,
    .roles = gradient_roles,
    .attrs = axis_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(burn_attrs_axis),
    .fuse = BURN_FUSE_LINES,
    .infer = log_softmax_grad_infer,
    .decompose = log_softmax_grad_decompose,
    .eval = log_softmax_grad_eval,
    .samples = log_softmax_grad_all_samples,
};
