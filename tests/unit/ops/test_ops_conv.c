/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_ops_conv.c - convolutions and pools: every sample (sample_check.h), values of PyTorch
 * (tests/data/conv_values.h) for eval, decomposition and gradients, and reported faults (names with
 * B and a number). Nothing here needs a device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../data/conv_values.h"
#include "ops_help.h"
#include "sample_check.h"

static const burn_op_def *const ops[] = {
    &burn_op_def_conv2d,
    &burn_op_def_conv2d_grad_input,
    &burn_op_def_conv2d_grad_weight,
    &burn_op_def_conv1d,
    &burn_op_def_conv_transpose2d,
    &burn_op_def_max_pool2d,
    &burn_op_def_max_pool2d_grad,
    &burn_op_def_avg_pool2d,
    &burn_op_def_adaptive_avg_pool2d,
    &burn_op_def_adaptive_max_pool2d,
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        assert_int_equal(check_samples(ops[i]), 0);
        assert_non_null(ops[i]->decompose);
        assert_int_equal(ops[i]->vjp != NULL, ops[i]->vjp_saves != NULL);
    }
}

/* A multiplication and an addition for each term: the conformance tool leaves out sizes that are
 * much work, which it cannot where nothing is said. */
static void test_work_of_convolutions(void **state)
{
    (void)state;
    static const struct {
        const burn_op_def *def;
        burn_meta x, w, out;
        uint64_t terms;
    } rows[] = {
        {&burn_op_def_conv1d,
         {.kind = BURN_TENSOR, .rank = 3, .dims = {2, 4, 10}},
         {.kind = BURN_TENSOR, .rank = 3, .dims = {6, 4, 3}},
         {.kind = BURN_TENSOR, .rank = 3, .dims = {2, 6, 8}},
         2 * 6 * 8 * 4 * 3},
        {&burn_op_def_conv2d,
         {.kind = BURN_TENSOR, .rank = 4, .dims = {2, 4, 10, 7}},
         {.kind = BURN_TENSOR, .rank = 4, .dims = {6, 4, 3, 5}},
         {.kind = BURN_TENSOR, .rank = 4, .dims = {2, 6, 8, 3}},
         2 * 6 * 8 * 3 * 4 * 3 * 5},
        {&burn_op_def_conv_transpose2d,
         {.kind = BURN_TENSOR, .rank = 4, .dims = {2, 6, 8, 3}},
         {.kind = BURN_TENSOR, .rank = 4, .dims = {6, 4, 3, 5}},
         {.kind = BURN_TENSOR, .rank = 4, .dims = {2, 4, 10, 7}},
         2 * 6 * 8 * 3 * 4 * 3 * 5},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        const burn_meta *in[2] = {&rows[k].x, &rows[k].w};
        burn_meta out = rows[k].out;
        burn_infer a;
        BURN_INIT(&a, burn_infer);
        a.n_in = 2;
        a.n_out = 1;
        a.in = in;
        a.out = &out;
        assert_non_null(rows[k].def->flops);
        assert_int_equal(rows[k].def->flops(&a), 2 * rows[k].terms);
    }
}

static burn_attrs_conv conv_attrs(int64_t sh, int64_t sw, int64_t ph, int64_t pw)
{
    burn_attrs_conv a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.stride[0] = sh;
    a.stride[1] = sw;
    a.padding[0] = ph;
    a.padding[1] = pw;
    a.dilation[0] = 1;
    a.dilation[1] = 1;
    a.groups = 1;
    return a;
}

static burn_attrs_pool pool_attrs(int64_t kh, int64_t kw, int64_t sh, int64_t sw, int64_t ph,
                                  int64_t pw)
{
    burn_attrs_pool a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.kernel[0] = kh;
    a.kernel[1] = kw;
    a.stride[0] = sh;
    a.stride[1] = sw;
    a.padding[0] = ph;
    a.padding[1] = pw;
    a.dilation[0] = 1;
    a.dilation[1] = 1;
    return a;
}

