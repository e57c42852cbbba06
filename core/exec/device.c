/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * device.c - opening devices and collecting the rows that serve them.
 *
 * The loader resolves the string and opens the plugin; here the backend's device is opened once,
 * the pool is made, and it gets its rows (rows.h). Devices are never closed before burn_shutdown.
 * The backend opens under no lock: meanwhile the device is in the list of opening ones, where who
 * asks for the same one waits, and others pass. Only to become visible takes the lock.
 */
#include "exec/device.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/check.h"
#include "exec/explain.h"
#include "exec/extension.h"
#include "exec/fault.h"
#include "exec/plan_file.h"
#include "exec/profile.h"
#include "exec/rows.h"
#include "exec/tuner.h"
#include "loader/ask.h"
#include "loader/lent.h"
#include "loader/loader.h"
#include "tune/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static burni_device *devices[BURNI_MAX_DEVICES];
static _Atomic uint32_t n_devices;
static burni_device *opening; /* under `lock`, as is its length */
static uint32_t n_opening;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER; /* one left that list */

burni_device *burni_device_at(uint32_t index)
{
    return index < atomic_load_explicit(&n_devices, memory_order_acquire) ? devices[index] : NULL;
}

void burni_devices_lock(void)
{
    (void)pthread_mutex_lock(&lock);
}

void burni_devices_unlock(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* ---- options --------------------------------------------------------------------------------- */

static int32_t read_window(uint32_t *out, burn_err *err)
{
    const char *text = burni_loader_option("WINDOW");
    *out = BURNI_WINDOW_AUTO;
    if (text == NULL || strcmp(text, "auto") == 0) {
        return BURN_OK;
    }
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end != '\0' || value > BURNI_MAX_WINDOW) {
        return burni_fail(err, BURN_E_INVALID,
                          "BURN_WINDOW=\"%s\": expected auto or a number from 1 to %d", text,
                          BURNI_MAX_WINDOW);
    }
    *out = (uint32_t)value;
    return BURN_OK;
}

int32_t burni_device_check_window(burn_err *err)
{
    uint32_t window = 1;
    return read_window(&window, err);
}

/* ---- children of fork ------------------------------------------------------------------------ */

/* In the child: its only thread may not take locks that the others had. */
static void forked(void)
{
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        burni_device *device = burni_device_at(d);
        atomic_store(&device->forked, !device->synchronous);
    }
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forked);
}

int32_t burni_device_check_fork(const burni_device *device, burn_err *err)
{
    if (__builtin_expect(!atomic_load_explicit(&device->forked, memory_order_relaxed), 1)) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_STATE,
                      "device %s was opened before this process was forked, and its threads are in "
                      "the parent; open devices after fork, in each process its own",
                      device->name);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The cache may be that of another thread's stream, which the caller drains. */
static void quiesce(void *user, burni_cache *cache)
{
    burni_device *device = user;
    burni_stream *s =
        (burni_stream *)(void *)((char *)cache - offsetof(burni_stream, cache));
    uint64_t point = atomic_load(&s->submitted);
    if (!device->synchronous && point > 0 && !atomic_load(&device->forked)) {
        burni_sink sink;
        burni_sink_begin(&sink);
        int32_t rc = device->api->host_wait(s->queue, point, UINT64_MAX, &sink.err);
        (void)burni_sink_end(&sink, device->backend, "host_wait", rc, NULL);
    }
}

static int is_power_of_two(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* What the pool and the rules of operands build on. */
static int32_t check_limits(const burni_device *device, burn_err *err)
{
    const burn_limits *l = &device->limits;
    int cut = l->suballoc_align == 0 || is_power_of_two(l->suballoc_align);
    if (is_power_of_two(l->offset_align) && cut && l->max_binding > 0 && l->max_elements > 0) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_ABI,
                      "%s: its limits make no sense: offset_align %llu, suballoc_align %llu (powers"
                      " of two), max_binding %llu, max_elements %llu (above 0)",
                      device->backend, (unsigned long long)l->offset_align,
                      (unsigned long long)l->suballoc_align, (unsigned long long)l->max_binding,
                      (unsigned long long)l->max_elements);
}

/* Without a clock, or with one that is cut off, times are told less well. */
static const burn_profile_clock *clock_of(const burn_plugin *plugin)
{
    const burn_profile_clock *clock =
        plugin->extension != NULL ? plugin->extension(BURN_PROFILE_CLOCK) : NULL;
    int fine = clock != NULL && clock->struct_size >= sizeof(*clock) && clock->n_slots > 0 &&
               clock->begin != NULL && clock->end != NULL && clock->read != NULL;
    return fine ? clock : NULL;
}

