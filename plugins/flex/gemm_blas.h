/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_blas.h - an f32 product through OpenBLAS, when the user asks for it.
 *
 * Owns the library: opened by name on first need, never linked, set to one thread (flex shares the
 * work out itself). Its bits differ from flex's own kernels, so nothing uses it unless the option
 * FLEX_GEMM is "openblas".
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_BLAS_H
#define BURN_PLUGINS_FLEX_GEMM_BLAS_H

#include "gemm.h"

#include <burn/status.h>

/* BURN_OK when asked for and usable; else BURN_E_UNSUPPORTED, with the reason in err. [any] */
int32_t flex_blas_usable(burn_err *err);

/* C = A B; strides of A, B along k or along the other axis must be 1. Needs flex_blas_usable. */
void flex_blas_product(const flex_gemm *g);

#endif /* BURN_PLUGINS_FLEX_GEMM_BLAS_H */
