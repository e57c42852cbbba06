/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.c - the entry of the extension starter: its ops, and its kernels for each backend.
 *
 * The one exported symbol answers with a table that lives as long as the process. To add an op: a
 * name in the first list and a row in `definitions`. To add a kernel: a row in the rows of its
 * backend. To serve another backend: rows of its own and a line in `row_sets`; without them its
 * devices run the decomposition.
 */
#include "starter_plugin.h"

enum { OP_RMS_NORM, N_OPS };

static const burn_op_def *const definitions[N_OPS] = {
    [OP_RMS_NORM] = &starter_op_rms_norm,
};

static const burn_slot rms_norm_slots[] = {
    BURN_SLOT(BURN_BIT(F32), BURN_LAYOUT_CONTIGUOUS),
    BURN_SLOT(BURN_BIT(F32), BURN_LAYOUT_CONTIGUOUS),
};

#define FLAGS (BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS | BURN_ROW_INDEX64)

static burn_row flex_rows[] = {
    BURN_ROW(OP_RMS_NORM, "starter.rms_norm.f32", FLAGS, rms_norm_slots, starter_rms_norm_f32),
};

static burn_row_set row_sets[] = {
    BURN_ROW_SET("flex", flex_rows),
};

static const burn_host *starter_host;
static burn_op_def ops[N_OPS];

static const burn_plugin plugin = {
    .struct_size = (uint32_t)sizeof(burn_plugin),
    .magic = BURN_MAGIC_INIT,
    .id = STARTER_ID,
    .version = STARTER_VERSION,
    .vendor = STARTER_ID,
    .license = STARTER_LICENSE,
    .ops = ops,
    .n_ops = N_OPS,
    .op_stride = (uint32_t)sizeof(burn_op_def),
    .row_sets = row_sets,
    .n_row_sets = (uint32_t)BURN_COUNT(row_sets),
    .row_set_stride = (uint32_t)sizeof(burn_row_set),
};

/* Ids are hashes of names, which C cannot put into a constant. */
static void fill_ids(burn_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rows[i].op = ops[rows[i].op].id;
    }
}

const burn_plugin *burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                     const burn_host *host, burn_err *err)
{
    for (uint32_t i = 0; i < N_OPS; i++) {
        ops[i] = *definitions[i];
        ops[i].id = burn_op_id_from_name(ops[i].name);
    }
    fill_ids(flex_rows, BURN_COUNT(flex_rows));
    return burn_plugin_answer(host_oldest, host_newest, host, &starter_host, &plugin, err);
}
