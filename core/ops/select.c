/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * select.c - pointwise ops that are neither unary nor binary families: where, clamp, cast, copy,
 * gelu and its gradient, relu's gradient.
 *
 * Each op stands alone: meaning, gradient, decomposition, samples, definition. Casts are the one
 * place where values change class: floats truncate and saturate into integers (NaN gives 0), wider
 * integers wrap into narrower ones, anything but 0 is true.
 */
#include "ops/pointwise.h"

#include <math.h>

#define IMM BURN_ROLE_IMMEDIATE
#define MINIMAL (BURN_OP_MINIMAL | BURN_OP_PRIMITIVE)

static const int64_t d0[] = {0, 4};
static const int64_t d1[] = {1};
static const int64_t d17[] = {17};
static const int64_t d35[] = {3, 5};
static const int64_t d65x3[] = {65, 3};
static const int64_t d129[] = {129};

/* ---- where ----------------------------------------------------------------------------------- */

static int32_t infer_where(const burn_infer *a)
{
    burn_meta both = {0};
    int32_t rc = burni_broadcast("where: x and y", a->in[1], a->in[2], &both, a->err);
    if (rc == BURN_OK) {
        rc = burni_broadcast("where: condition and values", a->in[0], &both, &a->out[0], a->err);
    }
    return rc;
}

static int32_t eval_where(const burn_eval *a)
{
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        uint32_t from = a->in[0].i[w.at[0]] != 0 ? 1 : 2;
        burni_eval_move(&a->out[0], w.k, &a->in[from], w.at[from]);
    }
    return BURN_OK;
}

/* An exact zero goes to the side not taken, also when it holds NaN. */
static int32_t vjp_where(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = a->grad_out[0];
    burn_value *zero = burn_b_num(b, g, 0.0);
    if (a->wanted[1]) {
        a->grad_in[1] = burn_b_where(b, a->in[0], g, zero);
    }
    if (a->wanted[2]) {
        a->grad_in[2] = burn_b_where(b, a->in[0], zero, g);
    }
    return BURN_OK;
}

typedef struct where_row {
    const char *name;
    uint32_t ranks[3];
    int64_t dims[3][3];
    uint8_t immediate; /* bit i: operand i */
    uint8_t fill;
} where_row;

static const where_row where_rows[] = {
    {"one element", {1, 1, 1}, {{1}, {1}, {1}}, 0, BURN_FILL_NORMAL},
    {"odd", {1, 1, 1}, {{129}, {129}, {129}}, 0, BURN_FILL_NORMAL},
    {"rank 0", {0, 0, 0}, {{0}, {0}, {0}}, 0, BURN_FILL_NORMAL},
    {"empty", {2, 2, 2}, {{0, 4}, {0, 4}, {0, 4}}, 0, BURN_FILL_NORMAL},
    {"empty against one", {2, 2, 2}, {{2, 1}, {2, 0}, {2, 0}}, 0, BURN_FILL_NORMAL},
    {"broadcast all", {3, 2, 1}, {{3, 1, 5}, {4, 1}, {1}}, 0, BURN_FILL_NORMAL},
    {"condition per row", {2, 2, 2}, {{5, 1}, {5, 17}, {5, 17}}, 0, BURN_FILL_NORMAL},
    {"immediate y", {2, 2, 0}, {{3, 17}, {3, 17}, {0}}, 4, BURN_FILL_NORMAL},
    {"immediate x", {2, 0, 2}, {{3, 17}, {0}, {3, 17}}, 2, BURN_FILL_NORMAL},
    {"special values", {1, 1, 1}, {{67}, {67}, {67}}, 0, BURN_FILL_SPECIAL},
    {"shapes that do not fit", {1, 1, 1}, {{3}, {3}, {4}}, 0, BURN_FILL_NORMAL},
    {"condition that does not fit", {1, 1, 1}, {{4}, {3}, {3}}, 0, BURN_FILL_NORMAL},
    {"condition that is no bool", {1, 1, 1}, {{3}, {3}, {3}}, 0, BURN_FILL_NORMAL},
};

