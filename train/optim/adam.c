/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * adam.c - Adam and AdamW: the rules that fill adam_step's operands.
 */
#include "train/base/error.h"
#include "train/optim/optimizer.h"

#include <burn/build.h>
#include <burn/replay.h>

static int32_t update(burn_optimizer *o, burni_slot *slot, burn_tensor *grad, double lr,
                      burn_err *err)
{
    burn_attrs_adam a;
    burn_attrs_init(&a, sizeof(a));
    a.beta1 = o->adam.beta1;
    a.beta2 = o->adam.beta2;
    a.eps = o->adam.eps;
    a.weight_decay = o->adam.weight_decay;
    a.decoupled = o->decoupled;
    /* A parameter that had fewer gradients than the others counts on its own. */
    int in_step = slot->steps == o->steps + 1;
    burn_var *const vars[6] = {slot->param, NULL, slot->states[0], slot->states[1], NULL, NULL};
    burn_tensor *const in[6] = {NULL, grad, NULL, NULL,
                                burn_replay_scalar(burn_scalar(lr), "lr", 0.0),
                                burn_replay_scalar(burn_scalar((double)slot->steps),
                                                   in_step ? "steps" : "", 1.0)};
    return burn_var_update(BURN_OP_ADAM_STEP, &a, sizeof(a), vars, in, 6, err);
}

static double or_default(double value, double dflt)
{
    return value != 0.0 ? value : dflt;
}

static burn_optimizer *adam(burn_module *module, const burn_adam_opts *opts, uint32_t decoupled,
                            burn_err *err)
{
    static const burn_adam_opts none = {.struct_size = sizeof(none)};
    const burn_adam_opts *given = opts != NULL ? opts : &none;
    double beta1 = or_default(given->beta1, 0.9);
    double beta2 = or_default(given->beta2, 0.999);
    double eps = or_default(given->eps, 1e-8);
    if (given->struct_size < sizeof(*given)) {
        (void)burni_train_fail(err, BURN_E_INVALID,
                               "adam: opts.struct_size is %u; set it to sizeof(burn_adam_opts)",
                               given->struct_size);
        return NULL;
    }
    if (!(beta1 > 0.0 && beta1 < 1.0 && beta2 > 0.0 && beta2 < 1.0)) {
        (void)burni_train_fail(err, BURN_E_INVALID, "adam: beta1 %g and beta2 %g must be in 0..1",
                               beta1, beta2);
        return NULL;
    }
    if (!(eps > 0.0 && given->weight_decay >= 0.0)) {
        (void)burni_train_fail(err, BURN_E_INVALID,
                               "adam: eps %g must be above 0 and weight_decay %g not below it", eps,
                               given->weight_decay);
        return NULL;
    }
    burn_optimizer *o = burni_optimizer_new(module, 2, err);
    if (o != NULL) {
        o->adam = *given;
        o->adam.beta1 = beta1;
        o->adam.beta2 = beta2;
        o->adam.eps = eps;
        o->decoupled = decoupled;
        o->update = update;
    }
    return o;
}

burn_optimizer *burn_optimizer_adam(burn_module *module, const burn_adam_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    return adam(module, opts, 0, err);
}

burn_optimizer *burn_optimizer_adamw(burn_module *module, const burn_adam_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    return adam(module, opts, 1, err);
}
