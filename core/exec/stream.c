/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stream.c - streams: getting one, keeping records, running launches. See stream.h for the rules.
 *
 * Streams are never freed: when a thread ends, its stream waits for the next thread, with its
 * queue, its blocks and its resolved rows. So a storage may always point at its writer.
 */
#include "exec/stream.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/tag.h"
#include "exec/fallback.h"
#include "exec/fault.h"
#include "exec/guard.h"
#include "exec/profile.h"

#include <stdio.h>
#include <string.h>

/* ---- locks ---------------------------------------------------------------------------------- */

int burni_stream_lock(burni_stream *stream)
{
    burni_thread *me = burni_thread_current;
    if (stream->window <= 1 || (me != NULL && me->holding == stream)) {
        return 0;
    }
    (void)pthread_mutex_lock(&stream->lock);
    if (me != NULL) {
        me->holding = stream;
    }
    return 1;
}

void burni_stream_unlock(burni_stream *stream, int locked)
{
    if (locked) {
        if (burni_thread_current != NULL) {
            burni_thread_current->holding = NULL;
        }
        (void)pthread_mutex_unlock(&stream->lock);
    }
}

/* ---- getting a stream ------------------------------------------------------------------------ */

static burni_stream *adopt_idle(burni_device *device, burni_thread *thread)
{
    burni_stream *found = NULL;
    (void)pthread_mutex_lock(&device->lock);
    for (burni_stream *s = device->streams; s != NULL && found == NULL; s = s->next) {
        if (s->owner == NULL) {
            s->owner = thread;
            found = s;
        }
    }
    (void)pthread_mutex_unlock(&device->lock);
    return found;
}

static int32_t make_queue(burni_device *device, burni_stream *s, burn_err *err)
{
    burni_sink_begin(&s->sink);
    int32_t rc = device->api->queue_create(device->handle, &s->queue, &s->sink.err);
    rc = burni_sink_end(&s->sink, device->backend, "queue_create", rc, err);
    if (rc == BURN_OK && s->queue == NULL) {
        rc = burni_fail(err, BURN_E_INTERNAL, "%s: queue_create succeeded but gave no queue",
                        device->backend);
    }
    return rc;
}

static burni_stream *make_stream(burni_device *device, burni_thread *thread, burn_err *err)
{
    burni_stream *s = burni_calloc(1, sizeof(*s));
    if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        burni_free(s);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", device->name);
        return NULL;
    }
    if (make_queue(device, s, err) != BURN_OK) {
        (void)pthread_mutex_destroy(&s->lock);
        burni_free(s);
        return NULL;
    }
    s->device = device;
    s->window = device->window;
    s->owner = thread;
    s->way = device->synchronous ? 0 : BURNI_WAY_QUEUED;
    s->resolver.queue = s->queue;
    s->resolver.submitted = &s->submitted;
    s->others.queue = s->queue;
    s->others.submitted = &s->submitted;
    (void)pthread_mutex_lock(&device->lock);
    s->next = device->streams;
    device->streams = s;
    (void)pthread_mutex_unlock(&device->lock);
    burni_profile_stream(s);
    return s;
}

burni_resolver *burni_stream_resolver(burni_stream *stream)
{
    return __builtin_expect(burni_fallback_runs(stream), 0) ? &stream->others : &stream->resolver;
}

burni_stream *burni_stream_get(burni_thread *thread, burni_device *device, burn_err *err)
{
    burni_stream *s = thread->streams[device->index];
    if (__builtin_expect(s != NULL, 1)) {
        return s;
    }
    /* A thread that began before modes were read learns of them here. */
    thread->watch |= atomic_load(&burni_watch_all);
    s = adopt_idle(device, thread);
    if (s == NULL) {
        s = make_stream(device, thread, err);
    }
    thread->streams[device->index] = s;
    return s;
}

/* ---- memory ---------------------------------------------------------------------------------- */

int32_t burni_storage_back(burni_stream *stream, burni_storage *s, burn_err *err)
{
    if (s->block != NULL) {
        return BURN_OK;
    }
    burni_block *block = burni_pool_take(&stream->device->pool, &stream->cache, s->bytes, err);
    if (block == NULL) {
        return BURN_E_NO_MEMORY;
    }
    s->block = block;
    s->buffer = block->page->buffer;
    s->buffer_offset = block->offset;
    s->host = block->page->host != NULL ? block->page->host + block->offset : NULL;
    return BURN_OK;
}

