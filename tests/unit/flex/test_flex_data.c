/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_data.c - reductions, movement, indices, random numbers and the device of the CPU
 * backend, called by row.
 *
 * Expected values are naive loops next to each test. Names carry the id of the reported fault that
 * a test repeats. Arguments: plugin file, ISA. Elementwise ops are in test_flex_kernels.c.
 */
#include "fixture.h"

#include <burn_sdk/half.h>
#include <burn_sdk/philox.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static burn_attrs_axes axes_of(uint32_t n, int64_t a, int64_t b)
{
    burn_attrs_axes attrs;
    memset(&attrs, 0, sizeof(attrs));
    attrs.head.size = (uint32_t)sizeof(attrs);
    attrs.head.revision = 1;
    attrs.n_axes = n;
    attrs.axes[0] = a;
    attrs.axes[1] = b;
    attrs.correction = 1;
    return attrs;
}

static burn_attrs_axis axis_of(int64_t axis)
{
    burn_attrs_axis attrs = {{(uint32_t)sizeof(attrs), 1}, axis, 0, 0};
    return attrs;
}

typedef struct reduction {
    uint64_t op;
    const char *name;
    int floats_only;
    double tolerance; /* relative, for f32 */
} reduction;

static const reduction reductions[] = {
    {BURN_OP_SUM, "sum", 0, 1e-6},   {BURN_OP_PROD, "prod", 0, 1e-6},
    {BURN_OP_MAX, "max", 0, 0.0},    {BURN_OP_MIN, "min", 0, 0.0},
    {BURN_OP_MEAN, "mean", 1, 1e-6}, {BURN_OP_VAR, "var", 1, 1e-6},
    {BURN_OP_LOGSUMEXP, "logsumexp", 1, 1e-6},
};

static double naive(uint64_t op, const double *x, int64_t n)
{
    double sum = 0.0;
    double product = 1.0;
    double most = -(double)INFINITY;
    double least = (double)INFINITY;
    double squares = 0.0;
    double exps = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        product *= x[i];
        most = x[i] > most ? x[i] : most;
        least = x[i] < least ? x[i] : least;
        exps += exp(x[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    }
    double all[] = {sum, product, most, least, sum / (double)n,
                    n > 1 ? squares / (double)(n - 1) : (double)NAN, log(exps)};
    for (uint32_t k = 0; k < sizeof(reductions) / sizeof(reductions[0]); k++) {
        if (reductions[k].op == op) {
            return all[k];
        }
    }
    return 0.0;
}

/* Reduces x over the axes in mask and compares each output with the naive result. */
static void check_reduction(const reduction *r, tensor *x, uint32_t mask, double tolerance)
{
    burn_attrs_axes a = axes_of(0, 0, 0);
    int64_t kept[BURN_MAX_RANK];
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < x->o.rank; i++) {
        if ((mask >> i & 1u) != 0) {
            a.axes[a.n_axes++] = i;
        } else {
            kept[n_kept++] = x->dims[i];
        }
    }
    tensor z;
    make(&z, x->o.dtype, n_kept, kept);
    assert_int_equal(run1(r->op, &a, x, &z), BURN_OK);
    int64_t n = numel(x);
    int64_t n_out = numel(&z);
    double *values = malloc(sizeof(double) * (size_t)(n + 1));
    for (int64_t o = 0; o < n_out; o++) {
        int64_t count = 0;
        for (int64_t k = 0; k < n; k++) {
            int64_t rest = k;
            int64_t index[BURN_MAX_RANK];
            for (uint32_t i = x->o.rank; i-- > 0;) {
                index[i] = rest % x->dims[i];
                rest /= x->dims[i];
            }
            int64_t at = 0;
            for (uint32_t i = 0; i < x->o.rank; i++) {
                at = (mask >> i & 1u) != 0 ? at : at * x->dims[i] + index[i];
            }
            if (at == o) {
                values[count++] = get(x, k);
            }
        }
        double want = naive(r->op, values, count);
        double size = fabs(want) > 1.0 ? fabs(want) : 1.0;
        double got = get(&z, o);
        if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= tolerance * size * 8.0)) {
            fail_msg("%s, dtype %d, mask %u, output %d of %d over %d: %.9g, not %.9g", r->name,
                     x->o.dtype, mask, (int)o, (int)n_out, (int)count, got, want);
        }
    }
    free(values);
    unmake(&z);
}

static void fill_for(const reduction *r, tensor *x)
{
    int is_float = x->o.dtype >= BURN_F16;
    for (int64_t i = 0; i < numel(x); i++) {
        double v = is_float ? next_random(-2, 2) : rint(next_random(0, 4));
        put(x, i, r->op == BURN_OP_PROD ? (is_float ? next_random(0.9, 1.1) : 1.0) : v);
    }
}

