/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * launch.c - one launch: memory for its outputs, waits, the kernel, and what its end means for the
 * storages. See launch.h.
 *
 * A failure marks the outputs and is latched; it is not returned. What a kernel overwrites is
 * decided here, since only here it is known who still holds what.
 */
#include "exec/launch.h"

#include "base/error.h"
#include "base/tag.h"
#include "exec/check.h"
#include "exec/check_bounds.h"
#include "exec/dry.h"
#include "exec/fallback.h"
#include "exec/fault.h"
#include "exec/guard.h"
#include "exec/origin.h"
#include "exec/profile.h"
#include "exec/unrun.h"

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

int32_t burni_storage_back(burni_stream *stream, burni_storage *s, burn_err *err)
{
    if (s->block != NULL && (s->block->klass != BURNI_DRY || burni_is_dry(stream))) {
        return BURN_OK;
    }
    if (s->block != NULL) {
        burni_pool_forget(s->block); /* a variable of a dry run gets a value */
        s->block = NULL;
    }
    burni_block *block = burni_pool_take(&stream->device->pool, &stream->cache, s->bytes, err);
    if (block == NULL) {
        return BURN_E_NO_MEMORY;
    }
    s->block = block;
    s->buffer = block->page->buffer;
    s->buffer_offset = block->offset;
    s->host = block->page->host != NULL ? block->page->host + block->offset : NULL;
    return BURN_OK;
}

void burni_storage_fail(burni_storage *s, burni_cause *cause)
{
    if (atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
        return;
    }
    burni_cause *old = s->cause;
    s->cause = burni_cause_ref(cause);
    burni_cause_unref(old);
    atomic_store_explicit(&s->state, BURNI_FAILED, memory_order_release);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Masks speak of the first 32 inputs; a variadic op may have more. */
static int has_bit(uint32_t mask, uint32_t i)
{
    return i < 32 && (mask >> i & 1) != 0;
}

/* Input `failed` is known to have failed. One before it may have as well, which nobody has asked
 * for yet: whether somebody did is no matter for the cause that is passed on. */
static burni_cause *first_cause(burni_stream *stream, const burni_launch *launch, uint32_t failed)
{
    for (uint32_t i = 0; i < failed; i++) {
        burn_err err = BURN_ERR_INIT;
        burni_storage *s = launch->storages[i];
        int is_open = s != NULL && s->fault != NULL && !has_bit(launch->overwrite, i);
        if (is_open && burni_fault_check_on(stream, s, &err) != BURN_OK && s->cause != NULL) {
            return s->cause;
        }
    }
    return launch->storages[failed]->cause;
}

/* The cause of the first input that failed; bit i of `vars`: input i is a variable's memory. */
static burni_cause *look_at_inputs(burni_stream *stream, const burni_launch *launch,
                                   uint64_t *vars)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < launch->n_in; i++) {
        burni_storage *s = launch->storages[i];
        if (s == NULL) {
            continue;
        }
        mask |= (uint64_t)(burni_is_var(s) != 0) << i;
        if (__builtin_expect(burni_is_unrun(s), 0)) {
            burni_unrun_make(s);
        }
        if (!has_bit(launch->overwrite, i) &&
            atomic_load_explicit(&s->state, memory_order_acquire) == BURNI_FAILED) {
            return first_cause(stream, launch, i);
        }
    }
    *vars = mask;
    return NULL;
}

static void fail_outputs(const burni_launch *launch, burni_cause *cause)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s != NULL) {
            burni_storage_fail(s, cause);
        }
    }
}

static int32_t fail_launch(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    burn_err full = BURN_ERR_INIT;
    full.op = launch->op->def.id;
    int has_name = strncmp(err->text, launch->op->def.name, strlen(launch->op->def.name)) == 0;
    (void)burni_fail(&full, err->code, "%s%s%s", has_name ? "" : launch->op->def.name,
                     has_name ? "" : ": ", err->text);
    full.op = launch->op->def.id;
    burni_origin_tell(launch->origin, &full);
    burni_tag_append(launch->tag, &full);
    burni_cause *cause = burni_cause_new(&full);
    fail_outputs(launch, cause);
    burni_device_latch(stream->device, cause, stream, burni_stream_age(stream));
    burni_cause_unref(cause);
    return full.code;
}

