/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_errors.c - failed tensors, and what the texts of failures say.
 *
 * A text names the op, the argument and the values. Shapes that overflow (B052) and dims of size 0
 * (B020, B022, B024, B026) are here too, since they are where shape rules break.
 */
#include "core_test.h"

#include "exec/device.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- failed tensors ------------------------------------------------------------------------ */

static void test_a_cause_passes_on(void **state)
{
    (void)state;
    burn_tensor *bad = burn_add(VEC(1, 2), VEC(1, 2, 3));
    check_failed(bad, BURN_E_SHAPE, "add", "[2]", "[3]", NULL);
    burn_tensor *later = burn_relu(burn_matmul(burn_mul(bad, burn_scalar(2.0)), bad));
    check_failed(later, BURN_E_SHAPE, "add", "[2]", "[3]", NULL);
    burn_tensor *other = burn_sum(VEC(1, 2, 3), 1, DIMS(5), 0);
    assert_int_equal(burn_ok(other), 0);
    check_failed(burn_add(later, other), BURN_E_SHAPE, "add", "[2]", NULL);
    check_failed(burn_add(VEC(1), bad), BURN_E_SHAPE, "add", NULL);
}

static void test_a_failed_tensor_answers(void **state)
{
    (void)state;
    burn_tensor *bad = burn_add(VEC(1, 2), VEC(1, 2, 3));
    assert_int_equal(burn_dim(bad, 0), 0);
    assert_int_equal(burn_dim(bad, -1), 0);
    assert_int_equal(burn_rank(bad), 0);
    assert_int_equal(burn_numel(bad), 0);
    assert_int_equal(burn_dtype_of(bad), BURN_DTYPE_NONE);
    assert_null(burn_device_of(bad));
    assert_int_equal(burn_is_tracked(bad), 0);
    float out[4];
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_read(bad, out, sizeof(out), &err), BURN_E_SHAPE);
    assert_non_null(strstr(err.text, "add"));
    assert_int_equal(err.op, BURN_OP_ADD);
    err.code = 0;
    assert_true(isnan(burn_item(bad, &err)));
    assert_int_equal(err.code, BURN_E_SHAPE);
    char text[256];
    (void)burn_tensor_text(bad, text, sizeof(text));
    assert_non_null(strstr(text, "E_SHAPE"));
}

static void test_other_work_goes_on(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2);
    burn_tensor *bad = burn_add(x, VEC(1, 2, 3));
    burn_tensor *good = burn_add(x, x);
    CHECK(good, 2, 4);
    assert_int_equal(burn_ok(bad), 0);
}

static void test_sync_returns_the_first_failure_and_clears(void **state)
{
    (void)state;
    check_clean();
    burn_tensor *bad = burn_add(VEC(1, 2), VEC(1, 2, 3));
    (void)burn_matmul(VEC(1), VEC(2));
    (void)burn_neg(bad);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_sync(dev, &err), BURN_E_SHAPE);
    assert_non_null(strstr(err.text, "add"));
    check_clean();
    check_failed(bad, BURN_E_SHAPE, "add", NULL);
}

static void test_calls_by_id_that_cannot_be_made(void **state)
{
    (void)state;
    burn_tensor *in[40] = {VEC(1, 2), VEC(3, 4)};
    burn_tensor *out[40] = {NULL};
    assert_int_equal(burn_op_call(dev, 987654321, NULL, 0, in, 2, out, 1), BURN_E_NOT_FOUND);
    check_failed(out[0], BURN_E_NOT_FOUND, "no op with id 987654321", "burn_extension_load", NULL);
    assert_int_equal(burn_op_call(dev, BURN_OP_ADD, NULL, 0, NULL, 2, out, 1), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "add: in is NULL, 2 tensors are needed", NULL);
    assert_int_equal(burn_op_call(dev, BURN_OP_ADD, NULL, 0, in, 2, NULL, 1), BURN_E_INVALID);
    assert_int_equal(burn_op_call(dev, BURN_OP_ADD, NULL, 0, in, 4000, out, 1), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "add: 4000 operands and 1 outputs; at most ", NULL);
    /* Every output says so, and nothing else is touched. */
    out[2] = in[1];
    assert_int_equal(burn_op_call(dev, 987654321, NULL, 0, NULL, 0, out, 2), BURN_E_NOT_FOUND);
    check_failed(out[1], BURN_E_NOT_FOUND, "987654321", NULL);
    assert_ptr_equal(out[2], in[1]);
    assert_int_equal(burn_op_call(dev, BURN_OP_ADD, NULL, 0, in, 2, out, 1), BURN_OK);
    CHECK(out[0], 4, 6);
}

