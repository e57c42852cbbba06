/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * openblas.h - square matrix products of the OpenBLAS library beside ours, where it is installed.
 */
#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <stdint.h>

/* Seconds of one product of two f32 matrices, size x size, on one thread, called in a loop for that
 * long; NaN when the library is not there. */
double bench_openblas(int64_t size, double seconds);

#endif /* BENCH_OPENBLAS_H */
