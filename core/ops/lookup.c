/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lookup.c - select, embedding and one_hot: composites of gather and scatter.
 *
 * Owns the three definitions. Gradients add where an index value occurs twice, in index order, so
 * they are the same every time. Index values out of range are reported by the kernel (or by the
 * gather or scatter below). To add a lookup: decompose it into gather or scatter, so that the
 * checks of index values come with it.
 */
#include "ops/parts.h"

#include <string.h>

/* ---- shared ---------------------------------------------------------------------------------- */

static int32_t check_values(const char *op, const char *what, const burn_eval_operand *index,
                            int64_t size, burn_err *err)
{
    for (uint64_t k = 0; k < index->n; k++) {
        int64_t value = burni_eval_get_int(index, k);
        if (value < 0 || value >= size) {
            return burni_fail(err, BURN_E_DATA,
                              "%s: index %lld at position %llu is out of range: %s %lld, so 0 to "
                              "%lld are possible",
                              op, (long long)value, (unsigned long long)k, what, (long long)size,
                              (long long)size - 1);
        }
    }
    return BURN_OK;
}

/* x with its axis of the index's length. */
static burn_meta selected_meta(const burn_meta *x, int64_t axis, int64_t n)
{
    burn_meta meta = *x;
    meta.dims[axis] = n;
    return meta;
}

/* Gradient of picking slices: each is added where it came from. */
static burn_value *add_back(const burn_builder *b, const burn_meta *x, burn_value *index,
                            burn_value *g, int64_t axis, int64_t n)
{
    burn_meta picked = selected_meta(x, axis, n);
    burn_value *where = burni_b_index_along(b, index, picked.rank, picked.dims, axis);
    return burn_b_scatter(b, burni_b_zeros(b, x), where, g, axis, BURN_SCATTER_ADD);
}

static const double lookup_beyond[] = {0.0, 1.0, 3.0};
static const double lookup_negative[] = {0.0, -1.0};
static const double lookup_twice[] = {0.0, 1.0, 1.0};

/* ---- select ---------------------------------------------------------------------------------- */

static int32_t infer_select(const burn_infer *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    const burn_meta *x = a->in[0];
    if (s == NULL) {
        return burni_no_attrs("select", a->err);
    }
    int32_t rc = burni_check_axis("select", s->axis, x->rank, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (a->in[1]->rank != 1) {
        char text[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "select: index %s must have rank 1; flatten it, or use gather for an "
                          "index per element",
                          burni_shape_text(text, sizeof(text), a->in[1]->rank, a->in[1]->dims));
    }
    burn_meta picked = selected_meta(x, s->axis, a->in[1]->dims[0]);
    return burni_set_shape("select", &a->out[0], picked.rank, picked.dims, a->err);
}

static int32_t vjp_select(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    if (a->wanted[0] && a->grad_out[0] != NULL && s != NULL) {
        a->grad_in[0] = add_back(b, &a->in_meta[0], a->in[1], a->grad_out[0], s->axis,
                                 a->in_meta[1].dims[0]);
    }
    return BURN_OK;
}

static int32_t decompose_select(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *s = BURNI_ATTRS(a, burn_attrs_axis);
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    burn_meta picked = selected_meta(&a->in_meta[0], s->axis, a->in_meta[1].dims[0]);
    burn_value *index = burni_b_index_along(b, a->in[1], picked.rank, picked.dims, s->axis);
    a->out[0] = burn_b_gather(b, a->in[0], index, s->axis);
    return BURN_OK;
}

static void source_select(const burn_eval *a, const int64_t *out_index, int64_t *in_index)
{
    const burn_attrs_axis *s = (const burn_attrs_axis *)a->attrs;
    memcpy(in_index, out_index, a->out[0].meta.rank * sizeof(int64_t));
    in_index[s->axis] = burni_eval_get_int(&a->in[1], (uint64_t)out_index[s->axis]);
}

static int32_t eval_select(const burn_eval *a)
{
    const burn_attrs_axis *s = (const burn_attrs_axis *)a->attrs;
    int32_t rc = BURN_OK;
    if (a->in[1].n > 0) {
        rc = check_values("select", "the axis has size", &a->in[1], a->in[0].meta.dims[s->axis],
                          a->err);
    }
    return rc != BURN_OK ? rc : burni_eval_by_source(a, source_select);
}

typedef struct select_sample {
    const char *name;
    int64_t axis;
    uint32_t rank;
    int64_t dims[4];
    int64_t n;
    const double *values;
    uint32_t n_values;
    uint8_t index_dtype;
    int32_t error;
} select_sample;

static const select_sample select_rows[] = {
    {"rows", 0, 2, {5, 3}, 7, NULL, 0, BURN_I64, 0},
    {"columns, i32", 1, 2, {3, 5}, 4, NULL, 0, BURN_I32, 0},
    {"middle", 1, 3, {2, 4, 3}, 5, NULL, 0, BURN_I64, 0},
    {"twice the same", 0, 2, {3, 2}, 3, lookup_twice, 3, BURN_I64, 0},
    {"one", 0, 1, {1}, 1, NULL, 0, BURN_I64, 0},
    {"none", 1, 2, {3, 4}, 0, NULL, 0, BURN_I64, 0},
    {"of empty rows", 0, 2, {3, 0}, 2, NULL, 0, BURN_I64, 0},
    {"beyond the end", 0, 2, {3, 2}, 3, lookup_beyond, 3, BURN_I64, BURN_E_DATA},
    {"negative", 1, 2, {3, 2}, 2, lookup_negative, 2, BURN_I64, BURN_E_DATA},
    {"no such axis", 2, 2, {3, 2}, 1, NULL, 0, BURN_I64, BURN_E_INVALID},
};

static int32_t samples_select(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(select_rows) / sizeof(select_rows[0])) {
        return BURN_E_END;
    }
    const select_sample *row = &select_rows[i];
    burn_attrs_axis attrs = {BURNI_HEAD(burn_attrs_axis), row->axis, 0, 0};
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->dims);
    burni_sample_tensor(out, 1, row->index_dtype, BURN_FILL_INDEX, 1, &row->n);
    burni_sample_range(out, 1, 0.0, row->axis < 4 ? (double)row->dims[row->axis] : 1.0);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    if (row->values != NULL) {
        burni_sample_values(out, 1, row->n_values, row->values);
    }
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special select_special[] = {
    {"middle", "special values", 1, 0},
};

