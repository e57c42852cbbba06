/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * graph.c - the public functions of <burn/graph.h>.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "exec/replay.h"
#include "exec/transfer.h"
#include "exec/var.h"
#include "ops/rules.h"

#include <burn/graph.h>
#include <stdio.h>
#include <string.h>

struct burn_graph {
    burn_window *window;
    char *names; /* of the inputs, one behind the other, each with its NUL */
};

static uint32_t count(const burn_graph *graph, uint32_t flag);

/* Copies the inputs' names, which end in no NUL inside a window. 0: out of memory. */
static int copy_names(burn_graph *graph)
{
    const burn_window *w = graph->window;
    size_t size = 1;
    for (uint32_t i = 0; i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        size += (v->flags & BURN_VALUE_INPUT) != 0 ? (size_t)v->name_size + 1 : 0;
    }
    graph->names = burni_calloc(1, size);
    char *p = graph->names;
    for (uint32_t i = 0; p != NULL && i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        if ((v->flags & BURN_VALUE_INPUT) != 0) {
            memcpy(p, burni_window_bytes(w, v->name_offset), v->name_size);
            p += v->name_size + 1;
        }
    }
    return graph->names != NULL;
}

/* Takes over a window; on failure the window is freed. */
static burn_graph *graph_of(burn_window *window, burn_err *err)
{
    burn_graph *graph = window != NULL ? burni_calloc(1, sizeof(*graph)) : NULL;
    if (graph != NULL) {
        graph->window = window;
        if (copy_names(graph)) {
            return graph;
        }
    }
    if (window != NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "graph: out of host memory");
    }
    burni_free(window);
    burni_free(graph);
    return NULL;
}

int32_t burn_capture_begin(burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || thread->capture != NULL) {
        return burni_fail(err, thread == NULL ? BURN_E_NO_MEMORY : BURN_E_STATE,
                          "capture: this thread captures already; end that capture first");
    }
    thread->capture = burni_capture_new();
    return thread->capture != NULL ? BURN_OK
                                   : burni_fail(err, BURN_E_NO_MEMORY, "capture: no memory");
}

burn_tensor *burn_capture_input(burn_tensor *t, const char *name)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL && thread->capture != NULL && burn_ok(t) && t->kind == BURN_TENSOR) {
        (void)burni_capture_input(thread->capture, t, name != NULL ? name : "");
    }
    return t;
}

static const char *state_name(void *user, const burni_storage *storage)
{
    burn_module *module = user;
    const char *path = NULL;
    burn_var *var;
    for (uint32_t i = 0; (var = burn_module_var_at(module, i, &path, NULL)) != NULL; i++) {
        if (var->value->storage == storage) {
            return path;
        }
    }
    return NULL;
}

static int32_t constant_bytes(void *user, const burn_tensor *t, void *out, uint64_t size,
                              burn_err *err)
{
    (void)user;
    return burni_download(burni_thread_get(), t, out, size, err);
}

/* Each output gets a value of its own: what is an input, a variable, a constant or listed twice is
 * copied, and the copy is part of the graph. */
static void own_outputs(const burni_capture *capture, burn_tensor *const *outputs, uint32_t n,
                        burn_tensor **own)
{
    for (uint32_t j = 0; j < n; j++) {
        int fine = burn_ok(outputs[j]) && outputs[j]->kind == BURN_TENSOR;
        uint32_t value = fine ? burni_capture_made(capture, outputs[j]) : 0;
        int plain = value != 0;
        for (uint32_t k = 0; k < j && plain; k++) {
            plain = !burn_ok(own[k]) || burni_capture_made(capture, own[k]) != value;
        }
        own[j] = fine && !plain ? burn_copy(outputs[j]) : outputs[j];
    }
}

burn_graph *burn_capture_end(burn_tensor *const *outputs, uint32_t n_outputs, burn_module *states,
                             burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || thread->capture == NULL) {
        (void)burni_fail(err, BURN_E_STATE, "capture: none was begun on this thread");
        return NULL;
    }
    burni_capture *capture = thread->capture;
    burni_capture_names names = {state_name, constant_bytes, states};
    if (outputs == NULL && n_outputs > 0) {
        thread->capture = NULL;
        burni_capture_free(capture);
        (void)burni_fail(err, BURN_E_INVALID, "capture: the outputs are NULL");
        return NULL;
    }
    burn_window *window = NULL;
    burn_tensor **own = burni_calloc(n_outputs, sizeof(*own));
    burn_scope_begin();
    if (own == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "capture: no memory");
        thread->capture = NULL;
    } else {
        own_outputs(capture, outputs, n_outputs, own);
        thread->capture = NULL;
        window = burni_capture_finish(capture, own, n_outputs, &names, err);
    }
    burn_scope_end();
    burni_capture_free(capture);
    burni_free(own);
    return graph_of(window, err);
}

void burn_graph_free(burn_graph *graph)
{
    if (graph != NULL) {
        burni_free(graph->window);
        burni_free(graph->names);
        burni_free(graph);
    }
}

const burn_window *burn_graph_window(const burn_graph *graph, size_t *out_size)
{
    if (graph != NULL && out_size != NULL) {
        *out_size = (size_t)graph->window->total_size;
    }
    return graph != NULL ? graph->window : NULL;
}

int32_t burn_window_check(const void *bytes, size_t size, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return bytes != NULL ? burni_window_check(bytes, size, err)
                         : burni_fail(err, BURN_E_INVALID, "window: NULL");
}

burn_graph *burn_graph_from_bytes(const void *bytes, size_t size, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (bytes == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "graph: the bytes are NULL");
        return NULL;
    }
    burn_window *copy = burni_alloc(size);
    if (copy == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "graph: out of host memory");
        return NULL;
    }
    memcpy(copy, bytes, size);
    if (burni_window_check(copy, size, err) != BURN_OK) {
        burni_free(copy);
        return NULL;
    }
    return graph_of(copy, err);
}

