/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * binary.c - arithmetic, bit and logical ops of two tensors, element by element (ids 40 to 57).
 *
 * Each op is a row of BINARY_OPS at the end. Operands broadcast; either may be an immediate, so
 * builder code here hands an operand alone to another op only through burni_b_tensor. Integers wrap
 * and division by zero is an error of the data. To add one: an eval function, a row, and a gradient
 * and decomposition where there are such; its id row stands in <burn/op_list.h>.
 */
#include "ops/pointwise.h"

#include <math.h>

/* ---- meaning --------------------------------------------------------------------------------- */

static double add_f(double x, double y)
{
    return x + y;
}

static double sub_f(double x, double y)
{
    return x - y;
}

static double mul_f(double x, double y)
{
    return x * y;
}

static double div_f(double x, double y)
{
    return x / y;
}

/* Sign of the divisor, as in Python; the sign of a zero result is not specified. */
static double remainder_f(double x, double y)
{
    double r = fmod(x, y);
    return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r;
}

static double maximum_f(double x, double y)
{
    if (isnan(x) || isnan(y)) {
        return (double)NAN;
    }
    return x > y ? x : y;
}

static double minimum_f(double x, double y)
{
    if (isnan(x) || isnan(y)) {
        return (double)NAN;
    }
    return x < y ? x : y;
}

static uint64_t add_u(uint64_t x, uint64_t y)
{
    return x + y;
}

static uint64_t sub_u(uint64_t x, uint64_t y)
{
    return x - y;
}

static uint64_t mul_u(uint64_t x, uint64_t y)
{
    return x * y;
}

static uint64_t div_u(uint64_t x, uint64_t y)
{
    return x / y;
}

static uint64_t fmod_u(uint64_t x, uint64_t y)
{
    return x % y;
}

static uint64_t pow_u(uint64_t x, uint64_t y)
{
    uint64_t result = 1;
    for (; y > 0; y >>= 1) {
        if (y & 1) {
            result *= x;
        }
        x *= x;
    }
    return result;
}

static uint64_t maximum_u(uint64_t x, uint64_t y)
{
    return x > y ? x : y;
}

