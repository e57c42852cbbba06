/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * generate.c - from a seed to a program.
 *
 * The generator keeps book of what lives where: which thread and scope holds a value, what was kept
 * or handed over, what is expected to have failed. So every program is legal, but for the errors
 * that it makes on purpose: shapes and dtypes that do not fit, indices out of range. Nothing is
 * run here; the same seed gives the same program on every machine.
 */
#include "generate.h"

#include <burn_sdk/plugin.h>
#include <stdio.h>

#define MAX_NUMEL 1500

/* ---- values and steps ------------------------------------------------------------------------ */

step *maker_step(maker *m, uint8_t kind, uint32_t thread)
{
    step *s = &m->p->steps[m->p->n_steps++];
    memset(s, 0, sizeof(*s));
    s->kind = kind;
    s->thread = (uint8_t)thread;
    s->var = -1;
    s->pair = -1;
    return s;
}

static int room(const maker *m, uint32_t steps, uint32_t values)
{
    return m->p->n_steps + steps < MAX_STEPS - 120 && m->p->n_values + values < MAX_VALUES - 40;
}

int32_t maker_value(maker *m, uint32_t thread)
{
    int32_t id = (int32_t)m->p->n_values++;
    value *v = &m->p->values[id];
    memset(v, 0, sizeof(*v));
    v->alive = 1;
    v->thread = (uint8_t)thread;
    v->depth = (int8_t)m->depth[thread];
    v->host.meta.kind = BURN_TENSOR;
    return id;
}

int maker_may_use(maker *m, int32_t id, uint32_t t)
{
    const value *v = maker_at(m, id);
    return v->alive && (v->thread == t || v->depth < 0);
}

int32_t maker_find(maker *m, uint32_t t, uint8_t dtype)
{
    uint32_t n = m->p->n_values;
    uint32_t start = draw(m, n);
    for (uint32_t k = 0; k < n; k++) {
        int32_t id = (int32_t)((start + k) % n);
        const value *v = maker_at(m, id);
        if (maker_may_use(m, id, t) && v->host.meta.kind == BURN_TENSOR && !v->absent &&
            (v->known || chance(m, 5)) &&
            (dtype == BURN_DTYPE_NONE || v->host.meta.dtype == dtype)) {
            return id;
        }
    }
    return NO_VALUE;
}

int32_t maker_find_leaf(maker *m, uint32_t t)
{
    uint32_t n = m->p->n_values;
    uint32_t start = draw(m, n);
    for (uint32_t k = 0; k < n; k++) {
        int32_t id = (int32_t)((start + k) % n);
        if (maker_at(m, id)->leaf && maker_may_use(m, id, t)) {
            return id;
        }
    }
    return NO_VALUE;
}

static int32_t add_constant(maker *m, uint32_t t, const burn_meta *meta,
                            const burn_sample_operand *how)
{
    int32_t id = maker_value(m, t);
    value *v = maker_at(m, id);
    v->host.meta = *meta;
    v->known = 1;
    v->constant = 1;
    conf_value_alloc(&m->p->arena, &v->host);
    conf_fill(&v->host, how, m->p->seed, (uint64_t)(uint32_t)id << 40);
    conf_tell_number(&v->host);
    if (meta->kind == BURN_IMMEDIATE) {
        return id; /* made where it is used */
    }
    step *s = maker_step(m, STEP_CONST, t);
    s->n_out = 1;
    s->out[0] = id;
    return id;
}

int32_t maker_plain(maker *m, uint32_t t, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    burn_sample_operand how;
    memset(&how, 0, sizeof(how));
    how.fill = BURN_FILL_NORMAL;
    burn_meta meta;
    memset(&meta, 0, sizeof(meta));
    meta.kind = BURN_TENSOR;
    meta.dtype = dtype;
    meta.rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++) {
        meta.dims[d] = dims[d];
    }
    return add_constant(m, t, &meta, &how);
}

