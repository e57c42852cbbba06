/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_driver.c - the f32 matrix product (gemm.h): picks the way, and owns the blocked one.
 *
 * Blocked: tasks take chunks of columns (or of rows and columns) for all of k, pack FLEX_GEMM_KC
 * rows of B at a time, which then stay in the second cache, and run the tiles; A is read where it
 * lies if its rows are dense, and turned some rows of tiles at a time if not. A's next rows and C
 * are asked for ahead, a few lines at a time, where they do not lie in a second cache; else only
 * where those rows begin: more would cost more than it saves (bench/README.md). Not: the split way,
 * on a matrix unit (gemm_split.c), the direct way, for products whose packing would cost more than
 * it saves (gemm_direct.c), and what all share (gemm_tile.c).
 * Rules: both ways sum k in the same blocks and use kernels with equal bits; a slot of memory is
 * one thread's. To tune: the constants below. To add a way: its own file behind gemm_parts.h.
 */
#include "gemm_parts.h"
#include "nn.h"
#include "threads.h"

#include <stdatomic.h>
#include <string.h>

/*
 * What one task packs of B at a time: most columns, most floats. Half a megabyte: of a whole one
 * the second cache may lose a part to A and C, which go by, as its pages happen to lie.
 */
#define CHUNK_COLUMNS 512
#define CHUNK_FLOATS (256 * FLEX_GEMM_KC)
/*
 * Floats between copied rows of A beyond their length: rows a power of two apart would share few
 * sets of the first cache.
 */
#define ROW_GAP 16
/* Rows of A that are turned at a time: whole rows of tiles, and whole lines of what is read. */
#define TURNED_ROWS 48

/* Bytes of a product's matrices from which on its tiles ask for A and C. */
#define ASK_BYTES (INT64_C(8) << 20)

/* Rows whose multiply-adds take as long as packing B does. */
#define PACK_ROWS 24

/* How a product is cut: tasks are columns by rows, each for all of k. */
typedef struct plan {
    const flex_gemm *g;
    const flex_gemm_kernels *kernels;
    int64_t task_columns;
    int64_t task_rows;
    int asks;
    int64_t slot_floats; /* a panel of A and one of B, then a strip of C */
    int64_t n_chunks;
    int64_t n_tasks;
    float *memory;
    atomic_llong next;
} plan;

/* A panel of A takes so much of a slot, so that B's begin at a line. */
static int64_t panel_floats(int64_t kc)
{
    return flex_round_up(TURNED_ROWS * (kc + ROW_GAP), 16);
}

/* Grows with n and k, so that memory for a product serves every smaller one. */
static int64_t slot_floats(const flex_gemm *g)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t columns = flex_min(CHUNK_COLUMNS, flex_round_up(g->n > 0 ? g->n : 1, kernels->nr));
    int64_t kc = flex_min(g->k > 0 ? g->k : 1, FLEX_GEMM_KC);
    int64_t floats = flex_min(CHUNK_FLOATS, columns * kc);
    return flex_round_up(floats + panel_floats(kc) + FLEX_NR_MAX, 16);
}

/* A strip of C: one row of tiles. Rows of a multiple of 1 KiB would share sets of the cache. */
static int64_t strip_step(int64_t columns)
{
    return columns % 256 == 0 ? columns + 16 : columns;
}

static int64_t strip_floats(const flex_gemm *g)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t columns = flex_min(CHUNK_COLUMNS, flex_round_up(g->n > 0 ? g->n : 1, kernels->nr));
    return flex_round_up(kernels->mr * (columns + 16), 16);
}

/*
 * Into how many parts rows are cut: so that what the thread with the most tasks does, in rows, is
 * least. Each task packs its columns of B.
 */
static int64_t row_parts(int64_t m, int64_t n_chunks, int64_t threads)
{
    int64_t best = 1;
    int64_t least = INT64_MAX;
    for (int64_t parts = 1; parts <= flex_min(threads, m); parts++) {
        int64_t rounds = (n_chunks * parts + threads - 1) / threads;
        int64_t rows = rounds * ((m + parts - 1) / parts + PACK_ROWS);
        if (rows < least) {
            best = parts;
            least = rows;
        }
    }
    return best;
}

