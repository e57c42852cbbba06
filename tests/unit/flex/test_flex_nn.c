/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_nn.c - matmul, linear, convolution and pooling of the CPU plugin against plain loops.
 *
 * Each check runs with one and with two threads and wants equal bits. References sum in f64. Shapes
 * lie around tile and block borders. Names carry the ids of the reported faults that they guard.
 */
#include "nn_checks.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double dot(const rig_tensor *x, const rig_tensor *y, int64_t i, int64_t j)
{
    int64_t k = x->dims[1];
    int64_t n = y->dims[1];
    double sum = 0;
    for (int64_t t = 0; t < k; t++) {
        sum += rig_at(x, i * k + t) * rig_at(y, t * n + j);
    }
    return sum;
}

/* m x k by k x n, each operand also transposed; checks a sample of the elements. */
static void check_matmul(uint8_t dtype, int64_t m, int64_t k, int64_t n, int ta, int tb,
                         double tolerance)
{
    rig_tensor xs = rig_random(dtype, 2, (int64_t[]){ta ? k : m, ta ? m : k}, 1);
    rig_tensor ys = rig_random(dtype, 2, (int64_t[]){tb ? n : k, tb ? k : n}, 2);
    rig_tensor x = ta ? rig_swapped(&xs, 0, 1) : xs;
    rig_tensor y = tb ? rig_swapped(&ys, 0, 1) : ys;
    rig_tensor z = rig_new(dtype, 2, (int64_t[]){m, n});
    rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
    check_both(&c);
    int64_t total = m * n;
    int64_t step = total > 4000 ? total / 1999 : 1;
    for (int64_t p = 0; p < total; p += step) {
        check_close(rig_at(&z, p), dot(&x, &y, p / n, p % n), tolerance, "matmul", p);
    }
    rig_free(&xs);
    rig_free(&ys);
    rig_free(&z);
}

static void test_matmul_f32_shapes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 63, 64, 65, 127, 129};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    for (uint32_t a = 0; a < N; a++) {
        for (uint32_t b = 0; b < N; b++) {
            for (uint32_t c = 0; c < N; c += 2) {
                int flips = (int)(a + b + c) % 4;
                check_matmul(BURN_F32, sizes[a], sizes[b], sizes[c], flips & 1, flips >> 1, 1e-4);
            }
        }
    }
}

static void test_matmul_f32_large(void **state)
{
    (void)state;
    for (int flips = 0; flips < 4; flips++) {
        check_matmul(BURN_F32, 513, 300, 257, flips & 1, flips >> 1, 1e-3);
        check_matmul(BURN_F32, 130, 1030, 270, flips & 1, flips >> 1, 1e-3);
    }
    check_matmul(BURN_F32, 5, 1200, 700, 0, 0, 1e-3);
    check_matmul(BURN_F32, 900, 600, 3, 0, 1, 1e-3);
    check_matmul(BURN_F32, 3000, 70, 130, 0, 0, 1e-3);
}

static void test_matmul_other_dtypes(void **state)
{
    (void)state;
    static const uint8_t exact[] = {BURN_U8, BURN_I8,  BURN_U16, BURN_I16,
                                    BURN_U32, BURN_I32, BURN_U64, BURN_I64};
    check_matmul(BURN_F64, 65, 33, 70, 0, 1, 1e-12);
    check_matmul(BURN_F16, 33, 20, 17, 1, 0, 1e-2);
    check_matmul(BURN_BF16, 33, 20, 17, 0, 1, 1e-1);
    check_matmul(BURN_I32, 33, 20, 17, 1, 1, 0);
    check_matmul(BURN_I64, 33, 20, 17, 0, 0, 0);
    for (uint32_t i = 0; i < sizeof(exact); i++) { /* 200 * 2 + 100 wraps in 8 bits */
        rig_tensor x = rig_new(exact[i], 2, (int64_t[]){1, 2});
        rig_tensor y = rig_new(exact[i], 2, (int64_t[]){2, 1});
        rig_tensor z = rig_new(exact[i], 2, (int64_t[]){1, 1});
        rig_set(&x, 0, 100);
        rig_set(&x, 1, 100);
        rig_set(&y, 0, 4);
        rig_set(&y, 1, 1);
        rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
        check_both(&c);
        double want = exact[i] == BURN_U8 ? 244 : exact[i] == BURN_I8 ? -12 : 500;
        assert_true(rig_at(&z, 0) == want);
        rig_free(&x);
        rig_free(&y);
        rig_free(&z);
    }
}

