/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * eval_builder.h - a builder whose ops run through `eval`, for tests of definitions alone.
 *
 * No device, no tape, no core: each emitted op is inferred, evaluated in double and rounded to its
 * dtype, so a decomposition shows the errors that a device of that dtype would make. Values live
 * until the context is freed. Single-threaded; a failed operand fails what it enters.
 */
#ifndef BURN_TESTS_UNIT_OPS_EVAL_BUILDER_H
#define BURN_TESTS_UNIT_OPS_EVAL_BUILDER_H

#include <burn/builder.h>
#include <burn/op_def.h>

typedef struct eval_builder eval_builder;

/* What a burn_value points at. */
typedef struct eval_value {
    burn_eval_operand x;
    int32_t code;
    char text[232];
    struct eval_value *next;
} eval_value;

eval_builder *eval_builder_new(void);
void eval_builder_free(eval_builder *e);
burn_builder eval_builder_of(eval_builder *e);

/* A tensor with these numbers, rounded to the dtype; an immediate of one number. */
burn_value *eval_tensor(eval_builder *e, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const double *numbers);
burn_value *eval_scalar(eval_builder *e, uint8_t dtype, double number);

/* The value, its elements, and an element as a double. */
eval_value *eval_of(const burn_value *value);
double eval_at(const burn_value *value, uint64_t k);

/* How many outputs a call has: as many as its roles or, where it has a program, as that says. */
uint32_t eval_outputs(const burn_op_def *def, const void *attrs);

/* Runs one op by its definition: infer, then eval, then rounding. Returns the code. */
int32_t eval_run(eval_builder *e, const burn_op_def *def, const void *attrs, uint32_t attrs_size,
                 burn_value *const *in, uint32_t n_in, burn_value **out);

/* The same through the definition's decomposition. */
int32_t eval_expand(eval_builder *e, const burn_op_def *def, const void *attrs,
                    uint32_t attrs_size, burn_value *const *in, uint32_t n_in, burn_value **out);

double eval_round(uint8_t dtype, double number);

#endif /* BURN_TESTS_UNIT_OPS_EVAL_BUILDER_H */
