/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_ops.c - `burn ops`: the op definitions, and how a device serves each of them per dtype.
 *
 * Everything is read from the registry, so a new op or kernel shows here by itself.
 */
#include "ops.h"

#include <burn/registry.h>
#include <stdio.h>
#include <string.h>

typedef struct dtype_row {
    uint8_t dtype;
    const char *name;
} dtype_row;

static const dtype_row dtypes[] = {
#define DTYPE_ROW(code, NAME, name, bytes, klass) {BURN_##NAME, #name},
    BURN_FOREACH_DTYPE(DTYPE_ROW)
#undef DTYPE_ROW
};

enum { N_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

/* By BURN_SUPPORT_*; the last is for dtypes that the op does not take. */
static const char *const support_names[] = {"unsupported", "decomposed", "native", "view",
                                            "not taken"};
static const char support_letters[] = "-dnv.";
enum { NOT_TAKEN = 4 };

/* Does some input take the dtype, or an output where there are no inputs? */
static int takes(const burn_op_def *def, uint8_t dtype)
{
    uint32_t first = def->n_in > 0 ? 0 : def->n_in;
    uint32_t n = def->n_in > 0 ? def->n_in : def->n_out;
    for (uint32_t i = 0; i < n; i++) {
        if ((cli_role_at(def, first + i)->dtypes[0] >> dtype & 1) != 0) {
            return 1;
        }
    }
    return 0;
}

static int support(burn_device *device, const burn_op_def *def, uint8_t dtype)
{
    if (!takes(def, dtype)) {
        return NOT_TAKEN;
    }
    int32_t s = burn_op_support(device, def->id, dtype);
    return s >= 0 && s < NOT_TAKEN ? s : BURN_SUPPORT_NONE;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static json_t *support_json(burn_device *device, const burn_op_def *def, uint8_t only)
{
    json_t *object = json_object();
    for (size_t i = 0; i < N_DTYPES; i++) {
        int s = support(device, def, dtypes[i].dtype);
        if (s != NOT_TAKEN && (only == BURN_DTYPE_NONE || dtypes[i].dtype == only)) {
            (void)json_object_set_new(object, dtypes[i].name, json_string(support_names[s]));
        }
    }
    return object;
}

static int matrix_json(burn_device *device, uint8_t only)
{
    json_t *ops = json_array();
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        (void)json_array_append_new(
            ops, json_pack("{s:s, s:o, s:o}", "name", def->name, "summary",
                           cli_json_text(def->summary != NULL ? def->summary : ""), "support",
                           support_json(device, def, only)));
    }
    return cli_print_json(
        json_pack("{s:s, s:o}", "device", burn_device_name(device), "ops", ops), CLI_FINE);
}

static int matrix_text(burn_device *device, uint8_t only)
{
    uint32_t counts[NOT_TAKEN + 1] = {0};
    printf("%s; n native, d decomposed, v view, - unsupported, . dtype not taken\n\n%-28s",
           burn_device_name(device), "");
    for (size_t k = 0; k < N_DTYPES; k++) {
        if (only == BURN_DTYPE_NONE || dtypes[k].dtype == only) {
            printf(" %4s", dtypes[k].name);
        }
    }
    printf("\n");
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        printf("%-28s", def->name);
        for (size_t k = 0; k < N_DTYPES; k++) {
            if (only != BURN_DTYPE_NONE && dtypes[k].dtype != only) {
                continue;
            }
            int s = support(device, def, dtypes[k].dtype);
            counts[s]++;
            printf(" %4c", support_letters[s]);
        }
        printf("\n");
    }
    printf("\n%u ops; of the pairs of op and dtype %u native, %u decomposed, %u views, %u "
           "unsupported\n",
           burn_op_count(), counts[BURN_SUPPORT_NATIVE], counts[BURN_SUPPORT_DECOMPOSED],
           counts[BURN_SUPPORT_VIEW], counts[BURN_SUPPORT_NONE]);
    return CLI_FINE;
}

/* ---- one op ---------------------------------------------------------------------------------- */

static json_t *role_json(const burn_role *role)
{
    json_t *list = json_array();
    for (size_t k = 0; k < N_DTYPES; k++) {
        if ((role->dtypes[0] >> dtypes[k].dtype & 1) != 0) {
            (void)json_array_append_new(list, json_string(dtypes[k].name));
        }
    }
    return json_pack("{s:s, s:b, s:b, s:o}", "name", role->name, "optional",
                     (role->flags & BURN_ROLE_OPTIONAL) != 0, "variadic",
                     (role->flags & BURN_ROLE_VARIADIC) != 0, "dtypes", list);
}

