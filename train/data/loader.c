/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loader.c - the batch loader: checks, memory, beginning an epoch, handing out batches.
 *
 * All memory and all threads are made at creation, so nothing grows over epochs. The batch handed
 * out last keeps its slot until the next call; that is why there is one slot more than batches
 * ahead. Without workers the consumer makes each batch itself, in slot 0.
 */
#include "train/data/loader.h"

#include "train/base/error.h"
#include "train/data/shuffle.h"

#include <burn/dtype.h>
#include <stdlib.h>

enum { MAX_WORKERS = 256, MAX_AHEAD = 4096 };
static const uint64_t max_bytes = UINT64_C(1) << 40;

static const burn_field *field_at(const burn_dataset *dataset, uint32_t i)
{
    const char *base = (const char *)dataset->fields;
    return (const burn_field *)(const void *)(base + (size_t)i * dataset->field_stride);
}

static int32_t check_dataset(const burn_dataset *dataset, burn_err *err)
{
    if (dataset == NULL || !BURN_HAS(dataset, burn_dataset, get) || dataset->get == NULL) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: a dataset with its struct_size and `get` is needed");
    }
    if (dataset->n_fields == 0 || dataset->n_fields > BURN_MAX_FIELDS || dataset->fields == NULL ||
        dataset->field_stride < sizeof(burn_field)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: the dataset has %u fields with a stride of %u, expected 1 "
                                "to %d fields and a stride of %u or more",
                                (unsigned)dataset->n_fields, (unsigned)dataset->field_stride,
                                BURN_MAX_FIELDS, (unsigned)sizeof(burn_field));
    }
    if (dataset->count < 0) {
        return burni_train_fail(err, BURN_E_INVALID, "loader: the dataset's count is %lld",
                                (long long)dataset->count);
    }
    return BURN_OK;
}

static int32_t check_opts(const burn_loader_opts *opts, burn_err *err)
{
    const uint32_t known = BURN_LOADER_SHUFFLE | BURN_LOADER_DROP_LAST;
    if (opts == NULL || !BURN_HAS(opts, burn_loader_opts, ahead)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: options with their struct_size are needed (BURN_INIT)");
    }
    if ((opts->flags & ~known) != 0) {
        return burni_train_fail(err, BURN_E_INVALID, "loader: flags 0x%x, known are 0x%x",
                                (unsigned)opts->flags, (unsigned)known);
    }
    if (opts->batch_size < 1) {
        return burni_train_fail(err, BURN_E_INVALID, "loader: batch_size is %lld; use 1 or more",
                                (long long)opts->batch_size);
    }
    if (opts->workers > MAX_WORKERS || opts->ahead > MAX_AHEAD) {
        int workers = opts->workers > MAX_WORKERS;
        return burni_train_fail(err, BURN_E_INVALID, "loader: %s is %u; at most %d is possible",
                                workers ? "workers" : "ahead",
                                (unsigned)(workers ? opts->workers : opts->ahead),
                                workers ? (int)MAX_WORKERS : (int)MAX_AHEAD);
    }
    return BURN_OK;
}

/* Bytes of one item of a field. */
static int32_t field_bytes(const burn_field *field, uint32_t number, uint64_t *out, burn_err *err)
{
    uint64_t bytes = burn_dtype_size(field->dtype);
    if (bytes == 0 || field->rank > BURN_MAX_RANK) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: field %u has dtype code %u and rank %u; expected a known "
                                "dtype and a rank up to %d",
                                (unsigned)number, (unsigned)field->dtype, (unsigned)field->rank,
                                BURN_MAX_RANK);
    }
    int empty = 0;
    for (uint32_t i = 0; i < field->rank; i++) {
        if (field->dims[i] < 0) {
            return burni_train_fail(err, BURN_E_INVALID, "loader: dim %u of field %u is %lld",
                                    (unsigned)i, (unsigned)number, (long long)field->dims[i]);
        }
        empty |= field->dims[i] == 0;
    }
    for (uint32_t i = 0; i < field->rank && !empty; i++) {
        if (bytes > max_bytes / (uint64_t)field->dims[i]) {
            return burni_train_fail(err, BURN_E_LIMIT,
                                    "loader: one item of field %u is larger than %llu bytes",
                                    (unsigned)number, (unsigned long long)max_bytes);
        }
        bytes *= (uint64_t)field->dims[i];
    }
    *out = empty ? 0 : bytes;
    return BURN_OK;
}

