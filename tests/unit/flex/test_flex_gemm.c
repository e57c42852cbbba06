/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_gemm.c - the f32 product of the CPU plugin as its own files use it (gemm.h).
 *
 * Owns no rows and no host: the plugin's objects are linked in, the instruction set is argument 1.
 * Expected values are plain loops in double. Checked: sums at sizes around the tiles, that an
 * element's bits depend on neither threads nor layout, that nothing behind an operand is touched
 * (guarded.h), and that the epilogue sees each element of C once, when it is final. To add a check:
 * a function and a line in `tests`.
 */
#include "gemm_rig.h"

#include "../../../plugins/flex/isa.h"
#include "../../../plugins/flex/threads.h"
#include "guarded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A product that no other call has a part of, A and B dense or turned. */
static gemm_rig make(int64_t m, int64_t n, int64_t k, int turn_a, int turn_b, uint32_t threads)
{
    return rig_new((gemm_size){m, n, k, 0}, turn_a ? LIES_TURNED : LIES_DENSE,
                   turn_b ? LIES_TURNED : LIES_DENSE, threads);
}

/* Compares at most about 4,000 elements, spread over C and all along its last row and column. */
static void check_sums(const gemm_rig *p)
{
    const flex_gemm *g = &p->g;
    int64_t step = g->m * g->n / 4000 + 1;
    for (int64_t at = 0; at < g->m * g->n; at++) {
        int64_t i = at / g->n;
        int64_t j = at % g->n;
        if (at % step != 0 && i != g->m - 1 && j != g->n - 1) {
            continue;
        }
        double want = rig_expected(g, i, j, NULL);
        double got = (double)p->c[i * g->crs + j];
        if (!(fabs(got - want) <= 1e-5 * sqrt((double)g->k + 1.0))) {
            print_error("%d x %d x %d at %d %d: %g, not %g\n", (int)g->m, (int)g->n, (int)g->k,
                        (int)i, (int)j, got, want);
            fail();
        }
    }
}

static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 700, 1200}, {5, 65, 300},    {15, 16, 17},    {63, 64, 65},
    {127, 129, 63}, {48, 48, 48},   {16, 16, 16},    {129, 127, 513}, {513, 129, 257},
    {64, 64, 0},    {300, 40, 0},   {900, 3, 600},   {700, 600, 70},  {513, 300, 513},
    {257, 1030, 1}, {300, 2100, 8}, {1030, 520, 300}, {64, 128, 784}, {14, 33, 2049}
};

enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_sums(void **state)
{
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        for (int flips = 0; flips < 4; flips++) {
            gemm_rig p = make(shapes[s][0], shapes[s][1], shapes[s][2], flips & 1, flips >> 1, 2);
            p.g.mode = s % 3 == 0   ? FLEX_INIT_ZERO
                       : s % 3 == 1 ? FLEX_INIT_COL
                                    : FLEX_INIT_ROW;
            flex_gemm_parallel(&p.g, p.memory, 2);
            check_sums(&p);
            rig_drop(&p);
        }
    }
}

/* Both ways of laying out the operands, and the first rows alone, give the same bits. */
static void check_layouts(int64_t m, int64_t n, int64_t k, int turn_b)
{
    gemm_rig plain = make(m, n, k, 0, 0, 1);
    flex_gemm_serial(&plain.g, plain.memory);
    gemm_rig turned = make(m, n, k, 1, turn_b, 2);
    flex_gemm_parallel(&turned.g, turned.memory, 2);
    rig_same_bits(&plain, &turned);
    /* The first rows alone, so that other tiles and another way compute them. */
    flex_gemm few = plain.g;
    few.m = few.m > 3 ? 3 : few.m;
    few.c = turned.c;
    flex_gemm_serial(&few, turned.memory);
    assert_memory_equal(plain.c, turned.c, (size_t)(few.m * few.n) * sizeof(float));
    rig_drop(&plain);
    rig_drop(&turned);
}

static void test_bits_do_not_depend_on_threads_or_layout(void **state)
{
    (void)state;
    for (int s = 0; s < N_SHAPES; s++) {
        check_layouts(shapes[s][0], shapes[s][1], shapes[s][2], 1);
    }
}

/* So large that tiles ask for memory ahead; columns in chunks that threads do not divide. */
static void test_bits_of_large_products(void **state)
{
    (void)state;
    check_layouts(1000, 1280, 600, 1);
    check_layouts(64, 1601, 1290, 0);
    gemm_rig p = make(700, 1280, 1030, 0, 0, 2);
    flex_gemm_parallel(&p.g, p.memory, 2);
    check_sums(&p);
    rig_drop(&p);
}

