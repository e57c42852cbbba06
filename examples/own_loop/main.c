/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * own_loop - a training loop of one's own: modules, an optimizer step, validation, a step that is
 * kept and run again, checkpoints. docs/tutorial_loop.md goes through it from top to bottom.
 *
 *   own_loop [--data DIR] [--epochs N] [--batches N] [--tests N] [--checkpoint FILE] [--no-replay]
 *
 * BURN_DEVICE chooses where it runs. Where the checkpoint exists, the run goes on from it, with the
 * bits of a run that was never stopped. --batches and --tests: of each epoch, 0 for all.
 */
#include <burn/build.h>
#include <burn/op_attrs.h>
#include <burn/replay.h>
#include <burn/store.h>
#include <burn/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = 28 * 28, CLASSES = 10, BATCH = 64, TEST_BATCH = 500 };

typedef struct options {
    const char *data;
    const char *checkpoint;
    long epochs;
    long batches;
    long tests;
    int replay;
} options;

/* All that a run is made of. `root` holds what a checkpoint must hold: the network and, below
 * "velocity", the optimizer's state. */
typedef struct trainer {
    burn_device *device;
    burn_module *root;
    burn_module *net;
    burn_module *velocity;
    burn_replay *step; /* NULL: not kept yet */
    int keep_step;
} trainer;

/* ---- the model ------------------------------------------------------------------------------- */

/* A velocity of zeros for each parameter, as a buffer: it is saved, and has no gradient. */
static void make_velocities(trainer *t, burn_err *err)
{
    uint32_t n = burn_module_n_vars(t->net);
    burn_scope_begin();
    for (uint32_t i = 0; i < n && err->code == BURN_OK; i++) {
        char name[16];
        int64_t dims[BURN_MAX_RANK];
        burn_tensor *p = burn_var_get(burn_module_var_at(t->net, i, NULL, NULL));
        for (uint32_t d = 0; d < burn_rank(p); d++) {
            dims[d] = burn_dim(p, d);
        }
        (void)snprintf(name, sizeof(name), "v%u", (unsigned)i);
        burn_module_add(t->velocity, name, burn_zeros(t->device, BURN_F32, burn_rank(p), dims), 0,
                        err);
    }
    burn_scope_end();
}

static void make_trainer(trainer *t, burn_device *device, burn_err *err)
{
    t->device = device;
    t->root = burn_module_create(burn_device_autodiff(device), err);
    t->net = burn_module_child(t->root, "net", err);
    t->velocity = burn_module_child(t->root, "velocity", err);
    burn_nn_flatten(t->net, "flatten", err);
    burn_nn_linear(t->net, "fc1", PIXELS, 64, 1, err);
    burn_nn_activation(t->net, "relu", BURN_RELU, err);
    burn_nn_linear(t->net, "fc2", 64, CLASSES, 1, err);
    if (err->code == BURN_OK) {
        make_velocities(t, err);
    }
}

/* ---- one step -------------------------------------------------------------------------------- */

/* SGD with momentum 0.9: each parameter and its velocity are overwritten in place. */
static void update(trainer *t, burn_grads *grads, burn_tensor *lr, burn_err *err)
{
    burn_attrs_sgd attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.momentum = 0.9;
    uint32_t n = burn_module_n_vars(t->net);
    for (uint32_t i = 0; i < n && err->code == BURN_OK; i++) {
        burn_var *param = burn_module_var_at(t->net, i, NULL, NULL);
        burn_var *velocity = burn_module_var_at(t->velocity, i, NULL, NULL);
        burn_var *const vars[4] = {param, NULL, velocity, NULL};
        burn_tensor *const in[4] = {NULL, burn_grads_get_var(grads, param), NULL, lr};
        burn_var_update(BURN_OP_SGD_STEP, &attrs, (uint32_t)sizeof(attrs), vars, in, 4, err);
    }
}

/* Forward, backward, update; the loss before the update. */
static burn_tensor *train_step(trainer *t, burn_tensor *x, burn_tensor *labels, burn_tensor *lr,
                               burn_err *err)
{
    burn_tensor *loss = burn_cross_entropy(burn_forward(t->net, x), labels, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, err);
    if (grads != NULL) {
        update(t, grads, lr, err);
    }
    burn_grads_free(grads);
    return burn_detach(loss);
}

