/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_ops_eval.c - definitions of pointwise ops, reductions and creation: structure, meaning,
 * gradients, decompositions, without a device.
 *
 * Expected numbers come from a reported fault, whose id a test's name then carries; those of other
 * implementations are in tests/oracle. Ops run through `eval` by eval_builder. To add an op of
 * these families: its name in `names`. Samples are tried by test_ops_samples.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval_builder.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <burn/call.h>
#include <math.h>
#include <string.h>

#define NOT_A_NUMBER ((double)NAN)

static const char *const names[] = {
#define OP_NAME(id, NAME, name) #name,
    BURN_FOREACH_UNARY_OP(OP_NAME) BURN_FOREACH_BINARY_OP(OP_NAME)
#undef OP_NAME
    "gelu",      "where",  "cast",   "clamp",  "copy",        "fill",           "arange",
    "any",       "all",    "sum",    "prod",   "random_bits", "random_uniform", "random_normal",
    "bernoulli", "max",    "min",    "mean",   "argmax",      "argmin",         "var",
    "logsumexp", "cumsum", "gelu_grad", "relu_grad"};

enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

static const burn_op_def *def_of(const char *name)
{
    const burni_op *op = burni_op_find_name(name);
    assert_non_null(op);
    return &op->def;
}

static void check_numbers(const char *op, const burn_value *got, uint32_t n, const double *wanted,
                          double allowed)
{
    assert_int_equal(eval_of(got)->code, BURN_OK);
    assert_int_equal(eval_of(got)->x.n, n);
    for (uint32_t k = 0; k < n; k++) {
        double a = eval_at(got, k);
        double b = wanted[k];
        int fine = isnan(b) ? isnan(a) : a == b || fabs(a - b) <= allowed * fmax(1.0, fabs(b));
        if (!fine) {
            print_error("%s: element %u is %.17g, wanted %.17g\n", op, k, a, b);
        }
        assert_true(fine);
    }
}

/* ---- structure ------------------------------------------------------------------------------- */

static void check_attrs(const burn_op_def *def)
{
    assert_true(def->attrs_size <= BURN_MAX_ATTRS);
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const burn_attr *attr = &def->attrs[i];
        assert_non_null(attr->name);
        assert_non_null(attr->doc);
        assert_true(attr->offset >= sizeof(burn_attrs_head));
        assert_true((uint32_t)attr->offset + attr->size <= def->attrs_size);
    }
}

static uint32_t count_samples(const burn_op_def *def)
{
    burn_sample s;
    uint32_t n = 0;
    while (n < 1000 && def->samples(n, &s) == BURN_OK) {
        assert_int_equal(s.struct_size, sizeof(s));
        assert_non_null(s.name);
        assert_true(s.n_in <= def->n_in);
        assert_true(s.attrs_size == 0 || s.attrs_size == def->attrs_size);
        n++;
    }
    return n;
}

static void test_structure(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_NAMES; i++) {
        const burn_op_def *def = def_of(names[i]);
        assert_string_equal(def->name, names[i]);
        assert_non_null(def->summary);
        assert_non_null(def->eval);
        assert_true(def->infer != NULL || def->fuse == BURN_FUSE_POINTWISE);
        assert_true((def->vjp == NULL) != (def->no_vjp == NULL) || def->decompose != NULL);
        assert_false(def->vjp != NULL && def->no_vjp != NULL);
        assert_true((def->vjp != NULL) == (def->vjp_saves != NULL));
        assert_true(((def->flags & BURN_OP_PRIMITIVE) != 0) == (def->decompose == NULL));
        assert_true((def->flags & BURN_OP_MINIMAL) == 0 || (def->flags & BURN_OP_PRIMITIVE) != 0);
        assert_true(count_samples(def) >= 3);
        check_attrs(def);
    }
}

