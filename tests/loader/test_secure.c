/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_secure.c - processes with raised privileges (AT_SECURE): the environment says nothing about
 * plugins, devices or options there.
 *
 * The kernel's answer is replaced here (getauxval below is found before the C library's); where the
 * test runs as root it is asked for real as well, by a helper program that is set-uid to another
 * user. Options that the program sets itself count as before.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/env.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long secure;
static int is_replaced;

/* Only env.c asks in this program; without sanitizers, whose runtime asks as well. */
#ifdef REPLACE_AUXVAL
#define IS_SANITIZED 0
unsigned long getauxval(unsigned long type)
{
    is_replaced = 1;
    return type == AT_SECURE ? secure : 0;
}
#else
#define IS_SANITIZED 1
#endif

static void the_environment_is_ignored(void **state)
{
    (void)state;
    world_plugin("aa");
    assert_int_equal(setenv("BURN_DEVICE", "nobody", 1), 0);
    assert_int_equal(setenv("BURN_BACKENDS", "zz", 1), 0);
    assert_int_equal(setenv("BURN_SOME_OPTION", "evil", 1), 0);
    secure = 1;
    is_replaced = 0;
    (void)burni_env_is_secure();
    if (!is_replaced) {
        skip();
    }
    burni_loader_forget();
    assert_null(burni_env("PLUGIN_PATH"));
    assert_null(burni_loader_find("aa"));
    for (uint32_t i = 0; burni_loader_searched(i)[0] != '\0'; i++) {
        assert_null(strstr(burni_loader_searched(i), world_dir));
    }
    /* Neither the bad BURN_DEVICE nor the allow list is read: auto, and nothing is installed. */
    burni_device_choice choice;
    world_err e;
    assert_int_equal(burni_loader_resolve(NULL, &choice, world_err_init(&e)), BURN_E_NOT_FOUND);
    world_expect(e.err.text, "no backend is installed");
    assert_null(burni_loader_option("SOME_OPTION"));
    assert_int_equal(burni_loader_set_option("SOME_OPTION", "mine", NULL), BURN_OK);
    assert_string_equal(burni_loader_option("SOME_OPTION"), "mine");
    secure = 0;
    burni_loader_forget();
    assert_non_null(burni_loader_find("aa"));
    assert_string_equal(burni_loader_option("SOME_OPTION"), "evil");
}

/* Runs the copy of secure_helper; its exit status. */
static int run_copy(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        (void)execl(path, path, (char *)NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void a_set_uid_program(void **state)
{
    (void)state;
    struct statvfs fs;
    assert_int_equal(statvfs(world_dir, &fs), 0);
    /* A sanitizer's runtime does not start in a privileged process. */
    if (IS_SANITIZED || geteuid() != 0 || (fs.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0) {
        skip();
    }
    char path[512];
    world_library("loader_secure_helper", "program");
    (void)snprintf(path, sizeof(path), "%s/program", world_dir);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(run_copy(path), 10); /* an ordinary process reads the environment */
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(chmod(path, 04755), 0);
    assert_int_equal(run_copy(path), 11);
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(the_environment_is_ignored),
        LOADER_TEST(a_set_uid_program),
    };
    int failed = cmocka_run_group_tests_name("loader/secure", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