static void check_batch(int64_t b1, int64_t b2, int y_batched, int64_t m, int64_t k, int64_t n)
{
    rig_tensor x = rig_random(BURN_F32, 4, (int64_t[]){b1, b2, m, k}, 3);
    rig_tensor y = rig_random(BURN_F32, 3, (int64_t[]){y_batched ? b2 : 1, k, n}, 4);
    rig_tensor z = rig_new(BURN_F32, 4, (int64_t[]){b1, b2, m, n});
    rig_call c = {.op = BURN_OP_MATMUL, .in = {&x, &y}, .out = {&z}, .n_in = 2, .n_out = 1};
    check_both(&c);
    for (int64_t p = 0; p < rig_numel(&z); p += 7) {
        int64_t j = p % n;
        int64_t row = p / n;
        int64_t item = row / m % b2;
        double sum = 0;
        for (int64_t t = 0; t < k; t++) {
            sum += rig_at(&x, row * k + t) * rig_at(&y, ((y_batched ? item : 0) * k + t) * n + j);
        }
        check_close(rig_at(&z, p), sum, 1e-4, "batched matmul", p);
    }
    rig_free(&x);
    rig_free(&y);
    rig_free(&z);
}

static void test_matmul_batches(void **state)
{
    (void)state;
    check_batch(2, 3, 1, 17, 9, 33);
    check_batch(2, 3, 0, 17, 9, 33);
    check_batch(1, 5, 1, 1, 64, 65);
    check_batch(2, 8, 1, 70, 130, 66);
    check_batch(1, 2, 1, 300, 200, 100);
    check_batch(3, 1, 1, 40, 40, 40);
}

/* B084: C is never read, nor a bias that is not there; empty sums are 0. */
static void test_b084_output_is_not_read(void **state)
{
    (void)state;
    check_matmul(BURN_F32, 1, 1, 1, 0, 0, 1e-7);
    check_matmul(BURN_F32, 300, 0, 40, 0, 0, 0);
    rig_tensor x = rig_values(2, (int64_t[]){1, 1}, (float[]){1});
    rig_tensor bias = rig_absent();
    rig_tensor z = rig_new(BURN_F32, 2, (int64_t[]){1, 1});
    rig_call c = {.op = BURN_OP_LINEAR, .in = {&x, &x, &bias}, .out = {&z}, .n_in = 3, .n_out = 1};
    check_both(&c);
    assert_true(rig_at(&z, 0) == 1.0);
    rig_free(&x);
    rig_free(&z);
}

static void check_linear(uint8_t dtype, int64_t m, int64_t k, int64_t n, double tolerance)
{
    rig_tensor x = rig_random(dtype, 3, (int64_t[]){2, m, k}, 5);
    rig_tensor w = rig_random(dtype, 2, (int64_t[]){k, n}, 6);
    rig_tensor bias = rig_random(dtype, 1, (int64_t[]){n}, 7);
    rig_tensor z = rig_new(dtype, 3, (int64_t[]){2, m, n});
    rig_call c = {.op = BURN_OP_LINEAR, .in = {&x, &w, &bias}, .out = {&z}, .n_in = 3, .n_out = 1};
    check_both(&c);
    rig_tensor flat = x;
    flat.rank = 2;
    flat.dims[0] = 2 * m;
    flat.dims[1] = k;
    flat.strides[0] = k;
    flat.strides[1] = 1;
    for (int64_t p = 0; p < rig_numel(&z); p += 5) {
        double want = dot(&flat, &w, p / n, p % n) + rig_at(&bias, p % n);
        check_close(rig_at(&z, p), want, tolerance, "linear", p);
    }
    rig_free(&x);
    rig_free(&w);
    rig_free(&bias);
    rig_free(&z);
}

