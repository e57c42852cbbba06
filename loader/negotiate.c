/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * negotiate.c - asks a plugin for its table and decides whether plugin and host speak alike.
 *
 * Ranges of ABI versions must share a major and overlap; the smaller newest minor is used. Then the
 * facts of the two builds are compared one by one, each with a message that names both values. All
 * of it happens before a single entry is called. Runs without the loader's lock. [init]
 *
 * Layout hashes: both sides carry those of all minors up to their own, and that of the negotiated
 * minor must be equal. With a new minor, plugin.h gets the hash of the one before as a number.
 */
#include "base/error.h"
#include "loader/entry.h"
#include "loader/lent.h"

#include <string.h>

#define MAJOR(version) ((version) >> 16)
#define MINOR(version) ((version)&0xffffu)

static const uint64_t own_layouts[] = BURN_LAYOUTS_INIT;
_Static_assert(sizeof(own_layouts) / sizeof(own_layouts[0]) == BURN_ABI_MINOR + 1,
               "BURN_LAYOUTS_INIT has one hash per minor");

/* Before burn_plugin had its table of hashes, the first headers of 0.1 stated this number in the
 * magic block, made of sizes alone; what they share with today's is laid out as it is today. Such
 * plugins exist for 64 bits only. */
#define FIRST_LAYOUT (sizeof(void *) == 8 ? UINT64_C(0x3d8d48e03bc652e5) : 0)

static const char *const sanitizers[] = {"none", "address", "thread"};

static const char *sanitizer_name(uint32_t kind)
{
    return kind < sizeof(sanitizers) / sizeof(sanitizers[0]) ? sanitizers[kind] : "unknown";
}

int32_t burni_check_range(burni_entry *e, const char *where, uint32_t oldest, uint32_t newest)
{
    const char *remedy = NULL;
    if (oldest > newest || MAJOR(oldest) != MAJOR(newest)) {
        remedy = "rebuild the plugin; its range of ABI versions makes no sense";
    } else if (oldest > BURN_ABI_CURRENT) {
        remedy = "update this library, or install an older plugin";
    } else if (newest < BURN_ABI_OLDEST || MAJOR(newest) != BURN_ABI_MAJOR) {
        remedy = "install or build a newer plugin";
    }
    if (remedy == NULL) {
        return BURN_OK;
    }
    return burni_entry_fail(e, BURN_E_ABI, remedy,
                            "%s says ABI %u.%u to %u.%u, this library speaks %u.%u to %u.%u", where,
                            MAJOR(oldest), MINOR(oldest), MAJOR(newest), MINOR(newest),
                            MAJOR(BURN_ABI_OLDEST), MINOR(BURN_ABI_OLDEST), MAJOR(BURN_ABI_CURRENT),
                            MINOR(BURN_ABI_CURRENT));
}

/* What a plugin says about a minor, 0 when nothing. Those of the first headers have no table. */
static uint64_t stated_layout(const burn_plugin *theirs, uint32_t version)
{
    int has_table = BURN_HAS(theirs, burn_plugin, n_layouts) && theirs->layouts != NULL &&
                    (uintptr_t)theirs->layouts % sizeof(uint64_t) == 0;
    if (has_table && MINOR(version) < theirs->n_layouts) {
        return theirs->layouts[MINOR(version)];
    }
    return version == theirs->magic.abi_newest ? theirs->magic.layout_hash : 0;
}

int32_t burni_check_layout(burni_entry *e, const burn_plugin *theirs, uint32_t version,
                           uint64_t ours)
{
    uint64_t stated = stated_layout(theirs, version);
    int is_first = version == BURN_ABI_VERSION(0, 1) && stated == FIRST_LAYOUT && stated != 0 &&
                   !BURN_HAS(theirs, burn_plugin, n_layouts);
    if (stated == ours || is_first) {
        return BURN_OK;
    }
    const char *remedy = "rebuild the plugin with this library's headers";
    if (stated == 0) {
        return burni_entry_fail(e, BURN_E_ABI, remedy,
                                "it states no layout hash for ABI %u.%u, this library has %016llx",
                                MAJOR(version), MINOR(version), (unsigned long long)ours);
    }
    return burni_entry_fail(e, BURN_E_ABI, remedy,
                            "its structs are laid out differently: layout hash %016llx for ABI "
                            "%u.%u, this library has %016llx",
                            (unsigned long long)stated, MAJOR(version), MINOR(version),
                            (unsigned long long)ours);
}