int32_t maker_scalar(maker *m, uint32_t t, uint8_t dtype)
{
    burn_sample_operand how;
    memset(&how, 0, sizeof(how));
    how.fill = BURN_FILL_NONZERO;
    burn_meta meta;
    memset(&meta, 0, sizeof(meta));
    meta.kind = BURN_IMMEDIATE;
    meta.dtype = dtype;
    return add_constant(m, t, &meta, &how);
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Shapes of the outputs, by the op's own rule and nothing else. */
static int32_t infer(maker *m, step *s, burn_meta *out)
{
    conf_value in[MAX_USES];
    conf_value made[MAX_OUTS];
    burn_err err = BURN_ERR_INIT;
    for (uint32_t i = 0; i < s->n_in; i++) {
        memset(&in[i], 0, sizeof(in[i]));
        if (s->in[i] != NO_VALUE) {
            if (!maker_at(m, s->in[i])->known) {
                return BURN_E_INVALID;
            }
            in[i] = maker_at(m, s->in[i])->host;
            if (!maker_at(m, s->in[i])->constant) {
                in[i].n = 0;
            }
        }
    }
    burn_op_def shapes_only = *s->def;
    shapes_only.eval = NULL;
    memset(made, 0, sizeof(made));
    int32_t rc = conf_evaluate_exact(&m->p->arena, &shapes_only, s->attrs, s->attrs_size, in,
                                     s->n_in, made, s->n_out, &err);
    for (uint32_t j = 0; j < s->n_out; j++) {
        out[j] = made[j].meta;
    }
    return rc == BURN_E_UNSUPPORTED && strstr(err.text, "has no eval") != NULL ? BURN_OK : rc;
}

static void move_some(maker *m, step *s)
{
    for (uint32_t i = 0; i < s->n_in && i < 32; i++) {
        int32_t id = s->in[i];
        const value *v = id != NO_VALUE ? maker_at(m, id) : NULL;
        if (v == NULL || v->host.meta.kind != BURN_TENSOR || !v->alive || !v->known ||
            v->thread != s->thread || !chance(m, 15)) {
            continue;
        }
        uint32_t uses = 0;
        for (uint32_t k = 0; k < s->n_in; k++) {
            uses += s->in[k] == id;
        }
        if (uses == 1) {
            s->moved |= 1u << i;
            maker_at(m, id)->alive = 0;
        }
    }
}

/* Outputs of a step whose operands stand. */
static void finish_op(maker *m, step *s)
{
    burn_meta out[MAX_OUTS];
    s->n_out = s->n_out != 0 ? s->n_out : s->def->n_out;
    int32_t rc = infer(m, s, out);
    int64_t largest = 0;
    int tracked = 0;
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (s->in[i] != NO_VALUE) {
            tracked |= maker_at(m, s->in[i])->tracked;
            leaves |= maker_at(m, s->in[i])->leaves;
        }
    }
    for (uint32_t j = 0; j < s->n_out && rc == BURN_OK; j++) {
        int64_t n = conf_count(&out[j]);
        largest = n > largest ? n : largest;
    }
    if (rc == BURN_OK && largest > 4 * MAX_NUMEL) {
        if (largest > m->large) {
            m->p->n_steps--; /* too much work: not this one */
            return;
        }
        m->large -= largest;
    }
    for (uint32_t j = 0; j < s->n_out; j++) {
        s->out[j] = maker_value(m, s->thread);
        value *v = maker_at(m, s->out[j]);
        v->known = rc == BURN_OK;
        v->host.meta = rc == BURN_OK ? out[j] : v->host.meta;
        v->tracked = (uint8_t)(tracked && rc == BURN_OK && conf_is_float(out[j].dtype));
        v->leaves = v->tracked ? leaves : 0;
    }
    move_some(m, s);
}

static int allowed(const burn_op_def *def)
{
    return def->effect <= BURN_EFFECT_RANDOM && def->n_out <= MAX_OUTS && def->eval != NULL &&
           def->samples != NULL;
}

