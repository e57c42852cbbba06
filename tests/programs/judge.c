/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * judge.c - gradients of a checked run against differences of `eval`, in double.
 *
 * A device's gradient g of a leaf is judged by a number that no gradient function had part in: for
 * a random direction d of the leaf, sum(g * d) is how the pass's root changes along d. So d is
 * carried forward through the steps that lie between, by central differences of each op's eval at
 * the values which the device had. What rounding in the device's pass may do to the sum follows
 * from it, too: an error of one gradient's element on the way counts as much as one of the same
 * relative size of the direction's element at that place, and the terms of a gradient's element sum
 * to what those of the direction do; so directions are disturbed there by what the op's kernels may
 * be off (a few times, at random). Where a step has no derivative nothing can
 * be said: such sums are counted. Called when nobody else is at work.
 */
#include "execute.h"

#include <burn_sdk/plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* As in check.c: samples of the disturbance, and what covers their luck; twice as much as there,
 * for a gradient function may be a whole decomposition. */
#define SAMPLES 6
#define SAFETY  24.0
/* Roundings of a gradient function beside those of the op's kernels. */
#define MORE_ROUNDINGS 4.0
/* Differences of eval are no better than this. */
#define LEAST_EPS 1e-9
#define STEP      1e-5
/* A tolerance beyond this part of the sum's terms compares nothing. */
#define WIDE      (1.0 / 16)

/* What one run of a direction through the steps knows. Lane 0 is the direction itself. */
typedef struct journey {
    context *c;
    conf_arena arena;
    double *lanes[1 + SAMPLES][MAX_VALUES]; /* NULL: nothing changes */
    uint8_t needed[MAX_VALUES];             /* the root depends on it */
    uint64_t through[4];                    /* as in the tally */
    double lost; /* what gradients that underflow on the way may take from the sum */
    uint64_t random;
    int kink;
    int infinite;
} journey;

/* ---- one step -------------------------------------------------------------------------------- */

static int carries(const burn_role *role, const conf_value *v)
{
    return v->f != NULL && v->meta.kind == BURN_TENSOR && (role->flags & BURN_ROLE_NO_GRAD) == 0;
}

/* One step of an op: its operands as the device had them, and where they go. */
typedef struct local {
    journey *j;
    const step *s;
    conf_value in[MAX_USES];
    const double *way[MAX_USES]; /* of the operands, in one lane */
    double h;
} local;

/* The outputs at the operands moved by `by` * way. */
static int32_t outputs_at(const local *l, double by, conf_value *out)
{
    conf_value in[MAX_USES];
    burn_err err = BURN_ERR_INIT;
    memcpy(in, l->in, sizeof(in));
    for (uint32_t i = 0; i < l->s->n_in; i++) {
        if (l->way[i] == NULL) {
            continue;
        }
        in[i].f = conf_alloc(&l->j->arena, in[i].n * sizeof(double));
        for (uint64_t k = 0; k < in[i].n; k++) {
            in[i].f[k] = l->in[i].f[k] + by * l->way[i][k];
        }
    }
    return conf_evaluate_exact(&l->j->arena, l->s->def, l->s->attrs, l->s->attrs_size, in,
                               l->s->n_in, out, l->s->n_out, &err);
}

/* The step along the way that moves no operand by more than STEP of itself (or of 1). */
static double step_size(const local *l)
{
    double most = 0;
    for (uint32_t i = 0; i < l->s->n_in; i++) {
        for (uint64_t k = 0; l->way[i] != NULL && k < l->in[i].n; k++) {
            most = fmax(most, fabs(l->way[i][k]) / fmax(1.0, fabs(l->in[i].f[k])));
        }
    }
    return most > 0 ? STEP / most : 0;
}

static void note_finite(journey *j, const double *x, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++) {
        j->infinite |= !isfinite(x[k]);
    }
}

