/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unrun.c - finding, leaving and making values that only a scope holds. See unrun.h.
 *
 * Only pure and random calls with one output are left: those give the same when they run later.
 * What is left holds its operands as a handle would, so they are neither overwritten nor given
 * away, and a variable that one of them belongs to would be copied first; that is why calls on
 * variables are not left. Locks: a stream's, then that of making.
 */
#include "exec/unrun.h"

#include "base/alloc.h"
#include "exec/guard.h"
#include "exec/launch.h"

#include <string.h>

/* So many handles of the thread are looked at, the newest ones. */
#define MAX_LOOKED_AT 4096
/* So many are left at a cut: each may hold the next, and they are made and dropped one inside the
 * other. */
#define MAX_LEFT 64

/* ---- finding --------------------------------------------------------------------------------- */

/* Handles that only a scope of the thread holds, per slot. */
static void count_handles(const burni_thread *thread, burni_stream *stream, uint16_t *counts)
{
    uint32_t from = thread->n_items > MAX_LOOKED_AT ? thread->n_items - MAX_LOOKED_AT : 0;
    for (uint32_t i = from; i < thread->n_items; i++) {
        const burn_tensor *t = thread->scope_items[i];
        if (t == NULL || t->kind != BURN_TENSOR || t->storage == NULL ||
            atomic_load_explicit(&t->refs, memory_order_acquire) != 1 ||
            t->storage->writer != stream ||
            atomic_load_explicit(&t->storage->state, memory_order_acquire) != BURNI_PENDING) {
            continue;
        }
        uint32_t slot = burni_sequence_find(stream->sequence, t->storage);
        if (slot != BURNI_SLOT_NONE) {
            counts[slot]++;
        }
    }
}

static int reads_a_variable(const burni_record *r)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->launch.storages[i] != NULL && burni_is_var(r->launch.storages[i])) {
            return 1;
        }
    }
    return 0;
}

/* Slots that stand before and are overwritten among the records: after them, what they held is
 * gone, whether their storages are still a variable's or not. */
static void find_rewritten(const burni_batch *batch, uint8_t *rewritten)
{
    memset(rewritten, 0, batch->n_slots);
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
            if (r->launch.op->def.n_aliases > 0 && r->slots[j] != BURNI_SLOT_NONE) {
                rewritten[r->slots[j]] = 1;
            }
        }
    }
}

static int reads_any(const burni_record *r, const uint8_t *slots)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->slots[i] != BURNI_SLOT_NONE && slots[r->slots[i]]) {
            return 1;
        }
    }
    return 0;
}

/* It would hold what holds others: chains of them would grow from cut to cut. */
static int reads_unrun(const burni_record *r)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        const burni_storage *s = r->launch.storages[i];
        if (s != NULL && burni_is_unrun(s)) {
            return 1;
        }
    }
    return 0;
}

static int may_be_left(const burni_record *r)
{
    return r->launch.n_out == 1 && r->launch.op->def.effect <= BURN_EFFECT_RANDOM &&
           r->slots[r->launch.n_in] != BURNI_SLOT_NONE && r->launch.op->def.n_aliases == 0 &&
           !reads_a_variable(r) && !reads_unrun(r);
}

uint32_t burni_unrun_find(burni_stream *stream, const burni_batch *batch,
                          const burni_storage *target, uint8_t *alive, uint8_t *left)
{
    uint16_t counts[BURNI_SLOTS];
    uint8_t rewritten[BURNI_SLOTS];
    uint32_t found = 0;
    find_rewritten(batch, rewritten);
    memset(counts, 0, batch->n_slots * sizeof(counts[0]));
    count_handles(burni_thread_current, stream, counts);
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        left[k] = 0;
        if (!alive[k] || !may_be_left(r) || reads_any(r, rewritten)) {
            continue;
        }
        const burni_storage *s = r->launch.storages[r->launch.n_in];
        uint64_t refs = atomic_load_explicit(&s->refs, memory_order_acquire);
        if (s != target && BURNI_HANDLES(refs) == counts[r->slots[r->launch.n_in]]) {
            alive[k] = 0;
            left[k] = 1;
            found++;
        }
    }
    return found;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void hold_operands(const burni_record *r)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->launch.storages[i] != NULL) {
            burni_storage_ref(r->launch.storages[i], 1);
        }
    }
}

