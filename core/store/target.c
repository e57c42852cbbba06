/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * target.c - which file a save replaces.
 *
 * A save puts a new file in the place of the old one, so it may only meet regular files: a device,
 * a FIFO or a socket would be lost, as would a symbolic link, which is followed instead. Then the
 * new file is made beside what the link names, in that folder and on that file system. [any]
 */
#include "store/burnpack.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode)) {
        return "a folder";
    }
    if (S_ISFIFO(mode)) {
        return "a FIFO";
    }
    if (S_ISSOCK(mode)) {
        return "a socket";
    }
    return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

static int32_t followed(const char *path, char **out, burn_err *err)
{
    /* realpath allocates with malloc, which is not this library's allocator. */
    char *real = realpath(path, NULL);
    if (real == NULL && errno == ENOENT) {
        return burni_fail(err, BURN_E_IO,
                          "%s: it is a symbolic link to nothing; make or remove what it names",
                          burni_bpk_short_path(path));
    }
    if (real == NULL) {
        return burni_fail(err, BURN_E_IO, "%s: following the symbolic link: %s",
                          burni_bpk_short_path(path), strerror(errno));
    }
    *out = burni_strdup(real);
    free(real);
    return *out != NULL ? BURN_OK : burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
}

int32_t burni_bpk_target(const char *path, char **out, burn_err *err)
{
    struct stat at;
    *out = NULL;
    int exists = lstat(path, &at) == 0;
    if (exists && S_ISLNK(at.st_mode)) {
        int32_t code = followed(path, out, err);
        if (code != BURN_OK) {
            return code;
        }
        exists = lstat(*out, &at) == 0;
    } else {
        *out = burni_strdup(path);
    }
    if (*out == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "out of host memory");
    }
    if (exists && !S_ISREG(at.st_mode)) {
        return burni_fail(err, BURN_E_IO,
                          "%s: it is %s, which a save would replace; name a file to be made",
                          burni_bpk_short_path(path), kind_of(at.st_mode));
    }
    return BURN_OK;
}
