/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emit_again.c - the short way of ops that are not elementwise: a call like an earlier one.
 *
 * What follows from dtypes, shapes, layouts and attributes alone (the checks, the shape rule, the
 * operands as a row sees them, the row) is remembered for the last calls of a stream. A call that
 * equals one of them in all of these makes the same launch without asking again. Whatever is
 * unusual (scalars, variables to write, moved or failed operands, copies, a thread that is watched)
 * goes the long way. Nothing here can fail: 0 means that emit.c does the call. Owner thread only.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "exec/emit_private.h"
#include "exec/follow.h"
#include "exec/launch.h"

#include <string.h>

enum { MAX_OPERANDS = 8 };

/* Of an operand. `head` is a handle's kind, dtype, rank and flags, but for what a call does not
 * see of these. */
typedef struct remembered {
    uint32_t head;
    uint32_t zero;
    int64_t numel;
    uint64_t bytes;
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
} remembered;

typedef struct burni_again burni_again;

struct burni_again {
    const burni_op *op;
    const burni_device *device;
    const burni_resolved *resolved; /* held */
    uint32_t rows_version;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t math;
    uint32_t attrs_size;
    uint32_t zero;
    uint64_t form; /* its number, told apart from those of emit_fast.c */
    remembered shapes[MAX_OPERANDS]; /* of inputs, then outputs */
    burn_operand operands[MAX_OPERANDS];
    int64_t dims[MAX_OPERANDS][BURN_MAX_RANK]; /* as a row sees them */
    int64_t strides[MAX_OPERANDS][BURN_MAX_RANK];
    unsigned char attrs[BURN_MAX_ATTRS];
    burni_ready ready; /* of calls with one output */
};

/* A head without the flags that say nothing of the call: a moved handle is no earlier call's. */
static uint32_t plain_head(const burn_tensor *t)
{
    burn_tensor copy;
    copy.kind = t->kind;
    copy.dtype = t->dtype;
    copy.rank = t->rank;
    copy.flags = t->flags & BURNI_CONTIGUOUS;
    return burni_handle_head(&copy);
}

/* Where a call is remembered: another one of the same place takes it over. */
static uint32_t place_of(const burni_op *op, const void *attrs, uint32_t attrs_size,
                         burn_tensor *const *in, uint32_t n_in)
{
    uint64_t hash = op->index + 1;
    for (uint32_t i = 0; i < n_in && i < 2; i++) {
        const burn_tensor *t = in[i];
        if (t != NULL && t->kind == BURN_TENSOR && t->rank > 0) {
            hash = burni_mix(hash, (uint64_t)t->dims[0]);
            hash = burni_mix(hash, (uint64_t)t->dims[t->rank - 1u] + (t->flags & 1u));
        }
    }
    /* Two calls of one op that differ in their attributes should not take turns. */
    uint64_t word = 0;
    for (uint32_t at = 8; at + sizeof(word) <= attrs_size && at < 32; at += sizeof(word)) {
        memcpy(&word, (const char *)attrs + at, sizeof(word));
        hash = burni_mix(hash, word);
    }
    return (uint32_t)(hash >> 40) % BURNI_AGAIN;
}

static inline int same_sizes(uint32_t rank, const int64_t *a, const int64_t *b)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (a[d] != b[d]) {
            return 0;
        }
    }
    return 1;
}

static inline int same_input(const remembered *r, const burn_tensor *t)
{
    if (t == NULL) {
        return r->head == 0;
    }
    return burni_handle_head(t) == r->head && t->cause == NULL &&
           same_sizes(t->rank, t->dims, r->dims) &&
           ((t->flags & BURNI_CONTIGUOUS) != 0 || same_sizes(t->rank, t->strides, r->strides));
}

static int matches(const burni_again *a, const burni_stream *stream, const burni_emission *e,
                   uint32_t math)
{
    if (a == NULL || a->op != e->op || a->n_in != e->n_in || a->n_out != e->n_out ||
        a->math != math || a->attrs_size != e->attrs_size ||
        a->rows_version != atomic_load_explicit(&stream->device->rows_version,
                                                memory_order_relaxed) ||
        (e->attrs_size > 0 && memcmp(a->attrs, e->attrs, e->attrs_size) != 0)) {
        return 0;
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_tensor *t = e->in[i];
        if (!same_input(&a->shapes[i], t) || (t != NULL && t->device->core != stream->device)) {
            return 0;
        }
    }
    return 1;
}

/* ---- remembering ----------------------------------------------------------------------------- */

