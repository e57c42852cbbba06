/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unary.c - ops of one tensor, element by element (ids 1 to 35 without gelu).
 *
 * Each op is a row of UNARY_OPS at the end: roles, meaning, gradient, decomposition, samples. The
 * meaning at NaN, infinities and zeros is that of `eval`; decompositions agree with it exactly up
 * to rounding. To add one: an eval function, a row, and a gradient and decomposition where there
 * are such; its id row stands in <burn/op_list.h>.
 */
#include "ops/pointwise.h"

#include <math.h>

/* ---- meaning --------------------------------------------------------------------------------- */

static double neg_f(double x)
{
    return -x;
}

static int64_t neg_i(int64_t x)
{
    return (int64_t)(0u - (uint64_t)x);
}

static uint64_t neg_u(uint64_t x)
{
    return 0u - x;
}

static int64_t abs_i(int64_t x)
{
    return x < 0 ? neg_i(x) : x;
}

static uint64_t same_u(uint64_t x)
{
    return x;
}

static double sign_f(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}

static int64_t sign_i(int64_t x)
{
    return (x > 0) - (x < 0);
}

static uint64_t sign_u(uint64_t x)
{
    return x > 0;
}

static double rsqrt_f(double x)
{
    return 1.0 / sqrt(x);
}

static double recip_f(double x)
{
    return 1.0 / x;
}

static double sigmoid_f(double x)
{
    double e = exp(-fabs(x));
    return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

/* Half to even, whatever the rounding mode of the thread. */
static double round_f(double x)
{
    double low = floor(x);
    double part = x - low;
    if (part > 0.5 || (part == 0.5 && fmod(low, 2.0) != 0.0)) {
        low += 1.0;
    }
    return copysign(low, x);
}

static double relu_f(double x)
{
    return x < 0.0 ? 0.0 : x;
}

static int64_t relu_i(int64_t x)
{
    return x < 0 ? 0 : x;
}

static uint64_t bit_not_u(uint64_t x)
{
    return ~x;
}

static double silu_f(double x)
{
    return x * sigmoid_f(x);
}

static double softplus_f(double x)
{
    return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}

static double log_sigmoid_f(double x)
{
    return -softplus_f(-x);
}

/* One eval per op that is a plain function of a real number. */
#define UNARY_FLOAT_EVALS(X)                                                                       \
    X(exp, exp)                                                                                    \
    X(expm1, expm1)                                                                                \
    X(log, log)                                                                                    \
    X(log1p, log1p)                                                                                \
    X(sqrt, sqrt)                                                                                  \
    X(rsqrt, rsqrt_f)                                                                              \
    X(recip, recip_f)                                                                              \
    X(sin, sin)                                                                                    \
    X(cos, cos)                                                                                    \
    X(tan, tan)                                                                                    \
    X(asin, asin)                                                                                  \
    X(acos, acos)                                                                                  \
    X(atan, atan)                                                                                  \
    X(sinh, sinh)                                                                                  \
    X(cosh, cosh)                                                                                  \
    X(tanh, tanh)                                                                                  \
    X(erf, erf)                                                                                    \
    X(sigmoid, sigmoid_f)                                                                          \
    X(floor, floor)                                                                                \
    X(ceil, ceil)                                                                                  \
    X(round, round_f)                                                                              \
    X(trunc, trunc)                                                                                \
    X(silu, silu_f)                                                                                \
    X(softplus, softplus_f)                                                                        \
    X(log_sigmoid, log_sigmoid_f)

#define UNARY_FLOAT_EVAL(name, function)                                                           \
    static int32_t eval_##name(const burn_eval *a)                                                 \
    {                                                                                              \
        return burni_map1(a, function, NULL, NULL);                                                \
    }
UNARY_FLOAT_EVALS(UNARY_FLOAT_EVAL)
#undef UNARY_FLOAT_EVAL

static int32_t eval_neg(const burn_eval *a)
{
    return burni_map1(a, neg_f, neg_i, neg_u);
}

static int32_t eval_abs(const burn_eval *a)
{
    return burni_map1(a, fabs, abs_i, same_u);
}

static int32_t eval_sign(const burn_eval *a)
{
    return burni_map1(a, sign_f, sign_i, sign_u);
}

static int32_t eval_relu(const burn_eval *a)
{
    return burni_map1(a, relu_f, relu_i, same_u);
}

static int32_t eval_logical_not(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].i[k] = burni_eval_get(&a->in[0], k) == 0.0;
    }
    return BURN_OK;
}

