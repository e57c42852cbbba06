/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_ops_nn.c - the composite definitions: softmax, norms, attention, dropout, losses, optimizer
 * steps. Eval, decomposition and gradient are compared with values of PyTorch
 * (tests/data/nn_values.h) and with reported faults (names with B and a number). Nothing here needs
 * a device; test_ops_samples.c tries the samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../data/nn_values.h"
#include "eval_builder.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <burn/call.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EXACT 1e-12

/* Each op is run by its eval and by its decomposition. */
enum { BY_EVAL = 0, BY_DECOMPOSITION = 1 };

/* ---- help ------------------------------------------------------------------------------------ */

static burn_value *tensor(eval_builder *e, uint32_t rank, const int64_t *dims, const double *x)
{
    return eval_tensor(e, BURN_F64, rank, dims, x);
}

static void expect_values(const burn_value *v, const double *wanted, size_t n, double allowed)
{
    assert_int_equal(eval_of(v)->code, BURN_OK);
    assert_int_equal(eval_of(v)->x.n, n);
    for (size_t k = 0; k < n; k++) {
        double got = eval_at(v, k);
        if (isnan(wanted[k])) {
            assert_true(isnan(got));
        } else if (fabs(got - wanted[k]) > allowed * fmax(1.0, fabs(wanted[k]))) {
            print_error("element %zu is %.17g, wanted %.17g\n", k, got, wanted[k]);
            fail();
        }
    }
}

#define EXPECT(v, wanted) expect_values(v, wanted, COUNT(wanted), EXACT)

static int32_t run(eval_builder *e, int how, const burn_op_def *def, const void *attrs,
                   burn_value *const *in, burn_value **out)
{
    uint32_t size = attrs != NULL ? ((const burn_attrs_head *)attrs)->size : 0;
    if (how == BY_EVAL) {
        return eval_run(e, def, attrs, size, in, def->n_in, out);
    }
    return eval_expand(e, def, attrs, size, in, def->n_in, out);
}

/* Gradients of all inputs for the gradient `seed` of output 0. */
static void gradients(eval_builder *e, const burn_op_def *def, const void *attrs,
                      burn_value *const *in, burn_value *const *out, burn_value *seed,
                      burn_value **grads)
{
    burn_builder b = eval_builder_of(e);
    burn_value *seeds[4] = {seed, NULL, NULL, NULL};
    burn_meta metas[8];
    uint8_t wanted[8] = {0};
    memset(metas, 0, sizeof(metas));
    for (uint32_t i = 0; i < def->n_in; i++) {
        if (in[i] != NULL) {
            metas[i] = eval_of(in[i])->x.meta;
        }
        wanted[i] = in[i] != NULL && (def->roles[i].flags & BURN_ROLE_NO_GRAD) == 0 &&
                    burn_dtype_class(metas[i].dtype) == BURN_CLASS_FLOAT;
    }
    burn_vjp a = {sizeof(a), def->n_in, def->n_out, attrs != NULL
                                                        ? ((const burn_attrs_head *)attrs)->size
                                                        : 0,
                  in, out, seeds, wanted, metas, grads, attrs};
    assert_int_equal(def->vjp(&b, &a), BURN_OK);
}

static burn_attrs_norm norm_attrs(double eps, uint32_t n_axes, uint32_t training)
{
    burn_attrs_norm attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.eps = eps;
    attrs.n_axes = n_axes;
    attrs.training = training;
    return attrs;
}

static burn_attrs_attention attention_attrs(double scale, uint32_t causal)
{
    burn_attrs_attention attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.scale = scale;
    attrs.causal = causal;
    return attrs;
}

