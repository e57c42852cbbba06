/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * move.c - the ops that move elements, as functions: Python's slices and -1 dims become attributes.
 */
#include "api/call.h"

#include "base/error.h"
#include "ops/rules.h"

#include <string.h>

static burn_tensor *to_dims(uint64_t op, burn_tensor *x, uint32_t rank, const int64_t *dims)
{
    burn_attrs_shape a;
    burn_attrs_init(&a, sizeof(a));
    a.n_dims = rank;
    for (uint32_t d = 0; d < rank; d++) {
        a.dims[d] = dims[d];
    }
    return burni_call(NULL, op, &a, &x, 1);
}

enum { SHAPE_TEXT = 192 };

static const char *shape_of(char text[SHAPE_TEXT], const burn_tensor *x)
{
    return burni_shape_text(text, SHAPE_TEXT, x->rank, x->dims);
}

static int bad_dims(uint32_t rank, const int64_t *dims)
{
    return rank > BURN_MAX_RANK || (rank > 0 && dims == NULL);
}

/* Fills in the one dim that is -1. */
static int32_t complete(const burn_tensor *x, uint32_t rank, const int64_t *dims, int64_t *out,
                        burn_err *err)
{
    char text[192];
    int64_t known = 1;
    int missing = -1;
    for (uint32_t i = 0; i < rank; i++) {
        out[i] = dims[i];
        if (dims[i] == -1 && missing >= 0) {
            return burni_fail(err, BURN_E_SHAPE, "reshape: %s has more than one -1",
                              burni_shape_text(text, sizeof(text), rank, dims));
        }
        if (dims[i] == -1) {
            missing = (int)i;
        } else if (__builtin_mul_overflow(known, dims[i], &known)) {
            return burni_fail(err, BURN_E_SHAPE, "reshape: %s is too large",
                              burni_shape_text(text, sizeof(text), rank, dims));
        }
    }
    if (missing < 0) {
        return BURN_OK;
    }
    if (known <= 0 || x->numel % known != 0) {
        return burni_fail(err, BURN_E_SHAPE,
                          "reshape: %lld elements do not decide the -1 of %s; name the dim",
                          (long long)x->numel, burni_shape_text(text, sizeof(text), rank, dims));
    }
    out[missing] = x->numel / known;
    return BURN_OK;
}

burn_tensor *burn_reshape(burn_tensor *x, uint32_t rank, const int64_t *dims)
{
    burn_err err = BURN_ERR_INIT;
    int64_t full[BURN_MAX_RANK];
    if (bad_dims(rank, dims)) {
        return burni_call_bad_dims(BURN_OP_RESHAPE, rank, "dims");
    }
    if (burn_ok(x) && complete(x, rank, dims, full, &err) != BURN_OK) {
        return burni_call_fail(BURN_OP_RESHAPE, err.code, "%s", err.text);
    }
    for (uint32_t d = 0; d < rank && !burn_ok(x); d++) {
        full[d] = dims[d];
    }
    return to_dims(BURN_OP_RESHAPE, x, rank, full);
}

burn_tensor *burn_expand_to(burn_tensor *x, uint32_t rank, const int64_t *dims)
{
    if (bad_dims(rank, dims)) {
        return burni_call_bad_dims(BURN_OP_EXPAND, rank, "dims");
    }
    return to_dims(BURN_OP_EXPAND, x, rank, dims);
}

burn_tensor *burn_permute(burn_tensor *x, uint32_t rank, const int64_t *axes)
{
    burn_attrs_permute a;
    burn_attrs_init(&a, sizeof(a));
    if (bad_dims(rank, axes)) {
        return burni_call_bad_dims(BURN_OP_PERMUTE, rank, "axes");
    }
    a.n_axes = rank;
    for (uint32_t i = 0; i < rank; i++) {
        a.perm[i] = burni_wrap_axis(x, axes[i]);
    }
    return burni_call(NULL, BURN_OP_PERMUTE, &a, &x, 1);
}

