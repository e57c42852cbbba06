/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_layers.c - softmax, losses, optimizers, norms and attention of the CPU plugin against
 * PyTorch's results (tests/data/make_flex_nn.py) and the reported faults named by their ids.
 *
 * Each call runs with one and with two threads and must give equal bits.
 */
#include "nn_checks.h"

#include "../../data/flex_nn_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define HEAD(type) .head = { (uint32_t)sizeof(type), 1 }
/* clang-format on */

static void set_attrs(rig_call *c, const void *attrs, uint32_t size)
{
    c->attrs = attrs;
    c->attrs_size = size;
}

/* A tensor of `dtype` from a table of floats. */
static rig_tensor from_table(uint8_t dtype, uint32_t rank, const int64_t *dims, const float *values)
{
    rig_tensor t = rig_new(dtype, rank, dims);
    for (int64_t i = 0; i < rig_numel(&t); i++) {
        rig_set(&t, i, (double)values[i]);
    }
    return t;
}

static void free_all(uint32_t n, rig_tensor *const *all)
{
    for (uint32_t i = 0; i < n; i++) {
        rig_free(all[i]);
    }
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void check_lines(uint8_t dtype, uint64_t op, uint64_t grad_op, int64_t axis, const float *y,
                        const float *gx, double tolerance)
{
    const int64_t dims[] = {3, 5, 4};
    rig_tensor x = from_table(dtype, 3, dims, line_x);
    rig_tensor g = from_table(dtype, 3, dims, line_g);
    rig_tensor out = rig_new(dtype, 3, dims);
    rig_tensor grad = rig_new(dtype, 3, dims);
    burn_attrs_axis a = {HEAD(burn_attrs_axis), .axis = axis};
    rig_call c = {.op = op, .in = {&x}, .out = {&out}, .n_in = 1, .n_out = 1};
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    check_table(&out, y, tolerance, "softmax");
    rig_call b = {.op = grad_op, .in = {&out, &g}, .out = {&grad}, .n_in = 2, .n_out = 1};
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    check_table(&grad, gx, tolerance * 4, "softmax gradient");
    free_all(4, (rig_tensor *[]){&x, &g, &out, &grad});
}

static void test_softmax(void **state)
{
    (void)state;
    static const struct {
        uint8_t dtype;
        double tolerance;
    } kinds[] = {{BURN_F32, 1e-6}, {BURN_F64, 2e-7}, {BURN_F16, 4e-3}, {BURN_BF16, 3e-2}};
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t dtype = kinds[i].dtype;
        double t = kinds[i].tolerance;
        check_lines(dtype, BURN_OP_SOFTMAX, BURN_OP_SOFTMAX_GRAD, 1, softmax1_y, softmax1_gx, t);
        check_lines(dtype, BURN_OP_SOFTMAX, BURN_OP_SOFTMAX_GRAD, 2, softmax2_y, softmax2_gx, t);
        check_lines(dtype, BURN_OP_LOG_SOFTMAX, BURN_OP_LOG_SOFTMAX_GRAD, 1, log_softmax1_y,
                    log_softmax1_gx, t * 3);
        check_lines(dtype, BURN_OP_LOG_SOFTMAX, BURN_OP_LOG_SOFTMAX_GRAD, 2, log_softmax2_y,
                    log_softmax2_gx, t * 3);
    }
}

static void test_softmax_long(void **state)
{
    (void)state;
    const int64_t dims[] = {300, 1013};
    rig_tensor x = rig_random(BURN_F32, 2, dims, 51);
    rig_tensor y = rig_new(BURN_F32, 2, dims);
    burn_attrs_axis a = {HEAD(burn_attrs_axis), .axis = 1};
    rig_call c = {.op = BURN_OP_SOFTMAX, .in = {&x}, .out = {&y}, .n_in = 1, .n_out = 1};
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    for (int64_t r = 0; r < 300; r += 37) {
        double sum = 0;
        for (int64_t j = 0; j < 1013; j++) {
            sum += exp(rig_at(&x, r * 1013 + j));
        }
        for (int64_t j = 0; j < 1013; j++) {
            double want = exp(rig_at(&x, r * 1013 + j)) / sum;
            check_close(rig_at(&y, r * 1013 + j), want, want * 1e-6, "long softmax", j);
        }
    }
    free_all(2, (rig_tensor *[]){&x, &y});
}

/* B068: a softmax of nothing but -inf is NaN; a NaN spreads over its line, and only there. */
static void test_b068_softmax_masked(void **state)
{
    (void)state;
    float inf = INFINITY;
    const float values[] = {-inf, -inf, -inf, 1, NAN, 2, 0, -inf, 0};
    rig_tensor x = rig_values(2, (int64_t[]){3, 3}, values);
    rig_tensor y = rig_new(BURN_F32, 2, x.dims);
    burn_attrs_axis a = {HEAD(burn_attrs_axis), .axis = 1};
    rig_call c = {.op = BURN_OP_SOFTMAX, .in = {&x}, .out = {&y}, .n_in = 1, .n_out = 1};
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    static const float want[] = {NAN, NAN, NAN, NAN, NAN, NAN, 0.5F, 0.0F, 0.5F};
    check_table(&y, want, 1e-7, "softmax of -inf");
    free_all(2, (rig_tensor *[]){&x, &y});
}

