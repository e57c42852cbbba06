/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * environment.c - the loaded environment, its devices and its file. See environment.h.
 *
 * In memory there are two parts: `all`, what the file held and what was added, and for each device
 * that was told the place of its part in it. Saving reads the file again under its lock file, so
 * what two processes learn at once is all kept; for one key the later save wins.
 */
#include "tune/environment.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "tune/place.h"

#include <burn/plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_KNOWN = 64 };

typedef struct known {
    char device[96];
    burni_identity id;
    uint32_t at; /* index in all->devices */
    uint32_t zero;
} known;

typedef struct name_entry {
    char text[BURNI_ENVIRONMENT_NAME];
    struct name_entry *next;
} name_entry;

_Atomic uint32_t burni_environment_current;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t generation;
static burni_benv *all;
static const name_entry *current; /* NULL: none */
static name_entry *names;         /* every name that was ever loaded: callers keep pointers */
static known knowns[MAX_KNOWN];
static uint32_t n_knowns;
static int is_changed;
static int was_started;

/* ---- naming ---------------------------------------------------------------------------------- */

/* Under the lock. */
static const name_entry *intern(const char *name)
{
    for (name_entry *n = names; n != NULL; n = n->next) {
        if (strcmp(n->text, name) == 0) {
            return n;
        }
    }
    name_entry *n = burni_calloc(1, sizeof(*n));
    if (n != NULL) {
        (void)snprintf(n->text, sizeof(n->text), "%s", name);
        n->next = names;
        names = n;
    }
    return n;
}

const char *burni_environment_name(void)
{
    (void)pthread_mutex_lock(&lock);
    const char *name = current != NULL ? current->text : "";
    (void)pthread_mutex_unlock(&lock);
    return name;
}

/* The file's contents; empty when there is none yet. */
static int32_t read_file(const char *name, burni_benv **out, burn_err *err)
{
    char path[BURNI_PLACE_BYTES];
    uint64_t size = 0;
    burn_err why = BURN_ERR_INIT;
    int32_t rc = burni_place_file(name, path, sizeof(path), &why);
    if (rc == BURN_OK) {
        rc = burni_place_read(path, out, &size, &why);
        if (rc == BURN_E_NOT_FOUND) {
            *out = burni_benv_new();
            return *out != NULL ? BURN_OK
                                : burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
        }
    }
    if (rc == BURN_E_FORMAT) {
        return burni_fail(err, rc, "%.150s; remove it with `burn env clear %.64s`", why.text, name);
    }
    return rc == BURN_OK ? rc : burni_fail(err, rc, "%s", why.text);
}

