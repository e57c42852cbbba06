/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_attrs.h - attribute structs of the core ops: what selects code, never what may differ between
 * two runs of one program (those are operands).
 *
 * Each starts with burn_attrs_head {size, revision}, holds plain fields, has no hidden padding, and
 * only grows. Axes are normalised (0 <= axis < rank) by the public functions; `infer` of each op
 * checks them again, since windows and extensions make attributes too.
 */
#ifndef BURN_OP_ATTRS_H
#define BURN_OP_ATTRS_H

#include <burn/base.h>
#include <burn/op_def.h>

BURN_BEGIN_DECLS

/* softmax, log_softmax (and their gradients), cumsum, argmax/argmin via keepdims, cat, gather,
 * select */
typedef struct burn_attrs_axis {
    burn_attrs_head head;
    int64_t axis;
    uint32_t keepdims; /* argmax, argmin; 0 elsewhere */
    uint32_t zero;
} burn_attrs_axis;

/* sum, prod, max, min, mean, any, all, var, logsumexp, flip: sorted distinct axes */
typedef struct burn_attrs_axes {
    burn_attrs_head head;
    uint32_t n_axes; /* 0 means all axes for reductions */
    uint32_t keepdims;
    int64_t axes[BURN_MAX_RANK];
    int64_t correction; /* var */
} burn_attrs_axes;

/* reshape, expand: the output's dims */
typedef struct burn_attrs_shape {
    burn_attrs_head head;
    uint32_t n_dims;
    uint32_t dtype; /* fill, random_*, bernoulli, arange: of the output; 0 elsewhere */
    int64_t dims[BURN_MAX_RANK];
} burn_attrs_shape;

/* permute: output axis i is input axis perm[i] */
typedef struct burn_attrs_permute {
    burn_attrs_head head;
    uint32_t n_axes;
    uint32_t zero;
    int64_t perm[BURN_MAX_RANK];
} burn_attrs_permute;

/* slice (input 1: the start), slice_assign (input 2: the start): elements start + k * step */
typedef struct burn_attrs_slice {
    burn_attrs_head head;
    int64_t axis;
    int64_t size; /* DIM: number of elements */
    int64_t step; /* not 0 */
} burn_attrs_slice;

/* unfold: windows of `size` elements, `dilation` apart, starting every `step`, as a last axis */
typedef struct burn_attrs_unfold {
    burn_attrs_head head;
    int64_t axis;
    int64_t size;
    int64_t step;
    int64_t dilation;
} burn_attrs_unfold;

/* cast */
typedef struct burn_attrs_cast {
    burn_attrs_head head;
    uint32_t dtype;
    uint32_t zero;
} burn_attrs_cast;

/* pad: the fill value is operand 1 */
typedef struct burn_attrs_pad {
    burn_attrs_head head;
    uint32_t n_dims;
    uint32_t zero;
    int64_t before[BURN_MAX_RANK];
    int64_t after[BURN_MAX_RANK];
} burn_attrs_pad;

enum { BURN_SCATTER_ASSIGN = 0, BURN_SCATTER_ADD = 1, BURN_SCATTER_MUL = 2, BURN_SCATTER_MIN = 3,
       BURN_SCATTER_MAX = 4 };

typedef struct burn_attrs_scatter {
    burn_attrs_head head;
    int64_t axis;
    uint32_t mode;
    uint32_t zero;
} burn_attrs_scatter;

typedef struct burn_attrs_one_hot {
    burn_attrs_head head;
    int64_t classes; /* DIM */
    uint32_t dtype;
    uint32_t zero;
} burn_attrs_one_hot;

/* conv1d uses index 0 only; conv_transpose2d adds output_padding; *_grad_* say the wanted size */
typedef struct burn_attrs_conv {
    burn_attrs_head head;
    int64_t stride[2];
    int64_t padding[2]; /* on both sides */
    int64_t dilation[2];
    int64_t groups;
    int64_t output_padding[2];
    int64_t size[2]; /* DIM; height and width; grad_input: of the input, grad_weight: the kernel */
} burn_attrs_conv;

typedef struct burn_attrs_pool {
    burn_attrs_head head;
    int64_t kernel[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    uint32_t ceil_mode;
    uint32_t count_include_pad; /* average only */
    int64_t size[2];            /* DIM; max_pool2d_grad: height and width of the input */
} burn_attrs_pool;

/* adaptive pools: output height and width */
typedef struct burn_attrs_adaptive {
    burn_attrs_head head;
    int64_t size[2]; /* DIM */
} burn_attrs_adaptive;

/* layer_norm: over the last n_axes axes; batch_norm: n_axes 0, channel axis 1 */
typedef struct burn_attrs_norm {
    burn_attrs_head head;
    double eps;
    uint32_t n_axes;
    uint32_t training; /* batch_norm: 1 = statistics of the batch, 0 = of operands 3 and 4 */
} burn_attrs_norm;

typedef struct burn_attrs_gelu {
    burn_attrs_head head;
    uint32_t tanh_form;
    uint32_t zero;
} burn_attrs_gelu;

typedef struct burn_attrs_attention {
    burn_attrs_head head;
    double scale; /* 0: 1 / sqrt(head size) */
    uint32_t causal;
    uint32_t zero;
} burn_attrs_attention;

enum { BURN_REDUCTION_MEAN = 0, BURN_REDUCTION_SUM = 1, BURN_REDUCTION_NONE = 2 };

typedef struct burn_attrs_loss {
    burn_attrs_head head;
    uint32_t reduction;
    uint32_t zero;
    int64_t ignore_index;   /* cross_entropy; INT64_MIN: none */
    double label_smoothing; /* cross_entropy */
} burn_attrs_loss;

typedef struct burn_attrs_sgd {
    burn_attrs_head head;
    double momentum;
    double dampening;
    double weight_decay;
    uint32_t nesterov;
    uint32_t first; /* 1: the velocity starts as the gradient, without dampening */
} burn_attrs_sgd;

typedef struct burn_attrs_adam {
    burn_attrs_head head;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
    uint32_t decoupled; /* 1: AdamW */
    uint32_t zero;
} burn_attrs_adam;

BURN_END_DECLS

#endif /* BURN_OP_ATTRS_H */
