/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_manifest.c - manifests: what is read, what is refused and with which words.
 *
 * One row per mistake: a piece of a right manifest, what stands in its place, and a part of the
 * message. To add one: a row in `mistakes`.
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

static const char right[] =
    "{\"format\":1,\"id\":\"flex\",\"name\":\"CPU\",\"kind\":\"backend\",\"file\":\"flex.so\","
    "\"version\":\"0.1.0\",\"license\":\"MIT OR Apache-2.0\","
    "\"abi\":{\"oldest\":\"0.1\",\"newest\":\"0.3\"},\"priority\":10,"
    "\"needs\":[{\"library\":\"libcuda.so.1\",\"hint\":\"install the driver\"}],"
    "\"devices\":\"cpu\"}";

typedef struct mistake {
    const char *piece;
    const char *instead;
    const char *message;
} mistake;

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const mistake mistakes[] = {
    {"\"format\":1,", "", "\"format\" must be a whole number"},
    {"\"format\":1", "\"format\":\"1\"", "\"format\" must be a whole number"},
    {"\"format\":1", "\"format\":1.0", "\"format\" must be a whole number"},
    {"\"format\":1", "\"format\":0", "\"format\" is 0"},
    {"\"format\":1", "\"format\":2", "format 2 is not known, this library reads format 1"},
    {"\"format\":1", "\"format\":99999999999999999999", "not valid JSON"},
    {"\"format\":1", "\"format\":1e999", "not valid JSON"},
    {"\"format\":1", "\"format\":1e400", "not valid JSON"},
    {"\"format\":1", "\"format\":-1", "\"format\" is -1"},
    {"\"format\":1", "\"format\":9223372036854775808", "not valid JSON"},
    {"\"format\":1", "\"format\":-9223372036854775808", "\"format\" is -9223372036854775808"},
    {"\"format\":1", "\"format\":01", "not valid JSON"},
    {"\"format\":1", "\"format\":0x1", "not valid JSON"},
    {"\"format\":1", "\"format\":NaN", "not valid JSON"},
    {"\"format\":1", "\"format\":true", "\"format\" must be a whole number"},
    {"\"id\":\"flex\",", "", "\"id\" is missing"},
    {"\"id\":\"flex\"", "\"id\":7", "\"id\" must be a string"},
    {"\"id\":\"flex\"", "\"id\":\"\"", "\"id\" has 0 bytes; 1 to 63"},
    {"\"id\":\"flex\"", "\"id\":\"" A64 "\"", "\"id\" has 64 bytes; 1 to 63"},
    {"\"id\":\"flex\"", "\"id\":\"Flex\"", "\"id\" is \"Flex\"; it must be lower-case"},
    {"\"id\":\"flex\"", "\"id\":\"auto\"", "and not \"auto\""},
    {"\"id\":\"flex\"", "\"id\":\"a/b\"", "\"id\" is \"a/b\""},
    {"\"id\":\"flex\"", "\"id\":\"flex\",\"id\":\"flex\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"C\\nU\"", "\"name\" holds the control byte 0x0a"},
    {"\"name\":\"CPU\"", "\"name\":\"C\\u0000U\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\xff\xfe\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\xc0\x80\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\\ud800\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\\ud800\\u0041\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\xed\xa0\x80\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"\xf4\x90\x80\x80\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"C\x01U\"", "not valid JSON"},
    {"\"name\":\"CPU\"", "\"name\":\"C\\u007fU\"", "holds the control byte 0x7f"},
    {"\"name\":\"CPU\"", "\"name\":\"C\\u001bU\"", "holds the control byte 0x1b"},
    {"\"name\":\"CPU\"", "\"name\":[\"CPU\"]", "\"name\" must be a string"},
    {"{\"format\":1,", "\xef\xbb\xbf{\"format\":1,", "not valid JSON"},
    {"{\"format\":1,", "\xff\xfe{\"format\":1,", "not valid JSON"},
    {"{\"format\":1,", "{'format':1,", "not valid JSON"},
    {"{\"format\":1,", "{/* no comments */\"format\":1,", "not valid JSON"},
    {"\"oldest\":\"0.1\",", "\"oldest\":\"0.1\",\"oldest\":\"0.1\",", "not valid JSON"},
    {"\"kind\":\"backend\"", "\"kind\":\"driver\"", "\"kind\" is \"driver\""},
    {"\"kind\":\"backend\",", "", "\"kind\" is missing"},
    {"\"file\":\"flex.so\"", "\"file\":\"\"", "\"file\" has 0 bytes"},
    {"\"file\":\"flex.so\"", "\"file\":\"/lib/flex.so\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"../flex.so\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"a/../../flex.so\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"./flex.so\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"a//flex.so\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"a/\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"..\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"a/..\"", "must be a path below the manifest's"},
    {"\"file\":\"flex.so\"", "\"file\":\"\\u002e\\u002e/x\"", "must be a path below the"},
    {"\"file\":\"flex.so\"", "\"file\":\"a\\u0000/../x\"", "not valid JSON"},
    {"\"version\":\"0.1.0\"", "\"version\":0.1", "\"version\" must be a string"},
    {"\"license\":\"MIT OR Apache-2.0\",", "", "\"license\" is missing"},
    {"\"abi\":{\"oldest\":\"0.1\",\"newest\":\"0.3\"}", "\"abi\":\"0.1\"", "\"abi\" must be"},
    {"\"oldest\":\"0.1\",", "", "\"abi\": \"oldest\" is missing"},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"0.4\"", "\"oldest\" is above \"newest\""},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"01.1\"", "is \"01.1\", not \"major.minor\""},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"0.99999\"", "is \"0.99999\", not \"major.minor\""},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"0.1.2\"", "is \"0.1.2\", not \"major.minor\""},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"1\"", "is \"1\", not \"major.minor\""},
    {"\"oldest\":\"0.1\"", "\"oldest\":\"-1.0\"", "is \"-1.0\", not \"major.minor\""},
    {"\"priority\":10", "\"priority\":1001", "\"priority\" is 1001; -1000 to 1000"},
    {"\"priority\":10", "\"priority\":\"high\"", "\"priority\" must be a whole number"},
    {"\"priority\":10", "\"priority\":9223372036854775807", "\"priority\" is 9223372036854775807"},
    {"\"priority\":10", "\"priority\":null", "\"priority\" must be a whole number"},
    {"[{\"library\":\"libcuda.so.1\",\"hint\":\"install the driver\"}]", "{}", "must be an array"},
    {"[{\"library\":\"libcuda.so.1\",\"hint\":\"install the driver\"}]", "[1,2,3,4,5,6,7,8,9]",
     "at most 8"},
    {"[{\"library\":\"libcuda.so.1\",\"hint\":\"install the driver\"}]", "[7]", "[0] must be"},
    {"\"hint\":\"install the driver\"", "\"hint\":3", "\"needs\"[0]: \"hint\" must be a string"},
    {"\"devices\":\"cpu\"", "\"devices\":\"C P U\"", "\"devices\" is \"C P U\", not a name"},
    {"\"devices\":\"cpu\"}", "\"devices\":\"cpu\"", "not valid JSON at line 1"},
    {"\"devices\":\"cpu\"}", "\"devices\":\"cpu\"} x", "not valid JSON at line 1"},
    {"\"devices\":\"cpu\"", "\"devices\":\"cpu\",\"x\":[[[[[[[[1]]]]]]]]", "deeper than 8 levels"},
};

