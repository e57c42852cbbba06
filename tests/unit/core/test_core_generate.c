/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_generate.c - random numbers inside of groups: the same bits as calls that run one by
 * one, a mask that nobody reads is not written, runs of a replay go on, another batch size is the
 * same plan.
 *
 * A chain draws numbers and uses them at once. What it should give comes from the same chain with
 * each value waited for as soon as it is made, which leaves nothing to put together. To add a
 * chain: a row of `chains`.
 */
#include "core_test.h"

#include <burn/plans.h>
#include <burn/replay.h>
#include <string.h>

/* Waits for a value, so that nothing is put together with it, or leaves it alone. */
static burn_tensor *pass(burn_tensor *t, int read)
{
    if (read) {
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    }
    return t;
}

static burn_tensor *numbers(burn_tensor *like, uint8_t dtype)
{
    int64_t dims[2] = {burn_dim(like, 0), burn_dim(like, 1)};
    return burn_random_uniform(dev, dtype, 2, dims);
}

/* ---- chains ---------------------------------------------------------------------------------- */

static burn_tensor *by_hand(burn_tensor *x, int read)
{
    burn_tensor *u = pass(numbers(x, BURN_F32), read);
    burn_tensor *kept = pass(burn_greater_equal(u, burn_scalar(0.25)), read);
    burn_tensor *grown = pass(burn_mul(x, burn_scalar(1.0 / 0.75)), read);
    return pass(burn_where(kept, grown, burn_scalar(0.0)), read);
}

static burn_tensor *dropped(burn_tensor *x, int read)
{
    burn_tensor *y = pass(burn_relu(pass(burn_add(x, burn_scalar(0.5)), read)), read);
    return pass(burn_mul(pass(burn_dropout(y, 0.4), read), burn_scalar(3.0)), read);
}

static burn_tensor *noisy(burn_tensor *x, int read)
{
    int64_t dims[2] = {burn_dim(x, 0), burn_dim(x, 1)};
    burn_tensor *z = pass(burn_random_normal(dev, BURN_F32, 2, dims), read);
    burn_tensor *y = pass(burn_add(x, pass(burn_mul(z, burn_scalar(0.1)), read)), read);
    burn_tensor *sums = pass(burn_sum(y, 1, DIMS(1), 1), read);
    return pass(burn_sub(y, sums), read);
}

static burn_tensor *halves(burn_tensor *x, int read)
{
    int64_t dims[2] = {burn_dim(x, 0), burn_dim(x, 1)};
    burn_tensor *h = pass(burn_cast(x, BURN_F16), read);
    burn_tensor *y = pass(burn_mul(pass(burn_dropout(h, 0.3), read), h), read);
    burn_tensor *b = pass(burn_bernoulli(dev, BURN_F16, 2, dims, 0.5), read);
    return pass(burn_cast(pass(burn_add(y, b), read), BURN_F32), read);
}

/* Behind a product, whose blocks come in any order. */
static burn_tensor *of_a_product(burn_tensor *x, int read)
{
    burn_tensor *w = pass(count_up(dev, 2, DIMS(7, 7), -20.0), 1);
    burn_tensor *y = pass(burn_relu(pass(burn_matmul(x, w), read)), read);
    return pass(burn_mul(pass(burn_dropout(y, 0.4), read), burn_scalar(0.5)), read);
}

/* Nothing but numbers: no operand says how many there are. */
static burn_tensor *only_numbers(burn_tensor *x, int read)
{
    burn_tensor *u = pass(numbers(x, BURN_F32), read);
    return pass(burn_add(pass(burn_mul(u, burn_scalar(2.0)), read), burn_scalar(-1.0)), read);
}

typedef struct chain {
    burn_tensor *(*make)(burn_tensor *x, int read);
    uint32_t n_fused; /* calls of it that become one */
} chain;

static const chain chains[] = {
    {by_hand, 4}, {dropped, 4},      {noisy, 5},
    {halves, 6},  {of_a_product, 4}, {only_numbers, 0},
};

/* What the chain gives with a seed, on rows of 7: tiles and pairs of rows begin anywhere. */
static void result(const chain *c, int64_t n_rows, int read, float *out)
{
    burn_scope_begin();
    burn_seed(11);
    burn_tensor *x = count_up(dev, 2, DIMS(n_rows, 7), -3.0);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    burn_tensor *y = c->make(x, read);
    assert_int_equal(burn_read(y, out, sizeof(float) * 7 * (size_t)n_rows, NULL), BURN_OK);
    burn_scope_end();
}

