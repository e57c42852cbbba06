/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * record.c - memory, references and liveness of records. See record.h.
 *
 * A record is one piece of memory of one of two sizes that are recycled, or larger. Operands that
 * share an array of dims in the launch share it in the record. A record that ran is found again by
 * its chain: where a loop comes round, only what differs is written.
 */
#include "exec/record.h"

#include "base/alloc.h"
#include "exec/check.h"
#include "exec/launch.h"
#include "exec/origin.h"

#include <string.h>

static const size_t class_bytes[BURNI_RECORD_CLASSES] = {640, 1600};

static size_t record_size(const burni_launch *launch)
{
    uint32_t n = launch->n_in + launch->n_out;
    size_t size = sizeof(burni_record) + n * (sizeof(burn_operand) + sizeof(burni_storage *)) +
                  (n + 1u) / 2 * 2 * sizeof(uint32_t) + launch->attrs_size + 8;
    for (uint32_t i = 0; i < n; i++) {
        size += launch->operands[i].rank * 2 * sizeof(int64_t);
        size += launch->operands[i].kind == BURN_IMMEDIATE ? 16 : 0;
    }
    return size;
}

static burni_record *record_memory(burni_stream *stream, size_t size)
{
    uint32_t klass = 0;
    while (klass < BURNI_RECORD_CLASSES && size > class_bytes[klass]) {
        klass++;
    }
    if (stream == NULL) {
        klass = BURNI_RECORD_CLASSES;
    }
    burni_record *r = klass < BURNI_RECORD_CLASSES ? stream->free_records[klass] : NULL;
    if (r != NULL) {
        stream->free_records[klass] = r->next;
        return r;
    }
    r = burni_alloc(klass < BURNI_RECORD_CLASSES ? class_bytes[klass] : size);
    if (r != NULL) {
        r->klass = klass;
    }
    return r;
}

static void recycle(burni_stream *stream, burni_record *r)
{
    if (r->klass < BURNI_RECORD_CLASSES) {
        r->next = stream->free_records[r->klass];
        stream->free_records[r->klass] = r;
    } else {
        burni_free(r);
    }
}

static burni_record **set_of(burni_stream *stream, uint64_t chain)
{
    return &stream->spent[chain % BURNI_SPENT_SETS * BURNI_SPENT_WAYS];
}

/* It may serve again as the same link of a sequence, most of which is in it already: it keeps its
 * row till then. */
void burni_record_store(burni_stream *stream, burni_record *r)
{
    if (r->kept) {
        recycle(stream, r);
        return;
    }
    burni_record **set = set_of(stream, r->chain);
    uint32_t way = 0;
    while (way + 1 < BURNI_SPENT_WAYS && set[way] != NULL) {
        way++;
    }
    if (set[way] != NULL) {
        way = (uint32_t)(r->chain >> 32) % BURNI_SPENT_WAYS;
        burni_record_let_go(set[way]);
        set[way]->place = 0;
        recycle(stream, set[way]);
    }
    set[way] = r;
    r->place = (uint32_t)(r->chain % BURNI_SPENT_SETS) * BURNI_SPENT_WAYS + way + 1;
}

/* ---- filling --------------------------------------------------------------------------------- */

static inline char *copy_sizes(char *p, const int64_t *from, uint32_t rank, const int64_t **to)
{
    int64_t *sizes = (int64_t *)(void *)p;
    *to = sizes;
    if (__builtin_expect(rank == 1, 1)) {
        sizes[0] = from[0];
        return p + sizeof(int64_t);
    }
    memcpy(sizes, from, rank * sizeof(int64_t));
    return p + rank * sizeof(int64_t);
}

