/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * queue.c - a queue: a list of items and a worker thread that runs them in order, a little later.
 *
 * Owns items and their recycling: a launch takes a used item from the queue's list and allocates
 * only when there is none; a queue keeps a few, however long it once was. Destroying a queue
 * finishes its work. Misuse that the worker finds (freed memory in queued work) is kept and handed
 * to the next host_wait. To port: an item becomes a driver call, the worker disappears.
 */
#include "mock.h"

#include <sched.h>

enum { MAX_SPARE = 16 };

struct burn_queue {
    burn_backend_device *dev;
    burn_queue *next; /* of the device's queues */
    mock_timeline *timeline;
    mock_times *times;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    mock_item *head;
    mock_item *tail;
    mock_item *spare;
    uint32_t n_spare;
    uint64_t last_signal; /* the host calls one entry of a queue at a time */
    int32_t closing;
    int32_t misuse_code;
    char misuse_text[200];
};

burn_backend_device *mock_queue_device(burn_queue *queue)
{
    return queue->dev;
}

mock_timeline *mock_queue_timeline(burn_queue *queue)
{
    return queue->timeline;
}

mock_times *mock_queue_times(burn_queue *queue)
{
    return queue->times;
}

int32_t mock_queue_note_signal(burn_queue *queue, uint64_t value, burn_err *err)
{
    if (value <= queue->last_signal) {
        return burn_plugin_fail(err, BURN_E_INVALID, "mock: signal of %llu after %llu",
                                (unsigned long long)value,
                                (unsigned long long)queue->last_signal);
    }
    queue->last_signal = value;
    return BURN_OK;
}

