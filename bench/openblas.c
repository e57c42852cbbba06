/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * openblas.c - calls OpenBLAS as a program would: cblas_sgemm on matrices that are there already.
 *
 * The library is opened at run time, so nothing is built against it and it may be absent. It is set
 * to one thread. Unlike our side, nothing is allocated and no tensor is made per product, so these
 * rows show all of our overhead.
 */
#include "openblas.h"

#include "clock.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, PLAIN = 111 };

typedef void (*sgemm_fn)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);

static sgemm_fn find_sgemm(void)
{
    static sgemm_fn sgemm;
    if (sgemm != NULL) {
        return sgemm;
    }
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return NULL;
    }
    void (*set_threads)(int n);
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (set_threads == NULL) {
        return NULL;
    }
    set_threads(1);
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    return sgemm;
}

static float *make_matrix(int64_t size)
{
    size_t bytes = ((size_t)(size * size) * sizeof(float) + 63) / 64 * 64;
    float *x = aligned_alloc(64, bytes);
    for (int64_t i = 0; x != NULL && i < size * size; i++) {
        x[i] = (float)(i % 97) / 97.0f;
    }
    return x;
}

enum { PRODUCTS = 64 };

static void some_products(sgemm_fn sgemm, int n, const float *a, const float *b, float *c)
{
    for (int i = 0; i < PRODUCTS; i++) {
        sgemm(ROW_MAJOR, PLAIN, PLAIN, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
    }
}

double bench_openblas(int64_t size, double seconds)
{
    sgemm_fn sgemm = find_sgemm();
    float *a = make_matrix(size);
    float *b = make_matrix(size);
    float *c = make_matrix(size);
    double per_product = (double)NAN;
    if (sgemm != NULL && a != NULL && b != NULL && c != NULL) {
        int64_t products = 0;
        some_products(sgemm, (int)size, a, b, c); /* not counted, as in worker.c */
        double start = bench_now();
        double took = 0;
        do {
            some_products(sgemm, (int)size, a, b, c);
            products += PRODUCTS;
            took = bench_now() - start;
        } while (took < seconds);
        per_product = took / (double)products;
    }
    free(a);
    free(b);
    free(c);
    return per_product;
}
