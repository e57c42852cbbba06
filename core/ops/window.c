/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * window.c - slice, slice_assign and unfold: parts of a tensor along one axis.
 *
 * slice and unfold are views (see view.c); slice_assign is the primitive that writes what slice
 * shows, and the gradient of slice. Where a slice starts is an operand, since it may differ between
 * two runs of one program; so its bounds are checked by `view` and by kernels, not by `infer`.
 * Public functions clamp bounds before they get here.
 */
#include "ops/parts.h"

#include <string.h>

/* ---- slice and slice_assign: shared ---------------------------------------------------------- */

/* With a step that can't fit whatever the start is, kernels need not fear overflow in theirs. */
static int32_t check_slice(const char *op, const burn_attrs_slice *s, const burn_meta *x,
                           burn_err *err)
{
    int32_t rc = burni_check_axis(op, s->axis, x->rank, err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (s->size < 0) {
        return burni_fail(err, BURN_E_SHAPE, "%s: size is %lld, sizes start at 0", op,
                          (long long)s->size);
    }
    if (s->step == 0) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: step is 0; use a positive step, or a negative one to go backwards",
                          op);
    }
    int64_t dim = x->dims[s->axis];
    uint64_t step = s->step > 0 ? (uint64_t)s->step : 0 - (uint64_t)s->step;
    int too_far = s->size > 1 && s->size <= dim &&
                  step > (uint64_t)(dim - 1) / (uint64_t)(s->size - 1);
    if (too_far) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: %lld elements with step %lld do not fit axis %lld, which has size "
                          "%lld; shorten the slice or the step",
                          op, (long long)s->size, (long long)s->step, (long long)s->axis,
                          (long long)dim);
    }
    return BURN_OK;
}

/* Do start and start + (size - 1) * step lie within the axis? An empty slice lies anywhere. */
static int32_t check_start(const char *op, const burn_attrs_slice *s, int64_t start, int64_t dim,
                           burn_err *err)
{
    if (s->size == 0) {
        return BURN_OK;
    }
    int inside = start >= 0 && start < dim;
    if (inside && s->size > 1) {
        int64_t room = s->step > 0 ? dim - 1 - start : start;
        uint64_t step = s->step > 0 ? (uint64_t)s->step : 0 - (uint64_t)s->step;
        inside = (uint64_t)(s->size - 1) <= (uint64_t)room / step;
    }
    if (inside) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_INVALID,
                      "%s: %lld elements from %lld with step %lld leave axis %lld, which has size "
                      "%lld; shorten the slice or move its start",
                      op, (long long)s->size, (long long)start, (long long)s->step,
                      (long long)s->axis, (long long)dim);
}

static const burn_attr slice_attrs[] = {
    BURNI_ATTR(burn_attrs_slice, axis, BURN_ATTR_I64, BURN_ATTR_KEY, "axis, 0 <= axis < rank"),
    BURNI_ATTR(burn_attrs_slice, size, BURN_ATTR_I64, BURN_ATTR_DIM, "number of elements"),
    BURNI_ATTR(burn_attrs_slice, step, BURN_ATTR_I64, BURN_ATTR_KEY,
               "distance of neighbours, negative to go backwards, not 0"),
};

typedef struct slice_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_slice attrs;
    int64_t start;
    int32_t error;
} slice_sample;

#define SLICE_HEAD BURNI_HEAD(burn_attrs_slice)