void burni_storage_fail(burni_storage *s, burni_cause *cause)
{
    if (atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
        return;
    }
    burni_cause *old = s->cause;
    s->cause = burni_cause_ref(cause);
    burni_cause_unref(old);
    atomic_store_explicit(&s->state, BURNI_FAILED, memory_order_release);
}

/* Hook: the last reference to a storage is gone. */
static void storage_dead(burni_storage *s)
{
    if (atomic_load_explicit(&s->device->closed, memory_order_relaxed)) {
        return;
    }
    if (s->fault != NULL) {
        burni_fault_unref(s->fault);
        s->fault = NULL;
    }
    burni_block *block = s->block;
    if (block == NULL) {
        return;
    }
    s->block = NULL;
    burni_device *device = s->device;
    burni_thread *thread = burni_thread_current;
    /* While another thread's stream is drained, its cache is at hand; locks never nest. */
    burni_stream *home = thread == NULL            ? NULL
                         : thread->holding != NULL ? thread->holding
                                                   : thread->streams[device->index];
    int foreign = atomic_load_explicit(&s->foreign, memory_order_relaxed) != 0;
    int ordered = device->synchronous || (s->writer == home && !foreign);
    /* Blocks of other streams go back through the shared list: where one thread makes what another
     * releases, its cache would run dry while the other's grows. */
    if (home != NULL && block->owner == &home->cache && ordered) {
        int locked = burni_stream_lock(home);
        burni_pool_give(&home->cache, block);
        burni_stream_unlock(home, locked);
        return;
    }
    burni_pool_give_shared(&device->pool, block, burni_snapshot_take(device));
}

/* ---- running --------------------------------------------------------------------------------- */

/* Masks speak of the first 32 inputs; a variadic op may have more. */
static int has_bit(uint32_t mask, uint32_t i)
{
    return i < 32 && (mask >> i & 1) != 0;
}

/* The cause of the first input that failed; bit i of `vars`: input i is a variable's memory. */
static burni_cause *look_at_inputs(const burni_launch *launch, uint64_t *vars)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        burni_storage *s = launch->storages[i];
        if (s == NULL) {
            continue;
        }
        mask |= (uint64_t)(burni_is_var(s) != 0) << i;
        if (!has_bit(launch->overwrite, i) &&
            atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
            return s->cause;
        }
    }
    *vars = mask;
    return NULL;
}

static void fail_outputs(const burni_launch *launch, burni_cause *cause)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s != NULL) {
            burni_storage_fail(s, cause);
        }
    }
}

static int32_t fail_launch(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    burn_err full = BURN_ERR_INIT;
    full.op = launch->op->def.id;
    int has_name = strncmp(err->text, launch->op->def.name, strlen(launch->op->def.name)) == 0;
    (void)burni_fail(&full, err->code, "%s%s%s", has_name ? "" : launch->op->def.name,
                     has_name ? "" : ": ", err->text);
    full.op = launch->op->def.id;
    burni_tag_append(launch->tag, &full);
    burni_cause *cause = burni_cause_new(&full);
    fail_outputs(launch, cause);
    burni_device_latch(stream->device, cause);
    burni_cause_unref(cause);
    return full.code;
}

/* Dense, from the first byte of its storage on. */
static int is_plain(const burni_launch *launch, uint32_t i)
{
    const burn_operand *o = &launch->operands[i];
    return o->offset == 0 && o->layout == BURN_LAYOUT_CONTIGUOUS;
}

/* Hands the memory of a dying input to output 0 where the row allows it; the input, or NULL. */
static burni_storage *reuse_input(const burni_launch *launch)
{
    burni_storage *out = launch->storages[launch->n_in];
    uint32_t mask = launch->resolved->in_place_mask;
    if (mask == 0 || launch->n_out != 1 || out == NULL || out->block != NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < launch->n_in; i++) {
        burni_storage *in = launch->storages[i];
        if (!has_bit(mask, i) || in == NULL || burni_is_var(in) || in->block == NULL ||
            in->block->bytes < out->bytes || in->fault != NULL || !is_plain(launch, i)) {
            continue;
        }
        /* Other operands may lie in the same memory only where each element is read before it is
         * written: by the same element of a pointwise op. */
        uint64_t uses = 0;
        int safe = 1;
        for (uint32_t k = 0; k < launch->n_in; k++) {
            if (launch->storages[k] == in) {
                uses++;
                safe &= k == i || (launch->op->pointwise && is_plain(launch, k));
            }
        }
        if (!safe) {
            continue;
        }
        uint64_t refs = atomic_load_explicit(&in->refs, memory_order_acquire);
        int last_handle = has_bit(launch->moved, i) && refs == 1 && uses == 1;
        if (!last_handle && refs != uses * BURNI_RECORD_REF) {
            continue;
        }
        if (!in->device->synchronous && (in->writer != out->writer || in->foreign)) {
            continue;
        }
        out->block = in->block;
        out->buffer = in->buffer;
        out->buffer_offset = in->buffer_offset;
        out->host = in->host;
        in->block = NULL;
        return in;
    }
    return NULL;
}

