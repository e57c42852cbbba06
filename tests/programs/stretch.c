/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stretch.c - stretches of a thread's steps that are kept and run again (burn/replay.h).
 *
 * A stretch is as many steps as follow each other without a read, an upload or a wait for another
 * thread. It is done once and kept, with some operands as ports and what it leaves as outputs; then
 * variables and the generator are set back and it is run twice more. What the last run gave must be
 * what the steps gave, to the last bit and error, and takes its place where nothing else hangs on
 * the handle. Other threads see the end of a stretch only. Steps that cannot be kept must say why.
 * To let a step into stretches: its kind below.
 */
#include "execute.h"

#include "exec/guard.h"
#include "exec/stream.h"
#include "exec/var.h"

#include <burn/replay.h>
#include <stdio.h>

enum { MAX_PORTS = 8, MAX_KEPT = 64, RUNS = 2 };

typedef struct stretch {
    context *c;
    uint32_t thread;
    int32_t from;
    int32_t end;
    uint64_t random;
    int failed; /* a call of it: it must be refused */
    int again;  /* it may be run again */
    uint64_t rng;
    burn_replay *replay;
    uint32_t n_ports;
    uint32_t n_out;
    int32_t port_ids[MAX_PORTS];
    burn_tensor *ports[MAX_PORTS]; /* kept */
    int32_t out_ids[MAX_KEPT];
    burn_tensor *outs[MAX_KEPT];
    burn_tensor *old[MAX_VARS]; /* kept; NULL: not written */
} stretch;

static uint32_t draw(stretch *x, uint32_t n)
{
    x->random = x->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(x->random >> 33) % n;
}

static void begin_draw(stretch *x, uint64_t seed, int32_t at)
{
    x->random = seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)(uint32_t)at * 977;
    (void)draw(x, 1);
}

/* ---- where it ends --------------------------------------------------------------------------- */

static int may_be_kept(const step *s)
{
    static const uint8_t kinds[] = {STEP_OP,   STEP_BEGIN,  STEP_END,      STEP_KEEP,
                                    STEP_RELEASE, STEP_LEAF, STEP_DETACH,  STEP_BACKWARD,
                                    STEP_VAR_GET, STEP_VAR_SET, STEP_VAR_STEP};
    for (uint32_t k = 0; k < COUNT_OF(kinds); k++) {
        if (s->kind == kinds[k]) {
            return 1;
        }
    }
    return 0;
}

/* Must the step wait for what no step before it waited for? */
static int waits_anew(const context *c, const step *s, const int32_t *so_far)
{
    for (uint32_t t = 0; t < c->p->n_threads; t++) {
        if (t != s->thread && s->waits[t] > so_far[t]) {
            return 1;
        }
    }
    return 0;
}

int32_t stretch_end(const context *c, int32_t at)
{
    const program *p = c->p;
    stretch x;
    int32_t so_far[MAX_THREADS];
    int32_t end = at;
    uint32_t ops = 0;
    memset(so_far, 0xff, sizeof(so_far));
    begin_draw(&x, p->seed, at);
    uint32_t most = draw(&x, 4) == 0 ? 1 + draw(&x, 6) : 60;
    for (int32_t i = 0; i < (int32_t)p->n_steps; i++) {
        const step *s = &p->steps[i];
        if (s->dropped || s->thread != p->steps[at].thread) {
            continue;
        }
        if (i > at && (!may_be_kept(s) || ops >= most || waits_anew(c, s, so_far))) {
            break;
        }
        for (uint32_t t = 0; t < p->n_threads; t++) {
            so_far[t] = s->waits[t] > so_far[t] ? s->waits[t] : so_far[t];
        }
        if (i >= at) {
            end = i + 1;
            ops += s->kind == STEP_OP;
        }
    }
    return may_be_kept(&p->steps[at]) && ops > 0 ? end : at;
}

static int is_mine(const stretch *x, int32_t i)
{
    const step *s = &x->c->p->steps[i];
    return !s->dropped && s->thread == x->thread;
}

/* ---- before ---------------------------------------------------------------------------------- */

static int is_written(const stretch *x, int32_t var)
{
    for (int32_t i = x->from; i < x->end; i++) {
        const step *s = &x->c->p->steps[i];
        if (is_mine(x, i) && s->var == var &&
            (s->kind == STEP_VAR_SET || s->kind == STEP_VAR_STEP)) {
            return 1;
        }
    }
    return 0;
}

