/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * generate.h - the book that the generator keeps, for its files.
 *
 * generate.c makes single steps, leaves.c those of gradients and variables, chains.c what deferral
 * is for: the same calls again and again. A function here may find that there is nothing that fits,
 * then it adds nothing. One thread; all of it follows from the program's seed.
 */
#ifndef BURN_TESTS_PROGRAMS_GENERATE_H
#define BURN_TESTS_PROGRAMS_GENERATE_H

#include "program.h"

typedef struct maker {
    program *p;
    uint64_t random;
    uint32_t depth[MAX_THREADS];
    int32_t begins[MAX_THREADS][MAX_DEPTH];
    uint8_t var_alive[MAX_VARS];
    int32_t var_value[MAX_VARS]; /* a value with the variable's meta */
    uint8_t var_tracked[MAX_VARS];
    uint32_t n_leaves;
    int64_t large; /* elements that results too large for one thread may still have in all */
    int32_t big;   /* a value that is so; NO_VALUE: none */
} maker;

static inline uint32_t draw(maker *m, uint32_t n)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n > 0 ? (uint32_t)(m->random >> 33) % n : 0;
}

static inline int chance(maker *m, uint32_t percent)
{
    return draw(m, 100) < percent;
}

static inline value *maker_at(maker *m, int32_t id)
{
    return &m->p->values[id];
}

/* A step, and a value, of which nothing is set yet. */
step *maker_step(maker *m, uint8_t kind, uint32_t thread);
int32_t maker_value(maker *m, uint32_t thread);
/* May thread `t` use the value? Others may use what was kept. */
int maker_may_use(maker *m, int32_t id, uint32_t t);
/* A living tensor that the thread may use: of that dtype, or of any; NO_VALUE: none. */
int32_t maker_find(maker *m, uint32_t t, uint8_t dtype);
/* The same for leaves. */
int32_t maker_find_leaf(maker *m, uint32_t t);
/* A constant of normal numbers; a scalar that is not 0. */
int32_t maker_plain(maker *m, uint32_t t, uint8_t dtype, uint32_t rank, const int64_t *dims);
int32_t maker_scalar(maker *m, uint32_t t, uint8_t dtype);
/* A call; its first output, NO_VALUE when it would be too much work. */
int32_t maker_op(maker *m, uint32_t t, uint64_t op, const void *attrs, uint32_t size,
                 const int32_t *in, uint32_t n_in);
void maker_begin(maker *m, uint32_t t);
void maker_end(maker *m, uint32_t t);
void maker_keep(maker *m, uint32_t t, int32_t id);
void maker_read(maker *m, uint32_t t, int32_t id);

/* ---- leaves.c -------------------------------------------------------------------------------- */

/* The value as a leaf (STEP_LEAF), or without its history (STEP_DETACH). */
int32_t maker_alias(maker *m, uint32_t t, uint8_t kind, int32_t in);
/* Gradients of that value, of any tracked value. */
void maker_backward_of(maker *m, uint32_t t, int32_t from);
void maker_backward(maker *m, uint32_t t);
void maker_var(maker *m, uint32_t t);
void maker_get_var(maker *m, uint32_t t);
void maker_set_var(maker *m, uint32_t t);
void maker_end_var(maker *m, uint32_t t);

/* ---- chains.c ------------------------------------------------------------------------------- */

/* A chain of calls, some times over. */
void maker_chains(maker *m, uint32_t t);

#endif /* BURN_TESTS_PROGRAMS_GENERATE_H */
