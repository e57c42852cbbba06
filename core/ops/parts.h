/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * parts.h - what movement, index, matmul, convolution and pooling definitions share.
 *
 * Window geometry (how many windows fit) and short builder sequences that several gradients and
 * decompositions need. Pure; owns no op. Sizes are int64_t and checked for overflow. To add a part:
 * declare it here, define it in parts.c, use it from at least two definitions.
 */
#ifndef BURN_CORE_OPS_PARTS_H
#define BURN_CORE_OPS_PARTS_H

#include "ops/rules.h"

#include <burn/build.h>

/* Head of an attribute struct in a sample table. */
/* clang-format off */
#define BURNI_HEAD(type) { (uint32_t)sizeof(type), 1 }
/* clang-format on */

/* For tables of saved operands: nothing is needed. */
extern const uint32_t burni_saves_nothing[BURN_MAX_OPERANDS];

/* Sets rank and dims of a meta; -1 dims or too many elements are an error. */
int32_t burni_set_shape(const char *op, burn_meta *out, uint32_t rank, const int64_t *dims,
                        burn_err *err);

/* Extent of a window: (size - 1) * dilation + 1; -1 when it overflows. size, dilation >= 1. */
int64_t burni_extent(int64_t size, int64_t dilation);

/* Is each of a pair at least `least` and at most 2^31? The error names op, field and value. */
int32_t burni_check_pair(const char *op, const char *field, const int64_t *pair, int64_t least,
                         burn_err *err);

/* Eval of an op whose output elements are input elements: where does out_index come from? */
typedef void (*burni_source_fn)(const burn_eval *a, const int64_t *out_index, int64_t *in_index);
int32_t burni_eval_by_source(const burn_eval *a, burni_source_fn source);

/* ---- builder sequences ----------------------------------------------------------------------- */

burn_value *burni_b_zeros(const burn_builder *b, const burn_meta *like);
burn_value *burni_b_reshape_to(const burn_builder *b, burn_value *x, const burn_meta *like);

/* slice and slice_assign with a start that is a value already (an immediate operand). */
burn_value *burni_b_slice_at(const burn_builder *b, burn_value *x, burn_value *start,
                             int64_t axis, int64_t size, int64_t step);
burn_value *burni_b_slice_assign_at(const burn_builder *b, burn_value *x, burn_value *y,
                                    burn_value *start, int64_t axis, int64_t step);

/* Moves the frame of one axis: before, after < 0 crop, > 0 add zeros. */
burn_value *burni_b_fit(const burn_builder *b, burn_value *x, int64_t axis, int64_t before,
                        int64_t after);

/* A rank-1 index seen along `axis` of `shape`: reshaped, then expanded. */
burn_value *burni_b_index_along(const burn_builder *b, burn_value *index, uint32_t rank,
                                const int64_t *shape, int64_t axis);

#endif /* BURN_CORE_OPS_PARTS_H */
