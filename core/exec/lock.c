/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lock.c - the lock of a stream where it is not the owner's alone. See lock.h.
 *
 * Who asks holds the mutex while it waits, so there is one at a time. The owner that leaves and
 * sees that somebody has asked wakes it; it can't miss that: either its load came after the barrier
 * and sees the wish, or its store came before and was seen.
 */
#include "exec/lock.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---- the barrier ----------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_barrier;

#ifdef __linux__
static long call(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

static void find_barrier(void)
{
    long known = call(MEMBARRIER_CMD_QUERY);
    has_barrier = known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
                  call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* All threads of the process have done what they had begun, and see what this one did. */
static void barrier_everywhere(void)
{
    if (has_barrier && call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        /* A child that was forked begins unregistered on some kernels. */
        (void)call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        (void)call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
}
#else
static void find_barrier(void)
{
    has_barrier = 0;
}

static void barrier_everywhere(void)
{
}
#endif

int burni_lock_init(burni_stream *stream)
{
    (void)pthread_once(&once, find_barrier);
    stream->asymmetric = (uint32_t)has_barrier;
    if (pthread_mutex_init(&stream->lock, NULL) != 0) {
        return 0;
    }
    if (pthread_mutex_init(&stream->gate, NULL) != 0) {
        (void)pthread_mutex_destroy(&stream->lock);
        return 0;
    }
    if (pthread_cond_init(&stream->left, NULL) != 0) {
        (void)pthread_mutex_destroy(&stream->gate);
        (void)pthread_mutex_destroy(&stream->lock);
        return 0;
    }
    return 1;
}

void burni_lock_destroy(burni_stream *stream)
{
    (void)pthread_cond_destroy(&stream->left);
    (void)pthread_mutex_destroy(&stream->gate);
    (void)pthread_mutex_destroy(&stream->lock);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void wake_who_asked(burni_stream *stream)
{
    (void)pthread_mutex_lock(&stream->gate);
    (void)pthread_cond_broadcast(&stream->left);
    (void)pthread_mutex_unlock(&stream->gate);
}

static void ask(burni_stream *stream)
{
    atomic_store(&stream->asked, 1);
    barrier_everywhere();
    if (atomic_load(&stream->busy) == 0) {
        return;
    }
    (void)pthread_mutex_lock(&stream->gate);
    while (atomic_load(&stream->busy) != 0) {
        (void)pthread_cond_wait(&stream->left, &stream->gate);
    }
    (void)pthread_mutex_unlock(&stream->gate);
}

int burni_lock_slowly(burni_stream *stream, burni_thread *me)
{
    int locked = BURNI_LOCK_ASKED;
    if (burni_stream_is_mine(stream, me)) {
        /* It said that it was inside, and is not. */
        atomic_store(&stream->busy, 0);
        wake_who_asked(stream);
        (void)pthread_mutex_lock(&stream->lock);
        locked = BURNI_LOCK_MUTEX;
    } else {
        (void)pthread_mutex_lock(&stream->lock);
        ask(stream);
    }
    if (me != NULL) {
        me->holding = stream;
    }
    return locked;
}

void burni_unlock_slowly(burni_stream *stream, int locked)
{
    if (locked == BURNI_LOCK_NONE) {
        wake_who_asked(stream);
        return;
    }
    if (burni_thread_current != NULL) {
        burni_thread_current->holding = NULL;
    }
    if (locked == BURNI_LOCK_ASKED) {
        atomic_store(&stream->asked, 0);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* ---- for all --------------------------------------------------------------------------------- */

int burni_stream_lock(burni_stream *stream)
{
    burni_thread *me = burni_thread_current;
    if (stream->window == 1 || (me != NULL && me->holding == stream)) {
        return BURNI_LOCK_NONE;
    }
    if (!burni_stream_is_mine(stream, me)) {
        return burni_lock_slowly(stream, me);
    }
    /* The owner's thread, and nothing waits: nobody else has anything to do here. */
    int idle = stream->window == BURNI_WINDOW_AUTO && !stream->defers;
    return idle ? BURNI_LOCK_NONE : burni_lock_as_owner(stream, me);
}

void burni_stream_unlock(burni_stream *stream, int locked)
{
    if (locked != BURNI_LOCK_NONE) {
        burni_unlock_as_owner(stream, burni_thread_current, locked);
    }
}
