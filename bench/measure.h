/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * measure.h - runs one row: rounds of this library, of the peer and of the machine's limit in turn.
 *
 * What counts are medians over rounds; ratio and fraction are medians of what each single round
 * gave, so that noise which hits neighbours in time alike drops out. Before the rounds, what the
 * row computes is compared with what a process with BURN_WINDOW=1 computes: to the last bit. Sides
 * (processes) stay alive from row to row as long as their settings are the same.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "child.h"
#include "machine.h"
#include "rows.h"

/* One process that runs cases. */
struct bench_side {
    struct bench_child child;
    char settings[64]; /* what `child` was started with */
    char note[256];    /* why it is absent; "" when it may be started */
};

struct bench_setup {
    const struct bench_machine *machine;
    const char *self;            /* path of this program */
    const char *torch_peer;      /* path of the C++ peer, NULL: absent */
    const char *python;          /* the interpreter with torch, NULL: absent */
    const char *compiled_script; /* peer/compiled.py */
    int rounds;
    double seconds; /* per round and side */
    struct bench_side ours;
    struct bench_side torch;
    struct bench_side compiled;
    struct bench_side own;   /* a second process of ours, for what a row is compared with */
    struct bench_side eager; /* one with BURN_WINDOW=1, for what a row must compute */
};

/* NaN: not known. */
struct bench_result {
    double value;
    double spread; /* half the distance between the quartiles of value, relative */
    double peer_value;
    double ratio; /* times as fast as the peer */
    double limit;
    double fraction;
    int rounds;
    char note[512]; /* what went wrong, "" when nothing did */
};

void bench_measure(struct bench_setup *setup, const struct bench_row *row,
                   struct bench_result *result);
/* Ends all processes. */
void bench_measure_end(struct bench_setup *setup);

/* The median; sorts the numbers. NaN when there are none. */
double bench_median(double *numbers, int n);

#endif /* BENCH_MEASURE_H */