static void test_ids_match_the_list(void **state)
{
    (void)state;
#define OP_ID(number, NAME, name_)                                                                 \
    assert_int_equal(burn_op_def_##name_.id, number);                                              \
    assert_string_equal(burn_op_def_##name_.name, #name_);
    BURN_FOREACH_OP(OP_ID)
#undef OP_ID
}

/* ---- running one op -------------------------------------------------------------------------- */

typedef struct run {
    eval_builder *e;
    burn_builder b;
} run;

static run begin(void)
{
    run r;
    r.e = eval_builder_new();
    r.b = eval_builder_of(r.e);
    return r;
}

static burn_value *vector(const run *r, uint8_t dtype, uint32_t n, const double *numbers)
{
    int64_t dims[1] = {n};
    return eval_tensor(r->e, dtype, 1, dims, numbers);
}

#define VECTOR(r, dtype, list) vector(r, dtype, (uint32_t)(sizeof(list) / sizeof((list)[0])), list)
#define CHECK(value, list)                                                                         \
    check_numbers(__func__, value, (uint32_t)(sizeof(list) / sizeof((list)[0])), list, 1e-14)

/* The gradient of input i, given everything that might be saved. */
static burn_value *gradient(const run *r, const burn_op_def *def, const void *attrs,
                            burn_value *const *in, burn_value *const *out, burn_value *g,
                            uint32_t i)
{
    burn_value *grads[4] = {NULL};
    burn_value *seeds[1] = {g};
    burn_meta metas[4];
    uint8_t wanted[4] = {0};
    for (uint32_t k = 0; k < def->n_in; k++) {
        memset(&metas[k], 0, sizeof(metas[k]));
        if (in[k] != NULL) {
            metas[k] = eval_of(in[k])->x.meta;
        }
    }
    wanted[i] = 1;
    burn_vjp a = {sizeof(a), def->n_in, 1,     def->attrs_size, in,   out, seeds,
                  wanted,    metas,     grads, attrs};
    assert_int_equal(def->vjp(&r->b, &a), BURN_OK);
    return grads[i];
}

/* Attributes of a reduction over all of x. */
static burn_attrs_axes all_axes(void)
{
    burn_attrs_axes t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    return t;
}

/* ---- reported faults ------------------------------------------------------------------------- */

static burn_value *reduce_all(const run *r, uint64_t op, burn_value *x)
{
    return burn_b_reduce(&r->b, op, x, 0, NULL, 0);
}

static double only(const burn_value *value)
{
    assert_int_equal(eval_of(value)->code, BURN_OK);
    assert_int_equal(eval_of(value)->x.n, 1);
    return eval_at(value, 0);
}

static void test_nan_in_max_B001(void **state)
{
    (void)state;
    static const double one[] = {1.0, NOT_A_NUMBER, 3.0, 2.0};
    static const double pair[] = {1.0, NOT_A_NUMBER, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0};
    static const double wanted[] = {NOT_A_NUMBER, 4.0};
    static const double indices[] = {1.0, 1.0};
    static const int64_t dims[] = {2, 4};
    run r = begin();
    burn_value *x = VECTOR(&r, BURN_F32, one);
    assert_true(isnan(only(reduce_all(&r, BURN_OP_MAX, x))));
    assert_true(isnan(only(reduce_all(&r, BURN_OP_MIN, x))));
    assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMAX, x, 0, 0)) == 1.0);
    assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMIN, x, 0, 0)) == 1.0);
    burn_value *rows = eval_tensor(r.e, BURN_F32, 2, dims, pair);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_MAX, rows, 1, 0), wanted);
    CHECK(burn_b_axis(&r.b, BURN_OP_ARGMAX, rows, 1, 0), indices);
    eval_builder_free(r.e);
}

static void test_argmax_of_all_nan_B003(void **state)
{
    (void)state;
    static const double all[] = {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER,
                                 NOT_A_NUMBER};
    run r = begin();
    burn_value *x = VECTOR(&r, BURN_F32, all);
    assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMAX, x, 0, 0)) == 0.0);
    assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMIN, x, 0, 0)) == 0.0);
    eval_builder_free(r.e);
}