static const slice_sample slice_rows[] = {
    {"middle", 1, {9}, {SLICE_HEAD, 0, 4, 1}, 3, 0},
    {"inner axis", 2, {3, 7}, {SLICE_HEAD, 1, 5, 1}, 1, 0},
    {"outer axis", 3, {5, 2, 3}, {SLICE_HEAD, 0, 2, 1}, 3, 0},
    {"step 2", 2, {3, 7}, {SLICE_HEAD, 1, 3, 2}, 1, 0},
    {"step 3 to the last", 1, {10}, {SLICE_HEAD, 0, 4, 3}, 0, 0},
    {"backwards", 1, {6}, {SLICE_HEAD, 0, 6, -1}, 5, 0},
    {"backwards by 2", 2, {7, 2}, {SLICE_HEAD, 0, 3, -2}, 6, 0},
    {"one element, long step", 2, {4, 3}, {SLICE_HEAD, 0, 1, -1000}, 3, 0},
    {"all", 2, {3, 5}, {SLICE_HEAD, 1, 5, 1}, 0, 0},
    {"nothing", 2, {3, 5}, {SLICE_HEAD, 1, 0, 1}, 5, 0},
    {"of nothing", 2, {0, 5}, {SLICE_HEAD, 0, 0, 1}, 0, 0},
    {"rows of nothing", 2, {4, 0}, {SLICE_HEAD, 0, 2, 1}, 1, 0},
    {"past the end", 1, {11}, {SLICE_HEAD, 0, 8, 1}, 6, BURN_E_INVALID},
    {"before the start", 1, {5}, {SLICE_HEAD, 0, 2, 1}, -1, BURN_E_INVALID},
    {"backwards past the start", 1, {11}, {SLICE_HEAD, 0, 8, -7}, 3, BURN_E_INVALID},
    {"step 0", 1, {5}, {SLICE_HEAD, 0, 3, 0}, 0, BURN_E_INVALID},
    {"negative size", 1, {5}, {SLICE_HEAD, 0, -1, 1}, 0, BURN_E_SHAPE},
    {"no such axis", 2, {5, 2}, {SLICE_HEAD, 2, 1, 1}, 0, BURN_E_INVALID},
    /* As large as "past the end": where that shows at the read, the start is what is told. */
    {"eight of eleven", 1, {11}, {SLICE_HEAD, 0, 8, 1}, 2, 0},
};

static const slice_sample *begin_slice_sample(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(slice_rows) / sizeof(slice_rows[0])) {
        return NULL;
    }
    const slice_sample *row = &slice_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return row;
}

/* ---- slice ----------------------------------------------------------------------------------- */

static int32_t infer_slice(const burn_infer *a)
{
    const burn_attrs_slice *s = BURNI_ATTRS(a, burn_attrs_slice);
    const burn_meta *in = a->in[0];
    if (s == NULL) {
        return burni_no_attrs("slice", a->err);
    }
    int32_t rc = check_slice("slice", s, in, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (s->size > in->dims[s->axis]) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "slice: %lld elements wanted of axis %lld, which has size %lld",
                          (long long)s->size, (long long)s->axis, (long long)in->dims[s->axis]);
    }
    int64_t dims[BURN_MAX_RANK];
    memcpy(dims, in->dims, sizeof(dims));
    dims[s->axis] = s->size;
    return burni_set_shape("slice", &a->out[0], in->rank, dims, a->err);
}

static int32_t view_slice(const burn_view *a)
{
    const burn_attrs_slice *s = (const burn_attrs_slice *)a->attrs;
    int64_t start = a->immediates[0];
    int32_t rc = check_start("slice", s, start, a->in->dims[s->axis], a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    memcpy(a->out_strides, a->in_strides, a->in->rank * sizeof(int64_t));
    *a->out_offset = a->in_offset;
    if (s->size > 1) {
        a->out_strides[s->axis] = a->in_strides[s->axis] * s->step;
    }
    if (burni_numel(a->out->rank, a->out->dims) > 0) {
        *a->out_offset += start * a->in_strides[s->axis];
    }
    return BURN_OK;
}

static void source_slice(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_attrs_slice *s = (const burn_attrs_slice *)a->attrs;
    int64_t start = burni_eval_get_int(&a->in[1], 0);
    memcpy(in_index, out_index, a->out[0].meta.rank * sizeof(int64_t));
    in_index[s->axis] = out_index[s->axis] == 0 ? start : start + out_index[s->axis] * s->step;
}

static int32_t eval_slice(const burn_eval *a)
{
    const burn_attrs_slice *s = (const burn_attrs_slice *)a->attrs;
    int32_t rc = check_start("slice", s, burni_eval_get_int(&a->in[1], 0),
                             a->in[0].meta.dims[s->axis], a->err);
    return rc != BURN_OK ? rc : burni_eval_by_source(a, source_slice);
}

/* Zeros of that shape that take no memory: slice_assign reads them and writes a new tensor. */
static burn_value *zero_view(const burn_builder *b, const burn_meta *like)
{
    static const int64_t one[1] = {1};
    burn_value *zero = burn_b_fill(b, like->dtype, 1, one, 0.0);
    return burn_b_expand(b, zero, like->rank, like->dims);
}

static int32_t vjp_slice(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_slice *s = BURNI_ATTRS(a, burn_attrs_slice);
    if (a->wanted[0] && a->grad_out[0] != NULL && s != NULL) {
        burn_value *zeros = zero_view(b, &a->in_meta[0]);
        a->grad_in[0] =
            burni_b_slice_assign_at(b, zeros, a->grad_out[0], a->in[1], s->axis, s->step);
    }
    return BURN_OK;
}

static int32_t samples_slice(uint32_t i, burn_sample *out)
{
    const slice_sample *row = begin_slice_sample(i, out);
    if (row == NULL) {
        return BURN_E_END;
    }
    burni_sample_immediate(out, 1, BURN_I64, (double)row->start);
    return BURN_OK;
}

static const burni_special slice_special[] = {
    {"step 2", "special values", 1, 0},
};

static int32_t slice_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_slice, slice_special,
                                 BURNI_N_SPECIAL(slice_special));
}

