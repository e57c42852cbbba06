/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * train.c - a user of an installed libburn-train: learns in which quadrants a point lies.
 *
 * Built by the tests here with `pkg-config burn-train` alone and run on the device that BURN_DEVICE
 * names. Prints one line that they look for; exit status 1 when nothing was learned.
 */
#include <burn/device.h>
#include <burn/metric.h>
#include <burn/ops.h>
#include <burn/optim.h>
#include <stdio.h>

enum { POINTS = 64, STEPS = 60 };

/* Points of an 8 x 8 grid without the axes; class 1 where x and y have one sign. */
static void make_points(float points[POINTS][2], int64_t classes[POINTS])
{
    for (int i = 0; i < POINTS; i++) {
        points[i][0] = (float)(i % 8) / 4.0f - 0.875f;
        points[i][1] = (float)(i / 8) / 4.0f - 0.875f;
        classes[i] = (points[i][0] > 0) == (points[i][1] > 0);
    }
}

static burn_module *make_model(burn_device *device, burn_err *err)
{
    burn_module *net = burn_module_create(burn_device_autodiff(device), err);
    burn_nn_linear(net, "in", 2, 16, 1, err);
    burn_nn_activation(net, "relu", BURN_RELU, err);
    burn_nn_linear(net, "out", 16, 2, 1, err);
    return net;
}

static double step(burn_module *net, burn_optimizer *optimizer, burn_tensor *x, burn_tensor *y,
                   burn_err *err)
{
    burn_scope_begin();
    burn_tensor *loss = burn_cross_entropy(burn_forward(net, x), y, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, err);
    if (grads != NULL) {
        burn_optimizer_step(optimizer, grads, 0.05, err);
    }
    double value = burn_item(loss, err);
    burn_grads_free(grads);
    burn_scope_end();
    return value;
}

static double accuracy(burn_module *net, burn_tensor *x, const int64_t *classes, burn_err *err)
{
    int64_t predicted[POINTS] = {0};
    double value = 0;
    burn_metric_accuracy metric = {.struct_size = sizeof(metric)};
    burn_read(burn_argmax(burn_forward(net, x), 1, 0), predicted, sizeof(predicted), err);
    burn_metric_accuracy_add(&metric, predicted, classes, POINTS, BURN_METRIC_NO_IGNORE, err);
    burn_metric_accuracy_value(&metric, &value, err);
    return value;
}

int main(void)
{
    static float points[POINTS][2];
    static int64_t classes[POINTS];
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    if (device == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    burn_seed(7);
    make_points(points, classes);
    burn_scope_begin();
    burn_module *net = make_model(device, &err);
    burn_optimizer *optimizer = burn_optimizer_adam(net, NULL, &err);
    burn_tensor *x = burn_tensor_from_data(device, BURN_F32, 2, (int64_t[]){POINTS, 2}, points);
    burn_tensor *y = burn_tensor_from_data(device, BURN_I64, 1, (int64_t[]){POINTS}, classes);
    double first = 0;
    double last = 0;
    for (int i = 0; i < STEPS && err.code == BURN_OK; i++) {
        last = step(net, optimizer, x, y, &err);
        first = i == 0 ? last : first;
    }
    double share = accuracy(net, x, classes, &err);
    int learned = err.code == BURN_OK && last < first / 2 && share > 0.9;
    printf("%s on %s: loss %.2f to %.2f, accuracy %.2f %s\n", learned ? "learned" : "failed",
           burn_device_name(device), first, last, share, err.code == BURN_OK ? "" : err.text);
    burn_optimizer_free(optimizer);
    burn_module_free(net);
    burn_scope_end();
    burn_shutdown();
    return learned ? 0 : 1;
}