enum { N_WHERE_ROWS = sizeof(where_rows) / sizeof(where_rows[0]) };

static int32_t samples_where(uint32_t i, burn_sample *s)
{
    if (i >= N_WHERE_ROWS) {
        return BURN_E_END;
    }
    const where_row *row = &where_rows[i];
    burni_sample_begin(s, row->name, 0.0, 64.0);
    burni_sample_tensor(s, 0, BURN_BOOL, BURN_FILL_BOOL, row->ranks[0], row->dims[0]);
    for (uint32_t k = 1; k < 3; k++) {
        if (row->immediate & (1u << k)) {
            burni_sample_immediate(s, k, 0, 2.0);
        } else {
            burni_sample_tensor(s, k, 0, row->fill, row->ranks[k], row->dims[k]);
        }
    }
    if (row->fill == BURN_FILL_SPECIAL) {
        s->flags = BURN_SAMPLE_NO_GRAD;
    }
    if (i == N_WHERE_ROWS - 1) {
        s->in[0].dtype = BURN_F32;
        burni_sample_error(s, BURN_E_DTYPE);
    } else if (i >= N_WHERE_ROWS - 3) {
        burni_sample_error(s, BURN_E_SHAPE);
    }
    return BURN_OK;
}

/* Operand x is free and y follows it; when x is an immediate it takes the dtype of y. */
static const burn_role roles_where[4] = {BURNI_ROLE("condition", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL)),
                                         BURNI_ROLE("x", IMM, BURN_SET_ANY),
                                         BURNI_ROLE_LIKE("y", IMM, 1, BURN_SET_ANY),
                                         BURNI_ROLE_LIKE("z", 0, 1, BURN_SET_ANY)};
static const uint32_t save_where[3] = {0, BURN_SAVE_IN(0), BURN_SAVE_IN(0)};

const burn_op_def burn_op_def_where = {
    BURNI_DEF(WHERE, where),
    .flags = MINIMAL,
    .n_in = 3,
    .n_out = 1,
    .summary = "x where the condition is true, else y",
    .roles = roles_where,
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_WHERE,
    .infer = infer_where,
    .vjp = vjp_where,
    .vjp_saves = save_where,
    .eval = eval_where,
    .samples = samples_where,
};

/* ---- cast ------------------------------------------------------------------------------------ */

static const burn_attr attrs_cast[1] = {
    BURNI_ATTR(burn_attrs_cast, dtype, BURN_ATTR_DTYPE, BURN_ATTR_KEY, "dtype of the result")};

static int32_t infer_cast(const burn_infer *a)
{
    const burn_attrs_cast *t = BURNI_ATTRS(a, burn_attrs_cast);
    if (t == NULL) {
        return burni_no_attrs("cast", a->err);
    }
    if (t->dtype > 255 || burn_dtype_size((uint8_t)t->dtype) == 0) {
        return burni_fail(a->err, BURN_E_DTYPE,
                          "cast: there is no dtype with code %u; use one of BURN_BOOL to BURN_F64",
                          (unsigned)t->dtype);
    }
    a->out[0].dtype = (uint8_t)t->dtype;
    return burni_infer_same(a);
}

/* Between integers the bits pass; the harness wraps them to the dtype. */
static int32_t eval_cast(const burn_eval *a)
{
    const burn_eval_operand *x = &a->in[0];
    burn_eval_operand *y = &a->out[0];
    uint32_t from = burn_dtype_class(x->meta.dtype);
    uint32_t to = burn_dtype_class(y->meta.dtype);
    for (uint64_t k = 0; k < y->n; k++) {
        if (from == BURN_CLASS_FLOAT || to == BURN_CLASS_FLOAT) {
            burni_eval_set(y, k, burni_eval_get(x, k));
        } else if (to == BURN_CLASS_UINT) {
            y->u[k] = (uint64_t)burni_eval_get_int(x, k);
        } else if (to == BURN_CLASS_BOOL) {
            y->i[k] = burni_eval_get_int(x, k) != 0;
        } else {
            y->i[k] = burni_eval_get_int(x, k);
        }
    }
    return BURN_OK;
}

