/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * index.c - gather, scatter and slice_assign.
 *
 * An index that is out of range is a fault of the call: it names the operand, the value, its place
 * and the bound; the element is skipped and the kernel goes on. Scatter adds in double for floats
 * and rounds once at the end; among duplicates the last one wins when assigning. Runs on the worker
 * of a queue.
 */
#include "mock.h"
#include "mock_kernels.h"

/* An index value, or -1 after a fault. */
static int64_t load_index(mock_item *item, uint32_t operand, int64_t position, int64_t bound)
{
    const mock_operand *index = &item->operands[operand];
    int64_t value = burn_load_i64(mock_at(index, position), index->dtype);
    if (value < 0 || value >= bound) {
        mock_fault(item, BURN_E_DATA, operand, value, position, bound);
        return -1;
    }
    return value;
}

static int64_t attr_axis(const mock_item *item)
{
    burn_attrs_axis attrs;
    memcpy(&attrs, item->attrs, sizeof(attrs));
    return attrs.axis;
}

/* Strides of x with the one of the axis taken out: the index says where on the axis. */
static void strides_without(const mock_operand *x, int64_t axis, int64_t *strides)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        strides[i] = (int64_t)i == axis ? 0 : x->strides[i];
    }
}

static void run_gather(mock_item *item)
{
    const mock_operand *x = &item->operands[0];
    mock_operand *out = mock_out(item);
    int64_t axis = attr_axis(item);
    int64_t x_strides[BURN_MAX_RANK];
    const int64_t *strides[1] = {x_strides};
    strides_without(x, axis, x_strides);
    burn_loop loop;
    for (burn_loop_begin(&loop, out->rank, out->dims, 1, strides); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        int64_t index = load_index(item, 1, loop.position, x->dims[axis]);
        unsigned char *to = mock_at(out, loop.position);
        if (index < 0) {
            memset(to, 0, out->size);
        } else {
            memcpy(to, mock_at(x, loop.offset[0] + index * x->strides[axis]), out->size);
        }
    }
}

int32_t mock_launch_gather(const burn_call *call)
{
    return mock_launch(call, BURN_OP_GATHER, run_gather, NULL);
}

/* `old` and `value` of one class, combined; NaN wins in min and max. */
static double combine_floats(uint32_t mode, double old, double value)
{
    int is_nan = old != old || value != value;
    switch (mode) {
    case BURN_SCATTER_ADD:
        return old + value;
    case BURN_SCATTER_MUL:
        return old * value;
    case BURN_SCATTER_MIN:
        return is_nan ? old + value : (value < old ? value : old);
    case BURN_SCATTER_MAX:
        return is_nan ? old + value : (value > old ? value : old);
    default:
        return value;
    }
}

static int64_t combine_ints(uint32_t mode, int64_t old, int64_t value)
{
    switch (mode) {
    case BURN_SCATTER_ADD:
        return (int64_t)((uint64_t)old + (uint64_t)value);
    case BURN_SCATTER_MUL:
        return (int64_t)((uint64_t)old * (uint64_t)value);
    case BURN_SCATTER_MIN:
        return value < old ? value : old;
    case BURN_SCATTER_MAX:
        return value > old ? value : old;
    default:
        return value;
    }
}

static uint64_t combine_uints(uint32_t mode, uint64_t old, uint64_t value)
{
    switch (mode) {
    case BURN_SCATTER_ADD:
        return old + value;
    case BURN_SCATTER_MUL:
        return old * value;
    case BURN_SCATTER_MIN:
        return value < old ? value : old;
    case BURN_SCATTER_MAX:
        return value > old ? value : old;
    default:
        return value;
    }
}

/* One value into one place. `wide` holds the sums of a float output, NULL for other classes. */
static void scatter_one(mock_operand *out, double *wide, uint32_t mode, int64_t place,
                        const unsigned char *value)
{
    unsigned char *to = mock_at(out, place);
    uint8_t dtype = out->dtype;
    if (wide != NULL) {
        wide[place] = combine_floats(mode, wide[place], burn_load_f64(value, dtype));
    } else if (burn_element_class(dtype) == BURN_CLASS_UINT) {
        uint64_t old = burn_load_u64(to, dtype);
        burn_store_u64(to, dtype, combine_uints(mode, old, burn_load_u64(value, dtype)));
    } else {
        int64_t old = burn_load_i64(to, dtype);
        burn_store_i64(to, dtype, combine_ints(mode, old, burn_load_i64(value, dtype)));
    }
}

