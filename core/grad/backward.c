/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * backward.c - walking the tape: from a tensor to the gradients of its leaves.
 *
 * Nodes that the tensor depends on are collected with an explicit stack and handled in order of
 * falling depth, so every gradient is complete before its node is asked. Scratch gradients belong
 * to the pass, not to nodes. A vjp may return a gradient of any shape that its input broadcasts to:
 * it is summed back here. Saved values are dropped on the way unless the caller retains them.
 */
#include "grad/backward.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/emit.h"
#include "exec/var.h"
#include "grad/recompute.h"
#include "ops/ask.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct visit {
    burni_node *node;
    burn_tensor **many; /* gradients of the outputs, kept handles; NULL where `one` is enough */
    burn_tensor *one;
    uint32_t order; /* in which nodes were found: decides between equal depths */
    uint32_t zero;
} visit;

static uint32_t n_outputs(const burni_node *node)
{
    return node->op != NULL ? node->n_out : 1;
}

static burn_tensor **grads_of(visit *v)
{
    return v->many != NULL ? v->many : &v->one;
}

/* The nodes of one pass: an array, and an open-addressing index by address. */
typedef struct pass {
    burni_thread *thread;
    burn_device *device;
    visit *visits;
    uint32_t n;
    uint32_t cap;
    uint32_t *index; /* 1 + position */
    uint32_t index_size;
    uint32_t flags;
    burni_rerun rerun; /* values that were not kept */
    burn_grads *result;
    burn_err *err;
} pass;

/* ---- the set of nodes ------------------------------------------------------------------------ */

static uint32_t slot_of(const pass *p, const burni_node *node)
{
    /* Nodes lie at equal distances: one multiplication alone would make chains of some of them. */
    uint64_t hash = (uint64_t)(uintptr_t)node * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t slot = (uint32_t)(hash >> 40) & (p->index_size - 1);
    while (p->index[slot] != 0 && p->visits[p->index[slot] - 1].node != node) {
        slot = (slot + 1) & (p->index_size - 1);
    }
    return slot;
}

static int grow(pass *p)
{
    uint32_t cap = p->cap > 0 ? 2 * p->cap : 64;
    visit *visits = burni_realloc(p->visits, cap * sizeof(*visits));
    if (visits == NULL) {
        return 0;
    }
    p->visits = visits;
    p->cap = cap;
    burni_free(p->index);
    p->index_size = 4 * cap;
    p->index = burni_calloc(p->index_size, sizeof(p->index[0]));
    if (p->index == NULL) {
        p->index_size = 0;
        return 0;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        p->index[slot_of(p, p->visits[i].node)] = i + 1;
    }
    return 1;
}

static visit *find(const pass *p, const burni_node *node)
{
    uint32_t at = p->index[slot_of(p, node)];
    return at != 0 ? &p->visits[at - 1] : NULL;
}

/* Adds a node unless it is there. 0: no memory. */
static int add(pass *p, burni_node *node)
{
    if (p->n == p->cap && !grow(p)) {
        return 0;
    }
    uint32_t slot = slot_of(p, node);
    if (p->index[slot] != 0) {
        return 1;
    }
    visit *v = &p->visits[p->n];
    v->many = NULL;
    v->one = NULL;
    v->order = p->n;
    if (n_outputs(node) > 1) {
        v->many = burni_calloc(n_outputs(node), sizeof(burn_tensor *));
        if (v->many == NULL) {
            return 0;
        }
    }
    v->node = burni_node_ref(node);
    p->index[slot] = ++p->n;
    return 1;
}

static int collect(pass *p, burni_node *root)
{
    if (!add(p, root)) {
        return 0;
    }
    /* The array is its own work list: nodes are appended while it is walked. */
    for (uint32_t i = 0; i < p->n; i++) {
        burni_node *node = p->visits[i].node;
        for (uint32_t k = 0; k < node->n_in; k++) {
            if (node->edges[k].node != NULL && !add(p, node->edges[k].node)) {
                return 0;
            }
        }
    }
    return 1;
}

