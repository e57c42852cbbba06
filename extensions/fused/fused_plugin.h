/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_plugin.h - what the files of this extension share: the host, the definitions, the kernels
 * and the tables of loops.
 *
 * Definitions are in op_*.c, kernels for the CPU backend in flex_*.c; loops.h has what is compiled
 * once per instruction set. To add an op: a row in burn/ext/fused.h, a definition, its line in
 * plugin.c; a kernel is one more row in flex_rows.c.
 */
#ifndef BURN_EXTENSIONS_FUSED_FUSED_PLUGIN_H
#define BURN_EXTENSIONS_FUSED_FUSED_PLUGIN_H

#include "include/burn/ext/fused.h"

#include <burn_sdk/flex_kernel.h>
#include <burn_sdk/op.h>
#include <burn_sdk/slots.h>

/* Set by the query, constant from then on. */
extern const burn_host *fused_host;

#define FUSED_DECLARE(id, NAME, name) extern const burn_op_def fused_def_##name;
BURN_FOREACH_FUSED_OP(FUSED_DECLARE)
#undef FUSED_DECLARE

/* Rows for flex; op ids are filled in. [init] */
const burn_row *fused_flex_rows(uint32_t *n);

/* Gives a tensor of a sample these values, repeated; where they are far from 1, without gradients.
 */
static inline void fused_sample_values(burn_sample *s, uint32_t i, uint32_t n, const double *values)
{
    s->in[i].fill = BURN_FILL_VALUES;
    s->in[i].n_values = n;
    s->in[i].values = values;
    s->flags |= BURN_SAMPLE_NO_GRAD;
}

/* A half float as f32, anything else as it is; and back. For decompositions. */
static inline burn_value *fused_widen(const burn_builder *b, burn_value *x)
{
    uint8_t dtype = burn_b_meta(b, x).dtype;
    return dtype == BURN_F16 || dtype == BURN_BF16 ? burn_b_cast(b, x, BURN_F32) : x;
}

static inline burn_value *fused_narrow(const burn_builder *b, burn_value *x, uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16 ? burn_b_cast(b, x, dtype) : x;
}

#endif /* BURN_EXTENSIONS_FUSED_FUSED_PLUGIN_H */
