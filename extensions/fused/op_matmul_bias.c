/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_matmul_bias.c - fused.matmul_bias_relu and fused.matmul_bias_gelu: act(x w + bias).
 *
 * Owns both definitions. x [..., k] with rank 2 or more, w [k, n], bias [n]. relu's gradient is
 * taken from the result; gelu's needs the values before it, which backward computes again rather
 * than keep them. To add an activation: one more definition with its act, slope and eval.
 */
#include "fused_plugin.h"

#include <math.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

static int32_t infer(const char *op, const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    const burn_meta *w = a->in[1];
    const burn_meta *bias = a->in[2];
    char tx[64];
    char tw[64];
    if (x->rank < 2 || w->rank != 2 || x->dims[x->rank - 1] != w->dims[0]) {
        return burn_plugin_fail(a->err, BURN_E_SHAPE,
                                "%s: x %s and w %s; x needs rank 2 or more, w rank 2, and x's last "
                                "size is w's first",
                                op, burn_shape_text(tx, sizeof(tx), x),
                                burn_shape_text(tw, sizeof(tw), w));
    }
    if (bias->rank != 1 || bias->dims[0] != w->dims[1]) {
        return burn_plugin_fail(
            a->err, BURN_E_SHAPE, "%s: bias %s and w %s; the bias needs rank 1 and w's second size",
            op, burn_shape_text(tx, sizeof(tx), bias), burn_shape_text(tw, sizeof(tw), w));
    }
    burn_meta_copy_shape(&a->out[0], x);
    a->out[0].dims[x->rank - 1] = w->dims[1];
    return BURN_OK;
}

static int32_t infer_relu(const burn_infer *a)
{
    return infer("fused.matmul_bias_relu", a);
}

static int32_t infer_gelu(const burn_infer *a)
{
    if (BURN_ATTRS_OF(a, burn_attrs_gelu) == NULL) {
        return burn_plugin_fail(a->err, BURN_E_INVALID,
                                "fused.matmul_bias_gelu: its attributes are missing");
    }
    return infer("fused.matmul_bias_gelu", a);
}

static uint64_t flops(const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    uint64_t n = 2 * (uint64_t)a->in[1]->dims[1];
    for (uint32_t d = 0; d < x->rank; d++) {
        n *= (uint64_t)x->dims[d];
    }
    return n;
}

/* ---- in terms of other ops ------------------------------------------------------------------- */

static burn_value *product(const burn_builder *b, burn_value *const *in)
{
    return burn_b_add(b, burn_b_matmul(b, in[0], in[1]), in[2]);
}

static burn_value *gelu_of(const burn_builder *b, uint64_t op, const burn_attrs_gelu *attrs,
                           burn_value *x, burn_value *g)
{
    burn_value *in[2] = {x, g};
    return burn_b_emit(b, op, attrs, in, g != NULL ? 2 : 1);
}

static int32_t decompose_relu(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_relu(b, product(b, a->in));
    return BURN_OK;
}

static int32_t decompose_gelu(const burn_builder *b, const burn_expand *a)
{
    a->out[0] =
        gelu_of(b, BURN_OP_GELU, (const burn_attrs_gelu *)a->attrs, product(b, a->in), NULL);
    return BURN_OK;
}

/* [..., k] as a matrix. */
static burn_value *fold(const burn_builder *b, burn_value *x, const burn_meta *meta)
{
    int64_t dims[2] = {1, meta->dims[meta->rank - 1]};
    for (uint32_t d = 0; d + 1 < meta->rank; d++) {
        dims[0] *= meta->dims[d];
    }
    return meta->rank == 2 ? x : burn_b_reshape(b, x, 2, dims);
}

/* Gradients of x w + bias, of which `g` is the result's. */
static void vjp_product(const burn_builder *b, const burn_vjp *a, burn_value *g)
{
    burn_meta gm = a->in_meta[0];
    gm.dims[gm.rank - 1] = a->in_meta[1].dims[1];
    if (a->wanted[0]) {
        a->grad_in[0] = burn_b_matmul(b, g, burn_b_transpose(b, a->in[1], 0, 1));
    }
    if (a->wanted[1]) {
        burn_value *x = fold(b, a->in[0], &a->in_meta[0]);
        a->grad_in[1] = burn_b_matmul(b, burn_b_transpose(b, x, 0, 1), fold(b, g, &gm));
    }
    if (a->wanted[2]) {
        a->grad_in[2] = burn_b_reduce1(b, BURN_OP_SUM, fold(b, g, &gm), 0, 0);
    }
}