static burn_value *counting(eval_builder *e, uint32_t rank, const int64_t *dims)
{
    double numbers[256];
    for (int k = 0; k < 256; k++) {
        numbers[k] = k;
    }
    return eval_tensor(e, BURN_F64, rank, dims, numbers);
}

/* ---- values of PyTorch ----------------------------------------------------------------------- */

typedef struct wanted_values {
    const double *y, *gx, *gw, *gb;
    size_t n_y, n_gx, n_gw, n_gb;
} wanted_values;

#define WANTED(name)                                                                               \
    {name##_y, name##_gx, name##_gw, name##_gb, COUNT(name##_y), COUNT(name##_gx),                 \
     COUNT(name##_gw), COUNT(name##_gb)}

static void check_conv(const burn_op_def *def, const burn_attrs_conv *a, uint32_t rank,
                       const int64_t *x, const int64_t *w, wanted_values wanted)
{
    const int64_t bias[1] = {6};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[3] = {salted(e, 1, rank, x), salted(e, 2, rank, w), salted(e, 3, 1, bias)};
        burn_value *out[1];
        burn_value *grads[3];
        (void)run(e, how, def, a, in, 3, out);
        expect_values(out[0], wanted.y, wanted.n_y);
        gradients(e, def, a, in, 3, out, salted_like(e, 9, out[0]), 7, grads);
        expect_values(grads[0], wanted.gx, wanted.n_gx);
        expect_values(grads[1], wanted.gw, wanted.n_gw);
        expect_values(grads[2], wanted.gb, wanted.n_gb);
        eval_builder_free(e);
    }
}

static void test_convolution_values(void **state)
{
    (void)state;
    wanted_values two = WANTED(conv2d);
    wanted_values one = WANTED(conv1d);
    wanted_values transposed = WANTED(conv_transpose2d);
    burn_attrs_conv a = conv_attrs(2, 1, 1, 2);
    a.dilation[1] = 2;
    a.groups = 2;
    check_conv(&burn_op_def_conv2d, &a, 4, (int64_t[]){2, 4, 7, 8}, (int64_t[]){6, 2, 3, 2}, two);
    a = conv_attrs(2, 1, 3, 0);
    a.dilation[0] = 2;
    a.groups = 2;
    check_conv(&burn_op_def_conv1d, &a, 3, (int64_t[]){2, 4, 9}, (int64_t[]){6, 2, 3}, one);
    a = conv_attrs(2, 3, 1, 0);
    a.dilation[0] = 2;
    a.groups = 2;
    a.output_padding[0] = 1;
    a.output_padding[1] = 2;
    check_conv(&burn_op_def_conv_transpose2d, &a, 4, (int64_t[]){2, 4, 3, 4},
               (int64_t[]){4, 3, 3, 2}, transposed);
}

static void test_pool_values(void **state)
{
    (void)state;
    const int64_t dims[4] = {2, 2, 7, 8};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[1] = {salted(e, 1, 4, dims)};
        burn_value *out[2];
        burn_value *grads[1];
        burn_attrs_pool a = pool_attrs(3, 2, 2, 3, 1, 1);
        a.dilation[1] = 2;
        a.ceil_mode = 1;
        (void)run(e, how, &burn_op_def_max_pool2d, &a, in, 1, out);
        EXPECT(out[0], max_pool2d_y);
        EXPECT(out[1], max_pool2d_index);
        gradients(e, &burn_op_def_max_pool2d, &a, in, 1, out, salted_like(e, 9, out[0]), 1, grads);
        EXPECT(grads[0], max_pool2d_gx);
        a = pool_attrs(3, 4, 2, 3, 1, 2);
        a.ceil_mode = 1;
        (void)run(e, how, &burn_op_def_avg_pool2d, &a, in, 1, out);
        EXPECT(out[0], avg_pool2d_y);
        a.count_include_pad = 1;
        (void)run(e, how, &burn_op_def_avg_pool2d, &a, in, 1, out);
        EXPECT(out[0], avg_pool2d_padded_y);
        burn_attrs_adaptive s = {HEAD(burn_attrs_adaptive), {3, 5}};
        (void)run(e, how, &burn_op_def_adaptive_avg_pool2d, &s, in, 1, out);
        EXPECT(out[0], adaptive_avg_pool2d_y);
        (void)run(e, how, &burn_op_def_adaptive_max_pool2d, &s, in, 1, out);
        EXPECT(out[0], adaptive_max_pool2d_y);
        eval_builder_free(e);
    }
}

