/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * grad.h - gradients and variables.
 *
 * Recording follows the operands: an op whose operand is tracked is recorded, on any device. Leaves
 * are variables on an autodiff device and tensors passed to burn_require_grad. Gradients live in a
 * container, not on tensors. A variable is the only thing that is ever overwritten: parameters,
 * optimizer state, running statistics. Readers that hold an old value keep it. [any]
 */
#ifndef BURN_GRAD_H
#define BURN_GRAD_H

#include <burn/tensor.h>

BURN_BEGIN_DECLS

typedef struct burn_grads burn_grads;
typedef struct burn_var burn_var;

/* A tracked leaf with the value of `t` (float). Needs an autodiff device handle in `device`. */
BURN_API burn_tensor *burn_require_grad(burn_device *device, burn_tensor *t);
/* The value without its history. */
BURN_API burn_tensor *burn_detach(burn_tensor *t);
BURN_API int32_t burn_is_tracked(const burn_tensor *t);
/* Between these, nothing is recorded on this thread. They nest. */
BURN_API void burn_no_grad_begin(void);
BURN_API void burn_no_grad_end(void);
BURN_API int32_t burn_grad_enabled(void);

enum { BURN_GRAD_RETAIN = 1 /* the history may be walked again */,
       BURN_GRAD_CREATE = 2 /* gradients are recorded too; implies RETAIN */ };

/*
 * Gradients of sum(t) by every leaf that it depends on; `seed` (t's shape) weighs its elements,
 * NULL = ones. NULL on failure: t is failed, not tracked, or its history was used up, or work of
 * the pass failed. Work that waits in a window fails later: burn_sync and the reads tell.
 */
BURN_API burn_grads *burn_backward(burn_tensor *t, burn_tensor *seed, uint32_t flags,
                                   burn_err *err);
/* Gradient of a leaf tensor or of a variable, or NULL when nothing flowed to it. The tensor goes
 * to the innermost scope. */
BURN_API burn_tensor *burn_grads_get(burn_grads *grads, const burn_tensor *leaf);
BURN_API burn_tensor *burn_grads_get_var(burn_grads *grads, const burn_var *var);
/* Replaces the gradient of a variable (clipping, averaging). */
BURN_API int32_t burn_grads_set_var(burn_grads *grads, const burn_var *var, burn_tensor *grad,
                                    burn_err *err);
BURN_API void burn_grads_free(burn_grads *grads);

/* ---- keeping less: values that are made again in backward ------------------------------- */

/*
 * What the history keeps for backward. BALANCED: results of recorded ops that are one pass over
 * memory (pointwise ops, views, BURN_OP_LIGHT) are not kept but made again from what they came
 * from, at most 8 ops deep, unless that is more than they are themselves. Gradients have the same
 * bits. Concerns calls from here on, of all threads; histories that are there stay as they are.
 */
enum { BURN_RECOMPUTE_NONE = 0, BURN_RECOMPUTE_BALANCED = 1 };
BURN_API int32_t burn_device_set_recompute(burn_device *device, uint32_t strategy, burn_err *err);
BURN_API uint32_t burn_device_recompute(const burn_device *device);
/*
 * Between these, on any device and with any strategy, this thread's history keeps what comes from
 * outside only: everything else is run again, once, when backward needs it. Work with effects
 * (updates of variables) is not, its results are kept. `outputs` are what goes on from here and is
 * kept: tensors or NULL. Pairs within a pair have no effect. A tensor that still has a handle still
 * has its memory: end the scopes of temporaries (burn_scope_end_with) to free it. BURN_E_STATE
 * without a begin.
 */
BURN_API void burn_recompute_begin(void);
BURN_API int32_t burn_recompute_end(burn_tensor *const *outputs, uint32_t n_outputs,
                                    burn_err *err);

/* ---- variables ------------------------------------------------------------------------- */

/* A variable with that first value; tracked when `device` is an autodiff handle and it is float.
 * NULL on failure. */
BURN_API burn_var *burn_var_create(burn_device *device, burn_tensor *value, burn_err *err);
BURN_API void burn_var_release(burn_var *var);
/* The current value (a leaf when the variable is tracked). */
BURN_API burn_tensor *burn_var_get(const burn_var *var);
/* Overwrites it, in place; dtype and shape must be equal. A failing call changes nothing. */
BURN_API int32_t burn_var_assign(burn_var *var, burn_tensor *value, burn_err *err);
/* Calls an op with state operands: where `vars[i]` is not NULL, input i is that variable. */
BURN_API int32_t burn_var_update(uint64_t op, const void *attrs, uint32_t attrs_size,
                                 burn_var *const *vars, burn_tensor *const *in, uint32_t n_in,
                                 burn_err *err);
BURN_API int32_t burn_var_tracked(const burn_var *var);
BURN_API void burn_var_set_tracked(burn_var *var, int32_t tracked);
BURN_API uint64_t burn_var_id(const burn_var *var);
BURN_API void burn_var_set_id(burn_var *var, uint64_t id);

BURN_END_DECLS

#endif /* BURN_GRAD_H */
