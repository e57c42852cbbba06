/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_ops_movement.c - views, slices, cat, pad, gather, scatter, lookups and matrix products.
 *
 * Every sample is tried (sample_check.h), every view is read through its strides and compared with
 * its eval, results are compared with PyTorch's (tests/data/conv_values.h) and with reported faults
 * (names with B and a number). Nothing here needs a device.
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
    &burn_op_def_reshape, &burn_op_def_expand,       &burn_op_def_permute,   &burn_op_def_flip,
    &burn_op_def_slice,   &burn_op_def_slice_assign, &burn_op_def_unfold,    &burn_op_def_cat,
    &burn_op_def_pad,     &burn_op_def_gather,       &burn_op_def_scatter,   &burn_op_def_select,
    &burn_op_def_one_hot, &burn_op_def_matmul,       &burn_op_def_embedding, &burn_op_def_linear,
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        assert_int_equal(check_samples(ops[i]), 0);
    }
}

/* A view is a primitive with `view`; all others but the minimal ones decompose. */
static void test_structure(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        const burn_op_def *d = ops[i];
        int primitive = (d->flags & BURN_OP_PRIMITIVE) != 0;
        assert_int_equal(d->fuse == BURN_FUSE_VIEW, d->view != NULL);
        assert_int_equal(primitive, d->decompose == NULL);
        assert_int_equal(primitive && d->view == NULL, (d->flags & BURN_OP_MINIMAL) != 0);
        assert_true(d->vjp != NULL || d->no_vjp != NULL);
        assert_int_equal(d->vjp != NULL, d->vjp_saves != NULL);
        assert_true(d->n_attrs == 0 || d->attrs != NULL);
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Storage in which element [i, j, ..] of the input lies at offset + i * s0 + j * s1 + ... */
typedef struct storage {
    double numbers[4096];
    int64_t strides[BURN_MAX_RANK];
    int64_t offset;
} storage;

/* The input's elements with the dims in reverse order and every second place left out. */
static void lay_out(storage *s, const burn_meta *meta, const double *x, int strided)
{
    int64_t index[BURN_MAX_RANK] = {0};
    int64_t step = 2;
    burni_dense_strides(meta->rank, meta->dims, s->strides);
    s->offset = 0;
    if (strided) {
        s->offset = 5;
        for (uint32_t i = 0; i < meta->rank; i++) {
            s->strides[i] = step;
            step *= meta->dims[i];
        }
    }
    for (size_t k = 0; k < COUNT(s->numbers); k++) {
        s->numbers[k] = (double)NAN;
    }
    int64_t n = burni_numel(meta->rank, meta->dims);
    assert_true(n * 2 + 5 < (int64_t)COUNT(s->numbers));
    for (int64_t k = 0; k < n; k++) {
        s->numbers[s->offset + burni_offset(meta->rank, index, s->strides)] = x[k];
        (void)burni_next_index(meta->rank, meta->dims, index);
    }
}

static int32_t view_of(const burn_op_def *def, const burn_sample *sample, const storage *s,
                       const burn_meta *in, const burn_meta *out, int64_t *strides,
                       int64_t *offset, burn_err *err)
{
    int64_t start = (int64_t)sample->in[1].lo;
    burn_view a = {0};
    a.struct_size = (uint32_t)sizeof(a);
    a.n_immediates = sample->n_in - 1;
    a.in = in;
    a.in_strides = s->strides;
    a.in_offset = s->offset;
    a.immediates = &start;
    a.attrs = sample->attrs;
    a.out = out;
    a.out_strides = strides;
    a.out_offset = offset;
    a.err = err;
    return def->view(&a);
}

static void check_view(const burn_op_def *def, const burn_sample *sample, int strided)
{
    static storage s;
    eval_builder *e = eval_builder_new();
    burn_value *in[2] = {salted(e, 1, sample->in[0].rank, sample->in[0].dims), NULL};
    burn_value *out[1];
    int64_t strides[BURN_MAX_RANK];
    int64_t offset = -1;
    int64_t index[BURN_MAX_RANK] = {0};
    burn_err err = BURN_ERR_INIT;
    if (sample->n_in > 1) {
        in[1] = eval_scalar(e, BURN_I64, sample->in[1].lo);
    }
    int32_t rc = run(e, BY_EVAL, def, sample->attrs, in, sample->n_in, out);
    assert_int_equal(rc, BURN_OK);
    const burn_eval_operand *y = &eval_of(out[0])->x;
    lay_out(&s, &eval_of(in[0])->x.meta, eval_of(in[0])->x.f, strided);
    rc = view_of(def, sample, &s, &eval_of(in[0])->x.meta, &y->meta, strides, &offset, &err);
    if (rc == BURN_E_UNSUPPORTED && def == &burn_op_def_reshape && strided) {
        eval_builder_free(e);
        return;
    }
    assert_int_equal(rc, BURN_OK);
    for (uint64_t k = 0; k < y->n; k++) {
        int64_t at = offset + burni_offset(y->meta.rank, index, strides);
        assert_true(at >= 0 && at < (int64_t)COUNT(s.numbers));
        assert_true(s.numbers[at] == y->f[k]);
        (void)burni_next_index(y->meta.rank, y->meta.dims, index);
    }
    eval_builder_free(e);
}

static void test_views_agree_with_eval(void **state)
{
    (void)state;
    burn_sample sample;
    for (size_t i = 0; i < COUNT(ops); i++) {
        if (ops[i]->view == NULL) {
            continue;
        }
        for (uint32_t k = 0; ops[i]->samples(k, &sample) == BURN_OK; k++) {
            if ((sample.flags & BURN_SAMPLE_ERROR) == 0) {
                check_view(ops[i], &sample, 0);
                check_view(ops[i], &sample, 1);
            }
        }
    }
}

static int32_t reshape_view(uint32_t rank, const int64_t *dims, const int64_t *strides,
                            uint32_t out_rank, const int64_t *out_dims, int64_t *out_strides)
{
    burn_meta in = {0, BURN_TENSOR, BURN_F32, (uint8_t)rank, 0, {0}};
    burn_meta out = {0, BURN_TENSOR, BURN_F32, (uint8_t)out_rank, 0, {0}};
    int64_t offset = 0;
    memcpy(in.dims, dims, rank * sizeof(dims[0]));
    memcpy(out.dims, out_dims, out_rank * sizeof(out_dims[0]));
    burn_view a = {0};
    a.struct_size = (uint32_t)sizeof(a);
    a.in = &in;
    a.in_strides = strides;
    a.in_offset = 3;
    a.out = &out;
    a.out_strides = out_strides;
    a.out_offset = &offset;
    int32_t rc = burn_op_def_reshape.view(&a);
    assert_int_equal(offset, 3);
    return rc;
}

static void test_reshape_of_strides(void **state)
{
    (void)state;
    int64_t s[BURN_MAX_RANK];
    /* rows 10 apart: a row can be split, rows cannot be joined */
    assert_int_equal(reshape_view(2, (int64_t[]){3, 6}, (int64_t[]){10, 1}, 3,
                                  (int64_t[]){3, 2, 3}, s), BURN_OK);
    assert_true(s[0] == 10 && s[1] == 3 && s[2] == 1);
    assert_int_equal(reshape_view(2, (int64_t[]){3, 6}, (int64_t[]){10, 1}, 1, (int64_t[]){18}, s),
                     BURN_E_UNSUPPORTED);
    /* transposed; flipped; repeated by expand */
    assert_int_equal(reshape_view(2, (int64_t[]){2, 3}, (int64_t[]){1, 2}, 2, (int64_t[]){3, 2}, s),
                     BURN_E_UNSUPPORTED);
    assert_int_equal(reshape_view(2, (int64_t[]){2, 3}, (int64_t[]){-3, -1}, 1, (int64_t[]){6}, s),
                     BURN_OK);
    assert_true(s[0] == -1);
    assert_int_equal(reshape_view(2, (int64_t[]){2, 3}, (int64_t[]){0, 0}, 1, (int64_t[]){6}, s),
                     BURN_OK);
    assert_true(s[0] == 0);
    /* a size of 1 may have any stride, and may be put anywhere */
    assert_int_equal(reshape_view(3, (int64_t[]){2, 1, 3}, (int64_t[]){3, 77, 1}, 4,
                                  (int64_t[]){1, 6, 1, 1}, s), BURN_OK);
    assert_true(s[1] == 1);
}

/* ---- reported faults ------------------------------------------------------------------------- */

static void test_B024_zero_sizes(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_builder b = eval_builder_of(e);
    burn_value *x = salted(e, 1, 3, (int64_t[]){2, 1, 4});
    expect_dims(burn_b_expand(&b, x, 3, (int64_t[]){2, 0, 4}), 3, (int64_t[]){2, 0, 4});
    burn_value *none = burn_b_slice(&b, x, 2, 4, 0, 1);
    expect_dims(none, 3, (int64_t[]){2, 1, 0});
    burn_value *same = burn_b_slice_assign(&b, x, none, 2, 4, 1);
    expect_values(same, eval_of(x)->x.f, 8);
    eval_builder_free(e);
}

static void test_B046_leading_one_and_strided_values(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_builder b = eval_builder_of(e);
    double wide[16];
    double zero[16] = {0};
    double wanted[16] = {0};
    for (int k = 0; k < 8; k++) {
        wide[2 * k] = 10.0 * (k + 1);
        wide[2 * k + 1] = -1.0;
        wanted[2 * k] = 10.0 * (k + 1);
    }
    burn_value *x = eval_tensor(e, BURN_F32, 4, (int64_t[]){1, 2, 4, 2}, zero);
    burn_value *v = eval_tensor(e, BURN_F32, 4, (int64_t[]){1, 2, 4, 2}, wide);
    burn_value *i = eval_tensor(e, BURN_I64, 4, (int64_t[]){1, 2, 4, 1}, zero);
    v = burn_b_slice(&b, v, 3, 0, 1, 2);
    EXPECT(burn_b_scatter(&b, x, i, v, 3, BURN_SCATTER_ASSIGN), wanted);
    eval_builder_free(e);
}

static void test_B048_duplicates(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_builder b = eval_builder_of(e);
    const int64_t n[1] = {3};
    burn_value *x = eval_tensor(e, BURN_F64, 1, n, (double[]){0, 0, 0});
    burn_value *i = eval_tensor(e, BURN_I64, 1, n, (double[]){1, 1, 1});
    burn_value *v = eval_tensor(e, BURN_F64, 1, n, (double[]){1, 2, 3});
    burn_value *sum = burn_b_scatter(&b, x, i, v, 0, BURN_SCATTER_ADD);
    expect_values(sum, (double[]){0, 6, 0}, 3);
    burn_value *last = burn_b_scatter(&b, x, i, v, 0, BURN_SCATTER_ASSIGN);
    expect_values(last, (double[]){0, 3, 0}, 3);
    burn_value *in[3] = {x, i, v};
    burn_value *grads[3];
    burn_attrs_axis axis = {HEAD(burn_attrs_axis), 0, 0, 0};
    gradients(e, &burn_op_def_gather, &axis, in, 2, NULL, v, 1, grads);
    expect_values(grads[0], (double[]){0, 6, 0}, 3);
    /* of three values assigned to one place the last one only has a gradient */
    burn_attrs_scatter assign = {HEAD(burn_attrs_scatter), 0, BURN_SCATTER_ASSIGN, 0};
    gradients(e, &burn_op_def_scatter, &assign, in, 3, NULL, v, 5, grads);
    expect_values(grads[0], (double[]){1, 0, 3}, 3);
    expect_values(grads[2], (double[]){0, 0, 2}, 3);
    burn_attrs_scatter max = {HEAD(burn_attrs_scatter), 0, BURN_SCATTER_MAX, 0};
    gradients(e, &burn_op_def_scatter, &max, in, 3, NULL, v, 5, grads);
    assert_int_equal(eval_of(grads[2])->code, BURN_E_UNSUPPORTED);
    eval_builder_free(e);
}

static void test_B088_embedding(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *table = salted(e, 1, 2, (int64_t[]){3, 2});
    burn_value *in[2] = {table, eval_tensor(e, BURN_I64, 1, (int64_t[]){3}, (double[]){0, 1, 1})};
    burn_value *ones = eval_tensor(e, BURN_F64, 2, (int64_t[]){3, 2}, (double[]){1, 1, 1, 1, 1, 1});
    burn_value *grads[2];
    gradients(e, &burn_op_def_embedding, NULL, in, 2, NULL, ones, 1, grads);
    expect_values(grads[0], (double[]){1, 1, 2, 2, 0, 0}, 6);
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        for (int k = 0; k < 2; k++) {
            burn_value *out[1];
            double bad = k == 0 ? 3.0 : -1.0;
            in[1] = eval_tensor(e, BURN_I32, 1, (int64_t[]){2}, (double[]){0, bad});
            (void)run(e, how, &burn_op_def_embedding, NULL, in, 2, out);
            assert_int_equal(eval_of(out[0])->code, BURN_E_DATA);
            assert_non_null(strstr(eval_of(out[0])->text, k == 0 ? "index 3" : "index -1"));
            assert_non_null(strstr(eval_of(out[0])->text, "position"));
            assert_non_null(strstr(eval_of(out[0])->text, " 3, so 0 to 2"));
        }
    }
    eval_builder_free(e);
}

