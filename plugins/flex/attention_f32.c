/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attention_f32.c - attention and its gradient in f32, tile of queries by tile of queries.
 *
 * Owns a tile: scores = q k^T, masked softmax, then products with v; the gradient keeps a whole
 * head in one task and adds its tiles to gk and gv in order. Scores of one tile lie in the slot's
 * scratch, so memory is TILE rows of keys, not queries times keys. Bits depend on data only.
 */
#include "attention.h"
#include "gemm.h"
#include "nn.h"
#include "nn_lines.h"

#include <math.h>
#include <string.h>

enum { TILE = 64 };

typedef struct tile_job {
    const flex_attention *a;
    const flex_lines *table;
    char *memory;
    uint64_t slot_bytes;
    int64_t tiles; /* of one head */
    uint8_t *finite; /* per head, of a causal call forward */
} tile_job;

static float *head(const flex_attention *a, const flex_heads *x, int64_t item, int64_t row)
{
    return (float *)x->data + item / a->h * x->strides[0] + item % a->h * x->strides[1] +
           row * x->strides[2];
}

/* C[m, n] (+)= A B; strides of rows and columns of A and B, C dense in columns. */
static void multiply(int64_t m, int64_t n, int64_t k, const float *a, const int64_t as[2],
                     const float *b, const int64_t bs[2], float *c, int64_t crs, uint32_t mode,
                     void *memory)
{
    flex_gemm g = {.m = m, .n = n, .k = k, .a = a, .ars = as[0], .acs = as[1]};
    g.b = b;
    g.brs = bs[0];
    g.bcs = bs[1];
    g.c = c;
    g.crs = crs;
    g.mode = mode;
    flex_gemm_serial(&g, memory);
}

static uint64_t product_bytes(int64_t m, int64_t n, int64_t k)
{
    flex_gemm g = {.m = m, .n = n, .k = k};
    return flex_gemm_bytes(&g, 1);
}

/* Softmax of `seen` scores in place, 0 where all are -inf; false: a NaN or +inf is among them. */
static int softmax(const flex_lines *table, float *line, int64_t seen)
{
    double top = table->max(line, seen);
    double sum = table->exp(line, line, top == -(double)INFINITY ? 0.0 : top, seen);
    if (isnan(sum)) {
        return 0;
    }
    table->scale(line, line, sum > 0 ? 1.0 / sum : 0.0, seen);
    return 1;
}

static void fill(float *line, float value, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        line[j] = value;
    }
}

/*
 * Weights of rows i0 .. i0+rows, `t` apart in p, over the first `keys` keys. Returns how many keys
 * must be looked at: all of them where a row is NaN, as the weights that are masked are NaN, too.
 */
static int64_t weights(const tile_job *job, int64_t item, int64_t i0, int64_t rows, int64_t keys,
                       float *p, void *memory)
{
    const flex_attention *a = job->a;
    const int64_t turned[2] = {a->k.strides[3], a->k.strides[2]};
    int nan_rows = 0;
    multiply(rows, keys, a->d, head(a, &a->q, item, i0), a->q.strides + 2,
             head(a, &a->k, item, 0), turned, p, a->t, FLEX_INIT_ZERO, memory);
    for (int64_t r = 0; r < rows; r++) {
        float *line = p + r * a->t;
        int64_t seen = flex_attention_keys(a, i0 + r);
        job->table->scale(line, line, a->scale, seen);
        for (int64_t j = 0; a->mask != NULL && j < seen; j++) {
            line[j] = (float)flex_attention_masked(a, item, i0 + r, j, (double)line[j]);
        }
        if (softmax(job->table, line, seen)) {
            fill(line + seen, 0.0F, keys - seen);
        } else {
            fill(line, NAN, keys);
            nan_rows = 1;
        }
    }
    for (int64_t r = 0; r < rows && nan_rows; r++) {
        float *line = p + r * a->t;
        fill(line + keys, isnan(line[0]) ? NAN : 0.0F, a->t - keys);
    }
    return nan_rows ? a->t : keys;
}

/* Keys that a tile of rows up to `last` looks at; what lies behind them gives nothing. */
static int64_t tile_keys(const flex_attention *a, int64_t last, int finite)
{
    return finite ? flex_attention_keys(a, last) : a->t;
}

static void forward_tile(void *ctx, int64_t index, uint32_t slot)
{
    const tile_job *job = ctx;
    const flex_attention *a = job->a;
    int64_t item = index / job->tiles;
    int64_t i0 = index % job->tiles * TILE;
    int64_t rows = flex_min(TILE, a->s - i0);
    int64_t keys = tile_keys(a, i0 + rows - 1, job->finite == NULL || job->finite[item]);
    char *memory = job->memory + slot * job->slot_bytes;
    float *p = (float *)(void *)memory;
    void *rest = memory + flex_float_bytes(TILE * a->t);
    const int64_t dense[2] = {a->t, 1};
    keys = weights(job, item, i0, rows, keys, p, rest);
    multiply(rows, a->e, keys, p, dense, head(a, &a->v, item, 0), a->v.strides + 2,
             head(a, &a->y, item, i0), a->y.strides[2], FLEX_INIT_ZERO, rest);
}

