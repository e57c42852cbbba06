/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * extension.c - the list of extensions. See extension.h.
 *
 * The list is under the lock of the devices, so no device becomes visible while an extension is
 * being added. Definitions are checked before, without it: their functions are the plugin's and may
 * log. The loader's own locks are taken before, never inside.
 */
#include "exec/extension.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/rows.h"
#include "loader/loader.h"

#include <stdio.h>
#include <string.h>

typedef struct extension {
    const char *id;
    const burn_plugin *table;
    int registered; /* 0: it was refused, the note says why */
    char note[256];
    char told[256]; /* the note that was logged last */
    struct extension *next;
} extension;

static extension *extensions; /* in order of loading; under burni_devices_lock */

static extension *find(const char *id)
{
    extension *x = extensions;
    while (x != NULL && strcmp(x->id, id) != 0) {
        x = x->next;
    }
    return x;
}

static extension *append(const char *id, const burn_plugin *table)
{
    extension **end = &extensions;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = burni_calloc(1, sizeof(**end));
    if (*end != NULL) {
        (*end)->id = id;
        (*end)->table = table;
    }
    return *end;
}

/* Ops and rows are planned, then all of it becomes visible. */
static int32_t register_all(extension *x, burn_err *err)
{
    burni_row_plan *plans[BURNI_MAX_DEVICES] = {NULL};
    burni_op_batch batch;
    uint32_t n = 0;
    int32_t rc = burni_ops_stage(x->id, x->table->ops, x->table->n_ops, &batch, err);
    if (rc != BURN_OK) {
        return rc;
    }
    rc = burni_rows_check(x->table, x->id, &batch, err);
    for (; rc == BURN_OK && burni_device_at(n) != NULL; n++) {
        rc = burni_rows_plan(burni_device_at(n), x->table, x->id, &batch, &plans[n], x->note, err);
    }
    if (rc != BURN_OK) {
        for (uint32_t i = 0; i < n; i++) {
            burni_rows_drop(plans[i]);
        }
        burni_ops_discard(&batch);
        return rc;
    }
    burni_ops_publish(&batch);
    for (uint32_t i = 0; i < n; i++) {
        burni_rows_commit(plans[i]);
    }
    x->registered = 1;
    return BURN_OK;
}

/* `checked` is what the check of its definitions gave, with the text `said`. */
static int32_t load_locked(const burni_plugin *plugin, int32_t checked, burn_err *said,
                           burn_err *err)
{
    extension *x = find(plugin->id);
    if (x != NULL && x->registered) {
        return BURN_OK;
    }
    if (x == NULL) {
        x = append(plugin->id, plugin->table);
    }
    if (x == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", plugin->id);
    }
    x->note[0] = '\0';
    int32_t rc = checked == BURN_OK ? register_all(x, said) : checked;
    if (rc != BURN_OK) {
        (void)snprintf(x->note, sizeof(x->note), "%s", said->text);
        return burni_fail(err, rc, "%s", said->text);
    }
    return BURN_OK;
}

static int is_registered(const char *id)
{
    burni_devices_lock();
    const extension *x = find(id);
    int registered = x != NULL && x->registered;
    burni_devices_unlock();
    return registered;
}

int32_t burni_extension_load(const char *id, burn_err *err)
{
    const burni_plugin *plugin = NULL;
    if (id == NULL) {
        return burni_fail(err, BURN_E_INVALID, "extension: the id is NULL");
    }
    int32_t rc = burni_loader_open(id, &plugin, err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (plugin->table->device != NULL) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s is a backend, not an extension: open it with burn_device_open", id);
    }
    if (is_registered(plugin->id)) {
        return BURN_OK;
    }
    burn_err said = BURN_ERR_INIT;
    int32_t checked = burni_ops_check(plugin->id, plugin->table->ops, plugin->table->n_ops, &said);
    burni_devices_lock();
    rc = load_locked(plugin, checked, &said, err);
    burni_devices_unlock();
    if (rc == BURN_OK) {
        burni_extensions_tell();
    }
    return rc;
}

/* Copies a note that was not logged before; 0 when there is none. */
static int next_note(const char **id, char *note)
{
    int found = 0;
    burni_devices_lock();
    for (extension *x = extensions; x != NULL && !found; x = x->next) {
        found = x->registered && strcmp(x->note, x->told) != 0;
        if (found) {
            *id = x->id;
            memcpy(note, x->note, sizeof(x->note));
            memcpy(x->told, x->note, sizeof(x->told));
        }
    }
    burni_devices_unlock();
    return found;
}

void burni_extensions_tell(void)
{
    const char *id = NULL;
    char note[256];
    while (next_note(&id, note)) {
        burni_log(BURN_LOG_WARN, id, "%s", note);
    }
}

void burni_extension_note(const char *id, char *out)
{
    burni_devices_lock();
    const extension *x = id != NULL ? find(id) : NULL;
    (void)snprintf(out, 256, "%s", x != NULL ? x->note : "");
    burni_devices_unlock();
}

void burni_extensions_serve(burni_device *device)
{
    for (extension *x = extensions; x != NULL; x = x->next) {
        burni_row_plan *plan = NULL;
        burn_err err = BURN_ERR_INIT;
        if (!x->registered) {
            continue;
        }
        if (burni_rows_plan(device, x->table, x->id, NULL, &plan, x->note, &err) != BURN_OK) {
            (void)snprintf(x->note, sizeof(x->note), "its kernels for %.64s are left out: %.160s",
                           device->name, err.text);
        }
        burni_rows_commit(plan);
    }
}
