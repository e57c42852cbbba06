/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * follow.c - calls that are what they were the last time. See follow.h.
 *
 * An expected record is a guess, never more: whoever drains the stream may have let it serve as
 * another record since. Room for records is not given back (those of unusual size are never
 * expected), so a guess may be looked at, under the lock; it counts when the record waits among the
 * spent ones and the chain until now is the one that it was behind. Then the chain with it is the
 * one that it has: whatever went into the hash is compared here, directly or by the form. Of plain
 * calls the form is not even found out: what it would be found from is compared (burni_emit_fast).
 */
#include "exec/follow.h"

#include "exec/emit_private.h"
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
static inline void keep(burni_stream *stream, const burni_thread *me, burni_record *r)
{
    burni_sequence *q = stream->sequence;
    burni_record_take(stream, r);
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

/* What only the call's own way of emission knows. */
static inline void learn(burni_stream *stream, burni_record *r, const burni_form *call)
{
    if (__builtin_expect(r->launch.resolved != call->resolved, 0)) {
        r->changed = ++stream->changes;
        burni_resolved_let_go(r->launch.resolved);
        burni_resolved_hold(call->resolved);
        r->launch.resolved = call->resolved;
    }
    r->plain[0] = 0;
    if (call->is_plain) {
        r->plain[0] = burni_handle_head(call->in[0]);
        r->plain[1] = burni_handle_head(call->in[call->n_in - 1]);
        r->plain_out = burni_handle_head(call->out[0]);
        r->plain_rows = stream->resolver.rows_version;
        r->plain_bytes = call->out[0]->storage->bytes;
    }
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
        keep(stream, me, r);
        learn(stream, r, call);
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

/* ---- plain calls ----------------------------------------------------------------------------- */

static inline int same_dims(const burn_tensor *a, const burn_tensor *b)
{
    uint32_t d = 0;
    while (d < a->rank && a->dims[d] == b->dims[d]) {
        d++;
    }
    return d == a->rank;
}

/* Is it the call that the record was learnt from, but for sizes that agree with it and memory? */
static inline int is_plain_call(const burni_stream *stream, const burni_record *r,
                                const burni_op *op, burn_tensor *const *in, uint32_t n_in)
{
    const burni_sequence *q = stream->sequence;
    const burn_tensor *x = in[0];
    const burn_tensor *y = in[n_in - 1];
    uint32_t rows = atomic_load_explicit(&stream->device->rows_version, memory_order_relaxed);
    if (r->plain[0] != burni_handle_head(x) || r->launch.op != op || r->launch.n_in != n_in ||
        r->launch.extent != x->numel || r->plain_rows != rows || r->place == 0 ||
        r->before != q->chain || q->length >= BURNI_MAX_WINDOW ||
        q->n_slots + n_in + 1 > BURNI_SLOTS) {
        return 0;
    }
    return n_in == 1 || (y->device == x->device && r->plain[1] == burni_handle_head(y) &&
                         y->cause == NULL && y->node == NULL && same_dims(x, y));
}

/* Holds one input, as take_inputs does. */
static inline int take_plain(burni_stream *stream, burni_sequence *q, burni_record *r,
                             const burn_tensor *t, uint32_t i)
{
    burni_storage *s = t->storage;
    const burni_stream *writer = s->writer;
    burn_operand *o = &r->launch.operands[i];
    if (__builtin_expect(t->offset != 0 || o->offset != 0, 0)) {
        return 0;
    }
    if ((writer != stream && writer != NULL) || burni_sequence_slot_of(q, s) != r->slots[i]) {
        return 0;
    }
    r->launch.storages[i] = s;
    burni_slot_hold(&q->slots[r->slots[i]], 0);
    return 1;
}

static inline burn_tensor *take_plain_output(burni_stream *stream, burni_thread *me,
                                             burni_record *r, const burn_tensor *lead,
                                             uint32_t n_in)
{
    burni_sequence *q = stream->sequence;
    burn_tensor *t = r->slots[n_in] == q->n_slots
                         ? burni_result_new(me, lead->device, stream->device, r->plain_bytes)
                         : NULL;
    if (__builtin_expect(t == NULL, 0)) {
        let_go(q, r, n_in);
        return NULL;
    }
    burni_handle_set_head(t, r->plain_out);
    t->numel = lead->numel;
    for (uint32_t d = 0; d < lead->rank; d++) {
        t->dims[d] = lead->dims[d];
        t->strides[d] = lead->strides[d];
    }
    take_output(stream, q, t->storage, &r->launch.storages[n_in]);
    keep(stream, me, r);
    return t;
}

/* The lock is held. */
static inline burn_tensor *follow_plain(burni_stream *stream, burni_thread *me, const burni_op *op,
                                        burn_tensor *const *in, uint32_t n_in)
{
    burni_sequence *q = stream->sequence;
    burni_record *r = stream->expected;
    if (!is_plain_call(stream, r, op, in, n_in) || !take_plain(stream, q, r, in[0], 0)) {
        return NULL;
    }
    if (n_in == 2 && !take_plain(stream, q, r, in[1], 1)) {
        let_go(q, r, 1);
        return NULL;
    }
    return take_plain_output(stream, me, r, in[0], n_in);
}

/* Apart, so that other calls pay for nothing that it keeps in registers. */
__attribute__((noinline)) static int emit_plain(burni_thread *me, const burni_op *op,
                                                burn_tensor *const *in, uint32_t n_in,
                                                burn_tensor **out)
{
    const burn_tensor *x = in[0];
    burni_stream *stream = me->streams[x->device->core->index];
    uint32_t deferred = stream != NULL ? stream->defers : 0;
    if (stream == NULL || !burni_follows(stream) ||
        (!deferred && stream->sequence->length > 0)) {
        return burni_emit_dense(me, op, in, n_in, out);
    }
    stream->defers = 1;
    int locked = burni_lock_as_owner(stream, me);
    burn_tensor *t = follow_plain(stream, me, op, in, n_in);
    if (locked) {
        burni_unlock_as_owner(stream, me, locked);
    }
    if (__builtin_expect(t == NULL, 0)) {
        stream->defers = deferred;
        return burni_emit_dense(me, op, in, n_in, out);
    }
    if (!deferred) {
        me->open_sequences |= UINT64_C(1) << stream->device->index;
    }
    *out = t;
    return 1;
}

/* Where anything is unusual the call is left to the next way, which asks all of it again. */
int burni_emit_fast(burni_thread *me, const burni_op *op, burn_tensor *const *in, uint32_t n_in,
                    burn_tensor **out)
{
    if (n_in - 1 > 1 || in[0] == NULL || in[n_in - 1] == NULL || me->watch != 0 ||
        me->direct != NULL) {
        return burni_emit_dense(me, op, in, n_in, out);
    }
    const burn_tensor *x = in[0];
    int plain = x->kind == BURN_TENSOR && x->cause == NULL && x->node == NULL;
    return plain ? emit_plain(me, op, in, n_in, out) : burni_emit_dense(me, op, in, n_in, out);
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
