/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kernels.c - picks the kernel tables of the ISA in use, once, when the plugin is queried.
 *
 * Owns no loop. To add an ISA: one more table here and one more build of the templates.
 */
#include "kernels.h"

#include "isa.h"

#include <stddef.h>

const flex_isa_table *flex_isa_kernels = &flex_isa_table_baseline;

const flex_pointwise_table *flex_pointwise[16] = {[BURN_BOOL] = &flex_pointwise_bool};

static const flex_isa_table *const by_level[] = {
    [FLEX_ISA_BASELINE] = &flex_isa_table_baseline,
#if defined(FLEX_HAS_X86_KERNELS)
    [FLEX_ISA_AVX2] = &flex_isa_table_avx2,
    [FLEX_ISA_AVX512] = &flex_isa_table_avx512,
#endif
};

/* The tables of all types for one ISA. */
typedef const flex_pointwise_table *table_list[16];

#define BASELINE_ENTRY(NAME, name) [BURN_##NAME] = &flex_pointwise_##name##_baseline,
#define AVX2_ENTRY(NAME, name) [BURN_##NAME] = &flex_pointwise_##name##_avx2,
#define AVX512_ENTRY(NAME, name) [BURN_##NAME] = &flex_pointwise_##name##_avx512,
static const table_list tables_by_level[] = {
    [FLEX_ISA_BASELINE] = {FLEX_FOREACH_ISA_TYPE(BASELINE_ENTRY)},
#if defined(FLEX_HAS_X86_KERNELS)
    [FLEX_ISA_AVX2] = {FLEX_FOREACH_ISA_TYPE(AVX2_ENTRY)},
    [FLEX_ISA_AVX512] = {FLEX_FOREACH_ISA_TYPE(AVX512_ENTRY)},
#endif
};

void flex_kernels_init(void)
{
    for (uint32_t i = 0; i < 16; i++) {
        if (tables_by_level[flex_isa][i] != NULL) {
            flex_pointwise[i] = tables_by_level[flex_isa][i];
        }
    }
    flex_isa_kernels = by_level[flex_isa];
    flex_pointwise[BURN_F32] = flex_isa_kernels->f32;
    flex_pointwise[BURN_F16] = flex_isa_kernels->f32;
    flex_pointwise[BURN_BF16] = flex_isa_kernels->f32;
}
