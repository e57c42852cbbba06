/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise.c - rows and launch functions of the elementwise ops.
 *
 * Calls arrive broadcast and coalesced. Small dense ones go straight to their loop; the rest
 * becomes a job (tiles.h). Loops are in the tables of kernels.h. Each op has a launch function of
 * one line, since a call does not name its op. What a fused program finds by op id (pointwise.h) is
 * made from the same lists. To add an op: FOREACH list, function in the templates, row.
 */
#include "pointwise.h"

#include "rows.h"
#include "tiles.h"

#include <inttypes.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

/* f16 and bf16 need conversion, so they never take a short cut. */
ALWAYS int is_half(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16;
}

/* The job's loop behind one indirection, since function pointers do not fit a void pointer. */
static uint64_t unary_loop(const flex_job *job, void *out, const void *const *in, uint64_t n,
                           uint32_t mode)
{
    flex_unary_fn fn = *(const flex_unary_fn *)flex_job_fn(job, mode);
    return fn(out, in[0], n);
}

static uint64_t binary_loop(const flex_job *job, void *out, const void *const *in, uint64_t n,
                            uint32_t mode)
{
    flex_binary_fn fn = *(const flex_binary_fn *)flex_job_fn(job, mode);
    return fn(out, in[0], in[1], n, mode & ~(uint32_t)FLEX_MODE_PAST);
}

static uint64_t where_loop(const flex_job *job, void *out, const void *const *in, uint64_t n,
                           uint32_t mode)
{
    flex_where_fn fn = *(const flex_where_fn *)job->fn;
    uint32_t where_mode = ((mode & 1u) != 0 ? FLEX_MODE_COND_SCALAR : 0u) | mode >> 1;
    fn(out, in[0], in[1], in[2], n, where_mode);
    return n;
}

/* One value for all elements: a loop that takes no scalar sees it as a stride of 0. */
static const int64_t no_strides[BURN_MAX_RANK] = {0};

static void spread(flex_job *job, uint32_t i)
{
    if (job->src[i].scalar && job->n > 1) {
        job->src[i].scalar = 0;
        job->src[i].strides = no_strides;
        job->all_dense = 0;
    }
}

static int32_t missing(const burn_call *call, const char *op, uint8_t dtype)
{
    return flex_fail(call->err, BURN_E_UNSUPPORTED, "%s: no CPU kernel for %s", op,
                     flex_dtype_name(dtype));
}

static int32_t unary_job(const burn_call *call, uint32_t op, const char *name, uint64_t grain)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    const flex_unary_fn *fn = &flex_pointwise[x->dtype]->unary[op];
    if (*fn == NULL) {
        return missing(call, name, x->dtype);
    }
    flex_job job;
    flex_job_start(&job, z, 1);
    flex_job_source(&job, 0, x, 1);
    spread(&job, 0);
    job.loop = unary_loop;
    job.fn = fn;
    const flex_unary_fn *past = &flex_pointwise[x->dtype]->unary_past[op];
    job.past_fn = *past != NULL ? past : NULL;
    job.grain = grain;
    (void)flex_job_run(&job);
    return BURN_OK;
}

ALWAYS int32_t launch_unary(const burn_call *call, uint32_t op, const char *name, uint64_t grain)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *z = flex_out(call, 0);
    if (x->layout == BURN_LAYOUT_CONTIGUOUS && !is_half(x->dtype)) {
        uint64_t n = (uint64_t)flex_numel(z);
        flex_unary_fn fn = flex_pointwise[x->dtype]->unary[op];
        if (n <= grain && fn != NULL) {
            (void)fn(z->data, x->data, n);
            return BURN_OK;
        }
    }
    return unary_job(call, op, name, grain);
}

static int64_t value_at(const burn_call *call, uint32_t i, uint64_t position)
{
    const burn_operand *x = flex_in(call, i);
    const burn_operand *z = flex_out(call, 0);
    int64_t offset = 0;
    if (x->kind != BURN_IMMEDIATE && x->layout != BURN_LAYOUT_SCALAR) {
        offset = flex_offset_at(z->rank, z->dims, x->strides, (int64_t)position);
    }
    const char *data = x->data;
    return flex_read_i64(data + offset * (int64_t)flex_size(x->dtype), x->dtype);
}