static int32_t vjp_relu(const burn_builder *b, const burn_vjp *a)
{
    burn_value *in[2] = {a->out[0], a->grad_out[0]};
    vjp_product(b, a, burn_b_emit(b, BURN_OP_RELU_GRAD, NULL, in, 2));
    return BURN_OK;
}

static int32_t vjp_gelu(const burn_builder *b, const burn_vjp *a)
{
    burn_value *before = product(b, a->in);
    vjp_product(
        b, a,
        gelu_of(b, BURN_OP_GELU_GRAD, (const burn_attrs_gelu *)a->attrs, before, a->grad_out[0]));
    return BURN_OK;
}

/* ---- meaning --------------------------------------------------------------------------------- */

static double relu(double x, const void *attrs)
{
    (void)attrs;
    return x < 0.0 ? 0.0 : x;
}

static double gelu(double x, const void *attrs)
{
    const burn_attrs_gelu *t = (const burn_attrs_gelu *)attrs;
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
    double curve = t->tanh_form ? tanh(root * (x + 0.044715 * x * x * x)) : erf(x * sqrt(0.5));
    return 0.5 * x * (1.0 + curve);
}

static int32_t eval(const burn_eval *a, double (*act)(double x, const void *attrs))
{
    uint64_t k = (uint64_t)a->in[1].meta.dims[0];
    uint64_t n = (uint64_t)a->in[1].meta.dims[1];
    for (uint64_t at = 0; at < a->out[0].n; at++) {
        uint64_t i = at / n;
        uint64_t j = at % n;
        double sum = a->in[2].f[j];
        for (uint64_t p = 0; p < k; p++) {
            sum += a->in[0].f[i * k + p] * a->in[1].f[p * n + j];
        }
        a->out[0].f[at] = act(sum, a->attrs);
    }
    return BURN_OK;
}

static int32_t eval_relu(const burn_eval *a)
{
    return eval(a, relu);
}