/* Kernels that take many calls of a row at once. */
static const burn_many *many_of(const burn_plugin *plugin)
{
    const burn_many *many = plugin->extension != NULL ? plugin->extension(BURN_MANY) : NULL;
    int fine = many != NULL && many->struct_size >= sizeof(*many) && many->kernels != NULL &&
               many->kernel_stride >= sizeof(burn_many_kernel);
    return fine ? many : NULL;
}

static const burn_service *service_of(const burni_device *device)
{
    char id[80];
    (void)snprintf(id, sizeof(id), "%s.kernel/1", device->backend);
    const burn_plugin *table = device->plugin;
    const burn_service *service = table->extension != NULL ? table->extension(id) : NULL;
    return service != NULL && service->struct_size >= sizeof(*service) ? service : NULL;
}

static int32_t read_limits(burni_device *device, burn_err *err)
{
    burni_sink sink;
    BURNI_LENT(burn_limits) limits;
    burni_sink_begin(&sink);
    burni_lend(limits.guard);
    BURN_INIT(&limits.it, burn_limits);
    int32_t rc = device->api->limits(device->handle, &limits.it, &sink.err);
    rc = burni_sink_end(&sink, device->backend, "limits", rc, err);
    if (rc == BURN_OK) {
        rc = burni_lent_check(limits.guard, device->backend, "limits", "burn_limits", err);
    }
    device->limits = limits.it;
    return rc == BURN_OK ? check_limits(device, err) : rc;
}

/* The backend's own, and those of the extensions that are loaded. */
static int32_t add_rows(burni_device *device, burn_err *err)
{
    burni_row_plan *plan = NULL;
    char note[256] = "";
    int32_t rc = burni_rows_plan(device, device->plugin, "", NULL, &plan, note, err);
    burni_rows_commit(plan);
    if (rc == BURN_OK) {
        burni_extensions_serve(device);
    }
    return rc;
}

static int32_t make_pool(burni_device *device, burn_err *err)
{
    if (burni_pool_init(&device->pool, device->api, device->handle, &device->limits) != BURN_OK) {
        return burni_fail(err, BURN_E_NO_MEMORY, "device %s: out of host memory", device->name);
    }
    device->pool.passed = burni_snapshot_passed;
    device->pool.quiesce = quiesce;
    device->pool.user = device;
    device->pool.backend = device->backend;
    return BURN_OK;
}

/* What the backend says and does; without the lock. */
static int32_t start(burni_device *device, const char *options, burn_err *err)
{
    int32_t rc = read_window(&device->window, err);
    if (rc == BURN_OK) {
        rc = burni_ask_open(device->api, device->ordinal, options[0] != '\0' ? options : NULL,
                            device->backend, &device->handle, err);
    }
    if (rc != BURN_OK) {
        burni_prefix(err, "device %s", device->name);
        return rc;
    }
    rc = read_limits(device, err);
    if (rc == BURN_OK) {
        device->synchronous = (device->limits.flags & BURN_LIMIT_SYNCHRONOUS) != 0;
        device->host_memory = (device->limits.flags & BURN_LIMIT_HOST_MEMORY) != 0;
        device->clock = clock_of(device->plugin);
    device->many = many_of(device->plugin);
        device->service = service_of(device);
        rc = make_pool(device, err);
    }
    if (rc != BURN_OK) {
        device->api->close(device->handle);
        device->handle = NULL;
    }
    return rc;
}

static burni_device *find_open(const burni_device_choice *choice)
{
    for (uint32_t i = 0; i < atomic_load(&n_devices); i++) {
        if (strcmp(devices[i]->name, choice->canonical) == 0) {
            return devices[i];
        }
    }
    return NULL;
}

static burni_device *find_opening(const burni_device_choice *choice)
{
    burni_device *device = opening;
    while (device != NULL && strcmp(device->name, choice->canonical) != 0) {
        device = device->next;
    }
    return device;
}

/* Nothing of the backend is called yet. */
static burni_device *device_new(const burni_plugin *plugin, const burni_device_choice *choice,
                                burn_err *err)
{
    burni_device *device = burni_calloc(1, sizeof(*device));
    if (device == NULL || pthread_mutex_init(&device->lock, NULL) != 0 ||
        pthread_mutex_init(&device->fault_lock, NULL) != 0) {
        burni_free(device);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "device %s: out of host memory",
                         choice->canonical);
        return NULL;
    }
    device->api = plugin->table->device;
    device->plugin = plugin->table;
    device->ordinal = choice->ordinal;
    (void)snprintf(device->backend, sizeof(device->backend), "%s", choice->id);
    (void)snprintf(device->name, sizeof(device->name), "%s", choice->canonical);
    (void)snprintf(device->reason, sizeof(device->reason), "%s", choice->why);
    device->plain.core = device;
    device->autodiff.core = device;
    device->autodiff.autodiff = 1;
    device->opener = pthread_self();
    return device;
}

