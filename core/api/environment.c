/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * environment.c - which BURN_* variables are set, which of them nobody reads, and options from the
 * program: those are refused where they are unknown, wrong or too late to have an effect.
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
#include "exec/plan_file.h"
#include "exec/resolve.h"
#include "loader/entry.h"
#include "loader/loader.h"
#include "tune/environment.h"
#include "tune/place.h"

#include <burn/plugins.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct variable {
    const char *name;
    int32_t (*check)(burn_err *err); /* what is wrong with the value; NULL: told where it is read */
    const char *instead; /* how to set it; NULL: by burn_option_set, before a device is opened */
} variable;

static const variable variables[] = {
    {"BURN_BACKENDS", NULL, "it is read from the environment only"},
    {"BURN_CHECK", burni_check_option, "it has a mode of its own"},
    {"BURN_DEVICE", NULL, "give burn_device_open the string"},
    {"BURN_ENVIRONMENT", burni_environment_check_option, "call burn_environment_load"},
    {"BURN_ENVIRONMENT_PATH", burni_place_check_saving, "it is read from the environment only"},
    {"BURN_EXPLAIN", NULL, "it is read from the environment only"},
    {"BURN_LOG", burni_log_check, "call burn_log_set"},
    {"BURN_PLANS", burni_plan_file_check, "it is read from the environment only"},
    {"BURN_PLUGIN_PATH", burni_loader_check_path, "it is read from the environment only"},
    {"BURN_PROFILE", NULL, "call burn_profile_begin"},
    {"BURN_THREADS", burni_loader_check_threads, NULL},
    {"BURN_WINDOW", burni_device_check_window, NULL},
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
    burn_err spare;
    err = burni_first(err, &spare);
    if (burni_check_output("environment", out, sizeof(out->struct_size), err) != BURN_OK) {
        return err->code;
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

/* ---- options from the program ---------------------------------------------------------------- */

/* Modes that a thread may change at any time; 0 when `name` is none. */
static int set_mode(const char *name, const char *value, int32_t *rc, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    int is_decompose = strcmp(name, "DECOMPOSE") == 0; /* for tests, as ROW is */
    if (strcmp(name, "ROW") == 0) {
        *rc = burni_resolve_prefer(value, err);
        return 1;
    }
    if (!is_decompose && strcmp(name, "CHECK") != 0) {
        return 0;
    }
    *rc = BURN_OK;
    if (thread == NULL) {
        *rc = burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    } else if (is_decompose) {
        int on = value != NULL && strcmp(value, "1") == 0;
        thread->watch = on ? thread->watch | BURNI_WATCH_DECOMPOSE
                           : thread->watch & ~(uint32_t)BURNI_WATCH_DECOMPOSE;
    } else {
        *rc = burni_check_set(thread, value, err);
    }
    return 1;
}

/* Sets a value that is checked at once; a wrong one leaves the old one. */
static int32_t set_checked(const variable *v, const char *name, const char *value, burn_err *err)
{
    const char *before = burni_loader_option(name);
    int32_t rc = burni_loader_set_option(name, value, err);
    if (rc == BURN_OK && v->check != NULL && v->check(err) != BURN_OK) {
        (void)burni_loader_set_option(name, before, NULL);
        rc = BURN_E_INVALID;
    }
    return rc;
}

static int is_same(const char *name, const char *value)
{
    const char *now = burni_loader_option(name);
    return now == value || (now != NULL && value != NULL && strcmp(now, value) == 0);
}

static int32_t set_core(const variable *v, const char *name, const char *value, burn_err *err)
{
    if (v->instead != NULL) {
        return burni_fail(err, BURN_E_INVALID, "option %s cannot be set from the program: %s",
                          name, v->instead);
    }
    const burni_device *open = burni_device_at(0);
    if (open != NULL && !is_same(name, value)) {
        return burni_fail(err, BURN_E_STATE,
                          "option %s has no effect any more: %s is open; set it before the first "
                          "burn_device_open",
                          name, open->name);
    }
    return set_checked(v, name, value, err);
}

/* A backend reads its options when it opens a device, so they matter while one is left to open. */
static int32_t set_of_plugin(const char *owner, const char *name, const char *value, burn_err *err)
{
    uint32_t open = 0;
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        open += strcmp(burni_device_at(d)->backend, owner) == 0;
    }
    uint32_t all = 0;
    if (open > 0 && !is_same(name, value) &&
        burni_loader_device_count(owner, &all, NULL) == BURN_OK && open >= all) {
        return burni_fail(err, BURN_E_STATE,
                          "option %s has no effect any more: %s has opened all of its devices; set "
                          "it before burn_device_open",
                          name, owner);
    }
    return burni_loader_set_option(name, value, err);
}

static int32_t unknown_option(const char *name, burn_err *err)
{
    const char *nearest = NULL;
    uint32_t best = 4;
    for (uint32_t i = 0; i < N_VARIABLES; i++) {
        const char *known = variables[i].name + strlen("BURN_");
        uint32_t distance = burni_distance(name, known);
        if (distance < best && variables[i].instead == NULL) {
            best = distance;
            nearest = known;
        }
    }
    if (nearest != NULL) {
        return burni_fail(err, BURN_E_NOT_FOUND, "option \"%s\": there is none; did you mean %s?",
                          name, nearest);
    }
    return burni_fail(err, BURN_E_NOT_FOUND,
                      "option \"%s\": there is none; there are CHECK, THREADS and WINDOW, and "
                      "those of plugins, which begin with the plugin's name",
                      name);
}

int32_t burn_option_set(const char *name, const char *value, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    int32_t rc = burni_loader_check_option(name, value, err);
    if (rc != BURN_OK || set_mode(name, value, &rc, err)) {
        return rc;
    }
    for (uint32_t i = 0; i < N_VARIABLES; i++) {
        const char *known = variables[i].name + strlen("BURN_");
        if (strcmp(known, name) == 0) {
            return set_core(&variables[i], name, value, err);
        }
        if (strcmp(variables[i].name, name) == 0) {
            return burni_fail(err, BURN_E_INVALID,
                              "option \"%s\": leave out BURN_, the name is \"%s\"", name, known);
        }
    }
    char full[64];
    (void)snprintf(full, sizeof(full), "BURN_%.48s", name);
    (void)burni_loader_list(NULL);
    const char *owner = plugin_of(full);
    if (owner == NULL && strncmp(name, "BURN_", strlen("BURN_")) == 0 && plugin_of(name) != NULL) {
        return burni_fail(err, BURN_E_INVALID,
                          "option \"%s\": leave out BURN_, the name is \"%s\"", name,
                          name + strlen("BURN_"));
    }
    return owner != NULL ? set_of_plugin(owner, name, value, err) : unknown_option(name, err);
}
