/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * environment.c - which BURN_* variables are set, and which of them nobody reads.
 *
 * The list of names is the table of docs/modes.md; a new option gets a row here and there. Options
 * of plugins have the plugin's name in front (BURN_ACME_...), so a plugin that is known vouches for
 * them.
 */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/check.h"
#include "exec/device.h"
#include "loader/entry.h"
#include "loader/loader.h"

#include <burn/plugins.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct variable {
    const char *name;
    int32_t (*check)(burn_err *err); /* what is wrong with the value; NULL: told where it is read */
} variable;

static const variable variables[] = {
    {"BURN_BACKENDS", NULL},
    {"BURN_CHECK", burni_check_option},
    {"BURN_DEVICE", NULL},
    {"BURN_EXPLAIN", NULL},
    {"BURN_LOG", burni_log_check},
    {"BURN_PLUGIN_PATH", NULL},
    {"BURN_PROFILE", NULL},
    {"BURN_THREADS", burni_loader_check_threads},
    {"BURN_WINDOW", burni_device_check_window},
};

enum { N_VARIABLES = sizeof(variables) / sizeof(variables[0]) };

/* The plugin whose name, in capitals, stands in front: BURN_<NAME>_... */
static const char *plugin_of(const char *name)
{
    for (uint32_t i = 0; i < burni_loader_count(); i++) {
        const burni_plugin *p = burni_loader_at(i);
        const char *at = name + strlen("BURN_");
        const char *id = p != NULL && p->id != NULL ? p->id : "";
        while (*id != '\0' && toupper((unsigned char)(*id == '-' ? '_' : *id)) == *at) {
            id++;
            at++;
        }
        if (p != NULL && p->id != NULL && *id == '\0' && at[0] == '_' && at[1] != '\0') {
            return p->id;
        }
    }
    return NULL;
}

static void describe(burn_variable_info *out)
{
    uint32_t best = 4; /* names further off than 3 are no slips */
    const char *owner = plugin_of(out->name);
    for (uint32_t i = 0; i < N_VARIABLES; i++) {
        burn_err err = BURN_ERR_INIT;
        uint32_t distance = burni_distance(out->name, variables[i].name);
        if (distance == 0) {
            out->known = BURN_VARIABLE_LIBRARY;
            best = 0;
            out->hint[0] = '\0';
            if (variables[i].check != NULL && variables[i].check(&err) != BURN_OK) {
                (void)snprintf(out->problem, sizeof(out->problem), "%.200s", err.text);
            }
        } else if (distance < best) {
            best = distance;
            (void)snprintf(out->hint, sizeof(out->hint), "%s", variables[i].name);
        }
    }
    if (owner != NULL && out->known == 0) {
        out->known = BURN_VARIABLE_PLUGIN;
        out->hint[0] = '\0';
        (void)snprintf(out->owner, sizeof(out->owner), "%s", owner);
    }
}

int32_t burn_environment_at(uint32_t i, burn_variable_info *out, burn_err *err)
{
    if (out == NULL || out->struct_size < sizeof(out->struct_size)) {
        return burni_fail(err, BURN_E_INVALID, "environment: the output is NULL or states no size");
    }
    int32_t rc = burni_loader_list(err);
    if (rc != BURN_OK) {
        return rc;
    }
    burn_variable_info info;
    BURN_INIT(&info, burn_variable_info);
    if (!burni_env_at(i, info.name, sizeof(info.name), &info.value)) {
        return burni_fail(err, BURN_E_NOT_FOUND, "environment: there is no variable number %u", i);
    }
    describe(&info);
    uint32_t size = out->struct_size;
    memset(out, 0, size);
    memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
    out->struct_size = size;
    return BURN_OK;
}
