/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_conformance.c - what the conformance tool counts as equal: tolerances, NaN, infinities,
 * integers, shapes and dtypes.
 *
 * A comparison that lets something pass makes every other check worthless, and no run on a healthy
 * backend would show it. No core and no device: the tool's own files. To add a rule: what it lets
 * pass, and the nearest thing that it does not.
 */
#include "conformance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static conf_arena arena;

static conf_value value_of(uint8_t dtype, uint8_t rank, const int64_t *dims, const double *numbers)
{
    conf_value v;
    memset(&v, 0, sizeof(v));
    v.meta.kind = BURN_TENSOR;
    v.meta.dtype = dtype;
    v.meta.rank = rank;
    memcpy(v.meta.dims, dims, rank * sizeof(dims[0]));
    conf_value_alloc(&arena, &v);
    for (uint64_t k = 0; k < v.n; k++) {
        conf_set(&v, k, numbers[k]);
    }
    return v;
}

static int differ(const conf_value *got, const conf_value *expected, double tolerance,
                  const char *part)
{
    char text[300] = "";
    int equal = conf_compare(got, expected, tolerance, text, sizeof(text));
    if (!equal && strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, text);
    }
    return !equal;
}

static void nan_equals_nothing_but_nan(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F32, BURN_F64};
    for (size_t i = 0; i < sizeof(dtypes); i++) {
        const double others[] = {0.0, 1.0, -1.0, (double)INFINITY, -(double)INFINITY};
        assert_true(conf_close((double)NAN, (double)NAN, 0.0, dtypes[i], 0.0));
        assert_true(conf_close(-(double)NAN, (double)NAN, 0.0, dtypes[i], 0.0));
        for (size_t k = 0; k < 5; k++) {
            assert_false(conf_close((double)NAN, others[k], 1e9, dtypes[i], 1e9));
            assert_false(conf_close(others[k], (double)NAN, 1e9, dtypes[i], 1e9));
        }
    }
}

static void infinities_equal_themselves(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    assert_true(conf_close(inf, inf, 0.0, BURN_F32, 0.0));
    assert_true(conf_close(-inf, -inf, 0.0, BURN_F32, 0.0));
    assert_false(conf_close(inf, -inf, 1e9, BURN_F32, 1e9));
    assert_false(conf_close(inf, 3e38, 1e9, BURN_F32, 1e9));
    assert_false(conf_close(3e38, inf, 1e9, BURN_F32, 1e9));
    assert_true(conf_close(-0.0, 0.0, 0.0, BURN_F32, 0.0));
}

/* So many epsilons of the larger of 1 and what was expected, and not one more. */
static void tolerances_end_where_they_say(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F32, BURN_F64};
    static const double epsilons[] = {0x1p-10, 0x1p-7, 0x1p-23, 0x1p-52};
    for (size_t i = 0; i < sizeof(dtypes); i++) {
        const double e = epsilons[i];
        assert_true(burn_epsilon(dtypes[i]) == e);
        assert_true(conf_close(1.0 + 2.0 * e, 1.0, 2.0, dtypes[i], 0.0));
        assert_false(conf_close(1.0 + 3.0 * e, 1.0, 2.0, dtypes[i], 0.0));
        assert_false(conf_close(1.0 - 3.0 * e, 1.0, 2.0, dtypes[i], 0.0));
        assert_true(conf_close(64.0 + 128.0 * e, 64.0, 2.0, dtypes[i], 0.0));
        assert_false(conf_close(64.0 + 192.0 * e, 64.0, 2.0, dtypes[i], 0.0));
        assert_true(conf_close(2.0 * e, 0.0, 2.0, dtypes[i], 0.0));
        assert_false(conf_close(1.0 + e, 1.0, 0.0, dtypes[i], 0.0));
        assert_true(conf_close(1.0 + e, 1.0, 0.0, dtypes[i], e));
    }
}

/* Does `got` pass for output 0 of an op with that fuse class, of a sample with these flags? */
static int passes(double got, double expected, uint8_t dtype, uint32_t fuse, uint32_t flags,
                  double tolerance)
{
    static conf_case c; /* large */
    const int64_t none = 0;
    burn_op_def def;
    char text[300];
    memset(&c, 0, sizeof(c));
    memset(&def, 0, sizeof(def));
    def.fuse = fuse;
    c.def = &def;
    c.sample.flags = flags;
    c.sample.tolerance = tolerance;
    c.out[0] = value_of(dtype, 0, &none, &expected);
    conf_value value = value_of(dtype, 0, &none, &got);
    int same = conf_compare_output(&c, 0, &value, 1.0, text, sizeof(text));
    conf_arena_free(&arena);
    return same;
}

/* Pointwise ops down to the smallest normal number, others to 1. */
static void pointwise_ops_are_held_to_a_relative_error(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F32, BURN_F64};
    static const double normals[] = {0x1p-14, 0x1p-126, 0x1p-126, 0x1p-1022};
    for (size_t i = 0; i < sizeof(dtypes); i++) {
        const double e = burn_epsilon(dtypes[i]);
        const double places[] = {1.0, 0x1p-9, normals[i]};
        const uint8_t d = dtypes[i];
        const uint32_t one = BURN_FUSE_POINTWISE;
        for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
            const double p = places[k];
            assert_true(passes(p * (1.0 + 2.0 * e), p, d, one, 0, 2.0));
            assert_false(passes(p * (1.0 + 3.0 * e), p, d, one, 0, 2.0));
            assert_true(passes(p * (1.0 + 2.0 * e), p, d, BURN_FUSE_NONE, 0, 2.0));
            int large = k == 0;
            assert_int_equal(passes(p * (1.0 + 3.0 * e), p, d, BURN_FUSE_NONE, 0, 2.0), !large);
            assert_int_equal(passes(p * (1.0 + 3.0 * e), p, d, one, BURN_SAMPLE_ABSOLUTE, 2.0),
                             !large);
        }
        assert_false(passes(0.0, 0.5 * normals[i], d, one, 0, 2.0));
        assert_true(passes(0.0, 2.0 * e * normals[i], d, one, 0, 2.0));
    }
}

