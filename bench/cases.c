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
    {"copy", bench_copy_setup, bench_mem_run, bench_mem_teardown},
    {"dgemm", bench_dgemm_setup, bench_dgemm_run, bench_dgemm_teardown},
    {"erf", bench_erf_setup, bench_mem_run, bench_mem_teardown},
    {"exp", bench_exp_setup, bench_mem_run, bench_mem_teardown},
    {"ext_call", bench_ext_call_setup, bench_ext_call_run, bench_fused_teardown},
    {"fused_add_norm", bench_add_norm_setup, bench_fused_run, bench_fused_teardown},
    {"fused_add_norm_parts", bench_add_norm_parts_setup, bench_fused_run, bench_fused_teardown},
    {"fused_lion", bench_lion_setup, bench_lion_run, bench_fused_teardown},
    {"fused_lion_parts", bench_lion_setup, bench_lion_parts_run, bench_fused_teardown},
    {"fused_matmul_gelu", bench_matmul_gelu_setup, bench_fused_run, bench_fused_teardown},
    {"fused_matmul_gelu_parts", bench_matmul_gelu_parts_setup, bench_fused_run,
     bench_fused_teardown},
    {"fused_matmul_relu", bench_matmul_relu_setup, bench_fused_run, bench_fused_teardown},
    {"fused_matmul_relu_parts", bench_matmul_relu_parts_setup, bench_fused_run,
     bench_fused_teardown},
    {"fused_swiglu", bench_swiglu_setup, bench_fused_run, bench_fused_teardown},
    {"fused_swiglu_parts", bench_swiglu_parts_setup, bench_fused_run, bench_fused_teardown},
    {"layer_norm", bench_layer_norm_setup, bench_mem_run, bench_mem_teardown},
    {"log", bench_log_setup, bench_mem_run, bench_mem_teardown},
    {"mul", bench_mul_setup, bench_mem_run, bench_mem_teardown},
    {"recompute_balanced", bench_recompute_balanced_setup, bench_step_run, bench_step_teardown},
    {"recompute_none", bench_recompute_none_setup, bench_step_run, bench_step_teardown},
    {"recompute_scope", bench_recompute_scope_setup, bench_step_run, bench_step_teardown},
    {"relu", bench_relu_setup, bench_mem_run, bench_mem_teardown},
    {"sgemm", bench_sgemm_setup, bench_sgemm_run, bench_add_teardown},
    {"sin", bench_sin_setup, bench_mem_run, bench_mem_teardown},
    {"softmax", bench_softmax_setup, bench_mem_run, bench_mem_teardown},
    {"step_block", bench_block_setup, bench_step_run, bench_step_teardown},
    {"step_lenet", bench_lenet_setup, bench_step_run, bench_step_teardown},
    {"step_mlp", bench_mlp_setup, bench_step_run, bench_step_teardown},
    {"sum", bench_sum_setup, bench_mem_run, bench_mem_teardown},
    {"sum_columns", bench_sum_columns_setup, bench_mem_run, bench_mem_teardown},
    {"sum_rows", bench_sum_rows_setup, bench_mem_run, bench_mem_teardown},
    {"tanh", bench_tanh_setup, bench_mem_run, bench_mem_teardown},
    {"transpose", bench_transpose_setup, bench_mem_run, bench_mem_teardown},
    {"tuned_dgemm", bench_tuned_dgemm_setup, bench_dgemm_run, bench_tuned_dgemm_teardown},
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
