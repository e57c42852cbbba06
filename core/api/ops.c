/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops.c - the ops as functions: each fills its attributes and calls. No rule of an op stands here;
 * only negative axes are wrapped, and shapes with -1 filled in. To add one: declare it in
 * <burn/ops.h>, fill the attribute struct, end in burni_call.
 */
#include "api/call.h"

#include "base/error.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <string.h>

/* ---- calling --------------------------------------------------------------------------------- */

burn_tensor *burni_call_n(burn_device *device, uint64_t op, const void *attrs,
                          burn_tensor *const *in, uint32_t n_in, burn_tensor **out, uint32_t n_out)
{
    burni_thread *thread = burni_thread_get();
    if (thread == NULL) {
        out[0] = burni_handle_failed(NULL, &burni_cause_no_memory);
        for (uint32_t j = 1; j < n_out; j++) {
            out[j] = out[0];
        }
        return out[0];
    }
    uint32_t size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    (void)burni_emit(thread, device, burni_op_find(op), attrs, size, in, n_in, out, n_out);
    return out[0];
}

/* Apart, since all functions of ops would contain it. */
__attribute__((noinline)) burn_tensor *burni_call(burn_device *device, uint64_t op,
                                                  const void *attrs, burn_tensor *const *in,
                                                  uint32_t n_in)
{
    burni_thread *thread = burni_thread_current;
    const burni_op *found = burni_op_find_quick(op);
    burn_tensor *out = NULL;
    if (found->simple && thread != NULL && thread->capture == NULL &&
        burni_emit_fast(thread, found, in, n_in, &out)) {
        return out;
    }
    return burni_call_n(device, op, attrs, in, n_in, &out, 1);
}

burn_tensor *burni_call_fail(uint64_t op, int32_t code, const char *format, ...)
{
    burn_err err = BURN_ERR_INIT;
    va_list args;
    va_start(args, format);
    (void)burni_vfail(&err, code, format, args);
    va_end(args);
    return burni_handle_fail(burni_thread_get(), code, op, "%s", err.text);
}

burn_tensor *burni_call_bad_dims(uint64_t op, uint32_t rank, const char *what)
{
    const char *name = burni_op_find(op)->def.name;
    if (rank <= BURN_MAX_RANK) {
        return burni_call_fail(op, BURN_E_INVALID, "%s: %s is NULL, %u numbers are needed", name,
                               what, rank);
    }
    return burni_call_fail(op, BURN_E_SHAPE, "%s: %u numbers in %s, rank is 0 to %d", name, rank,
                           what, BURN_MAX_RANK);
}

burn_tensor *burni_call_bad_axes(uint64_t op, uint32_t n_axes)
{
    const char *name = burni_op_find(op)->def.name;
    if (n_axes > BURN_MAX_RANK) {
        return burni_call_fail(op, BURN_E_INVALID, "%s: %u axes given, at most %d", name, n_axes,
                               BURN_MAX_RANK);
    }
    return burni_call_fail(op, BURN_E_INVALID, "%s: axes is NULL, %u numbers are needed", name,
                           n_axes);
}

int64_t burni_wrap_axis(const burn_tensor *x, int64_t axis)
{
    int inside = x != NULL && axis < 0 && axis >= -(int64_t)x->rank;
    return inside ? axis + x->rank : axis;
}

void burni_wrap_axes(const burn_tensor *x, uint32_t n, const int64_t *axes, int64_t *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = burni_wrap_axis(x, axes[i]);
        uint32_t at = i;
        while (at > 0 && out[at - 1] > axis) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = axis;
    }
}

/* ---- elementwise ----------------------------------------------------------------------------- */

#define DEFINE_UNARY(id, NAME, name)                                                               \
    burn_tensor *burn_##name(burn_tensor *x)                                                       \
    {                                                                                              \
        return burni_call(NULL, id, NULL, &x, 1);                                                  \
    }
BURN_FOREACH_UNARY_OP(DEFINE_UNARY)
#undef DEFINE_UNARY

#define DEFINE_BINARY(id, NAME, name)                                                              \
    burn_tensor *burn_##name(burn_tensor *x, burn_tensor *y)                                       \
    {                                                                                              \
        burn_tensor *const in[2] = {x, y};                                                         \
        return burni_call(NULL, id, NULL, in, 2);                                                  \
    }
