/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random.h - elements of random ops, any range of them: for the single ops and for fused programs.
 *
 * Owns no state: a flex_random is what one launch needs, on the stack of whoever makes it. Element
 * i depends on seed, counter and i (and x's element i), never on where a range begins or ends. To
 * add an op: random.c.
 */
#ifndef BURN_PLUGINS_FLEX_RANDOM_H
#define BURN_PLUGINS_FLEX_RANDOM_H

#include "flex.h"

#define FLEX_RANDOM_NONE UINT8_MAX

typedef struct flex_random flex_random;
/* Makes n elements. `words` are those of a tile in which `skip` elements come before them; `in`
 * and `out` begin at the first of them. */
typedef void (*flex_random_fill)(const flex_random *g, void *out, const void *in, uint64_t skip,
                                 uint64_t n, const uint32_t *words);

/* Which operand of an op is what; FLEX_RANDOM_NONE: it has none. */
typedef struct flex_random_kind {
    uint64_t op;
    flex_random_fill fill;
    uint8_t x;      /* the tensor */
    uint8_t chance; /* the probability */
    uint8_t first;  /* the seed; the counter comes behind it */
    uint8_t zero[5];
} flex_random_kind;

struct flex_random {
    flex_random_fill fill;
    uint64_t seed;
    uint64_t counter;
    uint32_t words_per_element;
    float chance;
    double scale;
    char one[8]; /* bernoulli */
    uint8_t dtype;
    uint8_t zero[7];
};

/* NULL: no random op. [any] */
const flex_random_kind *flex_random_of(uint64_t op);
/* From the data of the operands; `chance` NULL where there is none. */
void flex_random_start(flex_random *g, const flex_random_kind *kind, uint8_t dtype,
                       const void *seed, const void *counter, const void *chance);
/* Elements first .. first + n - 1 to `out`, from those of x in `in` (dense; may be `out`). */
void flex_random_elements(const flex_random *g, void *out, const void *in, uint64_t first,
                          uint64_t n);

#endif /* BURN_PLUGINS_FLEX_RANDOM_H */