static const burn_role slice_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE("start", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(I64)),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const uint32_t slice_saves[] = {BURN_SAVE_IN(1), 0};

const burn_op_def burn_op_def_slice = {
    BURNI_DEF(SLICE, slice),
    .summary = "Elements start + k * step along one axis, k < size",
    .flags = BURN_OP_PRIMITIVE,
    .n_in = 2,
    .n_out = 1,
    .roles = slice_roles,
    .attrs = slice_attrs,
    .n_attrs = 3,
    .attrs_size = (uint32_t)sizeof(burn_attrs_slice),
    .fuse = BURN_FUSE_VIEW,
    .infer = infer_slice,
    .view = view_slice,
    .vjp = vjp_slice,
    .vjp_saves = slice_saves,
    .eval = eval_slice,
    .samples = slice_all_samples,
};

/* ---- slice_assign ---------------------------------------------------------------------------- */

static int32_t infer_slice_assign(const burn_infer *a)
{
    const burn_attrs_slice *s = BURNI_ATTRS(a, burn_attrs_slice);
    const burn_meta *x = a->in[0];
    const burn_meta *y = a->in[1];
    if (s == NULL) {
        return burni_no_attrs("slice_assign", a->err);
    }
    int32_t rc = check_slice("slice_assign", s, x, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int fits = y->rank == x->rank && s->size <= x->dims[s->axis];
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = y->dims[i] == ((int64_t)i == s->axis ? s->size : x->dims[i]);
    }
    if (!fits) {
        char tx[192];
        char ty[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "slice_assign: y %s does not fill %lld elements of axis %lld of x %s; "
                          "all other sizes must be equal",
                          burni_shape_text(ty, sizeof(ty), y->rank, y->dims), (long long)s->size,
                          (long long)s->axis, burni_shape_text(tx, sizeof(tx), x->rank, x->dims));
    }
    return burni_infer_same(a);
}

static int32_t eval_slice_assign(const burn_eval *a)
{
    const burn_attrs_slice *s = (const burn_attrs_slice *)a->attrs;
    const burn_meta *x = &a->in[0].meta;
    const burn_meta *y = &a->in[1].meta;
    int64_t start = burni_eval_get_int(&a->in[2], 0);
    int64_t strides[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK] = {0};
    int32_t rc = check_start("slice_assign", s, start, x->dims[s->axis], a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, &a->in[0], k);
    }
    burni_dense_strides(x->rank, x->dims, strides);
    for (uint64_t k = 0; k < a->in[1].n; k++) {
        int64_t at = burni_offset(x->rank, index, strides);
        int64_t place = index[s->axis] == 0 ? start : start + index[s->axis] * s->step;
        at += (place - index[s->axis]) * strides[s->axis];
        burni_eval_move(&a->out[0], (uint64_t)at, &a->in[1], k);
        (void)burni_next_index(y->rank, y->dims, index);
    }
    return BURN_OK;
}

static int32_t vjp_slice_assign(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_slice *s = BURNI_ATTRS(a, burn_attrs_slice);
    burn_value *g = a->grad_out[0];
    if (g == NULL || s == NULL) {
        return BURN_OK;
    }
    if (a->wanted[0]) {
        burn_value *zeros = burni_b_zeros(b, &a->in_meta[1]);
        a->grad_in[0] = burni_b_slice_assign_at(b, g, zeros, a->in[2], s->axis, s->step);
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burni_b_slice_at(b, g, a->in[2], s->axis, s->size, s->step);
    }
    return BURN_OK;
}

static int32_t samples_slice_assign(uint32_t i, burn_sample *out)
{
    const slice_sample *row = begin_slice_sample(i, out);
    int64_t dims[BURN_MAX_RANK];
    if (row == NULL) {
        return BURN_E_END;
    }
    memcpy(dims, row->dims, sizeof(dims));
    if (row->attrs.axis < (int64_t)row->rank) {
        dims[row->attrs.axis] = row->attrs.size < 0 ? 0 : row->attrs.size;
    }
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, row->rank, dims);
    burni_sample_immediate(out, 2, BURN_I64, (double)row->start);
    return BURN_OK;
}

