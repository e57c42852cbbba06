/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_check.c - BURN_CHECK: the call that made a NaN or a wrong number is named, exactly its
 * dependents fail, and what is right passes.
 */
#include "core_test.h"

#include "exec/check.h"

#include <burn/trace.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void check_with(const char *value)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_option_set("CHECK", value, &err);
    if (rc != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

static int unchecked(void **state)
{
    check_with("off");
    return core_teardown(state);
}

static int nan_setup(void **state)
{
    check_with("nan");
    return core_setup(state);
}

static int compare_setup(void **state)
{
    check_with("compare");
    return core_setup(state);
}

#define NAN_TEST(f)     cmocka_unit_test_setup_teardown(f, nan_setup, unchecked)
#define COMPARE_TEST(f) cmocka_unit_test_setup_teardown(f, compare_setup, unchecked)

/* ---- the option ------------------------------------------------------------------------------ */

static void option__what_it_is_not_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "NaN", "nan,", ",nan", "nan compare", "compare,nam"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_option_set("CHECK", bad[i], &err), BURN_E_INVALID);
        assert_non_null(strstr(err.text, bad[i]));
        assert_non_null(strstr(err.text, "compare"));
    }
    check_with("nan,compare");
    check_with("off");
}

/* ---- nan ------------------------------------------------------------------------------------- */

static void nan__log_of_minus_one_is_named(void **state)
{
    (void)state;
    burn_tag_begin("encoder");
    burn_tensor *y = burn_log(VEC(1, 4, -1, 2));
    burn_tag_end();
    check_read_fails(y, BURN_E_DATA, "log: output", "nan at [2] of f32[4]", "x f32[4] from -1 to 4",
                     "[at encoder]", NULL);
    /* Dependents carry the first cause; what is independent goes on. */
    check_read_fails(burn_add(y, VEC(1, 1, 1, 1)), BURN_E_DATA, "log: output", NULL);
    CHECK(burn_add(VEC(1, 2), VEC(1, 1)), 2, 3);
}

static void nan__overflow_is_named(void **state)
{
    (void)state;
    const float values[6] = {1, 2, 3, 4, 100, 6};
    check_read_fails(burn_exp(mat(2, 3, values)), BURN_E_DATA, "exp: output", "inf at [1,1]",
                     "f32[2,3]", "to 100", NULL);
    check_read_fails(burn_mul(VEC(3e38f), burn_scalar(10.0)), BURN_E_DATA, "mul: output", "inf",
                     NULL);
}

static void nan__is_blamed_on_the_first_only(void **state)
{
    (void)state;
    burn_tensor *given = VEC(1, (float)INFINITY, (float)NAN);
    double got[3];
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_read_f64(burn_mul(given, given), got, 3, &err), BURN_OK);
    assert_true(isinf(got[1]) && isnan(got[2]));
}

static void nan__in_a_gradient_is_named(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_require_grad(ad, VEC(4, 0));
    burn_tag_begin("head");
    burn_tensor *y = burn_sqrt(x); /* fine itself, its slope at 0 is infinite */
    burn_tag_end();
    CHECK(y, 2, 0);
    burn_grads *grads = burn_backward(burn_sum(y, 0, NULL, 0), NULL, 0, &err);
    if (grads != NULL) {
        check_read_fails(burn_grads_get(grads, x), BURN_E_DATA, "in gradient of sqrt", "inf at [1]",
                         "[at head]", NULL);
    } else {
        assert_non_null(strstr(err.text, "in gradient of sqrt"));
        assert_non_null(strstr(err.text, "[at head]"));
    }
    burn_grads_free(grads);
}

static void nan__in_a_decomposition_is_named(void **state)
{
    (void)state;
    assert_int_equal(burn_option_set("DECOMPOSE", "1", NULL), BURN_OK);
    burn_tensor *y = burn_softplus(VEC(1, 2));
    burn_tensor *z = burn_var_of(VEC(1e30f, -1e30f), 0, NULL, 0, 1);
    assert_int_equal(burn_option_set("DECOMPOSE", "0", NULL), BURN_OK);
    CHECK_NEAR(y, 1e-5, 1.3132617, 2.1269280);
    check_read_fails(z, BURN_E_DATA, "(in var", "inf", NULL);
}

static void nan__half_precision_and_integers(void **state)
{
    (void)state;
    burn_tensor *h = burn_cast(VEC(300, 1), BURN_F16);
    check_read_fails(burn_mul(h, h), BURN_E_DATA, "mul: output", "f16[2]", NULL);
    burn_tensor *i = index_vec(2, (const int64_t[]){INT64_MAX, 3});
    double got[2];
    assert_int_equal(burn_read_f64(burn_add(i, i), got, 2, NULL), BURN_OK);
}

