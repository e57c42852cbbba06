/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce.c - reductions over any axes, arg-reductions, var, logsumexp: rows and drivers.
 *
 * A call becomes a list of outputs, each a row of `n_red` elements that is dense or gathered in
 * runs. Long rows are cut into parts of a fixed size whose accumulators are merged in order, so
 * bits depend on the shape only, never on threads. f32 sums add runs pairwise. Reductions of f32
 * over outer axes, where neighbouring outputs are neighbours in memory, go column-wise
 * (reduce_columns.c). To add a reduction: see reduce.h.
 */
#include "reduce.h"

#include "reduce_columns.h"
#include "rows.h"
#include "stream.h"
#include "threads.h"
#include "tiles.h"

#include <math.h>
#include <string.h>

enum { RUN = FLEX_REDUCE_RUN, PART = FLEX_REDUCE_PART };
enum { GATHER = 512, MAX_PARTS = 128, MAX_ROWS = 64 };
enum { NEAR = 2 << 20 /* bytes that level 2 may hold */ };

typedef struct reduction {
    const char *data;
    flex_reducer how;
    uint32_t size;
    uint8_t dense; /* the reduced elements of an output are one dense run */
    uint8_t ahead; /* no near cache holds them */
    uint8_t zero[2];
    flex_convert_fn convert; /* halves to float */
    uint32_t kept_rank;
    uint32_t red_rank;
    int64_t kept_dims[BURN_MAX_RANK];
    int64_t kept_strides[BURN_MAX_RANK];
    int64_t red_dims[BURN_MAX_RANK];
    int64_t red_strides[BURN_MAX_RANK];
    int64_t n_out;
    int64_t n_red;
    char *out;
    int64_t per_task; /* outputs per task */
    uint64_t fetch;   /* bytes of the next row that are asked for with each */
    int64_t parts;    /* of each row, 1: rows are whole */
    flex_acc *part_acc;
} reduction;

static flex_fold_fn fold_of(const reduction *r, uint32_t kind)
{
    flex_fold_fn fold = flex_fold_of(r->how.dtype, kind);
    return r->ahead ? flex_fold_ahead(fold) : fold;
}

/* Folds elements lo .. hi - 1 of the row that starts at `data`. */
static void fold_range(const reduction *r, const char *data, int64_t lo, int64_t hi,
                       flex_fold_fn fold, flex_acc *acc)
{
    _Alignas(64) char raw[GATHER * 8];
    _Alignas(64) float wide[RUN];
    if (r->dense) {
        int64_t most = r->convert != NULL ? RUN : flex_fold_most(fold);
        for (int64_t at = lo; at < hi; at += most) {
            int64_t n = hi - at < most ? hi - at : most;
            const void *x = data + at * (int64_t)r->size;
            if (r->convert != NULL) {
                r->convert(wide, x, (uint64_t)n);
                x = wide;
            }
            fold(acc, x, (uint64_t)n);
        }
        return;
    }
    for (int64_t at = lo; at < hi; at += GATHER) {
        int64_t n = hi - at < GATHER ? hi - at : GATHER;
        const void *x = raw;
        flex_gather(raw, data, r->size, r->red_rank, r->red_dims, r->red_strides, at, n);
        if (r->convert != NULL) {
            r->convert(wide, raw, (uint64_t)n);
            x = wide;
        }
        fold(acc, x, (uint64_t)n);
    }
}

/* Folds a whole row, or adds up its parts. */
static void row_fold(const reduction *r, const char *data, uint32_t kind, double shift,
                     flex_acc *acc)
{
    flex_fold_fn fold = fold_of(r, kind);
    flex_acc_start(acc, kind, shift);
    for (int64_t at = 0; at < r->n_red; at += PART) {
        flex_acc part;
        int64_t end = r->n_red - at < PART ? r->n_red : at + PART;
        flex_acc_start(&part, kind, shift);
        fold_range(r, data, at, end, fold, &part);
        flex_acc_merge(&r->how, kind, acc, &part);
    }
}

static void row_whole(const reduction *r, const char *data, char *out)
{
    flex_acc acc;
    double shift = 0.0;
    uint32_t first = flex_reduce_first(&r->how);
    if (first != FLEX_N_REDUCE) {
        row_fold(r, data, first, 0.0, &acc);
        if (!flex_acc_shift(&r->how, r->n_red, &acc, &shift)) {
            flex_acc_finish(&r->how, r->n_red, &acc, out);
            return;
        }
    }
    row_fold(r, data, r->how.kind, shift, &acc);
    flex_acc_finish(&r->how, r->n_red, &acc, out);
}

