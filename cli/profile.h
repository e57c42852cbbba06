/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile.h - what the parts of `burn profile` share: lanes that were read, and sums over them.
 *
 * profile_lanes.c reads and sums, profile_trace.c writes the trace, cmd_profile.c tells. Lanes are
 * checked when they are read: texts end, indexes are inside.
 */
#ifndef BURN_CLI_PROFILE_H
#define BURN_CLI_PROFILE_H

#include "cli.h"

#include <burn/profile.h>
#include <stdio.h>

/* All lanes of a run, those of a process beside each other. */
typedef struct cli_lanes {
    burn_profile_lane **lanes;
    uint32_t n;
    int failed; /* memory was short */
} cli_lanes;

/* The sum over entries that are alike. Launches: `place` or op, row and shapes are NULL where it is
 * not told apart by them. */
typedef struct cli_sum {
    const char *op;
    const char *row;
    const char *shapes;
    char place[112];
    uint64_t calls;
    uint64_t ns;
    uint64_t min_ns;
    uint64_t max_ns;
    double flops;      /* of the launches whose op says how many, */
    uint64_t flops_ns; /* and their time */
    double bytes;
    /* Places only. */
    uint64_t inner_ns; /* launches in it and in what lies below */
    uint64_t times;    /* how often it was entered, and how long it took */
    uint64_t wall_ns;
} cli_sum;

typedef struct cli_sums {
    cli_sum *sums;
    uint32_t n;
} cli_sums;

/* Takes one file; for cli_program_watch. */
void cli_lanes_read(void *user, const char *path);
void cli_lanes_free(cli_lanes *lanes);

/* How the sums of launches are told apart. */
enum { CLI_BY_ROW, CLI_BY_SHAPES };
/* Sums of the lanes from..to, the longest first. 0: memory is short. */
int cli_sum_ops(const cli_lanes *lanes, uint32_t from, uint32_t to, int by, cli_sums *out);
/* By place, in the order of their names. */
int cli_sum_places(const cli_lanes *lanes, uint32_t from, uint32_t to, cli_sums *out);

/* Writes all events as Chrome trace events; 0 when the file cannot be written. */
int cli_profile_trace(const cli_lanes *lanes, const char *path);

#endif /* BURN_CLI_PROFILE_H */
