/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_gemm_range.c - f32 products as sums of bf16 parts (gemm_split.c) where numbers are not
 * ordinary: infinite, NaN, zero, subnormal, and around each limit of what parts can hold.
 *
 * Owns nothing but the checks; skipped where there is no matrix unit. What is expected comes from
 * the usual multiply-adds (rows 0), which tiles with such numbers must have the bits of, from the
 * same product without the number, which all other tiles must, and from sums in double. To add a
 * number: a line in `odd`.
 */
#include "gemm_rig.h"

#include "../../../plugins/flex/gemm_parts.h"
#include "../../../plugins/flex/isa.h"
#include "../../../plugins/flex/threads.h"
#include "guarded.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MANY (INT64_C(1) << 20)

/* Strips of 32 rows and columns, two of them whole; the odd number is in the second one. */
enum { M = 70, N = 150, K = 96, STRIP = 32, AT = 37, AT_K = 70 };

static const gemm_size common = {M, N, K, MANY};

/* All numbers are +-[1, 2) times a power of two. */
static gemm_rig of_one_scale(gemm_size size, float a_scale, float b_scale)
{
    gemm_rig p = rig_new(size, LIES_DENSE, LIES_DENSE, 2);
    for (int64_t i = 0; i < size.m * size.k; i++) {
        p.a[i] = (p.a[i] < 0.0F ? p.a[i] - 1.0F : p.a[i] + 1.0F) * a_scale;
    }
    for (int64_t i = 0; i < size.k * size.n; i++) {
        p.b[i] = (p.b[i] < 0.0F ? p.b[i] - 1.0F : p.b[i] + 1.0F) * b_scale;
    }
    return p;
}

/* The same product by the usual multiply-adds, and its C. */
static float *the_usual_way(const gemm_rig *p)
{
    flex_gemm g = p->g;
    float *c = rig_numbers(g.m * g.n, 8);
    memcpy(c, p->c, (size_t)(g.m * g.n) * sizeof(float));
    g.rows = 0;
    g.c = c;
    assert_false(flex_gemm_is_split(&g));
    flex_gemm_serial(&g, NULL);
    return c;
}

static int same(const float *x, const float *y)
{
    return memcmp(x, y, sizeof(*x)) == 0;
}

/* The same infinity or NaN as in double, or near it: some units of 2^-24 of the magnitudes. Where
 * those leave the range, so may a sum, in the order that it has. */
static void check_element(const flex_gemm *g, int64_t i, int64_t j, float got)
{
    double magnitudes = 0.0;
    double want = rig_expected(g, i, j, &magnitudes);
    if (isnan(want)) {
        assert_true(isnan(got));
    } else if (isinf(want)) {
        assert_true((double)got == want);
    } else if (magnitudes <= (double)FLT_MAX) {
        double most = 8.0 * magnitudes / 16777216.0 + (double)FLT_TRUE_MIN * K;
        assert_true(fabs((double)got - want) <= most);
    }
}

static void check_elements(const flex_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            check_element(g, i, j, g->c[i * g->crs + j]);
        }
    }
}

/* One number among those of one scale, partners of another; does its tile go the usual way? */
typedef struct odd_number {
    const char *name;
    float x;
    float partners;
    int falls;
} odd_number;

#define BELOW(bits) (0x1.fffffep-1F * (bits))

static const odd_number odd[] = {
    {"zero", 0.0F, 1.0F, 0},
    {"infinity", INFINITY, 1.0F, 1},
    {"NaN", NAN, 1.0F, 1},
    {"the least subnormal", FLT_TRUE_MIN, 1.0F, 1},
    {"the largest subnormal", 0x1.fffffcp-127F, 1.0F, 1},
    {"the least normal", FLT_MIN, 1.0F, 1},
    {"the largest", FLT_MAX, 1.0F, 1},
    {"the largest, that product is small", FLT_MAX, 0x1p-60F, 1},
    {"2^127", 0x1p127F, 0x1p-60F, 1},
    {"below 2^127", BELOW(0x1p127F), 0x1p-60F, 0},
    {"below 2^127, of which parts round up", 0x1.ff8002p126F, 0x1p-60F, 0},
    {"2^-100", 0x1p-100F, 0x1p20F, 0},
    {"below 2^-100", BELOW(0x1p-100F), 0x1p20F, 1},
    {"a product of 2^-96", 0x1p-96F, 1.0F, 0},
    {"a product below 2^-96", BELOW(0x1p-96F), 1.0F, 1},
    {"a product of 2^-96 by halves", 0x1p-48F, 0x1p-48F, 0},
    {"a product below 2^-96 by halves", BELOW(0x1p-48F), 0x1p-48F, 1},
    {"a product of 2^110", 0x1p110F, 1.0F, 0},
    {"a product below 2^111", BELOW(0x1p111F), 1.0F, 0},
    {"a product of 2^111", 0x1p111F, 1.0F, 1},
    {"a product of 2^110 by halves", 0x1p55F, 0x1p55F, 0},
    {"a product of 2^111 by halves", 0x1p56F, 0x1p55F, 1},
};

