/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_updates.c - updates of many variables that run as one launch: the bits of updates one
 * by one, failures that stay with their variable, the order of two updates of one variable,
 * replays.
 *
 * Each test has two sets of variables: one is updated and waited for variable by variable, which
 * leaves nothing to put together; the other in one go. To add an update: a row of `updates`.
 */
#include "core_test.h"

#include <burn/op_attrs.h>
#include <burn/plans.h>
#include <burn/replay.h>
#include <math.h>
#include <string.h>

enum { MANY = 40, STATES = 3, STEPS = 5 };

/* Parameter and state of each; sizes from nothing to some pieces of a kernel, two neighbours of one
 * size and dtype among them. */
typedef struct model {
    burn_var *vars[MANY][STATES];
    burn_tensor *grads[MANY];
} model;

static const int64_t sizes[] = {0, 1, 7, 64, 1023, 1025, 1025, 3000, 1024, 130};
static const uint8_t dtypes[] = {BURN_F32, BURN_F32, BURN_F64, BURN_F32, BURN_F16};

static burn_tensor *filled(uint32_t k, double from)
{
    int64_t n = sizes[k % COUNT(sizes)];
    return burn_cast(burn_mul(count_up(dev, 1, &n, from), burn_scalar(0.001)),
                     dtypes[k % COUNT(dtypes)]);
}

static void make_model(model *m)
{
    burn_err err = BURN_ERR_INIT;
    for (uint32_t k = 0; k < MANY; k++) {
        burn_scope_begin();
        for (uint32_t s = 0; s < STATES; s++) {
            m->vars[k][s] = burn_var_create(dev, filled(k, 10.0 + k), &err);
            assert_non_null(m->vars[k][s]);
        }
        m->grads[k] = burn_keep(filled(k, 1.0 - k));
        burn_scope_end();
    }
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
}

