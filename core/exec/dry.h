/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dry.h - a stream that launches nothing and takes no memory (burn/plans.h).
 *
 * Calls, records, plans and lifetimes are as ever; blocks are counted by the pool and have no
 * memory, and a launch ends before its kernel. What it would have written is a failed storage with
 * one cause, burni_cause_dry, which launches of the stream do not look at. Under the stream's lock.
 */
#ifndef BURN_CORE_EXEC_DRY_H
#define BURN_CORE_EXEC_DRY_H

#include "exec/stream.h"

static inline int burni_is_dry(const burni_stream *stream)
{
    return stream->cache.dry != NULL;
}

/* A launch whose outputs have got memory ends here. */
void burni_dry_launched(burni_stream *stream, const burni_launch *launch);
void burni_count_dry_calls(burni_stream *stream, uint32_t n);
/* Records that run, or are dropped. */
static inline void burni_dry_calls(burni_stream *stream, uint32_t n)
{
    if (__builtin_expect(burni_is_dry(stream), 0)) {
        burni_count_dry_calls(stream, n);
    }
}
/* A variable was made on the storage. */
void burni_dry_variable(const burni_thread *thread, const burni_storage *s);
/* Has its work failed, as far as is known? To be without a value is no failure in a dry run. */
int burni_storage_failed(const burni_thread *thread, const burni_storage *s);
/* The thread ends in the middle of one. */
void burni_dry_abandon(burni_thread *thread);

#endif /* BURN_CORE_EXEC_DRY_H */
