/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * check.h - BURN_CHECK: looks at the results of calls and says which one is wrong.
 *
 * `nan`: a float output is not finite though all inputs were. `compare`: an output is not what the
 * definition's eval says. `bounds`: the kernel wrote elsewhere (check_bounds.h). Each fails the
 * outputs of that call, as a failing kernel would, so only what depends on them fails. For values a
 * call carries a note of its shapes to where it runs, at once, as a record or in a group, and is
 * looked at there; that is waited for: a mode for looking, not for speed. Threads that do not check
 * pay nothing. To add a check: a bit in tensor.h, a name in check.c, a step in check_value.c. [any]
 */
#ifndef BURN_CORE_EXEC_CHECK_H
#define BURN_CORE_EXEC_CHECK_H

#include "exec/emit_private.h"
#include "exec/group.h"

#define BURNI_CHECKS ((uint32_t)(BURNI_WATCH_NAN | BURNI_WATCH_COMPARE))

static inline int burni_checks(const burni_thread *thread)
{
    return (thread->watch & BURNI_CHECKS) != 0;
}

/* Reads the option CHECK of the environment, once. */
int32_t burni_check_start(burn_err *err);
/* What is wrong with BURN_CHECK, if anything. */
int32_t burni_check_option(burn_err *err);
/* "nan", "compare", "bounds", several with commas, or "off"; for this thread and those that start
 * later. */
int32_t burni_check_set(burni_thread *thread, const char *value, burn_err *err);

/* What a launch of this call is to be checked by, with one reference; NULL: nothing is to be
 * checked, or memory is short. Outputs have their handles. */
burni_note *burni_note_of(const burni_emission *e);
/* A kept launch that runs again is checked by `watch` from here on, or not any more. */
void burni_note_renew(burni_launch *launch, uint32_t watch);
void burni_note_hold(burni_note *note);
void burni_note_let_go(burni_note *note);

/* NULL, as nearly always, is fine. */
static inline burni_note *burni_note_ref(burni_note *note)
{
    if (__builtin_expect(note != NULL, 0)) {
        burni_note_hold(note);
    }
    return note;
}

static inline void burni_note_unref(burni_note *note)
{
    if (__builtin_expect(note != NULL, 0)) {
        burni_note_let_go(note);
    }
}

/* Runs a launch that has a note, as burni_launch_run, and fails its outputs when they are wrong. */
int32_t burni_check_run(burni_stream *stream, const burni_launch *launch, burn_operand *operands);
/* A group has run, and its inputs are as they were: fails those outputs that are wrong as the call
 * would that made them so, or where the group's kernel made something else than single calls. */
void burni_check_group(burni_stream *stream, const burni_batch *batch, const burni_group *group);

/* Around a decomposition. NULL: nothing is to be checked. */
typedef struct burni_check burni_check;
burni_check *burni_check_begin(burni_emission *e);
/* After it, with its code: fails the outputs when they are wrong, and gives the check up. */
void burni_check_end(burni_check *check, burni_emission *e, int32_t rc);

/* Calls so far: looked at for NaN, compared with eval, not comparable, wrong, launched within
 * guards, and without where guards were asked for. */
typedef struct burni_check_counts {
    uint64_t looked_at;
    uint64_t compared;
    uint64_t skipped;
    uint64_t wrong;
    uint64_t guarded;
    uint64_t unguarded;
} burni_check_counts;
burni_check_counts burni_check_report(void);
/* Writes them to the log, once. */
void burni_check_finish(void);

#endif /* BURN_CORE_EXEC_CHECK_H */
