/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_lazy.c - chains of small ops, as programs write them: what a window, fusion and a replay
 * make of them.
 *
 * Each iteration is one outermost scope whose last result is kept until the next iteration, so it
 * must be computed, and nothing else must. The digest is that of the last result. To add a chain:
 * its ops, a setup function that names them, and the usual places (cases.h).
 */
#include "cases.h"
#include "digest.h"

#include <burn/ops.h>
#include <burn/replay.h>

enum { LINE = 1024, KNOWN_OPS = 64 };

static burn_device *device;
static burn_tensor *a;
static burn_tensor *b;
static burn_tensor *last;
static burn_tensor *beside; /* a second result of the last iteration */
static burn_replay *replay;
static burn_tensor *(*chain)(void);

/* ---- the chains ------------------------------------------------------------------------------ */

static burn_tensor *do_chain8(void)
{
    burn_tensor *y = burn_add(a, b);
    y = burn_mul(y, b);
    y = burn_sub(y, a);
    y = burn_relu(y);
    y = burn_maximum(y, b);
    y = burn_mul(y, a);
    y = burn_abs(y);
    return burn_add(y, b);
}

static burn_tensor *do_known(void)
{
    burn_tensor *y = a;
    for (int k = 0; k < KNOWN_OPS; k++) {
        y = burn_add(y, b);
    }
    return y;
}

static const int64_t LAST_AXIS[] = {-1};

static burn_tensor *do_softmax(void)
{
    burn_tensor *e = burn_exp(burn_sub(a, burn_max(a, 1, LAST_AXIS, 1)));
    return burn_div(e, burn_sum(e, 1, LAST_AXIS, 1));
}

static burn_tensor *do_layer_norm(void)
{
    burn_tensor *centred = burn_sub(a, burn_mean(a, 1, LAST_AXIS, 1));
    burn_tensor *variance = burn_var_of(a, 1, LAST_AXIS, 1, 0);
    return burn_div(centred, burn_sqrt(burn_add(variance, burn_scalar(1e-5))));
}

/* The gradients of relu(x + bias), where x + bias was b: dx, and its sum over the rows. */
static burn_tensor *do_bias_backward(void)
{
    burn_tensor *dx = burn_where(burn_greater(b, burn_scalar(0.0)), a, burn_scalar(0.0));
    burn_release(beside);
    beside = burn_keep(dx);
    return burn_sum(dx, 1, (const int64_t[]){0}, 0);
}

/* b lies transposed. */
static burn_tensor *do_turned(void)
{
    const int64_t dims[2] = {LINE, burn_numel(b) / LINE};
    burn_tensor *turned = burn_transpose(burn_reshape(b, 2, dims), 0, 1);
    return burn_mul(burn_relu(burn_add(a, turned)), a);
}

/* As attention and transformer blocks write them. */
static burn_tensor *do_masked_softmax(void)
{
    return burn_softmax(burn_add(burn_mul(a, burn_scalar(0.125)), b), -1);
}

static burn_tensor *do_residual_norm(void)
{
    return burn_layer_norm(burn_add(a, b), NULL, NULL, 1, 1e-5);
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static int32_t make(burn_device *on, uint32_t rank, const int64_t *dims, burn_tensor *(*fn)(void),
                    burn_err *err)
{
    device = on;
    chain = fn;
    burn_seed(1);
    burn_scope_begin();
    a = burn_keep(burn_random_normal(on, BURN_F32, rank, dims));
    b = burn_keep(burn_random_normal(on, BURN_F32, rank, dims));
    burn_scope_end();
    return burn_sync(on, err);
}

int32_t bench_chain8_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 1, &arg, do_chain8, err);
}

int32_t bench_known_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 1, &arg, do_known, err);
}

int32_t bench_softmax_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_softmax, err);
}

int32_t bench_layer_norm_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_layer_norm, err);
}

int32_t bench_bias_backward_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_bias_backward, err);
}

int32_t bench_turned_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_turned, err);
}

int32_t bench_masked_softmax_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_masked_softmax, err);
}

int32_t bench_residual_norm_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, do_residual_norm, err);
}

/* Writes the chain down, its two operands as ports. */
int32_t bench_chain8_replay_setup(burn_device *on, int64_t arg, burn_err *err)
{
    int32_t code = make(on, 1, &arg, do_chain8, err);
    code = code == BURN_OK ? burn_replay_begin(on, err) : code;
    if (code != BURN_OK) {
        return code;
    }
    burn_scope_begin();
    (void)burn_replay_port(a);
    (void)burn_replay_port(b);
    burn_tensor *out = chain();
    replay = burn_replay_end(&out, 1, err);
    burn_scope_end();
    return replay != NULL ? BURN_OK : err->code;
}

void bench_lazy_teardown(void)
{
    burn_replay_free(replay);
    replay = NULL;
    burn_tensor **const all[] = {&a, &b, &last, &beside};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        burn_release(*all[i]);
        *all[i] = NULL;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

int32_t bench_lazy_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_scope_begin();
        burn_tensor *y = burn_keep(chain());
        burn_scope_end();
        burn_release(last);
        last = y;
    }
    return burn_sync(device, err);
}

int32_t bench_lazy_replay_run(int64_t n, burn_err *err)
{
    burn_tensor *const in[2] = {a, b};
    for (int64_t i = 0; i < n; i++) {
        burn_tensor *y = NULL;
        burn_scope_begin();
        int32_t code = burn_replay_run(replay, in, 2, &y, 1, err);
        (void)burn_keep(y);
        burn_scope_end();
        burn_release(last);
        last = y;
        if (code != BURN_OK) {
            return code;
        }
    }
    return burn_sync(device, err);
}

int32_t bench_lazy_digest(uint64_t *digest, burn_err *err)
{
    return bench_digest(last, digest, err);
}
