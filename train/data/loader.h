/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loader.h - the batch loader's state, shared by its two files: loader.c (making, beginning,
 * handing out) and loader_work.c (filling a batch, the worker threads).
 *
 * Batches live in a ring of `n_slots`; batch b is made in slot b % n_slots. `claimed`, `taken`, the
 * slots' states and `running` are guarded by `lock`. A slot's contents belong to the worker that
 * claimed its batch until the state is READY, and to the consumer from then on; plan and order
 * change only while no worker runs.
 */
#ifndef BURN_TRAIN_DATA_LOADER_H
#define BURN_TRAIN_DATA_LOADER_H

#include <burn/data.h>
#include <pthread.h>
#include <stdatomic.h>

typedef enum burni_slot_state {
    BURNI_SLOT_FREE,
    BURNI_SLOT_BUSY,
    BURNI_SLOT_READY
} burni_slot_state;

typedef struct burni_slot {
    burni_slot_state state;
    int64_t batch;
    int64_t n_items;
    int32_t code; /* of the first failing item */
    burn_err err;
    int64_t *indices;
    unsigned char *data[BURN_MAX_FIELDS];
} burni_slot;

struct burn_loader {
    /* fixed after creation */
    burn_dataset dataset;
    burn_loader_opts opts;
    uint64_t item_bytes[BURN_MAX_FIELDS];
    int64_t slot_items; /* capacity of a slot */
    int64_t n_batches;
    uint32_t n_slots;
    burni_slot *slots;
    pthread_t *threads;
    uint32_t n_threads; /* that were started */

    /* the epoch's order; NULL: items in their own order */
    int64_t *order;

    pthread_mutex_t lock;
    pthread_cond_t work; /* a batch may be claimed, or `stop` */
    pthread_cond_t done; /* a slot is ready, or a worker went idle */
    int64_t claimed;     /* the next batch that nobody makes yet */
    int64_t taken;       /* the next batch to hand out */
    int holding;         /* the consumer still uses batch taken - 1 */
    uint32_t running;    /* workers that make a batch */
    int stop;
    atomic_int cancel; /* set: what is being made is not wanted any more; read between items */
};

/* Makes batch `batch` in `slot`; the outcome is slot->code. [any], one caller per slot */
void burni_loader_fill(burn_loader *loader, burni_slot *slot, int64_t batch);

/* Starts opts.workers threads; on failure those that run stay for burni_loader_stop_workers. */
int32_t burni_loader_start_workers(burn_loader *loader, burn_err *err);
void burni_loader_stop_workers(burn_loader *loader);

#endif /* BURN_TRAIN_DATA_LOADER_H */
