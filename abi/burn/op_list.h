/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_list.h - ids and names of the core ops. Append only: an id is never reused or renamed.
 *
 * To add an op: one row here, one definition `burn_op_def_<name>` in core/ops/. A row without a
 * definition does not link. Ids below 2^32 belong to this list; an extension's op has the 64-bit
 * hash of its name (`burn_op_id_from_name`), which always has its top bit set.
 */
#ifndef BURN_OP_LIST_H
#define BURN_OP_LIST_H

#include <burn/base.h>

BURN_BEGIN_DECLS

/* X(id, NAME, name) */
#define BURN_FOREACH_UNARY_OP(X)                                                                   \
    X(1, NEG, neg)                                                                                 \
    X(2, ABS, abs)                                                                                 \
    X(3, SIGN, sign)                                                                               \
    X(4, EXP, exp)                                                                                 \
    X(5, EXPM1, expm1)                                                                             \
    X(6, LOG, log)                                                                                 \
    X(7, LOG1P, log1p)                                                                             \
    X(8, SQRT, sqrt)                                                                               \
    X(9, RSQRT, rsqrt)                                                                             \
    X(10, RECIP, recip)                                                                            \
    X(11, SIN, sin)                                                                                \
    X(12, COS, cos)                                                                                \
    X(13, TAN, tan)                                                                                \
    X(14, ASIN, asin)                                                                              \
    X(15, ACOS, acos)                                                                              \
    X(16, ATAN, atan)                                                                              \
    X(17, SINH, sinh)                                                                              \
    X(18, COSH, cosh)                                                                              \
    X(19, TANH, tanh)                                                                              \
    X(20, ERF, erf)                                                                                \
    X(21, SIGMOID, sigmoid)                                                                        \
    X(22, FLOOR, floor)                                                                            \
    X(23, CEIL, ceil)                                                                              \
    X(24, ROUND, round)                                                                            \
    X(25, TRUNC, trunc)                                                                            \
    X(26, RELU, relu)                                                                              \
    X(27, LOGICAL_NOT, logical_not)                                                                \
    X(28, BIT_NOT, bit_not)                                                                        \
    X(29, IS_NAN, is_nan)                                                                          \
    X(30, IS_INF, is_inf)                                                                          \
    X(31, IS_FINITE, is_finite)                                                                    \
    X(32, SILU, silu)                                                                              \
    X(33, SOFTPLUS, softplus)                                                                      \
    X(35, LOG_SIGMOID, log_sigmoid)

#define BURN_FOREACH_BINARY_OP(X)                                                                  \
    X(40, ADD, add)                                                                                \
    X(41, SUB, sub)                                                                                \
    X(42, MUL, mul)                                                                                \
    X(43, DIV, div)                                                                                \
    X(44, REMAINDER, remainder)                                                                    \
    X(45, FMOD, fmod)                                                                              \
    X(46, POW, pow)                                                                                \
    X(47, MAXIMUM, maximum)                                                                        \
    X(48, MINIMUM, minimum)                                                                        \
    X(49, ATAN2, atan2)                                                                            \
    X(50, BIT_AND, bit_and)                                                                        \
    X(51, BIT_OR, bit_or)                                                                          \
    X(52, BIT_XOR, bit_xor)                                                                        \
    X(53, SHIFT_LEFT, shift_left)                                                                  \
    X(54, SHIFT_RIGHT, shift_right)                                                                \
    X(55, LOGICAL_AND, logical_and)                                                                \
    X(56, LOGICAL_OR, logical_or)                                                                  \
    X(57, LOGICAL_XOR, logical_xor)                                                                \
    X(60, EQUAL, equal)                                                                            \
    X(61, NOT_EQUAL, not_equal)                                                                    \
    X(62, LESS, less)                                                                              \
    X(63, LESS_EQUAL, less_equal)                                                                  \
    X(64, GREATER, greater)                                                                        \
    X(65, GREATER_EQUAL, greater_equal)

