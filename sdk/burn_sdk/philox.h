/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * philox.h - Philox4x32-10, the counter-based generator behind every random op.
 *
 * Owns the block function and the two maps from bits to uniforms in [0,1); what a block's words
 * mean for an op (which element gets which word) is said by the op's definition. A pure function of
 * seed and counter: no state, so any thread can make any block. Checked against the vectors that
 * its authors published ("Parallel random numbers: as easy as 1, 2, 3", 2011). [any]
 */
#ifndef BURN_SDK_PHILOX_H
#define BURN_SDK_PHILOX_H

#include <stdint.h>

/* The block function with all four counter words and both key words. */
static inline void burn_philox4x32(const uint32_t counter[4], const uint32_t key[2],
                                   uint32_t out[4])
{
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c0 * UINT32_C(0xD2511F53);
        uint64_t b = (uint64_t)c2 * UINT32_C(0xCD9E8D57);
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Block `counter` of the sequence `seed`: key {low, high} of seed, counter {low, high, 0, 0}. */
static inline void burn_philox(uint64_t seed, uint64_t counter, uint32_t out[4])
{
    uint32_t words[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    burn_philox4x32(words, key, out);
}

/* Uniform in [0,1) from the top 24 bits. */
static inline float burn_philox_uniform32(uint32_t bits)
{
    return (float)(bits >> 8) * 5.9604644775390625e-08f; /* 2^-24 */
}

/* Uniform in [0,1) from the top 53 bits. */
static inline double burn_philox_uniform64(uint64_t bits)
{
    return (double)(bits >> 11) * 1.1102230246251565e-16; /* 2^-53 */
}

#endif /* BURN_SDK_PHILOX_H */
