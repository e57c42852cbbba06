/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attention_f64.c - attention and its gradient in f64 as plain loops, one head per task.
 *
 * Owns one query at a time: its weights lie in the slot's scratch, and everything is added up in
 * the order of queries and keys.
 */
#include "attention.h"
#include "nn.h"

#include <math.h>
#include <string.h>

typedef struct head_job {
    const flex_attention *a;
    char *memory;
    int gradient;
} head_job;

static double *at(const flex_attention *a, const flex_heads *x, int64_t item, int64_t row)
{
    return (double *)x->data + item / a->h * x->strides[0] + item % a->h * x->strides[1] +
           row * x->strides[2];
}

static double dot(const double *x, int64_t xs, const double *y, int64_t ys, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i * xs] * y[i * ys];
    }
    return sum;
}

/* to[c] += by * from[c] */
static void add_scaled(double *to, int64_t to_step, const double *from, int64_t from_step,
                       double by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i * to_step] += by * from[i * from_step];
    }
}

/* The masked scores of query i over the first `keys` keys; returns the largest but for NaN. */
static double scores(const flex_attention *a, int64_t item, int64_t i, int64_t keys, double *p)
{
    double top = -(double)INFINITY;
    const double *q = at(a, &a->q, item, i);
    for (int64_t j = 0; j < keys; j++) {
        const double *k = at(a, &a->k, item, j);
        p[j] = a->scale * dot(q, a->q.strides[3], k, a->k.strides[3], a->d);
        p[j] = a->mask != NULL ? flex_attention_masked(a, item, i, j, p[j]) : p[j];
        top = p[j] > top ? p[j] : top;
    }
    return top;
}

/* Weights of query i to all keys; returns how many of them must be looked at. */
static int64_t weights(const flex_attention *a, int64_t item, int64_t i, int finite, double *p)
{
    int64_t keys = flex_attention_keys(a, i);
    double top = scores(a, item, i, keys, p);
    double shift = top == -(double)INFINITY ? 0.0 : top;
    double sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        p[j] = exp(p[j] - shift);
        sum += p[j];
    }
    for (int64_t j = 0; j < a->t; j++) {
        double weight = j < keys && sum != 0 ? p[j] / sum : 0.0;
        p[j] = isnan(sum) ? (double)NAN : weight;
    }
    return finite && !isnan(sum) ? keys : a->t;
}

static void forward_query(const flex_attention *a, int64_t item, int64_t i, int finite, double *p)
{
    double *y = at(a, &a->y, item, i);
    int64_t keys = weights(a, item, i, finite, p);
    memset(y, 0, (size_t)a->e * sizeof(double));
    for (int64_t j = 0; j < keys; j++) {
        add_scaled(y, 1, at(a, &a->v, item, j), a->v.strides[3], p[j], a->e);
    }
}

static void backward_query(const flex_attention *a, int64_t item, int64_t i, int finite, double *p,
                           double *dp)
{
    const double *g = at(a, &a->g, item, i);
    const double *q = at(a, &a->q, item, i);
    double *gq = at(a, &a->gq, item, i);
    int64_t keys = weights(a, item, i, finite, p);
    double sum = 0;
    memset(gq, 0, (size_t)a->d * sizeof(double));
    for (int64_t j = 0; j < keys; j++) {
        dp[j] = dot(g, a->g.strides[3], at(a, &a->v, item, j), a->v.strides[3], a->e);
        sum += dp[j] * p[j];
        add_scaled(at(a, &a->gv, item, j), 1, g, a->g.strides[3], p[j], a->e);
    }
    for (int64_t j = 0; j < keys; j++) {
        double ds = a->scale * p[j] * (dp[j] - sum);
        add_scaled(gq, 1, at(a, &a->k, item, j), a->k.strides[3], ds, a->d);
        add_scaled(at(a, &a->gk, item, j), 1, q, a->q.strides[3], ds, a->d);
    }
}

static void one_head(void *ctx, int64_t item, uint32_t slot)
{
    const head_job *job = ctx;
    const flex_attention *a = job->a;
    double *p = (double *)(void *)(job->memory + slot * 2 * flex_line_bytes(a->t));
    double *dp = p + flex_round_up(a->t, 8);
    int finite = a->causal && flex_attention_finite(a, &flex_lines_f64, item, job->gradient);
    if (job->gradient) {
        memset(at(a, &a->gk, item, 0), 0, (size_t)(a->t * a->d) * sizeof(double));
        memset(at(a, &a->gv, item, 0), 0, (size_t)(a->t * a->e) * sizeof(double));
    }
    for (int64_t i = 0; i < a->s; i++) {
        if (job->gradient) {
            backward_query(a, item, i, finite, p, dp);
        } else {
            forward_query(a, item, i, finite, p);
        }
    }
}

uint64_t flex_attention_f64_bytes(const flex_attention *a)
{
    return 2 * flex_line_bytes(a->t) * flex_slots(a->b * a->h);
}

void flex_attention_f64(const flex_attention *a, int gradient, void *memory)
{
    head_job job = {a, memory, gradient};
    flex_share(a->b * a->h, flex_slots(a->b * a->h), one_head, &job);
}
