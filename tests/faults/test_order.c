/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_order.c - who sees which value of a variable: several writes in one window, writers and
 * readers in several threads and queues. Best under ThreadSanitizer; the tears that it looks for
 * also show as mixed values.
 *
 * Assertions run on the main thread: workers count what was wrong.
 */
#include "core_test.h"

#include "tensor/tensor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { ROUNDS = 60, ELEMENTS = 20000 };

static burn_tensor *constant(double value)
{
    return burn_full(dev, BURN_F32, 1, DIMS(ELEMENTS), burn_scalar(value));
}

/* All elements are equal: a value is never half of one write and half of another. */
static int is_torn(const float *values)
{
    for (int i = 1; i < ELEMENTS; i++) {
        if (values[i] != values[0]) {
            return 1;
        }
    }
    return 0;
}

static void fill_window(void)
{
    for (uint32_t i = 0; i < window; i++) {
        burn_tensor *x = burn_full(dev, BURN_F32, 1, DIMS(4), burn_scalar(i));
        (void)burn_keep(x);
        burn_release(x);
    }
}

/* Found by programs 247 and 1494: when only the older half of a window had run, a variable of which
 * one write had run and one had not was taken for written. */
static void test_two_writes_in_one_window(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    for (uint32_t between = 0; between < 2 * window + 2; between++) {
        burn_scope_begin();
        burn_var *v = burn_var_create(dev, VEC(1, 2), &err);
        burn_tensor *kept[256];
        assert_non_null(v);
        assert_true(2 * window + 2 <= COUNT(kept));
        assert_int_equal(burn_var_assign(v, VEC(3, 4), &err), BURN_OK);
        for (uint32_t i = 0; i < between; i++) {
            kept[i] = burn_exp(VEC(0, 1));
        }
        assert_int_equal(burn_var_assign(v, VEC(5, 6), &err), BURN_OK);
        CHECK(burn_var_get(v), 5, 6);
        (void)kept;
        burn_var_release(v);
        burn_scope_end();
    }
    fill_window();
}

/* A failed write of a variable, then a good one that still waits. */
static void test_a_failure_and_its_remedy_in_one_window(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *v = burn_var_create(dev, VEC(1, 2), &err);
    burn_tensor *bad = burn_select(VEC(1, 2), index_vec(2, DIMS(0, 9)), 0);
    assert_int_equal(burn_var_assign(v, bad, &err), BURN_OK);
    burn_tensor *others[64];
    for (uint32_t i = 0; i < 40; i++) {
        others[i] = burn_exp(VEC(0, 1));
    }
    assert_int_equal(burn_var_assign(v, VEC(5, 6), &err), BURN_OK);
    CHECK(burn_var_get(v), 5, 6);
    CHECK_NEAR(others[39], 1e-6, 1, 2.718281828);
    burn_var_release(v);
}

/* Found by program 30001: an operand that dies lends its memory to the result, but not while
 * another operand reads the same memory in another order. */
static void test_an_operand_used_twice_is_not_overwritten(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = VEC(1, 2, 3, 4, 5, 6);
    burn_attrs_slice a;
    burn_attrs_init(&a, sizeof(a));
    a.size = 6;
    a.step = -1;
    burn_tensor *const in[3] = {x, x, burn_scalar_int(5)};
    burn_tensor *turned = NULL;
    assert_int_equal(burn_op_call(dev, BURN_OP_SLICE_ASSIGN, &a, sizeof(a), in, 3, &turned, 1),
                     BURN_OK);
    burn_release(x);
    burn_tensor *y = mat(2, 2, (const float[]){1, 2, 3, 4});
    burn_tensor *view = burn_permute(y, 2, DIMS(1, 0));
    burn_tensor *sum = burn_add(y, view);
    burn_release(y);
    burn_release(view);
    CHECK(turned, 6, 5, 4, 3, 2, 1);
    CHECK(sum, 2, 5, 5, 8);
    burn_scope_end();
}

/* Found by program 20044: a failed tensor that was kept, then handed over, was nobody's. */
static void test_a_failed_tensor_is_handed_over(void **state)
{
    (void)state;
    burn_tensor *bad = burn_keep(burn_add(VEC(1, 2), VEC(1, 2, 3)));
    check_failed(burn_neg(burn_move(bad)), BURN_E_SHAPE, "add", NULL);
    assert_int_equal(atomic_load(&bad->refs), 0);
}

typedef struct shared {
    burn_var *var;
    _Atomic int stop;
    _Atomic int wrong;
    _Atomic int seen;
    pthread_barrier_t meet;
} shared;

static void *read_it(void *arg)
{
    shared *s = arg;
    static _Thread_local float values[ELEMENTS];
    while (!atomic_load(&s->stop)) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_tensor *t = burn_var_get(s->var);
        burn_tensor *twice = burn_mul(t, burn_scalar(2.0));
        int32_t rc = burn_read(t, values, sizeof(values), &err);
        float first = values[0];
        int wrong = rc != BURN_OK || is_torn(values);
        rc = burn_read(twice, values, sizeof(values), &err);
        /* What was computed from it is from the same value: the handle's, for good. */
        wrong |= rc != BURN_OK || is_torn(values) || values[0] != 2 * first;
        atomic_fetch_add(&s->wrong, wrong);
        atomic_fetch_add(&s->seen, 1);
        burn_scope_end();
    }
    return NULL;
}

