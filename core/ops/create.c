/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * create.c - tensors from numbers: fill and arange.
 *
 * The shape and the dtype are attributes, the numbers are immediates, so that two fills with
 * different values are the same program. Neither carries a gradient. To add one: an infer that
 * calls burni_infer_created, an eval, samples and the definition.
 */
#include "ops/rules.h"

#include <burn/build.h>
#include <math.h>

static const char no_vjp_number[] = "it is made from numbers, which carry no gradient";

int32_t burni_infer_created(const char *op, const burn_infer *a, uint64_t set)
{
    const burn_attrs_shape *t = BURNI_ATTRS(a, burn_attrs_shape);
    if (t == NULL) {
        return burni_no_attrs(op, a->err);
    }
    if (t->n_dims > BURN_MAX_RANK) {
        return burni_fail(a->err, BURN_E_SHAPE, "%s: rank %u, at most %d is possible", op,
                          (unsigned)t->n_dims, BURN_MAX_RANK);
    }
    if (t->dtype > 63 || (set & (UINT64_C(1) << t->dtype)) == 0) {
        char taken[96];
        return burni_fail(a->err, BURN_E_DTYPE,
                          "%s: cannot make a tensor of dtype %s (code %u); use one of %s", op,
                          t->dtype < 256 ? burn_dtype_name((uint8_t)t->dtype) : "none",
                          (unsigned)t->dtype, burni_dtypes_text(taken, sizeof(taken), set));
    }
    if (burni_numel(t->n_dims, t->dims) < 0) {
        char text[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: shape %s has a negative dim or more elements than 64 bits count", op,
                          burni_shape_text(text, sizeof(text), t->n_dims, t->dims));
    }
    a->out[0].rank = (uint8_t)t->n_dims;
    a->out[0].dtype = (uint8_t)t->dtype;
    for (uint32_t i = 0; i < BURN_MAX_RANK; i++) {
        a->out[0].dims[i] = i < t->n_dims ? t->dims[i] : 0;
    }
    return BURN_OK;
}

void burni_sample_shape(burn_sample *s, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
    burn_attrs_shape t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.n_dims = rank;
    t.dtype = dtype;
    for (uint32_t i = 0; i < rank && i < BURN_MAX_RANK; i++) {
        t.dims[i] = dims[i];
    }
    burni_sample_attrs(s, &t, (uint32_t)sizeof(t));
}

/* An immediate as a number of the output's class. */
static int64_t whole(const burn_eval_operand *x)
{
    return burni_eval_get_int(x, 0);
}

/* ---- fill ------------------------------------------------------------------------------------ */

static int32_t infer_fill(const burn_infer *a)
{
    return burni_infer_created("fill", a, BURN_SET_ANY);
}

static int32_t eval_fill(const burn_eval *a)
{
    const burn_eval_operand *value = &a->in[0];
    burn_eval_operand *y = &a->out[0];
    int same = burn_dtype_class(value->meta.dtype) == burn_dtype_class(y->meta.dtype);
    for (uint64_t k = 0; k < y->n; k++) {
        if (same) {
            burni_eval_move(y, k, value, 0);
        } else {
            burni_eval_set(y, k, burni_eval_get(value, 0));
        }
    }
    return BURN_OK;
}

typedef struct created_row {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint32_t dtype;
    double number;
    double step;
    int32_t error;
} created_row;

static const created_row fill_rows[] = {
    {"one element", 1, {1}, BURN_F32, 1.5, 0.0, 0},
    {"odd", 1, {17}, BURN_F32, -2.25, 0.0, 0},
    {"long", 1, {129}, BURN_F16, 0.5, 0.0, 0},
    {"matrix", 2, {65, 3}, BURN_F64, 3.0, 0.0, 0},
    {"rank 0", 0, {0}, BURN_BF16, 1.0, 0.0, 0},
    {"empty", 2, {0, 4}, BURN_F32, 1.0, 0.0, 0},
    {"bool", 1, {33}, BURN_BOOL, 1.0, 0.0, 0},
    {"i64", 3, {2, 3, 5}, BURN_I64, -7.0, 0.0, 0},
    {"i32", 1, {33}, BURN_I32, 2147483647.0, 0.0, 0},
    {"i16", 1, {33}, BURN_I16, -300.0, 0.0, 0},
    {"i8", 1, {33}, BURN_I8, -128.0, 0.0, 0},
    {"u8", 1, {33}, BURN_U8, 255.0, 0.0, 0},
    {"u16", 1, {33}, BURN_U16, 65535.0, 0.0, 0},
    {"u32", 1, {33}, BURN_U32, 4294967295.0, 0.0, 0},
    {"u64", 1, {33}, BURN_U64, 7.0, 0.0, 0},
    {"NaN", 1, {33}, BURN_F32, (double)NAN, 0.0, 0},
    {"infinity", 1, {33}, BURN_F16, (double)INFINITY, 0.0, 0},
    {"negative dim", 1, {-1}, BURN_F32, 1.0, 0.0, BURN_E_SHAPE},
    {"no such dtype", 1, {3}, 250, 1.0, 0.0, BURN_E_DTYPE},
};

enum { N_FILL_ROWS = sizeof(fill_rows) / sizeof(fill_rows[0]) };

static void created_sample(burn_sample *s, const created_row *row, int with_step)
{
    uint8_t dtype = row->error == BURN_E_DTYPE ? BURN_F32 : (uint8_t)row->dtype;
    burni_sample_begin(s, row->name, 1.0, 0.0);
    burni_sample_immediate(s, 0, dtype, row->number);
    if (with_step) {
        burni_sample_immediate(s, 1, dtype, row->step);
    }
    burni_sample_shape(s, row->dtype, row->rank, row->dims);
    s->flags = BURN_SAMPLE_NO_GRAD;
    if (row->error != BURN_OK) {
        burni_sample_error(s, row->error);
    }
}