/* ---- non-finite values ----------------------------------------------------------------------- */

/* The first NaN wins; where all is -inf, the first element of x is meant, not the padding. */
static void test_max_pool_of_special_values(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    const double nan = (double)NAN;
    const double x[9] = {-inf, -inf, 1, -inf, -inf, 2, nan, 3, nan};
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[1] = {eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 3, 3}, x)};
        burn_value *out[2];
        burn_attrs_pool a = pool_attrs(2, 2, 2, 2, 1, 1);
        (void)run(e, how, &burn_op_def_max_pool2d, &a, in, 1, out);
        expect_values(out[0], (double[]){-inf, 1, nan, nan}, 4);
        expect_values(out[1], (double[]){0, 2, 6, 8}, 4);
        burn_attrs_adaptive s = {HEAD(burn_attrs_adaptive), {1, 1}};
        (void)run(e, how, &burn_op_def_adaptive_max_pool2d, &s, in, 1, out);
        expect_values(out[0], &nan, 1);
        eval_builder_free(e);
    }
}

/* An infinity stays within its window; padding next to an infinite weight is 0 * inf. */
static void test_infinities_stay_where_they_belong(void **state)
{
    (void)state;
    const double inf = (double)INFINITY;
    const double nan = (double)NAN;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *out[1];
        burn_value *x = eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 1, 5},
                                    (double[]){inf, 1, 2, 3, 4});
        burn_attrs_adaptive s = {HEAD(burn_attrs_adaptive), {1, 3}};
        (void)run(e, how, &burn_op_def_adaptive_avg_pool2d, &s, &x, 1, out);
        expect_values(out[0], (double[]){inf, 2, 3.5}, 3);
        burn_value *in[3] = {eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 1, 2}, (double[]){1, 2}),
                             eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 1, 2},
                                         (double[]){inf, 1}),
                             NULL};
        burn_attrs_conv a = conv_attrs(1, 1, 0, 1);
        (void)run(e, how, &burn_op_def_conv2d, &a, in, 3, out);
        expect_values(out[0], (double[]){nan, inf, inf}, 3);
        eval_builder_free(e);
    }
}

/* ---- reported faults ------------------------------------------------------------------------- */

