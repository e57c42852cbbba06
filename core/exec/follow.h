/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * follow.h - the shortest way of a call: it is what the last round did here.
 *
 * Each record knows which one came after it the last time. Where the next call has the same form
 * (op, dtypes, shapes, layouts, attributes, as the short ways of emission name it) and its operands
 * are the storages at the same places of the sequence, the link that it adds is the same, and so is
 * all that the record holds but for storages, offsets and scalars. Nothing is hashed or looked up.
 * Where anything differs the call is appended the usual way. Window auto; owner thread only.
 */
#ifndef BURN_CORE_EXEC_FOLLOW_H
#define BURN_CORE_EXEC_FOLLOW_H

#include "exec/record.h"

/* A call of which it was found out what follows from dtypes, shapes and attributes alone. Its
 * results are fresh storages, dense from their first byte on. */
typedef struct burni_form {
    const burni_op *op;
    const burni_resolved *resolved;
    uint64_t form; /* as in burni_launch, not 0 */
    int64_t extent;
    uint32_t n_in;
    uint32_t n_out;
    burn_tensor *const *in;
    burn_tensor *const *out;
    const uint64_t (*immediates)[2]; /* of the inputs that are scalars; NULL: none is */
    uint32_t is_plain; /* one or two tensors of one shape, which the result has as well */
    uint32_t zero;
} burni_form;

/* 1: the call waits as the record that was expected. 0: that is not what it is; nothing is done. */
int burni_follow(burni_stream *stream, const burni_form *call);

/* It is worth asking. */
static inline int burni_follows(const burni_stream *stream)
{
    return stream->expected != NULL && stream->window == BURNI_WINDOW_AUTO &&
           stream->recording == NULL;
}

/* A record was kept the usual way: after the one before it, this is what to expect. */
void burni_follow_learn(burni_stream *stream, burni_record *r);
/* The next call is the first of a sequence. */
void burni_follow_cut(burni_stream *stream);

#endif /* BURN_CORE_EXEC_FOLLOW_H */
