/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * group.h - records that run as one `burn.fused` call.
 *
 * A group is made from records that plan.c found to fit; its program, its operands and the row
 * that runs it are remembered by number. Where something is in the way at run time (an input that
 * failed, sizes that no longer fit each other, a kernel that refuses) the records run one by one,
 * so errors and values are those of single calls, and `apart` says why. What a kernel refused it
 * would refuse again, so the plan gives the group up. Under the stream's lock.
 */
#ifndef BURN_CORE_EXEC_GROUP_H
#define BURN_CORE_EXEC_GROUP_H

#include "exec/launch.h"
#include "exec/record.h"

#include <burn/fused.h>

/* One member, in the order of the records but for a product, which is first. */
typedef struct burni_member {
    uint32_t record;
    uint8_t space;    /* of its result: BURN_FUSED_FULL, ROW or COLUMN */
    uint8_t reduces;  /* it is a reduction: its input is FULL */
    uint8_t written;  /* somebody outside of the group needs its result */
    uint8_t produces; /* the first one only: a product, whose inputs are WHOLE */
    uint8_t lines;    /* it goes over lines */
    uint8_t zero[7];  /* they lie before what wants 8 bytes */
} burni_member;

/* An operand of the fused call: that of some member. */
typedef struct burni_group_input {
    uint32_t record;
    uint32_t operand;
    uint32_t slot_uses; /* operands of members that are this storage */
    uint32_t zero;
} burni_group_input;

/* An operand that was the same view of the same storage as an input when the group was made. Views
 * of other offsets make the same sequence, so each run looks again. */
typedef struct burni_group_twin {
    uint32_t record;
    uint32_t operand;
    uint32_t input;
    uint32_t zero;
} burni_group_twin;

/* What all members together do with a slot. */
typedef struct burni_group_use {
    uint32_t slot;
    uint32_t uses;
    uint32_t writes;
    uint32_t inner; /* a result that nobody outside of the group needs */
} burni_group_use;

typedef struct burni_group {
    uint32_t n_members;
    uint32_t n_in; /* without the length of rows */
    uint32_t n_out;
    uint32_t has_rows;
    uint32_t n_row_uses;
    uint32_t n_twins;
    uint32_t may_stop; /* a step may find data without an answer: nothing is overwritten */
    uint32_t program_size;
    uint32_t n_uses;
    uint32_t is_bound; /* `bound` is filled */
    uint32_t is_refused; /* by its kernel */
    uint32_t whole; /* bit k: input k is an operand of the product, or one line for all rows */
    uint64_t changed;  /* the batch's at that time: it is as good for records that are as old */
    /* Held. With a product it is for `sizes` (group.c), and is found again for others. */
    const burni_resolved *resolved;
    burni_stream *stream;
    struct burni_group_sizes *sizes; /* NULL: it serves all */
    burni_member *members;
    burni_group_input *inputs;
    burni_group_input *row_uses; /* operands by which positions read the value of their row */
    burni_group_twin *twins;     /* operands that are given once, since they were the same view */
    uint32_t *outputs;           /* records */
    burni_group_use *uses;
    burn_operand *bound; /* the operands of the call as they were bound last, without memory */
    int64_t length[2];   /* of a row, then */
    void *program;
    char end[104];   /* for whoever watches: why it is no longer, or "" */
    char apart[208]; /* the same: why it did not run as one the last time that it did not */
    struct burni_group *next; /* of those that a plan gave up */
    uint64_t memory[]; /* what the pointers point at */
} burni_group;

enum { BURNI_WHY_BYTES = 96 }; /* as many as a resolved call has for the same */

/* Makes a group of the members; NULL when it cannot run as one, with the reason in `why`. */
burni_group *burni_group_make(burni_stream *stream, const burni_batch *batch,
                              const burni_member *members, uint32_t n,
                              char why[BURNI_WHY_BYTES]);
void burni_group_free(burni_group *group);

/* The fused call, ready but for memory. */
typedef struct burni_group_call {
    burni_launch launch;
    burn_operand operands[BURN_MAX_OPERANDS];
    burni_storage *storages[BURN_MAX_OPERANDS];
    int64_t length[2]; /* of a row */
} burni_group_call;

/* 0: sizes of today do not fit each other, or no row takes them. */
int burni_group_bind(const burni_batch *batch, burni_group *group, burni_group_call *call);
/* What a run will need; 0 where it cannot run as one. */
uint64_t burni_group_workspace(const burni_batch *batch, burni_group *group);
enum { BURNI_RAN_AS_ONE, BURNI_RAN_APART, BURNI_REFUSED /* by the kernel, so it ran apart */ };
/* Runs all members; which of these it was. */
int burni_group_run(burni_stream *stream, const burni_batch *batch, burni_group *group);

/* May the launch be a group's product, as its row is today? */
static inline int burni_may_produce(const burni_launch *launch)
{
    const burni_resolved *r = launch->resolved;
    return launch->op->def.fuse == BURN_FUSE_EPILOGUE_HOST && r->row != NULL &&
           r->copy_mask == 0 && (r->row->flags & BURN_ROW_EPILOGUE) != 0;
}

/* Elements of a line, where the launch may go over lines in a group, as its row is today; or 0. */
int64_t burni_line_of(const burni_launch *launch);

/* Is operand i of the launch one line, the same for all rows, of an op that goes over lines? */
int burni_is_one_line(const burni_launch *launch, uint32_t i);

/* A position reads the value of its row: one element per row, seen by all `length` positions. */
static inline int burni_reads_its_row(const burn_operand *o, int64_t positions, int64_t length)
{
    int all_rows = o->rank == 2 && o->dims[1] == length && o->dims[0] * length == positions &&
                   o->strides[0] == 1 && o->strides[1] == 0;
    return all_rows || (o->layout == BURN_LAYOUT_SCALAR && positions == length);
}

#endif /* BURN_CORE_EXEC_GROUP_H */