static int32_t select_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_select, select_special,
                                 BURNI_N_SPECIAL(select_special));
}

static const burn_role select_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_ANY),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_SET_INDEX),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_ANY),
};

static const uint32_t lookup_saves[] = {BURN_SAVE_IN(1), 0};

const burn_op_def burn_op_def_select = {
    BURNI_DEF(SELECT, select),
    .summary = "Whole slices of x along an axis, in the order of an index",
    .n_in = 2,
    .n_out = 1,
    .roles = select_roles,
    .attrs = burni_attrs_axis_rows,
    .n_attrs = BURNI_N_ATTRS_AXIS,
    .attrs_size = (uint32_t)sizeof(burn_attrs_axis),
    .infer = infer_select,
    .vjp = vjp_select,
    .vjp_saves = lookup_saves,
    .decompose = decompose_select,
    .eval = eval_select,
    .samples = select_all_samples,
};

/* ---- embedding ------------------------------------------------------------------------------- */

static int32_t infer_embedding(const burn_infer *a)
{
    const burn_meta *table = a->in[0];
    const burn_meta *index = a->in[1];
    int64_t dims[BURN_MAX_RANK + 1];
    if (table->rank != 2) {
        char text[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "embedding: table %s must have rank 2: [number of rows, row length]",
                          burni_shape_text(text, sizeof(text), table->rank, table->dims));
    }
    memcpy(dims, index->dims, sizeof(index->dims));
    dims[index->rank] = table->dims[1];
    return burni_set_shape("embedding", &a->out[0], (uint32_t)index->rank + 1, dims, a->err);
}

static burn_value *flat_index(const burn_builder *b, burn_value *index, const burn_meta *meta,
                              int64_t *out_n)
{
    *out_n = burni_numel(meta->rank, meta->dims);
    return meta->rank == 1 ? index : burn_b_reshape(b, index, 1, out_n);
}

static int32_t vjp_embedding(const burn_builder *b, const burn_vjp *a)
{
    int64_t n;
    if (a->wanted[0] && a->grad_out[0] != NULL) {
        burn_value *index = flat_index(b, a->in[1], &a->in_meta[1], &n);
        int64_t rows[2] = {n, a->in_meta[0].dims[1]};
        burn_value *g = burn_b_reshape(b, a->grad_out[0], 2, rows);
        a->grad_in[0] = add_back(b, &a->in_meta[0], index, g, 0, n);
    }
    return BURN_OK;
}

static int32_t decompose_embedding(const burn_builder *b, const burn_expand *a)
{
    const burn_meta *meta = &a->in_meta[1];
    int64_t n;
    burn_value *index = flat_index(b, a->in[1], meta, &n);
    burn_value *rows = burn_b_select(b, a->in[0], index, 0);
    int64_t dims[BURN_MAX_RANK + 1];
    memcpy(dims, meta->dims, sizeof(meta->dims));
    dims[meta->rank] = a->in_meta[0].dims[1];
    a->out[0] = meta->rank == 1 ? rows : burn_b_reshape(b, rows, (uint32_t)meta->rank + 1, dims);
    return BURN_OK;
}

