/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optimizer.c - the driver: one slot per trainable parameter, state variables, one step over all.
 */
#include "train/optim/optimizer.h"

#include "train/base/error.h"

#include <math.h>
#include <stdlib.h>

static burn_var *zeros_like(burn_var *param, burn_err *err)
{
    burn_scope_begin();
    burn_no_grad_begin();
    burn_tensor *value = burn_var_get(param);
    int64_t dims[BURN_MAX_RANK];
    for (uint32_t i = 0; i < burn_rank(value); i++) {
        dims[i] = burn_dim(value, i);
    }
    burn_tensor *zeros =
        burn_zeros(burn_device_of(value), burn_dtype_of(value), burn_rank(value), dims);
    burn_var *var = burn_var_create(burn_device_of(value), zeros, err);
    burn_no_grad_end();
    burn_scope_end();
    return var;
}

static int fill_slot(burni_slot *slot, uint32_t n_states, burn_err *err)
{
    for (uint32_t s = 0; s < n_states; s++) {
        slot->states[s] = zeros_like(slot->param, err);
        if (slot->states[s] == NULL) {
            return 0;
        }
    }
    return 1;
}

burn_optimizer *burni_optimizer_new(burn_module *module, uint32_t n_states, burn_err *err)
{
    uint32_t n = burn_module_n_vars(module);
    burn_optimizer *o = calloc(1, sizeof(*o));
    burni_slot *slots = calloc(n > 0 ? n : 1, sizeof(*slots));
    if (o == NULL || slots == NULL || module == NULL) {
        free(o);
        free(slots);
        (void)burni_train_fail(err, module == NULL ? BURN_E_INVALID : BURN_E_NO_MEMORY,
                               "optimizer: %s",
                               module == NULL ? "the module is NULL" : "no memory");
        return NULL;
    }
    o->slots = slots;
    o->n_states = n_states;
    for (uint32_t i = 0; i < n; i++) {
        const char *path = NULL;
        int32_t trainable = 0;
        burn_var *var = burn_module_var_at(module, i, &path, &trainable);
        if (!trainable) {
            continue;
        }
        burni_slot *slot = &o->slots[o->n_slots++];
        slot->param = var;
        slot->path = path;
        if (!fill_slot(slot, n_states, err)) {
            burn_optimizer_free(o);
            return NULL;
        }
    }
    return o;
}

void burn_optimizer_free(burn_optimizer *o)
{
    if (o == NULL) {
        return;
    }
    for (uint32_t i = 0; i < o->n_slots; i++) {
        for (uint32_t s = 0; s < o->n_states; s++) {
            burn_var_release(o->slots[i].states[s]);
        }
    }
    free(o->slots);
    free(o);
}

int32_t burn_optimizer_step(burn_optimizer *o, burn_grads *grads, double lr, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (o == NULL || grads == NULL) {
        return burni_train_fail(err, BURN_E_INVALID, "optimizer: %s NULL",
                                o == NULL ? "the optimizer is" : "the gradients are");
    }
    if (!isfinite(lr)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "optimizer: the learning rate is not finite; nothing was changed");
    }
    /* One scope around all updates: where the caller has none, they wait and run together. */
    burn_scope_begin();
    int32_t rc = BURN_OK;
    uint32_t n_grads = 0;
    for (uint32_t i = 0; i < o->n_slots && rc == BURN_OK; i++) {
        burni_slot *slot = &o->slots[i];
        burn_scope_begin();
        burn_tensor *grad = burn_grads_get_var(grads, slot->param);
        if (grad != NULL) {
            n_grads++;
            slot->steps++;
            rc = o->update(o, slot, grad, lr, err);
            slot->steps -= rc != BURN_OK;
        }
        burn_scope_end();
    }
    burn_scope_end();
    if (n_grads == 0) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "optimizer: none of its %u parameters has a gradient; make it for "
                                "the module that the loss is computed with",
                                o->n_slots);
    }
    o->steps += rc == BURN_OK;
    return rc;
}

void burn_optimizer_replayed(burn_optimizer *o, uint64_t n)
{
    for (uint32_t i = 0; o != NULL && i < o->n_slots; i++) {
        o->slots[i].steps += n;
    }
    if (o != NULL) {
        o->steps += n;
    }
}

uint64_t burn_optimizer_steps(const burn_optimizer *o)
{
    return o != NULL ? o->steps : 0;
}
