/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_driver.c - blocking, packing and sharing out of the f32 matrix product.
 *
 * Two ways. Direct: A is read where it lies, B too when its rows are dense, for products whose
 * packing would cost more than it saves. Blocked: tasks take chunks of columns (or of rows and
 * columns) for all of k, pack FLEX_GEMM_KC rows of B at a time, which then stay in the second
 * cache, and run the tiles; rows of A that are dense are copied apart, others packed, per tile row.
 * Rules: both sum k in the same blocks and use kernels with equal bits, tiles at an edge go through
 * a scratch tile, and C is never read before it is written. To tune: the constants below.
 */
#include "gemm.h"

#include "isa.h"
#include "nn.h"
#include "threads.h"

#include <stdatomic.h>
#include <string.h>

/* Columns of B that one task packs at a time, at most. */
#define CHUNK_COLUMNS 512
/* Products up to this many multiply-adds, or with few rows, go the direct way. */
#define DIRECT_WORK (INT64_C(256) * 256 * 256)
/*
 * Floats between copied rows of A beyond their length: rows a power of two apart would share few
 * sets of the first cache with each other and with B.
 */
#define ROW_GAP 16
/* Floats of a flex_fetch line. */
#define FETCH_FLOATS 32
/* Floats of C that the direct way finishes at a time. */
#define HOT_FLOATS (INT64_C(1) << 17)
/* Columns of B from which on it pays to lay A's panels along k first. */
#define TURN_COLUMNS 256
/* Floats of C up to which it pays to sum blocks of k apart. */
#define SPLIT_FLOATS (INT64_C(1) << 14)
/* Work that is worth waking a thread. */
#define PARALLEL_WORK (INT64_C(64) * 64 * 64)

const flex_gemm_kernels *flex_gemm_table(void)
{
#if defined(__x86_64__)
    if (flex_isa == FLEX_ISA_AVX512) {
        return &flex_gemm_kernels_avx512;
    }
    if (flex_isa == FLEX_ISA_AVX2) {
        return &flex_gemm_kernels_avx2;
    }
#endif
    return &flex_gemm_kernels_baseline;
}

/* k is summed in blocks of equal length, FLEX_GEMM_KC at most. It depends on k only. */
static int64_t block_length(int64_t k)
{
    if (k <= FLEX_GEMM_KC) {
        return k > 0 ? k : 1;
    }
    int64_t blocks = (k + FLEX_GEMM_KC - 1) / FLEX_GEMM_KC;
    return flex_round_up((k + blocks - 1) / blocks, 8);
}

/* How a product is cut: tasks are columns by rows, each for all of k. */
typedef struct plan {
    const flex_gemm *g;
    const flex_gemm_kernels *kernels;
    int64_t task_columns;
    int64_t task_rows;
    int64_t slot_floats; /* a panel of A and the columns of B, then a strip of C */
    int64_t n_chunks;
    int64_t n_tasks;
    int has_rows; /* A's rows are dense along k */
    float *memory;
    atomic_llong next;
} plan;

static int is_direct(const flex_gemm *g, const flex_gemm_kernels *kernels)
{
    if (g->pack_b != NULL || g->aseg != 0) {
        return 0;
    }
    return g->m <= kernels->mr || g->m * g->n * g->k <= DIRECT_WORK;
}

/* Grows with n and k, so that memory for a product serves every smaller one. */
static int64_t slot_floats(const flex_gemm *g)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t columns = flex_min(CHUNK_COLUMNS, flex_round_up(g->n > 0 ? g->n : 1, kernels->nr));
    int64_t kc = flex_min(g->k > 0 ? g->k : 1, FLEX_GEMM_KC);
    return flex_round_up(columns * kc + kernels->mr * (kc + ROW_GAP) + FLEX_NR_MAX, 16);
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