burn_tensor *burn_transpose(burn_tensor *x, int64_t axis0, int64_t axis1)
{
    int64_t perm[BURN_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t i = burni_wrap_axis(x, axis0);
    int64_t j = burni_wrap_axis(x, axis1);
    uint32_t rank = burn_rank(x);
    if (burn_ok(x) && (i < 0 || j < 0 || i >= rank || j >= rank)) {
        return burni_call_fail(BURN_OP_PERMUTE, BURN_E_INVALID,
                               "transpose: axes %lld and %lld, but the tensor has rank %u; "
                               "use -%u to %d",
                               (long long)axis0, (long long)axis1, rank, rank, (int)rank - 1);
    }
    if (burn_ok(x)) {
        perm[i] = j;
        perm[j] = i;
    }
    return burn_permute(x, rank, perm);
}

burn_tensor *burn_flip(burn_tensor *x, uint32_t n_axes, const int64_t *axes)
{
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    if (bad_dims(n_axes, axes)) {
        return burni_call_bad_axes(BURN_OP_FLIP, n_axes);
    }
    a.n_axes = n_axes;
    burni_wrap_axes(x, n_axes, axes, a.axes);
    return burni_call(NULL, BURN_OP_FLIP, &a, &x, 1);
}

burn_tensor *burn_unsqueeze(burn_tensor *x, int64_t axis)
{
    int64_t dims[BURN_MAX_RANK + 1];
    uint32_t rank = burn_rank(x);
    int64_t at = axis < 0 ? axis + rank + 1 : axis;
    if (burn_ok(x) && (at < 0 || at > rank || rank == BURN_MAX_RANK)) {
        return burni_call_fail(BURN_OP_RESHAPE, BURN_E_INVALID,
                               "unsqueeze: axis %lld of rank %u; valid are %d..%u, and at most "
                               "%d dims",
                               (long long)axis, rank, -(int)rank - 1, rank, BURN_MAX_RANK);
    }
    for (uint32_t i = 0, k = 0; i <= rank && burn_ok(x); i++) {
        dims[i] = i == at ? 1 : x->dims[k];
        k += i != at;
    }
    return burn_reshape(x, burn_ok(x) ? rank + 1 : 0, dims);
}

burn_tensor *burn_squeeze(burn_tensor *x, int64_t axis)
{
    int64_t dims[BURN_MAX_RANK];
    uint32_t rank = burn_rank(x);
    int64_t at = burni_wrap_axis(x, axis);
    char text[SHAPE_TEXT];
    if (burn_ok(x) && (at < 0 || at >= rank || x->dims[at] != 1)) {
        return burni_call_fail(BURN_OP_RESHAPE, BURN_E_SHAPE,
                               "squeeze: axis %lld of %s %s; only one of size 1 can go",
                               (long long)axis, shape_of(text, x),
                               at < 0 || at >= rank ? "is not there" : "is longer");
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (i != at) {
            dims[n++] = x->dims[i];
        }
    }
    return burn_reshape(x, n, dims);
}

burn_tensor *burn_flatten(burn_tensor *x, int64_t first_axis, int64_t last_axis)
{
    int64_t dims[BURN_MAX_RANK];
    uint32_t rank = burn_rank(x);
    int64_t first = burni_wrap_axis(x, first_axis);
    int64_t last = burni_wrap_axis(x, last_axis);
    char text[SHAPE_TEXT];
    if (burn_ok(x) && (first < 0 || last >= rank || first > last)) {
        return burni_call_fail(BURN_OP_RESHAPE, BURN_E_INVALID,
                               "flatten: axes %lld to %lld of %s; both must be there (-%u to %d), "
                               "the first not behind the last",
                               (long long)first_axis, (long long)last_axis, shape_of(text, x), rank,
                               (int)rank - 1);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (i > first && i <= last) {
            dims[n - 1] *= x->dims[i];
        } else {
            dims[n++] = x->dims[i];
        }
    }
    return burn_reshape(x, n, dims);
}

/* Python's rules: bounds wrap once, then clamp. */
static int64_t clamp_bound(int64_t bound, int64_t size, int64_t low, int64_t high)
{
    bound = bound < 0 ? bound + size : bound;
    return bound < low ? low : bound > high ? high : bound;
}

burn_tensor *burn_slice(burn_tensor *x, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    burn_attrs_slice a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    a.step = step;
    if (step == 0 || step == INT64_MIN) {
        return burni_call_fail(BURN_OP_SLICE, BURN_E_INVALID,
                               "slice: the step is %lld; use 1 or more, or -1 or less",
                               (long long)step);
    }
    if (burn_ok(x) && (a.axis < 0 || a.axis >= x->rank)) {
        char text[SHAPE_TEXT];
        return burni_call_fail(BURN_OP_SLICE, BURN_E_INVALID,
                               "slice: axis %lld of %s is not there; use -%u to %d",
                               (long long)axis, shape_of(text, x), x->rank, (int)x->rank - 1);
    }
    int64_t size = burn_dim(x, a.axis);
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? size : size - 1;
    int64_t from = step > 0 ? 0 : size - 1;
    int64_t to = step > 0 ? size : -1;
    if (start != BURN_SLICE_NONE) {
        from = clamp_bound(start, size, low, high);
    }
    if (end != BURN_SLICE_NONE) {
        to = clamp_bound(end, size, low, high);
    }
    int64_t span = step > 0 ? to - from : from - to;
    int64_t stride = step > 0 ? step : -step;
    a.size = span > 0 ? (span - 1) / stride + 1 : 0;
    burn_tensor *const in[2] = {x, burn_scalar_int(a.size > 0 ? from : 0)};
    return burni_call(NULL, BURN_OP_SLICE, &a, in, 2);
}

burn_tensor *burn_slice_assign(burn_tensor *x, burn_tensor *y, int64_t axis, int64_t start,
                               int64_t step)
{
    burn_attrs_slice a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    a.step = step;
    a.size = burn_dim(y, a.axis);
    int64_t size = burn_dim(x, a.axis);
    burn_tensor *const in[3] = {x, y, burn_scalar_int(start < 0 ? start + size : start)};
    return burni_call(NULL, BURN_OP_SLICE_ASSIGN, &a, in, 3);
}

burn_tensor *burn_unfold(burn_tensor *x, int64_t axis, int64_t size, int64_t step)
{
    burn_attrs_unfold a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    a.size = size;
    a.step = step;
    a.dilation = 1;
    return burni_call(NULL, BURN_OP_UNFOLD, &a, &x, 1);
}

static burn_tensor *bad_list(const char *name, burn_tensor *const *xs, uint32_t n)
{
    if (xs == NULL) {
        return burni_call_fail(BURN_OP_CAT, BURN_E_INVALID, "%s: the list of tensors is NULL",
                               name);
    }
    return burni_call_fail(BURN_OP_CAT, BURN_E_INVALID,
                           "%s: %u tensors given; 1 to %d can be joined at once", name, n,
                           BURN_MAX_OPERANDS - 1);
}

burn_tensor *burn_cat(burn_tensor *const *xs, uint32_t n, int64_t axis)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, sizeof(a));
    if (n == 0 || xs == NULL || n >= BURN_MAX_OPERANDS) {
        return bad_list("cat", xs, n);
    }
    a.axis = burni_wrap_axis(xs[0], axis);
    return burni_call(NULL, BURN_OP_CAT, &a, xs, n);
}

