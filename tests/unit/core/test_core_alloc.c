/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_alloc.c - host memory runs out at each allocation of a small training step in turn: an
 * error somewhere, nothing left behind, the next step works and gives the right values.
 *
 * Each failing step runs in a thread of its own, whose free lists are empty and whose stream has
 * forgotten the kernels it knew, so that it allocates as much as a step ever does. The failing
 * allocation may be one of mock's worker threads; then the failure comes late.
 */
#include "core_test.h"

#include "base/alloc.h"
#include "exec/stream.h"

#include <pthread.h>
#include <string.h>

static burn_module *root;
static burn_var *momentum;

/* 1 when all went well, 0 when something failed and said so, -1 when it said nothing. */
static int step(double *loss_value)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = BURN_OK;
    *loss_value = -1;
    burn_scope_begin();
    burn_tensor *x = burn_reshape(VEC(1, -1, 2, 0.5f, 3, -2), 2, DIMS(2, 3));
    burn_tensor *h = burn_relu(burn_forward(root, x));
    burn_tensor *loss = burn_cross_entropy(h, index_vec(2, DIMS(0, 1)), NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    rc = grads == NULL ? err.code : BURN_OK;
    burn_var *w = burn_module_var(root, "layer.weight");
    if (rc == BURN_OK) {
        burn_attrs_sgd a;
        burn_attrs_init(&a, sizeof(a));
        a.momentum = 0.5;
        burn_var *const vars[] = {w, NULL, momentum, NULL};
        burn_tensor *const in[] = {NULL, burn_grads_get_var(grads, w), NULL, burn_scalar(0.0)};
        rc = burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
    }
    burn_grads_free(grads);
    if (rc == BURN_OK) {
        rc = burn_read_f64(loss, loss_value, 1, &err);
    }
    burn_scope_end();
    burn_err late = BURN_ERR_INIT;
    int32_t synced = burn_sync(dev, &late);
    if ((rc != BURN_OK && err.text[0] == '\0') || (synced != BURN_OK && late.text[0] == '\0')) {
        return -1;
    }
    return rc == BURN_OK && synced == BURN_OK;
}

typedef struct cold_step {
    int64_t fail_at;
    int64_t made;
    double loss;
    int fine;
} cold_step;

static void *run_cold(void *arg)
{
    cold_step *c = arg;
    burni_stream *s = burni_stream_get(burni_thread_get(), dev->core, NULL);
    if (s != NULL) {
        burni_again_forget(s);
        burni_resolver_clear(&s->resolver, dev->core);
    }
    burni_alloc_fail_after(c->fail_at);
    c->fine = step(&c->loss);
    c->made = burni_alloc_count();
    burni_alloc_fail_after(0);
    (void)burn_sync(dev, NULL);
    return NULL;
}

