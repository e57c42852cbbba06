/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_direct.c - the direct way of the f32 matrix product: A is read where it lies, B too when its
 * rows are dense, for products whose packing would cost more than it saves.
 *
 * Owns which products go this way and how they are cut: by columns, by rows, or by blocks of k that
 * are added at the end. Not: the blocked way (gemm_driver.c), tiles and packing (gemm_tile.c).
 * Rules: panels lie on the stack, only blocks of k apart need memory; how a product is cut never
 * changes its bits. To tune: the constants below; DIRECT_WORK is where the blocked way takes over.
 * To add a layout of A or B: a case in direct_block and a loop like direct_rows.
 */
#include "gemm_parts.h"
#include "nn.h"
#include "threads.h"

/* Products up to this many multiply-adds, or with few rows, go the direct way. */
#define DIRECT_WORK (INT64_C(256) * 256 * 256)
/* Floats of C that the direct way finishes at a time. */
#define HOT_FLOATS (INT64_C(1) << 17)
/* Columns of B from which on it pays to lay A's panels along k first. */
#define TURN_COLUMNS 256
/* Rows of a product that is small. */
#define SMALL_ROWS 64
/* Floats of a panel of B that the first cache holds while the rows of A go by. */
#define PANEL_FLOATS 12288
/* Those of the largest one: of two vectors it may be longer. */
#define PANEL_MAX (FLEX_GEMM_KC * FLEX_NR_MAX / 2)
/* Floats of C up to which it pays to sum blocks of k apart. */
#define SPLIT_FLOATS (INT64_C(1) << 14)
/* Work that is worth waking a thread. */
#define PARALLEL_WORK (INT64_C(64) * 64 * 64)

int flex_gemm_is_direct(const flex_gemm *g)
{
    if (g->pack_b != NULL || g->aseg != 0) {
        return 0;
    }
    return g->m <= flex_gemm_table()->mr || g->m * g->n * g->k <= DIRECT_WORK;
}

/* See split_parallel. */
static int splits_k(const flex_gemm *g, uint32_t threads)
{
    /* Blocks but the first: DIRECT_WORK / FLEX_GEMM_KC floats at most (flex_gemm_direct_bytes). */
    return threads > 1 && g->k > FLEX_GEMM_KC && g->k >= 4 * g->m && g->cseg == 0 &&
           g->m * g->n <= SPLIT_FLOATS && g->m * g->n * g->k >= 4 * PARALLEL_WORK;
}

static int64_t blocks_of_k(const flex_gemm *g)
{
    int64_t length = flex_gemm_block_length(g->k);
    return (g->k + length - 1) / length;
}

/* Of k longer than a block, whatever m and n: memory for a product serves every smaller one. */
uint64_t flex_gemm_direct_bytes(const flex_gemm *g, uint32_t threads)
{
    if (threads == 1 || g->k <= FLEX_GEMM_KC || g->pack_b != NULL || g->aseg != 0) {
        return 0;
    }
    return flex_float_bytes(DIRECT_WORK / FLEX_GEMM_KC);
}

/* B's columns j .. j+n as the tile reads them: where they lie if they fit, else packed. */
static void direct_b(const flex_gemm *g, const flex_gemm_kernels *kernels, flex_tile *t, int64_t j,
                     int64_t n, int64_t k0, float *panel)
{
    if (g->bcs == 1 && flex_gemm_fits(kernels, n)) {
        t->b = g->b + k0 * g->brs + j;
        t->ldb = g->brs;
        return;
    }
    t->b = panel;
    t->ldb = flex_gemm_vectors(kernels, n) * (int64_t)kernels->lanes;
    flex_gemm_pack_b(g, kernels, j, n, k0, t->kc, panel, t->ldb);
}

static int has_rows_along_k(const flex_gemm *g)
{
    return g->acs == 1 || g->k == 1;
}

/*
 * Rows of the tiles of m rows: equal where they are few, since a tile of few rows has too few sums
 * to keep the multiply-adds busy. In 32 bits: a wide division costs a small product dear.
 */
