/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.c - the one exported symbol of flex.so and the table behind it.
 *
 * Chooses the ISA, sets the thread budget and gathers the rows of the kernel files, one row set per
 * family. Owns no kernel. To add a family: a line in rows.h. Called once per process. [init]
 */
#include "device.h"
#include "flex.h"
#include "isa.h"
#include "kernels.h"
#include "rows.h"
#include "service.h"
#include "stream.h"
#include "threads.h"

#define COUNT_ROWS(family) +1
enum { N_ROW_SETS = 0 FLEX_FOREACH_ROWS(COUNT_ROWS) };
#undef COUNT_ROWS

static burn_row_set row_sets[N_ROW_SETS];
static burn_plugin plugin;

static void add_rows(uint32_t *n, const burn_row *rows, uint32_t count)
{
    burn_row_set *set = &row_sets[*n];
    BURN_INIT(set, burn_row_set);
    set->backend = "flex";
    set->rows = rows;
    set->n_rows = count;
    set->row_stride = (uint32_t)sizeof(burn_row);
    (*n)++;
}

static void fill_row_sets(void)
{
    uint32_t n = 0;
#define ADD_ROWS(family) add_rows(&n, flex_rows_##family, flex_rows_##family##_count);
    FLEX_FOREACH_ROWS(ADD_ROWS)
#undef ADD_ROWS
}

static void plugin_shutdown(void)
{
    flex_threads_shutdown();
}

static const burn_magic magic = BURN_MAGIC_INIT;

static void fill_plugin(void)
{
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = "flex";
    plugin.version = BURN_VERSION;
    plugin.vendor = "Burn-C";
    plugin.license = "MIT OR Apache-2.0";
    plugin.device = &flex_device_api;
    plugin.row_sets = row_sets;
    plugin.n_row_sets = N_ROW_SETS;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
    plugin.op_stride = (uint32_t)sizeof(burn_op_def);
    plugin.extension = flex_service;
    plugin.shutdown = plugin_shutdown;
}

const burn_plugin *BURN_CALL burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                               const burn_host *host, burn_err *err)
{
    if (host_oldest > BURN_ABI_CURRENT || host_newest < BURN_ABI_OLDEST) {
        (void)flex_fail(err, BURN_E_ABI,
                        "flex: speaks ABI %u.%u, the host %u.%u to %u.%u; use a matching build",
                        BURN_ABI_CURRENT >> 16, BURN_ABI_CURRENT & 0xffff, host_oldest >> 16,
                        host_oldest & 0xffff, host_newest >> 16, host_newest & 0xffff);
        return NULL;
    }
    flex_host = host;
    if (flex_isa_init(host->option("FLEX_ISA"), err) != BURN_OK ||
        flex_blas_check(host->option("FLEX_GEMM"), err) != BURN_OK) {
        return NULL;
    }
    flex_kernels_init();
    flex_stream_init();
    flex_threads_init(host->thread_budget());
    flex_service_init();
    fill_row_sets();
    fill_plugin();
    return &plugin;
}
