/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_float.h - the elementwise ops of a float type, as functions and their table.
 *
 * Included by the f32 and the f64 template (each once per ISA), with T the type, FN(name) the
 * elementary function of that name, C(name) the C function of that type, and TABLE the table's
 * name. Comparisons with NaN are false but not_equal; max, min and relu let NaN through. To add an
 * op: its function here, and a line in the lists at the end. No include guard.
 */
#include "loops.h"

#define OP static inline __attribute__((always_inline))

OP T op_neg(T x)
{
    return -x;
}

OP T op_abs(T x)
{
    return C(fabs)(x);
}

OP T op_sign(T x)
{
    return (T)((x > (T)0) - (x < (T)0));
}

OP T op_sqrt(T x)
{
    return C(sqrt)(x);
}

OP T op_rsqrt(T x)
{
    return (T)1 / C(sqrt)(x);
}

OP T op_recip(T x)
{
    return (T)1 / x;
}

OP T op_floor(T x)
{
    return C(floor)(x);
}

OP T op_ceil(T x)
{
    return C(ceil)(x);
}

/* Half to even. */
OP T op_round(T x)
{
    return C(rint)(x);
}

OP T op_trunc(T x)
{
    return C(trunc)(x);
}

OP T op_relu(T x)
{
    return x < (T)0 ? (T)0 : x;
}

OP T op_silu(T x)
{
    return x * FN(sigmoid)(x);
}

OP T op_exp(T x)
{
    return FN(exp)(x);
}

OP T op_expm1(T x)
{
    return FN(expm1)(x);
}

OP T op_log(T x)
{
    return FN(log)(x);
}

OP T op_log1p(T x)
{
    return FN(log1p)(x);
}

OP T op_asin(T x)
{
    return FN(asin)(x);
}

OP T op_acos(T x)
{
    return FN(acos)(x);
}

OP T op_atan(T x)
{
    return FN(atan)(x);
}

OP T op_sinh(T x)
{
    return FN(sinh)(x);
}

OP T op_cosh(T x)
{
    return FN(cosh)(x);
}

OP T op_tanh(T x)
{
    return FN(tanh)(x);
}

OP T op_erf(T x)
{
    return FN(erf)(x);
}

OP T op_sigmoid(T x)
{
    return FN(sigmoid)(x);
}

OP T op_softplus(T x)
{
    return FN(softplus)(x);
}

OP T op_log_sigmoid(T x)
{
    return FN(log_sigmoid)(x);
}

OP T op_gelu(T x)
{
    return FN(gelu)(x);
}

OP T op_gelu_tanh(T x)
{
    return FN(gelu_tanh)(x);
}

OP int op_logical_not(T x)
{
    return x == (T)0;
}

OP int op_is_nan(T x)
{
    return x != x;
}

OP int op_is_inf(T x)
{
    return C(fabs)(x) == (T)INFINITY;
}

OP int op_is_finite(T x)
{
    return C(fabs)(x) < (T)INFINITY;
}

OP T op_add(T x, T y)
{
    return x + y;
}

OP T op_sub(T x, T y)
{
    return x - y;
}

OP T op_mul(T x, T y)
{
    return x * y;
}

OP T op_div(T x, T y)
{
    return x / y;
}

/* C's fmod: exact, sign of x. */
OP T op_fmod(T x, T y)
{
    return C(fmod)(x, y);
}

/* Python's %: sign of y. */
OP T op_remainder(T x, T y)
{
    T r = C(fmod)(x, y);
    return r != (T)0 && (r < (T)0) != (y < (T)0) ? r + y : r;
}

OP T op_pow(T x, T y)
{
    return FN(pow)(x, y);
}

OP T op_atan2(T y, T x)
{
    return FN(atan2)(y, x);
}

OP T op_maximum(T x, T y)
{
    T m = x > y ? x : y;
    return x != x ? x : m;
}

OP T op_minimum(T x, T y)
{
    T m = x < y ? x : y;
    return x != x ? x : m;
}

OP T op_gelu_grad(T x, T g)
{
    return g * FN(gelu_slope)(x);
}

OP T op_gelu_tanh_grad(T x, T g)
{
    return g * FN(gelu_tanh_slope)(x);
}

