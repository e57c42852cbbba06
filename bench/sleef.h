/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sleef.h - elementary functions of the SLEEF library beside ours, where it is installed.
 */
#ifndef BENCH_SLEEF_H
#define BENCH_SLEEF_H

#include <stdint.h>

/* Seconds of one pass of SLEEF's function ("exp", "log", ...; f32, 1 ulp) over n elements in
 * [0, 1), on one thread; NaN when the library, the function or the instruction set is not there. */
double bench_sleef(const char *function, int64_t n, double seconds);

#endif /* BENCH_SLEEF_H */
