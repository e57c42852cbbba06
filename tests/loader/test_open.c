/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_open.c - plugins that are wrong in one way each: every one is refused with its own message,
 * and the others still load. Also what is tolerated: newer and older plugins, missing options.
 *
 * One row per defect of stub.c: the id (the stub's name), the code, and what the reason must hold.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/alloc.h"
#include "base/log.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct expectation {
    const char *id;
    int32_t code;
    const char *reason;
    const char *remedy;
} expectation;

static const expectation broken[] = {
    {"wrong_magic", BURN_E_ABI, "mark 0x12345678 where 0x4e525542", "rebuild"},
    {"byte_order", BURN_E_ABI, "byte order is 0x04030201, ours 0x01020304", "rebuild"},
    {"pointer_bits", BURN_E_ABI, "pointers have 31 bits, ours 64", "rebuild"},
    {"sanitizer", BURN_E_ABI, "sanitizer 3 (unknown)", "same sanitizer"},
    {"layout_hash", BURN_E_ABI, "layout hash 000000000000002a for ABI 0.1, this library has",
     "rebuild"},
    {"layout_hash_old", BURN_E_ABI, "layout hash 000000000000002b for ABI 0.1", "rebuild"},
    {"newer_minor_alone", BURN_E_ABI, "it states no layout hash for ABI 0.1", "rebuild"},
    {"manifest_lies", BURN_E_ABI, "manifest says ABI 0.1 to 0.1, the library 0.1 to 0.2", "same"},
    {"wrong_major", BURN_E_ABI, "ABI 1.0 to 1.2, this library speaks 0.1 to 0.1", "update this"},
    {"too_new", BURN_E_ABI, "ABI 0.7 to 0.9, this library speaks 0.1 to 0.1", "update this"},
    {"short_table", BURN_E_ABI, "plugin's table states a size of 40 bytes", "rebuild"},
    {"garbage_table", BURN_E_ABI, "plugin's table states a size of 3735928559", "rebuild"},
    {"odd_table", BURN_E_ABI, "table is at an odd address", "rebuild"},
    {"table_flags", BURN_E_ABI, "its table has the flags 0x8", "update"},
    {"device_flags", BURN_E_ABI, "device table has the flags 0x8", "update"},
    {"garbage_device", BURN_E_ABI, "device table states a size of 268435456", "rebuild"},
    {"ragged_device", BURN_E_ABI, "device table states a size of 61", "rebuild"},
    {"short_device", BURN_E_ABI, "lacks required entries: signal, wait, reached, host_wait",
     "fill"},
    {"null_required", BURN_E_ABI, "lacks required entries: alloc, copy_in, host_wait", "fill"},
    {"wrong_id", BURN_E_ABI, "manifest says id \"wrong_id\", the library says \"another\"",
     "same package"},
    {"null_id", BURN_E_ABI, "manifest says id \"null_id\", the library says \"\"", "same package"},
    {"wrong_version", BURN_E_ABI, "version \"1.2.3\", the library says \"9.9.9\"", "same package"},
    {"no_device", BURN_E_ABI, "kind \"backend\", but the library has no device table", "kind"},
    {"ext_device", BURN_E_ABI, "kind \"extension\", but the library has a device table", "kind"},
    {"query_fails", BURN_E_UNSUPPORTED, "the plugin says: libdriver.so.1: version 3 is needed",
     "install the driver"},
    {"query_silent", BURN_E_INTERNAL, "refused without a reason", "vendor"},
    {"query_rude", BURN_E_INTERNAL, "the plugin says: ????", ""},
    {"row_no_launch", BURN_E_ABI, "row 1 (\"stub.mul\") of row set 0 has no launch", "rows"},
    {"row_no_name", BURN_E_ABI, "row 1 of row set 0 has no name", "rows"},
    {"row_no_op", BURN_E_ABI, "row 0 (\"stub.add\") of row set 0 serves no op", "rows"},
    {"row_size", BURN_E_ABI, "row 1 of row set 0 states a size of 7", "rebuild"},
    {"row_stride", BURN_E_ABI, "row set 0 states a stride of 3", "tables"},
    {"row_null", BURN_E_ABI, "row set 0 states 2 items but gives no address", "tables"},
    {"row_many", BURN_E_ABI, "row set 0 states 2147483647 items", "tables"},
    {"row_flags", BURN_E_ABI, "(\"stub.mul\") of row set 0 has the flags 0x40000001, of which this "
                              "library does not know 0x40000000", "clear the flag"},
    {"row_revision", BURN_E_ABI, "serves revisions 9 to 1", "rows"},
    {"row_foreign", BURN_E_ABI, "row set 0 of the backend \"row_foreign\" is for \"other\"",
     "extension"},
    {"row_no_backend", BURN_E_ABI, "row set 0 names no backend", "rows"},
    {"set_size", BURN_E_ABI, "a row set states a size of 0", "rebuild"},
    {"slot_null", BURN_E_ABI, "slots states 3 items but gives no address", "tables"},
    {"slot_many", BURN_E_ABI, "slots states 999 items; at most 64", "tables"},
    {"slot_rank", BURN_E_ABI, "slot 2 takes ranks 0 to 200", "rows"},
    {"slot_tie", BURN_E_ABI, "slot 2 has the dtype of operand 8, but there are 3 slots", "rows"},
    {"slot_align", BURN_E_ABI, "slot 0 wants an alignment of 2^60", "rows"},
    {"guard_operand", BURN_E_ABI, "guard 0 speaks of operand 5", "rows"},
    {"guard_null", BURN_E_ABI, "guards states 1 items but gives no address", "tables"},
    {"ext_op_id", BURN_E_ABI, "has the id 0x1; that of its name is 0x", "burn_op_id_from_name"},
    {"ext_op_name", BURN_E_ABI, "op 1 has no name", "definitions"},
    {"ext_op_infer", BURN_E_ABI, "has no infer function and is not pointwise", "definitions"},
    {"ext_op_roles", BURN_E_ABI, "roles states 3 items but gives no address", "tables"},
    {"ext_op_size", BURN_E_ABI, "op 0 states a size of 16", "rebuild"},
    {"ext_op_attrs", BURN_E_ABI, "9999 bytes of attributes; 256 is the most", "definitions"},
    {"ext_attr_out", BURN_E_ABI, "lies outside of the 16 bytes (offset 12, size 8)", "definitions"},
    {"ext_op_twice", BURN_E_ABI, "ops 0 and 1 are both \"stub.first", "definitions"},
};

