/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * kernels.c - kernels for flex, the backend of the CPU: plain C on host memory.
 *
 * A kernel gets what its row in plugin.c asks for, here dense f32; everything else is the core's
 * work, or the decomposition's. It allocates nothing, waits for nothing and writes all of its
 * output. To add one: a function here and a row there. [queue]
 */
#include "starter_plugin.h"

#include <math.h>

static void norm_row(const float *x, float *y, int64_t n, double eps)
{
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) {
        sum += (double)x[k] * (double)x[k];
    }
    float factor = (float)(1.0 / sqrt(sum / (double)n + eps));
    for (int64_t k = 0; k < n; k++) {
        y[k] = x[k] * factor;
    }
}

int32_t starter_rms_norm_f32(const burn_call *call)
{
    const burn_operand *in = burn_call_operand(call, 0);
    const burn_operand *out = burn_call_operand(call, 1);
    const starter_rms_norm_attrs *attrs = (const starter_rms_norm_attrs *)call->attrs;
    const float *x = (const float *)in->data;
    float *y = (float *)out->data;
    int64_t n = in->dims[in->rank - 1];
    int64_t n_rows = 1;
    for (uint32_t i = 0; i + 1 < in->rank; i++) {
        n_rows *= in->dims[i];
    }
    for (int64_t row = 0; row < n_rows; row++) {
        norm_row(x + row * n, y + row * n, n, attrs->eps);
    }
    return BURN_OK;
}
