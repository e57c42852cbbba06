/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv_grad.c - conv2d_grad_input and conv2d_grad_weight: conv2d's other two sides.
 *
 * The attributes are those of conv2d; `size` says the wanted height and width, since a stride that
 * drops tail elements makes several sizes possible. The tail's gradient is zero. grad_input spreads
 * g by the stride, frames it, and multiplies its windows with the turned kernel; grad_weight
 * multiplies g with the windows of x over batch and places at once.
 */
#include "ops/conv.h"

#include <string.h>

/* ---- grad_input ------------------------------------------------------------------------------ */

static int32_t resolve_input(const burn_meta *w, const burn_meta *g, const burn_attrs_conv *attrs,
                             burni_conv *d, burn_err *err)
{
    static const char op[] = "conv2d_grad_input";
    const int64_t any[4] = {-1, -1, -1, -1};
    int32_t rc = burni_conv_operand(op, "the weight", w, 4, any, err);
    if (rc == BURN_OK) {
        rc = burni_conv_operand(op, "g", g, 4, any, err);
    }
    if (rc == BURN_OK) {
        rc = burni_conv_check(op, attrs, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "size", attrs->size, 0, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    if (w->dims[1] > INT64_MAX / attrs->groups) {
        return burni_fail(err, BURN_E_SHAPE, "%s: %lld channels in each of %lld groups overflow",
                          op, (long long)w->dims[1], (long long)attrs->groups);
    }
    d->attrs = attrs;
    d->n = g->dims[0];
    d->c = w->dims[1] * attrs->groups;
    d->h = attrs->size[0];
    d->w = attrs->size[1];
    d->o = w->dims[0];
    d->kh = w->dims[2];
    d->kw = w->dims[3];
    rc = burni_conv_resolve(op, d, err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t wanted[4] = {-1, d->o, d->oh, d->ow};
    return burni_conv_operand(op, "g", g, 4, wanted, err);
}

static int32_t infer_grad_input(const burn_infer *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    if (attrs == NULL) {
        return burni_no_attrs("conv2d_grad_input", a->err);
    }
    int32_t rc = resolve_input(a->in[0], a->in[1], attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.n, d.c, d.h, d.w};
    return burni_set_shape("conv2d_grad_input", &a->out[0], 4, dims, a->err);
}

/* Both gradients again: x = grad_input(w, g) is linear in w and in g. */
static int32_t vjp_grad_input(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    const burn_meta *w = &a->in_meta[0];
    burn_value *gx = a->grad_out[0];
    if (gx == NULL || attrs == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        a->grad_in[0] =
            burni_b_conv2d_grad_weight(b, gx, a->in[1], attrs, w->dims[2], w->dims[3]);
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burni_b_conv2d(b, gx, a->in[0], NULL, attrs);
    }
    return BURN_OK;
}

/* Puts stride - 1 zeros between the elements of an axis. */
static burn_value *spread(const burn_builder *b, burn_value *g, int64_t axis, int64_t stride)
{
    burn_meta meta = burn_b_meta(b, g);
    if (stride == 1 || axis >= meta.rank || meta.dims[axis] < 2) {
        return g;
    }
    meta.dims[axis] = (meta.dims[axis] - 1) * stride + 1;
    return burn_b_slice_assign(b, burni_b_zeros(b, &meta), g, axis, 0, stride);
}

/* Along one axis: spread, then framed so that window i holds what input element i took part in. */
static burn_value *frame(const burn_builder *b, burn_value *g, const burn_attrs_conv *s, int axis,
                         int64_t size, int64_t kernel, int64_t n_windows)
{
    int64_t reach = (kernel - 1) * s->dilation[axis];
    int64_t before = reach - s->padding[axis];
    int64_t length = (n_windows - 1) * s->stride[axis] + 1;
    g = spread(b, g, axis + 2, s->stride[axis]);
    return burni_b_fit(b, g, axis + 2, before, size + reach - before - length);
}

static int32_t decompose_grad_input(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_conv *s = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    if (s == NULL || resolve_input(&a->in_meta[0], &a->in_meta[1], s, &d, &err) != 0) {
        return BURN_E_INVALID;
    }
    const int64_t result[4] = {d.n, d.c, d.h, d.w};
    if (d.h == 0 || d.w == 0) {
        a->out[0] = burn_b_fill(b, a->in_meta[0].dtype, 4, result, 0.0);
        return BURN_OK;
    }
    int64_t inner = d.og * d.kh * d.kw;
    burn_value *g = frame(b, a->in[1], s, 0, d.h, d.kh, d.oh);
    g = frame(b, g, s, 1, d.w, d.kw, d.ow);
    g = burn_b_unfold(b, g, 2, d.kh, 1, s->dilation[0]);
    g = burn_b_unfold(b, g, 3, d.kw, 1, s->dilation[1]);
    const int64_t split[7] = {d.n, s->groups, d.og, d.h, d.w, d.kh, d.kw};
    const int64_t order[7] = {0, 1, 2, 5, 6, 3, 4};
    const int64_t columns[4] = {d.n, s->groups, inner, d.h * d.w};
    g = burn_b_permute(b, burn_b_reshape(b, g, 7, split), 7, order);
    g = burn_b_reshape(b, g, 4, columns);
    const int64_t turned[2] = {2, 3};
    const int64_t parts[5] = {s->groups, d.og, d.cg, d.kh, d.kw};
    const int64_t swap[5] = {0, 2, 1, 3, 4};
    const int64_t rows[3] = {s->groups, d.cg, inner};
    burn_value *w = burn_b_flip(b, a->in[0], 2, turned);
    w = burn_b_permute(b, burn_b_reshape(b, w, 5, parts), 5, swap);
    burn_value *x = burn_b_matmul(b, burn_b_reshape(b, w, 3, rows), g);
    a->out[0] = burn_b_reshape(b, x, 4, result);
    return BURN_OK;
}

static void term_input(const burn_eval *a, const burni_conv_term *t)
{
    if (t->inside) {
        a->out[0].f[t->x] += a->in[0].f[t->w] * a->in[1].f[t->y];
    }
}

static int32_t eval_grad_input(const burn_eval *a)
{
    burni_conv d;
    int32_t rc = resolve_input(&a->in[0].meta, &a->in[1].meta, (const burn_attrs_conv *)a->attrs,
                               &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_eval_zero(&a->out[0]);
    burni_conv_walk(a, &d, term_input);
    return BURN_OK;
}

static uint64_t flops_grad_input(const burn_infer *a)
{
    const int64_t *w = a->in[0]->dims;
    int64_t n = burni_numel(a->in[1]->rank, a->in[1]->dims);
    return 2 * (uint64_t)n * (uint64_t)w[1] * (uint64_t)w[2] * (uint64_t)w[3];
}

/* ---- grad_weight ----------------------------------------------------------------------------- */

static int32_t resolve_weight(const burn_meta *x, const burn_meta *g, const burn_attrs_conv *attrs,
                              burni_conv *d, burn_err *err)
{
    static const char op[] = "conv2d_grad_weight";
    const int64_t any[4] = {-1, -1, -1, -1};
    int32_t rc = burni_conv_operand(op, "x", x, 4, any, err);
    if (rc == BURN_OK) {
        rc = burni_conv_operand(op, "g", g, 4, any, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "size", attrs->size, 1, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    d->attrs = attrs;
    d->n = x->dims[0];
    d->c = x->dims[1];
    d->h = x->dims[2];
    d->w = x->dims[3];
    d->o = g->dims[1];
    d->kh = attrs->size[0];
    d->kw = attrs->size[1];
    rc = burni_conv_resolve(op, d, err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t wanted[4] = {d->n, d->o, d->oh, d->ow};
    return burni_conv_operand(op, "g", g, 4, wanted, err);
}

static int32_t infer_grad_weight(const burn_infer *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    if (attrs == NULL) {
        return burni_no_attrs("conv2d_grad_weight", a->err);
    }
    int32_t rc = resolve_weight(a->in[0], a->in[1], attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.o, d.cg, d.kh, d.kw};
    return burni_set_shape("conv2d_grad_weight", &a->out[0], 4, dims, a->err);
}

static int32_t vjp_grad_weight(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_conv *attrs = BURNI_ATTRS(a, burn_attrs_conv);
    const burn_meta *x = &a->in_meta[0];
    burn_value *gw = a->grad_out[0];
    if (gw == NULL || attrs == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        a->grad_in[0] =
            burni_b_conv2d_grad_input(b, gw, a->in[1], attrs, x->dims[2], x->dims[3]);
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burni_b_conv2d(b, a->in[0], gw, NULL, attrs);
    }
    return BURN_OK;
}

/* g as [groups, og, n * oh * ow] times the windows as [groups, n * oh * ow, cg * kh * kw]. */
static int32_t decompose_grad_weight(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_conv *s = BURNI_ATTRS(a, burn_attrs_conv);
    burni_conv d;
    burn_err err = BURN_ERR_INIT;
    if (s == NULL || resolve_weight(&a->in_meta[0], &a->in_meta[1], s, &d, &err) != 0) {
        return BURN_E_INVALID;
    }
    int64_t places = d.n * d.oh * d.ow;
    const int64_t split[7] = {d.n, s->groups, d.cg, d.oh, d.ow, d.kh, d.kw};
    const int64_t order[7] = {1, 0, 3, 4, 2, 5, 6};
    const int64_t columns[3] = {s->groups, places, d.cg * d.kh * d.kw};
    burn_value *x = burni_conv_windows(b, a->in[0], &d);
    x = burn_b_permute(b, burn_b_reshape(b, x, 7, split), 7, order);
    x = burn_b_reshape(b, x, 3, columns);
    const int64_t parts[4] = {d.n, s->groups, d.og, d.oh * d.ow};
    const int64_t swap[4] = {1, 2, 0, 3};
    const int64_t rows[3] = {s->groups, d.og, places};
    const int64_t result[4] = {d.o, d.cg, d.kh, d.kw};
    burn_value *g = burn_b_permute(b, burn_b_reshape(b, a->in[1], 4, parts), 4, swap);
    burn_value *w = burn_b_matmul(b, burn_b_reshape(b, g, 3, rows), x);
    a->out[0] = burn_b_reshape(b, w, 4, result);
    return BURN_OK;
}

static void term_weight(const burn_eval *a, const burni_conv_term *t)
{
    double x = t->inside ? a->in[0].f[t->x] : 0.0;
    a->out[0].f[t->w] += x * a->in[1].f[t->y];
}

static int32_t eval_grad_weight(const burn_eval *a)
{
    burni_conv d;
    int32_t rc = resolve_weight(&a->in[0].meta, &a->in[1].meta, (const burn_attrs_conv *)a->attrs,
                                &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_eval_zero(&a->out[0]);
    burni_conv_walk(a, &d, term_weight);
    return BURN_OK;
}

static uint64_t flops_grad_weight(const burn_infer *a)
{
    const int64_t *w = a->out[0].dims;
    int64_t n = burni_numel(a->in[1]->rank, a->in[1]->dims);
    return 2 * (uint64_t)n * (uint64_t)w[1] * (uint64_t)w[2] * (uint64_t)w[3];
}

/* ---- samples and definitions ----------------------------------------------------------------- */

/* After the common rows: g of the wrong size, and a size that does not fit. */
static int32_t samples_grad(uint32_t i, burn_sample *out, int of_weight)
{
    static const char *const names[] = {"g of another size", "size below 0", "size too small"};
    static const int32_t errors[] = {BURN_E_SHAPE, BURN_E_INVALID, BURN_E_SHAPE};
    uint32_t wrong = i < BURNI_N_CONV_SAMPLES ? 0 : i - BURNI_N_CONV_SAMPLES + 1;
    if (wrong > 3) {
        return BURN_E_END;
    }
    const burni_conv_sample *row = &burni_conv_samples[wrong > 0 ? 0 : i];
    burni_conv d = burni_conv_of_sample(row);
    burn_attrs_conv attrs = row->attrs;
    const int64_t x[4] = {d.n, d.c, d.h, d.w};
    const int64_t w[4] = {d.o, d.cg, d.kh, d.kw};
    const int64_t g[4] = {d.n, d.o, wrong == 1 ? d.oh + 1 : d.oh, d.ow};
    attrs.size[0] = of_weight ? d.kh : d.h;
    attrs.size[1] = of_weight ? d.kw : d.w;
    if (wrong == 2) {
        attrs.size[0] = -1;
    } else if (wrong == 3) {
        attrs.size[0] = 1;
    }
    burni_sample_begin(out, wrong > 0 ? names[wrong - 1] : row->name, 128.0, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 4, of_weight ? x : w);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 4, g);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    /* An image's gradient is made with a frame of zeros or without: its weight stays finite. */
    burni_conv_sample_values(out, row, of_weight ? 0 : 1);
    if (wrong > 0) {
        burni_sample_error(out, errors[wrong - 1]);
    }
    return BURN_OK;
}

static int32_t samples_grad_input(uint32_t i, burn_sample *out)
{
    return samples_grad(i, out, 0);
}

static int32_t samples_grad_weight(uint32_t i, burn_sample *out)
{
    return samples_grad(i, out, 1);
}

static const burn_role grad_input_roles[] = {
    BURNI_ROLE("weight", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT),
};

static const burn_role grad_weight_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gweight", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t grad_saves[] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0)};

const burn_op_def burn_op_def_conv2d_grad_input = {
    BURNI_DEF(CONV2D_GRAD_INPUT, conv2d_grad_input),
    .summary = "Gradient of conv2d's input, from the weight and the output's gradient",
    .flags = BURN_OP_INTERNAL,
    .n_in = 2,
    .n_out = 1,
    .roles = grad_input_roles,
    .attrs = burni_attrs_conv_rows,
    .n_attrs = BURNI_N_ATTRS_CONV,
    .attrs_size = (uint32_t)sizeof(burn_attrs_conv),
    .infer = infer_grad_input,
    .vjp = vjp_grad_input,
    .vjp_saves = grad_saves,
    .decompose = decompose_grad_input,
    .eval = eval_grad_input,
    .samples = samples_grad_input,
    .flops = flops_grad_input,
};

const burn_op_def burn_op_def_conv2d_grad_weight = {
    BURNI_DEF(CONV2D_GRAD_WEIGHT, conv2d_grad_weight),
    .summary = "Gradient of conv2d's weight, from the input and the output's gradient",
    .flags = BURN_OP_INTERNAL,
    .n_in = 2,
    .n_out = 1,
    .roles = grad_weight_roles,
    .attrs = burni_attrs_conv_rows,
    .n_attrs = BURNI_N_ATTRS_CONV,
    .attrs_size = (uint32_t)sizeof(burn_attrs_conv),
    .infer = infer_grad_weight,
    .vjp = vjp_grad_weight,
    .vjp_saves = grad_saves,
    .decompose = decompose_grad_weight,
    .eval = eval_grad_weight,
    .samples = samples_grad_weight,
    .flops = flops_grad_weight,
};