int burni_launch_same_size(const burni_launch *launch, uint32_t i, uint32_t k)
{
    const burn_operand *a = &launch->operands[i];
    const burn_operand *b = &launch->operands[k];
    return a->kind == BURN_TENSOR && burni_operand_numel(a) == burni_operand_numel(b) &&
           burn_dtype_size(a->dtype) == burn_dtype_size(b->dtype);
}

/* Dense, from the first byte of its storage on. */
static int is_plain(const burni_launch *launch, uint32_t i)
{
    const burn_operand *o = &launch->operands[i];
    return o->offset == 0 && o->layout == BURN_LAYOUT_CONTIGUOUS;
}

/* Other operands may lie in input i's memory only where each element is read before it is written:
 * by the same element, of as many. Tells how many operands are that storage. */
static int is_safe(const burni_launch *launch, uint32_t i, int by_position, uint32_t *out_uses)
{
    uint32_t uses = 0;
    int safe = 1;
    for (uint32_t k = 0; k < launch->n_in; k++) {
        if (launch->storages[k] == launch->storages[i]) {
            uses++;
            safe &= k == i || (by_position && is_plain(launch, k) &&
                               burni_launch_same_size(launch, k, i));
            safe &= !has_bit(launch->whole, k);
        }
    }
    *out_uses = uses;
    return safe;
}

static void lend(burni_storage *in, burni_storage *out)
{
    out->block = in->block;
    out->buffer = in->buffer;
    out->buffer_offset = in->buffer_offset;
    out->host = in->host;
    in->block = NULL;
}

int burni_launch_may_share(const burni_launch *launch, uint32_t i, int by_position)
{
    uint32_t uses = 0;
    return has_bit(launch->resolved->in_place_mask, i) && launch->storages[i] != NULL &&
           is_plain(launch, i) && is_safe(launch, i, by_position, &uses);
}

/* May output `out` take the memory of input i? A fault of the input is no matter: its word lies
 * elsewhere, and the output has it as well. */
static int may_take(const burni_stream *stream, const burni_launch *launch, uint32_t i,
                    const burni_storage *out, int by_position)
{
    const burni_storage *in = launch->storages[i];
    if (!has_bit(launch->resolved->in_place_mask, i) || in == NULL || burni_is_var(in) ||
        in->block == NULL || in->block->klass == BURNI_PLACE || in->block->bytes < out->bytes ||
        !is_plain(launch, i)) {
        return 0;
    }
    uint32_t uses = 0;
    if (!is_safe(launch, i, by_position, &uses)) {
        return 0;
    }
    uint64_t refs = atomic_load_explicit(&in->refs, memory_order_acquire);
    int last_handle = has_bit(launch->moved, i) && refs == 1 && uses == 1;
    if (!last_handle && !has_bit(launch->dying, i)) {
        return 0;
    }
    return in->device->synchronous || (in->writer == stream && !in->foreign);
}

/* Hands the memory of a dying input to output 0 where the row allows it; the input, or NULL. */
static burni_storage *reuse_input(const burni_stream *stream, const burni_launch *launch)
{
    burni_storage *out = launch->storages[launch->n_in];
    if (launch->resolved->in_place_mask == 0 || launch->n_out != 1 || out == NULL ||
        out->block != NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < launch->n_in; i++) {
        if (may_take(stream, launch, i, out, (int)launch->op->pointwise)) {
            lend(launch->storages[i], out);
            return launch->storages[i];
        }
    }
    return NULL;
}

/* A kernel did not run: the input that lent its memory has it again. */
static void undo_reuse(const burni_launch *launch, burni_storage *reused)
{
    if (reused != NULL) {
        burni_storage *out = launch->storages[launch->n_in];
        reused->block = out->block;
        out->block = NULL;
    }
}

/* Points operands at memory. `offset` held the view's byte offset until now. */
static inline void bind(burni_storage *const *storages, uint32_t n, burn_operand *operands)
{
    for (uint32_t i = 0; i < n; i++) {
        burni_storage *s = storages[i];
        if (s == NULL) {
            continue;
        }
        operands[i].data = s->host != NULL ? (char *)s->host + operands[i].offset : NULL;
        operands[i].buffer = s->buffer;
        operands[i].offset += s->buffer_offset;
    }
}

