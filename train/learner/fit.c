/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fit.c - the training loop: forward, loss, backward, step, metrics, events.
 *
 * A batch's loss and hits are read right after its step, so an event never tells what is not known.
 * Each batch runs in a scope of its own; only parameters outlive it. Where steps are replayed, the
 * first is called, since it makes the optimizer's state, the second is kept, and those of its batch
 * size are run from it.
 */
#include "train/base/error.h"

#include <burn/replay.h>
#include <burn/train.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

typedef struct run {
    burn_module *model;
    burn_optimizer *optimizer; /* NULL: evaluation */
    burn_device *device;
    burn_metric_mean loss;
    burn_metric_accuracy accuracy;
    double batch_loss;
    double lr;
    burn_replay *kept; /* the step, NULL before it was kept */
    int64_t kept_items; /* of its batches; 0: no step is kept */
} run;

/* What a step makes. */
enum { LOSS, HITS, N_MADE };

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A field of a batch as a tensor. */
static burn_tensor *field(const run *r, const burn_dataset *dataset, const burn_batch *batch,
                          uint32_t i)
{
    const burn_field *f =
        (const burn_field *)(const void *)((const char *)dataset->fields +
                                           (size_t)i * dataset->field_stride);
    int64_t dims[BURN_MAX_RANK];
    dims[0] = batch->n_items;
    for (uint32_t d = 0; d < f->rank && d + 1 < BURN_MAX_RANK; d++) {
        dims[d + 1] = f->dims[d];
    }
    return burn_tensor_from_data(r->device, f->dtype, f->rank + 1u, dims, batch->data[i]);
}

static int32_t step(run *r, burn_tensor *loss, burn_err *err)
{
    burn_grads *grads = burn_backward(loss, NULL, 0, err);
    if (grads == NULL) {
        return err->code;
    }
    int32_t rc = burn_optimizer_step(r->optimizer, grads, r->lr, err);
    burn_grads_free(grads);
    return rc;
}

/* Everything of a batch but to read what it made. */
static int32_t make(run *r, burn_tensor *x, burn_tensor *target, burn_tensor **made, burn_err *err)
{
    burn_tensor *logits = burn_forward(r->model, x);
    made[LOSS] = burn_cross_entropy(logits, target, NULL, NULL);
    int32_t rc = burn_tensor_error(made[LOSS], err);
    if (rc == BURN_OK && r->optimizer != NULL) {
        rc = step(r, made[LOSS], err);
    }
    if (rc == BURN_OK) {
        burn_no_grad_begin();
        burn_tensor *right = burn_equal(burn_argmax(logits, 1, 0), target);
        made[HITS] = burn_sum(burn_cast(right, BURN_I64), 0, NULL, 0);
        burn_no_grad_end();
    }
    return rc;
}

/* The same, and it is kept. */
static int32_t keep(run *r, burn_tensor *x, burn_tensor *target, burn_tensor **made,
                    burn_err *err)
{
    int32_t rc = burn_replay_begin(r->device, err);
    if (rc != BURN_OK) {
        return rc;
    }
    (void)burn_replay_port(x);
    (void)burn_replay_port(target);
    rc = make(r, x, target, made, err);
    r->kept = burn_replay_end(made, rc == BURN_OK ? N_MADE : 0, rc == BURN_OK ? err : NULL);
    return rc == BURN_OK && r->kept == NULL ? err->code : rc;
}

static int32_t run_kept(run *r, burn_tensor *x, burn_tensor *target, burn_tensor **made,
                        burn_err *err)
{
    burn_tensor *inputs[2] = {x, target};
    double number = (double)burn_optimizer_steps(r->optimizer) + 1.0;
    int32_t rc = burn_replay_set(r->kept, "lr", r->lr, err);
    (void)burn_replay_set(r->kept, "steps", number, NULL); /* some optimizers count them */
    rc = rc == BURN_OK ? burn_replay_run(r->kept, inputs, 2, made, N_MADE, err) : rc;
    if (rc == BURN_OK) {
        burn_optimizer_replayed(r->optimizer, 1);
    }
    return rc;
}