static void scatter_all(mock_item *item, double *wide)
{
    const mock_operand *x = &item->operands[0];
    const mock_operand *index = &item->operands[1];
    const mock_operand *values = &item->operands[2];
    mock_operand *out = mock_out(item);
    burn_attrs_scatter attrs;
    int64_t out_strides[BURN_MAX_RANK];
    const int64_t *strides[1] = {out_strides};
    memcpy(&attrs, item->attrs, sizeof(attrs));
    strides_without(out, attrs.axis, out_strides);
    burn_loop loop;
    for (burn_loop_begin(&loop, index->rank, index->dims, 1, strides); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        int64_t where = load_index(item, 1, loop.position, x->dims[attrs.axis]);
        if (where >= 0) {
            int64_t place = loop.offset[0] + where * out->strides[attrs.axis];
            scatter_one(out, wide, attrs.mode, place, mock_at(values, loop.position));
        }
    }
}

static void run_scatter(mock_item *item)
{
    const mock_operand *x = &item->operands[0];
    mock_operand *out = mock_out(item);
    int64_t count = burn_dims_count(out->rank, out->dims);
    double *wide = NULL;
    if (count == 0) {
        scatter_all(item, NULL);
        return;
    }
    memcpy(out->data, x->data, (size_t)count * out->size);
    if (burn_element_class(out->dtype) != BURN_CLASS_FLOAT) {
        scatter_all(item, NULL);
        return;
    }
    wide = (double *)mock_host->alloc((uint64_t)count * sizeof(double));
    if (wide == NULL) {
        mock_fault(item, BURN_E_NO_MEMORY, 0, count, 0, 0);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        wide[i] = burn_load_f64(mock_at(x, i), out->dtype);
    }
    scatter_all(item, wide);
    for (int64_t i = 0; i < count; i++) {
        burn_store_f64(mock_at(out, i), out->dtype, wide[i]);
    }
    mock_host->free(wide);
}

int32_t mock_launch_scatter(const burn_call *call)
{
    return mock_launch(call, BURN_OP_SCATTER, run_scatter, NULL);
}

/* A copy of x, then y over the elements start + k * step of the axis. */
static void run_slice_assign(mock_item *item)
{
    const mock_operand *x = &item->operands[0];
    const mock_operand *y = &item->operands[1];
    mock_operand *out = mock_out(item);
    int64_t count = burn_dims_count(out->rank, out->dims);
    int64_t start = burn_load_i64(item->operands[2].data, BURN_I64);
    burn_attrs_slice attrs;
    int64_t out_strides[BURN_MAX_RANK];
    const int64_t *strides[1] = {out_strides};
    memcpy(&attrs, item->attrs, sizeof(attrs));
    if (count == 0) {
        return;
    }
    memcpy(out->data, x->data, (size_t)count * out->size);
    if (attrs.size == 0) {
        return;
    }
    /* The shape rule bounds (size - 1) * step by the axis, so from a start inside it fits. */
    int64_t bound = out->dims[attrs.axis];
    int64_t span = (attrs.size - 1) * attrs.step;
    int inside = start >= 0 && start < bound;
    int64_t last = inside ? start + span : start;
    if (!inside || last < 0 || last >= bound) {
        /* By value: the caller's mistake. The start must leave room for the rest, or the last
         * element is told where that one is in front of the axis. */
        int64_t told = last < 0 ? last : start;
        mock_fault(item, BURN_E_INVALID, 2, told, 0, span > 0 ? bound - span : bound);
        return;
    }
    strides_without(out, attrs.axis, out_strides);
    out_strides[attrs.axis] = out->strides[attrs.axis] * (attrs.size > 1 ? attrs.step : 1);
    int64_t first = start * out->strides[attrs.axis];
    burn_loop loop;
    for (burn_loop_begin(&loop, y->rank, y->dims, 1, strides); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        memcpy(mock_at(out, first + loop.offset[0]), mock_at(y, loop.position), out->size);
    }
}

int32_t mock_launch_slice_assign(const burn_call *call)
{
    return mock_launch(call, BURN_OP_SLICE_ASSIGN, run_slice_assign, NULL);
}
