/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool_adaptive.c - adaptive_avg_pool2d and adaptive_max_pool2d: pools of a given result size.
 *
 * Window i of m over n elements is [floor(i * n / m), ceil((i + 1) * n / m)). Windows of one plane
 * differ in length by one at most, so the decompositions gather them with the last element repeated
 * and mask that (average) or never choose it (maximum: the first of equals wins). One axis is
 * pooled after the other. Where m divides n the windows are a reshape. Gradients are those of the
 * decompositions: nothing is multiplied by a matrix of weights, so an infinity stays in its window.
 */
#include "ops/parts.h"

#include <math.h>
#include <string.h>

/* ---- shared ---------------------------------------------------------------------------------- */

static int32_t infer_adaptive(const char *op, const burn_infer *a)
{
    const burn_attrs_adaptive *s = BURNI_ATTRS(a, burn_attrs_adaptive);
    const burn_meta *x = a->in[0];
    if (s == NULL) {
        return burni_no_attrs(op, a->err);
    }
    int32_t rc = burni_check_pair(op, "size", s->size, 0, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    int empty = x->rank == 4 && ((x->dims[2] == 0 && s->size[0] > 0) ||
                                 (x->dims[3] == 0 && s->size[1] > 0));
    int large = s->size[0] > INT32_MAX || s->size[1] > INT32_MAX;
    if (large) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "%s: size is %lld x %lld; a side must be below 2^31", op,
                          (long long)s->size[0], (long long)s->size[1]);
    }
    if (x->rank != 4 || empty || x->dims[2] > INT32_MAX || x->dims[3] > INT32_MAX) {
        char text[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: x is %s; it must have rank 4, [batch, channels, height, width], and "
                          "a plane with elements, below 2^31 a side",
                          op, burni_shape_text(text, sizeof(text), x->rank, x->dims));
    }
    const int64_t dims[4] = {x->dims[0], x->dims[1], s->size[0], s->size[1]};
    return burni_set_shape(op, &a->out[0], 4, dims, a->err);
}

static int64_t window_start(int64_t i, int64_t n, int64_t m)
{
    return i * n / m;
}