static int32_t vjp_cast(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = burn_b_cast(b, a->grad_out[0], a->in_meta[0].dtype);
    return BURN_OK;
}

static const double beyond[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, 3e9, -3e9, 2.9,
                                -2.9,        -1.0,             300.0,             0.5, -0.0};

static const uint8_t cast_targets[] = {BURN_BOOL, BURN_U8,  BURN_I8,   BURN_U16,
                                       BURN_I16,  BURN_U32, BURN_I32,  BURN_U64,
                                       BURN_I64,  BURN_F16, BURN_BF16, BURN_F32, BURN_F64};

enum { N_CAST_TARGETS = sizeof(cast_targets) / sizeof(cast_targets[0]) };

static void cast_target(burn_sample *s, uint32_t dtype)
{
    burn_attrs_cast t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.dtype = dtype;
    burni_sample_attrs(s, &t, (uint32_t)sizeof(t));
}

/* Per target: ordinary values of every dtype, then floats outside the range. */
static int32_t samples_cast(uint32_t i, burn_sample *s)
{
    static const int64_t eleven[] = {11};
    if (i < N_CAST_TARGETS) {
        burni_sample_begin(s, "to each dtype", 0.0, 64.0);
        burni_sample_tensor(s, 0, 0, BURN_FILL_NORMAL, 2, d65x3);
        cast_target(s, cast_targets[i]);
        /* A gradient through a narrower dtype is rounded to it, so only the widest is compared. */
        s->flags = cast_targets[i] == BURN_F64 ? 0 : BURN_SAMPLE_NO_GRAD;
        return BURN_OK;
    }
    if (i < 2 * N_CAST_TARGETS) {
        burni_sample_begin(s, "out of range", 0.0, 0.0);
        burni_sample_tensor(s, 0, 0, BURN_FILL_VALUES, 1, eleven);
        burni_sample_values(s, 0, 11, beyond);
        cast_target(s, cast_targets[i - N_CAST_TARGETS]);
        s->flags = BURN_SAMPLE_NO_GRAD;
        s->dtypes = BURN_SET_FLOAT;
        return BURN_OK;
    }
    if (i == 2 * N_CAST_TARGETS) {
        burni_sample_begin(s, "integers that wrap", 0.0, 0.0);
        burni_sample_tensor(s, 0, 0, BURN_FILL_SPECIAL, 1, d17);
        cast_target(s, BURN_I8);
        s->flags = BURN_SAMPLE_NO_GRAD;
        s->dtypes = BURN_SET_INT;
        return BURN_OK;
    }
    if (i == 2 * N_CAST_TARGETS + 1) {
        burni_sample_begin(s, "empty", 0.0, 0.0);
        burni_sample_tensor(s, 0, 0, BURN_FILL_NORMAL, 2, d0);
        cast_target(s, BURN_F32);
        return BURN_OK;
    }
    if (i == 2 * N_CAST_TARGETS + 2) {
        burni_sample_begin(s, "no such dtype", 0.0, 0.0);
        burni_sample_tensor(s, 0, BURN_F32, BURN_FILL_NORMAL, 1, d1);
        cast_target(s, 250);
        burni_sample_error(s, BURN_E_DTYPE);
        return BURN_OK;
    }
    return BURN_E_END;
}

static const burn_role roles_cast[2] = {BURNI_ROLE("x", 0, BURN_SET_ANY),
                                        BURNI_ROLE("y", 0, BURN_SET_ANY)};
static const uint32_t save_none[2] = {0, 0};

const burn_op_def burn_op_def_cast = {
    BURNI_DEF(CAST, cast),
    .flags = MINIMAL,
    .n_in = 1,
    .n_out = 1,
    .summary = "x in another dtype; floats truncate and saturate into integers, NaN gives 0",
    .roles = roles_cast,
    .attrs = attrs_cast,
    .n_attrs = 1,
    .attrs_size = (uint32_t)sizeof(burn_attrs_cast),
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_CAST,
    .infer = infer_cast,
    .vjp = vjp_cast,
    .vjp_saves = save_none,
    .eval = eval_cast,
    .samples = samples_cast,
};

