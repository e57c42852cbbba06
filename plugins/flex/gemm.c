/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm.c - rows of matmul and linear.
 *
 * Owns how a call becomes products: batches are broadcast, leading dims that lie evenly are merged
 * into the rows of one product, operands are read in place whatever their strides. f32 goes to
 * gemm_driver.c, f64 to gemm_f64.c; f16 and bf16 are widened to f32 first; integers take plain
 * loops over wide copies, and wrap. A bias is where the sum starts. To add a dtype: a row and its
 * loop.
 */
#include "gemm.h"

#include "gemm_blas.h"
#include "gemm_f64.h"
#include "gemm_wide.h"
#include "nn.h"
#include "rows.h"

/* A batch of products: item i of the batch is at the offsets that its index gives. */
typedef struct batch {
    flex_gemm g; /* of item 0 */
    uint32_t rank;
    int64_t count;
    int64_t unmerged; /* what count would be if no rows were merged */
    int64_t dims[BURN_MAX_RANK];
    int64_t a_strides[BURN_MAX_RANK];
    int64_t b_strides[BURN_MAX_RANK];
} batch;

/* Stride of an operand along output batch axis `axis`, 0 where it is broadcast or lacks it. */
static int64_t batch_stride(const burn_operand *x, uint32_t rank, uint32_t axis)
{
    int64_t own = (int64_t)axis - ((int64_t)rank - (int64_t)x->rank);
    if (own < 0 || x->dims[own] == 1) {
        return 0;
    }
    return x->strides[own];
}

/* Merges the inner batch axes into the rows of A where A lies evenly and B does not change. */
static void merge_rows(batch *p)
{
    flex_gemm *g = &p->g;
    while (p->rank > 0) {
        uint32_t last = p->rank - 1;
        if (p->dims[last] != 1) {
            int even = p->b_strides[last] == 0 &&
                       (g->m == 1 || p->a_strides[last] == g->ars * g->m);
            if (!even) {
                break;
            }
            g->ars = g->m == 1 ? p->a_strides[last] : g->ars;
            g->m *= p->dims[last];
        }
        p->rank = last;
    }
    p->count = flex_product(p->rank, p->dims);
}

/* Reads the call's dims and strides. A rank-1 x of linear is one row. */
static void make_batch(const burn_call *call, batch *p)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    /* Not all of p at once: clearing memory that nobody reads costs a small product dear. */
    p->g = (flex_gemm){
        .m = x->rank > 1 ? x->dims[x->rank - 2] : 1,
        .n = y->dims[y->rank - 1],
        .k = x->dims[x->rank - 1],
        .a = x->data,
        .ars = x->rank > 1 ? x->strides[x->rank - 2] : 0,
        .acs = x->strides[x->rank - 1],
        .b = y->data,
        .brs = y->strides[y->rank - 2],
        .bcs = y->strides[y->rank - 1],
        .c = z->data,
    };
    flex_gemm *g = &p->g;
    g->rows = y->rank == 2 && g->k > 0 ? flex_numel(x) / g->k : g->m;
    p->rank = z->rank > 1 ? z->rank - 2u : 0;
    for (uint32_t i = 0; i < p->rank; i++) {
        p->dims[i] = z->dims[i];
        p->a_strides[i] = batch_stride(x, z->rank, i);
        p->b_strides[i] = batch_stride(y, z->rank, i);
    }
    p->unmerged = flex_product(p->rank, p->dims);
    merge_rows(p);
    g->crs = g->n;
    const burn_operand *bias = call->n_in > 2 ? flex_in(call, 2) : NULL;
    if (bias != NULL && !flex_absent(bias)) {
        g->init = bias->data;
        g->mode = FLEX_INIT_COL;
    }
}

/* The product of batch item `item`. */
static flex_gemm batch_item(const batch *p, int64_t item)
{
    flex_gemm g = p->g;
    g.c = g.c != NULL ? g.c + item * g.m * g.n : NULL;
    g.at0 = item * g.m * g.n;
    g.batch = item;
    for (uint32_t i = p->rank; i-- > 0;) {
        int64_t index = item % p->dims[i];
        item /= p->dims[i];
        g.a += index * p->a_strides[i];
        g.b += index * p->b_strides[i];
    }
    return g;
}

/* Items of m rows each go to slots when there are enough of them or they are small. */
static int goes_by_items(const flex_gemm *g, int64_t count, int64_t m)
{
    int64_t threads = (int64_t)flex_thread_count();
    return count >= 4 * threads || (count > 1 && m * g->n * g->k < (INT64_C(1) << 21));
}