/* What cat and unsqueeze, of which it is made, would say about calls that nobody wrote. */
static int32_t check_stack(burn_tensor *const *xs, uint32_t n, int64_t axis, int64_t at,
                           burn_err *err)
{
    char a[SHAPE_TEXT];
    char b[SHAPE_TEXT];
    const burn_tensor *x = xs[0];
    for (uint32_t i = 1; i < n && burn_ok(x); i++) {
        const burn_tensor *y = xs[i];
        if (burn_ok(y) && x->kind == y->kind &&
            (x->dtype != y->dtype || x->rank != y->rank ||
             memcmp(x->dims, y->dims, x->rank * sizeof(x->dims[0])) != 0)) {
            return burni_fail(err, x->dtype != y->dtype ? BURN_E_DTYPE : BURN_E_SHAPE,
                              "stack: input %u is %s%s, input 0 is %s%s; all must be alike", i,
                              burn_dtype_name(y->dtype), shape_of(b, y), burn_dtype_name(x->dtype),
                              shape_of(a, x));
        }
    }
    if (burn_ok(x) && (at < 0 || at > x->rank)) {
        return burni_fail(err, BURN_E_INVALID,
                          "stack: axis %lld of inputs of rank %u; valid are %d..%u",
                          (long long)axis, x->rank, -(int)x->rank - 1, x->rank);
    }
    return BURN_OK;
}

