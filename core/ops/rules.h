/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rules.h - shape rules, error text and small helpers that op definitions share.
 *
 * Owns no op. Everything here is pure: it reads metas and attributes and writes metas or an error.
 * Codes are BURN_OK or a negative status; on failure the burn_err names op, argument, shapes and
 * what to do. To add a rule: declare it here, define it in rules.c, name the ops that use it.
 */
#ifndef BURN_CORE_OPS_RULES_H
#define BURN_CORE_OPS_RULES_H

#include "base/error.h"

#include <burn/op_attrs.h>
#include <burn/op_def.h>
#include <burn/op_list.h>

/* "[2,3,4]" into a buffer; returns the buffer. A buffer of 192 bytes holds every shape. */
const char *burni_shape_text(char *buffer, uint32_t size, uint32_t rank, const int64_t *dims);

/* Number of elements; -1 when it overflows int64_t or a dim is negative. */
int64_t burni_numel(uint32_t rank, const int64_t *dims);

/* NumPy broadcasting of two shapes into out (rank and dims only). `what` begins the error text. */
int32_t burni_broadcast(const char *what, const burn_meta *a, const burn_meta *b, burn_meta *out,
                        burn_err *err);

/* Checks 0 <= axis < rank; the error names the range. */
int32_t burni_check_axis(const char *op, int64_t axis, uint32_t rank, burn_err *err);

/* Shape of a reduction of `in` under burn_attrs_axes (n_axes 0 = all). Sets out rank and dims. */
int32_t burni_reduced_shape(const char *op, const burn_meta *in, const burn_attrs_axes *a,
                            burn_meta *out, burn_err *err);

/* infer callbacks: the output 0 has the shape (and dtype) of input 0. */
int32_t burni_infer_same(const burn_infer *a);

/* Attribute struct of an infer/vjp/expand/eval argument, NULL when size or head do not fit. */
#define BURNI_ATTRS(a, type)                                                                       \
    ((const type *)((a)->attrs != NULL && (a)->attrs_size >= sizeof(type) ? (a)->attrs : NULL))

/* Role rows. BURNI_T0: same dtype as operand 0. */
/* clang-format off */
#define BURNI_ROLE(name, flags, set) { name, flags, 0, {0, 0, 0}, {set, 0, 0, 0} }
#define BURNI_ROLE_LIKE(name, flags, operand, set) { name, flags, (operand) + 1, {0, 0, 0}, {set, 0, 0, 0} }
/* clang-format on */

/* Eval helpers: strides of a dense row-major shape, and stepping an index over dims. */
void burni_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides);
/* Next index in row-major order; 0 when past the end. */
int burni_next_index(uint32_t rank, const int64_t *dims, int64_t *index);
/* Strides of `in` (dense) seen as broadcast to out's dims. */
void burni_broadcast_strides(const burn_meta *in, const burn_meta *out, int64_t *strides);
/* Element k of an eval operand as a double, whatever its class; and the reverse (cast rules). */
double burni_eval_get(const burn_eval_operand *x, uint64_t k);
void burni_eval_set(burn_eval_operand *x, uint64_t k, double value);

/* Samples: fills operand slots of a sample tersely. */
void burni_sample_tensor(burn_sample *s, uint32_t i, uint8_t dtype, uint8_t fill, uint32_t rank,
                         const int64_t *dims);
void burni_sample_immediate(burn_sample *s, uint32_t i, uint8_t dtype, double value);
/* Copies an attribute struct (with its head) into the sample. */
void burni_sample_attrs(burn_sample *s, const void *attrs, uint32_t size);

#endif /* BURN_CORE_OPS_RULES_H */
