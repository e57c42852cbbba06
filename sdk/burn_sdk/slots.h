/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * slots.h - initialisers for tables of slots and rows, so that a row reads as one line.
 *
 * Owns no code, only shapes of constants. A slot names a set of dtypes (BURN_SET_*, BURN_BIT) and a
 * set of layouts (BURN_LAYOUT_*); every rank is taken unless the row says otherwise. What these do
 * not cover is written with plain initialisers, field by field. To add one: an initialiser that
 * fills every field, in the order of <burn/row.h>.
 */
#ifndef BURN_SDK_SLOTS_H
#define BURN_SDK_SLOTS_H

#include <burn/dtype.h>
#include <burn/op_list.h>
#include <burn/row.h>

#define BURN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* clang-format off */

/* All fields: same is 1 + the index of the operand whose dtype this one shares, 0 = free. */
#define BURN_SLOT_FULL(set, layouts, same, immediate, absent)                                      \
    { {(set), 0, 0, 0}, (layouts), 0, BURN_MAX_RANK, 0, (same), (immediate), (absent),             \
      {0, 0, 0, 0, 0, 0} }

/* A tensor. */
#define BURN_SLOT(set, layouts) BURN_SLOT_FULL(set, layouts, 0, 0, 0)
/* A tensor with the dtype of operand `operand`. */
#define BURN_SLOT_LIKE(set, layouts, operand) BURN_SLOT_FULL(set, layouts, (operand) + 1, 0, 0)
/* A tensor or an immediate. */
#define BURN_SLOT_OR_NUMBER(set, layouts) BURN_SLOT_FULL(set, layouts, 0, 1, 0)
#define BURN_SLOT_OR_NUMBER_LIKE(set, layouts, operand)                                            \
    BURN_SLOT_FULL(set, layouts, (operand) + 1, 1, 0)
/* A tensor that may be left out. */
#define BURN_SLOT_OR_ABSENT(set, layouts) BURN_SLOT_FULL(set, layouts, 0, 0, 1)

/* A row for revision 1 of an op, without guards, check or prepare. `slots` is an array. */
#define BURN_ROW(op, name, flags, slots, launch)                                                   \
    { (uint32_t)sizeof(burn_row), (flags), (op), 1, 1, 0, (uint16_t)BURN_COUNT(slots),             \
      (uint32_t)sizeof(burn_slot), 0, (slots), (name), 1, 0, NULL, 0, 0, 0, NULL, NULL, NULL,      \
      NULL, (launch) }

/* The rows of one backend. `rows` is an array. */
#define BURN_ROW_SET(backend, rows)                                                                \
    { (uint32_t)sizeof(burn_row_set), 0, (backend), (rows), (uint32_t)BURN_COUNT(rows),            \
      (uint32_t)sizeof(burn_row) }

/* clang-format on */

#endif /* BURN_SDK_SLOTS_H */
