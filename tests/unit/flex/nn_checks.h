/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_checks.h - assertions that the tests of the CPU plugin's kernels share.
 *
 * Owns the two plugin instances: with one thread and with two. Every call is made with both, and
 * both must give equal bits. Comparisons treat NaN as equal to NaN.
 */
#ifndef BURN_TESTS_UNIT_FLEX_NN_CHECKS_H
#define BURN_TESTS_UNIT_FLEX_NN_CHECKS_H

#include "nn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

extern const burn_plugin *check_plugins[2];

/* Loads both, with the instruction set that the program's argument names. 0, or what `main` must
 * return: 77 (skipped) where this CPU has not that set. */
int check_load(int argc, char **argv);

/* Runs with one thread, then with two into other outputs; both must have equal bits. */
void check_both(rig_call *c);

void check_close(double got, double want, double tolerance, const char *what, int64_t at);

/* All elements against an array. */
void check_all(const rig_tensor *got, const double *want, double tolerance, const char *what);
void check_table(const rig_tensor *got, const float *want, double tolerance, const char *what);

#endif /* BURN_TESTS_UNIT_FLEX_NN_CHECKS_H */
