/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.c - the public functions of <burn/device.h> and <burn/registry.h>.
 */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/check.h"
#include "exec/device.h"
#include "exec/explain.h"
#include "exec/extension.h"
#include "exec/plan_file.h"
#include "exec/row_notes.h"
#include "exec/rows.h"
#include "exec/stream.h"
#include "exec/support.h"
#include "loader/loader.h"
#include "tune/environment.h"

#include <burn/grad.h>
#include <burn/registry.h>
#include <string.h>

const char *burn_version(void)
{
    return BURN_VERSION;
}

/*
 * The options that each open device was opened with. A device keeps them, so a string with others
 * for a device that is open already must fail: it would be ignored.
 */
static pthread_mutex_t options_lock = PTHREAD_MUTEX_INITIALIZER;
static char options_of[BURNI_MAX_DEVICES][sizeof(((burni_device_choice *)NULL)->options)];

static const burni_device *open_device(const char *name)
{
    const burni_device *device = NULL;
    for (uint32_t d = 0; (device = burni_device_at(d)) != NULL; d++) {
        if (strcmp(device->name, name) == 0) {
            return device;
        }
    }
    return NULL;
}

/* With the lock. Opens by a string that has options. */
static burn_device *open_with_options(const char *string, burn_err *err)
{
    burni_device_choice choice;
    memset(&choice, 0, sizeof(choice));
    if (burni_loader_resolve(string, &choice, err) != BURN_OK) {
        return NULL;
    }
    const burni_device *open = open_device(choice.canonical);
    const char *has = open != NULL ? options_of[open->index] : "";
    if (open != NULL && choice.options[0] != '\0' && strcmp(has, choice.options) != 0) {
        (void)burni_fail(err, BURN_E_STATE,
                         "device %s: it is open already, with%s%.50s; \"%.90s\" has no effect any "
                         "more, so open it first with those",
                         open->name, has[0] != '\0' ? " " : "out options", has, choice.options);
        return NULL;
    }
    burn_device *device = burni_device_open(string, err);
    if (device != NULL && open == NULL) {
        memcpy(options_of[device->core->index], choice.options, sizeof(choice.options));
    }
    return device;
}

burn_device *burn_device_open(const char *string, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    const char *text = string != NULL ? string : burni_env("DEVICE");
    if (text == NULL || strchr(text, '?') == NULL) {
        return burni_device_open(string, err);
    }
    (void)pthread_mutex_lock(&options_lock);
    burn_device *device = open_with_options(string, err);
    (void)pthread_mutex_unlock(&options_lock);
    return device;
}

burn_device *burn_device_autodiff(burn_device *device)
{
    return device != NULL ? &device->core->autodiff : NULL;
}

burn_device *burn_device_inner(burn_device *device)
{
    return device != NULL ? &device->core->plain : NULL;
}

int32_t burn_device_is_autodiff(const burn_device *device)
{
    return device != NULL && device->autodiff != 0;
}

const char *burn_device_name(const burn_device *device)
{
    return device != NULL ? device->core->name : "";
}

const char *burn_device_reason(const burn_device *device)
{
    return device != NULL ? device->core->reason : "";
}

int32_t burn_device_describe(const burn_device *device, burn_device_info *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL || out == NULL) {
        return burni_fail(err, BURN_E_INVALID, "describe: the %s is NULL",
                          device == NULL ? "device" : "output");
    }
    return burni_loader_device_info(device->core->backend, device->core->ordinal, out, err);
}

int32_t burn_sync(burn_device *device, burn_err *err)
{
    burni_thread *thread = burni_thread_get();
    burn_err spare;
    err = burni_first(err, &spare);
    if (thread == NULL || device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "sync: the device is NULL");
    }
    burni_stream *stream = burni_stream_get(thread, device->core, err);
    if (stream == NULL) {
        return err->code;
    }
    int32_t rc = burni_stream_finish(stream, err);
    if (rc == BURN_OK) {
        rc = burni_stream_look_at_faults(stream, err);
    }
    (void)pthread_mutex_lock(&device->core->lock);
    burni_cause *cause = device->core->latched;
    device->core->latched = NULL;
    (void)pthread_mutex_unlock(&device->core->lock);
    if (cause != NULL) {
        burni_cause_write(cause, err);
        rc = cause->code;
        burni_cause_unref(cause);
    }
    return rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

int32_t burn_memory_report(const burn_device *device, burn_memory *out, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "memory: the device is NULL");
    }
    if (burni_check_output("memory", out, sizeof(*out), err) != BURN_OK) {
        return err->code;
    }
    burni_device *core = device->core;
    int64_t in_use = 0;
    int64_t peak = 0;
    (void)pthread_mutex_lock(&core->lock);
    for (burni_stream *s = core->streams; s != NULL; s = s->next) {
        in_use += atomic_load_explicit(&s->cache.in_use, memory_order_relaxed) -
                  atomic_load_explicit(&s->cache.given_back, memory_order_relaxed);
        peak += atomic_load_explicit(&s->cache.peak, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&core->lock);
    out->in_use = in_use > 0 ? (uint64_t)in_use : 0;
    out->peak_in_use = peak > 0 ? (uint64_t)peak : 0;
    out->reserved = atomic_load(&core->pool.reserved);
    out->peak_reserved = atomic_load(&core->pool.peak_reserved);
    out->limit = atomic_load(&core->pool.limit);
    out->n_allocations = atomic_load(&core->pool.n_allocations);
    (void)pthread_mutex_lock(&core->pool.lock);
    out->n_pages = core->pool.n_pages;
    (void)pthread_mutex_unlock(&core->pool.lock);
    return BURN_OK;
}