static int64_t tile_height(int64_t m, uint32_t mr)
{
    if (m <= (int64_t)mr) {
        return m;
    }
    if (m > 8 * (int64_t)mr) {
        return mr;
    }
    uint32_t rows = (uint32_t)m;
    uint32_t parts = (rows + mr - 1) / mr;
    return (rows + parts - 1) / parts;
}

/* Columns of panels of B of kc steps. In 32 bits, as above. */
static int64_t panel_columns(const flex_gemm_kernels *kernels, int64_t kc)
{
    uint32_t lanes = kernels->lanes;
    if (kc * (int64_t)kernels->nr <= PANEL_FLOATS) {
        return kernels->nr;
    }
    uint32_t vectors = PANEL_FLOATS / ((uint32_t)kc * lanes);
    return (int64_t)lanes * (vectors > 2 ? vectors : 2);
}

/* A's rows lie along k, or its columns along the rows: each panel of B serves all rows. */
static void direct_rows(const flex_gemm *g, int64_t j0, int64_t j1, int64_t k0, int64_t kc)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int turned = !has_rows_along_k(g);
    int64_t wide = panel_columns(kernels, kc);
    float panel[PANEL_MAX];
    for (int64_t j = j0; j < j1; j += wide) {
        int64_t n = flex_min(wide, j1 - j);
        int64_t height = tile_height(g->m, kernels->rows[flex_gemm_vectors(kernels, n)]);
        flex_tile t; /* the rest is set below, or not read by these tiles */
        t.kc = kc;
        t.ars = turned ? g->acs : g->ars;
        direct_b(g, kernels, &t, j, n, k0, panel);
        for (int64_t i = 0; i < g->m; i += height) {
            int64_t rows = flex_min(height, g->m - i);
            t.a = g->a + i * g->ars + k0 * g->acs;
            flex_gemm_run_tile(g, kernels, &t, i, rows, j, n, k0,
                               flex_gemm_tile_fn(kernels, turned, rows, n));
        }
    }
}

/*
 * They do not: each panel of A is laid so first. It serves all columns when B is read in place;
 * else each panel of B, which costs more, serves all rows.
 */
static void direct_turned(const flex_gemm *g, int64_t j0, int64_t j1, int64_t k0, int64_t kc)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    float panel[PANEL_MAX];
    float turned[FLEX_MR_MAX * FLEX_GEMM_KC];
    int64_t nr = panel_columns(kernels, kc);
    int64_t mr = kernels->rows[flex_gemm_vectors(kernels, flex_min(nr, j1 - j0))];
    int64_t row_panels = (g->m + mr - 1) / mr;
    int64_t panels = (j1 - j0 + nr - 1) / nr;
    int rows_first = g->bcs == 1;
    int64_t inner = rows_first ? panels : row_panels;
    flex_tile t = {.kc = kc, .a = turned, .ars = kc};
    for (int64_t step = 0; step < panels * row_panels; step++) {
        int64_t i = (rows_first ? step / inner : step % inner) * mr;
        int64_t j = j0 + (rows_first ? step % inner : step / inner) * nr;
        int64_t rows = flex_min(mr, g->m - i);
        int64_t n = flex_min(nr, j1 - j);
        if (!rows_first || step % inner == 0) {
            flex_gemm_turn_a(g, i, rows, k0, kc, turned, kc);
        }
        if (rows_first || step % inner == 0) {
            direct_b(g, kernels, &t, j, n, k0, panel);
        }
        flex_gemm_run_tile(g, kernels, &t, i, rows, j, n, k0,
                           flex_gemm_tile_fn(kernels, 0, rows, n));
    }
}

int flex_gemm_is_small(int64_t m, int64_t n, int64_t k)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    return n >= 1 && n <= (int64_t)kernels->nr && k <= FLEX_GEMM_KC && m <= SMALL_ROWS &&
           flex_gemm_fits(kernels, n) &&
           m * n * k < PARALLEL_WORK + (flex_thread_count() == 1);
}

