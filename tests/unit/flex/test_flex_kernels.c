/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_kernels.c - elementwise ops, casts and reductions of the CPU backend, called by row.
 *
 * Expected values are naive loops in double or int64 next to each test. Names carry the id of the
 * reported fault that a test repeats. Arguments: plugin file, ISA. Movement, indices, random
 * numbers and threads are in test_flex_data.c.
 */
#include "fixture.h"

#include <burn_sdk/half.h>
#include <math.h>
#include <string.h>

static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 129, 513, 1023};
enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };


static double d_neg(double x)
{
    return -x;
}

static double d_sign(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}

static double d_rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

static double d_recip(double x)
{
    return 1.0 / x;
}

static double d_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

static double d_relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

static double d_silu(double x)
{
    return x * d_sigmoid(x);
}

static double d_softplus(double x)
{
    return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}

static double d_log_sigmoid(double x)
{
    return -d_softplus(-x);
}

typedef struct unary_case {
    uint64_t op;
    const char *name;
    double (*want)(double);
    double lo;
    double hi;
    double ulp; /* against the f64 result, 0.5 is perfect */
} unary_case;

static const unary_case unary_cases[] = {
    {BURN_OP_NEG, "neg", d_neg, -1e6, 1e6, 0.0},
    {BURN_OP_ABS, "abs", fabs, -1e6, 1e6, 0.0},
    {BURN_OP_SIGN, "sign", d_sign, -2, 2, 0.0},
    {BURN_OP_EXP, "exp", exp, -104, 89, 2.0},
    {BURN_OP_EXP, "exp small", exp, -1, 1, 2.0},
    {BURN_OP_EXPM1, "expm1", expm1, -20, 89, 2.0},
    {BURN_OP_EXPM1, "expm1 small", expm1, -0.5, 0.5, 2.0},
    {BURN_OP_LOG, "log", log, 1e-38, 1e3, 1.0},
    {BURN_OP_LOG, "log near 1", log, 0.9, 1.1, 1.0},
    {BURN_OP_LOG1P, "log1p", log1p, -0.999, 1e3, 1.0},
    {BURN_OP_LOG1P, "log1p small", log1p, -1e-3, 1e-3, 1.0},
    {BURN_OP_SQRT, "sqrt", sqrt, 0, 1e6, 0.51},
    {BURN_OP_RSQRT, "rsqrt", d_rsqrt, 1e-3, 1e6, 1.5},
    {BURN_OP_RECIP, "recip", d_recip, 1e-3, 1e6, 0.51},
    {BURN_OP_SIN, "sin", sin, -100, 100, 2.0},
    {BURN_OP_SIN, "sin large", sin, -3e6, 3e6, 2.0},
    {BURN_OP_COS, "cos", cos, -100, 100, 2.0},
    {BURN_OP_COS, "cos large", cos, -3e6, 3e6, 2.0},
    {BURN_OP_TAN, "tan", tan, -10, 10, 1.0},
    {BURN_OP_ASIN, "asin", asin, -1, 1, 1.0},
    {BURN_OP_ACOS, "acos", acos, -1, 1, 1.0},
    {BURN_OP_ATAN, "atan", atan, -50, 50, 1.0},
    {BURN_OP_SINH, "sinh", sinh, -89, 89, 1.0},
    {BURN_OP_SINH, "sinh small", sinh, -0.2, 0.2, 1.0},
    {BURN_OP_COSH, "cosh", cosh, -89, 89, 1.0},
    {BURN_OP_TANH, "tanh", tanh, -10, 10, 2.0},
    {BURN_OP_TANH, "tanh small", tanh, -0.1, 0.1, 2.0},
    {BURN_OP_ERF, "erf", erf, -5, 5, 2.0},
    {BURN_OP_ERF, "erf small", erf, -0.01, 0.01, 2.0},
    {BURN_OP_SIGMOID, "sigmoid", d_sigmoid, -90, 90, 2.5},
    {BURN_OP_FLOOR, "floor", floor, -9, 9, 0.0},
    {BURN_OP_CEIL, "ceil", ceil, -9, 9, 0.0},
    {BURN_OP_ROUND, "round", rint, -9, 9, 0.0},
    {BURN_OP_TRUNC, "trunc", trunc, -9, 9, 0.0},
    {BURN_OP_RELU, "relu", d_relu, -9, 9, 0.0},
    {BURN_OP_SILU, "silu", d_silu, -80, 80, 3.0},
    {BURN_OP_SOFTPLUS, "softplus", d_softplus, -80, 80, 2.5},
    {BURN_OP_LOG_SIGMOID, "log_sigmoid", d_log_sigmoid, -80, 80, 2.5},
};
enum { N_UNARY = sizeof(unary_cases) / sizeof(unary_cases[0]) };

