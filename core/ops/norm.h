/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * norm.h - what norm.c and batch_norm.c share: moments over a set of axes, and sample rows.
 *
 * Statistics are two-pass and are centred twice: a mean rounded to the storage dtype is off by half
 * a unit, which is much when the mean is large against the deviation. Squares are of x over its own
 * size, so that a device without f64 normalizes what it cannot square. Everything is inline and
 * pure. A further norm (rms, group) builds on moments_of with its own set of axes.
 */
#ifndef BURN_CORE_OPS_NORM_H
#define BURN_CORE_OPS_NORM_H

#include "ops/nn.h"

#include <math.h>
#include <string.h>

static const burn_attr norm_attrs[] = {
    BURNI_ATTR(burn_attrs_norm, eps, BURN_ATTR_F64, BURN_ATTR_KEY, "added to the variance"),
    BURNI_ATTR(burn_attrs_norm, n_axes, BURN_ATTR_U32, BURN_ATTR_KEY,
               "layer_norm: how many of the last axes; batch_norm: 0"),
    BURNI_ATTR(burn_attrs_norm, training, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "batch_norm: 1 takes the statistics of the batch, 0 the operands mean and var"),
};
enum { N_NORM_ATTRS = 3 };

/* A set of reduced axes. */
typedef struct axis_set {
    uint32_t n;
    int64_t axes[BURN_MAX_RANK];
} axis_set;

typedef struct moments {
    burn_value *mean; /* mean, var and rstd keep the reduced axes */
    burn_value *var;
    burn_value *rstd;
    burn_value *centred;
} moments;

static inline burn_value *mean_of(const burn_builder *b, burn_value *x, const axis_set *set)
{
    return burn_b_reduce(b, BURN_OP_MEAN, x, set->n, set->axes, 1);
}

static inline burn_value *rstd_of(const burn_builder *b, burn_value *var, double eps)
{
    return burn_b_rsqrt(b, burn_b_add_num(b, var, eps));
}

static inline moments moments_of(const burn_builder *b, burn_value *x, const axis_set *set,
                                 double eps)
{
    moments m;
    burn_value *first = mean_of(b, x, set);
    burn_value *nearly = burn_b_sub(b, x, first);
    burn_value *rest = mean_of(b, nearly, set);
    m.mean = burn_b_add(b, first, rest);
    m.centred = burn_b_sub(b, nearly, rest);
    burn_value *size = burn_b_maximum_num(b, mean_of(b, burn_b_abs(b, m.centred), set), 1.0);
    burn_value *part = burn_b_div(b, m.centred, size);
    burn_value *squares = mean_of(b, burn_b_mul(b, part, part), set);
    m.var = burn_b_mul(b, burn_b_mul(b, squares, size), size);
    burn_value *rest_of_eps = burn_b_div(b, burn_b_div(b, burn_b_num(b, x, eps), size), size);
    m.rstd = burn_b_div(b, burn_b_rsqrt(b, burn_b_add(b, squares, rest_of_eps)), size);
    return m;
}

/* Gradient through (x - mean(x)) * rstd(x): rstd * (d - mean(d) - xhat * mean(d * xhat)). */
static inline burn_value *through_moments(const burn_builder *b, const moments *m, burn_value *xhat,
                                   burn_value *d, const axis_set *set)
{
    burn_value *along = burn_b_mul(b, xhat, mean_of(b, burn_b_mul(b, d, xhat), set));
    burn_value *rest = burn_b_sub(b, burn_b_sub(b, d, mean_of(b, d, set)), along);
    return burn_b_mul(b, m->rstd, rest);
}

static inline burn_value *sum_over(const burn_builder *b, burn_value *x, const axis_set *set)
{
    return set->n == 0 ? x : burn_b_reduce(b, BURN_OP_SUM, x, set->n, set->axes, 0);
}

static inline burn_value *scaled(const burn_builder *b, burn_value *x, burn_value *gamma)
{
    return gamma != NULL ? burn_b_mul(b, x, gamma) : x;
}

static inline burn_value *shifted(const burn_builder *b, burn_value *x, burn_value *beta)
{
    return beta != NULL ? burn_b_add(b, x, beta) : x;
}

/* ---- samples --------------------------------------------------------------------------------- */

enum { HAS_GAMMA = 1, HAS_BETA = 2, HAS_STATS = 4, WRONG_GAMMA = 8 };

typedef struct norm_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint32_t n_axes;
    uint32_t training;
    uint32_t has;
    double eps;
    int32_t error;
    uint32_t n_values;
    const double *values;
    uint64_t dtypes;
} norm_sample;

/* Name, attributes and x. */
static inline void begin_norm_sample(burn_sample *out, const norm_sample *s)
{
    burn_attrs_norm attrs;
    burni_sample_begin(out, s->name, 64.0, 2048.0);
    if (s->error != BURN_OK) {
        burni_sample_error(out, s->error);
    }
    if (s->n_values > 0) {
        out->flags |= BURN_SAMPLE_NO_GRAD; /* too far from 1 for differences */
    }
    out->dtypes = s->dtypes;
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    if (s->n_values > 0) {
        burni_sample_values(out, 0, s->n_values, s->values);
    }
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.eps = s->eps;
    attrs.n_axes = s->n_axes;
    attrs.training = s->training;
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
}

static inline void optional_tensor(burn_sample *out, uint32_t i, int present, uint32_t rank,
                            const int64_t *dims)
{
    if (present) {
        burni_sample_tensor(out, i, 0, BURN_FILL_NORMAL, rank, dims);
    } else {
        burni_sample_absent(out, i);
    }
}

#endif /* BURN_CORE_OPS_NORM_H */
