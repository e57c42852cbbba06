/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise.h - what the pointwise families (unary, binary, compare, select) and reductions share.
 *
 * Owns no op. Three parts: walking broadcast operands in eval, small values in builder code, and
 * sample sets that a domain (where an op is defined and smooth) parameterises. Integer results of
 * eval are computed modulo 2^64; the harness wraps them to the dtype. To add a sample set: declare
 * it here, define it in pointwise.c.
 */
#ifndef BURN_CORE_OPS_POINTWISE_H
#define BURN_CORE_OPS_POINTWISE_H

#include "ops/rules.h"

#include <burn/build.h>

/* Row-major walk over output 0: k is the output element, at[i] the element of input i. */
typedef struct burni_walk {
    const burn_eval *a;
    uint64_t k;
    uint64_t at[3];
    int64_t index[BURN_MAX_RANK];
    int64_t strides[3][BURN_MAX_RANK];
} burni_walk;

/* Both return 0 when nothing is left. Absent inputs stay at element 0. */
int burni_walk_begin(burni_walk *w, const burn_eval *a);
int burni_walk_next(burni_walk *w);

typedef double (*burni_f1)(double x);
typedef int64_t (*burni_i1)(int64_t x);
typedef uint64_t (*burni_u1)(uint64_t x);
typedef double (*burni_f2)(double x, double y);
typedef int64_t (*burni_i2)(int64_t x, int64_t y);
typedef uint64_t (*burni_u2)(uint64_t x, uint64_t y);

/* Evaluate one function per dtype class; NULL where the roles exclude the class. */
int32_t burni_map1(const burn_eval *a, burni_f1 f, burni_i1 i, burni_u1 u);
int32_t burni_map2(const burn_eval *a, burni_f2 f, burni_i2 i, burni_u2 u);

/*
 * Is element `at` of x to be preferred to element `best`, as a maximum (larger) or minimum? NaN
 * beats all but an earlier NaN; otherwise strictly, so that the lowest index wins.
 */
int burni_prefer(const burn_eval_operand *x, uint64_t at, uint64_t best, int larger);

/* v as a tensor: an immediate becomes a rank 0 tensor, so that any op takes it. */
burn_value *burni_b_tensor(const burn_builder *b, burn_value *v);
/* f16 and bf16 become f32, other dtypes pass; and back to `dtype`. */
burn_value *burni_b_widen(const burn_builder *b, burn_value *x);
burn_value *burni_b_narrow(const burn_builder *b, burn_value *x, uint8_t dtype);
/* An order-reversing map without overflow: -x for floats, ~x for integers. */
burn_value *burni_b_reverse(const burn_builder *b, burn_value *x);
int burni_is_float(uint8_t dtype);

/* Where an op is tried. Values of `points` are tried forward only. */
typedef struct burni_domain {
    uint8_t fill;
    uint8_t fill_y; /* of the second operand */
    uint8_t wrong;  /* a dtype that must be refused, 0 when there is none */
    uint8_t flags; /* BURN_SAMPLE_ABSOLUTE, BURN_SAMPLE_ANY_ZERO */
    uint32_t n_points;
    double lo;
    double hi;
    double lo_y;
    double hi_y;
    double number; /* the immediate that takes the place of either operand */
    double tolerance;
    double grad_tolerance;
    uint64_t special; /* dtypes that are tried with special values */
    uint64_t signed_points; /* dtypes of the points, 0: all */
    const double *points;
    const double *points_y;
} burni_domain;

int32_t burni_samples_unary(uint32_t i, burn_sample *s, const burni_domain *d);
int32_t burni_samples_binary(uint32_t i, burn_sample *s, const burni_domain *d);

#endif /* BURN_CORE_OPS_POINTWISE_H */
