/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recording.c - from begin to end of a step that is kept. See recording.h.
 *
 * What cannot be done again makes the end fail with the first reason; the step itself goes on. No
 * storage is held but those that come from outside, so a step that is kept needs no more memory
 * than another. To let something be kept that is refused today: take its burni_recording_refuse
 * away, and say here what its slot or operand becomes in a run.
 */
#include "exec/recording.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/check.h"
#include "exec/emit.h"
#include "exec/guard.h"
#include "exec/rebind.h"

#include <stdio.h>
#include <string.h>

static _Atomic uint64_t next_serial = 1;

/* Room for one more element; 0 when memory is short. */
static int reserve(void **array, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return 1;
    }
    uint32_t grown = *cap > 0 ? 2 * *cap : 16;
    void *p = burni_realloc(*array, grown * size);
    if (p == NULL) {
        return 0;
    }
    *array = p;
    *cap = grown;
    return 1;
}

static void refuse(burn_replay *r, int32_t code, const char *text)
{
    if (!r->failed) {
        r->failed = 1;
        (void)burni_fail(&r->err, code, "replay: %s", text);
    }
}

void burni_recording_refuse(burni_thread *thread, const char *format, ...)
{
    burn_replay *r = thread != NULL ? thread->recording : NULL;
    if (__builtin_expect(r == NULL, 1)) {
        return;
    }
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    refuse(r, BURN_E_STATE, text);
}

