/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shuffle.c - the order of an epoch: Fisher-Yates with numbers of Philox4x32-10 (Salmon et al.,
 * "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
 *
 * A number below a bound is the high half of the product of 64 random bits and the bound; its bias
 * is below n / 2^64, which no dataset can show. Changing anything here changes what every resumed
 * run sees: the test's fixed orders guard it.
 */
#include "train/data/shuffle.h"

enum { ROUNDS = 10 };

void burni_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * c0;
        uint64_t p1 = (uint64_t)UINT32_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* High 64 bits of a * b. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a_low = a & UINT32_MAX;
    uint64_t a_high = a >> 32;
    uint64_t b_low = b & UINT32_MAX;
    uint64_t b_high = b >> 32;
    uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
    uint64_t other = a_low * b_high + (middle & UINT32_MAX);
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

void burni_shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    uint32_t block[4] = {0, 0, 0, 0};
    uint64_t draw = 0;
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t half = (uint32_t)(draw & 1) * 2; /* a block serves two draws */
        if (half == 0) {
            uint64_t at = draw >> 1;
            const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)epoch,
                                         (uint32_t)(epoch >> 32)};
            burni_philox(counter, key, block);
        }
        uint64_t bits = block[half] | ((uint64_t)block[half + 1] << 32);
        int64_t j = (int64_t)multiply_high(bits, (uint64_t)i + 1);
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
        draw++;
    }
}
