/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_replay.c - each allocation fails once while a step is kept, and while a kept one is run:
 * of host memory, and of device memory.
 *
 * What must hold: an error with a text, or the right values; a variable has its old or its new bits
 * or has failed; nothing is left in use; the next run is right. The step is a chain that is fused
 * where the device can, a reduction, and an update. To add another step: `step` and `want`.
 */
#include "inject.h"

#include "base/alloc.h"

#include <burn/replay.h>
#include <string.h>

enum { MAX_FAILS = 3000 };

static burn_var *weights;
static burn_tensor *x;     /* kept, as all below */
static burn_tensor *start; /* of the variable */
static double want[2];     /* the result; the variable's first element after the step */

static burn_tensor *forward(burn_tensor *in)
{
    burn_scope_begin();
    burn_tensor *h = burn_tanh(burn_add(burn_matmul(in, burn_var_get(weights)), in));
    burn_tensor *e = burn_exp(burn_sub(h, burn_max(h, 1, DIMS(1), 1)));
    burn_tensor *y = burn_mean(burn_div(e, burn_sum(e, 1, DIMS(1), 1)), 1, DIMS(0), 0);
    return burn_scope_return(burn_sum(burn_mul(y, y), 0, NULL, 0));
}

/* Nobody has the old weights when they are updated. */
static burn_tensor *step(burn_tensor *in)
{
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    burn_tensor *result = forward(in);
    burn_var *const vars[4] = {weights, NULL, NULL, NULL};
    burn_tensor *const update[4] = {NULL, in, NULL, burn_scalar(0.5)};
    (void)burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, update, 4, NULL);
    return result;
}

static void set_back(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    if (burn_var_assign(weights, start, &err) != BURN_OK) {
        fail_msg("set back: %s", err.text);
    }
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

static int32_t first_weight(double *out, burn_err *err)
{
    double all[9];
    burn_scope_begin();
    int32_t rc = burn_read_f64(burn_var_get(weights), all, 9, err);
    burn_scope_end();
    *out = all[0];
    return rc;
}

static void begin(int on_device, int64_t n)
{
    if (on_device) {
        burn_memory_trim(dev);
        inject_fail(INJECT_ALLOC, n, 1, BURN_E_NO_MEMORY);
    } else {
        burni_alloc_fail_after(n);
    }
}

/* How many there were. */
static int64_t end(int on_device)
{
    int64_t made = on_device ? inject_count(INJECT_ALLOC) : burni_alloc_count();
    burni_alloc_fail_after(0);
    inject_fail(INJECT_ALLOC, 0, 0, BURN_OK);
    return made;
}

/* Right, or failed with a text; 1 when right. */
static int check(const burn_tensor *out, int32_t rc, const burn_err *said, int64_t n)
{
    burn_err err = BURN_ERR_INIT;
    double value = 0;
    if (rc != BURN_OK) {
        assert_true(said->text[0] != '\0');
        return 0;
    }
    rc = out != NULL ? burn_read_f64(out, &value, 1, &err) : BURN_E_INTERNAL;
    if (rc == BURN_OK && value != want[0]) {
        fail_msg("allocation %lld failed silently: %g, not %g", (long long)n, value, want[0]);
    }
    assert_true(rc == BURN_OK || err.text[0] != '\0');
    return rc == BURN_OK;
}

static void check_weights(int64_t n)
{
    burn_err err = BURN_ERR_INIT;
    double value = 0;
    int32_t rc = first_weight(&value, &err);
    if (rc == BURN_OK ? value != want[1] && value != 0.25 : err.text[0] == '\0') {
        fail_msg("allocation %lld: the variable is torn: %g; \"%s\"", (long long)n, value,
                 err.text);
    }
}

static burn_replay *keep(burn_tensor **out, burn_err *err)
{
    burn_scope_begin();
    burn_replay *r = NULL;
    if (burn_replay_begin(dev, err) == BURN_OK) {
        *out = burn_scope_return(step(burn_replay_port(x)));
        r = burn_replay_end(out, 1, err);
    } else {
        burn_scope_end();
    }
    return r;
}

static void run_once(burn_replay *r, int on_device, int64_t n, int64_t *made, int *fine)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *out = NULL;
    burn_scope_begin();
    if (n > 0) {
        begin(on_device, n);
    }
    int32_t rc = burn_replay_run(r, &x, 1, &out, 1, &err);
    (void)burn_sync(dev, NULL);
    *made = n > 0 ? end(on_device) : 0;
    *fine = check(out, rc, &err, n);
    burn_scope_end();
    check_weights(n);
    set_back();
}

