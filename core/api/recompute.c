/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recompute.c - the switches of recomputation: a device's strategy, a thread's scopes.
 *
 * Decides nothing itself: exec/recipe.c looks at the device and at the thread's flag at each call.
 * Within a scope the flag is one of those that send pointwise calls the long way, and a device with
 * a strategy makes its remembered short ways void; so neither costs anything when it is off.
 */
#include "base/error.h"
#include "exec/device.h"
#include "tensor/recipe.h"

int32_t burn_device_set_recompute(burn_device *device, uint32_t strategy, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        return burni_fail(err, BURN_E_INVALID, "recompute: the device is NULL");
    }
    if (strategy > BURN_RECOMPUTE_BALANCED) {
        return burni_fail(err, BURN_E_INVALID,
                          "recompute: the strategy is %u; there are BURN_RECOMPUTE_NONE (0) and "
                          "BURN_RECOMPUTE_BALANCED (1); scopes are burn_recompute_begin",
                          strategy);
    }
    burni_device *core = device->core;
    if (atomic_exchange(&core->recompute, strategy) != strategy) {
        (void)atomic_fetch_add(&core->rows_version, 1);
    }
    return BURN_OK;
}

uint32_t burn_device_recompute(const burn_device *device)
{
    return device != NULL ? atomic_load(&device->core->recompute) : BURN_RECOMPUTE_NONE;
}

void burn_recompute_begin(void)
{
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        thread->recompute++;
        thread->watch |= BURNI_WATCH_RECOMPUTE;
    }
}

int32_t burn_recompute_end(burn_tensor *const *outputs, uint32_t n_outputs, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burni_thread *thread = burni_thread_get();
    if (thread == NULL || thread->recompute == 0) {
        return burni_fail(err, BURN_E_STATE,
                          "recompute: burn_recompute_end without burn_recompute_begin on this "
                          "thread");
    }
    if (n_outputs > 0 && outputs == NULL) {
        return burni_fail(err, BURN_E_INVALID, "recompute: %u outputs are told, the list is NULL",
                          n_outputs);
    }
    thread->recompute--;
    if (thread->recompute > 0) {
        return BURN_OK;
    }
    thread->watch &= ~(uint32_t)BURNI_WATCH_RECOMPUTE;
    for (uint32_t i = 0; i < n_outputs; i++) {
        if (outputs[i] != NULL) {
            burni_recipe_detach(outputs[i]);
        }
    }
    return BURN_OK;
}