static void reductions_over_any_axes(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 17, 64}, {65, 3, 9}, {1, 513, 2}};
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16, BURN_I32, BURN_U8,
                                     BURN_I64};
    static const double coarse[] = {0, 1e-14, 1e-3, 1e-2, 0, 0, 0};
    for (uint32_t k = 0; k < sizeof(reductions) / sizeof(reductions[0]); k++) {
        const reduction *r = &reductions[k];
        for (uint32_t d = 0; d < 7; d++) {
            if (r->floats_only && dtypes[d] < BURN_F16) {
                continue;
            }
            double tolerance = d == 0 ? r->tolerance : coarse[d];
            for (uint32_t s = 0; s < 5; s++) {
                for (uint32_t mask = 1; mask < 8; mask++) {
                    tensor x;
                    make(&x, dtypes[d], 3, shapes[s]);
                    fill_for(r, &x);
                    if (dtypes[d] != BURN_F32 && (r->op == BURN_OP_SUM && dtypes[d] < BURN_F16 &&
                                                  numel(&x) > 60 && dtypes[d] == BURN_U8)) {
                        unmake(&x);
                        continue; /* would wrap, and the naive sum does not */
                    }
                    check_reduction(r, &x, mask, tolerance);
                    swap_axes(&x, 0, 2);
                    check_reduction(r, &x, mask, tolerance);
                    restride(&x, -2);
                    check_reduction(r, &x, mask, tolerance);
                    unmake(&x);
                }
            }
        }
    }
}

static void reductions_of_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1,  2,   15,  16,  17,   63,   64,
                                    65, 127, 129, 513, 4095, 4097, 140000};
    for (uint32_t k = 0; k < sizeof(reductions) / sizeof(reductions[0]); k++) {
        for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            tensor x;
            if (reductions[k].op == BURN_OP_PROD && sizes[s] > 1000) {
                continue;
            }
            make1(&x, BURN_F32, sizes[s]);
            fill_for(&reductions[k], &x);
            check_reduction(&reductions[k], &x, 1, reductions[k].tolerance);
            unmake(&x);
        }
    }
}

/* The sum of many equal numbers: one chain in f32 would be off by far more. */
static void long_sums_are_accurate(void **state)
{
    (void)state;
    int64_t dims[2] = {300000, 3};
    burn_attrs_axes rows = axes_of(1, 0, 0);
    burn_attrs_axes all = axes_of(0, 0, 0);
    tensor x;
    tensor z;
    tensor total;
    make(&x, BURN_F32, 2, dims);
    make1(&z, BURN_F32, 3);
    make(&total, BURN_F32, 0, NULL);
    for (int64_t i = 0; i < numel(&x); i++) {
        put(&x, i, 0.1);
    }
    double one = get(&x, 0);
    assert_int_equal(run1(BURN_OP_SUM, &rows, &x, &z), BURN_OK);
    assert_int_equal(run1(BURN_OP_SUM, &all, &x, &total), BURN_OK);
    for (int64_t i = 0; i < 3; i++) {
        assert_true(fabs(get(&z, i) / (one * 300000.0) - 1.0) < 1e-6);
    }
    assert_true(fabs(get(&total, 0) / (one * 900000.0) - 1.0) < 1e-6);
    unmake(&x);
    unmake(&z);
    unmake(&total);
}

static int64_t arg(uint64_t op, tensor *x, int64_t axis, int64_t row)
{
    burn_attrs_axis a = axis_of(axis);
    int64_t dims[BURN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->o.rank; i++) {
        if ((int64_t)i != axis) {
            dims[n++] = x->dims[i];
        }
    }
    tensor z;
    make(&z, BURN_I64, n, dims);
    assert_int_equal(run1(op, &a, x, &z), BURN_OK);
    int64_t at = (int64_t)get(&z, row);
    unmake(&z);
    return at;
}

static void extremes_propagate_nan_B001(void **state)
{
    (void)state;
    static const int64_t sizes[] = {2, 3, 4, 17, 64, 65, 513, 1023, 4097, 140001};
    for (uint8_t dtype = BURN_F16; dtype <= BURN_F64; dtype++) {
        for (uint32_t s = 0; s < 10; s++) {
            int64_t n = sizes[s];
            int64_t places[] = {0, 1, n / 2, n - 1};
            for (uint32_t p = 0; p < 4; p++) {
                burn_attrs_axes a = axes_of(0, 0, 0);
                tensor x;
                tensor z;
                make1(&x, dtype, n);
                make(&z, dtype, 0, NULL);
                for (int64_t i = 0; i < n; i++) {
                    put(&x, i, i == places[p] ? (double)NAN : (double)(i % 5));
                }
                put(&x, n - 1, (double)NAN);
                assert_int_equal(run1(BURN_OP_MAX, &a, &x, &z), BURN_OK);
                assert_true(isnan(get(&z, 0)));
                assert_int_equal(run1(BURN_OP_MIN, &a, &x, &z), BURN_OK);
                assert_true(isnan(get(&z, 0)));
                assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 0), places[p]);
                assert_int_equal(arg(BURN_OP_ARGMIN, &x, 0, 0), places[p]);
                unmake(&x);
                unmake(&z);
            }
        }
    }
    /* Along another axis: columns [1, 1], [NaN, 4], [3, 3], [2, 2]. */
    static const double v[] = {1, (double)NAN, 3, 2, 1, 4, 3, 2};
    int64_t dims[2] = {2, 4};
    tensor x;
    make(&x, BURN_F32, 2, dims);
    for (int64_t i = 0; i < 8; i++) {
        put(&x, i, v[i]);
    }
    assert_int_equal(arg(BURN_OP_ARGMAX, &x, 1, 0), 1);
    assert_int_equal(arg(BURN_OP_ARGMAX, &x, 1, 1), 1);
    assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 1), 0);
    assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 0), 0);
    unmake(&x);
}

static void arg_of_all_nan_B003(void **state)
{
    (void)state;
    tensor x;
    make1(&x, BURN_F32, 5);
    for (int64_t i = 0; i < 5; i++) {
        put(&x, i, (double)NAN);
    }
    assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 0), 0);
    assert_int_equal(arg(BURN_OP_ARGMIN, &x, 0, 0), 0);
    unmake(&x);
}

