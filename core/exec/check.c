/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.c - BURN_CHECK: the option, and what is looked at when. See check.h.
 *
 * A launch is looked at where it runs, with its inputs kept; a decomposition after its parts, with
 * what waits run first; what a part failed is not told twice. When a group has run, its members run
 * once more, one by one, into memory of their own, and are looked at as single calls are; then what
 * the group wrote is to have the bits that they made. What nobody needs is neither run nor looked
 * at.
 */
#include "exec/check_private.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/check_bounds.h"
#include "exec/dry.h"
#include "loader/loader.h"

#include <burn/plugin.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Beside BURNI_CHECKS: no bit of a thread, but of how its streams launch. */
#define BOUNDS (UINT32_C(1) << 31)

static _Atomic uint64_t counts[BURNI_COUNTS];
static _Atomic int finished;
static _Atomic int option_known; /* the environment has no more to say */

void burni_check_add(burni_check_count which, uint64_t n)
{
    atomic_fetch_add(&counts[which], n);
}

/* ---- the option ------------------------------------------------------------------------------ */

static int32_t parse(const char *value, uint32_t *bits, burn_err *err)
{
    const char *at = value;
    *bits = 0;
    if (value == NULL || strcmp(value, "off") == 0) {
        return BURN_OK;
    }
    for (;;) {
        size_t n = strcspn(at, ",");
        if (n == 3 && memcmp(at, "nan", n) == 0) {
            *bits |= BURNI_WATCH_NAN;
        } else if (n == 7 && memcmp(at, "compare", n) == 0) {
            *bits |= BURNI_WATCH_COMPARE;
        } else if (n == 6 && memcmp(at, "bounds", n) == 0) {
            *bits |= BOUNDS;
        } else {
            return burni_fail(err, BURN_E_INVALID,
                              "BURN_CHECK=\"%.32s\": expected nan, compare, bounds, several of "
                              "them with commas between, or off",
                              value);
        }
        if (at[n] == '\0') {
            return BURN_OK;
        }
        at += n + 1;
    }
}

int32_t burni_check_set(burni_thread *thread, const char *value, burn_err *err)
{
    uint32_t bits = 0;
    int32_t rc = parse(value, &bits, err);
    if (rc == BURN_OK) {
        atomic_store(&option_known, 1);
        atomic_fetch_and(&burni_watch_all, ~BURNI_CHECKS);
        atomic_fetch_or(&burni_watch_all, bits & BURNI_CHECKS);
        thread->watch = (thread->watch & ~BURNI_CHECKS) | (bits & BURNI_CHECKS);
        burni_bounds_set(thread, (bits & BOUNDS) != 0);
    }
    return rc;
}

int32_t burni_check_option(burn_err *err)
{
    uint32_t bits = 0;
    return parse(burni_loader_option("CHECK"), &bits, err);
}

int32_t burni_check_start(burn_err *err)
{
    uint32_t bits = 0;
    int32_t rc = parse(burni_loader_option("CHECK"), &bits, err);
    if (rc == BURN_OK && atomic_exchange(&option_known, 1) == 0) {
        atomic_fetch_or(&burni_watch_all, bits & BURNI_CHECKS);
        burni_bounds_set(NULL, (bits & BOUNDS) != 0);
    }
    return rc;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static burni_note *note_new(uint32_t watch, uint32_t n_operands)
{
    burni_note *note = burni_calloc(1, sizeof(*note) + n_operands * sizeof(note->operands[0]));
    if (note != NULL) {
        atomic_init(&note->refs, 1);
        note->watch = watch;
    }
    return note;
}

void burni_note_hold(burni_note *note)
{
    atomic_fetch_add_explicit(&note->refs, 1, memory_order_relaxed);
}

void burni_note_let_go(burni_note *note)
{
    if (atomic_fetch_sub_explicit(&note->refs, 1, memory_order_acq_rel) == 1) {
        burni_free(note);
    }
}

static void note_tensor(burni_noted *noted, const burn_meta *meta, const burn_tensor *t)
{
    noted->meta = *meta;
    if (meta->kind == BURN_TENSOR && t != NULL && t->cause == NULL) {
        memcpy(noted->strides, t->strides, meta->rank * sizeof(t->strides[0]));
        noted->offset = t->offset * (int64_t)burn_dtype_size(t->dtype);
    }
}

/* The operand in the dense copy that was made of it, which may be one of it broadcast. */
static void note_copy(burni_noted *noted, const burn_meta *meta, const burn_tensor *copy)
{
    noted->meta = *meta;
    for (uint32_t d = 0; d < meta->rank; d++) {
        uint32_t from = copy->rank - meta->rank + d;
        noted->strides[d] = meta->dims[d] == 1 ? 0 : copy->strides[from];
    }
}

static void note_outputs(burni_note *note, const burni_emission *e)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        note_tensor(&note->operands[e->n_in + j], &e->out_meta[j], e->out[j]);
    }
}

