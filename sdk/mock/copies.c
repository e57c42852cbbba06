/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copies.c - copies between host and device memory, and fills, in queue order.
 *
 * Bounds and life of buffers are checked when a copy is queued. The source of copy_in is staged, so
 * the caller may change it at once; the destination of copy_out is written by the worker. To port:
 * each `run` function becomes the driver's asynchronous copy.
 */
#include "mock.h"

static void run_copy_in(mock_item *item)
{
    memcpy(item->dst.bytes, item->staging, (size_t)item->bytes);
}

int32_t mock_copy_in(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset, const void *src,
                     uint64_t bytes, burn_err *err)
{
    mock_item *item = NULL;
    uint32_t ordinal = mock_queue_device(queue)->ordinal;
    int32_t code = mock_item_get(queue, &item, err);
    if (code != BURN_OK || bytes == 0) {
        if (item != NULL) {
            mock_item_drop(item);
        }
        return code;
    }
    code = mock_pin_bytes(ordinal, dst, dst_offset, bytes, &item->dst, err);
    if (code == BURN_OK) {
        item->staging = (unsigned char *)mock_host->alloc(bytes);
        if (item->staging == NULL) {
            code = burn_plugin_fail(err, BURN_E_NO_MEMORY, "mock: no host memory for a copy");
        }
    }
    if (code != BURN_OK) {
        mock_item_drop(item);
        return code;
    }
    memcpy(item->staging, src, (size_t)bytes);
    item->bytes = bytes;
    item->run = run_copy_in;
    mock_item_push(item);
    return BURN_OK;
}

static void run_copy_out(mock_item *item)
{
    memcpy(item->host, item->src.bytes, (size_t)item->bytes);
}

int32_t mock_copy_out(burn_queue *queue, void *dst, burn_buffer *src, uint64_t src_offset,
                      uint64_t bytes, burn_err *err)
{
    mock_item *item = NULL;
    uint32_t ordinal = mock_queue_device(queue)->ordinal;
    int32_t code = mock_item_get(queue, &item, err);
    if (code == BURN_OK && bytes > 0) {
        code = mock_pin_bytes(ordinal, src, src_offset, bytes, &item->src, err);
    }
    if (code != BURN_OK || bytes == 0) {
        if (item != NULL) {
            mock_item_drop(item);
        }
        return code;
    }
    item->host = dst;
    item->bytes = bytes;
    item->run = run_copy_out;
    mock_item_push(item);
    return BURN_OK;
}

static void run_copy(mock_item *item)
{
    memmove(item->dst.bytes, item->src.bytes, (size_t)item->bytes);
}

/* Within one device or between two: the memory of both is equally near to the worker. */
static int32_t copy_between(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                            uint32_t src_ordinal, burn_buffer *src, uint64_t src_offset,
                            uint64_t bytes, burn_err *err)
{
    mock_item *item = NULL;
    uint32_t ordinal = mock_queue_device(queue)->ordinal;
    int32_t code = mock_item_get(queue, &item, err);
    if (code == BURN_OK && bytes > 0) {
        code = mock_pin_bytes(ordinal, dst, dst_offset, bytes, &item->dst, err);
    }
    if (code == BURN_OK && bytes > 0) {
        code = mock_pin_bytes(src_ordinal, src, src_offset, bytes, &item->src, err);
    }
    if (code != BURN_OK || bytes == 0) {
        if (item != NULL) {
            mock_item_drop(item);
        }
        return code;
    }
    item->bytes = bytes;
    item->run = run_copy;
    mock_item_push(item);
    return BURN_OK;
}

int32_t mock_copy_within(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                         burn_buffer *src, uint64_t src_offset, uint64_t bytes, burn_err *err)
{
    return copy_between(queue, dst, dst_offset, mock_queue_device(queue)->ordinal, src, src_offset,
                        bytes, err);
}

int32_t mock_copy_peer(burn_queue *queue, burn_buffer *dst, uint64_t dst_offset,
                       burn_backend_device *src_dev, burn_buffer *src, uint64_t src_offset,
                       uint64_t bytes, burn_err *err)
{
    return copy_between(queue, dst, dst_offset, src_dev->ordinal, src, src_offset, bytes, err);
}

static void run_fill(mock_item *item)
{
    memset(item->dst.bytes, item->byte, (size_t)item->bytes);
}

int32_t mock_fill_bytes(burn_queue *queue, burn_buffer *dst, uint64_t offset, uint64_t bytes,
                        uint8_t byte, burn_err *err)
{
    mock_item *item = NULL;
    uint32_t ordinal = mock_queue_device(queue)->ordinal;
    int32_t code = mock_item_get(queue, &item, err);
    if (code == BURN_OK && bytes > 0) {
        code = mock_pin_bytes(ordinal, dst, offset, bytes, &item->dst, err);
    }
    if (code != BURN_OK || bytes == 0) {
        if (item != NULL) {
            mock_item_drop(item);
        }
        return code;
    }
    item->bytes = bytes;
    item->byte = byte;
    item->run = run_fill;
    mock_item_push(item);
    return BURN_OK;
}
