/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stream.h - where the records of one thread on one device wait, and how they run.
 *
 * One path for all modes: a call fills a launch, `burni_stream_append` runs it at once or keeps a
 * copy (a record). Window 1 runs each at once; window N keeps up to N; auto keeps those of a
 * sequence that was seen before (sequence.h) and runs new ones at once. Records run at a read, a
 * sync, a full window (of N its older half), the end of the outermost scope (auto only) or when
 * another thread needs one of their outputs: by a plan (plan.h) where there is one, else in order.
 * Records that nobody can see are dropped. A stream's lock guards its records; it is taken by the
 * owner when it appends or runs, and by a consumer that drains it. Locks never nest: a consumer
 * drains before it touches its own stream.
 */
#ifndef BURN_CORE_EXEC_STREAM_H
#define BURN_CORE_EXEC_STREAM_H

#include "exec/device.h"
#include "exec/resolve.h"
#include "loader/lent.h"

#define BURNI_MAX_WINDOW 1024
#define BURNI_WINDOW_AUTO 0 /* calls of a known sequence wait, others run at once */

typedef struct burni_note burni_note; /* check.h */

/* A call that is ready but for memory: `operands[i]` describes, `storages[i]` will hold. */
typedef struct burni_launch {
    const burni_op *op;
    const burni_resolved *resolved;
    const void *attrs;
    uint32_t attrs_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t math;
    uint32_t moved;     /* bit i: input i's handle was handed over: its storage may be taken */
    uint32_t dying;     /* bit i: nobody sees input i's storage any more: it may be taken */
    uint32_t overwrite; /* bit i: input i is overwritten without being read */
    uint32_t whole;     /* bit i: a fused call reads all of input i for some elements of a result */
    uint32_t waited;    /* it is a record's: its outputs are promised */
    uint32_t remade;    /* it makes again what was not kept: see grad/recompute.h */
    uint64_t tag;
    struct burni_origin *origin; /* the call that was decomposed into this one, or NULL */
    burni_note *check; /* what its results are checked by (check.h), or NULL */
    uint64_t form;  /* with `extent`: what the op and its operands are but for memory, offsets and
                     * scalars; 0: not told */
    int64_t extent;
    burn_operand *operands;
    burni_storage **storages; /* NULL for immediates and absent operands */
} burni_launch;

typedef struct burni_record burni_record; /* record.h */
#define BURNI_RECORD_CLASSES 2
#define BURNI_AGAIN          128  /* calls that can be made again the short way */
#define BURNI_LATEST         64
#define BURNI_SPENT_SETS     512  /* of records that ran, kept for the next time round */
#define BURNI_SPENT_WAYS     4

typedef struct burni_fault {
    _Atomic uint32_t refs;
    _Atomic int32_t state; /* 0 open, 1 clean, 2 failed */
    struct burni_stream *stream;
    burni_block *block;
    uint64_t point;
    const burni_op *op;
    uint64_t tag;
    uint64_t age; /* burni_stream_age of the launch */
    struct burni_origin *origin; /* held; NULL: the launch was no part of a call */
    burni_cause *cause;
    burn_fault word; /* as it was copied from the device */
    struct burni_fault *next_open; /* the stream's list of words that nobody looked at yet */
    struct burni_fault *next_stuck; /* the device's list of those whose memory must stay */
    uint32_t n_parents;
    uint32_t is_stuck;
    struct burni_fault *parents[];
} burni_fault;

/* burni_stream.way; 0 is a launch on a synchronous device that nobody looks at. */
enum {
    BURNI_WAY_QUEUED = 1,  /* waits before, a point behind */
    BURNI_WAY_MEASURED = 2, /* profile.h */
    BURNI_WAY_DRY = 4,      /* dry.h: nothing is launched */
    BURNI_WAY_GUARDED = 8   /* check_bounds.h */
};

typedef struct burni_stream {
    burni_device *device;
    burn_queue *queue;
    pthread_mutex_t lock; /* lock.h says who takes what */
    pthread_mutex_t gate;
    pthread_cond_t left;
    _Atomic uint32_t busy;
    _Atomic uint32_t asked;
    uint32_t asymmetric;
    uint32_t zero_three;
    _Atomic uint64_t submitted; /* last point signalled */
    uint32_t window;
    uint32_t n_records;
    _Atomic uint32_t way; /* BURNI_WAY_*: how kernels are launched */
    uint32_t zero;
    struct burni_lane *_Atomic lane; /* of whoever takes times (profile.h), or NULL */
    uint32_t defers; /* in window auto: calls wait; the owner's own */
    uint32_t checks; /* some record that waits has a note: inputs of a group stay as they are */
    burni_record *records[BURNI_MAX_WINDOW];
    burni_record *free_records[BURNI_RECORD_CLASSES];
    struct burni_again *again[BURNI_AGAIN]; /* emit_again.c */
    struct burni_again *latest[BURNI_LATEST]; /* of these, by op: most loops repeat one */
    burni_record *spent[BURNI_SPENT_SETS * BURNI_SPENT_WAYS]; /* by their chain; record.c */
    burni_record *expected; /* what the next call was the last time (follow.c), or NULL */
    burni_record *first;    /* the first one of the last sequence, or NULL */
    burni_record *tail;     /* the last one that was kept since the cut, or NULL */
    struct burni_sequence *sequence; /* NULL until the first call that is not in window 1 */
    struct burni_plans *plans;       /* plan.h; NULL until there is one */
    struct burn_replay *recording;   /* recording.h: launches are kept to run again, or NULL */
    burni_cause *outside; /* what the last kernel wrote outside of its outputs, or NULL */
    burni_cache cache;
    burni_resolver resolver; /* the owner's */
    burni_resolver others;   /* of whoever expands a record (fallback.h), under the lock */
    burni_thread *owner; /* NULL: idle, waiting for a thread */
    burni_fault *open_faults;
    uint32_t n_open_faults;
    uint32_t zero_too;
    burni_sink sink;    /* lent to [queue] entries; looked at after a failure only */
    uint64_t n_past; /* calls that waited and do so no more, or ran at once and may fail late */
    uint64_t at;     /* while records run: which one, counted on from n_past and 1; else 0 */
    uint64_t n_dropped; /* records that never ran */
    uint64_t n_launched;
    uint64_t n_followed; /* calls that were what was expected (follow.c) */
    uint64_t n_forms; /* that emit_again.c has numbered */
    uint64_t changes; /* of records: how often one was written other than it was */
    struct burni_stream *next;
} burni_stream;

