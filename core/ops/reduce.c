/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reduce.c - reductions over axes to values: sum, prod, max, min, mean, any, all, var, logsumexp.
 *
 * argmax, argmin and cumsum, which take one axis, are in cumulative.c. Over nothing: sum 0, prod 1,
 * mean and var NaN, logsumexp -inf, any false, all true; max, min and integer mean are errors of
 * the shape. f16 and bf16 accumulate in f32. To add one: a fold function over the elements of one
 * group, a gradient and decomposition, a row of REDUCE_OPS.
 */
#include "ops/pointwise.h"

#include <math.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

static int32_t infer_reduce(const char *op, const burn_infer *a, int needs_elements)
{
    const burn_attrs_axes *t = BURNI_ATTRS(a, burn_attrs_axes);
    const burn_meta *in = a->in[0];
    if (t == NULL) {
        return burni_no_attrs(op, a->err);
    }
    int32_t rc = burni_reduced_shape(op, in, t, &a->out[0], a->err);
    if (rc == BURN_OK && needs_elements && burni_reduced_count(in, t) == 0) {
        char text[192];
        return burni_fail(a->err, BURN_E_SHAPE,
                          "%s: nothing to reduce, an axis of shape %s that is reduced has size 0; "
                          "%s of no elements is not defined for %s",
                          op, burni_shape_text(text, sizeof(text), in->rank, in->dims), op,
                          burn_dtype_name(in->dtype));
    }
    return rc;
}

#define REDUCE_INFER(name, needs)                                                                  \
    static int32_t infer_##name(const burn_infer *a)                                               \
    {                                                                                              \
        return infer_reduce(#name, a, needs);                                                      \
    }
REDUCE_INFER(sum, 0)
REDUCE_INFER(prod, 0)
REDUCE_INFER(max, 1)
REDUCE_INFER(min, 1)
REDUCE_INFER(mean, !burni_is_float(a->in[0]->dtype))
REDUCE_INFER(any, 0)
REDUCE_INFER(all, 0)
REDUCE_INFER(var, 0)
REDUCE_INFER(logsumexp, 0)
#undef REDUCE_INFER

/* ---- meaning: one fold per group of elements ------------------------------------------------- */

/* The elements that are folded into output element k, one after the other. */
typedef struct group {
    const burn_eval_operand *x;
    const burn_attrs_axes *attrs;
    burn_eval_operand *y;
    uint64_t k;
    int64_t base;
    uint64_t n;
    uint32_t rank;
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK];
    uint64_t at;
} group;

static int group_begin(group *g)
{
    for (uint32_t i = 0; i < BURN_MAX_RANK; i++) {
        g->index[i] = 0;
    }
    g->at = (uint64_t)g->base;
    return g->n > 0;
}

static int group_next(group *g)
{
    if (!burni_next_index(g->rank, g->dims, g->index)) {
        return 0;
    }
    g->at = (uint64_t)(g->base + burni_offset(g->rank, g->index, g->strides));
    return 1;
}

typedef void (*fold_fn)(group *g);

/* Walks the kept axes; the reduced ones are the group's. */
static int32_t reduce(const burn_eval *a, fold_fn fold)
{
    const burn_attrs_axes *t = BURNI_ATTRS(a, burn_attrs_axes);
    const burn_meta *in = &a->in[0].meta;
    int64_t dense[BURN_MAX_RANK];
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK] = {0};
    uint32_t kept = 0;
    group g = {.x = &a->in[0], .attrs = t, .y = &a->out[0]};
    if (t == NULL) {
        return burni_no_attrs("reduction", a->err);
    }
    burni_dense_strides(in->rank, in->dims, dense);
    for (uint32_t i = 0; i < in->rank; i++) {
        if (burni_is_reduced(t, i)) {
            g.dims[g.rank] = in->dims[i];
            g.strides[g.rank++] = dense[i];
        } else {
            dims[kept] = in->dims[i];
            strides[kept++] = dense[i];
        }
    }
    g.n = (uint64_t)burni_numel(g.rank, g.dims);
    for (g.k = 0; g.k < g.y->n; g.k++) {
        g.base = burni_offset(kept, index, strides);
        fold(&g);
        (void)burni_next_index(kept, dims, index);
    }
    return BURN_OK;
}

