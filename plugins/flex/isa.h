/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * isa.h - which vector instructions this process uses.
 *
 * Decided once, from CPUID and XGETBV, when the plugin is queried; the option FLEX_ISA may lower it
 * (never raise it). Kernel files compiled once per ISA pick their table by flex_isa.
 */
#ifndef BURN_PLUGINS_FLEX_ISA_H
#define BURN_PLUGINS_FLEX_ISA_H

#include <burn/status.h>

typedef enum flex_isa_level {
    FLEX_ISA_BASELINE = 0, /* what every CPU of the architecture has: SSE2, on 64-bit ARM NEON */
    FLEX_ISA_AVX2 = 1,     /* AVX2, FMA, F16C */
    FLEX_ISA_AVX512 = 2    /* AVX-512 F, BW, DQ, VL */
} flex_isa_level;

/* The level in use; constant after flex_isa_init. */
extern flex_isa_level flex_isa;

/* Besides AVX-512: a matrix unit for bf16 (AMX), which the system lets this process use. */
extern int flex_isa_has_amx;

/*
 * Finds the level; `wanted` ("baseline", "avx2", "avx512", "amx" or NULL) may lower it. What the
 * CPU has not, or the system refuses, is an error if it was wanted. An error changes nothing.
 * [init]
 */
int32_t flex_isa_init(const char *wanted, burn_err *err);

/* What is in use: "avx512", or "amx" where that is, too. */
const char *flex_isa_name(void);

#endif /* BURN_PLUGINS_FLEX_ISA_H */
