/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * train.h - the training loop for classifiers, in libburn-train.
 *
 * burn_fit runs epochs of forward, loss, backward and optimizer step over batches, measures on a
 * second dataset after each epoch, and tells an event callback what happens. It prints nothing:
 * a progress bar is drawn by the application from the events. [any]
 */
#ifndef BURN_TRAIN_H
#define BURN_TRAIN_H

#include <burn/data.h>
#include <burn/metric.h>
#include <burn/nn.h>
#include <burn/optim.h>

BURN_BEGIN_DECLS

enum { BURN_EVENT_EPOCH_BEGIN = 1, BURN_EVENT_BATCH = 2, BURN_EVENT_EPOCH_END = 3 };

/* What the callback is told. Values that are not known yet are NaN. */
typedef struct burn_train_event {
    uint32_t struct_size;
    uint32_t kind;
    int64_t epoch; /* from 0 */
    int64_t n_epochs;
    int64_t batch; /* batches done in this epoch */
    int64_t n_batches;
    int64_t items;       /* items done in this epoch */
    double seconds;      /* since the epoch began */
    double loss;         /* mean over the epoch so far */
    double accuracy;     /* the same */
    double batch_loss;   /* of the last batch */
    double lr;
    double valid_loss;     /* EPOCH_END, when there is a second dataset */
    double valid_accuracy;
} burn_train_event;

/* Returns 0 to go on, else the run ends after this event with BURN_OK. [callback] */
typedef int32_t(BURN_CALL *burn_train_event_fn)(void *user, const burn_train_event *event);

typedef struct burn_fit_opts {
    uint32_t struct_size;
    uint32_t workers; /* of the data loader */
    int64_t epochs;      /* 1 or more */
    int64_t batch_size;  /* 1 or more */
    int64_t max_batches; /* per epoch; 0 = all */
    uint64_t seed;       /* order of the batches */
    double lr;       /* above 0 */
    double lr_decay; /* the rate of epoch k is lr * lr_decay^k; 0 = 1 */
    burn_train_event_fn on_event;
    void *user;
    uint32_t replay; /* 1: the second step is kept and run again (burn/replay.h); the same bits */
    uint32_t zero;
} burn_fit_opts;

/*
 * Trains `model` on fields 0 (input) and 1 (i64 class) of `train`, with cross entropy; `valid` may
 * be NULL. The model is left in evaluation mode. On failure the parameters are those of the last
 * whole step. With `replay`, batches of another size (the last one of an epoch) are called as ever,
 * and BURN_E_STATE says why a step cannot be kept.
 */
BURN_API int32_t burn_fit(burn_module *model, burn_optimizer *optimizer, const burn_dataset *train,
                          const burn_dataset *valid, const burn_fit_opts *opts, burn_err *err);

/* Loss and accuracy of a model over a dataset, in evaluation mode. Either output may be NULL. */
BURN_API int32_t burn_evaluate(burn_module *model, const burn_dataset *dataset, int64_t batch_size,
                               double *out_loss, double *out_accuracy, burn_err *err);

BURN_END_DECLS

#endif /* BURN_TRAIN_H */
