/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * product.c - "bench_ops.product", a product of two matrices that is computed 64 times.
 *
 * So that the rows sgemm.small.N.kernel show what flex's product for kernels takes
 * (burn_sdk/flex_kernel.h), in memory that is there, as a call of a BLAS does: what the call of the
 * op costs is spread over 64. The result is the last one, which is the first one.
 */
#include "bench_ops.h"

#include <burn_sdk/flex_kernel.h>

enum { TIMES = 64 };

static int32_t infer(const burn_infer *a)
{
    const burn_meta *x = a->in[0];
    const burn_meta *y = a->in[1];
    if (x->rank != 2 || y->rank != 2 || x->dims[1] != y->dims[0]) {
        char tx[64];
        char ty[64];
        return burn_plugin_fail(a->err, BURN_E_SHAPE,
                                "bench_ops.product: x %s and y %s; both need rank 2, and x's "
                                "second size is y's first",
                                burn_shape_text(tx, sizeof(tx), x),
                                burn_shape_text(ty, sizeof(ty), y));
    }
    burn_meta_copy_shape(&a->out[0], x);
    a->out[0].dims[1] = y->dims[1];
    return BURN_OK;
}

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    if (a->wanted[0]) {
        a->grad_in[0] = burn_b_matmul(b, a->grad_out[0], burn_b_transpose(b, a->in[1], 0, 1));
    }
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_matmul(b, burn_b_transpose(b, a->in[0], 0, 1), a->grad_out[0]);
    }
    return BURN_OK;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_matmul(b, a->in[0], a->in[1]);
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    uint64_t k = (uint64_t)a->in[1].meta.dims[0];
    uint64_t n = (uint64_t)a->in[1].meta.dims[1];
    for (uint64_t at = 0; at < a->out[0].n; at++) {
        double sum = 0.0;
        for (uint64_t p = 0; p < k; p++) {
            sum += a->in[0].f[at / n * k + p] * a->in[1].f[p * n + at % n];
        }
        a->out[0].f[at] = sum;
    }
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    static const char *const names[] = {"matrices", "odd sizes", "special values, one to a sum",
                                        "inner sizes differ"};
    static const int64_t dims[][2][2] = {
        {{16, 16}, {16, 16}}, {{3, 5}, {5, 17}}, {{33, 1}, {1, 3}}, {{3, 5}, {4, 2}}};
    if (i >= BURN_COUNT(dims)) {
        return BURN_E_END;
    }
    burn_sample_begin(out, names[i], 64.0, 4096.0);
    burn_sample_tensor(out, 0, BURN_F32, i == 2 ? BURN_FILL_SPECIAL : BURN_FILL_NORMAL, 2,
                       dims[i][0]);
    burn_sample_tensor(out, 1, BURN_F32, BURN_FILL_NORMAL, 2, dims[i][1]);
    if (i == 2) {
        out->flags |= BURN_SAMPLE_NO_GRAD;
    }
    if (i == 3) {
        burn_sample_error(out, BURN_E_SHAPE);
    }
    return BURN_OK;
}

static void make_product(const burn_call *call, burn_flex_gemm *g)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *y = burn_call_operand(call, 1);
    BURN_INIT(g, burn_flex_gemm);
    g->m = x->dims[0];
    g->k = x->dims[1];
    g->n = y->dims[1];
    g->a = (const float *)x->data;
    g->a_row = g->k;
    g->a_col = 1;
    g->b = (const float *)y->data;
    g->b_row = g->n;
    g->b_col = 1;
    g->c = (float *)burn_call_operand(call, 2)->data;
    g->c_row = g->n;
}

int32_t bench_ops_prepare_product(const burn_call *call, burn_prepared *out)
{
    const burn_flex_kernel *flex = burn_flex_kernel_of(bench_ops_host);
    if (flex == NULL) {
        return burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "bench_ops: flex offers no %s",
                                BURN_FLEX_KERNEL_ID);
    }
    burn_flex_gemm g;
    make_product(call, &g);
    out->state = (void *)(uintptr_t)flex;
    out->workspace_bytes = flex->gemm_f32_bytes(&g);
    out->workspace_align = 64;
    return BURN_OK;
}

static int32_t launch(const burn_call *call)
{
    const burn_flex_kernel *flex = (const burn_flex_kernel *)call->state;
    void *workspace = call->workspace != NULL ? call->workspace->data : NULL;
    burn_flex_gemm g;
    make_product(call, &g);
    uint64_t bytes = flex->gemm_f32_bytes(&g);
    int32_t code = BURN_OK;
    for (int i = 0; i < TIMES && code == BURN_OK; i++) {
        code = flex->gemm_f32(&g, workspace, bytes, call->err);
    }
    return code;
}

const burn_op_def bench_ops_product = {
    .name = "bench_ops.product",
    .n_in = 2,
    .n_out = 1,
    .roles = bench_ops_roles,
    .infer = infer,
    .vjp = vjp,
    .vjp_saves = (const uint32_t[]){BURN_SAVE_IN(1), BURN_SAVE_IN(0)},
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
    .summary = "x y, computed 64 times, to measure what a product in a kernel costs",
};

burn_row bench_ops_rows_product[1] = {BURN_ROW(0, "bench_ops.product", BURN_ROW_DETERMINISTIC,
                                               bench_ops_slots, launch)};
