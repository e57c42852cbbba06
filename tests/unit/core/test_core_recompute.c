/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_recompute.c - values that are made again in backward: the same bits as when they are
 * kept (B131), less memory, and what may happen in between: variables overwritten, scopes that end,
 * failures, captures, two passes, two threads. The test of peaks goes first: they never fall.
 */
#include "core_test.h"

#include <burn/plans.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NONE, BALANCED, SCOPE, N_WAYS };

/* Sets the way for what follows; `begin` and `end` stand around a forward pass. */
static int way;

static void begin(int how)
{
    way = how;
    assert_int_equal(burn_device_set_recompute(dev, how == BALANCED ? BURN_RECOMPUTE_BALANCED
                                                                    : BURN_RECOMPUTE_NONE, NULL),
                     BURN_OK);
    if (way == SCOPE) {
        burn_recompute_begin();
    }
}

static burn_tensor *end(burn_tensor *y)
{
    if (way == SCOPE) {
        assert_int_equal(burn_recompute_end(&y, 1, NULL), BURN_OK);
    }
    assert_int_equal(burn_device_set_recompute(dev, BURN_RECOMPUTE_NONE, NULL), BURN_OK);
    return y;
}

static burn_grads *backward(burn_tensor *y, uint32_t flags)
{
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(y, NULL, flags, &err);
    if (grads == NULL) {
        fail_msg("backward: %s", err.text);
    }
    return grads;
}

static burn_tensor *total(burn_tensor *t)
{
    return burn_sum(t, 0, NULL, 0);
}

