/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stub.c - a plugin that is wrong in one way, chosen by the name of its own file.
 *
 * A test copies this library to <id>.so. The query finds that name, builds a table that is right,
 * and applies the row of `defects` with the name; a name without a row is a healthy plugin. Names
 * that begin with "ext" are extensions, all others backends. To add a defect: one small function
 * that breaks the table, one row, and one row of expectations in test_open.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "own_id.h"

#include <burn/op_list.h>
#include <burn/plugin.h>
#include <string.h>
#include <time.h>

/* Larger than the structs of this version, as a newer plugin's would be. */
static union {
    burn_plugin t;
    unsigned char room[sizeof(burn_plugin) + 64];
} plugin;
static union {
    burn_device_api t;
    unsigned char room[sizeof(burn_device_api) + 64];
} device;

static char own_id[64];
static burn_slot slots[3];
static burn_guard guards[1];
static burn_row rows[2];
static burn_row_set row_set;
static burn_role roles[3];
static burn_attr attrs[1];
static burn_op_def ops[2];
static uint32_t n_devices = 1;
static uint32_t device_kinds[2] = {BURN_DEVICE_CPU, BURN_DEVICE_CPU};
static int32_t count_code;
static int32_t probe_code;
static const char *bus = "";
static int only_once_is_on;
static int shutdowns;
static const burn_host *host;
static uint64_t layouts[] = BURN_LAYOUTS_INIT;

static int32_t fail(burn_err *err, int32_t code, const char *text)
{
    err->code = code;
    strncpy(err->text, text, sizeof(err->text) - 1);
    return code;
}

static int32_t BURN_CALL dev_count(uint32_t *out, burn_err *err)
{
    *out = n_devices;
    int32_t code = count_code;
    count_code = only_once_is_on ? BURN_E_STATE : count_code;
    return code == 0 ? BURN_OK : fail(err, code, "libdriver.so.1 is not there");
}

static int32_t BURN_CALL dev_probe(uint32_t ordinal, burn_device_info *out, burn_err *err)
{
    out->kind = device_kinds[ordinal % 2];
    memset(out->name, 'n', sizeof(out->name)); /* without an end: the host sees to that */
    strncpy(out->pci, bus, sizeof(out->pci) - 1);
    int32_t code = probe_code;
    probe_code = only_once_is_on ? BURN_E_STATE : probe_code;
    return code == 0 ? BURN_OK : fail(err, code, "the device does not answer");
}

static int32_t BURN_CALL dev_open(uint32_t ordinal, const char *options, burn_backend_device **out,
                                  burn_err *err)
{
    (void)ordinal;
    (void)options;
    (void)out;
    return fail(err, BURN_E_UNSUPPORTED, "a stub opens nothing");
}

/* Entries that no test calls: any function will do, since the loader only looks for NULL. */
static void never(void)
{
}

#define NEVER(entry) memcpy(&device.t.entry, &(void (*)(void)){never}, sizeof(void (*)(void)))

static void build_device(void)
{
    BURN_INIT(&device.t, burn_device_api);
    device.t.count = dev_count;
    device.t.probe = dev_probe;
    device.t.open = dev_open;
    NEVER(close);
    NEVER(limits);
    NEVER(memory_info);
    NEVER(alloc);
    NEVER(free);
    NEVER(import_host);
    NEVER(map);
    NEVER(unmap);
    NEVER(queue_create);
    NEVER(queue_destroy);
    NEVER(queue_flush);
    NEVER(queue_native);
    NEVER(copy_in);
    NEVER(copy_out);
    NEVER(copy_within);
    NEVER(copy_peer);
    NEVER(fill);
    NEVER(signal);
    NEVER(wait);
    NEVER(reached);
    NEVER(host_wait);
    NEVER(lost);
}

static int32_t BURN_CALL launch(const burn_call *call)
{
    (void)call;
    return BURN_OK;
}

