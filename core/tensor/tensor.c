/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tensor.c - handles, storages and causes: free lists, counts, failed handles.
 *
 * Free lists belong to the thread that frees; a handle made by one thread and freed by another
 * simply changes lists. Nothing here runs work: a dead storage goes to the hook.
 */
#include "tensor/tensor.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "tensor/recipe.h"

#include <burn/plugin.h>
#include <stdio.h>
#include <string.h>

burni_hooks burni_hooks_table;

/* clang-format off */
burni_cause burni_cause_dry = { UINT32_MAX, BURN_E_STATE, 0,
    "made in a dry run (burn_dry_run_begin), which computes nothing; make it again after "
    "burn_dry_run_end" };
burni_cause burni_cause_no_memory = { UINT32_MAX, BURN_E_NO_MEMORY, 0, "out of host memory" };
/* clang-format on */

static burn_tensor immortal_failed = {
    .refs = BURNI_IMMORTAL,
    .kind = BURN_TENSOR,
    .cause = &burni_cause_no_memory,
};

/* ---- causes ----------------------------------------------------------------------------- */

burni_cause *burni_cause_new(const burn_err *err)
{
    burni_cause *cause = burni_alloc(sizeof(*cause));
    if (cause == NULL) {
        return &burni_cause_no_memory;
    }
    atomic_init(&cause->refs, 1);
    cause->code = err->code;
    cause->op = err->op;
    (void)snprintf(cause->text, sizeof(cause->text), "%s", err->text);
    return cause;
}

burni_cause *burni_cause_ref(burni_cause *cause)
{
    if (atomic_load_explicit(&cause->refs, memory_order_relaxed) != UINT32_MAX) {
        atomic_fetch_add_explicit(&cause->refs, 1, memory_order_relaxed);
    }
    return cause;
}

void burni_cause_unref(burni_cause *cause)
{
    if (cause == NULL || atomic_load_explicit(&cause->refs, memory_order_relaxed) == UINT32_MAX) {
        return;
    }
    if (atomic_fetch_sub_explicit(&cause->refs, 1, memory_order_acq_rel) == 1) {
        burni_free(cause);
    }
}

void burni_cause_write(const burni_cause *cause, burn_err *err)
{
    (void)burni_fail(err, cause->code, "%s", cause->text);
    if (err != NULL) {
        err->op = cause->op;
    }
}

/* ---- handles ---------------------------------------------------------------------------- */

/* A thread whose root scope holds more than this is told of, once. */
#define MANY_ITEMS 65536u

/* Makes room. Past MANY_ITEMS each item of a thread that was not told comes by here, until one is
 * outside of any scope. */
static int scope_push_slow(burni_thread *thread)
{
    if (thread->n_items == thread->cap_items) {
        uint32_t cap = thread->cap_items > 0 ? 2 * thread->cap_items : 256;
        burn_tensor **items = burni_realloc(thread->scope_items, cap * sizeof(*items));
        if (items == NULL) {
            return 0;
        }
        thread->scope_items = items;
        thread->cap_items = cap;
    }
    int is_told = thread->stop_items > MANY_ITEMS;
    if (!is_told && thread->n_items >= MANY_ITEMS && thread->n_marks == 0) {
        is_told = 1;
        burni_log(BURN_LOG_WARN, "scope",
                  "more than %u tensors are held outside of any scope of this thread; open one "
                  "around each step (burn_scope_begin, burn_scope_end), or call burn_scope_flush",
                  MANY_ITEMS);
    }
    thread->stop_items =
        is_told || thread->cap_items < MANY_ITEMS ? thread->cap_items : MANY_ITEMS;
    return 1;
}

static int scope_push(burni_thread *thread, burn_tensor *t)
{
    if (__builtin_expect(thread->n_items >= thread->stop_items, 0) && !scope_push_slow(thread)) {
        return 0;
    }
    thread->scope_items[thread->n_items++] = t;
    t->scope_slot = thread->n_items;
    return 1;
}

static inline burn_tensor *make_handle(burni_thread *thread, int scoped)
{
    burn_tensor *t = thread->free_handles;
    if (__builtin_expect(t != NULL, 1)) {
        thread->free_handles = t->next;
    } else {
        t = burni_alloc(sizeof(*t));
        if (t == NULL) {
            return NULL;
        }
    }
    atomic_store_explicit(&t->refs, 1, memory_order_relaxed);
    t->scope_slot = 0;
    t->kind = BURN_TENSOR;
    t->flags = 0;
    t->out_index = 0;
    t->device = NULL;
    t->storage = NULL;
    t->offset = 0;
    t->node = NULL;
    t->cause = NULL;
    if (scoped && !scope_push(thread, t)) {
        t->next = thread->free_handles;
        thread->free_handles = t;
        return NULL;
    }
    return t;
}

burn_tensor *burni_handle_new(burni_thread *thread, int scoped)
{
    return make_handle(thread, scoped);
}

void burni_scope_remove(burni_thread *thread, burn_tensor *t)
{
    uint32_t slot = t->scope_slot;
    t->scope_slot = 0;
    if (slot == 0 || slot > thread->n_items || thread->scope_items[slot - 1] != t) {
        return;
    }
    thread->scope_items[slot - 1] = NULL;
    uint32_t floor = thread->n_marks > 0 ? thread->scope_marks[thread->n_marks - 1] : 0;
    while (thread->n_items > floor && thread->scope_items[thread->n_items - 1] == NULL) {
        thread->n_items--;
    }
}

