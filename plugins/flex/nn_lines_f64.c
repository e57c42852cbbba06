/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_f64.c - the f64 line table, and the choice of a table for a dtype.
 */
#include "nn_lines.h"

#include "isa.h"
#include "widen.h"

#include <burn/dtype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static void exp_lanes(double *out, const double *x, double shift)
{
    for (int l = 0; l < FLEX_LINE_LANES; l++) {
        out[l] = exp(x[l] - shift);
    }
}

#define TABLE flex_lines_f64
#define TABLE_DTYPE BURN_F64
#define T double
#define I int64_t
#define EXP exp
#define EXP_LANES exp_lanes
#define SQRT sqrt
#define WIDEN flex_load_doubles

#include "nn_lines_tmpl.h"

const flex_lines *flex_lines_of(uint8_t dtype)
{
    if (dtype == BURN_F64) {
        return &flex_lines_f64;
    }
#if defined(FLEX_HAS_X86_KERNELS)
    if (flex_isa == FLEX_ISA_AVX512) {
        return &flex_lines_f32_avx512;
    }
    if (flex_isa == FLEX_ISA_AVX2) {
        return &flex_lines_f32_avx2;
    }
#endif
    return &flex_lines_f32_baseline;
}
