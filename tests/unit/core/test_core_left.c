/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_left.c - calls that are left unrun although they read a variable or have several
 * results, and how much is held for them.
 *
 * Looks inside: at states of storages, the stream's launches, the variable's own memory. Each case
 * goes round a few times, so that in window auto the calls wait as well. What is counted is counted
 * where calls wait; values are the same in all windows.
 */
#include "core_test.h"

#include "exec/var.h"

#include <burn/replay.h>
#include <pthread.h>

enum { ROUNDS = 4, BIG = 40000 };

static int is_unrun(const burn_tensor *t)
{
    return atomic_load(&t->storage->state) == BURNI_UNRUN;
}

/* Do calls wait in this round? */
static int waits(int round)
{
    return window == 64 || (window == BURNI_WINDOW_AUTO && round > 0);
}

static uint64_t launched(void)
{
    return core_stream()->n_launched;
}

static burn_var *make(burn_tensor *value)
{
    burn_var *v = burn_var_create(dev, value, NULL);
    assert_non_null(v);
    return v;
}

static void set(burn_var *v, burn_tensor *value)
{
    assert_int_equal(burn_var_assign(v, value, NULL), BURN_OK);
}

/* What was called until now is no part of the first round. */
static void begin_rounds(void)
{
    burn_scope_flush();
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
}

/* Made straight from the variable, to which nobody has a handle afterwards. */
static burn_tensor *times(burn_var *v, burn_tensor *x)
{
    burn_scope_begin();
    return burn_scope_return(burn_mul(burn_var_get(v), x));
}

/* The variable is still the one object with the memory that it began with. */
static void check_not_copied(const burn_var *v, const burni_storage *storage)
{
    assert_ptr_equal(v->value->storage, storage);
}

/* Of what is left. */
static int nothing_reads(const burn_var *v)
{
    return atomic_load(&v->value->storage->left) == NULL;
}

static void reads_a_variable__is_left(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    burn_var *v = make(VEC(4, 5, 6));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *a = times(v, x);
        burn_tensor *b = burn_exp(a);
        uint64_t before = launched();
        CHECK(burn_add(x, x), 2, 4, 6);
        assert_int_equal(is_unrun(a), waits(k));
        assert_int_equal(is_unrun(b), waits(k));
        assert_true(!waits(k) || launched() == before + 1);
        if (k % 2 == 1) {
            CHECK(a, 4, 10, 18);
            assert_true(!waits(k) || launched() == before + 2);
            assert_int_equal(is_unrun(b), waits(k));
        }
        burn_scope_end();
        assert_true(nothing_reads(v));
    }
    burn_var_release(v);
    burn_release(x);
}

/* What reads it is made first, once and with the old value, and nothing is copied. */
static void an_update__makes_what_reads_it(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    burn_var *v = make(VEC(0, 0, 0));
    const burni_storage *storage = v->value->storage;
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        set(v, VEC(4, 5, 6));
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        burn_scope_begin();
        burn_tensor *ones = VEC(1, 1, 1);
        burn_tensor *a = burn_add(times(v, x), x); /* by a value that nobody has */
        burn_tensor *unseen = times(v, a);
        burn_tensor *apart = burn_sin(a);
        CHECK(burn_add(x, x), 2, 4, 6);
        uint64_t before = launched();
        assert_int_equal(is_unrun(unseen), waits(k));
        assert_int_equal(nothing_reads(v), !waits(k));
        set(v, ones);
        assert_true(nothing_reads(v));
        check_not_copied(v, storage);
        assert_int_equal(is_unrun(apart), waits(k));
        CHECK(burn_var_get(v), 1, 1, 1);
        /* Two products, the sum, the update; a read of the first window may have run it already. */
        assert_true(!waits(k) || launched() == before + 4);
        CHECK(a, 5, 12, 21);
        CHECK(unseen, 20, 60, 126);
        assert_true(!waits(k) || launched() == before + 4);
        burn_scope_end();
    }
    check_not_copied(v, storage);
    burn_var_release(v);
    burn_release(x);
}

