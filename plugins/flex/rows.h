/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.h - the row arrays of the kernel files. plugin.c turns each into one row set.
 *
 * A kernel file owns its rows: it defines `flex_rows_<family>` and its count, and never looks into
 * another's. To add a family: one line in FLEX_FOREACH_ROWS, and the file that defines the two.
 */
#ifndef BURN_PLUGINS_FLEX_ROWS_H
#define BURN_PLUGINS_FLEX_ROWS_H

#include <burn/row.h>

/* X(family) */
#define FLEX_FOREACH_ROWS(X)                                                                       \
    X(attention)                                                                                   \
    X(cast)                                                                                        \
    X(conv)                                                                                        \
    X(fused)                                                                                       \
    X(gemm)                                                                                        \
    X(index)                                                                                       \
    X(loss)                                                                                        \
    X(movement)                                                                                    \
    X(norm)                                                                                        \
    X(optim)                                                                                       \
    X(pointwise)                                                                                   \
    X(pool)                                                                                        \
    X(random)                                                                                      \
    X(reduce)                                                                                      \
    X(softmax)

#define FLEX_DECLARE_ROWS(family)                                                                  \
    extern const burn_row flex_rows_##family[];                                                    \
    extern const uint32_t flex_rows_##family##_count;
FLEX_FOREACH_ROWS(FLEX_DECLARE_ROWS)
#undef FLEX_DECLARE_ROWS

/* Kernels that take many calls at once (optim.c). */
extern const burn_many flex_many;

#endif /* BURN_PLUGINS_FLEX_ROWS_H */
