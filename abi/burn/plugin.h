/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugin.h - the one symbol that a plugin exports, and the table behind it.
 *
 * The loader calls `burn_plugin_query` with the range of ABI versions that the host speaks, the
 * host's services and a sink for errors. The plugin answers with a table that lives as long as the
 * process, or NULL and a reason. It is called once per process, before any other entry. [init]
 *
 * A backend fills `device` and rows for its own id. An extension fills `ops`, and rows for each
 * backend that it has kernels for. Anything else is an option, fetched by id.
 */
#ifndef BURN_PLUGIN_H
#define BURN_PLUGIN_H

#include <burn/backend.h>
#include <burn/base.h>
#include <burn/op_def.h>
#include <burn/row.h>
#include <burn/status.h>
#include <burn/version.h>

BURN_BEGIN_DECLS

#define BURN_PLUGIN_MAGIC UINT32_C(0x4e525542) /* "BURN" */

/* Facts of a build, compared before anything else is read. */
typedef struct burn_magic {
    uint32_t magic;
    uint32_t byte_order;  /* 0x01020304 as the build stores it */
    uint32_t pointer_bits;
    uint32_t sanitizer;   /* 0 none, 1 address, 2 thread */
    uint32_t abi_oldest;  /* versions that this side speaks */
    uint32_t abi_newest;
    uint64_t layout_hash; /* of minor abi_newest while the major is 0 */
} burn_magic;

enum { BURN_LOG_ERROR = 1, BURN_LOG_WARN = 2, BURN_LOG_INFO = 3, BURN_LOG_DEBUG = 4 };

/* What the host offers to a plugin. All entries are there. */
typedef struct burn_host {
    uint32_t struct_size;
    uint32_t abi; /* the negotiated version */
    /* Memory that the plugin frees with `free`; NULL when there is none. [any] */
    void *(BURN_CALL *alloc)(uint64_t bytes);
    void(BURN_CALL *free)(void *memory);
    /* One line of log, without newline. [any] */
    void(BURN_CALL *log)(int32_t level, const char *plugin, const char *text);
    /* Value of BURN_<NAME> or of an option set through the API, or NULL. [init] */
    const char *(BURN_CALL *option)(const char *name);
    /* How many threads a CPU backend may use: BURN_THREADS, else the cores it may run on. [any] */
    uint32_t(BURN_CALL *thread_budget)(void);
    /* A service that another open plugin offers by id ("flex.kernel/1"), or NULL: ask when a kernel
     * is prepared, not in the query, since plugins are opened in any order. [any] */
    const void *(BURN_CALL *service)(const char *id);
} burn_host;

/*
 * How every service begins. It serves kernels that were written for any of the revisions
 * contract_oldest .. contract. A backend offers its kernels' helpers as "<backend>.kernel/1".
 */
typedef struct burn_service {
    uint32_t struct_size;
    uint32_t contract;
    uint32_t contract_oldest;
    uint32_t zero;
} burn_service;

/* Rows that serve one backend. With a `contract` that the backend does not serve, they are left
 * out, with a warning, and decompositions serve. */
typedef struct burn_row_set {
    uint32_t struct_size;
    uint32_t contract; /* revision of "<backend>.kernel/1" that the kernels use, 0 = none */
    const char *backend;
    const burn_row *rows;
    uint32_t n_rows;
    uint32_t row_stride;
} burn_row_set;

typedef struct burn_plugin {
    uint32_t struct_size;
    uint32_t flags;
    burn_magic magic;
    const char *id;      /* as in the manifest and in device strings */
    const char *version; /* the plugin's own */
    const char *vendor;
    const char *license;
    const burn_device_api *device; /* NULL: not a backend */
    const burn_row_set *row_sets;
    const burn_op_def *ops; /* NULL: defines none */
    uint32_t n_row_sets;
    uint32_t row_set_stride;
    uint32_t n_ops;
    uint32_t op_stride;
    /* Options by id ("burn.graph/1"), or NULL. Optional. [any] */
    const void *(BURN_CALL *extension)(const char *id);
    /* Ends threads and closes what is open; called once, never followed by another call. [init] */
    void(BURN_CALL *shutdown)(void);
    /* layouts[m]: hash of minor m, for 0 to abi_newest. NULL: magic.layout_hash is all there is. */
    const uint64_t *layouts;
    uint32_t n_layouts;
    uint32_t zero;
} burn_plugin;

#define BURN_PLUGIN_SYMBOL "burn_plugin_query"
typedef const burn_plugin *(BURN_CALL *burn_plugin_query_fn)(uint32_t host_oldest,
                                                             uint32_t host_newest,
                                                             const burn_host *host, burn_err *err);

BURN_API const burn_plugin *BURN_CALL burn_plugin_query(uint32_t host_oldest, uint32_t host_newest,
                                                        const burn_host *host, burn_err *err);

#if defined(__SANITIZE_ADDRESS__)
#define BURN_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define BURN_SANITIZER 2
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BURN_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define BURN_SANITIZER 2
#endif
#endif
#ifndef BURN_SANITIZER
#define BURN_SANITIZER 0
#endif

/*
 * The layout hash of this minor. Its first part is a number of the structs' text (names, order,
 * types, offsets and sizes of all fields that host and plugins share), which `./dev golden` writes
 * and a test compares; the rest is how this build lays them out, since flags change that.
 */
#define BURN_LAYOUT_TEXT UINT64_C(0x15d87a7382652303)
#define BURN_LAYOUT_MIX(hash, x) (((hash) ^ (uint64_t)(x)) * UINT64_C(1099511628211))
#define BURN_LAYOUT_CALLS                                                                          \
    BURN_LAYOUT_MIX(                                                                               \
        BURN_LAYOUT_MIX(BURN_LAYOUT_TEXT, sizeof(burn_operand) + sizeof(burn_call) * 4096),        \
        sizeof(burn_row) + sizeof(burn_slot) * 4096 + sizeof(burn_guard) * 16777216)
#define BURN_LAYOUT_OPS                                                                            \
    BURN_LAYOUT_MIX(BURN_LAYOUT_CALLS, sizeof(burn_op_def) + sizeof(burn_role) * 4096 +            \
                                           sizeof(burn_sample) * 16777216)
#define BURN_LAYOUT_HASH                                                                           \
    BURN_LAYOUT_MIX(BURN_LAYOUT_OPS, sizeof(burn_device_api) + sizeof(burn_plugin) * 4096 +        \
                                         sizeof(burn_host) * 16777216)

/*
 * The hashes of minors 0 (which never was) to the current one, for an array that burn_plugin points
 * at; the host has the same. With a new minor the hash of the one before becomes a number here.
 */
#define BURN_LAYOUTS_INIT {0, BURN_LAYOUT_HASH}

/* clang-format off */
#define BURN_MAGIC_INIT                                                                            \
    { BURN_PLUGIN_MAGIC, UINT32_C(0x01020304), (uint32_t)(sizeof(void *) * 8), BURN_SANITIZER,     \
      BURN_ABI_OLDEST, BURN_ABI_CURRENT, BURN_LAYOUT_HASH }
/* clang-format on */

BURN_END_DECLS

#endif /* BURN_PLUGIN_H */
