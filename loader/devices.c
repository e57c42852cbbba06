/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * devices.c - how many devices a backend has and what they are. Answers are kept: a driver is asked
 * once, and a failure stays with its text, since known, loadable and usable are three questions.
 *
 * Count and probe are [init] entries: one thread at a time per plugin, without the loader's lock.
 * They create no context; the core opens devices, not the loader.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "loader/entry.h"

#include <string.h>

#define DEVICES_MOST 1024

static int32_t keep_failure(burni_entry *e, int32_t code, const char *text)
{
    e->count_code = code;
    e->counted = 1;
    burni_text_clean(e->count_text, sizeof(e->count_text), text);
    return code;
}

static int32_t plugin_code(int32_t code)
{
    return code < 0 && code >= BURN_E_END ? code : BURN_E_INTERNAL;
}

/* The entry is busy. */
static int32_t count_devices(burni_entry *e)
{
    burn_err said = BURN_ERR_INIT;
    uint32_t n = 0;
    int32_t code = e->views[1].table->device->count(&n, &said);
    if (code != BURN_OK) {
        said.text[sizeof(said.text) - 1] = '\0';
        const char *text = said.text[0] != '\0' ? said.text : "counting devices failed";
        return keep_failure(e, plugin_code(code), text);
    }
    if (n > DEVICES_MOST) {
        return keep_failure(e, BURN_E_ABI, "it claims more than 1024 devices");
    }
    e->devices = burni_calloc(n, sizeof(*e->devices));
    e->probed = burni_calloc(n, 1);
    if (e->devices == NULL || e->probed == NULL) {
        burni_free(e->devices);
        burni_free(e->probed);
        e->devices = NULL;
        e->probed = NULL;
        return BURN_E_NO_MEMORY;
    }
    e->n_devices = n;
    e->count_code = BURN_OK;
    e->counted = 1;
    return BURN_OK;
}

static const char *hint_for(const burni_entry *e)
{
    for (uint32_t i = 0; i < e->manifest.n_needs; i++) {
        if (strstr(e->count_text, e->manifest.needs[i].library) != NULL) {
            return e->manifest.needs[i].hint;
        }
    }
    return "";
}

/* The entry is busy; counts if that was not done. */
static int32_t need_count(burni_entry *e, burn_err *err)
{
    int32_t code = e->counted ? e->count_code : count_devices(e);
    if (code == BURN_OK) {
        return BURN_OK;
    }
    if (!e->counted) {
        return burni_fail(err, code, "%s: no memory for its devices", e->manifest.id);
    }
    const char *hint = hint_for(e);
    return burni_fail(err, code, "%s: %s%s%s", e->manifest.id, e->count_text,
                      hint[0] != '\0' ? "; " : "", hint);
}

/* Opens a backend and makes it this thread's. */
static int32_t begin(const char *id, burni_entry **out, burn_err *err)
{
    int32_t code = burni_loader_list(err);
    if (code != BURN_OK) {
        return code;
    }
    burni_entry *e = burni_loader_entry_find(id);
    if (e == NULL) {
        return burni_loader_unknown(id, err);
    }
    if (strcmp(e->manifest.kind, "extension") == 0) {
        return burni_fail(err, BURN_E_INVALID, "%s is an extension: it has no devices", id);
    }
    code = burni_entry_open(e, err);
    if (code == BURN_OK) {
        code = burni_entry_claim(e, err);
    }
    *out = e;
    return code;
}

int32_t burni_loader_device_count(const char *id, uint32_t *out, burn_err *err)
{
    burni_entry *e = NULL;
    int32_t code = begin(id, &e, err);
    if (code != BURN_OK) {
        return code;
    }
    code = need_count(e, err);
    if (code == BURN_OK) {
        *out = e->n_devices;
    }
    burni_entry_done(e);
    return code;
}

static void end_strings(burn_device_info *info)
{
    info->struct_size = (uint32_t)sizeof(*info);
    info->name[sizeof(info->name) - 1] = '\0';
    info->isa[sizeof(info->isa) - 1] = '\0';
    info->driver[sizeof(info->driver) - 1] = '\0';
    info->uuid[sizeof(info->uuid) - 1] = '\0';
    info->pci[sizeof(info->pci) - 1] = '\0';
}

/* The entry is busy and the ordinal is in range. */
static int32_t need_probe(burni_entry *e, uint32_t ordinal, burn_err *err)
{
    if (e->probed[ordinal]) {
        return BURN_OK;
    }
    burn_err said = BURN_ERR_INIT;
    burn_device_info info;
    BURN_INIT(&info, burn_device_info);
    int32_t code = e->views[1].table->device->probe(ordinal, &info, &said);
    if (code != BURN_OK) {
        said.text[sizeof(said.text) - 1] = '\0';
        char text[sizeof(said.text)];
        burni_text_clean(text, sizeof(text), said.text);
        return burni_fail(err, plugin_code(code), "%s:%u: %s", e->manifest.id, ordinal,
                          text[0] != '\0' ? text : "the device could not be described");
    }
    end_strings(&info);
    e->devices[ordinal] = info;
    e->probed[ordinal] = 1;
    return BURN_OK;
}

int32_t burni_loader_device_info(const char *id, uint32_t ordinal, burn_device_info *out,
                                 burn_err *err)
{
    burni_entry *e = NULL;
    int32_t code = begin(id, &e, err);
    if (code != BURN_OK) {
        return code;
    }
    code = need_count(e, err);
    if (code == BURN_OK && ordinal >= e->n_devices) {
        code = burni_fail(err, BURN_E_NOT_FOUND, "%s:%u: it has %u device%s", id, ordinal,
                          e->n_devices, e->n_devices == 1 ? "" : "s");
    }
    if (code == BURN_OK) {
        code = need_probe(e, ordinal, err);
    }
    if (code == BURN_OK) {
        *out = e->devices[ordinal];
    }
    burni_entry_done(e);
    return code;
}
