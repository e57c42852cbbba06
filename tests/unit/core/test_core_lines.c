/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_lines.c - ops that go over lines (softmax, layer_norm) as members of groups: who joins
 * them, what must not, and that bits and errors are those of calls that run one by one.
 *
 * Each test runs a step as core_steps.h says. To add one: a step_fn and a call of `same_as_eager`,
 * with the number of calls that should be in groups.
 */
#include "core_steps.h"

#include <burn/plans.h>
#include <burn/replay.h>
#include <stdio.h>
#include <string.h>

/* ---- who joins ------------------------------------------------------------------------------- */

/* Another number of rows each round: one plan serves all. */
static burn_tensor *scores(int round)
{
    burn_tensor *x = random_of(3, DIMS(2 + round, 4, 33));
    burn_tensor *mask = random_of(2, DIMS(4, 33));
    burn_tensor *y = burn_add(burn_mul(x, burn_scalar(0.125 + round)), mask);
    return burn_mul(burn_softmax(y, -1), x);
}

static void lines__what_makes_a_softmax_and_takes_it_joins(void **state)
{
    (void)state;
    same_as_eager(scores, 4);
}

/* The length of lines differs, too. */
static burn_tensor *logits(int round)
{
    burn_tensor *x = random_of(2, DIMS(7, 20 + 13 * round));
    int64_t last[1] = {1};
    burn_tensor *y = burn_log_softmax(burn_neg(x), 1);
    return burn_sum(burn_mul(y, x), 1, last, 1);
}

static void lines__a_sum_of_what_they_give_joins(void **state)
{
    (void)state;
    same_as_eager(logits, 4);
}

static burn_tensor *residual(int round)
{
    burn_tensor *x = random_of(3, DIMS(3 + round, 3, 16));
    burn_tensor *r = random_of(3, DIMS(3 + round, 3, 16));
    burn_tensor *gamma = random_of(2, DIMS(3, 16));
    burn_tensor *beta = random_of(2, DIMS(3, 16));
    burn_tensor *y = burn_add(x, r);
    burn_tensor *z = burn_layer_norm(y, gamma, beta, 2, 1e-5);
    return burn_add(burn_sigmoid(z), y);
}

static void lines__a_norm_with_its_scale_joins(void **state)
{
    (void)state;
    same_as_eager(residual, 4);
}

/* The same scale twice, once without a shift; lines after lines. */
static burn_tensor *norms(int round)
{
    burn_tensor *x = random_of(2, DIMS(5, 40));
    burn_tensor *gamma = random_of(1, DIMS(40));
    burn_tensor *y = burn_layer_norm(burn_mul(x, burn_scalar(1.0 + round)), gamma, NULL, 1, 1e-5);
    return burn_softmax(burn_layer_norm(y, gamma, gamma, 1, 1e-3), 1);
}

static void lines__of_one_length_share_a_group(void **state)
{
    (void)state;
    same_as_eager(norms, 4);
}

static burn_tensor *attention(int round)
{
    burn_tensor *q = random_of(3, DIMS(2, 6 + round, 8));
    burn_tensor *k = random_of(3, DIMS(2, 8, 9));
    burn_tensor *s = burn_mul(burn_matmul(q, k), burn_scalar(0.35));
    return burn_softmax(s, -1);
}

static void lines__of_a_product_join_it(void **state)
{
    (void)state;
    same_as_eager(attention, 3);
}

/* The product lies where the result will be, and is read after that was begun. */
static burn_tensor *straight(int round)
{
    burn_tensor *q = random_of(2, DIMS(6 + round, 8));
    return burn_log_softmax(burn_matmul(q, random_of(2, DIMS(8, 9))), -1);
}

static void lines__of_a_product_itself_do_not_write_over_it(void **state)
{
    (void)state;
    same_as_eager(straight, 2);
}

static burn_tensor *halves(int round)
{
    uint8_t dtype = round == 1 ? BURN_BF16 : BURN_F16;
    burn_tensor *x = burn_cast(random_of(2, DIMS(5, 70 + round)), dtype);
    burn_tensor *y = burn_softmax(burn_neg(x), 1);
    return burn_cast(burn_mul(y, x), BURN_F32);
}

static void lines__of_halves_are_rounded_alike(void **state)
{
    (void)state;
    same_as_eager(halves, 5);
}

/* Backward: y (g - sum(y g)), where g is made by the loss's own gradient. */
static burn_tensor *backward(int round)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_require_grad(ad, random_of(2, DIMS(4 + round, 21)));
    burn_tensor *w = random_of(2, DIMS(4 + round, 21));
    burn_tensor *y = burn_softmax(burn_mul(x, burn_scalar(3.0)), 1);
    burn_tensor *z = burn_log_softmax(burn_mul(burn_tanh(y), w), 1);
    burn_grads *grads = burn_backward(burn_sum(burn_mul(z, w), 0, NULL, 0), NULL, 0, &err);
    assert_non_null(grads);
    burn_tensor *g = burn_mul(burn_grads_get(grads, x), burn_scalar(1.0));
    burn_grads_free(grads);
    return g;
}