static void rows_task(void *ctx, uint32_t task)
{
    const reduction *r = ctx;
    int64_t lo = task * r->per_task;
    int64_t hi = r->n_out - lo < r->per_task ? r->n_out : lo + r->per_task;
    int64_t index[BURN_MAX_RANK] = {0};
    const int64_t *strides[1] = {r->kept_strides};
    int64_t offset = flex_offset_at(r->kept_rank, r->kept_dims, r->kept_strides, lo);
    int64_t rest = lo;
    for (uint32_t axis = r->kept_rank; axis-- > 0;) {
        index[axis] = rest % r->kept_dims[axis];
        rest /= r->kept_dims[axis];
    }
    const int64_t out_size = (int64_t)flex_size(r->how.out_dtype);
    for (int64_t o = lo; o < hi; o++) {
        const char *row = r->data + offset * (int64_t)r->size;
        flex_fetch((const void *)((uintptr_t)row + r->fetch), r->fetch);
        row_whole(r, row, r->out + o * out_size);
        (void)flex_step(r->kept_rank, r->kept_dims, index, 1, strides, &offset);
    }
}

/* One part of one row, for a few long rows. */
typedef struct part_job {
    const reduction *r;
    uint32_t kind;
    const double *shifts;
    int64_t first; /* of all parts of all rows; part_acc[0] is its */
    int64_t n_parts;
    int64_t per_task;
} part_job;

static void one_part(const part_job *job, int64_t part)
{
    const reduction *r = job->r;
    int64_t o = part / r->parts;
    int64_t at = part % r->parts * PART;
    int64_t end = r->n_red - at < PART ? r->n_red : at + PART;
    int64_t offset = flex_offset_at(r->kept_rank, r->kept_dims, r->kept_strides, o);
    flex_acc acc; /* neighbours in part_acc share lines, which another thread may write */
    flex_acc_start(&acc, job->kind, job->shifts[o]);
    flex_fold_fn fold = fold_of(r, job->kind);
    fold_range(r, r->data + offset * (int64_t)r->size, at, end, fold, &acc);
    r->part_acc[part - job->first] = acc;
}

static void part_task(void *ctx, uint32_t task)
{
    const part_job *job = ctx;
    int64_t first = task * job->per_task;
    int64_t left = job->n_parts - first;
    int64_t n = left < job->per_task ? left : job->per_task;
    for (int64_t i = 0; i < n; i++) {
        one_part(job, job->first + first + i);
    }
}

/* Parts are folded by as many at a time as there is room for, and merged in their order. */
static void fold_parts(const reduction *r, uint32_t kind, const double *shifts, flex_acc *accs)
{
    int64_t all = r->n_out * r->parts;
    for (int64_t o = 0; o < r->n_out; o++) {
        flex_acc_start(&accs[o], kind, shifts[o]);
    }
    for (int64_t first = 0; first < all; first += MAX_PARTS) {
        int64_t n = all - first < MAX_PARTS ? all - first : MAX_PARTS;
        part_job job = {r, kind, shifts, first, n, (int64_t)flex_even_grain((uint64_t)n, 1, 1)};
        flex_parallel((uint32_t)((n + job.per_task - 1) / job.per_task), part_task, &job);
        for (int64_t k = 0; k < n; k++) {
            flex_acc_merge(&r->how, kind, &accs[(first + k) / r->parts], &r->part_acc[k]);
        }
    }
}

/* The same sums as row_whole makes, with the parts of all rows as tasks. */
static void rows_in_parts(reduction *r)
{
    flex_acc part_acc[MAX_PARTS];
    flex_acc accs[MAX_ROWS];
    double shifts[MAX_ROWS] = {0};
    r->part_acc = part_acc;
    if (r->how.result == FLEX_RESULT_VAR) {
        fold_parts(r, FLEX_R_MEAN, shifts, accs);
        for (int64_t o = 0; o < r->n_out; o++) {
            shifts[o] = accs[o].f / (double)r->n_red;
        }
    } else if (r->how.result == FLEX_RESULT_LOGSUM) {
        fold_parts(r, FLEX_R_MAX, shifts, accs);
        for (int64_t o = 0; o < r->n_out; o++) {
            shifts[o] = accs[o].is_nan ? (double)NAN : accs[o].f;
        }
    }
    fold_parts(r, r->how.kind, shifts, accs);
    const int64_t out_size = (int64_t)flex_size(r->how.out_dtype);
    for (int64_t o = 0; o < r->n_out; o++) {
        flex_acc_finish(&r->how, r->n_red, &accs[o], r->out + o * out_size);
    }
}