static uint64_t minimum_u(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static uint64_t bit_and_u(uint64_t x, uint64_t y)
{
    return x & y;
}

static uint64_t bit_or_u(uint64_t x, uint64_t y)
{
    return x | y;
}

static uint64_t bit_xor_u(uint64_t x, uint64_t y)
{
    return x ^ y;
}

/* Signed integers wrap like unsigned ones. */
static int64_t add_i(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static int64_t sub_i(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y);
}

static int64_t mul_i(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

/* The smallest integer divided by -1 wraps to itself. */
static int64_t div_i(int64_t x, int64_t y)
{
    return y == -1 ? sub_i(0, x) : x / y;
}

static int64_t fmod_i(int64_t x, int64_t y)
{
    return y == -1 ? 0 : x % y;
}

static int64_t remainder_i(int64_t x, int64_t y)
{
    int64_t r = fmod_i(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t pow_i(int64_t x, int64_t y)
{
    return (int64_t)pow_u((uint64_t)x, (uint64_t)y);
}

static int64_t maximum_i(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static int64_t minimum_i(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t bit_and_i(int64_t x, int64_t y)
{
    return x & y;
}

static int64_t bit_or_i(int64_t x, int64_t y)
{
    return x | y;
}

static int64_t bit_xor_i(int64_t x, int64_t y)
{
    return x ^ y;
}

static int32_t check_divisor(const burn_eval *a, const char *op)
{
    burni_walk w;
    if (burni_is_float(a->in[1].meta.dtype)) {
        return BURN_OK;
    }
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        if (burni_eval_get_int(&a->in[1], w.at[1]) == 0) {
            return burni_fail(a->err, BURN_E_DATA,
                              "%s: integer division by zero at element %llu of the divisor", op,
                              (unsigned long long)w.at[1]);
        }
    }
    return BURN_OK;
}

static int32_t eval_add(const burn_eval *a)
{
    return burni_map2(a, add_f, add_i, add_u);
}

static int32_t eval_sub(const burn_eval *a)
{
    return burni_map2(a, sub_f, sub_i, sub_u);
}

static int32_t eval_mul(const burn_eval *a)
{
    return burni_map2(a, mul_f, mul_i, mul_u);
}

static int32_t eval_div(const burn_eval *a)
{
    int32_t rc = check_divisor(a, "div");
    return rc != BURN_OK ? rc : burni_map2(a, div_f, div_i, div_u);
}

static int32_t eval_remainder(const burn_eval *a)
{
    int32_t rc = check_divisor(a, "remainder");
    return rc != BURN_OK ? rc : burni_map2(a, remainder_f, remainder_i, fmod_u);
}

static int32_t eval_fmod(const burn_eval *a)
{
    int32_t rc = check_divisor(a, "fmod");
    return rc != BURN_OK ? rc : burni_map2(a, fmod, fmod_i, fmod_u);
}

static int32_t eval_pow(const burn_eval *a)
{
    burni_walk w;
    int is_signed = burn_dtype_class(a->in[1].meta.dtype) == BURN_CLASS_INT;
    for (int more = is_signed && burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        if (a->in[1].i[w.at[1]] < 0) {
            return burni_fail(a->err, BURN_E_DATA,
                              "pow: integer power with the negative exponent %lld at element %llu; "
                              "cast to a float dtype first",
                              (long long)a->in[1].i[w.at[1]], (unsigned long long)w.at[1]);
        }
    }
    return burni_map2(a, pow, pow_i, pow_u);
}

static int32_t eval_maximum(const burn_eval *a)
{
    return burni_map2(a, maximum_f, maximum_i, maximum_u);
}

static int32_t eval_minimum(const burn_eval *a)
{
    return burni_map2(a, minimum_f, minimum_i, minimum_u);
}

static int32_t eval_atan2(const burn_eval *a)
{
    return burni_map2(a, atan2, NULL, NULL);
}

static int32_t eval_bit_and(const burn_eval *a)
{
    return burni_map2(a, NULL, bit_and_i, bit_and_u);
}

static int32_t eval_bit_or(const burn_eval *a)
{
    return burni_map2(a, NULL, bit_or_i, bit_or_u);
}

static int32_t eval_bit_xor(const burn_eval *a)
{
    return burni_map2(a, NULL, bit_xor_i, bit_xor_u);
}

/* A shift by a negative count, or by the width and more, moves every bit out. */
static int32_t shift(const burn_eval *a, int left)
{
    const burn_eval_operand *x = &a->in[0];
    uint64_t bits = 8u * (uint64_t)burn_dtype_size(x->meta.dtype);
    int is_signed = burn_dtype_class(x->meta.dtype) == BURN_CLASS_INT;
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        uint64_t count = (uint64_t)burni_eval_get_int(&a->in[1], w.at[1]);
        int out = count >= bits;
        if (!is_signed) {
            uint64_t v = x->u[w.at[0]];
            a->out[0].u[w.k] = out ? 0 : left ? v << count : v >> count;
        } else if (left) {
            uint64_t v = (uint64_t)x->i[w.at[0]];
            a->out[0].i[w.k] = out ? 0 : (int64_t)(v << count);
        } else {
            int64_t v = x->i[w.at[0]];
            uint64_t n = out ? bits - 1 : count;
            a->out[0].i[w.k] = v >= 0 ? v >> n : ~(~v >> n);
        }
    }
    return BURN_OK;
}

static int32_t eval_shift_left(const burn_eval *a)
{
    return shift(a, 1);
}

static int32_t eval_shift_right(const burn_eval *a)
{
    return shift(a, 0);
}

typedef int (*truth_fn)(int x, int y);

static int32_t logical(const burn_eval *a, truth_fn fn)
{
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        int x = burni_eval_get(&a->in[0], w.at[0]) != 0.0;
        int y = burni_eval_get(&a->in[1], w.at[1]) != 0.0;
        a->out[0].i[w.k] = fn(x, y);
    }
    return BURN_OK;
}

static int truth_and(int x, int y)
{
    return x && y;
}

static int truth_or(int x, int y)
{
    return x || y;
}

static int truth_xor(int x, int y)
{
    return x != y;
}

static int32_t eval_logical_and(const burn_eval *a)
{
    return logical(a, truth_and);
}

static int32_t eval_logical_or(const burn_eval *a)
{
    return logical(a, truth_or);
}

static int32_t eval_logical_xor(const burn_eval *a)
{
    return logical(a, truth_xor);
}

/* ---- gradients: x, y are in[0], in[1]; z is out[0]; g is grad_out[0] ------------------------- */

#define XY (BURN_SAVE_IN(0) | BURN_SAVE_IN(1))

static const uint32_t save_none[2] = {0, 0};
static const uint32_t save_other[2] = {BURN_SAVE_IN(1), BURN_SAVE_IN(0)};
static const uint32_t save_xy[2] = {XY, XY};
static const uint32_t save_div[2] = {BURN_SAVE_IN(1), BURN_SAVE_IN(1) | BURN_SAVE_OUT(0)};
static const uint32_t save_mod[2] = {0, XY | BURN_SAVE_OUT(0)};
static const uint32_t save_pow[2] = {XY, XY | BURN_SAVE_OUT(0)};

static int32_t vjp_add(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = a->grad_out[0];
        }
    }
    return BURN_OK;
}

static int32_t vjp_sub(const burn_builder *b, const burn_vjp *a)
{
    if (a->wanted[0]) {
        a->grad_in[0] = a->grad_out[0];
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_neg(b, a->grad_out[0]);
    }
    return BURN_OK;
}

static int32_t vjp_mul(const burn_builder *b, const burn_vjp *a)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = burn_b_mul(b, a->grad_out[0], a->in[1 - i]);
        }
    }
    return BURN_OK;
}