static void test_null_operands(void **state)
{
    (void)state;
    check_failed(burn_add(NULL, VEC(1)), BURN_E_INVALID, "add", "missing", NULL);
    check_failed(burn_add(VEC(1), NULL), BURN_E_INVALID, "add", "missing", NULL);
    check_failed(burn_relu(NULL), BURN_E_INVALID, "relu", "missing", NULL);
    check_failed(burn_reshape(NULL, 0, NULL), BURN_E_INVALID, "reshape", NULL);
    check_failed(burn_tensor_from_data(NULL, BURN_F32, 0, NULL, "abcd"), BURN_E_DEVICE, NULL);
    check_failed(burn_tensor_from_data(dev, BURN_F32, 1, DIMS(2), NULL), BURN_E_INVALID, NULL);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_tensor_error(NULL, &err), BURN_E_INVALID);
    assert_int_equal(burn_ok(NULL), 0);
    assert_int_equal(burn_read(NULL, NULL, 0, &err), BURN_E_INVALID);
    burn_tensor *out = NULL;
    assert_int_equal(burn_op_call(dev, 39, NULL, 0, NULL, 0, &out, 1), BURN_E_NOT_FOUND);
    check_failed(out, BURN_E_NOT_FOUND, "39", NULL);
}

static void test_options_of_pools(void **state)
{
    (void)state;
    burn_tensor *x = burn_zeros(dev, BURN_F32, 4, DIMS(1, 1, 4, 4));
    burn_pool_opts opts = {.struct_size = 5, .kernel = {2, 2}};
    burn_tensor *index = NULL;
    check_failed(burn_max_pool2d(x, NULL, &index), BURN_E_INVALID, "max_pool2d", "NULL", NULL);
    check_failed(index, BURN_E_INVALID, "max_pool2d", "NULL", NULL);
    check_failed(burn_max_pool2d(x, &opts, NULL), BURN_E_INVALID, "max_pool2d", "5", NULL);
    check_failed(burn_avg_pool2d(x, NULL), BURN_E_INVALID, "avg_pool2d", "NULL", NULL);
    check_failed(burn_avg_pool2d(x, &opts), BURN_E_INVALID, "avg_pool2d", "5", NULL);
}

/* ---- texts --------------------------------------------------------------------------------- */

static burn_tensor *half(void)
{
    return burn_cast(VEC(1, 2), BURN_F16);
}

