/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memory.c - device memory. A buffer handle is a number with a tag on top, never an address, so a
 * host that dereferences one crashes at once instead of working by accident.
 *
 * Owns the table of buffers, for all devices. Fresh and freed memory is filled with MOCK_POISON.
 * Queued work pins what it uses: a buffer that is freed while pinned stays readable until the last
 * pin goes, and the work that held it is told. Handles carry a generation, so an old one is
 * recognised after its place was taken again. All functions: any thread.
 */
#include "mock.h"

typedef struct memory_entry {
    unsigned char *bytes;
    uint64_t size;
    uint32_t generation;
    uint32_t pins;
    uint32_t ordinal;
    uint32_t used;  /* the place is taken */
    uint32_t freed; /* freed, but still pinned */
    uint32_t zero;
} memory_entry;

#define HANDLE_TAG UINT64_C(0x6D6B000000000000) /* not a canonical address */
#define HANDLE_INDEX_BITS 20
#define HANDLE_INDEX_MASK ((1u << HANDLE_INDEX_BITS) - 1u)
#define HANDLE_GENERATION_MASK UINT32_C(0x0fffffff)

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static memory_entry *table;
static uint32_t table_size;
static uint64_t in_use[MOCK_DEVICES];

static burn_buffer *handle_of(uint32_t index, uint32_t generation)
{
    uint64_t number = HANDLE_TAG | ((uint64_t)generation << HANDLE_INDEX_BITS) | index;
    return (burn_buffer *)(uintptr_t)number;
}

/* The entry of a handle that is in use, or NULL. Table locked. */
static memory_entry *entry_of(const burn_buffer *buffer)
{
    uint64_t number = (uint64_t)(uintptr_t)buffer;
    uint32_t index = (uint32_t)number & HANDLE_INDEX_MASK;
    uint32_t generation = (uint32_t)(number >> HANDLE_INDEX_BITS) & HANDLE_GENERATION_MASK;
    if ((number & UINT64_C(0xffff000000000000)) != HANDLE_TAG || index >= table_size) {
        return NULL;
    }
    memory_entry *entry = &table[index];
    return entry->used != 0 && entry->generation == generation ? entry : NULL;
}

/* Index of a free place, growing the table when there is none; UINT32_MAX: no memory. Locked. */
static uint32_t free_place(void)
{
    for (uint32_t i = 0; i < table_size; i++) {
        if (table[i].used == 0) {
            return i;
        }
    }
    uint32_t size = table_size == 0 ? 64 : table_size * 2;
    if (size > HANDLE_INDEX_MASK) {
        return UINT32_MAX;
    }
    memory_entry *bigger = (memory_entry *)mock_host->alloc(size * sizeof(*bigger));
    if (bigger == NULL) {
        return UINT32_MAX;
    }
    memset(bigger, 0, size * sizeof(*bigger));
    if (table != NULL) {
        memcpy(bigger, table, table_size * sizeof(*bigger));
        mock_host->free(table);
    }
    uint32_t place = table_size;
    table = bigger;
    table_size = size;
    return place;
}

/* Gives the memory of an entry back. Locked. */
static void retire(memory_entry *entry)
{
    if (entry->bytes != NULL) {
        memset(entry->bytes, MOCK_POISON, (size_t)entry->size);
        mock_host->free(entry->bytes);
    }
    in_use[entry->ordinal] -= entry->size;
    entry->bytes = NULL;
    entry->used = 0;
    entry->generation = (entry->generation + 1) & HANDLE_GENERATION_MASK;
}

static int32_t no_memory(burn_backend_device *dev, uint64_t bytes, burn_err *err)
{
    return burn_plugin_fail(err, BURN_E_NO_MEMORY,
                            "mock:%u has no room for %llu bytes (in use %llu of %llu)",
                            (unsigned)dev->ordinal, (unsigned long long)bytes,
                            (unsigned long long)in_use[dev->ordinal],
                            (unsigned long long)dev->memory);
}

