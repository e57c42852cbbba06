/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_columns.c - blocks and strips of fused programs that reduce over the rows. See
 * fused_columns.h.
 *
 * Accumulators are on the stacks of tasks, the results of blocks on that of the launch. A tile is
 * some rows of a strip that is a whole row, or a piece of one row.
 */
#include "fused_columns.h"

#include "stream.h"
#include "threads.h"
#include "tiles.h"

/* Columns of a strip at most, and at least where strips are made so that threads can share. Fewer
 * columns than LEAST_COLUMNS the single op reduces in another order. */
enum { WIDEST = 2048, NARROWEST = 256, EVEN = 16, LEAST_COLUMNS = 8 };
/* Floats of all accumulators of a task, doubles of what all blocks give: both lie on stacks, which
 * threads of an application may have little of. */
enum { ROOM = 16 << 10, PARTS = 2 * FLEX_COLUMNS_ROOM };

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t n_strips(const flex_fused_job *job)
{
    return (job->length + job->strip - 1) / job->strip;
}

static uint64_t n_blocks(const flex_fused_job *job)
{
    return (job->n / job->length + job->per_block - 1) / job->per_block;
}

static uint64_t lines_of(const flex_fused_job *job)
{
    uint64_t lines = 0;
    for (uint32_t k = 0; k < job->f->n_columns; k++) {
        lines += flex_column_lines(job->f->columns[k].kind, (int64_t)job->per_block);
    }
    return lines;
}

/* One block that is worth sharing is cut where its sums go on pairwise. */
static void choose_blocks(flex_fused_job *job)
{
    const uint64_t rows = job->n / job->length;
    const uint64_t groups = (rows + FLEX_COLUMNS_GROUP - 1) / FLEX_COLUMNS_GROUP;
    job->per_block = (uint64_t)flex_columns_per_block((int64_t)rows, (int64_t)job->length);
    job->by_group = job->per_block == rows && groups > 1 && job->n > job->f->grain &&
                    groups * job->length <= FLEX_COLUMNS_ROOM;
    if (job->by_group) {
        job->per_block = FLEX_COLUMNS_GROUP;
    }
    const uint64_t size = job->per_block * job->length;
    job->per_task = job->f->grain > size ? job->f->grain / size : 1;
}

/* Few tasks of much work become more. */
static void narrow(flex_fused_job *job)
{
    const uint64_t tasks = (n_blocks(job) + job->per_task - 1) / job->per_task;
    while (job->n > job->f->grain && n_strips(job) * tasks < flex_thread_count() &&
           job->strip >= 2 * NARROWEST) {
        job->strip = (job->strip / 2 + EVEN - 1) / EVEN * EVEN;
    }
}

int flex_fused_choose_strips(flex_fused_job *job)
{
    const flex_fused *f = job->f;
    const uint64_t rows = job->n / job->length;
    uint64_t tile = f->tile < job->tile ? f->tile : job->tile;
    if (rows < 2 || job->length < LEAST_COLUMNS) {
        return 0;
    }
    choose_blocks(job);
    if (n_blocks(job) > 1 && n_blocks(job) * job->length * f->n_columns > PARTS) {
        return 0;
    }
    uint64_t most = (ROOM - FLEX_FUSED_COLUMNS * EVEN) / lines_of(job);
    most = f->has_rows || most < WIDEST ? most : WIDEST;
    job->strip = job->length < most ? job->length : most;
    if (f->has_rows) {
        job->tile = job->length > tile ? job->length : tile / job->length * job->length;
        return job->strip == job->length &&
               job->tile * f->slot_size * f->n_slots <= FLEX_FUSED_BYTES;
    }
    narrow(job);
    if (job->strip == job->length && tile >= job->length) {
        tile = tile / job->length * job->length;
    } else if (tile > job->strip) {
        tile = job->strip;
    }
    job->tile = tile;
    return 1;
}

/* ---- running --------------------------------------------------------------------------------- */

int flex_fused_reduce_columns(const flex_fused_step *s, flex_fused_tile *t)
{
    flex_column_acc *acc = &t->columns[s->index];
    const float *x = (const float *)(const void *)t->ptr[s->in[0]];
    for (uint64_t at = 0; at < t->n; at += t->per_row) {
        flex_column_add(acc, (int64_t)t->column, x + at, (int64_t)t->per_row);
        if ((int64_t)(t->column + t->per_row) == acc->columns) {
            flex_column_end_row(acc);
        }
    }
    return 1;
}

