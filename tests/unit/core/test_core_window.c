/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_window.c - what waits, what is dropped, and that waiting changes no bit.
 *
 * Looks inside: the stream of the calling thread, its records and counters. Programs are run with
 * both windows on the same device by changing the stream's window between two runs.
 */
#include "core_test.h"

#include "exec/stream.h"

/* Six temporaries of seven are dead when the layer's scope ends; one record runs. */
static void test_dead_records_are_dropped(void **state)
{
    (void)state;
    set_window(64);
    burn_tensor *x = VEC(1, 2, 3);
    burni_stream *s = core_stream();
    uint64_t dropped = s->n_dropped;
    uint64_t launched = s->n_launched;
    burn_scope_begin();
    for (int i = 0; i < 6; i++) {
        (void)burn_add(x, x);
    }
    burn_tensor *y = burn_scope_return(burn_mul(x, x));
    assert_int_equal(s->n_records, 7);
    CHECK(y, 1, 4, 9);
    assert_int_equal(s->n_records, 0);
    assert_int_equal(s->n_dropped - dropped, 6);
    assert_int_equal(s->n_launched - launched, 1);
}

/* What only dead records need is dead as well. */
static void test_dead_chains_are_dropped(void **state)
{
    (void)state;
    set_window(64);
    burni_stream *s = core_stream();
    burn_tensor *x = VEC(1, 2, 3);
    uint64_t dropped = s->n_dropped;
    burn_scope_begin();
    burn_tensor *t = x;
    for (int i = 0; i < 10; i++) {
        t = burn_add(t, t);
    }
    burn_scope_end();
    CHECK(burn_sub(x, x), 0, 0, 0);
    assert_int_equal(s->n_dropped - dropped, 10);
}

static void test_scope_end_runs_nothing(void **state)
{
    (void)state;
    set_window(64);
    burni_stream *s = core_stream();
    burn_tensor *x = VEC(1, 2, 3);
    uint64_t launched = s->n_launched;
    burn_scope_begin();
    burn_tensor *y = burn_scope_return(burn_add(x, x));
    assert_int_equal(s->n_launched, launched);
    CHECK(y, 2, 4, 6);
    assert_int_equal(s->n_launched, launched + 1);
}

static void test_a_full_window_runs_its_older_half(void **state)
{
    (void)state;
    set_window(8);
    burni_stream *s = core_stream();
    burn_tensor *x = VEC(1, 2, 3);
    for (int i = 0; i < 8; i++) {
        x = burn_add(x, x);
    }
    assert_int_equal(s->n_records, 8);
    x = burn_add(x, x);
    assert_in_range(s->n_records, 1, 5);
    CHECK(x, 512, 1024, 1536);
}

static void test_window_one_keeps_nothing(void **state)
{
    (void)state;
    set_window(1);
    burni_stream *s = core_stream();
    uint64_t launched = s->n_launched;
    burn_tensor *x = VEC(1, 2, 3);
    (void)burn_add(x, x);
    assert_int_equal(s->n_records, 0);
    assert_int_equal(s->n_launched, launched + 1);
}

/* Effects are not dropped, however dead their outputs look. */
static void test_effects_are_not_dropped(void **state)
{
    (void)state;
    set_window(64);
    burn_var *v = burn_var_create(dev, VEC(1, 2), NULL);
    assert_non_null(v);
    for (int i = 0; i < 5; i++) {
        burn_scope_begin();
        assert_int_equal(burn_var_assign(v, burn_mul(burn_var_get(v), burn_scalar(2.0)), NULL),
                         BURN_OK);
        burn_scope_end();
    }
    CHECK(burn_var_get(v), 32, 64);
    burn_var_release(v);
}

/* ---- a random program with both windows ------------------------------------------------------ */

enum { POOL = 12, STEPS = 300 };

/* Tensors are [3,4]; each step replaces one of the pool by an op of others. */
static burn_tensor *step(burn_tensor *const *pool, uint64_t *random)
{
    burn_tensor *a = pool[next_random(random) % POOL];
    burn_tensor *b = pool[next_random(random) % POOL];
    const int64_t dims[2] = {3, 4};
    switch (next_random(random) % 16) {
    case 0:
        return burn_add(a, b);
    case 1:
        return burn_mul(a, burn_tanh(b));
    case 2:
        return burn_sub(a, burn_sum(b, 1, DIMS(1), 1));
    case 3:
        return burn_maximum(a, burn_scalar(0.25));
    case 4:
        return burn_softmax(a, 1);
    case 5:
        return burn_reshape(burn_transpose(a, 0, 1), 2, dims);
    case 6:
        return burn_flip(a, 1, DIMS(1));
    case 7:
        return burn_matmul(burn_matmul(a, burn_transpose(b, 0, 1)), burn_tanh(a));
    case 8:
        return burn_where(burn_less(a, b), b, burn_scalar(-1.0));
    case 9:
        return burn_add(burn_slice(a, 0, 1, 2, 1), b);
    case 10:
        return burn_expand_to(burn_mean(a, 1, DIMS(0), 1), 2, dims);
    case 11:
        return burn_sin(burn_random_uniform(dev, BURN_F32, 2, dims));
    case 12: {
        burn_tensor *const xs[] = {burn_slice(a, 0, 0, 1, 1), burn_slice(b, 0, 1, 3, 1)};
        return burn_cat(xs, 2, 0);
    }
    case 13:
        return burn_select(burn_tanh(a), index_vec(3, DIMS(2, 0, 1)), 0);
    case 14:
        return burn_slice_assign(a, burn_slice(b, 1, 0, 2, 1), 1, 2, 1);
    default:
        return burn_tanh(burn_move(burn_add(a, b)));
    }
}