static void make_plan(plan *p, const flex_gemm *g, uint32_t threads)
{
    p->g = g;
    p->kernels = flex_gemm_table();
    int64_t mr = p->kernels->mr;
    int64_t nr = p->kernels->nr;
    int64_t m = g->m > 0 ? g->m : 1;
    int64_t n = g->n > 0 ? g->n : 1;
    p->has_rows = g->acs == 1 && g->aseg == 0;
    p->task_rows = flex_round_up(m, mr);
    int64_t wanted = threads > 1 ? (int64_t)threads : 1;
    /* Chunks of equal width, as many as let all threads end together. */
    p->n_chunks = (n + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
    p->n_chunks = flex_min(flex_round_up(p->n_chunks, wanted), (n + 8 * nr - 1) / (8 * nr));
    p->task_columns = flex_round_up((n + p->n_chunks - 1) / p->n_chunks, nr);
    p->n_chunks = (n + p->task_columns - 1) / p->task_columns;
    if (p->n_chunks < wanted) {
        int64_t parts = (wanted + p->n_chunks - 1) / p->n_chunks;
        p->task_rows = flex_round_up((m + parts - 1) / parts, mr);
    }
    p->n_tasks = p->n_chunks * ((m + p->task_rows - 1) / p->task_rows);
    p->slot_floats = slot_floats(g) + strip_floats(g);
}

/* See split_parallel. */
static int splits_k(const flex_gemm *g, uint32_t threads)
{
    /* The blocks but the first are at most DIRECT_WORK / FLEX_GEMM_KC floats: see split_bytes. */
    return threads > 1 && g->k > FLEX_GEMM_KC && g->k >= 4 * g->m && g->cseg == 0 &&
           g->m * g->n <= SPLIT_FLOATS && g->m * g->n * g->k >= 4 * PARALLEL_WORK;
}

static int64_t blocks_of_k(const flex_gemm *g)
{
    int64_t length = block_length(g->k);
    return (g->k + length - 1) / length;
}

/* Of k longer than a block, whatever m and n: memory for a product serves every smaller one. */
static uint64_t split_bytes(const flex_gemm *g, uint32_t threads)
{
    if (threads == 1 || g->k <= FLEX_GEMM_KC || g->pack_b != NULL || g->aseg != 0) {
        return 0;
    }
    return flex_float_bytes(DIRECT_WORK / FLEX_GEMM_KC);
}

uint64_t flex_gemm_bytes(const flex_gemm *g, uint32_t threads)
{
    uint64_t apart = split_bytes(g, threads);
    if (is_direct(g, flex_gemm_table())) {
        return apart;
    }
    int64_t floats = slot_floats(g) + strip_floats(g);
    uint64_t slots = (uint64_t)(floats * (int64_t)threads) * sizeof(float);
    return slots > apart ? slots : apart;
}

/* Packs A rows i0 .. i0+rows (at most mr), k0 .. k0+kc, into dst[kc][mr]. */
static void pack_a_panel(const flex_gemm *g, const flex_gemm_kernels *kernels, int64_t i0,
                         int64_t rows, int64_t k0, int64_t kc, float *dst)
{
    int64_t mr = kernels->mr;
    int64_t seg = g->aseg > 0 ? g->aseg : g->k;
    int64_t done = 0;
    while (done < kc) {
        int64_t k = k0 + done;
        int64_t n = flex_min(kc - done, seg - k % seg);
        const float *src = g->a + i0 * g->ars + (k / seg) * g->aseg_stride + (k % seg) * g->acs;
        float *d = dst + done * mr;
        if (g->acs == 1) {
            const float *row[FLEX_MR_MAX];
            for (int64_t i = 0; i < rows; i++) {
                row[i] = src + i * g->ars;
            }
            kernels->pack_rows(d, mr, row, rows, n);
        } else if (g->ars == 1) {
            kernels->pack_copy(d, mr, src, g->acs, rows, n);
        } else {
            for (int64_t kk = 0; kk < n; kk++) {
                for (int64_t i = 0; i < mr; i++) {
                    d[kk * mr + i] = i < rows ? src[i * g->ars + kk * g->acs] : 0.0F;
                }
            }
        }
        done += n;
    }
}

/* Packs B columns j0 .. j0+n (at most nr), k0 .. k0+kc, into dst[kc][nr]. */
static void pack_b_panel(const flex_gemm *g, const flex_gemm_kernels *kernels, int64_t j0,
                         int64_t n, int64_t k0, int64_t kc, float *dst)
{
    int64_t nr = kernels->nr;
    if (g->pack_b != NULL) {
        g->pack_b(g->pack_ctx, k0, kc, j0, n, dst);
        return;
    }
    const float *src = g->b + k0 * g->brs + j0 * g->bcs;
    if (g->bcs == 1) {
        kernels->pack_copy(dst, nr, src, g->brs, n, kc);
    } else if (g->brs == 1) {
        const float *column[FLEX_NR_MAX];
        for (int64_t j = 0; j < n; j++) {
            column[j] = src + j * g->bcs;
        }
        kernels->pack_rows(dst, nr, column, n, kc);
    } else {
        for (int64_t k = 0; k < kc; k++) {
            for (int64_t j = 0; j < nr; j++) {
                dst[k * nr + j] = j < n ? src[k * g->brs + j * g->bcs] : 0.0F;
            }
        }
    }
}

/* How far from C's first element column j starts, and how many dense columns follow. */
static int64_t column_offset(const flex_gemm *g, int64_t j, int64_t *out_dense)
{
    if (g->cseg == 0) {
        *out_dense = g->n - j;
        return j;
    }
    *out_dense = g->cseg - j % g->cseg;
    return (j / g->cseg) * g->cseg_stride + j % g->cseg;
}

static float *c_column(const flex_gemm *g, int64_t j, int64_t *out_dense)
{
    return g->c + column_offset(g, j, out_dense);
}

/* Hands a finished block of C to the epilogue, in pieces with dense columns. It lies at `strip`,
 * rows `ld` apart, or in C. */
static void finish_at(const flex_gemm *g, float *strip, int64_t ld, int64_t i0, int64_t rows,
                      int64_t j0, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        int64_t dense = 0;
        int64_t offset = column_offset(g, j0 + done, &dense) + i0 * g->crs;
        flex_block b = {.at = g->at0 + offset, .step = g->crs, .rows = rows, .batch = g->batch};
        b.c = strip != NULL ? strip + done : g->c + offset;
        b.ldc = strip != NULL ? ld : g->crs;
        b.row = g->row0 + i0;
        b.col = j0 + done;
        b.cols = flex_min(dense, n - done);
        g->epilogue(g->epilogue_user, &b);
        done += b.cols;
    }
}