static void ties_take_the_lowest_index_B005(void **state)
{
    (void)state;
    static const double v[] = {3, 3, -2, -2};
    static const uint8_t dtypes[] = {BURN_F32, BURN_I32, BURN_F16, BURN_I64, BURN_I8};
    for (uint32_t d = 0; d < 5; d++) {
        tensor x;
        make_values(&x, dtypes[d], 4, v);
        assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 0), 0);
        assert_int_equal(arg(BURN_OP_ARGMIN, &x, 0, 0), 2);
        unmake(&x);
        make1(&x, dtypes[d], 4096);
        for (int64_t i = 0; i < 4096; i++) {
            put(&x, i, i == 7 || i == 4001 ? 100.0 : (double)(i % 50));
        }
        assert_int_equal(arg(BURN_OP_ARGMAX, &x, 0, 0), 7);
        unmake(&x);
    }
}

static double truth(uint64_t op, uint8_t dtype, int64_t n, const double *v)
{
    burn_attrs_axes a = axes_of(0, 0, 0);
    tensor x;
    tensor z;
    make_values(&x, dtype, n, v);
    make(&z, BURN_BOOL, 0, NULL);
    assert_int_equal(run1(op, &a, &x, &z), BURN_OK);
    double result = get(&z, 0);
    unmake(&x);
    unmake(&z);
    return result;
}

static void any_and_all_B011(void **state)
{
    (void)state;
    static const double minus_zero[] = {-0.0};
    static const double tiny[] = {1e-45};
    static const double nan_value[] = {(double)NAN};
    static const double odd_bools[] = {255, 3, 1, 128, 2, 64};
    assert_true(truth(BURN_OP_ANY, BURN_F32, 1, minus_zero) == 0.0);
    assert_true(truth(BURN_OP_ANY, BURN_F16, 1, minus_zero) == 0.0);
    assert_true(truth(BURN_OP_ANY, BURN_F32, 1, tiny) == 1.0);
    assert_true(truth(BURN_OP_ANY, BURN_F32, 1, nan_value) == 1.0);
    assert_true(truth(BURN_OP_ALL, BURN_BOOL, 6, odd_bools) == 1.0);
    assert_true(truth(BURN_OP_ANY, BURN_BOOL, 6, odd_bools) == 1.0);
    assert_true(truth(BURN_OP_ALL, BURN_I32, 0, NULL) == 1.0);
    assert_true(truth(BURN_OP_ANY, BURN_I32, 0, NULL) == 0.0);
}

static void products_B015(void **state)
{
    (void)state;
    static const double with_nan[] = {1, (double)NAN, 0, 2};
    static const double negative[] = {-2, 3, -4};
    burn_attrs_axes a = axes_of(0, 0, 0);
    tensor x;
    tensor z;
    make(&z, BURN_F32, 0, NULL);
    make_values(&x, BURN_F32, 4, with_nan);
    assert_int_equal(run1(BURN_OP_PROD, &a, &x, &z), BURN_OK);
    assert_true(isnan(get(&z, 0)));
    unmake(&x);
    make_values(&x, BURN_F32, 3, negative);
    assert_int_equal(run1(BURN_OP_PROD, &a, &x, &z), BURN_OK);
    assert_true(get(&z, 0) == 24.0);
    unmake(&x);
    unmake(&z);
}

static void axes_of_length_zero_B022(void **state)
{
    (void)state;
    static const uint64_t ops[] = {BURN_OP_SUM, BURN_OP_PROD, BURN_OP_MEAN, BURN_OP_VAR,
                                   BURN_OP_LOGSUMEXP};
    static const double want[] = {0.0, 1.0, (double)NAN, (double)NAN, -(double)INFINITY};
    burn_attrs_axes a = axes_of(1, 1, 0);
    for (uint8_t dtype = BURN_F16; dtype <= BURN_F64; dtype++) {
        for (int64_t rows = 0; rows <= 3; rows += 3) {
            int64_t dims[2] = {rows, 0};
            tensor x;
            tensor z;
            make(&x, dtype, 2, dims);
            make1(&z, dtype, rows);
            for (uint32_t k = 0; k < 5; k++) {
                assert_int_equal(run1(ops[k], &a, &x, &z), BURN_OK);
                for (int64_t i = 0; i < rows; i++) {
                    double got = get(&z, i);
                    assert_true(isnan(want[k]) ? isnan(got) : got == want[k]);
                }
            }
            assert_int_equal(run1(BURN_OP_MAX, &a, &x, &z), BURN_E_SHAPE);
            assert_int_equal(run1(BURN_OP_MIN, &a, &x, &z), BURN_E_SHAPE);
            unmake(&x);
            unmake(&z);
        }
    }
}

/* As softmax: nothing but -inf has no shift. Once by rows, once cut into parts. */
static void logsumexp_of_nothing_but_minus_inf(void **state)
{
    (void)state;
    static const int64_t lengths[] = {3, 1 << 20};
    burn_attrs_axes a = axes_of(0, 0, 0);
    for (uint32_t k = 0; k < 2; k++) {
        tensor x;
        tensor z;
        make1(&x, BURN_F32, lengths[k]);
        make1(&z, BURN_F32, 1);
        for (int64_t i = 0; i < lengths[k]; i++) {
            put(&x, i, -(double)INFINITY);
        }
        assert_int_equal(run1(BURN_OP_LOGSUMEXP, &a, &x, &z), BURN_OK);
        assert_true(isnan(get(&z, 0)));
        put(&x, 1, 2.0);
        assert_int_equal(run1(BURN_OP_LOGSUMEXP, &a, &x, &z), BURN_OK);
        assert_true(get(&z, 0) == 2.0);
        unmake(&x);
        unmake(&z);
    }
}

