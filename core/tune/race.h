/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * race.h - which of several candidates is the fastest, with few runs.
 *
 * Owns the policy only: it is told how to run a candidate and for how long it may go on. Candidate
 * 0 is what would be taken without a race; it is kept unless another is faster by more than the
 * noise. Samples of the candidates are interleaved, so that a disturbance meets all of them; those
 * that are clearly slower are put aside. When the best reaches the bound, nothing better is
 * possible and the race ends. No candidate but the first wins with a time above another's. Keeps
 * no state. [any]
 */
#ifndef BURN_CORE_TUNE_RACE_H
#define BURN_CORE_TUNE_RACE_H

#include <stdint.h>

#define BURNI_RACE_MAX 8

typedef struct burni_race {
    uint32_t n; /* candidates, 1 to BURNI_RACE_MAX */
    uint32_t zero;
    double bound;  /* seconds that no kernel can beat; 0: not known */
    double budget; /* seconds for all of it; a slow candidate's first runs may take longer */
    /* Seconds that `repeats` runs of a candidate took in all; negative when it failed. */
    double (*run)(void *user, uint32_t candidate, uint32_t repeats);
    void *user;
    /* What came out. */
    uint32_t winner;
    uint32_t at_roof; /* 1: it ended because the bound was reached */
    uint32_t rival;   /* 0 when the winner is another one, else the next best; `n`: none was run */
    uint32_t runs;
    double seconds[BURNI_RACE_MAX]; /* of one run; 0: it was not run, negative: it failed */
} burni_race;

/* 0 when no candidate could be run; then the winner is candidate 0. */
int burni_race_run(burni_race *race);

#endif /* BURN_CORE_TUNE_RACE_H */