static int32_t eval_embedding(const burn_eval *a)
{
    const burn_meta *table = &a->in[0].meta;
    uint64_t width = (uint64_t)table->dims[1];
    int32_t rc = check_values("embedding", "the table's number of rows is", &a->in[1],
                              table->dims[0], a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        uint64_t row = (uint64_t)burni_eval_get_int(&a->in[1], k / width);
        burni_eval_move(&a->out[0], k, &a->in[0], row * width + k % width);
    }
    return BURN_OK;
}

typedef struct embedding_sample {
    const char *name;
    int64_t table[2];
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    const double *values;
    uint32_t n_values;
    uint8_t index_dtype;
    int32_t error;
} embedding_sample;

static const embedding_sample embedding_rows[] = {
    {"a sentence", {7, 5}, 1, {9}, NULL, 0, BURN_I64, 0},
    {"a batch, i32", {11, 3}, 2, {3, 5}, NULL, 0, BURN_I32, 0},
    {"twice the same", {3, 2}, 1, {3}, lookup_twice, 3, BURN_I64, 0},
    {"one word", {4, 3}, 0, {0}, NULL, 0, BURN_I64, 0},
    {"no word", {4, 3}, 2, {2, 0}, NULL, 0, BURN_I64, 0},
    {"rows of nothing", {4, 0}, 1, {3}, NULL, 0, BURN_I64, 0},
    {"beyond the table", {3, 2}, 1, {3}, lookup_beyond, 3, BURN_I64, BURN_E_DATA},
    {"negative", {3, 2}, 1, {2}, lookup_negative, 2, BURN_I64, BURN_E_DATA},
    {"rank 9", {3, 2}, 8, {1, 1, 1, 1, 1, 1, 1, 1}, NULL, 0, BURN_I64, BURN_E_SHAPE},
};

static int32_t samples_embedding(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(embedding_rows) / sizeof(embedding_rows[0])) {
        return BURN_E_END;
    }
    const embedding_sample *row = &embedding_rows[i];
    burni_sample_begin(out, row->name, 0.0, 256.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 2, row->table);
    burni_sample_tensor(out, 1, row->index_dtype, BURN_FILL_INDEX, row->rank, row->dims);
    burni_sample_range(out, 1, 0.0, (double)row->table[0]);
    if (row->values != NULL) {
        burni_sample_values(out, 1, row->n_values, row->values);
    }
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special embedding_special[] = {
    {"a sentence", "special values", 1, 0},
};

static int32_t embedding_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_embedding, embedding_special,
                                 BURNI_N_SPECIAL(embedding_special));
}

static const burn_role embedding_roles[] = {
    BURNI_ROLE("table", 0, BURN_SET_NUMERIC),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_SET_INDEX),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC),
};

const burn_op_def burn_op_def_embedding = {
    BURNI_DEF(EMBEDDING, embedding),
    .summary = "The row of a table for each index",
    .n_in = 2,
    .n_out = 1,
    .roles = embedding_roles,
    .infer = infer_embedding,
    .vjp = vjp_embedding,
    .vjp_saves = lookup_saves,
    .decompose = decompose_embedding,
    .eval = eval_embedding,
    .samples = embedding_all_samples,
};

/* ---- one_hot --------------------------------------------------------------------------------- */

static int32_t infer_one_hot(const burn_infer *a)
{
    const burn_attrs_one_hot *s = BURNI_ATTRS(a, burn_attrs_one_hot);
    const burn_meta *index = a->in[0];
    int64_t dims[BURN_MAX_RANK + 1];
    if (s == NULL) {
        return burni_no_attrs("one_hot", a->err);
    }
    if (s->classes < 0) {
        return burni_fail(a->err, BURN_E_INVALID, "one_hot: classes is %lld, it starts at 0",
                          (long long)s->classes);
    }
    if (s->classes == 0 && burni_numel(index->rank, index->dims) != 0) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "one_hot: classes is 0, so no index can be in range; use 1 or more");
    }
    if (s->dtype >= 64 || ((UINT64_C(1) << s->dtype) & BURN_SET_ANY) == 0) {
        char all[96];
        return burni_fail(a->err, BURN_E_DTYPE,
                          "one_hot: %u is the code of no dtype; use one of %s",
                          (unsigned)s->dtype, burni_dtypes_text(all, sizeof(all), BURN_SET_ANY));
    }
    memcpy(dims, index->dims, sizeof(index->dims));
    dims[index->rank] = s->classes;
    a->out[0].dtype = (uint8_t)s->dtype;
    return burni_set_shape("one_hot", &a->out[0], (uint32_t)index->rank + 1, dims, a->err);
}

