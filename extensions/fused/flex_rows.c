/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * flex_rows.c - the rows for the CPU backend, and the kernels behind them.
 *
 * Owns how a call becomes loops: products go to the backend's gemm with the activation as its
 * epilogue, everything else is cut by size and shared out to its threads. `prepare` finds the
 * backend's services and the loops of the instruction set in use; both are constant. To add a
 * kernel: a launch function and a row. [queue]
 */
#include "fused_plugin.h"
#include "loops.h"

#include <burn_sdk/loop.h>
#include <math.h>
#include <string.h>

/* Elements of a piece that is worth a thread. */
enum { GRAIN = 16384 };

/* From how many bytes of operands and results on, results go past the caches, as the backend's own
 * ops do it: it saves the reading of what is written over. Elements of what is made at a time; of a
 * piece, which is long, since at the start of each memory idles. */
static const int64_t STREAM_BYTES = (int64_t)48 << 20;
enum { STREAM_TILE = 256, STREAM_ROW = 4096, STREAM_GRAIN = 1 << 19 };

/* ---- services -------------------------------------------------------------------------------- */

static const fused_loops *const loops_by_isa[] = {
    [BURN_FLEX_ISA_BASELINE] = &fused_loops_baseline,
#if defined(FUSED_HAS_X86_LOOPS)
    [BURN_FLEX_ISA_AVX2] = &fused_loops_avx2,
    [BURN_FLEX_ISA_AVX512] = &fused_loops_avx512,
#endif
};

static const fused_loops *loops_of(const burn_flex_kernel *flex)
{
    return loops_by_isa[flex->isa < BURN_COUNT(loops_by_isa) ? flex->isa : BURN_FLEX_ISA_BASELINE];
}

static int32_t prepare(const burn_call *call, burn_prepared *out)
{
    out->state = burn_flex_kernel_of(fused_host);
    if (out->state == NULL) {
        return burn_plugin_fail(call->err, BURN_E_UNSUPPORTED, "fused: flex offers no %s",
                                BURN_FLEX_KERNEL_ID);
    }
    return BURN_OK;
}

static int64_t count_of(const burn_operand *x)
{
    return burn_dims_count(x->rank, x->dims);
}

/* Asks memory for elements first .. first + n - 1; beyond the end of an array this does nothing. */
static void fetch(const void *array, int64_t first, int64_t n)
{
    for (int64_t k = first; k < first + n; k += 16) {
        __builtin_prefetch((const void *)((uintptr_t)array + (uintptr_t)k * sizeof(float)));
    }
}

/* Large, and over none of the `n_in` operands of the result's size. */
static int goes_past_caches(const burn_call *call, const fused_loops *loops, uint32_t n_in,
                            const burn_operand *out)
{
    int64_t bytes = count_of(out) * (int64_t)sizeof(float) * (n_in + 1);
    if (out->dtype != BURN_F32 || loops->stream == NULL || bytes <= STREAM_BYTES) {
        return 0;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        if (burn_call_operand(call, i)->data == out->data) {
            return 0;
        }
    }
    return 1;
}

/* ---- matmul_bias ----------------------------------------------------------------------------- */

typedef void (*block_fn)(float *c, int64_t ld, int64_t rows, int64_t cols);

typedef struct activation {
    block_fn fn;
} activation;

static void BURN_CALL activate(void *user, float *c, int64_t ldc, int64_t row, int64_t col,
                               int64_t rows, int64_t cols)
{
    const activation *a = (const activation *)user;
    (void)row;
    (void)col;
    a->fn(c, ldc, rows, cols);
}

/* x of rank above 2 is dense, so that its leading dims are rows of one product. */
static void make_product(const burn_call *call, burn_flex_gemm *g)
{
    const burn_operand *x = burn_call_operand(call, 0);
    const burn_operand *w = burn_call_operand(call, 1);
    BURN_INIT(g, burn_flex_gemm);
    g->n = w->dims[1];
    g->k = w->dims[0];
    g->m = 1;
    for (uint32_t d = 0; d + 1 < x->rank; d++) {
        g->m *= x->dims[d];
    }
    g->a = (const float *)x->data;
    g->a_row = x->strides[x->rank - 2];
    g->a_col = x->strides[x->rank - 1];
    g->b = (const float *)w->data;
    g->b_row = w->strides[0];
    g->b_col = w->strides[1];
    g->c_row = g->n;
    g->bias = (const float *)burn_call_operand(call, 2)->data;
    g->c = (float *)burn_call_operand(call, 3)->data;
}

