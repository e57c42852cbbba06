/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tuner_scratch.c - see tuner_scratch.h.
 *
 * Roofs: operations per second are those of the fastest row of matmul for square matrices of that
 * dtype; bytes per second those of copies within the device. Both are the best of many sizes, so
 * that they are high rather than low: a roof that is too high costs some runs, one that is too low
 * would end a race too early. Whatever a race reaches beyond raises them.
 */
#include "exec/tuner_scratch.h"

#include "base/alloc.h"
#include "exec/match.h"
#include "exec/resolve.h"
#include "exec/rows.h"
#include "loader/ask.h"
#include "loader/lent.h"
#include "tune/environment.h"

#include <burn/dtype.h>
#include <burn/op_list.h>
#include <string.h>
#include <time.h>

/* Small, finite and the same in each lane: 0.0115 in f32 and bf16, 1.06 in f16, 0.0 in f64. */
enum { FLOAT_BYTE = 0x3c, MAX_SIZE = 1024, COPY_LEAST = 1 << 18, COPY_MOST = 1 << 26 };
#define LONG_ENOUGH 4e-3

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A limit that the program set holds for the scratch memory as well. */
static int is_allowed(const burni_device *device, uint64_t bytes)
{
    uint64_t limit = atomic_load(&device->pool.limit);
    return bytes <= device->limits.max_binding &&
           (limit == 0 || atomic_load(&device->pool.reserved) + bytes <= limit);
}

/* A buffer for an operand; its first byte is at `offset`. */
static int take_buffer(burni_field *f, burn_operand *o, uint64_t bytes, uint64_t offset, int byte)
{
    const burn_device_api *api = f->device->api;
    void *host = NULL;
    burni_sink sink;
    burni_sink_begin(&sink);
    burn_buffer *buffer = NULL;
    if (!is_allowed(f->device, bytes) ||
        burni_ask_alloc(api, f->device->handle, bytes > 0 ? bytes : 1, f->device->backend, &buffer,
                        &host, NULL) != BURN_OK) {
        return 0;
    }
    f->buffers[f->n_buffers++] = buffer;
    o->buffer = buffer;
    o->offset = offset;
    o->data = host != NULL ? (char *)host + offset : NULL;
    return bytes == 0 || byte < 0 ||
           api->fill(f->queue, buffer, 0, bytes, (uint8_t)byte, &sink.err) == BURN_OK;
}

/* Elements that strides reach before and from the first one on. */
static void reach(const burn_operand *o, uint64_t *before, uint64_t *behind)
{
    *before = 0;
    *behind = 1;
    for (uint32_t d = 0; d < o->rank; d++) {
        uint64_t steps = o->dims[d] > 0 ? (uint64_t)o->dims[d] - 1 : 0;
        int64_t stride = o->strides[d];
        *before += stride < 0 ? steps * (uint64_t)-stride : 0;
        *behind += stride > 0 ? steps * (uint64_t)stride : 0;
    }
}

static void make_dense(burn_operand *o, int64_t *strides)
{
    int64_t step = 1;
    for (uint32_t d = o->rank; d-- > 0;) {
        strides[d] = step;
        step *= o->dims[d];
    }
    o->strides = strides;
    o->layout = BURN_LAYOUT_CONTIGUOUS;
}

static int take_operand(burni_field *f, uint32_t i, uint32_t copy_mask)
{
    burn_operand *o = &f->operands[i];
    if (o->kind != BURN_TENSOR) {
        return o->kind != BURN_RESOURCE;
    }
    if (i < 32 && (copy_mask >> i & 1) != 0) {
        make_dense(o, f->strides + (size_t)i * BURN_MAX_RANK);
    }
    uint64_t before = 0;
    uint64_t behind = 0;
    uint32_t size = burn_dtype_size(o->dtype);
    reach(o, &before, &behind);
    int is_float = burn_dtype_class(o->dtype) == BURN_CLASS_FLOAT;
    return size > 0 && take_buffer(f, o, (before + behind) * size, before * size,
                                   is_float ? FLOAT_BYTE : 0);
}

static uint32_t copies_of(const burni_field *f)
{
    uint32_t mask = 0;
    const burni_op *op = burni_op_find(f->rows[0]->op);
    return op != NULL && burni_match_row(op, f->rows[0], f->call, &mask, NULL) ? mask : 0;
}

