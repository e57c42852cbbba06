/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_import.c - the ops that a reader of ONNX files writes its operators with.
 *
 * Values are those that ONNX demands (B150, B152, B156, B164, B166), reached with ops that exist;
 * which defaults an opset has and how a negative index wraps is the reader's part. To add an
 * operator: a test that builds it from ops, with values from its specification.
 */
#include "core_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Softmax of ln(k) is k / sum: ln([[[1,2],[3,4]]]) over the last axis, over axis 1, over all. */
static void test_B150_softmax_by_axis(void **state)
{
    (void)state;
    burn_tensor *x = burn_log(count_up(dev, 3, DIMS(1, 2, 2), 1));
    CHECK_NEAR(burn_softmax(x, -1), 1e-6, 1.0 / 3, 2.0 / 3, 3.0 / 7, 4.0 / 7);
    CHECK_NEAR(burn_softmax(x, 1), 1e-6, 0.25, 1.0 / 3, 0.75, 2.0 / 3);
    CHECK_NEAR(burn_softmax(burn_flatten(x, 1, -1), 1), 1e-6, 0.1, 0.2, 0.3, 0.4);
    CHECK_NEAR(burn_log_softmax(x, -1), 1e-6, log(1.0 / 3), log(2.0 / 3), log(3.0 / 7),
               log(4.0 / 7));
    CHECK_NEAR(burn_log_softmax(x, 1), 1e-6, log(0.25), log(1.0 / 3), log(0.75), log(2.0 / 3));
    CHECK_NEAR(burn_log_softmax(burn_flatten(x, 1, -1), 1), 1e-6, log(0.1), log(0.2), log(0.3),
               log(0.4));
}

/* Bounds of slices clamp, however large; indices do not, and say which one is wrong. */
static void test_B152_bounds_and_indices(void **state)
{
    (void)state;
    burn_tensor *x = VEC(10, 20, 30);
    CHECK(burn_slice(x, 0, 1, INT64_MAX, 1), 20, 30);
    CHECK(burn_slice(x, 0, -INT64_MAX, INT64_MAX, 2), 10, 30);
    CHECK(burn_slice(x, -1, INT64_MAX, BURN_SLICE_NONE, -1), 30, 20, 10);
    CHECK(burn_slice(x, 0, -1, -INT64_MAX, -2), 30, 10);
    CHECK(burn_slice(x, 0, 0, INT64_MAX, INT64_MAX), 10);
    CHECK(burn_slice(x, 0, 2, -INT64_MAX, -INT64_MAX), 30);
    check_shape(burn_slice(x, 0, INT64_MAX, INT64_MAX, 1), 1, DIMS(0));
    CHECK(burn_gather(x, index_vec(2, DIMS(2, 0)), 0), 30, 10);
    static const int64_t bad[] = {3, -1, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char index[32];
        (void)snprintf(index, sizeof(index), "index %lld", (long long)bad[i]);
        burn_tensor *at = index_vec(2, DIMS(1, bad[i]));
        check_read_fails(burn_gather(x, at, 0), BURN_E_DATA, "gather", index, "position 1", NULL);
        /* Where select is made of gather, gather tells. */
        check_read_fails(burn_select(x, at, 0), BURN_E_DATA, index, "position 1", NULL);
    }
    CHECK(burn_select(x, index_vec(1, DIMS(2)), 0), 30);
}

/* CumSum's attributes: reverse is a flip before and after, exclusive a zero put in front. */
static void test_B156_cumsum_exclusive_and_reverse(void **state)
{
    (void)state;
    if (on_mock) {
        return; /* has no cumsum: not a minimal op */
    }
    burn_tensor *x = mat(2, 3, (const float[]){1, 2, 3, 10, 20, 30});
    burn_tensor *r = burn_flip(x, 1, DIMS(1));
    burn_tensor *zero = burn_scalar(0.0);
    burn_tensor *shifted = burn_slice(burn_pad(x, DIMS(0, 1), DIMS(0, 0), zero), 1, 0, 3, 1);
    burn_tensor *back = burn_slice(burn_pad(r, DIMS(0, 1), DIMS(0, 0), zero), 1, 0, 3, 1);
    CHECK(burn_cumsum(x, -1), 1, 3, 6, 10, 30, 60);
    CHECK(burn_cumsum(shifted, -1), 0, 1, 3, 0, 10, 30);
    CHECK(burn_flip(burn_cumsum(r, 1), 1, DIMS(1)), 6, 5, 3, 60, 50, 30);
    CHECK(burn_flip(burn_cumsum(back, 1), 1, DIMS(1)), 5, 3, 0, 50, 30, 0);
    CHECK(burn_cumsum(x, -2), 1, 2, 3, 11, 22, 33);
}

