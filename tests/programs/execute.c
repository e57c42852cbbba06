/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * execute.c - runs a program on a device: its threads, its steps, what its reads saw.
 *
 * A plain run lets the threads go as far as the steps' order allows. A checking run takes one step
 * at a time over all threads, reads every result at once, compares it with eval, and later reads
 * with what was seen first: a value that changes is a value that was overwritten. Windows are set
 * on the device and its streams between runs, when no thread of a program lives.
 */
#include "execute.h"

#include "exec/stream.h"

#include <burn_sdk/plugin.h>
#include <stdio.h>
#include <stdlib.h>

int execute_lie = LIE_NONE;

typedef struct worker {
    context *c;
    uint32_t thread;
    pthread_t id;
} worker;

void execute_fail(context *c, int32_t at, const char *text)
{
    const step *s = &c->p->steps[at];
    (void)pthread_mutex_lock(&c->lock);
    if (c->r->failure[0] == '\0') {
        (void)snprintf(c->r->failure, sizeof(c->r->failure), "step %d (%s): %s", at,
                       s->kind == STEP_OP ? s->def->name : step_names[s->kind], text);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int32_t read_value(context *c, const burn_tensor *t, conf_value *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    if (t == NULL) {
        return NOTHING;
    }
    int32_t code = burn_tensor_error(t, err);
    if (code != BURN_OK) {
        return code;
    }
    out->meta.kind = BURN_TENSOR;
    out->meta.dtype = burn_dtype_of(t);
    out->meta.rank = (uint8_t)burn_rank(t);
    for (uint32_t d = 0; d < out->meta.rank; d++) {
        out->meta.dims[d] = burn_dim(t, (int64_t)d);
    }
    (void)pthread_mutex_lock(&c->lock);
    conf_value_alloc(&c->r->arena, out);
    uint64_t size = out->n * burn_element_size(out->meta.dtype);
    unsigned char *bytes = conf_alloc(&c->r->arena, size);
    (void)pthread_mutex_unlock(&c->lock);
    code = burn_read(t, bytes, (size_t)size, err);
    if (code == BURN_OK) {
        conf_from_bytes(out, bytes);
    } else if (err->text[0] == '\0') {
        return BURN_E_INTERNAL;
    }
    return code;
}

int32_t execute_read(context *c, const burn_tensor *t, seen *out)
{
    burn_err err = BURN_ERR_INIT;
    out->code = read_value(c, t, &out->value, &err);
    out->done = 1;
    (void)snprintf(out->text, sizeof(out->text), "%s", err.text);
    return out->code;
}

static int32_t read_tensor(context *c, const burn_tensor *t, conf_value *out)
{
    burn_err err = BURN_ERR_INIT;
    return read_value(c, t, out, &err);
}

static int same_bits(const conf_value *a, const conf_value *b)
{
    const void *x = a->f != NULL ? (const void *)a->f : a->i != NULL ? (void *)a->i : (void *)a->u;
    const void *y = b->f != NULL ? (const void *)b->f : b->i != NULL ? (void *)b->i : (void *)b->u;
    return a->meta.dtype == b->meta.dtype && conf_same_shape(&a->meta, &b->meta) &&
           (a->n == 0 || memcmp(x, y, a->n * sizeof(double)) == 0);
}

static int same_seen(int32_t code_a, const conf_value *a, int32_t code_b, const conf_value *b)
{
    return code_a == code_b && (code_a != BURN_OK || same_bits(a, b));
}

static void difference(const conf_value *a, const conf_value *b, int32_t code_a, int32_t code_b,
                       char *text, size_t size)
{
    char why[300] = "";
    if (code_a == BURN_OK && code_b == BURN_OK && conf_compare(a, b, 0, why, sizeof(why))) {
        (void)snprintf(why, sizeof(why), "zeros or NaNs differ in their bits");
    }
    (void)snprintf(text, size, "code %s against %s; %s",
                   code_a == NOTHING ? "none" : burn_status_name(code_a),
                   code_b == NOTHING ? "none" : burn_status_name(code_b), why);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* What a checking run knows of an operand: scalars know themselves. */
static void known_operand(const context *c, int32_t id, conf_value *out, int32_t *code)
{
    memset(out, 0, sizeof(*out));
    *code = BURN_OK;
    if (id == NO_VALUE) {
        return;
    }
    if (c->p->values[id].host.meta.kind == BURN_IMMEDIATE) {
        *out = c->p->values[id].host;
        return;
    }
    *out = c->cache[id];
    *code = c->codes[id];
}

static void note_outputs(context *c, const step *s)
{
    for (uint32_t j = 0; j < s->n_out; j++) {
        c->codes[s->out[j]] = read_tensor(c, c->tensors[s->out[j]], &c->cache[s->out[j]]);
    }
}

static void expect_same(context *c, int32_t at, int32_t id, int32_t code, const conf_value *want)
{
    char text[400];
    if (!same_seen(c->codes[id], &c->cache[id], code, want)) {
        difference(&c->cache[id], want, c->codes[id], code, text, sizeof(text));
        execute_fail(c, at, text);
    }
}

static void check_call(context *c, int32_t at, const step *s)
{
    conf_value in[MAX_USES];
    conf_value out[MAX_OUTS];
    int32_t in_codes[MAX_USES];
    int32_t out_codes[MAX_OUTS];
    char text[400];
    for (uint32_t i = 0; i < s->n_in; i++) {
        known_operand(c, s->in[i], &in[i], &in_codes[i]);
    }
    for (uint32_t j = 0; j < s->n_out; j++) {
        out[j] = c->cache[s->out[j]];
        out_codes[j] = c->codes[s->out[j]];
    }
    if (!check_op(&c->r->arena, c->r->device, s, in, in_codes, out, out_codes, &c->r->count,
                  text, sizeof(text))) {
        execute_fail(c, at, text);
    }
}

/* After a step of a checking run, by the thread that made it; nobody else is at work. */
static void check_step(context *c, int32_t at, const step *s)
{
    note_outputs(c, s);
    switch (s->kind) {
    case STEP_CONST:
        expect_same(c, at, s->out[0], BURN_OK, &c->p->values[s->out[0]].host);
        break;
    case STEP_OP:
        check_call(c, at, s);
        break;
    case STEP_BACKWARD:
        judge_gradients(c, at);
        break;
    case STEP_LEAF:
    case STEP_DETACH:
        expect_same(c, at, s->out[0], c->codes[s->in[0]], &c->cache[s->in[0]]);
        break;
    case STEP_VAR_NEW:
        c->var_cache[s->var] = c->cache[s->in[0]];
        c->var_codes[s->var] = c->codes[s->in[0]];
        break;
    case STEP_VAR_GET:
        if (c->vars[s->var] != NULL) {
            expect_same(c, at, s->out[0], c->var_codes[s->var], &c->var_cache[s->var]);
        }
        break;
    default:
        break;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static burn_tensor *scalar_of(const conf_value *host)
{
    if (host->f != NULL) {
        return burn_scalar(host->f[0]);
    }
    return host->u != NULL ? burn_scalar_u64(host->u[0]) : burn_scalar_int(host->i[0]);
}

static burn_tensor *operand(context *c, const step *s, uint32_t i)
{
    if (s->in[i] == NO_VALUE) {
        return NULL;
    }
    const value *v = &c->p->values[s->in[i]];
    if (v->host.meta.kind == BURN_IMMEDIATE) {
        return scalar_of(&v->host);
    }
    burn_tensor *t = c->tensors[s->in[i]];
    return i < 32 && (s->moved >> i & 1) != 0 ? burn_move(t) : t;
}

/* What a kernel that is a little off would give, or a gradient function that is. */
static burn_tensor *lie(burn_tensor *y)
{
    if (execute_lie == LIE_KERNEL) {
        return burn_mul(y, burn_scalar(1.0 + 1e-4));
    }
    return burn_sub(burn_mul(y, burn_scalar(1.001)),
                    burn_mul(burn_detach(y), burn_scalar(0.001)));
}

static int lies(uint64_t op)
{
    return op == BURN_OP_TANH || op == BURN_OP_SIGMOID || op == BURN_OP_SIN;
}

static void call_op(context *c, const step *s)
{
    burn_tensor *in[MAX_USES];
    burn_tensor *out[MAX_OUTS] = {NULL};
    for (uint32_t i = 0; i < s->n_in; i++) {
        in[i] = operand(c, s, i);
    }
    (void)burn_op_call(c->r->device, s->def->id, s->attrs, s->attrs_size, in, s->n_in, out,
                       s->n_out);
    if (execute_lie != LIE_NONE && lies(s->def->id) && out[0]->dtype == BURN_F32) {
        out[0] = lie(out[0]);
    }
    for (uint32_t i = 0; i < s->n_in && i < 32; i++) {
        if ((s->moved >> i & 1) != 0) {
            c->kept[s->in[i]] = 0;
        }
    }
    for (uint32_t j = 0; j < s->n_out; j++) {
        c->tensors[s->out[j]] = out[j];
    }
}

static void make_constant(context *c, const step *s)
{
    const conf_value *host = &c->p->values[s->out[0]].host;
    (void)pthread_mutex_lock(&c->lock);
    unsigned char *bytes = conf_bytes(&c->r->arena, host);
    (void)pthread_mutex_unlock(&c->lock);
    c->tensors[s->out[0]] = burn_tensor_from_data(c->r->device, host->meta.dtype, host->meta.rank,
                                                  host->meta.dims, bytes);
}

static void end_scope(context *c, const step *s)
{
    burn_tensor *results[MAX_USES];
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_in; k++) {
        if (c->tensors[s->in[k]] != NULL) {
            results[n++] = c->tensors[s->in[k]];
        }
    }
    burn_scope_end_with(results, n);
}

static void read_step(context *c, int32_t at, const step *s)
{
    seen *r = &c->r->seen[at];
    (void)execute_read(c, c->tensors[s->in[0]], r);
    if (c->r->check) {
        char text[400];
        int32_t id = s->in[0];
        if (!same_seen(r->code, &r->value, c->codes[id], &c->cache[id])) {
            difference(&r->value, &c->cache[id], r->code, c->codes[id], text, sizeof(text));
            execute_fail(c, at, text);
        }
    }
}

static void backward(context *c, int32_t at, const step *s)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *seed = s->n_in > 1 + s->n_out ? c->tensors[s->in[1 + s->n_out]] : NULL;
    burn_grads *grads = burn_backward(c->tensors[s->in[0]], seed, s->retain, &err);
    c->passed[at] = grads != NULL;
    for (uint32_t j = 0; j < s->n_out; j++) {
        c->tensors[s->out[j]] =
            grads != NULL ? burn_grads_get(grads, c->tensors[s->in[1 + j]]) : NULL;
    }
    burn_grads_free(grads);
}

/* Whether a value that fails late makes a variable that cannot be made, or one that has failed, is
 * a matter of who looked when: so the value is read first, and there is no variable. */
static void make_var(context *c, int32_t at, const step *s)
{
    burn_err err = BURN_ERR_INIT;
    conf_value read;
    burn_device *device = s->retain ? burn_device_autodiff(c->r->device) : c->r->device;
    if (read_tensor(c, c->tensors[s->in[0]], &read) != BURN_OK) {
        return;
    }
    c->vars[s->var] = burn_var_create(device, c->tensors[s->in[0]], &err);
    if (c->vars[s->var] == NULL) {
        execute_fail(c, at, err.text);
    }
}

static int32_t sgd(context *c, const step *s)
{
    burn_err err = BURN_ERR_INIT;
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    burn_var *const vars[4] = {c->vars[s->var], NULL, NULL, NULL};
    burn_tensor *const in[4] = {NULL, c->tensors[s->in[0]], NULL, burn_scalar(0.125)};
    return burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
}

/* A checking run sees what the variable became: the value itself, or one step towards it. */
static void check_var(context *c, int32_t at, const step *s, int32_t rc)
{
    conf_value now;
    char text[400];
    int32_t id = s->in[0];
    burn_scope_begin();
    int32_t code = read_tensor(c, burn_var_get(c->vars[s->var]), &now);
    burn_scope_end();
    int assigned = s->kind == STEP_VAR_SET && rc == BURN_OK;
    int32_t want = assigned ? c->codes[id] : c->var_codes[s->var];
    const conf_value *old = assigned ? &c->cache[id] : &c->var_cache[s->var];
    if (s->kind == STEP_VAR_SET || rc != BURN_OK) {
        if (!same_seen(code, &now, want, old)) {
            difference(&now, old, code, want, text, sizeof(text));
            execute_fail(c, at, text);
        }
    } else if (code == BURN_OK && c->codes[id] == BURN_OK && c->var_codes[s->var] == BURN_OK) {
        for (uint64_t k = 0; k < now.n; k++) {
            double target = old->f[k] - 0.125 * c->cache[id].f[k];
            if (!conf_close(now.f[k], target, 16, now.meta.dtype, 0) && old->f[k] < 1e30 &&
                old->f[k] > -1e30) {
                (void)snprintf(text, sizeof(text), "element %llu is %.9g, not %.9g",
                               (unsigned long long)k, now.f[k], target);
                execute_fail(c, at, text);
                break;
            }
        }
    } else if (code == BURN_OK) {
        execute_fail(c, at, "an update from failed values gave a good one");
    }
    c->var_codes[s->var] = code;
    c->var_cache[s->var] = now;
}

static void write_var(context *c, int32_t at, const step *s)
{
    burn_err err = BURN_ERR_INIT;
    if (c->vars[s->var] == NULL) {
        return;
    }
    int32_t rc = s->kind == STEP_VAR_STEP
                     ? sgd(c, s)
                     : burn_var_assign(c->vars[s->var], c->tensors[s->in[0]], &err);
    seen *r = &c->r->seen[at];
    r->code = rc == BURN_OK ? NOTHING : rc;
    r->done = 1;
    if (c->r->check) {
        check_var(c, at, s, rc);
    }
}

static void perform(context *c, int32_t at, const step *s)
{
    switch (s->kind) {
    case STEP_CONST:
        make_constant(c, s);
        break;
    case STEP_OP:
        call_op(c, s);
        break;
    case STEP_BEGIN:
        burn_scope_begin();
        break;
    case STEP_END:
        end_scope(c, s);
        break;
    case STEP_KEEP:
        (void)burn_keep(c->tensors[s->in[0]]);
        c->kept[s->in[0]] = 1;
        break;
    case STEP_RELEASE:
        burn_release(c->tensors[s->in[0]]);
        c->kept[s->in[0]] = 0;
        break;
    case STEP_READ:
        read_step(c, at, s);
        break;
    case STEP_SYNC:
        (void)burn_sync(c->r->device, NULL);
        break;
    case STEP_LEAF:
        c->tensors[s->out[0]] =
            burn_require_grad(burn_device_autodiff(c->r->device), c->tensors[s->in[0]]);
        break;
    case STEP_DETACH:
        c->tensors[s->out[0]] = burn_detach(c->tensors[s->in[0]]);
        break;
    case STEP_BACKWARD:
        backward(c, at, s);
        break;
    case STEP_VAR_NEW:
        make_var(c, at, s);
        break;
    case STEP_VAR_GET:
        c->tensors[s->out[0]] = burn_var_get(c->vars[s->var]);
        break;
    case STEP_VAR_SET:
    case STEP_VAR_STEP:
        write_var(c, at, s);
        break;
    default:
        burn_var_release(c->vars[s->var]);
        c->vars[s->var] = NULL;
        break;
    }
}

/* Whose end the scope is, and what lives on. */
static void note_end(context *c, const step *s)
{
    int8_t depth = c->scopes[s->thread]--;
    for (uint32_t k = 0; k < s->n_in; k++) {
        c->depth[s->in[k]]--;
    }
    for (uint32_t id = 0; id < c->p->n_values; id++) {
        if (c->p->values[id].thread == s->thread && c->depth[id] == depth) {
            c->alive[id] = 0;
        }
    }
}

static void note(context *c, const step *s)
{
    for (uint32_t i = 0; i < s->n_in && i < 32; i++) {
        if (s->kind == STEP_OP && (s->moved >> i & 1) != 0) {
            c->alive[s->in[i]] = 0;
        }
    }
    for (uint32_t j = 0; j < s->n_out; j++) {
        c->alive[s->out[j]] = 1;
        c->depth[s->out[j]] = c->scopes[s->thread];
    }
    if (s->kind == STEP_BEGIN) {
        c->scopes[s->thread]++;
    } else if (s->kind == STEP_END) {
        note_end(c, s);
    } else if (s->kind == STEP_KEEP) {
        c->depth[s->in[0]] = -1;
    } else if (s->kind == STEP_RELEASE) {
        c->alive[s->in[0]] = 0;
    }
}

void execute_step(context *c, int32_t at)
{
    const step *s = &c->p->steps[at];
    perform(c, at, s);
    note(c, s);
    if (c->r->check) {
        check_step(c, at, s);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static int may_go(const context *c, const int32_t *waits)
{
    for (uint32_t t = 0; t < c->p->n_threads; t++) {
        if (c->progress[t] < waits[t]) {
            return 0;
        }
    }
    return 1;
}

static void *thread_main(void *arg)
{
    const worker *w = arg;
    context *c = w->c;
    burn_seed(c->p->seed * MAX_THREADS + w->thread);
    for (int32_t i = 0; i < (int32_t)c->p->n_steps; i++) {
        const step *s = &c->p->steps[i];
        if (s->dropped || s->thread != w->thread) {
            continue;
        }
        (void)pthread_mutex_lock(&c->lock);
        while (!may_go(c, c->r->check ? s->before : s->waits)) {
            (void)pthread_cond_wait(&c->moved, &c->lock);
        }
        (void)pthread_mutex_unlock(&c->lock);
        int32_t end = c->r->replay ? stretch_end(c, i) : i;
        if (end > i) {
            stretch_run(c, i, end);
            i = end - 1;
        } else {
            execute_step(c, i);
        }
        (void)pthread_mutex_lock(&c->lock);
        c->progress[w->thread] = i;
        (void)pthread_cond_broadcast(&c->moved);
        (void)pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

static void give_up(context *c)
{
    for (uint32_t id = 0; id < c->p->n_values; id++) {
        if (c->kept[id]) {
            burn_release(c->tensors[id]);
        }
    }
    for (uint32_t v = 0; v < MAX_VARS; v++) {
        burn_var_release(c->vars[v]);
    }
}

static void set_window(burn_device *device, uint32_t window)
{
    device->core->window = window;
    for (burni_stream *s = device->core->streams; s != NULL; s = s->next) {
        s->window = window;
    }
}

static uint64_t in_use(burn_device *device)
{
    burn_memory memory;
    BURN_INIT(&memory, burn_memory);
    (void)burn_sync(device, NULL);
    (void)burn_memory_report(device, &memory, NULL);
    return memory.in_use;
}

void run_program(run *r, const program *p, burn_device *device, uint32_t window, int how)
{
    context *c = calloc(1, sizeof(*c));
    worker workers[MAX_THREADS];
    run_free(r);
    r->program = p;
    r->device = device;
    r->check = how == RUN_CHECK;
    r->replay = how == RUN_REPLAY;
    if (c == NULL) {
        (void)snprintf(r->failure, sizeof(r->failure), "no memory for a run");
        return;
    }
    c->r = r;
    c->p = p;
    memset(c->progress, 0xff, sizeof(c->progress));
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->moved, NULL);
    uint64_t before = in_use(device);
    set_window(device, window);
    for (uint32_t t = 0; t < p->n_threads; t++) {
        workers[t].c = c;
        workers[t].thread = t;
        (void)pthread_create(&workers[t].id, NULL, thread_main, &workers[t]);
    }
    for (uint32_t t = 0; t < p->n_threads; t++) {
        (void)pthread_join(workers[t].id, NULL);
    }
    give_up(c);
    r->n_kept = c->kept_stretches;
    r->n_refused = c->refused_stretches;
    uint64_t after = in_use(device);
    if (after != before && r->failure[0] == '\0') {
        (void)snprintf(r->failure, sizeof(r->failure), "%lld bytes of the device are left in use",
                       (long long)(after - before));
    }
    (void)pthread_cond_destroy(&c->moved);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void run_free(run *r)
{
    conf_arena_free(&r->arena);
    memset(r, 0, sizeof(*r));
}

static int reads_gradient(const program *p, uint32_t i)
{
    return p->steps[i].kind == STEP_READ && p->values[p->steps[i].in[0]].absent;
}

int execute_same(const seen *a, const seen *b, char *text, size_t size)
{
    if (!same_seen(a->code, &a->value, b->code, &b->value)) {
        difference(&a->value, &b->value, a->code, b->code, text, size);
        return 0;
    }
    if (a->code != BURN_OK && strcmp(a->text, b->text) != 0) {
        (void)snprintf(text, size, "\"%.180s\" against \"%.180s\"", a->text, b->text);
        return 0;
    }
    return 1;
}

int runs_agree(const run *a, const run *b, char *text, size_t size)
{
    for (uint32_t i = 0; i < a->program->n_steps; i++) {
        const seen *x = &a->seen[i];
        const seen *y = &b->seen[i];
        char why[400] = "one did not come here";
        /* A pass from a failed value fails where that is known: with window 1. */
        int no_pass = (x->code == NOTHING || y->code == NOTHING) && reads_gradient(a->program, i);
        if (x->done != y->done || (!no_pass && !execute_same(x, y, why, sizeof(why)))) {
            (void)snprintf(text, size, "step %u (%s): %s", i, step_names[a->program->steps[i].kind],
                           why);
            return 0;
        }
    }
    return 1;
}
