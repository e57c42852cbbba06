/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heap.c - malloc and its like, for the whole process. See heap.h.
 *
 * They hand out libc's own memory, through the names that glibc keeps for that, so libc's free is
 * right for blocks from before. Who calls is told from the return address: the objects of the
 * process are listed when counting begins, without an allocation. Several threads may allocate.
 */
#include "heap.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OTHER_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OTHER_HEAP 1
#endif
#endif

enum { MAX_OBJECTS = 64 };

/* The addresses from the first to the last byte that an object has loaded. */
typedef struct object {
    uintptr_t first;
    uintptr_t last;
    const char *path;
    int is_system; /* libc, the dynamic linker */
    _Atomic int64_t calls;
} object;

static object objects[MAX_OBJECTS];
static int n_objects;
static atomic_int counting;
static _Atomic int64_t calls;
static _Atomic int64_t fail_at;
static _Atomic int64_t blocks;

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    if (n_objects == MAX_OBJECTS) {
        return 1;
    }
    object *o = &objects[n_objects++];
    o->first = UINTPTR_MAX;
    o->last = 0;
    o->path = info->dlpi_name;
    o->is_system = strstr(o->path, "/libc.so") != NULL || strstr(o->path, "/ld-linux") != NULL;
    atomic_store(&o->calls, 0);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            uintptr_t end = at + info->dlpi_phdr[i].p_memsz;
            o->first = at < o->first ? at : o->first;
            o->last = end > o->last ? end : o->last;
        }
    }
    return 0;
}

void heap_fail(int64_t n)
{
    atomic_store(&counting, 0);
    if (n != 0) {
        n_objects = 0;
        (void)dl_iterate_phdr(note_object, NULL);
        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        atomic_store(&counting, 1);
    }
}

int64_t heap_count(void)
{
    return atomic_load(&calls);
}

int64_t heap_count_of(const char *path)
{
    int64_t n = 0;
    for (int i = 0; i < n_objects; i++) {
        n += ends_with(objects[i].path, path) ? atomic_load(&objects[i].calls) : 0;
    }
    return n;
}

int64_t heap_blocks(void)
{
    return atomic_load(&blocks);
}

#ifdef OTHER_HEAP

int heap_is_ours(void)
{
    return 0;
}

#else

int heap_is_ours(void)
{
    return 1;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

static int must_fail(const void *caller)
{
    if (!atomic_load(&counting)) {
        return 0;
    }
    uintptr_t at = (uintptr_t)caller;
    for (int i = 0; i < n_objects; i++) {
        if (at >= objects[i].first && at < objects[i].last) {
            if (objects[i].is_system) {
                return 0;
            }
            atomic_fetch_add(&objects[i].calls, 1);
            break;
        }
    }
    return atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fail_at);
}

static void *counted(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_add(&blocks, 1);
    } else {
        errno = ENOMEM;
    }
    return memory;
}

void *malloc(size_t bytes)
{
    return counted(must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return counted(must_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    if (must_fail(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    void *moved = __libc_realloc(memory, bytes);
    atomic_fetch_add(&blocks, (moved != NULL) - (memory != NULL && (moved != NULL || bytes == 0)));
    return moved;
}

void *memalign(size_t align, size_t bytes)
{
    return counted(must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes));
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return counted(must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes));
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *memory =
        counted(must_fail(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes));
    if (memory == NULL) {
        return ENOMEM;
    }
    *out = memory;
    return 0;
}

void free(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_sub(&blocks, 1);
        __libc_free(memory);
    }
}

#endif /* OTHER_HEAP */
