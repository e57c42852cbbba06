/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * table.c - checks a plugin's tables and copies them into full-size structs of the loader.
 *
 * A plugin may be older (its structs are shorter, the rest is zero here) or newer (what lies beyond
 * our structs is never read). Sizes and strides have a floor, what the first version had, and a
 * ceiling against garbage. Every required entry that is missing is named in one message; optional
 * ones get a stub, so that nobody needs to test for NULL. Runs without the loader's lock. [init]
 *
 * To add a device entry: a row in DEVICE_ENTRIES, and a stub when it is optional.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "loader/entry.h"

#include <string.h>

#define SIZE_CEILING 65536u

/* What minor 1 of major 0 had: the least that any plugin may state. */
#define PLUGIN_FLOOR (offsetof(burn_plugin, shutdown) + sizeof(void *))
#define DEVICE_FLOOR offsetof(burn_device_api, count)

struct burni_block {
    burni_block *next;
    uint64_t align; /* keeps what follows aligned to 16 */
};

void *burni_entry_alloc(burni_entry *e, size_t count, size_t bytes)
{
    burni_block *block = NULL;
    if (count == 0 || bytes <= (SIZE_MAX - sizeof(*block)) / count) {
        block = burni_calloc(1, sizeof(*block) + count * bytes);
    }
    if (block == NULL) {
        (void)burni_entry_fail(e, BURN_E_NO_MEMORY, "free memory and try again",
                               "no memory for the plugin's tables");
        return NULL;
    }
    block->next = e->blocks;
    e->blocks = block;
    return block + 1;
}

void burni_entry_release(burni_entry *e)
{
    while (e->blocks != NULL) {
        burni_block *next = e->blocks->next;
        burni_free(e->blocks);
        e->blocks = next;
    }
}

int32_t burni_check_size(burni_entry *e, const char *what, uint64_t size, uint64_t floor,
                         uint64_t ceiling)
{
    if (size >= floor && size <= ceiling && size % sizeof(void *) == 0) {
        return BURN_OK;
    }
    return burni_entry_fail(e, BURN_E_ABI, "rebuild the plugin; BURN_INIT sets sizes",
                            "%s states a size of %llu bytes; %llu to %llu in steps of %zu are "
                            "possible",
                            what, (unsigned long long)size, (unsigned long long)floor,
                            (unsigned long long)ceiling, sizeof(void *));
}

int32_t burni_check_array(burni_entry *e, const char *what, const void *at, uint64_t count,
                          uint64_t max_count, uint64_t stride, uint64_t floor)
{
    if (count == 0) {
        return BURN_OK;
    }
    const char *remedy = "correct the plugin's tables";
    if (count > max_count) {
        return burni_entry_fail(e, BURN_E_ABI, remedy, "%s states %llu items; at most %llu are "
                                "possible", what, (unsigned long long)count,
                                (unsigned long long)max_count);
    }
    if (at == NULL || (uintptr_t)at % sizeof(void *) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, remedy, "%s states %llu items but %s", what,
                                (unsigned long long)count,
                                at == NULL ? "gives no address" : "gives an odd address");
    }
    if (stride < floor || stride > SIZE_CEILING || stride % sizeof(void *) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, remedy,
                                "%s states a stride of %llu bytes; %llu to %u in steps of %zu are "
                                "possible",
                                what, (unsigned long long)stride, (unsigned long long)floor,
                                SIZE_CEILING, sizeof(void *));
    }
    return BURN_OK;
}

static int32_t lacks(const char *entry, burn_err *err)
{
    return burni_fail(err, BURN_E_UNSUPPORTED, "the backend does not offer %s", entry);
}

static int32_t BURN_CALL no_memory_info(burn_backend_device *dev, uint64_t *out_free,
                                        uint64_t *out_total, burn_err *err)
{
    (void)dev;
    (void)out_free;
    (void)out_total;
    return lacks("memory_info", err);
}

static int32_t BURN_CALL no_import_host(burn_backend_device *dev, void *host, uint64_t bytes,
                                        burn_buffer **out, burn_err *err)
{
    (void)dev;
    (void)host;
    (void)bytes;
    (void)out;
    return lacks("import_host", err);
}

