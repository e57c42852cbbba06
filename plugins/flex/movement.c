/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * movement.c - ops that move elements unchanged: copy, assign, cat, pad, slice_assign, and those
 * that make them from nothing: fill, arange.
 *
 * All but arange know only the size of an element. The work is copy_nd's. To add an op: a launch
 * function that states dims and strides of both sides, and a row.
 */
#include "copy_nd.h"
#include "rows.h"

#include <burn_sdk/half.h>
#include <inttypes.h>
#include <string.h>

static void copy_operand(const burn_operand *z, const burn_operand *x)
{
    int64_t strides[BURN_MAX_RANK];
    static const int64_t none[BURN_MAX_RANK] = {0};
    const int64_t *from = x->kind == BURN_IMMEDIATE ? none : x->strides;
    flex_dense_strides(z->rank, z->dims, strides);
    flex_copy_nd(flex_size(z->dtype), z->rank, z->dims, z->data, strides, x->data, from);
}

static int32_t launch_copy(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    if (x->data != z->data) {
        copy_operand(z, x);
    }
    return BURN_OK;
}

/* The value goes into the variable's storage, which is the output. */
static int32_t launch_assign(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    if (x->data != z->data) {
        copy_operand(z, x);
    }
    return BURN_OK;
}

static int32_t launch_fill(const burn_call *call)
{
    const burn_operand *z = flex_out(call, 0);
    flex_fill(flex_size(z->dtype), z->data, flex_in(call, 0)->data, (uint64_t)flex_numel(z));
    return BURN_OK;
}

static int32_t launch_cat(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    const burn_operand *z = flex_out(call, 0);
    int64_t strides[BURN_MAX_RANK];
    flex_dense_strides(z->rank, z->dims, strides);
    const int64_t size = (int64_t)flex_size(z->dtype);
    char *out = z->data;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const burn_operand *x = flex_in(call, i);
        flex_copy_nd((uint32_t)size, x->rank, x->dims, out, strides, x->data, x->strides);
        out += x->dims[a->axis] * strides[a->axis] * size;
    }
    return BURN_OK;
}

/* Negative widths cut: the copied box is what input and output share. */
static int32_t launch_pad(const burn_call *call)
{
    const burn_attrs_pad *a = call->attrs;
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    const uint32_t size = flex_size(z->dtype);
    int64_t strides[BURN_MAX_RANK];
    int64_t dims[BURN_MAX_RANK];
    flex_dense_strides(z->rank, z->dims, strides);
    int64_t from = 0;
    int64_t to = 0;
    int whole = 1;
    for (uint32_t i = 0; i < z->rank; i++) {
        int64_t before = i < a->n_dims ? a->before[i] : 0;
        int64_t skip = before < 0 ? -before : 0;
        int64_t first = before > 0 ? before : 0;
        int64_t have = x->dims[i] - skip;
        int64_t room = z->dims[i] - first;
        dims[i] = have < room ? have : room;
        dims[i] = dims[i] > 0 ? dims[i] : 0;
        whole &= dims[i] == z->dims[i];
        from += skip * x->strides[i];
        to += first * strides[i];
    }
    if (!whole) {
        flex_fill(size, z->data, flex_in(call, 1)->data, (uint64_t)flex_numel(z));
    }
    const char *in = x->data;
    char *out = z->data;
    flex_copy_nd(size, z->rank, dims, out + to * (int64_t)size, strides,
                 in + from * (int64_t)size, x->strides);
    return BURN_OK;
}

static int32_t launch_slice_assign(const burn_call *call)
{
    const burn_attrs_slice *a = call->attrs;
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    int64_t start = flex_read_i64(flex_in(call, 2)->data, flex_in(call, 2)->dtype);
    int64_t length = z->dims[a->axis];
    /* The shape rule bounds (size - 1) * step by the length, so with such a start it fits. */
    int inside = start >= 0 && start < length;
    int64_t last = inside && a->size > 0 ? start + (a->size - 1) * a->step : start;
    if (a->size > 0 && (!inside || last < 0 || last >= length)) {
        return flex_fail(call->err, BURN_E_INVALID,
                         "slice_assign: %" PRId64 " elements from %" PRId64 " with step %" PRId64
                         " leave axis %" PRId64 ", which has size %" PRId64
                         "; shorten the slice or move its start",
                         a->size, start, a->step, a->axis, length);
    }
    if (x->layout == BURN_LAYOUT_SCALAR) {
        flex_fill(flex_size(z->dtype), z->data, x->data, (uint64_t)flex_numel(z));
    } else if (x->data != z->data) {
        copy_operand(z, x);
    }
    int64_t strides[BURN_MAX_RANK];
    flex_dense_strides(z->rank, z->dims, strides);
    char *out = z->data;
    if (a->size == 0) {
        return BURN_OK;
    }
    out += start * strides[a->axis] * (int64_t)flex_size(z->dtype);
    strides[a->axis] *= a->size > 1 ? a->step : 1;
    flex_copy_nd(flex_size(z->dtype), y->rank, y->dims, out, strides, y->data, y->strides);
    return BURN_OK;
}