/* Windows of a permuted tensor, read through the views' strides. */
static void test_B044_windows_of_a_permuted_input(void **state)
{
    (void)state;
    const burn_meta nhwc = {0, BURN_TENSOR, BURN_F32, 4, 0, {1, 3, 3, 3}};
    const burn_meta windows = {0, BURN_TENSOR, BURN_F32, 5, 0, {1, 3, 2, 3, 2}};
    burn_attrs_permute p = {HEAD(burn_attrs_permute), 4, 0, {0, 3, 1, 2}};
    burn_attrs_unfold u = {HEAD(burn_attrs_unfold), 2, 2, 1, 1};
    const int64_t dense[4] = {27, 9, 3, 1};
    int64_t nchw[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    int64_t offset = 0;
    burn_view a = {0};
    a.struct_size = (uint32_t)sizeof(a);
    a.in = &nhwc;
    a.in_strides = dense;
    a.attrs = &p;
    a.out = &nhwc;
    a.out_strides = nchw;
    a.out_offset = &offset;
    assert_int_equal(burn_op_def_permute.view(&a), BURN_OK);
    a.in_strides = nchw;
    a.attrs = &u;
    a.out = &windows;
    a.out_strides = strides;
    assert_int_equal(burn_op_def_unfold.view(&a), BURN_OK);
    /* batch, channel, window's row, column, row in the window */
    const int64_t wanted[5] = {27, 1, 9, 3, 9};
    assert_memory_equal(strides, wanted, sizeof(wanted));
    assert_int_equal(offset, 0);
}

static void test_B100_ceil_mode(void **state)
{
    (void)state;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *out[2];
        burn_value *x = eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 1, 5},
                                    (double[]){1, 2, 3, 4, 5});
        burn_attrs_pool a = pool_attrs(1, 2, 1, 2, 0, 1);
        a.ceil_mode = 1;
        (void)run(e, how, &burn_op_def_max_pool2d, &a, &x, 1, out);
        expect_values(out[0], (double[]){1, 3, 5}, 3);
        expect_values(out[1], (double[]){0, 2, 4}, 3);
        (void)run(e, how, &burn_op_def_avg_pool2d, &a, &x, 1, out);
        expect_values(out[0], (double[]){1, 2.5, 4.5}, 3);
        x = salted(e, 1, 4, (int64_t[]){1, 1, 6, 7});
        a = pool_attrs(1, 1, 2, 2, 0, 0);
        a.ceil_mode = 1;
        (void)run(e, how, &burn_op_def_max_pool2d, &a, &x, 1, out);
        expect_dims(out[0], 4, (int64_t[]){1, 1, 3, 4});
        x = salted(e, 1, 4, (int64_t[]){1, 1, 5, 5});
        for (int64_t stride = 1; stride <= 7; stride++) {
            a = pool_attrs(7, 7, stride, stride, 0, 0);
            a.ceil_mode = 1;
            (void)run(e, how, &burn_op_def_avg_pool2d, &a, &x, 1, out);
            expect_dims(out[0], 4, (int64_t[]){1, 1, 1, 1});
        }
        eval_builder_free(e);
    }
}

static void test_B102_adaptive_windows(void **state)
{
    (void)state;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *out[1];
        burn_value *x = counting(e, 4, (int64_t[]){1, 1, 1, 10});
        burn_attrs_adaptive s = {HEAD(burn_attrs_adaptive), {1, 3}};
        (void)run(e, how, &burn_op_def_adaptive_avg_pool2d, &s, &x, 1, out);
        expect_values(out[0], (double[]){1.5, 4.5, 7.5}, 3);
        s.size[1] = 4;
        (void)run(e, how, &burn_op_def_adaptive_max_pool2d, &s, &x, 1, out);
        expect_values(out[0], (double[]){2, 4, 7, 9}, 4);
        x = eval_tensor(e, BURN_F64, 4, (int64_t[]){1, 1, 1, 1}, (double[]){7});
        s.size[1] = 5;
        (void)run(e, how, &burn_op_def_adaptive_avg_pool2d, &s, &x, 1, out);
        expect_values(out[0], (double[]){7, 7, 7, 7, 7}, 5);
        x = counting(e, 4, (int64_t[]){1, 1, 1, 5});
        (void)run(e, how, &burn_op_def_adaptive_max_pool2d, &s, &x, 1, out);
        expect_values(out[0], (double[]){0, 1, 2, 3, 4}, 5);
        eval_builder_free(e);
    }
}

static void test_B104_stride_drops_tail_elements(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[3] = {counting(e, 3, (int64_t[]){1, 1, 11}),
                         counting(e, 3, (int64_t[]){1, 1, 4}), NULL};
    burn_value *out[1];
    burn_value *grads[3];
    burn_attrs_conv a = conv_attrs(4, 1, 0, 0);
    (void)run(e, BY_EVAL, &burn_op_def_conv1d, &a, in, 3, out);
    expect_dims(out[0], 3, (int64_t[]){1, 1, 2});
    burn_value *ones = eval_tensor(e, BURN_F64, 3, (int64_t[]){1, 1, 2}, (double[]){1, 1});
    gradients(e, &burn_op_def_conv1d, &a, in, 3, out, ones, 3, grads);
    expect_values(grads[0], (double[]){0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0}, 11);
    expect_values(grads[1], (double[]){4, 6, 8, 10}, 4);
    eval_builder_free(e);
}