void burn_replay_refuse(const char *why)
{
    burni_recording_refuse(burni_thread_get(), "%s", why != NULL ? why : "it says so");
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Holds the variable, once; 0: no memory. */
static int add_var(burn_replay *r, burn_var *var)
{
    uint32_t at = 0;
    while (at < r->n_vars && r->vars[at] != var) {
        at++;
    }
    if (at < r->n_vars) {
        return 1;
    }
    burn_var **grown = burni_realloc(r->vars, (r->n_vars + 1) * sizeof(*grown));
    if (grown == NULL) {
        return 0;
    }
    r->vars = grown;
    /* By rising address, the order in which variables are locked. */
    for (at = r->n_vars; at > 0 && (uintptr_t)r->vars[at - 1] > (uintptr_t)var; at--) {
        r->vars[at] = r->vars[at - 1];
    }
    r->vars[at] = var;
    r->n_vars++;
    (void)atomic_fetch_add(&var->refs, 1);
    return 1;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* It is held itself: a reference to its storage would be a reader of the old value. */
static void note_variable(burn_replay *r, burni_bound_slot *s, burn_var *var)
{
    s->kind = BURNI_SLOT_VARIABLE;
    s->var = var;
    if (!add_var(r, var)) {
        refuse(r, BURN_E_NO_MEMORY, "out of host memory");
    }
}

/* What is known of a slot when a launch uses it. */
static void note_slot(burn_replay *r, const burni_launch *launch, uint32_t i, uint32_t slot)
{
    burni_bound_slot *s = &r->slots[slot];
    burni_storage *storage = launch->storages[i];
    int writes = i >= launch->n_in;
    s->bytes = storage->bytes;
    if (!writes && !s->written && !s->outside) {
        s->outside = 1;
        if (burni_is_var(storage)) {
            note_variable(r, s, storage->var);
        } else {
            s->storage = storage;
            burni_storage_ref(storage, 1);
        }
        if (storage->writer != NULL && storage->writer != r->stream &&
            atomic_load_explicit(&storage->state, memory_order_acquire) == BURNI_PENDING) {
            refuse(r, BURN_E_STATE, "it uses a value that another thread has not finished");
        }
    }
    s->written |= (uint8_t)writes;
}

static int is_counter(const burni_launch *launch, uint32_t i)
{
    return launch->op->def.effect == BURN_EFFECT_RANDOM &&
           strcmp(burni_op_role_in(launch->op, i)->name, "counter") == 0;
}

/* Scalars that will differ. */
static void note_scalar(burn_replay *r, const burni_launch *launch, uint32_t i)
{
    const burn_operand *o = &launch->operands[i];
    uint64_t bits = 0;
    burni_patch patch = {r->n_records, i, UINT32_MAX, 0, 0};
    if (o->reserved != 0 && o->reserved >> 16 == r->serial) {
        patch.param = (uint32_t)(o->reserved & 0xffffu);
    } else if (is_counter(launch, i)) {
        memcpy(&bits, o->data, sizeof(bits));
        if (bits < r->rng_first) {
            refuse(r, BURN_E_STATE, "it uses random numbers that were drawn before it began");
            return;
        }
        patch.base = bits - r->rng_first;
    } else {
        return;
    }
    if (!reserve((void **)&r->patches, r->n_patches, &r->cap_patches, sizeof(patch))) {
        refuse(r, BURN_E_NO_MEMORY, "out of host memory");
        return;
    }
    r->patches[r->n_patches++] = patch;
}

uint32_t burni_recording_add(burn_replay *r, const burni_launch *launch)
{
    uint32_t slots[BURN_MAX_OPERANDS];
    uint32_t n = r->n_records;
    if (r->failed) {
        return n;
    }
    if (r->n_records == BURNI_MAX_KEPT || burni_sequence_is_full(r->sequence, launch)) {
        refuse(r, BURN_E_INVALID,
               "the step is longer than 4096 launches, or uses more than 4096 tensors; end it "
               "earlier, begin another, and give its inputs as ports");
        return n;
    }
    burni_sequence_add(r->sequence, launch, slots);
    int locked = burni_stream_lock(r->stream);
    burni_record *record = burni_record_copy(r->stream, launch, slots);
    burni_stream_unlock(r->stream, locked);
    if (record == NULL) {
        refuse(r, BURN_E_NO_MEMORY, "out of host memory");
        return n;
    }
    record->kept = 1;
    record->done = 1;
    record->chain = r->sequence->chain;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        record->launch.operands[i].reserved = 0;
        if (slots[i] != BURNI_SLOT_NONE) {
            note_slot(r, launch, i, slots[i]);
        }
        if (launch->operands[i].kind == BURN_IMMEDIATE) {
            note_scalar(r, launch, i);
        }
    }
    r->records[r->n_records++] = record;
    return n;
}

static void drop_record(const burn_replay *r, burni_record *record)
{
    burni_record_let_go(record);
    burni_record_free(r->stream, record);
}

void burni_recording_take_back(burn_replay *r, uint32_t n)
{
    int locked = burni_stream_lock(r->stream);
    while (r->n_records > n) {
        drop_record(r, r->records[--r->n_records]);
    }
    burni_stream_unlock(r->stream, locked);
    while (r->n_patches > 0 && r->patches[r->n_patches - 1].record >= n) {
        r->n_patches--;
    }
}

/* ---- begin ----------------------------------------------------------------------------------- */

static burn_replay *replay_new(void)
{
    burn_replay *r = burni_calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    r->sequence = burni_sequence_new(NULL);
    r->slots = burni_calloc(BURNI_SLOTS, sizeof(*r->slots));
    r->records = burni_calloc(BURNI_MAX_KEPT, sizeof(burni_record *));
    if (r->sequence == NULL || r->slots == NULL || r->records == NULL) {
        burn_replay_free(r);
        return NULL;
    }
    return r;
}

int32_t burn_replay_begin(burn_device *device, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "replay: the device is NULL");
    }
    if (thread->recording != NULL) {
        return burni_fail(err, BURN_E_STATE,
                          "replay: this thread keeps a step already; end it first");
    }
    burni_stream *stream = burni_stream_get(thread, device->core, err);
    if (stream == NULL) {
        return err->code;
    }
    burn_replay *r = replay_new();
    if (r == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "replay: out of host memory");
    }
    burni_stream_cut(stream);
    r->thread = thread;
    r->stream = stream;
    r->device = device;
    r->serial = atomic_fetch_add(&next_serial, 1) & 0x7fffffffffffu;
    r->checks = thread->watch & BURNI_CHECKS;
    r->rng_seed = thread->rng_seed;
    r->rng_first = thread->rng_counter;
    r->err.struct_size = sizeof(r->err);
    r->err.cap = sizeof(r->err.text);
    stream->recording = r;
    thread->recording = r;
    return BURN_OK;
}

/* ---- ports and scalars ----------------------------------------------------------------------- */

static void describe_port(burni_port *port, const burn_tensor *t, uint32_t slot)
{
    port->slot = slot;
    port->dtype = t->dtype;
    port->rank = t->rank;
    port->numel = t->numel;
    port->bytes = (uint64_t)t->numel * burn_dtype_size(t->dtype);
    uint64_t step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        port->dims[d] = t->dims[d];
        port->strides[d] = (int64_t)step;
        step *= (uint64_t)t->dims[d];
    }
}

