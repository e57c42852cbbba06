/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_turn.c - fused programs over transposed operands, block by block. See fused_turn.h.
 *
 * A unit of work is a block: up to `turn_lines` lines of positions, `turn_inner` apart, by a strip
 * of `turn_width` of them. Units are numbered strip by strip, then block by block; tasks are runs
 * of units. Panels are on the stacks of tasks. A run's end is the end of the operand's axes that
 * are one run behind its dense axis, so each piece is one plain transposition (copy_nd.h).
 */
#include "fused_turn.h"

#include "copy_nd.h"
#include "stream.h"
#include "threads.h"
#include "tiles.h"

#include <string.h>

/* Smaller operands, and shorter lines, are as well read position by position; large ones never: of
 * each line of cache that comes from afar only one element would be used. */
enum { LEAST_TURNED = 1 << 12, LEAST_INNER = 8, LARGE_TURNED = 1 << 18 };
/* Lines of a block: two lines of cache of f32. Fewer than a few are not worth the copy. */
enum { MOST_LINES = 32, LEAST_LINES = 4, EVEN_LINES = 16, EVEN_WIDTH = 16 };
enum { PANEL_BYTES = 128 << 10 };

/* ---- finding them ---------------------------------------------------------------------------- */

/* The dense axis, with what is one run with it before, and the run behind it. */
typedef struct shape {
    uint64_t dim;
    uint64_t inner;
    uint64_t run;
    int64_t step;
} shape;

static uint32_t dense_axis(const burn_operand *x)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->strides[i] == 1 && x->dims[i] > 1) {
            return i;
        }
    }
    return x->rank;
}

static int shape_of(const burn_operand *x, shape *out)
{
    uint32_t axis = dense_axis(x);
    if (x->kind == BURN_IMMEDIATE || axis == x->rank) {
        return 0;
    }
    *out = (shape){(uint64_t)x->dims[axis], 1, 1, 0};
    int is_run = 1;
    for (uint32_t i = x->rank; i-- > axis + 1;) {
        out->inner *= (uint64_t)x->dims[i];
        if (x->dims[i] == 1) {
            continue;
        }
        out->step = out->run == 1 && is_run ? x->strides[i] : out->step;
        is_run = is_run && (out->run == 1 || x->strides[i] == (int64_t)out->run * out->step);
        out->run *= is_run ? (uint64_t)x->dims[i] : 1;
    }
    for (uint32_t i = axis; i-- > 0 && x->strides[i] == (int64_t)out->dim;) {
        out->dim *= (uint64_t)x->dims[i];
    }
    return out->step != 0 && out->step != 1;
}

/* Another one must be walked like those before. */
static void add_turned(flex_fused_job *job, uint32_t i, const shape *s)
{
    int is_first = job->n_turned == 0;
    if (job->n_turned == FLEX_FUSED_TURNED ||
        (!is_first && (s->dim != job->turn_dim || s->inner != job->turn_inner))) {
        job->turn_mixed = 1;
        return;
    }
    job->turn_dim = s->dim;
    job->turn_inner = s->inner;
    flex_fused_turned *t = &job->turned[job->n_turned++];
    t->operand = i;
    t->run = s->run;
    t->step = s->step;
}