/* OpenBLAS takes over only when asked for, and is skipped where it is not installed. */
static void test_matmul_openblas(void **state)
{
    (void)state;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        skip();
    }
    const burn_plugin *own[2] = {check_plugins[0], check_plugins[1]};
    for (uint32_t i = 0; i < 2; i++) {
        check_plugins[i] = rig_plugin(getenv("BURN_TEST_FLEX"), i + 1);
        assert_non_null(check_plugins[i]);
    }
    rig_gemm_option("openblas");
    check_matmul(BURN_F32, 300, 70, 129, 0, 0, 1e-4);
    check_matmul(BURN_F32, 1, 70, 129, 0, 0, 1e-4);
    check_batch(2, 3, 1, 17, 9, 33);
    rig_gemm_option(NULL);
    check_plugins[0] = own[0];
    check_plugins[1] = own[1];
}

static void test_linear(void **state)
{
    (void)state;
    check_linear(BURN_F32, 5, 17, 33, 1e-5);
    check_linear(BURN_F32, 64, 784, 513, 1e-3);
    check_linear(BURN_F32, 300, 600, 10, 1e-3);
    check_linear(BURN_F64, 5, 17, 33, 1e-12);
    check_linear(BURN_BF16, 5, 17, 33, 1e-1);
    check_linear(BURN_F16, 5, 17, 33, 2e-2);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static burn_attrs_conv conv_attrs(int64_t stride, int64_t padding, int64_t dilation, int64_t groups)
{
    burn_attrs_conv a;
    memset(&a, 0, sizeof(a));
    a.head.size = (uint32_t)sizeof(a);
    a.head.revision = 1;
    for (uint32_t i = 0; i < 2; i++) {
        a.stride[i] = stride;
        a.padding[i] = padding;
        a.dilation[i] = dilation;
    }
    a.groups = groups;
    return a;
}

/* Visits every product of a convolution: adds to map, image gradient and kernel gradient. */
static void plain_conv(const rig_tensor *x, const rig_tensor *w, const rig_tensor *g,
                       const burn_attrs_conv *a, double *map, double *gx, double *gw)
{
    int64_t cg = w->dims[1];
    int64_t og = w->dims[0] / a->groups;
    int64_t size = g->dims[2] * g->dims[3];
    int64_t taps = w->dims[2] * w->dims[3];
    for (int64_t p = 0; p < rig_numel(g); p++) {
        int64_t n = p / size / g->dims[1];
        int64_t o = p / size % g->dims[1];
        for (int64_t t = 0; t < cg * taps; t++) {
            int64_t c = o / og * cg + t / taps;
            int64_t y = p % size / g->dims[3] * a->stride[0] - a->padding[0] +
                        t % taps / w->dims[3] * a->dilation[0];
            int64_t xx = p % g->dims[3] * a->stride[1] - a->padding[1] +
                         t % w->dims[3] * a->dilation[1];
            if (y < 0 || xx < 0 || y >= x->dims[2] || xx >= x->dims[3]) {
                continue;
            }
            int64_t xi = ((n * x->dims[1] + c) * x->dims[2] + y) * x->dims[3] + xx;
            int64_t wi = o * cg * taps + t;
            map[p] += rig_at(x, xi) * rig_at(w, wi);
            gx[xi] += rig_at(g, p) * rig_at(w, wi);
            gw[wi] += rig_at(g, p) * rig_at(x, xi);
        }
    }
}

typedef struct conv_case {
    int64_t n, c, h, w, o, kh, kw, stride, padding, dilation, groups;
} conv_case;

static void check_conv(const conv_case *t, uint8_t dtype, double tolerance)
{
    burn_attrs_conv a = conv_attrs(t->stride, t->padding, t->dilation, t->groups);
    int64_t oh = (t->h + 2 * t->padding - t->dilation * (t->kh - 1) - 1) / t->stride + 1;
    int64_t ow = (t->w + 2 * t->padding - t->dilation * (t->kw - 1) - 1) / t->stride + 1;
    rig_tensor x = rig_random(dtype, 4, (int64_t[]){t->n, t->c, t->h, t->w}, 11);
    rig_tensor w = rig_random(dtype, 4, (int64_t[]){t->o, t->c / t->groups, t->kh, t->kw}, 12);
    rig_tensor g = rig_random(dtype, 4, (int64_t[]){t->n, t->o, oh, ow}, 13);
    rig_tensor y = rig_new(dtype, 4, g.dims);
    rig_tensor gx = rig_new(dtype, 4, x.dims);
    rig_tensor gw = rig_new(dtype, 4, w.dims);
    rig_tensor bias = rig_absent();
    double *ry = calloc((size_t)rig_numel(&y) + 1, sizeof(double));
    double *rx = calloc((size_t)rig_numel(&x) + 1, sizeof(double));
    double *rw = calloc((size_t)rig_numel(&w) + 1, sizeof(double));
    plain_conv(&x, &w, &g, &a, ry, rx, rw);
    rig_call c = {.op = BURN_OP_CONV2D, .in = {&x, &w, &bias}, .out = {&y}, .n_in = 3, .n_out = 1};
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    check_all(&y, ry, tolerance, "conv2d");
    a.size[0] = t->h;
    a.size[1] = t->w;
    rig_call ci = {.op = BURN_OP_CONV2D_GRAD_INPUT, .in = {&w, &g}, .out = {&gx}};
    ci.n_in = 2;
    ci.n_out = 1;
    ci.attrs = &a;
    ci.attrs_size = (uint32_t)sizeof(a);
    check_both(&ci);
    check_all(&gx, rx, tolerance, "conv2d_grad_input");
    rig_call cw = ci;
    a.size[0] = t->kh;
    a.size[1] = t->kw;
    cw.op = BURN_OP_CONV2D_GRAD_WEIGHT;
    cw.in[0] = &x;
    cw.out[0] = &gw;
    check_both(&cw);
    check_all(&gw, rw, tolerance * 4, "conv2d_grad_weight");
    rig_tensor *all[] = {&x, &w, &g, &y, &gx, &gw};
    for (uint32_t i = 0; i < 6; i++) {
        rig_free(all[i]);
    }
    free(ry);
    free(rx);
    free(rw);
}

static void test_conv2d(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {3, 1, 28, 28, 8, 3, 3, 1, 0, 1, 1},   {2, 3, 9, 11, 5, 3, 3, 1, 1, 1, 1},
        {2, 8, 14, 14, 16, 3, 3, 1, 1, 1, 1},  {2, 4, 15, 13, 6, 5, 3, 2, 2, 1, 2},
        {1, 6, 12, 12, 12, 3, 3, 1, 2, 2, 6},  {2, 16, 7, 7, 33, 1, 1, 1, 0, 1, 1},
        {2, 4, 9, 9, 7, 1, 1, 2, 0, 1, 1},     {1, 2, 40, 70, 3, 2, 5, 3, 1, 2, 1},
        {4, 64, 6, 6, 13, 3, 3, 1, 1, 1, 1},   {1, 1, 3, 3, 1, 3, 3, 1, 0, 1, 1},
        {0, 2, 5, 5, 3, 3, 3, 1, 1, 1, 1},     {9, 1, 28, 28, 6, 5, 5, 1, 2, 1, 1},
        {17, 6, 14, 14, 16, 5, 5, 1, 0, 1, 1}, {1, 8, 70, 90, 3, 3, 5, 1, 1, 2, 1},
        {5, 6, 20, 21, 15, 3, 2, 1, 0, 1, 3},  {8, 3, 9, 40, 7, 1, 3, 1, 1, 1, 1},
    };
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_conv(&cases[i], BURN_F32, 2e-4);
        if (i < 6) {
            check_conv(&cases[i], BURN_F64, 1e-11);
        }
    }
    check_conv(&cases[1], BURN_F16, 4e-2);
    check_conv(&cases[3], BURN_BF16, 4e-1);
}