static int32_t prepare_product(const burn_call *call, burn_prepared *out)
{
    int32_t code = prepare(call, out);
    if (code != BURN_OK) {
        return code;
    }
    burn_flex_gemm g;
    make_product(call, &g);
    out->workspace_bytes = ((const burn_flex_kernel *)out->state)->gemm_f32_bytes(&g);
    out->workspace_align = 64;
    out->flops = (uint64_t)(2 * g.m * g.n * g.k);
    return BURN_OK;
}

static int32_t launch_product(const burn_call *call, block_fn fn)
{
    const burn_flex_kernel *flex = (const burn_flex_kernel *)call->state;
    burn_flex_gemm g;
    make_product(call, &g);
    activation a = {fn};
    g.epilogue = activate;
    g.user = &a;
    uint64_t bytes = flex->gemm_f32_bytes(&g);
    return flex->gemm_f32(&g, call->workspace != NULL ? call->workspace->data : NULL, bytes,
                          call->err);
}

static int32_t BURN_CALL launch_relu(const burn_call *call)
{
    return launch_product(call, loops_of((const burn_flex_kernel *)call->state)->relu);
}

static int32_t BURN_CALL launch_gelu(const burn_call *call)
{
    const burn_attrs_gelu *attrs = (const burn_attrs_gelu *)call->attrs;
    const fused_loops *loops = loops_of((const burn_flex_kernel *)call->state);
    return launch_product(call, attrs->tanh_form ? loops->gelu_tanh : loops->gelu);
}

/* ---- swiglu ---------------------------------------------------------------------------------- */

/* What a loop over elements needs; addresses of element 0. */
typedef struct pieces {
    const fused_loops *loops;
    const void *in[4];
    void *out[2];
    fused_lion lion;
    double eps;
    int64_t row; /* elements of a row, for add_layer_norm */
} pieces;

static void BURN_CALL swiglu_range(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    p->loops->swiglu((float *)p->out[0] + begin, (const float *)p->in[0] + begin,
                     (const float *)p->in[1] + begin, end - begin);
}

static void BURN_CALL swiglu_far_range(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    _Alignas(4096) float made[STREAM_TILE];
    for (int64_t k = begin; k < end; k += STREAM_TILE) {
        int64_t n = end - k < STREAM_TILE ? end - k : STREAM_TILE;
        fetch(p->in[0], k + STREAM_TILE, STREAM_TILE);
        fetch(p->in[1], k + STREAM_TILE, STREAM_TILE);
        p->loops->swiglu(made, (const float *)p->in[0] + k, (const float *)p->in[1] + k, n);
        p->loops->stream((float *)p->out[0] + k, made, n);
    }
    p->loops->flushed();
}

static void BURN_CALL swiglu_range_f64(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    const double *gate = (const double *)p->in[0];
    const double *up = (const double *)p->in[1];
    for (int64_t k = begin; k < end; k++) {
        ((double *)p->out[0])[k] = gate[k] / (1.0 + exp(-gate[k])) * up[k];
    }
}

static int32_t BURN_CALL launch_swiglu(const burn_call *call)
{
    const burn_flex_kernel *flex = (const burn_flex_kernel *)call->state;
    const burn_operand *out = burn_call_operand(call, 2);
    pieces p = {.loops = loops_of(flex)};
    p.in[0] = burn_call_operand(call, 0)->data;
    p.in[1] = burn_call_operand(call, 1)->data;
    p.out[0] = out->data;
    int64_t n = count_of(out);
    burn_flex_range_fn fn = out->dtype == BURN_F32 ? swiglu_range : swiglu_range_f64;
    int64_t grain = GRAIN;
    if (goes_past_caches(call, p.loops, 2, out)) {
        fn = swiglu_far_range;
        grain = STREAM_GRAIN;
    }
    if (n <= GRAIN) {
        fn(&p, 0, n);
    } else {
        flex->parallel_for(n, grain, fn, &p);
    }
    return BURN_OK;
}

