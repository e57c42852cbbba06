/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.h - devices: picked by a string at run time, opened once, alive as long as the process.
 *
 * A string is `auto`, `flex`, `cuda:0`, `mock:1?key=value`, each with an optional `+autodiff`. NULL
 * means the environment variable BURN_DEVICE, and `auto` when that is unset. A device asked for by
 * name is that device or an error, never another one. Autodiff on a handle is a permission:
 * recording follows the operands, and two handles of one device are the same device. A child of
 * fork opens devices of its own: the threads of one that was open before are in the parent, and a
 * read fails with BURN_E_STATE (a device that runs each call at once, as flex, goes on).
 */
#ifndef BURN_DEVICE_H
#define BURN_DEVICE_H

#include <burn/backend.h>
#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

typedef struct burn_device burn_device;

/* Opens a device; the same string gives the same handle. NULL on failure. [any] */
BURN_API burn_device *burn_device_open(const char *string, burn_err *err);
/* The handle of the same device on which variables require gradients. Never fails. [any] */
BURN_API burn_device *burn_device_autodiff(burn_device *device);
/* The handle without that permission. [any] */
BURN_API burn_device *burn_device_inner(burn_device *device);
BURN_API int32_t burn_device_is_autodiff(const burn_device *device);
/* "flex:0", and why it was picked ("" when it was named). Valid as long as the device. [any] */
BURN_API const char *burn_device_name(const burn_device *device);
BURN_API const char *burn_device_reason(const burn_device *device);
BURN_API int32_t burn_device_describe(const burn_device *device, burn_device_info *out,
                                      burn_err *err);

/*
 * Runs all pending work of the calling thread on this device, waits for it, and returns and clears
 * the first failure that happened on the device since the last call. [any]
 */
BURN_API int32_t burn_sync(burn_device *device, burn_err *err);

/* Memory of a device in bytes. `in_use` is what live tensors occupy, `reserved` what was taken
 * from the backend, `peak_*` the highest so far; `limit` caps `reserved`, 0 = none. */
typedef struct burn_memory {
    uint32_t struct_size;
    uint32_t n_pages;
    uint64_t in_use;
    uint64_t reserved;
    uint64_t peak_in_use;
    uint64_t peak_reserved;
    uint64_t limit;
    uint64_t n_allocations; /* from the backend, since the start */
} burn_memory;

BURN_API int32_t burn_memory_report(const burn_device *device, burn_memory *out, burn_err *err);
/* Gives unused pages back to the backend. [any] */
BURN_API void burn_memory_trim(burn_device *device);
BURN_API void burn_memory_limit(burn_device *device, uint64_t bytes);

/*
 * Sets an option as BURN_<NAME> would; the name is without BURN_. NULL takes the value away. Set it
 * before the device is opened that reads it: where it has no effect any more it fails with
 * BURN_E_STATE. Wrong values of the library's own options are BURN_E_INVALID, unknown names
 * BURN_E_NOT_FOUND. CHECK may be set at any time, for the calling thread. [any]
 */
BURN_API int32_t burn_option_set(const char *name, const char *value, burn_err *err);

/* Sends log lines up to `level` (BURN_LOG_*) to a function; NULL stops. It must not call back. */
typedef void(BURN_CALL *burn_log_fn)(void *user, int32_t level, const char *source,
                                     const char *text);
BURN_API void burn_log_set(burn_log_fn fn, void *user, int32_t level);

/* Loads an extension plugin by id and registers its ops. [any] */
BURN_API int32_t burn_extension_load(const char *id, burn_err *err);

/* Finishes work and ends the threads of plugins. No tensor may be used afterwards. Idempotent. */
BURN_API void burn_shutdown(void);

BURN_END_DECLS

#endif /* BURN_DEVICE_H */
