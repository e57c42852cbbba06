/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugins.c - the public functions of <burn/plugins.h>: the loader's answers in public structs.
 *
 * The loader tells plugins that opened from those that did not; whether one has a device is asked
 * here, so that a backend without devices is "loadable" with the driver's reason, not "usable".
 */
#include <burn/plugins.h>

#include "base/error.h"
#include "exec/extension.h"
#include "loader/loader.h"

#include <stdio.h>
#include <string.h>

static int32_t public_state(int32_t state)
{
    static const int32_t states[] = {
        [BURNI_PLUGIN_KNOWN] = BURN_PLUGIN_KNOWN,
        [BURNI_PLUGIN_OPEN] = BURN_PLUGIN_LOADABLE,
        [BURNI_PLUGIN_BROKEN] = BURN_PLUGIN_BROKEN,
        [BURNI_PLUGIN_DISABLED] = BURN_PLUGIN_DISABLED,
        [BURNI_PLUGIN_HIDDEN] = BURN_PLUGIN_HIDDEN,
    };
    int fine = state >= BURNI_PLUGIN_KNOWN && state <= BURNI_PLUGIN_HIDDEN;
    return fine ? states[state] : BURN_PLUGIN_BROKEN;
}

static void fill(burn_plugin_info *out, const burni_plugin *p)
{
    out->state = public_state(p->state);
    out->id = p->id;
    out->name = p->display_name;
    out->kind = p->kind;
    out->version = p->version;
    out->license = p->license;
    out->manifest = p->manifest_path;
    out->library = p->library_path;
    out->priority = p->priority;
    out->open_ms = p->open_ms;
    out->code = p->code;
    (void)snprintf(out->reason, sizeof(out->reason), "%s", p->reason);
    (void)snprintf(out->remedy, sizeof(out->remedy), "%s", p->remedy);
    (void)snprintf(out->build_id, sizeof(out->build_id), "%s", p->build_id);
    (void)snprintf(out->warning, sizeof(out->warning), "%s", p->warning);
    (void)snprintf(out->warning_remedy, sizeof(out->warning_remedy), "%s", p->warning_remedy);
}

/* An extension is of use when its ops are registered; kernels that are left out are told too. */
static void try_extension(burn_plugin_info *out)
{
    burn_err why = BURN_ERR_INIT;
    out->code = burni_extension_load(out->id, &why);
    if (out->code != BURN_OK) {
        out->state = BURN_PLUGIN_BROKEN;
        (void)snprintf(out->reason, sizeof(out->reason), "%s", why.text);
        return;
    }
    out->state = BURN_PLUGIN_USABLE;
    char note[256];
    burni_extension_note(out->id, note);
    (void)snprintf(out->reason, sizeof(out->reason), "%s", note);
}

/* Known, loadable, usable: asks the backend for its devices. */
static void count_devices(burn_plugin_info *out)
{
    burn_err why = BURN_ERR_INIT;
    if (strcmp(out->kind, "extension") == 0) {
        try_extension(out);
        return;
    }
    int32_t rc = burni_loader_device_count(out->id, &out->n_devices, &why);
    if (rc == BURN_OK && out->n_devices > 0) {
        out->state = BURN_PLUGIN_USABLE;
        return;
    }
    out->code = rc != BURN_OK ? rc : BURN_E_NOT_FOUND;
    (void)snprintf(out->reason, sizeof(out->reason), "%s",
                   rc != BURN_OK ? why.text : "it finds no device on this machine");
    if (out->remedy[0] == '\0') {
        (void)snprintf(out->remedy, sizeof(out->remedy),
                       "install the device and its driver, or use another backend");
    }
}

uint32_t burn_plugins_count(void)
{
    return burni_loader_count();
}

int32_t burn_plugins_at(uint32_t i, int32_t open, burn_plugin_info *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (burni_check_output("plugins", out, sizeof(out->struct_size), err) != BURN_OK) {
        return err->code;
    }
    int32_t rc = burni_loader_list(err);
    if (rc != BURN_OK) {
        return rc;
    }
    const burni_plugin *p = burni_loader_at(i);
    if (p == NULL) {
        return burni_fail(err, BURN_E_NOT_FOUND, "plugins: there is no number %u of %u", i,
                          burni_loader_count());
    }
    /* Opened by id: of two plugins with one id only the one that the loader would take. */
    if (open && p->state == BURNI_PLUGIN_KNOWN && burni_loader_find(p->id) == p) {
        (void)burni_loader_open(p->id, NULL, NULL);
        p = burni_loader_at(i);
    }
    burn_plugin_info info;
    BURN_INIT(&info, burn_plugin_info);
    fill(&info, p);
    if (p->state == BURNI_PLUGIN_OPEN) {
        count_devices(&info);
    }
    uint32_t size = out->struct_size;
    memset(out, 0, size);
    memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
    out->struct_size = size;
    return BURN_OK;
}

const char *burn_plugins_searched(uint32_t i)
{
    const char *folder = burni_loader_searched(i);
    return folder != NULL && folder[0] != '\0' ? folder : NULL;
}

int32_t burn_plugins_device(const char *id, uint32_t ordinal, burn_device_info *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (id == NULL) {
        return burni_fail(err, BURN_E_INVALID, "plugins: the id is NULL");
    }
    if (burni_check_output("plugins", out, sizeof(out->struct_size), err) != BURN_OK) {
        return err->code;
    }
    burn_device_info info;
    BURN_INIT(&info, burn_device_info);
    int32_t rc = burni_loader_device_info(id, ordinal, &info, err);
    if (rc == BURN_OK) {
        uint32_t size = out->struct_size;
        memset(out, 0, size);
        memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
        out->struct_size = size;
    }
    return rc;
}

int32_t burn_device_resolve(const char *string, burn_device_choice *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (burni_check_output("resolve", out, sizeof(*out), err) != BURN_OK) {
        return err->code;
    }
    burni_device_choice choice;
    int32_t rc = burni_loader_resolve(string, &choice, err);
    if (rc == BURN_OK) {
        out->ordinal = choice.ordinal;
        out->autodiff = choice.autodiff;
        out->zero = 0;
        (void)snprintf(out->id, sizeof(out->id), "%s", choice.id);
        (void)snprintf(out->options, sizeof(out->options), "%s", choice.options);
        (void)snprintf(out->canonical, sizeof(out->canonical), "%s", choice.canonical);
        (void)snprintf(out->why, sizeof(out->why), "%s", choice.why);
    }
    return rc;
}

uint32_t burn_thread_budget(void)
{
    return burni_thread_budget();
}
