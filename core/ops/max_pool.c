/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * max_pool.c - max_pool2d (values and indices) and max_pool2d_grad.
 *
 * The index counts h * W + w within the plane and always names an element of x, never padding:
 * NaN wins over everything, the first one; ties go to the first element in row-major order. The
 * gradient adds to the chosen elements, and its own gradient gathers them. Both ops go on with the
 * attributes of max_pool2d; `size` is the plane's height and width.
 */
#include "ops/pool.h"

#include <math.h>
#include <string.h>

/* ---- max_pool2d ------------------------------------------------------------------------------ */

static int32_t infer_max(const burn_infer *a)
{
    const burn_attrs_pool *attrs = BURNI_ATTRS(a, burn_attrs_pool);
    burni_pool d;
    if (attrs == NULL) {
        return burni_no_attrs("max_pool2d", a->err);
    }
    int32_t rc = burni_pool_of("max_pool2d", a->in[0], attrs, &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    const int64_t dims[4] = {d.n, d.c, d.oh, d.ow};
    rc = burni_set_shape("max_pool2d", &a->out[0], 4, dims, a->err);
    if (rc == BURN_OK) {
        rc = burni_set_shape("max_pool2d", &a->out[1], 4, dims, a->err);
        a->out[1].dtype = BURN_I64;
    }
    return rc;
}

static int32_t vjp_max(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_pool *attrs = BURNI_ATTRS(a, burn_attrs_pool);
    if (!a->wanted[0] || a->grad_out[0] == NULL || attrs == NULL) {
        return BURN_OK;
    }
    burn_attrs_pool back = *attrs;
    burn_value *in[2] = {a->grad_out[0], a->out[1]};
    back.size[0] = a->in_meta[0].dims[2];
    back.size[1] = a->in_meta[0].dims[3];
    a->grad_in[0] = burn_b_emit(b, BURN_OP_MAX_POOL2D_GRAD, &back, in, 2);
    return BURN_OK;
}

/* A value that no element lies below. */
static burn_value *lowest(const burn_builder *b, uint8_t dtype)
{
    uint32_t klass = burn_dtype_class(dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return b->immediate(b->ctx, dtype, -(double)INFINITY);
    }
    if (klass == BURN_CLASS_UINT) {
        return b->immediate_int(b->ctx, dtype, 0);
    }
    uint32_t bits = 8 * burn_dtype_size(dtype);
    return b->immediate_int(b->ctx, dtype, -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1);
}

/*
 * Place along an axis of the k-th element of each window: start + k * dilation. The padding holds
 * the lowest value, so it is chosen only where all of x's elements in the window are equal to that;
 * then the first of them is meant, which is the smallest place of the window that is not negative.
 */
static burn_value *place(const burn_builder *b, burn_value *k, const burni_pool *d, int axis)
{
    const burn_attrs_pool *s = d->attrs;
    int64_t n = axis == 0 ? d->oh : d->ow;
    const int64_t column[2] = {n, 1};
    burn_value *start =
        burn_b_arange(b, BURN_I64, n, -(double)s->padding[axis], (double)s->stride[axis]);
    if (axis == 0) {
        start = burn_b_reshape(b, start, 2, column);
    }
    if (s->dilation[axis] != 1) {
        k = burn_b_mul_num(b, k, (double)s->dilation[axis]);
    }
    k = burn_b_add(b, k, start);
    if (s->padding[axis] > 0) {
        /* The first tap inside lies at k mod dilation, taken of a number that is not negative. */
        int64_t d1 = s->dilation[axis];
        int64_t lift = (s->padding[axis] + d1 - 1) / d1 * d1;
        burn_value *up = burn_b_add_num(b, k, (double)lift);
        burn_value *whole = burn_b_mul_num(b, burn_b_div_num(b, up, (double)d1), (double)d1);
        k = burn_b_maximum(b, k, burn_b_sub(b, up, whole));
    }
    return k;
}

static int32_t decompose_max(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_pool *s = BURNI_ATTRS(a, burn_attrs_pool);
    burni_pool d;
    burn_err err = BURN_ERR_INIT;
    if (s == NULL || burni_pool_of("max_pool2d", &a->in_meta[0], s, &d, &err) != BURN_OK) {
        return BURN_E_INVALID;
    }
    int64_t inner = s->kernel[0] * s->kernel[1];
    const int64_t flat[5] = {d.n, d.c, d.oh, d.ow, inner};
    const int64_t dims[4] = {d.n, d.c, d.oh, d.ow};
    burn_value *fill = lowest(b, a->in_meta[0].dtype);
    burn_value *x = burni_pool_windows(b, a->in[0], &d, fill);
    x = burn_b_reshape(b, x, 5, flat);
    burn_value *at = burn_b_axis(b, BURN_OP_ARGMAX, x, 4, 1);
    a->out[0] = burn_b_reshape(b, burn_b_gather(b, x, at, 4), 4, dims);
    at = burn_b_reshape(b, at, 4, dims);
    burn_value *row = burn_b_div_num(b, at, (double)s->kernel[1]);
    burn_value *column = burn_b_sub(b, at, burn_b_mul_num(b, row, (double)s->kernel[1]));
    row = place(b, row, &d, 0);
    column = place(b, column, &d, 1);
    a->out[1] = burn_b_add(b, burn_b_mul_num(b, row, (double)d.w), column);
    return BURN_OK;
}

/* Is element `at` to be taken over the one chosen so far? */
static int beats(const burn_eval_operand *x, uint64_t at, uint64_t chosen)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        return !isnan(x->f[chosen]) && (isnan(x->f[at]) || x->f[at] > x->f[chosen]);
    }
    return klass == BURN_CLASS_UINT ? x->u[at] > x->u[chosen] : x->i[at] > x->i[chosen];
}