static void test_ties_take_the_lowest_index_B005(void **state)
{
    (void)state;
    static const double ties[] = {3.0, 3.0, -2.0, -2.0};
    static double row[4096];
    row[7] = 9.0;
    row[4001] = 9.0;
    run r = begin();
    const uint8_t dtypes[] = {BURN_F32, BURN_I32};
    for (uint32_t d = 0; d < 2; d++) {
        burn_value *x = VECTOR(&r, dtypes[d], ties);
        assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMAX, x, 0, 0)) == 0.0);
        assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMIN, x, 0, 0)) == 2.0);
    }
    burn_value *x = vector(&r, BURN_F32, 4096, row);
    assert_true(only(burn_b_axis(&r.b, BURN_OP_ARGMAX, x, 0, 0)) == 7.0);
    eval_builder_free(r.e);
}

static void test_truth_of_odd_values_B011(void **state)
{
    (void)state;
    static const double cases[] = {-0.0, 1e-45, NOT_A_NUMBER};
    static const double wanted[] = {0.0, 1.0, 1.0};
    static const double mixed[] = {0.5, 0.0, -0.0, NOT_A_NUMBER};
    static const double truths[] = {1.0, 0.0, 0.0, 1.0};
    static const double six[] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
    run r = begin();
    for (uint32_t i = 0; i < 3; i++) {
        burn_value *x = vector(&r, BURN_F32, 1, &cases[i]);
        assert_true(only(reduce_all(&r, BURN_OP_ANY, x)) == wanted[i]);
        assert_true(only(reduce_all(&r, BURN_OP_ALL, x)) == wanted[i]);
    }
    burn_value *a = VECTOR(&r, BURN_F32, six);
    assert_true(only(reduce_all(&r, BURN_OP_ALL, burn_b_less_equal(&r.b, a, a))) == 1.0);
    CHECK(burn_b_cast(&r.b, VECTOR(&r, BURN_F32, mixed), BURN_BOOL), truths);
    eval_builder_free(r.e);
}

static void test_prod_B015(void **state)
{
    (void)state;
    static const double bad[] = {1.0, NOT_A_NUMBER, 0.0, 2.0};
    static const double negative[] = {-2.0, 3.0, -4.0};
    run r = begin();
    assert_true(isnan(only(reduce_all(&r, BURN_OP_PROD, VECTOR(&r, BURN_F32, bad)))));
    assert_true(only(reduce_all(&r, BURN_OP_PROD, VECTOR(&r, BURN_F32, negative))) == 24.0);
    eval_builder_free(r.e);
}

typedef struct broadcast_case {
    uint8_t rank_x;
    uint8_t rank_y;
    uint8_t rank_z;
    int64_t x[2];
    int64_t y[2];
    int64_t z[2];
} broadcast_case;