/* Table locked. */
static int32_t alloc_locked(burn_backend_device *dev, uint64_t bytes, burn_buffer **out,
                            burn_err *err)
{
    uint64_t used = in_use[dev->ordinal];
    if (bytes > dev->memory || used > dev->memory - bytes) {
        return no_memory(dev, bytes, err);
    }
    uint32_t place = free_place();
    if (place == UINT32_MAX) {
        return no_memory(dev, bytes, err);
    }
    unsigned char *memory = (unsigned char *)mock_host->alloc(bytes);
    if (memory == NULL) {
        return no_memory(dev, bytes, err);
    }
    memset(memory, MOCK_POISON, (size_t)bytes);
    memory_entry *entry = &table[place];
    entry->bytes = memory;
    entry->size = bytes;
    entry->pins = 0;
    entry->ordinal = dev->ordinal;
    entry->used = 1;
    entry->freed = 0;
    in_use[dev->ordinal] += bytes;
    *out = handle_of(place, entry->generation);
    return BURN_OK;
}

int32_t mock_alloc(burn_backend_device *dev, uint32_t kind, uint64_t bytes, burn_buffer **out,
                   void **out_host, burn_err *err)
{
    if (kind != BURN_MEMORY_DEVICE) {
        return burn_plugin_fail(err, BURN_E_UNSUPPORTED,
                                "mock has device memory only (kind %u was asked for)",
                                (unsigned)kind);
    }
    if (bytes == 0) {
        return burn_plugin_fail(err, BURN_E_INVALID, "mock: an allocation of 0 bytes");
    }
    if (out_host != NULL) {
        *out_host = NULL;
    }
    (void)pthread_mutex_lock(&table_lock);
    int32_t code = alloc_locked(dev, bytes, out, err);
    (void)pthread_mutex_unlock(&table_lock);
    return code;
}

void mock_free(burn_backend_device *dev, burn_buffer *buffer)
{
    (void)dev;
    (void)pthread_mutex_lock(&table_lock);
    memory_entry *entry = entry_of(buffer);
    int wrong = entry == NULL || entry->freed != 0;
    if (!wrong && entry->pins > 0) {
        entry->freed = 1;
    } else if (!wrong) {
        retire(entry);
    }
    (void)pthread_mutex_unlock(&table_lock);
    if (wrong && buffer != NULL) {
        mock_host->log(BURN_LOG_ERROR, MOCK_ID, "free of a buffer that is not allocated");
    }
}

int32_t mock_memory_info(burn_backend_device *dev, uint64_t *out_free, uint64_t *out_total,
                         burn_err *err)
{
    (void)err;
    (void)pthread_mutex_lock(&table_lock);
    *out_total = dev->memory;
    *out_free = dev->memory - in_use[dev->ordinal];
    (void)pthread_mutex_unlock(&table_lock);
    return BURN_OK;
}

/* Table locked. */
static int32_t pin_locked(uint32_t ordinal, burn_buffer *buffer, uint64_t offset, uint64_t bytes,
                          mock_pin *out, burn_err *err)
{
    memory_entry *entry = entry_of(buffer);
    if (entry == NULL || entry->freed != 0) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "buffer %p is not allocated (freed, or never was)",
                                (void *)buffer);
    }
    if (entry->ordinal != ordinal) {
        return burn_plugin_fail(err, BURN_E_DEVICE, "buffer of mock:%u in a call on mock:%u",
                                (unsigned)entry->ordinal, (unsigned)ordinal);
    }
    if (offset > entry->size || bytes > entry->size - offset) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "bytes %llu to %llu are outside of a buffer of %llu bytes",
                                (unsigned long long)offset, (unsigned long long)(offset + bytes),
                                (unsigned long long)entry->size);
    }
    entry->pins++;
    out->buffer = buffer;
    out->bytes = entry->bytes + offset;
    return BURN_OK;
}

int32_t mock_pin_bytes(uint32_t ordinal, burn_buffer *buffer, uint64_t offset, uint64_t bytes,
                       mock_pin *out, burn_err *err)
{
    (void)pthread_mutex_lock(&table_lock);
    int32_t code = pin_locked(ordinal, buffer, offset, bytes, out, err);
    (void)pthread_mutex_unlock(&table_lock);
    return code;
}

int mock_unpin(mock_pin *pin)
{
    if (pin->buffer == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&table_lock);
    memory_entry *entry = entry_of(pin->buffer);
    int freed = entry != NULL && entry->freed != 0;
    if (entry != NULL) {
        entry->pins--;
        if (freed && entry->pins == 0) {
            retire(entry);
        }
    }
    (void)pthread_mutex_unlock(&table_lock);
    pin->buffer = NULL;
    return freed;
}