BURN_FOREACH_BINARY_OP(DEFINE_BINARY)
#undef DEFINE_BINARY

burn_tensor *burn_gelu(burn_tensor *x, int32_t tanh_form)
{
    burn_attrs_gelu a;
    burn_attrs_init(&a, sizeof(a));
    a.tanh_form = tanh_form != 0;
    return burni_call(NULL, BURN_OP_GELU, &a, &x, 1);
}

burn_tensor *burn_where(burn_tensor *cond, burn_tensor *x, burn_tensor *y)
{
    burn_tensor *const in[3] = {cond, x, y};
    return burni_call(NULL, BURN_OP_WHERE, NULL, in, 3);
}

burn_tensor *burn_clamp(burn_tensor *x, burn_tensor *lo, burn_tensor *hi)
{
    burn_tensor *const in[3] = {x, lo, hi};
    return burni_call(NULL, BURN_OP_CLAMP, NULL, in, 3);
}

burn_tensor *burn_cast(burn_tensor *x, uint8_t dtype)
{
    burn_attrs_cast a;
    burn_attrs_init(&a, sizeof(a));
    a.dtype = dtype;
    return burni_call(NULL, BURN_OP_CAST, &a, &x, 1);
}

burn_tensor *burn_copy(burn_tensor *x)
{
    return burni_call(NULL, BURN_OP_COPY, NULL, &x, 1);
}

/* ---- reducing -------------------------------------------------------------------------------- */

static burn_tensor *reduce(uint64_t op, burn_tensor *x, uint32_t n_axes, const int64_t *axes,
                           int32_t keepdims, int64_t correction)
{
    burn_attrs_axes a;
    burn_attrs_init(&a, sizeof(a));
    if (n_axes > BURN_MAX_RANK || (n_axes > 0 && axes == NULL)) {
        return burni_call_bad_axes(op, n_axes);
    }
    a.n_axes = n_axes;
    a.keepdims = keepdims != 0;
    a.correction = correction;
    burni_wrap_axes(x, n_axes, axes, a.axes);
    return burni_call(NULL, op, &a, &x, 1);
}

