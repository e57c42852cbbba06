/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_fused.c - the ops of "fused" as an application uses them: by header and by name, taped,
 * twice differentiated, in a window, in a captured graph.
 *
 * usage: test_fused DEVICE. What the ops compute is compared by the conformance tool; here it is
 * that an extension's op is treated as a core op is. Expected values are worked out by hand.
 */
#define BURN_TRACE_CALLS
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/device.h>
#include <burn/ext/fused.h>
#include <burn/graph.h>
#include <burn/ops.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static burn_device *device;

static burn_tensor *matrix(int64_t rows, int64_t columns, const float *values)
{
    return burn_tensor_from_data(device, BURN_F32, 2, (const int64_t[]){rows, columns}, values);
}

static burn_tensor *vector(int64_t n, const float *values)
{
    return burn_tensor_from_data(device, BURN_F32, 1, &n, values);
}

static void expect(burn_tensor *t, size_t n, const double *values, double tolerance)
{
    burn_err err = BURN_ERR_INIT;
    float out[16] = {0};
    if (burn_read(t, out, n * sizeof(float), &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)out[i] - values[i]) <= tolerance)) {
            fail_msg("element %zu is %.9g, expected %.9g", i, (double)out[i], values[i]);
        }
    }
}

static const float x_values[6] = {1, 2, 3, -1, 0, 1};
static const float w_values[6] = {1, -1, 0, 1, 2, -2};
static const float bias_values[2] = {0.5F, 1};

/* x w + bias is [[7.5, -4], [1.5, 0]]. */
static burn_tensor *product(burn_tensor *x, burn_tensor *w)
{
    return burn_fused_matmul_bias_relu(x, w, vector(2, bias_values));
}

