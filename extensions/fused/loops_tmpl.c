/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loops_tmpl.c - the loops of loops.h, compiled once per instruction set (ISA names the table).
 *
 * Plain C that compilers turn into vectors: no branches, no calls of libm, sums in a fixed number
 * of lanes, so that bits depend on the instruction set only. Statistics of rows are in f64. exp is
 * 2^n e^r with a polynomial of degree 6 in r; erf is Abramowitz and Stegun 7.1.26, good to 1.5e-7,
 * which gelu halves.
 */
#include "loops.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)
#define INLINE      static inline __attribute__((always_inline))

/* ---- functions ------------------------------------------------------------------------------- */

INLINE float bits_to_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

INLINE int32_t float_to_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* a b + c, rounded once where that is one instruction. */
INLINE float times_plus(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* e^x for x up to 0 (or NaN): subnormal below -87.3 and 0 from -104 on. 2^n is two factors. */
INLINE float exp_of(float x)
{
    const float magic = 12582912.0F; /* 1.5 * 2^23: adding it rounds to a whole number */
    float clipped = x < -105.0F ? -105.0F : x;
    float shifted = times_plus(clipped, 1.44269504F, magic);
    float n = shifted - magic;
    float r = times_plus(n, -0.693359375F, clipped);
    r = times_plus(n, 2.12194440e-4F, r);
    float p = times_plus(1.0F / 720.0F, r, 1.0F / 120.0F);
    p = times_plus(p, r, 1.0F / 24.0F);
    p = times_plus(p, r, 1.0F / 6.0F);
    p = times_plus(p, r, 0.5F);
    p = times_plus(p, r, 1.0F);
    p = times_plus(p, r, 1.0F);
    /* The whole number is in the low bits of `shifted`. */
    int32_t whole = float_to_bits(shifted) - 0x4B400000;
    int32_t half = whole >> 1;
    float low = bits_to_float((int32_t)((uint32_t)(half + 127) << 23));
    float high = bits_to_float((int32_t)((uint32_t)(whole - half + 127) << 23));
    return p * low * high;
}

/* e^x / (1 + e^x) below 0: what gets small is the numerator, which ends at 0. */
INLINE float sigmoid_of(float x)
{
    float e = exp_of(-fabsf(x));
    float top = x < 0.0F ? e : 1.0F;
    return top / (1.0F + e);
}

INLINE float gelu_of(float x)
{
    float z = fabsf(x) * 0.70710678F;
    float t = 1.0F / (1.0F + 0.3275911F * z);
    float p = 1.061405429F;
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    float tail = p * t * exp_of(-z * z); /* erfc(z) */
    float curve = x < 0.0F ? tail : 2.0F - tail;
    return 0.5F * x * curve;
}

INLINE float gelu_tanh_of(float x)
{
    /* 0.5 (1 + tanh u) = sigmoid(2 u) */
    float u2 = 1.59576912F * (x + 0.044715F * x * x * x);
    return x * sigmoid_of(u2);
}

/* ---- blocks of a product --------------------------------------------------------------------- */

static void relu(float *c, int64_t ld, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = c + i * ld;
        for (int64_t j = 0; j < cols; j++) {
            row[j] = row[j] < 0.0F ? 0.0F : row[j];
        }
    }
}

static void gelu(float *c, int64_t ld, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = c + i * ld;
        for (int64_t j = 0; j < cols; j++) {
            row[j] = gelu_of(row[j]);
        }
    }
}

static void gelu_tanh(float *c, int64_t ld, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = c + i * ld;
        for (int64_t j = 0; j < cols; j++) {
            row[j] = gelu_tanh_of(row[j]);
        }
    }
}

/* ---- element by element ---------------------------------------------------------------------- */

static void swiglu(float *out, const float *gate, const float *up, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float x = gate[k];
        out[k] = x * sigmoid_of(x) * up[k];
    }
}

static void lion(float *param, float *m, const float *from_param, const float *from_m,
                 const float *grad, const fused_lion *a, int64_t n)
{
    const float lr = (float)a->lr;
    const float decay = (float)a->weight_decay;
    const float b1 = (float)a->beta1;
    const float c1 = (float)(1.0 - a->beta1);
    const float b2 = (float)a->beta2;
    const float c2 = (float)(1.0 - a->beta2);
    for (int64_t k = 0; k < n; k++) {
        float g = grad[k];
        float old = from_m[k];
        float p = from_param[k];
        float mix = b1 * old + c1 * g;
        float step = (mix > 0.0F ? 1.0F : 0.0F) - (mix < 0.0F ? 1.0F : 0.0F);
        param[k] = p - lr * (step + decay * p);
        m[k] = b2 * old + c2 * g;
    }
}

