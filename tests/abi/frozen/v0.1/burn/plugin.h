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
    /* A service that another loaded plugin offers by id ("flex.kernel/1"), or NULL. [init] */
    const void *(BURN_CALL *service)(const char *id);
} burn_host;

/* Rows that serve one backend. */
typedef struct burn_row_set {
    uint32_t struct_size;
    uint32_t contract; /* revision of the backend's own services that the kernels use, 0 = none */
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

#define BURN_LAYOUT_MIX(hash, x) (((hash) ^ (uint64_t)(x)) * UINT64_C(1099511628211))
/* Hash of the layouts that minor 1 froze; a constant expression on both sides. */
#define BURN_LAYOUT_HASH                                                                           \
    BURN_LAYOUT_MIX(                                                                               \
        BURN_LAYOUT_MIX(                                                                           \
            BURN_LAYOUT_MIX(                                                                       \
                BURN_LAYOUT_MIX(                                                                   \
                    BURN_LAYOUT_MIX(                                                               \
                        BURN_LAYOUT_MIX(UINT64_C(14695981039346656037), sizeof(burn_operand)),     \
                        sizeof(burn_call)),                                                        \
                    sizeof(burn_row)),                                                             \
                sizeof(burn_op_def)),                                                              \
            sizeof(burn_device_api)),                                                              \
        sizeof(burn_slot) + sizeof(burn_guard) * 16 + sizeof(burn_role) * 256)

/* clang-format off */
#define BURN_MAGIC_INIT                                                                            \
    { BURN_PLUGIN_MAGIC, UINT32_C(0x01020304), (uint32_t)(sizeof(void *) * 8), BURN_SANITIZER,     \
      BURN_ABI_OLDEST, BURN_ABI_CURRENT, BURN_LAYOUT_HASH }
/* clang-format on */

BURN_END_DECLS

#endif /* BURN_PLUGIN_H */
