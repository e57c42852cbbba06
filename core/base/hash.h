/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hash.h - one step of the hashes behind tables of keys: multiplicative, with the golden ratio.
 *
 * For tables in memory only: nothing that is stored or sent depends on it. Where the low bits must
 * depend on the high ones, the caller folds them.
 */
#ifndef BURN_CORE_BASE_HASH_H
#define BURN_CORE_BASE_HASH_H

#include <stdint.h>

static inline uint64_t burni_mix(uint64_t hash, uint64_t x)
{
    return (hash ^ x) * UINT64_C(0x9E3779B97F4A7C15);
}

#endif /* BURN_CORE_BASE_HASH_H */
