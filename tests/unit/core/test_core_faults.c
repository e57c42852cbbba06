/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_faults.c - failures that only the data show: exactly the dependents fail, with a text
 * that names op, value and position, and the device goes on (B088, B242). On mock they come late,
 * through fault words; on flex at once.
 */
#include "core_test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static burn_tensor *bad_gather(int64_t at, int64_t value)
{
    int64_t index[4] = {0, 1, 2, 1};
    index[at] = value;
    return burn_gather(VEC(10, 20, 30), index_vec(4, index), 0);
}

static void test_B242_exactly_the_dependents_fail(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2, 3, 4);
    burn_tensor *before = burn_mul(x, x);
    burn_tensor *bad = bad_gather(2, 7);
    burn_tensor *dependent = burn_exp(burn_add(bad, x));
    burn_tensor *view = burn_slice(dependent, 0, 1, 2, 1);
    burn_tensor *after = burn_add(before, x);
    burn_tensor *unrelated = burn_sum(after, 0, NULL, 0);
    assert_true(burn_ok(bad) == 1 || !on_mock);
    CHECK(before, 1, 4, 9, 16);
    CHECK(after, 2, 6, 12, 20);
    CHECK(unrelated, 40);
    check_read_fails(bad, BURN_E_DATA, "gather", "7", "position 2", NULL);
    check_read_fails(dependent, BURN_E_DATA, "gather", "7", NULL);
    check_read_fails(view, BURN_E_DATA, "gather", "7", NULL);
    CHECK(bad_gather(0, 0), 10, 20, 30, 20);
    CHECK(burn_matmul(mat(1, 2, (const float[]){1, 2}), mat(2, 1, (const float[]){3, 4})), 11);
}

/* One failure, told once; the first one of several. */
static void test_B242_sync_tells_the_first(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    check_clean();
    burn_tensor *first = bad_gather(0, 5);
    burn_tensor *second = bad_gather(1, 6);
    (void)burn_add(first, second);
    (void)burn_sync(dev, &err);
    assert_int_equal(err.code, BURN_E_DATA);
    assert_non_null(strstr(err.text, "gather: index 5"));
    check_clean();
    check_read_fails(first, BURN_E_DATA, "5", NULL);
    check_read_fails(second, BURN_E_DATA, "6", NULL);
    CHECK(burn_add(VEC(1), VEC(1)), 2);
}

/* Whatever fails when: at the call, in a kernel that runs later or in another order, in a word that
 * is looked at late. */
static void test_sync_tells_the_first_call_in_all_modes(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        burn_scope_begin();
        burn_err err = BURN_ERR_INIT;
        burn_tensor *x = VEC(1, 2, 3, 4);
        burn_tensor *fine = burn_relu(burn_mul(x, x));
        burn_tensor *first = burn_neg(bad_gather(0, 50 + k));
        burn_tensor *second = bad_gather(1, 60 + k);
        burn_tensor *third = burn_add(x, VEC(1, 2, 3));
        burn_tensor *more = burn_exp(burn_add(fine, x));
        burn_tensor *fourth = bad_gather(2, 70 + k);
        char wanted[32];
        (void)snprintf(wanted, sizeof(wanted), "gather: index %d ", 50 + k);
        assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
        if (strstr(err.text, wanted) == NULL) {
            fail_msg("round %d: \"%s\" is told, not \"%s\"", k, err.text, wanted);
        }
        check_clean();
        check_read_fails(first, BURN_E_DATA, "5", NULL);
        check_read_fails(second, BURN_E_DATA, "6", NULL);
        check_failed(third, BURN_E_SHAPE, "add", NULL);
        check_read_fails(fourth, BURN_E_DATA, "7", NULL);
        assert_true(burn_ok(more));
        burn_scope_end();
    }
}

