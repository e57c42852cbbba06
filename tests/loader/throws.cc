// SPDX-License-Identifier: MIT OR Apache-2.0
//
// throws.cc - a backend in C++ whose entries throw, behind the SDK's guard: what is thrown must
// come out as an error that says so (test_throws.c). Which entry throws, and what, is chosen by the
// name of the library's own file, as in hostile.c.
//
// Exceptions of the standard library, of bad_alloc, and of a type that is no exception are kept
// apart by the guard. To add an entry: wrap its body as below, a row in test_throws.c.
#include "own_id.h"

#include <burn_sdk/plugin.h>

#include <cstring>
#include <new>
#include <stdexcept>

namespace {

char own_id[64];
burn_device_api device;
burn_plugin plugin;
const uint64_t layouts[] = BURN_LAYOUTS_INIT;
const burn_host *kept_host;

bool is(const char *name)
{
    return std::strcmp(own_id, name) == 0;
}

void maybe_throw(const char *entry)
{
    char name[80];
    std::snprintf(name, sizeof(name), "throws_%s", entry);
    if (is(name)) {
        throw std::runtime_error("the vendor's library gave up");
    }
    std::snprintf(name, sizeof(name), "throws_%s_memory", entry);
    if (is(name)) {
        throw std::bad_alloc();
    }
    std::snprintf(name, sizeof(name), "throws_%s_number", entry);
    if (is(name)) {
        throw 42;
    }
}

int32_t BURN_CALL dev_count(uint32_t *out, burn_err *err)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("count");
    *out = 1;
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(err)
}

int32_t BURN_CALL dev_probe(uint32_t, burn_device_info *out, burn_err *err)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("probe");
    out->kind = BURN_DEVICE_CPU;
    return BURN_OK;
    BURN_PLUGIN_GUARD_END(err)
}

int32_t BURN_CALL dev_open(uint32_t, const char *, burn_backend_device **, burn_err *err)
{
    BURN_PLUGIN_GUARD_BEGIN
    maybe_throw("open");
    return burn_plugin_fail(err, BURN_E_UNSUPPORTED, "nothing to open");
    BURN_PLUGIN_GUARD_END(err)
}

void never()
{
}

// Entries that no test calls; the loader only asks whether they are there.
template <typename entry> void fill(entry &slot)
{
    void (*const f)() = never;
    std::memcpy(&slot, &f, sizeof(f));
}

void build()
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    BURN_INIT(&device, burn_device_api);
    device.count = dev_count;
    device.probe = dev_probe;
    device.open = dev_open;
    fill(device.close);
    fill(device.limits);
    fill(device.alloc);
    fill(device.free);
    fill(device.queue_create);
    fill(device.queue_destroy);
    fill(device.copy_in);
    fill(device.copy_out);
    fill(device.copy_within);
    fill(device.fill);
    fill(device.signal);
    fill(device.wait);
    fill(device.reached);
    fill(device.host_wait);
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.device = &device;
    plugin.layouts = layouts;
    plugin.n_layouts = sizeof(layouts) / sizeof(layouts[0]);
}

} // namespace

BURN_PLUGIN_ENTRY(host_oldest, host_newest, host, err)
{
    find_own_id(own_id, sizeof(own_id));
    maybe_throw("query");
    build();
    return burn_plugin_answer(host_oldest, host_newest, host, &kept_host, &plugin, err);
}