/* Rows first .. first + n - 1 of a strip that is a whole row, several to a tile. */
static int run_rows(flex_fused_tile *t, uint64_t first, uint64_t n)
{
    const flex_fused_job *job = t->job;
    const uint64_t end = (first + n) * job->length;
    int goes_on = 1;
    t->column = 0;
    t->per_row = job->length;
    for (uint64_t at = first * job->length; at < end && goes_on; at = t->next) {
        uint64_t now = end - at < job->tile ? end - at : job->tile;
        t->next = at + now;
        goes_on = flex_fused_run_tile(t, at, now);
    }
    return goes_on;
}

/* The same for a strip of `width` columns from position `at` of a row on, piece by piece. */
static int run_pieces(flex_fused_tile *t, uint64_t first, uint64_t n, uint64_t column,
                      uint64_t width)
{
    const flex_fused_job *job = t->job;
    int goes_on = 1;
    for (uint64_t r = first; r < first + n; r++) {
        for (uint64_t done = 0; done < width && goes_on; done += t->n) {
            uint64_t at = r * job->length + column + done;
            uint64_t now = width - done < job->tile ? width - done : job->tile;
            int is_last = done + now == width;
            t->column = done;
            t->per_row = now;
            t->next = is_last ? (r + 1) * job->length + column : at + now;
            goes_on = flex_fused_run_tile(t, at, now);
        }
    }
    return goes_on;
}

/* One block of a strip. */
static void run_block(flex_fused_tile *t, float *memory, uint64_t block, uint64_t strip)
{
    const flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    const uint64_t column = strip * job->strip;
    const uint64_t width = job->length - column < job->strip ? job->length - column : job->strip;
    const uint64_t first = block * job->per_block;
    const uint64_t left = job->n / job->length - first;
    const uint64_t n = left < job->per_block ? left : job->per_block;
    const int is_part = n_blocks(job) > 1;
    for (uint32_t k = 0; k < f->n_columns; k++) {
        flex_column_start(&t->columns[k], f->columns[k].kind, (int64_t)width, memory);
        uint64_t n_floats = width * flex_column_lines(f->columns[k].kind, (int64_t)job->per_block);
        memory += (n_floats + EVEN - 1) / EVEN * EVEN;
    }
    int is_whole = width == job->length && job->tile >= job->length;
    int done = is_whole ? run_rows(t, first, n) : run_pieces(t, first, n, column, width);
    for (uint32_t k = 0; k < f->n_columns && done; k++) {
        const uint32_t size = is_part ? flex_column_size(f->columns[k].kind) : sizeof(float);
        flex_column_finish(&t->columns[k], is_part ? 0 : (int64_t)(job->n / job->length),
                           job->gathered[k] + (block * job->length + column) * size);
    }
}

static void strip_task(void *ctx, uint32_t task)
{
    _Alignas(64) char full[FLEX_FUSED_BYTES];
    _Alignas(64) char rows[FLEX_FUSED_ROW_SLOTS * FLEX_FUSED_ROWS * 8];
    _Alignas(64) float memory[ROOM];
    flex_column_acc accs[FLEX_FUSED_COLUMNS];
    flex_fused_job *job = ctx;
    flex_fused_tile t;
    const uint64_t first = task / n_strips(job) * job->per_task;
    flex_fused_start_tile(&t, job, full, rows);
    t.columns = accs;
    for (uint64_t b = first; b < first + job->per_task && b < n_blocks(job); b++) {
        run_block(&t, memory, b, task % n_strips(job));
    }
    if (job->stream) {
        flex_stream_end();
    }
}

void flex_fused_run_columns(flex_fused_job *job)
{
    const flex_fused *f = job->f;
    double parts_of_blocks[PARTS];
    const uint64_t per_column = n_blocks(job) * job->length;
    const uint64_t n_runs = (n_blocks(job) + job->per_task - 1) / job->per_task;
    const uint32_t n_tasks = (uint32_t)(n_strips(job) * n_runs);
    for (uint32_t k = 0; k < f->n_columns; k++) {
        void *out = job->data[f->n_in + f->columns[k].out];
        job->gathered[k] = n_blocks(job) > 1 ? (char *)(parts_of_blocks + k * per_column) : out;
    }
    if (job->n > f->grain) {
        flex_parallel(n_tasks, strip_task, job);
    } else {
        for (uint32_t task = 0; task < n_tasks; task++) {
            strip_task(job, task);
        }
    }
    for (uint32_t k = 0; k < f->n_columns && n_blocks(job) > 1; k++) {
        void *out = job->data[f->n_in + f->columns[k].out];
        const flex_column_parts parts = {f->columns[k].kind, job->by_group,
                                         (int64_t)n_blocks(job), (int64_t)job->length,
                                         (int64_t)(job->n / job->length)};
        flex_columns_fold(&parts, job->gathered[k], out);
    }
}