static int32_t eval_gelu(const burn_eval *a)
{
    return eval(a, gelu);
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct matmul_sample {
    const char *name;
    uint32_t rank;
    int64_t x[3];
    int64_t w[2];
    int64_t bias;
    uint32_t tanh_form;
    uint32_t flags;
    int32_t error;
} matmul_sample;

enum { SPECIAL = 1 << 16 }; /* x is special_values, w 1 and the bias 0, so that sums are exact */

/* What both activations go through, and where their exp leaves its range. */
static const double special_values[] = {
    (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0,  -0.0,  1e-40, -1e-40, 3e38, -3e38,
    1e30,        -1e30,            -65504.0,          -5.0, -10.0, -13.0, -14.5,  -60.0};
static const double ones[] = {1.0};
static const double zeros[] = {0.0};

static const matmul_sample table[] = {
    {"small", 2, {3, 5}, {5, 4}, 4, 0, 0, 0},
    {"tanh form", 2, {4, 3}, {3, 6}, 6, 1, 0, 0},
    {"one element", 2, {1, 1}, {1, 1}, 1, 0, 0, 0},
    {"batch", 3, {2, 3, 7}, {7, 5}, 5, 0, 0, 0},
    {"around a tile", 2, {15, 17}, {17, 33}, 33, 1, 0, 0},
    {"around a vector", 2, {16, 31}, {31, 65}, 65, 0, BURN_SAMPLE_NO_GRAD, 0},
    {"several blocks", 2, {37, 300}, {300, 129}, 129, 0, BURN_SAMPLE_NO_GRAD, 0},
    {"one row", 2, {1, 64}, {64, 63}, 63, 1, BURN_SAMPLE_NO_GRAD, 0},
    {"no rows", 2, {0, 5}, {5, 4}, 4, 0, 0, 0},
    {"no columns", 2, {3, 5}, {5, 0}, 0, 0, 0, 0},
    {"nothing to sum", 2, {3, 0}, {0, 4}, 4, 0, 0, 0},
    {"special values", 2, {29, 1}, {1, 1}, 1, 0, SPECIAL, 0},
    {"special values, tanh form", 2, {29, 1}, {1, 1}, 1, 1, SPECIAL, 0},
    {"inner sizes differ", 2, {3, 5}, {4, 4}, 4, 0, 0, BURN_E_SHAPE},
    {"x of rank 1", 1, {5}, {5, 4}, 4, 0, 0, BURN_E_SHAPE},
    {"bias of another size", 2, {3, 5}, {5, 4}, 3, 0, 0, BURN_E_SHAPE},
};

static int32_t samples(uint32_t i, burn_sample *out, int has_attrs)
{
    if (i >= BURN_COUNT(table)) {
        return BURN_E_END;
    }
    const matmul_sample *s = &table[i];
    /* Errors of a sum grow with its length, and of what cancels in it. */
    burn_sample_begin(out, s->name, 64.0 + 2.0 * (double)s->w[0], 4096.0);
    out->flags |= s->flags & (uint32_t)~SPECIAL;
    burn_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, s->rank, s->x);
    burn_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 2, s->w);
    burn_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, 1, &s->bias);
    if ((s->flags & SPECIAL) != 0) {
        fused_sample_values(out, 0, (uint32_t)BURN_COUNT(special_values), special_values);
        fused_sample_values(out, 1, 1, ones);
        fused_sample_values(out, 2, 1, zeros);
    }
    if (has_attrs) {
        burn_attrs_gelu a;
        burn_attrs_init(&a, (uint32_t)sizeof(a));
        a.tanh_form = s->tanh_form;
        burn_sample_attrs(out, &a, (uint32_t)sizeof(a));
    }
    if (s->error != BURN_OK) {
        burn_sample_error(out, s->error);
    }
    return BURN_OK;
}

static int32_t samples_relu(uint32_t i, burn_sample *out)
{
    return samples(i, out, 0);
}

static int32_t samples_gelu(uint32_t i, burn_sample *out)
{
    return samples(i, out, 1);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const burn_role roles[] = {
    BURN_ROLE("x", 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("w", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("bias", 0, 0, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t saves_relu[] = {
    BURN_SAVE_IN(1) | BURN_SAVE_OUT(0),
    BURN_SAVE_IN(0) | BURN_SAVE_OUT(0),
    BURN_SAVE_OUT(0),
};

#define ALL_INPUTS (BURN_SAVE_IN(0) | BURN_SAVE_IN(1) | BURN_SAVE_IN(2))
static const uint32_t saves_gelu[] = {ALL_INPUTS, ALL_INPUTS, ALL_INPUTS};

static const burn_attr gelu_attrs[] = {
    BURN_ATTR_ROW(burn_attrs_gelu, tanh_form, BURN_ATTR_BOOL, BURN_ATTR_KEY,
                  "1: the approximation by tanh"),
};

const burn_op_def fused_def_matmul_bias_relu = {
    .name = "fused.matmul_bias_relu",
    .summary = "relu(x w + bias): a product, a bias and relu in one pass",
    .n_in = 3,
    .n_out = 1,
    .roles = roles,
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_relu,
    .vjp = vjp_relu,
    .vjp_saves = saves_relu,
    .decompose = decompose_relu,
    .eval = eval_relu,
    .samples = samples_relu,
    .flops = flops,
};

const burn_op_def fused_def_matmul_bias_gelu = {
    .name = "fused.matmul_bias_gelu",
    .summary = "gelu(x w + bias): a product, a bias and gelu in one pass",
    .n_in = 3,
    .n_out = 1,
    .roles = roles,
    .attrs = gelu_attrs,
    .n_attrs = 1,
    .attrs_size = sizeof(burn_attrs_gelu),
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_gelu,
    .vjp = vjp_gelu,
    .vjp_saves = saves_gelu,
    .decompose = decompose_gelu,
    .eval = eval_gelu,
    .samples = samples_gelu,
    .flops = flops,
};
