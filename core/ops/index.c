/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * index.c - gather and scatter: the two primitives by which an index tensor addresses another.
 *
 * Owns the two definitions; select, one_hot and embedding, which are made of them, are in
 * lookup.c. An index value below 0 or not below the axis' size is a fault of the data: eval and
 * kernels report BURN_E_DATA with the value, its place and the bound. Duplicates in scatter are
 * combined in row-major order of the index, so the last assignment wins. To add a scatter mode: a
 * row in op_attrs.h, a case in `combine`, a gradient in vjp_scatter.
 */
#include "ops/parts.h"

#include <math.h>
#include <string.h>

/* ---- shared ---------------------------------------------------------------------------------- */

/* Is the index value within the axis? */
static int32_t check_value(const char *op, int64_t value, uint64_t position, int64_t axis,
                           int64_t size, burn_err *err)
{
    if (value >= 0 && value < size) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_DATA,
                      "%s: index %lld at position %llu is out of range: axis %lld of x has size "
                      "%lld, so 0 to %lld are possible",
                      op, (long long)value, (unsigned long long)position, (long long)axis,
                      (long long)size, (long long)size - 1);
}

/* The index has x's rank and, off the axis, no size larger than x's. */
static int32_t check_index(const char *op, const burn_meta *x, const burn_meta *index,
                           int64_t axis, burn_err *err)
{
    int32_t rc = burni_check_axis(op, axis, x->rank, err);
    if (rc != BURN_OK) {
        return rc;
    }
    int fits = index->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) {
        fits = (int64_t)i == axis || index->dims[i] <= x->dims[i];
    }
    if (fits) {
        return BURN_OK;
    }
    char tx[192];
    char ti[192];
    return burni_fail(err, BURN_E_SHAPE,
                      "%s: index %s does not fit x %s; it needs x's rank and, off axis %lld, sizes "
                      "that are not larger (select takes an index of rank 1)",
                      op, burni_shape_text(ti, sizeof(ti), index->rank, index->dims),
                      burni_shape_text(tx, sizeof(tx), x->rank, x->dims), (long long)axis);
}

