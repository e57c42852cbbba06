/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_env.c - `burn env`: lists, shows, fills, ships and removes tuning environments.
 *
 * `prepare` names the environment to a program (BURN_ENVIRONMENT) or runs products and convolutions
 * of given sizes in this process (env_sizes.c); either way the library measures and saves. To add
 * an action: a row of `actions` and its function. Words are read here, since one may have two.
 */
#include "env_sizes.h"
#include "program.h"

#include <burn/environment.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands behind the action's name. */
typedef struct words {
    const char *name;
    const char *file;
    char **program;
    env_sizes sizes;
} words;

/* A failure about an environment, with what to do about it. */
static int fail_named(const cli *c, const burn_err *err, const char *name)
{
    burn_err more = BURN_ERR_INIT;
    more.code = err->code;
    int is_name = strchr(name, '/') == NULL;
    if (err->code == BURN_E_NOT_FOUND && is_name) {
        (void)snprintf(more.text, sizeof(more.text),
                       "there is no environment '%.64s'; `burn env list` shows the others "
                       "(%.90s)",
                       name, err->text);
        return cli_fail(c, &more);
    }
    if (err->code == BURN_E_FORMAT && is_name && strstr(err->text, "burn env clear") == NULL) {
        (void)snprintf(more.text, sizeof(more.text),
                       "%.120s; remove it with `burn env clear %.64s`", err->text, name);
        return cli_fail(c, &more);
    }
    return cli_fail(c, err);
}

/* ---- list ------------------------------------------------------------------------------------ */

static json_t *info_json(const burn_environment_info *e)
{
    return json_pack("{s:o, s:o, s:i, s:i, s:i, s:I, s:i, s:o}", "name", cli_json_text(e->name),
                     "path", cli_json_text(e->path), "devices", (int)e->n_devices, "choices",
                     (int)e->n_choices, "plans", (int)e->n_plans, "bytes", (json_int_t)e->bytes,
                     "code", (int)e->code, "problem", cli_json_text(e->problem));
}

static void print_info(const burn_environment_info *e)
{
    char text[sizeof(e->path)];
    char bytes[32];
    if (e->code != BURN_OK) {
        printf("%-20s  cannot be used: %s\n", e->name, cli_clean(text, sizeof(text), e->problem));
        return;
    }
    printf("%-20s  %6u choice%-1s  %4u plan%-1s  %2u device%-1s  %s\n", e->name, e->n_choices,
           cli_s(e->n_choices), e->n_plans, cli_s(e->n_plans), e->n_devices, cli_s(e->n_devices),
           cli_bytes(bytes, sizeof(bytes), e->bytes));
}

static int list(cli *c, const words *w)
{
    (void)w;
    burn_environment_info info;
    burn_err err = BURN_ERR_INIT;
    json_t *array = c->json ? json_array() : NULL;
    uint32_t n = 0;
    for (;; n++) {
        BURN_INIT(&info, burn_environment_info);
        if (burn_environment_list(n, &info, &err) != BURN_OK) {
            break;
        }
        if (c->json) {
            (void)json_array_append_new(array, info_json(&info));
        } else {
            print_info(&info);
        }
    }
    if (err.code != BURN_E_NOT_FOUND) {
        json_decref(array);
        return cli_fail(c, &err);
    }
    if (c->json) {
        return cli_print_json(json_pack("{s:o}", "environments", array), CLI_FINE);
    }
    if (n == 0) {
        printf("there are none; BURN_ENVIRONMENT=NAME before a program makes one\n");
    }
    return CLI_FINE;
}

/* ---- show ------------------------------------------------------------------------------------ */

static json_t *choice_json(const burn_environment_choice_info *x)
{
    return json_pack("{s:o, s:o, s:i, s:f, s:o, s:f, s:i, s:b}", "call", cli_json_text(x->call),
                     "row", cli_json_text(x->row), "revision", (int)x->revision, "seconds",
                     x->seconds, "rival", cli_json_text(x->rival), "rival_seconds",
                     x->rival_seconds, "candidates", (int)x->n_candidates, "at_roof",
                     (int)x->at_roof);
}

static void print_choice(const burn_environment_choice_info *x)
{
    char text[sizeof(x->call)];
    printf("  %10.1f us  %s\n", x->seconds * 1e6, cli_clean(text, sizeof(text), x->call));
    printf("                 %s", cli_clean(text, sizeof(text), x->row));
    if (x->rival[0] != '\0' && x->seconds > 0.0) {
        printf(", %.2fx of %s", x->rival_seconds / x->seconds,
               cli_clean(text, sizeof(text), x->rival));
    }
    printf("%s\n", x->at_roof ? ", nothing better is possible" : "");
}