static int deeper_first(const void *a, const void *b)
{
    const visit *x = a;
    const visit *y = b;
    if (x->node->depth != y->node->depth) {
        return x->node->depth < y->node->depth ? 1 : -1;
    }
    return x->order < y->order ? -1 : 1;
}

static void sort_by_depth(pass *p)
{
    uint32_t sorted = 1;
    while (sorted < p->n && p->visits[sorted - 1].node->depth >= p->visits[sorted].node->depth) {
        sorted++;
    }
    if (sorted >= p->n) {
        return;
    }
    qsort(p->visits, p->n, sizeof(visit), deeper_first);
    memset(p->index, 0, p->index_size * sizeof(p->index[0]));
    for (uint32_t i = 0; i < p->n; i++) {
        p->index[slot_of(p, p->visits[i].node)] = i + 1;
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

static burn_tensor *call1(const pass *p, uint64_t id, const void *attrs, burn_tensor *x,
                          burn_tensor *y)
{
    burn_tensor *const in[2] = {x, y};
    burn_tensor *out = NULL;
    uint32_t size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    (void)burni_emit(p->thread, p->device, burni_op_find(id), attrs, size, in, y != NULL ? 2 : 1,
                     &out, 1);
    return out;
}

/* Sums a gradient over the dims that its input was broadcast along. */
static burn_tensor *sum_back(const pass *p, burn_tensor *g, const burn_meta *meta)
{
    if (g->cause != NULL) {
        return g;
    }
    burn_attrs_axes axes;
    burn_attrs_init(&axes, sizeof(axes));
    int equal = g->rank == meta->rank;
    uint32_t lead = g->rank > meta->rank ? g->rank - meta->rank : 0;
    for (uint32_t d = 0; d < g->rank; d++) {
        int64_t want = d < lead ? 1 : meta->rank >= g->rank ? meta->dims[d + meta->rank - g->rank]
                                                            : meta->dims[d - lead];
        if (d < lead || (want == 1 && g->dims[d] != 1)) {
            axes.axes[axes.n_axes++] = d;
            equal = 0;
        }
    }
    if (axes.n_axes > 0) {
        axes.keepdims = 1;
        g = call1(p, BURN_OP_SUM, &axes, g, NULL);
    }
    for (uint32_t d = 0; equal && d < g->rank; d++) {
        equal = g->dims[d] == meta->dims[d];
    }
    if (equal || g->cause != NULL) {
        return g;
    }
    burn_attrs_shape shape;
    burn_attrs_init(&shape, sizeof(shape));
    shape.n_dims = meta->rank;
    memcpy(shape.dims, meta->dims, meta->rank * sizeof(int64_t));
    int64_t want = 1;
    for (uint32_t d = 0; d < meta->rank; d++) {
        want *= meta->dims[d];
    }
    return call1(p, want == g->numel ? BURN_OP_RESHAPE : BURN_OP_EXPAND, &shape, g, NULL);
}

static int32_t wrong_gradient(const pass *p, const burni_node *node, uint32_t i, const char *what)
{
    const char *plugin = node->op->plugin;
    return burni_fail(p->err, BURN_E_INTERNAL, "%s%s%s: its gradient of %s %s",
                      plugin != NULL ? plugin : "", plugin != NULL ? ": op " : "",
                      node->op->def.name, burni_op_role_in(node->op, i)->name, what);
}

/*
 * What a vjp gave for input i is a tensor of the input's dtype, and of its shape or of one that
 * broadcasting leads to or from, dims counted from the last: anything else would add up to numbers
 * that mean nothing.
 */
static int32_t check_gradient(const pass *p, const burni_node *node, uint32_t i,
                              const burn_tensor *g)
{
    const burn_meta *meta = &node->in_meta[i];
    if (g->cause != NULL) {
        return BURN_OK; /* told when it is summed */
    }
    if (g->kind != BURN_TENSOR) {
        return wrong_gradient(p, node, i, "is a bare scalar");
    }
    if (g->dtype != meta->dtype) {
        char what[80];
        (void)snprintf(what, sizeof(what), "is %s, the operand %s", burn_dtype_name(g->dtype),
                       burn_dtype_name(meta->dtype));
        return wrong_gradient(p, node, i, what);
    }
    uint32_t both = g->rank < meta->rank ? g->rank : meta->rank;
    for (uint32_t d = 1; d <= both; d++) {
        int64_t have = g->dims[g->rank - d];
        int64_t want = meta->dims[meta->rank - d];
        if (have != want && have != 1 && want != 1) {
            char what[120];
            (void)snprintf(what, sizeof(what),
                           "has size %lld where the operand has %lld (dim %u from the last), and "
                           "neither is 1", (long long)have, (long long)want, d);
            return wrong_gradient(p, node, i, what);
        }
    }
    return BURN_OK;
}

/* Adds a gradient to what an output of a node has so far. */
static void accumulate(pass *p, burni_node *node, uint32_t out_index, burn_tensor *g)
{
    visit *v = find(p, node);
    uint32_t at = node->op != NULL ? out_index : 0;
    burn_tensor **slot = &grads_of(v)[at];
    burn_tensor *old = *slot;
    if (old != NULL) {
        g = call1(p, BURN_OP_ADD, NULL, old, g);
        *slot = NULL;
        burni_handle_unref(old);
    }
    *slot = burni_handle_ref(g);
}

/* What was saved for a vjp, made again if it was not kept. */
static int32_t saved_value(pass *p, const burni_node *node, burn_tensor *saved, burn_tensor **out)
{
    *out = saved;
    if (!burni_is_ghost(saved)) {
        return BURN_OK;
    }
    burn_tensor *value = burni_rerun_value(&p->rerun, saved, node->op->def.name, p->err);
    if (value == NULL) {
        return p->err->code;
    }
    *out = value;
    if ((p->flags & BURN_GRAD_CREATE) == 0) {
        return BURN_OK;
    }
    /* What is recorded now sees the history of the first time, and need not keep it either. */
    burn_tensor *t = burni_handle_alias(p->thread, value, 1);
    if (t == NULL) {
        return burni_fail(p->err, BURN_E_NO_MEMORY, "backward: out of host memory");
    }
    burni_recipe_attach(t, saved->out_index, saved->recipe);
    t->node = saved->node != NULL ? burni_node_ref(saved->node) : NULL;
    *out = t;
    return BURN_OK;
}

/* A saved output takes its place on the tape again while its vjp runs. */
static int32_t saved_output(pass *p, burni_node *node, uint32_t j, burn_tensor **out)
{
    burn_tensor *saved = node->saved_out[j];
    int32_t rc = saved_value(p, node, saved, out);
    if (rc != BURN_OK || saved == NULL || (p->flags & BURN_GRAD_CREATE) == 0) {
        return rc;
    }
    burn_tensor *t = burni_is_ghost(saved) ? *out : burni_handle_alias(p->thread, saved, 1);
    if (t != NULL) {
        t->node = burni_node_ref(node);
        t->out_index = j;
        *out = t;
    }
    return BURN_OK;
}

/* The operands that the vjp gets: handles, or NULL where nothing was saved. */
static int32_t saved_values(pass *p, burni_node *node, burn_value **in, burn_value **out)
{
    burn_tensor *t = NULL;
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < node->n_in && rc == BURN_OK; i++) {
        rc = saved_value(p, node, node->saved_in[i], &t);
        in[i] = (burn_value *)(void *)t;
    }
    for (uint32_t j = 0; j < node->n_out && rc == BURN_OK; j++) {
        rc = saved_output(p, node, j, &t);
        out[j] = (burn_value *)(void *)t;
    }
    burni_rerun_settle(&p->rerun);
    return rc;
}

static int32_t run_vjp(pass *p, visit *v)
{
    burni_node *node = v->node;
    const burn_op_def *def = &node->op->def;
    burni_eager eager;
    burn_builder builder;
    burni_eager_builder(&eager, p->thread, p->device, &builder);
    burn_value *in[BURN_MAX_OPERANDS];
    burn_value *out[BURN_MAX_OPERANDS];
    burn_value *grad_out[BURN_MAX_OPERANDS];
    burn_value *grad_in[BURN_MAX_OPERANDS];
    uint8_t wanted[BURN_MAX_OPERANDS];
    int32_t rc = saved_values(p, node, in, out);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < node->n_in; i++) {
        wanted[i] = node->edges[i].node != NULL;
        grad_in[i] = NULL;
    }
    for (uint32_t j = 0; j < node->n_out; j++) {
        grad_out[j] = (burn_value *)(void *)grads_of(v)[j];
    }
    burn_vjp a = {sizeof(a), node->n_in, node->n_out, node->attrs_size, in,         out,
                  grad_out,  wanted,     node->in_meta, grad_in,        node->attrs};
    rc = burni_ask_vjp(node->op, &builder, &a, p->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < node->n_in; i++) {
        burn_tensor *g = (burn_tensor *)(void *)grad_in[i];
        if (g == NULL) {
            continue;
        }
        rc = wanted[i] ? check_gradient(p, node, i, g)
                       : wrong_gradient(p, node, i, "was set, but nobody wants it");
        if (rc != BURN_OK) {
            return rc;
        }
        g = sum_back(p, g, &node->in_meta[i]);
        if (g->cause != NULL) {
            burni_cause_write(g->cause, p->err);
            burni_prefix(p->err, "gradient of %s", def->name);
            return g->cause->code;
        }
        accumulate(p, node->edges[i].node, node->edges[i].out_index, g);
    }
    return BURN_OK;
}

