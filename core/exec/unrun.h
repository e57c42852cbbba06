/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * unrun.h - values that only a scope holds: not computed, or not written, until they are asked for.
 *
 * At a read in the middle of a scope the scope still holds the results of earlier calls, most of
 * which nobody will look at. They are treated as dead. A call none of whose results was written
 * leaves a record with their storages (state BURNI_UNRUN), which keeps its operands; whoever needs
 * one later, a read or a launch, runs it then, once, with the bits that it would have had. A call
 * that reads a variable is made before that is overwritten, if it is still left then: its memory is
 * not copied for it. No more bytes are kept than would be written, but for a page per cut. Owner
 * thread only, but for burni_unrun_make, _make_readers and _drop.
 */
#ifndef BURN_CORE_EXEC_UNRUN_H
#define BURN_CORE_EXEC_UNRUN_H

#include "exec/plan.h"

/*
 * Of the records of a cut, takes those whose results only scopes of the calling thread hold out of
 * `alive`, but for the storage that the cut is for; `left[i]` is 1 for them. Returns how many.
 */
uint32_t burni_unrun_find(burni_stream *stream, const burni_batch *batch,
                          const burni_storage *target, uint8_t *alive, uint8_t *left);
/*
 * Leaves the records of those results that `written` says nobody will write, and of what they are
 * made of. 0, and nothing is left, when memory is short, or more would be held than saved.
 */
int burni_unrun_leave(burni_stream *stream, const burni_batch *batch, const uint8_t *left,
                      const uint8_t *written);
/* After that: nobody waits for those storages any more. Before anything runs. */
void burni_unrun_settle(const burni_batch *batch);
/* Runs what makes the value of a storage in state BURNI_UNRUN. [any] */
void burni_unrun_make(burni_storage *storage);
/* Runs, in the caller's stream, all that is left and reads a variable's memory, which the caller is
 * about to overwrite: it has the variable's lock, and no other stream has records that read it. */
void burni_unrun_make_readers(burni_stream *stream, burni_storage *variable);
/* All that the thread's scopes hold on a device: whoever keeps a handle has it made then, so there
 * are no others. Owner thread. */
void burni_unrun_make_all(burni_thread *thread, const burni_device *device);
/* The storage dies without having been asked for. [any] */
void burni_unrun_drop(burni_storage *storage);

static inline int burni_is_unrun(const burni_storage *s)
{
    return atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_UNRUN;
}

#endif /* BURN_CORE_EXEC_UNRUN_H */
