/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * index.c - ops that take indices: gather, scatter, select, embedding, one_hot.
 *
 * Every index is checked: one out of range ends the call with BURN_E_DATA and names value, position
 * and bound (the lowest position, whatever the threads). gather and scatter work in units: one
 * outer place and a strip of columns, visited in the order of the index along the axis; no two
 * units write the same element, so scatter is deterministic and its last value wins. select and
 * embedding copy whole rows. To add an op: a launch function and a row.
 */
#include "copy_nd.h"
#include "rows.h"
#include "scatter.h"
#include "threads.h"
#include "tiles.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { STRIP = 128 };

typedef struct index_job {
    const burn_operand *x; /* gather: read; scatter: the output's shape */
    const burn_operand *index;
    const burn_operand *values; /* scatter */
    int64_t x_strides[BURN_MAX_RANK];
    char *out;
    uint32_t size;
    uint32_t axis;
    int along;      /* columns run along the axis, since nothing lies behind it */
    int64_t steps;  /* index values along the axis */
    int64_t columns;
    int64_t strips;
    int64_t bound;
    int64_t n_units;
    int64_t per_task;
    flex_scatter_fn combine;
    _Atomic uint64_t fault;
} index_job;

/* Offsets of one unit. */
typedef struct unit {
    int64_t outer;
    int64_t first;   /* column */
    int64_t n;       /* columns */
    int64_t x_base;
    int64_t index_base;
    int64_t values_base;
    int64_t x_offset[STRIP];
    int64_t index_offset[STRIP];
    int64_t values_offset[STRIP];
    int64_t at[STRIP];
} unit;

static void note_fault(_Atomic uint64_t *fault, uint64_t position)
{
    uint64_t seen = atomic_load(fault);
    while (position < seen && !atomic_compare_exchange_weak(fault, &seen, position)) {
    }
}

static void place_unit(const index_job *job, int64_t outer, int64_t first, unit *u)
{
    const uint32_t axis = job->axis;
    const int64_t *dims = job->index->dims;
    const int64_t *index_strides = job->index->strides;
    const int64_t *values_strides = job->values != NULL ? job->values->strides : index_strides;
    u->outer = outer;
    u->first = first;
    u->n = job->columns - first < STRIP ? job->columns - first : STRIP;
    u->x_base = flex_offset_at(axis, dims, job->x_strides, outer);
    u->index_base = flex_offset_at(axis, dims, index_strides, outer);
    u->values_base = flex_offset_at(axis, dims, values_strides, outer);
    uint32_t from = job->along ? axis : axis + 1;
    uint32_t rank = job->index->rank - from;
    for (int64_t c = 0; c < u->n; c++) {
        int64_t k = first + c;
        u->x_offset[c] = job->along ? 0 : flex_offset_at(rank, dims + from,
                                                         job->x_strides + from, k);
        u->index_offset[c] = flex_offset_at(rank, dims + from, index_strides + from, k);
        u->values_offset[c] = flex_offset_at(rank, dims + from, values_strides + from, k);
    }
}

/* Index values of one step. Returns how many columns are good. */
static int64_t read_step(const index_job *job, unit *u, int64_t step)
{
    int64_t base = u->index_base + step * job->index->strides[job->axis];
    const int64_t *wide = job->index->data;
    const int32_t *narrow = job->index->data;
    for (int64_t c = 0; c < u->n; c++) {
        int64_t offset = base + u->index_offset[c];
        int64_t at = job->index->dtype == BURN_I64 ? wide[offset] : narrow[offset];
        if (at < 0 || at >= job->bound) {
            return c;
        }
        u->at[c] = at;
    }
    return u->n;
}

static uint64_t position_of(const index_job *job, const unit *u, int64_t step, int64_t column)
{
    return (uint64_t)((u->outer * job->steps + step) * job->columns + u->first + column);
}

