/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tensor.c - the public functions of <burn/tensor.h>: making, asking, reading, printing.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/printer.h"
#include "exec/emit.h"
#include "exec/transfer.h"
#include "ops/rules.h"

#include <burn/ops.h>
#include <burn/registry.h>
#include <burn_sdk/half.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

burn_tensor *burn_tensor_from_data(burn_device *device, uint8_t dtype, uint32_t rank,
                                   const int64_t *dims, const void *data)
{
    return burni_upload(burni_thread_get(), device, dtype, rank, dims, data);
}

/* Uploads 64-bit values and casts on the device, so that one rule converts everywhere. */
static burn_tensor *from_wide(burn_device *device, uint8_t wide, uint8_t dtype, uint32_t rank,
                              const int64_t *dims, const void *data)
{
    burni_thread *thread = burni_thread_get();
    burn_tensor *t = burni_upload(thread, device, wide, rank, dims, data);
    if (dtype == wide || t->cause != NULL) {
        return t;
    }
    burn_attrs_cast a = {{sizeof(a), 1}, dtype, 0};
    burn_tensor *out = NULL;
    (void)burni_emit(thread, device, burni_op_find(BURN_OP_CAST), &a, sizeof(a), &t, 1, &out, 1);
    burn_release(t);
    return out;
}

burn_tensor *burn_tensor_from_f64(burn_device *device, uint8_t dtype, uint32_t rank,
                                  const int64_t *dims, const double *data)
{
    return from_wide(device, BURN_F64, dtype, rank, dims, data);
}

burn_tensor *burn_tensor_from_i64(burn_device *device, uint8_t dtype, uint32_t rank,
                                  const int64_t *dims, const int64_t *data)
{
    return from_wide(device, BURN_I64, dtype, rank, dims, data);
}

static burn_tensor *scalar(uint8_t dtype, uint64_t bits)
{
    burni_thread *thread = burni_thread_get();
    burn_tensor *t = thread != NULL ? burni_handle_new(thread, 1) : NULL;
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    t->kind = BURN_IMMEDIATE;
    t->dtype = dtype;
    t->rank = 0;
    t->numel = 1;
    t->immediate[0] = bits;
    t->immediate[1] = 0;
    return t;
}

burn_tensor *burn_scalar(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return scalar(BURN_F64, bits);
}

burn_tensor *burn_scalar_int(int64_t value)
{
    return scalar(BURN_I64, (uint64_t)value);
}

burn_tensor *burn_scalar_u64(uint64_t value)
{
    return scalar(BURN_U64, value);
}

/* ---- asking ---------------------------------------------------------------------------------- */

int32_t burn_ok(const burn_tensor *t)
{
    return t != NULL && t->cause == NULL;
}

int32_t burn_tensor_error(const burn_tensor *t, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (t == NULL) {
        return burni_fail(err, BURN_E_INVALID, "the tensor is NULL");
    }
    if (t->cause == NULL) {
        return BURN_OK;
    }
    burni_cause_write(t->cause, err);
    return t->cause->code;
}

uint8_t burn_dtype_of(const burn_tensor *t)
{
    return burn_ok(t) ? t->dtype : BURN_DTYPE_NONE;
}

uint32_t burn_rank(const burn_tensor *t)
{
    return burn_ok(t) ? t->rank : 0;
}

int64_t burn_dim(const burn_tensor *t, int64_t axis)
{
    if (!burn_ok(t)) {
        return 0;
    }
    axis = axis < 0 ? axis + t->rank : axis;
    return axis >= 0 && axis < t->rank ? t->dims[axis] : 0;
}

int64_t burn_numel(const burn_tensor *t)
{
    return burn_ok(t) ? t->numel : 0;
}

