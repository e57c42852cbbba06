/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attention.h - one description of an attention call, shared by the f32 and the f64 kernels.
 *
 * attention.c reads the call, attention_f32.c works in tiles of queries with matrix products,
 * attention_f64.c query by query. Positions that are masked have score -inf; a query without any
 * position has weights 0. A query that has a score of NaN or +inf has weights of NaN only, the
 * masked ones too. Keys that the causal rule hides are passed over only where that changes nothing:
 * their weight 0 times a value of NaN is NaN.
 */
#ifndef BURN_PLUGINS_FLEX_ATTENTION_H
#define BURN_PLUGINS_FLEX_ATTENTION_H

#include "nn_lines.h"

#include <burn/call.h>
#include <stdint.h>

/* An array [b, h, rows, columns] with strides in elements. */
typedef struct flex_heads {
    void *data;
    int64_t strides[4];
} flex_heads;

typedef struct flex_attention {
    int64_t b;
    int64_t h;
    int64_t s; /* queries */
    int64_t t; /* keys */
    int64_t d;
    int64_t e;
    double scale;
    int causal;
    flex_heads q;
    flex_heads k;
    flex_heads v;
    flex_heads g;  /* gradient only, as all below */
    flex_heads y;  /* forward only */
    flex_heads gq;
    flex_heads gk;
    flex_heads gv;
    const burn_operand *mask; /* NULL: none */
    int64_t mask_strides[4];
} flex_attention;

/* Keys that query i may see under the causal rule: the first so many. */
static inline int64_t flex_attention_keys(const flex_attention *a, int64_t i)
{
    int64_t n = a->causal ? i + a->t - a->s + 1 : a->t;
    return n < 0 ? 0 : n < a->t ? n : a->t;
}

/* What the mask makes of score (b, h, i, j): itself, with a bias, or -inf whatever it was. */
double flex_attention_masked(const flex_attention *a, int64_t item, int64_t i, int64_t j,
                             double score);

/*
 * Are all values of a head finite, and for the gradient the scale, q, k and g? Then what the
 * causal rule hides need not be looked at.
 */
int flex_attention_finite(const flex_attention *a, const flex_lines *table, int64_t item,
                          int gradient);

uint64_t flex_attention_f32_bytes(const flex_attention *a, int gradient);
void flex_attention_f32(const flex_attention *a, int gradient, void *memory);
uint64_t flex_attention_f64_bytes(const flex_attention *a);
void flex_attention_f64(const flex_attention *a, int gradient, void *memory);

#endif /* BURN_PLUGINS_FLEX_ATTENTION_H */