static burn_attrs_loss loss_attrs(uint32_t reduction, int64_t ignore, double smoothing)
{
    burn_attrs_loss attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.reduction = reduction;
    attrs.ignore_index = ignore;
    attrs.label_smoothing = smoothing;
    return attrs;
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void softmax_against_torch(const burn_op_def *def, const double *y, const double *gx)
{
    const int64_t dims[3] = {2, 3, 4};
    burn_attrs_axis attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.axis = 1;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[1] = {tensor(e, 3, dims, softmax_x)};
        burn_value *out[1];
        burn_value *grads[1];
        assert_int_equal(run(e, how, def, &attrs, in, out), BURN_OK);
        expect_values(out[0], y, 24, EXACT);
        gradients(e, def, &attrs, in, out, tensor(e, 3, dims, softmax_g), grads);
        expect_values(grads[0], gx, 24, EXACT);
        eval_builder_free(e);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    softmax_against_torch(&burn_op_def_softmax, softmax_y, softmax_gx);
    softmax_against_torch(&burn_op_def_log_softmax, log_softmax_y, log_softmax_gx);
}

static void test_B068_softmax_of_minus_infinity(void **state)
{
    (void)state;
    const int64_t dims[2] = {2, 3};
    const double x[6] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 0.0, -HUGE_VAL, 0.0};
    const double nan = (double)NAN;
    const double wanted[6] = {nan, nan, nan, 0.5, 0.0, 0.5};
    burn_attrs_axis attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.axis = 1;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[1] = {tensor(e, 2, dims, x)};
        burn_value *out[1];
        assert_int_equal(run(e, how, &burn_op_def_softmax, &attrs, in, out), BURN_OK);
        EXPECT(out[0], wanted);
        eval_builder_free(e);
    }
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void test_layer_norm(void **state)
{
    (void)state;
    const int64_t dims[3] = {3, 2, 4};
    burn_attrs_norm attrs = norm_attrs(1e-3, 2, 0);
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[3] = {tensor(e, 3, dims, layer_norm_x),
                             tensor(e, 2, dims + 1, layer_norm_gamma),
                             tensor(e, 2, dims + 1, layer_norm_beta)};
        burn_value *g = tensor(e, 3, dims, layer_norm_g);
        burn_value *grad_in[3] = {in[0], in[1], g};
        burn_value *out[3];
        burn_value *grads[3];
        assert_int_equal(run(e, how, &burn_op_def_layer_norm, &attrs, in, out), BURN_OK);
        EXPECT(out[0], layer_norm_y);
        gradients(e, &burn_op_def_layer_norm, &attrs, in, out, g, grads);
        EXPECT(grads[0], layer_norm_gx);
        EXPECT(grads[1], layer_norm_ggamma);
        EXPECT(grads[2], layer_norm_gbeta);
        assert_int_equal(run(e, how, &burn_op_def_layer_norm_grad, &attrs, grad_in, out), BURN_OK);
        EXPECT(out[0], layer_norm_gx);
        eval_builder_free(e);
    }
}

/* Layer norm over the last axis of [rows, n] in one dtype. */
static burn_value *plain_layer_norm(eval_builder *e, int how, uint8_t dtype, int64_t rows,
                                    int64_t n, const double *x, double eps)
{
    const int64_t dims[2] = {rows, n};
    burn_attrs_norm attrs = norm_attrs(eps, 1, 0);
    burn_value *in[3] = {eval_tensor(e, dtype, 2, dims, x), NULL, NULL};
    burn_value *out[1] = {NULL};
    assert_int_equal(run(e, how, &burn_op_def_layer_norm, &attrs, in, out), BURN_OK);
    assert_int_equal(eval_of(out[0])->x.meta.dtype, dtype);
    return out[0];
}

static void test_B060_layer_norm_with_a_large_mean(void **state)
{
    (void)state;
    const double rows[8] = {40000, 40001, 40002, 40003, 80000, 80001, 80002, 80003};
    const double wanted[8] = {-1.341635, -0.447212, 0.447212, 1.341635,
                              -1.341635, -0.447212, 0.447212, 1.341635};
    const double means[4] = {0, 100, 1000, 10000};
    const double first[4] = {-1.341641, -1.341528, -1.341508, -1.331333};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        expect_values(plain_layer_norm(e, how, BURN_F32, 2, 4, rows, 1e-5), wanted, 8, 1e-4);
        for (int i = 0; i < 4; i++) {
            double x[16];
            for (int k = 0; k < 16; k++) {
                x[k] = means[i] + 0.001 * k;
            }
            burn_value *y = plain_layer_norm(e, how, BURN_F32, 1, 16, x, 1e-5);
            assert_true(fabs(eval_at(y, 0) - first[i]) < 1e-4);
        }
        eval_builder_free(e);
    }
}

