/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_tape.c - gradients: what is recorded, kept and released; higher orders; long chains;
 * sums over broadcast dims; reported faults (B070, B121, B123, B125, B127, B129).
 */
#include "core_test.h"

#include <math.h>
#include <string.h>

static burn_tensor *leaf(burn_tensor *t)
{
    return burn_require_grad(ad, t);
}

static burn_grads *backward(burn_tensor *y, uint32_t flags)
{
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(y, NULL, flags, &err);
    if (grads == NULL) {
        fail_msg("backward: %s", err.text);
    }
    return grads;
}

/* Gradient of sum(y) by x, in the innermost scope. */
static burn_tensor *gradient(burn_tensor *y, burn_tensor *x)
{
    burn_grads *grads = backward(y, 0);
    burn_tensor *g = burn_grads_get(grads, x);
    burn_grads_free(grads);
    return g;
}

static void test_what_is_recorded(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(1, 2));
    burn_tensor *c = VEC(3, 4);
    assert_true(burn_is_tracked(x));
    assert_true(burn_is_tracked(burn_mul(x, c)));
    assert_true(burn_is_tracked(burn_reshape(x, 2, DIMS(2, 1))));
    assert_false(burn_is_tracked(burn_mul(c, c)));
    assert_false(burn_is_tracked(burn_detach(x)));
    assert_false(burn_is_tracked(burn_less(x, c)));
    assert_false(burn_is_tracked(burn_argmax(x, 0, 0)));
    assert_false(burn_is_tracked(burn_cast(x, BURN_I32)));
    burn_no_grad_begin();
    burn_no_grad_begin();
    burn_no_grad_end();
    assert_false(burn_grad_enabled());
    assert_false(burn_is_tracked(burn_mul(x, c)));
    burn_no_grad_end();
    assert_true(burn_is_tracked(burn_mul(x, c)));
    check_failed(burn_require_grad(dev, c), BURN_E_STATE, "autodiff", NULL);
    check_failed(leaf(index_vec(1, DIMS(1))), BURN_E_DTYPE, "i64", NULL);
    burn_err err = BURN_ERR_INIT;
    assert_null(burn_backward(c, NULL, 0, &err));
    assert_int_equal(err.code, BURN_E_STATE);
    err.code = BURN_OK;
    assert_null(burn_backward(burn_mul(x, c), VEC(1, 2, 3), 0, &err));
    assert_int_equal(err.code, BURN_E_SHAPE);
    err.code = BURN_OK;
    assert_null(burn_backward(burn_add(x, VEC(1, 2, 3)), NULL, 0, &err));
    assert_int_equal(err.code, BURN_E_SHAPE);
}

static void test_simple_gradients(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(1, 2, 3));
    burn_tensor *y = burn_add(burn_mul(x, x), burn_mul(x, burn_scalar(3.0)));
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(y, VEC(1, 10, 100), 0, &err);
    assert_non_null(grads);
    CHECK(burn_grads_get(grads, x), 5, 70, 900);
    assert_null(burn_grads_get(grads, VEC(1)));
    assert_null(burn_grads_get(grads, leaf(VEC(1))));
    burn_grads_free(grads);
    burn_tensor *z = leaf(VEC(5));
    CHECK(gradient(z, z), 1);
}

/* A leaf that enters by many ways gets the sum. */
static void test_gradients_add_up(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(1, 2));
    burn_tensor *y = burn_mul(x, burn_scalar(0.0));
    for (int i = 0; i < 50; i++) {
        y = burn_add(y, burn_mul(x, burn_scalar(i)));
    }
    CHECK(gradient(y, x), 1225, 1225);
    burn_tensor *diamond = burn_mul(x, x);
    CHECK(gradient(burn_add(burn_mul(diamond, diamond), diamond), x), 6, 36);
}

