/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_scopes.c - scopes, ownership, tensors that are handed over.
 *
 * What a scope holds is counted by the bytes in use on the device, so a handle that is released too
 * late or too early shows.
 */
#include "core_test.h"

#include <pthread.h>

#include "base/alloc.h"
#include "tensor/tensor.h"

static void test_a_scope_releases_what_it_holds(void **state)
{
    (void)state;
    burn_scope_begin();
    (void)VEC(1, 2, 3);
    uint64_t before = in_use();
    burn_scope_begin();
    burn_tensor *x = burn_add(VEC(1, 2, 3), VEC(1, 1, 1));
    CHECK(x, 2, 3, 4);
    assert_true(in_use() > before);
    burn_scope_end();
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

static void test_results_move_outward(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *outer = VEC(9);
    burn_scope_begin();
    burn_tensor *a = VEC(1, 2);
    burn_tensor *b = VEC(3, 4);
    burn_tensor *c = VEC(5, 6);
    burn_tensor *results[] = {c, a, NULL, outer, a};
    burn_scope_end_with(results, COUNT(results));
    (void)b;
    CHECK(c, 5, 6);
    CHECK(a, 1, 2);
    CHECK(outer, 9);
    uint64_t before = in_use();
    burn_scope_end();
    assert_true(in_use() < before);
}

static void test_scope_return_nests(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_scope_begin();
    burn_scope_begin();
    burn_tensor *x = burn_scope_return(burn_mul(VEC(2, 3), burn_scalar(2.0)));
    x = burn_scope_return(burn_add(x, burn_scalar(1.0)));
    CHECK(x, 5, 7);
    burn_scope_end();
}

static void test_keep_outlives_scopes(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *x = burn_keep(VEC(1, 2));
    assert_ptr_equal(burn_keep(x), x);
    burn_scope_end();
    burn_scope_flush();
    CHECK(x, 1, 2);
    burn_release(x);
    CHECK(x, 1, 2);
    burn_release(x);
    burn_release(NULL);
    assert_null(burn_keep(NULL));
}

static void test_release_gives_up_early(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_tensor *x = VEC(1, 2);
    burn_tensor *y = VEC(3, 4);
    burn_release(x);
    burn_release(y);
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

static void test_root_scope_flush(void **state)
{
    (void)state;
    burn_scope_flush();
    uint64_t before = in_use();
    (void)VEC(1, 2, 3);
    assert_true(in_use() > before);
    burn_scope_begin();
    burn_scope_flush(); /* not while a scope is open */
    assert_true(in_use() > before);
    burn_scope_end();
    burn_scope_flush();
    assert_int_equal(in_use(), before);
}

static void test_an_end_too_many_is_harmless(void **state)
{
    (void)state;
    burn_tensor *x = VEC(4);
    burn_scope_end();
    burn_scope_end_with(&x, 1);
    CHECK(x, 4);
}

/* A scope that cannot be opened must not make its end close another one. */
static void test_scope_begin_that_fails_keeps_balance(void **state)
{
    (void)state;
    enum { DEPTH = 200 };
    burn_tensor *seen[DEPTH];
    burn_scope_begin();
    burn_tensor *x = VEC(7, 8);
    int failed = 0;
    for (int i = 0; i < DEPTH; i++) {
        burni_alloc_fail_after(1);
        burn_scope_begin();
        failed |= burni_thread_current->lost_marks > 0;
        burni_alloc_fail_after(0);
        seen[i] = burn_add(x, x); /* native everywhere: opens no scope itself */
    }
    assert_true(failed);
    for (int i = DEPTH; i-- > 0;) {
        CHECK(seen[i], 14, 16);
        burn_scope_end();
        CHECK(x, 7, 8);
    }
    assert_int_equal(burni_thread_current->lost_marks, 0);
    uint32_t marks = burni_thread_current->n_marks;
    burn_scope_end();
    assert_int_equal(burni_thread_current->n_marks, marks - 1);
}

static void test_every_call_returns_a_fresh_handle(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2);
    burn_tensor *same[] = {
        burn_reshape(x, 1, DIMS(2)), burn_cast(x, BURN_F32),        burn_detach(x),
        burn_to_device(x, dev),      burn_expand_to(x, 1, DIMS(2)), burn_permute(x, 1, DIMS(0))};
    for (size_t i = 0; i < COUNT(same); i++) {
        assert_ptr_not_equal(same[i], x);
        CHECK(same[i], 1, 2);
        burn_release(same[i]);
    }
    CHECK(x, 1, 2);
}

/* ---- tensors that are handed over ---------------------------------------------------------- */

static void test_move_consumes_once(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_tensor *x = burn_keep(burn_add(VEC(1, -2), burn_scalar(0.0)));
    burn_tensor *y = burn_keep(burn_relu(burn_move(x)));
    CHECK(y, 1, 0);
    burn_tensor *z = burn_keep(burn_mul(burn_move(y), y));
    CHECK(z, 1, 0);
    burn_release(z);
    burn_scope_end();
    burn_scope_begin();
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

/* A moved operand that is copied, or whose op is decomposed, lives until the call is over. */
static void test_move_into_decompositions_and_views(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_tensor *x = burn_keep(mat(2, 2, (const float[]){1, 2, 3, 4}));
    burn_tensor *t = burn_keep(burn_transpose(burn_move(x), 0, 1));
    burn_tensor *s = burn_keep(burn_softmax(burn_move(t), 1));
    burn_tensor *flat = burn_keep(burn_reshape(burn_transpose(burn_move(s), 0, 1), 1, DIMS(4)));
    CHECK_NEAR(burn_sum(flat, 0, NULL, 0), 1e-6, 2.0);
    burn_tensor *g = burn_keep(burn_gelu(burn_move(flat), 0));
    assert_int_equal(burn_numel(g), 4);
    CHECK_NEAR(burn_sum(burn_silu(burn_move(g)), 0, NULL, 0), 1.0, 0.5);
    burn_scope_end();
    burn_scope_begin();
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

static void test_move_into_a_call_that_fails(void **state)
{
    (void)state;
    burn_scope_begin();
    uint64_t before = in_use();
    burn_tensor *x = burn_keep(VEC(1, 2));
    assert_int_equal(burn_ok(burn_add(burn_move(x), VEC(1, 2, 3))), 0);
    burn_tensor *y = burn_keep(VEC(1, 2));
    burn_tensor *bad = burn_add(VEC(1, 2), VEC(1, 2, 3));
    assert_int_equal(burn_ok(burn_add(burn_move(y), bad)), 0);
    burn_scope_end();
    burn_scope_begin();
    assert_int_equal(in_use(), before);
    burn_scope_end();
}

/* What the tape keeps is not overwritten, although it was handed over. */
static void test_move_under_the_tape(void **state)
{
    (void)state;
    burn_tensor *w = burn_require_grad(ad, VEC(2, 3));
    burn_tensor *x = burn_add(VEC(5, 7), burn_scalar(0.0));
    burn_tensor *y = burn_mul(burn_move(x), w);
    CHECK(y, 10, 21);
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(y, NULL, 0, &err);
    assert_non_null(grads);
    CHECK(burn_grads_get(grads, w), 5, 7);
    burn_grads_free(grads);
}

/* The contract forbids it; still, two tensors must not come to share a handle. */
static void test_a_second_release_is_left_alone(void **state)
{
    (void)state;
    burn_tensor *kept = burn_keep(VEC(1, 2));
    burn_release(kept);
    burn_release(kept);
    burn_tensor *scoped = VEC(3, 4);
    burn_release(scoped);
    burn_release(scoped);
    burn_tensor *a = VEC(5, 6);
    burn_tensor *b = VEC(7, 8);
    assert_ptr_not_equal(a, b);
    CHECK(a, 5, 6);
    CHECK(b, 7, 8);
}

static void *end_with(void *stranger)
{
    burn_scope_begin();
    burn_tensor *own = VEC(1);
    burn_tensor *const results[] = {own, stranger};
    burn_scope_end_with(results, 2);
    return NULL;
}

/* A result that another thread's scope holds stays there. */
static void test_results_of_another_thread_stay_there(void **state)
{
    (void)state;
    burn_scope_begin();
    burn_tensor *last = NULL;
    for (int i = 0; i < 2000; i++) {
        last = VEC(9);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_with, last), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    CHECK(last, 9);
    burn_scope_end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_scope_releases_what_it_holds),
        CORE_TEST(test_results_move_outward),
        CORE_TEST(test_scope_return_nests),
        CORE_TEST(test_keep_outlives_scopes),
        CORE_TEST(test_release_gives_up_early),
        CORE_TEST(test_root_scope_flush),
        CORE_TEST(test_an_end_too_many_is_harmless),
        CORE_TEST(test_scope_begin_that_fails_keeps_balance),
        CORE_TEST(test_every_call_returns_a_fresh_handle),
        CORE_TEST(test_move_consumes_once),
        CORE_TEST(test_move_into_decompositions_and_views),
        CORE_TEST(test_move_into_a_call_that_fails),
        CORE_TEST(test_move_under_the_tape),
        CORE_TEST(test_a_second_release_is_left_alone),
        CORE_TEST(test_results_of_another_thread_stay_there),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
