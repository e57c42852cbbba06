/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_more.c - conv1d and conv_transpose2d: convolutions expressed by those of conv.h.
 *
 * conv1d is conv2d of height 1; its attributes' index 0 is the width of that. conv_transpose2d is
 * conv2d_grad_input with x as the gradient, the size (h - 1) * stride - 2 * padding + extent +
 * output_padding, and a bias. Gradients use the same three ops. To add a convolution (conv3d is
 * not one: it needs its own primitives), express it so.
 */
#include "ops/conv.h"

#include <string.h>

/* ---- conv1d ---------------------------------------------------------------------------------- */

/* Index 0 moves to the width; the height takes part in nothing. */
static burn_attrs_conv flat_attrs(const burn_attrs_conv *s)
{
    burn_attrs_conv a = *s;
    a.stride[0] = 1;
    a.padding[0] = 0;
    a.dilation[0] = 1;
    a.stride[1] = s->stride[0];
    a.padding[1] = s->padding[0];
    a.dilation[1] = s->dilation[0];
    return a;
}

/* [n, c, l] as [n, c, 1, l] */
static burn_meta flat_meta(const burn_meta *x)
{
    burn_meta meta = *x;
    meta.rank = 4;
    meta.dims[3] = x->dims[2];
    meta.dims[2] = 1;
    return meta;
}

static burn_value *flat_value(const burn_builder *b, burn_value *x, const burn_meta *x_meta)
{
    burn_meta meta = flat_meta(x_meta);
    return burni_b_reshape_to(b, x, &meta);
}

