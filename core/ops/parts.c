/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * parts.c - window geometry and builder sequences shared by the definitions of movement, index,
 * convolution and pooling ops.
 *
 * Owns no op and no state. See parts.h for how to add one.
 */
#include "ops/parts.h"

#include <string.h>

const uint32_t burni_saves_nothing[BURN_MAX_OPERANDS] = {0};

int32_t burni_set_shape(const char *op, burn_meta *out, uint32_t rank, const int64_t *dims,
                        burn_err *err)
{
    char text[192];
    if (rank > BURN_MAX_RANK) {
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: the result would have rank %u, at most %d is possible", op,
                          (unsigned)rank, BURN_MAX_RANK);
    }
    if (burni_numel(rank, dims) < 0) {
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: shape %s has a negative size or more elements than 63 bits count",
                          op, burni_shape_text(text, sizeof(text), rank, dims));
    }
    out->rank = (uint8_t)rank;
    memset(out->dims, 0, sizeof(out->dims));
    memcpy(out->dims, dims, rank * sizeof(dims[0]));
    return BURN_OK;
}

int64_t burni_extent(int64_t size, int64_t dilation)
{
    if (size < 1 || dilation < 1 || size - 1 > (INT64_MAX - 1) / dilation) {
        return -1;
    }
    return (size - 1) * dilation + 1;
}

int32_t burni_check_pair(const char *op, const char *field, const int64_t *pair, int64_t least,
                         burn_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] < least || pair[i] > INT32_MAX) {
            return burni_fail(err, BURN_E_INVALID,
                              "%s: %s[%d] is %lld, it must be at least %lld and below 2^31", op,
                              field, i, (long long)pair[i], (long long)least);
        }
    }
    return BURN_OK;
}

int32_t burni_eval_by_source(const burn_eval *a, burni_source_fn source)
{
    const burn_meta *in = &a->in[0].meta;
    const burn_meta *out = &a->out[0].meta;
    int64_t strides[BURN_MAX_RANK];
    int64_t out_index[BURN_MAX_RANK] = {0};
    burni_dense_strides(in->rank, in->dims, strides);
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        int64_t in_index[BURN_MAX_RANK] = {0};
        source(a, out_index, in_index);
        burni_eval_move(&a->out[0], k, &a->in[0],
                        (uint64_t)burni_offset(in->rank, in_index, strides));
        (void)burni_next_index(out->rank, out->dims, out_index);
    }
    return BURN_OK;
}

/* ---- builder sequences ----------------------------------------------------------------------- */

burn_value *burni_b_zeros(const burn_builder *b, const burn_meta *like)
{
    return burn_b_fill(b, like->dtype, like->rank, like->dims, 0.0);
}

burn_value *burni_b_reshape_to(const burn_builder *b, burn_value *x, const burn_meta *like)
{
    return burn_b_reshape(b, x, like->rank, like->dims);
}

burn_value *burni_b_slice_at(const burn_builder *b, burn_value *x, burn_value *start,
                             int64_t axis, int64_t size, int64_t step)
{
    burn_attrs_slice a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.size = size;
    a.step = step;
    burn_value *in[2] = {x, start};
    return burn_b_emit(b, BURN_OP_SLICE, &a, in, 2);
}

burn_value *burni_b_slice_assign_at(const burn_builder *b, burn_value *x, burn_value *y,
                                    burn_value *start, int64_t axis, int64_t step)
{
    burn_attrs_slice a;
    burn_meta meta = burn_b_meta(b, y);
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.size = axis < meta.rank ? meta.dims[axis] : 0;
    a.step = step;
    burn_value *in[3] = {x, y, start};
    return burn_b_emit(b, BURN_OP_SLICE_ASSIGN, &a, in, 3);
}

burn_value *burni_b_fit(const burn_builder *b, burn_value *x, int64_t axis, int64_t before,
                        int64_t after)
{
    burn_meta meta = burn_b_meta(b, x);
    if (axis >= meta.rank) {
        return x; /* a failed value: it carries its cause */
    }
    int64_t size = meta.dims[axis];
    int64_t wanted = size + before + after;
    int64_t first = before < 0 ? -before : 0;
    int64_t last = after < 0 ? size + after : size;
    if (first >= last) {
        meta.dims[axis] = wanted < 0 ? 0 : wanted;
        return burni_b_zeros(b, &meta);
    }
    if (first > 0 || last < size) {
        x = burn_b_slice(b, x, axis, first, last - first, 1);
    }
    if (before > 0 || after > 0) {
        int64_t lo[BURN_MAX_RANK] = {0};
        int64_t hi[BURN_MAX_RANK] = {0};
        lo[axis] = before > 0 ? before : 0;
        hi[axis] = after > 0 ? after : 0;
        x = burn_b_pad(b, x, lo, hi, 0.0);
    }
    return x;
}

burn_value *burni_b_index_along(const burn_builder *b, burn_value *index, uint32_t rank,
                                const int64_t *shape, int64_t axis)
{
    int64_t dims[BURN_MAX_RANK];
    burn_meta meta = burn_b_meta(b, index);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = 1;
    }
    if (meta.rank == 1 && axis < rank) {
        dims[axis] = meta.dims[0];
    }
    return burn_b_expand(b, burn_b_reshape(b, index, rank, dims), rank, shape);
}