static void test_dtypes_do_not_mix(void **state)
{
    (void)state;
    burn_tensor *i = index_vec(2, (const int64_t[]){1, 2});
    check_failed(burn_add(VEC(1, 2), i), BURN_E_DTYPE, "add", "i64", "f32", "cast", NULL);
    check_failed(burn_matmul(mat(1, 2, (const float[]){1, 2}),
                             burn_cast(mat(2, 1, (const float[]){1, 2}), BURN_F64)),
                 BURN_E_DTYPE, "matmul", "f64", "f32", NULL);
    check_failed(burn_exp(i), BURN_E_DTYPE, "exp", "i64", NULL);
    check_failed(burn_less(half(), VEC(1, 2)), BURN_E_DTYPE, "less", "f16", "f32", NULL);
    check_failed(burn_where(VEC(1, 2), VEC(1, 2), VEC(1, 2)), BURN_E_DTYPE, "where", "cond", "f32",
                 NULL);
    check_failed(burn_gather(VEC(1, 2), VEC(0, 1), 0), BURN_E_DTYPE, "gather", "index", "f32",
                 NULL);
    check_failed(burn_bit_and(VEC(1, 2), VEC(1, 2)), BURN_E_DTYPE, "bit_and", "f32", NULL);
    check_failed(burn_cast(VEC(1, 2), 200), BURN_E_DTYPE, "cast", NULL);
    check_failed(burn_tensor_from_data(dev, BURN_C64, 1, DIMS(1), "12345678"), BURN_E_DTYPE, NULL);
    check_failed(burn_random_uniform(dev, BURN_I32, 1, DIMS(2)), BURN_E_DTYPE, "random_uniform",
                 "i32", NULL);
}

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    burn_tensor *a = burn_zeros(dev, BURN_F32, 2, DIMS(2, 3));
    burn_tensor *b = burn_zeros(dev, BURN_F32, 2, DIMS(4, 5));
    check_failed(burn_add(a, b), BURN_E_SHAPE, "add", "[2,3]", "[4,5]", NULL);
    check_failed(burn_matmul(a, b), BURN_E_SHAPE, "matmul", "[2,3]", "[4,5]", NULL);
    check_failed(burn_matmul(b, a), BURN_E_SHAPE, "matmul", "[4,5]", "[2,3]", NULL);
    check_failed(burn_matmul(VEC(1), a), BURN_E_SHAPE, "matmul", NULL);
    check_failed(burn_linear(a, b, NULL), BURN_E_SHAPE, "linear", "[2,3]", "[4,5]", NULL);
    check_failed(burn_linear(b, a, NULL), BURN_E_SHAPE, "linear", "[4,5]", "[2,3]", NULL);
    check_failed(burn_reshape(a, 1, DIMS(7)), BURN_E_SHAPE, "reshape", "7", NULL);
    check_failed(burn_reshape(a, 2, DIMS(-1, -1)), BURN_E_SHAPE, "reshape", "-1", NULL);
    check_failed(burn_reshape(a, 2, DIMS(-1, 4)), BURN_E_SHAPE, "reshape", "6", NULL);
    check_failed(burn_reshape(a, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 2, 3)), BURN_E_SHAPE, "reshape", "9",
                 NULL);
    check_failed(burn_expand_to(a, 2, DIMS(4, 3)), BURN_E_SHAPE, "expand", "[2,3]", NULL);
    burn_tensor *const xs[] = {a, b};
    check_failed(burn_cat(xs, 2, 0), BURN_E_SHAPE, "cat", NULL);
    check_failed(burn_cat(xs, 0, 0), BURN_E_INVALID, "cat", "0", NULL);
    check_failed(burn_conv2d(burn_zeros(dev, BURN_F32, 4, DIMS(1, 3, 4, 4)),
                             burn_zeros(dev, BURN_F32, 4, DIMS(2, 2, 3, 3)), NULL, NULL),
                 BURN_E_SHAPE, "conv2d", NULL);
    check_failed(burn_conv2d(burn_zeros(dev, BURN_F32, 4, DIMS(1, 3, 4, 4)),
                             burn_zeros(dev, BURN_F32, 4, DIMS(2, 4, 3, 3)), NULL, NULL),
                 BURN_E_SHAPE, "conv2d", NULL);
    check_failed(burn_where(burn_less(a, burn_scalar(1.0)), b, b), BURN_E_SHAPE, "where", "[2,3]",
                 "[4,5]", NULL);
    check_failed(burn_mse_loss(a, b, 0), BURN_E_SHAPE, "mse_loss", NULL);
}

