/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stream.h - stores that go past the caches, for results that no cache will hold.
 *
 * An ordinary store first reads the line it writes to; for `a + b` in main memory that is a third
 * more traffic. A streaming store does not, but what it wrote is in no cache afterwards: it pays
 * for results that would be pushed out anyway, and never for a result that overwrites an operand.
 * Whoever streamed calls flex_stream_end before others may look. [any]
 */
#ifndef BURN_PLUGINS_FLEX_STREAM_H
#define BURN_PLUGINS_FLEX_STREAM_H

#include <stdint.h>

/* 1 when an op that touches so many bytes in all (operands and results) should stream. */
int flex_stream_pays(uint64_t bytes);

/*
 * Tasks that stream are longer than others, since at the start of each memory idles: about as many
 * elements, `longest` items, as long as each thread gets a few. A multiple of `grain`.
 */
enum { FLEX_STREAM_ELEMENTS = 1 << 19 };

uint64_t flex_stream_grain(uint64_t n, uint64_t grain, uint64_t longest);

/* memcpy with streaming stores; full lines of `out` are best. */
void flex_stream(void *out, const void *in, uint64_t bytes);

/* Asks memory for what will be read soon. Addresses that are not there do no harm. */
static inline void flex_fetch(const void *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 64) {
        __builtin_prefetch((const void *)((uintptr_t)from + at));
    }
}

/* Orders this thread's streaming stores before its later ordinary ones. */
void flex_stream_end(void);

/* Finds out how large the caches are. [init] */
void flex_stream_init(void);

#endif /* BURN_PLUGINS_FLEX_STREAM_H */