static int64_t bit_not_i(int64_t x)
{
    return ~x;
}

static int64_t flip_bool(int64_t x)
{
    return x == 0;
}

static int32_t eval_bit_not(const burn_eval *a)
{
    int is_bool = a->in[0].meta.dtype == BURN_BOOL;
    return burni_map1(a, NULL, is_bool ? flip_bool : bit_not_i, bit_not_u);
}

static int32_t eval_is_nan(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].i[k] = isnan(burni_eval_get(&a->in[0], k)) != 0;
    }
    return BURN_OK;
}

static int32_t eval_is_inf(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].i[k] = isinf(burni_eval_get(&a->in[0], k)) != 0;
    }
    return BURN_OK;
}

static int32_t eval_is_finite(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].i[k] = isfinite(burni_eval_get(&a->in[0], k)) != 0;
    }
    return BURN_OK;
}

/* ---- gradients: x is in[0], y is out[0], g is grad_out[0] ------------------------------------ */

static const uint32_t save_none[1] = {0};
static const uint32_t save_x[1] = {BURN_SAVE_IN(0)};
static const uint32_t save_y[1] = {BURN_SAVE_OUT(0)};

/* Steps: no gradient flows. */
static int32_t vjp_zero(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    a->grad_in[0] = NULL;
    return BURN_OK;
}

static int32_t vjp_neg(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_neg(b, a->grad_out[0]);
    return BURN_OK;
}

static int32_t vjp_abs(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_sign(b, a->in[0]));
    return BURN_OK;
}

static int32_t vjp_exp(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], a->out[0]);
    return BURN_OK;
}

static int32_t vjp_expm1(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_add_num(b, a->out[0], 1.0));
    return BURN_OK;
}

static int32_t vjp_log(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_div(b, a->grad_out[0], a->in[0]);
    return BURN_OK;
}

static int32_t vjp_log1p(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_div(b, a->grad_out[0], burn_b_add_num(b, a->in[0], 1.0));
    return BURN_OK;
}

/* g / (2 y): infinite at 0. */
static int32_t vjp_sqrt(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_div(b, a->grad_out[0], burn_b_mul_num(b, a->out[0], 2.0));
    return BURN_OK;
}

/* -g y^3 / 2 */
static int32_t vjp_rsqrt(const burn_builder *b, const burn_vjp *a)
{
    burn_value *y = a->out[0];
    burn_value *cube = burn_b_mul(b, burn_b_mul(b, y, y), y);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_mul_num(b, cube, -0.5));
    return BURN_OK;
}

/* -g y^2 */
static int32_t vjp_recip(const burn_builder *b, const burn_vjp *a)
{
    burn_value *y = a->out[0];
    burn_value *slope = burn_b_mul_num(b, burn_b_mul(b, y, y), -1.0);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

static int32_t vjp_sin(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_cos(b, a->in[0]));
    return BURN_OK;
}

static int32_t vjp_cos(const burn_builder *b, const burn_vjp *a)
{
    burn_value *slope = burn_b_mul_num(b, burn_b_sin(b, a->in[0]), -1.0);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* g (1 + y^2) */
static int32_t vjp_tan(const burn_builder *b, const burn_vjp *a)
{
    burn_value *slope = burn_b_add_num(b, burn_b_mul(b, a->out[0], a->out[0]), 1.0);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* 1 / sqrt(1 - x^2), as (1 - x)(1 + x), which keeps its digits near the ends */
static burn_value *arc_slope(const burn_builder *b, burn_value *x)
{
    burn_value *left = burn_b_sub(b, burn_b_num(b, x, 1.0), x);
    return burn_b_rsqrt(b, burn_b_mul(b, left, burn_b_add_num(b, x, 1.0)));
}

static int32_t vjp_asin(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], arc_slope(b, a->in[0]));
    return BURN_OK;
}

