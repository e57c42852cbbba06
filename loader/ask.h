/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ask.h - entries of a device table that hand something out, called so that what they fill ends in
 * guard bytes (lent.h), with a sink of their own.
 *
 * The core opens devices, takes memory and makes queues; it does so through these, never by the
 * entries themselves. An entry that wrote past what it was given, or gave nothing, has failed; what
 * it made all the same is given back. `backend` is the plugin's id, for the message. To guard a
 * further entry: a function here, and a row in tests/loader/test_hostile.c. Keeps no state. [any]
 */
#ifndef BURN_LOADER_ASK_H
#define BURN_LOADER_ASK_H

#include <burn/backend.h>

int32_t burni_ask_open(const burn_device_api *api, uint32_t ordinal, const char *options,
                       const char *backend, burn_backend_device **out, burn_err *err);
/* Device memory. `out_host` is NULL where the host cannot reach it. */
int32_t burni_ask_alloc(const burn_device_api *api, burn_backend_device *dev, uint64_t bytes,
                        const char *backend, burn_buffer **out, void **out_host, burn_err *err);
int32_t burni_ask_queue(const burn_device_api *api, burn_backend_device *dev, const char *backend,
                        burn_queue **out, burn_err *err);
/* The highest value that a queue reached. */
int32_t burni_ask_reached(const burn_device_api *api, burn_queue *queue, const char *backend,
                          uint64_t *out, burn_err *err);

#endif /* BURN_LOADER_ASK_H */