/* g / y and -(g / y) z */
static int32_t vjp_div(const burn_builder *b, const burn_vjp *a)
{
    burn_value *part = burn_b_div(b, a->grad_out[0], a->in[1]);
    if (a->wanted[0]) {
        a->grad_in[0] = part;
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_neg(b, burn_b_mul(b, part, a->out[0]));
    }
    return BURN_OK;
}

/* z = x - q y with an integer q, constant near x and y: g and -g q, q = (x - z) / y */
static int32_t vjp_mod(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = a->grad_out[0];
    if (a->wanted[0]) {
        a->grad_in[0] = g;
    }
    if (a->wanted[1]) {
        burn_value *whole = burn_b_sub(b, a->in[0], a->out[0]);
        burn_value *q = burn_b_round(b, burn_b_div(b, whole, a->in[1]));
        a->grad_in[1] = burn_b_neg(b, burn_b_mul(b, g, q));
    }
    return BURN_OK;
}

/* y x^(y - 1), where x^0 stands in for the power when y is 0, which makes the result 0 for any x */
static burn_value *pow_slope_x(const burn_builder *b, burn_value *x, burn_value *y)
{
    burn_value *yt = burni_b_tensor(b, y);
    burn_value *is_zero = burn_b_equal_num(b, yt, 0.0);
    burn_value *less_one = burn_b_sub_num(b, yt, 1.0);
    burn_value *power = burn_b_where(b, is_zero, burn_b_num(b, yt, 0.0), less_one);
    return burn_b_mul(b, yt, burn_b_pow(b, x, power));
}

/* z log(x), with log(1) in the place of log(0) where y >= 0; NaN for a negative base */
static burn_value *pow_slope_y(const burn_builder *b, burn_value *x, burn_value *y, burn_value *z)
{
    burn_value *xt = burni_b_tensor(b, x);
    burn_value *at_zero = burn_b_equal_num(b, xt, 0.0);
    burn_value *masked = burn_b_logical_and(b, at_zero, burn_b_greater_equal_num(b, y, 0.0));
    burn_value *safe = burn_b_where(b, masked, burn_b_num(b, xt, 1.0), xt);
    return burn_b_mul(b, z, burn_b_log(b, safe));
}

static int32_t vjp_pow(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = a->grad_out[0];
    if (a->wanted[0]) {
        a->grad_in[0] = burn_b_mul(b, g, pow_slope_x(b, a->in[0], a->in[1]));
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_mul(b, g, pow_slope_y(b, a->in[0], a->in[1], a->out[0]));
    }
    return BURN_OK;
}

