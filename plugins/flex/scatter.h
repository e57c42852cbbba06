/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scatter.h - one task of a scatter: what scatter_tmpl.c does for its element type.
 */
#ifndef BURN_PLUGINS_FLEX_SCATTER_H
#define BURN_PLUGINS_FLEX_SCATTER_H

#include "types.h"

#include <burn/op_attrs.h>
#include <stdint.h>

/* A set of columns, each visited in the order of the index along the axis. Offsets in elements. */
typedef struct flex_scatter_task {
    void *out;
    const void *values;
    const int64_t *at;          /* index values, `columns` per step */
    const int64_t *out_offset;  /* of each column */
    const int64_t *from_offset;
    int64_t out_stride;  /* along the axis */
    int64_t from_step;   /* offset of the current step in values */
    int64_t columns;
} flex_scatter_task;

/* By mode (BURN_SCATTER_*). Index values are in range already. */
typedef void (*flex_scatter_fn)(const flex_scatter_task *t);
typedef struct flex_scatter_table {
    flex_scatter_fn mode[5];
} flex_scatter_table;

/* Elements are moved and added: halves have loops as well. */
#define FLEX_FOREACH_SCATTER_TYPE(X)                                                               \
    FLEX_FOREACH_WIDE_TYPE(X)                                                                      \
    X(F16, f16)                                                                                    \
    X(BF16, bf16)

#define FLEX_DECLARE_SCATTER(NAME, name) extern const flex_scatter_table flex_scatter_##name;
FLEX_FOREACH_SCATTER_TYPE(FLEX_DECLARE_SCATTER)
#undef FLEX_DECLARE_SCATTER

#endif /* BURN_PLUGINS_FLEX_SCATTER_H */