/* ---- cross entropy --------------------------------------------------------------------------- */

static void check_entropy(uint32_t reduction, double smoothing, int weighted, int probabilities,
                          uint8_t index_dtype, const float *want, const float *want_gx)
{
    static const float classes[] = {0, 2, 1, -5, 2, 2, -5, 1};
    rig_tensor x = rig_values(3, (int64_t[]){4, 3, 2}, entropy_x);
    rig_tensor target = probabilities
                            ? rig_values(3, (int64_t[]){4, 3, 2}, entropy_prob)
                            : from_table(index_dtype, 2, (int64_t[]){4, 2}, classes);
    rig_tensor weight = weighted ? rig_values(1, (int64_t[]){3}, entropy_weight) : rig_absent();
    uint32_t rank = reduction == BURN_REDUCTION_NONE ? 2 : 0;
    rig_tensor y = rig_new(BURN_F32, rank, (int64_t[]){4, 2});
    rig_tensor g = rig_new(BURN_F32, rank, (int64_t[]){4, 2});
    rig_tensor gx = rig_new(BURN_F32, 3, x.dims);
    for (int64_t i = 0; i < rig_numel(&g); i++) {
        rig_set(&g, i, 1.0);
    }
    burn_attrs_loss a = {HEAD(burn_attrs_loss), .reduction = reduction};
    a.ignore_index = probabilities ? INT64_MIN : -5;
    a.label_smoothing = smoothing;
    rig_call c = {.op = BURN_OP_CROSS_ENTROPY, .in = {&x, &target, &weight}, .out = {&y}};
    c.n_in = 3;
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    check_table(&y, want, 2e-6, "cross_entropy");
    rig_call b = {.op = BURN_OP_CROSS_ENTROPY_GRAD, .in = {&x, &target, &weight, &g}};
    b.out[0] = &gx;
    b.n_in = 4;
    b.n_out = 1;
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    check_table(&gx, want_gx, 2e-6, "cross_entropy_grad");
    free_all(6, (rig_tensor *[]){&x, &target, &weight, &y, &g, &gx});
}