/* The share of operand i: all of g where it was taken, half where both are equal, else 0. */
static int32_t choose(const burn_builder *b, const burn_vjp *a, int larger)
{
    burn_value *g = a->grad_out[0];
    burn_value *zero = burn_b_num(b, g, 0.0);
    burn_value *tie = burn_b_equal(b, a->in[0], a->in[1]);
    burn_value *half = burn_b_mul_num(b, g, 0.5);
    for (uint32_t i = 0; i < 2; i++) {
        if (!a->wanted[i]) {
            continue;
        }
        burn_value *mine = a->in[i];
        burn_value *other = a->in[1 - i];
        burn_value *lost = larger ? burn_b_less(b, mine, other) : burn_b_less(b, other, mine);
        a->grad_in[i] = burn_b_where(b, tie, half, burn_b_where(b, lost, zero, g));
    }
    return BURN_OK;
}

static int32_t vjp_maximum(const burn_builder *b, const burn_vjp *a)
{
    return choose(b, a, 1);
}

static int32_t vjp_minimum(const burn_builder *b, const burn_vjp *a)
{
    return choose(b, a, 0);
}

/* g y / (x^2 + y^2) and -g x / (x^2 + y^2); 0 at the origin */
static int32_t vjp_atan2(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = burni_b_tensor(b, a->in[0]);
    burn_value *y = burni_b_tensor(b, a->in[1]);
    burn_value *square = burn_b_add(b, burn_b_mul(b, x, x), burn_b_mul(b, y, y));
    burn_value *origin = burn_b_equal_num(b, square, 0.0);
    burn_value *below = burn_b_where(b, origin, burn_b_num(b, square, 1.0), square);
    burn_value *part = burn_b_div(b, a->grad_out[0], below);
    if (a->wanted[0]) {
        a->grad_in[0] = burn_b_mul(b, part, y);
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_neg(b, burn_b_mul(b, part, x));
    }
    return BURN_OK;
}

/* ---- decompositions -------------------------------------------------------------------------- */

/* The operands of a commutative op, a tensor first. */
static void tensor_first(const burn_builder *b, const burn_expand *a, burn_value **x,
                         burn_value **y)
{
    uint32_t first = a->in_meta[0].kind == BURN_IMMEDIATE;
    *x = burni_b_tensor(b, a->in[first]);
    *y = a->in[1 - first];
}

/* r = fmod(x, y), plus y where r is not 0 and its sign is not y's */
static int32_t expand_remainder(const burn_builder *b, const burn_expand *a)
{
    burn_value *r = burn_b_fmod(b, a->in[0], a->in[1]);
    a->out[0] = r;
    if (burn_dtype_class(a->in_meta[0].dtype) == BURN_CLASS_UINT) {
        return BURN_OK;
    }
    burn_value *y = burni_b_tensor(b, a->in[1]);
    burn_value *below = burn_b_less_num(b, r, 0.0);
    burn_value *other = burn_b_not_equal(b, below, burn_b_less_num(b, y, 0.0));
    burn_value *whole = burn_b_not_equal_num(b, r, 0.0);
    burn_value *move = burn_b_logical_and(b, whole, other);
    a->out[0] = burn_b_where(b, move, burn_b_add(b, r, y), r);
    return BURN_OK;
}

/* x < y ? x : y, which passes a NaN of y on; a NaN of x is put in */
static int32_t expand_minimum(const burn_builder *b, const burn_expand *a)
{
    burn_value *x;
    burn_value *y;
    tensor_first(b, a, &x, &y);
    burn_value *least = burn_b_where(b, burn_b_less(b, x, y), x, y);
    if (burni_is_float(a->in_meta[0].dtype)) {
        least = burn_b_where(b, burn_b_equal(b, x, x), least, x);
    }
    a->out[0] = least;
    return BURN_OK;
}

static burn_value *truth(const burn_builder *b, burn_value *x)
{
    burn_meta meta = burn_b_meta(b, x);
    return meta.dtype == BURN_BOOL ? x : burn_b_cast(b, x, BURN_BOOL);
}

static int32_t expand_logical_and(const burn_builder *b, const burn_expand *a)
{
    burn_value *x;
    burn_value *y;
    tensor_first(b, a, &x, &y);
    burn_value *yes = truth(b, burni_b_tensor(b, y));
    a->out[0] = burn_b_where(b, truth(b, x), yes, b->immediate(b->ctx, BURN_BOOL, 0.0));
    return BURN_OK;
}

