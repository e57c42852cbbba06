/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_shuffle.c - the order of an epoch: known answers of the generator (those that its authors
 * publish), orders that must never change, and what any permutation must satisfy.
 */
#include "train_test.h"

#include "train/data/shuffle.h"

#include <stdlib.h>
#include <string.h>

static void philox__gives_the_published_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t expected[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t out[4];
        burni_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].expected, sizeof(out));
    }
}

static void order__is_a_permutation(void **state)
{
    (void)state;
    enum { N = 1000 };
    static const int64_t sizes[] = {0, 1, 2, 3, 17, N};
    int64_t order[N];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        unsigned char seen[N] = {0};
        burni_shuffle(order, sizes[s], 7, 3);
        for (int64_t i = 0; i < sizes[s]; i++) {
            assert_in_range(order[i], 0, sizes[s] - 1);
            assert_int_equal(seen[order[i]], 0);
            seen[order[i]] = 1;
        }
    }
}

static void order__follows_seed_and_epoch(void **state)
{
    (void)state;
    enum { N = 100 };
    int64_t a[N];
    int64_t b[N];
    burni_shuffle(a, N, 1, 0);
    burni_shuffle(b, N, 1, 0);
    assert_memory_equal(a, b, sizeof(a));
    burni_shuffle(b, N, 1, 1);
    assert_memory_not_equal(a, b, sizeof(a));
    burni_shuffle(b, N, 2, 0);
    assert_memory_not_equal(a, b, sizeof(a));
    burni_shuffle(b, N, UINT64_C(1) << 32 | 1, 0);
    assert_memory_not_equal(a, b, sizeof(a));
    burni_shuffle(b, N, 1, UINT64_C(1) << 32);
    assert_memory_not_equal(a, b, sizeof(a));
}

/* Computed by tests/unit/train/shuffle_golden.py. A change here breaks every run that resumes. */
static void order__never_changes(void **state)
{
    (void)state;
    static const int64_t seed_42_epoch_5[] = {2, 3, 6, 0, 5, 1, 8, 10, 11, 7, 9, 4};
    int64_t order[12];
    burni_shuffle(order, 12, 42, 5);
    assert_memory_equal(order, seed_42_epoch_5, sizeof(order));
}

/* Each of the 24 orders of 4 items comes about equally often (chi-square, 23 degrees: 99.9 %). */
static void orders__are_equally_likely(void **state)
{
    (void)state;
    enum { RUNS = 24000 };
    int counts[256] = {0};
    for (uint64_t epoch = 0; epoch < RUNS; epoch++) {
        int64_t order[4];
        burni_shuffle(order, 4, 123, epoch);
        counts[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]]++;
    }
    double chi = 0.0;
    int kinds = 0;
    for (int i = 0; i < 256; i++) {
        if (counts[i] > 0) {
            kinds++;
            chi += (counts[i] - 1000.0) * (counts[i] - 1000.0) / 1000.0;
        }
    }
    assert_int_equal(kinds, 24);
    assert_true(chi < 49.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox__gives_the_published_answers),
        cmocka_unit_test(order__is_a_permutation),
        cmocka_unit_test(order__follows_seed_and_epoch),
        cmocka_unit_test(order__never_changes),
        cmocka_unit_test(orders__are_equally_likely),
    };
    return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
