/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_nn.c - the tree of modules and its layers: names, paths, order, failures while
 * building, modes, running statistics (B064).
 */
#include "core_test.h"

#include <math.h>
#include <string.h>

static burn_module *make_root(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(ad, &err);
    if (root == NULL) {
        fail_msg("%s", err.text);
    }
    return root;
}

static void test_names_and_paths(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    burn_module *encoder = burn_module_child(root, "encoder", &err);
    burn_module *first = burn_module_child(encoder, "0", &err);
    (void)burn_nn_linear(first, "query", 4, 4, 0, &err);
    (void)burn_nn_linear(encoder, "out", 4, 2, 1, &err);
    assert_int_equal(err.code, BURN_OK);
    assert_ptr_equal(burn_module_find(root, "encoder.0"), first);
    assert_ptr_equal(burn_module_find(root, ""), root);
    assert_null(burn_module_find(root, "encoder.1"));
    assert_null(burn_module_find(root, "encoder.0.query.weight"));
    assert_non_null(burn_module_var(root, "encoder.0.query.weight"));
    assert_non_null(burn_module_var(encoder, "out.bias"));
    assert_null(burn_module_var(root, "encoder.0.query.bias"));
    assert_null(burn_module_var(root, NULL));
    const char *want[] = {"encoder.0.query.weight", "encoder.out.weight", "encoder.out.bias"};
    assert_int_equal(burn_module_n_vars(root), 3);
    for (uint32_t i = 0; i < 3; i++) {
        const char *path = NULL;
        int32_t trainable = 0;
        assert_non_null(burn_module_var_at(root, i, &path, &trainable));
        assert_string_equal(path, want[i]);
        assert_int_equal(trainable, 1);
    }
    assert_null(burn_module_var_at(root, 3, NULL, NULL));
    assert_int_equal(burn_module_n_params(root), 16 + 8 + 2);
    burn_module_free(root);
    burn_module_free(NULL);
}

static void test_names_that_do_not_do(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    (void)burn_module_child(root, "a", &err);
    const char *bad[] = {"", "a.b", "a b", "a", "\xc3\xa4", NULL};
    for (size_t i = 0; i < COUNT(bad); i++) {
        err = (burn_err)BURN_ERR_INIT;
        assert_null(burn_module_child(root, bad[i], &err));
        assert_int_equal(err.code, BURN_E_INVALID);
        err = (burn_err)BURN_ERR_INIT;
        assert_null(burn_module_add(root, bad[i], VEC(1), 1, &err));
        assert_int_equal(err.code, BURN_E_INVALID);
    }
    char name[200];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_null(burn_module_child(root, name, &err));
    burn_tensor *failed = burn_add(VEC(1, 2), VEC(1, 2, 3));
    err.code = BURN_OK;
    assert_null(burn_module_add(root, "w", failed, 1, &err));
    assert_int_equal(err.code, BURN_E_SHAPE);
    const uint8_t whole[] = {BURN_I64, BURN_U8, BURN_BOOL};
    for (size_t i = 0; i < COUNT(whole); i++) {
        burn_tensor *t = burn_zeros(dev, whole[i], 1, DIMS(2));
        err = (burn_err)BURN_ERR_INIT;
        assert_null(burn_module_add(root, "count", t, 1, &err));
        assert_int_equal(err.code, BURN_E_DTYPE);
        assert_non_null(strstr(err.text, "module: count is "));
        assert_non_null(strstr(err.text, burn_dtype_name(whole[i])));
        assert_non_null(strstr(err.text, "trainable 0"));
    }
    assert_int_equal(burn_module_n_vars(root), 0);
    assert_non_null(burn_module_add(root, "count", burn_zeros(dev, BURN_I64, 1, DIMS(2)), 0, &err));
    burn_module_free(root);
}