static void test_axes_out_of_range(void **state)
{
    (void)state;
    burn_tensor *a = burn_zeros(dev, BURN_F32, 2, DIMS(2, 3));
    assert_int_equal(burn_ok(burn_sum(a, 1, DIMS(-2), 0)), 1);
    check_failed(burn_sum(a, 1, DIMS(2), 0), BURN_E_INVALID, "sum", "2", NULL);
    check_failed(burn_sum(a, 1, DIMS(-3), 0), BURN_E_INVALID, "sum", NULL);
    check_failed(burn_sum(a, 2, DIMS(1, 1), 0), BURN_E_INVALID, "sum", NULL);
    check_failed(burn_sum(a, 2, DIMS(1, -1), 0), BURN_E_INVALID, "sum", NULL);
    check_failed(burn_sum(a, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), 0), BURN_E_INVALID, NULL);
    check_failed(burn_softmax(a, 2), BURN_E_INVALID, "softmax", "2", NULL);
    check_failed(burn_argmax(a, -3, 0), BURN_E_INVALID, "argmax", NULL);
    check_failed(burn_cumsum(a, 2), BURN_E_INVALID, "cumsum", NULL);
    check_failed(burn_transpose(a, 0, 2), BURN_E_INVALID, "transpose", "2", NULL);
    check_failed(burn_permute(a, 2, DIMS(0, 0)), BURN_E_INVALID, "permute", NULL);
    check_failed(burn_permute(a, 1, DIMS(0)), BURN_E_INVALID, "permute", NULL);
    check_failed(burn_unsqueeze(a, 4), BURN_E_INVALID, "unsqueeze", "4", NULL);
    check_failed(burn_squeeze(a, 0), BURN_E_SHAPE, "squeeze", NULL);
    check_failed(burn_flatten(a, 1, 0), BURN_E_INVALID, "flatten", NULL);
    check_failed(burn_slice(a, 2, 0, 1, 1), BURN_E_INVALID, "slice", "2", NULL);
    check_failed(burn_slice(a, 0, 0, 1, 0), BURN_E_INVALID, "slice", "step", NULL);
    check_failed(burn_flip(a, 1, DIMS(2)), BURN_E_INVALID, "flip", NULL);
    check_failed(burn_flip(a, 2, DIMS(1, 1)), BURN_E_INVALID, "flip", "once", NULL);
    check_same(burn_flip(a, 2, DIMS(1, 0)), burn_flip(a, 2, DIMS(0, 1)));
    check_failed(burn_bernoulli(dev, BURN_F32, 1, DIMS(2), 1.5), BURN_E_INVALID, "1.5", NULL);
    check_failed(burn_bernoulli(dev, BURN_F32, 1, DIMS(2), (double)NAN), BURN_E_INVALID, "0..1",
                 NULL);
    check_failed(burn_select(a, index_vec(1, DIMS(0)), 2), BURN_E_INVALID, "select", NULL);
}

static void test_a_slice_assign_outside_fails(void **state)
{
    (void)state;
    check_read_fails(burn_slice_assign(VEC(1, 2, 3, 4), VEC(7, 8, 9), 0, 2, 1), BURN_E_INVALID,
                     "slice_assign", NULL);
    check_read_fails(burn_slice_assign(VEC(1, 2, 3, 4), VEC(7, 8), 0, -5, 1), BURN_E_INVALID,
                     "slice_assign", NULL);
    CHECK(burn_slice_assign(VEC(1, 2, 3, 4), VEC(7, 8), 0, -2, 1), 1, 2, 7, 8);
    CHECK(burn_slice_assign(VEC(1, 2, 3, 4), VEC(7, 8), 0, 3, -2), 1, 8, 3, 7);
}

