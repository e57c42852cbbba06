/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * place.c - names, folders and files of environments. See place.h.
 *
 * Variables and files are hostile until checked. A write beyond a file size limit would raise
 * SIGXFSZ and end the process, so it is held back in this thread while we write; then the write
 * itself fails.
 */
#include "tune/place.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "loader/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 500, LOCK_WAIT_NS = 10000000 };

/* ---- names and folders ----------------------------------------------------------------------- */

int32_t burni_place_check_name(const char *name, burn_err *err)
{
    size_t n = name != NULL ? strlen(name) : 0;
    size_t good = n > 0 ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") : 0;
    if (n == 0 || n >= BURNI_ENVIRONMENT_NAME || good != n) {
        return burni_fail(err, BURN_E_INVALID,
                          "environment \"%.70s\": a name has 1 to 64 of the characters a-z 0-9 _ -",
                          name != NULL ? name : "");
    }
    return BURN_OK;
}

int32_t burni_place_folder(char *out, size_t size, burn_err *err)
{
    const char *wanted = burni_env("ENVIRONMENT_PATH");
    char home[BURNI_PLACE_BYTES];
    if (wanted != NULL) {
        if (wanted[0] != '/' || strlen(wanted) >= size) {
            return burni_fail(err, BURN_E_INVALID,
                              "BURN_ENVIRONMENT_PATH=\"%.100s\": expected one absolute folder",
                              wanted);
        }
        (void)snprintf(out, size, "%s", wanted);
        return BURN_OK;
    }
    int n = burni_env_data_home(home, sizeof(home))
                ? snprintf(out, size, "%s/burn/environments", home)
                : -1;
    if (n < 0 || (size_t)n >= size) {
        return burni_fail(err, BURN_E_NOT_FOUND,
                          "environment: there is no place for it: neither XDG_DATA_HOME nor HOME "
                          "is an absolute path; set BURN_ENVIRONMENT_PATH to a folder");
    }
    return BURN_OK;
}

int32_t burni_place_check_option(burn_err *err)
{
    char folder[BURNI_PLACE_BYTES];
    return burni_env("ENVIRONMENT_PATH") != NULL ? burni_place_folder(folder, sizeof(folder), err)
                                                 : BURN_OK;
}

int32_t burni_place_file(const char *name, char *out, size_t size, burn_err *err)
{
    char folder[BURNI_PLACE_BYTES];
    int32_t rc = burni_place_check_name(name, err);
    if (rc == BURN_OK) {
        rc = burni_place_folder(folder, sizeof(folder), err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    int n = snprintf(out, size, "%s/%s.benv", folder, name);
    if (n < 0 || (size_t)n >= size) {
        return burni_fail(err, BURN_E_INVALID, "environment %s: its path is too long", name);
    }
    return BURN_OK;
}

static int32_t check_folder(const char *folder, burn_err *err)
{
    struct stat st;
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return burni_fail(err, BURN_E_IO, "environment: %.150s is no folder", folder);
    }
    return burni_check_owner(&st, "environment: its folder", err);
}

int32_t burni_place_make(burn_err *err)
{
    char folder[BURNI_PLACE_BYTES];
    int32_t rc = burni_place_folder(folder, sizeof(folder), err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (char *at = folder + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(folder, 0700);
            *at = '/';
        }
    }
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return burni_fail(err, BURN_E_IO, "environment: the folder %.120s cannot be made: %s",
                          folder, strerror(errno));
    }
    return check_folder(folder, err);
}

int32_t burni_place_check_saving(burn_err *err)
{
    char folder[BURNI_PLACE_BYTES];
    struct stat st;
    int32_t rc = burni_place_check_option(err);
    if (rc != BURN_OK || burni_env("ENVIRONMENT_PATH") == NULL) {
        return rc;
    }
    rc = burni_place_folder(folder, sizeof(folder), err);
    if (rc == BURN_OK && stat(folder, &st) == 0) {
        rc = check_folder(folder, err);
    }
    char *slash = folder;
    while (rc == BURN_OK && stat(folder, &st) != 0 && errno == ENOENT && slash != NULL) {
        slash = strrchr(folder, '/');
        if (slash != NULL) {
            slash[slash == folder ? 1 : 0] = '\0';
        }
    }
    if (rc == BURN_OK && (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0 ||
                          (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode)))) {
        rc = burni_fail(err, BURN_E_IO, "nothing can be saved there: %.150s cannot be written to",
                        folder);
    }
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int32_t read_all(int fd, unsigned char *to, uint64_t size, burn_err *err)
{
    uint64_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, to + done, (size_t)(size - done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return burni_fail(err, BURN_E_IO, "reading: %s", n < 0 ? strerror(errno) : "it shrank");
        }
        done += (uint64_t)n;
    }
    return BURN_OK;
}

