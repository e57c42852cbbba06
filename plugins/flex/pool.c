/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool.c - rows of the 2-d pools and the gradient of max_pool2d.
 *
 * Owns windows and the loop over planes; the arithmetic is in pool_plane_tmpl.h. f32 is read where
 * it lies; all other floats go plane by plane through f64 scratch, which is exact for maxima.
 * Padding never wins a maximum. To add a pool: a kind, its case in one_row, a row below.
 */
#include "nn.h"
#include "nn_lines.h"
#include "rows.h"

#include <math.h>
#include <string.h>

enum { KIND_MAX = 0, KIND_AVERAGE = 1, KIND_ADAPTIVE_MAX = 2, KIND_ADAPTIVE_AVERAGE = 3 };

typedef struct flex_window {
    int64_t in[2];
    int64_t out[2];
    int64_t kernel[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    uint32_t count_padding;
} flex_window;

/* First position inside the plane of window `at`, and how many taps from there are inside. */
static void window_span(const flex_window *v, uint32_t axis, int64_t at, int64_t *first,
                        int64_t *taps)
{
    int64_t start = at * v->stride[axis] - v->padding[axis];
    if (v->dilation[axis] == 1) { /* spares the divisions */
        int64_t stop = flex_min(start + v->kernel[axis], v->in[axis]);
        start = start < 0 ? 0 : start;
        *taps = stop > start ? stop - start : 0;
        *first = *taps > 0 ? start : 0;
        return;
    }
    int64_t skip = start < 0 ? (-start + v->dilation[axis] - 1) / v->dilation[axis] : 0;
    int64_t inside = v->in[axis] - start;
    int64_t end = inside > 0 ? (inside + v->dilation[axis] - 1) / v->dilation[axis] : 0;
    end = flex_min(end, v->kernel[axis]);
    *taps = end > skip ? end - skip : 0;
    *first = *taps > 0 ? start + skip * v->dilation[axis] : 0;
}

/* Taps within the padded extent along one axis. */
static int64_t padded_taps(const flex_window *v, uint32_t axis, int64_t at)
{
    int64_t room = v->in[axis] + 2 * v->padding[axis] - at * v->stride[axis];
    return flex_min(v->kernel[axis], (room + v->dilation[axis] - 1) / v->dilation[axis]);
}

/* What an average divides by. */
static int64_t window_count(const flex_window *v, int64_t oy, int64_t ox, int64_t inside)
{
    return v->count_padding ? padded_taps(v, 0, oy) * padded_taps(v, 1, ox) : inside;
}

#define T float
#define S f32
#include "pool_plane_tmpl.h"
#undef T
#undef S
#define T double
#define S f64
#include "pool_plane_tmpl.h"
#undef T
#undef S

/* Output columns lo .. hi whose tap at `shift` lies inside the plane. */
static void tap_range(const flex_window *v, int64_t shift, int64_t *lo, int64_t *hi)
{
    int64_t stride = v->stride[1];
    if (shift >= 0 && shift + (v->out[1] - 1) * stride < v->in[1]) { /* spares the divisions */
        *lo = 0;
        *hi = v->out[1];
        return;
    }
    *lo = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int64_t room = v->in[1] - shift;
    *hi = room > 0 ? (room + stride - 1) / stride : 0;
}

enum { COLUMNS = 256 };

/* Columns c0 .. c1 of row oy: every maximum starts at its window's first element. */
static void start_maxima(const flex_window *v, int64_t y0, int64_t c0, int64_t c1, uint8_t dtype,
                         void *y, int32_t *index)
{
    for (int64_t x = c0; x < c1; x++) {
        int64_t x0 = 0;
        int64_t n = 0;
        window_span(v, 1, x, &x0, &n);
        flex_store_f64(y, x - c0, dtype, -(double)INFINITY);
        index[x - c0] = (int32_t)(y0 * v->in[1] + x0);
    }
}

/* The taps of one kernel row, which lies at `row` of the plane, for columns c0 .. c1. */
static void max_taps(const flex_window *v, const flex_lines *table, const void *plane, int64_t row,
                     int64_t c0, int64_t c1, char *y, int32_t *index)
{
    int64_t size = flex_size(table->dtype);
    for (int64_t kx = 0; kx < v->kernel[1]; kx++) {
        int64_t shift = kx * v->dilation[1] - v->padding[1];
        int64_t lo = 0;
        int64_t hi = 0;
        tap_range(v, shift, &lo, &hi);
        lo = lo > c0 ? lo : c0;
        hi = flex_min(hi, c1);
        int64_t at = row + shift + lo * v->stride[1];
        if (lo < hi) {
            table->max_tap(y + (lo - c0) * size, index + (lo - c0),
                           (const char *)plane + at * size, v->stride[1], (int32_t)at, hi - lo);
        }
    }
}

/* One row of maxima, tap by tap, so that a whole row of windows meets the same tap. */
static void max_row(const flex_window *v, const flex_lines *table, const void *plane, int64_t oy,
                    void *y_row, int64_t *index_row)
{
    int32_t index[COLUMNS];
    int64_t size = flex_size(table->dtype);
    int64_t y0 = 0;
    int64_t ny = 0;
    window_span(v, 0, oy, &y0, &ny);
    for (int64_t c0 = 0; c0 < v->out[1]; c0 += COLUMNS) {
        int64_t c1 = flex_min(c0 + COLUMNS, v->out[1]);
        char *y = (char *)y_row + c0 * size;
        start_maxima(v, y0, c0, c1, table->dtype, y, index);
        for (int64_t ky = 0; ky < ny; ky++) {
            int64_t row = (y0 + ky * v->dilation[0]) * v->in[1];
            max_taps(v, table, plane, row, c0, c1, y, index);
        }
        for (int64_t x = c0; x < c1; x++) {
            index_row[x] = index[x - c0];
        }
    }
}

/* Whether no window crosses the left or right border. */
static int is_inside(const flex_window *v)
{
    int64_t last = (v->out[1] - 1) * v->stride[1] + (v->kernel[1] - 1) * v->dilation[1];
    return v->padding[1] == 0 && last < v->in[1];
}

/* The same for windows inside; `room` is how much of the input lies behind the plane. */
static void max_row_inside(const flex_window *v, const flex_lines *table, const void *plane,
                           int64_t room, int64_t oy, void *y_row, int64_t *index_row,
                           int64_t room_out)
{
    int64_t y0 = 0;
    flex_maxima m = {.nx = v->kernel[1], .dilation = v->dilation[1], .step = v->stride[1]};
    window_span(v, 0, oy, &y0, &m.ny);
    m.n = v->out[1];
    m.pitch = v->dilation[0] * v->in[1];
    m.from = (const char *)plane + y0 * v->in[1] * (int64_t)flex_size(table->dtype);
    m.at = (int32_t)(y0 * v->in[1]);
    m.room_in = v->in[0] * v->in[1] - y0 * v->in[1] + room;
    m.room_out = room_out;
    table->maxima(y_row, index_row, &m);
}

/*
 * All rows of a plane. Whole vectors of results may be written over the rows that follow, but not
 * over the next plane, which may be another task's: small planes are made beside and copied.
 */
enum { SMALL_PLANE = 256, SPILL = 16 };

static void max_plane_inside(const flex_window *v, const flex_lines *table, const void *plane,
                             int64_t room, void *y, int64_t *index)
{
    int64_t out = v->out[0] * v->out[1];
    int64_t size = flex_size(table->dtype);
    double small_y[SMALL_PLANE + SPILL];
    int64_t small_index[SMALL_PLANE + SPILL];
    int is_small = out <= SMALL_PLANE;
    char *to = is_small ? (char *)small_y : y;
    int64_t *to_index = is_small ? small_index : index;
    int64_t end = is_small ? out + SPILL : out;
    for (int64_t oy = 0; oy < v->out[0]; oy++) {
        int64_t at = oy * v->out[1];
        max_row_inside(v, table, plane, room, oy, to + at * size, to_index + at, end - at);
    }
    if (is_small) {
        memcpy(y, small_y, (size_t)(out * size));
        memcpy(index, small_index, (size_t)out * sizeof(*index));
    }
}

static void make_window(const burn_call *call, uint32_t kind, flex_window *v)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_out(call, 0);
    memset(v, 0, sizeof(*v));
    for (uint32_t i = 0; i < 2; i++) {
        v->in[i] = x->dims[2 + i];
        v->out[i] = y->dims[2 + i];
    }
    if (kind >= KIND_ADAPTIVE_MAX) {
        return;
    }
    const burn_attrs_pool *attrs = call->attrs;
    for (uint32_t i = 0; i < 2; i++) {
        v->kernel[i] = attrs->kernel[i];
        v->stride[i] = attrs->stride[i];
        v->padding[i] = attrs->padding[i];
        v->dilation[i] = attrs->dilation[i];
    }
    v->count_padding = attrs->count_include_pad;
}