static void lines__gradients_of_lines_join(void **state)
{
    (void)state;
    set_window(1);
    static outcome eager;
    static outcome waited;
    burn_plan_totals t;
    for (int round = 0; round < STEP_ROUNDS; round++) {
        set_window(1);
        run_step(backward, round, &eager);
        set_window(window);
        for (int k = 0; k < 3; k++) {
            run_step(backward, round, &waited);
            assert_string_equal(waited.text, eager.text);
            assert_memory_equal(waited.values, eager.values, sizeof(waited.values));
        }
    }
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    assert_true(on_mock || window == 1 || t.last.n_fused >= 10);
}

/* One number of all; the same loss without a reduction is a call of its own. */
static burn_tensor *loss(int round)
{
    burn_tensor *x = random_of(2, DIMS(3 + round, 19));
    burn_tensor *y = random_of(2, DIMS(3 + round, 19));
    burn_tensor *mean = burn_mse_loss(burn_sigmoid(x), burn_mul(y, y), BURN_REDUCTION_MEAN);
    burn_tensor *sum = burn_mse_loss(burn_tanh(x), y, BURN_REDUCTION_SUM);
    burn_tensor *each = burn_mse_loss(y, x, BURN_REDUCTION_NONE);
    return burn_add(burn_sub(mean, sum), each);
}

static void lines__a_loss_ends_what_makes_it(void **state)
{
    (void)state;
    same_as_eager(loss, STEP_ANY);
}

static burn_tensor *one_loss(int round)
{
    burn_tensor *x = random_of(3, DIMS(2, 3 + round, 40));
    burn_tensor *y = random_of(3, DIMS(2, 3 + round, 40));
    return burn_mse_loss(burn_sigmoid(burn_neg(x)), y, round % 2);
}

static void lines__a_loss_joins(void **state)
{
    (void)state;
    same_as_eager(one_loss, 3);
}

/* Of another length than the softmax that makes its operand. */
static burn_tensor *loss_of_lines(int round)
{
    burn_tensor *x = random_of(2, DIMS(5 + round, 12));
    return burn_mse_loss(burn_softmax(burn_neg(x), 1), x, BURN_REDUCTION_MEAN);
}

static void lines__a_loss_of_lines_stays_out(void **state)
{
    (void)state;
    same_as_eager(loss_of_lines, 2);
}

/* ---- who must not ---------------------------------------------------------------------------- */

static burn_tensor *first_axis(int round)
{
    burn_tensor *x = random_of(2, DIMS(9, 5 + round));
    return burn_neg(burn_softmax(burn_neg(burn_exp(x)), 0));
}

static void lines__along_another_axis_stay_alone(void **state)
{
    (void)state;
    same_as_eager(first_axis, 2);
}

/* The second softmax is over lines of another length. */
static burn_tensor *two_lengths(int round)
{
    burn_tensor *x = random_of(2, DIMS(6, 8));
    burn_tensor *y = burn_softmax(burn_mul(x, burn_scalar(1.0 + round)), 1);
    return burn_neg(burn_softmax(burn_reshape(y, 2, DIMS(12, 4)), 1));
}

static void lines__of_another_length_begin_a_group(void **state)
{
    (void)state;
    same_as_eager(two_lengths, 4);
}

/* One row: its scale has as many elements as all positions, and is made of them. */
static burn_tensor *own_scale(int round)
{
    burn_tensor *x = burn_mul(random_of(2, DIMS(1, 30)), burn_scalar(1.0 + round));
    burn_tensor *gamma = burn_reshape(burn_neg(x), 1, DIMS(30));
    return burn_layer_norm(x, gamma, NULL, 1, 1e-5);
}

static void lines__a_scale_is_made_before(void **state)
{
    (void)state;
    same_as_eager(own_scale, 2);
}

/* 36,000 bytes a line. */
static burn_tensor *long_lines(int round)
{
    burn_tensor *x = random_of(2, DIMS(2, 9000));
    burn_tensor *y = burn_abs(burn_mul(x, burn_scalar(1.0 + round)));
    return burn_neg(burn_neg(burn_softmax(y, 1)));
}

static void lines__that_are_long_stay_alone(void **state)
{
    (void)state;
    same_as_eager(long_lines, 4);
}

/* More values between the steps than a kernel has room for beside lines: the lines stay out, and
 * all others are groups as before. */