static void test_broadcast_with_zero_B020(void **state)
{
    (void)state;
    static const broadcast_case cases[] = {{2, 2, 2, {2, 0}, {2, 1}, {2, 0}},
                                           {2, 2, 2, {2, 1}, {2, 0}, {2, 0}},
                                           {2, 2, 2, {0, 3}, {1, 3}, {0, 3}},
                                           {2, 2, 2, {2, 0}, {2, 0}, {2, 0}},
                                           {1, 1, 1, {0}, {1}, {0}}};
    static const double numbers[6] = {0.0};
    static const double column[] = {1.0, 2.0};
    static const double block[] = {10.0, 20.0, 30.0, 40.0, 50.0, 60.0};
    static const double sums[] = {11.0, 21.0, 31.0, 42.0, 52.0, 62.0};
    static const int64_t d21[] = {2, 1};
    static const int64_t d23[] = {2, 3};
    static const int64_t d20[] = {2, 0};
    run r = begin();
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const broadcast_case *c = &cases[i];
        burn_value *x = eval_tensor(r.e, BURN_F32, c->rank_x, c->x, numbers);
        burn_value *y = eval_tensor(r.e, BURN_F32, c->rank_y, c->y, numbers);
        burn_value *results[3] = {burn_b_add(&r.b, x, y), burn_b_less(&r.b, x, y),
                                  burn_b_where(&r.b, burn_b_less(&r.b, x, x), x, y)};
        for (uint32_t k = 0; k < 3; k++) {
            const burn_meta *z = &eval_of(results[k])->x.meta;
            assert_int_equal(eval_of(results[k])->code, BURN_OK);
            assert_int_equal(z->rank, c->rank_z);
            assert_memory_equal(z->dims, c->z, c->rank_z * sizeof(int64_t));
        }
    }
    burn_value *wide = eval_tensor(r.e, BURN_F32, 2, d23, block);
    CHECK(burn_b_add(&r.b, eval_tensor(r.e, BURN_F32, 2, d21, column), wide), sums);
    burn_value *bad = burn_b_add(&r.b, eval_tensor(r.e, BURN_F32, 2, d20, numbers), wide);
    assert_int_equal(eval_of(bad)->code, BURN_E_SHAPE);
    assert_non_null(strstr(eval_of(bad)->text, "[2,0]"));
    eval_builder_free(r.e);
}

static void test_reductions_of_nothing_B022(void **state)
{
    (void)state;
    static const int64_t d30[] = {3, 0};
    static const int64_t d00[] = {0, 0};
    static const double none[1] = {0.0};
    static const double zeros[] = {0.0, 0.0, 0.0};
    static const double ones[] = {1.0, 1.0, 1.0};
    static const double nans[] = {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
    run r = begin();
    burn_value *x = eval_tensor(r.e, BURN_F32, 2, d30, none);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_SUM, x, 1, 0), zeros);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_PROD, x, 1, 0), ones);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_MEAN, x, 1, 0), nans);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_VAR, x, 1, 0), nans);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_ANY, x, 1, 0), zeros);
    CHECK(burn_b_reduce1(&r.b, BURN_OP_ALL, x, 1, 0), ones);
    const int64_t *shapes[] = {d30, d00};
    for (uint32_t i = 0; i < 2; i++) {
        burn_value *y = eval_tensor(r.e, BURN_F16, 2, shapes[i], none);
        burn_value *whole = eval_tensor(r.e, BURN_I32, 2, shapes[i], none);
        burn_value *fails[] = {burn_b_reduce1(&r.b, BURN_OP_MAX, y, 1, 0),
                               burn_b_reduce1(&r.b, BURN_OP_MIN, y, 1, 0),
                               burn_b_axis(&r.b, BURN_OP_ARGMAX, y, 1, 0),
                               burn_b_axis(&r.b, BURN_OP_ARGMIN, y, 1, 0),
                               burn_b_reduce1(&r.b, BURN_OP_MEAN, whole, 1, 0)};
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(eval_of(fails[k])->code, BURN_E_SHAPE);
        }
        assert_int_equal(eval_of(burn_b_reduce1(&r.b, BURN_OP_SUM, y, 1, 0))->code, BURN_OK);
    }
    eval_builder_free(r.e);
}

static void test_integer_remainder_broadcasts_B030(void **state)
{
    (void)state;
    static const int64_t d13[] = {1, 3};
    static const int64_t d11[] = {1, 1};
    static const double x[] = {10.0, 20.0, 30.0};
    static const double y[] = {7.0};
    static const double wanted[] = {3.0, 6.0, 2.0};
    run r = begin();
    burn_value *z = burn_b_remainder(&r.b, eval_tensor(r.e, BURN_I32, 2, d13, x),
                                     eval_tensor(r.e, BURN_I32, 2, d11, y));
    CHECK(z, wanted);
    eval_builder_free(r.e);
}