static char *copy_operands(char *p, const burni_launch *launch, burn_operand *operands)
{
    const int64_t *last = NULL; /* the dims copied last, and where they are now */
    const int64_t *last_copy = NULL;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        const burn_operand *from = &launch->operands[i];
        burn_operand *to = &operands[i];
        *to = *from;
        /* One without dims may point where those of the next one begin. */
        if (from->dims == last && from->rank > 0) {
            to->dims = last_copy;
        } else {
            p = copy_sizes(p, from->dims, from->rank, &to->dims);
            last = from->rank > 0 ? from->dims : NULL;
            last_copy = to->dims;
        }
        p = copy_sizes(p, from->strides, from->rank, &to->strides);
        if (from->kind == BURN_IMMEDIATE) {
            memcpy(p, from->data, 16);
            to->data = p;
            p += 16;
        }
    }
    return p;
}

/* What the launch says of the call that it comes from. */
static void hold_told(const burni_launch *launch)
{
    (void)burni_origin_ref(launch->origin);
    (void)burni_note_ref(launch->check);
}

/* Under the lock of the stream that writes it. A record that has run leaves the state SUBMITTED or
 * FAILED, which says nothing of the records that come after it; this count does. */
static void count_write(burni_storage *s)
{
    uint32_t now = atomic_load_explicit(&s->writes, memory_order_relaxed) + 1;
    atomic_store_explicit(&s->writes, now, memory_order_release);
}

void burni_storage_promise(burni_stream *stream, burni_storage *s)
{
    count_write(s);
    atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
    /* A failed variable stays so for the records before this one, which may heal it. */
    if (atomic_load_explicit(&s->state, memory_order_acquire) != BURNI_FAILED) {
        atomic_store_explicit(&s->state, BURNI_PENDING, memory_order_release);
    }
}

burni_record *burni_record_copy(burni_stream *stream, const burni_launch *launch,
                                const uint32_t *slots)
{
    burni_record *r = record_memory(stream, record_size(launch));
    if (r == NULL) {
        return NULL;
    }
    uint32_t n = launch->n_in + launch->n_out;
    r->launch = *launch;
    r->launch.moved = 0;
    r->launch.waited = 1;
    r->done = 0;
    r->kept = 0;
    r->place = 0;
    r->last_place = 0;
    r->chain = 0;
    r->before = 0;
    r->n_fresh = 0;
    r->changed = 0;
    r->follow = NULL;
    char *p = (char *)(r + 1);
    r->launch.operands = (burn_operand *)(void *)p;
    p += n * sizeof(burn_operand);
    r->launch.storages = (burni_storage **)(void *)p;
    p += n * sizeof(burni_storage *);
    r->slots = (uint32_t *)(void *)p;
    p += (n + 1u) / 2 * 2 * sizeof(uint32_t);
    p = copy_operands(p, launch, r->launch.operands);
    if (launch->attrs_size > 0) {
        memcpy(p, launch->attrs, launch->attrs_size);
        r->launch.attrs = p;
    }
    for (uint32_t i = 0; i < n; i++) {
        r->launch.storages[i] = launch->storages[i];
        r->slots[i] = slots[i];
    }
    burni_resolved_hold(launch->resolved);
    hold_told(launch);
    return r;
}

void burni_record_forget(burni_record *r)
{
    burni_origin_unref(r->launch.origin);
    burni_note_unref(r->launch.check);
    r->launch.origin = NULL;
    r->launch.check = NULL;
}

void burni_record_let_go(burni_record *r)
{
    burni_resolved_let_go(r->launch.resolved);
    burni_record_forget(r);
}

static inline uint64_t refill_sizes(const int64_t *to, const int64_t *from, uint32_t rank)
{
    uint64_t differs = 0;
    for (uint32_t d = 0; d < rank; d++) {
        differs |= (uint64_t)(to[d] ^ from[d]);
        *(int64_t *)(uintptr_t)&to[d] = from[d];
    }
    return differs;
}

/* What differs between two calls that are the same link of a sequence. Whether more does than
 * storages and scalars. */
