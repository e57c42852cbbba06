/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_cases.c - reported faults where calls wait: the same edges, when the calls that meet
 * them run as one kernel (a group), or are kept and run again (a replay).
 *
 * A step is a few calls on one tensor. It is called for some rounds, of which the later ones are
 * known and wait, then kept and run again; each result is compared with numbers worked out by hand.
 * On flex the plan must have a group, so that it is the fused kernel that is tried. To add a case:
 * a step_fn, a test that is named after the id.
 */
#include "core_test.h"

#include <burn/build.h>
#include <burn/plans.h>
#include <burn/replay.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE ((double)NAN)

enum { ROUNDS = 4, RUNS = 3 };

typedef burn_tensor *(*step_fn)(burn_tensor *x);

/* A step's second tensor, where it has one: a step that is kept may upload none. */
static burn_tensor *other;

/* Whether what waited ran as a group. */
static void expect_group(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    if (!on_mock && window != 1) {
        assert_in_range(t.last.n_groups, 1, 8);
    }
}

static int is_served(step_fn step, burn_tensor *x)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    int32_t rc = burn_tensor_error(step(x), &err);
    burn_scope_end();
    (void)burn_sync(dev, NULL);
    assert_true(rc == BURN_OK || (rc == BURN_E_UNSUPPORTED && on_mock));
    return rc == BURN_OK;
}

static burn_replay *keep(step_fn step, burn_tensor *x)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *y = step(burn_replay_port(x));
    burn_replay *replay = burn_replay_end(&y, 1, &err);
    burn_scope_end();
    if (replay == NULL) {
        fail_msg("%s", err.text);
    }
    return replay;
}

/* Each round and each run gives these values, within `tolerance`. */
static void expect(step_fn step, burn_tensor *x, size_t n, const double *values, double tolerance)
{
    if (!is_served(step, x)) {
        return;
    }
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        check_values(__LINE__, step(x), n, values, tolerance);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
    expect_group();
    burn_replay *replay = keep(step, x);
    for (int k = 0; k < RUNS; k++) {
        burn_tensor *y = NULL;
        burn_scope_begin();
        assert_int_equal(burn_replay_run(replay, &x, 1, &y, 1, NULL), BURN_OK);
        check_values(__LINE__, y, n, values, tolerance);
        burn_scope_end();
    }
    burn_replay_free(replay);
    check_clean();
}

#define EXPECT(step, x, tolerance, ...)                                                            \
    expect(step, x, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__},     \
           tolerance)

/* ---- reductions ------------------------------------------------------------------------------ */

static burn_tensor *largest_of_rows(burn_tensor *x)
{
    return burn_max(burn_mul(burn_add(x, burn_scalar(1)), burn_scalar(2)), 1, DIMS(1), 0);
}

static burn_tensor *smallest_of_rows(burn_tensor *x)
{
    return burn_min(burn_mul(burn_add(x, burn_scalar(1)), burn_scalar(2)), 1, DIMS(1), 0);
}

/* Wherever the NaN is: first, last, in the tail of the vectors, or in no row but one. */
static void test_B001_a_nan_wins_in_a_group(void **state)
{
    (void)state;
    static const int64_t lengths[] = {4, 31, 513, 1023};
    for (size_t i = 0; i < COUNT(lengths) * 3; i++) {
        int64_t n = lengths[i / 3];
        int64_t at = i % 3 == 0 ? 0 : i % 3 == 1 ? n - 1 : n / 2;
        float *values = calloc(2 * (size_t)n, sizeof(*values));
        assert_non_null(values);
        values[n + at] = (float)NAN;
        burn_tensor *x = mat(2, n, values);
        free(values);
        EXPECT(largest_of_rows, x, 0, 2, NONE);
        EXPECT(smallest_of_rows, x, 0, 2, NONE);
    }
}

static burn_tensor *product_of_rows(burn_tensor *x)
{
    return burn_prod(burn_neg(burn_neg(x)), 1, DIMS(1), 0);
}

