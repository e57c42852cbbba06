/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * build.h - builder code that reads like calls: one inline wrapper per core op, for gradients,
 * decompositions and extensions. Header-only; nothing here is exported.
 *
 * Each wrapper fills the op's attributes and emits it. Errors travel inside the values (builder.h),
 * so results need no check. To add one more: write a wrapper that ends in burn_b_emit.
 */
#ifndef BURN_BUILD_H
#define BURN_BUILD_H

#include <burn/builder.h>
#include <burn/op_attrs.h>
#include <burn/op_list.h>

BURN_BEGIN_DECLS

/* Zeroes an attribute struct and writes its head. */
static inline void burn_attrs_init(void *attrs, uint32_t size)
{
    unsigned char *bytes = (unsigned char *)attrs;
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = 0;
    }
    ((burn_attrs_head *)attrs)->size = size;
    ((burn_attrs_head *)attrs)->revision = 1;
}

/* Emits an op with one output. */
static inline burn_value *burn_b_emit(const burn_builder *b, uint64_t op, const void *attrs,
                                      burn_value *const *in, uint32_t n_in)
{
    burn_value *out = NULL;
    uint32_t size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    (void)b->emit(b->ctx, op, attrs, size, in, n_in, &out, 1);
    return out;
}

static inline burn_meta burn_b_meta(const burn_builder *b, const burn_value *x)
{
    burn_meta meta;
    b->meta(b->ctx, x, &meta);
    return meta;
}

/* An immediate of x's dtype. */
static inline burn_value *burn_b_num(const burn_builder *b, const burn_value *x, double number)
{
    burn_meta meta = burn_b_meta(b, x);
    return b->immediate(b->ctx, meta.dtype, number);
}

static inline burn_value *burn_b_op1(const burn_builder *b, uint64_t op, burn_value *x)
{
    burn_value *in[1] = {x};
    return burn_b_emit(b, op, NULL, in, 1);
}

static inline burn_value *burn_b_op2(const burn_builder *b, uint64_t op, burn_value *x,
                                     burn_value *y)
{
    burn_value *in[2] = {x, y};
    return burn_b_emit(b, op, NULL, in, 2);
}

/* burn_b_exp(b, x), burn_b_add(b, x, y), burn_b_less(b, x, y), ...: one per unary and binary op. */
#define BURN_B_UNARY(id, NAME, name)                                                               \
    static inline burn_value *burn_b_##name(const burn_builder *b, burn_value *x)                  \
    {                                                                                              \
        return burn_b_op1(b, id, x);                                                               \
    }
BURN_FOREACH_UNARY_OP(BURN_B_UNARY)
#undef BURN_B_UNARY

#define BURN_B_BINARY(id, NAME, name)                                                              \
    static inline burn_value *burn_b_##name(const burn_builder *b, burn_value *x, burn_value *y)   \
    {                                                                                              \
        return burn_b_op2(b, id, x, y);                                                            \
    }
BURN_FOREACH_BINARY_OP(BURN_B_BINARY)
#undef BURN_B_BINARY

/* The same with a number on the right: burn_b_add_num(b, x, 1.0). */
#define BURN_B_BINARY_NUM(id, NAME, name)                                                          \
    static inline burn_value *burn_b_##name##_num(const burn_builder *b, burn_value *x, double y)  \
    {                                                                                              \
        return burn_b_op2(b, id, x, burn_b_num(b, x, y));                                          \
    }
BURN_FOREACH_BINARY_OP(BURN_B_BINARY_NUM)
#undef BURN_B_BINARY_NUM

/* cond ? x : y */
static inline burn_value *burn_b_where(const burn_builder *b, burn_value *cond, burn_value *x,
                                       burn_value *y)
{
    burn_value *in[3] = {cond, x, y};
    return burn_b_emit(b, BURN_OP_WHERE, NULL, in, 3);
}

static inline burn_value *burn_b_cast(const burn_builder *b, burn_value *x, uint32_t dtype)
{
    burn_attrs_cast a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.dtype = dtype;
    return burn_b_emit(b, BURN_OP_CAST, &a, &x, 1);
}