static json_t *device_json(const burn_environment_device_info *d, json_t *choices)
{
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:I, s:i}", "backend", cli_json_text(d->backend),
        "hardware", cli_json_text(d->hardware), "isa", cli_json_text(d->isa), "driver",
        cli_json_text(d->driver), "version", cli_json_text(d->version), "units", (int)d->units,
        "plans", (int)d->n_plans, "plan_bytes", (json_int_t)d->plan_bytes, "plans_refused",
        (int)d->n_refused);
    (void)json_object_set_new(o, "bytes_per_second", json_real(d->bytes_per_second));
    (void)json_object_set_new(o, "flops_f32", json_real(d->flops_f32));
    (void)json_object_set_new(o, "flops_f64", json_real(d->flops_f64));
    (void)json_object_set_new(o, "choices", choices);
    return o;
}

static void print_seen(const char *what, double per_second, const char *unit)
{
    if (per_second > 0.0) {
        printf("%s %.1f %s", what, per_second * 1e-9, unit);
    } else {
        printf("%s not measured", what);
    }
}

static void print_device(const burn_environment_device_info *d)
{
    char hardware[sizeof(d->hardware)];
    char isa[sizeof(d->isa)];
    char version[sizeof(d->version)];
    char bytes[32];
    printf("%s %s on %s, %s, %u unit%s\n", d->backend,
           cli_clean(version, sizeof(version), d->version),
           cli_clean(hardware, sizeof(hardware), d->hardware), cli_clean(isa, sizeof(isa), d->isa),
           d->units, cli_s(d->units));
    if (d->flops_f32 + d->flops_f64 + d->bytes_per_second > 0.0) {
        printf("  seen to reach:");
        print_seen(" f32", d->flops_f32, "GFLOP/s");
        print_seen(", f64", d->flops_f64, "GFLOP/s");
        print_seen(", copies", d->bytes_per_second, "GB/s");
        printf("\n");
    }
    if (d->n_plans > 0) {
        printf("  %u plan%s of calls that wait (%s)", d->n_plans, cli_s(d->n_plans),
               cli_bytes(bytes, sizeof(bytes), d->plan_bytes));
        if (d->n_refused > 0) {
            printf(", %u did not fit and %s made anew", d->n_refused,
                   d->n_refused == 1 ? "was" : "were");
        }
        printf("\n");
    }
}

static void show_device(const burn_environment *env, uint32_t i, json_t *devices)
{
    burn_environment_device_info d;
    burn_environment_choice_info x;
    BURN_INIT(&d, burn_environment_device_info);
    if (burn_environment_device(env, i, &d, NULL) != BURN_OK) {
        return;
    }
    json_t *choices = devices != NULL ? json_array() : NULL;
    if (devices == NULL) {
        print_device(&d);
    }
    for (uint32_t k = 0; k < d.n_choices; k++) {
        BURN_INIT(&x, burn_environment_choice_info);
        if (burn_environment_choice(env, i, k, &x, NULL) != BURN_OK) {
            continue;
        }
        if (devices == NULL) {
            print_choice(&x);
        } else {
            (void)json_array_append_new(choices, choice_json(&x));
        }
    }
    if (devices != NULL) {
        (void)json_array_append_new(devices, device_json(&d, choices));
    }
}

