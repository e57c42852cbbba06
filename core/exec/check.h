/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.h - BURN_CHECK: looks at the results of each call and says which one is wrong.
 *
 * `nan`: a float output is not finite though all inputs were. `compare`: an output is not what the
 * definition's eval says. Either fails the outputs of that call, as a failing kernel would, so
 * only what depends on them fails. Results are waited for at each call: a mode for looking, not for
 * speed. Threads that do not check pay nothing. To add a check: a bit in tensor.h, a name in
 * check.c, a step in burni_check_end. [any]
 */
#ifndef BURN_CORE_EXEC_CHECK_H
#define BURN_CORE_EXEC_CHECK_H

#include "exec/emit_private.h"

#define BURNI_CHECKS ((uint32_t)(BURNI_WATCH_NAN | BURNI_WATCH_COMPARE))

/* What this call is compared with: its inputs, when they are needed. */
typedef struct burni_check burni_check;

static inline int burni_checks(const burni_thread *thread)
{
    return (thread->watch & BURNI_CHECKS) != 0;
}

/* Reads the option CHECK of the environment, once. */
int32_t burni_check_start(burn_err *err);
/* What is wrong with BURN_CHECK, if anything. */
int32_t burni_check_option(burn_err *err);
/* "nan", "compare", both with a comma, "" or "off"; for this thread and those that start later. */
int32_t burni_check_set(burni_thread *thread, const char *value, burn_err *err);

/* Before the call; NULL when nothing is to be checked, or memory is short. */
burni_check *burni_check_begin(burni_emission *e);
/* After it, with its code: fails the outputs when they are wrong, and gives the check up. */
void burni_check_end(burni_check *check, burni_emission *e, int32_t rc);

/* Calls so far: looked at for NaN, compared with eval, not comparable, wrong. */
typedef struct burni_check_counts {
    uint64_t looked_at;
    uint64_t compared;
    uint64_t skipped;
    uint64_t wrong;
} burni_check_counts;
burni_check_counts burni_check_report(void);
/* Writes them to the log, once. */
void burni_check_finish(void);

#endif /* BURN_CORE_EXEC_CHECK_H */