static burn_tensor *crowd(int round)
{
    enum { MANY = 10 };
    burn_tensor *x = random_of(2, DIMS(3 + round, 24));
    burn_tensor *kept[MANY];
    for (int k = 0; k < MANY; k++) {
        kept[k] = burn_tanh(burn_mul(x, burn_scalar(0.5 + k)));
    }
    burn_tensor *sum = kept[0];
    for (int k = 1; k < MANY; k++) {
        sum = burn_mul(burn_sin(sum), kept[k]);
    }
    burn_tensor *y = burn_softmax(sum, 1);
    for (int k = 0; k < MANY; k++) {
        y = burn_add(burn_sin(y), kept[k]);
    }
    return y;
}

static void lines__stay_out_where_there_is_no_room(void **state)
{
    (void)state;
    burn_plan_totals t;
    static outcome eager;
    static outcome waited;
    set_window(1);
    run_step(crowd, 0, &eager);
    set_window(window);
    for (int k = 0; k < 4; k++) {
        run_step(crowd, 0, &waited);
        assert_memory_equal(waited.values, eager.values, sizeof(waited.values));
    }
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    assert_true(on_mock || window == 1 || t.last.n_fused == 58);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A plan that was made for short lines meets long ones, which run call by call, or the reverse. */
static burn_tensor *grown(int round)
{
    burn_tensor *x = random_of(2, DIMS(2, round == 1 ? 8200 : 30 + round));
    return burn_neg(burn_softmax(burn_abs(x), 1));
}

static void lines__that_grow_too_long_run_one_by_one(void **state)
{
    (void)state;
    same_as_eager(grown, STEP_ANY);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static burn_tensor *failed(int round)
{
    burn_tensor *x = random_of(2, DIMS(3, 10));
    burn_tensor *bad = burn_add(x, random_of(2, DIMS(3, 11)));
    return burn_neg(burn_softmax(burn_mul(bad, burn_scalar(round)), 1));
}

static void lines__a_failed_operand_says_the_same(void **state)
{
    (void)state;
    same_as_eager(failed, STEP_ANY);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static burn_tensor *block(burn_tensor *x, burn_tensor *gamma)
{
    burn_tensor *y = burn_layer_norm(burn_add(x, burn_relu(x)), gamma, NULL, 1, 1e-5);
    return burn_softmax(burn_mul(y, burn_scalar(3.0)), 1);
}

static void lines__are_replayed(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *gamma = random_of(1, DIMS(17));
    burn_tensor *x = random_of(2, DIMS(8, 17));
    (void)burn_sync(dev, NULL);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *y = block(burn_replay_port(x), gamma);
    burn_replay *step = burn_replay_end(&y, 1, &err);
    assert_non_null(step);
    for (int k = 0; k < 3; k++) {
        burn_tensor *in = burn_mul(x, burn_scalar(0.5 + k));
        burn_tensor *got = NULL;
        assert_int_equal(burn_replay_run(step, &in, 1, &got, 1, &err), BURN_OK);
        check_same(got, block(in, gamma));
    }
    uint32_t n_kept = 0;
    uint32_t n_runs = 0;
    burn_replay_size(step, &n_kept, &n_runs);
    assert_int_equal(n_kept, on_mock ? n_kept : 5);
    assert_int_equal(n_runs, on_mock ? n_runs : 1);
    burn_replay_free(step);
    burn_scope_end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(lines__what_makes_a_softmax_and_takes_it_joins),
        WINDOW_TEST(lines__a_sum_of_what_they_give_joins),
        WINDOW_TEST(lines__a_norm_with_its_scale_joins),
        WINDOW_TEST(lines__of_one_length_share_a_group),
        WINDOW_TEST(lines__of_a_product_join_it),
        WINDOW_TEST(lines__of_a_product_itself_do_not_write_over_it),
        WINDOW_TEST(lines__of_halves_are_rounded_alike),
        WINDOW_TEST(lines__gradients_of_lines_join),
        WINDOW_TEST(lines__a_loss_ends_what_makes_it),
        WINDOW_TEST(lines__a_loss_joins),
        WINDOW_TEST(lines__a_loss_of_lines_stays_out),
        WINDOW_TEST(lines__along_another_axis_stay_alone),
        WINDOW_TEST(lines__of_another_length_begin_a_group),
        WINDOW_TEST(lines__a_scale_is_made_before),
        WINDOW_TEST(lines__that_are_long_stay_alone),
        WINDOW_TEST(lines__stay_out_where_there_is_no_room),
        WINDOW_TEST(lines__that_grow_too_long_run_one_by_one),
        WINDOW_TEST(lines__a_failed_operand_says_the_same),
        WINDOW_TEST(lines__are_replayed),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