#define ENTROPY_CASE(reduction, name, s, w)                                                        \
    check_entropy(reduction, 0.1 * s, w, 0, BURN_I64, entropy_class_##name##s##w,                  \
                  entropy_class_##name##s##w##_gx);                                                \
    check_entropy(reduction, 0.1 * s, w, 0, BURN_I32, entropy_class_##name##s##w,                  \
                  entropy_class_##name##s##w##_gx);                                                \
    check_entropy(reduction, 0.1 * s, w, 1, 0, entropy_prob_##name##s##w,                          \
                  entropy_prob_##name##s##w##_gx);

static void test_cross_entropy(void **state)
{
    (void)state;
    ENTROPY_CASE(BURN_REDUCTION_MEAN, mean, 0, 0)
    ENTROPY_CASE(BURN_REDUCTION_MEAN, mean, 0, 1)
    ENTROPY_CASE(BURN_REDUCTION_MEAN, mean, 1, 0)
    ENTROPY_CASE(BURN_REDUCTION_MEAN, mean, 1, 1)
    ENTROPY_CASE(BURN_REDUCTION_SUM, sum, 0, 0)
    ENTROPY_CASE(BURN_REDUCTION_SUM, sum, 0, 1)
    ENTROPY_CASE(BURN_REDUCTION_SUM, sum, 1, 0)
    ENTROPY_CASE(BURN_REDUCTION_SUM, sum, 1, 1)
    ENTROPY_CASE(BURN_REDUCTION_NONE, none, 0, 0)
    ENTROPY_CASE(BURN_REDUCTION_NONE, none, 0, 1)
    ENTROPY_CASE(BURN_REDUCTION_NONE, none, 1, 0)
    ENTROPY_CASE(BURN_REDUCTION_NONE, none, 1, 1)
}

/* B074: ignored rows count nowhere; other targets that are no class are errors. */
static void test_b074_cross_entropy(void **state)
{
    (void)state;
    static const struct {
        uint32_t reduction;
        double smoothing;
        int weighted;
        double want;
    } cases[] = {
        {BURN_REDUCTION_MEAN, 0.0, 0, 2.6716447}, {BURN_REDUCTION_SUM, 0.0, 0, 2.6716447},
        {BURN_REDUCTION_MEAN, 0.1, 0, 2.5416446}, {BURN_REDUCTION_MEAN, 0.0, 1, 2.6716447},
        {BURN_REDUCTION_SUM, 0.0, 1, 0.8014935},  {BURN_REDUCTION_MEAN, 0.1, 1, 2.5404506},
        {BURN_REDUCTION_SUM, 0.1, 1, 0.7621352},
    };
    rig_tensor x = rig_values(2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 0.4F});
    rig_tensor target = from_table(BURN_I64, 1, (int64_t[]){2}, (float[]){-100, 1});
    rig_tensor y = rig_new(BURN_F32, 0, NULL);
    rig_tensor none = rig_absent();
    rig_tensor weight = rig_values(1, (int64_t[]){2}, (float[]){0.2F, 0.3F});
    burn_attrs_loss a = {HEAD(burn_attrs_loss), .ignore_index = -100};
    rig_call c = {.op = BURN_OP_CROSS_ENTROPY, .in = {&x, &target, &none}, .out = {&y}};
    c.n_in = 3;
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        a.reduction = cases[i].reduction;
        a.label_smoothing = cases[i].smoothing;
        c.in[2] = cases[i].weighted ? &weight : &none;
        check_both(&c);
        check_close(rig_at(&y, 0), cases[i].want, 2e-6, "B074", (int64_t)i);
    }
    a.reduction = BURN_REDUCTION_MEAN;
    rig_set(&target, 1, -100);
    check_both(&c);
    assert_true(isnan(rig_at(&y, 0)));
    for (int64_t bad = -1; bad <= 2; bad += 3) {
        rig_set(&target, 1, (double)bad);
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(rig_run(check_plugins[0], &c, &err), BURN_E_DATA);
        const char *text = bad < 0 ? "target -1 at position 1" : "target 2 at position 1";
        assert_non_null(strstr(err.text, text));
        assert_non_null(strstr(err.text, "2 classes"));
    }
    free_all(4, (rig_tensor *[]){&x, &target, &y, &weight});
}

static void test_mse(void **state)
{
    (void)state;
    for (uint32_t reduction = 0; reduction < 3; reduction++) {
        const int64_t dims[] = {37, 1001};
        rig_tensor x = rig_random(BURN_F32, 2, dims, 61);
        rig_tensor y = rig_random(BURN_F32, 2, dims, 62);
        rig_tensor out = rig_new(BURN_F32, reduction == BURN_REDUCTION_NONE ? 2 : 0, dims);
        burn_attrs_loss a = {HEAD(burn_attrs_loss), .reduction = reduction};
        rig_call c = {.op = BURN_OP_MSE_LOSS, .in = {&x, &y}, .out = {&out}, .n_in = 2, .n_out = 1};
        set_attrs(&c, &a, (uint32_t)sizeof(a));
        check_both(&c);
        double sum = 0;
        for (int64_t i = 0; i < rig_numel(&x); i++) {
            double d = rig_at(&x, i) - rig_at(&y, i);
            sum += d * d;
            if (reduction == BURN_REDUCTION_NONE) {
                check_close(rig_at(&out, i), d * d, 1e-6, "mse_loss", i);
            }
        }
        if (reduction != BURN_REDUCTION_NONE) {
            sum = reduction == BURN_REDUCTION_MEAN ? sum / (double)rig_numel(&x) : sum;
            check_close(rig_at(&out, 0), sum, sum * 1e-6, "mse_loss", 0);
        }
        free_all(3, (rig_tensor *[]){&x, &y, &out});
    }
}

/* ---- optimizers ------------------------------------------------------------------------------ */

/* Three steps from the table, in place: outputs share the inputs' storage. */
static void check_sgd(uint8_t dtype, burn_attrs_sgd a, double lr, const float *want, double tol)
{
    const int64_t dims[] = {6};
    rig_tensor p = from_table(dtype, 1, dims, step_start);
    rig_tensor v = a.momentum != 0.0 ? rig_new(dtype, 1, dims) : rig_absent();
    rig_tensor rate = rig_f64(lr);
    for (int step = 0; step < 3; step++) {
        rig_tensor g = from_table(dtype, 1, dims, step_grads + step * 6);
        a.first = step == 0;
        rig_call c = {.op = BURN_OP_SGD_STEP, .in = {&p, &g, &v, &rate}, .out = {&p, &v}};
        c.n_in = 4;
        c.n_out = 2;
        set_attrs(&c, &a, (uint32_t)sizeof(a));
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(rig_run(check_plugins[step % 2], &c, &err), BURN_OK);
        rig_free(&g);
    }
    check_table(&p, want, tol, "sgd_step");
    free_all(2, (rig_tensor *[]){&p, &v});
}

static void check_adam(uint8_t dtype, uint32_t decoupled, const float *want, double tol)
{
    const int64_t dims[] = {6};
    static const float zeros[6] = {0};
    rig_tensor p = from_table(dtype, 1, dims, step_start);
    rig_tensor m = from_table(dtype, 1, dims, zeros);
    rig_tensor v = from_table(dtype, 1, dims, zeros);
    rig_tensor rate = rig_f64(0.01);
    burn_attrs_adam a = {HEAD(burn_attrs_adam), .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    a.weight_decay = 0.1;
    a.decoupled = decoupled;
    for (int step = 0; step < 3; step++) {
        rig_tensor g = from_table(dtype, 1, dims, step_grads + step * 6);
        rig_tensor t = rig_f64(step + 1.0);
        rig_call c = {.op = BURN_OP_ADAM_STEP, .in = {&p, &g, &m, &v, &rate, &t}};
        c.out[0] = &p;
        c.out[1] = &m;
        c.out[2] = &v;
        c.n_in = 6;
        c.n_out = 3;
        set_attrs(&c, &a, (uint32_t)sizeof(a));
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(rig_run(check_plugins[step % 2], &c, &err), BURN_OK);
        rig_free(&g);
    }
    check_table(&p, want, tol, "adam_step");
    free_all(3, (rig_tensor *[]){&p, &m, &v});
}

static void test_optimizers(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_BF16};
    for (uint32_t i = 0; i < 3; i++) {
        double tol = dtypes[i] == BURN_BF16 ? 4e-2 : 1e-6;
        burn_attrs_sgd plain = {HEAD(burn_attrs_sgd), .weight_decay = 0.05};
        burn_attrs_sgd momentum = {HEAD(burn_attrs_sgd), .momentum = 0.9, .dampening = 0.3};
        burn_attrs_sgd nesterov = {HEAD(burn_attrs_sgd), .momentum = 0.9, .weight_decay = 0.02};
        nesterov.nesterov = 1;
        check_sgd(dtypes[i], plain, 0.1, step_sgd_plain, tol);
        check_sgd(dtypes[i], momentum, 0.1, step_sgd_momentum, tol);
        check_sgd(dtypes[i], nesterov, 0.1, step_sgd_nesterov, tol);
        check_adam(dtypes[i], 0, step_adam, tol);
        check_adam(dtypes[i], 1, step_adamw, tol);
    }
}

/* B210: AdamW shrinks the parameter before the step; Adam's decay goes into the gradient. */
static void test_b210_adamw_order(void **state)
{
    (void)state;
    for (uint32_t decoupled = 0; decoupled < 2; decoupled++) {
        rig_tensor p = rig_values(1, (int64_t[]){1}, (float[]){1});
        rig_tensor g = rig_values(1, (int64_t[]){1}, (float[]){0.5F});
        rig_tensor m = rig_values(1, (int64_t[]){1}, (float[]){0});
        rig_tensor v = rig_values(1, (int64_t[]){1}, (float[]){0});
        rig_tensor lr = rig_f64(0.1);
        burn_attrs_adam a = {HEAD(burn_attrs_adam), .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
        a.weight_decay = 0.1;
        a.decoupled = decoupled;
        for (int step = 1; step <= 2; step++) {
            rig_tensor t = rig_f64(step);
            rig_call c = {.op = BURN_OP_ADAM_STEP, .in = {&p, &g, &m, &v, &lr, &t}};
            c.out[0] = &p;
            c.out[1] = &m;
            c.out[2] = &v;
            c.n_in = 6;
            c.n_out = 3;
            set_attrs(&c, &a, (uint32_t)sizeof(a));
            burn_err err = BURN_ERR_INIT;
            assert_int_equal(rig_run(check_plugins[0], &c, &err), BURN_OK);
            if (step == 1) {
                check_close(rig_at(&p, 0), decoupled ? 0.89 : 0.9, 1e-6, "B210", step);
            }
        }
        if (decoupled) {
            check_close(rig_at(&p, 0), 0.7811, 1e-6, "B210", 2);
        }
        free_all(4, (rig_tensor *[]){&p, &g, &m, &v});
    }
}

/* A long parameter, so that it is cut into tasks. */
static void test_adam_long(void **state)
{
    (void)state;
    const int64_t dims[] = {70001};
    rig_tensor in[4];
    rig_tensor out[3];
    for (uint32_t i = 0; i < 4; i++) {
        in[i] = rig_random(BURN_F32, 1, dims, 70 + i);
    }
    for (int64_t i = 0; i < dims[0]; i++) {
        rig_set(&in[3], i, fabs(rig_at(&in[3], i)));
    }
    rig_tensor lr = rig_f64(0.01);
    rig_tensor t = rig_f64(5);
    burn_attrs_adam a = {HEAD(burn_attrs_adam), .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
    rig_call c = {.op = BURN_OP_ADAM_STEP, .in = {&in[0], &in[1], &in[2], &in[3], &lr, &t}};
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = rig_new(BURN_F32, 1, dims);
        c.out[i] = &out[i];
    }
    c.n_in = 6;
    c.n_out = 3;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    for (int64_t i = 0; i < dims[0]; i += 501) {
        double g = rig_at(&in[1], i);
        double m = 0.9 * rig_at(&in[2], i) + 0.1 * g;
        double v = 0.99 * rig_at(&in[3], i) + 0.01 * g * g;
        double root = sqrt(v / (1 - pow(0.99, 5))) + 1e-8;
        double want = rig_at(&in[0], i) - 0.01 * m / (1 - pow(0.9, 5)) / root;
        check_close(rig_at(&out[0], i), want, 2e-6, "long adam_step", i);
    }
    for (uint32_t i = 0; i < 4; i++) {
        rig_free(&in[i]);
    }
    free_all(3, (rig_tensor *[]){&out[0], &out[1], &out[2]});
}

/* ---- norms ----------------------------------------------------------------------------------- */

static void check_layer(uint8_t dtype, double tolerance)
{
    const int64_t dims[] = {3, 2, 5};
    rig_tensor x = from_table(dtype, 3, dims, layer_x);
    rig_tensor g = from_table(dtype, 3, dims, layer_g);
    rig_tensor gamma = from_table(dtype, 2, dims + 1, layer_gamma);
    rig_tensor beta = from_table(dtype, 2, dims + 1, layer_beta);
    rig_tensor y = rig_new(dtype, 3, dims);
    rig_tensor gx = rig_new(dtype, 3, dims);
    rig_tensor ggamma = rig_new(dtype, 2, dims + 1);
    rig_tensor gbeta = rig_new(dtype, 2, dims + 1);
    burn_attrs_norm a = {HEAD(burn_attrs_norm), .eps = 1e-5, .n_axes = 2};
    rig_call c = {.op = BURN_OP_LAYER_NORM, .in = {&x, &gamma, &beta}, .out = {&y}, .n_in = 3};
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    check_table(&y, layer_y, tolerance, "layer_norm");
    rig_call b = {.op = BURN_OP_LAYER_NORM_GRAD, .in = {&x, &gamma, &g}, .n_in = 3, .n_out = 3};
    b.out[0] = &gx;
    b.out[1] = &ggamma;
    b.out[2] = &gbeta;
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    check_table(&gx, layer_gx, tolerance * 2, "layer_norm_grad");
    check_table(&ggamma, layer_ggamma, tolerance * 2, "layer_norm_grad gamma");
    check_table(&gbeta, layer_gbeta, tolerance, "layer_norm_grad beta");
    free_all(8, (rig_tensor *[]){&x, &g, &gamma, &beta, &y, &gx, &ggamma, &gbeta});
}

static void check_batch_norm(uint8_t dtype, uint32_t training, double tolerance)
{
    const int64_t dims[] = {4, 3, 2, 3};
    const int64_t channels[] = {3};
    rig_tensor x = from_table(dtype, 4, dims, batch_x);
    rig_tensor g = from_table(dtype, 4, dims, batch_g);
    rig_tensor gamma = from_table(dtype, 1, channels, batch_gamma);
    rig_tensor beta = from_table(dtype, 1, channels, batch_beta);
    rig_tensor mean = training ? rig_absent() : from_table(dtype, 1, channels, batch_mean);
    rig_tensor var = training ? rig_absent() : from_table(dtype, 1, channels, batch_var);
    rig_tensor out[3] = {rig_new(dtype, 4, dims), rig_new(dtype, 1, channels),
                         rig_new(dtype, 1, channels)};
    burn_attrs_norm a = {HEAD(burn_attrs_norm), .eps = 1e-5, .training = training};
    rig_call c = {.op = BURN_OP_BATCH_NORM, .in = {&x, &gamma, &beta, &mean, &var}, .n_in = 5};
    c.n_out = 3;
    for (uint32_t i = 0; i < 3; i++) {
        c.out[i] = &out[i];
    }
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    check_table(&out[0], training ? batch1_y : batch0_y, tolerance, "batch_norm");
    check_table(&out[1], training ? batch_mean_of_x : batch_mean, tolerance, "batch_norm mean");
    check_table(&out[2], training ? batch_var_of_x : batch_var, tolerance, "batch_norm var");
    c.op = BURN_OP_BATCH_NORM_GRAD;
    c.in[2] = &g;
    check_both(&c);
    check_table(&out[0], training ? batch1_gx : batch0_gx, tolerance * 2, "batch_norm_grad");
    check_table(&out[1], training ? batch1_ggamma : batch0_ggamma, tolerance * 8, "gamma");
    check_table(&out[2], training ? batch1_gbeta : batch0_gbeta, tolerance * 8, "beta");
    free_all(9, (rig_tensor *[]){&x, &g, &gamma, &beta, &mean, &var, &out[0], &out[1], &out[2]});
}

static void test_norms(void **state)
{
    (void)state;
    check_layer(BURN_F32, 2e-6);
    check_layer(BURN_F64, 1e-6);
    check_layer(BURN_F16, 1e-2);
    for (uint32_t training = 0; training < 2; training++) {
        check_batch_norm(BURN_F32, training, 2e-6);
        check_batch_norm(BURN_F64, training, 1e-6);
        check_batch_norm(BURN_BF16, training, 6e-2);
    }
}

/* Many rows and channels, so that work is cut into tasks; bits are compared by check_both. */
static void test_norms_large(void **state)
{
    (void)state;
    const int64_t dims[] = {500, 200};
    rig_tensor x = rig_random(BURN_F32, 2, dims, 81);
    rig_tensor g = rig_random(BURN_F32, 2, dims, 82);
    rig_tensor none = rig_absent();
    rig_tensor y = rig_new(BURN_F32, 2, dims);
    rig_tensor ggamma = rig_new(BURN_F32, 1, dims + 1);
    rig_tensor gbeta = rig_new(BURN_F32, 1, dims + 1);
    burn_attrs_norm a = {HEAD(burn_attrs_norm), .eps = 1e-5, .n_axes = 1, .training = 1};
    rig_call c = {.op = BURN_OP_LAYER_NORM_GRAD, .in = {&x, &none, &g}, .n_in = 3, .n_out = 3};
    c.out[0] = &y;
    c.out[1] = &ggamma;
    c.out[2] = &gbeta;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    for (int64_t j = 0; j < 200; j += 13) {
        double sum = 0;
        for (int64_t i = 0; i < 500; i++) {
            sum += rig_at(&g, i * 200 + j);
        }
        check_close(rig_at(&gbeta, j), sum, 1e-4, "large layer_norm_grad", j);
    }
    rig_call b = {.op = BURN_OP_BATCH_NORM, .in = {&x, &none, &none, &none, &none}, .n_in = 5};
    b.out[0] = &y;
    b.out[1] = &ggamma;
    b.out[2] = &gbeta;
    b.n_out = 3;
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    for (int64_t j = 0; j < 200; j += 13) {
        double sum = 0;
        for (int64_t i = 0; i < 500; i++) {
            sum += rig_at(&x, i * 200 + j);
        }
        check_close(rig_at(&ggamma, j), sum / 500, 1e-6, "large batch_norm", j);
    }
    free_all(5, (rig_tensor *[]){&x, &g, &y, &ggamma, &gbeta});
}

static void layer_of(rig_tensor *x, double eps, rig_tensor *y)
{
    rig_tensor none = rig_absent();
    burn_attrs_norm a = {HEAD(burn_attrs_norm), .eps = eps, .n_axes = 1};
    rig_call c = {.op = BURN_OP_LAYER_NORM, .in = {x, &none, &none}, .out = {y}, .n_in = 3};
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
}

/* B060: a large mean costs no digits. */
static void test_b060_large_mean(void **state)
{
    (void)state;
    rig_tensor x = rig_values(2, (int64_t[]){2, 4},
                              (float[]){40000, 40001, 40002, 40003, 80000, 80001, 80002, 80003});
    rig_tensor y = rig_new(BURN_F32, 2, x.dims);
    layer_of(&x, 1e-5, &y);
    static const float want[] = {-1.341635F, -0.447212F, 0.447212F, 1.341635F,
                                 -1.341635F, -0.447212F, 0.447212F, 1.341635F};
    check_table(&y, want, 1e-5, "B060");
    free_all(2, (rig_tensor *[]){&x, &y});
    static const double means[] = {0, 100, 1000, 10000};
    static const double first[] = {-1.341641, -1.341528, -1.341508, -1.331333};
    for (uint32_t m = 0; m < 4; m++) {
        x = rig_new(BURN_F32, 2, (int64_t[]){1, 16});
        y = rig_new(BURN_F32, 2, x.dims);
        for (int64_t i = 0; i < 16; i++) {
            rig_set(&x, i, means[m] + 0.001 * (double)i);
        }
        layer_of(&x, 1e-5, &y);
        /* eps and the spread together decide the first element: computed here from the values */
        double mean = 0;
        double var = 0;
        for (int64_t i = 0; i < 16; i++) {
            mean += rig_at(&x, i) / 16;
        }
        for (int64_t i = 0; i < 16; i++) {
            var += (rig_at(&x, i) - mean) * (rig_at(&x, i) - mean) / 16;
        }
        check_close(rig_at(&y, 0), (rig_at(&x, 0) - mean) / sqrt(var + 1e-5), 1e-5, "B060", m);
        check_close(rig_at(&y, 0), first[m], 1e-4, "B060", m);
        free_all(2, (rig_tensor *[]){&x, &y});
    }
}

/* One line, by the textbook: two passes in f64. */
static void check_line(const rig_tensor *x, const rig_tensor *y, double eps)
{
    const int64_t n = rig_numel(x);
    double mean = 0;
    double var = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += rig_at(x, i) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = rig_at(x, i) - mean;
        var += d * d / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double want = (rig_at(x, i) - mean) / sqrt(var + eps);
        check_close(rig_at(y, i), want, 1e-6 * (1 + fabs(want)), "a line", i);
    }
}

/* B060, its kind: what a line starts with, and how long it is, costs no digits either. */
static void test_statistics_of_any_line(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,  2,   3,    15,   16,    17,    31,   32,
                                      33, 100, 1000, 4099, 65536, 65537, 70001};
    static const double starts[] = {0, 1, -1e4, 1e7, 1e30};
    static const double means[] = {0, 1e7};
    for (uint32_t k = 0; k < 15 * 5 * 2; k++) {
        rig_tensor x = rig_new(BURN_F32, 2, (int64_t[]){1, lengths[k % 15]});
        rig_tensor y = rig_new(BURN_F32, 2, x.dims);
        for (int64_t i = 0; i < rig_numel(&x); i++) {
            rig_set(&x, i, means[k / 75] + (double)(i * 7 % 16));
        }
        rig_set(&x, 0, means[k / 75] + starts[k / 15 % 5]);
        layer_of(&x, 1e-5, &y);
        check_line(&x, &y, 1e-5);
        free_all(2, (rig_tensor *[]){&x, &y});
    }
}

