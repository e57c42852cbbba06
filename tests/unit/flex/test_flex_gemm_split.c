/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_gemm_split.c - f32 products as sums of bf16 parts (gemm_split.c), from within: sizes,
 * layouts, threads, how exact they are, what epilogues see, and memory.
 *
 * Owns nothing but the checks; skipped where there is no matrix unit. Numbers that parts cannot
 * hold are in test_flex_gemm_range.c. The limits are those that docs/adr/038 derives; each check
 * turned red when a product of parts was left out, or a part cut off instead of rounded. To add a
 * check: a function and a line in `tests`.
 */
#include "gemm_rig.h"

#include "../../../plugins/flex/gemm_parts.h"
#include "../../../plugins/flex/isa.h"
#include "../../../plugins/flex/threads.h"
#include "guarded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* So many rows meet B that a product of any number of them goes the split way. */
#define MANY (INT64_C(1) << 20)
/* What errors are counted in, times the sum of |a b|. */
#define UNIT (1.0 / 16777216.0)

/* Around halves, strips, blocks of k, chunks and blocks of columns, and blocks of rows. */
static const gemm_size sizes[] = {
    {1, 128, 64, MANY},     {15, 129, 65, MANY},    {16, 255, 95, MANY},   {17, 257, 96, MANY},
    {31, 511, 97, MANY},    {32, 513, 511, MANY},   {33, 1023, 512, MANY}, {63, 1025, 513, MANY},
    {127, 2049, 64, MANY},  {128, 256, 1025, MANY}, {129, 512, 1024, 129}, {255, 2048, 65, 255},
    {257, 1024, 97, 257},   {513, 129, 513, 513},   {1023, 160, 127, MANY}, {1025, 130, 128, 1025},
    {2049, 128, 65, 2049},  {300, 257, 300, 300},   {40, 4099, 70, MANY},  {256, 256, 256, 256},
};

enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static uint32_t mode_of(int s)
{
    static const uint32_t modes[] = {FLEX_INIT_ZERO, FLEX_INIT_COL, FLEX_INIT_ROW};
    return modes[s % 3];
}

static void describe(const flex_gemm *g, int64_t i, int64_t j, double error)
{
    print_error("%lld x %lld x %lld: element %lld %lld is off by %g units\n", (long long)g->m,
                (long long)g->n, (long long)g->k, (long long)i, (long long)j, error);
}

/*
 * About 4,000 elements, and all of the last row and column. What is left out has either sign, as
 * have roundings: both average out, and more the longer the sums are.
 */
static void check_sums(const gemm_rig *p, double most, double most_rms)
{
    const flex_gemm *g = &p->g;
    int64_t step = g->m * g->n / 4000 + 1;
    double squares = 0.0;
    double n = 0.0;
    for (int64_t at = 0; at < g->m * g->n; at++) {
        int64_t i = at / g->n;
        int64_t j = at % g->n;
        if (at % step != 0 && i != g->m - 1 && j != g->n - 1) {
            continue;
        }
        double magnitudes = 0.0;
        double want = rig_expected(g, i, j, &magnitudes);
        double error = fabs((double)p->c[i * g->crs + j] - want) / (magnitudes * UNIT);
        if (!(error <= most)) {
            describe(g, i, j, error);
            fail();
        }
        squares += error * error;
        n += 1.0;
    }
    double rms = sqrt(squares / n);
    if (!(rms <= most_rms)) {
        describe(g, -1, -1, rms);
        fail();
    }
}

static void test_sums(void **state)
{
    (void)state;
    for (int s = 0; s < N_SIZES; s++) {
        gemm_rig p = rig_new(sizes[s], LIES_DENSE, LIES_DENSE, 2);
        assert_true(flex_gemm_is_split(&p.g));
        p.g.mode = mode_of(s);
        rig_run(&p, 2);
        check_sums(&p, 4.0, 0.3);
        rig_drop(&p);
    }
}

/*
 * Each element is one product of two numbers, chosen so that the second part is as large as can be
 * and the rest of it takes all values: what is left out is 2^-24 (1 + 2^-10) at most, the sum of
 * the six others is rounded to f32 once, and those before it, all below 2^-7 of it, add little.
 */