static void lion_f64(double *param, double *m, const double *from_param, const double *from_m,
                     const double *grad, const fused_lion *a, int64_t n)
{
    const fused_lion c = *a;
    for (int64_t k = 0; k < n; k++) {
        double g = grad[k];
        double old = from_m[k];
        double p = from_param[k];
        double mix = c.beta1 * old + (1.0 - c.beta1) * g;
        double step = (mix > 0.0 ? 1.0 : 0.0) - (mix < 0.0 ? 1.0 : 0.0);
        param[k] = p - c.lr * (step + c.weight_decay * p);
        m[k] = c.beta2 * old + (1.0 - c.beta2) * g;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * Floats are widened before anything is summed, so that squares do not overflow. As many doubles as
 * a register holds: gcc 12 takes wider conversions apart, element by element.
 */
#if defined(__AVX512F__)
enum { WIDTH = 8 };
typedef double doubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
#else
enum { WIDTH = 4 };
typedef double doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef float floats __attribute__((vector_size(16), aligned(4), may_alias));
#endif

INLINE floats load(const float *x)
{
    floats value;
    memcpy(&value, x, sizeof(value));
    return value;
}

INLINE void store(float *y, floats value)
{
    memcpy(y, &value, sizeof(value));
}

/* gcc 12 makes three instructions of a conversion by vectors of 512 bits. */
INLINE doubles widen(floats x)
{
#if defined(__AVX512F__)
    return (doubles)_mm512_cvtps_pd((__m256)x);
#else
    return __builtin_convertvector(x, doubles);
#endif
}

INLINE double fold(doubles a, doubles b)
{
    doubles both = a + b;
    double sum[2] = {0.0, 0.0};
    for (int i = 0; i < WIDTH; i += 2) {
        sum[0] += both[i];
        sum[1] += both[i + 1];
    }
    return sum[0] + sum[1];
}

/* Asks memory for an element that may lie beyond the end of the array, which then does nothing. */
INLINE void fetch(const float *x, int64_t k)
{
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)k * sizeof(float)));
}

/*
 * out = x + y; mean and variance of out, from one pass over its distances d from out[0], in f64:
 * variance = mean(d^2) - mean(d)^2. Either term is at most n + 1 times as large, since out[0] is
 * one of the n: of 53 bits log2(n) may be lost, and f32 has 24 (docs/adr/046). n > 0.
 */
INLINE void add_row(float *out, const float *x, const float *y, int64_t n, double moments[2])
{
    const double first = (double)(x[0] + y[0]);
    doubles sums[2] = {{0.0}, {0.0}};
    doubles squares[2] = {{0.0}, {0.0}};
    int64_t k = 0;
    for (; k + 2 * WIDTH <= n; k += 2 * WIDTH) {
        fetch(x, n + k);
        for (int64_t i = 0; i < 2; i++) {
            floats sum = load(x + k + i * WIDTH) + load(y + k + i * WIDTH);
            store(out + k + i * WIDTH, sum);
            doubles d = widen(sum) - first;
            sums[i] += d;
            squares[i] += d * d;
        }
    }
    double mean = fold(sums[0], sums[1]);
    double square = fold(squares[0], squares[1]);
    for (; k < n; k++) {
        out[k] = x[k] + y[k];
        double d = (double)out[k] - first;
        mean += d;
        square += d * d;
    }
    mean /= (double)n;
    moments[0] = first + mean;
    moments[1] = square / (double)n - mean * mean;
}

/* The mean is taken off in two parts, which near it costs no digits. */
static void add_norm(float *out, const float *x, const float *y, const float *gamma,
                     const float *beta, double eps, int64_t n)
{
    if (n == 0) {
        return;
    }
    double moments[2];
    add_row(out, x, y, n, moments);
    const float scale = (float)(1.0 / sqrt(moments[1] + eps));
    const float most = (float)moments[0];
    const float rest = most - most == 0.0F ? (float)(moments[0] - (double)most) : 0.0F;
    int64_t k = 0;
    for (; k + WIDTH <= n; k += WIDTH) {
        fetch(y, n + k);
        floats normal = ((load(out + k) - most) - rest) * scale;
        store(out + k, normal * load(gamma + k) + load(beta + k));
    }
    for (; k < n; k++) {
        out[k] = ((out[k] - most) - rest) * scale * gamma[k] + beta[k];
    }
}

static void add_norm_f64(double *out, const double *x, const double *y, const double *gamma,
                         const double *beta, double eps, int64_t n)
{
    double mean = 0.0;
    double variance = 0.0;
    for (int64_t k = 0; k < n; k++) {
        out[k] = x[k] + y[k];
        mean += out[k];
    }
    mean /= (double)n;
    for (int64_t k = 0; k < n; k++) {
        variance += (out[k] - mean) * (out[k] - mean);
    }
    double scale = 1.0 / sqrt(variance / (double)n + eps);
    for (int64_t k = 0; k < n; k++) {
        out[k] = (out[k] - mean) * scale * gamma[k] + beta[k];
    }
}

/* ---- past the caches ------------------------------------------------------------------------- */

#if defined(__SSE2__)

/* A line of memory at a time: one that is written in pieces costs several trips. */
static void stream(float *out, const float *from, int64_t n)
{
    enum { LINE = 16 };
    int64_t k = 0;
    for (; k < n && ((uintptr_t)(out + k) & 63) != 0; k++) {
        out[k] = from[k];
    }
    for (; k + LINE <= n; k += LINE) {
#if defined(__AVX512F__)
        _mm512_stream_ps(out + k, _mm512_loadu_ps(from + k));
#else
        for (int64_t i = k; i < k + LINE; i += 4) {
            _mm_stream_ps(out + i, _mm_loadu_ps(from + i));
        }
#endif
    }
    for (; k < n; k++) {
        out[k] = from[k];
    }
}

static void flushed(void)
{
    _mm_sfence();
}

#define STREAM stream
#define FLUSHED flushed
#else
#define STREAM NULL
#define FLUSHED NULL
#endif

const fused_loops JOIN(fused_loops_, ISA) = {
    .relu = relu,
    .gelu = gelu,
    .gelu_tanh = gelu_tanh,
    .swiglu = swiglu,
    .add_norm = add_norm,
    .add_norm_f64 = add_norm_f64,
    .lion = lion,
    .lion_f64 = lion_f64,
    .stream = STREAM,
    .flushed = FLUSHED,
};
