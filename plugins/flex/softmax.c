/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * softmax.c - rows of softmax, log_softmax and their gradients.
 *
 * Owns the walk over the lines of one axis; arithmetic is in the line tables (nn_lines.h). A line
 * is shifted by its maximum, so a line of -inf gives NaN (0/0). Each line belongs to one task. To
 * add an op over lines: a function like flex_softmax_line, a
 * row, and its step in fused programs (fused_lines.h).
 */
#include "fused_lines.h"
#include "nn.h"
#include "nn_lines.h"
#include "rows.h"
#include "stream.h"
#include "tiles.h"

#include <math.h>

void flex_softmax_line(const flex_lines *t, const void *attrs, void *out, const void *const *in,
                       int64_t n)
{
    (void)attrs;
    t->softmax(out, in[0], n, in[0]);
}

void flex_log_softmax_line(const flex_lines *t, const void *attrs, void *out,
                           const void *const *in, int64_t n)
{
    (void)attrs;
    double top = t->max(in[0], n);
    double sum = t->exp(out, in[0], top, n);
    t->affine(out, in[0], top, 1.0, -log(sum), n);
}

void flex_softmax_grad_line(const flex_lines *t, const void *attrs, void *out,
                            const void *const *in, int64_t n)
{
    (void)attrs;
    t->softmax_grad(out, in[0], in[1], t->dot(in[0], in[1], n), n);
}

void flex_log_softmax_grad_line(const flex_lines *t, const void *attrs, void *out,
                                const void *const *in, int64_t n)
{
    (void)attrs;
    t->log_softmax_grad(out, in[0], in[1], t->sum(in[1], n), n);
}

typedef struct line_job {
    const flex_lines *table;
    const burn_call *call;
    flex_line_fn fn;
    flex_axis axis;
    char *scratch;
    uint64_t slot_bytes;
} line_job;

enum { LINES = 3 }; /* a, b, out */

/* NULL stays NULL: lines in place need no scratch. */
static char *scratch_at(char *scratch, uint64_t offset)
{
    return scratch != NULL ? scratch + offset : NULL;
}

static void one_line(void *ctx, int64_t item, uint32_t slot)
{
    const line_job *job = ctx;
    uint8_t dtype = job->table->dtype;
    int64_t n = job->axis.n;
    int64_t step = job->axis.inner;
    int64_t start = flex_axis_start(&job->axis, item);
    char *scratch = scratch_at(job->scratch, slot * job->slot_bytes);
    uint64_t bytes = flex_line_bytes(n);
    const burn_operand *out = flex_out(job->call, 0);
    const void *in[2] = {NULL, NULL};
    for (uint32_t i = 0; i < job->call->n_in; i++) {
        in[i] = flex_line_get(dtype, flex_in(job->call, i), start, step, n,
                              scratch_at(scratch, i * bytes));
    }
    void *line = flex_line_open(dtype, out, start, step, scratch_at(scratch, 2 * bytes));
    job->fn(job->table, job->call->attrs, line, in, n);
    flex_line_put(dtype, out, start, step, n, line);
}

static void lines_of(const burn_call *call, flex_axis *axis)
{
    const burn_attrs_axis *attrs = call->attrs;
    *axis = flex_axis_of(flex_in(call, 0), attrs->axis);
}

/* Lines of f32 and f64 along the last axis are used where they lie. */
static int needs_scratch(const burn_call *call, const flex_axis *axis)
{
    return axis->inner != 1 ||
           flex_in(call, 0)->dtype != flex_lines_of(flex_in(call, 0)->dtype)->dtype;
}

static int32_t prepare(const burn_call *call, burn_prepared *out)
{
    flex_axis axis;
    lines_of(call, &axis);
    if (!needs_scratch(call, &axis)) {
        return BURN_OK;
    }
    return flex_want_workspace(out, LINES * flex_line_bytes(axis.n) * flex_thread_count());
}

static void many_lines(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        one_line(ctx, i, 0);
    }
}

enum { SHORT_LINE = 32768 /* bytes that stay in the first cache with their source */ };

/* Asks for bytes from .. to - 1 of the next line. */
static void fetch_line(const line_job *job, const void *const in[2], int64_t from, int64_t to)
{
    const int64_t line = job->axis.n * (int64_t)flex_size(flex_out(job->call, 0)->dtype);
    for (uint32_t k = 0; k < job->call->n_in; k++) {
        uintptr_t next = (uintptr_t)in[k] + (uintptr_t)line;
        flex_fetch((const void *)(next + (uintptr_t)from), (uint64_t)(to - from));
    }
}

/* Can the table's own loop over such lines be used? */
static int has_far_lines(const line_job *job, const burn_operand *out)
{
    return job->fn == flex_softmax_line && job->table->far_softmax != NULL &&
           job->axis.n <= FLEX_FAR_MOST && job->axis.n % FLEX_LINE_BLOCK == 0 &&
           (uintptr_t)out->data % 64 == 0;
}

