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
#include "exec/check_bounds.h"
#include "exec/dry.h"
#include "exec/fallback.h"
#include "exec/fault.h"
#include "exec/follow.h"
#include "exec/launch.h"
#include "exec/lock.h"
#include "exec/plan.h"
#include "exec/profile.h"
#include "exec/record.h"
#include "exec/recording.h"
#include "exec/unrun.h"
#include "loader/ask.h"
#include "tune/environment.h"

#include <string.h>

static int is_mine(const burni_stream *stream)
{
    return burni_stream_is_mine(stream, burni_thread_current);
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
    return burni_ask_queue(device->api, device->handle, device->backend, &s->queue, err);
}

static burni_stream *make_stream(burni_device *device, burni_thread *thread, burn_err *err)
{
    burni_stream *s = burni_calloc(1, sizeof(*s));
    if (s == NULL || !burni_lock_init(s)) {
        burni_free(s);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", device->name);
        return NULL;
    }
    if (make_queue(device, s, err) != BURN_OK) {
        burni_lock_destroy(s);
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

burni_stream *burni_stream_open(burni_thread *thread, burni_device *device, burn_err *err)
{
    /* A thread that began before modes were read learns of them here. */
    thread->watch |= atomic_load(&burni_watch_all);
    burni_stream *s = adopt_idle(device, thread);
    if (s == NULL) {
        s = make_stream(device, thread, err);
    }
    thread->streams[device->index] = s;
    if (s != NULL) {
        burni_bounds_stream(s);
    }
    if (s != NULL && s->sequence != NULL) {
        s->sequence->home = thread;
    }
    return s;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Hook: the last reference to a storage is gone. */
static void storage_dead(burni_storage *s)
{
    if (s->unrun != NULL) {
        burni_unrun_drop(s);
    }
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
    if (block->klass >= BURNI_N_CLASSES) {
        burni_pool_forget(block);
        return;
    }
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

/* Runs what is needed of the records, by the plan or in order, and frees all of them. */
static void run_batch(burni_stream *stream, const burni_batch *batch, const uint8_t *needed,
                      burni_plan *plan)
{
    for (uint32_t i = batch->n; i-- > 0;) {
        if (!needed[i]) {
            burni_record_done(batch->slots, batch->records[i]);
            stream->n_dropped++;
        }
    }
    if (plan != NULL) {
        (void)burni_plan_run(stream, batch, plan);
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        burni_record *r = batch->records[i];
        if (!r->done) {
            burni_stream_runs(stream, i);
            burni_record_run(stream, batch->slots, r);
        }
        burni_record_free(stream, r);
    }
    burni_stream_passed(stream, batch->n);
}

/* Results that only scopes hold are not wanted now: takes them out, finds the plan without them,
 * and leaves what makes them. 0: it can't be done, and everything is as it was. */
static int run_without(burni_stream *stream, burni_batch *batch, const burni_storage *target,
                       uint8_t *alive, uint8_t *needed)
{
    uint8_t all_alive[BURNI_MAX_WINDOW];
    uint8_t left[BURNI_MAX_WINDOW];
    uint8_t written[BURNI_MAX_WINDOW];
    memcpy(all_alive, alive, batch->n);
    if (burni_unrun_find(stream, batch, target, alive, left) == 0) {
        return 0;
    }
    burni_records_need(batch, alive, needed);
    burni_plan *plan =
        batch->n > 1 ? burni_plan_for(stream, batch, alive, needed, 1) : NULL;
    memcpy(written, needed, batch->n);
    if (plan != NULL) {
        burni_plan_writes(plan, written);
    }
    if (!burni_unrun_leave(stream, batch, left, written)) {
        memcpy(alive, all_alive, batch->n);
        burni_records_need(batch, alive, needed);
        return 0;
    }
    burni_unrun_settle(batch);
    run_batch(stream, batch, needed, plan);
    return 1;
}

/* All records, when there is a plan that needs each of them: the way of a loop. */
static int run_whole(burni_stream *stream, burni_batch *batch, const uint8_t *alive)
{
    burni_plan *plan = burni_plan_of_all(stream, batch, alive);
    if (plan == NULL) {
        return 0;
    }
    burni_dry_calls(stream, batch->n);
    batch->is_whole = 1;
    (void)burni_plan_run(stream, batch, plan);
    uint32_t n = batch->n;
    for (uint32_t i = 0; i < n; i++) {
        burni_record *r = stream->records[i];
        burni_record_ran(r);
        burni_record_free(stream, r);
    }
    burni_stream_passed(stream, n);
    stream->n_records = 0;
    stream->checks = 0;
    return 1;
}

/* Runs the first `count` records, but for those that nobody sees. The lock is held. `target`: what
 * the cut is for, when it is the owner's read; else NULL. */
static void run_records(burni_stream *stream, uint32_t count, int may_plan,
                        const burni_storage *target)
{
    uint8_t alive[BURNI_MAX_WINDOW];
    uint8_t needed[BURNI_MAX_WINDOW];
    burni_batch batch = {stream->records, stream->sequence->slots, stream->n_records,
                         stream->sequence->n_slots, stream->checks, 0, 0, 0};
    batch.changed = burni_records_alive(&batch, alive);
    if (count == batch.n && target == NULL && run_whole(stream, &batch, alive)) {
        return;
    }
    burni_records_needed(&batch, count, alive, needed);
    batch.n = count;
    burni_dry_calls(stream, count);
    if (target == NULL || !run_without(stream, &batch, target, alive, needed)) {
        burni_plan *plan =
            count > 1 ? burni_plan_for(stream, &batch, alive, needed, may_plan) : NULL;
        run_batch(stream, &batch, needed, plan);
    }
    memmove(stream->records, stream->records + count,
            (stream->n_records - count) * sizeof(stream->records[0]));
    stream->n_records -= count;
    stream->checks = stream->n_records > 0 ? stream->checks : 0;
}

static void drain(burni_stream *stream, const burni_storage *target)
{
    if (stream->window == 1 || burni_fallback_runs(stream)) {
        return;
    }
    int locked = burni_stream_lock(stream);
    if (locked && stream->n_records > 0) {
        run_records(stream, stream->n_records, 1, target);
    }
    burni_stream_unlock(stream, locked);
}

void burni_stream_drain(burni_stream *stream)
{
    drain(stream, NULL);
}

/* The owner's, no call has come since the last cut, and what is known is still known. */
static int is_cut(const burni_stream *stream)
{
    const burni_sequence *q = stream->sequence;
    return is_mine(stream) && stream->window == BURNI_WINDOW_AUTO && !stream->defers &&
           (q == NULL || (q->length == 0 && q->environment == burni_environment_on()));
}

void burni_stream_cut_for(burni_stream *stream, const burni_storage *target)
{
    if (is_cut(stream)) {
        return;
    }
    if (!is_mine(stream) || stream->sequence == NULL || burni_fallback_runs(stream)) {
        drain(stream, is_mine(stream) ? target : NULL);
        return;
    }
    int locked = burni_stream_lock(stream);
    if (locked && stream->n_records > 0) {
        run_records(stream, stream->n_records, 1, target);
    }
    burni_sequence_cut(stream->sequence);
    if (__builtin_expect(stream->sequence->environment != burni_environment_on(), 0)) {
        burni_plans_learn(stream);
    }
    burni_stream_unlock(stream, locked);
    burni_follow_cut(stream);
    stream->defers = 0;
    burni_thread_current->open_sequences &= ~(UINT64_C(1) << stream->device->index);
}

void burni_stream_cut(burni_stream *stream)
{
    burni_stream_cut_for(stream, NULL);
}

void burni_storage_launch(burni_storage *s)
{
    int32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
    if (state == BURNI_PENDING || atomic_load_explicit(&s->writes, memory_order_acquire) > 0) {
        burni_stream_drain(s->writer);
    }
    /* It may have been left by whoever ran the others meanwhile. */
    if (burni_is_unrun(s)) {
        burni_unrun_make(s);
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

/* What other threads' streams still have to do to the operands. */
static void drain_writers(const burni_stream *stream, const burni_launch *launch)
{
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        burni_stream *writer = s != NULL ? s->writer : NULL;
        if (writer != NULL && writer != stream) {
            burni_storage_launch(s);
        }
    }
}

/* Keeps the launch, whose link has been added to the sequence. The lock is held. */
static int32_t keep(burni_stream *stream, const burni_launch *launch, const uint32_t *slots,
                    uint64_t before, burn_err *err)
{
    int32_t rc = take_over(stream, launch, err);
    burni_record *r = rc == BURN_OK ? burni_record_new(stream, launch, slots, before) : NULL;
    if (r == NULL) {
        burni_sequence_spoil(stream->sequence);
        return rc != BURN_OK ? rc : BURN_E_NO_MEMORY;
    }
    stream->records[stream->n_records++] = r;
    stream->checks |= launch->check != NULL;
    burni_follow_learn(stream, r);
    if (launch->op->def.effect == BURN_EFFECT_HOST) {
        run_records(stream, stream->n_records, 1, NULL);
    }
    return BURN_OK;
}

static int32_t append_waiting(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    uint32_t slots[BURN_MAX_OPERANDS];
    int locked = burni_stream_lock(stream);
    if (burni_sequence_is_full(stream->sequence, launch)) {
        run_records(stream, stream->n_records, 0, NULL);
        burni_sequence_cut(stream->sequence);
    } else if (stream->n_records >= stream->window) {
        /* Where the older half ends differs from time to time: a plan would not serve again. */
        run_records(stream, stream->n_records / 2 + 1, 0, NULL);
    }
    uint64_t before = stream->sequence->chain;
    burni_sequence_add(stream->sequence, launch, slots);
    int32_t rc = keep(stream, launch, slots, before, err);
    burni_stream_unlock(stream, locked);
    return rc;
}

/* Another way than the one that was seen before: what waits runs, and this call as well. */
static int32_t leave_known(burni_stream *stream, const burni_launch *launch)
{
    burni_stream_drain(stream);
    stream->defers = 0;
    burni_sequence_learn(stream->sequence);
    return burni_launch_run_now(stream, launch, launch->operands);
}

static int32_t append_auto(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    burni_sequence *q = stream->sequence;
    uint32_t slots[BURN_MAX_OPERANDS];
    int locked = burni_stream_lock(stream);
    if (q->length >= BURNI_MAX_WINDOW || burni_sequence_is_full(q, launch)) {
        if (stream->n_records > 0) {
            run_records(stream, stream->n_records, 1, NULL);
        }
        burni_sequence_cut(q);
    }
    uint64_t before = q->chain;
    burni_sequence_add(q, launch, slots);
    burni_thread_current->open_sequences |= UINT64_C(1) << stream->device->index;
    int known = burni_sequence_is_known(q);
    if (!known && stream->cache.dry != NULL) {
        burni_sequence_learn(q);
        known = 1;
    }
    int32_t rc = BURN_OK;
    if (known && !stream->defers) {
        /* From here on others may look for records. */
        stream->defers = 1;
        locked = burni_stream_lock(stream);
    }
    if (known) {
        rc = keep(stream, launch, slots, before, err);
    }
    burni_stream_unlock(stream, locked);
    if (known) {
        return rc;
    }
    stream->expected = NULL;
    if (stream->defers) {
        return leave_known(stream, launch);
    }
    burni_sequence_learn(q);
    return burni_launch_run_now(stream, launch, launch->operands);
}

static int32_t append(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    if (stream->window == 1) {
        return burni_launch_run_now(stream, launch, launch->operands);
    }
    if (stream->sequence == NULL) {
        stream->sequence = burni_sequence_new(stream->owner);
        if (stream->sequence == NULL) {
            return BURN_E_NO_MEMORY;
        }
        burni_plans_learn(stream);
    }
    drain_writers(stream, launch);
    return stream->window == BURNI_WINDOW_AUTO ? append_auto(stream, launch, err)
                                               : append_waiting(stream, launch, err);
}

int32_t burni_stream_append(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    if (stream->window != 1 && burni_fallback_runs(stream)) {
        return burni_launch_run(stream, launch, launch->operands);
    }
    if (__builtin_expect(stream->recording == NULL, 1) || burni_fallback_runs(stream)) {
        return append(stream, launch, err);
    }
    uint32_t n = burni_recording_add(stream->recording, launch);
    int32_t rc = append(stream, launch, err);
    if (rc != BURN_OK) {
        /* What takes its place is kept instead. */
        burni_recording_take_back(stream->recording, n);
    }
    return rc;
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
    int32_t rc = burni_device_check_fork(device, err);
    if (rc != BURN_OK) {
        return rc;
    }
    rc = device->api->host_wait(stream->queue, point, UINT64_MAX, &sink.err);
    if ((burni_stream_way(stream) & BURNI_WAY_MEASURED) != 0) {
        burni_profile_collect(stream);
    }
    return burni_sink_end(&sink, device->backend, "host_wait", rc, err);
}

int32_t burni_stream_finish(burni_stream *stream, burn_err *err)
{
    burni_stream_cut(stream);
    if (is_mine(stream)) {
        burni_unrun_make_all(burni_thread_current, stream->device);
    }
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
    if (atomic_exchange(&device->closed, 1) != 0 || atomic_load(&device->forked)) {
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
    burni_recording_abandon(thread);
    burni_dry_abandon(thread);
    for (uint32_t i = 0; i < BURNI_MAX_DEVICES; i++) {
        burni_stream *s = thread->streams[i];
        if (s == NULL || atomic_load(&s->device->closed)) {
            continue;
        }
        burni_stream_cut(s);
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

static void scopes_ended(burni_thread *thread)
{
    for (uint64_t rest = thread->open_sequences; rest != 0; rest &= rest - 1) {
        burni_stream *stream = thread->streams[__builtin_ctzll(rest)];
        burni_stream_cut(stream);
    }
}

__attribute__((constructor)) static void install_hooks(void)
{
    burni_hooks_table.storage_dead = storage_dead;
    burni_hooks_table.thread_exit = thread_exit;
    burni_hooks_table.scopes_ended = scopes_ended;
    burni_hooks_table.wanted = burni_unrun_make;
}