/* What was made for an update, and is never asked for, dies with its scope. */
static void an_update__holds_nothing_for_long(void **state)
{
    (void)state;
    int64_t n = BIG;
    burn_tensor *x = burn_keep(burn_ones(dev, BURN_F32, 1, &n));
    burn_var *v = make(x);
    uint64_t before = 0;
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *unseen = times(v, x);
        assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == BIG);
        assert_int_equal(is_unrun(unseen), waits(k));
        set(v, x);
        assert_true(nothing_reads(v));
        burn_scope_end();
        before = k == 1 ? in_use() : before;
    }
    assert_int_equal(in_use(), before);
    burn_var_release(v);
    burn_release(x);
}

/* A reader with a handle gets its copy; what is left goes on with that. */
static void a_handle_beside__is_copied_for(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    burn_var *v = make(VEC(0, 0, 0));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        set(v, VEC(4, 5, 6));
        burn_scope_begin();
        burn_tensor *a = times(v, x);
        burn_tensor *old = burn_var_get(v);
        CHECK(burn_add(x, x), 2, 4, 6);
        set(v, VEC(1, 1, 1));
        set(v, VEC(2, 2, 2));
        assert_int_equal(is_unrun(a), waits(k));
        CHECK(a, 4, 10, 18);
        CHECK(old, 4, 5, 6);
        CHECK(burn_var_get(v), 2, 2, 2);
        burn_scope_end();
    }
    burn_var_release(v);
    burn_release(x);
}

/* Reads, updates and reads among the calls of one cut: each has the value of its place. */
static void updates_between__are_seen(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2));
    burn_var *v = make(VEC(0, 0));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *first = VEC(3, 4);
        burn_tensor *second = VEC(5, 6);
        burn_tensor *third = VEC(7, 8);
        set(v, first);
        burn_tensor *a = times(v, x);
        burn_scope_begin();
        burn_tensor *gone = burn_mul(burn_var_get(v), a); /* reads the old value */
        burn_tensor *a_too = burn_scope_return(burn_neg(gone));
        set(v, second);
        burn_tensor *b = times(v, x);
        CHECK(burn_add(x, x), 2, 4);
        assert_false(is_unrun(a));
        assert_int_equal(is_unrun(b), waits(k));
        CHECK(a, 3, 8);
        CHECK(a_too, -9, -32);
        set(v, third);
        assert_true(nothing_reads(v));
        CHECK(b, 5, 12);
        CHECK(times(v, x), 7, 16);
        burn_scope_end();
    }
    burn_var_release(v);
    burn_release(x);
}

static void a_variable_that_is_gone__is_there_for_what_is_left(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2));
    uint64_t before = 0;
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_var *v = make(VEC(3, 4));
        burn_tensor *a = times(v, x);
        burn_tensor *unseen = burn_neg(a);
        CHECK(burn_add(x, x), 2, 4);
        burn_var_release(v);
        assert_int_equal(is_unrun(unseen), waits(k));
        CHECK(a, 3, 8);
        burn_scope_end();
        before = k == 1 ? in_use() : before;
    }
    assert_int_equal(in_use(), before);
    burn_release(x);
}

/* A step that was kept overwrites it like any call. */
static void a_replay__makes_what_reads_it(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_keep(VEC(1, 2));
    burn_var *v = make(VEC(0, 0));
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_scope_begin();
    burn_tensor *more = burn_scope_return(burn_add(burn_var_get(v), x));
    set(v, more);
    burn_replay *step = burn_replay_end(&more, 1, &err);
    if (step == NULL) {
        fail_msg("%s", err.text);
    }
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        double n = k + 1;
        burn_scope_begin();
        burn_tensor *a = times(v, x);
        CHECK(burn_add(x, x), 2, 4);
        assert_int_equal(is_unrun(a), waits(k));
        burn_tensor *out = NULL;
        assert_int_equal(burn_replay_run(step, NULL, 0, &out, 1, &err), BURN_OK);
        assert_true(nothing_reads(v));
        CHECK(a, n, 4 * n);
        CHECK(out, n + 1, 2 * n + 2);
        burn_scope_end();
    }
    burn_replay_free(step);
    burn_var_release(v);
    burn_release(x);
}

/* ---- several results ------------------------------------------------------------------------- */

static burn_tensor *pool(burn_tensor *x, burn_tensor **index)
{
    burn_pool_opts opts = {.struct_size = sizeof(opts), .kernel = {2, 2}};
    return burn_max_pool2d(x, &opts, index);
}

static burn_tensor *plane(void)
{
    return burn_keep(count_up(dev, 4, DIMS(1, 1, 2, 4), 1.0));
}

