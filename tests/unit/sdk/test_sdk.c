/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_sdk.c - the header-only helpers: halves, Philox, elements, loops, negotiation, row tables.
 *
 * Halves are checked for all 65536 patterns, and rounding at each of their midpoints; Philox
 * against the vectors that its authors published. To test one more header: include it, add a test.
 */
#include <burn_sdk/element.h>
#include <burn_sdk/half.h>
#include <burn_sdk/loop.h>
#include <burn_sdk/philox.h>
#include <burn_sdk/plugin.h>
#include <burn_sdk/slots.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef float (*widen_fn)(uint16_t bits);
typedef uint16_t (*narrow_fn)(float value);

/* The value of a format's pattern, from its definition. */
static double defined_value(uint16_t bits, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) {
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    if (exponent == 0) {
        return sign * ldexp((double)mantissa, 1 - bias - mantissa_bits);
    }
    return sign * ldexp((double)(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
}

static void check_pattern(uint16_t bits, int exponent_bits, int mantissa_bits, widen_fn widen,
                          narrow_fn narrow)
{
    double value = defined_value(bits, exponent_bits, mantissa_bits);
    double got = (double)widen(bits);
    if (isnan(value)) {
        assert_true(isnan(got));
        assert_true(isnan((double)widen(narrow((float)got))));
        assert_int_equal(narrow((float)got) & 0x8000, bits & 0x8000);
        return;
    }
    assert_true(got == value && signbit(got) == signbit(value));
    assert_int_equal(narrow((float)got), bits);
}

/* The midpoint to the next larger pattern goes to the even one; its neighbours to their side. */
static void check_midpoint(uint16_t bits, int exponent_bits, int mantissa_bits, narrow_fn narrow)
{
    double low = defined_value(bits, exponent_bits, mantissa_bits);
    double high = defined_value((uint16_t)(bits + 1), exponent_bits, mantissa_bits);
    if (!isfinite(low) || isnan(high)) {
        return;
    }
    if (isinf(high)) {
        double below = defined_value((uint16_t)(bits - 1), exponent_bits, mantissa_bits);
        high = low + (low - below);
    }
    float middle = (float)((low + high) / 2.0);
    float outward = copysignf(INFINITY, (float)high);
    assert_int_equal(narrow(middle), (bits & 1) == 0 ? bits : bits + 1);
    assert_int_equal(narrow(nextafterf(middle, 0.0f)), bits);
    assert_int_equal(narrow(nextafterf(middle, outward)), bits + 1);
}

static void check_format(int exponent_bits, int mantissa_bits, widen_fn widen, narrow_fn narrow)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        check_pattern((uint16_t)bits, exponent_bits, mantissa_bits, widen, narrow);
        check_midpoint((uint16_t)bits, exponent_bits, mantissa_bits, narrow);
    }
}

static void test_half(void **state)
{
    (void)state;
    check_format(5, 10, burn_half_to_float, burn_float_to_half);
    assert_int_equal(burn_float_to_half(65520.0f), 0x7c00);
    assert_int_equal(burn_float_to_half(1e-10f), 0);
    assert_int_equal(burn_float_to_half(-1e30f), 0xfc00);
}

static void test_bfloat(void **state)
{
    (void)state;
    check_format(8, 7, burn_bfloat_to_float, burn_float_to_bfloat);
}

static void check_philox(const uint32_t *counter, const uint32_t *key, const uint32_t *expected)
{
    uint32_t out[4];
    burn_philox4x32(counter, key, out);
    for (int i = 0; i < 4; i++) {
        assert_true(out[i] == expected[i]);
    }
}

static void test_philox(void **state)
{
    (void)state;
    const uint32_t zeros[4] = {0};
    const uint32_t ones[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const uint32_t pi[6] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0};
    const uint32_t of_zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t of_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    const uint32_t of_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    uint32_t a[4];
    uint32_t b[4];
    check_philox(zeros, zeros, of_zeros);
    check_philox(ones, ones, of_ones);
    check_philox(pi, pi + 4, of_pi);
    const uint32_t counter[4] = {5, 7, 0, 0};
    const uint32_t key[2] = {1, 2};
    burn_philox4x32(counter, key, a);
    burn_philox(UINT64_C(2) << 32 | 1, UINT64_C(7) << 32 | 5, b);
    assert_memory_equal(a, b, sizeof(a));
    assert_true(burn_philox_uniform32(UINT32_MAX) < 1.0f);
    assert_true(burn_philox_uniform64(UINT64_MAX) < 1.0);
}

static void test_element(void **state)
{
    (void)state;
    unsigned char bytes[9];
    unsigned char *odd = bytes + 1; /* not aligned */
    burn_store_f64(odd, BURN_I8, -1000.0);
    assert_int_equal(burn_load_i64(odd, BURN_I8), -128);
    burn_store_f64(odd, BURN_I64, 1e30);
    assert_true(burn_load_i64(odd, BURN_I64) == INT64_MAX);
    burn_store_f64(odd, BURN_U64, -3.0);
    assert_true(burn_load_u64(odd, BURN_U64) == 0);
    burn_store_f64(odd, BURN_U16, (double)NAN);
    assert_int_equal(burn_load_u64(odd, BURN_U16), 0);
    burn_store_f64(odd, BURN_U32, 4294967295.9);
    assert_true(burn_load_u64(odd, BURN_U32) == UINT32_MAX);
    burn_store_i64(odd, BURN_I16, 65537);
    assert_int_equal(burn_load_i64(odd, BURN_I16), 1);
    burn_store_u64(odd, BURN_F64, UINT64_MAX);
    assert_true(burn_load_f64(odd, BURN_F64) == 18446744073709551616.0);
    assert_true(burn_element_low(BURN_I64) == INT64_MIN);
    assert_true(burn_element_high(BURN_I32) == INT32_MAX);
    assert_int_equal(burn_element_size(BURN_C128), 0);
    assert_string_equal(burn_element_name(BURN_BF16), "bf16");
}

