/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_blas.h - products through OpenBLAS, when the user asks for it or the tuner tries it.
 *
 * Owns the library: opened by name on first need, never linked, set to one thread (flex shares the
 * work out itself). Its bits differ from flex's own kernels, so nothing uses it unless the option
 * FLEX_GEMM is "openblas" or an environment is named and it won there.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_BLAS_H
#define BURN_PLUGINS_FLEX_GEMM_BLAS_H

#include "gemm_f64.h"

#include <burn/status.h>

/* BURN_OK when asked for and usable; else BURN_E_STATE, with the reason in err. [any] */
int32_t flex_blas_usable(burn_err *err);
/* The same, whether it was asked for or not. [any] */
int32_t flex_blas_there(burn_err *err);

/* Whether sizes and strides are such as BLAS takes: one stride of A and of B is 1, none is 0. */
int flex_blas_takes(const flex_gemm *g);

/* C = init + A B; init is 0 or FLEX_INIT_COL. Needs one of the first two, and flex_blas_takes. */
void flex_blas_product(const flex_gemm *g);
/* The same on the calling thread alone. */
void flex_blas_serial(const flex_gemm *g);

/* As flex_blas_product, for f64. */
void flex_blas_product_f64(const flex_gemm_f64 *p);

#endif /* BURN_PLUGINS_FLEX_GEMM_BLAS_H */
