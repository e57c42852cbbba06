/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops.h - the ops as functions.
 *
 * Operands are on one device and of one dtype unless said otherwise; nothing is promoted. Either
 * operand of a binary op may be a scalar (burn_scalar). Axes may be negative and wrap once. A flag
 * (keepdims, causal, ceil_mode, exclude_pad, ...) is a truth value of C: any number but 0 is yes.
 * Results are fresh tensors of the innermost scope, failed ones on failure. Numeric rules:
 * docs/semantics.md. All functions: [any].
 */
#ifndef BURN_OPS_H
#define BURN_OPS_H

#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn/tensor.h>

BURN_BEGIN_DECLS

/* burn_exp(x), burn_relu(x), ...: elementwise, the shape of x. is_* and logical_not give bool. */
#define BURN_DECLARE_UNARY(id, NAME, name) BURN_API burn_tensor *burn_##name(burn_tensor *x);
BURN_FOREACH_UNARY_OP(BURN_DECLARE_UNARY)
#undef BURN_DECLARE_UNARY

/* burn_add(x, y), burn_less(x, y), ...: elementwise, broadcasting. Comparisons and logical_* give
 * bool. div of integers truncates; remainder has the divisor's sign, fmod the dividend's. */
#define BURN_DECLARE_BINARY(id, NAME, name)                                                        \
    BURN_API burn_tensor *burn_##name(burn_tensor *x, burn_tensor *y);
BURN_FOREACH_BINARY_OP(BURN_DECLARE_BINARY)
#undef BURN_DECLARE_BINARY

/* The error function form, or (tanh_form = 1) its approximation by tanh. */
BURN_API burn_tensor *burn_gelu(burn_tensor *x, int32_t tanh_form);
/* cond ? x : y, elementwise; cond is bool; x or y may be a scalar. */
BURN_API burn_tensor *burn_where(burn_tensor *cond, burn_tensor *x, burn_tensor *y);
/* Between two scalars, either may be NULL. */
BURN_API burn_tensor *burn_clamp(burn_tensor *x, burn_tensor *lo, burn_tensor *hi);
/* Float to integer truncates, saturates, and makes NaN 0; to bool: not zero. */
BURN_API burn_tensor *burn_cast(burn_tensor *x, uint8_t dtype);
/* A dense copy. */
BURN_API burn_tensor *burn_copy(burn_tensor *x);
/* The same values on another device. Gradients do not pass. */
BURN_API burn_tensor *burn_to_device(burn_tensor *x, burn_device *device);

/* ---- making ---------------------------------------------------------------------------- */

BURN_API burn_tensor *burn_full(burn_device *device, uint8_t dtype, uint32_t rank,
                                const int64_t *dims, burn_tensor *scalar);
BURN_API burn_tensor *burn_zeros(burn_device *device, uint8_t dtype, uint32_t rank,
                                 const int64_t *dims);
BURN_API burn_tensor *burn_ones(burn_device *device, uint8_t dtype, uint32_t rank,
                                const int64_t *dims);
/* n elements start, start + step, ... */
BURN_API burn_tensor *burn_arange(burn_device *device, uint8_t dtype, int64_t n, double start,
                                  double step);

/* Seeds the calling thread's generator: the same seed gives the same numbers on every backend. */
BURN_API void burn_seed(uint64_t seed);
/* Reserves `blocks` counter values of this thread's generator; returns the first, and the seed. */
BURN_API uint64_t burn_random_reserve(uint64_t blocks, uint64_t *out_seed);
/* [0, 1) and N(0, 1); dtype is a float. */
BURN_API burn_tensor *burn_random_uniform(burn_device *device, uint8_t dtype, uint32_t rank,
                                          const int64_t *dims);
BURN_API burn_tensor *burn_random_normal(burn_device *device, uint8_t dtype, uint32_t rank,
                                         const int64_t *dims);
/* 1 with probability p, else 0. */
BURN_API burn_tensor *burn_bernoulli(burn_device *device, uint8_t dtype, uint32_t rank,
                                     const int64_t *dims, double p);

/* ---- reducing -------------------------------------------------------------------------- */

/* Over n_axes axes, in ascending order (0 = all); keepdims = 1 keeps them with size 1. prod, any,
 * all likewise. Empty: sum 0, prod 1, mean NaN, any false, all true; max and min fail. */