/* A layer whose weight cannot be made is not there, and its name is free. */
static void test_a_layer_that_fails_leaves_no_child(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    assert_non_null(burn_nn_flatten(root, "first", &err));
    assert_null(burn_nn_linear(root, "h", INT64_C(1) << 40, INT64_C(1) << 40, 1, &err));
    assert_int_not_equal(err.code, BURN_OK);
    assert_null(burn_module_find(root, "h"));
    err.code = BURN_OK;
    assert_non_null(burn_nn_linear(root, "h", 2, 3, 1, &err));
    assert_non_null(burn_nn_flatten(root, "last", &err));
    assert_int_equal(burn_module_n_vars(root), 2);
    assert_null(burn_nn_custom(root, "none", NULL, NULL, &err));
    assert_non_null(strstr(err.text, "forward function is NULL"));
    assert_null(burn_module_find(root, "none"));
    err.code = BURN_OK;
    assert_null(burn_nn_activation(root, "act", 99, &err));
    assert_non_null(strstr(err.text, "BURN_SIGMOID"));
    check_failed(burn_forward(NULL, VEC(1)), BURN_E_INVALID, "forward", "module", NULL);
    burn_module_free(root);
}

/* A model is built without checks in between; the first error stays. */
static void test_building_passes_the_first_error_on(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    burn_module *bad = burn_nn_linear(root, "fc", 0, 4, 1, &err);
    assert_null(bad);
    assert_non_null(strstr(err.text, "linear"));
    (void)burn_nn_linear(bad, "inner", 4, 4, 1, &err);
    (void)burn_nn_activation(bad, "act", BURN_RELU, &err);
    assert_non_null(strstr(err.text, "linear: sizes 0"));
    err = (burn_err)BURN_ERR_INIT;
    assert_null(burn_nn_conv2d(
        root, "conv", 3, 4, 3,
        &(burn_conv_opts){.struct_size = sizeof(burn_conv_opts), .groups = 2}, &err));
    assert_non_null(strstr(err.text, "groups"));
    assert_null(burn_nn_dropout(root, "d", 1.5, &err));
    assert_null(burn_nn_activation(root, "act", 99, &err));
    assert_false(burn_ok(burn_forward(NULL, VEC(1))));
    burn_module_free(root);
}

static burn_tensor *doubled(burn_module *module, void *user, burn_tensor *x)
{
    (void)module;
    return burn_mul(x, burn_scalar(*(const double *)user));
}

static burn_tensor *passed_on(burn_module *module, void *user, burn_tensor *x)
{
    (void)module;
    (void)user;
    return x;
}

static void test_containers_and_custom_layers(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    double factor = 3.0;
    (void)burn_nn_custom(root, "a", doubled, &factor, &err);
    (void)burn_nn_custom(root, "b", passed_on, NULL, &err);
    (void)burn_nn_custom(root, "c", doubled, &factor, &err);
    (void)burn_nn_flatten(root, "f", &err);
    assert_int_equal(err.code, BURN_OK);
    burn_tensor *x = burn_require_grad(ad, burn_reshape(VEC(1, 2, 3, 4), 3, DIMS(1, 2, 2)));
    burn_tensor *y = burn_forward(root, x);
    check_shape(y, 2, DIMS(1, 4));
    CHECK(y, 9, 18, 27, 36);
    burn_tensor *same = burn_forward(burn_module_find(root, "b"), x);
    assert_ptr_not_equal(same, x);
    assert_true(burn_is_tracked(same));
    burn_release(same);
    burn_grads *grads = burn_backward(y, NULL, 0, &err);
    assert_non_null(grads);
    CHECK(burn_grads_get(grads, x), 9, 9, 9, 9);
    burn_grads_free(grads);
    burn_module_free(root);
}