/* Points operands at memory. `offset` held the view's byte offset until now. */
static void bind(const burni_launch *launch, burn_operand *operands)
{
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        if (s == NULL) {
            continue;
        }
        operands[i].data = s->host != NULL ? (char *)s->host + operands[i].offset : NULL;
        operands[i].buffer = s->buffer;
        operands[i].offset += s->buffer_offset;
    }
}

/* As before, for a decomposition that takes the kernel's place. */
static void unbind(const burni_launch *launch, burn_operand *operands)
{
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        if (launch->storages[i] != NULL) {
            operands[i].offset -= launch->storages[i]->buffer_offset;
        }
    }
}

/* A variable that other streams used is overwritten after all that they were given. */
static int32_t wait_for_readers(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    burni_device *device = stream->device;
    uint32_t foreign = 0;
    for (uint32_t j = 0; j < launch->n_out; j++) {
        const burni_storage *s = launch->storages[launch->n_in + j];
        foreign |= s != NULL ? atomic_load_explicit(&s->foreign, memory_order_relaxed) : 0;
    }
    if (!foreign) {
        return BURN_OK;
    }
    (void)pthread_mutex_lock(&device->lock);
    burni_stream *other = device->streams;
    (void)pthread_mutex_unlock(&device->lock);
    int32_t rc = BURN_OK;
    for (; other != NULL && rc == BURN_OK; other = other->next) {
        uint64_t point = atomic_load_explicit(&other->submitted, memory_order_acquire);
        if (other != stream && point > 0) {
            rc = device->api->wait(stream->queue, other->queue, point, &stream->sink.err);
            rc = burni_stream_said(stream, "wait", rc, err);
        }
    }
    return rc;
}

static int32_t wait_for_inputs(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    const burn_device_api *api = stream->device->api;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        if (s == NULL || s->writer == NULL || s->writer == stream ||
            atomic_load_explicit(&s->state, memory_order_acquire) != BURNI_SUBMITTED) {
            continue;
        }
        atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
        int32_t rc =
            api->wait(stream->queue, s->writer->queue, s->write_point, &stream->sink.err);
        rc = burni_stream_said(stream, "wait", rc, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return launch->op->def.effect == BURN_EFFECT_STATE ? wait_for_readers(stream, launch, err)
                                                       : BURN_OK;
}

static int32_t launch_kernel(burni_stream *stream, const burni_launch *launch,
                             burn_operand *operands, const burn_operand *workspace,
                             const burn_operand *fault, burn_err *err)
{
    burn_call call;
    call.struct_size = sizeof(call);
    call.operand_stride = sizeof(burn_operand);
    call.n_in = launch->n_in;
    call.n_out = launch->n_out;
    call.n_companion = 0;
    call.flags = launch->math;
    call.queue = stream->queue;
    call.state = launch->resolved->state;
    call.operands = operands;
    call.attrs = launch->attrs;
    call.attrs_size = launch->attrs_size;
    call.attrs_revision = launch->attrs_size > 0 ? 1 : 0;
    call.workspace = workspace;
    call.fault = fault;
    call.tag = launch->tag;
    call.err = &stream->sink.err;
    const burn_row *row = launch->resolved->row;
    return burni_stream_said(stream, row->name, row->launch(&call), err);
}

/* The same with its time taken. */
static int32_t launch_measured(burni_stream *stream, const burni_launch *launch,
                               burn_operand *operands, const burn_operand *workspace,
                               const burn_operand *fault, burn_err *err)
{
    burni_measure m;
    burni_profile_before(stream, launch, operands, &m);
    int32_t rc = launch_kernel(stream, launch, operands, workspace, fault, err);
    burni_profile_after(stream, &m, rc);
    return rc;
}

static uint32_t way_of(const burni_stream *stream)
{
    return atomic_load_explicit(&stream->way, memory_order_relaxed);
}

static void publish(burni_stream *stream, const burni_launch *launch, uint64_t point)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s == NULL) {
            continue;
        }
        if (s->writer != NULL && s->writer != stream) {
            atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
        }
        /* Written only where it changes: the owner of a pending value looks at it without the lock.
         */
        if (s->writer != stream) {
            atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        }
        atomic_store_explicit(&s->write_point, point, memory_order_relaxed);
        if (s->cause != NULL) {
            burni_cause_unref(s->cause);
            s->cause = NULL;
        }
        atomic_store_explicit(&s->state, BURNI_SUBMITTED, memory_order_release);
    }
}

