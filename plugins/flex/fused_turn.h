/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_turn.h - operands of a fused program that are dense along another axis than the last.
 *
 * Position by position such an operand asks memory for a line per element. Here the positions are
 * walked by blocks instead: a few neighbours along the operand's dense axis by a strip of the
 * positions behind it. The block of each such operand is copied into a panel, in the order of
 * positions, and the tiles of the block find it there as if it were dense. All of them must be
 * turned alike: same length of the dense axis, same number of positions from one of its elements to
 * the next. Nothing here depends on the op; bits do not depend on the walk.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_TURN_H
#define BURN_PLUGINS_FLEX_FUSED_TURN_H

#include "fused_tile.h"

/* Finds what is turned among the operands that all positions read. */
void flex_fused_find_turned(flex_fused_job *job, const burn_fused_program *program);

/* May the job, whose tile is chosen, be walked by blocks? `rows_fit`: rows are no longer than a
 * tile. If not, and nothing is large, it is no longer turned: it is read position by position. */
int flex_fused_in_blocks(flex_fused_job *job, int rows_fit);

/* Runs all positions of such a job. */
void flex_fused_run_turned(flex_fused_job *job);

/* The elements of a tile of operand `i` in its panel, or NULL when it has none. */
static inline char *flex_fused_panel(const flex_fused_tile *t, uint32_t i)
{
    const flex_fused_job *job = t->job;
    for (uint32_t k = 0; k < job->n_turned && t->panels != NULL; k++) {
        if (job->turned[k].operand == i) {
            return t->panels + job->turned[k].panel + t->panel_at * job->f->size[i];
        }
    }
    return NULL;
}

#endif /* BURN_PLUGINS_FLEX_FUSED_TURN_H */
