/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * follow.c - calls that are what they were the last time. See follow.h.
 *
 * An expected record is a guess, never more: whoever drains the stream may have let it serve as
 * another record since. Room for records is not given back (those of unusual size are never
 * expected), so a guess may be looked at, under the lock; it counts when the record waits among the
 * spent ones and the chain until now is the one that it was behind. Then the chain with it is the
 * one that it has: whatever went into the hash is compared here, directly or by the form.
 */
#include "exec/follow.h"

#include "exec/lock.h"
#include "exec/origin.h"

#include <string.h>

static inline int is_this(const burni_sequence *q, const burni_record *r, const burni_form *call)
{
    return r->place != 0 && r->before == q->chain && r->launch.form == call->form &&
           r->launch.extent == call->extent && r->launch.op == call->op &&
           r->launch.n_out == call->n_out && q->length < BURNI_MAX_WINDOW &&
           q->n_slots + call->n_in + call->n_out <= BURNI_SLOTS;
}

/* Writes today's inputs into the record, which waits for its turn: where they do not fit it, the
 * next call that it is writes its own. 1: they are storages of the same slots, and nobody else has
 * to do with them. */
static inline int take_inputs(burni_stream *stream, burni_sequence *q, burni_record *r,
                              const burni_form *call)
{
    uint64_t differs = 0;
    int fits = 1;
    for (uint32_t i = 0; i < call->n_in && fits; i++) {
        burn_operand *o = &r->launch.operands[i];
        const burn_tensor *t = call->in[i];
        if (r->slots[i] == BURNI_SLOT_NONE) {
            if (o->kind == BURN_IMMEDIATE) {
                memcpy(o->data, call->immediates[i], sizeof(call->immediates[i]));
            }
            continue;
        }
        burni_storage *s = t->storage;
        const burni_stream *writer = s->writer;
        uint64_t offset = 0;
        if (__builtin_expect(t->offset != 0, 0)) {
            offset = (uint64_t)t->offset * burn_dtype_size(t->dtype);
        }
        differs |= o->offset ^ offset;
        o->offset = offset;
        r->launch.storages[i] = s;
        fits = (writer == stream || writer == NULL) &&
               burni_sequence_slot_of(q, s) == r->slots[i];
    }
    if (__builtin_expect(differs != 0, 0)) {
        r->changed = ++stream->changes;
    }
    return fits;
}

static inline int outputs_fit(const burni_sequence *q, const burni_record *r,
                              const burni_form *call)
{
    int fits = 1;
    for (uint32_t j = 0; j < call->n_out; j++) {
        fits &= r->slots[call->n_in + j] == q->n_slots + j;
    }
    return fits;
}

static inline void take_outputs(burni_stream *stream, burni_sequence *q, const burni_record *r,
                                const burni_form *call)
{
    for (uint32_t j = 0; j < call->n_out; j++) {
        burni_storage *s = call->out[j]->storage;
        r->launch.storages[call->n_in + j] = s;
        burni_slot_hold(&q->slots[burni_sequence_own_slot(q, s)], 1);
        atomic_store_explicit(&s->writes, 1, memory_order_relaxed);
        atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        atomic_store_explicit(&s->state, BURNI_PENDING, memory_order_release);
    }
}

/* It waits, and fits. */
static inline void keep(burni_stream *stream, const burni_thread *me, burni_record *r,
                        const burni_form *call)
{
    burni_sequence *q = stream->sequence;
    burni_record_take(stream, r);
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (r->slots[i] != BURNI_SLOT_NONE) {
            burni_slot_hold(&q->slots[r->slots[i]], 0);
        }
    }
    take_outputs(stream, q, r, call);
    if (__builtin_expect(r->launch.resolved != call->resolved, 0)) {
        r->changed = ++stream->changes;
        burni_resolved_let_go(r->launch.resolved);
        burni_resolved_hold(call->resolved);
        r->launch.resolved = call->resolved;
    }
    r->launch.tag = me->tag;
    r->launch.origin = burni_origin_ref(me->origin);
    r->done = 0;
    for (uint32_t i = 0; i < r->n_fresh; i++) {
        burni_sequence_add_size(q, r->fresh[i]);
    }
    q->chain = r->chain;
    q->length++;
    stream->records[stream->n_records++] = r;
    stream->tail = r;
    stream->expected = r->follow;
}

int burni_follow(burni_stream *stream, const burni_form *call)
{
    burni_thread *me = burni_thread_current;
    burni_sequence *q = stream->sequence;
    burni_record *r = stream->expected;
    uint32_t deferred = stream->defers;
    if (!deferred && q->length > 0) {
        return 0;
    }
    stream->defers = 1; /* others may look for records */
    int locked = burni_lock_as_owner(stream, me);
    int fits = is_this(q, r, call) && take_inputs(stream, q, r, call) && outputs_fit(q, r, call);
    if (__builtin_expect(fits, 1)) {
        keep(stream, me, r, call);
    }
    if (locked) {
        burni_unlock_as_owner(stream, me, locked);
    }
    if (__builtin_expect(!fits, 0)) {
        stream->defers = deferred;
        stream->expected = NULL;
        return 0;
    }
    me->open_sequences |= UINT64_C(1) << stream->device->index;
    return 1;
}

void burni_follow_learn(burni_stream *stream, burni_record *r)
{
    burni_record *kept = r->klass < BURNI_RECORD_CLASSES ? r : NULL;
    if (stream->tail != NULL) {
        stream->tail->follow = kept;
    } else {
        stream->first = kept;
    }
    stream->tail = kept;
    stream->expected = r->follow;
}

void burni_follow_cut(burni_stream *stream)
{
    stream->tail = NULL;
    stream->expected = stream->first;
}