/*
 * Passes of several threads may walk one history at once. `used` counts those inside of a node;
 * the top bit says that one of them was the last that may, and whoever leaves last drops what the
 * node saved.
 */
#define USED_UP (UINT32_C(1) << 31)

/* 0: an earlier pass used it up. */
static int enter(burni_node *node)
{
    uint32_t inside = atomic_load(&node->used);
    while ((inside & USED_UP) == 0) {
        if (atomic_compare_exchange_weak(&node->used, &inside, inside + 1)) {
            return 1;
        }
    }
    return 0;
}

static void leave(pass *p, burni_node *node, int uses_up)
{
    if (uses_up) {
        (void)atomic_fetch_or(&node->used, USED_UP);
    }
    if (atomic_fetch_sub(&node->used, 1) == (USED_UP | 1)) {
        burni_rerun_drop_saved(&p->rerun, node);
    }
}

static int32_t visit_node(pass *p, visit *v)
{
    burni_node *node = v->node;
    int any = 0;
    for (uint32_t j = 0; j < node->n_out; j++) {
        any |= grads_of(v)[j] != NULL;
    }
    if (!any) {
        return BURN_OK;
    }
    if (!enter(node)) {
        return burni_fail(p->err, BURN_E_STATE,
                          "backward: the history through %s was used up by an earlier pass; give "
                          "it BURN_GRAD_RETAIN",
                          node->op->def.name);
    }
    /* Its ops come from where the op came from. */
    burni_frame frame;
    uint64_t tag = p->thread->tag;
    p->thread->tag = node->tag;
    int watched = p->thread->watch != 0;
    if (watched) {
        burni_frame_open(p->thread, &frame, "gradient of ", node->op->def.name);
    }
    burn_scope_begin();
    int32_t rc = run_vjp(p, v);
    burn_scope_end();
    if (watched) {
        burni_frame_close(p->thread, &frame);
    }
    p->thread->tag = tag;
    for (uint32_t j = 0; j < node->n_out; j++) {
        burni_handle_unref(grads_of(v)[j]);
        grads_of(v)[j] = NULL;
    }
    leave(p, node, rc == BURN_OK && (p->flags & (BURN_GRAD_RETAIN | BURN_GRAD_CREATE)) == 0);
    return rc;
}

