/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_window.c - the reader of windows on arbitrary bytes. What it accepts must be safe to print,
 * to count, to read back the same and to run, twice, on the device that BURN_DEVICE names: each
 * output can be read or says why not, both runs have the same bits, and nothing is left in use.
 *
 * What a run costs is bounded by the sizes that the window tells, and by the device's memory limit
 * where attributes ask for more. Seeds are windows of small graphs: a softmax over a constant, a
 * layer with states, ops with absent operands and immediates.
 */
#include "fuzz.h"

#include "graph/capture.h"

#include <burn/build.h>
#include <burn/device.h>
#include <burn/graph.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 64, MAX_VALUES = 256, MAX_ELEMENTS = 1 << 14, MAX_READ = 1 << 20 };

/* ---- running --------------------------------------------------------------------------------- */

static burn_device *device;

static burn_device *need_device(void)
{
    if (device == NULL) {
        burn_err err = BURN_ERR_INIT;
        device = burn_device_open(NULL, &err);
        if (device == NULL) {
            abort(); /* BURN_PLUGIN_PATH or BURN_DEVICE is wrong: nothing would be tested */
        }
        burn_memory_limit(device, UINT64_C(4) << 20);
    }
    return device;
}

/* A value's elements as the window tells them, up to MAX_ELEMENTS; -1: more, or no sizes. */
static int64_t told_dims(const burn_window *w, const burn_window_value *v, int64_t *dims)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < v->rank; d++) {
        dims[d] = burni_window_dim(w, v->first_dim + d)->size;
        if (dims[d] < 0 || dims[d] > MAX_ELEMENTS || n * dims[d] > MAX_ELEMENTS) {
            return -1;
        }
        n *= dims[d];
    }
    return n;
}

static int is_small(const burn_window *w)
{
    if (w->n_nodes > MAX_NODES || w->n_values > MAX_VALUES) {
        return 0;
    }
    for (uint32_t i = 0; i < w->n_values; i++) {
        int64_t dims[BURN_MAX_RANK];
        const burn_window_value *v = burni_window_value(w, i);
        if (v->kind == BURN_TENSOR && told_dims(w, v, dims) < 0) {
            return 0;
        }
    }
    return 1;
}

/* Ones: right as numbers, indices and conditions. */
static burn_tensor *value_of(const burn_window *w, const burn_window_value *v)
{
    int64_t dims[BURN_MAX_RANK];
    (void)told_dims(w, v, dims);
    return burn_ones(need_device(), v->dtype, v->rank, dims);
}

static burn_tensor *find_state(void *user, const char *name)
{
    const burn_window *w = *(const burn_window **)user;
    size_t size = strlen(name);
    for (uint32_t i = 0; i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        if (v->kind == BURN_TENSOR && (v->flags & BURN_VALUE_STATE) != 0 && v->name_size == size &&
            memcmp(burni_window_bytes(w, v->name_offset), name, size) == 0) {
            return value_of(w, v);
        }
    }
    return NULL;
}

/* Its bytes, to be freed; NULL when it failed, or is large. */
static void *read_output(burn_tensor *t, size_t *out_size)
{
    burn_err err = BURN_ERR_INIT;
    *out_size = 0;
    if (t == NULL) {
        abort(); /* not even a failed one */
    }
    size_t size = (size_t)burn_numel(t) * burn_dtype_size(burn_dtype_of(t));
    void *bytes = size <= MAX_READ ? calloc(size + 1, 1) : NULL;
    if (bytes == NULL) {
        return NULL;
    }
    if (burn_read(t, bytes, size, &err) == BURN_OK) {
        *out_size = size;
        return bytes;
    }
    if (err.text[0] == '\0') {
        abort(); /* an error without cause */
    }
    free(bytes);
    return NULL;
}

typedef struct results {
    uint32_t n;
    void *bytes[MAX_VALUES];
    size_t sizes[MAX_VALUES];
} results;

