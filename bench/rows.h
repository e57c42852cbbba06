/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.h - what is measured: one row per number. Names are stable: histories are compared by them.
 *
 * A row is a case (cases.h) with a size, the settings of the process that runs it, the peer that
 * runs the same, and what the machine allows at best. README.md says how work was counted.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "machine.h"
#include "roof.h"

#include <stdint.h>

enum bench_unit { BENCH_NS, BENCH_MS, BENCH_GFLOPS, BENCH_GBS, BENCH_MIB };

/* BENCH_OWN: another process of this library, with the case that the row names. */
enum bench_peer {
    BENCH_NO_PEER,
    BENCH_TORCH,
    BENCH_COMPILED,
    BENCH_SLEEF,
    BENCH_OWN,
    BENCH_OPENBLAS
};

enum bench_limit {
    BENCH_NO_LIMIT,
    BENCH_LIMIT_PEAK,      /* multiply-adds of as many threads as the row has */
    BENCH_LIMIT_BANDWIDTH, /* the row's bytes at the speed of a loop with the same traffic */
    BENCH_LIMIT_FLOOR      /* the row's flops at peak plus its bytes at the speed of level 3 */
};

/* Where the data of a row with a bandwidth limit live. */
enum bench_level { BENCH_L2, BENCH_L3, BENCH_DRAM };

struct bench_row {
    const char *name;
    const char *case_name; /* NULL: a process is measured, see `part` */
    const char *peer_case; /* NULL: the same */
    int64_t arg;
    double per;         /* parts in one iteration: the value is per part */
    double flops;       /* per iteration */
    double bytes;       /* per iteration */
    const char *window; /* BURN_WINDOW: "1" where results are released unread; NULL: a process */
    int threads;        /* 0: as many as there are cores */
    enum bench_unit unit;
    enum bench_peer peer;
    enum bench_limit limit;
    enum bench_traffic traffic;
    enum bench_level level;
    const char *peer_window; /* BURN_WINDOW of BENCH_OWN, NULL: the same */
    const char *part; /* of processes: the option with which burn-bench plays its part; what it
                         prints behind "took" counts, else the time until it prints */
};

enum { BENCH_MAX_ROWS = 192 };

/* Writes all rows for this machine; returns how many. */
int bench_rows(const struct bench_machine *machine, struct bench_row *out);

const char *bench_unit_name(enum bench_unit unit);
const char *bench_peer_name(enum bench_peer peer);

/* The row's value from seconds per iteration. */
double bench_row_value(const struct bench_row *row, double seconds);

#endif /* BENCH_ROWS_H */
