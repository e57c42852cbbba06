/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce_columns.c - reductions whose outputs lie side by side in memory, and running sums.
 *
 * A strip of up to WIDTH columns is reduced row by row into accumulators on the stack. f32 sums
 * add GROUP rows, then the groups pairwise, so errors grow like log n. Strips are tasks; when there
 * are few strips and many rows, blocks of rows are tasks too, and their results are added in order.
 */
#include "reduce_columns.h"

#include "kernels.h"
#include "reduce.h"
#include "threads.h"
#include "tiles.h"

#include <math.h>
#include <string.h>

/* A strip is wide, since memory likes long runs; its accumulators still fit the first cache. */
enum { WIDTH = 1024, GROUP = FLEX_COLUMNS_GROUP, LEVELS = 32, MAX_BLOCKS = 64 };

/* Rows first .. first + n - 1 of a strip, by their offsets. */
typedef struct row_walk {
    const flex_columns *c;
    int64_t index[BURN_MAX_RANK];
    int64_t offset;
} row_walk;

static void walk_start(row_walk *w, const flex_columns *c, int64_t first)
{
    w->c = c;
    w->offset = flex_offset_at(c->red_rank, c->red_dims, c->red_strides, first);
    for (uint32_t axis = c->red_rank; axis-- > 0;) {
        w->index[axis] = first % c->red_dims[axis];
        first /= c->red_dims[axis];
    }
}

static int64_t walk_next(row_walk *w)
{
    const int64_t *strides[1] = {w->c->red_strides};
    int64_t at = w->offset;
    (void)flex_step(w->c->red_rank, w->c->red_dims, w->index, 1, strides, &w->offset);
    return at;
}

/* ---- accumulators ---------------------------------------------------------------------------- */

/*
 * Sums: line 0 gathers a group of rows; behind it, level k holds the sum of 2^k groups, and equal
 * levels meet at once. Means: the same group in f64, and the sum of all groups behind it. Extremes
 * have one line.
 */
uint32_t flex_column_lines(uint32_t kind, int64_t rows)
{
    uint32_t lines = 2;
    if (kind == FLEX_R_MAX || kind == FLEX_R_MIN) {
        return 1;
    }
    if (kind == FLEX_R_MEAN) {
        return 4;
    }
    for (int64_t groups = (rows + GROUP - 1) / GROUP; groups > 1; groups /= 2) {
        lines++;
    }
    return kind == FLEX_R_SUM ? lines : 0;
}

uint32_t flex_column_size(uint32_t kind)
{
    return kind == FLEX_R_MEAN ? (uint32_t)sizeof(double) : (uint32_t)sizeof(float);
}

static double *in_f64(const flex_column_acc *acc)
{
    return (double *)(void *)acc->memory;
}

void flex_column_start(flex_column_acc *acc, uint32_t kind, int64_t columns, float *memory)
{
    acc->kind = kind;
    acc->zero = 0;
    acc->columns = columns;
    acc->rows = 0;
    acc->filled = 0;
    acc->memory = memory;
    size_t lines = kind == FLEX_R_MEAN ? 4 : 1;
    memset(memory, 0, lines * (size_t)columns * sizeof(float));
}

void flex_column_add(flex_column_acc *acc, int64_t column, const float *x, int64_t n)
{
    const flex_reduce_table *t = flex_isa_kernels->reduce;
    float *at = acc->memory + column;
    if (acc->kind == FLEX_R_SUM) {
        t->add_rows(at, x, (uint64_t)n);
    } else if (acc->kind == FLEX_R_MEAN) {
        t->add_rows_f64(in_f64(acc) + column, x, (uint64_t)n);
    } else if (acc->rows == 0) {
        memcpy(at, x, (size_t)n * sizeof(float));
    } else if (acc->kind == FLEX_R_MAX) {
        t->max_rows(at, x, (uint64_t)n);
    } else {
        t->min_rows(at, x, (uint64_t)n);
    }
}

static void add_f64(double *z, const double *x, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        z[j] += x[j];
    }
}