/* The first step is called and kept, the others are that step again with other inputs. */
static burn_tensor *kept_step(trainer *t, burn_tensor *x, burn_tensor *labels, double lr,
                              burn_err *err)
{
    burn_tensor *loss = NULL;
    if (t->step == NULL) {
        burn_replay_begin(t->device, err);
        burn_replay_port(x); /* one statement each: their order is that of the inputs of a run */
        burn_replay_port(labels);
        burn_tensor *rate = burn_replay_scalar(burn_scalar(lr), "lr", 0.0);
        loss = train_step(t, x, labels, rate, err);
        t->step = burn_replay_end(&loss, 1, err);
        return loss;
    }
    burn_tensor *const in[2] = {x, labels};
    burn_replay_set(t->step, "lr", lr, err);
    burn_replay_run(t->step, in, 2, &loss, 1, err);
    return loss;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static burn_loader *open_loader(const burn_mnist *digits, int64_t size, uint32_t flags,
                                burn_err *err)
{
    const burn_loader_opts opts = {
        .struct_size = sizeof(opts), .flags = flags, .batch_size = size, .seed = 7, .workers = 1};
    burn_loader *loader = NULL;
    burn_loader_create(burn_mnist_dataset(digits), &opts, &loader, err);
    return loader;
}

/* A batch as tensors of the innermost scope. */
static burn_tensor *images(const trainer *t, const burn_batch *batch)
{
    const int64_t dims[4] = {batch->n_items, 1, 28, 28};
    return burn_tensor_from_data(t->device, BURN_F32, 4, dims, batch->data[0]);
}

static burn_tensor *classes(const trainer *t, const burn_batch *batch)
{
    return burn_tensor_from_data(t->device, BURN_I64, 1, &batch->n_items, batch->data[1]);
}

/* The mean loss over the epoch. The order of its batches follows from seed and number alone. */
static double train_epoch(trainer *t, burn_loader *loader, long epoch, long batches, burn_err *err)
{
    burn_metric_mean mean;
    burn_batch batch;
    double value = 0.0;
    double lr = 0.05 * pow(0.5, (double)epoch);
    BURN_INIT(&mean, burn_metric_mean);
    BURN_INIT(&batch, burn_batch);
    burn_module_set_training(t->root, 1);
    burn_loader_begin(loader, (uint64_t)epoch, 0, err);
    for (long i = 0; (batches == 0 || i < batches) && err->code == BURN_OK; i++) {
        if (burn_loader_next(loader, &batch, err) != BURN_OK) {
            break; /* the end of the epoch, or a failure that is in err */
        }
        burn_scope_begin();
        burn_tensor *x = images(t, &batch);
        burn_tensor *labels = classes(t, &batch);
        burn_tensor *loss = t->keep_step ? kept_step(t, x, labels, lr, err)
                                         : train_step(t, x, labels, burn_scalar(lr), err);
        double item = err->code == BURN_OK ? burn_item(loss, err) : 0.0;
        burn_metric_mean_add_mean(&mean, item, batch.n_items, err);
        burn_scope_end();
    }
    burn_metric_mean_value(&mean, &value, err);
    return value;
}

/* The share of right answers. */
static double validate(trainer *t, burn_loader *loader, long tests, burn_err *err)
{
    burn_metric_accuracy accuracy;
    burn_batch batch;
    double value = 0.0;
    BURN_INIT(&accuracy, burn_metric_accuracy);
    BURN_INIT(&batch, burn_batch);
    burn_module_set_training(t->root, 0);
    burn_no_grad_begin();
    burn_loader_begin(loader, 0, 0, err);
    for (long i = 0; (tests == 0 || i < tests) && err->code == BURN_OK; i++) {
        if (burn_loader_next(loader, &batch, err) != BURN_OK) {
            break;
        }
        static float scores[TEST_BATCH * CLASSES];
        burn_scope_begin();
        burn_tensor *y = burn_forward(t->net, images(t, &batch));
        burn_read(y, scores, (size_t)batch.n_items * CLASSES * sizeof(float), err);
        burn_metric_accuracy_add_scores(&accuracy, scores, batch.n_items, CLASSES, batch.data[1],
                                        BURN_METRIC_NO_IGNORE, err);
        burn_scope_end();
    }
    burn_no_grad_end();
    burn_metric_accuracy_value(&accuracy, &value, err);
    return value;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Parameters, velocities and how many epochs are done; the file is old or new, never half. */
static void save(trainer *t, const char *path, long epochs_done, burn_err *err)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%ld", epochs_done);
    const char *key = "epochs_done";
    const char *value = text;
    const burn_save_opts opts = {sizeof(opts), 1, &key, &value, NULL};
    burn_save(t->root, path, &opts, err);
}

/* How many epochs are done; 0 when there is no checkpoint yet. */
static long resume(trainer *t, const char *path, burn_err *err)
{
    long done = 0;
    if (access(path, F_OK) != 0) {
        return 0;
    }
    burn_load(t->root, path, 0, NULL, err);
    burn_file *file = burn_file_open(path, err);
    for (uint32_t i = 0; file != NULL && i < burn_file_n_metadata(file); i++) {
        const char *value = NULL;
        if (strcmp(burn_file_metadata(file, i, &value), "epochs_done") == 0) {
            done = strtol(value, NULL, 10);
        }
    }
    burn_file_close(file);
    return done;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void run(trainer *t, const options *o, const burn_mnist *digits, const burn_mnist *unseen,
                burn_err *err)
{
    uint32_t flags = BURN_LOADER_SHUFFLE | BURN_LOADER_DROP_LAST;
    burn_loader *batches = open_loader(digits, BATCH, flags, err);
    burn_loader *tests = open_loader(unseen, TEST_BATCH, 0, err);
    long epoch = err->code == BURN_OK ? resume(t, o->checkpoint, err) : 0;
    if (epoch > 0 && err->code == BURN_OK) {
        printf("%s: %ld epochs are done\n", o->checkpoint, epoch);
    }
    for (; epoch < o->epochs && err->code == BURN_OK; epoch++) {
        double loss = train_epoch(t, batches, epoch, o->batches, err);
        double right = validate(t, tests, o->tests, err);
        if (err->code == BURN_OK) {
            save(t, o->checkpoint, epoch + 1, err);
        }
        if (err->code == BURN_OK) {
            printf("epoch %ld: loss %.6f (%a), right %.2f %%\n", epoch + 1, loss, loss,
                   100.0 * right);
        }
    }
    burn_loader_destroy(batches);
    burn_loader_destroy(tests);
}

/* A whole number of at least `least`; 0 when the text is none. */
static int number(const char *text, long least, long *out)
{
    char *end = NULL;
    *out = strtol(text, &end, 10);
    return end != text && *end == '\0' && *out >= least;
}

/* One option with its value; 0 when it is none. */
static int take(options *o, const char *name, const char *value)
{
    if (strcmp(name, "--data") == 0) {
        o->data = value;
    } else if (strcmp(name, "--checkpoint") == 0) {
        o->checkpoint = value;
    } else {
        return (strcmp(name, "--epochs") == 0 && number(value, 1, &o->epochs)) ||
               (strcmp(name, "--batches") == 0 && number(value, 0, &o->batches)) ||
               (strcmp(name, "--tests") == 0 && number(value, 0, &o->tests));
    }
    return 1;
}

static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-replay") == 0) {
            o->replay = 0;
        } else if (i + 1 < argc && take(o, argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr, "usage: own_loop [--data DIR] [--epochs N] [--batches N] [--tests N]\n"
                            "                [--checkpoint FILE] [--no-replay]\n");
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    options o = {"examples/data/mnist", "own_loop.bpk", 3, 0, 0, 1};
    if (!parse(&o, argc, argv)) {
        return 2;
    }
    burn_err err = BURN_ERR_INIT;
    burn_mnist *digits = NULL;
    burn_mnist *unseen = NULL;
    trainer t = {.keep_step = o.replay};
    burn_device *device = burn_device_open(NULL, &err);
    if (device != NULL &&
        burn_mnist_open(o.data, BURN_MNIST_NORMALIZE, &digits, &err) == BURN_OK &&
        burn_mnist_open(o.data, BURN_MNIST_NORMALIZE | BURN_MNIST_TEST, &unseen, &err) == BURN_OK) {
        printf("device %s\n", burn_device_name(device));
        burn_seed(42);
        make_trainer(&t, device, &err);
    }
    if (err.code == BURN_OK) {
        run(&t, &o, digits, unseen, &err);
    }
    if (err.code != BURN_OK) {
        fprintf(stderr, "own_loop: %s\n", err.text);
    }
    burn_replay_free(t.step);
    burn_module_free(t.root);
    burn_mnist_close(digits);
    burn_mnist_close(unseen);
    return err.code != BURN_OK;
}
