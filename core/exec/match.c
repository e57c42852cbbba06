/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * match.c - slots, revisions and guards of a row against a call. See match.h.
 *
 * Each step decides and, when it is asked, says why; so what `explain` tells cannot differ from the
 * choice.
 */
#include "exec/match.h"

#include <burn/dtype.h>

/* ---- texts ----------------------------------------------------------------------------------- */

const char *burni_operand_name(const burni_op *op, uint32_t i, uint32_t n_in)
{
    const burn_role *role = i < n_in ? burni_op_role_in(op, i) : burni_op_role_out(op, i - n_in);
    return role != NULL && role->name != NULL ? role->name : "operand";
}

void burni_print_layouts(burni_printer *p, uint32_t layouts)
{
    static const char *const names[] = {"contiguous", "scalar", "vector", "rows", "strided"};
    const char *between = "";
    if ((layouts & BURN_LAYOUT_ANY) == BURN_LAYOUT_ANY) {
        burni_print(p, "any");
        return;
    }
    for (uint32_t bit = 0; bit < 5; bit++) {
        if ((layouts >> bit & 1) != 0) {
            burni_print(p, "%s%s", between, names[bit]);
            between = "|";
        }
    }
}

void burni_print_dtypes(burni_printer *p, const uint64_t dtypes[4])
{
    const char *between = "";
    for (uint32_t code = 0; code < 256; code++) {
        if ((dtypes[code / 64] >> (code % 64) & 1) != 0 && burn_dtype_size((uint8_t)code) > 0) {
            burni_print(p, "%s%s", between, burn_dtype_name((uint8_t)code));
            between = "|";
        }
    }
    if (between[0] == '\0') {
        burni_print(p, "none");
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

uint32_t burni_slots_out(const burni_op *op, uint32_t n_out)
{
    return op->variadic_out ? op->def.n_out : n_out;
}

const burn_slot *burni_row_slot(const burni_op *op, const burn_row *row, uint32_t i, uint32_t n_in,
                                uint32_t n_out)
{
    /* A variadic op has more operands than slots: the last slot serves the rest. */
    uint32_t slots_out = burni_slots_out(op, n_out);
    uint32_t slots_in = row->n_slots > slots_out ? row->n_slots - slots_out : 0;
    int is_input = i < n_in;
    uint32_t slots = is_input ? slots_in : slots_out;
    uint32_t index = is_input ? i : i - n_in;
    index = (index < slots ? index : slots - 1) + (is_input ? 0 : slots_in);
    return (const burn_slot *)(const void *)((const char *)row->slots +
                                             (size_t)index * row->slot_stride);
}

static int has_dtype(const burn_slot *slot, uint8_t dtype)
{
    return (int)(slot->dtypes[dtype / 64] >> (dtype % 64) & 1);
}

static const burn_operand *tied_to(const burn_slot *slot, const burn_call *call)
{
    uint32_t other = slot->same_dtype_as;
    if (other == 0 || other - 1 >= call->n_in + call->n_out ||
        call->operands[other - 1].kind == BURN_ABSENT) {
        return NULL;
    }
    return &call->operands[other - 1];
}

static void say_why_not(burni_printer *why, const burni_op *op, const burn_slot *slot,
                        const burn_call *call, uint32_t i)
{
    const burn_operand *o = &call->operands[i];
    const burn_operand *tied = tied_to(slot, call);
    burni_print(why, "%s ", burni_operand_name(op, i, call->n_in));
    if (o->kind == BURN_ABSENT) {
        burni_print(why, "is absent, it must be there");
    } else if (!has_dtype(slot, o->dtype)) {
        burni_print(why, "is %s, it takes ", burn_dtype_name(o->dtype));
        burni_print_dtypes(why, slot->dtypes);
    } else if (tied != NULL && tied->dtype != o->dtype) {
        burni_print(why, "is %s, it must be like %s, which is %s", burn_dtype_name(o->dtype),
                    burni_operand_name(op, slot->same_dtype_as - 1u, call->n_in),
                    burn_dtype_name(tied->dtype));
    } else if (o->kind == BURN_IMMEDIATE) {
        burni_print(why, "is a scalar, it takes tensors");
    } else if (o->rank < slot->rank_min || o->rank > slot->rank_max) {
        burni_print(why, "has rank %u, it takes %u to %u", o->rank, slot->rank_min, slot->rank_max);
    } else {
        burni_print(why, "is ");
        burni_print_layouts(why, o->layout);
        burni_print(why, ", it takes ");
        burni_print_layouts(why, slot->layouts);
    }
}

/* 0: fits; 1: fits after making it dense; -1: does not fit. */
static int match_slot(const burni_op *op, const burn_row *row, const burn_call *call, uint32_t i)
{
    const burn_slot *slot = burni_row_slot(op, row, i, call->n_in, call->n_out);
    const burn_operand *o = &call->operands[i];
    if (o->kind == BURN_ABSENT) {
        return slot->may_be_absent ? 0 : -1;
    }
    const burn_operand *tied = tied_to(slot, call);
    if (!has_dtype(slot, o->dtype) || (tied != NULL && tied->dtype != o->dtype)) {
        return -1;
    }
    if (o->kind == BURN_IMMEDIATE) {
        return slot->immediate_ok ? 0 : -1;
    }
    if (o->rank < slot->rank_min || o->rank > slot->rank_max) {
        return -1;
    }
    if ((slot->layouts & o->layout) != 0) {
        return 0;
    }
    return i < call->n_in && (slot->layouts & BURN_LAYOUT_CONTIGUOUS) != 0 ? 1 : -1;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static const burn_guard *guard_at(const burn_row *row, uint32_t g)
{
    return (const burn_guard *)(const void *)((const char *)row->guards +
                                              (size_t)g * row->guard_stride);
}

/* The size that a guard speaks of; 0 when the operand has no such dim. */
static int guarded_size(const burn_guard *guard, const burn_call *call, int *dim, int64_t *size)
{
    if (guard->operand >= call->n_in + call->n_out) {
        return 0;
    }
    const burn_operand *o = &call->operands[guard->operand];
    *dim = guard->dim < 0 ? guard->dim + o->rank : guard->dim;
    if (*dim < 0 || *dim >= o->rank) {
        return 0;
    }
    *size = o->dims[*dim];
    return 1;
}

static int guard_holds(const burn_guard *guard, const burn_call *call)
{
    int dim = 0;
    int64_t size = 0;
    return guarded_size(guard, call, &dim, &size) &&
           (guard->multiple_of <= 0 || size % guard->multiple_of == 0) && size >= guard->min &&
           (guard->max <= 0 || size <= guard->max);
}

int burni_guards_hold(const burn_row *row, const burn_call *call)
{
    for (uint32_t g = 0; g < row->n_guards; g++) {
        if (!guard_holds(guard_at(row, g), call)) {
            return 0;
        }
    }
    return 1;
}

static void say_guard(burni_printer *why, const burni_op *op, const burn_row *row,
                      const burn_call *call)
{
    for (uint32_t g = 0; g < row->n_guards; g++) {
        const burn_guard *guard = guard_at(row, g);
        int dim = guard->dim;
        int64_t size = 0;
        if (guard_holds(guard, call)) {
            continue;
        }
        if (!guarded_size(guard, call, &dim, &size)) {
            burni_print(why, "its guard speaks of operand %u, dim %d, which is not there",
                        guard->operand, guard->dim);
            return;
        }
        burni_print(why, "dim %d of %s is %lld, its guard asks for ", dim,
                    burni_operand_name(op, guard->operand, call->n_in), (long long)size);
        if (guard->multiple_of > 0) {
            burni_print(why, "a multiple of %lld, ", (long long)guard->multiple_of);
        }
        burni_print(why, "at least %lld", (long long)guard->min);
        if (guard->max > 0) {
            burni_print(why, ", at most %lld", (long long)guard->max);
        }
        return;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Slots for the operands at all, and a revision that the row knows. */
static int fits_at_all(const burni_op *op, const burn_row *row, const burn_call *call,
                       burni_printer *why)
{
    uint32_t slots_out = burni_slots_out(op, call->n_out);
    uint32_t slots_in = row->n_slots > slots_out ? row->n_slots - slots_out : 0;
    if (row->n_slots < slots_out || (slots_in == 0 && call->n_in > 0) ||
        (!op->variadic && slots_in < call->n_in)) {
        if (why != NULL) {
            burni_print(why, "it has %u slots, the call %u operands", row->n_slots,
                        call->n_in + call->n_out);
        }
        return 0;
    }
    if (op->def.revision < row->revision_min || op->def.revision > row->revision_max) {
        if (why != NULL) {
            burni_print(why, "it is for revisions %u to %u of the op, this is %u",
                        row->revision_min, row->revision_max, op->def.revision);
        }
        return 0;
    }
    return 1;
}

int burni_match_row(const burni_op *op, const burn_row *row, const burn_call *call,
                    uint32_t *copy_mask, burni_printer *why)
{
    *copy_mask = 0;
    if (!fits_at_all(op, row, call, why)) {
        return 0;
    }
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        int fit = match_slot(op, row, call, i);
        if (fit > 0 && i < 32) {
            *copy_mask |= 1u << i;
        } else if (fit != 0) {
            if (why != NULL) {
                say_why_not(why, op, burni_row_slot(op, row, i, call->n_in, call->n_out), call,
                            i);
            }
            return 0;
        }
    }
    if (!burni_guards_hold(row, call)) {
        if (why != NULL) {
            say_guard(why, op, row, call);
        }
        return 0;
    }
    return 1;
}