/* The same where nobody needs the first one's results at the cut: it is made for the sync. */
static void test_sync_tells_what_was_left_unrun_first(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        burn_scope_begin();
        burn_err err = BURN_ERR_INIT;
        burn_tensor *x = VEC(1, 2, 3, 4);
        burn_tensor *first = bad_gather(0, 50 + k);
        burn_tensor *read = burn_sum(burn_mul(bad_gather(1, 60 + k), x), 0, NULL, 0);
        char wanted[32];
        (void)snprintf(wanted, sizeof(wanted), "gather: index %d ", 50 + k);
        check_read_fails(read, BURN_E_DATA, "6", NULL);
        assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
        if (strstr(err.text, wanted) == NULL) {
            fail_msg("round %d: \"%s\" is told, not \"%s\"", k, err.text, wanted);
        }
        check_read_fails(first, BURN_E_DATA, "5", NULL);
        burn_scope_end();
    }
    check_clean();
}

static void test_the_first_cause_is_kept(void **state)
{
    (void)state;
    burn_tensor *first = bad_gather(0, 5);
    burn_tensor *second = bad_gather(1, 6);
    check_read_fails(burn_add(first, burn_exp(first)), BURN_E_DATA, "5", NULL);
    check_read_fails(burn_add(second, burn_exp(second)), BURN_E_DATA, "6", NULL);
    burn_tensor *both = burn_add(first, second);
    check_read_fails(both, BURN_E_DATA, "gather", NULL);
}

typedef struct maker {
    burn_tensor *made; /* kept */
    pthread_barrier_t meet;
} maker;

static void *make_bad(void *arg)
{
    maker *m = arg;
    burn_scope_begin();
    m->made = burn_keep(bad_gather(0, 5));
    burn_scope_end();
    /* The end of the thread would look at its faults. */
    (void)pthread_barrier_wait(&m->meet);
    (void)pthread_barrier_wait(&m->meet);
    return NULL;
}

/* The first call that failed here is told, though the cause lies in another thread, whose calls are
 * neither earlier nor later. */
static void test_sync_tells_the_first_call_whose_cause_is_elsewhere(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    maker m = {NULL};
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&m.meet, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, make_bad, &m), 0);
    (void)pthread_barrier_wait(&m.meet);
    burn_tensor *first = burn_gather(m.made, index_vec(2, DIMS(0, 1)), 0);
    burn_tensor *second = bad_gather(1, 6);
    assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
    (void)pthread_barrier_wait(&m.meet);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&m.meet), 0);
    if (strstr(err.text, "gather: index 5 ") == NULL) {
        fail_msg("\"%s\" is told", err.text);
    }
    for (int twice = 0; twice < 2; twice++) {
        check_read_fails(first, BURN_E_DATA, "index 5 ", NULL);
        check_read_fails(second, BURN_E_DATA, "index 6 ", NULL);
    }
    burn_release(m.made);
    (void)burn_sync(dev, NULL);
}