/* ---- clamp ----------------------------------------------------------------------------------- */

/* NaN propagates from either side; the upper bound wins when the bounds cross. */
static int32_t eval_clamp(const burn_eval *a)
{
    const burn_eval_operand *x = &a->in[0];
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, x, k);
        for (uint32_t i = 1; i < a->n_in; i++) {
            const burn_eval_operand *bound = &a->in[i];
            burn_eval_operand *y = &a->out[0];
            if (bound->meta.kind == BURN_ABSENT) {
                continue;
            }
            int move;
            if (klass == BURN_CLASS_FLOAT) {
                int beyond_it = i == 1 ? y->f[k] < bound->f[0] : y->f[k] > bound->f[0];
                move = beyond_it || (isnan(bound->f[0]) && !isnan(y->f[k]));
            } else if (klass == BURN_CLASS_UINT) {
                move = i == 1 ? y->u[k] < bound->u[0] : y->u[k] > bound->u[0];
            } else {
                move = i == 1 ? y->i[k] < bound->i[0] : y->i[k] > bound->i[0];
            }
            if (move) {
                burni_eval_move(y, k, bound, 0);
            }
        }
    }
    return BURN_OK;
}

/* 1 at the bounds and between them, 0 beyond */
static int32_t vjp_clamp(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = a->grad_out[0];
    burn_value *zero = burn_b_num(b, g, 0.0);
    if (a->n_in > 1 && a->in_meta[1].kind != BURN_ABSENT) {
        g = burn_b_where(b, burn_b_less(b, a->in[0], a->in[1]), zero, g);
    }
    if (a->n_in > 2 && a->in_meta[2].kind != BURN_ABSENT) {
        g = burn_b_where(b, burn_b_greater(b, a->in[0], a->in[2]), zero, g);
    }
    a->grad_in[0] = g;
    return BURN_OK;
}

static int32_t expand_clamp(const burn_builder *b, const burn_expand *a)
{
    burn_value *y = a->in[0];
    if (a->n_in > 1 && a->in_meta[1].kind != BURN_ABSENT) {
        y = burn_b_maximum(b, y, a->in[1]);
    }
    if (a->n_in > 2 && a->in_meta[2].kind != BURN_ABSENT) {
        y = burn_b_minimum(b, y, a->in[2]);
    }
    a->out[0] = y;
    return BURN_OK;
}

typedef struct clamp_row {
    const char *name;
    const int64_t *dims;
    uint32_t rank;
    uint8_t fill;
    uint8_t bounds; /* bit 0: lower, bit 1: upper */
    double lo;
    double hi;
    uint64_t dtypes;
} clamp_row;

static const clamp_row clamp_rows[] = {
    {"both bounds", d129, 1, BURN_FILL_DISTINCT, 3, 0.0, 3.0, 0},
    {"lower bound", d65x3, 2, BURN_FILL_DISTINCT, 1, 1.0, 0.0, 0},
    {"upper bound", d17, 1, BURN_FILL_DISTINCT, 2, 0.0, 2.0, 0},
    {"no bound", d1, 1, BURN_FILL_DISTINCT, 0, 0.0, 0.0, 0},
    {"rank 0", d1, 0, BURN_FILL_DISTINCT, 3, 0.0, 1.0, 0},
    {"empty", d0, 2, BURN_FILL_DISTINCT, 3, 0.0, 1.0, 0},
    {"bounds that cross", d17, 1, BURN_FILL_DISTINCT, 3, 3.0, 1.0, 0},
    {"special values", d35, 2, BURN_FILL_SPECIAL, 3, 0.0, 1.0, BURN_SET_FLOAT},
    {"bound that is NaN", d35, 2, BURN_FILL_SPECIAL, 1, (double)NAN, 1.0, BURN_SET_FLOAT},
    {"refused dtype", d17, 1, BURN_FILL_BOOL, 1, 0.0, 1.0, 0},
};

