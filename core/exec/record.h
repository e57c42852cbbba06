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
    uint64_t before;     /* of the sequence up to the record before it */
    uint32_t klass;      /* which free list, or none */
    uint32_t done;       /* it has run, or will not: nothing is held any more */
    uint32_t kept;       /* it will run again, from a recording */
    uint32_t place;      /* among the spent ones, from 1 on; 0: it is not there */
    uint32_t last_place; /* where it was, or 0 */
    uint32_t n_fresh;    /* sizes that it was the first of the sequence to have */
    uint64_t changed;    /* the stream's count when its sizes, views or row were written last */
    uint64_t age; /* of one that is left (unrun.h): burni_stream_age when it would have run */
    int64_t fresh[BURNI_FRESH];
    uint32_t plain[2];    /* heads of its inputs, where it is a plain call (follow.c); else 0 */
    uint32_t plain_out;   /* of its result */
    uint32_t plain_rows;  /* the device's rows, of which its own is one */
    uint64_t plain_bytes; /* of its result */
    struct burni_record *follow; /* the one after it the last time, which may serve another now */
    struct burni_record *next;   /* free list */
};


/* Records that run together, and the slots that they speak of. */
typedef struct burni_batch {
    burni_record **records;
    burni_slot *slots;
    uint32_t n; /* records */
    uint32_t n_slots;
    uint32_t checks; /* some have notes (check.h): no input is overwritten, nothing has a place */
    uint32_t keeps_inner; /* storages of what never leaves a group stay (rebind.h) */
    uint64_t changed; /* of the records, the latest */
    uint64_t is_whole; /* all will have run: who runs them says so of each (burni_record_ran) */
} burni_batch;

/* A record of a launch that was just added to the stream's sequence, with the slots that it got;
 * `before`: the chain until then. NULL, and nothing changed, when memory is short. */
burni_record *burni_record_new(burni_stream *stream, const burni_launch *launch,
                               const uint32_t *slots, uint64_t before);
/* The same, but it holds no storage and promises nothing. `stream` NULL: in memory of its own. */
burni_record *burni_record_copy(burni_stream *stream, const burni_launch *launch,
                                const uint32_t *slots);
/* It needs its row, and what tells where it comes from, no more. */
void burni_record_let_go(burni_record *r);
/* Is one of its operands the slot? */
static inline int burni_record_touches(const burni_record *r, uint32_t slot)
{
    int found = 0;
    for (uint32_t i = 0; i < r->launch.n_in + r->launch.n_out; i++) {
        found |= r->slots[i] == slot;
    }
    return found;
}
/* It needs what tells where it comes from no more. */
void burni_record_forget(burni_record *r);
/* A record of the stream will write the storage. */
void burni_storage_promise(burni_stream *stream, burni_storage *s);
/* Lets go of what it holds: after it ran, or instead. */
void burni_record_done(burni_slot *slots, burni_record *r);
/* The same in two steps, for records that ran together: the record, and each slot. */
static inline void burni_record_ran(burni_record *r)
{
    r->done = 1;
    if (__builtin_expect((r->launch.origin != NULL || r->launch.check != NULL) && !r->kept, 0)) {
        burni_record_forget(r);
    }
}
static inline void burni_slot_let_go(burni_slot *slot, uint32_t uses, uint32_t writes)
{
    burni_storage *s = slot->storage;
    if (writes > 0) {
        uint32_t now = atomic_load_explicit(&s->writes, memory_order_relaxed) - writes;
        atomic_store_explicit(&s->writes, now, memory_order_release);
    }
    slot->uses -= uses;
    if (slot->uses == 0 && slot->held) {
        slot->held = 0;
        burni_storage_unref(s, BURNI_RECORD_REF);
    }
}
/* `place` counts from 1 on. */
static inline burni_record **burni_spent_at(burni_stream *stream, uint32_t place)
{
    return &stream->spent[place - 1];
}

/* It is not needed now, and may serve again: where it was before, or where there is room. */
void burni_record_store(burni_stream *stream, burni_record *r);
static inline void burni_record_free(burni_stream *stream, burni_record *r)
{
    if (r->last_place == 0 || *burni_spent_at(stream, r->last_place) != NULL) {
        burni_record_store(stream, r);
        return;
    }
    *burni_spent_at(stream, r->last_place) = r;
    r->place = r->last_place;
}

/* A record that waits among the spent ones waits no more. */
static inline void burni_record_take(burni_stream *stream, burni_record *r)
{
    *burni_spent_at(stream, r->place) = NULL;
    r->last_place = r->place;
    r->place = 0;
}
/* Runs one record, and is done with it. */
void burni_record_run(burni_stream *stream, burni_slot *slots, burni_record *r);

/* One more use of a slot by a record. `fresh`: nobody else has seen the storage yet, so no atomic
 * step is needed. */
static inline void burni_slot_hold(burni_slot *slot, int fresh)
{
    burni_storage *s = slot->storage;
    slot->uses++;
    if (slot->held) {
        return;
    }
    slot->held = 1;
    if (fresh) {
        uint64_t refs = atomic_load_explicit(&s->refs, memory_order_relaxed);
        atomic_store_explicit(&s->refs, refs + BURNI_RECORD_REF, memory_order_relaxed);
    } else {
        burni_storage_ref(s, BURNI_RECORD_REF);
    }
}

/* 1: the storage is seen by nobody but `n_uses` operands of waiting records. */
static inline int burni_slot_dies(const burni_slot *slot, uint32_t n_uses)
{
    return slot->uses == n_uses && atomic_load_explicit(&slot->storage->refs,
                                                        memory_order_acquire) == BURNI_RECORD_REF;
}

/* Whose outputs somebody outside of the records can see; tells when one was changed last. */
uint64_t burni_records_alive(const burni_batch *batch, uint8_t *alive);
/* 1 when a result of it is in one of the slots that are marked. */
int burni_record_makes_any(const burni_record *r, const uint8_t *slots);

/*
 * Which of the first `count` records must run: those with an effect, those whose outputs somebody
 * outside of them can see, and what these need. `alive[i]` tells of the middle sort.
 */
void burni_records_needed(const burni_batch *batch, uint32_t count, uint8_t *alive,
                          uint8_t *needed);

/* The same for all records, when it is known whose results are seen from outside. */
void burni_records_need(const burni_batch *batch, const uint8_t *alive, uint8_t *needed);

#endif /* BURN_CORE_EXEC_RECORD_H */
