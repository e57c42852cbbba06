/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * service.c - "flex.kernel/1": what kernels of extensions may use (<burn_sdk/flex_kernel.h>).
 *
 * Owns the table and the translation of its structs into the backend's own; no kernel. The table is
 * constant after flex_service_init. To add an entry: append it to the header's struct, raise
 * BURN_FLEX_KERNEL_CONTRACT there, and fill it here.
 */
#include "service.h"

#include "flex.h"
#include "gemm.h"
#include "rows.h"
#include "isa.h"
#include "nn.h"

#include <burn_sdk/flex_kernel.h>
#include <string.h>

/* A product as the backend describes it, and the epilogue of the extension. */
typedef struct product {
    flex_gemm g;
    burn_flex_epilogue_fn epilogue;
    void *user;
} product;

static void call_epilogue(void *user, const flex_block *b)
{
    const product *p = user;
    p->epilogue(p->user, b->c, b->ldc, b->row, b->col, b->rows, b->cols);
}

static void translate(const burn_flex_gemm *from, product *p)
{
    memset(p, 0, sizeof(*p));
    flex_gemm *g = &p->g;
    g->m = from->m;
    g->n = from->n;
    g->k = from->k;
    g->rows = from->m;
    g->a = from->a;
    g->ars = from->a_row;
    g->acs = from->a_col;
    g->b = from->b;
    g->brs = from->b_row;
    g->bcs = from->b_col;
    g->c = from->c;
    g->crs = from->c_row;
    g->init = from->bias;
    g->mode = from->bias != NULL ? FLEX_INIT_COL : FLEX_INIT_ZERO;
    p->epilogue = from->epilogue;
    p->user = from->user;
    if (from->epilogue != NULL) {
        g->epilogue = call_epilogue;
        g->epilogue_user = p;
    }
}

static int is_sound(const burn_flex_gemm *g)
{
    return g != NULL && BURN_HAS(g, burn_flex_gemm, user) && g->m >= 0 && g->n >= 0 && g->k >= 0;
}

/* A plain product of three small dense matrices, which describing anew costs dear. */
static int is_small(const burn_flex_gemm *g)
{
    return g->bias == NULL && g->epilogue == NULL && g->a_col == 1 && g->b_col == 1 &&
           g->a_row == g->k && g->b_row == g->n && g->c_row == g->n &&
           flex_gemm_is_small(g->m, g->n, g->k);
}

static void run_small(const burn_flex_gemm *g)
{
    const flex_gemm_dense p = {.m = g->m, .n = g->n, .k = g->k, .a = g->a, .b = g->b, .c = g->c};
    flex_gemm_small(&p);
}

static uint64_t BURN_CALL gemm_f32_bytes(const burn_flex_gemm *g)
{
    if (!is_sound(g)) {
        return 0;
    }
    product p;
    translate(g, &p);
    return flex_gemm_bytes(&p.g, flex_thread_count());
}

static int32_t BURN_CALL gemm_f32(const burn_flex_gemm *g, void *workspace,
                                  uint64_t workspace_bytes, burn_err *err)
{
    if (!is_sound(g)) {
        return flex_fail(err, BURN_E_INVALID,
                         "flex: gemm_f32 needs struct_size, and sizes that are not negative "
                         "(m %lld, n %lld, k %lld)",
                         g != NULL ? (long long)g->m : -1, g != NULL ? (long long)g->n : -1,
                         g != NULL ? (long long)g->k : -1);
    }
    if (is_small(g)) {
        run_small(g);
        return BURN_OK;
    }
    product p;
    translate(g, &p);
    uint64_t bytes = flex_gemm_bytes(&p.g, flex_thread_count());
    if (bytes > 0 && (workspace == NULL || workspace_bytes < bytes)) {
        return flex_fail(err, BURN_E_INVALID,
                         "flex: gemm_f32 needs %llu bytes of workspace, %llu are there; ask "
                         "gemm_f32_bytes in prepare",
                         (unsigned long long)bytes,
                         (unsigned long long)(workspace != NULL ? workspace_bytes : 0));
    }
    flex_gemm_parallel(&p.g, workspace, flex_thread_count());
    return BURN_OK;
}

static void BURN_CALL parallel_for(int64_t n, int64_t grain, burn_flex_range_fn fn, void *user)
{
    if (n > 0) {
        flex_ranges(n, grain > 0 ? grain : n, fn, user);
    }
}

static uint32_t BURN_CALL thread_count(void)
{
    return flex_thread_count();
}

static const uint32_t isa_of_level[] = {
    [FLEX_ISA_BASELINE] = BURN_FLEX_ISA_BASELINE,
    [FLEX_ISA_AVX2] = BURN_FLEX_ISA_AVX2,
    [FLEX_ISA_AVX512] = BURN_FLEX_ISA_AVX512,
};
static const uint32_t bytes_of_level[] = {
    [FLEX_ISA_BASELINE] = 16,
    [FLEX_ISA_AVX2] = 32,
    [FLEX_ISA_AVX512] = 64,
};

static burn_flex_kernel table;

void flex_service_init(void)
{
    memset(&table, 0, sizeof(table));
    table.service.struct_size = (uint32_t)sizeof(table);
    table.service.contract = BURN_FLEX_KERNEL_CONTRACT;
    table.service.contract_oldest = BURN_FLEX_KERNEL_CONTRACT;
    table.isa = isa_of_level[flex_isa];
    table.vector_bytes = bytes_of_level[flex_isa];
    table.isa_name = flex_isa_name();
    table.thread_count = thread_count;
    table.parallel_for = parallel_for;
    table.gemm_f32_bytes = gemm_f32_bytes;
    table.gemm_f32 = gemm_f32;
}

const void *BURN_CALL flex_service(const char *id)
{
    if (id != NULL && strcmp(id, BURN_MANY) == 0) {
        return &flex_many;
    }
    return id != NULL && strcmp(id, BURN_FLEX_KERNEL_ID) == 0 ? &table : NULL;
}
