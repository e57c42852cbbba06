/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub_bounds.c - kernels that are right in all that they are asked for, and write elsewhere too.
 *
 * Each computes its outputs as the definition says, so that nothing but a look at the memory around
 * operands shows the defect (BURN_CHECK=bounds). All are for flex, whose memory the host sees. To
 * add one: a launch, a function that puts it into the row, a line in the list, and the text that is
 * expected in lies.py.
 */
#include "stub.h"

static int64_t count(const burn_operand *o)
{
    return burn_dims_count(o->rank, o->dims);
}

/* z = x + y for the elements from `from` to before `to`; inputs are read where they are. */
static void add(const burn_call *call, int64_t from, int64_t to)
{
    const float *x = burn_call_operand(call, 0)->data;
    const float *y = burn_call_operand(call, 1)->data;
    const burn_operand *out = burn_call_operand(call, 2);
    float *z = out->data;
    int64_t n = count(out);
    for (int64_t k = from; k < to; k++) {
        z[k] = k >= 0 && k < n ? x[k] + y[k] : 1.0F;
    }
}

/* A loop over whole vectors without an end for the rest. */
static int32_t launch_rounded(const burn_call *call)
{
    int64_t n = count(burn_call_operand(call, 2));
    add(call, 0, (n + 15) / 16 * 16);
    return BURN_OK;
}

static int32_t launch_behind(const burn_call *call)
{
    add(call, 0, count(burn_call_operand(call, 2)) + 1);
    return BURN_OK;
}

static int32_t launch_before(const burn_call *call)
{
    add(call, -2, count(burn_call_operand(call, 2)));
    return BURN_OK;
}

/* Scratch that nobody gave it. */
static int32_t launch_operand(const burn_call *call)
{
    add(call, 0, count(burn_call_operand(call, 2)));
    ((float *)burn_call_operand(call, 1)->data)[0] = 0.5F;
    return BURN_OK;
}

/* The last element is what was in the memory before. */
static int32_t launch_short(const burn_call *call)
{
    add(call, 0, count(burn_call_operand(call, 2)) - 1);
    return BURN_OK;
}

enum { WORKSPACE = 64 };

static int32_t prepare_workspace(const burn_call *call, burn_prepared *out)
{
    (void)call;
    out->workspace_bytes = WORKSPACE;
    return BURN_OK;
}

static int32_t launch_workspace(const burn_call *call)
{
    add(call, 0, count(burn_call_operand(call, 2)));
    memset(call->workspace->data, 1, WORKSPACE + 8);
    return BURN_OK;
}

/* A sum over an axis that takes the size of its output from its input, where that is not so large
 * that it would go beyond all guards. */
static int32_t launch_sum(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *y = burn_call_operand(call, 1);
    const float *from = x->data;
    float *to = y->data;
    int64_t n = count(y);
    int64_t width = n > 0 ? count(x) / n : 0;
    int64_t most = count(x) < 40000 ? count(x) : n;
    for (int64_t k = 0; k < most; k++) {
        double sum = 0.0;
        for (int64_t j = 0; k < n && j < width; j++) {
            sum += (double)from[k * width + j];
        }
        to[k] = (float)sum;
    }
    return BURN_OK;
}

static int32_t only_the_last(const burn_call *call)
{
    const burn_attrs_axes *a = call->attrs;
    const burn_operand *x = burn_call_operand(call, 0);
    int fits = x->rank == 2 && a->n_axes == 1 && a->axes[0] == 1;
    return fits ? BURN_OK : BURN_E_UNSUPPORTED;
}

static void set(int32_t (*launch)(const burn_call *call))
{
    stub_row("flex", stub_op()->id)->launch = launch;
}

static void bounds_behind(void)
{
    set(launch_behind);
}

static void bounds_rounded(void)
{
    set(launch_rounded);
}

static void bounds_before(void)
{
    set(launch_before);
}

static void bounds_operand(void)
{
    set(launch_operand);
}

static void bounds_short(void)
{
    set(launch_short);
}

static void bounds_workspace(void)
{
    burn_row *row = stub_row("flex", stub_op()->id);
    row->prepare = prepare_workspace;
    row->launch = launch_workspace;
}

static void bounds_input_size(void)
{
    burn_row *row = stub_row("flex", BURN_OP_SUM);
    row->n_slots = 2;
    row->check = only_the_last;
    row->launch = launch_sum;
}

const stub_defect stub_bounds_defects[] = {
    STUB_DEFECT(bounds_before),
    STUB_DEFECT(bounds_behind),
    STUB_DEFECT(bounds_input_size),
    STUB_DEFECT(bounds_operand),
    STUB_DEFECT(bounds_rounded),
    STUB_DEFECT(bounds_short),
    STUB_DEFECT(bounds_workspace),
    {NULL, NULL},
};
