/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_nn.c - matmul, linear, convolution and pooling of the CPU plugin against plain loops.
 *
 * Each check runs with one and with two threads and wants equal bits. References sum in f64. Shapes
 * lie around tile and block borders. Names carry the ids of the reported faults that they guard.
 */
#include "nn_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const burn_plugin *plugins[2];

static const char *plugin_path(void)
{
    const char *path = getenv("BURN_TEST_FLEX");
    return path != NULL ? path : "flex.so";
}

static int load(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        plugins[i] = rig_plugin(plugin_path(), i + 1);
        if (plugins[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Runs with one thread, then with two into a second output; both must have equal bits. */
static void run_both(rig_call *c)
{
    burn_err err = BURN_ERR_INIT;
    int32_t code = rig_run(plugins[0], c, &err);
    if (code != BURN_OK) {
        print_message("op %d: %s\n", (int)c->op, err.text);
    }
    assert_int_equal(code, BURN_OK);
    for (uint32_t i = 0; i < c->n_out; i++) {
        rig_tensor *first = c->out[i];
        rig_call again = *c;
        rig_tensor spare[RIG_MAX];
        for (uint32_t j = 0; j < c->n_out; j++) {
            spare[j] = rig_new(c->out[j]->dtype, c->out[j]->rank, c->out[j]->dims);
            again.out[j] = &spare[j];
        }
        assert_int_equal(rig_run(plugins[1], &again, &err), BURN_OK);
        int64_t n = rig_numel(first);
        for (int64_t k = 0; k < n; k++) {
            double a = rig_at(first, k);
            double b = rig_at(&spare[i], k);
            if (memcmp(&a, &b, sizeof(a)) != 0) {
                fail_msg("op %d output %u: element %lld is %a with 1 thread, %a with 2",
                         (int)c->op, i, (long long)k, a, b);
            }
        }
        for (uint32_t j = 0; j < c->n_out; j++) {
            rig_free(&spare[j]);
        }
    }
}

static void close_to(double got, double want, double tolerance, const char *what, int64_t at)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= tolerance)) {
        fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)at, got, want);
    }
}

static double dot(const rig_tensor *x, const rig_tensor *y, int64_t i, int64_t j)
{
    int64_t k = x->dims[1];
    int64_t n = y->dims[1];
    double sum = 0;
    for (int64_t t = 0; t < k; t++) {
        sum += rig_at(x, i * k + t) * rig_at(y, t * n + j);
    }
    return sum;
}

/* m x k by k x n, each operand also transposed; checks a sample of the elements. */
static void check_matmul(uint8_t dtype, int64_t m, int64_t k, int64_t n, int ta, int tb,
                         double tolerance)
{
    rig_tensor xs = rig_random(dtype, 2, (int64_t[]){ta ? k : m, ta ? m : k}, 1);
    rig_tensor ys = rig_random(dtype, 2, (int64_t[]){tb ? n : k, tb ? k : n}, 2);
    rig_tensor x = ta ? rig_swapped(&xs, 0, 1) : xs;
    rig_tensor y = tb ? rig_swapped(&ys, 0, 1) : ys;
    rig_tensor z = rig_new(dtype, 2, (int64_t[]){m, n});
    rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
    run_both(&c);
    int64_t total = m * n;
    int64_t step = total > 4000 ? total / 1999 : 1;
    for (int64_t p = 0; p < total; p += step) {
        close_to(rig_at(&z, p), dot(&x, &y, p / n, p % n), tolerance, "matmul", p);
    }
    rig_free(&xs);
    rig_free(&ys);
    rig_free(&z);
}

static void test_matmul_f32_shapes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 63, 64, 65, 127, 129};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t a = 0; a < N; a++) {
        for (uint32_t b = 0; b < N; b++) {
            for (uint32_t c = 0; c < N; c += 2) {
                int flips = (int)(a + b + c) % 4;
                check_matmul(BURN_F32, sizes[a], sizes[b], sizes[c], flips & 1, flips >> 1, 1e-4);
            }
        }
    }
}

static void test_matmul_f32_large(void **state)
{
    (void)state;
    for (int flips = 0; flips < 4; flips++) {
        check_matmul(BURN_F32, 513, 300, 257, flips & 1, flips >> 1, 1e-3);
        check_matmul(BURN_F32, 130, 1030, 270, flips & 1, flips >> 1, 1e-3);
    }
    check_matmul(BURN_F32, 5, 1200, 700, 0, 0, 1e-3);
    check_matmul(BURN_F32, 900, 600, 3, 0, 1, 1e-3);
    check_matmul(BURN_F32, 3000, 70, 130, 0, 0, 1e-3);
}