static void test_B062_norms_in_half_precision(void **state)
{
    (void)state;
    const double wide[4] = {300, -300, 300, -300};
    const double signs[4] = {1, -1, 1, -1};
    const double zeros[10] = {0};
    const int64_t n = 65536; /* 64 channels of 64 x 64 in 4 groups */
    double *halves = calloc((size_t)n * 4, sizeof(double));
    for (int64_t k = 0; k < n * 4; k++) {
        halves[k] = 0.5;
    }
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        EXPECT(plain_layer_norm(e, how, BURN_F16, 1, 4, wide, 1e-5), signs);
        EXPECT(plain_layer_norm(e, how, BURN_F16, 1, 10, zeros, 1e-12), zeros);
        burn_value *y = plain_layer_norm(e, how, BURN_F16, 4, n, halves, 1e-5);
        for (int64_t k = 0; k < n * 4; k++) {
            assert_true(eval_at(y, (uint64_t)k) == 0.0);
        }
        eval_builder_free(e);
    }
    free(halves);
}

static void test_batch_norm(void **state)
{
    (void)state;
    const int64_t dims[4] = {3, 2, 2, 3};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[5] = {tensor(e, 4, dims, batch_norm_x),
                             tensor(e, 1, dims + 1, batch_norm_gamma),
                             tensor(e, 1, dims + 1, batch_norm_beta), NULL, NULL};
        burn_value *g = tensor(e, 4, dims, batch_norm_g);
        burn_value *out[3];
        burn_value *grads[5];
        burn_attrs_norm attrs = norm_attrs(1e-3, 0, 1);
        assert_int_equal(run(e, how, &burn_op_def_batch_norm, &attrs, in, out), BURN_OK);
        EXPECT(out[0], batch_norm_train_y);
        EXPECT(out[1], batch_norm_train_mean);
        EXPECT(out[2], batch_norm_train_var);
        gradients(e, &burn_op_def_batch_norm, &attrs, in, out, g, grads);
        EXPECT(grads[0], batch_norm_train_gx);
        EXPECT(grads[1], batch_norm_train_ggamma);
        EXPECT(grads[2], batch_norm_train_gbeta);
        attrs.training = 0;
        in[3] = tensor(e, 1, dims + 1, batch_norm_mean);
        in[4] = tensor(e, 1, dims + 1, batch_norm_var);
        assert_int_equal(run(e, how, &burn_op_def_batch_norm, &attrs, in, out), BURN_OK);
        EXPECT(out[0], batch_norm_eval_y);
        EXPECT(out[1], batch_norm_mean);
        EXPECT(out[2], batch_norm_var);
        gradients(e, &burn_op_def_batch_norm, &attrs, in, out, g, grads);
        EXPECT(grads[0], batch_norm_eval_gx);
        EXPECT(grads[1], batch_norm_eval_ggamma);
        EXPECT(grads[2], batch_norm_eval_gbeta);
        eval_builder_free(e);
    }
}

