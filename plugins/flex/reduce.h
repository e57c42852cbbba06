/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce.h - folds: how reductions take in dense runs of elements.
 *
 * One accumulator serves all: floats gather in `f` (f64), integers in `u` (wrapping). A fold takes
 * `n` dense elements that follow those it has seen; reduce.c cuts a call into such runs and merges
 * accumulators in a fixed order. To add a reduction: an index here, a fold in reduce_tmpl.c, start,
 * merge and finish in reduce_fold.c, a line of FLEX_FOREACH_REDUCTION.
 */
#ifndef BURN_PLUGINS_FLEX_REDUCE_H
#define BURN_PLUGINS_FLEX_REDUCE_H

#include "types.h"

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

/*
 * How a row is cut, which its bits depend on: runs go to the fold one by one, and each part of a
 * row has an accumulator of its own, which are merged in order.
 */
enum { FLEX_REDUCE_RUN = 4096, FLEX_REDUCE_PART = 1 << 17 };

/* What becomes of an accumulator in the end. */
enum flex_result {
    FLEX_RESULT_SUM,
    FLEX_RESULT_MEAN,
    FLEX_RESULT_TRUTH,
    FLEX_RESULT_AT,
    FLEX_RESULT_VAR,
    FLEX_RESULT_LOGSUM
};

/* One reduction of one dtype. */
typedef struct flex_reducer {
    double correction;
    uint8_t dtype; /* of the elements; halves are folded as f32 */
    uint8_t out_dtype;
    uint8_t kind;   /* FLEX_R_* */
    uint8_t result; /* FLEX_RESULT_* */
    uint8_t zero[4];
} flex_reducer;

/* The fold of a kind over elements of a dtype; for halves, over what was widened to f32. */
flex_fold_fn flex_fold_of(uint8_t dtype, uint32_t kind);

/* The same for elements that no near cache holds: it asks for those behind, where that gains. */
flex_fold_fn flex_fold_ahead(flex_fold_fn fold);

/* The most elements that it takes at a time: a run, or a part, where it cuts runs itself. */
int64_t flex_fold_most(flex_fold_fn fold);
void flex_acc_start(flex_acc *acc, uint32_t kind, double shift);
/* `b` follows `a` in the row. */
void flex_acc_merge(const flex_reducer *r, uint32_t kind, flex_acc *a, const flex_acc *b);
/*
 * var and logsumexp look at a row twice: the kind of the first fold, FLEX_N_REDUCE for all others.
 * From its accumulator comes the shift of the second; 0: there is none, `acc` is to be finished.
 */
uint32_t flex_reduce_first(const flex_reducer *r);
int flex_acc_shift(const flex_reducer *r, int64_t n_red, flex_acc *acc, double *shift);
/* Writes the result of a row of n_red elements. */
void flex_acc_finish(const flex_reducer *r, int64_t n_red, const flex_acc *acc, char *out);

/*
 * X(NAME, name, kind, result, slots): the reductions over axes. Each takes axes as its attributes,
 * var their correction.
 */
#define FLEX_FOREACH_REDUCTION(X)                                                                  \
    X(SUM, sum, FLEX_R_SUM, FLEX_RESULT_SUM, same)                                                 \
    X(PROD, prod, FLEX_R_PROD, FLEX_RESULT_SUM, same)                                              \
    X(MAX, max, FLEX_R_MAX, FLEX_RESULT_SUM, same)                                                 \
    X(MIN, min, FLEX_R_MIN, FLEX_RESULT_SUM, same)                                                 \
    X(MEAN, mean, FLEX_R_MEAN, FLEX_RESULT_MEAN, same)                                             \
    X(ANY, any, FLEX_R_ANY, FLEX_RESULT_TRUTH, truth)                                              \
    X(ALL, all, FLEX_R_ALL, FLEX_RESULT_TRUTH, truth)                                              \
    X(VAR, var, FLEX_R_SQUARES, FLEX_RESULT_VAR, float)                                            \
    X(LOGSUMEXP, logsumexp, FLEX_R_EXPS, FLEX_RESULT_LOGSUM, float)

/* Running sums: along one line, and of `n` columns at once. Accumulators carry over. */
typedef void (*flex_cum_line_fn)(void *out, const void *x, uint64_t n, flex_acc *acc);
typedef void (*flex_cum_rows_fn)(void *out, const void *x, uint64_t n, double *f, uint64_t *u);

typedef struct flex_fold_table {
    flex_fold_fn fold[FLEX_N_REDUCE];
    flex_cum_line_fn cum_line;
    flex_cum_rows_fn cum_rows;
} flex_fold_table;

#define FLEX_DECLARE_FOLD(NAME, name) extern const flex_fold_table flex_fold_##name;
FLEX_FOREACH_WIDE_TYPE(FLEX_DECLARE_FOLD)
#undef FLEX_DECLARE_FOLD

#endif /* BURN_PLUGINS_FLEX_REDUCE_H */
