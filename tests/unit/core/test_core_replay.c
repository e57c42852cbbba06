/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_replay.c - steps that are kept and run again equal steps that are called, to the last
 * bit; what cannot be kept says why.
 */
#include "core_test.h"

#include <burn/build.h>
#include <burn/grad.h>
#include <burn/replay.h>
#include <string.h>

enum { BATCH = 8, IN = 12, HIDDEN = 16, CLASSES = 5 };

typedef struct net {
    burn_var *w1;
    burn_var *b1;
    burn_var *w2;
    burn_var *m1; /* Adam's state of w1 */
    burn_var *v1;
} net;

static burn_var *make_var(int64_t rows, int64_t columns, int zero)
{
    int64_t dims[2] = {rows, columns};
    burn_scope_begin();
    burn_tensor *t = zero ? burn_zeros(dev, BURN_F32, 2, dims)
                          : burn_random_normal(dev, BURN_F32, 2, dims);
    burn_var *v = burn_var_create(ad, t, NULL);
    burn_scope_end();
    assert_non_null(v);
    return v;
}

static net net_make(void)
{
    burn_seed(7);
    net n = {make_var(IN, HIDDEN, 0), make_var(1, HIDDEN, 1), make_var(HIDDEN, CLASSES, 0),
             make_var(IN, HIDDEN, 1), make_var(IN, HIDDEN, 1)};
    burn_var_set_tracked(n.m1, 0);
    burn_var_set_tracked(n.v1, 0);
    return n;
}

static void net_free(const net *n)
{
    burn_var_release(n->w1);
    burn_var_release(n->b1);
    burn_var_release(n->w2);
    burn_var_release(n->m1);
    burn_var_release(n->v1);
}

static burn_tensor *batch(int k)
{
    float x[BATCH * IN];
    int64_t dims[2] = {BATCH, IN};
    for (int i = 0; i < BATCH * IN; i++) {
        x[i] = (float)((i * 37 + k * 101) % 97) / 97.0f - 0.5f;
    }
    return burn_tensor_from_data(dev, BURN_F32, 2, dims, x);
}

static void sgd(burn_var *v, burn_grads *g, double lr)
{
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    burn_tensor *grad = burn_grads_get_var(g, v);
    assert_non_null(grad);
    burn_var *const vars[4] = {v, NULL, NULL, NULL};
    burn_tensor *const in[4] = {NULL, grad, NULL, burn_replay_scalar(burn_scalar(lr), "lr", 0.0)};
    assert_int_equal(burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, NULL), BURN_OK);
}

static void adam(const net *n, burn_grads *g, double lr, double t)
{
    burn_attrs_adam a;
    burn_attrs_init(&a, sizeof(a));
    a.beta1 = 0.9;
    a.beta2 = 0.999;
    a.eps = 1e-8;
    burn_tensor *grad = burn_grads_get_var(g, n->w1);
    assert_non_null(grad);
    burn_var *const vars[6] = {n->w1, NULL, n->m1, n->v1, NULL, NULL};
    burn_tensor *const in[6] = {NULL,
                                grad,
                                NULL,
                                NULL,
                                burn_replay_scalar(burn_scalar(lr), "lr", 0.0),
                                burn_replay_scalar(burn_scalar(t), "", 1.0)};
    assert_int_equal(burn_var_update(BURN_OP_ADAM_STEP, &a, sizeof(a), vars, in, 6, NULL),
                     BURN_OK);
}

/* The values of the variables are let go of at its end, so that nobody has to keep old ones. */
static burn_tensor *forward(const net *n, burn_tensor *x)
{
    burn_scope_begin();
    burn_tensor *h = burn_add(burn_matmul(x, burn_var_get(n->w1)), burn_var_get(n->b1));
    h = burn_dropout(burn_relu(h), 0.25);
    burn_tensor *y = burn_matmul(h, burn_var_get(n->w2));
    return burn_scope_return(burn_mean(burn_mul(burn_tanh(y), y), 0, NULL, 0));
}

