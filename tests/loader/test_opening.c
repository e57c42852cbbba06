/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_opening.c - devices opened from several threads at once, while plugins are being loaded:
 * slow ones, hostile ones, healthy ones. Each thread gets the one handle of a device, and the same
 * error for what is broken, however they meet; each computes on what it got.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <burn/device.h>
#include <burn/ops.h>
#include <burn/plugins.h>
#include <burn/tensor.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 12

static const char *const healthy[] = {"one", "two", "three", "frozen"};
static const char *const broken[] = {"limits_past", "open_nothing", "query_past", "slow"};
enum { N_HEALTHY = 4, N_BROKEN = 4 };

static _Atomic(burn_device *) handles[N_HEALTHY];
static atomic_int n_failed;
static pthread_barrier_t start;

static void note(int fine, const char *what)
{
    if (!fine) {
        print_error("%s\n", what);
        atomic_fetch_add(&n_failed, 1);
    }
}

static void use(uint32_t k)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(healthy[k], &err);
    note(device != NULL, err.text);
    if (device == NULL) {
        return;
    }
    burn_device *none = NULL;
    if (!atomic_compare_exchange_strong(&handles[k], &none, device)) {
        note(none == device, "one device has two handles");
    }
    float x[2] = {1.0f, 2.0f};
    const int64_t dims[1] = {2};
    burn_scope_begin();
    burn_tensor *t = burn_tensor_from_data(device, BURN_F32, 1, dims, x);
    int32_t rc = burn_read(burn_add(t, t), x, sizeof(x), &err);
    burn_scope_end();
    note(rc == BURN_OK && x[0] == 2.0f && x[1] == 4.0f, err.text);
}

static void *work(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    (void)pthread_barrier_wait(&start);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        use((seed + round) % N_HEALTHY);
        burn_err err = BURN_ERR_INIT;
        /* The slow stub loads, but opens no device; the others are broken each in its way. */
        burn_device *device = burn_device_open(broken[(seed + round) % N_BROKEN], &err);
        note(device == NULL && err.code < 0 && err.text[0] != '\0', "a broken device was opened");
        burn_device_choice choice;
        BURN_INIT(&choice, burn_device_choice);
        note(burn_device_resolve("two:0", &choice, &err) == BURN_OK, err.text);
        burn_plugin_info info;
        BURN_INIT(&info, burn_plugin_info);
        (void)burn_plugins_at(round % burn_plugins_count(), 1, &info, &err);
    }
    return NULL;
}

static void b240_devices_are_opened_by_many_threads(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_HEALTHY + N_BROKEN; i++) {
        char name[80];
        const char *id = i < N_HEALTHY ? healthy[i] : broken[i - N_HEALTHY];
        const char *from = strcmp(id, "slow") == 0     ? "stub.so"
                           : strcmp(id, "frozen") == 0 ? "frozen_v0_1.so"
                                                       : "hostile.so";
        (void)snprintf(name, sizeof(name), "%s.so", id);
        world_library(from, name);
        world_manifest(id, "backend", "cpu", 10, "0.1");
    }
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&n_failed), 0);
    burn_shutdown();
}

static void *open_waiting(void *argument)
{
    (void)argument;
    burn_err err = BURN_ERR_INIT;
    return burn_device_open("open_waits", &err);
}

/* A backend that takes its time in open holds up those who ask for the same device, nobody else. */
static void a_slow_open_holds_up_no_other_device(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    int said[2];
    int go[2];
    char text[32];
    char byte = 0;
    assert_true(pipe(said) == 0 && pipe(go) == 0);
    (void)snprintf(text, sizeof(text), "%d,%d", said[1], go[0]);
    assert_int_equal(setenv("HOSTILE_PIPES", text, 1), 0);
    static const char *const ids[] = {"open_waits", "passes"};
    for (uint32_t i = 0; i < 2; i++) {
        char name[80];
        (void)snprintf(name, sizeof(name), "%s.so", ids[i]);
        world_library("hostile.so", name);
        world_manifest(ids[i], "backend", "cpu", 10, "0.1");
    }
    pthread_t threads[2];
    void *handles_of[2] = {NULL, NULL};
    (void)alarm(60); /* an open that waits for the other one never ends */
    assert_int_equal(pthread_create(&threads[0], NULL, open_waiting, NULL), 0);
    assert_int_equal(read(said[0], &byte, 1), 1);
    assert_int_equal(pthread_create(&threads[1], NULL, open_waiting, NULL), 0);
    assert_non_null(burn_device_open("passes", &err));
    burn_plugin_info info;
    BURN_INIT(&info, burn_plugin_info);
    (void)burn_plugins_at(0, 1, &info, &err);
    assert_int_equal(write(go[1], &byte, 1), 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &handles_of[i]), 0);
    }
    (void)alarm(0);
    assert_non_null(handles_of[0]);
    assert_ptr_equal(handles_of[0], handles_of[1]);
    (void)unsetenv("HOSTILE_PIPES");
}

/* Devices stay open to the end of a process, so each test has one of its own: its name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_slow_open_holds_up_no_other_device, world_setup),
        cmocka_unit_test_setup(b240_devices_are_opened_by_many_threads, world_setup),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    int failed = cmocka_run_group_tests_name("loader/opening", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
