/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * worker.h - the benchmark's other process: runs cases on demand, or times its own start.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

/* Serves lines from standard input until it ends. Returns the exit status. */
int bench_worker(void);

/* The least that a process can do: one addition of four numbers, read and printed. */
int bench_first_result(void);

/* Prints the most bytes that live tensors occupied over three iterations of a case. */
int bench_peak_memory(const char *case_name);

/* start.c: prints how long listing ten manifests, and loading the CPU backend, took. */
int bench_list10(void);
int bench_load_flex(void);

#endif /* BENCH_WORKER_H */
