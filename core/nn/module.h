/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * module.h - the tree's struct, shared by module.c, layers and the store.
 */
#ifndef BURN_CORE_NN_MODULE_H
#define BURN_CORE_NN_MODULE_H

#include <burn/nn.h>

typedef struct burni_param {
    char *name;
    char *path;
    burn_var *var;
    int32_t trainable;
    uint32_t zero;
} burni_param;

/* What a layer keeps beside its parameters. */
typedef struct burni_layer {
    burn_forward_fn forward;
    void *user;
    int64_t size[4];
    double number;
    uint32_t kind;
    uint32_t zero;
    burn_conv_opts conv;
} burni_layer;

struct burn_module {
    char *name;
    char *path; /* "" for the root */
    burn_device *device;
    burn_module *root;
    burn_module *first_child;
    burn_module *last_child;
    burn_module *next;
    burn_module *parent; /* NULL for the root */
    burni_param *params;
    uint32_t n_params;
    int32_t training; /* of the root */
    burni_layer layer;
};

/* A child with a forward function; NULL with the error on failure or when the parent is NULL. */
burn_module *burni_layer_new(burn_module *parent, const char *name, burn_forward_fn forward,
                             burn_err *err);
/* Takes away a child that was just made and could not be finished. NULL is fine. */
void burni_layer_drop(burn_module *m);
/* Value of the module's own parameter i. */
burn_tensor *burni_layer_param(burn_module *module, uint32_t i);

#endif /* BURN_CORE_NN_MODULE_H */
