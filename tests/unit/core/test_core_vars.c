/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_vars.c - variables: readers keep the old value, failures leave or mark it, ops that
 * overwrite several variables, the address that stays.
 */
#include "core_test.h"

#include "exec/var.h"

#include <math.h>

static burn_var *make(burn_tensor *value)
{
    burn_err err = BURN_ERR_INIT;
    burn_var *v = burn_var_create(ad, value, &err);
    if (v == NULL) {
        fail_msg("%s", err.text);
    }
    return v;
}

static void set(burn_var *v, burn_tensor *value)
{
    burn_err err = BURN_ERR_INIT;
    if (burn_var_assign(v, value, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

static void test_readers_keep_the_old_value(void **state)
{
    (void)state;
    burn_var *v = make(VEC(1, 2, 3));
    burn_tensor *old = burn_var_get(v);
    burn_tensor *view = burn_slice(old, 0, 1, 3, 1);
    burn_tensor *derived = burn_mul(old, burn_scalar(10.0));
    set(v, VEC(7, 8, 9));
    burn_tensor *middle = burn_var_get(v);
    set(v, burn_add(middle, burn_scalar(1.0)));
    CHECK(old, 1, 2, 3);
    CHECK(view, 2, 3);
    CHECK(derived, 10, 20, 30);
    CHECK(middle, 7, 8, 9);
    CHECK(burn_var_get(v), 8, 9, 10);
    burn_var_release(v);
    CHECK(old, 1, 2, 3);
    CHECK(middle, 7, 8, 9);
}

/* With no reader nothing is copied, and the memory stays where it is in both cases. */
static void test_the_address_stays(void **state)
{
    (void)state;
    burn_var *v = make(VEC(1, 2, 3));
    burni_block *block = v->value->storage->block;
    assert_non_null(block);
    burni_storage *storage = v->value->storage;
    burn_tensor *fresh = VEC(4, 5, 6);
    set(v, fresh);
    assert_ptr_equal(v->value->storage, storage);
    burn_tensor *reader = burn_var_get(v);
    set(v, VEC(7, 8, 9));
    assert_ptr_equal(v->value->storage->block, block);
    CHECK(burn_var_get(v), 7, 8, 9);
    CHECK(reader, 4, 5, 6);
    burn_var_release(v);
}

static void test_self_assignment(void **state)
{
    (void)state;
    burn_var *v = make(VEC(1, 2, 3));
    set(v, burn_var_get(v));
    CHECK(burn_var_get(v), 1, 2, 3);
    for (int i = 0; i < 100; i++) {
        burn_scope_begin();
        set(v, burn_add(burn_flip(burn_var_get(v), 1, DIMS(0)), burn_scalar(1.0)));
        burn_scope_end();
    }
    CHECK(burn_var_get(v), 101, 102, 103);
    burn_var_release(v);
}

static void test_a_call_that_fails_leaves_the_value(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *v = make(VEC(1, 2, 3));
    assert_int_equal(burn_var_assign(v, VEC(1, 2), &err), BURN_E_SHAPE);
    CHECK(burn_var_get(v), 1, 2, 3);
    assert_int_equal(burn_var_assign(v, burn_cast(VEC(1, 2, 3), BURN_F16), &err), BURN_E_DTYPE);
    burn_tensor *bad = burn_add(VEC(1, 2), VEC(1, 2, 3));
    assert_int_equal(burn_var_assign(v, bad, &err), BURN_E_SHAPE);
    assert_int_equal(burn_var_assign(NULL, bad, &err), BURN_E_INVALID);
    assert_int_equal(burn_var_assign(v, NULL, &err), BURN_E_INVALID);
    burn_var *const vars[] = {v, NULL};
    burn_tensor *const in[] = {NULL, VEC(1, 1, 1)};
    assert_int_equal(burn_var_update(BURN_OP_ADD, NULL, 0, vars, in, 2, &err), BURN_E_INVALID);
    CHECK(burn_var_get(v), 1, 2, 3);
    burn_tensor *out = NULL;
    burn_tensor *const plain[] = {VEC(1), VEC(2)};
    assert_int_equal(burn_op_call(dev, BURN_OP_ASSIGN, NULL, 0, plain, 2, &out, 1), BURN_E_INVALID);
    check_failed(out, BURN_E_INVALID, "assign", "variable", NULL);
    CHECK(burn_var_get(v), 1, 2, 3);
    assert_null(burn_var_create(dev, bad, &err));
    assert_null(burn_var_create(dev, burn_scalar(1.0), &err));
    burn_var_release(v);
}

/* An update that fails when it runs makes the variable failed, until it is assigned anew. */
static void test_work_that_fails_marks_it_until_it_is_assigned(void **state)
{
    (void)state;
    burn_var *v = make(VEC(1, 2, 3));
    burn_tensor *old = burn_var_get(v);
    burn_tensor *bad = burn_select(VEC(1, 2, 3), index_vec(3, DIMS(0, 9, 1)), 0);
    set(v, bad);
    check_read_fails(burn_var_get(v), BURN_E_DATA, "9", NULL);
    check_read_fails(burn_add(burn_var_get(v), burn_scalar(1.0)), BURN_E_DATA, "9", NULL);
    CHECK(old, 1, 2, 3);
    burn_tensor *reader = burn_var_get(v);
    set(v, VEC(4, 5, 6));
    CHECK(burn_var_get(v), 4, 5, 6);
    check_read_fails(reader, BURN_E_DATA, "9", NULL);
    set(v, burn_add(burn_var_get(v), burn_scalar(1.0)));
    CHECK(burn_var_get(v), 5, 6, 7);
    burn_var_release(v);
}

/* The same, with nobody looking between the failure and the new value. */
static void test_a_failure_that_nobody_saw_is_overwritten(void **state)
{
    (void)state;
    burn_var *v = make(VEC(1, 2, 3));
    burn_tensor *bad = burn_select(VEC(1, 2, 3), index_vec(3, DIMS(0, 9, 1)), 0);
    set(v, bad);
    set(v, VEC(4, 5, 6));
    CHECK(burn_var_get(v), 4, 5, 6);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
    CHECK(burn_var_get(v), 4, 5, 6);
    check_clean();
    burn_var_release(v);
}

/* ---- ops with several variables -------------------------------------------------------------- */

static void test_sgd_step(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *param = make(VEC(1, 2));
    burn_var *velocity = make(VEC(0, 0));
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    a.momentum = 0.9;
    a.first = 1;
    burn_var *const vars[] = {param, NULL, velocity, NULL};
    burn_tensor *const in[] = {NULL, VEC(1, -1), NULL, burn_scalar(0.5)};
    if (burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    CHECK(burn_var_get(param), 0.5, 2.5);
    CHECK(burn_var_get(velocity), 1, -1);
    a.first = 0;
    burn_tensor *kept = burn_var_get(param);
    assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err), BURN_OK);
    CHECK_NEAR(burn_var_get(velocity), 1e-6, 1.9, -1.9);
    CHECK_NEAR(burn_var_get(param), 1e-6, -0.45, 3.45);
    CHECK(kept, 0.5, 2.5);
    burn_var *const no_velocity[] = {param, NULL, NULL, NULL};
    a.momentum = 0;
    set(param, VEC(1, 2));
    if (burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), no_velocity, in, 4, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    CHECK(burn_var_get(param), 0.5, 2.5);
    burn_tensor *const wrong[] = {NULL, VEC(1, -1, 2), NULL, burn_scalar(0.5)};
    assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, wrong, 4, &err),
                     BURN_E_SHAPE);
    CHECK(burn_var_get(param), 0.5, 2.5);
    burn_var_release(param);
    burn_var_release(velocity);
}