/* INT_MIN / -1 wraps; by zero it is an error of that tensor, found when it is read. */
static void test_B080_integer_division(void **state)
{
    (void)state;
    static const struct {
        uint8_t dtype;
        int64_t lowest;
    } kinds[] = {{BURN_I8, INT8_MIN}, {BURN_I16, INT16_MIN}, {BURN_I32, INT32_MIN},
                 {BURN_I64, INT64_MIN}};
    static const uint64_t ops[] = {BURN_OP_DIV, BURN_OP_REMAINDER, BURN_OP_FMOD};
    for (size_t i = 0; i < COUNT(kinds) * COUNT(ops); i++) {
        uint8_t dtype = kinds[i / COUNT(ops)].dtype;
        uint64_t op = ops[i % COUNT(ops)];
        if (burn_op_support(dev, op, dtype) == BURN_SUPPORT_NONE) {
            continue;
        }
        const int64_t x[3] = {kinds[i / COUNT(ops)].lowest, 7, -7};
        burn_tensor *in[2] = {burn_tensor_from_i64(dev, dtype, 1, DIMS(3), x),
                              burn_tensor_from_i64(dev, dtype, 1, DIMS(3), DIMS(-1, 1, -1))};
        burn_tensor *y = NULL;
        (void)burn_op_call(dev, op, NULL, 0, in, 2, &y, 1);
        int64_t got[3] = {1, 1, 1};
        assert_int_equal(burn_read_i64(y, got, 3, NULL), BURN_OK);
        assert_true(got[0] == (op == BURN_OP_DIV ? x[0] : 0));
        assert_true(got[2] == (op == BURN_OP_DIV ? 7 : 0));
        in[1] = burn_tensor_from_i64(dev, dtype, 1, DIMS(3), DIMS(1, 0, 0));
        burn_tensor *bad = NULL;
        (void)burn_op_call(dev, op, NULL, 0, in, 2, &bad, 1);
        check_read_fails(burn_add(bad, bad), BURN_E_DATA, burn_op_find_id(op)->name, "1", NULL);
        assert_int_equal(burn_read_i64(burn_add(y, in[0]), got, 3, NULL), BURN_OK);
    }
}

/* How an error of a part begins. */
#define DECOMPOSED(call, part) call ": in its decomposition: " part ": "

static void test_B088_embedding(void **state)
{
    (void)state;
    burn_tensor *table = mat(3, 2, (const float[]){1, 2, 3, 4, 5, 6});
    CHECK(burn_embedding(table, index_vec(3, DIMS(0, 1, 1))), 1, 2, 3, 4, 3, 4);
    /* A kernel of its own counts rows; where it is made of gather, gather counts elements. */
    check_read_fails(burn_embedding(table, index_vec(3, DIMS(0, 3, 1))), BURN_E_DATA, "index 3 ",
                     on_mock ? DECOMPOSED("embedding (table f32[3,2], index i64[3])", "gather")
                             : "embedding: ",
                     on_mock ? "position 2" : "position 1", on_mock ? "0..2" : "size 3", NULL);
    check_read_fails(burn_embedding(table, index_vec(3, DIMS(0, 1, -1))), BURN_E_DATA, "index -1 ",
                     on_mock ? "position 4" : "position 2", NULL);
    check_read_fails(burn_one_hot(index_vec(2, DIMS(1, 4)), 4, BURN_F32), BURN_E_DATA, "index 4 ",
                     NULL);
    CHECK(burn_embedding(table, index_vec(1, DIMS(2))), 5, 6);
}

typedef struct called {
    const char *text; /* the call, as an error of a part tells it */
    uint64_t op;
    burn_tensor *result;
} called;

/* Calls with data that one of their parts has no answer to. */
static uint32_t bad_calls(called *out)
{
    burn_tensor *x = mat(3, 2, (const float[]){1, 2, 3, 4, 5, 6});
    burn_tensor *bad = index_vec(3, DIMS(0, 4, 1));
    burn_tensor *a = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(3), DIMS(7, -7, 1));
    burn_tensor *b = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(3), DIMS(2, 0, 1));
    const called calls[] = {
        {"embedding (table f32[3,2], index i64[3])", BURN_OP_EMBEDDING, burn_embedding(x, bad)},
        {"select (x f32[3,2], index i64[3])", BURN_OP_SELECT, burn_select(x, bad, 0)},
        {"one_hot (index i64[3])", BURN_OP_ONE_HOT, burn_one_hot(bad, 4, BURN_F32)},
        {"cross_entropy (logits f32[3,2], target i64[3])", BURN_OP_CROSS_ENTROPY,
         burn_cross_entropy(x, bad, NULL, NULL)},
        {"remainder (x i32[3], y i32[3])", BURN_OP_REMAINDER, burn_remainder(a, b)},
    };
    memcpy(out, calls, sizeof(calls));
    return COUNT(calls) - (on_mock ? 1 : 0); /* mock has no kernels for integers */
}