OP T op_relu_grad(T y, T g)
{
    return y > (T)0 ? g : (T)0;
}

OP int op_equal(T x, T y)
{
    return x == y;
}

OP int op_not_equal(T x, T y)
{
    return x != y;
}

OP int op_less(T x, T y)
{
    return x < y;
}

OP int op_less_equal(T x, T y)
{
    return x <= y;
}

OP int op_greater(T x, T y)
{
    return x > y;
}

OP int op_greater_equal(T x, T y)
{
    return x >= y;
}

OP int op_logical_and(T x, T y)
{
    return (x != (T)0) & (y != (T)0);
}

OP int op_logical_or(T x, T y)
{
    return (x != (T)0) | (y != (T)0);
}

OP int op_logical_xor(T x, T y)
{
    return (x != (T)0) ^ (y != (T)0);
}

/* X(NAME, name); the plain ones are an instruction or two. */
#define FOREACH_PLAIN_UNARY(X)                                                                     \
    X(NEG, neg)                                                                                    \
    X(ABS, abs)                                                                                    \
    X(RELU, relu)

#define FOREACH_PLAIN_BINARY(X)                                                                    \
    X(ADD, add)                                                                                    \
    X(SUB, sub)                                                                                    \
    X(MUL, mul)                                                                                    \
    X(MAXIMUM, maximum)                                                                            \
    X(MINIMUM, minimum)                                                                            \
    X(RELU_GRAD, relu_grad)

#define FOREACH_UNARY(X)                                                                           \
    X(SIGN, sign)                                                                                  \
    X(EXPM1, expm1)                                                                                \
    X(LOG, log)                                                                                    \
    X(LOG1P, log1p)                                                                                \
    X(SQRT, sqrt)                                                                                  \
    X(RSQRT, rsqrt)                                                                                \
    X(RECIP, recip)                                                                                \
    X(ASIN, asin)                                                                                  \
    X(ACOS, acos)                                                                                  \
    X(ATAN, atan)                                                                                  \
    X(SINH, sinh)                                                                                  \
    X(COSH, cosh)                                                                                  \
    X(ERF, erf)                                                                                    \
    X(SIGMOID, sigmoid)                                                                            \
    X(FLOOR, floor)                                                                                \
    X(CEIL, ceil)                                                                                  \
    X(ROUND, round)                                                                                \
    X(TRUNC, trunc)                                                                                \
    X(SILU, silu)                                                                                  \
    X(SOFTPLUS, softplus)                                                                          \
    X(LOG_SIGMOID, log_sigmoid)                                                                    \
    X(GELU, gelu)                                                                                  \
    X(GELU_TANH, gelu_tanh)

#define FOREACH_TEST(X)                                                                            \
    X(LOGICAL_NOT, logical_not)                                                                    \
    X(IS_NAN, is_nan)                                                                              \
    X(IS_INF, is_inf)                                                                              \
    X(IS_FINITE, is_finite)

#define FOREACH_BINARY(X)                                                                          \
    X(REMAINDER, remainder)                                                                        \
    X(FMOD, fmod)                                                                                  \
    X(POW, pow)                                                                                    \
    X(ATAN2, atan2)                                                                                \
    X(GELU_GRAD, gelu_grad)                                                                        \
    X(GELU_TANH_GRAD, gelu_tanh_grad)

#define FOREACH_COMPARE(X)                                                                         \
    X(EQUAL, equal)                                                                                \
    X(NOT_EQUAL, not_equal)                                                                        \
    X(LESS, less)                                                                                  \
    X(LESS_EQUAL, less_equal)                                                                      \
    X(GREATER, greater)                                                                            \
    X(GREATER_EQUAL, greater_equal)                                                                \
    X(LOGICAL_AND, logical_and)                                                                    \
    X(LOGICAL_OR, logical_or)                                                                      \
    X(LOGICAL_XOR, logical_xor)

#define UNARY(NAME, name)                                                                          \
    static uint64_t run_##name(void *z, const void *x, uint64_t n)                                 \
    {                                                                                              \
        return loop_unary(z, x, n, op_##name);                                                     \
    }
#define TEST(NAME, name)                                                                           \
    static uint64_t run_##name(void *z, const void *x, uint64_t n)                                 \
    {                                                                                              \
        return loop_test(z, x, n, op_##name);                                                      \
    }
#define BINARY(NAME, name)                                                                         \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_binary(z, x, y, n, mode, op_##name);                                           \
    }
#define COMPARE(NAME, name)                                                                        \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_compare(z, x, y, n, mode, op_##name);                                          \
    }