static void test_variance_of_one_B064(void **state)
{
    (void)state;
    static const double five[] = {5.0};
    run r = begin();
    for (uint32_t correction = 0; correction < 2; correction++) {
        burn_attrs_axes t = all_axes();
        t.correction = correction;
        burn_value *x = VECTOR(&r, BURN_F32, five);
        burn_value *direct = burn_b_emit(&r.b, BURN_OP_VAR, &t, &x, 1);
        burn_value *made = NULL;
        (void)eval_expand(r.e, &burn_op_def_var, &t, (uint32_t)sizeof(t), &x, 1, &made);
        assert_true(correction ? isnan(only(direct)) : only(direct) == 0.0);
        assert_true(correction ? isnan(only(made)) : only(made) == 0.0);
    }
    eval_builder_free(r.e);
}

static void test_mean_in_f16_B066(void **state)
{
    (void)state;
    static double numbers[70000];
    run r = begin();
    burn_attrs_axes t = all_axes();
    for (uint32_t k = 0; k < 70000; k++) {
        numbers[k] = k < 256 ? 767.5 : 1.0;
    }
    burn_value *made = NULL;
    burn_value *x = vector(&r, BURN_F16, 256, numbers);
    (void)eval_expand(r.e, &burn_op_def_mean, &t, (uint32_t)sizeof(t), &x, 1, &made);
    assert_true(only(made) == 767.5);
    assert_true(only(reduce_all(&r, BURN_OP_MEAN, x)) == 767.5);
    for (uint32_t k = 0; k < 256; k++) {
        numbers[k] = 1.0;
    }
    x = vector(&r, BURN_F16, 70000, numbers);
    (void)eval_expand(r.e, &burn_op_def_mean, &t, (uint32_t)sizeof(t), &x, 1, &made);
    assert_true(only(made) == 1.0);
    assert_true(only(reduce_all(&r, BURN_OP_MEAN, x)) == 1.0);
    eval_builder_free(r.e);
}

static void test_sigmoid_slope_far_out_B070(void **state)
{
    (void)state;
    static const double point[] = {-90.0};
    static const double one[] = {1.0};
    run r = begin();
    burn_value *x = VECTOR(&r, BURN_F32, point);
    burn_value *y = burn_b_sigmoid(&r.b, x);
    burn_value *g = gradient(&r, &burn_op_def_sigmoid, NULL, &x, &y, VECTOR(&r, BURN_F32, one), 0);
    assert_true(only(g) >= 0.0 && only(g) < 1e-38);
    eval_builder_free(r.e);
}

static void test_tanh_and_gelu_far_out_B072(void **state)
{
    (void)state;
    static const double points[] = {-1e4, 1e4};
    static const double flat[] = {-1.0, 1.0};
    static const double gelu[] = {0.0, 1e4};
    static const double slope[] = {0.0, 1.0};
    static const double ones[] = {1.0, 1.0};
    const uint8_t dtypes[] = {BURN_F32, BURN_F16};
    run r = begin();
    for (uint32_t i = 0; i < 4; i++) {
        burn_attrs_gelu t;
        burn_attrs_init(&t, (uint32_t)sizeof(t));
        t.tanh_form = i / 2;
        burn_value *in[2] = {VECTOR(&r, dtypes[i % 2], points), VECTOR(&r, dtypes[i % 2], ones)};
        burn_value *made = NULL;
        CHECK(burn_b_tanh(&r.b, in[0]), flat);
        CHECK(burn_b_emit(&r.b, BURN_OP_GELU, &t, in, 1), gelu);
        (void)eval_expand(r.e, &burn_op_def_gelu, &t, (uint32_t)sizeof(t), in, 1, &made);
        CHECK(made, gelu);
        CHECK(burn_b_emit(&r.b, BURN_OP_GELU_GRAD, &t, in, 2), slope);
        (void)eval_expand(r.e, &burn_op_def_gelu_grad, &t, (uint32_t)sizeof(t), in, 2, &made);
        CHECK(made, slope);
    }
    eval_builder_free(r.e);
}

