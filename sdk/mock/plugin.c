/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.c - the entry of this backend: the one exported symbol and the table behind it.
 *
 * Starts nothing and opens nothing: devices are opened later, through the device table. Id, version
 * and licence are in mock.h.
 */
#include "mock.h"

const burn_host *mock_host;

static burn_row_set row_sets[1] = {
    {(uint32_t)sizeof(burn_row_set), 0, MOCK_ID, mock_rows, 0, (uint32_t)sizeof(burn_row)},
};

/* What is offered beyond the table, by id. */
static const void *extension(const char *id)
{
    if (strcmp(id, BURN_MANY) == 0) {
        return &mock_many;
    }
    return strcmp(id, BURN_PROFILE_CLOCK) == 0 ? &mock_clock : NULL;
}

static const uint64_t layouts[] = BURN_LAYOUTS_INIT;

static const burn_plugin plugin = {
    .struct_size = (uint32_t)sizeof(burn_plugin),
    .magic = BURN_MAGIC_INIT,
    .id = MOCK_ID,
    .version = MOCK_VERSION,
    .vendor = MOCK_ID,
    .license = MOCK_LICENSE,
    .device = &mock_device_api,
    .row_sets = row_sets,
    .n_row_sets = (uint32_t)BURN_COUNT(row_sets),
    .row_set_stride = (uint32_t)sizeof(burn_row_set),
    .extension = extension,
    .shutdown = mock_shutdown,
    .layouts = layouts,
    .n_layouts = (uint32_t)BURN_COUNT(layouts),
};

const burn_plugin *burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                     const burn_host *host, burn_err *err)
{
    row_sets[0].n_rows = mock_n_rows;
    return burn_plugin_answer(host_oldest, host_newest, host, &mock_host, &plugin, err);
}