#define N_BROKEN (sizeof(broken) / sizeof(broken[0]))

static void expect_refused(const expectation *x)
{
    world_err e;
    const burni_plugin *p = NULL;
    int32_t code = burni_loader_open(x->id, &p, world_err_init(&e));
    if (code != x->code) {
        fail_msg("%s: code %d, not %d: %s", x->id, code, x->code, e.err.text);
    }
    assert_null(p);
    p = burni_loader_find(x->id);
    assert_non_null(p);
    assert_int_equal(p->state, BURNI_PLUGIN_BROKEN);
    assert_int_equal(p->code, x->code);
    assert_null(p->table);
    world_expect(p->reason, x->reason);
    world_expect(p->remedy, x->remedy);
    world_expect(e.err.text, x->id);
    world_expect(e.err.text, x->reason);
    /* Asked again, it answers the same and does not call the plugin a second time. */
    assert_int_equal(burni_loader_open(x->id, NULL, NULL), x->code);
}

/* B232 and B240: each defect has a message of its own, and a healthy plugin beside them loads. */
static void b232_b240_each_defect_has_its_message(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BROKEN; i++) {
        world_plugin(broken[i].id);
    }
    world_plugin("good");
    for (size_t i = 0; i < N_BROKEN; i++) {
        expect_refused(&broken[i]);
    }
    const burni_plugin *good = NULL;
    world_err e;
    assert_int_equal(burni_loader_open("good", &good, world_err_init(&e)), BURN_OK);
    assert_int_equal(good->state, BURNI_PLUGIN_OPEN);
    assert_string_equal(good->reason, "");
    assert_int_equal(burni_loader_count(), N_BROKEN + 1);
    for (size_t i = 0; i < N_BROKEN; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(burni_loader_find(broken[i].id)->reason,
                                    burni_loader_find(broken[j].id)->reason);
        }
    }
}

