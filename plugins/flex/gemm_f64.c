/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_f64.c - the f64 matrix product (gemm_f64.h): how it is cut, packed and shared out.
 *
 * Owns no loop over k (gemm_tile_loops.h). A task is some columns by some rows, for all of k. It
 * packs a block of k of its columns of B, which then stay in the second cache, and goes through its
 * rows, a tile's height at a time: where they lie, if they are dense along k, else laid anew.
 * Operands of small products are read where they lie.
 * Rules: k is cut by k alone, and the sums of its blocks are added in order; so bits depend neither
 * on how a product is cut nor on what is packed. To tune: the constants below.
 */
#include "gemm_f64.h"

#include "gemm_f64_kernel.h"
#include "nn.h"

/* k is summed in blocks of at most this length. */
#define BLOCK_K 256
/* Columns of B that one task packs at a time, at most. */
#define CHUNK_COLUMNS 512
/* Columns that a task has at least, if it can be. */
#define LEAST_COLUMNS 128
/* Elements of B up to which it is read where it lies, and tiles of rows to which any B is. */
#define IN_PLACE (INT64_C(128) * 128)
#define IN_PLACE_TILES 2
/* Panels of B from which on it pays to lay A's columns anew. */
#define COPY_PANELS 3
/* Multiply-adds that are worth waking a thread. */
#define PARALLEL_WORK (INT64_C(64) * 64 * 64)

typedef struct plan {
    const flex_gemm_f64 *p;
    const flex_f64_kernels *kernels;
    int64_t task_columns;
    int64_t task_rows;
    int64_t n_chunks;
    int64_t n_tasks;
    int packs_b;
    char *memory;
    uint64_t slot_bytes;
} plan;

/* Columns j0 .. j0+n of rows i0 .. i1, for kc steps from k0, with the slot's memory. */
typedef struct block {
    int64_t i0;
    int64_t i1;
    int64_t j0;
    int64_t n;
    int64_t k0;
    int64_t kc;
    double *a; /* room for a strip of A */
    double *b; /* panels of B, or of its last columns only */
} block;

static const flex_f64_kernels *kernels_in_use(void)
{
#if defined(__x86_64__)
    if (flex_isa == FLEX_ISA_AVX512) {
        return &flex_f64_kernels_avx512;
    }
    if (flex_isa == FLEX_ISA_AVX2) {
        return &flex_f64_kernels_avx2;
    }
#endif
    return &flex_f64_kernels_baseline;
}

/* Blocks of equal length, as few as there can be. */
static int64_t block_length(int64_t k)
{
    int64_t blocks = (k + BLOCK_K - 1) / BLOCK_K;
    return blocks > 1 ? flex_round_up((k + blocks - 1) / blocks, 8) : k;
}

static int64_t strip_doubles(const flex_f64_kernels *kernels, int64_t k)
{
    return flex_round_up(kernels->rows[1] * flex_min(k, BLOCK_K), 8);
}

static uint64_t slot_bytes(int64_t n, int64_t k)
{
    const flex_f64_kernels *kernels = kernels_in_use();
    int64_t columns = flex_min(flex_round_up(CHUNK_COLUMNS, kernels->nv * kernels->lanes),
                               flex_round_up(n, kernels->lanes));
    int64_t doubles = columns * flex_min(k, BLOCK_K) + strip_doubles(kernels, k);
    return (uint64_t)flex_round_up(doubles, 8) * sizeof(double);
}

uint64_t flex_gemm_f64_bytes(int64_t n, int64_t k, uint32_t threads)
{
    return slot_bytes(n, k) * threads;
}

static void make_plan(plan *w, const flex_gemm_f64 *p, void *memory, uint32_t threads)
{
    const flex_gemm *g = &p->g;
    const flex_f64_kernels *kernels = kernels_in_use();
    int64_t wanted = (int64_t)threads;
    w->p = p;
    w->kernels = kernels;
    w->memory = memory;
    w->slot_bytes = slot_bytes(g->n, g->k);
    w->packs_b = g->bcs != 1 || (g->m > IN_PLACE_TILES * kernels->mr && g->n * g->k > IN_PLACE);
    /* Chunks of equal width, as many as let all threads end together. */
    int64_t chunks = flex_round_up((g->n + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS, wanted);
    chunks = flex_min(chunks, (g->n + LEAST_COLUMNS - 1) / LEAST_COLUMNS);
    w->task_columns = flex_round_up((g->n + chunks - 1) / chunks, kernels->nv * kernels->lanes);
    w->n_chunks = (g->n + w->task_columns - 1) / w->task_columns;
    int64_t parts = (wanted + w->n_chunks - 1) / w->n_chunks;
    w->task_rows = flex_round_up((g->m + parts - 1) / parts, kernels->mr);
    w->n_tasks = w->n_chunks * ((g->m + w->task_rows - 1) / w->task_rows);
}

/* Rows i .. i+rows of the block as tiles read them: where they lie, or copied. */
static int lay_rows(const plan *w, const block *u, int64_t i, int64_t rows, flex_f64_tile *t)
{
    const flex_gemm *g = &w->p->g;
    const double *a = w->p->a + i * g->ars + u->k0 * g->acs;
    if (g->acs == 1) {
        t->a = a;
        t->ars = g->ars;
        return 0;
    }
    if (g->ars == 1 && u->n <= (COPY_PANELS - 1) * w->kernels->nv * w->kernels->lanes) {
        t->a = a;
        t->ars = g->acs;
        return 1;
    }
    for (int64_t k = 0; k < u->kc; k++) {
        for (int64_t r = 0; r < rows; r++) {
            u->a[k * rows + r] = a[r * g->ars + k * g->acs];
        }
    }
    t->a = u->a;
    t->ars = rows;
    return 1;
}

/* Does a tile touch just n columns? Else B must be as wide as its vector. */
static int fits(const flex_f64_kernels *kernels, int64_t n)
{
    return n >= kernels->lanes || kernels->part[1][1] != NULL;
}

static flex_f64_tile_fn tile_fn(const flex_f64_kernels *kernels, int turned, int64_t rows,
                                int64_t n)
{
    int64_t vectors = (n + kernels->lanes - 1) / kernels->lanes;
    if (n % kernels->lanes != 0 && kernels->part[vectors][rows] != NULL) {
        return turned ? kernels->part_turned[vectors][rows] : kernels->part[vectors][rows];
    }
    return turned ? kernels->turned[vectors][rows] : kernels->tile[vectors][rows];
}

/* The tile at row i, column j of C; one that does not fit goes through scratch. */
static void run_tile(const plan *w, flex_f64_tile_fn fn, flex_f64_tile *t, int64_t i, int64_t rows,
                     int64_t j, int64_t n, uint32_t mode)
{
    const flex_gemm_f64 *p = w->p;
    double scratch[FLEX_F64_TILE_MAX];
    double *c = p->c + i * p->g.crs + j;
    t->n = n;
    if (fits(w->kernels, n)) {
        t->c = c;
        t->ldc = p->g.crs;
        t->init = mode == FLEX_INIT_COL ? p->init + j : NULL;
        t->mode = mode;
        fn(t);
        return;
    }
    t->c = scratch;
    t->n = w->kernels->lanes;
    t->ldc = t->n;
    t->mode = FLEX_INIT_ZERO;
    fn(t);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t x = 0; x < n; x++) {
            double *to = c + r * p->g.crs + x;
            double sum = scratch[r * t->ldc + x];
            if (mode != FLEX_INIT_ZERO) {
                sum = (mode == FLEX_INIT_C ? *to : p->init[j + x]) + sum;
            }
            *to = sum;
        }
    }
}

