/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_broken.c - a device that fails: mock is told to fail one launch (MOCK_FAIL_OP), to be
 * lost after some (lose_after), to be slow. Each wish is read when a device is opened, so the two
 * mock devices take one each. Mock only.
 */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

static burn_device *second;

static burn_tensor *on(burn_device *device, double value)
{
    return burn_full(device, BURN_F32, 1, DIMS(4), burn_scalar(value));
}

/* The third launch of exp fails on the worker. */
static void test_a_kernel_that_fails_late(void **state)
{
    (void)state;
    if (!on_mock) {
        skip();
    }
    burn_tensor *x = on(dev, 0.0);
    burn_tensor *a = burn_exp(x);
    burn_tensor *b = burn_exp(a);
    burn_tensor *c = burn_exp(burn_mul(x, burn_scalar(3.0)));
    burn_tensor *d = burn_add(c, a);
    burn_tensor *e = burn_add(b, a);
    CHECK(burn_exp(x), 1, 1, 1, 1);
    CHECK(a, 1, 1, 1, 1);
    check_read_fails(d, BURN_E_INTERNAL, "exp", NULL);
    check_read_fails(c, BURN_E_INTERNAL, "exp", NULL);
    CHECK_NEAR(e, 1e-6, 3.7182818, 3.7182818, 3.7182818, 3.7182818);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_sync(dev, &err), BURN_E_INTERNAL);
    assert_non_null(strstr(err.text, "exp"));
    check_clean();
    CHECK(burn_exp(x), 1, 1, 1, 1);
}

/* A lost device fails everything from then on, wakes who waits, and leaves the other one alone. */
static void test_a_lost_device(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    second = burn_device_open("mock:1?lose_after=6", &err);
    assert_non_null(second);
    burn_tensor *x = on(second, 1.0);
    CHECK(x, 1, 1, 1, 1);
    for (int i = 0; i < 20; i++) {
        x = burn_add(x, burn_scalar(1.0));
    }
    check_read_fails(x, BURN_E_DEVICE_LOST, "lost", NULL);
    check_read_fails(on(second, 2.0), BURN_E_DEVICE_LOST, "lost", NULL);
    assert_int_equal(burn_sync(second, &err), BURN_E_DEVICE_LOST);
    check_read_fails(burn_tensor_from_data(second, BURN_F32, 0, NULL, &(float){1}),
                     BURN_E_DEVICE_LOST, NULL);
    burn_memory_trim(second);
    CHECK(burn_add(on(dev, 1.0), on(dev, 2.0)), 3, 3, 3, 3);
    burn_scope_flush();
}

/* A program that goes on nevertheless needs no more memory from call to call. Behind the one that
 * loses the device. */
static void test_a_lost_device_does_not_grow(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_memory first;
    burn_memory last;
    BURN_INIT(&first, burn_memory);
    BURN_INIT(&last, burn_memory);
    assert_non_null(second);
    for (int k = 0; k < 400; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_zeros(second, BURN_F32, 1, DIMS(4096));
        check_read_fails(burn_exp(burn_add(x, burn_scalar(k))), BURN_E_DEVICE_LOST, NULL);
        check_read_fails(on(second, 2.0), BURN_E_DEVICE_LOST, NULL);
        burn_scope_end();
        if (k == 100) {
            assert_int_equal(burn_memory_report(second, &first, &err), BURN_OK);
        }
    }
    assert_int_equal(burn_memory_report(second, &last, &err), BURN_OK);
    assert_int_equal(last.reserved, first.reserved);
    assert_int_equal(last.in_use, first.in_use);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_kernel_that_fails_late),
        CORE_TEST(test_a_lost_device),
        CORE_TEST(test_a_lost_device_does_not_grow),
    };
    char wish[32];
    (void)snprintf(wish, sizeof(wish), "%d:3", BURN_OP_EXP);
    (void)burn_option_set("MOCK_FAIL_OP", wish, NULL);
    (void)burn_option_set("MOCK_DELAY_US", "50", NULL);
    return core_test_main(argc, argv, tests, COUNT(tests));
}
