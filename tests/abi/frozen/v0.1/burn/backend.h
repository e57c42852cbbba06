/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * backend.h - tier A: the device table that every backend fills.
 *
 * Memory, queues, timeline points, copies, limits. Each entry names its thread class: [any] thread
 * at any time; [queue] serial per queue; [init] during load and shutdown, serial; [callback] on a
 * thread of the core. Entries marked optional may be NULL; the host then uses a stub that answers
 * BURN_E_UNSUPPORTED. All others are required; the loader lists every missing one in one message.
 *
 * Life: probe (no context, survives fork) -> open -> queue_create ... queue_destroy -> close.
 */
#ifndef BURN_BACKEND_H
#define BURN_BACKEND_H

#include <burn/base.h>
#include <burn/call.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

typedef struct burn_backend_device burn_backend_device; /* the backend's own */

enum { BURN_DEVICE_CPU = 1, BURN_DEVICE_INTEGRATED = 2, BURN_DEVICE_DISCRETE = 3,
       BURN_DEVICE_VIRTUAL = 4, BURN_DEVICE_REMOTE = 5 };

/* What probe and properties tell of one device. Strings are cut to fit and end in NUL. */
typedef struct burn_device_info {
    uint32_t struct_size;
    uint32_t kind;     /* BURN_DEVICE_* */
    char name[96];     /* "Intel(R) Xeon(R) Processor" */
    char isa[96];      /* "avx512", "sm_90": what code was chosen for it */
    char driver[64];   /* name and version, "" when there is none */
    char uuid[40];     /* stable id, "" when there is none */
    char pci[24];      /* bus address, "" when there is none */
    uint64_t memory;   /* bytes, 0 = not known */
    uint32_t units;    /* cores, compute units */
    uint32_t zero;
} burn_device_info;

/* burn_limits.flags */
enum {
    BURN_LIMIT_SYNCHRONOUS = 1, /* a launch or copy has finished when it returns */
    BURN_LIMIT_HOST_MEMORY = 2, /* buffers have host addresses */
    BURN_LIMIT_INDEX64 = 4
};

typedef struct burn_limits {
    uint32_t struct_size;
    uint32_t flags;
    uint64_t offset_align;   /* of an operand's first byte; a power of two */
    uint64_t suballoc_align; /* of pieces cut from one buffer; 0 forbids cutting */
    uint64_t max_binding;    /* largest operand in bytes */
    uint64_t max_elements;   /* 2^31-1 where indices are 32 bit, UINT64_MAX otherwise */
    uint64_t page_size;      /* a good size for large allocations */
} burn_limits;

enum { BURN_MEMORY_DEVICE = 1, BURN_MEMORY_PINNED = 2, BURN_MEMORY_UNIFIED = 3,
       BURN_MEMORY_HOST = 4 };

/* burn_device_api.flags: none defined yet; unknown ones are refused. */

typedef struct burn_device_api {
    uint32_t struct_size;
    uint32_t flags;
    /* How many devices there are; 0 is a valid answer. Creates no context. [init] */
    int32_t(BURN_CALL *count)(uint32_t *out_count, burn_err *err);
    /* Describes device `ordinal`. Creates no context. [init] */
    int32_t(BURN_CALL *probe)(uint32_t ordinal, burn_device_info *out, burn_err *err);
    /* Opens a device. `options` is "key=value&..." of the device string, or NULL. [init] */
    int32_t(BURN_CALL *open)(uint32_t ordinal, const char *options, burn_backend_device **out,
                             burn_err *err);
    void(BURN_CALL *close)(burn_backend_device *dev); /* [init] */
    int32_t(BURN_CALL *limits)(burn_backend_device *dev, burn_limits *out, burn_err *err);
    int32_t(BURN_CALL *memory_info)(burn_backend_device *dev, uint64_t *out_free,
                                    uint64_t *out_total, burn_err *err); /* [any], optional */

    /* Raw memory, aligned to limits.suballoc_align. `out_host` is NULL without host address. [any] */
    int32_t(BURN_CALL *alloc)(burn_backend_device *dev, uint32_t kind, uint64_t bytes,
                              burn_buffer **out, void **out_host, burn_err *err);
    void(BURN_CALL *free)(burn_backend_device *dev, burn_buffer *buffer); /* [any] */
    /* Wraps host memory that stays the caller's. [any], optional */
    int32_t(BURN_CALL *import_host)(burn_backend_device *dev, void *host, uint64_t bytes,
                                    burn_buffer **out, burn_err *err);
    int32_t(BURN_CALL *map)(burn_backend_device *dev, burn_buffer *buffer, void **out_host,
                            burn_err *err);                                /* [any], optional */
    void(BURN_CALL *unmap)(burn_backend_device *dev, burn_buffer *buffer); /* [any], optional */

    /* A queue runs its work in order. [any] */
    int32_t(BURN_CALL *queue_create)(burn_backend_device *dev, burn_queue **out, burn_err *err);
    void(BURN_CALL *queue_destroy)(burn_queue *queue); /* finishes its work first. [any] */
    int32_t(BURN_CALL *queue_flush)(burn_queue *queue, burn_err *err); /* [queue], optional */
    void *(BURN_CALL *queue_native)(burn_queue *queue);                /* [any], optional */

    /* Copies, in queue order. `src` of copy_in is read before it returns. [queue] */
    int32_t(BURN_CALL *copy_in)(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                                const void *src, uint64_t bytes, burn_err *err);
    /* `dst` is valid once a later point of the queue is reached. [queue] */
    int32_t(BURN_CALL *copy_out)(burn_queue *queue, void *dst, burn_buffer *src,
                                 uint64_t src_offset, uint64_t bytes, burn_err *err);
    int32_t(BURN_CALL *copy_within)(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                                    burn_buffer *src, uint64_t src_offset, uint64_t bytes,
                                    burn_err *err);
    /* Between two devices of this backend. [queue], optional */
    int32_t(BURN_CALL *copy_peer)(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                                  burn_backend_device *src_dev, burn_buffer *src,
                                  uint64_t src_offset, uint64_t bytes, burn_err *err);
    int32_t(BURN_CALL *fill)(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                             uint8_t byte, burn_err *err);

    /*
     * Timeline points: each queue counts. `signal` makes the queue's timeline reach `value` (larger
     * than all before) when all earlier work is done; failed work signals too. A backend that
     * finishes before it returns may do nothing here. [queue]
     */
    int32_t(BURN_CALL *signal)(burn_queue *queue, uint64_t value, burn_err *err);
    /* Later work of `queue` waits until `other` reaches `value`. [queue] */
    int32_t(BURN_CALL *wait)(burn_queue *queue, burn_queue *other, uint64_t value, burn_err *err);
    /* The highest value reached. [any] */
    int32_t(BURN_CALL *reached)(burn_queue *queue, uint64_t *out_value, burn_err *err);
    /* Blocks until `value` is reached or the time is over (BURN_E_STATE). [any] */
    int32_t(BURN_CALL *host_wait)(burn_queue *queue, uint64_t value, uint64_t timeout_ns,
                                  burn_err *err);
    /* 1 when the device is lost for good. [any], optional */
    int32_t(BURN_CALL *lost)(burn_backend_device *dev);
} burn_device_api;

BURN_END_DECLS

#endif /* BURN_BACKEND_H */
