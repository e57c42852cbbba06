/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * var.c - variables: creation, reading, overwriting in place.
 *
 * A variable's storage keeps its memory for life. Before it is overwritten, readers that still hold
 * the old value get it copied out: their storage object moves to fresh memory, and the variable
 * goes on with a new storage object on the old memory. Records that were made before the write run
 * before it, and so do calls that were left (unrun.h), so they need no copy. An update holds the
 * locks of its variables until it has been launched or recorded: whoever gets a variable sees the
 * value before or the one after it, and launches of other threads that have bound the old memory
 * are waited for (guard.h).
 */
#include "exec/var.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/dry.h"
#include "exec/emit.h"
#include "exec/fault.h"
#include "exec/guard.h"
#include "exec/recording.h"
#include "exec/unrun.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/*
 * Ids go into files, where they tell parameters apart: they start at a random place, so that two
 * processes do not give out the same ones.
 */
static _Atomic uint64_t next_id;

static uint64_t new_id(void)
{
    uint64_t start = atomic_load(&next_id);
    if (start == 0) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
            random = (uint64_t)(uintptr_t)&random;
        }
        (void)atomic_compare_exchange_strong(&next_id, &start, (random >> 2) | 1);
    }
    return atomic_fetch_add(&next_id, 1);
}

/* Nobody reads it yet. */
static void become_variable(burni_storage *s, burn_var *var)
{
    s->var = var;
    atomic_store_explicit(&s->left, NULL, memory_order_relaxed);
    atomic_store_explicit(&s->is_var, 1, memory_order_release);
}

burn_var *burn_var_create(burn_device *device, burn_tensor *value, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "variable: no memory for the thread's state");
        return NULL;
    }
    if (value == NULL || device == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "variable: the %s is NULL",
                         device == NULL ? "device" : "value");
        return NULL;
    }
    if (value->cause != NULL) {
        burni_cause_write(value->cause, err);
        return NULL;
    }
    if (value->kind != BURN_TENSOR || value->device->core != device->core) {
        (void)burni_fail(err, BURN_E_DEVICE, "variable: its value must be a tensor on %s",
                         device->core->name);
        return NULL;
    }
    burni_recording_refuse(thread, "it makes a variable; run the step once before");
    burn_var *var = burni_calloc(1, sizeof(*var));
    burni_node *leaf = burni_node_new(NULL, 0, 0, 0);
    burn_tensor *copy = NULL;
    burn_scope_begin();
    thread->no_grad++;
    (void)burni_emit(thread, device, burni_op_find(BURN_OP_COPY), NULL, 0, &value, 1, &copy, 1);
    thread->no_grad--;
    if (var == NULL || leaf == NULL || copy == NULL || copy->cause != NULL) {
        if (copy == NULL || burn_tensor_error(copy, err) == BURN_OK) {
            (void)burni_fail(err, BURN_E_NO_MEMORY, "variable: out of host memory");
        }
        burni_scope_end_inside(NULL, 0);
        burni_node_unref(leaf);
        burni_free(var);
        return NULL;
    }
    var->value = burn_keep(copy);
    burni_scope_end_inside(NULL, 0);
    atomic_init(&var->refs, 1);
    (void)pthread_mutex_init(&var->lock, NULL);
    var->device = device;
    var->leaf = leaf;
    var->id = new_id();
    leaf->leaf_id = var->id;
    atomic_init(&var->tracked,
                device->autodiff != 0 && burn_dtype_class(copy->dtype) == BURN_CLASS_FLOAT);
    /* The memory must exist before somebody else can see the variable. */
    burni_storage_launch(var->value->storage);
    become_variable(var->value->storage, var);
    burni_dry_variable(thread, var->value->storage);
    if (burni_storage_failed(thread, var->value->storage)) {
        burni_cause_write(var->value->storage->cause, err);
        burn_var_release(var);
        return NULL;
    }
    return var;
}

void burn_var_release(burn_var *var)
{
    if (var == NULL || atomic_fetch_sub_explicit(&var->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    atomic_store_explicit(&var->value->storage->is_var, 0, memory_order_release);
    burni_handle_unref(var->value);
    burni_node_unref(var->leaf);
    (void)pthread_mutex_destroy(&var->lock);
    burni_free(var);
}

burn_tensor *burn_var_get(const burn_var *var)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || var == NULL) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0, "variable: it is NULL");
    }
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&var->lock;
    (void)pthread_mutex_lock(lock);
    burn_tensor *t = burni_handle_alias(thread, var->value, 1);
    (void)pthread_mutex_unlock(lock);
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    if (atomic_load_explicit(&var->tracked, memory_order_relaxed) && thread->no_grad == 0) {
        t->node = burni_node_ref(var->leaf);
    }
    return t;
}

/* ---- overwriting ----------------------------------------------------------------------------- */