static void test_dropout_and_modes(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    (void)burn_nn_dropout(root, "d", 1.0, &err);
    assert_int_equal(burn_module_training(root), 1);
    CHECK(burn_forward(root, VEC(1, 2)), 0, 0);
    burn_module_set_training(burn_module_find(root, "d"), 0); /* any module: the whole tree */
    assert_int_equal(burn_module_training(root), 0);
    CHECK(burn_forward(root, VEC(1, 2)), 1, 2);
    burn_module_free(root);
}

static void test_batch_norm_keeps_statistics(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    (void)burn_nn_batch_norm(root, "n", 2, &err);
    assert_int_equal(err.code, BURN_OK);
    burn_tensor *x = mat(4, 2, (const float[]){1, 10, 2, 20, 3, 30, 4, 40});
    burn_tensor *y = burn_forward(root, x);
    CHECK_NEAR(burn_mean(y, 1, DIMS(0), 0), 1e-5, 0, 0);
    /* running = 0.9 old + 0.1 batch; the variance unbiased: 5/3 and 500/3 */
    CHECK_NEAR(burn_var_get(burn_module_var(root, "n.running_mean")), 1e-5, 0.25, 2.5);
    CHECK_NEAR(burn_var_get(burn_module_var(root, "n.running_var")), 1e-5, 0.9 + 0.5 / 3,
               0.9 + 50.0 / 3);
    burn_module_set_training(root, 0);
    double scale = 1 / sqrt(0.9 + 0.5 / 3 + 1e-5);
    CHECK_NEAR(burn_slice(burn_forward(root, x), 1, 0, 1, 1), 1e-5, (1 - 0.25) * scale,
               (2 - 0.25) * scale, (3 - 0.25) * scale, (4 - 0.25) * scale);
    int32_t trainable = 1;
    assert_non_null(burn_module_var_at(root, 2, NULL, &trainable));
    assert_int_equal(trainable, 0);
    assert_false(burn_var_tracked(burn_module_var(root, "n.running_mean")));
    burn_module_free(root);
}

static void test_B064_one_value_per_channel(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    (void)burn_nn_batch_norm(root, "n", 2, &err);
    burn_tensor *one = mat(1, 2, (const float[]){5, 7});
    check_failed(burn_forward(root, one), BURN_E_SHAPE, "batch_norm", NULL);
    check_failed(burn_forward(root, burn_reshape(one, 4, DIMS(1, 2, 1, 1))), BURN_E_SHAPE,
                 "batch_norm", NULL);
    CHECK(burn_var_get(burn_module_var(root, "n.running_mean")), 0, 0);
    CHECK(burn_var_get(burn_module_var(root, "n.running_var")), 1, 1);
    assert_true(burn_ok(burn_forward(root, burn_ones(dev, BURN_F32, 4, DIMS(1, 2, 4, 4)))));
    burn_module_set_training(root, 0);
    assert_true(burn_ok(burn_forward(root, one)));
    burn_module_free(root);
}

/* Layers run, have gradients for every parameter, and leave nothing behind. */
static void test_a_small_network(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint64_t before = in_use();
    burn_scope_begin();
    burn_module *root = make_root();
    burn_conv_opts opts = {.struct_size = sizeof(opts), .padding = {1, 1}};
    (void)burn_nn_conv2d(root, "conv", 1, 2, 3, &opts, &err);
    (void)burn_nn_batch_norm(root, "norm", 2, &err);
    (void)burn_nn_activation(root, "act", BURN_GELU, &err);
    (void)burn_nn_max_pool2d(root, "pool", 2, 2, &err);
    (void)burn_nn_flatten(root, "flat", &err);
    (void)burn_nn_linear(root, "fc", 8, 3, 1, &err);
    (void)burn_nn_layer_norm(root, "ln", 3, &err);
    assert_int_equal(err.code, BURN_OK);
    burn_tensor *x = burn_random_normal(dev, BURN_F32, 4, DIMS(2, 1, 4, 4));
    burn_tensor *y = burn_forward(root, x);
    check_shape(y, 2, DIMS(2, 3));
    burn_grads *grads = burn_backward(burn_mul(y, y), NULL, 0, &err);
    if (grads == NULL) {
        fail_msg("%s", err.text);
    }
    const char *path = NULL;
    int32_t trainable = 0;
    burn_var *v;
    for (uint32_t i = 0; (v = burn_module_var_at(root, i, &path, &trainable)) != NULL; i++) {
        burn_tensor *g = burn_grads_get_var(grads, v);
        if ((g != NULL) != (trainable != 0)) {
            fail_msg("%s: %s gradient", path, g != NULL ? "a" : "no");
        }
        if (g != NULL) {
            assert_int_equal(burn_numel(g), burn_numel(burn_var_get(v)));
            assert_true(isfinite(burn_item(burn_sum(g, 0, NULL, 0), NULL)));
        }
    }
    burn_grads_free(grads);
    burn_scope_end();
    burn_module_free(root);
    assert_int_equal(in_use(), before);
}