/* start + i * step: integers wrap; floats are computed in f64 (halves and f32 rounded once). */
static void arange_ints(char *out, uint32_t size, int64_t start, int64_t step, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = (uint64_t)start + i * (uint64_t)step;
        memcpy(out + i * size, &value, size); /* little-endian: the low bytes */
    }
}

static void arange_floats(char *out, uint8_t dtype, double start, double step, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double value = start + (double)i * step;
        float single = (float)value;
        if (dtype == BURN_F64) {
            ((double *)(void *)out)[i] = value;
        } else if (dtype == BURN_F32) {
            ((float *)(void *)out)[i] = single;
        } else if (dtype == BURN_F16) {
            ((uint16_t *)(void *)out)[i] = burn_float_to_half(single);
        } else {
            ((uint16_t *)(void *)out)[i] = burn_float_to_bfloat(single);
        }
    }
}

static int32_t launch_arange(const burn_call *call)
{
    const burn_operand *start = flex_in(call, 0);
    const burn_operand *step = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    uint64_t n = (uint64_t)flex_numel(z);
    if (z->dtype >= BURN_F16) {
        arange_floats(z->data, z->dtype, flex_read_f64(start->data, start->dtype),
                      flex_read_f64(step->data, step->dtype), n);
    } else {
        arange_ints(z->data, flex_size(z->dtype), flex_read_i64(start->data, start->dtype),
                    flex_read_i64(step->data, step->dtype), n);
    }
    return BURN_OK;
}

/* clang-format off */
#define ANY(like, what) FLEX_SLOT(BURN_SET_ANY, BURN_LAYOUT_ANY, like, what)
#define OUT(like) FLEX_SLOT(BURN_SET_ANY, FLEX_LAYOUT_OUT, like, 0)
#define START FLEX_SLOT(BURN_SET_INDEX, BURN_LAYOUT_ANY, 0, FLEX_IMM)
static const burn_slot slots_copy[] = {ANY(0, FLEX_IMM), OUT(1)};
static const burn_slot slots_assign[] = {ANY(0, 0), ANY(1, FLEX_IMM), OUT(1)};
static const burn_slot slots_fill[] = {ANY(0, FLEX_IMM), OUT(1)};
static const burn_slot slots_arange[] = {
    FLEX_SLOT(BURN_SET_NUMERIC, BURN_LAYOUT_ANY, 0, FLEX_IMM),
    FLEX_SLOT(BURN_SET_NUMERIC, BURN_LAYOUT_ANY, 1, FLEX_IMM),
    FLEX_SLOT(BURN_SET_NUMERIC, FLEX_LAYOUT_OUT, 1, 0)};
static const burn_slot slots_pad[] = {ANY(0, 0), ANY(1, FLEX_IMM), OUT(1)};
static const burn_slot slots_slice_assign[] = {ANY(0, 0), ANY(1, FLEX_IMM), START, OUT(1)};
/* Variadic: the first input's slot, and the last one for the output and all others. */
static const burn_slot slots_cat[] = {ANY(0, 0), ANY(1, 0)};

const burn_row flex_rows_movement[] = {
    FLEX_ROW(BURN_OP_COPY, slots_copy, 0, 0, "flex.copy", launch_copy),
    FLEX_ROW(BURN_OP_ASSIGN, slots_assign, 0, 0, "flex.assign", launch_assign),
    FLEX_ROW(BURN_OP_FILL, slots_fill, 0, 0, "flex.fill", launch_fill),
    FLEX_ROW(BURN_OP_ARANGE, slots_arange, 0, 0, "flex.arange", launch_arange),
    FLEX_ROW(BURN_OP_CAT, slots_cat, 0, 0, "flex.cat", launch_cat),
    FLEX_ROW(BURN_OP_PAD, slots_pad, 0, 0, "flex.pad", launch_pad),
    FLEX_ROW(BURN_OP_SLICE_ASSIGN, slots_slice_assign, BURN_ROW_FAULTS, 1, "flex.slice_assign",
             launch_slice_assign),
};
/* clang-format on */
const uint32_t flex_rows_movement_count = FLEX_COUNT(flex_rows_movement);
