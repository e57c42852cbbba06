/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_f32_tmpl.c - elementwise loops of f32 and the half conversions, compiled once per ISA
 * with ISA defined as baseline, avx2 or avx512.
 *
 * Owns no shape and no thread. The ops themselves are in pointwise_float.h, shared with f64. Built
 * without contraction, so a fused multiply-add stands only where the source says so.
 */
#include "kernels.h"
#include "math_f32.h"

#include <burn_sdk/half.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
#include "tanh_f32.h"
#endif

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define ISA_NAME(name) PASTE(name, ISA)

extern const flex_pointwise_table ISA_NAME(flex_pointwise_f32_);
extern const flex_reduce_table ISA_NAME(flex_reduce_table_);
extern const flex_random_table ISA_NAME(flex_random_table_);
extern const flex_strand_table ISA_NAME(flex_strand_table_);

/*
 * Angles are reduced in f32 where that is exact enough, else in f64; where that ends too, and for
 * infinities and NaN, libm does them one by one. Inputs are kept, since the output may be the same
 * array.
 */
enum { TRIG_RUN = 64 };

typedef struct trig {
    void (*near)(float *z, const float *x);
    void (*wide)(float *z, const float *x);
    float (*exact)(float x);
} trig;

/* Is any of them above the limit, or NaN? */
static int any_above(const float *x, float limit)
{
    int found = 0;
    for (uint32_t k = 0; k < TRIG_RUN; k++) {
        found |= !(fm_abs(x[k]) <= limit);
    }
    return found;
}

/* The same element gets the same bits, whatever its neighbours are. */
static void trig_run(float *out, const float *in, uint64_t m, const trig *t)
{
    t->near(out, in);
    if (!any_above(in, FLEX_TRIG_NEAR)) {
        return;
    }
    float wide[TRIG_RUN];
    t->wide(wide, in);
    for (uint64_t k = 0; k < m; k++) {
        float a = fm_abs(in[k]);
        if (!(a <= FLEX_TRIG_NEAR)) {
            out[k] = a <= FLEX_TRIG_MAX ? wide[k] : t->exact(in[k]);
        }
    }
}

static uint64_t trig_runs(float *z, const float *x, uint64_t n, const trig *t)
{
    for (uint64_t i = 0; i < n; i += TRIG_RUN) {
        uint64_t m = n - i < TRIG_RUN ? n - i : TRIG_RUN;
        float in[TRIG_RUN] = {0};
        float out[TRIG_RUN];
        memcpy(in, x + i, m * sizeof(float));
        trig_run(out, in, m, t);
        memcpy(z + i, out, m * sizeof(float));
    }
    return n;
}
static void sin_near(float *z, const float *x)
{
    for (uint32_t i = 0; i < TRIG_RUN; i++) {
        z[i] = fm_sin_near(x[i], 0);
    }
}

static void sin_wide(float *z, const float *x)
{
    for (uint32_t i = 0; i < TRIG_RUN; i++) {
        z[i] = fm_sin(x[i]);
    }
}

static void cos_near(float *z, const float *x)
{
    for (uint32_t i = 0; i < TRIG_RUN; i++) {
        z[i] = fm_sin_near(x[i], 1);
    }
}

static void cos_wide(float *z, const float *x)
{
    for (uint32_t i = 0; i < TRIG_RUN; i++) {
        z[i] = fm_cos(x[i]);
    }
}

static void tan_wide(float *z, const float *x)
{
    for (uint32_t i = 0; i < TRIG_RUN; i++) {
        z[i] = fm_tan(x[i]);
    }
}

static uint64_t run_sin(void *z, const void *x, uint64_t n)
{
    static const trig t = {sin_near, sin_wide, sinf};
    return trig_runs(z, x, n, &t);
}

static uint64_t run_cos(void *z, const void *x, uint64_t n)
{
    static const trig t = {cos_near, cos_wide, cosf};
    return trig_runs(z, x, n, &t);
}

/* Of a quotient both parts would be rounded in f32: it is always made in f64. */
static uint64_t run_tan(void *z, const void *x, uint64_t n)
{
    static const trig t = {tan_wide, tan_wide, tanf};
    return trig_runs(z, x, n, &t);
}

#if defined(__AVX512F__)
FM_INLINE void fm_tanh_vectors(__m512 *x, int count)
{
    for (int k = 0; k < count; k++) {
        x[k] = fm_tanh_16(x[k]);
    }
}

enum { VECTOR = 16 /* floats */, IN_STEP = 4 /* vectors */ };

/* Some vectors in step, then one by one, the last of which may be masked: the same operations for
 * every lane. */
FM_INLINE uint64_t map_vectors(float *z, const float *x, uint64_t n, void (*f)(__m512 *, int))
{
    uint64_t i = 0;
    for (; i + IN_STEP * VECTOR <= n; i += IN_STEP * VECTOR) {
        __m512 some[IN_STEP];
        for (int k = 0; k < IN_STEP; k++) {
            some[k] = _mm512_loadu_ps(x + i + VECTOR * k);
        }
        f(some, IN_STEP);
        for (int k = 0; k < IN_STEP; k++) {
            _mm512_storeu_ps(z + i + VECTOR * k, some[k]);
        }
    }
    for (; i < n; i += VECTOR) {
        __mmask16 some = n - i < VECTOR ? (__mmask16)((1u << (n - i)) - 1u) : (__mmask16)0xffff;
        __m512 rest = _mm512_maskz_loadu_ps(some, x + i);
        f(&rest, 1);
        _mm512_mask_storeu_ps(z + i, some, rest);
    }
    return n;
}

/* Whole lines past the caches, one by one: several at a time keep memory waiting (a Zen 5: 50 to 56
 * GB/s of exp, not 55 to 65). */