static inline burn_value *burn_b_copy(const burn_builder *b, burn_value *x)
{
    return burn_b_emit(b, BURN_OP_COPY, NULL, &x, 1);
}

/* One of sum, prod, max, min, mean, any, all, logsumexp; n_axes 0 = all axes. */
static inline burn_value *burn_b_reduce(const burn_builder *b, uint64_t op, burn_value *x,
                                        uint32_t n_axes, const int64_t *axes, uint32_t keepdims)
{
    burn_attrs_axes a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_axes = n_axes;
    a.keepdims = keepdims;
    for (uint32_t i = 0; i < n_axes && i < BURN_MAX_RANK; i++) {
        a.axes[i] = axes[i];
    }
    return burn_b_emit(b, op, &a, &x, 1);
}

/* The same over one axis. */
static inline burn_value *burn_b_reduce1(const burn_builder *b, uint64_t op, burn_value *x,
                                         int64_t axis, uint32_t keepdims)
{
    return burn_b_reduce(b, op, x, 1, &axis, keepdims);
}

/* One of softmax, log_softmax, cumsum (unary, one axis), argmax, argmin. */
static inline burn_value *burn_b_axis(const burn_builder *b, uint64_t op, burn_value *x,
                                      int64_t axis, uint32_t keepdims)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.keepdims = keepdims;
    return burn_b_emit(b, op, &a, &x, 1);
}

static inline burn_value *burn_b_to_dims(const burn_builder *b, uint64_t op, burn_value *x,
                                         uint32_t rank, const int64_t *dims)
{
    burn_attrs_shape a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_dims = rank;
    for (uint32_t i = 0; i < rank && i < BURN_MAX_RANK; i++) {
        a.dims[i] = dims[i];
    }
    return burn_b_emit(b, op, &a, &x, 1);
}

static inline burn_value *burn_b_reshape(const burn_builder *b, burn_value *x, uint32_t rank,
                                         const int64_t *dims)
{
    return burn_b_to_dims(b, BURN_OP_RESHAPE, x, rank, dims);
}

static inline burn_value *burn_b_expand(const burn_builder *b, burn_value *x, uint32_t rank,
                                        const int64_t *dims)
{
    return burn_b_to_dims(b, BURN_OP_EXPAND, x, rank, dims);
}

static inline burn_value *burn_b_permute(const burn_builder *b, burn_value *x, uint32_t rank,
                                         const int64_t *perm)
{
    burn_attrs_permute a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_axes = rank;
    for (uint32_t i = 0; i < rank && i < BURN_MAX_RANK; i++) {
        a.perm[i] = perm[i];
    }
    return burn_b_emit(b, BURN_OP_PERMUTE, &a, &x, 1);
}

