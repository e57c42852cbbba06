/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_kernel.h - the per-ISA part of the f32 matrix product: micro-kernels and packers.
 *
 * gemm_kernel_tmpl.c is compiled once per ISA and defines one flex_gemm_kernels each. Everything
 * about blocking, threads and memory is in gemm_driver.c, gemm_direct.c and gemm_tile.c. A kernel
 * computes an element as a chain of fused multiply-adds over k, in order, from zero, then adds what
 * `init` names; all kernels of a table do exactly that, so an element's bits do not depend on the
 * tile it falls into.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_KERNEL_H
#define BURN_PLUGINS_FLEX_GEMM_KERNEL_H

#include <stdint.h>

/* Tiles of any ISA: most rows, most vectors of columns, most columns, most elements. */
#define FLEX_MR_MAX 16
#define FLEX_NV_MAX 4
#define FLEX_NR_MAX 64
#define FLEX_TILE_MAX 384

/* Steps along k between requests for memory: FLEX_ASK_LINE elements of each row of A, so that four
 * full tiles side by side ask for whole rows, three for most of them. */
#define FLEX_ASK_STEPS 64
#define FLEX_ASK_LINE  16

/* What a tile's sum is added to. */
enum {
    FLEX_INIT_ZERO = 0,
    FLEX_INIT_C = 1,   /* what C holds */
    FLEX_INIT_COL = 2, /* init[column] */
    FLEX_INIT_ROW = 3  /* init[row] */
};

/*
 * One tile. A's rows are `ars` apart and dense along k, or, for `turned`, its columns are and dense
 * along the rows; rows of B and of C are dense, too. Nothing beside its n columns is read or
 * written.
 */
typedef struct flex_tile {
    int64_t kc;
    int64_t n;
    const float *a;
    int64_t ars;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    const float *init;
    uint32_t mode;
    const float *next; /* of `asking_b`: what it asks for in A's next rows, `ars` apart; or NULL */
} flex_tile;

typedef void (*flex_tile_fn)(const flex_tile *t);

typedef struct flex_gemm_kernels {
    uint32_t mr; /* of a full tile */
    uint32_t nr;
    uint32_t lanes; /* of a vector: a power of two */
    uint32_t lane_bits; /* which one: a division costs a small product dear */
    uint32_t rows[FLEX_NV_MAX + 1]; /* most rows of a tile of so many vectors of columns */
    /* The full tile from a packed panel of B, [kc][nr], and from rows of A. */
    flex_tile_fn packed_b;
    /* The same, where A and C do not lie in the second cache: every FLEX_ASK_STEPS steps along k it
     * asks for the next line of each of the next rows of A, and for a row of its C. */
    flex_tile_fn asking_b;
    /* tile[v][r]: v vectors of columns, 1 up to nr / lanes, r rows, 1 up to rows[v]; A and B as
     * they lie. */
    flex_tile_fn tile[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    flex_tile_fn turned[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    /* The same of columns that fill the last vector in part. Of one vector NULL where the ISA has
     * no masks. */
    flex_tile_fn part[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    flex_tile_fn part_turned[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    /* dst[k * ld + j] = rows[j][k] for j < n; zero for n <= j < ld. */
    void (*pack_rows)(float *dst, int64_t ld, const float *const *rows, int64_t n, int64_t kc);
    /* dst[k * ld + j] = src[k * stride + j] for j < n; zero for n <= j < ld. */
    void (*pack_copy)(float *dst, int64_t ld, const float *src, int64_t stride, int64_t n,
                      int64_t kc);
    /* Panels [kc][nr] side by side from rows of n columns: as pack_copy for each of them. */
    void (*pack_panels)(float *dst, const float *src, int64_t stride, int64_t n, int64_t kc);
    /*
     * dst[k * nr + start[r] + i] = src[offset[k] + from[r] + i] for each of the runs. Reads up to
     * nr elements from the start of each run and writes up to nr past the end of dst.
     */
    void (*pack_runs)(float *dst, const float *src, const int64_t *offset, int64_t kc,
                      const int64_t *start, const int64_t *from, int64_t n_runs);
} flex_gemm_kernels;

extern const flex_gemm_kernels flex_gemm_kernels_baseline;
#if defined(__x86_64__)
extern const flex_gemm_kernels flex_gemm_kernels_avx2;
extern const flex_gemm_kernels flex_gemm_kernels_avx512;
#endif

#endif /* BURN_PLUGINS_FLEX_GEMM_KERNEL_H */