/* Against the formula, in double; so flex's row and the decomposition on mock agree. */
static void test_adam_step(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *param = make(VEC(1, -2, 0.5f));
    burn_var *m = make(VEC(0, 0, 0));
    burn_var *v = make(VEC(0, 0, 0));
    burn_attrs_adam a;
    burn_attrs_init(&a, sizeof(a));
    a.beta1 = 0.9;
    a.beta2 = 0.999;
    a.eps = 1e-8;
    a.weight_decay = 0.01;
    a.decoupled = 1;
    const double g[3] = {0.5, -0.25, 3};
    double p[3] = {1, -2, 0.5};
    double first[3] = {0, 0, 0};
    double second[3] = {0, 0, 0};
    burn_tensor *grad = VEC(0.5f, -0.25f, 3);
    for (int t = 1; t <= 5; t++) {
        burn_scope_begin();
        burn_var *const vars[] = {param, NULL, m, v, NULL, NULL};
        burn_tensor *const in[] = {NULL, grad, NULL, NULL, burn_scalar(0.1), burn_scalar(t)};
        if (burn_var_update(BURN_OP_ADAM_STEP, &a, sizeof(a), vars, in, 6, &err) != BURN_OK) {
            fail_msg("%s", err.text);
        }
        burn_scope_end();
        for (int i = 0; i < 3; i++) {
            p[i] *= 1 - 0.1 * 0.01;
            first[i] = 0.9 * first[i] + 0.1 * g[i];
            second[i] = 0.999 * second[i] + 0.001 * g[i] * g[i];
            p[i] -= 0.1 * (first[i] / (1 - pow(0.9, t))) /
                    (sqrt(second[i] / (1 - pow(0.999, t))) + 1e-8);
        }
    }
    check_values(__LINE__, burn_var_get(param), 3, p, 1e-5);
    check_values(__LINE__, burn_var_get(m), 3, first, 1e-5);
    check_values(__LINE__, burn_var_get(v), 3, second, 1e-5);
    burn_var_release(param);
    burn_var_release(m);
    burn_var_release(v);
}

