/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_defer.c - sequences that are known wait: what is recognised, dropped, left and cut, and
 * that none of it changes a value or an error.
 *
 * Looks inside: the records of the thread's stream, and the report of its plans. Most tests run a
 * step with window 1 and again, some times over, with the window of the command line. To add one: a
 * step_fn and a call of `same_as_eager`.
 */
#include "core_test.h"

#include "exec/stream.h"

#include <burn/plans.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 4 };

static burn_plan_totals report(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t;
}

/* What a step gives, or the text of its failure. */
typedef struct outcome {
    double values[64];
    char text[256];
    int32_t code;
} outcome;

typedef burn_tensor *(*step_fn)(int round);

static void run_step(step_fn step, int round, outcome *out)
{
    burn_err err = BURN_ERR_INIT;
    memset(out, 0, sizeof(*out));
    burn_seed(5);
    burn_scope_begin();
    burn_tensor *t = step(round);
    out->code = burn_tensor_error(t, &err);
    if (out->code == BURN_OK) {
        assert_in_range(burn_numel(t), 0, 64);
        out->code = burn_read_f64(t, out->values, burn_numel(t), &err);
    }
    (void)snprintf(out->text, sizeof(out->text), "%s", err.text);
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

static void same_as_eager(step_fn step)
{
    outcome eager[ROUNDS];
    outcome waited;
    set_window(1);
    for (int k = 0; k < ROUNDS; k++) {
        run_step(step, k, &eager[k]);
    }
    set_window(window);
    for (int again = 0; again < 2; again++) {
        for (int k = 0; k < ROUNDS; k++) {
            run_step(step, k, &waited);
            assert_string_equal(waited.text, eager[k].text);
            assert_int_equal(waited.code, eager[k].code);
            assert_memory_equal(waited.values, eager[k].values, sizeof(waited.values));
        }
    }
}

/* ---- the same values and errors -------------------------------------------------------------- */

/* An operand that is absent stands before the output, whose sizes begin where it points. */
static burn_tensor *convolution(int round)
{
    burn_attrs_conv a;
    burn_attrs_init(&a, sizeof(a));
    for (int i = 0; i < 2; i++) {
        a.stride[i] = 1;
        a.padding[i] = 1;
        a.dilation[i] = 1;
    }
    a.groups = 1;
    burn_tensor *in[3] = {count_up(dev, 4, DIMS(1, 3, 5, 4), round),
                          count_up(dev, 4, DIMS(1, 3, 3, 3), 1), NULL};
    burn_tensor *out = NULL;
    (void)burn_op_call(dev, BURN_OP_CONV2D, &a, sizeof(a), in, 3, &out, 1);
    return out;
}

static void test_absent_operands_change_no_sizes(void **state)
{
    (void)state;
    same_as_eager(convolution);
}

/* What is made of a variable's memory is read when that holds something else. */
static burn_tensor *overwritten(int round)
{
    double sum = 0;
    burn_tensor *x = VEC(1, 2, 3, 4);
    burn_tensor *other = VEC(5, 6, 7, 8);
    burn_tensor *next = burn_add(other, burn_scalar(round));
    burn_var *v = burn_var_create(dev, x, NULL);
    assert_non_null(v);
    burn_scope_begin();
    burn_tensor *y = burn_scope_return(burn_sub(burn_flip(burn_var_get(v), 1, DIMS(0)), other));
    assert_int_equal(burn_var_assign(v, next, NULL), BURN_OK);
    burn_var_release(v);
    assert_int_equal(burn_read_f64(burn_sum(next, 0, NULL, 0), &sum, 1, NULL), BURN_OK);
    return y;
}

static void test_what_is_overwritten_is_read_before(void **state)
{
    (void)state;
    same_as_eager(overwritten);
}

/* The first call of a chain reads a variable, which is overwritten before the last one is made:
 * together they run before that. Nobody has the old value any more, so it is not copied out. */
static burn_tensor *overwritten_within_a_chain(int round)
{
    burn_tensor *other = VEC(5, 6, 7, 8);
    burn_tensor *next = burn_add(other, burn_scalar(round));
    burn_var *v = burn_var_create(dev, VEC(1, 2, 3, 4), NULL);
    assert_non_null(v);
    burn_scope_begin();
    burn_tensor *half = burn_scope_return(burn_mul(burn_var_get(v), burn_scalar(0.5)));
    assert_int_equal(burn_var_assign(v, next, NULL), BURN_OK);
    burn_tensor *y = burn_add(half, other);
    burn_scope_begin();
    burn_tensor *both = burn_scope_return(burn_add(burn_var_get(v), y));
    burn_var_release(v);
    return both;
}

static void test_a_chain_reads_before_what_overwrites(void **state)
{
    (void)state;
    same_as_eager(overwritten_within_a_chain);
}

/* Only the second of three results is used, and only later. */
static burn_tensor *one_of_several(int round)
{
    double sum = 0;
    burn_attrs_norm a;
    burn_attrs_init(&a, sizeof(a));
    a.eps = 1e-5;
    a.n_axes = 1;
    burn_tensor *x = burn_sin(count_up(dev, 2, DIMS(5, 7), round));
    burn_scope_begin();
    burn_tensor *in[3] = {x, burn_ones(dev, BURN_F32, 1, DIMS(7)), burn_cos(x)};
    burn_tensor *out[3];
    (void)burn_op_call(dev, BURN_OP_LAYER_NORM_GRAD, &a, sizeof(a), in, 3, out, 3);
    burn_tensor *y = burn_scope_return(burn_neg(out[1]));
    assert_int_equal(burn_read_f64(burn_sum(x, 0, NULL, 0), &sum, 1, NULL), BURN_OK);
    return y;
}

static void test_one_result_of_several_is_made_later(void **state)
{
    (void)state;
    same_as_eager(one_of_several);
}

/* A softmax by hand with casts, in place where it can be. */
static burn_tensor *by_rows(int round)
{
    burn_tensor *x = burn_cast(count_up(dev, 2, DIMS(4, 9), round), BURN_F64);
    burn_tensor *e = burn_exp(burn_move(burn_sub(x, burn_max(x, 1, DIMS(1), 1))));
    burn_tensor *y = burn_div(e, burn_sum(e, 1, DIMS(1), 1));
    return burn_cast(burn_move(burn_mul(burn_move(y), x)), BURN_F32);
}

static void test_rows_go_back_into_their_elements(void **state)
{
    (void)state;
    same_as_eager(by_rows);
}

/* The third time round another way is taken. */
static burn_tensor *branches(int round)
{
    burn_tensor *x = burn_tanh(count_up(dev, 1, DIMS(9), 0));
    x = round == 2 ? burn_sum(x, 0, NULL, 1) : burn_exp(x);
    return burn_add(x, x);
}

static void test_a_branch_costs_no_error(void **state)
{
    (void)state;
    same_as_eager(branches);
}

static burn_tensor *divides_by_zero(int round)
{
    const int32_t values[4] = {4, round == 3 ? 7 : 0, 1, 2};
    burn_tensor *x = burn_tensor_from_data(dev, BURN_I32, 1, DIMS(4), values);
    burn_tensor *y = burn_add(burn_div(burn_add(x, x), x), x);
    burn_tensor *fine = burn_mul(x, x);
    int32_t seen[4];
    assert_int_equal(burn_read(fine, seen, sizeof(seen), NULL), BURN_OK);
    assert_int_equal(seen[0], 16);
    return y;
}

static void test_only_dependents_fail_and_say_the_same(void **state)
{
    (void)state;
    same_as_eager(divides_by_zero);
}

/* ---- recognition ----------------------------------------------------------------------------- */

static burn_tensor *loop(int64_t rows)
{
    burn_tensor *x = burn_ones(dev, BURN_F32, 2, DIMS(rows, 6));
    burn_tensor *y = burn_mul(burn_add(burn_tanh(x), x), x);
    return burn_sum(y, 0, NULL, 0);
}

static void go_round(int64_t rows)
{
    burn_scope_begin();
    (void)burn_item(loop(rows), NULL);
    burn_scope_end();
}

/* New calls run at once, known ones wait; a plan is made once, for other sizes too. */
static void test_the_second_round_waits(void **state)
{
    (void)state;
    if (window != BURNI_WINDOW_AUTO) {
        return;
    }
    burn_scope_begin();
    (void)burn_item(loop(5), NULL);
    burn_tensor *second = loop(5);
    assert_in_range(core_stream()->n_records, 1, BURNI_MAX_WINDOW);
    (void)burn_item(second, NULL);
    assert_int_equal(core_stream()->n_records, 0);
    burn_scope_end();
    go_round(5);
    uint64_t made = report().made;
    uint64_t hits = report().hits;
    go_round(5);
    go_round(11);
    go_round(3);
    assert_int_equal(report().made, made);
    assert_in_range(report().hits, hits + 3, UINT64_MAX);
}

/* Two loops that take turns keep their plans. */
static void test_loops_alternate(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        burn_scope_begin();
        burn_tensor *x = count_up(dev, 1, DIMS(3), k);
        burn_tensor *y = k % 2 ? burn_mul(burn_neg(x), x) : burn_add(burn_abs(x), x);
        double want = k % 2 ? -(double)k * k : 2.0 * k;
        double seen[3];
        assert_int_equal(burn_read_f64(y, seen, 3, NULL), BURN_OK);
        assert_true(seen[0] == want);
        burn_scope_end();
    }
}