static void ids_are_those_of_the_names(void **state)
{
    (void)state;
#define CHECK_ID(id, NAME, name)                                                                   \
    assert_true(burn_fused_id_##name() == burn_op_id_from_name("fused." #name));                   \
    assert_non_null(burn_op_find("fused." #name));                                                 \
    assert_ptr_equal(burn_op_find("fused." #name), burn_op_find_id(burn_fused_id_##name()));
    BURN_FOREACH_FUSED_OP(CHECK_ID)
#undef CHECK_ID
}

static void by_header_and_by_name(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = matrix(2, 3, x_values);
    burn_tensor *w = matrix(3, 2, w_values);
    const double expected[4] = {7.5, 0, 1.5, 0};
    expect(product(x, w), 4, expected, 0.0);
    burn_tensor *const in[3] = {x, w, vector(2, bias_values)};
    burn_tensor *y = NULL;
    const burn_op_def *def = burn_op_find("fused.matmul_bias_relu");
    assert_int_equal(burn_op_call(NULL, def->id, NULL, 0, in, 3, &y, 1), BURN_OK);
    expect(y, 4, expected, 0.0);
    burn_scope_end();
}

/* With BURN_TRACE_CALLS an op of an extension says where it was called, as a core op does. */
static void calls_say_their_line(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    char wanted[64];
    burn_tensor *x = matrix(2, 3, x_values);
    burn_tensor *y = burn_fused_swiglu(x, matrix(3, 2, w_values));
    (void)snprintf(wanted, sizeof(wanted), "test_fused.c:%d]", __LINE__ - 1);
    assert_int_equal(burn_tensor_error(y, &err), BURN_E_SHAPE);
    if (strstr(err.text, "fused.swiglu") == NULL || strstr(err.text, wanted) == NULL) {
        fail_msg("no %s in: %s", wanted, err.text);
    }
    y = burn_neg(burn_fused_swiglu(burn_exp(x), burn_exp(x))); /* nested: each has its own line */
    assert_int_equal(burn_tensor_error(y, &err), BURN_OK);
    assert_int_equal(burn_tag(), 0);
}

static void gradients_reach_every_operand(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_device *ad = burn_device_autodiff(device);
    burn_scope_begin();
    burn_tensor *x = burn_require_grad(ad, matrix(2, 3, x_values));
    burn_tensor *w = burn_require_grad(ad, matrix(3, 2, w_values));
    burn_grads *grads = burn_backward(product(x, w), NULL, 0, &err);
    assert_non_null(grads);
    /* Only column 0 is above 0, in both rows. */
    expect(burn_grads_get(grads, x), 6, (const double[]){1, 0, 2, 1, 0, 2}, 0.0);
    expect(burn_grads_get(grads, w), 6, (const double[]){0, 0, 2, 0, 4, 0}, 0.0);
    burn_grads_free(grads);
    burn_scope_end();
}

/* swiglu(g, u) = g s(g) u; at g = 0: value 0, slope u / 2, second slope u / 2. */
static void second_gradients(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *gate =
        burn_require_grad(burn_device_autodiff(device), vector(2, (const float[]){0, 0}));
    burn_tensor *up = vector(2, (const float[]){2, -6});
    burn_tensor *y = burn_fused_swiglu(gate, up);
    expect(y, 2, (const double[]){0, 0}, 0.0);
    burn_grads *first = burn_backward(y, NULL, BURN_GRAD_CREATE, &err);
    assert_non_null(first);
    burn_tensor *slope = burn_grads_get(first, gate);
    expect(slope, 2, (const double[]){1, -3}, 1e-6);
    burn_grads *second = burn_backward(slope, NULL, 0, &err);
    assert_non_null(second);
    expect(burn_grads_get(second, gate), 2, (const double[]){1, -3}, 1e-6);
    burn_grads_free(first);
    burn_grads_free(second);
    burn_scope_end();
}

static void a_graph_holds_them(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *x = matrix(2, 3, x_values);
    burn_tensor *w = matrix(3, 2, w_values);
    assert_int_equal(burn_capture_begin(&err), BURN_OK);
    assert_ptr_equal(burn_capture_input(x, "x"), x);
    burn_tensor *y = product(x, w);
    burn_graph *graph = burn_capture_end(&y, 1, NULL, &err);
    if (graph == NULL) {
        fail_msg("%s", err.text);
    }
    burn_tensor *other = matrix(2, 3, (const float[]){1, 0, 0, 0, 1, 0});
    burn_tensor *out = NULL;
    assert_int_equal(burn_graph_run(graph, device, &other, 1, NULL, NULL, &out, 1, &err), BURN_OK);
    expect(out, 4, (const double[]){1.5, 0, 0.5, 2}, 0.0);
    burn_graph_free(graph);
    burn_scope_end();
}

static void lion_moves_by_the_sign(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_var *p = burn_var_create(device, vector(3, (const float[]){1, 2, 3}), &err);
    burn_var *m = burn_var_create(device, vector(3, (const float[]){0, 0, 4}), &err);
    burn_tensor *g = vector(3, (const float[]){0.5F, -8, 0});
    assert_int_equal(burn_fused_lion_step(p, g, m, 0.25, 0.5, 0.75, 0.0, &err), BURN_OK);
    expect(burn_var_get(p), 3, (const double[]){0.75, 2.25, 2.75}, 0.0);
    expect(burn_var_get(m), 3, (const double[]){0.125, -2, 3}, 0.0);
    assert_int_equal(burn_fused_lion_step(p, g, m, 0.25, 2.0, 0.75, 0.0, &err), BURN_E_INVALID);
    expect(burn_var_get(p), 3, (const double[]){0.75, 2.25, 2.75}, 0.0);
    burn_var_release(p);
    burn_var_release(m);
    burn_scope_end();
    (void)burn_sync(device, NULL);
}

/* 1 (1 - 0.01) - 0.1 where the gradient is above 0; a gradient of 0 decays only, sign(0) is 0. */
static void B212_lion_decays_and_moves(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_var *p = burn_var_create(device, vector(4, (const float[]){1, 1, 1, -1}), &err);
    burn_var *m = burn_var_create(device, vector(4, (const float[]){0, 0, 0, 0}), &err);
    burn_tensor *g = vector(4, (const float[]){0.5F, -8, 0, 1e-30F});
    assert_int_equal(burn_fused_lion_step(p, g, m, 0.1, 0.9, 0.99, 0.1, &err), BURN_OK);
    expect(burn_var_get(p), 4, (const double[]){0.89, 1.09, 0.99, -1.09}, 1e-6);
    expect(burn_var_get(m), 4, (const double[]){0.005, -0.08, 0, 1e-32}, 1e-7);
    /* The sign is that of the mixture: 0.9 m + 0.1 g = 0.0045 - 0.004 is still above 0. */
    g = vector(4, (const float[]){-0.04F, 0, 0, 0});
    assert_int_equal(burn_fused_lion_step(p, g, m, 0.1, 0.9, 0.99, 0.0, &err), BURN_OK);
    expect(burn_var_get(p), 4, (const double[]){0.79, 1.19, 0.99, -1.19}, 1e-6);
    burn_var_release(p);
    burn_var_release(m);
    burn_scope_end();
    (void)burn_sync(device, NULL);
}

static void broadcast_operands_and_wrong_ones(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *gate = matrix(2, 1, (const float[]){0, 100});
    burn_tensor *up = vector(3, (const float[]){1, 2, 3});
    expect(burn_fused_swiglu(gate, up), 6, (const double[]){0, 0, 0, 100, 200, 300}, 1e-4);
    burn_err err = BURN_ERR_INIT;
    burn_tensor *wrong = product(matrix(3, 2, w_values), matrix(3, 2, w_values));
    assert_int_equal(burn_tensor_error(wrong, &err), BURN_E_SHAPE);
    assert_non_null(strstr(err.text, "fused.matmul_bias_relu: x [3,2] and w [3,2]"));
    burn_scope_end();
    (void)burn_sync(device, NULL);
}

/* ---- results that are too large for caches --------------------------------------------------- */

enum { ROWS = 4409, ROW = 1003, SOME = 487 };

static burn_tensor *large_swiglu(burn_tensor *x, burn_tensor *y, burn_tensor *gamma)
{
    (void)gamma;
    return burn_fused_swiglu(x, y);
}

static burn_tensor *large_norm(burn_tensor *x, burn_tensor *y, burn_tensor *gamma)
{
    return burn_fused_add_layer_norm(x, y, gamma, gamma, 1, 1e-5);
}

static burn_tensor *rows_of(burn_tensor *x, int64_t first, int64_t end)
{
    return burn_copy(burn_slice(x, 0, first, end, 1));
}

/* All rows at once, more than 48 MiB, and some at a time: the same bits. */
/* A mean of 5e8 beside a spread of 150: f32 holds these, and sums of squares in f64 lose it. */
static void rows_far_from_zero(void **state)
{
    (void)state;
    enum { N = 4096 };
    static float x[N];
    static float y[N];
    static float z[N];
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    for (int i = 0; i < N; i++) {
        x[i] = 5e8F;
        y[i] = 32.0F * (float)(i % 16);
        z[i] = 1.0F;
    }
    burn_tensor *one = vector(N, z);
    burn_tensor *normal = burn_fused_add_layer_norm(matrix(1, N, x), matrix(1, N, y), one, one, 1,
                                                    1e-5);
    assert_int_equal(burn_read(normal, z, sizeof(z), &err), BURN_OK);
    for (int i = 0; i < N; i++) {
        double want = 1.0 + (i % 16 - 7.5) / sqrt(21.25);
        assert_true(fabs((double)z[i] - want) < 1e-6);
    }
    burn_scope_end();
}

static void check_large(burn_tensor *(*op)(burn_tensor *, burn_tensor *, burn_tensor *))
{
    burn_err err = BURN_ERR_INIT;
    const int64_t dims[2] = {ROWS, ROW};
    float *all = malloc(sizeof(float) * ROWS * ROW);
    float *some = malloc(sizeof(float) * SOME * ROW);
    assert_non_null(all);
    assert_non_null(some);
    burn_scope_begin();
    burn_tensor *x = burn_random_normal(device, BURN_F32, 2, dims);
    burn_tensor *y = burn_random_normal(device, BURN_F32, 2, dims);
    burn_tensor *gamma = burn_random_normal(device, BURN_F32, 1, dims + 1);
    assert_int_equal(burn_read(op(x, y, gamma), all, sizeof(float) * ROWS * ROW, &err), BURN_OK);
    for (int64_t at = 0; at < ROWS; at += SOME) {
        int64_t end = at + SOME < ROWS ? at + SOME : ROWS;
        size_t bytes = sizeof(float) * (size_t)(end - at) * ROW;
        burn_tensor *z = op(rows_of(x, at, end), rows_of(y, at, end), gamma);
        assert_int_equal(burn_read(z, some, bytes, &err), BURN_OK);
        assert_memory_equal(some, all + at * ROW, bytes);
    }
    burn_scope_end();
    free(some);
    free(all);
}

static void large_results_have_the_bits_of_small_ones(void **state)
{
    (void)state;
    check_large(large_swiglu);
    check_large(large_norm);
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    device = argc == 2 ? burn_device_open(argv[1], &err) : NULL;
    if (device == NULL || burn_extension_load("fused", &err) != BURN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_names),
        cmocka_unit_test(by_header_and_by_name),
        cmocka_unit_test(calls_say_their_line),
        cmocka_unit_test(gradients_reach_every_operand),
        cmocka_unit_test(second_gradients),
        cmocka_unit_test(a_graph_holds_them),
        cmocka_unit_test(lion_moves_by_the_sign),
        cmocka_unit_test(B212_lion_decays_and_moves),
        cmocka_unit_test(broadcast_operands_and_wrong_ones),
        cmocka_unit_test(rows_far_from_zero),
        cmocka_unit_test(large_results_have_the_bits_of_small_ones),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    burn_shutdown();
    return failed;
}
