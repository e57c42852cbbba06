/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_kernels.c - kernels that refuse or fail, copies and signals that fail: exactly what depends
 * on them fails, with the first cause; the rest goes on; the device is usable afterwards.
 *
 * Faults come from inject.h, so both devices and every window are tried the same way. A failure of
 * work shows at the read, whoever reads. A refusal (BURN_E_UNSUPPORTED) is no failure where the op
 * has a decomposition: values are the same, up to rounding.
 */
#include "inject.h"

#include "base/error.h"
#include "exec/device.h"

#include <burn/store.h>
#include <burn/trace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
    (void)core_setup(state);
    static int ready;
    if (!ready) {
        inject_into(dev);
        ready = 1;
    }
    return 0;
}

static int teardown(void **state)
{
    for (int entry = 0; entry < N_INJECT; entry++) {
        inject_fail(entry, 0, 0, BURN_OK);
    }
    (void)inject_spy(dev, 0, NULL);
    return core_teardown(state);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static burn_tensor *image(void)
{
    return burn_sin(count_up(dev, 2, DIMS(3, 4), 0));
}

static burn_tensor *do_softmax(burn_tensor *x)
{
    return burn_softmax(x, -1);
}

static burn_tensor *do_mean(burn_tensor *x)
{
    return burn_mean(x, 1, DIMS(1), 1);
}

static burn_tensor *do_sub(burn_tensor *x)
{
    return burn_sub(x, burn_scalar(2.0));
}

static burn_tensor *do_linear(burn_tensor *x)
{
    return burn_linear(x, burn_permute(x, 2, DIMS(1, 0)), NULL);
}

static burn_tensor *do_gelu_of_view(burn_tensor *x)
{
    return burn_gelu(burn_permute(x, 2, DIMS(1, 0)), 0);
}

static burn_tensor *do_relu_moved(burn_tensor *x)
{
    return burn_relu(burn_move(burn_add(x, burn_scalar(0.25))));
}

/* The parts of the decomposition read x again after others have taken memory. */
static burn_tensor *do_gelu_moved(burn_tensor *x)
{
    return burn_gelu(burn_move(burn_add(x, burn_scalar(0.25))), 0);
}

typedef struct refusal {
    uint64_t op;
    burn_tensor *(*call)(burn_tensor *x);
} refusal;

static const refusal refusals[] = {
    {BURN_OP_SOFTMAX, do_softmax}, {BURN_OP_MEAN, do_mean},         {BURN_OP_SUB, do_sub},
    {BURN_OP_LINEAR, do_linear},   {BURN_OP_GELU, do_gelu_of_view}, {BURN_OP_RELU, do_relu_moved},
    {BURN_OP_GELU, do_gelu_moved},
};

static void compare_with_refusal(const refusal *r)
{
    double want[16];
    double seen[16];
    burn_scope_begin();
    burn_tensor *x = image();
    burn_tensor *good = burn_mul(r->call(x), burn_scalar(3.0));
    int64_t n = burn_numel(good);
    assert_true(n <= 16);
    assert_int_equal(burn_read_f64(good, want, n, NULL), BURN_OK);
    inject_fail(INJECT_LAUNCH, 1, INT32_MAX, BURN_E_UNSUPPORTED);
    burn_tensor *y = r->call(x);
    burn_tensor *again = burn_mul(y, burn_scalar(3.0)); /* depends on it in the same window */
    burn_err err = BURN_ERR_INIT;
    if (burn_read_f64(again, seen, n, &err) != BURN_OK) {
        fail_msg("op %llu: %s", (unsigned long long)r->op, err.text);
    }
    assert_true(inject_count(INJECT_LAUNCH) > 0);
    inject_fail(INJECT_LAUNCH, 0, 0, BURN_OK);
    for (int64_t i = 0; i < n; i++) {
        double off = seen[i] - want[i];
        if (off > 1e-5 || off < -1e-5) {
            fail_msg("op %llu: element %lld is %g, not %g", (unsigned long long)r->op, (long long)i,
                     seen[i], want[i]);
        }
    }
    check_shape(y, burn_rank(good), DIMS(burn_dim(good, 0), burn_dim(good, 1)));
    burn_scope_end();
    check_clean();
}

static void test_a_refusal_takes_the_decomposition(void **state)
{
    (void)state;
    burn_scope_flush();
    uint64_t before = in_use();
    uint32_t tried = 0;
    inject_no_fusion(dev, 1);
    for (size_t i = 0; i < COUNT(refusals); i++) {
        if (burn_op_find_id(refusals[i].op)->decompose != NULL &&
            inject_rows(dev, refusals[i].op)) {
            compare_with_refusal(&refusals[i]);
            tried++;
        }
    }
    inject_no_fusion(dev, 0);
    assert_true(on_mock || tried > 3);
    assert_int_equal(in_use(), before);
}

/* Calls that would be one run one by one when the kernel for that refuses. */
static void test_a_group_that_is_refused(void **state)
{
    (void)state;
    burn_scope_flush();
    uint64_t before = in_use();
    if (!inject_rows(dev, BURN_OP_FUSED)) {
        skip();
    }
    burn_tensor *x = burn_keep(count_up(dev, 1, DIMS(3), 1));
    for (int k = 0; k < 4; k++) {
        burn_scope_begin();
        inject_fail(INJECT_LAUNCH, 1, INT32_MAX, BURN_E_UNSUPPORTED);
        burn_tensor *y = burn_mul(burn_add(x, x), x);
        burn_tensor *sum = burn_sum(y, 1, DIMS(0), 1);
        burn_tensor *z = burn_sub(y, sum);
        CHECK(z, -26, -20, -10);
        CHECK(sum, 28);
        /* The plan that met the refusal goes on without the group. With a window of 64 the first
         * round is a plan of its own: x is made in it. */
        int is_tried = window == 64 ? k < 2 : window == 0 && k == 2;
        assert_int_equal(inject_count(INJECT_LAUNCH) > 0, is_tried);
        inject_fail(INJECT_LAUNCH, 0, 0, BURN_OK);
        burn_scope_end();
    }
    burn_release(x);
    burn_scope_flush();
    (void)inject_rows(dev, BURN_OP_ADD);
    assert_int_equal(in_use(), before);
    check_clean();
}

/* The parts of a call that was refused are launched with its mode and at its place, whoever runs
 * them and when. */
static void test_a_refusal_keeps_mode_and_place(void **state)
{
    (void)state;
    if (burn_op_find_id(BURN_OP_LINEAR)->decompose == NULL || !inject_rows(dev, BURN_OP_LINEAR)) {
        skip();
    }
    assert_true(inject_spy(dev, BURN_OP_MATMUL, NULL));
    inject_fail(INJECT_LAUNCH, 1, INT32_MAX, BURN_E_UNSUPPORTED);
    burn_tensor *x = image();
    burn_tag_begin("inner");
    uint64_t place = burni_thread_get()->tag;
    burn_math_begin(BURN_MATH_REDUCED);
    burn_tensor *y = do_linear(x);
    burn_math_end();
    burn_tag_end();
    double seen[9];
    burn_tag_begin("elsewhere");
    assert_int_equal(burn_read_f64(y, seen, 9, NULL), BURN_OK);
    assert_int_not_equal(burni_thread_get()->tag, place);
    burn_tag_end();
    uint32_t math = 0;
    uint64_t tag = 0;
    assert_int_equal(inject_spied(&math, &tag), 1);
    assert_int_equal(math, BURN_MATH_REDUCED);
    assert_int_equal(tag, place);
    check_clean();
}

static int32_t check_reduced(const burn_call *call)
{
    return (call->flags & BURN_MATH_REDUCED) != 0
               ? BURN_OK
               : burni_fail(call->err, BURN_E_UNSUPPORTED, "for reduced precision only");
}

/* A row that was found for one mode and rank serves no other: each pair of both is a key. */
static void test_modes_and_ranks_have_rows_of_their_own(void **state)
{
    (void)state;
    assert_true(inject_spy(dev, BURN_OP_MATMUL, check_reduced));
    burn_tensor *square = count_up(dev, 4, DIMS(1, 1, 2, 2), 0);
    uint32_t math = 0;
    uint64_t tag = 0;
    int64_t served = 0;
    for (int64_t rank = 2; rank <= 4; rank++) {
        burn_scope_begin();
        burn_tensor *x = burn_reshape(square, (uint32_t)rank, DIMS(1, 1, 2, 2) + (4 - rank));
        burn_math_begin(BURN_MATH_REDUCED);
        burn_tensor *y = burn_matmul(x, square);
        burn_math_end();
        CHECK(burn_reshape(y, 1, DIMS(4)), 2, 3, 6, 11);
        served++;
        assert_int_equal(inject_spied(&math, &tag), served);
        for (int64_t other = 2; other <= 4; other++) {
            x = burn_reshape(square, (uint32_t)other, DIMS(1, 1, 2, 2) + (4 - other));
            CHECK(burn_reshape(burn_matmul(x, square), 1, DIMS(4)), 2, 3, 6, 11);
            assert_int_equal(inject_spied(&math, &tag), served);
        }
        burn_scope_end();
    }
    check_clean();
}

/* An op that overwrites variables, refused in the middle of a window. */
static void test_a_refused_update(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    if (!inject_rows(dev, BURN_OP_SGD_STEP)) {
        skip();
    }
    burn_var *w = burn_var_create(ad, VEC(1, 2, 3), &err);
    burn_var *v = burn_var_create(dev, VEC(0, 0, 0), &err);
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    a.momentum = 0.5;
    a.first = 1;
    burn_tensor *old = burn_var_get(w);
    inject_fail(INJECT_LAUNCH, 1, INT32_MAX, BURN_E_UNSUPPORTED);
    burn_var *const vars[4] = {w, NULL, v, NULL};
    burn_tensor *const in[4] = {NULL, VEC(1, -1, 2), NULL, burn_scalar(0.5)};
    for (int i = 0; i < 2; i++) {
        int32_t rc = burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
        assert_int_equal(rc, BURN_OK);
        a.first = 0;
    }
    burn_tensor *later = burn_add(burn_var_get(w), burn_scalar(1.0));
    CHECK_NEAR(burn_var_get(w), 1e-6, -0.25, 3.25, 0.5);
    CHECK_NEAR(later, 1e-6, 0.75, 4.25, 1.5);
    CHECK_NEAR(burn_var_get(v), 1e-6, 1.5, -1.5, 3);
    CHECK(old, 1, 2, 3);
    burn_var_release(w);
    burn_var_release(v);
    check_clean();
}

/* No decomposition: the op fails, with what the kernel said or what the code means. */
static void test_a_refusal_without_a_way_round(void **state)
{
    (void)state;
    assert_true(inject_rows(dev, BURN_OP_EXP));
    assert_null(burn_op_find_id(BURN_OP_EXP)->decompose);
    inject_fail(INJECT_LAUNCH, 1, 0, BURN_E_UNSUPPORTED);
    burn_tensor *bad = burn_exp(burn_permute(image(), 2, DIMS(1, 0)));
    burn_tensor *good = burn_exp(VEC(0));
    burn_tensor *turned = burn_permute(bad, 2, DIMS(1, 0)); /* so it is in no group */
    check_read_fails(burn_add(turned, burn_scalar(1.0)), BURN_E_UNSUPPORTED, "exp", NULL);
    CHECK(good, 1);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef struct reader {
    burn_tensor *t;
    int32_t rc;
    burn_err err;
} reader;

static void *read_elsewhere(void *arg)
{
    reader *r = arg;
    double values[4];
    burn_scope_begin();
    r->rc = burn_read_f64(burn_mul(r->t, burn_scalar(2.0)), values, 4, &r->err);
    burn_scope_end();
    return NULL;
}

static void check_elsewhere(burn_tensor *t, int32_t code, const char *word)
{
    reader r = {t, 0, BURN_ERR_INIT};
    pthread_t thread;
    (void)burn_keep(t);
    assert_int_equal(pthread_create(&thread, NULL, read_elsewhere, &r), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    burn_release(t);
    assert_int_equal(r.rc, code);
    if (strstr(r.err.text, word) == NULL) {
        fail_msg("\"%s\" is not in: %s", word, r.err.text);
    }
}

/* The n-th launch of many fails: it and what comes from it, and nothing else, in any thread. */
static void test_exactly_the_dependents_fail(void **state)
{
    (void)state;
    assert_true(inject_rows(dev, BURN_OP_EXP));
    for (int64_t bad = 1; bad <= 6; bad++) {
        burn_scope_begin();
        inject_fail(INJECT_LAUNCH, bad, 0, BURN_E_INTERNAL);
        burn_tensor *x = VEC(0, 0, 0, 0);
        burn_tensor *y[6];
        burn_tensor *z[6];
        for (int i = 0; i < 6; i++) {
            /* Results that are read in another order: exp is in no group. */
            burn_tensor *square = burn_reshape(burn_add(x, burn_scalar(0.0)), 2, DIMS(2, 2));
            y[i] = burn_exp(burn_permute(square, 2, DIMS(1, 0)));
            z[i] = burn_add(burn_permute(y[i], 2, DIMS(1, 0)), burn_scalar(1.0));
        }
        burn_tensor *sum = burn_add(z[bad - 1], z[bad % 6]);
        check_elsewhere(z[bad - 1], BURN_E_INTERNAL, "exp");
        for (int i = 0; i < 6; i++) {
            if (i == bad - 1) {
                check_read_fails(z[i], BURN_E_INTERNAL, "exp", "injected", NULL);
            } else {
                CHECK(z[i], 2, 2, 2, 2);
            }
        }
        check_read_fails(sum, BURN_E_INTERNAL, "exp", NULL);
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_sync(dev, &err), BURN_E_INTERNAL);
        check_clean();
        burn_scope_end();
    }
}

static burn_tensor *gather_three(int64_t index)
{
    return burn_gather(VEC(0, 10, 20), index_vec(3, DIMS(0, index, 0)), 0);
}

/* A gather's result, whose word nobody has looked at, gives its memory to what is made of it. */
static burn_tensor *exp_in_place(int64_t index)
{
    return burn_exp(burn_move(gather_three(index)));
}

static void lend_memory(void)
{
    burn_scope_begin();
    burn_tensor *bad = exp_in_place(3);
    burn_tensor *sum = burn_add(bad, burn_scalar(1.0));
    check_read_fails(sum, BURN_E_DATA, "gather", "index 3", "position 1", NULL);
    check_read_fails(bad, BURN_E_DATA, "gather", "index 3", NULL);
    burn_tensor *good = exp_in_place(0);
    CHECK(burn_add(good, burn_scalar(1.0)), 2, 2, 2);
    assert_int_equal(inject_shared(), 2);
    /* A launch that fails has taken nothing from anybody. */
    inject_fail(INJECT_LAUNCH, 1, 0, BURN_E_INTERNAL);
    check_read_fails(exp_in_place(0), BURN_E_INTERNAL, "exp", "injected", NULL);
    CHECK(exp_in_place(0), 1, 1, 1);
    CHECK(good, 1, 1, 1);
    assert_int_equal(inject_shared(), 4);
    burn_scope_end();
}

static void test_memory_is_lent_while_a_fault_is_open(void **state)
{
    (void)state;
    if (!on_mock) {
        skip(); /* its calls end before they return */
    }
    uint64_t before = in_use();
    for (int round = 0; round < 4; round++) {
        assert_true(inject_in_place(dev, BURN_OP_EXP));
        inject_forget_rows(dev);
        lend_memory();
        burn_err err = BURN_ERR_INIT;
        assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
        assert_non_null(strstr(err.text, "index 3"));
        check_clean();
        assert_int_equal(in_use(), before);
    }
}

/* A failed update fails the variable until it is assigned; meanwhile no file is written. */
static void test_a_variable_whose_update_failed(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    char path[] = "/tmp/burn_faults_XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    (void)close(file);
    burn_module *root = burn_module_create(ad, &err);
    burn_var *w = burn_module_add(root, "w", VEC(1, 2, 3), 1, &err);
    assert_non_null(w);
    burn_tensor *old = burn_var_get(w);
    assert_true(inject_rows(dev, BURN_OP_ASSIGN));
    inject_fail(INJECT_LAUNCH, 1, 0, BURN_E_INTERNAL);
    assert_int_equal(burn_var_assign(w, VEC(4, 5, 6), &err), BURN_OK);
    check_read_fails(burn_var_get(w), BURN_E_INTERNAL, "assign", NULL);
    CHECK(old, 1, 2, 3);
    inject_fail(INJECT_LAUNCH, 1, 0, BURN_E_IO); /* the first cause is kept */
    assert_int_equal(burn_var_assign(w, VEC(4, 5, 6), &err), BURN_OK);
    check_read_fails(burn_var_get(w), BURN_E_INTERNAL, "assign", NULL);
    assert_int_equal(burn_save(root, path, NULL, &err), BURN_E_INTERNAL);
    assert_non_null(strstr(err.text, "assign"));
    burn_var *const vars[4] = {w, NULL, NULL, NULL};
    burn_tensor *const in[4] = {NULL, VEC(1, 1, 1), NULL, burn_scalar(1.0)};
    burn_attrs_sgd a;
    burn_attrs_init(&a, sizeof(a));
    (void)burn_var_update(BURN_OP_SGD_STEP, &a, sizeof(a), vars, in, 4, &err);
    check_read_fails(burn_var_get(w), BURN_E_INTERNAL, "assign", NULL);
    err = (burn_err)BURN_ERR_INIT;
    assert_int_equal(burn_var_assign(w, VEC(7, 8, 9), &err), BURN_OK);
    CHECK(burn_var_get(w), 7, 8, 9);
    assert_int_equal(burn_save(root, path, NULL, &err), BURN_OK);
    burn_module_free(root);
    (void)unlink(path);
}

/* Each entry of the table fails at its n-th call during some work: an error or none, never a wrong
 * value, and afterwards the same work is right. */
static int work(int32_t *out_code)
{
    burn_err err = BURN_ERR_INIT;
    double values[4] = {0};
    burn_scope_begin();
    burn_tensor *x = VEC(1, 2, 3, 4);
    burn_tensor *y = burn_matmul(burn_reshape(x, 2, DIMS(2, 2)), burn_reshape(x, 2, DIMS(2, 2)));
    burn_tensor *index = index_vec(2, DIMS(1, 0));
    burn_tensor *z = burn_add(burn_select(y, index, 0), burn_exp(VEC(0, 0)));
    *out_code = burn_read_f64(z, values, 4, &err);
    burn_scope_end();
    int silent = *out_code != BURN_OK && err.text[0] == '\0';
    int wrong = *out_code == BURN_OK &&
                (values[0] != 16 || values[1] != 23 || values[2] != 8 || values[3] != 11);
    return !silent && !wrong;
}

static void test_every_entry_fails_in_turn(void **state)
{
    (void)state;
    static const int entries[] = {INJECT_COPY_IN, INJECT_COPY_OUT, INJECT_FILL, INJECT_SIGNAL,
                                  INJECT_WAIT};
    int32_t code = 0;
    burn_scope_flush();
    assert_true(work(&code));
    assert_int_equal(code, BURN_OK);
    uint64_t before = in_use();
    uint32_t failed = 0;
    for (size_t k = 0; k < COUNT(entries); k++) {
        for (int64_t n = 1; n < 30; n++) {
            inject_fail(entries[k], n, 0, BURN_E_IO);
            if (!work(&code)) {
                fail_msg("entry %d, call %lld: wrong or without a text", entries[k], (long long)n);
            }
            failed += code != BURN_OK;
            inject_fail(entries[k], 0, 0, BURN_OK);
            (void)burn_sync(dev, NULL);
            if (!work(&code) || code != BURN_OK) {
                fail_msg("entry %d, call %lld: the next work fails", entries[k], (long long)n);
            }
            (void)burn_sync(dev, NULL);
            assert_int_equal(in_use(), before);
        }
    }
    assert_true(!on_mock || failed > 3);
}

/* What was found before words could not be read any more is told. */
static void test_sync_tells_what_it_found_before_it_failed(void **state)
{
    (void)state;
    if (!on_mock) {
        skip(); /* no words */
    }
    for (int round = 0; round < 4; round++) {
        burn_err err = BURN_ERR_INIT;
        burn_scope_begin();
        burn_tensor *bad = burn_keep(gather_three(9));
        burn_tensor *good = burn_keep(gather_three(1));
        inject_fail(INJECT_COPY_OUT, 2, 0, BURN_E_IO);
        assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
        assert_non_null(strstr(err.text, "index 9"));
        inject_fail(INJECT_COPY_OUT, 0, 0, BURN_OK);
        CHECK(good, 0, 10, 0);
        check_read_fails(bad, BURN_E_DATA, "index 9", NULL);
        burn_release(bad);
        burn_release(good);
        burn_scope_end();
        check_clean();
    }
}

/* ---- a lost device --------------------------------------------------------------------------- */

static void *work_until_lost(void *arg)
{
    reader *r = arg;
    r->rc = BURN_OK;
    for (int i = 0; i < 400 && r->rc == BURN_OK; i++) {
        double values[4];
        burn_scope_begin();
        burn_tensor *x = burn_full(burn_device_of(r->t), BURN_F32, 1, DIMS(4), burn_scalar(i));
        r->rc = burn_read_f64(burn_add(burn_exp(x), r->t), values, 4, &r->err);
        burn_scope_end();
    }
    return NULL;
}

/* A failure that somebody has seen stays what it is when the device is lost, and is told first;
 * what comes later is told of the loss. Lost for a while only, so that others can go on. */
static void test_a_failure_and_a_lost_device(void **state)
{
    (void)state;
    if (!on_mock) {
        skip();
    }
    burn_err err = BURN_ERR_INIT;
    burn_tensor *bad = burn_keep(gather_three(9));
    burn_tensor *more = burn_keep(burn_add(bad, burn_scalar(1.0)));
    check_read_fails(bad, BURN_E_DATA, "index 9", NULL);
    inject_fail(INJECT_WAIT, 1, INT32_MAX, BURN_E_DEVICE_LOST);
    inject_fail(INJECT_SIGNAL, 1, INT32_MAX, BURN_E_DEVICE_LOST);
    inject_fail(INJECT_COPY_OUT, 1, INT32_MAX, BURN_E_DEVICE_LOST);
    burn_tensor *late = burn_keep(burn_mul(VEC(1, 2), VEC(3, 4)));
    assert_int_equal(burn_sync(dev, &err), BURN_E_DATA);
    assert_non_null(strstr(err.text, "index 9"));
    for (int twice = 0; twice < 2; twice++) {
        check_read_fails(bad, BURN_E_DATA, "index 9", NULL);
        check_read_fails(late, BURN_E_DEVICE_LOST, "injected", NULL);
    }
    for (int entry = 0; entry < N_INJECT; entry++) {
        inject_fail(entry, 0, 0, BURN_OK);
    }
    check_read_fails(more, BURN_E_DATA, "index 9", NULL);
    check_read_fails(late, BURN_E_DEVICE_LOST, "injected", NULL);
    CHECK(burn_mul(VEC(1, 2), VEC(3, 4)), 3, 8);
    burn_release(bad);
    burn_release(more);
    burn_release(late);
    (void)burn_sync(dev, NULL);
}

/* Lost while two threads work on it: both are told, later calls and a second opening too, the other
 * device goes on. */
static void test_a_device_is_lost_under_two_threads(void **state)
{
    (void)state;
    if (!on_mock) {
        skip();
    }
    burn_err err = BURN_ERR_INIT;
    burn_device *second = burn_device_open("mock:1?lose_after=150", &err);
    if (second == NULL) {
        fail_msg("%s", err.text);
    }
    burn_tensor *shared = burn_keep(burn_full(second, BURN_F32, 1, DIMS(4), burn_scalar(1.0)));
    burn_var *v = burn_var_create(second, shared, &err);
    reader readers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        readers[i] = (reader){shared, 0, BURN_ERR_INIT};
        assert_int_equal(pthread_create(&threads[i], NULL, work_until_lost, &readers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(readers[i].rc, BURN_E_DEVICE_LOST);
        assert_non_null(strstr(readers[i].err.text, "lost"));
    }
    burn_tensor *x = burn_full(second, BURN_F32, 1, DIMS(4), burn_scalar(1.0));
    check_read_fails(x, BURN_E_DEVICE_LOST, "lost", NULL);
    if (burn_var_assign(v, x, &err) == BURN_OK) {
        check_read_fails(burn_var_get(v), BURN_E_DEVICE_LOST, "lost", NULL);
    }
    err = (burn_err)BURN_ERR_INIT;
    burn_device *again = burn_device_open("mock:1", &err);
    if (again != NULL) {
        x = burn_full(again, BURN_F32, 1, DIMS(4), burn_scalar(1.0));
        check_read_fails(x, BURN_E_DEVICE_LOST, "lost", NULL);
    } else {
        assert_int_equal(err.code, BURN_E_DEVICE_LOST);
    }
    CHECK(burn_add(VEC(1, 2), VEC(3, 4)), 4, 6);
    burn_release(shared);
    burn_var_release(v);
    burn_memory_trim(second);
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_a_refusal_takes_the_decomposition),
        FAULT_TEST(test_a_group_that_is_refused),
        FAULT_TEST(test_a_refusal_keeps_mode_and_place),
        FAULT_TEST(test_modes_and_ranks_have_rows_of_their_own),
        FAULT_TEST(test_a_refused_update),
        FAULT_TEST(test_a_refusal_without_a_way_round),
        FAULT_TEST(test_exactly_the_dependents_fail),
        FAULT_TEST(test_memory_is_lent_while_a_fault_is_open),
        FAULT_TEST(test_a_variable_whose_update_failed),
        FAULT_TEST(test_every_entry_fails_in_turn),
        FAULT_TEST(test_sync_tells_what_it_found_before_it_failed),
        FAULT_TEST(test_a_failure_and_a_lost_device),
        FAULT_TEST(test_a_device_is_lost_under_two_threads),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