static void var_of_one_element_B064(void **state)
{
    (void)state;
    static const double five[] = {5};
    burn_attrs_axes a = axes_of(0, 0, 0);
    tensor x;
    tensor z;
    make_values(&x, BURN_F32, 1, five);
    make(&z, BURN_F32, 0, NULL);
    assert_int_equal(run1(BURN_OP_VAR, &a, &x, &z), BURN_OK);
    assert_true(isnan(get(&z, 0)));
    a.correction = 0;
    assert_int_equal(run1(BURN_OP_VAR, &a, &x, &z), BURN_OK);
    assert_true(get(&z, 0) == 0.0);
    unmake(&x);
    unmake(&z);
}

static void half_means_B066(void **state)
{
    (void)state;
    static const double value[] = {767.5, 1.0};
    static const int64_t n[] = {256, 70000};
    burn_attrs_axes a = axes_of(0, 0, 0);
    for (uint32_t k = 0; k < 2; k++) {
        tensor x;
        tensor z;
        make1(&x, BURN_F16, n[k]);
        make(&z, BURN_F16, 0, NULL);
        for (int64_t i = 0; i < n[k]; i++) {
            put(&x, i, value[k]);
        }
        assert_int_equal(run1(BURN_OP_MEAN, &a, &x, &z), BURN_OK);
        assert_true(get(&z, 0) == value[k]);
        unmake(&x);
        unmake(&z);
    }
}

/* Two-pass: the variance of numbers far from zero (the kernel behind B060). */
static void var_with_a_large_mean_B060(void **state)
{
    (void)state;
    static const double v[] = {80000, 80001, 80002, 80003};
    burn_attrs_axes a = axes_of(0, 0, 0);
    tensor x;
    tensor z;
    make_values(&x, BURN_F32, 4, v);
    make(&z, BURN_F32, 0, NULL);
    a.correction = 0;
    assert_int_equal(run1(BURN_OP_VAR, &a, &x, &z), BURN_OK);
    assert_true(get(&z, 0) == 1.25);
    unmake(&x);
    unmake(&z);
}

static void cumsum_along_each_axis(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F16, BURN_I32, BURN_I8};
    static const int64_t shapes[][3] = {{3, 4, 5}, {2, 1, 300}, {2, 300, 1}, {1, 9, 257}};
    for (uint32_t d = 0; d < 4; d++) {
        for (uint32_t s = 0; s < 4; s++) {
            for (int64_t axis = 0; axis < 3; axis++) {
                burn_attrs_axis a = axis_of(axis);
                tensor x;
                tensor z;
                make(&x, dtypes[d], 3, shapes[s]);
                make(&z, dtypes[d], 3, shapes[s]);
                for (int64_t i = 0; i < numel(&x); i++) {
                    put(&x, i, (double)(i % 2));
                }
                assert_int_equal(run1(BURN_OP_CUMSUM, &a, &x, &z), BURN_OK);
                int64_t inner = x.strides[axis];
                for (int64_t i = 0; i < numel(&x); i++) {
                    int64_t first = i / inner % shapes[s][axis] == 0;
                    double before = first ? 0.0 : get(&z, i - inner);
                    double want = before + get(&x, i);
                    want = dtypes[d] == BURN_I8 && want > 127 ? want - 256 : want;
                    assert_true(get(&z, i) == want);
                }
                unmake(&x);
                unmake(&z);
            }
        }
    }
}

static void copies_of_any_strides(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_U8, BURN_F16, BURN_F32, BURN_I64};
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {3, 5, 7}, {2, 67, 130}, {17, 1, 16}, {300, 5, 33}};
    for (uint32_t d = 0; d < 4; d++) {
        for (uint32_t s = 0; s < 5; s++) {
            for (uint32_t how = 0; how < 6; how++) {
                tensor x;
                tensor z;
                make(&x, dtypes[d], 3, shapes[s]);
                for (int64_t i = 0; i < numel(&x); i++) {
                    put(&x, i, (double)(i % 251));
                }
                if (how == 1 || how == 5) {
                    swap_axes(&x, 0, 2);
                } else if (how == 2) {
                    swap_axes(&x, 1, 2);
                } else if (how == 3) {
                    swap_axes(&x, 0, 1);
                } else if (how == 4) {
                    restride(&x, -2);
                }
                if (how == 5) {
                    swap_axes(&x, 0, 1);
                }
                make(&z, dtypes[d], 3, x.dims);
                assert_int_equal(run1(BURN_OP_COPY, NULL, &x, &z), BURN_OK);
                for (int64_t i = 0; i < numel(&z); i++) {
                    assert_true(get(&z, i) == get(&x, i));
                }
                unmake(&x);
                unmake(&z);
            }
        }
    }
}

