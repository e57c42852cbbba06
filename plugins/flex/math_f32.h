/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * math_f32.h - elementary functions of f32 as straight-line code, at most 2 ulp off.
 *
 * No branches, no calls, no table: the compiler turns a loop over one of these into vector code,
 * and every lane and every tail element gets the same operations, hence the same bits. exp, log,
 * tanh, sigmoid, erf work in f32; the rest in f64, which makes accuracy a non-issue. NaN,
 * infinities, zeros and subnormals come out as in C's libm. sin, cos and tan are good up to
 * FLEX_TRIG_MAX; callers redo larger arguments with libm. To add a function: write it like these,
 * then its row.
 */
#ifndef BURN_PLUGINS_FLEX_MATH_F32_H
#define BURN_PLUGINS_FLEX_MATH_F32_H

#include "unrolled.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define FM_INLINE static inline __attribute__((always_inline))

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FM_HAS_FMA 1
#define FM_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#define FM_FMAD(a, b, c) __builtin_fma((a), (b), (c))
#else
#define FM_HAS_FMA 0
#define FM_FMA(a, b, c) ((a) * (b) + (c))
#define FM_FMAD(a, b, c) ((a) * (b) + (c))
#endif

/* Up to where sin, cos and tan reduce their angle in f64, and where in f32 (needs a fused add). */
#define FLEX_TRIG_MAX 1048576.0f
#define FLEX_TRIG_NEAR (FM_HAS_FMA ? 32768.0f : -1.0f)

FM_INLINE uint32_t fm_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FM_INLINE float fm_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

FM_INLINE uint64_t fm_bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FM_INLINE double fm_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

FM_INLINE float fm_abs(float x)
{
    return fm_float(fm_bits(x) & 0x7fffffffu);
}

/* |x| with the sign of s. */
FM_INLINE float fm_copysign(float x, float s)
{
    return fm_float((fm_bits(x) & 0x7fffffffu) | (fm_bits(s) & 0x80000000u));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2; the low bits of the returned float hold n. */
FM_INLINE float fm_split_exp(float x, float *r)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float shifted = FM_FMA(x, 1.44269504088896341f, magic);
    float n = shifted - magic;
    float t = FM_FMA(n, -0x1.62e4p-1f, x);
    *r = FM_FMA(n, -0x1.7f7d1cp-20f, t);
    return shifted;
}

/*
 * exp(r) - 1 - r over r^2, for |r| <= ln 2 / 2: least squares towards the least largest error of
 * exp(r), which is 2^-28 of it.
 */
#define FM_EXP_TAIL(X)                                                                             \
    X(0x1.123a2p-7f)                                                                               \
    X(0x1.5558f2p-5f)                                                                              \
    X(0x1.555492p-3f)                                                                              \
    X(0x1.fffffcp-2f)

FM_INLINE float fm_exp_tail(float r)
{
    float p = 0x1.6a23dp-10f;
#define FM_STEP(c) p = FM_FMA(p, r, c);
    FM_EXP_TAIL(FM_STEP)
#undef FM_STEP
    return p;
}

FM_INLINE float fm_exp(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.5f ? -104.5f : c;
    float r;
    float shifted = fm_split_exp(c, &r);
    float p = 1.0f + FM_FMA(fm_exp_tail(r) * r, r, r);
    /* 2^n in two factors, since n reaches from -151 to 128. */
    int32_t n = (int32_t)(fm_bits(shifted) - 0x4b400000u);
    int32_t half = n >> 1;
    float low = fm_float((uint32_t)(half + 127) << 23);
    float high = fm_float((uint32_t)(n - half + 127) << 23);
    return p * low * high;
}

#if defined(__AVX512F__)
/* p = p r + c, for each of so many vectors. */
FM_INLINE void fm_step_vectors(__m512 *p, const __m512 *r, float c, int count)
{
    UNROLLED
    for (int k = 0; k < count; k++) {
        p[k] = _mm512_fmadd_ps(p[k], r[k], _mm512_set1_ps(c));
    }
}

