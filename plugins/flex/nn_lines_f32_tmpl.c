/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_f32_tmpl.c - the f32 line table, compiled once per ISA with ISA defined as baseline,
 * avx2 or avx512. The loops are in nn_lines_tmpl.h; exp is the backend's own.
 */
#include "nn_lines.h"

#include "math_f32.h"
#include "widen.h"

#include <burn/dtype.h>

/* out = exp(x - shift) for 16 elements; both may be the same. */
static inline __attribute__((always_inline)) void exp_lanes(float *out, const float *x,
                                                            float shift)
{
#if defined(__AVX512F__)
    __m512 d = _mm512_sub_ps(_mm512_loadu_ps(x), _mm512_set1_ps(shift));
    _mm512_storeu_ps(out, fm_exp_16(d));
#else
    FLEX_LINE_LOOP
    for (int l = 0; l < 16; l++) {
        out[l] = fm_exp(x[l] - shift);
    }
#endif
}

#if defined(__AVX512F__)
/* out = x * by for 16 elements, past the caches. */
static inline __attribute__((always_inline)) void stream_lanes(float *out, const float *x, float by)
{
    _mm512_stream_ps(out, _mm512_mul_ps(_mm512_load_ps(x), _mm512_set1_ps(by)));
}
#define STREAM_LANES stream_lanes

/* The larger of 16 elements each; NaN in x are passed over. */
static inline __attribute__((always_inline)) void max_lanes(float *best, const float *x)
{
    _mm512_storeu_ps(best, _mm512_max_ps(_mm512_loadu_ps(x), _mm512_loadu_ps(best)));
}
#define MAX_LANES max_lanes
#endif

#define TABLE_OF(isa) flex_lines_f32_##isa
#define TABLE_NAME(isa) TABLE_OF(isa)
#define TABLE TABLE_NAME(ISA)
#define TABLE_DTYPE BURN_F32
#define T float
#define I int32_t
#define EXP fm_exp
#define EXP_LANES exp_lanes
#define SQRT sqrtf
#define WIDEN flex_widen_floats

#include "nn_lines_tmpl.h"
