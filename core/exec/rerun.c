/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rerun.c - running a step that was kept. See recording.h.
 *
 * A run binds a storage to each slot (fresh ones to temporaries and outputs, today's to ports and
 * variables), writes scalars into the records' operands, and hands the records, up to 1,024 at a
 * time, to plans, which are made at the first run and again when the device gets other rows. From
 * there on it is the way of records that waited: memory, errors, faults and dying inputs are the
 * same code. The variables stay locked from before the first launch is made until after the last,
 * so another thread sees all updates of a step or none.
 */
#include "exec/recording.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/check.h"
#include "exec/emit.h"
#include "exec/guard.h"
#include "exec/rebind.h"
#include "ops/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

static int32_t check_input(const burn_replay *r, uint32_t i, const burn_tensor *t, burn_err *err)
{
    const burni_port *port = &r->ports[i];
    if (t == NULL) {
        return burni_fail(err, BURN_E_INVALID, "replay: input %u is NULL", i);
    }
    if (t->cause != NULL) {
        burni_cause_write(t->cause, err);
        return t->cause->code;
    }
    int fits = t->kind == BURN_TENSOR && t->dtype == port->dtype && t->rank == port->rank;
    for (uint32_t d = 0; d < port->rank && fits; d++) {
        fits = t->dims[d] == port->dims[d];
    }
    if (!fits) {
        char given[192];
        char wanted[192];
        return burni_fail(err, BURN_E_SHAPE,
                          "replay: input %u is %s%s, the step was kept with %s%s", i,
                          burn_dtype_name(t->dtype),
                          burni_shape_text(given, sizeof(given), t->rank, t->dims),
                          burn_dtype_name(port->dtype),
                          burni_shape_text(wanted, sizeof(wanted), port->rank, port->dims));
    }
    if (t->device->core != r->stream->device) {
        return burni_fail(err, BURN_E_DEVICE,
                          "replay: input %u is on %s, the step runs on %s; copy it with "
                          "burn_to_device",
                          i, t->device->core->name, r->stream->device->name);
    }
    return BURN_OK;
}

/* Is an input that fits as the port was: dense, and all of its storage? */
static int is_like_port(const burni_port *port, const burn_tensor *t)
{
    return t->offset == 0 && (t->flags & BURNI_CONTIGUOUS) != 0 &&
           t->storage->bytes == port->bytes && !burni_is_var(t->storage);
}

static burn_tensor *copy_of(const burn_replay *r, burn_tensor *t)
{
    burn_tensor *copy = NULL;
    r->thread->no_grad++;
    (void)burni_emit(r->thread, r->device, burni_op_find(BURN_OP_COPY), NULL, 0, &t, 1, &copy, 1);
    r->thread->no_grad--;
    return copy;
}