static void replace(char *out, size_t cap, const char *piece, const char *instead)
{
    const char *at = strstr(right, piece);
    assert_non_null(at);
    (void)snprintf(out, cap, "%.*s%s%s", (int)(at - right), right, instead, at + strlen(piece));
}

static void a_right_manifest_is_read(void **state)
{
    (void)state;
    burni_manifest m;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_manifest_parse(right, sizeof(right) - 1, &m, &err), BURN_OK);
    assert_string_equal(m.id, "flex");
    assert_string_equal(m.name, "CPU");
    assert_string_equal(m.kind, "backend");
    assert_string_equal(m.file, "flex.so");
    assert_string_equal(m.version, "0.1.0");
    assert_string_equal(m.license, "MIT OR Apache-2.0");
    assert_string_equal(m.devices, "cpu");
    assert_int_equal(m.abi_oldest, BURN_ABI_VERSION(0, 1));
    assert_int_equal(m.abi_newest, BURN_ABI_VERSION(0, 3));
    assert_int_equal(m.priority, 10);
    assert_int_equal(m.n_needs, 1);
    assert_string_equal(m.needs[0].library, "libcuda.so.1");
    assert_string_equal(m.needs[0].hint, "install the driver");
}

static void optional_and_unknown_keys(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\":1,\"id\":\"x-1_b\",\"name\":\"\xc3\xa9\",\"kind\":\"extension\","
        "\"file\":\"sub/x.so\",\"version\":\"1\",\"license\":\"MIT\","
        "\"abi\":{\"oldest\":\"0.1\",\"newest\":\"0.1\"},\"later\":{\"a\":[1,2]}}";
    burni_manifest m;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_manifest_parse(text, sizeof(text) - 1, &m, &err), BURN_OK);
    assert_int_equal(m.priority, 0);
    assert_int_equal(m.n_needs, 0);
    assert_string_equal(m.devices, "");
    assert_string_equal(m.file, "sub/x.so");
}

