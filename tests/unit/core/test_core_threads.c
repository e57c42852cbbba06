/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_threads.c - values that cross threads: made here, read there, while both have work that
 * waits; threads that end with pending work; training in several threads (B133).
 *
 * Best under ThreadSanitizer. Assertions run on the main thread only: workers hand back numbers.
 */
#include "core_test.h"

#include "exec/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct job {
    pthread_t thread;
    int number;
    burn_device *device;
    burn_tensor *in;
    burn_tensor *out; /* kept */
    burn_module *module;
    double values[16];
    int32_t rc;
    burn_err err;
} job;

static void start(job *j, void *(*run)(void *))
{
    j->err = (burn_err)BURN_ERR_INIT;
    assert_int_equal(pthread_create(&j->thread, NULL, run, j), 0);
}

static void finish(job *j)
{
    assert_int_equal(pthread_join(j->thread, NULL), 0);
    if (j->rc != BURN_OK) {
        fail_msg("thread %d: %s", j->number, j->err.text);
    }
}

static void *compute(void *arg)
{
    job *j = arg;
    burn_tensor *x = j->in != NULL ? j->in : burn_full(dev, BURN_F32, 1, DIMS(4), burn_scalar(1.0));
    for (int i = 0; i < 10; i++) {
        x = burn_add(x, burn_scalar(1.0));
    }
    j->out = burn_keep(x);
    j->rc = BURN_OK;
    return NULL; /* pending work and all */
}

static void *consume(void *arg)
{
    job *j = arg;
    burn_tensor *mine = burn_full(dev, BURN_F32, 1, DIMS(4), burn_scalar(100.0));
    burn_tensor *waiting = burn_mul(mine, burn_scalar(2.0)); /* this thread's window holds */
    burn_tensor *y = burn_add(j->in, waiting);
    j->rc = burn_read_f64(y, j->values, 4, &j->err);
    return NULL;
}

static void test_threads_that_end_with_pending_work(void **state)
{
    (void)state;
    job jobs[8];
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < 8; i++) {
        jobs[i].number = i;
        start(&jobs[i], compute);
    }
    for (int i = 0; i < 8; i++) {
        finish(&jobs[i]);
    }
    /* Their work ran when they ended: nothing waits for a reader. */
    for (const burni_stream *s = dev->core->streams; s != NULL; s = s->next) {
        assert_true(s->owner != NULL || s->n_records == 0);
    }
    for (int i = 0; i < 8; i++) {
        CHECK(jobs[i].out, 11, 11, 11, 11);
        burn_release(jobs[i].out);
    }
}

/* The owner's window still holds the value when the other thread reads it. */
static void test_a_reader_runs_the_owners_work(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        burn_scope_begin();
        burn_tensor *x = VEC(1, 2, 3, 4);
        burn_tensor *y = burn_keep(burn_mul(burn_add(x, x), burn_scalar(5.0)));
        job j[3];
        memset(j, 0, sizeof(j));
        for (int i = 0; i < 3; i++) {
            j[i].in = y;
            start(&j[i], consume);
        }
        burn_tensor *own = burn_sub(y, x); /* goes on meanwhile */
        for (int i = 0; i < 3; i++) {
            finish(&j[i]);
            for (int k = 0; k < 4; k++) {
                assert_true(j[i].values[k] == 200 + 10 * (k + 1));
            }
        }
        CHECK(own, 9, 18, 27, 36);
        burn_release(y);
        burn_scope_end();
    }
}

static void *ping(void *arg)
{
    job *j = arg;
    burn_scope_begin();
    burn_tensor *x = j->in;
    for (int i = 0; i < 5; i++) {
        x = burn_add(x, burn_scalar(j->number));
    }
    j->out = burn_keep(x);
    burn_scope_end();
    return NULL;
}

/* A value goes round: each thread continues what the one before left pending. */
static void test_a_value_goes_round(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(0, 0, 0, 0));
    double want = 0;
    for (int i = 1; i <= 30; i++) {
        job j;
        memset(&j, 0, sizeof(j));
        j.number = i;
        j.in = x;
        start(&j, ping);
        finish(&j);
        burn_release(x);
        x = j.out;
        want += 5.0 * i;
    }
    CHECK(x, want, want, want, want);
    burn_release(x);
}

/* Two threads that use each other's pending values at once: locks must not nest. */
typedef struct pair {
    pthread_t thread;
    pthread_barrier_t *barrier;
    burn_tensor **slots; /* two, kept */
    int me;
    double sum;
    int32_t rc;
} pair;

