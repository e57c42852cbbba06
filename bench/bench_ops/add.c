/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * add.c - "bench_ops.add", which computes what add computes.
 *
 * So that the row ext.call.64 shows what a call through an extension costs, and nothing else. Its
 * kernel is a loop on dense f32, vectors of 16 where the CPU has them.
 */
#include "bench_ops.h"

static int32_t vjp(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    for (uint32_t i = 0; i < 2; i++) {
        if (a->wanted[i]) {
            a->grad_in[i] = a->grad_out[0];
        }
    }
    return BURN_OK;
}

static int32_t decompose(const burn_builder *b, const burn_expand *a)
{
    a->out[0] = burn_b_add(b, a->in[0], a->in[1]);
    return BURN_OK;
}

static int32_t eval(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = a->in[0].f[k] + a->in[1].f[k];
    }
    return BURN_OK;
}

static int32_t samples(uint32_t i, burn_sample *out)
{
    const int64_t dims[1] = {64};
    if (i > 0) {
        return BURN_E_END;
    }
    burn_sample_begin(out, "vector", 2.0, 64.0);
    burn_sample_tensor(out, 0, BURN_F32, BURN_FILL_NORMAL, 1, dims);
    burn_sample_tensor(out, 1, BURN_F32, BURN_FILL_NORMAL, 1, dims);
    return BURN_OK;
}

/* As wide as the backend's own loop, so that the two calls differ in nothing else. */
typedef void (*add_fn)(float *c, const float *a, const float *b, int64_t n);

static void add_plain(float *c, const float *a, const float *b, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        c[k] = a[k] + b[k];
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void add_wide(float *c, const float *a, const float *b,
                                                        int64_t n)
{
    typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        *(lanes *)(void *)(c + k) = *(const lanes *)(const void *)(a + k) +
                                    *(const lanes *)(const void *)(b + k);
    }
    add_plain(c + k, a + k, b + k, n - k);
}
#endif

static add_fn add_loop = add_plain;

static int32_t launch(const burn_call *call)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *z = burn_call_operand(call, 2);
    const float *a = (const float *)x->data;
    const float *b = (const float *)burn_call_operand(call, 1)->data;
    float *c = (float *)z->data;
    int64_t n = 1;
    for (uint32_t d = 0; d < z->rank; d++) {
        n *= z->dims[d];
    }
    add_loop(c, a, b, n);
    return BURN_OK;
}

const burn_op_def bench_ops_add = {
    .name = "bench_ops.add",
    .n_in = 2,
    .n_out = 1,
    .roles = bench_ops_roles,
    .fuse = BURN_FUSE_POINTWISE,
    .vjp = vjp,
    .vjp_saves = (const uint32_t[]){0, 0},
    .decompose = decompose,
    .eval = eval,
    .samples = samples,
    .summary = "x + y, to measure what a call through an extension costs",
};

burn_row bench_ops_rows_add[1] = {
    BURN_ROW(0, "bench_ops.add", BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS, bench_ops_slots,
             launch)};

void bench_ops_pick_loop(void)
{
#if defined(__x86_64__)
    add_loop = __builtin_cpu_supports("avx512f") ? add_wide : add_plain;
#endif
}
