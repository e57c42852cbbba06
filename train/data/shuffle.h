/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shuffle.h - the order of an epoch: a permutation given by seed and epoch alone. The numbers are
 * those of Philox4x32-10 with the seed as key and {draw, epoch} as counter, so every machine and
 * every version makes the same order; checkpoints rely on that. [any]
 */
#ifndef BURN_TRAIN_DATA_SHUFFLE_H
#define BURN_TRAIN_DATA_SHUFFLE_H

#include <stdint.h>

/* One block of Philox4x32-10. */
void burni_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Fills order[0..n) with 0 .. n-1 in the order of that epoch (Fisher-Yates from the back). */
void burni_shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch);

#endif /* BURN_TRAIN_DATA_SHUFFLE_H */