static uint64_t peak(void)
{
    burn_memory memory;
    BURN_INIT(&memory, burn_memory);
    (void)burn_sync(dev, NULL);
    assert_int_equal(burn_memory_report(dev, &memory, NULL), BURN_OK);
    return memory.peak_in_use;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { LAYERS = 32, WIDE = 16 * 1024 };

/* y = gelu(c y), 32 times; each value is let go once the next one is there. */
static burn_tensor *chain(burn_tensor *x, burn_tensor *c)
{
    burn_scope_begin();
    burn_tensor *y = x;
    for (int i = 0; i < LAYERS; i++) {
        burn_scope_begin();
        burn_tensor *next = burn_keep(burn_gelu(burn_mul(y, c), 0));
        burn_scope_end();
        if (i > 0) {
            burn_release(y);
        }
        y = next;
    }
    burn_tensor *sum = total(y);
    burn_release(y);
    burn_scope_end_with(&sum, 1);
    return sum;
}

/* What the history keeps, and the peak of the whole, in tensors. */
typedef struct cost {
    double kept;
    double peak;
    burn_tensor *grad;
} cost;

static cost run_chain(int how)
{
    const double size = WIDE * sizeof(float);
    burn_tensor *x = burn_require_grad(ad, burn_full(dev, BURN_F32, 1, DIMS(WIDE),
                                                     burn_scalar(0.75)));
    burn_tensor *c = burn_keep(burn_full(dev, BURN_F32, 1, DIMS(WIDE), burn_scalar(1.25)));
    uint64_t before = in_use();
    begin(how);
    burn_tensor *y = end(chain(x, c));
    cost result = {0, 0, NULL};
    result.kept = (double)(in_use() - before) / size;
    burn_grads *grads = backward(y, 0);
    result.peak = (double)(peak() - before) / size;
    result.grad = burn_keep(burn_grads_get(grads, x));
    burn_grads_free(grads);
    burn_release(y);
    burn_release(c);
    return result;
}

static void test_a_chain_keeps_less(void **state)
{
    (void)state;
    burn_scope_begin();
    cost balanced = run_chain(BALANCED);
    cost none = run_chain(NONE);
    check_same(balanced.grad, none.grad);
    /* One input of gelu per layer, against every ninth value. */
    assert_true(none.kept > LAYERS - 1);
    assert_true(balanced.kept < LAYERS / 4);
    if (window == 1) {
        assert_true(none.peak > LAYERS);
        assert_true(balanced.peak < 0.7 * none.peak);
    }
    cost scope = run_chain(SCOPE);
    check_same(scope.grad, none.grad);
    assert_true(scope.kept < 2);
    burn_release(balanced.grad);
    burn_release(none.grad);
    burn_release(scope.grad);
    burn_scope_end();
}

/* The most that the plan of a step takes: y = gelu(y w), four times, and the gradient of w. */
static uint64_t planned_peak(int how, burn_tensor *x, burn_tensor *w)
{
    for (int round = 0; round < 4; round++) {
        burn_scope_begin();
        begin(how);
        burn_tensor *y = x;
        for (int i = 0; i < 4; i++) {
            y = burn_gelu(burn_matmul(y, w), 0);
        }
        y = end(total(y));
        burn_grads *grads = backward(y, 0);
        burn_tensor *grad = burn_keep(burn_grads_get(grads, w));
        burn_grads_free(grads);
        burn_scope_end();
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        burn_release(grad);
    }
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t.last.peak_bytes;
}

/* A gelu that is made again could join the group of the product that it is made of, which runs in
 * the forward pass: it would live from then on. */
static void test_nothing_is_made_again_too_early(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = burn_full(dev, BURN_F32, 2, DIMS(128, 64), burn_scalar(0.5));
    burn_tensor *w = burn_require_grad(ad, burn_full(dev, BURN_F32, 2, DIMS(64, 64),
                                                     burn_scalar(0.01)));
    uint64_t balanced = planned_peak(BALANCED, x, w);
    uint64_t none = planned_peak(NONE, x, w);
    if (window == 1) {
        assert_int_equal(none, 0);
    } else {
        assert_true(none > 0);
        assert_true(balanced < none);
    }
    burn_scope_end();
}

/* A deep perceptron in segments, each a scope of its own: one segment at a time is there. */
static double run_segments(int how, burn_tensor **out)
{
    enum { DEPTH = 24, SEGMENT = 4, ROWS = 64, SIZE = 64 };
    burn_tensor *w = burn_require_grad(ad, burn_mul(burn_random_normal(dev, BURN_F32, 2,
                                                                       DIMS(SIZE, SIZE)),
                                                    burn_scalar(0.15)));
    burn_tensor *y = burn_ones(dev, BURN_F32, 2, DIMS(ROWS, SIZE));
    uint64_t before = in_use();
    for (int i = 0; i < DEPTH; i += SEGMENT) {
        burn_scope_begin();
        begin(how);
        for (int k = 0; k < SEGMENT; k++) {
            y = burn_tanh(burn_matmul(y, w));
        }
        y = end(y);
        burn_scope_end_with(&y, 1);
    }
    double kept = (double)(in_use() - before) / (ROWS * SIZE * sizeof(float));
    burn_grads *grads = backward(total(y), 0);
    *out = burn_grads_get(grads, w);
    burn_grads_free(grads);
    return kept;
}

static void test_segments_keep_their_borders(void **state)
{
    (void)state;
    burn_tensor *g[2];
    burn_seed(3);
    double none = run_segments(NONE, &g[0]);
    burn_seed(3);
    double scope = run_segments(SCOPE, &g[1]);
    check_same(g[0], g[1]);
    assert_true(none >= 24);
    assert_true(scope <= 8);
}

/* ---- the same bits --------------------------------------------------------------------------- */

static burn_tensor *BURN_CALL mix(burn_module *module, void *user, burn_tensor *x)
{
    (void)user;
    burn_tensor *h = burn_forward(burn_module_find(module, "norm"), x);
    burn_tensor *q = burn_forward(burn_module_find(module, "q"), h);
    q = burn_transpose(burn_reshape(q, 4, DIMS(2, 5, 2, 4)), 1, 2);
    burn_tensor *a = burn_attention(q, burn_mul(q, burn_scalar(0.5)), burn_silu(q), NULL, 1, 0);
    a = burn_reshape(burn_transpose(a, 1, 2), 3, DIMS(2, 5, 8));
    a = burn_forward(burn_module_find(module, "drop"), a);
    h = burn_add(x, a);
    burn_tensor *cut = burn_where(burn_less(h, burn_scalar(1.0)), h, burn_exp(burn_neg(h)));
    return burn_cat((burn_tensor *const[]){cut, burn_sigmoid(h)}, 2, 2);
}

static burn_module *make_net(int kind)
{
    burn_err err = BURN_ERR_INIT;
    burn_module *net = burn_module_create(ad, &err);
    if (kind == 0) {
        (void)burn_nn_linear(net, "a", 8, 16, 1, &err);
        (void)burn_nn_activation(net, "r", BURN_RELU, &err);
        (void)burn_nn_dropout(net, "d", 0.5, &err);
        (void)burn_nn_linear(net, "b", 16, 16, 1, &err);
        (void)burn_nn_activation(net, "g", BURN_GELU, &err);
        (void)burn_nn_dropout(net, "e", 0.5, &err);
        (void)burn_nn_linear(net, "c", 16, 4, 1, &err);
    } else if (kind == 1) {
        (void)burn_nn_conv2d(net, "a", 1, 3, 3, NULL, &err);
        (void)burn_nn_batch_norm(net, "n", 3, &err);
        (void)burn_nn_activation(net, "s", BURN_SILU, &err);
        (void)burn_nn_max_pool2d(net, "p", 2, 2, &err);
        (void)burn_nn_dropout(net, "d", 0.25, &err);
        (void)burn_nn_flatten(net, "f", &err);
        (void)burn_nn_linear(net, "b", 27, 4, 1, &err);
    } else {
        burn_module *block = burn_nn_custom(net, "block", mix, NULL, &err);
        (void)burn_nn_layer_norm(block, "norm", 8, &err);
        (void)burn_nn_linear(block, "q", 8, 8, 1, &err);
        (void)burn_nn_dropout(block, "drop", 0.5, &err);
        (void)burn_nn_linear(net, "out", 16, 3, 1, &err);
    }
    if (err.code != BURN_OK) {
        fail_msg("%s", err.text);
    }
    return net;
}

static burn_tensor *net_input(int kind)
{
    return kind == 0   ? burn_random_normal(dev, BURN_F32, 2, DIMS(5, 8))
           : kind == 1 ? burn_random_normal(dev, BURN_F32, 4, DIMS(2, 1, 8, 8))
                       : burn_random_normal(dev, BURN_F32, 3, DIMS(2, 5, 8));
}

/* All gradients and all buffers behind one another, f32; the caller frees. */
static float *run_net(int kind, int how, size_t *n)
{
    burn_seed(5);
    burn_module *net = make_net(kind);
    burn_scope_begin();
    burn_tensor *x = net_input(kind);
    begin(how);
    burn_tensor *y = end(burn_forward(net, x));
    burn_grads *grads = backward(total(burn_mul(y, y)), 0);
    float *values = calloc(4096, sizeof(*values));
    assert_non_null(values);
    *n = 0;
    burn_var *v;
    for (uint32_t i = 0; (v = burn_module_var_at(net, i, NULL, NULL)) != NULL; i++) {
        burn_tensor *g = burn_grads_get_var(grads, v);
        g = g != NULL ? g : burn_var_get(v);
        size_t size = (size_t)burn_numel(g);
        assert_true(*n + size <= 4096);
        assert_int_equal(burn_read(g, values + *n, size * sizeof(float), NULL), BURN_OK);
        *n += size;
    }
    burn_grads_free(grads);
    burn_scope_end();
    burn_module_free(net);
    check_clean();
    return values;
}

static void test_B131_gradients_have_the_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        size_t n = 0;
        float *kept = run_net(kind, NONE, &n);
        uint64_t before = in_use();
        for (int how = BALANCED; how < N_WAYS; how++) {
            size_t m = 0;
            float *again = run_net(kind, how, &m);
            assert_int_equal(n, m);
            if (memcmp(kept, again, n * sizeof(float)) != 0) {
                fail_msg("net %d: other gradients when recomputed by way %d", kind, how);
            }
            free(again);
            assert_int_equal(in_use(), before);
        }
        free(kept);
    }
}

