/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_columns.h - f32 reductions over outer axes, many neighbouring outputs at once; cumsum.
 *
 * What gathers a strip of columns is an accumulator that rows are given to one by one, so that
 * fused programs, which make the rows, add in the same order: flex_columns_per_block rows in one,
 * then flex_columns_fold over what the blocks gave. How columns are cut into strips is no matter.
 */
#ifndef BURN_PLUGINS_FLEX_REDUCE_COLUMNS_H
#define BURN_PLUGINS_FLEX_REDUCE_COLUMNS_H

#include "flex.h"

typedef struct flex_columns {
    uint32_t kind; /* FLEX_R_* */
    uint32_t outer_rank;
    uint32_t red_rank;
    uint32_t zero;
    const float *x;
    float *out;
    int64_t columns;
    int64_t outer_dims[BURN_MAX_RANK];
    int64_t outer_strides[BURN_MAX_RANK];
    int64_t red_dims[BURN_MAX_RANK];
    int64_t red_strides[BURN_MAX_RANK];
    int64_t n_red;
    double correction;
} flex_columns;

/* Does it when the kind is one of sum, mean, max, min, var (SQUARES); returns 0 otherwise. */
int flex_reduce_columns(const flex_columns *c);

/* One strip. Rows come in order, each in one piece or in several from left to right. What a block
 * of rows gives is f32, of a mean f64: its sums. */
typedef struct flex_column_acc {
    uint32_t kind; /* FLEX_R_SUM, MEAN, MAX or MIN */
    uint32_t zero;
    int64_t columns;
    int64_t rows;    /* whole ones that were seen */
    uint64_t filled; /* sums: bit k: level k is in use */
    float *memory;   /* `columns` floats for each of its lines, at a multiple of 8 bytes */
} flex_column_acc;

/* How many lines of memory it needs for so many rows; 0: there is no such accumulator. */
uint32_t flex_column_lines(uint32_t kind, int64_t rows);
void flex_column_start(flex_column_acc *acc, uint32_t kind, int64_t columns, float *memory);
void flex_column_add(flex_column_acc *acc, int64_t column, const float *x, int64_t n);
void flex_column_end_row(flex_column_acc *acc);
/* There was a row at least, unless it is a sum. `n_red`: rows of the whole reduction, which this is
 * the end of; 0: what the block gave. */
void flex_column_finish(flex_column_acc *acc, int64_t n_red, void *out);
/* Bytes of an element of what a block gives. */
uint32_t flex_column_size(uint32_t kind);

/* Elements of the results of all blocks at most, where there are several; rows that a sum adds
 * before it goes on pairwise. */
enum { FLEX_COLUMNS_ROOM = 8192, FLEX_COLUMNS_GROUP = 64 };

/* Rows of a block: `rows`, or fewer where blocks are made to be shared out. */
int64_t flex_columns_per_block(int64_t rows, int64_t columns);
/* The result of `n_red` rows from those of n blocks, one behind the other. `are_groups`: each is
 * what FLEX_COLUMNS_GROUP rows of one block gave (the last one: those that were left). */
typedef struct flex_column_parts {
    uint32_t kind;
    int are_groups;
    int64_t n;
    int64_t columns;
    int64_t n_red;
} flex_column_parts;
void flex_columns_fold(const flex_column_parts *p, const void *x, float *out);

int32_t flex_launch_cumsum(const burn_call *call);
extern const burn_slot flex_slots_cumsum[2];

#endif /* BURN_PLUGINS_FLEX_REDUCE_COLUMNS_H */
