/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * layers.c - the layers: each makes its parameters and has a plain forward function over ops.
 *
 * To add one: a forward function, a constructor that ends in burni_layer_new and burn_module_add,
 * a declaration in <burn/nn.h>.
 */
#include "nn/module.h"

#include "base/error.h"
#include "base/printer.h"
#include "ops/rules.h"

#include <math.h>

/* Adds a parameter in a scope of its own; 0 on failure. */
static int add(burn_module *m, const char *name, uint32_t rank, const int64_t *dims, uint32_t kind,
               double a, double b, int64_t fan_in, int32_t trainable, burn_err *err)
{
    int64_t n = burni_numel(rank, dims);
    if (n < 0 || n > INT64_MAX / 8) {
        char text[192];
        (void)burni_fail(err, BURN_E_SHAPE, "%s: %s would be %s, which is too large", m->name, name,
                         burni_shape_text(text, sizeof(text), rank, dims));
        return 0;
    }
    burn_scope_begin();
    burn_tensor *t = burn_nn_init(burn_device_inner(m->device), BURN_F32, rank, dims, kind, a, b,
                                  fan_in, 0);
    burn_var *var = burn_module_add(m, name, t, trainable, err);
    burn_scope_end();
    return var != NULL;
}

static int32_t positive(const char *layer, int64_t a, int64_t b, burn_err *err)
{
    if (a < 1 || b < 1) {
        return burni_fail(err, BURN_E_INVALID, "%s: sizes %lld and %lld must be at least 1", layer,
                          (long long)a, (long long)b);
    }
    return BURN_OK;
}

/* Gain 1/sqrt(3): bound 1/sqrt(fan_in). */
static double default_gain(void)
{
    return 1.0 / sqrt(3.0);
}

/* ---- linear ---------------------------------------------------------------------------------- */

static burn_tensor *linear_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return burn_linear(x, burni_layer_param(m, 0), burni_layer_param(m, 1));
}