static void expect_file(const char *id, int32_t code, const char *reason)
{
    const expectation x = {id, code, reason, ""};
    expect_refused(&x);
}

/* B230: what is no plugin says so, with its path, and what was tried stays in the list. */
static void b230_files_that_are_no_plugins(void **state)
{
    (void)state;
    static const char *const ids[] = {"empty", "text", "folder",  "missing", "foreign",
                                      "plain", "unmet", "borrowed", "cut", "half",
                                      "other"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        world_manifest(ids[i], "backend", "cpu", 1, "0.1");
    }
    world_write("empty.so", "", 0);
    world_write("text.so", "this is a text file, not a library\n", 35);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/folder.so", world_dir);
    assert_int_equal(mkdir(path, 0755), 0);
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    world_write("foreign.so", head, sizeof(head));
    /* Of this machine's width, but for another processor: rule 6, both values are named. */
    unsigned char other[64] = {0x7f, 'E', 'L', 'F', sizeof(void *) == 8 ? 2 : 1, 1, 1};
    other[18] = 0xf3;
    other[19] = 0x3f;
    world_write("other.so", other, sizeof(other));
    world_library("not_a_plugin.so", "plain.so");
    world_library("unmet.so", "unmet.so");
    world_library("borrowed.so", "borrowed.so");
    world_library("stub.so", "stub.so");
    world_library("stub.so", "cut.so");
    (void)snprintf(path, sizeof(path), "%s/cut.so", world_dir);
    assert_int_equal(truncate(path, 200), 0);
    world_library("stub.so", "half.so"); /* mapped as it is, reading it would be a SIGBUS */
    (void)snprintf(path, sizeof(path), "%s/half.so", world_dir);
    assert_int_equal(truncate(path, 5000), 0);
    expect_file("empty", BURN_E_FORMAT, "empty.so is empty");
    expect_file("text", BURN_E_FORMAT, "text.so is not a shared library");
    expect_file("folder", BURN_E_FORMAT, "folder.so is a directory");
    expect_file("missing", BURN_E_IO, "missing.so: No such file or directory");
    expect_file("foreign", BURN_E_FORMAT, "was built for another machine (ELF class 1");
    expect_file("other", BURN_E_FORMAT, "machine 16371; this process has class ");
    expect_file("plain", BURN_E_FORMAT, "plain.so has no symbol burn_plugin_query");
    expect_file("unmet", BURN_E_IO, "libgone.so: cannot open shared object file");
    expect_file("borrowed", BURN_E_DENIED, "its burn_plugin_query comes from another library");
    expect_file("cut", BURN_E_FORMAT, "cut.so is damaged or cut off (200 bytes, ");
    expect_file("half", BURN_E_FORMAT, "half.so is damaged or cut off (5000 bytes, ");
    for (uint32_t i = 0; i < burni_loader_count(); i++) {
        assert_int_equal(burni_loader_at(i)->state, BURNI_PLUGIN_BROKEN);
        assert_true(burni_loader_at(i)->reason[0] != '\0');
    }
}

/* What is no file must not hang, and what leads nowhere must say so. */
static void b230_special_files(void **state)
{
    (void)state;
    static const char *const ids[] = {"pipe", "zero", "loop", "dangling", "terminal"};
    static const char *const targets[] = {NULL, "/dev/zero", "loop.so", "/nowhere/x.so",
                                          "/dev/tty"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/%s.so", world_dir, ids[i]);
        world_manifest(ids[i], "backend", "cpu", 1, "0.1");
        assert_int_equal(targets[i] != NULL ? symlink(targets[i], path) : mkfifo(path, 0644), 0);
    }
    expect_file("pipe", BURN_E_FORMAT, "pipe.so is no regular file, not a shared library");
    expect_file("zero", BURN_E_FORMAT, "/dev/zero is no regular file, not a shared library");
    expect_file("loop", BURN_E_IO, "loop.so: Too many levels of symbolic links");
    expect_file("dangling", BURN_E_IO, "dangling.so: No such file or directory");
    /* Without a terminal it cannot be opened; with one it is no file. */
    world_err e;
    assert_true(burni_loader_open("terminal", NULL, world_err_init(&e)) < 0);
    world_expect(e.err.text, "/dev/tty");
}