#define W uint8_t
#define PICK pick_1
#include "index_pick.h"
#define W uint16_t
#define PICK pick_2
#include "index_pick.h"
#define W uint32_t
#define PICK pick_4
#include "index_pick.h"
#define W uint64_t
#define PICK pick_8
#include "index_pick.h"

static void pick(const index_job *job, const unit *u, int64_t step)
{
    char *out = job->out + position_of(job, u, step, 0) * job->size;
    int64_t stride = job->x_strides[job->axis];
    const char *x = (const char *)job->x->data + u->x_base * (int64_t)job->size;
    if (job->size == 4) {
        pick_4(out, x, u->x_offset, u->at, stride, u->n);
    } else if (job->size == 8) {
        pick_8(out, x, u->x_offset, u->at, stride, u->n);
    } else if (job->size == 2) {
        pick_2(out, x, u->x_offset, u->at, stride, u->n);
    } else {
        pick_1(out, x, u->x_offset, u->at, stride, u->n);
    }
}

static void combine(const index_job *job, const unit *u, int64_t step, int64_t n)
{
    flex_scatter_task t;
    t.out = job->out + u->x_base * (int64_t)job->size;
    t.values = job->values->data;
    t.at = u->at;
    t.out_offset = u->x_offset;
    t.from_offset = u->values_offset;
    t.out_stride = job->x_strides[job->axis];
    t.from_step = u->values_base + step * job->values->strides[job->axis];
    t.columns = n;
    job->combine(&t);
}

static void run_strip(index_job *job, int64_t outer, int64_t first)
{
    unit u;
    place_unit(job, outer, first, &u);
    for (int64_t step = 0; step < job->steps; step++) {
        int64_t good = read_step(job, &u, step);
        if (good < u.n) {
            note_fault(&job->fault, position_of(job, &u, step, good));
            return;
        }
        if (job->combine != NULL) {
            combine(job, &u, step, good);
        } else {
            pick(job, &u, step);
        }
    }
}

static void index_task(void *ctx, uint32_t task)
{
    index_job *job = ctx;
    int64_t lo = task * job->per_task;
    int64_t hi = job->n_units - lo < job->per_task ? job->n_units : lo + job->per_task;
    for (int64_t i = lo; i < hi; i++) {
        if (job->along && job->combine != NULL) {
            /* All strips of a line may meet in one element: in order, in one task. */
            for (int64_t first = 0; first < job->columns; first += STRIP) {
                run_strip(job, i, first);
            }
        } else {
            run_strip(job, i / job->strips, i % job->strips * STRIP);
        }
    }
}

static int32_t out_of_range(const burn_call *call, const char *op, const burn_operand *index,
                            uint64_t position, int64_t bound, int64_t axis)
{
    int64_t offset = flex_offset_at(index->rank, index->dims, index->strides, (int64_t)position);
    const char *data = index->data;
    int64_t value =
        flex_read_i64(data + offset * (int64_t)flex_size(index->dtype), index->dtype);
    return flex_fail(call->err, BURN_E_DATA,
                     "%s: index %" PRId64 " at position %" PRIu64
                     " is out of range: axis %" PRId64 " has size %" PRId64
                     ", so 0 to %" PRId64 " are possible",
                     op, value, position, axis, bound, bound - 1);
}

static int32_t run_index(const burn_call *call, index_job *job, const char *op)
{
    const burn_operand *index = job->index;
    int64_t n = flex_numel(index);
    if (n == 0) {
        return BURN_OK;
    }
    int64_t outer = flex_product(job->axis, index->dims);
    int64_t inner = flex_product(index->rank - job->axis - 1, index->dims + job->axis + 1);
    int64_t length = index->dims[job->axis];
    job->along = inner == 1;
    job->steps = job->along ? 1 : length;
    job->columns = job->along ? length : inner;
    job->strips = (job->columns + STRIP - 1) / STRIP;
    job->n_units = job->along && job->combine != NULL ? outer : outer * job->strips;
    atomic_store(&job->fault, UINT64_MAX);
    int64_t per_unit = n / job->n_units;
    job->per_task = 16384 / (per_unit > 0 ? per_unit : 1) + 1;
    while ((job->n_units - 1) / job->per_task >= (int64_t)UINT32_MAX) {
        job->per_task *= 2;
    }
    flex_parallel((uint32_t)((job->n_units + job->per_task - 1) / job->per_task), index_task, job);
    uint64_t fault = atomic_load(&job->fault);
    if (fault == UINT64_MAX) {
        return BURN_OK;
    }
    return out_of_range(call, op, index, fault, job->bound, job->axis);
}

