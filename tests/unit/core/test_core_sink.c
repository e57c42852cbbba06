/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_sink.c - one burn_err for many calls, and bad arguments of the calls themselves.
 *
 * A sink keeps its first error, so that a program which looks once sees the cause and not what came
 * of it. Texts name what the caller gave, and options that come too late are refused.
 */
#include "core_test.h"

#include <string.h>

/* The loop of the README, with a weight of the wrong shape. */
static void test_the_first_error_stays(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    const float xs[] = {1, 0, 0, 1, 1, 1, 2, -1};
    burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 2, DIMS(4, 2), xs);
    burn_tensor *y = burn_tensor_from_data(dev, BURN_F32, 2, DIMS(4, 1), xs);
    burn_var *w = burn_var_create(ad, mat(1, 2, (const float[]){0, 0}), &err);
    assert_non_null(w);
    burn_scope_begin();
    burn_tensor *diff = burn_sub(burn_matmul(x, burn_var_get(w)), y);
    burn_grads *grads = burn_backward(burn_mul(diff, diff), NULL, 0, &err);
    assert_null(grads);
    const burn_err first = err;
    assert_int_equal(first.code, BURN_E_SHAPE);
    assert_int_equal(first.op, BURN_OP_MATMUL);
    assert_non_null(strstr(first.text, "matmul"));
    burn_no_grad_begin();
    burn_tensor *change = burn_mul(burn_grads_get_var(grads, w), burn_scalar(0.05));
    assert_int_not_equal(burn_var_assign(w, burn_sub(burn_var_get(w), change), &err), BURN_OK);
    burn_no_grad_end();
    assert_int_equal(burn_var_assign(NULL, x, &err), BURN_E_INVALID);
    assert_int_equal(burn_read(NULL, NULL, 0, &err), BURN_E_INVALID);
    assert_null(burn_device_open("no_such_backend", &err));
    float fit[2] = {1, 1};
    assert_int_equal(burn_read(burn_var_get(w), fit, sizeof(fit), &err), BURN_OK);
    assert_memory_equal(&err, &first, sizeof(err));
    burn_scope_end();
    burn_grads_free(grads);
    burn_var_release(w);

    /* Looked at and cleared, the sink takes the next one. */
    err.code = BURN_OK;
    assert_int_equal(burn_read(NULL, NULL, 0, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "read"));
}

static void test_calls_without_lists(void **state)
{
    (void)state;
    burn_tensor *const in[2] = {VEC(1, 2), VEC(3, 4)};
    burn_tensor *out = NULL;
    assert_int_equal(burn_op_call(NULL, BURN_OP_ADD, NULL, 0, NULL, 2, &out, 1), BURN_E_INVALID);
    check_failed(out, BURN_E_INVALID, "add", "in is NULL", NULL);
    assert_int_equal(burn_op_call(NULL, BURN_OP_ADD, NULL, 0, in, 2, NULL, 1), BURN_E_INVALID);
    assert_int_equal(burn_op_call(NULL, BURN_OP_ADD, NULL, 0, in, 2, &out, 1), BURN_OK);
    CHECK(out, 4, 6);
}

static void test_texts_name_what_was_given(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *m = mat(2, 2, (const float[]){1, 2, 3, 4});
    check_failed(burn_cumsum(m, -3), BURN_E_INVALID, "axis -3", "-2 to 1", NULL);
    check_failed(burn_softmax(m, -7), BURN_E_INVALID, "axis -7", "-2 to 1", NULL);
    check_failed(burn_sum(m, 1, NULL, 0), BURN_E_INVALID, "sum: axes is NULL", NULL);
    check_failed(burn_cat(NULL, 2, 0), BURN_E_INVALID, "cat: the list", "NULL", NULL);
    assert_int_equal(burn_read(m, NULL, 16, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "out is NULL"));
    burn_tensor *ones = VEC(1, 1);
    check_failed(burn_layer_norm(m, ones, ones, 1, -1.0), BURN_E_INVALID, "eps is -1", NULL);
    burn_tensor *mean = NULL;
    burn_tensor *var = NULL;
    check_failed(burn_batch_norm(m, ones, ones, NULL, NULL, 1, -1.0, &mean, &var), BURN_E_INVALID,
                 "batch_norm: eps is -1", NULL);
    check_failed(var, BURN_E_INVALID, "eps", NULL);
    err.code = BURN_OK;
    assert_null(burn_backward(burn_require_grad(ad, m), NULL, 0x80, &err));
    assert_non_null(strstr(err.text, "flags are 0x80"));
    burn_tensor *huge = burn_arange(dev, BURN_F32, INT64_C(1) << 50, 0.0, 1.0);
    err.code = BURN_OK;
    assert_int_not_equal(burn_sync(dev, &err), BURN_OK);
    assert_null(strstr(err.text, "9223372036854775807"));
    assert_false(burn_ok(huge) && burn_item(huge, NULL) == 0.0);
    (void)burn_sync(dev, NULL);
}

static void refused(const char *name, const char *value, int32_t code, const char *word)
{
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_option_set(name, value, &err), code);
    if (strstr(err.text, word) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", name, err.text, word);
    }
}

static void test_options_without_effect_are_refused(void **state)
{
    (void)state;
    refused("WINDOW", "17", BURN_E_STATE, "is open");
    refused("THREADS", "3", BURN_E_STATE, "is open");
    refused("BURN_THREADS", "3", BURN_E_INVALID, "leave out BURN_");
    refused("THREDS", "3", BURN_E_NOT_FOUND, "THREADS");
    refused("NO_SUCH_OPTION", "3", BURN_E_NOT_FOUND, "there is none");
    refused("DEVICE", "mock", BURN_E_INVALID, "burn_device_open");
    if (!on_mock) {
        refused("FLEX_ISA", "nonsense", BURN_E_STATE, "no effect any more");
    }
}

static void test_an_open_device_has_its_options(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    if (!on_mock) {
        assert_null(burn_device_open("flex:0?nonsense=1", &err));
        assert_int_equal(err.code, BURN_E_STATE);
        return;
    }
    assert_null(burn_device_open("mock:0?memory=5&nonsense=1", &err));
    assert_int_equal(err.code, BURN_E_STATE);
    assert_non_null(strstr(err.text, "memory=5&nonsense=1"));
    burn_device *other = burn_device_open("mock:1?delay_us=1", NULL);
    assert_non_null(other);
    assert_ptr_equal(burn_device_open("mock:1", NULL), other);
    assert_ptr_equal(burn_device_open("mock:1?delay_us=1", NULL), other);
    assert_null(burn_device_open("mock:1?delay_us=2", NULL));
}

static void test_a_near_extension_is_named(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_extension_load("fusde", &err), BURN_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "fusde"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_the_first_error_stays),
        CORE_TEST(test_calls_without_lists),
        CORE_TEST(test_texts_name_what_was_given),
        CORE_TEST(test_options_without_effect_are_refused),
        CORE_TEST(test_an_open_device_has_its_options),
        CORE_TEST(test_a_near_extension_is_named),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
