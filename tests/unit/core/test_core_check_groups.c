/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_check_groups.c - BURN_CHECK where calls wait, run in groups, or are replayed: what is
 * told is what single calls tell, and groups are still made.
 *
 * Each test goes round its loop often enough for the calls to wait. To add a test: a function, a
 * row in the array.
 */
#include "core_test.h"

#include "exec/check.h"
#include "exec/recording.h"

#include <burn/plans.h>
#include <burn/replay.h>
#include <burn/trace.h>
#include <math.h>
#include <string.h>

enum { ROUNDS = 5, BAD_ROUND = 3 };

static void check_with(const char *value)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_option_set("CHECK", value, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

static int nan_setup(void **state)
{
    check_with("nan");
    return core_setup(state);
}

static int compare_setup(void **state)
{
    check_with("nan,compare");
    return core_setup(state);
}

static int unchecked(void **state)
{
    check_with("off");
    return core_teardown(state);
}

#define NAN_TEST(f)     cmocka_unit_test_setup_teardown(f, nan_setup, unchecked)
#define COMPARE_TEST(f) cmocka_unit_test_setup_teardown(f, compare_setup, unchecked)

/* Calls that ran in groups of plans that the thread keeps. */
static uint32_t fused_calls(void)
{
    burn_plan_info plan = {.struct_size = sizeof(plan)};
    uint32_t n = 0;
    for (uint32_t i = 0; burn_plan_at(dev, i, &plan, NULL) == BURN_OK; i++) {
        n += plan.n_fused;
    }
    return n;
}

static int makes_groups(void)
{
    return !on_mock && window != 1;
}

static burn_tensor *x_of(int k, float third)
{
    return mat(2, 3, (const float[]){1, 2, third, 4, (float)(5 + k), 6});
}

/* ---- nan ------------------------------------------------------------------------------------- */

static void nan__the_member_that_made_it_is_named(void **state)
{
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = x_of(k, k == BAD_ROUND ? -3 : 3);
        burn_tag_begin("encoder");
        burn_tensor *y = burn_log(burn_mul(x, burn_scalar(2.0)));
        burn_tag_end();
        y = burn_add(y, burn_scalar(1.0));
        burn_tensor *z = burn_add(burn_mul(x, burn_scalar(2.0)), burn_scalar(5.0));
        if (k == BAD_ROUND) {
            check_read_fails(y, BURN_E_DATA, "log: output", "nan at [0,2] of f32[2,3]",
                             "x f32[2,3] from -6 to 16", "[at encoder]", NULL);
            check_read_fails(burn_neg(y), BURN_E_DATA, "log: output", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            double got[6];
            assert_int_equal(burn_read_f64(y, got, 6, NULL), BURN_OK);
        }
        CHECK(z, 7, 9, k == BAD_ROUND ? -1 : 11, 13, 15 + 2 * k, 17);
        burn_scope_end();
    }
    assert_true(!makes_groups() || fused_calls() > 0);
}

static void nan__what_was_given_passes(void **state)
{
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = x_of(k, (float)INFINITY);
        burn_tensor *y = burn_add(burn_mul(x, burn_scalar(2.0)), x);
        double got[6];
        assert_int_equal(burn_read_f64(y, got, 6, NULL), BURN_OK);
        assert_true(isinf(got[2]));
        burn_scope_end();
    }
    check_clean();
}

static void nan__the_culprit_may_stand_behind_one_who_is_not(void **state)
{
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *given = x_of(k, (float)INFINITY);
        burn_tensor *fine = x_of(k, k == BAD_ROUND ? 800 : 3);
        burn_tensor *e = burn_exp(burn_neg(burn_neg(fine)));
        burn_tensor *y = burn_add(burn_mul(given, given), e);
        if (k == BAD_ROUND) {
            check_read_fails(y, BURN_E_DATA, "exp: output", "inf at [0,2]", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            double got[6];
            assert_int_equal(burn_read_f64(y, got, 6, NULL), BURN_OK);
        }
        burn_scope_end();
    }
}

static void nan__a_row_and_its_elements(void **state)
{
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = x_of(k, k == BAD_ROUND ? 3e38f : 3);
        burn_tensor *sum = burn_sum(burn_mul(x, burn_scalar(2.0)), 1, DIMS(1), 1);
        burn_tensor *y = burn_div(x, sum);
        if (k == BAD_ROUND) {
            check_read_fails(y, BURN_E_DATA, "mul: output", "inf at [0,2] of f32[2,3]",
                             "to 3e+38", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            double got[6];
            assert_int_equal(burn_read_f64(y, got, 6, NULL), BURN_OK);
        }
        burn_scope_end();
    }
}