static void test_scalars_that_do_not_fit(void **state)
{
    (void)state;
    burn_tensor *bytes = burn_cast(VEC(1, 2), BURN_U8);
    check_failed(burn_add(bytes, burn_scalar(256.0)), BURN_E_DTYPE, "add", "256", "u8", NULL);
    check_failed(burn_add(bytes, burn_scalar(-1.0)), BURN_E_DTYPE, "add", "-1", "u8", NULL);
    check_failed(burn_add(bytes, burn_scalar(0.5)), BURN_E_DTYPE, "add", "0.5", "u8", NULL);
    check_failed(burn_add(bytes, burn_scalar((double)NAN)), BURN_E_DTYPE, "add", "nan", NULL);
    check_failed(burn_add(bytes, burn_scalar_int(-1)), BURN_E_DTYPE, "add", "-1", "u8", NULL);
    check_failed(burn_mul(half(), burn_scalar(1e6)), BURN_E_DTYPE, "mul", "1e+06", "f16", NULL);
    check_failed(burn_add(VEC(1), burn_scalar(1e300)), BURN_E_DTYPE, "add", "1e+300", "f32", NULL);
    check_failed(burn_full(dev, BURN_BOOL, 0, NULL, burn_scalar(2.0)), BURN_E_DTYPE, "fill", "2",
                 NULL);
    check_failed(burn_add(burn_scalar(1.0), burn_scalar(2.0)), BURN_E_DEVICE, "add", NULL);
    CHECK(burn_add(bytes, burn_scalar(254.0)), 255, 0);
    CHECK(burn_mul(half(), burn_scalar(65504.0)), 65504, (double)INFINITY);
    CHECK(burn_add(VEC(1), burn_scalar((double)INFINITY)), (double)INFINITY);
    burn_tensor *wide = burn_tensor_from_i64(dev, BURN_U64, 0, NULL, DIMS(0));
    burn_tensor *big = burn_add(wide, burn_scalar_u64(UINT64_MAX));
    int64_t seen = 0;
    assert_int_equal(burn_read_i64(big, &seen, 1, NULL), BURN_OK);
    assert_true((uint64_t)seen == UINT64_MAX);
    check_failed(burn_add(burn_tensor_from_i64(dev, BURN_I64, 0, NULL, DIMS(0)),
                          burn_scalar_u64(UINT64_MAX)),
                 BURN_E_DTYPE, "add", "i64", NULL);
}

static void test_scalars_where_tensors_belong(void **state)
{
    (void)state;
    check_failed(burn_relu(burn_scalar(1.0)), BURN_E_INVALID, "relu", "scalar", NULL);
    check_failed(burn_matmul(burn_scalar(1.0), VEC(1)), BURN_E_INVALID, "matmul", "scalar", NULL);
    check_failed(burn_clamp(VEC(1), VEC(0), NULL), BURN_E_INVALID, "clamp", "burn_scalar", NULL);
}

static void test_reads_of_the_wrong_size(void **state)
{
    (void)state;
    float out[4];
    double wide[4];
    int64_t whole[4];
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = VEC(1, 2, 3);
    assert_int_equal(burn_read(x, out, 8, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "12"));
    assert_int_equal(burn_read_f64(x, wide, 4, &err), BURN_E_INVALID);
    assert_int_equal(burn_read_i64(x, whole, 3, &err), BURN_E_DTYPE);
    assert_int_equal(burn_read(x, NULL, 12, &err), BURN_E_INVALID);
    (void)burn_item(x, &err);
    assert_int_equal(err.code, BURN_E_INVALID);
    err = (burn_err)BURN_ERR_INIT;
    assert_int_equal(burn_read_f64(x, NULL, 3, &err), BURN_E_INVALID);
    assert_non_null(strstr(err.text, "out is NULL, 3 numbers are needed"));
    size_t need = burn_tensor_text(x, NULL, 0);
    assert_int_equal(burn_tensor_text(x, NULL, 9), need);
    char text[64];
    assert_int_equal(burn_tensor_text(x, text, sizeof(text)), need);
    assert_string_equal(text, "f32[3] {1, 2, 3}");
}

static void test_devices_do_not_mix(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_device *other = burn_device_open(on_mock ? "mock:1" : "mock:0", &err);
    assert_non_null(other);
    burn_tensor *far = burn_to_device(VEC(1, 2), other);
    CHECK(far, 1, 2);
    check_failed(burn_add(VEC(1, 2), far), BURN_E_DEVICE, "add", burn_device_name(dev),
                 burn_device_name(other), "burn_to_device", NULL);
    CHECK(burn_add(VEC(1, 2), burn_to_device(far, dev)), 2, 4);
    (void)burn_sync(other, NULL);
}

