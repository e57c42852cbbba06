/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hostile.c - a backend that works (host memory, one row: add of f32) but for one defect, chosen by
 * the name of its own file; any other name is a healthy backend.
 *
 * stub.c breaks tables; this one breaks promises while it runs: it writes past structs, answers OK
 * without a result, with codes that do not exist, with text that has no end. It is also built with
 * the frozen headers of earlier minors (tests/abi/frozen), so it uses what these have, and with the
 * SDK as C++ (throws.cc). To add a defect: a test of own_id where it belongs, a row in
 * test_hostile.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "own_id.h"

#include <burn/dtype.h>
#include <burn/op_list.h>
#include <burn/plugin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct burn_buffer {
    unsigned char *bytes;
};
struct burn_queue {
    uint64_t reached;
};
struct burn_backend_device {
    uint32_t ordinal;
};

/* Nobody can open this one and live: it is no defect that a loader survives (doctor.py). */
#define FATAL "fatal"

static char own_id[64];
static burn_slot slots[3];
static burn_row row;
static burn_row_set row_set;
static burn_device_api device;
static burn_plugin plugin;
#ifdef BURN_LAYOUTS_INIT
static const uint64_t layouts[] = BURN_LAYOUTS_INIT;
#endif

static int is(const char *name)
{
    return strcmp(own_id, name) == 0;
}

/* Defects of copies show only where the host cannot reach the memory itself. */
static int is_far(void)
{
    return is("copy_rude") || is("read_past");
}

/* Its work is done when a launch returns, but it says that it comes later. */
static int is_late(void)
{
    return is("reached_past") || is("reached_fails");
}

/* Writes what does not belong to it: `n` bytes behind a struct. */
static void overrun(void *at, size_t size, size_t n)
{
    memset((unsigned char *)at + size, 0x42, n);
}

#ifdef MORE_SYMBOLS
/* What a plugin exports beside its entry when its vendor forgets the flags. */
#define EXPORT __attribute__((visibility("default")))
EXPORT int hostile_helper(void);
EXPORT int hostile_state = 3;
EXPORT int hostile_helper(void)
{
    return hostile_state;
}
#endif

static int32_t fail(burn_err *err, int32_t code, const char *text)
{
    err->code = code;
    strncpy(err->text, text, sizeof(err->text) - 1);
    return code;
}

/* An answer that looks like success but is none: codes, text and sizes that no host expects. */
static int32_t rude(burn_err *err, int32_t code)
{
    err->struct_size = 0xffffffffu;
    err->cap = 0xffffffffu;
    err->code = 77;
    memset(err->text, 'x', sizeof(err->text));
    return code;
}

static int32_t BURN_CALL dev_count(uint32_t *out, burn_err *err)
{
    *out = 1;
    if (is("count_past")) {
        overrun(out, sizeof(*out), 12);
    }
    return is("count_rude") ? rude(err, -4000) : BURN_OK;
}

static int32_t BURN_CALL dev_probe(uint32_t ordinal, burn_device_info *out, burn_err *err)
{
    (void)ordinal;
    out->kind = is("probe_kind") ? 0xdeadu : BURN_DEVICE_CPU;
    memset(out->name, 'n', sizeof(out->name));
    if (is("probe_past")) {
        overrun(out, sizeof(*out), 96);
    }
    return is("probe_rude") ? rude(err, 5) : BURN_OK;
}

/* Says that it is in open, and stays there until the test says go on. */
static int wait_for_test(void)
{
    const char *text = getenv("HOSTILE_PIPES");
    int say = -1;
    int hear = -1;
    char byte = 'o';
    return text != NULL && sscanf(text, "%d,%d", &say, &hear) == 2 && write(say, &byte, 1) == 1 &&
           read(hear, &byte, 1) == 1;
}

static int32_t BURN_CALL dev_open(uint32_t ordinal, const char *options, burn_backend_device **out,
                                  burn_err *err)
{
    (void)options;
    if (is("open_fails")) {
        overrun(err, sizeof(*err), 8);
        return fail(err, BURN_E_DEVICE, "it does not start");
    }
    if (is("open_rude")) {
        return rude(err, 31337);
    }
    if (is("open_nothing")) {
        return BURN_OK;
    }
    if (is("open_waits") && !wait_for_test()) {
        return fail(err, BURN_E_DEVICE, "the test gave no pipes");
    }
    *out = calloc(1, sizeof(**out));
    (*out)->ordinal = ordinal;
    if (is("open_past")) {
        overrun(out, sizeof(*out), 16);
    }
    return BURN_OK;
}

static void BURN_CALL dev_close(burn_backend_device *dev)
{
    free(dev);
}

