/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * transfer.c - bytes between the host and devices.
 *
 * Host data is copied at once, so the caller may change it after the call. A read makes the tensor
 * dense on its device, runs what is pending, waits for its point and looks at its faults.
 */
#include "exec/transfer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/dry.h"
#include "exec/emit.h"
#include "exec/explain.h"
#include "exec/guard.h"
#include "exec/recording.h"
#include "ops/rules.h"

#include <inttypes.h>
#include <string.h>

static int32_t write_locked(burni_stream *stream, burni_storage *s, const void *data,
                            burn_err *err)
{
    int32_t rc = burni_device_check_fork(stream->device, err);
    rc = rc == BURN_OK ? burni_storage_back(stream, s, err) : rc;
    if (rc != BURN_OK) {
        return rc;
    }
    if (__builtin_expect(burni_is_dry(stream), 0)) {
        burni_storage_fail(s, &burni_cause_dry);
        return BURN_OK;
    }
    if (s->bytes > 0 && s->host != NULL && stream->device->synchronous) {
        memcpy(s->host, data, s->bytes);
    } else if (s->bytes > 0) {
        const burn_device_api *api = stream->device->api;
        uint64_t point = 0;
        burn_err *sink = &stream->sink.err;
        rc = api->copy_in(stream->queue, s->buffer, s->buffer_offset, data, s->bytes, sink);
        rc = burni_stream_said(stream, "copy_in", rc, err);
        if (rc == BURN_OK && !stream->device->synchronous) {
            rc = burni_stream_signal(stream, &point, err);
            atomic_store_explicit(&s->write_point, point, memory_order_relaxed);
        }
    }
    if (rc == BURN_OK) {
        atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        atomic_store_explicit(&s->state, BURNI_SUBMITTED, memory_order_release);
    }
    return rc;
}

static int32_t write_bytes(burni_stream *stream, burni_storage *s, const void *data, burn_err *err)
{
    int locked = burni_stream_lock(stream);
    int32_t rc = write_locked(stream, s, data, err);
    burni_stream_unlock(stream, locked);
    return rc;
}

/* A tensor's bools are 0 or 1, so that kernels may compare and count bytes; a caller's are not. */
static int32_t write_bools(burni_stream *stream, burni_storage *s, const void *data, burn_err *err)
{
    const unsigned char *given = data;
    unsigned char *bytes = burni_alloc(s->bytes + 1);
    if (bytes == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "no memory for %" PRIu64 " bools", s->bytes);
    }
    for (uint64_t i = 0; i < s->bytes; i++) {
        bytes[i] = given[i] != 0;
    }
    int32_t rc = write_bytes(stream, s, bytes, err);
    burni_free(bytes);
    return rc;
}

static int32_t check_shape(uint8_t dtype, uint32_t rank, const int64_t *dims, burn_err *err)
{
    char text[192];
    if (rank > 0 && rank <= BURN_MAX_RANK && dims == NULL) {
        return burni_fail(err, BURN_E_INVALID, "tensor: dims is NULL, rank %u needs as many sizes",
                          rank);
    }
    if (rank > BURN_MAX_RANK) {
        return burni_fail(err, BURN_E_SHAPE, "tensor: rank %u is not in 0..%d", rank,
                          BURN_MAX_RANK);
    }
    uint32_t size = burn_dtype_size(dtype);
    if (size == 0) {
        char all[96];
        return burni_fail(err, BURN_E_DTYPE,
                          "tensor: %u is the code of no dtype that tensors have; they have %s",
                          dtype, burni_dtypes_text(all, sizeof(all), BURN_SET_ANY));
    }
    int64_t n = burni_numel(rank, dims);
    if (n < 0 || n > INT64_MAX / (int64_t)size / 2) {
        return burni_fail(err, BURN_E_SHAPE, "tensor: shape %s is negative or too large",
                          burni_shape_text(text, sizeof(text), rank, dims));
    }
    return BURN_OK;
}