static void make_plan(plan *p, const flex_gemm *g, uint32_t threads)
{
    p->g = g;
    p->kernels = flex_gemm_table();
    int64_t mr = p->kernels->mr;
    int64_t nr = p->kernels->nr;
    int64_t m = g->m > 0 ? g->m : 1;
    int64_t n = g->n > 0 ? g->n : 1;
    int64_t wanted = threads > 1 ? (int64_t)threads : 1;
    /* Chunks of equal width, as many as let all threads end together. */
    int64_t most = flex_min(CHUNK_COLUMNS, CHUNK_FLOATS / flex_gemm_block_length(g->k) / nr * nr);
    int64_t needed = (n + most - 1) / most;
    int64_t fit = n / FLEX_GEMM_LEAST_COLUMNS;
    p->n_chunks = flex_min(flex_round_up(needed, wanted), fit > needed ? fit : needed);
    p->task_columns = flex_round_up((n + p->n_chunks - 1) / p->n_chunks, nr);
    p->n_chunks = (n + p->task_columns - 1) / p->task_columns;
    int64_t parts = row_parts(m, p->n_chunks, wanted);
    p->task_rows = flex_round_up((m + parts - 1) / parts, mr);
    p->n_tasks = p->n_chunks * ((m + p->task_rows - 1) / p->task_rows);
    double floats = (double)m * (double)n + ((double)m + (double)n) * (double)g->k;
    p->asks = floats * sizeof(float) >= ASK_BYTES;
    p->slot_floats = slot_floats(g) + strip_floats(g);
}

uint64_t flex_gemm_bytes(const flex_gemm *g, uint32_t threads)
{
    if (flex_gemm_is_split(g)) {
        return flex_gemm_split_bytes(g, threads);
    }
    uint64_t apart = flex_gemm_direct_bytes(g, threads);
    if (flex_gemm_is_direct(g)) {
        return apart;
    }
    int64_t floats = slot_floats(g) + strip_floats(g);
    uint64_t slots = (uint64_t)(floats * (int64_t)threads) * sizeof(float);
    return slots > apart ? slots : apart;
}

/* A block of a task: columns j0 .. j0+n of rows i0 .. i1, for kc steps from k0. */
typedef struct block {
    int64_t i0;
    int64_t i1;
    int64_t j0;
    int64_t n;
    int64_t k0;
    int64_t kc;
} block;

/* Rows i .. i+rows of the block, ROW_GAP apart, where A is in segments. */
static void copy_rows(const flex_gemm *g, const block *w, int64_t i, int64_t rows, float *dst)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = g->a + (i + r) * g->ars;
        float *to = dst + r * (w->kc + ROW_GAP);
        for (int64_t k = w->k0; k < w->k0 + w->kc;) {
            int64_t n = flex_min(w->k0 + w->kc - k, g->aseg - k % g->aseg);
            memcpy(to, row + k / g->aseg * g->aseg_stride + k % g->aseg,
                   (size_t)n * sizeof(float));
            to += n;
            k += n;
        }
    }
}

/* Where B's panels begin in a slot. */
static float *slot_b(const block *w, float *slot)
{
    return slot + panel_floats(w->kc);
}

/* Rows i .. i+rows of the block as tiles read them. */
static void lay_a(const flex_gemm *g, const block *w, int64_t i, int64_t rows, float *slot,
                  flex_tile *t)
{
    t->a = slot;
    t->ars = w->kc + ROW_GAP;
    if (g->acs != 1) {
        int64_t row = (i - w->i0) % TURNED_ROWS;
        if (row == 0) {
            flex_gemm_turn_a(g, i, flex_min(TURNED_ROWS, w->i1 - i), w->k0, w->kc, slot, t->ars);
        }
        t->a = slot + row * t->ars;
        return;
    }
    int64_t segment = g->aseg > 0 ? w->k0 / g->aseg : 0;
    if (g->aseg == 0 || w->k0 + w->kc <= (segment + 1) * g->aseg) {
        t->a = g->a + i * g->ars + segment * (g->aseg_stride - g->aseg) + w->k0;
        t->ars = g->ars;
        return;
    }
    copy_rows(g, w, i, rows, slot);
}