static void several_results__nobody_asks(void **state)
{
    (void)state;
    burn_tensor *x = plane();
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *index = NULL;
        burn_tensor *most = pool(x, &index);
        uint64_t before = launched();
        assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == 36);
        assert_int_equal(is_unrun(most), waits(k));
        assert_int_equal(is_unrun(index), waits(k));
        assert_true(!waits(k) || on_mock || launched() == before + 1);
        burn_scope_end();
    }
    burn_release(x);
}

/* Whichever is asked for: all are made, once, and those that nobody has any more are let go of. */
static void several_results__one_is_asked_for(void **state)
{
    (void)state;
    /* The sum that is read; the pooling; what is read or made of its results. */
    static const uint64_t launches[3] = {1, 1 + 1 + 1, 1 + 1 + 2};
    burn_tensor *x = plane();
    begin_rounds();
    for (int k = 0; k < 3 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *index = NULL;
        burn_tensor *most = pool(x, &index);
        uint64_t before = launched();
        assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == 36);
        if (k % 3 != 0) {
            CHECK(k % 3 == 1 ? most : burn_add(index, burn_scalar(1)), 6, 8);
        }
        if (k % 3 == 1) {
            CHECK(burn_add(index, index), 10, 14);
        } else if (k % 3 == 2) {
            burn_release(index);
            CHECK(burn_add(most, most), 12, 16);
        }
        assert_true(!waits(k) || on_mock || launched() == before + launches[k % 3]);
        burn_scope_end();
    }
    burn_release(x);
}

/* One that is kept, and one that is read, are wanted; the other one comes along. */
static void several_results__one_is_wanted(void **state)
{
    (void)state;
    burn_tensor *x = plane();
    begin_rounds();
    for (int k = 0; k < 2 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *index = NULL;
        burn_tensor *most = pool(x, &index);
        if (k % 2 == 0) {
            (void)burn_keep(index);
            assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == 36);
            assert_false(is_unrun(index));
            assert_true(on_mock || !is_unrun(most)); /* mock makes them by several calls */
            burn_release(index);
        } else {
            CHECK(index, 5, 7);
            assert_true(on_mock || !is_unrun(most));
        }
        CHECK(most, 6, 8);
        burn_scope_end();
    }
    burn_release(x);
}

/* One is gone before the other is asked for. */
static void several_results__one_is_gone(void **state)
{
    (void)state;
    burn_tensor *x = plane();
    begin_rounds();
    for (int k = 0; k < 2 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *index = NULL;
        burn_tensor *most = pool(x, &index);
        assert_true(burn_item(burn_sum(x, 0, NULL, 0), NULL) == 36);
        burn_release(k % 2 == 0 ? index : most);
        if (k % 2 == 0) {
            CHECK(most, 6, 8);
        } else {
            CHECK(index, 5, 7);
        }
        burn_scope_end();
    }
    burn_release(x);
}

/* In one round its operand is given away to its result; in another it is left, with a handle on the
 * operand. */
static void what_was_overwritten_once__is_there_when_it_is_left(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2));
    begin_rounds();
    for (int k = 0; k < 2 * ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *first = VEC(3, 4);
        burn_tensor *a = burn_add(first, x);
        if (k % 2 == 0) {
            burn_release(first);
            CHECK(a, 4, 6);
        } else {
            CHECK(burn_mul(x, x), 1, 4);
            CHECK(a, 4, 6);
            CHECK(first, 3, 4);
        }
        burn_scope_end();
    }
    burn_release(x);
}

/* ---- how much -------------------------------------------------------------------------------- */

static void many__are_left(void **state)
{
    (void)state;
    enum { MANY = 300 };
    burn_tensor *x = burn_keep(VEC(1, 2));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_tensor *sums[MANY];
        for (int i = 0; i < MANY; i++) {
            sums[i] = burn_add(i > 0 ? sums[i - 1] : x, burn_scalar(1));
        }
        uint64_t before = launched();
        CHECK(burn_mul(x, x), 1, 4);
        /* A window of 64 is full before, and runs. */
        int all_wait = window == BURNI_WINDOW_AUTO && k > 0;
        assert_true(!all_wait || launched() == before + 1);
        for (int i = 0; i < MANY; i++) {
            assert_true(!all_wait || is_unrun(sums[i]));
        }
        CHECK(sums[MANY / 2], 1 + MANY / 2 + 1, 2 + MANY / 2 + 1);
        assert_true(!all_wait || is_unrun(sums[MANY - 1]));
        burn_scope_end();
    }
    burn_release(x);
}

