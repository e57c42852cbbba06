/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_f32_tmpl.c - the common reductions of dense f32 runs, compiled once per ISA with ISA
 * defined as baseline, avx2 or avx512.
 *
 * Sums use 64 chains, whatever the ISA, which only decides how many of them a vector holds: all
 * ISAs add in the same order. Tails are padded with the neutral element and take the same path.
 * Callers keep runs short and add their results pairwise.
 */
#include "kernels.h"
#include "math_f32.h"
#include "reduce.h"
#include "widen.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define ISA_NAME(name) PASTE(name, ISA)

extern const flex_reduce_table ISA_NAME(flex_reduce_table_);

/* Floats of a register: compilers take wider vectors apart, some into single elements. */
#if defined(__AVX512F__)
#define WIDTH 16
#elif defined(__AVX2__)
#define WIDTH 8
#else
#define WIDTH 4
#endif

enum { LANES = 16, STEP = 64, CHAINS = STEP / WIDTH, AHEAD = 4096 };

typedef float vec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *x)
{
    return *(const vec *)(const void *)x;
}

/* The last, incomplete step, filled up with `pad`. */
INLINE void load_tail(float *out, const float *x, uint64_t n, float pad)
{
    for (uint32_t i = 0; i < STEP; i++) {
        out[i] = pad;
    }
    memcpy(out, x, n * sizeof(float));
}

typedef float quad __attribute__((vector_size(16)));

#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15

/* Lanes of one register, each with the one half of them away; in registers, since memory would hold
 * up the run that follows. */
INLINE float fold_lanes(vec v)
{
#if WIDTH == 16
    typedef float octet __attribute__((vector_size(32)));
    octet o = __builtin_shufflevector(v, v, LOW_8) + __builtin_shufflevector(v, v, HIGH_8);
#elif WIDTH == 8
    vec o = v;
#endif
#if WIDTH > 4
    quad q = __builtin_shufflevector(o, o, 0, 1, 2, 3) + __builtin_shufflevector(o, o, 4, 5, 6, 7);
#else
    quad q = v;
#endif
    return (q[0] + q[2]) + (q[1] + q[3]);
}

/* The chains of a lane first, then lanes pairwise. */
INLINE float chain_sum(const vec *acc)
{
    enum { PARTS = LANES / WIDTH };
    vec part[PARTS];
    for (uint32_t k = 0; k < PARTS; k++) {
        part[k] = (acc[k] + acc[k + PARTS]) + (acc[k + 2 * PARTS] + acc[k + 3 * PARTS]);
    }
    for (uint32_t half = PARTS / 2; half > 0; half /= 2) {
        for (uint32_t k = 0; k < half; k++) {
            part[k] += part[k + half];
        }
    }
    return fold_lanes(part[0]);
}

/* `ahead`: asks for what follows, which may be another row that the CPU does not foresee. */
INLINE float sum(const float *x, uint64_t n, int ahead)
{
    vec acc[CHAINS] = {{0}};
    uint64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        for (uint32_t k = 0; ahead && k < STEP; k += LANES) {
            __builtin_prefetch((const void *)((uintptr_t)(x + i + k) + AHEAD));
        }
        for (uint32_t k = 0; k < CHAINS; k++) {
            acc[k] += load(x + i + k * WIDTH);
        }
    }
    if (i < n) {
        float tail[STEP];
        load_tail(tail, x + i, n - i, 0.0f);
        for (uint32_t k = 0; k < CHAINS; k++) {
            acc[k] += load(tail + k * WIDTH);
        }
    }
    return chain_sum(acc);
}

/* One run after the other: two at a time hide what their ends cost, but some CPUs fetch only one
 * stream ahead of its loads (bench/README.md). */
INLINE double add_runs(double from, const float *x, uint64_t n, int ahead)
{
    enum { RUN = FLEX_REDUCE_RUN };
    while (n > 0) {
        uint64_t run = n < RUN ? n : RUN;
        from += (double)sum(x, run, ahead);
        x += run;
        n -= run;
    }
    return from;
}

static double sum_runs(double from, const float *x, uint64_t n)
{
    return add_runs(from, x, n, 0);
}

static double sum_runs_ahead(double from, const float *x, uint64_t n)
{
    return add_runs(from, x, n, 1);
}

/* Which lanes are NaN, and the better of two: the second where neither is, or one is NaN. */
#if defined(__AVX512F__)
typedef __mmask16 lane_mask;

INLINE lane_mask nan_lanes(vec x)
{
    return _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
}

INLINE int any_lane(lane_mask mask)
{
    return mask != 0;
}

INLINE vec better(vec x, vec than, int largest)
{
    return largest ? (vec)_mm512_max_ps((__m512)x, (__m512)than)
                   : (vec)_mm512_min_ps((__m512)x, (__m512)than);
}
#else
typedef int32_t lane_mask __attribute__((vector_size(WIDTH * 4)));

INLINE lane_mask nan_lanes(vec x)
{
    return x != x;
}

INLINE int any_lane(lane_mask mask)
{
    int32_t any = 0;
    for (uint32_t k = 0; k < WIDTH; k++) {
        any |= mask[k];
    }
    return any != 0;
}