/* Lines of no elements have no memory to look at. */
static void test_empty_lines(void **state)
{
    (void)state;
    rig_tensor x = rig_new(BURN_F32, 2, (int64_t[]){3, 0});
    rig_tensor y = rig_new(BURN_F32, 2, x.dims);
    x.data = NULL;
    y.data = NULL;
    layer_of(&x, 1e-5, &y);
    free_all(2, (rig_tensor *[]){&x, &y});
}

/* B062: statistics of f16 lines are not kept in f16. */
static void test_b062_half_statistics(void **state)
{
    (void)state;
    rig_tensor x = from_table(BURN_F16, 2, (int64_t[]){1, 4}, (float[]){300, -300, 300, -300});
    rig_tensor y = rig_new(BURN_F16, 2, x.dims);
    layer_of(&x, 1e-5, &y);
    static const float want[] = {1, -1, 1, -1};
    check_table(&y, want, 0, "B062 a");
    free_all(2, (rig_tensor *[]){&x, &y});
    x = rig_new(BURN_F16, 2, (int64_t[]){4, 65536});
    y = rig_new(BURN_F16, 2, x.dims);
    for (int64_t i = 0; i < rig_numel(&x); i++) {
        rig_set(&x, i, 0.5);
    }
    layer_of(&x, 1e-5, &y);
    for (int64_t i = 0; i < rig_numel(&y); i += 777) {
        assert_true(rig_at(&y, i) == 0.0);
    }
    free_all(2, (rig_tensor *[]){&x, &y});
    static const float zeros[10] = {0};
    x = from_table(BURN_F16, 2, (int64_t[]){1, 10}, zeros);
    y = rig_new(BURN_F16, 2, x.dims);
    layer_of(&x, 1e-12, &y);
    check_table(&y, zeros, 0, "B062 c");
    free_all(2, (rig_tensor *[]){&x, &y});
}

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct attention_want {
    const float *y;
    const float *gq;
    const float *gk;
    const float *gv;
} attention_want;