/* Place in x of the element that index element k, at `place`, addresses. */
static int32_t address(const char *op, const burn_eval *a, int64_t axis, uint64_t k,
                       const int64_t *place, uint64_t *out_at)
{
    const burn_meta *x = &a->in[0].meta;
    int64_t strides[BURN_MAX_RANK];
    int64_t value = burni_eval_get_int(&a->in[1], k);
    int32_t rc = check_value(op, value, k, axis, x->dims[axis], a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    burni_dense_strides(x->rank, x->dims, strides);
    int64_t at = burni_offset(x->rank, place, strides) + (value - place[axis]) * strides[axis];
    *out_at = (uint64_t)at;
    return BURN_OK;
}

/* ---- gather ---------------------------------------------------------------------------------- */

static int32_t infer_gather(const burn_infer *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    if (s == NULL) {
        return burni_no_attrs("gather", a->err);
    }
    int32_t rc = check_index("gather", a->in[0], a->in[1], s->axis, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    return burni_set_shape("gather", &a->out[0], a->in[1]->rank, a->in[1]->dims, a->err);
}

static int32_t vjp_gather(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    if (a->wanted[0] && a->grad_out[0] != NULL && s != NULL) {
        burn_value *zeros = burni_b_zeros(b, &a->in_meta[0]);
        a->grad_in[0] =
            burn_b_scatter(b, zeros, a->in[1], a->grad_out[0], s->axis, BURN_SCATTER_ADD);
    }
    return BURN_OK;
}

static int32_t eval_gather(const burn_eval *a)
{
    const burn_attrs_axis *s = (const burn_attrs_axis *)a->attrs;
    const burn_meta *out = &a->out[0].meta;
    int64_t place[BURN_MAX_RANK] = {0};
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        uint64_t at = 0;
        int32_t rc = address("gather", a, s->axis, k, place, &at);
        if (rc != BURN_OK) {
            return rc;
        }
        burni_eval_move(&a->out[0], k, &a->in[0], at);
        (void)burni_next_index(out->rank, out->dims, place);
    }
    return BURN_OK;
}

/* Rows for gather and scatter. `values`: index values in turn; NULL: random ones below `bound`. */
typedef struct index_sample {
    const char *name;
    int64_t axis;
    uint32_t rank;
    int64_t dims[4];
    uint32_t index_rank;
    int64_t index_dims[4];
    double bound;
    const double *values;
    uint32_t n_values;
    uint8_t index_dtype;
    int32_t error;
} index_sample;

static const double same_place[] = {1.0};
static const double beyond[] = {0.0, 1.0, 3.0};
static const double negative[] = {0.0, -1.0};
static const double distinct[] = {2.0, 0.0, 1.0};

static const index_sample index_rows[] = {
    {"vector", 0, 1, {5}, 1, {7}, 5.0, NULL, 0, BURN_I64, 0},
    {"i32 index", 0, 1, {5}, 1, {3}, 5.0, NULL, 0, BURN_I32, 0},
    {"inner axis", 1, 2, {3, 5}, 2, {3, 4}, 5.0, NULL, 0, BURN_I64, 0},
    {"outer axis", 0, 2, {5, 3}, 2, {4, 3}, 5.0, NULL, 0, BURN_I64, 0},
    {"smaller off the axis", 1, 3, {3, 4, 5}, 3, {2, 6, 3}, 4.0, NULL, 0, BURN_I64, 0},
    {"all to one place", 0, 1, {3}, 1, {3}, 3.0, same_place, 1, BURN_I64, 0},
    {"a permutation", 0, 2, {3, 2}, 2, {3, 1}, 3.0, distinct, 3, BURN_I64, 0},
    {"one element", 0, 1, {1}, 1, {1}, 1.0, NULL, 0, BURN_I64, 0},
    {"empty index", 0, 2, {3, 2}, 2, {0, 2}, 3.0, NULL, 0, BURN_I64, 0},
    {"everything empty", 1, 2, {0, 4}, 2, {0, 3}, 4.0, NULL, 0, BURN_I64, 0},
    {"beyond the end", 0, 1, {3}, 1, {3}, 3.0, beyond, 3, BURN_I64, BURN_E_DATA},
    {"negative", 0, 1, {3}, 1, {2}, 3.0, negative, 2, BURN_I64, BURN_E_DATA},
    {"into nothing", 0, 1, {0}, 1, {1}, 1.0, NULL, 0, BURN_I64, BURN_E_DATA},
    {"rank differs", 0, 2, {3, 2}, 1, {3}, 3.0, NULL, 0, BURN_I64, BURN_E_SHAPE},
    {"larger off the axis", 0, 2, {3, 2}, 2, {3, 3}, 3.0, NULL, 0, BURN_I64, BURN_E_SHAPE},
    {"no such axis", 2, 2, {3, 2}, 2, {3, 2}, 2.0, NULL, 0, BURN_I64, BURN_E_INVALID},
};

enum { N_INDEX_ROWS = sizeof(index_rows) / sizeof(index_rows[0]) };

static void fill_index_sample(const index_sample *row, burn_sample *out)
{
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_tensor(out, 1, row->index_dtype, BURN_FILL_INDEX, row->index_rank,
                        row->index_dims);
    burni_sample_range(out, 1, 0.0, row->bound);
    if (row->values != NULL) {
        burni_sample_values(out, 1, row->n_values, row->values);
    }
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
}

static int32_t samples_gather(uint32_t i, burn_sample *out)
{
    if (i >= N_INDEX_ROWS) {
        return BURN_E_END;
    }
    burn_attrs_axis attrs = {BURNI_HEAD(burn_attrs_axis), index_rows[i].axis, 0, 0};
    fill_index_sample(&index_rows[i], out);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    return BURN_OK;
}

static const burni_special gather_special[] = {
    {"smaller off the axis", "special values", 1, 0},
};

static int32_t gather_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_gather, gather_special,
                                 BURNI_N_SPECIAL(gather_special));
}

