/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_tmpl.c - folds of one element type (reduce.h), compiled once per type with T the type,
 * S_NAME its dtype's name, S_FLOAT and S_BOOL 0 or 1.
 *
 * Plain loops, in order. f32 has faster folds for the common reductions in reduce_f32_tmpl.c; f16
 * and bf16 arrive converted to f32. NaN wins every maximum and minimum, the first one its position;
 * otherwise ties keep the lowest position.
 */
#include "reduce.h"

#include <math.h>

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#if S_BOOL
#define VALUE(x) ((T)((x) != 0))
#else
#define VALUE(x) (x)
#endif

#if S_FLOAT
#define FIELD f
#define WIDE double
#define IS_NAN(x) ((x) != (x))
#else
#define FIELD u
#define WIDE uint64_t
#define IS_NAN(x) 0
#endif

static void fold_sum(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
#if S_FLOAT
    /* Eight chains: shorter error growth, and the compiler may use vectors. */
    double part[8] = {0};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (uint32_t k = 0; k < 8; k++) {
            part[k] += (double)x[i + k];
        }
    }
    for (uint32_t k = 0; i < n; i++, k++) {
        part[k] += (double)x[i];
    }
    acc->f += ((part[0] + part[1]) + (part[2] + part[3])) +
              ((part[4] + part[5]) + (part[6] + part[7]));
#else
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += (uint64_t)VALUE(x[i]);
    }
    acc->u += sum;
#endif
    acc->seen += (int64_t)n;
}

static void fold_prod(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
    WIDE product = acc->FIELD;
    for (uint64_t i = 0; i < n; i++) {
        product *= (WIDE)VALUE(x[i]);
    }
    acc->FIELD = product;
    acc->seen += (int64_t)n;
}

/* The extreme of a run is taken over when it beats what was seen before. */
static void extreme(flex_acc *acc, const T *x, uint64_t n, int largest)
{
    uint64_t i = 0;
    if (n == 0 || acc->is_nan) {
        acc->seen += (int64_t)n;
        return;
    }
    T best = acc->seen == 0 ? VALUE(x[0]) : (T)acc->FIELD;
    int64_t at = acc->seen == 0 ? 0 : acc->at;
    for (; i < n; i++) {
        T v = VALUE(x[i]);
        if (IS_NAN(v)) {
            best = v;
            at = acc->seen + (int64_t)i;
            acc->is_nan = 1;
            break;
        }
        if (largest ? v > best : v < best) {
            best = v;
            at = acc->seen + (int64_t)i;
        }
    }
    acc->FIELD = (WIDE)best;
    acc->at = at;
    acc->seen += (int64_t)n;
}

static void fold_max(flex_acc *acc, const void *in, uint64_t n)
{
    extreme(acc, in, n, 1);
}

static void fold_min(flex_acc *acc, const void *in, uint64_t n)
{
    extreme(acc, in, n, 0);
}

static void fold_any(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
    int found = 0;
    for (uint64_t i = 0; i < n; i++) {
        found |= x[i] != (T)0;
    }
    acc->u |= (uint64_t)found;
    acc->seen += (int64_t)n;
}

static void fold_all(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
    int all = 1;
    for (uint64_t i = 0; i < n; i++) {
        all &= x[i] != (T)0;
    }
    acc->u &= (uint64_t)all;
    acc->seen += (int64_t)n;
}

static void cum_line(void *out, const void *in, uint64_t n, flex_acc *acc)
{
    T *z = out;
    const T *x = in;
    WIDE sum = acc->FIELD;
    for (uint64_t i = 0; i < n; i++) {
        sum += (WIDE)x[i];
        z[i] = (T)sum;
    }
    acc->FIELD = sum;
}

static void cum_rows(void *out, const void *in, uint64_t n, double *f, uint64_t *u)
{
    T *z = out;
    const T *x = in;
    WIDE *sums = (WIDE *)FIELD;
    (void)f;
    (void)u;
    for (uint64_t i = 0; i < n; i++) {
        sums[i] += (WIDE)x[i];
        z[i] = (T)sums[i];
    }
}

#if S_FLOAT
static void fold_squares(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        double d = (double)x[i] - acc->shift;
        sum += d * d;
    }
    acc->f += sum;
    acc->seen += (int64_t)n;
}

static void fold_exps(flex_acc *acc, const void *in, uint64_t n)
{
    const T *x = in;
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        sum += exp((double)x[i] - acc->shift);
    }
    acc->f += sum;
    acc->seen += (int64_t)n;
}
#endif

const flex_fold_table PASTE(flex_fold_, S_NAME) = {
    .fold =
        {
            [FLEX_R_SUM] = fold_sum,
            [FLEX_R_PROD] = fold_prod,
            [FLEX_R_MAX] = fold_max,
            [FLEX_R_MIN] = fold_min,
            [FLEX_R_MEAN] = fold_sum,
            [FLEX_R_ANY] = fold_any,
            [FLEX_R_ALL] = fold_all,
            [FLEX_R_ARGMAX] = fold_max,
            [FLEX_R_ARGMIN] = fold_min,
#if S_FLOAT
            [FLEX_R_SQUARES] = fold_squares,
            [FLEX_R_EXPS] = fold_exps,
#endif
        },
    .cum_line = cum_line,
    .cum_rows = cum_rows,
};
