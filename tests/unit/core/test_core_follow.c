/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_follow.c - calls that are what the last round did: that they are taken for that, and
 * that what differs (a view's offset, an operand, a scalar, a row, another thread) is seen.
 *
 * Looks inside: which record the stream expects. Expected values are arithmetic by hand. Other
 * windows than auto follow nothing; their values are the same. To add one: a loop of a few rounds
 * whose rounds differ in one thing.
 */
#include "core_test.h"

#include "exec/record.h"

#include <burn/replay.h>
#include <pthread.h>

enum { ROUNDS = 6 };

static burni_stream *my_stream(void)
{
    return burni_thread_current->streams[dev->core->index];
}

static double item_of(burn_tensor *t)
{
    return burn_item(t, NULL);
}

/* The second round makes the records; the third finds them and learns what follows what. */
static void a_loop__takes_the_records_of_its_last_round(void **state)
{
    (void)state;
    uint64_t followed = 0;
    burn_tensor *x = VEC(1, 2, 3);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_add(burn_mul(x, x), x);
        const burni_stream *s = my_stream();
        if (window == 0 && k >= 2) {
            assert_int_equal(s->n_records, 2);
            assert_ptr_equal(s->records[0]->follow, s->records[1]);
            assert_true(k == 2 || s->n_followed == followed + 2);
        }
        followed = s->n_followed;
        CHECK(y, 2, 6, 12);
        burn_scope_end();
    }
}

static void another_offset__is_another_view(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2, 3, 4, 5, 6, 7, 8);
    for (int64_t k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *part = burn_slice(x, 0, k, k + 2, 1);
        burn_tensor *y = burn_mul(burn_add(part, part), burn_scalar(3.0));
        double first = (double)(k + 1);
        CHECK(y, 6.0 * first, 6.0 * (first + 1.0));
        burn_scope_end();
    }
}

static void another_operand__is_another_sequence(void **state)
{
    (void)state;
    burn_tensor *a = VEC(5, 7);
    burn_tensor *b = VEC(1, 2);
    for (int k = 0; k < 2 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *left = burn_sub(a, b);
        burn_tensor *y = k % 3 == 0   ? burn_sub(left, a)
                         : k % 3 == 1 ? burn_sub(a, left)
                                      : burn_sub(left, left);
        if (k % 3 == 0) {
            CHECK(y, -1, -2);
        } else if (k % 3 == 1) {
            CHECK(y, 1, 2);
        } else {
            CHECK(y, 0, 0);
        }
        burn_scope_end();
    }
}

static void scalars_and_sizes__are_those_of_today(void **state)
{
    (void)state;
    for (int k = 1; k <= 2 * ROUNDS; k++) {
        burn_scope_begin();
        int64_t n = k % 4 == 3 ? 5 : 3;
        burn_tensor *x = burn_full(dev, BURN_F32, 1, &n, burn_scalar((double)k));
        burn_tensor *y = burn_sum(burn_add(burn_mul(x, burn_scalar(0.5 * k)), x), 0, NULL, 0);
        assert_true(item_of(y) == (double)n * (0.5 * k * k + k));
        burn_scope_end();
    }
}

/* A plain call is compared with its record before anything else is looked at. In late rounds an
 * operand differs in one thing. */