static const burn_role gather_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_SET_INDEX),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const uint32_t gather_saves[] = {BURN_SAVE_IN(1), 0};

const burn_op_def burn_op_def_gather = {
    BURNI_DEF(GATHER, gather),
    .summary = "y[.., k, ..] = x[.., index[.., k, ..], ..] along an axis",
    .flags = BURN_OP_PRIMITIVE | BURN_OP_MINIMAL,
    .n_in = 2,
    .n_out = 1,
    .roles = gather_roles,
    .attrs = burni_attrs_axis_rows,
    .n_attrs = BURNI_N_ATTRS_AXIS,
    .attrs_size = (uint32_t)sizeof(burn_attrs_axis),
    .infer = infer_gather,
    .vjp = vjp_gather,
    .vjp_saves = gather_saves,
    .eval = eval_gather,
    .samples = gather_all_samples,
};

/* ---- scatter --------------------------------------------------------------------------------- */

static int32_t infer_scatter(const burn_infer *a)
{
    const burn_attrs_scatter *s = BURNI_ATTRS(a, burn_attrs_scatter);
    const burn_meta *index = a->in[1];
    const burn_meta *values = a->in[2];
    if (s == NULL) {
        return burni_no_attrs("scatter", a->err);
    }
    int32_t rc = check_index("scatter", a->in[0], index, s->axis, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int fits = values->rank == index->rank;
    for (uint32_t i = 0; fits && i < index->rank; i++) {
        fits = values->dims[i] == index->dims[i];
    }
    if (!fits) {
        char tv[192];
        char ti[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "scatter: values %s and index %s must have one shape; expand the values",
                          burni_shape_text(tv, sizeof(tv), values->rank, values->dims),
                          burni_shape_text(ti, sizeof(ti), index->rank, index->dims));
    }
    if (s->mode > BURN_SCATTER_MAX) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "scatter: mode %u is not known; use 0 (assign) to 4 (max)",
                          (unsigned)s->mode);
    }
    if (a->in[0]->dtype == BURN_BOOL && s->mode != BURN_SCATTER_ASSIGN) {
        return burni_fail(a->err, BURN_E_DTYPE,
                          "scatter: bool tensors can be assigned only (mode 0, got %u); cast to an "
                          "integer dtype first",
                          (unsigned)s->mode);
    }
    return burni_infer_same(a);
}

static double combine_float(uint32_t mode, double x, double y)
{
    switch (mode) {
    case BURN_SCATTER_ADD:
        return x + y;
    case BURN_SCATTER_MUL:
        return x * y;
    case BURN_SCATTER_MIN:
        return isnan(x) || x < y ? x : y;
    case BURN_SCATTER_MAX:
        return isnan(x) || x > y ? x : y;
    default:
        return y;
    }
}

/* Sums and products wrap, so they are computed without sign. */
static int64_t combine_int(uint32_t mode, int64_t x, int64_t y)
{
    switch (mode) {
    case BURN_SCATTER_ADD:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case BURN_SCATTER_MUL:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case BURN_SCATTER_MIN:
        return x < y ? x : y;
    case BURN_SCATTER_MAX:
        return x > y ? x : y;
    default:
        return y;
    }
}

static uint64_t combine_uint(uint32_t mode, uint64_t x, uint64_t y)
{
    switch (mode) {
    case BURN_SCATTER_MIN:
        return x < y ? x : y;
    case BURN_SCATTER_MAX:
        return x > y ? x : y;
    default:
        return (uint64_t)combine_int(mode, (int64_t)x, (int64_t)y);
    }
}

