/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm.h - the f32 matrix product as a service to the kernel files: matmul, convolution, attention.
 *
 * Owns the description of a product, C = init + A * B, and the promise that its bits depend on
 * rows, n, k and the values only: not on threads, placement or strides. Memory comes from the
 * caller (flex_gemm_bytes), usually the call's workspace. C's columns are dense, in segments.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_H
#define BURN_PLUGINS_FLEX_GEMM_H

#include "epilogue.h"
#include "gemm_kernel.h"
#include "isa.h"

#include <burn/call.h>

#include <stddef.h>

/* k is summed in blocks of this length. */
#define FLEX_GEMM_KC 512

/* Packs B rows k0 .. k0+kc, columns j0 .. j0+n into dst[kc][nr], zero past n. */
typedef void (*flex_pack_b_fn)(const void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t n,
                               float *dst);

typedef struct flex_gemm {
    int64_t m;
    int64_t n;
    int64_t k;
    /* A(i, k) = a[i * ars + (k / aseg) * aseg_stride + (k % aseg) * acs]; aseg 0: one segment, else
     * acs is 1. */
    const float *a;
    int64_t ars;
    int64_t acs;
    int64_t aseg;
    int64_t aseg_stride;
    /* B(k, j) = b[k * brs + j * bcs], or what pack_b makes. */
    const float *b;
    int64_t brs;
    int64_t bcs;
    flex_pack_b_fn pack_b;
    const void *pack_ctx;
    /* C(i, j) = c[i * crs + (j / cseg) * cseg_stride + j % cseg]; cseg 0: one segment. */
    float *c;
    int64_t crs;
    int64_t cseg;
    int64_t cseg_stride;
    const float *init;
    uint32_t mode; /* FLEX_INIT_* */
    /* NULL, or what to do with each block of C while it is in the cache; also when k is 0. */
    flex_epilogue_fn epilogue;
    void *epilogue_user;
    int64_t batch; /* handed to the epilogue */
    int64_t row0;  /* added to the rows that it is told */
    int64_t at0;   /* where C begins in the whole result */
    int passes;    /* C need not be kept: what the epilogue is handed may be all there is */
    /* All rows that are multiplied with this B, however calls cut them; with n and k it decides
     * whether numbers may be split into parts. 0: they may not. */
    int64_t rows;
} flex_gemm;

/* The table for this process's ISA. Inline: a small product asks for it more than once. */
static inline const flex_gemm_kernels *flex_gemm_table(void)
{
#if defined(__x86_64__)
    if (flex_isa == FLEX_ISA_AVX512) {
        return &flex_gemm_kernels_avx512;
    }
    if (flex_isa == FLEX_ISA_AVX2) {
        return &flex_gemm_kernels_avx2;
    }
#endif
    return &flex_gemm_kernels_baseline;
}

/* Bytes of memory that a product needs when one thread computes it, and when all may. Never
 * less than the product needs with a smaller m; where `rows` is 0, nor with smaller n and k. */
uint64_t flex_gemm_bytes(const flex_gemm *g, uint32_t threads);

/* Computes on the calling thread only; memory of flex_gemm_bytes(g, 1), 64-byte aligned. */
void flex_gemm_serial(const flex_gemm *g, void *memory);

/* Computes on all threads; memory of flex_gemm_bytes(g, threads). */
void flex_gemm_parallel(const flex_gemm *g, void *memory, uint32_t threads);

/* Blocks of fewer columns are not worth a run of an epilogue each, nor packing of their own. */
#define FLEX_GEMM_LEAST_COLUMNS 128

/* How many columns the blocks have at most that flex_gemm_parallel hands to an epilogue, and nearly
 * all of them do; n: blocks are whole rows. */
int64_t flex_gemm_block_columns(const flex_gemm *g, uint32_t threads);

/* Does it write C where `passes` is set? */
int flex_gemm_keeps_c(const flex_gemm *g);

/* Are there so few multiply-adds that one thread computes them, and whole vectors of columns? */
int flex_gemm_is_small(int64_t m, int64_t n, int64_t k);

/* Such a product, C = A * B. All three are dense. */
typedef struct flex_gemm_dense {
    int64_t m;
    int64_t n;
    int64_t k;
    const float *a;
    const float *b;
    float *c;
} flex_gemm_dense;

/* The same bits as by the usual way, with nothing looked up or laid out. */
void flex_gemm_small(const flex_gemm_dense *p);

/*
 * A call of matmul or linear, by the plain row of f32, whose blocks are handed to `finish` when
 * they are done. BURN_E_UNSUPPORTED with nothing done where blocks would be narrow, or not in f32.
 */
int32_t flex_gemm_run_hot(const burn_call *call, const flex_epilogue *finish);
/* Will it do so, without writing the result itself? */
int flex_gemm_passes_on(const burn_call *call);

#endif /* BURN_PLUGINS_FLEX_GEMM_H */