/* The mean of many numbers is near 0: it is held to its own size, not to that of 1. */
static void large_results_are_measured_by_the_largest(void **state)
{
    (void)state;
    static conf_case c; /* large */
    const int64_t dims[1] = {3};
    burn_op_def def;
    char text[300];
    memset(&c, 0, sizeof(c));
    memset(&def, 0, sizeof(def));
    c.def = &def;
    c.sample.tolerance = 2.0;
    const double e = burn_epsilon(BURN_F32);
    const double expected[3] = {0x1p-10, -0x1p-12, (double)INFINITY};
    double near[3] = {0x1p-10 * (1.0 + 4.0 * e), -0x1p-12 + 0x1p-10 * 4.0 * e, (double)INFINITY};
    c.out[0] = value_of(BURN_F32, 1, dims, expected);
    conf_value got = value_of(BURN_F32, 1, dims, near);
    assert_true(conf_compare_large(&c, 0, &got, 2.0, text, sizeof(text)));
    assert_false(conf_compare_large(&c, 0, &got, 1.0, text, sizeof(text)));
    near[1] = -0x1p-12 + 0x1p-10 * 5.0 * e;
    conf_value far = value_of(BURN_F32, 1, dims, near);
    assert_false(conf_compare_large(&c, 0, &far, 2.0, text, sizeof(text)));
    assert_true(conf_compare_output(&c, 0, &far, 1.0, text, sizeof(text)));
    conf_arena_free(&arena);
}

/* Where the op is pointwise or the result exact, unless the sample leaves it open. */
static void zeros_have_signs(void **state)
{
    (void)state;
    const uint32_t one = BURN_FUSE_POINTWISE;
    const uint32_t any = BURN_SAMPLE_ANY_ZERO;
    assert_false(passes(0.0, -0.0, BURN_F32, one, 0, 4.0));
    assert_false(passes(-0.0, 0.0, BURN_F32, one, 0, 0.0));
    assert_false(passes(0.0, -0.0, BURN_F32, one, BURN_SAMPLE_ABSOLUTE, 4.0));
    assert_false(passes(0.0, -0.0, BURN_F32, BURN_FUSE_NONE, 0, 0.0));
    assert_true(passes(0.0, -0.0, BURN_F32, BURN_FUSE_NONE, 0, 4.0));
    assert_true(passes(0.0, -0.0, BURN_F32, one, any, 4.0));
    assert_true(passes(0.0, -0.0, BURN_F32, BURN_FUSE_NONE, any, 0.0));
    assert_true(passes(-0.0, -0.0, BURN_F32, one, 0, 0.0));
}

/* Wherever the one that differs is. */
static void each_element_counts(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_I32, BURN_U8, BURN_BOOL};
    const int64_t dims[1] = {5};
    const double ones[5] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < sizeof(dtypes); i++) {
        conf_value expected = value_of(dtypes[i], 1, dims, ones);
        for (uint64_t k = 0; k < 5; k++) {
            conf_value got = value_of(dtypes[i], 1, dims, ones);
            assert_false(differ(&got, &expected, 0.0, ""));
            conf_set(&got, k, 0.0);
            char element[32];
            (void)snprintf(element, sizeof(element), "element %llu is 0, expected 1",
                           (unsigned long long)k);
            assert_true(differ(&got, &expected, 8.0, element));
        }
    }
    const double large[1] = {9007199254740992.0};
    conf_value a = value_of(BURN_I64, 1, (int64_t[]){1}, large);
    conf_value b = value_of(BURN_I64, 1, (int64_t[]){1}, large);
    a.i[0]++;
    assert_true(differ(&a, &b, 1e9, "9007199254740993"));
    conf_arena_free(&arena);
}

static void shapes_and_dtypes_count(void **state)
{
    (void)state;
    const double numbers[6] = {1, 1, 1, 1, 1, 1};
    conf_value x = value_of(BURN_F32, 2, (int64_t[]){2, 3}, numbers);
    conf_value turned = value_of(BURN_F32, 2, (int64_t[]){3, 2}, numbers);
    conf_value flat = value_of(BURN_F32, 1, (int64_t[]){6}, numbers);
    conf_value wide = value_of(BURN_F64, 2, (int64_t[]){2, 3}, numbers);
    assert_true(differ(&turned, &x, 0.0, "is f32[3,2], expected f32[2,3]"));
    assert_true(differ(&flat, &x, 0.0, "is f32[6], expected f32[2,3]"));
    assert_true(differ(&wide, &x, 0.0, "is f64[2,3], expected f32[2,3]"));
    conf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_equals_nothing_but_nan),
        cmocka_unit_test(infinities_equal_themselves),
        cmocka_unit_test(tolerances_end_where_they_say),
        cmocka_unit_test(pointwise_ops_are_held_to_a_relative_error),
        cmocka_unit_test(large_results_are_measured_by_the_largest),
        cmocka_unit_test(zeros_have_signs),
        cmocka_unit_test(each_element_counts),
        cmocka_unit_test(shapes_and_dtypes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
