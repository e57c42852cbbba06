/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_throws.c - a C++ plugin that throws (throws.cc) behind the SDK's guard: in its query, and in
 * entries of its device table. Each exception becomes an error with its text (B240).
 *
 * Only built where a C++ compiler is there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <stdio.h>

typedef struct expectation {
    const char *id;
    int32_t code;
    const char *message;
} expectation;

static const expectation rows[] = {
    {"throws_query", BURN_E_INTERNAL, "exception: the vendor's library gave up"},
    {"throws_query_memory", BURN_E_NO_MEMORY, "out of host memory"},
    {"throws_query_number", BURN_E_INTERNAL, "exception of unknown type"},
    {"throws_count", BURN_E_INTERNAL, "throws_count: exception: the vendor's library gave up"},
    {"throws_count_memory", BURN_E_NO_MEMORY, "throws_count_memory: out of host memory"},
    {"throws_count_number", BURN_E_INTERNAL, "exception of unknown type"},
    {"throws_probe", BURN_E_INTERNAL, "throws_probe:0: exception: the vendor's library gave up"},
};

static void load(const char *id)
{
    char name[80];
    (void)snprintf(name, sizeof(name), "%s.so", id);
    world_library("throws.so", name);
    world_manifest(id, "backend", "cpu", 1, "0.1");
}

static void b240_exceptions_become_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        load(rows[i].id);
    }
    load("calm");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_err e;
        burn_device_info info;
        int32_t code = burni_loader_device_info(rows[i].id, 0, &info, world_err_init(&e));
        if (code != rows[i].code) {
            fail_msg("%s: code %d, not %d: %s", rows[i].id, code, rows[i].code, e.err.text);
        }
        world_expect(e.err.text, rows[i].message);
        assert_int_equal(burni_loader_device_info("calm", 0, &info, NULL), BURN_OK);
    }
}

/* The core opens devices; here the entry is called as it would. */
static void b240_exceptions_of_open_become_errors(void **state)
{
    (void)state;
    static const expectation opens[] = {
        {"throws_open", BURN_E_INTERNAL, "exception: the vendor's library gave up"},
        {"throws_open_memory", BURN_E_NO_MEMORY, "out of host memory"},
        {"throws_open_number", BURN_E_INTERNAL, "exception of unknown type"},
        {"calm", BURN_E_UNSUPPORTED, "nothing to open"},
    };
    for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
        load(opens[i].id);
    }
    for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
        burn_err err = BURN_ERR_INIT;
        const burni_plugin *p = NULL;
        burn_backend_device *device = NULL;
        assert_int_equal(burni_loader_open(opens[i].id, &p, NULL), BURN_OK);
        assert_int_equal(p->table->device->open(0, NULL, &device, &err), opens[i].code);
        world_expect(err.text, opens[i].message);
        assert_null(device);
    }
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(b240_exceptions_become_errors),
        LOADER_TEST(b240_exceptions_of_open_become_errors),
    };
    int failed = cmocka_run_group_tests_name("loader/throws", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