static void each_mistake_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        char text[1024];
        replace(text, sizeof(text), mistakes[i].piece, mistakes[i].instead);
        burni_manifest m;
        burn_err err = BURN_ERR_INIT;
        int32_t code = burni_manifest_parse(text, strlen(text), &m, &err);
        if (code >= 0) {
            fail_msg("taken: %s", text);
        }
        assert_int_equal(code, err.code);
        world_expect(err.text, mistakes[i].message);
    }
}

static void bombs_are_refused_before_they_are_parsed(void **state)
{
    (void)state;
    burni_manifest m;
    burn_err err = BURN_ERR_INIT;
    static char big[BURNI_MANIFEST_BYTES + 1];
    memset(big, '[', sizeof(big));
    assert_int_equal(burni_manifest_parse(big, sizeof(big), &m, &err), BURN_E_LIMIT);
    world_expect(err.text, "more than 65536 bytes");
    assert_int_equal(burni_manifest_parse(big, sizeof(big) - 1, &m, &err), BURN_E_LIMIT);
    world_expect(err.text, "deeper than 8 levels");
    memset(big, ' ', sizeof(big));
    assert_int_equal(burni_manifest_parse(big, sizeof(big) - 1, &m, &err), BURN_E_FORMAT);
    assert_int_equal(burni_manifest_parse("", 0, &m, &err), BURN_E_FORMAT);
    world_expect(err.text, "is empty");
    assert_int_equal(burni_manifest_parse("[]", 2, &m, &err), BURN_E_FORMAT);
    world_expect(err.text, "must be a JSON object");
    assert_int_equal(burni_manifest_parse("\"\\", 2, &m, &err), BURN_E_FORMAT);
    /* Raw NUL bytes end nothing, and a file that is all keys is an answer too. */
    static const char nul[] = "{\"format\":1,\"id\":\"a\0b\"}";
    assert_int_equal(burni_manifest_parse(nul, sizeof(nul) - 1, &m, &err), BURN_E_FORMAT);
    burni_text t;
    burni_text_init(&t, big, sizeof(big));
    burni_text_add(&t, "{");
    for (int i = 0; i < 7000; i++) {
        burni_text_add(&t, "\"%x\":%d,", (unsigned)i, i % 10);
    }
    burni_text_add(&t, "\"x\":1}");
    assert_int_equal(burni_manifest_parse(big, t.used, &m, &err), BURN_E_FORMAT);
    world_expect(err.text, "\"format\" must be");
    /* Brackets within strings are text. */
    static const char quoted[] = "{\"a\\\"[[[[[[[[[[\":1}";
    assert_int_equal(burni_manifest_parse(quoted, sizeof(quoted) - 1, &m, &err), BURN_E_FORMAT);
    world_expect(err.text, "\"format\"");
}

static int32_t read_file(const char *name, burn_err *err)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", world_dir, name);
    burni_manifest m;
    return burni_manifest_read(path, &m, err);
}