typedef struct pool_job {
    flex_window v;
    const flex_lines *table;
    uint32_t kind;
    const burn_operand *x;
    const burn_operand *y;
    int64_t *index; /* NULL: none */
    int is_inside;
    double *scratch;
} pool_job;

static void one_row_f32(const pool_job *job, const float *plane, int64_t oy, float *y,
                        int64_t *index)
{
    if (job->kind == KIND_MAX) {
        max_row(&job->v, job->table, plane, oy, y, index);
    } else if (job->kind == KIND_AVERAGE) {
        average_row_f32(&job->v, plane, oy, y);
    } else {
        adaptive_row_f32(&job->v, plane, oy, job->kind == KIND_ADAPTIVE_MAX, y);
    }
}

static void one_row_f64(const pool_job *job, const double *plane, int64_t oy, double *y,
                        int64_t *index)
{
    if (job->kind == KIND_MAX) {
        max_row(&job->v, job->table, plane, oy, y, index);
    } else if (job->kind == KIND_AVERAGE) {
        average_row_f64(&job->v, plane, oy, y);
    } else {
        adaptive_row_f64(&job->v, plane, oy, job->kind == KIND_ADAPTIVE_MAX, y);
    }
}

static int64_t scratch_doubles(const flex_window *v)
{
    return flex_round_up(v->in[0] * v->in[1] + v->out[0] * v->out[1], 8);
}