/* Saved outputs, several results, views, casts, integers, immediates, broadcasts. */
static burn_tensor *odd_ops(burn_tensor *x, burn_tensor *row)
{
    burn_tensor *h = burn_exp(burn_mul(x, row));
    burn_tensor *top = NULL;
    burn_tensor *at = burn_argmax(h, 1, 1);
    h = burn_add(burn_softmax(h, 1), burn_slice(burn_transpose(h, 0, 1), 1, 0, 1, 1));
    top = burn_gather(burn_sqrt(h), at, 1);
    h = burn_cast(burn_tanh(burn_cast(h, BURN_F64)), BURN_F32);
    burn_tensor *mask = burn_bernoulli(dev, BURN_F32, 2, DIMS(3, 3), 0.5);
    return burn_add(burn_mul(burn_clamp(h, burn_scalar(0.1), burn_scalar(0.9)), mask), top);
}

static void test_ops_of_all_kinds(void **state)
{
    (void)state;
    burn_tensor *x = burn_require_grad(ad, count_up(dev, 2, DIMS(3, 3), -0.4));
    burn_tensor *row = burn_require_grad(ad, VEC(0.1f, -0.2f, 0.3f));
    burn_tensor *kept[2] = {NULL, NULL};
    for (int how = NONE; how < N_WAYS; how++) {
        burn_seed(9);
        begin(how);
        burn_tensor *y = end(odd_ops(x, row));
        burn_grads *grads = backward(y, 0);
        burn_tensor *g[2] = {burn_grads_get(grads, x), burn_grads_get(grads, row)};
        burn_grads_free(grads);
        for (int k = 0; k < 2; k++) {
            if (how == NONE) {
                kept[k] = g[k];
            } else {
                check_same(kept[k], g[k]);
            }
        }
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static void test_a_history_is_walked_twice(void **state)
{
    (void)state;
    for (int how = NONE; how < N_WAYS; how++) {
        burn_tensor *x = burn_require_grad(ad, VEC(0.5f, 2));
        begin(how);
        burn_tensor *y = end(burn_exp(burn_mul(burn_tanh(x), burn_sin(x))));
        burn_grads *first = backward(y, BURN_GRAD_RETAIN);
        burn_grads *second = backward(y, 0);
        check_same(burn_grads_get(first, x), burn_grads_get(second, x));
        burn_err err = BURN_ERR_INIT;
        assert_null(burn_backward(y, NULL, 0, &err));
        assert_int_equal(err.code, BURN_E_STATE);
        burn_grads_free(first);
        burn_grads_free(second);
    }
}

static void test_higher_orders(void **state)
{
    (void)state;
    for (int how = NONE; how < N_WAYS; how++) {
        burn_tensor *x = burn_require_grad(ad, VEC(1, 2, -1));
        begin(how);
        burn_tensor *square = burn_mul(x, x);
        burn_tensor *y = end(burn_mul(square, square));
        burn_grads *first = backward(y, BURN_GRAD_CREATE);
        burn_tensor *g = burn_grads_get(first, x);
        CHECK(g, 4, 32, -4);
        burn_grads *second = backward(g, BURN_GRAD_CREATE);
        CHECK(burn_grads_get(second, x), 12, 48, 12);
        burn_grads *third = backward(burn_grads_get(second, x), 0);
        CHECK(burn_grads_get(third, x), 24, 48, -24);
        burn_grads_free(first);
        burn_grads_free(second);
        burn_grads_free(third);
        /* Also through an op that saves what it gives. */
        begin(how);
        y = end(burn_exp(burn_mul(x, burn_scalar(0.0))));
        first = backward(burn_mul(y, y), BURN_GRAD_CREATE);
        CHECK(burn_grads_get(first, x), 0, 0, 0);
        burn_grads_free(first);
    }
}

/* A value of the forward pass is made again from the values that there were then. */
static void test_variables_are_overwritten_meanwhile(void **state)
{
    (void)state;
    for (int how = NONE; how < N_WAYS; how++) {
        burn_err err = BURN_ERR_INIT;
        burn_var *w = burn_var_create(ad, VEC(1, 2), &err);
        burn_scope_begin();
        begin(how);
        burn_tensor *y = end(burn_exp(burn_mul(burn_mul(burn_var_get(w), VEC(2, 3)),
                                               burn_var_get(w))));
        burn_grads *first = backward(y, BURN_GRAD_RETAIN);
        burn_tensor *g = burn_grads_get_var(first, w);
        assert_int_equal(burn_var_assign(w, VEC(-7, 9), &err), BURN_OK);
        burn_grads *second = backward(y, BURN_GRAD_RETAIN);
        check_same(g, burn_grads_get_var(second, w));
        burn_attrs_sgd a;
        burn_attrs_init(&a, sizeof(a));
        burn_var *const vars[] = {w, NULL, NULL, NULL};
        burn_tensor *const in[] = {NULL, g, NULL, burn_scalar(0.5)};
        assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err),
                         BURN_OK);
        burn_grads *third = backward(y, 0);
        check_same(g, burn_grads_get_var(third, w));
        burn_grads_free(first);
        burn_grads_free(second);
        burn_grads_free(third);
        burn_scope_end();
        burn_var_release(w);
    }
}