int32_t burni_check_magic(burni_entry *e, const burn_magic *theirs)
{
    static const burn_magic ours = BURN_MAGIC_INIT;
    const char *rebuild = "rebuild the plugin with the SDK's headers and flags";
    if (theirs->magic != ours.magic) {
        return burni_entry_fail(e, BURN_E_ABI, rebuild,
                                "its table has the mark 0x%08x where 0x%08x belongs", theirs->magic,
                                ours.magic);
    }
    if (theirs->byte_order != ours.byte_order) {
        return burni_entry_fail(e, BURN_E_ABI, rebuild, "its byte order is 0x%08x, ours 0x%08x",
                                theirs->byte_order, ours.byte_order);
    }
    if (theirs->pointer_bits != ours.pointer_bits) {
        return burni_entry_fail(e, BURN_E_ABI, rebuild, "its pointers have %u bits, ours %u",
                                theirs->pointer_bits, ours.pointer_bits);
    }
    if (theirs->sanitizer != ours.sanitizer) {
        return burni_entry_fail(e, BURN_E_ABI, "build both with the same sanitizer, or with none",
                                "it was built with sanitizer %u (%s), this library with %u (%s)",
                                theirs->sanitizer, sanitizer_name(theirs->sanitizer),
                                ours.sanitizer, sanitizer_name(ours.sanitizer));
    }
    return burni_check_range(e, "the plugin", theirs->abi_oldest, theirs->abi_newest);
}

static int32_t check_manifest(burni_entry *e, const burn_magic *theirs)
{
    const burni_manifest *m = &e->manifest;
    if (theirs->abi_oldest == m->abi_oldest && theirs->abi_newest == m->abi_newest) {
        return BURN_OK;
    }
    return burni_entry_fail(
        e, BURN_E_ABI, "install manifest and library from the same package",
        "its manifest says ABI %u.%u to %u.%u, the library %u.%u to %u.%u", MAJOR(m->abi_oldest),
        MINOR(m->abi_oldest), MAJOR(m->abi_newest), MINOR(m->abi_newest), MAJOR(theirs->abi_oldest),
        MINOR(theirs->abi_oldest), MAJOR(theirs->abi_newest), MINOR(theirs->abi_newest));
}

/* What the plugin wrote about its refusal; it may have written nothing, or anything. */
static int32_t refused(burni_entry *e, burn_err *said)
{
    said->text[sizeof(said->text) - 1] = '\0';
    int32_t code = said->code != BURN_OK ? burni_plugin_code(said->code) : BURN_E_INTERNAL;
    if (said->text[0] == '\0') {
        return burni_entry_fail(e, code, "ask the plugin's vendor",
                                "the plugin refused without a reason (%s)", burn_status_name(code));
    }
    return burni_entry_fail(e, code, burni_entry_hint(e, said->text), "the plugin says: %s",
                            said->text);
}

int32_t burni_query(burni_entry *e, burn_plugin_query_fn query)
{
    uint32_t newest = e->manifest.abi_newest;
    e->negotiated = newest < BURN_ABI_CURRENT ? newest : BURN_ABI_CURRENT;
    burni_host_init(&e->host, e->negotiated);
    burni_sink sink;
    burni_sink_begin(&sink);
    const burn_plugin *raw = query(BURN_ABI_OLDEST, BURN_ABI_CURRENT, &e->host, &sink.err);
    int32_t code =
        burni_lent_check(sink.guard, e->manifest.id, BURN_PLUGIN_SYMBOL, "burn_err", NULL);
    if (code != BURN_OK) {
        return burni_entry_fail(e, code, "rebuild the plugin with this library's headers",
                                "its " BURN_PLUGIN_SYMBOL " wrote past the end of burn_err");
    }
    if (raw == NULL) {
        return refused(e, &sink.err);
    }
    if ((uintptr_t)raw % _Alignof(burn_plugin) != 0) {
        return burni_entry_fail(e, BURN_E_ABI, "rebuild the plugin",
                                "its table is at an odd address");
    }
    code = burni_check_magic(e, &raw->magic);
    if (code == BURN_OK) {
        code = check_manifest(e, &raw->magic);
    }
    if (code == BURN_OK) {
        code = burni_check_layout(e, raw, e->negotiated, own_layouts[MINOR(e->negotiated)]);
    }
    if (code == BURN_OK) {
        e->raw = raw;
    }
    return code;
}
