/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * row_notes.h - what this process has seen of a row: for reports, nothing is decided by it.
 *
 * Counts launches within guards (check_bounds.h), and keeps what a row's check said when it was
 * switched off altogether (BURN_E_STATE, see burn/row.h). Rows live as long as the process, and so
 * do notes. Tables have a fixed size: what finds no place is not noted. [any] throughout. To note
 * one more thing: a field of the entry, and a pair of functions.
 */
#ifndef BURN_CORE_EXEC_ROW_NOTES_H
#define BURN_CORE_EXEC_ROW_NOTES_H

#include <burn/row.h>

/* The row was launched within guards; and how often that was. */
void burni_row_count(const burn_row *row);
uint64_t burni_row_counted(const burn_row *row);

/* The row's check said that no call can go to it. The first text stays. */
void burni_row_note_off(const burn_row *row, const char *why);
/* That text; NULL: it said no such thing. */
const char *burni_row_off(const burn_row *row);

#endif /* BURN_CORE_EXEC_ROW_NOTES_H */
