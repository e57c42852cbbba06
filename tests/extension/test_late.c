/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_late.c - rows that come before and after a device is opened, while threads run, and answers
 * about rows that are forgotten.
 *
 * The stubs takes_add and takes_mul bring rows for core ops that write 42, so that a test sees
 * which row was taken. usage: test_late DEVICE; with EXTENSION_FIRST=1 the first one is loaded
 * before the device is opened. Looks inside the library for the number of answers that are kept.
 */
#include "stub_world.h"

#include "exec/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <burn/device.h>
#include <burn/ops.h>
#include <burn/registry.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 3, MOST_TURNS = 2000000 };

static burn_device *device;
static int extension_first;

static burn_tensor *numbers(float a, float b)
{
    const float values[2] = {a, b};
    return burn_tensor_from_data(device, BURN_F32, 1, (const int64_t[]){2}, values);
}

/* The first number of a tensor; -1 when it has failed. */
static float first_of(burn_tensor *t)
{
    float out[2] = {-1, -1};
    (void)burn_read(t, out, sizeof(out), NULL);
    return out[0];
}

static int on_flex(void)
{
    return strncmp(burn_device_name(device), "flex", 4) == 0;
}

static void late_rows_are_seen_by_the_next_call(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    float late = on_flex() ? 42.0F : 5.0F;
    burn_scope_begin();
    burn_tensor *x = numbers(2, 7);
    burn_tensor *y = numbers(3, 9);
    for (int i = 0; i < 3 && !extension_first; i++) {
        assert_true(first_of(burn_add(x, y)) == 5.0F);
    }
    assert_int_equal(burn_extension_load("takes_add", &err), BURN_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(first_of(burn_add(x, y)) == late);
    }
    /* Of a higher priority than the backend's own, whatever came first. */
    const char *row = burn_op_row(device, BURN_OP_ADD, 0);
    assert_int_equal(row != NULL && strcmp(row, "stub.row") == 0, on_flex());
    burn_scope_end();
}

static _Atomic int loaded;

static void *multiply(void *arg)
{
    int *fine = arg;
    float late = on_flex() ? 42.0F : 6.0F;
    burn_scope_begin();
    burn_tensor *x = numbers(2, 7);
    burn_tensor *y = numbers(3, 9);
    int seen = 0;
    for (int i = 0; i < MOST_TURNS && !seen; i++) {
        burn_scope_begin();
        int before = atomic_load(&loaded);
        float z = first_of(burn_mul(x, y));
        *fine = *fine && (z == 6.0F || z == late);
        seen = before && z == late;
        burn_scope_end();
    }
    *fine = *fine && seen;
    burn_scope_end();
    return NULL;
}

static void rows_may_come_while_threads_run(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    pthread_t threads[N_THREADS];
    int fine[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        fine[i] = 1;
        assert_int_equal(pthread_create(&threads[i], NULL, multiply, &fine[i]), 0);
    }
    assert_int_equal(burn_extension_load("takes_mul", &err), BURN_OK);
    atomic_store(&loaded, 1);
    for (int i = 0; i < N_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_true(fine[i]);
    }
}

/* With sizes in the key, each shape has an answer of its own. */
static void answers_about_rows_are_bounded(void **state)
{
    (void)state;
    burni_stream *stream = burni_stream_get(burni_thread_get(), device->core, NULL);
    uint32_t matmul = burni_op_find(BURN_OP_MATMUL)->index;
    for (int64_t n = 1; n <= 700; n++) {
        burn_scope_begin();
        burn_tensor *x = burn_zeros(device, BURN_F32, 2, (const int64_t[]){1, n});
        burn_tensor *z = burn_matmul(x, burn_zeros(device, BURN_F32, 2, (const int64_t[]){n, 1}));
        if (n % 50 == 0) {
            float out = -1;
            assert_int_equal(burn_read(z, &out, sizeof(out), NULL), BURN_OK);
            assert_true(out == 0.0F);
        }
        burn_scope_end();
        uint32_t kept = 0;
        for (const burni_resolved *r = stream->resolver.recent[matmul]; r != NULL; r = r->next) {
            kept++;
        }
        assert_int_equal(kept, stream->resolver.counts[matmul]);
        /* Beside those that are kept, what records and calls to be made again hold. */
        assert_in_range(kept, 1, BURNI_MAX_RESOLVED + stream->window + BURNI_AGAIN);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"takes_add", "takes_mul"};
    burn_err err = BURN_ERR_INIT;
    if (argc != 2 || !stub_world_make(names, 2)) {
        (void)fprintf(stderr, "usage: test_late DEVICE, with STUB_SO set\n");
        return 2;
    }
    extension_first = getenv("EXTENSION_FIRST") != NULL;
    if (extension_first) {
        (void)burn_extension_load("takes_add", &err);
    }
    device = burn_device_open(argv[1], &err);
    if (device == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        stub_world_remove();
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_rows_are_seen_by_the_next_call),
        cmocka_unit_test(rows_may_come_while_threads_run),
        cmocka_unit_test(answers_about_rows_are_bounded),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    burn_shutdown();
    stub_world_remove();
    return failed;
}