burn_tensor *burn_replay_port(burn_tensor *t)
{
    burni_thread *thread = burni_thread_current;
    burn_replay *r = thread != NULL ? thread->recording : NULL;
    if (r == NULL || r->failed) {
        return t;
    }
    int plain = t != NULL && t->kind == BURN_TENSOR && t->cause == NULL && burni_is_whole(t) &&
                t->device->core == r->stream->device && !burni_is_var(t->storage);
    if (!plain) {
        refuse(r, BURN_E_INVALID,
               "a port must be a dense tensor of its own on the device, not NULL, a view, a "
               "scalar, a variable or a failed one");
        return t;
    }
    uint32_t slot = burni_sequence_slot(r->sequence, t->storage);
    if (slot == BURNI_SLOT_NONE || r->n_ports == BURNI_MAX_PORTS) {
        refuse(r, BURN_E_INVALID, "too many ports, 64 are possible");
        return t;
    }
    burni_bound_slot *s = &r->slots[slot];
    if (s->kind == BURNI_SLOT_PORT) {
        return t;
    }
    if (s->written || s->outside) {
        refuse(r, BURN_E_STATE, "a port was used or made in the step before it was declared");
        return t;
    }
    s->outside = 1;
    s->kind = BURNI_SLOT_PORT;
    s->index = r->n_ports;
    s->bytes = t->storage->bytes;
    s->storage = t->storage;
    burni_storage_ref(t->storage, 1);
    describe_port(&r->ports[r->n_ports++], t, slot);
    return t;
}

burn_tensor *burn_replay_scalar(burn_tensor *t, const char *name, double step)
{
    burni_thread *thread = burni_thread_current;
    burn_replay *r = thread != NULL ? thread->recording : NULL;
    if (r == NULL || r->failed || (t != NULL && t->cause != NULL)) {
        return t;
    }
    if (t == NULL || t->kind != BURN_IMMEDIATE || name == NULL) {
        refuse(r, BURN_E_INVALID,
               "a named scalar must be one of burn_scalar and its kin, with a name, which may be "
               "\"\"");
        return t;
    }
    uint32_t at = 0;
    while (at < r->n_params && (name[0] == '\0' || strcmp(r->params[at].name, name) != 0)) {
        at++;
    }
    double value = burni_scalar_f64(t->dtype, t->immediate);
    if (strlen(name) >= sizeof(r->params[0].name) || at > 0xffffu) {
        refuse(r, BURN_E_INVALID, "a scalar's name is longer than 31 bytes, or there are too many");
        return t;
    }
    if (at < r->n_params && (r->params[at].value != value || r->params[at].step != step)) {
        refuse(r, BURN_E_INVALID,
               "two scalars of one name have different values or steps; keep one step of an "
               "optimizer, not several");
        return t;
    }
    if (at == r->n_params) {
        if (!reserve((void **)&r->params, r->n_params, &r->cap_params, sizeof(r->params[0]))) {
            refuse(r, BURN_E_NO_MEMORY, "out of host memory");
            return t;
        }
        (void)snprintf(r->params[at].name, sizeof(r->params[at].name), "%s", name);
        r->params[at].value = value;
        r->params[at].step = step;
        r->n_params++;
    }
    t->offset = (int64_t)(r->serial << 16 | at);
    return t;
}

void burni_recording_abandon(burni_thread *thread)
{
    burn_replay *r = thread->recording;
    if (r != NULL) {
        r->stream->recording = NULL;
        thread->recording = NULL;
        burn_replay_free(r);
    }
}

/* ---- end ------------------------------------------------------------------------------------- */

static uint32_t var_index(const burn_replay *r, const burn_var *var)
{
    uint32_t at = 0;
    while (r->vars[at] != var) {
        at++;
    }
    return at;
}

/* Constants and temporaries are told apart when all has been seen. */
static void sort_slots(burn_replay *r)
{
    for (uint32_t k = 0; k < r->sequence->n_slots && !r->failed; k++) {
        burni_bound_slot *s = &r->slots[k];
        if (s->kind == BURNI_SLOT_VARIABLE) {
            s->index = var_index(r, s->var);
        } else if (s->outside && s->kind != BURNI_SLOT_PORT) {
            s->kind = BURNI_SLOT_CONSTANT;
        }
        if (s->outside && s->written && s->kind != BURNI_SLOT_VARIABLE) {
            refuse(r, BURN_E_STATE, "it overwrites what is no variable any more");
        }
    }
}