static void finish_block(const flex_gemm *g, int64_t i0, int64_t rows, int64_t j0, int64_t n)
{
    if (g->epilogue != NULL && rows > 0) {
        finish_at(g, NULL, 0, i0, rows, j0, n);
    }
}

/* Copies the tile's C between the scratch and where it lies. */
static void move_tile(const flex_gemm *g, int64_t i0, int64_t rows, int64_t j0, int64_t n,
                      float *scratch, int64_t ld, int to_c)
{
    int64_t done = 0;
    while (done < n) {
        int64_t dense = 0;
        float *c = c_column(g, j0 + done, &dense) + i0 * g->crs;
        int64_t part = flex_min(dense, n - done);
        for (int64_t i = 0; i < rows; i++) {
            float *s = scratch + i * ld + done;
            size_t bytes = (size_t)part * sizeof(float);
            if (to_c) {
                memcpy(c + i * g->crs, s, bytes);
            } else {
                memcpy(s, c + i * g->crs, bytes);
            }
        }
        done += part;
    }
}

/* One tile of any size, in place when its columns are dense and full, else through a scratch. */
static void run_tile(const flex_gemm *g, const flex_gemm_kernels *kernels, flex_tile *t, int64_t i0,
                     int64_t rows, int64_t j0, int64_t n, int64_t k0, flex_tile_fn fn)
{
    int half = fn == kernels->tile[rows][1] || fn == kernels->turned[rows][1];
    int64_t nr = half ? kernels->nr / 2 : kernels->nr;
    float scratch[FLEX_MR_MAX * FLEX_NR_MAX];
    float init[FLEX_NR_MAX];
    float init_rows[FLEX_MR_MAX];
    int64_t dense = 0;
    t->c = c_column(g, j0, &dense) + i0 * g->crs;
    t->ldc = g->crs;
    t->mode = k0 == 0 ? g->mode : FLEX_INIT_C;
    int whole = n == nr && dense >= n && (rows == kernels->mr || fn != kernels->packed);
    if (t->mode == FLEX_INIT_COL) {
        t->init = g->init + j0;
        if (n < nr) {
            memset(init, 0, sizeof(init));
            memcpy(init, t->init, (size_t)n * sizeof(float));
            t->init = init;
        }
    } else if (t->mode == FLEX_INIT_ROW) {
        t->init = g->init + i0;
        if (rows < kernels->mr) {
            memset(init_rows, 0, sizeof(init_rows));
            memcpy(init_rows, t->init, (size_t)rows * sizeof(float));
            t->init = init_rows;
        }
    }
    if (whole) {
        fn(t);
        return;
    }
    t->c = scratch;
    t->ldc = nr;
    if (t->mode == FLEX_INIT_C) {
        memset(scratch, 0, sizeof(scratch));
        move_tile(g, i0, rows, j0, n, scratch, nr, 0);
    }
    fn(t);
    move_tile(g, i0, rows, j0, n, scratch, nr, 1);
}