/* Forward with dropout, backward, three updates. Returns the loss, in the caller's scope. */
static burn_tensor *train_step(const net *n, burn_tensor *x, double lr, int t)
{
    burn_scope_begin();
    burn_tensor *loss = forward(n, x);
    burn_grads *g = burn_backward(loss, NULL, 0, NULL);
    assert_non_null(g);
    adam(n, g, lr, (double)t);
    sgd(n->b1, g, lr);
    sgd(n->w2, g, lr);
    burn_grads_free(g);
    burn_tensor *result = burn_detach(loss);
    return burn_scope_return(result);
}

enum { STEPS = 1000 };

static double rate(int k)
{
    return k < STEPS / 2 ? 0.05 : 0.01;
}

static void run_eager(float *losses, float *weights)
{
    net n = net_make();
    for (int k = 0; k < STEPS; k++) {
        burn_scope_begin();
        losses[k] = (float)burn_item(train_step(&n, batch(k), rate(k), k + 1), NULL);
        burn_scope_end();
    }
    assert_int_equal(
        burn_read(burn_var_get(n.w1), weights, IN * HIDDEN * sizeof(float), NULL), BURN_OK);
    burn_scope_flush();
    net_free(&n);
}

static void run_replayed(float *losses, float *weights)
{
    burn_err err = BURN_ERR_INIT;
    net n = net_make();
    burn_replay *replay = NULL;
    for (int k = 0; k < STEPS; k++) {
        burn_scope_begin();
        burn_tensor *x = batch(k);
        burn_tensor *loss = NULL;
        if (k == 1) {
            assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
            loss = train_step(&n, burn_replay_port(x), rate(k), k + 1);
            replay = burn_replay_end(&loss, 1, &err);
            if (replay == NULL) {
                fail_msg("%s", err.text);
            }
        } else if (k == 0) {
            loss = train_step(&n, x, rate(k), k + 1);
        } else {
            assert_int_equal(burn_replay_set(replay, "lr", rate(k), &err), BURN_OK);
            if (burn_replay_run(replay, &x, 1, &loss, 1, &err) != BURN_OK) {
                fail_msg("%s", err.text);
            }
        }
        losses[k] = (float)burn_item(loss, NULL);
        burn_scope_end();
    }
    assert_int_equal(
        burn_read(burn_var_get(n.w1), weights, IN * HIDDEN * sizeof(float), NULL), BURN_OK);
    uint32_t kept = 0;
    uint32_t runs = 0;
    burn_replay_size(replay, &kept, &runs);
    assert_in_range(runs, 1, kept);
    burn_replay_free(replay);
    burn_scope_flush();
    net_free(&n);
}

/* 80,000 launches: on mock, on a device whose worker does not yield before each of them. */
static int setup_many_launches(void **state)
{
    burn_device *other = on_mock ? burn_device_open("mock:1?yield=0", NULL) : dev;
    if (other == NULL) {
        return -1;
    }
    *state = dev;
    dev = other;
    ad = burn_device_autodiff(dev);
    return core_setup(state);
}

static int teardown_many_launches(void **state)
{
    int rc = core_teardown(state);
    dev = *state;
    ad = burn_device_autodiff(dev);
    return rc;
}

static void replayed_steps__equal_called_ones(void **state)
{
    (void)state;
    static float called[STEPS];
    static float replayed[STEPS];
    static float weights[2][IN * HIDDEN];
    run_eager(called, weights[0]);
    run_replayed(replayed, weights[1]);
    for (int k = 0; k < STEPS; k++) {
        if (memcmp(&called[k], &replayed[k], sizeof(float)) != 0) {
            fail_msg("step %d: %.9g called, %.9g replayed", k, (double)called[k],
                     (double)replayed[k]);
        }
    }
    assert_memory_equal(weights[0], weights[1], sizeof(weights[0]));
    assert_true(called[STEPS - 1] == called[STEPS - 1]);
}

/* Random numbers go on where the generator is, the outputs of a run are its own. */
static void B224_random_numbers__go_on(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    int64_t dims[1] = {33};
    float a[3][33];
    float b[3][33];
    burn_seed(3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(burn_read(burn_random_normal(dev, BURN_F32, 1, dims), a[k], sizeof(a[k]),
                                   NULL),
                         BURN_OK);
    }
    burn_seed(3);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *t[3];
    t[0] = burn_random_normal(dev, BURN_F32, 1, dims);
    burn_replay *replay = burn_replay_end(t, 1, &err);
    assert_non_null(replay);
    assert_int_equal(burn_replay_run(replay, NULL, 0, &t[1], 1, &err), BURN_OK);
    assert_int_equal(burn_replay_run(replay, NULL, 0, &t[2], 1, &err), BURN_OK);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(burn_read(t[k], b[k], sizeof(b[k]), NULL), BURN_OK);
        assert_memory_equal(a[k], b[k], sizeof(a[k]));
    }
    burn_replay_free(replay);
}