static void expect_open(const char *id);

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    char path[512];
    world_plugin("secret");
    (void)snprintf(path, sizeof(path), "%s/secret.so", world_dir);
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() == 0) {
        expect_open("secret"); /* root reads everything */
    } else {
        expect_file("secret", BURN_E_IO, "cannot open");
    }
}

static void files_that_others_may_write_are_refused(void **state)
{
    (void)state;
    world_plugin("open_file");
    world_plugin("owned");
    world_plugin("via_link");
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/open_file.so", world_dir);
    assert_int_equal(chmod(path, 0666), 0);
    expect_file("open_file", BURN_E_DENIED, "can be written by every user (mode 0666)");
    if (geteuid() == 0) {
        (void)snprintf(path, sizeof(path), "%s/owned.so", world_dir);
        assert_int_equal(chown(path, 12345, 12345), 0);
        expect_file("owned", BURN_E_DENIED, "belongs to user 12345, not to root or to the current");
    }
    /* A link is followed, but what it leads to is held to the same rules. */
    char folder[256];
    world_folder("loose", folder, sizeof(folder));
    char target[512];
    (void)snprintf(target, sizeof(target), "%s/via_link.so", folder);
    (void)snprintf(path, sizeof(path), "%s/via_link.so", world_dir);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    expect_file("via_link", BURN_E_DENIED, "-loose: the folder can be written by every user");
}

static void expect_open(const char *id)
{
    world_err e;
    const burni_plugin *p = NULL;
    int32_t code = burni_loader_open(id, &p, world_err_init(&e));
    if (code != BURN_OK) {
        fail_msg("%s: %s", id, e.err.text);
    }
    assert_int_equal(p->state, BURNI_PLUGIN_OPEN);
    assert_non_null(p->table);
    assert_int_equal(p->table->struct_size, sizeof(burn_plugin));
}

/* B232: longer structs and a newer minor are no reason to refuse; only what is known is copied. */
static void b232_newer_plugins_are_taken(void **state)
{
    (void)state;
    static const char *const ids[] = {"newer_minor", "long_table", "long_device", "good"};
    for (size_t i = 0; i < 4; i++) {
        world_plugin(ids[i]);
        expect_open(ids[i]);
        const burn_plugin *t = burni_loader_find(ids[i])->table;
        assert_int_equal(t->device->struct_size, sizeof(burn_device_api));
        assert_int_equal(t->row_sets[0].n_rows, 2);
        assert_int_equal(t->row_sets[0].rows[1].slot_stride, sizeof(burn_slot));
        assert_int_equal(t->row_sets[0].rows[1].guards[0].multiple_of, 4);
        burni_loader_forget();
    }
}

/* B232: arrays of longer items are stepped by their stride and end up in items of our size. */
static void b232_longer_items_are_stepped_by_their_stride(void **state)
{
    (void)state;
    world_plugin("wide");
    world_plugin("ext_wide");
    expect_open("wide");
    expect_open("ext_wide");
    const burn_plugin *t = burni_loader_find("wide")->table;
    assert_int_equal(t->n_row_sets, 2);
    assert_int_equal(t->row_set_stride, sizeof(burn_row_set));
    const burn_row_set *set = &t->row_sets[1];
    assert_int_equal(set->contract, 2);
    assert_string_equal(set->backend, "wide");
    assert_int_equal(set->row_stride, sizeof(burn_row));
    assert_string_equal(set->rows[1].name, "stub.mul");
    assert_int_equal(set->rows[1].struct_size, sizeof(burn_row));
    assert_int_equal(set->rows[1].slot_stride, sizeof(burn_slot));
    assert_int_equal(set->rows[1].slots[2].align_log2, 3);
    assert_int_equal(set->rows[1].guard_stride, sizeof(burn_guard));
    assert_int_equal(set->rows[1].guards[0].multiple_of, 4);
    const burn_plugin *x = burni_loader_find("ext_wide")->table;
    assert_int_equal(x->op_stride, sizeof(burn_op_def));
    assert_string_equal(x->ops[1].name, "stub.secondext_wide");
    assert_int_equal(x->ops[1].role_stride, sizeof(burn_role));
    assert_string_equal(x->ops[1].roles[2].name, "out");
    assert_string_equal(x->ops[1].attrs[0].name, "axis");
}

