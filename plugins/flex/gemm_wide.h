/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_wide.h - matmul and linear in 64 bits, behind the rows for the integers.
 *
 * Owns the two callbacks of those rows (gemm.c lists them). The workspace holds dense wide copies
 * of the right operand; integers add in 64 bits modulo 2^64 and are cut to their width, which wraps
 * as the narrow arithmetic would.
 */
#ifndef BURN_PLUGINS_FLEX_GEMM_WIDE_H
#define BURN_PLUGINS_FLEX_GEMM_WIDE_H

#include <burn/row.h>

int32_t flex_wide_prepare(const burn_call *call, burn_prepared *out);
int32_t flex_wide_launch(const burn_call *call);

#endif /* BURN_PLUGINS_FLEX_GEMM_WIDE_H */