static const burni_special slice_assign_special[] = {
    {"step 2", "special values", 3, 0},
};

static int32_t slice_assign_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_slice_assign, slice_assign_special,
                                 BURNI_N_SPECIAL(slice_assign_special));
}

static const burn_role slice_assign_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
    BURNI_ROLE("start", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(I64)),
    BURNI_ROLE_LIKE("z", 0, 0, BURN_SET_ANY),
};

static const uint32_t slice_assign_saves[] = {BURN_SAVE_IN(2), BURN_SAVE_IN(2), 0};

const burn_op_def burn_op_def_slice_assign = {
    BURNI_DEF(SLICE_ASSIGN, slice_assign),
    .summary = "A copy of x in which the elements that slice shows are those of y",
    .flags = BURN_OP_PRIMITIVE | BURN_OP_MINIMAL,
    .n_in = 3,
    .n_out = 1,
    .roles = slice_assign_roles,
    .attrs = slice_attrs,
    .n_attrs = 3,
    .attrs_size = (uint32_t)sizeof(burn_attrs_slice),
    .infer = infer_slice_assign,
    .vjp = vjp_slice_assign,
    .vjp_saves = slice_assign_saves,
    .eval = eval_slice_assign,
    .samples = slice_assign_all_samples,
};

/* ---- unfold ---------------------------------------------------------------------------------- */

static int32_t infer_unfold(const burn_infer *a)
{
    const burn_attrs_unfold *s = BURNI_ATTRS(a, burn_attrs_unfold);
    const burn_meta *in = a->in[0];
    if (s == NULL) {
        return burni_no_attrs("unfold", a->err);
    }
    int32_t rc = burni_check_axis("unfold", s->axis, in->rank, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (s->size < 1 || s->step < 1 || s->dilation < 1) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "unfold: size %lld, step %lld, dilation %lld: each must be at least 1",
                          (long long)s->size, (long long)s->step, (long long)s->dilation);
    }
    int64_t dim = in->dims[s->axis];
    int64_t extent = burni_extent(s->size, s->dilation);
    if (extent < 0 || extent > dim) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "unfold: a window of %lld elements, %lld apart, does not fit into axis "
                          "%lld of size %lld; pad the axis or take a smaller window",
                          (long long)s->size, (long long)s->dilation, (long long)s->axis,
                          (long long)dim);
    }
    if (in->rank == BURN_MAX_RANK) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "unfold: x has rank %d already, the windows' axis would be one too many",
                          BURN_MAX_RANK);
    }
    int64_t dims[BURN_MAX_RANK];
    memcpy(dims, in->dims, sizeof(dims));
    dims[s->axis] = (dim - extent) / s->step + 1;
    dims[in->rank] = s->size;
    return burni_set_shape("unfold", &a->out[0], (uint32_t)in->rank + 1, dims, a->err);
}

static int32_t view_unfold(const burn_view *a)
{
    const burn_attrs_unfold *s = (const burn_attrs_unfold *)a->attrs;
    uint32_t rank = a->in->rank;
    memcpy(a->out_strides, a->in_strides, rank * sizeof(int64_t));
    *a->out_offset = a->in_offset;
    a->out_strides[rank] = a->out->dims[rank] == 1 ? 1 : a->in_strides[s->axis] * s->dilation;
    if (a->out->dims[s->axis] != 1) {
        a->out_strides[s->axis] = a->in_strides[s->axis] * s->step;
    }
    return BURN_OK;
}

static void source_unfold(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_attrs_unfold *s = (const burn_attrs_unfold *)a->attrs;
    uint32_t rank = a->in[0].meta.rank;
    int64_t window = out_index[s->axis];
    int64_t k = out_index[rank];
    memcpy(in_index, out_index, rank * sizeof(int64_t));
    in_index[s->axis] = (window == 0 ? 0 : window * s->step) + (k == 0 ? 0 : k * s->dilation);
}

static int32_t eval_unfold(const burn_eval *a)
{
    return burni_eval_by_source(a, source_unfold);
}

/*
 * Windows may overlap, so their gradients add. Within one place k of the window no two elements
 * meet: so k by k, the elements that belong to place k are read, added to and written back. Windows
 * that lie apart need no addition.
 */
