/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mock.h - what the files of this backend share.
 *
 * Its device is a simulation, as if at the far end of a bus: buffers are no host pointers, all work
 * runs later on a worker thread, errors that only the data show come back in the fault word. For
 * real hardware, replace the insides of memory.c (device memory), queue.c (a driver's queue) and
 * the kernels; they are slow and obvious. Threads: entries of the device table as <burn/backend.h>
 * says; `run` functions on the worker of their queue. To add a kernel: a `run` function and a
 * launch function in the file of its family, and a row in rows.c.
 */
#ifndef BURN_SDK_MOCK_MOCK_H
#define BURN_SDK_MOCK_MOCK_H

#include <burn/op_attrs.h>
#include <burn/profile.h>
#include <burn_sdk/element.h>
#include <burn_sdk/loop.h>
#include <burn_sdk/plugin.h>
#include <burn_sdk/slots.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef MOCK_INJECT
#include "inject.h"
#endif /* MOCK_INJECT */

/* All of these stand in the manifest, too; the loader refuses a plugin where they differ. */
#define MOCK_ID "mock"
#define MOCK_VERSION "0.1.0"
#define MOCK_LICENSE "MIT OR Apache-2.0"

#define MOCK_DEVICES 2
#define MOCK_OPERANDS 6
#define MOCK_POISON 0xFB
#define MOCK_PATIENCE 20 /* looks before a thread sleeps: to wake it takes longer than most items */

/* Set by the entry before anything else runs; constant afterwards. */
extern const burn_host *mock_host;
extern const burn_device_api mock_device_api;
extern const burn_row mock_rows[];
extern const uint32_t mock_n_rows;
/* Kernels that take many calls at once. */
extern const burn_many mock_many;

struct burn_backend_device {
    uint32_t ordinal;
    uint32_t zero;
    uint64_t memory; /* bytes, an option; see README.md */
    atomic_int lost;
    pthread_mutex_t fault_lock; /* queues of one device share fault words */
    pthread_mutex_t queues_lock;
    burn_queue *queues;
    struct burn_backend_device *next;
#ifdef MOCK_INJECT
    mock_inject inject;
#endif /* MOCK_INJECT */
};

/* Bytes of device memory that queued work uses: the buffer stays until it is unpinned. */
typedef struct mock_pin {
    burn_buffer *buffer; /* NULL: nothing is pinned */
    unsigned char *bytes;
} mock_pin;

/* A copy of a call's operand; `data` is element [0,...,0]. */
typedef struct mock_operand {
    mock_pin pin;
    unsigned char *data;
    uint8_t kind;
    uint8_t dtype;
    uint8_t rank;
    uint8_t size; /* bytes of an element */
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    unsigned char immediate[16];
} mock_operand;

/* A queue's counter. Shared with the work of other queues that waits for it. */
typedef struct mock_timeline {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t reached;
    int32_t ended; /* the queue is gone: nothing will move any more */
    int32_t lost;
    uint32_t references;
} mock_timeline;

typedef struct mock_times mock_times; /* a queue's */
typedef struct mock_item mock_item;
typedef void (*mock_run_fn)(mock_item *item);

/* One piece of queued work: everything is copied, nothing of the call is kept. */
struct mock_item {
    mock_item *next;
    burn_queue *queue;
    mock_run_fn run;
    const void *kernel; /* what tells one op of a family from another */
    uint64_t op;        /* 0: not a kernel */
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    int32_t faulted; /* a fault of this item was reported */
    uint64_t attrs[BURN_MAX_ATTRS / sizeof(uint64_t)];
    mock_operand operands[MOCK_OPERANDS];
    mock_pin fault;
    mock_pin dst;
    mock_pin src;
    unsigned char *staging;
    void *host;
    uint64_t bytes;
    uint64_t value;
    mock_timeline *other;
    uint32_t slot; /* 1 + where its times go, 0: nowhere */
    uint8_t byte;
};

/* memory.c */
int32_t mock_alloc(burn_backend_device *dev, uint32_t kind, uint64_t bytes, burn_buffer **out,
                   void **out_host, burn_err *err);
void mock_free(burn_backend_device *dev, burn_buffer *buffer);
int32_t mock_memory_info(burn_backend_device *dev, uint64_t *out_free, uint64_t *out_total,
                         burn_err *err);
/* Checks that `bytes` bytes from `offset` lie in a live buffer of device `ordinal`; pins it. */
int32_t mock_pin_bytes(uint32_t ordinal, burn_buffer *buffer, uint64_t offset, uint64_t bytes,
                       mock_pin *out, burn_err *err);
/* 1 when the buffer was freed while it was pinned. */
int mock_unpin(mock_pin *pin);

/* queue.c */
int32_t mock_queue_create(burn_backend_device *dev, burn_queue **out, burn_err *err);
void mock_queue_destroy(burn_queue *queue);
/* Marks the device as lost and wakes everybody who waits for it. */
void mock_device_lose(burn_backend_device *dev);
burn_backend_device *mock_queue_device(burn_queue *queue);
mock_timeline *mock_queue_timeline(burn_queue *queue);
mock_times *mock_queue_times(burn_queue *queue);
/* Checks that points grow. */
int32_t mock_queue_note_signal(burn_queue *queue, uint64_t value, burn_err *err);
/* A cleared item; fails when memory is short or the device is lost. */
int32_t mock_item_get(burn_queue *queue, mock_item **out, burn_err *err);
/* Gives an item back that was not pushed; unpins what it holds. */
void mock_item_drop(mock_item *item);
void mock_item_push(mock_item *item);
/* Keeps a fault of the backend's use (freed memory, ...) for the queue's next host_wait. */
void mock_queue_misuse(burn_queue *queue, int32_t code, const char *text);
int32_t mock_queue_take_misuse(burn_queue *queue, burn_err *err);

/* timeline.c */
mock_timeline *mock_timeline_new(void);
void mock_timeline_hold(mock_timeline *timeline);
void mock_timeline_drop(mock_timeline *timeline);
void mock_timeline_move(mock_timeline *timeline, uint64_t value);
void mock_timeline_end(mock_timeline *timeline);
void mock_timeline_lose(mock_timeline *timeline);
/* Blocks until `value` is reached; UINT64_MAX ns: for ever. */
int32_t mock_timeline_wait(mock_timeline *timeline, uint64_t value, uint64_t timeout_ns,
                           burn_err *err);
int32_t mock_signal(burn_queue *queue, uint64_t value, burn_err *err);
int32_t mock_wait(burn_queue *queue, burn_queue *other, uint64_t value, burn_err *err);
int32_t mock_reached(burn_queue *queue, uint64_t *out_value, burn_err *err);
int32_t mock_host_wait(burn_queue *queue, uint64_t value, uint64_t timeout_ns, burn_err *err);

/* copies.c */
int32_t mock_copy_in(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset, const void *src,
                     uint64_t bytes, burn_err *err);
int32_t mock_copy_out(burn_queue *queue, void *dst, burn_buffer *src, uint64_t src_offset,
                      uint64_t bytes, burn_err *err);
int32_t mock_copy_within(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                         burn_buffer *src, uint64_t src_offset, uint64_t bytes, burn_err *err);
int32_t mock_copy_peer(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                       burn_backend_device *src_dev, burn_buffer *src, uint64_t src_offset,
                       uint64_t bytes, burn_err *err);
int32_t mock_fill_bytes(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                        uint8_t byte, burn_err *err);

/* profile.c */
extern const burn_profile_clock mock_clock;
mock_times *mock_times_new(void);
void mock_times_drop(mock_times *times);
/* An item is about to be queued: it gets the slot that is open. */
void mock_times_queued(mock_item *item);
uint64_t mock_times_now(void);
/* The worker ran an item of that slot. */
void mock_times_ran(mock_times *times, uint32_t slot, uint64_t start, uint64_t end);

/* device.c */
void mock_shutdown(void);
/* A decimal number that ends at `end` or with the text; 0 when there is none or it is too large. */
int mock_parse_number(const char *text, char end, uint64_t *out, const char **rest);
/* A number among the host's options; *out stays when the option is not set. [init] */
int32_t mock_number_option(const char *name, uint64_t *out, burn_err *err);

/* launch.c */
/* Copies a call into an item and queues it. `kernel` reaches `run` as item->kernel. */
int32_t mock_launch(const burn_call *call, uint64_t op, mock_run_fn run, const void *kernel);
/* Several calls, all or none of them. */
int32_t mock_launch_many(const burn_call *calls, uint32_t n, uint32_t stride, uint64_t op,
                         mock_run_fn run);
/* The same for pointwise ops: checks that every operand has the output's dims. */
int32_t mock_launch_pointwise(const burn_call *call, uint64_t op, mock_run_fn run,
                              const void *kernel);
/* Reports a fault once per item; the first fault of a fault word stays. [worker] */
void mock_fault(mock_item *item, int32_t code, uint32_t operand, int64_t value, int64_t position,
                int64_t bound);

static inline mock_operand *mock_out(mock_item *item)
{
    return &item->operands[item->n_in];
}

/* Address of the element that lies `offset` elements from the first. */
static inline unsigned char *mock_at(const mock_operand *operand, int64_t offset)
{
    return operand->data + offset * (int64_t)operand->size;
}

#endif /* BURN_SDK_MOCK_MOCK_H */
