/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_op.c - single ops: additions in several settings, square matrix products.
 *
 * Each iteration releases its result, as a program does; what it costs to free is part of what an
 * op costs. A result that nobody needs may stay unrun when the window is larger than 1, so the
 * eager rows are measured with BURN_WINDOW=1 (rows.c), and the chain keeps its last result.
 */
#include "cases.h"

#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/tensor.h>
#include <stdio.h>

static burn_device *op_device;
static burn_tensor *op_a;
static burn_tensor *op_b;

/* Two kept tensors of that shape with numbers in [0, 1). */
static int32_t make_operands(burn_device *device, uint32_t rank, const int64_t *dims, burn_err *err)
{
    op_device = device;
    burn_seed(1);
    burn_scope_begin();
    op_a = burn_keep(burn_random_uniform(device, BURN_F32, rank, dims));
    op_b = burn_keep(burn_random_uniform(device, BURN_F32, rank, dims));
    burn_scope_end();
    return burn_sync(device, err);
}

int32_t bench_add_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return make_operands(device, 1, &arg, err);
}

int32_t bench_add_tape_setup(burn_device *device, int64_t arg, burn_err *err)
{
    int32_t code = make_operands(device, 1, &arg, err);
    if (code != BURN_OK) {
        return code;
    }
    burn_scope_begin();
    burn_tensor *leaf = burn_keep(burn_require_grad(burn_device_autodiff(device), op_a));
    burn_scope_end();
    burn_release(op_a);
    op_a = leaf;
    return burn_tensor_error(leaf, err);
}

int32_t bench_sgemm_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return make_operands(device, 2, (int64_t[]){arg, arg}, err);
}

void bench_add_teardown(void)
{
    burn_release(op_a);
    burn_release(op_b);
    op_a = NULL;
    op_b = NULL;
}

int32_t bench_add_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_release(burn_add(op_a, op_b));
    }
    return burn_sync(op_device, err);
}

int32_t bench_sgemm_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_release(burn_matmul(op_a, op_b));
    }
    return burn_sync(op_device, err);
}

/* Operand 0 is tracked: each addition makes a node, which is freed with its result. */
int32_t bench_add_tape_run(int64_t n, burn_err *err)
{
    return bench_add_run(n, err);
}

/* Per iteration: 100 chained additions on the tape, then the gradient of the leaf. */
int32_t bench_add_tape100_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_scope_begin();
        burn_tensor *y = op_a;
        for (int k = 0; k < 100; k++) {
            y = burn_add(y, op_b);
        }
        burn_grads *grads = burn_backward(y, NULL, 0, err);
        burn_tensor *grad = grads != NULL ? burn_grads_get(grads, op_a) : NULL;
        int32_t code = grads == NULL ? err->code : grad == NULL ? BURN_E_INTERNAL : BURN_OK;
        burn_grads_free(grads);
        burn_scope_end();
        if (code != BURN_OK) {
            if (err->code == BURN_OK) {
                (void)snprintf(err->text, sizeof(err->text), "no gradient reached the leaf");
                err->code = code;
            }
            return code;
        }
    }
    return burn_sync(op_device, err);
}

/* Per iteration: 64 chained additions of which only the last result is wanted. */
int32_t bench_add_chain64_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_scope_begin();
        burn_tensor *y = op_a;
        for (int k = 0; k < 64; k++) {
            y = burn_add(y, op_b);
        }
        burn_keep(y);
        burn_scope_end();
        int32_t code = burn_sync(op_device, err);
        burn_release(y);
        if (code != BURN_OK) {
            return code;
        }
    }
    return BURN_OK;
}
