/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * epilogue.h - what a product or a convolution hands its finished blocks to.
 *
 * Owns the type only: gemm.h and conv.h say who calls it, fused_run.c and service.c have some.
 */
#ifndef BURN_PLUGINS_FLEX_EPILOGUE_H
#define BURN_PLUGINS_FLEX_EPILOGUE_H

#include <stdint.h>

/*
 * Rows row .. row+rows, columns col .. col+cols of C are final. Element (0, 0) of them belongs at
 * element `at` of the whole result, rows `step` apart, columns dense. They lie at `c`, rows `ldc`
 * apart: there, or in scratch memory where the product was told not to keep C.
 */
typedef struct flex_block {
    float *c;
    int64_t ldc;
    int64_t at;
    int64_t step;
    int64_t row;
    int64_t col;
    int64_t rows;
    int64_t cols;
    int64_t batch; /* the product's own */
} flex_block;

/*
 * Every element is in exactly one block. The call is made on the thread that computed it, while
 * others still work on theirs, so it may touch this block and what is its own only. How C is cut
 * depends on the machine and the threads: what the callback writes must not.
 */
typedef void (*flex_epilogue_fn)(void *user, const flex_block *block);

/* One with what it needs. */
typedef struct flex_epilogue {
    flex_epilogue_fn fn; /* NULL: none */
    void *user;
} flex_epilogue;

#endif /* BURN_PLUGINS_FLEX_EPILOGUE_H */