static int64_t window_end(int64_t i, int64_t n, int64_t m)
{
    return ((i + 1) * n + m - 1) / m;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Window i has ceil((r + n) / m) elements, where r = i * n mod m. The remainders are the multiples
 * of gcd(n, m) below m, so the largest is m - gcd.
 */
static int64_t longest_window(int64_t n, int64_t m)
{
    return m > 0 ? (m - common_divisor(n, m) + n + m - 1) / m : 0;
}

/* Starts and ends of the m windows over n elements, as i64 columns [m, 1]. */
static void window_bounds(const burn_builder *b, int64_t n, int64_t m, burn_value **out_start,
                          burn_value **out_end)
{
    const int64_t column[2] = {m, 1};
    burn_value *i = burn_b_reshape(b, burn_b_arange(b, BURN_I64, m, 0.0, 1.0), 2, column);
    burn_value *from = burn_b_mul_num(b, i, (double)n);
    *out_start = burn_b_div_num(b, from, (double)m);
    *out_end = burn_b_div_num(b, burn_b_add_num(b, from, (double)(n + m - 1)), (double)m);
}

/*
 * x [.., n, ..] with the axis as windows [.., m, length, ..]. `out_mask` is NULL, or bool
 * [m, length]: 0 where a window's last element is repeated.
 */
static burn_value *windows(const burn_builder *b, burn_value *x, const burn_meta *meta,
                           int64_t axis, int64_t m, burn_value **out_mask, int64_t *out_length)
{
    int64_t n = meta->dims[axis];
    int64_t length = longest_window(n, m);
    int64_t dims[5];
    *out_mask = NULL;
    *out_length = length;
    if (n % m != 0) {
        burn_value *start;
        burn_value *end;
        const int64_t count[1] = {m * length};
        window_bounds(b, n, m, &start, &end);
        burn_value *at = burn_b_add(b, start, burn_b_arange(b, BURN_I64, length, 0.0, 1.0));
        *out_mask = burn_b_less(b, at, end);
        at = burn_b_minimum(b, at, burn_b_sub_num(b, end, 1.0));
        x = burn_b_select(b, x, burn_b_reshape(b, at, 1, count), axis);
    }
    for (uint32_t i = 0; i < 5; i++) {
        dims[i] = meta->dims[i <= axis ? i : i - 1];
    }
    dims[axis] = m;
    dims[axis + 1] = length;
    return burn_b_reshape(b, x, 5, dims);
}

typedef struct adaptive_sample {
    const char *name;
    uint32_t rank;
    int64_t x[5];
    int64_t size[2];
    int32_t error;
} adaptive_sample;

static const adaptive_sample adaptive_rows[] = {
    {"uneven", 4, {2, 3, 5, 7}, {3, 4}, 0},
    {"even", 4, {1, 2, 4, 6}, {2, 3}, 0},
    {"all of it", 4, {2, 3, 5, 3}, {1, 1}, 0},
    {"identity", 4, {1, 2, 3, 5}, {3, 5}, 0},
    {"larger than x", 4, {1, 1, 2, 3}, {5, 4}, 0},
    {"one element to many", 4, {1, 1, 1, 1}, {3, 2}, 0},
    {"no batch", 4, {0, 2, 5, 5}, {2, 2}, 0},
    {"nothing wanted", 4, {1, 2, 5, 5}, {0, 2}, 0},
    {"no height", 4, {1, 2, 0, 5}, {2, 2}, BURN_E_SHAPE},
    {"rank 3", 3, {2, 5, 5}, {2, 2}, BURN_E_SHAPE},
    {"size below 0", 4, {1, 2, 5, 5}, {-1, 2}, BURN_E_INVALID},
};

static int32_t samples_adaptive(uint32_t i, burn_sample *out, double tolerance)
{
    if (i >= sizeof(adaptive_rows) / sizeof(adaptive_rows[0])) {
        return BURN_E_END;
    }
    const adaptive_sample *row = &adaptive_rows[i];
    burn_attrs_adaptive attrs = {BURNI_HEAD(burn_attrs_adaptive), {row->size[0], row->size[1]}};
    burni_sample_begin(out, row->name, tolerance, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_DISTINCT, row->rank, row->x);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burn_attr adaptive_attrs[] = {
    BURNI_ATTR(burn_attrs_adaptive, size[0], BURN_ATTR_I64, BURN_ATTR_DIM, "the result's height"),
    BURNI_ATTR(burn_attrs_adaptive, size[1], BURN_ATTR_I64, BURN_ATTR_DIM, "the result's width"),
};

/* ---- adaptive_avg_pool2d --------------------------------------------------------------------- */

static int32_t infer_avg(const burn_infer *a)
{
    return infer_adaptive("adaptive_avg_pool2d", a);
}

/* Averages the windows of one axis; the number of elements is a column for axis 2. */
static burn_value *average_axis(const burn_builder *b, burn_value *x, burn_meta *meta,
                                int64_t axis, int64_t m)
{
    burn_value *mask;
    int64_t length;
    int64_t n = meta->dims[axis];
    burn_value *y = windows(b, x, meta, axis, m, &mask, &length);
    meta->dims[axis] = m;
    if (mask == NULL) {
        y = burn_b_reduce1(b, BURN_OP_SUM, y, axis + 1, 0);
        return burn_b_div_num(b, y, (double)length);
    }
    burn_value *start;
    burn_value *end;
    window_bounds(b, n, m, &start, &end);
    burn_value *count = burn_b_cast(b, burn_b_sub(b, end, start), meta->dtype);
    if (axis == 2) {
        const int64_t shape[3] = {m, length, 1};
        mask = burn_b_reshape(b, mask, 3, shape);
    } else {
        const int64_t shape[1] = {m};
        count = burn_b_reshape(b, count, 1, shape);
    }
    y = burn_b_where(b, mask, y, burn_b_num(b, y, 0.0));
    y = burn_b_reduce1(b, BURN_OP_SUM, y, axis + 1, 0);
    return burn_b_div(b, y, count);
}

static int32_t decompose_avg(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_adaptive *s = BURNI_ATTRS(a, burn_attrs_adaptive);
    burn_meta meta = a->in_meta[0];
    uint8_t dtype = meta.dtype;
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    if (s->size[0] == 0 || s->size[1] == 0) {
        meta.dims[2] = s->size[0];
        meta.dims[3] = s->size[1];
        a->out[0] = burni_b_zeros(b, &meta);
        return BURN_OK;
    }
    meta.dtype = dtype == BURN_F64 ? BURN_F64 : BURN_F32;
    burn_value *y = dtype == meta.dtype ? a->in[0] : burn_b_cast(b, a->in[0], meta.dtype);
    y = average_axis(b, y, &meta, 3, s->size[1]);
    y = average_axis(b, y, &meta, 2, s->size[0]);
    a->out[0] = dtype == meta.dtype ? y : burn_b_cast(b, y, dtype);
    return BURN_OK;
}

static int32_t eval_avg(const burn_eval *a)
{
    const burn_meta *x = &a->in[0].meta;
    const burn_meta *y = &a->out[0].meta;
    for (int64_t k = 0; k < (int64_t)a->out[0].n; k++) {
        int64_t ow = k % y->dims[3];
        int64_t oh = k / y->dims[3] % y->dims[2];
        int64_t plane = k / y->dims[3] / y->dims[2];
        double sum = 0.0;
        double count = 0.0;
        for (int64_t h = window_start(oh, x->dims[2], y->dims[2]);
             h < window_end(oh, x->dims[2], y->dims[2]); h++) {
            for (int64_t w = window_start(ow, x->dims[3], y->dims[3]);
                 w < window_end(ow, x->dims[3], y->dims[3]); w++) {
                sum += a->in[0].f[(plane * x->dims[2] + h) * x->dims[3] + w];
                count += 1.0;
            }
        }
        a->out[0].f[k] = sum / count;
    }
    return BURN_OK;
}

static int32_t samples_avg(uint32_t i, burn_sample *out)
{
    return samples_adaptive(i, out, 32.0);
}

static const burni_special adaptive_avg_pool2d_special[] = {
    {"uneven", "special values", 0, 1},
    {"even", "special values, even", 0, 1},
};

static int32_t adaptive_avg_pool2d_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_avg, adaptive_avg_pool2d_special,
                                 BURNI_N_SPECIAL(adaptive_avg_pool2d_special));
}

