/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * movement.c - cat and pad: ops that copy tensors into a larger one.
 *
 * Owns the two definitions. The views (reshape, permute, ...) are in view.c, slices in window.c.
 * Both decompose into a fill and a chain of slice_assign. To add a movement op: infer, vjp,
 * decompose into slices, eval, samples, definition.
 */
#include "ops/parts.h"

#include <string.h>

/* ---- cat ------------------------------------------------------------------------------------- */

static int32_t infer_cat(const burn_infer *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    const burn_meta *first = a->in[0];
    int64_t dims[BURN_MAX_RANK];
    if (s == NULL) {
        return burni_no_attrs("cat", a->err);
    }
    int32_t rc = burni_check_axis("cat", s->axis, first->rank, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    memcpy(dims, first->dims, sizeof(dims));
    for (uint32_t k = 1; k < a->n_in; k++) {
        const burn_meta *x = a->in[k];
        int fits = x->rank == first->rank;
        for (uint32_t i = 0; fits && i < x->rank; i++) {
            fits = (int64_t)i == s->axis || x->dims[i] == first->dims[i];
        }
        if (!fits) {
            char t0[192];
            char tk[192];
            return burni_fail(a->err, BURN_E_SHAPE,
                              "cat: input %u %s does not fit input 0 %s; all sizes but that of "
                              "axis %lld must be equal",
                              (unsigned)k, burni_shape_text(tk, sizeof(tk), x->rank, x->dims),
                              burni_shape_text(t0, sizeof(t0), first->rank, first->dims),
                              (long long)s->axis);
        }
        if (x->dtype != first->dtype) {
            return burni_fail(a->err, BURN_E_DTYPE,
                              "cat: input %u is %s, input 0 is %s; cast one of them", (unsigned)k,
                              burn_dtype_name(x->dtype), burn_dtype_name(first->dtype));
        }
        if (x->dims[s->axis] > INT64_MAX - dims[s->axis]) {
            return burni_fail(a->err, BURN_E_SHAPE, "cat: the sizes of axis %lld overflow",
                              (long long)s->axis);
        }
        dims[s->axis] += x->dims[s->axis];
    }
    return burni_set_shape("cat", &a->out[0], first->rank, dims, a->err);
}

/* Every input's slice of the gradient; inputs that want none still take their room. */
static int32_t vjp_cat(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    int64_t at = 0;
    if (a->grad_out[0] == NULL || s == NULL) {
        return BURN_OK;
    }
    for (uint32_t k = 0; k < a->n_in; k++) {
        int64_t size = a->in_meta[k].dims[s->axis];
        if (a->wanted[k]) {
            a->grad_in[k] = burn_b_slice(b, a->grad_out[0], s->axis, at, size, 1);
        }
        at += size;
    }
    return BURN_OK;
}

static int32_t decompose_cat(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    if (a->n_in == 1) {
        a->out[0] = a->in[0];
        return BURN_OK;
    }
    burn_meta meta = a->in_meta[0];
    for (uint32_t k = 1; k < a->n_in; k++) {
        meta.dims[s->axis] += a->in_meta[k].dims[s->axis];
    }
    burn_value *y = burni_b_zeros(b, &meta);
    int64_t at = 0;
    for (uint32_t k = 0; k < a->n_in; k++) {
        int64_t size = a->in_meta[k].dims[s->axis];
        if (size > 0) {
            y = burn_b_slice_assign(b, y, a->in[k], s->axis, at, 1);
        }
        at += size;
    }
    a->out[0] = y;
    return BURN_OK;
}

static int32_t eval_cat(const burn_eval *a)
{
    const burn_attrs_axis *s = (const burn_attrs_axis *)a->attrs;
    const burn_meta *out = &a->out[0].meta;
    int64_t index[BURN_MAX_RANK] = {0};
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        int64_t place[BURN_MAX_RANK];
        int64_t strides[BURN_MAX_RANK];
        uint32_t piece = 0;
        memcpy(place, index, sizeof(place));
        while (place[s->axis] >= a->in[piece].meta.dims[s->axis]) {
            place[s->axis] -= a->in[piece].meta.dims[s->axis];
            piece++;
        }
        const burn_eval_operand *x = &a->in[piece];
        burni_dense_strides(x->meta.rank, x->meta.dims, strides);
        burni_eval_move(&a->out[0], k, x, (uint64_t)burni_offset(out->rank, place, strides));
        (void)burni_next_index(out->rank, out->dims, index);
    }
    return BURN_OK;
}

typedef struct cat_sample {
    const char *name;
    int64_t axis;
    uint32_t n;
    uint32_t rank;
    int64_t dims[4][4];
    int32_t error;
} cat_sample;

