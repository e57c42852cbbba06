/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fuzz_window.c - the reader of windows on arbitrary bytes. What it accepts must be safe to print,
 * to count and to read back the same; running accepted windows is left to tests/unit/core. Seeds
 * are windows of small graphs: a softmax over a constant, a layer with states, ops with absent
 * operands and immediates.
 */
#include "fuzz.h"

#include <burn/graph.h>
#include <stdlib.h>
#include <string.h>

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
