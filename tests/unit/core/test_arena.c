/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_arena.c - packing of lifetimes: places never overlap in a step, alignment, the bound, the
 * same answer twice, and how close it comes to the best there is.
 *
 * No device. The best of a few items is found by trying all orders: in the order of the offsets of
 * a best packing, giving each item the lowest offset that is free gives a packing that is no worse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "memory/arena.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { MOST = 300 };

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint64_t up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) / align * align;
}

static int together(const burni_arena_item *a, const burni_arena_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static void check_places(const burni_arena_item *items, uint32_t n, uint64_t align, uint64_t peak)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(items[i].offset % align, 0);
        assert_true(items[i].offset + items[i].bytes <= peak);
        for (uint32_t k = 0; k < i; k++) {
            const burni_arena_item *a = &items[i];
            const burni_arena_item *b = &items[k];
            int apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            assert_true(apart || !together(a, b));
        }
    }
}

/* The bound, by looking at each step. */
static uint64_t most_alive(const burni_arena_item *items, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t step = 0; step < 1000; step++) {
        uint64_t now = 0;
        for (uint32_t i = 0; i < n; i++) {
            now += items[i].first <= step && step <= items[i].last ? items[i].bytes : 0;
        }
        most = now > most ? now : most;
    }
    return most;
}

static void make_items(burni_arena_item *items, uint32_t n, uint32_t steps, uint64_t seed)
{
    uint64_t state = seed * 77 + 5;
    for (uint32_t i = 0; i < n; i++) {
        items[i].bytes = 1 + next_random(&state) % 5000;
        items[i].first = next_random(&state) % steps;
        items[i].last = items[i].first + next_random(&state) % (steps - items[i].first);
        items[i].offset = UINT64_MAX;
    }
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void arena__a_chain_needs_two_places(void **state)
{
    (void)state;
    burni_arena_item items[8];
    memset(items, 0, sizeof(items));
    for (uint32_t i = 0; i < COUNT(items); i++) {
        items[i].bytes = 1024;
        items[i].first = i;
        items[i].last = i + 1;
    }
    burni_arena_size size;
    assert_int_equal(burni_arena_pack(items, COUNT(items), 64, &size), 1);
    assert_int_equal(size.peak, 2048);
    assert_int_equal(size.bound, 2048);
    check_places(items, COUNT(items), 64, size.peak);
}

static void arena__a_gap_is_used(void **state)
{
    (void)state;
    /* Two long ones, and small ones one after another. */
    burni_arena_item items[] = {
        {.bytes = 4096, .first = 0, .last = 9}, {.bytes = 4096, .first = 3, .last = 9},
        {.bytes = 2048, .first = 0, .last = 2}, {.bytes = 2048, .first = 1, .last = 2},
        {.bytes = 100, .first = 4, .last = 6},
    };
    burni_arena_size size;
    assert_int_equal(burni_arena_pack(items, COUNT(items), 64, &size), 1);
    assert_int_equal(size.bound, 8292);
    assert_int_equal(size.peak, 8192 + 128);
    check_places(items, COUNT(items), 64, size.peak);
}

static void arena__nothing_and_empty_values_need_nothing(void **state)
{
    (void)state;
    burni_arena_item empty = {.bytes = 0, .offset = 9, .first = 2, .last = 3};
    burni_arena_size size = {1, 1};
    assert_int_equal(burni_arena_pack(NULL, 0, 64, &size), 1);
    assert_int_equal(size.peak, 0);
    assert_int_equal(size.bound, 0);
    assert_int_equal(burni_arena_pack(&empty, 1, 64, &size), 1);
    assert_int_equal(size.peak, 0);
    assert_int_equal(empty.offset, 0);
}

/* ---- random ---------------------------------------------------------------------------------- */

static void arena__places_never_overlap(void **state)
{
    (void)state;
    static burni_arena_item items[MOST];
    static burni_arena_item again[MOST];
    static const uint64_t aligns[] = {1, 64, 256};
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t n = 1 + round * 5 % MOST;
        uint64_t align = aligns[round % COUNT(aligns)];
        make_items(items, n, 3 + round, round);
        make_items(again, n, 3 + round, round);
        burni_arena_size size;
        burni_arena_size second;
        assert_int_equal(burni_arena_pack(items, n, align, &size), 1);
        check_places(items, n, align, size.peak);
        assert_int_equal(size.bound, most_alive(items, n));
        assert_int_equal(burni_arena_bound(items, n, 1), size.bound);
        assert_true(size.peak >= burni_arena_bound(items, n, align));
        assert_int_equal(burni_arena_pack(again, n, align, &second), 1);
        assert_int_equal(size.peak, second.peak);
        assert_memory_equal(items, again, n * sizeof(items[0]));
    }
}