static int by_items(const batch *p)
{
    return p->rank > 0 && goes_by_items(&p->g, p->count, p->g.m);
}

/*
 * As much as the batch needs whatever its strides: these say how many rows merge, but a prepared
 * call serves others. All rows as one product need the most, or so many slots for items.
 */
static uint64_t batch_bytes(const batch *p)
{
    flex_gemm all = p->g;
    all.m = p->count * p->g.m;
    uint64_t bytes = flex_gemm_bytes(&all, flex_thread_count());
    if (p->unmerged > 1 && goes_by_items(&all, p->unmerged, all.m / p->unmerged)) {
        uint64_t slots = flex_gemm_bytes(&all, 1) * flex_slots(p->unmerged);
        bytes = slots > bytes ? slots : bytes;
    }
    return bytes;
}

typedef struct item_job {
    const batch *p;
    char *memory;
    uint64_t bytes;
} item_job;

static void run_item(void *ctx, int64_t item, uint32_t slot)
{
    const item_job *job = ctx;
    flex_gemm g = batch_item(job->p, item);
    flex_gemm_serial(&g, job->memory + slot * job->bytes);
}

static void run_batch(const batch *p, void *memory)
{
    if (p->rank == 0) { /* one product, as it is: copying it costs a small one dear */
        flex_gemm_parallel(&p->g, memory, flex_thread_count());
        return;
    }
    if (by_items(p)) {
        item_job job = {p, memory, flex_gemm_bytes(&p->g, 1)};
        int64_t work = p->count * p->g.m * p->g.n * p->g.k;
        flex_share(p->count, work < FLEX_GRAIN ? 1 : flex_slots(p->count), run_item, &job);
        return;
    }
    for (int64_t i = 0; i < p->count; i++) {
        flex_gemm g = batch_item(p, i);
        flex_gemm_parallel(&g, memory, flex_thread_count());
    }
}

static int32_t prepare_f32(const burn_call *call, burn_prepared *out)
{
    batch p;
    make_batch(call, &p);
    out->flops = (uint64_t)(2 * p.count * p.g.m * p.g.n * p.g.k);
    return flex_want_workspace(out, batch_bytes(&p));
}

/*
 * Two dense matrices: what a small product costs beyond its sums is worth a row of its own. It is
 * the usual one where it takes the call, and others race against it.
 */
static int32_t check_small(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    if (x->rank != 2 || y->rank != 2 ||
        !flex_gemm_is_small(x->dims[0], y->dims[1], x->dims[1])) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "matmul: not two small matrices");
    }
    return BURN_OK;
}

static int32_t prepare_small(const burn_call *call, burn_prepared *out)
{
    const burn_operand *x = flex_in(call, 0);
    out->flops = (uint64_t)(2 * x->dims[0] * x->dims[1] * flex_in(call, 1)->dims[1]);
    return BURN_OK;
}

static int32_t launch_small(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    flex_gemm_dense p = {
        .m = x->dims[0],
        .n = y->dims[1],
        .k = x->dims[1],
        .a = x->data,
        .b = y->data,
        .c = flex_out(call, 0)->data,
    };
    flex_gemm_small(&p);
    return BURN_OK;
}

static int32_t launch_f32(const burn_call *call)
{
    batch p;
    make_batch(call, &p);
    void *memory = flex_workspace(call);
    if (memory == NULL && batch_bytes(&p) > 0) {
        return flex_fail(call->err, BURN_E_INTERNAL, "matmul: the call has no workspace");
    }
    run_batch(&p, memory);
    return BURN_OK;
}

/* Strips that are computed so soon are not worth a run of an epilogue each, as narrow blocks are
 * not: a pass of its own is faster. */
enum { LEAST_K = 128 };

static int is_narrow(const batch *p)
{
    uint32_t threads = by_items(p) ? 1 : flex_thread_count();
    int64_t columns = flex_gemm_block_columns(&p->g, threads);
    return (columns < p->g.n && columns < FLEX_GEMM_LEAST_COLUMNS) ||
           (!flex_gemm_keeps_c(&p->g) && p->g.k < LEAST_K);
}

int flex_gemm_passes_on(const burn_call *call)
{
    batch p;
    if (flex_in(call, 0)->dtype != BURN_F32) {
        return 0;
    }
    make_batch(call, &p);
    return !is_narrow(&p) && !flex_gemm_keeps_c(&p.g);
}

