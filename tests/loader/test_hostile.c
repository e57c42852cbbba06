/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_hostile.c - backends that break a promise while they run (hostile.c): each gives its own
 * message, which names plugin and entry, and the process goes on: the same program works on a
 * healthy backend afterwards (B240).
 *
 * A row says where the defect shows: when the device is opened, or when two numbers are added there
 * and read back. Built with sanitizers this also shows that nothing was overwritten.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <burn/device.h>
#include <burn/ops.h>
#include <burn/plugins.h>
#include <burn/profile.h>
#include <burn/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct expectation {
    const char *id;
    int32_t code;
    const char *message;
} expectation;

/* Shown by burn_device_open. */
static const expectation at_open[] = {
    {"query_past", BURN_E_ABI, "its burn_plugin_query wrote past the end of burn_err"},
    {"count_past", BURN_E_ABI, "count_past: count wrote 12 bytes past the end of out_count"},
    {"count_rude", BURN_E_INTERNAL, "count_rude: xxxxxxxx"},
    {"open_fails", BURN_E_ABI, "open_fails: open wrote 8 bytes past the end of burn_err"},
    {"open_rude", BURN_E_INTERNAL, "xxxxxxxx"},
    {"open_nothing", BURN_E_INTERNAL, "open_nothing: open succeeded but gave no device"},
    {"open_past", BURN_E_ABI, "open_past: open wrote 16 bytes past the end of out;"},
    {"limits_past", BURN_E_ABI, "limits_past: limits wrote 128 bytes past the end of burn_limits"},
    {"limits_align", BURN_E_ABI, "limits_align: its limits make no sense: offset_align 3"},
    {"limits_cut", BURN_E_ABI, "limits_cut: its limits make no sense: offset_align 64, suballoc_"},
    {"limits_elements", BURN_E_ABI, "max_elements 0 (above 0)"},
    {"limits_code", BURN_E_INTERNAL, "limits_code: limits answered 4, which is no status code"},
    {"row_slots", BURN_E_ABI, "row_slots: row hostile.add has 2 slots, op add has 3 operands"},
};

/* Shown by the first operation. */
static const expectation at_work[] = {
    {"alloc_nothing", BURN_E_NO_MEMORY, "bytes succeeded but gave no buffer"},
    {"alloc_no_host", BURN_E_NO_MEMORY, "bytes succeeded but gave no host address"},
    {"alloc_past", BURN_E_NO_MEMORY, "alloc_past: alloc wrote 8 bytes past the end of out;"},
    {"alloc_host_past", BURN_E_NO_MEMORY, "alloc wrote 24 bytes past the end of out_host;"},
    {"queue_past", BURN_E_ABI, "queue_past: queue_create wrote 40 bytes past the end of out;"},
    {"queue_rude", BURN_E_INTERNAL, "xxxxxxxx"},
    {"queue_nothing", BURN_E_INTERNAL, "queue_nothing: queue_create succeeded but gave no queue"},
    {"copy_rude", BURN_E_INTERNAL, "tensor: xxxxxxxx"},
    {"read_past", BURN_E_ABI, "read_past: copy_out wrote 40 bytes past the end of burn_err"},
    {"check_rude", BURN_E_UNSUPPORTED, "hostile.add: xxxxxxxx"},
    {"prepare_rude", BURN_E_UNSUPPORTED, "hostile.add: xxxxxxxx"},
    {"prepare_past", BURN_E_UNSUPPORTED, "hostile.add: prepare wrote 64 bytes past the"},
    {"prepare_bomb", BURN_E_NO_MEMORY, "add: "},
    {"launch_fails", BURN_E_DEVICE, "add: the kernel gave up"},
    {"launch_silent", BURN_E_IO, "launch_silent: hostile.add failed without a reason (E_IO)"},
    {"launch_code", BURN_E_INTERNAL, "launch_code: hostile.add answered -12345, which is no"},
    {"launch_positive", BURN_E_INTERNAL, "launch_positive: hostile.add answered 12345, which"},
    {"launch_rude", BURN_E_DEVICE, "add: xxxxxxxx"},
    {"launch_past", BURN_E_ABI, "launch_past: hostile.add wrote 200 bytes past the end of burn"},
};

static const expectation at_probe[] = {
    {"probe_past", BURN_E_ABI, "probe wrote 96 bytes past the end of burn_device_info"},
    {"probe_rude", BURN_E_INTERNAL, "probe_rude:0: xxxxxxxx"},
};

/* How far work got is asked for times and for memory: nothing fails, and the log tells. */
static const expectation in_the_log[] = {
    {"reached_past", BURN_E_ABI, "reached_past: reached wrote 48 bytes past the end of out_value"},
    {"reached_fails", BURN_E_IO, ""},
};