static void make(void)
{
    float values[9] = {0.25f, -1, 2, 0.5f, 1, -0.75f, 0, 3, -2};
    burn_scope_begin();
    start = burn_keep(mat(3, 3, values));
    x = burn_keep(burn_copy(burn_sin(count_up(dev, 2, DIMS(3, 3), 1))));
    weights = burn_var_create(dev, start, NULL);
    burn_scope_end();
    burn_scope_begin();
    assert_int_equal(burn_read_f64(step(x), &want[0], 1, NULL), BURN_OK);
    burn_scope_end();
    assert_int_equal(first_weight(&want[1], NULL), BURN_OK);
    set_back();
}

static void drop(void)
{
    burn_var_release(weights);
    burn_release(x);
    burn_release(start);
}

static void fail_each_run(int on_device)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *out = NULL;
    int fine = 0;
    int quiet = 0;
    int64_t made = 0;
    int64_t n = 0;
    make();
    burn_scope_begin();
    burn_replay *r = keep(&out, &err);
    burn_scope_end();
    if (r == NULL) {
        fail_msg("%s", err.text);
    }
    set_back();
    run_once(r, on_device, 0, &made, &fine);
    assert_true(fine);
    uint64_t before = in_use();
    while (quiet < 2 && n < MAX_FAILS) {
        run_once(r, on_device, ++n, &made, &fine);
        quiet = made < n ? quiet + 1 : 0;
        run_once(r, on_device, 0, &made, &fine);
        assert_true(fine);
        assert_int_equal(in_use(), before);
    }
    assert_int_equal(quiet, 2);
    assert_true(n > 2 || !on_device); /* host memory is all there after the first run */
    burn_replay_free(r);
    drop();
}

static void fail_each_keeping(int on_device)
{
    int quiet = 0;
    int64_t made = 0;
    int64_t n = 0;
    make();
    uint64_t before = in_use();
    while (quiet < 2 && n < MAX_FAILS) {
        burn_err err = BURN_ERR_INIT;
        burn_tensor *out = NULL;
        int fine = 0;
        burn_scope_begin();
        begin(on_device, ++n);
        burn_replay *r = keep(&out, &err);
        (void)burn_sync(dev, NULL);
        int64_t count = end(on_device);
        quiet = count < n ? quiet + 1 : 0;
        assert_true(r != NULL || err.text[0] != '\0');
        burn_scope_end();
        check_weights(n);
        set_back();
        if (r != NULL) {
            run_once(r, on_device, 0, &made, &fine);
            assert_true(fine);
        }
        burn_replay_free(r);
        assert_int_equal(in_use(), before);
    }
    assert_int_equal(quiet, 2);
    assert_in_range(n, 4, MAX_FAILS); /* some did fail */
    drop();
}

static void test_runs_host(void **state)
{
    (void)state;
    fail_each_run(0);
}

static void test_runs_device(void **state)
{
    (void)state;
    fail_each_run(1);
}

static void test_keeping_host(void **state)
{
    (void)state;
    fail_each_keeping(0);
}

static void test_keeping_device(void **state)
{
    (void)state;
    fail_each_keeping(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        INJECT_TEST(test_runs_host),
        INJECT_TEST(test_runs_device),
        INJECT_TEST(test_keeping_host),
        INJECT_TEST(test_keeping_device),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
