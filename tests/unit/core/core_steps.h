/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_steps.h - steps of a program that are run call by call and as groups, and must be the same.
 *
 * A step runs with window 1, then some times over with the window of the command line; bits and
 * errors are compared. On flex, where something is fused, the calls in groups of the last plan are
 * counted; mock has no row for groups. Random values are uploaded, so that nothing that is drawn
 * joins a group. To add a way to run steps (replay, another thread): one beside same_as_eager.
 */
#ifndef BURN_TESTS_UNIT_CORE_CORE_STEPS_H
#define BURN_TESTS_UNIT_CORE_CORE_STEPS_H

#include "core_test.h"

enum { STEP_ROUNDS = 3, STEP_MOST = 1 << 18 };
#define STEP_ANY UINT32_MAX

/* Rounds differ in what the step makes of their number: sizes, scalars. */
typedef burn_tensor *(*step_fn)(int round);

typedef struct outcome {
    float values[STEP_MOST];
    size_t bytes; /* of values */
    char text[256];
    int32_t code;
} outcome;

void run_step(step_fn step, int round, outcome *out);
/* `fused`: calls in groups of the plan of the last round, where flex plans at all; STEP_ANY: not
 * counted. */
void same_as_eager(step_fn step, uint32_t fused);
/* The same numbers for the same dims. */
burn_tensor *random_of(uint32_t rank, const int64_t *dims);

#endif /* BURN_TESTS_UNIT_CORE_CORE_STEPS_H */
