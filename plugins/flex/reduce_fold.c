/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_fold.c - what a reduction does with a run of elements: start, fold, merge, finish
 * (reduce.h).
 *
 * Knows no layout and no thread: reduce.c and the fused programs cut rows into runs and parts, and
 * get the same bits when they cut alike. f32 sums add runs pairwise. To add a reduction: see
 * reduce.h.
 */
#include "reduce.h"

#include "flex.h"
#include "kernels.h"

#include <burn_sdk/half.h>
#include <math.h>
#include <string.h>

#define ENTRY(NAME, name) [BURN_##NAME] = &flex_fold_##name,
static const flex_fold_table *const folds[16] = {FLEX_FOREACH_WIDE_TYPE(ENTRY)};
#undef ENTRY

void flex_acc_start(flex_acc *acc, uint32_t kind, double shift)
{
    memset(acc, 0, sizeof(*acc));
    acc->shift = shift;
    if (kind == FLEX_R_PROD) {
        acc->f = 1.0;
        acc->u = 1;
    } else if (kind == FLEX_R_ALL) {
        acc->u = 1;
    }
}

/* f32 folds on vector code; sums of f32 stay f32 within a run. */
static void fold_f32_sum(flex_acc *acc, const void *x, uint64_t n)
{
    acc->f = flex_isa_kernels->reduce->sum(acc->f, x, n);
    acc->seen += (int64_t)n;
}

static void fold_f32_sum_ahead(flex_acc *acc, const void *x, uint64_t n)
{
    acc->f = flex_isa_kernels->reduce->sum_ahead(acc->f, x, n);
    acc->seen += (int64_t)n;
}

static void fold_f32_sum_wide(flex_acc *acc, const void *x, uint64_t n)
{
    acc->f += flex_isa_kernels->reduce->sum_f64(x, n);
    acc->seen += (int64_t)n;
}

static void fold_f32_extreme(flex_acc *acc, const float *x, uint64_t n, int largest, int where)
{
    if (n == 0 || acc->is_nan) {
        acc->seen += (int64_t)n;
        return;
    }
    const flex_reduce_table *t = flex_isa_kernels->reduce;
    float best = largest ? t->max(x, n) : t->min(x, n);
    int is_nan = best != best;
    int better = acc->seen == 0 || is_nan ||
                 (largest ? (double)best > acc->f : (double)best < acc->f);
    if (better) {
        uint64_t i = 0;
        while (where && i + 1 < n && (is_nan ? x[i] == x[i] : x[i] != best)) {
            i++;
        }
        acc->f = (double)best;
        acc->at = acc->seen + (int64_t)i;
        acc->is_nan = is_nan;
    }
    acc->seen += (int64_t)n;
}

/* Where the extreme is, takes as long to find as the extreme: only what asks for it looks. */
static void fold_f32_max(flex_acc *acc, const void *x, uint64_t n)
{
    fold_f32_extreme(acc, x, n, 1, 0);
}

static void fold_f32_min(flex_acc *acc, const void *x, uint64_t n)
{
    fold_f32_extreme(acc, x, n, 0, 0);
}

static void fold_f32_argmax(flex_acc *acc, const void *x, uint64_t n)
{
    fold_f32_extreme(acc, x, n, 1, 1);
}

static void fold_f32_argmin(flex_acc *acc, const void *x, uint64_t n)
{
    fold_f32_extreme(acc, x, n, 0, 1);
}

static void fold_f32_squares(flex_acc *acc, const void *x, uint64_t n)
{
    acc->f += flex_isa_kernels->reduce->sum_squares(x, acc->shift, n);
    acc->seen += (int64_t)n;
}

static void fold_f32_exps(flex_acc *acc, const void *x, uint64_t n)
{
    acc->f += flex_isa_kernels->reduce->sum_exp(x, (float)acc->shift, n);
    acc->seen += (int64_t)n;
}

static const flex_fold_fn f32_folds[FLEX_N_REDUCE] = {
    [FLEX_R_SUM] = fold_f32_sum,         [FLEX_R_MEAN] = fold_f32_sum_wide,
    [FLEX_R_MAX] = fold_f32_max,         [FLEX_R_MIN] = fold_f32_min,
    [FLEX_R_ARGMAX] = fold_f32_argmax,   [FLEX_R_ARGMIN] = fold_f32_argmin,
    [FLEX_R_SQUARES] = fold_f32_squares, [FLEX_R_EXPS] = fold_f32_exps,
};

static int is_half(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16;
}

static int is_signed(uint8_t dtype)
{
    return dtype == BURN_I8 || dtype == BURN_I16 || dtype == BURN_I32 || dtype == BURN_I64;
}

static int is_float(uint8_t dtype)
{
    return dtype >= BURN_F16;
}

