/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * timeline.c - timeline points: a counter per queue that its own work moves and anybody may await.
 *
 * A timeline outlives its queue while queued work of another queue still waits for it, hence the
 * references. A lost device wakes all waiters with an error; failed work signals like other work.
 * To port: replace the condition variable by the driver's timeline semaphore or event.
 */
#include "mock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

mock_timeline *mock_timeline_new(void)
{
    mock_timeline *timeline = (mock_timeline *)mock_host->alloc(sizeof(*timeline));
    if (timeline == NULL) {
        return NULL;
    }
    memset(timeline, 0, sizeof(*timeline));
    timeline->references = 1;
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&timeline->lock, NULL);
    (void)pthread_cond_init(&timeline->moved, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return timeline;
}

void mock_timeline_hold(mock_timeline *timeline)
{
    (void)pthread_mutex_lock(&timeline->lock);
    timeline->references++;
    (void)pthread_mutex_unlock(&timeline->lock);
}

void mock_timeline_drop(mock_timeline *timeline)
{
    (void)pthread_mutex_lock(&timeline->lock);
    timeline->references--;
    int last = timeline->references == 0;
    (void)pthread_mutex_unlock(&timeline->lock);
    if (last) {
        (void)pthread_cond_destroy(&timeline->moved);
        (void)pthread_mutex_destroy(&timeline->lock);
        mock_host->free(timeline);
    }
}

void mock_timeline_move(mock_timeline *timeline, uint64_t value)
{
    (void)pthread_mutex_lock(&timeline->lock);
    if (value > timeline->reached) {
        timeline->reached = value;
    }
    (void)pthread_cond_broadcast(&timeline->moved);
    (void)pthread_mutex_unlock(&timeline->lock);
}

void mock_timeline_end(mock_timeline *timeline)
{
    (void)pthread_mutex_lock(&timeline->lock);
    timeline->ended = 1;
    (void)pthread_cond_broadcast(&timeline->moved);
    (void)pthread_mutex_unlock(&timeline->lock);
}

void mock_timeline_lose(mock_timeline *timeline)
{
    (void)pthread_mutex_lock(&timeline->lock);
    timeline->lost = 1;
    (void)pthread_cond_broadcast(&timeline->moved);
    (void)pthread_mutex_unlock(&timeline->lock);
}

static struct timespec deadline_after(uint64_t timeout_ns)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_nsec + timeout_ns % UINT64_C(1000000000);
    uint64_t seconds = timeout_ns / UINT64_C(1000000000) + nanoseconds / UINT64_C(1000000000);
    if (seconds > UINT64_C(1000000000)) {
        seconds = UINT64_C(1000000000); /* 30 years */
    }
    now.tv_sec += (time_t)seconds;
    now.tv_nsec = (long)(nanoseconds % UINT64_C(1000000000));
    return now;
}

/* The state that ends a wait, or BURN_E_END to go on waiting. Locked. */
static int32_t wait_state(const mock_timeline *timeline, uint64_t value)
{
    if (timeline->reached >= value) {
        return BURN_OK;
    }
    if (timeline->lost != 0) {
        return BURN_E_DEVICE_LOST;
    }
    return timeline->ended != 0 ? BURN_E_STATE : BURN_E_END;
}

static int is_waiting(mock_timeline *timeline, uint64_t value)
{
    (void)pthread_mutex_lock(&timeline->lock);
    int waiting = wait_state(timeline, value) == BURN_E_END;
    (void)pthread_mutex_unlock(&timeline->lock);
    return waiting;
}

int32_t mock_timeline_wait(mock_timeline *timeline, uint64_t value, uint64_t timeout_ns,
                           burn_err *err)
{
    /* Not where time is measured: on a busy machine a look takes as long as others like. */
    uint32_t looks = timeout_ns == UINT64_MAX ? MOCK_PATIENCE : 0;
    for (uint32_t k = 0; k < looks && is_waiting(timeline, value); k++) {
        (void)sched_yield();
    }
    struct timespec deadline = deadline_after(timeout_ns);
    int timed_out = 0;
    (void)pthread_mutex_lock(&timeline->lock);
    int32_t code = wait_state(timeline, value);
    while (code == BURN_E_END && !timed_out) {
        if (timeout_ns == UINT64_MAX) {
            (void)pthread_cond_wait(&timeline->moved, &timeline->lock);
        } else {
            timed_out = pthread_cond_timedwait(&timeline->moved, &timeline->lock, &deadline) ==
                        ETIMEDOUT;
        }
        code = wait_state(timeline, value);
    }
    uint64_t reached = timeline->reached;
    (void)pthread_mutex_unlock(&timeline->lock);
    if (code == BURN_OK) {
        return BURN_OK;
    }
    if (code == BURN_E_DEVICE_LOST) {
        return burn_plugin_fail(err, code, "mock: the device is lost");
    }
    return burn_plugin_fail(err, BURN_E_STATE, "mock: waited for point %llu, %llu is reached (%s)",
                            (unsigned long long)value, (unsigned long long)reached,
                            code == BURN_E_STATE ? "its queue is gone" : "time is over");
}

static void run_signal(mock_item *item)
{
    mock_timeline_move(mock_queue_timeline(item->queue), item->value);
}

int32_t mock_signal(burn_queue *queue, uint64_t value, burn_err *err)
{
    mock_item *item = NULL;
    int32_t code = mock_item_get(queue, &item, err);
    if (code == BURN_OK) {
        code = mock_queue_note_signal(queue, value, err); /* last: one that failed comes again */
    }
    if (code != BURN_OK) {
        if (item != NULL) {
            mock_item_drop(item);
        }
        return code;
    }
    item->run = run_signal;
    item->value = value;
    mock_item_push(item);
    return BURN_OK;
}

static void run_wait(mock_item *item)
{
    burn_err err = BURN_ERR_INIT;
    int32_t code = mock_timeline_wait(item->other, item->value, UINT64_MAX, &err);
    if (code == BURN_E_STATE) {
        mock_queue_misuse(item->queue, code, err.text);
    }
    mock_timeline_drop(item->other);
    item->other = NULL;
}

int32_t mock_wait(burn_queue *queue, burn_queue *other, uint64_t value, burn_err *err)
{
    if (queue == other) {
        return burn_plugin_fail(err, BURN_E_INVALID, "mock: a queue cannot wait for itself");
    }
    mock_item *item = NULL;
    int32_t code = mock_item_get(queue, &item, err);
    if (code != BURN_OK) {
        return code;
    }
    item->run = run_wait;
    item->value = value;
    item->other = mock_queue_timeline(other);
    mock_timeline_hold(item->other);
    mock_item_push(item);
    return BURN_OK;
}

int32_t mock_reached(burn_queue *queue, uint64_t *out_value, burn_err *err)
{
    mock_timeline *timeline = mock_queue_timeline(queue);
    (void)pthread_mutex_lock(&timeline->lock);
    *out_value = timeline->reached;
    int32_t lost = timeline->lost;
    (void)pthread_mutex_unlock(&timeline->lock);
    if (lost != 0) {
        return burn_plugin_fail(err, BURN_E_DEVICE_LOST, "mock: the device is lost");
    }
    return BURN_OK;
}

int32_t mock_host_wait(burn_queue *queue, uint64_t value, uint64_t timeout_ns, burn_err *err)
{
    int32_t code = mock_timeline_wait(mock_queue_timeline(queue), value, timeout_ns, err);
    return code != BURN_OK ? code : mock_queue_take_misuse(queue, err);
}