static void *exchange(void *arg)
{
    pair *p = arg;
    p->rc = BURN_OK;
    for (int round = 0; round < 50; round++) {
        burn_scope_begin();
        burn_tensor *x = burn_full(dev, BURN_F32, 1, DIMS(8), burn_scalar(round + p->me));
        for (int i = 0; i < 4; i++) {
            x = burn_add(x, burn_scalar(1.0));
            (void)burn_mul(x, x); /* dead, and dropped by whoever drains */
        }
        p->slots[p->me] = burn_keep(x);
        (void)pthread_barrier_wait(p->barrier);
        double v[8];
        burn_tensor *other = burn_mul(p->slots[1 - p->me], burn_scalar(1.0));
        if (burn_read_f64(other, v, 8, NULL) != BURN_OK || v[7] != round + (1 - p->me) + 4.0) {
            p->rc = BURN_E_INTERNAL;
        }
        p->sum += v[7];
        (void)pthread_barrier_wait(p->barrier);
        burn_release(p->slots[p->me]);
        burn_scope_end();
    }
    return NULL;
}

static void test_two_threads_use_each_others_values(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    burn_tensor *slots[2];
    pair pairs[2];
    for (int i = 0; i < 2; i++) {
        pairs[i] = (pair){.barrier = &barrier, .slots = slots, .me = i};
        assert_int_equal(pthread_create(&pairs[i].thread, NULL, exchange, &pairs[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(pairs[i].thread, NULL), 0);
        assert_int_equal(pairs[i].rc, BURN_OK);
    }
    (void)pthread_barrier_destroy(&barrier);
}

/* Memory freed by a thread that did not make it comes back, and is counted. */
static void *release_it(void *arg)
{
    job *j = arg;
    burn_tensor *y = burn_add(j->in, j->in);
    j->rc = burn_read_f64(y, j->values, 16, &j->err);
    burn_release(j->in);
    return NULL;
}

static void test_memory_that_is_freed_elsewhere(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_memory first;
    BURN_INIT(&first, burn_memory);
    for (int i = 0; i < 200; i++) {
        burn_scope_begin();
        job j;
        memset(&j, 0, sizeof(j));
        j.in = burn_keep(burn_exp(burn_zeros(dev, BURN_F32, 1, DIMS(16))));
        start(&j, release_it);
        finish(&j);
        assert_true(j.values[15] == 2.0);
        burn_scope_end();
        if (i == 20) {
            assert_int_equal(burn_memory_report(dev, &first, NULL), BURN_OK);
        }
    }
    burn_memory last;
    BURN_INIT(&last, burn_memory);
    (void)burn_sync(dev, NULL);
    assert_int_equal(burn_memory_report(dev, &last, NULL), BURN_OK);
    assert_int_equal(last.in_use, before);
    assert_int_equal(last.reserved, first.reserved);
    burn_scope_end();
}

/* ---- training in threads (B133) -------------------------------------------------------------- */

enum { TRAIN_STEPS = 200 };

static void *train(void *arg)
{
    job *j = arg;
    burn_seed(7);
    burn_scope_begin();
    burn_device *tracked = burn_device_autodiff(j->device);
    burn_module *root = burn_module_create(tracked, &j->err);
    burn_module *layer = burn_nn_linear(root, "layer", 3, 2, 1, &j->err);
    burn_tensor *x = burn_random_uniform(j->device, BURN_F32, 2, DIMS(4, 3));
    burn_tensor *want = burn_random_uniform(j->device, BURN_F32, 2, DIMS(4, 2));
    burn_var *w = burn_module_var(root, "layer.weight");
    j->rc = layer == NULL ? BURN_E_INTERNAL : BURN_OK;
    for (int i = 0; i < TRAIN_STEPS && j->rc == BURN_OK; i++) {
        burn_scope_begin();
        burn_tensor *loss = burn_mse_loss(burn_forward(root, x), want, 0);
        burn_grads *grads = burn_backward(loss, NULL, 0, &j->err);
        if (grads == NULL) {
            j->rc = j->err.code;
        } else {
            burn_tensor *g = burn_grads_get_var(grads, w);
            burn_no_grad_begin();
            burn_tensor *next = burn_sub(burn_var_get(w), burn_mul(g, burn_scalar(0.1)));
            burn_no_grad_end();
            j->rc = burn_var_assign(w, next, &j->err);
            burn_grads_free(grads);
        }
        burn_scope_end();
    }
    if (j->rc == BURN_OK) {
        j->rc = burn_read_f64(burn_var_get(w), j->values, 6, &j->err);
    }
    burn_scope_end();
    burn_module_free(root);
    return NULL;
}

static void test_B133_training_in_threads(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_device *second = on_mock ? burn_device_open("mock:1", &err) : dev;
    assert_non_null(second);
    job alone;
    memset(&alone, 0, sizeof(alone));
    alone.device = dev;
    alone.err = (burn_err)BURN_ERR_INIT;
    (void)train(&alone);
    assert_int_equal(alone.rc, BURN_OK);
    job jobs[4];
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < 4; i++) {
        jobs[i].number = i;
        jobs[i].device = i % 2 == 0 ? dev : second;
        start(&jobs[i], train);
    }
    for (int i = 0; i < 4; i++) {
        finish(&jobs[i]);
        for (int k = 0; k < 6; k++) {
            assert_true(jobs[i].values[k] == alone.values[k]);
        }
    }
}

/* ---- shared models --------------------------------------------------------------------------- */

static void *infer(void *arg)
{
    job *j = arg;
    j->rc = BURN_OK;
    burn_no_grad_begin();
    for (int i = 0; i < 50 && j->rc == BURN_OK; i++) {
        burn_scope_begin();
        burn_tensor *y = burn_forward(j->module, j->in);
        j->rc = burn_read_f64(burn_sum(y, 0, NULL, 0), &j->values[i % 2], 1, &j->err);
        burn_scope_end();
    }
    burn_no_grad_end();
    return NULL;
}

static void test_threads_share_a_model(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_module *root = burn_module_create(ad, &err);
    (void)burn_nn_linear(root, "a", 4, 8, 1, &err);
    (void)burn_nn_activation(root, "r", BURN_RELU, &err);
    (void)burn_nn_linear(root, "b", 8, 2, 1, &err);
    assert_int_equal(err.code, BURN_OK);
    burn_tensor *x = burn_keep(burn_random_uniform(dev, BURN_F32, 2, DIMS(3, 4)));
    double want = burn_item(burn_sum(burn_forward(root, x), 0, NULL, 0), &err);
    assert_int_equal(err.code, BURN_OK);
    job jobs[4];
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < 4; i++) {
        jobs[i].in = x;
        jobs[i].module = root;
        start(&jobs[i], infer);
    }
    for (int i = 0; i < 4; i++) {
        finish(&jobs[i]);
        assert_true(jobs[i].values[0] == want && jobs[i].values[1] == want);
    }
    burn_release(x);
    burn_module_free(root);
}

