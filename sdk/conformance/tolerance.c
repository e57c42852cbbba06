/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tolerance.c - when two numbers count as equal.
 *
 * A sample's tolerance is in units of the dtype's epsilon; 0 means equal. How it is scaled depends
 * on the op. Pointwise ops are held to a relative error, down to the smallest normal number, and to
 * the sign of a zero: each element depends on a few numbers, so there is no excuse for exp(x) - 1
 * in the place of expm1, or for results that are flushed to zero. Sums of many numbers may cancel:
 * there it is max(1, |expected|), and zeros of both signs are equal unless the tolerance is 0.
 * Samples can say that a pointwise op cancels, and that signs of zeros are open (BURN_SAMPLE_*).
 * NaN equals NaN, infinities equal themselves. Integers and bools are compared exactly.
 */
#include "conformance.h"

#include <math.h>

/* How the elements of one output are held. */
typedef struct measure {
    double tolerance;
    double floor; /* errors are relative to what is larger than this */
    uint8_t dtype;
    uint8_t signed_zeros;
} measure;

static double allowed_error(const measure *m, double expected)
{
    return m->tolerance * burn_epsilon(m->dtype) * fmax(m->floor, fabs(expected));
}

static int is_close(const measure *m, double got, double expected, double slack)
{
    if (isnan(expected) || isnan(got)) {
        return isnan(expected) && isnan(got);
    }
    if (got == expected) {
        return !m->signed_zeros || signbit(got) == signbit(expected);
    }
    if (isinf(expected) || isinf(got)) {
        return 0;
    }
    return fabs(got - expected) <= allowed_error(m, expected) + slack;
}

int conf_close(double got, double expected, double tolerance, uint8_t dtype, double slack)
{
    const measure m = {tolerance, 1.0, dtype, 0};
    return is_close(&m, got, expected, slack);
}

static int element_close(const measure *m, const conf_value *got, const conf_value *expected,
                         uint64_t k)
{
    if (expected->f != NULL) {
        return is_close(m, got->f[k], expected->f[k], 0.0);
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

static int same_kind(const conf_value *got, const conf_value *expected, char *text, size_t size)
{
    char a[160];
    char b[160];
    if (got->meta.dtype == expected->meta.dtype && conf_same_shape(&got->meta, &expected->meta)) {
        return 1;
    }
    (void)snprintf(text, size, "is %s, expected %s", conf_meta_text(a, sizeof(a), &got->meta),
                   conf_meta_text(b, sizeof(b), &expected->meta));
    return 0;
}

static int compare(const measure *m, const conf_value *got, const conf_value *expected, char *text,
                   size_t size)
{
    char a[40];
    char b[40];
    uint64_t wrong = 0;
    uint64_t first = 0;
    if (!same_kind(got, expected, text, size)) {
        return 0;
    }
    for (uint64_t k = 0; k < expected->n; k++) {
        if (!element_close(m, got, expected, k)) {
            first = wrong == 0 ? k : first;
            wrong++;
        }
    }
    if (wrong == 0) {
        return 1;
    }
    element_text(got, first, a, sizeof(a));
    element_text(expected, first, b, sizeof(b));
    (void)snprintf(text, size,
                   "element %llu is %s, expected %s (%llu of %llu differ; tolerance %g eps%s)",
                   (unsigned long long)first, a, b, (unsigned long long)wrong,
                   (unsigned long long)expected->n, m->tolerance,
                   m->floor < 1.0 ? ", relative" : "");
    return 0;
}

int conf_compare(const conf_value *got, const conf_value *expected, double tolerance, char *text,
                 size_t size)
{
    const measure m = {tolerance, 1.0, expected->meta.dtype, 0};
    return compare(&m, got, expected, text, size);
}

/* The smallest normal number of a float dtype. */
static double smallest_normal(uint8_t dtype)
{
    switch (dtype) {
    case BURN_F16:
        return 0x1p-14;
    case BURN_F64:
        return 0x1p-1022;
    default:
        return 0x1p-126;
    }
}

static measure measure_of(const burn_op_def *def, const burn_sample *sample, uint8_t dtype)
{
    int pointwise = def->fuse == BURN_FUSE_POINTWISE;
    int relative = pointwise && (sample->flags & BURN_SAMPLE_ABSOLUTE) == 0;
    measure m = {sample->tolerance, relative ? smallest_normal(dtype) : 1.0, dtype, 0};
    m.signed_zeros = (pointwise || sample->tolerance == 0.0) &&
                     (sample->flags & BURN_SAMPLE_ANY_ZERO) == 0;
    return m;
}

int conf_compare_output(const conf_case *c, uint32_t j, const conf_value *got, double factor,
                        char *text, size_t size)
{
    measure m = measure_of(c->def, &c->sample, c->out[j].meta.dtype);
    m.tolerance *= factor;
    return compare(&m, got, &c->out[j], text, size);
}

int conf_compare_large(const conf_case *c, uint32_t j, const conf_value *got, double factor,
                       char *text, size_t size)
{
    const conf_value *expected = &c->out[j];
    measure m = measure_of(c->def, &c->sample, expected->meta.dtype);
    double most = 0.0;
    for (uint64_t k = 0; k < expected->n && expected->f != NULL; k++) {
        most = isfinite(expected->f[k]) ? fmax(most, fabs(expected->f[k])) : most;
    }
    if (c->def->fuse != BURN_FUSE_POINTWISE && most > 0.0) {
        m.floor = most;
    }
    m.tolerance *= factor;
    return compare(&m, got, expected, text, size);
}
