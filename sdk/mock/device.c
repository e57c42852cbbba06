/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.c - the device table: two virtual devices, their limits and options.
 *
 * Probing touches nothing but constants, so listing devices is free and survives fork. Options come
 * from the device string ("mock:0?memory=65536") or, for those that it does not name, from the
 * host's options (MOCK_MEMORY). An unknown key in the device string is an error. To port: ask the
 * driver in count, probe and limits, and open its context in open.
 */
#include "mock.h"

#include <errno.h>
#include <stdlib.h>

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static burn_backend_device *open_devices;

static int32_t count_devices(uint32_t *out_count, burn_err *err)
{
    (void)err;
    *out_count = MOCK_DEVICES;
    return BURN_OK;
}

static int32_t probe(uint32_t ordinal, burn_device_info *out, burn_err *err)
{
    if (ordinal >= MOCK_DEVICES) {
        return burn_plugin_fail(err, BURN_E_NOT_FOUND, "mock:%u does not exist; there are mock:0 "
                                                       "and mock:1",
                                (unsigned)ordinal);
    }
    out->kind = BURN_DEVICE_VIRTUAL;
    (void)snprintf(out->name, sizeof(out->name), "mock device %u", (unsigned)ordinal);
    (void)snprintf(out->isa, sizeof(out->isa), "reference");
    (void)snprintf(out->driver, sizeof(out->driver), "mock %s", MOCK_VERSION);
    (void)snprintf(out->uuid, sizeof(out->uuid), "mock-%u", (unsigned)ordinal);
    out->pci[0] = '\0';
    out->memory = UINT64_C(1) << 32;
    out->units = 1;
    return BURN_OK;
}

int mock_parse_number(const char *text, char end, uint64_t *out, const char **rest)
{
    char *stop = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return 0;
    }
    errno = 0;
    unsigned long long number = strtoull(text, &stop, 10);
    if (errno != 0 || (*stop != end && *stop != '\0')) {
        return 0;
    }
    *out = (uint64_t)number;
    *rest = stop;
    return 1;
}

int32_t mock_number_option(const char *name, uint64_t *out, burn_err *err)
{
    const char *text = mock_host->option(name);
    const char *rest = NULL;
    if (text == NULL) {
        return BURN_OK;
    }
    if (!mock_parse_number(text, '\0', out, &rest)) {
        return burn_plugin_fail(err, BURN_E_INVALID, "mock: option %s is \"%.60s\", not a number",
                                name, text);
    }
    return BURN_OK;
}

/* Where the value of a device string's key belongs; NULL when the key is not known. */
static uint64_t *option_place(burn_backend_device *dev, const char *key, size_t length)
{
    uint64_t *place = NULL;
    if (length == strlen("memory") && memcmp(key, "memory", length) == 0) {
        place = &dev->memory;
    }
#ifdef MOCK_INJECT
    if (place == NULL) {
        place = mock_inject_option(&dev->inject, key, length);
    }
#endif /* MOCK_INJECT */
    return place;
}

/* One "key=value" of the device string; *text moves behind it. */
static int32_t string_option(const char **text, burn_backend_device *dev, burn_err *err)
{
    size_t length = strcspn(*text, "=&");
    const char *number = *text + length + 1;
    uint64_t *place = (*text)[length] == '=' ? option_place(dev, *text, length) : NULL;
    const char *more = "";
#ifdef MOCK_INJECT
    more = MOCK_INJECT_KEYS;
#endif /* MOCK_INJECT */
    if (place == NULL) {
        return burn_plugin_fail(err, BURN_E_INVALID,
                                "mock: unknown device option \"%.60s\"; there is memory=<bytes>%s",
                                *text, more);
    }
    if (!mock_parse_number(number, '&', place, text)) {
        return burn_plugin_fail(err, BURN_E_INVALID, "mock: %.*s=%.40s is not a number",
                                (int)length, *text, number);
    }
    return BURN_OK;
}