/* Everything that other threads' streams still have to run on this device. */
static void drain_others(burni_device *device, const burni_stream *mine)
{
    if (device->window == 1) {
        return;
    }
    (void)pthread_mutex_lock(&device->lock);
    burni_stream *first = device->streams;
    (void)pthread_mutex_unlock(&device->lock);
    for (burni_stream *s = first; s != NULL; s = s->next) {
        if (s != mine) {
            burni_stream_drain(s);
        }
    }
}

/* `to` takes over the memory and history of `from`, which has none afterwards. */
static void take_memory(burni_storage *to, burni_storage *from)
{
    to->block = from->block;
    to->buffer = from->buffer;
    to->buffer_offset = from->buffer_offset;
    to->host = from->host;
    atomic_store_explicit(&to->writer, atomic_load(&from->writer), memory_order_relaxed);
    atomic_store_explicit(&to->write_point, atomic_load(&from->write_point),
                          memory_order_relaxed);
    from->block = NULL;
}

/* The copy has been launched and did not fail, as far as can be known now. A device that reports
 * late is waited for: the readers of the copy know nothing of its own fault word. */
static int32_t check_copy(burni_thread *thread, const burn_tensor *copy, burn_err *err)
{
    burni_storage *s = copy->storage;
    burni_storage_launch(s);
    if (!burni_storage_failed(thread, s) && s->fault == NULL) {
        return BURN_OK;
    }
    return burni_storage_wait(thread, s, err);
}

/* A copy of the variable's value that has run. NULL and an error when there is none. */
static burn_tensor *run_copy(burni_thread *thread, const burn_var *var, burn_err *err)
{
    burn_tensor *copy = NULL;
    burn_tensor *const in[1] = {var->value};
    thread->no_grad++;
    thread->depth++;
    int32_t rc = burni_emit(thread, NULL, burni_op_find(BURN_OP_COPY), NULL, 0, in, 1, &copy, 1);
    thread->depth--;
    thread->no_grad--;
    rc = rc == BURN_OK ? check_copy(thread, copy, err) : burn_tensor_error(copy, err);
    if (rc != BURN_OK) {
        burn_release(copy);
        return NULL;
    }
    return copy;
}

/* The variable's memory goes to `fresh`, the copy's to those who hold `old`. */
static void exchange(burn_var *var, burni_storage *fresh, burn_tensor *copy)
{
    burni_storage *old = var->value->storage;
    burni_guard_exchange_begin(old);
    atomic_store(&fresh->foreign, atomic_load(&old->foreign));
    atomic_store(&fresh->state, atomic_load(&old->state));
    fresh->cause = old->cause != NULL ? burni_cause_ref(old->cause) : NULL;
    fresh->fault = burni_fault_ref(old->fault);
    become_variable(fresh, var);
    take_memory(fresh, old);
    if (copy != NULL) {
        take_memory(old, copy->storage);
        if (copy->storage->cause == &burni_cause_dry) {
            burni_storage_fail(old, &burni_cause_dry);
        }
    }
    atomic_store_explicit(&old->is_var, 0, memory_order_release);
    burni_guard_exchange_end(old);
    var->value->storage = fresh;
    burni_storage_unref(old, 1);
}

/* Gives readers of the old value their own copy of it: the old storage object, which they hold,
 * gets the copy's memory, and the variable goes on with a new object on its own memory. */
static int32_t copy_out(burni_thread *thread, burn_var *var, burn_err *err)
{
    burni_recording_refuse(thread, "a variable is overwritten while its old value is still in use");
    burni_storage *old = var->value->storage;
    burni_storage_launch(old);
    burn_tensor *copy = NULL;
    if (atomic_load(&old->state) != BURNI_FAILED) {
        burn_err why = BURN_ERR_INIT;
        copy = run_copy(thread, var, &why);
        /* A value that turns out to have failed needs no copy. */
        if (copy == NULL && burni_storage_wait(thread, old, NULL) == BURN_OK) {
            return burni_fail(err, why.code, "%s", why.text);
        }
    }
    burni_storage *fresh = burni_storage_new(thread, old->device, old->bytes);
    if (fresh == NULL) {
        burn_release(copy);
        return burni_fail(err, BURN_E_NO_MEMORY, "variable: out of host memory");
    }
    exchange(var, fresh, copy);
    burn_release(copy);
    return BURN_OK;
}

int32_t burni_var_prepare_write(burni_thread *thread, burn_var *var, burn_err *err)
{
    burni_stream *stream = burni_stream_get(thread, var->device->core, err);
    if (stream == NULL) {
        return err->code;
    }
    uint64_t refs = atomic_load_explicit(&var->value->storage->refs, memory_order_acquire);
    if (BURNI_HANDLES(refs) > 1) {
        return copy_out(thread, var, err);
    }
    drain_others(var->device->core, stream);
    /* Nothing is left from here on, as nobody else can get the variable. */
    burni_unrun_make_readers(stream, var->value->storage);
    return BURN_OK;
}