/* Running statistics move once per forward pass, whatever runs again. */
static void test_effects_are_not_repeated(void **state)
{
    (void)state;
    burn_tensor *mean[N_WAYS];
    for (int how = NONE; how < N_WAYS; how++) {
        burn_err err = BURN_ERR_INIT;
        burn_module *net = burn_module_create(ad, &err);
        (void)burn_nn_batch_norm(net, "n", 2, &err);
        burn_tensor *x = burn_require_grad(ad, count_up(dev, 2, DIMS(4, 2), 1));
        begin(how);
        burn_tensor *y = end(burn_exp(burn_forward(net, x)));
        burn_grads_free(backward(y, BURN_GRAD_RETAIN));
        burn_grads_free(backward(y, 0));
        mean[how] = burn_add(burn_var_get(burn_module_var(net, "n.running_mean")),
                             burn_scalar(0.0));
        CHECK_NEAR(mean[how], 1e-6, 0.4, 0.5);
        burn_module_free(net);
    }
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void test_scopes_within_scopes(void **state)
{
    (void)state;
    burn_tensor *x = burn_require_grad(ad, burn_full(dev, BURN_F32, 1, DIMS(WIDE),
                                                     burn_scalar(0.5)));
    uint64_t before = in_use();
    burn_scope_begin();
    burn_recompute_begin();
    burn_recompute_begin();
    burn_tensor *y = burn_exp(x);
    assert_int_equal(burn_recompute_end(&y, 1, NULL), BURN_OK);
    y = burn_exp(burn_tanh(y));
    /* Not recorded, but within: made again as well. */
    burn_tensor *mask = burn_bernoulli(dev, BURN_F32, 1, DIMS(WIDE), 0.5);
    y = total(burn_mul(y, mask));
    assert_int_equal(burn_recompute_end(&y, 1, NULL), BURN_OK);
    burn_scope_end_with(&y, 1);
    assert_true(in_use() - before < WIDE);
    burn_grads *grads = backward(y, 0);
    burn_tensor *g = burn_grads_get(grads, x);
    double sum = burn_item(total(g), NULL);
    /* d exp(tanh(exp x)) at 0.5, where the mask is 1. */
    const double slope = 2.546885 * (1 - 0.928862 * 0.928862) * 1.648721;
    assert_true(sum / slope > 0.4 * WIDE && sum / slope < 0.6 * WIDE);
    burn_grads_free(grads);
}

static void test_bad_calls(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_recompute_end(NULL, 0, &err), BURN_E_STATE);
    assert_non_null(strstr(err.text, "burn_recompute_begin"));
    burn_recompute_begin();
    err.code = BURN_OK;
    assert_int_equal(burn_recompute_end(NULL, 1, &err), BURN_E_INVALID);
    burn_tensor *none = NULL;
    assert_int_equal(burn_recompute_end(&none, 1, NULL), BURN_OK);
    err.code = BURN_OK;
    assert_int_equal(burn_device_set_recompute(dev, 7, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "7"));
    assert_int_equal(burn_device_set_recompute(NULL, 0, NULL), BURN_E_INVALID);
    assert_int_equal(burn_device_recompute(ad), BURN_RECOMPUTE_NONE);
    assert_int_equal(burn_device_set_recompute(ad, BURN_RECOMPUTE_BALANCED, NULL), BURN_OK);
    assert_int_equal(burn_device_recompute(dev), BURN_RECOMPUTE_BALANCED);
    assert_int_equal(burn_device_set_recompute(dev, BURN_RECOMPUTE_NONE, NULL), BURN_OK);
    /* Failed tensors pass through both ways. */
    for (int how = NONE; how < N_WAYS; how++) {
        begin(how);
        burn_tensor *x = burn_require_grad(ad, VEC(1, 2));
        burn_tensor *bad = end(burn_exp(burn_add(x, VEC(1, 2, 3))));
        check_failed(bad, BURN_E_SHAPE, "add", NULL);
        err.code = BURN_OK;
        assert_null(burn_backward(bad, NULL, 0, &err));
        assert_int_equal(err.code, BURN_E_SHAPE);
    }
    (void)burn_sync(dev, NULL);
}

