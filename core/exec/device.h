/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.h - an open device: the backend's table, its rows by op, its pool and its streams.
 *
 * Devices are opened once and live as long as the process. Their rows are in rows.h, by the op's
 * dense index. A stream is where one thread's work on one device waits and runs.
 */
#ifndef BURN_CORE_EXEC_DEVICE_H
#define BURN_CORE_EXEC_DEVICE_H

#include "memory/pool.h"
#include "ops/registry.h"
#include "tensor/tensor.h"

#include <burn/backend.h>
#include <burn/plugin.h>
#include <burn/profile.h>
#include <burn/row.h>

struct burni_rows;

typedef struct burni_device {
    const burn_device_api *api;
    const burn_plugin *plugin;
    burn_backend_device *handle;
    const burn_profile_clock *clock; /* NULL: the backend offers none */
    const burn_many *many;           /* NULL: likewise */
    const burn_service *service;     /* what extensions' kernels may use; NULL: nothing */
    burn_limits limits;
    int synchronous;
    _Atomic int closed; /* by burn_shutdown: the backend is not called any more */
    _Atomic int forked; /* this process is a child of the one that opened it: nothing works there */
    int host_memory;
    uint32_t index;
    uint32_t ordinal;
    char backend[64];
    char name[96];
    char reason[160];
    burn_device plain;
    burn_device autodiff;
    _Atomic(struct burni_rows *) rows[BURNI_MAX_OPS]; /* by burni_op.index; see rows.h */
    _Atomic uint32_t rows_version;                    /* grows when lists are replaced */
    burni_pool pool;
    pthread_mutex_t lock; /* streams, latched failure */
    struct burni_stream *streams;
    pthread_mutex_t fault_lock; /* looking at fault words */
    burni_cause *latched;
    const struct burni_stream *latched_from; /* whose call failed */
    uint64_t latched_age;                    /* and which (burni_stream_age) */
    struct burni_fault *stuck_faults; /* under the fault lock; fault.c */
    struct burni_snapshot *snapshots; /* points that shared blocks wait for, newest first */
    uint64_t next_snapshot;
    uint32_t window;
    _Atomic uint32_t recompute; /* BURN_RECOMPUTE_*; rows_version grows when it changes */
    pthread_t opener;          /* the thread that opens it */
    struct burni_device *next; /* in the list of those that are being opened */
} burni_device;

/* Has the device been opened before a fork, and by the parent? Its threads are not here, so what is
 * waited for never comes: then this says so instead. A synchronous device goes on. */
int32_t burni_device_check_fork(const burni_device *device, burn_err *err);
/* All open devices, for walking. */
burni_device *burni_device_at(uint32_t index);
/* Held while a device or an extension becomes visible with its rows: one at a time. No plugin code
 * and no log callback runs under it; a backend's open, which may take long, runs before. */
void burni_devices_lock(void);
void burni_devices_unlock(void);
/* Remembers the first failure until burn_sync, and logs it. */
void burni_device_latch(burni_device *device, burni_cause *cause,
                        const struct burni_stream *stream, uint64_t age);

/* What is wrong with BURN_WINDOW, if anything. */
int32_t burni_device_check_window(burn_err *err);

/* The core device behind a handle's string; opens it once: who asks meanwhile waits for that, other
 * devices go on. A log callback of the opening that asks for the same device gets BURN_E_STATE. */
burn_device *burni_device_open(const char *string, burn_err *err);

#endif /* BURN_CORE_EXEC_DEVICE_H */