/* Inputs that are views, constants of the step, an input that is passed through. */
static void inputs__may_be_views(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *constant = VEC(10, 20);
    const float values[4] = {1, 2, 3, 4};
    burn_tensor *x = burn_copy(VEC(5, 6));
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    (void)burn_replay_port(x);
    burn_tensor *out[2] = {burn_add(x, constant), x};
    burn_replay *replay = burn_replay_end(out, 2, &err);
    assert_non_null(replay);
    burn_tensor *view = burn_slice(burn_transpose(mat(2, 2, values), 0, 1), 0, 1, 2, 1);
    view = burn_reshape(view, 1, (const int64_t[]){2});
    assert_int_equal(burn_replay_run(replay, &view, 1, out, 2, &err), BURN_OK);
    CHECK(out[0], 12, 24);
    CHECK(out[1], 2, 4);
    burn_replay_free(replay);
}

/* `err` keeps a first error: it is made new for the next. */
static void expect_refused(burn_replay *replay, burn_err *err, const char *text)
{
    if (replay != NULL || strstr(err->text, text) == NULL) {
        fail_msg("kept, or \"%s\" is not in \"%s\"", text, err->text);
    }
    *err = (burn_err)BURN_ERR_INIT;
}

static void what_cannot_be_kept__says_why(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2);
    burn_tensor *out = NULL;
    const float values[2] = {3, 4};
    (void)burn_replay_begin(dev, NULL);
    out = burn_add(x, x);
    (void)burn_item(burn_sum(out, 0, NULL, 0), NULL);
    expect_refused(burn_replay_end(&out, 1, &err), &err, "reads a tensor");
    (void)burn_replay_begin(dev, NULL);
    out = burn_add(x, vec(2, values));
    expect_refused(burn_replay_end(&out, 1, &err), &err, "uploads a tensor");
    (void)burn_replay_begin(dev, NULL);
    out = burn_add(x, x);
    burn_var *v = burn_var_create(dev, out, NULL);
    expect_refused(burn_replay_end(&out, 1, &err), &err, "makes a variable");
    burn_var_release(v);
    (void)burn_replay_begin(dev, NULL);
    out = burn_matmul(x, x);
    expect_refused(burn_replay_end(NULL, 0, &err), &err, "a call of it failed: matmul");
    (void)burn_replay_begin(dev, NULL);
    out = burn_add(x, x);
    (void)burn_replay_port(x);
    expect_refused(burn_replay_end(&out, 1, &err), &err, "before it was declared");
    (void)burn_replay_begin(dev, NULL);
    assert_int_equal(burn_replay_begin(dev, NULL), BURN_E_STATE);
    expect_refused(burn_replay_end(NULL, 0, &err), &err, "nothing was launched");
    expect_refused(burn_replay_end(NULL, 0, &err), &err, "no step is being kept");
    (void)burn_replay_begin(dev, NULL);
    burn_replay_refuse("of the weather");
    expect_refused(burn_replay_end(NULL, 0, &err), &err, "of the weather");
    (void)burn_replay_begin(dev, NULL);
    assert_null(burn_replay_port(NULL));
    expect_refused(burn_replay_end(NULL, 0, &err), &err, "a dense tensor of its own");
    for (int is_named = 0; is_named < 2; is_named++) {
        (void)burn_replay_begin(dev, NULL);
        (void)burn_replay_scalar(is_named ? x : burn_scalar(2), is_named ? "lr" : NULL, 0.0);
        expect_refused(burn_replay_end(NULL, 0, &err), &err, "a named scalar must be");
    }
    CHECK(burn_add(x, x), 2, 4);
}