/* Nothing flows where relu gave 0 or NaN, whatever g is there. */
static void test_relu_grad(void **state)
{
    (void)state;
    static const double y[] = {0.0, 2.0, (double)NAN, 1e-30};
    static const double g[] = {(double)INFINITY, -3.0, 5.0, 7.0};
    static const double wanted[] = {0.0, -3.0, 0.0, 7.0};
    run r = begin();
    burn_value *in[2] = {VECTOR(&r, BURN_F32, y), VECTOR(&r, BURN_F32, g)};
    burn_value *made = NULL;
    CHECK(burn_b_emit(&r.b, BURN_OP_RELU_GRAD, NULL, in, 2), wanted);
    (void)eval_expand(r.e, &burn_op_def_relu_grad, NULL, 0, in, 2, &made);
    CHECK(made, wanted);
    eval_builder_free(r.e);
}

static void test_integer_remainders_B078(void **state)
{
    (void)state;
    static const double x[] = {-3.0, -2.0, -1.0, 1.0, 2.0, 3.0};
    static const double y[] = {2.0, 3.0, 1.0, 2.0, 1.0, 3.0};
    static const double python[] = {1.0, 1.0, 0.0, 1.0, 0.0, 0.0};
    static const double two[] = {1.0, 0.0, 1.0, 1.0, 0.0, 1.0};
    static const double c_like[] = {-1.0, -2.0, 0.0, 1.0, 0.0, 0.0};
    run r = begin();
    burn_value *in[2] = {VECTOR(&r, BURN_I32, x), VECTOR(&r, BURN_I32, y)};
    burn_value *made = NULL;
    CHECK(burn_b_remainder(&r.b, in[0], in[1]), python);
    CHECK(burn_b_remainder_num(&r.b, in[0], 2.0), two);
    CHECK(burn_b_fmod(&r.b, in[0], in[1]), c_like);
    (void)eval_expand(r.e, &burn_op_def_remainder, NULL, 0, in, 2, &made);
    CHECK(made, python);
    eval_builder_free(r.e);
}

/* The 32-bit and 8-bit cases leave eval as 64-bit numbers that the harness wraps. */
static int64_t wrapped(const burn_value *value, uint8_t dtype)
{
    uint32_t shift = 64 - 8 * burn_dtype_size(dtype);
    assert_int_equal(eval_of(value)->code, BURN_OK);
    return (int64_t)((uint64_t)eval_of(value)->x.i[0] << shift) >> shift;
}

static void test_integer_division_edges_B080(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_I8, BURN_I32, BURN_I64};
    static const double minus[] = {-1.0};
    static const double one[] = {1.0};
    static const double zero[] = {0.0};
    run r = begin();
    for (uint32_t d = 0; d < 3; d++) {
        double low[] = {-ldexp(1.0, 8 * (int)burn_dtype_size(dtypes[d]) - 1)};
        burn_value *x = VECTOR(&r, dtypes[d], low);
        burn_value *y = VECTOR(&r, dtypes[d], minus);
        assert_true((double)wrapped(burn_b_div(&r.b, x, y), dtypes[d]) == low[0]);
        assert_int_equal(wrapped(burn_b_remainder(&r.b, x, y), dtypes[d]), 0);
        assert_int_equal(wrapped(burn_b_fmod(&r.b, x, y), dtypes[d]), 0);
        burn_value *n = VECTOR(&r, dtypes[d], one);
        burn_value *o = VECTOR(&r, dtypes[d], zero);
        assert_int_equal(eval_of(burn_b_div(&r.b, n, o))->code, BURN_E_DATA);
        assert_int_equal(eval_of(burn_b_remainder(&r.b, n, o))->code, BURN_E_DATA);
        assert_int_equal(eval_of(burn_b_fmod(&r.b, n, o))->code, BURN_E_DATA);
    }
    eval_builder_free(r.e);
}