static void test_B015_a_product_keeps_nan_and_sign_in_a_group(void **state)
{
    (void)state;
    EXPECT(product_of_rows, mat(2, 4, (const float[]){1, (float)NAN, 0, 2, -2, 3, -4, 1}), 0, NONE,
           24);
}

static burn_tensor *sum_of_rows(burn_tensor *x)
{
    return burn_sum(burn_mul(burn_add(x, burn_scalar(1)), burn_scalar(2)), 1, DIMS(1), 0);
}

static burn_tensor *mean_of_rows(burn_tensor *x)
{
    return burn_mean(burn_mul(burn_add(x, burn_scalar(1)), burn_scalar(2)), 1, DIMS(1), 0);
}

/* Nothing to launch, and nothing to reduce. */
static void test_B022_B026_rows_of_nothing(void **state)
{
    (void)state;
    const int64_t rows[2] = {3, 0};
    const int64_t none[2] = {0, 3};
    burn_tensor *empty = burn_zeros(dev, BURN_F32, 2, rows);
    burn_tensor *no_rows = burn_zeros(dev, BURN_F32, 2, none);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        CHECK(sum_of_rows(empty), 0, 0, 0);
        check_values(__LINE__, mean_of_rows(empty), 3, (const double[]){NONE, NONE, NONE}, 0);
        check_shape(sum_of_rows(no_rows), 1, DIMS(0));
        assert_int_equal(burn_read(sum_of_rows(no_rows), NULL, 0, NULL), BURN_OK);
        CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
        burn_scope_end();
        check_clean();
    }
}

static burn_tensor *last_row_sum(burn_tensor *x)
{
    return burn_slice(sum_of_rows(x), 0, 69998, 70000, 1);
}

static void test_B050_many_rows_in_a_group(void **state)
{
    (void)state;
    const int64_t dims[2] = {70000, 3};
    EXPECT(last_row_sum, burn_reshape(burn_arange(dev, BURN_F32, 210000, 0, 1), 2, dims), 0,
           2.0 * (209994 + 209995 + 209996 + 3), 2.0 * (209997 + 209998 + 209999 + 3));
}

/* ---- broadcasting ---------------------------------------------------------------------------- */

static void test_B020_ones_meet_nothing_in_a_group(void **state)
{
    (void)state;
    const int64_t dims_x[2] = {2, 0};
    const int64_t dims_y[2] = {2, 1};
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_zeros(dev, BURN_F32, 2, dims_x);
        burn_tensor *y = burn_ones(dev, BURN_F32, 2, dims_y);
        burn_tensor *z = burn_mul(burn_add(burn_neg(x), y), burn_scalar(2));
        check_shape(z, 2, DIMS(2, 0));
        assert_int_equal(burn_read(z, NULL, 0, NULL), BURN_OK);
        check_shape(burn_mul(burn_add(y, x), y), 2, DIMS(2, 0));
        burn_scope_end();
    }
    check_clean();
}

/* ---- numerics -------------------------------------------------------------------------------- */

static burn_tensor *normalised(burn_tensor *x)
{
    burn_tensor *centred = burn_sub(x, burn_mean(x, 1, DIMS(1), 1));
    burn_tensor *spread = burn_var_of(x, 1, DIMS(1), 1, 0);
    return burn_div(centred, burn_sqrt(burn_add(spread, burn_scalar(1e-5))));
}

static void test_B060_a_large_mean_in_a_group(void **state)
{
    (void)state;
    const float x[8] = {40000, 40001, 40002, 40003, 80000, 80001, 80002, 80003};
    EXPECT(normalised, mat(2, 4, x), 1e-4, -1.341635, -0.447212, 0.447212, 1.341635, -1.341635,
           -0.447212, 0.447212, 1.341635);
}

static burn_tensor *mean_of_doubled_halves(burn_tensor *x)
{
    return burn_mean(burn_div(burn_mul(x, burn_scalar(2)), burn_scalar(2)), 1, DIMS(1), 0);
}