static int32_t decode_open(int fd, burni_benv **out, uint64_t *size, burn_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return burni_fail(err, BURN_E_IO, "it is no regular file");
    }
    int32_t rc = burni_check_owner(&st, "it", err);
    if (rc != BURN_OK) {
        return rc;
    }
    if ((uint64_t)st.st_size > BURNI_BENV_MAX_BYTES) {
        return burni_fail(err, BURN_E_FORMAT, "offset 0: %llu bytes are more than there may be",
                          (unsigned long long)st.st_size);
    }
    *size = (uint64_t)st.st_size;
    unsigned char *bytes = burni_alloc((size_t)*size + 1);
    if (bytes == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    rc = read_all(fd, bytes, *size, err);
    if (rc == BURN_OK) {
        rc = burni_benv_decode(bytes, *size, out, err);
    }
    burni_free(bytes);
    return rc;
}

int32_t burni_place_read(const char *path, burni_benv **out, uint64_t *size, burn_err *err)
{
    *out = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int32_t code = errno == ENOENT || errno == ENOTDIR ? BURN_E_NOT_FOUND : BURN_E_IO;
        return burni_fail(err, code, "environment: %.140s: %s", path, strerror(errno));
    }
    int32_t rc = decode_open(fd, out, size, err);
    (void)close(fd);
    if (rc != BURN_OK) {
        const char *slash = strrchr(path, '/');
        burni_prefix(err, "environment: %.80s", slash != NULL ? slash + 1 : path);
    }
    return rc;
}

/* ---- replacing ------------------------------------------------------------------------------- */

static int32_t failed(const char *path, const char *what, burn_err *err)
{
    return burni_fail(err, BURN_E_IO, "environment: %.120s: %s: %s", path, what, strerror(errno));
}

static int write_all(int fd, const unsigned char *bytes, uint64_t size)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    sigset_t before;
    sigset_t waiting;
    uint64_t done = 0;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGXFSZ);
    int theirs = sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &set, &before);
    while (done < size) {
        ssize_t n = write(fd, bytes + done, (size_t)(size - done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        done += (uint64_t)n;
    }
    int code = errno;
    while (!theirs && sigtimedwait(&set, NULL, &at_once) == SIGXFSZ) {
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return done == size;
}

/* The folder is synced too: else the new name may be lost with the power. */
static void sync_folder(const char *path)
{
    char folder[BURNI_PLACE_BYTES];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        (void)snprintf(folder, sizeof(folder), ".");
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

int32_t burni_place_write(const char *path, const void *bytes, uint64_t size, burn_err *err)
{
    static _Atomic uint32_t counter;
    char scratch[BURNI_PLACE_BYTES + 64];
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return burni_fail(err, BURN_E_IO, "environment: %.150s is no regular file", path);
    }
    int n = snprintf(scratch, sizeof(scratch), "%s.%ld-%u.tmp", path, (long)getpid(),
                     atomic_fetch_add(&counter, 1));
    if (n < 0 || (size_t)n >= sizeof(scratch)) {
        return burni_fail(err, BURN_E_INVALID, "environment: %.100s...: its path is too long",
                          path);
    }
    int fd = open(scratch, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return failed(path, "creating a file beside it", err);
    }
    int32_t rc = BURN_OK;
    if (!write_all(fd, bytes, size)) {
        rc = failed(path, "writing", err);
    } else if (fsync(fd) != 0) {
        rc = failed(path, "syncing", err);
    }
    if (close(fd) != 0 && rc == BURN_OK) {
        rc = failed(path, "closing", err);
    }
    if (rc == BURN_OK && rename(scratch, path) != 0) {
        rc = failed(path, "renaming the new file over it", err);
    }
    if (rc != BURN_OK) {
        (void)unlink(scratch);
        return rc;
    }
    sync_folder(path);
    return BURN_OK;
}

/* ---- turns ----------------------------------------------------------------------------------- */

int burni_place_lock(const char *path, burn_err *err)
{
    char name[BURNI_PLACE_BYTES + 8];
    (void)snprintf(name, sizeof(name), "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)failed(name, "opening", err);
        return -1;
    }
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return fd;
        }
        const struct timespec pause = {0, LOCK_WAIT_NS};
        (void)nanosleep(&pause, NULL);
    }
    (void)burni_fail(err, BURN_E_IO, "environment: %.150s is locked by another process", name);
    (void)close(fd);
    return -1;
}

void burni_place_unlock(int handle)
{
    if (handle >= 0) {
        (void)close(handle);
    }
}
