/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.h - the numbers as a table for people and as JSON for programs.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "machine.h"
#include "measure.h"
#include "rows.h"

#include <stdio.h>

struct bench_report {
    const struct bench_machine *machine;
    const char *revision; /* of the sources, NULL: not known */
    const char *device;   /* what BURN_DEVICE asks for, NULL: auto */
    double others;        /* cores that others kept busy at the start or end, the larger */
    int quick;
    int has_torch;
    int n_rows;
    const struct bench_row *rows;
    const struct bench_result *results;
};

void bench_table_head(FILE *out, const struct bench_machine *machine, double others);
void bench_table_row(FILE *out, const struct bench_row *row, const struct bench_result *result);

/* One JSON object; on one line for a history, over many otherwise. Returns 0, or -1 when `out`
 * could not take it. */
int bench_write_json(FILE *out, const struct bench_report *report, int one_line);

#endif /* BENCH_REPORT_H */