/* The values that written variables have. One that has failed cannot be given back. */
static void remember_vars(stretch *x)
{
    burn_no_grad_begin();
    burn_scope_begin();
    for (int32_t v = 0; v < MAX_VARS; v++) {
        if (!is_written(x, v) || x->c->vars[v] == NULL) {
            continue;
        }
        seen now;
        x->old[v] = burn_keep(burn_copy(burn_var_get(x->c->vars[v])));
        x->again &= execute_read(x->c, x->old[v], &now) == BURN_OK;
    }
    burn_scope_end();
    burn_no_grad_end();
}

/* A run takes variables as they are then: what other threads may have made of them. */
static int sees_variables(const stretch *x, const step *s)
{
    const context *c = x->c;
    int sees = s->kind == STEP_BACKWARD && c->p->n_vars > 0;
    for (uint32_t k = 0; k < s->n_in && s->kind == STEP_OP; k++) {
        const burn_tensor *t = s->in[k] != NO_VALUE ? c->tensors[s->in[k]] : NULL;
        sees |= t != NULL && t->kind == BURN_TENSOR && t->storage != NULL &&
                burni_is_var(t->storage);
    }
    return sees && c->p->n_threads > 1;
}

static int may_be_port(const stretch *x, int32_t id)
{
    const burn_tensor *t = x->c->tensors[id];
    if (t == NULL || t->kind != BURN_TENSOR || t->cause != NULL || t->storage == NULL) {
        return 0;
    }
    for (uint32_t k = 0; k < x->n_ports; k++) {
        if (x->ports[k]->storage == t->storage) {
            return 0;
        }
    }
    return t->offset == 0 && (t->flags & BURNI_CONTIGUOUS) != 0 && !burni_is_var(t->storage) &&
           t->storage->bytes == (uint64_t)t->numel * burn_dtype_size(t->dtype);
}

/* Some operands that stand before it begins. */
static void choose_ports(stretch *x)
{
    uint8_t made[MAX_VALUES] = {0};
    burn_scope_begin();
    for (int32_t i = x->from; i < x->end; i++) {
        const step *s = &x->c->p->steps[i];
        for (uint32_t k = 0; k < s->n_in && is_mine(x, i) && s->kind == STEP_OP; k++) {
            int32_t id = s->in[k];
            if (id != NO_VALUE && !made[id] && x->n_ports < MAX_PORTS && draw(x, 2) == 0 &&
                may_be_port(x, id)) {
                x->port_ids[x->n_ports] = id;
                x->ports[x->n_ports++] = burn_keep(burn_detach(x->c->tensors[id]));
            }
        }
        for (uint32_t j = 0; j < s->n_out && is_mine(x, i); j++) {
            made[s->out[j]] = 1;
        }
    }
    burn_scope_end();
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void note_failure(stretch *x, const step *s)
{
    for (uint32_t j = 0; j < s->n_out; j++) {
        const burn_tensor *t = x->c->tensors[s->out[j]];
        /* A pass that fails gives no gradients. */
        x->failed |= t != NULL ? t->cause != NULL : 1;
    }
}

static void do_steps(stretch *x)
{
    for (uint32_t k = 0; k < x->n_ports; k++) {
        (void)burn_replay_port(x->ports[k]);
    }
    for (int32_t i = x->from; i < x->end; i++) {
        const step *s = &x->c->p->steps[i];
        if (!is_mine(x, i)) {
            continue;
        }
        x->again &= !sees_variables(x, s);
        execute_step(x->c, i);
        note_failure(x, s);
        if (s->kind == STEP_VAR_SET || s->kind == STEP_VAR_STEP) {
            const seen *r = &x->c->r->seen[i];
            x->failed |= !r->done || r->code != NOTHING;
        }
    }
}

static void choose_outputs(stretch *x)
{
    for (int32_t i = x->from; i < x->end; i++) {
        const step *s = &x->c->p->steps[i];
        for (uint32_t j = 0; j < s->n_out && is_mine(x, i); j++) {
            int32_t id = s->out[j];
            if (x->c->alive[id] && x->c->tensors[id] != NULL && x->n_out < MAX_KEPT) {
                x->out_ids[x->n_out] = id;
                x->outs[x->n_out++] = x->c->tensors[id];
            }
        }
    }
}

/* Why a stretch of such steps may be refused. */
static int is_known(const stretch *x, const char *text)
{
    static const char *const reasons[] = {
        "replay: it uses a value that another thread has not finished",
        "replay: a variable is overwritten while its old value is still in use",
        "replay: it overwrites what is no variable any more",
        "replay: it uses random numbers that were drawn before it began",
        "replay: nothing was launched in it",
    };
    if (x->failed && (strncmp(text, "replay: a call of it failed", 27) == 0 ||
                      strstr(text, "is no tensor of the device, or failed") != NULL)) {
        return 1;
    }
    for (uint32_t k = 0; k < COUNT_OF(reasons); k++) {
        if (strcmp(text, reasons[k]) == 0) {
            return 1;
        }
    }
    return 0;
}

static void keep_steps(stretch *x)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_replay_begin(x->c->r->device, &err) != BURN_OK) {
        execute_fail(x->c, x->from, err.text);
    }
    x->rng = burni_thread_current->rng_counter;
    do_steps(x);
    choose_outputs(x);
    x->replay = burn_replay_end(x->outs, x->n_out, &err);
    if (x->replay == NULL && !is_known(x, err.text)) {
        execute_fail(x->c, x->from, err.text);
    }
    (void)pthread_mutex_lock(&x->c->lock);
    x->c->kept_stretches += x->replay != NULL;
    x->c->refused_stretches += x->replay == NULL;
    (void)pthread_mutex_unlock(&x->c->lock);
}