void flex_fused_find_turned(flex_fused_job *job, const burn_fused_program *program)
{
    const burn_fused_input *inputs = burn_fused_inputs(program);
    for (uint32_t i = 0; i < job->f->n_in; i++) {
        shape s;
        uint64_t bytes = job->n * job->f->size[i];
        if (inputs[i].space == BURN_FUSED_FULL && bytes >= LEAST_TURNED &&
            shape_of(job->operands[i], &s) && s.inner >= LEAST_INNER) {
            job->turn_large |= bytes >= LARGE_TURNED;
            add_turned(job, i, &s);
        }
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Strips of about the same width, whole rows where there are rows. */
static void choose_width(flex_fused_job *job)
{
    const uint64_t even = job->length > 0 ? job->length : EVEN_WIDTH;
    uint64_t strips = (job->turn_inner + job->tile - 1) / job->tile;
    uint64_t width = (job->turn_inner + strips - 1) / strips;
    width = (width + even - 1) / even * even;
    job->turn_width = width < job->turn_inner ? width : job->turn_inner;
}

/* 0: there is no room for lines enough. */
static int choose_block(flex_fused_job *job)
{
    uint64_t size = 0;
    choose_width(job);
    for (uint32_t k = 0; k < job->n_turned; k++) {
        size += job->f->size[job->turned[k].operand];
    }
    uint64_t lines = PANEL_BYTES / (job->turn_width * size);
    lines = lines < MOST_LINES ? lines : MOST_LINES;
    lines = lines > EVEN_LINES ? lines / EVEN_LINES * EVEN_LINES : lines;
    job->turn_lines = lines < job->turn_dim ? lines : job->turn_dim;
    uint64_t at = 0;
    for (uint32_t k = 0; k < job->n_turned; k++) {
        job->turned[k].panel = at;
        at += job->turn_lines * job->turn_width * job->f->size[job->turned[k].operand];
    }
    return lines >= LEAST_LINES;
}

int flex_fused_in_blocks(flex_fused_job *job, int rows_fit)
{
    int fits = rows_fit && !job->turn_mixed && job->f->product == NULL && job->f->n_columns == 0 &&
               (job->length == 0 || job->turn_inner % job->length == 0) && choose_block(job);
    if (!fits && !job->turn_large) {
        job->n_turned = 0;
    }
    return fits;
}

/* Fills the panels with n_lines lines from position `at` on, n positions of each. */
static void fill_panels(const flex_fused_tile *t, uint64_t at, uint64_t n_lines, uint64_t n)
{
    const flex_fused_job *job = t->job;
    for (uint32_t k = 0; k < job->n_turned; k++) {
        const flex_fused_turned *turned = &job->turned[k];
        const burn_operand *x = job->operands[turned->operand];
        const uint32_t size = job->f->size[turned->operand];
        char *out = t->panels + turned->panel;
        for (uint64_t done = 0; done < n;) {
            uint64_t run = turned->run - (at + done) % turned->run;
            run = run < n - done ? run : n - done;
            int64_t from = flex_offset_at(x->rank, x->dims, x->strides, (int64_t)(at + done));
            flex_transpose(size, out + done * size, (int64_t)job->turn_width,
                           (const char *)x->data + from * (int64_t)size, turned->step,
                           (int64_t)n_lines, (int64_t)run);
            done += run;
        }
    }
}

static uint64_t blocks_of(const flex_fused_job *job)
{
    return (job->turn_dim + job->turn_lines - 1) / job->turn_lines;
}

static uint64_t strips_of(const flex_fused_job *job)
{
    return (job->turn_inner + job->turn_width - 1) / job->turn_width;
}

/* Lines that are as wide as the panel: positions at .. at + n - 1, in tiles of any lines. */
static int run_together(flex_fused_tile *t, uint64_t at, uint64_t n)
{
    const uint64_t tile = t->job->tile;
    int goes_on = 1;
    for (uint64_t done = 0; done < n && goes_on; done += t->n) {
        uint64_t now = n - done < tile ? n - done : tile;
        t->panel_at = done;
        t->next = at + done + now;
        goes_on = flex_fused_run_tile(t, at + done, now);
    }
    return goes_on;
}

/* A tile for each line. */
static int run_lines(flex_fused_tile *t, uint64_t at, uint64_t lines, uint64_t n)
{
    const flex_fused_job *job = t->job;
    int goes_on = 1;
    for (uint64_t k = 0; k < lines && goes_on; k++) {
        t->panel_at = k * job->turn_width;
        t->next = at + (k + 1) * job->turn_inner;
        goes_on = flex_fused_run_tile(t, at + k * job->turn_inner, n);
    }
    return goes_on;
}

/* One block. 0: an element has no answer. */
static int run_unit(flex_fused_tile *t, uint64_t unit)
{
    const flex_fused_job *job = t->job;
    const uint64_t inner = job->turn_inner;
    uint64_t column = unit % strips_of(job) * job->turn_width;
    uint64_t block = unit / strips_of(job);
    uint64_t line = block % blocks_of(job) * job->turn_lines;
    uint64_t lines = job->turn_dim - line < job->turn_lines ? job->turn_dim - line
                                                            : job->turn_lines;
    uint64_t n = inner - column < job->turn_width ? inner - column : job->turn_width;
    uint64_t at = (block / blocks_of(job) * job->turn_dim + line) * inner + column;
    fill_panels(t, at, lines, n);
    return n == inner ? run_together(t, at, lines * n) : run_lines(t, at, lines, n);
}

static void units_task(void *ctx, uint32_t task)
{
    _Alignas(64) char full[FLEX_FUSED_BYTES];
    _Alignas(64) char rows[FLEX_FUSED_ROW_SLOTS * FLEX_FUSED_ROWS * 8];
    _Alignas(64) char panels[PANEL_BYTES];
    flex_fused_job *job = ctx;
    flex_fused_tile t;
    flex_fused_start_tile(&t, job, full, rows);
    t.panels = panels;
    uint64_t all = job->n / (job->turn_dim * job->turn_inner) * blocks_of(job) * strips_of(job);
    uint64_t lo = task * job->grain;
    uint64_t hi = all - lo < job->grain ? all : lo + job->grain;
    for (uint64_t unit = lo; unit < hi && run_unit(&t, unit); unit++) {
    }
    if (job->stream) {
        flex_stream_end();
    }
}

void flex_fused_run_turned(flex_fused_job *job)
{
    const uint64_t size = job->turn_lines * job->turn_width;
    uint64_t all = job->n / (job->turn_dim * job->turn_inner) * blocks_of(job) * strips_of(job);
    job->grain = (job->f->grain + size - 1) / size;
    job->grain = flex_even_grain(all, job->grain, 1);
    while ((all - 1) / job->grain >= UINT32_MAX) {
        job->grain *= 2;
    }
    if (all <= job->grain) {
        units_task(job, 0);
    } else {
        flex_parallel((uint32_t)((all + job->grain - 1) / job->grain), units_task, job);
    }
}
