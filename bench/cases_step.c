/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_step.c - whole training steps: forward, loss, backward, update of the parameters.
 *
 * Three networks, written as an application would write them: a perceptron (784-128-10), LeNet on
 * 28x28 pictures, and one pre-norm transformer block with causal attention. Data are random and
 * stay the same; a step's loss is kept until the next step, so it is computed, but not read, as a
 * loop does that reads it once in a while. The peers build the same networks (peer/peer.cpp,
 * peer/compiled.py). The recompute cases are four blocks, whose intermediate values are kept or
 * made again in backward. The replay cases call the step twice, the second time while it is kept,
 * and then run what was kept, with the data as its inputs. The digest is that of all parameters
 * and of the last loss.
 */
#include "cases.h"
#include "digest.h"

#include <burn/grad.h>
#include <burn/nn.h>
#include <burn/ops.h>
#include <burn/optim.h>
#include <burn/replay.h>

enum { N_DEEP = 4 };
enum { BLOCK_WIDTH = 256, BLOCK_HEADS = 4, BLOCK_LENGTH = 128, BLOCK_HIDDEN = 4 * BLOCK_WIDTH };

static burn_device *step_device;
static burn_module *step_model;
static burn_optimizer *step_optimizer;
static burn_tensor *step_x;
static burn_tensor *step_y;
static burn_tensor *step_loss; /* of the last step */
static burn_replay *step_replay;
static double step_lr;
static int32_t step_is_regression;
static int32_t step_in_scopes; /* each block runs again in backward */

void bench_step_teardown(void)
{
    if (step_device != NULL) {
        (void)burn_device_set_recompute(step_device, BURN_RECOMPUTE_NONE, NULL);
    }
    step_in_scopes = 0;
    burn_replay_free(step_replay);
    step_replay = NULL;
    burn_optimizer_free(step_optimizer);
    burn_module_free(step_model);
    burn_release(step_x);
    burn_release(step_y);
    burn_release(step_loss);
    step_loss = NULL;
    step_optimizer = NULL;
    step_model = NULL;
    step_x = NULL;
    step_y = NULL;
}

static burn_module *start_model(burn_device *device, burn_err *err)
{
    step_device = device;
    step_is_regression = 0;
    step_lr = 0.01;
    burn_seed(7);
    return burn_module_create(burn_device_autodiff(device), err);
}

/* Random pictures or vectors and random classes out of ten. */
static int32_t make_classes(burn_device *device, uint32_t rank, const int64_t *dims, burn_err *err)
{
    burn_scope_begin();
    step_x = burn_keep(burn_random_normal(device, BURN_F32, rank, dims));
    burn_tensor *classes = burn_random_uniform(device, BURN_F32, 1, dims);
    classes = burn_cast(burn_mul(classes, burn_scalar(10)), BURN_I64);
    step_y = burn_keep(classes);
    burn_scope_end();
    return burn_sync(device, err);
}

static int32_t add_momentum(burn_err *err)
{
    burn_sgd_opts opts;
    BURN_INIT(&opts, burn_sgd_opts);
    opts.momentum = 0.9;
    step_optimizer = burn_optimizer_sgd(step_model, &opts, err);
    return step_optimizer != NULL ? BURN_OK : err->code;
}

/* ---- one step ---------------------------------------------------------------------------- */

static void keep_loss(burn_tensor *loss)
{
    burn_tensor *kept = burn_keep(loss);
    burn_release(step_loss);
    step_loss = kept;
}

static int32_t run_step(burn_err *err)
{
    burn_scope_begin();
    burn_tensor *out = burn_forward(step_model, step_x);
    burn_tensor *loss = step_is_regression ? burn_mse_loss(out, step_y, BURN_REDUCTION_MEAN)
                                           : burn_cross_entropy(out, step_y, NULL, NULL);
    burn_grads *grads = burn_backward(loss, NULL, 0, err);
    int32_t code =
        grads != NULL ? burn_optimizer_step(step_optimizer, grads, step_lr, err) : err->code;
    burn_grads_free(grads);
    keep_loss(burn_detach(loss));
    burn_scope_end();
    return code;
}

int32_t bench_step_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t code = run_step(err);
        if (code != BURN_OK) {
            return code;
        }
    }
    return burn_sync(step_device, err);
}