static void test_one_product_is_as_exact_as_six_products_of_parts(void **state)
{
    (void)state;
    enum { SIDE = 256 };
    gemm_rig p = rig_new((gemm_size){SIDE, SIDE, SIDE, SIDE}, LIES_DENSE, LIES_DENSE, 2);
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t k = 0; k < SIDE; k++) {
            float x = 1.0F + (float)(0x7F00 + i) / 8388608.0F;
            *rig_a(&p, i, k) = i == k ? (i % 3 == 0 ? -x : x) : 0.0F;
            *rig_b(&p, k, i) = 1.0F + (float)(0x8080 - i) / 8388608.0F;
        }
    }
    rig_run(&p, 2);
    double most = 0.0;
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t j = 0; j < SIDE; j++) {
            double want = rig_expected(&p.g, i, j, NULL);
            most = fmax(most, fabs((double)p.c[i * SIDE + j] - want) / UNIT);
        }
    }
    /* The numbers are below 1 + 2^-7, so that half a unit in the last place is one UNIT. */
    assert_true(most <= (1.0 + 1.0 / 1024 + 5.0 / 128) * (1.0 + 1.0 / 64) + 1.0);
    rig_drop(&p);
}

/* Small whole numbers: all is exact. */
static void test_whole_numbers_are_exact(void **state)
{
    (void)state;
    gemm_rig p = rig_new((gemm_size){130, 200, 1000, MANY}, LIES_TURNED, LIES_TURNED, 2);
    for (int64_t k = 0; k < p.g.k; k++) {
        for (int64_t i = 0; i < p.g.m; i++) {
            *rig_a(&p, i, k) = (float)((i * 7 + k * 3) % 101 - 50);
        }
        for (int64_t j = 0; j < p.g.n; j++) {
            *rig_b(&p, k, j) = (float)((j * 5 + k * 11) % 257 - 128);
        }
    }
    rig_run(&p, 2);
    for (int64_t i = 0; i < p.g.m; i++) {
        for (int64_t j = 0; j < p.g.n; j++) {
            assert_true((double)p.c[i * p.g.crs + j] == rig_expected(&p.g, i, j, NULL));
        }
    }
    rig_drop(&p);
}

static void test_bits_do_not_depend_on_layout(void **state)
{
    (void)state;
    for (int s = 0; s < N_SIZES; s++) {
        gemm_rig plain = rig_new(sizes[s], LIES_DENSE, LIES_DENSE, 1);
        plain.g.mode = mode_of(s);
        rig_run(&plain, 1);
        for (int lies = 1; lies < N_LIES; lies++) {
            gemm_rig p = rig_new(sizes[s], lies, (lies + s) % N_LIES, 2);
            p.g.mode = mode_of(s);
            rig_run(&p, 2);
            rig_same_bits(&plain, &p);
            rig_drop(&p);
        }
        rig_drop(&plain);
    }
}

static void test_bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const uint32_t threads[] = {2, 3, 8};
    for (int s = 0; s < N_SIZES; s++) {
        gemm_rig one = rig_new(sizes[s], LIES_DENSE, LIES_TURNED, 1);
        one.g.mode = mode_of(s);
        rig_run(&one, 1);
        for (int t = 0; t < 3; t++) {
            gemm_rig p = rig_new(sizes[s], LIES_DENSE, LIES_TURNED, threads[t]);
            p.g.mode = mode_of(s);
            rig_run(&p, threads[t]);
            rig_same_bits(&one, &p);
            rig_drop(&p);
        }
        rig_drop(&one);
    }
}

/* Rows alone, as calls cut them that meet the same B; other strips hold them then. */
static void test_bits_do_not_depend_on_how_rows_are_cut(void **state)
{
    (void)state;
    static const int64_t from[] = {0, 1, 32, 100, 250, 300};
    gemm_rig whole = rig_new((gemm_size){300, 257, 600, 300}, LIES_DENSE, LIES_DENSE, 2);
    rig_run(&whole, 2);
    float *c = rig_numbers(300 * 257, 9);
    for (int cut = 0; cut + 1 < (int)(sizeof(from) / sizeof(from[0])); cut++) {
        flex_gemm part = whole.g;
        part.m = from[cut + 1] - from[cut];
        part.a += from[cut] * part.ars;
        part.c = c + from[cut] * part.crs;
        flex_gemm_parallel(&part, whole.memory, 2);
    }
    assert_memory_equal(c, whole.c, 300 * 257 * sizeof(float));
    guarded_free(c);
    rig_drop(&whole);
}

