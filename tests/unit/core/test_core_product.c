/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_product.c - groups that begin with a product: who joins, what must not, and that bits
 * and errors are those of calls that run one by one.
 *
 * Each test runs a step as core_steps.h says. To add one: a step_fn and a call of
 * `same_as_eager`, with the number of calls that should be in groups.
 */
#include "core_steps.h"

#include <burn/plans.h>
#include <burn/replay.h>
#include <string.h>

/* ---- who joins ------------------------------------------------------------------------------- */

/* Another number of rows each round: one plan, and a row of the fused op for each. */
static burn_tensor *layer(int round)
{
    burn_tensor *x = random_of(2, DIMS(5 + round, 33));
    burn_tensor *w = random_of(2, DIMS(33, 17));
    burn_tensor *b = random_of(1, DIMS(17));
    burn_tensor *rest = random_of(2, DIMS(5 + round, 17));
    return burn_add(burn_relu(burn_linear(x, w, b)), rest);
}

static void product__activation_and_residual_join(void **state)
{
    (void)state;
    same_as_eager(layer, 3);
}

/* The residual is made first, and by a group: both become one. */
static burn_tensor *late(int round)
{
    burn_tensor *x = random_of(2, DIMS(6, 9));
    burn_tensor *rest = burn_tanh(burn_neg(random_of(2, DIMS(6, 8))));
    burn_tensor *y = burn_matmul(x, random_of(2, DIMS(9, 8)));
    return burn_sub(burn_mul(rest, burn_scalar(round + 1.0)), y);
}

static void product__is_first_in_a_group_that_began_before(void **state)
{
    (void)state;
    same_as_eager(late, 5);
}

static burn_tensor *transposed(int round)
{
    burn_tensor *x = burn_transpose(random_of(2, DIMS(33, 40)), 0, 1);
    burn_tensor *w = burn_transpose(random_of(3, DIMS(3, 21, 33)), 1, 2);
    burn_tensor *y = burn_matmul(x, w);
    return burn_reshape(burn_mul(burn_abs(y), burn_scalar(0.5 + round)), 1, DIMS(-1));
}

static void product__of_transposed_operands_and_batches(void **state)
{
    (void)state;
    same_as_eager(transposed, 3);
}

static burn_tensor *softmax_by_hand(int round)
{
    int64_t last[1] = {1};
    burn_tensor *y = burn_matmul(random_of(2, DIMS(7 + round, 12)), random_of(2, DIMS(12, 10)));
    burn_tensor *e = burn_exp(burn_sub(y, burn_max(y, 1, last, 1)));
    return burn_div(e, burn_sum(e, 1, last, 1));
}

static void product__rows_of_it_are_reduced(void **state)
{
    (void)state;
    same_as_eager(softmax_by_hand, 6);
}

static burn_tensor *convolution(uint64_t op, burn_tensor *x, burn_tensor *w, burn_tensor *b)
{
    burn_attrs_conv a;
    burn_attrs_init(&a, sizeof(a));
    for (int i = 0; i < 2; i++) {
        a.stride[i] = 1;
        a.dilation[i] = 1;
    }
    a.groups = 1;
    burn_tensor *in[3] = {x, w, b};
    burn_tensor *out = NULL;
    (void)burn_op_call(dev, op, &a, sizeof(a), in, 3, &out, 1);
    return burn_relu(out);
}

static burn_tensor *image(int round)
{
    burn_tensor *x = random_of(4, DIMS(2, 1, 14 + round, 14));
    return convolution(BURN_OP_CONV2D, x, random_of(4, DIMS(3, 1, 5, 5)), random_of(1, DIMS(3)));
}

/* So long that blocks of it go through the rest, and one that is not. */
static burn_tensor *sound(int round)
{
    burn_tensor *x = random_of(3, DIMS(2, 8, round == 0 ? 20 : 180 + round));
    burn_tensor *w = random_of(3, DIMS(3, 8, 17));
    return burn_mul(convolution(BURN_OP_CONV1D, x, w, random_of(1, DIMS(3))), burn_scalar(3.0));
}

static void product__convolution_of_one_dim(void **state)
{
    (void)state;
    same_as_eager(sound, 3);
}

static void product__convolution_and_activation(void **state)
{
    (void)state;
    same_as_eager(image, 2);
}

/* Its own result is needed as well, and one of another dtype is. */
static burn_tensor *kept(int round)
{
    burn_tensor *y = burn_matmul(random_of(2, DIMS(6, 9)), random_of(2, DIMS(9, 9)));
    burn_tensor *mask = burn_greater(y, burn_scalar(0.1 * round));
    burn_tensor *z = burn_matmul(y, burn_where(mask, burn_scalar(1.0), burn_scalar(2.0)));
    (void)z;
    return burn_flip(y, 1, DIMS(0));
}