static int64_t choose(const burn_eval *a, const burni_pool *d, int64_t plane, int64_t oh,
                      int64_t ow)
{
    const burn_attrs_pool *s = d->attrs;
    int64_t base = plane * d->h * d->w;
    int64_t chosen = -1;
    for (int64_t i = 0; i < s->kernel[0]; i++) {
        for (int64_t j = 0; j < s->kernel[1]; j++) {
            int64_t h = oh * s->stride[0] - s->padding[0] + i * s->dilation[0];
            int64_t w = ow * s->stride[1] - s->padding[1] + j * s->dilation[1];
            if (h < 0 || h >= d->h || w < 0 || w >= d->w) {
                continue;
            }
            int64_t at = h * d->w + w;
            if (chosen < 0 || beats(&a->in[0], (uint64_t)(base + at), (uint64_t)(base + chosen))) {
                chosen = at;
            }
        }
    }
    return chosen;
}

static int32_t eval_max(const burn_eval *a)
{
    burni_pool d;
    int32_t rc = burni_pool_of("max_pool2d", &a->in[0].meta, (const burn_attrs_pool *)a->attrs,
                               &d, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (int64_t k = 0; k < (int64_t)a->out[0].n; k++) {
        int64_t plane = k / d.ow / d.oh;
        int64_t at = choose(a, &d, plane, k / d.ow % d.oh, k % d.ow);
        burni_eval_move(&a->out[0], (uint64_t)k, &a->in[0], (uint64_t)(plane * d.h * d.w + at));
        a->out[1].i[k] = at;
    }
    return BURN_OK;
}

#define POOL_HEAD BURNI_HEAD(burn_attrs_pool)

typedef struct max_sample {
    const char *name;
    uint8_t fill;
    int64_t x[4];
    burn_attrs_pool attrs;
    int32_t error;
} max_sample;

/* clang-format off */
static const max_sample max_rows[] = {
    {"dilation", BURN_FILL_DISTINCT, {1, 2, 7, 8},
     {POOL_HEAD, {3, 2}, {1, 2}, {0, 0}, {2, 3}, 0, 0, {0, 0}}, 0},
    {"dilation and padding", BURN_FILL_DISTINCT, {1, 1, 7, 8},
     {POOL_HEAD, {3, 2}, {2, 3}, {2, 2}, {2, 3}, 1, 0, {0, 0}}, 0},
    {"ties", BURN_FILL_BOOL, {1, 2, 6, 6},
     {POOL_HEAD, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"special values", BURN_FILL_SPECIAL, {1, 2, 9, 9},
     {POOL_HEAD, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 0, 0, {0, 0}}, 0},
    {"a window beside x", BURN_FILL_NORMAL, {1, 1, 1, 1},
     {POOL_HEAD, {2, 1}, {1, 1}, {2, 0}, {4, 1}, 0, 0, {0, 0}}, BURN_E_SHAPE},
};
/* clang-format on */

static int32_t samples_max(uint32_t i, burn_sample *out)
{
    if (i < BURNI_N_POOL_SAMPLES) {
        const burni_pool_sample *row = &burni_pool_samples[i];
        burni_sample_begin(out, row->name, 0.0, 1024.0);
        burni_sample_tensor(out, 0, 0, BURN_FILL_DISTINCT, row->rank, row->x);
        burni_sample_attrs(out, &row->attrs, (uint32_t)sizeof(row->attrs));
        if (row->error != 0) {
            burni_sample_error(out, row->error);
        }
        return BURN_OK;
    }
    i -= BURNI_N_POOL_SAMPLES;
    if (i >= sizeof(max_rows) / sizeof(max_rows[0])) {
        return BURN_E_END;
    }
    burni_sample_begin(out, max_rows[i].name, 0.0, 1024.0);
    burni_sample_tensor(out, 0, 0, max_rows[i].fill, 4, max_rows[i].x);
    burni_sample_attrs(out, &max_rows[i].attrs, (uint32_t)sizeof(max_rows[i].attrs));
    if (max_rows[i].fill != BURN_FILL_DISTINCT) {
        out->flags |= BURN_SAMPLE_NO_GRAD;
    }
    if (max_rows[i].error != 0) {
        burni_sample_error(out, max_rows[i].error);
    }
    return BURN_OK;
}

static const burn_role max_roles[] = {
    BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_BIT(I64)),
};

static const uint32_t max_saves[] = {BURN_SAVE_OUT(1)};

const burn_op_def burn_op_def_max_pool2d = {
    BURNI_DEF(MAX_POOL2D, max_pool2d),
    .summary = "Largest element of sliding windows of a plane, and its place",
    .n_in = 1,
    .n_out = 2,
    .roles = max_roles,
    .attrs = burni_attrs_pool_rows,
    .n_attrs = BURNI_N_ATTRS_POOL,
    .attrs_size = (uint32_t)sizeof(burn_attrs_pool),
    .infer = infer_max,
    .vjp = vjp_max,
    .vjp_saves = max_saves,
    .decompose = decompose_max,
    .eval = eval_max,
    .samples = samples_max,
};

/* ---- max_pool2d_grad ------------------------------------------------------------------------- */

static int32_t infer_max_grad(const burn_infer *a)
{
    const char *op = "max_pool2d_grad";
    const burn_attrs_pool *s = BURNI_ATTRS(a, burn_attrs_pool);
    const burn_meta *g = a->in[0];
    const burn_meta *index = a->in[1];
    char tg[192];
    char ti[192];
    if (s == NULL) {
        return burni_no_attrs(op, a->err);
    }
    (void)burni_shape_text(tg, sizeof(tg), g->rank, g->dims);
    int fits = g->rank == 4 && index->rank == 4;
    if (!fits || memcmp(g->dims, index->dims, 4 * sizeof(int64_t)) != 0) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: g %s and index %s must have rank 4 and one shape", op, tg,
                          burni_shape_text(ti, sizeof(ti), index->rank, index->dims));
    }
    burni_pool d = {g->dims[0], g->dims[1], s->size[0], s->size[1], 0, 0, s};
    int32_t rc = burni_check_pair(op, "size", s->size, 0, a->err);
    rc = rc == BURN_OK ? burni_pool_resolve(op, &d, a->err) : rc;
    if (rc != BURN_OK) {
        return rc;
    }
    if (d.oh != g->dims[2] || d.ow != g->dims[3]) {
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: g is %s, a plane of %lld x %lld has %lld x %lld windows of kernel "
                          "[%lld,%lld], stride [%lld,%lld], padding [%lld,%lld]",
                          op, tg, (long long)d.h, (long long)d.w, (long long)d.oh,
                          (long long)d.ow, (long long)s->kernel[0], (long long)s->kernel[1],
                          (long long)s->stride[0], (long long)s->stride[1],
                          (long long)s->padding[0], (long long)s->padding[1]);
    }
    const int64_t dims[4] = {d.n, d.c, d.h, d.w};
    return burni_set_shape(op, &a->out[0], 4, dims, a->err);
}