static void test_sums_over_broadcast_dims(void **state)
{
    (void)state;
    burn_tensor *m = leaf(count_up(dev, 2, DIMS(2, 3), 1));
    burn_tensor *row = leaf(VEC(1, 2, 3));
    burn_tensor *column = leaf(mat(2, 1, (const float[]){1, 2}));
    burn_tensor *one = leaf(burn_full(dev, BURN_F32, 0, NULL, burn_scalar(2.0)));
    burn_tensor *deep = leaf(burn_ones(dev, BURN_F32, 3, DIMS(2, 1, 3)));
    burn_tensor *y = burn_mul(burn_add(burn_mul(m, row), column), burn_mul(one, deep));
    check_shape(y, 3, DIMS(2, 2, 3));
    burn_grads *grads = backward(y, BURN_GRAD_RETAIN);
    check_shape(burn_grads_get(grads, m), 2, DIMS(2, 3));
    CHECK(burn_grads_get(grads, m), 4, 8, 12, 4, 8, 12);
    CHECK(burn_grads_get(grads, row), 20, 28, 36);
    check_shape(burn_grads_get(grads, column), 2, DIMS(2, 1));
    CHECK(burn_grads_get(grads, column), 12, 12);
    check_shape(burn_grads_get(grads, one), 0, NULL);
    CHECK(burn_grads_get(grads, one), 110);
    check_shape(burn_grads_get(grads, deep), 3, DIMS(2, 1, 3));
    CHECK(burn_grads_get(grads, deep), 16, 34, 60, 16, 34, 60);
    burn_grads_free(grads);
    burn_tensor *x = leaf(VEC(3));
    CHECK(gradient(burn_mul(x, burn_zeros(dev, BURN_F32, 2, DIMS(0, 1))), x), 0);
    burn_tensor *w = leaf(burn_ones(dev, BURN_F32, 2, DIMS(3, 2)));
    burn_tensor *batch = burn_ones(dev, BURN_F32, 3, DIMS(4, 5, 3));
    CHECK(gradient(burn_matmul(batch, w), w), 20, 20, 20, 20, 20, 20);
}

static void test_used_up_and_retained(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = leaf(VEC(1, 2));
    burn_tensor *y = burn_mul(x, x);
    burn_grads_free(backward(y, BURN_GRAD_RETAIN));
    burn_grads *grads = backward(y, 0);
    CHECK(burn_grads_get(grads, x), 2, 4);
    burn_grads_free(grads);
    assert_null(burn_backward(y, NULL, 0, &err));
    assert_int_equal(err.code, BURN_E_STATE);
    assert_non_null(strstr(err.text, "mul"));
    assert_non_null(strstr(err.text, "RETAIN"));
    assert_null(burn_backward(burn_exp(y), NULL, 0, &err));
    assert_int_equal(err.code, BURN_E_STATE);
}

static void test_higher_orders(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(1, 2));
    burn_tensor *y = burn_mul(burn_mul(x, x), burn_mul(x, x));
    burn_grads *g1 = backward(y, BURN_GRAD_CREATE);
    burn_tensor *d1 = burn_grads_get(g1, x);
    burn_grads *g2 = backward(d1, BURN_GRAD_CREATE);
    burn_tensor *d2 = burn_grads_get(g2, x);
    burn_grads *g3 = backward(d2, BURN_GRAD_CREATE);
    burn_tensor *d3 = burn_grads_get(g3, x);
    CHECK(d1, 4, 32);
    CHECK(d2, 12, 48);
    CHECK(d3, 24, 48);
    burn_grads_free(g1);
    burn_grads_free(g2);
    burn_grads_free(g3);
}

/* Gradients that are written in terms of the output: the saved output is back on the tape. */
static void test_higher_orders_through_saved_outputs(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(0.5f, -1));
    burn_tensor *(*const fns[])(burn_tensor *) = {burn_exp, burn_tanh, burn_sigmoid, burn_sqrt};
    const double at[4][2] = {{0.5, -1}, {0.5, -1}, {0.5, -1}, {4, 9}};
    for (size_t f = 0; f < COUNT(fns); f++) {
        burn_tensor *in = f == 3 ? leaf(VEC(4, 9)) : x;
        burn_grads *g1 = backward(fns[f](in), BURN_GRAD_CREATE);
        burn_tensor *second = gradient(burn_grads_get(g1, in), in);
        double want[2];
        for (int i = 0; i < 2; i++) {
            double v = at[f][i];
            double t = tanh(v);
            double s = 1 / (1 + exp(-v));
            const double values[4] = {exp(v), -2 * t * (1 - t * t), s * (1 - s) * (1 - 2 * s),
                                      -0.25 / (v * sqrt(v))};
            want[i] = values[f];
        }
        check_values(__LINE__, second, 2, want, 1e-5);
        burn_grads_free(g1);
    }
}