/* The best, trying all orders from place `from` on. */
static uint64_t best_of(burni_arena_item *items, uint32_t from, uint32_t n, uint64_t best)
{
    if (from == n) {
        uint64_t peak = 0;
        for (uint32_t i = 0; i < n; i++) {
            peak = items[i].offset + items[i].bytes > peak ? items[i].offset + items[i].bytes
                                                           : peak;
        }
        return peak < best ? peak : best;
    }
    for (uint32_t k = from; k < n; k++) {
        burni_arena_item kept = items[from];
        items[from] = items[k];
        items[k] = kept;
        uint64_t offset = 0;
        for (uint32_t turn = 0; turn < from; turn++) {
            for (uint32_t i = 0; i < from; i++) {
                int hit = together(&items[i], &items[from]) &&
                          offset < items[i].offset + items[i].bytes &&
                          items[i].offset < offset + items[from].bytes;
                offset = hit ? items[i].offset + items[i].bytes : offset;
            }
        }
        items[from].offset = offset;
        if (offset + items[from].bytes < best) {
            best = best_of(items, from + 1, n, best);
        }
        kept = items[from];
        items[from] = items[k];
        items[k] = kept;
    }
    return best;
}

static void arena__comes_close_to_the_best(void **state)
{
    (void)state;
    uint64_t sum = 0;
    uint64_t sum_best = 0;
    for (uint32_t round = 0; round < 200; round++) {
        burni_arena_item items[7];
        burni_arena_item tried[7];
        make_items(items, COUNT(items), 6, 1000 + round);
        memcpy(tried, items, sizeof(items));
        burni_arena_size size;
        assert_int_equal(burni_arena_pack(items, COUNT(items), 1, &size), 1);
        uint64_t best = best_of(tried, 0, COUNT(tried), UINT64_MAX);
        assert_true(size.peak >= best);
        assert_true(size.peak <= best + best / 4);
        sum += size.peak;
        sum_best += best;
    }
    assert_true(sum <= sum_best + sum_best / 50);
}

/* What a step of training looks like: values of the forward pass live until their gradient. */
static void arena__a_training_step_meets_its_bound(void **state)
{
    (void)state;
    burni_arena_item items[MOST];
    uint64_t random = 3;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 40; i++) {
        uint64_t bytes = up(1 + next_random(&random) % 100000, 64);
        items[n++] = (burni_arena_item){.bytes = bytes, .first = i, .last = 80 - i};
        items[n++] = (burni_arena_item){.bytes = bytes, .first = 80 - i, .last = 81 - i};
        items[n++] = (burni_arena_item){.bytes = bytes / 2, .first = i, .last = i};
    }
    burni_arena_size size;
    assert_int_equal(burni_arena_pack(items, n, 64, &size), 1);
    check_places(items, n, 64, size.peak);
    assert_true(size.peak <= size.bound + size.bound / 10);
}

static void arena__without_host_memory_nothing_changes(void **state)
{
    (void)state;
    for (int64_t fail = 1; fail <= 4; fail++) {
        burni_arena_item item = {.bytes = 100, .offset = 7, .first = 0, .last = 0};
        burni_arena_size size = {5, 5};
        burni_alloc_fail_after(fail);
        assert_int_equal(burni_arena_pack(&item, 1, 64, &size), 0);
        burni_alloc_fail_after(0);
        assert_int_equal(item.offset, 7);
        assert_int_equal(size.peak, 5);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena__a_chain_needs_two_places),
        cmocka_unit_test(arena__a_gap_is_used),
        cmocka_unit_test(arena__nothing_and_empty_values_need_nothing),
        cmocka_unit_test(arena__places_never_overlap),
        cmocka_unit_test(arena__comes_close_to_the_best),
        cmocka_unit_test(arena__a_training_step_meets_its_bound),
        cmocka_unit_test(arena__without_host_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