static const cat_sample cat_rows[] = {
    {"rows", 0, 2, 2, {{2, 3}, {1, 3}}, 0},
    {"columns", 1, 3, 2, {{3, 1}, {3, 4}, {3, 2}}, 0},
    {"middle", 1, 4, 3, {{2, 1, 3}, {2, 2, 3}, {2, 1, 3}, {2, 5, 3}}, 0},
    {"one input", 0, 1, 1, {{5}}, 0},
    {"with empty pieces", 0, 3, 2, {{0, 3}, {2, 3}, {0, 3}}, 0},
    {"nothing but empty", 0, 2, 2, {{0, 3}, {0, 3}}, 0},
    {"empty rows", 0, 2, 2, {{1, 0}, {2, 0}}, 0},
    {"sizes differ", 0, 2, 2, {{2, 3}, {2, 4}}, BURN_E_SHAPE},
    {"no such axis", 2, 2, 2, {{2, 3}, {2, 3}}, BURN_E_INVALID},
};

static int32_t samples_cat(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(cat_rows) / sizeof(cat_rows[0])) {
        return BURN_E_END;
    }
    const cat_sample *row = &cat_rows[i];
    burn_attrs_axis attrs = {BURNI_HEAD(burn_attrs_axis), row->axis, 0, 0};
    burni_sample_begin(out, row->name, 0.0, 256.0);
    for (uint32_t k = 0; k < row->n; k++) {
        burni_sample_tensor(out, k, 0, BURN_FILL_NORMAL, row->rank, row->dims[k]);
    }
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special cat_special[] = {
    {"middle", "special values", 15, 0},
};

static int32_t cat_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_cat, cat_special,
                                 BURNI_N_SPECIAL(cat_special));
}

static const burn_role cat_roles[] = {
    /* Further operands use this row too, so each is tied to operand 0. */
    BURNI_ROLE_LIKE("x", BURN_ROLE_VARIADIC, 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

const burn_op_def burn_op_def_cat = {
    BURNI_DEF(CAT, cat),
    .flags = BURN_OP_LIGHT,
    .summary = "Tensors one after the other along an axis",
    .n_in = 1,
    .n_out = 1,
    .roles = cat_roles,
    .attrs = burni_attrs_axis_rows,
    .n_attrs = BURNI_N_ATTRS_AXIS,
    .attrs_size = (uint32_t)sizeof(burn_attrs_axis),
    .infer = infer_cat,
    .vjp = vjp_cat,
    .vjp_saves = burni_saves_nothing,
    .decompose = decompose_cat,
    .eval = eval_cat,
    .samples = cat_all_samples,
};

/* ---- pad ------------------------------------------------------------------------------------- */

static int32_t infer_pad(const burn_infer *a)
{
    const burn_attrs_pad *s = BURNI_ATTRS(a, burn_attrs_pad);
    const burn_meta *in = a->in[0];
    int64_t dims[BURN_MAX_RANK];
    if (s == NULL) {
        return burni_no_attrs("pad", a->err);
    }
    if (s->n_dims != in->rank) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "pad: amounts for %u dims, x has rank %u; give one pair for each dim",
                          (unsigned)s->n_dims, (unsigned)in->rank);
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t before = s->before[i];
        int64_t after = s->after[i];
        if (before < 0 || after < 0) {
            return burni_fail(a->err, BURN_E_INVALID,
                              "pad: dim %u has before %lld and after %lld; amounts start at 0, use "
                              "slice to cut elements off",
                              (unsigned)i, (long long)before, (long long)after);
        }
        if (before > INT64_MAX - in->dims[i] || after > INT64_MAX - in->dims[i] - before) {
            return burni_fail(a->err, BURN_E_SHAPE,
                              "pad: dim %u of %lld with %lld before and %lld after is larger than "
                              "64 bits count",
                              (unsigned)i, (long long)in->dims[i], (long long)before,
                              (long long)after);
        }
        dims[i] = before + in->dims[i] + after;
    }
    return burni_set_shape("pad", &a->out[0], in->rank, dims, a->err);
}

static int32_t vjp_pad(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_pad *s = BURNI_ATTRS(a, burn_attrs_pad);
    const burn_meta *x = &a->in_meta[0];
    if (!a->wanted[0] || a->grad_out[0] == NULL || s == NULL) {
        return BURN_OK;
    }
    burn_value *g = a->grad_out[0];
    for (uint32_t i = 0; i < x->rank; i++) {
        if (s->before[i] > 0 || s->after[i] > 0) {
            g = burn_b_slice(b, g, i, s->before[i], x->dims[i], 1);
        }
    }
    a->grad_in[0] = g;
    return BURN_OK;
}

