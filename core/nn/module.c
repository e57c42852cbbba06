/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * module.c - the tree: children, parameters, paths, walking. Layers are in layers.c.
 *
 * Children and parameters keep the order in which they were made; files and optimizers see that
 * order. A module owns its names, its parameters and its children.
 */
#include "nn/module.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/tensor.h"

#include <burn/trace.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int is_name(const char *name)
{
    size_t n = name != NULL ? strlen(name) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') {
            return 0;
        }
    }
    return n > 0 && n < 128;
}

static char *join(const char *path, const char *name)
{
    size_t size = strlen(path) + strlen(name) + 2;
    char *out = burni_alloc(size);
    if (out != NULL) {
        (void)snprintf(out, size, "%s%s%s", path, path[0] != '\0' ? "." : "", name);
    }
    return out;
}

static void free_module(burn_module *m)
{
    while (m->first_child != NULL) {
        burn_module *child = m->first_child;
        m->first_child = child->next;
        free_module(child);
    }
    for (uint32_t i = 0; i < m->n_params; i++) {
        burn_var_release(m->params[i].var);
        burni_free(m->params[i].name);
        burni_free(m->params[i].path);
    }
    burni_free(m->params);
    burni_free(m->name);
    burni_free(m->path);
    burni_free(m);
}

burn_module *burn_module_create(burn_device *device, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (device == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "module: the device is NULL");
        return NULL;
    }
    burn_module *m = burni_calloc(1, sizeof(*m));
    char *path = burni_strdup("");
    if (m == NULL || path == NULL) {
        burni_free(m);
        burni_free(path);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "module: out of host memory");
        return NULL;
    }
    m->path = path;
    m->device = device;
    m->root = m;
    m->training = 1;
    return m;
}

void burn_module_free(burn_module *root)
{
    if (root != NULL && root->root == root) {
        free_module(root);
    }
}

static burn_module *child_named(burn_module *m, const char *name, size_t n)
{
    for (burn_module *c = m->first_child; c != NULL; c = c->next) {
        if (strlen(c->name) == n && memcmp(c->name, name, n) == 0) {
            return c;
        }
    }
    return NULL;
}

static burni_param *param_named(burn_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_params; i++) {
        if (strcmp(m->params[i].name, name) == 0) {
            return &m->params[i];
        }
    }
    return NULL;
}

static int32_t check_new(burn_module *parent, const char *name, burn_err *err)
{
    if (!is_name(name)) {
        return burni_fail(err, BURN_E_INVALID,
                          "module: \"%s\" is no name; letters, digits and '_' only",
                          name != NULL ? name : "");
    }
    if (child_named(parent, name, strlen(name)) != NULL || param_named(parent, name) != NULL) {
        return burni_fail(err, BURN_E_INVALID, "module: \"%s%s%s\" exists already", parent->path,
                          parent->path[0] != '\0' ? "." : "", name);
    }
    return BURN_OK;
}

burn_module *burn_module_child(burn_module *parent, const char *name, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (parent == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "module: the parent is NULL");
        return NULL;
    }
    if (check_new(parent, name, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_calloc(1, sizeof(*m));
    char *own_name = burni_strdup(name);
    char *path = join(parent->path, name);
    if (m == NULL || own_name == NULL || path == NULL) {
        burni_free(m);
        burni_free(own_name);
        burni_free(path);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "module: out of host memory");
        return NULL;
    }
    m->name = own_name;
    m->path = path;
    m->device = parent->device;
    m->root = parent->root;
    m->parent = parent;
    if (parent->last_child != NULL) {
        parent->last_child->next = m;
    } else {
        parent->first_child = m;
    }
    parent->last_child = m;
    return m;
}

burn_module *burn_module_find(burn_module *module, const char *path)
{
    burn_module *m = module;
    while (m != NULL && path != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        m = child_named(m, path, n);
        path += n + (path[n] == '.');
    }
    return m;
}

burn_var *burn_module_add(burn_module *module, const char *name, burn_tensor *value,
                          int32_t trainable, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (module == NULL || check_new(module, name, err) != BURN_OK) {
        return NULL;
    }
    if (trainable && burn_ok(value) && burn_dtype_class(burn_dtype_of(value)) != BURN_CLASS_FLOAT) {
        (void)burni_fail(err, BURN_E_DTYPE,
                         "module: %s is %s, which has no gradient; a trainable parameter is a "
                         "float, others are added with trainable 0",
                         name, burn_dtype_name(burn_dtype_of(value)));
        return NULL;
    }
    burni_param *params =
        burni_realloc(module->params, (module->n_params + 1) * sizeof(module->params[0]));
    char *own_name = burni_strdup(name);
    char *path = join(module->path, name);
    if (params != NULL) {
        module->params = params;
    }
    burn_device *device =
        trainable ? module->device : burn_device_inner(module->device);
    burn_var *var = NULL;
    if (params == NULL || own_name == NULL || path == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "module: out of host memory");
    } else {
        var = burn_var_create(device, value, err);
    }
    if (var == NULL) {
        burni_free(own_name);
        burni_free(path);
        return NULL;
    }
    burni_param *p = &module->params[module->n_params++];
    p->name = own_name;
    p->path = path;
    p->var = var;
    p->trainable = trainable != 0;
    p->zero = 0;
    return var;
}

