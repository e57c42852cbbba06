/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_split.h - between gemm_split.c and the kernels that it runs: f32 numbers as three bf16
 * parts, and tiles of sums over them.
 *
 * Owns the layout of a strip and what a strip knows of its numbers. A number x is p0 + p1 + p2,
 * each the bf16 nearest to what is left, and nothing is left (24 bits are 3 times 8) if x is normal
 * and not too small. A product keeps p0 q0, p0 q1, p1 q0, p1 q1, p0 q2 and p2 q0: what it leaves
 * out is at most 2^-24 (1 + 2^-10) of it, no more than rounding it to f32 might change it. Sums are
 * in f32. To add hardware that multiplies bf16 so: a table like flex_split_amx.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_SPLIT_H
#define BURN_PLUGINS_FLEX_GEMM_SPLIT_H

#include <stdint.h>

/* Rows of a strip of A, columns of one of B, and both of a tile. */
#define FLEX_SPLIT_SIDE 32
/* Steps along k that one piece of a strip holds. */
#define FLEX_SPLIT_STEP 32
/* Bytes of such a piece: three parts of two halves, each 16 lines of 32 bf16. In a line of A's the
 * steps k and k + 16 of a row lie side by side; one of B's has both steps of 16 columns. */
#define FLEX_SPLIT_PIECE (3 * FLEX_SPLIT_SIDE * FLEX_SPLIT_STEP * 2)

/* Of the numbers in a strip: bits of the largest magnitude, and of the least but zero, less one
 * (all ones: there are zeros only). */
typedef struct flex_split_range {
    uint32_t most;
    uint32_t least;
} flex_split_range;

/* A tile's sums of `steps` pieces: sum[row][column]. */
typedef float flex_split_sum[FLEX_SPLIT_SIDE][FLEX_SPLIT_SIDE];

typedef struct flex_split_kernels {
    /* Around the tiles that a thread computes. */
    void (*begin)(void);
    void (*end)(void);
    /* Rows of A, dense along k, `ars` apart; rows and k are filled up with zeros. */
    flex_split_range (*rows)(char *strip, const float *a, int64_t ars, int64_t rows, int64_t kc);
    /* Columns of B, dense, its rows `brs` apart; columns and k are filled up with zeros. */
    flex_split_range (*columns)(char *strip, const float *b, int64_t brs, int64_t columns,
                                int64_t kc);
    /* One tile of two strips of so many pieces; `sum` begins at a line of the cache. */
    void (*tile)(const char *a, const char *b, int64_t pieces, flex_split_sum *sum);
    /* c[i][j] = what + sum[i][j], by `mode` (FLEX_INIT_*): see flex_tile. */
    void (*add)(const flex_split_sum *sum, float *c, int64_t ldc, int64_t rows, int64_t columns,
                const float *init, uint32_t mode);
} flex_split_kernels;

#if defined(__x86_64__)
extern const flex_split_kernels flex_split_amx;
#endif

#endif /* BURN_PLUGINS_FLEX_GEMM_SPLIT_H */