/* One thread writes a variable; others read what it handed out before and after. */
static void *read_old(void *arg)
{
    job *j = arg;
    j->rc = BURN_OK;
    for (int i = 0; i < 100 && j->rc == BURN_OK; i++) {
        burn_scope_begin();
        j->rc = burn_read_f64(burn_add(j->in, burn_scalar(0.0)), j->values, 4, &j->err);
        if (j->rc == BURN_OK && (j->values[0] != 1 || j->values[3] != 4)) {
            j->rc = BURN_E_INTERNAL;
        }
        burn_scope_end();
    }
    return NULL;
}

static void test_an_old_value_is_read_while_new_ones_are_written(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_var *v = burn_var_create(dev, VEC(1, 2, 3, 4), &err);
    assert_non_null(v);
    burn_tensor *old = burn_keep(burn_var_get(v));
    assert_int_equal(burn_var_assign(v, VEC(0, 0, 0, 0), &err), BURN_OK);
    job jobs[2];
    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < 2; i++) {
        jobs[i].in = old;
        start(&jobs[i], read_old);
    }
    for (int i = 0; i < 100; i++) {
        burn_scope_begin();
        burn_tensor *next = burn_add(burn_var_get(v), burn_scalar(1.0));
        assert_int_equal(burn_var_assign(v, next, &err), BURN_OK);
        burn_scope_end();
    }
    finish(&jobs[0]);
    finish(&jobs[1]);
    CHECK(burn_var_get(v), 100, 100, 100, 100);
    CHECK(old, 1, 2, 3, 4);
    burn_release(old);
    burn_var_release(v);
}

/* The same while plans are made: each round is a sequence of its own, seen three times. What it
 * reads is exchanged for a copy by the thread that writes, at any time. */
enum { PLANNED_ROUNDS = 64, PLANNED_OPS = 6 };

typedef struct planner {
    pthread_t thread;
    burn_var *var;
    atomic_int ended;
    int32_t rc;
} planner;

static double chain_of(uint32_t pattern, double x)
{
    double y = x;
    for (uint32_t k = 0; k < PLANNED_OPS; k++) {
        y = (pattern >> k & 1) != 0 ? y + x : y * x;
    }
    return y;
}