/* ---- the container --------------------------------------------------------------------------- */

static int keep_leaf(pass *p, visit *v)
{
    burn_grads *r = p->result;
    if (v->one == NULL) {
        return 1;
    }
    if (r->n == r->cap) {
        uint32_t cap = r->cap > 0 ? 2 * r->cap : 16;
        burni_grad_entry *entries = burni_realloc(r->entries, cap * sizeof(*entries));
        if (entries == NULL) {
            return 0;
        }
        r->entries = entries;
        r->cap = cap;
    }
    r->entries[r->n].leaf = burni_node_ref(v->node);
    r->entries[r->n++].grad = v->one;
    v->one = NULL;
    return 1;
}

static void end_pass(pass *p)
{
    burni_rerun_end(&p->rerun);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n_out = n_outputs(p->visits[i].node);
        for (uint32_t j = 0; j < n_out; j++) {
            burni_handle_unref(grads_of(&p->visits[i])[j]);
        }
        burni_free(p->visits[i].many);
        burni_node_unref(p->visits[i].node);
    }
    burni_free(p->visits);
    burni_free(p->index);
}

static burn_tensor *seed_for(const pass *p, burn_tensor *t, burn_tensor *seed)
{
    if (seed != NULL) {
        return seed;
    }
    burn_attrs_shape shape;
    burn_attrs_init(&shape, sizeof(shape));
    shape.n_dims = t->rank;
    shape.dtype = t->dtype;
    memcpy(shape.dims, t->dims, t->rank * sizeof(int64_t));
    return call1(p, BURN_OP_FILL, &shape, burn_scalar(1.0), NULL);
}

