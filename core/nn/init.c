/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * init.c - initial values of parameters. Formulas: Burn's initializers (Kaiming and Xavier as in
 * He et al. 2015 and Glorot & Bengio 2010). To add a kind: its number in <burn/nn.h>, its name in
 * check, its formula in burn_nn_init.
 */
#include <burn/nn.h>

#include "tensor/tensor.h"

#include <math.h>

static burn_tensor *uniform(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                            double low, double high)
{
    burn_tensor *u = burn_random_uniform(device, dtype, rank, dims);
    return burn_add(burn_mul(u, burn_scalar(high - low)), burn_scalar(low));
}

static burn_tensor *normal(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                           double mean, double deviation)
{
    burn_tensor *z = burn_random_normal(device, dtype, rank, dims);
    return burn_add(burn_mul(z, burn_scalar(deviation)), burn_scalar(mean));
}

/* NULL, or a failed tensor when there is no such kind or what it divides by is not there. */
static burn_tensor *check(uint32_t kind, int64_t fan_in, int64_t fan_out)
{
    int xavier = kind == BURN_INIT_XAVIER_UNIFORM || kind == BURN_INIT_XAVIER_NORMAL;
    int kaiming = kind == BURN_INIT_KAIMING_UNIFORM || kind == BURN_INIT_KAIMING_NORMAL;
    burni_thread *thread = burni_thread_get();
    if (kind > BURN_INIT_XAVIER_NORMAL) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0,
                                 "init: %u is no kind; there are BURN_INIT_CONSTANT, "
                                 "BURN_INIT_UNIFORM, BURN_INIT_NORMAL, BURN_INIT_KAIMING_UNIFORM, "
                                 "BURN_INIT_KAIMING_NORMAL, BURN_INIT_XAVIER_UNIFORM and "
                                 "BURN_INIT_XAVIER_NORMAL",
                                 kind);
    }
    if ((kaiming || xavier) && fan_in < 1) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0,
                                 "init: fan_in is %lld; kaiming and xavier divide by it, so it "
                                 "must be at least 1: the number of inputs of one output",
                                 (long long)fan_in);
    }
    if (xavier && fan_out < 1) {
        return burni_handle_fail(thread, BURN_E_INVALID, 0,
                                 "init: fan_out is %lld; xavier divides by it, so it must be at "
                                 "least 1: the number of outputs of one input",
                                 (long long)fan_out);
    }
    return NULL;
}

burn_tensor *burn_nn_init(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                          uint32_t kind, double a, double b, int64_t fan_in, int64_t fan_out)
{
    double kaiming = a / sqrt((double)fan_in);
    double xavier = a * sqrt(2.0 / ((double)fan_in + (double)fan_out));
    double root3 = sqrt(3.0);
    burn_tensor *wrong = check(kind, fan_in, fan_out);
    if (wrong != NULL) {
        return wrong;
    }
    burn_scope_begin();
    burn_tensor *t;
    switch (kind) {
    case BURN_INIT_UNIFORM:
        t = uniform(device, dtype, rank, dims, a, b);
        break;
    case BURN_INIT_NORMAL:
        t = normal(device, dtype, rank, dims, a, b);
        break;
    case BURN_INIT_KAIMING_UNIFORM:
        t = uniform(device, dtype, rank, dims, -root3 * kaiming, root3 * kaiming);
        break;
    case BURN_INIT_KAIMING_NORMAL:
        t = normal(device, dtype, rank, dims, 0.0, kaiming);
        break;
    case BURN_INIT_XAVIER_UNIFORM:
        t = uniform(device, dtype, rank, dims, -root3 * xavier, root3 * xavier);
        break;
    case BURN_INIT_XAVIER_NORMAL:
        t = normal(device, dtype, rank, dims, 0.0, xavier);
        break;
    default:
        t = burn_full(device, dtype, rank, dims, burn_scalar(a));
        break;
    }
    return burn_scope_return(t);
}
