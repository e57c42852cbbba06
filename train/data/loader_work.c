/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loader_work.c - filling a batch, and the worker threads that do it ahead of the consumer.
 *
 * A worker claims the next batch whose slot is free, makes it without the lock, marks it ready and
 * looks again. Batches are claimed in order and a batch is made by one worker from first item to
 * last, so which items fail, and which failure is told, does not depend on the number of workers.
 */
#include "train/data/loader.h"

#include "train/base/error.h"

#include <stdlib.h>

static int32_t fill_item(burn_loader *loader, burni_slot *slot, int64_t at)
{
    void *out[BURN_MAX_FIELDS];
    for (uint32_t f = 0; f < loader->dataset.n_fields; f++) {
        out[f] = slot->data[f] + (uint64_t)at * loader->item_bytes[f];
    }
    burn_err cause = BURN_ERR_INIT;
    int32_t code =
        loader->dataset.get(loader->dataset.ctx, slot->indices[at], out, &cause);
    if (code == BURN_OK) {
        return BURN_OK;
    }
    cause.text[sizeof(cause.text) - 1] = '\0';
    return burni_train_fail(&slot->err, code < 0 ? code : BURN_E_INTERNAL,
                            "loader: item %lld failed: %s", (long long)slot->indices[at],
                            cause.text[0] != '\0' ? cause.text : burn_status_text(code));
}

void burni_loader_fill(burn_loader *loader, burni_slot *slot, int64_t batch)
{
    const burn_err empty = BURN_ERR_INIT;
    int64_t first = batch * loader->opts.batch_size;
    int64_t left = loader->dataset.count - first;
    slot->batch = batch;
    slot->n_items = left < loader->opts.batch_size ? left : loader->opts.batch_size;
    slot->code = BURN_OK;
    slot->err = empty;
    for (int64_t i = 0; i < slot->n_items; i++) {
        slot->indices[i] = loader->order != NULL ? loader->order[first + i] : first + i;
    }
    for (int64_t i = 0; i < slot->n_items && slot->code == BURN_OK; i++) {
        if (atomic_load_explicit(&loader->cancel, memory_order_relaxed) != 0) {
            return; /* nobody will look at this batch */
        }
        slot->code = fill_item(loader, slot, i);
    }
}

/* The slot of the next batch when it may be made now. Under the lock. */
static burni_slot *claimable(const burn_loader *loader)
{
    if (atomic_load_explicit(&loader->cancel, memory_order_relaxed) != 0 ||
        loader->claimed >= loader->n_batches) {
        return NULL;
    }
    burni_slot *slot = &loader->slots[loader->claimed % loader->n_slots];
    return slot->state == BURNI_SLOT_FREE ? slot : NULL;
}

static void *worker(void *arg)
{
    burn_loader *loader = arg;
    (void)pthread_mutex_lock(&loader->lock);
    while (!loader->stop) {
        burni_slot *slot = claimable(loader);
        if (slot == NULL) {
            (void)pthread_cond_wait(&loader->work, &loader->lock);
            continue;
        }
        int64_t batch = loader->claimed++;
        slot->state = BURNI_SLOT_BUSY;
        loader->running++;
        (void)pthread_mutex_unlock(&loader->lock);
        burni_loader_fill(loader, slot, batch);
        (void)pthread_mutex_lock(&loader->lock);
        slot->state = BURNI_SLOT_READY;
        loader->running--;
        (void)pthread_cond_broadcast(&loader->done);
    }
    (void)pthread_mutex_unlock(&loader->lock);
    return NULL;
}

int32_t burni_loader_start_workers(burn_loader *loader, burn_err *err)
{
    if (loader->opts.workers == 0) {
        return BURN_OK;
    }
    loader->threads = calloc(loader->opts.workers, sizeof(*loader->threads));
    if (loader->threads == NULL) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "loader: no memory for %u workers",
                                (unsigned)loader->opts.workers);
    }
    while (loader->n_threads < loader->opts.workers) {
        int failed = pthread_create(&loader->threads[loader->n_threads], NULL, worker, loader);
        if (failed != 0) {
            return burni_train_fail(err, BURN_E_LIMIT,
                                    "loader: the system gave %u of %u worker threads; ask for "
                                    "fewer workers",
                                    (unsigned)loader->n_threads, (unsigned)loader->opts.workers);
        }
        loader->n_threads++;
    }
    return BURN_OK;
}

void burni_loader_stop_workers(burn_loader *loader)
{
    (void)pthread_mutex_lock(&loader->lock);
    loader->stop = 1;
    atomic_store_explicit(&loader->cancel, 1, memory_order_relaxed);
    (void)pthread_cond_broadcast(&loader->work);
    (void)pthread_mutex_unlock(&loader->lock);
    for (uint32_t i = 0; i < loader->n_threads; i++) {
        (void)pthread_join(loader->threads[i], NULL);
    }
    loader->n_threads = 0;
}
