/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * alloc.h - host memory of the library. All of it goes through here, so that a test can make the
 * n-th allocation fail. Nothing aborts: NULL is an answer that every caller handles. [any]
 */
#ifndef BURN_CORE_BASE_ALLOC_H
#define BURN_CORE_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

void *burni_alloc(size_t bytes);
void *burni_calloc(size_t count, size_t bytes);
void *burni_realloc(void *memory, size_t bytes);
char *burni_strdup(const char *text);
void burni_free(void *memory);

/* The n-th allocation from now fails (1 = the next); 0 switches injection off. Tests only. */
void burni_alloc_fail_after(int64_t n);
/* How many allocations were made since burni_alloc_fail_after. */
int64_t burni_alloc_count(void);

#endif /* BURN_CORE_BASE_ALLOC_H */