int32_t burni_stream_signal(burni_stream *stream, uint64_t *out_point, burn_err *err)
{
    const burn_device_api *api = stream->device->api;
    uint64_t point = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    int32_t rc = api->signal(stream->queue, point, &stream->sink.err);
    if (rc != BURN_OK && rc != BURN_E_DEVICE_LOST) {
        rc = api->signal(stream->queue, point, &stream->sink.err);
    }
    rc = burni_stream_said(stream, "signal", rc, err);
    if (rc == BURN_OK) {
        atomic_store_explicit(&stream->submitted, point, memory_order_release);
        *out_point = point;
    }
    return rc;
}

/* What an asynchronous device needs around a launch: waits, the fault word, the signal. */
static int32_t run_async(burni_stream *stream, const burni_launch *launch, burn_operand *operands,
                         const burn_operand *workspace, burn_err *err)
{
    int32_t rc = wait_for_inputs(stream, launch, err);
    burni_fault *fault = NULL;
    burn_operand word;
    word.kind = BURN_ABSENT; /* stays so unless the row may write a word of its own */
    if (rc == BURN_OK) {
        rc = burni_fault_for_launch(stream, launch, &fault, &word, err);
    }
    if (rc == BURN_OK) {
        int measured = (way_of(stream) & BURNI_WAY_MEASURED) != 0;
        rc = (measured ? launch_measured : launch_kernel)(
            stream, launch, operands, workspace, word.kind != BURN_ABSENT ? &word : NULL, err);
    }
    uint64_t point = 0;
    if (rc == BURN_OK) {
        rc = burni_stream_signal(stream, &point, err);
    }
    if (rc == BURN_OK) {
        burni_fault_attach(launch, fault, point);
        publish(stream, launch, point);
    }
    burni_fault_unref(fault);
    return rc;
}

/* Memory for the outputs that have none. */
static int32_t back_outputs(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s != NULL && s->block == NULL && burni_storage_back(stream, s, err) != BURN_OK) {
            return BURN_E_NO_MEMORY;
        }
    }
    return BURN_OK;
}

static burni_block *take_workspace(burni_stream *stream, const burni_launch *launch,
                                   burn_operand *workspace, burn_err *err)
{
    burni_block *scratch = burni_pool_take(&stream->device->pool, &stream->cache,
                                           launch->resolved->workspace_bytes, err);
    if (scratch != NULL) {
        memset(workspace, 0, sizeof(*workspace));
        workspace->kind = BURN_TENSOR;
        workspace->buffer = scratch->page->buffer;
        workspace->offset = scratch->offset;
        workspace->data =
            scratch->page->host != NULL ? scratch->page->host + scratch->offset : NULL;
    }
    return scratch;
}

/* Binds and launches; inside of the guards of the variables that it reads. */
static int32_t launch_bound(burni_stream *stream, const burni_launch *launch, uint64_t vars,
                            burn_operand *operands, const burn_operand *workspace, burn_err *err)
{
    if (__builtin_expect(vars != 0, 0)) {
        burni_guard_enter(launch->storages, vars);
    }
    bind(launch, operands);
    int32_t rc;
    uint32_t way = way_of(stream);
    if ((way & BURNI_WAY_QUEUED) != 0) {
        rc = run_async(stream, launch, operands, workspace, err);
    } else {
        rc = __builtin_expect(way != 0, 0)
                 ? launch_measured(stream, launch, operands, workspace, NULL, err)
                 : launch_kernel(stream, launch, operands, workspace, NULL, err);
        if (rc == BURN_OK) {
            publish(stream, launch, 0);
        }
    }
    if (__builtin_expect(rc != BURN_OK, 0)) {
        unbind(launch, operands);
    }
    if (__builtin_expect(vars != 0, 0)) {
        burni_guard_leave(launch->storages, vars);
    }
    return rc;
}

