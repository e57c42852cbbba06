/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile_lane.h - one lane of a profile: its block, in memory or in a mapped file, and the way
 * from a hash to an entry.
 *
 * A lane has one writer at a time, and is never freed. Only profile.c uses this. The block's form
 * is public (<burn/profile.h>); what stands here beside it is the process's own.
 */
#ifndef BURN_CORE_EXEC_PROFILE_LANE_H
#define BURN_CORE_EXEC_PROFILE_LANE_H

#include "tensor/tensor.h"

#include <burn/profile.h>
#include <pthread.h>

#define BURNI_NO_ENTRY UINT32_MAX

/* A launch whose times are not known yet. */
typedef struct burni_open_launch {
    uint64_t start_ns;
    uint64_t point;
    uint32_t entry;
    uint32_t thread;
    uint32_t failed; /* only its slot is to be read */
    uint32_t zero;
} burni_open_launch;

typedef struct burni_lane_slot {
    uint64_t hash;
    uint32_t entry; /* 1 + its index */
    uint32_t zero;
} burni_lane_slot;

typedef struct burni_begun_place {
    uint64_t tag;
    uint64_t start_ns;
} burni_begun_place;

typedef struct burni_lane {
    burn_profile_lane *head;
    burn_profile_entry *entries;
    burn_profile_event *events;
    burni_lane_slot *slots;
    /* Of places: where the thread is, by depth; `idle`: its thread has ended. */
    burni_begun_place begun[BURNI_MAX_TAGS];
    int idle;
    /* Of asynchronous devices, under the lock: launches `done` to `taken`, at k % n_open. */
    pthread_mutex_t lock;
    burni_open_launch *open;
    uint32_t n_open;
    int ended; /* the queue is gone */
    uint64_t taken;
    uint64_t done;
} burni_lane;

/* A lane in file number `number` of the folder, or in memory (NULL). With room for n_open launches
 * whose times are not known yet. */
burni_lane *burni_lane_new(const char *folder, uint32_t number, uint32_t kind, uint32_t clock,
                           uint32_t n_open, burn_err *err);
/* The entry of a hash; BURNI_NO_ENTRY when there is no room. *is_new: its texts are wanted. */
uint32_t burni_lane_entry(burni_lane *lane, uint64_t hash, int *is_new);
/* Counts an event and keeps it. */
void burni_lane_add(burni_lane *lane, uint32_t entry, uint32_t thread, uint64_t start_ns,
                    uint64_t end_ns);

#endif /* BURN_CORE_EXEC_PROFILE_LANE_H */