static int32_t BURN_CALL dev_limits(burn_backend_device *dev, burn_limits *out, burn_err *err)
{
    (void)dev;
    (void)err;
    out->flags = BURN_LIMIT_INDEX64 | (is_late() ? 0 : BURN_LIMIT_SYNCHRONOUS);
    out->flags |= is_far() ? 0 : BURN_LIMIT_HOST_MEMORY;
    out->offset_align = is("limits_align") ? 3 : 64;
    out->suballoc_align = is("limits_cut") ? 100 : 64;
    out->max_binding = UINT64_MAX;
    out->max_elements = is("limits_elements") ? 0 : UINT64_MAX;
    out->page_size = is("limits_page") ? UINT64_MAX : 1 << 20;
    if (is("limits_past")) {
        overrun(out, sizeof(*out), 128);
    }
    return is("limits_code") ? 4 : BURN_OK;
}

static int32_t BURN_CALL dev_alloc(burn_backend_device *dev, uint32_t kind, uint64_t bytes,
                                   burn_buffer **out, void **out_host, burn_err *err)
{
    (void)dev;
    (void)kind;
    if (is("alloc_nothing")) {
        return BURN_OK;
    }
    burn_buffer *buffer = calloc(1, sizeof(*buffer));
    buffer->bytes = aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64));
    if (buffer->bytes == NULL) {
        free(buffer);
        return fail(err, BURN_E_NO_MEMORY, "no memory");
    }
    *out = buffer;
    *out_host = is("alloc_no_host") || is_far() ? NULL : buffer->bytes;
    if (is("alloc_past")) {
        overrun(out, sizeof(*out), 8);
    }
    if (is("alloc_host_past")) {
        overrun(out_host, sizeof(*out_host), 24);
    }
    return BURN_OK;
}

static void BURN_CALL dev_free(burn_backend_device *dev, burn_buffer *buffer)
{
    (void)dev;
    free(buffer->bytes);
    free(buffer);
}

static int32_t BURN_CALL queue_create(burn_backend_device *dev, burn_queue **out, burn_err *err)
{
    (void)dev;
    if (is("queue_rude")) {
        return rude(err, 1);
    }
    *out = is("queue_nothing") ? NULL : calloc(1, sizeof(**out));
    if (is("queue_past")) {
        overrun(out, sizeof(*out), 40);
    }
    return BURN_OK;
}

static void BURN_CALL queue_destroy(burn_queue *queue)
{
    free(queue);
}

static int32_t BURN_CALL copy_in(burn_queue *queue, burn_buffer *dst, uint64_t offset,
                                 const void *src, uint64_t bytes, burn_err *err)
{
    (void)queue;
    if (is("copy_rude")) {
        return rude(err, -99);
    }
    memcpy(dst->bytes + offset, src, (size_t)bytes);
    return BURN_OK;
}

static int32_t BURN_CALL copy_out(burn_queue *queue, void *dst, burn_buffer *src, uint64_t offset,
                                  uint64_t bytes, burn_err *err)
{
    (void)queue;
    if (is("read_past")) {
        overrun(err, sizeof(*err), 40);
        return BURN_E_IO;
    }
    memcpy(dst, src->bytes + offset, (size_t)bytes);
    return BURN_OK;
}

static int32_t BURN_CALL copy_within(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                                     burn_buffer *src, uint64_t src_offset, uint64_t bytes,
                                     burn_err *err)
{
    (void)queue;
    (void)err;
    memmove(dst->bytes + dst_offset, src->bytes + src_offset, (size_t)bytes);
    return BURN_OK;
}

static int32_t BURN_CALL fill(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                              uint8_t byte, burn_err *err)
{
    (void)queue;
    (void)err;
    memset(dst->bytes + offset, byte, (size_t)bytes);
    return BURN_OK;
}

static int32_t BURN_CALL queue_signal(burn_queue *queue, uint64_t value, burn_err *err)
{
    (void)err;
    queue->reached = value;
    return BURN_OK;
}

static int32_t BURN_CALL queue_wait(burn_queue *queue, burn_queue *other, uint64_t value,
                                    burn_err *err)
{
    (void)queue;
    (void)other;
    (void)value;
    (void)err;
    return BURN_OK;
}

static int32_t BURN_CALL queue_reached(burn_queue *queue, uint64_t *out, burn_err *err)
{
    *out = queue->reached;
    if (is("reached_past")) {
        overrun(out, sizeof(*out), 48);
    }
    return is("reached_fails") ? fail(err, BURN_E_IO, "it does not know") : BURN_OK;
}

static int32_t BURN_CALL host_wait(burn_queue *queue, uint64_t value, uint64_t timeout,
                                   burn_err *err)
{
    (void)queue;
    (void)value;
    (void)timeout;
    (void)err;
    return BURN_OK;
}

