/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_rig.h - writes a program of `burn.fused`, runs it by row, and runs its ops one by one.
 *
 * Inputs come before steps. Each value has the operand as the program sees it, in a layout of its
 * own, and its elements once more, dense, which the single ops use. Expected values are those of
 * the backend's own rows of single ops. One thread; the fixture must be open.
 */
#ifndef BURN_TESTS_UNIT_FLEX_FUSED_RIG_H
#define BURN_TESTS_UNIT_FLEX_FUSED_RIG_H

#include "fixture.h"

#include <burn/fused.h>

typedef enum rig_layout {
    RIG_DENSE,
    RIG_TURNED,    /* the transposed of a dense one */
    RIG_SPREAD,    /* every second element */
    RIG_MIRRORED,  /* negative stride */
    RIG_COLUMN,    /* one element per line */
    RIG_LINE,      /* one line, repeated */
    RIG_LAYOUTS
} rig_layout;

typedef struct rig_value {
    uint8_t dtype;
    uint8_t space;
    uint8_t is_input;
    uint8_t is_immediate;
    uint8_t is_length; /* or a line: no operand of maps */
    rig_layout layout;
    tensor operand; /* inputs */
    tensor dense;   /* all, as the single ops see and make them */
} rig_value;

enum { RIG_VALUES = BURN_MAX_OPERANDS + BURN_FUSED_MAX_STEPS };

typedef struct rig {
    int64_t n_rows;
    int64_t length; /* 0: no rows */
    int64_t n;      /* positions */
    uint16_t n_values;
    uint16_t n_in;
    uint16_t n_steps;
    uint16_t n_out;
    uint32_t n_folds;
    int divides;
    uint16_t seed;     /* immediates of generators; seed BURN_FUSED_NONE: there are none */
    uint16_t counter;
    uint16_t chance;
    uint32_t versions_ahead; /* of the one that flex knows */
    uint16_t in_place; /* this input's memory is output 0's, or BURN_FUSED_NONE */
    rig_value values[RIG_VALUES];
    burn_fused_step steps[BURN_FUSED_MAX_STEPS];
    uint16_t outputs[BURN_MAX_OPERANDS];
    uint64_t attrs[BURN_FUSED_MAX_BYTES / 8];
    uint16_t attrs_size;
    tensor results[BURN_MAX_OPERANDS];
} rig;

void rig_begin(rig *r, int64_t n_rows, int64_t length);
void rig_end(rig *r);

/* The new value. Inputs are filled at random. */
uint16_t rig_input(rig *r, uint8_t dtype, uint8_t space, rig_layout layout);
uint16_t rig_immediate(rig *r, uint8_t dtype, double value);
uint16_t rig_step(rig *r, uint64_t op, uint8_t dtype, const uint16_t *args, uint32_t n_args,
                  const void *attrs, size_t attrs_size);
/* A reduction of each row, and one over the rows, of the argument's dtype. */
uint16_t rig_fold(rig *r, uint64_t op, uint16_t x);
uint16_t rig_column(rig *r, uint64_t op, uint16_t x);
/* An op that goes over lines, of x's dtype; `others`: its further operands, full ones or lines. */
uint16_t rig_lines(rig *r, uint64_t op, uint16_t x, const uint16_t others[2]);
/* The last step is an output, and what is per column, and up to `more` others. */
void rig_outputs(rig *r, uint32_t more);

/* Row `index` of an op, or NULL. */
const burn_row *rig_row(uint64_t op, uint32_t index);

/* Prepares and launches with row `index` of burn.fused. Results are in `results`. */
int32_t rig_run(rig *r, uint32_t index);

/* Runs the program and its ops, compares results or failures. 0: the program was refused. */
int rig_check(rig *r);

#endif /* BURN_TESTS_UNIT_FLEX_FUSED_RIG_H */
