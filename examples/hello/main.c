/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hello - fits y = 3a - 2b to four points by gradient descent: the README's example, word for word
 * (tests/checks/readme.py compares the two).
 *
 * One scope per step, one variable, one gradient, one read at the end. BURN_DEVICE chooses where it
 * runs.
 */
#include <burn/device.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <burn/tensor.h>
#include <stdio.h>

int main(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *dev = burn_device_open(NULL, &err); /* BURN_DEVICE, or the best there is */
    if (dev == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const float xs[] = {1, 0, 0, 1, 1, 1, 2, -1}, ys[] = {3, -2, 1, 8}, zeros[] = {0, 0};
    burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 2, (int64_t[]){4, 2}, xs);
    burn_tensor *y = burn_tensor_from_data(dev, BURN_F32, 2, (int64_t[]){4, 1}, ys);
    burn_tensor *start = burn_tensor_from_data(dev, BURN_F32, 2, (int64_t[]){2, 1}, zeros);
    burn_var *w = burn_var_create(burn_device_autodiff(dev), start, &err);
    for (int step = 0; step < 100 && err.code == BURN_OK; step++) {
        burn_scope_begin();
        burn_tensor *diff = burn_sub(burn_matmul(x, burn_var_get(w)), y);
        burn_grads *grads = burn_backward(burn_mul(diff, diff), NULL, 0, &err);
        burn_no_grad_begin();
        burn_tensor *change = burn_mul(burn_grads_get_var(grads, w), burn_scalar(0.05));
        burn_var_assign(w, burn_sub(burn_var_get(w), change), &err);
        burn_no_grad_end();
        burn_grads_free(grads);
        burn_scope_end();
    }
    float fit[2] = {0, 0};
    burn_read(burn_var_get(w), fit, sizeof(fit), &err);
    printf("%.3f %.3f %s\n", (double)fit[0], (double)fit[1], err.code == BURN_OK ? "" : err.text);
    return err.code != BURN_OK;
}
