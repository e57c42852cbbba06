/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_gemm_f64.c - the f64 product of the CPU plugin, from within (gemm_f64.h).
 *
 * Owns no rows and no host: the plugin's objects are linked in, the instruction set is argument 1.
 * Expected values are plain loops in long double. Checked: sums at sizes around the tiles and the
 * blocks, that an element's bits depend on neither threads, layout nor what else is computed, and
 * that nothing behind an operand is touched (guarded.h). To add a check: a function and a line in
 * `tests`.
 */
#include "../../../plugins/flex/gemm_f64.h"

#include "../../../plugins/flex/gemm_f64_kernel.h"
#include "../../../plugins/flex/isa.h"
#include "../../../plugins/flex/threads.h"
#include "guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One product with everything that it lies in. */
typedef struct product {
    flex_gemm_f64 p;
    double *a;
    double *b;
    double *c;
    double *init;
    unsigned char *memory;
    uint64_t bytes;
    uint32_t threads;
} product;

enum { GUARD = 64 };

/* How an operand lies: rows dense, columns dense, or neither. */
enum { PLAIN = 0, TURNED = 1, SPREAD = 2 };

/* An array with room for `n` elements that are up to 2 apart. */
static double *numbers(int64_t n, uint32_t seed)
{
    double *x = guarded_new((size_t)n * sizeof(double));
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (double)(seed >> 8) / 8388608.0 - 1.0;
    }
    return x;
}

/* rows x columns of what numbers() gives, laid out as told. */
static double *lay(int64_t rows, int64_t columns, int how, uint32_t seed, int64_t *rs, int64_t *cs)
{
    int64_t step = how == SPREAD ? 2 : 1;
    double *plain = numbers(rows * columns, seed);
    double *x = numbers(rows * columns * step, seed + 10);
    *rs = how == TURNED ? 1 : columns * step;
    *cs = how == TURNED ? rows : step;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            x[i * *rs + j * *cs] = plain[i * columns + j];
        }
    }
    guarded_free(plain);
    return x;
}

static product make(int64_t m, int64_t n, int64_t k, int how_a, int how_b, uint32_t threads)
{
    product p = {.c = numbers(m * n, 3), .init = numbers(n, 4), .threads = threads};
    flex_gemm *g = &p.p.g;
    g->m = m;
    g->n = n;
    g->k = k;
    g->crs = n;
    p.a = lay(m, k, how_a, 1, &g->ars, &g->acs);
    p.b = lay(k, n, how_b, 2, &g->brs, &g->bcs);
    p.p.a = p.a;
    p.p.b = p.b;
    p.p.c = p.c;
    for (int64_t i = 0; i < m * n; i++) {
        p.c[i] = (double)NAN;
    }
    p.bytes = flex_gemm_f64_bytes(n, k, threads);
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 64, (size_t)p.bytes + GUARD), 0);
    p.memory = memory;
    memset(p.memory + p.bytes, 0xA5, GUARD);
    return p;
}

static void compute(product *p)
{
    flex_gemm_f64_run(&p->p, p->memory, p->threads);
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(p->memory[p->bytes + (uint64_t)i], 0xA5);
    }
}

static void drop(product *p)
{
    guarded_free(p->a);
    guarded_free(p->b);
    guarded_free(p->c);
    guarded_free(p->init);
    free(p->memory);
}

static long double expected(const flex_gemm_f64 *p, int64_t i, int64_t j)
{
    const flex_gemm *g = &p->g;
    long double sum = p->init != NULL ? (long double)p->init[j] : 0.0L;
    for (int64_t k = 0; k < g->k; k++) {
        sum += (long double)p->a[i * g->ars + k * g->acs] *
               (long double)p->b[k * g->brs + j * g->bcs];
    }
    return sum;
}

/* Compares at most about 4,000 elements, spread over C and all along its last row and column. */
static void check_sums(const product *p)
{
    const flex_gemm *g = &p->p.g;
    int64_t step = g->m * g->n / 4000 + 1;
    for (int64_t at = 0; at < g->m * g->n; at++) {
        int64_t i = at / g->n;
        int64_t j = at % g->n;
        if (at % step != 0 && i != g->m - 1 && j != g->n - 1) {
            continue;
        }
        double want = (double)expected(&p->p, i, j);
        if (!(fabs(p->c[at] - want) <= 2e-15 * sqrt((double)g->k + 1.0))) {
            print_error("%d x %d x %d at %d %d: %.17g, not %.17g\n", (int)g->m, (int)g->n,
                        (int)g->k, (int)i, (int)j, p->c[at], want);
            fail();
        }
    }
}