static int32_t expand_logical_or(const burn_builder *b, const burn_expand *a)
{
    burn_value *x;
    burn_value *y;
    tensor_first(b, a, &x, &y);
    burn_value *no = truth(b, burni_b_tensor(b, y));
    a->out[0] = burn_b_where(b, truth(b, x), b->immediate(b->ctx, BURN_BOOL, 1.0), no);
    return BURN_OK;
}

static int32_t expand_logical_xor(const burn_builder *b, const burn_expand *a)
{
    burn_value *x;
    burn_value *y;
    tensor_first(b, a, &x, &y);
    burn_value *same = burn_b_equal(b, truth(b, x), truth(b, burni_b_tensor(b, y)));
    a->out[0] = burn_b_equal_num(b, same, 0.0);
    return BURN_OK;
}

/* ---- samples: one set per domain ------------------------------------------------------------- */

#define POINTS(list, list_y)                                                                       \
    .n_points = sizeof(list) / sizeof((list)[0]), .points = list, .points_y = list_y

static const double divided[] = {-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 7.0, -7.0};
static const double divisors[] = {2.0, 3.0, 1.0, 2.0, -1.0, 3.0, -2.0, 2.0};
static const double bases[] = {-2.0, -2.0, 0.0, 0.0, 2.0, 1.0, -1.0, 3.0};
static const double powers[] = {2.0, 3.0, 0.0, 1.0, 7.0, 9.0, 5.0, 4.0};
static const double equals[] = {1.0, 2.0, 0.0, -0.0, 3.0, -1.0};
static const double equals_y[] = {1.0, 1.0, -0.0, 0.0, 4.0, -1.0};
static const double quarters_x[] = {0.0, 0.0, 1.0, -1.0, 1.0, -1.0, -0.0, -0.0};
static const double quarters_y[] = {1.0, -1.0, 0.0, 0.0, -1.0, 1.0, 1.0, -1.0};
static const double shifted[] = {1.0, 1.0, 3.0, 100.0, 1.0, 1.0, 77.0};
static const double counts[] = {0.0, 7.0, 8.0, 1.0, 31.0, 64.0, 3.0};

#define SIGNED (BURN_SET_FLOAT | BURN_SET_SIGNED)

/* clang-format off */
static const burni_domain domain_sum = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_NORMAL, .wrong = BURN_BOOL, .number = 3.0,
    .tolerance = 1.0, .grad_tolerance = 64.0, .special = BURN_SET_NUMERIC};
static const burni_domain domain_div = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_UNIFORM, .wrong = BURN_BOOL, .lo_y = 1.0,
    .hi_y = 5.0, .number = 3.0, .tolerance = 1.0, .grad_tolerance = 128.0,
    .special = BURN_SET_FLOAT, .signed_points = SIGNED, POINTS(divided, divisors)};
/* Quotients stay away from integers, where the remainder jumps. */
static const burni_domain domain_mod = {
    .fill = BURN_FILL_UNIFORM, .fill_y = BURN_FILL_UNIFORM, .wrong = BURN_BOOL, .lo = 5.3,
    .hi = 5.8, .lo_y = 2.0, .hi_y = 2.6, .number = 4.0, .tolerance = 8.0, .grad_tolerance = 128.0,
    .special = BURN_SET_FLOAT, .signed_points = SIGNED, POINTS(divided, divisors)};
/* The same, but a remainder of 0 may have either sign. */
static const burni_domain domain_remainder = {
    .fill = BURN_FILL_UNIFORM, .fill_y = BURN_FILL_UNIFORM, .wrong = BURN_BOOL,
    .flags = BURN_SAMPLE_ANY_ZERO, .lo = 5.3, .hi = 5.8, .lo_y = 2.0, .hi_y = 2.6, .number = 4.0,
    .tolerance = 8.0, .grad_tolerance = 128.0, .special = BURN_SET_FLOAT, .signed_points = SIGNED,
    POINTS(divided, divisors)};