/* What is handed over to a call within a scope stays fit for running the call again. */
static void test_moved_inputs(void **state)
{
    (void)state;
    burn_tensor *x = burn_require_grad(ad, VEC(1, 2));
    burn_recompute_begin();
    burn_tensor *c = burn_add(VEC(1, 1), VEC(2, 3));
    burn_tensor *d = burn_mul(burn_move(c), burn_scalar(2.0));
    burn_tensor *y = burn_mul(burn_exp(burn_mul(x, burn_scalar(0.0))), burn_move(d));
    assert_int_equal(burn_recompute_end(&y, 1, NULL), BURN_OK);
    burn_grads *grads = backward(burn_mul(y, x), 0);
    CHECK(burn_grads_get(grads, x), 6, 8);
    burn_grads_free(grads);
}

/* Neither making again nor letting go takes a stack as deep as the chain. */
static void test_long_scopes(void **state)
{
    (void)state;
    const int n = on_mock ? 2000 : 20000;
    burn_tensor *x = burn_require_grad(ad, VEC(1, 2));
    for (int walk = 0; walk < 2; walk++) {
        burn_scope_begin();
        burn_recompute_begin();
        burn_tensor *y = x;
        for (int i = 0; i < n; i++) {
            y = burn_mul(y, i % 2 == 0 ? burn_exp(burn_mul(y, burn_scalar(0.0)))
                                       : burn_scalar(1.0));
        }
        assert_int_equal(burn_recompute_end(&y, 1, NULL), BURN_OK);
        burn_scope_end_with(&y, 1);
        if (walk) {
            burn_grads *grads = backward(y, 0);
            CHECK(burn_grads_get(grads, x), 1, 1);
            burn_grads_free(grads);
        }
        burn_release(y);
    }
}

