/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_draft.h - a program that is being compiled: between fused_compile.c and fused_plan.c.
 *
 * Values and steps in the order they were made; stores are not among them yet. `reg` says which
 * value a value of the program became; `wide` and `full` which values are a value as f32 and as one
 * element per position. A failed draft has written its reason. One thread uses it.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_DRAFT_H
#define BURN_PLUGINS_FLEX_FUSED_DRAFT_H

#include "fused.h"

/* Stores come on top. */
enum { DRAFT_STEPS = FLEX_FUSED_STEPS - BURN_MAX_OPERANDS };

typedef struct draft {
    const burn_call *call;
    const burn_fused_program *program;
    uint16_t n_values;
    uint16_t n_steps;
    uint16_t n_ones;
    uint16_t n_folds;
    uint16_t n_columns;
    uint16_t operand_full;
    uint16_t cut;
    uint8_t failed;
    uint8_t stops;
    uint8_t looks_twice;
    uint8_t has_lines;
    const burn_row *product; /* or NULL */
    uint64_t product_bytes;
    uint64_t result_bytes; /* of the product's result */
    int hot;               /* the rest follows the product piece by piece */
    int passes_on;         /* and it is never there as a whole */
    uint32_t weight; /* of all maps, a cheap one counts 1 */
    flex_fused_value values[FLEX_FUSED_VALUES];
    flex_fused_step steps[FLEX_FUSED_STEPS];
    flex_fused_step ones[DRAFT_STEPS];
    flex_fused_step scrap; /* written to when there is no room */
    flex_fused_fold folds[FLEX_FUSED_FOLDS];
    flex_fused_column columns[FLEX_FUSED_COLUMNS];
    flex_fused_out outs[BURN_MAX_OPERANDS];
    uint16_t reg[BURN_MAX_OPERANDS + BURN_FUSED_MAX_STEPS];
    uint16_t wide[FLEX_FUSED_VALUES];
    uint16_t full[FLEX_FUSED_VALUES];
} draft;

/* The finished program in one allocation, or NULL with the reason. */
const flex_fused *flex_fused_plan(draft *d);

#endif /* BURN_PLUGINS_FLEX_FUSED_DRAFT_H */