static const burn_role avg_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

const burn_op_def burn_op_def_adaptive_avg_pool2d = {
    BURNI_DEF(ADAPTIVE_AVG_POOL2D, adaptive_avg_pool2d),
    .summary = "Average over as many even windows of a plane as the result has elements",
    .n_in = 1,
    .n_out = 1,
    .roles = avg_roles,
    .attrs = adaptive_attrs,
    .n_attrs = 2,
    .attrs_size = (uint32_t)sizeof(burn_attrs_adaptive),
    .infer = infer_avg,
    .decompose = decompose_avg,
    .eval = eval_avg,
    .samples = adaptive_avg_pool2d_all_samples,
};

/* ---- adaptive_max_pool2d --------------------------------------------------------------------- */

static int32_t infer_max(const burn_infer *a)
{
    return infer_adaptive("adaptive_max_pool2d", a);
}

static burn_value *maximum_axis(const burn_builder *b, burn_value *x, burn_meta *meta,
                                int64_t axis, int64_t m)
{
    burn_value *mask;
    int64_t length;
    burn_value *y = windows(b, x, meta, axis, m, &mask, &length);
    meta->dims[axis] = m;
    if (length > 1) {
        burn_value *at = burn_b_axis(b, BURN_OP_ARGMAX, y, axis + 1, 1);
        y = burn_b_gather(b, y, at, axis + 1);
    }
    return burni_b_reshape_to(b, y, meta);
}

static int32_t decompose_max(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_adaptive *s = BURNI_ATTRS(a, burn_attrs_adaptive);
    burn_meta meta = a->in_meta[0];
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    if (s->size[0] == 0 || s->size[1] == 0) {
        meta.dims[2] = s->size[0];
        meta.dims[3] = s->size[1];
        a->out[0] = burni_b_zeros(b, &meta);
        return BURN_OK;
    }
    burn_value *y = maximum_axis(b, a->in[0], &meta, 3, s->size[1]);
    a->out[0] = maximum_axis(b, y, &meta, 2, s->size[0]);
    return BURN_OK;
}

static int beats(const burn_eval_operand *x, int64_t at, int64_t chosen)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return !isnan(x->f[chosen]) && (isnan(x->f[at]) || x->f[at] > x->f[chosen]);
    }
    return klass == BURN_CLASS_UINT ? x->u[at] > x->u[chosen] : x->i[at] > x->i[chosen];
}

static int32_t eval_max(const burn_eval *a)
{
    const burn_meta *x = &a->in[0].meta;
    const burn_meta *y = &a->out[0].meta;
    for (int64_t k = 0; k < (int64_t)a->out[0].n; k++) {
        int64_t ow = k % y->dims[3];
        int64_t oh = k / y->dims[3] % y->dims[2];
        int64_t plane = k / y->dims[3] / y->dims[2];
        int64_t chosen = -1;
        for (int64_t h = window_start(oh, x->dims[2], y->dims[2]);
             h < window_end(oh, x->dims[2], y->dims[2]); h++) {
            for (int64_t w = window_start(ow, x->dims[3], y->dims[3]);
                 w < window_end(ow, x->dims[3], y->dims[3]); w++) {
                int64_t at = (plane * x->dims[2] + h) * x->dims[3] + w;
                chosen = chosen < 0 || beats(&a->in[0], at, chosen) ? at : chosen;
            }
        }
        burni_eval_move(&a->out[0], (uint64_t)k, &a->in[0], (uint64_t)chosen);
    }
    return BURN_OK;
}

static int32_t samples_max(uint32_t i, burn_sample *out)
{
    return samples_adaptive(i, out, 0.0);
}

static const burni_special adaptive_max_pool2d_special[] = {
    {"uneven", "special values", 1, 0},
    {"even", "special values, even", 0, 1},
    {"uneven", "special values, few", 0, 1},
};

static int32_t adaptive_max_pool2d_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_max, adaptive_max_pool2d_special,
                                 BURNI_N_SPECIAL(adaptive_max_pool2d_special));
}

static const burn_role max_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC),
};

const burn_op_def burn_op_def_adaptive_max_pool2d = {
    BURNI_DEF(ADAPTIVE_MAX_POOL2D, adaptive_max_pool2d),
    .summary = "Largest element of as many even windows of a plane as the result has elements",
    .n_in = 1,
    .n_out = 1,
    .roles = max_roles,
    .attrs = adaptive_attrs,
    .n_attrs = 2,
    .attrs_size = (uint32_t)sizeof(burn_attrs_adaptive),
    .infer = infer_max,
    .decompose = decompose_max,
    .eval = eval_max,
    .samples = adaptive_max_pool2d_all_samples,
};
