/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optim.h - optimizers, in libburn-train.
 *
 * An optimizer holds state variables for each trainable parameter of a module and overwrites the
 * parameters in place. Formulas and defaults are PyTorch's: SGD (Sutskever et al. 2013 momentum),
 * Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019). Parameters without a gradient are
 * left alone. One optimizer is used by one thread at a time. [any]
 */
#ifndef BURN_OPTIM_H
#define BURN_OPTIM_H

#include <burn/grad.h>
#include <burn/nn.h>

BURN_BEGIN_DECLS

typedef struct burn_optimizer burn_optimizer;

/* Zeroed: plain SGD. */
typedef struct burn_sgd_opts {
    uint32_t struct_size;
    uint32_t nesterov; /* 1: with a momentum and no dampening only */
    double momentum;
    double dampening;
    double weight_decay; /* added to the gradient */
} burn_sgd_opts;

/* Zeroed fields take the defaults: beta1 0.9, beta2 0.999, eps 1e-8; for a 0 write 1e-300. No decay
 * of weights unless it is set, for AdamW neither (PyTorch's AdamW takes 0.01). */
typedef struct burn_adam_opts {
    uint32_t struct_size;
    uint32_t zero;
    double beta1;
    double beta2;
    double eps;
    double weight_decay; /* Adam: added to the gradient; AdamW: decoupled */
} burn_adam_opts;

/* For the trainable parameters below `module`, which must outlive the optimizer. opts NULL =
 * defaults. NULL and an error on failure. */
BURN_API burn_optimizer *burn_optimizer_sgd(burn_module *module, const burn_sgd_opts *opts,
                                            burn_err *err);
BURN_API burn_optimizer *burn_optimizer_adam(burn_module *module, const burn_adam_opts *opts,
                                             burn_err *err);
BURN_API burn_optimizer *burn_optimizer_adamw(burn_module *module, const burn_adam_opts *opts,
                                              burn_err *err);
BURN_API void burn_optimizer_free(burn_optimizer *optimizer);

/* One step with that learning rate, a finite number. Parameters without a gradient are left as they
 * are; that none has one is BURN_E_INVALID, since the optimizer is another module's then. A failure
 * leaves the step's parameters as they were and says which one failed. */
BURN_API int32_t burn_optimizer_step(burn_optimizer *optimizer, burn_grads *grads, double lr,
                                     burn_err *err);
BURN_API uint64_t burn_optimizer_steps(const burn_optimizer *optimizer);
/* Tells that a step with this optimizer was done n more times by burn_replay_run, where the
 * learning rate is the scalar "lr" and the number of the step, for those that need it, "steps". */
BURN_API void burn_optimizer_replayed(burn_optimizer *optimizer, uint64_t n);

BURN_END_DECLS

#endif /* BURN_OPTIM_H */