burn_tensor *burni_handle_failed(burni_thread *thread, burni_cause *cause)
{
    burn_tensor *t = thread != NULL ? burni_handle_new(thread, 1) : NULL;
    if (t == NULL) {
        return &immortal_failed;
    }
    t->dtype = BURN_DTYPE_NONE;
    t->rank = 0;
    t->numel = 0;
    t->cause = burni_cause_ref(cause);
    return t;
}

burn_tensor *burni_handle_fail(burni_thread *thread, int32_t code, uint64_t op,
                               const char *format, ...)
{
    burn_err err = BURN_ERR_INIT;
    va_list args;
    va_start(args, format);
    (void)burni_vfail(&err, code, format, args);
    va_end(args);
    err.op = op;
    burni_cause *cause = burni_cause_new(&err);
    burn_tensor *t = burni_handle_failed(thread, cause);
    burni_cause_unref(cause);
    return t;
}

burn_tensor *burni_handle_alias(burni_thread *thread, const burn_tensor *of, int scoped)
{
    burn_tensor *t = burni_handle_new(thread, scoped);
    if (t == NULL) {
        return NULL;
    }
    t->kind = of->kind;
    t->dtype = of->dtype;
    t->rank = of->rank;
    t->flags = of->flags & BURNI_CONTIGUOUS;
    t->device = of->device;
    t->offset = of->offset;
    t->numel = of->numel;
    memcpy(t->dims, of->dims, sizeof(t->dims));
    memcpy(t->strides, of->strides, sizeof(t->strides));
    if (of->cause != NULL) {
        t->cause = burni_cause_ref(of->cause);
    }
    if (of->storage != NULL) {
        t->storage = of->storage;
        burni_storage_ref(t->storage, 1);
    }
    return t;
}

void burni_handle_free(burn_tensor *t)
{
    if (t == &immortal_failed) {
        atomic_store(&t->refs, BURNI_IMMORTAL);
        return;
    }
    if (t->storage != NULL) {
        burni_storage_unref(t->storage, 1);
    }
    if (t->node != NULL) {
        burni_node_unref(t->node);
    }
    if (t->cause != NULL) {
        burni_cause_unref(t->cause);
    }
    if (__builtin_expect(t->flags & BURNI_RECIPE, 0)) {
        burni_recipe_unref(t->recipe);
    }
    burni_thread *thread = burni_thread_current;
    if (thread == NULL) {
        burni_free(t);
        return;
    }
    atomic_store_explicit(&t->refs, 0, memory_order_relaxed);
    t->next = thread->free_handles;
    thread->free_handles = t;
}

/* ---- storages ---------------------------------------------------------------------------- */

static inline burni_storage *make_storage(burni_thread *thread, struct burni_device *device,
                                          uint64_t bytes)
{
    burni_storage *s = thread->free_storages;
    if (__builtin_expect(s != NULL, 1)) {
        thread->free_storages = s->next;
    } else {
        s = burni_alloc(sizeof(*s));
        if (s == NULL) {
            return NULL;
        }
    }
    atomic_store_explicit(&s->refs, 1, memory_order_relaxed);
    atomic_store_explicit(&s->state, BURNI_NONE, memory_order_relaxed);
    atomic_store_explicit(&s->foreign, 0, memory_order_relaxed);
    atomic_store_explicit(&s->is_var, 0, memory_order_relaxed);
    atomic_store_explicit(&s->readers, 0, memory_order_relaxed);
    atomic_store_explicit(&s->writes, 0, memory_order_relaxed);
    s->device = device;
    atomic_store_explicit(&s->writer, NULL, memory_order_relaxed);
    atomic_store_explicit(&s->write_point, 0, memory_order_relaxed);
    s->host = NULL;
    s->buffer = NULL;
    s->buffer_offset = 0;
    s->block = NULL;
    s->bytes = bytes;
    s->cause = NULL;
    s->fault = NULL;
    s->unrun = NULL;
    s->serial = ++thread->storage_serial;
    s->slot = UINT32_MAX;
    s->home = thread;
    return s;
}

burni_storage *burni_storage_new(burni_thread *thread, struct burni_device *device, uint64_t bytes)
{
    return make_storage(thread, device, bytes);
}

burn_tensor *burni_result_new(burni_thread *thread, burn_device *device, struct burni_device *core,
                              uint64_t bytes)
{
    burni_storage *s = make_storage(thread, core, bytes);
    burn_tensor *t = s != NULL ? make_handle(thread, 1) : NULL;
    if (__builtin_expect(t == NULL, 0)) {
        if (s != NULL) {
            burni_storage_free(s);
        }
        return NULL;
    }
    t->device = device;
    t->storage = s;
    return t;
}

void burni_storage_free(burni_storage *s)
{
    if (s->block != NULL || s->fault != NULL || s->unrun != NULL) {
        burni_hooks_table.storage_dead(s);
    }
    if (s->cause != NULL) {
        burni_cause_unref(s->cause);
    }
    burni_thread *thread = burni_thread_current;
    if (thread == NULL) {
        burni_free(s);
        return;
    }
    s->next = thread->free_storages;
    thread->free_storages = s;
}

/* ---- shapes ------------------------------------------------------------------------------ */

void burni_handle_dense(burn_tensor *t)
{
    /* Unsigned: beside a dim of 0 the others may multiply to anything. */
    uint64_t n = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        t->strides[i] = (int64_t)n;
        n *= (uint64_t)t->dims[i];
    }
    t->numel = (int64_t)n;
    t->flags |= BURNI_CONTIGUOUS;
}

int burni_is_dense(uint32_t rank, const int64_t *dims, const int64_t *strides)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) {
            return 1;
        }
    }
    for (uint32_t i = rank; i-- > 0;) {
        if (dims[i] != 1 && strides[i] != n) {
            return 0;
        }
        n *= dims[i];
    }
    return 1;
}