/* A saved output must not hold its own node, or nothing of this would ever be released. */
static void test_saved_outputs_make_no_cycle(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = leaf(VEC(1, 2, 3));
    CHECK(x, 1, 2, 3);
    uint64_t before = in_use();
    for (int i = 0; i < 100; i++) {
        burn_scope_begin();
        burn_tensor *y = burn_softmax(burn_tanh(burn_exp(burn_sigmoid(x))), 0);
        CHECK_NEAR(burn_sum(y, 0, NULL, 0), 1e-5, 1);
        burn_scope_end();
    }
    assert_int_equal(in_use(), before);
    for (int i = 0; i < 20; i++) {
        burn_scope_begin();
        burn_grads *grads = backward(burn_tanh(burn_exp(x)), i % 2 == 0 ? BURN_GRAD_CREATE : 0);
        burn_grads_free(grads);
        burn_scope_end();
    }
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

/* The tape keeps what its gradients need, no more: multiplying by a constant keeps one operand. */
static void test_only_needed_values_are_saved(void **state)
{
    (void)state;
    enum { N = 1024 };
    const int64_t n = N;
    burn_scope_begin();
    burn_tensor *x = leaf(burn_ones(dev, BURN_F32, 1, &n));
    assert_true(isfinite(burn_item(burn_sum(x, 0, NULL, 0), NULL)));
    uint64_t before = in_use();
    burn_scope_begin();
    burn_tensor *y = x;
    for (int i = 0; i < 10; i++) {
        y = burn_mul(y, burn_scalar(2.0));
    }
    y = burn_scope_return(burn_add(y, burn_scalar(1.0)));
    CHECK(burn_sum(y, 0, NULL, 0), 1025.0 * N);
    assert_true(in_use() <= before + 2 * N * sizeof(float));
    burn_scope_end();
}

static void test_a_long_chain_needs_no_stack(void **state)
{
    (void)state;
    enum { LENGTH = 300000 };
    burn_tensor *x = leaf(VEC(1));
    burn_tensor *y = burn_keep(burn_add(x, burn_scalar(0.0)));
    for (int i = 0; i < LENGTH; i++) {
        burn_scope_begin();
        burn_tensor *next = burn_keep(burn_add(y, burn_scalar(1.0)));
        burn_release(y);
        y = next;
        burn_scope_end();
    }
    burn_grads *grads = backward(y, BURN_GRAD_RETAIN);
    CHECK(burn_grads_get(grads, x), 1);
    burn_grads_free(grads);
    burn_release(y);
    /* The same through saved values: each node holds the handle before it. */
    y = burn_keep(burn_mul(x, x));
    for (int i = 0; i < LENGTH / 10; i++) {
        burn_scope_begin();
        burn_tensor *next = burn_keep(burn_mul(y, y));
        burn_release(y);
        y = next;
        burn_scope_end();
    }
    burn_release(y);
}

static void test_no_gradient_is_an_error_at_the_call(void **state)
{
    (void)state;
    /* Every differentiable op has a gradient or a decomposition; what has neither says why. */
    for (uint32_t i = 0; i < burn_op_count(); i++) {
        const burn_op_def *def = burn_op_at(i);
        if (def->vjp == NULL && def->decompose == NULL && def->no_vjp == NULL) {
            int carries = 0;
            for (uint32_t k = 0; k < def->n_out; k++) {
                const burn_role *out = &def->roles[def->n_in + k];
                carries |= (out->flags & BURN_ROLE_NO_GRAD) == 0 &&
                           (out->dtypes[0] == 0 || (out->dtypes[0] & BURN_SET_FLOAT) != 0);
            }
            int takes = 0;
            for (uint32_t k = 0; k < def->n_in; k++) {
                const burn_role *in = &def->roles[k];
                takes |= (in->flags & (BURN_ROLE_NO_GRAD | BURN_ROLE_ONLY_IMMEDIATE)) == 0 &&
                         (in->dtypes[0] == 0 || (in->dtypes[0] & BURN_SET_FLOAT) != 0);
            }
            if (carries && takes && def->effect != BURN_EFFECT_STATE) {
                print_error("%s has no gradient, no decomposition and gives no reason\n",
                            def->name);
                assert_int_equal(def->fuse, BURN_FUSE_VIEW);
            }
        }
    }
}

/* ---- reported faults ------------------------------------------------------------------------- */

static void test_B070_sigmoid_far_out(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(-90, 90));
    double g[2] = {1, 1};
    assert_int_equal(burn_read_f64(gradient(burn_sigmoid(x), x), g, 2, NULL), BURN_OK);
    assert_true(g[0] >= 0 && g[0] < 1e-38);
    assert_true(g[1] >= 0 && g[1] < 1e-7);
}

