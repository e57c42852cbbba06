/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unrun.c - finding, leaving and making values that only a scope holds. See unrun.h.
 *
 * Pure and random calls are left: those give the same when they run later, as long as what they are
 * made of is the same. Operands are held as records hold them, so none is given away, and a
 * variable among them does not look shared; it has a list of what is left and reads it, which is
 * made before it is overwritten. Whoever makes a call writes results of its own, which each storage
 * takes over when it is asked for: it may be dying in another thread meanwhile, and a call has
 * several. Locks: a variable's, a stream's, that of making, guards. What dies is let go of without
 * the lock and one after the other, however long the chain.
 */
#include "exec/unrun.h"

#include "base/alloc.h"
#include "exec/guard.h"
#include "exec/launch.h"

#include <string.h>

/* So many handles of the thread are looked at, the newest ones. */
#define MAX_LOOKED_AT 4096
/* Bytes that a cut may hold for the sake of what it leaves beyond those that it does not write. */
#define MAX_MORE_BYTES 4096

/* That a call which is left reads a variable. */
typedef struct burni_link {
    struct burni_link *next; /* others that read it */
    struct burni_link *before;
    burni_storage *variable;
    struct burni_unrun *reader;
} burni_link;

/* One result of a call. */
typedef struct result {
    burni_storage *of;   /* that will ask for it; NULL: it has, or it is gone */
    burni_storage *made; /* holds the value once the call ran */
    uint64_t bytes;
    uint64_t is_there; /* the call has it */
} result;

/* A call that is left, or what it made. */
typedef struct burni_unrun {
    burni_record *record; /* NULL: it ran */
    burni_stream *stream; /* that it was called in */
    result *results;
    uint32_t n_results;
    uint32_t n_wanted; /* results that have somebody who will ask */
    uint32_t n_links;
    uint32_t zero;
    struct burni_unrun *asks; /* while it is made: the call that must wait for it, or NULL */
    burni_link links[];
} burni_unrun;

/* ---- the lock -------------------------------------------------------------------------------- */

/* One makes at a time, whoever asks: this is rare, and two threads may want the same value. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* Records that the thread will let go of when it has left the lock. */
static _Thread_local struct {
    burni_record *first;
    int has_lock;
    int lets_go;
} mine __attribute__((tls_model("initial-exec")));

static int enter(void)
{
    if (mine.has_lock) {
        return 0;
    }
    (void)pthread_mutex_lock(&making);
    mine.has_lock = 1;
    return 1;
}

static void let_go(burni_record *r)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->launch.storages[i] != NULL) {
            burni_storage_unref(r->launch.storages[i], BURNI_RECORD_REF);
        }
    }
    burni_record_let_go(r);
    burni_free(r); /* to no stream's list: any thread may be here */
}

/* What is let go of may be the last to hold another one, which comes to the list. */
static void leave(int entered)
{
    if (!entered) {
        return;
    }
    mine.has_lock = 0;
    (void)pthread_mutex_unlock(&making);
    if (mine.lets_go) {
        return;
    }
    mine.lets_go = 1;
    while (mine.first != NULL) {
        burni_record *r = mine.first;
        mine.first = r->next;
        let_go(r);
    }
    mine.lets_go = 0;
}

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

static int reads_any(const burni_record *r, const uint8_t *slots)
{
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->slots[i] != BURNI_SLOT_NONE && slots[r->slots[i]]) {
            return 1;
        }
    }
    return 0;
}

static void mark_results(const burni_record *r, uint8_t *slots)
{
    for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
        if (r->slots[j] != BURNI_SLOT_NONE) {
            slots[r->slots[j]] = 1;
        }
    }
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

/*
 * Which records give the same when they run after all the others: not those that read what a later
 * one overwrites, nor those that are made of a value that cannot be made again and is not kept.
 */
