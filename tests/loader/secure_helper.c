/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * secure_helper.c - says by its exit status whether the environment counts in this process: 10 yes,
 * 11 no. test_secure.c runs a copy of it as it is, and one that is set-uid.
 */
#include "base/env.h"

#include <stddef.h>

int main(void)
{
    return burni_env("PLUGIN_PATH") != NULL ? 10 : 11;
}