/* Tells earlier calls of the stream from later ones, by what runs or is called now, in whichever
 * order they run: of several failures the first call's is told. The lock is held, or nothing waits.
 */
static inline uint64_t burni_stream_age(const burni_stream *stream)
{
    return stream->at != 0 ? stream->at : stream->n_past + stream->n_records + 1;
}

/* Record i of those that were first to wait runs next. */
static inline void burni_stream_runs(burni_stream *stream, uint32_t i)
{
    stream->at = stream->n_past + i + 1;
}

/* The first n calls wait no more. */
static inline void burni_stream_passed(burni_stream *stream, uint32_t n)
{
    stream->n_past += n;
    stream->at = 0;
}

static inline uint32_t burni_stream_way(const burni_stream *stream)
{
    return atomic_load_explicit(&stream->way, memory_order_relaxed);
}

/* The answer of a [queue] entry that was lent the stream's sink: its code, its text in `err`. */
static inline int32_t burni_stream_said(burni_stream *stream, const char *entry, int32_t rc,
                                        burn_err *err)
{
    if (__builtin_expect(rc == BURN_OK, 1)) {
        return BURN_OK;
    }
    return burni_sink_end(&stream->sink, stream->device->backend, entry, rc, err);
}

/* Makes the queue signal the next point, which is told on success. A failure is tried again once:
 * work that was queued before it, such as a copy to the caller's memory, can't be called back. */
int32_t burni_stream_signal(burni_stream *stream, uint64_t *out_point, burn_err *err);
/* Blocks until the stream's queue has reached the point. [any] */
int32_t burni_stream_wait(const burni_stream *stream, uint64_t point, burn_err *err);

/* Forgets the calls that could be made again the short way (emit_again.c); they are few. */
void burni_again_forget(burni_stream *stream);

/* Answers about rows for a call that this thread makes. */
burni_resolver *burni_stream_resolver(burni_stream *stream);

/* The calling thread's stream on a device, made if need be; NULL and an error when it can't be. */
burni_stream *burni_stream_open(burni_thread *thread, burni_device *device, burn_err *err);
static inline burni_stream *burni_stream_get(burni_thread *thread, burni_device *device,
                                             burn_err *err)
{
    burni_stream *s = thread->streams[device->index];
    return __builtin_expect(s != NULL, 1) ? s : burni_stream_open(thread, device, err);
}

/* Takes a launch: runs it, or keeps it. Failures of the work mark its outputs, they are not
 * returned; BURN_E_UNSUPPORTED from a kernel that ran at once is, BURN_E_NO_MEMORY when no record
 * could be made, a queue's code, with its text in `err` (or NULL), when it could not wait. A record
 * whose kernel answers BURN_E_UNSUPPORTED is decomposed (fallback.h). */
int32_t burni_stream_append(burni_stream *stream, const burni_launch *launch, burn_err *err);

/* The lock of a stream that other threads may drain: around everything that touches its records,
 * its cache or its queue. Takes nothing when the thread holds it already, or is the owner while
 * nothing waits: window 1, or auto and the sequence is new. The answer is to be given back. */
int burni_stream_lock(burni_stream *stream);
void burni_stream_unlock(burni_stream *stream, int locked);

/* Runs everything pending on a stream, whoever owns it. [any] */
void burni_stream_drain(burni_stream *stream);
/* The same at a point that ends sequences: a read, a sync, the end of the outermost scope. */
void burni_stream_cut(burni_stream *stream);
/* The same for a read of one storage: what only scopes of the thread hold may stay unrun. */
void burni_stream_cut_for(burni_stream *stream, const burni_storage *target);

/* Makes sure a storage was launched: drains its writer when it is pending elsewhere or here. */
void burni_storage_launch(burni_storage *storage);

/* Gives a storage host-visible state: waits for its point and its faults. Returns its code. */
int32_t burni_storage_wait(burni_thread *thread, burni_storage *storage, burn_err *err);

/* Memory for a storage, now. */
int32_t burni_storage_back(burni_stream *stream, burni_storage *storage, burn_err *err);
void burni_storage_fail(burni_storage *storage, burni_cause *cause);

/* Waits until the stream's queue has done all it was given. */
int32_t burni_stream_finish(burni_stream *stream, burn_err *err);

/* Runs what is pending on all streams of a device, ends its queues and closes it. Memory that is
 * released later is forgotten, not given back. Idempotent. */
void burni_device_close(burni_device *device);

/* Looks at every fault word of the stream that is still open; failures are latched. */
int32_t burni_stream_look_at_faults(burni_stream *stream, burn_err *err);

#endif /* BURN_CORE_EXEC_STREAM_H */
