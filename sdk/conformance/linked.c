/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * linked.c - how the plugin under test was linked: it exports its entry and nothing else, and needs
 * no library of this project.
 *
 * The loader only warns of that, since it works until two such plugins meet in one process; here it
 * is a failure, so that a vendor sees it before users do. The loader looks, this asks for the
 * answer. The build's id stands in the report: it says which file was tried.
 */
#include "conformance.h"

#include <burn/plugins.h>
#include <burn/registry.h>

static int find(const char *id, burn_plugin_info *out)
{
    BURN_INIT(out, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, 1, out, NULL) == BURN_OK; i++) {
        if (out->state != BURN_PLUGIN_HIDDEN && strcmp(out->id, id) == 0) {
            return 1;
        }
    }
    return 0;
}

static void check_one(conf_report *report, const char *id)
{
    static burn_plugin_info info;
    if (!find(id, &info)) {
        return;
    }
    if (info.warning[0] != '\0') {
        conf_device_result(report, "plugin", id, CONF_FAIL, "%s; %s", info.warning,
                           info.warning_remedy);
        return;
    }
    conf_device_result(report, "plugin", id, CONF_PASS,
                       "it exports its entry only and needs no library of this project; build %s",
                       info.build_id[0] != '\0' ? info.build_id : "without an id");
}

void conf_check_linked(conf_report *report, const char *device, const char *extension)
{
    char id[64];
    (void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(device, ":"), device);
    check_one(report, id);
    if (extension != NULL) {
        check_one(report, extension);
    }
}
