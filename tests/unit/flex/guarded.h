/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * guarded.h - memory for kernels' operands whose end is the end of what may be touched: behind it
 * lies a page that nobody may read or write, so that one element too far is a fault.
 *
 * Owns the two functions below, for one thread. What lies before the start is not guarded.
 */
#ifndef BURN_TESTS_UNIT_FLEX_GUARDED_H
#define BURN_TESTS_UNIT_FLEX_GUARDED_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded_head {
    unsigned char *base;
    size_t length;
} guarded_head;

/* `bytes` bytes of zero, aligned as `bytes` is; NULL without memory. */
static inline void *guarded_new(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t length = (bytes + sizeof(guarded_head) + page - 1) / page * page;
    unsigned char *base = mmap(NULL, length + page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(base + length, page, PROT_NONE) != 0) {
        (void)munmap(base, length + page);
        return NULL;
    }
    guarded_head head = {base, length + page};
    unsigned char *start = base + length - bytes;
    memcpy(start - sizeof(head), &head, sizeof(head));
    return start;
}

static inline void guarded_free(void *start)
{
    guarded_head head;
    memcpy(&head, (unsigned char *)start - sizeof(head), sizeof(head));
    (void)munmap(head.base, head.length);
}

#endif /* BURN_TESTS_UNIT_FLEX_GUARDED_H */