static int32_t vjp_unfold(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_unfold *s = BURNI_ATTRS(a, burn_attrs_unfold);
    const burn_meta *x = &a->in_meta[0];
    if (!a->wanted[0] || a->grad_out[0] == NULL || s == NULL) {
        return BURN_OK;
    }
    burn_meta one = *x;
    int64_t extent = burni_extent(s->size, s->dilation);
    int64_t windows = (x->dims[s->axis] - extent) / s->step + 1;
    one.dims[s->axis] = windows;
    burn_value *sum = burni_b_zeros(b, x);
    for (int64_t k = 0; k < s->size; k++) {
        int64_t start = k * s->dilation;
        burn_value *g = burn_b_slice(b, a->grad_out[0], x->rank, k, 1, 1);
        g = burni_b_reshape_to(b, g, &one);
        if (k > 0 && s->step < extent && windows > 1) {
            burn_value *old = burn_b_slice(b, sum, s->axis, start, windows, s->step);
            g = burn_b_add(b, old, g);
        }
        sum = burn_b_slice_assign(b, sum, g, s->axis, start, s->step);
    }
    a->grad_in[0] = sum;
    return BURN_OK;
}

typedef struct unfold_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_unfold attrs;
    int32_t error;
} unfold_sample;

#define UNFOLD_HEAD BURNI_HEAD(burn_attrs_unfold)

static const unfold_sample unfold_rows[] = {
    {"overlapping", 1, {7}, {UNFOLD_HEAD, 0, 3, 1, 1}, 0},
    {"apart", 2, {3, 7}, {UNFOLD_HEAD, 1, 2, 3, 1}, 0},
    {"touching", 2, {6, 2}, {UNFOLD_HEAD, 0, 2, 2, 1}, 0},
    {"dilated", 2, {9, 2}, {UNFOLD_HEAD, 0, 3, 2, 3}, 0},
    {"interleaved", 1, {8}, {UNFOLD_HEAD, 0, 2, 1, 5}, 0},
    {"one window", 3, {2, 5, 3}, {UNFOLD_HEAD, 1, 5, 4, 1}, 0},
    {"size 1", 2, {2, 5}, {UNFOLD_HEAD, 1, 1, 2, 4}, 0},
    {"empty", 2, {0, 5}, {UNFOLD_HEAD, 1, 3, 1, 1}, 0},
    {"window too large", 1, {4}, {UNFOLD_HEAD, 0, 6, 1, 9}, BURN_E_SHAPE},
    {"window of nothing", 1, {4}, {UNFOLD_HEAD, 0, 0, 1, 1}, BURN_E_INVALID},
    {"step 0", 1, {4}, {UNFOLD_HEAD, 0, 2, 0, 1}, BURN_E_INVALID},
    {"overflow", 1, {4}, {UNFOLD_HEAD, 0, INT64_MAX, 1, INT64_MAX}, BURN_E_SHAPE},
    {"rank 8", 8, {1, 3, 1, 1, 1, 1, 1, 1}, {UNFOLD_HEAD, 1, 2, 1, 1}, BURN_E_SHAPE},
};

static int32_t samples_unfold(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(unfold_rows) / sizeof(unfold_rows[0])) {
        return BURN_E_END;
    }
    const unfold_sample *row = &unfold_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special unfold_special[] = {
    {"dilated", "special values", 1, 0},
};

static int32_t unfold_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_unfold, unfold_special,
                                 BURNI_N_SPECIAL(unfold_special));
}

static const burn_role unfold_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const burn_attr unfold_attrs[] = {
    BURNI_ATTR(burn_attrs_unfold, axis, BURN_ATTR_I64, BURN_ATTR_KEY, "axis, 0 <= axis < rank"),
    BURNI_ATTR(burn_attrs_unfold, size, BURN_ATTR_I64, BURN_ATTR_KEY, "elements of a window"),
    BURNI_ATTR(burn_attrs_unfold, step, BURN_ATTR_I64, BURN_ATTR_KEY,
               "distance of the windows' starts"),
    BURNI_ATTR(burn_attrs_unfold, dilation, BURN_ATTR_I64, BURN_ATTR_KEY,
               "distance of a window's elements"),
};

const burn_op_def burn_op_def_unfold = {
    BURNI_DEF(UNFOLD, unfold),
    .summary = "Sliding windows along an axis, as a new last axis",
    .flags = BURN_OP_PRIMITIVE,
    .n_in = 1,
    .n_out = 1,
    .roles = unfold_roles,
    .attrs = unfold_attrs,
    .n_attrs = 4,
    .attrs_size = (uint32_t)sizeof(burn_attrs_unfold),
    .fuse = BURN_FUSE_VIEW,
    .infer = infer_unfold,
    .view = view_unfold,
    .vjp = vjp_unfold,
    .vjp_saves = burni_saves_nothing,
    .eval = eval_unfold,
    .samples = unfold_all_samples,
};
