/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emit_private.h - what the parts of one emission share: emit.c, emit_fast.c, describe.c, tape.c
 * and expand.c. Nobody else includes it.
 */
#ifndef BURN_CORE_EXEC_EMIT_PRIVATE_H
#define BURN_CORE_EXEC_EMIT_PRIVATE_H

#include "exec/emit.h"

/* One call in the making. Arrays are filled up to n_in / n_out only. */
typedef struct burni_emission {
    burni_thread *thread;
    burn_device *device;
    const burni_op *op;
    const void *attrs;
    uint32_t attrs_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_temporaries;
    uint32_t moved; /* bit i: input i was handed over by burn_move */
    uint32_t taped;
    uint32_t entry_is_new;            /* explain: `entry` still wants the names of its parts */
    struct burn_explain_entry *entry; /* explain: what tells of this call, or NULL */
    burn_tensor *const *in;
    burn_tensor **out;
    burn_tensor *used[BURN_MAX_OPERANDS]; /* the inputs, or dense copies of them */
    burn_tensor *temporaries[BURN_MAX_OPERANDS];
    burn_meta meta[BURN_MAX_OPERANDS];
    burn_meta out_meta[BURN_MAX_OPERANDS];
    uint64_t immediates[BURN_MAX_OPERANDS][2];
} burni_emission;

/* Operands as a row will see them, but for memory: `offset` is the view's offset in bytes. */
typedef struct burni_operands {
    burn_operand operands[BURN_MAX_OPERANDS];
    burni_storage *storages[BURN_MAX_OPERANDS];
    int64_t dims[BURN_MAX_OPERANDS][BURN_MAX_RANK];
    int64_t strides[BURN_MAX_OPERANDS][BURN_MAX_RANK];
} burni_operands;

/* Describes the operands; pointwise ones are broadcast and coalesced. (describe.c) */
void burni_describe(burni_emission *e, burni_operands *ops);

/* What burni_emit_fast does where no record is followed at once. (emit_fast.c) */
int burni_emit_dense(burni_thread *thread, const burni_op *op, burn_tensor *const *in,
                     uint32_t n_in, burn_tensor **out);

/* The short way of other ops: a call that equals an earlier one in shapes, dtypes and attributes.
 * `e` has its thread, op, attributes and operands. 1 when it did the call; 0: nothing was done, and
 * the outputs are NULL. (emit_again.c) */
int burni_emit_again(burni_emission *e);
/* A call that was made can be made again so. */
void burni_again_learn(burni_stream *stream, const burni_emission *e, const burni_operands *ops,
                       const burni_resolved *resolved, uint32_t math);

/* 1 when the call must be recorded. (tape.c) */
int burni_wants_tape(const burni_emission *e);
/* Lets the outputs know how they are made again, where that is wanted. (recipe.c) */
void burni_recipe_record(burni_emission *e);
/* Records it: hangs a node from the outputs. */
int32_t burni_tape(burni_emission *e, burn_err *err);

/* Shapes and dtypes of the outputs from `meta`, which is filled. */
int32_t burni_emit_infer(burni_emission *e, burn_err *err);

/* A reference to an input that a node keeps, or a ghost of what can be made again; a scalar is kept
 * in the dtype that the op took it in. NULL when memory is short. */
burn_tensor *burni_saved_input(burni_thread *thread, burn_tensor *t, uint8_t dtype,
                               const uint64_t bits[2]);

burni_storage *burni_emit_alias_of(const burni_emission *e, uint32_t j);
int32_t burni_emit_fail(const burni_emission *e, burn_err *err);

#endif /* BURN_CORE_EXEC_EMIT_PRIVATE_H */