/* The plane's two dims as one. */
static burn_value *flat_plane(const burn_builder *b, burn_value *x, const burn_meta *meta)
{
    const int64_t dims[3] = {meta->dims[0], meta->dims[1], meta->dims[2] * meta->dims[3]};
    return burn_b_reshape(b, x, 3, dims);
}

static int32_t vjp_max_grad(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_pool *s = BURNI_ATTRS(a, burn_attrs_pool);
    const burn_meta *g = &a->in_meta[0];
    if (!a->wanted[0] || a->grad_out[0] == NULL || s == NULL) {
        return BURN_OK;
    }
    burn_meta x = *g;
    x.dims[2] = s->size[0];
    x.dims[3] = s->size[1];
    burn_value *index = flat_plane(b, a->in[1], g);
    burn_value *picked = burn_b_gather(b, flat_plane(b, a->grad_out[0], &x), index, 2);
    a->grad_in[0] = burni_b_reshape_to(b, picked, g);
    return BURN_OK;
}

static int32_t decompose_max_grad(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_pool *s = BURNI_ATTRS(a, burn_attrs_pool);
    const burn_meta *g = &a->in_meta[0];
    if (s == NULL) {
        return BURN_E_INVALID;
    }
    const int64_t plane[3] = {g->dims[0], g->dims[1], s->size[0] * s->size[1]};
    const int64_t dims[4] = {g->dims[0], g->dims[1], s->size[0], s->size[1]};
    burn_value *zeros = burn_b_fill(b, g->dtype, 3, plane, 0.0);
    burn_value *index = flat_plane(b, a->in[1], g);
    burn_value *sum =
        burn_b_scatter(b, zeros, index, flat_plane(b, a->in[0], g), 2, BURN_SCATTER_ADD);
    a->out[0] = burn_b_reshape(b, sum, 4, dims);
    return BURN_OK;
}