static void unary_f32_accuracy(void **state)
{
    (void)state;
    enum { N = 40000 };
    int bad = 0;
    for (uint32_t c = 0; c < N_UNARY; c++) {
        const unary_case *u = &unary_cases[c];
        tensor x;
        tensor z;
        double worst = 0.0;
        double at = 0.0;
        make1(&x, BURN_F32, N);
        make1(&z, BURN_F32, N);
        for (int64_t i = 0; i < N; i++) {
            put(&x, i, next_random(u->lo, u->hi));
        }
        assert_int_equal(run1(u->op, NULL, &x, &z), BURN_OK);
        for (int64_t i = 0; i < N; i++) {
            double off = ulp_f32((float)get(&z, i), u->want(get(&x, i)));
            if (off > worst) {
                worst = off;
                at = get(&x, i);
            }
        }
        if (worst > u->ulp) {
            print_message("%s: %g ulp at %.9g (%d allowed)\n", u->name, worst, at, (int)u->ulp);
            bad++;
        }
        unmake(&x);
        unmake(&z);
    }
    assert_int_equal(bad, 0);
}

/*
 * Every 6151st bit pattern of all f32 there are, and every 61st of those next to 1 and of angles up
 * to 2^15, where sin and cos are worked out in f32. The reference is libm in f64.
 */
static void check_sweep(const unary_case *u, uint64_t first, uint64_t end, uint64_t step)
{
    int64_t n = (int64_t)((end - first) / step);
    tensor x;
    tensor z;
    make1(&x, BURN_F32, n);
    make1(&z, BURN_F32, n);
    float *in = x.o.data;
    const float *out = z.o.data;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(first + (uint64_t)i * step);
        memcpy(&in[i], &bits, sizeof(bits));
    }
    assert_int_equal(run1(u->op, NULL, &x, &z), BURN_OK);
    for (int64_t i = 0; i < n; i++) {
        double off = ulp_f32(out[i], u->want((double)in[i]));
        if (off > u->ulp) {
            print_message("%s(%.9g) is %.9g: %g ulp off\n", u->name, (double)in[i],
                          (double)out[i], off);
        }
        assert_true(off <= u->ulp);
    }
    unmake(&x);
    unmake(&z);
}

static void unary_f32__two_ulp_over_the_whole_range(void **state)
{
    (void)state;
    static const unary_case cases[] = {
        {BURN_OP_EXP, "exp", exp, 0, 0, 2.0},    {BURN_OP_LOG, "log", log, 0, 0, 2.0},
        {BURN_OP_TANH, "tanh", tanh, 0, 0, 2.0}, {BURN_OP_ERF, "erf", erf, 0, 0, 2.0},
        {BURN_OP_SIN, "sin", sin, 0, 0, 2.0},    {BURN_OP_COS, "cos", cos, 0, 0, 2.0},
    };
    for (uint32_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        check_sweep(&cases[c], 0, UINT64_C(1) << 32, 6151);
        check_sweep(&cases[c], 0x3f000000, 0x40000000, 61);
        check_sweep(&cases[c], 0x40000000, 0x47000000, 509);
    }
}

static void unary_f32_special_values(void **state)
{
    (void)state;
    static const double values[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-40,
        3.4e38, -3.4e38, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88.7, 88.8, -87.4, -103.9, -104.1,
        1e10, -1e10, 16777216.0, 0.99999994, 4.0, -4.0};
    enum { N = sizeof(values) / sizeof(values[0]) };
    int bad = 0;
    for (uint32_t c = 0; c < N_UNARY; c++) {
        const unary_case *u = &unary_cases[c];
        tensor x;
        tensor z;
        make_values(&x, BURN_F32, N, values);
        make1(&z, BURN_F32, N);
        assert_int_equal(run1(u->op, NULL, &x, &z), BURN_OK);
        for (int64_t i = 0; i < N; i++) {
            double want = u->want(get(&x, i));
            double got = get(&z, i);
            int sign_of_zero = want == 0.0 && got == 0.0 && u->op != BURN_OP_SIGN &&
                               u->op != BURN_OP_RELU && signbit(want) != signbit(got);
            int near_zero = fabs(got - want) < 1.5e-43; /* silu multiplies a rounded subnormal */
            if ((ulp_f32((float)got, want) > (u->ulp > 2.0 ? u->ulp : 2.0) && !near_zero) ||
                sign_of_zero) {
                print_message("%s(%.9g): %.9g, not %.9g\n", u->name, get(&x, i), got, want);
                bad++;
            }
        }
        unmake(&x);
        unmake(&z);
    }
    assert_int_equal(bad, 0);
}