static void cat_pad_and_slices(void **state)
{
    (void)state;
    int64_t da[2] = {2, 3};
    int64_t db[2] = {2, 1};
    int64_t dz[2] = {2, 4};
    burn_attrs_axis a = axis_of(1);
    tensor x;
    tensor y;
    tensor z;
    make(&x, BURN_F32, 2, da);
    make(&y, BURN_F32, 2, db);
    make(&z, BURN_F32, 2, dz);
    for (int64_t i = 0; i < 6; i++) {
        put(&x, i, (double)i);
    }
    put(&y, 0, 10);
    put(&y, 1, 11);
    assert_int_equal(run2(BURN_OP_CAT, &a, &x, &y, &z), BURN_OK);
    static const double joined[] = {0, 1, 2, 10, 3, 4, 5, 11};
    for (int64_t i = 0; i < 8; i++) {
        assert_true(get(&z, i) == joined[i]);
    }
    burn_attrs_pad p;
    memset(&p, 0, sizeof(p));
    p.head.size = (uint32_t)sizeof(p);
    p.n_dims = 2;
    p.before[1] = 2;
    p.after[1] = -1;
    tensor seven;
    make_imm(&seven, BURN_F32, 7);
    assert_int_equal(run2(BURN_OP_PAD, &p, &x, &seven, &z), BURN_OK);
    static const double padded[] = {7, 7, 0, 1, 7, 7, 3, 4};
    for (int64_t i = 0; i < 8; i++) {
        assert_true(get(&z, i) == padded[i]);
    }
    burn_attrs_slice s = {{(uint32_t)sizeof(s), 1}, 1, 1, -2};
    tensor start;
    make_imm(&start, BURN_I64, 2);
    tensor w;
    make(&w, BURN_F32, 2, da);
    tensor *in[3] = {&x, &y, &start};
    tensor *out[1] = {&w};
    assert_int_equal(run(BURN_OP_SLICE_ASSIGN, &s, 3, in, 1, out), BURN_OK);
    static const double assigned[] = {0, 1, 10, 3, 4, 11};
    for (int64_t i = 0; i < 6; i++) {
        assert_true(get(&w, i) == assigned[i]);
    }
    s.size = 3;
    assert_int_equal(run(BURN_OP_SLICE_ASSIGN, &s, 3, in, 1, out), BURN_E_INVALID);
    unmake(&x);
    unmake(&y);
    unmake(&z);
    unmake(&w);
    unmake(&seven);
    unmake(&start);
}

static void fills_and_ranges(void **state)
{
    (void)state;
    for (uint8_t dtype = BURN_U8; dtype <= BURN_F64; dtype++) {
        tensor value;
        tensor step;
        tensor z;
        make_imm(&value, dtype, 3);
        make_imm(&step, dtype, 2);
        make1(&z, dtype, 40);
        assert_int_equal(run1(BURN_OP_FILL, NULL, &value, &z), BURN_OK);
        for (int64_t i = 0; i < 40; i++) {
            assert_true(get(&z, i) == 3.0);
        }
        assert_int_equal(run2(BURN_OP_ARANGE, NULL, &value, &step, &z), BURN_OK);
        for (int64_t i = 0; i < 40; i++) {
            assert_true(get(&z, i) == 3.0 + 2.0 * (double)i);
        }
        unmake(&value);
        unmake(&step);
        unmake(&z);
    }
}

static void gathers_and_scatters(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F16, BURN_I8, BURN_U64};
    static const int64_t xd[3] = {4, 5, 300};
    static const int64_t id[][3] = {{7, 5, 299}, {3, 9, 300}, {4, 5, 11}};
    for (uint32_t d = 0; d < 4; d++) {
        for (int64_t axis = 0; axis < 3; axis++) {
            for (uint32_t mode = 0; mode < 5; mode++) {
                burn_attrs_axis a = axis_of(axis);
                burn_attrs_scatter sc = {{(uint32_t)sizeof(sc), 1}, axis, mode, 0};
                uint8_t index_type = mode % 2 == 0 ? BURN_I64 : BURN_I32;
                tensor x;
                tensor index;
                tensor v;
                tensor z;
                make(&x, dtypes[d], 3, xd);
                make(&index, index_type, 3, id[axis]);
                make(&v, dtypes[d], 3, id[axis]);
                make(&z, dtypes[d], 3, xd);
                for (int64_t i = 0; i < numel(&x); i++) {
                    put(&x, i, (double)(i % 5));
                }
                for (int64_t i = 0; i < numel(&index); i++) {
                    put(&index, i, floor(next_random(0, (double)xd[axis])));
                    put(&v, i, mode == BURN_SCATTER_MUL ? 1.0 : (double)(i % 7));
                }
                tensor *in[3] = {&x, &index, &v};
                tensor *out[1] = {&z};
                assert_int_equal(run(BURN_OP_SCATTER, &sc, 3, in, 1, out), BURN_OK);
                double *want = malloc(sizeof(double) * 6000);
                for (int64_t i = 0; i < 6000; i++) {
                    want[i] = get(&x, i);
                }
                tensor g;
                make(&g, dtypes[d], 3, id[axis]);
                tensor *gin[2] = {&x, &index};
                tensor *gout[1] = {&g};
                assert_int_equal(run(BURN_OP_GATHER, &a, 2, gin, 1, gout), BURN_OK);
                for (int64_t k = 0; k < numel(&index); k++) {
                    int64_t p[3] = {k / id[axis][2] / id[axis][1], k / id[axis][2] % id[axis][1],
                                    k % id[axis][2]};
                    p[axis] = (int64_t)get(&index, k);
                    int64_t at = (p[0] * 5 + p[1]) * 300 + p[2];
                    assert_true(get(&g, k) == get(&x, at));
                    double y = get(&v, k);
                    double old = want[at];
                    double by_mode[] = {y, old + y, old * y, old < y ? old : y, old > y ? old : y};
                    want[at] = by_mode[mode];
                }
                for (int64_t i = 0; i < 6000; i++) {
                    assert_true(get(&z, i) == want[i]);
                }
                free(want);
                unmake(&x);
                unmake(&index);
                unmake(&v);
                unmake(&z);
                unmake(&g);
            }
        }
    }
}