/*
 * The same bits for each lane of at most four vectors: the ISA scales by 2^n in one step, rounding
 * once. They go in step, since each operation of one waits for the one before: four together take
 * 5.4 cycles a vector on a Zen 5, one after the other 6.5.
 */
FM_INLINE void fm_exp_vectors(__m512 *x, int count)
{
    const __m512 magic = _mm512_set1_ps(12582912.0f);
    __m512 n[4];
    __m512 r[4];
    __m512 p[4];
    UNROLLED
    for (int k = 0; k < count; k++) {
        r[k] = _mm512_min_ps(_mm512_set1_ps(89.0f), x[k]);
        r[k] = _mm512_max_ps(_mm512_set1_ps(-104.5f), r[k]);
        n[k] = _mm512_fmadd_ps(r[k], _mm512_set1_ps(1.44269504088896341f), magic);
    }
    UNROLLED
    for (int k = 0; k < count; k++) {
        n[k] = _mm512_sub_ps(n[k], magic);
        r[k] = _mm512_fmadd_ps(n[k], _mm512_set1_ps(-0x1.62e4p-1f), r[k]);
    }
    UNROLLED
    for (int k = 0; k < count; k++) {
        r[k] = _mm512_fmadd_ps(n[k], _mm512_set1_ps(-0x1.7f7d1cp-20f), r[k]);
        p[k] = _mm512_set1_ps(0x1.6a23dp-10f);
    }
#define FM_STEP(c) fm_step_vectors(p, r, c, count);
    FM_EXP_TAIL(FM_STEP)
#undef FM_STEP
    UNROLLED
    for (int k = 0; k < count; k++) {
        p[k] = _mm512_mul_ps(p[k], r[k]);
    }
    UNROLLED
    for (int k = 0; k < count; k++) {
        p[k] = _mm512_fmadd_ps(p[k], r[k], r[k]);
    }
    UNROLLED
    for (int k = 0; k < count; k++) {
        x[k] = _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1.0f), p[k]), n[k]);
    }
}
#endif

FM_INLINE float fm_expm1(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -20.0f ? -20.0f : c;
    float r;
    float shifted = fm_split_exp(c, &r);
    float q = FM_FMA(fm_exp_tail(r) * r, r, r);
    int32_t n = (int32_t)(fm_bits(shifted) - 0x4b400000u);
    int32_t half = n >> 1;
    float low = fm_float((uint32_t)(half + 127) << 23);
    float high = fm_float((uint32_t)(n - half + 127) << 23);
    float scaled = (q * low) * high;
    float y = scaled + (low * high - 1.0f);
    /* At n = 128 the factors overflow apart although the sum may not. */
    float top = (low + low * q) * high;
    y = n > 126 ? top : y;
    return x == 0.0f ? x : y;
}

/* Below 0.625 a polynomial (interpolation at Chebyshev nodes of (tanh(x)/x - 1)/x^2 in x^2). */
FM_INLINE float fm_tanh(float x)
{
    float a = fm_abs(x);
    float t = fm_expm1(2.0f * (a > 10.0f ? 10.0f : a));
    float z = a * a;
    float p = 2.269501682e-03f;
    p = FM_FMA(p, z, -8.323187055e-03f);
    p = FM_FMA(p, z, 2.176250291e-02f);
    p = FM_FMA(p, z, -5.395846163e-02f);
    p = FM_FMA(p, z, 1.333330015e-01f);
    p = FM_FMA(p, z, -3.333333315e-01f);
    float small = FM_FMA(p * z, a, a);
    return fm_copysign(a < 0.625f ? small : t / (t + 2.0f), x);
}

FM_INLINE float fm_sigmoid(float x)
{
    float e = fm_exp(-fm_abs(x));
    float top = x < 0.0f ? e : 1.0f;
    return top / (1.0f + e);
}