static void find_fits(const burni_batch *batch, const uint8_t *alive, uint8_t *fits)
{
    uint8_t rewritten[BURNI_SLOTS];
    uint8_t lost[BURNI_SLOTS];
    memset(rewritten, 0, batch->n_slots);
    memset(lost, 0, batch->n_slots);
    for (uint32_t k = batch->n; k-- > 0;) {
        const burni_record *r = batch->records[k];
        fits[k] = r->launch.op->def.effect <= BURN_EFFECT_RANDOM &&
                  r->launch.op->def.n_aliases == 0 && !reads_unrun(r) && !reads_any(r, rewritten);
        if (r->launch.op->def.n_aliases > 0) {
            mark_results(r, rewritten);
        }
    }
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        fits[k] = (uint8_t)(fits[k] && !reads_any(r, lost));
        if (!fits[k] && !alive[k]) {
            mark_results(r, lost);
        }
    }
}

static int only_scopes_hold(const burni_record *r, const burni_storage *target,
                            const uint16_t *counts)
{
    for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
        const burni_storage *s = r->launch.storages[j];
        if (s == NULL) {
            continue;
        }
        uint64_t refs = atomic_load_explicit(&s->refs, memory_order_acquire);
        if (s == target || BURNI_HANDLES(refs) != counts[r->slots[j]]) {
            return 0;
        }
    }
    return 1;
}

uint32_t burni_unrun_find(burni_stream *stream, const burni_batch *batch,
                          const burni_storage *target, uint8_t *alive, uint8_t *left)
{
    uint16_t counts[BURNI_SLOTS];
    uint8_t fits[BURNI_MAX_WINDOW];
    uint32_t found = 0;
    memset(counts, 0, batch->n_slots * sizeof(counts[0]));
    count_handles(burni_thread_current, stream, counts);
    find_fits(batch, alive, fits);
    for (uint32_t k = 0; k < batch->n; k++) {
        left[k] = alive[k] && fits[k] && only_scopes_hold(batch->records[k], target, counts);
        alive[k] = (uint8_t)(alive[k] && !left[k]);
        found += left[k];
    }
    return found;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void link_reader(burni_unrun *u, burni_storage *variable)
{
    burni_link *link = &u->links[u->n_links++];
    link->reader = u;
    link->variable = variable;
    link->before = NULL;
    link->next = atomic_load_explicit(&variable->left, memory_order_relaxed);
    if (link->next != NULL) {
        link->next->before = link;
    }
    atomic_store_explicit(&variable->left, link, memory_order_release);
}

static void unlink_reader(burni_unrun *u)
{
    for (uint32_t i = 0; i < u->n_links; i++) {
        burni_link *link = &u->links[i];
        if (link->next != NULL) {
            link->next->before = link->before;
        }
        if (link->before != NULL) {
            link->before->next = link->next;
        } else {
            atomic_store_explicit(&link->variable->left, link->next, memory_order_release);
        }
    }
    u->n_links = 0;
}

/* Its call will not run any more, or has. Within the lock. */
static void end_call(burni_unrun *u)
{
    burni_record *r = u->record;
    if (r != NULL) {
        unlink_reader(u);
        u->record = NULL;
        r->next = mine.first;
        mine.first = r;
    }
}

/* The storage has its value, or needs none any more: what it was to get, if that was made. Within
 * the lock. */
static burni_storage *take_result(burni_storage *s)
{
    burni_unrun *u = s->unrun;
    uint32_t k = 0;
    while (u->results[k].of != s) {
        k++;
    }
    burni_storage *made = u->results[k].made;
    u->results[k].of = NULL;
    u->results[k].made = NULL;
    s->unrun = NULL;
    if (--u->n_wanted == 0) {
        end_call(u);
        burni_free(u);
    }
    return made;
}

/* A call that is left, with its storages; NULL: no memory. */
static burni_unrun *unrun_new(burni_stream *stream, const burni_record *r)
{
    const burni_launch *launch = &r->launch;
    size_t links = launch->n_in * sizeof(burni_link);
    burni_unrun *u = burni_calloc(1, sizeof(*u) + links + launch->n_out * sizeof(result));
    burni_record *own = u != NULL ? burni_record_copy(NULL, launch, r->slots) : NULL;
    if (own == NULL) {
        burni_free(u);
        return NULL;
    }
    own->launch.dying = 0;
    u->record = own;
    u->stream = stream;
    u->n_results = launch->n_out;
    u->results = (result *)(void *)((char *)(u + 1) + links);
    for (uint32_t i = 0; i < launch->n_in; i++) {
        burni_storage *s = launch->storages[i];
        if (s != NULL) {
            burni_storage_ref(s, BURNI_RECORD_REF);
        }
        if (s != NULL && burni_is_var(s)) {
            link_reader(u, s);
        }
    }
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        u->results[j].of = s;
        u->results[j].is_there = s != NULL;
        u->results[j].bytes = s != NULL ? s->bytes : 0;
        u->n_wanted += s != NULL;
        if (s != NULL) {
            s->unrun = u;
        }
    }
    return u;
}

