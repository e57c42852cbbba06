/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_f64_kernel.h - the per-ISA part of the f64 matrix product: micro-kernels and a packer.
 *
 * gemm_f64_tmpl.c is compiled once per ISA and defines one flex_f64_kernels each; blocks, threads
 * and memory are gemm_f64.c's. A kernel computes an element as a chain of multiply-adds over k, in
 * order, from zero, fused where the ISA has it, then adds what the sum starts from; all kernels of
 * a table do exactly that. To add a tile: see TILES in the template.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_F64_KERNEL_H
#define BURN_PLUGINS_FLEX_GEMM_F64_KERNEL_H

#include "gemm_kernel.h"

#include <stdint.h>

/* Most elements of a tile of any ISA. */
#define FLEX_F64_TILE_MAX 192

/* One tile of n columns. A is as the kernel's name says; rows of B and of C are dense. `mode`:
 * FLEX_INIT_*. */
typedef struct flex_f64_tile {
    int64_t kc;
    int64_t n;
    const double *a;
    int64_t ars;
    const double *b;
    int64_t ldb;
    double *c;
    int64_t ldc;
    const double *init;
    uint32_t mode;
} flex_f64_tile;

typedef void (*flex_f64_tile_fn)(const flex_f64_tile *t);

typedef struct flex_f64_kernels {
    int64_t mr;    /* rows of the widest tile */
    int64_t lanes; /* doubles of a vector */
    int64_t nv;    /* vectors of the widest tile */
    /* The most rows of a tile of so many vectors; none has fewer than mr. */
    int64_t rows[FLEX_NV_MAX + 1];
    /* [vectors][rows]: A's rows are `ars` apart and dense along k. */
    flex_f64_tile_fn tile[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    /* The same for A whose steps along k are `ars` apart, and its rows dense in each. */
    flex_f64_tile_fn turned[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    /* The same of columns that fill the last vector in part. Of one vector NULL where the ISA has
     * no masks. */
    flex_f64_tile_fn part[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    flex_f64_tile_fn part_turned[FLEX_NV_MAX + 1][FLEX_MR_MAX + 1];
    /*
     * kc rows of B, n columns, into panels of nv vectors, one after the other. The last one is as
     * many vectors wide as it needs, filled up with zeros.
     */
    void (*pack)(double *dst, const double *src, int64_t rs, int64_t cs, int64_t n, int64_t kc);
} flex_f64_kernels;

extern const flex_f64_kernels flex_f64_kernels_baseline;
extern const flex_f64_kernels flex_f64_kernels_avx2;
extern const flex_f64_kernels flex_f64_kernels_avx512;

#endif /* BURN_PLUGINS_FLEX_GEMM_F64_KERNEL_H */