static void check_attention(uint8_t dtype, rig_tensor *mask, uint32_t causal,
                            const attention_want *want, double tolerance)
{
    rig_tensor q = from_table(dtype, 4, (int64_t[]){2, 2, 3, 4}, attention_q);
    rig_tensor k = from_table(dtype, 4, (int64_t[]){2, 2, 5, 4}, attention_k);
    rig_tensor v = from_table(dtype, 4, (int64_t[]){2, 2, 5, 6}, attention_v);
    rig_tensor g = from_table(dtype, 4, (int64_t[]){2, 2, 3, 6}, attention_g);
    rig_tensor y = rig_new(dtype, 4, g.dims);
    rig_tensor gq = rig_new(dtype, 4, q.dims);
    rig_tensor gk = rig_new(dtype, 4, k.dims);
    rig_tensor gv = rig_new(dtype, 4, v.dims);
    burn_attrs_attention a = {HEAD(burn_attrs_attention), .causal = causal};
    rig_call c = {.op = BURN_OP_ATTENTION, .in = {&q, &k, &v, mask}, .out = {&y}, .n_in = 4};
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    check_table(&y, want->y, tolerance, "attention");
    rig_call b = {.op = BURN_OP_ATTENTION_GRAD, .in = {&q, &k, &v, mask, &g}, .n_in = 5};
    b.out[0] = &gq;
    b.out[1] = &gk;
    b.out[2] = &gv;
    b.n_out = 3;
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    check_table(&gq, want->gq, tolerance * 2, "attention_grad q");
    check_table(&gk, want->gk, tolerance * 2, "attention_grad k");
    check_table(&gv, want->gv, tolerance * 2, "attention_grad v");
    free_all(8, (rig_tensor *[]){&q, &k, &v, &g, &y, &gq, &gk, &gv});
}