size_t burn_graph_text(const burn_graph *graph, char *out, size_t size)
{
    return graph != NULL ? burni_window_text(graph->window, out, out != NULL ? size : 0) : 0;
}

static uint32_t count(const burn_graph *graph, uint32_t flag)
{
    uint32_t n = 0;
    for (uint32_t i = 0; graph != NULL && i < graph->window->n_values; i++) {
        n += (burni_window_value(graph->window, i)->flags & flag) != 0;
    }
    return n;
}

uint32_t burn_graph_n_inputs(const burn_graph *graph)
{
    return count(graph, BURN_VALUE_INPUT);
}

uint32_t burn_graph_n_outputs(const burn_graph *graph)
{
    return count(graph, BURN_VALUE_OUTPUT);
}

const char *burn_graph_input(const burn_graph *graph, uint32_t index, uint8_t *out_dtype,
                             uint32_t *out_rank, int64_t out_dims[BURN_MAX_RANK])
{
    const burn_window *w = graph != NULL ? graph->window : NULL;
    const char *name = graph != NULL ? graph->names : NULL;
    for (uint32_t i = 0; w != NULL && i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        if ((v->flags & BURN_VALUE_INPUT) == 0) {
            continue;
        }
        if (index-- != 0) {
            name += v->name_size + 1;
            continue;
        }
        *out_dtype = v->dtype;
        *out_rank = v->rank;
        for (uint32_t d = 0; d < v->rank; d++) {
            out_dims[d] = burni_window_dim(w, v->first_dim + d)->size;
        }
        return name;
    }
    return NULL;
}

/* Is an input what the graph was captured with? */
enum { INPUT_FITS, INPUT_HAS_OTHER_SIZES, INPUT_IS_OTHER };

/* The answer; unless it fits, `text` gets both sides. A failed input fits: it has its own cause. */
static int compare_input(const burn_graph *graph, uint32_t k, const burn_tensor *t, char *text,
                         size_t size)
{
    uint8_t dtype = BURN_DTYPE_NONE;
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK];
    char known[192];
    char given[192] = " by value";
    const char *name = burn_graph_input(graph, k, &dtype, &rank, dims);
    int same = t->kind == BURN_TENSOR && t->dtype == dtype && t->rank == rank;
    if (t->cause != NULL || (same && memcmp(t->dims, dims, rank * sizeof(dims[0])) == 0)) {
        return INPUT_FITS;
    }
    if (t->kind == BURN_TENSOR) {
        (void)burni_shape_text(given, sizeof(given), t->rank, t->dims);
    }
    (void)snprintf(text, size, "graph: input %u \"%.40s\" is %s%s, given is %s%s", (unsigned)k,
                   name, burn_dtype_name(dtype), burni_shape_text(known, sizeof(known), rank, dims),
                   burn_dtype_name(t->dtype), given);
    return same ? INPUT_HAS_OTHER_SIZES : INPUT_IS_OTHER;
}

/* Sizes may differ, another batch say: the ops decide. */
static int32_t check_inputs(const burn_graph *graph, burn_tensor *const *inputs, uint32_t n_inputs,
                            burn_err *err)
{
    char text[512];
    uint32_t n = burn_graph_n_inputs(graph);
    if (n_inputs != n) {
        return burni_fail(err, BURN_E_INVALID, "graph: %u inputs given, it has %u",
                          (unsigned)n_inputs, (unsigned)n);
    }
    for (uint32_t k = 0; k < n; k++) {
        if (inputs[k] == NULL) {
            return burni_fail(err, BURN_E_INVALID, "graph: input %u is NULL", (unsigned)k);
        }
        if (compare_input(graph, k, inputs[k], text, sizeof(text)) == INPUT_IS_OTHER) {
            return burni_fail(err, BURN_E_INVALID, "%s; cast or reshape it", text);
        }
    }
    return BURN_OK;
}

/* A run with other sizes failed at some op: those sizes are told first. */
static void tell_sizes(const burn_graph *graph, burn_tensor *const *inputs, uint32_t n_inputs,
                       burn_err *err)
{
    char text[512];
    for (uint32_t k = 0; k < n_inputs; k++) {
        if (compare_input(graph, k, inputs[k], text, sizeof(text)) != INPUT_FITS) {
            burni_prefix(err, "%s", text);
            return;
        }
    }
}

int32_t burn_graph_run(const burn_graph *graph, burn_device *device, burn_tensor *const *inputs,
                       uint32_t n_inputs, burn_state_fn state, void *user, burn_tensor **outputs,
                       uint32_t n_outputs, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    burn_err spare;
    err = burni_first(err, &spare);
    if (thread == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "graph: no memory for the thread's state");
    }
    if (graph == NULL || device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "graph: the %s is NULL",
                          graph == NULL ? "graph" : "device");
    }
    if ((inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0)) {
        return burni_fail(err, BURN_E_INVALID, "graph: the %s are NULL",
                          inputs == NULL && n_inputs > 0 ? "inputs" : "outputs");
    }
    burni_replay replay = {thread, device, inputs, n_inputs, 0, state, user};
    int32_t rc = check_inputs(graph, inputs, n_inputs, err);
    if (rc == BURN_OK) {
        rc = burni_window_run(&replay, graph->window, outputs, n_outputs, err);
        if (rc == BURN_OK) {
            return rc;
        }
        tell_sizes(graph, inputs, n_inputs, err);
    }
    for (uint32_t j = 0; j < n_outputs; j++) {
        outputs[j] = burni_handle_fail(thread, rc, 0, "%s", err->text);
    }
    return rc;
}