/* The next rows of A, which lie in as many pages; NULL where they are none, or do not lie so. */
static const float *next_rows(const plan *p, const block *w, int64_t i, const flex_tile *t,
                              const float *slot)
{
    int64_t mr = p->kernels->mr;
    return p->g->acs == 1 && t->a != slot && i + 2 * mr <= w->i1 ? t->a + mr * t->ars : NULL;
}

/* Asks for the beginnings of the next rows; the CPU foresees the rest. */
static void ask_for_rows(const plan *p, const block *w, const flex_tile *t, const float *next)
{
    enum { LINES = 4 };
    if (next == NULL || w->kc < LINES * FLEX_ASK_LINE) {
        return;
    }
    for (int64_t r = 0; r < (int64_t)p->kernels->mr; r++) {
        for (int64_t x = 0; x < LINES; x++) {
            __builtin_prefetch(next + r * t->ars + x * FLEX_ASK_LINE, 0, 2);
        }
    }
}

/* What the full tile at column j asks for: of each row what those before it have not. */
static const float *share_of_next(const plan *p, const block *w, int64_t j, const float *next)
{
    int64_t share = w->kc / FLEX_ASK_STEPS * FLEX_ASK_LINE;
    int64_t at = j / (int64_t)p->kernels->nr * share;
    return next != NULL && at + share <= w->kc ? next + at : NULL;
}

static flex_tile_fn pick_tile(const plan *p, int64_t rows, int64_t n)
{
    const flex_gemm_kernels *kernels = p->kernels;
    if (rows == (int64_t)kernels->mr && n == (int64_t)kernels->nr) {
        return p->asks ? kernels->asking_b : kernels->packed_b;
    }
    return flex_gemm_tile_fn(kernels, 0, rows, n);
}

/* All tiles of rows i .. i+rows (at most mr) of the block; `strip`: where they go, if not to C. */
static void run_rows(const plan *p, const block *w, int64_t i, int64_t rows, float *slot,
                     const flex_gemm *strip)
{
    const flex_gemm_kernels *kernels = p->kernels;
    int64_t nr = kernels->nr;
    const float *packed_b = slot_b(w, slot);
    flex_tile t = {.kc = w->kc, .ldb = nr};
    lay_a(p->g, w, i, rows, slot, &t);
    const float *next = next_rows(p, w, i, &t, slot);
    for (int64_t j = 0; j < w->n; j += nr) {
        int64_t n = flex_min(nr, w->n - j);
        flex_tile_fn fn = pick_tile(p, rows, n);
        t.b = packed_b + j * w->kc;
        if (p->asks) {
            t.next = share_of_next(p, w, j, next);
        } else if (j + nr >= w->n) {
            ask_for_rows(p, w, &t, next);
        }
        if (strip != NULL) {
            flex_gemm_run_tile(strip, kernels, &t, 0, rows, j, n, w->k0, fn);
        } else {
            flex_gemm_run_tile(p->g, kernels, &t, i, rows, w->j0 + j, n, w->k0, fn);
        }
    }
}

static void pack_b(const plan *p, int64_t j0, int64_t n, int64_t k0, int64_t kc, float *dst)
{
    const flex_gemm *g = p->g;
    int64_t nr = p->kernels->nr;
    if (g->pack_b == NULL && g->bcs == 1) {
        p->kernels->pack_panels(dst, g->b + k0 * g->brs + j0, g->brs, n, kc);
        return;
    }
    for (int64_t j = 0; j < n; j += nr) {
        flex_gemm_pack_b(g, p->kernels, j0 + j, flex_min(nr, n - j), k0, kc, dst + j * kc,
                         nr);
    }
}

/* All of k in one block, and C is not kept: strips are handed on from the slot. */
static int goes_in_strips(const flex_gemm *g)
{
    return g->passes && g->epilogue != NULL && flex_gemm_block_length(g->k) >= g->k;
}