static void test_initial_values(void **state)
{
    (void)state;
    double v[1000];
    burn_tensor *t =
        burn_nn_init(dev, BURN_F32, 1, DIMS(1000), BURN_INIT_KAIMING_UNIFORM, 1.0, 0, 12, 0);
    assert_int_equal(burn_read_f64(t, v, 1000, NULL), BURN_OK);
    double most = 0;
    for (int i = 0; i < 1000; i++) {
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    }
    assert_true(most <= 0.5 && most > 0.45); /* sqrt(3) / sqrt(12) */
    t = burn_nn_init(dev, BURN_F32, 1, DIMS(1000), BURN_INIT_XAVIER_NORMAL, 1.0, 0, 30, 20);
    double deviation = sqrt(burn_item(burn_var_of(t, 0, NULL, 0, 1), NULL));
    assert_true(fabs(deviation - 0.2) < 0.02);
    CHECK(burn_nn_init(dev, BURN_F32, 1, DIMS(2), BURN_INIT_CONSTANT, 7, 0, 0, 0), 7, 7);
}

static void assert_says(burn_tensor *t, const char *text)
{
    burn_err err = BURN_ERR_INIT;
    assert_non_null(t);
    assert_int_equal(burn_tensor_error(t, &err), BURN_E_INVALID);
    if (strstr(err.text, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
    }
}

static void test_initial_values_that_do_not_do(void **state)
{
    static const uint32_t kaiming[] = {BURN_INIT_KAIMING_UNIFORM, BURN_INIT_KAIMING_NORMAL};
    static const uint32_t xavier[] = {BURN_INIT_XAVIER_UNIFORM, BURN_INIT_XAVIER_NORMAL};
    (void)state;
    assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), 44, 1, 0, 3, 3), "44 is no kind");
    assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), 7, 1, 0, 3, 3), "BURN_INIT_XAVIER_NORMAL");
    for (int i = 0; i < 2; i++) {
        assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), kaiming[i], 1, 0, 0, 3), "fan_in is 0");
        assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), kaiming[i], 1, 0, -4, 3),
                    "fan_in is -4");
        assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), xavier[i], 1, 0, 0, 3), "fan_in is 0");
        assert_says(burn_nn_init(dev, BURN_F32, 1, DIMS(2), xavier[i], 1, 0, 3, 0), "fan_out is 0");
    }
}

static burn_tensor *BURN_CALL gives_nothing(burn_module *module, void *user, burn_tensor *x)
{
    (void)module;
    (void)user;
    (void)x;
    return NULL;
}

