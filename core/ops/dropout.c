/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * dropout.c - dropout: x * (u >= p) / (1 - p), with u drawn from a reserved counter range.
 *
 * Owns one definition. Seed, counter and p are immediates. The gradient is the same op on the
 * output's gradient with the same range, so nothing is stored. u is compared with p in f32; p = 1
 * gives 0 (u is below 1), and what is dropped is exactly 0, also when x is not finite. To add a
 * relative (alpha dropout, drop path): one more definition with its own scale.
 */
#include "base/alloc.h"
#include "ops/nn.h"

#include <string.h>

static const burn_role dropout_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE("p", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(F64)),
    BURNI_ROLE("seed", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(U64)),
    BURNI_ROLE("counter", BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD, BURN_BIT(U64)),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t dropout_saves[] = {
    BURN_SAVE_IN(1) | BURN_SAVE_IN(2) | BURN_SAVE_IN(3),
    0,
    0,
    0,
};

static int32_t dropout_infer(const burn_infer *a)
{
    return burni_infer_same(a);
}

static int32_t dropout_vjp(const burn_builder *b, const burn_vjp *a)
{
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = NULL;
    }
    if (a->grad_out[0] != NULL && a->wanted[0]) {
        burn_value *in[4] = {a->grad_out[0], a->in[1], a->in[2], a->in[3]};
        a->grad_in[0] = burn_b_emit(b, BURN_OP_DROPOUT, NULL, in, 4);
    }
    return BURN_OK;
}

static burn_attrs_shape uniform_attrs(const burn_meta *x)
{
    burn_attrs_shape attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.n_dims = x->rank;
    attrs.dtype = BURN_F32;
    memcpy(attrs.dims, x->dims, x->rank * sizeof(x->dims[0]));
    return attrs;
}

static int32_t dropout_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_meta *meta = &a->in_meta[0];
    uint8_t wide = burni_nn_acc_dtype(meta->dtype);
    burn_attrs_shape attrs = uniform_attrs(meta);
    burn_value *range[2] = {a->in[2], a->in[3]};
    burn_value *u = burn_b_emit(b, BURN_OP_RANDOM_UNIFORM, &attrs, range, 2);
    burn_value *p = burni_nn_scalar(b, a->in[1], wide);
    burn_value *keep = burn_b_greater_equal(b, u, a->in[1]);
    burn_value *kept_share = burn_b_add_num(b, burn_b_neg(b, p), 1.0);
    burn_value *y = burn_b_div(b, burni_nn_widen(b, a->in[0]), kept_share);
    y = burn_b_where(b, keep, y, b->immediate(b->ctx, wide, 0.0));
    a->out[0] = burni_nn_narrow(b, y, meta->dtype);
    return BURN_OK;
}

/* The numbers that random_uniform gives for this range, by its own definition. */
static int32_t eval_uniform(const burn_eval *a, double *values)
{
    burn_attrs_shape attrs = uniform_attrs(&a->in[0].meta);
    burn_eval_operand in[2] = {a->in[2], a->in[3]};
    burn_eval_operand out = a->in[0];
    out.meta.dtype = BURN_F32;
    out.f = values;
    burn_eval e = {(uint32_t)sizeof(e), 2, 1, (uint32_t)sizeof(attrs), in, &out, &attrs, a->err};
    return burn_op_def_random_uniform.eval(&e);
}

static int32_t dropout_eval(const burn_eval *a)
{
    uint64_t n = a->in[0].n;
    if (n == 0) {
        return BURN_OK;
    }
    double *u = burni_calloc(n, sizeof(*u));
    if (u == NULL) {
        return burni_fail(a->err, BURN_E_NO_MEMORY, "dropout: no memory for %llu numbers",
                          (unsigned long long)n);
    }
    int32_t code = eval_uniform(a, u);
    double p = a->in[1].f[0];
    double bound = (double)(float)p;
    for (uint64_t k = 0; k < n && code == BURN_OK; k++) {
        a->out[0].f[k] = u[k] >= bound ? a->in[0].f[k] / (1.0 - p) : 0.0;
    }
    burni_free(u);
    return code;
}

typedef struct dropout_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[3];
    double p;
    double seed;
    double counter;
} dropout_sample;

static const dropout_sample dropout_table[] = {
    {"half", 2, {7, 9}, 0.5, 42, 0},
    {"a tenth", 3, {2, 3, 5}, 0.1, 1, 1000},
    {"nothing dropped", 1, {11}, 0.0, 3, 5},
    {"all dropped", 1, {11}, 1.0, 3, 5},
    {"one element", 0, {0}, 0.25, 7, 1},
    {"empty", 2, {3, 0}, 0.5, 7, 1},
};

static int32_t dropout_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(dropout_table) / sizeof(dropout_table[0])) {
        return BURN_E_END;
    }
    const dropout_sample *s = &dropout_table[i];
    burni_sample_begin(out, s->name, 4.0, 64.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    burni_sample_immediate(out, 1, BURN_F64, s->p);
    burni_sample_immediate(out, 2, BURN_U64, s->seed);
    burni_sample_immediate(out, 3, BURN_U64, s->counter);
    return BURN_OK;
}

static const burni_special dropout_special[] = {
    {"half", "special values", 1, 0},
};

static int32_t dropout_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, dropout_samples, dropout_special,
                                 BURNI_N_SPECIAL(dropout_special));
}

const burn_op_def burn_op_def_dropout = {
    BURNI_DEF(DROPOUT, dropout),
    .summary = "drops elements with probability p and divides the others by 1 - p",
    .n_in = 4,
    .n_out = 1,
    .roles = dropout_roles,
    .flags = BURN_OP_LIGHT,
    .effect = BURN_EFFECT_RANDOM,
    .fuse = BURN_FUSE_GENERATE,
    .infer = dropout_infer,
    .vjp = dropout_vjp,
    .vjp_saves = dropout_saves,
    .decompose = dropout_decompose,
    .eval = dropout_eval,
    .samples = dropout_all_samples,
};