int32_t flex_gemm_run_hot(const burn_call *call, const flex_epilogue *finish)
{
    batch p;
    if (flex_in(call, 0)->dtype != BURN_F32) {
        return BURN_E_UNSUPPORTED;
    }
    make_batch(call, &p);
    void *memory = flex_workspace(call);
    if (is_narrow(&p) || (memory == NULL && batch_bytes(&p) > 0)) {
        return BURN_E_UNSUPPORTED;
    }
    p.g.epilogue = finish->fn;
    p.g.epilogue_user = finish->user;
    p.g.passes = 1;
    run_batch(&p, memory);
    return BURN_OK;
}

/* Half precision: operands widened into the workspace, then as f32, then narrowed. */
static uint64_t half_pieces(const burn_call *call, uint64_t piece[4])
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const burn_operand *x = i < call->n_in ? flex_in(call, i) : NULL;
        piece[i] = x == NULL || flex_absent(x) ? 0 : flex_float_bytes(flex_numel(x));
        total += piece[i];
    }
    piece[3] = flex_float_bytes(flex_numel(flex_out(call, 0)));
    return total + piece[3];
}

/* The same call on dense f32 operands. */
typedef struct half_call {
    burn_call call;
    burn_operand operands[4];
    int64_t strides[4][BURN_MAX_RANK];
} half_call;

static void dense(burn_operand *x, int64_t *strides, void *data)
{
    int64_t step = 1;
    for (uint32_t i = x->rank; i-- > 0;) {
        strides[i] = step;
        step *= x->dims[i];
    }
    x->strides = strides;
    x->data = data;
    x->dtype = BURN_F32;
}

static void make_half(const burn_call *call, char *memory, const uint64_t piece[4], half_call *h)
{
    h->call = *call;
    h->call.operands = h->operands;
    h->call.operand_stride = (uint32_t)sizeof(burn_operand);
    for (uint32_t i = 0; i < call->n_in + 1; i++) {
        h->operands[i] = *burn_call_operand(call, i);
        if (!flex_absent(&h->operands[i])) {
            dense(&h->operands[i], h->strides[i], memory);
            if (memory != NULL) {
                memory += i < call->n_in ? piece[i] : piece[3];
            }
        }
    }
}

static int32_t prepare_half(const burn_call *call, burn_prepared *out)
{
    uint64_t piece[4];
    uint64_t bytes = half_pieces(call, piece);
    half_call h;
    make_half(call, NULL, piece, &h);
    batch p;
    make_batch(&h.call, &p);
    return flex_want_workspace(out, bytes + batch_bytes(&p));
}

static int32_t launch_half(const burn_call *call)
{
    uint64_t piece[4];
    uint64_t bytes = half_pieces(call, piece);
    char *memory = flex_workspace(call);
    if (memory == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "matmul: the call has no workspace");
    }
    half_call h;
    make_half(call, memory, piece, &h);
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (!flex_absent(&h.operands[i])) {
            flex_gather_f32(h.operands[i].data, flex_in(call, i));
        }
    }
    batch p;
    make_batch(&h.call, &p);
    run_batch(&p, memory + bytes);
    const burn_operand *z = flex_out(call, 0);
    flex_narrow(z->data, z->dtype, h.operands[call->n_in].data, flex_numel(z));
    return BURN_OK;
}

/* The same product by OpenBLAS, on dense operands and only when asked for. */
static int32_t check_blas(const burn_call *call)
{
    return flex_blas_usable(call->err);
}

static int32_t launch_blas(const burn_call *call)
{
    batch p;
    make_batch(call, &p);
    if (p.g.m > INT32_MAX || p.g.n > INT32_MAX || p.g.k > INT32_MAX) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "matmul: too large for OpenBLAS");
    }
    for (int64_t i = 0; i < p.count; i++) {
        flex_gemm g = batch_item(&p, i);
        flex_blas_product(&g);
    }
    return BURN_OK;
}

/* Candidates of the tuner: OpenBLAS where it takes the strides, else as the plain row does. */
static int32_t check_candidate(const burn_call *call)
{
    const burn_operand *z = flex_out(call, 0);
    int32_t rc = flex_blas_there(call->err);
    if (rc == BURN_OK && flex_numel(z) == 0) {
        rc = flex_fail(call->err, BURN_E_UNSUPPORTED, "matmul: there is nothing to multiply");
    }
    return rc;
}

