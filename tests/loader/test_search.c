/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_search.c - which folders are searched, in which order, and who wins when two plugins meet.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All folders with their notes, in one text. */
static const char *searched(void)
{
    static char text[8192];
    burni_text t;
    burni_text_init(&t, text, sizeof(text));
    for (uint32_t i = 0; burni_loader_searched(i)[0] != '\0'; i++) {
        burni_text_add(&t, "[%s]", burni_loader_searched(i));
    }
    return text;
}

static void only_absolute_folders_count(void **state)
{
    (void)state;
    world_plugin("here");
    char cwd[512];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(world_dir), 0);
    assert_int_equal(setenv("BURN_PLUGIN_PATH",
                            ".::relative/x:/nowhere-at-all:$ORIGIN/x:~/x:../x:", 1),
                     0);
    assert_int_equal(burni_loader_count(), 0);
    world_expect(searched(), "[. (refused: not an absolute path)]");
    world_expect(searched(), "[BURN_PLUGIN_PATH (refused: an empty entry)]");
    world_expect(searched(), "[relative/x (refused: not an absolute path)]");
    world_expect(searched(), "[/nowhere-at-all (not there)]");
    world_expect(searched(), "[$ORIGIN/x (refused: not an absolute path)]");
    world_expect(searched(), "[~/x (refused: not an absolute path)]");
    world_expect(searched(), "[../x (refused: not an absolute path)]");
    burni_loader_forget();
    assert_int_equal(unsetenv("BURN_PLUGIN_PATH"), 0);
    assert_int_equal(burni_loader_count(), 0);
    assert_int_equal(chdir(cwd), 0);
}

static void the_folder_beside_the_library_is_searched(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("BURN_PLUGIN_PATH"), 0);
    char self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    char expected[600];
    (void)snprintf(expected, sizeof(expected), "[%s/burn/0", self);
    world_expect(searched(), expected);
}

static void loose_folders_are_refused(void **state)
{
    (void)state;
    world_plugin("inside");
    assert_int_equal(chmod(world_dir, 0777), 0);
    assert_int_equal(burni_loader_count(), 0);
    world_expect(searched(), "refused: the folder can be written by every user (mode 0777)");
    world_err e;
    assert_int_equal(burni_loader_open("inside", NULL, world_err_init(&e)), BURN_E_NOT_FOUND);
    world_expect(e.err.text, "no backend is installed; install one, or set BURN_PLUGIN_PATH to ");
    world_expect(e.err.text, "refused: the folder can be written by every user");
    if (geteuid() == 0) {
        burni_loader_forget();
        assert_int_equal(chmod(world_dir, 0755), 0);
        assert_int_equal(chown(world_dir, 4321, 4321), 0);
        assert_int_equal(burni_loader_count(), 0);
        world_expect(searched(), "belongs to user 4321");
    }
}

