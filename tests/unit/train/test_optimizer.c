/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_optimizer.c - optimizers and the training loop through the public API: PyTorch's numbers,
 * going on after a file was loaded (B189), batches in parts (B218), the rate of each epoch.
 *
 * Runs as `test_optimizer DEVICE WINDOW`, with the helpers of the core's tests. Expected values are
 * PyTorch's in f64 for parameters (1, -2, 3) and the gradients below. To add an optimizer: a row in
 * `cases` with two steps from there.
 */
#include "core_test.h"

#include <burn/optim.h>
#include <burn/store.h>
#include <burn/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static burn_module *module_of(burn_tensor *p)
{
    burn_err err = BURN_ERR_INIT;
    burn_module *m = burn_module_create(ad, &err);
    if (burn_module_add(m, "p", p, 1, &err) == NULL) {
        fail_msg("%s", err.text);
    }
    return m;
}

/* One step whose gradient is g. */
static void step_with(burn_module *m, burn_optimizer *o, burn_tensor *g, double lr)
{
    burn_err err = BURN_ERR_INIT;
    burn_tensor *y = burn_mul(burn_var_get(burn_module_var(m, "p")), g);
    burn_grads *grads = burn_backward(y, NULL, 0, &err);
    if (grads == NULL || burn_optimizer_step(o, grads, lr, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    burn_grads_free(grads);
}

static burn_tensor *p_of(burn_module *m)
{
    return burn_detach(burn_var_get(burn_module_var(m, "p")));
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { SGD = 0, ADAM = 1, ADAMW = 2 };

static burn_optimizer *make(burn_module *m, int kind, const burn_sgd_opts *sgd,
                            const burn_adam_opts *adam)
{
    burn_err err = BURN_ERR_INIT;
    burn_optimizer *o = kind == SGD    ? burn_optimizer_sgd(m, sgd, &err)
                        : kind == ADAM ? burn_optimizer_adam(m, adam, &err)
                                       : burn_optimizer_adamw(m, adam, &err);
    if (o == NULL) {
        fail_msg("%s", err.text);
    }
    return o;
}

static void steps_are_pytorchs(void **state)
{
    (void)state;
    static const struct {
        int kind;
        burn_sgd_opts sgd;
        burn_adam_opts adam;
        double wanted[2][3];
    } cases[] = {
        {.kind = SGD, .wanted = {{0.95, -1.9, 2.975}, {0.975, -1.95, 2.875}}},
        {.kind = SGD,
         .sgd = {.momentum = 0.9},
         .wanted = {{0.95, -1.9, 2.975}, {0.93, -1.86, 2.8525}}},
        {.kind = SGD,
         .sgd = {.momentum = 0.9, .dampening = 0.5},
         .wanted = {{0.95, -1.9, 2.975}, {0.9175, -1.835, 2.9025}}},
        {.kind = SGD,
         .sgd = {.momentum = 0.9, .nesterov = 1, .weight_decay = 0.1},
         .wanted = {{0.886, -1.772, 2.8955}, {0.868066, -1.736132, 2.6059355}}},
        {.kind = ADAM, .wanted = {{0.9, -1.9, 2.9}, {0.873366299, -1.873366297, 2.811562356}}},
        {.kind = ADAM,
         .adam = {.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1},
         .wanted = {{0.900166389, -1.900083264, 2.900181488},
                    {0.859680114, -1.858834323, 2.80352327}}},
        {.kind = ADAMW,
         .adam = {.weight_decay = 0.1},
         .wanted = {{0.89, -1.88, 2.87}, {0.854466299, -1.834566297, 2.752862356}}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        burn_sgd_opts sgd = cases[i].sgd;
        burn_adam_opts adam = cases[i].adam;
        sgd.struct_size = (uint32_t)sizeof(sgd);
        adam.struct_size = (uint32_t)sizeof(adam);
        burn_module *m = module_of(VEC(1, -2, 3));
        burn_optimizer *o = make(m, cases[i].kind, &sgd, &adam);
        step_with(m, o, VEC(0.5F, -1, 0.25F), 0.1);
        check_values(__LINE__, p_of(m), 3, cases[i].wanted[0], 1e-6);
        step_with(m, o, VEC(-0.25F, 0.5F, 1), 0.1);
        check_values(__LINE__, p_of(m), 3, cases[i].wanted[1], 1e-6);
        assert_int_equal(burn_optimizer_steps(o), 2);
        burn_optimizer_free(o);
        burn_module_free(m);
    }
}

/* The decay comes before the step: 1 (1 - 0.01) - 0.1, not (1 - 0.1) (1 - 0.01). */
static void test_B210_adamw_decays_before_the_step(void **state)
{
    (void)state;
    burn_adam_opts opts = {.struct_size = sizeof(opts), .weight_decay = 0.1};
    burn_module *m = module_of(VEC(1));
    burn_optimizer *o = make(m, ADAMW, NULL, &opts);
    step_with(m, o, VEC(0.5F), 0.1);
    CHECK_NEAR(p_of(m), 1e-6, 0.89);
    step_with(m, o, VEC(0.5F), 0.1);
    CHECK_NEAR(p_of(m), 1e-6, 0.7811);
    burn_optimizer_free(o);
    burn_module_free(m);
    m = module_of(VEC(1));
    o = make(m, ADAM, NULL, &opts);
    step_with(m, o, VEC(0.5F), 0.1);
    CHECK_NEAR(p_of(m), 1e-6, 0.9);
    burn_optimizer_free(o);
    burn_module_free(m);
}

/* ---- saving and going on --------------------------------------------------------------------- */

static char path[] = "/tmp/burn-optimizer-XXXXXX";

static void save(burn_module *m)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_save(m, path, NULL, &err);
    if (rc != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

static void load(burn_module *m)
{
    burn_err err = BURN_ERR_INIT;
    int32_t rc = burn_load(m, path, 0, NULL, &err);
    if (rc != BURN_OK) {
        fail_msg("%s", err.text);
    }
}

/* Some gradient, another one for each step. */
static burn_tensor *gradient_of(int step)
{
    return burn_sin(burn_add(VEC(1, 2, 3), burn_scalar(0.7 * step)));
}

static void test_B189_a_loaded_model_goes_on(void **state)
{
    (void)state;
    burn_module *whole = module_of(VEC(1, -2, 3));
    burn_module *first = module_of(VEC(1, -2, 3));
    burn_module *second = module_of(VEC(7, 7, 7));
    burn_optimizer *a = make(whole, SGD, NULL, NULL);
    burn_optimizer *b = make(first, SGD, NULL, NULL);
    burn_optimizer *c = make(second, SGD, NULL, NULL);
    for (int i = 0; i < 8; i++) {
        step_with(whole, a, gradient_of(i), 0.1);
        if (i < 5) {
            step_with(first, b, gradient_of(i), 0.1);
        }
    }
    save(first);
    load(second);
    for (int i = 5; i < 8; i++) {
        step_with(second, c, gradient_of(i), 0.1);
    }
    check_same(p_of(whole), p_of(second));
    burn_optimizer_free(a);
    burn_optimizer_free(b);
    burn_optimizer_free(c);
    burn_module_free(whole);
    burn_module_free(first);
    burn_module_free(second);
}

/* Loading weights into a model that is being trained leaves its moments where they were. */
static void test_B189_loading_keeps_the_moments(void **state)
{
    (void)state;
    burn_sgd_opts opts = {.struct_size = sizeof(opts), .momentum = 0.5};
    burn_module *other = module_of(VEC(10, 20, 30));
    save(other);
    burn_module *m = module_of(VEC(1, -2, 3));
    burn_optimizer *o = make(m, SGD, &opts, NULL);
    step_with(m, o, VEC(4, 8, 16), 0.25); /* the velocity is now (4, 8, 16) */
    load(m);
    CHECK(p_of(m), 10, 20, 30);
    step_with(m, o, VEC(0, 0, 4), 0.25); /* 0.5 velocity + gradient: (2, 4, 12) */
    CHECK(p_of(m), 9.5, 19, 27);
    burn_optimizer_free(o);
    burn_module_free(m);
    burn_module_free(other);
}

/* ---- a batch in parts ------------------------------------------------------------------------ */

static burn_tensor *loss_of(burn_tensor *w, burn_tensor *x, burn_tensor *target, uint32_t reduction)
{
    burn_loss_opts opts = {.struct_size = sizeof(opts), .reduction = reduction};
    opts.has_ignore_index = 1;
    opts.ignore_index = -100;
    return burn_cross_entropy(burn_matmul(x, w), target, NULL, &opts);
}

static burn_tensor *slope(burn_tensor *loss, burn_tensor *w)
{
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    if (grads == NULL) {
        fail_msg("%s", err.text);
    }
    burn_tensor *g = burn_grads_get(grads, w);
    burn_grads_free(grads);
    return g;
}

/* Parts with 1, 3 and 0 counted tokens: their sums by the count of all are the large batch. */
static void test_B218_parts_weighted_by_their_tokens(void **state)
{
    (void)state;
    static const int64_t targets[3][4] = {
        {2, -100, -100, -100}, {0, 1, -100, 2}, {-100, -100, -100, -100}};
    static const double counts[3] = {1, 3, 0};
    burn_tensor *w = burn_require_grad(ad, burn_sin(count_up(dev, 2, DIMS(5, 3), 0)));
    burn_tensor *x = burn_cos(count_up(dev, 2, DIMS(12, 5), 0));
    burn_tensor *all = burn_tensor_from_data(dev, BURN_I64, 1, DIMS(12), targets);
    burn_tensor *total = NULL;
    for (int64_t i = 0; i < 3; i++) {
        burn_tensor *part = burn_slice(x, 0, 4 * i, 4 * i + 4, 1);
        burn_tensor *loss = loss_of(w, part, index_vec(4, targets[i]), BURN_REDUCTION_SUM);
        burn_tensor *g = slope(loss, w);
        assert_true(isfinite(burn_item(burn_sum(g, 0, NULL, 0), NULL)));
        assert_true(counts[i] > 0 || burn_item(loss, NULL) == 0.0);
        total = total == NULL ? g : burn_add(total, g);
    }
    total = burn_div(total, burn_scalar(4.0));
    double want[15];
    burn_tensor *whole = slope(loss_of(w, x, all, BURN_REDUCTION_MEAN), w);
    assert_int_equal(burn_read_f64(whole, want, 15, NULL), BURN_OK);
    check_values(__LINE__, total, 15, want, 1e-6);
}

/* ---- the training loop ----------------------------------------------------------------------- */

static int32_t BURN_CALL get_item(void *ctx, int64_t index, void *const *out, burn_err *err)
{
    (void)ctx;
    (void)err;
    float *x = out[0];
    x[0] = (float)index;
    x[1] = 1;
    *(int64_t *)out[1] = index % 2;
    return BURN_OK;
}

typedef struct seen {
    double rates[4];
    int64_t batches[4];
    int64_t items[4];
} seen;

static int32_t BURN_CALL on_event(void *user, const burn_train_event *event)
{
    seen *s = user;
    if (event->kind == BURN_EVENT_EPOCH_END && event->epoch < 4) {
        s->rates[event->epoch] = event->lr;
        s->batches[event->epoch] = event->batch;
        s->items[event->epoch] = event->items;
    }
    return 0;
}

/* 5 items in batches of 2 are 3 steps: the last one is not dropped. The rate halves each epoch. */
static void test_B218_the_last_short_batch_is_a_step(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_field fields[2] = {{.name = "x", .dtype = BURN_F32, .rank = 1, .dims = {2}},
                            {.name = "class", .dtype = BURN_I64}};
    burn_dataset data = {.struct_size = sizeof(data), .n_fields = 2, .fields = fields};
    data.field_stride = (uint32_t)sizeof(fields[0]);
    data.count = 5;
    data.get = get_item;
    burn_module *m = burn_module_create(ad, &err);
    assert_non_null(burn_nn_linear(m, "one", 2, 2, 1, &err));
    burn_optimizer *o = make(m, SGD, NULL, NULL);
    seen s = {{0}, {0}, {0}};
    burn_fit_opts opts = {.struct_size = sizeof(opts), .epochs = 4, .batch_size = 2, .lr = 0.5};
    opts.lr_decay = 0.5;
    opts.on_event = on_event;
    opts.user = &s;
    if (burn_fit(m, o, &data, NULL, &opts, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(burn_optimizer_steps(o), 4 * 3);
    for (int i = 0; i < 4; i++) {
        assert_true(s.rates[i] == ldexp(0.5, -i));
        assert_int_equal(s.batches[i], 3);
        assert_int_equal(s.items[i], 5);
    }
    burn_optimizer_free(o);
    burn_module_free(m);
}

/* Weights after training on 5 items in batches of 2, steps called or replayed. */
static void weights_of_a_fit(int kind, uint32_t replay, float *out)
{
    burn_err err = BURN_ERR_INIT;
    burn_field fields[2] = {{.name = "x", .dtype = BURN_F32, .rank = 1, .dims = {2}},
                            {.name = "class", .dtype = BURN_I64}};
    burn_dataset data = {.struct_size = sizeof(data), .n_fields = 2, .fields = fields};
    data.field_stride = (uint32_t)sizeof(fields[0]);
    data.count = 5;
    data.get = get_item;
    burn_seed(3);
    burn_module *m = burn_module_create(ad, &err);
    assert_non_null(burn_nn_linear(m, "one", 2, 2, 1, &err));
    assert_non_null(burn_nn_dropout(m, "drop", 0.5, &err));
    burn_optimizer *o = make(m, kind, NULL, NULL);
    burn_fit_opts opts = {.struct_size = sizeof(opts), .epochs = 4, .batch_size = 2, .lr = 0.5};
    opts.lr_decay = 0.5;
    opts.replay = replay;
    if (burn_fit(m, o, &data, NULL, &opts, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(burn_optimizer_steps(o), 4 * 3);
    burn_tensor *w = burn_var_get(burn_module_var(m, "one.weight"));
    assert_int_equal(burn_read(w, out, 4 * sizeof(float), &err), BURN_OK);
    burn_optimizer_free(o);
    burn_module_free(m);
}

static void fit__replayed_steps_are_called_ones(void **state)
{
    (void)state;
    static const int kinds[] = {SGD, ADAMW};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        float called[4];
        float replayed[4];
        weights_of_a_fit(kinds[k], 0, called);
        weights_of_a_fit(kinds[k], 1, replayed);
        assert_memory_equal(called, replayed, sizeof(called));
    }
}

static void expect_text(burn_err *err, const char *text)
{
    if (strstr(err->text, text) == NULL) {
        fail_msg("'%s' lacks '%s'", err->text, text);
    }
    *err = (burn_err)BURN_ERR_INIT;
}

/* What was forgotten or cannot be meant is told, and no parameter is touched. */
static void options__wrong_ones_are_told(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *m = burn_module_create(ad, &err);
    assert_non_null(burn_nn_linear(m, "one", 2, 2, 1, &err));
    burn_adam_opts adam = {.weight_decay = 0.1};
    assert_null(burn_optimizer_adamw(m, &adam, &err));
    expect_text(&err, "opts.struct_size is 0; set it to sizeof(burn_adam_opts)");
    adam = (burn_adam_opts){.struct_size = sizeof(adam), .eps = -1};
    assert_null(burn_optimizer_adam(m, &adam, &err));
    expect_text(&err, "eps -1 must be above 0");
    burn_sgd_opts sgd = {.struct_size = sizeof(sgd), .nesterov = 1};
    assert_null(burn_optimizer_sgd(m, &sgd, &err));
    expect_text(&err, "nesterov needs a momentum above 0 (is 0)");
    burn_optimizer *o = burn_optimizer_sgd(m, NULL, &err);
    burn_tensor *loss = burn_sum(burn_var_get(burn_module_var(m, "one.weight")), 0, NULL, 0);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    assert_int_equal(burn_optimizer_step(o, grads, (double)NAN, &err), BURN_E_INVALID);
    expect_text(&err, "the learning rate is not finite");
    assert_int_equal(burn_optimizer_step(NULL, grads, 0.5, &err), BURN_E_INVALID);
    expect_text(&err, "optimizer: the optimizer is NULL");
    assert_int_equal(burn_optimizer_step(o, NULL, 0.5, &err), BURN_E_INVALID);
    expect_text(&err, "optimizer: the gradients are NULL");
    assert_int_equal(burn_optimizer_steps(o), 0);
    burn_fit_opts fit = {.struct_size = sizeof(fit), .batch_size = 2, .lr = 0.5};
    burn_dataset data = {.struct_size = sizeof(data), .n_fields = 2};
    assert_int_equal(burn_fit(m, o, &data, NULL, &fit, &err), BURN_E_INVALID);
    expect_text(&err, "epochs is 0, it must be at least 1");
    fit.epochs = 1;
    fit.lr = 0;
    assert_int_equal(burn_fit(m, o, &data, NULL, &fit, &err), BURN_E_INVALID);
    expect_text(&err, "lr is 0, it must be above 0");
    assert_int_equal(burn_fit(m, NULL, &data, NULL, &fit, &err), BURN_E_INVALID);
    expect_text(&err, "optimizer is NULL");
    assert_int_equal(burn_fit(m, o, &data, NULL, NULL, &err), BURN_E_INVALID);
    expect_text(&err, "opts is NULL");
    fit.struct_size = 3;
    assert_int_equal(burn_fit(m, o, &data, NULL, &fit, &err), BURN_E_INVALID);
    expect_text(&err, "struct_size is 3");
    burn_grads_free(grads);
    burn_optimizer_free(o);
    burn_module_free(m);
}

/* It would train nothing, in silence. */
static void step__another_modules_optimizer_is_refused(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *m = module_of(VEC(1, -2, 3));
    burn_module *other = module_of(VEC(4, 5, 6));
    burn_optimizer *o = make(other, SGD, NULL, NULL);
    burn_grads *grads = burn_backward(burn_var_get(burn_module_var(m, "p")), NULL, 0, &err);
    assert_non_null(grads);
    assert_int_equal(burn_optimizer_step(o, grads, 0.1, &err), BURN_E_INVALID);
    expect_text(&err, "none of its 1 parameters has a gradient");
    assert_int_equal(burn_optimizer_steps(o), 0);
    CHECK(p_of(other), 4, 5, 6);
    burn_grads_free(grads);
    burn_optimizer_free(o);
    burn_module_free(other);
    burn_module_free(m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(fit__replayed_steps_are_called_ones),
        CORE_TEST(options__wrong_ones_are_told),
        CORE_TEST(step__another_modules_optimizer_is_refused),
        CORE_TEST(steps_are_pytorchs),
        CORE_TEST(test_B210_adamw_decays_before_the_step),
        CORE_TEST(test_B189_a_loaded_model_goes_on),
        CORE_TEST(test_B189_loading_keeps_the_moments),
        CORE_TEST(test_B218_parts_weighted_by_their_tokens),
        CORE_TEST(test_B218_the_last_short_batch_is_a_step),
    };
    int file = mkstemp(path);
    if (file < 0) {
        perror(path);
        return 1;
    }
    (void)close(file);
    int rc = core_test_main(argc, argv, tests, COUNT(tests));
    (void)unlink(path);
    return rc;
}