/* Both sides must change alike, and a smaller step must give the same. */
static void note_kinks(const local *l, uint32_t out, const double *change)
{
    conf_value here[MAX_OUTS];
    conf_value up[MAX_OUTS];
    conf_value down[MAX_OUTS];
    double h = l->h / 4;
    if (outputs_at(l, 0, here) != BURN_OK || outputs_at(l, h, up) != BURN_OK ||
        outputs_at(l, -h, down) != BURN_OK) {
        l->j->kink = 1;
        return;
    }
    double size = 0;
    for (uint64_t k = 0; k < here[out].n; k++) {
        size = fmax(size, fabs(change[k]));
    }
    for (uint64_t k = 0; k < here[out].n; k++) {
        double above = (up[out].f[k] - here[out].f[k]) / h;
        double below = (here[out].f[k] - down[out].f[k]) / h;
        double noise = 1e-14 * fabs(here[out].f[k]) / h;
        double both = (above + below) / 2;
        double slack = 1e-6 * size + noise;
        int bent = fabs(above - below) > 1e-2 * fmax(fabs(above), fabs(below)) + slack;
        int unsure = fabs(both - change[k]) > slack;
        l->j->kink |= bent || unsure;
    }
}

static void note_underflow(const local *l, uint8_t dtype, const double *change, uint64_t n)
{
    double each = (check_tolerance(l->s->def) + MORE_ROUNDINGS) * check_tiny(dtype);
    for (uint64_t k = 0; k < n; k++) {
        l->j->lost += each * fabs(change[k]);
    }
}

/* How output `out` changes along the lane's way. */
static double *change_of(const local *l, uint32_t out, const conf_value *up, const conf_value *down)
{
    uint64_t n = up[out].n;
    double *change = conf_alloc(&l->j->arena, n * sizeof(*change));
    for (uint64_t k = 0; k < n; k++) {
        double apart = up[out].f[k] - down[out].f[k];
        change[k] = l->h > 0 ? apart / (2 * l->h) : 0.0;
    }
    note_finite(l->j, change, n);
    return change;
}

static double eps_of(const step *s, uint8_t dtype)
{
    return (check_tolerance(s->def) + MORE_ROUNDINGS) * fmax(burn_epsilon(dtype), LEAST_EPS);
}

static double *disturbed(journey *j, const double *x, uint64_t n, double eps)
{
    double *to = conf_alloc(&j->arena, n * sizeof(*to));
    j->random++;
    for (uint64_t k = 0; k < n; k++) {
        to[k] = x[k] * (1.0 + eps * (2.0 * conf_uniform(j->random, k) - 1.0));
    }
    return to;
}

/* The lane's way for the operands; of lanes that are disturbed, each in its own way. */
static void set_ways(local *l, uint32_t lane)
{
    journey *j = l->j;
    for (uint32_t i = 0; i < l->s->n_in; i++) {
        int32_t id = l->s->in[i];
        int moves = id != NO_VALUE && carries(conf_role_in(l->s->def, i), &l->in[i]);
        const double *way = moves ? j->lanes[lane][id] : NULL;
        int exact = way == NULL || lane == 0;
        l->way[i] = exact ? way
                          : disturbed(j, way, l->in[i].n, eps_of(l->s, l->in[i].meta.dtype));
    }
    l->h = step_size(l);
}

/* The ways with random signs: what comes out is as large as the terms that are summed, where the
 * ways themselves may cancel. */
static void set_signs(local *l)
{
    for (uint32_t i = 0; i < l->s->n_in; i++) {
        if (l->way[i] == NULL) {
            continue;
        }
        double *way = conf_alloc(&l->j->arena, l->in[i].n * sizeof(*way));
        l->j->random++;
        for (uint64_t k = 0; k < l->in[i].n; k++) {
            way[k] = conf_uniform(l->j->random, k) < 0.5 ? -l->way[i][k] : l->way[i][k];
        }
        l->way[i] = way;
    }
}

/* Adds up to eps of the terms to each change. */
static void disturb_by_terms(local *l, double *const *changes)
{
    conf_value up[MAX_OUTS];
    conf_value down[MAX_OUTS];
    set_signs(l);
    if (outputs_at(l, l->h, up) != BURN_OK || outputs_at(l, -l->h, down) != BURN_OK) {
        l->j->kink = 1;
        return;
    }
    for (uint32_t o = 0; o < l->s->n_out; o++) {
        if (changes[o] == NULL) {
            continue;
        }
        const double *terms = change_of(l, o, up, down);
        double eps = eps_of(l->s, up[o].meta.dtype);
        l->j->random++;
        for (uint64_t k = 0; k < up[o].n; k++) {
            changes[o][k] += terms[k] * eps * (2.0 * conf_uniform(l->j->random, k) - 1.0);
        }
    }
}

