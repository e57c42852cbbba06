/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * budget.h - what a row must reach: bounds on its value, its ratio to the peer, its share of the
 * machine's limit.
 *
 * The figures are those that the project set itself, in one table (budget.c); nothing else knows
 * them. A verdict is printed behind each row and stands in the JSON; with --budgets the program's
 * exit status says whether one was missed. No test depends on a verdict. To add one: a line in the
 * table, a line in README.md.
 */
#ifndef BENCH_BUDGET_H
#define BENCH_BUDGET_H

#include "measure.h"
#include "rows.h"

/* Of what a bound is. BENCH_OF_APART: how far the value is from the peer's, either way. */
enum bench_of { BENCH_OF_VALUE, BENCH_OF_APART, BENCH_OF_RATIO, BENCH_OF_FRACTION };

/* BENCH_UNKNOWN: the row has no such number here (no peer, no rounds). */
enum bench_verdict { BENCH_MET, BENCH_MISSED, BENCH_UNKNOWN };

struct bench_budget {
    const char *rows; /* a pattern of names, as --only takes them */
    enum bench_of of;
    double bound;     /* at most, of values and distances; at least, of ratios and fractions */
};

/* The budget of a row after `last` (NULL: the first); NULL: no further one. */
const struct bench_budget *bench_budget_next(const struct bench_row *row,
                                             const struct bench_budget *last);
const char *bench_of_name(enum bench_of of);
/* 1: the bound is the most that is allowed. */
int bench_is_most(const struct bench_budget *budget);
/* The number that the budget is about; NaN: not known. */
double bench_budget_number(const struct bench_budget *budget, const struct bench_result *result);
enum bench_verdict bench_judge(const struct bench_budget *budget,
                               const struct bench_result *result);
const char *bench_verdict_name(enum bench_verdict verdict);

#endif /* BENCH_BUDGET_H */
