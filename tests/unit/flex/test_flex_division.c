/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_division.c - many numbers by one have the bits of C's division, however they are made.
 *
 * A loop may multiply by a reciprocal and correct what comes out. Divisors are all kinds of
 * fractions and exponents; numbers are random bits, numbers near powers of two, numbers whose
 * quotient or remainder is too small or too large, zeros of both signs, infinities and NaN. Of NaN
 * only that it is one is compared.
 */
#include "fixture.h"

#include <burn/op_list.h>
#include <math.h>
#include <string.h>

enum { N = 1003, ROUNDS = 4000 };

static uint32_t random_bits(void)
{
    return (uint32_t)next_random(0.0, 4294967296.0);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* A number of that exponent; every other one has a fraction near its least or its largest. */
static float number(int exponent)
{
    uint32_t fraction = random_bits() >> 9;
    uint32_t kind = random_bits() & 3;
    fraction = kind == 0 ? fraction >> 18 : kind == 1 ? 0x7fffffu - (fraction >> 18) : fraction;
    return ldexpf(float_of(fraction | 127u << 23), exponent);
}

/* Where kind is 0, all are ordinary: nothing else must be needed to divide them. */
static void fill(float *x, uint32_t kind)
{
    for (int i = 0; i < N; i++) {
        uint32_t pick = random_bits() & 7;
        x[i] = number((int)(random_bits() % 61) - 30);
        x[i] = pick == 0 ? -x[i] : x[i];
        if (kind == 1 && pick < 3) {
            x[i] = pick == 1 ? 0.0f : -0.0f;
        } else if (kind == 2) {
            x[i] = number((int)(random_bits() % 60) - 130);
        } else if (kind == 3) {
            x[i] = float_of(random_bits());
        }
    }
}

static void check(const float *x, float y)
{
    tensor a;
    tensor b;
    tensor z;
    make1(&a, BURN_F32, N);
    make1(&z, BURN_F32, N);
    make_imm(&b, BURN_F32, (double)y);
    memcpy(a.o.data, x, sizeof(float) * N);
    assert_int_equal(run2(BURN_OP_DIV, NULL, &a, &b, &z), BURN_OK);
    const float *got = z.o.data;
    for (int i = 0; i < N; i++) {
        volatile float want = x[i] / y;
        int same = bits_of(got[i]) == bits_of(want) || (got[i] != got[i] && want != want);
        if (!same) {
            fail_msg("%a / %a is %a, not %a", (double)x[i], (double)y, (double)got[i],
                     (double)want);
        }
    }
    unmake(&a);
    unmake(&b);
    unmake(&z);
}

static void division_by_one_number__has_the_bits_of_a_division(void **state)
{
    (void)state;
    float x[N];
    for (uint32_t r = 0; r < ROUNDS; r++) {
        fill(x, r % 4);
        check(x, number((int)(r / 4 % 45) - 22));
    }
}

static void special_divisors__divide_as_they_should(void **state)
{
    (void)state;
    static const float divisors[] = {
        0.0f, -0.0f, 1.0f, -1.0f, 3.0f, -3.0f, 0x1.fffffep+0f, 0x1.fffffep-20f, 0x1.fffffep+19f,
        0x1p-20f, 0x1p+20f, 0x1.000002p+20f, 0x1.fffffep-21f, 0x1p-126f, 0x1p-149f, 0x1p+127f,
        INFINITY, -INFINITY, NAN};
    float x[N];
    for (uint32_t k = 0; k < sizeof(divisors) / sizeof(divisors[0]); k++) {
        for (uint32_t kind = 0; kind < 4; kind++) {
            fill(x, kind);
            check(x, divisors[k]);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(division_by_one_number__has_the_bits_of_a_division),
        cmocka_unit_test(special_divisors__divide_as_they_should),
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