static int take_memory(burni_field *f)
{
    uint32_t n = f->call->n_in + f->call->n_out;
    uint32_t copies = copies_of(f);
    uint64_t workspace = 0;
    f->operands = burni_calloc(n, sizeof(*f->operands));
    f->strides = burni_calloc((size_t)n * BURN_MAX_RANK, sizeof(*f->strides));
    if (f->operands == NULL || f->strides == NULL) {
        return 0;
    }
    memcpy(f->operands, f->call->operands, n * sizeof(*f->operands));
    for (uint32_t i = 0; i < n; i++) {
        if (!take_operand(f, i, copies)) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < f->n; i++) {
        workspace = f->prepared[i].workspace_bytes > workspace ? f->prepared[i].workspace_bytes
                                                               : workspace;
    }
    memset(&f->workspace, 0, sizeof(f->workspace));
    return workspace == 0 || take_buffer(f, &f->workspace, workspace, 0, -1);
}

int burni_field_open(burni_field *f, burni_device *device)
{
    f->device = device;
    f->queue = NULL;
    f->n_buffers = 0;
    f->point = 0;
    f->operands = NULL;
    f->strides = NULL;
    if (burni_ask_queue(device->api, device->handle, device->backend, &f->queue, NULL) ==
            BURN_OK &&
        take_memory(f)) {
        return 1;
    }
    burni_field_close(f);
    return 0;
}

void burni_field_close(burni_field *f)
{
    if (f->queue != NULL) {
        f->device->api->queue_destroy(f->queue); /* finishes its work first */
    }
    for (uint32_t i = 0; i < f->n_buffers; i++) {
        f->device->api->free(f->device->handle, f->buffers[i]);
    }
    burni_free(f->operands);
    burni_free(f->strides);
    f->queue = NULL;
    f->n_buffers = 0;
    f->operands = NULL;
    f->strides = NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Until all that was launched has run. */
static int finish(burni_field *f)
{
    const burn_device_api *api = f->device->api;
    burni_sink sink;
    burni_sink_begin(&sink);
    f->point++;
    return f->device->synchronous ||
           (api->signal(f->queue, f->point, &sink.err) == BURN_OK &&
            api->host_wait(f->queue, f->point, UINT64_MAX, &sink.err) == BURN_OK);
}

double burni_field_run(void *user, uint32_t candidate, uint32_t repeats)
{
    burni_field *f = user;
    burni_sink sink;
    burn_call call = *f->call;
    burni_sink_begin(&sink);
    const burn_row *row = f->rows[candidate];
    const burn_prepared *p = &f->prepared[candidate];
    call.queue = f->queue;
    call.state = p->state;
    call.operands = f->operands;
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.workspace = p->workspace_bytes > 0 ? &f->workspace : NULL;
    call.fault = NULL;
    call.err = &sink.err;
    double start = now();
    for (uint32_t i = 0; i < repeats; i++) {
        if (row->launch(&call) != BURN_OK) {
            (void)finish(f);
            return -1.0;
        }
    }
    return finish(f) ? now() - start : -1.0;
}

/* ---- roofs ----------------------------------------------------------------------------------- */

static double best_of(burni_field *f, int repeats)
{
    double best = 0.0;
    for (uint32_t i = 0; i < f->n; i++) {
        for (int k = 0; k < repeats; k++) {
            double seconds = burni_field_run(f, i, 1);
            best = seconds > 0.0 && (best == 0.0 || seconds < best) ? seconds : best;
        }
    }
    return best;
}

/* Runs all rows that multiply such matrices; seconds of the fastest, 0: there is none. */
static double time_square(burni_device *device, uint8_t dtype, uint32_t math, int64_t size)
{
    const burni_op *op = burni_op_find(BURN_OP_MATMUL);
    const int64_t dims[2] = {size, size};
    const int64_t strides[2] = {size, 1};
    burn_operand operands[3];
    burn_call call;
    burni_field f;
    memset(&f, 0, sizeof(f));
    memset(&call, 0, sizeof(call));
    memset(operands, 0, sizeof(operands));
    for (uint32_t i = 0; i < 3; i++) {
        operands[i].kind = BURN_TENSOR;
        operands[i].dtype = dtype;
        operands[i].rank = 2;
        operands[i].layout = BURN_LAYOUT_CONTIGUOUS;
        operands[i].dims = dims;
        operands[i].strides = strides;
    }
    call.struct_size = (uint32_t)sizeof(call);
    call.operand_stride = (uint32_t)sizeof(burn_operand);
    call.n_in = 2;
    call.n_out = 1;
    call.flags = math;
    call.operands = operands;
    f.call = &call;
    const burni_rows *rows = burni_rows_of(device, op);
    for (uint32_t i = 0; i < rows->count && f.n < BURNI_RACE_MAX; i++) {
        uint32_t mask = 0;
        if ((rows->rows[i]->flags & BURN_ROW_FAULTS) == 0 &&
            burni_match_row(op, rows->rows[i], &call, &mask, NULL) && mask == 0 &&
            burni_accept_row(rows->rows[i], &call, &f.prepared[f.n], NULL) == BURN_OK) {
            f.rows[f.n++] = rows->rows[i];
        }
    }
    double best = 0.0;
    if (f.n > 0 && burni_field_open(&f, device)) {
        best = best_of(&f, 3);
        burni_field_close(&f);
    }
    for (uint32_t i = 0; i < f.n; i++) {
        if (f.rows[i]->release != NULL && f.prepared[i].state != NULL) {
            f.rows[i]->release(f.prepared[i].state);
        }
    }
    return best;
}

static double measure_products(burni_device *device, uint8_t dtype, uint32_t math)
{
    double best = 0.0;
    double seconds = 0.0;
    for (int64_t size = 64; size <= MAX_SIZE && seconds < LONG_ENOUGH; size *= 2) {
        seconds = time_square(device, dtype, math, size);
        if (seconds <= 0.0) {
            break;
        }
        double rate = 2.0 * (double)size * (double)size * (double)size / seconds;
        best = rate > best ? rate : best;
    }
    return best;
}

/* Seconds of one copy of that many bytes, the best of some; 0: it cannot be. */
static double time_copy(burni_field *f, burn_buffer *to, burn_buffer *from, uint64_t bytes)
{
    double best = 0.0;
    for (int k = 0; k < 5; k++) {
        burni_sink sink;
        burni_sink_begin(&sink);
        double start = now();
        int ok = f->device->api->copy_within(f->queue, to, 0, from, 0, bytes, &sink.err) == BURN_OK;
        if (!finish(f) || !ok) {
            return 0.0;
        }
        double seconds = now() - start;
        best = best == 0.0 || seconds < best ? seconds : best;
    }
    return best;
}

static double measure_copies(burni_device *device)
{
    burni_field f;
    burn_operand from;
    burn_operand to;
    double best = 0.0;
    double seconds = 0.0;
    memset(&f, 0, sizeof(f));
    f.device = device;
    if (burni_ask_queue(device->api, device->handle, device->backend, &f.queue, NULL) != BURN_OK) {
        return 0.0;
    }
    if (take_buffer(&f, &from, COPY_MOST, 0, 0) && take_buffer(&f, &to, COPY_MOST, 0, 0)) {
        for (uint64_t n = COPY_LEAST; n <= COPY_MOST && seconds < LONG_ENOUGH; n *= 4) {
            seconds = time_copy(&f, to.buffer, from.buffer, n);
            if (seconds <= 0.0) {
                break;
            }
            double rate = 2.0 * (double)n / seconds;
            best = rate > best ? rate : best;
        }
    }
    burni_field_close(&f);
    return best;
}

static uint32_t roof_of(const burni_field *f)
{
    return f->call->operands[0].dtype | f->call->flags << 8;
}

/* Bytes of all operands, each once. */
static double operand_bytes(const burn_call *call)
{
    double bytes = 0.0;
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        const burn_operand *o = &call->operands[i];
        double n = o->kind == BURN_TENSOR ? (double)burn_dtype_size(o->dtype) : 0.0;
        for (uint32_t d = 0; o->kind == BURN_TENSOR && d < o->rank; d++) {
            n *= (double)o->dims[d];
        }
        bytes += n;
    }
    return bytes;
}

