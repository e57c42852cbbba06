/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rules.c - shape rules, error text and small helpers that op definitions share.
 *
 * Owns no op and no state. Everything is pure and allocates nothing; errors name op, argument,
 * shapes and remedy. To add a rule: declare it in rules.h, define it here.
 */
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

const char *burni_shape_text(char *buffer, uint32_t size, uint32_t rank, const int64_t *dims)
{
    uint32_t used = 0;
    if (size == 0) {
        return "";
    }
    buffer[0] = '\0';
    for (uint32_t i = 0; i <= rank && used + 1 < size; i++) {
        int n;
        if (i == rank) {
            n = snprintf(buffer + used, size - used, rank == 0 ? "[]" : "]");
        } else {
            n = snprintf(buffer + used, size - used, "%s%lld", i == 0 ? "[" : ",",
                         (long long)dims[i]);
        }
        used += n > 0 ? (uint32_t)n : 0;
    }
    return buffer;
}

const char *burni_dtypes_text(char *buffer, uint32_t size, uint64_t set)
{
    uint32_t used = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < 64 && used < size; i++) {
        if ((set >> i & 1) != 0 && burn_dtype_size((uint8_t)i) != 0) {
            int n = snprintf(buffer + used, size - used, "%s%s", used > 0 ? ", " : "",
                             burn_dtype_name((uint8_t)i));
            used += n > 0 ? (uint32_t)n : 0;
        }
    }
    return buffer;
}

int64_t burni_numel(uint32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    int empty = 0;
    int overflow = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return -1;
        }
        if (dims[i] == 0) {
            empty = 1;
        } else if (n > INT64_MAX / dims[i]) {
            overflow = 1;
        } else {
            n *= dims[i];
        }
    }
    if (empty) {
        return 0;
    }
    return overflow ? -1 : n;
}

int32_t burni_broadcast(const char *what, const burn_meta *a, const burn_meta *b, burn_meta *out,
                        burn_err *err)
{
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[BURN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < rank; i++) {
        /* i counts from the last dim */
        int64_t da = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        int64_t db = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (da != db && da != 1 && db != 1) {
            char ta[192];
            char tb[192];
            return burni_fail(err, BURN_E_SHAPE,
                              "%s: shapes %s and %s do not broadcast: dim %d from the end is %lld "
                              "and %lld, they must be equal or one of them 1",
                              what, burni_shape_text(ta, sizeof(ta), a->rank, a->dims),
                              burni_shape_text(tb, sizeof(tb), b->rank, b->dims), (int)i + 1,
                              (long long)da, (long long)db);
        }
        dims[rank - 1 - i] = da == 1 ? db : da;
    }
    out->rank = (uint8_t)rank;
    memcpy(out->dims, dims, sizeof(dims));
    return BURN_OK;
}

int32_t burni_check_axis(const char *op, int64_t axis, uint32_t rank, burn_err *err)
{
    if (axis >= 0 && axis < (int64_t)rank) {
        return BURN_OK;
    }
    if (rank == 0) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: axis %lld of a tensor of rank 0, which has no axes", op,
                          (long long)axis);
    }
    if (axis < 0 && axis >= -(int64_t)rank) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: axis %lld; attributes count from the front, use 0 to %u", op,
                          (long long)axis, (unsigned)rank - 1);
    }
    return burni_fail(err, BURN_E_INVALID, "%s: axis %lld is out of range, use -%u to %u", op,
                      (long long)axis, (unsigned)rank, (unsigned)rank - 1);
}

int32_t burni_check_axes(const char *op, const burn_attrs_axes *a, uint32_t rank, burn_err *err)
{
    if (a->n_axes > BURN_MAX_RANK) {
        return burni_fail(err, BURN_E_INVALID, "%s: %u axes given, at most %d are possible", op,
                          (unsigned)a->n_axes, BURN_MAX_RANK);
    }
    for (uint32_t i = 0; i < a->n_axes; i++) {
        int32_t rc = burni_check_axis(op, a->axes[i], rank, err);
        if (rc != BURN_OK) {
            return rc;
        }
        if (i > 0 && a->axes[i] <= a->axes[i - 1]) {
            return burni_fail(err, BURN_E_INVALID,
                              "%s: axes must be given in ascending order and once each, found "
                              "%lld after %lld",
                              op, (long long)a->axes[i], (long long)a->axes[i - 1]);
        }
    }
    return BURN_OK;
}