static int32_t plan_once(const burn_var *var, uint32_t pattern)
{
    double all[2];
    burn_scope_begin();
    burn_tensor *x = burn_var_get(var);
    burn_tensor *y = x;
    for (uint32_t k = 0; k < PLANNED_OPS; k++) {
        y = (pattern >> k & 1) != 0 ? burn_add(y, x) : burn_mul(y, x);
    }
    burn_tensor *parts[2] = {burn_max(y, 0, NULL, 0), burn_max(x, 0, NULL, 0)};
    int32_t rc = burn_read_f64(burn_stack(parts, 2, 0), all, 2, NULL);
    burn_scope_end();
    return rc != BURN_OK || all[0] == chain_of(pattern, all[1]) ? rc : BURN_E_INTERNAL;
}

static void *plan_while_written(void *arg)
{
    planner *p = arg;
    p->rc = BURN_OK;
    for (uint32_t i = 0; i < 3 * PLANNED_ROUNDS && p->rc == BURN_OK; i++) {
        p->rc = plan_once(p->var, i / 3);
    }
    atomic_store(&p->ended, 1);
    return NULL;
}

static void test_plans_are_made_while_operands_are_overwritten(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    planner p = {.var = burn_var_create(dev, VEC(1, 1, 1, 1), &err)};
    assert_non_null(p.var);
    assert_int_equal(pthread_create(&p.thread, NULL, plan_while_written, &p), 0);
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; rc == BURN_OK && !atomic_load(&p.ended); i++) {
        burn_scope_begin();
        double next = 1.0 + i % 2;
        rc = burn_var_assign(p.var, VEC(next, next, next, next), &err);
        burn_scope_end();
        /* A device with a queue must not be given more than it does. */
        int wait = !dev->core->synchronous && i % 8 == 0;
        rc = rc == BURN_OK && wait ? burn_sync(dev, &err) : rc;
    }
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    assert_int_equal(rc, BURN_OK);
    assert_int_equal(p.rc, BURN_OK);
    burn_var_release(p.var);
}

/* ---- a variable that waits to be read -------------------------------------------------------- */

enum { TURNS = 8 };

typedef struct turns {
    burn_var *var;
    pthread_barrier_t meet;
    int wrong;
} turns;

/* Calls before the other thread overwrites, reads the result afterwards. */
static void *call_then_read(void *arg)
{
    turns *t = arg;
    for (int k = 0; k < TURNS; k++) {
        double seen = 0;
        burn_scope_begin();
        burn_scope_begin(); /* nobody holds the old value when it is overwritten */
        burn_tensor *y = burn_scope_return(burn_mul(burn_var_get(t->var), burn_scalar(2.0)));
        (void)pthread_barrier_wait(&t->meet);
        (void)pthread_barrier_wait(&t->meet);
        t->wrong += burn_read_f64(y, &seen, 1, NULL) != BURN_OK || seen != 2.0 * k;
        burn_scope_end();
    }
    return NULL;
}

/* What another thread called before, and has not run yet, sees the value of then. */
static void test_a_call_that_waits_sees_the_value_before(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    pthread_t thread;
    turns t = {.var = burn_var_create(dev, VEC(0), &err)};
    assert_non_null(t.var);
    assert_int_equal(pthread_barrier_init(&t.meet, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, call_then_read, &t), 0);
    int32_t rc = BURN_OK;
    for (int k = 0; k < TURNS; k++) {
        (void)pthread_barrier_wait(&t.meet);
        burn_scope_begin();
        rc = rc == BURN_OK ? burn_var_assign(t.var, VEC((float)k + 1), &err) : rc;
        burn_scope_end();
        rc = rc == BURN_OK ? burn_sync(dev, &err) : rc;
        (void)pthread_barrier_wait(&t.meet);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rc, BURN_OK);
    assert_int_equal(t.wrong, 0);
    assert_int_equal(pthread_barrier_destroy(&t.meet), 0);
    burn_var_release(t.var);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_threads_that_end_with_pending_work),
        CORE_TEST(test_a_reader_runs_the_owners_work),
        CORE_TEST(test_a_value_goes_round),
        CORE_TEST(test_two_threads_use_each_others_values),
        CORE_TEST(test_memory_that_is_freed_elsewhere),
        CORE_TEST(test_B133_training_in_threads),
        CORE_TEST(test_threads_share_a_model),
        CORE_TEST(test_an_old_value_is_read_while_new_ones_are_written),
        CORE_TEST(test_plans_are_made_while_operands_are_overwritten),
        CORE_TEST(test_a_call_that_waits_sees_the_value_before),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