static void test_B066_a_mean_of_halves_in_a_group(void **state)
{
    (void)state;
    const int64_t dims[2] = {2, 256};
    burn_tensor *x = burn_full(dev, BURN_F16, 2, dims, burn_scalar(767.5));
    if (burn_tensor_error(x, NULL) == BURN_OK) {
        EXPECT(mean_of_doubled_halves, x, 0, 767.5, 767.5);
    }
}

static burn_tensor *flat_ends(burn_tensor *x)
{
    return burn_add(burn_tanh(x), burn_gelu(x, 0));
}

static void test_B072_far_from_zero_in_a_group(void **state)
{
    (void)state;
    EXPECT(flat_ends, VEC(1e4F, -1e4F, 0), 0, 10001, -1, 0);
}

static burn_tensor *remainders(burn_tensor *x)
{
    return burn_remainder(burn_add(x, burn_scalar_int(0)), burn_scalar_int(2));
}

static void test_B078_whole_remainders_in_a_group(void **state)
{
    (void)state;
    burn_tensor *x = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(6), DIMS(-3, -2, -1, 1, 2, 3));
    EXPECT(remainders, x, 0, 1, 0, 1, 1, 0, 1);
}

static burn_tensor *to_whole(burn_tensor *x)
{
    return burn_add(burn_cast(burn_mul(x, burn_scalar(1)), BURN_I32), burn_scalar_int(0));
}

static void test_B082_casts_saturate_in_a_group(void **state)
{
    (void)state;
    burn_tensor *x =
        VEC((float)NAN, (float)INFINITY, -(float)INFINITY, 3e9F, -3e9F, 2.9F, -2.9F);
    EXPECT(to_whole, x, 0, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 2, -2);
}

static burn_tensor *powers(burn_tensor *x)
{
    return burn_mul(burn_pow(x, other), burn_scalar(1));
}

static void test_B086_powers_in_a_group(void **state)
{
    (void)state;
    other = VEC(2, 3, 1.0F / 3, 0, -1, 0);
    EXPECT(powers, VEC(-2, -2, -8, 0, 0, (float)INFINITY), 0, 4, -8, NONE, 1, (double)INFINITY, 1);
}

/* ---- truth ----------------------------------------------------------------------------------- */

static burn_tensor *truths(burn_tensor *x)
{
    return burn_logical_or(burn_less_equal(x, x), burn_cast(x, BURN_BOOL));
}

