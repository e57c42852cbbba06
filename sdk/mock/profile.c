/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * profile.c - the device's clock: when queued kernels began and ended, by slots (<burn/profile.h>).
 *
 * Between begin and end of a slot, each item that is queued belongs to it; the worker notes the
 * times around what it runs. Without a begin no clock is read. To port: begin and end record an
 * event of the driver each, read asks both, and converts its clock to the host's.
 */
#include "mock.h"

#include <time.h>

#define N_SLOTS 1024u

typedef struct time_slot {
    uint64_t start;
    uint64_t end;
    uint32_t waiting; /* items that were queued and did not run yet */
    int32_t closed;   /* no further ones come */
} time_slot;

struct mock_times {
    pthread_mutex_t lock;
    uint32_t current; /* 1 + the slot of items that are queued now, 0: none */
    uint32_t zero;
    time_slot slots[N_SLOTS];
};

mock_times *mock_times_new(void)
{
    mock_times *times = (mock_times *)mock_host->alloc(sizeof(*times));
    if (times != NULL) {
        memset(times, 0, sizeof(*times));
        (void)pthread_mutex_init(&times->lock, NULL);
    }
    return times;
}

void mock_times_drop(mock_times *times)
{
    if (times != NULL) {
        (void)pthread_mutex_destroy(&times->lock);
        mock_host->free(times);
    }
}

void mock_times_queued(mock_item *item)
{
    mock_times *times = mock_queue_times(item->queue);
    item->slot = times->current; /* entries of one queue are called one at a time */
    if (item->slot != 0) {
        (void)pthread_mutex_lock(&times->lock);
        times->slots[item->slot - 1].waiting++;
        (void)pthread_mutex_unlock(&times->lock);
    }
}

uint64_t mock_times_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void mock_times_ran(mock_times *times, uint32_t slot, uint64_t start, uint64_t end)
{
    (void)pthread_mutex_lock(&times->lock);
    time_slot *s = &times->slots[slot - 1];
    s->start = s->start == 0 ? start : s->start;
    s->end = end;
    s->waiting--;
    (void)pthread_mutex_unlock(&times->lock);
}

static int32_t begin(burn_queue *queue, uint32_t slot)
{
    mock_times *times = mock_queue_times(queue);
    if (slot >= N_SLOTS || times->current != 0) {
        return BURN_E_INVALID;
    }
    (void)pthread_mutex_lock(&times->lock);
    memset(&times->slots[slot], 0, sizeof(times->slots[slot]));
    (void)pthread_mutex_unlock(&times->lock);
    times->current = slot + 1;
    return BURN_OK;
}

static int32_t end(burn_queue *queue, uint32_t slot)
{
    mock_times *times = mock_queue_times(queue);
    if (times->current != slot + 1) {
        return BURN_E_INVALID;
    }
    times->current = 0;
    (void)pthread_mutex_lock(&times->lock);
    times->slots[slot].closed = 1;
    (void)pthread_mutex_unlock(&times->lock);
    return BURN_OK;
}

static int32_t read_slot(burn_queue *queue, uint32_t slot, uint64_t *out_start, uint64_t *out_end)
{
    mock_times *times = mock_queue_times(queue);
    if (slot >= N_SLOTS) {
        return BURN_E_INVALID;
    }
    (void)pthread_mutex_lock(&times->lock);
    const time_slot *s = &times->slots[slot];
    int32_t code = s->closed != 0 && s->waiting == 0 ? BURN_OK : BURN_E_STATE;
    *out_start = s->start;
    *out_end = s->end;
    (void)pthread_mutex_unlock(&times->lock);
    return code;
}

const burn_profile_clock mock_clock = {
    (uint32_t)sizeof(burn_profile_clock), N_SLOTS, begin, end, read_slot,
};
