/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_plugins.c - `burn plugins` and `burn doctor`: what was found, how far each plugin got, and
 * what to do about those that cannot be used.
 *
 * Known, loadable and usable are three answers. `plugins` reads manifests only, unless it is asked
 * to open them; `doctor` opens all of them, and then computes something on the default device.
 */
#include "cli.h"

#include <burn/ops.h>
#include <burn/plugins.h>
#include <burn/version.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *state_name(int32_t state)
{
    static const char *const names[] = {"unknown", "known", "loadable", "usable", "broken",
                                        "disabled"};
    return state >= 0 && state <= BURN_PLUGIN_DISABLED ? names[state] : names[0];
}

static json_t *describe(const burn_plugin_info *p)
{
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "id", cli_json_text(p->id), "name",
                          cli_json_text(p->name), "kind", cli_json_text(p->kind), "version",
                          cli_json_text(p->version), "license", cli_json_text(p->license), "state",
                          state_name(p->state));
    (void)json_object_set_new(o, "manifest", cli_json_text(p->manifest));
    (void)json_object_set_new(o, "path", cli_json_text(p->library));
    (void)json_object_set_new(o, "priority", json_integer(p->priority));
    (void)json_object_set_new(o, "devices", json_integer(p->n_devices));
    (void)json_object_set_new(o, "open_ms", json_real(p->open_ms));
    (void)json_object_set_new(o, "reason", cli_json_text(p->reason));
    (void)json_object_set_new(o, "remedy", cli_json_text(p->remedy));
    return o;
}

static void print(const burn_plugin_info *p)
{
    char text[sizeof(p->reason)];
    printf("%-10s  %-8s  %-9s  %-8s", p->id, state_name(p->state), p->kind,
           cli_clean(text, sizeof(text), p->version));
    if (p->open_ms > 0) {
        printf("  opened in %.1f ms", p->open_ms);
    }
    printf("\n            %s\n",
           cli_clean(text, sizeof(text), p->library[0] != '\0' ? p->library : p->manifest));
    if (p->reason[0] != '\0') {
        printf("            why: %s\n", cli_clean(text, sizeof(text), p->reason));
    }
    if (p->remedy[0] != '\0') {
        printf("            remedy: %s\n", cli_clean(text, sizeof(text), p->remedy));
    }
}

uint32_t cli_list_plugins(json_t *json, int open)
{
    uint32_t usable = 0;
    burn_plugin_info p;
    BURN_INIT(&p, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, open, &p, NULL) == BURN_OK; i++) {
        usable += p.state == BURN_PLUGIN_USABLE;
        if (json != NULL) {
            (void)json_array_append_new(json, describe(&p));
        } else {
            print(&p);
        }
    }
    return usable;
}

void cli_list_folders(json_t *json)
{
    char text[512];
    const char *folder = NULL;
    for (uint32_t i = 0; (folder = burn_plugins_searched(i)) != NULL; i++) {
        if (json != NULL) {
            (void)json_array_append_new(json, cli_json_text(folder));
        } else {
            printf("%s%s\n", i == 0 ? "searched:   " : "            ",
                   cli_clean(text, sizeof(text), folder));
        }
    }
}

static json_t *plugins_json(int open, uint32_t *usable)
{
    json_t *plugins = json_array();
    json_t *folders = json_array();
    *usable = cli_list_plugins(plugins, open);
    cli_list_folders(folders);
    return json_pack("{s:o, s:o}", "plugins", plugins, "searched", folders);
}

int cli_plugins(cli *c)
{
    int open = 0;
    uint32_t usable = 0;
    const cli_option options[] = {{"--open", NULL, &open, 0}};
    int status = cli_parse(c, options, 1, NULL);
    if (status >= 0) {
        return status;
    }
    status = burn_plugins_count() > 0 ? CLI_FINE : CLI_WRONG;
    if (c->json) {
        return cli_print_json(plugins_json(open, &usable), status);
    }
    if (status != CLI_FINE) {
        printf("no plugin was found; set BURN_PLUGIN_PATH to the folder of one\n");
    }
    (void)cli_list_plugins(NULL, open);
    cli_list_folders(NULL);
    return status;
}

/* ---- doctor ---------------------------------------------------------------------------------- */

static double now_ms(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Opens the default device and adds two numbers there. */
static int32_t try_device(double *out_ms, burn_err *err)
{
    const float values[2] = {1.0f, 2.5f};
    const int64_t dims[1] = {2};
    float sums[2] = {0.0f, 0.0f};
    double start = now_ms();
    burn_device *device = burn_device_open(NULL, err);
    if (device == NULL) {
        return err->code;
    }
    burn_scope_begin();
    burn_tensor *x = burn_tensor_from_data(device, BURN_F32, 1, dims, values);
    int32_t rc = burn_read(burn_add(x, x), sums, sizeof(sums), err);
    burn_scope_end();
    *out_ms = now_ms() - start;
    if (rc == BURN_OK && (sums[0] != 2.0f || sums[1] != 5.0f)) {
        (void)snprintf(err->text, sizeof(err->text), "it adds wrongly: 1 + 1 = %g, 2.5 + 2.5 = %g",
                       (double)sums[0], (double)sums[1]);
        err->code = BURN_E_INTERNAL;
        rc = err->code;
    }
    return rc;
}

static int doctor_json(int32_t rc, double ms, const burn_err *err)
{
    uint32_t usable = 0;
    char abi[16];
    (void)snprintf(abi, sizeof(abi), "%d.%d", BURN_ABI_MAJOR, BURN_ABI_MINOR);
    json_t *object = plugins_json(1, &usable);
    json_t *devices = json_array();
    (void)json_object_set_new(object, "version", cli_json_text(burn_version()));
    (void)json_object_set_new(object, "abi", cli_json_text(abi));
    (void)json_object_set_new(object, "threads", json_integer(burn_thread_budget()));
    (void)cli_list_devices(devices);
    (void)json_object_set_new(object, "devices", devices);
    (void)cli_default_device(object);
    json_t *check = rc == BURN_OK ? json_pack("{s:b, s:f}", "ok", 1, "ms", ms)
                                  : json_pack("{s:b, s:o}", "ok", 0, "error", cli_json_error(err));
    (void)json_object_set_new(object, "check", check);
    return cli_print_json(object, rc == BURN_OK ? CLI_FINE : CLI_WRONG);
}

int cli_doctor(cli *c)
{
    burn_err err = BURN_ERR_INIT;
    double ms = 0;
    int status = cli_parse(c, NULL, 0, NULL);
    if (status >= 0) {
        return status;
    }
    int32_t rc = try_device(&ms, &err);
    if (c->json) {
        return doctor_json(rc, ms, &err);
    }
    printf("burn %s, plugin ABI %d.%d, %u threads\n\nplugins\n", burn_version(), BURN_ABI_MAJOR,
           BURN_ABI_MINOR, burn_thread_budget());
    uint32_t usable = cli_list_plugins(NULL, 1);
    cli_list_folders(NULL);
    printf("%u of %u plugins usable\n\ndevices\n", usable, burn_plugins_count());
    (void)cli_list_devices(NULL);
    (void)cli_default_device(NULL);
    char text[sizeof(err.text)];
    if (rc == BURN_OK) {
        printf("\nThe default device opens and computes (%.1f ms). All is well.\n", ms);
    } else {
        printf("\nThe default device cannot be used: %s\n",
               cli_clean(text, sizeof(text), err.text));
    }
    return rc == BURN_OK ? CLI_FINE : CLI_WRONG;
}
