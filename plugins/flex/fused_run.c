/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_run.c - runs a compiled program (fused.h), tile by tile.
 *
 * A tile is a stretch of positions, whole rows where there are rows; all steps run on one tile
 * before the next, so that what lies between operands and results stays in the first cache. Rows
 * longer than a tile are walked in passes; few of those, by all threads in the parts that the
 * single reduction has. Bits depend on the program and the shape, never on tiles or threads.
 * Buffers are on the stacks of tasks. To add a kind of step: its function here or in fused_step.c.
 */
#include "fused_tile.h"

#include "fused_columns.h"
#include "fused_producer.h"
#include "fused_turn.h"
#include "stream.h"
#include "threads.h"
#include "tiles.h"

#include <stddef.h>
#include <string.h>

/* Elements of a tile where operands come from memory. */
enum { FAR_TILE = 512 };
/* The first tile of a task is not asked for ahead, so tasks on far memory have many. */
enum { FAR_TASK = 1 << 18 };
/* Operands of that size come from beyond the second cache. */
enum { FETCH_BYTES = 1 << 20 };
enum { SMALL_FULL = FLEX_FUSED_CACHE, SMALL_ROWS = 4 << 10, MAX_PARTS = 64 };

/* ---- one tile -------------------------------------------------------------------------------- */

static char *moved(const flex_fused_job *job, uint32_t operand, uint64_t elements)
{
    return job->data[operand] + elements * job->f->size[operand];
}

static void move(flex_fused_tile *t, const flex_fused_place *p)
{
    t->ptr[p->value] = moved(t->job, p->slot, p->by_row ? (uint64_t)t->row : t->at);
}

/* Points what lies in operands at the tile. */
static void place_operands(flex_fused_tile *t)
{
    const flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    for (uint32_t k = 0; k < f->group_end[FLEX_FUSED_IN_OPERANDS]; k++) {
        move(t, &f->places[k]);
    }
    for (uint32_t k = 0; k < job->n_direct; k++) {
        move(t, &job->direct_places[k]);
    }
    if (f->product != NULL) {
        t->ptr[f->made] = t->made + (t->at - t->made_at) * f->size[flex_fused_extra(f)];
    }
}

static int run_steps(flex_fused_tile *t)
{
    const flex_fused *f = t->job->f;
    const flex_fused_step *end = f->walk + f->n_walk;
    for (const flex_fused_step *s = f->walk; s < end; s++) {
        if (!s->exec(s, t)) {
            return 0;
        }
    }
    return 1;
}

static void fetch(const flex_fused_tile *t, const flex_fused_place *p, uint64_t from, uint64_t n)
{
    if (!p->by_row) {
        flex_fetch(moved(t->job, p->slot, t->next + from), n * t->job->f->size[p->slot]);
    }
}

/* Asks for elements from .. from + n - 1 of the tile after this one. */
static void fetch_ahead(const flex_fused_tile *t, uint64_t from, uint64_t n)
{
    const flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    for (uint32_t k = 0; k < f->group_end[FLEX_FUSED_IN_OPERANDS]; k++) {
        fetch(t, &f->places[k], from, n);
    }
    for (uint32_t k = 0; k < job->n_direct; k++) {
        fetch(t, &job->direct_places[k], from, n);
    }
}

/* The same, and memory works on the next tile while this one is computed, a piece per step. */
static int run_steps_fetching(flex_fused_tile *t)
{
    const flex_fused *f = t->job->f;
    const uint64_t n_steps = f->n_walk;
    const uint64_t piece = (t->n + n_steps - 1) / n_steps;
    const flex_fused_step *s = f->walk;
    for (uint64_t k = 0; k < n_steps; k++) {
        uint64_t from = k * piece;
        if (from < t->n) {
            fetch_ahead(t, from, t->n - from < piece ? t->n - from : piece);
        }
        if (!s[k].exec(&s[k], t)) {
            return 0;
        }
    }
    return 1;
}