/* Numbers beside the odd one are as large as makes no tile fall by themselves. */
static float scale_beside(const odd_number *o)
{
    return o->partners > 0x1p30F ? 0x1p-10F : o->partners < 0x1p-30F ? 0x1p10F : 1.0F;
}

/* How many elements of tiles that fall have other bits than by parts. */
static int64_t check_odd(const gemm_rig *p, const gemm_rig *plain, const float *usual, int falls,
                         int of_a)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            int64_t at = i * N + j;
            int64_t line = of_a ? i : j;
            if (line / STRIP == AT / STRIP && falls) {
                assert_true(same(&p->c[at], &usual[at]));
                differ += line != AT && !same(&p->c[at], &plain->c[at]);
            } else if (line != AT) {
                assert_true(same(&p->c[at], &plain->c[at]));
            }
        }
    }
    return differ;
}

static void try_odd(const odd_number *o, float x, int of_a)
{
    float beside = scale_beside(o);
    gemm_rig plain = of_one_scale(common, of_a ? beside : o->partners, of_a ? o->partners : beside);
    gemm_rig p = of_one_scale(common, of_a ? beside : o->partners, of_a ? o->partners : beside);
    rig_run(&plain, 2);
    float *place = of_a ? rig_a(&p, AT, AT_K) : rig_b(&p, AT_K, AT);
    *place = x;
    rig_run(&p, 2);
    float *usual = the_usual_way(&p);
    int64_t differ = check_odd(&p, &plain, usual, o->falls, of_a);
    if ((differ > 0) != o->falls) {
        print_error("%s: %lld elements are not as by parts\n", o->name, (long long)differ);
        fail();
    }
    check_elements(&p.g);
    guarded_free(usual);
    rig_drop(&p);
    rig_drop(&plain);
}

static void test_one_odd_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        for (int of_a = 0; of_a < 2; of_a++) {
            try_odd(&odd[i], odd[i].x, of_a);
            try_odd(&odd[i], -odd[i].x, of_a);
        }
    }
}

/* All numbers of one scale: what comes out is subnormal, or infinite, as ever. */
static void test_scales(void **state)
{
    (void)state;
    static const struct {
        float a;
        float b;
        int is_usual;
    } scales[] = {
        {0x1p-48F, 0x1p-48F, 0}, {0x1p-49F, 0x1p-48F, 1}, {0x1p-100F, 0x1p4F, 0},
        {0x1p-70F, 0x1p-70F, 1}, {0x1p-126F, 0x1p-10F, 1}, {0x1p-126F, 0x1p100F, 1},
        {0x1p-20F, 0x1p-126F, 1}, {0x1p55F, 0x1p55F, 0},  {0x1p56F, 0x1p55F, 1},
        {0x1p63F, 0x1p63F, 1},   {0x1p100F, 0x1p100F, 1}, {0x1p126F, 0x1p-16F, 0},
    };
    for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
        gemm_rig p = of_one_scale(common, scales[s].a, scales[s].b);
        rig_run(&p, 2);
        check_elements(&p.g);
        float *usual = the_usual_way(&p);
        int is_usual = memcmp(usual, p.c, sizeof(float) * M * N) == 0;
        assert_int_equal(is_usual, scales[s].is_usual);
        guarded_free(usual);
        rig_drop(&p);
    }
}

static void fill(float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = value;
    }
}

/* A strip of zeros, of either sign: its sums are +0 whatever finite numbers it meets, NaN with
 * others, and have no part in what the others come to. */
static void check_zeros(float zero, float partner)
{
    gemm_rig p = of_one_scale(common, 1.0F, 1.0F);
    fill(rig_a(&p, STRIP, 0), (int64_t)STRIP * K, zero);
    *rig_b(&p, AT_K, AT) = partner;
    rig_run(&p, 2);
    for (int64_t i = STRIP; i < 2 * STRIP; i++) {
        for (int64_t j = 0; j < N; j++) {
            float x = p.c[i * N + j];
            if (j == AT && !isfinite(partner)) {
                assert_true(isnan(x));
            } else {
                assert_true(x == 0.0F && !signbit(x));
            }
        }
    }
    float *usual = the_usual_way(&p);
    for (int64_t i = 0; i < M; i++) {
        assert_int_equal(isnan(p.c[i * N + AT]), isnan(usual[i * N + AT]));
        assert_int_equal(isinf(p.c[i * N + AT]), isinf(usual[i * N + AT]));
    }
    guarded_free(usual);
    rig_drop(&p);
}

