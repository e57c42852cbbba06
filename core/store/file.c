/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * file.c - looking into a model file and running the graph in it.
 *
 * Nothing but metadata is read until a tensor is asked for. The first run on a device reads the
 * tensors that the graph names; they stay there until the file is closed, so later runs read
 * nothing. The lock guards those caches; the rest never changes after opening. [any]
 */
#include "store/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/tensor.h"

#include <burn/store.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* A tensor of the file on a device. */
typedef struct cached {
    const burni_bpk_tensor *stored;
    burn_device *device;
    burn_tensor *value;
} cached;

struct burn_file {
    burni_bpk_reader *reader;
    uint64_t size;
    pthread_mutex_t lock;
    burn_graph *graph; /* NULL: not asked for yet */
    cached *cache;
    uint32_t n_cached;
    uint32_t cache_room;
};

burn_file *burn_file_open(const char *path, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    struct stat st;
    if (path == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "file: the path is NULL");
        return NULL;
    }
    burn_file *file = burni_calloc(1, sizeof(*file));
    if (file == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "file: out of host memory");
        return NULL;
    }
    if (burni_bpk_open(path, &file->reader, err) != BURN_OK) {
        burni_free(file);
        return NULL;
    }
    file->size = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    (void)pthread_mutex_init(&file->lock, NULL);
    return file;
}

void burn_file_close(burn_file *file)
{
    if (file == NULL) {
        return;
    }
    for (uint32_t i = 0; i < file->n_cached; i++) {
        burn_release(file->cache[i].value);
    }
    burni_free(file->cache);
    burn_graph_free(file->graph);
    burni_bpk_close(file->reader);
    (void)pthread_mutex_destroy(&file->lock);
    burni_free(file);
}

/* ---- asking ---------------------------------------------------------------------------------- */

uint64_t burn_file_size(const burn_file *file)
{
    return file != NULL ? file->size : 0;
}

uint32_t burn_file_n_tensors(const burn_file *file)
{
    return file != NULL ? burni_bpk_tensor_count(file->reader) : 0;
}

const char *burn_file_tensor(const burn_file *file, uint32_t i, uint8_t *out_dtype,
                             uint32_t *out_rank, int64_t out_dims[BURN_MAX_RANK])
{
    const burni_bpk_tensor *t = file != NULL ? burni_bpk_tensor_at(file->reader, i) : NULL;
    if (t == NULL) {
        return NULL;
    }
    if (out_dtype != NULL) {
        *out_dtype = burni_stored_dtype(t);
    }
    if (out_rank != NULL) {
        *out_rank = t->rank;
    }
    for (uint32_t d = 0; out_dims != NULL && d < t->rank; d++) {
        out_dims[d] = t->dims[d];
    }
    return t->name;
}

burn_tensor *burn_file_read(burn_file *file, const char *name, burn_device *device)
{
    burni_thread *thread = burni_thread_get();
    if (file == NULL || name == NULL || device == NULL) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0,
                                 "file: the %s is NULL",
                                 file == NULL   ? "file"
                                 : name == NULL ? "name"
                                                : "device");
    }
    const burni_bpk_tensor *t = burni_bpk_tensor_find(file->reader, name);
    if (t == NULL) {
        return burni_handle_fail(thread, BURN_E_NOT_FOUND, 0,
                                 "file: it holds no tensor '%.120s'", name);
    }
    return burni_stored_tensor(file->reader, t, device);
}

uint32_t burn_file_n_metadata(const burn_file *file)
{
    return file != NULL ? burni_bpk_metadata_count(file->reader) : 0;
}

const char *burn_file_metadata(const burn_file *file, uint32_t i, const char **out_value)
{
    const burni_bpk_pair *pair = file != NULL ? burni_bpk_metadata_at(file->reader, i) : NULL;
    if (pair == NULL) {
        return NULL;
    }
    if (out_value != NULL) {
        *out_value = pair->value;
    }
    return pair->key;
}

burn_graph *burn_file_graph(burn_file *file, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (file == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "file: it is NULL");
        return NULL;
    }
    return burni_stored_graph(file->reader, err);
}

/* ---- running --------------------------------------------------------------------------------- */

/* What a run's states are looked up with; the file's lock is not held. */
typedef struct run {
    burn_file *file;
    burn_device *device;
} run;

/* With the lock. */
static burn_tensor *find_cached(burn_file *file, const burni_bpk_tensor *stored,
                                const burn_device *device)
{
    for (uint32_t i = 0; i < file->n_cached; i++) {
        if (file->cache[i].stored == stored && file->cache[i].device == device) {
            return file->cache[i].value;
        }
    }
    return NULL;
}

/* With the lock. Keeps a tensor; when there is no room it is simply read again next time. */
static void add_cached(burn_file *file, const burni_bpk_tensor *stored, burn_device *device,
                       burn_tensor *value)
{
    if (file->n_cached == file->cache_room) {
        uint32_t room = file->cache_room > 0 ? 2 * file->cache_room : 16;
        cached *larger = burni_realloc(file->cache, room * sizeof(*larger));
        if (larger == NULL) {
            return;
        }
        file->cache = larger;
        file->cache_room = room;
    }
    cached *c = &file->cache[file->n_cached];
    c->stored = stored;
    c->device = device;
    c->value = burn_keep(value);
    file->n_cached++;
}

static burn_tensor *BURN_CALL find_state(void *user, const char *name)
{
    const run *r = user;
    const burni_bpk_tensor *stored = burni_bpk_tensor_find(r->file->reader, name);
    if (stored == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&r->file->lock);
    burn_tensor *value = find_cached(r->file, stored, r->device);
    if (value == NULL) {
        value = burni_stored_tensor(r->file->reader, stored, r->device);
        if (burn_ok(value)) {
            add_cached(r->file, stored, r->device, value);
        }
    }
    /* A handle of the calling scope; the kept one belongs to the file. */
    burn_tensor *t = burn_detach(value);
    (void)pthread_mutex_unlock(&r->file->lock);
    return t;
}

static const burn_graph *need_graph(burn_file *file, burn_err *err)
{
    (void)pthread_mutex_lock(&file->lock);
    if (file->graph == NULL) {
        file->graph = burni_stored_graph(file->reader, err);
    }
    const burn_graph *graph = file->graph;
    (void)pthread_mutex_unlock(&file->lock);
    return graph;
}

int32_t burn_file_run(burn_file *file, burn_device *device, burn_tensor *const *inputs,
                      uint32_t n_inputs, burn_tensor **outputs, uint32_t n_outputs, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    const burn_graph *graph = NULL;
    int32_t rc = BURN_OK;
    if (file == NULL || device == NULL) {
        rc = burni_fail(err, BURN_E_INVALID, "file: the %s is NULL",
                        file == NULL ? "file" : "device");
    } else {
        graph = need_graph(file, err);
        rc = graph != NULL ? BURN_OK : err->code;
    }
    if (rc == BURN_OK) {
        run r = {file, burn_device_inner(device)};
        return burn_graph_run(graph, r.device, inputs, n_inputs, find_state, &r, outputs, n_outputs,
                              err);
    }
    for (uint32_t j = 0; outputs != NULL && j < n_outputs; j++) {
        outputs[j] = burni_handle_fail(burni_thread_get(), rc, 0, "%s", err->text);
    }
    return rc;
}
