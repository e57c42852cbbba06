/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_views.c - views share storage, also of work that has not run; strided operands give the
 * bits that dense copies give.
 */
#include "core_test.h"

#include <math.h>

/* A view is all that is left of its base, and the base had not run when the view was made. */
static void test_a_view_outlives_its_base(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2, 3, 4, 5, 6);
    burn_tensor *base = burn_mul(x, burn_scalar(10.0));
    burn_tensor *m = burn_reshape(base, 2, DIMS(2, 3));
    burn_tensor *t = burn_transpose(m, 0, 1);
    burn_release(base);
    burn_release(m);
    burn_tensor *other = burn_mul(x, burn_scalar(-1.0)); /* would take freed memory */
    CHECK(t, 10, 40, 20, 50, 30, 60);
    CHECK(other, -1, -2, -3, -4, -5, -6);
}

static void test_a_view_of_a_view(void **state)
{
    (void)state;
    burn_tensor *x = count_up(dev, 3, DIMS(2, 3, 4), 0);
    burn_tensor *a = burn_slice(x, 2, 1, BURN_SLICE_NONE, 2);
    burn_tensor *b = burn_flip(burn_permute(a, 3, DIMS(2, 0, 1)), 1, DIMS(2));
    burn_release(a);
    burn_release(x);
    CHECK(b, 9, 5, 1, 21, 17, 13, 11, 7, 3, 23, 19, 15);
    CHECK(burn_slice(b, 0, 1, 2, 1), 11, 7, 3, 23, 19, 15);
    CHECK(burn_unfold(VEC(1, 2, 3, 4), 0, 2, 1), 1, 2, 2, 3, 3, 4);
    CHECK(burn_expand_to(VEC(1, 2), 2, DIMS(2, 2)), 1, 2, 1, 2);
}

/* Truth is stored as 1, whatever bytes the caller had and whatever an op makes of it. */
static void test_B011_bools_are_stored_as_0_or_1(void **state)
{
    (void)state;
    static const unsigned char given[] = {255, 0, 1, 2, 128, 0};
    static const unsigned char wanted[] = {1, 0, 1, 1, 1, 0};
    burn_tensor *b = burn_tensor_from_data(dev, BURN_BOOL, 1, DIMS(6), given);
    burn_tensor *x = VEC(0.5F, 0, -3, (float)NAN, 1e-45F, -0.0F);
    burn_tensor *yes = burn_less_equal(VEC(1, 2, 3, 4, 5, 6), VEC(1, 2, 3, 4, 5, 6));
    burn_tensor *const same[] = {
        b,
        burn_copy(b),
        burn_flip(burn_copy(burn_flip(b, 1, DIMS(0))), 1, DIMS(0)),
        burn_cast(x, BURN_BOOL),
        burn_cast(burn_cast(b, BURN_I32), BURN_BOOL),
        burn_logical_not(burn_logical_not(b)),
        burn_logical_and(b, yes),
        burn_equal(b, yes),
        burn_where(b, yes, burn_logical_not(yes)),
        burn_select(b, index_vec(6, DIMS(0, 1, 2, 3, 4, 5)), 0),
        burn_reshape(burn_any(burn_reshape(b, 2, DIMS(6, 1)), 1, DIMS(1), 0), 1, DIMS(6)),
    };
    for (size_t i = 0; i < COUNT(same); i++) {
        unsigned char got[6] = {7, 7, 7, 7, 7, 7};
        burn_err err = BURN_ERR_INIT;
        if (burn_read(burn_copy(same[i]), got, sizeof(got), &err) != BURN_OK) {
            fail_msg("result %zu: %s", i, err.text);
        }
        assert_memory_equal(got, wanted, sizeof(wanted));
    }
    CHECK(burn_all(yes, 0, NULL, 0), 1);
    CHECK(burn_all(b, 0, NULL, 0), 0);
    CHECK(burn_any(VEC(-0.0F), 0, NULL, 0), 0);
    CHECK(burn_any(VEC(1e-45F), 0, NULL, 0), 1);
    CHECK(burn_any(VEC((float)NAN), 0, NULL, 0), 1);
}

