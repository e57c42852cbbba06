/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * save.c - a module into a model file.
 *
 * Collects what there is to write; the container writes it, asking for one tensor after the other.
 * So one tensor at a time is in host memory, and a failing device ends the save before the old file
 * is touched. Parameters keep their ids in the file: an optimizer's state is found by them. [any]
 */
#include "store/base64.h"
#include "store/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tune/environment.h"

#include <burn/store.h>
#include <string.h>

/* The tensor that is being written. */
typedef struct window {
    const burn_var *owner;
    char *bytes;
} window;

typedef struct item {
    const burn_var *var;
    const char *path;
    uint64_t nbytes;
    window *shared;
} item;

static int32_t fetch(item *it, burn_err *err)
{
    window *w = it->shared;
    burni_free(w->bytes);
    w->owner = NULL;
    w->bytes = burni_alloc((size_t)it->nbytes);
    if (w->bytes == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "'%.64s': out of host memory for %llu bytes",
                          it->path, (unsigned long long)it->nbytes);
    }
    burn_scope_begin();
    burn_no_grad_begin();
    int32_t rc = burn_read(burn_var_get(it->var), w->bytes, (size_t)it->nbytes, err);
    burn_no_grad_end();
    burn_scope_end();
    if (rc == BURN_OK) {
        w->owner = it->var;
    } else {
        burni_prefix(err, "'%.64s'", it->path);
    }
    return rc;
}

static int32_t produce(void *user, uint64_t offset, uint64_t bytes, void *to, burn_err *err)
{
    item *it = user;
    int32_t rc = it->shared->owner == it->var ? BURN_OK : fetch(it, err);
    if (rc == BURN_OK) {
        memcpy(to, it->shared->bytes + offset, (size_t)bytes);
        if (offset + bytes == it->nbytes) {
            burni_free(it->shared->bytes);
            it->shared->bytes = NULL;
            it->shared->owner = NULL;
        }
    }
    return rc;
}

static int32_t add_var(burni_bpk_writer *writer, item *it, burn_err *err)
{
    burni_bpk_source source;
    memset(&source, 0, sizeof(source));
    burn_scope_begin();
    const burn_tensor *t = burn_var_get(it->var);
    int32_t rc = burn_tensor_error(t, err);
    if (rc == BURN_OK) {
        source.name = it->path;
        source.dtype = burn_dtype_of(t);
        source.rank = (uint8_t)burn_rank(t);
        for (uint32_t d = 0; d < source.rank; d++) {
            source.dims[d] = burn_dim(t, d);
        }
        source.nbytes = (uint64_t)burn_numel(t) * burn_dtype_size(source.dtype);
        source.has_param_id = 1;
        source.param_id = burn_var_id(it->var);
        source.produce = produce;
        source.user = it;
        it->nbytes = source.nbytes;
        rc = burni_bpk_add_tensor(writer, &source, err);
    }
    burn_scope_end();
    return rc;
}

static int32_t add_graph(burni_bpk_writer *writer, const burn_graph *graph, burn_err *err)
{
    size_t size = 0;
    const burn_window *bytes = burn_graph_window(graph, &size);
    char *text = burni_base64_encode(bytes, size);
    if (text == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "graph: out of host memory for %zu bytes", size);
    }
    int32_t rc = burni_bpk_add_metadata(writer, BURNI_GRAPH_KEY, text, err);
    burni_free(text);
    return rc;
}

static int32_t add_metadata(burni_bpk_writer *writer, const burn_save_opts *opts, burn_err *err)
{
    if (opts == NULL) {
        return BURN_OK;
    }
    if (!BURN_HAS(opts, burn_save_opts, values)) {
        return burni_fail(err, BURN_E_INVALID, "the options state a size of %u bytes; set "
                          "struct_size", opts->struct_size);
    }
    if (opts->n_metadata > 0 && (opts->keys == NULL || opts->values == NULL)) {
        return burni_fail(err, BURN_E_INVALID, "%u entries of metadata without keys or values",
                          opts->n_metadata);
    }
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < opts->n_metadata && rc == BURN_OK; i++) {
        const char *key = opts->keys[i];
        if (key == NULL || opts->values[i] == NULL) {
            rc = burni_fail(err, BURN_E_INVALID, "metadata %u is NULL", i);
        } else if (strcmp(key, BURNI_GRAPH_KEY) == 0) {
            rc = burni_fail(err, BURN_E_INVALID,
                            "the key \"%s\" is the graph's; give it in opts->graph", key);
        } else {
            rc = burni_bpk_add_metadata(writer, key, opts->values[i], err);
        }
    }
    if (rc == BURN_OK && BURN_HAS(opts, burn_save_opts, graph) && opts->graph != NULL) {
        rc = add_graph(writer, opts->graph, err);
    }
    return rc;
}

/* Kernels that the tuner picked may give other bits: who reads the file shall know. */
static int32_t add_environment(burni_bpk_writer *writer, burn_err *err)
{
    const char *name = burni_environment_name();
    return name[0] != '\0' ? burni_bpk_add_metadata(writer, BURNI_ENVIRONMENT_KEY, name, err)
                           : BURN_OK;
}

static int32_t write_all(burn_module *module, const char *path, const burn_save_opts *opts,
                         burni_bpk_writer *writer, item *items, uint32_t n, burn_err *err)
{
    window shared = {NULL, NULL};
    int32_t rc = add_environment(writer, err);
    if (rc == BURN_OK) {
        rc = add_metadata(writer, opts, err);
    }
    for (uint32_t i = 0; i < n && rc == BURN_OK; i++) {
        items[i].var = burn_module_var_at(module, i, &items[i].path, NULL);
        items[i].shared = &shared;
        rc = add_var(writer, &items[i], err);
    }
    if (rc == BURN_OK) {
        rc = burni_bpk_write_file(writer, path, err);
    }
    burni_free(shared.bytes);
    return rc;
}

int32_t burn_save(burn_module *module, const char *path, const burn_save_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (module == NULL || path == NULL || path[0] == '\0') {
        return burni_fail(err, BURN_E_INVALID, "save: the %s",
                          module == NULL ? "module is NULL"
                          : path == NULL ? "path is NULL"
                                         : "path is empty");
    }
    uint32_t n = burn_module_n_vars(module);
    burni_bpk_writer *writer = burni_bpk_writer_new();
    item *items = burni_calloc(n, sizeof(*items));
    int32_t rc = writer == NULL || items == NULL
                     ? burni_fail(err, BURN_E_NO_MEMORY, "out of host memory")
                     : write_all(module, path, opts, writer, items, n, err);
    burni_free(items);
    burni_bpk_writer_free(writer);
    if (rc != BURN_OK) {
        burni_prefix(err, "save");
    }
    return rc;
}
