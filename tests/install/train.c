/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * train.c - the smallest user of an installed libburn-train: a metric, and the versions of core.
 *
 * Built by install.py with `pkg-config burn-train` alone; prints one line that it looks for.
 */
#include <burn/metric.h>
#include <burn/train.h>
#include <burn/version.h>
#include <stdio.h>

int main(void)
{
    const int64_t predicted[] = {1, 2, 3, 4};
    const int64_t target[] = {1, 2, 3, 0};
    burn_err err = BURN_ERR_INIT;
    burn_metric_accuracy metric = {.struct_size = sizeof(metric)};
    double value = 0;
    burn_metric_accuracy_add(&metric, predicted, target, 4, BURN_METRIC_NO_IGNORE, &err);
    burn_metric_accuracy_value(&metric, &value, &err);
    printf("accuracy %.2f %s\n", value, err.code == BURN_OK ? "" : err.text);
    return err.code != BURN_OK;
}
