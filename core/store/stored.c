/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stored.c - from a tensor's bytes in a file to a tensor on a device, one at a time.
 *
 * The dtype is kept, never converted: a file of another dtype is the caller's finding. Bools are
 * the exception in bytes: a file may use four bytes for one and anything but zero for true, in
 * memory they are 0 and 1. To read one more encoding: burni_stored_dtype and a branch in read_host.
 */
#include "store/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "store/base64.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

uint8_t burni_stored_dtype(const burni_bpk_tensor *t)
{
    return t->encoding == BURNI_BPK_QUANTIZED ? BURN_DTYPE_NONE : t->dtype;
}

const char *burni_type_text(char *out, size_t size, uint8_t dtype, uint32_t rank,
                            const int64_t *dims)
{
    int n = snprintf(out, size, "%s[", burn_dtype_name(dtype));
    for (uint32_t i = 0; i < rank && n >= 0 && (size_t)n < size; i++) {
        n += snprintf(out + n, size - (size_t)n, "%s%lld", i > 0 ? "," : "", (long long)dims[i]);
    }
    if (n >= 0 && (size_t)n < size) {
        (void)snprintf(out + n, size - (size_t)n, "]");
    }
    return out;
}

/* In place: `bytes` holds n bools of `width` bytes; afterwards n bytes of 0 or 1. */
static void narrow_bools(unsigned char *bytes, uint64_t n, uint32_t width)
{
    for (uint64_t i = 0; i < n; i++) {
        unsigned char any = 0;
        for (uint32_t b = 0; b < width; b++) {
            any |= bytes[i * width + b];
        }
        bytes[i] = any != 0;
    }
}

static int32_t read_host(const burni_bpk_reader *reader, const burni_bpk_tensor *t, void *to,
                         burn_err *err)
{
    int32_t rc = burni_bpk_read(reader, t, 0, t->nbytes, to, err);
    if (rc == BURN_OK && t->dtype == BURN_BOOL && t->element_bytes > 0) {
        narrow_bools(to, t->nbytes / t->element_bytes, t->element_bytes);
    }
    return rc;
}

burn_tensor *burni_stored_tensor(const burni_bpk_reader *reader, const burni_bpk_tensor *t,
                                 burn_device *device)
{
    burni_thread *thread = burni_thread_get();
    burn_err err = BURN_ERR_INIT;
    if (burni_stored_dtype(t) == BURN_DTYPE_NONE) {
        return burni_handle_fail(thread, BURN_E_UNSUPPORTED, 0,
                                 "tensor '%.64s' is quantized, which nothing here can read; "
                                 "save it unquantized", t->name);
    }
    void *host = burni_alloc((size_t)t->nbytes);
    if (host == NULL) {
        return burni_handle_fail(thread, BURN_E_NO_MEMORY, 0,
                                 "tensor '%.64s': out of host memory for %llu bytes", t->name,
                                 (unsigned long long)t->nbytes);
    }
    int32_t rc = read_host(reader, t, host, &err);
    burn_tensor *out = rc == BURN_OK ? burn_tensor_from_data(device, burni_stored_dtype(t),
                                                             t->rank, t->dims, host)
                                     : burni_handle_fail(thread, rc, 0, "%s", err.text);
    burni_free(host);
    return out;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static const char *graph_text(const burni_bpk_reader *reader)
{
    for (uint32_t i = 0; i < burni_bpk_metadata_count(reader); i++) {
        const burni_bpk_pair *pair = burni_bpk_metadata_at(reader, i);
        if (strcmp(pair->key, BURNI_GRAPH_KEY) == 0) {
            return pair->value;
        }
    }
    return NULL;
}

burn_graph *burni_stored_graph(const burni_bpk_reader *reader, burn_err *err)
{
    const char *text = graph_text(reader);
    if (text == NULL) {
        (void)burni_fail(err, BURN_E_NOT_FOUND,
                         "the file holds no graph (metadata \"%s\"); save it with opts->graph",
                         BURNI_GRAPH_KEY);
        return NULL;
    }
    size_t size = 0;
    size_t bad = 0;
    void *bytes = burni_base64_decode(text, &size, &bad);
    if (bytes == NULL && bad == SIZE_MAX) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "graph: out of host memory");
        return NULL;
    }
    if (bytes == NULL) {
        (void)burni_fail(err, BURN_E_FORMAT, "the stored graph is damaged: no base64 at %zu", bad);
        return NULL;
    }
    burn_graph *graph = burn_graph_from_bytes(bytes, size, err);
    burni_free(bytes);
    if (graph == NULL) {
        burni_prefix(err, "the stored graph");
    }
    return graph;
}
