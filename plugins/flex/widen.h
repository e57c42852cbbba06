/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * widen.h - a vector of doubles from as many floats, for sums that are kept in f64.
 *
 * The vector is as wide as the ISA's registers: compilers take wider ones apart, some into single
 * elements. Loops that add up several of them, for a fixed number of lanes in all, give the same
 * sums with every ISA. Addresses need no alignment. To add an ISA: its width and its conversion.
 */
#ifndef BURN_PLUGINS_FLEX_WIDEN_H
#define BURN_PLUGINS_FLEX_WIDEN_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define FLEX_WIDE 8
#elif defined(__AVX2__)
#include <immintrin.h>
#define FLEX_WIDE 4
#else
#define FLEX_WIDE 2
#endif

typedef double flex_doubles
    __attribute__((vector_size(FLEX_WIDE * 8), aligned(8), may_alias));

/* FLEX_WIDE floats as doubles. */
static inline __attribute__((always_inline)) flex_doubles flex_widen_floats(const float *x)
{
#if defined(__AVX512F__)
    return (flex_doubles)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined(__AVX2__)
    return (flex_doubles)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    return (flex_doubles){(double)x[0], (double)x[1]};
#endif
}

/* FLEX_WIDE doubles. */
static inline __attribute__((always_inline)) flex_doubles flex_load_doubles(const double *x)
{
    flex_doubles value;
    memcpy(&value, x, sizeof(value));
    return value;
}

/* a * b + c, rounded once where the ISA can. */
static inline __attribute__((always_inline)) flex_doubles
flex_fma_doubles(flex_doubles a, flex_doubles b, flex_doubles c)
{
#if defined(__AVX512F__)
    return (flex_doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
    return (flex_doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

/* The sum of the lanes of n vectors, a power of two of at most 16: pairwise, each lane with the one
 * half of them away. In registers: by way of memory it would hold up the run that follows. */
static inline __attribute__((always_inline)) double flex_fold_doubles(const flex_doubles *x,
                                                                      uint32_t n)
{
    flex_doubles part[16];
    memcpy(part, x, n * sizeof(*x));
    for (uint32_t half = n / 2; half > 0; half /= 2) {
        for (uint32_t k = 0; k < half; k++) {
            part[k] += part[k + half];
        }
    }
    flex_doubles v = part[0];
#if FLEX_WIDE == 8
    typedef double four __attribute__((vector_size(32)));
    four q = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (q[0] + q[2]) + (q[1] + q[3]);
#elif FLEX_WIDE == 4
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    return v[0] + v[1];
#endif
}

#endif /* BURN_PLUGINS_FLEX_WIDEN_H */