/* The device that is open, after another thread's opening of it if need be; else *mine is a new one
 * in the list of opening ones, for the caller to open. Both NULL: an error. Under the lock. */
static burni_device *find_or_claim(const burni_plugin *plugin, const burni_device_choice *choice,
                                   burni_device **mine, burn_err *err)
{
    burni_device *device = NULL;
    burni_device *other = NULL;
    *mine = NULL;
    while ((device = find_open(choice)) == NULL && (other = find_opening(choice)) != NULL) {
        if (pthread_equal(other->opener, pthread_self())) {
            (void)burni_fail(err, BURN_E_STATE,
                             "device %s is being opened by this thread; a log callback must not "
                             "open it again",
                             choice->canonical);
            return NULL;
        }
        (void)pthread_cond_wait(&opened, &lock);
    }
    if (device != NULL) {
        return device;
    }
    if (atomic_load(&n_devices) + n_opening >= BURNI_MAX_DEVICES) {
        (void)burni_fail(err, BURN_E_LIMIT, "more than %d devices are open", BURNI_MAX_DEVICES);
        return NULL;
    }
    *mine = device_new(plugin, choice, err);
    if (*mine != NULL) {
        (*mine)->next = opening;
        opening = *mine;
        n_opening++;
    }
    return NULL;
}

/* With its rows it becomes visible, unless its opening failed. Under the lock. */
static int32_t publish(burni_device *device, int32_t rc, burn_err *err)
{
    if (rc == BURN_OK) {
        uint32_t n = atomic_load(&n_devices);
        device->index = n;
        rc = add_rows(device, err);
        if (rc == BURN_OK) {
            devices[n] = device;
            atomic_store_explicit(&n_devices, n + 1, memory_order_release);
        }
    }
    burni_device **at = &opening;
    while (*at != device) {
        at = &(*at)->next;
    }
    *at = device->next;
    device->next = NULL;
    n_opening--;
    (void)pthread_cond_broadcast(&opened);
    return rc;
}

static burni_device *open_once(const burni_plugin *plugin, const burni_device_choice *choice,
                               burn_err *err)
{
    burni_device *mine = NULL;
    burni_devices_lock();
    burni_device *device = find_or_claim(plugin, choice, &mine, err);
    burni_devices_unlock();
    if (mine == NULL) {
        return device;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    int32_t rc = start(mine, choice->options, err);
    burni_devices_lock();
    rc = publish(mine, rc, err);
    burni_devices_unlock();
    if (rc == BURN_OK) {
        return mine;
    }
    burni_rows_free(mine);
    if (mine->handle != NULL) {
        mine->api->close(mine->handle);
    }
    burni_free(mine);
    return NULL;
}

/* Options of the whole process: a wrong one is told here, before anything runs. */
static int32_t read_modes(burn_err *err)
{
    int32_t rc = burni_log_check(err);
    if (rc == BURN_OK) {
        rc = burni_loader_check_threads(err);
    }
    if (rc == BURN_OK) {
        rc = burni_loader_check_path(err);
    }
    if (rc == BURN_OK) {
        rc = burni_explain_start(err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_start(err);
    }
    if (rc == BURN_OK) {
        rc = burni_plan_file_start(err);
    }
    if (rc == BURN_OK) {
        rc = burni_profile_start(err);
    }
    if (rc == BURN_OK) {
        rc = burni_environment_start(err);
    }
    burni_thread *thread = burni_thread_get();
    if (thread != NULL) {
        thread->watch |= atomic_load(&burni_watch_all);
    }
    return rc;
}

burn_device *burni_device_open(const char *string, burn_err *err)
{
    burni_device_choice choice;
    memset(&choice, 0, sizeof(choice));
    if (read_modes(err) != BURN_OK) {
        return NULL;
    }
    if (burni_loader_resolve(string, &choice, err) != BURN_OK) {
        return NULL;
    }
    const burni_plugin *plugin = NULL;
    if (burni_loader_open(choice.id, &plugin, err) != BURN_OK) {
        return NULL;
    }
    burni_device *device = open_once(plugin, &choice, err);
    if (device == NULL) {
        return NULL;
    }
    burni_extensions_tell();
    burni_tuner_know(device);
    return choice.autodiff ? &device->autodiff : &device->plain;
}

void burni_device_latch(burni_device *device, burni_cause *cause,
                        const struct burni_stream *stream, uint64_t age)
{
    burni_log(BURN_LOG_WARN, device->name, "%s", cause->text);
    (void)pthread_mutex_lock(&device->lock);
    int is_older = device->latched != NULL && device->latched_from == stream &&
                   age < device->latched_age;
    if (device->latched == NULL || is_older) {
        burni_cause_unref(device->latched);
        device->latched = burni_cause_ref(cause);
        device->latched_from = stream;
        device->latched_age = age;
    }
    (void)pthread_mutex_unlock(&device->lock);
}