/* ---- failures and captures ------------------------------------------------------------------- */

/* Memory runs out while a value is made again: the pass, or the sync, says during what. */
static void test_failures_name_the_recomputation(void **state)
{
    (void)state;
    for (int how = BALANCED; how < N_WAYS; how++) {
        burn_tensor *x = burn_require_grad(ad, burn_ones(dev, BURN_F32, 1, DIMS(1000000)));
        burn_scope_begin();
        begin(how);
        burn_tensor *y = burn_mul(burn_mul(x, burn_scalar(0.5)), burn_scalar(3.0));
        y = total(end(burn_gelu(y, 0)));
        burn_scope_end_with(&y, 1);
        (void)burn_item(y, NULL);
        burn_memory_trim(dev);
        burn_memory memory;
        BURN_INIT(&memory, burn_memory);
        (void)burn_memory_report(dev, &memory, NULL);
        burn_memory_limit(dev, memory.reserved + 1);
        burn_err err = BURN_ERR_INIT;
        burn_grads *grads = burn_backward(y, NULL, BURN_GRAD_RETAIN, &err);
        int32_t rc = grads != NULL ? burn_sync(dev, &err) : err.code;
        assert_int_equal(rc, BURN_E_NO_MEMORY);
        if (strstr(err.text, "recomput") == NULL || strstr(err.text, "mul") == NULL) {
            fail_msg("it says: %s", err.text);
        }
        burn_grads_free(grads);
        burn_memory_limit(dev, 0);
        (void)burn_sync(dev, NULL);
        /* The history is as it was. */
        grads = backward(y, 0);
        burn_tensor *g = burn_grads_get(grads, x);
        CHECK_NEAR(burn_slice(g, 0, 0, 1, 1), 1e-5, 1.5 * (0.933193 + 1.5 * 0.129518));
        burn_grads_free(grads);
        burn_scope_flush();
        check_clean();
    }
}