static uint32_t count_samples(const burn_op_def *def)
{
    burn_sample sample;
    uint32_t n = 0;
    do {
        BURN_INIT(&sample, burn_sample);
        n++;
    } while (n <= 200 && def->samples(n - 1, &sample) == BURN_OK);
    return n - 1;
}

static int has_scalar(const conf_case *c)
{
    int scalars = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        scalars |= c->in[i].meta.kind == BURN_IMMEDIATE;
    }
    return scalars;
}

/* Of short floats too little is known of a gradient to make many. */
static int may_lead(maker *m, uint8_t dtype)
{
    return dtype == BURN_F32 || dtype == BURN_F64 || (conf_is_float(dtype) && chance(m, 5));
}

/* One of the registry's ops with one of its samples; some operands are replaced. */
static void add_sample(maker *m, uint32_t t)
{
    const burn_op_def *def = burn_op_at(draw(m, burn_op_count()));
    conf_case c;
    memset(&c, 0, sizeof(c));
    uint32_t n = def != NULL && allowed(def) ? count_samples(def) : 0;
    if (n == 0) {
        return;
    }
    BURN_INIT(&c.sample, burn_sample);
    c.def = def;
    c.arena = &m->p->arena;
    (void)def->samples(draw(m, n), &c.sample);
    conf_case_dtypes(&c, draw(m, conf_variants(def, &c.sample)));
    for (uint32_t i = 0; i < c.n_in; i++) {
        if (conf_count(&c.in[i].meta) > MAX_NUMEL) {
            return;
        }
    }
    int32_t ids[CONF_MAX_IN];
    int loose = 0;
    int tracked = (c.sample.flags & BURN_SAMPLE_NO_GRAD) == 0 && def->no_vjp == NULL &&
                  room(m, 40, 40) && chance(m, 40);
    for (uint32_t i = 0; i < c.n_in; i++) {
        ids[i] = NO_VALUE;
        if (c.in[i].meta.kind == BURN_ABSENT) {
            continue;
        }
        int is_index = c.sample.in[i].fill == BURN_FILL_INDEX;
        if (c.in[i].meta.kind == BURN_TENSOR && chance(m, is_index ? 3 : 35)) {
            /* A scalar takes the dtype of the tensor that it meets: no other one then. */
            int any = !has_scalar(&c) && chance(m, 10);
            ids[i] = maker_find(m, t, any ? BURN_DTYPE_NONE : c.in[i].meta.dtype);
            loose |= ids[i] != NO_VALUE;
        }
        if (ids[i] == NO_VALUE) {
            ids[i] = add_constant(m, t, &c.in[i].meta, &c.sample.in[i]);
            int leads = tracked && c.in[i].meta.kind == BURN_TENSOR && !is_index &&
                        may_lead(m, c.in[i].meta.dtype);
            ids[i] = leads ? maker_alias(m, t, STEP_LEAF, ids[i]) : ids[i];
        }
    }
    step *s = maker_step(m, STEP_OP, t);
    s->def = def;
    s->loose = (uint8_t)loose;
    s->tolerance = c.sample.tolerance;
    s->n_in = c.n_in;
    s->n_out = c.n_out;
    memcpy(s->in, ids, c.n_in * sizeof(ids[0]));
    s->attrs_size = c.sample.attrs_size;
    memcpy(s->attrs, c.sample.attrs, s->attrs_size);
    finish_op(m, s);
    int made = s < &m->p->steps[m->p->n_steps] && s->n_out > 0;
    int32_t root = made ? s->out[draw(m, s->n_out)] : NO_VALUE;
    if (tracked && made && maker_at(m, root)->tracked && maker_may_use(m, root, t)) {
        maker_backward_of(m, t, root);
    }
}

