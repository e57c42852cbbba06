/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.h - which kernel rows serve an op on a device.
 *
 * A list never changes once it is seen: rows that come later make a new list, which takes the old
 * one's place at once, and the device's version grows; resolvers that see another version than
 * theirs forget what they knew (resolve.h). So no reader takes a lock. Old lists are kept: a reader
 * may still walk one. Order: priority, then the backend's own rows, then extensions by id, so that
 * it does not depend on what was loaded first. Changing rows is serial (burni_devices_lock).
 */
#ifndef BURN_CORE_EXEC_ROWS_H
#define BURN_CORE_EXEC_ROWS_H

#include "exec/device.h"

typedef struct burni_rows {
    const burn_row **rows;
    const char **owners; /* ids of extensions; "" for the backend itself */
    uint32_t count;
    uint32_t key_dims; /* some row's state depends on dims: they are part of the key */
    struct burni_rows *older;
} burni_rows;

/* Never NULL. [any] */
const burni_rows *burni_rows_of(const burni_device *device, const burni_op *op);

/* All rows of an extension against the ops that they serve, for whatever backend: what an open
 * device would refuse is refused without one. Errors name plugin, row and op. */
int32_t burni_rows_check(const burn_plugin *table, const char *owner, const burni_op_batch *staged,
                         burn_err *err);

/* New lists for one device, not visible yet. */
typedef struct burni_row_plan {
    burni_device *device;
    burni_rows *lists[BURNI_MAX_OPS];
} burni_row_plan;

/*
 * Plans to add a plugin's rows for the device's backend. `owner` is "" for the backend itself, else
 * the extension's id; `staged` are its ops, if they are not visible yet. A row set whose contract
 * the backend does not serve is left out: the reason goes to `note` (256 bytes).
 * Errors name plugin, row and op. On failure *out is NULL.
 */
int32_t burni_rows_plan(burni_device *device, const burn_plugin *table, const char *owner,
                        const burni_op_batch *staged, burni_row_plan **out, char *note,
                        burn_err *err);
/* Both end the plan (NULL allowed). */
void burni_rows_commit(burni_row_plan *plan);
void burni_rows_drop(burni_row_plan *plan);

/* All lists of a device that nobody has seen. */
void burni_rows_free(burni_device *device);

#endif /* BURN_CORE_EXEC_ROWS_H */
