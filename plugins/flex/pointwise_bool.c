/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_bool.c - elementwise loops of bool, and `where` for every element size.
 *
 * Any byte but 0 is true on input; every byte written is 0 or 1. So all ops first reduce their
 * operands to 0 and 1, and then are those of a one-bit number.
 */
#include "kernels.h"

#include <stddef.h>

#define T uint8_t
#include "loops.h"

#define OP static inline __attribute__((always_inline))

OP int op_not(T x)
{
    return x == 0;
}

OP int op_and(T x, T y)
{
    return (x != 0) & (y != 0);
}

OP int op_or(T x, T y)
{
    return (x != 0) | (y != 0);
}

OP int op_xor(T x, T y)
{
    return (x != 0) ^ (y != 0);
}

OP int op_equal(T x, T y)
{
    return (x != 0) == (y != 0);
}

OP int op_less(T x, T y)
{
    return (x == 0) & (y != 0);
}

OP int op_less_equal(T x, T y)
{
    return (x == 0) | (y != 0);
}

OP int op_greater(T x, T y)
{
    return (x != 0) & (y == 0);
}

OP int op_greater_equal(T x, T y)
{
    return (x != 0) | (y == 0);
}

static uint64_t run_not(void *z, const void *x, uint64_t n)
{
    return loop_test(z, x, n, op_not);
}

#define COMPARE(name)                                                                              \
    static uint64_t run_##name(void *z, const void *x, const void *y, uint64_t n, uint32_t mode)   \
    {                                                                                              \
        return loop_compare(z, x, y, n, mode, op_##name);                                          \
    }
COMPARE(and)
COMPARE(or)
COMPARE(xor)
COMPARE(equal)
COMPARE(less)
COMPARE(less_equal)
COMPARE(greater)
COMPARE(greater_equal)

const flex_pointwise_table flex_pointwise_bool = {
    .unary = {[FLEX_U_LOGICAL_NOT] = run_not, [FLEX_U_BIT_NOT] = run_not},
    .binary =
        {
            [FLEX_B_BIT_AND] = run_and,
            [FLEX_B_BIT_OR] = run_or,
            [FLEX_B_BIT_XOR] = run_xor,
            [FLEX_B_LOGICAL_AND] = run_and,
            [FLEX_B_LOGICAL_OR] = run_or,
            [FLEX_B_LOGICAL_XOR] = run_xor,
            [FLEX_B_EQUAL] = run_equal,
            [FLEX_B_NOT_EQUAL] = run_xor,
            [FLEX_B_LESS] = run_less,
            [FLEX_B_LESS_EQUAL] = run_less_equal,
            [FLEX_B_GREATER] = run_greater,
            [FLEX_B_GREATER_EQUAL] = run_greater_equal,
            [FLEX_B_MAXIMUM] = run_or,
            [FLEX_B_MINIMUM] = run_and,
        },
};

#define W uint8_t
#define WHERE where_1
#include "where_loop.h"
#define W uint16_t
#define WHERE where_2
#include "where_loop.h"
#define W uint32_t
#define WHERE where_4
#include "where_loop.h"
#define W uint64_t
#define WHERE where_8
#include "where_loop.h"

const flex_where_fn flex_where_by_size[4] = {where_1, where_2, where_4, where_8};