void flex_gemm_small(const flex_gemm_dense *p)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int v = flex_gemm_vectors(kernels, p->n);
    int64_t height = tile_height(p->m, kernels->rows[v]);
    flex_tile t; /* the rest is not read by these tiles */
    t.kc = p->k;
    t.n = p->n;
    t.ars = p->k;
    t.b = p->b;
    t.ldb = p->n;
    t.ldc = p->n;
    t.mode = FLEX_INIT_ZERO;
    for (int64_t i = 0; i < p->m; i += height) {
        t.a = p->a + i * p->k;
        t.c = p->c + i * p->n;
        flex_gemm_tile_fn(kernels, 0, flex_min(height, p->m - i), p->n)(&t);
    }
}

/* Direct way: columns j0 .. j1 of all rows, so few that C stays in the second cache. */
static void direct_block(const flex_gemm *g, int64_t j0, int64_t j1)
{
    int64_t k0 = 0;
    int64_t length = flex_gemm_block_length(g->k);
    do {
        int64_t kc = flex_min(length, g->k - k0);
        if (has_rows_along_k(g) || (g->ars == 1 && j1 - j0 <= TURN_COLUMNS)) {
            direct_rows(g, j0, j1, k0, kc);
        } else {
            direct_turned(g, j0, j1, k0, kc);
        }
        k0 += length;
    } while (k0 < g->k);
    flex_gemm_finish(g, 0, g->m, j0, j1 - j0);
}

/* Direct way: columns j0 .. j1 of all rows. */
static void direct_columns(const flex_gemm *g, int64_t j0, int64_t j1)
{
    if (g->m * (j1 - j0) <= HOT_FLOATS) {
        direct_block(g, j0, j1);
        return;
    }
    int64_t nr = flex_gemm_table()->nr;
    int64_t step = HOT_FLOATS / g->m / nr * nr;
    step = step < nr ? nr : step;
    for (int64_t j = j0; j < j1; j += step) {
        direct_block(g, j, flex_min(j + step, j1));
    }
}

typedef struct direct_job {
    const flex_gemm *g;
    int64_t chunk;
} direct_job;

static void direct_task(void *ctx, uint32_t task)
{
    const direct_job *job = ctx;
    int64_t j0 = (int64_t)task * job->chunk;
    direct_columns(job->g, j0, flex_min(j0 + job->chunk, job->g->n));
}

/* The same for a range of rows, as a product of its own. */
static void direct_row_task(void *ctx, uint32_t task)
{
    const direct_job *job = ctx;
    flex_gemm part = *job->g;
    int64_t i0 = (int64_t)task * job->chunk;
    part.m = flex_min(job->chunk, part.m - i0);
    part.a += i0 * part.ars;
    part.c += i0 * part.crs;
    part.row0 += i0;
    part.at0 += i0 * part.crs;
    direct_columns(&part, 0, part.n);
}

/*
 * Rows are cut where there are more of them. A gradient of weights then lies in the caches as the
 * update and the next forward product cut the weights.
 */
static int cuts_rows(const flex_gemm *g, int64_t nr)
{
    return g->mode != FLEX_INIT_ROW && (g->m > g->n || g->n <= nr);
}

/*
 * Blocks of k side by side, where B is what is large: each is a product of its own, of which all
 * but the first go to `partial`, and they are added in order. So a thread reads part of the rows of
 * B, the one that it updates as weights: lines that another core holds are dear.
 */
typedef struct split_job {
    const flex_gemm *g;
    float *partial;
    int64_t length;
    int64_t columns; /* of a task */
    int64_t chunks;
} split_job;

