/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_unrun.c - what only a scope holds at a read is computed when it is asked for.
 *
 * Looks inside: at the states of storages and at the stream's counters. Each case goes round a few
 * times, so that in window auto the calls wait as well.
 */
#include "core_test.h"

#include "base/alloc.h"
#include "exec/stream.h"

#include <pthread.h>

enum { ROUNDS = 4 };

static int is_unrun(const burn_tensor *t)
{
    return atomic_load(&t->storage->state) == BURNI_UNRUN;
}

/* Do calls wait in this round? */
static int waits(int round)
{
    return window == 64 || (window == BURNI_WINDOW_AUTO && round > 0);
}

static void nobody_asks__nothing_runs(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *unseen = burn_exp(burn_add(x, x));
        uint64_t before = core_stream()->n_launched;
        CHECK(burn_mul(x, x), 1, 4, 9);
        assert_int_equal(is_unrun(unseen), waits(k));
        assert_true(!waits(k) || core_stream()->n_launched == before + 1);
        burn_scope_end();
    }
    burn_release(x);
}

/* Values between the input and what is read: of a group they are not written, and yet there. */
static void somebody_asks__it_is_as_it_would_have_been(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, -2, 3));
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *a = burn_add(x, x);
        burn_tensor *b = burn_mul(a, x);
        burn_tensor *c = burn_relu(burn_neg(b));
        burn_tensor *d = burn_sub(c, a);
        CHECK(d, -2, 4, -6);
        CHECK(b, 2, 8, 18);
        CHECK(c, 0, 0, 0);
        CHECK(a, 2, -4, 6);
        CHECK(burn_add(b, c), 2, 8, 18);
        burn_scope_end();
    }
    burn_release(x);
}

/* Used by calls, kept past the scope, handed to the outer one. */
static void others_use_it__it_is_made(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(2, 3));
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_scope_begin();
        burn_tensor *a = burn_add(x, x);
        burn_tensor *b = burn_mul(a, a);
        burn_tensor *c = burn_sub(b, x);
        CHECK(burn_add(c, x), 16, 36);
        burn_keep(b);
        burn_tensor *sum = burn_add(burn_scope_return(c), b);
        CHECK(sum, 30, 69);
        burn_scope_end();
        CHECK(b, 16, 36);
        burn_release(b);
    }
    burn_release(x);
}

/* What was made of a variable is what the variable was then. */
static void variables__may_be_overwritten(void **state)
{
    (void)state;
    burn_var *v = burn_var_create(dev, VEC(1, 2), NULL);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        assert_int_equal(burn_var_assign(v, VEC(1, 2), NULL), BURN_OK);
        burn_scope_begin();
        burn_tensor *a = burn_add(burn_var_get(v), burn_scalar(1));
        burn_tensor *b = burn_scope_return(burn_mul(a, burn_scalar(2)));
        burn_tensor *c = burn_add(b, burn_scalar(1));
        CHECK(c, 5, 7);
        assert_int_equal(burn_var_assign(v, VEC(10, 20), NULL), BURN_OK);
        CHECK(b, 4, 6);
        CHECK(burn_var_get(v), 10, 20);
        burn_scope_end();
    }
    burn_var_release(v);
}

/* An error of a value that nobody asks for is told when somebody does. */
static void errors__come_when_they_are_asked_for(void **state)
{
    (void)state;
    int64_t two = 2;
    const int32_t values[2] = {1, 0};
    const int32_t ones[2] = {1, 1};
    burn_tensor *x = burn_keep(burn_tensor_from_data(dev, BURN_I32, 1, &two, ones));
    burn_tensor *y = burn_keep(burn_tensor_from_data(dev, BURN_I32, 1, &two, values));
    for (int k = 0; k < ROUNDS; k++) {
        int32_t seen[2];
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_tensor *bad = burn_div(x, y);
        assert_int_equal(burn_read(burn_add(x, y), seen, sizeof(seen), NULL), BURN_OK);
        assert_int_equal(burn_read(bad, seen, sizeof(seen), &err), BURN_E_DATA);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
    burn_release(x);
    burn_release(y);
}

typedef struct shared_values {
    burn_tensor *kept;
    double seen;
} shared_values;

static void *read_elsewhere(void *argument)
{
    shared_values *s = argument;
    s->seen = burn_item(burn_sum(s->kept, 0, NULL, 0), NULL);
    burn_scope_flush();
    return NULL;
}

static void another_thread__may_ask(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    for (int k = 0; k < ROUNDS; k++) {
        pthread_t threads[2];
        shared_values s[2];
        burn_scope_begin();
        burn_tensor *a = burn_add(x, x);
        burn_tensor *b = burn_mul(a, x);
        CHECK(burn_sub(b, a), 0, 4, 12);
        for (int t = 0; t < 2; t++) {
            s[t].kept = t == 0 ? burn_keep(b) : b;
            assert_int_equal(pthread_create(&threads[t], NULL, read_elsewhere, &s[t]), 0);
        }
        for (int t = 0; t < 2; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_true(s[t].seen == 28);
        }
        burn_release(b);
        burn_scope_end();
    }
    burn_release(x);
}

/* A long chain of them dies, and is made, without depth. */
static void long_chains__die_and_are_made(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1));
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *t = x;
        burn_tensor *middle = NULL;
        for (int i = 0; i < 900; i++) {
            t = burn_add(t, burn_scalar(1));
            middle = i == 450 ? t : middle;
        }
        CHECK(burn_mul(x, x), 1);
        if (k % 2 == 1) {
            CHECK(middle, 452);
        }
        burn_scope_end();
    }
    burn_release(x);
}

