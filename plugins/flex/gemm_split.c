/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_split.c - the split way of the f32 matrix product: numbers are three bf16 parts, and a
 * matrix unit sums the products of parts (gemm_split.h says which, and why that is f32).
 *
 * Owns which products go this way, how they are cut, and what becomes of numbers that parts cannot
 * hold: infinite, NaN, or so large or small that a sum of parts might leave the range. A tile of 32
 * by 32 whose rows or columns have such numbers goes the direct way, alone. Blocks of A and B are
 * laid into strips: by the task that needs them, or, where several do, by all threads before.
 * Rules: strips and blocks of k begin where they do for every number of threads, so bits do not
 * depend on it. Not: what runs in the matrix unit (gemm_split_amx.c). To tune: the constants below.
 */
#include "gemm_parts.h"
#include "gemm_split.h"
#include "nn.h"

#include <string.h>

#define SIDE FLEX_SPLIT_SIDE

/* Rows of A and columns of B that are laid out at a time. */
#define BLOCK_ROWS    512
#define BLOCK_COLUMNS 2048
/* Columns of a task: strips of B that stay in the second cache beside one of A. */
#define CHUNK_COLUMNS 256
/* Rows of a task from which on it lays out a narrow B for itself: lines that another core has
 * written come slower than they are made. */
#define OWN_ROWS 128
/* Least sizes, and least work, of a product that is worth laying out. */
#define LEAST_SIDE 128
#define LEAST_K    64
#define LEAST_WORK (INT64_C(256) * 256 * 256)

/*
 * Exponents, as they are stored. Of one number: parts of it are normal numbers and do not round to
 * infinity. Of a product of two: so are the parts' products, and sums of a block of them.
 */
enum {
    BIAS = 127,
    LEAST_EXPONENT = BIAS - 100,
    MOST_EXPONENT = BIAS + 126,
    LEAST_OF_TWO = 2 * BIAS - 96,
    MOST_OF_TWO = 2 * BIAS + 110
};

static const flex_split_kernels *kernels_in_use(void)
{
#if defined(FLEX_HAS_AMX)
    if (flex_isa_has_amx) {
        return &flex_split_amx;
    }
#endif
    return NULL;
}

int flex_gemm_is_split(const flex_gemm *g)
{
    if (g->rows < LEAST_SIDE || g->n < LEAST_SIDE || g->k < LEAST_K) {
        return 0;
    }
    return g->rows * g->n * g->k >= LEAST_WORK && kernels_in_use() != NULL;
}

/* Blocks of k are as long as each other, whole pieces, and FLEX_GEMM_KC at most. */
static int64_t block_length(int64_t k)
{
    int64_t blocks = (k + FLEX_GEMM_KC - 1) / FLEX_GEMM_KC;
    return flex_round_up((k + blocks - 1) / blocks, FLEX_SPLIT_STEP);
}

/* n cut into as few parts of equal length as there can be, of whole strips and `most` at most. */
static int64_t equal_parts(int64_t n, int64_t most)
{
    int64_t whole = n > 0 ? n : 1; /* no rows, as of an empty batch, are cut like one */
    int64_t parts = (whole + most - 1) / most;
    return flex_round_up((whole + parts - 1) / parts, SIDE);
}

/* Where C is not kept: a row of tiles, its rows not a multiple of 1 KiB apart. */
#define LINE_STEP   (CHUNK_COLUMNS + 16)
#define LINE_FLOATS (SIDE * LINE_STEP)

typedef struct split {
    const flex_gemm *g;
    const flex_split_kernels *kernels;
    uint32_t threads;
    int64_t strip_bytes;
    char *a; /* strips of the block at hand */
    char *b;
    float *lines; /* LINE_FLOATS for each thread */
    int64_t rows; /* of a block, at most */
    int64_t columns;
    int64_t i0; /* the block at hand */
    int64_t i1;
    int64_t j0;
    int64_t j1;
    int64_t k0;
    int64_t kc;
    int64_t chunk; /* columns of a task */
    int64_t piece; /* rows of a task */
    int64_t chunks;
    int64_t pieces;
    int64_t copies; /* of the strips of B: 1, or one for each piece */
} split;

/* A strip's range lies behind its pieces. */
static int64_t strip_bytes(int64_t kc)
{
    return flex_round_up(kc, FLEX_SPLIT_STEP) / FLEX_SPLIT_STEP * FLEX_SPLIT_PIECE + 64;
}

/* How blocks become tasks: rows are cut, too, where chunks of columns do not busy all threads. */
static void cut_blocks(split *s)
{
    int64_t threads = (int64_t)s->threads;
    s->chunk = equal_parts(s->columns, CHUNK_COLUMNS);
    s->chunks = (s->columns + s->chunk - 1) / s->chunk;
    int64_t parts = s->chunks % threads == 0 ? 1 : threads;
    s->piece = equal_parts(s->rows, flex_round_up((s->rows + parts - 1) / parts, SIDE));
    s->pieces = (s->rows + s->piece - 1) / s->piece;
    s->copies = s->chunks == 1 && s->piece >= OWN_ROWS ? s->pieces : 1;
}