/* Narrow blocks would be handed to no epilogue; workspace is for the widest. */
static void test_blocks_are_neither_narrow_nor_too_wide(void **state)
{
    (void)state;
    static const int64_t columns[] = {129, 257, 383, 385, 511, 640, 1000, 1537};
    for (uint32_t threads = 1; threads <= 64; threads++) {
        for (int64_t n = 1; n < 3000; n += n < 700 ? 1 : 61) {
            flex_gemm g = {.m = 1024, .n = n, .k = 1024};
            int64_t wide = flex_gemm_block_columns(&g, threads);
            assert_true(wide <= n && (wide == n || wide >= FLEX_GEMM_LEAST_COLUMNS));
        }
    }
    for (uint32_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        for (uint32_t threads = 2; threads <= 5; threads++) {
            gemm_rig p = make(150, columns[i], 1030, 0, 0, threads);
            flex_gemm_parallel(&p.g, p.memory, threads);
            check_sums(&p);
            rig_drop(&p);
        }
    }
}

/* The full tile with and without asking, for its rows, for nothing. */
static void test_a_tile_that_asks_has_the_same_bits(void **state)
{
    (void)state;
    enum { MOST_K = 3 * FLEX_ASK_STEPS };
    const flex_gemm_kernels *kernels = flex_gemm_table();
    int64_t numbers = (int64_t)kernels->mr * kernels->nr;
    float *a = rig_numbers((int64_t)kernels->mr * MOST_K, 1);
    float *b = rig_numbers((int64_t)kernels->nr * MOST_K, 2);
    for (int64_t kc = 0; kc <= MOST_K; kc += kc % 64 == 1 ? 62 : 1) {
        for (int round = 0; round < 3; round++) {
            float *want = rig_numbers(numbers, 3);
            float *got = rig_numbers(numbers, 3);
            flex_tile t = {.kc = kc, .n = (int64_t)kernels->nr, .a = a, .ars = MOST_K, .b = b,
                           .ldb = (int64_t)kernels->nr, .c = want, .ldc = (int64_t)kernels->nr};
            t.mode = round == 0 ? FLEX_INIT_ZERO : FLEX_INIT_C;
            kernels->packed_b(&t);
            t.c = got;
            t.next = round == 1 ? a : NULL;
            kernels->asking_b(&t);
            assert_memory_equal(got, want, (size_t)numbers * sizeof(float));
            guarded_free(want);
            guarded_free(got);
        }
    }
    guarded_free(a);
    guarded_free(b);
}

/* Tiles of each height and width. */
static void test_bits_of_each_height(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= FLEX_MR_MAX + 1; m++) {
        check_layouts(m, 16, 33, 0);
        check_layouts(m, 40, 9, 0);
        check_layouts(m, 48, 21, 0);
        check_layouts(m, 64, 18, 0);
        check_layouts(m, 7, 19, 0);
        check_layouts(m, 61, 17, 0);
        check_layouts(m, 300, 20, 0);
    }
}

/* Is it one, and has flex_gemm_small the bits of the long way? */
static void check_small(int64_t m, int64_t n, int64_t k, int taken)
{
    gemm_rig p = make(m, n, k, 0, 0, 1);
    assert_int_equal(flex_gemm_is_small(m, n, k), taken);
    if (taken) {
        float *c = rig_numbers(m * n, 5);
        flex_gemm_dense small = {m, n, k, p.a, p.b, c};
        flex_gemm_serial(&p.g, p.memory);
        flex_gemm_small(&small);
        assert_memory_equal(c, p.c, (size_t)(m * n) * sizeof(float));
        guarded_free(c);
    }
    rig_drop(&p);
}

static void test_a_small_product_has_the_same_bits(void **state)
{
    (void)state;
    int64_t nr = (int64_t)flex_gemm_table()->nr;
    int64_t lanes = (int64_t)flex_gemm_table()->lanes;
    for (int64_t n = 1; n <= nr; n++) {
        int taken = n >= lanes || flex_gemm_table()->part[1][1] != NULL;
        for (int64_t m = 0; m <= 2 * FLEX_MR_MAX + 1; m++) {
            check_small(m, n, m + 1, taken);
        }
        check_small(64, n, 33, taken);
        check_small(65, n, 3, 0);
        check_small(2, n, FLEX_GEMM_KC, taken);
        check_small(2, n, FLEX_GEMM_KC + 1, 0);
        check_small(3, n, 0, taken);
    }
    check_small(3, 0, 4, 0);
    check_small(3, nr + 1, 4, 0);
}

/* `passes`: C may be in scratch memory only. */
static void check_epilogue(int passes)
{
    for (int s = 0; s < N_SHAPES; s++) {
        for (uint32_t threads = 1; threads <= 2; threads++) {
            gemm_rig want = make(shapes[s][0], shapes[s][1], shapes[s][2], 0, 1, threads);
            flex_gemm_parallel(&want.g, want.memory, threads);
            gemm_rig p = make(shapes[s][0], shapes[s][1], shapes[s][2], 0, 1, threads);
            rig_seen calls;
            rig_watch(&p, &calls, passes);
            flex_gemm_parallel(&p.g, p.memory, threads);
            assert_int_equal(atomic_load(&calls.wrong), 0);
            assert_int_equal(atomic_load(&calls.elements), p.g.m * p.g.n);
            for (int64_t i = 0; i < p.g.m * p.g.n; i++) {
                assert_true(p.c[i] == 2.0F * want.c[i]);
            }
            rig_drop(&want);
            rig_drop(&p);
        }
    }
}

