/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * leaves.c - leaves, backward passes and variables of a program.
 *
 * Each tracked value knows the leaves that it is made from, so that passes mostly ask for gradients
 * that there are; a few ask for others. Of a variable each handle is the same leaf. Which gradient
 * is what judge.c finds out for itself. To add a step that makes a leaf: set `leaf` and `leaves`.
 */
#include "generate.h"

/* Variables have the first bits; of too many leaves some share one. */
static uint64_t leaf_bit(uint32_t leaf)
{
    return UINT64_C(1) << (MAX_VARS + leaf % (64 - MAX_VARS));
}

/* The value as a leaf, or without its history. */
int32_t maker_alias(maker *m, uint32_t t, uint8_t kind, int32_t in)
{
    step *s = maker_step(m, kind, t);
    s->n_in = 1;
    s->in[0] = in;
    s->n_out = 1;
    s->out[0] = maker_value(m, t);
    value *v = maker_at(m, s->out[0]);
    v->host.meta = maker_at(m, in)->host.meta;
    v->known = 1;
    v->tracked = kind == STEP_LEAF;
    v->leaf = v->tracked;
    v->leaves = v->leaf ? leaf_bit(m->n_leaves++) : 0;
    return s->out[0];
}

/* A tracked value; mostly one that was made from a leaf. */
static int32_t find_root(maker *m, uint32_t t)
{
    int32_t root = NO_VALUE;
    for (uint32_t k = 0; k < 24; k++) {
        int32_t id = maker_find(m, t, BURN_DTYPE_NONE);
        if (id == NO_VALUE || !maker_at(m, id)->tracked) {
            continue;
        }
        root = id;
        if (!maker_at(m, id)->leaf || chance(m, 10)) {
            break;
        }
    }
    return root;
}

/* Gradients of a tracked value by up to three leaves; a few of which it does not depend on. */
void maker_backward_of(maker *m, uint32_t t, int32_t from)
{
    const burn_meta meta = maker_at(m, from)->host.meta;
    int seeded = maker_at(m, from)->known && chance(m, 75);
    int32_t seed = seeded ? maker_plain(m, t, meta.dtype, meta.rank, meta.dims) : NO_VALUE;
    step *s = maker_step(m, STEP_BACKWARD, t);
    s->retain = chance(m, 85) ? (chance(m, 30) ? BURN_GRAD_CREATE : BURN_GRAD_RETAIN) : 0;
    s->n_in = 1;
    s->in[0] = from;
    uint64_t leaves = maker_at(m, from)->leaves;
    int any = chance(m, 10);
    for (int32_t id = 0; id < (int32_t)m->p->n_values && s->n_out < 3; id++) {
        value *v = maker_at(m, id);
        if (maker_may_use(m, id, t) && v->leaf && v->known && (any || (v->leaves & leaves) != 0)) {
            s->in[s->n_in++] = id;
            int32_t grad = maker_value(m, t);
            s->out[s->n_out++] = grad;
            maker_at(m, grad)->host.meta = maker_at(m, id)->host.meta;
            maker_at(m, grad)->absent = 1;
        }
    }
    if (seed != NO_VALUE) {
        s->in[s->n_in++] = seed;
    }
}

void maker_backward(maker *m, uint32_t t)
{
    int32_t from = find_root(m, t);
    if (from != NO_VALUE) {
        maker_backward_of(m, t, from);
    }
}

void maker_var(maker *m, uint32_t t)
{
    int32_t in = maker_find(m, t, chance(m, 80) ? BURN_F32 : BURN_DTYPE_NONE);
    if (m->p->n_vars == MAX_VARS || in == NO_VALUE || !maker_at(m, in)->known) {
        return;
    }
    step *s = maker_step(m, STEP_VAR_NEW, t);
    s->n_in = 1;
    s->in[0] = in;
    s->var = (int32_t)m->p->n_vars++;
    s->retain = chance(m, 60); /* tracked */
    m->var_alive[s->var] = 1;
    m->var_value[s->var] = in;
    m->var_tracked[s->var] = (uint8_t)s->retain;
}

static int32_t pick_var(maker *m)
{
    uint32_t n = m->p->n_vars;
    uint32_t start = draw(m, n);
    for (uint32_t k = 0; k < n; k++) {
        if (m->var_alive[(start + k) % n]) {
            return (int32_t)((start + k) % n);
        }
    }
    return -1;
}

void maker_get_var(maker *m, uint32_t t)
{
    int32_t var = pick_var(m);
    if (var < 0) {
        return;
    }
    step *s = maker_step(m, STEP_VAR_GET, t);
    s->var = var;
    s->n_out = 1;
    s->out[0] = maker_value(m, t);
    value *v = maker_at(m, s->out[0]);
    v->host.meta = maker_at(m, m->var_value[var])->host.meta;
    v->known = 1;
    v->tracked = m->var_tracked[var] && conf_is_float(v->host.meta.dtype);
    v->leaf = v->tracked;
    v->leaves = v->leaf ? UINT64_C(1) << var : 0;
}

void maker_set_var(maker *m, uint32_t t)
{
    int32_t var = pick_var(m);
    if (var < 0) {
        return;
    }
    const burn_meta *meta = &maker_at(m, m->var_value[var])->host.meta;
    int32_t in = maker_find(m, t, meta->dtype);
    int fits = in != NO_VALUE && conf_same_shape(&maker_at(m, in)->host.meta, meta);
    if (!fits && chance(m, 85)) {
        in = maker_plain(m, t, meta->dtype, meta->rank, meta->dims);
    }
    if (in == NO_VALUE) {
        return;
    }
    int steps = meta->dtype == BURN_F32 && chance(m, 40);
    step *s = maker_step(m, steps ? STEP_VAR_STEP : STEP_VAR_SET, t);
    s->var = var;
    s->n_in = 1;
    s->in[0] = in;
}

void maker_end_var(maker *m, uint32_t t)
{
    int32_t var = pick_var(m);
    if (var >= 0) {
        maker_step(m, STEP_VAR_END, t)->var = var;
        m->var_alive[var] = 0;
    }
}