static void test_B127_cat_with_a_piece_without_gradient(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[3] = {salted(e, 1, 1, (int64_t[]){2}), salted(e, 2, 1, (int64_t[]){3}),
                         salted(e, 3, 1, (int64_t[]){1})};
    burn_value *g = eval_tensor(e, BURN_F64, 1, (int64_t[]){6}, (double[]){1, 2, 3, 4, 5, 6});
    burn_value *grads[3];
    burn_attrs_axis axis = {HEAD(burn_attrs_axis), 0, 0, 0};
    gradients(e, &burn_op_def_cat, &axis, in, 3, NULL, g, 5, grads);
    expect_values(grads[0], (double[]){1, 2}, 2);
    assert_null(grads[1]);
    expect_values(grads[2], (double[]){6}, 1);
    eval_builder_free(e);
}

static void test_B129_scatter_backward_with_fewer_values(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_builder b = eval_builder_of(e);
    burn_value *t = eval_tensor(e, BURN_F64, 1, (int64_t[]){6}, (double[]){0, 1, 2, 3, 4, 5});
    burn_value *f = eval_tensor(e, BURN_F64, 1, (int64_t[]){6}, (double[]){1, 2, 3, 4, 5, 6});
    burn_value *ones = eval_tensor(e, BURN_F64, 1, (int64_t[]){6}, (double[]){1, 1, 1, 1, 1, 1});
    burn_value *in[3] = {burn_b_mul(&b, t, f),
                         eval_tensor(e, BURN_I64, 1, (int64_t[]){3}, (double[]){2, 1, 0}),
                         eval_tensor(e, BURN_F64, 1, (int64_t[]){3}, (double[]){4, 5, 6})};
    burn_value *grads[3];
    burn_attrs_scatter add = {HEAD(burn_attrs_scatter), 0, BURN_SCATTER_ADD, 0};
    gradients(e, &burn_op_def_scatter, &add, in, 3, NULL, ones, 5, grads);
    expect_values(burn_b_mul(&b, grads[0], f), (double[]){1, 2, 3, 4, 5, 6}, 6);
    expect_values(grads[2], (double[]){1, 1, 1}, 3);
    eval_builder_free(e);
}

