/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * no_rows.c - mock without a single kernel: what burn-conformance must not pass.
 *
 * Built together with mock's own sources, whose entry then has the name `mock_query` (a definition
 * in the build file); this entry answers what that one does, without its rows. The device works,
 * and views of tensors do; nothing else can run.
 */
#include <burn/plugin.h>

#undef burn_plugin_query

/* Mock's own: the header has declared it under that name. */
static burn_plugin_query_fn whole = mock_query;

BURN_API const burn_plugin *BURN_CALL burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                                        const burn_host *host, burn_err *err);

const burn_plugin *burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                     const burn_host *host, burn_err *err)
{
    static burn_plugin without;
    const burn_plugin *plugin = whole(host_oldest, host_newest, host, err);
    if (plugin == NULL) {
        return NULL;
    }
    without = *plugin;
    without.row_sets = NULL;
    without.n_row_sets = 0;
    return &without;
}