static void do_lane(local *l, uint32_t lane)
{
    journey *j = l->j;
    const step *s = l->s;
    conf_value up[MAX_OUTS];
    conf_value down[MAX_OUTS];
    double *changes[MAX_OUTS] = {NULL};
    set_ways(l, lane);
    if (outputs_at(l, l->h, up) != BURN_OK || outputs_at(l, -l->h, down) != BURN_OK) {
        j->kink = 1;
        return;
    }
    for (uint32_t o = 0; o < s->n_out; o++) {
        if (!j->needed[s->out[o]] || !carries(conf_role_out(s->def, o), &up[o])) {
            continue;
        }
        changes[o] = change_of(l, o, up, down);
        j->lanes[lane][s->out[o]] = changes[o];
        if (lane == 0 && !j->infinite) {
            note_kinks(l, o, changes[o]);
            note_underflow(l, up[o].meta.dtype, changes[o], up[o].n);
        }
    }
    if (lane > 0) {
        disturb_by_terms(l, changes);
    }
}

static void note_op(journey *j, const burn_op_def *def)
{
    for (uint32_t k = 0; k < burn_op_count() && k < 256; k++) {
        if (burn_op_at(k) == def) {
            j->through[k / 64] |= UINT64_C(1) << k % 64;
        }
    }
}

static void pass_op(journey *j, const step *s)
{
    local l;
    int any = 0;
    int needed = 0;
    memset(&l, 0, sizeof(l));
    l.j = j;
    l.s = s;
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (s->in[i] == NO_VALUE) {
            continue;
        }
        const value *v = &j->c->p->values[s->in[i]];
        int number = v->host.meta.kind == BURN_IMMEDIATE;
        if (!number && j->c->codes[s->in[i]] != BURN_OK) {
            return;
        }
        l.in[i] = number ? v->host : j->c->cache[s->in[i]];
        any |= j->lanes[0][s->in[i]] != NULL;
    }
    for (uint32_t k = 0; k < s->n_out; k++) {
        needed |= j->needed[s->out[k]] && j->c->codes[s->out[k]] == BURN_OK;
    }
    if (any && needed) {
        note_op(j, s->def);
    }
    for (uint32_t lane = 0; lane <= SAMPLES && any && needed && s->def->no_vjp == NULL; lane++) {
        do_lane(&l, lane);
    }
}

/* ---- from a leaf to the root ----------------------------------------------------------------- */

/* Is the value a handle of that leaf? A variable's handles all are of one. */
static int is_leaf(const context *c, int32_t id, int32_t leaf)
{
    int32_t vars[2] = {-1, -2};
    for (uint32_t i = 0; i < c->p->n_steps; i++) {
        const step *s = &c->p->steps[i];
        if (!s->dropped && s->kind == STEP_VAR_GET) {
            vars[0] = s->out[0] == id ? s->var : vars[0];
            vars[1] = s->out[0] == leaf ? s->var : vars[1];
        }
    }
    return id == leaf || vars[0] == vars[1];
}

static void mark_needed(journey *j, int32_t at, int32_t root)
{
    j->needed[root] = 1;
    for (int32_t i = at - 1; i >= 0; i--) {
        const step *s = &j->c->p->steps[i];
        int needed = 0;
        for (uint32_t k = 0; k < s->n_out && s->kind == STEP_OP && !s->dropped; k++) {
            needed |= j->needed[s->out[k]];
        }
        for (uint32_t k = 0; k < s->n_in && needed; k++) {
            if (s->in[k] != NO_VALUE) {
                j->needed[s->in[k]] = 1;
            }
        }
    }
}

static void carry(journey *j, int32_t at, int32_t leaf, double *direction)
{
    for (int32_t i = 0; i < at && !j->kink && !j->infinite; i++) {
        const step *s = &j->c->p->steps[i];
        if (s->dropped) {
            continue;
        }
        int begins = (s->kind == STEP_LEAF || s->kind == STEP_VAR_GET) &&
                     is_leaf(j->c, s->out[0], leaf);
        for (uint32_t lane = 0; begins && lane <= SAMPLES; lane++) {
            j->lanes[lane][s->out[0]] = direction;
        }
        if (s->kind == STEP_OP) {
            pass_op(j, s);
        }
    }
}

