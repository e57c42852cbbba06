/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emit.h - one call of one op: infer, resolve, allocate, launch, record on the tape.
 *
 * Everything goes through here: the public functions, decompositions, gradients, windows that run
 * again. Outputs are fresh handles in the innermost scope, failed ones on failure.
 */
#ifndef BURN_CORE_EXEC_EMIT_H
#define BURN_CORE_EXEC_EMIT_H

#include "exec/stream.h"

#include <burn/builder.h>

/* Calls an op; `device` may be NULL where an input is a tensor. Returns the outputs' code. */
int32_t burni_emit(burni_thread *thread, burn_device *device, const burni_op *op,
                   const void *attrs, uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                   burn_tensor **out, uint32_t n_out);

/* The short way of a `simple` op by itself, which no capture sees: dense operands of one shape,
 * scalars. 1 when it did the call; 0: nothing was done. The shortest way first, for tensors that
 * nobody tracks: the call is a record that was the same the last time. (follow.c, emit_fast.c) */
int burni_emit_fast(burni_thread *thread, const burni_op *op, burn_tensor *const *in,
                    uint32_t n_in, burn_tensor **out);

/* Runs an op's decomposition in an inner scope; outputs are fresh handles of the outer scope. */
int32_t burni_expand(burni_thread *thread, burn_device *device, const burni_op *op,
                     const void *attrs, uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                     burn_tensor **out, uint32_t n_out);

/* The builder over emit: values are handles. */
typedef struct burni_eager {
    burni_thread *thread;
    burn_device *device;
} burni_eager;
void burni_eager_builder(burni_eager *ctx, burni_thread *thread, burn_device *device,
                         burn_builder *out);

/*
 * What calls belong to while a thread is watched: "gradient of mul", "layout copy for sum". Opened
 * on the stack around the calls; free when nothing watches (the label is not even written).
 */
typedef struct burni_frame {
    struct burni_frame *outer;
    struct burn_explain_entry *entry; /* whose list of parts is being written, or NULL */
    char label[64];
} burni_frame;
void burni_frame_open(burni_thread *thread, burni_frame *frame, const char *what, const char *op);
void burni_frame_close(burni_thread *thread, burni_frame *frame);

/* Bits of a scalar in another dtype; an error when the value does not fit. */
int32_t burni_scalar_convert(uint8_t from, const uint64_t bits[2], uint8_t to, uint64_t out[2],
                             const char *what, burn_err *err);
double burni_scalar_f64(uint8_t dtype, const uint64_t bits[2]);
/* The value of an integer scalar, as metas of operands carry it in dims[0]; 0 for other dtypes. */
int64_t burni_scalar_whole(uint8_t dtype, const uint64_t bits[2]);

#endif /* BURN_CORE_EXEC_EMIT_H */
