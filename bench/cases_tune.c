/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_tune.c - a matrix product under a tuning environment of its own, and the same without.
 *
 * The environment lies in a folder that is made for the case and removed with it; its race is run
 * while the case is set up, so what is measured is the row that won. The peer is a second process,
 * which has no environment.
 */
#include "cases.h"

#include <burn/environment.h>
#include <burn/ops.h>
#include <burn/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static burn_device *tune_device;
static burn_tensor *tune_a;
static burn_tensor *tune_b;
static char folder[64];

int32_t bench_dgemm_setup(burn_device *device, int64_t arg, burn_err *err)
{
    const int64_t dims[] = {arg, arg};
    tune_device = device;
    burn_seed(1);
    burn_scope_begin();
    tune_a = burn_keep(burn_random_uniform(device, BURN_F64, 2, dims));
    tune_b = burn_keep(burn_random_uniform(device, BURN_F64, 2, dims));
    burn_scope_end();
    return burn_sync(device, err);
}

int32_t bench_tuned_dgemm_setup(burn_device *device, int64_t arg, burn_err *err)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/burn-bench-XXXXXX");
    if (mkdtemp(folder) == NULL || setenv("BURN_ENVIRONMENT_PATH", folder, 1) != 0) {
        return BURN_E_IO;
    }
    int32_t rc = burn_environment_load("bench", err);
    if (rc == BURN_OK) {
        rc = bench_dgemm_setup(device, arg, err);
    }
    return rc == BURN_OK ? bench_dgemm_run(1, err) : rc;
}

int32_t bench_dgemm_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_release(burn_matmul(tune_a, tune_b));
    }
    return burn_sync(tune_device, err);
}

void bench_dgemm_teardown(void)
{
    burn_release(tune_a);
    burn_release(tune_b);
    tune_a = NULL;
    tune_b = NULL;
}

void bench_tuned_dgemm_teardown(void)
{
    char path[128];
    bench_dgemm_teardown();
    (void)burn_environment_load(NULL, NULL);
    (void)burn_environment_clear("bench", NULL);
    (void)snprintf(path, sizeof(path), "%s/bench.benv.lock", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}