static void test_B106_transposed_size_with_dilation(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[3] = {salted(e, 1, 4, (int64_t[]){1, 1, 50, 1}),
                         salted(e, 2, 4, (int64_t[]){1, 1, 3, 1}), NULL};
    burn_value *out[1];
    burn_attrs_conv a = conv_attrs(2, 1, 4, 0);
    a.dilation[0] = 3;
    (void)run(e, BY_EVAL, &burn_op_def_conv_transpose2d, &a, in, 3, out);
    expect_dims(out[0], 4, (int64_t[]){1, 1, 97, 1});
    eval_builder_free(e);
}

static void test_B108_groups_with_more_outputs(void **state)
{
    (void)state;
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        eval_builder *e = eval_builder_new();
        burn_value *in[3] = {counting(e, 4, (int64_t[]){1, 2, 4, 4}),
                             counting(e, 4, (int64_t[]){16, 1, 3, 3}), NULL};
        burn_value *out[1];
        burn_attrs_conv a = conv_attrs(1, 1, 1, 1);
        a.groups = 2;
        (void)run(e, how, &burn_op_def_conv2d, &a, in, 3, out);
        expect_dims(out[0], 4, (int64_t[]){1, 16, 4, 4});
        const double *y = eval_of(out[0])->x.f;
        assert_memory_equal(y, ((double[]){73, 121, 154, 103}), 32);
        assert_memory_equal(y + 16, ((double[]){163, 283, 370, 265}), 32);
        assert_memory_equal(y + 8 * 16, ((double[]){5785, 8857, 9322, 6327}), 32);
        assert_memory_equal(y + 15 * 16 + 12, ((double[]){14641, 22297, 23122, 15631}), 32);
        eval_builder_free(e);
    }
}

/* "same" with an even kernel is a pad of its own and a convolution without padding. */
static void test_B110_same_padding_with_an_even_kernel(void **state)
{
    (void)state;
    const double wanted[2][4] = {{20, 30, 20, 11}, {11, 20, 30, 20}};
    for (int lower = 0; lower < 2; lower++) {
        eval_builder *e = eval_builder_new();
        burn_builder b = eval_builder_of(e);
        burn_value *one = eval_tensor(e, BURN_F64, 3, (int64_t[]){1, 1, 4}, (double[]){1, 2, 3, 4});
        const int64_t before[3] = {0, 0, 1 + lower};
        const int64_t after[3] = {0, 0, 2 - lower};
        burn_value *in[3] = {burn_b_pad(&b, one, before, after, 0.0), one, NULL};
        burn_value *out[1];
        burn_attrs_conv a = conv_attrs(1, 1, 0, 0);
        (void)run(e, BY_DECOMPOSITION, &burn_op_def_conv1d, &a, in, 3, out);
        expect_values(out[0], wanted[lower], 4);
        eval_builder_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_work_of_convolutions),
        cmocka_unit_test(test_convolution_values),
        cmocka_unit_test(test_pool_values),
        cmocka_unit_test(test_max_pool_of_special_values),
        cmocka_unit_test(test_infinities_stay_where_they_belong),
        cmocka_unit_test(test_B044_windows_of_a_permuted_input),
        cmocka_unit_test(test_B100_ceil_mode),
        cmocka_unit_test(test_B102_adaptive_windows),
        cmocka_unit_test(test_B104_stride_drops_tail_elements),
        cmocka_unit_test(test_B106_transposed_size_with_dilation),
        cmocka_unit_test(test_B108_groups_with_more_outputs),
        cmocka_unit_test(test_B110_same_padding_with_an_even_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