/* At this cut: what an earlier one left is settled. */
static int is_left(const burni_storage *s)
{
    return s->unrun != NULL && !burni_is_unrun(s);
}

static void take_back(const burni_batch *batch)
{
    for (uint32_t k = 0; k < batch->n_slots; k++) {
        if (batch->slots[k].held && is_left(batch->slots[k].storage)) {
            (void)take_result(batch->slots[k].storage);
        }
    }
}

/* Would more be held than is saved? `asked`: slots that what is left is made of. */
static int holds_too_much(const burni_batch *batch, const uint8_t *asked)
{
    uint64_t saved = MAX_MORE_BYTES;
    uint64_t held = 0;
    for (uint32_t k = 0; k < batch->n_slots; k++) {
        const burni_storage *s = batch->slots[k].storage;
        if (!batch->slots[k].held) {
            continue;
        }
        int is_seen = BURNI_HANDLES(atomic_load_explicit(&s->refs, memory_order_acquire)) > 0;
        saved += is_seen && is_left(s) ? s->bytes : 0;
        held += asked[k] && !is_seen && !is_left(s) ? s->bytes : 0;
    }
    return held > saved;
}

/* From the newest on, so that what a record that is left is made of is seen before its maker. */
int burni_unrun_leave(burni_stream *stream, const burni_batch *batch, const uint8_t *left,
                      const uint8_t *written)
{
    uint8_t asked[BURNI_SLOTS];
    memset(asked, 0, batch->n_slots);
    int entered = enter();
    int fits = 1;
    for (uint32_t k = batch->n; k-- > 0 && fits;) {
        const burni_record *r = batch->records[k];
        if (written[k] || (!left[k] && !burni_record_makes_any(r, asked))) {
            continue;
        }
        burni_unrun *u = unrun_new(stream, r);
        fits = u != NULL;
        if (u != NULL) {
            u->record->age = stream->n_past + k + 1;
        }
        for (uint32_t i = 0; i < r->launch.n_in; i++) {
            if (r->slots[i] != BURNI_SLOT_NONE) {
                asked[r->slots[i]] = 1;
            }
        }
    }
    fits = fits && !holds_too_much(batch, asked);
    if (!fits) {
        take_back(batch);
    }
    leave(entered);
    return fits;
}

