/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * walk.h - in which order operands lie and are reduced, as far as the planner asks (plan.c).
 *
 * A pass goes over positions in row-major order. An operand that is dense along another axis than
 * the last one is turned: a pass reads it by blocks, which only work when all turned operands of
 * the pass are turned alike, and when rows, where it has them, lie within a block. Pure.
 */
#ifndef BURN_CORE_EXEC_WALK_H
#define BURN_CORE_EXEC_WALK_H

#include "exec/launch.h"

/* How an operand is turned: elements of its dense axis, positions from one to the next. */
typedef struct burni_turn {
    int64_t dim;
    int64_t inner; /* 0: it is not turned */
} burni_turn;

burni_turn burni_turn_of(const burn_operand *o);

/* The turn of a pass over both, in *out; 0: none serves both. Either may be not turned. */
int burni_turns_agree(const burni_turn *a, const burni_turn *b, burni_turn *out);
/* Can rows of that length (0: there are none) be walked by its blocks? */
int burni_turn_has_rows(const burni_turn *turn, int64_t length);

/* Does the row that serves the launch promise the bits of a step (BURN_ROW_LINES)? */
int burni_row_has_step(const burni_launch *launch);

/* Is it a reduction over the last dims of a dense operand? Over the first ones, with enough
 * left, and a row that promises the bits of a step (BURN_ROW_COLUMNS)? */
int burni_reduces_rows(const burni_launch *launch);
int burni_reduces_columns(const burni_launch *launch);
/* Can values per row and per column be had in one pass over rows of that length? */
int burni_rows_meet_columns(int64_t length);

#endif /* BURN_CORE_EXEC_WALK_H */
