/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recording.h - the launches of a step, kept to be run again (burn/replay.h).
 *
 * A stream that records hands each launch to its recording before it runs it. The recording copies
 * it, tells its storages apart by slots, and holds those that come from outside. At the end each
 * slot is a temporary, an output, a port, a variable or a constant; a run (rerun.c) binds fresh
 * storages to the first two, today's to the others, and runs all by a plan, long steps in parts.
 * Owner thread only.
 */
#ifndef BURN_CORE_EXEC_RECORDING_H
#define BURN_CORE_EXEC_RECORDING_H

#include "exec/plan.h"
#include "exec/var.h"

#include <burn/replay.h>

/* What a slot stands for when the step is run again. */
enum {
    BURNI_SLOT_TEMPORARY = 0,
    BURNI_SLOT_OUTPUT = 1,
    BURNI_SLOT_PORT = 2,
    BURNI_SLOT_VARIABLE = 3,
    BURNI_SLOT_CONSTANT = 4
};

typedef struct burni_bound_slot {
    uint8_t kind;
    uint8_t written;  /* some record writes it */
    uint8_t outside;  /* it was read before any record wrote it */
    uint8_t zero;
    uint32_t index;   /* which output, port or variable */
    uint64_t bytes;
    burni_storage *storage; /* of a port while recording, of a constant: held */
    burn_var *var;          /* of a variable; held by the list of them */
} burni_bound_slot;

typedef struct burni_param {
    char name[32];
    double value;
    double step;
} burni_param;

/* A scalar operand that is set before each run. */
typedef struct burni_patch {
    uint32_t record;
    uint32_t operand;
    uint32_t param; /* UINT32_MAX: a random counter, `base` beyond the run's first */
    uint32_t zero;
    uint64_t base;
} burni_patch;

typedef struct burni_port {
    uint32_t slot;
    uint8_t dtype;
    uint8_t rank;
    uint8_t zero[2];
    int64_t numel;
    uint64_t bytes;
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK]; /* of a dense one */
} burni_port;

/* An operand of a record that is bound anew in each run (rebind.h). */
typedef struct burni_binding {
    burni_storage **place;
    uint32_t slot;
    uint32_t zero;
} burni_binding;

#define BURNI_MAX_PORTS 64

/* Launches of a step; those of a part are planned together. Values pass from part to part. */
#define BURNI_MAX_KEPT 4096
#define BURNI_MAX_PARTS (BURNI_MAX_KEPT / BURNI_MAX_WINDOW)

typedef struct burni_part {
    uint32_t from; /* record */
    uint32_t n;
    burni_plan *plan; /* NULL: its records run one by one */
} burni_part;

/* Dense, and all of its storage: what stands in for it needs no view. */
static inline int burni_is_whole(const burn_tensor *t)
{
    return t->offset == 0 && (t->flags & BURNI_CONTIGUOUS) != 0 &&
           t->storage->bytes == (uint64_t)t->numel * burn_dtype_size(t->dtype);
}

struct burn_replay {
    burni_thread *thread;
    burni_stream *stream;
    burn_device *device;
    burni_sequence *sequence; /* its slots only; kept, since records speak of them */
    burni_bound_slot *slots;  /* BURNI_SLOTS of them */
    burni_record **records;   /* BURNI_MAX_KEPT of them */
    burni_param *params;
    burni_patch *patches;
    burn_var **vars; /* each once, by rising address */
    uint8_t *alive;  /* of each record; NULL before the first run */
    uint8_t *needed;
    burni_part parts[BURNI_MAX_PARTS];
    uint32_t n_parts; /* 0 before the first run */
    uint8_t *inner;       /* of each slot: its storage stays from run to run; NULL: none does */
    uint32_t *outer;      /* the other slots that are used */
    uint32_t *outer_uses; /* and how often */
    burni_binding *bindings;
    uint32_t n_outer;
    uint32_t n_bindings; /* those that are read before those that are written */
    uint32_t n_reads;
    uint32_t is_quick; /* the four above are filled */
    uint32_t is_new_plan;
    uint32_t n_records;
    uint32_t n_params, cap_params;
    uint32_t n_patches, cap_patches;
    uint32_t n_vars;
    uint32_t n_ports;
    uint32_t n_outputs;
    int32_t failed; /* why it can't be kept: err */
    uint32_t checks; /* what its launches are checked by (check.h) */
    uint64_t serial; /* names of scalars are this recording's own */
    uint64_t rng_seed;
    uint64_t rng_first; /* counters that the step took: from here ... */
    uint64_t rng_count;
    burni_port ports[BURNI_MAX_PORTS];
    burni_port outputs[BURNI_MAX_PORTS];
    burn_err err;
};

/* A launch of the stream that it records; how many there were before. */
uint32_t burni_recording_add(burn_replay *replay, const burni_launch *launch);
/* The launch was not taken: those from the n-th on are no part of the step. */
void burni_recording_take_back(burn_replay *replay, uint32_t n);
/* Something that can't be done again happened on the thread; the first reason counts. */
void burni_recording_refuse(burni_thread *thread, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The thread ends in the middle of a step. */
void burni_recording_abandon(burni_thread *thread);

#endif /* BURN_CORE_EXEC_RECORDING_H */
