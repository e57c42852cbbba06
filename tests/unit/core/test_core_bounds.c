/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_bounds.c - BURN_CHECK=bounds: a kernel that writes outside of its outputs is named, its
 * outputs fail, and nothing else is harmed; programs that do nothing wrong run as ever.
 *
 * Mock is told to write behind the result of a launch (MOCK_PAST_OP). On flex, whose memory the
 * host sees, kernels of this file are launched by hand, in each way that there is. To add a defect:
 * a kernel, a row of `defects`.
 */
#include "core_test.h"

#include "base/error.h"
#include "exec/check.h"
#include "exec/launch.h"
#include "exec/rows.h"
#include "ops/registry.h"

#include <burn/build.h>
#include <burn/grad.h>
#include <burn/replay.h>
#include <stdio.h>
#include <string.h>

enum { N = 3 };

static void check_with(const char *value)
{
    assert_int_equal(burn_option_set("CHECK", value, NULL), BURN_OK);
}

static int guarded(void **state)
{
    check_with("bounds");
    return core_setup(state);
}

static int unguarded(void **state)
{
    check_with("off");
    return core_teardown(state);
}

#define BOUNDS_TEST(f) cmocka_unit_test_setup_teardown(f, guarded, unguarded)

/* ---- kernels by hand ------------------------------------------------------------------------- */

static float *data_of(const burn_call *call, uint32_t i)
{
    return burn_call_operand(call, i)->data;
}

static int32_t launch_right(const burn_call *call)
{
    for (int k = 0; k < N; k++) {
        data_of(call, 2)[k] = data_of(call, 0)[k] + data_of(call, 1)[k];
    }
    return BURN_OK;
}

static int32_t launch_behind(const burn_call *call)
{
    memset(data_of(call, 2) + N, 0, 7);
    return launch_right(call);
}

static int32_t launch_before(const burn_call *call)
{
    data_of(call, 2)[-1] = 1.0F;
    return launch_right(call);
}

static int32_t launch_far_behind(const burn_call *call)
{
    memset(data_of(call, 2) + N, 0, 4096);
    return launch_right(call);
}

static int32_t launch_operand(const burn_call *call)
{
    int32_t rc = launch_right(call);
    data_of(call, 0)[1] = 77.0F;
    return rc;
}

/* What lies behind an input is copied behind the output: other bytes than were there. */
static int32_t launch_copied(const burn_call *call)
{
    memcpy(data_of(call, 2) + N, data_of(call, 0) + N, 20);
    return launch_right(call);
}

static const struct {
    int32_t (*launch)(const burn_call *call);
    const char *says;
} defects[] = {
    {launch_behind, "add: kernel test.row wrote 7 bytes behind output z (f32[3], 12 bytes) on f"},
    {launch_before, "wrote 4 bytes before output z (f32[3], 12 bytes)"},
    {launch_far_behind, "wrote at least 4096 bytes behind output z"},
    {launch_operand, "wrote 2 bytes of input x (f32[3], 12 bytes)"},
    {launch_copied, "wrote 20 bytes behind output z"},
};

/* A launch of three vectors, and what it points at. */
typedef struct by_hand {
    burn_row row;
    burni_resolved resolved;
    burni_launch launch;
    burn_operand operands[3];
    burni_storage *storages[3];
    burn_tensor *tensors[3];
} by_hand;

static void prepare(by_hand *h, int32_t (*kernel)(const burn_call *call))
{
    static const int64_t dims[1] = {N};
    static const int64_t strides[1] = {1};
    memset(h, 0, sizeof(*h));
    BURN_INIT(&h->row, burn_row);
    h->row.name = "test.row";
    h->row.launch = kernel;
    h->resolved.row = &h->row;
    h->launch.op = burni_op_find(BURN_OP_ADD);
    h->launch.resolved = &h->resolved;
    h->launch.n_in = 2;
    h->launch.n_out = 1;
    h->launch.operands = h->operands;
    h->launch.storages = h->storages;
    for (uint32_t i = 0; i < 3; i++) {
        h->tensors[i] = VEC(1, 2, 3);
        h->storages[i] = h->tensors[i]->storage;
        h->operands[i].kind = BURN_TENSOR;
        h->operands[i].dtype = BURN_F32;
        h->operands[i].rank = 1;
        h->operands[i].layout = BURN_LAYOUT_CONTIGUOUS;
        h->operands[i].dims = dims;
        h->operands[i].strides = strides;
    }
}

static void check_defect(by_hand *h, const char *says)
{
    burn_err err = BURN_ERR_INIT;
    check_read_fails(h->tensors[2], BURN_E_INTERNAL, says, NULL);
    /* What it should not have written it has not. */
    CHECK(h->tensors[0], 1, 2, 3);
    CHECK(h->tensors[1], 1, 2, 3);
    assert_int_equal(burn_sync(dev, &err), BURN_E_INTERNAL);
    assert_non_null(strstr(err.text, says));
}