static const burni_domain domain_pow = {
    .fill = BURN_FILL_UNIFORM, .fill_y = BURN_FILL_UNIFORM, .wrong = BURN_BOOL, .lo = 0.5,
    .hi = 2.5, .lo_y = 0.0, .hi_y = 3.0, .number = 2.0, .tolerance = 16.0,
    .grad_tolerance = 256.0, .special = BURN_SET_FLOAT, .signed_points = SIGNED,
    POINTS(bases, powers)};
static const burni_domain domain_order = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_NORMAL, .wrong = BURN_BOOL, .number = 0.0,
    .flags = BURN_SAMPLE_ANY_ZERO, .tolerance = 0.0, .grad_tolerance = 64.0,
    .special = BURN_SET_NUMERIC, .signed_points = SIGNED, POINTS(equals, equals_y)};
static const burni_domain domain_plane = {
    .fill = BURN_FILL_NONZERO, .fill_y = BURN_FILL_NONZERO, .wrong = BURN_I32, .number = 1.5,
    .tolerance = 4.0, .grad_tolerance = 128.0, .special = BURN_SET_FLOAT,
    POINTS(quarters_x, quarters_y)};
static const burni_domain domain_bits = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_NORMAL, .wrong = BURN_F32, .number = 1.0,
    .special = BURN_SET_INT, POINTS(shifted, counts)};
static const burni_domain domain_shift = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_UNIFORM, .wrong = BURN_F32, .lo_y = 0.0,
    .hi_y = 7.0, .number = 2.0, .special = BURN_SET_INT, POINTS(shifted, counts)};
static const burni_domain domain_truth = {
    .fill = BURN_FILL_NORMAL, .fill_y = BURN_FILL_NORMAL, .number = 1.0, .special = BURN_SET_ANY,
    POINTS(equals, equals_y)};
/* clang-format on */

/*
 * Integers for which the machine's own division stops the program, or which it cannot divide by:
 * the smallest of each width by -1, and 0; and exponents below 0.
 */
#define SMALLEST(least) {least, -7.0, least, 7.0, least, 1.0}
static const double smallest[4][6] = {SMALLEST(-128.0), SMALLEST(-32768.0),
                                      SMALLEST(-2147483648.0), SMALLEST(-9223372036854775808.0)};
#undef SMALLEST
static const double minus_ones[] = {-1.0, -1.0, 1.0, -1.0, 2.0, -1.0};
static const double dividends[] = {7.0, 0.0, 3.0, 100.0, 1.0};
static const double some_zero[] = {3.0, 1.0, 2.0, 5.0, 0.0};
static const double last_zero[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8,
                                   9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 0};
static const double some_negative[] = {3.0, 1.0, 2.0, -1.0, 0.0};

typedef struct stop_row {
    const char *name;
    uint64_t dtypes;
    int64_t n;
    uint32_t n_x;
    uint32_t n_y;
    const double *x;
    const double *y;
    int32_t error;
} stop_row;