/* An infinity reaches those elements of the gradients whose sums it is in, and no others. */
static void test_conv2d_infinities(void **state)
{
    (void)state;
    burn_attrs_conv a = conv_attrs(1, 0, 1, 1);
    rig_tensor x = rig_random(BURN_F32, 4, (int64_t[]){8, 2, 12, 12}, 21);
    rig_tensor w = rig_random(BURN_F32, 4, (int64_t[]){4, 2, 3, 3}, 22);
    rig_tensor g = rig_random(BURN_F32, 4, (int64_t[]){8, 4, 10, 10}, 23);
    rig_tensor gx = rig_new(BURN_F32, 4, x.dims);
    rig_tensor gw = rig_new(BURN_F32, 4, w.dims);
    rig_set(&x, 12, (double)INFINITY); /* in the first column: only one tap meets it there */
    rig_set(&w, 4, -(double)INFINITY);
    double *map = calloc((size_t)rig_numel(&g), sizeof(double));
    double *rx = calloc((size_t)rig_numel(&x), sizeof(double));
    double *rw = calloc((size_t)rig_numel(&w), sizeof(double));
    plain_conv(&x, &w, &g, &a, map, rx, rw);
    rig_call c = {.op = BURN_OP_CONV2D_GRAD_INPUT, .in = {&w, &g}, .out = {&gx}};
    c.n_in = 2;
    c.n_out = 1;
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    a.size[0] = a.size[1] = 12;
    check_both(&c);
    check_all(&gx, rx, 1e-4, "conv2d_grad_input");
    c.op = BURN_OP_CONV2D_GRAD_WEIGHT;
    c.in[0] = &x;
    c.out[0] = &gw;
    a.size[0] = a.size[1] = 3;
    check_both(&c);
    check_all(&gw, rw, 1e-3, "conv2d_grad_weight");
    rig_tensor *all[] = {&x, &w, &g, &gx, &gw};
    for (uint32_t i = 0; i < 5; i++) {
        rig_free(all[i]);
    }
    free(map);
    free(rx);
    free(rw);
}