/* As before, for a decomposition that takes the kernel's place. */
static void unbind(burni_storage *const *storages, uint32_t n, burn_operand *operands)
{
    for (uint32_t i = 0; i < n; i++) {
        if (storages[i] != NULL) {
            operands[i].offset -= storages[i]->buffer_offset;
        }
    }
}

/* A variable that other streams used is overwritten after all that they were given. */
static int32_t wait_for_readers(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    burni_device *device = stream->device;
    uint32_t foreign = 0;
    for (uint32_t j = 0; j < launch->n_out; j++) {
        const burni_storage *s = launch->storages[launch->n_in + j];
        foreign |= s != NULL ? atomic_load_explicit(&s->foreign, memory_order_relaxed) : 0;
    }
    if (!foreign) {
        return BURN_OK;
    }
    (void)pthread_mutex_lock(&device->lock);
    burni_stream *other = device->streams;
    (void)pthread_mutex_unlock(&device->lock);
    int32_t rc = BURN_OK;
    for (; other != NULL && rc == BURN_OK; other = other->next) {
        uint64_t point = atomic_load_explicit(&other->submitted, memory_order_acquire);
        if (other != stream && point > 0) {
            rc = device->api->wait(stream->queue, other->queue, point, &stream->sink.err);
            rc = burni_stream_said(stream, "wait", rc, err);
        }
    }
    return rc;
}

static int32_t wait_for_inputs(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    const burn_device_api *api = stream->device->api;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        if (s == NULL || s->writer == NULL || s->writer == stream ||
            atomic_load_explicit(&s->state, memory_order_acquire) != BURNI_SUBMITTED) {
            continue;
        }
        atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
        int32_t rc =
            api->wait(stream->queue, s->writer->queue, s->write_point, &stream->sink.err);
        rc = burni_stream_said(stream, "wait", rc, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return launch->op->def.effect == BURN_EFFECT_STATE ? wait_for_readers(stream, launch, err)
                                                       : BURN_OK;
}

static inline void fill_call(burni_stream *stream, const burni_launch *launch,
                             const burn_operand *operands, burn_call *call)
{
    call->struct_size = sizeof(*call);
    call->operand_stride = sizeof(burn_operand);
    call->n_in = launch->n_in;
    call->n_out = launch->n_out;
    call->n_companion = 0;
    call->flags = launch->math;
    call->queue = stream->queue;
    call->state = launch->resolved->state;
    call->operands = operands;
    call->attrs = launch->attrs;
    call->attrs_size = launch->attrs_size;
    call->attrs_revision = launch->attrs_size > 0 ? 1 : 0;
    call->workspace = NULL;
    call->fault = NULL;
    call->tag = launch->tag;
    call->err = &stream->sink.err;
}

static int32_t launch_kernel(burni_stream *stream, const burni_launch *launch,
                             burn_operand *operands, const burn_operand *workspace,
                             const burn_operand *fault, burn_err *err)
{
    burn_call call;
    fill_call(stream, launch, operands, &call);
    call.workspace = workspace;
    call.fault = fault;
    const burn_row *row = launch->resolved->row;
    return burni_stream_said(stream, row->name, row->launch(&call), err);
}

/* The same with its time taken. */
static int32_t launch_measured(burni_stream *stream, const burni_launch *launch,
                               burn_operand *operands, const burn_operand *workspace,
                               const burn_operand *fault, burn_err *err)
{
    burni_measure m;
    burni_profile_before(stream, launch, operands, &m);
    int32_t rc = launch_kernel(stream, launch, operands, workspace, fault, err);
    burni_profile_after(stream, &m, rc);
    return rc;
}

static void publish(burni_stream *stream, const burni_launch *launch, uint64_t point)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s == NULL) {
            continue;
        }
        if (s->writer != NULL && s->writer != stream) {
            atomic_store_explicit(&s->foreign, 1, memory_order_relaxed);
        }
        /* Written only where it changes: the owner of a pending value looks at it without the lock.
         */
        if (s->writer != stream) {
            atomic_store_explicit(&s->writer, stream, memory_order_relaxed);
        }
        atomic_store_explicit(&s->write_point, point, memory_order_relaxed);
        if (s->cause != NULL) {
            burni_cause_unref(s->cause);
            s->cause = NULL;
        }
        atomic_store_explicit(&s->state, BURNI_SUBMITTED, memory_order_release);
    }
}

