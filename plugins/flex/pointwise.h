/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise.h - which loop does an elementwise op: what fused programs find by op id.
 *
 * Made from the lists that the rows of the single ops are made from (pointwise.c), so that both run
 * the same loops. `index` is into the tables of kernels.h. To add an op: its line in a list there,
 * or an entry of its own; a new kind also needs its function in fused_compile.c.
 */
#ifndef BURN_PLUGINS_FLEX_POINTWISE_H
#define BURN_PLUGINS_FLEX_POINTWISE_H

#include "kernels.h"

enum {
    FLEX_MAP_NONE = 0,
    FLEX_MAP_UNARY,
    FLEX_MAP_BINARY,
    FLEX_MAP_WHERE,
    FLEX_MAP_CLAMP,
    FLEX_MAP_CAST,
    FLEX_MAP_COPY,
    FLEX_N_MAP_KINDS
};

typedef struct flex_map {
    uint8_t kind;    /* FLEX_MAP_* */
    uint8_t index;   /* FLEX_U_* or FLEX_B_* */
    uint8_t by_form; /* 1: the tanh form (burn_attrs_gelu) is the next index */
    uint8_t stops;   /* 1: on integers the loop may stop where there is no answer */
    uint32_t grain;  /* elements per task of the single op: the fewer, the dearer */
} flex_map;

/* NULL: no such loop. [any] */
const flex_map *flex_map_of(uint64_t op);

#endif /* BURN_PLUGINS_FLEX_POINTWISE_H */