burn_module *burn_nn_linear(burn_module *parent, const char *name, int64_t in, int64_t out,
                            int32_t bias, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (positive("linear", in, out, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, linear_forward, err);
    const int64_t weight[2] = {in, out};
    if (m == NULL || !add(m, "weight", 2, weight, BURN_INIT_KAIMING_UNIFORM, default_gain(), 0, in,
                          1, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    if (bias &&
        !add(m, "bias", 1, &out, BURN_INIT_KAIMING_UNIFORM, default_gain(), 0, in, 1, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    return m;
}

/* ---- convolution ----------------------------------------------------------------------------- */

static burn_tensor *conv2d_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return burn_conv2d(x, burni_layer_param(m, 0), burni_layer_param(m, 1), &m->layer.conv);
}

burn_module *burn_nn_conv2d(burn_module *parent, const char *name, int64_t in, int64_t out,
                            int64_t kernel, const burn_conv_opts *opts, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    static const burn_conv_opts none = {.struct_size = sizeof(none)};
    const burn_conv_opts *o = opts != NULL ? opts : &none;
    int64_t groups = o->groups > 0 ? o->groups : 1;
    if (positive("conv2d", in, out, err) != BURN_OK ||
        positive("conv2d", kernel, groups, err) != BURN_OK) {
        return NULL;
    }
    if (o->output_padding[0] != 0 || o->output_padding[1] != 0) {
        (void)burni_fail(err, BURN_E_INVALID,
                         "conv2d: output_padding is (%lld, %lld); burn_conv_transpose2d alone "
                         "takes one, leave it 0",
                         (long long)o->output_padding[0], (long long)o->output_padding[1]);
        return NULL;
    }
    if (in % groups != 0 || out % groups != 0) {
        (void)burni_fail(err, BURN_E_INVALID,
                         "conv2d: %lld input and %lld output channels do not divide into %lld "
                         "groups",
                         (long long)in, (long long)out, (long long)groups);
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, conv2d_forward, err);
    if (m == NULL) {
        return NULL;
    }
    m->layer.conv = *o;
    const int64_t weight[4] = {out, in / groups, kernel, kernel};
    int64_t fan_in = in / groups * kernel * kernel;
    if (!add(m, "weight", 4, weight, BURN_INIT_KAIMING_UNIFORM, default_gain(), 0, fan_in, 1,
             err) ||
        !add(m, "bias", 1, &out, BURN_INIT_KAIMING_UNIFORM, default_gain(), 0, fan_in, 1, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    return m;
}

/* ---- normalisation --------------------------------------------------------------------------- */

#define NORM_EPS 1e-5
#define NORM_MOMENTUM 0.1

/* running = (1 - momentum) * running + momentum * batch; the variance unbiased. */
static void update_running(burn_module *m, burn_tensor *x, burn_tensor *mean, burn_tensor *var)
{
    double n = (double)burn_numel(x) / (double)burn_dim(x, 1);
    burn_no_grad_begin();
    burn_tensor *batch[2] = {burn_detach(mean),
                             burn_mul(burn_detach(var), burn_scalar(n / (n - 1.0)))};
    for (uint32_t i = 0; i < 2; i++) {
        burn_scope_begin();
        burn_tensor *old = burni_layer_param(m, 2 + i);
        burn_tensor *mixed = burn_add(burn_mul(old, burn_scalar(1.0 - NORM_MOMENTUM)),
                                      burn_mul(batch[i], burn_scalar(NORM_MOMENTUM)));
        burn_release(old);
        (void)burn_var_assign(m->params[2 + i].var, mixed, NULL);
        burn_scope_end();
    }
    burn_no_grad_end();
}

static burn_tensor *batch_norm_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    burn_tensor *gamma = burni_layer_param(m, 0);
    burn_tensor *beta = burni_layer_param(m, 1);
    if (!burn_module_training(m)) {
        return burn_batch_norm(x, gamma, beta, burni_layer_param(m, 2), burni_layer_param(m, 3), 0,
                               NORM_EPS, NULL, NULL);
    }
    burn_tensor *mean = NULL;
    burn_tensor *var = NULL;
    burn_tensor *y = burn_batch_norm(x, gamma, beta, NULL, NULL, 1, NORM_EPS, &mean, &var);
    if (burn_ok(y)) {
        update_running(m, x, mean, var);
    }
    return y;
}

burn_module *burn_nn_batch_norm(burn_module *parent, const char *name, int64_t channels,
                                burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (positive("batch_norm", channels, 1, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, batch_norm_forward, err);
    if (m == NULL || !add(m, "gamma", 1, &channels, BURN_INIT_CONSTANT, 1, 0, 0, 1, err) ||
        !add(m, "beta", 1, &channels, BURN_INIT_CONSTANT, 0, 0, 0, 1, err) ||
        !add(m, "running_mean", 1, &channels, BURN_INIT_CONSTANT, 0, 0, 0, 0, err) ||
        !add(m, "running_var", 1, &channels, BURN_INIT_CONSTANT, 1, 0, 0, 0, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    return m;
}

static burn_tensor *layer_norm_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return burn_layer_norm(x, burni_layer_param(m, 0), burni_layer_param(m, 1), 1, NORM_EPS);
}

burn_module *burn_nn_layer_norm(burn_module *parent, const char *name, int64_t size, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (positive("layer_norm", size, 1, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, layer_norm_forward, err);
    if (m == NULL || !add(m, "gamma", 1, &size, BURN_INIT_CONSTANT, 1, 0, 0, 1, err) ||
        !add(m, "beta", 1, &size, BURN_INIT_CONSTANT, 0, 0, 0, 1, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    return m;
}

/* ---- embedding ------------------------------------------------------------------------------- */

static burn_tensor *embedding_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return burn_embedding(burni_layer_param(m, 0), x);
}

burn_module *burn_nn_embedding(burn_module *parent, const char *name, int64_t n, int64_t size,
                               burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (positive("embedding", n, size, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, embedding_forward, err);
    const int64_t dims[2] = {n, size};
    if (m == NULL || !add(m, "weight", 2, dims, BURN_INIT_NORMAL, 0, 1, 0, 1, err)) {
        burni_layer_drop(m);
        return NULL;
    }
    return m;
}

/* ---- without parameters ---------------------------------------------------------------------- */

static burn_tensor *dropout_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    int active = burn_module_training(m) && m->layer.number > 0.0;
    return active ? burn_dropout(x, m->layer.number) : x;
}

burn_module *burn_nn_dropout(burn_module *parent, const char *name, double p, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (!(p >= 0.0 && p <= 1.0)) {
        (void)burni_fail(err, BURN_E_INVALID, "dropout: the probability %g is not in 0..1",
                         burni_shown(p));
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, dropout_forward, err);
    if (m != NULL) {
        m->layer.number = p;
    }
    return m;
}

static burn_pool_opts pool_opts(const burn_module *m)
{
    burn_pool_opts o = {.struct_size = sizeof(o)};
    for (int d = 0; d < 2; d++) {
        o.kernel[d] = m->layer.size[0];
        o.stride[d] = m->layer.size[1];
    }
    return o;
}

static burn_tensor *max_pool_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    burn_pool_opts o = pool_opts(m);
    return burn_max_pool2d(x, &o, NULL);
}

static burn_tensor *avg_pool_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    burn_pool_opts o = pool_opts(m);
    return burn_avg_pool2d(x, &o);
}

static burn_module *pool(burn_module *parent, const char *name, burn_forward_fn forward,
                         int64_t kernel, int64_t stride, burn_err *err)
{
    if (positive("pool", kernel, stride, err) != BURN_OK) {
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, forward, err);
    if (m != NULL) {
        m->layer.size[0] = kernel;
        m->layer.size[1] = stride;
    }
    return m;
}

burn_module *burn_nn_max_pool2d(burn_module *parent, const char *name, int64_t kernel,
                                int64_t stride, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return pool(parent, name, max_pool_forward, kernel, stride, err);
}

burn_module *burn_nn_avg_pool2d(burn_module *parent, const char *name, int64_t kernel,
                                int64_t stride, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return pool(parent, name, avg_pool_forward, kernel, stride, err);
}

static burn_tensor *adaptive_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return burn_adaptive_avg_pool2d(x, m->layer.size[0], m->layer.size[0]);
}

burn_module *burn_nn_adaptive_avg_pool2d(burn_module *parent, const char *name, int64_t size,
                                         burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return pool(parent, name, adaptive_forward, size, size, err);
}

static burn_tensor *flatten_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)m;
    (void)user;
    return burn_flatten(x, 1, -1);
}

burn_module *burn_nn_flatten(burn_module *parent, const char *name, burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    return burni_layer_new(parent, name, flatten_forward, err);
}

static burn_tensor *gelu_erf(burn_tensor *x)
{
    return burn_gelu(x, 0);
}

typedef burn_tensor *(*unary_fn)(burn_tensor *);
static const unary_fn activations[] = {
    [BURN_RELU] = burn_relu,       [BURN_GELU] = gelu_erf,  [BURN_SILU] = burn_silu,
    [BURN_SIGMOID] = burn_sigmoid, [BURN_TANH] = burn_tanh,
};

static burn_tensor *activation_forward(burn_module *m, void *user, burn_tensor *x)
{
    (void)user;
    return activations[m->layer.kind](x);
}

burn_module *burn_nn_activation(burn_module *parent, const char *name, uint32_t kind,
                                burn_err *err)
{
    burn_err spare;
    err = burni_first(err, &spare);
    if (kind >= sizeof(activations) / sizeof(activations[0])) {
        (void)burni_fail(err, BURN_E_INVALID,
                         "activation: %u is no kind; there are BURN_RELU, BURN_GELU, BURN_SILU, "
                         "BURN_SIGMOID and BURN_TANH",
                         kind);
        return NULL;
    }
    burn_module *m = burni_layer_new(parent, name, activation_forward, err);
    if (m != NULL) {
        m->layer.kind = kind;
    }
    return m;
}
