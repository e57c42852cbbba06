/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loops.h - the vector loops of the CPU kernels, as one table per instruction set.
 *
 * loops_tmpl.c is compiled once per set and defines one fused_loops each; flex_rows.c picks the one
 * that the backend says it uses. A loop runs over dense arrays on one thread and knows no shape.
 * The output may be one of the inputs, except for what goes past the caches.
 */
#ifndef BURN_EXTENSIONS_FUSED_LOOPS_H
#define BURN_EXTENSIONS_FUSED_LOOPS_H

#include <stdint.h>

typedef struct fused_lion {
    double lr;
    double beta1;
    double beta2;
    double weight_decay;
} fused_lion;

typedef struct fused_loops {
    /* In place, on a block of a product: rows are `ld` apart. */
    void (*relu)(float *c, int64_t ld, int64_t rows, int64_t cols);
    void (*gelu)(float *c, int64_t ld, int64_t rows, int64_t cols);
    void (*gelu_tanh)(float *c, int64_t ld, int64_t rows, int64_t cols);
    void (*swiglu)(float *out, const float *gate, const float *up, int64_t n);
    /* One row: the layer norm of x + y. The rows behind x and y are asked for meanwhile. */
    void (*add_norm)(float *out, const float *x, const float *y, const float *gamma,
                     const float *beta, double eps, int64_t n);
    void (*add_norm_f64)(double *out, const double *x, const double *y, const double *gamma,
                         const double *beta, double eps, int64_t n);
    /* param and m are updated from `from` values, which may be the same arrays. */
    void (*lion)(float *param, float *m, const float *from_param, const float *from_m,
                 const float *grad, const fused_lion *a, int64_t n);
    void (*lion_f64)(double *param, double *m, const double *from_param, const double *from_m,
                     const double *grad, const fused_lion *a, int64_t n);
    /* Copies past the caches; `flushed` before others may look. NULL where the set has no way. */
    void (*stream)(float *out, const float *from, int64_t n);
    void (*flushed)(void);
} fused_loops;

extern const fused_loops fused_loops_baseline;
#if defined(FUSED_HAS_X86_LOOPS)
extern const fused_loops fused_loops_avx2;
extern const fused_loops fused_loops_avx512;
#endif

#endif /* BURN_EXTENSIONS_FUSED_LOOPS_H */
