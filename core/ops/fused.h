/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.h - what the definition of `fused`, its meaning and its samples share.
 *
 * A frame is a call's operands measured against its program: how many positions and rows there are.
 * Inside of a program shapes are few: [rows, length] or the shape of the first full operand,
 * [rows, 1] and []; steps broadcast between them as their ops do. A producer's operands keep their
 * own shapes. A frame is not copied: it points into itself. Pure.
 */
#ifndef BURN_CORE_OPS_FUSED_H
#define BURN_CORE_OPS_FUSED_H

#include "ops/rules.h"

#include <burn/fused.h>
#include <burn/op_attrs.h>

typedef struct burni_fused_frame {
    const burn_fused_program *program;
    const burn_meta *full; /* what a producer makes (`made`), else the first full operand: its shape
                              is that of full outputs */
    burn_meta made;
    int64_t n;
    int64_t length; /* of a row; 0 where the program has none */
    int64_t rows;
} burni_fused_frame;

/* Does a program, whose sections are in their places, begin with a producer? */
int burni_fused_has_producer(const burn_fused_program *p);

/* Is operand i of a step over lines one line, the same for all rows? */
int burni_fused_takes_line(const burn_fused_step *step, uint32_t i);
/* Is input i such an operand? */
int burni_fused_is_line(const burn_fused_program *p, uint32_t i);

/* Checks the program and that the operands are what it says. Sizes are BURN_E_SHAPE. */
int32_t burni_fused_measure(const void *attrs, uint32_t attrs_size, const burn_meta *const *in,
                            uint32_t n_in, burni_fused_frame *out, burn_err *err);

/* The dtype that a program takes its input i in; none when it is no good program. */
uint8_t burni_fused_input_dtype(const void *attrs, uint32_t size, uint32_t i);

/* Rank and dims of a space's values inside of the program. */
void burni_fused_inner(const burni_fused_frame *f, uint8_t space, burn_meta *out);
/* Rank and dims of an output. */
void burni_fused_outer(const burni_fused_frame *f, uint8_t space, burn_meta *out);

/* A generator's attributes (fused.h) with the shape of full values, in `out`. */
const burn_attrs_shape *burni_fused_sized(const burni_fused_frame *f, const void *attrs,
                                          burn_attrs_shape *out);

/* The step that gives output j. */
const burn_fused_step *burni_fused_giver(const burn_fused_program *p, uint32_t j);

int32_t burni_fused_eval(const burn_eval *a);
int32_t burni_fused_samples(uint32_t i, burn_sample *s);

#endif /* BURN_CORE_OPS_FUSED_H */
