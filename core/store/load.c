/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * load.c - a model file into a module: all of it or nothing.
 *
 * Three steps. Names, shapes and dtypes are compared and every finding goes to the report; then
 * every tensor is read, so that a file which ends early or a disk that fails shows before anything
 * is overwritten; then the variables are assigned. The old values are held until the last
 * assignment succeeded and are put back when one fails. Ids of parameters are taken from the file
 * where it has them, and stay as they are where it has none. [any]
 */
#include "store/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/var.h"
#include "tune/environment.h"

#include <burn/plugin.h>
#include <burn/store.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct target {
    burn_var *var;
    const char *path;
    const burni_bpk_tensor *stored; /* NULL: keeps its value */
    burn_tensor *fresh;
    burn_tensor *old;
} target;

typedef struct loading {
    burn_module *module;
    burni_bpk_reader *reader;
    target *targets;
    uint32_t n;
    unsigned char *used; /* per tensor of the file */
    burn_load_report report;
    size_t text_used;
    char first[160]; /* the first finding, for the error */
} loading;

static void note(loading *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(loading *l, const char *format, ...)
{
    char line[224];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    if (l->first[0] == '\0') {
        (void)snprintf(l->first, sizeof(l->first), "%.*s", (int)sizeof(l->first) - 1, line);
    }
    /* Whole lines only: what no longer fits is counted, not named. */
    size_t size = strlen(line) + 1;
    if (size < sizeof(l->report.text) - l->text_used) {
        (void)snprintf(l->report.text + l->text_used, sizeof(l->report.text) - l->text_used,
                       "%s\n", line);
        l->text_used += size;
    }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int same_dims(const burn_tensor *t, const burni_bpk_tensor *stored)
{
    int same = burn_rank(t) == stored->rank;
    for (uint32_t d = 0; same && d < stored->rank; d++) {
        same = burn_dim(t, d) == stored->dims[d];
    }
    return same;
}

static void compare_one(loading *l, target *g)
{
    char want[96];
    char have[96];
    const burni_bpk_tensor *s = burni_bpk_tensor_find(l->reader, g->path);
    if (s == NULL) {
        l->report.missing++;
        note(l, "missing: %.120s is not in the file", g->path);
        return;
    }
    l->used[s - burni_bpk_tensor_at(l->reader, 0)] = 1;
    burn_scope_begin();
    const burn_tensor *t = burn_var_get(g->var);
    int64_t dims[BURN_MAX_RANK] = {0};
    for (uint32_t d = 0; d < burn_rank(t); d++) {
        dims[d] = burn_dim(t, d);
    }
    (void)burni_type_text(want, sizeof(want), burn_dtype_of(t), burn_rank(t), dims);
    (void)burni_type_text(have, sizeof(have), burni_stored_dtype(s), s->rank, s->dims);
    if (!same_dims(t, s)) {
        l->report.wrong_shape++;
        note(l, "wrong shape: %.80s is %s in the file, %s in the module", g->path, have, want);
    } else if (burni_stored_dtype(s) != burn_dtype_of(t)) {
        l->report.wrong_dtype++;
        note(l, "wrong dtype: %.80s is %s in the file, %s in the module", g->path,
             s->encoding == BURNI_BPK_QUANTIZED ? "quantized" : have, want);
    } else {
        g->stored = s;
    }
    burn_scope_end();
}

/* Two variables with one id would share the state of an optimizer. */
static int32_t check_ids(const loading *l, burn_err *err)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const burni_bpk_tensor *a = l->targets[i].stored;
        for (uint32_t j = i + 1; a != NULL && a->has_param_id && j < l->n; j++) {
            const burni_bpk_tensor *b = l->targets[j].stored;
            if (b != NULL && b->has_param_id && a->param_id == b->param_id) {
                return burni_fail(err, BURN_E_FORMAT, "%.64s and %.64s have one id, %llu", a->name,
                                  b->name, (unsigned long long)a->param_id);
            }
        }
    }
    return BURN_OK;
}

static int32_t verdict(const loading *l, uint32_t flags, burn_err *err)
{
    const burn_load_report *r = &l->report;
    int partial = (flags & BURN_LOAD_PARTIAL) != 0;
    int32_t code = r->wrong_shape > 0                              ? BURN_E_SHAPE
                   : r->wrong_dtype > 0                            ? BURN_E_DTYPE
                   : !partial && (r->missing > 0 || r->unused > 0) ? BURN_E_NOT_FOUND
                                                                   : BURN_OK;
    if (code == BURN_OK) {
        return check_ids(l, err);
    }
    return burni_fail(err, code,
                      "%u missing, %u unused, %u wrong shape, %u wrong dtype; nothing was changed; "
                      "%s", r->missing, r->unused, r->wrong_shape, r->wrong_dtype, l->first);
}

static int32_t compare(loading *l, uint32_t flags, burn_err *err)
{
    for (uint32_t i = 0; i < l->n; i++) {
        l->targets[i].var = burn_module_var_at(l->module, i, &l->targets[i].path, NULL);
        compare_one(l, &l->targets[i]);
    }
    for (uint32_t i = 0; i < burni_bpk_tensor_count(l->reader); i++) {
        if (!l->used[i]) {
            l->report.unused++;
            note(l, "unused: %.120s is not in the module",
                 burni_bpk_tensor_at(l->reader, i)->name);
        }
    }
    return verdict(l, flags, err);
}

/* ---- reading and assigning ------------------------------------------------------------------- */