static void indices_out_of_range_B088(void **state)
{
    (void)state;
    static const double indices[][3] = {{0, 1, 3}, {0, -1, 2}};
    static const char *const values[] = {"index 3 at position 2", "index -1 at position 1"};
    int64_t dims[2] = {3, 2};
    tensor table;
    make(&table, BURN_F32, 2, dims);
    for (int64_t i = 0; i < 6; i++) {
        put(&table, i, (double)i);
    }
    for (uint32_t k = 0; k < 2; k++) {
        burn_attrs_axis a = axis_of(0);
        burn_attrs_one_hot oh = {{(uint32_t)sizeof(oh), 1}, 3, BURN_F32, 0};
        tensor index;
        tensor z;
        int64_t od[2] = {3, 2};
        int64_t hd[2] = {3, 3};
        make_values(&index, BURN_I64, 3, indices[k]);
        make(&z, BURN_F32, 2, od);
        assert_int_equal(run2(BURN_OP_EMBEDDING, NULL, &table, &index, &z), BURN_E_DATA);
        assert_non_null(strstr(fixture_error.text, values[k]));
        assert_non_null(strstr(fixture_error.text, "size 3"));
        assert_int_equal(run2(BURN_OP_SELECT, &a, &table, &index, &z), BURN_E_DATA);
        unmake(&z);
        make(&z, BURN_F32, 2, hd);
        assert_int_equal(run1(BURN_OP_ONE_HOT, &oh, &index, &z), BURN_E_DATA);
        assert_non_null(strstr(fixture_error.text, values[k]));
        unmake(&z);
        unmake(&index);
    }
    static const double good[] = {2, 0, 1};
    tensor index;
    tensor z;
    make_values(&index, BURN_I32, 3, good);
    make(&z, BURN_F32, 2, dims);
    assert_int_equal(run2(BURN_OP_EMBEDDING, NULL, &table, &index, &z), BURN_OK);
    assert_true(get(&z, 0) == 4 && get(&z, 1) == 5 && get(&z, 2) == 0 && get(&z, 5) == 3);
    unmake(&index);
    unmake(&z);
    unmake(&table);
}

static void random_bits_are_philox(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 17, 1025, 20001};
    static const uint64_t seed = UINT64_C(0x123456789abcdef0);
    static const uint64_t counter = UINT64_C(0xfffffffd);
    for (uint32_t s = 0; s < 4; s++) {
        tensor seeds;
        tensor counters;
        tensor p;
        tensor bits;
        tensor uniform;
        tensor normal;
        tensor coin;
        int64_t n = sizes[s];
        make_imm_u64(&seeds, seed);
        make_imm_u64(&counters, counter);
        make_imm(&p, BURN_F64, 0.25);
        make1(&bits, BURN_U32, n);
        make1(&uniform, BURN_F32, n);
        make1(&normal, BURN_F32, n);
        make1(&coin, BURN_BOOL, n);
        assert_int_equal(run2(BURN_OP_RANDOM_BITS, NULL, &seeds, &counters, &bits), BURN_OK);
        assert_int_equal(run2(BURN_OP_RANDOM_UNIFORM, NULL, &seeds, &counters, &uniform), BURN_OK);
        assert_int_equal(run2(BURN_OP_RANDOM_NORMAL, NULL, &seeds, &counters, &normal), BURN_OK);
        tensor *in[3] = {&p, &seeds, &counters};
        tensor *out[1] = {&coin};
        assert_int_equal(run(BURN_OP_BERNOULLI, NULL, 3, in, 1, out), BURN_OK);
        for (int64_t i = 0; i < n; i++) {
            uint32_t block[4];
            burn_philox(seed, counter + (uint64_t)i / 4, block);
            double u = (double)(block[i % 4] >> 8) * 0x1p-24;
            double first = (double)(block[i % 4 / 2 * 2] >> 8) * 0x1p-24;
            double second = (double)(block[i % 4 / 2 * 2 + 1] >> 8) * 0x1p-24;
            double angle = 2.0 * acos(-1.0) * second;
            double z = sqrt(-2.0 * log1p(-first)) * (i % 2 == 0 ? cos(angle) : sin(angle));
            assert_true(get(&bits, i) == (double)block[i % 4]);
            assert_true(get(&uniform, i) == u);
            assert_true(get(&coin, i) == (double)(u < 0.25));
            assert_true(fabs(get(&normal, i) - z) < 2e-7 * (fabs(z) + 1e-3));
        }
        unmake(&seeds);
        unmake(&counters);
        unmake(&p);
        unmake(&bits);
        unmake(&uniform);
        unmake(&normal);
        unmake(&coin);
    }
}

