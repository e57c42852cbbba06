/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check_bounds.h - BURN_CHECK=bounds: what a kernel writes outside of its outputs is seen.
 *
 * launch.c calls it around the launches of streams whose `way` has BURNI_WAY_GUARDED, and only
 * then: others pay nothing, not even a test. The kernel works on a copy of its operands' memory
 * with guard bytes around each, so nothing that it does wrong reaches other values, wherever those
 * lie: in blocks, in places of a plan, in variables. Each device is looked at alike, also one whose
 * memory the host does not see. [queue], but for burni_bounds_set. Who else launches kernels
 * brackets them in the same way.
 */
#ifndef BURN_CORE_EXEC_CHECK_BOUNDS_H
#define BURN_CORE_EXEC_CHECK_BOUNDS_H

#include "exec/stream.h"

typedef struct burni_bounds burni_bounds;

/* On or off for streams that are opened from now on, and for those of `thread` (NULL: none). [any]
 */
void burni_bounds_set(burni_thread *thread, int on);
/* A thread has opened the stream. */
void burni_bounds_stream(burni_stream *stream);

/*
 * Before `n` launches that their row's kernel makes at once: points the operands, which are bound,
 * the fault words (one for each launch, some absent) and the workspace (or NULL) at guarded copies.
 * NULL: memory is short, or the device's buffers cannot be cut; then nothing was done, and the
 * launches are made as ever.
 */
burni_bounds *burni_bounds_before(burni_stream *stream, const burni_launch *const *launches,
                                  burn_operand *const *operands, burn_operand *words,
                                  burn_operand *workspace, uint32_t n);
/* Behind them, with the kernel's code, which is returned where it is none of the queue's: copies
 * the outputs to where they belong, and keeps for burni_bounds_judge what was found. BURN_E_DATA of
 * a row that does not say BURN_ROW_FAULTS becomes BURN_E_INTERNAL. NULL is fine.
 */
int32_t burni_bounds_after(burni_bounds *bounds, int32_t rc, burn_err *err);
/* When outputs have been published, with the code of all of it: fails them where something was
 * found. */
void burni_bounds_judge(burni_stream *stream, const burni_launch *const *launches, uint32_t n,
                        int32_t rc);

#endif /* BURN_CORE_EXEC_CHECK_BOUNDS_H */