int32_t maker_op(maker *m, uint32_t t, uint64_t op, const void *attrs, uint32_t size,
                 const int32_t *in, uint32_t n_in)
{
    step *s = maker_step(m, STEP_OP, t);
    s->def = burn_op_find_id(op);
    s->loose = 1;
    s->tolerance = 16;
    s->n_in = n_in;
    memcpy(s->in, in, n_in * sizeof(in[0]));
    s->attrs_size = size;
    if (size > 0) {
        memcpy(s->attrs, attrs, size);
    }
    finish_op(m, s);
    return s == &m->p->steps[m->p->n_steps] ? NO_VALUE : s->out[0];
}

/* Pointwise ops that keep numbers small, on what is there; shapes broadcast, or do not. */
static void add_pointwise(maker *m, uint32_t t)
{
    static const uint64_t ops[] = {
        BURN_OP_NEG, BURN_OP_ABS,  BURN_OP_TANH,    BURN_OP_SIGMOID, BURN_OP_RELU,
        BURN_OP_SIN, BURN_OP_COPY, BURN_OP_ERF,     BURN_OP_SILU,    BURN_OP_ADD,
        BURN_OP_SUB, BURN_OP_MUL,  BURN_OP_MAXIMUM, BURN_OP_MINIMUM, BURN_OP_ADD,
        BURN_OP_MUL, BURN_OP_LESS, BURN_OP_EQUAL,   BURN_OP_SUB,     BURN_OP_DIV,
    };
    const burn_op_def *def = burn_op_find_id(ops[draw(m, COUNT_OF(ops))]);
    int32_t in[2];
    in[0] = maker_find(m, t, BURN_DTYPE_NONE);
    if (in[0] == NO_VALUE) {
        return;
    }
    if (def->n_in == 2 && chance(m, 25)) {
        in[1] = maker_scalar(m, t, maker_at(m, in[0])->host.meta.dtype);
    } else if (def->n_in == 2) {
        in[1] = chance(m, 85) ? maker_find(m, t, maker_at(m, in[0])->host.meta.dtype) : in[0];
    }
    maker_op(m, t, def->id, NULL, 0, in, def->n_in);
}

static void add_cast(maker *m, uint32_t t)
{
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16,
                                     BURN_I32, BURN_I64, BURN_U8,  BURN_BOOL};
    int32_t in = maker_find(m, t, BURN_DTYPE_NONE);
    burn_attrs_cast a;
    burn_attrs_init(&a, sizeof(a));
    a.dtype = dtypes[draw(m, COUNT_OF(dtypes))];
    if (in != NO_VALUE) {
        maker_op(m, t, BURN_OP_CAST, &a, sizeof(a), &in, 1);
    }
}

static void add_reduction(maker *m, uint32_t t)
{
    static const uint64_t ops[] = {BURN_OP_SUM, BURN_OP_MAX, BURN_OP_MEAN, BURN_OP_MIN};
    int32_t in = maker_find(m, t, BURN_DTYPE_NONE);
    if (in == NO_VALUE) {
        return;
    }
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    uint32_t rank = maker_at(m, in)->host.meta.rank;
    for (uint32_t d = 0; d < rank; d++) {
        if (chance(m, 40)) {
            a.axes[a.n_axes++] = d;
        }
    }
    a.keepdims = chance(m, 50);
    maker_op(m, t, ops[draw(m, COUNT_OF(ops))], &a, sizeof(a), &in, 1);
}

static void add_matmul(maker *m, uint32_t t)
{
    int32_t in[2];
    in[0] = maker_find(m, t, BURN_F32);
    if (in[0] == NO_VALUE) {
        return;
    }
    const burn_meta *meta = &maker_at(m, in[0])->host.meta;
    if (meta->rank < 1) {
        return;
    }
    int64_t dims[2] = {meta->dims[meta->rank - 1], 1 + draw(m, 9)};
    if (dims[0] > 100) {
        return;
    }
    in[1] = chance(m, 80) ? maker_plain(m, t, BURN_F32, 2, dims) : maker_find(m, t, BURN_F32);
    maker_op(m, t, BURN_OP_MATMUL, NULL, 0, in, 2);
}