static int32_t samples_fill(uint32_t i, burn_sample *s)
{
    if (i >= N_FILL_ROWS) {
        return BURN_E_END;
    }
    created_sample(s, &fill_rows[i], 0);
    return BURN_OK;
}

#define NUMBER (BURN_ROLE_ONLY_IMMEDIATE | BURN_ROLE_NO_GRAD)

static const burn_role roles_fill[2] = {BURNI_ROLE("value", NUMBER, BURN_SET_ANY),
                                        BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_SET_ANY)};

const burn_op_def burn_op_def_fill = {
    BURNI_DEF(FILL, fill),
    .flags = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE,
    .n_in = 1,
    .n_out = 1,
    .summary = "a tensor of one repeated number",
    .roles = roles_fill,
    .attrs = burni_attrs_shape_rows,
    .n_attrs = BURNI_N_ATTRS_SHAPE,
    .attrs_size = (uint32_t)sizeof(burn_attrs_shape),
    .infer = infer_fill,
    .no_vjp = no_vjp_number,
    .eval = eval_fill,
    .samples = samples_fill,
};

/* ---- arange ---------------------------------------------------------------------------------- */

static int32_t infer_arange(const burn_infer *a)
{
    int32_t rc = burni_infer_created("arange", a, BURN_SET_NUMERIC);
    if (rc == BURN_OK && a->out[0].rank != 1) {
        char text[192];
        rc = burni_fail(a->err, BURN_E_SHAPE, "arange: the shape must have rank 1, %s has rank %u",
                        burni_shape_text(text, sizeof(text), a->out[0].rank, a->out[0].dims),
                        (unsigned)a->out[0].rank);
    }
    return rc;
}

/* start + i step, computed for each element anew so that errors do not add up. */
static int32_t eval_arange(const burn_eval *a)
{
    burn_eval_operand *y = &a->out[0];
    uint32_t klass = burn_dtype_class(y->meta.dtype);
    for (uint64_t k = 0; k < y->n; k++) {
        uint64_t number = (uint64_t)whole(&a->in[0]) + k * (uint64_t)whole(&a->in[1]);
        if (klass == BURN_CLASS_FLOAT) {
            y->f[k] = burni_eval_get(&a->in[0], 0) + (double)k * burni_eval_get(&a->in[1], 0);
        } else if (klass == BURN_CLASS_UINT) {
            y->u[k] = number;
        } else {
            y->i[k] = (int64_t)number;
        }
    }
    return BURN_OK;
}

static const created_row arange_rows[] = {
    {"one element", 1, {1}, BURN_F32, 1.5, 1.0, 0},
    {"odd", 1, {17}, BURN_F32, -2.25, 0.5, 0},
    {"long", 1, {129}, BURN_F64, 0.0, 0.1, 0},
    {"f16", 1, {65}, BURN_F16, 0.0, 1.0, 0},
    {"bf16", 1, {65}, BURN_BF16, 4.0, -0.25, 0},
    {"empty", 1, {0}, BURN_F32, 1.0, 1.0, 0},
    {"i64", 1, {1025}, BURN_I64, 3.0, -7.0, 0},
    {"i32", 1, {129}, BURN_I32, 0.0, 1.0, 0},
    {"u8", 1, {65}, BURN_U8, 1.0, 3.0, 0},
    {"i8", 1, {65}, BURN_I8, -100.0, 3.0, 0},
    {"u16", 1, {65}, BURN_U16, 65000.0, 7.0, 0},
    {"i16", 1, {65}, BURN_I16, -32768.0, 1000.0, 0},
    {"u32", 1, {65}, BURN_U32, 4294967290.0, 1.0, 0},
    {"u64", 1, {65}, BURN_U64, 5.0, 1000000007.0, 0},
    {"step 0", 1, {5}, BURN_I32, 4.0, 0.0, 0},
    {"rank 2", 2, {2, 3}, BURN_I64, 0.0, 1.0, BURN_E_SHAPE},
    {"bool", 1, {3}, BURN_BOOL, 0.0, 1.0, BURN_E_DTYPE},
};

enum { N_ARANGE_ROWS = sizeof(arange_rows) / sizeof(arange_rows[0]) };

static int32_t samples_arange(uint32_t i, burn_sample *s)
{
    if (i >= N_ARANGE_ROWS) {
        return BURN_E_END;
    }
    created_sample(s, &arange_rows[i], 1);
    return BURN_OK;
}

static const burn_role roles_arange[3] = {BURNI_ROLE("start", NUMBER, BURN_SET_NUMERIC),
                                          BURNI_ROLE_LIKE("step", NUMBER, 0, BURN_SET_NUMERIC),
                                          BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_SET_NUMERIC)};

const burn_op_def burn_op_def_arange = {
    BURNI_DEF(ARANGE, arange),
    .flags = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE,
    .n_in = 2,
    .n_out = 1,
    .summary = "start, start + step, start + 2 step, ...",
    .roles = roles_arange,
    .attrs = burni_attrs_shape_rows,
    .n_attrs = BURNI_N_ATTRS_SHAPE,
    .attrs_size = (uint32_t)sizeof(burn_attrs_shape),
    .infer = infer_arange,
    .no_vjp = no_vjp_number,
    .eval = eval_arange,
    .samples = samples_arange,
};