static void test_B064_batch_norm_of_one_value(void **state)
{
    (void)state;
    const int64_t dims[4] = {1, 3, 1, 1};
    const int64_t large[4] = {1, 1, 4, 4};
    double x[16];
    const double ones[3] = {1, 1, 1};
    for (int k = 0; k < 16; k++) {
        x[k] = k;
    }
    eval_builder *e = eval_builder_new();
    burn_attrs_norm attrs = norm_attrs(1e-5, 0, 1);
    for (uint32_t rank = 2; rank <= 4; rank += 2) {
        burn_value *in[5] = {tensor(e, rank, dims, x), NULL, NULL, NULL, NULL};
        burn_value *out[3];
        attrs.training = 1;
        assert_int_equal(run(e, BY_EVAL, &burn_op_def_batch_norm, &attrs, in, out), BURN_E_SHAPE);
        assert_non_null(strstr(eval_of(out[0])->text,
                               "needs more than one value per channel in training"));
        attrs.training = 0;
        in[3] = tensor(e, 1, dims + 1, ones);
        in[4] = in[3];
        assert_int_equal(run(e, BY_EVAL, &burn_op_def_batch_norm, &attrs, in, out), BURN_OK);
    }
    attrs.training = 1;
    burn_value *in[5] = {tensor(e, 4, large, x), NULL, NULL, NULL, NULL};
    burn_value *out[3];
    assert_int_equal(run(e, BY_EVAL, &burn_op_def_batch_norm, &attrs, in, out), BURN_OK);
    assert_true(eval_at(out[1], 0) == 7.5);
    eval_builder_free(e);
}

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct attention_case {
    double scale;
    uint32_t causal;
    uint32_t mask; /* 1: bool, 2: bias */
    const double *y;
    const double *gq;
    const double *gk;
    const double *gv;
} attention_case;

static void attention_against_torch(const attention_case *c, int how)
{
    const int64_t q_dims[4] = {1, 2, 3, 4};
    const int64_t v_dims[4] = {1, 2, 3, 5};
    const int64_t keep_dims[2] = {3, 3};
    const int64_t bias_dims[3] = {2, 1, 3};
    burn_attrs_attention attrs = attention_attrs(c->scale, c->causal);
    eval_builder *e = eval_builder_new();
    burn_value *in[5] = {tensor(e, 4, q_dims, attention_q), tensor(e, 4, q_dims, attention_k),
                         tensor(e, 4, v_dims, attention_v), NULL,
                         tensor(e, 4, v_dims, attention_g)};
    burn_value *out[3];
    burn_value *grads[4];
    if (c->mask == 1) {
        in[3] = eval_tensor(e, BURN_BOOL, 2, keep_dims, attention_keep);
    } else if (c->mask == 2) {
        in[3] = tensor(e, 3, bias_dims, attention_bias);
    }
    assert_int_equal(run(e, how, &burn_op_def_attention, &attrs, in, out), BURN_OK);
    expect_values(out[0], c->y, 30, EXACT);
    gradients(e, &burn_op_def_attention, &attrs, in, out, in[4], grads);
    expect_values(grads[0], c->gq, 24, EXACT);
    if (c->mask == 2) {
        EXPECT(grads[3], attention_biased_gbias);
    }
    assert_int_equal(run(e, how, &burn_op_def_attention_grad, &attrs, in, out), BURN_OK);
    expect_values(out[0], c->gq, 24, EXACT);
    expect_values(out[1], c->gk, 24, EXACT);
    expect_values(out[2], c->gv, 30, EXACT);
    eval_builder_free(e);
}

static void test_attention(void **state)
{
    (void)state;
    const attention_case cases[] = {
        {0, 0, 0, attention_plain_y, attention_plain_gq, attention_plain_gk, attention_plain_gv},
        {0, 1, 0, attention_causal_y, attention_causal_gq, attention_causal_gk,
         attention_causal_gv},
        {0.25, 0, 0, attention_scaled_y, attention_scaled_gq, attention_scaled_gk,
         attention_scaled_gv},
        {0, 0, 1, attention_masked_y, attention_masked_gq, attention_masked_gk,
         attention_masked_gv},
        {0, 0, 2, attention_biased_y, attention_biased_gq, attention_biased_gk,
         attention_biased_gv},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        attention_against_torch(&cases[i], BY_EVAL);
        attention_against_torch(&cases[i], BY_DECOMPOSITION);
    }
}