/*
 * Short rows that follow each other in memory: while one ends, the CPU does not foresee the next,
 * which no cache holds. Of those below LEAST_ROW it does, and some folds ask by themselves.
 */
static uint64_t bytes_ahead(const reduction *r)
{
    enum { LEAST_ROW = 1536, SHORT_ROW = 8192 };
    uint64_t row = (uint64_t)r->n_red * r->size;
    int asks = fold_of(r, r->how.kind) != flex_fold_of(r->how.dtype, r->how.kind);
    int follow = r->dense && r->kept_rank == 1 && r->kept_strides[0] == r->n_red;
    int is_short = row >= LEAST_ROW && row <= SHORT_ROW;
    int pays = follow && is_short && !asks && flex_stream_pays(row * (uint64_t)r->n_out);
    return pays ? row : 0;
}

static void run(reduction *r)
{
    if (r->n_out == 0) {
        return;
    }
    r->ahead = r->dense && (uint64_t)r->n_out * (uint64_t)r->n_red * r->size > NEAR;
    r->parts = (r->n_red + PART - 1) / PART;
    if (r->parts > 1 && r->n_out <= MAX_ROWS) {
        rows_in_parts(r);
        return;
    }
    r->fetch = bytes_ahead(r);
    int64_t work = r->n_red > 0 ? r->n_red : 1;
    r->per_task = (FLEX_GRAIN + work - 1) / work;
    while ((r->n_out - 1) / r->per_task >= (int64_t)UINT32_MAX) {
        r->per_task *= 2;
    }
    flex_parallel((uint32_t)((r->n_out + r->per_task - 1) / r->per_task), rows_task, r);
}

/* Appends an axis, merging it with the one before when both are one run. */
static void add_axis(uint32_t *rank, int64_t *dims, int64_t *strides, int64_t dim, int64_t stride)
{
    uint32_t k = *rank;
    if (dim == 1) {
        return;
    }
    /* Views of huge dims may overflow here, and are no run then. */
    int64_t run = 0;
    int64_t both = 0;
    if (k > 0 && !__builtin_mul_overflow(dim, stride, &run) && strides[k - 1] == run &&
        !__builtin_mul_overflow(dims[k - 1], dim, &both)) {
        dims[k - 1] = both;
        strides[k - 1] = stride;
        return;
    }
    dims[k] = dim;
    strides[k] = stride;
    *rank = k + 1;
}

/* An axis that is in `mask` is reduced. */
static void describe(reduction *r, const burn_call *call, uint32_t mask)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    memset(r, 0, sizeof(*r));
    r->data = x->data;
    r->size = flex_size(x->dtype);
    r->how.dtype = x->dtype;
    r->how.out_dtype = z->dtype;
    r->out = z->data;
    uint64_t n_out = 1; /* unsigned: see flex_product */
    uint64_t n_red = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        if ((mask >> i & 1u) != 0) {
            n_red *= (uint64_t)x->dims[i];
            add_axis(&r->red_rank, r->red_dims, r->red_strides, x->dims[i], x->strides[i]);
        } else {
            n_out *= (uint64_t)x->dims[i];
            add_axis(&r->kept_rank, r->kept_dims, r->kept_strides, x->dims[i], x->strides[i]);
        }
    }
    r->n_out = (int64_t)n_out;
    r->n_red = (int64_t)n_red;
    r->dense = r->red_rank == 0 || (r->red_rank == 1 && r->red_strides[0] == 1);
    if (x->dtype == BURN_F16) {
        r->convert = flex_isa_kernels->half_to_float;
    } else if (x->dtype == BURN_BF16) {
        r->convert = flex_isa_kernels->bfloat_to_float;
    }
}

static uint32_t axes_mask(const burn_attrs_axes *a, uint32_t rank)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < a->n_axes && i < BURN_MAX_RANK; i++) {
        mask |= 1u << a->axes[i];
    }
    return a->n_axes == 0 ? (1u << rank) - 1u : mask;
}