/* Cuts a wrapped integer to its dtype's width. */
static void combine(uint32_t mode, burn_eval_operand *to, uint64_t at,
                    const burn_eval_operand *from, uint64_t k)
{
    uint32_t klass = burn_dtype_class(to->meta.dtype);
    uint32_t drop = 64 - 8 * burn_dtype_size(to->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        to->f[at] = combine_float(mode, to->f[at], from->f[k]);
    } else if (klass == BURN_CLASS_UINT) {
        to->u[at] = combine_uint(mode, to->u[at], from->u[k]) << drop >> drop;
    } else {
        uint64_t bits = (uint64_t)combine_int(mode, to->i[at], from->i[k]);
        uint64_t kept = bits << drop >> drop;
        uint64_t sign = UINT64_C(1) << (63 - drop);
        to->i[at] = (int64_t)((kept ^ sign) - sign);
    }
}

static int32_t eval_scatter(const burn_eval *a)
{
    const burn_attrs_scatter *s = (const burn_attrs_scatter *)a->attrs;
    const burn_meta *index = &a->in[1].meta;
    int64_t place[BURN_MAX_RANK] = {0};
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        burni_eval_move(&a->out[0], k, &a->in[0], k);
    }
    for (uint64_t k = 0; k < a->in[1].n; k++) {
        uint64_t at = 0;
        int32_t rc = address("scatter", a, s->axis, k, place, &at);
        if (rc != BURN_OK) {
            return rc;
        }
        combine(s->mode, &a->out[0], at, &a->in[2], k);
        (void)burni_next_index(index->rank, index->dims, place);
    }
    return BURN_OK;
}

/*
 * Gradient of assigned values: what was overwritten by a later duplicate gets none. Each value's
 * number along the axis is scattered too; who finds his own number there has won.
 */
static burn_value *grad_of_assigned(const burn_builder *b, const burn_vjp *a, int64_t axis)
{
    const burn_meta *index = &a->in_meta[1];
    burn_meta numbers = a->in_meta[0];
    numbers.dtype = BURN_I64;
    burn_value *mine = burn_b_arange(b, BURN_I64, index->dims[axis], 0.0, 1.0);
    mine = burni_b_index_along(b, mine, index->rank, index->dims, axis);
    burn_value *last = burn_b_scatter(b, burni_b_zeros(b, &numbers), a->in[1], mine, axis,
                                      BURN_SCATTER_ASSIGN);
    burn_value *won = burn_b_equal(b, burn_b_gather(b, last, a->in[1], axis), mine);
    burn_value *g = burn_b_gather(b, a->grad_out[0], a->in[1], axis);
    return burn_b_where(b, won, g, burn_b_num(b, g, 0.0));
}

static int32_t vjp_scatter(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_scatter *s = BURNI_ATTRS(a, burn_attrs_scatter);
    burn_value *g = a->grad_out[0];
    if (g == NULL || s == NULL) {
        return BURN_OK;
    }
    if (s->mode != BURN_SCATTER_ASSIGN && s->mode != BURN_SCATTER_ADD) {
        burn_value *failed = b->fail(b->ctx, BURN_E_UNSUPPORTED,
                                     "scatter: modes mul, min and max have no gradient; use assign "
                                     "or add, or detach the operands");
        a->grad_in[0] = a->wanted[0] ? failed : NULL;
        a->grad_in[2] = a->wanted[2] ? failed : NULL;
        return BURN_OK;
    }
    int assign = s->mode == BURN_SCATTER_ASSIGN;
    if (a->wanted[0] && assign) {
        burn_meta values = a->in_meta[2];
        a->grad_in[0] = burn_b_scatter(b, g, a->in[1], burni_b_zeros(b, &values), s->axis,
                                       BURN_SCATTER_ASSIGN);
    } else if (a->wanted[0]) {
        a->grad_in[0] = g;
    }
    if (a->wanted[2]) {
        a->grad_in[2] =
            assign ? grad_of_assigned(b, a, s->axis) : burn_b_gather(b, g, a->in[1], s->axis);
    }
    return BURN_OK;
}

