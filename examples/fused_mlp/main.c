/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_mlp - trains a network on handwritten digits with the ops of the extension "fused".
 *
 *   fused_mlp [--data DIR] [--batches N] [--tests N]
 *
 * The model is written without modules, as variables and calls: two dense layers with their
 * activations fused, a residual with layer norm, a gated layer, and Lion as the optimizer. The same
 * program runs on every backend: BURN_DEVICE=flex has kernels for these ops, on BURN_DEVICE=mock
 * they are made of others. Prints the loss now and then, and what share of the test images is
 * right.
 */
#include <burn/data.h>
#include <burn/device.h>
#include <burn/ext/fused.h>
#include <burn/grad.h>
#include <burn/ops.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 784, WIDTH = 128, CLASSES = 10, BATCH = 64 };

/* The parameters, in order; the moment of each lies beside it. */
enum { W1, B1, W2, B2, GAMMA, BETA, GATE, UP, W3, B3, N_PARAMS };

typedef struct model {
    burn_var *param[N_PARAMS];
    burn_var *moment[N_PARAMS];
} model;

typedef struct shape {
    uint32_t rank;
    int64_t dims[2];
} shape;

static const shape shapes[N_PARAMS] = {
    [W1] = {2, {PIXELS, WIDTH}},  [B1] = {1, {WIDTH}},        [W2] = {2, {WIDTH, WIDTH}},
    [B2] = {1, {WIDTH}},          [GAMMA] = {1, {WIDTH}},     [BETA] = {1, {WIDTH}},
    [GATE] = {2, {WIDTH, WIDTH}}, [UP] = {2, {WIDTH, WIDTH}}, [W3] = {2, {WIDTH, CLASSES}},
    [B3] = {1, {CLASSES}},
};

/* Matrices start as uniform numbers in +-sqrt(3 / inputs), gamma as ones, the rest as zeros. */
static void make_model(model *m, burn_device *device, burn_err *err)
{
    burn_device *plain = burn_device_inner(device);
    burn_scope_begin();
    for (int i = 0; i < N_PARAMS && err->code == BURN_OK; i++) {
        const shape *s = &shapes[i];
        burn_tensor *zeros = burn_zeros(plain, BURN_F32, s->rank, s->dims);
        burn_tensor *first = zeros;
        if (s->rank == 2) {
            double bound = sqrt(3.0 / (double)s->dims[0]);
            burn_tensor *u = burn_random_uniform(plain, BURN_F32, 2, s->dims);
            first = burn_mul(burn_sub(u, burn_scalar(0.5)), burn_scalar(2.0 * bound));
        } else if (i == GAMMA) {
            first = burn_add(zeros, burn_scalar(1.0));
        }
        m->param[i] = burn_var_create(device, first, err);
        m->moment[i] = burn_var_create(plain, zeros, err);
    }
    burn_scope_end();
}

static void free_model(model *m)
{
    for (int i = 0; i < N_PARAMS; i++) {
        burn_var_release(m->param[i]);
        burn_var_release(m->moment[i]);
    }
}

/* [batch, 784] -> [batch, 10] */
static burn_tensor *forward(const model *m, burn_tensor *x)
{
    burn_tensor *p[N_PARAMS];
    for (int i = 0; i < N_PARAMS; i++) {
        p[i] = burn_var_get(m->param[i]);
    }
    burn_tensor *h = burn_fused_matmul_bias_relu(x, p[W1], p[B1]);
    burn_tensor *deep = burn_fused_matmul_bias_gelu(h, p[W2], p[B2], 0);
    h = burn_fused_add_layer_norm(deep, h, p[GAMMA], p[BETA], 1, 1e-5);
    h = burn_fused_swiglu(burn_matmul(h, p[GATE]), burn_matmul(h, p[UP]));
    return burn_add(burn_matmul(h, p[W3]), p[B3]);
}

/* Forward, backward and a step of Lion; the loss before the step. */
static double train_step(model *m, burn_device *device, const burn_batch *batch, burn_err *err)
{
    const int64_t dims[2] = {batch->n_items, PIXELS};
    float loss = 0.0F;
    burn_scope_begin();
    burn_tensor *x = burn_tensor_from_data(device, BURN_F32, 2, dims, batch->data[0]);
    burn_tensor *labels = burn_tensor_from_data(device, BURN_I64, 1, dims, batch->data[1]);
    burn_tensor *mean = burn_cross_entropy(forward(m, x), labels, NULL, NULL);
    burn_grads *grads = burn_backward(mean, NULL, 0, err);
    for (int i = 0; i < N_PARAMS && grads != NULL && err->code == BURN_OK; i++) {
        burn_tensor *g = burn_grads_get_var(grads, m->param[i]);
        double decay = shapes[i].rank == 2 ? 0.01 : 0.0;
        burn_fused_lion_step(m->param[i], g, m->moment[i], 1e-4, 0.9, 0.99, decay, err);
    }
    burn_grads_free(grads);
    if (err->code == BURN_OK) {
        burn_read(mean, &loss, sizeof(loss), err);
    }
    burn_scope_end();
    return (double)loss;
}

