/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ask.c - see ask.h. What is handed out goes into a struct of this file with its guard behind it,
 * and to the caller when the guard is whole.
 */
#include "loader/ask.h"

#include "base/error.h"
#include "loader/lent.h"

int32_t burni_ask_open(const burn_device_api *api, uint32_t ordinal, const char *options,
                       const char *backend, burn_backend_device **out, burn_err *err)
{
    burni_sink sink;
    BURNI_LENT(burn_backend_device *) device = {NULL, {0}};
    burni_sink_begin(&sink);
    burni_lend(device.guard);
    int32_t rc = api->open(ordinal, options, &device.it, &sink.err);
    rc = burni_sink_end(&sink, backend, "open", rc, err);
    if (rc != BURN_OK) {
        return rc;
    }
    rc = burni_lent_check(device.guard, backend, "open", "out", err);
    if (rc == BURN_OK && device.it == NULL) {
        rc = burni_fail(err, BURN_E_INTERNAL, "%s: open succeeded but gave no device", backend);
    }
    if (rc == BURN_OK) {
        *out = device.it;
    } else if (device.it != NULL) {
        api->close(device.it);
    }
    return rc;
}

int32_t burni_ask_alloc(const burn_device_api *api, burn_backend_device *dev, uint64_t bytes,
                        const char *backend, burn_buffer **out, void **out_host, burn_err *err)
{
    burni_sink sink;
    BURNI_LENT(burn_buffer *) buffer = {NULL, {0}};
    BURNI_LENT(void *) host = {NULL, {0}};
    burni_sink_begin(&sink);
    burni_lend(buffer.guard);
    burni_lend(host.guard);
    int32_t rc = api->alloc(dev, BURN_MEMORY_DEVICE, bytes, &buffer.it, &host.it, &sink.err);
    rc = burni_sink_end(&sink, backend, "alloc", rc, err);
    if (rc != BURN_OK) {
        return rc;
    }
    rc = burni_lent_check(buffer.guard, backend, "alloc", "out", err);
    rc = rc == BURN_OK ? burni_lent_check(host.guard, backend, "alloc", "out_host", err) : rc;
    if (rc == BURN_OK && buffer.it == NULL) {
        rc = burni_fail(err, BURN_E_INTERNAL,
                        "%s: alloc of %llu bytes succeeded but gave no buffer", backend,
                        (unsigned long long)bytes);
    }
    if (rc == BURN_OK) {
        *out = buffer.it;
        *out_host = host.it;
    } else if (buffer.it != NULL) {
        api->free(dev, buffer.it);
    }
    return rc;
}

int32_t burni_ask_queue(const burn_device_api *api, burn_backend_device *dev, const char *backend,
                        burn_queue **out, burn_err *err)
{
    burni_sink sink;
    BURNI_LENT(burn_queue *) queue = {NULL, {0}};
    burni_sink_begin(&sink);
    burni_lend(queue.guard);
    int32_t rc = api->queue_create(dev, &queue.it, &sink.err);
    rc = burni_sink_end(&sink, backend, "queue_create", rc, err);
    if (rc != BURN_OK) {
        return rc;
    }
    rc = burni_lent_check(queue.guard, backend, "queue_create", "out", err);
    if (rc == BURN_OK && queue.it == NULL) {
        rc = burni_fail(err, BURN_E_INTERNAL, "%s: queue_create succeeded but gave no queue",
                        backend);
    }
    if (rc == BURN_OK) {
        *out = queue.it;
    } else if (queue.it != NULL) {
        api->queue_destroy(queue.it);
    }
    return rc;
}

int32_t burni_ask_reached(const burn_device_api *api, burn_queue *queue, const char *backend,
                          uint64_t *out, burn_err *err)
{
    burni_sink sink;
    BURNI_LENT(uint64_t) value = {0, {0}};
    burni_sink_begin(&sink);
    burni_lend(value.guard);
    int32_t rc = api->reached(queue, &value.it, &sink.err);
    rc = burni_sink_end(&sink, backend, "reached", rc, err);
    if (rc == BURN_OK) {
        rc = burni_lent_check(value.guard, backend, "reached", "out_value", err);
    }
    *out = rc == BURN_OK ? value.it : 0;
    return rc;
}