static burni_note *note_inputs(const burni_emission *e)
{
    burni_note *note = note_new(e->thread->watch & BURNI_CHECKS, e->n_in + e->n_out);
    if (note != NULL && e->thread->frame != NULL) {
        (void)snprintf(note->part_of, sizeof(note->part_of), "%s", e->thread->frame->label);
    }
    for (uint32_t i = 0; note != NULL && i < e->n_in; i++) {
        note_tensor(&note->operands[i], &e->meta[i], e->in[i]);
    }
    return note;
}

burni_note *burni_note_of(const burni_emission *e)
{
    burni_note *note = burni_checks(e->thread) ? note_inputs(e) : NULL;
    if (note == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind == BURN_TENSOR && e->used[i] != e->in[i]) {
            note->operands[i].offset = 0;
            note_copy(&note->operands[i], &e->meta[i], e->used[i]);
        }
    }
    note_outputs(note, e);
    return note;
}

/* As the kernel sees the operand, where nobody noted how the program does. */
static void note_operand(burni_noted *noted, const burn_operand *o)
{
    noted->meta.kind = o->kind;
    noted->meta.dtype = o->dtype;
    noted->meta.rank = o->kind == BURN_TENSOR ? o->rank : 0;
    for (uint32_t d = 0; d < noted->meta.rank; d++) {
        noted->meta.dims[d] = o->dims[d];
        noted->strides[d] = o->strides[d];
    }
    noted->offset = (int64_t)o->offset;
}

void burni_note_renew(burni_launch *launch, uint32_t watch)
{
    uint32_t n = launch->n_in + launch->n_out;
    if (launch->check != NULL) {
        launch->check->watch = watch;
        return;
    }
    launch->check = watch != 0 ? note_new(watch, n) : NULL;
    for (uint32_t i = 0; launch->check != NULL && i < n; i++) {
        note_operand(&launch->check->operands[i], &launch->operands[i]);
    }
}

/* ---- around a launch ------------------------------------------------------------------------- */

static burni_check *check_new(burni_stream *stream, const burni_op *op, burni_note *note)
{
    burni_check *check = note != NULL ? burni_calloc(1, sizeof(*check)) : NULL;
    if (check != NULL) {
        check->stream = stream;
        check->op = op;
        check->note = note;
    }
    return check;
}

/* Before the call: what it overwrites, and what it is compared with. */
static void read_early(burni_check *check)
{
    if ((check->note->watch & BURNI_WATCH_COMPARE) != 0 ||
        check->op->def.effect == BURN_EFFECT_STATE) {
        burni_check_read_inputs(check);
    }
}

static burni_check *check_launch(burni_stream *stream, const burni_launch *launch)
{
    int looks = launch->check->watch != 0 && !burni_is_dry(stream);
    burni_check *check = looks ? check_new(stream, launch->op, launch->check) : NULL;
    if (check == NULL) {
        return NULL;
    }
    check->attrs = launch->attrs;
    check->attrs_size = launch->attrs_size;
    check->tag = launch->tag;
    check->n_in = launch->n_in;
    check->n_out = launch->n_out;
    for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++) {
        check->storages[i] = launch->storages[i];
        check->bits[i] = launch->operands[i].kind == BURN_IMMEDIATE ? launch->operands[i].data
                                                                    : NULL;
    }
    read_early(check);
    return check;
}