static burn_tensor *run_program(uint64_t seed)
{
    burn_tensor *pool[POOL];
    uint64_t random = seed;
    burn_seed(seed);
    burn_scope_begin();
    for (uint32_t i = 0; i < POOL; i++) {
        pool[i] = burn_keep(burn_sin(count_up(dev, 2, DIMS(3, 4), i)));
    }
    for (int k = 0; k < STEPS; k++) {
        burn_scope_begin();
        uint32_t at = next_random(&random) % POOL;
        burn_tensor *made = burn_keep(step(pool, &random));
        burn_release(pool[at]);
        pool[at] = made;
        if (next_random(&random) % 40 == 0) {
            double first[12];
            assert_int_equal(burn_read_f64(made, first, 12, NULL), BURN_OK);
        }
        burn_scope_end();
    }
    burn_tensor *all = burn_stack(pool, POOL, 0);
    for (uint32_t i = 0; i < POOL; i++) {
        burn_release(pool[i]);
    }
    return burn_scope_return(all);
}

static void test_B252_windows_give_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        burn_scope_begin();
        set_window(1);
        burn_tensor *eager = run_program(seed);
        set_window(64);
        burn_tensor *lazy = run_program(seed);
        check_same(eager, lazy);
        set_window(7);
        check_same(eager, run_program(seed));
        burn_scope_end();
        check_clean();
    }
}

/* Two views that were one in the rounds before: a plan must not take them for one. */
static void test_views_of_other_places(void **state)
{
    (void)state;
    const int64_t at[5][2] = {{1, 1}, {1, 1}, {1, 1}, {0, 2}, {2, 0}};
    burn_tensor *x = burn_keep(VEC(1, 2, 3, 4, 5));
    for (int k = 0; k < 5; k++) {
        burn_scope_begin();
        burn_tensor *a = burn_slice(x, 0, at[k][0], at[k][0] + 3, 1);
        burn_tensor *b = burn_slice(x, 0, at[k][1], at[k][1] + 3, 1);
        burn_tensor *y = burn_add(burn_mul(a, burn_scalar(10)), burn_mul(b, burn_scalar(100)));
        double first = 10.0 * (double)(at[k][0] + 1) + 100.0 * (double)(at[k][1] + 1);
        CHECK(y, first, first + 110, first + 220);
        burn_scope_end();
    }
    burn_release(x);
}

/* The first 4 x 4 of x in rows of that width. */
static burn_tensor *corner(burn_tensor *x, int64_t width)
{
    burn_tensor *rows = burn_reshape(x, 2, DIMS(64 / width, width));
    return burn_slice(burn_slice(rows, 0, 0, 4, 1), 1, 0, 4, 1);
}

/* The same for views of one shape, from one place on, that step differently. */
static void test_views_of_other_steps(void **state)
{
    (void)state;
    const int64_t width[6][2] = {{8, 16}, {8, 16}, {8, 8}, {8, 8}, {16, 8}, {16, 16}};
    burn_tensor *x = burn_keep(count_up(dev, 1, DIMS(64), 0));
    for (int k = 0; k < 6; k++) {
        double seen[16];
        burn_scope_begin();
        burn_tensor *a = corner(x, width[k][0]);
        burn_tensor *b = corner(x, width[k][1]);
        burn_tensor *y = burn_add(burn_mul(a, burn_scalar(10)), burn_mul(b, burn_scalar(100)));
        assert_int_equal(burn_read_f64(y, seen, 16, NULL), BURN_OK);
        for (int i = 0; i < 16; i++) {
            double left = (double)(width[k][0] * (i / 4) + i % 4);
            double right = (double)(width[k][1] * (i / 4) + i % 4);
            assert_true(seen[i] == 10.0 * left + 100.0 * right);
        }
        burn_scope_end();
    }
    burn_release(x);
}

/* A pass that may overwrite x also reads the first row of x once per row. */
static void test_rows_of_what_is_overwritten(void **state)
{
    (void)state;
    enum { N = 128 };
    static float seen[5][N * N];
    burn_tensor *start = burn_keep(burn_random_normal(dev, BURN_F32, 2, DIMS(N, N)));
    for (int k = 0; k < 5; k++) {
        burn_scope_begin();
        burn_scope_begin();
        burn_tensor *x = burn_keep(burn_matmul(start, start));
        burn_tensor *column = burn_reshape(burn_slice(x, 0, 0, 1, 1), 2, DIMS(N, 1));
        burn_tensor *shift = burn_add(burn_mean(x, 1, DIMS(1), 1), column);
        burn_tensor *y = burn_scope_return(burn_sub(x, shift));
        if (k > 0) {
            burn_release(x); /* in round 0 it is kept, so nothing may be overwritten */
        }
        assert_int_equal(burn_read(y, seen[k], sizeof(seen[k]), NULL), BURN_OK);
        if (k == 0) {
            burn_release(x);
        }
        burn_scope_end();
        assert_memory_equal(seen[k], seen[0], sizeof(seen[0]));
    }
    burn_release(start);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(test_dead_records_are_dropped),
        WINDOW_TEST(test_dead_chains_are_dropped),
        WINDOW_TEST(test_scope_end_runs_nothing),
        WINDOW_TEST(test_a_full_window_runs_its_older_half),
        WINDOW_TEST(test_window_one_keeps_nothing),
        WINDOW_TEST(test_effects_are_not_dropped),
        WINDOW_TEST(test_B252_windows_give_the_same_bits),
        WINDOW_TEST(test_views_of_other_places),
        WINDOW_TEST(test_views_of_other_steps),
        WINDOW_TEST(test_rows_of_what_is_overwritten),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
