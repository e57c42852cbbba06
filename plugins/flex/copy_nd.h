/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copy_nd.h - copies a block of elements from any strides to any strides.
 *
 * The engine behind copy, cat, pad, slice_assign and assign. It knows element sizes, not dtypes.
 * Strides count elements and may be 0 or negative; source and destination must not overlap.
 */
#ifndef BURN_PLUGINS_FLEX_COPY_ND_H
#define BURN_PLUGINS_FLEX_COPY_ND_H

#include "flex.h"

void flex_copy_nd(uint32_t size, uint32_t rank, const int64_t *dims, void *out,
                  const int64_t *out_strides, const void *in, const int64_t *in_strides);

/* Writes one value (of `size` bytes) n times. */
void flex_fill(uint32_t size, void *out, const void *value, uint64_t n);

/* out[r * out_row + c] = in[r + c * in_col], in elements; on this thread. */
void flex_transpose(uint32_t size, void *out, int64_t out_row, const void *in, int64_t in_col,
                    int64_t rows, int64_t cols);

/* Row-major strides of dense dims. */
void flex_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides);

#endif /* BURN_PLUGINS_FLEX_COPY_ND_H */