/* An element's bits do not depend on its place, the size or the layout. */
static void unary_f32_tails_equal_bodies(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < N_UNARY; c++) {
        const unary_case *u = &unary_cases[c];
        tensor all;
        tensor want;
        make1(&all, BURN_F32, 1023);
        make1(&want, BURN_F32, 1023);
        for (int64_t i = 0; i < 1023; i++) {
            put(&all, i, next_random(u->lo, u->hi));
        }
        assert_int_equal(run1(u->op, NULL, &all, &want), BURN_OK);
        for (uint32_t s = 0; s < N_SIZES; s++) {
            for (int layout = 0; layout < 3; layout++) {
                tensor x;
                tensor z;
                int64_t n = sizes[s];
                make1(&x, BURN_F32, n);
                make1(&z, BURN_F32, n);
                memcpy(x.memory, (float *)(void *)all.memory + (1023 - n), (size_t)n * 4);
                if (layout > 0) {
                    restride(&x, layout == 1 ? 3 : -1);
                }
                assert_int_equal(run1(u->op, NULL, &x, &z), BURN_OK);
                if (n > 0) {
                    assert_memory_equal(z.memory, (float *)(void *)want.memory + (1023 - n),
                                        (size_t)n * 4);
                }
                unmake(&x);
                unmake(&z);
            }
        }
        unmake(&all);
        unmake(&want);
    }
}

static void unary_other_floats(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F16, BURN_BF16, BURN_F64};
    static const double eps[] = {0x1p-10, 0x1p-7, 1e-14};
    for (uint32_t d = 0; d < 3; d++) {
        for (uint32_t c = 0; c < N_UNARY; c++) {
            const unary_case *u = &unary_cases[c];
            double lo = u->lo < -4.0 ? -4.0 : u->lo;
            double hi = u->hi > 4.0 ? 4.0 : u->hi;
            tensor x;
            tensor z;
            make1(&x, dtypes[d], 1025);
            make1(&z, dtypes[d], 1025);
            for (int64_t i = 0; i < 1025; i++) {
                put(&x, i, next_random(lo, hi));
            }
            assert_int_equal(run1(u->op, NULL, &x, &z), BURN_OK);
            for (int64_t i = 0; i < 1025; i++) {
                double want = u->want(get(&x, i));
                double room = eps[d] * fabs(want) + (d == 0 ? 1e-7 : 0.0);
                if (isfinite(want) && fabs(want) < 6e4 && fabs(get(&z, i) - want) > room) {
                    fail_msg("%s of %g: %g, not %g", u->name, get(&x, i), get(&z, i), want);
                }
            }
            unmake(&x);
            unmake(&z);
        }
    }
}

static double b_add(double x, double y)
{
    return x + y;
}

static double b_sub(double x, double y)
{
    return x - y;
}

static double b_mul(double x, double y)
{
    return x * y;
}

static double b_div(double x, double y)
{
    return x / y;
}

static double b_max(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : x > y ? x : y;
}

static double b_min(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : x < y ? x : y;
}

static double b_remainder(double x, double y)
{
    double r = fmod(x, y);
    return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r;
}

static double b_less(double x, double y)
{
    return x < y;
}

static double b_not_equal(double x, double y)
{
    return x != y;
}

static double b_greater_equal(double x, double y)
{
    return x >= y;
}

typedef struct binary_case {
    uint64_t op;
    const char *name;
    double (*want)(double, double);
    uint8_t out; /* 0: the inputs' dtype */
    double ulp;
} binary_case;

static const binary_case binary_cases[] = {
    {BURN_OP_ADD, "add", b_add, 0, 0.51},
    {BURN_OP_SUB, "sub", b_sub, 0, 0.51},
    {BURN_OP_MUL, "mul", b_mul, 0, 0.51},
    {BURN_OP_DIV, "div", b_div, 0, 0.51},
    {BURN_OP_MAXIMUM, "maximum", b_max, 0, 0.0},
    {BURN_OP_MINIMUM, "minimum", b_min, 0, 0.0},
    {BURN_OP_FMOD, "fmod", fmod, 0, 0.0},
    {BURN_OP_REMAINDER, "remainder", b_remainder, 0, 0.51},
    {BURN_OP_POW, "pow", pow, 0, 1.0},
    {BURN_OP_ATAN2, "atan2", atan2, 0, 1.0},
    {BURN_OP_LESS, "less", b_less, BURN_BOOL, 0.0},
    {BURN_OP_NOT_EQUAL, "not_equal", b_not_equal, BURN_BOOL, 0.0},
    {BURN_OP_GREATER_EQUAL, "greater_equal", b_greater_equal, BURN_BOOL, 0.0},
};
enum { N_BINARY = sizeof(binary_cases) / sizeof(binary_cases[0]) };

