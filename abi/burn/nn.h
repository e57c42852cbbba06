/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn.h - modules: a tree of named parameters and children, and the layers that are made of it.
 *
 * A module belongs to its parent; freeing the root frees all. Parameters are variables, reached by
 * path ("conv1.weight"). A layer is a module with a forward function; a container calls its
 * children in the order in which they were made. Names are [A-Za-z0-9_]+. Functions that make
 * something return NULL and fill `err` on failure; with a NULL parent they pass the failure on, so
 * a model can be built without checks in between (the first error stays in `err`). [any], but one
 * tree is changed by one thread at a time.
 */
#ifndef BURN_NN_H
#define BURN_NN_H

#include <burn/grad.h>
#include <burn/ops.h>

BURN_BEGIN_DECLS

typedef struct burn_module burn_module;

/* ---- the tree ------------------------------------------------------------------------------- */

/* A root: parameters of the tree are made on this device; tracked if it is an autodiff handle. */
BURN_API burn_module *burn_module_create(burn_device *device, burn_err *err);
BURN_API void burn_module_free(burn_module *root);
/* A container within a module. */
BURN_API burn_module *burn_module_child(burn_module *parent, const char *name, burn_err *err);
/* Descendant by path ("encoder.0"); NULL when there is none. */
BURN_API burn_module *burn_module_find(burn_module *module, const char *path);
/* Adds a parameter (trainable = 1; a float) or a buffer, such as running statistics (0). */
BURN_API burn_var *burn_module_add(burn_module *module, const char *name, burn_tensor *value,
                                   int32_t trainable, burn_err *err);
/* Parameter or buffer by path; NULL when there is none. */
BURN_API burn_var *burn_module_var(burn_module *module, const char *path);
/* Everything below a module, in the order it was made. Strings live as long as the tree. */
BURN_API uint32_t burn_module_n_vars(burn_module *module);
BURN_API burn_var *burn_module_var_at(burn_module *module, uint32_t i, const char **out_path,
                                      int32_t *out_trainable);
BURN_API burn_device *burn_module_device(const burn_module *module);
/* Number of trainable elements. */
BURN_API int64_t burn_module_n_params(burn_module *module);

/* Training mode of a whole tree (on at first): dropout drops, batch norm uses the batch. */
BURN_API void burn_module_set_training(burn_module *root, int32_t training);
BURN_API int32_t burn_module_training(const burn_module *module);

/*
 * Runs a module. A container runs its children one after the other. Never NULL: a NULL module, or a
 * module that makes nothing of x (x is NULL, its own forward function returns NULL), gives a failed
 * tensor of E_INVALID.
 */
BURN_API burn_tensor *burn_forward(burn_module *module, burn_tensor *x);
/* A layer of the caller's own: `forward` gets the module and `user`. */
typedef burn_tensor *(BURN_CALL *burn_forward_fn)(burn_module *module, void *user, burn_tensor *x);
BURN_API burn_module *burn_nn_custom(burn_module *parent, const char *name,
                                     burn_forward_fn forward, void *user, burn_err *err);

/* ---- initial values -------------------------------------------------------------------------- */

enum { BURN_INIT_CONSTANT = 0, BURN_INIT_UNIFORM = 1, BURN_INIT_NORMAL = 2,
       BURN_INIT_KAIMING_UNIFORM = 3, BURN_INIT_KAIMING_NORMAL = 4, BURN_INIT_XAVIER_UNIFORM = 5,
       BURN_INIT_XAVIER_NORMAL = 6 };

/*
 * constant: a; uniform: a..b; normal: mean a, deviation b; kaiming: gain a, bound
 * sqrt(3) a / sqrt(fan_in), deviation a / sqrt(fan_in); xavier: bound
 * sqrt(3) a sqrt(2 / (fan_in + fan_out)). E_INVALID: another kind; a fan that the kind divides by
 * and that is below 1. Draws from the calling thread's generator.
 */
BURN_API burn_tensor *burn_nn_init(burn_device *device, uint8_t dtype, uint32_t rank,
                                   const int64_t *dims, uint32_t kind, double a, double b,
                                   int64_t fan_in, int64_t fan_out);

/* ---- layers ---------------------------------------------------------------------------------- */

/* weight [in, out] and bias [out] (bias = 0: none), both U(+-1/sqrt(in)). */
BURN_API burn_module *burn_nn_linear(burn_module *parent, const char *name, int64_t in, int64_t out,
                                     int32_t bias, burn_err *err);
/* weight [out, in/groups, k, k], bias [out]; `opts` as in burn_conv2d, NULL = defaults. */
BURN_API burn_module *burn_nn_conv2d(burn_module *parent, const char *name, int64_t in, int64_t out,
                                     int64_t kernel, const burn_conv_opts *opts, burn_err *err);
/* gamma, beta, running_mean, running_var [channels]; eps 1e-5, momentum 0.1. */
BURN_API burn_module *burn_nn_batch_norm(burn_module *parent, const char *name, int64_t channels,
                                         burn_err *err);
/* gamma, beta over the last axis; eps 1e-5. */
BURN_API burn_module *burn_nn_layer_norm(burn_module *parent, const char *name, int64_t size,
                                         burn_err *err);
/* weight [n, size], N(0, 1); its input holds indices. */
BURN_API burn_module *burn_nn_embedding(burn_module *parent, const char *name, int64_t n,
                                        int64_t size, burn_err *err);
BURN_API burn_module *burn_nn_dropout(burn_module *parent, const char *name, double p,
                                      burn_err *err);
BURN_API burn_module *burn_nn_max_pool2d(burn_module *parent, const char *name, int64_t kernel,
                                         int64_t stride, burn_err *err);
BURN_API burn_module *burn_nn_avg_pool2d(burn_module *parent, const char *name, int64_t kernel,
                                         int64_t stride, burn_err *err);
BURN_API burn_module *burn_nn_adaptive_avg_pool2d(burn_module *parent, const char *name,
                                                  int64_t size, burn_err *err);
/* Joins all axes but the first. */
BURN_API burn_module *burn_nn_flatten(burn_module *parent, const char *name, burn_err *err);

enum { BURN_RELU = 0, BURN_GELU = 1, BURN_SILU = 2, BURN_SIGMOID = 3, BURN_TANH = 4 };
BURN_API burn_module *burn_nn_activation(burn_module *parent, const char *name, uint32_t kind,
                                         burn_err *err);

BURN_END_DECLS

#endif /* BURN_NN_H */