#define BURN_FOREACH_OTHER_OP(X)                                                                   \
    X(34, GELU, gelu)                                                                              \
    X(66, WHERE, where)                                                                            \
    X(67, CAST, cast)                                                                              \
    X(68, CLAMP, clamp)                                                                            \
    X(69, COPY, copy)                                                                              \
    X(80, FILL, fill)                                                                              \
    X(81, ARANGE, arange)                                                                          \
    X(82, RANDOM_BITS, random_bits)                                                                \
    X(83, RANDOM_UNIFORM, random_uniform)                                                          \
    X(84, RANDOM_NORMAL, random_normal)                                                            \
    X(85, BERNOULLI, bernoulli)                                                                    \
    X(90, SUM, sum)                                                                                \
    X(91, PROD, prod)                                                                              \
    X(92, MAX, max)                                                                                \
    X(93, MIN, min)                                                                                \
    X(94, MEAN, mean)                                                                              \
    X(95, ANY, any)                                                                                \
    X(96, ALL, all)                                                                                \
    X(97, ARGMAX, argmax)                                                                          \
    X(98, ARGMIN, argmin)                                                                          \
    X(99, VAR, var)                                                                                \
    X(100, LOGSUMEXP, logsumexp)                                                                   \
    X(101, CUMSUM, cumsum)                                                                         \
    X(110, RESHAPE, reshape)                                                                       \
    X(111, PERMUTE, permute)                                                                       \
    X(112, SLICE, slice)                                                                           \
    X(113, EXPAND, expand)                                                                         \
    X(114, FLIP, flip)                                                                             \
    X(115, UNFOLD, unfold)                                                                         \
    X(120, CAT, cat)                                                                               \
    X(121, PAD, pad)                                                                               \
    X(122, SLICE_ASSIGN, slice_assign)                                                             \
    X(123, GATHER, gather)                                                                         \
    X(124, SCATTER, scatter)                                                                       \
    X(125, SELECT, select)                                                                         \
    X(126, ONE_HOT, one_hot)                                                                       \
    X(130, MATMUL, matmul)                                                                         \
    X(131, LINEAR, linear)                                                                         \
    X(140, CONV2D, conv2d)                                                                         \
    X(141, CONV2D_GRAD_INPUT, conv2d_grad_input)                                                   \
    X(142, CONV2D_GRAD_WEIGHT, conv2d_grad_weight)                                                 \
    X(143, CONV1D, conv1d)                                                                         \
    X(144, CONV_TRANSPOSE2D, conv_transpose2d)                                                     \
    X(150, MAX_POOL2D, max_pool2d)                                                                 \
    X(151, AVG_POOL2D, avg_pool2d)                                                                 \
    X(152, ADAPTIVE_AVG_POOL2D, adaptive_avg_pool2d)                                               \
    X(153, ADAPTIVE_MAX_POOL2D, adaptive_max_pool2d)                                               \
    X(154, MAX_POOL2D_GRAD, max_pool2d_grad)                                                       \
    X(160, SOFTMAX, softmax)                                                                       \
    X(161, LOG_SOFTMAX, log_softmax)                                                               \
    X(162, LAYER_NORM, layer_norm)                                                                 \
    X(163, BATCH_NORM, batch_norm)                                                                 \
    X(164, SOFTMAX_GRAD, softmax_grad)                                                             \
    X(165, LOG_SOFTMAX_GRAD, log_softmax_grad)                                                     \
    X(166, LAYER_NORM_GRAD, layer_norm_grad)                                                       \
    X(167, BATCH_NORM_GRAD, batch_norm_grad)                                                       \
    X(168, GELU_GRAD, gelu_grad)                                                                   \
    X(169, RELU_GRAD, relu_grad)                                                                   \
    X(170, ATTENTION, attention)                                                                   \
    X(171, ATTENTION_GRAD, attention_grad)                                                         \
    X(172, EMBEDDING, embedding)                                                                   \
    X(173, DROPOUT, dropout)                                                                       \
    X(180, CROSS_ENTROPY, cross_entropy)                                                           \
    X(181, CROSS_ENTROPY_GRAD, cross_entropy_grad)                                                 \
    X(182, MSE_LOSS, mse_loss)                                                                     \
    X(190, ASSIGN, assign)                                                                         \
    X(191, SGD_STEP, sgd_step)                                                                     \
    X(192, ADAM_STEP, adam_step)                                                                   \
    X(200, FUSED, fused)

#define BURN_FOREACH_OP(X)                                                                         \
    BURN_FOREACH_UNARY_OP(X)                                                                       \
    BURN_FOREACH_BINARY_OP(X)                                                                      \
    BURN_FOREACH_OTHER_OP(X)

enum {
    BURN_OP_NONE = 0,
#define BURN_OP_ROW(id, NAME, name) BURN_OP_##NAME = (id),
    BURN_FOREACH_OP(BURN_OP_ROW)
#undef BURN_OP_ROW
};

/* The id of an extension's op: 64-bit FNV-1a of its name, top bit set. */
static inline uint64_t burn_op_id_from_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *p = name; *p != '\0'; p++) {
        hash = (hash ^ (uint64_t)(unsigned char)*p) * UINT64_C(1099511628211);
    }
    return hash | (UINT64_C(1) << 63);
}

BURN_END_DECLS

#endif /* BURN_OP_LIST_H */
