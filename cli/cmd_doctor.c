/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_doctor.c - `burn doctor`: plugins, devices, variables, and whether the default device adds.
 *
 * Opens every plugin, so that what is broken shows here and not in a program; computes on the
 * default device only. Fine means that this one works. To tell of one more thing: a part in both
 * forms, text and JSON.
 */
#include "cli.h"

#include <burn/ops.h>
#include <burn/plugins.h>
#include <burn/version.h>
#include <stdio.h>
#include <time.h>

/* ---- the default device ---------------------------------------------------------------------- */

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

/* ---- environment ----------------------------------------------------------------------------- */

static void print_variable(const burn_variable_info *v)
{
    char text[160];
    printf("%s=%s", v->name, cli_clean(text, sizeof(text), v->value));
    if (v->known == BURN_VARIABLE_PLUGIN) {
        printf("  (an option of %s)", v->owner);
    } else if (v->known == 0) {
        printf("  nobody reads it%s%s%s", v->hint[0] != '\0' ? "; did you mean " : "", v->hint,
               v->hint[0] != '\0' ? "?" : "");
    }
    printf("\n");
    if (v->problem[0] != '\0') {
        printf("            wrong: %s\n", cli_clean(text, sizeof(text), v->problem));
    }
}

static json_t *variable_json(const burn_variable_info *v)
{
    static const char *const readers[] = {"nobody", "library", "plugin"};
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "name", cli_json_text(v->name), "value",
                     cli_json_text(v->value), "read_by", readers[v->known], "plugin",
                     cli_json_text(v->owner), "hint", cli_json_text(v->hint), "problem",
                     cli_json_text(v->problem));
}

/* How many of them are wrong. */
static uint32_t list_environment(json_t *json)
{
    burn_variable_info v;
    BURN_INIT(&v, burn_variable_info);
    uint32_t wrong = 0;
    uint32_t i = 0;
    for (; burn_environment_at(i, &v, NULL) == BURN_OK; i++) {
        wrong += v.problem[0] != '\0';
        if (json != NULL) {
            (void)json_array_append_new(json, variable_json(&v));
        } else {
            print_variable(&v);
        }
    }
    if (i == 0 && json == NULL) {
        printf("no BURN_* variable is set\n");
    }
    return wrong;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* What stands for devices and their trial where opening a plugin would end this process. */
static int32_t refuse_trial(uint32_t crashed, burn_err *err)
{
    err->code = BURN_E_ABI;
    (void)snprintf(err->text, sizeof(err->text),
                   "%u plugin%s end%s a program that opens plugins; devices are tried when they "
                   "are mended or gone",
                   crashed, cli_s(crashed), crashed == 1 ? "s" : "");
    return err->code;
}

static int doctor_json(void)
{
    uint32_t crashed = 0;
    double ms = 0;
    burn_err err = BURN_ERR_INIT;
    char abi[16];
    (void)snprintf(abi, sizeof(abi), "%d.%d", BURN_ABI_MAJOR, BURN_ABI_MINOR);
    json_t *object = cli_plugins_json(1, &crashed);
    int32_t rc = crashed > 0 ? refuse_trial(crashed, &err) : try_device(&ms, &err);
    json_t *devices = json_array();
    (void)json_object_set_new(object, "version", cli_json_text(burn_version()));
    (void)json_object_set_new(object, "abi", cli_json_text(abi));
    (void)json_object_set_new(object, "threads", json_integer(burn_thread_budget()));
    if (crashed == 0) {
        (void)cli_list_devices(devices);
        (void)cli_default_device(object);
    } else {
        (void)json_object_set_new(object, "default", json_pack("{s:o}", "error",
                                                               cli_json_error(&err)));
    }
    (void)json_object_set_new(object, "devices", devices);
    json_t *environment = json_array();
    (void)list_environment(environment);
    (void)json_object_set_new(object, "environment", environment);
    json_t *check = rc == BURN_OK ? json_pack("{s:b, s:f}", "ok", 1, "ms", ms)
                                  : json_pack("{s:b, s:o}", "ok", 0, "error", cli_json_error(&err));
    (void)json_object_set_new(object, "check", check);
    return cli_print_json(object, rc == BURN_OK ? CLI_FINE : CLI_WRONG);
}

int cli_doctor(cli *c)
{
    burn_err err = BURN_ERR_INIT;
    double ms = 0;
    uint32_t crashed = 0;
    int status = cli_parse(c, NULL, 0, NULL);
    if (status >= 0) {
        return status;
    }
    if (c->json) {
        return doctor_json();
    }
    printf("burn %s, plugin ABI %d.%d, %u thread%s\n\nplugins\n", burn_version(), BURN_ABI_MAJOR,
           BURN_ABI_MINOR, burn_thread_budget(), cli_s(burn_thread_budget()));
    uint32_t usable = cli_list_plugins(NULL, 1, &crashed);
    cli_list_folders(NULL);
    printf("%u of %u plugin%s usable\n", usable, burn_plugins_count(),
           cli_s(burn_plugins_count()));
    int32_t rc = crashed > 0 ? refuse_trial(crashed, &err) : try_device(&ms, &err);
    if (crashed == 0) {
        printf("\ndevices\n");
        (void)cli_list_devices(NULL);
        (void)cli_default_device(NULL);
    }
    printf("\nenvironment\n");
    uint32_t wrong = list_environment(NULL);
    char text[sizeof(err.text)];
    if (rc == BURN_OK) {
        printf("\nThe default device opens and computes (%.1f ms). %s\n", ms,
               wrong == 0 ? "All is well." : "Not all is well: see `wrong` above.");
    } else if (crashed > 0) {
        printf("\nNot all is well: %s\n", err.text);
    } else {
        printf("\nThe default device cannot be used: %s\n",
               cli_clean(text, sizeof(text), err.text));
    }
    return rc == BURN_OK ? CLI_FINE : CLI_WRONG;
}