/* Swaps two axes. */
static inline burn_value *burn_b_transpose(const burn_builder *b, burn_value *x, uint32_t i,
                                           uint32_t j)
{
    burn_meta meta = burn_b_meta(b, x);
    int64_t perm[BURN_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (i < BURN_MAX_RANK && j < BURN_MAX_RANK) {
        perm[i] = (int64_t)j;
        perm[j] = (int64_t)i;
    }
    return burn_b_permute(b, x, meta.rank, perm);
}

static inline burn_value *burn_b_slice(const burn_builder *b, burn_value *x, int64_t axis,
                                       int64_t start, int64_t size, int64_t step)
{
    burn_attrs_slice a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.size = size;
    a.step = step;
    burn_value *in[2] = {x, b->immediate_int(b->ctx, BURN_I64, start)};
    return burn_b_emit(b, BURN_OP_SLICE, &a, in, 2);
}

/* A copy of `x` in which the elements that slice() would show are those of `y`. */
static inline burn_value *burn_b_slice_assign(const burn_builder *b, burn_value *x, burn_value *y,
                                              int64_t axis, int64_t start, int64_t step)
{
    burn_attrs_slice a;
    burn_meta meta = burn_b_meta(b, y);
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.size = axis >= 0 && axis < meta.rank ? meta.dims[axis] : 0;
    a.step = step;
    burn_value *in[3] = {x, y, b->immediate_int(b->ctx, BURN_I64, start)};
    return burn_b_emit(b, BURN_OP_SLICE_ASSIGN, &a, in, 3);
}

static inline burn_value *burn_b_flip(const burn_builder *b, burn_value *x, uint32_t n_axes,
                                      const int64_t *axes)
{
    return burn_b_reduce(b, BURN_OP_FLIP, x, n_axes, axes, 0);
}

static inline burn_value *burn_b_unfold(const burn_builder *b, burn_value *x, int64_t axis,
                                        int64_t size, int64_t step, int64_t dilation)
{
    burn_attrs_unfold a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.size = size;
    a.step = step;
    a.dilation = dilation;
    return burn_b_emit(b, BURN_OP_UNFOLD, &a, &x, 1);
}

/* A tensor of one repeated number. */
static inline burn_value *burn_b_fill(const burn_builder *b, uint32_t dtype, uint32_t rank,
                                      const int64_t *dims, double number)
{
    burn_attrs_shape a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_dims = rank;
    a.dtype = dtype;
    for (uint32_t i = 0; i < rank && i < BURN_MAX_RANK; i++) {
        a.dims[i] = dims[i];
    }
    burn_value *in[1] = {b->immediate(b->ctx, (uint8_t)dtype, number)};
    return burn_b_emit(b, BURN_OP_FILL, &a, in, 1);
}

/* start, start + step, ...: n elements. */
static inline burn_value *burn_b_arange(const burn_builder *b, uint32_t dtype, int64_t n,
                                        double start, double step)
{
    burn_attrs_shape a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_dims = 1;
    a.dtype = dtype;
    a.dims[0] = n;
    burn_value *in[2] = {b->immediate(b->ctx, (uint8_t)dtype, start),
                         b->immediate(b->ctx, (uint8_t)dtype, step)};
    return burn_b_emit(b, BURN_OP_ARANGE, &a, in, 2);
}

static inline burn_value *burn_b_pad(const burn_builder *b, burn_value *x, const int64_t *before,
                                     const int64_t *after, double number)
{
    burn_attrs_pad a;
    burn_meta meta = burn_b_meta(b, x);
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.n_dims = meta.rank;
    for (uint32_t i = 0; i < meta.rank; i++) {
        a.before[i] = before[i];
        a.after[i] = after[i];
    }
    burn_value *in[2] = {x, burn_b_num(b, x, number)};
    return burn_b_emit(b, BURN_OP_PAD, &a, in, 2);
}

/* out[..., k, ...] = x[..., index[..., k, ...], ...] along the axis; index has x's rank. */
static inline burn_value *burn_b_gather(const burn_builder *b, burn_value *x, burn_value *index,
                                        int64_t axis)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    burn_value *in[2] = {x, index};
    return burn_b_emit(b, BURN_OP_GATHER, &a, in, 2);
}

/* The reverse of gather: a copy of x with `values` combined in at `index`. */
static inline burn_value *burn_b_scatter(const burn_builder *b, burn_value *x, burn_value *index,
                                         burn_value *values, int64_t axis, uint32_t mode)
{
    burn_attrs_scatter a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    a.mode = mode;
    burn_value *in[3] = {x, index, values};
    return burn_b_emit(b, BURN_OP_SCATTER, &a, in, 3);
}

/* Whole slices of x along the axis, in the order of the rank-1 index. */
static inline burn_value *burn_b_select(const burn_builder *b, burn_value *x, burn_value *index,
                                        int64_t axis)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.axis = axis;
    burn_value *in[2] = {x, index};
    return burn_b_emit(b, BURN_OP_SELECT, &a, in, 2);
}

static inline burn_value *burn_b_matmul(const burn_builder *b, burn_value *x, burn_value *y)
{
    return burn_b_op2(b, BURN_OP_MATMUL, x, y);
}

BURN_END_DECLS

#endif /* BURN_BUILD_H */