static void test_casts_out_of_range_B082(void **state)
{
    (void)state;
    static const double x[] = {NOT_A_NUMBER, HUGE_VAL, -HUGE_VAL, 3e9, -3e9, 2.9, -2.9};
    static const double wanted[] = {0.0,           2147483647.0, -2147483648.0, 2147483647.0,
                                    -2147483648.0, 2.0,          -2.0};
    static const double small[] = {-1.0, 300.0};
    static const double bytes[] = {0.0, 255.0};
    run r = begin();
    CHECK(burn_b_cast(&r.b, VECTOR(&r, BURN_F32, x), BURN_I32), wanted);
    CHECK(burn_b_cast(&r.b, VECTOR(&r, BURN_F32, small), BURN_U8), bytes);
    eval_builder_free(r.e);
}

static void test_powers_B086(void **state)
{
    (void)state;
    static const double x[] = {-2.0, -2.0, -8.0, 0.0, 0.0, HUGE_VAL, -1.0};
    static const double y[] = {2.0, 3.0, 1.0 / 3.0, 0.0, -1.0, 0.0, 1e10};
    static const double wanted[] = {4.0, -8.0, NOT_A_NUMBER, 1.0, HUGE_VAL, 1.0, 1.0};
    static const double two[] = {2.0};
    run r = begin();
    CHECK(burn_b_pow(&r.b, VECTOR(&r, BURN_F64, x), VECTOR(&r, BURN_F64, y)), wanted);
    burn_value *bad = burn_b_pow_num(&r.b, VECTOR(&r, BURN_I32, two), -1.0);
    assert_int_equal(eval_of(bad)->code, BURN_E_DATA);
    eval_builder_free(r.e);
}

static void test_gradient_of_prod_with_zeros_B121(void **state)
{
    (void)state;
    static const double one[] = {2.0, 0.0, 3.0};
    static const double two[] = {0.0, 0.0, 3.0};
    static const double wanted_one[] = {0.0, 6.0, 0.0};
    static const double wanted_two[] = {0.0, 0.0, 0.0};
    static const double seed = 1.0;
    run r = begin();
    burn_attrs_axes t = all_axes();
    burn_value *g = eval_tensor(r.e, BURN_F32, 0, NULL, &seed);
    burn_value *x = VECTOR(&r, BURN_F32, one);
    burn_value *y = reduce_all(&r, BURN_OP_PROD, x);
    CHECK(gradient(&r, &burn_op_def_prod, &t, &x, &y, g, 0), wanted_one);
    x = VECTOR(&r, BURN_F32, two);
    y = reduce_all(&r, BURN_OP_PROD, x);
    CHECK(gradient(&r, &burn_op_def_prod, &t, &x, &y, g, 0), wanted_two);
    eval_builder_free(r.e);
}

static void test_gradient_of_pow_at_zero_B123(void **state)
{
    (void)state;
    static const double zeros[] = {0.0, 0.0};
    static const double base[] = {0.0, 2.0};
    static const double exponent[] = {1.0, 1.0};
    static const double seeds[] = {1.0, 1.0};
    static const double slopes[] = {0.0, 1.3862943611198906};
    run r = begin();
    burn_value *g = VECTOR(&r, BURN_F64, seeds);
    burn_value *in[2] = {VECTOR(&r, BURN_F64, zeros), VECTOR(&r, BURN_F64, zeros)};
    burn_value *out = burn_b_pow(&r.b, in[0], in[1]);
    CHECK(gradient(&r, &burn_op_def_pow, NULL, in, &out, g, 0), zeros);
    CHECK(gradient(&r, &burn_op_def_pow, NULL, in, &out, g, 1), zeros);
    in[0] = VECTOR(&r, BURN_F64, base);
    in[1] = VECTOR(&r, BURN_F64, exponent);
    out = burn_b_pow(&r.b, in[0], in[1]);
    CHECK(gradient(&r, &burn_op_def_pow, NULL, in, &out, g, 1), slopes);
    eval_builder_free(r.e);
}

