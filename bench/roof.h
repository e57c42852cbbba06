/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * roof.h - what this machine can do at best, measured by loops of the benchmark's own.
 *
 * Both are measured between the rounds of the rows that they are compared with, so that a machine
 * that slows down (heat, other users) slows the limit too.
 */
#ifndef BENCH_ROOF_H
#define BENCH_ROOF_H

#include <stdint.h>

enum { BENCH_MAX_THREADS = 256 };

/* Fused multiply-adds of f32 in registers on that many threads, in flop/s; two per operation. */
double bench_peak_flops(int threads, double seconds);

/* The instruction set that the loop above uses: "avx512", "avx2", "baseline". */
const char *bench_peak_isa(void);

/* What moves per element: a + b, a copy, a sum. */
enum bench_traffic { BENCH_READ_READ_WRITE, BENCH_READ_WRITE, BENCH_READ };

/* Bytes that move per f32 element. */
double bench_traffic_bytes(enum bench_traffic traffic);

/* A loop with that traffic over arrays of that many f32 elements in all, split over the threads;
 * bytes/s. Stores are ordinary or streaming, whichever was faster at first. The arrays stay
 * allocated until another size is asked for, or bench_bandwidth_free. Negative when there is no
 * memory. */
double bench_bandwidth(enum bench_traffic traffic, int64_t elements, int threads, double seconds);
void bench_bandwidth_free(void);

/* Runs `work` on that many threads at once and adds up what they return. */
double bench_on_threads(int threads, double (*work)(int index, void *user), void *user);

#endif /* BENCH_ROOF_H */