/* NaN in the first row and column, where a tap stands in the padding; infinite elsewhere. */
static void check_frame(const rig_tensor *t, const char *what)
{
    for (int64_t p = 0; p < rig_numel(t); p++) {
        double got = rig_at(t, p);
        int right = p < 3 || p % 3 == 0 ? isnan(got) : isinf(got);
        if (!right) {
            fail_msg("%s: element %d is %g", what, (int)p, got);
        }
    }
}

/* Padding is a real zero: times an infinite weight, or gradient, it is NaN. */
static void test_conv2d_padding_is_zero(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16};
    const int64_t dims[4] = {1, 1, 3, 3};
    for (uint32_t i = 0; i < sizeof(dtypes); i++) {
        burn_attrs_conv a = conv_attrs(1, 1, 1, 1);
        rig_tensor x = rig_new(dtypes[i], 4, dims);
        rig_tensor w = rig_new(dtypes[i], 4, dims);
        rig_tensor y = rig_new(dtypes[i], 4, dims);
        rig_tensor bias = rig_absent();
        for (int64_t p = 0; p < 9; p++) {
            rig_set(&x, p, 1.0);
            rig_set(&w, p, p == 0 ? (double)INFINITY : 1.0);
        }
        rig_call c = {.op = BURN_OP_CONV2D, .in = {&x, &w, &bias}, .out = {&y}, .n_in = 3};
        c.n_out = 1;
        c.attrs = &a;
        c.attrs_size = (uint32_t)sizeof(a);
        check_both(&c);
        check_frame(&y, "conv2d");
        c.op = BURN_OP_CONV2D_GRAD_WEIGHT; /* w in the place of the map's gradient */
        c.n_in = 2;
        a.size[0] = a.size[1] = 3;
        check_both(&c);
        check_frame(&y, "conv2d_grad_weight");
        rig_free(&x);
        rig_free(&w);
        rig_free(&y);
    }
}