burn_device *burn_device_of(const burn_tensor *t)
{
    return burn_ok(t) && t->device != NULL ? &t->device->core->plain : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

int32_t burn_read(const burn_tensor *t, void *out, size_t bytes, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (t == NULL || thread == NULL) {
        return burni_fail(err, BURN_E_INVALID, "read: the tensor is NULL");
    }
    if (t->cause != NULL) {
        return burn_tensor_error(t, err);
    }
    uint64_t want = (uint64_t)t->numel * burn_dtype_size(t->dtype);
    if (out == NULL && want > 0) {
        return burni_fail(err, BURN_E_INVALID, "read: out is NULL, %" PRIu64 " bytes are needed",
                          want);
    }
    if (bytes != want) {
        return burni_fail(err, BURN_E_INVALID, "read: the tensor has %" PRIu64 " bytes, not %zu",
                          want, bytes);
    }
    return burni_download(thread, t, out, want, err);
}

/* Element i of raw bytes as double or integer. */
static double element_f64(uint8_t dtype, const unsigned char *bytes, int64_t i)
{
    uint64_t bits[2] = {0, 0};
    uint32_t size = burn_dtype_size(dtype);
    memcpy(bits, bytes + (size_t)i * size, size);
    return burni_scalar_f64(dtype, bits);
}

static int64_t element_i64(uint8_t dtype, const unsigned char *bytes, int64_t i)
{
    uint64_t bits = 0;
    uint32_t size = burn_dtype_size(dtype);
    memcpy(&bits, bytes + (size_t)i * size, size);
    uint32_t shift = 64 - 8 * size;
    int is_signed = burn_dtype_class(dtype) == BURN_CLASS_INT;
    return is_signed ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
}

/* The tensor's bytes in fresh host memory, NULL on failure. */
static unsigned char *raw_bytes(const burn_tensor *t, int64_t n, const void *out, burn_err *err)
{
    if (t == NULL || burn_tensor_error(t, err) != BURN_OK) {
        if (t == NULL) {
            (void)burni_fail(err, BURN_E_INVALID, "read: the tensor is NULL");
        }
        return NULL;
    }
    if (n != t->numel) {
        (void)burni_fail(err, BURN_E_INVALID,
                         "read: the tensor has %" PRId64 " elements, not %" PRId64, t->numel, n);
        return NULL;
    }
    if (out == NULL && n > 0) {
        (void)burni_fail(err, BURN_E_INVALID, "read: out is NULL, %" PRId64 " numbers are needed",
                         n);
        return NULL;
    }
    size_t size = (size_t)n * burn_dtype_size(t->dtype);
    unsigned char *bytes = burni_alloc(size);
    if (bytes == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "read: out of host memory");
        return NULL;
    }
    if (burni_download(burni_thread_get(), t, bytes, size, err) != BURN_OK) {
        burni_free(bytes);
        return NULL;
    }
    return bytes;
}

int32_t burn_read_f64(const burn_tensor *t, double *out, int64_t n, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    unsigned char *bytes = raw_bytes(t, n, out, err);
    if (bytes == NULL) {
        return err->code;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = element_f64(t->dtype, bytes, i);
    }
    burni_free(bytes);
    return BURN_OK;
}

int32_t burn_read_i64(const burn_tensor *t, int64_t *out, int64_t n, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (t != NULL && t->cause == NULL && burn_dtype_class(t->dtype) == BURN_CLASS_FLOAT) {
        return burni_fail(err, BURN_E_DTYPE, "read: a %s tensor as integers; cast it first",
                          burn_dtype_name(t->dtype));
    }
    unsigned char *bytes = raw_bytes(t, n, out, err);
    if (bytes == NULL) {
        return err->code;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = element_i64(t->dtype, bytes, i);
    }
    burni_free(bytes);
    return BURN_OK;
}

double burn_item(const burn_tensor *t, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    double value = (double)NAN;
    if (burn_read_f64(t, &value, 1, err) != BURN_OK) {
        return (double)NAN;
    }
    return value;
}

/* ---- printing -------------------------------------------------------------------------------- */

#define SHOW_ALL  8 /* axes up to this are shown whole, */
#define SHOW_ENDS 3 /* longer ones by their first and last elements */

/* What is printed of a long axis, as a short one; without an owner, in the innermost scope. */
static burn_tensor *ends_of(burn_tensor *t, uint32_t axis)
{
    int64_t n = burn_dim(t, axis);
    if (n <= SHOW_ALL) {
        return t;
    }
    burn_tensor *ends[2] = {burn_slice(t, axis, 0, SHOW_ENDS, 1),
                            burn_slice(t, axis, n - SHOW_ENDS, n, 1)};
    return burn_cat(ends, 2, axis);
}

/* The elements that are printed, dense on the host: a large tensor is not read whole. */
static unsigned char *shown_bytes(const burn_tensor *t, const void *out, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    burn_tensor *shown = (burn_tensor *)(uintptr_t)t;
    if (t->kind != BURN_TENSOR || thread == NULL) {
        return raw_bytes(t, t->numel, out, err);
    }
    /* Printing is no part of what the program computes. */
    uint32_t watch = thread->watch;
    thread->watch = 0;
    thread->no_grad++;
    thread->depth++;
    burn_scope_begin();
    for (uint32_t d = 0; d < t->rank; d++) {
        shown = ends_of(shown, d);
    }
    unsigned char *bytes = raw_bytes(shown, burn_numel(shown), out, err);
    burn_scope_end();
    thread->depth--;
    thread->no_grad--;
    thread->watch = watch;
    return bytes;
}