/* One row of A for all, one column of B for all: strides are 0. */
static void test_operands_that_repeat(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        gemm_rig p = rig_new((gemm_size){130, 200, 700, MANY}, LIES_DENSE, LIES_DENSE, 2);
        gemm_rig full = rig_new((gemm_size){130, 200, 700, MANY}, LIES_DENSE, LIES_DENSE, 2);
        p.g.ars = which == 0 ? 0 : p.g.ars;
        p.g.acs = which == 1 ? 0 : p.g.acs;
        p.g.brs = which == 2 ? 0 : p.g.brs;
        p.g.bcs = which == 3 ? 0 : p.g.bcs;
        for (int64_t k = 0; k < p.g.k; k++) {
            for (int64_t i = 0; i < p.g.m; i++) {
                *rig_a(&full, i, k) = *rig_a(&p, i, k);
            }
            for (int64_t j = 0; j < p.g.n; j++) {
                *rig_b(&full, k, j) = *rig_b(&p, k, j);
            }
        }
        rig_run(&p, 2);
        rig_run(&full, 2);
        rig_same_bits(&full, &p);
        rig_drop(&p);
        rig_drop(&full);
    }
}

/* C is what the sum is added to, and rows of C may lie apart: what lies between is left alone. */
static void test_sums_are_added_to_c(void **state)
{
    (void)state;
    enum { M = 130, N = 161, K = 600, STEP = N + 5 };
    gemm_rig zero = rig_new((gemm_size){M, N, 300, MANY}, LIES_DENSE, LIES_DENSE, 2);
    rig_run(&zero, 2);
    float *c = rig_numbers((int64_t)M * STEP, 5);
    float *before = rig_numbers((int64_t)M * STEP, 5);
    gemm_rig p = rig_new((gemm_size){M, N, 300, MANY}, LIES_DENSE, LIES_DENSE, 2);
    p.g.mode = FLEX_INIT_C;
    p.g.c = c;
    p.g.crs = STEP;
    rig_run(&p, 2);
    for (int64_t at = 0; at < (int64_t)M * STEP; at++) {
        int64_t j = at % STEP;
        float want = j < N ? before[at] + zero.c[at / STEP * N + j] : before[at];
        assert_true(c[at] == want);
    }
    guarded_free(c);
    guarded_free(before);
    rig_drop(&zero);
    rig_drop(&p);
}

/* `passes`: where C is not kept, it is not touched either. */
static void check_epilogue(int passes, uint32_t threads)
{
    for (int s = 0; s < N_SIZES; s++) {
        gemm_rig want = rig_new(sizes[s], LIES_DENSE, LIES_TURNED, threads);
        want.g.mode = mode_of(s);
        rig_run(&want, threads);
        gemm_rig p = rig_new(sizes[s], LIES_DENSE, LIES_TURNED, threads);
        p.g.mode = mode_of(s);
        rig_seen seen;
        rig_watch(&p, &seen, passes);
        if (passes && !flex_gemm_keeps_c(&p.g)) {
            p.g.c = NULL;
        }
        rig_run(&p, threads);
        assert_int_equal(atomic_load(&seen.wrong), 0);
        assert_int_equal(atomic_load(&seen.elements), p.g.m * p.g.n);
        for (int64_t i = 0; i < p.g.m * p.g.n; i++) {
            assert_true(p.c[i] == 2.0F * want.c[i]);
        }
        rig_drop(&want);
        rig_drop(&p);
    }
}

static void test_epilogue_sees_each_element_once_and_final(void **state)
{
    (void)state;
    check_epilogue(0, 1);
    check_epilogue(0, 3);
}

static void test_epilogue_is_handed_what_is_kept_nowhere(void **state)
{
    (void)state;
    check_epilogue(1, 1);
    check_epilogue(1, 3);
}

typedef struct widths {
    int64_t promised;
    atomic_llong as_wide;
    atomic_int wider;
} widths;

static void look_at_width(void *user, const flex_block *b)
{
    widths *w = user;
    if (b->cols > w->promised) {
        atomic_store(&w->wider, 1);
    }
    atomic_fetch_add(&w->as_wide, b->cols == w->promised ? b->cols * b->rows : 0);
}

