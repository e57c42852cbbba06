/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.c - the one exported symbol of fused.so: five definitions, and rows for one backend.
 *
 * Every other backend runs the decompositions. Owns no op and no kernel. Called once. [init]
 */
#include "fused_plugin.h"

const burn_host *fused_host;

#define COUNT_OP(id, NAME, name) +1
enum { N_OPS = 0 BURN_FOREACH_FUSED_OP(COUNT_OP) };
#undef COUNT_OP

static burn_op_def ops[N_OPS];
static burn_row_set row_sets[1];
static burn_plugin plugin;

static const burn_magic magic = BURN_MAGIC_INIT;

static void fill(void)
{
    uint32_t n = 0;
#define TAKE_OP(id, NAME, name)                                                                    \
    ops[n] = fused_def_##name;                                                                     \
    burn_op_finish(&ops[n++]);
    BURN_FOREACH_FUSED_OP(TAKE_OP)
#undef TAKE_OP
    BURN_INIT(&row_sets[0], burn_row_set);
    row_sets[0].contract = BURN_FLEX_KERNEL_CONTRACT;
    row_sets[0].backend = "flex";
    row_sets[0].rows = fused_flex_rows(&row_sets[0].n_rows);
    row_sets[0].row_stride = (uint32_t)sizeof(burn_row);
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = "fused";
    plugin.version = BURN_VERSION;
    plugin.vendor = "Burn-C";
    plugin.license = "MIT OR Apache-2.0";
    plugin.row_sets = row_sets;
    plugin.n_row_sets = 1;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
    plugin.ops = ops;
    plugin.n_ops = n;
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
}

const burn_plugin *BURN_CALL burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                               const burn_host *host, burn_err *err)
{
    fill();
    return burn_plugin_answer(host_oldest, host_newest, host, &fused_host, &plugin, err);
}
