/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_kernel_tmpl.c - micro-kernels and packers of the f32 matrix product, compiled once per ISA
 * with ISA defined as baseline, avx2 or avx512.
 *
 * Owns the shapes of the tiles and the packers; not their loop over k (gemm_tile_loops.h), nor the
 * blocking. Tiles have as many accumulators as registers allow, and the full one is as wide as that
 * lets: a step along k of 6 x 64 loads 10 times for 24 multiply-adds, 12 x 32 loads 14 times, and
 * each costs time, power and so the clock (bench/README.md). To add an ISA: give its vector and
 * tiles below, its `fused` there, and build this file with its flags.
 */
#define ELEMENT float
#define ELEMENT_BYTES 4
#define TILE_TYPE flex_tile
#define TILE_ADDS_ROWS 1
/* NARROW_TILES(X), WIDE_TILES(X): X(vectors, rows) for each tile of one vector, of more; ROWS_OF:
 * the most rows of one, two, ... vectors. */
#if defined(__AVX512F__)
#define VL 16
#define MR 6
#define NV 4
#define NARROW_TILES(X) UP_TO_16(X, 1)
#define WIDE_TILES(X) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
#define ROWS_OF 16, 12, 8, 6
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 8
#define MR 6
#define NV 2
#define NARROW_TILES(X) UP_TO_6(X, 1)
#define WIDE_TILES(X) UP_TO_6(X, 2)
#define ROWS_OF 6, 6
#elif defined(__aarch64__)
#define VL 4
#define MR 8
#define NV 2
#define NARROW_TILES(X) UP_TO_8(X, 1)
#define WIDE_TILES(X) UP_TO_8(X, 2)
#define ROWS_OF 8, 8
#else
#define VL 4
#define MR 4
#define NV 2
#define NARROW_TILES(X) UP_TO_4(X, 1)
#define WIDE_TILES(X) UP_TO_4(X, 2)
#define ROWS_OF 4, 4
#endif
#define NR (NV * VL)
/* Rows ahead that the packing of whole rows asks for. */
#define PACK_AHEAD 8

#include "gemm_tile_loops.h"

#include <string.h>

static void packed_b(const flex_tile *t)
{
    const columns w = WHOLE(NV);
    tile(UNROLL_LONG, MR, &w, t->ars, 1, NR, t, 0, NULL);
}

static void asking_b(const flex_tile *t)
{
    const columns w = WHOLE(NV);
    tile(UNROLL_LONG, MR, &w, t->ars, 1, NR, t, 1, t->next);
}

TILES(TILE_FN)
PART_TILES(PART_FN)

/* dst[k][j] for a 4 x 4 block read from four rows. */
INLINE void transpose4(float *dst, int64_t ld, const float *const *rows, int64_t k)
{
    vec4 r0 = *(const vec4 *)(const void *)(rows[0] + k);
    vec4 r1 = *(const vec4 *)(const void *)(rows[1] + k);
    vec4 r2 = *(const vec4 *)(const void *)(rows[2] + k);
    vec4 r3 = *(const vec4 *)(const void *)(rows[3] + k);
    vec4 lo01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    vec4 hi01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    vec4 lo23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    vec4 hi23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(vec4 *)(void *)dst = __builtin_shufflevector(lo01, lo23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + ld) = __builtin_shufflevector(lo01, lo23, 2, 3, 6, 7);
    *(vec4 *)(void *)(dst + 2 * ld) = __builtin_shufflevector(hi01, hi23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + 3 * ld) = __builtin_shufflevector(hi01, hi23, 2, 3, 6, 7);
}

static void pack_rows(float *dst, int64_t ld, const float *const *rows, int64_t n, int64_t kc)
{
    int64_t n4 = n - n % 4;
    int64_t k4 = kc - kc % 4;
    for (int64_t k = 0; k < k4; k += 4) {
        for (int64_t j = 0; j < n4; j += 4) {
            transpose4(dst + k * ld + j, ld, rows + j, k);
        }
    }
    for (int64_t k = k4; k < kc; k++) {
        for (int64_t j = 0; j < n4; j++) {
            dst[k * ld + j] = rows[j][k];
        }
    }
    for (int64_t j = n4; j < n; j++) {
        for (int64_t k = 0; k < kc; k++) {
            dst[k * ld + j] = rows[j][k];
        }
    }
    for (int64_t k = 0; n < ld && k < kc; k++) {
        for (int64_t j = n; j < ld; j++) {
            dst[k * ld + j] = 0.0F;
        }
    }
}