static void test_error_texts(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[2] = {salted(e, 1, 2, (int64_t[]){2, 3}), salted(e, 1, 2, (int64_t[]){4, 5})};
    burn_value *out[1];
    (void)run(e, BY_EVAL, &burn_op_def_matmul, NULL, in, 2, out);
    assert_string_equal(eval_of(out[0])->text,
                        "matmul: inner sizes differ (lhs [2,3], rhs [4,5]); transpose rhs or check "
                        "the layer's in_features");
    burn_attrs_slice s = {HEAD(burn_attrs_slice), 1, 3, 1};
    in[1] = eval_scalar(e, BURN_I64, 1.0);
    (void)run(e, BY_EVAL, &burn_op_def_slice, &s, in, 2, out);
    assert_string_equal(eval_of(out[0])->text,
                        "slice: 3 elements from 1 with step 1 leave axis 1, which has size 3; "
                        "shorten the slice or move its start");
    eval_builder_free(e);
}

/* ---- values of PyTorch ----------------------------------------------------------------------- */

static void test_unfold_values(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[1] = {salted(e, 1, 2, (int64_t[]){3, 8})};
    burn_value *out[1];
    burn_value *grads[1];
    burn_attrs_unfold a = {HEAD(burn_attrs_unfold), 1, 3, 2, 1};
    (void)run(e, BY_EVAL, &burn_op_def_unfold, &a, in, 1, out);
    EXPECT(out[0], unfold_y);
    gradients(e, &burn_op_def_unfold, &a, in, 1, out, salted_like(e, 9, out[0]), 1, grads);
    EXPECT(grads[0], unfold_gx);
    eval_builder_free(e);
}