static int32_t read_all(loading *l, burn_err *err)
{
    burn_device *device = burn_device_inner(burn_module_device(l->module));
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < l->n && rc == BURN_OK; i++) {
        target *g = &l->targets[i];
        if (g->stored != NULL) {
            g->fresh = burni_stored_tensor(l->reader, g->stored, device);
            rc = burn_tensor_error(g->fresh, err);
        }
    }
    return rc;
}

/* Assigns the fresh (or the old) values and waits until they are there. */
static int32_t assign(const loading *l, int use_old, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < l->n && (rc == BURN_OK || use_old); i++) {
        const target *g = &l->targets[i];
        if (g->stored != NULL) {
            rc = burn_var_assign(g->var, use_old ? g->old : g->fresh, err);
        }
    }
    /* Work fails when it runs, which may be later than the call. */
    for (uint32_t i = 0; i < l->n && rc == BURN_OK; i++) {
        const target *g = &l->targets[i];
        if (g->stored != NULL) {
            rc = burni_storage_wait(thread, g->var->value->storage, err);
        }
    }
    return rc;
}

/* All old values are taken before the first is overwritten, so that putting back needs no file. */
static int32_t replace_all(loading *l, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < l->n && rc == BURN_OK; i++) {
        target *g = &l->targets[i];
        if (g->stored != NULL) {
            g->old = burn_var_get(g->var);
            rc = burn_tensor_error(g->old, err);
        }
    }
    if (rc != BURN_OK) {
        return rc;
    }
    rc = assign(l, 0, err);
    if (rc != BURN_OK) {
        (void)assign(l, 1, NULL);
        return rc;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const target *g = &l->targets[i];
        l->report.applied += g->stored != NULL;
        if (g->stored != NULL && g->stored->has_param_id) {
            burn_var_set_id(g->var, g->stored->param_id);
        }
    }
    return BURN_OK;
}

/* A stored graph is checked as well: a file is good or it is not. */
static int32_t check_graph(const loading *l, burn_err *err)
{
    burn_err why = BURN_ERR_INIT;
    burn_graph *graph = burni_stored_graph(l->reader, &why);
    int32_t rc = graph != NULL || why.code == BURN_E_NOT_FOUND ? BURN_OK : why.code;
    burn_graph_free(graph);
    return rc == BURN_OK ? rc : burni_fail(err, rc, "%s", why.text);
}

static int32_t load_all(loading *l, uint32_t flags, burn_err *err)
{
    l->n = burn_module_n_vars(l->module);
    l->targets = burni_calloc(l->n, sizeof(*l->targets));
    l->used = burni_calloc(burni_bpk_tensor_count(l->reader), 1);
    if (l->targets == NULL || l->used == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    int32_t rc = compare(l, flags, err);
    if (rc == BURN_OK) {
        rc = check_graph(l, err);
    }
    burn_scope_begin();
    burn_no_grad_begin();
    if (rc == BURN_OK) {
        rc = read_all(l, err);
    }
    if (rc == BURN_OK) {
        rc = replace_all(l, err);
    }
    burn_no_grad_end();
    burn_scope_end();
    return rc;
}

static void give_report(const loading *l, burn_load_report *report)
{
    if (report == NULL || report->struct_size < sizeof(report->struct_size)) {
        return;
    }
    uint32_t size = report->struct_size;
    size_t n = size < sizeof(*report) ? size : sizeof(*report);
    memcpy(report, &l->report, n);
    report->struct_size = size;
    if (size > offsetof(burn_load_report, text) && n < sizeof(*report)) {
        ((char *)report)[n - 1] = '\0';
    }
}

/* A run that goes on from this file may give other bits than the one that wrote it. */
static void compare_environments(const burni_bpk_reader *reader, const char *path)
{
    const char *now = burni_environment_name();
    const char *then = "";
    for (uint32_t i = 0; i < burni_bpk_metadata_count(reader); i++) {
        const burni_bpk_pair *pair = burni_bpk_metadata_at(reader, i);
        then = strcmp(pair->key, BURNI_ENVIRONMENT_KEY) == 0 ? pair->value : then;
    }
    if (strcmp(now, then) != 0) {
        burni_log(BURN_LOG_INFO, "load",
                  "%s was written with environment \"%.64s\", this process has \"%s\": results may "
                  "differ in bits",
                  burni_bpk_short_path(path), then, now);
    }
}

int32_t burn_load(burn_module *module, const char *path, uint32_t flags, burn_load_report *report,
                  burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (module == NULL || path == NULL) {
        return burni_fail(err, BURN_E_INVALID, "load: the %s is NULL",
                          module == NULL ? "module" : "path");
    }
    if ((flags & ~(uint32_t)BURN_LOAD_PARTIAL) != 0) {
        return burni_fail(err, BURN_E_INVALID, "load: flags 0x%x, known are 0x%x", flags,
                          (unsigned)BURN_LOAD_PARTIAL);
    }
    loading l;
    memset(&l, 0, sizeof(l));
    l.module = module;
    int32_t rc = burni_bpk_open(path, &l.reader, err);
    if (rc == BURN_OK) {
        compare_environments(l.reader, path);
        rc = load_all(&l, flags, err);
        if (rc != BURN_OK) {
            burni_prefix(err, "%s", burni_bpk_short_path(path));
        }
    }
    give_report(&l, report);
    burni_free(l.targets);
    burni_free(l.used);
    burni_bpk_close(l.reader);
    if (rc != BURN_OK) {
        burni_prefix(err, "load");
    }
    return rc;
}
