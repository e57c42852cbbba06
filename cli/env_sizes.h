/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * env_sizes.h - `burn env prepare` by sizes: products and convolutions that are run so that the
 * library measures them. To add an op: a field here, a row of `makers` in env_sizes.c.
 */
#ifndef BURN_CLI_ENV_SIZES_H
#define BURN_CLI_ENV_SIZES_H

#include "cli.h"

/* What was given on the command line; NULL: not given. */
typedef struct env_sizes {
    const char *device;
    const char *dtype;
    const char *matmul;
    const char *conv1d;
    const char *conv2d;
} env_sizes;

int env_sizes_given(const env_sizes *sizes);

/* Runs them all and saves the environment that is loaded; the exit status. */
int env_sizes_run(const cli *c, const env_sizes *sizes);

#endif /* BURN_CLI_ENV_SIZES_H */