static void make_split(split *s, const flex_gemm *g, char *memory, uint32_t threads)
{
    memset(s, 0, sizeof(*s));
    s->g = g;
    s->kernels = kernels_in_use();
    s->threads = threads > 0 ? threads : 1;
    s->rows = equal_parts(g->m, BLOCK_ROWS);
    s->columns = equal_parts(g->n, BLOCK_COLUMNS);
    s->strip_bytes = strip_bytes(block_length(g->k));
    cut_blocks(s);
    s->a = memory;
    s->b = memory + s->rows / SIDE * s->strip_bytes;
    s->lines = (float *)(void *)(s->b + s->copies * s->columns / SIDE * s->strip_bytes);
}

/* Blocks and copies may be fewer, or smaller, of more rows: so for the most that up to m have. */
uint64_t flex_gemm_split_bytes(const flex_gemm *g, uint32_t threads)
{
    split s;
    make_split(&s, g, NULL, threads);
    int64_t rows = flex_min(flex_round_up(g->m, SIDE), BLOCK_ROWS);
    int64_t copies = flex_min((rows + OWN_ROWS - 1) / OWN_ROWS, (int64_t)s.threads);
    int64_t strips = (rows + (s.chunks == 1 ? copies : 1) * s.columns) / SIDE;
    return (uint64_t)(strips * s.strip_bytes) + s.threads * flex_float_bytes(LINE_FLOATS);
}

/* The strip of A that has row i of the product, and that of B with column j, for a piece. */
static char *rows_at(const split *s, int64_t i)
{
    return s->a + (i - s->i0) / SIDE * s->strip_bytes;
}

static char *columns_at(const split *s, int64_t j, int64_t piece)
{
    int64_t copy = s->copies > 1 ? piece * s->columns : 0;
    return s->b + (copy + j - s->j0) / SIDE * s->strip_bytes;
}

static flex_split_range *range_at(const split *s, char *strip)
{
    return (flex_split_range *)(void *)(strip + s->strip_bytes - 64);
}

/* ---- laying out ------------------------------------------------------------------------------ */

/* The strip of A from row i. */
static void lay_rows(const split *s, int64_t i)
{
    const flex_gemm *g = s->g;
    int64_t rows = flex_min(SIDE, s->i1 - i);
    const float *a = g->a + i * g->ars + s->k0 * g->acs;
    int64_t ars = g->ars;
    float turned[SIDE * FLEX_GEMM_KC];
    if (g->acs != 1) {
        flex_gemm_turn_a(g, i, rows, s->k0, s->kc, turned, s->kc);
        a = turned;
        ars = s->kc;
    }
    char *strip = rows_at(s, i);
    *range_at(s, strip) = s->kernels->rows(strip, a, ars, rows, s->kc);
}

/* The strip of B from column j, for a piece. */
static void lay_columns(const split *s, int64_t j, int64_t piece)
{
    const flex_gemm *g = s->g;
    int64_t columns = flex_min(SIDE, s->j1 - j);
    const float *b = g->b + s->k0 * g->brs + j;
    int64_t brs = g->brs;
    float dense[SIDE * FLEX_GEMM_KC];
    if (g->bcs != 1) {
        flex_gemm_pack_b(g, flex_gemm_table(), j, columns, s->k0, s->kc, dense, SIDE);
        b = dense;
        brs = SIDE;
    }
    char *strip = columns_at(s, j, piece);
    *range_at(s, strip) = s->kernels->columns(strip, b, brs, columns, s->kc);
}

static void lay_rows_item(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const split *s = ctx;
    lay_rows(s, s->i0 + item * SIDE);
}

static void lay_columns_item(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    const split *s = ctx;
    lay_columns(s, s->j0 + item * SIDE, 0);
}

/* Does a task lay out the strips of B, or of A, that it needs? No other one does, then. */
static int lays_columns(const split *s)
{
    return s->copies == s->pieces;
}