/* Where the values of a task lie that are not in operands. `rows` NULL: those stay. */
static void place_buffers(flex_fused_tile *t, char *full, char *rows)
{
    const flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    const flex_fused_place *p = f->places + f->group_end[FLEX_FUSED_IN_OPERANDS];
    const flex_fused_place *ones = f->places + f->group_end[FLEX_FUSED_IN_ONES];
    const flex_fused_place *tiles = f->places + f->group_end[FLEX_FUSED_IN_TILES];
    const flex_fused_place *end = f->places + f->group_end[FLEX_FUSED_IN_ROWS];
    const flex_fused_place *inner = f->places + f->group_end[FLEX_FUSED_IN_STRANDS];
    const uint64_t bytes = job->tile * f->slot_size;
    t->full = full;
    for (; p < ones; p++) {
        t->ptr[p->value] = job->ones[p->value];
    }
    for (; p < tiles; p++) {
        t->ptr[p->value] = full + p->slot * bytes;
    }
    for (; p < end && rows != NULL; p++) {
        t->ptr[p->value] = rows + p->slot * (uint64_t)(FLEX_FUSED_ROWS * 8);
    }
    for (p = end; p < inner && job->by_step; p++) {
        t->ptr[p->value] = full + p->slot * bytes;
    }
}

void flex_fused_start_tile(flex_fused_tile *t, flex_fused_job *job, char *full, char *rows)
{
    t->job = job;
    t->accs = NULL;
    t->panels = NULL;
    t->length = job->length;
    if (job->f->product != NULL) {
        t->made = job->data[flex_fused_extra(job->f)];
        t->made_at = 0;
    }
    place_buffers(t, full, rows);
}

int flex_fused_run_tile(flex_fused_tile *t, uint64_t at, uint64_t n)
{
    flex_fused_job *job = t->job;
    t->at = at;
    t->n = n;
    if (job->length > 0) {
        t->row = (int64_t)(at / job->length);
        t->n_rows = n / job->length;
    }
    place_operands(t);
    if (!(job->fetch ? run_steps_fetching(t) : run_steps(t))) {
        atomic_store(&job->fault, 1);
        return 0;
    }
    return 1;
}

/* Positions lo .. hi - 1, whole rows where there are rows. 0: an element has no answer. */
static int run_range(flex_fused_tile *t, uint64_t lo, uint64_t hi)
{
    const flex_fused_job *job = t->job;
    for (uint64_t at = lo; at < hi; at = t->next) {
        uint64_t n = hi - at < job->tile ? hi - at : job->tile;
        if (job->length == 0 && job->cut > 0) {
            uint64_t left = job->cut - at % job->cut;
            n = n < left ? n : left;
        }
        t->next = at + n;
        if (!flex_fused_run_tile(t, at, n)) {
            return 0;
        }
    }
    return 1;
}

/* What a task works on: n positions from `at` on, or lines of so many, `step` apart, for which the
 * product lies at `made`, bytes `made_step` apart. */
typedef struct span {
    uint64_t at;
    uint64_t n;
    uint64_t lines;
    uint64_t step;
    char *made; /* NULL: it lies as a whole in its operand, or there is none */
    uint64_t made_step;
} span;

static void run_span(flex_fused_job *job, const span *s, char *full, char *rows)
{
    flex_fused_tile t;
    flex_fused_start_tile(&t, job, full, rows);
    for (uint64_t k = 0; k < s->lines; k++) {
        uint64_t at = s->at + k * s->step;
        if (s->made != NULL) {
            t.made = s->made + k * s->made_step;
            t.made_at = at;
        }
        if (!run_range(&t, at, at + s->n)) {
            return;
        }
    }
    if (job->stream) {
        flex_stream_end();
    }
}

__attribute__((noinline)) static void run_small(flex_fused_job *job, const span *s)
{
    _Alignas(64) char full[SMALL_FULL];
    _Alignas(64) char rows[SMALL_ROWS];
    run_span(job, s, full, rows);
}

