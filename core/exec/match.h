/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * match.h - does a row take a call? One answer for the choice of a kernel and for its explanation.
 *
 * Looks at slots (presence, dtype, rank, layout), revisions and guards; the row's own `check` and
 * `prepare` are asked afterwards (resolve.c). Pure, nothing is kept. To add a condition that rows
 * can state: one more step in match.c that decides and says why. [any]
 */
#ifndef BURN_CORE_EXEC_MATCH_H
#define BURN_CORE_EXEC_MATCH_H

#include "base/printer.h"
#include "ops/registry.h"

#include <burn/call.h>
#include <burn/row.h>

/* 1 when the row takes the call. Bits of *copy_mask: inputs that it takes only when they are made
 * dense. On 0 the first reason is printed to `why` (NULL: nobody asks). */
int burni_match_row(const burni_op *op, const burn_row *row, const burn_call *call,
                    uint32_t *copy_mask, burni_printer *why);

/* How many of a row's slots are those of outputs, in a call with n_out of them: one for each, but
 * one per role where the last output role repeats. */
uint32_t burni_slots_out(const burni_op *op, uint32_t n_out);

/* Slot of operand i; a variadic op's last slot of inputs, and likewise of outputs, serves all
 * further ones. The row must have slots for the outputs and, where there are inputs, at least one
 * more. */
const burn_slot *burni_row_slot(const burni_op *op, const burn_row *row, uint32_t i, uint32_t n_in,
                                uint32_t n_out);

/* Guards of a row, evaluated for this call. */
int burni_guards_hold(const burn_row *row, const burn_call *call);

/* Name of operand i of an op, as its roles have it. */
const char *burni_operand_name(const burni_op *op, uint32_t i, uint32_t n_in);
/* "contiguous", "strided", ... of one layout class; "contiguous|scalar" of a set. */
void burni_print_layouts(burni_printer *p, uint32_t layouts);
/* "f32|f64" of a set of dtypes. */
void burni_print_dtypes(burni_printer *p, const uint64_t dtypes[4]);

#endif /* BURN_CORE_EXEC_MATCH_H */