/* Neighbouring outputs are neighbours in memory, and rows are not: by columns. */
static int by_columns(const reduction *r, uint32_t kind)
{
    flex_columns c;
    if (r->how.dtype != BURN_F32 || r->how.out_dtype != BURN_F32 || r->kept_rank == 0 ||
        r->red_rank == 0 || r->dense || r->n_out == 0 || r->n_red == 0) {
        return 0;
    }
    uint32_t last = r->kept_rank - 1;
    if (r->kept_strides[last] != 1 || r->kept_dims[last] < 8) {
        return 0;
    }
    memset(&c, 0, sizeof(c));
    c.kind = kind;
    c.x = (const float *)(const void *)r->data;
    c.out = (float *)(void *)r->out;
    c.columns = r->kept_dims[last];
    c.outer_rank = last;
    memcpy(c.outer_dims, r->kept_dims, sizeof(c.outer_dims));
    memcpy(c.outer_strides, r->kept_strides, sizeof(c.outer_strides));
    c.red_rank = r->red_rank;
    memcpy(c.red_dims, r->red_dims, sizeof(c.red_dims));
    memcpy(c.red_strides, r->red_strides, sizeof(c.red_strides));
    c.n_red = r->n_red;
    c.correction = r->how.correction;
    return flex_reduce_columns(&c);
}

static int32_t nothing_to_choose(const burn_call *call, const char *name)
{
    return flex_fail(call->err, BURN_E_SHAPE, "%s: reduces an axis of length 0", name);
}

static int32_t reduce(const burn_call *call, uint32_t mask, uint32_t kind, enum flex_result result,
                      double correction, const char *name)
{
    reduction r;
    describe(&r, call, mask);
    r.how.kind = (uint8_t)kind;
    r.how.result = (uint8_t)result;
    r.how.correction = correction;
    int needs_one = kind == FLEX_R_MAX || kind == FLEX_R_MIN || kind == FLEX_R_ARGMAX ||
                    kind == FLEX_R_ARGMIN || (kind == FLEX_R_MEAN && r.how.dtype < BURN_F16);
    if (r.n_red == 0 && needs_one) {
        return nothing_to_choose(call, name);
    }
    if (!by_columns(&r, kind)) {
        run(&r);
    }
    return BURN_OK;
}

static int32_t reduce_axes(const burn_call *call, uint32_t kind, enum flex_result result,
                           const char *name)
{
    const burn_attrs_axes *a = call->attrs;
    double correction = result == FLEX_RESULT_VAR ? (double)a->correction : 0.0;
    return reduce(call, axes_mask(a, flex_in(call, 0)->rank), kind, result, correction, name);
}

#define LAUNCH(NAME, name, kind, result, slots)                                                    \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return reduce_axes(call, kind, result, #name);                                             \
    }
FLEX_FOREACH_REDUCTION(LAUNCH)
#undef LAUNCH

static int32_t launch_argmax(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    return reduce(call, 1u << a->axis, FLEX_R_ARGMAX, FLEX_RESULT_AT, 0.0, "argmax");
}

static int32_t launch_argmin(const burn_call *call)
{
    const burn_attrs_axis *a = call->attrs;
    return reduce(call, 1u << a->axis, FLEX_R_ARGMIN, FLEX_RESULT_AT, 0.0, "argmin");
}

/* clang-format off */
#define SLOTS(name, set, out, like) \
    static const burn_slot slots_##name[] = {FLEX_SLOT(set, BURN_LAYOUT_ANY, 0, 0), \
                                             FLEX_SLOT(out, FLEX_LAYOUT_OUT, like, 0)};
SLOTS(same, BURN_SET_ANY, BURN_SET_ANY, 1)
SLOTS(float, BURN_SET_FLOAT, BURN_SET_FLOAT, 1)
SLOTS(truth, BURN_SET_ANY, BURN_BIT(BOOL), 0)
SLOTS(at, BURN_SET_ANY, BURN_BIT(I64), 0)

/* Those of reduce_columns.h, which fused programs take a row at a time. */
#define COLUMNS(kind) ((kind) == FLEX_R_SUM || (kind) == FLEX_R_MAX || (kind) == FLEX_R_MIN || \
                       (kind) == FLEX_R_MEAN ? BURN_ROW_COLUMNS : 0)
#define ROW(NAME, name, kind, result, slots) \
    FLEX_ROW(BURN_OP_##NAME, slots_##slots, COLUMNS(kind), 0, "flex." #name, launch_##name),
const burn_row flex_rows_reduce[] = {
    FLEX_FOREACH_REDUCTION(ROW)
    FLEX_ROW(BURN_OP_ARGMAX, slots_at, 0, 0, "flex.argmax", launch_argmax),
    FLEX_ROW(BURN_OP_ARGMIN, slots_at, 0, 0, "flex.argmin", launch_argmin),
    FLEX_ROW(BURN_OP_CUMSUM, flex_slots_cumsum, 0, 0, "flex.cumsum", flex_launch_cumsum),
};
/* clang-format on */
const uint32_t flex_rows_reduce_count = FLEX_COUNT(flex_rows_reduce);