/* What is known now of a tensor: a call that failed, or work that ran and failed. Runs nothing. */
static int32_t known_failure(const burn_tensor *t, burn_err *err)
{
    const burni_cause *cause = t->cause;
    if (cause == NULL && t->storage != NULL &&
        atomic_load_explicit(&t->storage->writes, memory_order_acquire) == 0 &&
        atomic_load_explicit(&t->storage->state, memory_order_acquire) == BURNI_FAILED) {
        cause = t->storage->cause;
    }
    /* In a dry run nothing has a value, and nothing needs one. */
    cause = cause == &burni_cause_dry ? NULL : cause;
    if (cause == NULL) {
        return BURN_OK;
    }
    burni_cause_write(cause, err);
    return cause->code;
}

static int32_t fail_seed(const burn_tensor *t, const burn_tensor *seed, burn_err *err)
{
    char dims[192];
    char given[192] = " by value";
    if (seed->kind == BURN_TENSOR) {
        (void)burni_shape_text(given, sizeof(given), seed->rank, seed->dims);
    }
    return burni_fail(err, BURN_E_SHAPE,
                      "backward: the seed is %s%s, the tensor is %s%s; they must be equal",
                      burn_dtype_name(seed->dtype), given, burn_dtype_name(t->dtype),
                      burni_shape_text(dims, sizeof(dims), t->rank, t->dims));
}

static int32_t check_root(const burn_tensor *t, const burn_tensor *seed, burn_err *err)
{
    if (t == NULL) {
        return burni_fail(err, BURN_E_INVALID, "backward: the tensor is NULL");
    }
    int32_t rc = known_failure(t, err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (t->node == NULL) {
        return burni_fail(err, BURN_E_STATE,
                          "backward: the tensor depends on no variable of an autodiff device and "
                          "on no burn_require_grad tensor");
    }
    rc = seed != NULL ? known_failure(seed, err) : BURN_OK;
    if (rc != BURN_OK) {
        return rc;
    }
    if (seed != NULL && (seed->kind != BURN_TENSOR || seed->rank != t->rank ||
                         seed->dtype != t->dtype ||
                         memcmp(seed->dims, t->dims, t->rank * sizeof(int64_t)) != 0)) {
        return fail_seed(t, seed, err);
    }
    return BURN_OK;
}

static int32_t walk(pass *p, burn_tensor *t, burn_tensor *seed)
{
    if (!collect(p, t->node)) {
        return burni_fail(p->err, BURN_E_NO_MEMORY, "backward: out of host memory");
    }
    sort_by_depth(p);
    burn_tensor *g = seed_for(p, t, seed);
    if (g->cause != NULL) {
        burni_cause_write(g->cause, p->err);
        return g->cause->code;
    }
    accumulate(p, t->node, t->out_index, g);
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < p->n && rc == BURN_OK; i++) {
        if (p->visits[i].node->op != NULL) {
            rc = visit_node(p, &p->visits[i]);
        } else if (!keep_leaf(p, &p->visits[i])) {
            rc = burni_fail(p->err, BURN_E_NO_MEMORY, "backward: out of host memory");
        }
    }
    /* With window 1 the gradients have been launched: one that failed fails the pass. */
    for (uint32_t i = 0; i < p->result->n && rc == BURN_OK; i++) {
        rc = known_failure(p->result->entries[i].grad, p->err);
    }
    return rc;
}

