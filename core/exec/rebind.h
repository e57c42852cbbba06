/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rebind.h - the storages of a run of a replay: fresh ones, today's inputs, those that are kept.
 *
 * A first run binds a storage to each slot. Once all groups of the plan are known to run, results
 * that never leave a group need none: theirs stay from run to run, and only what a launch sees is
 * bound anew. When a group does not run as one after all, its records use up what was kept, and the
 * next run is as a first one. Owner thread only, under the replay's variables' locks.
 */
#ifndef BURN_CORE_EXEC_REBIND_H
#define BURN_CORE_EXEC_REBIND_H

#include "exec/recording.h"

/* What runs afterwards finds storages, uses and promises as if the records had just been kept. */
int32_t burni_rebind(burn_replay *r, burn_tensor *const *inputs, burn_tensor *const *outputs,
                     burn_err *err);
/* Lets go of what a run has not. */
void burni_unbind(burn_replay *r);
/* Forgets what stays from run to run: before the replay ends. */
void burni_rebind_forget(burn_replay *r);

#endif /* BURN_CORE_EXEC_REBIND_H */
