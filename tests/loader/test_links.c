/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_links.c - how a plugin was linked: what it exports beside its entry and which library of
 * this project it needs is told, in the log and in the description, and it works all the same.
 *
 * The libraries are hostile.c, healthy, linked in another way each. Files that make no sense are in
 * the last test: each byte of the headers of a real one is spoilt once, and nothing is worse than
 * no answer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "loader/links.h"
#include "world.h"

#include <burn/device.h>
#include <burn/plugins.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char logged[4096];

static void keep_line(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)source;
    size_t used = strlen(logged);
    (void)snprintf(logged + used, sizeof(logged) - used, "%d %s\n", level, text);
}

/* Opens it, with every line of the log that a user sees. */
static void describe(const char *library, const char *id, burn_plugin_info *out)
{
    char name[80];
    (void)snprintf(name, sizeof(name), "%s.so", id);
    world_library(library, name);
    world_manifest(id, "backend", "cpu", 10, "0.1");
    burni_loader_forget();
    logged[0] = '\0';
    burn_log_set(keep_line, NULL, BURN_LOG_WARN);
    BURN_INIT(out, burn_plugin_info);
    for (uint32_t i = 0; burn_plugins_at(i, 1, out, NULL) == BURN_OK; i++) {
        if (strcmp(out->id, id) == 0) {
            break;
        }
    }
    burn_log_set(NULL, NULL, 0);
    assert_string_equal(out->id, id);
    assert_int_equal(out->state, BURN_PLUGIN_USABLE);
    assert_string_equal(out->reason, "");
}

static void rule_17__symbols_beside_the_entry_are_told(void **state)
{
    (void)state;
    burn_plugin_info info;
    describe("exports.so", "many", &info);
    world_expect(info.warning, "it exports 2 symbols beside burn_plugin_query: hostile_");
    world_expect(info.warning, "hostile_helper");
    world_expect(info.warning, "hostile_state");
    world_expect(info.warning_remedy, "hidden visibility and a version script");
    world_expect(logged, "many: it exports 2 symbols beside burn_plugin_query");
    world_expect(logged, "2 many"); /* a warning: nobody has to ask for it */
}

static void rule_17__a_need_of_the_core_is_told(void **state)
{
    (void)state;
    burn_plugin_info info;
    describe("needs_core.so", "needy", &info);
    world_expect(info.warning, "its library is linked with libburn-core.so");
    world_expect(info.warning_remedy, "without libraries of this project");
    world_expect(logged, "needy: its library is linked with libburn-core.so");
}

/* A plugin that is linked as it should be gets no word, and tells its build. */
static void rule_6__the_build_id_is_told(void **state)
{
    (void)state;
    burn_plugin_info info;
    describe("hostile.so", "healthy", &info);
    assert_string_equal(info.warning, "");
    assert_string_equal(info.warning_remedy, "");
    assert_string_equal(logged, "");
    assert_true(strlen(info.build_id) >= 16);
    assert_int_equal(strspn(info.build_id, "0123456789abcdef"), strlen(info.build_id));
    char first[72];
    (void)snprintf(first, sizeof(first), "%s", info.build_id);
    describe("exports.so", "many", &info);
    assert_string_not_equal(info.build_id, first);
}

/* ---- files that make no sense ---------------------------------------------------------------- */

static void look(int fd, burni_links *out)
{
    burni_links_look(fd, out);
    assert_true(strlen(out->build_id) < sizeof(out->build_id));
    assert_true(strlen(out->needed) < sizeof(out->needed));
    for (uint32_t i = 0; i < out->n_exports && i < BURNI_LINK_NAMES; i++) {
        assert_true(strlen(out->exports[i]) < sizeof(out->exports[0]));
    }
}

static void put(int fd, size_t at, unsigned char byte)
{
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static void spoilt_files_tell_nothing_and_break_nothing(void **state)
{
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0xff};
    burni_links links;
    char path[512];
    world_library("exports.so", "spoilt.so");
    (void)snprintf(path, sizeof(path), "%s/spoilt.so", world_dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    look(fd, &links);
    assert_int_equal(links.n_exports, 2);
    Elf64_Ehdr head;
    assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
    if (head.e_ident[EI_CLASS] == ELFCLASS64) {
        size_t sections = (size_t)head.e_shnum * sizeof(Elf64_Shdr);
        for (size_t i = 0; i < sizeof(head) + sections; i++) {
            size_t at = i < sizeof(head) ? i : (size_t)head.e_shoff + i - sizeof(head);
            unsigned char old = 0;
            assert_int_equal(pread(fd, &old, 1, (off_t)at), 1);
            put(fd, at, values[i % 4]);
            look(fd, &links);
            put(fd, at, (unsigned char)~old);
            look(fd, &links);
            put(fd, at, old);
        }
    }
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t cut = size; cut >= 0; cut -= 97) {
        assert_int_equal(ftruncate(fd, cut), 0);
        look(fd, &links);
    }
    (void)close(fd);
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(rule_17__symbols_beside_the_entry_are_told),
        LOADER_TEST(rule_17__a_need_of_the_core_is_told),
        LOADER_TEST(rule_6__the_build_id_is_told),
        LOADER_TEST(spoilt_files_tell_nothing_and_break_nothing),
    };
    int failed = cmocka_run_group_tests_name("loader/links", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
