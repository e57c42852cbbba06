/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optim.c - what writes variables: assign, and the fused optimizer steps sgd_step and adam_step.
 *
 * Owns the three definitions. State operands are variables; each output must share the storage of
 * its variable. A decomposition computes the new values purely and the core assigns them. lr and t
 * change from step to step and are immediates; what selects code is attributes. Half precision is
 * computed in f32. To add an optimizer: one more definition with its state as BURN_ROLE_STATE.
 */
#include "ops/nn.h"

#include <math.h>
#include <string.h>

static const char step_no_vjp[] =
    "an optimizer step overwrites variables and is not recorded on the tape";

/* Every tensor operand has the parameter's shape; so have the outputs. */
static int32_t infer_state(const char *op, const burn_infer *a, const burn_role *roles,
                           uint32_t n_tensors)
{
    for (uint32_t i = 1; i < n_tensors && i < a->n_in; i++) {
        if (!burni_nn_present(a->in[i])) {
            continue;
        }
        int32_t code =
            burni_nn_check_shape(op, roles[0].name, a->in[0], roles[i].name, a->in[i], a->err);
        if (code != BURN_OK) {
            return code;
        }
    }
    for (uint32_t j = 0; j < a->n_out; j++) {
        burni_nn_copy_shape(&a->out[j], a->in[0]);
    }
    return BURN_OK;
}

/* ---- assign ---------------------------------------------------------------------------------- */

static const burn_role assign_roles[] = {
    BURNI_ROLE("var", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, BURN_SET_ANY),
    BURNI_ROLE_LIKE("value", BURN_ROLE_NO_GRAD, 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("var", BURN_ROLE_NO_GRAD, 0, BURN_SET_ANY),
};

static const burn_alias assign_aliases[] = {{0, 0, BURN_ALIAS_MUST}};

static int32_t assign_infer(const burn_infer *a)
{
    return infer_state("assign", a, assign_roles, 2);
}

static int32_t assign_eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, &a->in[1], k);
    }
    return BURN_OK;
}

static int32_t assign_samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[2] = {3, 5};
    const int64_t empty[2] = {0, 5};
    if (i > 3) {
        return BURN_E_END;
    }
    burni_sample_begin(out, i == 0 ? "matrix" : "scalar", 0.0, 0.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, i == 0 ? 2 : 0, dims);
    burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, i == 0 ? 2 : 0, dims);
    if (i == 2) {
        burni_sample_begin(out, "empty", 0.0, 0.0);
        burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 2, empty);
        burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 2, empty);
    } else if (i == 3) {
        burni_sample_begin(out, "another shape", 0.0, 0.0);
        burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 2, dims);
        burni_sample_tensor(out, 1, 0, BURN_FILL_NORMAL, 1, dims);
        burni_sample_error(out, BURN_E_SHAPE);
    }
    return BURN_OK;
}

static const burni_special assign_special[] = {
    {"matrix", "special values", 2, 0},
};

static int32_t assign_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, assign_samples, assign_special,
                                 BURNI_N_SPECIAL(assign_special));
}

const burn_op_def burn_op_def_assign = {
    BURNI_DEF(ASSIGN, assign),
    .flags = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE,
    .summary = "overwrites a variable with a value of its shape and dtype",
    .n_in = 2,
    .n_out = 1,
    .n_aliases = 1,
    .roles = assign_roles,
    .aliases = assign_aliases,
    .effect = BURN_EFFECT_STATE,
    .infer = assign_infer,
    .no_vjp = "assigning to a variable is not recorded on the tape",
    .eval = assign_eval,
    .samples = assign_all_samples,
};

/* ---- sgd_step -------------------------------------------------------------------------------- */

enum { SGD_PARAM = 0, SGD_GRAD = 1, SGD_VELOCITY = 2, SGD_LR = 3 };