BURN_API burn_tensor *burn_sum(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                               int32_t keepdims);
BURN_API burn_tensor *burn_prod(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                                int32_t keepdims);
BURN_API burn_tensor *burn_max(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                               int32_t keepdims);
BURN_API burn_tensor *burn_min(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                               int32_t keepdims);
BURN_API burn_tensor *burn_mean(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                                int32_t keepdims);
BURN_API burn_tensor *burn_any(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                               int32_t keepdims);
BURN_API burn_tensor *burn_all(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                               int32_t keepdims);
BURN_API burn_tensor *burn_logsumexp(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                                     int32_t keepdims);
/* Divides by n - correction; 1 is the unbiased estimate. */
BURN_API burn_tensor *burn_var_of(burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                                  int32_t keepdims, int64_t correction);
/* i64 index of the first largest (smallest) element, NaN before all. */
BURN_API burn_tensor *burn_argmax(burn_tensor *x, int64_t axis, int32_t keepdims);
BURN_API burn_tensor *burn_argmin(burn_tensor *x, int64_t axis, int32_t keepdims);
BURN_API burn_tensor *burn_cumsum(burn_tensor *x, int64_t axis);

/* ---- moving ---------------------------------------------------------------------------- */

/* Views; one dim may be -1. */
BURN_API burn_tensor *burn_reshape(burn_tensor *x, uint32_t rank, const int64_t *dims);
BURN_API burn_tensor *burn_permute(burn_tensor *x, uint32_t rank, const int64_t *axes);
BURN_API burn_tensor *burn_transpose(burn_tensor *x, int64_t axis0, int64_t axis1);
BURN_API burn_tensor *burn_expand_to(burn_tensor *x, uint32_t rank, const int64_t *dims);
BURN_API burn_tensor *burn_flip(burn_tensor *x, uint32_t n_axes, const int64_t *axes);
BURN_API burn_tensor *burn_unsqueeze(burn_tensor *x, int64_t axis);
BURN_API burn_tensor *burn_squeeze(burn_tensor *x, int64_t axis);
BURN_API burn_tensor *burn_flatten(burn_tensor *x, int64_t first_axis, int64_t last_axis);
/* Python's x[start:end:step] along an axis; bounds clamp; BURN_SLICE_NONE = not given. */
#define BURN_SLICE_NONE INT64_MIN
BURN_API burn_tensor *burn_slice(burn_tensor *x, int64_t axis, int64_t start, int64_t end,
                                 int64_t step);
/* A copy of x whose slice (start, step, size of y) is y. */
BURN_API burn_tensor *burn_slice_assign(burn_tensor *x, burn_tensor *y, int64_t axis,
                                        int64_t start, int64_t step);
BURN_API burn_tensor *burn_unfold(burn_tensor *x, int64_t axis, int64_t size, int64_t step);
BURN_API burn_tensor *burn_cat(burn_tensor *const *xs, uint32_t n, int64_t axis);
BURN_API burn_tensor *burn_stack(burn_tensor *const *xs, uint32_t n, int64_t axis);
/* before[rank], after[rank] elements of `value` around x. */
BURN_API burn_tensor *burn_pad(burn_tensor *x, const int64_t *before, const int64_t *after,
                               burn_tensor *value);
/* Indices are i64 or i32 and in range; negative ones fail. */
BURN_API burn_tensor *burn_gather(burn_tensor *x, burn_tensor *index, int64_t axis);
BURN_API burn_tensor *burn_scatter(burn_tensor *x, burn_tensor *index, burn_tensor *values,
                                   int64_t axis, uint32_t mode);
BURN_API burn_tensor *burn_select(burn_tensor *x, burn_tensor *index, int64_t axis);
BURN_API burn_tensor *burn_one_hot(burn_tensor *index, int64_t classes, uint8_t dtype);
BURN_API burn_tensor *burn_embedding(burn_tensor *table, burn_tensor *index);

/* ---- products, convolutions, pools --------------------------------------------------------- */

/* [..., m, k] x [..., k, n]; leading dims broadcast. */
BURN_API burn_tensor *burn_matmul(burn_tensor *x, burn_tensor *y);
/* x [..., k] times w [k, n] plus bias [n] (NULL: none). */
BURN_API burn_tensor *burn_linear(burn_tensor *x, burn_tensor *w, burn_tensor *bias);

