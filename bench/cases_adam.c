/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_adam.c - AdamW over many parameters with gradients that are given: the update alone.
 *
 * The size is the number of elements of all parameters, which are split into 16 tensors, from a
 * sixth of it to a few thousand. One container of gradients serves all steps. The digest is that of
 * all parameters and depends on their moments. The peer splits in the same way (peer/peer.cpp).
 */
#include "cases.h"
#include "digest.h"

#include <burn/grad.h>
#include <burn/nn.h>
#include <burn/ops.h>
#include <burn/optim.h>
#include <stdio.h>

enum { N_TENSORS = 16 };

static burn_device *device;
static burn_module *model;
static burn_optimizer *optimizer;
static burn_grads *grads;

/* The share of each in 1/1000; the last takes what is left. */
static const int64_t SHARES[N_TENSORS - 1] = {167, 167, 125, 125, 84, 84, 63, 42,
                                              42,  31,  21,  14,  11, 9,  6};

static int32_t add_parameters(int64_t total, burn_err *err)
{
    int64_t left = total;
    for (int i = 0; i < N_TENSORS; i++) {
        char name[8];
        const int64_t n = i < N_TENSORS - 1 ? total * SHARES[i] / 1000 : left;
        left -= n;
        (void)snprintf(name, sizeof(name), "p%d", i);
        burn_scope_begin();
        burn_tensor *value = burn_random_normal(device, BURN_F32, 1, &n);
        burn_var *var = burn_module_add(model, name, value, 1, err);
        burn_scope_end();
        if (var == NULL) {
            return err->code;
        }
    }
    return BURN_OK;
}

/* A container with a gradient for each parameter, whose values are then replaced. */
static int32_t make_gradients(burn_err *err)
{
    burn_scope_begin();
    burn_tensor *sum = NULL;
    for (uint32_t i = 0; i < N_TENSORS; i++) {
        burn_tensor *value = burn_var_get(burn_module_var_at(model, i, NULL, NULL));
        burn_tensor *one = burn_sum(value, 0, NULL, 0);
        sum = sum != NULL ? burn_add(sum, one) : one;
    }
    grads = burn_backward(sum, NULL, 0, err);
    int32_t code = grads != NULL ? BURN_OK : err->code;
    for (uint32_t i = 0; i < N_TENSORS && code == BURN_OK; i++) {
        burn_var *var = burn_module_var_at(model, i, NULL, NULL);
        const int64_t n = burn_numel(burn_var_get(var));
        burn_tensor *grad = burn_random_normal(device, BURN_F32, 1, &n);
        code = burn_grads_set_var(grads, var, grad, err);
    }
    burn_scope_end();
    return code;
}

int32_t bench_adamw_setup(burn_device *on, int64_t arg, burn_err *err)
{
    device = on;
    burn_seed(3);
    model = burn_module_create(burn_device_autodiff(on), err);
    int32_t code = model != NULL ? add_parameters(arg, err) : err->code;
    code = code == BURN_OK ? make_gradients(err) : code;
    if (code != BURN_OK) {
        return code;
    }
    burn_adam_opts opts;
    BURN_INIT(&opts, burn_adam_opts);
    opts.weight_decay = 0.01;
    optimizer = burn_optimizer_adamw(model, &opts, err);
    return optimizer != NULL ? burn_sync(on, err) : err->code;
}

int32_t bench_adamw_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_scope_begin();
        int32_t code = burn_optimizer_step(optimizer, grads, 1e-3, err);
        burn_scope_end();
        if (code != BURN_OK) {
            return code;
        }
    }
    return burn_sync(device, err);
}

int32_t bench_adamw_digest(uint64_t *digest, burn_err *err)
{
    int32_t code = BURN_OK;
    for (uint32_t i = 0; i < N_TENSORS && code == BURN_OK; i++) {
        burn_scope_begin();
        burn_tensor *value = burn_var_get(burn_module_var_at(model, i, NULL, NULL));
        code = bench_digest(value, digest, err);
        burn_scope_end();
    }
    return code;
}

void bench_adamw_teardown(void)
{
    burn_grads_free(grads);
    burn_optimizer_free(optimizer);
    burn_module_free(model);
    grads = NULL;
    optimizer = NULL;
    model = NULL;
}