/* q, k, v, a bool mask of the last `rank` dims, and g: [1, 1, 4, 8]. */
static void masked_attention(eval_builder *e, int how, uint32_t rank, const double *keep,
                             uint32_t causal, burn_value **y, burn_value **grads)
{
    const int64_t dims[4] = {1, 1, 4, 8};
    const int64_t mask_dims[2] = {4, 4};
    double x[3][32];
    burn_attrs_attention attrs = attention_attrs(0, causal);
    for (int k = 0; k < 96; k++) {
        x[k / 32][k % 32] = sin(k * 1.7);
    }
    burn_value *in[5] = {tensor(e, 4, dims, x[0]), tensor(e, 4, dims, x[1]),
                         tensor(e, 4, dims, x[2]),
                         eval_tensor(e, BURN_BOOL, rank, mask_dims, keep),
                         tensor(e, 4, dims, x[1])};
    assert_int_equal(run(e, how, &burn_op_def_attention, &attrs, in, y), BURN_OK);
    assert_int_equal(run(e, how, &burn_op_def_attention_grad, &attrs, in, grads), BURN_OK);
}

static void expect_dead_row(burn_value *y, burn_value *const *grads, uint64_t row)
{
    for (uint64_t k = 0; k < 32; k++) {
        assert_true(isfinite(eval_at(y, k)));
        for (int i = 0; i < 3; i++) {
            assert_true(isfinite(eval_at(grads[i], k)));
        }
        if (k / 8 == row) {
            assert_true(eval_at(y, k) == 0.0);
            assert_true(eval_at(grads[0], k) == 0.0);
        } else {
            assert_true(eval_at(y, k) != 0.0);
        }
    }
}

static void test_B068_attention_rows_without_keys(void **state)
{
    (void)state;
    const double all[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const double row[16] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const double key[4] = {0, 1, 1, 1};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *free_y[1];
        burn_value *y[1];
        burn_value *grads[3];
        masked_attention(e, how, 2, all, 0, free_y, grads);
        masked_attention(e, how, 2, row, 0, y, grads);
        expect_dead_row(y[0], grads, 1);
        for (uint64_t k = 0; k < 32; k++) {
            assert_true(k / 8 == 1 || eval_at(y[0], k) == eval_at(free_y[0], k));
        }
        masked_attention(e, how, 1, key, 1, y, grads);
        expect_dead_row(y[0], grads, 0);
        eval_builder_free(e);
    }
}

/* With more keys than rows the last row sees every key. */
static void test_causal_is_aligned_bottom_right(void **state)
{
    (void)state;
    const int64_t q_dims[4] = {1, 1, 2, 1};
    const int64_t k_dims[4] = {1, 1, 4, 1};
    const double zeros[4] = {0};
    const double v[4] = {3, 6, 9, 12};
    const double wanted[2] = {6, 7.5};
    burn_attrs_attention attrs = attention_attrs(0, 1);
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[4] = {tensor(e, 4, q_dims, zeros), tensor(e, 4, k_dims, zeros),
                             tensor(e, 4, k_dims, v), NULL};
        burn_value *out[1];
        assert_int_equal(run(e, how, &burn_op_def_attention, &attrs, in, out), BURN_OK);
        EXPECT(out[0], wanted);
        eval_builder_free(e);
    }
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void test_dropout(void **state)
{
    (void)state;
    const int64_t dims[1] = {1000};
    double x[1000];
    for (int k = 0; k < 1000; k++) {
        x[k] = k % 2 == 0 ? 1.0 : HUGE_VAL;
    }
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[4] = {tensor(e, 1, dims, x), eval_scalar(e, BURN_F64, 0.25),
                             eval_scalar(e, BURN_U64, 42), eval_scalar(e, BURN_U64, 7)};
        burn_value *out[1];
        burn_value *grads[4];
        int kept = 0;
        assert_int_equal(run(e, how, &burn_op_def_dropout, NULL, in, out), BURN_OK);
        gradients(e, &burn_op_def_dropout, NULL, in, out, tensor(e, 1, dims, x), grads);
        for (uint64_t k = 0; k < 1000; k++) {
            double y = eval_at(out[0], k);
            assert_true(y == 0.0 || y == x[k] / 0.75);
            assert_true(eval_at(grads[0], k) == y);
            kept += y != 0.0;
        }
        assert_in_range(kept, 700, 800);
        in[1] = eval_scalar(e, BURN_F64, 1.0);
        assert_int_equal(run(e, how, &burn_op_def_dropout, NULL, in, out), BURN_OK);
        gradients(e, &burn_op_def_dropout, NULL, in, out, tensor(e, 1, dims, x), grads);
        for (uint64_t k = 0; k < 1000; k++) {
            assert_true(eval_at(out[0], k) == 0.0);
            assert_true(eval_at(grads[0], k) == 0.0);
        }
        eval_builder_free(e);
    }
}

