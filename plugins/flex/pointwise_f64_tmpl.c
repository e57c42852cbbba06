/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise_f64_tmpl.c - elementwise loops of f64, compiled once per ISA with ISA defined as
 * baseline, avx2 or avx512. Elementary functions are libm's.
 *
 * Owns no op: they are in pointwise_float.h, shared with f32. Nothing is contracted, so all ISAs
 * give the same bits.
 */
#include "kernels.h"
#include "math_f64.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define TABLE PASTE(flex_pointwise_f64_, ISA)

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
#include "pointwise_float.h"