static int32_t read(run *r, burn_tensor *const *made, int64_t n, burn_err *err)
{
    int64_t correct = 0;
    double value = 0.0;
    int32_t rc = burn_read_f64(made[LOSS], &value, 1, err);
    if (rc == BURN_OK) {
        rc = burn_read_i64(made[HITS], &correct, 1, err);
    }
    if (rc == BURN_OK) {
        r->batch_loss = value;
        rc = burn_metric_mean_add_mean(&r->loss, value, n, err);
    }
    return rc == BURN_OK ? burn_metric_accuracy_add_counts(&r->accuracy, correct, n, err) : rc;
}

static int32_t one_batch(run *r, const burn_dataset *dataset, const burn_batch *batch,
                         burn_err *err)
{
    burn_scope_begin();
    burn_tensor *x = field(r, dataset, batch, 0);
    burn_tensor *target = field(r, dataset, batch, 1);
    burn_tensor *made[N_MADE] = {NULL, NULL};
    int32_t rc;
    int may_replay = batch->n_items == r->kept_items && burn_optimizer_steps(r->optimizer) > 0;
    if (may_replay && r->kept != NULL) {
        rc = run_kept(r, x, target, made, err);
    } else if (may_replay) {
        rc = keep(r, x, target, made, err);
    } else {
        rc = make(r, x, target, made, err);
    }
    rc = rc == BURN_OK ? read(r, made, batch->n_items, err) : rc;
    burn_scope_end();
    return rc;
}

static void reset_metrics(run *r)
{
    BURN_INIT(&r->loss, burn_metric_mean);
    BURN_INIT(&r->accuracy, burn_metric_accuracy);
    r->batch_loss = (double)NAN;
}

static void read_metrics(const run *r, double *loss, double *accuracy)
{
    *loss = (double)NAN;
    *accuracy = (double)NAN;
    (void)burn_metric_mean_value(&r->loss, loss, NULL);
    (void)burn_metric_accuracy_value(&r->accuracy, accuracy, NULL);
}

static int32_t check_dataset(const burn_dataset *dataset, burn_err *err)
{
    if (dataset == NULL || dataset->n_fields < 2) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "fit: the dataset needs two fields, input and class");
    }
    return BURN_OK;
}

int32_t burn_evaluate(burn_module *model, const burn_dataset *dataset, int64_t batch_size,
                      double *out_loss, double *out_accuracy, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (model == NULL || check_dataset(dataset, err) != BURN_OK) {
        return model == NULL ? burni_train_fail(err, BURN_E_INVALID, "evaluate: no model")
                             : err->code;
    }
    run r = {.model = model, .device = burn_device_inner(burn_module_device(model))};
    reset_metrics(&r);
    burn_loader_opts opts = {.struct_size = sizeof(opts), .batch_size = batch_size, .workers = 1};
    burn_loader *loader = NULL;
    int32_t rc = burn_loader_create(dataset, &opts, &loader, err);
    int32_t training = burn_module_training(model);
    burn_module_set_training(model, 0);
    burn_no_grad_begin();
    while (rc == BURN_OK) {
        burn_batch batch;
        BURN_INIT(&batch, burn_batch);
        rc = burn_loader_next(loader, &batch, err);
        if (rc == BURN_OK) {
            rc = one_batch(&r, dataset, &batch, err);
        }
    }
    burn_no_grad_end();
    burn_module_set_training(model, training);
    burn_loader_destroy(loader);
    if (rc != BURN_E_END) {
        return rc;
    }
    double loss;
    double accuracy;
    read_metrics(&r, &loss, &accuracy);
    if (out_loss != NULL) {
        *out_loss = loss;
    }
    if (out_accuracy != NULL) {
        *out_accuracy = accuracy;
    }
    return BURN_OK;
}

/* ---- fit ------------------------------------------------------------------------------------- */

static int32_t tell(const burn_fit_opts *o, burn_train_event *event, const run *r, uint32_t kind,
                    double begin)
{
    if (o->on_event == NULL) {
        return 0;
    }
    event->kind = kind;
    event->seconds = now() - begin;
    event->batch_loss = r->batch_loss;
    event->lr = r->lr;
    read_metrics(r, &event->loss, &event->accuracy);
    return o->on_event(o->user, event);
}