static int32_t eval_max_grad(const burn_eval *a)
{
    const int64_t *g = a->in[0].meta.dims;
    const int64_t *x = a->out[0].meta.dims;
    int64_t plane = g[2] * g[3];
    int64_t size = x[2] * x[3];
    for (uint64_t k = 0; k < a->out[0].n; k++) {
        a->out[0].f[k] = 0.0;
    }
    for (int64_t k = 0; k < (int64_t)a->in[0].n; k++) {
        int64_t at = burni_eval_get_int(&a->in[1], (uint64_t)k);
        if (at < 0 || at >= size) {
            return burni_fail(a->err, BURN_E_DATA,
                              "max_pool2d_grad: index %lld at position %lld is out of range, the "
                              "plane has %lld elements",
                              (long long)at, (long long)k, (long long)size);
        }
        a->out[0].f[k / plane * size + at] += a->in[0].f[k];
    }
    return BURN_OK;
}

typedef struct max_grad_sample {
    const char *name;
    int64_t g[4];
    int64_t index[4];
    int64_t size[2];
    int64_t kernel;
    int64_t stride;
    int64_t padding;
    int32_t error;
} max_grad_sample;

static const max_grad_sample max_grad_rows[] = {
    {"plain", {2, 3, 2, 2}, {2, 3, 2, 2}, {4, 5}, 2, 2, 0, 0},
    {"many to one place", {1, 2, 3, 3}, {1, 2, 3, 3}, {2, 2}, 2, 1, 1, 0},
    {"one element", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 1, 0, 0},
    {"no batch", {0, 1, 2, 2}, {0, 1, 2, 2}, {4, 4}, 2, 2, 0, 0},
    {"shapes differ", {1, 1, 2, 2}, {1, 1, 2, 3}, {4, 4}, 2, 2, 0, BURN_E_SHAPE},
    {"another plane", {1, 1, 2, 2}, {1, 1, 2, 2}, {4, 7}, 2, 2, 0, BURN_E_SHAPE},
    {"size below 0", {1, 1, 2, 2}, {1, 1, 2, 2}, {-4, 4}, 2, 2, 0, BURN_E_INVALID},
};

