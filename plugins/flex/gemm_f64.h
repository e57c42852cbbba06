/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_f64.h - the f64 matrix product, behind the f64 rows of matmul and linear.
 *
 * Owns the description of a product, C = init + A * B, and the promise that its bits depend on k
 * and the values only: not on m, n, threads, placement or strides. Memory comes from the caller;
 * how much depends on n and k only, since a call is prepared once for all strides.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_F64_H
#define BURN_PLUGINS_FLEX_GEMM_F64_H

#include "gemm.h"

#include <stdint.h>

/* Sizes and strides are those of `g`; its arrays and its mode are not read. */
typedef struct flex_gemm_f64 {
    flex_gemm g;
    const double *a;
    const double *b;
    double *c;
    const double *init; /* one for each column, or NULL */
} flex_gemm_f64;

/* Bytes of memory that a product needs on so many threads. */
uint64_t flex_gemm_f64_bytes(int64_t n, int64_t k, uint32_t threads);

/* Computes on up to `threads` threads; memory of flex_gemm_f64_bytes, 64-byte aligned. */
void flex_gemm_f64_run(const flex_gemm_f64 *p, void *memory, uint32_t threads);

#endif /* BURN_PLUGINS_FLEX_GEMM_F64_H */
