/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases_mem.c - ops that move more than they compute, and elementary functions.
 *
 * The size is in elements. Each iteration makes one result and releases it, so memory is reused.
 * Numbers are in [0, 1), where every function here is defined. To add one: its op, a setup function
 * of one line, and the usual places (cases.h).
 */
#include "cases.h"

#include <burn/ops.h>
#include <burn/tensor.h>

/* How the elements are laid out. Lines are what softmax and layer norm see. */
enum form { FLAT, LINES, SQUARE, TURNED };

enum { LINE = 1024 };

static burn_device *mem_device;
static burn_tensor *mem_a;
static burn_tensor *mem_b;
static burn_tensor *(*mem_op)(void);

static burn_tensor *do_mul(void)
{
    return burn_mul(mem_a, mem_b);
}

static burn_tensor *do_relu(void)
{
    return burn_relu(mem_a);
}

static burn_tensor *do_copy(void)
{
    return burn_copy(mem_a);
}

static burn_tensor *do_sum(void)
{
    return burn_sum(mem_a, 0, NULL, 0);
}

static burn_tensor *do_sum_rows(void)
{
    return burn_sum(mem_a, 1, (const int64_t[]){1}, 0);
}

static burn_tensor *do_max_rows(void)
{
    return burn_max(mem_a, 1, (const int64_t[]){1}, 0);
}

static burn_tensor *do_sum_columns(void)
{
    return burn_sum(mem_a, 1, (const int64_t[]){0}, 0);
}

static burn_tensor *do_softmax(void)
{
    return burn_softmax(mem_a, -1);
}

static burn_tensor *do_layer_norm(void)
{
    return burn_layer_norm(mem_a, NULL, NULL, 1, 1e-5);
}

static burn_tensor *do_exp(void)
{
    return burn_exp(mem_a);
}

static burn_tensor *do_log(void)
{
    return burn_log(mem_a);
}

static burn_tensor *do_tanh(void)
{
    return burn_tanh(mem_a);
}

static burn_tensor *do_erf(void)
{
    return burn_erf(mem_a);
}

static burn_tensor *do_sin(void)
{
    return burn_sin(mem_a);
}

/* The side of a square of at most n elements, a multiple of 64. */
static int64_t side_of(int64_t n)
{
    int64_t side = 64;
    while ((side + 64) * (side + 64) <= n) {
        side += 64;
    }
    return side;
}

static int32_t mem_setup(burn_device *device, int64_t n, enum form form, burn_tensor *(*op)(void),
                         burn_err *err)
{
    int64_t dims[2] = {n, LINE};
    uint32_t rank = form == FLAT ? 1 : 2;
    if (form == LINES) {
        dims[0] = n / LINE > 0 ? n / LINE : 1;
    } else if (form != FLAT) {
        dims[0] = side_of(n);
        dims[1] = dims[0];
    }
    mem_device = device;
    mem_op = op;
    burn_seed(1);
    burn_scope_begin();
    mem_a = burn_random_uniform(device, BURN_F32, rank, dims);
    mem_a = burn_keep(form == TURNED ? burn_transpose(mem_a, 0, 1) : mem_a);
    mem_b = op == do_mul ? burn_keep(burn_random_uniform(device, BURN_F32, rank, dims)) : NULL;
    burn_scope_end();
    return burn_sync(device, err);
}

int32_t bench_mul_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_mul, err);
}

int32_t bench_relu_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_relu, err);
}

int32_t bench_copy_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_copy, err);
}

int32_t bench_transpose_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, TURNED, do_copy, err);
}

int32_t bench_sum_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_sum, err);
}

int32_t bench_sum_rows_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, LINES, do_sum_rows, err);
}

int32_t bench_max_rows_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, LINES, do_max_rows, err);
}

int32_t bench_sum_columns_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, LINES, do_sum_columns, err);
}

int32_t bench_softmax_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, LINES, do_softmax, err);
}

int32_t bench_layer_norm_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, LINES, do_layer_norm, err);
}

int32_t bench_exp_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_exp, err);
}

int32_t bench_log_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_log, err);
}

int32_t bench_tanh_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_tanh, err);
}

int32_t bench_erf_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_erf, err);
}

int32_t bench_sin_setup(burn_device *device, int64_t arg, burn_err *err)
{
    return mem_setup(device, arg, FLAT, do_sin, err);
}

int32_t bench_mem_run(int64_t n, burn_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        burn_release(mem_op());
    }
    return burn_sync(mem_device, err);
}

void bench_mem_teardown(void)
{
    burn_release(mem_a);
    burn_release(mem_b);
    mem_a = NULL;
    mem_b = NULL;
}