#define WANT(name)                                                                                 \
    {                                                                                              \
        attention_##name##_y, attention_##name##_gq, attention_##name##_gk, attention_##name##_gv  \
    }

static void test_attention(void **state)
{
    (void)state;
    static const attention_want plain = WANT(plain);
    static const attention_want causal = WANT(causal);
    static const attention_want biased = WANT(bias);
    static const attention_want masked = WANT(masked);
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_F16};
    rig_tensor none = rig_absent();
    rig_tensor bias = rig_values(4, (int64_t[]){2, 1, 3, 5}, attention_bias);
    rig_tensor mask = from_table(BURN_BOOL, 2, (int64_t[]){3, 5}, attention_mask);
    for (uint32_t i = 0; i < 3; i++) {
        double tolerance = dtypes[i] == BURN_F16 ? 1e-2 : 3e-6;
        check_attention(dtypes[i], &none, 0, &plain, tolerance);
        check_attention(dtypes[i], &none, 1, &causal, tolerance);
        check_attention(dtypes[i], &bias, 0, &biased, tolerance);
        check_attention(dtypes[i], &mask, 1, &masked, tolerance);
    }
    free_all(2, (rig_tensor *[]){&bias, &mask});
}

/* B068: a query that sees nothing has output and gradient 0 and disturbs no other. */
static void test_b068_attention_masked(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 1, 4, 8};
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64};
    for (uint32_t d = 0; d < 4; d++) {
        rig_tensor q = rig_random(dtypes[d / 2], 4, dims, 91);
        rig_tensor k = rig_random(dtypes[d / 2], 4, dims, 92);
        rig_tensor y = rig_new(dtypes[d / 2], 4, dims);
        rig_tensor gq = rig_new(dtypes[d / 2], 4, dims);
        rig_tensor gk = rig_new(dtypes[d / 2], 4, dims);
        rig_tensor gv = rig_new(dtypes[d / 2], 4, dims);
        rig_tensor mask = rig_new(BURN_BOOL, 2, (int64_t[]){4, 4});
        uint32_t causal = d % 2;
        int64_t blind = causal ? 0 : 1;
        for (int64_t i = 0; i < 16; i++) {
            rig_set(&mask, i, causal ? i % 4 != 0 : i / 4 != 1);
        }
        burn_attrs_attention a = {HEAD(burn_attrs_attention), .causal = causal};
        rig_call c = {.op = BURN_OP_ATTENTION, .in = {&q, &k, &k, &mask}, .out = {&y}, .n_in = 4};
        c.n_out = 1;
        set_attrs(&c, &a, (uint32_t)sizeof(a));
        check_both(&c);
        rig_call b = {.op = BURN_OP_ATTENTION_GRAD, .in = {&q, &k, &k, &mask, &k}, .n_in = 5};
        b.out[0] = &gq;
        b.out[1] = &gk;
        b.out[2] = &gv;
        b.n_out = 3;
        set_attrs(&b, &a, (uint32_t)sizeof(a));
        check_both(&b);
        for (int64_t i = 0; i < 32; i++) {
            assert_true(isfinite(rig_at(&y, i)) && isfinite(rig_at(&gq, i)));
            assert_true(isfinite(rig_at(&gk, i)) && isfinite(rig_at(&gv, i)));
            if (i / 8 == blind) {
                assert_true(rig_at(&y, i) == 0.0 && rig_at(&gq, i) == 0.0);
            } else {
                assert_true(rig_at(&y, i) != 0.0);
            }
        }
        free_all(7, (rig_tensor *[]){&q, &k, &y, &gq, &gk, &gv, &mask});
    }
}