int burni_is_reduced(const burn_attrs_axes *a, uint32_t axis)
{
    if (a->n_axes == 0) {
        return 1;
    }
    for (uint32_t i = 0; i < a->n_axes && i < BURN_MAX_RANK; i++) {
        if (a->axes[i] == (int64_t)axis) {
            return 1;
        }
    }
    return 0;
}

int64_t burni_reduced_count(const burn_meta *in, const burn_attrs_axes *a)
{
    int64_t dims[BURN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (burni_is_reduced(a, i)) {
            dims[n++] = in->dims[i];
        }
    }
    return burni_numel(n, dims);
}

int32_t burni_reduced_shape(const char *op, const burn_meta *in, const burn_attrs_axes *a,
                            burn_meta *out, burn_err *err)
{
    int32_t rc = burni_check_axes(op, a, in->rank, err);
    if (rc != BURN_OK) {
        return rc;
    }
    uint32_t rank = 0;
    int64_t dims[BURN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!burni_is_reduced(a, i)) {
            dims[rank++] = in->dims[i];
        } else if (a->keepdims) {
            dims[rank++] = 1;
        }
    }
    out->rank = (uint8_t)rank;
    memcpy(out->dims, dims, sizeof(dims));
    return BURN_OK;
}

int32_t burni_infer_same(const burn_infer *a)
{
    const burn_meta *in = a->in[0];
    burn_meta *out = &a->out[0];
    out->rank = in->rank;
    memcpy(out->dims, in->dims, sizeof(out->dims));
    if (out->dtype == BURN_DTYPE_NONE) {
        out->dtype = in->dtype;
    }
    return BURN_OK;
}

int32_t burni_no_attrs(const char *op, burn_err *err)
{
    return burni_fail(err, BURN_E_INVALID,
                      "%s: the attribute struct is missing or shorter than this op's", op);
}

/* ---- attribute rows -------------------------------------------------------------------------- */

const burn_attr burni_attrs_axis_rows[BURNI_N_ATTRS_AXIS] = {
    BURNI_ATTR(burn_attrs_axis, axis, BURN_ATTR_I64, BURN_ATTR_KEY, "axis, 0 <= axis < rank"),
    BURNI_ATTR(burn_attrs_axis, keepdims, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "argmax and argmin: 1 keeps the axis with size 1"),
};

