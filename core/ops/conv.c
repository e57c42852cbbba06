/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv.c - conv2d, and what conv.h promises to the other convolution definitions.
 *
 * conv2d_grad_input and conv2d_grad_weight are in conv_grad.c, conv1d and conv_transpose2d in
 * conv_more.c. The three of conv.h are closed under differentiation: the gradient of each is made
 * of the other two, with the same attributes. Padding is a real zero, also next to a weight that
 * is not finite.
 */
#include "ops/conv.h"

#include <string.h>

const burn_attr burni_attrs_conv_rows[BURNI_N_ATTRS_CONV] = {
    BURNI_ATTR(burn_attrs_conv, stride[0], BURN_ATTR_I64, BURN_ATTR_KEY,
               "step of the windows, height"),
    BURNI_ATTR(burn_attrs_conv, stride[1], BURN_ATTR_I64, BURN_ATTR_KEY,
               "step of the windows, width"),
    BURNI_ATTR(burn_attrs_conv, padding[0], BURN_ATTR_I64, BURN_ATTR_KEY,
               "zeros on both sides, height"),
    BURNI_ATTR(burn_attrs_conv, padding[1], BURN_ATTR_I64, BURN_ATTR_KEY,
               "zeros on both sides, width"),
    BURNI_ATTR(burn_attrs_conv, dilation[0], BURN_ATTR_I64, BURN_ATTR_KEY,
               "distance of the kernel's elements, height"),
    BURNI_ATTR(burn_attrs_conv, dilation[1], BURN_ATTR_I64, BURN_ATTR_KEY,
               "distance of the kernel's elements, width"),
    BURNI_ATTR(burn_attrs_conv, groups, BURN_ATTR_I64, BURN_ATTR_KEY,
               "channels are convolved in this many separate groups"),
    BURNI_ATTR(burn_attrs_conv, output_padding[0], BURN_ATTR_I64, BURN_ATTR_KEY,
               "conv_transpose2d: added to the output's height"),
    BURNI_ATTR(burn_attrs_conv, output_padding[1], BURN_ATTR_I64, BURN_ATTR_KEY,
               "conv_transpose2d: added to the output's width"),
    BURNI_ATTR(burn_attrs_conv, size[0], BURN_ATTR_I64, BURN_ATTR_DIM,
               "gradients: height of the input or the kernel"),
    BURNI_ATTR(burn_attrs_conv, size[1], BURN_ATTR_I64, BURN_ATTR_DIM,
               "gradients: width of the input or the kernel"),
};

/* ---- sizes ----------------------------------------------------------------------------------- */

int32_t burni_conv_check(const char *op, const burn_attrs_conv *a, burn_err *err)
{
    int32_t rc = burni_check_pair(op, "stride", a->stride, 1, err);
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "padding", a->padding, 0, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "dilation", a->dilation, 1, err);
    }
    if (rc == BURN_OK && a->groups < 1) {
        rc = burni_fail(err, BURN_E_INVALID, "%s: groups is %lld, it must be at least 1", op,
                        (long long)a->groups);
    }
    return rc;
}

int32_t burni_conv_no_output_padding(const char *op, const burn_attrs_conv *a, burn_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (a->output_padding[i] != 0) {
            return burni_fail(err, BURN_E_INVALID,
                              "%s: output_padding[%d] is %lld; conv_transpose2d alone takes one, "
                              "leave it 0",
                              op, i, (long long)a->output_padding[i]);
        }
    }
    return BURN_OK;
}

/* Number of windows along one axis, or an error. */
static int32_t count_windows(const char *op, const burn_attrs_conv *a, int axis, int64_t size,
                             int64_t kernel, int64_t *out, burn_err *err)
{
    int64_t extent = burni_extent(kernel, a->dilation[axis]);
    if (extent < 0 || size > INT64_MAX / 4 || extent > size + 2 * a->padding[axis]) {
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: a kernel of %lld, dilation %lld, does not fit into %s %lld with "
                          "padding %lld on both sides; pad more or take a smaller kernel",
                          op, (long long)kernel, (long long)a->dilation[axis],
                          axis == 0 ? "height" : "width", (long long)size,
                          (long long)a->padding[axis]);
    }
    *out = (size + 2 * a->padding[axis] - extent) / a->stride[axis] + 1;
    return BURN_OK;
}