/* ---- sizes --------------------------------------------------------------------------------- */

static void test_B052_sizes_overflow(void **state)
{
    (void)state;
    float one = 1;
    const int64_t huge = INT64_C(1) << 33;
    assert_int_equal(burn_ok(burn_zeros(dev, BURN_F32, 2, DIMS(huge, huge))), 0);
    check_failed(burn_zeros(dev, BURN_F32, 2, DIMS(huge, huge)), BURN_E_SHAPE, "fill",
                 "[8589934592,8589934592]", NULL);
    check_failed(burn_zeros(dev, BURN_F32, 1, DIMS(INT64_C(1) << 62)), BURN_E_LIMIT, "fill",
                 "4611686018427387904", NULL);
    check_failed(burn_zeros(dev, BURN_F32, 1, DIMS(-1)), BURN_E_SHAPE, "fill", "-1", NULL);
    check_shape(burn_zeros(dev, BURN_F32, 2, DIMS(0, INT64_MAX)), 2, DIMS(0, INT64_MAX));
    check_shape(burn_zeros(dev, BURN_F32, 3, DIMS(0, INT64_MAX, 2)), 3, DIMS(0, INT64_MAX, 2));
    check_failed(burn_tensor_from_data(dev, BURN_F32, 2, DIMS(huge, huge), &one), BURN_E_SHAPE,
                 "8589934592", NULL);
    check_failed(burn_tensor_from_data(dev, BURN_F32, 1, DIMS(-1), &one), BURN_E_SHAPE, NULL);
    check_failed(burn_expand_to(VEC(1), 2, DIMS(huge, huge)), BURN_E_SHAPE, "expand", NULL);
    burn_tensor *wide = burn_expand_to(VEC(1), 2, DIMS(INT64_C(1) << 30, INT64_C(1) << 29));
    burn_tensor *sum = burn_add(wide, wide);
    (void)burn_sync(dev, NULL);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_read(sum, &one, sizeof(one), &err), BURN_E_INVALID);
    check_read_fails(burn_slice(burn_reshape(sum, 1, DIMS(-1)), 0, 0, 1, 1), BURN_E_NO_MEMORY,
                     NULL);
    check_failed(burn_arange(dev, BURN_F32, -3, 0.0, 1.0), BURN_E_SHAPE, "arange", NULL);
    check_failed(burn_pad(VEC(1), DIMS(INT64_MAX), DIMS(INT64_MAX), burn_scalar(0.0)), BURN_E_SHAPE,
                 "pad", NULL);
}

/* A tensor of that shape with zero elements. */
static burn_tensor *empty(uint32_t rank, const int64_t *dims)
{
    return burn_zeros(dev, BURN_F32, rank, dims);
}

static void test_B020_size_one_against_size_zero(void **state)
{
    (void)state;
    check_shape(burn_add(empty(2, DIMS(2, 0)), empty(2, DIMS(2, 1))), 2, DIMS(2, 0));
    check_shape(burn_add(empty(2, DIMS(2, 1)), empty(2, DIMS(2, 0))), 2, DIMS(2, 0));
    check_shape(burn_add(empty(2, DIMS(0, 3)), empty(2, DIMS(1, 3))), 2, DIMS(0, 3));
    check_shape(burn_add(empty(2, DIMS(2, 0)), empty(2, DIMS(2, 0))), 2, DIMS(2, 0));
    check_shape(burn_mul(empty(1, DIMS(0)), VEC(1)), 1, DIMS(0));
    check_shape(burn_less(empty(2, DIMS(2, 0)), empty(2, DIMS(2, 1))), 2, DIMS(2, 0));
    burn_tensor *cond = burn_less(empty(2, DIMS(2, 1)), burn_scalar(1.0));
    check_shape(burn_where(cond, empty(2, DIMS(2, 0)), empty(2, DIMS(1, 1))), 2, DIMS(2, 0));
    check_failed(burn_add(empty(2, DIMS(2, 0)), empty(2, DIMS(2, 3))), BURN_E_SHAPE, "add", "[2,0]",
                 "[2,3]", NULL);
    CHECK(burn_add(mat(2, 1, (const float[]){1, 2}),
                   mat(2, 3, (const float[]){10, 20, 30, 40, 50, 60})),
          11, 21, 31, 42, 52, 62);
    assert_int_equal(burn_read(burn_add(empty(2, DIMS(2, 0)), empty(2, DIMS(2, 1))), NULL, 0, NULL),
                     BURN_OK);
}