INLINE vec better(vec x, vec than, int largest)
{
    lane_mask mask = largest ? x > than : x < than;
    lane_mask yes;
    lane_mask no;
    memcpy(&yes, &x, sizeof(yes));
    memcpy(&no, &than, sizeof(no));
    lane_mask r = (mask & yes) | (~mask & no);
    vec out;
    memcpy(&out, &r, sizeof(out));
    return out;
}
#endif

/* NaN if there is one, else the extreme; n > 0. */
INLINE float extreme(const float *x, uint64_t n, int largest)
{
    vec acc[CHAINS];
    lane_mask nan = nan_lanes((vec){0});
    uint64_t i = 0;
    float tail[STEP];
    const float *at = x;
    if (n < STEP) {
        load_tail(tail, x, n, x[0]);
        at = tail;
    }
    for (uint32_t k = 0; k < CHAINS; k++) {
        acc[k] = load(at + k * WIDTH);
        nan |= nan_lanes(acc[k]);
    }
    for (i = STEP; i < n; i += STEP) {
        at = x + i;
        if (n - i < STEP) {
            load_tail(tail, x + i, n - i, x[0]);
            at = tail;
        }
        for (uint32_t k = 0; k < CHAINS; k++) {
            vec v = load(at + k * WIDTH);
            nan |= nan_lanes(v);
            acc[k] = better(v, acc[k], largest);
        }
    }
    for (uint32_t width = CHAINS / 2; width > 0; width /= 2) {
        for (uint32_t k = 0; k < width; k++) {
            vec v = acc[k + width];
            acc[k] = better(v, acc[k], largest);
        }
    }
    float best[WIDTH];
    memcpy(best, &acc[0], sizeof(best));
    float m = best[0];
    for (uint32_t k = 0; k < WIDTH; k++) {
        m = (largest ? best[k] > m : best[k] < m) ? best[k] : m;
    }
    return any_lane(nan) ? NAN : m;
}

static float max(const float *x, uint64_t n)
{
    return extreme(x, n, 1);
}

static float min(const float *x, uint64_t n)
{
    return extreme(x, n, 0);
}

static void add_rows(float *acc, const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        acc[i] += x[i];
    }
}

static void max_rows(float *acc, const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float m = x[i] > acc[i] ? x[i] : acc[i];
        acc[i] = x[i] != x[i] ? x[i] : m;
    }
}

static void min_rows(float *acc, const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float m = x[i] < acc[i] ? x[i] : acc[i];
        acc[i] = x[i] != x[i] ? x[i] : m;
    }
}

static void add_rows_f64(double *acc, const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        acc[i] += (double)x[i];
    }
}

static void square_rows_f64(double *acc, const float *x, const double *mean, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean[i];
        acc[i] += d * d;
    }
}

/* 32 chains, whatever the width of the vectors. */
enum { WIDE_CHAINS = 32 / FLEX_WIDE };

static double sum_f64(const float *x, uint64_t n)
{
    flex_doubles acc[WIDE_CHAINS] = {{0}};
    uint64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (uint32_t k = 0; k < WIDE_CHAINS; k++) {
            acc[k] += flex_widen_floats(x + i + k * FLEX_WIDE);
        }
    }
    double rest = 0.0;
    for (; i < n; i++) {
        rest += (double)x[i];
    }
    return flex_fold_doubles(acc, WIDE_CHAINS) + rest;
}

static double sum_squares(const float *x, double mean, uint64_t n)
{
    flex_doubles acc[WIDE_CHAINS] = {{0}};
    uint64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (uint32_t k = 0; k < WIDE_CHAINS; k++) {
            flex_doubles d = flex_widen_floats(x + i + k * FLEX_WIDE) - mean;
            acc[k] += d * d;
        }
    }
    double rest = 0.0;
    for (; i < n; i++) {
        double d = (double)x[i] - mean;
        rest += d * d;
    }
    return flex_fold_doubles(acc, WIDE_CHAINS) + rest;
}

/* Sum of exp(x - shift), in f32 within steps of 64 and f64 across. */
static double sum_exp(const float *x, float shift, uint64_t n)
{
    double total = 0.0;
    for (uint64_t i = 0; i < n; i += STEP) {
        float e[STEP];
        uint64_t m = n - i < STEP ? n - i : STEP;
        load_tail(e, x + i, m, -INFINITY);
        for (uint32_t k = 0; k < STEP; k++) {
            e[k] = fm_exp(e[k] - shift);
        }
        total += (double)sum(e, STEP, 0);
    }
    return total;
}

const flex_reduce_table ISA_NAME(flex_reduce_table_) = {
    .sum = sum_runs,
    .sum_ahead = sum_runs_ahead,
    .max = max,
    .min = min,
    .add_rows = add_rows,
    .max_rows = max_rows,
    .min_rows = min_rows,
    .add_rows_f64 = add_rows_f64,
    .square_rows_f64 = square_rows_f64,
    .sum_f64 = sum_f64,
    .sum_squares = sum_squares,
    .sum_exp = sum_exp,
};
