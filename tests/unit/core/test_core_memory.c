/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_memory.c - device memory: flat in steady state (B244), reused, trimmed, limited.
 */
#include "core_test.h"

#include <pthread.h>
#include <string.h>

static burn_memory report(void)
{
    burn_memory memory;
    BURN_INIT(&memory, burn_memory);
    (void)burn_sync(dev, NULL);
    assert_int_equal(burn_memory_report(dev, &memory, NULL), BURN_OK);
    return memory;
}

/* The first element; leaves no view behind. */
static void check_first(burn_tensor *t, double value)
{
    burn_scope_begin();
    CHECK(burn_slice(t, 0, 0, 1, 1), value);
    burn_scope_end();
}

static burn_module *make_model(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(ad, &err);
    (void)burn_nn_linear(root, "a", 8, 16, 1, &err);
    (void)burn_nn_activation(root, "r", BURN_RELU, &err);
    (void)burn_nn_linear(root, "b", 16, 4, 1, &err);
    assert_int_equal(err.code, BURN_OK);
    return root;
}

/* One step of plain gradient descent; `look` reads the loss. */
static void step(burn_module *root, burn_tensor *x, burn_tensor *target, int look)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *loss = burn_cross_entropy(burn_forward(root, x), target, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    if (grads == NULL) {
        fail_msg("%s", err.text);
    }
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    burn_var *v;
    for (uint32_t i = 0; (v = burn_module_var_at(root, i, NULL, NULL)) != NULL; i++) {
        burn_var *const vars[] = {v, NULL, NULL, NULL};
        burn_tensor *const in[] = {NULL, burn_grads_get_var(grads, v), NULL, burn_scalar(0.1)};
        if (burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err) != BURN_OK) {
            fail_msg("%s", err.text);
        }
    }
    burn_grads_free(grads);
    if (look) {
        double value = burn_item(loss, &err);
        assert_true(value > 0 && value < 10);
    }
    burn_scope_end();
}

/* Looking at the loss each step, and never looking: fault words and windows pile up differently. */
static void test_B244_memory_is_flat_over_steps(void **state)
{
    (void)state;
    for (int look = 1; look >= 0; look--) {
        burn_module *root = make_model();
        burn_tensor *x = burn_random_normal(dev, BURN_F32, 2, DIMS(5, 8));
        burn_tensor *target = index_vec(5, DIMS(0, 1, 2, 3, 0));
        burn_memory first;
        for (int i = 0; i < 1000; i++) {
            step(root, x, target, look);
            if (i == 100) {
                first = report();
            }
        }
        burn_memory last = report();
        assert_int_equal(last.in_use, first.in_use);
        assert_true((double)last.peak_reserved <= 1.05 * (double)first.peak_reserved);
        check_clean();
        burn_module_free(root);
        burn_scope_flush();
    }
}

static void test_B244_alternating_sizes(void **state)
{
    (void)state;
    burn_memory first;
    for (int i = 0; i < 1000; i++) {
        burn_scope_begin();
        int64_t n = i % 2 == 0 ? 1000 : 300000 + 1000 * (i % 5);
        burn_tensor *x = burn_ones(dev, BURN_F32, 1, &n);
        burn_tensor *y = burn_add(burn_mul(x, x), x);
        if (i % 10 == 0) {
            burn_tensor *end = burn_slice(y, 0, n - 1, n, 1);
            CHECK(end, 2);
        }
        burn_scope_end();
        if (i == 100) {
            first = report();
        }
        if (on_mock && i == 200) {
            break; /* slow, on purpose */
        }
    }
    burn_memory last = report();
    assert_int_equal(last.in_use, first.in_use);
    assert_true((double)last.peak_reserved <= 1.05 * (double)first.peak_reserved);
}

/* Both threads of a round live at once, so that each round needs the same two streams. */
static pthread_barrier_t together;

static void *short_life(void *arg)
{
    int *fine = arg;
    burn_scope_begin();
    burn_tensor *x = burn_ones(dev, BURN_F32, 1, DIMS(1000));
    burn_tensor *y = burn_sum(burn_mul(x, burn_scalar(2.0)), 0, NULL, 0);
    *fine = burn_item(y, NULL) == 2000.0;
    burn_scope_end();
    (void)pthread_barrier_wait(&together);
    return NULL;
}

static void test_B244_short_lived_threads(void **state)
{
    (void)state;
    burn_memory first = {0};
    assert_int_equal(pthread_barrier_init(&together, NULL, 2), 0);
    for (int i = 0; i < 300; i++) {
        pthread_t threads[2];
        int fine[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, short_life, &fine[k]), 0);
        }
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pthread_join(threads[k], NULL), 0);
            assert_true(fine[k]);
        }
        if (i == 20) {
            first = report();
        }
    }
    burn_memory last = report();
    /* Whether two threads ever ran at once, and so needed a stream each, is chance. */
    assert_in_range(last.n_pages, first.n_pages, first.n_pages + 2);
    assert_true(last.reserved <= first.reserved + 4 * 1024 * 1024);
}

