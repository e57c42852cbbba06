/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loop.h - steps over the elements of strided operands in row-major order.
 *
 * Owns the index arithmetic only: offsets count elements, the caller turns them into addresses with
 * the operand's dtype. Any rank from 0 to BURN_MAX_RANK, zero-size dims, strides of 0 and negative
 * ones. Slow and obvious; a fast kernel peels the innermost dim. No memory is allocated. [any]
 *
 *     burn_loop loop;
 *     for (burn_loop_begin(&loop, rank, dims, 2, strides); burn_loop_more(&loop);
 *          burn_loop_next(&loop)) { ... loop.offset[0] ... loop.offset[1] ... loop.position ... }
 */
#ifndef BURN_SDK_LOOP_H
#define BURN_SDK_LOOP_H

#include <burn/base.h>
#include <burn/call.h>

#define BURN_LOOP_OPERANDS 8

typedef struct burn_loop {
    uint32_t rank;
    uint32_t n_operands;
    int64_t position; /* row-major number of the current element */
    int64_t count;    /* number of elements */
    int64_t dims[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK];
    int64_t offset[BURN_LOOP_OPERANDS];
    const int64_t *strides[BURN_LOOP_OPERANDS];
} burn_loop;

/* Number of elements of a shape; 1 for rank 0. */
static inline int64_t burn_dims_count(uint32_t rank, const int64_t *dims)
{
    uint64_t count = 1; /* unsigned: beside a dim of 0 the others may multiply to anything */
    for (uint32_t i = 0; i < rank; i++) {
        count *= (uint64_t)dims[i];
    }
    return (int64_t)count;
}

/* Strides of a dense row-major shape. */
static inline void burn_dims_strides(uint32_t rank, const int64_t *dims, int64_t *strides)
{
    uint64_t step = 1;
    for (uint32_t i = rank; i > 0; i--) {
        strides[i - 1] = (int64_t)step;
        step *= (uint64_t)dims[i - 1];
    }
}

/* Lowest and highest offset (in elements) that a non-empty shape reaches from its first element. */
static inline void burn_dims_extent(uint32_t rank, const int64_t *dims, const int64_t *strides,
                                    int64_t *low, int64_t *high)
{
    *low = 0;
    *high = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t reach = (dims[i] - 1) * strides[i];
        if (reach < 0) {
            *low += reach;
        } else {
            *high += reach;
        }
    }
}

/* Starts at element 0. `strides` names one array of `rank` strides per operand (at most 8). */
static inline void burn_loop_begin(burn_loop *loop, uint32_t rank, const int64_t *dims,
                                   uint32_t n_operands, const int64_t *const *strides)
{
    loop->rank = rank;
    loop->n_operands = n_operands < BURN_LOOP_OPERANDS ? n_operands : BURN_LOOP_OPERANDS;
    loop->position = 0;
    loop->count = burn_dims_count(rank, dims);
    for (uint32_t i = 0; i < rank; i++) {
        loop->dims[i] = dims[i];
        loop->index[i] = 0;
    }
    for (uint32_t i = 0; i < loop->n_operands; i++) {
        loop->strides[i] = strides[i];
        loop->offset[i] = 0;
    }
}

static inline int burn_loop_more(const burn_loop *loop)
{
    return loop->position < loop->count;
}

static inline void burn_loop_next(burn_loop *loop)
{
    loop->position++;
    for (uint32_t i = loop->rank; i > 0; i--) {
        uint32_t axis = i - 1;
        loop->index[axis]++;
        if (loop->index[axis] < loop->dims[axis]) {
            for (uint32_t k = 0; k < loop->n_operands; k++) {
                loop->offset[k] += loop->strides[k][axis];
            }
            return;
        }
        for (uint32_t k = 0; k < loop->n_operands; k++) {
            loop->offset[k] -= (loop->dims[axis] - 1) * loop->strides[k][axis];
        }
        loop->index[axis] = 0;
    }
}

#endif /* BURN_SDK_LOOP_H */