/* The inputs, or copies in a scope that is opened for the first of them: then `scoped` is 1. */
static int32_t take_inputs(const burn_replay *r, burn_tensor *const *inputs, uint32_t n,
                           burn_tensor **taken, int *scoped, burn_err *err)
{
    if (n != r->n_ports) {
        return burni_fail(err, BURN_E_INVALID, "replay: %u inputs given, the step has %u port%s", n,
                          r->n_ports, r->n_ports == 1 ? "" : "s");
    }
    for (uint32_t i = 0; i < n; i++) {
        int32_t rc = check_input(r, i, inputs[i], err);
        if (rc != BURN_OK) {
            return rc;
        }
        taken[i] = inputs[i];
        if (!is_like_port(&r->ports[i], inputs[i])) {
            if (!*scoped) {
                burn_scope_begin();
                *scoped = 1;
            }
            taken[i] = copy_of(r, inputs[i]);
        }
        if (taken[i]->cause != NULL) {
            return burn_tensor_error(taken[i], err);
        }
        burni_storage_launch(taken[i]->storage);
    }
    burni_stream_cut(r->stream);
    return BURN_OK;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static int32_t patch_scalars(const burn_replay *r, burn_err *err)
{
    for (uint32_t k = 0; k < r->n_patches; k++) {
        const burni_patch *p = &r->patches[k];
        burn_operand *o = &r->records[p->record]->launch.operands[p->operand];
        if (p->param == UINT32_MAX) {
            uint64_t counter = r->thread->rng_counter + p->base;
            memcpy(o->data, &counter, sizeof(counter));
            continue;
        }
        uint64_t value[2] = {0, 0};
        uint64_t bits[2] = {0, 0};
        memcpy(value, &r->params[p->param].value, sizeof(double));
        int32_t rc = burni_scalar_convert(BURN_F64, value, o->dtype, bits,
                                          r->params[p->param].name, err);
        if (rc != BURN_OK) {
            return rc;
        }
        memcpy(o->data, bits, sizeof(bits));
    }
    return BURN_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static burni_batch batch_of(const burn_replay *r, uint32_t from, uint32_t n)
{
    burni_batch batch = {r->records + from, r->sequence->slots, n, r->sequence->n_slots,
                         r->checks, r->is_quick, 0, 0};
    return batch;
}

/* What is needed is the same in each run, so it is found in the first, whose storages are bound. */
static int find_needed(burn_replay *r)
{
    if (r->alive != NULL) {
        return 1;
    }
    r->alive = burni_calloc(2, r->n_records);
    if (r->alive == NULL) {
        return 0;
    }
    r->needed = r->alive + r->n_records;
    burni_batch batch = batch_of(r, 0, r->n_records);
    burni_records_needed(&batch, r->n_records, r->alive, r->needed);
    for (uint32_t k = r->n_records; k-- > 0;) {
        if (!r->needed[k]) {
            burni_record_done(r->sequence->slots, r->records[k]);
        }
    }
    return 1;
}

/* As many as there must be, of about the same length. */
static void find_parts(burn_replay *r)
{
    uint32_t n = (r->n_records + BURNI_MAX_WINDOW - 1) / BURNI_MAX_WINDOW;
    for (uint32_t p = 0; p < n && r->n_parts == 0; p++) {
        r->parts[p].from = (uint32_t)((uint64_t)r->n_records * p / n);
        uint32_t end = (uint32_t)((uint64_t)r->n_records * (p + 1) / n);
        r->parts[p].n = end - r->parts[p].from;
    }
    r->n_parts = n;
}

static int has_plans(const burn_replay *r)
{
    uint32_t p = 0;
    while (p < r->n_parts && r->parts[p].plan != NULL &&
           !burni_plan_is_stale(r->stream, r->parts[p].plan)) {
        p++;
    }
    return p == r->n_parts && p > 0;
}

/* From the last part on, so that it is known what later ones need of each. */
static void make_plans(burn_replay *r)
{
    uint8_t wanted[BURNI_SLOTS];
    uint8_t alive[BURNI_MAX_WINDOW];
    find_parts(r);
    r->is_new_plan = 1;
    memset(wanted, 0, r->sequence->n_slots);
    for (uint32_t p = r->n_parts; p-- > 0;) {
        burni_part *part = &r->parts[p];
        burni_batch batch = batch_of(r, part->from, part->n);
        for (uint32_t k = 0; k < part->n; k++) {
            alive[k] = r->alive[part->from + k] ||
                       burni_record_makes_any(batch.records[k], wanted);
        }
        burni_plan_free(part->plan);
        part->plan = burni_plan_make(r->stream, &batch, alive, r->needed + part->from, NULL);
        for (uint32_t k = 0; k < part->n; k++) {
            const burni_record *record = batch.records[k];
            for (uint32_t i = 0; r->needed[part->from + k] && i < record->launch.n_in; i++) {
                if (record->slots[i] != BURNI_SLOT_NONE) {
                    wanted[record->slots[i]] = 1;
                }
            }
        }
    }
}

static void run_bound(burn_replay *r)
{
    int locked = burni_stream_lock(r->stream);
    if (find_needed(r) && !has_plans(r)) {
        make_plans(r);
    }
    for (uint32_t p = 0; p < r->n_parts; p++) {
        const burni_part *part = &r->parts[p];
        burni_batch batch = batch_of(r, part->from, part->n);
        if (part->plan != NULL) {
            r->is_new_plan |= (uint32_t)burni_plan_run(r->stream, &batch, part->plan);
        }
        for (uint32_t k = 0; k < part->n && part->plan == NULL; k++) {
            if (!batch.records[k]->done) {
                burni_stream_runs(r->stream, k);
                burni_record_run(r->stream, batch.slots, batch.records[k]);
            }
        }
        burni_stream_passed(r->stream, part->n);
    }
    for (uint32_t k = 0; k < r->n_records && r->n_parts == 0; k++) {
        burni_record_run(r->stream, r->sequence->slots, r->records[k]);
    }
    burni_unbind(r);
    burni_stream_unlock(r->stream, locked);
}

/* Launches are looked at as the thread's calls are now. */
static void renew_checks(burn_replay *r)
{
    uint32_t watch = r->thread->watch & BURNI_CHECKS;
    for (uint32_t k = 0; k < r->n_records && watch != r->checks; k++) {
        burni_note_renew(&r->records[k]->launch, watch);
    }
    r->checks = watch;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int32_t make_outputs(const burn_replay *r, burn_tensor **outputs, burn_err *err)
{
    for (uint32_t j = 0; j < r->n_outputs; j++) {
        const burni_port *port = &r->outputs[j];
        burn_tensor *t =
            burni_result_new(r->thread, r->device, r->stream->device, port->bytes);
        if (t == NULL) {
            return burni_fail(err, BURN_E_NO_MEMORY, "replay: out of host memory");
        }
        outputs[j] = t;
        t->dtype = port->dtype;
        t->rank = port->rank;
        t->flags = BURNI_CONTIGUOUS;
        t->numel = port->numel;
        memcpy(t->dims, port->dims, sizeof(port->dims));
        memcpy(t->strides, port->strides, sizeof(port->strides));
    }
    return BURN_OK;
}

/* All variables are locked, the written ones safe to overwrite. */
static int32_t prepare_vars(const burn_replay *r, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t k = 0; k < r->sequence->n_slots && rc == BURN_OK; k++) {
        if (r->slots[k].kind == BURNI_SLOT_VARIABLE && r->slots[k].written) {
            rc = burni_var_prepare_write(r->thread, r->vars[r->slots[k].index], err);
        }
    }
    return rc;
}

static int32_t run(burn_replay *r, burn_tensor *const *inputs, burn_tensor **outputs, burn_err *err)
{
    for (uint32_t k = 0; k < r->n_vars; k++) {
        (void)pthread_mutex_lock(&r->vars[k]->lock);
    }
    int32_t rc = prepare_vars(r, err);
    if (r->n_vars > 0 && rc == BURN_OK) {
        burni_stream_cut(r->stream); /* what was copied */
    }
    if (rc == BURN_OK) {
        rc = patch_scalars(r, err);
    }
    if (rc == BURN_OK) {
        renew_checks(r);
        rc = burni_rebind(r, inputs, outputs, err);
    }
    if (rc == BURN_OK) {
        run_bound(r);
    }
    for (uint32_t k = r->n_vars; k-- > 0;) {
        (void)pthread_mutex_unlock(&r->vars[k]->lock);
    }
    if (rc == BURN_OK) {
        r->thread->rng_counter += r->rng_count;
        for (uint32_t k = 0; k < r->n_params; k++) {
            r->params[k].value += r->params[k].step;
        }
    }
    return rc;
}

static int32_t check_run(const burn_replay *r, burn_tensor *const *inputs, uint32_t n_inputs,
                         burn_tensor **outputs, uint32_t n_outputs, burn_err *err)
{
    if (r == NULL || (inputs == NULL && n_inputs > 0) || (outputs == NULL && n_outputs > 0)) {
        return burni_fail(err, BURN_E_INVALID, "replay: the %s NULL",
                          r == NULL        ? "replay is"
                          : inputs == NULL && n_inputs > 0 ? "inputs are"
                                           : "outputs are");
    }
    if (burni_thread_get() != r->thread) {
        return burni_fail(err, BURN_E_STATE,
                          "replay: it belongs to the thread that kept the step; keep it here, too");
    }
    if (r->thread->recording != NULL) {
        return burni_fail(err, BURN_E_STATE, "replay: a step is being kept; end it first");
    }
    if (r->thread->capture != NULL) {
        return burni_fail(err, BURN_E_STATE,
                          "replay: a graph is being captured, which sees calls; call the step");
    }
    if (n_outputs != r->n_outputs) {
        return burni_fail(err, BURN_E_INVALID, "replay: %u outputs wanted, the step has %u",
                          n_outputs, r->n_outputs);
    }
    if (r->rng_count > 0 && r->thread->rng_seed != r->rng_seed) {
        return burni_fail(err, BURN_E_STATE,
                          "replay: the generator has another seed (%" PRIu64 ") than when the step "
                          "was kept (%" PRIu64 ")",
                          r->thread->rng_seed, r->rng_seed);
    }
    return BURN_OK;
}

int32_t burn_replay_run(burn_replay *r, burn_tensor *const *inputs, uint32_t n_inputs,
                        burn_tensor **outputs, uint32_t n_outputs, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burn_tensor *taken[BURNI_MAX_PORTS];
    int32_t rc = check_run(r, inputs, n_inputs, outputs, n_outputs, err);
    int may_run = rc == BURN_OK;
    int scoped = 0;
    if (may_run) {
        rc = take_inputs(r, inputs, n_inputs, taken, &scoped, err);
    }
    /* Not before: a step that goes on from its results may be given one array for both. */
    for (uint32_t j = 0; outputs != NULL && j < n_outputs; j++) {
        outputs[j] = NULL;
    }
    if (may_run) {
        rc = rc == BURN_OK ? make_outputs(r, outputs, err) : rc;
        rc = rc == BURN_OK ? run(r, taken, outputs, err) : rc;
    }
    if (scoped) {
        burni_scope_end_inside(outputs, n_outputs);
    }
    for (uint32_t j = 0; rc != BURN_OK && outputs != NULL && j < n_outputs; j++) {
        if (outputs[j] != NULL) {
            burn_release(outputs[j]);
        }
        outputs[j] = burni_handle_fail(burni_thread_get(), rc, 0, "%s", err->text);
    }
    return rc;
}

int32_t burn_replay_set(burn_replay *r, const char *name, double value, burn_err *err)
{
    char known[160] = "";
    burn_err spare;
    err = burni_first(err, &spare);
    if (r == NULL || name == NULL) {
        return burni_fail(err, BURN_E_INVALID, "replay: the %s is NULL",
                          r == NULL ? "replay" : "name");
    }
    for (uint32_t k = 0; k < r->n_params; k++) {
        if (r->params[k].name[0] == '\0') {
            continue;
        }
        if (strcmp(r->params[k].name, name) == 0) {
            r->params[k].value = value;
            return BURN_OK;
        }
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                       r->params[k].name);
    }
    return burni_fail(err, BURN_E_NOT_FOUND, "replay: no scalar is called \"%s\"; there are: %s",
                      name, known[0] != '\0' ? known : "none");
}

void burn_replay_size(const burn_replay *r, uint32_t *out_kept, uint32_t *out_runs)
{
    uint32_t kept = r != NULL ? r->n_records : 0;
    uint32_t runs = 0;
    for (uint32_t p = 0; r != NULL && p < r->n_parts; p++) {
        const burni_part *part = &r->parts[p];
        runs += part->plan != NULL ? burni_plan_size(part->plan) : part->n;
    }
    if (out_kept != NULL) {
        *out_kept = kept;
    }
    if (out_runs != NULL) {
        *out_runs = runs > 0 ? runs : kept;
    }
}