static void random_in_other_dtypes(void **state)
{
    (void)state;
    for (uint8_t dtype = BURN_F16; dtype <= BURN_F64; dtype++) {
        tensor seeds;
        tensor counters;
        tensor u;
        tensor z;
        double sum = 0.0;
        double squares = 0.0;
        make_imm_u64(&seeds, 7);
        make_imm_u64(&counters, 0);
        make1(&u, dtype, 100001);
        make1(&z, dtype, 100001);
        assert_int_equal(run2(BURN_OP_RANDOM_UNIFORM, NULL, &seeds, &counters, &u), BURN_OK);
        assert_int_equal(run2(BURN_OP_RANDOM_NORMAL, NULL, &seeds, &counters, &z), BURN_OK);
        for (int64_t i = 0; i < 100001; i++) {
            assert_true(get(&u, i) >= 0.0 && get(&u, i) < 1.0);
            sum += get(&z, i);
            squares += get(&z, i) * get(&z, i);
        }
        assert_true(fabs(sum / 100001.0) < 0.02);
        assert_true(fabs(squares / 100001.0 - 1.0) < 0.03);
        unmake(&seeds);
        unmake(&counters);
        unmake(&u);
        unmake(&z);
    }
}

static void dropout_keeps_and_scales(void **state)
{
    (void)state;
    static const double chances[] = {0.0, 0.5, 1.0};
    for (uint8_t dtype = BURN_F16; dtype <= BURN_F64; dtype++) {
        for (uint32_t k = 0; k < 3; k++) {
            tensor x;
            tensor p;
            tensor seeds;
            tensor counters;
            tensor z;
            make1(&x, dtype, 1001);
            make1(&z, dtype, 1001);
            make_imm(&p, BURN_F64, chances[k]);
            make_imm_u64(&seeds, 3);
            make_imm_u64(&counters, 11);
            for (int64_t i = 0; i < 1001; i++) {
                put(&x, i, 1.0 + (double)(i % 3));
            }
            restride(&x, 2);
            tensor *in[4] = {&x, &p, &seeds, &counters};
            tensor *out[1] = {&z};
            assert_int_equal(run(BURN_OP_DROPOUT, NULL, 4, in, 1, out), BURN_OK);
            for (int64_t i = 0; i < 1001; i++) {
                uint32_t block[4];
                burn_philox(3, 11 + (uint64_t)i / 4, block);
                int kept = burn_philox_uniform32(block[i % 4]) >= (float)chances[k];
                double want = kept ? get(&x, i) / (1.0 - chances[k]) : 0.0;
                assert_true(get(&z, i) == want);
            }
            unmake(&x);
            unmake(&p);
            unmake(&seeds);
            unmake(&counters);
            unmake(&z);
        }
    }
}

/* Sums, a transposition and normals of a size that is cut into tasks. */
static void large_work(float *out)
{
    int64_t dims[2] = {700, 900};
    tensor x;
    tensor y;
    tensor rows;
    tensor columns;
    tensor all;
    tensor seeds;
    tensor counters;
    make(&x, BURN_F32, 2, dims);
    make1(&rows, BURN_F32, 700);
    make1(&columns, BURN_F32, 900);
    make(&all, BURN_F32, 0, NULL);
    make_imm_u64(&seeds, 1);
    make_imm_u64(&counters, 0);
    (void)run2(BURN_OP_RANDOM_NORMAL, NULL, &seeds, &counters, &x);
    (void)run1(BURN_OP_EXP, NULL, &x, &x);
    burn_attrs_axes a0 = axes_of(1, 0, 0);
    burn_attrs_axes a1 = axes_of(1, 1, 0);
    burn_attrs_axes every = axes_of(0, 0, 0);
    (void)run1(BURN_OP_SUM, &a1, &x, &rows);
    (void)run1(BURN_OP_SUM, &a0, &x, &columns);
    (void)run1(BURN_OP_SUM, &every, &x, &all);
    swap_axes(&x, 0, 1);
    make(&y, BURN_F32, 2, x.dims);
    (void)run1(BURN_OP_COPY, NULL, &x, &y);
    memcpy(out, rows.memory, 700 * 4);
    memcpy(out + 700, columns.memory, 900 * 4);
    memcpy(out + 1600, all.memory, 4);
    memcpy(out + 1601, y.memory, 630000 * 4);
    unmake(&x);
    unmake(&y);
    unmake(&rows);
    unmake(&columns);
    unmake(&all);
    unmake(&seeds);
    unmake(&counters);
}

enum { LARGE = 1601 + 630000 };

static void results_do_not_depend_on_threads(void **state)
{
    (void)state;
    float *one = malloc(sizeof(float) * LARGE);
    float *more = malloc(sizeof(float) * LARGE);
    fixture_threads(1);
    large_work(one);
    for (uint32_t n = 2; n <= 7; n++) {
        fixture_threads(n);
        large_work(more);
        assert_memory_equal(one, more, sizeof(float) * LARGE);
    }
    fixture_threads(4);
    free(one);
    free(more);
}

static void *worker(void *out)
{
    for (int i = 0; i < 5; i++) {
        large_work(out);
    }
    return NULL;
}

