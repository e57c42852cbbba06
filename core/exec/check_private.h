/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check_private.h - what check.c (when and around what) and check_value.c (values, verdicts, texts)
 * share. Nobody else includes it.
 *
 * A check is one call that is looked at: its operands as the program sees them, their memory, and,
 * once they have been fetched, their elements on the host, widened as `eval` wants them. The stream
 * is the caller's own, or its lock is held.
 */
#ifndef BURN_CORE_EXEC_CHECK_PRIVATE_H
#define BURN_CORE_EXEC_CHECK_PRIVATE_H

#include "exec/check.h"

/* An operand as the program sees it, where a kernel may see fewer dims. */
typedef struct burni_noted {
    burn_meta meta;
    int64_t strides[BURN_MAX_RANK]; /* elements */
    int64_t offset;                 /* bytes */
} burni_noted;

struct burni_note {
    _Atomic uint32_t refs;
    uint32_t watch;
    char part_of[64]; /* the decomposition or gradient that makes the call, or "" */
    burni_noted operands[]; /* inputs, then outputs */
};

struct burni_check {
    burni_stream *stream;
    const burni_op *op;
    burni_note *note; /* the owner's */
    const void *attrs;
    uint64_t tag;
    uint32_t attrs_size;
    uint32_t n_in;
    uint32_t n_out;
    int32_t unread; /* an input could not be read: nothing can be said */
    int32_t have_inputs;
    uint32_t zero;
    const void *bits[BURN_MAX_OPERANDS];         /* of inputs that are immediates */
    burni_storage *storages[BURN_MAX_OPERANDS];  /* inputs, then outputs */
    burn_eval_operand in[BURN_MAX_OPERANDS];
    burn_eval_operand out[BURN_MAX_OPERANDS]; /* as computed */
    burn_eval_operand expected[BURN_MAX_OPERANDS];
};

/* Fetches the inputs, or says that they can't be. */
void burni_check_read_inputs(burni_check *check);
/* Fetches the outputs and says what is wrong. */
void burni_check_outputs(burni_check *check);
/* Lets go of all that was fetched. */
void burni_check_clear(burni_check *check);

/* Elements of a storage as the operand sees them. */
int32_t burni_check_fetch(burn_eval_operand *x, burni_stream *stream, burni_storage *s,
                          const burni_noted *noted, burn_err *err);
void burni_check_release(burn_eval_operand *x);
/* 0: `position` is that of an element which is no number. */
int burni_check_is_finite(const burn_eval_operand *x, uint64_t *position);
/* 0: `position` is that of an element of other bits; NaNs are the same. */
int burni_check_is_same(const burn_eval_operand *a, const burn_eval_operand *b,
                        uint64_t *position);
/* The group's kernel made `got` where the call by itself makes `expected`; fails `storage`. */
void burni_check_blame_group(burni_stream *stream, const burni_launch *launch, const char *names,
                             burni_storage *storage, const burn_eval_operand *got,
                             const burn_eval_operand *expected, uint64_t position);

/* Counts of the report. */
typedef enum {
    BURNI_LOOKED_AT,
    BURNI_COMPARED,
    BURNI_SKIPPED,
    BURNI_WRONG,
    BURNI_GUARDED,
    BURNI_UNGUARDED,
    BURNI_COUNTS
} burni_check_count;
void burni_check_add(burni_check_count which, uint64_t n);

#endif /* BURN_CORE_EXEC_CHECK_PRIVATE_H */