/* One epoch. `*stop` is set when the callback asked for the end. */
static int32_t epoch(run *r, burn_loader *loader, const burn_dataset *train,
                     const burn_dataset *valid, const burn_fit_opts *o, int64_t k, int *stop,
                     burn_err *err)
{
    double begin = now();
    burn_train_event event;
    BURN_INIT(&event, burn_train_event);
    event.epoch = k;
    event.n_epochs = o->epochs;
    event.n_batches = burn_loader_batches(loader);
    if (o->max_batches > 0 && o->max_batches < event.n_batches) {
        event.n_batches = o->max_batches;
    }
    event.valid_loss = (double)NAN;
    event.valid_accuracy = (double)NAN;
    reset_metrics(r);
    r->lr = o->lr * pow(o->lr_decay > 0.0 ? o->lr_decay : 1.0, (double)k);
    *stop = tell(o, &event, r, BURN_EVENT_EPOCH_BEGIN, begin) != 0;
    int32_t rc = burn_loader_begin(loader, (uint64_t)k, 0, err);
    burn_module_set_training(r->model, 1);
    while (rc == BURN_OK && !*stop && event.batch < event.n_batches) {
        burn_batch batch;
        BURN_INIT(&batch, burn_batch);
        rc = burn_loader_next(loader, &batch, err);
        if (rc == BURN_OK) {
            rc = one_batch(r, train, &batch, err);
        }
        if (rc == BURN_OK) {
            event.batch++;
            event.items += batch.n_items;
            *stop = tell(o, &event, r, BURN_EVENT_BATCH, begin) != 0;
        }
    }
    burn_module_set_training(r->model, 0);
    rc = rc == BURN_E_END ? BURN_OK : rc;
    if (rc == BURN_OK && valid != NULL && !*stop) {
        rc = burn_evaluate(r->model, valid, 500, &event.valid_loss, &event.valid_accuracy, err);
    }
    if (rc == BURN_OK) {
        *stop |= tell(o, &event, r, BURN_EVENT_EPOCH_END, begin) != 0;
    }
    return rc;
}

/* As large as the struct was at first. */
#define FIRST_OPTS offsetof(burn_fit_opts, replay)

/* What would train nothing, or not what was meant. */
static int32_t check_opts(const burn_fit_opts *o, burn_err *err)
{
    if (o->epochs < 1 || o->max_batches < 0) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "fit: epochs is %lld, it must be at least 1; max_batches is %lld, "
                                "it must be at least 0 (all)",
                                (long long)o->epochs, (long long)o->max_batches);
    }
    if (!isfinite(o->lr) || o->lr <= 0.0 || !isfinite(o->lr_decay) || o->lr_decay < 0.0) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "fit: lr is %g, it must be above 0; lr_decay is %g, it must be at "
                                "least 0 (0 is 1)",
                                o->lr, o->lr_decay);
    }
    return BURN_OK;
}

int32_t burn_fit(burn_module *model, burn_optimizer *optimizer, const burn_dataset *train,
                 const burn_dataset *valid, const burn_fit_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (model == NULL || optimizer == NULL || opts == NULL) {
        return burni_train_fail(err, BURN_E_INVALID, "fit: %s is NULL",
                                model == NULL       ? "model"
                                : optimizer == NULL ? "optimizer"
                                                    : "opts");
    }
    if (opts->struct_size < FIRST_OPTS) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "fit: opts.struct_size is %u; set it to sizeof(burn_fit_opts)",
                                opts->struct_size);
    }
    if (check_opts(opts, err) != BURN_OK || check_dataset(train, err) != BURN_OK ||
        (valid != NULL && check_dataset(valid, err) != BURN_OK)) {
        return err->code;
    }
    run r = {.model = model,
             .optimizer = optimizer,
             .device = burn_device_inner(burn_module_device(model))};
    if (opts->struct_size > FIRST_OPTS && opts->replay != 0) {
        r.kept_items = opts->batch_size;
    }
    burn_loader_opts lo = {.struct_size = sizeof(lo),
                           .flags = BURN_LOADER_SHUFFLE,
                           .batch_size = opts->batch_size,
                           .seed = opts->seed,
                           .workers = opts->workers};
    burn_loader *loader = NULL;
    int32_t rc = burn_loader_create(train, &lo, &loader, err);
    int stop = 0;
    for (int64_t k = 0; k < opts->epochs && rc == BURN_OK && !stop; k++) {
        rc = epoch(&r, loader, train, valid, opts, k, &stop, err);
    }
    burn_loader_destroy(loader);
    burn_replay_free(r.kept);
    return rc;
}
