/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_blas.c - OpenBLAS behind dlopen, one product at a time, in blocks of rows or columns.
 *
 * Owns the handle and the entry points. The blocks are cut by size, so the result does not depend
 * on the number of threads. To use another BLAS: another name in open_library.
 */
#include "gemm_blas.h"

#include "nn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112, BLOCK_ROWS = 192, BLOCK_COLUMNS = 512 };

typedef void (*sgemm_fn)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef void (*dgemm_fn)(int order, int turn_a, int turn_b, int m, int n, int k, double alpha,
                         const double *a, int lda, const double *b, int ldb, double beta,
                         double *c, int ldc);
typedef void (*set_threads_fn)(int n);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_once_t option_once = PTHREAD_ONCE_INIT;
static sgemm_fn sgemm;
static dgemm_fn dgemm;
static int wanted;

int32_t flex_blas_check(const char *option, burn_err *err)
{
    if (option == NULL || strcmp(option, "own") == 0 || strcmp(option, "openblas") == 0) {
        return BURN_OK;
    }
    return flex_fail(err, BURN_E_INVALID,
                     "flex: BURN_FLEX_GEMM=%.40s is not known; use openblas, or own, which is "
                     "usual",
                     option);
}

static void read_option(void)
{
    const char *option = flex_host->option("FLEX_GEMM");
    wanted = option != NULL && strcmp(option, "openblas") == 0;
}

static void open_library(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return;
    }
    set_threads_fn set_threads = NULL;
    void *symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof(set_threads));
    void *single = dlsym(library, "cblas_sgemm");
    void *twice = dlsym(library, "cblas_dgemm");
    if (set_threads != NULL && single != NULL && twice != NULL) {
        set_threads(1);
        memcpy(&sgemm, &single, sizeof(sgemm));
        memcpy(&dgemm, &twice, sizeof(dgemm));
    }
}

int32_t flex_blas_there(burn_err *err)
{
    (void)pthread_once(&once, open_library);
    if (sgemm == NULL) {
        return flex_fail(err, BURN_E_STATE,
                         "matmul: libopenblas.so.0 cannot be opened or lacks cblas_sgemm");
    }
    return BURN_OK;
}

int32_t flex_blas_usable(burn_err *err)
{
    (void)pthread_once(&option_once, read_option);
    if (!wanted) {
        return flex_fail(err, BURN_E_STATE,
                         "matmul: OpenBLAS is not asked for; set BURN_FLEX_GEMM=openblas");
    }
    return flex_blas_there(err);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Element (i, k) at i * outer + k * inner: rows of `inner_n` elements, `outer_n` of them. */
static int takes(int64_t outer, int64_t outer_n, int64_t inner, int64_t inner_n)
{
    int plain = inner == 1 && (outer >= inner_n || outer_n == 1);
    int turned = inner != 1 && outer == 1 && inner >= outer_n;
    return (plain || turned) && inner <= INT32_MAX && outer <= INT32_MAX;
}

int flex_blas_takes(const flex_gemm *g)
{
    return g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX && g->k > 0 &&
           takes(g->ars, g->m, g->acs, g->k) && takes(g->brs, g->k, g->bcs, g->n);
}

static int leading(int64_t stride, int64_t least)
{
    int64_t ld = stride > least ? stride : least;
    return ld > 1 ? (int)ld : 1;
}

/* How a block of the product is handed to BLAS. */
typedef struct form {
    int turn_a;
    int turn_b;
    int lda;
    int ldb;
} form;

static form form_of(const flex_gemm *g, int64_t rows, int64_t columns)
{
    form f;
    f.turn_a = g->acs != 1 ? TURNED : PLAIN;
    f.turn_b = g->bcs != 1 ? TURNED : PLAIN;
    f.lda = g->acs != 1 ? leading(g->acs, rows) : leading(g->ars, g->k);
    f.ldb = g->bcs != 1 ? leading(g->bcs, g->k) : leading(g->brs, columns);
    return f;
}

/* ---- f32 ------------------------------------------------------------------------------------- */

static void block(const flex_gemm *g, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    form f = form_of(g, i1 - i0, j1 - j0);
    float *c = g->c + i0 * g->crs + j0;
    const float *init = g->mode == FLEX_INIT_COL ? g->init : NULL;
    for (int64_t i = 0; init != NULL && i < i1 - i0; i++) {
        memcpy(c + i * g->crs, init + j0, (size_t)(j1 - j0) * sizeof(float));
    }
    sgemm(ROW_MAJOR, f.turn_a, f.turn_b, (int)(i1 - i0), (int)(j1 - j0), (int)g->k, 1.0F,
          g->a + i0 * g->ars, f.lda, g->b + j0 * g->bcs, f.ldb, init != NULL ? 1.0F : 0.0F, c,
          leading(g->crs, j1 - j0));
}

static void rows_range(void *ctx, int64_t begin, int64_t end)
{
    const flex_gemm *g = ctx;
    block(g, begin, end, 0, g->n);
}

static void columns_range(void *ctx, int64_t begin, int64_t end)
{
    const flex_gemm *g = ctx;
    block(g, 0, g->m, begin, end);
}

void flex_blas_serial(const flex_gemm *g)
{
    block(g, 0, g->m, 0, g->n);
}

void flex_blas_product(const flex_gemm *g)
{
    flex_gemm copy = *g;
    if (g->k == 0) {
        memset(g->c, 0, (size_t)(g->m * g->n) * sizeof(float));
    } else if (g->m <= BLOCK_ROWS && g->n > BLOCK_COLUMNS) {
        flex_ranges(g->n, BLOCK_COLUMNS, columns_range, &copy);
    } else {
        flex_ranges(g->m, BLOCK_ROWS, rows_range, &copy);
    }
}

/* ---- f64 ------------------------------------------------------------------------------------- */

static void rows_range_f64(void *ctx, int64_t begin, int64_t end)
{
    const flex_gemm_f64 *p = ctx;
    const flex_gemm *g = &p->g;
    form f = form_of(g, end - begin, g->n);
    double *c = p->c + begin * g->crs;
    for (int64_t i = 0; p->init != NULL && i < end - begin; i++) {
        memcpy(c + i * g->crs, p->init, (size_t)g->n * sizeof(double));
    }
    dgemm(ROW_MAJOR, f.turn_a, f.turn_b, (int)(end - begin), (int)g->n, (int)g->k, 1.0,
          p->a + begin * g->ars, f.lda, p->b, f.ldb, p->init != NULL ? 1.0 : 0.0, c,
          leading(g->crs, g->n));
}

void flex_blas_product_f64(const flex_gemm_f64 *p)
{
    flex_gemm_f64 copy = *p;
    flex_ranges(p->g.m, BLOCK_ROWS, rows_range_f64, &copy);
}