/* Integer division, remainders and powers: what stopped the loop. */
static int32_t no_answer(const burn_call *call, const char *name, uint64_t position)
{
    int64_t y = value_at(call, 1, position);
    if (y != 0) {
        return flex_fail(call->err, BURN_E_DATA,
                         "%s: element %" PRIu64 " has the negative exponent %" PRId64
                         "; cast to a float dtype first",
                         name, position, y);
    }
    return flex_fail(call->err, BURN_E_DATA,
                     "%s: element %" PRIu64 " divides by zero (the value there is 0)"
                     "; mask the zeros or cast to a float dtype",
                     name, position);
}

static int32_t binary_job(const burn_call *call, uint32_t op, const char *name, uint64_t grain)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    const flex_binary_fn *fn = &flex_pointwise[x->dtype]->binary[op];
    if (*fn == NULL) {
        return missing(call, name, x->dtype);
    }
    flex_job job;
    flex_job_start(&job, z, 1);
    flex_job_source(&job, 0, x, 1);
    flex_job_source(&job, 1, y, 1);
    if (job.src[0].scalar && job.src[1].scalar) {
        spread(&job, 0);
    }
    job.loop = binary_loop;
    job.may_stop = x->dtype < BURN_F16; /* integer division */
    job.fn = fn;
    const flex_binary_fn *past = &flex_pointwise[x->dtype]->binary_past[op];
    job.past_fn = *past != NULL ? past : NULL;
    job.grain = grain;
    uint64_t done = flex_job_run(&job);
    return done == job.n ? BURN_OK : no_answer(call, name, done);
}

ALWAYS int32_t launch_binary(const burn_call *call, uint32_t op, const char *name, uint64_t grain)
{
    const burn_operand *x = flex_in(call, 0);
    const burn_operand *y = flex_in(call, 1);
    const burn_operand *z = flex_out(call, 0);
    const uint32_t x_layout = x->layout;
    const uint32_t y_layout = y->layout;
    uint32_t mode = FLEX_MODE_DENSE;
    int direct = x_layout == BURN_LAYOUT_CONTIGUOUS && y_layout == BURN_LAYOUT_CONTIGUOUS;
    if (x_layout == BURN_LAYOUT_CONTIGUOUS && y_layout == BURN_LAYOUT_SCALAR) {
        mode = FLEX_MODE_Y_SCALAR;
        direct = 1;
    } else if (x_layout == BURN_LAYOUT_SCALAR && y_layout == BURN_LAYOUT_CONTIGUOUS) {
        mode = FLEX_MODE_X_SCALAR;
        direct = 1;
    }
    if (direct && !is_half(x->dtype)) {
        uint64_t n = (uint64_t)flex_numel(z);
        flex_binary_fn fn = flex_pointwise[x->dtype]->binary[op];
        if (n <= grain && fn != NULL) {
            uint64_t done = fn(z->data, x->data, y->data, n, mode);
            return done == n ? BURN_OK : no_answer(call, name, done);
        }
    }
    return binary_job(call, op, name, grain);
}

static int32_t launch_gelu(const burn_call *call)
{
    const burn_attrs_gelu *a = call->attrs;
    uint32_t op = a->tanh_form != 0 ? FLEX_U_GELU_TANH : FLEX_U_GELU;
    return launch_unary(call, op, "gelu", 8192);
}

static int32_t launch_gelu_grad(const burn_call *call)
{
    const burn_attrs_gelu *a = call->attrs;
    uint32_t op = a->tanh_form != 0 ? FLEX_B_GELU_TANH_GRAD : FLEX_B_GELU_GRAD;
    return launch_binary(call, op, "gelu_grad", 8192);
}

static int32_t launch_relu_grad(const burn_call *call)
{
    return launch_binary(call, FLEX_B_RELU_GRAD, "relu_grad", FLEX_GRAIN);
}