static void test_index_values(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *index =
        eval_tensor(e, BURN_I64, 2, (int64_t[]){2, 3}, (double[]){0, 2, 2, 1, 0, 1});
    burn_value *in[3] = {salted(e, 1, 2, (int64_t[]){3, 8}), index,
                         salted(e, 4, 2, (int64_t[]){2, 3})};
    burn_value *out[1];
    burn_value *grads[3];
    burn_attrs_scatter add = {HEAD(burn_attrs_scatter), 1, BURN_SCATTER_ADD, 0};
    burn_attrs_axis axis = {HEAD(burn_attrs_axis), 1, 0, 0};
    (void)run(e, BY_EVAL, &burn_op_def_scatter, &add, in, 3, out);
    EXPECT(out[0], scatter_add_y);
    gradients(e, &burn_op_def_scatter, &add, in, 3, out, salted_like(e, 9, out[0]), 5, grads);
    EXPECT(grads[0], scatter_add_gx);
    EXPECT(grads[2], scatter_add_gv);
    (void)run(e, BY_EVAL, &burn_op_def_gather, &axis, in, 2, out);
    EXPECT(out[0], gather_y);
    gradients(e, &burn_op_def_gather, &axis, in, 2, out, salted_like(e, 9, out[0]), 1, grads);
    EXPECT(grads[0], gather_gx);
    in[1] = eval_tensor(e, BURN_I64, 1, (int64_t[]){4}, (double[]){5, 0, 5, 7});
    for (int how = BY_EVAL; how <= BY_DECOMPOSITION; how++) {
        (void)run(e, how, &burn_op_def_select, &axis, in, 2, out);
        EXPECT(out[0], select_y);
    }
    gradients(e, &burn_op_def_select, &axis, in, 2, out, salted_like(e, 9, out[0]), 1, grads);
    EXPECT(grads[0], select_gx);
    eval_builder_free(e);
}