static int lays_rows(const split *s)
{
    return s->chunks == 1;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Exponents of the largest and the least number; of zeros alone as of one. */
static void exponents_of(const flex_split_range *r, int64_t *out_least, int64_t *out_most)
{
    *out_most = r->least == UINT32_MAX ? BIAS : (int64_t)(r->most >> 23);
    *out_least = r->least == UINT32_MAX ? BIAS : (int64_t)((r->least + 1) >> 23);
}

/* May the numbers of the two strips be multiplied as parts? */
static int in_range(const flex_split_range *a, const flex_split_range *b)
{
    int64_t least_a = 0;
    int64_t most_a = 0;
    int64_t least_b = 0;
    int64_t most_b = 0;
    exponents_of(a, &least_a, &most_a);
    exponents_of(b, &least_b, &most_b);
    return least_a >= LEAST_EXPONENT && least_b >= LEAST_EXPONENT && most_a <= MOST_EXPONENT &&
           most_b <= MOST_EXPONENT && least_a + least_b >= LEAST_OF_TWO &&
           most_a + most_b <= MOST_OF_TWO;
}

/* The tile at row i of a piece, column j of the product, into `c`. */
static void run_tile(const split *s, int64_t piece, int64_t i, int64_t j, float *c, int64_t ldc)
{
    const flex_gemm *g = s->g;
    flex_gemm part = {.m = flex_min(SIDE, s->i1 - i), .n = flex_min(SIDE, s->j1 - j)};
    part.mode = s->k0 == 0 ? g->mode : FLEX_INIT_C;
    if (part.mode == FLEX_INIT_COL) {
        part.init = g->init + j;
    } else if (part.mode == FLEX_INIT_ROW) {
        part.init = g->init + i;
    }
    char *a = rows_at(s, i);
    char *b = columns_at(s, j, piece);
    if (in_range(range_at(s, a), range_at(s, b))) {
        int64_t pieces = (s->kc + FLEX_SPLIT_STEP - 1) / FLEX_SPLIT_STEP;
        flex_split_sum sum __attribute__((aligned(64)));
        s->kernels->tile(a, b, pieces, &sum);
        s->kernels->add((const flex_split_sum *)&sum, c, ldc, part.m, part.n, part.init, part.mode);
        return;
    }
    part.k = s->kc;
    part.a = g->a + i * g->ars + s->k0 * g->acs;
    part.ars = g->ars;
    part.acs = g->acs;
    part.b = g->b + s->k0 * g->brs + j * g->bcs;
    part.brs = g->brs;
    part.bcs = g->bcs;
    part.c = c;
    part.crs = ldc;
    flex_gemm_direct(&part, NULL, 1);
}

/* C is not kept, and all of k is one block: a row of tiles is handed on from where it was made. */
static int hands_on(const flex_gemm *g)
{
    return g->passes && g->epilogue != NULL && !flex_gemm_split_keeps_c(g);
}

int flex_gemm_split_keeps_c(const flex_gemm *g)
{
    return block_length(g->k) < g->k;
}

static void run_task(void *ctx, int64_t item, uint32_t slot)
{
    const split *s = ctx;
    const flex_gemm *g = s->g;
    int64_t piece = item / s->chunks;
    int64_t j0 = s->j0 + item % s->chunks * s->chunk;
    int64_t j1 = flex_min(j0 + s->chunk, s->j1);
    int64_t i0 = s->i0 + piece * s->piece;
    int64_t i1 = flex_min(i0 + s->piece, s->i1);
    int is_last = s->k0 + s->kc >= g->k;
    float *line = hands_on(g) ? s->lines + (int64_t)slot * LINE_FLOATS : NULL;
    for (int64_t j = j0; lays_columns(s) && s->i0 == 0 && j < j1; j += SIDE) {
        lay_columns(s, j, piece);
    }
    s->kernels->begin();
    for (int64_t i = i0; i < i1 && j0 < j1; i += SIDE) {
        if (lays_rows(s)) {
            lay_rows(s, i);
        }
        for (int64_t j = j0; j < j1; j += SIDE) {
            float *c = line != NULL ? line + (j - j0) : g->c + i * g->crs + j;
            run_tile(s, piece, i, j, c, line != NULL ? LINE_STEP : g->crs);
        }
        if (line != NULL) {
            flex_gemm_finish_at(g, line, LINE_STEP, i, flex_min(SIDE, i1 - i), j0, j1 - j0);
        } else if (is_last) {
            flex_gemm_finish(g, i, flex_min(SIDE, i1 - i), j0, j1 - j0);
        }
    }
    s->kernels->end();
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int64_t strips(int64_t n)
{
    return (n + SIDE - 1) / SIDE;
}

static void run_block(split *s)
{
    if (!lays_columns(s) && s->i0 == 0) {
        flex_share(strips(s->j1 - s->j0), s->threads, lay_columns_item, s);
    }
    if (!lays_rows(s)) {
        flex_share(strips(s->i1 - s->i0), s->threads, lay_rows_item, s);
    }
    flex_share(s->chunks * s->pieces, s->threads, run_task, s);
}

void flex_gemm_split(const flex_gemm *g, void *memory, uint32_t threads)
{
    split s;
    make_split(&s, g, memory, threads);
    int64_t length = block_length(g->k);
    for (s.j0 = 0; s.j0 < g->n; s.j0 = s.j1) {
        s.j1 = flex_min(s.j0 + s.columns, g->n);
        for (s.k0 = 0; s.k0 < g->k; s.k0 += length) {
            s.kc = flex_min(length, g->k - s.k0);
            for (s.i0 = 0; s.i0 < g->m; s.i0 = s.i1) {
                s.i1 = flex_min(s.i0 + s.rows, g->m);
                run_block(&s);
            }
        }
    }
}

int64_t flex_gemm_split_columns(const flex_gemm *g)
{
    int64_t columns = equal_parts(g->n, BLOCK_COLUMNS);
    return flex_min(equal_parts(columns, CHUNK_COLUMNS), g->n);
}
