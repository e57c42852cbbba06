/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kernels.c - picks the kernel tables of the ISA in use, once, when the plugin is queried.
 *
 * Owns no loop. To add an ISA: one more table here and one more build of the templates.
 */
#include "kernels.h"

#include "isa.h"

const flex_isa_table *flex_isa_kernels = &flex_isa_table_baseline;

const flex_pointwise_table *flex_pointwise[16] = {
    [BURN_BOOL] = &flex_pointwise_bool, [BURN_U8] = &flex_pointwise_u8,
    [BURN_I8] = &flex_pointwise_i8,     [BURN_U16] = &flex_pointwise_u16,
    [BURN_I16] = &flex_pointwise_i16,   [BURN_U32] = &flex_pointwise_u32,
    [BURN_I32] = &flex_pointwise_i32,   [BURN_U64] = &flex_pointwise_u64,
    [BURN_I64] = &flex_pointwise_i64,   [BURN_F64] = &flex_pointwise_f64,
};

static const flex_isa_table *const by_level[] = {
    [FLEX_ISA_BASELINE] = &flex_isa_table_baseline,
#if defined(FLEX_HAS_X86_KERNELS)
    [FLEX_ISA_AVX2] = &flex_isa_table_avx2,
    [FLEX_ISA_AVX512] = &flex_isa_table_avx512,
#endif
};

void flex_kernels_init(void)
{
    flex_isa_kernels = by_level[flex_isa];
    flex_pointwise[BURN_F32] = flex_isa_kernels->f32;
    flex_pointwise[BURN_F16] = flex_isa_kernels->f32;
    flex_pointwise[BURN_BF16] = flex_isa_kernels->f32;
}
