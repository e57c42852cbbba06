/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lock.h - the lock of a stream: the owner goes in and out with plain stores.
 *
 * Nearly always only the owner wants it, at every call. So it says that it is inside (`busy`) and
 * looks whether somebody has asked (`asked`). Others take the mutex, ask, make all threads see that
 * (a barrier of the kernel's, paid by who asks), and wait for `busy` to end; the owner meanwhile
 * waits for the mutex. Where there is no such barrier the owner pays for one each time. (Dekker's
 * algorithm with an asymmetric fence; membarrier(2) describes the use.)
 */
#ifndef BURN_CORE_EXEC_LOCK_H
#define BURN_CORE_EXEC_LOCK_H

#include "exec/stream.h"

/* How a thread holds the lock; what burni_stream_lock answers. */
enum {
    BURNI_LOCK_NONE = 0,  /* there was no need, or it had it already */
    BURNI_LOCK_OWNER = 1, /* `busy` */
    BURNI_LOCK_MUTEX = 2, /* the owner after somebody asked */
    BURNI_LOCK_ASKED = 3  /* another thread */
};

/* 0: no memory. */
int burni_lock_init(burni_stream *stream);
void burni_lock_destroy(burni_stream *stream);

/* The parts that are not inline. */
int burni_lock_slowly(burni_stream *stream, burni_thread *me);
void burni_unlock_slowly(burni_stream *stream, int locked);

static inline int burni_stream_is_mine(const burni_stream *stream, const burni_thread *me)
{
    return me != NULL && me->streams[stream->device->index] == stream;
}

/* Says that the owner is inside; 1: it is. */
static inline int burni_lock_enter(burni_stream *stream)
{
    if (__builtin_expect(stream->asymmetric != 0, 1)) {
        atomic_store_explicit(&stream->busy, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        (void)atomic_exchange(&stream->busy, 1);
    }
    return atomic_load(&stream->asked) == 0;
}

static inline int burni_lock_as_owner(burni_stream *stream, burni_thread *me)
{
    if (me->holding == stream) {
        return BURNI_LOCK_NONE;
    }
    if (__builtin_expect(burni_lock_enter(stream), 1)) {
        me->holding = stream;
        return BURNI_LOCK_OWNER;
    }
    return burni_lock_slowly(stream, me);
}

static inline void burni_unlock_as_owner(burni_stream *stream, burni_thread *me, int locked)
{
    if (__builtin_expect(locked != BURNI_LOCK_OWNER, 0)) {
        burni_unlock_slowly(stream, locked);
        return;
    }
    me->holding = NULL;
    if (__builtin_expect(stream->asymmetric != 0, 1)) {
        atomic_store_explicit(&stream->busy, 0, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        (void)atomic_exchange(&stream->busy, 0);
    }
    if (__builtin_expect(atomic_load(&stream->asked) != 0, 0)) {
        burni_unlock_slowly(stream, BURNI_LOCK_NONE);
    }
}

#endif /* BURN_CORE_EXEC_LOCK_H */
