/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * metric.h - metrics from raw statistics, in libburn-train.
 *
 * A metric keeps sums and counts, so its value over an epoch is that of all items together, never
 * an average of batch averages, and two of them can be merged. The structs are plain data in the
 * caller's memory, to be saved in a checkpoint as they are. Before any data a value is "not
 * available" (BURN_E_STATE), not a wrong number. Serial per struct. [any]
 */
#ifndef BURN_METRIC_H
#define BURN_METRIC_H

#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

/* ---- mean of a per-item quantity: the loss ------------------------------------------------- */

/* Start from BURN_INIT(metric, burn_metric_mean). `carry` is what did not fit into `sum`. */
typedef struct burn_metric_mean {
    uint32_t struct_size;
    uint32_t zero;
    double sum;
    double carry;
    int64_t count;
} burn_metric_mean;

/*
 * Adds a sum over `count` items; a batch's mean is added as mean * count. A count of 0 adds nothing
 * (a batch in which every target was ignored, whose mean is NaN); a negative one is an error.
 */
BURN_API int32_t burn_metric_mean_add(burn_metric_mean *metric, double sum, int64_t count,
                                      burn_err *err);
BURN_API int32_t burn_metric_mean_add_mean(burn_metric_mean *metric, double mean, int64_t count,
                                           burn_err *err);
BURN_API void burn_metric_mean_merge(burn_metric_mean *metric, const burn_metric_mean *other);

/* sum / count; BURN_E_STATE before any data, *out then stays as it was. */
BURN_API int32_t burn_metric_mean_value(const burn_metric_mean *metric, double *out, burn_err *err);

/* exp of the mean: the perplexity, when what was added are token losses in nats. */
BURN_API int32_t burn_metric_mean_perplexity(const burn_metric_mean *metric, double *out,
                                             burn_err *err);

/* ---- accuracy ------------------------------------------------------------------------------ */

typedef struct burn_metric_accuracy {
    uint32_t struct_size;
    uint32_t zero;
    int64_t correct;
    int64_t count;   /* items that counted */
    int64_t ignored; /* items whose target was the ignored one */
} burn_metric_accuracy;

/* For the `ignore` arguments: every target counts. */
#define BURN_METRIC_NO_IGNORE INT64_MIN

/* Adds counts that were made elsewhere, for example on the device. */
BURN_API int32_t burn_metric_accuracy_add_counts(burn_metric_accuracy *metric, int64_t correct,
                                                 int64_t count, burn_err *err);

/* Adds n pairs; targets equal to `ignore` are left out (BURN_METRIC_NO_IGNORE: none is). */
BURN_API int32_t burn_metric_accuracy_add(burn_metric_accuracy *metric, const int64_t *predicted,
                                          const int64_t *target, int64_t n, int64_t ignore,
                                          burn_err *err);

/*
 * The same from scores [rows, classes], row-major: the prediction is the largest score, the first
 * NaN before all others, the lowest index among equals. A target outside 0 .. classes - 1 is
 * BURN_E_DATA and adds nothing.
 */
BURN_API int32_t burn_metric_accuracy_add_scores(burn_metric_accuracy *metric, const float *scores,
                                                 int64_t rows, int64_t classes,
                                                 const int64_t *target, int64_t ignore,
                                                 burn_err *err);
BURN_API void burn_metric_accuracy_merge(burn_metric_accuracy *metric,
                                         const burn_metric_accuracy *other);

/* correct / count, from 0 to 1; BURN_E_STATE before any data, *out then stays as it was. */
BURN_API int32_t burn_metric_accuracy_value(const burn_metric_accuracy *metric, double *out,
                                            burn_err *err);

BURN_END_DECLS

#endif /* BURN_METRIC_H */