static void free_model(model *m)
{
    for (uint32_t k = 0; k < MANY; k++) {
        burn_release(m->grads[k]);
        for (uint32_t s = 0; s < STATES; s++) {
            burn_var_release(m->vars[k][s]);
        }
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

static int32_t adam(burn_var *const *v, burn_tensor *grad, double lr, double t)
{
    burn_attrs_adam a;
    burn_attrs_init(&a, sizeof(a));
    a.beta1 = 0.9;
    a.beta2 = 0.999;
    a.eps = 1e-8;
    a.weight_decay = burn_numel(grad) > 100 ? 0.01 : 0.0; /* attributes may differ */
    a.decoupled = 1;
    burn_var *const vars[6] = {v[0], NULL, v[1], v[2], NULL, NULL};
    burn_tensor *const in[6] = {NULL, grad, NULL, NULL,
                                burn_replay_scalar(burn_scalar(lr), "lr", 0.0),
                                burn_replay_scalar(burn_scalar(t), "steps", 1.0)};
    return burn_var_update(BURN_OP_ADAM_STEP, &a, sizeof(a), vars, in, 6, NULL);
}

static int32_t momentum(burn_var *const *v, burn_tensor *grad, double lr, double t)
{
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    (void)t;
    a.momentum = 0.9;
    burn_var *const vars[4] = {v[0], NULL, v[1], NULL};
    burn_tensor *const in[4] = {NULL, grad, NULL,
                                burn_replay_scalar(burn_scalar(lr), "lr", 0.0)};
    return burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, NULL);
}

static int32_t assigned(burn_var *const *v, burn_tensor *grad, double lr, double t)
{
    (void)t;
    (void)lr;
    return burn_var_assign(v[0], grad, NULL);
}

typedef int32_t (*update)(burn_var *const *v, burn_tensor *grad, double lr, double t);

static const update updates[] = {adam, momentum, assigned};

static void same_values(const model *a, const model *b)
{
    burn_scope_begin();
    for (uint32_t k = 0; k < MANY; k++) {
        for (uint32_t s = 0; s < STATES; s++) {
            check_same(burn_var_get(a->vars[k][s]), burn_var_get(b->vars[k][s]));
        }
    }
    burn_scope_end();
}

/* Kernels that ran meanwhile. */
static uint64_t launches(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t.launches;
}

static uint64_t step(const model *m, update how, int step_number, int one_by_one)
{
    uint64_t before = launches();
    burn_scope_begin();
    for (uint32_t k = 0; k < MANY; k++) {
        burn_tensor *grad = m->grads[k];
        assert_int_equal(how(m->vars[k], grad, 0.01, step_number + 1.0), BURN_OK);
        if (one_by_one) {
            assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        }
    }
    burn_scope_end();
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    return launches() - before;
}

/* As many launches as updates fit 32 to a launch: flex takes the steps of optimizers together, mock
 * what it has, assign. */
static void test_many_updates_are_few_launches(void **state)
{
    (void)state;
    for (size_t u = 0; u < COUNT(updates); u++) {
        model one;
        model all;
        make_model(&one);
        make_model(&all);
        for (int k = 0; k < STEPS; k++) {
            (void)step(&one, updates[u], k, 1);
            uint64_t n = step(&all, updates[u], k, 0);
            int together = (updates[u] == assigned) == (on_mock != 0);
            if (window != 1 && k >= 3 && together) {
                assert_int_equal(n, 2);
            }
        }
        same_values(&one, &all);
        free_model(&one);
        free_model(&all);
    }
}

/* Update i of a round: which variable, and the gradient it gets. */
typedef burn_tensor *(*update_at)(const model *m, uint32_t i, uint32_t *at);

/* Rounds of `n` updates: of one model with a wait behind each, of the other in one go, which makes
 * so many launches on flex when the sequence is known (0: not looked at). */
static void rounds(uint32_t n, update_at next, uint64_t wanted)
{
    model models[2];
    make_model(&models[0]);
    make_model(&models[1]);
    for (int k = 0; k < STEPS; k++) {
        for (int way = 0; way < 2; way++) {
            const model *m = &models[way];
            uint64_t before = launches();
            burn_scope_begin();
            for (uint32_t i = 0; i < n; i++) {
                uint32_t at = 0;
                burn_tensor *grad = next(m, i, &at);
                assert_int_equal(adam(m->vars[at], grad, 0.01, k + 1.0), BURN_OK);
                assert_true(way || burn_sync(dev, NULL) == BURN_OK);
            }
            burn_scope_end();
            assert_int_equal(burn_sync(dev, NULL), BURN_OK);
            if (wanted > 0 && way && window != 1 && k >= 3 && !on_mock) {
                assert_int_equal(launches() - before, wanted);
            }
        }
    }
    same_values(&models[0], &models[1]);
    free_model(&models[0]);
    free_model(&models[1]);
}

static burn_tensor *computed(const model *m, uint32_t i, uint32_t *at)
{
    *at = i;
    return burn_tanh(m->grads[i]);
}

/* What is computed for each variable lies between the updates. */
static void test_updates_wait_for_what_lies_between(void **state)
{
    (void)state;
    rounds(20, computed, 21);
}

/* The second update of a variable sees the first, and so does what reads it in between: gradients
 * are made of their variable and of the one that was updated just before. No handle of an old value
 * is left, or it would be copied out. */
static burn_tensor *chained_grad(const model *m, uint32_t at, uint32_t before)
{
    burn_scope_begin();
    burn_tensor *both = burn_add(burn_var_get(m->vars[at][0]), burn_var_get(m->vars[before][0]));
    return burn_scope_return(burn_mul(both, burn_scalar(0.5)));
}

static burn_tensor *in_turn(const model *m, uint32_t i, uint32_t *at)
{
    *at = 3 + i % 4 * 10; /* 3, 13, 23, 33, 3, ... */
    return chained_grad(m, *at, 3 + (i + 3) % 4 * 10);
}

static void test_two_updates_of_a_variable_stay_in_order(void **state)
{
    (void)state;
    rounds(12, in_turn, 0);
}

/* A gradient that fails by what the data are fails its variables, and no other one. */
static void test_a_failed_gradient_fails_its_own_variable(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        model one;
        model all;
        make_model(&one);
        make_model(&all);
        (void)step(&one, adam, 0, 1);
        burn_tensor *zero = burn_keep(index_vec(64, (int64_t[64]){0}));
        burn_scope_begin();
        burn_tensor *bad = burn_cast(burn_div(zero, zero), BURN_F32);
        for (uint32_t k = 0; k < MANY; k++) {
            (void)adam(all.vars[k], k == 3 || k == 33 ? bad : all.grads[k], 0.01, 1.0);
        }
        burn_scope_end();
        assert_int_not_equal(burn_sync(dev, NULL), BURN_OK);
        burn_scope_begin();
        for (uint32_t k = 0; k < MANY; k++) {
            for (uint32_t s = 0; s < STATES; s++) {
                burn_tensor *v = burn_var_get(all.vars[k][s]);
                if (k == 3 || k == 33) {
                    check_read_fails(v, BURN_E_DATA, "div", NULL);
                } else {
                    check_same(v, burn_var_get(one.vars[k][s]));
                }
            }
        }
        burn_scope_end();
        burn_release(zero);
        free_model(&one);
        free_model(&all);
        (void)burn_sync(dev, NULL);
    }
}