static void test_tracking_follows_the_device(void **state)
{
    (void)state;
    burn_var *tracked = make(VEC(1, 2));
    burn_var *plain = burn_var_create(dev, VEC(1, 2), NULL);
    burn_var *whole = make(index_vec(2, DIMS(1, 2)));
    assert_true(burn_is_tracked(burn_var_get(tracked)));
    assert_false(burn_is_tracked(burn_var_get(plain)));
    assert_false(burn_var_tracked(whole));
    burn_var_set_tracked(whole, 1);
    assert_false(burn_var_tracked(whole));
    burn_var_set_tracked(tracked, 0);
    assert_false(burn_is_tracked(burn_var_get(tracked)));
    burn_var_set_tracked(tracked, 1);
    assert_true(burn_is_tracked(burn_mul(burn_var_get(tracked), burn_var_get(plain))));
    assert_int_not_equal(burn_var_id(tracked), burn_var_id(plain));
    burn_var_release(tracked);
    burn_var_release(plain);
    burn_var_release(whole);
    burn_var_release(NULL);
}

static void test_no_variable_at_all(void **state)
{
    (void)state;
    burn_var_set_tracked(NULL, 1);
    burn_var_set_id(NULL, 7);
    assert_int_equal(burn_var_tracked(NULL), 0);
    assert_int_equal(burn_var_id(NULL), 0);
    check_failed(burn_var_get(NULL), BURN_E_INVALID, "NULL", NULL);
}

/* The tape's saved values are readers too. */
static void test_an_update_between_forward_and_backward(void **state)
{
    (void)state;
    burn_var *w = make(VEC(2, 3));
    burn_tensor *y = burn_mul(burn_var_get(w), burn_var_get(w));
    set(w, VEC(100, 100));
    burn_grads *grads = burn_backward(y, NULL, 0, NULL);
    assert_non_null(grads);
    CHECK(burn_grads_get_var(grads, w), 4, 6);
    burn_grads_free(grads);
    burn_var_release(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_readers_keep_the_old_value),
        CORE_TEST(test_the_address_stays),
        CORE_TEST(test_self_assignment),
        CORE_TEST(test_a_call_that_fails_leaves_the_value),
        CORE_TEST(test_work_that_fails_marks_it_until_it_is_assigned),
        CORE_TEST(test_a_failure_that_nobody_saw_is_overwritten),
        CORE_TEST(test_sgd_step),
        CORE_TEST(test_adam_step),
        CORE_TEST(test_tracking_follows_the_device),
        CORE_TEST(test_no_variable_at_all),
        CORE_TEST(test_an_update_between_forward_and_backward),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