/* Finite values whose sum is none: looking at the sum would find inf - inf. */
static void nan__B013_is_looked_for_in_elements(void **state)
{
    (void)state;
    enum { HALF = 2048 };
    float values[2 * HALF];
    for (int i = 0; i < 2 * HALF; i++) {
        values[i] = i < HALF ? 60000.0F : -60000.0F;
    }
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F32};
    for (size_t d = 0; d < COUNT(dtypes); d++) {
        burn_tensor *x = burn_cast(vec(2 * HALF, values), dtypes[d]);
        CHECK(burn_slice(burn_neg(x), 0, HALF - 1, HALF + 1, 1), d == 1 ? -59904 : -60000,
              d == 1 ? 59904 : 60000);
        CHECK(burn_any(burn_is_nan(x), 0, NULL, 0), 0);
        CHECK(burn_any(burn_is_inf(x), 0, NULL, 0), 0);
        CHECK(burn_all(burn_is_finite(x), 0, NULL, 0), 1);
    }
    values[2 * HALF - 1] = (float)NAN;
    burn_tensor *bad = burn_cast(vec(2 * HALF, values), BURN_F16);
    CHECK(burn_any(burn_is_nan(bad), 0, NULL, 0), 1);
    CHECK(burn_all(burn_is_finite(bad), 0, NULL, 0), 0);
    CHECK(burn_any(burn_is_nan(burn_zeros(dev, BURN_F16, 1, DIMS(0))), 0, NULL, 0), 0);
    check_clean();
}

static void nan__a_variable_that_is_updated_wrongly_fails(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *var = burn_var_create(dev, VEC(1, 2), &err);
    assert_non_null(var);
    burn_attrs_sgd a = {.head = {sizeof(a), 1}};
    burn_var *vars[4] = {var, NULL, NULL, NULL};
    burn_tensor *in[4] = {NULL, VEC(3e38f, 0), NULL, burn_scalar(1e10)};
    (void)burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
    check_read_fails(burn_var_get(var), BURN_E_DATA, "sgd_step", "inf", NULL);
    assert_int_equal(burn_var_assign(var, VEC(5, 6), &err), BURN_OK);
    CHECK(burn_var_get(var), 5, 6);
    burn_var_release(var);
}

/* ---- compare --------------------------------------------------------------------------------- */

static void compare__what_is_right_passes(void **state)
{
    (void)state;
    burni_check_counts before = burni_check_report();
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(33, 70));
    burn_tensor *w = burn_random_normal(dev, BURN_F32, 2, DIMS(70, 17));
    burn_tensor *y = burn_matmul(x, w);
    y = burn_softmax(burn_mul(y, burn_scalar(100.0)), 1);
    y = burn_add(burn_transpose(y, 0, 1), burn_scalar(1.0));
    burn_tensor *s = burn_sum(burn_slice(y, 0, 1, 17, 3), 1, DIMS(1), 0);
    burn_tensor *i = burn_argmax(x, 1, 0);
    double item = burn_item(burn_sum(s, 0, NULL, 0), NULL);
    assert_true(isfinite(item));
    assert_int_equal(burn_numel(i), 33);
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared >= before.compared + 7);
    check_clean();
}

static void compare__a_training_step_passes(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burni_check_counts before = burni_check_report();
    burn_module *m = burn_module_create(ad, &err);
    assert_non_null(burn_nn_linear(m, "one", 12, 7, 1, &err));
    assert_non_null(burn_nn_activation(m, "act", BURN_RELU, &err));
    assert_non_null(burn_nn_batch_norm(m, "norm", 7, &err));
    assert_non_null(burn_nn_dropout(m, "drop", 0.5, &err));
    assert_non_null(burn_nn_linear(m, "two", 7, 3, 1, &err));
    burn_module_set_training(m, 1);
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(16, 12));
    burn_tensor *target = burn_reshape(burn_arange(dev, BURN_I64, 16, 0.0, 0.0), 1, DIMS(16));
    burn_tensor *loss = burn_cross_entropy(burn_forward(m, x), target, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    if (grads == NULL) {
        fail_msg("%s", err.text);
    }
    burn_var *w = burn_module_var(m, "one.weight");
    burn_tensor *g = burn_grads_get_var(grads, w);
    burn_attrs_sgd a = {.head = {sizeof(a), 1}};
    burn_var *vars[4] = {w, NULL, NULL, NULL};
    burn_tensor *in[4] = {NULL, g, NULL, burn_scalar(0.1)};
    int32_t rc = burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
    if (rc != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(burn_sync(dev, &err), BURN_OK);
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared > before.compared + 20);
    burn_grads_free(grads);
    burn_module_free(m);
}