/* The same for results that no cache will hold: each line is made in a buffer, then streamed. */
static void streamed_lines(void *ctx, int64_t begin, int64_t end)
{
    const line_job *job = ctx;
    _Alignas(64) char buffer[SHORT_LINE];
    const burn_operand *out = flex_out(job->call, 0);
    const int64_t bytes = job->axis.n * (int64_t)flex_size(out->dtype);
    if (has_far_lines(job, out)) {
        job->table->far_softmax((char *)out->data + begin * bytes,
                                (const char *)flex_in(job->call, 0)->data + begin * bytes,
                                job->axis.n, end - begin);
        flex_stream_end();
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const void *in[2] = {NULL, NULL};
        for (uint32_t k = 0; k < job->call->n_in; k++) {
            in[k] = (const char *)flex_in(job->call, k)->data + i * bytes;
        }
        if (job->fn == flex_softmax_line) {
            uintptr_t ahead = i + 1 < end ? (uintptr_t)bytes : 0;
            job->table->softmax(buffer, in[0], job->axis.n,
                                (const void *)((uintptr_t)in[0] + ahead));
        } else {
            fetch_line(job, in, 0, bytes / 2);
            job->fn(job->table, job->call->attrs, buffer, in, job->axis.n);
            fetch_line(job, in, bytes / 2, bytes);
        }
        flex_stream((char *)out->data + i * bytes, buffer, (uint64_t)bytes);
    }
    flex_stream_end();
}

static int wants_stream(const burn_call *call, const flex_axis *axis)
{
    const burn_operand *out = flex_out(call, 0);
    uint64_t line = (uint64_t)axis->n * flex_size(out->dtype);
    uint64_t all = (uint64_t)flex_numel(out) * flex_size(out->dtype);
    return line <= SHORT_LINE && flex_stream_pays(all * (call->n_in + 1u));
}

static int32_t launch(const burn_call *call, flex_line_fn fn)
{
    line_job job = {.table = flex_lines_of(flex_in(call, 0)->dtype), .call = call, .fn = fn};
    lines_of(call, &job.axis);
    int64_t items = job.axis.outer * job.axis.inner;
    if (items == 0 || job.axis.n == 0) {
        return BURN_OK;
    }
    job.slot_bytes = LINES * flex_line_bytes(job.axis.n);
    job.scratch = flex_workspace(call);
    if (!needs_scratch(call, &job.axis)) {
        job.slot_bytes = 0;
        int stream = wants_stream(call, &job.axis);
        flex_range_fn lines = stream ? streamed_lines : many_lines;
        uint64_t length = (uint64_t)job.axis.n;
        uint64_t grain = (FLEX_GRAIN / 2 + length - 1) / length;
        if (stream) {
            grain = flex_stream_grain((uint64_t)items, grain, FLEX_STREAM_ELEMENTS / length);
        } else {
            grain = flex_even_grain((uint64_t)items, grain, 1);
        }
        flex_ranges(items, (int64_t)grain, lines, &job);
        return BURN_OK;
    }
    if (job.scratch == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "softmax: the call has no workspace");
    }
    uint32_t slots = items * job.axis.n < FLEX_GRAIN ? 1 : flex_slots(items);
    flex_share(items, slots, one_line, &job);
    return BURN_OK;
}

#define LINE_FNS(name)                                                                             \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return launch(call, flex_##name##_line);                                                   \
    }
LINE_FNS(softmax)
LINE_FNS(log_softmax)
LINE_FNS(softmax_grad)
LINE_FNS(log_softmax_grad)

#define DENSE BURN_LAYOUT_CONTIGUOUS
static const burn_slot forward_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};
static const burn_slot grad_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};

/* clang-format off */
const burn_row flex_rows_softmax[] = {
    FLEX_ROW_PREPARED(BURN_OP_SOFTMAX, forward_slots, BURN_ROW_LINES,
                      "flex.softmax", prepare, launch_softmax),
    FLEX_ROW_PREPARED(BURN_OP_LOG_SOFTMAX, forward_slots, BURN_ROW_LINES,
                      "flex.log_softmax", prepare, launch_log_softmax),
    FLEX_ROW_PREPARED(BURN_OP_SOFTMAX_GRAD, grad_slots, BURN_ROW_LINES,
                      "flex.softmax_grad", prepare, launch_softmax_grad),
    FLEX_ROW_PREPARED(BURN_OP_LOG_SOFTMAX_GRAD, grad_slots, BURN_ROW_LINES,
                      "flex.log_softmax_grad", prepare, launch_log_softmax_grad),
};
/* clang-format on */
const uint32_t flex_rows_softmax_count = FLEX_COUNT(flex_rows_softmax);
