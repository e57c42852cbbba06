/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * resolve.h - from a call's dtypes, layouts and ranks to a kernel row, cached.
 *
 * The key is exact for up to 8 operands of usual dtypes: in `key` 4 bits of dtype and 4 of layout
 * or kind each, in `facts` 4 bits of rank each and the 32 of the math mode; attributes are compared
 * on a hit. Three things are told apart by a hash of 64 bits, `more`, only: operands beyond 8,
 * dtypes of codes above 15 and, where a row asks for them, dims. A resolver belongs to one stream,
 * so no lock is taken. A row's layout wishes are met by copies: `copy_mask` says
 * which inputs must be made dense first. Lists are bounded: where many shapes or attributes pass
 * by, the answers that were not used lately are forgotten. When the device gets more rows, all are.
 * An answer that a record holds stays until the record is gone.
 */
#ifndef BURN_CORE_EXEC_RESOLVE_H
#define BURN_CORE_EXEC_RESOLVE_H

#include "exec/device.h"

typedef struct burni_resolved {
    uint64_t key;
    uint64_t facts;
    uint64_t more;
    const burni_op *op;
    const burn_row *row; /* NULL: no row, `why` says what was missing */
    const void *state;
    uint64_t workspace_bytes;
    uint32_t in_place_mask;
    uint32_t copy_mask;
    uint32_t attrs_size;
    _Atomic uint32_t users; /* records that hold it; they are released by any thread */
    uint32_t tuned;         /* BURNI_TUNED_* (tuner.h): it won against others */
    float gain;             /* the rival's time in parts of its own; 0: no rival was measured */
    const burn_row *rival;
    char why[96];
    struct burni_resolved *next;
    unsigned char attrs[];
} burni_resolved;

/* burni_resolved.tuned; 0: it was not. */
enum { BURNI_TUNED = 1, BURNI_TUNED_AT_ROOF = 2 };

/* How many answers are kept per op; the older half goes when there are more. */
#define BURNI_MAX_RESOLVED 64

/* What a row is handed by calls that differ in their memory alone, ready but for this, the queue
 * and the tag: see burni_launch_ready. The owner of a stream keeps one for each kind of call that
 * it makes often. */
typedef struct burni_ready {
    burn_call call;
    const burni_resolved *resolved;
} burni_ready;

/* The short way of pointwise ops (emit_fast.c): per op, the last key of dtypes and kinds, and what
 * follows from it. Operands are as a row will see them, but for memory; `extent` is their size. */
#define BURNI_FAST_IN 3
typedef struct burni_fast {
    uint64_t key;
    const burni_resolved *resolved;
    uint32_t immediates; /* bit i: input i is one */
    uint32_t tapes;      /* a tracked call may be recorded the short way, too */
    uint32_t grads;      /* bit i: a call is recorded when input i is tracked */
    uint8_t sizes[BURNI_FAST_IN + 1]; /* bytes of an element */
    int64_t extent;
    burn_operand operands[BURNI_FAST_IN + 1];
    burni_ready ready;
} burni_fast;

typedef struct burni_resolver {
    burni_resolved *recent[BURNI_MAX_OPS]; /* per op, most recent first */
    uint32_t counts[BURNI_MAX_OPS];
    burni_fast fast[BURNI_MAX_OPS];
    burni_resolved *retired; /* in no list any more, but held by records */
    uint32_t rows_version;   /* of the device, when the answers were found */
    uint32_t zero;
    burn_queue *queue; /* work on it may use the states of answers */
    const _Atomic uint64_t *submitted;
} burni_resolver;

/*
 * Finds the row for a call whose operands are described (data may be NULL). Returns NULL with
 * BURN_E_NO_MEMORY in `err` only when memory is short; an op without a row gives an entry whose
 * `row` is NULL.
 */
const burni_resolved *burni_resolve(burni_resolver *resolver, burni_device *device,
                                    const burni_op *op, const burn_call *call, burn_err *err);
/* From now on calls of an op that has a row of that name take it where it fits, whatever its
 * priority and also one that is only tuned; NULL: no more. For tools that try rows: nothing else
 * runs meanwhile. BURN_E_INVALID when the name is too long. */
int32_t burni_resolve_prefer(const char *row, burn_err *err);
/* Forgets everything that no record holds. */
void burni_resolver_clear(burni_resolver *resolver, burni_device *device);

/* Asks a row's check and prepare. On failure the text is in `err`. */
int32_t burni_accept_row(const burn_row *row, const burn_call *call, burn_prepared *out,
                         burn_err *err);

/* A record holds an answer, and lets go of it. [any] */
void burni_resolved_hold(const burni_resolved *r);
void burni_resolved_let_go(const burni_resolved *r);

/* Layout class of dims and strides. */
uint8_t burni_layout_of(uint32_t rank, const int64_t *dims, const int64_t *strides);

#endif /* BURN_CORE_EXEC_RESOLVE_H */