/* B's columns j .. j+n as the tile reads them: where they lie if they fit, else packed. */
static void direct_b(const flex_gemm *g, const flex_gemm_kernels *kernels, flex_tile *t, int64_t j,
                     int64_t n, int64_t k0, float *panel)
{
    int64_t half = kernels->nr / 2;
    if (g->bcs == 1 && n % half == 0) {
        t->b = g->b + k0 * g->brs + j;
        t->ldb = g->brs;
        return;
    }
    pack_b_panel(g, kernels, j, n, k0, t->kc, panel);
    t->b = panel;
    t->ldb = kernels->nr;
}

static flex_tile_fn direct_fn(const flex_gemm_kernels *kernels, int turned, int64_t rows, int64_t n)
{
    int v = n <= (int64_t)kernels->nr / 2 ? 1 : 2;
    return turned ? kernels->turned[rows][v] : kernels->tile[rows][v];
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

/* A's rows lie along k, or its columns along the rows: each panel of B serves all rows. */
static void direct_rows(const flex_gemm *g, int64_t j0, int64_t j1, int64_t k0, int64_t kc)
{
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int turned = !has_rows_along_k(g);
    int64_t height = tile_height(g->m, kernels->mr);
    float panel[FLEX_GEMM_KC * FLEX_NR_MAX];
    for (int64_t j = j0; j < j1; j += kernels->nr) {
        int64_t n = flex_min(kernels->nr, j1 - j);
        flex_tile t; /* the rest is set below, or not read by these tiles */
        t.kc = kc;
        t.ars = turned ? g->acs : g->ars;
        direct_b(g, kernels, &t, j, n, k0, panel);
        for (int64_t i = 0; i < g->m; i += height) {
            int64_t rows = flex_min(height, g->m - i);
            t.a = g->a + i * g->ars + k0 * g->acs;
            run_tile(g, kernels, &t, i, rows, j, n, k0, direct_fn(kernels, turned, rows, n));
        }
    }
}

/* Rows i .. i+rows of A, k0 .. k0+kc, laid along k: dst[r * kc + k]. */
static void turn_rows(const flex_gemm *g, int64_t i, int64_t rows, int64_t k0, int64_t kc,
                      float *dst)
{
    const float *a = g->a + i * g->ars + k0 * g->acs;
    if (g->ars == 1) {
        const float *column[FLEX_GEMM_KC];
        for (int64_t k = 0; k < kc; k++) {
            column[k] = a + k * g->acs;
        }
        flex_gemm_table()->pack_rows(dst, kc, column, kc, rows);
        return;
    }
    for (int64_t k = 0; k < kc; k++) {
        for (int64_t r = 0; r < rows; r++) {
            dst[r * kc + k] = a[r * g->ars + k * g->acs];
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
    float panel[FLEX_GEMM_KC * FLEX_NR_MAX];
    float turned[FLEX_MR_MAX * FLEX_GEMM_KC];
    int64_t mr = kernels->mr;
    int64_t nr = kernels->nr;
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
            turn_rows(g, i, rows, k0, kc, turned);
        }
        if (rows_first || step % inner == 0) {
            direct_b(g, kernels, &t, j, n, k0, panel);
        }
        run_tile(g, kernels, &t, i, rows, j, n, k0, direct_fn(kernels, 0, rows, n));
    }
}

/* Direct way: columns j0 .. j1 of all rows, so few that C stays in the second cache. */
static void direct_block(const flex_gemm *g, int64_t j0, int64_t j1)
{
    int64_t k0 = 0;
    int64_t length = block_length(g->k);
    do {
        int64_t kc = flex_min(length, g->k - k0);
        if (has_rows_along_k(g) || (g->ars == 1 && j1 - j0 <= TURN_COLUMNS)) {
            direct_rows(g, j0, j1, k0, kc);
        } else {
            direct_turned(g, j0, j1, k0, kc);
        }
        k0 += length;
    } while (k0 < g->k);
    finish_block(g, 0, g->m, j0, j1 - j0);
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
    split_job job = {g, partial, block_length(g->k), 0, 0};
    job.columns = flex_round_up((g->n + chunks - 1) / chunks, nr);
    job.chunks = (g->n + job.columns - 1) / job.columns;
    flex_parallel((uint32_t)(blocks * job.chunks), split_task, &job);
    for (int64_t b = 1; b < blocks; b++) {
        add_partial(g, partial + (b - 1) * g->m * g->n);
    }
    finish_block(g, 0, g->m, 0, g->n);
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
    int64_t nr = flex_gemm_table()->nr;
    int64_t chunk = flex_round_up((g->n + (int64_t)threads - 1) / (int64_t)threads, nr);
    return flex_min(chunk, 64 * nr);
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

/* A block of a task: columns j0 .. j0+n of rows i0 .. i1, for kc steps from k0. */
typedef struct block {
    int64_t i0;
    int64_t i1;
    int64_t j0;
    int64_t n;
    int64_t k0;
    int64_t kc;
    const float *next_b; /* rows of B that the next block packs, or NULL */
    int64_t next_kc;
} block;

/* What of the next rows of A tile `tile` of this row of tiles asks for: its share of them. */
static flex_fetch ahead_a(const flex_gemm *g, const block *w, int64_t mr, int64_t i, int64_t tile)
{
    flex_fetch none = {NULL, 0, 0};
    int64_t tiles = (w->n + FLEX_NR_MAX - 1) / FLEX_NR_MAX;
    if (i + mr >= w->i1 || g->aseg != 0) {
        return none;
    }
    const float *next = g->a + (i + mr) * g->ars + w->k0 * g->acs;
    if (g->acs == 1) {
        int64_t k = tile * FETCH_FLOATS;
        return k < w->kc ? (flex_fetch){next + k, g->ars, mr} : none;
    }
    int64_t share = (w->kc + tiles - 1) / tiles;
    int64_t k = tile * share;
    return k < w->kc ? (flex_fetch){next + k * g->acs, g->acs, flex_min(share, w->kc - k)} : none;
}

/* The same for the next block's rows of B: each row of tiles asks for its share. */
static flex_fetch ahead_b(const flex_gemm *g, const block *w, int64_t mr, int64_t i, int64_t j)
{
    flex_fetch none = {NULL, 0, 0};
    if (w->next_b == NULL) {
        return none;
    }
    int64_t panels = (w->i1 - w->i0 + mr - 1) / mr;
    int64_t share = (w->next_kc + panels - 1) / panels;
    int64_t k = (i - w->i0) / mr * share;
    return k < w->next_kc ? (flex_fetch){w->next_b + k * g->brs + j, g->brs,
                                         flex_min(share, w->next_kc - k)}
                          : none;
}

/* What the epilogue will write for a tile of a strip. */
static flex_fetch ahead_written(const flex_gemm *g, int64_t i, int64_t rows, int64_t j)
{
    flex_fetch none = {NULL, 0, 0};
    int64_t dense = 0;
    if (g->writes == NULL) {
        return none;
    }
    int64_t offset = g->at0 + column_offset(g, j, &dense) + i * g->crs;
    return (flex_fetch){g->writes + offset, g->crs, rows};
}

/* Rows i .. i+rows of the block, ROW_GAP apart. */
static void copy_rows(const flex_gemm *g, const block *w, int64_t i, int64_t rows, float *dst)
{
    const float *src = g->a + i * g->ars + w->k0;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(dst + r * (w->kc + ROW_GAP), src + r * g->ars, (size_t)w->kc * sizeof(float));
    }
}

/* Where B's panels begin in a slot. */
static float *slot_b(const plan *p, const block *w, float *slot)
{
    return slot + p->kernels->mr * (w->kc + ROW_GAP);
}

/* All tiles of rows i .. i+rows (at most mr) of the block; `strip`: where they go, if not to C. */
static void run_rows(const plan *p, const block *w, int64_t i, int64_t rows, float *slot,
                     const flex_gemm *strip)
{
    const flex_gemm *g = p->g;
    const flex_gemm_kernels *kernels = p->kernels;
    int64_t mr = kernels->mr;
    int64_t nr = kernels->nr;
    const float *packed_b = slot_b(p, w, slot);
    flex_tile t = {.kc = w->kc, .a = slot, .ars = w->kc + ROW_GAP, .ldb = nr};
    flex_tile_fn fn = kernels->packed;
    if (p->has_rows) {
        copy_rows(g, w, i, rows, slot);
        fn = rows == mr ? kernels->strip : kernels->tile[rows][2];
    } else {
        pack_a_panel(g, kernels, i, rows, w->k0, w->kc, slot);
    }
    for (int64_t j = 0; j < w->n; j += nr) {
        t.b = packed_b + j * w->kc;
        t.ahead[0] = ahead_a(g, w, mr, i, j / nr);
        t.ahead[1] = strip != NULL ? ahead_written(g, i, rows, w->j0 + j)
                                   : ahead_b(g, w, mr, i, j);
        int64_t n = flex_min(nr, w->n - j);
        if (strip != NULL) {
            run_tile(strip, kernels, &t, 0, rows, j, n, w->k0, fn);
        } else {
            run_tile(g, kernels, &t, i, rows, w->j0 + j, n, w->k0, fn);
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
        pack_b_panel(g, p->kernels, j0 + j, flex_min(nr, n - j), k0, kc, dst + j * kc);
    }
}

/* All of k in one block, and C is not kept: strips are handed on from the slot. */
static int goes_in_strips(const flex_gemm *g)
{
    return g->passes && g->epilogue != NULL && block_length(g->k) >= g->k;
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
        finish_at(g, strip.c, strip.crs, i, rows, w->j0, w->n);
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
    int64_t length = block_length(g->k);
    do {
        int64_t next_k = w.k0 + length;
        w.kc = flex_min(length, g->k - w.k0);
        w.next_kc = flex_min(length, g->k - next_k);
        int known = g->pack_b == NULL && g->bcs == 1 && w.next_kc > 0;
        w.next_b = known ? g->b + next_k * g->brs + w.j0 : NULL;
        pack_b(p, w.j0, w.n, w.k0, w.kc, slot_b(p, &w, slot));
        if (goes_in_strips(g)) {
            run_strips(p, &w, slot);
            return;
        }
        for (int64_t i = w.i0; i < w.i1; i += mr) {
            int64_t rows = flex_min(mr, w.i1 - i);
            run_rows(p, &w, i, rows, slot, NULL);
            if (next_k >= g->k) {
                finish_block(g, i, rows, w.j0, w.n);
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
    if (is_direct(g, flex_gemm_table())) {
        if (splits_k(g, threads)) {
            split_parallel(g, memory, threads);
        } else {
            direct_parallel(g, threads);
        }
        return;
    }
    plan p;
    make_plan(&p, g, threads);
    run_plan(&p, memory, threads);
}

int flex_gemm_keeps_c(const flex_gemm *g)
{
    return is_direct(g, flex_gemm_table()) || block_length(g->k) < g->k;
}

int64_t flex_gemm_block_columns(const flex_gemm *g, uint32_t threads)
{
    int64_t columns = g->n;
    if (!is_direct(g, flex_gemm_table())) {
        plan p;
        make_plan(&p, g, threads);
        return flex_min(p.task_columns, columns);
    }
    if (splits_k(g, threads)) {
        return columns;
    }
    int rows = cuts_rows(g, flex_gemm_table()->nr);
    if (!rows && !is_small(g, threads, rows)) {
        columns = direct_chunk(g, threads);
    }
    return flex_min(columns, HOT_FLOATS / (g->m > 0 ? g->m : 1));
}

void flex_gemm_serial(const flex_gemm *g, void *memory)
{
    flex_gemm_parallel(g, memory, 1);
}