static void run_strips(const plan *p, const block *w, float *slot)
{
    const flex_gemm *g = p->g;
    int64_t mr = p->kernels->mr;
    flex_gemm strip = *g;
    strip.c = slot + p->slot_floats - strip_floats(g);
    strip.crs = strip_step(w->n);
    strip.cseg = 0;
    strip.n = w->n;
    strip.init = g->mode == FLEX_INIT_COL ? g->init + w->j0 : g->init;
    for (int64_t i = w->i0; i < w->i1; i += mr) {
        int64_t rows = flex_min(mr, w->i1 - i);
        if (g->mode == FLEX_INIT_ROW) {
            strip.init = g->init + i;
        }
        run_rows(p, w, i, rows, slot, &strip);
        flex_gemm_finish_at(g, strip.c, strip.crs, i, rows, w->j0, w->n);
    }
}

static void blocked_task(const plan *p, int64_t task, float *slot)
{
    const flex_gemm *g = p->g;
    int64_t mr = p->kernels->mr;
    block w = {.j0 = (task % p->n_chunks) * p->task_columns};
    w.n = flex_min(p->task_columns, g->n - w.j0);
    w.i0 = (task / p->n_chunks) * p->task_rows;
    w.i1 = flex_min(w.i0 + p->task_rows, g->m);
    int64_t length = flex_gemm_block_length(g->k);
    do {
        int64_t next_k = w.k0 + length;
        w.kc = flex_min(length, g->k - w.k0);
        pack_b(p, w.j0, w.n, w.k0, w.kc, slot_b(&w, slot));
        if (goes_in_strips(g)) {
            run_strips(p, &w, slot);
            return;
        }
        for (int64_t i = w.i0; i < w.i1; i += mr) {
            int64_t rows = flex_min(mr, w.i1 - i);
            run_rows(p, &w, i, rows, slot, NULL);
            if (next_k >= g->k) {
                flex_gemm_finish(g, i, rows, w.j0, w.n);
            }
        }
        w.k0 = next_k;
    } while (w.k0 < g->k);
}

/* A slot owns one piece of the memory and takes tasks until none is left. */
static void slot_task(void *ctx, uint32_t slot)
{
    plan *p = ctx;
    float *memory = p->memory + (int64_t)slot * p->slot_floats;
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (task >= p->n_tasks) {
            return;
        }
        blocked_task(p, task, memory);
    }
}

static void run_plan(plan *p, void *memory, uint32_t threads)
{
    p->memory = memory;
    atomic_init(&p->next, 0);
    if (threads > 1) {
        flex_parallel(threads, slot_task, p);
    } else {
        slot_task(p, 0);
    }
}

void flex_gemm_parallel(const flex_gemm *g, void *memory, uint32_t threads)
{
    if (g->m <= 0 || g->n <= 0) {
        return;
    }
    if (flex_gemm_is_split(g)) {
        flex_gemm_split(g, memory, threads);
        return;
    }
    if (flex_gemm_is_direct(g)) {
        flex_gemm_direct(g, memory, threads);
        return;
    }
    plan p;
    make_plan(&p, g, threads);
    run_plan(&p, memory, threads);
}

int flex_gemm_keeps_c(const flex_gemm *g)
{
    if (flex_gemm_is_split(g)) {
        return flex_gemm_split_keeps_c(g);
    }
    return flex_gemm_is_direct(g) || flex_gemm_block_length(g->k) < g->k;
}

int64_t flex_gemm_block_columns(const flex_gemm *g, uint32_t threads)
{
    if (flex_gemm_is_split(g)) {
        return flex_gemm_split_columns(g);
    }
    if (flex_gemm_is_direct(g)) {
        return flex_gemm_direct_columns(g, threads);
    }
    plan p;
    make_plan(&p, g, threads);
    return flex_min(p.task_columns, g->n);
}

void flex_gemm_serial(const flex_gemm *g, void *memory)
{
    flex_gemm_parallel(g, memory, 1);
}