/* A sync, and whoever keeps one, asks for it. */
static void a_sync_or_a_keep__asks(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *a = burn_exp(burn_add(x, x));
        burn_tensor *b = burn_sin(x);
        CHECK(burn_mul(x, x), 1, 4, 9);
        assert_false(is_unrun(burn_keep(b)));
        burn_release(b);
        assert_int_equal(is_unrun(a), waits(k));
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        assert_false(is_unrun(a));
        burn_scope_end();
    }
    burn_release(x);
}

/* Each round's value is made of the last one's, and read by nobody: they do not pile up. */
static void accumulators__do_not_pile_up(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    uint64_t most = 0;
    burn_scope_begin();
    burn_tensor *sum = burn_add(x, x);
    for (int k = 0; k < 200; k++) {
        burn_scope_begin();
        CHECK(burn_mul(x, x), 1, 4, 9);
        burn_tensor *next = burn_scope_return(burn_add(sum, burn_sin(x)));
        burn_release(sum);
        sum = next;
        burn_memory memory;
        BURN_INIT(&memory, burn_memory);
        assert_int_equal(burn_memory_report(dev, &memory, NULL), BURN_OK);
        most = k == 20 ? memory.in_use : most;
        /* Of a device that works behind, what is in use depends on when one looks. */
        assert_true(on_mock || k < 20 || memory.in_use <= most + 1024);
    }
    uint64_t before = core_stream()->n_launched;
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    assert_true(core_stream()->n_launched <= before + 4);
    burn_scope_end();
    burn_release(x);
}

typedef struct asked {
    burn_tensor *t;
    int64_t fail_at;
    int32_t rc;
    burn_err err;
    double seen[2];
} asked;

/* In a thread that has nothing to recycle, and that is not even known before. */
static void *ask_in_want(void *argument)
{
    asked *a = argument;
    a->err = (burn_err)BURN_ERR_INIT;
    burni_alloc_fail_after(a->fail_at);
    a->rc = burn_read_f64(a->t, a->seen, 2, &a->err);
    burni_alloc_fail_after(0);
    burn_scope_flush();
    return NULL;
}

/* A call of several results, one of which gets no memory: whoever asks for any is told. */
static void memory_runs_out__where_several_results_are_made(void **state)
{
    (void)state;
    burn_pool_opts opts = {.struct_size = sizeof(opts), .kernel = {2, 2}};
    burn_tensor *x = burn_keep(count_up(dev, 4, DIMS(1, 1, 2, 4), 1.0));
    burn_scope_flush();
    for (int k = 0; k < 12; k++) {
        pthread_t thread;
        asked a = {.fail_at = k};
        double seen[2] = {0, 0};
        burn_tensor *index = NULL;
        burn_scope_begin();
        a.t = burn_max_pool2d(x, &opts, &index);
        assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == 36);
        assert_int_equal(pthread_create(&thread, NULL, ask_in_want, &a), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(a.rc == BURN_OK ? a.seen[0] == 6 && a.seen[1] == 8
                                    : a.rc == BURN_E_NO_MEMORY && a.err.text[0] != '\0');
        int32_t rc = burn_read_f64(index, seen, 2, NULL);
        assert_true(rc == BURN_OK ? seen[0] == 5 && seen[1] == 7 : rc == BURN_E_NO_MEMORY);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
    burn_release(x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(nobody_asks__nothing_runs),
        CORE_TEST(somebody_asks__it_is_as_it_would_have_been),
        CORE_TEST(others_use_it__it_is_made),
        CORE_TEST(variables__may_be_overwritten),
        CORE_TEST(errors__come_when_they_are_asked_for),
        CORE_TEST(another_thread__may_ask),
        CORE_TEST(long_chains__die_and_are_made),
        CORE_TEST(a_sync_or_a_keep__asks),
        CORE_TEST(accumulators__do_not_pile_up),
        CORE_TEST(memory_runs_out__where_several_results_are_made),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