burn_tensor *burn_sum(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_SUM, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_prod(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_PROD, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_max(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_MAX, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_min(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_MIN, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_mean(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_MEAN, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_any(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_ANY, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_all(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_ALL, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_logsumexp(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims)
{
    return reduce(BURN_OP_LOGSUMEXP, x, n_axes, axes, keepdims, 0);
}

burn_tensor *burn_var_of(burn_tensor *x, uint32_t n_axes, const int64_t *axes, int32_t keepdims,
                         int64_t correction)
{
    return reduce(BURN_OP_VAR, x, n_axes, axes, keepdims, correction);
}

static burn_tensor *along(uint64_t op, burn_tensor *x, int64_t axis, int32_t keepdims)
{
    burn_attrs_axis a;
    burn_attrs_init(&a, sizeof(a));
    a.axis = burni_wrap_axis(x, axis);
    a.keepdims = keepdims != 0;
    return burni_call(NULL, op, &a, &x, 1);
}

burn_tensor *burn_argmax(burn_tensor *x, int64_t axis, int32_t keepdims)
{
    return along(BURN_OP_ARGMAX, x, axis, keepdims);
}

burn_tensor *burn_argmin(burn_tensor *x, int64_t axis, int32_t keepdims)
{
    return along(BURN_OP_ARGMIN, x, axis, keepdims);
}

burn_tensor *burn_cumsum(burn_tensor *x, int64_t axis)
{
    return along(BURN_OP_CUMSUM, x, axis, 0);
}

burn_tensor *burn_softmax(burn_tensor *x, int64_t axis)
{
    return along(BURN_OP_SOFTMAX, x, axis, 0);
}

burn_tensor *burn_log_softmax(burn_tensor *x, int64_t axis)
{
    return along(BURN_OP_LOG_SOFTMAX, x, axis, 0);
}

/* ---- products, convolutions, pools ----------------------------------------------------------- */

burn_tensor *burn_matmul(burn_tensor *x, burn_tensor *y)
{
    burn_tensor *const in[2] = {x, y};
    return burni_call(NULL, BURN_OP_MATMUL, NULL, in, 2);
}

burn_tensor *burn_linear(burn_tensor *x, burn_tensor *w, burn_tensor *bias)
{
    burn_tensor *const in[3] = {x, w, bias};
    return burni_call(NULL, BURN_OP_LINEAR, NULL, in, 3);
}

static int64_t or_default(int64_t value, int64_t dflt)
{
    return value != 0 ? value : dflt;
}

static burn_tensor *convolve(uint64_t op, burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                             const burn_conv_opts *opts)
{
    static const burn_conv_opts none = {.struct_size = sizeof(none)};
    const burn_conv_opts *o = opts != NULL ? opts : &none;
    burn_attrs_conv a;
    burn_attrs_init(&a, sizeof(a));
    if (o->struct_size < sizeof(*o)) {
        return burni_call_fail(op, BURN_E_INVALID,
                               "%s: opts.struct_size is %u; set it to sizeof(burn_conv_opts)",
                               burni_op_find(op)->def.name, o->struct_size);
    }
    for (int d = 0; d < 2; d++) {
        a.stride[d] = or_default(o->stride[d], 1);
        a.padding[d] = o->padding[d];
        a.dilation[d] = or_default(o->dilation[d], 1);
        a.output_padding[d] = o->output_padding[d];
    }
    a.groups = or_default(o->groups, 1);
    burn_tensor *const in[3] = {x, w, bias};
    return burni_call(NULL, op, &a, in, 3);
}

burn_tensor *burn_conv2d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                         const burn_conv_opts *opts)
{
    return convolve(BURN_OP_CONV2D, x, w, bias, opts);
}

burn_tensor *burn_conv1d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                         const burn_conv_opts *opts)
{
    return convolve(BURN_OP_CONV1D, x, w, bias, opts);
}

burn_tensor *burn_conv_transpose2d(burn_tensor *x, burn_tensor *w, burn_tensor *bias,
                                   const burn_conv_opts *opts)
{
    return convolve(BURN_OP_CONV_TRANSPOSE2D, x, w, bias, opts);
}

/* NULL, or what the call returns when options are not there or of an unknown size. */
static burn_tensor *fill_pool(burn_attrs_pool *a, uint64_t op, const burn_pool_opts *o)
{
    const char *name = burni_op_find(op)->def.name;
    burn_attrs_init(a, sizeof(*a));
    if (o == NULL) {
        return burni_call_fail(op, BURN_E_INVALID,
                               "%s: opts is NULL; it says at least the kernel's size", name);
    }
    if (o->struct_size < sizeof(*o)) {
        return burni_call_fail(op, BURN_E_INVALID,
                               "%s: opts.struct_size is %u; set it to sizeof(burn_pool_opts)",
                               name, o->struct_size);
    }
    for (int d = 0; d < 2; d++) {
        a->kernel[d] = o->kernel[d];
        a->stride[d] = or_default(o->stride[d], o->kernel[d]);
        a->padding[d] = o->padding[d];
        a->dilation[d] = or_default(o->dilation[d], 1);
    }
    a->ceil_mode = o->ceil_mode != 0;
    a->count_include_pad = o->exclude_pad == 0;
    return NULL;
}

burn_tensor *burn_max_pool2d(burn_tensor *x, const burn_pool_opts *opts, burn_tensor **out_index)
{
    burn_attrs_pool a;
    burn_tensor *out[2];
    out[0] = fill_pool(&a, BURN_OP_MAX_POOL2D, opts);
    out[1] = out[0];
    if (out[0] == NULL) {
        a.count_include_pad = 0;
        (void)burni_call_n(NULL, BURN_OP_MAX_POOL2D, &a, &x, 1, out, 2);
    }
    if (out_index != NULL) {
        *out_index = out[1];
    }
    return out[0];
}

burn_tensor *burn_avg_pool2d(burn_tensor *x, const burn_pool_opts *opts)
{
    burn_attrs_pool a;
    burn_tensor *failed = fill_pool(&a, BURN_OP_AVG_POOL2D, opts);
    return failed != NULL ? failed : burni_call(NULL, BURN_OP_AVG_POOL2D, &a, &x, 1);
}

static burn_tensor *adaptive(uint64_t op, burn_tensor *x, int64_t height, int64_t width)
{
    burn_attrs_adaptive a;
    burn_attrs_init(&a, sizeof(a));
    a.size[0] = height;
    a.size[1] = width;
    return burni_call(NULL, op, &a, &x, 1);
}

burn_tensor *burn_adaptive_avg_pool2d(burn_tensor *x, int64_t height, int64_t width)
{
    return adaptive(BURN_OP_ADAPTIVE_AVG_POOL2D, x, height, width);
}

burn_tensor *burn_adaptive_max_pool2d(burn_tensor *x, int64_t height, int64_t width)
{
    return adaptive(BURN_OP_ADAPTIVE_MAX_POOL2D, x, height, width);
}

/* ---- normalising, attention, losses ---------------------------------------------------------- */

/* NaN is caught as well. */
static burn_tensor *bad_eps(uint64_t op, double eps)
{
    return burni_call_fail(op, BURN_E_INVALID, "%s: eps is %g, use 0 or more (1e-5 is common)",
                           burni_op_find(op)->def.name, eps);
}

burn_tensor *burn_layer_norm(burn_tensor *x, burn_tensor *gamma, burn_tensor *beta, uint32_t n_axes,
                             double eps)
{
    burn_attrs_norm a;
    burn_attrs_init(&a, sizeof(a));
    if (!(eps >= 0.0)) {
        return bad_eps(BURN_OP_LAYER_NORM, eps);
    }
    a.eps = eps;
    a.n_axes = n_axes;
    burn_tensor *const in[3] = {x, gamma, beta};
    return burni_call(NULL, BURN_OP_LAYER_NORM, &a, in, 3);
}

burn_tensor *burn_batch_norm(burn_tensor *x, burn_tensor *gamma, burn_tensor *beta,
                             burn_tensor *mean, burn_tensor *var, int32_t training, double eps,
                             burn_tensor **out_mean, burn_tensor **out_var)
{
    burn_attrs_norm a;
    burn_attrs_init(&a, sizeof(a));
    a.eps = eps;
    a.training = training != 0;
    burn_tensor *const in[5] = {x, gamma, beta, mean, var};
    burn_tensor *out[3] = {NULL, NULL, NULL};
    if (eps >= 0.0) {
        (void)burni_call_n(NULL, BURN_OP_BATCH_NORM, &a, in, 5, out, 3);
    } else {
        out[0] = bad_eps(BURN_OP_BATCH_NORM, eps);
        out[1] = out[0];
        out[2] = out[0];
    }
    if (out_mean != NULL) {
        *out_mean = out[1];
    }
    if (out_var != NULL) {
        *out_var = out[2];
    }
    return out[0];
}

burn_tensor *burn_attention(burn_tensor *q, burn_tensor *k, burn_tensor *v, burn_tensor *mask,
                            int32_t causal, double scale)
{
    burn_attrs_attention a;
    burn_attrs_init(&a, sizeof(a));
    a.causal = causal != 0;
    a.scale = scale;
    burn_tensor *const in[4] = {q, k, v, mask};
    return burni_call(NULL, BURN_OP_ATTENTION, &a, in, 4);
}

burn_tensor *burn_cross_entropy(burn_tensor *logits, burn_tensor *target, burn_tensor *weight,
                                const burn_loss_opts *opts)
{
    burn_attrs_loss a;
    burn_attrs_init(&a, sizeof(a));
    a.ignore_index = INT64_MIN;
    if (opts != NULL) {
        if (opts->struct_size < sizeof(*opts)) {
            return burni_call_fail(BURN_OP_CROSS_ENTROPY, BURN_E_INVALID,
                                   "cross_entropy: opts.struct_size is %u; set it to "
                                   "sizeof(burn_loss_opts)",
                                   opts->struct_size);
        }
        a.reduction = opts->reduction;
        a.label_smoothing = opts->label_smoothing;
        a.ignore_index = opts->has_ignore_index ? opts->ignore_index : INT64_MIN;
    }
    burn_tensor *const in[3] = {logits, target, weight};
    return burni_call(NULL, BURN_OP_CROSS_ENTROPY, &a, in, 3);
}

burn_tensor *burn_mse_loss(burn_tensor *x, burn_tensor *y, uint32_t reduction)
{
    burn_attrs_loss a;
    burn_attrs_init(&a, sizeof(a));
    a.reduction = reduction;
    a.ignore_index = INT64_MIN;
    burn_tensor *const in[2] = {x, y};
    return burni_call(NULL, BURN_OP_MSE_LOSS, &a, in, 2);
}