/*
 * Zeroed fields mean: stride 1, padding 0, dilation 1, groups 1. output_padding is for
 * conv_transpose2d; conv2d and conv1d refuse another than 0 (E_INVALID).
 */
typedef struct burn_conv_opts {
    uint32_t struct_size;
    uint32_t zero;
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    int64_t groups;
    int64_t output_padding[2];
} burn_conv_opts;
/* x [n, c, h, w], w [o, c/groups, kh, kw], bias [o] or NULL; opts NULL = defaults. */
BURN_API burn_tensor *burn_conv2d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                                  const burn_conv_opts *opts);
BURN_API burn_tensor *burn_conv1d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                                  const burn_conv_opts *opts);
/* w [c, o/groups, kh, kw]. */
BURN_API burn_tensor *burn_conv_transpose2d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                                            const burn_conv_opts *opts);

/* Zeroed fields mean: stride = kernel, padding 0, dilation 1. */
typedef struct burn_pool_opts {
    uint32_t struct_size;
    uint32_t ceil_mode;
    int64_t kernel[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    uint32_t exclude_pad; /* average: divide by the elements inside only */
    uint32_t zero;
} burn_pool_opts;
/* `out_index` (may be NULL) gets the i64 positions in each plane. */
BURN_API burn_tensor *burn_max_pool2d(burn_tensor *x, const burn_pool_opts *opts,
                                      burn_tensor **out_index);
BURN_API burn_tensor *burn_avg_pool2d(burn_tensor *x, const burn_pool_opts *opts);
BURN_API burn_tensor *burn_adaptive_avg_pool2d(burn_tensor *x, int64_t height, int64_t width);
BURN_API burn_tensor *burn_adaptive_max_pool2d(burn_tensor *x, int64_t height, int64_t width);

/* ---- normalising, attention, losses --------------------------------------------------------- */

BURN_API burn_tensor *burn_softmax(burn_tensor *x, int64_t axis);
BURN_API burn_tensor *burn_log_softmax(burn_tensor *x, int64_t axis);
/* Over the last n_axes axes; gamma and beta may be NULL. */
BURN_API burn_tensor *burn_layer_norm(burn_tensor *x, burn_tensor *gamma, burn_tensor *beta,
                                      uint32_t n_axes, double eps);
/* Training: statistics of the batch, which also go to out_mean and out_var (biased; may be NULL).
 * Otherwise: with mean and var given. */
BURN_API burn_tensor *burn_batch_norm(burn_tensor *x, burn_tensor *gamma, burn_tensor *beta,
                                      burn_tensor *mean, burn_tensor *var, int32_t training,
                                      double eps, burn_tensor **out_mean, burn_tensor **out_var);
/* q [b, h, s, d], k [b, h, t, d], v [b, h, t, e]; mask bool (true: attend) or float bias, or NULL;
 * scale 0 = 1/sqrt(d). */
BURN_API burn_tensor *burn_attention(burn_tensor *q, burn_tensor *k, burn_tensor *v,
                                     burn_tensor *mask, int32_t causal, double scale);
/* Zeroes each element with probability p and scales the rest by 1/(1-p). */
BURN_API burn_tensor *burn_dropout(burn_tensor *x, double p);

typedef struct burn_loss_opts {
    uint32_t struct_size;
    uint32_t reduction; /* BURN_REDUCTION_* */
    uint32_t has_ignore_index;
    uint32_t zero;
    int64_t ignore_index;
    double label_smoothing;
} burn_loss_opts;
/* logits [n, c, ...]; target: classes i64/i32 [n, ...] or probabilities; weight [c] or NULL. */
BURN_API burn_tensor *burn_cross_entropy(burn_tensor *logits, burn_tensor *target,
                                         burn_tensor *weight, const burn_loss_opts *opts);
BURN_API burn_tensor *burn_mse_loss(burn_tensor *x, burn_tensor *y, uint32_t reduction);

BURN_END_DECLS

#ifdef BURN_TRACE_CALLS
#include <burn/trace_calls.h>
#endif

#endif /* BURN_OPS_H */