static void b232_manifests_out_of_range_are_not_opened(void **state)
{
    (void)state;
    world_library("stub.so", "future.so");
    static const char text[] =
        "{\"format\":1,\"id\":\"future\",\"name\":\"F\",\"kind\":\"backend\","
        "\"file\":\"future.so\","
        "\"version\":\"1\",\"license\":\"MIT\",\"abi\":{\"oldest\":\"2.0\",\"newest\":\"2.4\"}}";
    world_write("future.json", text, sizeof(text) - 1);
    const burni_plugin *p = burni_loader_find("future");
    assert_non_null(p);
    assert_int_equal(p->state, BURNI_PLUGIN_BROKEN);
    world_expect(p->reason, "the manifest says ABI 2.0 to 2.4, this library speaks 0.1 to 0.1");
}

static void optional_entries_get_stubs(void **state)
{
    (void)state;
    world_plugin("no_optional");
    expect_open("no_optional");
    const burn_device_api *d = burni_loader_find("no_optional")->table->device;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(d->memory_info(NULL, NULL, NULL, &err), BURN_E_UNSUPPORTED);
    world_expect(err.text, "does not offer memory_info");
    assert_int_equal(d->import_host(NULL, NULL, 0, NULL, &err), BURN_E_UNSUPPORTED);
    assert_int_equal(d->map(NULL, NULL, NULL, &err), BURN_E_UNSUPPORTED);
    assert_int_equal(d->queue_flush(NULL, &err), BURN_E_UNSUPPORTED);
    assert_int_equal(d->copy_peer(NULL, NULL, 0, NULL, NULL, 0, 0, &err), BURN_E_UNSUPPORTED);
    assert_null(d->queue_native(NULL));
    assert_int_equal(d->lost(NULL), 0);
    d->unmap(NULL, NULL);
}

static char warned[512];

static void keep_warning(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)source;
    if (level == BURN_LOG_WARN) {
        (void)snprintf(warned, sizeof(warned), "%s", text);
    }
}

/* A slow plugin is waited for; how long it took is kept, and said when it is too long. */
static void the_time_of_opening_is_told(void **state)
{
    (void)state;
    world_plugin("slow");
    world_plugin("very_slow");
    burni_log_set(keep_warning, NULL, BURN_LOG_WARN);
    expect_open("slow");
    expect_open("very_slow");
    burni_log_set(NULL, NULL, 0);
    assert_true(burni_loader_find("slow")->open_ms >= 29.0);
    assert_true(burni_loader_find("very_slow")->open_ms >= 299.0);
    world_expect(warned, "very_slow: opening the plugin took ");
}

static void ops_are_compared_where_they_are_registered(void **state)
{
    (void)state;
    world_plugin("ext_same_a");
    world_plugin("ext_same_b");
    world_plugin("ext_other");
    assert_int_equal(burni_loader_list(NULL), BURN_OK);
    for (uint32_t i = 0; i < burni_loader_count(); i++) {
        (void)burni_loader_open(burni_loader_at(i)->id, NULL, NULL);
    }
    assert_int_equal(burni_loader_find("ext_same_a")->state, BURNI_PLUGIN_OPEN);
    assert_int_equal(burni_loader_find("ext_other")->state, BURNI_PLUGIN_OPEN);
    assert_int_equal(burni_loader_find("ext_other")->table->n_ops, 2);
    assert_int_equal(burni_loader_find("ext_same_b")->state, BURNI_PLUGIN_OPEN);
    uint32_t n = 0;
    world_err e;
    assert_int_equal(burni_loader_device_count("ext_other", &n, world_err_init(&e)),
                     BURN_E_INVALID);
    world_expect(e.err.text, "is an extension");
}

static int n_shutdown;
static int n_second;
static int n_reentered;