/* The group becomes level 0, and meets what is there. */
static void end_group(flex_column_acc *acc)
{
    const flex_reduce_table *t = flex_isa_kernels->reduce;
    float *level = acc->memory + acc->columns;
    uint32_t k = 0;
    if (acc->kind == FLEX_R_MEAN) {
        add_f64(in_f64(acc) + acc->columns, in_f64(acc), acc->columns);
        memset(acc->memory, 0, (size_t)acc->columns * sizeof(double));
        return;
    }
    for (; (acc->filled >> k & 1u) != 0; k++) {
        t->add_rows(acc->memory, level, (uint64_t)acc->columns);
        acc->filled &= ~(UINT64_C(1) << k);
        level += acc->columns;
    }
    memcpy(level, acc->memory, (size_t)acc->columns * sizeof(float));
    acc->filled |= UINT64_C(1) << k;
    memset(acc->memory, 0, (size_t)acc->columns * sizeof(float));
}

static int has_groups(const flex_column_acc *acc)
{
    return acc->kind == FLEX_R_SUM || acc->kind == FLEX_R_MEAN;
}

void flex_column_end_row(flex_column_acc *acc)
{
    acc->rows++;
    if (has_groups(acc) && acc->rows % GROUP == 0) {
        end_group(acc);
    }
}

/* The sums of a mean, or, with the number of rows, the mean. */
static void finish_mean(const double *sums, int64_t n, int64_t n_red, void *out)
{
    float *z = out;
    if (n_red == 0) {
        memcpy(out, sums, (size_t)n * sizeof(double));
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        z[j] = (float)(sums[j] / (double)n_red);
    }
}

void flex_column_finish(flex_column_acc *acc, int64_t n_red, void *out)
{
    const size_t bytes = (size_t)acc->columns * sizeof(float);
    if (has_groups(acc) && acc->rows % GROUP != 0) {
        end_group(acc);
    }
    if (acc->kind == FLEX_R_MEAN) {
        finish_mean(in_f64(acc) + acc->columns, acc->columns, n_red, out);
        return;
    }
    if (acc->kind != FLEX_R_SUM) {
        memcpy(out, acc->memory, bytes);
        return;
    }
    memset(out, 0, bytes);
    for (uint32_t k = 0; acc->filled >> k != 0; k++) {
        if ((acc->filled >> k & 1u) != 0) {
            flex_isa_kernels->reduce->add_rows(out, acc->memory + (k + 1) * acc->columns,
                                               (uint64_t)acc->columns);
        }
    }
}

int64_t flex_columns_per_block(int64_t rows, int64_t columns)
{
    int64_t blocks = rows * columns / FLEX_GRAIN;
    blocks = blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS;
    blocks = blocks < FLEX_COLUMNS_ROOM / columns ? blocks : FLEX_COLUMNS_ROOM / columns;
    return blocks > 1 ? (rows + blocks - 1) / blocks : rows;
}

static void fold_means(const flex_column_parts *p, const double *x, float *out)
{
    double sums[WIDTH];
    for (int64_t at = 0; at < p->columns; at += WIDTH) {
        int64_t n = p->columns - at < WIDTH ? p->columns - at : WIDTH;
        memset(sums, 0, sizeof(sums));
        for (int64_t r = 0; r < p->n; r++) {
            add_f64(sums, x + r * p->columns + at, n);
        }
        finish_mean(sums, n, p->n_red, out + at);
    }
}

void flex_columns_fold(const flex_column_parts *p, const void *parts, float *out)
{
    float memory[(LEVELS + 1) * WIDTH];
    const float *x = parts;
    if (p->kind == FLEX_R_MEAN) {
        fold_means(p, parts, out);
        return;
    }
    for (int64_t at = 0; at < p->columns; at += WIDTH) {
        flex_column_acc acc;
        int64_t n = p->columns - at < WIDTH ? p->columns - at : WIDTH;
        flex_column_start(&acc, p->kind, n, memory);
        for (int64_t r = 0; r < p->n; r++) {
            flex_column_add(&acc, 0, x + r * p->columns + at, n);
            if (p->are_groups && p->kind == FLEX_R_SUM) {
                end_group(&acc);
            } else {
                flex_column_end_row(&acc);
            }
        }
        flex_column_finish(&acc, p->n_red, out + at);
    }
}

/* ---- single reductions ----------------------------------------------------------------------- */