static int refill(burni_record *r, const burni_launch *launch)
{
    uint32_t n = launch->n_in + launch->n_out;
    uint64_t differs = r->launch.resolved != launch->resolved;
    if (differs) {
        burni_resolved_let_go(r->launch.resolved);
        burni_resolved_hold(launch->resolved);
        r->launch.resolved = launch->resolved;
    }
    r->launch.tag = launch->tag;
    r->launch.origin = launch->origin;
    r->launch.remade = launch->remade;
    r->launch.check = launch->check;
    r->launch.form = launch->form;
    r->launch.extent = launch->extent;
    hold_told(launch);
    r->done = 0;
    for (uint32_t i = 0; i < n; i++) {
        const burn_operand *from = &launch->operands[i];
        burn_operand *to = &r->launch.operands[i];
        r->launch.storages[i] = launch->storages[i];
        differs |= to->offset ^ from->offset;
        to->offset = from->offset;
        differs |= refill_sizes(to->dims, from->dims, from->rank);
        differs |= refill_sizes(to->strides, from->strides, from->rank);
        if (from->kind == BURN_IMMEDIATE) {
            memcpy(to->data, from->data, 16);
        }
    }
    if (launch->attrs_size > 0) {
        memcpy((void *)(uintptr_t)r->launch.attrs, launch->attrs, launch->attrs_size);
    }
    return differs != 0;
}

/* The record that was this link of the sequence the last time, made ready; NULL: there is none. */
static burni_record *take_spent(burni_stream *stream, const burni_launch *launch)
{
    uint64_t chain = stream->sequence->chain;
    burni_record **set = set_of(stream, chain);
    for (uint32_t way = 0; way < BURNI_SPENT_WAYS; way++) {
        burni_record *r = set[way];
        if (r != NULL && r->chain == chain && r->launch.op == launch->op) {
            burni_record_take(stream, r);
            r->changed = refill(r, launch) ? ++stream->changes : r->changed;
            return r;
        }
    }
    return NULL;
}

/* The record is the link of the sequence that was just added; `before` is the one before it. */
static void note_link(burni_record *r, const burni_sequence *q, uint64_t before)
{
    r->chain = q->chain;
    r->before = before;
    r->plain[0] = 0;
    r->n_fresh = q->n_fresh;
    for (uint32_t i = 0; i < BURNI_FRESH; i++) {
        r->fresh[i] = q->fresh[i];
    }
    if (q->n_fresh > BURNI_FRESH || r->klass == BURNI_RECORD_CLASSES) {
        r->launch.form = 0;
    }
}

burni_record *burni_record_new(burni_stream *stream, const burni_launch *launch,
                               const uint32_t *slots, uint64_t before)
{
    burni_record *r = take_spent(stream, launch);
    if (r == NULL) {
        r = burni_record_copy(stream, launch, slots);
        if (r == NULL) {
            return NULL;
        }
        r->changed = ++stream->changes;
    }
    note_link(r, stream->sequence, before);
    int fresh = launch->op->def.n_aliases == 0;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        if (slots[i] != BURNI_SLOT_NONE) {
            burni_slot_hold(&stream->sequence->slots[slots[i]], 0);
        }
    }
    for (uint32_t i = launch->n_in; i < launch->n_in + launch->n_out; i++) {
        if (slots[i] != BURNI_SLOT_NONE) {
            burni_slot_hold(&stream->sequence->slots[slots[i]], fresh);
            burni_storage_promise(stream, launch->storages[i]);
        }
    }
    return r;
}

/* ---- letting go ------------------------------------------------------------------------------ */

void burni_record_done(burni_slot *slots, burni_record *r)
{
    if (r->done) {
        return;
    }
    burni_record_ran(r);
    for (uint32_t i = 0; i < r->launch.n_in + r->launch.n_out; i++) {
        if (r->slots[i] == BURNI_SLOT_NONE) {
            continue;
        }
        burni_slot_let_go(&slots[r->slots[i]], 1, i >= r->launch.n_in);
    }
}

