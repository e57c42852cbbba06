/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heap.h - the heap of a whole process on demand: each call of malloc and its like, from whichever
 * library or plugin, is counted and may fail.
 *
 * heap.c has functions of those names, which every library of the process then calls in the place
 * of libc's. Calls of libc and of the dynamic linker themselves never fail: what they do then is
 * not ours. Nothing is linked against sanitizers, which have a heap of their own (heap_is_ours: 0).
 */
#ifndef BURN_TESTS_FAULTS_HEAP_H
#define BURN_TESTS_FAULTS_HEAP_H

#include <stdint.h>

/* 1 when the process calls the functions of heap.c. */
int heap_is_ours(void);
/* From now on the n-th call fails (1 = the next); INT64_MAX: none, they are counted; 0 ends it. */
void heap_fail(int64_t n);
/* Calls since. */
int64_t heap_count(void);
/* Of those since: calls from the object (a library, a plugin) whose path ends so. */
int64_t heap_count_of(const char *object);
/* Blocks that are not freed, of all the process. */
int64_t heap_blocks(void);

#endif /* BURN_TESTS_FAULTS_HEAP_H */