int32_t burni_check_run(burni_stream *stream, const burni_launch *launch, burn_operand *operands)
{
    burni_launch plain = *launch;
    burni_check *check = check_launch(stream, launch);
    plain.check = NULL;
    plain.moved = 0; /* what its inputs were is told */
    plain.dying = 0;
    int32_t rc = burni_launch_run(stream, &plain, operands);
    if (check != NULL && rc == BURN_OK) {
        burni_check_outputs(check);
    }
    if (check != NULL) {
        burni_check_clear(check);
    }
    burni_free(check);
    return rc;
}

/* ---- around a decomposition ------------------------------------------------------------------ */

/* What waits of the operands runs now, the sequence of calls goes on. */
static int32_t settle(burn_tensor *const *tensors, uint32_t n, burni_storage **storages)
{
    for (uint32_t i = 0; i < n; i++) {
        const burn_tensor *t = tensors[i];
        if (t != NULL && t->cause != NULL) {
            return t->cause->code;
        }
        storages[i] = t != NULL && t->kind == BURN_TENSOR ? t->storage : NULL;
        if (storages[i] != NULL) {
            burni_storage_launch(storages[i]);
        }
    }
    return BURN_OK;
}

burni_check *burni_check_begin(burni_emission *e)
{
    burn_err err = BURN_ERR_INIT;
    burni_stream *stream = burni_checks(e->thread)
                               ? burni_stream_get(e->thread, e->device->core, &err)
                               : NULL;
    burni_note *note = stream != NULL && !burni_is_dry(stream) ? note_inputs(e) : NULL;
    burni_check *check = check_new(stream, e->op, note);
    if (check == NULL) {
        burni_note_unref(note);
        return NULL;
    }
    check->attrs = e->attrs;
    check->attrs_size = e->attrs_size;
    check->tag = e->thread->tag;
    check->n_in = e->n_in;
    check->n_out = e->n_out;
    for (uint32_t i = 0; i < e->n_in; i++) {
        check->bits[i] = e->immediates[i];
    }
    int early = (note->watch & BURNI_WATCH_COMPARE) != 0 || e->op->def.effect == BURN_EFFECT_STATE;
    check->unread = early ? settle(e->in, e->n_in, check->storages) : BURN_OK;
    if (check->unread == BURN_OK) {
        int locked = burni_stream_lock(stream);
        read_early(check);
        burni_stream_unlock(stream, locked);
    }
    return check;
}

void burni_check_end(burni_check *check, burni_emission *e, int32_t rc)
{
    if (check == NULL) {
        return;
    }
    if (rc == BURN_OK && check->unread == BURN_OK) {
        note_outputs(check->note, e);
        rc = settle(e->in, e->n_in, check->storages);
        rc = rc == BURN_OK ? settle(e->out, e->n_out, check->storages + e->n_in) : rc;
        int locked = burni_stream_lock(check->stream);
        if (rc == BURN_OK) {
            burni_check_outputs(check);
        }
        burni_stream_unlock(check->stream, locked);
    }
    burni_check_clear(check);
    burni_note_unref(check->note);
    burni_free(check);
}

/* ---- in a group ------------------------------------------------------------------------------ */

/* A group whose members run again by themselves. */
typedef struct retrial {
    burni_stream *stream;
    const burni_batch *batch;
    const burni_group *group;
    burni_storage **made; /* of each member, its result */
} retrial;

static burni_record *member_of(const retrial *t, uint32_t k)
{
    return t->batch->records[t->group->members[k].record];
}

/* The result as it was made anew, of an operand that an earlier member makes. */
static burni_storage *made_before(const retrial *t, uint32_t k, uint32_t slot)
{
    for (uint32_t m = 0; m < k && slot != BURNI_SLOT_NONE; m++) {
        const burni_record *r = member_of(t, m);
        if (r->slots[r->launch.n_in] == slot) {
            return t->made[m];
        }
    }
    return NULL;
}