static int32_t launch_where(const burn_call *call)
{
    const burn_operand *z = flex_out(call, 0);
    uint32_t size = flex_size(z->dtype);
    uint32_t log2 = size == 1 ? 0u : size == 2 ? 1u : size == 4 ? 2u : 3u;
    flex_job job;
    flex_job_start(&job, z, 0);
    for (uint32_t i = 0; i < 3; i++) {
        flex_job_source(&job, i, flex_in(call, i), 0);
    }
    job.loop = where_loop;
    job.fn = &flex_where_by_size[log2];
    (void)flex_job_run(&job);
    return BURN_OK;
}

/* Bounds of a clamp as values of the loop's type: f32 for halves. */
typedef struct clamp_bounds {
    const flex_pointwise_table *table;
    _Alignas(16) char lo[16];
    _Alignas(16) char hi[16];
    int has_lo;
    int has_hi;
    uint32_t size;
} clamp_bounds;

static uint64_t clamp_loop(const flex_job *job, void *out, const void *const *in, uint64_t n,
                           uint32_t mode)
{
    const clamp_bounds *b = job->fn;
    const void *from = in[0];
    (void)mode;
    if (b->has_lo) {
        b->table->binary[FLEX_B_MAXIMUM](out, from, b->lo, n, FLEX_MODE_Y_SCALAR);
        from = out;
    }
    if (b->has_hi) {
        b->table->binary[FLEX_B_MINIMUM](out, from, b->hi, n, FLEX_MODE_Y_SCALAR);
        from = out;
    }
    if (from != out) {
        memcpy(out, from, n * b->size);
    }
    return n;
}

static int read_bound(const burn_operand *bound, char out[16])
{
    if (flex_absent(bound)) {
        return 0;
    }
    if (is_half(bound->dtype)) {
        float value = (float)flex_read_f64(bound->data, bound->dtype);
        memcpy(out, &value, sizeof(value));
    } else {
        memcpy(out, bound->data, flex_size(bound->dtype));
    }
    return 1;
}

static int32_t launch_clamp(const burn_call *call)
{
    const burn_operand *x = flex_in(call, 0);
    clamp_bounds bounds = {.table = flex_pointwise[x->dtype]};
    bounds.has_lo = read_bound(flex_in(call, 1), bounds.lo);
    bounds.has_hi = read_bound(flex_in(call, 2), bounds.hi);
    bounds.size = is_half(x->dtype) ? (uint32_t)sizeof(float) : flex_size(x->dtype);
    flex_job job;
    flex_job_start(&job, flex_out(call, 0), 1);
    flex_job_source(&job, 0, x, 1);
    spread(&job, 0);
    job.loop = clamp_loop;
    job.fn = &bounds;
    (void)flex_job_run(&job);
    return BURN_OK;
}