static int32_t vjp_acos(const burn_builder *b, const burn_vjp *a)
{
    burn_value *slope = burn_b_mul_num(b, arc_slope(b, a->in[0]), -1.0);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

static int32_t vjp_atan(const burn_builder *b, const burn_vjp *a)
{
    burn_value *below = burn_b_add_num(b, burn_b_mul(b, a->in[0], a->in[0]), 1.0);
    a->grad_in[0] = burn_b_div(b, a->grad_out[0], below);
    return BURN_OK;
}

static int32_t vjp_sinh(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_cosh(b, a->in[0]));
    return BURN_OK;
}

static int32_t vjp_cosh(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_sinh(b, a->in[0]));
    return BURN_OK;
}

/* g (1 - y^2) */
static int32_t vjp_tanh(const burn_builder *b, const burn_vjp *a)
{
    burn_value *square = burn_b_mul(b, a->out[0], a->out[0]);
    burn_value *slope = burn_b_sub(b, burn_b_num(b, square, 1.0), square);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* g 2/sqrt(pi) exp(-x^2) */
static int32_t vjp_erf(const burn_builder *b, const burn_vjp *a)
{
    burn_value *power = burn_b_mul_num(b, burn_b_mul(b, a->in[0], a->in[0]), -1.0);
    burn_value *slope = burn_b_mul_num(b, burn_b_exp(b, power), 1.1283791670955126);
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* g y (1 - y): no exp and no log, so it cannot become NaN far from zero. */
static int32_t vjp_sigmoid(const burn_builder *b, const burn_vjp *a)
{
    burn_value *y = a->out[0];
    burn_value *slope = burn_b_mul(b, y, burn_b_sub(b, burn_b_num(b, y, 1.0), y));
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* 0 at the kink */
static int32_t vjp_relu(const burn_builder *b, const burn_vjp *a)
{
    burn_value *in[2] = {a->out[0], a->grad_out[0]};
    a->grad_in[0] = burn_b_emit(b, BURN_OP_RELU_GRAD, NULL, in, 2);
    return BURN_OK;
}

/* g s (1 + x (1 - s)) */
static int32_t vjp_silu(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = a->in[0];
    burn_value *s = burn_b_sigmoid(b, x);
    burn_value *rest = burn_b_mul(b, x, burn_b_sub(b, burn_b_num(b, s, 1.0), s));
    burn_value *slope = burn_b_mul(b, s, burn_b_add_num(b, rest, 1.0));
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

static int32_t vjp_softplus(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], burn_b_sigmoid(b, a->in[0]));
    return BURN_OK;
}

static int32_t vjp_log_sigmoid(const burn_builder *b, const burn_vjp *a)
{
    burn_value *slope = burn_b_sigmoid(b, burn_b_neg(b, a->in[0]));
    a->grad_in[0] = burn_b_mul(b, a->grad_out[0], slope);
    return BURN_OK;
}

/* ---- decompositions -------------------------------------------------------------------------- */

/* Floats multiply by -1, which keeps the sign of zero; unsigned integers have no -1. */
static burn_value *negated(const burn_builder *b, burn_value *x)
{
    burn_meta meta = burn_b_meta(b, x);
    if (burni_is_float(meta.dtype)) {
        return burn_b_mul_num(b, x, -1.0);
    }
    return burn_b_sub(b, burn_b_num(b, x, 0.0), x);
}

static int32_t expand_neg(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = negated(b, a->in[0]);
    return BURN_OK;
}

/* Adding 0 turns -0 into 0 and leaves all else. */
static burn_value *absolute(const burn_builder *b, burn_value *x)
{
    burn_meta meta = burn_b_meta(b, x);
    if (burn_dtype_class(meta.dtype) == BURN_CLASS_UINT) {
        return x;
    }
    burn_value *below = burn_b_less_num(b, x, 0.0);
    burn_value *other = burni_is_float(meta.dtype) ? burn_b_add_num(b, x, 0.0) : x;
    return burn_b_where(b, below, negated(b, x), other);
}

static int32_t expand_abs(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = absolute(b, a->in[0]);
    return BURN_OK;
}

/* (0 < x) - (x < 0): 0 for NaN, since both comparisons are false */
static int32_t expand_sign(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    uint8_t dtype = a->in_meta[0].dtype;
    burn_value *above = burn_b_cast(b, burn_b_less(b, burn_b_num(b, x, 0.0), x), dtype);
    burn_value *below = burn_b_cast(b, burn_b_less_num(b, x, 0.0), dtype);
    a->out[0] = burn_b_sub(b, above, below);
    return BURN_OK;
}

static int32_t expand_rsqrt(const burn_builder *b, const burn_expand *a)
{
    burn_value *root = burn_b_sqrt(b, a->in[0]);
    a->out[0] = burn_b_div(b, burn_b_num(b, root, 1.0), root);
    return BURN_OK;
}

static int32_t expand_recip(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_div(b, burn_b_num(b, a->in[0], 1.0), a->in[0]);
    return BURN_OK;
}

static int32_t expand_tan(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_div(b, burn_b_sin(b, a->in[0]), burn_b_cos(b, a->in[0]));
    return BURN_OK;
}

/* e / (1 + e) below zero, 1 / (1 + e) above, e = exp(-|x|): never overflows */
static burn_value *sigmoid_parts(const burn_builder *b, burn_value *x)
{
    burn_value *e = burn_b_exp(b, burn_b_mul_num(b, absolute(b, x), -1.0));
    burn_value *below = burn_b_less_num(b, x, 0.0);
    burn_value *top = burn_b_where(b, below, e, burn_b_num(b, x, 1.0));
    return burn_b_div(b, top, burn_b_add_num(b, e, 1.0));
}

static int32_t expand_sigmoid(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = sigmoid_parts(b, a->in[0]);
    return BURN_OK;
}

static burn_value *ceiling(const burn_builder *b, burn_value *x)
{
    return burn_b_mul_num(b, burn_b_floor(b, burn_b_mul_num(b, x, -1.0)), -1.0);
}

static int32_t expand_ceil(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = ceiling(b, a->in[0]);
    return BURN_OK;
}

static int32_t expand_trunc(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    burn_value *below = burn_b_less_num(b, x, 0.0);
    a->out[0] = burn_b_where(b, below, ceiling(b, x), burn_b_floor(b, x));
    return BURN_OK;
}

/* maximum passes NaN on */
static int32_t expand_relu(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_maximum_num(b, a->in[0], 0.0);
    return BURN_OK;
}

static int32_t expand_logical_not(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_equal_num(b, a->in[0], 0.0);
    return BURN_OK;
}

static int32_t expand_is_nan(const burn_builder *b, const burn_expand *a)
{
    burn_value *same = burn_b_equal(b, a->in[0], a->in[0]);
    a->out[0] = burn_b_equal_num(b, same, 0.0);
    return BURN_OK;
}

/* Integers are never infinite, and their dtype has no infinity to compare with. */
static int32_t expand_is_inf(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    if (burni_is_float(a->in_meta[0].dtype)) {
        a->out[0] = burn_b_equal_num(b, absolute(b, x), (double)INFINITY);
    } else {
        a->out[0] = burn_b_less(b, x, x);
    }
    return BURN_OK;
}

static int32_t expand_is_finite(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    if (burni_is_float(a->in_meta[0].dtype)) {
        a->out[0] = burn_b_less_num(b, absolute(b, x), (double)INFINITY);
    } else {
        a->out[0] = burn_b_equal(b, x, x);
    }
    return BURN_OK;
}

static int32_t expand_silu(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_mul(b, a->in[0], burn_b_sigmoid(b, a->in[0]));
    return BURN_OK;
}

/*
 * log(1 + x) and exp(x) - 1 near 0 from log and exp alone: the rounding of u = 1 + x, or of
 * u = exp(x), cancels in log(u) / (u - 1). W. Kahan, HP-15C Advanced Functions Handbook, 1982.
 */
static int32_t expand_log1p(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    burn_value *u = burn_b_add_num(b, x, 1.0);
    burn_value *less_one = burn_b_sub_num(b, u, 1.0);
    burn_value *safe = burn_b_where(b, burn_b_equal_num(b, less_one, 0.0), burn_b_num(b, x, 1.0),
                                    less_one);
    burn_value *y = burn_b_mul(b, burn_b_log(b, u), burn_b_div(b, x, safe));
    y = burn_b_where(b, burn_b_equal_num(b, less_one, 0.0), x, y);
    y = burn_b_where(b, burn_b_equal_num(b, u, (double)INFINITY), u, y);
    a->out[0] = y;
    return BURN_OK;
}

static int32_t expand_expm1(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    burn_value *u = burn_b_exp(b, x);
    burn_value *less_one = burn_b_sub_num(b, u, 1.0);
    burn_value *log_u = burn_b_log(b, u);
    burn_value *is_one = burn_b_equal_num(b, less_one, 0.0);
    burn_value *safe = burn_b_where(b, is_one, burn_b_num(b, x, 1.0), log_u);
    burn_value *y = burn_b_mul(b, less_one, burn_b_div(b, x, safe));
    y = burn_b_where(b, is_one, x, y);
    y = burn_b_where(b, burn_b_less_num(b, x, -80.0), burn_b_num(b, x, -1.0), y);
    y = burn_b_where(b, burn_b_equal_num(b, u, (double)INFINITY), u, y);
    a->out[0] = y;
    return BURN_OK;
}

/* log(1 + exp(-|x|)) */
static burn_value *log_tail(const burn_builder *b, burn_value *x)
{
    return burn_b_log1p(b, burn_b_exp(b, burn_b_mul_num(b, absolute(b, x), -1.0)));
}

static int32_t expand_softplus(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = a->in[0];
    a->out[0] = burn_b_add(b, burn_b_maximum_num(b, x, 0.0), log_tail(b, x));
    return BURN_OK;
}

/* Its zero, where exp(-x) vanishes, is -0. */
static int32_t expand_log_sigmoid(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_neg(b, burn_b_softplus(b, burn_b_neg(b, a->in[0])));
    return BURN_OK;
}

/* ---- samples: one set per domain ------------------------------------------------------------- */

/*
 * Near 0, where exp(x) - 1 has no digits left and expm1 has all. Powers of e just within and beyond
 * each dtype, so that some are subnormal. 22 and 355 are close to multiples of pi, 11 and 99 to
 * odd ones of pi / 2; the last two angles are those of pi / 2 and pi in f32.
 */
#define NEAR_ZERO                                                                                  \
    0.0, -0.0, 0.25, -0.25, 1e-3, -1e-3, 1e-4, -1e-4, 1e-7, -1e-7, 1e-10, -1e-10, 1e-20, 1e-40,    \
        -1e-40, 1e-300
static const double exp_points[] = {NEAR_ZERO, 10.0,  12.0,   -10.0,  -16.0, 88.0,  89.0,   -87.0,
                                    -88.0,     -90.0, -100.0, -103.0, 700.0, 710.0, -720.0, -744.0};
static const double angle_points[] = {NEAR_ZERO, 3.0,  -2.0,   11.0,       22.0,
                                      -22.0,     99.0, -355.0, 1.57079637, 3.14159274};
static const double far_points[] = {NEAR_ZERO, -1e4, 1e4,  -90.0, 90.0,
                                    -20.0,     20.0, -9.0, 6.0,   -3.0};
static const double step_points[] = {-2.5, -1.5, -0.5, 0.5, 1.5,  2.5,  -0.0,
                                     0.0,  1e9,  -1e9, 3.0, 0.25, -0.25};
static const double edge_points[] = {NEAR_ZERO, -1.0, 1.0, 1.5, -1.5, 0.999, -0.999, 0.5, 30.0};
static const double root_points[] = {0.0,    -0.0,  -1.0, 4.0,    1e-30,  1e30, 1e-40,
                                     1e-310, 1e300, 1.0,  1.0625, 0.9375, 0.999};
static const double few_integers[] = {0.0, 1.0, 2.0, 100.0, 255.0, 256.0, 0.5, 1e-20};

#define POINTS(list) .n_points = sizeof(list) / sizeof((list)[0]), .points = list

/* clang-format off */
static const burni_domain domain_exp = {
    .fill = BURN_FILL_UNIFORM, .wrong = BURN_I32, .lo = -1.2, .hi = 1.2, .tolerance = 4.0,
    .grad_tolerance = 64.0, .special = BURN_SET_FLOAT, POINTS(exp_points)};
static const burni_domain domain_angle = {
    .fill = BURN_FILL_UNIFORM, .wrong = BURN_I32, .lo = -1.2, .hi = 1.2, .tolerance = 4.0,
    .grad_tolerance = 64.0, .special = BURN_SET_FLOAT, POINTS(angle_points)};
static const burni_domain domain_far = {
    .fill = BURN_FILL_NORMAL, .wrong = BURN_I32, .tolerance = 8.0, .grad_tolerance = 64.0,
    .special = BURN_SET_FLOAT, POINTS(far_points)};
/* x times something that vanishes: infinities give NaN or not by the formula, so none are tried */
static const burni_domain domain_far_finite = {
    .fill = BURN_FILL_NORMAL, .wrong = BURN_I32, .tolerance = 8.0, .grad_tolerance = 64.0,
    POINTS(far_points)};
static const burni_domain domain_positive = {
    .fill = BURN_FILL_UNIFORM, .wrong = BURN_I64, .lo = 0.3, .hi = 4.0, .tolerance = 4.0,
    .grad_tolerance = 128.0, .special = BURN_SET_FLOAT, POINTS(root_points)};
static const burni_domain domain_nonzero = {
    .fill = BURN_FILL_NONZERO, .wrong = BURN_BOOL, .tolerance = 0.0, .grad_tolerance = 64.0,
    .special = BURN_SET_NUMERIC};
static const burni_domain domain_relu = {
    .fill = BURN_FILL_NONZERO, .wrong = BURN_BOOL, .flags = BURN_SAMPLE_ANY_ZERO, .tolerance = 0.0,
    .grad_tolerance = 64.0, .special = BURN_SET_NUMERIC};
static const burni_domain domain_inverse = {
    .fill = BURN_FILL_NONZERO, .wrong = BURN_U8, .tolerance = 2.0, .grad_tolerance = 128.0,
    .special = BURN_SET_FLOAT, POINTS(root_points)};
static const burni_domain domain_unit = {
    .fill = BURN_FILL_UNIFORM, .wrong = BURN_I32, .lo = -0.9, .hi = 0.9, .tolerance = 4.0,
    .grad_tolerance = 128.0, .special = BURN_SET_FLOAT, POINTS(edge_points)};
static const burni_domain domain_step = {
    .fill = BURN_FILL_DISTINCT, .wrong = BURN_I32, .tolerance = 0.0, .grad_tolerance = 4.0,
    .special = BURN_SET_FLOAT, POINTS(step_points)};
static const burni_domain domain_test = {
    .fill = BURN_FILL_NORMAL, .wrong = BURN_BOOL, .tolerance = 0.0, .special = BURN_SET_NUMERIC};
static const burni_domain domain_logical = {
    .fill = BURN_FILL_NORMAL, .tolerance = 0.0, .special = BURN_SET_ANY, POINTS(few_integers)};
static const burni_domain domain_bits = {
    .fill = BURN_FILL_NORMAL, .wrong = BURN_F32, .tolerance = 0.0, .special = BURN_SET_INT};
/* clang-format on */

#define UNARY_DOMAINS(X)                                                                           \
    X(exp)                                                                                         \
    X(angle)                                                                                       \
    X(far)                                                                                         \
    X(far_finite)                                                                                  \
    X(positive)                                                                                    \
    X(nonzero)                                                                                     \
    X(relu)                                                                                        \
    X(inverse)                                                                                     \
    X(unit)                                                                                        \
    X(step)                                                                                        \
    X(test)                                                                                        \
    X(logical)                                                                                     \
    X(bits)

#define UNARY_SAMPLES(domain)                                                                      \
    static int32_t samples_##domain(uint32_t i, burn_sample *out)                                  \
    {                                                                                              \
        return burni_samples_unary(i, out, &domain_##domain);                                      \
    }
UNARY_DOMAINS(UNARY_SAMPLES)
#undef UNARY_SAMPLES

/* ---- definitions ----------------------------------------------------------------------------- */

static const burn_role roles_float[2] = {BURNI_ROLE("x", 0, BURN_SET_FLOAT),
                                         BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT)};
static const burn_role roles_numeric[2] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                           BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC)};
static const burn_role roles_bits[2] = {
    BURNI_ROLE("x", BURN_ROLE_NO_GRAD, BURN_SET_INT | BURN_BIT(BOOL)),
    BURNI_ROLE_LIKE("y", BURN_ROLE_NO_GRAD, 0, BURN_SET_INT | BURN_BIT(BOOL))};