/* 0: no memory. */
static int run_member(retrial *t, uint32_t k)
{
    burn_operand operands[BURN_MAX_OPERANDS];
    burni_storage *storages[BURN_MAX_OPERANDS];
    const burni_record *r = member_of(t, k);
    burni_launch launch = r->launch;
    burni_thread *thread = burni_thread_get();
    uint32_t n_in = launch.n_in;
    t->made[k] = thread != NULL ? burni_storage_new(thread, t->stream->device,
                                                    launch.storages[n_in]->bytes)
                                : NULL;
    if (t->made[k] == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        burni_storage *own = made_before(t, k, r->slots[i]);
        operands[i] = launch.operands[i];
        storages[i] = own != NULL ? own : launch.storages[i];
    }
    operands[n_in] = launch.operands[n_in];
    storages[n_in] = t->made[k];
    launch.operands = operands;
    launch.storages = storages;
    launch.moved = 0;
    launch.dying = 0;
    burni_stream_runs(t->stream, t->group->members[k].record);
    return burni_launch_run(t->stream, &launch, operands) == BURN_OK;
}

static void group_names(const retrial *t, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < t->group->n_members && used < size; k++) {
        int n = snprintf(text + used, size - used, "%s%s", k > 0 ? " " : "",
                         member_of(t, k)->launch.op->def.name);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* The group's result beside the member's own. */
static void compare_result(const retrial *t, uint32_t k)
{
    const burni_launch *launch = &member_of(t, k)->launch;
    burni_storage *storage = launch->storages[launch->n_in];
    burni_storage *alone = t->made[k];
    burn_err err = BURN_ERR_INIT;
    burn_eval_operand got = {0};
    burn_eval_operand expected = {0};
    uint64_t position = 0;
    burni_noted noted;
    memset(&noted, 0, sizeof(noted));
    if (launch->check != NULL) {
        noted = launch->check->operands[launch->n_in];
    } else {
        note_operand(&noted, &launch->operands[launch->n_in]);
    }
    int failed = burni_check_fetch(&expected, t->stream, alone, &noted, &err) != BURN_OK;
    if (failed && atomic_load(&alone->state) == BURNI_FAILED) {
        burni_storage_fail(storage, alone->cause);
    } else if (!failed &&
               burni_check_fetch(&got, t->stream, storage, &noted, &err) == BURN_OK &&
               !burni_check_is_same(&got, &expected, &position)) {
        char names[112];
        group_names(t, names, sizeof(names));
        burni_check_blame_group(t->stream, launch, names, storage, &got, &expected, position);
    }
    burni_check_release(&expected);
    burni_check_release(&got);
}

void burni_check_group(burni_stream *stream, const burni_batch *batch, const burni_group *group)
{
    burni_storage *made[BURN_FUSED_MAX_STEPS] = {NULL};
    retrial t = {stream, batch, group, made};
    if (burni_is_dry(stream) || group->n_members > BURN_FUSED_MAX_STEPS) {
        return;
    }
    uint32_t n = 0;
    while (n < group->n_members && run_member(&t, n)) {
        n++;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (group->members[k].written) {
            compare_result(&t, k);
        }
    }
    for (uint32_t k = 0; k < group->n_members; k++) {
        if (made[k] != NULL) {
            burni_storage_unref(made[k], 1);
        }
    }
}

/* ---- the report ------------------------------------------------------------------------------ */

burni_check_counts burni_check_report(void)
{
    burni_check_counts c = {
        atomic_load(&counts[BURNI_LOOKED_AT]), atomic_load(&counts[BURNI_COMPARED]),
        atomic_load(&counts[BURNI_SKIPPED]), atomic_load(&counts[BURNI_WRONG]),
        atomic_load(&counts[BURNI_GUARDED]), atomic_load(&counts[BURNI_UNGUARDED])};
    return c;
}

void burni_check_finish(void)
{
    burni_check_counts c = burni_check_report();
    int looked = c.looked_at + c.compared + c.skipped > 0;
    int guarded = c.guarded + c.unguarded > 0;
    if ((!looked && !guarded) || atomic_exchange(&finished, 1) != 0) {
        return;
    }
    if (guarded) {
        burni_log(BURN_LOG_INFO, "check",
                  "%" PRIu64 " launches were within guard bytes, %" PRIu64 " could not be, %" PRIu64
                  " wrong",
                  c.guarded, c.unguarded, c.wrong);
    }
    if (!looked) {
        return;
    }
    burni_log(BURN_LOG_INFO, "check",
              "%" PRIu64 " calls looked at for NaN and infinity, %" PRIu64
              " compared with their definition, %" PRIu64 " could not be, %" PRIu64 " wrong",
              c.looked_at, c.compared, c.skipped, c.wrong);
}