/* More calls than a window holds, more storages than a sequence tells apart. */
static void test_long_sequences_are_cut(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        burn_scope_begin();
        burn_tensor *x = VEC(0, 1);
        for (int k = 0; k < 3000; k++) {
            x = burn_add(x, burn_scalar(1.0));
        }
        CHECK(x, 3000, 3001);
        burn_tensor *parts[16];
        burn_tensor *sum = VEC(0, 0);
        for (int k = 0; k < 500; k++) {
            for (int i = 0; i < 16; i++) {
                parts[i] = burn_ones(dev, BURN_F32, 1, DIMS(2));
            }
            sum = burn_add(sum, burn_sum(burn_stack(parts, 16, 0), 1, DIMS(0), 0));
        }
        CHECK(sum, 8000, 8000);
        burn_scope_end();
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct shared {
    burn_tensor *x; /* kept */
    burn_tensor *y; /* kept, made by the thread, which ends before anybody reads it */
    burn_var *v;
} shared;

static void *make_and_end(void *arg)
{
    shared *s = arg;
    for (int k = 0; k < 3; k++) {
        burn_scope_begin();
        if (s->y != NULL) {
            burn_release(s->y);
        }
        s->y = burn_keep(burn_mul(burn_add(s->x, s->x), burn_var_get(s->v)));
        assert_int_equal(burn_var_assign(s->v, burn_add(burn_var_get(s->v), s->x), NULL), BURN_OK);
        burn_scope_end();
    }
    return NULL;
}

static void test_a_thread_ends_while_calls_wait(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        pthread_t thread;
        burn_scope_begin();
        shared s = {burn_keep(VEC(1, 2)), NULL, burn_var_create(dev, VEC(1, 1), NULL)};
        assert_int_equal(pthread_create(&thread, NULL, make_and_end, &s), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        CHECK(s.y, 6, 20);
        CHECK(burn_var_get(s.v), 4, 7);
        burn_release(s.x);
        burn_release(s.y);
        burn_scope_end();
        burn_var_release(s.v);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(test_absent_operands_change_no_sizes),
        WINDOW_TEST(test_what_is_overwritten_is_read_before),
        WINDOW_TEST(test_a_chain_reads_before_what_overwrites),
        WINDOW_TEST(test_one_result_of_several_is_made_later),
        WINDOW_TEST(test_rows_go_back_into_their_elements),
        WINDOW_TEST(test_a_branch_costs_no_error),
        WINDOW_TEST(test_only_dependents_fail_and_say_the_same),
        WINDOW_TEST(test_the_second_round_waits),
        WINDOW_TEST(test_loops_alternate),
        WINDOW_TEST(test_long_sequences_are_cut),
        WINDOW_TEST(test_a_thread_ends_while_calls_wait),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