static void expect_the_call(const called *c, int decomposed)
{
    const char *name = burn_op_find_id(c->op)->name;
    const char *start = decomposed ? c->text : name;
    burn_err err = BURN_ERR_INIT;
    double values[16];
    burn_tensor *y = burn_add(c->result, c->result);
    assert_true(burn_numel(y) <= (int64_t)COUNT(values));
    assert_int_equal(burn_read_f64(y, values, burn_numel(y), &err), BURN_E_DATA);
    if (strncmp(err.text, start, strlen(start)) != 0) {
        fail_msg("\"%s\" does not begin with %s", err.text, start);
    }
    assert_true(err.op == c->op);
    assert_true(!decomposed || strstr(err.text, ": in its decomposition: ") != NULL);
}

/* Where a call is decomposed, its parts' errors are the call's, also when they come rounds later
 * from a record, and also behind other calls. Flex has kernels of its own for these calls, so it
 * is told to decompose in half of the rounds. */
static void test_errors_name_the_op_that_was_called(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        called calls[8];
        int forced = round >= 4;
        burn_scope_begin();
        assert_int_equal(burn_option_set("DECOMPOSE", forced ? "1" : "0", NULL), BURN_OK);
        uint32_t n = bad_calls(calls);
        for (uint32_t i = 0; i < n; i++) {
            expect_the_call(&calls[i], on_mock || forced);
        }
        assert_int_equal(burn_option_set("DECOMPOSE", "0", NULL), BURN_OK);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
    check_clean();
}

/* The shapes of many or long operands give way to what the part says. */
static void test_a_long_call_leaves_room_for_the_reason(void **state)
{
    (void)state;
    const int64_t dims[8] = {10, 2, 10, 10, 10, 1, 1, 1};
    burn_tensor *logits = burn_ones(dev, BURN_F32, 8, dims);
    burn_tensor *target =
        burn_full(dev, BURN_I64, 7, DIMS(10, 10, 10, 10, 1, 1, 1), burn_scalar_int(2));
    burn_tensor *loss = burn_cross_entropy(logits, target, VEC(1, 2), NULL);
    check_read_fails(loss, BURN_E_DATA, "cross_entropy", NULL);
    if (on_mock) {
        check_read_fails(loss, BURN_E_DATA,
                         "cross_entropy (logits f32[10,2,10,10,10,1,1,1], target "
                         "i64[10,10,10,10,1,1,1], ...): in its decomposition: gather: index 2 at "
                         "position 0 is not in 0..1",
                         NULL);
    }
}

static void test_division_by_zero(void **state)
{
    (void)state;
    burn_tensor *a = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(3), DIMS(7, -7, 1));
    burn_tensor *b = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(3), DIMS(2, 0, 1));
    burn_tensor *good = burn_add(a, b);
    check_read_fails(burn_div(a, b), BURN_E_DATA, "div", NULL);
    CHECK(good, 9, -7, 2);
    burn_tensor *low = burn_tensor_from_i64(dev, BURN_I32, 1, DIMS(1), DIMS(INT32_MIN));
    CHECK(burn_div(low, burn_scalar(-1.0)), (double)INT32_MIN);
}

/* More faults behind one value than any fixed table holds, each of which counts. */
static void test_many_faults_behind_one_value(void **state)
{
    (void)state;
    enum { N = 200 };
    for (int wrong = -1; wrong < N; wrong += 67) {
        burn_scope_begin();
        burn_tensor *sum = VEC(0, 0, 0, 0);
        for (int i = 0; i < N; i++) {
            sum = burn_add(sum, bad_gather(3, i == wrong ? 9 : 0));
        }
        if (wrong < 0) {
            CHECK(sum, 10.0 * N, 20.0 * N, 30.0 * N, 10.0 * N);
        } else {
            check_read_fails(sum, BURN_E_DATA, "gather", "9", NULL);
        }
        burn_scope_end();
    }
    burn_tensor *parts[60];
    for (int i = 0; i < 60; i++) {
        parts[i] = bad_gather(0, i == 50 ? 4 : 2);
    }
    check_read_fails(burn_cat(parts, 60, 0), BURN_E_DATA, "gather", "4", NULL);
}