/* Every size, and operands that are dense, strided, reversed, stretched or one number. */
static void binary_f32_layouts(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < N_BINARY; c++) {
        for (uint32_t s = 0; s < N_SIZES; s++) {
            for (int layout = 0; layout < 6; layout++) {
                const binary_case *b = &binary_cases[c];
                int64_t n = sizes[s];
                tensor x;
                tensor y;
                tensor z;
                make1(&x, BURN_F32, n);
                make1(&z, b->out != 0 ? b->out : BURN_F32, n);
                if (layout < 4) {
                    make1(&y, BURN_F32, n);
                    for (int64_t i = 0; i < n; i++) {
                        put(&y, i, rint(next_random(-3, 3)));
                    }
                } else {
                    make_imm(&y, BURN_F32, 2.0);
                }
                for (int64_t i = 0; i < n; i++) {
                    put(&x, i, next_random(-5, 5));
                }
                if (layout == 1 || layout == 3) {
                    restride(&x, 2);
                }
                if (layout == 2 || layout == 3) {
                    restride(&y, -2);
                }
                tensor *first = layout == 5 ? &y : &x;
                tensor *second = layout == 5 ? &x : &y;
                assert_int_equal(run2(b->op, NULL, first, second, &z), BURN_OK);
                for (int64_t i = 0; i < n; i++) {
                    int64_t fi = first == &y && layout > 3 ? 0 : i;
                    int64_t si = second == &y && layout > 3 ? 0 : i;
                    double want = b->want(get(first, fi), get(second, si));
                    if (ulp_f32((float)get(&z, i), want) > b->ulp) {
                        fail_msg("%s(%g, %g): %g, not %g (size %d, layout %d)", b->name,
                                 get(first, fi), get(second, si), get(&z, i), want, (int)n,
                                 layout);
                    }
                }
                unmake(&x);
                unmake(&y);
                unmake(&z);
            }
        }
    }
}

static void binary_specials(void **state)
{
    (void)state;
    static const double v[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1.0,
                               -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e-40, 3e38, -3e38, 1e10,
                               16777215.0, 16777216.0, -8.0, 1.0 / 3.0};
    enum { N = sizeof(v) / sizeof(v[0]) };
    int bad = 0;
    for (uint32_t c = 0; c < N_BINARY; c++) {
        const binary_case *b = &binary_cases[c];
        tensor x;
        tensor y;
        tensor z;
        make1(&x, BURN_F32, N * N);
        make1(&y, BURN_F32, N * N);
        make1(&z, b->out != 0 ? b->out : BURN_F32, N * N);
        for (int64_t i = 0; i < N * N; i++) {
            put(&x, i, v[i / N]);
            put(&y, i, v[i % N]);
        }
        assert_int_equal(run2(b->op, NULL, &x, &y, &z), BURN_OK);
        for (int64_t i = 0; i < N * N; i++) {
            double want = b->want(get(&x, i), get(&y, i));
            if (ulp_f32((float)get(&z, i), want) > 1.0) {
                print_message("%s(%.9g, %.9g): %.9g, not %.9g\n", b->name, get(&x, i), get(&y, i),
                              get(&z, i), want);
                bad++;
            }
        }
        unmake(&x);
        unmake(&y);
        unmake(&z);
    }
    assert_int_equal(bad, 0);
}

static void broadcast_rows_and_columns(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F16, BURN_I64, BURN_U8};
    static const int64_t shapes[][2] = {{1, 5}, {3, 4}, {7, 63}, {5, 64}, {3, 1000}, {600, 3}};
    for (uint32_t d = 0; d < 4; d++) {
        for (uint32_t s = 0; s < 6; s++) {
            for (int which = 0; which < 3; which++) {
                int64_t full[2] = {shapes[s][0], shapes[s][1]};
                int64_t part[2] = {which == 0 ? 1 : full[0], which == 1 ? 1 : full[1]};
                tensor x;
                tensor y;
                tensor z;
                make(&x, dtypes[d], 2, full);
                make(&z, dtypes[d], 2, full);
                make(&y, dtypes[d], 2, part);
                for (int64_t i = 0; i < numel(&x); i++) {
                    put(&x, i, (double)(i % 11));
                }
                for (int64_t i = 0; i < numel(&y); i++) {
                    put(&y, i, (double)(i % 7));
                }
                if (which < 2) {
                    stretch(&y, which == 0 ? 0 : 1, full[which == 0 ? 0 : 1]);
                }
                y.o.layout = which == 0 ? BURN_LAYOUT_VECTOR : y.o.layout;
                assert_int_equal(run2(BURN_OP_ADD, NULL, &x, &y, &z), BURN_OK);
                for (int64_t i = 0; i < numel(&z); i++) {
                    assert_true(get(&z, i) == get(&x, i) + get(&y, i));
                }
                unmake(&x);
                unmake(&y);
                unmake(&z);
            }
        }
    }
}