__attribute__((noinline)) static void run_large(flex_fused_job *job, const span *s)
{
    _Alignas(64) char full[FLEX_FUSED_BYTES];
    _Alignas(64) char rows[FLEX_FUSED_ROW_SLOTS * FLEX_FUSED_ROWS * 8];
    run_span(job, s, full, rows);
}

static void run_on_stack(flex_fused_job *job, const span *s)
{
    const flex_fused *f = job->f;
    uint64_t bytes = job->tile * f->slot_size * f->n_slots;
    if (bytes <= SMALL_FULL && f->n_row_slots * FLEX_FUSED_ROWS * 8u <= SMALL_ROWS) {
        run_small(job, s);
    } else {
        run_large(job, s);
    }
}

static void run_positions(flex_fused_job *job, uint64_t lo, uint64_t hi)
{
    const span s = {lo, hi - lo, 1, 0, NULL, 0};
    run_on_stack(job, &s);
}

static void range_task(void *ctx, uint32_t task)
{
    flex_fused_job *job = ctx;
    uint64_t lo = task * job->grain;
    uint64_t hi = job->n - lo < job->grain ? job->n : lo + job->grain;
    run_positions(job, lo, hi);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static void run_tiles(flex_fused_job *job)
{
    job->grain = round_up(job->f->grain, job->tile);
    job->grain = flex_even_grain(job->n, job->grain, job->tile);
    if (job->fetch) {
        job->grain = flex_stream_grain(job->n, job->grain, FAR_TASK);
    }
    while ((job->n - 1) / job->grain >= UINT32_MAX) {
        job->grain *= 2;
    }
    if (job->n <= job->grain) {
        run_positions(job, 0, job->n);
        return;
    }
    flex_parallel((uint32_t)((job->n + job->grain - 1) / job->grain), range_task, job);
}

/* ---- long rows ------------------------------------------------------------------------------- */

/* The steps of one pass over part of a row, whose tiles are runs of the reductions. */
static int walk_part(flex_fused_tile *t, uint32_t pass, uint64_t lo, uint64_t hi)
{
    const flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    const flex_fused_step *end = f->steps + f->n_steps;
    for (uint64_t at = lo; at < hi; at += t->n) {
        t->at = at;
        t->n = hi - at < job->tile ? hi - at : job->tile;
        place_operands(t);
        /* Before the last pass nothing is written where an operand may lie. */
        for (uint32_t j = 0; j < f->n_out && pass + 1u < f->n_passes; j++) {
            const flex_fused_value *v = &f->values[f->outs[j].value];
            if ((job->direct >> j & 1) != 0) {
                t->ptr[f->outs[j].value] = t->full + v->slot * job->tile * f->slot_size;
            }
        }
        for (const flex_fused_step *s = f->steps + f->n_ones; s < end; s++) {
            if (s->space == BURN_FUSED_FULL && (s->passes >> pass & 1) != 0 && !s->exec(s, t)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Steps over rows that come before a pass. */
static int row_steps(flex_fused_tile *t, uint32_t level)
{
    const flex_fused *f = t->job->f;
    const flex_fused_step *end = f->steps + f->n_steps;
    for (const flex_fused_step *s = f->steps + f->n_ones; s < end; s++) {
        if (s->space == BURN_FUSED_ROW && s->level == level && !s->exec(s, t)) {
            return 0;
        }
    }
    return 1;
}

static void start_folds(const flex_fused *f, flex_acc *accs)
{
    for (uint32_t k = 0; k < f->n_folds; k++) {
        flex_acc_start(&accs[k], f->folds[k].how.kind, 0.0);
    }
}

static void merge_folds(const flex_fused *f, uint32_t pass, flex_acc *accs, const flex_acc *part)
{
    for (uint32_t k = 0; k < f->n_folds; k++) {
        const flex_fused_fold *fold = &f->folds[k];
        if (fold->level == pass) {
            flex_acc_merge(&fold->how, fold->how.kind, &accs[k], &part[k]);
        }
    }
}

typedef struct pass_job {
    flex_fused_job *job;
    const flex_fused_tile *row; /* with the row's values */
    flex_acc (*parts)[FLEX_FUSED_FOLDS];
    uint64_t first; /* part */
    uint32_t pass;
} pass_job;

static void walk_one_part(const pass_job *p, uint64_t part, flex_fused_tile *t, flex_acc *accs)
{
    const flex_fused_job *job = p->job;
    uint64_t start = (uint64_t)t->row * job->length;
    uint64_t lo = part * FLEX_REDUCE_PART;
    uint64_t hi = job->length - lo < FLEX_REDUCE_PART ? job->length : lo + FLEX_REDUCE_PART;
    start_folds(job->f, accs);
    t->accs = accs;
    if (!walk_part(t, p->pass, start + lo, start + hi)) {
        atomic_store(&p->job->fault, 1);
    }
}

static void part_task(void *ctx, uint32_t task)
{
    const pass_job *p = ctx;
    _Alignas(64) char full[FLEX_FUSED_BYTES];
    flex_fused_tile t = *p->row;
    place_buffers(&t, full, NULL);
    walk_one_part(p, p->first + task, &t, p->parts[task]);
    if (p->job->stream) {
        flex_stream_end();
    }
}

/* One pass over a row; `alone`: on this thread. */
static void run_pass(flex_fused_tile *t, uint32_t pass, flex_acc *accs, int alone)
{
    flex_fused_job *job = t->job;
    flex_acc parts[MAX_PARTS][FLEX_FUSED_FOLDS];
    pass_job p = {job, t, parts, 0, pass};
    uint64_t n_parts = (job->length + FLEX_REDUCE_PART - 1) / FLEX_REDUCE_PART;
    start_folds(job->f, accs);
    for (uint64_t first = 0; first < n_parts; first += MAX_PARTS) {
        uint64_t n = n_parts - first < MAX_PARTS ? n_parts - first : MAX_PARTS;
        p.first = first;
        if (!alone && n > 1) {
            flex_parallel((uint32_t)n, part_task, &p);
        } else {
            for (uint64_t k = 0; k < n; k++) {
                walk_one_part(&p, first + k, t, parts[k]);
            }
        }
        for (uint64_t k = 0; k < n; k++) {
            merge_folds(job->f, pass, accs, parts[k]);
        }
    }
}

static void run_row(flex_fused_tile *t, uint64_t row, int alone)
{
    flex_fused_job *job = t->job;
    const flex_fused *f = job->f;
    t->row = (int64_t)row;
    t->n_rows = 1;
    t->at = row * job->length;
    place_operands(t);
    for (uint32_t level = 0; level < f->n_levels && atomic_load(&job->fault) == 0; level++) {
        flex_acc accs[FLEX_FUSED_FOLDS];
        if (!row_steps(t, level)) {
            atomic_store(&job->fault, 1);
        }
        if (level >= f->n_passes) {
            continue;
        }
        run_pass(t, level, accs, alone);
        for (uint32_t k = 0; k < f->n_folds; k++) {
            const flex_fused_fold *fold = &f->folds[k];
            if (fold->level == level) {
                flex_acc_finish(&fold->how, (int64_t)job->length, &accs[k], t->ptr[fold->out]);
            }
        }
    }
}

static void rows_task(void *ctx, uint32_t task)
{
    _Alignas(64) char full[FLEX_FUSED_BYTES];
    _Alignas(64) char rows[FLEX_FUSED_ROW_SLOTS * FLEX_FUSED_ROWS * 8];
    flex_fused_job *job = ctx;
    flex_fused_tile t;
    uint64_t n_rows = job->n / job->length;
    uint64_t lo = task * job->grain;
    uint64_t hi = n_rows - lo < job->grain ? n_rows : lo + job->grain;
    flex_fused_start_tile(&t, job, full, rows);
    for (uint64_t row = lo; row < hi; row++) {
        run_row(&t, row, job->alone);
    }
    if (job->stream) {
        flex_stream_end();
    }
}

/* Rows longer than a tile. Many are shared out; of few, the parts are. */
static void run_long_rows(flex_fused_job *job)
{
    uint64_t n_rows = job->n / job->length;
    job->by_step = 1;
    job->alone = n_rows >= 2 * (uint64_t)flex_thread_count() || job->length <= FLEX_REDUCE_PART;
    if (!job->alone) {
        job->grain = n_rows;
        rows_task(job, 0);
        return;
    }
    job->grain = job->length < job->f->grain ? job->f->grain / job->length : 1;
    while ((n_rows - 1) / job->grain >= UINT32_MAX) {
        job->grain *= 2;
    }
    flex_parallel((uint32_t)((n_rows + job->grain - 1) / job->grain), rows_task, job);
}

/* ---- a launch -------------------------------------------------------------------------------- */

/* Steps over values that are the same for all positions. */
static void run_ones(flex_fused_job *job, char (*room)[16])
{
    const flex_fused *f = job->f;
    const flex_fused_place *p = f->places + f->group_end[FLEX_FUSED_IN_OPERANDS];
    const flex_fused_place *made = f->places + f->group_end[FLEX_FUSED_IN_SCALARS];
    const flex_fused_place *end = f->places + f->group_end[FLEX_FUSED_IN_ONES];
    for (; p < made; p++) {
        job->ones[p->value] = job->data[p->slot];
    }
    for (; p < end; p++) {
        job->ones[p->value] = room[p->slot];
    }
    for (uint32_t s = 0; s < f->n_ones; s++) {
        const flex_fused_step *step = &f->steps[s];
        const void *in[3] = {job->ones[step->in[0]], NULL, NULL};
        (void)step->loop(step, job->ones[step->out], in, 1, 0);
    }
}

/*
 * A result is made where it belongs unless its memory is that of an operand which a later step
 * reads, or it goes past the caches.
 */
static int is_direct(const flex_fused_job *job, uint32_t j)
{
    const flex_fused *f = job->f;
    const flex_fused_out *o = &f->outs[j];
    if (o->def == FLEX_FUSED_STEPS || job->stream) {
        return 0;
    }
    const char *out = job->data[f->n_in + j];
    for (uint32_t i = 0; i < f->n_in; i++) {
        if (job->data[i] == out && f->last_use[i] + o->apart > o->def) {
            return 0;
        }
    }
    const uint32_t extra = flex_fused_extra(f);
    return f->product == NULL || job->data[extra] != out ||
           f->last_use[extra] + o->apart <= o->def;
}

static void find_direct(flex_fused_job *job)
{
    const flex_fused *f = job->f;
    for (uint32_t j = 0; j < f->n_out; j++) {
        if (is_direct(job, j)) {
            flex_fused_place *p = &job->direct_places[job->n_direct++];
            p->value = f->outs[j].value;
            p->slot = (uint16_t)(f->n_in + j);
            p->by_row = 0;
            job->direct |= UINT64_C(1) << j;
        }
    }
}

/* Large results go past the caches, unless they overwrite an operand, whose lines are there. */
static int wants_stream(const flex_fused_job *job)
{
    const flex_fused *f = job->f;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->n_in + (uint32_t)f->n_out; i++) {
        const burn_operand *x = job->operands[i];
        bytes += x->kind != BURN_IMMEDIATE ? (uint64_t)flex_numel(x) * f->size[i] : 0;
    }
    if (f->product != NULL || !flex_stream_pays(bytes)) {
        return 0;
    }
    for (uint32_t i = 0; i < f->n_in; i++) {
        for (uint32_t j = 0; j < f->n_out; j++) {
            if (job->data[i] == job->data[f->n_in + j]) {
                return 0;
            }
        }
    }
    return 1;
}

/* Rows fit a tile of at most one run of a reduction. Returns whether they do. */
static int choose_tile(flex_fused_job *job)
{
    const flex_fused *f = job->f;
    uint64_t tile = job->fetch && f->tile > FAR_TILE ? FAR_TILE : f->tile;
    job->tile = tile;
    if (job->length == 0) {
        return 1;
    }
    if (!f->has_lines && (f->n_folds > 0 ? job->length > FLEX_FUSED_TILE : job->length > tile)) {
        job->tile = f->n_folds > 0 ? FLEX_FUSED_TILE : tile;
        return 0;
    }
    uint64_t rows = tile / job->length;
    rows = rows < 1 ? 1 : rows;
    rows = rows > FLEX_FUSED_ROWS ? FLEX_FUSED_ROWS : rows;
    job->tile = rows * job->length;
    return 1;
}

/* The sizes of the launch. Returns 0 when the program cannot run on them. */
static int measure(flex_fused_job *job, const burn_call *call)
{
    const flex_fused *f = job->f;
    for (uint32_t i = 0; i < f->n_in + (uint32_t)f->n_out; i++) {
        const burn_operand *x = flex_in(call, i);
        job->operands[i] = x;
        job->data[i] = x->data;
    }
    job->n = (uint64_t)flex_numel(job->operands[f->full]);
    if (f->cut != BURN_FUSED_NONE) {
        const burn_operand *x = job->operands[f->cut];
        int64_t run = x->rank > 0 ? x->dims[x->rank - 1] : 0;
        job->cut = run >= FLEX_FUSED_LEAST_TILE / 4 ? (uint64_t)run : 0;
    }
    if (f->row_input != BURN_FUSED_NONE) {
        const burn_operand *x = job->operands[f->row_input];
        int64_t length = flex_read_i64(x->data, x->dtype);
        if (length <= 0 || job->n % (uint64_t)length != 0) {
            return 0;
        }
        job->length = (uint64_t)length;
    }
    return 1;
}

/* ---- products -------------------------------------------------------------------------------- */

/*
 * The product lies in an output's memory: its own, or that of another result, which is read and
 * written position by position. Else in the workspace, behind what the product needs itself, or
 * nowhere as a whole.
 */
static char *product_place(const flex_fused *f, const burn_call *call)
{
    const uint32_t extra = flex_fused_extra(f);
    char *place = NULL;
    if (f->passes_on) {
        return NULL;
    }
    for (uint32_t j = 0; j < f->n_out && !f->scratch; j++) {
        const flex_fused_value *v = &f->values[f->outs[j].value];
        if (v->in_place && v->slot == extra) {
            return flex_out(call, j)->data;
        }
        int fits = v->space == BURN_FUSED_FULL && f->size[f->n_in + j] == f->size[extra];
        if (place == NULL && fits) {
            place = flex_out(call, j)->data;
        }
    }
    return f->scratch ? (char *)call->workspace->data + f->product_bytes : place;
}

/* A block of the product is done: the rest of the program for its positions. */
static void finish_block(void *user, const flex_block *b)
{
    flex_fused_job *job = user;
    span s = {(uint64_t)b->at, (uint64_t)b->cols, (uint64_t)b->rows, (uint64_t)b->step,
              (char *)b->c, (uint64_t)b->ldc * sizeof(float)};
    if (b->cols == b->step && b->cols == b->ldc) {
        s.n *= s.lines;
        s.lines = 1;
    }
    run_on_stack(job, &s);
}

/* Product and program piece by piece, where that can be; else the product first, as a whole. */
static int32_t run_product(flex_fused_job *job, const flex_producer *p, int whole)
{
    const flex_fused *f = job->f;
    int32_t rc = BURN_E_UNSUPPORTED;
    if (f->hot) {
        uint8_t fetch = job->fetch;
        job->fetch = 0;
        const flex_epilogue finish = {finish_block, job};
        rc = flex_producer_run_hot(p, &finish);
        job->fetch = fetch;
    }
    if (rc != BURN_E_UNSUPPORTED || f->passes_on) {
        return rc;
    }
    rc = f->product->launch(&p->call);
    if (rc == BURN_OK && !whole) {
        run_tiles(job);
    }
    return rc;
}

/* The product as one more operand. */
static int32_t begin_product(flex_fused_job *job, const burn_call *call, flex_producer *p)
{
    const flex_fused *f = job->f;
    const uint32_t extra = flex_fused_extra(f);
    int is_short = f->workspace_bytes > 0 && call->workspace == NULL;
    if (!flex_producer_make(p, call) || is_short) {
        return flex_fail(call->err, BURN_E_INTERNAL, "fused: the call has no workspace");
    }
    burn_operand *z = flex_producer_result(p);
    z->data = product_place(f, call);
    job->operands[extra] = z;
    job->data[extra] = z->data;
    return BURN_OK;
}

/* All that remains when sizes and places are known. */
static int32_t run_all(flex_fused_job *job, const burn_call *call, const flex_producer *p)
{
    const flex_fused *f = job->f;
    int rows_fit = choose_tile(job);
    if (job->tile * f->slot_size * f->n_slots > FLEX_FUSED_BYTES) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: lines of %llu elements",
                         (unsigned long long)job->length);
    }
    if (!rows_fit && f->looks_twice) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED,
                         "fused: var and logsumexp of rows longer than %d", FLEX_FUSED_TILE);
    }
    int in_blocks = job->n_turned > 0 && flex_fused_in_blocks(job, rows_fit);
    if (job->n_turned > 0 && !in_blocks) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED,
                         "fused: a large transposed operand beside %s",
                         job->turn_mixed      ? "one transposed otherwise"
                         : f->product != NULL ? "a product"
                                              : "rows of another length, or columns");
    }
    if (f->n_columns > 0 && !flex_fused_choose_strips(job)) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED,
                         "fused: %llu columns, which are too few, or too many beside rows",
                         (unsigned long long)job->length);
    }
    int32_t rc = f->product != NULL ? run_product(job, p, !rows_fit) : BURN_OK;
    if (rc != BURN_OK) {
        return rc;
    }
    if (f->n_columns > 0) {
        flex_fused_run_columns(job);
    } else if (!rows_fit) {
        run_long_rows(job);
    } else if (in_blocks) {
        flex_fused_run_turned(job);
    } else if (f->product == NULL) {
        run_tiles(job);
    }
    if (atomic_load(&job->fault) != 0) {
        return flex_fail(call->err, BURN_E_DATA, "fused: an element has no answer");
    }
    return BURN_OK;
}

