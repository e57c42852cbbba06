/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * guard.h - readers of a variable's memory, and the writer that exchanges it.
 *
 * A variable keeps its memory, so readers of the old value are moved to a copy (var.c) before it is
 * overwritten. A launch or read that has bound the old address must be done, or be in its queue,
 * before that happens: it enters the guard of each variable it reads, binds, launches, leaves. Only
 * storages of variables are guarded; all others pay one bit test. Readers never wait for each
 * other. Order of locks: variable, stream, guard. Within a guard no stream's lock is taken and no
 * second guard is waited for, so whoever exchanges waits for running kernels only. [any]
 */
#ifndef BURN_CORE_EXEC_GUARD_H
#define BURN_CORE_EXEC_GUARD_H

#include "tensor/tensor.h"

/* Enters the guards of storages[i] for each bit i of `mask`; none are variables' any more: fine. */
void burni_guard_enter(burni_storage *const *storages, uint64_t mask);
/* The same for all storages of a list; no more than that are entered at a time. */
void burni_guard_enter_all(burni_storage *const *storages, uint32_t n);
void burni_guard_leave_all(burni_storage *const *storages, uint32_t n);
/* Leaves the guards that the same mask entered. */
void burni_guard_leave(burni_storage *const *storages, uint64_t mask);

/* Waits until nobody is inside and keeps new readers out until the end. The caller holds the
 * variable's lock, so there is one of them per storage. */
void burni_guard_exchange_begin(burni_storage *storage);
void burni_guard_exchange_end(burni_storage *storage);

static inline int burni_is_var(const burni_storage *storage)
{
    return atomic_load_explicit(&storage->is_var, memory_order_acquire) != 0;
}

#endif /* BURN_CORE_EXEC_GUARD_H */
