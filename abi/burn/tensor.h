/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tensor.h - tensors: immutable values, the scopes that own them, and how they are read.
 *
 * Every call that returns a tensor gives it to the innermost scope of the calling thread; the
 * scope's end releases it. So expressions chain without leaks. A call that fails returns a failed
 * tensor, never NULL: it carries the first cause, ops on it are skipped and pass the cause on.
 * Check once, where you read. A tensor may be used by any thread once it was kept; keep, release
 * and scopes belong to the thread that made the tensor. All functions: [any].
 */
#ifndef BURN_TENSOR_H
#define BURN_TENSOR_H

#include <burn/base.h>
#include <burn/call.h>
#include <burn/device.h>
#include <burn/dtype.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

typedef struct burn_tensor burn_tensor;

/* ---- making ---------------------------------------------------------------------------- */

/* A tensor with a copy of `data` (row-major, numel * dtype size bytes). rank 0..8, dims >= 0. Bytes
 * of bools that are not 0 become 1. */
BURN_API burn_tensor *burn_tensor_from_data(burn_device *device, uint8_t dtype, uint32_t rank,
                                            const int64_t *dims, const void *data);
/* The same from doubles (int64_t), converted to `dtype` by the rules of a cast. */
BURN_API burn_tensor *burn_tensor_from_f64(burn_device *device, uint8_t dtype, uint32_t rank,
                                           const int64_t *dims, const double *data);
BURN_API burn_tensor *burn_tensor_from_i64(burn_device *device, uint8_t dtype, uint32_t rank,
                                           const int64_t *dims, const int64_t *data);
/* A scalar by value, for ops that take one: burn_mul(x, burn_scalar(2.0)). It takes the dtype of
 * the tensor it meets; a value that does not fit that dtype is an error. */
BURN_API burn_tensor *burn_scalar(double value);
BURN_API burn_tensor *burn_scalar_int(int64_t value);
BURN_API burn_tensor *burn_scalar_u64(uint64_t value);

/* ---- asking ---------------------------------------------------------------------------- */

/* 1 unless the tensor failed at its call. Work that fails later shows when it is read. */
BURN_API int32_t burn_ok(const burn_tensor *t);
/* BURN_OK, or the code of a failed tensor with its text in `err`. Runs nothing. */
BURN_API int32_t burn_tensor_error(const burn_tensor *t, burn_err *err);
/* Of a failed tensor: BURN_DTYPE_NONE, 0, 0. `axis` may be negative; out of range gives 0. */
BURN_API uint8_t burn_dtype_of(const burn_tensor *t);
BURN_API uint32_t burn_rank(const burn_tensor *t);
BURN_API int64_t burn_dim(const burn_tensor *t, int64_t axis);
BURN_API int64_t burn_numel(const burn_tensor *t);
/* The device without autodiff; NULL for a scalar or a failed tensor. */
BURN_API burn_device *burn_device_of(const burn_tensor *t);

/* ---- reading --------------------------------------------------------------------------- */

/* Copies the elements, row-major, into `out` of exactly numel * size bytes. Waits for the work. */
BURN_API int32_t burn_read(const burn_tensor *t, void *out, size_t bytes, burn_err *err);
/* The same as doubles or integers, `n` = numel. */
BURN_API int32_t burn_read_f64(const burn_tensor *t, double *out, int64_t n, burn_err *err);
BURN_API int32_t burn_read_i64(const burn_tensor *t, int64_t *out, int64_t n, burn_err *err);
/* The one element of a tensor as double; NaN on failure (see `err`). */
BURN_API double burn_item(const burn_tensor *t, burn_err *err);

/* ---- owning ---------------------------------------------------------------------------- */

/* Opens a scope on this thread; everything made from here on belongs to it. */
BURN_API void burn_scope_begin(void);
/* Ends the innermost scope and releases what it holds. */
BURN_API void burn_scope_end(void);
/* Ends it but hands `n` tensors of it to the outer scope. */
BURN_API void burn_scope_end_with(burn_tensor *const *results, uint32_t n);
/* The same for one result, which it returns: return burn_scope_return(y); */
BURN_API burn_tensor *burn_scope_return(burn_tensor *result);
/* Releases what the thread's root scope holds. */
BURN_API void burn_scope_flush(void);
/* Takes a tensor out of its scope; it is the caller's until burn_release. Returns it. */
BURN_API burn_tensor *burn_keep(burn_tensor *t);
/* Gives a tensor up; NULL is fine. */
BURN_API void burn_release(burn_tensor *t);
/* Hands a tensor to the next call, whose kernel may overwrite it; do not use it afterwards. */
BURN_API burn_tensor *burn_move(burn_tensor *t);

/* ---- printing -------------------------------------------------------------------------- */

/* Text such as "f32[2,3] {{1, 2, 3}, {4, 5, 6}}", cut to `size`; returns the needed length. */
BURN_API size_t burn_tensor_text(const burn_tensor *t, char *out, size_t size);

BURN_END_DECLS

#endif /* BURN_TENSOR_H */
