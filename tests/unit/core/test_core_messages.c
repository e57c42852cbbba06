/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_messages.c - what bad calls are told: which argument it is, the values, what would do.
 *
 * One check for each text; of an argument that may be wrong in several ways, the text says in which
 * it is. To add one: a call, and the words that its text must have.
 */
#include "core_test.h"

#include <burn/environment.h>
#include <burn/explain.h>
#include <burn/op_attrs.h>
#include <burn/plans.h>
#include <burn/plugins.h>
#include <burn/replay.h>
#include <burn/store.h>
#include <string.h>

/* The call failed with that code and text; the sink is made ready for the next. */
static void told(int32_t got, int32_t code, burn_err *err, const char *words)
{
    assert_int_equal(got, code);
    assert_int_equal(err->code, code);
    if (strstr(err->text, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, err->text);
    }
    *err = (burn_err)BURN_ERR_INIT;
}

static void dtypes__that_would_do_are_named(void **state)
{
    (void)state;
    burn_tensor *whole = index_vec(2, DIMS(0, 1));
    burn_tensor *labels = burn_cast(whole, BURN_U8);
    check_failed(burn_exp(whole), BURN_E_DTYPE, "exp: operand x has dtype i64",
                 "cast it to one of f16, bf16, f32, f64 (burn_cast)", NULL);
    check_failed(burn_cross_entropy(mat(2, 2, (const float[]){1, 2, 3, 4}), labels, NULL, NULL),
                 BURN_E_DTYPE, "cross_entropy: operand target has dtype u8",
                 "cast it to one of i32, i64", NULL);
    check_failed(burn_add(VEC(1, 2), whole), BURN_E_DTYPE, "x has f32; cast one of them", NULL);
    check_failed(burn_random_uniform(dev, BURN_I32, 1, DIMS(2)), BURN_E_DTYPE,
                 "dtype i32 (code 7); use one of f16, bf16, f32, f64", NULL);
    check_failed(burn_tensor_from_data(dev, 200, 1, DIMS(1), "abcd"), BURN_E_DTYPE,
                 "200 is the code of no dtype", "they have bool, u8, i8,", "f64", NULL);
    check_failed(burn_one_hot(whole, 3, 77), BURN_E_DTYPE, "one_hot: 77", "use one of bool", NULL);
}

static void shapes__are_told_with_the_reason(void **state)
{
    (void)state;
    burn_tensor *x = mat(2, 3, (const float[]){1, 2, 3, 4, 5, 6});
    check_failed(burn_flatten(x, 1, 0), BURN_E_INVALID, "flatten: axes 1 to 0 of [2,3]",
                 "-2 to 1", "the first not behind the last", NULL);
    check_failed(burn_slice(x, 3, 0, 1, 1), BURN_E_INVALID,
                 "slice: axis 3 of [2,3] is not there; use -2 to 1", NULL);
    check_failed(burn_squeeze(x, 0), BURN_E_SHAPE, "squeeze: axis 0 of [2,3] is longer", NULL);
    check_failed(burn_squeeze(x, 2), BURN_E_SHAPE, "squeeze: axis 2 of [2,3] is not there", NULL);
    check_failed(burn_pad(x, NULL, DIMS(0, 0), burn_scalar(0)), BURN_E_INVALID,
                 "pad: before is NULL, x has rank 2", NULL);
    check_failed(burn_pad(x, DIMS(0, 0), NULL, burn_scalar(0)), BURN_E_INVALID,
                 "pad: after is NULL, x has rank 2", NULL);
    check_failed(burn_pad(x, DIMS(0, INT64_MAX), DIMS(0, 1), burn_scalar(0)), BURN_E_SHAPE,
                 "pad: dim 1 of 3 with 9223372036854775807 before and 1 after", NULL);
    check_failed(burn_one_hot(index_vec(1, DIMS(0)), 0, BURN_F32), BURN_E_INVALID,
                 "one_hot: classes is 0", "use 1 or more", NULL);
    assert_true(burn_ok(burn_one_hot(burn_zeros(dev, BURN_I64, 1, DIMS(0)), 0, BURN_F32)));
    check_failed(burn_add(burn_scalar(1), burn_scalar(2)), BURN_E_DEVICE,
                 "add: all operands are scalars", "burn_full", NULL);
    check_failed(burn_require_grad(ad, NULL), BURN_E_INVALID, "require_grad: the tensor is NULL",
                 NULL);
}

static void calls__are_told_by_the_name_that_was_called(void **state)
{
    (void)state;
    burn_tensor *const lengths[2] = {VEC(1, 2), VEC(1, 2, 3)};
    burn_tensor *const dtypes[2] = {VEC(1, 2), index_vec(2, DIMS(0, 1))};
    burn_tensor *const alike[2] = {VEC(1, 2), VEC(3, 4)};
    check_failed(burn_stack(lengths, 2, 0), BURN_E_SHAPE,
                 "stack: input 1 is f32[3], input 0 is f32[2]", NULL);
    check_failed(burn_stack(dtypes, 2, 0), BURN_E_DTYPE,
                 "stack: input 1 is i64[2], input 0 is f32[2]", NULL);
    check_failed(burn_stack(alike, 2, 2), BURN_E_INVALID, "stack: axis 2", "-2..1", NULL);
    CHECK(burn_stack(alike, 2, -1), 1, 3, 2, 4);
    burn_conv_opts opts = {0};
    burn_tensor *image = burn_zeros(dev, BURN_F32, 4, DIMS(1, 1, 2, 2));
    check_failed(burn_conv2d(image, image, NULL, &opts), BURN_E_INVALID,
                 "conv2d: opts.struct_size is 0", NULL);
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(dev, &err);
    assert_null(burn_nn_linear(root, "wide", INT64_MAX, 2, 1, &err));
    told(err.code, BURN_E_SHAPE, &err, "wide: weight would be [9223372036854775807,2]");
    burn_module_free(root);
}