/* One plane (image, channel). */
static void one_plane(void *ctx, int64_t plane, uint32_t slot)
{
    const pool_job *job = ctx;
    const flex_window *v = &job->v;
    int64_t in = v->in[0] * v->in[1];
    int64_t out = v->out[0] * v->out[1];
    int64_t *index = job->index != NULL ? job->index + plane * out : NULL;
    if (job->x->dtype == BURN_F32) {
        const float *x = (const float *)job->x->data + plane * in;
        float *y = (float *)job->y->data + plane * out;
        int64_t room = flex_numel(job->x) - (plane + 1) * in;
        if (job->is_inside) {
            max_plane_inside(v, job->table, x, room, y, index);
            return;
        }
        for (int64_t oy = 0; oy < v->out[0]; oy++) {
            int64_t at = oy * v->out[1];
            one_row_f32(job, x, oy, y + at, index != NULL ? index + at : NULL);
        }
        return;
    }
    double *x = job->scratch + slot * scratch_doubles(v);
    double *y = x + in;
    for (int64_t i = 0; i < in; i++) {
        x[i] = flex_load_f64(job->x->data, plane * in + i, job->x->dtype);
    }
    if (job->is_inside) {
        max_plane_inside(v, job->table, x, 0, y, index);
    }
    for (int64_t oy = 0; oy < v->out[0] && !job->is_inside; oy++) {
        int64_t at = oy * v->out[1];
        one_row_f64(job, x, oy, y + at, index != NULL ? index + at : NULL);
    }
    for (int64_t i = 0; i < out; i++) {
        flex_store_f64(job->y->data, plane * out + i, job->y->dtype, y[i]);
    }
}

/* Several small planes make one task, since handing out a task costs, too. */
enum { TASK_ELEMENTS = 8192 };

typedef struct plane_job {
    flex_item_fn fn;
    void *ctx;
    int64_t planes;
    int64_t each;
} plane_job;

