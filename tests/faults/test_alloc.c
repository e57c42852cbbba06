/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_alloc.c - each allocation of a training step fails once: of host memory, and of device
 * memory. Forward, loss, backward and an optimizer of libburn-train, for an MLP and a CNN.
 *
 * Every failing step starts from the same state, in a thread of its own whose free lists and rows
 * are cold, so that it allocates as much as a step ever does. What must hold: an error with a text;
 * nothing left in use; each parameter has its old or its new bits, or has failed with a text; after
 * parameters are assigned, the next step gives the bits of a step that never failed.
 */
#include "inject.h"

#include "base/alloc.h"
#include "train/optim/optimizer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 12, MAX_STEPS = 6000 };

typedef struct model {
    burn_module *root;
    burn_optimizer *optimizer;
    burn_tensor *x; /* kept, like all below */
    burn_tensor *target;
    uint32_t n_vars; /* parameters, then states */
    burn_var *vars[MAX_SLOTS];
    burn_tensor *start[MAX_SLOTS];
    burn_tensor *after[MAX_SLOTS];
    double loss;
} model;

static model m;

/* ---- the models ------------------------------------------------------------------------------ */

static void add_vars(void)
{
    const burn_optimizer *o = m.optimizer;
    m.n_vars = 0;
    for (uint32_t i = 0; i < o->n_slots; i++) {
        m.vars[m.n_vars++] = o->slots[i].param;
    }
    for (uint32_t s = 0; s < o->n_states; s++) {
        for (uint32_t i = 0; i < o->n_slots; i++) {
            m.vars[m.n_vars++] = o->slots[i].states[s];
        }
    }
    assert_true(m.n_vars <= MAX_SLOTS);
}

static void make_mlp(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_sgd_opts sgd;
    memset(&sgd, 0, sizeof(sgd));
    sgd.struct_size = sizeof(sgd);
    sgd.momentum = 0.9;
    m.root = burn_module_create(ad, &err);
    (void)burn_nn_linear(m.root, "a", 3, 5, 1, &err);
    (void)burn_nn_activation(m.root, "r", BURN_RELU, &err);
    (void)burn_nn_linear(m.root, "b", 5, 2, 1, &err);
    m.optimizer = burn_optimizer_sgd(m.root, &sgd, &err);
    m.x = burn_keep(burn_random_uniform(dev, BURN_F32, 2, DIMS(4, 3)));
    m.target = burn_keep(index_vec(4, DIMS(0, 1, 1, 0)));
    assert_int_equal(err.code, BURN_OK);
    assert_non_null(m.optimizer);
}

static void make_cnn(void)
{
    burn_err err = BURN_ERR_INIT;
    m.root = burn_module_create(ad, &err);
    (void)burn_nn_conv2d(m.root, "c", 1, 2, 3, NULL, &err);
    (void)burn_nn_activation(m.root, "r", BURN_RELU, &err);
    (void)burn_nn_max_pool2d(m.root, "p", 2, 2, &err);
    (void)burn_nn_flatten(m.root, "f", &err);
    (void)burn_nn_linear(m.root, "l", 8, 2, 1, &err);
    m.optimizer = burn_optimizer_adam(m.root, NULL, &err);
    m.x = burn_keep(burn_random_uniform(dev, BURN_F32, 4, DIMS(2, 1, 6, 6)));
    m.target = burn_keep(index_vec(2, DIMS(0, 1)));
    assert_int_equal(err.code, BURN_OK);
    assert_non_null(m.optimizer);
}