static uint32_t class_of(const group *g)
{
    return burn_dtype_class(g->x->meta.dtype);
}

static void fold_sum(group *g)
{
    double f = 0.0;
    uint64_t u = 0;
    for (int more = group_begin(g); more; more = group_next(g)) {
        if (class_of(g) == BURN_CLASS_FLOAT) {
            f += g->x->f[g->at];
        } else {
            u += (uint64_t)burni_eval_get_int(g->x, g->at);
        }
    }
    if (class_of(g) == BURN_CLASS_FLOAT) {
        g->y->f[g->k] = f;
    } else if (class_of(g) == BURN_CLASS_UINT) {
        g->y->u[g->k] = u;
    } else {
        g->y->i[g->k] = (int64_t)u;
    }
}

static void fold_prod(group *g)
{
    double f = 1.0;
    uint64_t u = 1;
    for (int more = group_begin(g); more; more = group_next(g)) {
        if (class_of(g) == BURN_CLASS_FLOAT) {
            f *= g->x->f[g->at];
        } else {
            u *= (uint64_t)burni_eval_get_int(g->x, g->at);
        }
    }
    if (class_of(g) == BURN_CLASS_FLOAT) {
        g->y->f[g->k] = f;
    } else if (class_of(g) == BURN_CLASS_UINT) {
        g->y->u[g->k] = u;
    } else {
        g->y->i[g->k] = (int64_t)u;
    }
}

static void fold_extreme(group *g, int larger)
{
    uint64_t best = (uint64_t)g->base;
    for (int more = group_begin(g); more; more = group_next(g)) {
        if (burni_prefer(g->x, g->at, best, larger)) {
            best = g->at;
        }
    }
    if (g->n > 0) {
        burni_eval_move(g->y, g->k, g->x, best);
    }
}

static void fold_max(group *g)
{
    fold_extreme(g, 1);
}

static void fold_min(group *g)
{
    fold_extreme(g, 0);
}

/* Integer means truncate; their sum is kept in 64 bits. */
static void fold_mean(group *g)
{
    fold_sum(g);
    if (class_of(g) == BURN_CLASS_FLOAT) {
        g->y->f[g->k] /= (double)g->n;
    } else if (class_of(g) == BURN_CLASS_UINT) {
        g->y->u[g->k] /= g->n;
    } else {
        g->y->i[g->k] /= (int64_t)g->n;
    }
}

static void fold_any(group *g)
{
    g->y->i[g->k] = 0;
    for (int more = group_begin(g); more; more = group_next(g)) {
        g->y->i[g->k] |= burni_eval_get(g->x, g->at) != 0.0;
    }
}

static void fold_all(group *g)
{
    g->y->i[g->k] = 1;
    for (int more = group_begin(g); more; more = group_next(g)) {
        g->y->i[g->k] &= burni_eval_get(g->x, g->at) != 0.0;
    }
}

/* Two passes; the divisor is never negative. */
static void fold_var(group *g)
{
    double mean = 0.0;
    double sum = 0.0;
    double divisor = (double)g->n - (double)g->attrs->correction;
    for (int more = group_begin(g); more; more = group_next(g)) {
        mean += g->x->f[g->at];
    }
    mean /= (double)g->n;
    for (int more = group_begin(g); more; more = group_next(g)) {
        double d = g->x->f[g->at] - mean;
        sum += d * d;
    }
    g->y->f[g->k] = sum / (divisor > 0.0 ? divisor : 0.0);
}

/* Shifted by the maximum unless that is +inf; nothing but -inf gives NaN, as in softmax. */
static void fold_logsumexp(group *g)
{
    double top = (double)-INFINITY;
    double sum = 0.0;
    for (int more = group_begin(g); more; more = group_next(g)) {
        top = g->x->f[g->at] > top ? g->x->f[g->at] : top;
    }
    top = top == (double)INFINITY || g->n == 0 ? 0.0 : top;
    for (int more = group_begin(g); more; more = group_next(g)) {
        sum += exp(g->x->f[g->at] - top);
    }
    g->y->f[g->k] = log(sum) + top;
}

