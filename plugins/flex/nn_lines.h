/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_lines.h - loops over dense lines behind softmax, norms, losses and optimizers, as a table.
 *
 * There is a table for f32 (once per ISA) and one for f64; f16 and bf16 are widened to f32 lines.
 * Lines are void pointers to the table's element type, so that op files are written once. Sums are
 * kept in f64, in a fixed number of lanes: their bits depend on the data only. To add a loop: a
 * member here and its function in nn_lines_tmpl.h.
 */
#ifndef BURN_PLUGINS_FLEX_NN_LINES_H
#define BURN_PLUGINS_FLEX_NN_LINES_H

#include <stdint.h>

/* Before a loop whose result may be the operand itself: no element needs another's. */
#if defined(__clang__)
#define FLEX_LINE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define FLEX_LINE_LOOP _Pragma("GCC ivdep")
#endif

typedef struct flex_adam {
    double beta1;
    double beta2;
    double decay;     /* added to the gradient, times the parameter */
    double shrink;    /* the parameter is multiplied by it first */
    double step;      /* lr / (1 - beta1^t) */
    double bias2;     /* 1 - beta2^t */
    double eps;
} flex_adam;

typedef struct flex_sgd {
    double lr;
    double momentum;
    double keep; /* 1 - dampening */
    double decay;
    int first;
    int nesterov;
} flex_sgd;

/*
 * A row of windows, n of them, `step` apart, that lie inside a plane: tap (ky, kx) of window x is
 * element ky * pitch + kx * dilation + x * step. Whole vectors are read and written where there is
 * room for them: `room_in` elements may be read, `room_out` results written.
 */
typedef struct flex_maxima {
    const void *from;
    int64_t pitch;
    int64_t dilation;
    int64_t ny;
    int64_t nx;
    int64_t step;
    int64_t n;
    int64_t room_in;
    int64_t room_out;
    int32_t at; /* index of the first element */
} flex_maxima;

/* Sums run in so many lanes; exp takes a block at a time, and adds up the elements of a lane. */
enum { FLEX_LINE_LANES = 16, FLEX_LINE_BLOCK = 4 * FLEX_LINE_LANES };

/* Two lines of so many elements, and two of operands, stay in the first cache. */
enum { FLEX_FAR_MOST = 2048 };

typedef struct flex_lines {
    uint8_t dtype; /* of the lines */
    /* -inf for none. NaN are passed over: who goes on to `exp` finds them in its sum. */
    double (*max)(const void *x, int64_t n);
    /* out[i] = exp(x[i] - shift); returns the sum. */
    double (*exp)(void *out, const void *x, double shift, int64_t n);
    /*
     * out = softmax of x. `next` is what will be read afterwards, asked for meanwhile; x itself
     * where that is unknown.
     */
    void (*softmax)(void *out, const void *x, int64_t n, const void *next);
    /*
     * The same for rows of n <= FLEX_FAR_MOST elements, a multiple of FLEX_LINE_BLOCK, past the
     * caches; `out` starts on a line of 64 bytes. NULL where the ISA has none.
     */
    void (*far_softmax)(void *out, const void *x, int64_t n, int64_t rows);
    /* Mean, and mean of the squared distances from it; n > 0. `next` as above. */
    void (*moments)(double moments[2], const void *x, int64_t n, const void *next);
    double (*sum)(const void *x, int64_t n);
    double (*sum_squares)(const void *x, double mean, int64_t n); /* of x - mean */
    double (*dot)(const void *x, const void *y, int64_t n);
    void (*scale)(void *out, const void *x, double by, int64_t n);
    void (*add)(void *out, const void *x, double what, int64_t n);
    /* out = y * (g - s); out = g - exp(y) * s */
    void (*softmax_grad)(void *out, const void *y, const void *g, double s, int64_t n);
    void (*log_softmax_grad)(void *out, const void *y, const void *g, double s, int64_t n);
    /* out = (x - mean) * inv * gamma + beta, per element; gamma and beta may be NULL. */
    void (*normalize)(void *out, const void *x, double mean, double inv, const void *gamma,
                      const void *beta, int64_t n);
    /* out = (x - mean) * by + beta, with numbers. */
    void (*affine)(void *out, const void *x, double mean, double by, double beta, int64_t n);
    /* sums[0] = sum of g * gamma, sums[1] = sum of g * gamma * (x - mean) * inv */
    void (*norm_sums)(double sums[2], const void *x, const void *g, const void *gamma, double mean,
                      double inv, int64_t n);
    /* out = by * (g * gamma - c[0] - (x - mean) * inv * c[1]) */
    void (*norm_grad)(void *out, const void *x, const void *g, const void *gamma, double mean,
                      double inv, double by, const double c[2], int64_t n);
    /* gamma[i] += g[i] * (x[i] - mean) * inv, beta[i] += g[i] */
    void (*add_param_grads)(double *gamma, double *beta, const void *x, const void *g, double mean,
                            double inv, int64_t n);
    void (*square_differences)(void *out, const void *x, const void *y, int64_t n);
    /*
     * A row of maxima takes one tap: value x * step of `from` meets y[x], and at + x * step is its
     * index. NaN wins, the first one; otherwise the larger; a tie changes nothing.
     */
    void (*max_tap)(void *y, int32_t *index, const void *from, int64_t step, int32_t at, int64_t n);
    /* The same for all taps of windows that lie inside. */
    void (*maxima)(void *y, int64_t *index, const flex_maxima *m);
    void (*adam)(void *p, void *m, void *v, const void *g, const flex_adam *k, int64_t n);
    void (*sgd)(void *p, void *velocity, const void *g, const flex_sgd *k, int64_t n);
} flex_lines;

extern const flex_lines flex_lines_f64;
extern const flex_lines flex_lines_f32_baseline;
#if defined(FLEX_HAS_X86_KERNELS)
extern const flex_lines flex_lines_f32_avx2;
extern const flex_lines flex_lines_f32_avx512;
#endif

/* The table for lines of operands of that dtype. */
const flex_lines *flex_lines_of(uint8_t dtype);

#endif /* BURN_PLUGINS_FLEX_NN_LINES_H */