void burn_memory_trim(burn_device *device)
{
    burni_thread *thread = burni_thread_get();
    burni_stream *stream =
        thread != NULL && device != NULL ? burni_stream_get(thread, device->core, NULL) : NULL;
    if (stream != NULL) {
        burni_stream_drain(stream);
        int locked = burni_stream_lock(stream);
        burni_pool_trim(&device->core->pool, &stream->cache);
        burni_stream_unlock(stream, locked);
    }
}

void burn_memory_limit(burn_device *device, uint64_t bytes)
{
    if (device != NULL) {
        atomic_store(&device->core->pool.limit, bytes);
    }
}

/* ---- log, extensions ------------------------------------------------------------------------- */

void burn_log_set(burn_log_fn fn, void *user, int32_t level)
{
    burni_log_set(fn, user, level);
}

int32_t burn_extension_load(const char *id, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return burni_extension_load(id, err);
}

void burn_shutdown(void)
{
    burni_explain_finish();
    burni_check_finish();
    burni_plan_file_finish();
    burni_environment_finish();
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        burni_device_close(burni_device_at(d));
    }
    burni_loader_shutdown();
}

/* ---- registry -------------------------------------------------------------------------------- */

uint32_t burn_op_count(void)
{
    return burni_op_count();
}

const burn_op_def *burn_op_at(uint32_t i)
{
    const burni_op *op = burni_op_at(i);
    return op != NULL ? &op->def : NULL;
}

const burn_op_def *burn_op_find(const char *name)
{
    const burni_op *op = burni_op_find_name(name);
    return op != NULL ? &op->def : NULL;
}

const burn_op_def *burn_op_find_id(uint64_t id)
{
    const burni_op *op = burni_op_find(id);
    return op != NULL ? &op->def : NULL;
}

int32_t burn_op_support(burn_device *device, uint64_t id, uint8_t dtype)
{
    const burni_op *op = burni_op_find(id);
    if (op == NULL || device == NULL) {
        return BURN_SUPPORT_NONE;
    }
    return burni_support(device->core, op, dtype);
}

const char *burn_op_row(burn_device *device, uint64_t id, uint32_t i)
{
    const burni_op *op = burni_op_find(id);
    if (op == NULL || device == NULL) {
        return NULL;
    }
    const burni_rows *rows = burni_rows_of(device->core, op);
    return i < rows->count ? rows->rows[i]->name : NULL;
}

int32_t burn_op_row_describe(burn_device *device, uint64_t id, uint32_t i, burn_row_info *out,
                             burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "row: the device is NULL");
    }
    if (burni_check_output("row", out, sizeof(out->struct_size), err) != BURN_OK) {
        return err->code;
    }
    const burni_op *op = burni_op_find(id);
    const burni_rows *rows = op != NULL ? burni_rows_of(device->core, op) : NULL;
    if (rows == NULL || i >= rows->count) {
        return burni_fail(err, BURN_E_NOT_FOUND, "row: %s has no row number %u on %s",
                          op != NULL ? op->def.name : "an op of that id", i, device->core->name);
    }
    const burn_row *row = rows->rows[i];
    burn_row_info info;
    BURN_INIT(&info, burn_row_info);
    info.flags = row->flags;
    info.priority = row->priority;
    info.in_place_mask = row->in_place_mask;
    info.n_slots = row->n_slots;
    info.slot_stride = row->slot_stride;
    info.slots = row->slots;
    info.name = row->name;
    info.n_guarded = burni_row_counted(row);
    info.why_off = burni_row_off(row);
    uint32_t size = out->struct_size;
    memset(out, 0, size);
    memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
    out->struct_size = size;
    return BURN_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

burn_tensor *burn_require_grad(burn_device *device, burn_tensor *t)
{
    burni_thread *thread = burni_thread_get();
    if (t == NULL || thread == NULL || t->cause != NULL) {
        return t != NULL && t->cause != NULL ? burni_handle_failed(thread, t->cause)
                                             : burni_handle_fail(thread, BURN_E_INVALID, 0,
                                                                 "require_grad: the tensor is "
                                                                 "NULL");
    }
    if (device == NULL || device->autodiff == 0) {
        return burni_handle_fail(thread, BURN_E_STATE, 0,
                                 "require_grad: gradients need an autodiff device handle "
                                 "(burn_device_autodiff or \"+autodiff\")");
    }
    if (t->kind != BURN_TENSOR || burn_dtype_class(t->dtype) != BURN_CLASS_FLOAT) {
        return burni_handle_fail(thread, BURN_E_DTYPE, 0,
                                 "require_grad: only float tensors have gradients, this one is %s",
                                 burn_dtype_name(t->dtype));
    }
    burn_tensor *leaf = burni_handle_alias(thread, t, 1);
    burni_node *node = burni_node_new(NULL, 0, 0, 0);
    if (leaf == NULL || node == NULL) {
        burni_node_unref(node);
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    leaf->node = node;
    return leaf;
}

burn_tensor *burn_detach(burn_tensor *t)
{
    burni_thread *thread = burni_thread_get();
    if (t == NULL || thread == NULL) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0, "detach: the tensor is NULL");
    }
    burn_tensor *alias = burni_handle_alias(thread, t, 1);
    return alias != NULL ? alias : burni_handle_failed(NULL, &burni_cause_no_memory);
}

int32_t burn_is_tracked(const burn_tensor *t)
{
    return t != NULL && t->node != NULL;
}

void burn_no_grad_begin(void)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        thread->no_grad++;
    }
}

void burn_no_grad_end(void)
{
    burni_thread *thread = burni_thread_current;
    if (thread != NULL && thread->no_grad > 0) {
        thread->no_grad--;
    }
}

int32_t burn_grad_enabled(void)
{
    const burni_thread *thread = burni_thread_current;
    return thread == NULL || thread->no_grad == 0;
}
