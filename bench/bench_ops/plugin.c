/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.c - an extension of ops that the benchmarks call; not installed.
 *
 * Owns the list of its definitions and rows. To add one: a line in each list.
 */
#include "bench_ops.h"

#include <burn_sdk/flex_kernel.h>

const burn_host *bench_ops_host;

#define F32 BURN_BIT(F32)
const burn_slot bench_ops_slots[3] = {
    BURN_SLOT(F32, BURN_LAYOUT_CONTIGUOUS),
    BURN_SLOT_LIKE(F32, BURN_LAYOUT_CONTIGUOUS, 0),
    BURN_SLOT_LIKE(F32, BURN_LAYOUT_CONTIGUOUS, 0),
};

const burn_role bench_ops_roles[3] = {
    BURN_ROLE("x", 0, F32),
    BURN_ROLE_LIKE("y", 0, 0, F32),
    BURN_ROLE_LIKE("z", 0, 0, F32),
};

static burn_op_def ops[2];
static burn_row rows[2];
static burn_row_set sets[] = {BURN_ROW_SET("flex", rows)};
static burn_plugin plugin;

const burn_plugin *BURN_CALL burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                               const burn_host *given, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    bench_ops_pick_loop();
    ops[0] = bench_ops_add;
    ops[1] = bench_ops_product;
    rows[0] = bench_ops_rows_add[0];
    rows[1] = bench_ops_rows_product[0];
    sets[0].contract = BURN_FLEX_KERNEL_CONTRACT;
    rows[1].prepare = bench_ops_prepare_product; /* the workspace depends on sizes */
    rows[1].key_facts = BURN_FACT_DIMS;
    for (uint32_t i = 0; i < BURN_COUNT(ops); i++) {
        burn_op_finish(&ops[i]);
        rows[i].op = ops[i].id;
    }
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = "bench_ops";
    plugin.version = BURN_VERSION;
    plugin.ops = ops;
    plugin.n_ops = BURN_COUNT(ops);
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    plugin.row_sets = sets;
    plugin.n_row_sets = 1;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
    return burn_plugin_answer(host_oldest, host_newest, given, &bench_ops_host, &plugin, err);
}