static void plane_task(void *ctx, int64_t item, uint32_t slot)
{
    const plane_job *job = ctx;
    int64_t end = flex_min((item + 1) * job->each, job->planes);
    for (int64_t plane = item * job->each; plane < end; plane++) {
        job->fn(job->ctx, plane, slot);
    }
}

static void share_planes(int64_t planes, int64_t elements, flex_item_fn fn, void *ctx)
{
    plane_job job = {fn, ctx, planes, TASK_ELEMENTS / (elements > 0 ? elements : 1)};
    job.each = job.each > 0 ? job.each : 1;
    int64_t items = (planes + job.each - 1) / job.each;
    flex_share(items, planes * elements < FLEX_GRAIN ? 1 : flex_slots(items), plane_task, &job);
}

static int32_t prepare(const burn_call *call, uint32_t kind, burn_prepared *out)
{
    pool_job job;
    make_window(call, kind, &job.v);
    if (flex_in(call, 0)->dtype == BURN_F32) {
        return BURN_OK;
    }
    uint64_t bytes = (uint64_t)scratch_doubles(&job.v) * sizeof(double);
    return flex_want_workspace(out, bytes * flex_thread_count());
}

static int32_t launch(const burn_call *call, uint32_t kind)
{
    pool_job job;
    make_window(call, kind, &job.v);
    job.kind = kind;
    job.x = flex_in(call, 0);
    job.y = flex_out(call, 0);
    job.index = kind == KIND_MAX ? flex_out(call, 1)->data : NULL;
    job.scratch = flex_workspace(call);
    job.is_inside = kind == KIND_MAX && is_inside(&job.v);
    job.table = flex_lines_of(job.x->dtype == BURN_F32 ? BURN_F32 : BURN_F64);
    if (job.v.in[0] * job.v.in[1] > INT32_MAX) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "pool: a plane has 2^31 elements or more");
    }
    if (flex_numel(job.y) == 0) {
        return BURN_OK;
    }
    if (job.scratch == NULL && job.x->dtype != BURN_F32) {
        return flex_fail(call->err, BURN_E_INTERNAL, "pool: the call has no workspace");
    }
    int64_t planes = job.x->dims[0] * job.x->dims[1];
    share_planes(planes, job.v.in[0] * job.v.in[1], one_plane, &job);
    return BURN_OK;
}

/* ---- max_pool2d_grad ------------------------------------------------------------------------- */

typedef struct grad_job {
    const burn_operand *g;
    const burn_operand *index;
    const burn_operand *gx;
    int64_t in;
    int64_t out;
    double *scratch;
    atomic_llong bad; /* 1 + position of an index out of range, 0: none */
} grad_job;

/* f32 where it lies; returns 1 + the position of an index out of range, or 0. */
static int64_t grad_plane_f32(const grad_job *job, int64_t plane, const int64_t *index)
{
    const float *g = (const float *)job->g->data + plane * job->out;
    float *sums = (float *)job->gx->data + plane * job->in;
    uint64_t in = (uint64_t)job->in;
    int64_t bad = 0;
    memset(sums, 0, (size_t)in * sizeof(float));
    for (int64_t i = 0; i < job->out; i++) {
        uint64_t at = (uint64_t)index[i];
        if (at < in) {
            sums[at] += g[i];
        } else {
            bad = plane * job->out + i + 1;
        }
    }
    return bad;
}

static int64_t grad_plane_wide(const grad_job *job, int64_t plane, const int64_t *index,
                               double *sums)
{
    int64_t bad = 0;
    memset(sums, 0, (size_t)job->in * sizeof(double));
    for (int64_t i = 0; i < job->out; i++) {
        int64_t at = plane * job->out + i;
        if (index[i] < 0 || index[i] >= job->in) {
            bad = at + 1;
        } else {
            sums[index[i]] += flex_load_f64(job->g->data, at, job->g->dtype);
        }
    }
    for (int64_t i = 0; i < job->in; i++) {
        flex_store_f64(job->gx->data, plane * job->in + i, job->gx->dtype, sums[i]);
    }
    return bad;
}