static int32_t launch_gather(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    index_job job;
    memset(&job, 0, sizeof(job));
    job.x = flex_in(call, 0);
    job.index = flex_in(call, 1);
    job.out = flex_out(call, 0)->data;
    job.size = flex_size(job.x->dtype);
    job.axis = (uint32_t)a->axis;
    job.bound = job.x->dims[a->axis];
    memcpy(job.x_strides, job.x->strides, job.x->rank * sizeof(int64_t));
    return run_index(call, &job, "gather");
}

#define ENTRY(NAME, name) [BURN_##NAME] = &flex_scatter_##name,
static const flex_scatter_table *const scatters[16] = {FLEX_FOREACH_SCATTER_TYPE(ENTRY)};
#undef ENTRY

static int32_t launch_scatter(const burn_call *call)
{
    const burn_attrs_scatter *a = call->attrs;
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    index_job job;
    memset(&job, 0, sizeof(job));
    job.x = z;
    job.index = flex_in(call, 1);
    job.values = flex_in(call, 2);
    job.out = z->data;
    job.size = flex_size(z->dtype);
    job.axis = (uint32_t)a->axis;
    job.bound = z->dims[a->axis];
    job.combine = scatters[z->dtype]->mode[a->mode];
    flex_dense_strides(z->rank, z->dims, job.x_strides);
    if (x->data != z->data) {
        flex_copy_nd(job.size, z->rank, z->dims, z->data, job.x_strides, x->data, x->strides);
    }
    return run_index(call, &job, "scatter");
}

/* Rows of a dense table: `outer` tables of `bound` rows each. */
typedef struct row_job {
    const char *table;
    const void *index;
    char *out;
    int64_t outer;
    int64_t n; /* rows to copy per table */
    int64_t bound;
    int64_t row_bytes;
    int64_t per_task;
    uint8_t index_dtype;
    _Atomic uint64_t fault;
} row_job;

static void row_task(void *ctx, uint32_t task)
{
    row_job *job = ctx;
    int64_t total = job->outer * job->n;
    int64_t lo = task * job->per_task;
    int64_t hi = total - lo < job->per_task ? total : lo + job->per_task;
    const int64_t *wide = job->index;
    const int32_t *narrow = job->index;
    for (int64_t i = lo; i < hi; i++) {
        int64_t k = i % job->n;
        int64_t at = job->index_dtype == BURN_I64 ? wide[k] : narrow[k];
        if (at < 0 || at >= job->bound) {
            note_fault(&job->fault, (uint64_t)k);
            return;
        }
        int64_t row = i / job->n * job->bound + at;
        memcpy(job->out + i * job->row_bytes, job->table + row * job->row_bytes,
               (size_t)job->row_bytes);
    }
}

