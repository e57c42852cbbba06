/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_fused.c - ops of extensions: what a call costs, and each op of "fused" beside the ops that
 * it is made of.
 *
 * Every case comes twice: NAME is the fused op, NAME_parts the same written with core ops, as a
 * program would. The second is the first one's peer (BENCH_OWN), so their ratio is the gain.
 */
#include "cases.h"

#include <burn/ext/fused.h>
#include <burn/ops.h>
#include <math.h>

enum { LINE = 1024 };

static burn_device *device;
static burn_tensor *x;
static burn_tensor *y;
static burn_tensor *gamma_row;
static burn_tensor *beta_row;
static burn_var *param;
static burn_var *moment;
static burn_tensor *(*op)(void);
static uint64_t added_id;

static int32_t make(burn_device *on, uint32_t rank, const int64_t *dims, const char *extension,
                    burn_tensor *(*fn)(void), burn_err *err)
{
    int32_t code = burn_extension_load(extension, err);
    if (code != BURN_OK) {
        return code;
    }
    device = on;
    op = fn;
    const int64_t line = dims[rank - 1];
    burn_seed(1);
    burn_scope_begin();
    x = burn_keep(burn_random_uniform(on, BURN_F32, rank, dims));
    y = burn_keep(burn_random_uniform(on, BURN_F32, rank, dims));
    gamma_row = burn_keep(burn_random_uniform(on, BURN_F32, 1, &line));
    beta_row = burn_keep(burn_random_uniform(on, BURN_F32, 1, &line));
    burn_scope_end();
    return burn_sync(on, err);
}

void bench_fused_teardown(void)
{
    burn_tensor **const all[] = {&x, &y, &gamma_row, &beta_row};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        burn_release(*all[i]);
        *all[i] = NULL;
    }
    burn_var_release(param);
    burn_var_release(moment);
    param = NULL;
    moment = NULL;
}

int32_t bench_fused_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_scope_begin();
        int32_t code = burn_tensor_error(op(), err);
        burn_scope_end();
        if (code != BURN_OK) {
            return code;
        }
    }
    return burn_sync(device, err);
}

/* ---- a call ---------------------------------------------------------------------------------- */

int32_t bench_ext_call_setup(burn_device *on, int64_t arg, burn_err *err)
{
    added_id = burn_op_id_from_name("bench_ops.add");
    return make(on, 1, &arg, "bench_ops", NULL, err);
}

int32_t bench_product_setup(burn_device *on, int64_t arg, burn_err *err)
{
    added_id = burn_op_id_from_name("bench_ops.product");
    return make(on, 2, (int64_t[]){arg, arg}, "bench_ops", NULL, err);
}

/* As bench_add_run does it, by id. */
int32_t bench_ext_call_run(int64_t n, burn_err *err)
{
    burn_tensor *const in[2] = {x, y};
    for (int64_t i = 0; i < n; i++) {
        burn_tensor *z = NULL;
        (void)burn_op_call(NULL, added_id, NULL, 0, in, 2, &z, 1);
        burn_release(z);
    }
    return burn_sync(device, err);
}

/* ---- swiglu ---------------------------------------------------------------------------------- */

static burn_tensor *do_swiglu(void)
{
    return burn_fused_swiglu(x, y);
}

static burn_tensor *do_swiglu_parts(void)
{
    return burn_mul(burn_silu(x), y);
}

int32_t bench_swiglu_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 1, &arg, "fused", do_swiglu, err);
}

int32_t bench_swiglu_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 1, &arg, "fused", do_swiglu_parts, err);
}

/* ---- add_layer_norm -------------------------------------------------------------------------- */

static burn_tensor *do_add_norm(void)
{
    return burn_fused_add_layer_norm(x, y, gamma_row, beta_row, 1, 1e-5);
}

static burn_tensor *do_add_norm_parts(void)
{
    return burn_layer_norm(burn_add(x, y), gamma_row, beta_row, 1, 1e-5);
}

int32_t bench_add_norm_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, "fused", do_add_norm, err);
}

int32_t bench_add_norm_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg / LINE, LINE}, "fused", do_add_norm_parts, err);
}

/* ---- matmul_bias ----------------------------------------------------------------------------- */

static burn_tensor *do_relu(void)
{
    return burn_fused_matmul_bias_relu(x, y, gamma_row);
}

static burn_tensor *do_relu_parts(void)
{
    return burn_relu(burn_add(burn_matmul(x, y), gamma_row));
}

static burn_tensor *do_gelu(void)
{
    return burn_fused_matmul_bias_gelu(x, y, gamma_row, 0);
}

static burn_tensor *do_gelu_parts(void)
{
    return burn_gelu(burn_add(burn_matmul(x, y), gamma_row), 0);
}

int32_t bench_matmul_relu_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg, arg}, "fused", do_relu, err);
}

int32_t bench_matmul_relu_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg, arg}, "fused", do_relu_parts, err);
}

int32_t bench_matmul_gelu_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg, arg}, "fused", do_gelu, err);
}

int32_t bench_matmul_gelu_parts_setup(burn_device *on, int64_t arg, burn_err *err)
{
    return make(on, 2, (int64_t[]){arg, arg}, "fused", do_gelu_parts, err);
}

/* ---- lion_step ------------------------------------------------------------------------------- */

int32_t bench_lion_setup(burn_device *on, int64_t arg, burn_err *err)
{
    int32_t code = make(on, 1, &arg, "fused", NULL, err);
    if (code == BURN_OK) {
        param = burn_var_create(on, x, err);
        moment = burn_var_create(on, y, err);
        code = err->code;
    }
    return code;
}

int32_t bench_lion_run(int64_t n, burn_err *err)
{
    int32_t code = BURN_OK;
    for (int64_t i = 0; i < n && code == BURN_OK; i++) {
        burn_scope_begin();
        code = burn_fused_lion_step(param, y, moment, 1e-4, 0.9, 0.99, 0.01, err);
        burn_scope_end();
    }
    return code == BURN_OK ? burn_sync(device, err) : code;
}

static burn_tensor *mixed(burn_tensor *m, double beta)
{
    return burn_add(burn_mul(m, burn_scalar(beta)), burn_mul(y, burn_scalar(1.0 - beta)));
}

int32_t bench_lion_parts_run(int64_t n, burn_err *err)
{
    int32_t code = BURN_OK;
    for (int64_t i = 0; i < n && code == BURN_OK; i++) {
        burn_scope_begin();
        burn_tensor *p = burn_var_get(param);
        burn_tensor *m = burn_var_get(moment);
        burn_tensor *step = burn_add(burn_sign(mixed(m, 0.9)), burn_mul(p, burn_scalar(0.01)));
        burn_tensor *next = burn_sub(p, burn_mul(step, burn_scalar(1e-4)));
        burn_tensor *next_m = mixed(m, 0.99);
        code = burn_var_assign(param, next, err);
        code = code == BURN_OK ? burn_var_assign(moment, next_m, err) : code;
        burn_scope_end();
    }
    return code == BURN_OK ? burn_sync(device, err) : code;
}