static void test_B022_reductions_of_nothing(void **state)
{
    (void)state;
    burn_tensor *x = empty(2, DIMS(3, 0));
    const double nan = (double)NAN;
    CHECK(burn_sum(x, 1, DIMS(1), 0), 0, 0, 0);
    if (!on_mock) { /* has no products: not a minimal op */
        CHECK(burn_prod(x, 1, DIMS(1), 0), 1, 1, 1);
    }
    CHECK(burn_mean(x, 1, DIMS(1), 0), nan, nan, nan);
    CHECK(burn_var_of(x, 1, DIMS(1), 0, 1), nan, nan, nan);
    burn_tensor *flags = burn_less(x, burn_scalar(1.0));
    CHECK(burn_any(flags, 1, DIMS(1), 0), 0, 0, 0);
    CHECK(burn_all(flags, 1, DIMS(1), 0), 1, 1, 1);
    CHECK(burn_sum(empty(1, DIMS(0)), 0, NULL, 0), 0);
    CHECK(burn_mean(empty(1, DIMS(0)), 0, NULL, 0), nan);
    const int64_t shapes[2][2] = {{3, 0}, {0, 0}};
    for (size_t i = 0; i < 2; i++) {
        burn_tensor *y = empty(2, shapes[i]);
        check_failed(burn_max(y, 1, DIMS(1), 0), BURN_E_SHAPE, "max", NULL);
        check_failed(burn_min(y, 1, DIMS(1), 0), BURN_E_SHAPE, "min", NULL);
        check_failed(burn_argmax(y, 1, 0), BURN_E_SHAPE, "argmax", NULL);
        check_failed(burn_argmin(y, 1, 0), BURN_E_SHAPE, "argmin", NULL);
        check_failed(burn_mean(burn_cast(y, BURN_I32), 1, DIMS(1), 0), BURN_E_SHAPE, "mean", NULL);
    }
    check_shape(burn_sum(empty(2, DIMS(0, 0)), 1, DIMS(1), 0), 1, DIMS(0));
    check_shape(burn_max(empty(2, DIMS(0, 3)), 1, DIMS(1), 0), 1, DIMS(0));
}

static void test_B024_slices_of_nothing(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2, 3, 4, 5, 6);
    check_shape(burn_slice(x, 0, 5, 5, 1), 1, DIMS(0));
    check_shape(burn_slice(x, 0, 4, 2, 1), 1, DIMS(0));
    check_shape(burn_slice(x, 0, 100, 200, 1), 1, DIMS(0));
    CHECK(burn_slice_assign(x, burn_slice(x, 0, 5, 5, 1), 0, 2, 1), 1, 2, 3, 4, 5, 6);
    check_shape(burn_expand_to(empty(2, DIMS(1, 0)), 2, DIMS(3, 0)), 2, DIMS(3, 0));
    check_shape(burn_reshape(empty(2, DIMS(3, 0)), 3, DIMS(0, 7, 2)), 3, DIMS(0, 7, 2));
    check_failed(burn_reshape(empty(2, DIMS(3, 0)), 2, DIMS(-1, 0)), BURN_E_SHAPE, "reshape", NULL);
    burn_tensor *const xs[] = {empty(1, DIMS(0)), x, empty(1, DIMS(0))};
    CHECK(burn_cat(xs, 3, 0), 1, 2, 3, 4, 5, 6);
    CHECK(burn_slice(x, 0, BURN_SLICE_NONE, BURN_SLICE_NONE, -2), 6, 4, 2);
    CHECK(burn_slice(x, 0, -2, INT64_MAX, 1), 5, 6);
}

