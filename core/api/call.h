/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * call.h - what the public op functions share: attributes in, one tensor out.
 */
#ifndef BURN_CORE_API_CALL_H
#define BURN_CORE_API_CALL_H

#include "exec/emit.h"

#include <burn/build.h>
#include <burn/ops.h>

/* Calls an op with one output; attrs NULL or a struct with a head. */
burn_tensor *burni_call(burn_device *device, uint64_t op, const void *attrs,
                        burn_tensor *const *in, uint32_t n_in);
/* The same with several outputs; returns the first, failed or not. */
burn_tensor *burni_call_n(burn_device *device, uint64_t op, const void *attrs,
                          burn_tensor *const *in, uint32_t n_in, burn_tensor **out,
                          uint32_t n_out);
/* A failed tensor with that text. */
burn_tensor *burni_call_fail(uint64_t op, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The failed tensor for a list of `rank` sizes or axes (`what`) that is NULL or too long. */
burn_tensor *burni_call_bad_dims(uint64_t op, uint32_t rank, const char *what);
/* The failed tensor for `n_axes` axes that are NULL or too many. */
burn_tensor *burni_call_bad_axes(uint64_t op, uint32_t n_axes);
/* Wraps a negative axis once. Out of range stays out of range: infer names it. A failed tensor
 * has rank 0 and passes through. */
int64_t burni_wrap_axis(const burn_tensor *x, int64_t axis);
/* The same for n axes, of which the caller's order means nothing: sorted, as ops ask for, and so
 * that equal calls have equal attributes. */
void burni_wrap_axes(const burn_tensor *x, uint32_t n, const int64_t *axes, int64_t *out);

#endif /* BURN_CORE_API_CALL_H */