static int32_t BURN_CALL no_map(burn_backend_device *dev, burn_buffer *buffer, void **out_host,
                                burn_err *err)
{
    (void)dev;
    (void)buffer;
    (void)out_host;
    return lacks("map", err);
}

static void BURN_CALL no_unmap(burn_backend_device *dev, burn_buffer *buffer)
{
    (void)dev;
    (void)buffer;
}

static int32_t BURN_CALL no_queue_flush(burn_queue *queue, burn_err *err)
{
    (void)queue;
    return lacks("queue_flush", err);
}

static void *BURN_CALL no_queue_native(burn_queue *queue)
{
    (void)queue;
    return NULL;
}

static int32_t BURN_CALL no_copy_peer(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                                      burn_backend_device *src_dev, burn_buffer *src,
                                      uint64_t src_offset, uint64_t bytes, burn_err *err)
{
    (void)queue;
    (void)dst;
    (void)dst_offset;
    (void)src_dev;
    (void)src;
    (void)src_offset;
    (void)bytes;
    return lacks("copy_peer", err);
}

/* A code would read as "lost" where only 0 and 1 are asked for. */
static int32_t BURN_CALL no_lost(burn_backend_device *dev)
{
    (void)dev;
    return 0;
}

/* X(entry): those that a backend must fill. */
#define DEVICE_REQUIRED(X)                                                                         \
    X(count)                                                                                       \
    X(probe)                                                                                       \
    X(open)                                                                                        \
    X(close)                                                                                       \
    X(limits)                                                                                      \
    X(alloc)                                                                                       \
    X(free)                                                                                        \
    X(queue_create)                                                                                \
    X(queue_destroy)                                                                               \
    X(copy_in)                                                                                     \
    X(copy_out)                                                                                    \
    X(copy_within)                                                                                 \
    X(fill)                                                                                        \
    X(signal)                                                                                      \
    X(wait)                                                                                        \
    X(reached)                                                                                     \
    X(host_wait)

/* X(entry): those that it may leave out; the stub is no_<entry>. */
#define DEVICE_OPTIONAL(X)                                                                         \
    X(memory_info)                                                                                 \
    X(import_host)                                                                                 \
    X(map)                                                                                         \
    X(unmap)                                                                                       \
    X(queue_flush)                                                                                 \
    X(queue_native)                                                                                \
    X(copy_peer)                                                                                   \
    X(lost)

static const burn_device_api stubs = {
    .struct_size = (uint32_t)sizeof(burn_device_api),
#define STUB_ROW(entry) .entry = no_##entry,
    DEVICE_OPTIONAL(STUB_ROW)
#undef STUB_ROW
};

typedef struct device_entry {
    const char *name;
    size_t offset;
    int required;
} device_entry;

static const device_entry device_entries[] = {
#define REQUIRED_ROW(entry) {#entry, offsetof(burn_device_api, entry), 1},
#define OPTIONAL_ROW(entry) {#entry, offsetof(burn_device_api, entry), 0},
    DEVICE_REQUIRED(REQUIRED_ROW) DEVICE_OPTIONAL(OPTIONAL_ROW)
#undef REQUIRED_ROW
#undef OPTIONAL_ROW
};

/* Function pointers are compared and moved as bytes: all have one size, none is called here. */
static int is_null(const void *slot)
{
    static const unsigned char zeros[sizeof(void (*)(void))];
    return memcmp(slot, zeros, sizeof(zeros)) == 0;
}

static int32_t fill_device(burni_entry *e, burn_device_api *copy)
{
    char missing[400];
    burni_text t;
    burni_text_init(&t, missing, sizeof(missing));
    for (size_t i = 0; i < sizeof(device_entries) / sizeof(device_entries[0]); i++) {
        const device_entry *entry = &device_entries[i];
        unsigned char *slot = (unsigned char *)copy + entry->offset;
        if (!is_null(slot)) {
            continue;
        }
        if (entry->required) {
            burni_text_add(&t, "%s%s", t.used > 0 ? ", " : "", entry->name);
        } else {
            memcpy(slot, (const unsigned char *)&stubs + entry->offset, sizeof(void (*)(void)));
        }
    }
    if (t.used > 0) {
        return burni_entry_fail(e, BURN_E_ABI, "fill these entries of burn_device_api",
                                "its device table lacks required entries: %s", missing);
    }
    return BURN_OK;
}

