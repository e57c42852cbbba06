/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce.h - folds: how reductions take in dense runs of elements.
 *
 * One accumulator serves all: floats gather in `f` (f64), integers in `u` (wrapping). A fold takes
 * `n` dense elements that follow those it has seen; reduce.c cuts a call into such runs and merges
 * accumulators in a fixed order. To add a reduction: an index here, a fold in reduce_tmpl.c, start,
 * merge and finish in reduce.c, a row.
 */
#ifndef BURN_PLUGINS_FLEX_REDUCE_H
#define BURN_PLUGINS_FLEX_REDUCE_H

#include <burn/dtype.h>
#include <stdint.h>

enum {
    FLEX_R_SUM,
    FLEX_R_PROD,
    FLEX_R_MAX,
    FLEX_R_MIN,
    FLEX_R_MEAN,
    FLEX_R_ANY,
    FLEX_R_ALL,
    FLEX_R_ARGMAX,
    FLEX_R_ARGMIN,
    FLEX_R_SQUARES, /* sum of (x - shift)^2 */
    FLEX_R_EXPS,    /* sum of exp(x - shift) */
    FLEX_N_REDUCE
};

typedef struct flex_acc {
    double f;
    double shift;
    uint64_t u;
    int64_t at;   /* position of the extreme */
    int64_t seen; /* elements folded so far */
    int64_t is_nan;
} flex_acc;

typedef void (*flex_fold_fn)(flex_acc *acc, const void *x, uint64_t n);

/* Running sums: along one line, and of `n` columns at once. Accumulators carry over. */
typedef void (*flex_cum_line_fn)(void *out, const void *x, uint64_t n, flex_acc *acc);
typedef void (*flex_cum_rows_fn)(void *out, const void *x, uint64_t n, double *f, uint64_t *u);

typedef struct flex_fold_table {
    flex_fold_fn fold[FLEX_N_REDUCE];
    flex_cum_line_fn cum_line;
    flex_cum_rows_fn cum_rows;
} flex_fold_table;

/* X(NAME, name) */
#define FLEX_FOREACH_FOLD_TYPE(X)                                                                  \
    X(BOOL, bool)                                                                                  \
    X(U8, u8)                                                                                      \
    X(I8, i8)                                                                                      \
    X(U16, u16)                                                                                    \
    X(I16, i16)                                                                                    \
    X(U32, u32)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U64, u64)                                                                                    \
    X(I64, i64)                                                                                    \
    X(F32, f32)                                                                                    \
    X(F64, f64)

#define FLEX_DECLARE_FOLD(NAME, name) extern const flex_fold_table flex_fold_##name;
FLEX_FOREACH_FOLD_TYPE(FLEX_DECLARE_FOLD)
#undef FLEX_DECLARE_FOLD

#endif /* BURN_PLUGINS_FLEX_REDUCE_H */