static void test_B121_product_with_zeros(void **state)
{
    (void)state;
    if (on_mock) {
        return; /* has no product: not a minimal op */
    }
    burn_tensor *x = leaf(VEC(2, 0, 3));
    CHECK(gradient(burn_prod(x, 0, NULL, 0), x), 0, 6, 0);
    x = leaf(VEC(0, 0, 3));
    CHECK(gradient(burn_prod(x, 0, NULL, 0), x), 0, 0, 0);
}

static void test_B123_powers_at_zero(void **state)
{
    (void)state;
    if (on_mock) {
        return; /* has no power: not a minimal op */
    }
    burn_tensor *x = leaf(VEC(0));
    CHECK(gradient(burn_pow(x, burn_scalar(0.0)), x), 0);
    burn_tensor *b = leaf(VEC(1, 1));
    CHECK_NEAR(gradient(burn_pow(VEC(0, 2), b), b), 1e-6, 0, 1.3862944);
    b = leaf(VEC(0));
    CHECK(gradient(burn_pow(VEC(0), b), b), 0);
    x = leaf(VEC(-2));
    CHECK_NEAR(gradient(burn_pow(x, burn_scalar(3.0)), x), 1e-6, 12);
}

static void test_B125_ties(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(3, 3, 1));
    CHECK(gradient(burn_max(x, 0, NULL, 0), x), 0.5, 0.5, 0);
    burn_tensor *m = leaf(mat(2, 3, (const float[]){3, 3, 1, 0, 5, 5}));
    CHECK(gradient(burn_max(m, 1, DIMS(1), 0), m), 0.5, 0.5, 0, 0, 0.5, 0.5);
    burn_tensor *a = leaf(VEC(1));
    burn_tensor *b = leaf(VEC(1));
    burn_grads *grads = backward(burn_maximum(a, b), 0);
    CHECK(burn_grads_get(grads, a), 0.5);
    CHECK(burn_grads_get(grads, b), 0.5);
    burn_grads_free(grads);
}

static void test_B127_cat_with_a_constant_piece(void **state)
{
    (void)state;
    burn_tensor *a = leaf(VEC(1, 1));
    burn_tensor *c = leaf(VEC(1));
    burn_tensor *const xs[] = {a, VEC(1, 1, 1), c};
    burn_grads *grads = backward(burn_mul(burn_cat(xs, 3, 0), VEC(1, 2, 3, 4, 5, 6)), 0);
    CHECK(burn_grads_get(grads, a), 1, 2);
    CHECK(burn_grads_get(grads, c), 6);
    burn_grads_free(grads);
}

