/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_resolve.c - which device a string picks. Known, loadable and usable are three questions, and
 * what was asked for by name is never replaced by something else (B234, B236).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <stdlib.h>
#include <string.h>

static burni_device_choice choice;
static world_err sink;

static void expect_choice(const char *device, const char *canonical)
{
    int32_t code = burni_loader_resolve(device, &choice, world_err_init(&sink));
    if (code != BURN_OK) {
        fail_msg("%s: %s", device != NULL ? device : "(NULL)", sink.err.text);
    }
    assert_string_equal(choice.canonical, canonical);
}

static void expect_error(const char *device, int32_t code, const char *message)
{
    assert_int_equal(burni_loader_resolve(device, &choice, world_err_init(&sink)), code);
    world_expect(sink.err.text, message);
}

static void b234_a_name_is_that_device_or_an_error(void **state)
{
    (void)state;
    world_plugin("flex");
    world_backend("mixed", "gpu", 50);
    world_backend("count_fails", "gpu", 90);
    world_backend("no_devices", "gpu", 90);
    world_manifest("cuda", "backend", "gpu", 100, "0.1");
    expect_choice("flex", "flex:0");
    assert_string_equal(choice.why, "asked for by name");
    expect_choice("mixed:1?a=1&b=2+autodiff", "mixed:1");
    assert_string_equal(choice.options, "a=1&b=2");
    assert_int_equal(choice.autodiff, 1);
    assert_int_equal(choice.ordinal, 1);
    expect_error("cuda", BURN_E_IO, "device \"cuda\", position 1: cuda: cannot find ");
    expect_error("cuda", BURN_E_IO, "install the plugin again");
    expect_error("count_fails", BURN_E_UNSUPPORTED,
                 "count_fails: libdriver.so.1 is not there; install the driver");
    expect_error("no_devices", BURN_E_NOT_FOUND, "it is installed but finds no device");
    expect_error("mixed:2", BURN_E_NOT_FOUND, "no device 2; it has 2 devices, so 0 to 1 are valid");
    expect_error("flex:1", BURN_E_NOT_FOUND, "no device 1; it has 1 device, so 0 to 0 are valid");
}

static void b234_unknown_names(void **state)
{
    (void)state;
    world_plugin("flex");
    world_plugin("ext_more");
    world_backend("mixed", "gpu", 50);
    world_backend("wrong_magic", "gpu", 50);
    assert_int_equal(burni_loader_open("wrong_magic", NULL, NULL), BURN_E_ABI);
    expect_choice("flex", "flex:0");
    expect_error("felx:1", BURN_E_NOT_FOUND,
                 "device \"felx:1\", position 1: no backend \"felx\"; did you mean \"flex\"? "
                 "installed: flex (1 device), mixed; not usable: wrong_magic (its table has the");
    world_expect(sink.err.text, "; searched: ");
    world_expect(sink.err.text, world_dir);
    expect_error("somethingelse", BURN_E_NOT_FOUND,
                 "no backend \"somethingelse\"; installed: flex");
    expect_error("gpu", BURN_E_NOT_FOUND,
                 "no backend \"gpu\"; \"mixed\" has devices of that kind; installed: flex");
    expect_error("ext_more", BURN_E_INVALID, "\"ext_more\" is an extension, not a backend");
    burn_err small = BURN_ERR_INIT;
    assert_int_equal(burni_loader_resolve("felx", &choice, &small), BURN_E_NOT_FOUND);
    world_expect(small.text, "did you mean \"flex\"?");
}

static void b234_lists(void **state)
{
    (void)state;
    world_plugin("flex");
    world_backend("count_fails", "gpu", 90);
    world_backend("mixed", "gpu", 50);
    assert_int_equal(setenv("BURN_DEVICE", "count_fails,mixed:7,flex+autodiff", 1), 0);
    expect_choice(NULL, "flex:0");
    assert_int_equal(choice.autodiff, 1);
    world_expect(choice.why, "3. of BURN_DEVICE=count_fails,mixed:7,flex+autodiff; before: count_");
    assert_int_equal(setenv("BURN_DEVICE", "mixed,flex", 1), 0);
    expect_choice(NULL, "mixed:0");
    /* One bad term makes the whole list an error, though the first would do. */
    assert_int_equal(setenv("BURN_DEVICE", "flex,mixd", 1), 0);
    expect_error(NULL, BURN_E_NOT_FOUND, "position 6: no backend \"mixd\"; did you mean \"mixed\"");
    assert_int_equal(setenv("BURN_DEVICE", "flex,mixed:x", 1), 0);
    expect_error(NULL, BURN_E_INVALID, "position 12: 'x' where an ordinal");
    assert_int_equal(setenv("BURN_DEVICE", "count_fails,mixed:9", 1), 0);
    expect_error(NULL, BURN_E_UNSUPPORTED, "none of the 2 is usable: count_fails: libdriver");
    world_expect(sink.err.text, "; mixed: there is no device 9");
    assert_int_equal(setenv("BURN_DEVICE", "", 1), 0);
    expect_error(NULL, BURN_E_INVALID, "BURN_DEVICE is empty");
    assert_int_equal(setenv("BURN_DEVICE", "count_fails", 1), 0);
    expect_choice("flex", "flex:0");
    assert_int_equal(setenv("BURN_DEVICE", "count_fails,auto", 1), 0);
    expect_choice(NULL, "mixed:1");
}