/* One tile, near at hand: nothing is streamed, asked for ahead, shared out or cut. */
static int is_small(const flex_fused_job *job)
{
    const flex_fused *f = job->f;
    return job->n <= f->tile && job->length == 0 && job->cut == 0 && f->product == NULL &&
           (uint64_t)f->tile * f->slot_size * f->n_slots <= SMALL_FULL;
}

__attribute__((noinline)) static int32_t run_one_tile(flex_fused_job *job, const burn_call *call)
{
    _Alignas(64) char full[SMALL_FULL];
    flex_fused_tile t;
    job->tile = job->f->tile;
    flex_fused_start_tile(&t, job, full, NULL);
    t.at = 0;
    t.n = job->n;
    t.next = job->n;
    place_operands(&t);
    if (!run_steps(&t)) {
        return flex_fail(call->err, BURN_E_DATA, "fused: an element has no answer");
    }
    return BURN_OK;
}

int32_t flex_fused_run(const flex_fused *program, const burn_call *call)
{
    flex_fused_job job;
    flex_producer product;
    char room[BURN_MAX_OPERANDS][16];
    memset(&job, 0, offsetof(flex_fused_job, data));
    job.f = program;
    job.program = call->attrs;
    int32_t rc = program->product != NULL ? begin_product(&job, call, &product) : BURN_OK;
    if (rc != BURN_OK) {
        return rc;
    }
    if (!measure(&job, call)) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: rows of no length");
    }
    if (job.n == 0) {
        return program->n_columns == 0
                   ? BURN_OK
                   : flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: columns of no rows");
    }
    if (is_small(&job)) {
        find_direct(&job);
        run_ones(&job, room);
        return run_one_tile(&job, call);
    }
    flex_fused_find_turned(&job, call->attrs);
    job.stream = (uint8_t)wants_stream(&job);
    job.fetch = job.n * program->slot_size >= FETCH_BYTES;
    find_direct(&job);
    run_ones(&job, room);
    return run_all(&job, call, &product);
}