static void a_folder_with_too_many_manifests_is_refused(void **state)
{
    (void)state;
    char folder[256];
    world_folder("crowd", folder, sizeof(folder));
    for (int i = 0; i < 20000; i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/m%05d.json", folder, i);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(setenv("BURN_PLUGIN_PATH", folder, 1), 0);
    assert_int_equal(burni_loader_count(), 0);
    world_expect(searched(), "-crowd (refused: holds 20000 manifests or more)]");
    /* One fewer is taken, up to the limit for what is read. */
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/m00000.json", folder);
    assert_int_equal(unlink(path), 0);
    burni_loader_forget();
    assert_int_equal(burni_loader_count(), 512);
    assert_string_equal(burni_loader_at(0)->id, "m00001");
}

static void the_order_is_by_folder_then_name(void **state)
{
    (void)state;
    char first[256];
    world_folder("first", first, sizeof(first));
    char last[256];
    (void)snprintf(last, sizeof(last), "%s", world_dir);
    world_plugin("bb");
    world_plugin("aa");
    world_plugin("twice");
    (void)snprintf(world_dir, sizeof(world_dir), "%s", first);
    world_plugin("zz");
    world_plugin("twice");
    char path[800];
    (void)snprintf(path, sizeof(path), "%s:%s:%s", first, last, first);
    assert_int_equal(setenv("BURN_PLUGIN_PATH", path, 1), 0);
    static const char *const ids[] = {"twice", "zz", "aa", "bb", "twice"};
    assert_int_equal(burni_loader_count(), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(burni_loader_at(i)->id, ids[i]);
    }
    /* A folder that is named twice is searched once. */
    const char *again = strstr(searched(), "-first]");
    assert_non_null(again);
    assert_null(strstr(again + 1, "-first]"));
    /* Two of one id: the first path wins. */
    world_expect(burni_loader_find("twice")->manifest_path, "-first/twice.json");
    const burni_plugin *hidden = burni_loader_at(4);
    assert_int_equal(hidden->state, BURNI_PLUGIN_HIDDEN);
    assert_int_equal(hidden->code, BURN_E_DENIED);
    world_expect(hidden->reason, "-first/twice.json hides it: it has the same id and comes first");
    world_expect(hidden->remedy, "remove one of the two manifests, or change BURN_PLUGIN_PATH");
    assert_int_equal(burni_loader_open("twice", NULL, NULL), BURN_OK);
    assert_int_equal(burni_loader_at(4)->state, BURNI_PLUGIN_HIDDEN);
}

/* Puts a plugin of that id and library into a folder of its own, before what was there. */
static void hide(const char *name, const char *id, const char *library, const char *abi)
{
    char last[256];
    char folder[256];
    char path[800];
    (void)snprintf(last, sizeof(last), "%s", world_dir);
    world_folder(name, folder, sizeof(folder));
    (void)snprintf(world_dir, sizeof(world_dir), "%s", folder);
    (void)snprintf(path, sizeof(path), "%s.so", id);
    world_library(library, path);
    world_manifest(id, "backend", "cpu", 1, abi);
    (void)snprintf(path, sizeof(path), "%s:%s", folder, last);
    assert_int_equal(setenv("BURN_PLUGIN_PATH", path, 1), 0);
    (void)snprintf(world_dir, sizeof(world_dir), "%s", last);
}

/* B240: the first is taken, whatever it is; what it hides is named where it fails. */
static void b240_a_broken_plugin_names_the_one_that_it_hides(void **state)
{
    (void)state;
    world_err e;
    world_plugin("twice");
    hide("no_plugin", "twice", "not_a_plugin.so", "0.1");
    assert_int_equal(burni_loader_open("twice", NULL, world_err_init(&e)), BURN_E_FORMAT);
    world_expect(e.err.text, "-no_plugin/twice.json: it hides ");
    world_expect(e.err.text, "/twice.json");
    assert_int_equal(burni_loader_at(1)->state, BURNI_PLUGIN_HIDDEN);
    world_expect(burni_loader_at(1)->reason, "-no_plugin/twice.json hides it");
    /* One whose manifest alone shows that it does not fit. */
    burni_loader_forget();
    world_plugin("old");
    hide("old_abi", "old", "stub.so", "9.0");
    assert_int_equal(burni_loader_find("old")->state, BURNI_PLUGIN_BROKEN);
    world_expect(burni_loader_find("old")->remedy, "-old_abi/old.json: it hides ");
    /* A manifest that does not tell its id hides nobody. */
    burni_loader_forget();
    char folder[256];
    world_folder("torn", folder, sizeof(folder));
    world_plugin("good");
    char path[800];
    (void)snprintf(path, sizeof(path), "%s/good.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("{", file) >= 0 && fclose(file) == 0);
    (void)snprintf(path, sizeof(path), "%s:%s", folder, world_dir);
    assert_int_equal(setenv("BURN_PLUGIN_PATH", path, 1), 0);
    assert_int_equal(burni_loader_open("good", NULL, NULL), BURN_OK);
}

static void one_library_is_one_plugin(void **state)
{
    (void)state;
    world_plugin("aa");
    world_manifest("bb", "backend", "cpu", 1, "0.1");
    char from[512];
    char to[512];
    (void)snprintf(from, sizeof(from), "%s/aa.so", world_dir);
    (void)snprintf(to, sizeof(to), "%s/bb.so", world_dir);
    assert_int_equal(link(from, to), 0);
    assert_int_equal(burni_loader_find("aa")->state, BURNI_PLUGIN_KNOWN);
    const burni_plugin *b = burni_loader_find("bb");
    assert_int_equal(b->state, BURNI_PLUGIN_BROKEN);
    world_expect(b->reason, "the same file as that of \"aa\"");
}

static void the_allow_list(void **state)
{
    (void)state;
    world_plugin("aa");
    world_plugin("bb");
    world_plugin("ext_x");
    assert_int_equal(setenv("BURN_BACKENDS", "bb,nobody", 1), 0);
    assert_int_equal(burni_loader_find("aa")->state, BURNI_PLUGIN_DISABLED);
    assert_int_equal(burni_loader_find("bb")->state, BURNI_PLUGIN_KNOWN);
    assert_int_equal(burni_loader_find("ext_x")->state, BURNI_PLUGIN_KNOWN);
    world_err e;
    assert_int_equal(burni_loader_open("aa", NULL, world_err_init(&e)), BURN_E_DENIED);
    world_expect(e.err.text, "aa: BURN_BACKENDS is \"bb,nobody\", which leaves it out; add it");
    burni_loader_forget();
    assert_int_equal(setenv("BURN_BACKENDS", "aa,,bb", 1), 0);
    assert_int_equal(burni_loader_open("bb", NULL, world_err_init(&e)), BURN_E_DENIED);
    world_expect(e.err.text, "names no backend at position 4, so none may be used");
    /* Strict: no spaces, no capitals, nothing empty. A bad list allows nothing. */
    static const struct {
        const char *list;
        const char *position;
    } bad[] = {{"", "position 1"},    {",", "position 1"},   {"bb,", "position 4"},
               {"aa, bb", "position 4"}, {"BB", "position 1"}, {"bb:0", "position 1"},
               {"all", NULL},         {"bb bb", "position 1"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        burni_loader_forget();
        assert_int_equal(setenv("BURN_BACKENDS", bad[i].list, 1), 0);
        assert_int_equal(burni_loader_open("bb", NULL, world_err_init(&e)), BURN_E_DENIED);
        world_expect(e.err.text, bad[i].position != NULL ? bad[i].position : "leaves it out");
    }
}

/* The first by name are read, whatever the order of the folder; no time is lost on the rest. */
static void ten_thousand_manifests(void **state)
{
    (void)state;
    for (int i = 9999; i >= 0; i--) {
        char name[32];
        (void)snprintf(name, sizeof(name), "m%05d.json", i);
        world_write(name, "{", 1);
    }
    world_plugin("aaa");
    world_plugin("zzz");
    assert_int_equal(burni_loader_count(), 512);
    assert_string_equal(burni_loader_at(0)->id, "aaa");
    assert_string_equal(burni_loader_at(511)->id, "m00510");
    assert_null(burni_loader_find("zzz"));
    assert_int_equal(burni_loader_open("aaa", NULL, NULL), BURN_OK);
}

/* Links are followed, but lead to one folder only once; what leads nowhere is no error. */
static void linked_folders(void **state)
{
    (void)state;
    world_plugin("aa");
    char link[300];
    char path[1200];
    (void)snprintf(link, sizeof(link), "%s-link", world_dir);
    assert_int_equal(symlink(world_dir, link), 0);
    char loop[300];
    (void)snprintf(loop, sizeof(loop), "%s-loop", world_dir);
    assert_int_equal(symlink(loop, loop), 0);
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/aa.json", world_dir);
    (void)snprintf(path, sizeof(path), "%s:%s:%s:%s", link, world_dir, loop, file);
    assert_int_equal(setenv("BURN_PLUGIN_PATH", path, 1), 0);
    assert_int_equal(burni_loader_count(), 1);
    world_expect(searched(), "-loop (Too many levels of symbolic links)]");
    world_expect(searched(), "aa.json (Not a directory)]");
    assert_int_equal(burni_loader_open("aa", NULL, NULL), BURN_OK);
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(only_absolute_folders_count),
        LOADER_TEST(the_folder_beside_the_library_is_searched),
        LOADER_TEST(loose_folders_are_refused),
        LOADER_TEST(a_folder_with_too_many_manifests_is_refused),
        LOADER_TEST(the_order_is_by_folder_then_name),
        LOADER_TEST(b240_a_broken_plugin_names_the_one_that_it_hides),
        LOADER_TEST(one_library_is_one_plugin),
        LOADER_TEST(the_allow_list),
        LOADER_TEST(ten_thousand_manifests),
        LOADER_TEST(linked_folders),
    };
    int failed = cmocka_run_group_tests_name("loader/search", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