static void build_rows(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        slots[i].dtypes[0] = ~UINT64_C(0);
        slots[i].layouts = BURN_LAYOUT_ANY;
        slots[i].rank_max = BURN_MAX_RANK;
    }
    slots[1].same_dtype_as = 1;
    guards[0].operand = 1;
    guards[0].dim = -1;
    guards[0].multiple_of = 4;
    for (uint32_t i = 0; i < 2; i++) {
        BURN_INIT(&rows[i], burn_row);
        rows[i].op = i == 0 ? BURN_OP_ADD : BURN_OP_MUL;
        rows[i].revision_min = 1;
        rows[i].revision_max = 1;
        rows[i].n_slots = 3;
        rows[i].slot_stride = (uint32_t)sizeof(burn_slot);
        rows[i].slots = slots;
        rows[i].name = i == 0 ? "stub.add" : "stub.mul";
        rows[i].launch = launch;
    }
    rows[1].guards = guards;
    rows[1].n_guards = 1;
    rows[1].guard_stride = (uint32_t)sizeof(burn_guard);
    BURN_INIT(&row_set, burn_row_set);
    row_set.backend = own_id;
    row_set.rows = rows;
    row_set.n_rows = 2;
    row_set.row_stride = (uint32_t)sizeof(burn_row);
    plugin.t.row_sets = &row_set;
    plugin.t.n_row_sets = 1;
    plugin.t.row_set_stride = (uint32_t)sizeof(burn_row_set);
}

static int32_t BURN_CALL infer(const burn_infer *a)
{
    (void)a;
    return BURN_OK;
}

static void build_ops(void)
{
    static const char *const names[] = {"stub.first", "stub.second"};
    static char unique[2][80];
    roles[0].name = "x";
    roles[1].name = "y";
    roles[2].name = "out";
    attrs[0].name = "axis";
    attrs[0].type = BURN_ATTR_I64;
    attrs[0].offset = 8;
    attrs[0].size = 8;
    for (uint32_t i = 0; i < 2; i++) {
        BURN_INIT(&ops[i], burn_op_def);
        strcpy(unique[i], names[i]);
        if (strncmp(own_id, "ext_same", 8) != 0) {
            strcat(unique[i], own_id);
        }
        ops[i].name = unique[i];
        ops[i].id = burn_op_id_from_name(unique[i]);
        ops[i].n_in = 2;
        ops[i].n_out = 1;
        ops[i].roles = roles;
        ops[i].role_stride = (uint32_t)sizeof(burn_role);
        ops[i].attrs = attrs;
        ops[i].n_attrs = 1;
        ops[i].attr_stride = (uint32_t)sizeof(burn_attr);
        ops[i].attrs_size = 16;
        ops[i].infer = infer;
    }
    plugin.t.ops = ops;
    plugin.t.n_ops = 2;
    plugin.t.op_stride = (uint32_t)sizeof(burn_op_def);
}

static const void *BURN_CALL extension(const char *id)
{
    static const int service = 7;
    return strcmp(id, "stub.service/1") == 0 ? &service : NULL;
}

static void BURN_CALL stop(void)
{
    shutdowns++;
    if (shutdowns == 1) {
        host->log(BURN_LOG_INFO, own_id, "shutdown");
    } else {
        host->log(BURN_LOG_ERROR, own_id, "second shutdown");
    }
}

static void build(void)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    BURN_INIT(&plugin.t, burn_plugin);
    plugin.t.layouts = layouts;
    plugin.t.n_layouts = (uint32_t)(sizeof(layouts) / sizeof(layouts[0]));
    plugin.t.magic = magic;
    plugin.t.id = own_id;
    plugin.t.version = "1.2.3";
    plugin.t.extension = extension;
    plugin.t.shutdown = stop;
    if (strncmp(own_id, "ext", 3) == 0) {
        build_ops();
    } else {
        build_device();
        build_rows();
        plugin.t.device = &device.t;
    }
}

#define MAGIC_DEFECT(name, field, value)                                                           \
    static void name(void)                                                                         \
    {                                                                                              \
        plugin.t.magic.field = value;                                                              \
    }
#define DEFECT(name, target, value)                                                                \
    static void name(void)                                                                         \
    {                                                                                              \
        target = value;                                                                            \
    }