static void product__its_result_is_needed_by_others(void **state)
{
    (void)state;
    same_as_eager(kept, 0);
}

static burn_tensor *with_its_mask(int round)
{
    burn_tensor *x = random_of(2, DIMS(6, 9));
    burn_tensor *y = burn_matmul(x, random_of(2, DIMS(9, 9)));
    burn_tensor *z = burn_mul(burn_relu(y), burn_scalar(1.0 + round));
    burn_tensor *both[2] = {burn_flip(y, 1, DIMS(0)), burn_flip(z, 1, DIMS(0))};
    return burn_cat(both, 2, 0);
}

static void product__is_given_out_beside_what_follows(void **state)
{
    (void)state;
    same_as_eager(with_its_mask, 3);
}

/* ---- who must not ---------------------------------------------------------------------------- */

/* What its operand is made by joins no group with it, even where a later call reads both. */
static burn_tensor *around(int round)
{
    burn_tensor *x = burn_tanh(random_of(2, DIMS(9, 9)));
    burn_tensor *y = burn_matmul(x, random_of(2, DIMS(9, 9)));
    return burn_add(burn_mul(y, burn_scalar(1.0 + round)), x);
}

static void product__its_operand_is_made_before(void **state)
{
    (void)state;
    same_as_eager(around, 3);
}

/* Something that is no map stands between the product and a later reader. */
static burn_tensor *between(int round)
{
    burn_tensor *y = burn_matmul(random_of(2, DIMS(9, 9)), random_of(2, DIMS(9, 9)));
    burn_tensor *turned = burn_copy(burn_flip(burn_relu(y), 1, DIMS(0)));
    return burn_add(burn_mul(y, burn_scalar(1.0 + round)), turned);
}

static void product__a_reader_waits_for_what_is_between(void **state)
{
    (void)state;
    set_window(window);
    static outcome a;
    static outcome b;
    set_window(1);
    run_step(between, 1, &a);
    set_window(window);
    for (int k = 0; k < 4; k++) {
        run_step(between, 1, &b);
        assert_memory_equal(a.values, b.values, sizeof(a.values));
    }
}

static burn_tensor *two(int round)
{
    burn_tensor *x = random_of(2, DIMS(6, 9));
    burn_tensor *y = burn_matmul(x, random_of(2, DIMS(9, 4)));
    burn_tensor *z = burn_matmul(x, random_of(2, DIMS(9, 4)));
    return burn_add(y, burn_mul(z, burn_scalar(1.0 + round)));
}