/* The numbers that follow from dataset and options. */
static int32_t plan(burn_loader *loader, burn_err *err)
{
    const burn_dataset *dataset = &loader->dataset;
    int64_t size = loader->opts.batch_size;
    loader->n_batches = dataset->count / size;
    if (dataset->count % size != 0 && (loader->opts.flags & BURN_LOADER_DROP_LAST) == 0) {
        loader->n_batches++;
    }
    loader->slot_items = dataset->count < size ? dataset->count : size;
    uint32_t ahead = loader->opts.ahead != 0 ? loader->opts.ahead : 2 * loader->opts.workers;
    loader->n_slots = loader->opts.workers == 0 ? 1 : ahead + 1;
    if (loader->n_batches < (int64_t)loader->n_slots - 1) {
        loader->n_slots = (uint32_t)(loader->n_batches + 1);
    }
    for (uint32_t f = 0; f < dataset->n_fields; f++) {
        int32_t code = field_bytes(field_at(dataset, f), f, &loader->item_bytes[f], err);
        if (code != BURN_OK) {
            return code;
        }
        uint64_t per_slot = max_bytes / loader->n_slots;
        if (loader->slot_items > 0 &&
            loader->item_bytes[f] > per_slot / (uint64_t)loader->slot_items) {
            return burni_train_fail(err, BURN_E_LIMIT,
                                    "loader: %u batches of %lld items of field %u (%llu bytes "
                                    "each) are more than %llu bytes; make the batches smaller",
                                    (unsigned)loader->n_slots, (long long)loader->slot_items,
                                    (unsigned)f, (unsigned long long)loader->item_bytes[f],
                                    (unsigned long long)max_bytes);
        }
    }
    return BURN_OK;
}

/* malloc, but never NULL for nothing. */
static void *allocate(uint64_t count, uint64_t bytes)
{
    return calloc(count > 0 ? (size_t)count : 1, bytes > 0 ? (size_t)bytes : 1);
}

static int32_t allocate_all(burn_loader *loader, burn_err *err)
{
    int missing = 0;
    uint64_t items = (uint64_t)loader->slot_items;
    if ((loader->opts.flags & BURN_LOADER_SHUFFLE) != 0) {
        loader->order = allocate((uint64_t)loader->dataset.count, sizeof(*loader->order));
        missing |= loader->order == NULL;
    }
    loader->slots = allocate(loader->n_slots, sizeof(*loader->slots));
    missing |= loader->slots == NULL;
    for (uint32_t s = 0; s < loader->n_slots && !missing; s++) {
        loader->slots[s].indices = allocate(items, sizeof(*loader->slots[s].indices));
        missing |= loader->slots[s].indices == NULL;
        for (uint32_t f = 0; f < loader->dataset.n_fields; f++) {
            loader->slots[s].data[f] = allocate(items, loader->item_bytes[f]);
            missing |= loader->slots[s].data[f] == NULL;
        }
    }
    if (missing) {
        return burni_train_fail(err, BURN_E_NO_MEMORY,
                                "loader: no memory for %u batches of %lld items",
                                (unsigned)loader->n_slots, (long long)loader->slot_items);
    }
    return BURN_OK;
}

static void free_all(burn_loader *loader)
{
    for (uint32_t s = 0; loader->slots != NULL && s < loader->n_slots; s++) {
        free(loader->slots[s].indices);
        for (uint32_t f = 0; f < loader->dataset.n_fields; f++) {
            free(loader->slots[s].data[f]);
        }
    }
    free(loader->slots);
    free(loader->order);
    free(loader->threads);
    free(loader);
}

/* Lock and conditions; their failure is a lack of memory or of system resources. */
static int32_t make_locks(burn_loader *loader, burn_err *err)
{
    if (pthread_mutex_init(&loader->lock, NULL) != 0) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "loader: no lock could be made");
    }
    if (pthread_cond_init(&loader->work, NULL) == 0) {
        if (pthread_cond_init(&loader->done, NULL) == 0) {
            return BURN_OK;
        }
        (void)pthread_cond_destroy(&loader->work);
    }
    (void)pthread_mutex_destroy(&loader->lock);
    return burni_train_fail(err, BURN_E_NO_MEMORY, "loader: no lock could be made");
}