enum { N_CLAMP_ROWS = sizeof(clamp_rows) / sizeof(clamp_rows[0]) };

static int32_t samples_clamp(uint32_t i, burn_sample *s)
{
    if (i >= N_CLAMP_ROWS) {
        return BURN_E_END;
    }
    const clamp_row *row = &clamp_rows[i];
    int refused = i == N_CLAMP_ROWS - 1;
    burni_sample_begin(s, row->name, 0.0, 64.0);
    burni_sample_tensor(s, 0, refused ? BURN_BOOL : 0, row->fill, row->rank, row->dims);
    burni_sample_absent(s, 1);
    burni_sample_absent(s, 2);
    if (row->bounds & 1) {
        burni_sample_immediate(s, 1, 0, row->lo);
    }
    if (row->bounds & 2) {
        burni_sample_immediate(s, 2, 0, row->hi);
    }
    s->dtypes = row->dtypes;
    /* Bounds are integers, where DISTINCT puts no element. */
    s->flags = row->fill == BURN_FILL_DISTINCT ? 0 : BURN_SAMPLE_NO_GRAD;
    s->flags |= BURN_SAMPLE_ANY_ZERO; /* a bound of 0 */
    if (refused) {
        s->flags = 0;
        burni_sample_error(s, BURN_E_DTYPE);
    }
    return BURN_OK;
}

#define BOUND (BURN_ROLE_OPTIONAL | BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD)

static const burn_role roles_clamp[4] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                         BURNI_ROLE_LIKE("lo", BOUND, 0, BURN_SET_NUMERIC),
                                         BURNI_ROLE_LIKE("hi", BOUND, 0, BURN_SET_NUMERIC),
                                         BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC)};
static const uint32_t save_clamp[3] = {BURN_SAVE_IN(0) | BURN_SAVE_IN(1) | BURN_SAVE_IN(2), 0, 0};

const burn_op_def burn_op_def_clamp = {
    BURNI_DEF(CLAMP, clamp),
    .n_in = 3,
    .n_out = 1,
    .summary = "x limited to lo .. hi; either bound may be absent",
    .roles = roles_clamp,
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_CLAMP,
    .infer = burni_infer_same,
    .vjp = vjp_clamp,
    .vjp_saves = save_clamp,
    .decompose = expand_clamp,
    .eval = eval_clamp,
    .samples = samples_clamp,
};

/* ---- copy ------------------------------------------------------------------------------------ */

static int32_t eval_copy(const burn_eval *a)
{
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, &a->in[0], k);
    }
    return BURN_OK;
}

static int32_t vjp_copy(const burn_builder *b, const burn_vjp *a)
{
    (void)b;
    a->grad_in[0] = a->grad_out[0];
    return BURN_OK;
}

static const burni_domain domain_copy = {
    .fill = BURN_FILL_NORMAL, .grad_tolerance = 64.0, .special = BURN_SET_ANY};

static int32_t samples_copy(uint32_t i, burn_sample *s)
{
    return burni_samples_unary(i, s, &domain_copy);
}

static const burn_role roles_copy[2] = {BURNI_ROLE("x", 0, BURN_SET_ANY),
                                        BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY)};

const burn_op_def burn_op_def_copy = {
    BURNI_DEF(COPY, copy),
    .flags = MINIMAL,
    .n_in = 1,
    .n_out = 1,
    .summary = "the same values, dense and row-major, in storage of their own",
    .roles = roles_copy,
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_COPY,
    .infer = burni_infer_same,
    .vjp = vjp_copy,
    .vjp_saves = save_none,
    .eval = eval_copy,
    .samples = samples_copy,
};

/* ---- gelu ------------------------------------------------------------------------------------ */

#define SQRT_HALF 0.70710678118654752
#define SQRT_2_OVER_PI 0.79788456080286536
#define INV_SQRT_2PI 0.39894228040143268
#define CUBIC 0.044715
/* Beyond it the bell exp(-x^2 / 2) is 0 in every dtype that x may have; keeps 0 * inf away. */
#define BELL_END 40.0