static void compare__random_numbers_have_a_meaning_too(void **state)
{
    (void)state;
    burni_check_counts before = burni_check_report();
    burn_tensor *u = burn_random_uniform(dev, BURN_F32, 1, DIMS(100));
    burn_tensor *b = burn_bernoulli(dev, BURN_F32, 1, DIMS(100), 0.25);
    assert_true(isfinite(burn_item(burn_sum(burn_add(u, b), 0, NULL, 0), NULL)));
    burni_check_counts after = burni_check_report();
    assert_int_equal(after.wrong, before.wrong);
    assert_true(after.compared >= before.compared + 4);
}

/* The second `where` is spoilt; the option is read when a device opens, so this is mock:1. */
static void compare__a_wrong_kernel_is_named(void **state)
{
    (void)state;
    if (!on_mock) {
        return;
    }
    burn_err err = BURN_ERR_INIT;
    char text[32];
    (void)snprintf(text, sizeof(text), "%d:2", BURN_OP_WHERE);
    assert_int_equal(burn_option_set("MOCK_WRONG_OP", text, &err), BURN_OK);
    burn_device *other = burn_device_open("mock:1", &err);
    if (other == NULL) {
        fail_msg("%s", err.text);
    }
    const float numbers[4] = {1, 2, 3, 4};
    burn_tensor *x = burn_tensor_from_data(other, BURN_F32, 2, DIMS(2, 2), numbers);
    const float nans[4] = {NAN, NAN, NAN, NAN};
    const float mixed[4] = {1, -2, NAN, 3};
    burn_tensor *y = burn_tensor_from_data(other, BURN_F32, 2, DIMS(2, 2), nans);
    burn_tensor *z = burn_tensor_from_data(other, BURN_F32, 2, DIMS(2, 2), mixed);
    burn_tensor *all = burn_tensor_from_data(other, BURN_BOOL, 2, DIMS(2, 2), "\1\1\1\1");
    CHECK(burn_where(all, x, y), 1, 2, 3, 4);
    burn_tensor *wrong = burn_where(all, z, y);
    burn_tensor *after = burn_where(all, x, z);
    check_read_fails(wrong, BURN_E_DATA, "where: output", "at [0,0] of f32[2,2]",
                     "its definition says 1", "on mock:1", "f32[2,2] from -2 to 3, and nan",
                     "f32[2,2] all nan", NULL);
    check_read_fails(burn_neg(wrong), BURN_E_DATA, "where: output", NULL);
    CHECK(after, 1, 2, 3, 4);
    assert_int_equal(burn_sync(other, &err), BURN_E_DATA);
    assert_int_equal(burn_sync(other, NULL), BURN_OK);
}

static void *one_thread(void *arg)
{
    (void)arg;
    burn_scope_begin();
    burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 1, DIMS(2), (const float[]){1, -1});
    burn_err err = BURN_ERR_INIT;
    float got[2];
    int32_t rc = burn_read(burn_sqrt(x), got, sizeof(got), &err);
    int found = rc == BURN_E_DATA && strstr(err.text, "sqrt: output") != NULL;
    rc = burn_read(burn_add(x, x), got, sizeof(got), &err);
    burn_scope_end();
    return found && rc == BURN_OK && got[0] == 2.0f ? NULL : (void *)&window;
}

static void nan__threads_that_start_later_check_too(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, one_thread, NULL), 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(option__what_it_is_not_is_an_error, core_setup, unchecked),
        NAN_TEST(nan__log_of_minus_one_is_named),
        NAN_TEST(nan__overflow_is_named),
        NAN_TEST(nan__is_blamed_on_the_first_only),
        NAN_TEST(nan__in_a_gradient_is_named),
        NAN_TEST(nan__in_a_decomposition_is_named),
        NAN_TEST(nan__half_precision_and_integers),
        NAN_TEST(nan__B013_is_looked_for_in_elements),
        NAN_TEST(nan__a_variable_that_is_updated_wrongly_fails),
        NAN_TEST(nan__threads_that_start_later_check_too),
        COMPARE_TEST(compare__what_is_right_passes),
        COMPARE_TEST(compare__a_training_step_passes),
        COMPARE_TEST(compare__random_numbers_have_a_meaning_too),
        COMPARE_TEST(compare__a_wrong_kernel_is_named),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