static void test_epilogue_is_handed_blocks_as_wide_as_promised(void **state)
{
    (void)state;
    for (int s = 0; s < N_SIZES; s++) {
        for (int passes = 0; passes < 2; passes++) {
            gemm_rig p = rig_new(sizes[s], LIES_DENSE, LIES_DENSE, 2);
            widths seen = {.promised = flex_gemm_block_columns(&p.g, 2)};
            p.g.epilogue = look_at_width;
            p.g.epilogue_user = &seen;
            p.g.passes = passes;
            rig_run(&p, 2);
            assert_int_equal(atomic_load(&seen.wider), 0);
            assert_true(atomic_load(&seen.as_wide) * 2 >= p.g.m * p.g.n);
            rig_drop(&p);
        }
    }
}

/* Off by one on each side of each limit. */
static void test_which_products_are_split(void **state)
{
    (void)state;
    static const struct {
        gemm_size size;
        int is_split;
    } cases[] = {
        {{256, 256, 256, 256}, 1}, {{256, 256, 255, 256}, 0}, {{256, 255, 256, 256}, 0},
        {{255, 256, 256, 255}, 0}, {{1, 256, 256, 256}, 1},   {{256, 256, 256, 0}, 0},
        {{256, 256, 256, 255}, 0}, {{128, 2048, 64, 128}, 1}, {{127, 4096, 64, 127}, 0},
        {{4096, 127, 64, 4096}, 0}, {{4096, 128, 64, 4096}, 1}, {{4096, 128, 63, 4096}, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const gemm_size *s = &cases[i].size;
        flex_gemm g = {.m = s->m, .n = s->n, .k = s->k, .rows = s->rows};
        assert_int_equal(flex_gemm_is_split(&g), cases[i].is_split);
    }
}

/* What docs/adr/038 says: blocks of 512 rows and 2048 columns, 512 steps, 6 bytes each; besides a
 * row of tiles for each thread, and where B is narrow a copy of it for each of them. */
static void test_memory_has_a_limit(void **state)
{
    (void)state;
    const uint64_t narrow = 256 * (512 * 6 + 64);
    /* An empty batch of large products has rows, but none of them. */
    flex_gemm none = {.m = 0, .n = 300, .k = 512, .rows = MANY};
    assert_true(flex_gemm_is_split(&none) && flex_gemm_bytes(&none, 3) <= 8000000);
    for (int64_t m = 128; m < 5000; m += 31) {
        for (int64_t n = 128; n < 5000; n += 31) {
            flex_gemm g = {.m = m, .n = n, .k = 512, .rows = MANY};
            for (uint32_t threads = 1; threads <= 8; threads += 7) {
                uint64_t copies = n <= 256 ? threads * narrow : 0;
                assert_true(flex_gemm_bytes(&g, threads) <= 8000000 + threads * 40000 + copies);
            }
        }
    }
}

/* Calls merge rows as strides have it, and ask for what all of them need. */
static void test_fewer_rows_need_no_more_memory(void **state)
{
    (void)state;
    static const int64_t columns[] = {128, 257, 700};
    for (int64_t m = 2; m < 2300; m++) {
        for (int i = 0; i < 3; i++) {
            flex_gemm large = {.m = m, .n = columns[i], .k = 700, .rows = MANY};
            flex_gemm small = large;
            small.m = m - 1;
            for (uint32_t threads = 1; threads <= 8; threads++) {
                assert_true(flex_gemm_bytes(&small, threads) <= flex_gemm_bytes(&large, threads));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_one_product_is_as_exact_as_six_products_of_parts),
        cmocka_unit_test(test_whole_numbers_are_exact),
        cmocka_unit_test(test_bits_do_not_depend_on_layout),
        cmocka_unit_test(test_bits_do_not_depend_on_threads),
        cmocka_unit_test(test_bits_do_not_depend_on_how_rows_are_cut),
        cmocka_unit_test(test_operands_that_repeat),
        cmocka_unit_test(test_sums_are_added_to_c),
        cmocka_unit_test(test_epilogue_sees_each_element_once_and_final),
        cmocka_unit_test(test_epilogue_is_handed_what_is_kept_nowhere),
        cmocka_unit_test(test_epilogue_is_handed_blocks_as_wide_as_promised),
        cmocka_unit_test(test_which_products_are_split),
        cmocka_unit_test(test_memory_has_a_limit),
        cmocka_unit_test(test_fewer_rows_need_no_more_memory),
    };
    burn_err err = BURN_ERR_INIT;
    if (flex_isa_init("amx", &err) != BURN_OK) {
        printf("1..0 # SKIP this CPU has no matrix unit for bf16\n");
        return 77;
    }
    flex_threads_init(8);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    flex_threads_shutdown();
    return failed;
}