/* A kernel did not run: the input that lent its memory has it again. */
static void undo_reuse(const burni_launch *launch, burni_storage *reused)
{
    if (reused != NULL) {
        burni_storage *out = launch->storages[launch->n_in];
        reused->block = out->block;
        out->block = NULL;
    }
}

static int32_t refused(burni_stream *stream, const burni_launch *launch, int32_t rc,
                       burn_err *err)
{
    if (rc == BURN_E_UNSUPPORTED && (stream->window <= 1 || burni_fallback_runs(stream))) {
        return rc;
    }
    if (rc == BURN_E_UNSUPPORTED && launch->op->def.decompose != NULL) {
        burni_fallback(stream, launch);
        return BURN_OK;
    }
    err->code = rc;
    (void)fail_launch(stream, launch, err);
    return BURN_OK;
}

static int32_t run(burni_stream *stream, const burni_launch *launch, burn_operand *operands)
{
    uint64_t vars = 0;
    burni_cause *cause = look_at_inputs(launch, &vars);
    if (__builtin_expect(cause != NULL, 0)) {
        fail_outputs(launch, cause);
        return BURN_OK;
    }
    burn_err err;
    err.struct_size = sizeof(err);
    err.cap = sizeof(err.text);
    err.text[0] = '\0';
    err.code = 0;
    err.op = 0;
    err.backend_code = 0;
    burni_storage *reused = launch->resolved->in_place_mask != 0 ? reuse_input(launch) : NULL;
    if (back_outputs(stream, launch, &err) != BURN_OK) {
        (void)fail_launch(stream, launch, &err);
        return BURN_OK;
    }
    burn_operand workspace;
    burni_block *scratch = NULL;
    if (launch->resolved->workspace_bytes > 0) {
        scratch = take_workspace(stream, launch, &workspace, &err);
        if (scratch == NULL) {
            (void)fail_launch(stream, launch, &err);
            return BURN_OK;
        }
    }
    int32_t rc = launch_bound(stream, launch, vars, operands, scratch != NULL ? &workspace : NULL,
                              &err);
    if (scratch != NULL) {
        burni_pool_give(&stream->cache, scratch);
    }
    stream->n_launched++;
    if (__builtin_expect(rc != BURN_OK, 0)) {
        undo_reuse(launch, reused);
        return refused(stream, launch, rc, &err);
    }
    return BURN_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Records of up to this many bytes are recycled by the stream. */
#define SMALL_RECORD 1600u

static size_t record_size(const burni_launch *launch)
{
    uint32_t n = launch->n_in + launch->n_out;
    return sizeof(burni_record) + n * (sizeof(burn_operand) + sizeof(burni_storage *)) +
           (size_t)n * 2 * BURN_MAX_RANK * sizeof(int64_t) + n * 16u + launch->attrs_size + 16;
}

static burni_record *record_new(burni_stream *stream, const burni_launch *launch)
{
    size_t size = record_size(launch);
    burni_record *r = NULL;
    if (size <= SMALL_RECORD && stream->free_records != NULL) {
        r = stream->free_records;
        stream->free_records = r->next;
        return r;
    }
    r = burni_alloc(size <= SMALL_RECORD ? SMALL_RECORD : size);
    if (r != NULL) {
        r->size_class = size <= SMALL_RECORD;
    }
    return r;
}

static void copy_operand(burn_operand *to, const burn_operand *from, char **p)
{
    *to = *from;
    int64_t *dims = (int64_t *)(void *)*p;
    int64_t *strides = dims + BURN_MAX_RANK;
    for (uint32_t d = 0; d < from->rank; d++) {
        dims[d] = from->dims[d];
        strides[d] = from->strides[d];
    }
    to->dims = dims;
    to->strides = strides;
    *p += 2 * BURN_MAX_RANK * sizeof(int64_t);
    if (from->kind == BURN_IMMEDIATE) {
        memcpy(*p, from->data, 16);
        to->data = *p;
        *p += 16;
    }
}

/* Under the lock of the stream that writes it. A record that has run leaves the state SUBMITTED or
 * FAILED, which says nothing of the records that come after it; this count does. */
static void count_write(burni_storage *s, int32_t change)
{
    uint32_t now = atomic_load_explicit(&s->writes, memory_order_relaxed) + (uint32_t)change;
    atomic_store_explicit(&s->writes, now, memory_order_release);
}

/* Copies a launch and takes references: from here on the record keeps its storages alive. */
static void fill_record(burni_stream *stream, burni_record *r, const burni_launch *launch)
{
    uint32_t n = launch->n_in + launch->n_out;
    r->launch = *launch;
    burni_resolved_hold(launch->resolved);
    char *p = (char *)(r + 1);
    r->launch.operands = (burn_operand *)(void *)p;
    p += n * sizeof(burn_operand);
    r->launch.storages = (burni_storage **)(void *)p;
    p += n * sizeof(burni_storage *);
    for (uint32_t i = 0; i < n; i++) {
        copy_operand(&r->launch.operands[i], &launch->operands[i], &p);
        burni_storage *s = launch->storages[i];
        r->launch.storages[i] = s;
        if (s != NULL) {
            burni_storage_ref(s, BURNI_RECORD_REF);
        }
    }
    if (launch->attrs_size > 0) {
        memcpy(p, launch->attrs, launch->attrs_size);
        r->launch.attrs = p;
    }
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s == NULL) {
            continue;
        }
        count_write(s, 1);
        atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        /* A failed variable stays so for the records before this one, which may heal it. */
        if (atomic_load_explicit(&s->state, memory_order_acquire) != BURNI_FAILED) {
            atomic_store_explicit(&s->state, BURNI_PENDING, memory_order_release);
        }
    }
    r->launch.moved = 0;
}