/* ---- views ----------------------------------------------------------------------------------- */

static void add_permute(maker *m, uint32_t t, int32_t in)
{
    burn_attrs_permute a;
    burn_attrs_init(&a, sizeof(a));
    a.n_axes = maker_at(m, in)->host.meta.rank;
    for (uint32_t d = 0; d < a.n_axes; d++) {
        a.perm[d] = d;
    }
    for (uint32_t d = a.n_axes; d > 1; d--) {
        uint32_t other = draw(m, d);
        int64_t swap = a.perm[d - 1];
        a.perm[d - 1] = a.perm[other];
        a.perm[other] = swap;
    }
    maker_op(m, t, BURN_OP_PERMUTE, &a, sizeof(a), &in, 1);
}

static void add_slice(maker *m, uint32_t t, int32_t in)
{
    const burn_meta *meta = &maker_at(m, in)->host.meta;
    if (meta->rank == 0) {
        return;
    }
    burn_attrs_slice a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = draw(m, meta->rank);
    int64_t n = meta->dims[a.axis];
    int64_t start = draw(m, (uint32_t)n);
    a.step = chance(m, 30) ? -1 : 1 + (int64_t)draw(m, 2);
    int64_t most = a.step < 0 ? start + 1 : (n - start + a.step - 1) / a.step;
    a.size = n == 0 ? 0 : 1 + draw(m, (uint32_t)most);
    a.size += chance(m, 4) ? 9 : 0; /* too many: an error */
    burn_sample_operand how;
    memset(&how, 0, sizeof(how));
    double number = (double)start;
    how.fill = BURN_FILL_VALUES;
    how.values = &number;
    how.n_values = 1;
    how.lo = number;
    burn_meta scalar;
    memset(&scalar, 0, sizeof(scalar));
    scalar.kind = BURN_IMMEDIATE;
    scalar.dtype = BURN_I64;
    int32_t uses[2] = {in, add_constant(m, t, &scalar, &how)};
    maker_op(m, t, BURN_OP_SLICE, &a, sizeof(a), uses, 2);
}

static void add_reshape(maker *m, uint32_t t, int32_t in)
{
    const burn_meta *meta = &maker_at(m, in)->host.meta;
    burn_attrs_shape a;
    burn_attrs_init(&a, sizeof(a));
    int64_t n = conf_count(meta);
    if (chance(m, 50)) {
        a.n_dims = 1;
        a.dims[0] = n + (chance(m, 5) ? 1 : 0);
    } else {
        a.n_dims = 2;
        a.dims[0] = n > 0 && n % 2 == 0 ? 2 : 1;
        a.dims[1] = n / a.dims[0];
    }
    maker_op(m, t, BURN_OP_RESHAPE, &a, sizeof(a), &in, 1);
}

static void add_expand(maker *m, uint32_t t, int32_t in)
{
    const burn_meta *meta = &maker_at(m, in)->host.meta;
    if (meta->rank >= 4 || conf_count(meta) > 300) {
        return;
    }
    burn_attrs_shape a;
    burn_attrs_init(&a, sizeof(a));
    a.n_dims = meta->rank + 1u;
    a.dims[0] = 1 + draw(m, 3);
    memcpy(a.dims + 1, meta->dims, meta->rank * sizeof(int64_t));
    maker_op(m, t, BURN_OP_EXPAND, &a, sizeof(a), &in, 1);
}

static void add_flip(maker *m, uint32_t t, int32_t in)
{
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    for (uint32_t d = 0; d < maker_at(m, in)->host.meta.rank; d++) {
        if (chance(m, 50)) {
            a.axes[a.n_axes++] = d;
        }
    }
    maker_op(m, t, BURN_OP_FLIP, &a, sizeof(a), &in, 1);
}

