/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_add_layer_norm.c - fused.add_layer_norm: the layer norm of a sum of two tensors.
 *
 * Owns the definition. Both summands have the same gradient, that of the sum, which backward makes
 * again from them: two tensors are kept that others keep anyway. Half floats are summed in f32.
 */
#include "fused_plugin.h"

#include <math.h>

static const char name[] = "fused.add_layer_norm";

static int32_t infer(const burn_infer *a)
{
    const burn_fused_attrs_norm *attrs = BURN_ATTRS_OF(a, burn_fused_attrs_norm);
    const burn_meta *x = a->in[0];
    if (attrs == NULL || attrs->n_axes == 0 || attrs->n_axes > x->rank || !(attrs->eps >= 0.0)) {
        return burn_plugin_fail(
            a->err, BURN_E_INVALID, "%s: n_axes %u must be 1 to x's rank %u, eps %g at least 0",
            name, attrs != NULL ? attrs->n_axes : 0, x->rank, attrs != NULL ? attrs->eps : 0.0);
    }
    int32_t code = burn_check_same_shape(name, "x", x, "y", a->in[1], a->err);
    burn_meta tail = *x;
    tail.rank = (uint8_t)attrs->n_axes;
    for (uint32_t d = 0; d < attrs->n_axes; d++) {
        tail.dims[d] = x->dims[x->rank - attrs->n_axes + d];
    }
    for (uint32_t i = 2; code == BURN_OK && i < 4; i++) {
        code = burn_check_same_shape(name, "the normalised part of x", &tail,
                                     i == 2 ? "gamma" : "beta", a->in[i], a->err);
    }
    burn_meta_copy_shape(&a->out[0], x);
    return code;
}

static burn_attrs_norm norm_attrs(const void *attrs)
{
    const burn_fused_attrs_norm *from = (const burn_fused_attrs_norm *)attrs;
    burn_attrs_norm a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.eps = from->eps;
    a.n_axes = from->n_axes;
    return a;
}

static burn_value *sum_of(const burn_builder *b, burn_value *const *in)
{
    return burn_b_add(b, fused_widen(b, in[0]), fused_widen(b, in[1]));
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    burn_attrs_norm attrs = norm_attrs(a->attrs);
    burn_value *in[3] = {sum_of(b, a->in), fused_widen(b, a->in[2]), fused_widen(b, a->in[3])};
    burn_value *y = burn_b_emit(b, BURN_OP_LAYER_NORM, &attrs, in, 3);
    a->out[0] = fused_narrow(b, y, a->in_meta[0].dtype);
    return BURN_OK;
}

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    burn_attrs_norm attrs = norm_attrs(a->attrs);
    uint8_t dtype = a->in_meta[0].dtype;
    burn_value *in[3] = {sum_of(b, a->in), fused_widen(b, a->in[2]),
                         fused_widen(b, a->grad_out[0])};
    burn_value *out[3] = {NULL, NULL, NULL};
    (void)b->emit(b->ctx, BURN_OP_LAYER_NORM_GRAD, &attrs, (uint32_t)sizeof(attrs), in, 3, out, 3);
    burn_value *gx = a->wanted[0] || a->wanted[1] ? fused_narrow(b, out[0], dtype) : NULL;
    for (uint32_t i = 0; i < 4; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = i < 2 ? gx : fused_narrow(b, out[i - 1], dtype);
        }
    }
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    const burn_fused_attrs_norm *attrs = (const burn_fused_attrs_norm *)a->attrs;
    uint64_t n = a->in[2].n;
    for (uint64_t row = 0; n > 0 && row < a->out[0].n; row += n) {
        double mean = 0.0;
        double variance = 0.0;
        for (uint64_t k = 0; k < n; k++) {
            a->out[0].f[row + k] = a->in[0].f[row + k] + a->in[1].f[row + k];
            mean += a->out[0].f[row + k] / (double)n;
        }
        for (uint64_t k = 0; k < n; k++) {
            double d = a->out[0].f[row + k] - mean;
            variance += d * d / (double)n;
        }
        for (uint64_t k = 0; k < n; k++) {
            double d = a->out[0].f[row + k] - mean;
            a->out[0].f[row + k] = d / sqrt(variance + attrs->eps) * a->in[2].f[k] + a->in[3].f[k];
        }
    }
    return BURN_OK;
}

