/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_f32_tmpl.c - the f32 line table, compiled once per ISA with ISA defined as baseline,
 * avx2 or avx512. The loops are in nn_lines_tmpl.h; exp is the backend's own, and what only AVX-512
 * has is here: exp by blocks, and softmax of lines past the caches.
 */
#include "nn_lines.h"

#include "math_f32.h"
#include "widen.h"

#include <burn/dtype.h>

/* out = exp(x - shift) for LANES elements; both may be the same. */
static inline __attribute__((always_inline)) void exp_lanes(float *out, const float *x,
                                                            float shift)
{
#if defined(__AVX512F__)
    __m512 d = _mm512_sub_ps(_mm512_loadu_ps(x), _mm512_set1_ps(shift));
    fm_exp_vectors(&d, 1);
    _mm512_storeu_ps(out, d);
#else
    FLEX_LINE_LOOP
    for (int l = 0; l < FLEX_LINE_LANES; l++) {
        out[l] = fm_exp(x[l] - shift);
    }
#endif
}

#if defined(__AVX512F__)
/* The same for a block; also the sums of the elements that are FLEX_LINE_LANES apart. */
static inline __attribute__((always_inline)) void exp_block(float *out, float *sums,
                                                            const float *x, float shift)
{
    enum { COUNT = FLEX_LINE_BLOCK / FLEX_LINE_LANES };
    __m512 d[COUNT];
    for (int k = 0; k < COUNT; k++) {
        __m512 from = _mm512_loadu_ps(x + (ptrdiff_t)k * FLEX_LINE_LANES);
        d[k] = _mm512_sub_ps(from, _mm512_set1_ps(shift));
    }
    fm_exp_vectors(d, COUNT);
    for (int k = 0; k < COUNT; k++) {
        _mm512_storeu_ps(out + (ptrdiff_t)k * FLEX_LINE_LANES, d[k]);
    }
    __m512 pairs[2] = {_mm512_add_ps(d[0], d[1]), _mm512_add_ps(d[2], d[3])};
    _mm512_storeu_ps(sums, _mm512_add_ps(pairs[0], pairs[1]));
}
#define EXP_BLOCK exp_block

/* Of sixteen. */
static inline __attribute__((always_inline)) float largest_lane(const float *best)
{
    return _mm512_reduce_max_ps(_mm512_loadu_ps(best));
}
#define LARGEST_LANE largest_lane

static void far_softmax(void *out, const void *x, int64_t n, int64_t rows);
#define FAR_SOFTMAX far_softmax
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
#define ONE_PASS_MOST 65536 /* 53 - 16 bits are left, less what adding loses */

#include "nn_lines_tmpl.h"

#if defined(__AVX512F__)
/* y = line * by, past the caches. */
static inline __attribute__((always_inline)) void stream_lanes(float *y, const float *line,
                                                               float by)
{
    _mm512_stream_ps(y, _mm512_mul_ps(_mm512_load_ps(line), _mm512_set1_ps(by)));
}

/*
 * Lines of results that no cache will hold, in one loop for all of them, so that memory never
 * waits: while a line is computed, the one before is written and the next one searched for its
 * maximum. The bits are those of single lines.
 */
static void far_softmax(void *pout, const void *px, int64_t n, int64_t rows)
{
    enum { AHEAD = 8192 /* bytes */ };
    float lines[2][FLEX_FAR_MOST] __attribute__((aligned(64)));
    const float *x = px;
    float *out = pout;
    float by = 0.0f;
    float top = rows > 0 ? (float)line_max(x, n) : 0.0f;
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        float *line = lines[r % 2];
        const float *before = lines[(r + 1) % 2];
        const float *next = r + 1 < rows ? x + n : x;
        __m512 best = _mm512_loadu_ps(next);
        lane_sums s = {{{0}}};
        for (int64_t i = 0; i < n; i += BLOCK) {
            float some[LANES];
            for (int64_t k = i; k < i + BLOCK; k += LANES) {
                __builtin_prefetch((const void *)((uintptr_t)(next + k) + AHEAD));
                best = _mm512_max_ps(_mm512_loadu_ps(next + k), best);
                if (r > 0) {
                    stream_lanes(out - n + k, before + k, by);
                }
            }
            exp_block(line + i, some, x + i, top);
            add_lanes(&s, some);
        }
        by = (float)(1.0 / fold(&s));
        top = _mm512_reduce_max_ps(best);
    }
    for (int64_t i = 0; rows > 0 && i < n; i += LANES) {
        stream_lanes(out - n + i, lines[(rows + 1) % 2] + i, by);
    }
}
#endif