int32_t mock_item_get(burn_queue *queue, mock_item **out, burn_err *err)
{
    if (atomic_load(&queue->dev->lost) != 0) {
        return burn_plugin_fail(err, BURN_E_DEVICE_LOST, "mock:%u is lost",
                                (unsigned)queue->dev->ordinal);
    }
    (void)pthread_mutex_lock(&queue->lock);
    mock_item *item = queue->spare;
    if (item != NULL) {
        queue->spare = item->next;
        queue->n_spare--;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    if (item == NULL) {
        item = (mock_item *)mock_host->alloc(sizeof(*item));
    }
    if (item == NULL) {
        return burn_plugin_fail(err, BURN_E_NO_MEMORY, "mock: no host memory for a queue item");
    }
    memset(item, 0, sizeof(*item));
    item->queue = queue;
    *out = item;
    return BURN_OK;
}

/* Unpins all; 1 when one of the buffers was freed too early. */
static int release_pins(mock_item *item)
{
    int freed = mock_unpin(&item->dst);
    freed |= mock_unpin(&item->src);
    for (uint32_t i = 0; i < MOCK_OPERANDS; i++) {
        freed |= mock_unpin(&item->operands[i].pin);
    }
    freed |= mock_unpin(&item->fault);
    return freed;
}

void mock_item_drop(mock_item *item)
{
    burn_queue *queue = item->queue;
    (void)release_pins(item);
    mock_host->free(item->staging);
    item->staging = NULL;
    if (item->other != NULL) {
        mock_timeline_drop(item->other);
        item->other = NULL;
    }
    (void)pthread_mutex_lock(&queue->lock);
    int keep = queue->n_spare < MAX_SPARE;
    if (keep) {
        item->next = queue->spare;
        queue->spare = item;
        queue->n_spare++;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    if (!keep) {
        mock_host->free(item);
    }
}

void mock_item_push(mock_item *item)
{
    burn_queue *queue = item->queue;
    mock_times_queued(item);
    (void)pthread_mutex_lock(&queue->lock);
    item->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = item;
    } else {
        queue->head = item;
    }
    queue->tail = item;
    (void)pthread_cond_signal(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
}

void mock_queue_misuse(burn_queue *queue, int32_t code, const char *text)
{
    mock_host->log(BURN_LOG_ERROR, MOCK_ID, text);
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->misuse_code == BURN_OK) {
        queue->misuse_code = code;
        (void)snprintf(queue->misuse_text, sizeof(queue->misuse_text), "%s", text);
    }
    (void)pthread_mutex_unlock(&queue->lock);
}

int32_t mock_queue_take_misuse(burn_queue *queue, burn_err *err)
{
    int32_t code = BURN_OK;
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->misuse_code != BURN_OK) {
        code = burn_plugin_fail(err, queue->misuse_code, "mock: %s", queue->misuse_text);
        queue->misuse_code = BURN_OK;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return code;
}

static int is_idle(burn_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    int idle = queue->head == NULL && queue->closing == 0;
    (void)pthread_mutex_unlock(&queue->lock);
    return idle;
}

/* The next item; NULL when the queue closes and nothing is left. */
static mock_item *next_item(burn_queue *queue)
{
    /* The next item often comes before a sleeping thread would wake. */
    for (uint32_t k = 0; k < MOCK_PATIENCE && is_idle(queue); k++) {
        (void)sched_yield();
    }
    (void)pthread_mutex_lock(&queue->lock);
    while (queue->head == NULL && queue->closing == 0) {
        (void)pthread_cond_wait(&queue->filled, &queue->lock);
    }
    mock_item *item = queue->head;
    if (item != NULL) {
        queue->head = item->next;
        if (queue->head == NULL) {
            queue->tail = NULL;
        }
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return item;
}

static void run_one(burn_queue *queue, mock_item *item)
{
    char text[120];
    int skip = atomic_load(&queue->dev->lost) != 0;
    uint64_t start = item->slot != 0 ? mock_times_now() : 0;
#ifdef MOCK_INJECT
    skip = skip || mock_inject_failure(item);
#endif /* MOCK_INJECT */
    if (!skip) {
        item->run(item);
#ifdef MOCK_INJECT
        mock_inject_error(item);
#endif /* MOCK_INJECT */
    }
    if (item->slot != 0) {
        mock_times_ran(queue->times, item->slot, start, mock_times_now());
    }
    if (release_pins(item)) {
        (void)snprintf(text, sizeof(text),
                       "a buffer was freed while queued work (op %llu) still used it",
                       (unsigned long long)item->op);
        mock_queue_misuse(queue, BURN_E_INTERNAL, text);
    }
    mock_item_drop(item);
}

static void *worker_main(void *argument)
{
    burn_queue *queue = (burn_queue *)argument;
    mock_item *item = next_item(queue);
    while (item != NULL) {
#ifdef MOCK_INJECT
        mock_inject_delay(queue->dev);
#endif /* MOCK_INJECT */
        run_one(queue, item);
        item = next_item(queue);
    }
    return NULL;
}

static void link_queue(burn_queue *queue)
{
    burn_backend_device *dev = queue->dev;
    (void)pthread_mutex_lock(&dev->queues_lock);
    queue->next = dev->queues;
    dev->queues = queue;
    (void)pthread_mutex_unlock(&dev->queues_lock);
}

static void unlink_queue(burn_queue *queue)
{
    burn_backend_device *dev = queue->dev;
    (void)pthread_mutex_lock(&dev->queues_lock);
    burn_queue **place = &dev->queues;
    while (*place != NULL && *place != queue) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        *place = queue->next;
    }
    (void)pthread_mutex_unlock(&dev->queues_lock);
}

void mock_device_lose(burn_backend_device *dev)
{
    atomic_store(&dev->lost, 1);
    (void)pthread_mutex_lock(&dev->queues_lock);
    for (burn_queue *queue = dev->queues; queue != NULL; queue = queue->next) {
        mock_timeline_lose(queue->timeline);
    }
    (void)pthread_mutex_unlock(&dev->queues_lock);
}

static void free_queue(burn_queue *queue)
{
    while (queue->spare != NULL) {
        mock_item *item = queue->spare;
        queue->spare = item->next;
        mock_host->free(item);
    }
    (void)pthread_cond_destroy(&queue->filled);
    (void)pthread_mutex_destroy(&queue->lock);
    mock_timeline_drop(queue->timeline);
    mock_times_drop(queue->times);
    mock_host->free(queue);
}

int32_t mock_queue_create(burn_backend_device *dev, burn_queue **out, burn_err *err)
{
    burn_queue *queue = (burn_queue *)mock_host->alloc(sizeof(*queue));
    if (queue == NULL) {
        return burn_plugin_fail(err, BURN_E_NO_MEMORY, "mock: no host memory for a queue");
    }
    memset(queue, 0, sizeof(*queue));
    queue->dev = dev;
    queue->times = mock_times_new();
    queue->timeline = queue->times != NULL ? mock_timeline_new() : NULL;
    if (queue->timeline == NULL) {
        mock_times_drop(queue->times);
        mock_host->free(queue);
        return burn_plugin_fail(err, BURN_E_NO_MEMORY, "mock: no host memory for a timeline");
    }
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->filled, NULL);
    if (pthread_create(&queue->worker, NULL, worker_main, queue) != 0) {
        free_queue(queue);
        return burn_plugin_fail(err, BURN_E_LIMIT, "mock: the system gave no thread for a queue");
    }
    link_queue(queue);
    if (atomic_load(&dev->lost) != 0) {
        mock_timeline_lose(queue->timeline);
    }
    *out = queue;
    return BURN_OK;
}

void mock_queue_destroy(burn_queue *queue)
{
    if (queue == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&queue->lock);
    queue->closing = 1;
    (void)pthread_cond_signal(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
    (void)pthread_join(queue->worker, NULL);
    unlink_queue(queue);
    mock_timeline_end(queue->timeline);
    free_queue(queue);
}
