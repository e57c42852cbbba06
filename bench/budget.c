/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * budget.c - the table of budgets, and how a row is held against them.
 *
 * Values are in the row's unit. A ratio of r says that we take at most 1/r of the peer's time.
 * Where PyTorch's best counts, both of its rows have the budget. A row may have several budgets.
 * Rows that only explain (`.eager` beside `auto`, `recompute.*`) have none.
 */
#include "budget.h"

#include <fnmatch.h>
#include <math.h>
#include <stddef.h>

static const struct bench_budget BUDGETS[] = {
    /* Single calls: of PyTorch's time 1/8, taped 1/12, with backward 1/15; by the clock 60 and
     * 75 ns. */
    {"add.64.eager", BENCH_OF_RATIO, 8.0},
    {"add.64.eager", BENCH_OF_VALUE, 60.0},
    {"add.64.tape", BENCH_OF_RATIO, 12.0},
    {"add.64.tape", BENCH_OF_VALUE, 75.0},
    {"add.64.tape100", BENCH_OF_RATIO, 15.0},
    {"ext.call.64", BENCH_OF_APART, 5.0},
    /* Processes and plugins; "a few milliseconds" is taken to be 5. */
    {"start.first_result", BENCH_OF_VALUE, 5.0},
    {"start.list10", BENCH_OF_VALUE, 2.0},
    {"start.load_flex", BENCH_OF_VALUE, 3.0},
    /* Products: of the measured peak; small ones beside OpenBLAS. */
    {"sgemm.256.?t", BENCH_OF_FRACTION, 0.80},
    {"sgemm.512.?t", BENCH_OF_FRACTION, 0.88},
    {"sgemm.1024.?t", BENCH_OF_FRACTION, 0.88},
    {"sgemm.2048.?t", BENCH_OF_FRACTION, 0.88},
    {"sgemm.4096.?t", BENCH_OF_FRACTION, 0.88},
    {"sgemm.small.*.kernel", BENCH_OF_RATIO, 1.0},
    {"sgemm.small.*.torch", BENCH_OF_RATIO, 1.0},
    /* What is bound by memory, and functions beside SLEEF's. */
    {"mem.*", BENCH_OF_FRACTION, 0.85},
    {"math.*", BENCH_OF_RATIO, 1.0 / 1.5},
    {"fused.add_layer_norm.*", BENCH_OF_RATIO, 1.3},
    {"fused.swiglu.*", BENCH_OF_RATIO, 1.3},
    {"fused.lion_step.*", BENCH_OF_RATIO, 1.3},
    /* Deferring and replaying. */
    {"window.known", BENCH_OF_VALUE, 60.0},
    {"chain8.1k", BENCH_OF_VALUE, 75.0},
    {"chain8.1k.replay", BENCH_OF_VALUE, 40.0},
    {"chain8.4m", BENCH_OF_RATIO, 4.0},
    {"chain8.4m.compiled", BENCH_OF_RATIO, 1.0},
    {"adamw.25m", BENCH_OF_FRACTION, 0.80},
    /* Training steps: 0.45, 0.4 and 0.88 of PyTorch's best time; a replay is no slower than what it
     * replays. */
    {"step.mlp", BENCH_OF_RATIO, 1.0 / 0.45},
    {"step.mlp.compiled", BENCH_OF_RATIO, 1.0 / 0.45},
    {"step.lenet", BENCH_OF_RATIO, 1.0 / 0.4},
    {"step.lenet.compiled", BENCH_OF_RATIO, 1.0 / 0.4},
    {"step.block", BENCH_OF_RATIO, 1.0 / 0.88},
    {"step.block.compiled", BENCH_OF_RATIO, 1.0 / 0.88},
    {"replay.mlp", BENCH_OF_RATIO, 1.0},
    {"replay.lenet", BENCH_OF_RATIO, 1.0},
    {"replay.block", BENCH_OF_RATIO, 1.0},
};

const struct bench_budget *bench_budget_next(const struct bench_row *row,
                                             const struct bench_budget *last)
{
    size_t i = last != NULL ? (size_t)(last - BUDGETS) + 1 : 0;
    for (; i < sizeof(BUDGETS) / sizeof(BUDGETS[0]); i++) {
        if (fnmatch(BUDGETS[i].rows, row->name, 0) == 0) {
            return &BUDGETS[i];
        }
    }
    return NULL;
}

const char *bench_of_name(enum bench_of of)
{
    static const char *const names[] = {"value", "apart", "ratio", "fraction"};
    return names[of];
}

int bench_is_most(const struct bench_budget *budget)
{
    return budget->of == BENCH_OF_VALUE || budget->of == BENCH_OF_APART;
}

double bench_budget_number(const struct bench_budget *budget, const struct bench_result *result)
{
    switch (budget->of) {
    case BENCH_OF_VALUE:
        return result->value;
    case BENCH_OF_APART:
        return fabs(result->value - result->peer_value);
    case BENCH_OF_RATIO:
        return result->ratio;
    default:
        return result->fraction;
    }
}

enum bench_verdict bench_judge(const struct bench_budget *budget,
                               const struct bench_result *result)
{
    double number = bench_budget_number(budget, result);
    if (isnan(number)) {
        return BENCH_UNKNOWN;
    }
    int met = bench_is_most(budget) ? number <= budget->bound : number >= budget->bound;
    return met ? BENCH_MET : BENCH_MISSED;
}

const char *bench_verdict_name(enum bench_verdict verdict)
{
    static const char *const names[] = {"met", "missed", "unknown"};
    return names[verdict];
}