/* Polynomials: interpolation at Chebyshev nodes, of erf(x)/x in x^2, and of erf on [1, 4]. */
FM_INLINE float fm_erf(float x)
{
    float a = fm_abs(x);
    float z = a * a;
    float s = -9.667045788e-06f;
    s = FM_FMA(s, z, 1.126595940e-04f);
    s = FM_FMA(s, z, -8.484080445e-04f);
    s = FM_FMA(s, z, 5.221031809e-03f);
    s = FM_FMA(s, z, -2.686543073e-02f);
    s = FM_FMA(s, z, 1.128378250e-01f);
    s = FM_FMA(s, z, -3.761263847e-01f);
    s = FM_FMA(s, z, 0.128379167095513f); /* 2 / sqrt(pi) - 1 */
    s = FM_FMA(s, a, a);
    float t = ((a > 4.0f ? 4.0f : a) - 2.5f) * (1.0f / 1.5f);
    float b = 2.580060877e-04f;
    b = FM_FMA(b, t, 9.497237988e-05f);
    b = FM_FMA(b, t, -2.032798736e-03f);
    b = FM_FMA(b, t, 1.542911087e-03f);
    b = FM_FMA(b, t, 4.667028754e-03f);
    b = FM_FMA(b, t, -1.041184525e-02f);
    b = FM_FMA(b, t, 6.637864174e-03f);
    b = FM_FMA(b, t, 9.579305643e-03f);
    b = FM_FMA(b, t, -3.186845075e-02f);
    b = FM_FMA(b, t, 4.638958373e-02f);
    b = FM_FMA(b, t, -4.365147857e-02f);
    b = FM_FMA(b, t, 2.818740627e-02f);
    b = FM_FMA(b, t, -1.225283041e-02f);
    b = FM_FMA(b, t, 3.267270355e-03f);
    b = FM_FMA(b, t, -4.06951993e-04f) + 1.0f;
    float y = a < 1.0f ? s : b;
    y = a > 3.92f ? 1.0f : y;
    y = x != x ? x : y;
    return fm_copysign(y, x);
}

/* x = m 2^k with m in [sqrt(1/2), sqrt(2)), for normal positive x. Returns log(m), k apart. */
FM_INLINE double fm_log_parts(double x, double *k)
{
    uint64_t bits = fm_bits64(x) + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    const double magic = 4503599627370496.0; /* 2^52: its low bits hold an integer */
    *k = fm_double((bits >> 52) | UINT64_C(0x4330000000000000)) - magic - 1023.0;
    bits = (bits & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd);
    double f = fm_double(bits) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 1.0 / 19.0;
    p = FM_FMAD(p, z, 1.0 / 17.0);
    p = FM_FMAD(p, z, 1.0 / 15.0);
    p = FM_FMAD(p, z, 1.0 / 13.0);
    p = FM_FMAD(p, z, 1.0 / 11.0);
    p = FM_FMAD(p, z, 1.0 / 9.0);
    p = FM_FMAD(p, z, 1.0 / 7.0);
    p = FM_FMAD(p, z, 1.0 / 5.0);
    p = FM_FMAD(p, z, 1.0 / 3.0);
    return 2.0 * FM_FMAD(p * z, s, s);
}

/* log of a double that is 0, positive and normal, infinite, NaN, or negative (NaN). */
FM_INLINE double fm_log_d(double x)
{
    double k;
    double m = fm_log_parts(x, &k);
    double y = FM_FMAD(k, 0x1.62e42fefa39efp-1, m);
    y = x == 0.0 ? -(double)INFINITY : y;
    y = x < 0.0 ? (double)NAN : y;
    y = x == (double)INFINITY ? x : y;
    return x != x ? x : y;
}

/* exp, for results that are rounded to f32: overflow and underflow are those of f32. */
FM_INLINE double fm_exp_d(double x)
{
    double c = x > 200.0 ? 200.0 : x;
    c = c < -200.0 ? -200.0 : c;
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double shifted = c * 1.4426950408889634 + magic;
    double n = shifted - magic;
    double r = FM_FMAD(n, -0x1.62e42fec00000p-1, c);
    r = FM_FMAD(n, -0x1.d1cf79abc9e3bp-32, r);
    double p = 1.0 / 39916800.0;
    p = FM_FMAD(p, r, 1.0 / 3628800.0);
    p = FM_FMAD(p, r, 1.0 / 362880.0);
    p = FM_FMAD(p, r, 1.0 / 40320.0);
    p = FM_FMAD(p, r, 1.0 / 5040.0);
    p = FM_FMAD(p, r, 1.0 / 720.0);
    p = FM_FMAD(p, r, 1.0 / 120.0);
    p = FM_FMAD(p, r, 1.0 / 24.0);
    p = FM_FMAD(p, r, 1.0 / 6.0);
    p = FM_FMAD(p, r, 0.5);
    p = FM_FMAD(p * r, r, r) + 1.0;
    uint64_t scale = (fm_bits64(shifted) - UINT64_C(0x4338000000000000) + 1023) << 52;
    return p * fm_double(scale);
}