static void let_go(burni_record *r)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->launch.storages[i] != NULL) {
            burni_storage_unref(r->launch.storages[i], 1);
        }
    }
    burni_record_let_go(r);
    burni_free(r); /* to no stream's list: any thread may be here */
}

static void take_back(const burni_batch *batch)
{
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        burni_storage *s = r->launch.n_out == 1 ? r->launch.storages[r->launch.n_in] : NULL;
        if (s != NULL && s->unrun != NULL) {
            burni_record *own = s->unrun;
            s->unrun = NULL;
            let_go(own);
        }
    }
}

/* From the newest on, so that what a record that is left is made of is seen before its maker. */
int burni_unrun_leave(const burni_batch *batch, uint64_t n_past, const uint8_t *left,
                      const uint8_t *written)
{
    uint8_t asked[BURNI_SLOTS]; /* slots that records which are left are made of */
    uint8_t rewritten[BURNI_SLOTS];
    uint32_t n = 0;
    find_rewritten(batch, rewritten);
    memset(asked, 0, batch->n_slots);
    for (uint32_t k = batch->n; k-- > 0;) {
        const burni_record *r = batch->records[k];
        if (written[k] || (!left[k] && !burni_record_makes_any(r, asked))) {
            continue;
        }
        /* What it is made of would be other values by then, or is one of a call's results. */
        int fits = may_be_left(r) && !reads_any(r, rewritten) && n++ < MAX_LEFT;
        burni_record *own = fits ? burni_record_copy(NULL, &r->launch, r->slots) : NULL;
        if (own == NULL) {
            take_back(batch);
            return 0;
        }
        own->age = n_past + k + 1;
        hold_operands(own);
        r->launch.storages[r->launch.n_in]->unrun = own;
        for (uint32_t i = 0; i < r->launch.n_in; i++) {
            if (r->slots[i] != BURNI_SLOT_NONE) {
                asked[r->slots[i]] = 1;
            }
        }
    }
    return 1;
}

void burni_unrun_settle(const burni_batch *batch)
{
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        burni_storage *s = r->launch.n_out == 1 ? r->launch.storages[r->launch.n_in] : NULL;
        if (s != NULL && s->unrun != NULL) {
            atomic_store_explicit(&s->state, BURNI_UNRUN, memory_order_release);
        }
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

/* The stream whose lock the thread has, or its own. */
static burni_stream *stream_here(const burni_storage *s)
{
    burni_thread *me = burni_thread_get();
    if (me != NULL && me->holding != NULL && me->holding->device == s->device) {
        return me->holding;
    }
    return me != NULL ? burni_stream_get(me, s->device, NULL) : NULL;
}

/* Under the lock below. The state changes when the launch is made, not before: whoever sees it
 * unchanged waits for the lock. */
static void make(burni_stream *stream, burni_storage *s)
{
    burni_record *r = s->unrun;
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        burni_storage *in = r->launch.storages[i];
        if (in != NULL && burni_is_unrun(in)) {
            make(stream, in);
        }
    }
    r->launch.dying = 0;
    uint64_t at = stream->at;
    stream->at = stream == s->writer ? r->age : at;
    (void)burni_launch_run(stream, &r->launch, r->launch.operands);
    stream->at = at;
    s->unrun = NULL;
    let_go(r);
}

void burni_unrun_make(burni_storage *s)
{
    /* One at a time, whoever asks: this is rare, and two threads may want the same value. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    burni_stream *stream = stream_here(s);
    if (stream == NULL) {
        burni_storage_fail(s, &burni_cause_no_memory);
        return;
    }
    int locked = burni_stream_lock(stream);
    (void)pthread_mutex_lock(&lock);
    if (burni_is_unrun(s)) {
        make(stream, s);
    }
    (void)pthread_mutex_unlock(&lock);
    burni_stream_unlock(stream, locked);
}

void burni_unrun_drop(burni_storage *s)
{
    burni_record *r = s->unrun;
    s->unrun = NULL;
    let_go(r);
}

void burni_unrun_make_all(burni_thread *thread, const burni_device *device)
{
    for (uint32_t i = 0; i < thread->n_items; i++) {
        const burn_tensor *t = thread->scope_items[i];
        if (t != NULL && t->kind == BURN_TENSOR && t->storage != NULL &&
            t->storage->device == device && burni_is_unrun(t->storage)) {
            burni_unrun_make(t->storage);
        }
    }
}