static void flex__each_defect_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(defects) && !on_mock; i++) {
        by_hand h;
        prepare(&h, defects[i].launch);
        assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
        check_defect(&h, defects[i].says);
    }
}

/* The way of groups: they do not run apart, where the defect would be lost. */
static void flex__a_launch_that_is_tried_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(defects) && !on_mock; i++) {
        by_hand h;
        burn_err err = BURN_ERR_INIT;
        prepare(&h, defects[i].launch);
        assert_int_equal(burni_launch_try(core_stream(), &h.launch, h.operands, &err), BURN_OK);
        check_defect(&h, defects[i].says);
    }
}

static int32_t launch_many_behind(const burn_call *calls, uint32_t n, uint32_t stride)
{
    (void)stride;
    for (uint32_t k = 0; k < n; k++) {
        (void)(k == 1 ? launch_behind : launch_right)(&calls[k]);
    }
    return BURN_OK;
}

static void flex__many_at_once_are_named(void **state)
{
    (void)state;
    enum { MANY = 3 };
    const burn_many_kernel kernel = {.launch_many = launch_many_behind};
    by_hand h[MANY];
    burni_launch *launches[MANY];
    burn_operand *operands[MANY];
    for (uint32_t k = 0; k < MANY; k++) {
        prepare(&h[k], launch_right);
        launches[k] = &h[k].launch;
        operands[k] = h[k].operands;
    }
    if (on_mock) {
        skip();
    }
    burni_launch_many(core_stream(), &kernel, launches, operands, MANY);
    for (uint32_t k = 0; k < MANY; k++) {
        check_read_fails(h[k].tensors[2], BURN_E_INTERNAL, "wrote 7 bytes behind output z", NULL);
    }
    assert_int_equal(burn_sync(dev, NULL), BURN_E_INTERNAL);
}

/* An input that lends its memory to the result is no operand that must not be written. */
static void flex__in_place_is_right(void **state)
{
    (void)state;
    by_hand h;
    prepare(&h, launch_right);
    if (on_mock) {
        skip();
    }
    h.storages[2] = h.storages[0];
    assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
    CHECK(h.tensors[0], 2, 4, 6);
    prepare(&h, launch_behind);
    h.storages[2] = h.storages[0];
    assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
    check_read_fails(h.tensors[0], BURN_E_INTERNAL, "wrote 7 bytes behind output z", NULL);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_INTERNAL);
}

static int32_t launch_faulty(const burn_call *call)
{
    return burni_fail(call->err, BURN_E_DATA, "x 7 at position 1 is not in 0..2");
}

/* A fault is for rows that say that they have some. */
static void flex__a_fault_without_the_flag_is_named(void **state)
{
    (void)state;
    by_hand h;
    prepare(&h, launch_faulty);
    if (on_mock) {
        skip();
    }
    assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
    check_read_fails(h.tensors[2], BURN_E_INTERNAL,
                     "add: kernel test.row reports a fault, and its row lacks BURN_ROW_FAULTS",
                     "x 7 at position 1", NULL);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_INTERNAL);
    prepare(&h, launch_faulty);
    h.row.flags = BURN_ROW_FAULTS;
    assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
    check_read_fails(h.tensors[2], BURN_E_DATA, "add: x 7 at position 1 is not in 0..2", NULL);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
}

/* There it is the queue that says so: whole numbers are divided by 0, and nobody gave a word. */
static void mock__a_fault_without_the_flag_is_named(void **state)
{
    (void)state;
    by_hand h;
    if (!on_mock) {
        skip();
    }
    prepare(&h, NULL);
    h.launch.op = burni_op_find(BURN_OP_DIV);
    h.row = *burni_rows_of(dev->core, h.launch.op)->rows[0];
    h.row.flags &= ~(uint32_t)BURN_ROW_FAULTS;
    h.tensors[1] = VEC(0, 0, 0);
    h.storages[1] = h.tensors[1]->storage;
    for (uint32_t i = 0; i < 3; i++) {
        h.operands[i].dtype = BURN_I32;
    }
    assert_int_equal(burni_launch_run(core_stream(), &h.launch, h.operands), BURN_OK);
    check_read_fails(h.tensors[2], BURN_E_INTERNAL,
                     "div: kernel mock.div reports a fault, and its row lacks BURN_ROW_FAULTS",
                     NULL);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_INTERNAL);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* The third launch of exp writes behind its result, on a device whose memory the host can't see. */