static void test_matmul_values(void **state)
{
    (void)state;
    eval_builder *e = eval_builder_new();
    burn_value *in[2] = {salted(e, 5, 4, (int64_t[]){2, 1, 3, 4}),
                         salted(e, 6, 3, (int64_t[]){3, 4, 2})};
    burn_value *out[1];
    burn_value *grads[2];
    (void)run(e, BY_EVAL, &burn_op_def_matmul, NULL, in, 2, out);
    EXPECT(out[0], matmul_y);
    gradients(e, &burn_op_def_matmul, NULL, in, 2, out, salted_like(e, 9, out[0]), 3, grads);
    EXPECT(grads[0], matmul_gx);
    EXPECT(grads[1], matmul_gy);
    eval_builder_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_views_agree_with_eval),
        cmocka_unit_test(test_reshape_of_strides),
        cmocka_unit_test(test_B024_zero_sizes),
        cmocka_unit_test(test_B046_leading_one_and_strided_values),
        cmocka_unit_test(test_B048_duplicates),
        cmocka_unit_test(test_B088_embedding),
        cmocka_unit_test(test_B127_cat_with_a_piece_without_gradient),
        cmocka_unit_test(test_B129_scatter_backward_with_fewer_values),
        cmocka_unit_test(test_error_texts),
        cmocka_unit_test(test_unfold_values),
        cmocka_unit_test(test_index_values),
        cmocka_unit_test(test_matmul_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