static void check_ints(uint8_t dtype, uint64_t op, int n, const double *x, const double *y,
                       const double *want)
{
    tensor tx;
    tensor ty;
    tensor tz;
    make_values(&tx, dtype, n, x);
    make_values(&ty, dtype, n, y);
    make1(&tz, dtype, n);
    assert_int_equal(run2(op, NULL, &tx, &ty, &tz), BURN_OK);
    for (int i = 0; i < n; i++) {
        assert_true(get(&tz, i) == want[i]);
    }
    unmake(&tx);
    unmake(&ty);
    unmake(&tz);
}

static void integer_remainders_B078(void **state)
{
    (void)state;
    static const double x[] = {-3, -2, -1, 1, 2, 3};
    static const double y[] = {2, 3, 1, 2, 1, 3};
    static const double mod[] = {1, 1, 0, 1, 0, 0};
    static const double fmods[] = {-1, -2, 0, 1, 0, 0};
    check_ints(BURN_I32, BURN_OP_REMAINDER, 6, x, y, mod);
    check_ints(BURN_I32, BURN_OP_FMOD, 6, x, y, fmods);
    check_ints(BURN_I8, BURN_OP_REMAINDER, 6, x, y, mod);
    check_ints(BURN_I64, BURN_OP_FMOD, 6, x, y, fmods);
}

static void integer_division_B080(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_I8, BURN_I16, BURN_I32, BURN_I64};
    static const double lowest[] = {-128, -32768, -2147483648.0, -9223372036854775808.0};
    static const double minus_one[] = {-1};
    static const double zero[] = {0};
    static const uint64_t ops[] = {BURN_OP_DIV, BURN_OP_REMAINDER, BURN_OP_FMOD};
    for (uint32_t d = 0; d < 4; d++) {
        check_ints(dtypes[d], BURN_OP_DIV, 1, &lowest[d], minus_one, &lowest[d]);
        check_ints(dtypes[d], BURN_OP_REMAINDER, 1, &lowest[d], minus_one, zero);
        check_ints(dtypes[d], BURN_OP_FMOD, 1, &lowest[d], minus_one, zero);
        for (uint32_t k = 0; k < 3; k++) {
            static const double x[] = {1, 2, 3, 4, 5};
            static const double y[] = {1, 1, 1, 0, 0};
            tensor tx;
            tensor ty;
            tensor tz;
            make_values(&tx, dtypes[d], 5, x);
            make_values(&ty, dtypes[d], 5, y);
            make1(&tz, dtypes[d], 5);
            assert_int_equal(run2(ops[k], NULL, &tx, &ty, &tz), BURN_E_DATA);
            assert_non_null(strstr(fixture_error.text, "element 3"));
            assert_non_null(strstr(fixture_error.text, "zero"));
            unmake(&tx);
            unmake(&ty);
            unmake(&tz);
        }
    }
}

static void powers_B086(void **state)
{
    (void)state;
    static const double x[] = {-2, -2, -8, 0, 0, (double)INFINITY, -1, -1, 1};
    static const double y[] = {2, 3, 1.0 / 3.0, 0, -1, 0, 1e10, (double)INFINITY, (double)NAN};
    static const double want[] = {4, -8, (double)NAN, 1, (double)INFINITY, 1, 1, 1, 1};
    for (int64_t n = 1; n <= 9; n++) {
        tensor tx;
        tensor ty;
        tensor tz;
        make_values(&tx, BURN_F32, n, x);
        make_values(&ty, BURN_F32, n, y);
        make1(&tz, BURN_F32, n);
        assert_int_equal(run2(BURN_OP_POW, NULL, &tx, &ty, &tz), BURN_OK);
        for (int64_t i = 0; i < n; i++) {
            assert_true(ulp_f32((float)get(&tz, i), want[i]) == 0.0);
        }
        unmake(&tx);
        unmake(&ty);
        unmake(&tz);
    }
    static const double base[] = {2, 3, -2, 7, 0};
    static const double power[] = {10, 0, 3, 1, 0};
    static const double result[] = {1024, 1, -8, 7, 1};
    check_ints(BURN_I32, BURN_OP_POW, 5, base, power, result);
    tensor tx;
    tensor ty;
    tensor tz;
    make_imm(&tx, BURN_I32, 2);
    make_imm(&ty, BURN_I32, -1);
    make1(&tz, BURN_I32, 1);
    assert_int_equal(run2(BURN_OP_POW, NULL, &tx, &ty, &tz), BURN_E_DATA);
    assert_non_null(strstr(fixture_error.text, "-1"));
    unmake(&tx);
    unmake(&ty);
    unmake(&tz);
}