/* What a softmax makes 0, a logarithm makes infinite; all of it is one group. */
static void nan__a_reader_of_lines_is_named(void **state)
{
    (void)state;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = x_of(k, k == BAD_ROUND ? 900 : 3);
        burn_tensor *p = burn_softmax(burn_mul(x, burn_scalar(0.5)), 1);
        burn_tensor *y = burn_layer_norm(burn_log(p), NULL, NULL, 1, 1e-5);
        if (k == BAD_ROUND) {
            check_read_fails(y, BURN_E_DATA, "log: output", "inf at [0,0] of f32[2,3]",
                             "x f32[2,3] from 0 to 1", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            double got[6];
            assert_int_equal(burn_read_f64(y, got, 6, NULL), BURN_OK);
        }
        burn_scope_end();
    }
    assert_true(!makes_groups() || fused_calls() >= 4);
}

/* ---- compare --------------------------------------------------------------------------------- */

static void compare__groups_with_lines_pass(void **state)
{
    (void)state;
    burni_check_counts before = burni_check_report();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(33, 70));
        burn_tensor *gamma = burn_random_normal(dev, BURN_F32, 1, DIMS(70));
        burn_tensor *y = burn_layer_norm(burn_mul(x, burn_scalar(3.0)), gamma, gamma, 1, 1e-5);
        burn_tensor *p = burn_softmax(burn_relu(burn_move(y)), 1);
        double item = burn_item(burn_sum(burn_neg(p), 0, NULL, 0), NULL);
        assert_true(fabs(item + 33) < 0.01);
        burn_scope_end();
    }
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared >= before.compared + 5 * ROUNDS);
    assert_true(!makes_groups() || fused_calls() >= 5);
    check_clean();
}

static void compare__groups_pass(void **state)
{
    (void)state;
    burni_check_counts before = burni_check_report();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(33, 70));
        burn_tensor *bias = burn_random_normal(dev, BURN_F32, 1, DIMS(70));
        burn_tensor *y = burn_relu(burn_add(burn_mul(burn_move(x), burn_scalar(3.0)), bias));
        burn_tensor *m = burn_max(y, 1, DIMS(1), 1);
        burn_tensor *e = burn_exp(burn_sub(y, m));
        burn_tensor *p = burn_div(e, burn_sum(e, 1, DIMS(1), 1));
        burn_tensor *t = burn_add(burn_transpose(p, 0, 1), burn_scalar(1.0));
        double item = burn_item(burn_sum(t, 0, NULL, 0), NULL);
        assert_true(fabs(item - 33 * 71) < 0.01);
        burn_scope_end();
    }
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared >= before.compared + 10 * ROUNDS);
    assert_true(!makes_groups() || fused_calls() > 0);
    check_clean();
}

static void compare__a_loop_of_updates_passes(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_check_counts before = burni_check_report();
    burn_var *w = burn_var_create(ad, mat(3, 2, (const float[]){1, -1, 2, 0.5f, 0, 3}), &err);
    assert_non_null(w);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_matmul(x_of(k, 3), burn_var_get(w));
        burn_tensor *d = burn_sub(y, burn_scalar(1.0));
        burn_tensor *loss = burn_mean(burn_mul(d, d), 0, NULL, 0);
        burn_grads *grads = burn_backward(loss, NULL, 0, &err);
        if (grads == NULL) {
            fail_msg("%s", err.text);
        }
        burn_attrs_sgd a = {.head = {sizeof(a), 1}};
        burn_var *vars[4] = {w, NULL, NULL, NULL};
        burn_tensor *in[4] = {NULL, burn_grads_get_var(grads, w), NULL, burn_scalar(0.001)};
        assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err),
                         BURN_OK);
        burn_grads_free(grads);
        assert_true(isfinite(burn_item(loss, NULL)));
        burn_scope_end();
    }
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared > before.compared + 5 * ROUNDS);
    burn_var_release(w);
    check_clean();
}

/* ---- replay ---------------------------------------------------------------------------------- */