int32_t burni_conv_resolve(const char *op, burni_conv *d, burn_err *err)
{
    const burn_attrs_conv *a = d->attrs;
    int32_t rc = burni_conv_check(op, a, err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (d->c % a->groups != 0 || d->o % a->groups != 0) {
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: %lld input and %lld output channels do not divide into %lld groups",
                          op, (long long)d->c, (long long)d->o, (long long)a->groups);
    }
    d->cg = d->c / a->groups;
    d->og = d->o / a->groups;
    rc = count_windows(op, a, 0, d->h, d->kh, &d->oh, err);
    if (rc == BURN_OK) {
        rc = count_windows(op, a, 1, d->w, d->kw, &d->ow, err);
    }
    return rc;
}

int32_t burni_conv_operand(const char *op, const char *what, const burn_meta *x, uint32_t rank,
                           const int64_t *dims, burn_err *err)
{
    int fits = x->rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++) {
        fits = dims[i] < 0 || dims[i] == x->dims[i];
    }
    if (fits) {
        return BURN_OK;
    }
    char wanted[192];
    char got[192];
    if (x->rank != rank) {
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: %s is %s of rank %u, it must have rank %u; reshape it", op, what,
                          burni_shape_text(got, sizeof(got), x->rank, x->dims), x->rank, rank);
    }
    return burni_fail(err, BURN_E_SHAPE,
                      "%s: %s is %s, the other operands ask for %s (-1: any size); check channels, "
                      "groups and the order of dims",
                      op, what, burni_shape_text(got, sizeof(got), x->rank, x->dims),
                      burni_shape_text(wanted, sizeof(wanted), rank, dims));
}

int burni_conv_has_bias(uint32_t n_in, const burn_meta *bias)
{
    return n_in > 2 && bias != NULL && bias->kind != BURN_ABSENT;
}

int32_t burni_conv_check_bias(const char *op, const burn_infer *a, int64_t n)
{
    const burn_meta *bias = a->n_in > 2 ? a->in[2] : NULL;
    if (!burni_conv_has_bias(a->n_in, bias)) {
        return BURN_OK;
    }
    return burni_conv_operand(op, "the bias", bias, 1, &n, a->err);
}