/* B011: to bool, anything but zero is true; subnormals and NaN too, -0 not. */
static void test_bool_B011(void **state)
{
    (void)state;
    const float values[5] = {0.5f, 0.0f, -0.0f, NAN, 1e-45f};
    const int expected[5] = {1, 0, 0, 1, 1};
    for (int i = 0; i < 5; i++) {
        unsigned char out = 9;
        burn_element_cast(&out, BURN_BOOL, &values[i], BURN_F32);
        assert_int_equal(out, expected[i]);
    }
}

static void test_loop(void **state)
{
    (void)state;
    const int64_t dims[2] = {2, 3};
    const int64_t a[2] = {1, -2};
    const int64_t b[2] = {0, 1};
    const int64_t *strides[2] = {a, b};
    const int64_t offsets[6] = {0, -2, -4, 1, -1, -3};
    burn_loop loop;
    int64_t low = 0;
    int64_t high = 0;
    int64_t seen = 0;
    for (burn_loop_begin(&loop, 2, dims, 2, strides); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        assert_int_equal(loop.offset[0], offsets[seen]);
        assert_int_equal(loop.offset[1], seen % 3);
        seen++;
    }
    assert_int_equal(seen, 6);
    burn_dims_extent(2, dims, a, &low, &high);
    assert_int_equal(low, -4);
    assert_int_equal(high, 1);
    burn_loop_begin(&loop, 0, dims, 1, strides);
    assert_int_equal(loop.count, 1);
    const int64_t empty[2] = {4, 0};
    burn_loop_begin(&loop, 2, empty, 1, strides);
    assert_false(burn_loop_more(&loop));
}

static void test_negotiate(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint32_t abi = 0;
    uint32_t next = BURN_ABI_VERSION(BURN_ABI_MAJOR, BURN_ABI_MINOR + 1);
    assert_int_equal(burn_plugin_negotiate(BURN_ABI_OLDEST, next, &abi, &err), BURN_OK);
    assert_int_equal(abi, BURN_ABI_CURRENT);
    assert_int_equal(burn_plugin_negotiate(next, next, &abi, &err), BURN_E_ABI);
    assert_non_null(strstr(err.text, "update the plugin"));
    assert_int_equal(burn_plugin_negotiate(0, BURN_ABI_VERSION(0, 0), &abi, &err), BURN_E_ABI);
    assert_non_null(strstr(err.text, "update libburn-core"));
    assert_int_equal(burn_plugin_negotiate(BURN_ABI_VERSION(BURN_ABI_MAJOR + 1, 0),
                                           BURN_ABI_VERSION(BURN_ABI_MAJOR + 1, 0), &abi, &err),
                     BURN_E_ABI);
}

/* Text is cut to the sink, and a short sink is not overrun. */
static void test_fail(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    err.cap = 4;
    memset(err.text, 'x', sizeof(err.text));
    assert_int_equal(burn_plugin_fail(&err, BURN_E_IO, "abcdefgh"), BURN_E_IO);
    assert_string_equal(err.text, "abc");
    assert_int_equal(err.text[4], 'x');
    assert_int_equal(burn_plugin_fail(NULL, BURN_E_IO, "nobody hears"), BURN_E_IO);
}

static int32_t launch_nothing(const burn_call *call)
{
    (void)call;
    return BURN_OK;
}

static void test_rows(void **state)
{
    (void)state;
    static const burn_slot slots[] = {
        BURN_SLOT_OR_NUMBER(BURN_SET_FLOAT, BURN_LAYOUT_ANY),
        BURN_SLOT_LIKE(BURN_SET_FLOAT, BURN_LAYOUT_CONTIGUOUS, 0),
    };
    static const burn_row row =
        BURN_ROW(BURN_OP_EXP, "test.exp", BURN_ROW_DETERMINISTIC, slots, launch_nothing);
    assert_int_equal(row.struct_size, sizeof(burn_row));
    assert_int_equal(row.n_slots, 2);
    assert_int_equal(row.slot_stride, sizeof(burn_slot));
    assert_int_equal(row.slots[0].immediate_ok, 1);
    assert_int_equal(row.slots[1].same_dtype_as, 1);
    assert_int_equal(row.slots[1].rank_max, BURN_MAX_RANK);
    assert_true(row.launch == launch_nothing);
    assert_null(row.prepare);
}

/* Beside a dim of 0 the others may multiply to anything: no overflow (which UBSan would report). */
static void test_counts_of_empty_shapes(void **state)
{
    (void)state;
    const int64_t dims[3] = {INT64_MAX, INT64_MAX, 0};
    int64_t strides[3];
    assert_int_equal(burn_dims_count(3, dims), 0);
    burn_dims_strides(3, dims, strides);
    assert_int_equal(strides[2], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half),      cmocka_unit_test(test_bfloat),
        cmocka_unit_test(test_philox),    cmocka_unit_test(test_element),
        cmocka_unit_test(test_bool_B011), cmocka_unit_test(test_loop),
        cmocka_unit_test(test_negotiate), cmocka_unit_test(test_fail),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_counts_of_empty_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