static void test_forward_is_never_null(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    burn_tensor *x = burn_zeros(ad, BURN_F32, 2, DIMS(2, 3));
    assert_says(burn_forward(NULL, x), "forward: the module is NULL");
    assert_says(burn_forward(root, NULL), "forward: x is NULL");
    burn_module *block = burn_module_child(root, "block", &err);
    assert_non_null(burn_nn_activation(block, "act", BURN_RELU, &err));
    assert_says(burn_forward(root, NULL), "x");
    burn_module *cu = burn_nn_custom(block, "cu", gives_nothing, NULL, &err);
    assert_says(burn_forward(cu, x), "block.cu: its forward function returned NULL");
    assert_says(burn_forward(root, x), "block.cu: its forward function returned NULL");
    assert_says(burn_forward(cu, NULL), "forward: x is NULL");
    assert_int_equal(err.code, BURN_OK);
    burn_module_free(root);
}

static void test_output_padding_is_for_transposed_convolutions(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = make_root();
    burn_conv_opts opts = {.struct_size = sizeof(opts), .stride = {2, 2}, .output_padding = {1, 0}};
    burn_tensor *x = burn_zeros(dev, BURN_F32, 4, DIMS(1, 1, 3, 3));
    burn_tensor *w = burn_zeros(dev, BURN_F32, 4, DIMS(1, 1, 2, 2));
    assert_null(burn_nn_conv2d(root, "conv", 1, 1, 2, &opts, &err));
    assert_int_equal(err.code, BURN_E_INVALID);
    assert_non_null(strstr(err.text, "conv2d: output_padding is (1, 0)"));
    assert_says(burn_conv2d(x, w, NULL, &opts), "conv2d: output_padding[0] is 1");
    assert_says(burn_conv1d(burn_zeros(dev, BURN_F32, 3, DIMS(1, 1, 3)),
                            burn_zeros(dev, BURN_F32, 3, DIMS(1, 1, 2)), NULL, &opts),
                "conv1d: output_padding[0] is 1");
    burn_tensor *y = burn_conv_transpose2d(x, w, NULL, &opts);
    assert_int_equal(burn_tensor_error(y, NULL), BURN_OK);
    assert_int_equal(burn_dim(y, 2), 7);
    burn_module_free(root);
}

/* As in C: any number but 0 is yes. */
static void test_flags_are_truth_values(void **state)
{
    (void)state;
    burn_tensor *x = burn_full(dev, BURN_F32, 4, DIMS(1, 1, 3, 4), burn_scalar(2));
    burn_pool_opts pool = {.struct_size = sizeof(pool), .ceil_mode = 9, .exclude_pad = 8};
    pool.kernel[0] = pool.kernel[1] = 2;
    pool.padding[0] = pool.padding[1] = 1;
    burn_tensor *many = burn_avg_pool2d(x, &pool);
    pool.ceil_mode = pool.exclude_pad = 1;
    burn_tensor *one = burn_avg_pool2d(x, &pool);
    assert_int_equal(burn_dim(many, 2), burn_dim(one, 2));
    assert_int_equal(burn_item(burn_all(burn_equal(many, one), 0, NULL, 0), NULL), 1);
    assert_int_equal(burn_rank(burn_sum(x, 0, NULL, 7)), 4);
    assert_int_equal(burn_rank(burn_argmax(x, 3, -1)), 4);
    assert_int_equal(burn_rank(burn_var_of(x, 0, NULL, 256, 1)), 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_names_and_paths),
        CORE_TEST(test_names_that_do_not_do),
        CORE_TEST(test_a_layer_that_fails_leaves_no_child),
        CORE_TEST(test_building_passes_the_first_error_on),
        CORE_TEST(test_containers_and_custom_layers),
        CORE_TEST(test_dropout_and_modes),
        CORE_TEST(test_batch_norm_keeps_statistics),
        CORE_TEST(test_B064_one_value_per_channel),
        CORE_TEST(test_a_small_network),
        CORE_TEST(test_initial_values),
        CORE_TEST(test_initial_values_that_do_not_do),
        CORE_TEST(test_forward_is_never_null),
        CORE_TEST(test_output_padding_is_for_transposed_convolutions),
        CORE_TEST(test_flags_are_truth_values),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
