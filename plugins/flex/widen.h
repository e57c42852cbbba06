/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * widen.h - eight floats as eight doubles, for sums that are kept in f64.
 *
 * Written out for AVX-512, where gcc 12 makes three instructions of what is one. The values are the
 * same everywhere: a float is a double exactly. `x` needs no alignment.
 */
#ifndef BURN_PLUGINS_FLEX_WIDEN_H
#define BURN_PLUGINS_FLEX_WIDEN_H

#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

typedef double flex_doubles __attribute__((vector_size(64), aligned(8), may_alias));

static inline __attribute__((always_inline)) flex_doubles flex_widen8(const float *x)
{
#if defined(__AVX512F__)
    return (flex_doubles)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#else
    typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
    floats value;
    memcpy(&value, x, sizeof(value));
    return __builtin_convertvector(value, flex_doubles);
#endif
}

static inline __attribute__((always_inline)) flex_doubles flex_load8(const double *x)
{
    flex_doubles value;
    memcpy(&value, x, sizeof(value));
    return value;
}

#endif /* BURN_PLUGINS_FLEX_WIDEN_H */