static void test_strips_of_zeros(void **state)
{
    (void)state;
    static const float partners[] = {1.0F, INFINITY, NAN, FLT_MAX, FLT_TRUE_MIN, 0.0F, -0.0F};
    for (size_t i = 0; i < sizeof(partners) / sizeof(partners[0]); i++) {
        check_zeros(0.0F, partners[i]);
        check_zeros(-0.0F, partners[i]);
    }
}

/* Nothing is added to C but zeros: what it holds, or a bias, comes out as it went in. */
static void check_start(uint32_t mode, float start)
{
    gemm_rig p = rig_new(common, LIES_DENSE, LIES_DENSE, 2);
    fill(p.a, (int64_t)M * K, 0.0F);
    fill(p.c, (int64_t)M * N, start);
    fill(p.init, M + N, start);
    p.g.mode = mode;
    rig_run(&p, 2);
    float want = start + 0.0F;
    for (int64_t i = 0; i < (int64_t)M * N; i++) {
        assert_true(isnan(start) ? isnan(p.c[i]) : same(&p.c[i], &want));
    }
    rig_drop(&p);
}

static void test_what_sums_are_added_to(void **state)
{
    (void)state;
    static const float starts[] = {0.0F,     -0.0F, FLT_TRUE_MIN, -0x1.fffffcp-127F, FLT_MAX,
                                   INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        check_start(FLEX_INIT_C, starts[i]);
        check_start(FLEX_INIT_COL, starts[i]);
        check_start(FLEX_INIT_ROW, starts[i]);
    }
}

/* An odd number behind the first block of k: that block is summed by parts, the next one is not,
 * and is added to it. */
static void test_an_odd_number_concerns_one_block_of_k(void **state)
{
    (void)state;
    enum { BLOCK = FLEX_GEMM_KC };
    gemm_rig p = of_one_scale((gemm_size){M, N, 2 * BLOCK, MANY}, 1.0F, 1.0F);
    gemm_rig want = of_one_scale((gemm_size){M, N, 2 * BLOCK, MANY}, 1.0F, 1.0F);
    *rig_a(&p, 3, BLOCK + 5) = FLT_TRUE_MIN;
    *rig_a(&want, 3, BLOCK + 5) = FLT_TRUE_MIN;
    rig_run(&p, 2);
    want.g.k = BLOCK;
    rig_run(&want, 2);
    want.g.a += BLOCK * want.g.acs;
    want.g.b += BLOCK * want.g.brs;
    want.g.mode = FLEX_INIT_C;
    float *usual = the_usual_way(&want);
    rig_run(&want, 2);
    for (int64_t at = 0; at < (int64_t)M * N; at++) {
        const float *from = at / N < STRIP ? usual : want.c;
        assert_true(same(&p.c[at], &from[at]));
    }
    assert_memory_equal(want.c, usual, sizeof(float) * STRIP * N);
    guarded_free(usual);
    rig_drop(&p);
    rig_drop(&want);
}

/* Every number may be odd, in any layout, and biases too: what is handed on is as ever. */
static void test_many_odd_numbers(void **state)
{
    (void)state;
    for (int lies = 0; lies < N_LIES; lies++) {
        gemm_rig p = rig_new((gemm_size){M, 300, 200, MANY}, lies, (lies + 2) % N_LIES, 3);
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
            int64_t k = (int64_t)i * 9;
            *rig_a(&p, (int64_t)i * 3, k) = odd[i].x;
            *rig_b(&p, k, (int64_t)i * 13) = -odd[i].x;
        }
        p.g.mode = FLEX_INIT_COL;
        p.init[5] = FLT_TRUE_MIN;
        rig_run(&p, 3);
        check_elements(&p.g);
        rig_drop(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_odd_number),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_strips_of_zeros),
        cmocka_unit_test(test_what_sums_are_added_to),
        cmocka_unit_test(test_an_odd_number_concerns_one_block_of_k),
        cmocka_unit_test(test_many_odd_numbers),
    };
    burn_err err = BURN_ERR_INIT;
    if (flex_isa_init("amx", &err) != BURN_OK) {
        printf("1..0 # SKIP this CPU has no matrix unit for bf16\n");
        return 77;
    }
    flex_threads_init(3);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flex_threads_shutdown();
    return failed;
}
