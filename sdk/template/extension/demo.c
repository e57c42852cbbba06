/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * demo.c - an application that uses the extension: the op through its header and by name, and its
 * gradient.
 *
 * Prints one line per step and "fine" when all of them agree. BURN_DEVICE says where it runs.
 */
#include "starter.h"

#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <math.h>
#include <stdio.h>

static const float values[] = {3, 4, 0, 0, 1, -1, 1, -1};

/* The op by its name, as a language binding would call it. */
static burn_tensor *by_name(burn_tensor *x, double eps)
{
    burn_tensor *y = NULL;
    starter_rms_norm_attrs attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.eps = eps;
    const burn_op_def *op = burn_op_find("starter.rms_norm");
    (void)burn_op_call(NULL, op != NULL ? op->id : BURN_OP_NONE, &attrs, (uint32_t)sizeof(attrs),
                       &x, 1, &y, 1);
    return y;
}

static int read_row(const char *what, burn_tensor *t, float out[8], burn_err *err)
{
    if (burn_read(t, out, 8 * sizeof(float), err) != BURN_OK) {
        fprintf(stderr, "%s: %s\n", what, err->text);
        return 0;
    }
    printf("%-10s %.3f %.3f %.3f %.3f\n", what, (double)out[0], (double)out[1], (double)out[2],
           (double)out[3]);
    return 1;
}

int main(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    if (device == NULL || burn_extension_load("starter", &err) != BURN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("device     %s\n", burn_device_name(device));
    float typed[8];
    float named[8];
    float slope[8];
    burn_scope_begin();
    const int64_t dims[] = {2, 4};
    burn_tensor *plain = burn_tensor_from_data(device, BURN_F32, 2, dims, values);
    burn_var *x = burn_var_create(burn_device_autodiff(device), plain, &err);
    burn_tensor *y = starter_rms_norm(burn_var_get(x), 1e-6);
    burn_tensor *first = burn_slice(y, 1, 0, 1, 1);
    burn_grads *grads = burn_backward(burn_sum(first, 0, NULL, 0), NULL, 0, &err);
    int fine = read_row("by header", y, typed, &err) &&
               read_row("by name", by_name(plain, 1e-6), named, &err) &&
               read_row("gradient", burn_grads_get_var(grads, x), slope, &err);
    for (int i = 0; i < 8 && fine; i++) {
        fine = fabsf(typed[i] - named[i]) < 1e-6f;
    }
    /* In the row 3 4 0 0 the root mean square is 2.5: y0 is 1.2, its slope (1 - 1.44 / 4) / 2.5. */
    fine = fine && fabsf(typed[0] - 1.2f) < 1e-5f && fabsf(slope[0] - 0.256f) < 1e-5f;
    printf("%s\n", fine ? "fine" : "these numbers are wrong");
    burn_grads_free(grads);
    burn_scope_end();
    burn_shutdown();
    return fine ? 0 : 1;
}