static void count_lines(void *user, int32_t level, const char *source, const char *text)
{
    (void)user;
    (void)level;
    n_shutdown += strcmp(text, "shutdown") == 0;
    n_second += strcmp(text, "second shutdown") == 0;
    if (strcmp(source, "busy_host") == 0 && strcmp(text, "hello") == 0) {
        /* A callback that comes back while the plugin is being opened: an error, no deadlock. */
        n_reentered += burni_loader_open("busy_host", NULL, NULL) == BURN_E_STATE;
    }
}

/* B238: shutdown is called once per open plugin, and nothing can be used after it. */
static void b238_shutdown_happens_once(void **state)
{
    (void)state;
    world_plugin("one");
    world_plugin("two");
    world_plugin("never_opened");
    expect_open("one");
    expect_open("two");
    n_shutdown = 0;
    n_second = 0;
    burni_log_set(count_lines, NULL, BURN_LOG_DEBUG);
    burni_loader_shutdown();
    burni_loader_shutdown();
    burni_log_set(NULL, NULL, 0);
    assert_int_equal(n_shutdown, 2);
    assert_int_equal(n_second, 0);
    world_err e;
    assert_int_equal(burni_loader_open("never_opened", NULL, world_err_init(&e)), BURN_E_STATE);
    world_expect(e.err.text, "shut down");
}

static void a_plugin_may_use_the_host_while_it_is_opened(void **state)
{
    (void)state;
    world_plugin("busy_host");
    world_plugin("other");
    expect_open("other");
    n_reentered = 0;
    burni_log_set(count_lines, NULL, BURN_LOG_DEBUG);
    expect_open("busy_host");
    burni_log_set(NULL, NULL, 0);
    assert_int_equal(n_reentered, 1);
    uint32_t n = 0;
    assert_int_equal(burni_loader_device_count("busy_host", &n, NULL), BURN_OK);
    assert_int_equal(n, 1);
}

/* Opening after a failed allocation works: the n-th one fails, for each n. */
static void failed_allocations_leave_no_trace(void **state)
{
    (void)state;
    world_plugin("ext_frugal");
    world_plugin("frugal");
    int failures = 0;
    for (int64_t i = 1; i < 200; i++) {
        burni_alloc_fail_after(i);
        uint32_t n = 0;
        int32_t a = burni_loader_open("ext_frugal", NULL, NULL);
        int32_t b = burni_loader_device_count("frugal", &n, NULL);
        int64_t used = burni_alloc_count();
        burni_alloc_fail_after(0);
        if (a == BURN_OK && b == BURN_OK && used < i) {
            break;
        }
        failures++;
        assert_true(a == BURN_OK || a == BURN_E_NO_MEMORY || a == BURN_E_NOT_FOUND);
        assert_true(b == BURN_OK || b == BURN_E_NO_MEMORY || b == BURN_E_NOT_FOUND);
        expect_open("ext_frugal");
        assert_int_equal(burni_loader_device_count("frugal", &n, NULL), BURN_OK);
        assert_int_equal(n, 1);
        burni_loader_forget();
    }
    assert_true(failures > 20);
}

#define LOADER_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOADER_TEST(b232_b240_each_defect_has_its_message),
        LOADER_TEST(b230_files_that_are_no_plugins),
        LOADER_TEST(b230_special_files),
        LOADER_TEST(files_that_cannot_be_read),
        LOADER_TEST(files_that_others_may_write_are_refused),
        LOADER_TEST(b232_newer_plugins_are_taken),
        LOADER_TEST(b232_longer_items_are_stepped_by_their_stride),
        LOADER_TEST(b232_manifests_out_of_range_are_not_opened),
        LOADER_TEST(optional_entries_get_stubs),
        LOADER_TEST(the_time_of_opening_is_told),
        LOADER_TEST(ops_are_compared_where_they_are_registered),
        LOADER_TEST(b238_shutdown_happens_once),
        LOADER_TEST(a_plugin_may_use_the_host_while_it_is_opened),
        LOADER_TEST(failed_allocations_leave_no_trace),
    };
    int failed = cmocka_run_group_tests_name("loader/open", tests, NULL, NULL);
    world_remove_all();
    return failed;
}