static void blas_item(void *ctx, int64_t item, uint32_t slot)
{
    (void)slot;
    flex_gemm g = batch_item(ctx, item);
    flex_blas_serial(&g);
}

static int32_t launch_candidate(const burn_call *call)
{
    batch p;
    make_batch(call, &p);
    if (!flex_blas_takes(&p.g)) {
        return launch_f32(call);
    }
    if (by_items(&p)) {
        int64_t work = p.count * p.g.m * p.g.n * p.g.k;
        flex_share(p.count, work < FLEX_GRAIN ? 1 : flex_slots(p.count), blas_item, &p);
        return BURN_OK;
    }
    for (int64_t i = 0; i < p.count; i++) {
        flex_gemm g = batch_item(&p, i);
        flex_blas_product(&g);
    }
    return BURN_OK;
}

/* ---- f64 ------------------------------------------------------------------------------------- */

/* The batch's own arrays are read as floats: only distances are taken from them. */
static flex_gemm_f64 item_f64(const batch *p, int64_t item)
{
    flex_gemm_f64 one = {.g = batch_item(p, item)};
    one.a = (const double *)(const void *)p->g.a + (one.g.a - p->g.a);
    one.b = (const double *)(const void *)p->g.b + (one.g.b - p->g.b);
    one.c = (double *)(void *)p->g.c + (one.g.c - p->g.c);
    one.init = (const double *)(const void *)p->g.init;
    return one;
}

static int32_t prepare_f64(const burn_call *call, burn_prepared *out)
{
    batch p;
    make_batch(call, &p);
    out->flops = (uint64_t)(2 * p.count * p.g.m * p.g.n * p.g.k);
    return flex_want_workspace(out, flex_gemm_f64_bytes(p.g.n, p.g.k, flex_thread_count()));
}

static void run_item_f64(void *ctx, int64_t item, uint32_t slot)
{
    const item_job *job = ctx;
    flex_gemm_f64 one = item_f64(job->p, item);
    flex_gemm_f64_run(&one, job->memory + slot * job->bytes, 1);
}

static int32_t launch_f64(const burn_call *call)
{
    batch p;
    make_batch(call, &p);
    void *memory = flex_workspace(call);
    if (memory == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "matmul: the call has no workspace");
    }
    if (by_items(&p)) {
        item_job job = {&p, memory, flex_gemm_f64_bytes(p.g.n, p.g.k, 1)};
        int64_t work = p.count * p.g.m * p.g.n * p.g.k;
        flex_share(p.count, work < FLEX_GRAIN ? 1 : flex_slots(p.count), run_item_f64, &job);
        return BURN_OK;
    }
    for (int64_t i = 0; i < p.count; i++) {
        flex_gemm_f64 one = item_f64(&p, i);
        flex_gemm_f64_run(&one, memory, flex_thread_count());
    }
    return BURN_OK;
}

static int32_t launch_candidate_f64(const burn_call *call)
{
    batch p;
    make_batch(call, &p);
    if (!flex_blas_takes(&p.g)) {
        return launch_f64(call);
    }
    for (int64_t i = 0; i < p.count; i++) {
        flex_gemm_f64 one = item_f64(&p, i);
        flex_blas_product_f64(&one);
    }
    return BURN_OK;
}

#define F32_SET BURN_BIT(F32)
#define F64_SET BURN_BIT(F64)
#define HALF_SET (BURN_BIT(F16) | BURN_BIT(BF16))
#define DENSE BURN_LAYOUT_CONTIGUOUS

#define MATMUL_SLOTS(set)                                                                          \
    {                                                                                              \
        FLEX_SLOT(set, BURN_LAYOUT_ANY, 0, 0), FLEX_SLOT(set, BURN_LAYOUT_ANY, 1, 0),              \
            FLEX_SLOT(set, DENSE, 1, 0)                                                            \
    }
#define LINEAR_SLOTS(set)                                                                          \
    {                                                                                              \
        FLEX_SLOT(set, BURN_LAYOUT_ANY, 0, 0), FLEX_SLOT(set, BURN_LAYOUT_ANY, 1, 0),              \
            FLEX_SLOT(set, DENSE, 1, FLEX_OPT), FLEX_SLOT(set, DENSE, 1, 0)                        \
    }