static void test_trim_gives_pages_back(void **state)
{
    (void)state;
    burn_memory_trim(dev);
    burn_memory before = report();
    burn_scope_begin();
    burn_tensor *big = burn_ones(dev, BURN_F32, 1, DIMS(1000000));
    CHECK(burn_slice(big, 0, 0, 1, 1), 1);
    assert_true(report().reserved >= before.reserved + 4000000);
    burn_memory_trim(dev); /* nothing that is in use goes */
    CHECK(burn_slice(big, 0, 999999, 1000000, 1), 1);
    burn_scope_end();
    assert_true(report().reserved >= before.reserved + 4000000);
    burn_memory_trim(dev);
    burn_memory after = report();
    assert_true(after.reserved <= before.reserved + 4 * 1024 * 1024);
    burn_tensor *kept = burn_keep(VEC(1));
    for (int i = 0; i < 5; i++) {
        burn_memory_trim(dev);
        burn_scope_begin();
        CHECK(burn_add(kept, VEC(2)), 3); /* the rest of its page is used */
        burn_scope_end();
        assert_true(report().reserved <= after.reserved + 2 * 1024 * 1024);
    }
    burn_release(kept);
}

/* Tensors of 1 MiB share pages with each other, not with the small ones between them. */
static void test_medium_blocks_share_pages(void **state)
{
    (void)state;
    enum { PAIRS = 16 };
    burn_memory_trim(dev);
    burn_memory before = report();
    burn_scope_begin();
    burn_tensor *large[PAIRS];
    burn_tensor *small[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        large[i] = burn_ones(dev, BURN_F32, 1, DIMS(256 * 1024));
        small[i] = burn_add(VEC(i), VEC(1));
        check_first(large[i], 1);
    }
    assert_true(report().reserved <= before.reserved + (PAIRS + 4) * 1024 * 1024);
    for (int i = 0; i < PAIRS; i++) {
        CHECK(small[i], i + 1);
        CHECK(burn_slice(large[i], 0, 256 * 1024 - 1, 256 * 1024, 1), 1);
    }
    burn_scope_end();
}

/* A limit fails the tensor that goes over it, says so, and nothing else. */
static void test_a_limit(void **state)
{
    (void)state;
    burn_memory_trim(dev);
    burn_tensor *small = burn_keep(VEC(1, 2));
    CHECK(burn_add(small, small), 2, 4);
    burn_memory now = report();
    burn_memory_limit(dev, now.reserved + 6 * 1024 * 1024);
    burn_scope_begin();
    burn_tensor *a = burn_ones(dev, BURN_F32, 1, DIMS(1000000));
    check_first(a, 1);
    burn_tensor *b = burn_add(a, a);
    check_read_fails(burn_slice(b, 0, 0, 1, 1), BURN_E_NO_MEMORY, "limit", NULL);
    check_read_fails(burn_sum(b, 0, NULL, 0), BURN_E_NO_MEMORY, "limit", NULL);
    CHECK(burn_add(small, small), 2, 4);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_sync(dev, &err), BURN_E_NO_MEMORY);
    check_clean();
    burn_release(a);
    /* What lies idle is given back before anything fails. */
    burn_tensor *c = burn_ones(dev, BURN_F32, 1, DIMS(1200000));
    CHECK(burn_slice(c, 0, 0, 1, 1), 1);
    burn_scope_end();
    burn_memory_limit(dev, 0);
    burn_tensor *d = burn_ones(dev, BURN_F32, 1, DIMS(3000000));
    CHECK(burn_slice(d, 0, 0, 1, 1), 1);
    burn_release(small);
    check_clean();
}

/* A variable that could not be written keeps readers and can be assigned again. */
static void test_a_limit_and_variables(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    const int64_t n = 500000;
    burn_memory_trim(dev);
    burn_var *v = burn_var_create(dev, burn_ones(dev, BURN_F32, 1, &n), &err);
    assert_non_null(v);
    burn_scope_flush();
    burn_memory_trim(dev);
    burn_memory_limit(dev, report().reserved + 1);
    burn_tensor *reader = burn_var_get(v);
    assert_int_equal(burn_var_assign(v, burn_expand_to(VEC(2), 1, &n), &err), BURN_E_NO_MEMORY);
    burn_memory_limit(dev, 0);
    CHECK(burn_slice(reader, 0, 0, 1, 1), 1);
    CHECK(burn_slice(burn_var_get(v), 0, n - 1, n, 1), 1);
    assert_int_equal(burn_var_assign(v, burn_expand_to(VEC(2), 1, &n), &err), BURN_OK);
    CHECK(burn_slice(reader, 0, 0, 1, 1), 1);
    CHECK(burn_slice(burn_var_get(v), 0, n - 1, n, 1), 2);
    burn_var_release(v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B244_memory_is_flat_over_steps),
        CORE_TEST(test_B244_alternating_sizes),
        CORE_TEST(test_B244_short_lived_threads),
        CORE_TEST(test_trim_gives_pages_back),
        CORE_TEST(test_medium_blocks_share_pages),
        CORE_TEST(test_a_limit),
        CORE_TEST(test_a_limit_and_variables),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