/* These are odd, but harmless; "frozen" is a healthy one, built with the first minor's headers. */
static const char *const harmless[] = {"probe_kind", "prepare_mask", "limits_page", "healthy",
                                       "frozen"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void make_plugin(const char *id)
{
    char name[80];
    (void)snprintf(name, sizeof(name), "%s.so", id);
    world_library(strcmp(id, "frozen") == 0 ? "frozen_v0_1.so" : "hostile.so", name);
    world_manifest(id, "backend", "cpu", 10, "0.1");
}

/* x + x on the device, in a sink with a guard of its own behind it. */
static int32_t add_there(burn_device *device, char *text, size_t cap)
{
    const float x[3] = {1.0f, 2.0f, 4.0f};
    const int64_t dims[1] = {3};
    float sums[3] = {0};
    struct {
        burn_err err;
        char behind[64];
    } sink = {BURN_ERR_INIT, "untouched"};
    burn_scope_begin();
    burn_tensor *t = burn_tensor_from_data(device, BURN_F32, 1, dims, x);
    int32_t rc = burn_read(burn_add(t, t), sums, sizeof(sums), &sink.err);
    burn_scope_end();
    (void)burn_sync(device, NULL);
    assert_string_equal(sink.behind, "untouched");
    if (rc == BURN_OK) {
        assert_true(sums[0] == 2.0f && sums[1] == 4.0f && sums[2] == 8.0f);
    } else {
        assert_true(strnlen(sink.err.text, sizeof(sink.err.text)) < sizeof(sink.err.text));
    }
    (void)snprintf(text, cap, "%s", rc == BURN_OK ? "" : sink.err.text);
    return rc;
}

static void expect_works(const char *id)
{
    char text[256];
    world_err e;
    burn_device *device = burn_device_open(id, world_err_init(&e));
    if (device == NULL) {
        fail_msg("%s: %s", id, e.err.text);
    }
    if (add_there(device, text, sizeof(text)) != BURN_OK) {
        fail_msg("%s: %s", id, text);
    }
}

static void b240_defects_that_show_when_a_device_is_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(at_open); i++) {
        world_err e;
        burn_device *device = burn_device_open(at_open[i].id, world_err_init(&e));
        if (device != NULL || e.err.code != at_open[i].code) {
            fail_msg("%s: code %d, not %d: %s", at_open[i].id, e.err.code, at_open[i].code,
                     e.err.text);
        }
        world_expect(e.err.text, at_open[i].message);
        world_expect(e.err.text, at_open[i].id);
        expect_works("healthy");
    }
}

static void b240_defects_that_show_when_an_op_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(at_work); i++) {
        char text[256];
        world_err e;
        burn_device *device = burn_device_open(at_work[i].id, world_err_init(&e));
        if (device == NULL) {
            fail_msg("%s: %s", at_work[i].id, e.err.text);
        }
        /* Twice: what is remembered of the first time must not hide the second. */
        for (int round = 0; round < 2; round++) {
            int32_t rc = add_there(device, text, sizeof(text));
            if (rc != at_work[i].code) {
                fail_msg("%s: code %d, not %d: %s", at_work[i].id, rc, at_work[i].code, text);
            }
            world_expect(text, at_work[i].message);
        }
        expect_works("healthy");
    }
}

static char logged[4096];

static void keep_line(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)level;
    (void)source;
    size_t used = strlen(logged);
    (void)snprintf(logged + used, sizeof(logged) - used, "%s\n", text);
}

static void b240_defects_that_show_when_points_are_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(in_the_log); i++) {
        char text[256];
        burn_device *device = burn_device_open(in_the_log[i].id, NULL);
        assert_non_null(device);
        logged[0] = '\0';
        burn_log_set(keep_line, NULL, BURN_LOG_ERROR);
        assert_int_equal(burn_profile_begin(NULL), BURN_OK);
        assert_int_equal(add_there(device, text, sizeof(text)), BURN_OK);
        burn_profile_end();
        burn_log_set(NULL, NULL, 0);
        world_expect(logged, in_the_log[i].message);
        expect_works("healthy");
    }
}

static void oddities_that_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(harmless); i++) {
        expect_works(harmless[i]);
    }
}

/* A row that nothing can use is no failure, for the plugin may be newer; it is told. */
static void a_row_of_an_op_that_is_not_known_is_told(void **state)
{
    (void)state;
    logged[0] = '\0';
    burn_log_set(keep_line, NULL, BURN_LOG_INFO);
    burn_device *device = burn_device_open("row_of_no_op", NULL);
    burn_log_set(NULL, NULL, 0);
    assert_non_null(device);
    world_expect(logged, "row_of_no_op: row hostile.add is for op 9999, which is not known here");
}

/* What probe wrote past its struct fails the description; the device itself stays usable. */
static void b240_probe(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(at_probe); i++) {
        world_err e;
        burn_device_info info;
        BURN_INIT(&info, burn_device_info);
        assert_int_equal(burn_plugins_device(at_probe[i].id, 0, &info, world_err_init(&e)),
                         at_probe[i].code);
        world_expect(e.err.text, at_probe[i].message);
        expect_works(at_probe[i].id);
    }
}

/* All at once: what the loader knows must outlive the devices that were opened. */
static int make_world(void **state)
{
    if (world_setup(state) != 0) {
        return 1;
    }
    for (size_t i = 0; i < COUNT(at_open); i++) {
        make_plugin(at_open[i].id);
    }
    for (size_t i = 0; i < COUNT(at_work); i++) {
        make_plugin(at_work[i].id);
    }
    for (size_t i = 0; i < COUNT(at_probe); i++) {
        make_plugin(at_probe[i].id);
    }
    for (size_t i = 0; i < COUNT(in_the_log); i++) {
        make_plugin(in_the_log[i].id);
    }
    for (size_t i = 0; i < COUNT(harmless); i++) {
        make_plugin(harmless[i]);
    }
    make_plugin("row_of_no_op");
    return 0;
}

static int end_world(void **state)
{
    (void)state;
    burn_shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b240_defects_that_show_when_a_device_is_opened),
        cmocka_unit_test(b240_defects_that_show_when_an_op_runs),
        cmocka_unit_test(b240_defects_that_show_when_points_are_asked_for),
        cmocka_unit_test(b240_probe),
        cmocka_unit_test(oddities_that_do_no_harm),
        cmocka_unit_test(a_row_of_an_op_that_is_not_known_is_told),
    };
    int failed = cmocka_run_group_tests_name("loader/hostile", tests, make_world, end_world);
    world_remove_all();
    return failed;
}