static int one_json(burn_device *device, const burn_op_def *def, uint8_t only)
{
    json_t *in = json_array();
    json_t *out = json_array();
    json_t *attrs = json_array();
    json_t *rows = json_array();
    for (uint32_t i = 0; i < (uint32_t)def->n_in + def->n_out; i++) {
        (void)json_array_append_new(i < def->n_in ? in : out, role_json(cli_role_at(def, i)));
    }
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const burn_attr *one = cli_attr_at(def, i);
        (void)json_array_append_new(attrs, json_pack("{s:s, s:s}", "name", one->name, "doc",
                                                     one->doc != NULL ? one->doc : ""));
    }
    const char *row = NULL;
    for (uint32_t i = 0; (row = burn_op_row(device, def->id, i)) != NULL; i++) {
        (void)json_array_append_new(rows, cli_json_text(row));
    }
    const char *summary = def->summary != NULL ? def->summary : "";
    return cli_print_json(json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "device",
                                    burn_device_name(device), "name", def->name, "summary", summary,
                                    "inputs", in, "outputs", out, "attributes", attrs, "support",
                                    support_json(device, def, only), "kernels", rows),
                          CLI_FINE);
}

static void print_role(const char *what, const burn_role *role)
{
    printf("  %-9s  %-12s", what, role->name);
    for (size_t k = 0; k < N_DTYPES; k++) {
        if ((role->dtypes[0] >> dtypes[k].dtype & 1) != 0) {
            printf(" %s", dtypes[k].name);
        }
    }
    printf("%s%s\n", (role->flags & BURN_ROLE_OPTIONAL) != 0 ? " (optional)" : "",
           (role->flags & BURN_ROLE_VARIADIC) != 0 ? " (one or more)" : "");
}

static int one_text(burn_device *device, const burn_op_def *def)
{
    printf("%s: %s\n", def->name, def->summary != NULL ? def->summary : "");
    for (uint32_t i = 0; i < (uint32_t)def->n_in + def->n_out; i++) {
        print_role(i < def->n_in ? "input" : "output", cli_role_at(def, i));
    }
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const burn_attr *a = cli_attr_at(def, i);
        printf("  %-9s  %-12s %s\n", "attribute", a->name, a->doc != NULL ? a->doc : "");
    }
    printf("on %s:\n", burn_device_name(device));
    for (size_t k = 0; k < N_DTYPES; k++) {
        int s = support(device, def, dtypes[k].dtype);
        if (s != NOT_TAKEN) {
            printf("  %-9s  %s\n", dtypes[k].name, support_names[s]);
        }
    }
    const char *row = NULL;
    for (uint32_t i = 0; (row = burn_op_row(device, def->id, i)) != NULL; i++) {
        printf("  %-9s  %s\n", "kernel", row);
    }
    return CLI_FINE;
}

int cli_ops(cli *c)
{
    const char *name = NULL;
    const char *string = NULL;
    const char *dtype = NULL;
    const char *extension = NULL;
    int page = 0;
    const cli_option options[] = {{"--device", &string, NULL, 0},
                                  {"--dtype", &dtype, NULL, 0},
                                  {"--extension", &extension, NULL, 0},
                                  {"--markdown", NULL, &page, 0}};
    int status = cli_parse(c, options, 4, &name);
    if (status >= 0) {
        return status;
    }
    uint8_t only = dtype != NULL ? burn_dtype_from_name(dtype) : BURN_DTYPE_NONE;
    if (dtype != NULL && only == BURN_DTYPE_NONE) {
        return cli_usage(c, "--dtype: there is no dtype '%s'; f32 is one", dtype);
    }
    burn_err err = BURN_ERR_INIT;
    if (extension != NULL && burn_extension_load(extension, &err) != BURN_OK) {
        return cli_fail(c, &err);
    }
    if (page && (name != NULL || string != NULL || dtype != NULL || c->json)) {
        return cli_usage(c, "--markdown: the page has all ops, and knows of no device");
    }
    if (page) {
        return cli_ops_page();
    }
    const burn_op_def *def = name != NULL ? burn_op_find(name) : NULL;
    if (name != NULL && def == NULL) {
        cli_nearest nearest = {name, NULL, 0};
        for (uint32_t i = 0; i < burn_op_count(); i++) {
            cli_nearest_try(&nearest, burn_op_at(i)->name);
        }
        return cli_error(c, BURN_E_NOT_FOUND, "there is no op '%s'; %s%s%s`burn ops` lists them%s",
                         name, nearest.best != NULL ? "did you mean '" : "",
                         nearest.best != NULL ? nearest.best : "",
                         nearest.best != NULL ? "'? " : "",
                         extension == NULL && strchr(name, '.') != NULL
                             ? ", those of an extension with --extension ID"
                             : "");
    }
    burn_device *device = burn_device_open(string, &err);
    if (device == NULL) {
        return cli_fail(c, &err);
    }
    if (def != NULL) {
        return c->json ? one_json(device, def, only) : one_text(device, def);
    }
    return c->json ? matrix_json(device, only) : matrix_text(device, only);
}