static void hostile_files(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/pipe.json", world_dir);
    assert_int_equal(mkfifo(path, 0644), 0);
    assert_int_equal(read_file("pipe.json", &err), BURN_E_FORMAT);
    world_expect(err.text, "not a regular file");
    (void)snprintf(path, sizeof(path), "%s/zero.json", world_dir);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_int_equal(read_file("zero.json", &err), BURN_E_FORMAT);
    (void)snprintf(path, sizeof(path), "%s/loop.json", world_dir);
    assert_int_equal(symlink("loop.json", path), 0);
    assert_int_equal(read_file("loop.json", &err), BURN_E_IO);
    world_expect(err.text, "cannot open the manifest");
    static char big[BURNI_MANIFEST_BYTES + 10];
    world_write("big.json", big, sizeof(big));
    assert_int_equal(read_file("big.json", &err), BURN_E_LIMIT);
    world_expect(err.text, "has 65546 bytes; at most 65536");
    world_write("loose.json", right, sizeof(right) - 1);
    (void)snprintf(path, sizeof(path), "%s/loose.json", world_dir);
    assert_int_equal(read_file("loose.json", &err), BURN_OK);
    assert_int_equal(chmod(path, 0646), 0);
    assert_int_equal(read_file("loose.json", &err), BURN_E_DENIED);
    world_expect(err.text, "can be written by every user");
}

/* A broken manifest stays in the list under its file's name, and hides no plugin of that name. */
static void broken_manifests_are_listed(void **state)
{
    (void)state;
    world_write("broken.json", "{", 1);
    world_write(".hidden.json", "{", 1);
    world_write("note.txt", "x", 1);
    world_plugin("good");
    assert_int_equal(burni_loader_count(), 2);
    const burni_plugin *p = burni_loader_find("broken");
    assert_non_null(p);
    assert_int_equal(p->state, BURNI_PLUGIN_BROKEN);
    assert_string_equal(p->kind, "");
    world_expect(p->reason, "broken.json: not valid JSON");
    world_expect(p->remedy, "correct the manifest");
    world_err e;
    assert_int_equal(burni_loader_open("broken", NULL, world_err_init(&e)), BURN_E_FORMAT);
    assert_int_equal(burni_loader_open("good", NULL, world_err_init(&e)), BURN_OK);
}

/* Build folders hold JSON files of other tools; a manifest that lacks one key is told. */
static void other_json_files_are_passed_over(void **state)
{
    (void)state;
    static const char list[] = "[{\"directory\":\"/b\",\"file\":\"a.c\"}]";
    static const char object[] = "{\"dependencies\":[1,2]}";
    static char big[BURNI_MANIFEST_BYTES + 10];
    memset(big, ' ', sizeof(big));
    big[0] = '[';
    world_write("compile_commands.json", list, sizeof(list) - 1);
    world_write("object.json", object, sizeof(object) - 1);
    world_write("big_list.json", big, sizeof(big));
    big[0] = '{';
    world_write("big.json", big, sizeof(big));
    static const char *const parts[] = {"format\":1", "id\":\"x\"", "kind\":\"backend\""};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char text[64];
        char name[32];
        int n = snprintf(text, sizeof(text), "{\"%s}", parts[i]);
        (void)snprintf(name, sizeof(name), "part%zu.json", i);
        world_write(name, text, (size_t)n);
    }
    assert_int_equal(burni_loader_count(), 4);
    assert_null(burni_loader_find("compile_commands"));
    assert_int_equal(burni_loader_find("big")->state, BURNI_PLUGIN_BROKEN);
    world_expect(burni_loader_find("part0")->reason, "\"id\" is missing");
    world_expect(burni_loader_find("part1")->reason, "\"format\" must be");
    world_expect(burni_loader_find("part2")->reason, "\"format\" must be");
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(a_right_manifest_is_read),
        LOADER_TEST(optional_and_unknown_keys),
        LOADER_TEST(each_mistake_is_named),
        LOADER_TEST(bombs_are_refused_before_they_are_parsed),
        LOADER_TEST(hostile_files),
        LOADER_TEST(broken_manifests_are_listed),
        LOADER_TEST(other_json_files_are_passed_over),
    };
    int failed = cmocka_run_group_tests_name("loader/manifest", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