/* Ones scattered into zeros: linear in the result, and the scatter checks the index values. */
static int32_t decompose_one_hot(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_one_hot *s = BURNI_ATTRS(a, burn_attrs_one_hot);
    if (s == NULL || a->in_meta[0].rank >= BURN_MAX_RANK) {
        return BURN_E_INVALID;
    }
    burn_meta meta = a->in_meta[0];
    uint32_t rank = (uint32_t)meta.rank + 1;
    meta.dims[rank - 1] = 1;
    burn_value *index = burn_b_reshape(b, a->in[0], rank, meta.dims);
    burn_value *ones = burn_b_fill(b, s->dtype, rank, meta.dims, 1.0);
    meta.dims[rank - 1] = s->classes;
    burn_value *zeros = burn_b_fill(b, s->dtype, rank, meta.dims, 0.0);
    a->out[0] = burn_b_scatter(b, zeros, index, ones, (int64_t)rank - 1, BURN_SCATTER_ASSIGN);
    return BURN_OK;
}

static int32_t eval_one_hot(const burn_eval *a)
{
    const burn_attrs_one_hot *s = (const burn_attrs_one_hot *)a->attrs;
    int32_t rc =
        check_values("one_hot", "the number of classes is", &a->in[0], s->classes, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        uint64_t row = k / (uint64_t)s->classes;
        int64_t klass = (int64_t)(k % (uint64_t)s->classes);
        int hot = burni_eval_get_int(&a->in[0], row) == klass;
        burni_eval_set(&a->out[0], k, hot ? 1.0 : 0.0);
    }
    return BURN_OK;
}

typedef struct one_hot_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    burn_attrs_one_hot attrs;
    const double *values;
    uint32_t n_values;
    int32_t error;
} one_hot_sample;

#define ONE_HOT_HEAD BURNI_HEAD(burn_attrs_one_hot)

static const one_hot_sample one_hot_rows[] = {
    {"labels", 1, {7}, {ONE_HOT_HEAD, 5, BURN_F32, 0}, NULL, 0, 0},
    {"to i64", 2, {2, 3}, {ONE_HOT_HEAD, 4, BURN_I64, 0}, NULL, 0, 0},
    {"to bool", 1, {3}, {ONE_HOT_HEAD, 3, BURN_BOOL, 0}, NULL, 0, 0},
    {"rank 0", 0, {0}, {ONE_HOT_HEAD, 3, BURN_F32, 0}, NULL, 0, 0},
    {"no label", 1, {0}, {ONE_HOT_HEAD, 3, BURN_F32, 0}, NULL, 0, 0},
    {"beyond the classes", 1, {3}, {ONE_HOT_HEAD, 3, BURN_F32, 0}, lookup_beyond, 3, BURN_E_DATA},
    {"negative", 1, {2}, {ONE_HOT_HEAD, 3, BURN_F32, 0}, lookup_negative, 2, BURN_E_DATA},
    {"classes below 0", 1, {2}, {ONE_HOT_HEAD, -1, BURN_F32, 0}, NULL, 0, BURN_E_INVALID},
    {"no dtype", 1, {2}, {ONE_HOT_HEAD, 3, 0, 0}, NULL, 0, BURN_E_DTYPE},
};

static int32_t samples_one_hot(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(one_hot_rows) / sizeof(one_hot_rows[0])) {
        return BURN_E_END;
    }
    const one_hot_sample *row = &one_hot_rows[i];
    burni_sample_begin(out, row->name, 0.0, 0.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_INDEX, row->rank, row->dims);
    burni_sample_range(out, 0, 0.0, row->attrs.classes > 0 ? (double)row->attrs.classes : 1.0);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    out->flags |= BURN_SAMPLE_NO_GRAD;
    if (row->values != NULL) {
        burni_sample_values(out, 0, row->n_values, row->values);
    }
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burn_role one_hot_roles[] = {
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_SET_INDEX),
    BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_SET_ANY),
};

static const burn_attr one_hot_attrs[] = {
    BURNI_ATTR(burn_attrs_one_hot, classes, BURN_ATTR_I64, BURN_ATTR_DIM, "number of classes"),
    BURNI_ATTR(burn_attrs_one_hot, dtype, BURN_ATTR_DTYPE, BURN_ATTR_KEY, "dtype of the result"),
};

const burn_op_def burn_op_def_one_hot = {
    BURNI_DEF(ONE_HOT, one_hot),
    .summary = "A row of zeros with a one at the place that the index names",
    .n_in = 1,
    .n_out = 1,
    .roles = one_hot_roles,
    .attrs = one_hot_attrs,
    .n_attrs = 2,
    .attrs_size = (uint32_t)sizeof(burn_attrs_one_hot),
    .infer = infer_one_hot,
    .no_vjp = "one_hot: an index is an integer and has no gradient",
    .decompose = decompose_one_hot,
    .eval = eval_one_hot,
    .samples = samples_one_hot,
};