static void mock__a_write_behind_a_result_is_named(void **state)
{
    (void)state;
    if (!on_mock) {
        skip();
    }
    burn_tensor *x = VEC(0, 0, 0, 0, 0);
    burn_tensor *a = burn_exp(x);
    burn_tensor *b = burn_exp(burn_mul(a, burn_scalar(0.0)));
    burn_tensor *c = burn_exp(burn_mul(b, burn_scalar(0.0))); /* the third in every order */
    burn_tensor *d = burn_add(c, a);
    burn_tensor *e = burn_add(b, a);
    check_read_fails(d, BURN_E_INTERNAL, "exp: kernel mock.exp wrote 3 bytes behind output",
                     "(f32[5], 20 bytes) on mock:0", NULL);
    CHECK(e, 2, 2, 2, 2, 2);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_INTERNAL);
    check_clean();
}

/* A loop with views, groups, gradients and updates: what is right passes, and is looked at. */
static double train(int rounds)
{
    burn_err err = BURN_ERR_INIT;
    double loss = 0.0;
    burn_seed(3);
    burn_var *w = burn_var_create(ad, burn_random_normal(dev, BURN_F32, 2, DIMS(7, 5)), &err);
    assert_non_null(w);
    for (int k = 0; k < rounds; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(5, 7));
        burn_tensor *y = burn_matmul(x, burn_var_get(w));
        burn_tensor *z = burn_softmax(burn_add(burn_transpose(y, 0, 1), burn_scalar(0.5)), 1);
        burn_tensor *l = burn_mean(burn_mul(z, burn_exp(z)), 0, NULL, 0);
        burn_grads *grads = burn_backward(l, NULL, 0, &err);
        assert_non_null(grads);
        burn_attrs_sgd a = {.head = {sizeof(a), 1}};
        burn_var *vars[4] = {w, NULL, NULL, NULL};
        burn_tensor *in[4] = {NULL, burn_grads_get_var(grads, w), NULL, burn_scalar(0.1)};
        assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err),
                         BURN_OK);
        burn_grads_free(grads);
        loss = burn_item(l, NULL);
        burn_scope_end();
    }
    loss += burn_item(burn_sum(burn_var_get(w), 0, NULL, 0), NULL);
    burn_var_release(w);
    return loss;
}

static void programs__have_the_same_numbers(void **state)
{
    (void)state;
    burni_check_counts before = burni_check_report();
    double within = train(6);
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_int_equal(after.unguarded, before.unguarded);
    assert_true(after.guarded > before.guarded + 6);
    check_clean();
    check_with("off");
    double without = train(6);
    assert_int_equal(burni_check_report().guarded, after.guarded);
    assert_true(within == without);
}

static void programs__a_replay_is_looked_at(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2, 3);
    check_with("off");
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_scope_begin();
    burn_tensor *y = burn_mul(burn_replay_port(x), burn_scalar(2.0));
    burn_tensor *z = burn_neg(burn_add(y, y));
    burn_replay *step = burn_replay_end(&z, 1, &err);
    burn_scope_end();
    assert_non_null(step);
    for (int k = 0; k < 4; k++) {
        burn_tensor *out = NULL;
        burni_check_counts before = burni_check_report();
        check_with(k % 2 == 0 ? "off" : "bounds");
        assert_int_equal(burn_replay_run(step, &x, 1, &out, 1, &err), BURN_OK);
        CHECK(out, -4, -8, -12);
        burni_check_counts after = burni_check_report();
        assert_int_equal(after.guarded > before.guarded, k % 2);
    }
    burn_replay_free(step);
}

static void option__goes_with_the_others(void **state)
{
    (void)state;
    static const char *const bad[] = {"bound", "bounds,", "nan,bounds,off"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_option_set("CHECK", bad[i], &err), BURN_E_INVALID);
        assert_non_null(strstr(err.text, "bounds"));
    }
    burni_check_counts before = burni_check_report();
    check_with("nan,bounds,compare");
    CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
    burni_check_counts after = burni_check_report();
    assert_true(after.guarded > before.guarded && after.compared > before.compared);
    assert_int_equal(after.wrong, before.wrong);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOUNDS_TEST(mock__a_write_behind_a_result_is_named),
        BOUNDS_TEST(flex__each_defect_is_named),
        BOUNDS_TEST(flex__a_launch_that_is_tried_is_named),
        BOUNDS_TEST(flex__many_at_once_are_named),
        BOUNDS_TEST(flex__in_place_is_right),
        BOUNDS_TEST(flex__a_fault_without_the_flag_is_named),
        BOUNDS_TEST(mock__a_fault_without_the_flag_is_named),
        BOUNDS_TEST(programs__have_the_same_numbers),
        BOUNDS_TEST(programs__a_replay_is_looked_at),
        BOUNDS_TEST(option__goes_with_the_others),
    };
    char wish[32];
    (void)snprintf(wish, sizeof(wish), "%d:3", BURN_OP_EXP);
    (void)burn_option_set("MOCK_PAST_OP", wish, NULL);
    return core_test_main(argc, argv, tests, COUNT(tests));
}