/* Bit i: input i's storage is seen by nobody once this record has run. For inputs 0 to 31. */
static uint32_t dying(const burni_slot *slots, const burni_record *r)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < r->launch.n_in && i < 32; i++) {
        if (r->slots[i] == BURNI_SLOT_NONE) {
            continue;
        }
        uint32_t uses = 0;
        for (uint32_t k = 0; k < r->launch.n_in + r->launch.n_out; k++) {
            uses += r->slots[k] == r->slots[i];
        }
        mask |= (uint32_t)burni_slot_dies(&slots[r->slots[i]], uses) << i;
    }
    return mask;
}

void burni_record_run(burni_stream *stream, burni_slot *slots, burni_record *r)
{
    burn_operand operands[BURN_MAX_OPERANDS];
    uint32_t n = r->launch.n_in + r->launch.n_out;
    r->launch.dying = dying(slots, r);
    /* A launch binds its operands to memory, a record keeps its own as they are. */
    memcpy(operands, r->launch.operands, n * sizeof(operands[0]));
    (void)burni_launch_run(stream, &r->launch, operands);
    burni_record_done(slots, r);
}

/* ---- all records ----------------------------------------------------------------------------- */

static int is_alive(const burni_record *r)
{
    for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
        const burni_storage *s = r->launch.storages[j];
        if (s != NULL && BURNI_HANDLES(atomic_load_explicit(&s->refs, memory_order_acquire)) > 0) {
            return 1;
        }
    }
    return 0;
}

int burni_record_makes_any(const burni_record *r, const uint8_t *slots)
{
    for (uint32_t j = r->launch.n_in; j < r->launch.n_in + r->launch.n_out; j++) {
        if (r->slots[j] != BURNI_SLOT_NONE && slots[r->slots[j]]) {
            return 1;
        }
    }
    return 0;
}

/* Must it run? Then its operands are wanted as well. Records are asked from the newest on. */
static int is_needed(const burni_record *r, int outside, uint8_t *wanted)
{
    int runs = outside || r->launch.op->def.effect > BURN_EFFECT_RANDOM ||
               burni_record_makes_any(r, wanted);
    for (uint32_t i = 0; i < r->launch.n_in && runs; i++) {
        if (r->slots[i] != BURNI_SLOT_NONE) {
            wanted[r->slots[i]] = 1;
        }
    }
    return runs;
}

uint64_t burni_records_alive(const burni_batch *batch, uint8_t *alive)
{
    uint64_t changed = 0;
    burni_record *const *records = batch->records;
    uint32_t n = batch->n;
    for (uint32_t k = 0; k < n; k++) {
        const burni_record *r = records[k];
        const burni_storage *s = r->launch.storages[r->launch.n_in];
        changed = r->changed > changed ? r->changed : changed;
        if (__builtin_expect(r->launch.n_out == 1 && s != NULL, 1)) {
            alive[k] = BURNI_HANDLES(atomic_load_explicit(&s->refs, memory_order_acquire)) > 0;
        } else {
            alive[k] = (uint8_t)is_alive(r);
        }
    }
    return changed;
}

void burni_records_needed(const burni_batch *batch, uint32_t count, uint8_t *alive,
                          uint8_t *needed)
{
    uint8_t wanted[BURNI_SLOTS]; /* slots that needed records behind the first `count` read */
    burni_batch first = *batch;
    first.n = count;
    memset(wanted, 0, batch->n_slots);
    for (uint32_t k = batch->n; k-- > count;) {
        (void)is_needed(batch->records[k], is_alive(batch->records[k]), wanted);
    }
    for (uint32_t k = 0; k < count; k++) {
        const burni_record *r = batch->records[k];
        alive[k] = (uint8_t)(is_alive(r) || burni_record_makes_any(r, wanted));
    }
    burni_records_need(&first, alive, needed);
}

void burni_records_need(const burni_batch *batch, const uint8_t *alive, uint8_t *needed)
{
    uint8_t wanted[BURNI_SLOTS];
    memset(wanted, 0, batch->n_slots);
    for (uint32_t k = batch->n; k-- > 0;) {
        needed[k] = (uint8_t)is_needed(batch->records[k], alive[k], wanted);
    }
}