static const float *floats(const burn_call *call, uint32_t i)
{
    const burn_operand *o = &call->operands[i];
    if (o->data != NULL) {
        return o->data;
    }
    return (const float *)(const void *)(o->buffer->bytes + o->offset);
}

static int32_t BURN_CALL launch(const burn_call *call)
{
    if (is("launch_fails")) {
        return fail(call->err, BURN_E_DEVICE, "the kernel gave up");
    }
    if (is("launch_silent")) {
        return BURN_E_IO;
    }
    if (is("launch_code") || is("launch_positive")) {
        return is("launch_code") ? -12345 : 12345;
    }
    if (is("launch_rude")) {
        return rude(call->err, BURN_E_DEVICE);
    }
    if (is("launch_past")) {
        overrun(call->err, sizeof(*call->err), 200);
        return BURN_E_DEVICE;
    }
    const burn_operand *out = &call->operands[2];
    int64_t n = 1;
    for (uint8_t d = 0; d < out->rank; d++) {
        n *= out->dims[d];
    }
    const float *x = floats(call, 0);
    const float *y = floats(call, 1);
    float *z = (float *)(uintptr_t)floats(call, 2);
    for (int64_t i = 0; i < n; i++) {
        z[i] = x[i] + y[i];
    }
    return BURN_OK;
}

static int32_t BURN_CALL check(const burn_call *call)
{
    return is("check_rude") ? rude(call->err, -77) : BURN_OK;
}

static int32_t BURN_CALL prepare(const burn_call *call, burn_prepared *out)
{
    if (is("prepare_past")) {
        overrun(out, sizeof(*out), 64);
    }
    if (is("prepare_bomb")) {
        out->workspace_bytes = UINT64_MAX - 7;
    }
    if (is("prepare_mask")) {
        out->in_place_mask = 0xffffffffu;
    }
    return is("prepare_rude") ? rude(call->err, 9) : BURN_OK;
}

static void build_row(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        slots[i].dtypes[0] = BURN_BIT(F32);
        slots[i].layouts = BURN_LAYOUT_CONTIGUOUS;
        slots[i].rank_max = BURN_MAX_RANK;
    }
    BURN_INIT(&row, burn_row);
    row.flags = BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS;
    row.op = is("row_of_no_op") ? 9999 : BURN_OP_ADD;
    row.revision_min = 1;
    row.revision_max = 1;
    row.n_slots = is("row_slots") ? 2 : 3;
    row.slot_stride = (uint32_t)sizeof(burn_slot);
    row.slots = slots;
    row.name = "hostile.add";
    row.check = check;
    row.prepare = prepare;
    row.launch = launch;
    BURN_INIT(&row_set, burn_row_set);
    row_set.backend = own_id;
    row_set.rows = &row;
    row_set.n_rows = 1;
    row_set.row_stride = (uint32_t)sizeof(burn_row);
}

static void build_device(void)
{
    BURN_INIT(&device, burn_device_api);
    device.count = dev_count;
    device.probe = dev_probe;
    device.open = dev_open;
    device.close = dev_close;
    device.limits = dev_limits;
    device.alloc = dev_alloc;
    device.free = dev_free;
    device.queue_create = queue_create;
    device.queue_destroy = queue_destroy;
    device.copy_in = copy_in;
    device.copy_out = copy_out;
    device.copy_within = copy_within;
    device.fill = fill;
    device.signal = queue_signal;
    device.wait = queue_wait;
    device.reached = queue_reached;
    device.host_wait = host_wait;
}

__attribute__((visibility("default"))) const burn_plugin *BURN_CALL
burn_plugin_query(uint32_t host_oldest, uint32_t host_newest, const burn_host *host, burn_err *err)
{
    static const burn_magic magic = BURN_MAGIC_INIT;
    (void)host_oldest;
    (void)host_newest;
    (void)host;
    find_own_id(own_id, sizeof(own_id));
    if (strcmp(own_id, FATAL) == 0) {
        (void)raise(SIGSEGV);
    }
    if (is("query_past")) {
        overrun(err, sizeof(*err), 30);
    }
    build_row();
    build_device();
    BURN_INIT(&plugin, burn_plugin);
    plugin.magic = magic;
    plugin.id = own_id;
    plugin.version = "1.2.3";
    plugin.device = &device;
    plugin.row_sets = &row_set;
    plugin.n_row_sets = 1;
    plugin.row_set_stride = (uint32_t)sizeof(burn_row_set);
#ifdef BURN_LAYOUTS_INIT
    plugin.layouts = layouts;
    plugin.n_layouts = (uint32_t)(sizeof(layouts) / sizeof(layouts[0]));
#endif
    return &plugin;
}