static void gather_rows(const flex_columns *c, const float *x, int64_t first, int64_t n_rows,
                        int64_t n, int is_part, void *out)
{
    _Alignas(64) float memory[(LEVELS + 1) * WIDTH];
    flex_column_acc acc;
    row_walk w;
    walk_start(&w, c, first);
    flex_column_start(&acc, c->kind, n, memory);
    for (int64_t r = 0; r < n_rows; r++) {
        flex_column_add(&acc, 0, x + walk_next(&w), n);
        flex_column_end_row(&acc);
    }
    flex_column_finish(&acc, is_part ? 0 : c->n_red, out);
}

static void variance(const flex_columns *c, const float *x, int64_t n, float *out)
{
    double mean[WIDTH] = {0};
    double squares[WIDTH] = {0};
    row_walk w;
    walk_start(&w, c, 0);
    for (int64_t r = 0; r < c->n_red; r++) {
        flex_isa_kernels->reduce->add_rows_f64(mean, x + walk_next(&w), (uint64_t)n);
    }
    for (int64_t j = 0; j < n; j++) {
        mean[j] /= (double)c->n_red;
    }
    walk_start(&w, c, 0);
    for (int64_t r = 0; r < c->n_red; r++) {
        flex_isa_kernels->reduce->square_rows_f64(squares, x + walk_next(&w), mean, (uint64_t)n);
    }
    double divisor = fmax((double)c->n_red - c->correction, 0.0);
    for (int64_t j = 0; j < n; j++) {
        out[j] = (float)(squares[j] / divisor);
    }
}

typedef struct column_job {
    const flex_columns *c;
    int64_t strips;
    int64_t blocks; /* of rows */
    int64_t per_block;
    char *partial; /* blocks x columns, when blocks > 1 */
} column_job;

static void column_task(void *ctx, uint32_t task)
{
    const column_job *job = ctx;
    const flex_columns *c = job->c;
    int64_t block = task % job->blocks;
    int64_t strip = task / job->blocks % job->strips;
    int64_t outer = task / job->blocks / job->strips;
    int64_t column = strip * WIDTH;
    int64_t n = c->columns - column < WIDTH ? c->columns - column : WIDTH;
    int64_t first = block * job->per_block;
    int64_t rows = c->n_red - first < job->per_block ? c->n_red - first : job->per_block;
    const float *x = c->x + column +
                     flex_offset_at(c->outer_rank, c->outer_dims, c->outer_strides, outer);
    float *out = c->out + outer * c->columns + column;
    if (job->partial != NULL) {
        int64_t at = (block * c->columns + column) * (int64_t)flex_column_size(c->kind);
        gather_rows(c, x, first, rows, n, 1, job->partial + at);
    } else if (c->kind == FLEX_R_SQUARES) {
        variance(c, x, n, out);
    } else {
        gather_rows(c, x, first, rows, n, 0, out);
    }
}

int flex_reduce_columns(const flex_columns *c)
{
    double partial[FLEX_COLUMNS_ROOM];
    if (flex_column_lines(c->kind, 1) == 0 && c->kind != FLEX_R_SQUARES) {
        return 0;
    }
    int64_t outer = flex_product(c->outer_rank, c->outer_dims);
    column_job job = {c, (c->columns + WIDTH - 1) / WIDTH, 1, c->n_red, NULL};
    int64_t tasks = outer * job.strips;
    if (flex_column_lines(c->kind, c->n_red) > 0 && outer == 1) {
        job.per_block = flex_columns_per_block(c->n_red, c->columns);
    }
    if (job.per_block < c->n_red) {
        job.blocks = (c->n_red + job.per_block - 1) / job.per_block;
        job.partial = (char *)partial;
        flex_parallel((uint32_t)(job.blocks * job.strips), column_task, &job);
        const flex_column_parts parts = {c->kind, 0, job.blocks, c->columns, c->n_red};
        flex_columns_fold(&parts, partial, c->out);
        return 1;
    }
    if (tasks >= (int64_t)UINT32_MAX) {
        return 0;
    }
    if (outer * c->columns * c->n_red < FLEX_GRAIN) {
        for (int64_t i = 0; i < tasks; i++) {
            column_task(&job, (uint32_t)i);
        }
    } else {
        flex_parallel((uint32_t)tasks, column_task, &job);
    }
    return 1;
}

