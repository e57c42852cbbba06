/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * accuracy.c - accuracy from counts: how many were right of how many that counted.
 *
 * A call either adds all of its items or, on an error, none. The value is made from the counts when
 * it is asked for, so the size of the batches never shows in it.
 */
#include "train/base/error.h"

#include <burn/metric.h>
#include <math.h>

typedef struct tally {
    int64_t correct;
    int64_t count;
    int64_t ignored;
} tally;

static int32_t check(const burn_metric_accuracy *metric, burn_err *err)
{
    if (metric == NULL || !BURN_HAS(metric, burn_metric_accuracy, ignored)) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: an accuracy with its struct_size is needed (BURN_INIT)");
    }
    return BURN_OK;
}

static void count_pair(tally *t, int64_t predicted, int64_t target, int64_t ignore)
{
    if (target == ignore && ignore != BURN_METRIC_NO_IGNORE) {
        t->ignored++;
        return;
    }
    t->count++;
    t->correct += predicted == target;
}

static void add_tally(burn_metric_accuracy *metric, const tally *t)
{
    metric->correct += t->correct;
    metric->count += t->count;
    metric->ignored += t->ignored;
}

int32_t burn_metric_accuracy_add_counts(burn_metric_accuracy *metric, int64_t correct,
                                        int64_t count, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (correct < 0 || correct > count || metric->count > INT64_MAX - count) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: %lld right of %lld items cannot be added to %lld items",
                                (long long)correct, (long long)count, (long long)metric->count);
    }
    const tally t = {correct, count, 0};
    add_tally(metric, &t);
    return BURN_OK;
}

int32_t burn_metric_accuracy_add(burn_metric_accuracy *metric, const int64_t *predicted,
                                 const int64_t *target, int64_t n, int64_t ignore, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (n < 0 || (n > 0 && (predicted == NULL || target == NULL))) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: %lld pairs need predictions and targets", (long long)n);
    }
    tally t = {0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        count_pair(&t, predicted[i], target[i], ignore);
    }
    add_tally(metric, &t);
    return BURN_OK;
}

/* The first NaN, else the first of the largest. */
static int64_t best_class(const float *scores, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (isnan(scores[c])) {
            return c;
        }
        if (scores[c] > scores[best]) {
            best = c;
        }
    }
    return best;
}

int32_t burn_metric_accuracy_add_scores(burn_metric_accuracy *metric, const float *scores,
                                        int64_t rows, int64_t classes, const int64_t *target,
                                        int64_t ignore, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (rows < 0 || classes < 1 || (rows > 0 && (scores == NULL || target == NULL))) {
        return burni_train_fail(err, BURN_E_INVALID,
                                "metric: scores [%lld,%lld] need memory, targets and one class or "
                                "more",
                                (long long)rows, (long long)classes);
    }
    tally t = {0, 0, 0};
    for (int64_t i = 0; i < rows; i++) {
        int is_ignored = target[i] == ignore && ignore != BURN_METRIC_NO_IGNORE;
        if (!is_ignored && (target[i] < 0 || target[i] >= classes)) {
            return burni_train_fail(err, BURN_E_DATA,
                                    "metric: target %lld of row %lld is not in 0 .. %lld",
                                    (long long)target[i], (long long)i, (long long)(classes - 1));
        }
        count_pair(&t, best_class(scores + i * classes, classes), target[i], ignore);
    }
    add_tally(metric, &t);
    return BURN_OK;
}

void burn_metric_accuracy_merge(burn_metric_accuracy *metric, const burn_metric_accuracy *other)
{
    if (check(metric, NULL) == BURN_OK && check(other, NULL) == BURN_OK) {
        const tally t = {other->correct, other->count, other->ignored};
        add_tally(metric, &t);
    }
}

int32_t burn_metric_accuracy_value(const burn_metric_accuracy *metric, double *out, burn_err *err)
{
    burn_err spare;
    err = burni_train_first(err, &spare);
    int32_t code = check(metric, err);
    if (code != BURN_OK) {
        return code;
    }
    if (metric->count == 0) {
        return burni_train_fail(err, BURN_E_STATE,
                                "metric: the accuracy is not available before any data was added");
    }
    *out = (double)metric->correct / (double)metric->count;
    return BURN_OK;
}
