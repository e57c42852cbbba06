/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_f64.c - elementwise loops of f64, on libm.
 *
 * Owns no op: they are in pointwise_float.h, shared with f32.
 */
#include "kernels.h"
#include "math_f64.h"

static uint64_t run_sin(void *out, const void *in, uint64_t n)
{
    double *z = out;
    const double *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = fd_sin(x[i]);
    }
    return n;
}

static uint64_t run_cos(void *out, const void *in, uint64_t n)
{
    double *z = out;
    const double *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = fd_cos(x[i]);
    }
    return n;
}

static uint64_t run_tan(void *out, const void *in, uint64_t n)
{
    double *z = out;
    const double *x = in;
    for (uint64_t i = 0; i < n; i++) {
        z[i] = fd_tan(x[i]);
    }
    return n;
}

#define T double
#define FN(name) fd_##name
#define C(name) name
#define TABLE flex_pointwise_f64
#include "pointwise_float.h"