/* Where somebody looks at it: measured, and with its operands guarded. */
static int32_t launch_seen(burni_stream *stream, const burni_launch *launch,
                           burn_operand *operands, const burn_operand *workspace,
                           const burn_operand *fault, burn_err *err)
{
    uint32_t way = burni_stream_way(stream);
    burni_bounds *bounds = NULL;
    burn_operand extra[2] = {{.kind = BURN_ABSENT}, {.kind = BURN_ABSENT}};
    if ((way & BURNI_WAY_GUARDED) != 0) {
        extra[0] = fault != NULL ? *fault : extra[0];
        extra[1] = workspace != NULL ? *workspace : extra[1];
        fault = fault != NULL ? &extra[0] : NULL;
        workspace = workspace != NULL ? &extra[1] : NULL;
        bounds = burni_bounds_before(stream, &launch, &operands, &extra[0], &extra[1], 1);
    }
    int32_t rc = ((way & BURNI_WAY_MEASURED) != 0 ? launch_measured : launch_kernel)(
        stream, launch, operands, workspace, fault, err);
    return burni_bounds_after(bounds, rc, err);
}

/* What an asynchronous device needs around a launch: waits, the fault word, the signal. */
static int32_t run_async(burni_stream *stream, const burni_launch *launch, burn_operand *operands,
                         const burn_operand *workspace, burn_err *err)
{
    int32_t rc = burni_device_check_fork(stream->device, err);
    burni_fault *fault = NULL;
    burn_operand word;
    word.kind = BURN_ABSENT; /* stays so unless the row may write a word of its own */
    if (rc == BURN_OK) {
        rc = wait_for_inputs(stream, launch, err);
    }
    if (rc == BURN_OK) {
        rc = burni_fault_for_launch(stream, launch, &fault, &word, err);
    }
    if (rc == BURN_OK) {
        int seen = (burni_stream_way(stream) & ~(uint32_t)BURNI_WAY_QUEUED) != 0;
        rc = (seen ? launch_seen : launch_kernel)(
            stream, launch, operands, workspace, word.kind != BURN_ABSENT ? &word : NULL, err);
    }
    uint64_t point = 0;
    if (rc == BURN_OK) {
        rc = burni_stream_signal(stream, &point, err);
    }
    if (rc == BURN_OK) {
        burni_fault_attach(launch, fault, point);
        publish(stream, launch, point);
    }
    burni_fault_unref(fault);
    return rc;
}

/* Memory for the outputs that have none. */
static int32_t back_outputs(burni_stream *stream, const burni_launch *launch, burn_err *err)
{
    for (uint32_t j = 0; j < launch->n_out; j++) {
        burni_storage *s = launch->storages[launch->n_in + j];
        if (s != NULL && (s->block == NULL || s->block->klass == BURNI_DRY) &&
            burni_storage_back(stream, s, err) != BURN_OK) {
            return BURN_E_NO_MEMORY;
        }
    }
    return BURN_OK;
}

static burni_block *take_workspace(burni_stream *stream, const burni_resolved *resolved,
                                   burn_operand *workspace, burn_err *err)
{
    uint64_t bytes = resolved->workspace_bytes;
    burni_block *place = stream->cache.workspace;
    burni_block *scratch = place != NULL && place->bytes >= bytes
                               ? place
                               : burni_pool_take(&stream->device->pool, &stream->cache, bytes, err);
    if (scratch != NULL) {
        memset(workspace, 0, sizeof(*workspace));
        workspace->kind = BURN_TENSOR;
        workspace->buffer = scratch->page->buffer;
        workspace->offset = scratch->offset;
        workspace->data =
            scratch->page->host != NULL ? scratch->page->host + scratch->offset : NULL;
    }
    return scratch;
}

