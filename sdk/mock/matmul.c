/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * matmul.c - x [..., m, k] times y [..., k, n], batch dims broadcast.
 *
 * One dot product per element of the output, in double for floats (rounded once) and wrapping for
 * integers. The loop steps x and y with the output's index: a stride of 0 where an operand has no
 * such dim. Runs on the worker of a queue.
 */
#include "mock.h"
#include "mock_kernels.h"

/* Strides of `in` along the output's dims: batch dims align at the right, 1 stretches. */
static void batch_strides(const mock_operand *in, const mock_operand *out, int64_t *strides)
{
    uint32_t missing = (uint32_t)(out->rank - in->rank);
    for (uint32_t i = 0; i + 2 < out->rank; i++) {
        int stretched = i < missing || in->dims[i - missing] == 1;
        strides[i] = stretched ? 0 : in->strides[i - missing];
    }
    strides[out->rank - 2] = 0;
    strides[out->rank - 1] = 0;
}

static void dot(const mock_operand *x, int64_t x_first, const mock_operand *y, int64_t y_first,
                unsigned char *out)
{
    int64_t k = x->dims[x->rank - 1];
    int64_t x_step = x->strides[x->rank - 1];
    int64_t y_step = y->strides[y->rank - 2];
    int is_float = burn_element_class(x->dtype) == BURN_CLASS_FLOAT;
    double floats = 0.0;
    uint64_t whole = 0;
    for (int64_t i = 0; i < k; i++) {
        const unsigned char *a = mock_at(x, x_first + i * x_step);
        const unsigned char *b = mock_at(y, y_first + i * y_step);
        if (is_float) {
            floats += burn_load_f64(a, x->dtype) * burn_load_f64(b, x->dtype);
        } else {
            whole += burn_load_u64(a, x->dtype) * burn_load_u64(b, x->dtype);
        }
    }
    if (is_float) {
        burn_store_f64(out, x->dtype, floats);
    } else {
        burn_store_u64(out, x->dtype, whole);
    }
}

static void run_matmul(mock_item *item)
{
    const mock_operand *x = &item->operands[0];
    const mock_operand *y = &item->operands[1];
    mock_operand *out = mock_out(item);
    int64_t x_strides[BURN_MAX_RANK];
    int64_t y_strides[BURN_MAX_RANK];
    const int64_t *strides[2] = {x_strides, y_strides};
    batch_strides(x, out, x_strides);
    batch_strides(y, out, y_strides);
    x_strides[out->rank - 2] = x->strides[x->rank - 2];
    y_strides[out->rank - 1] = y->strides[y->rank - 1];
    burn_loop loop;
    for (burn_loop_begin(&loop, out->rank, out->dims, 2, strides); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        dot(x, loop.offset[0], y, loop.offset[1], mock_at(out, loop.position));
    }
}

int32_t mock_launch_matmul(const burn_call *call)
{
    return mock_launch(call, BURN_OP_MATMUL, run_matmul, NULL);
}
