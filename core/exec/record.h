/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * record.h - a launch that waits: a copy that keeps its storages alive.
 *
 * Records belong to a stream; everything here is under its lock. All records of a stream that use
 * a storage share one reference to it (BURNI_RECORD_REF), counted in the storage's slot, so that a
 * chain of calls pays one atomic step per storage, not per operand. A storage whose slot has no
 * more uses is let go of at once, and its memory serves what runs next.
 */
#ifndef BURN_CORE_EXEC_RECORD_H
#define BURN_CORE_EXEC_RECORD_H

#include "exec/sequence.h"
#include "exec/stream.h"

struct burni_record {
    burni_launch launch; /* its arrays lie behind this struct */
    uint32_t *slots;     /* of each operand's storage (sequence.h) */
    uint64_t chain;      /* of the sequence up to here */
    uint32_t klass;      /* which free list, or none */
    uint32_t done;       /* it has run, or will not: nothing is held any more */
    struct burni_record *next;
};

/* A record of a launch whose slots are known. NULL, and nothing changed, when memory is short. */
burni_record *burni_record_new(burni_stream *stream, const burni_launch *launch,
                               const uint32_t *slots);
/* Lets go of what it holds: after it ran, or instead. */
void burni_record_done(burni_stream *stream, burni_record *r);
void burni_record_free(burni_stream *stream, burni_record *r);

/* Bit i: input i's storage is seen by nobody once this record, which is `n_uses` of its uses, has
 * run. For inputs 0 to 31. */
uint32_t burni_record_dying(const burni_stream *stream, const burni_record *r);
/* The same for one slot. */
int burni_slot_dies(const burni_stream *stream, uint32_t slot, uint32_t n_uses);

/*
 * Which of the first `count` records must run: those with an effect, those whose outputs somebody
 * outside of them can see, and what these need. `alive[i]` tells of the middle sort.
 */
void burni_records_needed(const burni_stream *stream, uint32_t count, uint8_t *alive,
                          uint8_t *needed);

#endif /* BURN_CORE_EXEC_RECORD_H */