/* ---- losses ---------------------------------------------------------------------------------- */

typedef struct entropy_case {
    int soft;
    uint32_t reduction;
    int weighted;
    int smoothed;
    const double *y;
    const double *gx;
    const double *gt;
} entropy_case;

/* The names that make_nn_values.py gives. */
#define CLASS_CASE(reduction, NAME, w, s)                                                          \
    {0, BURN_REDUCTION_##NAME, w, s, entropy_class_##reduction##_##w##s##_y,                       \
     entropy_class_##reduction##_##w##s##_gx, NULL}
#define SOFT_CASE(reduction, NAME, w, s)                                                           \
    {1, BURN_REDUCTION_##NAME, w, s, entropy_soft_##reduction##_##w##s##_y,                        \
     entropy_soft_##reduction##_##w##s##_gx, entropy_soft_##reduction##_##w##s##_gt}
#define FOUR_CASES(CASE, reduction, NAME)                                                          \
    CASE(reduction, NAME, 0, 0), CASE(reduction, NAME, 0, 1), CASE(reduction, NAME, 1, 0),         \
        CASE(reduction, NAME, 1, 1)

static const entropy_case entropy_cases[] = {
    FOUR_CASES(CLASS_CASE, mean, MEAN), FOUR_CASES(CLASS_CASE, sum, SUM),
    FOUR_CASES(CLASS_CASE, none, NONE), FOUR_CASES(SOFT_CASE, mean, MEAN),
    FOUR_CASES(SOFT_CASE, sum, SUM),    FOUR_CASES(SOFT_CASE, none, NONE),
};

static void entropy_against_torch(const entropy_case *c, int how)
{
    const int64_t dims[3] = {2, 3, 4};
    const int64_t rows[2] = {2, 4};
    const double one[1] = {1.0};
    size_t n = c->reduction == BURN_REDUCTION_NONE ? 8 : 1;
    burn_attrs_loss attrs = loss_attrs(c->reduction, -100, c->smoothed ? 0.1 : 0.0);
    eval_builder *e = eval_builder_new();
    burn_value *in[4] = {tensor(e, 3, dims, entropy_x), NULL, NULL, NULL};
    burn_value *out[1];
    burn_value *grads[3];
    in[1] = c->soft ? tensor(e, 3, dims, entropy_soft)
                    : eval_tensor(e, BURN_I64, 2, rows, entropy_target);
    in[2] = c->weighted ? tensor(e, 1, dims + 1, entropy_weight) : NULL;
    in[3] = n == 8 ? tensor(e, 2, rows, entropy_g) : tensor(e, 0, NULL, one);
    assert_int_equal(run(e, how, &burn_op_def_cross_entropy, &attrs, in, out), BURN_OK);
    expect_values(out[0], c->y, n, EXACT);
    gradients(e, &burn_op_def_cross_entropy, &attrs, in, out, in[3], grads);
    expect_values(grads[0], c->gx, 24, EXACT);
    if (c->soft) {
        expect_values(grads[1], c->gt, 24, EXACT);
    }
    assert_int_equal(run(e, how, &burn_op_def_cross_entropy_grad, &attrs, in, out), BURN_OK);
    expect_values(out[0], c->gx, 24, EXACT);
    eval_builder_free(e);
}

static void test_cross_entropy(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(entropy_cases); i++) {
        entropy_against_torch(&entropy_cases[i], BY_EVAL);
        entropy_against_torch(&entropy_cases[i], BY_DECOMPOSITION);
    }
}

static double B074_loss(int how, const double *target, int weighted, uint32_t reduction,
                        double smoothing, int32_t *code)
{
    const int64_t dims[2] = {2, 2};
    const double logits[4] = {1, 2, 3, 0.4};
    const double weight[2] = {0.2, 0.3};
    burn_attrs_loss attrs = loss_attrs(reduction, -100, smoothing);
    eval_builder *e = eval_builder_new();
    burn_value *in[3] = {tensor(e, 2, dims, logits), eval_tensor(e, BURN_I64, 1, dims, target),
                         weighted ? tensor(e, 1, dims, weight) : NULL};
    burn_value *out[1] = {NULL};
    (void)run(e, how, &burn_op_def_cross_entropy, &attrs, in, out);
    *code = eval_of(out[0])->code;
    double loss = *code == BURN_OK ? eval_at(out[0], 0) : (double)NAN;
    eval_builder_free(e);
    return loss;
}

static void test_B074_cross_entropy_options(void **state)
{
    (void)state;
    const double target[2] = {-100, 1};
    const double bad[3][2] = {{-1, 1}, {2, 1}, {-100, -99}};
    const struct {
        int weighted;
        uint32_t reduction;
        double smoothing;
        double wanted;
    } cases[] = {
        {0, BURN_REDUCTION_MEAN, 0.0, 2.6716447}, {0, BURN_REDUCTION_SUM, 0.0, 2.6716447},
        {0, BURN_REDUCTION_MEAN, 0.1, 2.5416446}, {0, BURN_REDUCTION_SUM, 0.1, 2.5416446},
        {1, BURN_REDUCTION_MEAN, 0.0, 2.6716447}, {1, BURN_REDUCTION_SUM, 0.0, 0.8014935},
        {1, BURN_REDUCTION_MEAN, 0.1, 2.5404506}, {1, BURN_REDUCTION_SUM, 0.1, 0.7621352},
    };
    int32_t code;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        for (size_t i = 0; i < COUNT(cases); i++) {
            double loss = B074_loss(how, target, cases[i].weighted, cases[i].reduction,
                                    cases[i].smoothing, &code);
            assert_true(fabs(loss - cases[i].wanted) < 1e-6);
        }
        for (size_t i = 0; i < COUNT(bad); i++) {
            (void)B074_loss(how, bad[i], 0, BURN_REDUCTION_MEAN, 0.0, &code);
            assert_int_equal(code, BURN_E_DATA);
            (void)B074_loss(how, bad[i], 1, BURN_REDUCTION_SUM, 0.1, &code);
            assert_int_equal(code, BURN_E_DATA);
        }
    }
}