/* Binds and launches; inside of the guards of the variables that it reads. */
static int32_t launch_bound(burni_stream *stream, const burni_launch *launch, uint64_t vars,
                            burn_operand *operands, const burn_operand *workspace, burn_err *err)
{
    if (__builtin_expect(vars != 0, 0)) {
        burni_guard_enter(launch->storages, vars);
    }
    bind(launch->storages, launch->n_in + launch->n_out, operands);
    int32_t rc;
    uint32_t way = burni_stream_way(stream);
    if ((way & BURNI_WAY_QUEUED) != 0) {
        rc = run_async(stream, launch, operands, workspace, err);
    } else {
        rc = __builtin_expect(way != 0, 0)
                 ? launch_seen(stream, launch, operands, workspace, NULL, err)
                 : launch_kernel(stream, launch, operands, workspace, NULL, err);
        if (rc == BURN_OK) {
            publish(stream, launch, 0);
        }
    }
    if (__builtin_expect((way & BURNI_WAY_GUARDED) != 0, 0)) {
        burni_bounds_judge(stream, &launch, 1, rc);
    }
    if (__builtin_expect(rc != BURN_OK, 0)) {
        unbind(launch->storages, launch->n_in + launch->n_out, operands);
    }
    if (__builtin_expect(vars != 0, 0)) {
        burni_guard_leave(launch->storages, vars);
    }
    return rc;
}

int32_t burni_launch_refused(burni_stream *stream, const burni_launch *launch, int32_t rc,
                             burn_err *err)
{
    if (rc == BURN_E_UNSUPPORTED && (!launch->waited || burni_fallback_runs(stream))) {
        return rc;
    }
    if (rc == BURN_E_UNSUPPORTED && launch->op->def.decompose != NULL) {
        burni_fallback(stream, launch);
        return BURN_OK;
    }
    err->code = rc;
    (void)fail_launch(stream, launch, err);
    return BURN_OK;
}

/* As BURN_ERR_INIT, without clearing the text: a launch makes one each time. */
static inline void begin_error(burn_err *err)
{
    err->struct_size = sizeof(*err);
    err->cap = sizeof(err->text);
    err->text[0] = '\0';
    err->code = 0;
    err->op = 0;
    err->backend_code = 0;
}

/* Output 0 of a fused call takes the memory of a dying input of its size; whose, or NULL. */
static burni_storage *reuse_by_position(const burni_stream *stream, const burni_launch *launch)
{
    burni_storage *out = launch->storages[launch->n_in];
    for (uint32_t i = 0; i < launch->n_in && launch->dying != 0 && out->block == NULL; i++) {
        if (burni_launch_same_size(launch, i, launch->n_in) &&
            may_take(stream, launch, i, out, 1)) {
            lend(launch->storages[i], out);
            return launch->storages[i];
        }
    }
    return NULL;
}

/* All but the launch: memory that is counted only, and outputs without values. */
static int32_t run_dry(burni_stream *stream, const burni_launch *launch, int is_fused)
{
    burn_operand workspace;
    burn_err err;
    uint64_t vars = 0;
    begin_error(&err);
    (void)look_at_inputs(stream, launch, &vars); /* inputs are made now; none has a value */
    if (is_fused) {
        (void)reuse_by_position(stream, launch);
    } else {
        (void)reuse_input(stream, launch);
    }
    int32_t rc = back_outputs(stream, launch, &err);
    if (rc == BURN_OK && launch->resolved->workspace_bytes > 0) {
        burni_block *scratch = take_workspace(stream, launch->resolved, &workspace, &err);
        rc = scratch != NULL ? BURN_OK : BURN_E_NO_MEMORY;
        if (scratch != NULL) {
            burni_pool_give(&stream->cache, scratch);
        }
    }
    if (rc != BURN_OK) {
        (void)fail_launch(stream, launch, &err);
    }
    burni_dry_launched(stream, launch);
    return BURN_OK;
}

