/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_columns.h - fused programs that reduce over the rows: values per column (burn/fused.h).
 *
 * Tasks are those of the single reduction: a block of rows by a strip of columns, whose rows go by
 * in order and are gathered as reduce_columns.h says. So the bits are those of the single op for
 * any number of threads, strips and tiles. Where there are values per row as well, a strip is a
 * whole row.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_COLUMNS_H
#define BURN_PLUGINS_FLEX_FUSED_COLUMNS_H

#include "fused_tile.h"

/* Strips, blocks and the tile of a job. 0: it cannot be done so. */
int flex_fused_choose_strips(flex_fused_job *job);

/* Runs all positions, and writes what is per column. */
void flex_fused_run_columns(flex_fused_job *job);

#endif /* BURN_PLUGINS_FLEX_FUSED_COLUMNS_H */
