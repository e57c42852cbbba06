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
#include "loader/lent.h"

#include <string.h>

#define DEVICES_MOST 1024

/* The id stands before the text wherever it is shown. */
static int32_t keep_failure(burni_entry *e, int32_t code, const char *text)
{
    size_t n = strlen(e->manifest.id);
    int named = strncmp(text, e->manifest.id, n) == 0 && strncmp(text + n, ": ", 2) == 0;
    e->count_code = code;
    e->counted = 1;
    burni_text_clean(e->count_text, sizeof(e->count_text), named ? text + n + 2 : text);
    return code;
}

/* The entry is busy. */
static int32_t count_devices(burni_entry *e)
{
    burni_sink sink;
    BURNI_LENT(uint32_t) n = {0, {0}};
    burni_sink_begin(&sink);
    burni_lend(n.guard);
    burn_err why = BURN_ERR_INIT;
    int32_t code = e->views[1].table->device->count(&n.it, &sink.err);
    code = burni_sink_end(&sink, e->manifest.id, "count", code, &why);
    if (code == BURN_OK) {
        code = burni_lent_check(n.guard, e->manifest.id, "count", "out_count", &why);
    }
    if (code != BURN_OK) {
        return keep_failure(e, code, why.text);
    }
    if (n.it > DEVICES_MOST) {
        return keep_failure(e, BURN_E_ABI, "it claims more than 1024 devices");
    }
    e->devices = burni_calloc(n.it, sizeof(*e->devices));
    e->probed = burni_calloc(n.it, 1);
    if (e->devices == NULL || e->probed == NULL) {
        burni_free(e->devices);
        burni_free(e->probed);
        e->devices = NULL;
        e->probed = NULL;
        return BURN_E_NO_MEMORY;
    }
    e->n_devices = n.it;
    e->count_code = BURN_OK;
    e->counted = 1;
    return BURN_OK;
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
    const char *hint = burni_entry_hint(e, e->count_text);
    int has_hint = hint != NULL && hint[0] != '\0';
    return burni_fail(err, code, "%s: %s%s%s", e->manifest.id, e->count_text,
                      has_hint ? "; " : "", has_hint ? hint : "");
}

/* Opens a backend and makes it this thread's. */
static int32_t begin(const char *id, burni_entry **out, burn_err *err)
{
    burni_entry *e = NULL;
    int32_t code = burni_loader_entry_need(id, &e, err);
    if (code != BURN_OK) {
        return code;
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
    burni_sink sink;
    BURNI_LENT(burn_device_info) info;
    burni_sink_begin(&sink);
    burni_lend(info.guard);
    BURN_INIT(&info.it, burn_device_info);
    burn_err why = BURN_ERR_INIT;
    int32_t code = e->views[1].table->device->probe(ordinal, &info.it, &sink.err);
    code = burni_sink_end(&sink, e->manifest.id, "probe", code, &why);
    if (code == BURN_OK) {
        code = burni_lent_check(info.guard, e->manifest.id, "probe", "burn_device_info", &why);
    }
    if (code != BURN_OK) {
        return burni_fail(err, code, "%s:%u: %s", e->manifest.id, ordinal, why.text);
    }
    end_strings(&info.it);
    e->devices[ordinal] = info.it;
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