static void run(const burn_graph *graph, const burn_window *w, results *r)
{
    burn_tensor *in[MAX_VALUES];
    burn_tensor *out[MAX_VALUES] = {NULL};
    burn_err err = BURN_ERR_INIT;
    uint32_t n_in = 0;
    memset(r, 0, sizeof(*r));
    burn_scope_begin();
    for (uint32_t i = 0; i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        if (v->kind == BURN_TENSOR && (v->flags & BURN_VALUE_INPUT) != 0) {
            in[n_in++] = value_of(w, v);
        }
    }
    r->n = burn_graph_n_outputs(graph);
    int32_t rc = n_in != burn_graph_n_inputs(graph) || r->n > MAX_VALUES
                     ? BURN_E_UNSUPPORTED
                     : burn_graph_run(graph, need_device(), in, n_in, find_state, &w, out, r->n,
                                      &err);
    if (rc == BURN_E_UNSUPPORTED && out[0] == NULL) {
        r->n = 0;
    } else if (rc != BURN_OK && err.text[0] == '\0') {
        abort(); /* an error without cause */
    }
    for (uint32_t i = 0; i < r->n; i++) {
        r->bytes[i] = read_output(out[i], &r->sizes[i]);
    }
    burn_scope_end();
}

static uint64_t in_use(void)
{
    burn_memory m;
    memset(&m, 0, sizeof(m));
    m.struct_size = sizeof(m);
    (void)burn_sync(need_device(), NULL);
    return burn_memory_report(need_device(), &m, NULL) == BURN_OK ? m.in_use : 0;
}

static void run_twice(const burn_graph *graph, const burn_window *w)
{
    results r[2];
    if (!is_small(w)) {
        return;
    }
    uint64_t before = in_use();
    run(graph, w, &r[0]);
    run(graph, w, &r[1]);
    for (uint32_t i = 0; i < r[0].n; i++) {
        int both = i < r[1].n && r[0].bytes[i] != NULL && r[1].bytes[i] != NULL;
        if (both && (r[0].sizes[i] != r[1].sizes[i] ||
                     memcmp(r[0].bytes[i], r[1].bytes[i], r[0].sizes[i]) != 0)) {
            abort(); /* the second run is another */
        }
        free(r[0].bytes[i]);
    }
    for (uint32_t i = 0; i < r[1].n; i++) {
        free(r[1].bytes[i]);
    }
    if (in_use() != before) {
        abort(); /* something is left */
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static void look_at(const burn_graph *graph, size_t size)
{
    char text[512];
    size_t need = burn_graph_text(graph, text, sizeof(text));
    if (need < sizeof(text) && strlen(text) != need) {
        abort(); /* it printed less, or more, than it says */
    }
    uint8_t dtype;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    uint32_t n = burn_graph_n_inputs(graph);
    for (uint32_t i = 0; i < n; i++) {
        if (burn_graph_input(graph, i, &dtype, &rank, dims) == NULL || rank > BURN_MAX_RANK) {
            abort();
        }
    }
    size_t again = 0;
    const burn_window *w = burn_graph_window(graph, &again);
    burn_err err = BURN_ERR_INIT;
    if (again != size || burn_window_check(w, again, &err) != BURN_OK) {
        abort(); /* what was accepted once is refused now */
    }
    run_twice(graph, w);
}

static void try_bytes(const void *bytes, size_t size)
{
    burn_err err = BURN_ERR_INIT;
    burn_graph *graph = burn_graph_from_bytes(bytes, size, &err);
    if (graph == NULL) {
        if (err.code >= 0 || err.text[0] == '\0') {
            abort(); /* an error without cause */
        }
        return;
    }
    look_at(graph, size);
    burn_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    try_bytes(bytes, size);
    if (size < sizeof(burn_window)) {
        return 0;
    }
    uint8_t *copy = malloc(size);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, bytes, size);
    burn_window *w = (burn_window *)(void *)copy;
    w->total_size = size;
    w->hash_absolute = UINT64_C(14695981039346656037);
    for (size_t i = sizeof(*w); i < size; i++) {
        w->hash_absolute = (w->hash_absolute ^ copy[i]) * UINT64_C(1099511628211);
    }
    try_bytes(copy, size);
    free(copy);
    return 0;
}