static void b236_auto_prefers_discrete_devices(void **state)
{
    (void)state;
    world_backend("flex", "cpu", 10);
    world_backend("integrated", "gpu", 200);
    world_backend("mixed", "gpu", 50);
    world_backend("count_fails", "gpu", 300);
    world_backend("virtual_one", "virtual", -1);
    expect_choice(NULL, "mixed:1");
    world_expect(choice.why, "auto: first discrete device by priority");
    world_expect(choice.why, "count_fails: libdriver.so.1 is not there");
    /* What only has CPUs is not even opened when something better is there. */
    assert_int_equal(burni_loader_find("flex")->state, BURNI_PLUGIN_KNOWN);
    burni_loader_forget();
    world_backend("discrete", "gpu", 60);
    expect_choice("auto", "discrete:0");
}

/* A software GPU with a high priority does not push the CPU backend aside. */
static void auto_ranks_emulated_devices_last(void **state)
{
    (void)state;
    world_backend("softgpu", "gpu", 500);
    expect_choice("auto+autodiff", "softgpu:0");
    assert_int_equal(choice.autodiff, 1);
    burni_loader_forget();
    world_backend("flex", "cpu", 10);
    world_backend("virtual_one", "virtual", 600);
    expect_choice("auto", "flex:0");
}

static void auto_without_any_device(void **state)
{
    (void)state;
    expect_error("auto", BURN_E_NOT_FOUND,
                 "position 1: no backend is installed; install one");
    /* What to do fits the text that programs have. */
    burn_err small = BURN_ERR_INIT;
    assert_int_equal(burni_loader_resolve("auto", &choice, &small), BURN_E_NOT_FOUND);
    world_expect(small.text, "set BURN_PLUGIN_PATH to its absolute folder; searched: /");
    small = (burn_err)BURN_ERR_INIT;
    assert_int_equal(burni_loader_resolve("flex", &choice, &small), BURN_E_NOT_FOUND);
    world_expect(small.text, "set BURN_PLUGIN_PATH to its absolute folder; searched: /");
    burni_loader_forget();
    world_backend("no_devices", "gpu", 1);
    world_backend("probe_fails", "gpu", 1);
    world_backend("virtual_one", "virtual", -5);
    world_backend("flex", "cpu", 1);
    assert_int_equal(setenv("BURN_BACKENDS", "no_devices,probe_fails,virtual_one", 1), 0);
    expect_error("auto", BURN_E_NOT_FOUND, "tried: ");
    world_expect(sink.err.text, "no_devices: no device");
    world_expect(sink.err.text, "; only by name: virtual_one; searched: ");
    world_expect(sink.err.text, "probe_fails:0: the device does not answer");
    world_expect(sink.err.text, "flex: BURN_BACKENDS is");
    const char *first = strstr(sink.err.text, "BURN_BACKENDS is");
    assert_null(strstr(first + 1, "BURN_BACKENDS is")); /* a cause is told once */
    small = (burn_err)BURN_ERR_INIT;
    assert_int_equal(burni_loader_resolve("auto", &choice, &small), BURN_E_NOT_FOUND);
    world_expect(small.text, "`burn doctor` tells more");
    world_expect(small.text, "no_devices: no device");
    /* Never by itself, but by name. */
    expect_choice("virtual_one", "virtual_one:0");
}

static void devices_are_described(void **state)
{
    (void)state;
    world_backend("mixed", "gpu", 1);
    world_backend("many_devices", "gpu", 1);
    world_backend("probe_fails", "gpu", 1);
    uint32_t n = 0;
    burn_device_info info;
    assert_int_equal(burni_loader_device_count("mixed", &n, world_err_init(&sink)), BURN_OK);
    assert_int_equal(n, 2);
    assert_int_equal(burni_loader_device_info("mixed", 1, &info, world_err_init(&sink)), BURN_OK);
    assert_int_equal(info.kind, BURN_DEVICE_DISCRETE);
    assert_int_equal(strlen(info.name), sizeof(info.name) - 1);
    assert_int_equal(burni_loader_device_info("mixed", 2, &info, world_err_init(&sink)),
                     BURN_E_NOT_FOUND);
    world_expect(sink.err.text, "mixed:2: it has 2 devices");
    assert_int_equal(burni_loader_device_count("many_devices", &n, world_err_init(&sink)),
                     BURN_E_ABI);
    world_expect(sink.err.text, "claims more than 1024 devices");
    assert_int_equal(burni_loader_device_info("probe_fails", 0, &info, world_err_init(&sink)),
                     BURN_E_DEVICE);
    assert_int_equal(burni_loader_device_count("nobody", &n, world_err_init(&sink)),
                     BURN_E_NOT_FOUND);
}

/* A second count or probe of this stub fails: the first answers are kept. */
static void a_driver_is_asked_once(void **state)
{
    (void)state;
    world_backend("only_once", "gpu", 1);
    for (int i = 0; i < 3; i++) {
        uint32_t n = 0;
        burn_device_info info;
        assert_int_equal(burni_loader_device_count("only_once", &n, NULL), BURN_OK);
        assert_int_equal(n, 1);
        assert_int_equal(burni_loader_device_info("only_once", 0, &info, NULL), BURN_OK);
        expect_choice("auto", "only_once:0");
    }
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(b234_a_name_is_that_device_or_an_error),
        LOADER_TEST(b234_unknown_names),
        LOADER_TEST(b234_lists),
        LOADER_TEST(b236_auto_prefers_discrete_devices),
        LOADER_TEST(auto_ranks_emulated_devices_last),
        LOADER_TEST(auto_without_any_device),
        LOADER_TEST(a_driver_is_asked_once),
        LOADER_TEST(devices_are_described),
    };
    int failed = cmocka_run_group_tests_name("loader/resolve", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