#define PLAIN_UNARY(NAME, name)                                                                    \
    static uint64_t run_##name(void *z, const void *x, uint64_t n)                                 \
    {                                                                                              \
        return loop_unary_plain(z, x, n, op_##name);                                               \
    }
#define PLAIN_BINARY(NAME, name)                                                                   \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_binary_plain(z, x, y, n, mode, op_##name);                                     \
    }
FOREACH_PLAIN_UNARY(PLAIN_UNARY)
FOREACH_UNARY(UNARY)
#if defined(FLEX_LOOPS_PAST)
#define PAST_UNARY(NAME, name)                                                                     \
    static uint64_t past_##name(void *z, const void *x, uint64_t n)                                \
    {                                                                                              \
        return loop_unary_past(z, x, n, op_##name);                                                \
    }
#define PAST_BINARY(NAME, name)                                                                    \
    static uint64_t past_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)  \
    {                                                                                              \
        return loop_binary_past(z, x, y, n, mode, op_##name);                                      \
    }
FOREACH_PLAIN_UNARY(PAST_UNARY)
FOREACH_UNARY(PAST_UNARY)
FOREACH_PLAIN_BINARY(PAST_BINARY)
#if !defined(PAST_EXP)
PAST_UNARY(EXP, exp)
#define PAST_EXP past_exp
#endif
#if !defined(PAST_TANH)
PAST_UNARY(TANH, tanh)
#define PAST_TANH past_tanh
#endif
#define PAST_UNARY_ENTRY(NAME, name) [FLEX_U_##NAME] = past_##name,
#define PAST_BINARY_ENTRY(NAME, name) [FLEX_B_##NAME] = past_##name,
#endif
#if !defined(RUN_EXP)
UNARY(EXP, exp)
#define RUN_EXP run_exp
#endif
#if !defined(RUN_TANH)
UNARY(TANH, tanh)
#define RUN_TANH run_tanh
#endif
BINARY(DIV, div)
#if !defined(RUN_DIV)
#define RUN_DIV run_div
#endif
FOREACH_TEST(TEST)
FOREACH_PLAIN_BINARY(PLAIN_BINARY)
FOREACH_BINARY(BINARY)
FOREACH_COMPARE(COMPARE)

#define UNARY_ENTRY(NAME, name) [FLEX_U_##NAME] = run_##name,
#define BINARY_ENTRY(NAME, name) [FLEX_B_##NAME] = run_##name,
/* The trigonometric loops come from the includer: run_sin, run_cos, run_tan;
 * RUN_EXP, RUN_TANH, RUN_DIV, PAST_EXP and PAST_TANH name its own loops where it has them. */
const flex_pointwise_table TABLE = {
    .unary =
        {
            FOREACH_PLAIN_UNARY(UNARY_ENTRY) FOREACH_UNARY(UNARY_ENTRY)
                FOREACH_TEST(UNARY_ENTRY)[FLEX_U_SIN] = run_sin,
            [FLEX_U_COS] = run_cos,
            [FLEX_U_TAN] = run_tan,
            [FLEX_U_EXP] = RUN_EXP,
            [FLEX_U_TANH] = RUN_TANH,
        },
    .binary = {FOREACH_PLAIN_BINARY(BINARY_ENTRY) FOREACH_BINARY(BINARY_ENTRY)
                   FOREACH_COMPARE(BINARY_ENTRY)[FLEX_B_DIV] = RUN_DIV},
#if defined(FLEX_LOOPS_PAST)
    .unary_past = {FOREACH_PLAIN_UNARY(PAST_UNARY_ENTRY) FOREACH_UNARY(PAST_UNARY_ENTRY)[
                       FLEX_U_EXP] = PAST_EXP,
                   [FLEX_U_TANH] = PAST_TANH},
    .binary_past = {FOREACH_PLAIN_BINARY(PAST_BINARY_ENTRY)},
#endif
};
