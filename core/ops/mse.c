/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mse.c - mse_loss: the squared difference, reduced.
 *
 * Owns one definition. Shapes must be equal: a loss that broadcasts hides a missing axis. Half
 * precision is computed in f32. To add a loss of two equal shapes: a file like this one.
 */
#include "ops/loss.h"

static const burn_role mse_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("loss", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t mse_saves[] = {
    BURN_SAVE_IN(0) | BURN_SAVE_IN(1),
    BURN_SAVE_IN(0) | BURN_SAVE_IN(1),
};

static int32_t mse_infer(const burn_infer *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return burni_no_attrs("mse_loss", a->err);
    }
    int32_t code = check_reduction("mse_loss", attrs, a->err);
    if (code == BURN_OK) {
        code = burni_nn_check_shape("mse_loss", "x", a->in[0], "y", a->in[1], a->err);
    }
    loss_shape(&a->out[0], a->in[0], attrs->reduction);
    return code;
}

static int32_t mse_vjp(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    a->grad_in[0] = NULL;
    a->grad_in[1] = NULL;
    if (attrs == NULL || a->grad_out[0] == NULL) {
        return attrs == NULL ? BURN_E_INVALID : BURN_OK;
    }
    uint8_t dtype = a->in_meta[0].dtype;
    int64_t n = burni_nn_numel(&a->in_meta[0]);
    double factor = attrs->reduction == BURN_REDUCTION_MEAN && n > 0 ? 2.0 / (double)n : 2.0;
    burn_value *x = burni_nn_widen(b, a->in[0]);
    burn_value *y = burni_nn_widen(b, a->in[1]);
    burn_value *g = burni_nn_widen(b, a->grad_out[0]);
    /* g is most often one number: the factor goes there. */
    burn_value *gx = burn_b_mul(b, burn_b_sub(b, x, y), burn_b_mul_num(b, g, factor));
    gx = burni_nn_narrow(b, gx, dtype);
    a->grad_in[0] = a->wanted[0] ? gx : NULL;
    a->grad_in[1] = a->wanted[1] ? burn_b_neg(b, gx) : NULL;
    return BURN_OK;
}

static int32_t mse_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    burn_value *d = burn_b_sub(b, burni_nn_widen(b, a->in[0]), burni_nn_widen(b, a->in[1]));
    burn_value *loss = reduce_loss(b, burn_b_mul(b, d, d), attrs->reduction);
    a->out[0] = burni_nn_narrow(b, loss, a->in_meta[0].dtype);
    return BURN_OK;
}

static int32_t mse_eval(const burn_eval *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return burni_no_attrs("mse_loss", a->err);
    }
    double sum = 0.0;
    for (uint64_t k = 0; k < a->in[0].n; k++) {
        double d = a->in[0].f[k] - a->in[1].f[k];
        sum += d * d;
        if (attrs->reduction == BURN_REDUCTION_NONE) {
            a->out[0].f[k] = d * d;
        }
    }
    if (attrs->reduction != BURN_REDUCTION_NONE) {
        double divisor = attrs->reduction == BURN_REDUCTION_MEAN ? (double)a->in[0].n : 1.0;
        a->out[0].f[0] = sum / divisor;
    }
    return BURN_OK;
}

static int32_t mse_samples(uint32_t i, burn_sample *out)
{
    static const char *const names[] = {"mean", "sum", "none", "no elements", "shapes differ"};
    const int64_t dims[2] = {5, 7};
    const int64_t empty[2] = {0, 7};
    burn_attrs_loss attrs;
    if (i >= sizeof(names) / sizeof(names[0])) {
        return BURN_E_END;
    }
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.reduction = i < 3 ? i : BURN_REDUCTION_MEAN;
    burni_sample_begin(out, names[i], 32.0, 256.0);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 2, i == 3 ? empty : dims);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, i == 4 ? 1 : 2, i == 3 ? empty : dims);
    if (i == 3) {
        out->flags |= BURN_SAMPLE_NO_GRAD; /* the mean of nothing is NaN */
    } else if (i == 4) {
        burni_sample_error(out, BURN_E_SHAPE);
    }
    return BURN_OK;
}

static const burni_special mse_loss_special[] = {
    {"none", "special values", 0, 3},
    {"mean", "special values, mean", 0, 3},
    {"sum", "special values, sum", 0, 1},
};

static int32_t mse_loss_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, mse_samples, mse_loss_special,
                                 BURNI_N_SPECIAL(mse_loss_special));
}

const burn_op_def burn_op_def_mse_loss = {
    BURNI_DEF(MSE_LOSS, mse_loss),
    .summary = "(x - y)^2, reduced",
    .n_in = 2,
    .n_out = 1,
    .roles = mse_roles,
    .fuse = BURN_FUSE_REDUCE,
    .attrs = loss_attrs,
    .n_attrs = N_LOSS_ATTRS,
    .attrs_size = sizeof(burn_attrs_loss),
    .infer = mse_infer,
    .vjp = mse_vjp,
    .vjp_saves = mse_saves,
    .decompose = mse_decompose,
    .eval = mse_eval,
    .samples = mse_loss_all_samples,
};