static void drop(void)
{
    for (uint32_t i = 0; i < m.n_vars; i++) {
        burn_release(m.start[i]);
        burn_release(m.after[i]);
    }
    burn_release(m.x);
    burn_release(m.target);
    burn_optimizer_free(m.optimizer);
    burn_module_free(m.root);
    memset(&m, 0, sizeof(m));
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* 1: all went well; 0: something failed and said so; -1: it failed without a text. */
static int step(double *loss_value)
{
    burn_err err = BURN_ERR_INIT;
    burn_err late = BURN_ERR_INIT;
    *loss_value = -1;
    burn_scope_begin();
    burn_tensor *y = burn_forward(m.root, m.x);
    burn_tensor *loss = burn_cross_entropy(y, m.target, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    int32_t rc = grads == NULL ? err.code : BURN_OK;
    rc = grads == NULL && rc == BURN_OK ? BURN_E_INTERNAL : rc;
    if (rc == BURN_OK) {
        rc = burn_optimizer_step(m.optimizer, grads, 0.1, &err);
    }
    burn_grads_free(grads);
    if (rc == BURN_OK) {
        rc = burn_read_f64(loss, loss_value, 1, &err);
    }
    burn_scope_end();
    int32_t synced = burn_sync(dev, &late);
    int silent =
        (rc != BURN_OK && err.text[0] == '\0') || (synced != BURN_OK && late.text[0] == '\0');
    return silent ? -1 : rc == BURN_OK && synced == BURN_OK;
}

typedef struct cold_step {
    int on_device;
    int64_t fail_at;
    int64_t made;
    double loss;
    int fine;
} cold_step;

static void *run_cold(void *arg)
{
    cold_step *c = arg;
    inject_forget_rows(dev);
    if (c->on_device) {
        burn_memory_trim(dev);
        /* A failure trims the pools and tries once more, so two in a row fail. */
        inject_fail(INJECT_ALLOC, c->fail_at, 1, BURN_E_NO_MEMORY);
    } else {
        burni_alloc_fail_after(c->fail_at > 0 ? c->fail_at : INT64_MAX);
    }
    c->fine = step(&c->loss);
    c->made = c->on_device ? inject_count(INJECT_ALLOC) : burni_alloc_count();
    burni_alloc_fail_after(0);
    inject_fail(INJECT_ALLOC, 0, 0, BURN_OK);
    (void)burn_sync(dev, NULL);
    return NULL;
}

static cold_step run_step(int on_device, int64_t fail_at)
{
    cold_step c = {on_device, fail_at, 0, -1, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_cold, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return c;
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Gives every variable the value that it had at first, also those that have failed. */
static void restore(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    for (uint32_t i = 0; i < m.n_vars; i++) {
        if (burn_var_assign(m.vars[i], m.start[i], &err) != BURN_OK) {
            fail_msg("restore: %s", err.text);
        }
    }
    burn_scope_end();
    for (uint32_t i = 0; i < m.optimizer->n_slots; i++) {
        m.optimizer->slots[i].steps = 0;
    }
    m.optimizer->steps = 0;
    (void)burn_sync(dev, NULL);
}

static void remember(burn_tensor **into)
{
    burn_scope_begin();
    burn_no_grad_begin();
    for (uint32_t i = 0; i < m.n_vars; i++) {
        into[i] = burn_keep(burn_copy(burn_var_get(m.vars[i])));
    }
    burn_no_grad_end();
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

static int same_bits(burn_tensor *a, burn_tensor *b)
{
    float x[128];
    float y[128];
    size_t size = (size_t)burn_numel(a) * sizeof(float);
    assert_true(size <= sizeof(x));
    assert_int_equal(burn_read(a, x, size, NULL), BURN_OK);
    assert_int_equal(burn_read(b, y, size, NULL), BURN_OK);
    return memcmp(x, y, size) == 0;
}

/* Each variable: old bits, new bits, or failed with a text. */
static void check_not_torn(int64_t n)
{
    burn_scope_begin();
    for (uint32_t i = 0; i < m.n_vars; i++) {
        float values[128];
        burn_err err = BURN_ERR_INIT;
        burn_tensor *t = burn_var_get(m.vars[i]);
        int32_t rc = burn_read(t, values, (size_t)burn_numel(t) * sizeof(float), &err);
        if (rc != BURN_OK && (err.text[0] == '\0' || rc != BURN_E_NO_MEMORY)) {
            fail_msg("allocation %lld: variable %u: %s: \"%s\"", (long long)n, i,
                     burn_status_name(rc), err.text);
        }
        if (rc == BURN_OK && !same_bits(t, m.start[i]) && !same_bits(t, m.after[i])) {
            fail_msg("allocation %lld: variable %u is neither old nor new", (long long)n, i);
        }
    }
    burn_scope_end();
}

static void check_next_step(int64_t n)
{
    double loss = 0;
    restore();
    int fine = step(&loss);
    if (fine != 1 || loss != m.loss) {
        fail_msg("after allocation %lld: the step %s, loss %g, not %g", (long long)n,
                 fine == 1 ? "went well" : "failed", loss, m.loss);
    }
    burn_scope_begin();
    for (uint32_t i = 0; i < m.n_vars; i++) {
        if (!same_bits(burn_var_get(m.vars[i]), m.after[i])) {
            fail_msg("after allocation %lld: variable %u differs", (long long)n, i);
        }
    }
    burn_scope_end();
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void fail_each(void (*make)(void), const char *name, int on_device)
{
    make();
    add_vars();
    remember(m.start);
    burn_scope_flush();
    assert_int_equal(step(&m.loss), 1);
    remember(m.after);
    restore();
    assert_int_equal(run_step(on_device, 0).fine, 1);
    restore();
    uint64_t before = in_use();
    int64_t failures = 0;
    int64_t quiet = 0;
    int64_t n = 0;
    while (quiet < 2 && n < MAX_STEPS) {
        cold_step c = run_step(on_device, ++n);
        quiet = c.made < n ? quiet + 1 : 0;
        failures += c.fine == 0;
        if (c.fine < 0 || (c.fine == 1 && c.loss != m.loss)) {
            fail_msg("allocation %lld failed silently: loss %g, not %g", (long long)n, c.loss,
                     m.loss);
        }
        check_not_torn(n);
        check_next_step(n);
        restore();
        if (in_use() != before) {
            fail_msg("allocation %lld: %lld bytes are left", (long long)n,
                     (long long)(in_use() - before));
        }
    }
    /* A step whose calls wait takes few pieces of the device's memory. */
    assert_true(quiet == 2 && failures >= 4);
    print_message("%s, %s memory: %lld allocations, %lld steps failed\n", name,
                  on_device ? "device" : "host", (long long)(n - quiet), (long long)failures);
    drop();
}

static void test_mlp_host(void **state)
{
    (void)state;
    fail_each(make_mlp, "MLP with SGD", 0);
}

static void test_mlp_device(void **state)
{
    (void)state;
    fail_each(make_mlp, "MLP with SGD", 1);
}

static void test_cnn_host(void **state)
{
    (void)state;
    fail_each(make_cnn, "CNN with Adam", 0);
}

static void test_cnn_device(void **state)
{
    (void)state;
    fail_each(make_cnn, "CNN with Adam", 1);
}

/* With window 1 a pass whose work runs out of memory is no pass. */
static void test_backward_tells_that_memory_ran_out(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 40; n++) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_tensor *w = burn_require_grad(ad, burn_ones(dev, BURN_F32, 2, DIMS(30, 30)));
        burn_tensor *y = burn_sum(burn_tanh(burn_matmul(w, w)), 0, NULL, 0);
        double sum;
        assert_int_equal(burn_read_f64(y, &sum, 1, &err), BURN_OK);
        burn_memory_trim(dev);
        inject_fail(INJECT_ALLOC, n, 1000, BURN_E_NO_MEMORY);
        burn_grads *grads = burn_backward(y, NULL, 0, &err);
        int failed = grads == NULL;
        if (grads != NULL && window == 1) {
            static float values[900];
            inject_fail(INJECT_ALLOC, 0, 0, BURN_OK);
            assert_int_equal(burn_read(burn_grads_get(grads, w), values, sizeof(values), &err),
                             BURN_OK);
        }
        burn_grads_free(grads);
        burn_scope_end();
        inject_fail(INJECT_ALLOC, 0, 0, BURN_OK);
        (void)burn_sync(dev, NULL);
        if (failed) {
            assert_int_equal(err.code, BURN_E_NO_MEMORY);
            assert_non_null(strstr(err.text, "injected"));
        }
        if (n == 1 && window == 1) {
            assert_true(failed);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        INJECT_TEST(test_mlp_host),
        INJECT_TEST(test_mlp_device),
        INJECT_TEST(test_cnn_host),
        INJECT_TEST(test_cnn_device),
        INJECT_TEST(test_backward_tells_that_memory_ran_out),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