/* Every byte of a bool is 0 or 1, also of one that a fused kernel wrote. */
static void test_B011_truth_of_odd_values_in_a_group(void **state)
{
    (void)state;
    const float values[6] = {-0.0F, 1e-45F, (float)NAN, 0.5F, 0, 3};
    unsigned char bytes[6];
    burn_tensor *x = vec(6, values);
    EXPECT(truths, x, 0, 1, 1, 1, 1, 1, 1);
    for (int k = 0; k < ROUNDS && is_served(truths, x); k++) {
        burn_scope_begin();
        burn_tensor *odd = burn_cast(burn_mul(x, burn_scalar(1)), BURN_BOOL);
        burn_tensor *none = burn_logical_not(odd);
        assert_int_equal(burn_read(odd, bytes, sizeof(bytes), NULL), BURN_OK);
        assert_memory_equal(bytes, ((unsigned char[]){0, 1, 1, 1, 0, 1}), sizeof(bytes));
        assert_int_equal(burn_read(none, bytes, sizeof(bytes), NULL), BURN_OK);
        assert_memory_equal(bytes, ((unsigned char[]){1, 0, 0, 0, 1, 0}), sizeof(bytes));
        burn_scope_end();
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Each round's gradient of the sum of what `loss` gives. */
static void expect_gradient(step_fn loss, uint32_t n, const float *values, const double *expected)
{
    for (int k = 0; k < ROUNDS && is_served(loss, vec(n, values)); k++) {
        burn_scope_begin();
        burn_tensor *x = burn_require_grad(ad, vec(n, values));
        burn_grads *grads = burn_backward(burn_sum(loss(x), 0, NULL, 0), NULL, 0, NULL);
        assert_non_null(grads);
        check_values(__LINE__, burn_grads_get(grads, x), n, expected, 1e-6);
        burn_grads_free(grads);
        burn_scope_end();
        check_clean();
    }
}

static burn_tensor *slope_of_sigmoid(burn_tensor *x)
{
    return burn_sigmoid(burn_mul(x, burn_scalar(1)));
}

static burn_tensor *product(burn_tensor *x)
{
    return burn_prod(burn_mul(x, burn_scalar(1)), 0, NULL, 0);
}

static burn_tensor *to_the_first(burn_tensor *x)
{
    return burn_pow(burn_mul(x, burn_scalar(1)), burn_scalar(1));
}

static burn_tensor *shared_largest(burn_tensor *x)
{
    return burn_max(burn_mul(x, burn_scalar(1)), 0, NULL, 0);
}

static void test_B070_B121_B123_B125_gradients_that_wait(void **state)
{
    (void)state;
    expect_gradient(slope_of_sigmoid, 2, (const float[]){-90, 0}, (const double[]){0, 0.25});
    expect_gradient(product, 3, (const float[]){2, 0, 3}, (const double[]){0, 6, 0});
    expect_gradient(product, 3, (const float[]){0, 0, 3}, (const double[]){0, 0, 0});
    expect_gradient(to_the_first, 2, (const float[]){0, 2}, (const double[]){1, 1});
    expect_gradient(shared_largest, 3, (const float[]){3, 3, 1}, (const double[]){0.5, 0.5, 0});
}

/* ---- failures -------------------------------------------------------------------------------- */

static burn_tensor *quotients(burn_tensor *x)
{
    return burn_add(burn_div(burn_mul(other, burn_scalar_int(2)), x), other);
}

/* One failure, told once; the round's other calls and the next round are fine. */
static void test_B080_B242_a_fault_in_a_group(void **state)
{
    (void)state;
    other = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(4), DIMS(12, -12, 7, 5));
    burn_tensor *good = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(4), DIMS(1, 2, -1, 5));
    burn_tensor *bad = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(4), DIMS(1, 2, 0, 5));
    if (!is_served(quotients, good)) {
        return;
    }
    for (int k = 0; k < 2 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *fine = burn_mul(burn_add(good, good), good);
        burn_tensor *y = quotients(k % 2 != 0 ? bad : good);
        if (k % 2 != 0) {
            check_read_fails(y, BURN_E_DATA, "div", on_mock ? "position 2" : "element 2", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            CHECK(y, 36, -24, -7, 7);
        }
        CHECK(fine, 2, 8, 2, 50);
        check_clean();
        burn_scope_end();
    }
}

static burn_tensor *looked_up(burn_tensor *index)
{
    return burn_mul(burn_add(burn_gather(other, index, 0), burn_scalar(1)), burn_scalar(2));
}