static const burn_role roles_test[2] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                        BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL))};
static const burn_role roles_logical[2] = {BURNI_ROLE("x", 0, BURN_SET_ANY),
                                           BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL))};

static const char no_vjp_bool[] = "the result is true or false, which carries no gradient";
static const char no_vjp_bits[] = "bit operations take integers only, which carry no gradient";

#define NONE NULL
#define MINIMAL (BURN_OP_MINIMAL | BURN_OP_PRIMITIVE)
#define PRIMITIVE BURN_OP_PRIMITIVE

/* X(NAME, name, flags, roles, vjp, saves, no_vjp, decompose, samples, summary) */
/* clang-format off */
#define UNARY_OPS(X)                                                                               \
    X(NEG, neg, 0, numeric, vjp_neg, save_none, NONE, expand_neg, nonzero,                         \
      "-x; integers wrap")                                                                         \
    X(ABS, abs, 0, numeric, vjp_abs, save_x, NONE, expand_abs, nonzero,                            \
      "the size of x; gradient 0 at 0")                                                            \
    X(SIGN, sign, 0, numeric, vjp_zero, save_none, NONE, expand_sign, nonzero,                     \
      "-1, 0 or 1; 0 for NaN")                                                                     \
    X(EXP, exp, MINIMAL, float, vjp_exp, save_y, NONE, NONE, exp,                                  \
      "e to the x")                                                                                \
    X(EXPM1, expm1, 0, float, vjp_expm1, save_y, NONE, expand_expm1, exp,                          \
      "exp(x) - 1, accurate near 0")                                                               \
    X(LOG, log, MINIMAL, float, vjp_log, save_x, NONE, NONE, positive,                             \
      "natural logarithm")                                                                         \
    X(LOG1P, log1p, 0, float, vjp_log1p, save_x, NONE, expand_log1p, unit,                         \
      "log(1 + x), accurate near 0")                                                               \
    X(SQRT, sqrt, MINIMAL, float, vjp_sqrt, save_y, NONE, NONE, positive,                          \
      "square root; gradient inf at 0")                                                            \
    X(RSQRT, rsqrt, 0, float, vjp_rsqrt, save_y, NONE, expand_rsqrt, positive,                     \
      "1 / sqrt(x)")                                                                               \
    X(RECIP, recip, 0, float, vjp_recip, save_y, NONE, expand_recip, inverse,                      \
      "1 / x")                                                                                     \
    X(SIN, sin, MINIMAL, float, vjp_sin, save_x, NONE, NONE, angle,                                \
      "sine")                                                                                      \
    X(COS, cos, MINIMAL, float, vjp_cos, save_x, NONE, NONE, angle,                                \
      "cosine")                                                                                    \
    X(TAN, tan, 0, float, vjp_tan, save_y, NONE, expand_tan, angle,                                \
      "tangent")                                                                                   \
    X(ASIN, asin, PRIMITIVE, float, vjp_asin, save_x, NONE, NONE, unit,                            \
      "arc sine")                                                                                  \
    X(ACOS, acos, PRIMITIVE, float, vjp_acos, save_x, NONE, NONE, unit,                            \
      "arc cosine")                                                                                \
    X(ATAN, atan, PRIMITIVE, float, vjp_atan, save_x, NONE, NONE, angle,                           \
      "arc tangent")                                                                               \
    X(SINH, sinh, PRIMITIVE, float, vjp_sinh, save_x, NONE, NONE, exp,                             \
      "hyperbolic sine")                                                                           \
    X(COSH, cosh, PRIMITIVE, float, vjp_cosh, save_x, NONE, NONE, exp,                             \
      "hyperbolic cosine")                                                                         \
    X(TANH, tanh, MINIMAL, float, vjp_tanh, save_y, NONE, NONE, far,                               \
      "hyperbolic tangent")                                                                        \
    X(ERF, erf, MINIMAL, float, vjp_erf, save_x, NONE, NONE, far,                                  \
      "error function")                                                                            \
    X(SIGMOID, sigmoid, 0, float, vjp_sigmoid, save_y, NONE, expand_sigmoid, far,                  \
      "1 / (1 + exp(-x)), stable")                                                                 \
    X(FLOOR, floor, MINIMAL, float, vjp_zero, save_none, NONE, NONE, step,                         \
      "largest integer not above x")                                                               \
    X(CEIL, ceil, 0, float, vjp_zero, save_none, NONE, expand_ceil, step,                          \
      "smallest integer not below x")                                                              \
    X(ROUND, round, PRIMITIVE, float, vjp_zero, save_none, NONE, NONE, step,                       \
      "nearest integer, half to even")                                                             \
    X(TRUNC, trunc, 0, float, vjp_zero, save_none, NONE, expand_trunc, step,                       \
      "x without its fraction")                                                                    \
    X(RELU, relu, 0, numeric, vjp_relu, save_y, NONE, expand_relu, relu,                           \
      "max(x, 0); NaN propagates")                                                                 \
    X(LOGICAL_NOT, logical_not, 0, logical, NONE, NONE, no_vjp_bool, expand_logical_not, logical,  \
      "x == 0, as bool")                                                                           \
    X(BIT_NOT, bit_not, PRIMITIVE, bits, NONE, NONE, no_vjp_bits, NONE, bits,                      \
      "all bits flipped; bool: not")                                                               \
    X(IS_NAN, is_nan, 0, test, NONE, NONE, no_vjp_bool, expand_is_nan, test,                       \
      "true where x is NaN")                                                                       \
    X(IS_INF, is_inf, 0, test, NONE, NONE, no_vjp_bool, expand_is_inf, test,                       \
      "true where x is infinite")                                                                  \
    X(IS_FINITE, is_finite, 0, test, NONE, NONE, no_vjp_bool, expand_is_finite, test,              \
      "true where x is a finite number")                                                           \
    X(SILU, silu, 0, float, vjp_silu, save_x, NONE, expand_silu, far_finite,                       \
      "x sigmoid(x)")                                                                              \
    X(SOFTPLUS, softplus, 0, float, vjp_softplus, save_x, NONE, expand_softplus, far,              \
      "log(1 + exp(x)), stable")                                                                   \
    X(LOG_SIGMOID, log_sigmoid, 0, float, vjp_log_sigmoid, save_x, NONE, expand_log_sigmoid, far,  \
      "log(sigmoid(x)), stable")
/* clang-format on */

#define UNARY_DEF(NAME, name_, bits_, role_set, vjp_, saves_, reason, expand, domain, text)        \
    const burn_op_def burn_op_def_##name_ = {                                                      \
        BURNI_DEF(NAME, name_),                                                                    \
        .flags = (bits_),                                                                          \
        .n_in = 1,                                                                                 \
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
UNARY_OPS(UNARY_DEF)