/* Prints axis `d` of the shown elements from `at` on. */
static void print_axis(burni_printer *p, const burn_tensor *t, const unsigned char *bytes,
                       uint32_t d, int64_t at)
{
    if (d == t->rank) {
        if (burn_dtype_class(t->dtype) == BURN_CLASS_FLOAT) {
            burni_print(p, "%.6g", burni_shown(element_f64(t->dtype, bytes, at)));
        } else {
            burni_print(p, "%" PRId64, element_i64(t->dtype, bytes, at));
        }
        return;
    }
    int64_t step = 1;
    for (uint32_t k = d + 1; k < t->rank; k++) {
        step *= t->dims[k] > SHOW_ALL ? 2 * SHOW_ENDS : t->dims[k];
    }
    int cut = t->dims[d] > SHOW_ALL;
    int64_t n = cut ? 2 * SHOW_ENDS : t->dims[d];
    burni_print(p, "{");
    for (int64_t i = 0; i < n; i++) {
        burni_print(p, "%s%s", i > 0 ? ", " : "", cut && i == SHOW_ENDS ? "..., " : "");
        print_axis(p, t, bytes, d + 1, at + i * step);
    }
    burni_print(p, "}");
}

size_t burn_tensor_text(const burn_tensor *t, char *out, size_t size)
{
    burni_printer p = {out, out != NULL ? size : 0, 0};
    burn_err err = BURN_ERR_INIT;
    if (burn_tensor_error(t, &err) != BURN_OK) {
        burni_print(&p, "failed (%s): %s", burn_status_name(err.code), err.text);
        return p.used;
    }
    char shape[192];
    burni_print(&p, "%s%s ", burn_dtype_name(t->dtype),
                burni_shape_text(shape, sizeof(shape), t->rank, t->dims));
    unsigned char *bytes = shown_bytes(t, &p, &err);
    if (bytes == NULL) {
        burni_print(&p, "failed (%s): %s", burn_status_name(err.code), err.text);
        return p.used;
    }
    print_axis(&p, t, bytes, 0, 0);
    burni_free(bytes);
    return p.used;
}

/* ---- any op ---------------------------------------------------------------------------------- */

/* What can be wrong with a call before its op is asked. */
enum { CALL_FINE, CALL_NO_THREAD, CALL_NO_OP, CALL_TOO_MANY, CALL_NO_IN, CALL_NO_OUT };

static inline int call_problem(const burni_thread *thread, const burni_op *op,
                               burn_tensor *const *in, uint32_t n_in, burn_tensor *const *out,
                               uint32_t n_out)
{
    if (thread == NULL) {
        return CALL_NO_THREAD;
    }
    if (op == NULL) {
        return CALL_NO_OP;
    }
    if (n_in > BURN_MAX_OPERANDS || n_out > BURN_MAX_OPERANDS) {
        return CALL_TOO_MANY;
    }
    if (in == NULL && n_in > 0) {
        return CALL_NO_IN;
    }
    return out == NULL && n_out > 0 ? CALL_NO_OUT : CALL_FINE;
}

/* The outputs of a call with that problem. */
__attribute__((cold, noinline)) static int32_t
refuse_call(burni_thread *thread, int problem, uint64_t op_id, const burni_op *op, uint32_t n_in,
            burn_tensor **out, uint32_t n_out)
{
    burn_err err = BURN_ERR_INIT;
    if (problem == CALL_NO_THREAD) {
        (void)burni_fail(&err, BURN_E_NO_MEMORY, "out of host memory");
    } else if (problem == CALL_NO_OP) {
        (void)burni_fail(&err, BURN_E_NOT_FOUND,
                         "there is no op with id %" PRIu64 "; if it is an extension's, load that "
                         "first (burn_extension_load)",
                         op_id);
    } else if (problem == CALL_TOO_MANY) {
        (void)burni_fail(&err, BURN_E_INVALID, "%s: %u operands and %u outputs; at most %d each",
                         op->def.name, n_in, n_out, BURN_MAX_OPERANDS);
    } else {
        (void)burni_fail(&err, BURN_E_INVALID, "%s: %s is NULL, %u tensor%s needed",
                         op->def.name, problem == CALL_NO_IN ? "in" : "out",
                         problem == CALL_NO_IN ? n_in : n_out,
                         (problem == CALL_NO_IN ? n_in : n_out) == 1 ? " is" : "s are");
    }
    for (uint32_t j = 0; j < n_out && out != NULL; j++) {
        out[j] = burni_handle_fail(thread, err.code, op_id, "%s", err.text);
    }
    return err.code;
}

int32_t burn_op_call(burn_device *device, uint64_t op_id, const void *attrs, uint32_t attrs_size,
                     burn_tensor *const *in, uint32_t n_in, burn_tensor **out, uint32_t n_out)
{
    burni_thread *thread = burni_thread_get();
    const burni_op *op = burni_op_find(op_id);
    int problem = call_problem(thread, op, in, n_in, out, n_out);
    if (__builtin_expect(problem != CALL_FINE, 0)) {
        return refuse_call(thread, problem, op_id, op, n_in, out, n_out);
    }
    return burni_emit(thread, device, op, attrs, attrs_size, in, n_in, out, n_out);
}