/* X(NAME, name, dtypes, in-place mask, elements per task): results of the operand's dtype. */
#define FOREACH_SAME(X)                                                                            \
    X(NEG, neg, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                                   \
    X(ABS, abs, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                                   \
    X(SIGN, sign, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                                 \
    X(EXP, exp, BURN_SET_FLOAT, 1, 16384)                                                          \
    X(EXPM1, expm1, BURN_SET_FLOAT, 1, 16384)                                                      \
    X(LOG, log, BURN_SET_FLOAT, 1, 16384)                                                          \
    X(LOG1P, log1p, BURN_SET_FLOAT, 1, 8192)                                                       \
    X(SQRT, sqrt, BURN_SET_FLOAT, 1, FLEX_GRAIN)                                                   \
    X(RSQRT, rsqrt, BURN_SET_FLOAT, 1, FLEX_GRAIN)                                                 \
    X(RECIP, recip, BURN_SET_FLOAT, 1, FLEX_GRAIN)                                                 \
    X(SIN, sin, BURN_SET_FLOAT, 1, 8192)                                                           \
    X(COS, cos, BURN_SET_FLOAT, 1, 8192)                                                           \
    X(TAN, tan, BURN_SET_FLOAT, 1, 8192)                                                           \
    X(ASIN, asin, BURN_SET_FLOAT, 1, 8192)                                                         \
    X(ACOS, acos, BURN_SET_FLOAT, 1, 8192)                                                         \
    X(ATAN, atan, BURN_SET_FLOAT, 1, 8192)                                                         \
    X(SINH, sinh, BURN_SET_FLOAT, 1, 8192)                                                         \
    X(COSH, cosh, BURN_SET_FLOAT, 1, 8192)                                                         \
    X(TANH, tanh, BURN_SET_FLOAT, 1, 16384)                                                        \
    X(ERF, erf, BURN_SET_FLOAT, 1, 16384)                                                          \
    X(SIGMOID, sigmoid, BURN_SET_FLOAT, 1, 16384)                                                  \
    X(FLOOR, floor, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                               \
    X(CEIL, ceil, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                                 \
    X(ROUND, round, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                               \
    X(TRUNC, trunc, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                               \
    X(RELU, relu, BURN_SET_NUMERIC, 1, FLEX_GRAIN)                                                 \
    X(BIT_NOT, bit_not, BURN_SET_INT | BURN_BIT(BOOL), 1, FLEX_GRAIN)                              \
    X(SILU, silu, BURN_SET_FLOAT, 1, 16384)                                                        \
    X(SOFTPLUS, softplus, BURN_SET_FLOAT, 1, 8192)                                                 \
    X(LOG_SIGMOID, log_sigmoid, BURN_SET_FLOAT, 1, 8192)

/* Results are bool. */
#define FOREACH_TEST(X)                                                                            \
    X(LOGICAL_NOT, logical_not, BURN_SET_ANY, 0, FLEX_GRAIN)                                       \
    X(IS_NAN, is_nan, BURN_SET_NUMERIC, 0, FLEX_GRAIN)                                             \
    X(IS_INF, is_inf, BURN_SET_NUMERIC, 0, FLEX_GRAIN)                                             \
    X(IS_FINITE, is_finite, BURN_SET_NUMERIC, 0, FLEX_GRAIN)

#define FOREACH_ARITHMETIC(X)                                                                      \
    X(ADD, add, BURN_SET_NUMERIC, 3, FLEX_GRAIN)                                                   \
    X(SUB, sub, BURN_SET_NUMERIC, 3, FLEX_GRAIN)                                                   \
    X(MUL, mul, BURN_SET_NUMERIC, 3, FLEX_GRAIN)                                                   \
    X(MAXIMUM, maximum, BURN_SET_ANY, 3, FLEX_GRAIN)                                               \
    X(MINIMUM, minimum, BURN_SET_ANY, 3, FLEX_GRAIN)                                               \
    X(ATAN2, atan2, BURN_SET_FLOAT, 3, 8192)                                                       \
    X(BIT_AND, bit_and, BURN_SET_INT | BURN_BIT(BOOL), 3, FLEX_GRAIN)                              \
    X(BIT_OR, bit_or, BURN_SET_INT | BURN_BIT(BOOL), 3, FLEX_GRAIN)                                \
    X(BIT_XOR, bit_xor, BURN_SET_INT | BURN_BIT(BOOL), 3, FLEX_GRAIN)                              \
    X(SHIFT_LEFT, shift_left, BURN_SET_INT, 3, FLEX_GRAIN)                                         \
    X(SHIFT_RIGHT, shift_right, BURN_SET_INT, 3, FLEX_GRAIN)

/* May fail on integers. */
#define FOREACH_PARTIAL(X)                                                                         \
    X(DIV, div, BURN_SET_NUMERIC, 3, FLEX_GRAIN)                                                   \
    X(REMAINDER, remainder, BURN_SET_NUMERIC, 3, 8192)                                             \
    X(FMOD, fmod, BURN_SET_NUMERIC, 3, 8192)                                                       \
    X(POW, pow, BURN_SET_NUMERIC, 3, 8192)

#define FOREACH_COMPARE(X)                                                                         \
    X(LOGICAL_AND, logical_and, BURN_SET_ANY, 0, FLEX_GRAIN)                                       \
    X(LOGICAL_OR, logical_or, BURN_SET_ANY, 0, FLEX_GRAIN)                                         \
    X(LOGICAL_XOR, logical_xor, BURN_SET_ANY, 0, FLEX_GRAIN)                                       \
    X(EQUAL, equal, BURN_SET_ANY, 0, FLEX_GRAIN)                                                   \
    X(NOT_EQUAL, not_equal, BURN_SET_ANY, 0, FLEX_GRAIN)                                           \
    X(LESS, less, BURN_SET_ANY, 0, FLEX_GRAIN)                                                     \
    X(LESS_EQUAL, less_equal, BURN_SET_ANY, 0, FLEX_GRAIN)                                         \
    X(GREATER, greater, BURN_SET_ANY, 0, FLEX_GRAIN)                                               \
    X(GREATER_EQUAL, greater_equal, BURN_SET_ANY, 0, FLEX_GRAIN)

#define LAUNCH_UNARY(NAME, name, set, in_place, grain)                                             \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return launch_unary(call, FLEX_U_##NAME, #name, grain);                                    \
    }
#define LAUNCH_BINARY(NAME, name, set, in_place, grain)                                            \
    static int32_t launch_##name(const burn_call *call)                                            \
    {                                                                                              \
        return launch_binary(call, FLEX_B_##NAME, #name, grain);                                   \
    }
FOREACH_SAME(LAUNCH_UNARY)
FOREACH_TEST(LAUNCH_UNARY)
FOREACH_ARITHMETIC(LAUNCH_BINARY)
FOREACH_PARTIAL(LAUNCH_BINARY)
FOREACH_COMPARE(LAUNCH_BINARY)

/* Slots. */
/* clang-format off */
#define IN(set, like, what) FLEX_SLOT(set, BURN_LAYOUT_ANY, like, what)
#define OUT(set, like) FLEX_SLOT(set, FLEX_LAYOUT_OUT, like, 0)
#define SLOTS_SAME(NAME, name, set, in_place, grain) \
    static const burn_slot slots_##name[] = {IN(set, 0, 0), OUT(set, 1)};
#define SLOTS_TEST(NAME, name, set, in_place, grain) \
    static const burn_slot slots_##name[] = {IN(set, 0, 0), OUT(BURN_BIT(BOOL), 0)};
#define SLOTS_ARITHMETIC(NAME, name, set, in_place, grain) \
    static const burn_slot slots_##name[] = {IN(set, 0, FLEX_IMM), IN(set, 1, FLEX_IMM), \
                                             OUT(set, 1)};
#define SLOTS_COMPARE(NAME, name, set, in_place, grain) \
    static const burn_slot slots_##name[] = {IN(set, 0, FLEX_IMM), IN(set, 1, FLEX_IMM), \
                                             OUT(BURN_BIT(BOOL), 0)};
FOREACH_SAME(SLOTS_SAME)
FOREACH_TEST(SLOTS_TEST)
FOREACH_ARITHMETIC(SLOTS_ARITHMETIC)
FOREACH_PARTIAL(SLOTS_ARITHMETIC)
FOREACH_COMPARE(SLOTS_COMPARE)

static const burn_slot slots_gelu[] = {IN(BURN_SET_FLOAT, 0, 0), OUT(BURN_SET_FLOAT, 1)};
static const burn_slot slots_gelu_grad[] = {
    IN(BURN_SET_FLOAT, 0, 0), IN(BURN_SET_FLOAT, 1, 0), OUT(BURN_SET_FLOAT, 1)};
static const burn_slot slots_relu_grad[] = {
    IN(BURN_SET_FLOAT, 0, 0), IN(BURN_SET_FLOAT, 1, 0), OUT(BURN_SET_FLOAT, 1)};
static const burn_slot slots_where[] = {
    IN(BURN_BIT(BOOL), 0, 0), IN(BURN_SET_ANY, 0, FLEX_IMM), IN(BURN_SET_ANY, 2, FLEX_IMM),
    OUT(BURN_SET_ANY, 2)};
static const burn_slot slots_clamp[] = {
    IN(BURN_SET_NUMERIC, 0, 0), IN(BURN_SET_NUMERIC, 1, FLEX_IMM | FLEX_OPT),
    IN(BURN_SET_NUMERIC, 1, FLEX_IMM | FLEX_OPT), OUT(BURN_SET_NUMERIC, 1)};

#define ROW(NAME, name, set, in_place, grain) \
    FLEX_ROW(BURN_OP_##NAME, slots_##name, 0, in_place, "flex." #name, launch_##name),
#define ROW_FAULTS(NAME, name, set, in_place, grain) \
    FLEX_ROW(BURN_OP_##NAME, slots_##name, BURN_ROW_FAULTS, in_place, "flex." #name, \
             launch_##name),
const burn_row flex_rows_pointwise[] = {
    FOREACH_SAME(ROW)
    FOREACH_TEST(ROW)
    FOREACH_ARITHMETIC(ROW)
    FOREACH_PARTIAL(ROW_FAULTS)
    FOREACH_COMPARE(ROW)
    FLEX_ROW(BURN_OP_GELU, slots_gelu, 0, 1, "flex.gelu", launch_gelu),
    FLEX_ROW(BURN_OP_GELU_GRAD, slots_gelu_grad, 0, 3, "flex.gelu_grad", launch_gelu_grad),
    FLEX_ROW(BURN_OP_RELU_GRAD, slots_relu_grad, 0, 3, "flex.relu_grad", launch_relu_grad),
    FLEX_ROW(BURN_OP_WHERE, slots_where, 0, 6, "flex.where", launch_where),
    FLEX_ROW(BURN_OP_CLAMP, slots_clamp, 0, 1, "flex.clamp", launch_clamp),
};
/* clang-format on */
const uint32_t flex_rows_pointwise_count = FLEX_COUNT(flex_rows_pointwise);

#define MAP_UNARY(NAME, name, set, in_place, grain)                                                \
    [BURN_OP_##NAME] = {FLEX_MAP_UNARY, FLEX_U_##NAME, 0, 0, grain},
#define MAP_BINARY(NAME, name, set, in_place, grain)                                               \
    [BURN_OP_##NAME] = {FLEX_MAP_BINARY, FLEX_B_##NAME, 0, 0, grain},
#define MAP_PARTIAL(NAME, name, set, in_place, grain)                                              \
    [BURN_OP_##NAME] = {FLEX_MAP_BINARY, FLEX_B_##NAME, 0, 1, grain},
static const flex_map maps[] = {
    FOREACH_SAME(MAP_UNARY)
    FOREACH_TEST(MAP_UNARY)
    FOREACH_ARITHMETIC(MAP_BINARY)
    FOREACH_PARTIAL(MAP_PARTIAL)
    FOREACH_COMPARE(MAP_BINARY)
    [BURN_OP_GELU] = {FLEX_MAP_UNARY, FLEX_U_GELU, 1, 0, 8192},
    [BURN_OP_GELU_GRAD] = {FLEX_MAP_BINARY, FLEX_B_GELU_GRAD, 1, 0, 8192},
    [BURN_OP_RELU_GRAD] = {FLEX_MAP_BINARY, FLEX_B_RELU_GRAD, 0, 0, FLEX_GRAIN},
    [BURN_OP_WHERE] = {FLEX_MAP_WHERE, 0, 0, 0, FLEX_GRAIN},
    [BURN_OP_CLAMP] = {FLEX_MAP_CLAMP, 0, 0, 0, FLEX_GRAIN},
    [BURN_OP_CAST] = {FLEX_MAP_CAST, 0, 0, 0, FLEX_GRAIN},
    [BURN_OP_COPY] = {FLEX_MAP_COPY, 0, 0, 0, FLEX_GRAIN},
};
_Static_assert(FLEX_U_GELU_TANH == FLEX_U_GELU + 1, "by_form adds 1");
_Static_assert(FLEX_B_GELU_TANH_GRAD == FLEX_B_GELU_GRAD + 1, "by_form adds 1");

const flex_map *flex_map_of(uint64_t op)
{
    return op < FLEX_COUNT(maps) && maps[op].kind != FLEX_MAP_NONE ? &maps[op] : NULL;
}
