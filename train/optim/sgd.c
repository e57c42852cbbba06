/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sgd.c - stochastic gradient descent: the rule that fills sgd_step's operands.
 */
#include "train/base/error.h"
#include "train/optim/optimizer.h"

#include <burn/build.h>
#include <burn/replay.h>

static int32_t update(burn_optimizer *o, burni_slot *slot, burn_tensor *grad, double lr,
                      burn_err *err)
{
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    a.momentum = o->sgd.momentum;
    a.dampening = o->sgd.dampening;
    a.weight_decay = o->sgd.weight_decay;
    a.nesterov = o->sgd.nesterov;
    a.first = o->n_states > 0 && slot->steps == 1;
    if (a.first) {
        burn_replay_refuse("the first step of momentum differs from the next ones; do it before");
    }
    burn_var *const vars[4] = {slot->param, NULL, slot->states[0], NULL};
    burn_tensor *const in[4] = {NULL, grad, NULL, burn_replay_scalar(burn_scalar(lr), "lr", 0.0)};
    return burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, err);
}

burn_optimizer *burn_optimizer_sgd(burn_module *module, const burn_sgd_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    static const burn_sgd_opts none = {.struct_size = sizeof(none)};
    const burn_sgd_opts *given = opts != NULL ? opts : &none;
    if (given->struct_size < sizeof(*given)) {
        (void)burni_train_fail(err, BURN_E_INVALID,
                               "sgd: opts.struct_size is %u; set it to sizeof(burn_sgd_opts)",
                               given->struct_size);
        return NULL;
    }
    if (!(given->momentum >= 0.0 && given->weight_decay >= 0.0)) {
        (void)burni_train_fail(err, BURN_E_INVALID,
                               "sgd: momentum %g and weight_decay %g must not be below 0",
                               given->momentum, given->weight_decay);
        return NULL;
    }
    if (given->nesterov && !(given->momentum > 0.0 && given->dampening == 0.0)) {
        (void)burni_train_fail(err, BURN_E_INVALID,
                               "sgd: nesterov needs a momentum above 0 (is %g) and no dampening "
                               "(is %g)",
                               given->momentum, given->dampening);
        return NULL;
    }
    burn_optimizer *o = burni_optimizer_new(module, given->momentum > 0.0, err);
    if (o != NULL) {
        o->sgd = *given;
        o->update = update;
    }
    return o;
}