/* ---- add_layer_norm -------------------------------------------------------------------------- */

static void BURN_CALL norm_range(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * p->row;
        p->loops->add_norm((float *)p->out[0] + at, (const float *)p->in[0] + at,
                           (const float *)p->in[1] + at, (const float *)p->in[2],
                           (const float *)p->in[3], p->eps, p->row);
    }
}

/* Rows of at most STREAM_ROW elements. */
static void BURN_CALL norm_far_range(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    _Alignas(4096) float made[STREAM_ROW];
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * p->row;
        p->loops->add_norm(made, (const float *)p->in[0] + at, (const float *)p->in[1] + at,
                           (const float *)p->in[2], (const float *)p->in[3], p->eps, p->row);
        p->loops->stream((float *)p->out[0] + at, made, p->row);
    }
    p->loops->flushed();
}

static void BURN_CALL norm_range_f64(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * p->row;
        p->loops->add_norm_f64((double *)p->out[0] + at, (const double *)p->in[0] + at,
                               (const double *)p->in[1] + at, (const double *)p->in[2],
                               (const double *)p->in[3], p->eps, p->row);
    }
}

static int32_t BURN_CALL launch_norm(const burn_call *call)
{
    const burn_flex_kernel *flex = (const burn_flex_kernel *)call->state;
    const burn_operand *out = burn_call_operand(call, 4);
    pieces p = {.loops = loops_of(flex),
                .eps = ((const burn_fused_attrs_norm *)call->attrs)->eps,
                .row = count_of(burn_call_operand(call, 2))};
    for (uint32_t i = 0; i < 4; i++) {
        p.in[i] = burn_call_operand(call, i)->data;
    }
    p.out[0] = out->data;
    int64_t n = count_of(out);
    if (n > 0) {
        int64_t grain = GRAIN / p.row > 0 ? GRAIN / p.row : 1;
        burn_flex_range_fn fn = out->dtype == BURN_F32 ? norm_range : norm_range_f64;
        if (p.row <= STREAM_ROW && goes_past_caches(call, p.loops, 2, out)) {
            fn = norm_far_range;
            grain = STREAM_GRAIN / p.row;
        }
        flex->parallel_for(n / p.row, grain, fn, &p);
    }
    return BURN_OK;
}

/* ---- lion_step ------------------------------------------------------------------------------- */

static void BURN_CALL lion_range(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    p->loops->lion((float *)p->out[0] + begin, (float *)p->out[1] + begin,
                   (const float *)p->in[0] + begin, (const float *)p->in[2] + begin,
                   (const float *)p->in[1] + begin, &p->lion, end - begin);
}

static void BURN_CALL lion_range_f64(void *user, int64_t begin, int64_t end)
{
    const pieces *p = (const pieces *)user;
    p->loops->lion_f64((double *)p->out[0] + begin, (double *)p->out[1] + begin,
                       (const double *)p->in[0] + begin, (const double *)p->in[2] + begin,
                       (const double *)p->in[1] + begin, &p->lion, end - begin);
}