static const burn_attr attrs_gelu[1] = {
    BURNI_ATTR(burn_attrs_gelu, tanh_form, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1: the tanh form, 0: the erf form")};

static int32_t infer_gelu(const burn_infer *a)
{
    if (BURNI_ATTRS(a, burn_attrs_gelu) == NULL) {
        return burni_no_attrs("gelu", a->err);
    }
    return burni_infer_same(a);
}

static double gelu(double x, uint32_t tanh_form)
{
    if (tanh_form) {
        return 0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * x * (1.0 + CUBIC * x * x)));
    }
    return 0.5 * x * erfc(-x * SQRT_HALF);
}

static double gelu_slope(double x, uint32_t tanh_form)
{
    double near = fmax(-BELL_END, fmin(BELL_END, x));
    if (isnan(x)) {
        return x;
    }
    if (tanh_form) {
        double t = tanh(SQRT_2_OVER_PI * near * (1.0 + CUBIC * near * near));
        double inner = SQRT_2_OVER_PI * (1.0 + 3.0 * CUBIC * near * near);
        return 0.5 * (1.0 + t) + 0.5 * near * (1.0 - t * t) * inner;
    }
    return 0.5 * erfc(-x * SQRT_HALF) + near * INV_SQRT_2PI * exp(-0.5 * near * near);
}

static int32_t eval_gelu(const burn_eval *a)
{
    const burn_attrs_gelu *t = BURNI_ATTRS(a, burn_attrs_gelu);
    if (t == NULL) {
        return burni_no_attrs("gelu", a->err);
    }
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = gelu(a->in[0].f[k], t->tanh_form);
    }
    return BURN_OK;
}

static int32_t vjp_gelu(const burn_builder *b, const burn_vjp *a)
{
    burn_value *in[2] = {a->in[0], a->grad_out[0]};
    a->grad_in[0] = burn_b_emit(b, BURN_OP_GELU_GRAD, a->attrs, in, 2);
    return BURN_OK;
}

/* sqrt(2/pi) (x + 0.044715 x^3) */
static burn_value *gelu_inner(const burn_builder *b, burn_value *x)
{
    burn_value *square = burn_b_mul_num(b, burn_b_mul(b, x, x), CUBIC);
    burn_value *rest = burn_b_add_num(b, square, 1.0);
    return burn_b_mul(b, burn_b_mul_num(b, x, SQRT_2_OVER_PI), rest);
}

/* The part of x that passes: (1 + erf(x / sqrt(2))) / 2 or its tanh form. */
static burn_value *gelu_gate(const burn_builder *b, burn_value *x, uint32_t tanh_form)
{
    burn_value *curve = tanh_form ? burn_b_tanh(b, gelu_inner(b, x))
                                  : burn_b_erf(b, burn_b_mul_num(b, x, SQRT_HALF));
    return burn_b_mul_num(b, burn_b_add_num(b, curve, 1.0), 0.5);
}

static int32_t expand_gelu(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_gelu *t = (const burn_attrs_gelu *)a->attrs;
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *y = burn_b_mul(b, x, gelu_gate(b, x, t->tanh_form));
    a->out[0] = burni_b_narrow(b, y, a->in_meta[0].dtype);
    return BURN_OK;
}

static const double gelu_points[] = {-1e4, 1e4, 0.0, -0.0, 12.0, -12.0, -5.5, 5.5, 250.0, -300.0};

static const burni_domain domain_gelu = {.fill = BURN_FILL_NORMAL,
                                         .fill_y = BURN_FILL_NORMAL,
                                         .wrong = BURN_I32,
                                         .flags = BURN_SAMPLE_ABSOLUTE, /* 1 + erf(x) below 0 */
                                         .tolerance = 8.0,
                                         .grad_tolerance = 128.0,
                                         .n_points = sizeof(gelu_points) / sizeof(double),
                                         .points = gelu_points,
                                         .points_y = gelu_points};

