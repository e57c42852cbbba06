/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases.c - the table of cases.
 */
#include "cases.h"

#include <string.h>

/* Cases whose results are released unread, such as single ops, have no digest. */
#define UNREAD NULL, NULL

static const struct bench_case CASES[] = {
    {"adamw", bench_adamw_setup, bench_adamw_run, bench_adamw_teardown, bench_adamw_digest, NULL},
    {"add", bench_add_setup, bench_add_run, bench_add_teardown, UNREAD},
    {"add_chain64", bench_add_setup, bench_add_chain64_run, bench_add_teardown, UNREAD},
    {"add_tape", bench_add_tape_setup, bench_add_tape_run, bench_add_teardown, UNREAD},
    {"add_tape100", bench_add_tape_setup, bench_add_tape100_run, bench_add_teardown, UNREAD},
    {"bias_backward", bench_bias_backward_setup, bench_lazy_run, bench_lazy_teardown,
     bench_lazy_digest, NULL},
    {"chain8", bench_chain8_setup, bench_lazy_run, bench_lazy_teardown, bench_lazy_digest, NULL},
    {"chain8_replay", bench_chain8_replay_setup, bench_lazy_replay_run, bench_lazy_teardown,
     bench_lazy_digest, "chain8"},
    {"copy", bench_copy_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"dgemm", bench_dgemm_setup, bench_dgemm_run, bench_dgemm_teardown, UNREAD},
    {"erf", bench_erf_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"exp", bench_exp_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"ext_call", bench_ext_call_setup, bench_ext_call_run, bench_fused_teardown, UNREAD},
    {"ext_product", bench_product_setup, bench_ext_call_run, bench_fused_teardown, UNREAD},
    {"fused_add_norm", bench_add_norm_setup, bench_fused_run, bench_fused_teardown, UNREAD},
    {"fused_add_norm_parts", bench_add_norm_parts_setup, bench_fused_run, bench_fused_teardown,
     UNREAD},
    {"fused_lion", bench_lion_setup, bench_lion_run, bench_fused_teardown, UNREAD},
    {"fused_lion_parts", bench_lion_setup, bench_lion_parts_run, bench_fused_teardown, UNREAD},
    {"fused_matmul_gelu", bench_matmul_gelu_setup, bench_fused_run, bench_fused_teardown, UNREAD},
    {"fused_matmul_gelu_parts", bench_matmul_gelu_parts_setup, bench_fused_run,
     bench_fused_teardown, UNREAD},
    {"fused_matmul_relu", bench_matmul_relu_setup, bench_fused_run, bench_fused_teardown, UNREAD},
    {"fused_matmul_relu_parts", bench_matmul_relu_parts_setup, bench_fused_run,
     bench_fused_teardown, UNREAD},
    {"fused_swiglu", bench_swiglu_setup, bench_fused_run, bench_fused_teardown, UNREAD},
    {"fused_swiglu_parts", bench_swiglu_parts_setup, bench_fused_run, bench_fused_teardown, UNREAD},
    {"known", bench_known_setup, bench_lazy_run, bench_lazy_teardown, bench_lazy_digest, NULL},
    {"layer_norm", bench_layer_norm_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"layer_norm_parts", bench_layer_norm_parts_setup, bench_lazy_run, bench_lazy_teardown,
     bench_lazy_digest, NULL},
    {"log", bench_log_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"masked_softmax", bench_masked_softmax_setup, bench_lazy_run, bench_lazy_teardown,
     bench_lazy_digest, NULL},
    {"mul", bench_mul_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"recompute_balanced", bench_recompute_balanced_setup, bench_step_run, bench_step_teardown,
     bench_step_digest, NULL},
    {"recompute_none", bench_recompute_none_setup, bench_step_run, bench_step_teardown,
     bench_step_digest, NULL},
    {"recompute_scope", bench_recompute_scope_setup, bench_step_run, bench_step_teardown,
     bench_step_digest, NULL},
    {"relu", bench_relu_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"replay_block", bench_block_setup, bench_replay_run, bench_step_teardown, bench_step_digest,
     "step_block"},
    {"replay_lenet", bench_lenet_setup, bench_replay_run, bench_step_teardown, bench_step_digest,
     "step_lenet"},
    {"replay_mlp", bench_mlp_setup, bench_replay_run, bench_step_teardown, bench_step_digest,
     "step_mlp"},
    {"residual_norm", bench_residual_norm_setup, bench_lazy_run, bench_lazy_teardown,
     bench_lazy_digest, NULL},
    {"sgemm", bench_sgemm_setup, bench_sgemm_run, bench_add_teardown, UNREAD},
    {"sin", bench_sin_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"softmax", bench_softmax_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"softmax_parts", bench_softmax_parts_setup, bench_lazy_run, bench_lazy_teardown,
     bench_lazy_digest, NULL},
    {"step_block", bench_block_setup, bench_step_run, bench_step_teardown, bench_step_digest, NULL},
    {"step_lenet", bench_lenet_setup, bench_step_run, bench_step_teardown, bench_step_digest, NULL},
    {"step_mlp", bench_mlp_setup, bench_step_run, bench_step_teardown, bench_step_digest, NULL},
    {"sum", bench_sum_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"sum_columns", bench_sum_columns_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"sum_rows", bench_sum_rows_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"max_rows", bench_max_rows_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"tanh", bench_tanh_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"transpose", bench_transpose_setup, bench_mem_run, bench_mem_teardown, UNREAD},
    {"tuned_dgemm", bench_tuned_dgemm_setup, bench_dgemm_run, bench_tuned_dgemm_teardown, UNREAD},
    {"turned", bench_turned_setup, bench_lazy_run, bench_lazy_teardown, bench_lazy_digest, NULL},
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
