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
        cmocka_unit_test(each_element_counts),
        cmocka_unit_test(shapes_and_dtypes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