/* Turns dP into scale * dS, row by row: p * (dp - sum(dp * p)). */
static void score_gradients(const tile_job *job, int64_t rows, int64_t keys, const float *p,
                            float *dp)
{
    int64_t t = job->a->t;
    for (int64_t r = 0; r < rows; r++) {
        double sum = job->table->dot(p + r * t, dp + r * t, keys);
        job->table->softmax_grad(dp + r * t, p + r * t, dp + r * t, sum, keys);
        job->table->scale(dp + r * t, dp + r * t, job->a->scale, keys);
    }
}

static void backward_tile(const tile_job *job, int64_t item, int64_t i0, int finite, char *memory)
{
    const flex_attention *a = job->a;
    int64_t rows = flex_min(TILE, a->s - i0);
    int64_t keys = tile_keys(a, i0 + rows - 1, finite);
    float *p = (float *)(void *)memory;
    float *dp = p + flex_round_up(TILE * a->t, 16);
    void *rest = dp + flex_round_up(TILE * a->t, 16);
    const int64_t dense[2] = {a->t, 1};
    const int64_t turned[2] = {1, a->t};
    const int64_t v_turned[2] = {a->v.strides[3], a->v.strides[2]};
    const float *g = head(a, &a->g, item, i0);
    keys = weights(job, item, i0, rows, keys, p, rest);
    multiply(keys, a->e, rows, p, turned, g, a->g.strides + 2, head(a, &a->gv, item, 0),
             a->gv.strides[2], FLEX_INIT_C, rest);
    multiply(rows, keys, a->e, g, a->g.strides + 2, head(a, &a->v, item, 0), v_turned, dp, a->t,
             FLEX_INIT_ZERO, rest);
    score_gradients(job, rows, keys, p, dp);
    multiply(rows, a->d, keys, dp, dense, head(a, &a->k, item, 0), a->k.strides + 2,
             head(a, &a->gq, item, i0), a->gq.strides[2], FLEX_INIT_ZERO, rest);
    multiply(keys, a->d, rows, dp, turned, head(a, &a->q, item, i0), a->q.strides + 2,
             head(a, &a->gk, item, 0), a->gk.strides[2], FLEX_INIT_C, rest);
}

static void backward_head(void *ctx, int64_t item, uint32_t slot)
{
    const tile_job *job = ctx;
    const flex_attention *a = job->a;
    int finite = !a->causal || flex_attention_finite(a, job->table, item, 1);
    memset(head(a, &a->gk, item, 0), 0, (size_t)(a->t * a->d) * sizeof(float));
    memset(head(a, &a->gv, item, 0), 0, (size_t)(a->t * a->e) * sizeof(float));
    for (int64_t i0 = 0; i0 < a->s; i0 += TILE) {
        backward_tile(job, item, i0, finite, job->memory + slot * job->slot_bytes);
    }
}

static void look_at_head(void *ctx, int64_t item, uint32_t slot)
{
    const tile_job *job = ctx;
    (void)slot;
    job->finite[item] = (uint8_t)flex_attention_finite(job->a, job->table, item, 0);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t slot_bytes(const flex_attention *a, int gradient)
{
    uint64_t bytes = larger(product_bytes(TILE, a->t, a->d), product_bytes(TILE, a->e, a->t));
    uint64_t scores = flex_float_bytes(TILE * a->t);
    if (gradient) {
        bytes = larger(bytes, product_bytes(a->t, a->e, TILE));
        bytes = larger(bytes, product_bytes(TILE, a->t, a->e));
        bytes = larger(bytes, product_bytes(TILE, a->d, a->t));
        bytes = larger(bytes, product_bytes(a->t, a->d, TILE));
        scores *= 2;
    }
    return scores + bytes;
}

static int64_t items_of(const flex_attention *a, int gradient)
{
    return gradient ? a->b * a->h : a->b * a->h * ((a->s + TILE - 1) / TILE);
}

/* Where heads are told apart that hold NaN or inf. */
static uint64_t finite_bytes(const flex_attention *a, int gradient)
{
    return !gradient && a->causal ? (uint64_t)flex_round_up(a->b * a->h, 64) : 0;
}

uint64_t flex_attention_f32_bytes(const flex_attention *a, int gradient)
{
    return slot_bytes(a, gradient) * flex_slots(items_of(a, gradient)) +
           finite_bytes(a, gradient);
}

void flex_attention_f32(const flex_attention *a, int gradient, void *memory)
{
    tile_job job = {.a = a, .table = flex_lines_of(BURN_F32), .memory = memory};
    job.slot_bytes = slot_bytes(a, gradient);
    job.tiles = (a->s + TILE - 1) / TILE;
    int64_t items = items_of(a, gradient);
    uint32_t slots = a->b * a->h * a->s * a->t < FLEX_GRAIN / 8 ? 1 : flex_slots(items);
    if (finite_bytes(a, gradient) > 0) {
        job.finite = (uint8_t *)memory + job.slot_bytes * flex_slots(items);
        flex_share(a->b * a->h, slots, look_at_head, &job);
    }
    flex_share(items, slots, gradient ? backward_head : forward_tile, &job);
}
