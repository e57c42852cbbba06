/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mock_kernels.h - the launch function of each op, for the table in rows.c.
 *
 * A launch function names the op, the `run` function and what tells it from its family; it has no
 * other job. The kernels are in pointwise.c, create.c, reduce.c, matmul.c and index.c.
 */
#ifndef BURN_SDK_MOCK_MOCK_KERNELS_H
#define BURN_SDK_MOCK_MOCK_KERNELS_H

#include <burn/call.h>

int32_t mock_launch_exp(const burn_call *call);
int32_t mock_launch_log(const burn_call *call);
int32_t mock_launch_sqrt(const burn_call *call);
int32_t mock_launch_floor(const burn_call *call);
int32_t mock_launch_sin(const burn_call *call);
int32_t mock_launch_cos(const burn_call *call);
int32_t mock_launch_tanh(const burn_call *call);
int32_t mock_launch_erf(const burn_call *call);
int32_t mock_launch_add(const burn_call *call);
int32_t mock_launch_sub(const burn_call *call);
int32_t mock_launch_mul(const burn_call *call);
int32_t mock_launch_div(const burn_call *call);
int32_t mock_launch_maximum(const burn_call *call);
int32_t mock_launch_equal(const burn_call *call);
int32_t mock_launch_less(const burn_call *call);
int32_t mock_launch_where(const burn_call *call);
int32_t mock_launch_cast(const burn_call *call);
int32_t mock_launch_copy(const burn_call *call);
int32_t mock_launch_assign(const burn_call *call);
int32_t mock_launch_many_assign(const burn_call *calls, uint32_t n, uint32_t stride);
int32_t mock_launch_fill(const burn_call *call);
int32_t mock_launch_arange(const burn_call *call);
int32_t mock_launch_random_bits(const burn_call *call);
int32_t mock_launch_sum(const burn_call *call);
int32_t mock_launch_max(const burn_call *call);
int32_t mock_launch_argmax(const burn_call *call);
int32_t mock_launch_matmul(const burn_call *call);
int32_t mock_launch_gather(const burn_call *call);
int32_t mock_launch_scatter(const burn_call *call);
int32_t mock_launch_slice_assign(const burn_call *call);

#endif /* BURN_SDK_MOCK_MOCK_KERNELS_H */