MAGIC_DEFECT(wrong_magic, magic, 0x12345678)
MAGIC_DEFECT(byte_order, byte_order, 0x04030201)
MAGIC_DEFECT(pointer_bits, pointer_bits, 31)
MAGIC_DEFECT(sanitizer, sanitizer, 3)
DEFECT(layout_hash, layouts[BURN_ABI_MINOR], 42)
MAGIC_DEFECT(manifest_lies, abi_newest, BURN_ABI_VERSION(0, 2))
MAGIC_DEFECT(newer_minor, abi_newest, BURN_ABI_VERSION(0, 2))
DEFECT(short_table, plugin.t.struct_size, 40)
DEFECT(garbage_table, plugin.t.struct_size, 0xdeadbeefu)
DEFECT(long_table, plugin.t.struct_size, (uint32_t)sizeof(plugin))
DEFECT(table_flags, plugin.t.flags, 8)
DEFECT(device_flags, device.t.flags, 8)
DEFECT(garbage_device, device.t.struct_size, 0x10000000u)
DEFECT(ragged_device, device.t.struct_size, 61)
DEFECT(short_device, device.t.struct_size, (uint32_t)offsetof(burn_device_api, signal))
DEFECT(long_device, device.t.struct_size, (uint32_t)sizeof(device))
DEFECT(wrong_id, plugin.t.id, "another")
DEFECT(null_id, plugin.t.id, NULL)
DEFECT(wrong_version, plugin.t.version, "9.9.9")
DEFECT(no_device, plugin.t.device, NULL)
DEFECT(ext_device, plugin.t.device, &device.t)
DEFECT(row_no_launch, rows[1].launch, NULL)
DEFECT(row_no_name, rows[1].name, NULL)
DEFECT(row_no_op, rows[0].op, 0)
DEFECT(row_size, rows[1].struct_size, 7)
DEFECT(row_stride, row_set.row_stride, 3)
DEFECT(row_null, row_set.rows, NULL)
DEFECT(row_many, row_set.n_rows, 0x7fffffffu)
DEFECT(row_revision, rows[0].revision_min, 9)
DEFECT(row_flags, rows[1].flags, BURN_ROW_DETERMINISTIC | 0x40000000u)
DEFECT(row_foreign, row_set.backend, "other")
DEFECT(row_no_backend, row_set.backend, NULL)
DEFECT(set_size, row_set.struct_size, 0)
DEFECT(slot_null, rows[0].slots, NULL)
DEFECT(slot_many, rows[0].n_slots, 999)
DEFECT(slot_rank, slots[2].rank_max, 200)
DEFECT(slot_tie, slots[2].same_dtype_as, 9)
DEFECT(slot_align, slots[0].align_log2, 60)
DEFECT(guard_operand, guards[0].operand, 5)
DEFECT(guard_null, rows[1].guards, NULL)
DEFECT(ext_op_id, ops[0].id, 1)
DEFECT(ext_op_name, ops[1].name, NULL)
DEFECT(ext_op_infer, ops[0].infer, NULL)
DEFECT(ext_op_roles, ops[0].roles, NULL)
DEFECT(ext_op_size, ops[0].struct_size, 16)
DEFECT(ext_op_attrs, ops[0].attrs_size, 9999)
DEFECT(ext_attr_out, attrs[0].offset, 12)
DEFECT(count_fails, count_code, BURN_E_UNSUPPORTED)
DEFECT(probe_fails, probe_code, BURN_E_DEVICE)
DEFECT(only_once, only_once_is_on, 1)
DEFECT(no_devices, n_devices, 0)
DEFECT(twin_a, bus, "0000:03:00.0")
DEFECT(twin_b, bus, "0000:03:00.0")
DEFECT(twin_far, bus, "0000:04:00.0")
DEFECT(many_devices, n_devices, 70000)
DEFECT(discrete, device_kinds[0], BURN_DEVICE_DISCRETE)
DEFECT(integrated, device_kinds[0], BURN_DEVICE_INTEGRATED)
DEFECT(virtual_one, device_kinds[0], BURN_DEVICE_VIRTUAL)

static void wrong_major(void)
{
    plugin.t.magic.abi_oldest = BURN_ABI_VERSION(1, 0);
    plugin.t.magic.abi_newest = BURN_ABI_VERSION(1, 2);
}

