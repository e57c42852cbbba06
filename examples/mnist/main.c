/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mnist - trains a small convolutional network on handwritten digits and saves it.
 *
 *   mnist [--data DIR] [--epochs N] [--batches N] [--images N] [--out FILE] [--losses FILE]
 *         [--replay]
 *
 * BURN_DEVICE chooses where it runs. --images takes the first N of each set, --losses writes the
 * loss of each batch to the last bit, --replay keeps one step and runs it again. The saved file
 * holds the weights and the inference graph, with its preprocessing, so that `burn predict FILE`
 * needs nothing else.
 */
#include <burn/store.h>
#include <burn/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the command line says. */
typedef struct options {
    const char *data;
    const char *out;
    FILE *losses; /* NULL: they are not written */
    long epochs;
    long batches; /* per epoch, 0: all */
    long images;  /* 0: all */
    int replay;
    int quiet;
} options;

/* 28x28 -> two convolutions with pooling -> two dense layers -> 10 classes. */
static burn_module *make_model(burn_device *device, burn_err *err)
{
    const burn_conv_opts pad = {.struct_size = sizeof(pad), .padding = {1, 1}};
    burn_module *net = burn_module_create(device, err);
    burn_nn_conv2d(net, "conv1", 1, 16, 3, &pad, err);
    burn_nn_activation(net, "relu1", BURN_RELU, err);
    burn_nn_max_pool2d(net, "pool1", 2, 2, err);
    burn_nn_conv2d(net, "conv2", 16, 32, 3, &pad, err);
    burn_nn_batch_norm(net, "norm", 32, err);
    burn_nn_activation(net, "relu2", BURN_RELU, err);
    burn_nn_max_pool2d(net, "pool2", 2, 2, err);
    burn_nn_flatten(net, "flatten", err);
    burn_nn_linear(net, "fc1", 32 * 7 * 7, 128, 1, err);
    burn_nn_activation(net, "relu3", BURN_RELU, err);
    burn_nn_dropout(net, "dropout", 0.25, err);
    burn_nn_linear(net, "fc2", 128, 10, 1, err);
    return net;
}

/* A progress bar with throughput and time left, and a line per epoch. */
static int32_t show(void *user, const burn_train_event *e)
{
    const options *o = user;
    int quiet = o->quiet;
    if (e->kind == BURN_EVENT_BATCH && o->losses != NULL) {
        fprintf(o->losses, "%a\n", e->batch_loss);
    }
    double rate = e->seconds > 0 ? (double)e->items / e->seconds : 0;
    if (e->kind == BURN_EVENT_BATCH && !quiet) {
        int done = (int)(30 * e->batch / e->n_batches);
        double left = e->seconds / (double)e->batch * (double)(e->n_batches - e->batch);
        fprintf(stderr, "\repoch %d/%d [%-30.*s] %6.0f images/s, loss %.4f, %3.0f s left ",
                (int)e->epoch + 1, (int)e->n_epochs, done, "##############################", rate,
                e->loss, left);
    } else if (e->kind == BURN_EVENT_EPOCH_END) {
        if (!quiet) {
            fprintf(stderr, "\r%90s\r", "");
        }
        printf("%5d  %10.6f  %8.4f  %10.6f  %8.4f  %7.1f\n", (int)e->epoch + 1, e->loss,
               e->accuracy, e->valid_loss, e->valid_accuracy, e->seconds);
        fflush(stdout);
    }
    return 0;
}

/* What `burn predict` runs: one image of bytes -> probabilities. */
static burn_graph *capture_inference(burn_module *net, burn_err *err)
{
    static const unsigned char pixels[28 * 28] = {0};
    const int64_t dims[4] = {1, 1, 28, 28};
    burn_device *device = burn_device_inner(burn_module_device(net));
    burn_tensor *image = burn_tensor_from_data(device, BURN_U8, 4, dims, pixels);
    burn_module_set_training(net, 0);
    burn_no_grad_begin();
    burn_capture_begin(err);
    burn_capture_input(image, "image");
    burn_tensor *x = burn_div(burn_cast(image, BURN_F32), burn_scalar(255.0));
    x = burn_div(burn_sub(x, burn_scalar(0.1307)), burn_scalar(0.3081));
    burn_tensor *probabilities = burn_softmax(burn_forward(net, x), 1);
    burn_graph *graph = burn_capture_end(&probabilities, 1, net, err);
    burn_no_grad_end();
    return graph;
}

static int save_model(burn_module *net, const char *path, double accuracy, burn_err *err)
{
    char text[32];
    snprintf(text, sizeof(text), "%.4f", accuracy);
    const char *keys[2] = {"dataset", "test_accuracy"};
    const char *values[2] = {"MNIST", text};
    burn_graph *graph = capture_inference(net, err);
    const burn_save_opts opts = {sizeof(opts), 2, keys, values, graph};
    int failed = graph == NULL || burn_save(net, path, &opts, err) != BURN_OK;
    burn_graph_free(graph);
    return failed;
}