static void release_record(burni_stream *stream, burni_record *r)
{
    burni_resolved_let_go(r->launch.resolved);
    for (uint32_t i = 0; i < r->launch.n_in + r->launch.n_out; i++) {
        if (r->launch.storages[i] != NULL) {
            if (i >= r->launch.n_in) {
                count_write(r->launch.storages[i], -1);
            }
            burni_storage_unref(r->launch.storages[i], BURNI_RECORD_REF);
        }
    }
    if (r->size_class) {
        r->next = stream->free_records;
        stream->free_records = r;
    } else {
        burni_free(r);
    }
}

/* Nobody but dead records can see its outputs, and it has no effect. */
static int is_dead(const burni_record *r)
{
    if (r->launch.op->def.effect > BURN_EFFECT_RANDOM) {
        return 0;
    }
    for (uint32_t j = 0; j < r->launch.n_out; j++) {
        burni_storage *s = r->launch.storages[r->launch.n_in + j];
        if (s != NULL && atomic_load_explicit(&s->refs, memory_order_acquire) != BURNI_RECORD_REF) {
            return 0;
        }
    }
    return 1;
}

/* Drops dead records, newest first, so that what only they needed dies with them. */
static void drop_dead(burni_stream *stream)
{
    uint32_t kept = stream->n_records;
    for (uint32_t i = stream->n_records; i-- > 0;) {
        burni_record *r = stream->records[i];
        if (is_dead(r)) {
            release_record(stream, r);
            stream->n_dropped++;
        } else {
            stream->records[--kept] = r;
        }
    }
    uint32_t n = stream->n_records - kept;
    memmove(stream->records, stream->records + kept, n * sizeof(stream->records[0]));
    stream->n_records = n;
}

/* Runs the first `count` records. The lock is held. */
static void run_records(burni_stream *stream, uint32_t count)
{
    if (count > stream->n_records) {
        count = stream->n_records;
    }
    for (uint32_t i = 0; i < count; i++) {
        burni_record *r = stream->records[i];
        int32_t rc = run(stream, &r->launch, r->launch.operands);
        (void)rc;
        release_record(stream, r);
    }
    memmove(stream->records, stream->records + count,
            (stream->n_records - count) * sizeof(stream->records[0]));
    stream->n_records -= count;
}

void burni_stream_drain(burni_stream *stream)
{
    if (stream->window <= 1) {
        return;
    }
    int locked = burni_stream_lock(stream);
    if (locked) {
        drop_dead(stream);
        run_records(stream, stream->n_records);
    }
    burni_stream_unlock(stream, locked);
}

void burni_storage_launch(burni_storage *s)
{
    if (atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_PENDING ||
        atomic_load_explicit(&s->writes, memory_order_acquire) > 0) {
        burni_stream_drain(s->writer);
    }
}

