/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * walk.c - orders in which operands lie. See walk.h.
 *
 * What is asked here are facts of shapes and strides; what a kernel makes of them is its own
 * business, and it may still refuse sizes that come later. Pure; any thread.
 */
#include "exec/walk.h"

#include "ops/rules.h"

#include <burn/op_attrs.h>

/* Rows that are longer are walked several times, and a turned operand would be turned each time. */
enum { LONGEST_TURNED_ROW = 4096 };
/* Fewer columns are read with strides when they are reduced alone, so they are added in another
 * order. */
enum { LEAST_COLUMNS = 8 };
/* What gathers columns must stay near while whole rows go by. */
enum { LONGEST_CROSSED_ROW = 1024 };

/* ---- turned operands ------------------------------------------------------------------------- */

/* The first axis with neighbours in memory, or the rank. */
static uint32_t dense_axis(const burn_operand *o)
{
    uint32_t axis = 0;
    while (axis < o->rank && (o->strides[axis] != 1 || o->dims[axis] <= 1)) {
        axis++;
    }
    return axis;
}

burni_turn burni_turn_of(const burn_operand *o)
{
    burni_turn turn = {0, 0};
    uint32_t axis = dense_axis(o);
    uint32_t last = o->rank;
    while (last > 0 && o->dims[last - 1] == 1) {
        last--;
    }
    if (o->layout != BURN_LAYOUT_STRIDED || axis == o->rank || o->strides[last - 1] == 0 ||
        o->strides[last - 1] == 1) {
        return turn;
    }
    turn.dim = o->dims[axis];
    turn.inner = 1;
    for (uint32_t i = axis + 1; i < o->rank; i++) {
        turn.inner *= o->dims[i];
    }
    for (uint32_t i = axis; i-- > 0 && o->strides[i] == turn.dim;) {
        turn.dim *= o->dims[i];
    }
    return turn;
}

int burni_turns_agree(const burni_turn *a, const burni_turn *b, burni_turn *out)
{
    *out = a->inner > 0 ? *a : *b;
    return a->inner == 0 || b->inner == 0 || (a->inner == b->inner && a->dim == b->dim);
}

int burni_turn_has_rows(const burni_turn *turn, int64_t length)
{
    return turn->inner == 0 || length == 0 ||
           (turn->inner % length == 0 && length <= LONGEST_TURNED_ROW);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static int row_says(const burni_launch *launch, uint32_t flag)
{
    const burni_resolved *r = launch->resolved;
    return r->row != NULL && r->copy_mask == 0 && (r->row->flags & flag) != 0;
}

int burni_row_has_step(const burni_launch *launch)
{
    return row_says(launch, BURN_ROW_LINES);
}

/* A loss goes over all dims, where it gives one number of operands that are dense. */
static int loss_reduces(const burni_launch *launch)
{
    int reduces = burni_row_has_step(launch) &&
                  burni_loss_reduces(&launch->op->def, launch->attrs);
    for (uint32_t i = 0; i < launch->n_in; i++) {
        reduces &= launch->operands[i].layout == BURN_LAYOUT_CONTIGUOUS;
    }
    return reduces;
}

/* The dims that it goes over, as bits; 0 where it is no reduction of a dense operand. */
static uint32_t reduced_dims(const burni_launch *launch)
{
    const burn_attrs_axes *a = launch->attrs;
    const burn_operand *x = &launch->operands[0];
    if (burni_is_loss(&launch->op->def)) {
        return loss_reduces(launch) ? (1u << x->rank) - 1u : 0;
    }
    if (launch->attrs_size < sizeof(*a) || launch->n_in != 1 || x->rank == 0 ||
        x->layout != BURN_LAYOUT_CONTIGUOUS) {
        return 0;
    }
    uint32_t seen = a->n_axes == 0 ? (1u << x->rank) - 1u : 0;
    for (uint32_t k = 0; k < a->n_axes; k++) {
        int64_t axis = a->axes[k] < 0 ? a->axes[k] + x->rank : a->axes[k];
        seen |= axis >= 0 && axis < x->rank ? 1u << axis : 0;
    }
    return seen;
}

int burni_reduces_rows(const burni_launch *launch)
{
    uint32_t seen = reduced_dims(launch);
    uint32_t n = (uint32_t)__builtin_popcount(seen);
    return seen != 0 && seen == ((1u << n) - 1u) << (launch->operands[0].rank - n);
}

int burni_reduces_columns(const burni_launch *launch)
{
    uint32_t seen = reduced_dims(launch);
    const burn_operand *z = &launch->operands[launch->n_in];
    return seen != 0 && (seen & (seen + 1)) == 0 && burni_operand_numel(z) >= LEAST_COLUMNS &&
           row_says(launch, BURN_ROW_COLUMNS);
}

int burni_rows_meet_columns(int64_t length)
{
    return length <= LONGEST_CROSSED_ROW;
}
