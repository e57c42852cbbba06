/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.c - the CPU as a device: memory, queues, copies and timeline points.
 *
 * There is one device, and everything on it has finished when the call returns, so a queue is only
 * the highest point that was signalled. A buffer owns its memory unless it was imported. Large
 * buffers are mapped and may use huge pages. Owns no kernel and no thread.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "device.h"

#include "flex.h"
#include "isa.h"
#include "threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, HUGE_PAGE = 2 * 1024 * 1024 };

struct burn_backend_device {
    uint32_t ordinal;
    uint32_t zero;
};

struct burn_queue {
    _Atomic uint64_t reached;
};

enum buffer_kind { BUFFER_HEAP = 1, BUFFER_MAPPED = 2, BUFFER_IMPORTED = 3 };

struct burn_buffer {
    unsigned char *data;
    unsigned char *pages; /* what was mapped: `data` lies a little behind its start */
    uint64_t bytes;
    uint64_t mapped;
    enum buffer_kind kind;
};

static int32_t device_count(uint32_t *out_count, burn_err *err)
{
    (void)err;
    *out_count = 1;
    return BURN_OK;
}

/* The model's name as the system tells it; "CPU" where it tells nothing. */
static void read_cpu_name(char *out, size_t size)
{
    (void)snprintf(out, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL) {
        return;
    }
    char line[512];
    while (fgets(line, (int)sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) {
            continue;
        }
        colon += strspn(colon, ": \t");
        (void)snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    (void)fclose(file);
}

static uint64_t total_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static int32_t device_probe(uint32_t ordinal, burn_device_info *out, burn_err *err)
{
    if (ordinal != 0) {
        return flex_fail(err, BURN_E_NOT_FOUND, "flex: device %u asked for, there is only 0",
                         ordinal);
    }
    uint32_t size = out->struct_size;
    burn_device_info info;
    BURN_INIT(&info, burn_device_info);
    info.kind = BURN_DEVICE_CPU;
    read_cpu_name(info.name, sizeof(info.name));
    (void)snprintf(info.isa, sizeof(info.isa), "%s", flex_isa_name());
    info.memory = total_memory();
    info.units = flex_thread_count();
    memcpy(out, &info, size < sizeof(info) ? size : sizeof(info));
    out->struct_size = size;
    return BURN_OK;
}

static int32_t device_open(uint32_t ordinal, const char *options, burn_backend_device **out,
                           burn_err *err)
{
    if (ordinal != 0) {
        return flex_fail(err, BURN_E_NOT_FOUND, "flex: device %u asked for, there is only 0",
                         ordinal);
    }
    if (options != NULL && options[0] != '\0') {
        return flex_fail(err, BURN_E_INVALID,
                         "flex: the device takes no options (got '%.100s'); leave out '?...'",
                         options);
    }
    burn_backend_device *dev = flex_host->alloc(sizeof(*dev));
    if (dev == NULL) {
        return flex_fail(err, BURN_E_NO_MEMORY, "flex: no memory for a device");
    }
    dev->ordinal = ordinal;
    dev->zero = 0;
    *out = dev;
    return BURN_OK;
}

static void device_close(burn_backend_device *dev)
{
    flex_host->free(dev);
}

static int32_t device_limits(burn_backend_device *dev, burn_limits *out, burn_err *err)
{
    (void)dev;
    (void)err;
    uint32_t size = out->struct_size;
    burn_limits limits;
    BURN_INIT(&limits, burn_limits);
    limits.flags = BURN_LIMIT_SYNCHRONOUS | BURN_LIMIT_HOST_MEMORY | BURN_LIMIT_INDEX64;
    limits.offset_align = ALIGN;
    limits.suballoc_align = ALIGN;
    limits.max_binding = (uint64_t)INT64_MAX;
    limits.max_elements = UINT64_MAX;
    limits.page_size = HUGE_PAGE;
    memcpy(out, &limits, size < sizeof(limits) ? size : sizeof(limits));
    out->struct_size = size;
    return BURN_OK;
}

static int32_t device_memory_info(burn_backend_device *dev, uint64_t *out_free,
                                  uint64_t *out_total, burn_err *err)
{
    (void)dev;
    (void)err;
    *out_total = total_memory();
    long page = sysconf(_SC_PAGESIZE);
    long pages = sysconf(_SC_AVPHYS_PAGES);
    *out_free = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return BURN_OK;
}

/* Whole huge pages if little is wasted, since the kernel backs what is left with small ones. */
static uint64_t mapped_size(uint64_t bytes)
{
    uint64_t size = (bytes + 4095) & ~UINT64_C(4095);
    uint64_t left = size % HUGE_PAGE;
    return left >= HUGE_PAGE / 2 ? size - left + HUGE_PAGE : size;
}

/*
 * Buffers that no second cache holds start differently far behind a page: an op that goes through
 * several at the same pace would otherwise meet the same set of the caches and the same bank of the
 * memory in all. Smaller ones keep to whole huge pages, which serves products better.
 */
static uint64_t next_stagger(uint64_t bytes)
{
    enum { STEP = 21 * ALIGN, STEPS = 8, LEAST = 8 * HUGE_PAGE };
    static _Atomic uint32_t turn;
    return bytes >= LEAST ? atomic_fetch_add(&turn, 1) % STEPS * STEP : 0;
}

/*
 * Large memory: mapped at a huge-page border, so that the kernel may back it with huge pages. More
 * than the machine has is refused here (and by the kernel's own accounting): written to, it would
 * cost the process its life.
 */
static int map_pages(burn_buffer *buffer, uint64_t bytes)
{
    uint64_t stagger = next_stagger(bytes);
    uint64_t size = mapped_size(bytes + stagger);
    uint64_t total = total_memory();
    if (size < bytes || size > (uint64_t)PTRDIFF_MAX - HUGE_PAGE || (total > 0 && size > total)) {
        return 0;
    }
    void *memory = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 0;
    }
    uintptr_t start = (uintptr_t)memory;
    uintptr_t aligned = (start + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    unsigned char *base = (unsigned char *)memory + (aligned - start);
    if (aligned > start) {
        (void)munmap(memory, aligned - start);
    }
    if (start + HUGE_PAGE > aligned) {
        (void)munmap(base + size, start + HUGE_PAGE - aligned);
    }
#if defined(MADV_HUGEPAGE)
    (void)madvise(base, size, MADV_HUGEPAGE);
#endif
    buffer->data = base + stagger;
    buffer->pages = base;
    buffer->mapped = size;
    buffer->kind = BUFFER_MAPPED;
    return 1;
}

static int take_heap(burn_buffer *buffer, uint64_t bytes)
{
    uint64_t size = (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    buffer->data = aligned_alloc(ALIGN, size == 0 ? ALIGN : size);
    buffer->kind = BUFFER_HEAP;
    return buffer->data != NULL;
}

static int32_t device_alloc(burn_backend_device *dev, uint32_t kind, uint64_t bytes,
                            burn_buffer **out, void **out_host, burn_err *err)
{
    (void)dev;
    if (kind < BURN_MEMORY_DEVICE || kind > BURN_MEMORY_HOST) {
        return flex_fail(err, BURN_E_INVALID, "flex: memory kind %u is not known", kind);
    }
    burn_buffer *buffer = flex_host->alloc(sizeof(*buffer));
    if (buffer == NULL) {
        return flex_fail(err, BURN_E_NO_MEMORY, "flex: no memory for a buffer's description");
    }
    memset(buffer, 0, sizeof(*buffer));
    buffer->bytes = bytes;
    int done = bytes > HUGE_PAGE / 2 ? map_pages(buffer, bytes) : take_heap(buffer, bytes);
    if (done == 0) {
        flex_host->free(buffer);
        return flex_fail(err, BURN_E_NO_MEMORY, "flex: no memory for %llu bytes",
                         (unsigned long long)bytes);
    }
    *out = buffer;
    *out_host = buffer->data;
    return BURN_OK;
}

static void device_free(burn_backend_device *dev, burn_buffer *buffer)
{
    (void)dev;
    if (buffer->kind == BUFFER_MAPPED) {
        (void)munmap(buffer->pages, buffer->mapped);
    } else if (buffer->kind == BUFFER_HEAP) {
        free(buffer->data);
    }
    flex_host->free(buffer);
}

static int32_t device_import(burn_backend_device *dev, void *host, uint64_t bytes,
                             burn_buffer **out, burn_err *err)
{
    (void)dev;
    burn_buffer *buffer = flex_host->alloc(sizeof(*buffer));
    if (buffer == NULL) {
        return flex_fail(err, BURN_E_NO_MEMORY, "flex: no memory for a buffer's description");
    }
    memset(buffer, 0, sizeof(*buffer));
    buffer->data = host;
    buffer->bytes = bytes;
    buffer->kind = BUFFER_IMPORTED;
    *out = buffer;
    return BURN_OK;
}

static int32_t device_map(burn_backend_device *dev, burn_buffer *buffer, void **out_host,
                          burn_err *err)
{
    (void)dev;
    (void)err;
    *out_host = buffer->data;
    return BURN_OK;
}

static void device_unmap(burn_backend_device *dev, burn_buffer *buffer)
{
    (void)dev;
    (void)buffer;
}

static int32_t queue_create(burn_backend_device *dev, burn_queue **out, burn_err *err)
{
    (void)dev;
    burn_queue *queue = flex_host->alloc(sizeof(*queue));
    if (queue == NULL) {
        return flex_fail(err, BURN_E_NO_MEMORY, "flex: no memory for a queue");
    }
    atomic_init(&queue->reached, 0);
    *out = queue;
    return BURN_OK;
}

static void queue_destroy(burn_queue *queue)
{
    flex_host->free(queue);
}

static int32_t queue_flush(burn_queue *queue, burn_err *err)
{
    (void)queue;
    (void)err;
    return BURN_OK;
}

/* Bounds are the core's to keep; this catches its mistakes before they overwrite memory. */
static int32_t check_range(const burn_buffer *buffer, uint64_t offset, uint64_t bytes,
                           const char *what, burn_err *err)
{
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
        return flex_fail(err, BURN_E_INTERNAL,
                         "flex: %s: bytes %llu + %llu do not lie in a buffer of %llu", what,
                         (unsigned long long)offset, (unsigned long long)bytes,
                         (unsigned long long)buffer->bytes);
    }
    return BURN_OK;
}

static int32_t copy_in(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset, const void *src,
                       uint64_t bytes, burn_err *err)
{
    (void)queue;
    int32_t rc = check_range(dst, dst_offset, bytes, "copy_in", err);
    if (rc == BURN_OK && bytes != 0) {
        memcpy(dst->data + dst_offset, src, bytes);
    }
    return rc;
}

static int32_t copy_out(burn_queue *queue, void *dst, burn_buffer *src, uint64_t src_offset,
                        uint64_t bytes, burn_err *err)
{
    (void)queue;
    int32_t rc = check_range(src, src_offset, bytes, "copy_out", err);
    if (rc == BURN_OK && bytes != 0) {
        memcpy(dst, src->data + src_offset, bytes);
    }
    return rc;
}

static int32_t copy_within(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                           burn_buffer *src, uint64_t src_offset, uint64_t bytes, burn_err *err)
{
    (void)queue;
    int32_t rc = check_range(dst, dst_offset, bytes, "copy_within", err);
    if (rc == BURN_OK) {
        rc = check_range(src, src_offset, bytes, "copy_within", err);
    }
    if (rc == BURN_OK && bytes != 0) {
        memmove(dst->data + dst_offset, src->data + src_offset, bytes);
    }
    return rc;
}

static int32_t copy_peer(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                         burn_backend_device *src_dev, burn_buffer *src, uint64_t src_offset,
                         uint64_t bytes, burn_err *err)
{
    (void)src_dev;
    return copy_within(queue, dst, dst_offset, src, src_offset, bytes, err);
}

static int32_t fill_bytes(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                          uint8_t byte, burn_err *err)
{
    (void)queue;
    int32_t rc = check_range(dst, offset, bytes, "fill", err);
    if (rc == BURN_OK && bytes != 0) {
        memset(dst->data + offset, byte, bytes);
    }
    return rc;
}

static int32_t point_signal(burn_queue *queue, uint64_t value, burn_err *err)
{
    (void)err;
    atomic_store_explicit(&queue->reached, value, memory_order_release);
    return BURN_OK;
}

/* Work finishes before the call that asked for it returns: there is never anything to wait for. */
static int32_t point_wait(burn_queue *queue, burn_queue *other, uint64_t value, burn_err *err)
{
    (void)queue;
    (void)other;
    (void)value;
    (void)err;
    return BURN_OK;
}

static int32_t point_reached(burn_queue *queue, uint64_t *out_value, burn_err *err)
{
    (void)err;
    *out_value = atomic_load_explicit(&queue->reached, memory_order_acquire);
    return BURN_OK;
}

static int32_t point_host_wait(burn_queue *queue, uint64_t value, uint64_t timeout_ns,
                               burn_err *err)
{
    (void)timeout_ns;
    uint64_t reached = atomic_load_explicit(&queue->reached, memory_order_acquire);
    if (reached >= value) {
        return BURN_OK;
    }
    return flex_fail(err, BURN_E_STATE, "flex: point %llu was not signalled (reached %llu)",
                     (unsigned long long)value, (unsigned long long)reached);
}

const burn_device_api flex_device_api = {
    .struct_size = (uint32_t)sizeof(burn_device_api),
    .flags = 0,
    .count = device_count,
    .probe = device_probe,
    .open = device_open,
    .close = device_close,
    .limits = device_limits,
    .memory_info = device_memory_info,
    .alloc = device_alloc,
    .free = device_free,
    .import_host = device_import,
    .map = device_map,
    .unmap = device_unmap,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_flush = queue_flush,
    .queue_native = NULL,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .copy_peer = copy_peer,
    .fill = fill_bytes,
    .signal = point_signal,
    .wait = point_wait,
    .reached = point_reached,
    .host_wait = point_host_wait,
    .lost = NULL,
};
