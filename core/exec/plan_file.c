/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_file.c - writes the plans of a process to its file. See plan_file.h.
 *
 * Streams are locked one by one, so threads that go on meanwhile are waited for, no longer than a
 * run of theirs takes. A forked child is told by its id: locks of its parent's threads stay locked.
 */
#include "exec/plan_file.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "exec/plan.h"

#include <burn/plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic long owner; /* the process that asked for it; 0: nobody did, or it is written */

int32_t burni_plan_file_check(burn_err *err)
{
    const char *folder = burni_env("PLANS");
    struct stat info;
    if (folder != NULL &&
        (folder[0] != '/' || stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))) {
        return burni_fail(err, BURN_E_INVALID, "BURN_PLANS=\"%.100s\": %s", folder,
                          folder[0] != '/' ? "not an absolute folder"
                                           : "no folder is there; make it first");
    }
    return BURN_OK;
}

int32_t burni_plan_file_start(burn_err *err)
{
    int32_t rc = burni_plan_file_check(err);
    long nobody = 0;
    if (rc == BURN_OK && burni_env("PLANS") != NULL) {
        (void)atomic_compare_exchange_strong(&owner, &nobody, (long)getpid());
    }
    return rc;
}

static void write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n <= 0) {
            burni_log(BURN_LOG_WARN, "plans", "the file of BURN_PLANS could not be written");
            return;
        }
        text += n;
        size -= (size_t)n;
    }
}

static void write_stream(int fd, burni_stream *stream)
{
    int locked = burni_stream_lock(stream);
    burni_printer measured = {NULL, 0, 0};
    burni_plans_print(stream, &measured);
    char *text = burni_alloc(measured.used + 1);
    burni_printer p = {text, measured.used + 1, 0};
    if (text != NULL) {
        burni_plans_print(stream, &p);
    }
    burni_stream_unlock(stream, locked);
    if (text != NULL) {
        write_all(fd, text, measured.used);
    }
    burni_free(text);
}

static void write_file(const char *folder)
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%ld.plans", folder, (long)getpid());
    errno = ENAMETOOLONG;
    int fd = n > 0 && (size_t)n < sizeof(path)
                 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                 : -1;
    if (fd < 0) {
        burni_log(BURN_LOG_WARN, "plans", "BURN_PLANS: %s cannot be made: %s", path,
                  strerror(errno));
        return;
    }
    burni_device *device = NULL;
    for (uint32_t i = 0; (device = burni_device_at(i)) != NULL; i++) {
        (void)pthread_mutex_lock(&device->lock);
        burni_stream *s = device->streams;
        (void)pthread_mutex_unlock(&device->lock);
        for (; s != NULL; s = s->next) {
            write_stream(fd, s);
        }
    }
    (void)close(fd);
}

void burni_plan_file_finish(void)
{
    long me = (long)getpid();
    const char *folder = burni_env("PLANS");
    if (folder != NULL && atomic_compare_exchange_strong(&owner, &me, -1)) {
        write_file(folder);
    }
}

/* A program that never shuts down. */
__attribute__((destructor)) static void at_exit(void)
{
    burni_plan_file_finish();
}