#define REDUCE_EVAL(name)                                                                          \
    static int32_t eval_##name(const burn_eval *a)                                                 \
    {                                                                                              \
        return reduce(a, fold_##name);                                                             \
    }
REDUCE_EVAL(sum)
REDUCE_EVAL(prod)
REDUCE_EVAL(max)
REDUCE_EVAL(min)
REDUCE_EVAL(mean)
REDUCE_EVAL(any)
REDUCE_EVAL(all)
REDUCE_EVAL(var)
REDUCE_EVAL(logsumexp)
#undef REDUCE_EVAL

/* ---- gradients ------------------------------------------------------------------------------- */

static const burn_attrs_axes *axes_of(const void *attrs)
{
    return (const burn_attrs_axes *)attrs;
}

/* v of the reduced shape, with its reduced axes kept as ones. */
static burn_value *keep(const burn_builder *b, burn_value *v, const burn_vjp *a)
{
    const burn_meta *in = &a->in_meta[0];
    int64_t dims[BURN_MAX_RANK];
    for (uint32_t i = 0; i < in->rank; i++) {
        dims[i] = burni_is_reduced(axes_of(a->attrs), i) ? 1 : in->dims[i];
    }
    return burn_b_reshape(b, v, in->rank, dims);
}

static burn_value *spread(const burn_builder *b, burn_value *v, const burn_vjp *a)
{
    return burn_b_expand(b, keep(b, v, a), a->in_meta[0].rank, a->in_meta[0].dims);
}

/* The reduction over the same axes, kept as ones. */
static burn_value *reduce_keep(const burn_builder *b, uint64_t op, burn_value *x, const void *attrs)
{
    const burn_attrs_axes *t = axes_of(attrs);
    return burn_b_reduce(b, op, x, t->n_axes, t->axes, 1);
}

static double count_of(const burn_meta *in, const void *attrs)
{
    return (double)burni_reduced_count(in, axes_of(attrs));
}

static int32_t vjp_sum(const burn_builder *b, const burn_vjp *a)
{
    a->grad_in[0] = spread(b, a->grad_out[0], a);
    return BURN_OK;
}

/* The division is done in f32 for halves, whose range a large count exceeds. */
static int32_t vjp_mean(const burn_builder *b, const burn_vjp *a)
{
    burn_value *g = burni_b_widen(b, a->grad_out[0]);
    burn_value *share = burn_b_div_num(b, g, count_of(&a->in_meta[0], a->attrs));
    a->grad_in[0] = spread(b, burni_b_narrow(b, share, a->in_meta[0].dtype), a);
    return BURN_OK;
}

/*
 * The product of all other elements, written so that it can be differentiated once more: the other
 * elements that are not 0 multiply to p / x, the others that are 0 to 1 when there is none, to the
 * only one when there is one (0 in number, but its own gradient is 1), else to 0.
 */
static int32_t vjp_prod(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *g = burni_b_widen(b, keep(b, a->grad_out[0], a));
    burn_meta meta = burn_b_meta(b, x);
    burn_value *zero = burn_b_num(b, x, 0.0);
    burn_value *one = burn_b_num(b, x, 1.0);
    burn_value *is_zero = burn_b_equal_num(b, x, 0.0);
    burn_value *safe = burn_b_where(b, is_zero, one, x);
    burn_value *p = reduce_keep(b, BURN_OP_PROD, safe, a->attrs);
    burn_value *zeros = burn_b_where(b, is_zero, x, zero);
    burn_value *count = burn_b_cast(b, is_zero, meta.dtype);
    burn_value *others = burn_b_sub(b, reduce_keep(b, BURN_OP_SUM, count, a->attrs), count);
    burn_value *only = burn_b_sub(b, reduce_keep(b, BURN_OP_SUM, zeros, a->attrs), zeros);
    burn_value *rest = burn_b_where(b, burn_b_equal_num(b, others, 1.0), only, zero);
    rest = burn_b_where(b, burn_b_equal_num(b, others, 0.0), one, rest);
    burn_value *slope = burn_b_mul(b, burn_b_div(b, p, safe), rest);
    a->grad_in[0] = burni_b_narrow(b, burn_b_mul(b, g, slope), a->in_meta[0].dtype);
    return BURN_OK;
}

/* Elements that equal the result share the gradient evenly. */
static int32_t vjp_extreme(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = a->in[0];
    burn_value *g = burni_b_widen(b, keep(b, a->grad_out[0], a));
    burn_meta meta = burn_b_meta(b, g);
    burn_value *taken = burn_b_equal(b, x, keep(b, a->out[0], a));
    burn_value *count = reduce_keep(b, BURN_OP_SUM, burn_b_cast(b, taken, meta.dtype), a->attrs);
    burn_value *share = burni_b_narrow(b, burn_b_div(b, g, count), a->in_meta[0].dtype);
    a->grad_in[0] = burn_b_where(b, taken, share, burn_b_num(b, share, 0.0));
    return BURN_OK;
}

static double var_divisor(const burn_meta *in, const void *attrs)
{
    double divisor = count_of(in, attrs) - (double)axes_of(attrs)->correction;
    return divisor > 0.0 ? divisor : 0.0;
}

/* 2 g (x - mean) / (n - correction) */
static int32_t vjp_var(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *g = burni_b_widen(b, keep(b, a->grad_out[0], a));
    burn_value *d = burn_b_sub(b, x, reduce_keep(b, BURN_OP_MEAN, x, a->attrs));
    burn_value *slope = burn_b_div_num(b, burn_b_mul_num(b, d, 2.0),
                                       var_divisor(&a->in_meta[0], a->attrs));
    a->grad_in[0] = burni_b_narrow(b, burn_b_mul(b, g, slope), a->in_meta[0].dtype);
    return BURN_OK;
}

/* g exp(x - y): the softmax */
static int32_t vjp_logsumexp(const burn_builder *b, const burn_vjp *a)
{
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *g = burni_b_widen(b, keep(b, a->grad_out[0], a));
    burn_value *y = burni_b_widen(b, keep(b, a->out[0], a));
    burn_value *slope = burn_b_exp(b, burn_b_sub(b, x, y));
    a->grad_in[0] = burni_b_narrow(b, burn_b_mul(b, g, slope), a->in_meta[0].dtype);
    return BURN_OK;
}

/* ---- decompositions -------------------------------------------------------------------------- */

static burn_value *reduce_alike(const burn_builder *b, uint64_t op, burn_value *x,
                                const void *attrs)
{
    const burn_attrs_axes *t = axes_of(attrs);
    return burn_b_reduce(b, op, x, t->n_axes, t->axes, t->keepdims);
}

static int32_t expand_min(const burn_builder *b, const burn_expand *a)
{
    burn_value *most = reduce_alike(b, BURN_OP_MAX, burni_b_reverse(b, a->in[0]), a->attrs);
    a->out[0] = burni_b_reverse(b, most);
    return BURN_OK;
}

/* Halves sum in f32 and integers in 64 bits, so that the sum fits when the mean does. */
static int32_t expand_mean(const burn_builder *b, const burn_expand *a)
{
    uint8_t dtype = a->in_meta[0].dtype;
    uint32_t klass = burn_dtype_class(dtype);
    burn_value *x = burni_b_widen(b, a->in[0]);
    if (klass != BURN_CLASS_FLOAT) {
        x = burni_b_narrow(b, x, klass == BURN_CLASS_UINT ? BURN_U64 : BURN_I64);
    }
    burn_value *sum = reduce_alike(b, BURN_OP_SUM, x, a->attrs);
    burn_value *mean = burn_b_div_num(b, sum, count_of(&a->in_meta[0], a->attrs));
    a->out[0] = burni_b_narrow(b, mean, dtype);
    return BURN_OK;
}

/* Ones and zeros in f32: their sum cannot wrap, and the sum of nothing is 0. */
static int32_t expand_any(const burn_builder *b, const burn_expand *a)
{
    burn_value *yes = burni_b_narrow(b, a->in[0], BURN_BOOL);
    burn_value *sum = reduce_alike(b, BURN_OP_SUM, burn_b_cast(b, yes, BURN_F32), a->attrs);
    a->out[0] = burn_b_less(b, burn_b_num(b, sum, 0.0), sum);
    return BURN_OK;
}

static int32_t expand_all(const burn_builder *b, const burn_expand *a)
{
    burn_value *no = burn_b_equal_num(b, a->in[0], 0.0);
    burn_value *sum = reduce_alike(b, BURN_OP_SUM, burn_b_cast(b, no, BURN_F32), a->attrs);
    a->out[0] = burn_b_equal_num(b, sum, 0.0);
    return BURN_OK;
}

static int32_t expand_var(const burn_builder *b, const burn_expand *a)
{
    burn_value *x = burni_b_widen(b, a->in[0]);
    burn_value *d = burn_b_sub(b, x, reduce_keep(b, BURN_OP_MEAN, x, a->attrs));
    burn_value *sum = reduce_alike(b, BURN_OP_SUM, burn_b_mul(b, d, d), a->attrs);
    burn_value *var = burn_b_div_num(b, sum, var_divisor(&a->in_meta[0], a->attrs));
    a->out[0] = burni_b_narrow(b, var, a->in_meta[0].dtype);
    return BURN_OK;
}

/* A maximum of nothing is an error, so nothing is shifted by 0. */
static int32_t expand_logsumexp(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axes *t = axes_of(a->attrs);
    const burn_meta *in = &a->in_meta[0];
    burn_value *x = burni_b_widen(b, a->in[0]);
    if (burni_reduced_count(in, t) == 0) {
        burn_value *none = reduce_alike(b, BURN_OP_SUM, x, t);
        a->out[0] = burni_b_narrow(b, burn_b_log(b, none), in->dtype);
        return BURN_OK;
    }
    burn_value *top = reduce_keep(b, BURN_OP_MAX, x, t);
    burn_value *largest = burn_b_equal_num(b, top, (double)INFINITY);
    burn_value *shift = burn_b_where(b, largest, burn_b_num(b, top, 0.0), top);
    burn_value *powers = burn_b_exp(b, burn_b_sub(b, x, shift));
    burn_value *y = burn_b_add(b, burn_b_log(b, reduce_keep(b, BURN_OP_SUM, powers, t)), shift);
    if (!t->keepdims) {
        burn_meta out;
        (void)burni_reduced_shape("logsumexp", in, t, &out, NULL);
        y = burn_b_reshape(b, y, out.rank, out.dims);
    }
    a->out[0] = burni_b_narrow(b, y, in->dtype);
    return BURN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct reduce_domain {
    uint8_t fill;
    uint8_t wrong;   /* a dtype that must be refused, 0 when there is none */
    uint8_t partial; /* nothing to reduce is an error of this dtype; 255: of every dtype */
    uint8_t corrected; /* takes the correction of the rows */
    double tolerance;
    double grad_tolerance;
    uint64_t special; /* dtypes of lines full of special values; 0: floats, lines with few */
} reduce_domain;

typedef struct reduce_row {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint32_t n_axes;
    uint32_t keepdims;
    int64_t axes[4];
    int64_t correction;
} reduce_row;

static const reduce_row reduce_rows[] = {
    {"all of a vector", 1, {17}, 0, 0, {0}, 0},
    {"one element", 1, {1}, 0, 0, {0}, 1},
    {"long", 1, {1025}, 1, 0, {0}, 1},
    {"last axis", 2, {5, 65}, 1, 0, {1}, 1},
    {"last axis kept", 2, {5, 129}, 1, 1, {1}, 0},
    {"first axis", 2, {65, 3}, 1, 0, {0}, 1},
    {"middle axis", 3, {3, 17, 5}, 1, 0, {1}, 0},
    {"two axes apart", 4, {2, 3, 5, 7}, 2, 0, {1, 3}, 1},
    {"outer axes kept", 4, {2, 3, 5, 7}, 2, 1, {0, 2}, 1},
    {"all axes kept", 3, {3, 4, 5}, 0, 1, {0}, 1},
    {"rank 0", 0, {0}, 0, 0, {0}, 0},
    {"size 1 axis", 2, {17, 1}, 1, 0, {1}, 0},
    {"empty with kept axes of size 0", 2, {0, 5}, 1, 0, {1}, 0},
};

/* Of var only: as many as are subtracted, or more. Nothing is left to divide by: inf. */
static const reduce_row spent_rows[] = {
    {"correction of the size", 2, {5, 3}, 1, 0, {1}, 3},
    {"correction beyond the size", 2, {5, 3}, 1, 1, {1}, 7},
    /* 4: where all are equal, as with stride 0, the mean is one of them, whatever the order. */
    {"correction of the size, first axis", 2, {4, 65}, 1, 0, {0}, 4},
    {"correction beyond the size, all", 2, {4, 5}, 0, 0, {0}, 21},
};

static const reduce_row nothing_rows[] = {
    {"axis of size 0", 2, {3, 0}, 1, 0, {1}, 0},
    {"both of size 0", 2, {0, 0}, 1, 0, {1}, 0},
    {"all of nothing", 1, {0}, 0, 0, {0}, 0},
};

enum {
    N_REDUCE_ROWS = sizeof(reduce_rows) / sizeof(reduce_rows[0]),
    N_NOTHING_ROWS = sizeof(nothing_rows) / sizeof(nothing_rows[0]),
    N_SPENT_ROWS = sizeof(spent_rows) / sizeof(spent_rows[0])
};

static void reduce_sample(burn_sample *s, const reduce_row *row, const reduce_domain *d)
{
    burn_attrs_axes t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.n_axes = row->n_axes;
    t.keepdims = row->keepdims;
    t.correction = d->corrected ? row->correction : 0;
    for (uint32_t i = 0; i < row->n_axes; i++) {
        t.axes[i] = row->axes[i];
    }
    burni_sample_begin(s, row->name, d->tolerance, d->grad_tolerance);
    burni_sample_tensor(s, 0, 0, d->fill, row->rank, row->dims);
    burni_sample_attrs(s, &t, (uint32_t)sizeof(t));
}

static int32_t reduce_errors(uint32_t i, burn_sample *s, const reduce_domain *d)
{
    static const reduce_row axis = {"axis out of range", 2, {3, 5}, 1, 0, {2}, 0};
    static const reduce_row order = {"axes out of order", 2, {3, 5}, 2, 0, {1, 0}, 0};
    static const reduce_row wrong = {"refused dtype", 2, {3, 5}, 1, 0, {1}, 0};
    if (i == 0) {
        reduce_sample(s, &axis, d);
        burni_sample_error(s, BURN_E_INVALID);
    } else if (i == 1) {
        reduce_sample(s, &order, d);
        burni_sample_error(s, BURN_E_INVALID);
    } else if (i == 2 && d->wrong != 0) {
        reduce_sample(s, &wrong, d);
        s->in[0].dtype = d->wrong;
        burni_sample_error(s, BURN_E_DTYPE);
    } else {
        return BURN_E_END;
    }
    return BURN_OK;
}

static int32_t reduce_samples(uint32_t i, burn_sample *s, const reduce_domain *d)
{
    static const reduce_row special = {"special values", 2, {9, 11}, 1, 0, {1}, 0};
    static const reduce_row short_lines = {"special values", 2, {17, 5}, 1, 0, {1}, 1};
    if (i < N_REDUCE_ROWS) {
        reduce_sample(s, &reduce_rows[i], d);
        /* One element with correction: NaN by 0 / 0. */
        int undefined = reduce_rows[i].rank == 1 && reduce_rows[i].dims[0] == 1;
        s->flags = undefined ? BURN_SAMPLE_NO_GRAD : 0;
        return BURN_OK;
    }
    i -= N_REDUCE_ROWS;
    if (i < N_NOTHING_ROWS) {
        reduce_sample(s, &nothing_rows[i], d);
        s->flags = BURN_SAMPLE_NO_GRAD;
        if (d->partial == 255) {
            burni_sample_error(s, BURN_E_SHAPE);
        } else if (d->partial != 0) {
            s->dtypes = BURN_SET_FLOAT;
        }
        return BURN_OK;
    }
    i -= N_NOTHING_ROWS;
    if (i == 0) {
        reduce_sample(s, d->special != 0 ? &special : &short_lines, d);
        s->dtypes = d->special;
        burni_sample_special(s, d->special != 0, d->special == 0);
        return BURN_OK;
    }
    if (i == 1 && d->partial != 0 && d->partial != 255) {
        reduce_sample(s, &nothing_rows[0], d);
        s->in[0].dtype = d->partial;
        burni_sample_error(s, BURN_E_SHAPE);
        return BURN_OK;
    }
    return reduce_errors(i - 1 - (d->partial != 0 && d->partial != 255), s, d);
}

/* clang-format off */
static const reduce_domain domain_sum = {
    BURN_FILL_NORMAL, BURN_BOOL, 0, 0, 64.0, 64.0, 0};
static const reduce_domain domain_prod = {
    BURN_FILL_NONZERO, BURN_BOOL, 0, 0, 0.0, 1024.0, 0};
static const reduce_domain domain_extreme = {
    BURN_FILL_DISTINCT, BURN_BOOL, 255, 0, 0.0, 64.0, BURN_SET_NUMERIC};
static const reduce_domain domain_mean = {
    BURN_FILL_NORMAL, BURN_BOOL, BURN_I32, 0, 16.0, 64.0, 0};
static const reduce_domain domain_truth = {
    BURN_FILL_BOOL, 0, 0, 0, 0.0, 0.0, BURN_SET_ANY};
static const reduce_domain domain_var = {
    BURN_FILL_NORMAL, BURN_I32, 0, 1, 64.0, 256.0, 0};
static const reduce_domain domain_logs = {
    BURN_FILL_NORMAL, BURN_I32, 0, 0, 64.0, 256.0, BURN_SET_FLOAT};
/* clang-format on */

#define REDUCE_SAMPLES(domain)                                                                     \
    static int32_t samples_##domain(uint32_t i, burn_sample *out)                                  \
    {                                                                                              \
        return reduce_samples(i, out, &domain_##domain);                                           \
    }
REDUCE_SAMPLES(sum)
REDUCE_SAMPLES(extreme)
REDUCE_SAMPLES(mean)
REDUCE_SAMPLES(truth)
REDUCE_SAMPLES(logs)
#undef REDUCE_SAMPLES

static int32_t samples_var(uint32_t i, burn_sample *s)
{
    static const double one_value[] = {2.5, 2.5, 2.5, 1.0, -1.0, 0.5};
    if (i >= N_SPENT_ROWS + 1) {
        return reduce_samples(i - N_SPENT_ROWS - 1, s, &domain_var);
    }
    reduce_sample(s, &spent_rows[i < N_SPENT_ROWS ? i : 0], &domain_var);
    if (i == N_SPENT_ROWS) {
        s->name = "correction of the size, equal values";
        burni_sample_values(s, 0, 6, one_value); /* 0 / 0: NaN */
    }
    s->flags = BURN_SAMPLE_NO_GRAD;
    return BURN_OK;
}

/* A product of many factors leaves the range of f16 and loses digits: short groups only. */
static int32_t short_prod_samples(uint32_t i, burn_sample *s)
{
    static const int64_t nine[] = {9};
    static const double zeros[] = {2.0, 0.0, 3.0, 0.0, 0.0, 3.0, 2.0, 1.0, 3.0};
    int32_t rc = reduce_samples(i, s, &domain_prod);
    if (rc != BURN_OK || (s->flags & BURN_SAMPLE_ERROR)) {
        return rc;
    }
    for (uint32_t d = 0; d < s->in[0].rank; d++) {
        s->in[0].dims[d] = s->in[0].dims[d] > 7 ? 7 : s->in[0].dims[d];
    }
    s->tolerance = 256.0;
    if (i == N_REDUCE_ROWS + N_NOTHING_ROWS) {
        static const int64_t rows[] = {3, 3};
        burni_sample_tensor(s, 0, 0, BURN_FILL_VALUES, 2, rows);
        burni_sample_values(s, 0, (uint32_t)nine[0], zeros);
        s->name = "two, one and no zeros";
        s->flags = 0;
    }
    return BURN_OK;
}

static int32_t samples_prod(uint32_t i, burn_sample *out)
{
    static const burni_special special[] = {
        {"last axis", "special values", 0, 1},
        {"two axes apart", "special values, two axes", 0, 1},
    };
    return burni_samples_special(i, out, short_prod_samples, special, BURNI_N_SPECIAL(special));
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const burn_role roles_numeric[2] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                           BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC)};
static const burn_role roles_float[2] = {BURNI_ROLE("x", 0, BURN_SET_FLOAT),
                                         BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT)};
static const burn_role roles_truth[2] = {BURNI_ROLE("x", 0, BURN_SET_ANY),
                                         BURNI_ROLE("y", BURN_ROLE_NO_GRAD, BURN_BIT(BOOL))};

static const uint32_t save_none[1] = {0};
static const uint32_t save_x[1] = {BURN_SAVE_IN(0)};
static const uint32_t save_xy[1] = {BURN_SAVE_IN(0) | BURN_SAVE_OUT(0)};

static const char no_vjp_bool[] = "the result is true or false, which carries no gradient";

#define NONE NULL
#define MINIMAL (BURN_OP_MINIMAL | BURN_OP_PRIMITIVE)
#define PRIMITIVE BURN_OP_PRIMITIVE

/* X(NAME, name, flags, fuse, roles, vjp, saves, no_vjp, decompose, samples, summary) */
/* clang-format off */
#define REDUCE_OPS(X)                                                                              \
    X(SUM, sum, MINIMAL, REDUCE, numeric, vjp_sum, save_none, NONE, NONE, sum,                     \
      "sum over axes; integers wrap")                                                              \
    X(PROD, prod, PRIMITIVE, REDUCE, numeric, vjp_prod, save_x, NONE, NONE, prod,                  \
      "product over axes; integers wrap")                                                          \
    X(MAX, max, MINIMAL, REDUCE, numeric, vjp_extreme, save_xy, NONE, NONE, extreme,               \
      "largest element; NaN propagates")                                                           \
    X(MIN, min, 0, REDUCE, numeric, vjp_extreme, save_xy, NONE, expand_min, extreme,               \
      "smallest element; NaN propagates")                                                          \
    X(MEAN, mean, 0, REDUCE, numeric, vjp_mean, save_none, NONE, expand_mean, mean,                \
      "arithmetic mean; integers truncate")                                                        \
    X(ANY, any, 0, REDUCE, truth, NONE, NONE, no_vjp_bool, expand_any, truth,                      \
      "true where an element is not 0")                                                            \
    X(ALL, all, 0, REDUCE, truth, NONE, NONE, no_vjp_bool, expand_all, truth,                      \
      "true where no element is 0")                                                                \
    X(VAR, var, 0, REDUCE, float, vjp_var, save_x, NONE, expand_var, var,                          \
      "variance with divisor n - correction, in two passes")                                       \
    X(LOGSUMEXP, logsumexp, 0, REDUCE, float, vjp_logsumexp, save_xy, NONE, expand_logsumexp,      \
      logs,                                                                                        \
      "log of the sum of exp, shifted by the maximum")
/* clang-format on */

#define REDUCE_DEF(NAME, name_, bits_, kind, role_set, vjp_, saves_, reason, expand, domain, text) \
    const burn_op_def burn_op_def_##name_ = {                                                      \
        BURNI_DEF(NAME, name_),                                                                    \
        .flags = (bits_),                                                                          \
        .n_in = 1,                                                                                 \
        .n_out = 1,                                                                                \
        .summary = text,                                                                           \
        .roles = roles_##role_set,                                                                 \
        .attrs = burni_attrs_axes_rows,                                                            \
        .n_attrs = BURNI_N_ATTRS_AXES,                                                             \
        .attrs_size = (uint32_t)sizeof(burn_attrs_axes),                                           \
        .fuse = BURN_FUSE_##kind,                                                                  \
        .infer = infer_##name_,                                                                    \
        .vjp = vjp_,                                                                               \
        .vjp_saves = saves_,                                                                       \
        .no_vjp = reason,                                                                          \
        .decompose = expand,                                                                       \
        .eval = eval_##name_,                                                                      \
        .samples = samples_##domain,                                                               \
    };
REDUCE_OPS(REDUCE_DEF)
