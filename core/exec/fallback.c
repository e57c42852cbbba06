/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fallback.c - decompositions in the middle of a window. See fallback.h.
 *
 * With window 1 the call itself sees that its kernel refused, and expands. A record is run later,
 * maybe by another thread, when its outputs have been promised: so handles are made again from the
 * record's operands (pointwise ones are coalesced, which changes no element), the decomposition is
 * emitted into the record's own stream, and its results hand their memory to the promised storages.
 * Variables are assigned by the decomposition itself. Nothing here is on a usual path.
 */
#include "exec/fallback.h"

#include "base/error.h"
#include "exec/check.h"
#include "exec/emit.h"
#include "exec/fault.h"
#include "exec/guard.h"
#include "exec/origin.h"

#include <string.h>

int burni_fallback_runs(const burni_stream *stream)
{
    return burni_thread_current != NULL && burni_thread_current->direct == stream;
}

/* An operand of the record as a handle of the innermost scope; NULL when it is absent. */
static burn_tensor *operand_handle(burni_thread *thread, const burni_stream *stream,
                                   const burni_launch *launch, uint32_t i)
{
    const burn_operand *o = &launch->operands[i];
    if (o->kind == BURN_ABSENT) {
        return NULL;
    }
    burn_tensor *t = burni_handle_new(thread, 1);
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    t->kind = o->kind;
    t->dtype = o->dtype;
    t->rank = o->kind == BURN_IMMEDIATE ? 0 : o->rank;
    t->device = &stream->device->plain;
    t->numel = 1;
    if (o->kind == BURN_IMMEDIATE) {
        memcpy(t->immediate, o->data, sizeof(t->immediate));
        return t;
    }
    for (uint32_t d = 0; d < o->rank; d++) {
        t->dims[d] = o->dims[d];
        t->strides[d] = o->strides[d];
        t->numel *= o->dims[d];
    }
    if (burni_is_dense(t->rank, t->dims, t->strides)) {
        t->flags |= BURNI_CONTIGUOUS;
    }
    t->offset = (int64_t)(o->offset / burn_dtype_size(o->dtype));
    t->storage = launch->storages[i];
    burni_storage_ref(t->storage, 1);
    return t;
}

/* The result as the only user of memory that holds it from its first byte on. */
static burn_tensor *own_memory(burni_thread *thread, burn_device *device, burn_tensor *t)
{
    int own = t->cause != NULL ||
              ((t->flags & BURNI_CONTIGUOUS) != 0 && t->offset == 0 && !burni_is_var(t->storage) &&
               atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1);
    if (own) {
        return t;
    }
    burn_tensor *copy = NULL;
    (void)burni_emit(thread, device, burni_op_find(BURN_OP_COPY), NULL, 0, &t, 1, &copy, 1);
    return copy;
}

static void give_memory(burni_stream *stream, burni_storage *to, burni_storage *from)
{
    if (to->block != NULL) {
        burni_pool_give(&stream->cache, to->block);
    }
    to->block = from->block;
    to->buffer = from->buffer;
    to->buffer_offset = from->buffer_offset;
    to->host = from->host;
    atomic_store_explicit(&to->write_point, atomic_load(&from->write_point), memory_order_relaxed);
    burni_fault_unref(to->fault);
    to->fault = from->fault;
    from->block = NULL;
    from->fault = NULL;
    atomic_store_explicit(&to->state, BURNI_SUBMITTED, memory_order_release);
}

/* A storage of the record gets what the decomposition made of it. */
static void settle(burni_thread *thread, burni_stream *stream, burni_storage *to, burn_tensor *t)
{
    if (t->cause == NULL && t->storage == to) {
        return; /* a variable: its assignment has been launched */
    }
    t = own_memory(thread, &stream->device->plain, t);
    if (t->cause == NULL && (uint64_t)t->numel * burn_dtype_size(t->dtype) != to->bytes) {
        t = burni_handle_fail(thread, BURN_E_INTERNAL, 0,
                              "a decomposition made %lld elements of %s where %llu bytes were "
                              "promised",
                              (long long)t->numel, burn_dtype_name(t->dtype),
                              (unsigned long long)to->bytes);
    }
    if (t->cause != NULL) {
        burni_storage_fail(to, t->cause);
    } else if (atomic_load_explicit(&t->storage->state, memory_order_acquire) == BURNI_FAILED) {
        burni_storage_fail(to, t->storage->cause);
    } else {
        give_memory(stream, to, t->storage);
    }
}

static void expand(burni_thread *thread, burni_stream *stream, const burni_launch *launch)
{
    burn_tensor *in[BURN_MAX_OPERANDS];
    burn_tensor *out[BURN_MAX_OPERANDS];
    for (uint32_t i = 0; i < launch->n_in; i++) {
        in[i] = operand_handle(thread, stream, launch, i);
    }
    (void)burni_expand(thread, &stream->device->plain, launch->op, launch->attrs,
                       launch->attrs_size, in, launch->n_in, out, launch->n_out);
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *to = launch->storages[launch->n_in + j];
        if (to != NULL) {
            settle(thread, stream, to, out[j]);
        }
    }
}

static void fail_promised(const burni_launch *launch)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *to = launch->storages[launch->n_in + j];
        if (to != NULL) {
            burni_storage_fail(to, &burni_cause_no_memory);
        }
    }
}

/* What of a thread's state belongs to the calls that it makes itself. */
typedef struct own_state {
    burni_stream *stream;
    burni_stream *direct;
    burni_stream *holding;
    burni_frame *frame;
    burni_origin *origin;
    uint64_t tag;
    uint32_t math;
    uint32_t watch;
} own_state;

/* The thread goes on as the record's: its stream, its mode, its place. Values are not checked, as
 * that reads them, and what the parts belong to is the record's op, not what the thread is at. */
static void become_record(burni_thread *thread, burni_stream *stream, const burni_launch *launch,
                          burni_frame *frame, own_state *own)
{
    uint32_t index = stream->device->index;
    own->stream = thread->streams[index];
    own->direct = thread->direct;
    own->holding = thread->holding;
    own->frame = thread->frame;
    own->origin = thread->origin;
    own->tag = thread->tag;
    own->math = thread->math;
    own->watch = thread->watch;
    thread->streams[index] = stream;
    thread->direct = stream;
    thread->holding = stream;
    thread->frame = NULL;
    thread->origin = launch->origin;
    thread->tag = launch->tag;
    thread->math = launch->math;
    thread->watch &= ~BURNI_CHECKS;
    thread->no_grad++;
    thread->depth++;
    burni_frame_open(thread, frame, "", launch->op->def.name);
}

static void become_itself(burni_thread *thread, const burni_stream *stream, const own_state *own)
{
    thread->depth--;
    thread->no_grad--;
    thread->watch = own->watch;
    thread->math = own->math;
    thread->tag = own->tag;
    thread->origin = own->origin;
    thread->frame = own->frame;
    thread->holding = own->holding;
    thread->direct = own->direct;
    thread->streams[stream->device->index] = own->stream;
}

void burni_fallback(burni_stream *stream, const burni_launch *launch)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        fail_promised(launch);
        return;
    }
    own_state own;
    burni_frame frame;
    become_record(thread, stream, launch, &frame, &own);
    burn_scope_begin();
    expand(thread, stream, launch);
    burni_scope_end_inside(NULL, 0);
    become_itself(thread, stream, &own);
}