static burn_tensor *with_ones(burn_tensor *x, size_t n, const int64_t *axes)
{
    for (size_t i = 0; i < n; i++) {
        x = burn_unsqueeze(x, axes[i]);
    }
    return x;
}

/* Axes count in the result, negative ones from its end; the same axis again puts one more there. */
static void test_B028_unsqueeze_again_and_negative(void **state)
{
    (void)state;
    burn_tensor *x = count_up(dev, 3, DIMS(3, 4, 5), 0);
    burn_tensor *five = VEC(1, 2, 3, 4, 5);
    check_shape(with_ones(VEC(1, 2, 3, 4), 3, DIMS(-1, 0, 0)), 4, DIMS(1, 1, 4, 1));
    check_shape(with_ones(five, 2, DIMS(0, 0)), 3, DIMS(1, 1, 5));
    check_shape(with_ones(five, 3, DIMS(1, 1, 1)), 4, DIMS(5, 1, 1, 1));
    check_shape(with_ones(x, 3, DIMS(0, -1, -1)), 6, DIMS(1, 3, 4, 5, 1, 1));
    check_shape(with_ones(x, 1, DIMS(-4)), 4, DIMS(1, 3, 4, 5));
    check_shape(with_ones(x, 1, DIMS(-2)), 4, DIMS(3, 4, 1, 5));
    check_shape(with_ones(burn_zeros(dev, BURN_F32, 0, NULL), 8, DIMS(0, -1, 0, -1, 0, 0, 0, 0)), 8,
                DIMS(1, 1, 1, 1, 1, 1, 1, 1));
    CHECK(with_ones(five, 2, DIMS(1, 0)), 1, 2, 3, 4, 5);
    check_failed(burn_unsqueeze(VEC(1, 2, 3, 4), 2), BURN_E_INVALID, "unsqueeze", "axis 2",
                 "rank 1", "-2..1", NULL);
    check_failed(burn_unsqueeze(x, -5), BURN_E_INVALID, "unsqueeze", "axis -5", "-4..3", NULL);
    check_failed(burn_unsqueeze(x, INT64_MIN), BURN_E_INVALID, "unsqueeze", NULL);
    check_failed(with_ones(x, 6, DIMS(0, 0, 0, 0, 0, 0)), BURN_E_INVALID, "unsqueeze", "8 dims",
                 NULL);
    burn_tensor *again = burn_squeeze(burn_squeeze(with_ones(five, 2, DIMS(0, -1)), 2), 0);
    check_same(again, five);
}

/* Reshaping what cannot be viewed copies; the copy is no more than that. */
static void test_reshape_of_a_transpose(void **state)
{
    (void)state;
    burn_tensor *x = burn_require_grad(ad, mat(2, 3, (const float[]){1, 2, 3, 4, 5, 6}));
    burn_tensor *y = burn_reshape(burn_transpose(x, 0, 1), 1, DIMS(6));
    CHECK(y, 1, 4, 2, 5, 3, 6);
    burn_grads *grads = burn_backward(burn_mul(y, VEC(1, 2, 3, 4, 5, 6)), NULL, 0, NULL);
    assert_non_null(grads);
    CHECK(burn_grads_get(grads, x), 1, 3, 5, 2, 4, 6);
    burn_grads_free(grads);
}

