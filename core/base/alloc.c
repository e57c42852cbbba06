/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * alloc.c - host memory with failure injection. The counter is a relaxed atomic and is only touched
 * while a test has injection switched on.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int injecting;
static _Atomic int64_t allocations;
static _Atomic int64_t fail_at;

void burni_alloc_fail_after(int64_t n)
{
    atomic_store(&allocations, 0);
    atomic_store(&fail_at, n);
    atomic_store(&injecting, n != 0);
}

int64_t burni_alloc_count(void)
{
    return atomic_load(&allocations);
}

static int must_fail(void)
{
    if (!atomic_load_explicit(&injecting, memory_order_relaxed)) {
        return 0;
    }
    return atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&fail_at);
}

void *burni_alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes > 0 ? bytes : 1);
}

void *burni_calloc(size_t count, size_t bytes)
{
    return must_fail() ? NULL : calloc(count > 0 ? count : 1, bytes > 0 ? bytes : 1);
}

void *burni_realloc(void *memory, size_t bytes)
{
    return must_fail() ? NULL : realloc(memory, bytes > 0 ? bytes : 1);
}

char *burni_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = burni_alloc(size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

void burni_free(void *memory)
{
    free(memory);
}
