/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines_f32_tmpl.c - the f32 line table, compiled once per ISA with ISA defined as baseline,
 * avx2 or avx512. The loops are in nn_lines_tmpl.h; exp is the backend's own.
 */
#include "nn_lines.h"

#include "math_f32.h"
#include "widen.h"

#include <burn/dtype.h>

#define TABLE_OF(isa) flex_lines_f32_##isa
#define TABLE_NAME(isa) TABLE_OF(isa)
#define TABLE TABLE_NAME(ISA)
#define TABLE_DTYPE BURN_F32
#define T float
#define I int32_t
#define EXP fm_exp
#define SQRT sqrtf
#define WIDEN flex_widen8

#include "nn_lines_tmpl.h"