#define SMALLEST(dtype, k)                                                                         \
    {"smallest " #dtype " by -1", BURN_BIT(dtype), 66, 6, 6, smallest[k], minus_ones, BURN_OK}
static const stop_row division_rows[] = {
    SMALLEST(I8, 0),
    SMALLEST(I16, 1),
    SMALLEST(I32, 2),
    SMALLEST(I64, 3),
    {"division by zero", BURN_SET_INT, 135, 5, 5, dividends, some_zero, BURN_E_DATA},
    {"division by one last zero", BURN_SET_INT, 33, 5, 33, dividends, last_zero, BURN_E_DATA},
};
#undef SMALLEST
static const stop_row power_rows[] = {
    {"negative exponent", BURN_SET_SIGNED, 135, 5, 5, dividends, some_negative, BURN_E_DATA},
};

/* The samples of a domain, then these. */
static int32_t stop_samples(uint32_t i, burn_sample *s, const burni_domain *d, uint32_t n_rows,
                            const stop_row *rows)
{
    int32_t rc = burni_samples_binary(i, s, d);
    uint32_t n = 0;
    if (rc != BURN_E_END) {
        return rc;
    }
    while (burni_samples_binary(n, s, d) == BURN_OK) {
        n++;
    }
    if (i - n >= n_rows) {
        return BURN_E_END;
    }
    const stop_row *row = &rows[i - n];
    burni_sample_begin(s, row->name, 0.0, 0.0);
    burni_sample_tensor(s, 0, 0, BURN_FILL_VALUES, 1, &row->n);
    burni_sample_values(s, 0, row->n_x, row->x);
    burni_sample_tensor(s, 1, 0, BURN_FILL_VALUES, 1, &row->n);
    burni_sample_values(s, 1, row->n_y, row->y);
    s->dtypes = row->dtypes;
    s->flags = BURN_SAMPLE_NO_GRAD;
    if (row->error != BURN_OK) {
        burni_sample_error(s, row->error);
    }
    return BURN_OK;
}

#define BINARY_DOMAINS(X)                                                                          \
    X(sum)                                                                                         \
    X(order)                                                                                       \
    X(plane)                                                                                       \
    X(bits)                                                                                        \
    X(shift)                                                                                       \
    X(truth)

#define BINARY_SAMPLES(domain)                                                                     \
    static int32_t samples_##domain(uint32_t i, burn_sample *out)                                  \
    {                                                                                              \
        return burni_samples_binary(i, out, &domain_##domain);                                     \
    }
BINARY_DOMAINS(BINARY_SAMPLES)
#undef BINARY_SAMPLES

#define STOP_SAMPLES(domain, rows)                                                                 \
    static int32_t samples_##domain(uint32_t i, burn_sample *out)                                  \
    {                                                                                              \
        return stop_samples(i, out, &domain_##domain, sizeof(rows) / sizeof((rows)[0]), rows);     \
    }
STOP_SAMPLES(div, division_rows)
STOP_SAMPLES(mod, division_rows)
STOP_SAMPLES(remainder, division_rows)
STOP_SAMPLES(pow, power_rows)
#undef STOP_SAMPLES

/* ---- definitions ----------------------------------------------------------------------------- */

#define BITS (BURN_SET_INT | BURN_BIT(BOOL))
#define IMM BURN_ROLE_IMMEDIATE
#define IMM_FLAT (BURN_ROLE_IMMEDIATE | BURN_ROLE_NO_GRAD)

static const burn_role roles_numeric[3] = {BURNI_ROLE("x", IMM, BURN_SET_NUMERIC),
                                           BURNI_ROLE_LIKE("y", IMM, 0, BURN_SET_NUMERIC),
                                           BURNI_ROLE_LIKE("z", 0, 0, BURN_SET_NUMERIC)};
static const burn_role roles_float[3] = {BURNI_ROLE("x", IMM, BURN_SET_FLOAT),
                                         BURNI_ROLE_LIKE("y", IMM, 0, BURN_SET_FLOAT),
                                         BURNI_ROLE_LIKE("z", 0, 0, BURN_SET_FLOAT)};
static const burn_role roles_bits[3] = {BURNI_ROLE("x", IMM_FLAT, BITS),
                                        BURNI_ROLE_LIKE("y", IMM_FLAT, 0, BITS),
                                        BURNI_ROLE_LIKE("z", BURN_ROLE_NO_GRAD, 0, BITS)};
static const burn_role roles_shift[3] = {BURNI_ROLE("x", IMM_FLAT, BURN_SET_INT),
                                         BURNI_ROLE_LIKE("y", IMM_FLAT, 0, BURN_SET_INT),
                                         BURNI_ROLE_LIKE("z", BURN_ROLE_NO_GRAD, 0, BURN_SET_INT)};
static const burn_role roles_truth[3] = {BURNI_ROLE("x", IMM, BURN_SET_ANY),
                                         BURNI_ROLE_LIKE("y", IMM, 0, BURN_SET_ANY),
                                         BURNI_ROLE("z", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL))};

static const char no_vjp_bits[] = "bit operations take integers only, which carry no gradient";
static const char no_vjp_bool[] = "the result is true or false, which carries no gradient";

#define NONE NULL
#define MINIMAL (BURN_OP_MINIMAL | BURN_OP_PRIMITIVE)
#define PRIMITIVE BURN_OP_PRIMITIVE

/* X(NAME, name, flags, roles, vjp, saves, no_vjp, decompose, samples, summary) */
/* clang-format off */
#define BINARY_OPS(X)                                                                              \
    X(ADD, add, MINIMAL, numeric, vjp_add, save_none, NONE, NONE, sum,                             \
      "x + y; integers wrap")                                                                      \
    X(SUB, sub, MINIMAL, numeric, vjp_sub, save_none, NONE, NONE, sum,                             \
      "x - y; integers wrap")                                                                      \
    X(MUL, mul, MINIMAL, numeric, vjp_mul, save_other, NONE, NONE, sum,                            \
      "x y; integers wrap")                                                                        \
    X(DIV, div, MINIMAL, numeric, vjp_div, save_div, NONE, NONE, div,                              \
      "x / y; integers truncate, division by 0 is an error")                                       \
    X(REMAINDER, remainder, 0, numeric, vjp_mod, save_mod, NONE, expand_remainder, remainder,      \
      "x mod y with the sign of y")                                                                \
    X(FMOD, fmod, PRIMITIVE, numeric, vjp_mod, save_mod, NONE, NONE, mod,                          \
      "exact remainder with the sign of x")                                                        \
    X(POW, pow, PRIMITIVE, numeric, vjp_pow, save_pow, NONE, NONE, pow,                            \
      "x to the y; a negative integer exponent is an error")                                       \
    X(MAXIMUM, maximum, MINIMAL, numeric, vjp_maximum, save_xy, NONE, NONE, order,                 \
      "the larger one; NaN propagates")                                                            \
    X(MINIMUM, minimum, 0, numeric, vjp_minimum, save_xy, NONE, expand_minimum, order,             \
      "the smaller one; NaN propagates")                                                           \
    X(ATAN2, atan2, PRIMITIVE, float, vjp_atan2, save_xy, NONE, NONE, plane,                       \
      "angle of the point (y, x): atan(x / y) in its quadrant")                                    \
    X(BIT_AND, bit_and, PRIMITIVE, bits, NONE, NONE, no_vjp_bits, NONE, bits,                      \
      "bits set in both")                                                                          \
    X(BIT_OR, bit_or, PRIMITIVE, bits, NONE, NONE, no_vjp_bits, NONE, bits,                        \
      "bits set in either")                                                                        \
    X(BIT_XOR, bit_xor, PRIMITIVE, bits, NONE, NONE, no_vjp_bits, NONE, bits,                      \
      "bits set in one of both")                                                                   \
    X(SHIFT_LEFT, shift_left, PRIMITIVE, shift, NONE, NONE, no_vjp_bits, NONE, shift,              \
      "x shifted up by y bits; 0 when y is no bit of x")                                           \
    X(SHIFT_RIGHT, shift_right, PRIMITIVE, shift, NONE, NONE, no_vjp_bits, NONE, shift,            \
      "x shifted down by y bits; the sign is kept")                                                \
    X(LOGICAL_AND, logical_and, 0, truth, NONE, NONE, no_vjp_bool, expand_logical_and, truth,      \
      "both nonzero")                                                                              \
    X(LOGICAL_OR, logical_or, 0, truth, NONE, NONE, no_vjp_bool, expand_logical_or, truth,         \
      "either nonzero")                                                                            \
    X(LOGICAL_XOR, logical_xor, 0, truth, NONE, NONE, no_vjp_bool, expand_logical_xor, truth,      \
      "one of both nonzero")
/* clang-format on */

#define BINARY_DEF(NAME, name_, bits_, role_set, vjp_, saves_, reason, expand, domain, text)       \
    const burn_op_def burn_op_def_##name_ = {                                                      \
        BURNI_DEF(NAME, name_),                                                                    \
        .flags = (bits_),                                                                          \
        .n_in = 2,                                                                                 \
        .n_out = 1,                                                                                \
        .summary = text,                                                                           \
        .roles = roles_##role_set,                                                                 \
        .fuse = BURN_FUSE_POINTWISE,                                                               \
        .fuse_opcode = BURN_OP_##NAME,                                                             \
        .vjp = vjp_,                                                                               \
        .vjp_saves = saves_,                                                                       \
        .no_vjp = reason,                                                                          \
        .decompose = expand,                                                                       \
        .eval = eval_##name_,                                                                      \
        .samples = samples_##domain,                                                               \
    };
BINARY_OPS(BINARY_DEF)