/* ---- optimizer steps ------------------------------------------------------------------------- */

static void sgd_against_torch(int how, const burn_attrs_sgd *options, int with_velocity,
                              const double *const *wanted)
{
    const int64_t dims[1] = {3};
    const double zeros[3] = {0};
    burn_attrs_sgd attrs = *options;
    eval_builder *e = eval_builder_new();
    burn_value *state[2] = {tensor(e, 1, dims, step_start), tensor(e, 1, dims, zeros)};
    for (int step = 0; step < 3; step++) {
        burn_value *in[4] = {state[0], tensor(e, 1, dims, step_grads + 3 * step),
                             with_velocity ? state[1] : NULL, eval_scalar(e, BURN_F64, 0.1)};
        attrs.first = step == 0;
        assert_int_equal(run(e, how, &burn_op_def_sgd_step, &attrs, in, state), BURN_OK);
        expect_values(state[0], wanted[step], 3, EXACT);
        assert_int_equal(eval_of(state[1])->x.n, with_velocity ? 3 : 0);
    }
    eval_builder_free(e);
}

static void test_sgd(void **state)
{
    (void)state;
    const double *const plain[3] = {step_sgd_0, step_sgd_1, step_sgd_2};
    const double *const momentum[3] = {step_momentum_0, step_momentum_1, step_momentum_2};
    const double *const nesterov[3] = {step_nesterov_0, step_nesterov_1, step_nesterov_2};
    burn_attrs_sgd attrs;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
        attrs.weight_decay = 0.01;
        sgd_against_torch(how, &attrs, 0, plain);
        attrs.weight_decay = 0.0;
        attrs.momentum = 0.9;
        attrs.dampening = 0.2;
        sgd_against_torch(how, &attrs, 1, momentum);
        attrs.dampening = 0.0;
        attrs.weight_decay = 0.05;
        attrs.nesterov = 1;
        sgd_against_torch(how, &attrs, 1, nesterov);
    }
}