FM_INLINE uint64_t map_vectors_past(float *z, const float *x, uint64_t n, void (*f)(__m512 *, int))
{
    for (uint64_t i = 0; i < n; i += VECTOR) {
        __m512 line = _mm512_loadu_ps(x + i);
        f(&line, 1);
        _mm512_stream_ps(z + i, line);
    }
    return n;
}

#define VECTOR_LOOP(name)                                                                          \
    static uint64_t run_##name##_vectors(void *out, const void *in, uint64_t n)                    \
    {                                                                                              \
        return map_vectors(out, in, n, fm_##name##_vectors);                                       \
    }                                                                                              \
    static uint64_t past_##name##_vectors(void *out, const void *in, uint64_t n)                   \
    {                                                                                              \
        return map_vectors_past(out, in, n, fm_##name##_vectors);                                  \
    }
VECTOR_LOOP(exp)
VECTOR_LOOP(tanh)
#define RUN_EXP run_exp_vectors
#define RUN_TANH run_tanh_vectors
#define PAST_EXP past_exp_vectors
#define PAST_TANH past_tanh_vectors
#define RUN_DIV run_div_16
static uint64_t run_div_16(void *out, const void *in, const void *with, uint64_t n, uint32_t mode);
#endif

#define T float
#define FN(name) fm_##name
#define C(name) name##f
#define TABLE ISA_NAME(flex_pointwise_f32_)
#include "pointwise_float.h"

#if defined(__AVX512F__)
/*
 * Many numbers by one: with r = 1 / y, q = x r is corrected twice by (x - q y) r, which is 5 cycles
 * for 16 of them where the divider needs 8. The remainder is exact the second time, and what is
 * rounded then is off by less than 2^-49 (numbers between 1 and 2), while no quotient comes that
 * near to the middle of two floats: the bits are those of a division. (Markstein, Computation of
 * elementary functions on the IBM RISC System/6000, 1990.) Not so where the fraction of y is all
 * ones, and where a quotient is not normal or a remainder is too small: those are divided.
 */
static int divides_by_factor(float y)
{
    return y >= 0x1p-20f && y <= 0x1p+20f && (fm_bits(y) & 0x7fffffu) != 0x7fffffu;
}

FM_INLINE __m512 divide_16(__m512 x, __m512 y, __m512 r)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i least = _mm512_set1_epi32((127 - 100) << 23);
    const __m512i range = _mm512_set1_epi32(200 << 23);
    __m512i bits = _mm512_castps_si512(x);
    __m512i above = _mm512_sub_epi32(_mm512_and_si512(bits, magnitude), least);
    __mmask16 fits = _mm512_cmple_epu32_mask(above, range);
    fits |= _mm512_testn_epi32_mask(bits, magnitude);
    __m512 q = _mm512_mul_ps(x, r);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(y, q, x), r, q);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(y, q, x), r, q);
    /* A zero keeps its sign; y is positive. */
    __m512i with_sign = _mm512_ternarylogic_epi32(magnitude, _mm512_castps_si512(q), bits, 0xca);
    q = _mm512_castsi512_ps(with_sign);
    return fits == 0xffff ? q : _mm512_div_ps(x, y);
}

static uint64_t run_div_16(void *out, const void *in, const void *with, uint64_t n, uint32_t mode)
{
    float *z = out;
    const float *x = in;
    if (mode != FLEX_MODE_Y_SCALAR || n == 0 || !divides_by_factor(*(const float *)with)) {
        return run_div(out, in, with, n, mode);
    }
    const __m512 y = _mm512_set1_ps(*(const float *)with);
    const __m512 r = _mm512_div_ps(_mm512_set1_ps(1.0f), y);
    uint64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm512_storeu_ps(z + i, divide_16(_mm512_loadu_ps(x + i), y, r));
    }
    if (i < n) {
        __mmask16 some = (__mmask16)((1u << (n - i)) - 1u);
        __m512 rest = divide_16(_mm512_maskz_loadu_ps(some, x + i), y, r);
        _mm512_mask_storeu_ps(z + i, some, rest);
    }
    return n;
}
#endif

static void half_to_float(void *out, const void *in, uint64_t n)
{
    float *z = out;
    const uint16_t *x = in;
    uint64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(x + i));
        _mm256_storeu_ps(z + i, _mm256_cvtph_ps(h));
    }
#endif
    for (; i < n; i++) {
        z[i] = burn_half_to_float(x[i]);
    }
}

static void float_to_half(void *out, const void *in, uint64_t n)
{
    uint16_t *z = out;
    const float *x = in;
    uint64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(z + i), h);
    }
#endif
    for (; i < n; i++) {
        z[i] = burn_float_to_half(x[i]);
    }
}

static void bfloat_to_float(void *out, const void *in, uint64_t n)
{
    float *z = out;
    const uint16_t *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = burn_bfloat_to_float(x[i]);
    }
}

static void float_to_bfloat(void *out, const void *in, uint64_t n)
{
    uint16_t *z = out;
    const float *x = in;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = fm_bits(x[i]);
        uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
        uint32_t nan = (bits >> 16) | 0x0040u;
        z[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
}

const flex_isa_table ISA_NAME(flex_isa_table_) = {
    .f32 = &ISA_NAME(flex_pointwise_f32_),
    .reduce = &ISA_NAME(flex_reduce_table_),
    .random = &ISA_NAME(flex_random_table_),
    .strand = &ISA_NAME(flex_strand_table_),
    .half_to_float = half_to_float,
    .float_to_half = float_to_half,
    .bfloat_to_float = bfloat_to_float,
    .float_to_bfloat = float_to_bfloat,
};
