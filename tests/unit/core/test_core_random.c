/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_random.c - the generator: the same seed gives the same numbers, on the other backend
 * too (B224); ranges of counters are reserved by the caller and never overlap.
 */
#include "core_test.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static burn_device *other(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(on_mock ? "flex" : "mock:0", &err);
    if (device == NULL) {
        fail_msg("%s", err.text);
    }
    return device;
}

static void draw(burn_device *device, double *out)
{
    burn_seed(42);
    burn_tensor *u = burn_random_uniform(device, BURN_F32, 1, DIMS(7));
    burn_tensor *d = burn_random_uniform(device, BURN_F64, 1, DIMS(3));
    burn_tensor *b = burn_bernoulli(device, BURN_F32, 1, DIMS(5), 0.5);
    burn_tensor *last = burn_random_uniform(device, BURN_F32, 1, DIMS(1));
    assert_int_equal(burn_read_f64(u, out, 7, NULL), BURN_OK);
    assert_int_equal(burn_read_f64(d, out + 7, 3, NULL), BURN_OK);
    assert_int_equal(burn_read_f64(b, out + 10, 5, NULL), BURN_OK);
    assert_int_equal(burn_read_f64(last, out + 15, 1, NULL), BURN_OK);
}

static void test_B224_the_same_seed(void **state)
{
    (void)state;
    double a[16];
    double b[16];
    double c[16];
    draw(dev, a);
    draw(dev, b);
    draw(other(), c);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_equal(a, c, sizeof(a));
    for (int i = 0; i < 16; i++) {
        assert_true(a[i] >= 0 && (a[i] < 1 || i >= 10));
    }
    burn_seed(43);
    assert_true(burn_item(burn_random_uniform(dev, BURN_F32, 1, DIMS(1)), NULL) != a[0]);
}

/* Philox4x32-10, key and counter 0, as published: 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
static void test_known_bits(void **state)
{
    (void)state;
    burn_seed(0);
    const double scale = 1.0 / 16777216.0;
    CHECK(burn_random_uniform(dev, BURN_F32, 1, DIMS(4)), 0x6627e8 * scale, 0xe169c5 * scale,
          0xbc57ac * scale, 0x9b00db * scale);
}

static void test_B224_normals_agree(void **state)
{
    (void)state;
    double a[64];
    double b[64];
    burn_seed(5);
    assert_int_equal(burn_read_f64(burn_random_normal(dev, BURN_F32, 1, DIMS(64)), a, 64, NULL),
                     BURN_OK);
    burn_seed(5);
    assert_int_equal(burn_read_f64(burn_random_normal(other(), BURN_F32, 1, DIMS(64)), b, 64, NULL),
                     BURN_OK);
    for (int i = 0; i < 64; i++) {
        /* Two kernels agree to 2 ulp; the decomposition rounds 2 pi u to f32 first, which moves a
         * cosine by up to 3e-7 and the normal by up to five times that. */
        if (fabs(a[i] - b[i]) > 2e-6) {
            fail_msg("normal %d: %.9g and %.9g", i, a[i], b[i]);
        }
    }
}

static void test_ranges_are_reserved(void **state)
{
    (void)state;
    uint64_t seed = 0;
    burn_seed(9);
    assert_int_equal(burn_random_reserve(0, &seed), 0);
    (void)burn_random_uniform(dev, BURN_F32, 1, DIMS(5)); /* 6 numbers, 2 blocks of 4 */
    assert_int_equal(burn_random_reserve(10, &seed), 2);
    assert_int_equal(burn_random_reserve(1, &seed), 12);
    assert_int_equal(seed, 9);
    burn_tensor *bad = burn_random_uniform(dev, BURN_F32, 9, DIMS(1));
    assert_false(burn_ok(bad));
    assert_int_equal(burn_random_reserve(0, &seed), 13);
}

/* Dropout's gradient has the mask of the forward pass, in eager mode, on a tape and decomposed. */
static void test_dropout_is_replayed(void **state)
{
    (void)state;
    burn_tensor *x = burn_require_grad(ad, burn_ones(dev, BURN_F32, 1, DIMS(40)));
    burn_seed(3);
    burn_tensor *y = burn_dropout(x, 0.5);
    burn_grads *grads = burn_backward(y, NULL, 0, NULL);
    assert_non_null(grads);
    check_same(y, burn_grads_get(grads, x));
    burn_grads_free(grads);
    burn_seed(3);
    check_same(burn_detach(y), burn_dropout(burn_ones(dev, BURN_F32, 1, DIMS(40)), 0.5));
    double values[40];
    int zeros = 0;
    assert_int_equal(burn_read_f64(y, values, 40, NULL), BURN_OK);
    for (int i = 0; i < 40; i++) {
        assert_true(values[i] == 0 || values[i] == 2);
        zeros += values[i] == 0;
    }
    assert_in_range(zeros, 5, 35);
    CHECK(burn_sum(burn_dropout(x, 1.0), 0, NULL, 0), 0);
    CHECK(burn_sum(burn_dropout(x, 0.0), 0, NULL, 0), 40);
    check_failed(burn_dropout(x, 1.5), BURN_E_INVALID, "dropout", "1.5", NULL);
}

static void *own_stream_of_numbers(void *arg)
{
    double *out = arg;
    burn_tensor *t = burn_random_uniform(dev, BURN_F32, 1, DIMS(4));
    if (burn_read_f64(t, out, 4, NULL) != BURN_OK) {
        out[0] = -1;
    }
    return NULL;
}

/* Each thread has its own generator; they do not repeat one another. */
static void test_threads_draw_their_own(void **state)
{
    (void)state;
    double values[4][4];
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, own_stream_of_numbers, values[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(values[i][0] >= 0);
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(values[i], values[k], sizeof(values[i]));
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B224_the_same_seed),  CORE_TEST(test_known_bits),
        CORE_TEST(test_B224_normals_agree),  CORE_TEST(test_ranges_are_reserved),
        CORE_TEST(test_dropout_is_replayed), CORE_TEST(test_threads_draw_their_own),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