static void arguments__that_are_missing_are_named(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_device_info info;
    burn_module *root = burn_module_create(dev, &err);
    burn_var *var = burn_var_create(dev, VEC(1), &err);
    burn_var *const vars[1] = {var};
    BURN_INIT(&info, burn_device_info);
    assert_int_equal(err.code, BURN_OK);
    assert_null(burn_var_create(NULL, VEC(1), &err));
    told(err.code, BURN_E_INVALID, &err, "variable: the device is NULL");
    assert_null(burn_var_create(dev, NULL, &err));
    told(err.code, BURN_E_INVALID, &err, "variable: the value is NULL");
    told(burn_var_assign(NULL, VEC(1), &err), BURN_E_INVALID, &err, "assign: the variable is NULL");
    told(burn_var_assign(var, NULL, &err), BURN_E_INVALID, &err, "assign: the value is NULL");
    told(burn_var_update(UINT64_MAX, NULL, 0, vars, NULL, 1, &err), BURN_E_NOT_FOUND, &err,
         "update: there is no op with id 18446744073709551615");
    told(burn_var_update(BURN_OP_SGD_STEP, NULL, 0, NULL, NULL, 1, &err), BURN_E_INVALID, &err,
         "update: sgd_step: the list vars is NULL");
    told(burn_var_update(BURN_OP_SGD_STEP, NULL, 0, vars, NULL, 1, &err), BURN_E_INVALID, &err,
         "update: sgd_step: the list in is NULL");
    told(burn_device_describe(NULL, &info, &err), BURN_E_INVALID, &err, "the device is NULL");
    told(burn_device_describe(dev, NULL, &err), BURN_E_INVALID, &err, "the output is NULL");
    told(burn_save(NULL, "/x", NULL, &err), BURN_E_INVALID, &err, "save: the module is NULL");
    told(burn_save(root, NULL, NULL, &err), BURN_E_INVALID, &err, "save: the path is NULL");
    told(burn_save(root, "", NULL, &err), BURN_E_INVALID, &err, "save: the path is empty");
    told(burn_load(NULL, "/x", 0, NULL, &err), BURN_E_INVALID, &err, "load: the module is NULL");
    told(burn_load(root, NULL, 0, NULL, &err), BURN_E_INVALID, &err, "load: the path is NULL");
    told(burn_load(root, "/x", 8, NULL, &err), BURN_E_INVALID, &err,
         "load: flags 0x8, known are 0x1");
    told(burn_replay_run(NULL, NULL, 0, NULL, 0, &err), BURN_E_INVALID, &err,
         "replay: the replay is NULL");
    burn_tensor *x = VEC(1);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *y = burn_exp(burn_replay_port(x));
    burn_replay *replay = burn_replay_end(&y, 1, &err);
    assert_non_null(replay);
    told(burn_replay_run(replay, NULL, 0, &y, 1, &err), BURN_E_INVALID, &err,
         "replay: 0 inputs given, the step has 1 port");
    told(burn_replay_run(replay, NULL, 1, &y, 1, &err), BURN_E_INVALID, &err,
         "replay: the inputs are NULL");
    told(burn_replay_run(replay, &x, 1, NULL, 1, &err), BURN_E_INVALID, &err,
         "replay: the outputs are NULL");
    burn_replay_free(replay);
    told(burn_replay_set(NULL, "lr", 1, &err), BURN_E_INVALID, &err, "replay: the replay is NULL");
    check_failed(burn_file_read(NULL, "w", dev), BURN_E_INVALID, "file: the file is NULL", NULL);
    burn_var_release(var);
    burn_module_free(root);
}

static void outputs__are_told_of_their_size(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_memory memory = {0};
    burn_plan_totals totals = {0};
    burn_plan_info plan = {0};
    burn_plugin_info plugin = {0};
    told(burn_memory_report(NULL, &memory, &err), BURN_E_INVALID, &err,
         "memory: the device is NULL");
    told(burn_memory_report(dev, NULL, &err), BURN_E_INVALID, &err, "memory: the output is NULL");
    told(burn_memory_report(dev, &memory, &err), BURN_E_INVALID, &err,
         "memory: struct_size of the output is 0, ");
    told(burn_plan_report(NULL, &totals, &err), BURN_E_INVALID, &err, "plans: the device is NULL");
    told(burn_plan_report(dev, NULL, &err), BURN_E_INVALID, &err, "plans: the output is NULL");
    told(burn_plan_report(dev, &totals, &err), BURN_E_INVALID, &err, "output is 0, ");
    told(burn_plan_at(dev, 0, &plan, &err), BURN_E_INVALID, &err, "output is 0, ");
    told(burn_plugins_at(0, 0, NULL, &err), BURN_E_INVALID, &err, "plugins: the output is NULL");
    told(burn_plugins_at(0, 0, &plugin, &err), BURN_E_INVALID, &err, "plugins: struct_size");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(dtypes__that_would_do_are_named),
        CORE_TEST(shapes__are_told_with_the_reason),
        CORE_TEST(calls__are_told_by_the_name_that_was_called),
        CORE_TEST(arguments__that_are_missing_are_named),
        CORE_TEST(outputs__are_told_of_their_size),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