/* n floats of each row into a full panel; n is known to the compiler. */
INLINE void pack_full(float *dst, const float *src, int64_t stride, int64_t n, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++) {
        __builtin_prefetch(src + (k + 2 * PACK_AHEAD) * stride);
        memcpy(dst + k * n, src + k * stride, (size_t)n * sizeof(float));
    }
}

static void pack_copy(float *dst, int64_t ld, const float *src, int64_t stride, int64_t n,
                      int64_t kc)
{
    if (n == ld && n == NR) {
        pack_full(dst, src, stride, NR, kc);
        return;
    }
    for (int64_t k = 0; k < kc; k++) {
        float *d = dst + k * ld;
        for (int64_t j = 0; j < n; j++) {
            d[j] = src[k * stride + j];
        }
        for (int64_t j = n; j < ld; j++) {
            d[j] = 0.0F;
        }
    }
}

/* Whole rows at a time, since they are what memory fetches well; the next ones are asked for. */
static void pack_panels(float *dst, const float *src, int64_t stride, int64_t n, int64_t kc)
{
    int64_t full = n - n % NR;
    for (int64_t k = 0; k < kc; k++) {
        const float *s = src + k * stride;
        float *d = dst + k * NR;
        for (int64_t j = 0; j < full; j += NR) {
            UNROLLED
            for (int v = 0; v < NV; v++) {
                __builtin_prefetch(s + PACK_AHEAD * stride + j + v * VL);
                store(d + j * kc + v * VL, load(s + j + v * VL));
            }
        }
    }
    if (full < n) {
        pack_copy(dst + full * kc, NR, src + full, stride, n - full, kc);
    }
}

/* Runs of up to nv vectors: what one writes too much, the next one overwrites. */
INLINE void copy_runs(int nv, float *dst, const float *src, const int64_t *offset, int64_t kc,
                      const int64_t *start, const int64_t *from, int64_t n_runs)
{
    for (int64_t k = 0; k < kc; k++) {
        float *d = dst + k * NR;
        const float *s = src + offset[k];
        for (int64_t r = 0; r < n_runs; r++) {
            vec x[NV];
            UNROLLED
            for (int v = 0; v < nv; v++) {
                x[v] = load(s + from[r] + v * VL);
            }
            UNROLLED
            for (int v = 0; v < nv; v++) {
                store(d + start[r] + v * VL, x[v]);
            }
        }
    }
}

static void pack_runs(float *dst, const float *src, const int64_t *offset, int64_t kc,
                      const int64_t *start, const int64_t *from, int64_t n_runs)
{
    int64_t longest = NR - start[n_runs - 1];
    for (int64_t r = 1; r < n_runs; r++) {
        longest = start[r] - start[r - 1] > longest ? start[r] - start[r - 1] : longest;
    }
    if (longest <= VL) {
        copy_runs(1, dst, src, offset, kc, start, from, n_runs);
    } else if (longest <= 2 * VL) {
        copy_runs(2, dst, src, offset, kc, start, from, n_runs);
    } else {
        copy_runs(NV, dst, src, offset, kc, start, from, n_runs);
    }
}

#define KERNELS_NAME_OF(isa) flex_gemm_kernels_##isa
#define KERNELS_NAME(isa) KERNELS_NAME_OF(isa)

const flex_gemm_kernels KERNELS_NAME(ISA) = {
    .mr = MR,
    .nr = NR,
    .lanes = VL,
    .lane_bits = VL == 16 ? 4 : VL == 8 ? 3 : 2,
    .rows = {0, ROWS_OF},
    .tile = {TILES(TILE_ENTRY)},
    .turned = {TILES(TURNED_ENTRY)},
    .part = {PART_TILES(PART_TILE_ENTRY)},
    .part_turned = {PART_TILES(PART_TURNED_ENTRY)},
    .packed_b = packed_b,
    .asking_b = asking_b,
    .pack_rows = pack_rows,
    .pack_copy = pack_copy,
    .pack_panels = pack_panels,
    .pack_runs = pack_runs,
};
