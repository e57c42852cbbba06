/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * clock.h - wall time in seconds.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <time.h>

static inline double bench_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif /* BENCH_CLOCK_H */
