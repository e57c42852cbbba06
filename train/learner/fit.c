/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fit.c - the training loop: forward, loss, backward, step, metrics, events.
 *
 * A batch's loss and hits are read right after its step, so an event never tells what is not known.
 * Each batch runs in a scope of its own; only parameters outlive it.
 */
#include "train/base/error.h"

#include <burn/train.h>
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
} run;

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

static int32_t measure(run *r, burn_tensor *loss, burn_tensor *logits, burn_tensor *target,
                       int64_t n, burn_err *err)
{
    burn_tensor *hits = burn_sum(burn_cast(burn_equal(burn_argmax(logits, 1, 0), target), BURN_I64),
                                 0, NULL, 0);
    int64_t correct = 0;
    double value = 0.0;
    int32_t rc = burn_read_f64(loss, &value, 1, err);
    if (rc == BURN_OK) {
        rc = burn_read_i64(hits, &correct, 1, err);
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
    burn_tensor *logits = burn_forward(r->model, x);
    burn_tensor *loss = burn_cross_entropy(logits, target, NULL, NULL);
    int32_t rc = burn_tensor_error(loss, err);
    if (rc == BURN_OK && r->optimizer != NULL) {
        rc = step(r, loss, err);
    }
    if (rc == BURN_OK) {
        burn_no_grad_begin();
        rc = measure(r, loss, logits, target, batch->n_items, err);
        burn_no_grad_end();
    }
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

int32_t burn_fit(burn_module *model, burn_optimizer *optimizer, const burn_dataset *train,
                 const burn_dataset *valid, const burn_fit_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (model == NULL || optimizer == NULL || opts == NULL ||
        opts->struct_size < sizeof(*opts)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "fit: model, optimizer or opts missing or of an unknown size");
    }
    if (check_dataset(train, err) != BURN_OK ||
        (valid != NULL && check_dataset(valid, err) != BURN_OK)) {
        return err->code;
    }
    run r = {.model = model,
             .optimizer = optimizer,
             .device = burn_device_inner(burn_module_device(model))};
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
    return rc;
}