burn_grads *burn_backward(burn_tensor *t, burn_tensor *seed, uint32_t flags, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (flags & ~(uint32_t)(BURN_GRAD_RETAIN | BURN_GRAD_CREATE)) {
        (void)burni_fail(err, BURN_E_INVALID,
                         "backward: flags are 0x%x; there are BURN_GRAD_RETAIN and "
                         "BURN_GRAD_CREATE",
                         flags);
        return NULL;
    }
    if (thread == NULL || check_root(t, seed, err) != BURN_OK) {
        return NULL;
    }
    burn_grads *result = burni_calloc(1, sizeof(*result));
    if (result == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "backward: out of host memory");
        return NULL;
    }
    pass p = {.thread = thread,
              .device = t->device,
              .flags = flags,
              .rerun = {.thread = thread},
              .result = result,
              .err = err};
    int recording = (flags & BURN_GRAD_CREATE) != 0;
    burn_scope_begin();
    thread->no_grad += !recording;
    int32_t rc = walk(&p, t, seed);
    thread->no_grad -= !recording;
    end_pass(&p);
    burn_scope_end();
    if (rc != BURN_OK) {
        burn_grads_free(result);
        return NULL;
    }
    return result;
}

/* ---- asking the container -------------------------------------------------------------------- */

static burni_grad_entry *entry_of(const burn_grads *grads, const burni_node *leaf)
{
    for (uint32_t i = 0; grads != NULL && leaf != NULL && i < grads->n; i++) {
        if (grads->entries[i].leaf == leaf) {
            return &grads->entries[i];
        }
    }
    return NULL;
}

static burn_tensor *hand_out(const burni_grad_entry *entry)
{
    burni_thread *thread = burni_thread_get();
    if (entry == NULL || thread == NULL) {
        return NULL;
    }
    burn_tensor *t = burni_handle_alias(thread, entry->grad, 1);
    if (t != NULL && entry->grad->node != NULL) {
        t->node = burni_node_ref(entry->grad->node);
        t->out_index = entry->grad->out_index;
    }
    return t;
}

burn_tensor *burn_grads_get(burn_grads *grads, const burn_tensor *leaf)
{
    return leaf != NULL ? hand_out(entry_of(grads, leaf->node)) : NULL;
}

burn_tensor *burn_grads_get_var(burn_grads *grads, const burn_var *var)
{
    return var != NULL ? hand_out(entry_of(grads, var->leaf)) : NULL;
}

int32_t burn_grads_set_var(burn_grads *grads, const burn_var *var, burn_tensor *grad,
                           burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_grad_entry *entry = var != NULL ? entry_of(grads, var->leaf) : NULL;
    if (entry == NULL) {
        return burni_fail(err, BURN_E_NOT_FOUND, "gradients: the variable has none here");
    }
    if (grad == NULL || grad->cause != NULL || grad->kind != BURN_TENSOR ||
        grad->rank != entry->grad->rank || grad->dtype != entry->grad->dtype ||
        memcmp(grad->dims, entry->grad->dims, grad->rank * sizeof(int64_t)) != 0) {
        return burni_fail(err, BURN_E_SHAPE, "gradients: the new one must have the old one's shape "
                                             "and dtype");
    }
    burni_thread *thread = burni_thread_get();
    burn_tensor *alias = thread != NULL ? burni_handle_alias(thread, grad, 0) : NULL;
    if (alias == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "gradients: out of host memory");
    }
    burni_handle_unref(entry->grad);
    entry->grad = alias;
    return BURN_OK;
}

void burn_grads_free(burn_grads *grads)
{
    if (grads == NULL) {
        return;
    }
    for (uint32_t i = 0; i < grads->n; i++) {
        burni_handle_unref(grads->entries[i].grad);
        burni_node_unref(grads->entries[i].leaf);
    }
    burni_free(grads->entries);
    burni_free(grads);
}
