/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * env.c - the only file that calls getenv; tests/checks holds the others to that.
 */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

extern char **environ;

int burni_env_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *burni_env(const char *name)
{
    char full[64];
    int n = snprintf(full, sizeof(full), "BURN_%s", name);
    if (n < 0 || (size_t)n >= sizeof(full) || burni_env_is_secure()) {
        return NULL;
    }
    return getenv(full);
}

int burni_env_data_home(char *out, size_t size)
{
    if (burni_env_is_secure()) {
        return 0;
    }
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    int has_data = data != NULL && data[0] == '/';
    if (!has_data && (home == NULL || home[0] != '/')) {
        return 0;
    }
    int n = snprintf(out, size, "%s%s", has_data ? data : home, has_data ? "" : "/.local/share");
    return n > 0 && (size_t)n < size;
}

int burni_env_at(uint32_t i, char *name, size_t size, const char **value)
{
    uint32_t n = 0;
    for (char **at = environ; at != NULL && *at != NULL && !burni_env_is_secure(); at++) {
        const char *equals = strchr(*at, '=');
        if (strncmp(*at, "BURN_", 5) != 0 || equals == NULL || n++ != i) {
            continue;
        }
        (void)snprintf(name, size, "%.*s", (int)(equals - *at), *at);
        *value = equals + 1;
        return 1;
    }
    return 0;
}