static int fail(const char *what, const burn_err *err)
{
    fprintf(stderr, "mnist: %s: %s\n", what, err->text);
    return 1;
}

/* A whole number of at least `least`; 0 when the text is none. */
static int number(const char *text, long least, long *out)
{
    char *end;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && *out >= least;
}

/* Asked before the training, not after it: 1 when a file can be made at `path`. */
static int can_save(const char *path)
{
    char folder[4096] = ".";
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return 0;
    }
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        int n = slash == path ? 1 : (int)(slash - path);
        (void)snprintf(folder, sizeof(folder), "%.*s", n, path);
    }
    return access(folder, W_OK | X_OK) == 0;
}

/* One option with its value, or NULL; 0 when it is none. */
static int take(options *o, const char *name, const char *value)
{
    if (value == NULL) {
        return 0;
    }
    if (strcmp(name, "--data") == 0) {
        o->data = value;
    } else if (strcmp(name, "--out") == 0) {
        o->out = value;
    } else if (strcmp(name, "--losses") == 0) {
        o->losses = fopen(value, "w");
        return o->losses != NULL;
    } else {
        return (strcmp(name, "--epochs") == 0 && number(value, 1, &o->epochs)) ||
               (strcmp(name, "--batches") == 0 && number(value, 0, &o->batches)) ||
               (strcmp(name, "--images") == 0 && number(value, 1, &o->images));
    }
    return 1;
}

static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--replay") == 0) {
            o->replay = 1;
        } else if (take(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) {
            i++;
        } else {
            fprintf(stderr, "mnist: %s: no such option, or not with this value\n", argv[i]);
            fprintf(stderr, "usage: mnist [--data DIR] [--epochs N] [--batches N] [--images N]\n"
                            "             [--out FILE] [--losses FILE] [--replay]\n");
            return 0;
        }
    }
    return 1;
}

/* The first `images` of them. */
static burn_dataset part_of(const burn_mnist *set, long images)
{
    burn_dataset part = *burn_mnist_dataset(set);
    part.count = images > 0 && images < part.count ? images : part.count;
    return part;
}

static int train(options *o, burn_device *device, const burn_mnist *set, const burn_mnist *test)
{
    burn_err err = BURN_ERR_INIT;
    burn_module *net = make_model(burn_device_autodiff(device), &err);
    burn_optimizer *optimizer = burn_optimizer_adamw(net, NULL, &err);
    if (err.code != BURN_OK) {
        return fail("model", &err);
    }
    printf("device %s, %d parameters\n", burn_device_name(device), (int)burn_module_n_params(net));
    printf("epoch        loss  accuracy   test loss  accuracy  seconds\n");
    const burn_dataset digits = part_of(set, o->images);
    const burn_dataset unseen = part_of(test, o->images);
    const burn_fit_opts opts = {.struct_size = sizeof(opts), .workers = 1, .epochs = o->epochs,
                                .batch_size = 64, .max_batches = o->batches, .seed = 42,
                                .lr = 1e-3, .lr_decay = 0.5, .on_event = show, .user = o,
                                .replay = (uint32_t)o->replay};
    double accuracy = 0;
    if (burn_fit(net, optimizer, &digits, &unseen, &opts, &err) != BURN_OK ||
        burn_evaluate(net, &unseen, 500, NULL, &accuracy, &err) != BURN_OK) {
        return fail("training", &err);
    }
    if (save_model(net, o->out, accuracy, &err)) {
        return fail("saving", &err);
    }
    printf("saved %s\ntest accuracy: %.4f\n", o->out, accuracy);
    burn_optimizer_free(optimizer);
    burn_module_free(net);
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.data = "examples/data/mnist", .out = "model.bpk", .epochs = 3};
    if (!parse(&o, argc, argv)) {
        return 2;
    }
    if (!can_save(o.out)) {
        fprintf(stderr, "mnist: --out %s: it is no file, or its folder cannot be written to\n",
                o.out);
        return 1;
    }
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    burn_mnist *set = NULL;
    burn_mnist *test = NULL;
    if (device == NULL) {
        return fail("device", &err);
    }
    if (burn_mnist_open(o.data, BURN_MNIST_NORMALIZE, &set, &err) != BURN_OK ||
        burn_mnist_open(o.data, BURN_MNIST_TEST | BURN_MNIST_NORMALIZE, &test, &err) != BURN_OK) {
        return fail("data", &err);
    }
    o.quiet = !isatty(STDERR_FILENO);
    burn_seed(42);
    int status = train(&o, device, set, test);
    if (o.losses != NULL && fclose(o.losses) != 0) {
        fprintf(stderr, "mnist: the losses could not be written\n");
        status = 1;
    }
    burn_mnist_close(set);
    burn_mnist_close(test);
    return status;
}