static const burn_slot matmul_f32[] = MATMUL_SLOTS(F32_SET);
static const burn_slot matmul_half[] = MATMUL_SLOTS(HALF_SET);
static const burn_slot matmul_wide[] = MATMUL_SLOTS(BURN_SET_INT);
static const burn_slot matmul_dense[] = {
    FLEX_SLOT(F32_SET, DENSE, 0, 0),
    FLEX_SLOT(F32_SET, DENSE, 1, 0),
    FLEX_SLOT(F32_SET, DENSE, 1, 0),
};
static const burn_slot matmul_f64[] = MATMUL_SLOTS(F64_SET);
static const burn_slot linear_f64[] = LINEAR_SLOTS(F64_SET);
static const burn_slot linear_f32[] = LINEAR_SLOTS(F32_SET);
static const burn_slot linear_half[] = LINEAR_SLOTS(HALF_SET);

/* A fused program may begin with it. */
#define TAKES_MORE BURN_ROW_EPILOGUE

/* clang-format off */
const burn_row flex_rows_gemm[] = {
    { .struct_size = (uint32_t)sizeof(burn_row), .flags = FLEX_ROW_FLAGS, .op = BURN_OP_MATMUL,
      .revision_min = 1, .revision_max = 1, .priority = 10, .n_slots = FLEX_COUNT(matmul_dense),
      .slot_stride = (uint32_t)sizeof(burn_slot), .slots = matmul_dense,
      .name = "flex.matmul.f32.openblas", .name_revision = 1,
      .guard_stride = (uint32_t)sizeof(burn_guard), .check = check_blas, .launch = launch_blas },
    FLEX_ROW_PREPARED(BURN_OP_MATMUL, matmul_f32, TAKES_MORE | BURN_ROW_TUNABLE, "flex.matmul.f32",
                      prepare_f32, launch_f32),
    { .struct_size = (uint32_t)sizeof(burn_row), .op = BURN_OP_MATMUL,
      .flags = (FLEX_ROW_FLAGS & ~(uint32_t)BURN_ROW_ANY_DIMS) | TAKES_MORE | BURN_ROW_TUNABLE,
      .revision_min = 1, .revision_max = 1, .priority = 5, .n_slots = FLEX_COUNT(matmul_dense),
      .slot_stride = (uint32_t)sizeof(burn_slot), .slots = matmul_dense,
      .name = "flex.matmul.f32.small", .name_revision = 1,
      .guard_stride = (uint32_t)sizeof(burn_guard), .key_facts = BURN_FACT_DIMS,
      .check = check_small, .prepare = prepare_small, .launch = launch_small },
    FLEX_ROW_CANDIDATE(BURN_OP_MATMUL, matmul_f32, "flex.matmul.f32.blas", check_candidate,
                       prepare_f32, launch_candidate),
    FLEX_ROW_PREPARED(BURN_OP_MATMUL, matmul_f64, TAKES_MORE | BURN_ROW_TUNABLE, "flex.matmul.f64",
                      prepare_f64, launch_f64),
    FLEX_ROW_CANDIDATE(BURN_OP_MATMUL, matmul_f64, "flex.matmul.f64.blas", check_candidate,
                       prepare_f64, launch_candidate_f64),
    FLEX_ROW_PREPARED(BURN_OP_MATMUL, matmul_half, TAKES_MORE, "flex.matmul.half",
                      prepare_half, launch_half),
    FLEX_ROW_PREPARED(BURN_OP_MATMUL, matmul_wide, TAKES_MORE | BURN_ROW_TUNABLE,
                      "flex.matmul.wide", flex_wide_prepare, flex_wide_launch),
    FLEX_ROW_PREPARED(BURN_OP_LINEAR, linear_f32, TAKES_MORE | BURN_ROW_TUNABLE, "flex.linear.f32",
                      prepare_f32, launch_f32),
    FLEX_ROW_CANDIDATE(BURN_OP_LINEAR, linear_f32, "flex.linear.f32.blas", check_candidate,
                       prepare_f32, launch_candidate),
    FLEX_ROW_PREPARED(BURN_OP_LINEAR, linear_f64, TAKES_MORE | BURN_ROW_TUNABLE, "flex.linear.f64",
                      prepare_f64, launch_f64),
    FLEX_ROW_CANDIDATE(BURN_OP_LINEAR, linear_f64, "flex.linear.f64.blas", check_candidate,
                       prepare_f64, launch_candidate_f64),
    FLEX_ROW_PREPARED(BURN_OP_LINEAR, linear_half, TAKES_MORE, "flex.linear.half",
                      prepare_half, launch_half),
};
/* clang-format on */
const uint32_t flex_rows_gemm_count = FLEX_COUNT(flex_rows_gemm);