static int32_t decompose_pad(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_pad *s = BURNI_ATTRS(a, burn_attrs_pad);
    burn_meta meta = a->in_meta[0];
    burn_value *y = a->in[0];
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    for (uint32_t i = 0; i < meta.rank; i++) {
        if (s->before[i] == 0 && s->after[i] == 0) {
            continue;
        }
        burn_attrs_shape shape;
        meta.dims[i] += s->before[i] + s->after[i];
        burn_attrs_init(&shape, (uint32_t)sizeof(shape));
        shape.n_dims = meta.rank;
        shape.dtype = meta.dtype;
        memcpy(shape.dims, meta.dims, sizeof(shape.dims));
        burn_value *frame = burn_b_emit(b, BURN_OP_FILL, &shape, &a->in[1], 1);
        y = burn_b_slice_assign(b, frame, y, i, s->before[i], 1);
    }
    a->out[0] = y;
    return BURN_OK;
}

static int32_t eval_pad(const burn_eval *a)
{
    const burn_attrs_pad *s = (const burn_attrs_pad *)a->attrs;
    const burn_meta *in = &a->in[0].meta;
    const burn_meta *out = &a->out[0].meta;
    int64_t strides[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK] = {0};
    burni_dense_strides(in->rank, in->dims, strides);
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        int64_t at = 0;
        int inside = 1;
        for (uint32_t i = 0; i < in->rank; i++) {
            int64_t place = index[i] - s->before[i];
            inside = inside && place >= 0 && place < in->dims[i];
            at += place * strides[i];
        }
        if (inside) {
            burni_eval_move(&a->out[0], k, &a->in[0], (uint64_t)at);
        } else {
            burni_eval_move(&a->out[0], k, &a->in[1], 0);
        }
        (void)burni_next_index(out->rank, out->dims, index);
    }
    return BURN_OK;
}

typedef struct pad_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_pad attrs;
    double value;
    int32_t error;
} pad_sample;

#define PAD_HEAD BURNI_HEAD(burn_attrs_pad)

static const pad_sample pad_rows[] = {
    {"both sides", 1, {5}, {PAD_HEAD, 1, 0, {2}, {3}}, 0.0, 0},
    {"one dim of two", 2, {3, 4}, {PAD_HEAD, 2, 0, {0, 1}, {0, 0}}, 7.0, 0},
    {"image", 4, {2, 1, 3, 3}, {PAD_HEAD, 4, 0, {0, 0, 1, 2}, {0, 0, 0, 1}}, 1.0, 0},
    {"nothing to do", 2, {3, 4}, {PAD_HEAD, 2, 0, {0, 0}, {0, 0}}, 1.0, 0},
    {"rank 0", 0, {0}, {PAD_HEAD, 0, 0, {0}, {0}}, 1.0, 0},
    {"of nothing", 2, {0, 2}, {PAD_HEAD, 2, 0, {1, 1}, {1, 0}}, 3.0, 0},
    {"negative amount", 1, {5}, {PAD_HEAD, 1, 0, {-1}, {0}}, 0.0, BURN_E_INVALID},
    {"rank differs", 2, {5, 2}, {PAD_HEAD, 1, 0, {1}, {0}}, 0.0, BURN_E_INVALID},
    {"overflow", 1, {5}, {PAD_HEAD, 1, 0, {INT64_MAX}, {1}}, 0.0, BURN_E_SHAPE},
};

static int32_t samples_pad(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(pad_rows) / sizeof(pad_rows[0])) {
        return BURN_E_END;
    }
    const pad_sample *row = &pad_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_immediate(out, 1, 0, row->value);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special pad_special[] = {
    {"image", "special values", 1, 0},
};

static int32_t pad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_pad, pad_special,
                                 BURNI_N_SPECIAL(pad_special));
}

static const burn_role pad_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("value", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const burn_attr pad_attrs[] = {
    BURNI_ATTR(burn_attrs_pad, n_dims, BURN_ATTR_U32, BURN_ATTR_KEY, "the tensor's rank"),
    BURNI_ATTR(burn_attrs_pad, before, BURN_ATTR_I64_LIST, BURN_ATTR_KEY,
               "elements before the first, for each dim"),
    BURNI_ATTR(burn_attrs_pad, after, BURN_ATTR_I64_LIST, BURN_ATTR_KEY,
               "elements after the last, for each dim"),
};

const burn_op_def burn_op_def_pad = {
    BURNI_DEF(PAD, pad),
    .flags = BURN_OP_LIGHT,
    .summary = "A frame of one value around a tensor",
    .n_in = 2,
    .n_out = 1,
    .roles = pad_roles,
    .attrs = pad_attrs,
    .n_attrs = 3,
    .attrs_size = (uint32_t)sizeof(burn_attrs_pad),
    .infer = infer_pad,
    .vjp = vjp_pad,
    .vjp_saves = burni_saves_nothing,
    .decompose = decompose_pad,
    .eval = eval_pad,
    .samples = pad_all_samples,
};
