/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * execute.h - a program while it runs: what its threads share.
 *
 * Owned by run_program (execute.c), used by the way that keeps stretches of steps and runs them
 * again (stretch.c). A value belongs to the thread that made it; `lock` is for progress, failures
 * and the arena. To note more about values: a field here, kept by execute_step.
 */
#ifndef BURN_TESTS_PROGRAMS_EXECUTE_H
#define BURN_TESTS_PROGRAMS_EXECUTE_H

#include "program.h"

#include <pthread.h>

#define NOTHING 1 /* the code of a gradient that is not there */

typedef struct context {
    run *r;
    const program *p;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int32_t progress[MAX_THREADS]; /* the last step that was called */
    burn_tensor *tensors[MAX_VALUES];
    uint8_t kept[MAX_VALUES];
    uint8_t alive[MAX_VALUES];   /* of its thread, like `depth` */
    int8_t depth[MAX_VALUES];    /* the scope that holds it; -1: kept */
    int8_t scopes[MAX_THREADS];  /* open ones */
    uint32_t kept_stretches;     /* under the lock */
    uint32_t refused_stretches;
    burn_var *vars[MAX_VARS];
    /* Of a checking run: what each value and variable is. */
    int32_t codes[MAX_VALUES];
    conf_value cache[MAX_VALUES];
    int32_t var_codes[MAX_VARS];
    conf_value var_cache[MAX_VARS];
    uint8_t passed[MAX_STEPS]; /* backward passes that gave gradients */
} context;

/* The first failure counts. */
void execute_fail(context *c, int32_t at, const char *text);
/* Looks at a tensor (NULL: NOTHING); the code. */
int32_t execute_read(context *c, const burn_tensor *t, seen *out);
/* 1 when both saw the same; else `text` says what differs. */
int execute_same(const seen *a, const seen *b, char *text, size_t size);
/* Does a step and notes what it made and gave up. */
void execute_step(context *c, int32_t at);

/* ---- judge.c --------------------------------------------------------------------------------- */

/* Compares the gradients of a pass of a checked run; what differs fails the run. */
void judge_gradients(context *c, int32_t at);

/* ---- stretch.c ------------------------------------------------------------------------------ */

/* One behind the last step of the stretch that begins with step `at` of its thread; `at`: none. */
int32_t stretch_end(const context *c, int32_t at);
/* Does those steps, keeps them, and does them again from what was kept. */
void stretch_run(context *c, int32_t from, int32_t end);

#endif /* BURN_TESTS_PROGRAMS_EXECUTE_H */
