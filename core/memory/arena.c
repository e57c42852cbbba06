/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * arena.c - packing of lifetimes. See arena.h.
 *
 * Places are given greedily: items in some order, each at the lowest offset, or in the tightest
 * gap, between those that have a place and live at the same time. "Greedy by size" after
 * Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference" (2020); other
 * orders are tried while the result is above the bound, and the best is kept. To add an order: a
 * comparison and a row in `ways`.
 */
#include "memory/arena.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Above this many items one way is tried only: the work grows with their square. */
#define MANY_ITEMS 400
/* A peak above the bound by less than this part is good enough. */
#define CLOSE 64

typedef struct place {
    uint64_t from;
    uint64_t to;
    uint32_t first;
    uint32_t last;
    uint32_t item;
    uint32_t zero;
} place;

typedef struct ranked {
    uint64_t bytes;
    uint32_t first;
    uint32_t last;
    uint32_t item;
    uint32_t zero;
} ranked;

static uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

/* ---- bound ----------------------------------------------------------------------------------- */

uint64_t burni_arena_bound(const burni_arena_item *items, uint32_t n, uint64_t align)
{
    uint32_t n_steps = 1;
    for (uint32_t i = 0; i < n; i++) {
        n_steps = items[i].last >= n_steps ? items[i].last + 1 : n_steps;
    }
    uint64_t *change = burni_calloc((size_t)n_steps + 1, sizeof(*change));
    if (change == NULL) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        change[items[i].first] += round_up(items[i].bytes, align);
        change[items[i].last + 1] -= round_up(items[i].bytes, align);
    }
    uint64_t now = 0;
    uint64_t most = 0;
    for (uint32_t k = 0; k < n_steps; k++) {
        now += change[k];
        most = now > most ? now : most;
    }
    burni_free(change);
    return most;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Each ends with the number of the item, so that no two are equal. */
static int by_size(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    int order = compare(b->bytes, a->bytes);
    order = order != 0 ? order : compare(b->last - b->first, a->last - a->first);
    return order != 0 ? order : compare(a->item, b->item);
}

static int by_area(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    uint64_t steps_a = (uint64_t)(a->last - a->first) + 1;
    uint64_t steps_b = (uint64_t)(b->last - b->first) + 1;
    int order = compare(b->bytes * steps_b, a->bytes * steps_a);
    return order != 0 ? order : compare(a->item, b->item);
}

static int by_time(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    int order = compare(b->last - b->first, a->last - a->first);
    order = order != 0 ? order : compare(b->bytes, a->bytes);
    return order != 0 ? order : compare(a->item, b->item);
}

static const struct {
    int (*order)(const void *, const void *);
    int tightest; /* the smallest gap that is large enough, not the lowest */
} ways[] = {
    {by_size, 0}, {by_size, 1}, {by_area, 0}, {by_time, 0}, {by_area, 1}, {by_time, 1},
};

/* ---- placing --------------------------------------------------------------------------------- */

/* An offset for the item between the places of those that live at the same time, which are in the
 * order of their offsets. */
static uint64_t find_offset(const place *places, uint32_t n, const ranked *item, int tightest)
{
    uint64_t best = UINT64_MAX;
    uint64_t best_gap = UINT64_MAX;
    uint64_t end = 0; /* of the places seen so far */
    for (uint32_t k = 0; k < n; k++) {
        const place *p = &places[k];
        if (p->first > item->last || p->last < item->first) {
            continue;
        }
        if (p->from > end && p->from - end >= item->bytes && p->from - end < best_gap) {
            if (!tightest) {
                return end;
            }
            best = end;
            best_gap = p->from - end;
        }
        end = p->to > end ? p->to : end;
    }
    return best != UINT64_MAX ? best : end;
}

static void insert(place *places, uint32_t n, const ranked *item, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (places[middle].from <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(places + low + 1, places + low, (n - low) * sizeof(*places));
    places[low].from = offset;
    places[low].to = offset + item->bytes;
    places[low].first = item->first;
    places[low].last = item->last;
    places[low].item = item->item;
}

/* One way; the places hold the result. */
static uint64_t place_all(const ranked *order, uint32_t n, int tightest, place *places)
{
    uint64_t peak = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint64_t offset = find_offset(places, k, &order[k], tightest);
        insert(places, k, &order[k], offset);
        peak = offset + order[k].bytes > peak ? offset + order[k].bytes : peak;
    }
    return peak;
}

int burni_arena_pack(burni_arena_item *items, uint32_t n, uint64_t align, burni_arena_size *out)
{
    ranked *order = burni_alloc(((size_t)n + 1) * sizeof(*order));
    place *places = burni_alloc(((size_t)n + 1) * sizeof(*places));
    uint64_t least = burni_arena_bound(items, n, align);
    uint64_t bound = burni_arena_bound(items, n, 1);
    uint64_t peak = UINT64_MAX;
    if (order == NULL || places == NULL || least == UINT64_MAX || bound == UINT64_MAX) {
        burni_free(order);
        burni_free(places);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        memset(&order[i], 0, sizeof(order[i]));
        order[i].bytes = round_up(items[i].bytes, align);
        order[i].first = items[i].first;
        order[i].last = items[i].last;
        order[i].item = i;
    }
    uint32_t n_ways = n > MANY_ITEMS ? 1 : (uint32_t)(sizeof(ways) / sizeof(ways[0]));
    for (uint32_t w = 0; w < n_ways && peak > least + least / CLOSE; w++) {
        qsort(order, n, sizeof(*order), ways[w].order);
        uint64_t found = place_all(order, n, ways[w].tightest, places);
        if (found < peak) {
            peak = found;
            for (uint32_t k = 0; k < n; k++) {
                items[places[k].item].offset = places[k].from;
            }
        }
    }
    burni_free(order);
    burni_free(places);
    out->peak = peak;
    out->bound = bound;
    return 1;
}
