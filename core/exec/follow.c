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

/* Undoes what was held for the first inputs. */
__attribute__((noinline)) static void let_go(burni_sequence *q, const burni_record *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (r->slots[i] != BURNI_SLOT_NONE) {
            burni_slot_let_go(&q->slots[r->slots[i]], 1, 0);
        }
    }
}

/* Writes today's inputs into the record, which waits for its turn (where they do not fit it, the
 * next call that it is writes its own), and holds them. 1: they are storages of the same slots, and
 * nobody else has to do with them. */
static inline int take_inputs(burni_stream *stream, burni_sequence *q, burni_record *r,
                              const burni_form *call)
{
    burn_operand *operands = r->launch.operands;
    burni_storage **storages = r->launch.storages;
    const uint32_t *slots = r->slots;
    burn_tensor *const *in = call->in;
    uint64_t differs = 0;
    uint32_t n = call->n_in;
    uint32_t i = 0;
    for (; i < n; i++) {
        const burn_tensor *t = in[i];
        if (slots[i] == BURNI_SLOT_NONE) {
            if (operands[i].kind == BURN_IMMEDIATE) {
                memcpy(operands[i].data, call->immediates[i], sizeof(call->immediates[i]));
            }
            continue;
        }
        burni_storage *s = t->storage;
        const burni_stream *writer = s->writer;
        uint64_t offset = 0;
        if (__builtin_expect(t->offset != 0, 0)) {
            offset = (uint64_t)t->offset * burn_dtype_size(t->dtype);
        }
        differs |= operands[i].offset ^ offset;
        operands[i].offset = offset;
        storages[i] = s;
        if ((writer != stream && writer != NULL) || burni_sequence_slot_of(q, s) != slots[i]) {
            break;
        }
        burni_slot_hold(&q->slots[slots[i]], 0);
    }
    if (__builtin_expect(differs != 0, 0)) {
        r->changed = ++stream->changes;
    }
    if (__builtin_expect(i < n, 0)) {
        let_go(q, r, i);
    }
    return i == n;
}

static inline void take_output(burni_stream *stream, burni_sequence *q, burni_storage *s,
                               burni_storage **place)
{
    burni_slot_hold(&q->slots[burni_sequence_own_slot(q, s)], 1);
    atomic_store_explicit(&s->writes, 1, memory_order_relaxed);
    atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
    atomic_store_explicit(&s->state, BURNI_PENDING, memory_order_release);
    *place = s;
}

/* Results get the next slots: the same as the last time, or the inputs were others. */
static inline int take_outputs(burni_stream *stream, burni_sequence *q, burni_record *r,
                               const burni_form *call)
{
    uint32_t n = call->n_in;
    for (uint32_t j = 0; j < call->n_out; j++) {
        if (r->slots[n + j] != q->n_slots + j) {
            let_go(q, r, n);
            return 0;
        }
    }
    take_output(stream, q, call->out[0]->storage, &r->launch.storages[n]);
    for (uint32_t j = 1; j < call->n_out; j++) {
        take_output(stream, q, call->out[j]->storage, &r->launch.storages[n + j]);
    }
    return 1;
}

/* It waits, and fits. */
static inline void keep(burni_stream *stream, const burni_thread *me, burni_record *r,
                        const burni_form *call)
{
    burni_sequence *q = stream->sequence;
    burni_record_take(stream, r);
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
    stream->n_followed++;
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
    int fits = is_this(q, r, call) && take_inputs(stream, q, r, call) &&
               take_outputs(stream, q, r, call);
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
    if (!deferred) {
        me->open_sequences |= UINT64_C(1) << stream->device->index;
    }
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
