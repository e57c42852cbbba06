/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * launch.h - running one launch on its stream.
 *
 * A launch comes from a call that runs at once, from a record, from a group of records, or from a
 * decomposition that takes a record's place. The caller is the stream's owner, or holds its lock.
 */
#ifndef BURN_CORE_EXEC_LAUNCH_H
#define BURN_CORE_EXEC_LAUNCH_H

#include "exec/stream.h"

/*
 * Takes memory for the outputs, waits for the inputs, launches and publishes. Failures mark the
 * outputs; BURN_E_UNSUPPORTED of a kernel is returned where the caller can decompose.
 * `operands` are bound to memory; after an error they are as before.
 */
int32_t burni_launch_run(burni_stream *stream, const burni_launch *launch, burn_operand *operands);
/* The same, but a failure is the answer, and the outputs are as before: nothing is marked. What may
 * be overwritten are inputs that lie as an output does, element by element. BURN_E_UNSUPPORTED: the
 * kernel does not do it. */
int32_t burni_launch_try(burni_stream *stream, const burni_launch *launch, burn_operand *operands,
                         burn_err *err);
/* As many launches of one row as are run in one go (burn_many). */
enum { BURNI_MANY = 32, BURNI_MANY_OPERANDS = 12 };
/*
 * burni_launch_run of each of up to BURNI_MANY launches of a row that the kernel serves, at once
 * where that can be: those that fail do so alone. None writes what another one touches, their
 * outputs have memory, and none has more than BURNI_MANY_OPERANDS operands. `operands` as theirs
 * above.
 */
void burni_launch_many(burni_stream *stream, const burn_many_kernel *kernel,
                       burni_launch *const *launches, burn_operand *const *operands, uint32_t n);
/* The same for a call that runs at once: by a short way where nothing can be in its way. */
int32_t burni_launch_run_now(burni_stream *stream, const burni_launch *launch,
                             burn_operand *operands);

/* `operands` and `attrs` stay: inputs, and one output. */
void burni_ready_make(burni_ready *ready, const burni_resolved *resolved, burn_operand *operands,
                      uint32_t n_in, const void *attrs, uint32_t attrs_size, uint32_t math);

enum {
    BURNI_READY_DONE, /* launched */
    BURNI_READY_NOT,  /* something is in its way, and nothing was done: it has to be described */
    BURNI_READY_ERROR /* the kernel did not do it: burni_launch_refused, with the description */
};

/*
 * Runs the call of which `operands` are ready but for what `storages` say, by the short way only;
 * the output's is new. On an error, the code and the reason are in `err`.
 */
int burni_launch_ready(burni_stream *stream, burni_ready *ready, burn_operand *operands,
                       burni_storage *const *storages, burn_err *err);
/* What burni_launch_run does when a kernel answers with an error. */
int32_t burni_launch_refused(burni_stream *stream, const burni_launch *launch, int32_t rc,
                             burn_err *err);

/* 1: a call of the thread runs at once: see burni_launch_ready. */
static inline int burni_launches_now(const burni_stream *stream)
{
    return stream->window == 1 && stream->recording == NULL;
}
/* May output 0, or any of a fused call's (`by_position`), lie in the memory of input i, by the row
 * and the views of the inputs? Lifetimes and sizes are the caller's to look at. */
int burni_launch_may_share(const burni_launch *launch, uint32_t i, int by_position);
/* Have operands i and k as many elements, of the same size? */
int burni_launch_same_size(const burni_launch *launch, uint32_t i, uint32_t k);

/* Elements of an operand. */
static inline int64_t burni_operand_numel(const burn_operand *o)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++) {
        n *= (uint64_t)o->dims[d];
    }
    return (int64_t)n;
}

#endif /* BURN_CORE_EXEC_LAUNCH_H */
