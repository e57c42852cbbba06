/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_parts.h - between the files of the f32 matrix product: gemm_driver.c, gemm_direct.c,
 * gemm_split.c and gemm_tile.c. Kernel files include gemm.h instead.
 *
 * Owns what the ways of computing a product share (one panel, one tile, one block of C) and how
 * the driver reaches the direct and the split way. Rules: nothing here has state, any thread may
 * call; memory is the caller's. To add a way: functions like those of the direct one.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_PARTS_H
#define BURN_PLUGINS_FLEX_GEMM_PARTS_H

#include "gemm.h"

/* gemm_tile.c */

/* k is summed in blocks of equal length, FLEX_GEMM_KC at most. It depends on k only. */
int64_t flex_gemm_block_length(int64_t k);

/* Rows i .. i+rows of A, k0 .. k0+kc, laid along k: dst[r * ld + k]. */
void flex_gemm_turn_a(const flex_gemm *g, int64_t i, int64_t rows, int64_t k0, int64_t kc,
                      float *dst, int64_t ld);

/* Packs B columns j0 .. j0+n (at most ld), k0 .. k0+kc, into dst[kc][ld]; ld is nr for pack_b. */
void flex_gemm_pack_b(const flex_gemm *g, const flex_gemm_kernels *kernels, int64_t j0, int64_t n,
                      int64_t k0, int64_t kc, float *dst, int64_t ld);

/* How far from C's first element column j starts, and how many dense columns follow. */
int64_t flex_gemm_column_offset(const flex_gemm *g, int64_t j, int64_t *out_dense);

/*
 * One tile, rows i0 .. i0+rows, columns j0 .. j0+n: in place when the kernel computes just these
 * and C's columns are dense, else through a scratch. `t` says kc, A and B; the rest is set here.
 * `fn` is the kernel, for so many rows and vectors of columns.
 */
void flex_gemm_run_tile(const flex_gemm *g, const flex_gemm_kernels *kernels, flex_tile *t,
                        int64_t i0, int64_t rows, int64_t j0, int64_t n, int64_t k0,
                        flex_tile_fn fn);

/* Vectors of columns that n columns take, nr at most. */
static inline int flex_gemm_vectors(const flex_gemm_kernels *kernels, int64_t n)
{
    return (int)(((uint32_t)n + kernels->lanes - 1) >> kernels->lane_bits);
}

/*
 * The kernel of a tile whose A and B lie as they may. Where it does not touch just n columns (see
 * below), B, C and what is added are as wide as its vector.
 */
static inline flex_tile_fn flex_gemm_tile_fn(const flex_gemm_kernels *kernels, int turned,
                                             int64_t rows, int64_t n)
{
    int v = flex_gemm_vectors(kernels, n);
    if (((uint32_t)n & (kernels->lanes - 1)) != 0 && kernels->part[v][rows] != NULL) {
        return turned ? kernels->part_turned[v][rows] : kernels->part[v][rows];
    }
    return turned ? kernels->turned[v][rows] : kernels->tile[v][rows];
}

static inline int flex_gemm_fits(const flex_gemm_kernels *kernels, int64_t n)
{
    return n >= (int64_t)kernels->lanes || kernels->part[1][1] != NULL;
}

/*
 * Hands a finished block of C to the epilogue, in pieces with dense columns. It lies at `strip`,
 * rows `ld` apart, or, where that is NULL, in C.
 */
void flex_gemm_finish_at(const flex_gemm *g, float *strip, int64_t ld, int64_t i0, int64_t rows,
                         int64_t j0, int64_t n);

/* The same for a block in C, if there is an epilogue. */
void flex_gemm_finish(const flex_gemm *g, int64_t i0, int64_t rows, int64_t j0, int64_t n);

/* gemm_direct.c */

/* Does the product go the direct way? It does not depend on threads. */
int flex_gemm_is_direct(const flex_gemm *g);

/* Bytes of memory for that; never less than a product with smaller m and n needs. */
uint64_t flex_gemm_direct_bytes(const flex_gemm *g, uint32_t threads);

/* Computes it. */
void flex_gemm_direct(const flex_gemm *g, void *memory, uint32_t threads);

/* Columns of the blocks that it hands to an epilogue: see flex_gemm_block_columns. */
int64_t flex_gemm_direct_columns(const flex_gemm *g, uint32_t threads);

/* gemm_split.c */

/* Does the product go the split way? It comes before the others, and depends on sizes alone. */
int flex_gemm_is_split(const flex_gemm *g);

/* Bytes of memory for that; never less than the same product of fewer rows needs. */
uint64_t flex_gemm_split_bytes(const flex_gemm *g, uint32_t threads);

/* Computes it. */
void flex_gemm_split(const flex_gemm *g, void *memory, uint32_t threads);

/* Columns of the blocks that it hands to an epilogue, and does it write C before that? */
int64_t flex_gemm_split_columns(const flex_gemm *g);
int flex_gemm_split_keeps_c(const flex_gemm *g);

#endif /* BURN_PLUGINS_FLEX_GEMM_PARTS_H */