int32_t bench_step_digest(uint64_t *digest, burn_err *err)
{
    int32_t code = bench_digest(step_loss, digest, err);
    const uint32_t n = burn_module_n_vars(step_model);
    for (uint32_t i = 0; i < n && code == BURN_OK; i++) {
        burn_scope_begin();
        burn_tensor *value = burn_var_get(burn_module_var_at(step_model, i, NULL, NULL));
        code = bench_digest(value, digest, err);
        burn_scope_end();
    }
    return code;
}

/* ---- one step, replayed ------------------------------------------------------------------ */

/* The second step, which is kept: what is made once was made by the first. */
static int32_t keep_step(burn_err *err)
{
    int32_t code = burn_replay_begin(step_device, err);
    if (code != BURN_OK) {
        return code;
    }
    (void)burn_replay_port(step_x);
    (void)burn_replay_port(step_y);
    code = run_step(err);
    step_replay = burn_replay_end(&step_loss, 1, err);
    return step_replay != NULL ? code : err->code;
}

static int32_t run_replay(burn_err *err)
{
    burn_tensor *const in[2] = {step_x, step_y};
    burn_tensor *loss = NULL;
    burn_scope_begin();
    int32_t code = burn_replay_run(step_replay, in, 2, &loss, 1, err);
    keep_loss(loss);
    burn_scope_end();
    burn_optimizer_replayed(step_optimizer, 1);
    return code;
}

int32_t bench_replay_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t code = step_replay != NULL ? run_replay(err)
                       : step_loss == NULL ? run_step(err)
                                           : keep_step(err);
        if (code != BURN_OK) {
            return code;
        }
    }
    return burn_sync(step_device, err);
}

/* ---- perceptron -------------------------------------------------------------------------- */

int32_t bench_mlp_setup(burn_device *device, int64_t arg, burn_err *err)
{
    burn_module *model = start_model(device, err);
    step_model = model;
    (void)burn_nn_linear(model, "fc1", 784, 128, 1, err);
    (void)burn_nn_activation(model, "act1", BURN_RELU, err);
    (void)burn_nn_linear(model, "fc2", 128, 10, 1, err);
    int32_t code = err->code != BURN_OK ? err->code : add_momentum(err);
    return code != BURN_OK ? code : make_classes(device, 2, (int64_t[]){arg, 784}, err);
}

/* ---- LeNet ------------------------------------------------------------------------------- */

int32_t bench_lenet_setup(burn_device *device, int64_t arg, burn_err *err)
{
    burn_conv_opts pad2;
    BURN_INIT(&pad2, burn_conv_opts);
    pad2.padding[0] = 2;
    pad2.padding[1] = 2;
    burn_module *model = start_model(device, err);
    step_model = model;
    (void)burn_nn_conv2d(model, "conv1", 1, 6, 5, &pad2, err);
    (void)burn_nn_activation(model, "act1", BURN_RELU, err);
    (void)burn_nn_max_pool2d(model, "pool1", 2, 2, err);
    (void)burn_nn_conv2d(model, "conv2", 6, 16, 5, NULL, err);
    (void)burn_nn_activation(model, "act2", BURN_RELU, err);
    (void)burn_nn_max_pool2d(model, "pool2", 2, 2, err);
    (void)burn_nn_flatten(model, "flat", err);
    (void)burn_nn_linear(model, "fc1", 400, 120, 1, err);
    (void)burn_nn_activation(model, "act3", BURN_RELU, err);
    (void)burn_nn_linear(model, "fc2", 120, 84, 1, err);
    (void)burn_nn_activation(model, "act4", BURN_RELU, err);
    (void)burn_nn_linear(model, "fc3", 84, 10, 1, err);
    int32_t code = err->code != BURN_OK ? err->code : add_momentum(err);
    return code != BURN_OK ? code : make_classes(device, 4, (int64_t[]){arg, 1, 28, 28}, err);
}

/* ---- transformer block ------------------------------------------------------------------- */

/* Part `which` (0 query, 1 key, 2 value) of qkv [b, s, 3 d] as [b, heads, s, d / heads]. */
static burn_tensor *head_part(burn_tensor *qkv, int64_t which)
{
    int64_t dims[4] = {burn_dim(qkv, 0), burn_dim(qkv, 1), BLOCK_HEADS, BLOCK_WIDTH / BLOCK_HEADS};
    burn_tensor *part = burn_slice(qkv, 2, which * BLOCK_WIDTH, (which + 1) * BLOCK_WIDTH, 1);
    return burn_transpose(burn_reshape(part, 4, dims), 1, 2);
}