static void gelu_form(burn_sample *s, uint32_t i)
{
    burn_attrs_gelu t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.tanh_form = i % 2;
    burni_sample_attrs(s, &t, (uint32_t)sizeof(t));
}

/* Every unary sample twice: erf form, tanh form. */
static int32_t samples_gelu(uint32_t i, burn_sample *s)
{
    int32_t rc = burni_samples_unary(i / 2, s, &domain_gelu);
    if (rc == BURN_OK) {
        gelu_form(s, i);
    }
    return rc;
}

static const burn_role roles_gelu[2] = {BURNI_ROLE("x", 0, BURN_SET_FLOAT),
                                        BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT)};
static const uint32_t save_gelu[1] = {BURN_SAVE_IN(0)};

const burn_op_def burn_op_def_gelu = {
    BURNI_DEF(GELU, gelu),
    .n_in = 1,
    .n_out = 1,
    .summary = "x times the normal distribution function of x, or its tanh approximation",
    .roles = roles_gelu,
    .attrs = attrs_gelu,
    .n_attrs = 1,
    .attrs_size = (uint32_t)sizeof(burn_attrs_gelu),
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_GELU,
    .infer = infer_gelu,
    .vjp = vjp_gelu,
    .vjp_saves = save_gelu,
    .decompose = expand_gelu,
    .eval = eval_gelu,
    .samples = samples_gelu,
};

/* ---- gelu_grad: x, g -> gx; differentiable through its decomposition ------------------------- */

static int32_t infer_gelu_grad(const burn_infer *a)
{
    if (BURNI_ATTRS(a, burn_attrs_gelu) == NULL) {
        return burni_no_attrs("gelu_grad", a->err);
    }
    return burni_broadcast("gelu_grad", a->in[0], a->in[1], &a->out[0], a->err);
}

static int32_t eval_gelu_grad(const burn_eval *a)
{
    const burn_attrs_gelu *t = BURNI_ATTRS(a, burn_attrs_gelu);
    burni_walk w;
    if (t == NULL) {
        return burni_no_attrs("gelu_grad", a->err);
    }
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        double slope = gelu_slope(a->in[0].f[w.at[0]], t->tanh_form);
        a->out[0].f[w.k] = a->in[1].f[w.at[1]] * slope;
    }
    return BURN_OK;
}

/* The derivative of the gate: the bell curve, or (1 - t^2) / 2 times the slope of the inside. */
static burn_value *gate_slope(const burn_builder *b, burn_value *x, uint32_t tanh_form)
{
    burn_value *square = burn_b_mul(b, x, x);
    if (!tanh_form) {
        burn_value *bell = burn_b_exp(b, burn_b_mul_num(b, square, -0.5));
        return burn_b_mul_num(b, bell, INV_SQRT_2PI);
    }
    burn_value *t = burn_b_tanh(b, gelu_inner(b, x));
    burn_value *t2 = burn_b_mul(b, t, t);
    burn_value *left = burn_b_sub(b, burn_b_num(b, t2, 1.0), t2);
    burn_value *inner = burn_b_add_num(b, burn_b_mul_num(b, square, 3.0 * CUBIC), 1.0);
    return burn_b_mul(b, left, burn_b_mul_num(b, inner, 0.5 * SQRT_2_OVER_PI));
}

/* g (gate(x) + x gate'(x)), x limited in the second term, where gate' is 0 beyond the limit */
static int32_t expand_gelu_grad(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_gelu *t = (const burn_attrs_gelu *)a->attrs;
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *g = burni_b_widen(b, a->in[1]);
    burn_value *low = burn_b_maximum_num(b, x, -BELL_END);
    burn_value *near = burn_b_minimum_num(b, low, BELL_END);
    burn_value *bent = burn_b_mul(b, near, gate_slope(b, near, t->tanh_form));
    burn_value *slope = burn_b_add(b, gelu_gate(b, x, t->tanh_form), bent);
    a->out[0] = burni_b_narrow(b, burn_b_mul(b, g, slope), a->in_meta[0].dtype);
    return BURN_OK;
}

