/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tolerance.c - when two numbers count as equal.
 *
 * A sample's tolerance is in units of the dtype's epsilon, scaled by max(1, |expected|); 0 means
 * equal. NaN equals NaN, infinities equal themselves, zeros of both signs are equal. Integers and
 * bools are always compared exactly.
 */
#include "conformance.h"

#include <math.h>

int conf_close(double got, double expected, double tolerance, uint8_t dtype, double slack)
{
    if (isnan(expected) || isnan(got)) {
        return isnan(expected) && isnan(got);
    }
    if (got == expected) {
        return 1;
    }
    if (isinf(expected) || isinf(got)) {
        return 0;
    }
    double allowed = tolerance * burn_epsilon(dtype) * fmax(1.0, fabs(expected)) + slack;
    return fabs(got - expected) <= allowed;
}

static int element_close(const conf_value *got, const conf_value *expected, uint64_t k,
                         double tolerance)
{
    if (expected->f != NULL) {
        return conf_close(got->f[k], expected->f[k], tolerance, expected->meta.dtype, 0.0);
    }
    if (expected->u != NULL) {
        return got->u[k] == expected->u[k];
    }
    return got->i[k] == expected->i[k];
}

static void element_text(const conf_value *value, uint64_t k, char *text, size_t size)
{
    if (value->f != NULL) {
        (void)snprintf(text, size, "%.9g", value->f[k]);
    } else if (value->u != NULL) {
        (void)snprintf(text, size, "%llu", (unsigned long long)value->u[k]);
    } else {
        (void)snprintf(text, size, "%lld", (long long)value->i[k]);
    }
}

int conf_compare(const conf_value *got, const conf_value *expected, double tolerance, char *text,
                 size_t size)
{
    char a[160];
    char b[160];
    uint64_t wrong = 0;
    uint64_t first = 0;
    if (got->meta.dtype != expected->meta.dtype ||
        !conf_same_shape(&got->meta, &expected->meta)) {
        (void)snprintf(text, size, "is %s, expected %s", conf_meta_text(a, sizeof(a), &got->meta),
                       conf_meta_text(b, sizeof(b), &expected->meta));
        return 0;
    }
    for (uint64_t k = 0; k < expected->n; k++) {
        if (!element_close(got, expected, k, tolerance)) {
            first = wrong == 0 ? k : first;
            wrong++;
        }
    }
    if (wrong == 0) {
        return 1;
    }
    element_text(got, first, a, sizeof(a));
    element_text(expected, first, b, sizeof(b));
    (void)snprintf(text, size, "element %llu is %s, expected %s (%llu of %llu differ; tolerance "
                               "%g eps)",
                   (unsigned long long)first, a, b, (unsigned long long)wrong,
                   (unsigned long long)expected->n, tolerance);
    return 0;
}