static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 700, 600},   {5, 65, 300},    {15, 16, 17},   {63, 64, 65},
    {127, 129, 63}, {48, 48, 48},    {16, 16, 16},    {129, 127, 257}, {213, 129, 513},
    {64, 64, 0},    {300, 40, 0},    {900, 3, 300},   {300, 600, 70}, {257, 1030, 1},
    {60, 1100, 8},  {130, 520, 300}, {64, 128, 784},  {14, 33, 1027}, {13, 31, 256},
    {0, 5, 3},      {5, 0, 3},       {100, 100, 100}, {19, 131, 255}, {25, 17, 31},
};

enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_sums(void **state)
{
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        for (int how = 0; how < 9; how++) {
            product p = make(shapes[s][0], shapes[s][1], shapes[s][2], how % 3, how / 3, 2);
            p.p.init = (s + how) % 2 == 0 ? p.init : NULL;
            compute(&p);
            check_sums(&p);
            drop(&p);
        }
    }
}

/* Every layout, two threads, and the first rows alone give the bits of the plain product. */
static void check_bits(int64_t m, int64_t n, int64_t k)
{
    product plain = make(m, n, k, PLAIN, PLAIN, 1);
    plain.p.init = plain.init;
    compute(&plain);
    for (int how = 0; how < 9; how++) {
        product p = make(m, n, k, how % 3, how / 3, 1 + (uint32_t)how % 2);
        p.p.init = p.init;
        compute(&p);
        assert_memory_equal(plain.c, p.c, (size_t)(m * n) * sizeof(double));
        p.p.g.m = m > 3 ? 3 : m;
        memset(p.c, 0, (size_t)(m * n) * sizeof(double));
        compute(&p);
        assert_memory_equal(plain.c, p.c, (size_t)(p.p.g.m * n) * sizeof(double));
        drop(&p);
    }
    drop(&plain);
}

static void test_bits_do_not_depend_on_threads_or_layout(void **state)
{
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        check_bits(shapes[s][0], shapes[s][1], shapes[s][2]);
    }
}

/* Tiles of each height and width. */
static void test_bits_of_each_tile(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= FLEX_MR_MAX + 1; m++) {
        for (int64_t n = 1; n <= 33; n++) {
            check_bits(m, n, 21);
        }
        check_bits(m, 200, 19);
    }
}

/* The first columns alone: they fall into other tiles, whole ones and ones that end early. */
static void test_bits_of_fewer_columns(void **state)
{
    (void)state;
    product all = make(41, 180, 600, PLAIN, PLAIN, 2);
    compute(&all);
    for (int64_t n = 1; n < 180; n += 7) {
        product p = make(41, 180, 600, PLAIN, PLAIN, 1);
        p.p.g.n = n;
        compute(&p);
        for (int64_t i = 0; i < 41; i++) {
            assert_memory_equal(all.c + i * 180, p.c + i * 180, (size_t)n * sizeof(double));
            assert_true(isnan(p.c[i * 180 + n]));
        }
        drop(&p);
    }
    drop(&all);
}

/* NaN and infinity reach exactly the sums that they are part of; zero times infinity is NaN. */
static void test_nan_and_infinity_propagate(void **state)
{
    (void)state;
    product p = make(70, 90, 300, PLAIN, PLAIN, 2);
    p.a[33 * 300 + 299] = (double)NAN;
    p.b[5 * 90 + 89] = (double)INFINITY;
    p.a[12 * 300 + 5] = 0.0;
    compute(&p);
    for (int64_t i = 0; i < 70; i++) {
        for (int64_t j = 0; j < 90; j++) {
            double x = p.c[i * 90 + j];
            if (i == 33 || (i == 12 && j == 89)) {
                assert_true(isnan(x));
            } else if (j == 89) {
                assert_true(isinf(x));
            } else {
                assert_true(isfinite(x));
            }
        }
    }
    drop(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_bits_do_not_depend_on_threads_or_layout),
        cmocka_unit_test(test_bits_of_each_tile),
        cmocka_unit_test(test_bits_of_fewer_columns),
        cmocka_unit_test(test_nan_and_infinity_propagate),
    };
    burn_err err = BURN_ERR_INIT;
    if (argc < 2 || flex_isa_init(argv[1], &err) != BURN_OK) {
        printf("1..0 # SKIP this CPU has not the instruction set\n");
        return 77;
    }
    flex_threads_init(2);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flex_threads_shutdown();
    return failed;
}