burn_tensor *burn_stack(burn_tensor *const *xs, uint32_t n, int64_t axis)
{
    burn_tensor *rows[BURN_MAX_OPERANDS];
    if (n == 0 || xs == NULL || n >= BURN_MAX_OPERANDS) {
        return bad_list("stack", xs, n);
    }
    uint32_t rank = burn_rank(xs[0]);
    int64_t at = axis < 0 ? axis + rank + 1 : axis;
    burn_err err = BURN_ERR_INIT;
    if (check_stack(xs, n, axis, at, &err) != BURN_OK) {
        return burni_call_fail(BURN_OP_CAT, err.code, "%s", err.text);
    }
    burn_scope_begin();
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = burn_unsqueeze(xs[i], at);
    }
    return burn_scope_return(burn_cat(rows, n, at));
}

burn_tensor *burn_pad(burn_tensor *x, const int64_t *before, const int64_t *after,
                      burn_tensor *value)
{
    burn_attrs_pad a;
    burn_attrs_init(&a, sizeof(a));
    a.n_dims = burn_rank(x);
    if (a.n_dims > 0 && (before == NULL || after == NULL)) {
        return burni_call_fail(BURN_OP_PAD, BURN_E_INVALID,
                               "pad: %s is NULL, x has rank %u and needs as many amounts",
                               before == NULL ? "before" : "after", a.n_dims);
    }
    for (uint32_t i = 0; i < a.n_dims; i++) {
        a.before[i] = before[i];
        a.after[i] = after[i];
    }
    burn_tensor *const in[2] = {x, value};
    return burni_call(NULL, BURN_OP_PAD, &a, in, 2);
}

/* ---- by index -------------------------------------------------------------------------------- */

static burn_tensor *by_index(uint64_t op, burn_tensor *x, burn_tensor *index, int64_t axis)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    burn_tensor *const in[2] = {x, index};
    return burni_call(NULL, op, &a, in, 2);
}

burn_tensor *burn_gather(burn_tensor *x, burn_tensor *index, int64_t axis)
{
    return by_index(BURN_OP_GATHER, x, index, axis);
}

burn_tensor *burn_select(burn_tensor *x, burn_tensor *index, int64_t axis)
{
    return by_index(BURN_OP_SELECT, x, index, axis);
}

burn_tensor *burn_scatter(burn_tensor *x, burn_tensor *index, burn_tensor *values, int64_t axis,
                          uint32_t mode)
{
    burn_attrs_scatter a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    a.mode = mode;
    burn_tensor *const in[3] = {x, index, values};
    return burni_call(NULL, BURN_OP_SCATTER, &a, in, 3);
}

burn_tensor *burn_one_hot(burn_tensor *index, int64_t classes, uint8_t dtype)
{
    burn_attrs_one_hot a;
    burn_attrs_init(&a, sizeof(a));
    a.classes = classes;
    a.dtype = dtype;
    return burni_call(NULL, BURN_OP_ONE_HOT, &a, &index, 1);
}

burn_tensor *burn_embedding(burn_tensor *table, burn_tensor *index)
{
    burn_tensor *const in[2] = {table, index};
    return burni_call(NULL, BURN_OP_EMBEDDING, NULL, in, 2);
}