static void test_recomputation_is_captured(void **state)
{
    (void)state;
    for (int how = NONE; how < N_WAYS; how++) {
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_capture_begin(&err), BURN_OK);
        burn_tensor *in = burn_capture_input(VEC(0.25f, 0.5f), "x");
        burn_tensor *x = burn_require_grad(ad, in);
        begin(how);
        burn_tensor *y = end(burn_exp(burn_sin(burn_mul(x, burn_scalar(2.0)))));
        burn_grads *grads = backward(y, 0);
        burn_tensor *g = burn_grads_get(grads, x);
        burn_graph *graph = burn_capture_end(&g, 1, NULL, &err);
        if (graph == NULL) {
            fail_msg("capture: %s", err.text);
        }
        burn_tensor *other = VEC(1, -1);
        burn_tensor *again = NULL;
        assert_int_equal(burn_graph_run(graph, dev, &other, 1, NULL, NULL, &again, 1, &err),
                         BURN_OK);
        burn_tensor *leaf = burn_require_grad(ad, other);
        burn_grads *want =
            backward(burn_exp(burn_sin(burn_mul(leaf, burn_scalar(2.0)))), 0);
        check_same(again, burn_grads_get(want, leaf));
        burn_grads_free(want);
        burn_grads_free(grads);
        burn_graph_free(graph);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct walker {
    burn_tensor *y;
    burn_tensor *x;
    float seen[4];
    int fine;
} walker;

static void *walk_along(void *arg)
{
    walker *w = arg;
    w->fine = 1;
    for (int i = 0; i < 20 && w->fine; i++) {
        burn_scope_begin();
        burn_grads *grads = burn_backward(w->y, NULL, BURN_GRAD_RETAIN, NULL);
        burn_tensor *g = burn_grads_get(grads, w->x);
        w->fine = g != NULL && burn_read(g, w->seen, sizeof(w->seen), NULL) == BURN_OK;
        burn_grads_free(grads);
        burn_scope_end();
    }
    return NULL;
}

/* Two passes over one retained history at the same time. */
static void test_two_threads_walk_one_history(void **state)
{
    (void)state;
    for (int how = BALANCED; how < N_WAYS; how++) {
        burn_tensor *x = burn_require_grad(ad, VEC(0.1f, 0.2f, 0.3f, 0.4f));
        burn_scope_begin();
        begin(how);
        burn_tensor *y = x;
        for (int i = 0; i < 12; i++) {
            y = burn_gelu(burn_exp(burn_mul(burn_sin(y), x)), 1); /* its form is an attribute */
        }
        y = end(y);
        burn_scope_end_with(&y, 1);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        walker walkers[2] = {{.y = y, .x = x}, {.y = y, .x = x}};
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, walk_along, &walkers[k]), 0);
        }
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pthread_join(threads[k], NULL), 0);
            assert_true(walkers[k].fine);
        }
        assert_memory_equal(walkers[0].seen, walkers[1].seen, sizeof(walkers[0].seen));
        burn_grads *grads = backward(y, 0);
        float last[4];
        assert_int_equal(burn_read(burn_grads_get(grads, x), last, sizeof(last), NULL), BURN_OK);
        assert_memory_equal(walkers[0].seen, last, sizeof(last));
        burn_grads_free(grads);
    }
}

