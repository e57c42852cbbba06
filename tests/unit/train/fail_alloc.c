/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fail_alloc.c - allocation failures on demand, by the linker's --wrap. The counter is only touched
 * by the thread that armed it; other threads always get memory.
 */
#include "train_test.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static _Thread_local int64_t countdown;
static _Thread_local int failed;
static _Thread_local size_t largest;

void fail_allocation(int64_t n)
{
    countdown = n;
    failed = 0;
    largest = 0;
}

int allocation_failed(void)
{
    return failed;
}

size_t largest_allocation(void)
{
    return largest;
}

static int fails_now(size_t bytes)
{
    largest = bytes > largest ? bytes : largest;
    if (countdown == 0) {
        return 0;
    }
    countdown--;
    failed |= countdown == 0;
    return countdown == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails_now(bytes) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails_now(count * bytes) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails_now(bytes) ? NULL : __real_realloc(memory, bytes);
}