static int32_t resolve_conv2d(const burn_meta *x, const burn_meta *w, const burn_attrs_conv *attrs,
                              burni_conv *d, burn_err *err)
{
    const int64_t any[4] = {-1, -1, -1, -1};
    int32_t rc = burni_conv_operand("conv2d", "x", x, 4, any, err);
    if (rc == BURN_OK) {
        rc = burni_conv_operand("conv2d", "the weight", w, 4, any, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    d->attrs = attrs;
    d->n = x->dims[0];
    d->c = x->dims[1];
    d->h = x->dims[2];
    d->w = x->dims[3];
    d->o = w->dims[0];
    d->kh = w->dims[2];
    d->kw = w->dims[3];
    rc = burni_conv_no_output_padding("conv2d", attrs, err);
    if (rc == BURN_OK) {
        rc = burni_conv_resolve("conv2d", d, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t wanted[4] = {-1, d->cg, -1, -1};
    return burni_conv_operand("conv2d", "the weight", w, 4, wanted, err);
}

/* ---- builder --------------------------------------------------------------------------------- */

burn_value *burni_conv_windows(const burn_builder *b, burn_value *x, const burni_conv *d)
{
    const burn_attrs_conv *a = d->attrs;
    if (a->padding[0] > 0 || a->padding[1] > 0) {
        const int64_t pads[4] = {0, 0, a->padding[0], a->padding[1]};
        x = burn_b_pad(b, x, pads, pads, 0.0);
    }
    x = burn_b_unfold(b, x, 2, d->kh, a->stride[0], a->dilation[0]);
    return burn_b_unfold(b, x, 3, d->kw, a->stride[1], a->dilation[1]);
}

burn_value *burni_b_conv2d(const burn_builder *b, burn_value *x, burn_value *w, burn_value *bias,
                           const burn_attrs_conv *attrs)
{
    burn_attrs_conv a = *attrs;
    burn_value *in[3] = {x, w, bias};
    memset(a.size, 0, sizeof(a.size));
    memset(a.output_padding, 0, sizeof(a.output_padding));
    return burn_b_emit(b, BURN_OP_CONV2D, &a, in, 3);
}

static burn_value *emit_sized(const burn_builder *b, uint64_t op, burn_value *first,
                              burn_value *second, const burn_attrs_conv *attrs, int64_t size0,
                              int64_t size1)
{
    burn_attrs_conv a = *attrs;
    burn_value *in[2] = {first, second};
    memset(a.output_padding, 0, sizeof(a.output_padding));
    a.size[0] = size0;
    a.size[1] = size1;
    return burn_b_emit(b, op, &a, in, 2);
}

burn_value *burni_b_conv2d_grad_input(const burn_builder *b, burn_value *w, burn_value *g,
                                      const burn_attrs_conv *attrs, int64_t h, int64_t width)
{
    return emit_sized(b, BURN_OP_CONV2D_GRAD_INPUT, w, g, attrs, h, width);
}

burn_value *burni_b_conv2d_grad_weight(const burn_builder *b, burn_value *x, burn_value *g,
                                       const burn_attrs_conv *attrs, int64_t kh, int64_t kw)
{
    return emit_sized(b, BURN_OP_CONV2D_GRAD_WEIGHT, x, g, attrs, kh, kw);
}

burn_value *burni_b_channel_sum(const burn_builder *b, burn_value *g, uint32_t rank)
{
    const int64_t axes[3] = {0, 2, 3};
    return burn_b_reduce(b, BURN_OP_SUM, g, rank - 1, axes, 0);
}

static int32_t vjp_conv2d(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    const burn_meta *x = &a->in_meta[0];
    const burn_meta *w = &a->in_meta[1];
    burn_value *g = a->grad_out[0];
    if (g == NULL || attrs == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        a->grad_in[0] = burni_b_conv2d_grad_input(b, a->in[1], g, attrs, x->dims[2], x->dims[3]);
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burni_b_conv2d_grad_weight(b, a->in[0], g, attrs, w->dims[2], w->dims[3]);
    }
    if (a->n_in > 2 && a->wanted[2]) {
        a->grad_in[2] = burni_b_channel_sum(b, g, 4);
    }
    return BURN_OK;
}

/* Windows as columns [n, groups, cg * kh * kw, oh * ow]; the weight as rows [groups, og, ..]. */
static int32_t decompose_conv2d(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    if (attrs == NULL || resolve_conv2d(&a->in_meta[0], &a->in_meta[1], attrs, &d, &err) != 0) {
        return BURN_E_INVALID;
    }
    int64_t groups = attrs->groups;
    int64_t inner = d.cg * d.kh * d.kw;
    const int64_t split[7] = {d.n, groups, d.cg, d.oh, d.ow, d.kh, d.kw};
    const int64_t order[7] = {0, 1, 2, 5, 6, 3, 4};
    const int64_t columns[4] = {d.n, groups, inner, d.oh * d.ow};
    const int64_t rows[3] = {groups, d.og, inner};
    const int64_t out[4] = {d.n, d.o, d.oh, d.ow};
    burn_value *x = burni_conv_windows(b, a->in[0], &d);
    x = burn_b_permute(b, burn_b_reshape(b, x, 7, split), 7, order);
    x = burn_b_reshape(b, x, 4, columns);
    burn_value *y = burn_b_matmul(b, burn_b_reshape(b, a->in[1], 3, rows), x);
    y = burn_b_reshape(b, y, 4, out);
    if (a->n_in > 2 && a->in[2] != NULL) {
        const int64_t channel[4] = {1, d.o, 1, 1};
        y = burn_b_add(b, y, burn_b_reshape(b, a->in[2], 4, channel));
    }
    a->out[0] = y;
    return BURN_OK;
}

/* ---- eval ------------------------------------------------------------------------------------ */

void burni_eval_zero(burn_eval_operand *out)
{
    for (uint64_t k = 0; k < out->n; k++) {
        out->f[k] = 0.0;
    }
}

/* All products of one output element. */
static void walk_window(const burn_eval *a, const burni_conv *d, const int64_t *at,
                        burni_conv_term_fn term)
{
    const burn_attrs_conv *s = d->attrs;
    int64_t group = at[1] / d->og;
    const int64_t dims[3] = {d->cg, d->kh, d->kw};
    int64_t k[3] = {0, 0, 0};
    if (burni_numel(3, dims) == 0) {
        return;
    }
    do {
        burni_conv_term t;
        int64_t h = at[2] * s->stride[0] - s->padding[0] + k[1] * s->dilation[0];
        int64_t w = at[3] * s->stride[1] - s->padding[1] + k[2] * s->dilation[1];
        t.inside = h >= 0 && h < d->h && w >= 0 && w < d->w;
        t.x = 0;
        if (t.inside) {
            t.x = (uint64_t)(((at[0] * d->c + group * d->cg + k[0]) * d->h + h) * d->w + w);
        }
        t.w = (uint64_t)(((at[1] * d->cg + k[0]) * d->kh + k[1]) * d->kw + k[2]);
        t.y = (uint64_t)(((at[0] * d->o + at[1]) * d->oh + at[2]) * d->ow + at[3]);
        term(a, &t);
    } while (burni_next_index(3, dims, k));
}

void burni_conv_walk(const burn_eval *a, const burni_conv *d, burni_conv_term_fn term)
{
    const int64_t dims[4] = {d->n, d->o, d->oh, d->ow};
    int64_t at[4] = {0, 0, 0, 0};
    if (burni_numel(4, dims) == 0) {
        return;
    }
    do {
        walk_window(a, d, at, term);
    } while (burni_next_index(4, dims, at));
}

static void term_output(const burn_eval *a, const burni_conv_term *t)
{
    double x = t->inside ? a->in[0].f[t->x] : 0.0;
    a->out[0].f[t->y] += x * a->in[1].f[t->w];
}

static int32_t eval_conv2d(const burn_eval *a)
{
    burni_conv d;
    int32_t rc = resolve_conv2d(&a->in[0].meta, &a->in[1].meta, (const burn_attrs_conv *)a->attrs,
                                &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_eval_zero(&a->out[0]);
    burni_conv_walk(a, &d, term_output);
    if (burni_conv_has_bias(a->n_in, a->n_in > 2 ? &a->in[2].meta : NULL)) {
        uint64_t plane = (uint64_t)(d.oh * d.ow);
        for (uint64_t k = 0; k < a->out[0].n; k++) {
            a->out[0].f[k] += a->in[2].f[k / plane % (uint64_t)d.o];
        }
    }
    return BURN_OK;
}

/* ---- conv2d ---------------------------------------------------------------------------------- */

static int32_t infer_conv2d(const burn_infer *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    if (attrs == NULL) {
        return burni_no_attrs("conv2d", a->err);
    }
    int32_t rc = resolve_conv2d(a->in[0], a->in[1], attrs, &d, a->err);
    if (rc == BURN_OK) {
        rc = burni_conv_check_bias("conv2d", a, d.o);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.n, d.o, d.oh, d.ow};
    return burni_set_shape("conv2d", &a->out[0], 4, dims, a->err);
}

static uint64_t flops_conv2d(const burn_infer *a)
{
    const int64_t *w = a->in[1]->dims;
    int64_t n = burni_numel(a->out[0].rank, a->out[0].dims);
    return 2 * (uint64_t)n * (uint64_t)w[1] * (uint64_t)w[2] * (uint64_t)w[3];
}

#define CONV_HEAD BURNI_HEAD(burn_attrs_conv)

/* clang-format off */
const burni_conv_sample burni_conv_samples[BURNI_N_CONV_SAMPLES] = {
    {"plain", 2, 3, 5, 7, 4, 3, 3, 1, {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"padding", 1, 2, 4, 5, 3, 3, 3, 1, {CONV_HEAD, {1, 1}, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"stride drops a tail", 1, 2, 6, 8, 2, 3, 3, 0,
     {CONV_HEAD, {2, 3}, {0, 1}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"dilation", 1, 2, 7, 8, 3, 3, 2, 1, {CONV_HEAD, {1, 2}, {2, 1}, {2, 3}, 1, {0, 0}, {0, 0}}},
    {"groups", 2, 4, 5, 5, 6, 3, 3, 1, {CONV_HEAD, {1, 1}, {1, 0}, {1, 1}, 2, {0, 0}, {0, 0}}},
    {"depthwise", 1, 3, 5, 4, 3, 3, 3, 0, {CONV_HEAD, {2, 1}, {1, 1}, {1, 1}, 3, {0, 0}, {0, 0}}},
    {"more outputs than inputs", 1, 2, 4, 4, 8, 3, 1, 0,
     {CONV_HEAD, {1, 1}, {1, 0}, {1, 1}, 2, {0, 0}, {0, 0}}},
    {"one by one", 2, 3, 3, 3, 5, 1, 1, 1, {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"one by one, long stride", 1, 1, 5, 5, 1, 1, 1, 0,
     {CONV_HEAD, {3, 2}, {1, 2}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"padding beyond the kernel", 1, 1, 1, 2, 2, 1, 1, 1,
     {CONV_HEAD, {20, 1}, {5, 3}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"even kernel", 1, 1, 1, 4, 1, 1, 4, 0, {CONV_HEAD, {1, 1}, {0, 2}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"no batch", 0, 2, 4, 4, 3, 3, 3, 1, {CONV_HEAD, {1, 1}, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"no channels", 2, 0, 3, 3, 2, 2, 2, 1, {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"non-finite", 2, 2, 6, 7, 3, 3, 3, 1 | BURNI_CONV_NONFINITE,
     {CONV_HEAD, {1, 1}, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}}},
    {"non-finite, stride", 1, 2, 7, 8, 4, 3, 2, BURNI_CONV_NONFINITE,
     {CONV_HEAD, {2, 2}, {1, 2}, {1, 1}, 2, {0, 0}, {0, 0}}},
    {"non-finite, one by one", 1, 3, 5, 5, 5, 1, 1, BURNI_CONV_NONFINITE,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}},
};

typedef struct conv_error {
    const char *name;
    uint32_t rank;
    int64_t x[5], w[4], bias;
    burn_attrs_conv attrs;
    int32_t error;
} conv_error;

static const conv_error conv_errors[] = {
    {"kernel too large", 4, {1, 1, 3, 3}, {1, 1, 5, 1}, 1,
     {CONV_HEAD, {1, 1}, {11, 0}, {7, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"channels differ", 4, {1, 3, 3, 3}, {1, 2, 1, 1}, 1,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"groups do not divide", 4, {1, 3, 3, 3}, {2, 1, 1, 1}, 2,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 5, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"output padding", 4, {1, 1, 3, 3}, {1, 1, 1, 1}, 1,
     {CONV_HEAD, {2, 2}, {0, 0}, {1, 1}, 1, {0, 1}, {0, 0}}, BURN_E_INVALID},
    {"rank 5", 5, {1, 1, 3, 3, 3}, {1, 1, 1, 1}, 1,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"bias of the wrong size", 4, {1, 1, 3, 3}, {2, 1, 1, 1}, 3,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
    {"stride 0", 4, {1, 1, 3, 3}, {1, 1, 1, 1}, 1,
     {CONV_HEAD, {1, 0}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_INVALID},
    {"negative padding", 4, {1, 1, 3, 3}, {1, 1, 1, 1}, 1,
     {CONV_HEAD, {1, 1}, {-1, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_INVALID},
    {"groups 0", 4, {1, 1, 3, 3}, {1, 1, 1, 1}, 1,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 0, {0, 0}, {0, 0}}, BURN_E_INVALID},
    {"kernel of nothing", 4, {1, 1, 3, 3}, {1, 1, 0, 1}, 1,
     {CONV_HEAD, {1, 1}, {0, 0}, {1, 1}, 1, {0, 0}, {0, 0}}, BURN_E_SHAPE},
};
/* clang-format on */

burni_conv burni_conv_of_sample(const burni_conv_sample *row)
{
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    memset(&d, 0, sizeof(d));
    d.n = row->n;
    d.c = row->c;
    d.h = row->h;
    d.w = row->w;
    d.o = row->o;
    d.kh = row->kh;
    d.kw = row->kw;
    d.attrs = &row->attrs;
    (void)burni_conv_resolve("conv2d", &d, &err);
    return d;
}

void burni_conv_sample_values(burn_sample *s, const burni_conv_sample *row, uint32_t first)
{
    for (uint32_t i = first; i < 2 && (row->flags & BURNI_CONV_NONFINITE) != 0; i++) {
        burni_sample_nonfinite(s, i);
    }
}

static int32_t samples_conv2d(uint32_t i, burn_sample *out)
{
    if (i < BURNI_N_CONV_SAMPLES) {
        const burni_conv_sample *row = &burni_conv_samples[i];
        burni_conv d = burni_conv_of_sample(row);
        const int64_t x[4] = {d.n, d.c, d.h, d.w};
        const int64_t w[4] = {d.o, d.cg, d.kh, d.kw};
        burni_sample_begin(out, row->name, 128.0, 1024.0);
        burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 4, x);
        burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 4, w);
        burni_sample_absent(out, 2);
        if (row->flags & BURNI_CONV_BIAS) {
            burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, 1, &d.o);
        }
        burni_conv_sample_values(out, row, 0);
        burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
        return BURN_OK;
    }
    i -= BURNI_N_CONV_SAMPLES;
    if (i >= sizeof(conv_errors) / sizeof(conv_errors[0])) {
        return BURN_E_END;
    }
    const conv_error *row = &conv_errors[i];
    burni_sample_begin(out, row->name, 0.0, 0.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->x);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 4, row->w);
    burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, 1, &row->bias);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    burni_sample_error(out, row->error);
    return BURN_OK;
}

static const burn_role conv_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("weight", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("bias", BURN_ROLE_OPTIONAL, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t conv_saves[] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0), 0};

const burn_op_def burn_op_def_conv2d = {
    BURNI_DEF(CONV2D, conv2d),
    .summary = "2-D cross-correlation with stride, padding, dilation and groups",
    .n_in = 3,
    .n_out = 1,
    .roles = conv_roles,
    .attrs = burni_attrs_conv_rows,
    .n_attrs = BURNI_N_ATTRS_CONV,
    .attrs_size = (uint32_t)sizeof(burn_attrs_conv),
    .fuse = BURN_FUSE_EPILOGUE_HOST,
    .infer = infer_conv2d,
    .vjp = vjp_conv2d,
    .vjp_saves = conv_saves,
    .decompose = decompose_conv2d,
    .eval = eval_conv2d,
    .samples = samples_conv2d,
    .flops = flops_conv2d,
};