/* A variable that another stream wrote last becomes this one's when the record is kept. Records
 * before it that read the variable no longer see whom to wait for, so the queue waits now. */
static int32_t take_over(burni_stream *stream, const burni_launch *launch)
{
    int32_t rc = BURN_OK;
    for (uint32_t j = 0; j < launch->n_out && rc == BURN_OK; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        burni_stream *writer = s != NULL ? s->writer : NULL;
        if (writer == NULL || writer == stream || stream->device->synchronous ||
            atomic_load_explicit(&s->state, memory_order_acquire) != BURNI_SUBMITTED) {
            continue;
        }
        atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
        rc = stream->device->api->wait(stream->queue, writer->queue, s->write_point, NULL);
    }
    return rc;
}

int32_t burni_stream_append(burni_stream *stream, const burni_launch *launch)
{
    if (stream->window <= 1 || burni_fallback_runs(stream)) {
        return run(stream, launch, launch->operands);
    }
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        if (s != NULL && s->writer != NULL && s->writer != stream) {
            burni_storage_launch(s);
        }
    }
    int locked = burni_stream_lock(stream);
    if (stream->n_records >= stream->window) {
        drop_dead(stream);
        if (stream->n_records >= stream->window) {
            run_records(stream, stream->n_records / 2 + 1);
        }
    }
    int32_t rc = take_over(stream, launch);
    burni_record *r = rc == BURN_OK ? record_new(stream, launch) : NULL;
    if (r != NULL) {
        fill_record(stream, r, launch);
        stream->records[stream->n_records++] = r;
    }
    burni_stream_unlock(stream, locked);
    return rc != BURN_OK || r != NULL ? rc : BURN_E_NO_MEMORY;
}

/* ---- waiting --------------------------------------------------------------------------------- */

int32_t burni_stream_wait(const burni_stream *stream, uint64_t point, burn_err *err)
{
    burni_sink sink;
    burni_sink_begin(&sink);
    const burni_device *device = stream->device;
    int32_t rc = device->api->host_wait(stream->queue, point, UINT64_MAX, &sink.err);
    if ((way_of(stream) & BURNI_WAY_MEASURED) != 0) {
        burni_profile_collect(stream);
    }
    return burni_sink_end(&sink, device->backend, "host_wait", rc, err);
}

int32_t burni_stream_finish(burni_stream *stream, burn_err *err)
{
    burni_stream_drain(stream);
    if (stream->device->synchronous) {
        return BURN_OK;
    }
    uint64_t point = atomic_load_explicit(&stream->submitted, memory_order_acquire);
    return point == 0 ? BURN_OK : burni_stream_wait(stream, point, err);
}

int32_t burni_storage_wait(burni_thread *thread, burni_storage *s, burn_err *err)
{
    burni_storage_launch(s);
    if (atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
        burni_cause_write(s->cause, err);
        return s->cause->code;
    }
    if (s->device->synchronous || s->writer == NULL) {
        return BURN_OK;
    }
    int32_t rc = burni_stream_wait(s->writer, s->write_point, err);
    if (rc == BURN_OK && s->fault != NULL) {
        rc = burni_fault_check(thread, s, err);
    }
    return rc;
}

void burni_device_close(burni_device *device)
{
    if (atomic_exchange(&device->closed, 1) != 0) {
        return;
    }
    for (burni_stream *s = device->streams; s != NULL; s = s->next) {
        burni_stream_drain(s);
        burni_profile_leave(s);
        device->api->queue_destroy(s->queue);
    }
    device->api->close(device->handle);
}

static void thread_exit(burni_thread *thread)
{
    burni_profile_thread_exit(thread);
    for (uint32_t i = 0; i < BURNI_MAX_DEVICES; i++) {
        burni_stream *s = thread->streams[i];
        if (s == NULL || atomic_load(&s->device->closed)) {
            continue;
        }
        burni_stream_drain(s);
        if (s->n_open_faults > 0) {
            burn_err err = BURN_ERR_INIT;
            (void)burni_stream_look_at_faults(s, &err);
        }
        thread->streams[i] = NULL;
        (void)pthread_mutex_lock(&s->device->lock);
        s->owner = NULL;
        (void)pthread_mutex_unlock(&s->device->lock);
    }
}

__attribute__((constructor)) static void install_hooks(void)
{
    burni_hooks_table.storage_dead = storage_dead;
    burni_hooks_table.thread_exit = thread_exit;
}