/* Ops on empty tensors run nothing, and the device works afterwards. */
static void test_B026_nothing_to_do(void **state)
{
    (void)state;
    burn_tensor *x = empty(2, DIMS(0, 4));
    burn_tensor *results[] = {
        burn_exp(x),
        burn_add(x, burn_scalar(1.0)),
        burn_softmax(x, 1),
        on_mock ? burn_neg(x) : burn_cumsum(x, 0),
        burn_copy(burn_transpose(x, 0, 1)),
        burn_matmul(x, empty(2, DIMS(4, 2))),
        burn_select(VEC(1, 2), index_vec(0, DIMS(0)), 0),
        burn_random_uniform(dev, BURN_F32, 1, DIMS(0)),
        burn_arange(dev, BURN_F32, 0, 0.0, 1.0),
    };
    for (size_t i = 0; i < COUNT(results); i++) {
        burn_err err = BURN_ERR_INIT;
        if (burn_read(results[i], NULL, 0, &err) != BURN_OK) {
            fail_msg("result %zu: %s", i, err.text);
        }
    }
    CHECK(burn_matmul(empty(2, DIMS(2, 0)), empty(2, DIMS(0, 3))), 0, 0, 0, 0, 0, 0);
    CHECK(burn_add(VEC(1, 2), VEC(1, 2)), 2, 4);
    check_clean();
}

/* The child's exit status: 0 when each way to wait told why it can't. */
static int use_in_child(burn_tensor *x)
{
    burn_err err = BURN_ERR_INIT;
    float out[2] = {0, 0};
    int32_t rc = burn_read(x, out, sizeof(out), &err);
    if (dev->core->synchronous) {
        return rc == BURN_OK && out[1] == 2.0F ? 0 : 1;
    }
    if (rc != BURN_E_STATE || strstr(err.text, "fork") == NULL) {
        return 2;
    }
    err = (burn_err)BURN_ERR_INIT;
    if (burn_read(burn_add(x, x), out, sizeof(out), &err) != BURN_E_STATE) {
        return 3;
    }
    err = (burn_err)BURN_ERR_INIT;
    if (burn_sync(dev, &err) != BURN_E_STATE) {
        return 4;
    }
    burn_shutdown();
    return 0;
}

/* A device's threads are not there in a child: it is told so, and does not wait for ever. */
static void test_a_child_of_fork_is_told(void **state)
{
    (void)state;
    burn_tensor *x = VEC(1, 2);
    assert_int_equal(burn_sync(dev, NULL), BURN_OK);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        _exit(use_in_child(x));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    CHECK(x, 1, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_a_cause_passes_on),
        CORE_TEST(test_a_failed_tensor_answers),
        CORE_TEST(test_other_work_goes_on),
        CORE_TEST(test_sync_returns_the_first_failure_and_clears),
        CORE_TEST(test_null_operands),
        CORE_TEST(test_options_of_pools),
        CORE_TEST(test_calls_by_id_that_cannot_be_made),
        CORE_TEST(test_dtypes_do_not_mix),
        CORE_TEST(test_shapes_that_do_not_fit),
        CORE_TEST(test_axes_out_of_range),
        CORE_TEST(test_a_slice_assign_outside_fails),
        CORE_TEST(test_scalars_that_do_not_fit),
        CORE_TEST(test_scalars_where_tensors_belong),
        CORE_TEST(test_reads_of_the_wrong_size),
        CORE_TEST(test_devices_do_not_mix),
        CORE_TEST(test_B052_sizes_overflow),
        CORE_TEST(test_B020_size_one_against_size_zero),
        CORE_TEST(test_B022_reductions_of_nothing),
        CORE_TEST(test_B024_slices_of_nothing),
        CORE_TEST(test_B026_nothing_to_do),
        CORE_TEST(test_a_child_of_fork_is_told),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
