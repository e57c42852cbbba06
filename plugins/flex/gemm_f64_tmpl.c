/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_f64_tmpl.c - micro-kernels and the packer of the f64 matrix product, compiled once per ISA
 * with ISA defined as baseline, avx2 or avx512.
 *
 * Owns the shapes of the tiles and the packer; not their loop over k (gemm_tile_loops.h), nor the
 * blocking (gemm_f64.c). Tiles have as many accumulators as registers allow, and the full one is as
 * wide as that lets, as those of f32 are (gemm_kernel_tmpl.c). To add an ISA: give its vector and
 * tiles below, its `fused` there, and build this file with its flags.
 */
#include "gemm_f64_kernel.h"

#define ELEMENT double
#define ELEMENT_BYTES 8
#define TILE_TYPE flex_f64_tile
#define TILE_ADDS_ROWS 0
/* NARROW_TILES(X), WIDE_TILES(X): X(vectors, rows) for each tile of one vector, of more; ROWS_OF:
 * the most rows of one, two, ... vectors. */
#if defined(__AVX512F__)
#define VL 8
#define MR 6
#define NV 4
#define NARROW_TILES(X) UP_TO_16(X, 1)
#define WIDE_TILES(X) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
#define ROWS_OF 16, 12, 8, 6
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 4
#define MR 4
#define NV 3
#define NARROW_TILES(X) UP_TO_12(X, 1)
#define WIDE_TILES(X) UP_TO_6(X, 2) UP_TO_4(X, 3)
#define ROWS_OF 12, 6, 4
#elif defined(__aarch64__)
#define VL 2
#define MR 6
#define NV 4
#define NARROW_TILES(X) UP_TO_16(X, 1)
#define WIDE_TILES(X) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
#define ROWS_OF 16, 12, 8, 6
#else
#define VL 2
#define MR 4
#define NV 2
#define NARROW_TILES(X) UP_TO_8(X, 1)
#define WIDE_TILES(X) UP_TO_4(X, 2)
#define ROWS_OF 8, 4
#endif
#define NR (NV * VL)
/* Rows of B ahead that the packing of whole rows asks for. */
#define PACK_AHEAD 4
/* Steps of a few columns that are packed in turn: whole lines are read, and what is written stays
 * in the first cache until the other columns come. */
#define PACK_RUN 32

#include "gemm_tile_loops.h"

TILES(TILE_FN)
PART_TILES(PART_FN)

/* dst[k][j] for 4 x 4 elements of four columns that are dense along k. */
INLINE void transpose4(double *dst, int64_t ld, const double *src, int64_t cs)
{
    vec4 r0 = *(const vec4 *)(const void *)src;
    vec4 r1 = *(const vec4 *)(const void *)(src + cs);
    vec4 r2 = *(const vec4 *)(const void *)(src + 2 * cs);
    vec4 r3 = *(const vec4 *)(const void *)(src + 3 * cs);
    vec4 even01 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6);
    vec4 odd01 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
    vec4 even23 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6);
    vec4 odd23 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
    *(vec4 *)(void *)dst = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + ld) = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
    *(vec4 *)(void *)(dst + 2 * ld) = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
    *(vec4 *)(void *)(dst + 3 * ld) = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
}

/* One panel of any strides, `ld` columns wide. */
static void pack_panel(double *dst, int64_t ld, const double *src, int64_t rs, int64_t cs,
                       int64_t n, int64_t kc)
{
    int64_t k4 = rs == 1 ? kc - kc % 4 : 0;
    int64_t n4 = n - n % 4;
    for (int64_t k0 = 0; k0 < k4; k0 += PACK_RUN) {
        int64_t k1 = k0 + PACK_RUN < k4 ? k0 + PACK_RUN : k4;
        for (int64_t j = 0; j < n4; j += 4) {
            for (int64_t k = k0; k < k1; k += 4) {
                transpose4(dst + k * ld + j, ld, src + k + j * cs, cs);
            }
        }
    }
    for (int64_t k = 0; k < kc; k++) {
        for (int64_t j = k < k4 ? n4 : 0; j < n; j++) {
            dst[k * ld + j] = src[k * rs + j * cs];
        }
        for (int64_t j = n; j < ld; j++) {
            dst[k * ld + j] = 0.0;
        }
    }
}

/* Whole rows at a time, since they are what memory fetches well; the next ones are asked for. */
static void pack_rows(double *dst, const double *src, int64_t rs, int64_t n, int64_t kc)
{
    for (int64_t k = 0; k < kc; k++) {
        const double *s = src + k * rs;
        double *d = dst + k * NR;
        for (int64_t j = 0; j < n; j += NR) {
            UNROLLED
            for (int v = 0; v < NV; v++) {
                __builtin_prefetch(s + PACK_AHEAD * rs + j + v * VL);
                store(d + j * kc + v * VL, load(s + j + v * VL));
            }
        }
    }
}

static void pack(double *dst, const double *src, int64_t rs, int64_t cs, int64_t n, int64_t kc)
{
    int64_t full = n - n % NR;
    if (cs == 1) {
        pack_rows(dst, src, rs, full, kc);
    } else {
        for (int64_t j = 0; j < full; j += NR) {
            pack_panel(dst + j * kc, NR, src + j * cs, rs, cs, NR, kc);
        }
    }
    if (full < n) {
        int64_t ld = (n - full + VL - 1) / VL * VL;
        pack_panel(dst + full * kc, ld, src + full * cs, rs, cs, n - full, kc);
    }
}

#define KERNELS_NAME_OF(isa) flex_f64_kernels_##isa
#define KERNELS_NAME(isa) KERNELS_NAME_OF(isa)

const flex_f64_kernels KERNELS_NAME(ISA) = {
    .mr = MR,
    .lanes = VL,
    .nv = NV,
    .rows = {0, ROWS_OF},
    .tile = {TILES(TILE_ENTRY)},
    .turned = {TILES(TURNED_ENTRY)},
    .part = {PART_TILES(PART_TILE_ENTRY)},
    .part_turned = {PART_TILES(PART_TURNED_ENTRY)},
    .pack = pack,
};
