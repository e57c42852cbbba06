/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mean.c - the mean of a per-item quantity, from its sum and count: loss, perplexity.
 *
 * The sum is kept in two parts (Neumaier's compensated sum), so that millions of small losses do
 * not vanish beside a large total. A non-finite value makes the mean non-finite: it is what
 * happened, and hiding it would make a broken run look healthy.
 */
#include "train/base/error.h"

#include <burn/metric.h>
#include <math.h>

static void add_to_sum(burn_metric_mean *metric, double value)
{
    double total = metric->sum + value;
    if (isfinite(total)) {
        if (fabs(metric->sum) >= fabs(value)) {
            metric->carry += (metric->sum - total) + value;
        } else {
            metric->carry += (value - total) + metric->sum;
        }
    }
    metric->sum = total;
}

static int32_t check(const burn_metric_mean *metric, burn_err *err)
{
    if (metric == NULL || !BURN_HAS(metric, burn_metric_mean, count)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: a mean with its struct_size is needed (BURN_INIT)");
    }
    return BURN_OK;
}

int32_t burn_metric_mean_add(burn_metric_mean *metric, double sum, int64_t count, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (count < 0 || metric->count > INT64_MAX - count) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: a count of %lld cannot be added to %lld",
                                (long long)count, (long long)metric->count);
    }
    if (count > 0) {
        add_to_sum(metric, sum);
        metric->count += count;
    }
    return BURN_OK;
}

int32_t burn_metric_mean_add_mean(burn_metric_mean *metric, double mean, int64_t count,
                                  burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    return burn_metric_mean_add(metric, mean * (double)count, count, err);
}

void burn_metric_mean_merge(burn_metric_mean *metric, const burn_metric_mean *other)
{
    if (check(metric, NULL) != BURN_OK || check(other, NULL) != BURN_OK) {
        return;
    }
    add_to_sum(metric, other->sum);
    metric->carry += other->carry;
    metric->count += other->count;
}

int32_t burn_metric_mean_value(const burn_metric_mean *metric, double *out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (metric->count == 0) {
        return burni_train_fail(err, BURN_E_STATE,
                                "metric: the mean is not available before any data was added");
    }
    *out = (metric->sum + metric->carry) / (double)metric->count;
    return BURN_OK;
}

int32_t burn_metric_mean_perplexity(const burn_metric_mean *metric, double *out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    double mean = 0.0;
    int32_t code = burn_metric_mean_value(metric, &mean, err);
    if (code == BURN_OK) {
        *out = exp(mean);
    }
    return code;
}