/*
 * x = m 2^k as above. log(1 + f) = f - f^2/2 + f^3 p(f); p: weighted least squares towards the
 * least largest relative error, on m - 1 in [sqrt(1/2) - 1, sqrt(2) - 1].
 */
FM_INLINE float fm_log(float x)
{
    int is_small = x < 0x1p-126f;
    float scaled = is_small ? x * 0x1p+23f : x;
    uint32_t bits = fm_bits(scaled) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(bits >> 23) - (is_small ? 127 + 23 : 127));
    float f = fm_float((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float z = f * f;
    float p = -7.8595541418e-02f;
    p = FM_FMA(p, f, 1.2881635129e-01f);
    p = FM_FMA(p, f, -1.3128770888e-01f);
    p = FM_FMA(p, f, 1.4181195199e-01f);
    p = FM_FMA(p, f, -1.6624552011e-01f);
    p = FM_FMA(p, f, 2.0002286136e-01f);
    p = FM_FMA(p, f, -2.5000810623e-01f);
    p = FM_FMA(p, f, 3.3333316445e-01f);
    float y = FM_FMA(p * f, z, k * 0x1.7f7d1cp-20f);
    y = FM_FMA(-0.5f, z, y);
    y = FM_FMA(k, 0x1.62e4p-1f, f + y);
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    y = x == INFINITY ? x : y;
    return x != x ? x : y;
}

FM_INLINE float fm_log1p(float x)
{
    /* 1 + x in f64 is exact down to 2^-29; below 2^-20 the series x - x^2/2 is exact enough. */
    double d = (double)x;
    double y = fm_log_d(1.0 + d);
    float tiny = (float)FM_FMAD(d * d, FM_FMAD(d, 1.0 / 3.0, -0.5), d);
    float z = fm_abs(x) < 0x1p-14f ? tiny : (float)y;
    return x == 0.0f ? x : z;
}

FM_INLINE float fm_softplus(float x)
{
    float top = x > 0.0f ? x : 0.0f;
    float y = top + fm_log1p(fm_exp(-fm_abs(x)));
    return x != x ? x : y;
}

FM_INLINE float fm_log_sigmoid(float x)
{
    return -fm_softplus(-x);
}

FM_INLINE float fm_sinh(float x)
{
    double d = (double)x;
    double e = fm_exp_d(d);
    float y = (float)(0.5 * (e - 1.0 / e));
    double z = d * d;
    double p = FM_FMAD(z, 1.0 / 5040.0, 1.0 / 120.0);
    p = FM_FMAD(p, z, 1.0 / 6.0);
    float small = (float)FM_FMAD(p * z, d, d);
    y = fm_abs(x) < 0.125f ? small : y;
    return x == 0.0f ? x : y;
}

FM_INLINE float fm_cosh(float x)
{
    double e = fm_exp_d((double)x);
    return (float)(0.5 * (e + 1.0 / e));
}

/* x = n pi/2 + r, |r| <= pi/4; the low bits of the returned double hold n. */
FM_INLINE double fm_split_trig(double x, double *r)
{
    const double magic = 6755399441055744.0;
    double shifted = x * 0.63661977236758134 + magic;
    double n = shifted - magic;
    double t = x - n * 0x1.921fb5p+0; /* 25 bits: the product is exact */
    t = t - n * 0x1.110b46p-26;
    *r = t - n * 0x1.1a62633145c07p-54;
    return shifted;
}

FM_INLINE double fm_sin_core(double r, double z)
{
    double p = 1.0 / 6227020800.0;
    p = FM_FMAD(p, z, -1.0 / 39916800.0);
    p = FM_FMAD(p, z, 1.0 / 362880.0);
    p = FM_FMAD(p, z, -1.0 / 5040.0);
    p = FM_FMAD(p, z, 1.0 / 120.0);
    p = FM_FMAD(p, z, -1.0 / 6.0);
    return FM_FMAD(p * z, r, r);
}

FM_INLINE double fm_cos_core(double z)
{
    double p = 1.0 / 479001600.0;
    p = FM_FMAD(p, z, -1.0 / 3628800.0);
    p = FM_FMAD(p, z, 1.0 / 40320.0);
    p = FM_FMAD(p, z, -1.0 / 720.0);
    p = FM_FMAD(p, z, 1.0 / 24.0);
    p = FM_FMAD(p, z, -0.5);
    return FM_FMAD(p, z, 1.0);
}

/* sin of the angle plus `quarter` quarter turns. */
FM_INLINE float fm_sin_turned(float x, uint64_t quarter)
{
    double r;
    uint64_t n = fm_bits64(fm_split_trig((double)x, &r)) + quarter;
    double z = r * r;
    double y = (n & 1) != 0 ? fm_cos_core(z) : fm_sin_core(r, z);
    return (float)fm_double(fm_bits64(y) ^ ((n & 2) << 62));
}

/*
 * The same for |x| <= FLEX_TRIG_NEAR, in f32: pi/2 in three parts. The first product and its
 * difference to x are exact, since both are multiples of 2^-24 (2^-23 from 1 on) and the difference
 * is below 1. Polynomials as for log, in z = r^2.
 */
FM_INLINE float fm_sin_near(float x, uint32_t quarter)
{
    const float magic = 12582912.0f;
    float shifted = FM_FMA(x, 0x1.45f306p-1f, magic);
    float n = shifted - magic;
    float r = FM_FMA(n, -0x1.921fb6p+0f, x);
    r = FM_FMA(n, 0x1.777a5cp-25f, r);
    r = FM_FMA(n, 0x1.ee59dap-50f, r);
    float z = r * r;
    float s = FM_FMA(-1.9516010070e-04f, z, 8.3321686834e-03f);
    s = FM_FMA(s, z, -1.6666655242e-01f);
    s = FM_FMA(s * z, r, r);
    float c = FM_FMA(2.4437005777e-05f, z, -1.3887354871e-03f);
    c = FM_FMA(c, z, 4.1666645557e-02f);
    c = FM_FMA(c * z, z, FM_FMA(-0.5f, z, 1.0f));
    uint32_t q = fm_bits(shifted) + quarter;
    float y = (q & 1) != 0 ? c : s;
    y = fm_float(fm_bits(y) ^ ((q & 2) << 30));
    return quarter == 0 && x == 0.0f ? x : y;
}

FM_INLINE float fm_sin(float x)
{
    float y = fm_sin_turned(x, 0);
    return x == 0.0f ? x : y;
}

FM_INLINE float fm_cos(float x)
{
    return fm_sin_turned(x, 1);
}

FM_INLINE float fm_tan(float x)
{
    double r;
    uint64_t n = fm_bits64(fm_split_trig((double)x, &r));
    double z = r * r;
    double s = fm_sin_core(r, z);
    double c = fm_cos_core(z);
    double y = (n & 1) != 0 ? -c / s : s / c;
    return x == 0.0f ? x : (float)y;
}

/* atan on [0, inf]. */
FM_INLINE double fm_atan_pos(double a)
{
    double inv = a > 1.0 ? 1.0 / a : a;
    double t = inv > 0.41421356237309503 ? (inv - 1.0) / (inv + 1.0) : inv;
    double z = t * t;
    double p = 1.0 / 25.0;
    p = FM_FMAD(p, z, -1.0 / 23.0);
    p = FM_FMAD(p, z, 1.0 / 21.0);
    p = FM_FMAD(p, z, -1.0 / 19.0);
    p = FM_FMAD(p, z, 1.0 / 17.0);
    p = FM_FMAD(p, z, -1.0 / 15.0);
    p = FM_FMAD(p, z, 1.0 / 13.0);
    p = FM_FMAD(p, z, -1.0 / 11.0);
    p = FM_FMAD(p, z, 1.0 / 9.0);
    p = FM_FMAD(p, z, -1.0 / 7.0);
    p = FM_FMAD(p, z, 1.0 / 5.0);
    p = FM_FMAD(p, z, -1.0 / 3.0);
    double y = FM_FMAD(p * z, t, t);
    y = inv > 0.41421356237309503 ? y + 0.78539816339744831 : y;
    return a > 1.0 ? 1.57079632679489662 - y : y;
}

FM_INLINE float fm_atan(float x)
{
    return fm_copysign((float)fm_atan_pos((double)fm_abs(x)), x);
}

FM_INLINE float fm_atan2(float y, float x)
{
    double ay = (double)fm_abs(y);
    double ax = (double)fm_abs(x);
    double q = ay / ax;
    q = ay == 0.0 && ax == 0.0 ? 0.0 : q;
    q = ay == ax && ax != 0.0 ? 1.0 : q;
    double a = fm_atan_pos(q);
    a = (fm_bits(x) >> 31) != 0 ? 3.14159265358979312 - a : a;
    float z = fm_copysign((float)a, y);
    return x != x || y != y ? x + y : z;
}

FM_INLINE float fm_asin(float x)
{
    double d = (double)fm_abs(x);
    double c = sqrt((1.0 - d) * (1.0 + d));
    double y = fm_atan_pos(d / c);
    return d <= 1.0 ? fm_copysign((float)y, x) : (x != x ? x : NAN);
}

FM_INLINE float fm_acos(float x)
{
    double d = (double)x;
    double c = sqrt((1.0 - d) / (1.0 + d));
    double y = 2.0 * fm_atan_pos(c);
    return fm_abs(x) <= 1.0f ? (float)y : (x != x ? x : NAN);
}

FM_INLINE float fm_pow(float x, float y)
{
    float ax = fm_abs(x);
    float m = (float)fm_exp_d((double)y * fm_log_d((double)ax));
    float half = 0.5f * y;
    int is_whole = truncf(y) == y;
    int is_odd = is_whole & (truncf(half) != half);
    uint32_t flip = is_odd ? fm_bits(x) & 0x80000000u : 0u;
    m = ax == 1.0f ? 1.0f : m;
    float z = fm_float(fm_bits(m) | flip);
    int no_real = (x < 0.0f) & (is_whole == 0) & (ax < INFINITY);
    z = no_real ? NAN : z;
    int any_nan = (x != x) | (y != y);
    int always_one = (y == 0.0f) | (x == 1.0f);
    z = any_nan ? x + y : z;
    return always_one ? 1.0f : z;
}

FM_INLINE float fm_gelu(float x)
{
    return 0.5f * x * (1.0f + fm_erf(x * 0.70710678118654752f));
}

FM_INLINE float fm_gelu_tanh(float x)
{
    float u = 0.79788456080286536f * FM_FMA(0.044715f * x * x, x, x);
    return 0.5f * x * (1.0f + fm_tanh(u));
}

/* Derivatives. At infinity the second term is 0, not inf * 0. */
FM_INLINE float fm_gelu_slope(float x)
{
    float c = 0.5f * (1.0f + fm_erf(x * 0.70710678118654752f));
    float b = x > 20.0f ? 20.0f : x;
    b = b < -20.0f ? -20.0f : b;
    return c + 0.39894228040143268f * b * fm_exp(-0.5f * b * b);
}

FM_INLINE float fm_gelu_tanh_slope(float x)
{
    float b = x > 20.0f ? 20.0f : x;
    b = b < -20.0f ? -20.0f : b;
    float u = 0.79788456080286536f * FM_FMA(0.044715f * b * b, b, b);
    float t = fm_tanh(u);
    float du = 0.79788456080286536f * FM_FMA(0.134145f * b, b, 1.0f);
    return 0.5f * (1.0f + t) + 0.5f * b * (1.0f - t * t) * du;
}

#endif /* BURN_PLUGINS_FLEX_MATH_F32_H */