static void too_new(void)
{
    plugin.t.magic.abi_oldest = BURN_ABI_VERSION(0, 7);
    plugin.t.magic.abi_newest = BURN_ABI_VERSION(0, 9);
}

static void null_required(void)
{
    device.t.alloc = NULL;
    device.t.copy_in = NULL;
    device.t.host_wait = NULL;
}

static void no_optional(void)
{
    device.t.memory_info = NULL;
    device.t.import_host = NULL;
    device.t.map = NULL;
    device.t.unmap = NULL;
    device.t.queue_flush = NULL;
    device.t.queue_native = NULL;
    device.t.copy_peer = NULL;
    device.t.lost = NULL;
}

static void ext_op_twice(void)
{
    ops[1].name = ops[0].name;
    ops[1].id = ops[0].id;
}

/* As the first headers had it: one hash, in the magic block. */
static void layout_hash_old(void)
{
    plugin.t.struct_size = (uint32_t)offsetof(burn_plugin, layouts);
    plugin.t.magic.layout_hash = 43;
}

/* A newer plugin that does not say how the older minor looked. */
static void newer_minor_alone(void)
{
    plugin.t.magic.abi_newest = BURN_ABI_VERSION(0, 2);
    plugin.t.layouts = NULL;
}

static void mixed(void)
{
    n_devices = 2;
    device_kinds[0] = BURN_DEVICE_INTEGRATED;
    device_kinds[1] = BURN_DEVICE_DISCRETE;
}

/* Structs and strides of a newer version: each item is longer than the host knows it. */
typedef struct wide_slot {
    burn_slot known;
    uint64_t more;
} wide_slot;
typedef struct wide_guard {
    burn_guard known;
    uint64_t more;
} wide_guard;
typedef struct wide_row {
    burn_row known;
    uint64_t more[2];
} wide_row;
typedef struct wide_row_set {
    burn_row_set known;
    uint64_t more;
} wide_row_set;

static wide_slot wide_slots[3];
static wide_guard wide_guards[1];
static wide_row wide_rows[2];
static wide_row_set wide_sets[2];

static void wide(void)
{
    memset(wide_slots, 0xff, sizeof(wide_slots));
    memset(wide_rows, 0xff, sizeof(wide_rows));
    for (uint32_t i = 0; i < 3; i++) {
        wide_slots[i].known = slots[i];
        wide_slots[i].known.align_log2 = (uint8_t)(i + 1);
    }
    wide_guards[0].known = guards[0];
    for (uint32_t i = 0; i < 2; i++) {
        wide_rows[i].known = rows[i];
        wide_rows[i].known.struct_size = (uint32_t)sizeof(wide_row);
        wide_rows[i].known.slots = &wide_slots[0].known;
        wide_rows[i].known.slot_stride = (uint32_t)sizeof(wide_slot);
        wide_rows[i].known.guards = &wide_guards[0].known;
        wide_rows[i].known.guard_stride = (uint32_t)sizeof(wide_guard);
        wide_sets[i].known = row_set;
        wide_sets[i].known.struct_size = (uint32_t)sizeof(wide_row_set);
        wide_sets[i].known.rows = &wide_rows[0].known;
        wide_sets[i].known.row_stride = (uint32_t)sizeof(wide_row);
        wide_sets[i].known.contract = i + 1;
    }
    plugin.t.row_sets = &wide_sets[0].known;
    plugin.t.n_row_sets = 2;
    plugin.t.row_set_stride = (uint32_t)sizeof(wide_row_set);
}

typedef struct wide_role {
    burn_role known;
    uint64_t more;
} wide_role;
typedef struct wide_op {
    burn_op_def known;
    uint64_t more[3];
} wide_op;

static wide_role wide_roles[3];
static wide_op wide_ops[2];

static void ext_wide(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        wide_roles[i].known = roles[i];
        wide_roles[i].more = ~UINT64_C(0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        wide_ops[i].known = ops[i];
        wide_ops[i].known.struct_size = (uint32_t)sizeof(wide_op);
        wide_ops[i].known.roles = &wide_roles[0].known;
        wide_ops[i].known.role_stride = (uint32_t)sizeof(wide_role);
    }
    plugin.t.ops = &wide_ops[0].known;
    plugin.t.op_stride = (uint32_t)sizeof(wide_op);
}