static int32_t BURN_CALL launch_lion(const burn_call *call)
{
    const burn_flex_kernel *flex = (const burn_flex_kernel *)call->state;
    const burn_fused_attrs_lion *attrs = (const burn_fused_attrs_lion *)call->attrs;
    const burn_operand *param = burn_call_operand(call, 0);
    pieces p = {.loops = loops_of(flex)};
    for (uint32_t i = 0; i < 3; i++) {
        p.in[i] = burn_call_operand(call, i)->data;
    }
    p.out[0] = burn_call_operand(call, 4)->data;
    p.out[1] = burn_call_operand(call, 5)->data;
    memcpy(&p.lion.lr, burn_call_operand(call, 3)->data, sizeof(p.lion.lr));
    p.lion.beta1 = attrs->beta1;
    p.lion.beta2 = attrs->beta2;
    p.lion.weight_decay = attrs->weight_decay;
    flex->parallel_for(count_of(param), GRAIN,
                       param->dtype == BURN_F32 ? lion_range : lion_range_f64, &p);
    return BURN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define F32                    BURN_BIT(F32)
#define WIDE                   (BURN_BIT(F32) | BURN_BIT(F64))
#define DENSE                  BURN_LAYOUT_CONTIGUOUS
#define OUT_LIKE(set, operand) BURN_SLOT_LIKE(set, DENSE | BURN_LAYOUT_SCALAR, operand)

static const burn_slot matrix_slots[] = {
    {{F32, 0, 0, 0}, BURN_LAYOUT_ANY, 2, 2, 0, 0, 0, 0, {0}},
    BURN_SLOT_LIKE(F32, BURN_LAYOUT_ANY, 0),
    BURN_SLOT_LIKE(F32, DENSE, 0),
    OUT_LIKE(F32, 0),
};
static const burn_slot batch_slots[] = {
    {{F32, 0, 0, 0}, DENSE, 3, BURN_MAX_RANK, 0, 0, 0, 0, {0}},
    BURN_SLOT_LIKE(F32, BURN_LAYOUT_ANY, 0),
    BURN_SLOT_LIKE(F32, DENSE, 0),
    OUT_LIKE(F32, 0),
};
static const burn_slot swiglu_slots[] = {
    BURN_SLOT(WIDE, DENSE),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    OUT_LIKE(WIDE, 0),
};
static const burn_slot norm_slots[] = {
    BURN_SLOT(WIDE, DENSE),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    OUT_LIKE(WIDE, 0),
};
static const burn_slot lion_slots[] = {
    BURN_SLOT(WIDE, DENSE),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    BURN_SLOT_LIKE(WIDE, DENSE, 0),
    BURN_SLOT_OR_NUMBER(BURN_BIT(F64), BURN_LAYOUT_ANY),
    OUT_LIKE(WIDE, 0),
    OUT_LIKE(WIDE, 0),
};

#define FLAGS (BURN_ROW_DETERMINISTIC | BURN_ROW_CAPTURE_SAFE | BURN_ROW_INDEX64)

static void set_row(burn_row *row, const char *name, uint64_t op, const burn_slot *slots,
                    uint32_t n_slots, uint32_t in_place_mask, burn_launch_fn launch)
{
    BURN_INIT(row, burn_row);
    row->flags = FLAGS | BURN_ROW_ANY_DIMS;
    row->op = op;
    row->revision_min = 1;
    row->revision_max = 1;
    row->n_slots = (uint16_t)n_slots;
    row->slot_stride = (uint32_t)sizeof(burn_slot);
    row->slots = slots;
    row->guard_stride = (uint32_t)sizeof(burn_guard);
    row->name = name;
    row->name_revision = 1;
    row->in_place_mask = in_place_mask;
    row->prepare = prepare;
    row->launch = launch;
}

static void set_product_row(burn_row *row, const char *name, uint64_t op, const burn_slot *slots,
                            burn_launch_fn launch)
{
    set_row(row, name, op, slots, 4, 0, launch);
    row->flags = FLAGS; /* the workspace depends on sizes */
    row->key_facts = BURN_FACT_DIMS;
    row->prepare = prepare_product;
}

const burn_row *fused_flex_rows(uint32_t *n)
{
    static burn_row rows[7];
    uint64_t relu = burn_fused_id_matmul_bias_relu();
    uint64_t gelu = burn_fused_id_matmul_bias_gelu();
    set_product_row(&rows[0], "fused.matmul_bias_relu", relu, matrix_slots, launch_relu);
    set_product_row(&rows[1], "fused.matmul_bias_relu.batch", relu, batch_slots, launch_relu);
    set_product_row(&rows[2], "fused.matmul_bias_gelu", gelu, matrix_slots, launch_gelu);
    set_product_row(&rows[3], "fused.matmul_bias_gelu.batch", gelu, batch_slots, launch_gelu);
    set_row(&rows[4], "fused.swiglu", burn_fused_id_swiglu(), swiglu_slots,
            BURN_COUNT(swiglu_slots), 3, launch_swiglu);
    set_row(&rows[5], "fused.add_layer_norm", burn_fused_id_add_layer_norm(), norm_slots,
            BURN_COUNT(norm_slots), 0, launch_norm);
    set_row(&rows[6], "fused.lion_step", burn_fused_id_lion_step(), lion_slots,
            BURN_COUNT(lion_slots), 0, launch_lion);
    *n = (uint32_t)BURN_COUNT(rows);
    return rows;
}
