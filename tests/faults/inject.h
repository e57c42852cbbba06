/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * inject.h - faults of a backend on demand, for any device: its table and its rows are replaced by
 * ones that count and, when told to, fail.
 *
 * One device per process. The plan is changed between steps only; the counters may be moved by any
 * thread. To add an entry that can fail: a row in INJECT_ENTRIES and its function in inject.c.
 */
#ifndef BURN_TESTS_FAULTS_INJECT_H
#define BURN_TESTS_FAULTS_INJECT_H

#include "core_test.h"

#define INJECT_ENTRIES(X)                                                                          \
    X(ALLOC, "alloc")                                                                              \
    X(COPY_IN, "copy_in")                                                                          \
    X(COPY_OUT, "copy_out")                                                                        \
    X(FILL, "fill")                                                                                \
    X(SIGNAL, "signal")                                                                            \
    X(WAIT, "wait")                                                                                \
    X(LAUNCH, "launch")

enum {
#define INJECT_ENUM(name, text) INJECT_##name,
    INJECT_ENTRIES(INJECT_ENUM)
#undef INJECT_ENUM
        N_INJECT
};

/* Puts the counting table in the place of the device's own. Once. */
void inject_into(burn_device *device);
/* From now on the n-th call of an entry (1 = the next) and `more` after it fail with `code`; n = 0
 * ends it. The count starts anew. */
void inject_fail(int entry, int64_t n, int64_t more, int32_t code);
int64_t inject_count(int entry);

/* Puts counting rows in the place of an op's f32 rows, and the ones of the op before it back.
 * Launches of these count as INJECT_LAUNCH. 0: the device has no row for it. */
int inject_rows(burn_device *device, uint64_t op);

/* As inject_rows, with rows that may work in the memory of input 0, up to 4 KiB: mock has no such
 * rows of its own. */
int inject_in_place(burn_device *device, uint64_t op);
/* How many launches of these did since. */
int64_t inject_shared(void);

/* Puts a row before those of an op, which tells what its launches were given: the op's last f32
 * row, with `check` (or NULL) before its own. An op of 0 puts the others back. 0: there is no such
 * row. */
int inject_spy(burn_device *device, uint64_t op, int32_t (*check)(const burn_call *call));
/* How often it was launched since it was put there; mode and tag of the last time. */
int64_t inject_spied(uint32_t *out_math, uint64_t *out_tag);

/* Forgets which rows the calling thread's stream knows, as a new one would. */
void inject_forget_rows(burn_device *device);
/* Blocks of memory are not cut from pages any more: each one asks the backend. */
void inject_no_pages(burn_device *device);
/* The device has no row for burn.fused, so that each call is a launch; 0: it has them again. */
void inject_no_fusion(burn_device *device, int on);

/* Setup of tests that count the allocations of `dev`: the table of above, and no pages. */
int inject_setup(void **state);
#define INJECT_TEST(f) cmocka_unit_test_setup_teardown(f, inject_setup, core_teardown)

#endif /* BURN_TESTS_FAULTS_INJECT_H */
