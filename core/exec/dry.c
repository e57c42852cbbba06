/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dry.c - begin, end and the account of dry runs. See dry.h.
 *
 * The account hangs from the stream's cache, whose blocks it counts. All that a thread's later
 * calls depend on (random numbers, what is checked) is put back at the end; sequences that were
 * learnt and plans that were made stay, since they are those of the program.
 */
#include "exec/dry.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/check.h"
#include "exec/guard.h"
#include "exec/unrun.h"

#include <burn/plans.h>
#include <stdio.h>
#include <string.h>

typedef struct dry_run {
    burni_dry_memory memory; /* first: the cache points at it */
    burn_dry_run report;
    uint64_t rng_seed;
    uint64_t rng_counter;
    uint32_t checks;
    uint32_t zero;
} dry_run;

static dry_run *run_of(const burni_stream *stream)
{
    return (dry_run *)(void *)stream->cache.dry;
}

/* ---- in it ----------------------------------------------------------------------------------- */

void burni_count_dry_calls(burni_stream *stream, uint32_t n)
{
    run_of(stream)->report.calls += n;
}

static void note_largest(burn_dry_run *report, const burni_launch *launch, uint32_t k)
{
    const burn_operand *o = &launch->operands[k];
    const burni_storage *s = launch->storages[k];
    if (s->bytes <= report->largest) {
        return;
    }
    report->largest = s->bytes;
    report->largest_dtype = o->dtype;
    report->largest_rank = o->rank;
    memcpy(report->largest_dims, o->dims, o->rank * sizeof(o->dims[0]));
    (void)snprintf(report->largest_op, sizeof(report->largest_op), "%s", launch->op->def.name);
}

/* A variable from before has its value still. */
static int keeps_value(const burni_storage *s)
{
    return burni_is_var(s) && s->block != NULL && s->block->klass < BURNI_N_CLASSES;
}

void burni_dry_launched(burni_stream *stream, const burni_launch *launch)
{
    burn_dry_run *report = &run_of(stream)->report;
    report->launches++;
    report->calls += !launch->waited && launch->op->def.id != BURN_OP_FUSED;
    for (uint32_t k = launch->n_in; k < launch->n_in + launch->n_out; k++) {
        burni_storage *s = launch->storages[k];
        if (s == NULL) {
            continue;
        }
        note_largest(report, launch, k);
        atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        if (!keeps_value(s)) {
            burni_storage_fail(s, &burni_cause_dry);
        } else if (s->cause == NULL) {
            atomic_store_explicit(&s->state, BURNI_SUBMITTED, memory_order_release);
        }
    }
}

void burni_dry_variable(const burni_thread *thread, const burni_storage *s)
{
    const burni_stream *stream = thread->streams[s->device->index];
    if (stream != NULL && burni_is_dry(stream)) {
        burn_dry_run *report = &run_of(stream)->report;
        report->n_variables++;
        report->variable_bytes += s->bytes;
    }
}

int burni_storage_failed(const burni_thread *thread, const burni_storage *s)
{
    const burni_stream *stream = thread->streams[s->device->index];
    int is_excused = stream != NULL && burni_is_dry(stream) && s->cause == &burni_cause_dry;
    return !is_excused && atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static burni_stream *dry_stream(const burni_thread *thread)
{
    burni_stream *found = NULL;
    for (uint32_t i = 0; thread != NULL && i < BURNI_MAX_DEVICES && found == NULL; i++) {
        burni_stream *s = thread->streams[i];
        found = s != NULL && burni_is_dry(s) ? s : NULL;
    }
    return found;
}

static void leave(burni_thread *thread, burni_stream *stream)
{
    dry_run *run = run_of(stream);
    burni_stream_cut(stream);
    int locked = burni_stream_lock(stream);
    (void)atomic_fetch_and(&stream->way, ~(uint32_t)BURNI_WAY_DRY);
    stream->cache.dry = NULL;
    burni_stream_unlock(stream, locked);
    thread->rng_seed = run->rng_seed;
    thread->rng_counter = run->rng_counter;
    thread->watch |= run->checks;
}

void burni_dry_abandon(burni_thread *thread)
{
    burni_stream *stream = dry_stream(thread);
    if (stream != NULL) {
        dry_run *run = run_of(stream);
        leave(thread, stream);
        burni_free(run);
    }
}

int32_t burn_dry_run_begin(burn_device *device, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "dry run: the device is NULL");
    }
    if (thread->recording != NULL || dry_stream(thread) != NULL) {
        return burni_fail(err, BURN_E_STATE, "dry run: this thread %s already; end it first",
                          thread->recording != NULL ? "keeps a step" : "is in one");
    }
    burni_stream *stream = burni_stream_get(thread, device->core, err);
    if (stream == NULL) {
        return err->code;
    }
    dry_run *run = burni_calloc(1, sizeof(*run));
    if (run == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "dry run: out of host memory");
    }
    burni_stream_cut(stream);
    burni_unrun_make_all(thread, device->core);
    int64_t before = atomic_load(&stream->cache.in_use) - atomic_load(&stream->cache.given_back);
    run->report.before = before > 0 ? (uint64_t)before : 0;
    run->memory.serial = burni_pool_dry_serial();
    run->rng_seed = thread->rng_seed;
    run->rng_counter = thread->rng_counter;
    run->checks = thread->watch & BURNI_CHECKS;
    thread->watch &= ~BURNI_CHECKS;
    int locked = burni_stream_lock(stream);
    stream->cache.dry = &run->memory;
    (void)atomic_fetch_or(&stream->way, BURNI_WAY_DRY);
    burni_stream_unlock(stream, locked);
    return BURN_OK;
}

int32_t burn_dry_run_end(burn_dry_run *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (burni_check_output("dry run", out, sizeof(*out), err) != BURN_OK) {
        return err->code;
    }
    burni_thread *thread = burni_thread_current;
    burni_stream *stream = dry_stream(thread);
    if (stream == NULL) {
        return burni_fail(err, BURN_E_STATE,
                          "dry run: this thread is in none; call burn_dry_run_begin first");
    }
    dry_run *run = run_of(stream);
    leave(thread, stream);
    *out = run->report;
    out->struct_size = sizeof(*out);
    out->peak_bytes = (uint64_t)run->memory.peak_taken;
    out->live_bytes = (uint64_t)run->memory.peak_live;
    burni_free(run);
    return BURN_OK;
}
