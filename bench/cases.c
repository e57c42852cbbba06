/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases.c - the table of cases.
 */
#include "cases.h"

#include <string.h>

static const struct bench_case CASES[] = {
    {"add", bench_add_setup, bench_add_run, bench_add_teardown},
    {"add_chain64", bench_add_setup, bench_add_chain64_run, bench_add_teardown},
    {"add_tape", bench_add_tape_setup, bench_add_tape_run, bench_add_teardown},
    {"add_tape100", bench_add_tape_setup, bench_add_tape100_run, bench_add_teardown},
    {"sgemm", bench_sgemm_setup, bench_sgemm_run, bench_add_teardown},
    {"step_block", bench_block_setup, bench_step_run, bench_step_teardown},
    {"step_lenet", bench_lenet_setup, bench_step_run, bench_step_teardown},
    {"step_mlp", bench_mlp_setup, bench_step_run, bench_step_teardown},
};

const struct bench_case *bench_case_find(const char *name)
{
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        if (strcmp(CASES[i].name, name) == 0) {
            return &CASES[i];
        }
    }
    return NULL;
}