int32_t burni_launch_try(burni_stream *stream, const burni_launch *launch, burn_operand *operands,
                         burn_err *err)
{
    uint64_t vars = 0;
    if (__builtin_expect((burni_stream_way(stream) & BURNI_WAY_DRY) != 0, 0)) {
        return run_dry(stream, launch, 1);
    }
    begin_error(err);
    if (look_at_inputs(stream, launch, &vars) != NULL) {
        return burni_fail(err, BURN_E_STATE, "an input has failed");
    }
    burn_operand workspace;
    burni_block *scratch = NULL;
    burni_storage *lender = reuse_by_position(stream, launch);
    int32_t rc = back_outputs(stream, launch, err);
    if (rc == BURN_OK && launch->resolved->workspace_bytes > 0) {
        scratch = take_workspace(stream, launch->resolved, &workspace, err);
        rc = scratch != NULL ? BURN_OK : BURN_E_NO_MEMORY;
    }
    int backed = rc == BURN_OK;
    if (backed) {
        rc = launch_bound(stream, launch, vars, operands, scratch != NULL ? &workspace : NULL, err);
        stream->n_launched += rc == BURN_OK;
    }
    if (scratch != NULL) {
        burni_pool_give(&stream->cache, scratch);
    }
    if (rc == BURN_OK) {
        return BURN_OK;
    }
    undo_reuse(launch, lender);
    if (backed && lender != NULL && rc != BURN_E_UNSUPPORTED) {
        /* Part of the input may have been overwritten: nobody can do it again. */
        err->code = rc;
        (void)fail_launch(stream, launch, err);
        return BURN_OK;
    }
    return rc;
}

int32_t burni_launch_run(burni_stream *stream, const burni_launch *launch, burn_operand *operands)
{
    uint64_t vars = 0;
    if (__builtin_expect(launch->check != NULL, 0)) {
        return burni_check_run(stream, launch, operands);
    }
    if (__builtin_expect((burni_stream_way(stream) & BURNI_WAY_DRY) != 0, 0)) {
        return run_dry(stream, launch, 0);
    }
    burni_cause *cause = look_at_inputs(stream, launch, &vars);
    if (__builtin_expect(cause != NULL, 0)) {
        fail_outputs(launch, cause);
        return BURN_OK;
    }
    burn_err err;
    begin_error(&err);
    int may_reuse = launch->resolved->in_place_mask != 0;
    burni_storage *reused = may_reuse ? reuse_input(stream, launch) : NULL;
    if (back_outputs(stream, launch, &err) != BURN_OK) {
        (void)fail_launch(stream, launch, &err);
        return BURN_OK;
    }
    burn_operand workspace;
    burni_block *scratch = NULL;
    if (launch->resolved->workspace_bytes > 0) {
        scratch = take_workspace(stream, launch->resolved, &workspace, &err);
        if (scratch == NULL) {
            undo_reuse(launch, reused);
            (void)fail_launch(stream, launch, &err);
            return BURN_OK;
        }
    }
    int32_t rc = launch_bound(stream, launch, vars, operands, scratch != NULL ? &workspace : NULL,
                              &err);
    if (scratch != NULL) {
        burni_pool_give(&stream->cache, scratch);
    }
    stream->n_launched++;
    if (__builtin_expect(rc != BURN_OK, 0)) {
        undo_reuse(launch, reused);
        return burni_launch_refused(stream, launch, rc, &err);
    }
    return BURN_OK;
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Launches whose inputs are fine, between binding and publishing. */
typedef struct many {
    uint32_t n;
    uint32_t n_vars;
    uint32_t done; /* the kernels have been launched */
    uint32_t zero;
    const burn_many_kernel *kernel;
    const burni_launch *launches[BURNI_MANY];
    burn_operand *operands[BURNI_MANY];
    burni_storage *vars[BURNI_MANY * BURNI_MANY_OPERANDS];
    burni_fault *faults[BURNI_MANY];
    burn_operand words[BURNI_MANY]; /* absent unless the row may write one */
} many;

/* Fails alone, or is one of them. */
static void join_many(burni_stream *stream, const burni_launch *launch, burn_operand *operands,
                      many *m)
{
    uint64_t vars = 0;
    burn_err err;
    burni_cause *cause = look_at_inputs(stream, launch, &vars);
    if (cause != NULL) {
        fail_outputs(launch, cause);
        return;
    }
    begin_error(&err);
    if (back_outputs(stream, launch, &err) != BURN_OK) {
        (void)fail_launch(stream, launch, &err);
        return;
    }
    for (uint32_t i = 0; i < launch->n_in; i++) {
        if ((vars >> i & 1) != 0) {
            m->vars[m->n_vars++] = launch->storages[i];
        }
    }
    m->faults[m->n] = NULL;
    m->words[m->n].kind = BURN_ABSENT;
    m->operands[m->n] = operands;
    m->launches[m->n++] = launch;
}

/* A queue waits for their inputs, and passes faults on that are not known yet. */
static int32_t wait_for_many(burni_stream *stream, many *m, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t k = 0; k < m->n && rc == BURN_OK; k++) {
        rc = wait_for_inputs(stream, m->launches[k], err);
        if (rc == BURN_OK) {
            rc = burni_fault_for_launch(stream, m->launches[k], &m->faults[k], &m->words[k], err);
        }
    }
    return rc;
}