static void integers_wrap_and_shift(void **state)
{
    (void)state;
    static const double a[] = {127, -128, 100, -100, 5, -5, 64, -1};
    static const double b[] = {1, -1, 100, 100, 9, 9, 1, 7};
    static const double sum[] = {-128, 127, -56, 0, 14, 4, 65, 6};
    static const double product[] = {127, -128, 16, -16, 45, -45, 64, -7};
    static const double left[] = {-2, 0, 0, 0, 0, 0, -128, -128};
    static const double right[] = {63, -1, 0, -1, 0, -1, 32, -1};
    check_ints(BURN_I8, BURN_OP_ADD, 8, a, b, sum);
    check_ints(BURN_I8, BURN_OP_MUL, 8, a, b, product);
    check_ints(BURN_I8, BURN_OP_SHIFT_LEFT, 8, a, b, left);
    check_ints(BURN_I8, BURN_OP_SHIFT_RIGHT, 8, a, b, right);
    static const double u[] = {65535, 65535};
    static const double v[] = {65535, 2};
    static const double uv[] = {1, 65534};
    check_ints(BURN_U16, BURN_OP_MUL, 2, u, v, uv);
}

/* Every stored bool is 0 or 1, whatever byte an input holds. */
static void bools_are_canonical_B011(void **state)
{
    (void)state;
    static const uint64_t ops[] = {BURN_OP_LOGICAL_AND, BURN_OP_LOGICAL_OR, BURN_OP_LOGICAL_XOR,
                                   BURN_OP_EQUAL, BURN_OP_NOT_EQUAL, BURN_OP_BIT_AND,
                                   BURN_OP_BIT_OR, BURN_OP_BIT_XOR, BURN_OP_LESS,
                                   BURN_OP_GREATER_EQUAL, BURN_OP_MAXIMUM};
    for (uint32_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        tensor x;
        tensor y;
        tensor z;
        make1(&x, BURN_BOOL, 67);
        make1(&y, BURN_BOOL, 67);
        make1(&z, BURN_BOOL, 67);
        for (int64_t i = 0; i < 67; i++) {
            x.memory[i] = (unsigned char)(i % 3 * 127);
            y.memory[i] = (unsigned char)(i % 2 * 255);
        }
        assert_int_equal(run2(ops[k], NULL, &x, &y, &z), BURN_OK);
        for (int64_t i = 0; i < 67; i++) {
            int a = x.memory[i] != 0;
            int b = y.memory[i] != 0;
            int want[] = {a && b, a || b, a != b, a == b, a != b, a && b, a || b, a != b, a < b,
                          a >= b, a || b};
            assert_int_equal(z.memory[i], want[k]);
        }
        unmake(&x);
        unmake(&y);
        unmake(&z);
    }
}

static void clamp_and_where(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F16, BURN_BF16, BURN_F64, BURN_I32, BURN_U8};
    for (uint32_t d = 0; d < 6; d++) {
        for (int bounds = 0; bounds < 4; bounds++) {
            tensor x;
            tensor lo;
            tensor hi;
            tensor z;
            make1(&x, dtypes[d], 67);
            make1(&z, dtypes[d], 67);
            for (int64_t i = 0; i < 67; i++) {
                put(&x, i, (double)(i % 13));
            }
            if ((bounds & 1) != 0) {
                make_imm(&lo, dtypes[d], 3);
            } else {
                make_absent(&lo);
            }
            if ((bounds & 2) != 0) {
                make_imm(&hi, dtypes[d], 9);
            } else {
                make_absent(&hi);
            }
            tensor *in[3] = {&x, &lo, &hi};
            tensor *out[1] = {&z};
            assert_int_equal(run(BURN_OP_CLAMP, NULL, 3, in, 1, out), BURN_OK);
            for (int64_t i = 0; i < 67; i++) {
                double want = (double)(i % 13);
                want = (bounds & 1) != 0 && want < 3 ? 3 : want;
                want = (bounds & 2) != 0 && want > 9 ? 9 : want;
                assert_true(get(&z, i) == want);
            }
            tensor cond;
            tensor five;
            make1(&cond, BURN_BOOL, 67);
            for (int64_t i = 0; i < 67; i++) {
                cond.memory[i] = (unsigned char)(i % 2 * 3);
            }
            make_imm(&five, dtypes[d], 5);
            tensor *pick[3] = {&cond, &x, &five};
            assert_int_equal(run(BURN_OP_WHERE, NULL, 3, pick, 1, out), BURN_OK);
            for (int64_t i = 0; i < 67; i++) {
                assert_true(get(&z, i) == (i % 2 != 0 ? get(&x, i) : 5.0));
            }
            unmake(&x);
            unmake(&z);
            unmake(&lo);
            unmake(&hi);
            unmake(&cond);
            unmake(&five);
        }
    }
}