/* Running sums: lines along the last axis, or strips of columns along any other. */
#define ENTRY(NAME, name) [BURN_##NAME] = &flex_fold_##name,
static const flex_fold_table *const folds[16] = {FLEX_FOREACH_WIDE_TYPE(ENTRY)};
#undef ENTRY

typedef struct cum_job {
    const flex_fold_table *table;
    flex_convert_fn from_half;
    flex_convert_fn to_half;
    const char *x;
    char *out;
    int64_t size;
    int64_t length;
    int64_t inner;
    int64_t strips;
} cum_job;

static void cum_line_task(void *ctx, uint32_t task)
{
    const cum_job *job = ctx;
    flex_acc acc;
    float wide[WIDTH];
    memset(&acc, 0, sizeof(acc));
    const char *x = job->x + task * job->length * job->size;
    char *out = job->out + task * job->length * job->size;
    if (job->from_half == NULL) {
        job->table->cum_line(out, x, (uint64_t)job->length, &acc);
        return;
    }
    for (int64_t at = 0; at < job->length; at += WIDTH) {
        int64_t n = job->length - at < WIDTH ? job->length - at : WIDTH;
        job->from_half(wide, x + at * job->size, (uint64_t)n);
        job->table->cum_line(wide, wide, (uint64_t)n, &acc);
        job->to_half(out + at * job->size, wide, (uint64_t)n);
    }
}

static void cum_strip_task(void *ctx, uint32_t task)
{
    const cum_job *job = ctx;
    double f[WIDTH] = {0};
    uint64_t u[WIDTH] = {0};
    float wide[WIDTH];
    int64_t column = task % job->strips * WIDTH;
    int64_t n = job->inner - column < WIDTH ? job->inner - column : WIDTH;
    int64_t base = task / job->strips * job->length * job->inner + column;
    for (int64_t r = 0; r < job->length; r++) {
        const char *x = job->x + (base + r * job->inner) * job->size;
        char *out = job->out + (base + r * job->inner) * job->size;
        if (job->from_half == NULL) {
            job->table->cum_rows(out, x, (uint64_t)n, f, u);
            continue;
        }
        job->from_half(wide, x, (uint64_t)n);
        job->table->cum_rows(wide, wide, (uint64_t)n, f, u);
        job->to_half(out, wide, (uint64_t)n);
    }
}

int32_t flex_launch_cumsum(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    const burn_operand *x = flex_in(call, 0);
    cum_job job;
    memset(&job, 0, sizeof(job));
    job.x = x->data;
    job.out = flex_out(call, 0)->data;
    job.size = (int64_t)flex_size(x->dtype);
    job.table = folds[x->dtype];
    if (x->dtype == BURN_F16) {
        job.table = &flex_fold_f32;
        job.from_half = flex_isa_kernels->half_to_float;
        job.to_half = flex_isa_kernels->float_to_half;
    } else if (x->dtype == BURN_BF16) {
        job.table = &flex_fold_f32;
        job.from_half = flex_isa_kernels->bfloat_to_float;
        job.to_half = flex_isa_kernels->float_to_bfloat;
    }
    if (flex_numel(x) == 0) {
        return BURN_OK;
    }
    uint32_t axis = (uint32_t)a->axis;
    int64_t outer = flex_product(axis, x->dims);
    job.length = x->rank > 0 ? x->dims[axis] : 1;
    job.inner = x->rank > 0 ? flex_product(x->rank - axis - 1, x->dims + axis + 1) : 1;
    job.strips = (job.inner + WIDTH - 1) / WIDTH;
    flex_task_fn task = job.inner == 1 ? cum_line_task : cum_strip_task;
    int64_t tasks = outer * job.strips;
    if (flex_numel(x) >= FLEX_GRAIN && tasks < (int64_t)UINT32_MAX) {
        flex_parallel((uint32_t)tasks, task, &job);
        return BURN_OK;
    }
    for (int64_t i = 0; i < tasks; i++) {
        task(&job, (uint32_t)i);
    }
    return BURN_OK;
}

/* clang-format off */
const burn_slot flex_slots_cumsum[2] = {
    FLEX_SLOT(BURN_SET_NUMERIC, BURN_LAYOUT_CONTIGUOUS, 0, 0),
    FLEX_SLOT(BURN_SET_NUMERIC, FLEX_LAYOUT_OUT, 1, 0)};
/* clang-format on */