static pthread_barrier_t together;

/* One pass that uses the history up; `fine`: it got its gradient. */
static void *use_up(void *arg)
{
    walker *w = arg;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    (void)pthread_barrier_wait(&together);
    burn_grads *grads = burn_backward(w->y, NULL, 0, &err);
    burn_tensor *g = grads != NULL ? burn_grads_get(grads, w->x) : NULL;
    w->fine = g != NULL && burn_read(g, w->seen, sizeof(w->seen), NULL) == BURN_OK;
    burn_grads_free(grads);
    burn_scope_end();
    return w->fine || err.code == BURN_E_STATE ? NULL : w;
}

/* Two passes at the same time that both use it up: one may be refused, nothing is let go twice. */
static void test_two_threads_use_one_history_up(void **state)
{
    (void)state;
    assert_int_equal(pthread_barrier_init(&together, NULL, 2), 0);
    for (int round = 0; round < 40; round++) {
        burn_scope_begin();
        burn_tensor *x = burn_require_grad(ad, VEC(0.1f, 0.2f, 0.3f, 0.4f));
        begin(round % N_WAYS);
        burn_tensor *y = x;
        for (int i = 0; i < 12; i++) {
            y = burn_exp(burn_sin(y));
        }
        y = end(y);
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        walker walkers[2] = {{.y = y, .x = x}, {.y = y, .x = x}};
        pthread_t threads[2];
        for (int k = 0; k < 2; k++) {
            assert_int_equal(pthread_create(&threads[k], NULL, use_up, &walkers[k]), 0);
        }
        for (int k = 0; k < 2; k++) {
            void *failed = NULL;
            assert_int_equal(pthread_join(threads[k], &failed), 0);
            assert_null(failed);
        }
        assert_true(walkers[0].fine || walkers[1].fine);
        if (walkers[0].fine && walkers[1].fine) {
            assert_memory_equal(walkers[0].seen, walkers[1].seen, sizeof(walkers[0].seen));
        }
        burn_scope_end();
    }
    assert_int_equal(pthread_barrier_destroy(&together), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_chain_keeps_less),
        CORE_TEST(test_nothing_is_made_again_too_early),
        CORE_TEST(test_segments_keep_their_borders),
        CORE_TEST(test_B131_gradients_have_the_same_bits),
        CORE_TEST(test_ops_of_all_kinds),
        CORE_TEST(test_a_history_is_walked_twice),
        CORE_TEST(test_higher_orders),
        CORE_TEST(test_variables_are_overwritten_meanwhile),
        CORE_TEST(test_effects_are_not_repeated),
        CORE_TEST(test_scopes_within_scopes),
        CORE_TEST(test_bad_calls),
        CORE_TEST(test_moved_inputs),
        CORE_TEST(test_long_scopes),
        CORE_TEST(test_failures_name_the_recomputation),
        CORE_TEST(test_recomputation_is_captured),
        CORE_TEST(test_two_threads_walk_one_history),
        CORE_TEST(test_two_threads_use_one_history_up),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
