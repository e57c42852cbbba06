/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * host.c - what the host offers to plugins: memory, log, options, thread budget, services.
 *
 * Options set through the API stay valid as long as the process, so a plugin may keep the pointer;
 * a value that was set before is found again, not stored twice. What the application set goes
 * before the environment. No lock is held while a plugin is asked for a service.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#define OPTION_NAME 48
#define OPTION_VALUE 1024
#define OPTION_VALUES 4096
#define THREADS_MOST 4096

/* One value that an option has or had; at most one of a name is `current`. */
typedef struct option_value {
    struct option_value *next;
    int current;
    char name[OPTION_NAME];
    char value[];
} option_value;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static option_value *values;
static uint32_t n_values;

/* With the lock: 1 when that value was stored before. */
static int is_stored(const char *name, const char *value)
{
    for (const option_value *v = values; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0 && strcmp(v->value, value) == 0) {
            return 1;
        }
    }
    return 0;
}

/* With the lock: makes the stored `value` (NULL: none) the current one. */
static void switch_to(const char *name, const char *value)
{
    for (option_value *v = values; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            v->current = value != NULL && strcmp(v->value, value) == 0;
        }
    }
}

int32_t burni_loader_check_option(const char *name, const char *value, burn_err *err)
{
    size_t n = name != NULL ? strnlen(name, OPTION_NAME) : 0;
    if (n == 0 || n >= OPTION_NAME) {
        return burni_fail(err, BURN_E_INVALID, "option: the name must have 1 to %d bytes",
                          OPTION_NAME - 1);
    }
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        int fine = (c >= 'A' && c <= 'Z') || c == '_' || (i > 0 && c >= '0' && c <= '9');
        if (!fine) {
            return burni_fail(err, BURN_E_INVALID,
                              "option \"%s\": names are upper-case letters, digits and '_', "
                              "without BURN_ before them",
                              name);
        }
    }
    if (value != NULL && strnlen(value, OPTION_VALUE) >= OPTION_VALUE) {
        return burni_fail(err, BURN_E_LIMIT, "option %s: the value has more than %d bytes", name,
                          OPTION_VALUE - 1);
    }
    return BURN_OK;
}

static int32_t add_value(const char *name, const char *value, burn_err *err)
{
    if (n_values == OPTION_VALUES) {
        return burni_fail(err, BURN_E_LIMIT, "option %s: more than %d values were set", name,
                          OPTION_VALUES);
    }
    size_t size = strlen(value) + 1;
    option_value *v = burni_calloc(1, sizeof(*v) + size);
    if (v == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "option %s: no memory", name);
    }
    memcpy(v->name, name, strlen(name) + 1);
    memcpy(v->value, value, size);
    v->next = values;
    values = v;
    n_values++;
    return BURN_OK;
}

int32_t burni_loader_set_option(const char *name, const char *value, burn_err *err)
{
    int32_t code = burni_loader_check_option(name, value, err);
    if (code != BURN_OK) {
        return code;
    }
    (void)pthread_mutex_lock(&lock);
    if (value != NULL && !is_stored(name, value)) {
        code = add_value(name, value, err);
    }
    if (code == BURN_OK) {
        switch_to(name, value);
    }
    (void)pthread_mutex_unlock(&lock);
    return code;
}

void burni_host_forget(void)
{
    while (values != NULL) {
        option_value *next = values->next;
        burni_free(values);
        values = next;
    }
    n_values = 0;
}

const char *burni_loader_option(const char *name)
{
    if (name == NULL) {
        return NULL;
    }
    const char *value = NULL;
    (void)pthread_mutex_lock(&lock);
    for (const option_value *v = values; v != NULL && value == NULL; v = v->next) {
        if (v->current && strcmp(v->name, name) == 0) {
            value = v->value;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return value != NULL ? value : burni_env(name);
}

static const char *BURN_CALL host_option(const char *name)
{
    return burni_loader_option(name);
}

static void *BURN_CALL host_alloc(uint64_t bytes)
{
    return bytes <= SIZE_MAX ? burni_alloc((size_t)bytes) : NULL;
}

static void BURN_CALL host_free(void *memory)
{
    burni_free(memory);
}

static void BURN_CALL host_log(int32_t level, const char *plugin, const char *text)
{
    burni_log(level, plugin != NULL ? plugin : "plugin", "%s", text != NULL ? text : "");
}

/* A whole number from 1 to THREADS_MOST, else 0. */
static uint32_t parse_threads(const char *text)
{
    uint32_t n = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || n > THREADS_MOST) {
            return 0;
        }
        n = n * 10 + (uint32_t)(*at - '0');
    }
    return n <= THREADS_MOST ? n : 0;
}

static uint32_t usable_cores(void)
{
    for (size_t cpus = 1024; cpus <= 65536; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (set == NULL) {
            break;
        }
        size_t size = CPU_ALLOC_SIZE(cpus);
        int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) {
            return (uint32_t)n;
        }
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

int32_t burni_loader_check_threads(burn_err *err)
{
    const char *wanted = burni_loader_option("THREADS");
    if (wanted == NULL || parse_threads(wanted) > 0) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_INVALID, "BURN_THREADS=\"%.32s\": expected a number from 1 to %d",
                      wanted, THREADS_MOST);
}

int32_t burni_loader_check_path(burn_err *err)
{
    const char *path = burni_env("PLUGIN_PATH");
    if (path != NULL && path[0] == '\0') {
        return burni_fail(err, BURN_E_INVALID,
                          "BURN_PLUGIN_PATH=\"\": expected absolute folders, ':' between; or unset "
                          "it");
    }
    return BURN_OK;
}

uint32_t burni_thread_budget(void)
{
    const char *wanted = burni_loader_option("THREADS");
    if (wanted != NULL) {
        uint32_t n = parse_threads(wanted);
        if (n > 0) {
            return n;
        }
        burni_log(BURN_LOG_WARN, "loader",
                  "BURN_THREADS is \"%.32s\", not a number from 1 to %d; all usable cores are "
                  "taken",
                  wanted, THREADS_MOST);
    }
    return usable_cores();
}

static uint32_t BURN_CALL host_thread_budget(void)
{
    return burni_thread_budget();
}

static const void *BURN_CALL host_service(const char *id)
{
    uint32_t n = id != NULL ? burni_loader_count() : 0;
    for (uint32_t i = 0; i < n; i++) {
        const burni_plugin *p = burni_loader_at(i);
        if (p == NULL || p->table == NULL || p->table->extension == NULL) {
            continue;
        }
        const void *service = p->table->extension(id);
        if (service != NULL) {
            return service;
        }
    }
    return NULL;
}

void burni_host_init(burn_host *host, uint32_t abi)
{
    memset(host, 0, sizeof(*host));
    host->struct_size = (uint32_t)sizeof(*host);
    host->abi = abi;
    host->alloc = host_alloc;
    host->free = host_free;
    host->log = host_log;
    host->option = host_option;
    host->thread_budget = host_thread_budget;
    host->service = host_service;
}