void burni_unrun_settle(const burni_batch *batch)
{
    for (uint32_t k = 0; k < batch->n; k++) {
        const burni_record *r = batch->records[k];
        for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
            burni_storage *s = r->launch.storages[j];
            if (s != NULL && s->unrun != NULL) {
                atomic_store_explicit(&s->state, BURNI_UNRUN, memory_order_release);
            }
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

/* The storage gets the value that was made for it. The state changes last: whoever sees it
 * unchanged waits for the lock. */
static void hand_over(burni_storage *s)
{
    burni_storage *made = take_result(s);
    if (made == NULL) {
        burni_storage_fail(s, &burni_cause_no_memory);
        return;
    }
    s->block = made->block;
    s->buffer = made->buffer;
    s->buffer_offset = made->buffer_offset;
    s->host = made->host;
    s->fault = made->fault;
    made->block = NULL;
    made->fault = NULL;
    atomic_store_explicit(&s->writer, atomic_load(&made->writer), memory_order_relaxed);
    atomic_store_explicit(&s->write_point, atomic_load(&made->write_point), memory_order_relaxed);
    if (atomic_load_explicit(&made->state, memory_order_acquire) == BURNI_FAILED) {
        burni_storage_fail(s, made->cause);
    } else {
        atomic_store_explicit(&s->state, BURNI_SUBMITTED, memory_order_release);
    }
    burni_storage_unref(made, 1);
}

/* A storage for each result that the call has. 0: one has no memory, and all have failed. */
static int new_results(burni_unrun *u, burni_storage **made)
{
    int fine = 1;
    for (uint32_t j = 0; j < u->n_results; j++) {
        made[j] = NULL;
        if (u->results[j].is_there) {
            made[j] =
                burni_storage_new(burni_thread_current, u->stream->device, u->results[j].bytes);
            fine &= made[j] != NULL;
        }
    }
    for (uint32_t j = 0; j < u->n_results && !fine; j++) {
        if (made[j] != NULL) {
            burni_storage_fail(made[j], &burni_cause_no_memory);
        }
    }
    return fine;
}

/* A call that must run before this one can; NULL: none. */
static burni_unrun *find_asked(const burni_record *r)
{
    burni_unrun *asked = NULL;
    for (uint32_t i = 0; i < r->launch.n_in && asked == NULL; i++) {
        const burni_storage *in = r->launch.storages[i];
        int waits = in != NULL && burni_is_unrun(in) && in->unrun->record != NULL;
        asked = waits ? in->unrun : NULL;
    }
    return asked;
}

/* All that it reads has been made. */
static void launch_call(burni_stream *stream, burni_unrun *u)
{
    burni_storage *made[BURN_MAX_OPERANDS];
    burni_record *r = u->record;
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->launch.storages[i] != NULL && burni_is_unrun(r->launch.storages[i])) {
            hand_over(r->launch.storages[i]);
        }
    }
    if (new_results(u, made)) {
        uint64_t at = stream->at;
        stream->at = stream == u->stream ? r->age : at;
        memcpy(r->launch.storages + r->launch.n_in, made, u->n_results * sizeof(made[0]));
        (void)burni_launch_run(stream, &r->launch, r->launch.operands);
        stream->at = at;
    }
    for (uint32_t j = 0; j < u->n_results; j++) {
        if (u->results[j].of != NULL) {
            u->results[j].made = made[j];
        } else if (made[j] != NULL) {
            burni_storage_unref(made[j], 1);
        }
    }
    end_call(u);
}

/* Runs it, unless it has, and before it what it is made of, however long the chain. Within the
 * lock. */
static void run_call(burni_stream *stream, burni_unrun *u)
{
    u->asks = NULL;
    while (u != NULL) {
        burni_unrun *asked = u->record != NULL ? find_asked(u->record) : NULL;
        if (asked != NULL) {
            asked->asks = u;
            u = asked;
            continue;
        }
        burni_unrun *next = u->asks;
        if (u->record != NULL) {
            launch_call(stream, u);
        }
        u = next;
    }
}

/* Whoever left it may still be running what it is made of. */
static void wait_for_cut(burni_stream *here, burni_stream *there)
{
    if (there != here && burni_thread_current->holding == NULL && !mine.has_lock) {
        burni_stream_unlock(there, burni_stream_lock(there));
    }
}

void burni_unrun_make(burni_storage *s)
{
    burni_stream *stream = stream_here(s);
    if (stream == NULL) {
        burni_storage_fail(s, &burni_cause_no_memory);
        return;
    }
    wait_for_cut(stream, s->writer);
    int locked = burni_stream_lock(stream);
    int entered = enter();
    if (burni_is_unrun(s)) {
        run_call(stream, s->unrun);
        hand_over(s);
    }
    leave(entered);
    burni_stream_unlock(stream, locked);
}

void burni_unrun_make_readers(burni_stream *stream, burni_storage *variable)
{
    if (atomic_load_explicit(&variable->left, memory_order_acquire) == NULL) {
        return;
    }
    int locked = burni_stream_lock(stream);
    int entered = enter();
    burni_link *link = atomic_load_explicit(&variable->left, memory_order_relaxed);
    while (link != NULL) {
        run_call(stream, link->reader);
        link = atomic_load_explicit(&variable->left, memory_order_relaxed);
    }
    leave(entered);
    burni_stream_unlock(stream, locked);
}

void burni_unrun_drop(burni_storage *s)
{
    int entered = enter();
    burni_storage *made = s->unrun != NULL ? take_result(s) : NULL;
    leave(entered);
    if (made != NULL) {
        burni_storage_unref(made, 1); /* its memory goes back under a stream's lock */
    }
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
