/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tune.c - the public functions of <burn/environment.h>.
 *
 * What is loaded is in tune/environment.c; here files are listed, opened, copied and removed. Each
 * change of a file is made under its lock file.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "exec/tuner.h"
#include "tune/environment.h"
#include "tune/kept_plan.h"
#include "tune/place.h"

#include <burn/dtype.h>
#include <burn/environment.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct burn_environment {
    burni_benv *contents;
    uint64_t bytes;
    char name[BURNI_ENVIRONMENT_NAME];
    char path[BURNI_PLACE_BYTES];
};

/* ---- the loaded one -------------------------------------------------------------------------- */

int32_t burn_environment_load(const char *name, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    int32_t rc = burni_environment_load(name, err);
    if (rc == BURN_OK) {
        burni_tuner_changed();
    }
    return rc;
}

const char *burn_environment_name(void)
{
    return burni_environment_name();
}

int32_t burn_environment_save(burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return burni_environment_save(err);
}

static int is_loaded(const char *name)
{
    return strcmp(burni_environment_name(), name) == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

int32_t burn_environment_clear(const char *name, burn_err *err)
{
    char path[BURNI_PLACE_BYTES];
    char other[BURNI_PLACE_BYTES + 8];
    burn_err spare;
    err = burni_first(err, &spare);
    int32_t rc = burni_place_file(name, path, sizeof(path), err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (is_loaded(name)) {
        burni_environment_forget();
        burni_tuner_changed();
    }
    if (unlink(path) != 0) {
        int32_t code = errno == ENOENT ? BURN_E_NOT_FOUND : BURN_E_IO;
        return burni_fail(err, code, "environment: %.140s: %s", path, strerror(errno));
    }
    (void)snprintf(other, sizeof(other), "%s.lock", path);
    (void)unlink(other);
    return BURN_OK;
}

static int32_t write_contents(const burni_benv *env, const char *path, burn_err *err)
{
    uint64_t size = 0;
    unsigned char *bytes = burni_benv_encode(env, &size);
    if (bytes == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "environment: out of host memory, or too large");
    }
    int32_t rc = burni_place_write(path, bytes, size, err);
    burni_free(bytes);
    return rc;
}

int32_t burn_environment_export(const char *name, const char *path, burn_err *err)
{
    char from[BURNI_PLACE_BYTES];
    burni_benv *env = NULL;
    uint64_t size = 0;
    burn_err spare;
    err = burni_first(err, &spare);
    if (path == NULL || path[0] == '\0' || strlen(path) >= BURNI_PLACE_BYTES) {
        return burni_fail(err, BURN_E_INVALID, "environment: the path is NULL, empty or too long");
    }
    int32_t rc = burni_place_file(name, from, sizeof(from), err);
    if (rc == BURN_OK && is_loaded(name)) {
        rc = burni_environment_save(err);
    }
    if (rc == BURN_OK) {
        rc = burni_place_read(from, &env, &size, err);
    }
    if (rc == BURN_OK) {
        rc = write_contents(env, path, err);
    }
    burni_benv_free(env);
    return rc;
}

/* The file's lock is held. */
static int32_t take_in(const burni_benv *from, const char *to, burn_err *err)
{
    burni_benv *env = NULL;
    uint64_t size = 0;
    burn_err why = BURN_ERR_INIT;
    int32_t rc = burni_place_read(to, &env, &size, &why);
    if (rc == BURN_E_NOT_FOUND) {
        env = burni_benv_new();
        rc = env != NULL ? BURN_OK : BURN_E_NO_MEMORY;
    }
    if (rc != BURN_OK) {
        return burni_fail(err, rc, "%s", why.code != BURN_OK ? why.text : "out of host memory");
    }
    rc = burni_benv_merge(env, from, 1) == BURN_OK
             ? write_contents(env, to, err)
             : burni_fail(err, BURN_E_NO_MEMORY, "environment: out of host memory, or too large");
    burni_benv_free(env);
    return rc;
}

int32_t burn_environment_import(const char *name, const char *path, burn_err *err)
{
    char to[BURNI_PLACE_BYTES];
    burni_benv *from = NULL;
    uint64_t size = 0;
    burn_err spare;
    err = burni_first(err, &spare);
    if (path == NULL) {
        return burni_fail(err, BURN_E_INVALID, "environment: the path is NULL");
    }
    int32_t rc = burni_place_file(name, to, sizeof(to), err);
    if (rc == BURN_OK && is_loaded(name)) {
        rc = burni_fail(err, BURN_E_STATE,
                        "environment %s is in use here; call burn_environment_load(NULL) first",
                        name);
    }
    if (rc == BURN_OK) {
        rc = burni_place_read(path, &from, &size, err);
    }
    if (rc == BURN_OK) {
        rc = burni_place_make(err);
    }
    if (rc == BURN_OK) {
        int handle = burni_place_lock(to, err);
        rc = handle >= 0 ? take_in(from, to, err) : BURN_E_IO;
        burni_place_unlock(handle);
    }
    burni_benv_free(from);
    return rc;
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Gives as much of a struct as the caller has room for. */
static int32_t give(void *out, const void *info, size_t size, burn_err *err)
{
    uint32_t room = 0;
    int32_t rc = burni_check_output("environment", out, sizeof(room), err);
    if (rc != BURN_OK) {
        return rc;
    }
    memcpy(&room, out, sizeof(room));
    memset(out, 0, room);
    memcpy(out, info, room < size ? room : size);
    memcpy(out, &room, sizeof(room));
    return BURN_OK;
}

burn_environment *burn_environment_open(const char *name, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    burn_environment *env = burni_calloc(1, sizeof(*env));
    if (env == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "environment: out of host memory");
        return NULL;
    }
    int is_path = name != NULL && strchr(name, '/') != NULL;
    int32_t rc = is_path ? BURN_OK : burni_place_file(name, env->path, sizeof(env->path), err);
    if (is_path) {
        (void)snprintf(env->path, sizeof(env->path), "%s", name);
    } else if (rc == BURN_OK) {
        (void)snprintf(env->name, sizeof(env->name), "%s", name);
    }
    if (rc == BURN_OK) {
        rc = burni_place_read(env->path, &env->contents, &env->bytes, err);
    }
    if (rc != BURN_OK) {
        burni_free(env);
        return NULL;
    }
    return env;
}

void burn_environment_close(burn_environment *env)
{
    if (env != NULL) {
        burni_benv_free(env->contents);
        burni_free(env);
    }
}

int32_t burn_environment_describe(const burn_environment *env, burn_environment_info *out,
                                  burn_err *err)
{
    burn_err spare;
    burn_environment_info info;
    err = burni_first(err, &spare);
    if (env == NULL) {
        return burni_fail(err, BURN_E_INVALID, "environment: it is NULL");
    }
    BURN_INIT(&info, burn_environment_info);
    info.bytes = env->bytes;
    info.n_devices = env->contents->n_devices;
    for (uint32_t i = 0; i < info.n_devices; i++) {
        info.n_choices += env->contents->devices[i].n_choices;
        info.n_plans += env->contents->devices[i].n_plans;
    }
    (void)snprintf(info.name, sizeof(info.name), "%s", env->name);
    (void)snprintf(info.path, sizeof(info.path), "%.511s", env->path);
    return give(out, &info, sizeof(info), err);
}

static const burni_benv_device *device_at(const burn_environment *env, uint32_t i, burn_err *err)
{
    if (env == NULL || i >= env->contents->n_devices) {
        (void)burni_fail(err, env == NULL ? BURN_E_INVALID : BURN_E_NOT_FOUND,
                         "environment: it is NULL, or has no device %u", i);
        return NULL;
    }
    return &env->contents->devices[i];
}

/* Of a plan that is none it can be said that it will be refused. */
static uint32_t refusals_of(const burni_plan_entry *entry)
{
    burni_kept_plan plan;
    int32_t rc = burni_kept_plan_decode(entry->bytes, (size_t)entry->size, &plan);
    return rc == BURN_OK ? plan.refusals : 1;
}

int32_t burn_environment_device(const burn_environment *env, uint32_t device,
                                burn_environment_device_info *out, burn_err *err)
{
    burn_err spare;
    burn_environment_device_info info;
    err = burni_first(err, &spare);
    const burni_benv_device *d = device_at(env, device, err);
    if (d == NULL) {
        return err->code;
    }
    BURN_INIT(&info, burn_environment_device_info);
    info.units = d->id.units;
    info.n_choices = d->n_choices;
    info.n_plans = d->n_plans;
    for (uint32_t i = 0; i < d->n_plans; i++) {
        info.plan_bytes += d->plans[i].size;
        info.n_refused += refusals_of(&d->plans[i]);
    }
    info.bytes_per_second = burni_benv_roof(d, BURNI_ROOF_BYTES);
    info.flops_f32 = burni_benv_roof(d, BURN_F32);
    info.flops_f64 = burni_benv_roof(d, BURN_F64);
    info.abi = d->id.abi;
    memcpy(info.backend, d->id.backend, sizeof(info.backend));
    memcpy(info.hardware, d->id.hardware, sizeof(info.hardware));
    memcpy(info.isa, d->id.isa, sizeof(info.isa));
    memcpy(info.driver, d->id.driver, sizeof(info.driver));
    memcpy(info.version, d->id.version, sizeof(info.version));
    return give(out, &info, sizeof(info), err);
}

int32_t burn_environment_choice(const burn_environment *env, uint32_t device, uint32_t i,
                                burn_environment_choice_info *out, burn_err *err)
{
    burn_err spare;
    burn_environment_choice_info info;
    err = burni_first(err, &spare);
    const burni_benv_device *d = device_at(env, device, err);
    if (d == NULL) {
        return err->code;
    }
    if (i >= d->n_choices) {
        return burni_fail(err, BURN_E_NOT_FOUND, "environment: device %u has no choice %u", device,
                          i);
    }
    const burni_choice *c = &d->choices[i];
    BURN_INIT(&info, burn_environment_choice_info);
    info.revision = c->revision;
    info.n_candidates = c->n_candidates;
    info.at_roof = (c->flags & BURNI_CHOICE_AT_ROOF) != 0;
    info.seconds = c->seconds;
    info.rival_seconds = c->rival_seconds;
    memcpy(info.row, c->row, sizeof(info.row));
    memcpy(info.rival, c->rival, sizeof(info.rival));
    (void)snprintf(info.call, sizeof(info.call), "%s", c->text);
    return give(out, &info, sizeof(info), err);
}

/* ---- listing --------------------------------------------------------------------------------- */

/* Length of the name in "<name>.benv", 0 when it is no such file. */
static size_t name_length(const char *file)
{
    char name[BURNI_ENVIRONMENT_NAME];
    size_t n = strlen(file);
    if (n <= 5 || n - 5 >= sizeof(name) || strcmp(file + n - 5, ".benv") != 0) {
        return 0;
    }
    memcpy(name, file, n - 5);
    name[n - 5] = '\0';
    return burni_place_check_name(name, NULL) == BURN_OK ? n - 5 : 0;
}

/* The i-th name in order; 0 when there are fewer. Selects by counting the smaller ones. */
static int name_at(const char *folder, uint32_t i, char *out)
{
    int found = 0;
    char after[BURNI_ENVIRONMENT_NAME] = "";
    for (uint32_t k = 0; k <= i; k++) {
        DIR *dir = opendir(folder);
        const struct dirent *entry = NULL;
        found = 0;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            char name[BURNI_ENVIRONMENT_NAME];
            size_t n = name_length(entry->d_name);
            memcpy(name, entry->d_name, n);
            name[n] = '\0';
            if (n > 0 && strcmp(name, after) > 0 && (!found || strcmp(name, out) < 0)) {
                memcpy(out, name, n + 1);
                found = 1;
            }
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
        if (!found) {
            return 0;
        }
        memcpy(after, out, sizeof(after));
    }
    return found;
}

int32_t burn_environment_list(uint32_t i, burn_environment_info *out, burn_err *err)
{
    char folder[BURNI_PLACE_BYTES];
    char name[BURNI_ENVIRONMENT_NAME] = "";
    burn_err spare;
    burn_err why = BURN_ERR_INIT;
    burn_environment_info info;
    err = burni_first(err, &spare);
    int32_t rc = burni_place_folder(folder, sizeof(folder), err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (!name_at(folder, i, name)) {
        return burni_fail(err, BURN_E_NOT_FOUND, "environment: there is no number %u in %.120s", i,
                          folder);
    }
    BURN_INIT(&info, burn_environment_info);
    burn_environment *env = burn_environment_open(name, &why);
    if (env != NULL) {
        rc = burn_environment_describe(env, &info, err);
        burn_environment_close(env);
        return rc == BURN_OK ? give(out, &info, sizeof(info), err) : rc;
    }
    (void)snprintf(info.name, sizeof(info.name), "%s", name);
    (void)snprintf(info.path, sizeof(info.path), "%.400s/%s.benv", folder, name);
    (void)snprintf(info.problem, sizeof(info.problem), "%s", why.text);
    info.code = why.code;
    return give(out, &info, sizeof(info), err);
}
