/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_host.c - the services that plugins get, and many threads that use the loader at once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void options(void **state)
{
    (void)state;
    burn_host host;
    burni_host_init(&host, BURN_ABI_CURRENT);
    assert_int_equal(host.struct_size, sizeof(host));
    burn_err err = BURN_ERR_INIT;
    assert_null(host.option("SOME_OPTION"));
    assert_int_equal(burni_loader_set_option("SOME_OPTION", "one", &err), BURN_OK);
    const char *one = host.option("SOME_OPTION");
    assert_string_equal(one, "one");
    assert_int_equal(burni_loader_set_option("SOME_OPTION", "two", &err), BURN_OK);
    assert_string_equal(host.option("SOME_OPTION"), "two");
    /* What a plugin holds stays valid, and is found again when the value comes back. */
    assert_string_equal(one, "one");
    assert_int_equal(burni_loader_set_option("SOME_OPTION", "one", &err), BURN_OK);
    assert_ptr_equal(host.option("SOME_OPTION"), one);
    /* The environment serves what the application has not set. */
    assert_int_equal(setenv("BURN_SOME_OPTION", "user", 1), 0);
    assert_string_equal(host.option("SOME_OPTION"), "one");
    assert_int_equal(burni_loader_set_option("SOME_OPTION", NULL, &err), BURN_OK);
    assert_string_equal(host.option("SOME_OPTION"), "user");
    assert_int_equal(unsetenv("BURN_SOME_OPTION"), 0);
    assert_null(host.option("SOME_OPTION"));
    assert_null(host.option(NULL));
    assert_int_equal(burni_loader_set_option("lower", "x", &err), BURN_E_INVALID);
    world_expect(err.text, "option \"lower\": names are upper-case");
    assert_int_equal(burni_loader_set_option("", "x", &err), BURN_E_INVALID);
    assert_int_equal(burni_loader_set_option(NULL, "x", &err), BURN_E_INVALID);
    static char big[2000];
    memset(big, 'x', sizeof(big) - 1);
    assert_int_equal(burni_loader_set_option("SOME_OPTION", big, &err), BURN_E_LIMIT);
}

static void thread_budget(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    uint32_t cores = (uint32_t)CPU_COUNT(&set);
    assert_int_equal(burni_thread_budget(), cores);
    static const char *const bad[] = {"0", "", "-3", "4097", "99999999999999", "3x", " 3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(setenv("BURN_THREADS", bad[i], 1), 0);
        assert_int_equal(burni_thread_budget(), cores);
    }
    assert_int_equal(setenv("BURN_THREADS", "37", 1), 0);
    assert_int_equal(burni_thread_budget(), 37);
    assert_int_equal(unsetenv("BURN_THREADS"), 0);
    assert_int_equal(burni_loader_set_option("THREADS", "3", NULL), BURN_OK);
    assert_int_equal(burni_thread_budget(), 3);
}

static void services_come_from_open_plugins(void **state)
{
    (void)state;
    world_plugin("aa");
    burn_host host;
    burni_host_init(&host, BURN_ABI_CURRENT);
    assert_null(host.service("stub.service/1"));
    assert_int_equal(burni_loader_open("aa", NULL, NULL), BURN_OK);
    const int *service = host.service("stub.service/1");
    assert_non_null(service);
    assert_int_equal(*service, 7);
    assert_null(host.service("stub.service/2"));
    assert_null(host.service(NULL));
}

#define THREADS 6
static atomic_int n_failed;

static void *use_loader(void *argument)
{
    static const char *const ids[] = {"slow", "good", "mixed", "ext_t", "wrong_magic"};
    size_t start = (size_t)(uintptr_t)argument;
    for (size_t round = 0; round < 40; round++) {
        const char *id = ids[(start + round) % 5];
        const burni_plugin *p = NULL;
        burn_err err = BURN_ERR_INIT;
        int32_t code = burni_loader_open(id, &p, &err);
        int broken = strcmp(id, "wrong_magic") == 0;
        int fine = broken ? code == BURN_E_ABI : code == BURN_OK && p->table != NULL;
        uint32_t n = 0;
        burn_device_info info;
        if (fine && !broken && strncmp(id, "ext", 3) != 0) {
            fine = burni_loader_device_count(id, &n, &err) == BURN_OK &&
                   burni_loader_device_info(id, n - 1, &info, &err) == BURN_OK;
        }
        burni_device_choice choice;
        fine = fine && burni_loader_resolve("auto", &choice, &err) == BURN_OK &&
               strcmp(choice.canonical, "mixed:1") == 0;
        for (uint32_t i = 0; i < burni_loader_count(); i++) {
            const burni_plugin *q = burni_loader_at(i);
            fine = fine && (q->state != BURNI_PLUGIN_OPEN || q->table != NULL) &&
                   (q->state != BURNI_PLUGIN_BROKEN || q->reason[0] != '\0');
        }
        burn_err other = BURN_ERR_INIT;
        fine = fine && burni_loader_resolve("nobody", &choice, &other) == BURN_E_NOT_FOUND &&
               burni_loader_set_option("SHARED", round % 2 == 0 ? "a" : "b", &err) == BURN_OK;
        atomic_fetch_add(&n_failed, fine ? 0 : 1);
    }
    return NULL;
}

static void many_threads_at_once(void **state)
{
    (void)state;
    world_plugin("slow");
    world_plugin("good");
    world_backend("mixed", "gpu", 50);
    world_plugin("ext_t");
    world_plugin("wrong_magic");
    pthread_t threads[THREADS];
    atomic_store(&n_failed, 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_loader, (void *)(uintptr_t)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&n_failed), 0);
    burni_loader_shutdown();
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(options),
        LOADER_TEST(thread_budget),
        LOADER_TEST(services_come_from_open_plugins),
        LOADER_TEST(many_threads_at_once),
    };
    int failed = cmocka_run_group_tests_name("loader/host", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