static int show(cli *c, const words *w)
{
    burn_err err = BURN_ERR_INIT;
    burn_environment_info info;
    BURN_INIT(&info, burn_environment_info);
    burn_environment *env = burn_environment_open(w->name, &err);
    if (env == NULL || burn_environment_describe(env, &info, &err) != BURN_OK) {
        burn_environment_close(env);
        return fail_named(c, &err, w->name);
    }
    json_t *devices = c->json ? json_array() : NULL;
    for (uint32_t i = 0; i < info.n_devices; i++) {
        show_device(env, i, devices);
    }
    burn_environment_close(env);
    if (c->json) {
        json_t *o = info_json(&info);
        (void)json_object_set_new(o, "devices", devices);
        return cli_print_json(o, CLI_FINE);
    }
    if (info.n_devices == 0) {
        printf("%s is empty\n", w->name);
    }
    return CLI_FINE;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static uint32_t count_entries(const char *name, uint32_t *plans)
{
    burn_environment_info info;
    BURN_INIT(&info, burn_environment_info);
    burn_environment *env = burn_environment_open(name, NULL);
    if (env != NULL) {
        (void)burn_environment_describe(env, &info, NULL);
    }
    burn_environment_close(env);
    *plans = info.n_plans;
    return info.n_choices;
}

static int prepare(cli *c, const words *w)
{
    if ((w->program == NULL) == (env_sizes_given(&w->sizes) == 0)) {
        return cli_usage(c, "prepare by what? Write a program behind --, or give sizes with "
                            "--matmul, --conv1d or --conv2d, not both");
    }
    /* A wrong name or a damaged file is told before a long program runs for nothing. */
    burn_err err = BURN_ERR_INIT;
    if (burn_environment_load(w->name, &err) != BURN_OK) {
        return cli_fail(c, &err);
    }
    uint32_t plans = 0;
    uint32_t plans_before = 0;
    uint32_t before = count_entries(w->name, &plans_before);
    int status = CLI_FINE;
    if (w->program != NULL) {
        int end = cli_program_run(c, w->program, "BURN_ENVIRONMENT", w->name);
        if (end == -1) {
            return cli_error(c, BURN_E_NO_MEMORY, "the program could not be started");
        }
        status = cli_program_status(end);
    } else {
        status = env_sizes_run(c, &w->sizes);
        if (status != CLI_FINE) {
            return status;
        }
    }
    uint32_t after = count_entries(w->name, &plans);
    if (c->json) {
        json_t *o = json_pack("{s:i, s:s, s:i, s:i, s:i, s:i}", "status", status, "name", w->name,
                              "choices_before", (int)before, "choices", (int)after,
                              "plans_before", (int)plans_before, "plans", (int)plans);
        return cli_print_json(o, status);
    }
    printf("%s: %u choice%s (%u before), %u plan%s (%u before)\n", w->name, after, cli_s(after),
           before, plans, cli_s(plans), plans_before);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int done(const cli *c, int32_t rc, const burn_err *err, const char *name)
{
    if (rc != BURN_OK) {
        return fail_named(c, err, name);
    }
    return c->json ? cli_print_json(json_pack("{s:s}", "name", name), CLI_FINE) : CLI_FINE;
}

static int export_file(cli *c, const words *w)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_environment_export(w->name, w->file, &err);
    return done(c, rc, &err, w->name);
}

static int import_file(cli *c, const words *w)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_environment_import(w->name, w->file, &err);
    /* What is not there or is damaged is the file: nothing is wrong with the environment. */
    return rc != BURN_OK ? cli_fail(c, &err) : done(c, rc, &err, w->name);
}

static int clear(cli *c, const words *w)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_environment_clear(w->name, &err);
    return done(c, rc, &err, w->name);
}

/* ---- actions --------------------------------------------------------------------------------- */

typedef struct action {
    const char *name;
    int (*run)(cli *c, const words *w);
    int n_words; /* that it needs */
} action;

static const action actions[] = {
    {"list", list, 0},           {"show", show, 1},
    {"prepare", prepare, 1},     {"export", export_file, 2},
    {"import", import_file, 2},  {"clear", clear, 1},
};

static const action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return &actions[i];
        }
    }
    return NULL;
}

/* Takes the next word that is no option. */
static const char *take_word(cli *c)
{
    if (c->argc == 0 || c->argv[0][0] == '-') {
        return NULL;
    }
    c->argc--;
    return *c->argv++;
}

int cli_env(cli *c)
{
    words w;
    memset(&w, 0, sizeof(w));
    const cli_option options[] = {
        {"--device", &w.sizes.device, NULL, 0}, {"--dtype", &w.sizes.dtype, NULL, 0},
        {"--matmul", &w.sizes.matmul, NULL, 0}, {"--conv1d", &w.sizes.conv1d, NULL, 0},
        {"--conv2d", &w.sizes.conv2d, NULL, 0},
    };
    w.program = cli_program(c);
    const char *name = take_word(c);
    const action *a = name != NULL ? find_action(name) : NULL;
    w.name = a != NULL ? take_word(c) : NULL;
    w.file = w.name != NULL ? take_word(c) : NULL;
    int status = cli_parse(c, options, sizeof(options) / sizeof(options[0]), NULL);
    if (status >= 0) {
        return status;
    }
    if (a == NULL) {
        return cli_usage(c, "%s%s%s there are list, show, prepare, export, import and clear",
                         name != NULL ? "there is no action '" : "which action?",
                         name != NULL ? name : "", name != NULL ? "';" : "");
    }
    int given = (w.name != NULL) + (w.file != NULL);
    if (given != a->n_words) {
        return cli_usage(c, "%s needs %s (given: %d word%s); `burn env list` shows the names",
                         a->name,
                         a->n_words == 0   ? "nothing more"
                         : a->n_words == 1 ? "the environment's name"
                                           : "the environment's name and a file",
                         given, cli_s((uint64_t)given));
    }
    return a->run(c, &w);
}