static void slow(void)
{
    struct timespec t = {0, 30000000};
    (void)nanosleep(&t, NULL);
}

static void very_slow(void)
{
    struct timespec t = {0, 300000000};
    (void)nanosleep(&t, NULL);
}

/* Uses every service while it is being opened, itself included among those that are asked. */
static void busy_host(void)
{
    void *memory = host->alloc(100);
    host->free(memory);
    host->log(BURN_LOG_INFO, own_id, "hello");
    int fine = host->thread_budget() > 0 && host->service("stub.service/9") == NULL &&
               host->option("NOT_SET_BY_ANYBODY") == NULL && host->abi == BURN_ABI_CURRENT;
    n_devices = fine ? 1 : 0;
}

typedef struct defect {
    const char *name;
    void (*apply)(void);
} defect;

#define ROW(name) {#name, name}
static const defect defects[] = {
    ROW(wrong_magic),    ROW(byte_order),    ROW(pointer_bits),  ROW(sanitizer),
    ROW(layout_hash),    ROW(layout_hash_old),
    ROW(newer_minor_alone), ROW(manifest_lies), ROW(newer_minor),   ROW(short_table),
    ROW(garbage_table),  ROW(long_table),    ROW(table_flags),   ROW(device_flags),
    ROW(garbage_device), ROW(ragged_device), ROW(short_device),  ROW(long_device),
    ROW(wrong_id),       ROW(null_id),       ROW(wrong_version), ROW(no_device),
    ROW(ext_device),     ROW(row_no_launch), ROW(row_no_name),   ROW(row_no_op),
    ROW(row_size),       ROW(row_stride),    ROW(row_null),      ROW(row_many),
    ROW(row_revision),   ROW(row_foreign), ROW(row_flags),   ROW(row_no_backend), ROW(set_size),
    ROW(slot_null),      ROW(slot_many),     ROW(slot_rank),     ROW(slot_tie),
    ROW(slot_align),     ROW(guard_operand), ROW(guard_null),    ROW(ext_op_id),
    ROW(ext_op_name),    ROW(ext_op_infer),  ROW(ext_op_roles),  ROW(ext_op_size),
    ROW(ext_op_attrs),   ROW(ext_attr_out),  ROW(count_fails),   ROW(probe_fails),
    ROW(no_devices),     ROW(many_devices),  ROW(discrete),      ROW(integrated),
    ROW(virtual_one),    ROW(wrong_major),   ROW(too_new),       ROW(null_required),
    ROW(no_optional),    ROW(ext_op_twice),  ROW(mixed),         ROW(slow),
    ROW(busy_host),      ROW(wide),          ROW(ext_wide),      ROW(only_once),
    ROW(very_slow),      ROW(twin_a),        ROW(twin_b),        ROW(twin_far),
};

/* Defects of the query itself; NULL when the name is none of them. */
static const char *refuse(burn_err *err)
{
    if (strcmp(own_id, "query_fails") == 0) {
        (void)fail(err, BURN_E_UNSUPPORTED, "libdriver.so.1: version 3 is needed, 2 is there");
    } else if (strcmp(own_id, "query_rude") == 0) {
        err->code = 12345;
        err->cap = 99999;
        memset(err->text, 7, sizeof(err->text));
    } else if (strcmp(own_id, "query_silent") != 0) {
        return NULL;
    }
    return own_id;
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *given, burn_err *err)
{
    (void)host_oldest;
    (void)host_newest;
    host = given;
    find_own_id(own_id, sizeof(own_id));
    if (refuse(err) != NULL) {
        return NULL;
    }
    build();
    for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
        if (strcmp(defects[i].name, own_id) == 0) {
            defects[i].apply();
        }
    }
    if (strcmp(own_id, "odd_table") == 0) {
        return (const burn_plugin *)(const void *)(plugin.room + 1);
    }
    return &plugin.t;
}
