/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tuner.h - lets rows that serve the same call race, when an environment is named.
 *
 * Asked once per answer of a resolver, after the row of the highest priority was found. Rows take
 * part that have BURN_ROW_TUNABLE, fit the call with the same copies, and whose check and prepare
 * accept. They run on scratch memory with the call's real shapes, on a queue of their own, so that
 * nothing of the program is touched. One race at a time in the process. What won is kept in the
 * environment (tune/environment.h) and found there the next time. [any]
 */
#ifndef BURN_CORE_EXEC_TUNER_H
#define BURN_CORE_EXEC_TUNER_H

#include "exec/resolve.h"
#include "exec/rows.h"

/* `r` has a row with BURN_ROW_TUNABLE; it may get another one, and is told what it ran against. */
void burni_tuner_choose(burni_resolved *r, burni_device *device, const burni_rows *rows,
                        const burn_call *call);

/* "tuned: row X, 1.8x of row Y", for explain. */
void burni_tuner_print(const burni_resolved *r, char *out, size_t size);

/* Tells the environment what the device is, unless it knows. */
void burni_tuner_know(burni_device *device);
/* The environment is another one: no answer holds that was found before. */
void burni_tuner_changed(void);

/* The row of that name wins every race that it is in, without measuring; NULL ends. Tests only. */
void burni_tuner_force(const char *row);

#endif /* BURN_CORE_EXEC_TUNER_H */