/* How the seed weighs a change of the root; without one, its elements count alike. */
static double sum_of(const double *x, uint64_t n, const double *seed)
{
    double sum = 0;
    for (uint64_t k = 0; k < n && x != NULL; k++) {
        sum += seed != NULL ? x[k] * seed[k] : x[k];
    }
    return sum;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Sparse directions see single elements, and meet fewer kinks. */
static double *make_direction(journey *j, uint64_t n, int sparse)
{
    double *d = conf_alloc(&j->arena, n * sizeof(*d));
    uint64_t random = ++j->random;
    uint64_t one = (uint64_t)(conf_uniform(random + 1, n) * (double)n);
    for (uint64_t k = 0; k < n; k++) {
        double u = conf_uniform(random, k);
        int in = !sparse || k == one || conf_uniform(random + 1, k) * (double)n < 2.0;
        d[k] = in ? (u < 0.5 ? u - 1.0 : u) : 0.0;
    }
    j->random++;
    return d;
}

static void compare(journey *j, int32_t at, const double *direction, int32_t code,
                    const conf_value *grad)
{
    char text[300];
    tally *t = &j->c->r->count;
    const step *s = &j->c->p->steps[at];
    int32_t root = s->in[0];
    uint64_t n = j->c->cache[root].n;
    int32_t weights = s->n_in > 1 + s->n_out ? s->in[1 + s->n_out] : NO_VALUE;
    const double *seed = weights != NO_VALUE ? j->c->cache[weights].f : NULL;
    double got = 0;
    double terms = 0;
    for (uint64_t k = 0; code == BURN_OK && k < grad->n; k++) {
        double term = direction[k] != 0 ? grad->f[k] * direction[k] : 0.0;
        got += term;
        terms += term * term;
    }
    double want = sum_of(j->lanes[0][root], n, seed);
    double spread = 0;
    for (uint32_t lane = 1; lane <= SAMPLES; lane++) {
        double off = sum_of(j->lanes[lane][root], n, seed) - want;
        spread += off * off / SAMPLES;
    }
    double allowed = SAFETY * sqrt(spread) + j->lost + LEAST_EPS * (fabs(want) + sqrt(terms));
    if (!isfinite(got) || !isfinite(want) || !isfinite(allowed)) {
        t->infinite++;
    } else if (fabs(got - want) > allowed) {
        (void)snprintf(text, sizeof(text), "its gradient gives %.9g along a direction, differences "
                       "of eval %.9g (allowed %.3g)", got, want, allowed);
        execute_fail(j->c, at, text);
    } else if (got != want && allowed > WIDE * fmax(fabs(want), sqrt(terms))) {
        t->too_wide++;
    } else {
        t->gradients++;
        t->zero += want == 0 && got == 0;
        for (uint32_t k = 0; k < COUNT_OF(t->through) && want != 0; k++) {
            t->through[k] |= j->through[k];
        }
    }
}

static void judge_one(context *c, int32_t at, uint32_t j, int sparse)
{
    journey *x = calloc(1, sizeof(*x));
    const step *s = &c->p->steps[at];
    int32_t leaf = s->in[1 + j];
    int32_t out = s->out[j];
    if (x == NULL || c->codes[leaf] != BURN_OK || c->cache[leaf].n == 0) {
        free(x);
        return;
    }
    x->c = c;
    x->random = c->p->seed * 4096 + (uint64_t)(uint32_t)at * 16 + j * 2 + (uint64_t)sparse;
    x->random *= 4096;
    double *direction = make_direction(x, c->cache[leaf].n, sparse);
    mark_needed(x, at, s->in[0]);
    carry(x, at, leaf, direction);
    if (x->infinite) {
        c->r->count.infinite++;
    } else if (x->kink) {
        c->r->count.at_kinks++;
    } else {
        compare(x, at, direction, c->codes[out], &c->cache[out]);
    }
    conf_arena_free(&x->arena);
    free(x);
}

void judge_gradients(context *c, int32_t at)
{
    const step *s = &c->p->steps[at];
    for (uint32_t j = 0; j < s->n_out; j++) {
        int32_t code = c->codes[s->out[j]];
        if (!c->passed[at] || c->codes[s->in[0]] != BURN_OK ||
            (code != BURN_OK && code != NOTHING)) {
            c->r->count.no_pass++;
            continue;
        }
        judge_one(c, at, j, 0);
        judge_one(c, at, j, 1);
    }
}