static int32_t copy_device(burni_entry *e, const burn_device_api *raw, burn_plugin *plugin)
{
    if ((uintptr_t)raw % sizeof(void *) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, NULL, "its device table is at an odd address");
    }
    int32_t code =
        burni_check_size(e, "the device table", raw->struct_size, DEVICE_FLOOR, SIZE_CEILING);
    if (code != BURN_OK) {
        return code;
    }
    if (raw->flags != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "update this library",
                                "its device table has the flags 0x%x, of which this library knows "
                                "none",
                                raw->flags);
    }
    burn_device_api *copy = burni_entry_alloc(e, 1, sizeof(*copy));
    if (copy == NULL) {
        return BURN_E_NO_MEMORY;
    }
    size_t size = raw->struct_size < sizeof(*copy) ? raw->struct_size : sizeof(*copy);
    memcpy(copy, raw, size);
    copy->struct_size = (uint32_t)sizeof(*copy);
    plugin->device = copy;
    return fill_device(e, copy);
}

static int32_t check_id(burni_entry *e, const burn_plugin *raw)
{
    char id[64];
    burni_text_clean(id, sizeof(id), raw->id != NULL ? raw->id : "");
    if (raw->id == NULL || strcmp(raw->id, e->manifest.id) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "install manifest and library from the same package",
                                "its manifest says id \"%s\", the library says \"%s\"",
                                e->manifest.id, id);
    }
    char version[64];
    burni_text_clean(version, sizeof(version), raw->version != NULL ? raw->version : "");
    if (strcmp(version, e->manifest.version) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "install manifest and library from the same package",
                                "its manifest says version \"%s\", the library says \"%s\"",
                                e->manifest.version, version);
    }
    int is_backend = strcmp(e->manifest.kind, "backend") == 0;
    if (is_backend != (raw->device != NULL)) {
        return burni_entry_fail(e, BURN_E_ABI, "correct \"kind\" in the manifest",
                                "its manifest says kind \"%s\", but the library has %s",
                                e->manifest.kind,
                                is_backend ? "no device table" : "a device table");
    }
    return BURN_OK;
}

static int32_t copy_parts(burni_entry *e, const burn_plugin *raw, burn_plugin *copy)
{
    int32_t code = check_id(e, copy);
    copy->vendor = copy->vendor != NULL ? copy->vendor : "";
    copy->license = copy->license != NULL ? copy->license : "";
    if (code == BURN_OK && raw->device != NULL) {
        code = copy_device(e, raw->device, copy);
    }
    if (code == BURN_OK) {
        code = burni_copy_row_sets(e, raw, copy);
    }
    if (code == BURN_OK) {
        code = burni_copy_ops(e, raw, copy);
    }
    return code;
}

int32_t burni_copy_table(burni_entry *e, const burn_plugin **out)
{
    const burn_plugin *raw = e->raw;
    int32_t code =
        burni_check_size(e, "the plugin's table", raw->struct_size, PLUGIN_FLOOR, SIZE_CEILING);
    if (code != BURN_OK) {
        return code;
    }
    if (raw->flags != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "update this library",
                                "its table has the flags 0x%x, of which this library knows none",
                                raw->flags);
    }
    burn_plugin *copy = burni_entry_alloc(e, 1, sizeof(*copy));
    if (copy == NULL) {
        return BURN_E_NO_MEMORY;
    }
    size_t size = raw->struct_size < sizeof(*copy) ? raw->struct_size : sizeof(*copy);
    memcpy(copy, raw, size);
    copy->struct_size = (uint32_t)sizeof(*copy);
    code = copy_parts(e, raw, copy);
    if (code != BURN_OK) {
        burni_entry_release(e);
        return code;
    }
    *out = copy;
    return BURN_OK;
}
