/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * losses.c - trains a small digit classifier for some steps and prints each batch's loss exactly.
 *
 *   losses DATA_FOLDER STEPS EPOCHS
 *
 * The device, window and thread count come from the environment; losses.py runs it under several
 * and compares. After each epoch it prints what the device's memory has reserved.
 */
#include <burn/store.h>
#include <burn/train.h>
#include <stdio.h>
#include <stdlib.h>

static burn_module *make_model(burn_device *device, burn_err *err)
{
    burn_module *net = burn_module_create(device, err);
    burn_nn_conv2d(net, "conv1", 1, 4, 5, NULL, err);
    burn_nn_batch_norm(net, "norm", 4, err);
    burn_nn_activation(net, "relu1", BURN_RELU, err);
    burn_nn_max_pool2d(net, "pool1", 4, 4, err);
    burn_nn_flatten(net, "flatten", err);
    burn_nn_linear(net, "fc1", 4 * 6 * 6, 32, 1, err);
    burn_nn_activation(net, "gelu", BURN_GELU, err);
    burn_nn_dropout(net, "dropout", 0.1, err);
    burn_nn_linear(net, "fc2", 32, 10, 1, err);
    return net;
}

static int32_t show(void *user, const burn_train_event *e)
{
    burn_device *device = user;
    if (e->kind == BURN_EVENT_BATCH) {
        printf("loss %a\n", e->batch_loss);
    } else if (e->kind == BURN_EVENT_EPOCH_END) {
        burn_memory memory = {.struct_size = sizeof(memory)};
        burn_err err = BURN_ERR_INIT;
        if (burn_memory_report(device, &memory, &err) == BURN_OK) {
            printf("reserved %llu\n", (unsigned long long)memory.reserved);
        }
    }
    return 0;
}

static int fail(const burn_err *err)
{
    fprintf(stderr, "losses: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    burn_mnist *digits = NULL;
    if (argc != 4 || burn_mnist_open(argv[1], BURN_MNIST_TEST | BURN_MNIST_NORMALIZE, &digits,
                                     &err) != BURN_OK) {
        return fail(&err);
    }
    burn_device *device = burn_device_open(NULL, &err);
    if (device == NULL) {
        return fail(&err);
    }
    burn_seed(7);
    burn_module *net = make_model(burn_device_autodiff(device), &err);
    burn_optimizer *optimizer = burn_optimizer_adam(net, NULL, &err);
    if (err.code != BURN_OK) {
        return fail(&err);
    }
    const burn_fit_opts opts = {.struct_size = sizeof(opts),
                                .workers = 1,
                                .epochs = strtol(argv[3], NULL, 10),
                                .batch_size = 16,
                                .max_batches = strtol(argv[2], NULL, 10),
                                .seed = 3,
                                .lr = 2e-3,
                                .on_event = show,
                                .user = device};
    if (burn_fit(net, optimizer, burn_mnist_dataset(digits), NULL, &opts, &err) != BURN_OK) {
        return fail(&err);
    }
    burn_optimizer_free(optimizer);
    burn_module_free(net);
    burn_mnist_close(digits);
    return 0;
}