static int32_t samples_max_grad(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(max_grad_rows) / sizeof(max_grad_rows[0])) {
        return BURN_E_END;
    }
    const max_grad_sample *row = &max_grad_rows[i];
    burn_attrs_pool attrs = {POOL_HEAD, {0, 0}, {0, 0}, {0, 0}, {1, 1}, 0, 0, {0, 0}};
    memcpy(attrs.size, row->size, sizeof(attrs.size));
    for (int axis = 0; axis < 2; axis++) {
        attrs.kernel[axis] = row->kernel;
        attrs.stride[axis] = row->stride;
        attrs.padding[axis] = row->padding;
    }
    burni_sample_begin(out, row->name, 64.0, 1024.0);
    burni_sample_tensor(out, 0, 0, BURN_FILL_NORMAL, 4, row->g);
    burni_sample_tensor(out, 1, BURN_I64, BURN_FILL_INDEX, 4, row->index);
    burni_sample_range(out, 1, 0.0, (double)(row->size[0] * row->size[1]));
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    if (row->error != 0) {
        burni_sample_error(out, row->error);
    }
    return BURN_OK;
}

static const burni_special max_pool2d_grad_special[] = {
    {"plain", "special values", 0, 1},
    {"many to one place", "special values, sums", 0, 1},
};

static int32_t max_pool2d_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_max_grad, max_pool2d_grad_special,
                                 BURNI_N_SPECIAL(max_pool2d_grad_special));
}

static const burn_role max_grad_roles[] = {
    BURNI_ROLE("g", 0, BURN_SET_FLOAT),
    BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_BIT(I64)),
    BURNI_ROLE_LIKE("gx", 0, 0, BURN_SET_FLOAT),
};

static const uint32_t max_grad_saves[] = {BURN_SAVE_IN(1), 0};

const burn_op_def burn_op_def_max_pool2d_grad = {
    BURNI_DEF(MAX_POOL2D_GRAD, max_pool2d_grad),
    .summary = "Gradient of max_pool2d's input: g added where the index points",
    .flags = BURN_OP_INTERNAL,
    .n_in = 2,
    .n_out = 1,
    .roles = max_grad_roles,
    .attrs = burni_attrs_pool_rows,
    .n_attrs = BURNI_N_ATTRS_POOL,
    .attrs_size = (uint32_t)sizeof(burn_attrs_pool),
    .infer = infer_max_grad,
    .vjp = vjp_max_grad,
    .vjp_saves = max_grad_saves,
    .decompose = decompose_max_grad,
    .eval = eval_max_grad,
    .samples = max_pool2d_grad_all_samples,
};