/* ---- again ----------------------------------------------------------------------------------- */

static void set_back(stretch *x)
{
    burn_err err = BURN_ERR_INIT;
    burni_thread_current->rng_counter = x->rng;
    for (int32_t v = 0; v < MAX_VARS; v++) {
        if (x->old[v] != NULL && burn_var_assign(x->c->vars[v], x->old[v], &err) != BURN_OK) {
            execute_fail(x->c, x->from, err.text);
        }
    }
}

/* The same values: the tensor itself, a copy, or a view of twice as much. */
static burn_tensor *input(stretch *x, burn_tensor *t)
{
    burn_tensor *twice[2] = {t, t};
    switch (draw(x, t->rank < BURN_MAX_RANK ? 3 : 1)) {
    case 0:
        return burn_copy(t);
    case 1:
        return burn_squeeze(burn_slice(burn_stack(twice, 2, 0), 0, 1, 2, 1), 0);
    default:
        return t;
    }
}

static void run_again(stretch *x, burn_tensor **out)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *in[MAX_PORTS];
    set_back(x);
    for (uint32_t k = 0; k < x->n_ports; k++) {
        in[k] = input(x, x->ports[k]);
    }
    if (burn_replay_run(x->replay, in, x->n_ports, out, x->n_out, &err) != BURN_OK) {
        execute_fail(x->c, x->from, err.text);
    }
}

/* The handle of an output that nothing but the program's own steps hangs on. What a run gives is
 * dense, and in which order sums are made may depend on that. */
static int may_replace(const stretch *x, int32_t id)
{
    const context *c = x->c;
    const value *v = &c->p->values[id];
    return (c->tensors[id]->flags & BURNI_CONTIGUOUS) != 0 && !v->tracked && !v->absent &&
           !c->kept[id] && c->depth[id] == c->scopes[x->thread];
}

static void compare(stretch *x, burn_tensor *const *out)
{
    char text[400];
    char where[500];
    for (uint32_t k = 0; k < x->n_out; k++) {
        seen called;
        seen kept;
        int32_t id = x->out_ids[k];
        (void)execute_read(x->c, x->outs[k], &called);
        (void)execute_read(x->c, out[k], &kept);
        if (!execute_same(&called, &kept, text, sizeof(text))) {
            (void)snprintf(where, sizeof(where), "v%d kept up to step %d: %s", id, x->end - 1,
                           text);
            execute_fail(x->c, x->from, where);
        }
    }
}

static void replace(stretch *x, burn_tensor *const *out)
{
    for (uint32_t k = 0; k < x->n_out; k++) {
        int32_t id = x->out_ids[k];
        if (may_replace(x, id)) {
            burn_release(x->outs[k]);
            x->c->tensors[id] = out[k];
        }
    }
}

static void do_again(stretch *x)
{
    burn_tensor *out[MAX_KEPT];
    for (int k = 0; k < RUNS; k++) {
        run_again(x, out);
    }
    /* Reading ends sequences, so not always. */
    if (draw(x, 2) == 0) {
        compare(x, out);
    }
    replace(x, out);
}

void stretch_run(context *c, int32_t from, int32_t end)
{
    stretch x;
    memset(&x, 0, sizeof(x));
    x.c = c;
    x.thread = c->p->steps[from].thread;
    x.from = from;
    x.end = end;
    x.again = 1;
    begin_draw(&x, c->p->seed + 1, from);
    remember_vars(&x);
    choose_ports(&x);
    keep_steps(&x);
    if (x.replay != NULL && x.again) {
        do_again(&x);
    }
    burn_replay_free(x.replay);
    for (uint32_t k = 0; k < x.n_ports; k++) {
        burn_release(x.ports[k]);
    }
    for (uint32_t v = 0; v < MAX_VARS; v++) {
        if (x.old[v] != NULL) {
            burn_release(x.old[v]);
        }
    }
}
