/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fault.h - fault words and snapshots: what asynchronous devices need beside launches.
 *
 * A fault is one burn_fault in device memory, given to a launch whose row may write it. Outputs
 * carry it, and whatever is computed from them, until a read or sync looked at it: then exactly the
 * dependents fail. A snapshot records what every stream of a device had submitted; memory freed
 * away from its stream is reused when the snapshot has passed.
 */
#ifndef BURN_CORE_EXEC_FAULT_H
#define BURN_CORE_EXEC_FAULT_H

#include "exec/stream.h"

/* The fault that the outputs of a launch will carry: its own, its inputs', or none (NULL). When it
 * is the launch's own, `word` describes its memory. */
int32_t burni_fault_for_launch(burni_stream *stream, const burni_launch *launch, burni_fault **out,
                               burn_operand *word, burn_err *err);
void burni_fault_attach(const burni_launch *launch, burni_fault *fault, uint64_t point);
/* Looks at the faults of a storage whose point is reached; fails it when one was written. */
int32_t burni_fault_check(burni_thread *thread, burni_storage *storage, burn_err *err);
/* The same, asked by a stream that is the caller's own, or locked. */
int32_t burni_fault_check_on(burni_stream *stream, burni_storage *storage, burn_err *err);
/* NULL is fine. */
burni_fault *burni_fault_ref(burni_fault *fault);
void burni_fault_unref(burni_fault *fault);

uint64_t burni_snapshot_take(burni_device *device);
/* As the pool asks: `user` is the device. */
int burni_snapshot_passed(void *user, uint64_t ticket);

#endif /* BURN_CORE_EXEC_FAULT_H */