static void cast_to(tensor *x, uint8_t dtype, const double *want)
{
    burn_attrs_cast a = {{(uint32_t)sizeof(a), 1}, dtype, 0};
    tensor z;
    make1(&z, dtype, numel(x));
    assert_int_equal(run1(BURN_OP_CAST, &a, x, &z), BURN_OK);
    for (int64_t i = 0; i < numel(x); i++) {
        if (get(&z, i) != want[i]) {
            fail_msg("cast %d to %d: element %d is %g, not %g", x->o.dtype, dtype, (int)i,
                     get(&z, i), want[i]);
        }
    }
    unmake(&z);
}

static void casts_saturate_B082(void **state)
{
    (void)state;
    static const double v[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 3e9, -3e9, 2.9,
                               -2.9};
    static const double i32[] = {0, 2147483647, -2147483648.0, 2147483647, -2147483648.0, 2, -2};
    static const double u8[] = {0, 255, 0, 255, 0, 2, 0};
    static const double i8[] = {0, 127, -128, 127, -128, 2, -2};
    static const double i64[] = {0, 9223372036854775808.0, -9223372036854775808.0, 3e9, -3e9, 2,
                                 -2};
    static const uint8_t floats[] = {BURN_F32, BURN_F64};
    for (uint32_t k = 0; k < 2; k++) {
        /* Once alone, once so long that the same values meet the vector loop. */
        for (int64_t copies = 1; copies < 30; copies += 28) {
            tensor x;
            double want[4][7 * 30];
            make1(&x, floats[k], 7 * copies);
            for (int64_t i = 0; i < 7 * copies; i++) {
                put(&x, i, v[i % 7]);
                want[0][i] = i32[i % 7];
                want[1][i] = u8[i % 7];
                want[2][i] = i8[i % 7];
                want[3][i] = i64[i % 7];
            }
            cast_to(&x, BURN_I32, want[0]);
            cast_to(&x, BURN_U8, want[1]);
            cast_to(&x, BURN_I8, want[2]);
            cast_to(&x, BURN_I64, want[3]);
            unmake(&x);
        }
    }
    static const double halves[] = {0.5, 0, -0.0, (double)NAN};
    static const double truth[] = {1, 0, 0, 1};
    tensor x;
    make_values(&x, BURN_F32, 4, halves);
    cast_to(&x, BURN_BOOL, truth);
    unmake(&x);
}

static void casts_of_all_pairs(void **state)
{
    (void)state;
    static const double v[] = {0, 1, 2, 3, 100, 127};
    static const double truth[] = {0, 1, 1, 1, 1, 1};
    for (uint8_t from = BURN_BOOL; from <= BURN_F64; from++) {
        for (uint8_t to = BURN_BOOL; to <= BURN_F64; to++) {
            tensor x;
            make_values(&x, from, 6, v);
            cast_to(&x, to, to == BURN_BOOL || from == BURN_BOOL ? truth : v);
            restride(&x, -1);
            cast_to(&x, to, to == BURN_BOOL || from == BURN_BOOL ? truth : v);
            unmake(&x);
        }
    }
    /* One rounding: 1 + 2^-11 + 2^-40 lies above the middle of two halves. */
    static const double wide[] = {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11};
    static const double half[] = {1.0 + 0x1p-10, 1.0};
    tensor x;
    make_values(&x, BURN_F64, 2, wide);
    cast_to(&x, BURN_F16, half);
    unmake(&x);
}