static void check_text(burn_tensor *t, const char *want)
{
    char text[128];
    (void)burn_tensor_text(t, text, sizeof(text));
    assert_string_equal(text, want);
}

/* inf, -inf and NaN as constants, as operands, as text, and in a captured graph. */
static void test_B164_constants_that_are_not_finite(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    const double nan = (double)NAN;
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F32, BURN_F64};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        CHECK(burn_full(dev, dtypes[i], 1, DIMS(2), burn_scalar(inf)), inf, inf);
        CHECK(burn_full(dev, dtypes[i], 1, DIMS(2), burn_scalar(-inf)), -inf, -inf);
        CHECK(burn_full(dev, dtypes[i], 1, DIMS(2), burn_scalar(nan)), nan, nan);
    }
    burn_tensor *alone = burn_full(dev, BURN_F32, 0, NULL, burn_scalar(nan));
    check_shape(alone, 0, NULL);
    CHECK(alone, nan);
    CHECK(burn_pad(VEC(1), DIMS(1), DIMS(1), burn_scalar(-inf)), -inf, 1, -inf);
    CHECK(burn_maximum(VEC(1, 2), burn_scalar(-inf)), 1, 2);
    check_text(VEC(1, (float)INFINITY, -(float)INFINITY, (float)NAN), "f32[4] {1, inf, -inf, nan}");
    check_text(burn_cast(VEC((float)INFINITY, (float)NAN), BURN_F16), "f16[2] {inf, nan}");
    check_text(VEC(-(float)NAN, -0.0F), "f32[2] {nan, -0}");
    check_text(burn_full(dev, BURN_F64, 0, NULL, burn_scalar(-inf)), "f64[] -inf");
}

static void test_B164_constants_in_a_graph(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2, 3);
    assert_int_equal(burn_capture_begin(&err), BURN_OK);
    (void)burn_capture_input(x, "x");
    burn_tensor *cond = burn_greater(x, burn_scalar(1.5));
    burn_tensor *y = burn_where(cond, x, burn_full(dev, BURN_F32, 0, NULL, burn_scalar(-inf)));
    y = burn_add(y, VEC(0, (float)INFINITY, (float)NAN));
    burn_graph *graph = burn_capture_end(&y, 1, NULL, &err);
    if (graph == NULL) {
        fail_msg("%s", err.text);
    }
    burn_tensor *other = VEC(4, 5, 1);
    burn_tensor *out = NULL;
    assert_int_equal(burn_graph_run(graph, dev, &other, 1, NULL, NULL, &out, 1, &err), BURN_OK);
    CHECK(out, 4, inf, (double)NAN);
    burn_graph_free(graph);
}

/* Scatter with a reduction, both updates to one place. */
static void test_B166_scatter_modes_with_duplicates(void **state)
{
    (void)state;
    static const struct {
        uint32_t mode;
        double last;
    } cases[] = {
        {BURN_SCATTER_ASSIGN, 3}, {BURN_SCATTER_ADD, 6}, {BURN_SCATTER_MUL, 6},
        {BURN_SCATTER_MIN, 1},    {BURN_SCATTER_MAX, 3},
    };
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_I32, BURN_I64, BURN_F16};
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            if (burn_op_support(dev, BURN_OP_SCATTER, dtypes[d]) == BURN_SUPPORT_NONE) {
                continue;
            }
            burn_tensor *x = burn_cast(VEC(1, 1, 1), dtypes[d]);
            burn_tensor *v = burn_cast(VEC(2, 3), dtypes[d]);
            burn_tensor *at = index_vec(2, DIMS(2, 2));
            CHECK(burn_scatter(x, at, v, 0, cases[i].mode), 1, 1, cases[i].last);
            CHECK(x, 1, 1, 1);
        }
        burn_tensor *bad = index_vec(2, DIMS(0, -1));
        check_read_fails(burn_scatter(VEC(1, 1, 1), bad, VEC(2, 3), 0, cases[i].mode), BURN_E_DATA,
                         "scatter", "index -1", "position 1", NULL);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_B150_softmax_by_axis),
        CORE_TEST(test_B152_bounds_and_indices),
        CORE_TEST(test_B156_cumsum_exclusive_and_reverse),
        CORE_TEST(test_B164_constants_that_are_not_finite),
        CORE_TEST(test_B164_constants_in_a_graph),
        CORE_TEST(test_B166_scatter_modes_with_duplicates),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