/* Several tiles of queries, heads as a permuted view. */
static void test_attention_tiles(void **state)
{
    (void)state;
    rig_tensor base = rig_random(BURN_F32, 4, (int64_t[]){1, 150, 3, 20}, 95);
    rig_tensor q = rig_swapped(&base, 1, 2);
    rig_tensor y = rig_new(BURN_F32, 4, q.dims);
    rig_tensor none = rig_absent();
    burn_attrs_attention a = {HEAD(burn_attrs_attention), .causal = 1, .scale = 0.3};
    rig_call c = {.op = BURN_OP_ATTENTION, .in = {&q, &q, &q, &none}, .out = {&y}, .n_in = 4};
    c.n_out = 1;
    set_attrs(&c, &a, (uint32_t)sizeof(a));
    check_both(&c);
    for (int64_t row = 0; row < 450; row += 7) {
        int64_t h = row / 150 * 150;
        double sum = 0;
        double want[20] = {0};
        for (int64_t j = h; j <= row; j++) {
            double score = 0;
            for (int64_t x = 0; x < 20; x++) {
                score += rig_at(&q, row * 20 + x) * rig_at(&q, j * 20 + x);
            }
            double p = exp(score * 0.3);
            sum += p;
            for (int64_t x = 0; x < 20; x++) {
                want[x] += p * rig_at(&q, j * 20 + x);
            }
        }
        for (int64_t x = 0; x < 20; x++) {
            check_close(rig_at(&y, row * 20 + x), want[x] / sum, 2e-6, "attention tiles", row);
        }
    }
    rig_tensor gq = rig_new(BURN_F32, 4, q.dims);
    rig_tensor gk = rig_new(BURN_F32, 4, q.dims);
    rig_tensor gv = rig_new(BURN_F32, 4, q.dims);
    rig_call b = {.op = BURN_OP_ATTENTION_GRAD, .in = {&q, &q, &q, &none, &q}, .n_in = 5};
    b.out[0] = &gq;
    b.out[1] = &gk;
    b.out[2] = &gv;
    b.n_out = 3;
    set_attrs(&b, &a, (uint32_t)sizeof(a));
    check_both(&b);
    free_all(5, (rig_tensor *[]){&base, &y, &gq, &gk, &gv});
}

int main(int argc, char **argv)
{
    int code = check_load(argc, argv);
    if (code != 0) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_softmax_long),
        cmocka_unit_test(test_b068_softmax_masked),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_b074_cross_entropy),
        cmocka_unit_test(test_mse),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_b210_adamw_order),
        cmocka_unit_test(test_adam_long),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_norms_large),
        cmocka_unit_test(test_b060_large_mean),
        cmocka_unit_test(test_statistics_of_any_line),
        cmocka_unit_test(test_empty_lines),
        cmocka_unit_test(test_b062_half_statistics),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_b068_attention_masked),
        cmocka_unit_test(test_attention_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
