/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.h - an open device: the backend's table, its rows by op, its pool and its streams.
 *
 * Devices are opened once and live as long as the process. Rows are sorted by priority and indexed
 * by the op's dense index. A stream is where one thread's work on one device waits and runs.
 */
#ifndef BURN_CORE_EXEC_DEVICE_H
#define BURN_CORE_EXEC_DEVICE_H

#include "memory/pool.h"
#include "ops/registry.h"
#include "tensor/tensor.h"

#include <burn/backend.h>
#include <burn/plugin.h>
#include <burn/row.h>

typedef struct burni_rows {
    const burn_row **rows;
    uint32_t count;
    uint32_t key_dims; /* some row's state depends on dims: they are part of the key */
} burni_rows;

typedef struct burni_device {
    const burn_device_api *api;
    burn_backend_device *handle;
    burn_limits limits;
    int synchronous;
    _Atomic int closed; /* by burn_shutdown: the backend is not called any more */
    int host_memory;
    uint32_t index;
    uint32_t ordinal;
    char backend[64];
    char name[96];
    char reason[160];
    burn_device plain;
    burn_device autodiff;
    burni_rows rows[BURNI_MAX_OPS];
    burni_pool pool;
    pthread_mutex_t lock; /* streams, latched failure */
    struct burni_stream *streams;
    pthread_mutex_t fault_lock; /* looking at fault words */
    burni_cause *latched;
    struct burni_snapshot *snapshots; /* points that shared blocks wait for, newest first */
    uint64_t next_snapshot;
    uint32_t window;
    struct burni_device *next;
} burni_device;

/* All open devices, for walking. */
burni_device *burni_device_at(uint32_t index);
/* Rows of an extension, or of a plugin opened later, are added to every open device they serve. */
int32_t burni_device_add_rows(burni_device *device, const burn_row_set *set, burn_err *err);
/* Remembers the first failure until burn_sync, and logs it. */
void burni_device_latch(burni_device *device, burni_cause *cause);

/* What is wrong with BURN_WINDOW, if anything. */
int32_t burni_device_check_window(burn_err *err);

/* The core device behind a handle's string; opens it once. */
burn_device *burni_device_open(const char *string, burn_err *err);

#endif /* BURN_CORE_EXEC_DEVICE_H */
