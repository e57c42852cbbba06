/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_lion_step.c - fused.lion_step: one step of the optimizer Lion on a variable and its moment.
 *
 * Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2. Owns the
 * definition. The parameter and the moment are states: the op overwrites them, and each output is
 * its new value. The rate changes from step to step and is an operand; what selects code is not.
 */
#include "fused_plugin.h"

#include <math.h>

enum { PARAM = 0, GRAD = 1, MOMENT = 2, RATE = 3 };

static const char name[] = "fused.lion_step";

static int32_t infer(const burn_infer *a)
{
    const burn_fused_attrs_lion *attrs = BURN_ATTRS_OF(a, burn_fused_attrs_lion);
    int fine = attrs != NULL && attrs->beta1 >= 0.0 && attrs->beta1 < 1.0 && attrs->beta2 >= 0.0 &&
               attrs->beta2 < 1.0 && attrs->weight_decay >= 0.0;
    if (!fine) {
        return burn_plugin_fail(a->err, BURN_E_INVALID,
                                "%s: beta1 %g and beta2 %g must be at least 0 and below 1, "
                                "weight_decay %g at least 0",
                                name, attrs != NULL ? attrs->beta1 : 0.0,
                                attrs != NULL ? attrs->beta2 : 0.0,
                                attrs != NULL ? attrs->weight_decay : 0.0);
    }
    int32_t code = burn_check_same_shape(name, "param", a->in[PARAM], "grad", a->in[GRAD], a->err);
    if (code == BURN_OK) {
        code = burn_check_same_shape(name, "param", a->in[PARAM], "m", a->in[MOMENT], a->err);
    }
    burn_meta_copy_shape(&a->out[0], a->in[PARAM]);
    burn_meta_copy_shape(&a->out[1], a->in[PARAM]);
    return code;
}

/* beta * m + (1 - beta) * g */
static burn_value *mixed(const burn_builder *b, burn_value *m, burn_value *g, double beta)
{
    return burn_b_add(b, burn_b_mul_num(b, m, beta), burn_b_mul_num(b, g, 1.0 - beta));
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_fused_attrs_lion *attrs = (const burn_fused_attrs_lion *)a->attrs;
    uint8_t dtype = a->in_meta[PARAM].dtype;
    burn_value *p = fused_widen(b, a->in[PARAM]);
    burn_value *g = fused_widen(b, a->in[GRAD]);
    burn_value *m = fused_widen(b, a->in[MOMENT]);
    burn_value *step = burn_b_sign(b, mixed(b, m, g, attrs->beta1));
    if (attrs->weight_decay != 0.0) {
        step = burn_b_add(b, step, burn_b_mul_num(b, p, attrs->weight_decay));
    }
    p = burn_b_sub(b, p, burn_b_mul(b, step, a->in[RATE]));
    a->out[0] = fused_narrow(b, p, dtype);
    a->out[1] = fused_narrow(b, mixed(b, m, g, attrs->beta2), dtype);
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    const burn_fused_attrs_lion *attrs = (const burn_fused_attrs_lion *)a->attrs;
    double lr = a->in[RATE].f[0];
    for (uint64_t k = 0; k < a->in[PARAM].n; k++) {
        double p = a->in[PARAM].f[k];
        double g = a->in[GRAD].f[k];
        double m = a->in[MOMENT].f[k];
        double c = attrs->beta1 * m + (1.0 - attrs->beta1) * g;
        double sign = (double)((c > 0.0) - (c < 0.0));
        a->out[0].f[k] = p - lr * (sign + attrs->weight_decay * p);
        a->out[1].f[k] = attrs->beta2 * m + (1.0 - attrs->beta2) * g;
    }
    return BURN_OK;
}

typedef struct lion_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[2];
    double lr;
    double beta1;
    double weight_decay;
    uint32_t wrong; /* the gradient has another shape */
    int32_t error;
    uint32_t special; /* 1: NaN, infinities and the like as gradients; 2: zeros */
} lion_sample;