static void product__each_group_has_one(void **state)
{
    (void)state;
    same_as_eager(two, 4);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { SIDE = 260 };

/* So large that blocks go through the rest of the group one by one, and are nowhere as a whole. */
static burn_tensor *square(double from)
{
    burn_tensor *t = count_up(dev, 2, DIMS(SIDE, SIDE), from);
    return burn_mul(burn_sin(t), burn_scalar(0.07));
}

/* Layers that add to what they were given. `own`: to what they multiply as well. */
static burn_tensor *layers(burn_tensor *x, burn_tensor *w, int own)
{
    burn_scope_begin();
    for (int k = 0; k < 4; k++) {
        burn_tensor *h = own ? x : burn_tanh(burn_matmul(x, w));
        x = burn_add(burn_matmul(h, w), x);
    }
    return burn_scope_return(burn_copy(burn_slice(x, 1, 0, SIDE, 16)));
}

/* The result of a group lies where an operand was that died, but not where the product still
 * reads. */
static void residual(int own)
{
    set_window(1);
    burn_tensor *x = square(0.3);
    burn_tensor *w = square(0.7);
    burn_tensor *eager = layers(x, w, own);
    burn_plan_totals t;
    set_window(window);
    for (int k = 0; k < 4; k++) {
        burn_scope_begin();
        burn_tensor *y = burn_scope_return(layers(x, w, own));
        (void)burn_sync(dev, NULL);
        check_same(y, eager);
    }
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    if (window != 1 && !on_mock) {
        assert_int_equal(t.last.n_groups, own ? 4 : 8);
        assert_int_equal(t.last.n_reused, own ? 0 : 3);
    }
}

static void product__its_residual_gives_its_memory(void **state)
{
    (void)state;
    residual(0);
}

static void product__what_it_reads_does_not(void **state)
{
    (void)state;
    residual(1);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static burn_tensor *failing(int round)
{
    burn_tensor *zero = burn_sub(burn_cast(VEC(1, 2, 3, 4), BURN_I32), burn_scalar(round + 1.0));
    burn_tensor *x = burn_cast(burn_div(burn_cast(VEC(9, 8, 7, 6), BURN_I32), zero), BURN_F32);
    burn_tensor *y = burn_matmul(burn_reshape(x, 2, DIMS(2, 2)), random_of(2, DIMS(2, 3)));
    return burn_neg(burn_relu(y));
}

static void product__a_failed_operand_says_the_same(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    static outcome eager;
    static outcome waited;
    set_window(1);
    run_step(failing, 1, &eager);
    set_window(window);
    for (int k = 0; k < 4; k++) {
        run_step(failing, 1, &waited);
        assert_int_equal(waited.code, BURN_E_DATA);
        assert_string_equal(waited.text, eager.text);
    }
    (void)burn_sync(dev, &err);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static void product__is_replayed(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *w = random_of(2, DIMS(33, 17));
    burn_tensor *b = random_of(1, DIMS(17));
    burn_tensor *x = random_of(2, DIMS(8, 33));
    (void)burn_sync(dev, NULL);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *y = burn_mul(burn_relu(burn_linear(burn_replay_port(x), w, b)), burn_scalar(3.0));
    burn_replay *step = burn_replay_end(&y, 1, &err);
    assert_non_null(step);
    for (int k = 0; k < 3; k++) {
        burn_tensor *in = random_of(2, DIMS(8, 33));
        burn_tensor *got = NULL;
        assert_int_equal(burn_replay_run(step, &in, 1, &got, 1, &err), BURN_OK);
        check_same(got, burn_mul(burn_relu(burn_linear(in, w, b)), burn_scalar(3.0)));
    }
    uint32_t n_kept = 0;
    uint32_t n_runs = 0;
    burn_replay_size(step, &n_kept, &n_runs);
    assert_int_equal(n_kept, on_mock ? n_kept : 3);
    assert_int_equal(n_runs, on_mock ? n_runs : 1);
    burn_replay_free(step);
    burn_scope_end();
}

/* ---- layouts --------------------------------------------------------------------------------- */

enum { BATCH = 8, ROWS = 128, INNER = 256, WIDTH = 256, ALL = BATCH * ROWS * INNER };

/* x [BATCH, ROWS, INNER] as it is, or as a view of the same numbers whose first two dims lie the
 * other way round. */
static burn_tensor *laid(const float *x, int turned)
{
    static float other[ALL];
    if (!turned) {
        return burn_tensor_from_data(dev, BURN_F32, 3, DIMS(BATCH, ROWS, INNER), x);
    }
    for (int64_t i = 0; i < BATCH * ROWS; i++) {
        int64_t at = i % ROWS * BATCH + i / ROWS;
        memcpy(&other[at * INNER], &x[i * INNER], INNER * sizeof(float));
    }
    burn_tensor *t = burn_tensor_from_data(dev, BURN_F32, 3, DIMS(ROWS, BATCH, INNER), other);
    return burn_transpose(t, 0, 1);
}

static void read_layer(const float *x, int turned, float *out)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *w = random_of(2, DIMS(INNER, WIDTH));
    burn_tensor *b = random_of(1, DIMS(WIDTH));
    burn_tensor *y = burn_relu(burn_linear(laid(x, turned), w, b));
    assert_int_equal(burn_read(y, out, sizeof(float) * BATCH * ROWS * WIDTH, &err), BURN_OK);
}

/* So large that a backend may have a way of its own for it. Both layouts have one prepared call: it
 * is that of the view, which merges no rows, and then of what is dense. */
static void product__a_large_batch_has_the_same_bits_in_any_layout(void **state)
{
    (void)state;
    static float x[ALL];
    static float turned[BATCH * ROWS * WIDTH];
    static float dense[BATCH * ROWS * WIDTH];
    burn_err err = BURN_ERR_INIT;
    burn_tensor *numbers = random_of(3, DIMS(BATCH, ROWS, INNER));
    assert_int_equal(burn_read(numbers, x, sizeof(x), &err), BURN_OK);
    for (int round = 0; round < 3; round++) {
        read_layer(x, 1, turned);
        read_layer(x, 0, dense);
        assert_memory_equal(turned, dense, sizeof(dense));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(product__activation_and_residual_join),
        WINDOW_TEST(product__is_first_in_a_group_that_began_before),
        WINDOW_TEST(product__of_transposed_operands_and_batches),
        WINDOW_TEST(product__rows_of_it_are_reduced),
        WINDOW_TEST(product__convolution_and_activation),
        WINDOW_TEST(product__convolution_of_one_dim),
        WINDOW_TEST(product__its_result_is_needed_by_others),
        WINDOW_TEST(product__is_given_out_beside_what_follows),
        WINDOW_TEST(product__its_operand_is_made_before),
        WINDOW_TEST(product__a_reader_waits_for_what_is_between),
        WINDOW_TEST(product__each_group_has_one),
        WINDOW_TEST(product__its_residual_gives_its_memory),
        WINDOW_TEST(product__what_it_reads_does_not),
        WINDOW_TEST(product__a_failed_operand_says_the_same),
        WINDOW_TEST(product__is_replayed),
        WINDOW_TEST(product__a_large_batch_has_the_same_bits_in_any_layout),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