static const burn_attr sgd_attrs[] = {
    BURNI_ATTR(burn_attrs_sgd, momentum, BURN_ATTR_F64, BURN_ATTR_KEY, "share of the velocity"),
    BURNI_ATTR(burn_attrs_sgd, dampening, BURN_ATTR_F64, BURN_ATTR_KEY,
               "1 - dampening scales what enters the velocity"),
    BURNI_ATTR(burn_attrs_sgd, weight_decay, BURN_ATTR_F64, BURN_ATTR_KEY,
               "times the parameter, added to the gradient"),
    BURNI_ATTR(burn_attrs_sgd, nesterov, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1 looks one step of the velocity ahead"),
    BURNI_ATTR(burn_attrs_sgd, first, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1: the velocity starts as the gradient"),
};

static const burn_role sgd_roles[] = {
    BURNI_ROLE("param", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("grad", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("velocity", BURN_ROLE_STATE | BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0,
                    BURN_SET_FLOAT),
    BURNI_ROLE("lr", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(F64)),
    BURNI_ROLE_LIKE("param", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("velocity", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
};

static const burn_alias sgd_aliases[] = {
    {SGD_PARAM, 0, BURN_ALIAS_MUST},
    {SGD_VELOCITY, 1, BURN_ALIAS_MUST},
};

static int32_t sgd_infer(const burn_infer *a)
{
    const burn_attrs_sgd *attrs = BURNI_ATTRS(a, burn_attrs_sgd);
    if (attrs == NULL) {
        return burni_no_attrs("sgd_step", a->err);
    }
    int has_velocity = burni_nn_present(a->in[SGD_VELOCITY]);
    if (!has_velocity && (attrs->momentum != 0.0 || attrs->nesterov)) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "sgd_step: momentum %g (nesterov %u) needs operand velocity; pass it, or "
                          "set momentum and nesterov to 0",
                          attrs->momentum, (unsigned)attrs->nesterov);
    }
    int32_t code = infer_state("sgd_step", a, sgd_roles, 3);
    if (!has_velocity) {
        a->out[1].rank = 1; /* no variable: an output without elements */
        a->out[1].dims[0] = 0;
    }
    return code;
}

static int32_t sgd_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_sgd *attrs = BURNI_ATTRS(a, burn_attrs_sgd);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    uint8_t dtype = a->in_meta[SGD_PARAM].dtype;
    burn_value *p = burni_nn_widen(b, a->in[SGD_PARAM]);
    burn_value *g = burni_nn_widen(b, a->in[SGD_GRAD]);
    burn_value *v = burni_nn_widen(b, a->in[SGD_VELOCITY]);
    if (attrs->weight_decay != 0.0) {
        g = burn_b_add(b, g, burn_b_mul_num(b, p, attrs->weight_decay));
    }
    burn_value *update = g;
    if (v != NULL) {
        burn_value *kept = burn_b_mul_num(b, v, attrs->momentum);
        burn_value *added = burn_b_mul_num(b, g, 1.0 - attrs->dampening);
        v = attrs->first ? g : burn_b_add(b, kept, added);
        update = v;
        if (attrs->nesterov) {
            update = burn_b_add(b, g, burn_b_mul_num(b, v, attrs->momentum));
        }
        a->out[1] = burni_nn_narrow(b, v, dtype);
    } else {
        const int64_t none[1] = {0};
        a->out[1] = burn_b_fill(b, dtype, 1, none, 0.0);
    }
    burn_value *step = burn_b_mul(b, update, a->in[SGD_LR]);
    a->out[0] = burni_nn_narrow(b, burn_b_sub(b, p, step), dtype);
    return BURN_OK;
}

static int32_t sgd_eval(const burn_eval *a)
{
    const burn_attrs_sgd *attrs = BURNI_ATTRS(a, burn_attrs_sgd);
    if (attrs == NULL) {
        return burni_no_attrs("sgd_step", a->err);
    }
    double lr = a->in[SGD_LR].f[0];
    int has_velocity = burni_nn_present(&a->in[SGD_VELOCITY].meta);
    for (uint64_t k = 0; k < a->in[SGD_PARAM].n; k++) {
        double p = a->in[SGD_PARAM].f[k];
        double g = a->in[SGD_GRAD].f[k];
        if (attrs->weight_decay != 0.0) {
            g += attrs->weight_decay * p;
        }
        double update = g;
        if (has_velocity) {
            double old = attrs->first ? 0.0 : a->in[SGD_VELOCITY].f[k];
            double v = attrs->first ? g : attrs->momentum * old + (1.0 - attrs->dampening) * g;
            update = attrs->nesterov ? g + attrs->momentum * v : v;
            a->out[1].f[k] = v;
        }
        a->out[0].f[k] = p - lr * update;
    }
    return BURN_OK;
}

typedef struct sgd_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[2];
    uint32_t has_velocity;
    double lr;
    double momentum;
    double dampening;
    double weight_decay;
    uint32_t nesterov;
    uint32_t first;
    int32_t error;
} sgd_sample;

static const sgd_sample sgd_table[] = {
    {"plain", 2, {3, 5}, 0, 0.1, 0, 0, 0, 0, 0, 0},
    {"weight decay", 1, {7}, 0, 0.01, 0, 0, 0.1, 0, 0, 0},
    {"first momentum step", 2, {3, 5}, 1, 0.1, 0.9, 0.1, 0, 0, 1, 0},
    {"momentum", 2, {3, 5}, 1, 0.1, 0.9, 0.1, 0, 0, 0, 0},
    {"nesterov with decay", 1, {131}, 1, 0.1, 0.9, 0, 0.05, 1, 0, 0},
    {"scalar", 0, {0}, 1, 0.5, 0.5, 0, 0, 0, 0, 0},
    {"empty", 2, {0, 3}, 1, 0.5, 0.5, 0, 0, 0, 0, 0},
    {"momentum without velocity", 1, {3}, 0, 0.1, 0.7, 0, 0, 0, 0, BURN_E_INVALID},
};

static int32_t sgd_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(sgd_table) / sizeof(sgd_table[0])) {
        return BURN_E_END;
    }
    const sgd_sample *s = &sgd_table[i];
    burn_attrs_sgd attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.momentum = s->momentum;
    attrs.dampening = s->dampening;
    attrs.weight_decay = s->weight_decay;
    attrs.nesterov = s->nesterov;
    attrs.first = s->first;
    burni_sample_begin(out, s->name, 8.0, 0.0);
    if (s->error != BURN_OK) {
        burni_sample_error(out, s->error);
    }
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    burni_sample_tensor(out, SGD_PARAM, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    burni_sample_tensor(out, SGD_GRAD, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    burni_sample_absent(out, SGD_VELOCITY);
    if (s->has_velocity) {
        burni_sample_tensor(out, SGD_VELOCITY, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    }
    burni_sample_immediate(out, SGD_LR, BURN_F64, s->lr);
    return BURN_OK;
}

static const burni_special sgd_step_special[] = {
    {"plain", "special values", 0, 3},
    {"nesterov with decay", "special values, nesterov", 0, 7},
};

static int32_t sgd_step_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, sgd_samples, sgd_step_special,
                                 BURNI_N_SPECIAL(sgd_step_special));
}

const burn_op_def burn_op_def_sgd_step = {
    BURNI_DEF(SGD_STEP, sgd_step),
    .summary = "one step of stochastic gradient descent, with momentum when velocity is given",
    .n_in = 4,
    .n_out = 2,
    .n_aliases = 2,
    .roles = sgd_roles,
    .attrs = sgd_attrs,
    .n_attrs = 5,
    .attrs_size = sizeof(burn_attrs_sgd),
    .aliases = sgd_aliases,
    .effect = BURN_EFFECT_STATE,
    .infer = sgd_infer,
    .no_vjp = step_no_vjp,
    .decompose = sgd_decompose,
    .eval = sgd_eval,
    .samples = sgd_step_all_samples,
};

/* ---- adam_step ------------------------------------------------------------------------------- */

enum { ADAM_PARAM = 0, ADAM_GRAD = 1, ADAM_M = 2, ADAM_V = 3, ADAM_LR = 4, ADAM_T = 5 };

static const burn_attr adam_attrs[] = {
    BURNI_ATTR(burn_attrs_adam, beta1, BURN_ATTR_F64, BURN_ATTR_KEY, "decay of the first moment"),
    BURNI_ATTR(burn_attrs_adam, beta2, BURN_ATTR_F64, BURN_ATTR_KEY, "decay of the second moment"),
    BURNI_ATTR(burn_attrs_adam, eps, BURN_ATTR_F64, BURN_ATTR_KEY, "added to the root"),
    BURNI_ATTR(burn_attrs_adam, weight_decay, BURN_ATTR_F64, BURN_ATTR_KEY, "0: none"),
    BURNI_ATTR(burn_attrs_adam, decoupled, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1 shrinks the parameter (AdamW), 0 adds the decay to the gradient"),
};

static const burn_role adam_roles[] = {
    BURNI_ROLE("param", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("grad", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("m", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("v", BURN_ROLE_STATE | BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE("lr", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(F64)),
    BURNI_ROLE("t", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(F64)),
    BURNI_ROLE_LIKE("param", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("m", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("v", BURN_ROLE_NO_GRAD, 0, BURN_SET_FLOAT),
};

static const burn_alias adam_aliases[] = {
    {ADAM_PARAM, 0, BURN_ALIAS_MUST},
    {ADAM_M, 1, BURN_ALIAS_MUST},
    {ADAM_V, 2, BURN_ALIAS_MUST},
};

static int32_t adam_infer(const burn_infer *a)
{
    const burn_attrs_adam *attrs = BURNI_ATTRS(a, burn_attrs_adam);
    if (attrs == NULL) {
        return burni_no_attrs("adam_step", a->err);
    }
    if (!(attrs->beta1 >= 0.0 && attrs->beta1 < 1.0 && attrs->beta2 >= 0.0 &&
          attrs->beta2 < 1.0)) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "adam_step: beta1 %g and beta2 %g must be at least 0 and below 1",
                          attrs->beta1, attrs->beta2);
    }
    return infer_state("adam_step", a, adam_roles, 4);
}

/* beta * old + (1 - beta) * added */
static burn_value *moving(const burn_builder *b, burn_value *old, burn_value *added, double beta)
{
    return burn_b_add(b, burn_b_mul_num(b, old, beta), burn_b_mul_num(b, added, 1.0 - beta));
}

/*
 * 1 - beta^t with x = t log(beta), as tanh(-x/2) (1 + exp(x)). In f32, 1 - 0.999 would lose half of
 * its digits; expm1 says the same but is not among the minimal ops.
 */
static burn_value *bias_correction(const burn_builder *b, burn_value *t, double beta)
{
    burn_value *x = burn_b_mul_num(b, t, log(beta));
    burn_value *half = burn_b_tanh(b, burn_b_mul_num(b, x, -0.5));
    return burn_b_mul(b, half, burn_b_add_num(b, burn_b_exp(b, x), 1.0));
}

static int32_t adam_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_adam *attrs = BURNI_ATTRS(a, burn_attrs_adam);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    uint8_t dtype = a->in_meta[ADAM_PARAM].dtype;
    uint8_t wide = burni_nn_acc_dtype(dtype);
    burn_value *lr = burni_nn_scalar(b, a->in[ADAM_LR], wide);
    burn_value *t = burni_nn_scalar(b, a->in[ADAM_T], wide);
    burn_value *p = burni_nn_widen(b, a->in[ADAM_PARAM]);
    burn_value *g = burni_nn_widen(b, a->in[ADAM_GRAD]);
    if (attrs->weight_decay != 0.0 && attrs->decoupled) {
        burn_value *kept = burn_b_mul_num(b, lr, -attrs->weight_decay);
        p = burn_b_mul(b, p, burn_b_add_num(b, kept, 1.0));
    } else if (attrs->weight_decay != 0.0) {
        g = burn_b_add(b, g, burn_b_mul_num(b, p, attrs->weight_decay));
    }
    burn_value *m = moving(b, burni_nn_widen(b, a->in[ADAM_M]), g, attrs->beta1);
    burn_value *v = moving(b, burni_nn_widen(b, a->in[ADAM_V]), burn_b_mul(b, g, g), attrs->beta2);
    burn_value *root = burn_b_sqrt(b, bias_correction(b, t, attrs->beta2));
    burn_value *size = burn_b_div(b, lr, bias_correction(b, t, attrs->beta1));
    burn_value *spread = burn_b_add_num(b, burn_b_div(b, burn_b_sqrt(b, v), root), attrs->eps);
    p = burn_b_sub(b, p, burn_b_mul(b, size, burn_b_div(b, m, spread)));
    a->out[0] = burni_nn_narrow(b, p, dtype);
    a->out[1] = burni_nn_narrow(b, m, dtype);
    a->out[2] = burni_nn_narrow(b, v, dtype);
    return BURN_OK;
}

static int32_t adam_eval(const burn_eval *a)
{
    const burn_attrs_adam *attrs = BURNI_ATTRS(a, burn_attrs_adam);
    if (attrs == NULL) {
        return burni_no_attrs("adam_step", a->err);
    }
    double lr = a->in[ADAM_LR].f[0];
    double t = a->in[ADAM_T].f[0];
    double correction1 = 1.0 - pow(attrs->beta1, t);
    double correction2 = 1.0 - pow(attrs->beta2, t);
    for (uint64_t k = 0; k < a->in[ADAM_PARAM].n; k++) {
        double p = a->in[ADAM_PARAM].f[k];
        double g = a->in[ADAM_GRAD].f[k];
        if (attrs->weight_decay != 0.0 && attrs->decoupled) {
            p *= 1.0 - lr * attrs->weight_decay;
        } else if (attrs->weight_decay != 0.0) {
            g += attrs->weight_decay * p;
        }
        double m = attrs->beta1 * a->in[ADAM_M].f[k] + (1.0 - attrs->beta1) * g;
        double v = attrs->beta2 * a->in[ADAM_V].f[k] + (1.0 - attrs->beta2) * g * g;
        double spread = sqrt(v) / sqrt(correction2) + attrs->eps;
        a->out[0].f[k] = p - lr / correction1 * m / spread;
        a->out[1].f[k] = m;
        a->out[2].f[k] = v;
    }
    return BURN_OK;
}

typedef struct adam_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[2];
    double lr;
    double t;
    double weight_decay;
    uint32_t decoupled;
} adam_sample;

static const adam_sample adam_table[] = {
    {"first step", 2, {3, 5}, 0.1, 1, 0, 0},
    {"third step", 1, {131}, 0.01, 3, 0, 0},
    {"late step", 1, {7}, 0.001, 5000, 0, 0},
    {"L2 decay", 1, {7}, 0.1, 2, 0.1, 0},
    {"decoupled decay", 1, {7}, 0.1, 2, 0.1, 1},
    {"scalar", 0, {0}, 0.1, 1, 0, 0},
    {"empty", 2, {3, 0}, 0.1, 1, 0, 0},
    {"moment of another shape", 1, {7}, 0.1, 1, 0, 0},
};

static int32_t adam_samples(uint32_t i, burn_sample *out)
{
    const uint32_t n = sizeof(adam_table) / sizeof(adam_table[0]);
    const int64_t wrong[1] = {8};
    if (i >= n) {
        return BURN_E_END;
    }
    const adam_sample *s = &adam_table[i];
    burn_attrs_adam attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.beta1 = 0.9;
    attrs.beta2 = 0.999;
    attrs.eps = 1e-8;
    attrs.weight_decay = s->weight_decay;
    attrs.decoupled = s->decoupled;
    burni_sample_begin(out, s->name, 64.0, 0.0);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    /* Away from 0: there g / |g| flips its sign with the last bit. */
    burni_sample_tensor(out, ADAM_PARAM, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    burni_sample_tensor(out, ADAM_GRAD, 0, BURN_FILL_NONZERO, s->rank, s->dims);
    burni_sample_tensor(out, ADAM_M, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    burni_sample_tensor(out, ADAM_V, 0, BURN_FILL_UNIFORM, s->rank, s->dims);
    burni_sample_range(out, ADAM_V, 0.25, 2.0);
    burni_sample_immediate(out, ADAM_LR, BURN_F64, s->lr);
    burni_sample_immediate(out, ADAM_T, BURN_F64, s->t);
    if (i == n - 1) {
        burni_sample_tensor(out, ADAM_M, 0, BURN_FILL_NORMAL, 1, wrong);
        burni_sample_error(out, BURN_E_SHAPE);
    }
    return BURN_OK;
}

static const burni_special adam_step_special[] = {
    {"third step", "special values", 0, 2},
    {"decoupled decay", "special values, decoupled decay", 0, 1},
};

static int32_t adam_step_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, adam_samples, adam_step_special,
                                 BURNI_N_SPECIAL(adam_step_special));
}

const burn_op_def burn_op_def_adam_step = {
    BURNI_DEF(ADAM_STEP, adam_step),
    .summary = "one step of Adam or AdamW with bias correction",
    .n_in = 6,
    .n_out = 3,
    .n_aliases = 3,
    .roles = adam_roles,
    .attrs = adam_attrs,
    .n_attrs = 5,
    .attrs_size = sizeof(burn_attrs_adam),
    .aliases = adam_aliases,
    .effect = BURN_EFFECT_STATE,
    .infer = adam_infer,
    .no_vjp = step_no_vjp,
    .decompose = adam_decompose,
    .eval = adam_eval,
    .samples = adam_step_all_samples,
};