int32_t burni_environment_load(const char *name, burn_err *err)
{
    burni_benv *fresh = NULL;
    int32_t rc = name != NULL ? burni_place_check_name(name, err) : BURN_OK;
    if (rc == BURN_OK) {
        rc = burni_environment_save(err);
    }
    if (rc == BURN_OK && name != NULL) {
        rc = read_file(name, &fresh, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&lock);
    const name_entry *entry = name != NULL ? intern(name) : NULL;
    burni_benv *old = fresh;
    if (entry != NULL || name == NULL) {
        old = all;
        all = fresh;
        current = entry;
        n_knowns = 0;
        is_changed = 0;
        was_started = 1;
        generation++;
        atomic_store_explicit(&burni_environment_current, name != NULL ? generation : 0,
                              memory_order_release);
    } else {
        rc = burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    (void)pthread_mutex_unlock(&lock);
    burni_benv_free(old);
    return rc;
}

int32_t burni_environment_check_option(burn_err *err)
{
    const char *name = burni_env("ENVIRONMENT");
    int32_t rc = name != NULL ? burni_place_check_name(name, err) : BURN_OK;
    if (rc != BURN_OK) {
        burni_prefix(err, "BURN_ENVIRONMENT");
    }
    return rc;
}

int32_t burni_environment_start(burn_err *err)
{
    const char *name = burni_env("ENVIRONMENT");
    (void)pthread_mutex_lock(&lock);
    int done = was_started;
    (void)pthread_mutex_unlock(&lock);
    if (done) {
        return BURN_OK;
    }
    int32_t rc = burni_place_check_option(err);
    if (rc != BURN_OK || name == NULL) {
        return rc;
    }
    rc = burni_environment_check_option(err);
    return rc == BURN_OK ? burni_environment_load(name, err) : rc;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Under the lock; NULL when it was not told. */
static burni_benv_device *device_of(const char *device)
{
    for (uint32_t i = 0; all != NULL && i < n_knowns; i++) {
        if (strcmp(knowns[i].device, device) == 0) {
            return &all->devices[knowns[i].at];
        }
    }
    return NULL;
}

int burni_environment_knows(const char *device)
{
    (void)pthread_mutex_lock(&lock);
    int answer = device_of(device) != NULL;
    (void)pthread_mutex_unlock(&lock);
    return answer;
}

/* What is different about the most similar device of that backend in the file; "" when there is
 * none. Under the lock. */
static void say_difference(const burni_identity *id, char *out, size_t size)
{
    for (uint32_t i = 0; i < all->n_devices; i++) {
        const burni_identity *other = &all->devices[i].id;
        uint32_t n = all->devices[i].n_choices + all->devices[i].n_plans;
        if (strcmp(other->backend, id->backend) != 0 || burni_identity_same(other, id) || n == 0) {
            continue;
        }
        const char *what = strcmp(other->hardware, id->hardware) != 0 ? "hardware"
                           : strcmp(other->isa, id->isa) != 0        ? "instruction set"
                           : other->units != id->units               ? "number of threads"
                           : strcmp(other->driver, id->driver) != 0  ? "driver"
                           : strcmp(other->version, id->version) != 0 ? "plugin version"
                           : other->abi != id->abi || other->layout != id->layout
                               ? "plugin ABI"
                               : "set of kernels";
        (void)snprintf(out, size, "%u entr%s not used: made for another %s (%.80s)", n,
                       n == 1 ? "y is" : "ies are", what, other->hardware);
        return;
    }
}

void burni_environment_device(const char *device, const burni_identity *id)
{
    char note[256] = "";
    (void)pthread_mutex_lock(&lock);
    if (all != NULL && device_of(device) == NULL && n_knowns < MAX_KNOWN) {
        say_difference(id, note, sizeof(note));
        uint32_t at = burni_benv_need(all, id);
        if (at != UINT32_MAX) {
            known *k = &knowns[n_knowns++];
            memset(k, 0, sizeof(*k));
            (void)snprintf(k->device, sizeof(k->device), "%s", device);
            k->id = *id;
            k->at = at;
        }
    }
    const char *name = current != NULL ? current->text : "";
    (void)pthread_mutex_unlock(&lock);
    if (note[0] != '\0') {
        burni_log(BURN_LOG_INFO, device, "environment %s: %s", name, note);
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

int burni_environment_find(const char *device, const void *key, uint32_t key_size,
                           uint64_t candidates, burni_choice *out)
{
    (void)pthread_mutex_lock(&lock);
    const burni_benv_device *d = device_of(device);
    const burni_choice *c = d != NULL ? burni_benv_choice(d, key, key_size) : NULL;
    int found = c != NULL && c->candidates == candidates;
    if (found) {
        *out = *c;
        out->text = NULL;
        out->key = NULL;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void burni_environment_keep(const char *device, const burni_choice *choice)
{
    (void)pthread_mutex_lock(&lock);
    burni_benv_device *d = device_of(device);
    if (d != NULL && burni_benv_set_choice(d, choice) == BURN_OK) {
        is_changed = 1;
    }
    (void)pthread_mutex_unlock(&lock);
}

double burni_environment_roof(const char *device, uint32_t what)
{
    (void)pthread_mutex_lock(&lock);
    const burni_benv_device *d = device_of(device);
    double value = d != NULL ? burni_benv_roof(d, what) : 0.0;
    (void)pthread_mutex_unlock(&lock);
    return value;
}

void burni_environment_raise(const char *device, uint32_t what, double per_second)
{
    (void)pthread_mutex_lock(&lock);
    burni_benv_device *d = device_of(device);
    if (d != NULL && burni_benv_roof(d, what) < per_second &&
        burni_benv_set_roof(d, what, per_second) == BURN_OK) {
        is_changed = 1;
    }
    (void)pthread_mutex_unlock(&lock);
}

unsigned char *burni_environment_plan_get(const char *device, uint64_t key, size_t *size)
{
    unsigned char *copy = NULL;
    *size = 0;
    (void)pthread_mutex_lock(&lock);
    const burni_benv_device *d = device_of(device);
    const burni_plan_entry *p = d != NULL ? burni_benv_plan(d, key) : NULL;
    if (p != NULL) {
        copy = burni_alloc((size_t)p->size + 1);
    }
    if (copy != NULL) {
        memcpy(copy, p->bytes, (size_t)p->size);
        *size = (size_t)p->size;
    }
    (void)pthread_mutex_unlock(&lock);
    return copy;
}

void burni_environment_plans(const char *device,
                             void (*see)(void *user, const void *bytes, size_t size), void *user)
{
    (void)pthread_mutex_lock(&lock);
    const burni_benv_device *d = device_of(device);
    for (uint32_t i = 0; d != NULL && i < d->n_plans; i++) {
        see(user, d->plans[i].bytes, (size_t)d->plans[i].size);
    }
    (void)pthread_mutex_unlock(&lock);
}

void burni_environment_plan_put(const char *device, uint64_t key, const void *bytes, size_t size)
{
    (void)pthread_mutex_lock(&lock);
    burni_benv_device *d = device_of(device);
    const burni_plan_entry *p = d != NULL ? burni_benv_plan(d, key) : NULL;
    int is_same = p != NULL && p->size == size && (size == 0 || memcmp(p->bytes, bytes, size) == 0);
    if (d != NULL && !is_same && burni_benv_set_plan(d, key, bytes, size) == BURN_OK) {
        is_changed = 1;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* What is about a device of ours but holds for former software is of no use any more. */
static void drop_superseded(burni_benv *env, const burni_benv *ours)
{
    for (uint32_t i = env->n_devices; i-- > 0;) {
        for (uint32_t k = 0; k < ours->n_devices; k++) {
            const burni_identity *id = &env->devices[i].id;
            if (burni_identity_same_hardware(id, &ours->devices[k].id) &&
                !burni_identity_same(id, &ours->devices[k].id)) {
                burni_benv_drop(env, i);
                break;
            }
        }
    }
}

/* A copy of the parts of the devices that were told, as far as there is something: only those can
 * have changed. */
static burni_benv *copy_ours(void)
{
    burni_benv *copy = burni_benv_new();
    for (uint32_t i = 0; copy != NULL && i < n_knowns; i++) {
        burni_benv_device *d = &all->devices[knowns[i].at];
        burni_benv part = {d, 1, 1};
        if (d->n_roofs + d->n_choices + d->n_plans > 0 &&
            burni_benv_merge(copy, &part, 1) != BURN_OK) {
            burni_benv_free(copy);
            return NULL;
        }
    }
    return copy;
}

/* The file's lock is held. */
static int32_t merge_and_write(const char *name, const char *path, const burni_benv *ours,
                               burn_err *err)
{
    burni_benv *merged = NULL;
    int32_t rc = read_file(name, &merged, err);
    if (rc != BURN_OK) {
        return rc;
    }
    drop_superseded(merged, ours);
    uint64_t size = 0;
    unsigned char *bytes =
        burni_benv_merge(merged, ours, 1) == BURN_OK ? burni_benv_encode(merged, &size) : NULL;
    burni_benv_free(merged);
    rc = bytes != NULL ? burni_place_write(path, bytes, size, err)
                       : burni_fail(err, BURN_E_NO_MEMORY,
                                    "environment %s: out of host memory, or too large", name);
    burni_free(bytes);
    return rc;
}

static int32_t write_ours(const char *name, const burni_benv *ours, burn_err *err)
{
    char path[BURNI_PLACE_BYTES];
    int32_t rc = burni_place_file(name, path, sizeof(path), err);
    if (rc == BURN_OK) {
        rc = burni_place_make(err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    int handle = burni_place_lock(path, err);
    if (handle < 0) {
        return BURN_E_IO;
    }
    rc = merge_and_write(name, path, ours, err);
    burni_place_unlock(handle);
    return rc;
}

int32_t burni_environment_save(burn_err *err)
{
    (void)pthread_mutex_lock(&lock);
    int wanted = is_changed && all != NULL && current != NULL;
    const char *name = wanted ? current->text : NULL;
    burni_benv *ours = wanted ? copy_ours() : NULL;
    is_changed = 0;
    (void)pthread_mutex_unlock(&lock);
    if (!wanted) {
        return BURN_OK;
    }
    int32_t rc = ours != NULL ? write_ours(name, ours, err)
                              : burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    burni_benv_free(ours);
    if (rc != BURN_OK) {
        /* It may be tried again. */
        (void)pthread_mutex_lock(&lock);
        is_changed = current != NULL && current->text == name;
        (void)pthread_mutex_unlock(&lock);
    }
    return rc;
}

void burni_environment_finish(void)
{
    burn_err err = BURN_ERR_INIT;
    if (burni_environment_save(&err) != BURN_OK) {
        burni_log(BURN_LOG_WARN, "environment", "not saved: %s", err.text);
    }
}

void burni_environment_forget(void)
{
    burni_benv *fresh = burni_benv_new();
    (void)pthread_mutex_lock(&lock);
    burni_benv *old = fresh;
    if (all != NULL && fresh != NULL) {
        old = all;
        all = fresh;
        n_knowns = 0;
        is_changed = 0;
    }
    (void)pthread_mutex_unlock(&lock);
    burni_benv_free(old);
}

/* A program that never shuts down keeps what it learnt. Where a thread is still at it and has the
 * lock, nothing is saved. */
__attribute__((destructor)) static void at_exit(void)
{
    if (burni_environment_on() == 0 || pthread_mutex_trylock(&lock) != 0) {
        return;
    }
    (void)pthread_mutex_unlock(&lock);
    burn_err err = BURN_ERR_INIT;
    /* A log of the application's own may be gone at this time. */
    if (burni_environment_save(&err) != BURN_OK && burni_log_is_stderr()) {
        burni_log(BURN_LOG_WARN, "environment", "not saved: %s", err.text);
    }
}
