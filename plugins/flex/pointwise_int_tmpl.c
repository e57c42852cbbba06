/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_int_tmpl.c - the elementwise ops of one integer type, compiled once per type and ISA
 * with T the type (int32_t), U its unsigned twin, IS_SIGNED 0 or 1 and TABLE the table's name.
 *
 * Arithmetic wraps, so it is done in U, widened to at least unsigned int where int would overflow.
 * Division, remainders and powers stop at the first element that has no answer; nothing raises a
 * signal. To add an op: its function, and a line in the lists at the end.
 */
#include "kernels.h"

#include "loops.h"

#define OP static inline __attribute__((always_inline))
#define BITS ((unsigned)(8 * sizeof(T)))


OP T op_neg(T x)
{
    return (T)(U)((U)0 - (U)x);
}

OP T op_abs(T x)
{
    return IS_SIGNED && x < (T)1 ? (T)(U)((U)0 - (U)x) : x;
}

OP T op_sign(T x)
{
    return (T)((x > (T)0) - (IS_SIGNED && x < (T)1 && x != (T)0));
}

OP T op_relu(T x)
{
    return IS_SIGNED && x < (T)1 ? (T)0 : x;
}

OP T op_bit_not(T x)
{
    return (T)~x;
}

/* Whole numbers already. */
OP T op_same(T x)
{
    return x;
}

OP int op_logical_not(T x)
{
    return x == (T)0;
}

OP int op_never(T x)
{
    (void)x;
    return 0;
}

OP int op_always(T x)
{
    (void)x;
    return 1;
}

OP T op_add(T x, T y)
{
    return (T)(U)((U)x + (U)y);
}

OP T op_sub(T x, T y)
{
    return (T)(U)((U)x - (U)y);
}

OP T op_mul(T x, T y)
{
    return (T)(U)((1u * (U)x) * (U)y);
}

OP T op_maximum(T x, T y)
{
    return x > y ? x : y;
}

OP T op_minimum(T x, T y)
{
    return x < y ? x : y;
}

OP T op_bit_and(T x, T y)
{
    return (T)(x & y);
}

OP T op_bit_or(T x, T y)
{
    return (T)(x | y);
}

OP T op_bit_xor(T x, T y)
{
    return (T)(x ^ y);
}

/* A count outside 0..bits-1 shifts everything out. */
OP T op_shift_left(T x, T y)
{
    return (U)y < BITS ? (T)(U)((1u * (U)x) << ((U)y & (BITS - 1))) : (T)0;
}

