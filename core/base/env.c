/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * env.c - the only file that calls getenv; tests/checks holds the others to that.
 */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

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