void burni_again_learn(burni_stream *stream, const burni_emission *e, const burni_operands *ops,
                       const burni_resolved *resolved, uint32_t math)
{
    uint32_t n = e->n_in + e->n_out;
    if (n > MAX_OPERANDS || e->attrs_size > BURN_MAX_ATTRS || e->moved != 0 ||
        e->op->def.effect != BURN_EFFECT_PURE || e->op->def.n_aliases != 0) {
        return;
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind == BURN_IMMEDIATE || e->used[i] != e->in[i]) {
            return;
        }
    }
    burni_again **place = &stream->again[place_of(e->op, e->attrs, e->attrs_size, e->in, e->n_in)];
    if (*place == NULL) {
        *place = burni_calloc(1, sizeof(**place));
    } else {
        burni_resolved_let_go((*place)->resolved);
    }
    burni_again *a = *place;
    if (a == NULL) {
        return;
    }
    burni_resolved_hold(resolved);
    a->op = e->op;
    a->device = stream->device;
    a->resolved = resolved;
    a->rows_version = stream->resolver.rows_version;
    a->n_in = e->n_in;
    a->n_out = e->n_out;
    a->math = math;
    a->attrs_size = e->attrs_size;
    a->form = UINT64_C(1) << 63 | ++stream->n_forms;
    if (e->attrs_size > 0) {
        memcpy(a->attrs, e->attrs, e->attrs_size);
    }
    if (a->n_out == 1) {
        burni_ready_make(&a->ready, resolved, a->operands, a->n_in, a->attrs, a->attrs_size, math);
    }
    for (uint32_t i = 0; i < n; i++) {
        const burn_tensor *t = i < e->n_in ? e->in[i] : e->out[i - e->n_in];
        remembered *r = &a->shapes[i];
        a->operands[i] = ops->operands[i];
        memcpy(a->dims[i], ops->operands[i].dims, ops->operands[i].rank * sizeof(int64_t));
        memcpy(a->strides[i], ops->operands[i].strides, ops->operands[i].rank * sizeof(int64_t));
        a->operands[i].dims = a->dims[i];
        a->operands[i].strides = a->strides[i];
        r->head = t != NULL ? plain_head(t) : 0;
        if (t != NULL) {
            r->numel = t->numel;
            r->bytes = (uint64_t)t->numel * burn_dtype_size(t->dtype);
            memcpy(r->dims, t->dims, t->rank * sizeof(t->dims[0]));
            memcpy(r->strides, t->strides, t->rank * sizeof(t->strides[0]));
        }
    }
}

void burni_again_forget(burni_stream *stream)
{
    for (uint32_t k = 0; k < BURNI_AGAIN; k++) {
        if (stream->again[k] != NULL) {
            burni_resolved_let_go(stream->again[k]->resolved);
            burni_free(stream->again[k]);
            stream->again[k] = NULL;
        }
    }
    memset(stream->latest, 0, sizeof(stream->latest));
}

/* ---- calling --------------------------------------------------------------------------------- */

/* Handles and storages like those of the remembered call; 0: no memory, and none are left. */
static int make_outputs(burni_thread *thread, const burni_again *a, burn_device *device,
                        burn_tensor **out)
{
    for (uint32_t j = 0; j < a->n_out; j++) {
        const remembered *r = &a->shapes[a->n_in + j];
        burn_tensor *t = burni_handle_new(thread, 1);
        int made = t != NULL;
        if (made) {
            burni_handle_set_head(t, r->head);
            t->device = device;
            t->numel = r->numel;
            memcpy(t->dims, r->dims, sizeof(r->dims));
            memcpy(t->strides, r->strides, sizeof(r->strides));
            t->storage = burni_storage_new(thread, device->core, r->bytes);
            out[j] = t;
            made = t->storage != NULL;
        }
        if (!made) {
            for (uint32_t k = 0; k <= j; k++) {
                burn_release(out[k]);
                out[k] = NULL;
            }
            return 0;
        }
    }
    return 1;
}

/* What the tape asks of an emission. */
static void describe(burni_emission *e, const burni_again *a)
{
    for (uint32_t i = 0; i < a->n_in; i++) {
        e->meta[i].kind = BURN_ABSENT;
        e->meta[i].dtype = 0;
        e->meta[i].rank = 0;
        e->meta[i].flags = 0;
        if (e->in[i] != NULL) {
            burni_handle_meta(e->in[i], &e->meta[i]);
        }
    }
    for (uint32_t j = 0; j < a->n_out; j++) {
        burni_handle_meta(e->out[j], &e->out_meta[j]);
    }
}

static int tracked(const burni_thread *thread, const burni_op *op, burn_tensor *const *in,
                   uint32_t n_in)
{
    int found = 0;
    for (uint32_t i = 0; i < n_in && thread->no_grad == 0 && op->differentiable; i++) {
        found |= in[i] != NULL && in[i]->node != NULL;
    }
    return found;
}

static burn_device *device_of(burn_tensor *const *in, uint32_t n_in)
{
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i] != NULL && in[i]->kind == BURN_TENSOR) {
            return in[i]->device;
        }
    }
    return NULL;
}

