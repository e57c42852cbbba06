/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_tile.h - what a launch and a tile of a fused program know: between fused_run.c and
 * fused_step.c.
 *
 * A job is a launch; all its tasks see it, and only `fault` changes. A tile belongs to a task:
 * `ptr` says where each value of the tile lies.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_TILE_H
#define BURN_PLUGINS_FLEX_FUSED_TILE_H

#include "fused.h"

#include <stdatomic.h>

typedef struct flex_fused_job {
    const flex_fused *f;
    uint64_t n;      /* positions */
    uint64_t length; /* of a row; 0: no rows */
    uint64_t cut;    /* runs that tiles should not cross; 0: none */
    uint64_t tile;   /* positions of a tile at most */
    uint64_t grain;  /* positions, or long rows, per task */
    uint64_t direct; /* bit j: output j is written by the step that makes it */
    _Atomic int fault;
    uint32_t n_direct;
    uint8_t stream;
    uint8_t alone; /* long rows: each on one thread */
    uint8_t fetch; /* ask for the next tile while this one runs */
    uint8_t by_step; /* long rows: no strand runs, so inner values are needed */
    uint8_t zero[4];
    /* From here on filled as far as needed. */
    char *data[FLEX_FUSED_OPERANDS];
    const burn_operand *operands[FLEX_FUSED_OPERANDS];
    flex_fused_place direct_places[BURN_MAX_OPERANDS]; /* results that are made where they belong */
    char *ones[FLEX_FUSED_VALUES]; /* ONE values */
} flex_fused_job;

struct flex_fused_tile {
    flex_fused_job *job;
    uint64_t at; /* first position */
    uint64_t n;
    int64_t row; /* first row */
    uint64_t n_rows;
    uint64_t length;
    flex_acc *accs; /* where reductions of long rows gather; NULL: rows are whole */
    char *full;     /* the buffers of FULL values */
    char *made;     /* the product's result from position `made_at` on */
    uint64_t made_at;
    double sums[FLEX_FUSED_ROWS]; /* of each row, by the fold that keeps them */
    char *ptr[FLEX_FUSED_VALUES];
};

#endif /* BURN_PLUGINS_FLEX_FUSED_TILE_H */