static void test_gradient_of_ties_B125(void **state)
{
    (void)state;
    static const double x[] = {3.0, 3.0, 1.0};
    static const double shares[] = {0.5, 0.5, 0.0};
    static const double half[] = {0.5};
    static const double seed = 1.0;
    run r = begin();
    burn_attrs_axes t = all_axes();
    burn_value *g = eval_tensor(r.e, BURN_F32, 0, NULL, &seed);
    burn_value *in[2] = {VECTOR(&r, BURN_F32, x), NULL};
    burn_value *out = reduce_all(&r, BURN_OP_MAX, in[0]);
    CHECK(gradient(&r, &burn_op_def_max, &t, in, &out, g, 0), shares);
    in[0] = in[1] = vector(&r, BURN_F32, 1, &seed);
    out = burn_b_maximum(&r.b, in[0], in[1]);
    CHECK(gradient(&r, &burn_op_def_maximum, NULL, in, &out, in[0], 0), half);
    CHECK(gradient(&r, &burn_op_def_maximum, NULL, in, &out, in[0], 1), half);
    eval_builder_free(r.e);
}

/* The published test vector of Philox4x32-10 for key and counter 0. */
static void test_philox_vectors(void **state)
{
    (void)state;
    static const uint32_t zero[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(burni_random_u32(0, 0, k), zero[k]);
    }
    assert_true(burni_random_u64(0, 0, 0) == 0xe169c58d6627e8d5u);
    assert_true(burni_random_u32(5, 3, 4) == burni_random_u32(5, 4, 0));
}

static void test_logsumexp_of_infinities(void **state)
{
    (void)state;
    static const double low[] = {-HUGE_VAL, -HUGE_VAL};
    static const double high[] = {HUGE_VAL, 1.0};
    static const double large[] = {1000.0, 1000.0};
    run r = begin();
    assert_true(isnan(only(reduce_all(&r, BURN_OP_LOGSUMEXP, VECTOR(&r, BURN_F32, low)))));
    assert_true(only(reduce_all(&r, BURN_OP_LOGSUMEXP, VECTOR(&r, BURN_F32, high))) == HUGE_VAL);
    double y = only(reduce_all(&r, BURN_OP_LOGSUMEXP, VECTOR(&r, BURN_F64, large)));
    assert_true(fabs(y - 1000.6931471805599) < 1e-12);
    eval_builder_free(r.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_ids_match_the_list),
        cmocka_unit_test(test_nan_in_max_B001),
        cmocka_unit_test(test_argmax_of_all_nan_B003),
        cmocka_unit_test(test_ties_take_the_lowest_index_B005),
        cmocka_unit_test(test_truth_of_odd_values_B011),
        cmocka_unit_test(test_prod_B015),
        cmocka_unit_test(test_broadcast_with_zero_B020),
        cmocka_unit_test(test_reductions_of_nothing_B022),
        cmocka_unit_test(test_integer_remainder_broadcasts_B030),
        cmocka_unit_test(test_variance_of_one_B064),
        cmocka_unit_test(test_mean_in_f16_B066),
        cmocka_unit_test(test_sigmoid_slope_far_out_B070),
        cmocka_unit_test(test_tanh_and_gelu_far_out_B072),
        cmocka_unit_test(test_relu_grad),
        cmocka_unit_test(test_integer_remainders_B078),
        cmocka_unit_test(test_integer_division_edges_B080),
        cmocka_unit_test(test_casts_out_of_range_B082),
        cmocka_unit_test(test_powers_B086),
        cmocka_unit_test(test_gradient_of_prod_with_zeros_B121),
        cmocka_unit_test(test_gradient_of_pow_at_zero_B123),
        cmocka_unit_test(test_gradient_of_ties_B125),
        cmocka_unit_test(test_philox_vectors),
        cmocka_unit_test(test_logsumexp_of_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