/* Views keep storage alive, not more: when they go, its memory goes. */
static void test_views_release_storage(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_scope_begin();
    burn_tensor *v = burn_keep(burn_slice(burn_exp(VEC(0, 0, 0)), 0, 1, 2, 1));
    burn_scope_end();
    CHECK(v, 1);
    assert_true(in_use() > before);
    burn_release(v);
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

/* An operand that others can still see is never overwritten, moved or not. */
static void test_in_place_guard(void **state)
{
    (void)state;
    burn_tensor *x = burn_add(VEC(1, 2, 3, 4), burn_scalar(0.0));
    burn_tensor *view = burn_slice(x, 0, 1, 3, 1);
    burn_tensor *y = burn_neg(burn_move(x));
    CHECK(view, 2, 3);
    CHECK(y, -1, -2, -3, -4);
    burn_tensor *a = burn_add(VEC(1, 2), burn_scalar(1.0));
    burn_tensor *b = burn_mul(a, a);
    burn_tensor *c = burn_exp(burn_sub(a, a));
    burn_release(a);
    CHECK(b, 4, 9);
    CHECK(c, 1, 1);
    burn_tensor *d = burn_add(VEC(1, 2), burn_scalar(1.0));
    burn_tensor *e = burn_mul(burn_move(d), d);
    CHECK(e, 4, 9);
}

/* A broadcast operand's memory is too small, or read again: it is no place for the result. */
static void test_in_place_guard_of_broadcasts(void **state)
{
    (void)state;
    burn_tensor *row = burn_add(VEC(1, 2, 3), burn_scalar(0.0));
    burn_tensor *y = burn_add(burn_move(row), mat(2, 3, (const float[]){10, 20, 30, 40, 50, 60}));
    CHECK(y, 11, 22, 33, 41, 52, 63);
    burn_tensor *t = burn_add(mat(2, 2, (const float[]){1, 2, 3, 4}), burn_scalar(0.0));
    burn_tensor *tt = burn_transpose(t, 0, 1);
    burn_release(t);
    burn_tensor *z = burn_mul(burn_move(tt), mat(2, 2, (const float[]){1, 1, 1, 2}));
    CHECK(z, 1, 3, 2, 8);
}

/* ---- strided operands ---------------------------------------------------------------------- */

static void test_B040_reductions_of_a_transpose(void **state)
{
    (void)state;
    burn_tensor *x = burn_transpose(mat(2, 3, (const float[]){1, 2, 3, 4, 5, 6}), 0, 1);
    CHECK(burn_sum(x, 1, DIMS(-1), 0), 5, 7, 9);
    CHECK(burn_mean(x, 1, DIMS(-1), 0), 2.5, 3.5, 4.5);
    CHECK(burn_max(x, 1, DIMS(-1), 0), 4, 5, 6);
    CHECK(burn_argmax(x, 0, 0), 2, 2);
    if (!on_mock) {
        CHECK(burn_prod(x, 1, DIMS(-1), 0), 4, 10, 18);
    }
}

static void test_B042_cumsum_of_a_transpose(void **state)
{
    (void)state;
    if (on_mock) {
        return; /* has no cumsum: not a minimal op */
    }
    burn_tensor *x = burn_transpose(mat(2, 2, (const float[]){1, 2, 3, 4}), 0, 1);
    CHECK(burn_cumsum(x, 1), 1, 4, 2, 6);
    CHECK(burn_cumsum(x, -1), 1, 4, 2, 6);
    check_failed(burn_cumsum(x, -3), BURN_E_INVALID, "cumsum", NULL);
}

typedef burn_tensor *(*unary_fn)(burn_tensor *x);

static burn_tensor *softmax1(burn_tensor *x)
{
    return burn_softmax(x, 1);
}

static burn_tensor *sum1(burn_tensor *x)
{
    /* Sums may be split otherwise for another layout: small integers have one sum only. */
    return burn_sum(burn_floor(burn_mul(x, burn_scalar(100.0))), 1, DIMS(1), 1);
}

static burn_tensor *with_itself(burn_tensor *x)
{
    return burn_add(burn_mul(x, x), burn_exp(x));
}

static burn_tensor *norm(burn_tensor *x)
{
    return burn_layer_norm(x, NULL, NULL, 1, 1e-5);
}

static burn_tensor *product(burn_tensor *x)
{
    return burn_matmul(x, burn_transpose(x, -1, -2));
}

static burn_tensor *chosen(burn_tensor *x)
{
    return burn_where(burn_greater(x, burn_scalar(0.0)), x, burn_neg(x));
}

static burn_tensor *cast_f64(burn_tensor *x)
{
    return burn_cast(x, BURN_F64);
}

static burn_tensor *taken(burn_tensor *x)
{
    return burn_select(x, index_vec(3, DIMS(1, 0, 1)), 1);
}

static burn_tensor *joined(burn_tensor *x)
{
    burn_tensor *const xs[] = {x, x};
    return burn_cat(xs, 2, 1);
}

static burn_tensor *padded(burn_tensor *x)
{
    return burn_pad(x, DIMS(0, 1, 1, 0), DIMS(1, 0, 0, 1), burn_scalar(3.0));
}

/* The views of a [2,3,4,4] block that are used as inputs. */
static burn_tensor *strided(uint32_t kind)
{
    burn_tensor *x = burn_sin(count_up(dev, 4, DIMS(2, 3, 4, 4), -40));
    switch (kind) {
    case 0:
        return burn_permute(burn_reshape(x, 4, DIMS(2, 4, 4, 3)), 4, DIMS(0, 3, 1, 2));
    case 1:
        return burn_flip(x, 2, DIMS(1, 3));
    case 2:
        return burn_slice(burn_slice(x, 3, 0, 4, 2), 1, 2, BURN_SLICE_NONE, -1);
    case 3:
        return burn_expand_to(burn_slice(x, 1, 1, 2, 1), 4, DIMS(2, 3, 4, 4));
    case 4:
        return burn_transpose(x, 2, 3);
    default:
        return burn_expand_to(burn_slice(burn_slice(x, 2, 0, 1, 1), 3, 1, 2, 1), 4,
                              DIMS(2, 3, 4, 4));
    }
}

static void test_strided_inputs_give_the_bits_of_dense_ones(void **state)
{
    (void)state;
    const unary_fn fns[] = {burn_neg, burn_relu, softmax1, sum1,   with_itself, norm,     product,
                            chosen,   cast_f64,  taken,    joined, padded,      burn_copy};
    for (uint32_t kind = 0; kind < 6; kind++) {
        for (size_t f = 0; f < COUNT(fns); f++) {
            burn_scope_begin();
            burn_tensor *x = strided(kind);
            check_same(fns[f](x), fns[f](burn_copy(x)));
            burn_scope_end();
        }
    }
}

static void test_B044_convolution_of_a_permuted_input(void **state)
{
    (void)state;
    burn_tensor *x =
        burn_permute(burn_sin(count_up(dev, 4, DIMS(1, 3, 3, 3), 0)), 4, DIMS(0, 3, 1, 2));
    burn_tensor *w = burn_cos(count_up(dev, 4, DIMS(2, 3, 3, 3), 0));
    burn_conv_opts opts = {.struct_size = sizeof(opts), .padding = {1, 1}};
    check_same(burn_conv2d(x, w, NULL, &opts), burn_conv2d(burn_copy(x), w, NULL, &opts));
    burn_tensor *wt =
        burn_permute(burn_cos(count_up(dev, 4, DIMS(3, 3, 3, 2), 0)), 4, DIMS(3, 2, 0, 1));
    check_same(burn_conv2d(x, wt, NULL, &opts),
               burn_conv2d(burn_copy(x), burn_copy(wt), NULL, &opts));
    burn_tensor *flat =
        burn_permute(burn_sin(count_up(dev, 4, DIMS(1, 1, 1, 672), 0)), 4, DIMS(0, 3, 1, 2));
    burn_tensor *weight = burn_require_grad(ad, burn_cos(count_up(dev, 4, DIMS(2, 672, 1, 1), 0)));
    burn_grads *a = burn_backward(burn_conv2d(flat, weight, NULL, NULL), NULL, 0, NULL);
    burn_grads *b = burn_backward(burn_conv2d(burn_copy(flat), weight, NULL, NULL), NULL, 0, NULL);
    assert_non_null(a);
    assert_non_null(b);
    check_same(burn_grads_get(a, weight), burn_grads_get(b, weight));
    burn_grads_free(a);
    burn_grads_free(b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_view_outlives_its_base),
        CORE_TEST(test_a_view_of_a_view),
        CORE_TEST(test_B011_bools_are_stored_as_0_or_1),
        CORE_TEST(test_B028_unsqueeze_again_and_negative),
        CORE_TEST(test_reshape_of_a_transpose),
        CORE_TEST(test_views_release_storage),
        CORE_TEST(test_in_place_guard),
        CORE_TEST(test_in_place_guard_of_broadcasts),
        CORE_TEST(test_B040_reductions_of_a_transpose),
        CORE_TEST(test_B042_cumsum_of_a_transpose),
        CORE_TEST(test_strided_inputs_give_the_bits_of_dense_ones),
        CORE_TEST(test_B044_convolution_of_a_permuted_input),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
