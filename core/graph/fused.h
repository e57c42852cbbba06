/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.h - writing the program of a `burn.fused` call (format: burn/fused.h).
 *
 * A builder takes inputs, steps and outputs in any order that names only what is there already, and
 * writes the bytes in one form: head, inputs, outputs, steps, attributes, each right behind the
 * other; equal attributes once. It checks room only, not sense: burn_fused_check does. A builder is
 * plain memory without ownership, begun again for each program; one thread uses it. To add a
 * section to the format: its room in burni_fused_size, its bytes in burni_fused_finish, its rule in
 * burn_fused_check.
 */
#ifndef BURN_CORE_GRAPH_FUSED_H
#define BURN_CORE_GRAPH_FUSED_H

#include <burn/fused.h>
#include <burn/op_attrs.h>

struct burni_op;

/* The value of step s while a program is built: how many inputs there will be is not known yet. */
#define BURNI_FUSED_STEP (uint16_t)0x8000u

typedef struct burni_fused_builder {
    uint16_t n_in;
    uint16_t n_out;
    uint16_t n_steps;
    uint16_t row_input;
    uint16_t attrs_bytes; /* of `attrs` */
    uint16_t full;        /* something did not fit: the program cannot be finished */
    burn_fused_input inputs[BURN_MAX_OPERANDS];
    uint16_t outputs[BURN_MAX_OPERANDS];             /* values as the builder numbers them */
    burn_fused_step steps[BURN_FUSED_MAX_STEPS];     /* likewise; attrs_offset from `attrs` */
    uint64_t attrs[BURN_FUSED_MAX_BYTES / sizeof(uint64_t)];
} burni_fused_builder;

/* Nothing in it. Touches a few words only. [any] */
void burni_fused_begin(burni_fused_builder *b);

/*
 * Each returns the new value, BURN_FUSED_NONE when there is no room (BURN_MAX_OPERANDS inputs and
 * outputs together, BURN_FUSED_MAX_STEPS steps, BURN_FUSED_MAX_BYTES bytes). `args` are values that
 * these functions returned, or BURN_FUSED_NONE for an absent operand; `attrs` is copied.
 */
uint16_t burni_fused_add_input(burni_fused_builder *b, uint8_t dtype, uint8_t space,
                               uint8_t immediate);
uint16_t burni_fused_add_step(burni_fused_builder *b, uint64_t op, uint8_t dtype, uint8_t space,
                              const uint16_t *args, uint32_t n_args, const void *attrs,
                              uint32_t attrs_size);

/* The value of a step is an output; returns which, or BURN_FUSED_NONE without room. Giving a value
 * twice gives the same output. */
uint16_t burni_fused_add_output(burni_fused_builder *b, uint16_t value);

/* The input (an immediate i64) that is the length of a row. */
void burni_fused_set_row_input(burni_fused_builder *b, uint16_t input);

/* The attributes of a reduction step that gives values of that space: over the positions of a row,
 * or over the rows (COLUMN), with their dim kept. */
void burni_fused_axes(burn_attrs_axes *out, uint8_t space, int64_t correction);

/* Is it an op whose steps of a program are of that kind (BURN_FUSE_*)? */
int burni_fused_takes(const struct burni_op *op, uint32_t fuse);
/* The attributes of a generator in a program, from those of its call: without a shape. Returns
 * their size. */
uint32_t burni_fused_shapeless(const struct burni_op *op, const void *attrs, burn_attrs_shape *out);

/* The attributes of a step over lines, from those of its call: along axis 1. Returns their size. */
uint32_t burni_fused_lines(const struct burni_op *op, const void *attrs, void *out);

/* Bytes of the program as it stands. */
uint32_t burni_fused_size(const burni_fused_builder *b);

/*
 * Writes the program, steps numbered behind the inputs, to `out` (8-aligned). Returns its size; 0
 * when something did not fit before, or `cap` bytes are too few. The builder may go on afterwards.
 */
uint32_t burni_fused_finish(const burni_fused_builder *b, void *out, uint32_t cap);

#endif /* BURN_CORE_GRAPH_FUSED_H */