/* A few bytes are written where much would be held for them, not where it is held anyway. */
static void large_operands__are_not_held(void **state)
{
    (void)state;
    static float values[BIG];
    int64_t n = BIG;
    burn_tensor *x = burn_keep(VEC(1, 2));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        uint64_t before = in_use();
        burn_scope_begin();
        burn_tensor *large = burn_tensor_from_data(dev, BURN_F32, 1, &n, values);
        burn_tensor *sum = burn_scope_return(burn_sum(large, 0, NULL, 0));
        burn_scope_begin();
        burn_tensor *small = burn_scope_return(burn_max(VEC(1, 2, 3), 0, NULL, 0));
        CHECK(burn_mul(x, x), 1, 4);
        assert_false(is_unrun(sum) || is_unrun(small));
        assert_true(in_use() < before + sizeof(values) / 2);
        burn_tensor *seen = burn_tensor_from_data(dev, BURN_F32, 1, &n, values);
        burn_tensor *sum_too = burn_mean(seen, 0, NULL, 0);
        CHECK(burn_add(x, x), 2, 4);
        assert_int_equal(is_unrun(sum_too), waits(k));
        burn_scope_begin();
        small = burn_scope_return(burn_max(VEC(1, 2, 4), 0, NULL, 0));
        CHECK(burn_sub(x, x), 0, 0);
        assert_int_equal(is_unrun(small), waits(k));
        CHECK(small, 4);
        burn_scope_begin();
        large = burn_tensor_from_data(dev, BURN_F32, 1, &n, values);
        sum = burn_scope_return(burn_min(large, 0, NULL, 0));
        burn_tensor *later = burn_add(sum_too, sum_too); /* reads what an earlier cut left */
        CHECK(burn_neg(x), -1, -2);
        assert_false(is_unrun(sum));
        CHECK(later, 0);
        assert_true(burn_item(sum, NULL) == 0 && burn_item(sum_too, NULL) == 0);
        burn_scope_end();
    }
    burn_release(x);
}

/* What is not written takes no memory. */
static void left_values__take_no_memory(void **state)
{
    (void)state;
    int64_t n = BIG;
    burn_tensor *x = burn_keep(VEC(1, 2));
    burn_var *v = make(burn_zeros(dev, BURN_F32, 1, &n));
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        burn_memory memory[2];
        BURN_INIT(&memory[0], burn_memory);
        BURN_INIT(&memory[1], burn_memory);
        burn_scope_begin();
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        assert_int_equal(burn_memory_report(dev, &memory[0], NULL), BURN_OK);
        burn_tensor *a = times(v, burn_scalar(2));
        burn_tensor *b = burn_exp(a);
        CHECK(burn_mul(x, x), 1, 4);
        assert_int_equal(burn_memory_report(dev, &memory[1], NULL), BURN_OK);
        uint64_t more = memory[1].in_use - memory[0].in_use;
        assert_true(waits(k) ? more < BIG : more >= 2 * BIG * sizeof(float));
        assert_true(burn_item(burn_sum(b, 0, NULL, 0), NULL) == BIG);
        burn_scope_end();
    }
    burn_var_release(v);
    burn_release(x);
}

/* Too small for a call per link, where frames are what they are in a program: mock's own calls need
 * most of it. */
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&              \
    !defined(__SANITIZE_THREAD__)
enum { DEPTH = 1000, STACK = 96 * 1024 };
#else
enum { DEPTH = 1000, STACK = 1024 * 1024 };
#endif

static void *make_and_drop_a_chain(void *argument)
{
    burn_tensor *x = argument;
    uintptr_t wrong = 0;
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        burn_scope_begin();
        burn_tensor *t = x;
        for (int i = 0; i < DEPTH; i++) {
            t = burn_add(t, burn_scalar(1));
        }
        t = burn_scope_return(t);
        wrong += burn_item(burn_sum(x, 0, NULL, 0), NULL) != 3;
        wrong += k % 2 == 1 && burn_item(burn_sum(t, 0, NULL, 0), NULL) != 3 + 2 * DEPTH;
        burn_scope_end();
    }
    burn_scope_flush();
    return (void *)wrong;
}