static void test_matmul_other_dtypes(void **state)
{
    (void)state;
    static const uint8_t exact[] = {BURN_U8, BURN_I8,  BURN_U16, BURN_I16,
                                    BURN_U32, BURN_I32, BURN_U64, BURN_I64};
    check_matmul(BURN_F64, 65, 33, 70, 0, 1, 1e-12);
    check_matmul(BURN_F16, 33, 20, 17, 1, 0, 1e-2);
    check_matmul(BURN_BF16, 33, 20, 17, 0, 1, 1e-1);
    check_matmul(BURN_I32, 33, 20, 17, 1, 1, 0);
    check_matmul(BURN_I64, 33, 20, 17, 0, 0, 0);
    for (uint32_t i = 0; i < sizeof(exact); i++) { /* 200 * 2 + 100 wraps in 8 bits */
        rig_tensor x = rig_new(exact[i], 2, (int64_t[]){1, 2});
        rig_tensor y = rig_new(exact[i], 2, (int64_t[]){2, 1});
        rig_tensor z = rig_new(exact[i], 2, (int64_t[]){1, 1});
        rig_set(&x, 0, 100);
        rig_set(&x, 1, 100);
        rig_set(&y, 0, 4);
        rig_set(&y, 1, 1);
        rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
        run_both(&c);
        double want = exact[i] == BURN_U8 ? 244 : exact[i] == BURN_I8 ? -12 : 500;
        assert_true(rig_at(&z, 0) == want);
        rig_free(&x);
        rig_free(&y);
        rig_free(&z);
    }
}

static void check_batch(int64_t b1, int64_t b2, int y_batched, int64_t m, int64_t k, int64_t n)
{
    rig_tensor x = rig_random(BURN_F32, 4, (int64_t[]){b1, b2, m, k}, 3);
    rig_tensor y = rig_random(BURN_F32, 3, (int64_t[]){y_batched ? b2 : 1, k, n}, 4);
    rig_tensor z = rig_new(BURN_F32, 4, (int64_t[]){b1, b2, m, n});
    rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
    run_both(&c);
    for (int64_t p = 0; p < rig_numel(&z); p += 7) {
        int64_t j = p % n;
        int64_t row = p / n;
        int64_t item = row / m % b2;
        double sum = 0;
        for (int64_t t = 0; t < k; t++) {
            sum += rig_at(&x, row * k + t) * rig_at(&y, ((y_batched ? item : 0) * k + t) * n + j);
        }
        close_to(rig_at(&z, p), sum, 1e-4, "batched matmul", p);
    }
    rig_free(&x);
    rig_free(&y);
    rig_free(&z);
}

static void test_matmul_batches(void **state)
{
    (void)state;
    check_batch(2, 3, 1, 17, 9, 33);
    check_batch(2, 3, 0, 17, 9, 33);
    check_batch(1, 5, 1, 1, 64, 65);
    check_batch(2, 8, 1, 70, 130, 66);
    check_batch(1, 2, 1, 300, 200, 100);
    check_batch(3, 1, 1, 40, 40, 40);
}

/* B084: C is never read, nor a bias that is not there; empty sums are 0. */
static void test_b084_output_is_not_read(void **state)
{
    (void)state;
    check_matmul(BURN_F32, 1, 1, 1, 0, 0, 1e-7);
    check_matmul(BURN_F32, 300, 0, 40, 0, 0, 0);
    rig_tensor x = rig_values(2, (int64_t[]){1, 1}, (float[]){1});
    rig_tensor bias = rig_absent();
    rig_tensor z = rig_new(BURN_F32, 2, (int64_t[]){1, 1});
    rig_call c = {.op = BURN_OP_LINEAR, .in = {&x, &x, &bias}, .out = {&z}, .n_in = 3, .n_out = 1};
    run_both(&c);
    assert_true(rig_at(&z, 0) == 1.0);
    rig_free(&x);
    rig_free(&z);
}

static void check_linear(uint8_t dtype, int64_t m, int64_t k, int64_t n, double tolerance)
{
    rig_tensor x = rig_random(dtype, 3, (int64_t[]){2, m, k}, 5);
    rig_tensor w = rig_random(dtype, 2, (int64_t[]){k, n}, 6);
    rig_tensor bias = rig_random(dtype, 1, (int64_t[]){n}, 7);
    rig_tensor z = rig_new(dtype, 3, (int64_t[]){2, m, n});
    rig_call c = {.op = BURN_OP_LINEAR, .in = {&x, &w, &bias}, .out = {&z}, .n_in = 3, .n_out = 1};
    run_both(&c);
    rig_tensor flat = x;
    flat.rank = 2;
    flat.dims[0] = 2 * m;
    flat.dims[1] = k;
    flat.strides[0] = k;
    flat.strides[1] = 1;
    for (int64_t p = 0; p < rig_numel(&z); p += 5) {
        double want = dot(&flat, &w, p / n, p % n) + rig_at(&bias, p % n);
        close_to(rig_at(&z, p), want, tolerance, "linear", p);
    }
    rig_free(&x);
    rig_free(&w);
    rig_free(&bias);
    rig_free(&z);
}

static void test_linear(void **state)
{
    (void)state;
    check_linear(BURN_F32, 5, 17, 33, 1e-5);
    check_linear(BURN_F32, 64, 784, 513, 1e-3);
    check_linear(BURN_F32, 300, 600, 10, 1e-3);
    check_linear(BURN_F64, 5, 17, 33, 1e-12);
    check_linear(BURN_BF16, 5, 17, 33, 1e-1);
    check_linear(BURN_F16, 5, 17, 33, 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_f32_shapes),
        cmocka_unit_test(test_matmul_f32_large),
        cmocka_unit_test(test_matmul_other_dtypes),
        cmocka_unit_test(test_matmul_batches),
        cmocka_unit_test(test_b084_output_is_not_read),
        cmocka_unit_test(test_linear),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
