/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * math_f64.h - elementary functions of f64: libm where it has them, its formulas where not.
 *
 * The same names as in math_f32.h with fd_ for fm_, so that one template serves both types.
 */
#ifndef BURN_PLUGINS_FLEX_MATH_F64_H
#define BURN_PLUGINS_FLEX_MATH_F64_H

#include <math.h>

#define fd_exp exp
#define fd_expm1 expm1
#define fd_log log
#define fd_log1p log1p
#define fd_sin sin
#define fd_cos cos
#define fd_tan tan
#define fd_asin asin
#define fd_acos acos
#define fd_atan atan
#define fd_sinh sinh
#define fd_cosh cosh
#define fd_tanh tanh
#define fd_erf erf
#define fd_pow pow
#define fd_atan2 atan2

static inline double fd_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

static inline double fd_softplus(double x)
{
    double y = (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
    return x != x ? x : y;
}

static inline double fd_log_sigmoid(double x)
{
    return -fd_softplus(-x);
}

static inline double fd_gelu(double x)
{
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
}

static inline double fd_gelu_tanh(double x)
{
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1.0 + tanh(u));
}

static inline double fd_gelu_slope(double x)
{
    double c = 0.5 * (1.0 + erf(x * 0.70710678118654752440));
    double b = fmax(fmin(x, 50.0), -50.0);
    return (x != x ? x : c) + 0.39894228040143267794 * b * exp(-0.5 * b * b);
}

static inline double fd_gelu_tanh_slope(double x)
{
    double b = x > 50.0 ? 50.0 : x;
    b = b < -50.0 ? -50.0 : b;
    double t = tanh(0.79788456080286535588 * (b + 0.044715 * b * b * b));
    double du = 0.79788456080286535588 * (1.0 + 0.134145 * b * b);
    return 0.5 * (1.0 + t) + 0.5 * b * (1.0 - t * t) * du;
}

#endif /* BURN_PLUGINS_FLEX_MATH_F64_H */