/* A long chain, of which nobody has more than the end, is made and dies on a small stack. */
static void a_long_chain__needs_no_depth(void **state)
{
    (void)state;
    void *wrong = NULL;
    pthread_t thread;
    pthread_attr_t small;
    burn_tensor *x = burn_keep(VEC(1, 2));
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, on_mock ? 8 * STACK : STACK), 0);
    assert_int_equal(pthread_create(&thread, &small, make_and_drop_a_chain, x), 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(pthread_attr_destroy(&small), 0);
    burn_release(x);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { STEPS = 300, WIDTH = 3 };

typedef struct work {
    burn_var *v;
    burn_var *w;
    _Atomic uint32_t done;
    uint32_t wrong;
} work;

/* All elements are one value of the variable's, whenever it is asked for. */
static void *leave_and_ask(void *argument)
{
    work *shared = argument;
    uint32_t wrong = 0;
    burn_tensor *x = burn_keep(burn_full(dev, BURN_F32, 1, DIMS(WIDTH), burn_scalar(2)));
    for (uint32_t k = 0; atomic_load(&shared->done) == 0 || k < 8; k++) {
        double seen[WIDTH];
        double twice[WIDTH];
        burn_scope_begin();
        burn_tensor *a = times(shared->v, x);
        burn_tensor *both = times(shared->w, a);
        burn_tensor *b = burn_neg(a);
        wrong += burn_item(burn_sum(x, 0, NULL, 0), NULL) != 2 * WIDTH;
        if (k % 3 != 0) {
            wrong += burn_read_f64(k % 3 == 1 ? a : both, seen, WIDTH, NULL) != BURN_OK;
            wrong += seen[0] != seen[1] || seen[1] != seen[2];
        }
        if (k % 3 == 1) {
            wrong += burn_read_f64(b, twice, WIDTH, NULL) != BURN_OK || twice[2] != -seen[2];
        }
        burn_scope_end();
    }
    burn_release(x);
    burn_scope_flush();
    shared->wrong += wrong;
    return NULL;
}

static void scopes_end__while_an_update_runs(void **state)
{
    (void)state;
    work shared = {.v = make(VEC(1, 1, 1)), .w = make(VEC(1, 1, 1))};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_and_ask, &shared), 0);
    for (int k = 0; k < STEPS; k++) {
        burn_scope_begin();
        burn_tensor *value = burn_full(dev, BURN_F32, 1, DIMS(WIDTH), burn_scalar(k));
        set(shared.v, value);
        if (k % 4 == 0) {
            set(shared.w, value);
        }
        assert_true(k % 8 != 0 || burn_item(burn_sum(value, 0, NULL, 0), NULL) == WIDTH * k);
        burn_scope_end();
    }
    atomic_store(&shared.done, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(shared.wrong, 0);
    burn_var_release(shared.v);
    burn_var_release(shared.w);
}

typedef struct handed {
    burn_var *v;
    burn_tensor *x;
} handed;

static void *overwrite(void *argument)
{
    const handed *h = argument;
    (void)burn_var_assign(h->v, h->x, NULL);
    (void)burn_sync(dev, NULL);
    burn_scope_flush();
    return NULL;
}

/* Another thread overwrites it, in its own stream; the values are there when they are asked for. */
static void another_thread__overwrites_it(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3));
    burn_var *v = make(VEC(0, 0, 0));
    const burni_storage *storage = v->value->storage;
    begin_rounds();
    for (int k = 0; k < ROUNDS; k++) {
        handed h = {v, x};
        pthread_t thread;
        set(v, VEC(4, 5, 6));
        assert_int_equal(burn_sync(dev, NULL), BURN_OK);
        burn_scope_begin();
        burn_tensor *a = times(v, x);
        burn_tensor *unseen = times(v, x);
        burn_tensor *index = NULL;
        burn_tensor *most = pool(burn_reshape(a, 4, DIMS(1, 1, 1, 3)), &index);
        (void)most;
        CHECK(burn_add(x, x), 2, 4, 6);
        assert_int_equal(is_unrun(unseen), waits(k));
        assert_int_equal(pthread_create(&thread, NULL, overwrite, &h), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        check_not_copied(v, storage);
        uint64_t before = launched();
        CHECK(a, 4, 10, 18);
        assert_true(!waits(k) || launched() == before);
        CHECK(burn_add(a, a), 8, 20, 36);
        CHECK(times(v, x), 1, 4, 9);
        burn_scope_end();
    }
    burn_var_release(v);
    burn_release(x);
}

