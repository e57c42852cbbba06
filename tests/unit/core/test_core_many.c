/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_many.c - more rows than a launch grid's 65,535, and sums that take many places.
 *
 * A backend that cuts its work into blocks counts them in a number that may be too small, and then
 * leaves rows out (B050). Row i is told apart from its neighbours by its values, the last rows are
 * looked at one by one. Also here: that adding to one place is the same in each run (B048), which
 * needs as many values.
 */
#include "core_test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 70000 };

static const int64_t counts[] = {65535, 65536, ROWS};

/* [n,3]: row i is (i, i + 1, i + 2) mod 1000, so that neighbours differ. */
static burn_tensor *rows_of(int64_t n)
{
    float *values = malloc(sizeof(*values) * (size_t)n * 3);
    assert_non_null(values);
    for (int64_t i = 0; i < n * 3; i++) {
        values[i] = (float)((i / 3 + i % 3) % 1000);
    }
    burn_tensor *t = burn_tensor_from_data(dev, BURN_F32, 2, DIMS(n, 3), values);
    free(values);
    return t;
}

static burn_tensor *exp_of(burn_tensor *x)
{
    return burn_exp(burn_mul(x, burn_scalar(-0.01)));
}

static burn_tensor *doubled(burn_tensor *x)
{
    return burn_add(x, x);
}

static burn_tensor *softmax_of(burn_tensor *x)
{
    return burn_softmax(x, 1);
}

static burn_tensor *sum_of(burn_tensor *x)
{
    return burn_sum(x, 1, DIMS(1), 1);
}

static burn_tensor *max_of(burn_tensor *x)
{
    return burn_max(x, 1, DIMS(1), 1);
}

static burn_tensor *argmax_of(burn_tensor *x)
{
    return burn_argmax(x, 1, 1);
}

static burn_tensor *norm_of(burn_tensor *x)
{
    return burn_layer_norm(x, NULL, NULL, 1, 1e-5);
}

static burn_tensor *taken(burn_tensor *x)
{
    return burn_select(x, index_vec(2, DIMS(2, 0)), 1);
}

static burn_tensor *gathered(burn_tensor *x)
{
    burn_tensor *at = burn_expand_to(index_vec(2, DIMS(2, 1)), 2, DIMS(burn_dim(x, 0), 2));
    return burn_gather(x, at, 1);
}

static burn_tensor *copied(burn_tensor *x)
{
    return burn_copy(burn_flip(x, 1, DIMS(1)));
}

static burn_tensor *turned(burn_tensor *x)
{
    return burn_transpose(burn_copy(burn_transpose(x, 0, 1)), 0, 1);
}

static burn_tensor *product(burn_tensor *x)
{
    return burn_matmul(x, mat(3, 2, (const float[]){1, 0, 2, 1, 0, 3}));
}

/* Each op on all rows gives, at both ends and around 2^16, what it gives on those rows alone. */
static void test_B050_more_rows_than_a_grid_has(void **state)
{
    (void)state;
    burn_tensor *(*const ops[])(burn_tensor *) = {
        exp_of, doubled,  softmax_of, sum_of, max_of,  argmax_of,
        taken,  gathered, copied,     turned, norm_of, product,
    };
    for (size_t c = 0; c < COUNT(counts); c++) {
        burn_tensor *x = rows_of(counts[c]);
        const int64_t starts[] = {0, 65500, counts[c] - 8};
        for (size_t f = 0; f < COUNT(ops); f++) {
            burn_scope_begin();
            burn_tensor *all = ops[f](x);
            assert_int_equal(burn_dim(all, 0), counts[c]);
            for (size_t s = 0; s < COUNT(starts); s++) {
                int64_t end = starts[s] + 8;
                burn_tensor *few = ops[f](burn_copy(burn_slice(x, 0, starts[s], end, 1)));
                check_same(burn_copy(burn_slice(all, 0, starts[s], end, 1)), burn_copy(few));
            }
            burn_scope_end();
        }
    }
}

/* The last row by hand: 69,999 mod 1000 is 999, then 0 and 1. */
static void test_B050_the_last_row(void **state)
{
    (void)state;
    burn_tensor *x = rows_of(ROWS);
    burn_tensor *sums = burn_sum(x, 1, DIMS(1), 0);
    CHECK(burn_slice(sums, 0, ROWS - 2, ROWS, 1), 998 + 999 + 0, 999 + 0 + 1);
    burn_tensor *where = burn_argmax(x, 1, 0);
    CHECK(burn_slice(where, 0, ROWS - 2, ROWS, 1), 1, 0);
    CHECK(burn_slice(burn_add(x, burn_scalar(0.5)), 0, ROWS - 1, ROWS, 1), 999.5, 0.5, 1.5);
    burn_tensor *down = burn_max(burn_slice(x, 1, 0, 1, 1), 1, DIMS(0), 0);
    CHECK(down, 999);
}

/* Float sums depend on their order: the same bits each time, whatever the threads do. */
static void test_B048_adding_to_one_place_is_the_same_each_time(void **state)
{
    (void)state;
    enum { N = 20000 };
    const int runs = on_mock ? 10 : 100;
    int64_t *at = malloc(sizeof(*at) * N);
    assert_non_null(at);
    for (int64_t i = 0; i < N; i++) {
        at[i] = i * 7919 % 5;
    }
    burn_tensor *index = burn_tensor_from_data(dev, BURN_I64, 1, DIMS(N), at);
    free(at);
    burn_tensor *values = burn_sin(count_up(dev, 1, DIMS(N), 0));
    burn_tensor *zero = burn_zeros(dev, BURN_F32, 1, DIMS(5));
    burn_tensor *first = burn_scatter(zero, index, values, 0, BURN_SCATTER_ADD);
    for (int i = 0; i < runs; i++) {
        burn_scope_begin();
        check_same(burn_scatter(zero, index, values, 0, BURN_SCATTER_ADD), first);
        burn_scope_end();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B050_more_rows_than_a_grid_has),
        CORE_TEST(test_B050_the_last_row),
        CORE_TEST(test_B048_adding_to_one_place_is_the_same_each_time),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