/* (x + 1) * (x - 3), its log's negative, and the product, of a port. */
static burn_replay *keep_step(burn_tensor *x)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_scope_begin();
    burn_tensor *in = burn_replay_port(x);
    burn_tensor *plus = burn_add(in, burn_scalar(1.0));
    burn_tensor *minus = burn_sub(in, burn_scalar(3.0));
    burn_tensor *product = burn_mul(plus, minus);
    burn_tensor *outputs[2] = {burn_neg(burn_log(product)), product};
    burn_replay *step = burn_replay_end(outputs, 2, &err);
    burn_scope_end();
    if (step == NULL) {
        fail_msg("%s", err.text);
    }
    return step;
}

static void run(burn_replay *step, burn_tensor *x, burn_tensor **out)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_replay_run(step, &x, 1, out, 2, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

static void check_bad_run(burn_replay *step, const char *shape)
{
    burn_tensor *out[2];
    run(step, x_of(0, 2), out);
    check_read_fails(out[0], BURN_E_DATA, "log: output", "nan", shape, NULL);
    CHECK(out[1], -4, -3, -3, 5, 12, 21);
    assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
}

static burn_tensor *good_x(void)
{
    return mat(2, 3, (const float[]){4, 5, 6, 7, 8, 9});
}

static void replay__a_step_that_was_kept_checked(void **state)
{
    (void)state;
    burn_replay *step = keep_step(good_x());
    for (int k = 0; k < 2; k++) {
        burn_tensor *out[2];
        check_bad_run(step, "at [0,0] of f32[2,3]");
        run(step, good_x(), out);
        CHECK(out[1], 5, 12, 21, 32, 45, 60);
    }
    check_with("off");
    burn_tensor *out[2];
    run(step, x_of(0, 2), out);
    double got[6];
    assert_int_equal(burn_read_f64(out[0], got, 6, NULL), BURN_OK);
    assert_true(isnan(got[0]));
    burn_replay_free(step);
    check_clean();
}

static void replay__a_step_that_is_checked_later(void **state)
{
    (void)state;
    burn_tensor *out[2];
    burn_replay *step = keep_step(good_x());
    run(step, x_of(0, 2), out);
    double got[6];
    assert_int_equal(burn_read_f64(out[0], got, 6, NULL), BURN_OK);
    check_with("nan");
    check_bad_run(step, "f32["); /* in the kernel's shape */
    check_with("nan,compare");
    check_bad_run(step, "f32[");
    run(step, good_x(), out);
    CHECK(out[1], 5, 12, 21, 32, 45, 60);
    burn_replay_free(step);
    check_clean();
}

/* The calls are exchanged behind the group's back, which goes on as it was made. */
static void compare__a_group_that_is_not_its_members_is_named(void **state)
{
    (void)state;
    burn_tensor *out[2];
    burn_replay *step = keep_step(good_x());
    check_with("compare");
    run(step, good_x(), out);
    CHECK(out[1], 5, 12, 21, 32, 45, 60);
    uint32_t kept = 0;
    uint32_t runs = 0;
    burn_replay_size(step, &kept, &runs);
    if (runs < kept) {
        burni_launch *plus = &step->records[0]->launch;
        burni_launch *minus = &step->records[1]->launch;
        const burni_op *op = plus->op;
        const burni_resolved *resolved = plus->resolved;
        plus->op = minus->op;
        plus->resolved = minus->resolved;
        minus->op = op;
        minus->resolved = resolved;
        run(step, good_x(), out);
        check_read_fails(out[1], BURN_E_DATA, "burn.fused(", "the result of mul is 5 at [0,0]",
                         "of f32[2,3]", "run by itself it is 21", NULL);
        assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
    }
    assert_true(!on_mock ? runs < kept : runs == kept);
    burn_replay_free(step);
    check_clean();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NAN_TEST(nan__the_member_that_made_it_is_named),
        NAN_TEST(nan__what_was_given_passes),
        NAN_TEST(nan__the_culprit_may_stand_behind_one_who_is_not),
        NAN_TEST(nan__a_row_and_its_elements),
        NAN_TEST(nan__a_reader_of_lines_is_named),
        COMPARE_TEST(compare__groups_pass),
        COMPARE_TEST(compare__groups_with_lines_pass),
        COMPARE_TEST(compare__a_loop_of_updates_passes),
        NAN_TEST(replay__a_step_that_was_kept_checked),
        cmocka_unit_test_setup_teardown(replay__a_step_that_is_checked_later, core_setup,
                                        unchecked),
        COMPARE_TEST(compare__a_group_that_is_not_its_members_is_named),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