int32_t burn_loader_create(const burn_dataset *dataset, const burn_loader_opts *opts,
                           burn_loader **out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (out == NULL) {
        return burni_train_fail(err, BURN_E_INVALID, "loader: a place for the result is needed");
    }
    *out = NULL;
    int32_t code = check_dataset(dataset, err);
    if (code == BURN_OK) {
        code = check_opts(opts, err);
    }
    if (code != BURN_OK) {
        return code;
    }
    burn_loader *loader = calloc(1, sizeof(*loader));
    if (loader == NULL) {
        return burni_train_fail(err, BURN_E_NO_MEMORY, "loader: no memory");
    }
    loader->dataset = *dataset;
    loader->opts = *opts;
    code = plan(loader, err);
    if (code == BURN_OK) {
        code = allocate_all(loader, err);
    }
    if (code == BURN_OK) {
        code = make_locks(loader, err);
    }
    if (code != BURN_OK) {
        free_all(loader);
        return code;
    }
    code = burn_loader_begin(loader, 0, 0, err);
    if (code == BURN_OK) {
        code = burni_loader_start_workers(loader, err);
    }
    if (code != BURN_OK) {
        burn_loader_destroy(loader);
        return code;
    }
    *out = loader;
    return BURN_OK;
}

void burn_loader_destroy(burn_loader *loader)
{
    if (loader == NULL) {
        return;
    }
    burni_loader_stop_workers(loader);
    (void)pthread_cond_destroy(&loader->done);
    (void)pthread_cond_destroy(&loader->work);
    (void)pthread_mutex_destroy(&loader->lock);
    free_all(loader);
}

int32_t burn_loader_begin(burn_loader *loader, uint64_t epoch, int64_t first_batch, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (loader == NULL || first_batch < 0 || first_batch > loader->n_batches) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: an epoch of %lld batches cannot begin at batch %lld",
                                loader == NULL ? 0LL : (long long)loader->n_batches,
                                (long long)first_batch);
    }
    (void)pthread_mutex_lock(&loader->lock);
    atomic_store_explicit(&loader->cancel, 1, memory_order_relaxed);
    while (loader->running > 0) {
        (void)pthread_cond_wait(&loader->done, &loader->lock);
    }
    if (loader->order != NULL) {
        burni_shuffle(loader->order, loader->dataset.count, loader->opts.seed, epoch);
    }
    for (uint32_t s = 0; s < loader->n_slots; s++) {
        loader->slots[s].state = BURNI_SLOT_FREE;
    }
    loader->claimed = first_batch;
    loader->taken = first_batch;
    loader->holding = 0;
    atomic_store_explicit(&loader->cancel, 0, memory_order_relaxed);
    (void)pthread_cond_broadcast(&loader->work);
    (void)pthread_mutex_unlock(&loader->lock);
    return BURN_OK;
}

/* The slot of batch `taken`, made by a worker or here. */
static burni_slot *wait_for_batch(burn_loader *loader)
{
    (void)pthread_mutex_lock(&loader->lock);
    if (loader->holding) {
        loader->slots[(loader->taken - 1) % loader->n_slots].state = BURNI_SLOT_FREE;
        loader->holding = 0;
        (void)pthread_cond_signal(&loader->work);
    }
    burni_slot *slot = NULL;
    if (loader->taken < loader->n_batches) {
        slot = &loader->slots[loader->taken % loader->n_slots];
        if (loader->n_threads == 0) {
            burni_loader_fill(loader, slot, loader->taken);
            slot->state = BURNI_SLOT_READY;
        }
        while (slot->state != BURNI_SLOT_READY) {
            (void)pthread_cond_wait(&loader->done, &loader->lock);
        }
        loader->taken++;
        loader->holding = 1;
    }
    (void)pthread_mutex_unlock(&loader->lock);
    return slot;
}

int32_t burn_loader_next(burn_loader *loader, burn_batch *batch, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    if (loader == NULL || batch == NULL || !BURN_HAS(batch, burn_batch, data)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "loader: a loader and a batch with its struct_size are needed");
    }
    burni_slot *slot = wait_for_batch(loader);
    if (slot == NULL) {
        return BURN_E_END;
    }
    if (slot->code != BURN_OK) {
        return burni_train_fail(err, slot->code, "%s", slot->err.text);
    }
    batch->n_fields = loader->dataset.n_fields;
    batch->n_items = slot->n_items;
    batch->position = slot->batch;
    batch->indices = slot->indices;
    for (uint32_t f = 0; f < BURN_MAX_FIELDS; f++) {
        batch->data[f] = f < batch->n_fields ? slot->data[f] : NULL;
    }
    return BURN_OK;
}

int64_t burn_loader_batches(const burn_loader *loader)
{
    return loader->n_batches;
}
