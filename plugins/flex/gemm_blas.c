/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_blas.c - OpenBLAS behind dlopen, one product at a time, blocks of rows shared out.
 *
 * Owns the handle and the two entry points. The blocks are cut by size, so the result does not
 * depend on the number of threads. To use another BLAS: another name in open_library.
 */
#include "gemm_blas.h"

#include "nn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112, BLOCK_ROWS = 192 };

typedef void (*sgemm_fn)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef void (*set_threads_fn)(int n);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_fn sgemm;
static int wanted;

static void open_library(void)
{
    const char *option = flex_host->option("FLEX_GEMM");
    wanted = option != NULL && strcmp(option, "openblas") == 0;
    void *library = wanted ? dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        return;
    }
    set_threads_fn set_threads = NULL;
    void *symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof(set_threads));
    symbol = dlsym(library, "cblas_sgemm");
    if (set_threads != NULL && symbol != NULL) {
        set_threads(1);
        memcpy(&sgemm, &symbol, sizeof(sgemm));
    }
}

int32_t flex_blas_usable(burn_err *err)
{
    pthread_once(&once, open_library);
    if (!wanted) {
        return flex_fail(err, BURN_E_UNSUPPORTED,
                         "matmul: OpenBLAS is not asked for; set FLEX_GEMM to openblas");
    }
    if (sgemm == NULL) {
        return flex_fail(err, BURN_E_UNSUPPORTED,
                         "matmul: libopenblas.so.0 cannot be opened or lacks cblas_sgemm");
    }
    return BURN_OK;
}

static int leading(int64_t stride, int64_t least)
{
    int64_t ld = stride > least ? stride : least;
    return ld > 1 ? (int)ld : 1;
}

static void rows_range(void *ctx, int64_t begin, int64_t end)
{
    const flex_gemm *g = ctx;
    int a_turned = g->acs != 1;
    int b_turned = g->bcs != 1;
    int lda = a_turned ? leading(g->acs, end - begin) : leading(g->ars, g->k);
    int ldb = b_turned ? leading(g->bcs, g->k) : leading(g->brs, g->n);
    sgemm(ROW_MAJOR, a_turned ? TURNED : PLAIN, b_turned ? TURNED : PLAIN, (int)(end - begin),
          (int)g->n, (int)g->k, 1.0F, g->a + begin * g->ars, lda, g->b, ldb, 0.0F,
          g->c + begin * g->crs, leading(g->crs, g->n));
}

void flex_blas_product(const flex_gemm *g)
{
    flex_gemm copy = *g;
    if (g->k == 0) {
        memset(g->c, 0, (size_t)(g->m * g->n) * sizeof(float));
        return;
    }
    flex_ranges(g->m, BLOCK_ROWS, rows_range, &copy);
}