static void split_task(void *ctx, uint32_t task)
{
    const split_job *job = ctx;
    flex_gemm part = *job->g;
    int64_t block = (int64_t)task / job->chunks;
    int64_t j0 = (int64_t)task % job->chunks * job->columns;
    int64_t k0 = block * job->length;
    part.a += k0 * part.acs;
    part.b += k0 * part.brs;
    part.k = flex_min(job->length, part.k - k0);
    part.epilogue = NULL;
    if (block > 0) {
        part.c = job->partial + (block - 1) * part.m * part.n;
        part.crs = part.n;
        part.mode = FLEX_INIT_ZERO;
    }
    direct_columns(&part, j0, flex_min(j0 + job->columns, part.n));
}

static void add_partial(const flex_gemm *g, const float *partial)
{
    for (int64_t i = 0; i < g->m; i++) {
        float *c = g->c + i * g->crs;
        const float *from = partial + i * g->n;
        for (int64_t j = 0; j < g->n; j++) {
            c[j] += from[j];
        }
    }
}

static void split_parallel(const flex_gemm *g, float *partial, uint32_t threads)
{
    int64_t nr = flex_gemm_table()->nr;
    int64_t blocks = blocks_of_k(g);
    int64_t chunks = ((int64_t)threads + blocks - 1) / blocks;
    split_job job = {g, partial, flex_gemm_block_length(g->k), 0, 0};
    job.columns = flex_round_up((g->n + chunks - 1) / chunks, nr);
    job.chunks = (g->n + job.columns - 1) / job.columns;
    flex_parallel((uint32_t)(blocks * job.chunks), split_task, &job);
    for (int64_t b = 1; b < blocks; b++) {
        add_partial(g, partial + (b - 1) * g->m * g->n);
    }
    flex_gemm_finish(g, 0, g->m, 0, g->n);
}

/* One thread does all of it. */
static int is_small(const flex_gemm *g, uint32_t threads, int rows)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t work = g->m * g->n * (g->k > 0 ? g->k : 1);
    return threads == 1 || work < PARALLEL_WORK ||
           (rows ? g->m <= (int64_t)kernels->mr : g->n <= (int64_t)kernels->nr);
}

/* Columns of a task, where columns are cut. */
static int64_t direct_chunk(const flex_gemm *g, uint32_t threads)
{
    int64_t step = 2 * (int64_t)flex_gemm_table()->lanes;
    int64_t chunk = flex_round_up((g->n + (int64_t)threads - 1) / (int64_t)threads, step);
    return flex_min(chunk, 64 * step);
}

static void direct_parallel(const flex_gemm *g, uint32_t threads)
{
    int64_t mr = flex_gemm_table()->mr;
    int rows = cuts_rows(g, flex_gemm_table()->nr);
    if (is_small(g, threads, rows)) {
        direct_columns(g, 0, g->n);
        return;
    }
    if (rows) {
        int64_t share = (g->m + (int64_t)threads - 1) / (int64_t)threads;
        direct_job by_rows = {g, flex_round_up(share, mr)};
        uint32_t tasks = (uint32_t)((g->m + by_rows.chunk - 1) / by_rows.chunk);
        flex_parallel(tasks, direct_row_task, &by_rows);
        return;
    }
    direct_job job = {g, direct_chunk(g, threads)};
    flex_parallel((uint32_t)((g->n + job.chunk - 1) / job.chunk), direct_task, &job);
}

void flex_gemm_direct(const flex_gemm *g, void *memory, uint32_t threads)
{
    if (threads == 1) { /* first of all, for small products */
        direct_columns(g, 0, g->n);
    } else if (splits_k(g, threads)) {
        split_parallel(g, memory, threads);
    } else {
        direct_parallel(g, threads);
    }
}

int64_t flex_gemm_direct_columns(const flex_gemm *g, uint32_t threads)
{
    int64_t columns = g->n;
    if (splits_k(g, threads)) {
        return columns;
    }
    int rows = cuts_rows(g, flex_gemm_table()->nr);
    if (!rows && !is_small(g, threads, rows)) {
        columns = direct_chunk(g, threads);
    }
    return flex_min(columns, HOT_FLOATS / (g->m > 0 ? g->m : 1));
}