static void runs__check_what_they_are_given(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_copy(VEC(1, 2));
    (void)burn_replay_begin(dev, NULL);
    burn_tensor *out = burn_mul(burn_replay_port(x), x);
    burn_replay *replay = burn_replay_end(&out, 1, &err);
    assert_non_null(replay);
    burn_tensor *wrong = VEC(1, 2, 3);
    assert_int_equal(burn_replay_run(replay, &wrong, 1, &out, 1, &err), BURN_E_SHAPE);
    assert_non_null(strstr(err.text, "input 0 is f32[3], the step was kept with f32[2]"));
    check_failed(out, BURN_E_SHAPE, "input 0", NULL);
    assert_int_equal(burn_replay_run(replay, NULL, 0, &out, 1, NULL), BURN_E_INVALID);
    assert_int_equal(burn_replay_run(replay, &x, 1, NULL, 0, NULL), BURN_E_INVALID);
    assert_int_equal(burn_replay_set(replay, "lr", 1.0, NULL), BURN_E_NOT_FOUND);
    x = VEC(3, 4);
    assert_int_equal(burn_replay_run(replay, &x, 1, &out, 1, NULL), BURN_OK);
    CHECK(out, 9, 16);
    burn_replay_free(replay);
    burn_replay_free(NULL);
}

/* What only the data show fails the dependents in each run anew. */
static void errors__are_those_of_the_calls(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    const int32_t good[2] = {1, 2};
    const int32_t bad[2] = {1, 0};
    int64_t two = 2;
    burn_tensor *x = burn_copy(burn_tensor_from_data(dev, BURN_I32, 1, &two, good));
    burn_tensor *other = burn_tensor_from_data(dev, BURN_I32, 1, &two, bad);
    (void)burn_replay_begin(dev, NULL);
    (void)burn_replay_port(x);
    burn_tensor *out[2] = {burn_div(burn_add(x, x), x), burn_mul(x, x)};
    burn_replay *replay = burn_replay_end(out, 2, &err);
    assert_non_null(replay);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(burn_replay_run(replay, &other, 1, out, 2, &err), BURN_OK);
        int32_t seen[2];
        assert_int_equal(burn_read(out[1], seen, sizeof(seen), NULL), BURN_OK);
        assert_int_equal(seen[0], 1);
        assert_int_equal(burn_read(out[0], seen, sizeof(seen), NULL), BURN_E_DATA);
        assert_int_equal(burn_replay_run(replay, &x, 1, out, 2, NULL), BURN_OK);
        assert_int_equal(burn_read(out[0], seen, sizeof(seen), NULL), BURN_OK);
        assert_int_equal(seen[1], 2);
    }
    (void)burn_sync(dev, NULL);
    burn_replay_free(replay);
}

/* A named scalar keeps its name where the gradient needs it. */
static void named_scalars__reach_the_gradient(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *w = burn_var_create(ad, VEC(1, 2, 3), NULL);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *s = burn_replay_scalar(burn_scalar(2), "s", 0.0);
    burn_tensor *loss = burn_sum(burn_mul(burn_var_get(w), s), 0, NULL, 0);
    burn_grads *g = burn_backward(loss, NULL, 0, NULL);
    burn_tensor *out[2] = {loss, burn_grads_get_var(g, w)};
    burn_replay *replay = burn_replay_end(out, 2, &err);
    burn_grads_free(g);
    assert_non_null(replay);
    assert_int_equal(burn_replay_set(replay, "s", 5.0, NULL), BURN_OK);
    assert_int_equal(burn_replay_set(replay, "", 5.0, NULL), BURN_E_NOT_FOUND);
    assert_int_equal(burn_replay_run(replay, NULL, 0, out, 2, NULL), BURN_OK);
    CHECK(out[0], 30);
    CHECK(out[1], 5, 5, 5);
    burn_replay_size(replay, NULL, NULL);
    burn_replay_free(replay);
    burn_var_release(w);
}

/* ---- long steps ------------------------------------------------------------------------------ */

enum { LAYERS = 1000 }; /* of three launches */

/* A chain of 3 launches a layer on x and w; what is read in its middle is an output, and w is
 * updated near its end. */
