/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optimizer.h - what an optimizer rule gives to the driver: how much state, and one update.
 *
 * To add an optimizer: a constructor and an update function in a file of its own; the op that does
 * the arithmetic is a composite with a decomposition, so it runs on every backend.
 */
#ifndef BURN_TRAIN_OPTIM_OPTIMIZER_H
#define BURN_TRAIN_OPTIM_OPTIMIZER_H

#include <burn/optim.h>

#define BURNI_MAX_STATES 2

typedef struct burni_slot {
    burn_var *param;
    const char *path;
    burn_var *states[BURNI_MAX_STATES];
    uint64_t steps; /* updates of this parameter so far */
} burni_slot;

struct burn_optimizer {
    burni_slot *slots;
    uint32_t n_slots;
    uint32_t n_states;
    uint64_t steps;
    burn_sgd_opts sgd;
    burn_adam_opts adam;
    uint32_t decoupled;
    uint32_t zero;
    int32_t (*update)(burn_optimizer *o, burni_slot *slot, burn_tensor *grad, double lr,
                      burn_err *err);
};

/* An optimizer with n_states zeroed state variables per trainable parameter. */
burn_optimizer *burni_optimizer_new(burn_module *module, uint32_t n_states, burn_err *err);

#endif /* BURN_TRAIN_OPTIM_OPTIMIZER_H */