static const lion_sample table[] = {
    {"plain", 2, {3, 5}, 0.1, 0.9, 0.0, 0, 0, 0},
    {"weight decay", 1, {17}, 0.01, 0.9, 0.1, 0, 0, 0},
    {"several vectors", 1, {513}, 0.125, 0.5, 0.25, 0, 0, 0},
    {"scalar", 0, {0}, 0.5, 0.9, 0.0, 0, 0, 0},
    {"empty", 2, {0, 3}, 0.5, 0.9, 0.0, 0, 0, 0},
    {"beta out of range", 1, {3}, 0.1, 1.0, 0.0, 0, BURN_E_INVALID, 0},
    {"a gradient of another shape", 2, {3, 5}, 0.1, 0.9, 0.0, 1, BURN_E_SHAPE, 0},
    {"special gradients", 1, {67}, 0.1, 0.9, 0.1, 0, 0, 1},
    {"zeros as gradients", 1, {19}, 0.1, 0.9, 0.1, 0, 0, 2},
};

static const double zeros[] = {0.0, -0.0, (double)NAN, 0.0};

static int32_t samples(uint32_t i, burn_sample *out)
{
    if (i >= BURN_COUNT(table)) {
        return BURN_E_END;
    }
    const lion_sample *s = &table[i];
    burn_fused_attrs_lion a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.beta1 = s->beta1;
    a.beta2 = 0.99;
    a.weight_decay = s->weight_decay;
    burn_sample_begin(out, s->name, 8.0, 0.0);
    burn_sample_attrs(out, &a, (uint32_t)sizeof(a));
    burn_sample_tensor(out, PARAM, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    /* Away from 0, with the moment's share smaller: rounding must not turn a sign. */
    burn_sample_tensor(out, GRAD, 0, BURN_FILL_NONZERO, s->wrong ? 1 : s->rank, s->dims);
    burn_sample_tensor(out, MOMENT, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    if (s->special == 1) {
        out->in[GRAD].fill = BURN_FILL_SPECIAL;
        out->in[MOMENT].fill = BURN_FILL_NONZERO;
    } else if (s->special == 2) {
        fused_sample_values(out, GRAD, (uint32_t)BURN_COUNT(zeros), zeros);
        fused_sample_values(out, MOMENT, 2, zeros);
    }
    burn_sample_number(out, RATE, BURN_F64, s->lr);
    if (s->error != BURN_OK) {
        burn_sample_error(out, s->error);
    }
    return BURN_OK;
}

static const burn_role roles[] = {
    BURN_ROLE("param", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("grad", BURN_ROLE_NO_GRAD, PARAM, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("m", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, PARAM, BURN_SET_FLOAT),
    BURN_ROLE("lr", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(F64)),
    BURN_ROLE_LIKE("param", BURN_ROLE_NO_GRAD, PARAM, BURN_SET_FLOAT),
    BURN_ROLE_LIKE("m", BURN_ROLE_NO_GRAD, MOMENT, BURN_SET_FLOAT),
};

static const burn_alias aliases[] = {
    {PARAM, 0, BURN_ALIAS_MUST},
    {MOMENT, 1, BURN_ALIAS_MUST},
};

static const burn_attr attrs_rows[] = {
    BURN_ATTR_ROW(burn_fused_attrs_lion, beta1, BURN_ATTR_F64, BURN_ATTR_KEY,
                  "share of the moment in the step's sign"),
    BURN_ATTR_ROW(burn_fused_attrs_lion, beta2, BURN_ATTR_F64, BURN_ATTR_KEY,
                  "decay of the moment"),
    BURN_ATTR_ROW(burn_fused_attrs_lion, weight_decay, BURN_ATTR_F64, BURN_ATTR_KEY, "0: none"),
};

const burn_op_def fused_def_lion_step = {
    .name = "fused.lion_step",
    .summary = "one step of the optimizer Lion: the sign of a mixed gradient, with weight decay",
    .n_in = 4,
    .n_out = 2,
    .n_aliases = 2,
    .roles = roles,
    .attrs = attrs_rows,
    .n_attrs = 3,
    .attrs_size = sizeof(burn_fused_attrs_lion),
    .aliases = aliases,
    .effect = BURN_EFFECT_STATE,
    .infer = infer,
    .no_vjp = "an optimizer step overwrites variables and is not recorded on the tape",
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
};