static int32_t resolve_conv1d(const burn_meta *x, const burn_meta *w, const burn_attrs_conv *flat,
                              burni_conv *d, burn_err *err)
{
    const int64_t any[3] = {-1, -1, -1};
    int32_t rc = burni_conv_operand("conv1d", "x", x, 3, any, err);
    if (rc == BURN_OK) {
        rc = burni_conv_operand("conv1d", "the weight", w, 3, any, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    memset(d, 0, sizeof(*d));
    d->attrs = flat;
    d->n = x->dims[0];
    d->c = x->dims[1];
    d->h = 1;
    d->w = x->dims[2];
    d->o = w->dims[0];
    d->kh = 1;
    d->kw = w->dims[2];
    rc = burni_conv_no_output_padding("conv1d", flat, err);
    if (rc == BURN_OK) {
        rc = burni_conv_resolve("conv1d", d, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t wanted[3] = {-1, d->cg, -1};
    return burni_conv_operand("conv1d", "the weight", w, 3, wanted, err);
}

static int32_t infer_conv1d(const burn_infer *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    if (attrs == NULL) {
        return burni_no_attrs("conv1d", a->err);
    }
    burn_attrs_conv flat = flat_attrs(attrs);
    int32_t rc = resolve_conv1d(a->in[0], a->in[1], &flat, &d, a->err);
    if (rc == BURN_OK) {
        rc = burni_conv_check_bias("conv1d", a, d.o);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[3] = {d.n, d.o, d.ow};
    return burni_set_shape("conv1d", &a->out[0], 3, dims, a->err);
}

static int32_t vjp_conv1d(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    const burn_meta *x = &a->in_meta[0];
    const burn_meta *w = &a->in_meta[1];
    if (a->grad_out[0] == NULL || attrs == NULL) {
        return BURN_OK;
    }
    burn_attrs_conv flat = flat_attrs(attrs);
    burn_meta g_meta = burn_b_meta(b, a->grad_out[0]);
    burn_value *g = flat_value(b, a->grad_out[0], &g_meta);
    if (a->wanted[0]) {
        burn_value *w4 = flat_value(b, a->in[1], w);
        burn_value *gx = burni_b_conv2d_grad_input(b, w4, g, &flat, 1, x->dims[2]);
        a->grad_in[0] = burni_b_reshape_to(b, gx, x);
    }
    if (a->wanted[1]) {
        burn_value *x4 = flat_value(b, a->in[0], x);
        burn_value *gw = burni_b_conv2d_grad_weight(b, x4, g, &flat, 1, w->dims[2]);
        a->grad_in[1] = burni_b_reshape_to(b, gw, w);
    }
    if (a->n_in > 2 && a->wanted[2]) {
        a->grad_in[2] = burni_b_channel_sum(b, a->grad_out[0], 3);
    }
    return BURN_OK;
}

static int32_t decompose_conv1d(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    burn_attrs_conv flat = flat_attrs(attrs);
    int32_t rc = resolve_conv1d(&a->in_meta[0], &a->in_meta[1], &flat, &d, &err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[3] = {d.n, d.o, d.ow};
    burn_value *x = flat_value(b, a->in[0], &a->in_meta[0]);
    burn_value *w = flat_value(b, a->in[1], &a->in_meta[1]);
    burn_value *y = burni_b_conv2d(b, x, w, a->n_in > 2 ? a->in[2] : NULL, &flat);
    a->out[0] = burn_b_reshape(b, y, 3, dims);
    return BURN_OK;
}

static int32_t eval_conv1d(const burn_eval *a)
{
    const burn_attrs_conv *s = (const burn_attrs_conv *)a->attrs;
    burn_attrs_conv flat = flat_attrs(s);
    burni_conv d;
    int32_t rc = resolve_conv1d(&a->in[0].meta, &a->in[1].meta, &flat, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int bias = burni_conv_has_bias(a->n_in, a->n_in > 2 ? &a->in[2].meta : NULL);
    for (uint64_t at = 0; at < a->out[0].n; at++) {
        int64_t place = (int64_t)at % d.ow;
        int64_t o = (int64_t)at / d.ow % d.o;
        int64_t n = (int64_t)at / d.ow / d.o;
        double sum = bias ? a->in[2].f[o] : 0.0;
        for (int64_t c = 0; c < d.cg; c++) {
            for (int64_t k = 0; k < d.kw; k++) {
                int64_t l = place * s->stride[0] - s->padding[0] + k * s->dilation[0];
                int64_t channel = o / d.og * d.cg + c;
                int inside = l >= 0 && l < d.w;
                double x = inside ? a->in[0].f[(n * d.c + channel) * d.w + l] : 0.0;
                sum += x * a->in[1].f[(o * d.cg + c) * d.kw + k];
            }
        }
        a->out[0].f[at] = sum;
    }
    return BURN_OK;
}

/* `what`: BURNI_NONFINITE, for the first n operands, an error, or 0. */
static void finish_sample(burn_sample *s, int32_t what, uint32_t n)
{
    for (uint32_t k = 0; k < n && what == BURNI_NONFINITE; k++) {
        burni_sample_nonfinite(s, k);
    }
    if (what < 0) {
        burni_sample_error(s, what);
    }
}

typedef struct conv1d_sample {
    const char *name;
    int64_t x[3], w[3];
    int64_t bias; /* 0: none */
    burn_attrs_conv attrs;
    int32_t error; /* or BURNI_NONFINITE */
} conv1d_sample;

#define CONV_HEAD BURNI_HEAD(burn_attrs_conv)

/* clang-format off */
static const conv1d_sample conv1d_rows[] = {
    {"plain", {2, 3, 7}, {4, 3, 3}, 4, {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"padding", {1, 2, 5}, {3, 2, 3}, 3, {CONV_HEAD, {1, 1}, {1, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"stride drops a tail", {1, 1, 11}, {1, 1, 4}, 0,
     {CONV_HEAD, {4, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"dilated groups", {2, 4, 9}, {6, 2, 3}, 6,
     {CONV_HEAD, {2, 1}, {3, 0}, {2, 1}, 2, {0, 0}, {0, 0}}, 0},
    {"no batch", {0, 2, 5}, {3, 2, 2}, 3,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"non-finite", {2, 3, 11}, {5, 3, 3}, 5,
     {CONV_HEAD, {1, 1}, {1, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURNI_NONFINITE},
    {"kernel too large", {1, 1, 3}, {1, 1, 4}, 0,
     {CONV_HEAD, {1, 1}, {9, 0}, {7, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"channels differ", {1, 2, 5}, {1, 1, 3}, 0,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"output padding", {1, 2, 5}, {3, 2, 3}, 3,
     {CONV_HEAD, {2, 1}, {0, 0}, {1, 1}, 1, {1, 0}, {0, 0}}, BURN_E_INVALID},
    {"long kernel", {1, 2, 48}, {3, 2, 29}, 3,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
};
/* clang-format on */

static int32_t samples_conv1d(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(conv1d_rows) / sizeof(conv1d_rows[0])) {
        return BURN_E_END;
    }
    const conv1d_sample *row = &conv1d_rows[i];
    burni_sample_begin(out, row->name, 128.0, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 3, row->x);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 3, row->w);
    burni_sample_absent(out, 2);
    if (row->bias > 0) {
        burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, 1, &row->bias);
    }
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    finish_sample(out, row->error, 2);
    return BURN_OK;
}

static const burn_role conv_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("weight", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("bias", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t conv_saves[] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0), 0};

static uint64_t flops_conv1d(const burn_infer *a)
{
    const int64_t *w = a->in[1]->dims;
    int64_t n = burni_numel(a->out[0].rank, a->out[0].dims);
    return 2 * (uint64_t)n * (uint64_t)w[1] * (uint64_t)w[2];
}

const burn_op_def burn_op_def_conv1d = {
    BURNI_DEF(CONV1D, conv1d),
    .summary = "1-D cross-correlation with stride, padding, dilation and groups",
    .n_in = 3,
    .n_out = 1,
    .roles = conv_roles,
    .attrs = burni_attrs_conv_rows,
    .n_attrs = BURNI_N_ATTRS_CONV,
    .attrs_size = (uint32_t)sizeof(burn_attrs_conv),
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_conv1d,
    .vjp = vjp_conv1d,
    .vjp_saves = conv_saves,
    .decompose = decompose_conv1d,
    .eval = eval_conv1d,
    .samples = samples_conv1d,
    .flops = flops_conv1d,
};

/* ---- conv_transpose2d ------------------------------------------------------------------------ */

static int32_t transposed_size(const burn_attrs_conv *s, int axis, int64_t in, int64_t kernel,
                               int64_t *out, burn_err *err)
{
    const char *name = axis == 0 ? "height" : "width";
    int64_t extent = burni_extent(kernel, s->dilation[axis]);
    if (in < 1 || extent < 0 || extent > INT64_MAX / 4 || in > INT32_MAX) {
        return burni_fail(err, BURN_E_SHAPE,
                          "conv_transpose2d: %s %lld with a kernel of %lld; both must be at least "
                          "1 and below 2^31",
                          name, (long long)in, (long long)kernel);
    }
    if (s->output_padding[axis] >= s->stride[axis]) {
        return burni_fail(err, BURN_E_INVALID,
                          "conv_transpose2d: output_padding[%d] is %lld, it must be less than the "
                          "stride, %lld",
                          axis, (long long)s->output_padding[axis], (long long)s->stride[axis]);
    }
    *out = (in - 1) * s->stride[axis] - 2 * s->padding[axis] + extent + s->output_padding[axis];
    if (*out < 1) {
        return burni_fail(err, BURN_E_SHAPE,
                          "conv_transpose2d: %s %lld gives %lld; padding %lld is too large", name,
                          (long long)in, (long long)*out, (long long)s->padding[axis]);
    }
    return BURN_OK;
}

/* Sizes of the conv2d whose input gradient this is: its x is our output, its y our input. */
static int32_t resolve_transpose(const burn_meta *x, const burn_meta *w,
                                 const burn_attrs_conv *attrs, burni_conv *d, burn_err *err)
{
    static const char op[] = "conv_transpose2d";
    const int64_t any[4] = {-1, -1, -1, -1};
    int32_t rc = burni_conv_operand(op, "x", x, 4, any, err);
    if (rc == BURN_OK) {
        const int64_t wanted[4] = {x->dims[1], -1, -1, -1};
        rc = burni_conv_operand(op, "the weight", w, 4, wanted, err);
    }
    if (rc == BURN_OK) {
        rc = burni_conv_check(op, attrs, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "output_padding", attrs->output_padding, 0, err);
    }
    if (rc == BURN_OK) {
        rc = transposed_size(attrs, 0, x->dims[2], w->dims[2], &d->h, err);
    }
    if (rc == BURN_OK) {
        rc = transposed_size(attrs, 1, x->dims[3], w->dims[3], &d->w, err);
    }
    if (rc == BURN_OK && w->dims[1] > INT64_MAX / attrs->groups) {
        rc = burni_fail(err, BURN_E_SHAPE, "%s: %lld channels in each of %lld groups overflow", op,
                        (long long)w->dims[1], (long long)attrs->groups);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    d->attrs = attrs;
    d->n = x->dims[0];
    d->c = w->dims[1] * attrs->groups;
    d->o = x->dims[1];
    d->kh = w->dims[2];
    d->kw = w->dims[3];
    return burni_conv_resolve(op, d, err);
}

static int32_t infer_transpose(const burn_infer *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    if (attrs == NULL) {
        return burni_no_attrs("conv_transpose2d", a->err);
    }
    int32_t rc = resolve_transpose(a->in[0], a->in[1], attrs, &d, a->err);
    if (rc == BURN_OK) {
        rc = burni_conv_check_bias("conv_transpose2d", a, d.c);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.n, d.c, d.h, d.w};
    return burni_set_shape("conv_transpose2d", &a->out[0], 4, dims, a->err);
}

static int32_t vjp_transpose(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    const burn_meta *w = &a->in_meta[1];
    burn_value *g = a->grad_out[0];
    if (g == NULL || attrs == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        a->grad_in[0] = burni_b_conv2d(b, g, a->in[1], NULL, attrs);
    }
    if (a->wanted[1]) {
        a->grad_in[1] =
            burni_b_conv2d_grad_weight(b, g, a->in[0], attrs, w->dims[2], w->dims[3]);
    }
    if (a->n_in > 2 && a->wanted[2]) {
        a->grad_in[2] = burni_b_channel_sum(b, g, 4);
    }
    return BURN_OK;
}

static int32_t decompose_transpose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    if (attrs == NULL || resolve_transpose(&a->in_meta[0], &a->in_meta[1], attrs, &d, &err) != 0) {
        return BURN_E_INVALID;
    }
    burn_value *y = burni_b_conv2d_grad_input(b, a->in[1], a->in[0], attrs, d.h, d.w);
    if (a->n_in > 2 && a->in[2] != NULL) {
        const int64_t channel[4] = {1, d.c, 1, 1};
        y = burn_b_add(b, y, burn_b_reshape(b, a->in[2], 4, channel));
    }
    a->out[0] = y;
    return BURN_OK;
}

static void term_transpose(const burn_eval *a, const burni_conv_term *t)
{
    if (t->inside) {
        a->out[0].f[t->x] += a->in[0].f[t->y] * a->in[1].f[t->w];
    }
}

static int32_t eval_transpose(const burn_eval *a)
{
    burni_conv d;
    int32_t rc = resolve_transpose(&a->in[0].meta, &a->in[1].meta,
                                   (const burn_attrs_conv *)a->attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_eval_zero(&a->out[0]);
    burni_conv_walk(a, &d, term_transpose);
    if (burni_conv_has_bias(a->n_in, a->n_in > 2 ? &a->in[2].meta : NULL)) {
        uint64_t plane = (uint64_t)(d.h * d.w);
        for (uint64_t k = 0; k < a->out[0].n; k++) {
            a->out[0].f[k] += a->in[2].f[k / plane % (uint64_t)d.c];
        }
    }
    return BURN_OK;
}

typedef struct transpose_sample {
    const char *name;
    int64_t x[4], w[4];
    int64_t bias; /* 0: none */
    burn_attrs_conv attrs;
    int32_t error; /* or BURNI_NONFINITE */
} transpose_sample;

/* clang-format off */
static const transpose_sample transpose_rows[] = {
    {"plain", {2, 3, 3, 4}, {3, 2, 3, 3}, 2,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"stride and padding", {1, 2, 4, 3}, {2, 3, 3, 3}, 3,
     {CONV_HEAD, {2, 2}, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"output padding", {1, 2, 3, 3}, {2, 1, 3, 3}, 0,
     {CONV_HEAD, {2, 3}, {1, 0}, {1, 1}, 1, {1, 2}, {0, 0}}, 0},
    {"dilation", {1, 1, 5, 4}, {1, 2, 3, 2}, 2,
     {CONV_HEAD, {2, 1}, {4, 1}, {3, 2}, 1, {0, 0}, {0, 0}}, 0},
    {"groups", {2, 4, 3, 3}, {4, 3, 2, 2}, 6,
     {CONV_HEAD, {1, 2}, {0, 1}, {1, 1}, 2, {0, 1}, {0, 0}}, 0},
    {"one by one", {1, 2, 2, 2}, {2, 2, 1, 1}, 2,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"no batch", {0, 2, 3, 3}, {2, 1, 2, 2}, 1,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, 0},
    {"non-finite", {1, 2, 6, 7}, {2, 3, 3, 3}, 3,
     {CONV_HEAD, {1, 1}, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}}, BURNI_NONFINITE},
    {"non-finite, stride", {1, 2, 4, 5}, {2, 3, 2, 3}, 0,
     {CONV_HEAD, {2, 2}, {0, 1}, {1, 1}, 1, {1, 0}, {0, 0}}, BURNI_NONFINITE},
    {"output padding of the stride", {1, 1, 3, 3}, {1, 1, 2, 2}, 0,
     {CONV_HEAD, {5, 2}, {0, 0}, {1, 1}, 1, {7, 0}, {0, 0}}, BURN_E_INVALID},
    {"nothing is left", {1, 1, 1, 1}, {1, 1, 1, 1}, 0,
     {CONV_HEAD, {1, 1}, {9, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"channels differ", {1, 2, 3, 3}, {3, 1, 1, 1}, 0,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
};
/* clang-format on */

static int32_t samples_transpose(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(transpose_rows) / sizeof(transpose_rows[0])) {
        return BURN_E_END;
    }
    const transpose_sample *row = &transpose_rows[i];
    burni_sample_begin(out, row->name, 128.0, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 4, row->x);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 4, row->w);
    burni_sample_absent(out, 2);
    if (row->bias > 0) {
        burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, 1, &row->bias);
    }
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    finish_sample(out, row->error, 1); /* with a frame of zeros or without */
    return BURN_OK;
}

/* Each element of x takes part in a window of the result. */
static uint64_t flops_transpose(const burn_infer *a)
{
    const int64_t *w = a->in[1]->dims;
    int64_t n = burni_numel(a->in[0]->rank, a->in[0]->dims);
    return 2 * (uint64_t)n * (uint64_t)w[1] * (uint64_t)w[2] * (uint64_t)w[3];
}

const burn_op_def burn_op_def_conv_transpose2d = {
    BURNI_DEF(CONV_TRANSPOSE2D, conv_transpose2d),
    .summary = "Transposed 2-D convolution: conv2d's input gradient as an op of its own",
    .n_in = 3,
    .n_out = 1,
    .roles = conv_roles,
    .attrs = burni_attrs_conv_rows,
    .n_attrs = BURNI_N_ATTRS_CONV,
    .attrs_size = (uint32_t)sizeof(burn_attrs_conv),
    .infer = infer_transpose,
    .vjp = vjp_transpose,
    .vjp_saves = conv_saves,
    .decompose = decompose_transpose,
    .eval = eval_transpose,
    .samples = samples_transpose,
    .flops = flops_transpose,
};