static burn_attrs_adam adam_attrs(uint32_t decoupled)
{
    burn_attrs_adam attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.beta1 = 0.9;
    attrs.beta2 = 0.999;
    attrs.eps = 1e-8;
    attrs.weight_decay = 0.1;
    attrs.decoupled = decoupled;
    return attrs;
}

static void adam_against(int how, uint8_t dtype, uint32_t decoupled, int64_t n,
                         const double *start, const double *grads, int steps,
                         const double *const *wanted, double allowed)
{
    const int64_t dims[1] = {n};
    const double zeros[3] = {0};
    burn_attrs_adam attrs = adam_attrs(decoupled);
    eval_builder *e = eval_builder_new();
    burn_value *state[3] = {eval_tensor(e, dtype, 1, dims, start),
                            eval_tensor(e, dtype, 1, dims, zeros),
                            eval_tensor(e, dtype, 1, dims, zeros)};
    for (int step = 0; step < steps; step++) {
        burn_value *in[6] = {state[0],
                             eval_tensor(e, dtype, 1, dims, grads + n * step),
                             state[1],
                             state[2],
                             eval_scalar(e, BURN_F64, 0.1),
                             eval_scalar(e, BURN_F64, step + 1)};
        assert_int_equal(run(e, how, &burn_op_def_adam_step, &attrs, in, state), BURN_OK);
        expect_values(state[0], wanted[step], (size_t)n, allowed);
    }
    eval_builder_free(e);
}

static void test_adam(void **state)
{
    (void)state;
    const double *const adam[3] = {step_adam_0, step_adam_1, step_adam_2};
    const double *const adamw[3] = {step_adamw_0, step_adamw_1, step_adamw_2};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        adam_against(how, BURN_F64, 0, 3, step_start, step_grads, 3, adam, EXACT);
        adam_against(how, BURN_F64, 1, 3, step_start, step_grads, 3, adamw, EXACT);
        adam_against(how, BURN_F32, 1, 3, step_start, step_grads, 3, adamw, 2e-6);
    }
}

static void test_B210_adamw_decay_order(void **state)
{
    (void)state;
    const double start[1] = {1.0};
    const double grads[2] = {0.5, 0.5};
    const double first[1] = {0.89};
    const double second[1] = {0.7811};
    const double l2[1] = {0.9};
    const double *const adamw[2] = {first, second};
    const double *const adam[1] = {l2};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        adam_against(how, BURN_F64, 1, 1, start, grads, 2, adamw, 1e-7);
        adam_against(how, BURN_F64, 0, 1, start, grads, 1, adam, 1e-7);
        adam_against(how, BURN_F32, 1, 1, start, grads, 2, adamw, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_B068_softmax_of_minus_infinity),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_B060_layer_norm_with_a_large_mean),
        cmocka_unit_test(test_B062_norms_in_half_precision),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_B064_batch_norm_of_one_value),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_B068_attention_rows_without_keys),
        cmocka_unit_test(test_causal_is_aligned_bottom_right),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_B074_cross_entropy_options),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_B210_adamw_decay_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