static void half_conversions_all_bits(void **state)
{
    (void)state;
    burn_attrs_cast to_f32 = {{(uint32_t)sizeof(to_f32), 1}, BURN_F32, 0};
    for (uint8_t dtype = BURN_F16; dtype <= BURN_BF16; dtype++) {
        burn_attrs_cast back = {{(uint32_t)sizeof(back), 1}, dtype, 0};
        tensor x;
        tensor z;
        tensor y;
        make1(&x, dtype, 65536);
        make1(&z, BURN_F32, 65536);
        make1(&y, dtype, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            ((uint16_t *)(void *)x.memory)[i] = (uint16_t)i;
        }
        assert_int_equal(run1(BURN_OP_CAST, &to_f32, &x, &z), BURN_OK);
        assert_int_equal(run1(BURN_OP_CAST, &back, &z, &y), BURN_OK);
        for (int64_t i = 0; i < 65536; i++) {
            double want = get(&x, i);
            assert_true(isnan(want) ? isnan(get(&z, i)) && isnan(get(&y, i))
                                    : get(&z, i) == want && get(&y, i) == want);
        }
        unmake(&x);
        unmake(&y);
        unmake(&z);
    }
}

static void gelu_far_from_zero_B072(void **state)
{
    (void)state;
    static const double v[] = {1e4, -1e4, 0.0, 1.0, -1.0};
    for (uint32_t form = 0; form < 2; form++) {
        burn_attrs_gelu a = {{(uint32_t)sizeof(a), 1}, form, 0};
        for (uint8_t dtype = BURN_F16; dtype <= BURN_F64; dtype++) {
            tensor x;
            tensor z;
            make_values(&x, dtype, 5, v);
            make1(&z, dtype, 5);
            assert_int_equal(run1(BURN_OP_GELU, &a, &x, &z), BURN_OK);
            assert_true(get(&z, 0) == get(&x, 0));
            assert_true(get(&z, 1) == 0.0);
            assert_true(get(&z, 2) == 0.0);
            assert_true(fabs(get(&z, 3) - 0.8413) < 0.01);
            assert_int_equal(run1(BURN_OP_TANH, NULL, &x, &z), BURN_OK);
            assert_true(get(&z, 0) == 1.0 && get(&z, 1) == -1.0);
            tensor g;
            make1(&g, dtype, 5);
            for (int64_t i = 0; i < 5; i++) {
                put(&g, i, 1.0);
            }
            assert_int_equal(run2(BURN_OP_GELU_GRAD, &a, &x, &g, &z), BURN_OK);
            assert_true(get(&z, 0) == 1.0 && get(&z, 1) == 0.0 && get(&z, 2) == 0.5);
            assert_true(fabs(get(&z, 3) - 1.083) < 0.01);
            unmake(&x);
            unmake(&z);
            unmake(&g);
        }
    }
}

static void results_may_replace_inputs(void **state)
{
    (void)state;
    tensor x;
    tensor y;
    make1(&x, BURN_F32, 1023);
    make1(&y, BURN_F32, 1023);
    for (int64_t i = 0; i < 1023; i++) {
        put(&x, i, (double)i);
        put(&y, i, (double)(2 * i));
    }
    assert_int_equal(run2(BURN_OP_SUB, NULL, &x, &y, &x), BURN_OK);
    for (int64_t i = 0; i < 1023; i++) {
        assert_true(get(&x, i) == -(double)i);
    }
    assert_int_equal(run1(BURN_OP_COS, NULL, &x, &x), BURN_OK);
    for (int64_t i = 0; i < 1023; i++) {
        assert_true(ulp_f32((float)get(&x, i), cos(-(double)i)) <= 2.0);
    }
    unmake(&x);
    unmake(&y);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_f32_accuracy),
        cmocka_unit_test(unary_f32__two_ulp_over_the_whole_range),
        cmocka_unit_test(unary_f32_special_values),
        cmocka_unit_test(unary_f32_tails_equal_bodies),
        cmocka_unit_test(unary_other_floats),
        cmocka_unit_test(binary_f32_layouts),
        cmocka_unit_test(binary_specials),
        cmocka_unit_test(broadcast_rows_and_columns),
        cmocka_unit_test(integer_remainders_B078),
        cmocka_unit_test(integer_division_B080),
        cmocka_unit_test(powers_B086),
        cmocka_unit_test(integers_wrap_and_shift),
        cmocka_unit_test(bools_are_canonical_B011),
        cmocka_unit_test(clamp_and_where),
        cmocka_unit_test(casts_saturate_B082),
        cmocka_unit_test(casts_of_all_pairs),
        cmocka_unit_test(half_conversions_all_bits),
        cmocka_unit_test(gelu_far_from_zero_B072),
        cmocka_unit_test(results_may_replace_inputs),
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
