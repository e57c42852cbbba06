/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_devices.c - `burn devices`: what this machine has, and what a device string picks.
 *
 * Opens plugins, never a device: on a machine with many of them this stays quick and takes no
 * memory there. A device that cannot be described is listed with its reason; one that another
 * backend has as well (told by bus address or stable id) names the first of them.
 */
#include "cli.h"

#include <burn/plugins.h>
#include <stdio.h>
#include <string.h>

const char *cli_device_kind(uint32_t kind)
{
    static const char *const names[] = {"unknown", "cpu", "integrated", "discrete", "virtual",
                                        "remote"};
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static int is_same(const char *a, const char *b)
{
    return a[0] != '\0' && strcmp(a, b) == 0;
}

/* The device of an earlier backend that is this one, "" when there is none. */
static void find_twin(const char *backend, const burn_device_info *info, char *out, size_t size)
{
    burn_plugin_info p;
    BURN_INIT(&p, burn_plugin_info);
    out[0] = '\0';
    for (uint32_t i = 0; burn_plugins_at(i, 1, &p, NULL) == BURN_OK; i++) {
        if (strcmp(p.id, backend) == 0) {
            return;
        }
        for (uint32_t d = 0; d < p.n_devices; d++) {
            burn_device_info other;
            BURN_INIT(&other, burn_device_info);
            if (burn_plugins_device(p.id, d, &other, NULL) == BURN_OK &&
                (is_same(info->pci, other.pci) || is_same(info->uuid, other.uuid))) {
                (void)snprintf(out, size, "%s:%u", p.id, d);
                return;
            }
        }
    }
}

static json_t *describe(const char *device, const char *backend, uint32_t ordinal,
                        const burn_device_info *info)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:i}", "device", device,
                     "backend", backend, "ordinal", (int)ordinal, "kind",
                     cli_device_kind(info->kind), "name", cli_json_text(info->name), "isa",
                     cli_json_text(info->isa), "driver", cli_json_text(info->driver), "uuid",
                     cli_json_text(info->uuid), "pci", cli_json_text(info->pci), "memory",
                     (json_int_t)info->memory, "units", (int)info->units);
}

static void print(const char *device, const burn_device_info *info, const char *twin)
{
    char name[96];
    char isa[96];
    char driver[64];
    char memory[32];
    printf("%-10s  %-10s  %s", device, cli_device_kind(info->kind),
           cli_clean(name, sizeof(name), info->name));
    if (info->isa[0] != '\0') {
        printf(", %s", cli_clean(isa, sizeof(isa), info->isa));
    }
    if (info->units > 0) {
        printf(", %u unit%s", info->units, info->units == 1 ? "" : "s");
    }
    if (info->memory > 0) {
        printf(", %s", cli_bytes(memory, sizeof(memory), info->memory));
    }
    if (info->driver[0] != '\0') {
        printf(", driver %s", cli_clean(driver, sizeof(driver), info->driver));
    }
    printf("%s%s\n", twin[0] != '\0' ? ", the same as " : "", twin);
}

/* One device; 1 when it could be described. */
static int list_one(json_t *json, const char *backend, uint32_t ordinal)
{
    char device[96];
    char twin[96] = "";
    burn_err why = BURN_ERR_INIT;
    burn_device_info info;
    BURN_INIT(&info, burn_device_info);
    (void)snprintf(device, sizeof(device), "%s:%u", backend, ordinal);
    int usable = burn_plugins_device(backend, ordinal, &info, &why) == BURN_OK;
    if (usable) {
        find_twin(backend, &info, twin, sizeof(twin));
    }
    if (json != NULL) {
        json_t *entry = usable ? describe(device, backend, ordinal, &info)
                               : json_pack("{s:s, s:s, s:o}", "device", device, "backend", backend,
                                           "error", cli_json_error(&why));
        if (twin[0] != '\0') {
            (void)json_object_set_new(entry, "same_as", json_string(twin));
        }
        (void)json_array_append_new(json, entry);
    } else if (usable) {
        print(device, &info, twin);
    } else {
        char clean[sizeof(why.text)];
        printf("%-10s  not usable  %s\n", device, cli_clean(clean, sizeof(clean), why.text));
    }
    return usable;
}

uint32_t cli_list_devices(json_t *json)
{
    uint32_t n = 0;
    burn_plugin_info p;
    BURN_INIT(&p, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, 1, &p, NULL) == BURN_OK; i++) {
        for (uint32_t d = 0; d < p.n_devices; d++) {
            n += (uint32_t)list_one(json, p.id, d);
        }
    }
    return n;
}

int cli_default_device(json_t *json)
{
    burn_err why = BURN_ERR_INIT;
    burn_device_choice choice;
    BURN_INIT(&choice, burn_device_choice);
    int found = burn_device_resolve(NULL, &choice, &why) == BURN_OK;
    if (json != NULL) {
        json_t *entry = found ? json_pack("{s:s, s:o}", "device", choice.canonical, "why",
                                          cli_json_text(choice.why))
                              : json_pack("{s:o}", "error", cli_json_error(&why));
        (void)json_object_set_new(json, "default", entry);
    } else {
        char clean[sizeof(why.text)];
        const char *note = cli_clean(clean, sizeof(clean), found ? choice.why : why.text);
        printf("default: %s%s%s%s\n", found ? choice.canonical : "none",
               note[0] != '\0' ? " (" : "", note, note[0] != '\0' ? ")" : "");
    }
    return found;
}

static int resolve(const cli *c, const char *string)
{
    burn_err err = BURN_ERR_INIT;
    burn_device_choice choice;
    BURN_INIT(&choice, burn_device_choice);
    if (burn_device_resolve(string, &choice, &err) != BURN_OK) {
        return cli_fail(c, &err);
    }
    if (c->json) {
        return cli_print_json(
            json_pack("{s:s, s:s, s:i, s:b, s:o, s:o}", "device", choice.canonical, "backend",
                      choice.id, "ordinal", (int)choice.ordinal, "autodiff", (int)choice.autodiff,
                      "options", cli_json_text(choice.options), "why", cli_json_text(choice.why)),
            CLI_FINE);
    }
    char why[sizeof(choice.why)];
    printf("%s%s%s%s%s%s%s\n", choice.canonical, choice.options[0] != '\0' ? "?" : "",
           choice.options, choice.autodiff ? "+autodiff" : "", choice.why[0] != '\0' ? " (" : "",
           cli_clean(why, sizeof(why), choice.why), choice.why[0] != '\0' ? ")" : "");
    return CLI_FINE;
}

int cli_devices(cli *c)
{
    const char *string = NULL;
    int wants_resolve = 0;
    const cli_option options[] = {{"--resolve", &string, &wants_resolve, 1}};
    int status = cli_parse(c, options, 1, NULL);
    if (status >= 0) {
        return status;
    }
    if (wants_resolve) {
        return resolve(c, string);
    }
    if (c->json) {
        json_t *list = json_array();
        json_t *object = json_object();
        (void)cli_default_device(object);
        uint32_t n = cli_list_devices(list);
        (void)json_object_set_new(object, "devices", list);
        return cli_print_json(object, n > 0 ? CLI_FINE : CLI_WRONG);
    }
    uint32_t n = cli_list_devices(NULL);
    if (n == 0) {
        printf("no usable device; `burn doctor` says why\n");
    }
    (void)cli_default_device(NULL);
    return n > 0 ? CLI_FINE : CLI_WRONG;
}