static void grad_plane(void *ctx, int64_t plane, uint32_t slot)
{
    grad_job *job = ctx;
    const int64_t *index = (const int64_t *)job->index->data + plane * job->out;
    int64_t bad = job->g->dtype == BURN_F32
                      ? grad_plane_f32(job, plane, index)
                      : grad_plane_wide(job, plane, index, job->scratch + slot * job->in);
    if (bad != 0) {
        atomic_store(&job->bad, bad);
    }
}

static int32_t prepare_grad(const burn_call *call, burn_prepared *out)
{
    const burn_operand *gx = flex_out(call, 0);
    if (gx->dtype == BURN_F32) {
        return BURN_OK;
    }
    uint64_t plane = (uint64_t)(gx->dims[2] * gx->dims[3]) * sizeof(double);
    return flex_want_workspace(out, plane * flex_thread_count());
}

static int32_t launch_grad(const burn_call *call)
{
    grad_job job = {.g = flex_in(call, 0), .index = flex_in(call, 1), .gx = flex_out(call, 0)};
    job.in = job.gx->dims[2] * job.gx->dims[3];
    job.out = job.g->dims[2] * job.g->dims[3];
    job.scratch = flex_workspace(call);
    atomic_init(&job.bad, 0);
    if (flex_numel(job.gx) == 0) {
        return BURN_OK;
    }
    if (job.scratch == NULL && job.gx->dtype != BURN_F32) {
        return flex_fail(call->err, BURN_E_INTERNAL, "pool: the call has no workspace");
    }
    int64_t planes = job.gx->dims[0] * job.gx->dims[1];
    share_planes(planes, job.in, grad_plane, &job);
    long long bad = atomic_load(&job.bad);
    if (bad != 0) {
        int64_t value = ((const int64_t *)job.index->data)[bad - 1];
        return flex_fail(call->err, BURN_E_DATA,
                         "max_pool2d_grad: index %lld at position %lld is not in [0, %lld); pass "
                         "the index that max_pool2d returned",
                         (long long)value, bad - 1, (long long)job.in);
    }
    return BURN_OK;
}

#define POOL_FNS(kind, name)                                                                       \
    static int32_t prepare_##name(const burn_call *call, burn_prepared *out)                       \
    {                                                                                              \
        return prepare(call, kind, out);                                                           \
    }                                                                                              \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return launch(call, kind);                                                                 \
    }
POOL_FNS(KIND_MAX, max)
POOL_FNS(KIND_AVERAGE, average)
POOL_FNS(KIND_ADAPTIVE_MAX, adaptive_max)
POOL_FNS(KIND_ADAPTIVE_AVERAGE, adaptive_average)

#define DENSE BURN_LAYOUT_CONTIGUOUS
static const burn_slot plain_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};
static const burn_slot max_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_BIT(I64), DENSE, 0, 0),
};
static const burn_slot grad_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_BIT(I64), DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};

/* clang-format off */
const burn_row flex_rows_pool[] = {
    FLEX_ROW_PREPARED(BURN_OP_MAX_POOL2D, max_slots, 0, "flex.max_pool2d", prepare_max, launch_max),
    FLEX_ROW_PREPARED(BURN_OP_AVG_POOL2D, plain_slots, 0, "flex.avg_pool2d",
                      prepare_average, launch_average),
    FLEX_ROW_PREPARED(BURN_OP_ADAPTIVE_AVG_POOL2D, plain_slots, 0, "flex.adaptive_avg_pool2d",
                      prepare_adaptive_average, launch_adaptive_average),
    FLEX_ROW_PREPARED(BURN_OP_ADAPTIVE_MAX_POOL2D, plain_slots, 0, "flex.adaptive_max_pool2d",
                      prepare_adaptive_max, launch_adaptive_max),
    FLEX_ROW_PREPARED(BURN_OP_MAX_POOL2D_GRAD, grad_slots, BURN_ROW_FAULTS, "flex.max_pool2d_grad",
                      prepare_grad, launch_grad),
};
/* clang-format on */
const uint32_t flex_rows_pool_count = FLEX_COUNT(flex_rows_pool);