/* `operands` are those that are remembered, or copies. */
static inline void fill_operands(const burni_again *a, const burni_emission *e,
                                 burn_operand *operands, burni_storage **storages)
{
    for (uint32_t i = 0; i < a->n_in; i++) {
        const burn_tensor *t = e->in[i];
        storages[i] = t != NULL ? t->storage : NULL;
        operands[i].offset = 0;
        if (__builtin_expect(t != NULL && t->offset != 0, 0)) {
            operands[i].offset = (uint64_t)t->offset * burn_dtype_size(t->dtype);
        }
    }
    for (uint32_t j = 0; j < a->n_out; j++) {
        storages[a->n_in + j] = e->out[j]->storage;
        operands[a->n_in + j].offset = 0;
    }
}

/* A launch that waits, or has something in its way. Apart, for its room on the stack. */
__attribute__((noinline)) static int32_t append(burni_stream *stream, const burni_again *a,
                                                const burni_emission *e, burn_err *refused)
{
    burn_operand copies[MAX_OPERANDS];
    burni_storage *storages[MAX_OPERANDS];
    memcpy(copies, a->operands, (a->n_in + a->n_out) * sizeof(copies[0]));
    fill_operands(a, e, copies, storages);
    burni_launch launch = {.op = a->op,
                           .resolved = a->resolved,
                           .attrs = a->attrs_size > 0 ? a->attrs : NULL,
                           .attrs_size = a->attrs_size,
                           .n_in = a->n_in,
                           .n_out = a->n_out,
                           .math = a->math,
                           .tag = e->thread->tag,
                           .origin = e->thread->origin,
                           .remade = e->thread->remaking,
                           .form = a->form,
                           .operands = copies,
                           .storages = storages};
    if (refused != NULL) {
        return burni_launch_refused(stream, &launch, refused->code, refused);
    }
    return burni_launches_now(stream) ? burni_launch_run(stream, &launch, copies)
                                      : burni_stream_append(stream, &launch, NULL);
}

/* Hands the launch over: at once where that can be. */
static int32_t launch(burni_stream *stream, burni_again *a, const burni_emission *e)
{
    burni_storage *storages[MAX_OPERANDS];
    burn_err err;
    int how = BURNI_READY_NOT;
    if (burni_launches_now(stream) && a->n_out == 1) {
        fill_operands(a, e, a->operands, storages);
        how = burni_launch_ready(stream, &a->ready, a->operands, storages, &err);
        if (__builtin_expect(how == BURNI_READY_DONE, 1)) {
            return BURN_OK;
        }
    }
    return append(stream, a, e, how == BURNI_READY_ERROR ? &err : NULL);
}

static int follow(burni_stream *stream, const burni_again *a, const burni_emission *e)
{
    if (!burni_follows(stream)) {
        return 0;
    }
    burni_form form = {a->op, a->resolved, a->form, 0, a->n_in, a->n_out, e->in, e->out, NULL,
                       0, 0};
    return burni_follow(stream, &form);
}

/* The call like this one, NULL if there was none. */
static burni_again *recall(burni_stream *stream, const burni_emission *e)
{
    uint32_t math = e->op->pointwise ? 0 : e->thread->math;
    burni_again **latest = &stream->latest[e->op->index % BURNI_LATEST];
    if (__builtin_expect(matches(*latest, stream, e, math), 1)) {
        return *latest;
    }
    burni_again *a =
        stream->again[place_of(e->op, e->attrs, e->attrs_size, e->in, e->n_in)];
    if (!matches(a, stream, e, math)) {
        return NULL;
    }
    *latest = a;
    return a;
}

int burni_emit_again(burni_emission *e)
{
    burni_thread *thread = e->thread;
    burn_device *device = device_of(e->in, e->n_in);
    if (device == NULL || thread->watch != 0 || thread->direct != NULL ||
        atomic_load_explicit(&device->core->recompute, memory_order_relaxed) !=
            BURN_RECOMPUTE_NONE) {
        return 0;
    }
    burni_stream *stream = burni_stream_get(thread, device->core, NULL);
    burni_again *a = stream != NULL ? recall(stream, e) : NULL;
    if (a == NULL) {
        return 0;
    }
    int taped = tracked(thread, e->op, e->in, e->n_in);
    if (taped && e->op->def.vjp == NULL) {
        return 0;
    }
    e->device = e->device != NULL ? e->device : device;
    if (!make_outputs(thread, a, e->device, e->out)) {
        return 0;
    }
    if (taped) {
        describe(e, a);
        taped = burni_wants_tape(e);
    }
    int fine = follow(stream, a, e) || launch(stream, a, e) == BURN_OK;
    if (fine && taped) {
        burn_err err = BURN_ERR_INIT;
        fine = burni_tape(e, &err) == BURN_OK;
    }
    for (uint32_t j = 0; j < e->n_out && !fine; j++) {
        burn_release(e->out[j]);
        e->out[j] = NULL;
    }
    return fine;
}