/* A run that fails fails its results; the next run is fine. */
static void test_B088_B242_a_fault_in_a_replay(void **state)
{
    (void)state;
    burn_tensor *good = index_vec(3, DIMS(0, 2, 1));
    burn_tensor *bad = index_vec(3, DIMS(0, 3, 1));
    other = VEC(10, 20, 30);
    burn_replay *replay = keep(looked_up, good);
    for (int k = 0; k < 2 * RUNS; k++) {
        burn_tensor *y = NULL;
        burn_scope_begin();
        assert_int_equal(burn_replay_run(replay, k % 2 != 0 ? &bad : &good, 1, &y, 1, NULL),
                         BURN_OK);
        if (k % 2 != 0) {
            check_read_fails(y, BURN_E_DATA, "gather", "3", "position 1", NULL);
            assert_int_equal(burn_sync(dev, NULL), BURN_E_DATA);
        } else {
            CHECK(y, 22, 62, 42);
        }
        burn_scope_end();
        check_clean();
    }
    CHECK(looked_up(good), 22, 62, 42);
    burn_replay_free(replay);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static burn_tensor *several(burn_tensor *x)
{
    burn_tensor *y = burn_tanh(burn_matmul(x, x));
    return burn_sum(burn_mul(burn_add(y, x), burn_exp(burn_neg(y))), 1, DIMS(1), 0);
}

/* Runs that are looked at and runs that are not; calls in between. */
static void test_B244_memory_is_flat_over_replays(void **state)
{
    (void)state;
    const int64_t dims[2] = {24, 24};
    burn_tensor *x = burn_full(dev, BURN_F32, 2, dims, burn_scalar(0.01));
    burn_replay *replay = keep(several, x);
    uint64_t first = 0;
    int n = on_mock ? 120 : 1000;
    for (int k = 0; k < n; k++) {
        burn_tensor *y = NULL;
        burn_scope_begin();
        assert_int_equal(burn_replay_run(replay, &x, 1, &y, 1, NULL), BURN_OK);
        if (k % 3 == 0) {
            check_same(y, several(x));
        }
        burn_scope_end();
        if (k == 20) {
            first = in_use();
        }
    }
    assert_int_equal(in_use(), first);
    burn_replay_free(replay);
    check_clean();
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Each call alone: what it gives is read before the next is made. */
static burn_tensor *alone(burn_tensor *t)
{
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    return t;
}

static burn_tensor *softmax_by_hand(burn_tensor *x, burn_tensor *(*next)(burn_tensor *))
{
    burn_tensor *top = next(burn_max(x, 1, DIMS(1), 1));
    burn_tensor *e = next(burn_exp(next(burn_sub(x, top))));
    burn_tensor *y = next(burn_div(e, next(burn_sum(e, 1, DIMS(1), 1))));
    return next(burn_mul(next(burn_sigmoid(y)), next(burn_log1p(e))));
}

static burn_tensor *together(burn_tensor *t)
{
    return t;
}

/* Fusion on and off, at sizes around vector widths and tiles. */
static void test_B252_groups_give_the_bits_of_single_calls(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 513};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const int64_t dims[2] = {3, sizes[i]};
        burn_tensor *x = burn_mul(count_up(dev, 2, dims, -7), burn_scalar(0.01));
        burn_tensor *expected = softmax_by_hand(x, alone);
        for (int k = 0; k < ROUNDS; k++) {
            burn_scope_begin();
            check_same(softmax_by_hand(x, together), expected);
            burn_scope_end();
            (void)burn_sync(dev, NULL);
        }
        burn_scope_flush();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B001_a_nan_wins_in_a_group),
        CORE_TEST(test_B015_a_product_keeps_nan_and_sign_in_a_group),
        CORE_TEST(test_B022_B026_rows_of_nothing),
        CORE_TEST(test_B050_many_rows_in_a_group),
        CORE_TEST(test_B020_ones_meet_nothing_in_a_group),
        CORE_TEST(test_B060_a_large_mean_in_a_group),
        CORE_TEST(test_B066_a_mean_of_halves_in_a_group),
        CORE_TEST(test_B072_far_from_zero_in_a_group),
        CORE_TEST(test_B078_whole_remainders_in_a_group),
        CORE_TEST(test_B082_casts_saturate_in_a_group),
        CORE_TEST(test_B086_powers_in_a_group),
        CORE_TEST(test_B011_truth_of_odd_values_in_a_group),
        CORE_TEST(test_B070_B121_B123_B125_gradients_that_wait),
        CORE_TEST(test_B080_B242_a_fault_in_a_group),
        CORE_TEST(test_B088_B242_a_fault_in_a_replay),
        CORE_TEST(test_B244_memory_is_flat_over_replays),
        CORE_TEST(test_B252_groups_give_the_bits_of_single_calls),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