const burn_attr burni_attrs_axes_rows[BURNI_N_ATTRS_AXES] = {
    BURNI_ATTR(burn_attrs_axes, n_axes, BURN_ATTR_U32, BURN_ATTR_KEY,
               "number of axes, 0 for all of them"),
    BURNI_ATTR(burn_attrs_axes, keepdims, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1 keeps reduced axes with size 1"),
    BURNI_ATTR(burn_attrs_axes, axes, BURN_ATTR_I64_LIST, BURN_ATTR_KEY,
               "axes, ascending and distinct"),
    BURNI_ATTR(burn_attrs_axes, correction, BURN_ATTR_I64, BURN_ATTR_KEY,
               "var: the divisor is n - correction"),
};

const burn_attr burni_attrs_shape_rows[BURNI_N_ATTRS_SHAPE] = {
    BURNI_ATTR(burn_attrs_shape, n_dims, BURN_ATTR_U32, BURN_ATTR_KEY, "rank of the output"),
    BURNI_ATTR(burn_attrs_shape, dtype, BURN_ATTR_DTYPE, BURN_ATTR_KEY, "dtype of the output"),
    BURNI_ATTR(burn_attrs_shape, dims, BURN_ATTR_I64_LIST, BURN_ATTR_DIM, "dims of the output"),
};

/* ---- lines and losses ------------------------------------------------------------------------ */

static const burn_attr *find_attr(const burn_op_def *d, uint32_t type, const char *name)
{
    const burn_attr *found = NULL;
    for (uint32_t i = 0; i < d->n_attrs; i++) {
        const char *row = (const char *)d->attrs + (size_t)i * d->attr_stride;
        const burn_attr *a = (const burn_attr *)(const void *)row;
        found = a->type == type && strcmp(a->name, name) == 0 ? a : found;
    }
    return found;
}

/* The attribute that says what a line is, or NULL. */
static const burn_attr *line_attr(const burn_op_def *d)
{
    const burn_attr *axis = find_attr(d, BURN_ATTR_I64, "axis");
    return axis != NULL ? axis : find_attr(d, BURN_ATTR_U32, "n_axes");
}

int burni_is_loss(const burn_op_def *d)
{
    return d->fuse == BURN_FUSE_REDUCE && find_attr(d, BURN_ATTR_U32, "reduction") != NULL;
}

int burni_loss_reduces(const burn_op_def *d, const void *attrs)
{
    uint32_t reduction = BURN_REDUCTION_NONE;
    const burn_attr *a = find_attr(d, BURN_ATTR_U32, "reduction");
    memcpy(&reduction, (const char *)attrs + a->offset, sizeof(reduction));
    return reduction != BURN_REDUCTION_NONE;
}

int burni_goes_over_lines(const burn_op_def *d)
{
    return d->n_out == 1 && d->effect == BURN_EFFECT_PURE && line_attr(d) != NULL;
}

uint32_t burni_line_axes(const burn_op_def *d, const void *attrs, uint32_t rank)
{
    const burn_attr *a = line_attr(d);
    const char *field = (const char *)attrs + a->offset;
    int64_t axis = 0;
    uint32_t n = 0;
    if (a->type == BURN_ATTR_U32) {
        memcpy(&n, field, sizeof(n));
        return n <= rank ? n : 0;
    }
    memcpy(&axis, field, sizeof(axis));
    return axis + 1 == (int64_t)rank;
}

void burni_set_line_axis(const burn_op_def *d, void *attrs)
{
    const burn_attr *a = line_attr(d);
    const int64_t axis = 1;
    const uint32_t n = 1;
    char *field = (char *)attrs + a->offset;
    if (a->type == BURN_ATTR_U32) {
        memcpy(field, &n, sizeof(n));
    } else {
        memcpy(field, &axis, sizeof(axis));
    }
}

/* ---- eval ------------------------------------------------------------------------------------ */

void burni_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides)
{
    uint64_t step = 1; /* unsigned: beside a dim of 0 the others may be of any size */
    for (uint32_t i = rank; i > 0; i--) {
        strides[i - 1] = (int64_t)step;
        step *= (uint64_t)dims[i - 1];
    }
}

int burni_next_index(uint32_t rank, const int64_t *dims, int64_t *index)
{
    for (uint32_t i = rank; i > 0; i--) {
        if (++index[i - 1] < dims[i - 1]) {
            return 1;
        }
        index[i - 1] = 0;
    }
    return 0;
}

void burni_broadcast_strides(const burn_meta *in, const burn_meta *out, int64_t *strides)
{
    int64_t dense[BURN_MAX_RANK];
    burni_dense_strides(in->rank, in->dims, dense);
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t skip = (uint32_t)out->rank - in->rank;
        int absent = i < skip || in->dims[i - skip] == 1;
        strides[i] = absent ? 0 : dense[i - skip];
    }
}

int64_t burni_offset(uint32_t rank, const int64_t *index, const int64_t *strides)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < rank; i++) {
        offset += index[i] * strides[i];
    }
    return offset;
}

double burni_eval_get(const burn_eval_operand *x, uint64_t k)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return x->f[k];
    }
    return klass == BURN_CLASS_UINT ? (double)x->u[k] : (double)x->i[k];
}

int64_t burni_eval_get_int(const burn_eval_operand *x, uint64_t k)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return burni_saturate_int(x->f[k], BURN_I64);
    }
    return klass == BURN_CLASS_UINT ? (int64_t)x->u[k] : x->i[k];
}

int64_t burni_saturate_int(double value, uint8_t dtype)
{
    uint32_t bits = burn_dtype_size(dtype) * 8;
    double limit = ldexp(1.0, (int)bits - 1);
    if (isnan(value) || bits == 0) {
        return 0;
    }
    if (value >= limit) {
        return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
    }
    if (value <= -limit) {
        return bits == 64 ? INT64_MIN : -(int64_t)(UINT64_C(1) << (bits - 1));
    }
    return (int64_t)value;
}

uint64_t burni_saturate_uint(double value, uint8_t dtype)
{
    uint32_t bits = burn_dtype_size(dtype) * 8;
    double limit = ldexp(1.0, (int)bits);
    if (isnan(value) || value <= 0.0 || bits == 0) {
        return 0;
    }
    if (value >= limit) {
        return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    }
    return (uint64_t)value;
}