flex_fold_fn flex_fold_of(uint8_t dtype, uint32_t kind)
{
    int half = is_half(dtype);
    uint8_t wide = half ? (uint8_t)BURN_F32 : dtype;
    /* Halves sum in f64: the result has few bits, the sum may have many terms. */
    if (wide == BURN_F32 && f32_folds[kind] != NULL) {
        return half && kind == FLEX_R_SUM ? fold_f32_sum_wide : f32_folds[kind];
    }
    return folds[wide]->fold[kind];
}

flex_fold_fn flex_fold_ahead(flex_fold_fn fold)
{
    return fold == fold_f32_sum ? fold_f32_sum_ahead : fold;
}

int64_t flex_fold_most(flex_fold_fn fold)
{
    int cuts = fold == fold_f32_sum || fold == fold_f32_sum_ahead;
    return cuts ? FLEX_REDUCE_PART : FLEX_REDUCE_RUN;
}

void flex_acc_merge(const flex_reducer *r, uint32_t kind, flex_acc *a, const flex_acc *b)
{
    int first = a->seen == 0;
    int64_t before = a->seen;
    a->seen += b->seen;
    if (kind == FLEX_R_PROD) {
        a->f *= b->f;
        a->u *= b->u;
    } else if (kind == FLEX_R_ANY) {
        a->u |= b->u;
    } else if (kind == FLEX_R_ALL) {
        a->u &= b->u;
    } else if (kind == FLEX_R_SUM || kind == FLEX_R_MEAN || kind == FLEX_R_SQUARES ||
               kind == FLEX_R_EXPS) {
        a->f += b->f;
        a->u += b->u;
    } else if (!a->is_nan && b->seen > 0) {
        int largest = kind == FLEX_R_MAX || kind == FLEX_R_ARGMAX;
        int more = a->f < b->f;
        int less = a->f > b->f;
        if (is_signed(r->dtype)) {
            more = (int64_t)a->u < (int64_t)b->u;
            less = (int64_t)a->u > (int64_t)b->u;
        } else if (!is_float(r->dtype)) {
            more = a->u < b->u;
            less = a->u > b->u;
        }
        if (first || b->is_nan || (largest ? more : less)) {
            a->f = b->f;
            a->u = b->u;
            a->at = before + b->at;
            a->is_nan = b->is_nan;
        }
    }
}

static void store_float(uint8_t dtype, char *out, double value)
{
    float single = (float)value;
    uint16_t half;
    if (dtype == BURN_F64) {
        memcpy(out, &value, sizeof(value));
    } else if (dtype == BURN_F32) {
        memcpy(out, &single, sizeof(single));
    } else {
        half = dtype == BURN_F16 ? burn_float_to_half(single) : burn_float_to_bfloat(single);
        memcpy(out, &half, sizeof(half));
    }
}

uint32_t flex_reduce_first(const flex_reducer *r)
{
    if (r->result == FLEX_RESULT_VAR) {
        return FLEX_R_MEAN;
    }
    return r->result == FLEX_RESULT_LOGSUM ? FLEX_R_MAX : FLEX_N_REDUCE;
}

int flex_acc_shift(const flex_reducer *r, int64_t n_red, flex_acc *acc, double *shift)
{
    if (r->result == FLEX_RESULT_VAR) {
        *shift = acc->f / (double)n_red;
        return 1;
    }
    *shift = n_red > 0 ? acc->f : -(double)INFINITY;
    if (acc->is_nan || isinf(*shift)) {
        acc->shift = acc->is_nan ? (double)NAN : *shift;
        acc->f = 1.0;
        return 0;
    }
    return 1;
}

void flex_acc_finish(const flex_reducer *r, int64_t n_red, const flex_acc *acc, char *out)
{
    const uint32_t size = flex_size(r->out_dtype);
    uint64_t whole = acc->u;
    double value = acc->f;
    switch (r->result) {
    case FLEX_RESULT_TRUTH:
        *out = (char)(acc->u != 0);
        return;
    case FLEX_RESULT_AT:
        memcpy(out, &acc->at, sizeof(acc->at));
        return;
    case FLEX_RESULT_MEAN:
        value = acc->f / (double)n_red;
        if (!is_float(r->dtype) && n_red > 0) {
            whole = is_signed(r->dtype) ? (uint64_t)((int64_t)acc->u / n_red)
                                        : acc->u / (uint64_t)n_red;
        }
        break;
    case FLEX_RESULT_VAR:
        value = acc->f / fmax((double)n_red - r->correction, 0.0);
        break;
    case FLEX_RESULT_LOGSUM:
        value = isinf(acc->shift) ? acc->shift : acc->shift + log(acc->f);
        value = n_red > 0 && value == -(double)INFINITY ? (double)NAN : value;
        break;
    default:
        break;
    }
    if (is_float(r->out_dtype)) {
        store_float(r->out_dtype, out, value);
    } else {
        memcpy(out, &whole, size); /* little-endian: the low bytes */
    }
}
