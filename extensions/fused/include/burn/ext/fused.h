/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.h - the ops of the extension "fused", as functions. Header-only; an application links
 * libburn-core and calls burn_extension_load("fused", &err) once, before or after it opens devices.
 *
 * Each function makes one call, which is recorded on the tape like any other, and returns a tensor
 * of the innermost scope, a failed one on failure. On a backend that the extension has no kernels
 * for they run as the ops that they are made of. To add one: a row in the list, a function here and
 * its line at the end, the definition in extensions/fused. Thread class as for all ops: any, one
 * thread per tensor scope.
 */
#ifndef BURN_EXT_FUSED_H
#define BURN_EXT_FUSED_H

#include <burn/build.h>
#include <burn/grad.h>
#include <burn/op_attrs.h>
#include <burn/registry.h>
#include <burn/tensor.h>

BURN_BEGIN_DECLS

/* X(id, NAME, name); the op is "fused.<name>", its id burn_op_id_from_name of that. */
#define BURN_FOREACH_FUSED_OP(X)                                                                   \
    X(0xdae5553010bb0995, MATMUL_BIAS_RELU, matmul_bias_relu)                                      \
    X(0x891b0cc394303448, MATMUL_BIAS_GELU, matmul_bias_gelu)                                      \
    X(0x8dc6438fe250eeba, ADD_LAYER_NORM, add_layer_norm)                                          \
    X(0x82d94a27f4da126f, SWIGLU, swiglu)                                                          \
    X(0xba1ddaf378b0de27, LION_STEP, lion_step)

/* The id of each op: burn_fused_id_swiglu(). */
#define BURN_FUSED_ID_ROW(id, NAME, name)                                                          \
    static inline uint64_t burn_fused_id_##name(void)                                              \
    {                                                                                              \
        return UINT64_C(id);                                                                       \
    }
BURN_FOREACH_FUSED_OP(BURN_FUSED_ID_ROW)
#undef BURN_FUSED_ID_ROW

typedef struct burn_fused_attrs_norm {
    burn_attrs_head head;
    double eps;
    uint32_t n_axes;
    uint32_t zero;
} burn_fused_attrs_norm;

typedef struct burn_fused_attrs_lion {
    burn_attrs_head head;
    double beta1;
    double beta2;
    double weight_decay;
} burn_fused_attrs_lion;

/* Calls an op with one output. */
static inline burn_tensor *burn_fused_call(uint64_t op, const void *attrs, uint32_t attrs_size,
                                           burn_tensor *const *in, uint32_t n_in)
{
    burn_tensor *out = NULL;
    (void)burn_op_call(NULL, op, attrs, attrs_size, in, n_in, &out, 1);
    return out;
}

/* relu(x w + bias). x [..., k], w [k, n], bias [n]; float, one dtype. */
static inline burn_tensor *burn_fused_matmul_bias_relu(burn_tensor *x, burn_tensor *w,
                                                       burn_tensor *bias)
{
    burn_tensor *const in[3] = {x, w, bias};
    return burn_fused_call(burn_fused_id_matmul_bias_relu(), NULL, 0, in, 3);
}

/* gelu(x w + bias); tanh_form 1 takes the approximation by tanh. */
static inline burn_tensor *burn_fused_matmul_bias_gelu(burn_tensor *x, burn_tensor *w,
                                                       burn_tensor *bias, int32_t tanh_form)
{
    burn_tensor *const in[3] = {x, w, bias};
    burn_attrs_gelu a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.tanh_form = tanh_form != 0;
    return burn_fused_call(burn_fused_id_matmul_bias_gelu(), &a, (uint32_t)sizeof(a), in, 3);
}

/* Layer norm of x + y over the last n_axes axes; gamma and beta have their shape. */
static inline burn_tensor *burn_fused_add_layer_norm(burn_tensor *x, burn_tensor *y,
                                                     burn_tensor *gamma, burn_tensor *beta,
                                                     uint32_t n_axes, double eps)
{
    burn_tensor *const in[4] = {x, y, gamma, beta};
    burn_fused_attrs_norm a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.eps = eps;
    a.n_axes = n_axes;
    return burn_fused_call(burn_fused_id_add_layer_norm(), &a, (uint32_t)sizeof(a), in, 4);
}

/* gate * sigmoid(gate) * up; the operands broadcast. */
static inline burn_tensor *burn_fused_swiglu(burn_tensor *gate, burn_tensor *up)
{
    burn_tensor *const in[2] = {gate, up};
    return burn_fused_call(burn_fused_id_swiglu(), NULL, 0, in, 2);
}

/*
 * One step of Lion: param -= lr (sign(beta1 m + (1 - beta1) grad) + weight_decay param), then
 * m = beta2 m + (1 - beta2) grad. `m` is a variable of param's shape, zeros at the start. Returns
 * BURN_OK or the code of the failure, which changes nothing.
 */
static inline int32_t burn_fused_lion_step(burn_var *param, burn_tensor *grad, burn_var *m,
                                           double lr, double beta1, double beta2,
                                           double weight_decay, burn_err *err)
{
    burn_fused_attrs_lion a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.beta1 = beta1;
    a.beta2 = beta2;
    a.weight_decay = weight_decay;
    burn_var *const vars[4] = {param, NULL, m, NULL};
    burn_tensor *const in[4] = {NULL, grad, NULL, burn_scalar(lr)};
    return burn_var_update(burn_fused_id_lion_step(), &a, (uint32_t)sizeof(a), vars, in, 4, err);
}

BURN_END_DECLS

/* Calls say their file and line, as those of <burn/ops.h> do; see <burn/trace.h>. */
#ifdef BURN_TRACE_CALLS
#include <burn/ops.h>
#define burn_fused_matmul_bias_relu(...) BURN_TRACED(burn_fused_matmul_bias_relu(__VA_ARGS__))
#define burn_fused_matmul_bias_gelu(...) BURN_TRACED(burn_fused_matmul_bias_gelu(__VA_ARGS__))
#define burn_fused_add_layer_norm(...) BURN_TRACED(burn_fused_add_layer_norm(__VA_ARGS__))
#define burn_fused_swiglu(...) BURN_TRACED(burn_fused_swiglu(__VA_ARGS__))
#endif

#endif /* BURN_EXT_FUSED_H */