/* The rows of gather once for each mode; mul, min and max have no gradient. */
/* Of index_rows: once each, and once with many to one place. */
static const uint32_t special_rows[] = {2, 4};

enum { N_SPECIAL_ROWS = sizeof(special_rows) / sizeof(special_rows[0]) };

static int32_t scatter_samples(uint32_t i, burn_sample *out)
{
    uint32_t mode = i / N_INDEX_ROWS;
    const index_sample *row = &index_rows[i % N_INDEX_ROWS];
    if (mode > BURN_SCATTER_MAX) {
        return BURN_E_END;
    }
    burn_attrs_scatter attrs = {BURNI_HEAD(burn_attrs_scatter), row->axis, mode, 0};
    fill_index_sample(row, out);
    burni_sample_tensor(out, 2, 0, BURN_FILL_NORMAL, row->index_rank, row->index_dims);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    if (mode != BURN_SCATTER_ASSIGN) {
        /* one rounding for each duplicate */
        out->tolerance = mode == BURN_SCATTER_MIN || mode == BURN_SCATTER_MAX ? 0.0 : 64.0;
        out->dtypes = BURN_SET_NUMERIC;
    }
    if (mode > BURN_SCATTER_ADD) {
        out->flags |= BURN_SAMPLE_NO_GRAD;
    }
    return BURN_OK;
}

/*
 * Old and new values with NaN on either side, several to one place, in each mode: what is added or
 * multiplied has one result in any order.
 */
static int32_t samples_scatter(uint32_t i, burn_sample *out)
{
    const uint32_t n_rows = N_INDEX_ROWS * (BURN_SCATTER_MAX + 1);
    if (i < n_rows) {
        return scatter_samples(i, out);
    }
    uint32_t mode = (i - n_rows) / N_SPECIAL_ROWS;
    if (mode > BURN_SCATTER_MAX) {
        return BURN_E_END;
    }
    int sums = mode == BURN_SCATTER_ADD || mode == BURN_SCATTER_MUL;
    int32_t rc = scatter_samples(mode * N_INDEX_ROWS + special_rows[i % N_SPECIAL_ROWS], out);
    out->name = "special values";
    burni_sample_special(out, sums ? 0 : 1 | 4, sums ? 1 | 4 : 0);
    out->flags |= sums ? 0 : BURN_SAMPLE_ANY_ZERO;
    return rc;
}

static const burn_role scatter_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_SET_INDEX),
    BURNI_ROLE_LIKE("values", 0, 0, BURN_SET_ANY),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const burn_attr scatter_attrs[] = {
    BURNI_ATTR(burn_attrs_scatter, axis, BURN_ATTR_I64, BURN_ATTR_KEY, "axis, 0 <= axis < rank"),
    BURNI_ATTR(burn_attrs_scatter, mode, BURN_ATTR_U32, BURN_ATTR_KEY,
               "0 assign (the last duplicate wins), 1 add, 2 mul, 3 min, 4 max"),
};

static const uint32_t scatter_saves[] = {BURN_SAVE_IN(1), 0, BURN_SAVE_IN(1)};

const burn_op_def burn_op_def_scatter = {
    BURNI_DEF(SCATTER, scatter),
    .summary = "A copy of x with values combined in at index along an axis",
    .flags = BURN_OP_PRIMITIVE | BURN_OP_MINIMAL,
    .n_in = 3,
    .n_out = 1,
    .roles = scatter_roles,
    .attrs = scatter_attrs,
    .n_attrs = 2,
    .attrs_size = (uint32_t)sizeof(burn_attrs_scatter),
    .infer = infer_scatter,
    .vjp = vjp_scatter,
    .vjp_saves = scatter_saves,
    .eval = eval_scatter,
    .samples = samples_scatter,
};