static int32_t launch_kernels(burni_stream *stream, many *m, burn_err *err)
{
    burn_call calls[BURNI_MANY];
    int guarded = (burni_stream_way(stream) & BURNI_WAY_GUARDED) != 0;
    burni_bounds *bounds = guarded ? burni_bounds_before(stream, m->launches, m->operands,
                                                         m->words, NULL, m->n)
                                   : NULL;
    for (uint32_t k = 0; k < m->n; k++) {
        fill_call(stream, m->launches[k], m->operands[k], &calls[k]);
        calls[k].fault = m->words[k].kind != BURN_ABSENT ? &m->words[k] : NULL;
    }
    int32_t rc = m->kernel->launch_many(calls, m->n, (uint32_t)sizeof(calls[0]));
    rc = burni_stream_said(stream, m->launches[0]->resolved->row->name, rc, err);
    return burni_bounds_after(bounds, rc, err);
}

static int32_t launch_bound_many(burni_stream *stream, many *m, burn_err *err)
{
    int queued = (burni_stream_way(stream) & BURNI_WAY_QUEUED) != 0;
    uint64_t point = 0;
    int32_t rc = queued ? wait_for_many(stream, m, err) : BURN_OK;
    if (rc == BURN_OK) {
        rc = launch_kernels(stream, m, err);
        m->done = rc == BURN_OK;
    }
    if (rc == BURN_OK && queued) {
        rc = burni_stream_signal(stream, &point, err);
    }
    for (uint32_t k = 0; k < m->n; k++) {
        if (rc == BURN_OK) {
            burni_fault_attach(m->launches[k], m->faults[k], point);
            publish(stream, m->launches[k], point);
        }
        burni_fault_unref(m->faults[k]);
    }
    burni_bounds_judge(stream, m->launches, m->n, rc);
    return rc;
}

void burni_launch_many(burni_stream *stream, const burn_many_kernel *kernel,
                       burni_launch *const *launches, burn_operand *const *operands, uint32_t n)
{
    many m;
    burn_err err;
    m.n = 0;
    m.n_vars = 0;
    m.done = 0;
    m.kernel = kernel;
    for (uint32_t k = 0; k < n; k++) {
        join_many(stream, launches[k], operands[k], &m);
    }
    if (m.n == 0) {
        return;
    }
    begin_error(&err);
    burni_guard_enter_all(m.vars, m.n_vars);
    for (uint32_t k = 0; k < m.n; k++) {
        bind(m.launches[k]->storages, m.launches[k]->n_in + m.launches[k]->n_out, m.operands[k]);
    }
    int32_t rc = launch_bound_many(stream, &m, &err);
    burni_guard_leave_all(m.vars, m.n_vars);
    stream->n_launched++;
    for (uint32_t k = 0; k < m.n && rc != BURN_OK; k++) {
        unbind(m.launches[k]->storages, m.launches[k]->n_in + m.launches[k]->n_out, m.operands[k]);
        if (m.done) {
            err.code = rc;
            (void)fail_launch(stream, m.launches[k], &err);
        } else {
            (void)burni_launch_run(stream, m.launches[k], m.operands[k]);
        }
    }
}

/* ---- the short way --------------------------------------------------------------------------- */

/*
 * For the many small calls of a program that waits for nothing: a device that has finished when the
 * kernel returns, nothing that waits, one output of its own, inputs that are fine and nobody's
 * variables. 0: the long way is needed, and nothing was done.
 */
static inline int is_clear(const burni_stream *stream, burni_storage *const *storages,
                           uint32_t n_in)
{
    if (burni_stream_way(stream) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        const burni_storage *s = storages[i];
        if (s == NULL) {
            continue;
        }
        int32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
        if (state != BURNI_SUBMITTED || burni_is_var(s)) {
            return 0;
        }
    }
    return 1;
}