static void long_step(burn_tensor *x, burn_var *w, int layers, burn_tensor **out)
{
    burn_scope_begin(); /* nothing may hold the old value of w when it is overwritten */
    burn_tensor *h = x;
    burn_tensor *first = burn_add(x, burn_scalar(1.0));
    for (int i = 0; i < layers; i++) {
        h = burn_relu(burn_add(burn_mul(h, burn_var_get(w)), burn_scalar(0.25)));
        out[1] = i == layers / 2 ? h : out[1];
        if (i % 7 == 3) {
            h = burn_mul(h, burn_scalar(0.5));
        }
    }
    out[0] = burn_mul(h, first);
    burn_scope_end_with(out, 2);
    burn_scope_begin();
    burn_tensor *next = burn_mul(burn_var_get(w), burn_scalar(0.99));
    burn_scope_end_with(&next, 1);
    (void)burn_var_assign(w, next, NULL);
}

static void long_runs(int replayed, float *seen)
{
    burn_err err = BURN_ERR_INIT;
    burn_replay *step = NULL;
    burn_var *w = burn_var_create(dev, VEC(0.9f, 1.01f, -1), &err);
    assert_non_null(w);
    for (int k = 0; k < 3; k++) {
        burn_scope_begin();
        burn_tensor *x = VEC((float)k, 2, 0.5f);
        burn_tensor *out[2] = {NULL, NULL};
        if (step != NULL) {
            assert_int_equal(burn_replay_run(step, &x, 1, out, 2, &err), BURN_OK);
        } else if (replayed) {
            assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
            long_step(burn_replay_port(x), w, LAYERS, out);
            step = burn_replay_end(out, 2, &err);
            if (step == NULL) {
                fail_msg("%s", err.text);
            }
        } else {
            long_step(x, w, LAYERS, out);
        }
        for (int j = 0; j < 2; j++, seen += 3) {
            assert_int_equal(burn_read(out[j], seen, 3 * sizeof(float), &err), BURN_OK);
        }
        burn_scope_end();
    }
    assert_int_equal(burn_read(burn_var_get(w), seen, 3 * sizeof(float), &err), BURN_OK);
    if (step != NULL) {
        uint32_t kept = 0;
        uint32_t runs = 0;
        burn_replay_size(step, &kept, &runs);
        assert_true(kept > 3 * LAYERS);
        assert_true(on_mock ? runs >= 3 * LAYERS : runs < LAYERS);
    }
    burn_replay_free(step);
    burn_var_release(w);
}

static void long_steps__of_3000_launches_are_run_in_parts(void **state)
{
    (void)state;
    float called[21];
    float replayed[21];
    long_runs(0, called);
    long_runs(1, replayed);
    assert_memory_equal(called, replayed, sizeof(called));
    check_clean();
}

static void long_steps__have_a_limit_that_says_what_to_do(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *w = burn_var_create(dev, VEC(1, 2, 3), &err);
    burn_tensor *x = VEC(1, 2, 3);
    burn_tensor *out[2] = {NULL, NULL};
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    long_step(x, w, 4 * LAYERS / 3 + 40, out);
    assert_null(burn_replay_end(out, 2, &err));
    assert_int_equal(err.code, BURN_E_INVALID);
    assert_non_null(strstr(err.text, "longer than 4096 launches"));
    assert_non_null(strstr(err.text, "begin another"));
    burn_var_release(w);
}

/* A step that goes on from its result: one variable of the caller's is input and output. */
static void inputs__may_be_where_outputs_go(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2, 3);
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *y = burn_add(burn_replay_port(x), burn_scalar(1.0));
    burn_replay *step = burn_replay_end(&y, 1, &err);
    assert_non_null(step);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(burn_replay_run(step, &y, 1, &y, 1, &err), BURN_OK);
    }
    CHECK(y, 5, 6, 7);
    burn_replay_free(step);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(long_steps__of_3000_launches_are_run_in_parts),
        CORE_TEST(long_steps__have_a_limit_that_says_what_to_do),
        cmocka_unit_test_setup_teardown(replayed_steps__equal_called_ones, setup_many_launches,
                                        teardown_many_launches),
        CORE_TEST(B224_random_numbers__go_on),
        CORE_TEST(inputs__may_be_views),
        CORE_TEST(inputs__may_be_where_outputs_go),
        CORE_TEST(what_cannot_be_kept__says_why),
        CORE_TEST(runs__check_what_they_are_given),
        CORE_TEST(errors__are_those_of_the_calls),
        CORE_TEST(named_scalars__reach_the_gradient),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
