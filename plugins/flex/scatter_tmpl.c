/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scatter_tmpl.c - the modes of scatter for one element type, compiled once per type with T the
 * type, U its unsigned twin, S_NAME its dtype's name, and S_FLOAT 0, 1, 2 (f16) or 3 (bf16).
 *
 * Integers wrap; NaN wins min and max; halves are combined in f32 and rounded at each step.
 */
#include "scatter.h"

#include <burn_sdk/half.h>

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#if S_FLOAT == 2
#define WIDE float
#define GET(x) burn_half_to_float(x)
#define PUT(x) burn_float_to_half(x)
#elif S_FLOAT == 3
#define WIDE float
#define GET(x) burn_bfloat_to_float(x)
#define PUT(x) burn_float_to_bfloat(x)
#elif S_FLOAT == 1
#define WIDE T
#define GET(x) (x)
#define PUT(x) (x)
#else
#define WIDE U
#define GET(x) ((U)(x))
#define PUT(x) ((T)(x))
#endif

#define OP static inline __attribute__((always_inline))

OP T op_assign(T x, T y)
{
    (void)x;
    return y;
}

OP T op_add(T x, T y)
{
    WIDE a = GET(x);
    WIDE b = GET(y);
    return PUT((WIDE)(a + b));
}

OP T op_mul(T x, T y)
{
    WIDE a = GET(x);
    WIDE b = GET(y);
#if S_FLOAT
    return PUT((WIDE)(a * b));
#else
    return PUT((WIDE)((1u * a) * b));
#endif
}

OP T op_min(T x, T y)
{
#if S_FLOAT
    WIDE a = GET(x);
    WIDE b = GET(y);
    return a != a || a < b ? x : y;
#else
    return x < y ? x : y;
#endif
}

OP T op_max(T x, T y)
{
#if S_FLOAT
    WIDE a = GET(x);
    WIDE b = GET(y);
    return a != a || a > b ? x : y;
#else
    return x > y ? x : y;
#endif
}

OP void each_column(const flex_scatter_task *t, T (*f)(T, T))
{
    T *z = t->out;
    const T *v = (const T *)t->values + t->from_step;
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t at = t->out_offset[c] + t->at[c] * t->out_stride;
        z[at] = f(z[at], v[t->from_offset[c]]);
    }
}

static void run_assign(const flex_scatter_task *t)
{
    each_column(t, op_assign);
}

static void run_add(const flex_scatter_task *t)
{
    each_column(t, op_add);
}

static void run_mul(const flex_scatter_task *t)
{
    each_column(t, op_mul);
}

static void run_min(const flex_scatter_task *t)
{
    each_column(t, op_min);
}

static void run_max(const flex_scatter_task *t)
{
    each_column(t, op_max);
}

const flex_scatter_table PASTE(flex_scatter_, S_NAME) = {
    .mode =
        {
            [BURN_SCATTER_ASSIGN] = run_assign,
            [BURN_SCATTER_ADD] = run_add,
            [BURN_SCATTER_MUL] = run_mul,
            [BURN_SCATTER_MIN] = run_min,
            [BURN_SCATTER_MAX] = run_max,
        },
};