static int64_t count_right(const model *m, burn_device *device, const burn_batch *batch,
                           burn_err *err)
{
    const int64_t dims[2] = {batch->n_items, PIXELS};
    int64_t right[1] = {0};
    burn_scope_begin();
    burn_no_grad_begin();
    burn_tensor *x = burn_tensor_from_data(device, BURN_F32, 2, dims, batch->data[0]);
    burn_tensor *labels = burn_tensor_from_data(device, BURN_I64, 1, dims, batch->data[1]);
    burn_tensor *same = burn_equal(burn_argmax(forward(m, x), 1, 0), labels);
    burn_read(burn_sum(burn_cast(same, BURN_I64), 0, NULL, 0), right, sizeof(right), err);
    burn_no_grad_end();
    burn_scope_end();
    return right[0];
}

static burn_loader *open_loader(const burn_mnist *digits, uint32_t flags, burn_err *err)
{
    const burn_loader_opts opts = {
        .struct_size = sizeof(opts), .flags = flags, .batch_size = BATCH, .seed = 7};
    burn_loader *loader = NULL;
    burn_loader_create(burn_mnist_dataset(digits), &opts, &loader, err);
    return loader;
}

static void train(model *m, burn_device *device, const burn_mnist *digits, long batches,
                  burn_err *err)
{
    burn_loader *loader = open_loader(digits, BURN_LOADER_SHUFFLE | BURN_LOADER_DROP_LAST, err);
    burn_batch batch;
    BURN_INIT(&batch, burn_batch);
    for (long i = 0; i < batches && err->code == BURN_OK; i++) {
        int32_t code = burn_loader_next(loader, &batch, err);
        if (code == BURN_E_END) {
            burn_loader_begin(loader, (uint64_t)(i / burn_loader_batches(loader)), 0, err);
            code = burn_loader_next(loader, &batch, err);
        }
        double loss = code == BURN_OK ? train_step(m, device, &batch, err) : 0.0;
        if (err->code == BURN_OK && (i % 100 == 0 || i + 1 == batches || batches <= 20)) {
            printf("batch %5ld  loss %.6f\n", i + 1, loss);
        }
    }
    burn_loader_destroy(loader);
}

static void test(const model *m, burn_device *device, const burn_mnist *digits, long tests,
                 burn_err *err)
{
    burn_loader *loader = open_loader(digits, 0, err);
    burn_batch batch;
    BURN_INIT(&batch, burn_batch);
    int64_t right = 0;
    int64_t seen = 0;
    while (seen < tests && err->code == BURN_OK &&
           burn_loader_next(loader, &batch, err) == BURN_OK) {
        right += count_right(m, device, &batch, err);
        seen += batch.n_items;
    }
    burn_loader_destroy(loader);
    if (err->code == BURN_OK && seen > 0) {
        printf("right: %.2f %% of %ld test images\n", 100.0 * (double)right / (double)seen,
               (long)seen);
    }
}

/* A whole number; 0 when the text is none. */
static int number(const char *text, long *out)
{
    char *end = NULL;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && *out >= 0;
}

int main(int argc, char **argv)
{
    const char *data = "examples/data/mnist";
    long batches = 1500;
    long tests = 10000;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int is_data = strcmp(argv[i], "--data") == 0 && value[0] != '\0';
        data = is_data ? value : data;
        if (!is_data && !(strcmp(argv[i], "--batches") == 0 && number(value, &batches)) &&
            !(strcmp(argv[i], "--tests") == 0 && number(value, &tests))) {
            fprintf(stderr, "usage: fused_mlp [--data DIR] [--batches N] [--tests N]\n");
            return 2;
        }
    }
    burn_err err = BURN_ERR_INIT;
    burn_mnist *digits = NULL;
    burn_mnist *unseen = NULL;
    model m = {{NULL}, {NULL}};
    burn_device *device = burn_device_open(NULL, &err);
    if (device != NULL && burn_extension_load("fused", &err) == BURN_OK &&
        burn_mnist_open(data, BURN_MNIST_NORMALIZE, &digits, &err) == BURN_OK &&
        burn_mnist_open(data, BURN_MNIST_NORMALIZE | BURN_MNIST_TEST, &unseen, &err) == BURN_OK) {
        printf("device %s\n", burn_device_name(device));
        burn_seed(42);
        make_model(&m, burn_device_autodiff(device), &err);
    }
    if (err.code == BURN_OK) {
        train(&m, device, digits, batches, &err);
    }
    if (err.code == BURN_OK) {
        test(&m, device, unseen, tests, &err);
    }
    if (err.code != BURN_OK) {
        fprintf(stderr, "fused_mlp: %s\n", err.text);
    }
    free_model(&m);
    burn_mnist_close(digits);
    burn_mnist_close(unseen);
    return err.code != BURN_OK;
}
