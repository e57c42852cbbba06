/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * env.h - the only reader of environment variables. They are hostile until checked: values are
 * ignored in processes with raised privileges (AT_SECURE), and callers validate what they get.
 */
#ifndef BURN_CORE_BASE_ENV_H
#define BURN_CORE_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

/* Value of BURN_<name>, or NULL when unset or when the process is privileged. [any] */
const char *burni_env(const char *name);

/* The i-th variable whose name begins with BURN_: its name, cut to size, and value. 0 after the
 * last one, and in privileged processes. */
int burni_env_at(uint32_t i, char *name, size_t size, const char **value);

/* Where a user's data go, XDG_DATA_HOME, else .local/share below HOME. 0 when neither is an
 * absolute path that fits, and in privileged processes. */
int burni_env_data_home(char *out, size_t size);

/* 1 when the process runs with raised privileges. */
int burni_env_is_secure(void);

#endif /* BURN_CORE_BASE_ENV_H */
