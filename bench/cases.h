/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases.h - what the benchmark's worker can run: named pieces of work on the public API.
 *
 * A case has a size argument. `setup` makes its data on the device, `run` does n iterations and
 * waits until they are done, `teardown` frees the data. `digest` is one number for what the
 * iterations so far have computed; the benchmark compares it with that of an eager process, so that
 * no row measures work that was not done. Only one case is set up at a time, so each file keeps its
 * case's data in static variables. A peer has the same cases under the same names (peer/peer.cpp,
 * peer/compiled.py). To add one: write the functions, add a row to the table in cases.c, a row to
 * rows.c, and the same work in the peers.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <burn/device.h>
#include <burn/status.h>
#include <stdint.h>

struct bench_case {
    const char *name;
    int32_t (*setup)(burn_device *device, int64_t arg, burn_err *err);
    int32_t (*run)(int64_t n, burn_err *err);
    void (*teardown)(void);
    int32_t (*digest)(uint64_t *digest, burn_err *err); /* NULL: its results are released unread */
    const char *reference; /* the case with the same digest when run eagerly, NULL: itself */
};

/* NULL when there is none of that name. */
const struct bench_case *bench_case_find(const char *name);

/* cases_op.c: arg = number of elements */
int32_t bench_add_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_add_tape_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_add_run(int64_t n, burn_err *err);
int32_t bench_add_tape_run(int64_t n, burn_err *err);
int32_t bench_add_tape100_run(int64_t n, burn_err *err);
int32_t bench_add_chain64_run(int64_t n, burn_err *err);
void bench_add_teardown(void);

/* cases_op.c: arg = number of rows and columns of the square matrices */
int32_t bench_sgemm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_sgemm_run(int64_t n, burn_err *err);

/* cases_tune.c: arg = number of rows and columns of the square matrices */
int32_t bench_dgemm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_tuned_dgemm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_dgemm_run(int64_t n, burn_err *err);
void bench_dgemm_teardown(void);
void bench_tuned_dgemm_teardown(void);

/* cases_mem.c: arg = number of elements */
int32_t bench_copy_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_erf_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_exp_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_layer_norm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_log_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_mul_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_relu_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_sin_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_softmax_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_sum_columns_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_sum_rows_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_max_rows_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_sum_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_tanh_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_transpose_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_mem_run(int64_t n, burn_err *err);
void bench_mem_teardown(void);

/* cases_step.c: arg = batch size */
int32_t bench_mlp_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_lenet_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_block_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_recompute_none_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_recompute_balanced_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_recompute_scope_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_step_run(int64_t n, burn_err *err);
int32_t bench_replay_run(int64_t n, burn_err *err);
int32_t bench_step_digest(uint64_t *digest, burn_err *err);
void bench_step_teardown(void);

/* cases_lazy.c: arg = number of elements */
int32_t bench_chain8_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_chain8_replay_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_known_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_softmax_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_layer_norm_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_bias_backward_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_turned_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_masked_softmax_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_residual_norm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_lazy_run(int64_t n, burn_err *err);
int32_t bench_lazy_replay_run(int64_t n, burn_err *err);
int32_t bench_lazy_digest(uint64_t *digest, burn_err *err);
void bench_lazy_teardown(void);

/* cases_adam.c: arg = number of parameters */
int32_t bench_adamw_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_adamw_run(int64_t n, burn_err *err);
int32_t bench_adamw_digest(uint64_t *digest, burn_err *err);
void bench_adamw_teardown(void);

/* cases_fused.c: arg = number of elements, for products of rows and columns; "parts": core ops */
int32_t bench_ext_call_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_ext_call_run(int64_t n, burn_err *err);
int32_t bench_swiglu_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_swiglu_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_product_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_add_norm_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_add_norm_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_matmul_relu_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_matmul_relu_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_matmul_gelu_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_matmul_gelu_parts_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_lion_setup(burn_device *device, int64_t arg, burn_err *err);
int32_t bench_lion_run(int64_t n, burn_err *err);
int32_t bench_lion_parts_run(int64_t n, burn_err *err);
int32_t bench_fused_run(int64_t n, burn_err *err);
void bench_fused_teardown(void);

#endif /* BENCH_CASES_H */
