/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_claims.c - what is claimed and not kept, and reasons that a decomposition tells.
 *
 * A row that no call reaches (and one that says that it is off), a dtype that no sample has, a
 * decomposition that fails with a text of its own. To add one: a function, a line in the list, and
 * the text that is expected in claims.py or lies.py.
 */
#include "stub.h"

static int32_t launch_add(const burn_call *call)
{
    const burn_operand *z = burn_call_operand(call, 2);
    int64_t n = 1;
    for (uint32_t d = 0; d < z->rank; d++) {
        n *= z->dims[d];
    }
    for (int64_t k = 0; k < n; k++) {
        ((float *)z->data)[k] = ((const float *)burn_call_operand(call, 0)->data)[k] +
                                ((const float *)burn_call_operand(call, 1)->data)[k];
    }
    return BURN_OK;
}

static int32_t refuse(const burn_call *call)
{
    return burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "never");
}

static void claim_kept(void)
{
    stub_row("flex", stub_op()->id)->launch = launch_add;
}

/* The op runs by its decomposition; nothing else would tell. */
static void claim_unreachable(void)
{
    burn_row *row = stub_row("flex", stub_op()->id);
    row->launch = launch_add;
    row->check = refuse;
}

/* The same of a row that serves only where it won a race: it may be missed, too. */
static void claim_raceless(void)
{
    burn_row *row = stub_row("flex", stub_op()->id);
    row->flags |= BURN_ROW_TUNABLE | BURN_ROW_TUNED_ONLY;
    row->launch = launch_add;
    row->check = refuse;
}

static int32_t switched_off(const burn_call *call)
{
    return burn_plugin_fail(call->err, BURN_E_STATE, "nobody set STUB_ON");
}

/* Nobody expects it to be launched. */
static void claim_off(void)
{
    burn_row *row = stub_row("flex", stub_op()->id);
    row->launch = launch_add;
    row->check = switched_off;
}

/* It would say so, but no call gets as far as its check. */
static void claim_off_unasked(void)
{
    static burn_guard guard = {.operand = 0, .dim = 0, .min = INT64_C(1) << 60};
    burn_row *row = stub_row("flex", stub_op()->id);
    row->launch = launch_add;
    row->check = switched_off;
    row->guards = &guard;
    row->n_guards = 1;
    row->guard_stride = (uint32_t)sizeof(guard);
}

static int32_t samples_f64(uint32_t i, burn_sample *out)
{
    const int64_t dims[1] = {3};
    if (i > 1) {
        return BURN_E_END;
    }
    uint8_t fill = i == 0 ? BURN_FILL_NORMAL : BURN_FILL_SPECIAL;
    burn_sample_begin(out, i == 0 ? "vector" : "special values", 2.0, 64.0);
    burn_sample_tensor(out, 0, BURN_F64, fill, 1, dims);
    burn_sample_tensor(out, 1, BURN_F64, BURN_FILL_NORMAL, 1, dims);
    out->flags |= i == 0 ? 0 : BURN_SAMPLE_NO_GRAD;
    return BURN_OK;
}

static int32_t launch_doubles(const burn_call *call)
{
    for (int64_t k = 0; k < burn_call_operand(call, 2)->dims[0]; k++) {
        ((double *)burn_call_operand(call, 2)->data)[k] =
            ((const double *)burn_call_operand(call, 0)->data)[k] +
            ((const double *)burn_call_operand(call, 1)->data)[k];
    }
    return BURN_OK;
}

/* Its kernel is for f32 as well. */
static void claim_untried(void)
{
    static burn_slot slots[3];
    burn_row *row = stub_row("flex", stub_op()->id);
    for (uint32_t k = 0; k < 3; k++) {
        slots[k] = row->slots[0];
        slots[k].dtypes[0] = BURN_BIT(F32) | BURN_BIT(F64);
    }
    row->slots = slots;
    row->launch = launch_doubles;
    stub_op()->samples = samples_f64;
}

static int32_t parts_that_say(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = b->fail(b->ctx, BURN_E_DATA, "the sum of x and y is not in stock");
    return BURN_OK;
}

static int32_t parts_that_say_and_return(const burn_builder *b, const burn_expand *a)
{
    (void)parts_that_say(b, a);
    return BURN_E_DATA;
}

static void says_value(void)
{
    stub_op()->decompose = parts_that_say;
}

static void says_code(void)
{
    stub_op()->decompose = parts_that_say_and_return;
}

const stub_defect stub_claims_defects[] = {
    STUB_DEFECT(claim_kept),
    STUB_DEFECT(claim_unreachable),
    STUB_DEFECT(claim_raceless),
    STUB_DEFECT(claim_off),
    STUB_DEFECT(claim_off_unasked),
    STUB_DEFECT(claim_untried),
    STUB_DEFECT(says_code),
    STUB_DEFECT(says_value),
    {NULL, NULL},
};
