/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * arena.h - places for values in one piece of memory, by when they are needed.
 *
 * Only numbers: nothing is allocated for the values here. An item lives from its first step to its
 * last, both included; two items that live in one step get places that do not overlap. The bound
 * is what no packing can go below: the most bytes that live in one step. The same items get the
 * same places each time. What the steps are and who owns the memory is the caller's (exec/).
 */
#ifndef BURN_CORE_MEMORY_ARENA_H
#define BURN_CORE_MEMORY_ARENA_H

#include <stdint.h>

typedef struct burni_arena_item {
    uint64_t bytes;  /* as needed; places are rounded up to the alignment */
    uint64_t offset; /* the answer */
    uint32_t first;
    uint32_t last; /* not before `first` */
} burni_arena_item;

typedef struct burni_arena_size {
    uint64_t peak;  /* bytes that hold all places */
    uint64_t bound; /* the most bytes that live at once, unrounded */
} burni_arena_size;

/* Fills the offsets. `align` is a power of two. 0, and nothing changed, when host memory is short.
 * [any] */
int burni_arena_pack(burni_arena_item *items, uint32_t n, uint64_t align, burni_arena_size *out);

/* The most bytes of items, each rounded up to `align`, that live in one step. UINT64_MAX when host
 * memory is short. [any] */
uint64_t burni_arena_bound(const burni_arena_item *items, uint32_t n, uint64_t align);

#endif /* BURN_CORE_MEMORY_ARENA_H */
