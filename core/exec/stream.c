/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stream.c - streams: getting one, keeping records, waiting. See stream.h for the rules.
 *
 * Streams are never freed: when a thread ends, its stream waits for the next thread, with its
 * queue, its blocks and its resolved rows. So a storage may always point at its writer.
 */
#include "exec/stream.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/fallback.h"
#include "exec/fault.h"
#include "exec/launch.h"
#include "exec/profile.h"

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
        int32_t rc = burni_launch_run(stream, &r->launch, r->launch.operands);
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
static int32_t take_over(burni_stream *stream, const burni_launch *launch, burn_err *err)
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
        rc = stream->device->api->wait(stream->queue, writer->queue, s->write_point,
                                       &stream->sink.err);
        rc = burni_stream_said(stream, "wait", rc, err);
    }
    return rc;
}

int32_t burni_stream_append(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    if (stream->window <= 1) {
        return burni_launch_run_now(stream, launch, launch->operands);
    }
    if (burni_fallback_runs(stream)) {
        return burni_launch_run(stream, launch, launch->operands);
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
    int32_t rc = take_over(stream, launch, err);
    burni_record *r = rc == BURN_OK ? record_new(stream, launch) : NULL;
    if (r != NULL) {
        fill_record(stream, r, launch);
        stream->records[stream->n_records++] = r;
    }
    burni_stream_unlock(stream, locked);
    return rc != BURN_OK || r != NULL ? rc : BURN_E_NO_MEMORY;
}

/* ---- waiting --------------------------------------------------------------------------------- */

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

int32_t burni_stream_wait(const burni_stream *stream, uint64_t point, burn_err *err)
{
    burni_sink sink;
    burni_sink_begin(&sink);
    const burni_device *device = stream->device;
    int32_t rc = device->api->host_wait(stream->queue, point, UINT64_MAX, &sink.err);
    if ((burni_stream_way(stream) & BURNI_WAY_MEASURED) != 0) {
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