static void test_B129_scatter_and_min(void **state)
{
    (void)state;
    burn_tensor *t = leaf(VEC(0, 1, 2, 3, 4, 5));
    burn_tensor *values = leaf(VEC(4, 5, 6));
    burn_tensor *x = burn_mul(t, VEC(1, 2, 3, 4, 5, 6));
    burn_tensor *y = burn_scatter(x, index_vec(3, DIMS(2, 1, 0)), values, 0, BURN_SCATTER_ADD);
    burn_grads *grads = backward(y, 0);
    CHECK(burn_grads_get(grads, t), 1, 2, 3, 4, 5, 6);
    CHECK(burn_grads_get(grads, values), 1, 1, 1);
    burn_grads_free(grads);
    burn_tensor *a = leaf(burn_reshape(VEC(1, 7, -2, -3), 3, DIMS(1, 2, 2)));
    burn_tensor *b = leaf(burn_reshape(VEC(4, -7, 2, 3), 3, DIMS(1, 2, 2)));
    grads = backward(burn_min(burn_mul(a, b), 1, DIMS(1), 0), 0);
    CHECK(burn_grads_get(grads, a), 0, -7, 2, 0);
    CHECK(burn_grads_get(grads, b), 0, 7, -2, 0);
    burn_grads_free(grads);
}

static void test_B048_gather_adds_duplicates(void **state)
{
    (void)state;
    burn_tensor *x = leaf(VEC(1, 2, 3));
    burn_tensor *y = burn_gather(x, index_vec(4, DIMS(1, 1, 0, 1)), 0);
    CHECK(gradient(burn_mul(y, VEC(1, 10, 100, 1000)), x), 100, 1011, 0);
    x = leaf(mat(3, 2, (const float[]){1, 2, 3, 4, 5, 6}));
    CHECK(gradient(burn_embedding(x, index_vec(3, DIMS(0, 1, 1))), x), 1, 1, 2, 2, 0, 0);
    x = leaf(VEC(1, 2, 3));
    CHECK(gradient(burn_select(x, index_vec(3, DIMS(2, 2, 0)), 0), x), 1, 0, 2);
}

static void test_where_gives_zero_to_the_side_not_taken(void **state)
{
    (void)state;
    const float nan = NAN;
    burn_tensor *x = leaf(VEC(1, nan, 3));
    burn_tensor *y = leaf(VEC(nan, 5, nan));
    burn_tensor *cond = burn_less(VEC(0, 1, 0), burn_scalar(0.5));
    burn_grads *grads = backward(burn_where(cond, burn_mul(x, x), y), 0);
    CHECK(burn_grads_get(grads, y), 0, 1, 0);
    double g[3];
    assert_int_equal(burn_read_f64(burn_grads_get(grads, x), g, 3, NULL), BURN_OK);
    assert_true(g[0] == 2 && g[2] == 6);
    burn_grads_free(grads);
    x = leaf(VEC(1, nan, 3));
    CHECK(gradient(burn_where(cond, x, burn_scalar(0.0)), x), 1, 0, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_what_is_recorded),
        CORE_TEST(test_simple_gradients),
        CORE_TEST(test_gradients_add_up),
        CORE_TEST(test_sums_over_broadcast_dims),
        CORE_TEST(test_used_up_and_retained),
        CORE_TEST(test_higher_orders),
        CORE_TEST(test_higher_orders_through_saved_outputs),
        CORE_TEST(test_saved_outputs_make_no_cycle),
        CORE_TEST(test_only_needed_values_are_saved),
        CORE_TEST(test_a_long_chain_needs_no_stack),
        CORE_TEST(test_no_gradient_is_an_error_at_the_call),
        CORE_TEST(test_B070_sigmoid_far_out),
        CORE_TEST(test_B121_product_with_zeros),
        CORE_TEST(test_B123_powers_at_zero),
        CORE_TEST(test_B125_ties),
        CORE_TEST(test_B127_cat_with_a_constant_piece),
        CORE_TEST(test_B129_scatter_and_min),
        CORE_TEST(test_B048_gather_adds_duplicates),
        CORE_TEST(test_where_gives_zero_to_the_side_not_taken),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