static void *ask_at_once(void *argument)
{
    burn_tensor *t = argument;
    int32_t state = BURNI_NONE;
    while (state == BURNI_NONE || state == BURNI_PENDING) {
        state = atomic_load(&t->storage->state);
    }
    double seen = burn_item(burn_max(t, 0, NULL, 0), NULL);
    burn_scope_flush();
    return (void *)(uintptr_t)(seen != -1);
}

/* Another thread sees that it is left, while what it is made of has not run. */
static void another_thread__asks_in_the_middle_of_the_cut(void **state)
{
    (void)state;
    int64_t n = 50 * BIG;
    burn_tensor *x = burn_keep(burn_zeros(dev, BURN_F32, 1, &n));
    begin_rounds();
    for (int k = 0; k < 2 * ROUNDS; k++) {
        void *wrong = NULL;
        pthread_t thread;
        burn_scope_begin();
        burn_tensor *ones = burn_keep(burn_exp(x));
        burn_tensor *a = burn_neg(ones);
        assert_int_equal(pthread_create(&thread, NULL, ask_at_once, a), 0);
        assert_true(burn_item(burn_sum(ones, 0, NULL, 0), NULL) == (double)n);
        assert_int_equal(pthread_join(thread, &wrong), 0);
        assert_null(wrong);
        burn_release(ones);
        burn_scope_end();
    }
    burn_release(x);
}

/* A lost device fails what is left, the update that wants it made, and nothing stays. */
static void a_lost_device__fails_what_is_left(void **state)
{
    (void)state;
    if (!on_mock) {
        skip();
    }
    burn_err err = BURN_ERR_INIT;
    burn_device *weak = burn_device_open("mock:1?lose_after=40", &err);
    assert_non_null(weak);
    burn_scope_begin();
    burn_var *v = burn_var_create(weak, burn_ones(weak, BURN_F32, 1, DIMS(WIDTH)), &err);
    burn_tensor *x = burn_keep(burn_ones(weak, BURN_F32, 1, DIMS(WIDTH)));
    burn_scope_end();
    int32_t last = BURN_OK;
    for (int k = 0; k < 40; k++) {
        double seen[WIDTH];
        burn_scope_begin();
        burn_tensor *a = times(v, x);
        burn_tensor *unseen = times(v, a);
        (void)burn_read_f64(burn_add(x, x), seen, WIDTH, NULL);
        (void)burn_var_assign(v, x, NULL);
        last = burn_read_f64(a, seen, WIDTH, &err);
        assert_true(last == BURN_OK ? seen[0] == 1 : last == BURN_E_DEVICE_LOST);
        (void)unseen;
        burn_scope_end();
    }
    assert_int_equal(last, BURN_E_DEVICE_LOST);
    burn_release(x);
    burn_var_release(v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(reads_a_variable__is_left),
        CORE_TEST(an_update__makes_what_reads_it),
        CORE_TEST(an_update__holds_nothing_for_long),
        CORE_TEST(a_handle_beside__is_copied_for),
        CORE_TEST(updates_between__are_seen),
        CORE_TEST(a_variable_that_is_gone__is_there_for_what_is_left),
        CORE_TEST(a_replay__makes_what_reads_it),
        CORE_TEST(several_results__nobody_asks),
        CORE_TEST(several_results__one_is_asked_for),
        CORE_TEST(several_results__one_is_wanted),
        CORE_TEST(several_results__one_is_gone),
        CORE_TEST(what_was_overwritten_once__is_there_when_it_is_left),
        CORE_TEST(many__are_left),
        CORE_TEST(large_operands__are_not_held),
        CORE_TEST(left_values__take_no_memory),
        CORE_TEST(a_long_chain__needs_no_depth),
        CORE_TEST(scopes_end__while_an_update_runs),
        CORE_TEST(another_thread__overwrites_it),
        CORE_TEST(another_thread__asks_in_the_middle_of_the_cut),
        CORE_TEST(a_lost_device__fails_what_is_left),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