burn_var *burn_module_var(burn_module *module, const char *path)
{
    const char *dot = path != NULL ? strrchr(path, '.') : NULL;
    burn_module *m = module;
    if (dot != NULL) {
        char head[1024];
        size_t n = (size_t)(dot - path);
        if (n >= sizeof(head)) {
            return NULL;
        }
        memcpy(head, path, n);
        head[n] = '\0';
        m = burn_module_find(module, head);
    }
    burni_param *p =
        m != NULL && path != NULL ? param_named(m, dot != NULL ? dot + 1 : path) : NULL;
    return p != NULL ? p->var : NULL;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Parameter number *i below m, counting down; NULL when there are fewer. */
static burni_param *nth(burn_module *m, uint32_t *i)
{
    if (*i < m->n_params) {
        return &m->params[*i];
    }
    *i -= m->n_params;
    for (burn_module *c = m->first_child; c != NULL; c = c->next) {
        burni_param *p = nth(c, i);
        if (p != NULL) {
            return p;
        }
    }
    return NULL;
}

uint32_t burn_module_n_vars(burn_module *module)
{
    uint32_t n = module != NULL ? module->n_params : 0;
    for (burn_module *c = module != NULL ? module->first_child : NULL; c != NULL; c = c->next) {
        n += burn_module_n_vars(c);
    }
    return n;
}

burn_var *burn_module_var_at(burn_module *module, uint32_t i, const char **out_path,
                             int32_t *out_trainable)
{
    burni_param *p = module != NULL ? nth(module, &i) : NULL;
    if (p == NULL) {
        return NULL;
    }
    if (out_path != NULL) {
        *out_path = p->path;
    }
    if (out_trainable != NULL) {
        *out_trainable = p->trainable;
    }
    return p->var;
}

burn_device *burn_module_device(const burn_module *module)
{
    return module != NULL ? module->device : NULL;
}

int64_t burn_module_n_params(burn_module *module)
{
    int64_t n = 0;
    int32_t trainable = 0;
    burn_var *var;
    for (uint32_t i = 0; (var = burn_module_var_at(module, i, NULL, &trainable)) != NULL; i++) {
        if (trainable) {
            burn_tensor *t = burn_var_get(var);
            n += burn_numel(t);
            burn_release(t);
        }
    }
    return n;
}

void burn_module_set_training(burn_module *root, int32_t training)
{
    if (root != NULL) {
        root->root->training = training != 0;
    }
}

int32_t burn_module_training(const burn_module *module)
{
    return module != NULL && module->root->training;
}

/* ---- running --------------------------------------------------------------------------------- */

static burn_tensor *run_children(burn_module *module, burn_tensor *x)
{
    for (burn_module *c = module->first_child; c != NULL; c = c->next) {
        x = burn_forward(c, x);
    }
    return x;
}

/* A layer that passes its input on still returns a handle of its own. */
static burn_tensor *same_value(burn_tensor *x)
{
    burni_thread *thread = burni_thread_get();
    if (x == NULL || thread == NULL) {
        return x;
    }
    burn_tensor *t = burni_handle_alias(thread, x, 1);
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    if (x->node != NULL && thread->no_grad == 0) {
        t->node = burni_node_ref(x->node);
        t->out_index = x->out_index;
    }
    return t;
}

/* What a module gave when it gave nothing. */
static burn_tensor *nothing(const burn_module *module, const burn_tensor *x)
{
    burni_thread *thread = burni_thread_get();
    if (x == NULL) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0,
                                 "forward: x is NULL; give the module's input");
    }
    return burni_handle_fail(thread, BURN_E_INVALID, 0, "%s: its forward function returned NULL",
                             module->path[0] != '\0' ? module->path : "the root");
}

burn_tensor *burn_forward(burn_module *module, burn_tensor *x)
{
    if (module == NULL) {
        return burni_handle_fail(burni_thread_get(), BURN_E_INVALID, 0,
                                 "forward: the module is NULL");
    }
    burn_scope_begin();
    burn_tag_begin(module->name);
    burn_tensor *y = module->layer.forward != NULL
                         ? module->layer.forward(module, module->layer.user, x)
                         : run_children(module, x);
    y = y == NULL ? nothing(module, x) : y;
    burn_tag_end();
    return burn_scope_return(y == x ? same_value(x) : y);
}

void burni_layer_drop(burn_module *m)
{
    if (m == NULL) {
        return;
    }
    burn_module *parent = m->parent;
    burn_module *before = NULL;
    for (burn_module *c = parent->first_child; c != m; c = c->next) {
        before = c;
    }
    if (before != NULL) {
        before->next = m->next;
    } else {
        parent->first_child = m->next;
    }
    parent->last_child = parent->last_child == m ? before : parent->last_child;
    free_module(m);
}

burn_module *burni_layer_new(burn_module *parent, const char *name, burn_forward_fn forward,
                             burn_err *err)
{
    burn_module *m = burn_module_child(parent, name, err);
    if (m != NULL) {
        m->layer.forward = forward;
    }
    return m;
}

burn_module *burn_nn_custom(burn_module *parent, const char *name, burn_forward_fn forward,
                            void *user, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (forward == NULL) {
        (void)burni_fail(err, BURN_E_INVALID, "custom: the forward function is NULL");
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, forward, err);
    if (m != NULL) {
        m->layer.user = user;
    }
    return m;
}

burn_tensor *burni_layer_param(burn_module *module, uint32_t i)
{
    return i < module->n_params ? burn_var_get(module->params[i].var) : NULL;
}