/* B104: the stride drops the tail of the input; its gradient is 0 there. */
static void test_b104_stride_drops_tail(void **state)
{
    (void)state;
    float xs[11];
    for (int i = 0; i < 11; i++) {
        xs[i] = (float)i;
    }
    static const float want_x[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 0};
    static const float want_w[] = {4, 6, 8, 10};
    rig_tensor x = rig_values(4, (int64_t[]){1, 1, 1, 11}, xs);
    rig_tensor w = rig_values(4, (int64_t[]){1, 1, 1, 4}, (float[]){0, 1, 2, 3});
    rig_tensor g = rig_values(4, (int64_t[]){1, 1, 1, 2}, (float[]){1, 1});
    rig_tensor gx = rig_new(BURN_F32, 4, x.dims);
    rig_tensor gw = rig_new(BURN_F32, 4, w.dims);
    burn_attrs_conv a = conv_attrs(4, 0, 1, 1);
    a.stride[0] = 1;
    rig_call c = {.op = BURN_OP_CONV2D_GRAD_INPUT, .in = {&w, &g}, .out = {&gx}, .n_in = 2};
    c.n_out = 1;
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    c.op = BURN_OP_CONV2D_GRAD_WEIGHT;
    c.in[0] = &x;
    c.out[0] = &gw;
    check_both(&c);
    for (int i = 0; i < 11; i++) {
        assert_true(rig_at(&gx, i) == (double)want_x[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(rig_at(&gw, i) == (double)want_w[i]);
    }
    rig_tensor *all[] = {&x, &w, &g, &gx, &gw};
    for (uint32_t i = 0; i < 5; i++) {
        rig_free(all[i]);
    }
}

/* B106: a transposed convolution fills an output of any admissible size, here 97. */
static void test_b106_transposed_dilated(void **state)
{
    (void)state;
    rig_tensor x = rig_random(BURN_F32, 4, (int64_t[]){1, 2, 1, 50}, 21);
    rig_tensor w = rig_random(BURN_F32, 4, (int64_t[]){2, 3, 1, 3}, 22);
    rig_tensor bias = rig_random(BURN_F32, 1, (int64_t[]){3}, 23);
    rig_tensor y = rig_new(BURN_F32, 4, (int64_t[]){1, 3, 1, 97});
    burn_attrs_conv a = conv_attrs(2, 4, 3, 1);
    a.stride[0] = a.dilation[0] = 1;
    a.padding[0] = 0;
    rig_call c = {.op = BURN_OP_CONV_TRANSPOSE2D, .in = {&x, &w, &bias}, .out = {&y}, .n_in = 3};
    c.n_out = 1;
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    for (int64_t p = 0; p < 3 * 97; p++) {
        double want = rig_at(&bias, p / 97);
        for (int64_t i = 0; i < 2 * 50 * 3; i++) {
            int64_t ci = i / 150;
            int64_t at = i / 3 % 50;
            if (at * 2 - 4 + i % 3 * 3 == p % 97) {
                want += rig_at(&x, ci * 50 + at) * rig_at(&w, (ci * 3 + p / 97) * 3 + i % 3);
            }
        }
        check_close(rig_at(&y, p), want, 1e-5, "conv_transpose2d", p);
    }
    rig_tensor *all[] = {&x, &w, &bias, &y};
    for (uint32_t i = 0; i < 4; i++) {
        rig_free(all[i]);
    }
}

/* B108: two groups, eight outputs for each input channel. */
static void test_b108_groups(void **state)
{
    (void)state;
    rig_tensor x = rig_new(BURN_F32, 4, (int64_t[]){1, 2, 4, 4});
    rig_tensor w = rig_new(BURN_F32, 4, (int64_t[]){16, 1, 3, 3});
    rig_tensor y = rig_new(BURN_F32, 4, (int64_t[]){1, 16, 4, 4});
    rig_tensor bias = rig_absent();
    for (int64_t i = 0; i < 144; i++) {
        rig_set(&w, i, (double)i);
        if (i < 32) {
            rig_set(&x, i, (double)i);
        }
    }
    burn_attrs_conv a = conv_attrs(1, 1, 1, 2);
    rig_call c = {.op = BURN_OP_CONV2D, .in = {&x, &w, &bias}, .out = {&y}, .n_in = 3, .n_out = 1};
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    static const struct {
        int at;
        double want[4];
    } rows[] = {
        {0, {73, 121, 154, 103}},
        {16, {163, 283, 370, 265}},
        {128, {5785, 8857, 9322, 6327}},
        {252, {14641, 22297, 23122, 15631}},
    };
    for (uint32_t r = 0; r < 4; r++) {
        for (int i = 0; i < 4; i++) {
            assert_true(rig_at(&y, rows[r].at + i) == rows[r].want[i]);
        }
    }
    rig_free(&x);
    rig_free(&w);
    rig_free(&y);
}

static void test_conv1d(void **state)
{
    (void)state;
    rig_tensor x = rig_random(BURN_F32, 3, (int64_t[]){2, 3, 20}, 31);
    rig_tensor w = rig_random(BURN_F32, 3, (int64_t[]){4, 3, 5}, 32);
    rig_tensor bias = rig_random(BURN_F32, 1, (int64_t[]){4}, 33);
    rig_tensor y = rig_new(BURN_F32, 3, (int64_t[]){2, 4, 10});
    burn_attrs_conv a = conv_attrs(2, 2, 1, 1);
    rig_call c = {.op = BURN_OP_CONV1D, .in = {&x, &w, &bias}, .out = {&y}, .n_in = 3, .n_out = 1};
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    for (int64_t p = 0; p < 80; p++) {
        double want = rig_at(&bias, p / 10 % 4);
        for (int64_t t = 0; t < 15; t++) {
            int64_t at = p % 10 * 2 - 2 + t % 5;
            if (at >= 0 && at < 20) {
                double tap = rig_at(&w, p / 10 % 4 * 15 + t);
                want += rig_at(&x, (p / 40 * 3 + t / 5) * 20 + at) * tap;
            }
        }
        check_close(rig_at(&y, p), want, 1e-5, "conv1d", p);
    }
    rig_free(&x);
    rig_free(&w);
    rig_free(&bias);
    rig_free(&y);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static burn_attrs_pool pool_attrs(int64_t kernel, int64_t stride, int64_t padding)
{
    burn_attrs_pool a;
    memset(&a, 0, sizeof(a));
    a.head.size = (uint32_t)sizeof(a);
    a.head.revision = 1;
    for (uint32_t i = 0; i < 2; i++) {
        a.kernel[i] = kernel;
        a.stride[i] = stride;
        a.padding[i] = padding;
        a.dilation[i] = 1;
    }
    return a;
}

/* B100: the output of a ceil-mode pool has no window in the padding, and indices stay inside. */
static void test_b100_ceil_mode(void **state)
{
    (void)state;
    rig_tensor x = rig_values(4, (int64_t[]){1, 1, 1, 5}, (float[]){1, 2, 3, 4, 5});
    rig_tensor y = rig_new(BURN_F32, 4, (int64_t[]){1, 1, 1, 3});
    rig_tensor index = rig_new(BURN_I64, 4, y.dims);
    burn_attrs_pool a = pool_attrs(2, 2, 1);
    a.kernel[0] = a.stride[0] = 1;
    a.padding[0] = 0;
    a.ceil_mode = 1;
    rig_call c = {.op = BURN_OP_MAX_POOL2D, .in = {&x}, .out = {&y, &index}, .n_in = 1, .n_out = 2};
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    static const double want[] = {1, 3, 5};
    for (int i = 0; i < 3; i++) {
        assert_true(rig_at(&y, i) == want[i]);
        assert_true(rig_at(&index, i) == 2.0 * i);
    }
    rig_tensor small = rig_new(BURN_F32, 4, (int64_t[]){1, 1, 1, 1});
    rig_call avg = {.op = BURN_OP_AVG_POOL2D, .in = {&x}, .out = {&small}, .n_in = 1, .n_out = 1};
    a = pool_attrs(7, 1, 0);
    a.ceil_mode = 1;
    a.count_include_pad = 1;
    avg.attrs = &a;
    avg.attrs_size = (uint32_t)sizeof(a);
    check_both(&avg);
    assert_true(rig_at(&small, 0) == 3.0);
    rig_free(&x);
    rig_free(&y);
    rig_free(&index);
    rig_free(&small);
}

static void check_pool(uint8_t dtype, int64_t kernel, int64_t stride, int64_t padding)
{
    int64_t oh = (11 + 2 * padding - kernel) / stride + 1;
    int64_t ow = (17 + 2 * padding - kernel) / stride + 1;
    rig_tensor x = rig_random(dtype, 4, (int64_t[]){2, 3, 11, 17}, 41);
    rig_set(&x, 40, (double)NAN);
    rig_tensor y = rig_new(dtype, 4, (int64_t[]){2, 3, oh, ow});
    rig_tensor mean = rig_new(dtype, 4, y.dims);
    rig_tensor index = rig_new(BURN_I64, 4, y.dims);
    rig_tensor gx = rig_new(dtype, 4, x.dims);
    burn_attrs_pool a = pool_attrs(kernel, stride, padding);
    rig_call c = {.op = BURN_OP_MAX_POOL2D, .in = {&x}, .out = {&y, &index}, .n_in = 1, .n_out = 2};
    c.attrs = &a;
    c.attrs_size = (uint32_t)sizeof(a);
    check_both(&c);
    rig_call m = {.op = BURN_OP_AVG_POOL2D, .in = {&x}, .out = {&mean}, .n_in = 1, .n_out = 1};
    m.attrs = &a;
    m.attrs_size = (uint32_t)sizeof(a);
    check_both(&m);
    double *want_gx = calloc((size_t)rig_numel(&x), sizeof(double));
    for (int64_t p = 0; p < rig_numel(&y); p++) {
        int64_t plane = p / (oh * ow);
        double best = -(double)INFINITY;
        double sum = 0;
        int64_t at = -1;
        int64_t n = 0;
        for (int64_t t = 0; t < kernel * kernel; t++) {
            int64_t yy = p / ow % oh * stride - padding + t / kernel;
            int64_t xx = p % ow * stride - padding + t % kernel;
            if (yy < 0 || xx < 0 || yy >= 11 || xx >= 17) {
                continue;
            }
            double v = rig_at(&x, plane * 187 + yy * 17 + xx);
            sum += v;
            n++;
            if (!isnan(best) && (at < 0 || !(v <= best))) {
                best = v;
                at = yy * 17 + xx;
            }
        }
        check_close(rig_at(&y, p), best, 0, "max_pool2d", p);
        check_close(rig_at(&index, p), (double)at, 0, "max_pool2d index", p);
        double tolerance = dtype == BURN_F16 ? 1e-3 : 1e-6;
        check_close(rig_at(&mean, p), sum / (double)n, tolerance, "avg_pool2d", p);
        want_gx[plane * 187 + at] += isnan(rig_at(&y, p)) ? 1.0 : rig_at(&y, p);
        rig_set(&y, p, isnan(rig_at(&y, p)) ? 1.0 : rig_at(&y, p));
    }
    rig_call b = {.op = BURN_OP_MAX_POOL2D_GRAD, .in = {&y, &index}, .out = {&gx}, .n_in = 2};
    b.n_out = 1;
    b.attrs = &a;
    b.attrs_size = (uint32_t)sizeof(a);
    check_both(&b);
    check_all(&gx, want_gx, dtype == BURN_F16 ? 1e-2 : 1e-5, "max_pool2d_grad");
    rig_set(&index, 5, 187);
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(rig_run(check_plugins[0], &b, &err), BURN_E_DATA);
    assert_non_null(strstr(err.text, "187"));
    rig_tensor *all[] = {&x, &y, &mean, &index, &gx};
    for (uint32_t i = 0; i < 5; i++) {
        rig_free(all[i]);
    }
    free(want_gx);
}

static void test_pools(void **state)
{
    (void)state;
    check_pool(BURN_F32, 2, 2, 0);
    check_pool(BURN_F32, 3, 2, 1);
    check_pool(BURN_F32, 3, 2, 0);
    check_pool(BURN_F32, 2, 1, 0);
    check_pool(BURN_F32, 3, 3, 0);
    check_pool(BURN_F32, 3, 1, 1);
    check_pool(BURN_F64, 2, 2, 0);
    check_pool(BURN_F64, 3, 2, 1);
    check_pool(BURN_F16, 2, 1, 0);
}

int main(int argc, char **argv)
{
    int code = check_load(argc, argv);
    if (code != 0) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_f32_shapes),
        cmocka_unit_test(test_matmul_f32_large),
        cmocka_unit_test(test_matmul_other_dtypes),
        cmocka_unit_test(test_matmul_batches),
        cmocka_unit_test(test_b084_output_is_not_read),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_matmul_openblas),
        cmocka_unit_test(test_conv2d),
        cmocka_unit_test(test_conv2d_infinities),
        cmocka_unit_test(test_conv2d_padding_is_zero),
        cmocka_unit_test(test_b104_stride_drops_tail),
        cmocka_unit_test(test_b106_transposed_dilated),
        cmocka_unit_test(test_b108_groups),
        cmocka_unit_test(test_conv1d),
        cmocka_unit_test(test_b100_ceil_mode),
        cmocka_unit_test(test_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