static void test_epilogue_sees_each_element_once_and_final(void **state)
{
    (void)state;
    check_epilogue(0);
}

static void test_epilogue_is_handed_what_is_kept_nowhere(void **state)
{
    (void)state;
    check_epilogue(1);
}

/* As rig_twice, for C in segments: a block may not reach into the next one. */
static void twice_in_segment(void *user, const flex_block *b)
{
    rig_seen *s = user;
    const flex_gemm *g = s->g;
    int64_t at = b->row * g->crs + b->col / g->cseg * g->cseg_stride + b->col % g->cseg;
    int bad = b->at != at || (!g->passes && b->c != g->c + at);
    if (bad || b->col % g->cseg + b->cols > g->cseg) {
        atomic_store(&s->wrong, 1);
        return;
    }
    for (int64_t i = 0; i < b->rows; i++) {
        for (int64_t j = 0; j < b->cols; j++) {
            g->c[at + i * b->step + j] = 2.0F * b->c[i * b->ldc + j];
        }
    }
}

/* C in segments: columns 0 .. 9 of each row in one plane, the next 10 in another. */
static void check_segments(int passes)
{
    enum { M = 70, N = 50, K = 300, SEG = 10 };
    gemm_rig plain = make(M, N, K, 0, 0, 1);
    flex_gemm_serial(&plain.g, plain.memory);
    gemm_rig p = make(M, N, K, 0, 0, 1);
    p.g.crs = SEG;
    p.g.cseg = SEG;
    p.g.cseg_stride = (int64_t)M * SEG;
    rig_seen calls = {.g = &p.g};
    p.g.epilogue = twice_in_segment;
    p.g.passes = passes;
    p.g.epilogue_user = &calls;
    flex_gemm_serial(&p.g, p.memory);
    assert_int_equal(atomic_load(&calls.wrong), 0);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            float got = p.c[i * SEG + j / SEG * M * SEG + j % SEG];
            assert_true(got == 2.0F * plain.c[i * N + j]);
        }
    }
    rig_drop(&plain);
    rig_drop(&p);
}

static void test_epilogue_follows_segments(void **state)
{
    (void)state;
    check_segments(0);
    check_segments(1);
}

/* Callers ask once for the largest product and run smaller ones in the same memory. */
static void test_a_smaller_product_needs_no_more_memory(void **state)
{
    (void)state;
    for (int64_t size = 2; size < 1200; size++) {
        const flex_gemm large[] = {{.m = 300, .n = size, .k = 700},
                                   {.m = 300, .n = 700, .k = size},
                                   {.m = size, .n = 700, .k = 700},
                                   {.m = size, .n = 64, .k = 1200},
                                   {.m = 64, .n = 64, .k = 4 * size}};
        const flex_gemm small[] = {{.m = 300, .n = size - 1, .k = 700},
                                   {.m = 300, .n = 700, .k = size - 1},
                                   {.m = size - 1, .n = 700, .k = 700},
                                   {.m = size - 1, .n = 64, .k = 1200},
                                   {.m = 64, .n = 64, .k = 4 * size - 4}};
        for (int i = 0; i < 5; i++) {
            for (uint32_t threads = 1; threads <= 3; threads++) {
                assert_true(flex_gemm_bytes(&small[i], threads) <=
                            flex_gemm_bytes(&large[i], threads));
            }
        }
    }
}

/* NaN and infinity reach exactly the sums that they are part of; zero times infinity is NaN. */
static void test_nan_and_infinity_propagate(void **state)
{
    (void)state;
    gemm_rig p = make(70, 90, 300, 0, 0, 2);
    p.a[33 * 300 + 299] = NAN;
    p.b[5 * 90 + 89] = INFINITY;
    p.a[12 * 300 + 5] = 0.0F;
    flex_gemm_parallel(&p.g, p.memory, 2);
    for (int64_t i = 0; i < 70; i++) {
        for (int64_t j = 0; j < 90; j++) {
            float x = p.c[i * 90 + j];
            if (i == 33 || (i == 12 && j == 89)) {
                assert_true(isnan(x));
            } else if (j == 89) {
                assert_true(isinf(x));
            } else {
                assert_true(isfinite(x));
            }
        }
    }
    rig_drop(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_bits_do_not_depend_on_threads_or_layout),
        cmocka_unit_test(test_bits_of_large_products),
        cmocka_unit_test(test_a_tile_that_asks_has_the_same_bits),
        cmocka_unit_test(test_blocks_are_neither_narrow_nor_too_wide),
        cmocka_unit_test(test_bits_of_each_height),
        cmocka_unit_test(test_a_small_product_has_the_same_bits),
        cmocka_unit_test(test_epilogue_sees_each_element_once_and_final),
        cmocka_unit_test(test_epilogue_is_handed_what_is_kept_nowhere),
        cmocka_unit_test(test_epilogue_follows_segments),
        cmocka_unit_test(test_a_smaller_product_needs_no_more_memory),
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
