/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pair_fold.h - losses that map two operands element by element and then reduce all of it.
 *
 * Owns what a row and a step of a fused program must do alike: which loops make an element, in the
 * dtype that they compute in (halves in f32), and how these are summed: as reduce.h cuts a row, in
 * f64. To add a loss: an entry in loss.c and BURN_ROW_LINES on its row. Pure: constant tables.
 */
#ifndef BURN_PLUGINS_FLEX_PAIR_FOLD_H
#define BURN_PLUGINS_FLEX_PAIR_FOLD_H

#include "reduce.h"

typedef struct flex_pair_fold {
    uint64_t op;
    uint32_t map;  /* FLEX_B_*: of both operands */
    uint32_t kind; /* FLEX_R_*: what is summed of its result, in f64 */
} flex_pair_fold;

/* The op's, or NULL. */
const flex_pair_fold *flex_pair_fold_of(uint64_t op);

static inline flex_reducer flex_pair_reducer(const flex_pair_fold *pair, uint8_t dtype,
                                             uint8_t out_dtype, int mean)
{
    flex_reducer how = {.dtype = dtype, .out_dtype = out_dtype, .kind = (uint8_t)pair->kind};
    how.result = mean ? FLEX_RESULT_MEAN : FLEX_RESULT_SUM;
    return how;
}

#endif /* BURN_PLUGINS_FLEX_PAIR_FOLD_H */
