/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_metric.c - loss, perplexity and accuracy from raw statistics.
 */
#include "train_test.h"

#include <burn/metric.h>
#include <math.h>
#include <string.h>

static void B220_accuracy__is_that_of_all_items(void **state)
{
    (void)state;
    burn_metric_accuracy metric;
    BURN_INIT(&metric, burn_metric_accuracy);
    const int64_t four[] = {3, 1, 0, 2};
    const int64_t one[] = {1};
    const int64_t other[] = {0};
    double value = -1.0;
    assert_int_equal(burn_metric_accuracy_add(&metric, four, four, 4, BURN_METRIC_NO_IGNORE, NULL),
                     BURN_OK);
    assert_int_equal(burn_metric_accuracy_add(&metric, one, other, 1, BURN_METRIC_NO_IGNORE, NULL),
                     BURN_OK);
    assert_int_equal(burn_metric_accuracy_value(&metric, &value, NULL), BURN_OK);
    assert_true(value == 0.8);
}

static void B220_perplexity__is_that_of_all_tokens(void **state)
{
    (void)state;
    burn_metric_mean metric;
    BURN_INIT(&metric, burn_metric_mean);
    double value = 0.0;
    assert_int_equal(burn_metric_mean_add(&metric, 0.0, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_add(&metric, log(9.0), 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_perplexity(&metric, &value, NULL), BURN_OK);
    assert_true(fabs(value - 3.0) < 1e-12);
}

static void B220_value__is_not_available_before_any_data(void **state)
{
    (void)state;
    burn_metric_accuracy accuracy;
    burn_metric_mean mean;
    BURN_INIT(&accuracy, burn_metric_accuracy);
    BURN_INIT(&mean, burn_metric_mean);
    burn_err err = BURN_ERR_INIT;
    double value = 123.0;
    assert_int_equal(burn_metric_accuracy_value(&accuracy, &value, &err), BURN_E_STATE);
    assert_non_null(strstr(err.text, "not available"));
    assert_int_equal(burn_metric_mean_value(&mean, &value, &err), BURN_E_STATE);
    assert_int_equal(burn_metric_mean_perplexity(&mean, &value, &err), BURN_E_STATE);
    /* A batch whose targets were all ignored is no data either. */
    const int64_t ignored[] = {-100, -100};
    const int64_t predicted[] = {0, 1};
    assert_int_equal(burn_metric_accuracy_add(&accuracy, predicted, ignored, 2, -100, NULL),
                     BURN_OK);
    assert_int_equal(accuracy.ignored, 2);
    assert_int_equal(burn_metric_accuracy_value(&accuracy, &value, NULL), BURN_E_STATE);
    assert_int_equal(burn_metric_mean_add_mean(&mean, (double)NAN, 0, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&mean, &value, NULL), BURN_E_STATE);
    assert_true(value == 123.0);
    assert_int_equal(burn_metric_mean_add(&mean, 2.0, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&mean, &value, NULL), BURN_OK);
    assert_true(value == 2.0); /* the NaN of no items left no trace */
}

static void B218_mean__weighs_batches_by_their_items(void **state)
{
    (void)state;
    burn_metric_mean metric;
    BURN_INIT(&metric, burn_metric_mean);
    double value;
    /* One token with loss 4, three with loss 0. */
    assert_int_equal(burn_metric_mean_add_mean(&metric, 4.0, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_add_mean(&metric, 0.0, 3, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&metric, &value, NULL), BURN_OK);
    assert_true(value == 1.0);
}

static void mean__does_not_lose_small_losses(void **state)
{
    (void)state;
    burn_metric_mean metric;
    BURN_INIT(&metric, burn_metric_mean);
    double value;
    assert_int_equal(burn_metric_mean_add(&metric, 1e16, 1, NULL), BURN_OK);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(burn_metric_mean_add(&metric, 1.0, 1, NULL), BURN_OK);
    }
    assert_int_equal(burn_metric_mean_add(&metric, -1e16, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&metric, &value, NULL), BURN_OK);
    assert_true(value == 1000.0 / 1002.0);
}

static void mean__shows_what_is_not_finite(void **state)
{
    (void)state;
    burn_metric_mean metric;
    BURN_INIT(&metric, burn_metric_mean);
    double value;
    assert_int_equal(burn_metric_mean_add(&metric, (double)INFINITY, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_add(&metric, 1.0, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&metric, &value, NULL), BURN_OK);
    assert_true(isinf(value) && value > 0.0);
    assert_int_equal(burn_metric_mean_add(&metric, (double)NAN, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_value(&metric, &value, NULL), BURN_OK);
    assert_true(isnan(value));
}

static void merge__is_adding_to_one(void **state)
{
    (void)state;
    burn_metric_mean a;
    burn_metric_mean b;
    burn_metric_accuracy c;
    burn_metric_accuracy d;
    BURN_INIT(&a, burn_metric_mean);
    BURN_INIT(&b, burn_metric_mean);
    BURN_INIT(&c, burn_metric_accuracy);
    BURN_INIT(&d, burn_metric_accuracy);
    double value;
    assert_int_equal(burn_metric_mean_add(&a, 3.0, 2, NULL), BURN_OK);
    assert_int_equal(burn_metric_mean_add(&b, 9.0, 1, NULL), BURN_OK);
    burn_metric_mean_merge(&a, &b);
    assert_int_equal(burn_metric_mean_value(&a, &value, NULL), BURN_OK);
    assert_true(value == 4.0);
    assert_int_equal(burn_metric_accuracy_add_counts(&c, 1, 1, NULL), BURN_OK);
    assert_int_equal(burn_metric_accuracy_add_counts(&d, 0, 3, NULL), BURN_OK);
    burn_metric_accuracy_merge(&c, &d);
    assert_int_equal(burn_metric_accuracy_value(&c, &value, NULL), BURN_OK);
    assert_true(value == 0.25);
}

static void scores__follow_the_argmax_convention(void **state)
{
    (void)state;
    const float scores[] = {
        1.0F, 5.0F,       5.0F,       /* tie: the lower index */
        9.0F, (float)NAN, 10.0F,      /* NaN before all others */
        0.0F, -1.0F,      -INFINITY,  /* plain */
        0.0F, 0.0F,       0.0F,       /* ignored */
    };
    const int64_t target[] = {1, 1, 0, -100};
    burn_metric_accuracy metric;
    BURN_INIT(&metric, burn_metric_accuracy);
    assert_int_equal(burn_metric_accuracy_add_scores(&metric, scores, 4, 3, target, -100, NULL),
                     BURN_OK);
    assert_int_equal(metric.correct, 3);
    assert_int_equal(metric.count, 3);
    assert_int_equal(metric.ignored, 1);
}

static void bad_arguments__add_nothing(void **state)
{
    (void)state;
    burn_metric_accuracy accuracy;
    burn_metric_mean mean;
    BURN_INIT(&accuracy, burn_metric_accuracy);
    BURN_INIT(&mean, burn_metric_mean);
    const float scores[] = {1.0F, 2.0F, 1.0F, 2.0F};
    const int64_t target[] = {1, 2};
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_metric_accuracy_add_scores(&accuracy, scores, 2, 2, target,
                                                     BURN_METRIC_NO_IGNORE, &err),
                     BURN_E_DATA);
    assert_non_null(strstr(err.text, "target 2 of row 1"));
    assert_int_equal(burn_metric_accuracy_add_scores(&accuracy, scores, 2, 0, target, 0, NULL),
                     BURN_E_INVALID);
    assert_int_equal(burn_metric_accuracy_add(&accuracy, NULL, target, 2, 0, NULL),
                     BURN_E_INVALID);
    assert_int_equal(burn_metric_accuracy_add_counts(&accuracy, 3, 2, NULL), BURN_E_INVALID);
    assert_int_equal(burn_metric_accuracy_add_counts(&accuracy, -1, 2, NULL), BURN_E_INVALID);
    assert_int_equal(accuracy.count, 0);
    assert_int_equal(burn_metric_mean_add(&mean, 1.0, -1, &err), BURN_E_INVALID);
    assert_int_equal(burn_metric_mean_add(NULL, 1.0, 1, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "target 2 of row 1")); /* the first error stays */
    mean.struct_size = 0;
    err.code = BURN_OK;
    assert_int_equal(burn_metric_mean_add(&mean, 1.0, 1, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "BURN_INIT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(B220_accuracy__is_that_of_all_items),
        cmocka_unit_test(B220_perplexity__is_that_of_all_tokens),
        cmocka_unit_test(B220_value__is_not_available_before_any_data),
        cmocka_unit_test(B218_mean__weighs_batches_by_their_items),
        cmocka_unit_test(mean__does_not_lose_small_losses),
        cmocka_unit_test(mean__shows_what_is_not_finite),
        cmocka_unit_test(merge__is_adding_to_one),
        cmocka_unit_test(scores__follow_the_argmax_convention),
        cmocka_unit_test(bad_arguments__add_nothing),
    };
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