/* A chain that nobody looks at for long: no recursion, no pile. */
static void test_a_long_chain_of_faults(void **state)
{
    (void)state;
    burn_tensor *x = burn_keep(VEC(1, 2, 3, 4));
    burn_tensor *index = index_vec(4, DIMS(3, 2, 1, 0));
    uint64_t before = in_use();
    for (int i = 0; i < 20000; i++) {
        burn_scope_begin();
        burn_tensor *next = burn_keep(burn_gather(x, index, 0));
        burn_release(x);
        x = next;
        burn_scope_end();
    }
    CHECK(x, 1, 2, 3, 4);
    check_clean();
    assert_true(in_use() < before + 4096); /* words that were looked at are given back */
    burn_release(x);
}

/* The first operand's, in all modes, though somebody has seen the other one meanwhile. */
static void test_of_two_causes_the_first_operands_is_told(void **state)
{
    (void)state;
    burn_tensor *one = burn_keep(index_vec(1, DIMS(0)));
    burn_tensor *three = burn_keep(index_vec(3, DIMS(1, 0, 1)));
    const char *place = on_mock ? "position 1" : "element 1";
    for (int k = 0; k < 3; k++) {
        burn_scope_begin();
        burn_tensor *seen = burn_div(one, one);
        burn_tensor *sum = burn_add(burn_div(three, three), seen);
        check_read_fails(seen, BURN_E_DATA, on_mock ? "position 0" : "element 0", NULL);
        check_read_fails(sum, BURN_E_DATA, place, NULL);
        check_read_fails(burn_add(burn_div(three, three), seen), BURN_E_DATA, place, NULL);
        burn_scope_end();
        (void)burn_sync(dev, NULL);
    }
    burn_release(one);
    burn_release(three);
}

static void test_a_fault_in_backward(void **state)
{
    (void)state;
    burn_tensor *w = burn_require_grad(ad, VEC(1, 2, 3));
    burn_tensor *y = burn_gather(w, index_vec(2, DIMS(0, 8)), 0);
    burn_err err = BURN_ERR_INIT;
    burn_grads *grads = burn_backward(y, NULL, 0, &err);
    if (grads != NULL) {
        check_read_fails(burn_grads_get(grads, w), BURN_E_DATA, "8", NULL);
    } else {
        assert_int_equal(err.code, BURN_E_DATA);
    }
    burn_grads_free(grads);
    burn_tensor *v = burn_require_grad(ad, VEC(1, 2, 3));
    grads = burn_backward(burn_mul(v, v), NULL, 0, &err);
    assert_non_null(grads);
    CHECK(burn_grads_get(grads, v), 2, 4, 6);
    burn_grads_free(grads);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B242_exactly_the_dependents_fail),
        CORE_TEST(test_B242_sync_tells_the_first),
        CORE_TEST(test_sync_tells_the_first_call_in_all_modes),
        CORE_TEST(test_sync_tells_what_was_left_unrun_first),
        CORE_TEST(test_the_first_cause_is_kept),
        CORE_TEST(test_sync_tells_the_first_call_whose_cause_is_elsewhere),
        CORE_TEST(test_B080_integer_division),
        CORE_TEST(test_B088_embedding),
        CORE_TEST(test_errors_name_the_op_that_was_called),
        CORE_TEST(test_a_long_call_leaves_room_for_the_reason),
        CORE_TEST(test_division_by_zero),
        CORE_TEST(test_many_faults_behind_one_value),
        CORE_TEST(test_a_long_chain_of_faults),
        CORE_TEST(test_of_two_causes_the_first_operands_is_told),
        CORE_TEST(test_a_fault_in_backward),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
