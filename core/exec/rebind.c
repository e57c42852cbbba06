/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rebind.c - storages of a replay's slots, run by run. See rebind.h.
 *
 * The quick way is prepared once and holds as long as the plan does: which slots a launch sees
 * (`outer`), and which operands of records are these (`bindings`). Storages of the other slots are
 * held by their records all the time, as they would be for the length of a run.
 */
#include "exec/rebind.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/dry.h"

#include <string.h>

/* A storage of the run for a slot. A temporary one is held for all its uses; the others are held by
 * handles, variables or the replay until the run is over. NULL: no memory. */
static burni_storage *storage_for(const burn_replay *r, const burni_bound_slot *slot,
                                  burn_tensor *const *inputs, burn_tensor *const *outputs)
{
    burni_storage *s = NULL;
    switch (slot->kind) {
    case BURNI_SLOT_OUTPUT:
        return outputs[slot->index]->storage;
    case BURNI_SLOT_PORT:
        return inputs[slot->index]->storage;
    case BURNI_SLOT_VARIABLE:
        s = r->vars[slot->index]->value->storage;
        burni_storage_launch(s);
        return s;
    case BURNI_SLOT_CONSTANT:
        return slot->storage;
    default:
        s = burni_storage_new(r->thread, r->stream->device, slot->bytes);
        if (s != NULL) {
            atomic_store_explicit(&s->refs, BURNI_RECORD_REF, memory_order_relaxed);
        }
        return s;
    }
}

static inline uint32_t is_held(const burn_replay *r, uint32_t slot)
{
    return r->slots[slot].kind == BURNI_SLOT_TEMPORARY;
}

static int runs(const burn_replay *r, uint32_t record)
{
    return r->needed == NULL || r->needed[record];
}

/* Uses by the records that run; the others use nothing. */
static void count_uses(const burn_replay *r)
{
    burni_slot *slots = r->sequence->slots;
    for (uint32_t k = 0; k < r->sequence->n_slots; k++) {
        slots[k].uses = 0;
        slots[k].held = 0;
    }
    for (uint32_t k = 0; k < r->n_records; k++) {
        const burni_record *record = r->records[k];
        for (uint32_t i = 0; runs(r, k) && i < record->launch.n_in + record->launch.n_out; i++) {
            if (record->slots[i] != BURNI_SLOT_NONE) {
                slots[record->slots[i]].uses++;
            }
        }
    }
}

static void let_go(burni_slot *slot)
{
    if (slot->held) {
        slot->held = 0;
        burni_storage_unref(slot->storage, BURNI_RECORD_REF);
    }
}

void burni_unbind(burn_replay *r)
{
    burni_slot *slots = r->sequence->slots;
    uint32_t n = r->is_quick ? r->n_outer : r->sequence->n_slots;
    for (uint32_t k = 0; k < n; k++) {
        let_go(&slots[r->is_quick ? r->outer[k] : k]);
    }
}

static int32_t no_memory(burn_err *err)
{
    return burni_fail(err, BURN_E_NO_MEMORY, "replay: out of host memory");
}

static int32_t bind_all(burn_replay *r, burn_tensor *const *inputs, burn_tensor *const *outputs,
                        burn_err *err)
{
    burni_slot *slots = r->sequence->slots;
    count_uses(r);
    for (uint32_t k = 0; k < r->sequence->n_slots; k++) {
        if (slots[k].uses == 0) {
            continue;
        }
        slots[k].storage = storage_for(r, &r->slots[k], inputs, outputs);
        if (slots[k].storage == NULL) {
            burni_unbind(r);
            return no_memory(err);
        }
        slots[k].held = is_held(r, k);
    }
    for (uint32_t k = 0; k < r->n_records; k++) {
        burni_record *record = r->records[k];
        record->done = !runs(r, k);
        for (uint32_t i = 0; !record->done && i < record->launch.n_in + record->launch.n_out; i++) {
            if (record->slots[i] == BURNI_SLOT_NONE) {
                continue;
            }
            record->launch.storages[i] = slots[record->slots[i]].storage;
            if (i >= record->launch.n_in) {
                burni_storage_promise(r->stream, record->launch.storages[i]);
            }
        }
    }
    return BURN_OK;
}

/* ---- the quick way --------------------------------------------------------------------------- */

static int may_be_quick(const burn_replay *r)
{
    int may = r->n_parts > 0 && r->checks == 0 && !burni_is_dry(r->stream);
    for (uint32_t p = 0; p < r->n_parts && may; p++) {
        const burni_plan *plan = r->parts[p].plan;
        may = plan != NULL && !burni_plan_is_stale(r->stream, plan) && burni_plan_is_bound(plan);
    }
    return may;
}

void burni_rebind_forget(burn_replay *r)
{
    for (uint32_t k = 0; r->inner != NULL && k < r->sequence->n_slots; k++) {
        if (r->inner[k]) {
            let_go(&r->sequence->slots[k]);
        }
    }
    burni_free(r->inner);
    burni_free(r->outer);
    burni_free(r->bindings);
    r->inner = NULL;
    r->outer = NULL;
    r->bindings = NULL;
    r->n_outer = 0;
    r->n_bindings = 0;
    r->n_reads = 0;
    r->is_quick = 0;
}