double burni_field_bound(const burni_field *f)
{
    const char *name = f->device->name;
    double flops = (double)f->prepared[0].flops;
    double bytes = f->prepared[0].bytes > 0 ? (double)f->prepared[0].bytes : operand_bytes(f->call);
    if (flops <= 0.0) {
        return 0.0; /* with bytes alone a bound says too little of products and convolutions */
    }
    double products = burni_environment_roof(name, roof_of(f));
    if (products <= 0.0) {
        products = measure_products(f->device, f->call->operands[0].dtype, f->call->flags);
        burni_environment_raise(name, roof_of(f), products);
    }
    double copies = burni_environment_roof(name, BURNI_ROOF_BYTES);
    if (copies <= 0.0) {
        copies = measure_copies(f->device);
        burni_environment_raise(name, BURNI_ROOF_BYTES, copies);
    }
    double by_flops = products > 0.0 ? flops / products : 0.0;
    double by_bytes = copies > 0.0 ? bytes / copies : 0.0;
    if (by_flops <= 0.0) {
        return 0.0;
    }
    return by_flops > by_bytes ? by_flops : by_bytes;
}

void burni_field_raise(const burni_field *f, double seconds, uint32_t candidate)
{
    double flops = (double)f->prepared[candidate].flops;
    if (seconds > 0.0 && flops > 0.0) {
        burni_environment_raise(f->device->name, roof_of(f), flops / seconds);
    }
}
