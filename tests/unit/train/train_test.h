/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * train_test.h - what the tests of libburn-train share: cmocka's headers in their order, and
 * allocation failures on demand.
 *
 * The tests link the library's objects with --wrap for malloc, calloc and realloc, so that
 * `fail_allocation(n)` makes the n-th one from now answer NULL (1 = the next, 0 = none). Not for
 * code that runs threads while a failure is armed.
 */
#ifndef BURN_TESTS_UNIT_TRAIN_TRAIN_TEST_H
#define BURN_TESTS_UNIT_TRAIN_TRAIN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void fail_allocation(int64_t n);
/* 1 when the failure that was armed has happened. */
int allocation_failed(void);
/* The largest request since the last call of fail_allocation, in bytes. */
size_t largest_allocation(void);

#endif /* BURN_TESTS_UNIT_TRAIN_TRAIN_TEST_H */
