/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_columns.h - f32 reductions over outer axes, many neighbouring outputs at once; cumsum.
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

int32_t flex_launch_cumsum(const burn_call *call);
extern const burn_slot flex_slots_cumsum[2];

#endif /* BURN_PLUGINS_FLEX_REDUCE_COLUMNS_H */
