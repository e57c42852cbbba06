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
#include "reduce_columns.h"

#include <stdatomic.h>

/* Turned operands that a program may have (fused_turn.h). */
enum { FLEX_FUSED_TURNED = 4 };

typedef struct flex_fused_turned {
    uint32_t operand;
    uint32_t zero;
    uint64_t run;   /* positions that are `step` elements apart, behind its dense axis */
    int64_t step;
    uint64_t panel; /* where its panel begins, in bytes */
} flex_fused_turned;

typedef struct flex_fused_job {
    const flex_fused *f;
    const burn_fused_program *program;
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
    uint8_t turn_mixed; /* operands are turned in different ways */
    uint8_t turn_large; /* one of them is large */
    uint8_t by_group; /* values per column: blocks are the groups of one sum */
    uint8_t zero;
    uint32_t n_turned;
    uint32_t zero_2;
    /* Of turned operands: elements of the dense axis, positions from one to the next, and the lines
     * and the width of a block. */
    uint64_t turn_dim;
    uint64_t turn_inner;
    uint64_t turn_lines;
    uint64_t turn_width;
    /* Of values per column: columns of a strip, rows of a block, and where the results of blocks
     * gather, or the results. */
    uint64_t strip;
    uint64_t per_block;
    uint64_t per_task; /* blocks */
    char *gathered[FLEX_FUSED_COLUMNS];
    /* From here on filled as far as needed. */
    char *data[FLEX_FUSED_OPERANDS];
    const burn_operand *operands[FLEX_FUSED_OPERANDS];
    flex_fused_turned turned[FLEX_FUSED_TURNED];
    flex_fused_place direct_places[BURN_MAX_OPERANDS]; /* results that are made where they belong */
    char *ones[FLEX_FUSED_VALUES]; /* ONE values */
} flex_fused_job;

struct flex_fused_tile {
    flex_fused_job *job;
    uint64_t at; /* first position */
    uint64_t n;
    uint64_t next; /* where the tile after this one begins */
    int64_t row; /* first row */
    uint64_t n_rows;
    uint64_t length;
    flex_column_acc *columns; /* one per value per column */
    uint64_t column;  /* of a strip: that of the tile's first element */
    uint64_t per_row; /* elements of each row in the tile: all of a strip's, or one row's */
    flex_acc *accs; /* where reductions of long rows gather; NULL: rows are whole */
    char *full;     /* the buffers of FULL values */
    char *panels;   /* of turned operands; NULL: none is filled */
    uint64_t panel_at; /* the tile's first element in each */
    char *made;     /* the product's result from position `made_at` on */
    uint64_t made_at;
    double sums[FLEX_FUSED_ROWS]; /* of each row, by the fold that keeps them */
    char *ptr[FLEX_FUSED_VALUES];
};

/* A task's first tile: its buffers are in their places. `rows` NULL: where row values lie stays. */
void flex_fused_start_tile(flex_fused_tile *t, flex_fused_job *job, char *full, char *rows);

/* All steps for positions at .. at + n - 1; `next` is set. 0: an element has no answer, and the job
 * knows. */
int flex_fused_run_tile(flex_fused_tile *t, uint64_t at, uint64_t n);

#endif /* BURN_PLUGINS_FLEX_FUSED_TILE_H */