static void *write_it(void *arg)
{
    shared *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        int32_t rc = burn_var_assign(s->var, constant(i), &err);
        atomic_fetch_add(&s->wrong, rc != BURN_OK);
        burn_scope_end();
    }
    return NULL;
}

/* Readers in two threads, writers in two others: also on a device whose kernels run in the call. */
static void test_readers_never_see_half_a_write(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    shared s;
    memset(&s, 0, sizeof(s));
    s.var = burn_var_create(dev, constant(-1), &err);
    assert_non_null(s.var);
    pthread_t readers[2];
    pthread_t writers[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_it, &s), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, write_it, &s), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(writers[i], NULL), 0);
    }
    atomic_store(&s.stop, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&s.wrong), 0);
    static float values[ELEMENTS];
    assert_int_equal(burn_read(burn_var_get(s.var), values, sizeof(values), &err), BURN_OK);
    assert_true(values[0] == ROUNDS - 1 && !is_torn(values));
    burn_var_release(s.var);
    check_clean();
}

static void *make_var(void *arg)
{
    shared *s = arg;
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    burn_tensor *x = constant(1);
    for (int i = 0; i < 20; i++) {
        x = burn_add(x, burn_scalar(1.0));
    }
    /* Making one waits for its value, overwriting it does not. */
    s->var = burn_var_create(dev, constant(0), &err);
    (void)burn_var_assign(s->var, x, &err);
    burn_scope_end();
    /* Its queue is at work meanwhile: the end of the thread would wait for it. */
    (void)pthread_barrier_wait(&s->meet);
    (void)pthread_barrier_wait(&s->meet);
    return NULL;
}

/* Found by program 53: a variable that another queue wrote is read, then overwritten, in one
 * window: both wait for that queue. */
static void test_another_queue_is_waited_for(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    for (int round = 0; round < 20; round++) {
        shared s;
        pthread_t thread;
        memset(&s, 0, sizeof(s));
        burn_scope_begin();
        assert_int_equal(pthread_barrier_init(&s.meet, NULL, 2), 0);
        assert_int_equal(pthread_create(&thread, NULL, make_var, &s), 0);
        (void)pthread_barrier_wait(&s.meet);
        assert_non_null(s.var);
        burn_scope_begin(); /* the old value is nobody's, or it would be copied out */
        burn_tensor *next =
            burn_scope_return(burn_mul(burn_var_get(s.var), burn_scalar(3.0)));
        assert_int_equal(burn_var_assign(s.var, next, &err), BURN_OK);
        static float values[ELEMENTS];
        assert_int_equal(burn_read(burn_var_get(s.var), values, sizeof(values), &err), BURN_OK);
        (void)pthread_barrier_wait(&s.meet);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(pthread_barrier_destroy(&s.meet), 0);
        assert_true(values[0] == 63 && !is_torn(values));
        burn_var_release(s.var);
        burn_scope_end();
    }
}

typedef struct pair {
    burn_var *a;
    burn_var *b;
    _Atomic int wrong;
} pair;

static void *step_pair(void *arg)
{
    pair *p = arg;
    burn_attrs_sgd attrs;
    burn_attrs_init(&attrs, sizeof(attrs));
    attrs.momentum = 0.5;
    for (int i = 0; i < ROUNDS; i++) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_var *const vars[4] = {i % 2 ? p->a : p->b, NULL, i % 2 ? p->b : p->a, NULL};
        burn_tensor *const in[4] = {NULL, VEC(0, 0), NULL, burn_scalar(0.0)};
        int32_t rc = burn_var_update(BURN_OP_SGD_STEP, &attrs, sizeof(attrs), vars, in, 4, &err);
        atomic_fetch_add(&p->wrong, rc != BURN_OK);
        burn_scope_end();
    }
    return NULL;
}

/* Updates of two variables in both orders: they wait for each other, never for ever. */
static void test_updates_of_two_variables_do_not_block_each_other(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    pair p;
    memset(&p, 0, sizeof(p));
    p.a = burn_var_create(dev, VEC(1, 2), &err);
    p.b = burn_var_create(dev, VEC(3, 4), &err);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, step_pair, &p), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&p.wrong), 0);
    double values[2];
    assert_int_equal(burn_read_f64(burn_var_get(p.a), values, 2, &err), BURN_OK);
    burn_var_release(p.a);
    burn_var_release(p.b);
    check_clean();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_two_writes_in_one_window),
        CORE_TEST(test_a_failure_and_its_remedy_in_one_window),
        CORE_TEST(test_an_operand_used_twice_is_not_overwritten),
        CORE_TEST(test_a_failed_tensor_is_handed_over),
        CORE_TEST(test_readers_never_see_half_a_write),
        CORE_TEST(test_another_queue_is_waited_for),
        CORE_TEST(test_updates_of_two_variables_do_not_block_each_other),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