void burni_eval_set(burn_eval_operand *x, uint64_t k, double value)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        x->f[k] = value;
    } else if (klass == BURN_CLASS_UINT) {
        x->u[k] = burni_saturate_uint(value, x->meta.dtype);
    } else if (klass == BURN_CLASS_BOOL) {
        x->i[k] = value != 0.0;
    } else {
        x->i[k] = burni_saturate_int(value, x->meta.dtype);
    }
}

void burni_eval_move(burn_eval_operand *to, uint64_t k, const burn_eval_operand *from, uint64_t j)
{
    uint32_t klass = burn_dtype_class(from->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        to->f[k] = from->f[j];
    } else if (klass == BURN_CLASS_UINT) {
        to->u[k] = from->u[j];
    } else {
        to->i[k] = from->i[j];
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

void burni_sample_begin(burn_sample *s, const char *name, double tolerance, double grad_tolerance)
{
    memset(s, 0, sizeof(*s));
    s->struct_size = (uint32_t)sizeof(*s);
    s->name = name;
    s->tolerance = tolerance;
    s->grad_tolerance = grad_tolerance;
}

static burn_sample_operand *sample_slot(burn_sample *s, uint32_t i)
{
    if (s->n_in <= i) {
        s->n_in = i + 1;
    }
    return &s->in[i];
}

void burni_sample_absent(burn_sample *s, uint32_t i)
{
    memset(sample_slot(s, i), 0, sizeof(burn_sample_operand));
}

void burni_sample_tensor(burn_sample *s, uint32_t i, uint8_t dtype, uint8_t fill, uint32_t rank,
                         const int64_t *dims)
{
    burn_sample_operand *x = sample_slot(s, i);
    x->kind = BURN_TENSOR;
    x->dtype = dtype;
    x->fill = fill;
    x->rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank && d < BURN_MAX_RANK; d++) {
        x->dims[d] = dims[d];
    }
}

void burni_sample_range(burn_sample *s, uint32_t i, double lo, double hi)
{
    burn_sample_operand *x = sample_slot(s, i);
    x->lo = lo;
    x->hi = hi;
}

void burni_sample_values(burn_sample *s, uint32_t i, uint32_t n, const double *values)
{
    burn_sample_operand *x = sample_slot(s, i);
    x->fill = BURN_FILL_VALUES;
    x->n_values = n;
    x->values = values;
}

void burni_sample_immediate(burn_sample *s, uint32_t i, uint8_t dtype, double value)
{
    burn_sample_operand *x = sample_slot(s, i);
    x->kind = BURN_IMMEDIATE;
    x->dtype = dtype;
    x->lo = value;
}

void burni_sample_attrs(burn_sample *s, const void *attrs, uint32_t size)
{
    if (size <= BURN_MAX_ATTRS) {
        memcpy(s->attrs, attrs, size);
        s->attrs_size = size;
    }
}

/* Small whole numbers, whose sums are exact in any order, and few others: some sums stay finite. */
static const double nonfinite_even[] = {
    1, -2, 3, 0, 2, -1, 0, (double)INFINITY, 1, -3, 2, 1, -1, 0, 3, 2, -2, 1, 0, 1, -1,
    2, 3,  0, 1, 1, -2, 2, 0, 3, (double)NAN, -1, 1, 0, 2, 1, -3, 0, 2, -1, 1,
};
static const double nonfinite_odd[] = {
    2, -1, 1, 0, -2, 1, 3, -1, 2, 1, 0, (double)-INFINITY, 1, 2, -1, 3, 0, 1, -2,
    1, 2,  0, 3, -1, 1, 2, 1,  0, -1, 2, 3, 1, -2, 1, 0, 2, -1,
};

void burni_sample_nonfinite(burn_sample *s, uint32_t i)
{
    const double *values = i % 2 == 0 ? nonfinite_even : nonfinite_odd;
    size_t size = i % 2 == 0 ? sizeof(nonfinite_even) : sizeof(nonfinite_odd);
    s->in[i].fill = BURN_FILL_VALUES;
    burni_sample_values(s, i, (uint32_t)(size / sizeof(values[0])), values);
    s->flags |= BURN_SAMPLE_NO_GRAD;
}

void burni_sample_error(burn_sample *s, int32_t code)
{
    s->flags |= BURN_SAMPLE_ERROR;
    s->error = code;
}
