/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * guard.c - the counter of a variable's readers. See guard.h.
 *
 * One atomic word per storage: how many are inside, and a bit that says that somebody exchanges the
 * memory. Who must wait does so under one lock of the process: exchanges are rare and short. A
 * reader that meets one leaves all guards that it had entered before it waits, so that two readers
 * of two variables cannot block two writers.
 */
#include "exec/guard.h"

#include <pthread.h>

#define EXCHANGING 0x80000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void leave(burni_storage *s)
{
    uint32_t before = atomic_fetch_sub_explicit(&s->readers, 1, memory_order_acq_rel);
    if ((before & EXCHANGING) != 0) {
        (void)pthread_mutex_lock(&lock);
        (void)pthread_cond_broadcast(&moved);
        (void)pthread_mutex_unlock(&lock);
    }
}

/* Waits for the end of an exchange, outside of all guards. */
static void wait_for_exchange(burni_storage *s)
{
    (void)pthread_mutex_lock(&lock);
    while ((atomic_load_explicit(&s->readers, memory_order_acquire) & EXCHANGING) != 0) {
        (void)pthread_cond_wait(&moved, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* One more reader; 0: it is being exchanged, and was entered nevertheless. */
static int enter(burni_storage *s)
{
    return (atomic_fetch_add_explicit(&s->readers, 1, memory_order_acq_rel) & EXCHANGING) == 0;
}

/* Enters as many as can be entered at once; the first that is being exchanged is the answer. */
static burni_storage *try_all(burni_storage *const *storages, uint64_t mask)
{
    uint64_t entered = 0;
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(rest);
        entered |= UINT64_C(1) << i;
        if (!enter(storages[i])) {
            burni_guard_leave(storages, entered);
            return storages[i];
        }
    }
    return NULL;
}

void burni_guard_enter(burni_storage *const *storages, uint64_t mask)
{
    burni_storage *busy = try_all(storages, mask);
    while (busy != NULL) {
        wait_for_exchange(busy);
        busy = try_all(storages, mask);
    }
}

void burni_guard_leave(burni_storage *const *storages, uint64_t mask)
{
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        leave(storages[__builtin_ctzll(rest)]);
    }
}

static burni_storage *try_list(burni_storage *const *storages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!enter(storages[i])) {
            burni_guard_leave_all(storages, i + 1);
            return storages[i];
        }
    }
    return NULL;
}

void burni_guard_enter_all(burni_storage *const *storages, uint32_t n)
{
    burni_storage *busy = try_list(storages, n);
    while (busy != NULL) {
        wait_for_exchange(busy);
        busy = try_list(storages, n);
    }
}

void burni_guard_leave_all(burni_storage *const *storages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        leave(storages[i]);
    }
}

void burni_guard_exchange_begin(burni_storage *s)
{
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_or_explicit(&s->readers, EXCHANGING, memory_order_acq_rel);
    while ((atomic_load_explicit(&s->readers, memory_order_acquire) & ~EXCHANGING) != 0) {
        (void)pthread_cond_wait(&moved, &lock);
    }
    (void)pthread_mutex_unlock(&lock);
}

void burni_guard_exchange_end(burni_storage *s)
{
    (void)pthread_mutex_lock(&lock);
    (void)atomic_fetch_and_explicit(&s->readers, ~EXCHANGING, memory_order_acq_rel);
    (void)pthread_cond_broadcast(&moved);
    (void)pthread_mutex_unlock(&lock);
}