static void add_view(maker *m, uint32_t t)
{
    static void (*const makers[])(maker *, uint32_t, int32_t) = {add_permute, add_slice,
                                                                 add_reshape, add_expand, add_flip};
    int32_t in = maker_find(m, t, BURN_DTYPE_NONE);
    if (in != NO_VALUE) {
        makers[draw(m, COUNT_OF(makers))](m, t, in);
    }
}

/* ---- owning ---------------------------------------------------------------------------------- */

void maker_begin(maker *m, uint32_t t)
{
    if (m->depth[t] + 1 >= MAX_DEPTH) {
        return;
    }
    m->begins[t][m->depth[t]++] = (int32_t)m->p->n_steps;
    (void)maker_step(m, STEP_BEGIN, t);
}

void maker_end(maker *m, uint32_t t)
{
    if (m->depth[t] == 0) {
        return;
    }
    step *s = maker_step(m, STEP_END, t);
    int8_t depth = (int8_t)m->depth[t]--;
    s->pair = m->begins[t][m->depth[t]];
    m->p->steps[s->pair].pair = (int32_t)(s - m->p->steps);
    for (int32_t id = 0; id < (int32_t)m->p->n_values; id++) {
        value *v = maker_at(m, id);
        if (!v->alive || v->thread != t || v->depth != depth ||
            v->host.meta.kind == BURN_IMMEDIATE) {
            continue;
        }
        if (s->n_in < MAX_USES - 1 && chance(m, 40)) {
            s->in[s->n_in++] = id;
            v->depth--;
        } else {
            v->alive = 0;
        }
    }
}

void maker_keep(maker *m, uint32_t t, int32_t id)
{
    if (id == NO_VALUE || maker_at(m, id)->thread != t || maker_at(m, id)->depth < 0) {
        return;
    }
    step *s = maker_step(m, STEP_KEEP, t);
    s->n_in = 1;
    s->in[0] = id;
    maker_at(m, id)->depth = -1;
}

static void keep_one(maker *m, uint32_t t)
{
    maker_keep(m, t, maker_find(m, t, BURN_DTYPE_NONE));
}

static void release(maker *m, int32_t id)
{
    step *s = maker_step(m, STEP_RELEASE, maker_at(m, id)->thread);
    s->n_in = 1;
    s->in[0] = id;
    maker_at(m, id)->alive = 0;
}

static void release_one(maker *m, uint32_t t)
{
    int32_t id = maker_find(m, t, BURN_DTYPE_NONE);
    if (id != NO_VALUE && maker_at(m, id)->thread == t) {
        release(m, id);
    }
}

void maker_read(maker *m, uint32_t t, int32_t id)
{
    step *s = maker_step(m, STEP_READ, t);
    s->n_in = 1;
    s->in[0] = id;
}

/* ---- the whole program ----------------------------------------------------------------------- */

static void add_start(maker *m, uint32_t t)
{
    static const uint8_t dtypes[] = {BURN_F32, BURN_F32, BURN_F64, BURN_I32, BURN_I64, BURN_F16};
    for (uint32_t k = 0; k < 3; k++) {
        int64_t dims[3] = {1 + draw(m, 5), 1 + draw(m, 18), 1 + draw(m, 3)};
        uint32_t rank = draw(m, 4);
        (void)maker_plain(m, t, dtypes[draw(m, COUNT_OF(dtypes))], rank, dims);
    }
}

/* One that kernels share among threads and cut into tiles; its last axis is short or long. */
static void add_big(maker *m, uint32_t t)
{
    int64_t last = chance(m, 50) ? 30 + draw(m, 11) : 257 + draw(m, 300);
    int64_t dims[2] = {(int64_t)(66000 + draw(m, 60000)) / last, last};
    m->large = 2000000;
    m->big = maker_plain(m, t, BURN_F32, 2, dims);
    maker_keep(m, t, m->big);
}

typedef struct weight {
    uint32_t weight;
    void (*make)(maker *m, uint32_t t);
} weight;

