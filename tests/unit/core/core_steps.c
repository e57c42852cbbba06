/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_steps.c - see core_steps.h.
 */
#include "core_steps.h"

#include <burn/plans.h>
#include <stdio.h>
#include <string.h>

void run_step(step_fn step, int round, outcome *out)
{
    burn_err err = BURN_ERR_INIT;
    memset(out, 0, sizeof(*out));
    burn_scope_begin();
    burn_tensor *t = step(round);
    out->code = burn_tensor_error(t, &err);
    if (out->code == BURN_OK) {
        out->bytes = (size_t)burn_numel(t) * sizeof(float);
        assert_in_range(out->bytes, 0, sizeof(out->values));
        out->code = burn_read(t, out->values, out->bytes, &err);
    }
    (void)snprintf(out->text, sizeof(out->text), "%s", err.text);
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

void same_as_eager(step_fn step, uint32_t fused)
{
    static outcome eager[STEP_ROUNDS];
    static outcome waited;
    burn_plan_totals t;
    set_window(1);
    for (int k = 0; k < STEP_ROUNDS; k++) {
        run_step(step, k, &eager[k]);
    }
    set_window(window);
    for (int again = 0; again < 3; again++) {
        for (int k = 0; k < STEP_ROUNDS; k++) {
            run_step(step, k, &waited);
            assert_string_equal(waited.text, eager[k].text);
            assert_int_equal(waited.code, eager[k].code);
            assert_int_equal(waited.bytes, eager[k].bytes);
            assert_memory_equal(waited.values, eager[k].values, waited.bytes);
        }
    }
    if (window == 1 || fused == STEP_ANY) {
        return;
    }
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    assert_int_equal(t.last.n_fused, on_mock ? 0 : fused);
}

burn_tensor *random_of(uint32_t rank, const int64_t *dims)
{
    static float values[STEP_MOST];
    int64_t n = 1;
    uint64_t random = 3;
    for (uint32_t d = 0; d < rank; d++) {
        n *= dims[d];
        random = random * 64 + (uint64_t)dims[d];
    }
    assert_in_range(n, 0, STEP_MOST);
    for (int64_t i = 0; i < n; i++) {
        values[i] = (float)next_random(&random) / 2147483648.0F - 0.5F;
    }
    return burn_tensor_from_data(dev, BURN_F32, rank, dims, values);
}