/* Launches and publishes. The answer of the kernel, with the reason in `err`, or `no_memory`:
 * nothing was done. */
static inline int32_t run_clear(burni_stream *stream, const burni_resolved *resolved,
                                burn_call *call, burn_operand *operands,
                                burni_storage *const *storages, int *no_memory, burn_err *err)
{
    burni_storage *out = storages[call->n_in];
    burn_operand workspace;
    burni_block *scratch = NULL;
    int fits = burni_storage_back(stream, out, NULL) == BURN_OK;
    if (fits && resolved->workspace_bytes > 0) {
        scratch = take_workspace(stream, resolved, &workspace, NULL);
        fits = scratch != NULL;
    }
    *no_memory = !fits;
    if (__builtin_expect(!fits, 0)) {
        return BURN_E_NO_MEMORY;
    }
    bind(storages, call->n_in + 1, operands);
    call->workspace = scratch != NULL ? &workspace : NULL;
    int32_t rc = resolved->row->launch(call);
    if (scratch != NULL) {
        burni_pool_give(&stream->cache, scratch);
    }
    stream->n_launched++;
    if (__builtin_expect(rc != BURN_OK, 0)) {
        begin_error(err);
        rc = burni_stream_said(stream, resolved->row->name, rc, err);
        unbind(storages, call->n_in + 1, operands);
        return rc;
    }
    atomic_store_explicit(&out->writer, stream, memory_order_relaxed);
    atomic_store_explicit(&out->state, BURNI_SUBMITTED, memory_order_release);
    return BURN_OK;
}

int32_t burni_launch_run_now(burni_stream *stream, const burni_launch *launch,
                             burn_operand *operands)
{
    const burni_storage *out = launch->storages[launch->n_in];
    int no_memory = 0;
    burn_err err;
    burn_call call;
    if (launch->n_out != 1 || out == NULL || burni_is_var(out) || out->block != NULL ||
        (launch->moved | launch->dying | launch->overwrite) != 0 || launch->check != NULL ||
        !is_clear(stream, launch->storages, launch->n_in)) {
        return burni_launch_run(stream, launch, operands);
    }
    fill_call(stream, launch, operands, &call);
    int32_t rc = run_clear(stream, launch->resolved, &call, operands, launch->storages, &no_memory,
                           &err);
    if (__builtin_expect(rc == BURN_OK, 1)) {
        return BURN_OK;
    }
    return no_memory ? burni_launch_run(stream, launch, operands) /* asks again, and says why */
                     : burni_launch_refused(stream, launch, rc, &err);
}

void burni_ready_make(burni_ready *ready, const burni_resolved *resolved, burn_operand *operands,
                      uint32_t n_in, const void *attrs, uint32_t attrs_size, uint32_t math)
{
    burn_call *call = &ready->call;
    memset(call, 0, sizeof(*call));
    ready->resolved = resolved;
    call->struct_size = sizeof(*call);
    call->operand_stride = sizeof(burn_operand);
    call->n_in = n_in;
    call->n_out = 1;
    call->flags = math;
    call->state = resolved->state;
    call->operands = operands;
    call->attrs = attrs_size > 0 ? attrs : NULL;
    call->attrs_size = attrs_size;
    call->attrs_revision = attrs_size > 0 ? 1 : 0;
}

int burni_launch_ready(burni_stream *stream, burni_ready *ready, burn_operand *operands,
                       burni_storage *const *storages, burn_err *err)
{
    burn_call *call = &ready->call;
    int no_memory = 0;
    if (!is_clear(stream, storages, call->n_in)) {
        return BURNI_READY_NOT;
    }
    call->queue = stream->queue;
    call->tag = burni_thread_current->tag;
    call->err = &stream->sink.err;
    int32_t rc = run_clear(stream, ready->resolved, call, operands, storages, &no_memory, err);
    if (__builtin_expect(rc == BURN_OK, 1)) {
        return BURNI_READY_DONE;
    }
    err->code = rc;
    return no_memory ? BURNI_READY_NOT : BURNI_READY_ERROR;
}