static void test_chains_equal_their_calls(void **state)
{
    (void)state;
    enum { ROWS = 900 };
    static float want[7 * ROWS];
    static float got[7 * ROWS];
    for (size_t k = 0; k < COUNT(chains); k++) {
        result(&chains[k], ROWS, 1, want);
        for (int round = 0; round < 3; round++) {
            memset(got, 0, sizeof(got));
            result(&chains[k], ROWS, 0, got);
            assert_memory_equal(got, want, sizeof(want));
        }
        result(&chains[k], 3, 1, want);
        result(&chains[k], 3, 0, got);
        assert_memory_equal(got, want, sizeof(float) * 21);
    }
}

static burn_plan_totals totals(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t;
}

/* One launch, and the mask is not written: nothing else is counted in the plan. */
static void test_a_chain_is_one_launch(void **state)
{
    (void)state;
    static float got[7 * 64];
    if (window == 1 || on_mock) {
        return;
    }
    for (size_t k = 0; k < COUNT(chains); k++) {
        for (int round = 0; round < 3; round++) {
            result(&chains[k], 64, 0, got);
        }
        burn_plan_totals before = totals();
        result(&chains[k], 64, 0, got);
        burn_plan_totals after = totals();
        assert_int_equal(after.last.n_fused, chains[k].n_fused);
        assert_int_equal(after.made, before.made);
        if (chains[k].n_fused > 0) {
            assert_int_equal(after.last.n_groups, 1);
        }
        result(&chains[k], 10, 0, got); /* another batch size */
        assert_int_equal(totals().made, before.made);
    }
}

/* Numbers go on from run to run as from call to call. */
static void test_runs_of_a_replay_go_on(void **state)
{
    (void)state;
    enum { RUNS = 4 };
    static float want[RUNS][70];
    float got[70];
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_keep(count_up(dev, 2, DIMS(10, 7), 1.0));
    burn_seed(21);
    for (int k = 0; k < RUNS; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_add(by_hand(x, 1), pass(burn_dropout(x, 0.5), 1));
        assert_int_equal(burn_read(y, want[k], sizeof(want[k]), NULL), BURN_OK);
        burn_scope_end();
    }
    burn_seed(21);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *port = burn_replay_port(x);
    burn_tensor *y = burn_add(by_hand(port, 0), burn_dropout(port, 0.5));
    burn_replay *replay = burn_replay_end(&y, 1, &err);
    assert_non_null(replay);
    assert_int_equal(burn_read(y, got, sizeof(got), NULL), BURN_OK);
    assert_memory_equal(got, want[0], sizeof(got));
    for (int k = 1; k < RUNS; k++) {
        assert_int_equal(burn_replay_run(replay, &x, 1, &y, 1, &err), BURN_OK);
        assert_int_equal(burn_read(y, got, sizeof(got), NULL), BURN_OK);
        assert_memory_equal(got, want[k], sizeof(got));
    }
    uint32_t kept = 0;
    uint32_t runs = 0;
    burn_replay_size(replay, &kept, &runs);
    assert_true(on_mock || (kept == 6 && runs == 1));
    burn_replay_free(replay);
    burn_release(x);
}

/* Only the scope holds the mask at the read; asked for later, it is the one that was used. */
static void test_a_mask_that_was_not_written_is_made_later(void **state)
{
    (void)state;
    float kept[14];
    float y[14];
    for (int round = 0; round < 3; round++) {
        burn_scope_begin();
        burn_seed(5);
        burn_tensor *x = count_up(dev, 2, DIMS(2, 7), 1.0);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        burn_tensor *mask = burn_cast(burn_less(numbers(x, BURN_F32), burn_scalar(0.5)), BURN_F32);
        burn_tensor *product = burn_mul(x, mask);
        assert_int_equal(burn_read(product, y, sizeof(y), NULL), BURN_OK);
        (void)burn_random_uniform(dev, BURN_F32, 1, DIMS(9)); /* the generator has gone on */
        assert_int_equal(burn_read(mask, kept, sizeof(kept), NULL), BURN_OK);
        for (int i = 0; i < 14; i++) {
            assert_true(y[i] == kept[i] * (float)(i + 1));
        }
        burn_scope_end();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_chains_equal_their_calls),
        CORE_TEST(test_a_chain_is_one_launch),
        CORE_TEST(test_runs_of_a_replay_go_on),
        CORE_TEST(test_a_mask_that_was_not_written_is_made_later),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
