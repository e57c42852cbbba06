/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * init.c - initial values of parameters. Formulas: Burn's initializers (Kaiming and Xavier as in
 * He et al. 2015 and Glorot & Bengio 2010).
 */
#include <burn/nn.h>
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

burn_tensor *burn_nn_init(burn_device *device, uint8_t dtype, uint32_t rank, const int64_t *dims,
                          uint32_t kind, double a, double b, int64_t fan_in, int64_t fan_out)
{
    double kaiming = a / sqrt((double)(fan_in > 0 ? fan_in : 1));
    int64_t fans = fan_in + fan_out;
    double xavier = a * sqrt(2.0 / (double)(fans > 0 ? fans : 1));
    double root3 = sqrt(3.0);
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