static int32_t copy_rows(const burn_call *call, uint32_t axis, const char *op)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *index = flex_in(call, 1);
    row_job job;
    job.table = x->data;
    job.index = index->data;
    job.out = flex_out(call, 0)->data;
    job.outer = flex_product(axis, x->dims);
    job.n = flex_numel(index);
    job.bound = x->dims[axis];
    job.row_bytes = flex_product(x->rank - axis - 1, x->dims + axis + 1) *
                    (int64_t)flex_size(x->dtype);
    job.index_dtype = index->dtype;
    atomic_init(&job.fault, UINT64_MAX);
    int64_t total = job.outer * job.n;
    if (total == 0) {
        return BURN_OK;
    }
    job.per_task = 65536 / (job.row_bytes + 8) + 1;
    while ((total - 1) / job.per_task >= (int64_t)UINT32_MAX) {
        job.per_task *= 2;
    }
    flex_parallel((uint32_t)((total + job.per_task - 1) / job.per_task), row_task, &job);
    uint64_t fault = atomic_load(&job.fault);
    if (fault == UINT64_MAX) {
        return BURN_OK;
    }
    return out_of_range(call, op, index, fault, job.bound, axis);
}

static int32_t launch_select(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    return copy_rows(call, (uint32_t)a->axis, "select");
}

static int32_t launch_embedding(const burn_call *call)
{
    return copy_rows(call, 0, "embedding");
}

static int32_t launch_one_hot(const burn_call *call)
{
    const burn_attrs_one_hot *a = call->attrs;
    const burn_operand *index = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    const int64_t size = (int64_t)flex_size(z->dtype);
    const int64_t *wide = index->data;
    const int32_t *narrow = index->data;
    char one[8];
    char *out = z->data;
    int64_t n = flex_numel(index);
    flex_one(z->dtype, one);
    memset(out, 0, (size_t)(flex_numel(z) * size));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index->dtype == BURN_I64 ? wide[i] : narrow[i];
        if (at < 0 || at >= a->classes) {
            return flex_fail(call->err, BURN_E_DATA,
                             "one_hot: index %" PRId64 " at position %" PRId64
                             " is out of range: there are %" PRId64
                             " classes, so 0 to %" PRId64 " are possible",
                             at, i, a->classes, a->classes - 1);
        }
        memcpy(out + (i * a->classes + at) * size, one, (size_t)size);
    }
    return BURN_OK;
}

/* clang-format off */
#define ANY(like) FLEX_SLOT(BURN_SET_ANY, BURN_LAYOUT_ANY, like, 0)
#define DENSE FLEX_SLOT(BURN_SET_ANY, BURN_LAYOUT_CONTIGUOUS, 0, 0)
#define INDEX(layouts) FLEX_SLOT(BURN_SET_INDEX, layouts, 0, 0)
#define OUT(like) FLEX_SLOT(BURN_SET_ANY, FLEX_LAYOUT_OUT, like, 0)
static const burn_slot slots_gather[] = {ANY(0), INDEX(BURN_LAYOUT_ANY), OUT(1)};
static const burn_slot slots_scatter[] = {ANY(0), INDEX(BURN_LAYOUT_ANY), ANY(1), OUT(1)};
static const burn_slot slots_rows[] = {DENSE, INDEX(BURN_LAYOUT_CONTIGUOUS), OUT(1)};
static const burn_slot slots_one_hot[] = {INDEX(BURN_LAYOUT_CONTIGUOUS), OUT(0)};

const burn_row flex_rows_index[] = {
    FLEX_ROW(BURN_OP_GATHER, slots_gather, BURN_ROW_FAULTS, 0, "flex.gather", launch_gather),
    FLEX_ROW(BURN_OP_SCATTER, slots_scatter, BURN_ROW_FAULTS, 1, "flex.scatter", launch_scatter),
    FLEX_ROW(BURN_OP_SELECT, slots_rows, BURN_ROW_FAULTS, 0, "flex.select", launch_select),
    FLEX_ROW(BURN_OP_EMBEDDING, slots_rows, BURN_ROW_FAULTS, 0, "flex.embedding",
             launch_embedding),
    FLEX_ROW(BURN_OP_ONE_HOT, slots_one_hot, BURN_ROW_FAULTS, 0, "flex.one_hot", launch_one_hot),
};
/* clang-format on */
const uint32_t flex_rows_index_count = FLEX_COUNT(flex_rows_index);