typedef struct norm_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint32_t n_axes;
    uint32_t wrong; /* 1: y, 2: gamma has another shape */
    int32_t error;
    uint32_t far; /* 1: x is beyond what f32 can square, 2: it has NaN and an infinity */
} norm_sample;

static const norm_sample table[] = {
    {"rows", 2, {5, 7}, 1, 0, 0, 0},
    {"two axes", 4, {2, 3, 4, 5}, 2, 0, 0, 0},
    {"all axes", 2, {3, 4}, 2, 0, 0, 0},
    {"around a vector", 2, {3, 17}, 1, 0, 0, 0},
    {"several vectors", 2, {4, 129}, 1, 0, 0, 0},
    {"a long row", 2, {2, 513}, 1, 0, 0, 0},
    {"no rows", 2, {0, 4}, 1, 0, 0, 0},
    {"empty rows", 2, {3, 0}, 1, 0, 0, 0},
    {"y of another shape", 2, {3, 4}, 1, 1, BURN_E_SHAPE, 0},
    {"gamma of another shape", 2, {3, 4}, 1, 2, BURN_E_SHAPE, 0},
    {"no axes", 2, {3, 4}, 0, 0, BURN_E_INVALID, 0},
    {"squares beyond f32", 2, {3, 21}, 1, 0, 0, 1},
    {"one row with NaN, one with an infinity", 2, {3, 5}, 1, 0, 0, 2},
};

static const double far_values[] = {1e20, -1e20, 2e20, -2e20};
/* The third row is an ordinary one. */
static const double row_values[] = {1, 2, (double)NAN, 4, 5,  1, 2,    3,
                                    4, -(double)INFINITY, 7, -2, 3, 9, 1e-40};

static void give_values(burn_sample *out, const norm_sample *s)
{
    if (s->far == 1) {
        fused_sample_values(out, 0, (uint32_t)BURN_COUNT(far_values), far_values);
    } else if (s->far == 2) {
        fused_sample_values(out, 0, (uint32_t)BURN_COUNT(row_values), row_values);
    }
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    if (i >= BURN_COUNT(table)) {
        return BURN_E_END;
    }
    const norm_sample *s = &table[i];
    const int64_t *tail = s->dims + (s->rank - s->n_axes);
    const int64_t other[1] = {99};
    burn_fused_attrs_norm a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.eps = 1e-5;
    a.n_axes = s->n_axes;
    burn_sample_begin(out, s->name, 64.0, 4096.0);
    burn_sample_attrs(out, &a, (uint32_t)sizeof(a));
    burn_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    give_values(out, s);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, s->wrong == 1 ? 1 : s->rank,
                       s->wrong == 1 ? other : s->dims);
    burn_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, s->wrong == 2 ? 1 : s->n_axes,
                       s->wrong == 2 ? other : tail);
    burn_sample_tensor(out, 3, 0, BURN_FILL_NORMAL, s->n_axes, tail);
    if (s->error != BURN_OK) {
        burn_sample_error(out, s->error);
    }
    return BURN_OK;
}

static const burn_role roles[] = {
    BURN_ROLE("x", 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("gamma", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("beta", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("z", 0, 0, BURN_SET_FLOAT),
};

#define NEEDED (BURN_SAVE_IN(0) | BURN_SAVE_IN(1) | BURN_SAVE_IN(2))
static const uint32_t saves[] = {NEEDED, NEEDED, NEEDED, NEEDED};

static const burn_attr attrs_rows[] = {
    BURN_ATTR_ROW(burn_fused_attrs_norm, eps, BURN_ATTR_F64, BURN_ATTR_KEY,
                  "added to the variance"),
    BURN_ATTR_ROW(burn_fused_attrs_norm, n_axes, BURN_ATTR_U32, BURN_ATTR_KEY,
                  "how many of the last axes"),
};

const burn_op_def fused_def_add_layer_norm = {
    .name = "fused.add_layer_norm",
    .summary = "layer norm of x + y over the last axes, in one pass over memory",
    .n_in = 4,
    .n_out = 1,
    .roles = roles,
    .attrs = attrs_rows,
    .n_attrs = 2,
    .attrs_size = sizeof(burn_fused_attrs_norm),
    .infer = infer,
    .vjp = vjp,
    .vjp_saves = saves,
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
};
