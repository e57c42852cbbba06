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

/* Weights of rows i0 .. i0+rows over the first `keys` keys, rows `t` apart in p. */
static void weights(const tile_job *job, int64_t item, int64_t i0, int64_t rows, int64_t keys,
                    float *p, void *memory)
{
    const flex_attention *a = job->a;
    const int64_t turned[2] = {a->k.strides[3], a->k.strides[2]};
    multiply(rows, keys, a->d, head(a, &a->q, item, i0), a->q.strides + 2,
             head(a, &a->k, item, 0), turned, p, a->t, FLEX_INIT_ZERO, memory);
    for (int64_t r = 0; r < rows; r++) {
        float *line = p + r * a->t;
        int64_t seen = flex_attention_keys(a, i0 + r);
        job->table->scale(line, line, a->scale, seen);
        for (int64_t j = 0; a->mask != NULL && j < seen; j++) {
            line[j] += (float)flex_attention_mask(a, item, i0 + r, j);
        }
        double top = job->table->max(line, seen);
        if (top == -(double)INFINITY) {
            seen = 0;
        } else {
            double sum = job->table->exp(line, line, top, seen);
            job->table->scale(line, line, 1.0 / sum, seen);
        }
        memset(line + seen, 0, (size_t)(keys - seen) * sizeof(float));
    }
}

static void forward_tile(void *ctx, int64_t index, uint32_t slot)
{
    const tile_job *job = ctx;
    const flex_attention *a = job->a;
    int64_t item = index / job->tiles;
    int64_t i0 = index % job->tiles * TILE;
    int64_t rows = flex_min(TILE, a->s - i0);
    int64_t keys = flex_attention_keys(a, i0 + rows - 1);
    char *memory = job->memory + slot * job->slot_bytes;
    float *p = (float *)(void *)memory;
    void *rest = memory + flex_float_bytes(TILE * a->t);
    const int64_t dense[2] = {a->t, 1};
    weights(job, item, i0, rows, keys, p, rest);
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

static void backward_tile(const tile_job *job, int64_t item, int64_t i0, char *memory)
{
    const flex_attention *a = job->a;
    int64_t rows = flex_min(TILE, a->s - i0);
    int64_t keys = flex_attention_keys(a, i0 + rows - 1);
    float *p = (float *)(void *)memory;
    float *dp = p + flex_round_up(TILE * a->t, 16);
    void *rest = dp + flex_round_up(TILE * a->t, 16);
    const int64_t dense[2] = {a->t, 1};
    const int64_t turned[2] = {1, a->t};
    const int64_t v_turned[2] = {a->v.strides[3], a->v.strides[2]};
    const float *g = head(a, &a->g, item, i0);
    weights(job, item, i0, rows, keys, p, rest);
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
    memset(head(a, &a->gk, item, 0), 0, (size_t)(a->t * a->d) * sizeof(float));
    memset(head(a, &a->gv, item, 0), 0, (size_t)(a->t * a->e) * sizeof(float));
    for (int64_t i0 = 0; i0 < a->s; i0 += TILE) {
        backward_tile(job, item, i0, job->memory + slot * job->slot_bytes);
    }
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

uint64_t flex_attention_f32_bytes(const flex_attention *a, int gradient)
{
    return slot_bytes(a, gradient) * flex_slots(items_of(a, gradient));
}

void flex_attention_f32(const flex_attention *a, int gradient, void *memory)
{
    tile_job job = {.a = a, .table = flex_lines_of(BURN_F32), .memory = memory};
    job.slot_bytes = slot_bytes(a, gradient);
    job.tiles = (a->s + TILE - 1) / TILE;
    int64_t items = items_of(a, gradient);
    uint32_t slots = a->b * a->h * a->s * a->t < FLEX_GRAIN / 8 ? 1 : flex_slots(items);
    flex_share(items, slots, gradient ? backward_head : forward_tile, &job);
}