OP T op_shift_right(T x, T y)
{
    T out = IS_SIGNED && x < (T)1 && x != (T)0 ? (T)-1 : (T)0;
    return (U)y < BITS ? (T)(x >> ((U)y & (BITS - 1))) : out;
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

/* The ops that may have no answer: 0 stops the loop. */
OP int op_div(T x, T y, T *z)
{
    if (y == (T)0) {
        return 0;
    }
    *z = IS_SIGNED && y == (T)-1 ? op_neg(x) : (T)(x / y);
    return 1;
}

OP int op_fmod(T x, T y, T *z)
{
    if (y == (T)0) {
        return 0;
    }
    *z = IS_SIGNED && y == (T)-1 ? (T)0 : (T)(x % y);
    return 1;
}

/* Sign of the divisor. */
OP int op_remainder(T x, T y, T *z)
{
    T r = (T)0;
    if (!op_fmod(x, y, &r)) {
        return 0;
    }
    int other_side = IS_SIGNED && r != (T)0 && (r < (T)1) != (y < (T)1);
    *z = other_side ? (T)(r + y) : r;
    return 1;
}

OP int op_pow(T x, T y, T *z)
{
    if (IS_SIGNED && y < (T)1 && y != (T)0) {
        return 0;
    }
    U power = (U)1;
    U square = (U)x;
    for (U left = (U)y; left != 0; left = (U)(left >> 1)) {
        if ((left & 1) != 0) {
            power = (U)((1u * power) * square);
        }
        square = (U)((1u * square) * square);
    }
    *z = (T)power;
    return 1;
}

FLEX_LOOP uint64_t loop_partial(void *out, const void *in, const void *with, uint64_t n,
                                uint32_t mode, int (*f)(T, T, T *))
{
    T *z = out;
    const T *x = in;
    const T *y = with;
    const uint64_t step_x = (mode & FLEX_MODE_X_SCALAR) != 0 ? 0 : 1;
    const uint64_t step_y = (mode & FLEX_MODE_Y_SCALAR) != 0 ? 0 : 1;
    for (uint64_t i = 0; i < n; i++) {
        if (!f(x[i * step_x], y[i * step_y], &z[i])) {
            return i;
        }
    }
    return n;
}

/* X(NAME, name, function) */
#define FOREACH_UNARY(X)                                                                           \
    X(NEG, neg, op_neg)                                                                            \
    X(ABS, abs, op_abs)                                                                            \
    X(SIGN, sign, op_sign)                                                                         \
    X(RELU, relu, op_relu)                                                                         \
    X(BIT_NOT, bit_not, op_bit_not)                                                                \
    X(FLOOR, floor, op_same)                                                                       \
    X(CEIL, ceil, op_same)                                                                         \
    X(ROUND, round, op_same)                                                                       \
    X(TRUNC, trunc, op_same)

#define FOREACH_TEST(X)                                                                            \
    X(LOGICAL_NOT, logical_not, op_logical_not)                                                    \
    X(IS_NAN, is_nan, op_never)                                                                    \
    X(IS_INF, is_inf, op_never)                                                                    \
    X(IS_FINITE, is_finite, op_always)

#define FOREACH_BINARY(X)                                                                          \
    X(ADD, add, op_add)                                                                            \
    X(SUB, sub, op_sub)                                                                            \
    X(MUL, mul, op_mul)                                                                            \
    X(MAXIMUM, maximum, op_maximum)                                                                \
    X(MINIMUM, minimum, op_minimum)                                                                \
    X(BIT_AND, bit_and, op_bit_and)                                                                \
    X(BIT_OR, bit_or, op_bit_or)                                                                   \
    X(BIT_XOR, bit_xor, op_bit_xor)                                                                \
    X(SHIFT_LEFT, shift_left, op_shift_left)                                                       \
    X(SHIFT_RIGHT, shift_right, op_shift_right)

#define FOREACH_PARTIAL(X)                                                                         \
    X(DIV, div, op_div)                                                                            \
    X(REMAINDER, remainder, op_remainder)                                                          \
    X(FMOD, fmod, op_fmod)                                                                         \
    X(POW, pow, op_pow)

#define FOREACH_COMPARE(X)                                                                         \
    X(EQUAL, equal, op_equal)                                                                      \
    X(NOT_EQUAL, not_equal, op_not_equal)                                                          \
    X(LESS, less, op_less)                                                                         \
    X(LESS_EQUAL, less_equal, op_less_equal)                                                       \
    X(GREATER, greater, op_greater)                                                                \
    X(GREATER_EQUAL, greater_equal, op_greater_equal)                                              \
    X(LOGICAL_AND, logical_and, op_logical_and)                                                    \
    X(LOGICAL_OR, logical_or, op_logical_or)                                                       \
    X(LOGICAL_XOR, logical_xor, op_logical_xor)

#define UNARY(NAME, name, function)                                                                \
    static uint64_t run_##name(void *z, const void *x, uint64_t n)                                 \
    {                                                                                              \
        return loop_unary(z, x, n, function);                                                      \
    }
#define TEST(NAME, name, function)                                                                 \
    static uint64_t run_##name(void *z, const void *x, uint64_t n)                                 \
    {                                                                                              \
        return loop_test(z, x, n, function);                                                       \
    }
#define BINARY(NAME, name, function)                                                               \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_binary(z, x, y, n, mode, function);                                            \
    }
#define PARTIAL(NAME, name, function)                                                              \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_partial(z, x, y, n, mode, function);                                           \
    }
#define COMPARE(NAME, name, function)                                                              \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_compare(z, x, y, n, mode, function);                                           \
    }
FOREACH_UNARY(UNARY)
FOREACH_TEST(TEST)
FOREACH_BINARY(BINARY)
FOREACH_PARTIAL(PARTIAL)
FOREACH_COMPARE(COMPARE)

#define UNARY_ENTRY(NAME, name, function) [FLEX_U_##NAME] = run_##name,
#define BINARY_ENTRY(NAME, name, function) [FLEX_B_##NAME] = run_##name,
const flex_pointwise_table TABLE = {
    .unary = {FOREACH_UNARY(UNARY_ENTRY) FOREACH_TEST(UNARY_ENTRY)},
    .binary = {FOREACH_BINARY(BINARY_ENTRY) FOREACH_PARTIAL(BINARY_ENTRY)
                   FOREACH_COMPARE(BINARY_ENTRY)},
};