static void add_alias(maker *m, uint32_t t, uint8_t kind)
{
    int32_t in = maker_find(m, t, chance(m, 80) ? BURN_F32 : BURN_F64);
    if (in != NO_VALUE && maker_at(m, in)->known) {
        (void)maker_alias(m, t, kind, in);
    }
}

static void add_leaf(maker *m, uint32_t t)
{
    add_alias(m, t, STEP_LEAF);
}

static void add_detached(maker *m, uint32_t t)
{
    add_alias(m, t, STEP_DETACH);
}

static void add_read(maker *m, uint32_t t)
{
    int32_t id = maker_find(m, t, BURN_DTYPE_NONE);
    if (id != NO_VALUE) {
        maker_read(m, t, id);
    }
}

static void add_sync(maker *m, uint32_t t)
{
    (void)maker_step(m, STEP_SYNC, t);
}

static const weight weights[] = {
    {26, add_sample}, {26, add_pointwise}, {4, add_cast},  {7, add_reduction}, {6, add_matmul},
    {14, add_view},   {8, maker_begin},    {8, maker_end}, {6, keep_one},      {5, release_one},
    {4, add_read},    {1, add_sync},       {6, add_leaf},  {2, add_detached},  {6, maker_backward},
    {4, maker_var},     {7, maker_get_var},    {7, maker_set_var}, {1, maker_end_var},
    {9, maker_chains},
};

static void add_random(maker *m, uint32_t t)
{
    uint32_t total = 0;
    for (uint32_t k = 0; k < COUNT_OF(weights); k++) {
        total += weights[k].weight;
    }
    uint32_t left = draw(m, total);
    uint32_t k = 0;
    while (left >= weights[k].weight) {
        left -= weights[k++].weight;
    }
    weights[k].make(m, t);
}

/* Some last gradients; then every living value is read by its owner, and given up. */
static void finish(maker *m)
{
    for (uint32_t k = 0; k < 4; k++) {
        maker_backward(m, draw(m, m->p->n_threads));
    }
    uint32_t n = m->p->n_values;
    for (int32_t id = 0; id < (int32_t)n && m->p->n_steps < MAX_STEPS - 60; id++) {
        const value *v = maker_at(m, id);
        if (v->alive && v->host.meta.kind == BURN_TENSOR) {
            maker_read(m, v->thread, id);
        }
    }
    for (int32_t var = 0; var < (int32_t)m->p->n_vars; var++) {
        if (m->var_alive[var]) {
            step *s = maker_step(m, STEP_VAR_GET, 0);
            s->var = var;
            s->n_out = 1;
            s->out[0] = maker_value(m, 0);
            maker_read(m, 0, s->out[0]);
        }
    }
    for (uint32_t t = 0; t < m->p->n_threads; t++) {
        while (m->depth[t] > 0) {
            maker_end(m, t);
        }
    }
}

void program_make(program *p, uint64_t seed)
{
    maker m;
    memset(&m, 0, sizeof(m));
    memset(p, 0, sizeof(*p));
    m.p = p;
    p->seed = seed;
    m.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 77;
    (void)draw(&m, 1);
    p->n_threads = chance(&m, 50) ? 1 : 2 + draw(&m, MAX_THREADS - 1);
    for (uint32_t t = 0; t < p->n_threads; t++) {
        add_start(&m, t);
        if (chance(&m, 60)) {
            add_leaf(&m, t);
        }
    }
    m.big = NO_VALUE;
    if (chance(&m, 12)) {
        add_big(&m, 0);
    }
    uint32_t length = 10 + draw(&m, 90);
    uint32_t t = 0;
    for (uint32_t k = 0; k < length && room(&m, 24, 24); k++) {
        /* Threads work in bursts, so that each has something pending when the next one goes on. */
        t = chance(&m, 25) ? draw(&m, p->n_threads) : t;
        add_random(&m, t);
    }
    finish(&m);
    program_order(p);
}

void program_free(program *p)
{
    conf_arena_free(&p->arena);
}
