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
 * Rows row .. row+rows, columns col .. col+cols of C are final; `c` is the first of them, its rows
 * are `ldc` apart, its columns dense. Every element is in exactly one call. The call is made on the
 * thread that computed the block, while others still work on theirs, so it may touch this block and
 * what is its own only. How C is cut depends on the machine and the threads: what the callback
 * writes must not. `batch` is the product's own.
 */
typedef void (*flex_epilogue_fn)(void *user, float *c, int64_t ldc, int64_t row, int64_t col,
                                 int64_t rows, int64_t cols, int64_t batch);

#endif /* BURN_PLUGINS_FLEX_EPILOGUE_H */