/* All tiles of rows i .. i+rows of the block. */
static void run_rows(const plan *w, const block *u, int64_t i, int64_t rows)
{
    const flex_gemm_f64 *p = w->p;
    int64_t lanes = w->kernels->lanes;
    int64_t nr = w->kernels->nv * lanes;
    flex_f64_tile t = {.kc = u->kc};
    int turned = lay_rows(w, u, i, rows, &t);
    uint32_t mode = u->k0 > 0 ? FLEX_INIT_C : p->init != NULL ? FLEX_INIT_COL : FLEX_INIT_ZERO;
    for (int64_t j = 0; j < u->n; j += nr) {
        int64_t n = flex_min(nr, u->n - j);
        if (w->packs_b) {
            t.b = u->b + j * u->kc;
            t.ldb = flex_round_up(n, lanes);
        } else if (fits(w->kernels, n)) {
            t.b = p->b + u->k0 * p->g.brs + u->j0 + j;
            t.ldb = p->g.brs;
        } else {
            t.b = u->b;
            t.ldb = lanes;
        }
        flex_f64_tile_fn fn = tile_fn(w->kernels, turned, rows, n);
        run_tile(w, fn, &t, i, rows, u->j0 + j, n, mode);
    }
}

/* What of the block's columns of B has to be packed. */
static void pack_b(const plan *w, const block *u)
{
    const flex_gemm *g = &w->p->g;
    int64_t lanes = w->kernels->lanes;
    int64_t nr = w->kernels->nv * lanes;
    int64_t edge = u->n % nr;
    int64_t skipped = w->packs_b ? 0 : edge == 0 || fits(w->kernels, edge) ? u->n : u->n - edge;
    if (skipped < u->n) {
        const double *src = w->p->b + u->k0 * g->brs + (u->j0 + skipped) * g->bcs;
        w->kernels->pack(u->b, src, g->brs, g->bcs, u->n - skipped, u->kc);
    }
}

static void run_task(void *ctx, int64_t task, uint32_t slot)
{
    const plan *w = ctx;
    const flex_gemm *g = &w->p->g;
    block u = {.j0 = task % w->n_chunks * w->task_columns};
    u.n = flex_min(w->task_columns, g->n - u.j0);
    u.i0 = task / w->n_chunks * w->task_rows;
    u.i1 = flex_min(u.i0 + w->task_rows, g->m);
    u.a = (double *)(void *)(w->memory + slot * w->slot_bytes);
    u.b = u.a + strip_doubles(w->kernels, g->k);
    int64_t vectors = flex_min(w->kernels->nv, (u.n + w->kernels->lanes - 1) / w->kernels->lanes);
    int64_t length = block_length(g->k);
    do {
        u.kc = flex_min(length, g->k - u.k0);
        pack_b(w, &u);
        for (int64_t i = u.i0; i < u.i1;) {
            /* What is left, in tiles of about equal height. */
            int64_t tiles = (u.i1 - i + w->kernels->rows[vectors] - 1) / w->kernels->rows[vectors];
            int64_t rows = (u.i1 - i + tiles - 1) / tiles;
            run_rows(w, &u, i, rows);
            i += rows;
        }
        u.k0 += length;
    } while (u.k0 < g->k);
}

void flex_gemm_f64_run(const flex_gemm_f64 *p, void *memory, uint32_t threads)
{
    const flex_gemm *g = &p->g;
    if (g->m <= 0 || g->n <= 0) {
        return;
    }
    plan w;
    threads = g->m * g->n * g->k < PARALLEL_WORK ? 1 : threads;
    make_plan(&w, p, memory, threads);
    flex_share(w.n_tasks, (uint32_t)flex_min(w.n_tasks, (int64_t)threads), run_task, &w);
}