static void threads_may_call_at_once(void **state)
{
    (void)state;
    enum { N = 4 };
    pthread_t threads[N];
    float *out[N];
    for (int i = 0; i < N; i++) {
        out[i] = malloc(sizeof(float) * LARGE);
        assert_int_equal(pthread_create(&threads[i], NULL, worker, out[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (int i = 1; i < N; i++) {
        assert_memory_equal(out[0], out[i], sizeof(float) * LARGE);
    }
    for (int i = 0; i < N; i++) {
        free(out[i]);
    }
}

#if BURN_SANITIZER != 2 /* its runtime starts no threads in a child of fork */
static void children_of_fork_compute(void **state)
{
    (void)state;
    if (getenv("BURN_TEST_EMULATED") != NULL) {
        skip(); /* qemu's user mode has no threads in a child */
    }
    float *here = malloc(sizeof(float) * LARGE);
    float *there = malloc(sizeof(float) * LARGE);
    large_work(here);
    pid_t child = fork();
    if (child == 0) {
        large_work(there);
        _exit(memcmp(here, there, sizeof(float) * LARGE) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free(here);
    free(there);
}
#endif

static void the_device(void **state)
{
    (void)state;
    const burn_device_api *api = fixture_plugin()->device;
    burn_err err = BURN_ERR_INIT;
    burn_device_info info;
    burn_limits limits;
    burn_backend_device *dev = NULL;
    burn_queue *queue = NULL;
    uint32_t count = 0;
    assert_int_equal(api->count(&count, &err), BURN_OK);
    assert_int_equal(count, 1);
    BURN_INIT(&info, burn_device_info);
    assert_int_equal(api->probe(0, &info, &err), BURN_OK);
    assert_true(info.name[0] != '\0' && info.isa[0] != '\0');
    assert_int_equal(api->probe(1, &info, &err), BURN_E_NOT_FOUND);
    assert_int_equal(api->open(0, "speed=9", &dev, &err), BURN_E_INVALID);
    assert_int_equal(api->open(0, NULL, &dev, &err), BURN_OK);
    BURN_INIT(&limits, burn_limits);
    assert_int_equal(api->limits(dev, &limits, &err), BURN_OK);
    assert_true((limits.flags & BURN_LIMIT_SYNCHRONOUS) != 0);
    assert_int_equal(api->queue_create(dev, &queue, &err), BURN_OK);
    static const uint64_t sizes[] = {0, 1, 100, 3 << 20};
    for (uint32_t i = 0; i < 4; i++) {
        burn_buffer *buffer = NULL;
        void *host = NULL;
        char data[4] = "abc";
        char back[4] = {0};
        assert_int_equal(api->alloc(dev, BURN_MEMORY_DEVICE, sizes[i], &buffer, &host, &err),
                         BURN_OK);
        assert_int_equal((uintptr_t)host % limits.suballoc_align, 0);
        assert_int_equal(api->fill(queue, buffer, 0, sizes[i], 0, &err), BURN_OK);
        if (sizes[i] > 8) {
            assert_int_equal(api->copy_in(queue, buffer, 4, data, 4, &err), BURN_OK);
            assert_int_equal(api->copy_within(queue, buffer, 50, buffer, 4, 4, &err), BURN_OK);
            assert_int_equal(api->copy_out(queue, back, buffer, 50, 4, &err), BURN_OK);
            assert_string_equal(back, "abc");
        }
        assert_int_equal(api->copy_in(queue, buffer, sizes[i], data, 1, &err), BURN_E_INTERNAL);
        api->free(dev, buffer);
    }
    uint64_t reached = 1;
    burn_buffer *huge = NULL;
    void *host = NULL;
    assert_int_equal(api->alloc(dev, BURN_MEMORY_DEVICE, UINT64_MAX / 2, &huge, &host, &err),
                     BURN_E_NO_MEMORY);
    /* More than the machine has is an error of the call: writing to it would end the process. */
    uint64_t unused = 0;
    uint64_t total = 0;
    assert_int_equal(api->memory_info(dev, &unused, &total, &err), BURN_OK);
    assert_true(total > 0);
    assert_int_equal(api->alloc(dev, BURN_MEMORY_DEVICE, total + total / 2, &huge, &host, &err),
                     BURN_E_NO_MEMORY);
    assert_int_equal(api->signal(queue, 5, &err), BURN_OK);
    assert_int_equal(api->reached(queue, &reached, &err), BURN_OK);
    assert_int_equal(reached, 5);
    assert_int_equal(api->host_wait(queue, 6, 0, &err), BURN_E_STATE);
    api->queue_destroy(queue);
    api->close(dev);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device),
        cmocka_unit_test(reductions_over_any_axes),
        cmocka_unit_test(reductions_of_sizes),
        cmocka_unit_test(long_sums_are_accurate),
        cmocka_unit_test(extremes_propagate_nan_B001),
        cmocka_unit_test(arg_of_all_nan_B003),
        cmocka_unit_test(ties_take_the_lowest_index_B005),
        cmocka_unit_test(any_and_all_B011),
        cmocka_unit_test(products_B015),
        cmocka_unit_test(axes_of_length_zero_B022),
        cmocka_unit_test(var_with_a_large_mean_B060),
        cmocka_unit_test(logsumexp_of_nothing_but_minus_inf),
        cmocka_unit_test(var_of_one_element_B064),
        cmocka_unit_test(half_means_B066),
        cmocka_unit_test(cumsum_along_each_axis),
        cmocka_unit_test(copies_of_any_strides),
        cmocka_unit_test(cat_pad_and_slices),
        cmocka_unit_test(fills_and_ranges),
        cmocka_unit_test(gathers_and_scatters),
        cmocka_unit_test(indices_out_of_range_B088),
        cmocka_unit_test(random_bits_are_philox),
        cmocka_unit_test(random_in_other_dtypes),
        cmocka_unit_test(dropout_keeps_and_scales),
        cmocka_unit_test(results_do_not_depend_on_threads),
        cmocka_unit_test(threads_may_call_at_once),
#if BURN_SANITIZER != 2
        cmocka_unit_test(children_of_fork_compute),
#endif
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