static burn_tensor *BURN_CALL attention_forward(burn_module *module, void *user, burn_tensor *x)
{
    (void)user;
    burn_tensor *qkv = burn_forward(burn_module_find(module, "qkv"), x);
    burn_tensor *mixed =
        burn_attention(head_part(qkv, 0), head_part(qkv, 1), head_part(qkv, 2), NULL, 1, 0);
    int64_t dims[3] = {burn_dim(x, 0), burn_dim(x, 1), BLOCK_WIDTH};
    mixed = burn_reshape(burn_transpose(mixed, 1, 2), 3, dims);
    return burn_forward(burn_module_find(module, "proj"), mixed);
}

static burn_tensor *BURN_CALL block_forward(burn_module *module, void *user, burn_tensor *x)
{
    (void)user;
    if (step_in_scopes) {
        burn_recompute_begin();
    }
    burn_tensor *normed = burn_forward(burn_module_find(module, "norm1"), x);
    x = burn_add(x, burn_forward(burn_module_find(module, "attn"), normed));
    normed = burn_forward(burn_module_find(module, "norm2"), x);
    x = burn_add(x, burn_forward(burn_module_find(module, "mlp"), normed));
    if (step_in_scopes) {
        (void)burn_recompute_end(&x, 1, NULL);
    }
    return x;
}

static burn_module *build_block(burn_module *root, const char *name, burn_err *err)
{
    burn_module *block = burn_nn_custom(root, name, block_forward, NULL, err);
    (void)burn_nn_layer_norm(block, "norm1", BLOCK_WIDTH, err);
    burn_module *attn = burn_nn_custom(block, "attn", attention_forward, NULL, err);
    (void)burn_nn_linear(attn, "qkv", BLOCK_WIDTH, 3 * BLOCK_WIDTH, 1, err);
    (void)burn_nn_linear(attn, "proj", BLOCK_WIDTH, BLOCK_WIDTH, 1, err);
    (void)burn_nn_layer_norm(block, "norm2", BLOCK_WIDTH, err);
    burn_module *mlp = burn_module_child(block, "mlp", err);
    (void)burn_nn_linear(mlp, "fc1", BLOCK_WIDTH, BLOCK_HIDDEN, 1, err);
    (void)burn_nn_activation(mlp, "act", BURN_GELU, err);
    (void)burn_nn_linear(mlp, "fc2", BLOCK_HIDDEN, BLOCK_WIDTH, 1, err);
    return block;
}

static int32_t setup_blocks(burn_device *device, int64_t arg, int n_blocks, burn_err *err)
{
    burn_module *model = start_model(device, err);
    step_model = model;
    for (int i = 0; i < n_blocks; i++) {
        (void)build_block(model, (const char *const[N_DEEP]){"block", "b1", "b2", "b3"}[i], err);
    }
    if (err->code != BURN_OK) {
        return err->code;
    }
    burn_adam_opts opts;
    BURN_INIT(&opts, burn_adam_opts);
    opts.weight_decay = 0.01;
    step_optimizer = burn_optimizer_adamw(model, &opts, err);
    if (step_optimizer == NULL) {
        return err->code;
    }
    step_lr = 1e-4;
    step_is_regression = 1;
    const int64_t dims[3] = {arg, BLOCK_LENGTH, BLOCK_WIDTH};
    burn_scope_begin();
    step_x = burn_keep(burn_random_normal(device, BURN_F32, 3, dims));
    step_y = burn_keep(burn_random_normal(device, BURN_F32, 3, dims));
    burn_scope_end();
    return burn_sync(device, err);
}

int32_t bench_block_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return setup_blocks(device, arg, 1, err);
}

/* ---- four blocks, less kept -------------------------------------------------------------- */

int32_t bench_recompute_none_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return setup_blocks(device, arg, N_DEEP, err);
}

int32_t bench_recompute_balanced_setup(burn_device *device, int64_t arg, burn_err *err)
{
    int32_t code = setup_blocks(device, arg, N_DEEP, err);
    return code != BURN_OK ? code
                           : burn_device_set_recompute(device, BURN_RECOMPUTE_BALANCED, err);
}

int32_t bench_recompute_scope_setup(burn_device *device, int64_t arg, burn_err *err)
{
    step_in_scopes = 1;
    return setup_blocks(device, arg, N_DEEP, err);
}