burn_tensor *burni_upload(burni_thread *thread, burn_device *device, uint8_t dtype, uint32_t rank,
                          const int64_t *dims, const void *data)
{
    burn_err err = BURN_ERR_INIT;
    if (thread == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    if (device == NULL) {
        return burni_handle_fail(thread, BURN_E_DEVICE, 0, "tensor: the device is NULL");
    }
    int32_t rc = check_shape(dtype, rank, dims, &err);
    int64_t n = rc == BURN_OK ? burni_numel(rank, dims) : 0;
    if (rc == BURN_OK && data == NULL && n > 0) {
        rc = burni_fail(&err, BURN_E_INVALID, "tensor: the data is NULL");
    }
    burni_stream *stream = rc == BURN_OK ? burni_stream_get(thread, device->core, &err) : NULL;
    if (stream == NULL) {
        return burni_handle_fail(thread, err.code, 0, "%s", err.text);
    }
    if (thread->depth == 0) {
        burni_recording_refuse(thread, "it uploads a tensor; make it before, and a port of it");
    }
    burn_tensor *t = burni_handle_new(thread, 1);
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    t->dtype = dtype;
    t->rank = (uint8_t)rank;
    t->device = device;
    for (uint32_t d = 0; d < rank; d++) {
        t->dims[d] = dims[d];
    }
    burni_handle_dense(t);
    t->storage = burni_storage_new(thread, device->core, (uint64_t)n * burn_dtype_size(dtype));
    if (t->storage == NULL) {
        burn_release(t);
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    rc = dtype == BURN_BOOL ? write_bools(stream, t->storage, data, &err)
                            : write_bytes(stream, t->storage, data, &err);
    if (rc != BURN_OK) {
        burn_release(t);
        return burni_handle_fail(thread, rc, 0, "tensor: %s", err.text);
    }
    return t;
}

/* Queues the copy of a storage's bytes; its point goes to `out_point`. The stream is locked. */
static int32_t queue_read(burni_stream *stream, burni_storage *s, uint64_t offset, void *out,
                          uint64_t bytes, uint64_t *out_point, burn_err *err)
{
    const burn_device_api *api = s->device->api;
    if (s->writer != stream) {
        atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
    }
    burn_err *sink = &stream->sink.err;
    int32_t rc =
        api->copy_out(stream->queue, out, s->buffer, s->buffer_offset + offset, bytes, sink);
    rc = burni_stream_said(stream, "copy_out", rc, err);
    return rc == BURN_OK ? burni_stream_signal(stream, out_point, err) : rc;
}

/* Copies, or queues the copy of, bytes that have been waited for. 0 in `out_done`: the storage was
 * a variable's when the wait began, and its value moved to a copy meanwhile: wait for that one. */
static int32_t start_read(burni_stream *stream, burni_storage *s, int was_var, uint64_t offset,
                          void *out, uint64_t bytes, uint64_t *out_point, int *out_done,
                          burn_err *err)
{
    int locked = burni_stream_lock(stream);
    int32_t rc = BURN_OK;
    if (was_var) {
        burni_guard_enter(&s, 1);
    }
    *out_done = !was_var || burni_is_var(s);
    if (*out_done && s->host != NULL) {
        memcpy(out, (char *)s->host + offset, bytes);
    } else if (*out_done) {
        rc = queue_read(stream, s, offset, out, bytes, out_point, err);
    }
    if (was_var) {
        burni_guard_leave(&s, 1);
    }
    burni_stream_unlock(stream, locked);
    return rc;
}

static int32_t read_bytes(burni_thread *thread, const burn_tensor *t, void *out, uint64_t bytes,
                          burn_err *err)
{
    burni_storage *s = t->storage;
    burni_stream *stream = burni_stream_get(thread, s->device, err);
    if (stream == NULL) {
        return err->code;
    }
    burni_recording_refuse(thread, "it reads a tensor, on which what comes next may depend");
    burni_stream_cut_for(stream, s);
    uint64_t offset = (uint64_t)t->offset * burn_dtype_size(t->dtype);
    uint64_t point = 0;
    int done = 0;
    int32_t rc = BURN_OK;
    while (rc == BURN_OK && !done) {
        int was_var = burni_is_var(s);
        rc = burni_storage_wait(thread, s, err);
        if (rc != BURN_OK || bytes == 0) {
            return rc;
        }
        rc = start_read(stream, s, was_var, offset, out, bytes, &point, &done, err);
    }
    if (rc == BURN_OK && point > 0) {
        rc = burni_stream_wait(stream, point, err);
    }
    return rc;
}

/* What another stream is given to do to the storage. */
static int32_t wait_for_writer(const burni_stream *stream, const burni_storage *s, burn_err *err)
{
    const burni_stream *writer = s->writer;
    int is_foreign = !stream->device->synchronous && writer != NULL && writer != stream &&
                     atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_SUBMITTED;
    return is_foreign ? burni_stream_wait(writer, s->write_point, err) : BURN_OK;
}

int32_t burni_fetch(burni_stream *stream, burni_storage *s, uint64_t offset, void *out,
                    uint64_t bytes, burn_err *err)
{
    uint64_t point = 0;
    int done = 0;
    int32_t rc = BURN_OK;
    while (rc == BURN_OK && !done) {
        uint64_t is_var = burni_is_var(s) != 0;
        rc = wait_for_writer(stream, s, err);
        burni_guard_enter(&s, is_var);
        /* A variable's value may have moved to a copy meanwhile: that one is waited for. */
        done = !is_var || burni_is_var(s);
        if (rc == BURN_OK && done && s->host != NULL && stream->device->synchronous) {
            memcpy(out, (char *)s->host + offset, bytes);
        } else if (rc == BURN_OK && done) {
            rc = queue_read(stream, s, offset, out, bytes, &point, err);
        }
        burni_guard_leave(&s, is_var);
    }
    return rc == BURN_OK && point > 0 ? burni_stream_wait(stream, point, err) : rc;
}

int32_t burni_download(burni_thread *thread, const burn_tensor *t, void *out, uint64_t bytes,
                       burn_err *err)
{
    if (t->cause != NULL) {
        burni_cause_write(t->cause, err);
        return t->cause->code;
    }
    if (t->kind == BURN_IMMEDIATE) {
        memcpy(out, t->immediate, bytes);
        return BURN_OK;
    }
    if (thread == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "read: out of host memory");
    }
    if ((t->flags & BURNI_CONTIGUOUS) != 0) {
        return read_bytes(thread, t, out, bytes, err);
    }
    burn_tensor *dense = NULL;
    burn_tensor *const in[1] = {(burn_tensor *)(uintptr_t)t};
    burni_frame frame;
    int watched = thread->watch != 0;
    if (watched) {
        burni_explain_copy(NULL, t);
        burni_frame_open(thread, &frame, "layout copy for a ", "read");
    }
    thread->no_grad++;
    thread->depth++;
    int32_t rc = burni_emit(thread, t->device, burni_op_find(BURN_OP_COPY), NULL, 0, in, 1, &dense,
                            1);
    thread->depth--;
    thread->no_grad--;
    if (watched) {
        burni_frame_close(thread, &frame);
    }
    if (rc != BURN_OK) {
        rc = burn_tensor_error(dense, err);
    } else {
        rc = read_bytes(thread, dense, out, bytes, err);
    }
    burn_release(dense);
    return rc;
}