/* The device string is read last: it goes before the host's options. */
static int32_t read_options(const char *text, burn_backend_device *dev, burn_err *err)
{
    dev->memory = UINT64_C(1) << 32;
    int32_t code = mock_number_option("MOCK_MEMORY", &dev->memory, err);
#ifdef MOCK_INJECT
    if (code == BURN_OK) {
        code = mock_inject_read(&dev->inject, err);
    }
#endif /* MOCK_INJECT */
    while (code == BURN_OK && text != NULL && *text != '\0') {
        code = string_option(&text, dev, err);
        if (code == BURN_OK && *text == '&') {
            text++;
        }
    }
    return code;
}

static int32_t open_device(uint32_t ordinal, const char *options, burn_backend_device **out,
                           burn_err *err)
{
    if (ordinal >= MOCK_DEVICES) {
        return burn_plugin_fail(err, BURN_E_NOT_FOUND, "mock:%u does not exist",
                                (unsigned)ordinal);
    }
    burn_backend_device *dev = (burn_backend_device *)mock_host->alloc(sizeof(*dev));
    if (dev == NULL) {
        return burn_plugin_fail(err, BURN_E_NO_MEMORY, "mock: no host memory for a device");
    }
    memset(dev, 0, sizeof(*dev));
    int32_t code = read_options(options, dev, err);
    if (code != BURN_OK) {
        mock_host->free(dev);
        return code;
    }
    dev->ordinal = ordinal;
    atomic_init(&dev->lost, 0);
    (void)pthread_mutex_init(&dev->fault_lock, NULL);
    (void)pthread_mutex_init(&dev->queues_lock, NULL);
    (void)pthread_mutex_lock(&devices_lock);
    dev->next = open_devices;
    open_devices = dev;
    (void)pthread_mutex_unlock(&devices_lock);
    *out = dev;
    return BURN_OK;
}

static void close_device(burn_backend_device *dev)
{
    (void)pthread_mutex_lock(&devices_lock);
    burn_backend_device **place = &open_devices;
    while (*place != NULL && *place != dev) {
        place = &(*place)->next;
    }
    if (*place != NULL) {
        *place = dev->next;
    }
    (void)pthread_mutex_unlock(&devices_lock);
    while (dev->queues != NULL) {
        mock_queue_destroy(dev->queues);
    }
    (void)pthread_mutex_destroy(&dev->fault_lock);
    (void)pthread_mutex_destroy(&dev->queues_lock);
    mock_host->free(dev);
}

void mock_shutdown(void)
{
    while (open_devices != NULL) {
        close_device(open_devices);
    }
}

static int32_t limits(burn_backend_device *dev, burn_limits *out, burn_err *err)
{
    (void)err;
    out->flags = BURN_LIMIT_INDEX64;
    out->offset_align = 1;
    out->suballoc_align = 64;
    out->max_binding = dev->memory;
    out->max_elements = UINT64_MAX;
    out->page_size = UINT64_C(1) << 20;
    return BURN_OK;
}

static int32_t is_lost(burn_backend_device *dev)
{
    return atomic_load(&dev->lost) != 0;
}

const burn_device_api mock_device_api = {
    .struct_size = (uint32_t)sizeof(burn_device_api),
    .count = count_devices,
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .limits = limits,
    .memory_info = mock_memory_info,
    .alloc = mock_alloc,
    .free = mock_free,
    .queue_create = mock_queue_create,
    .queue_destroy = mock_queue_destroy,
    .copy_in = mock_copy_in,
    .copy_out = mock_copy_out,
    .copy_within = mock_copy_within,
    .copy_peer = mock_copy_peer,
    .fill = mock_fill_bytes,
    .signal = mock_signal,
    .wait = mock_wait,
    .reached = mock_reached,
    .host_wait = mock_host_wait,
    .lost = is_lost,
};