static void a_plain_call__is_seen_to_be_another(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = count_up(dev, 2, DIMS(2, 3), 1);
    burn_tensor *again = count_up(dev, 2, DIMS(2, 3), 1);
    burn_tensor *turned = count_up(dev, 2, DIMS(3, 2), 1);
    burn_tensor *flat = burn_reshape(x, 1, DIMS(6));
    burn_tensor *whole = burn_cast(x, BURN_I32);
    burn_tensor *leaf = burn_require_grad(ad, x);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    for (int k = 0; k < 6 * ROUNDS; k++) {
        int differs = k >= ROUNDS && k % 3 == 0 ? k / 3 % 6 : -1;
        burn_tensor *in = differs == 1   ? flat
                          : differs == 2 ? whole
                          : differs == 3 ? leaf
                                         : x;
        burn_scope_begin();
        burn_tensor *y = burn_abs(burn_mul(in, in));
        burn_tensor *kept = differs == 4 ? burn_keep(y) : NULL;
        burn_tensor *right = differs == 0   ? turned
                             : differs == 5 ? whole
                             : in == x      ? again
                                            : in;
        burn_tensor *z = burn_add(y, right);
        if (window == 0 && k == ROUNDS - 1) {
            assert_int_not_equal(my_stream()->records[0]->plain[0], 0);
        }
        if (differs == 0) {
            check_failed(z, BURN_E_SHAPE, "add", NULL);
        } else if (differs == 5) {
            check_failed(z, BURN_E_DTYPE, "add", NULL);
        } else {
            check_shape(z, burn_rank(in), differs == 1 ? DIMS(6) : DIMS(2, 3));
            assert_int_equal(burn_dtype_of(z), burn_dtype_of(in));
            CHECK(burn_cast(z, BURN_F32), 2, 6, 12, 20, 30, 42);
        }
        if (differs == 3) {
            burn_grads *grads = burn_backward(burn_sum(z, 0, NULL, 0), NULL, 0, &err);
            assert_non_null(grads);
            CHECK(burn_grads_get(grads, leaf), 3, 5, 7, 9, 11, 13);
            burn_grads_free(grads);
        }
        if (kept != NULL) {
            CHECK(kept, 1, 4, 9, 16, 25, 36);
            burn_release(kept);
        }
        burn_scope_end();
    }
}

/* A storage that dies and one that is made at its address are two. */
static void values_that_come_and_go__have_places_of_their_own(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 1);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_add(x, x);
        burn_release(burn_keep(burn_mul(y, y)));
        burn_tensor *z = burn_add(y, burn_mul(y, x));
        CHECK(burn_add(z, z), 8, 8);
        burn_scope_end();
    }
}

/* ---- another thread -------------------------------------------------------------------------- */

static void *read_it(void *user)
{
    static double value;
    value = burn_item(user, NULL);
    return &value;
}

/* It asks for the stream's lock while the owner goes in and out of it. */
static void another_thread__drains_what_waits(void **state)
{
    (void)state;
    burn_tensor *x = VEC(2);
    for (int k = 0; k < 4 * ROUNDS; k++) {
        pthread_t other;
        void *value = NULL;
        burn_scope_begin();
        burn_tensor *y = burn_mul(burn_add(x, x), x);
        assert_int_equal(pthread_create(&other, NULL, read_it, y), 0);
        burn_tensor *z = x;
        for (int i = 0; i < 20; i++) {
            z = burn_add(z, x);
        }
        assert_int_equal(pthread_join(other, &value), 0);
        assert_true(*(double *)value == 8.0);
        CHECK(burn_add(z, y), 50);
        burn_scope_end();
    }
}

/* ---- replays --------------------------------------------------------------------------------- */

/* The second run on keeps storages; what is handed out is fresh all the same. */
static void a_replay__hands_out_fresh_results(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2);
    burn_tensor *kept[ROUNDS];
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_scope_begin();
    burn_tensor *in = burn_replay_port(x);
    burn_tensor *out = burn_add(burn_relu(burn_mul(in, in)), burn_sum(in, 0, NULL, 1));
    burn_replay *step = burn_replay_end(&out, 1, &err);
    burn_scope_end();
    assert_non_null(step);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *today = VEC(k, k + 1);
        assert_int_equal(burn_replay_run(step, &today, 1, &kept[k], 1, &err), BURN_OK);
        (void)burn_keep(kept[k]);
        burn_scope_end();
    }
    for (int k = 0; k < ROUNDS; k++) {
        CHECK(kept[k], k * k + 2 * k + 1, (k + 1) * (k + 1) + 2 * k + 1);
        burn_release(kept[k]);
    }
    burn_replay_free(step);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_loop__takes_the_records_of_its_last_round),
        CORE_TEST(another_offset__is_another_view),
        CORE_TEST(another_operand__is_another_sequence),
        CORE_TEST(scalars_and_sizes__are_those_of_today),
        CORE_TEST(a_plain_call__is_seen_to_be_another),
        CORE_TEST(values_that_come_and_go__have_places_of_their_own),
        CORE_TEST(another_thread__drains_what_waits),
        CORE_TEST(a_replay__hands_out_fresh_results),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