static cold_step run_step(int64_t fail_at)
{
    cold_step c = {fail_at, 0, -1, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_cold, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return c;
}

static void make(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    root = burn_module_create(ad, &err);
    (void)burn_nn_linear(root, "layer", 3, 2, 1, &err);
    momentum = burn_var_create(dev, burn_zeros(dev, BURN_F32, 2, DIMS(3, 2)), &err);
    assert_int_equal(err.code, BURN_OK);
    assert_non_null(momentum);
    burn_scope_end();
}

static void drop(void)
{
    burn_var_release(momentum);
    burn_module_free(root);
}

/* A variable whose update failed when it ran is failed until it is assigned: give it values. */
static void repair(burn_tensor *weight)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_var *w = burn_module_var(root, "layer.weight");
    if (burn_var_assign(w, weight, &err) != BURN_OK ||
        burn_var_assign(momentum, burn_zeros(dev, BURN_F32, 2, DIMS(3, 2)), &err) != BURN_OK) {
        fail_msg("repair: %s", err.text);
    }
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

static void test_each_allocation_fails_once(void **state)
{
    (void)state;
    make();
    double want = 0;
    double seen = 0;
    burn_tensor *weight = burn_keep(burn_copy(burn_var_get(burn_module_var(root, "layer.weight"))));
    burn_scope_flush();
    assert_int_equal(step(&want), 1);
    assert_int_equal(step(&seen), 1);
    assert_true(seen == want);
    assert_int_equal(run_step(0).fine, 1);
    uint64_t before = in_use();
    uint32_t failures = 0;
    int64_t quiet = 0;
    for (int64_t n = 1; n < 3000 && quiet < 3; n++) {
        cold_step c = run_step(n);
        if (c.fine < 0) {
            fail_msg("allocation %lld: a failure without a text", (long long)n);
        } else if (c.fine == 0) {
            failures++;
            repair(weight);
        } else if (c.loss != want) {
            fail_msg("allocation %lld failed silently: loss %g, not %g", (long long)n, c.loss,
                     want);
        }
        quiet = c.made < n ? quiet + 1 : 0;
        if (in_use() != before) {
            fail_msg("allocation %lld: %lld bytes are left", (long long)n,
                     (long long)(in_use() - before));
        }
        if (step(&seen) != 1 || seen != want) {
            fail_msg("after allocation %lld: loss %g, not %g", (long long)n, seen, want);
        }
    }
    assert_true(failures > 20);
    print_message("%u failures\n", failures);
    burn_release(weight);
    drop();
}

/* The same on a fresh thread's empty lists is where most allocations are. */
static void test_making_a_model_fails_cleanly(void **state)
{
    (void)state;
    burn_scope_flush();
    uint64_t before = in_use();
    int64_t quiet = 0;
    for (int64_t n = 1; n < 1000 && quiet < 3; n++) {
        burn_err err = BURN_ERR_INIT;
        burni_alloc_fail_after(n);
        burn_scope_begin();
        burn_module *m = burn_module_create(ad, &err);
        burn_module *block = burn_module_child(m, "block", &err);
        (void)burn_nn_linear(block, "a", 4, 4, 1, &err);
        (void)burn_nn_batch_norm(block, "n", 4, &err);
        burn_module_free(m);
        burn_scope_end();
        int64_t made = burni_alloc_count();
        burni_alloc_fail_after(0);
        quiet = made < n ? quiet + 1 : 0;
        if (quiet > 0) {
            assert_int_equal(err.code, BURN_OK);
        }
        (void)burn_sync(dev, NULL);
        if (in_use() != before) {
            fail_msg("allocation %lld: %lld bytes are left", (long long)n,
                     (long long)(in_use() - before));
        }
    }
    CHECK(burn_add(VEC(1), VEC(2)), 3);
}

static void test_captures_fail_cleanly(void **state)
{
    (void)state;
    int64_t quiet = 0;
    for (int64_t n = 1; n < 1000 && quiet < 3; n++) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_tensor *x = VEC(1, 2);
        burni_alloc_fail_after(n);
        if (burn_capture_begin(&err) == BURN_OK) {
            (void)burn_capture_input(x, "x");
            burn_tensor *y = burn_add(burn_mul(x, x), burn_scalar(1.0));
            burn_tensor *const outputs[] = {y, x};
            burn_graph *graph = burn_capture_end(outputs, 2, NULL, &err);
            burn_tensor *out[2] = {NULL, NULL};
            if (graph != NULL &&
                burn_graph_run(graph, dev, &x, 1, NULL, NULL, out, 2, &err) == BURN_OK) {
                double values[2] = {0, 0};
                if (burn_read_f64(out[0], values, 2, &err) == BURN_OK) {
                    assert_true(values[1] == 5);
                }
            }
            burn_graph_free(graph);
        }
        int64_t made = burni_alloc_count();
        burni_alloc_fail_after(0);
        quiet = made < n ? quiet + 1 : 0;
        assert_true(quiet == 0 || err.code == BURN_OK);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
}

static burn_tensor *calls(burn_tensor *x)
{
    burn_scope_begin();
    burn_tensor *y = burn_relu(burn_add(burn_matmul(x, x), x));
    y = burn_div(y, burn_add(burn_sum(y, 1, DIMS(1), 1), burn_scalar(1)));
    return burn_scope_return(burn_max(burn_exp(y), 0, NULL, 0));
}

static void round_of_calls(burn_tensor *x)
{
    float largest = 0;
    burn_scope_begin();
    assert_int_equal(burn_read(calls(x), &largest, sizeof(largest), NULL), BURN_OK);
    burn_scope_end();
    assert_true(largest >= 1.0F);
}

/* Once calls are known, nothing on their way to a launch asks for host memory. Mock does, for the
 * calls that it queues. */
static void test_known_calls_allocate_nothing(void **state)
{
    (void)state;
    if (on_mock) {
        skip();
    }
    burn_tensor *x = mat(2, 2, (const float[]){1, -2, 0.5F, 3});
    for (int k = 0; k < 50; k++) {
        round_of_calls(x);
    }
    burni_alloc_fail_after(INT64_MAX);
    for (int k = 0; k < 100; k++) {
        round_of_calls(x);
    }
    int64_t made = burni_alloc_count();
    burni_alloc_fail_after(0);
    assert_int_equal(made, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_each_allocation_fails_once),
        CORE_TEST(test_making_a_model_fails_cleanly),
        CORE_TEST(test_known_calls_allocate_nothing),
        CORE_TEST(test_captures_fail_cleanly),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