static int32_t samples_gelu_grad(uint32_t i, burn_sample *s)
{
    int32_t rc = burni_samples_binary(i / 2, s, &domain_gelu);
    while (rc == BURN_OK && (s->in[0].kind != BURN_TENSOR || s->in[1].kind != BURN_TENSOR)) {
        /* It takes no immediates: such places are filled with tensors. */
        uint32_t k = s->in[0].kind != BURN_TENSOR ? 0 : 1;
        burni_sample_tensor(s, k, 0, BURN_FILL_NORMAL, s->in[1 - k].rank, s->in[1 - k].dims);
    }
    if (rc == BURN_OK) {
        gelu_form(s, i);
    }
    return rc;
}

static const burn_role roles_gelu_grad[3] = {BURNI_ROLE("x", 0, BURN_SET_FLOAT),
                                             BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
                                             BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT)};

const burn_op_def burn_op_def_gelu_grad = {
    BURNI_DEF(GELU_GRAD, gelu_grad),
    .flags = BURN_OP_INTERNAL,
    .n_in = 2,
    .n_out = 1,
    .summary = "gradient of gelu: g times the slope at x",
    .roles = roles_gelu_grad,
    .attrs = attrs_gelu,
    .n_attrs = 1,
    .attrs_size = (uint32_t)sizeof(burn_attrs_gelu),
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_GELU_GRAD,
    .infer = infer_gelu_grad,
    .decompose = expand_gelu_grad,
    .eval = eval_gelu_grad,
    .samples = samples_gelu_grad,
};

/* ---- relu_grad: y, g -> gx; differentiable through its decomposition ------------------------- */

static int32_t infer_relu_grad(const burn_infer *a)
{
    return burni_broadcast("relu_grad", a->in[0], a->in[1], &a->out[0], a->err);
}

static int32_t eval_relu_grad(const burn_eval *a)
{
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        a->out[0].f[w.k] = a->in[0].f[w.at[0]] > 0.0 ? a->in[1].f[w.at[1]] : 0.0;
    }
    return BURN_OK;
}

static int32_t expand_relu_grad(const burn_builder *b, const burn_expand *a)
{
    burn_value *g = a->in[1];
    burn_value *taken = burn_b_greater_num(b, a->in[0], 0.0);
    a->out[0] = burn_b_where(b, taken, g, burn_b_num(b, g, 0.0));
    return BURN_OK;
}

static const burni_domain domain_relu_grad = {.fill = BURN_FILL_NONZERO,
                                              .fill_y = BURN_FILL_NORMAL,
                                              .wrong = BURN_I32,
                                              .tolerance = 0.0,
                                              .grad_tolerance = 64.0,
                                              .special = BURN_SET_FLOAT};

static int32_t samples_relu_grad(uint32_t i, burn_sample *s)
{
    int32_t rc = burni_samples_binary(i, s, &domain_relu_grad);
    for (uint32_t k = 0; rc == BURN_OK && k < 2; k++) {
        if (s->in[k].kind != BURN_TENSOR) { /* it takes no immediates */
            uint8_t fill = k == 0 ? BURN_FILL_NONZERO : BURN_FILL_NORMAL;
            burni_sample_tensor(s, k, 0, fill, s->in[1 - k].rank, s->in[1 - k].dims);
        }
    }
    return rc;
}

static const burn_role roles_relu_grad[3] = {BURNI_ROLE("y", 0, BURN_SET_FLOAT),
                                             BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
                                             BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT)};

const burn_op_def burn_op_def_relu_grad = {
    BURNI_DEF(RELU_GRAD, relu_grad),
    .flags = BURN_OP_INTERNAL,
    .n_in = 2,
    .n_out = 1,
    .summary = "gradient of relu: g where the result y is above 0, else 0",
    .roles = roles_relu_grad,
    .fuse = BURN_FUSE_POINTWISE,
    .fuse_opcode = BURN_OP_RELU_GRAD,
    .infer = infer_relu_grad,
    .decompose = expand_relu_grad,
    .eval = eval_relu_grad,
    .samples = samples_relu_grad,
};
