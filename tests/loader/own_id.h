/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * own_id.h - how a stub knows which defect it has: it is its file's name.
 *
 * One library is built once and copied under many names. `own_id` must be the stub's own memory,
 * since it is by its address that the file is found.
 */
#ifndef BURN_TESTS_LOADER_OWN_ID_H
#define BURN_TESTS_LOADER_OWN_ID_H

#include <dlfcn.h>
#include <string.h>

/* The file's name without folder and ".so". `own_id` is zeroed; unchanged when there is none. */
static inline void find_own_id(char *own_id, size_t size)
{
    Dl_info info;
    if (dladdr(own_id, &info) == 0) {
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    strncpy(own_id, slash != NULL ? slash + 1 : info.dli_fname, size - 1);
    char *dot = strchr(own_id, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
}

#endif /* BURN_TESTS_LOADER_OWN_ID_H */