/* An output as a dense tensor that the step makes. */
static burn_tensor *made_by_step(burn_replay *r, burn_tensor *t, uint32_t j)
{
    if (t == NULL || t->kind != BURN_TENSOR || t->cause != NULL ||
        t->device->core != r->stream->device) {
        char text[96];
        (void)snprintf(text, sizeof(text), "output %u is no tensor of the device, or failed", j);
        refuse(r, BURN_E_INVALID, text);
        return NULL;
    }
    uint32_t slot = burni_sequence_slot(r->sequence, t->storage);
    int plain = slot != BURNI_SLOT_NONE && r->slots[slot].written && !r->slots[slot].outside &&
                r->slots[slot].kind != BURNI_SLOT_OUTPUT && burni_is_whole(t);
    if (plain) {
        return t;
    }
    burn_tensor *copy = NULL;
    r->thread->no_grad++;
    (void)burni_emit(r->thread, r->device, burni_op_find(BURN_OP_COPY), NULL, 0, &t, 1, &copy, 1);
    r->thread->no_grad--;
    return copy->cause == NULL ? copy : NULL;
}

static void take_outputs(burn_replay *r, burn_tensor *const *outputs, uint32_t n)
{
    for (uint32_t j = 0; j < n && !r->failed; j++) {
        burn_tensor *t = made_by_step(r, outputs[j], j);
        uint32_t slot = t != NULL ? burni_sequence_slot(r->sequence, t->storage) : BURNI_SLOT_NONE;
        if (slot == BURNI_SLOT_NONE) {
            refuse(r, BURN_E_INVALID, "an output could not be kept");
            return;
        }
        r->slots[slot].kind = BURNI_SLOT_OUTPUT;
        r->slots[slot].index = j;
        describe_port(&r->outputs[j], t, slot);
        r->n_outputs++;
    }
}

burn_replay *burn_replay_end(burn_tensor *const *outputs, uint32_t n_outputs, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    burn_replay *r = thread != NULL ? thread->recording : NULL;
    if (r == NULL) {
        (void)burni_fail(err, BURN_E_STATE, "replay: no step is being kept; begin one first");
        return NULL;
    }
    if (n_outputs > BURNI_MAX_PORTS || (outputs == NULL && n_outputs > 0)) {
        refuse(r, BURN_E_INVALID, "more than 64 outputs, or none given");
    }
    burn_scope_begin();
    take_outputs(r, outputs, n_outputs);
    r->stream->recording = NULL;
    thread->recording = NULL;
    burn_scope_end();
    burni_stream_cut(r->stream);
    if (thread->rng_seed != r->rng_seed || thread->rng_counter < r->rng_first) {
        refuse(r, BURN_E_STATE, "the generator was seeded anew in it");
    }
    r->rng_count = thread->rng_counter - r->rng_first;
    sort_slots(r);
    if (r->n_records == 0) {
        refuse(r, BURN_E_INVALID, "nothing was launched in it");
    }
    for (uint32_t k = 0; k < r->n_params; k++) {
        r->params[k].value += r->params[k].step;
    }
    if (r->failed) {
        (void)burni_fail(err, r->err.code, "%s", r->err.text);
        burn_replay_free(r);
        return NULL;
    }
    return r;
}

void burn_replay_free(burn_replay *r)
{
    if (r == NULL) {
        return;
    }
    burni_rebind_forget(r);
    for (uint32_t p = 0; p < r->n_parts; p++) {
        burni_plan_free(r->parts[p].plan);
    }
    int locked = r->stream != NULL ? burni_stream_lock(r->stream) : 0;
    for (uint32_t k = 0; k < r->n_records; k++) {
        drop_record(r, r->records[k]);
    }
    if (r->stream != NULL) {
        burni_stream_unlock(r->stream, locked);
    }
    for (uint32_t k = 0; r->slots != NULL && k < BURNI_SLOTS; k++) {
        if (r->slots[k].storage != NULL) {
            burni_storage_unref(r->slots[k].storage, 1);
        }
    }
    for (uint32_t k = 0; k < r->n_vars; k++) {
        burn_var_release(r->vars[k]);
    }
    burni_free(r->sequence);
    burni_free(r->slots);
    burni_free(r->records);
    burni_free(r->params);
    burni_free(r->patches);
    burni_free(r->vars);
    burni_free(r->alive);
    burni_free(r);
}
