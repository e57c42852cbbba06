/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conv.h - what the convolution definitions share: sizes, checks, columns, samples, eval.
 *
 * A convolution has three sides: input x [n, c, h, w], weight w [o, c/groups, kh, kw] and output
 * y [n, o, oh, ow]. conv2d computes y, conv2d_grad_input x and conv2d_grad_weight w, each from the
 * other two; so one struct of sizes and one walk over all products serves all three. Pure. To add
 * a convolution: resolve the sizes here, then express it by the three.
 */
#ifndef BURN_CORE_OPS_CONV_H
#define BURN_CORE_OPS_CONV_H

#include "ops/parts.h"

typedef struct burni_conv {
    int64_t n, c, h, w;
    int64_t o, kh, kw;
    int64_t oh, ow;
    int64_t cg, og; /* channels of one group */
    const burn_attrs_conv *attrs;
} burni_conv;

enum { BURNI_N_ATTRS_CONV = 11 };
extern const burn_attr burni_attrs_conv_rows[BURNI_N_ATTRS_CONV];

/* Checks strides, padding, dilation and groups. */
int32_t burni_conv_check(const char *op, const burn_attrs_conv *a, burn_err *err);
/* Of the ops that have no use for one. */
int32_t burni_conv_no_output_padding(const char *op, const burn_attrs_conv *a, burn_err *err);

/* From n, c, h, w, o, kh, kw and attrs: the others. Errors name values and remedy. */
int32_t burni_conv_resolve(const char *op, burni_conv *d, burn_err *err);

/* Has the operand rank 4 (3 for conv1d) and these sizes? -1: any. `what` names it. */
int32_t burni_conv_operand(const char *op, const char *what, const burn_meta *x, uint32_t rank,
                           const int64_t *dims, burn_err *err);

/* Is there a bias, and has it `n` elements? */
int burni_conv_has_bias(uint32_t n_in, const burn_meta *bias);
int32_t burni_conv_check_bias(const char *op, const burn_infer *a, int64_t n);

/* x padded and cut into windows: [n, c, oh, ow, kh, kw]. */
burn_value *burni_conv_windows(const burn_builder *b, burn_value *x, const burni_conv *d);

/* Emits conv2d (bias may be NULL), conv2d_grad_input (w, g), conv2d_grad_weight (x, g). */
burn_value *burni_b_conv2d(const burn_builder *b, burn_value *x, burn_value *w, burn_value *bias,
                           const burn_attrs_conv *attrs);
burn_value *burni_b_conv2d_grad_input(const burn_builder *b, burn_value *w, burn_value *g,
                                      const burn_attrs_conv *attrs, int64_t h, int64_t width);
burn_value *burni_b_conv2d_grad_weight(const burn_builder *b, burn_value *x, burn_value *g,
                                       const burn_attrs_conv *attrs, int64_t kh, int64_t kw);
/* Sum of g over all axes but 1: a bias' gradient. */
burn_value *burni_b_channel_sum(const burn_builder *b, burn_value *g, uint32_t rank);

/* One product x * w that is part of y; `inside` is 0 where x is padding. */
typedef struct burni_conv_term {
    uint64_t x, w, y;
    int inside;
} burni_conv_term;
typedef void (*burni_conv_term_fn)(const burn_eval *a, const burni_conv_term *t);
void burni_conv_walk(const burn_eval *a, const burni_conv *d, burni_conv_term_fn term);
void burni_eval_zero(burn_eval_operand *out);

/* Geometries that the samples of the three have in common. */
typedef struct burni_conv_sample {
    const char *name;
    int64_t n, c, h, w;
    int64_t o, kh, kw;
    uint32_t flags;
    burn_attrs_conv attrs;
} burni_conv_sample;
enum { BURNI_CONV_BIAS = 1, BURNI_CONV_NONFINITE = 2 }; /* flags */
enum { BURNI_N_CONV_SAMPLES = 16 };
extern const burni_conv_sample burni_conv_samples[BURNI_N_CONV_SAMPLES];
/* The row's sizes, resolved. */
burni_conv burni_conv_of_sample(const burni_conv_sample *row);
/* Values for the operands of a product from `first` on, where the row asks for some. */
void burni_conv_sample_values(burn_sample *s, const burni_conv_sample *row, uint32_t first);

#endif /* BURN_CORE_OPS_CONV_H */
