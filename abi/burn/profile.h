/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile.h - how long kernels and places took, and the clock that a backend may offer for it.
 *
 * Collected from the start of the process with BURN_PROFILE=<absolute folder> (`burn profile` sets
 * it, and tells), or between burn_profile_begin and burn_profile_end. There is one lane for the
 * launches of each thread on each device, and one for the tags (<burn/trace.h>) of each thread that
 * has some. A lane is one block of bounded size: a head, `cap_entries` entries of which `n_entries`
 * are used, with exact totals, then a ring of the last `cap_events` events. In a folder it is the
 * file <pid>-<number>.burn, mapped, so that a crash loses nothing. Times are nanoseconds of
 * CLOCK_MONOTONIC; texts end with 0.
 */
#ifndef BURN_PROFILE_H
#define BURN_PROFILE_H

#include <burn/base.h>
#include <burn/call.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

#define BURN_PROFILE_MAGIC UINT64_C(0x31302d6672706e42) /* "Bnprf-01" */

/* What a lane has. */
enum {
    BURN_PROFILE_LAUNCHES = 1,
    BURN_PROFILE_PLACES = 2 /* from burn_tag_begin to burn_tag_end, what lies inside included */
};

/* What the times of a lane are. */
enum {
    BURN_PROFILE_HOST = 1,   /* the host's clock around the launch, which had finished then */
    BURN_PROFILE_DEVICE = 2, /* the device's clock (burn_profile_clock) */
    BURN_PROFILE_POINTS = 3  /* from the submission, or the end of the launch before, until the end
                                was noticed at a later launch or wait: at least what it took */
};

/* All launches of one kernel with the same sizes at the same place, or one place. */
typedef struct burn_profile_entry {
    uint64_t calls;
    uint64_t ns; /* the sum; the shortest and the longest */
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t flops; /* of one call; 0: the op does not say */
    uint64_t bytes; /* of one call: each operand's elements once */
    char op[48];    /* "" for a place */
    char row[64];
    char place[112];  /* the tag: "encoder.0" */
    char shapes[176]; /* as the kernel sees them: "f32[64,10], f32 scalar -> f32[64,10]" */
} burn_profile_entry;

typedef struct burn_profile_event {
    uint64_t start_ns;
    uint64_t ns;
    uint32_t entry;
    uint32_t thread; /* the system's id of the thread that launched */
} burn_profile_event;

typedef struct burn_profile_lane {
    uint64_t magic;
    uint32_t head_size; /* of this struct, of an entry, of an event */
    uint32_t entry_size;
    uint32_t event_size;
    uint32_t cap_entries;
    uint32_t cap_events;
    uint32_t n_entries;
    uint32_t kind;  /* BURN_PROFILE_LAUNCHES or _PLACES */
    uint32_t clock; /* BURN_PROFILE_HOST, ... */
    uint32_t pid;
    uint32_t thread;   /* that used it last */
    uint64_t n_events; /* event k is at k % cap_events; those before the last cap_events are gone */
    uint64_t busy_ns;  /* sum of all events, those that are gone included */
    uint64_t first_ns; /* start of the first, end of the last; 0: none yet */
    uint64_t last_ns;
    uint64_t untimed;  /* launches of which no time was to be had */
    uint64_t homeless; /* events that found no room among the entries; only their time counts */
    char device[96];   /* "flex:0"; "" for places */
    char program[48];
    uint64_t reserved[4];
} burn_profile_lane;

/* Starts collecting, in all threads; what was collected before stays. BURN_E_NO_MEMORY, BURN_E_IO.
 * [any] */
BURN_API int32_t burn_profile_begin(burn_err *err);
/* Stops. Waits for the calling thread's work first, so that it is in. [any] */
BURN_API void burn_profile_end(void);
/* Lane i, NULL after the last. It lives as long as the process, and changes while others work.
 * [any] */
BURN_API const burn_profile_lane *burn_profile_at(uint32_t i);

/* Entry i of a lane, or NULL. */
static inline const burn_profile_entry *burn_profile_entry_at(const burn_profile_lane *lane,
                                                              uint32_t i)
{
    const char *base = (const char *)lane + lane->head_size;
    return i < lane->n_entries
               ? (const burn_profile_entry *)(const void *)(base + (size_t)i * lane->entry_size)
               : NULL;
}

/* Event k of all that there were, or NULL when it is gone or was not yet. */
static inline const burn_profile_event *burn_profile_event_at(const burn_profile_lane *lane,
                                                              uint64_t k)
{
    const char *base =
        (const char *)lane + lane->head_size + (size_t)lane->cap_entries * lane->entry_size;
    if (k >= lane->n_events || lane->n_events - k > lane->cap_events) {
        return NULL;
    }
    return (const burn_profile_event *)(const void *)(base + (size_t)(k % lane->cap_events) *
                                                                 lane->event_size);
}

/*
 * What an asynchronous backend may offer as the option BURN_PROFILE_CLOCK of its plugin
 * (burn_plugin.extension): times of queued work. A queue has `n_slots` slots; the core uses one
 * again only after it was read. Costs nothing until the first `begin`.
 */
#define BURN_PROFILE_CLOCK "burn.profile/1"
typedef struct burn_profile_clock {
    uint32_t struct_size;
    uint32_t n_slots;
    /* Kernels that are put on the queue from here on, until `end`, belong to the slot. [queue] */
    int32_t(BURN_CALL *begin)(burn_queue *queue, uint32_t slot);
    int32_t(BURN_CALL *end)(burn_queue *queue, uint32_t slot);
    /* Start of the first and end of the last of them, as CLOCK_MONOTONIC would tell;
     * BURN_E_STATE: not finished. Does not wait. [any] */
    int32_t(BURN_CALL *read)(burn_queue *queue, uint32_t slot, uint64_t *out_start,
                             uint64_t *out_end);
} burn_profile_clock;

BURN_END_DECLS

#endif /* BURN_PROFILE_H */