/* Slot k is used: it gets a storage that stays, or is one of those that a launch sees. */
static int sort_slot(burn_replay *r, uint32_t k)
{
    burni_slot *slot = &r->sequence->slots[k];
    if (!r->inner[k]) {
        r->outer_uses[r->n_outer] = slot->uses;
        r->outer[r->n_outer++] = k;
        return 1;
    }
    slot->storage = burni_storage_new(r->thread, r->stream->device, r->slots[k].bytes);
    if (slot->storage == NULL) {
        return 0;
    }
    atomic_store_explicit(&slot->storage->refs, BURNI_RECORD_REF, memory_order_relaxed);
    slot->held = 1;
    return 1;
}

/* The operands that a record reads, or those that it writes. */
static void sort_operands(burn_replay *r, uint32_t record, int writes)
{
    burni_record *self = r->records[record];
    uint32_t first = writes ? self->launch.n_in : 0;
    uint32_t end = writes ? first + self->launch.n_out : self->launch.n_in;
    for (uint32_t i = first; i < end; i++) {
        uint32_t slot = self->slots[i];
        if (slot == BURNI_SLOT_NONE) {
            continue;
        }
        if (!r->inner[slot]) {
            burni_binding b = {&self->launch.storages[i], slot, 0};
            r->bindings[r->n_bindings++] = b;
            continue;
        }
        self->launch.storages[i] = r->sequence->slots[slot].storage;
        if (writes) {
            burni_storage_promise(r->stream, self->launch.storages[i]);
        }
    }
}

static int prepare_quick(burn_replay *r)
{
    uint32_t n_slots = r->sequence->n_slots;
    size_t n_operands = 1;
    count_uses(r);
    for (uint32_t k = 0; k < n_slots; k++) {
        n_operands += r->sequence->slots[k].uses;
    }
    r->inner = burni_calloc(n_slots + 1u, sizeof(*r->inner));
    r->outer = burni_calloc(2 * ((size_t)n_slots + 1), sizeof(*r->outer));
    r->bindings = burni_calloc(n_operands, sizeof(*r->bindings));
    if (r->inner == NULL || r->outer == NULL || r->bindings == NULL) {
        burni_free(r->inner);
        r->inner = NULL; /* nothing is held */
        burni_rebind_forget(r);
        return 0;
    }
    r->outer_uses = r->outer + n_slots + 1;
    for (uint32_t p = 0; p < r->n_parts; p++) {
        burni_plan_inner(r->parts[p].plan, r->inner);
    }
    int fine = 1;
    for (uint32_t k = 0; k < n_slots && fine; k++) {
        fine = r->sequence->slots[k].uses == 0 || sort_slot(r, k);
    }
    if (!fine) {
        burni_rebind_forget(r);
        return 0;
    }
    for (uint32_t k = 0; k < r->n_records; k++) {
        if (runs(r, k)) {
            sort_operands(r, k, 0);
        }
    }
    r->n_reads = r->n_bindings;
    for (uint32_t k = 0; k < r->n_records; k++) {
        if (runs(r, k)) {
            sort_operands(r, k, 1);
        }
    }
    return 1;
}

static int32_t bind_quick(burn_replay *r, burn_tensor *const *inputs,
                          burn_tensor *const *outputs, burn_err *err)
{
    burni_slot *slots = r->sequence->slots;
    for (uint32_t k = 0; k < r->n_outer; k++) {
        burni_slot *slot = &slots[r->outer[k]];
        slot->storage = storage_for(r, &r->slots[r->outer[k]], inputs, outputs);
        if (slot->storage == NULL) {
            burni_unbind(r);
            return no_memory(err);
        }
        slot->uses = r->outer_uses[k];
        slot->held = is_held(r, r->outer[k]);
    }
    const burni_binding *b = r->bindings;
    for (; b < r->bindings + r->n_reads; b++) {
        *b->place = slots[b->slot].storage;
    }
    for (; b < r->bindings + r->n_bindings; b++) {
        *b->place = slots[b->slot].storage;
        burni_storage_promise(r->stream, slots[b->slot].storage);
    }
    for (uint32_t k = 0; k < r->n_records; k++) {
        r->records[k]->done = !r->needed[k];
    }
    return BURN_OK;
}

int32_t burni_rebind(burn_replay *r, burn_tensor *const *inputs, burn_tensor *const *outputs,
                     burn_err *err)
{
    int quick = may_be_quick(r);
    if (r->is_quick && (!quick || r->is_new_plan)) {
        burni_rebind_forget(r);
    }
    if (quick && !r->is_quick) {
        r->is_quick = (uint32_t)prepare_quick(r);
    }
    r->is_new_plan = 0;
    return r->is_quick ? bind_quick(r, inputs, outputs, err) : bind_all(r, inputs, outputs, err);
}