/* Each run counts on, and the rate is that of all. */
static void test_a_replay_runs_them_together(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    model one;
    model all;
    make_model(&one);
    make_model(&all);
    /* On mock each update is more than 20 launches, and a step of a replay at most 1,024. */
    uint32_t n = on_mock ? 12 : MANY;
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    for (uint32_t k = 0; k < n; k++) {
        assert_int_equal(adam(all.vars[k], all.grads[k], 0.01, 1.0), BURN_OK);
    }
    burn_replay *replay = burn_replay_end(NULL, 0, &err);
    assert_non_null(replay);
    for (int k = 0; k < STEPS; k++) {
        if (k == 3) {
            assert_int_equal(burn_replay_set(replay, "lr", 0.5, &err), BURN_OK);
        }
        assert_true(k == 0 || burn_replay_run(replay, NULL, 0, NULL, 0, &err) == BURN_OK);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(adam(one.vars[i], one.grads[i], k < 3 ? 0.01 : 0.5, k + 1.0), BURN_OK);
            assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        }
    }
    same_values(&one, &all);
    uint32_t kept = 0;
    uint32_t runs = 0;
    burn_replay_size(replay, &kept, &runs);
    assert_true(on_mock || (kept == MANY && runs == 2));
    burn_replay_free(replay);
    free_model(&one);
    free_model(&all);
}

/* Parameters that overflowed, and no decay: state and parameters are what the definition says. */
static void test_infinite_parameters_stay_out_of_the_state(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_attrs_sgd sgd;
    burn_attrs_adam a;
    burn_attrs_init(&sgd, sizeof(sgd));
    burn_attrs_init(&a, sizeof(a));
    a.beta1 = 0.5;
    a.beta2 = 0.5;
    a.eps = 1e-8;
    burn_var *p = burn_var_create(dev, VEC(INFINITY, 1.0F), &err);
    burn_var *m = burn_var_create(dev, VEC(0.0F, 0.0F), &err);
    burn_var *v = burn_var_create(dev, VEC(0.0F, 0.0F), &err);
    burn_tensor *grad = VEC(2.0F, 0.0F);
    burn_var *const adam_vars[6] = {p, NULL, m, v, NULL, NULL};
    burn_tensor *const adam_in[6] = {NULL, grad, NULL, NULL, burn_scalar(0.5), burn_scalar(1.0)};
    burn_var *const sgd_vars[4] = {p, NULL, m, NULL};
    burn_tensor *const sgd_in[4] = {NULL, grad, NULL, burn_scalar(0.5)};
    int32_t rc = burn_var_update(BURN_OP_ADAM_STEP, &a, sizeof(a), adam_vars, adam_in, 6, NULL);
    assert_int_equal(rc, BURN_OK);
    CHECK(burn_var_get(m), 1.0, 0.0);
    CHECK(burn_var_get(v), 2.0, 0.0);
    CHECK(burn_is_inf(burn_var_get(p)), 1, 0);
    rc = burn_var_update(BURN_OP_SGD_STEP, &sgd, sizeof(sgd), sgd_vars, sgd_in, 4, NULL);
    assert_int_equal(rc, BURN_OK);
    CHECK(burn_var_get(m), 2.0, 0.0);
    CHECK(burn_is_inf(burn_var_get(p)), 1, 0);
    burn_var_release(p);
    burn_var_release(m);
    burn_var_release(v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_many_updates_are_few_launches),
        CORE_TEST(test_updates_wait_for_what_lies_between),
        CORE_TEST(test_two_updates_of_a_variable_stay_in_order),
        CORE_TEST(test_a_failed_gradient_fails_its_own_variable),
        CORE_TEST(test_a_replay_runs_them_together),
        CORE_TEST(test_infinite_parameters_stay_out_of_the_state),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