/* Locks each variable once, by rising address, so that two updates cannot wait for each other. */
static uint32_t lock_vars(burn_var *const *vars, uint32_t n, burn_var **held)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = count;
        while (at > 0 && (uintptr_t)held[at - 1] > (uintptr_t)vars[i]) {
            at--;
        }
        if (vars[i] == NULL || (at > 0 && held[at - 1] == vars[i])) {
            continue;
        }
        memmove(held + at + 1, held + at, (count - at) * sizeof(held[0]));
        held[at] = vars[i];
        count++;
    }
    for (uint32_t k = 0; k < count; k++) {
        (void)pthread_mutex_lock(&held[k]->lock);
    }
    return count;
}

static int32_t update_locked(burni_thread *thread, const burni_op *op, const void *attrs,
                             uint32_t attrs_size, burn_var *const *vars, burn_tensor *const *in,
                             uint32_t n_in, burn_err *err)
{
    burn_tensor *operands[BURN_MAX_OPERANDS];
    burn_tensor *outs[16];
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < n_in; i++) {
        operands[i] = in[i];
        if (vars[i] != NULL) {
            rc = rc == BURN_OK ? burni_var_prepare_write(thread, vars[i], err) : rc;
            operands[i] = vars[i]->value;
        }
    }
    if (rc == BURN_OK) {
        rc = burni_emit(thread, NULL, op, attrs, attrs_size, operands, n_in, outs, op->def.n_out);
        if (rc != BURN_OK) {
            (void)burn_tensor_error(outs[0], err);
        }
    }
    return rc;
}

int32_t burn_var_update(uint64_t op_id, const void *attrs, uint32_t attrs_size,
                        burn_var *const *vars, burn_tensor *const *in, uint32_t n_in, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    const burni_op *op = burni_op_find(op_id);
    burn_err spare;
    err = burni_first(err, &spare);
    if (thread == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "update: no memory for the thread's state");
    }
    if (op == NULL) {
        return burni_fail(err, BURN_E_NOT_FOUND,
                          "update: there is no op with id %" PRIu64 "; if it is an extension's, "
                          "load that first (burn_extension_load)",
                          op_id);
    }
    if (vars == NULL || in == NULL) {
        return burni_fail(err, BURN_E_INVALID, "update: %s: the list %s is NULL", op->def.name,
                          vars == NULL ? "vars" : "in");
    }
    if (n_in > BURN_MAX_OPERANDS || op->def.n_out > 16) {
        return burni_fail(err, BURN_E_INVALID,
                          "update: %s: %u operands and %u outputs; at most %d and 16 are possible",
                          op->def.name, n_in, (unsigned)op->def.n_out, BURN_MAX_OPERANDS);
    }
    if (op->def.effect != BURN_EFFECT_STATE) {
        return burni_fail(err, BURN_E_INVALID,
                          "update: %s overwrites no variable; assign its result instead",
                          op->def.name);
    }
    burn_var *held[BURN_MAX_OPERANDS];
    burn_scope_begin();
    thread->no_grad++;
    uint32_t n_held = lock_vars(vars, n_in, held);
    int32_t rc = update_locked(thread, op, attrs, attrs_size, vars, in, n_in, err);
    while (n_held > 0) {
        (void)pthread_mutex_unlock(&held[--n_held]->lock);
    }
    thread->no_grad--;
    burni_scope_end_inside(NULL, 0);
    return rc;
}

int32_t burn_var_assign(burn_var *var, burn_tensor *value, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (var == NULL || value == NULL) {
        return burni_fail(err, BURN_E_INVALID, "assign: the %s is NULL",
                          var == NULL ? "variable" : "value");
    }
    burn_var *const vars[2] = {var, NULL};
    burn_tensor *const in[2] = {NULL, value};
    return burn_var_update(BURN_OP_ASSIGN, NULL, 0, vars, in, 2, err);
}

int32_t burn_var_tracked(const burn_var *var)
{
    return var != NULL && atomic_load(&var->tracked) != 0;
}

void burn_var_set_tracked(burn_var *var, int32_t tracked)
{
    if (var == NULL) {
        return;
    }
    atomic_store(&var->tracked,
                 tracked != 0 && burn_dtype_class(var->value->dtype) == BURN_CLASS_FLOAT);
}

uint64_t burn_var_id(const burn_var *var)
{
    return var != NULL ? var->id : 0;
}

void burn_var_set_id(burn_var *var, uint64_t id)
{
    if (var == NULL) {
        return;
    }
    var->id = id;
    var->leaf->leaf_id = id;
}
