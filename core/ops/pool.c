/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pool.c - avg_pool2d, and what pool.h promises to the other pooling definitions.
 *
 * max_pool2d and its gradient are in max_pool.c, the adaptive pools in pool_adaptive.c. The average
 * divides by the window clipped to the padded extent (count_include_pad) or to x. Its gradient is
 * that of its decomposition, so it uses the same divisor. Half precision sums in f32.
 */
#include "ops/pool.h"

#include <string.h>

#define POOL_ATTR(field, klass, doc)                                                               \
    BURNI_ATTR(burn_attrs_pool, field, BURN_ATTR_I64, BURN_ATTR_##klass, doc)

const burn_attr burni_attrs_pool_rows[BURNI_N_ATTRS_POOL] = {
    POOL_ATTR(kernel[0], KEY, "the window's height"),
    POOL_ATTR(kernel[1], KEY, "the window's width"),
    POOL_ATTR(stride[0], KEY, "step of the windows, height"),
    POOL_ATTR(stride[1], KEY, "step of the windows, width"),
    POOL_ATTR(padding[0], KEY, "on both sides, height; at most half of the window"),
    POOL_ATTR(padding[1], KEY, "on both sides, width; at most half of the window"),
    POOL_ATTR(dilation[0], KEY, "distance of the window's elements, height; average: 1"),
    POOL_ATTR(dilation[1], KEY, "distance of the window's elements, width; average: 1"),
    BURNI_ATTR(burn_attrs_pool, ceil_mode, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1: a last window may reach beyond the right border"),
    BURNI_ATTR(burn_attrs_pool, count_include_pad, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "average: 1 counts padding among the elements"),
    POOL_ATTR(size[0], DIM, "max_pool2d_grad: height of the input"),
    POOL_ATTR(size[1], DIM, "max_pool2d_grad: width of the input"),
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static int32_t no_window(const char *op, const burni_pool *d, int axis, burn_err *err)
{
    const burn_attrs_pool *a = d->attrs;
    return burni_fail(err, BURN_E_SHAPE,
                      "%s: a window of %lld, dilation %lld, padding %lld holds no element of %s "
                      "%lld; take a smaller window or a larger input",
                      op, (long long)a->kernel[axis], (long long)a->dilation[axis],
                      (long long)a->padding[axis], axis == 0 ? "height" : "width",
                      (long long)(axis == 0 ? d->h : d->w));
}

static int32_t resolve_axis(const char *op, const burni_pool *d, int axis, int64_t *out,
                            burn_err *err)
{
    const burn_attrs_pool *a = d->attrs;
    int64_t size = axis == 0 ? d->h : d->w;
    int64_t stride = a->stride[axis];
    int64_t padding = a->padding[axis];
    int64_t extent = burni_extent(a->kernel[axis], a->dilation[axis]);
    if (padding > extent / 2) {
        return burni_fail(err, BURN_E_INVALID,
                          "%s: padding[%d] is %lld, more than half of the window's extent %lld; "
                          "pad the input instead",
                          op, axis, (long long)padding, (long long)extent);
    }
    int64_t room = size + 2 * padding - extent;
    if (size < 1 || size > INT64_MAX / 4 || (room < 0 && !a->ceil_mode)) {
        return no_window(op, d, axis, err);
    }
    int64_t n = 1;
    if (a->ceil_mode && room > 0) {
        n = (room + stride - 1) / stride + 1;
        n -= (n - 1) * stride >= size + padding ? 1 : 0;
    } else if (room > 0) {
        n = room / stride + 1;
    }
    /* A dilated window may step over all of x, where it starts in the left padding. */
    for (int64_t i = 0; i < n && i * stride < padding; i++) {
        int64_t first = (padding - i * stride) % a->dilation[axis];
        first = first == 0 ? 0 : a->dilation[axis] - first;
        if (first >= size) {
            return no_window(op, d, axis, err);
        }
    }
    *out = n;
    return BURN_OK;
}

int32_t burni_pool_resolve(const char *op, burni_pool *d, burn_err *err)
{
    const burn_attrs_pool *a = d->attrs;
    int32_t rc = burni_check_pair(op, "kernel", a->kernel, 1, err);
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "stride", a->stride, 1, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "padding", a->padding, 0, err);
    }
    if (rc == BURN_OK) {
        rc = burni_check_pair(op, "dilation", a->dilation, 1, err);
    }
    if (rc == BURN_OK) {
        rc = resolve_axis(op, d, 0, &d->oh, err);
    }
    if (rc == BURN_OK) {
        rc = resolve_axis(op, d, 1, &d->ow, err);
    }
    return rc;
}

int32_t burni_pool_of(const char *op, const burn_meta *x, const burn_attrs_pool *attrs,
                      burni_pool *d, burn_err *err)
{
    if (x->rank != 4) {
        char text[192];
        return burni_fail(err, BURN_E_SHAPE,
                          "%s: x %s must have rank 4: [batch, channels, height, width]", op,
                          burni_shape_text(text, sizeof(text), x->rank, x->dims));
    }
    d->attrs = attrs;
    d->n = x->dims[0];
    d->c = x->dims[1];
    d->h = x->dims[2];
    d->w = x->dims[3];
    return burni_pool_resolve(op, d, err);
}

int64_t burni_pool_right(const burni_pool *d, int axis)
{
    const burn_attrs_pool *a = d->attrs;
    int64_t n = axis == 0 ? d->oh : d->ow;
    int64_t size = axis == 0 ? d->h : d->w;
    int64_t extent = burni_extent(a->kernel[axis], a->dilation[axis]);
    int64_t need = (n - 1) * a->stride[axis] + extent - size - a->padding[axis];
    return need > 0 ? need : 0;
}

burn_value *burni_pool_windows(const burn_builder *b, burn_value *x, const burni_pool *d,
                               burn_value *value)
{
    const burn_attrs_pool *a = d->attrs;
    burn_attrs_pad pad;
    burn_attrs_init(&pad, (uint32_t)sizeof(pad));
    pad.n_dims = 4;
    pad.before[2] = a->padding[0];
    pad.before[3] = a->padding[1];
    pad.after[2] = burni_pool_right(d, 0);
    pad.after[3] = burni_pool_right(d, 1);
    if (pad.before[2] + pad.before[3] + pad.after[2] + pad.after[3] > 0) {
        burn_value *in[2] = {x, value};
        x = burn_b_emit(b, BURN_OP_PAD, &pad, in, 2);
    }
    x = burn_b_unfold(b, x, 2, a->kernel[0], a->stride[0], a->dilation[0]);
    return burn_b_unfold(b, x, 3, a->kernel[1], a->stride[1], a->dilation[1]);
}

#define POOL_HEAD BURNI_HEAD(burn_attrs_pool)

/* clang-format off */
const burni_pool_sample burni_pool_samples[BURNI_N_POOL_SAMPLES] = {
    {"halves", 4, {2, 3, 4, 6}, {POOL_HEAD, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"overlapping", 4, {1, 2, 5, 7}, {POOL_HEAD, {3, 2}, {1, 2}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"padding", 4, {1, 2, 5, 4}, {POOL_HEAD, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"padding counts", 4, {1, 2, 5, 4},
     {POOL_HEAD, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 0, 1, {0, 0}}, 0},
    {"ceil", 4, {1, 1, 6, 7}, {POOL_HEAD, {3, 3}, {2, 2}, {0, 1}, {1, 1}, 1, 0, {0, 0}}, 0},
    {"ceil, padding counts", 4, {2, 1, 6, 7},
     {POOL_HEAD, {3, 4}, {2, 3}, {1, 2}, {1, 1}, 1, 1, {0, 0}}, 0},
    {"ceil drops a window", 4, {1, 1, 5, 5},
     {POOL_HEAD, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 1, 0, {0, 0}}, 0},
    {"ceil, kernel 1", 4, {1, 1, 6, 7},
     {POOL_HEAD, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1, 0, {0, 0}}, 0},
    {"ceil, large kernel", 4, {1, 1, 5, 5},
     {POOL_HEAD, {7, 7}, {7, 1}, {0, 0}, {1, 1}, 1, 1, {0, 0}}, 0},
    {"all of it", 4, {2, 2, 3, 5}, {POOL_HEAD, {3, 5}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"one by one", 4, {1, 1, 1, 1}, {POOL_HEAD, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"no batch", 4, {0, 2, 4, 4}, {POOL_HEAD, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"no height", 4, {1, 1, 0, 4},
     {POOL_HEAD, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, 0, {0, 0}}, BURN_E_SHAPE},
    {"window too large", 4, {1, 1, 3, 3},
     {POOL_HEAD, {4, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, BURN_E_SHAPE},
    {"padding too large", 4, {1, 1, 5, 5},
     {POOL_HEAD, {5, 2}, {1, 1}, {4, 0}, {1, 1}, 0, 0, {0, 0}}, BURN_E_INVALID},
    {"rank 3", 3, {1, 5, 5},
     {POOL_HEAD, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 0, 0, {0, 0}}, BURN_E_SHAPE},
};
/* clang-format on */

/* ---- avg_pool2d ------------------------------------------------------------------------------ */

static int32_t resolve_avg(const burn_meta *x, const burn_attrs_pool *attrs, burni_pool *d,
                           burn_err *err)
{
    if (attrs->dilation[0] != 1 || attrs->dilation[1] != 1) {
        return burni_fail(err, BURN_E_INVALID,
                          "avg_pool2d: dilation is [%lld,%lld], an average takes [1,1] only",
                          (long long)attrs->dilation[0], (long long)attrs->dilation[1]);
    }
    return burni_pool_of("avg_pool2d", x, attrs, d, err);
}

static int32_t infer_avg(const burn_infer *a)
{
    const burn_attrs_pool *attrs = BURNI_ATTRS(a, burn_attrs_pool);
    burni_pool d;
    if (attrs == NULL) {
        return burni_no_attrs("avg_pool2d", a->err);
    }
    int32_t rc = resolve_avg(a->in[0], attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.n, d.c, d.oh, d.ow};
    return burni_set_shape("avg_pool2d", &a->out[0], 4, dims, a->err);
}

/* How many elements window i counts along an axis. */
static int64_t counted(const burni_pool *d, int axis, int64_t i)
{
    const burn_attrs_pool *a = d->attrs;
    int64_t size = axis == 0 ? d->h : d->w;
    int64_t start = i * a->stride[axis] - a->padding[axis];
    int64_t end = start + a->kernel[axis];
    int64_t limit = a->count_include_pad ? size + a->padding[axis] : size;
    end = end < limit ? end : limit;
    start = start < 0 && !a->count_include_pad ? 0 : start;
    return end - start;
}

/* The same for all windows as a tensor [n] of floats. */
static burn_value *counted_tensor(const burn_builder *b, const burni_pool *d, int axis,
                                  uint8_t dtype)
{
    const burn_attrs_pool *a = d->attrs;
    int64_t size = axis == 0 ? d->h : d->w;
    int64_t n = axis == 0 ? d->oh : d->ow;
    int64_t limit = a->count_include_pad ? size + a->padding[axis] : size;
    burn_value *start =
        burn_b_arange(b, dtype, n, -(double)a->padding[axis], (double)a->stride[axis]);
    burn_value *end = burn_b_add_num(b, start, (double)a->kernel[axis]);
    end = burn_b_minimum_num(b, end, (double)limit);
    if (!a->count_include_pad) {
        start = burn_b_maximum_num(b, start, 0.0);
    }
    return burn_b_sub(b, end, start);
}

static int32_t decompose_avg(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_pool *attrs = BURNI_ATTRS(a, burn_attrs_pool);
    const int64_t window[2] = {4, 5};
    burni_pool d;
    burn_err err = BURN_ERR_INIT;
    if (attrs == NULL || resolve_avg(&a->in_meta[0], attrs, &d, &err) != BURN_OK) {
        return BURN_E_INVALID;
    }
    uint8_t dtype = a->in_meta[0].dtype;
    uint8_t wide = dtype == BURN_F64 ? BURN_F64 : BURN_F32;
    burn_value *x = dtype == wide ? a->in[0] : burn_b_cast(b, a->in[0], wide);
    burn_value *zero = b->immediate(b->ctx, wide, 0.0);
    burn_value *y = burni_pool_windows(b, x, &d, zero);
    y = burn_b_reduce(b, BURN_OP_SUM, y, 2, window, 0);
    int framed = attrs->padding[0] > 0 || attrs->padding[1] > 0 || attrs->ceil_mode;
    if (framed) {
        const int64_t column[2] = {d.oh, 1};
        burn_value *rows = burn_b_reshape(b, counted_tensor(b, &d, 0, wide), 2, column);
        y = burn_b_div(b, y, burn_b_mul(b, rows, counted_tensor(b, &d, 1, wide)));
    } else {
        y = burn_b_div_num(b, y, (double)attrs->kernel[0] * (double)attrs->kernel[1]);
    }
    a->out[0] = dtype == wide ? y : burn_b_cast(b, y, dtype);
    return BURN_OK;
}

static double window_sum(const burn_eval *a, const burni_pool *d, int64_t plane, int64_t oh,
                         int64_t ow)
{
    const burn_attrs_pool *s = d->attrs;
    double sum = 0.0;
    for (int64_t i = 0; i < s->kernel[0]; i++) {
        for (int64_t j = 0; j < s->kernel[1]; j++) {
            int64_t h = oh * s->stride[0] - s->padding[0] + i;
            int64_t w = ow * s->stride[1] - s->padding[1] + j;
            if (h >= 0 && h < d->h && w >= 0 && w < d->w) {
                sum += a->in[0].f[(plane * d->h + h) * d->w + w];
            }
        }
    }
    return sum;
}

static int32_t eval_avg(const burn_eval *a)
{
    burni_pool d;
    int32_t rc =
        resolve_avg(&a->in[0].meta, (const burn_attrs_pool *)a->attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (int64_t k = 0; k < (int64_t)a->out[0].n; k++) {
        int64_t ow = k % d.ow;
        int64_t oh = k / d.ow % d.oh;
        double count = (double)(counted(&d, 0, oh) * counted(&d, 1, ow));
        a->out[0].f[k] = window_sum(a, &d, k / d.ow / d.oh, oh, ow) / count;
    }
    return BURN_OK;
}

static int32_t samples_avg(uint32_t i, burn_sample *out)
{
    if (i >= BURNI_N_POOL_SAMPLES) {
        return BURN_E_END;
    }
    const burni_pool_sample *row = &burni_pool_samples[i];
    burni_sample_begin(out, row->name, 32.0, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, row->rank, row->x);
    burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special avg_pool2d_special[] = {
    {"overlapping", "special values", 0, 1},
    {"padding counts", "special values, padding", 0, 1},
    {"ceil", "special values, ceil", 0, 1},
};

static int32_t avg_pool2d_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_avg, avg_pool2d_special,
                                 BURNI_N_SPECIAL(avg_pool2d_special));
}

static const burn_role avg_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

const burn_op_def burn_op_def_avg_pool2d = {
    BURNI_DEF(AVG_POOL2D, avg_pool2d),
    .summary = "Average over sliding windows of a plane",
    .n_in = 1,
    .n_out = 1,
    .roles = avg_roles,
    .attrs = burni_attrs_pool_rows,
    .n_attrs = BURNI_N_ATTRS_POOL,
    .attrs_size = (uint32_t)sizeof(burn_attrs_pool),
    .infer = infer_avg,
    .decompose = decompose_avg,
    .eval = eval_avg,
    .samples = avg_pool2d_all_samples,
};
