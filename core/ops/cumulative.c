/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cumulative.c - ops along one axis that keep its order: cumsum, argmax, argmin.
 *
 * Arg-reductions give the index of the first NaN, else the lowest index among ties, as i64; an axis
 * of size 0 is an error. To add one: a line function over the elements of one line, an infer, a
 * gradient or the reason for none, and a definition.
 */
#include "ops/pointwise.h"

/* ---- walking lines --------------------------------------------------------------------------- */

/* One line of x along the axis: element j is at first + j * step. */
typedef struct line {
    const burn_eval_operand *x;
    burn_eval_operand *y;
    uint64_t first;
    uint64_t step;
    uint64_t n;
    uint64_t k; /* number of the line, row-major */
} line;

typedef void (*line_fn)(const line *l);

static int32_t each_line(const burn_eval *a, const char *op, line_fn fn)
{
    const burn_attrs_axis *t = BURNI_ATTRS(a, burn_attrs_axis);
    const burn_meta *in = &a->in[0].meta;
    uint64_t outer = 1;
    line l = {.x = &a->in[0], .y = &a->out[0], .step = 1};
    if (t == NULL) {
        return burni_no_attrs(op, a->err);
    }
    int32_t rc = burni_check_axis(op, t->axis, in->rank, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        if ((int64_t)i < t->axis) {
            outer *= (uint64_t)in->dims[i];
        } else if ((int64_t)i > t->axis) {
            l.step *= (uint64_t)in->dims[i];
        }
    }
    l.n = (uint64_t)in->dims[t->axis];
    for (l.k = 0; l.k < outer * l.step; l.k++) {
        l.first = l.k / l.step * l.step * l.n + l.k % l.step;
        fn(&l);
    }
    return BURN_OK;
}

/* ---- cumsum ---------------------------------------------------------------------------------- */

static int32_t infer_cumsum(const burn_infer *a)
{
    const burn_attrs_axis *t = BURNI_ATTRS(a, burn_attrs_axis);
    if (t == NULL) {
        return burni_no_attrs("cumsum", a->err);
    }
    int32_t rc = burni_check_axis("cumsum", t->axis, a->in[0]->rank, a->err);
    return rc != BURN_OK ? rc : burni_infer_same(a);
}

static void line_cumsum(const line *l)
{
    uint32_t klass = burn_dtype_class(l->x->meta.dtype);
    double f = 0.0;
    uint64_t u = 0;
    for (uint64_t j = 0; j < l->n; j++) {
        uint64_t at = l->first + j * l->step;
        if (klass == BURN_CLASS_FLOAT) {
            f += l->x->f[at];
            l->y->f[at] = f;
            continue;
        }
        u += (uint64_t)burni_eval_get_int(l->x, at);
        if (klass == BURN_CLASS_UINT) {
            l->y->u[at] = u;
        } else {
            l->y->i[at] = (int64_t)u;
        }
    }
}

static int32_t eval_cumsum(const burn_eval *a)
{
    return each_line(a, "cumsum", line_cumsum);
}

/* The sum of the gradients from there to the end. */
static int32_t vjp_cumsum(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_axis *t = (const burn_attrs_axis *)a->attrs;
    burn_value *back = burn_b_flip(b, a->grad_out[0], 1, &t->axis);
    burn_value *sums = burn_b_axis(b, BURN_OP_CUMSUM, back, t->axis, 0);
    a->grad_in[0] = burn_b_flip(b, sums, 1, &t->axis);
    return BURN_OK;
}

/* ---- argmax, argmin -------------------------------------------------------------------------- */

static int32_t infer_arg(const char *op, const burn_infer *a)
{
    const burn_attrs_axis *t = BURNI_ATTRS(a, burn_attrs_axis);
    const burn_meta *in = a->in[0];
    if (t == NULL) {
        return burni_no_attrs(op, a->err);
    }
    burn_attrs_axes axes;
    burn_attrs_init(&axes, (uint32_t)sizeof(axes));
    axes.n_axes = 1;
    axes.axes[0] = t->axis;
    axes.keepdims = t->keepdims;
    int32_t rc = burni_reduced_shape(op, in, &axes, &a->out[0], a->err);
    if (rc == BURN_OK && in->dims[t->axis] == 0) {
        char text[192];
        rc = burni_fail(a->err, BURN_E_SHAPE,
                        "%s: axis %lld of shape %s has size 0, so there is no index to give", op,
                        (long long)t->axis,
                        burni_shape_text(text, sizeof(text), in->rank, in->dims));
    }
    return rc;
}

static int32_t infer_argmax(const burn_infer *a)
{
    return infer_arg("argmax", a);
}

static int32_t infer_argmin(const burn_infer *a)
{
    return infer_arg("argmin", a);
}

static void line_arg(const line *l, int larger)
{
    uint64_t best = 0;
    for (uint64_t j = 1; j < l->n; j++) {
        if (burni_prefer(l->x, l->first + j * l->step, l->first + best * l->step, larger)) {
            best = j;
        }
    }
    l->y->i[l->k] = (int64_t)best;
}

static void line_argmax(const line *l)
{
    line_arg(l, 1);
}

static void line_argmin(const line *l)
{
    line_arg(l, 0);
}

static int32_t eval_argmax(const burn_eval *a)
{
    return each_line(a, "argmax", line_argmax);
}

static int32_t eval_argmin(const burn_eval *a)
{
    return each_line(a, "argmin", line_argmin);
}

static int32_t expand_argmin(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_axis *t = (const burn_attrs_axis *)a->attrs;
    burn_value *x = burni_b_reverse(b, a->in[0]);
    a->out[0] = burn_b_axis(b, BURN_OP_ARGMAX, x, t->axis, t->keepdims);
    return BURN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct axis_row {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    int64_t axis;
    uint32_t keepdims;
} axis_row;

static const axis_row axis_rows[] = {
    {"vector", 1, {17}, 0, 0},         {"one element", 1, {1}, 0, 0},
    {"long", 1, {1025}, 0, 1},         {"last axis", 2, {5, 65}, 1, 0},
    {"first axis", 2, {129, 3}, 0, 1}, {"middle axis", 3, {3, 17, 5}, 1, 0},
    {"rank 4", 4, {2, 3, 5, 7}, 2, 1}, {"empty", 2, {0, 5}, 1, 0},
};

enum { N_AXIS_ROWS = sizeof(axis_rows) / sizeof(axis_rows[0]) };

static void axis_sample(burn_sample *s, const axis_row *row, uint8_t fill, int is_arg)
{
    burn_attrs_axis t;
    burn_attrs_init(&t, (uint32_t)sizeof(t));
    t.axis = row->axis;
    t.keepdims = is_arg ? row->keepdims : 0;
    burni_sample_begin(s, row->name, is_arg ? 0.0 : 256.0, 128.0);
    burni_sample_tensor(s, 0, 0, fill, row->rank, row->dims);
    burni_sample_attrs(s, &t, (uint32_t)sizeof(t));
}

static int32_t axis_errors(uint32_t i, burn_sample *s, int is_arg)
{
    static const axis_row range = {"axis out of range", 2, {3, 5}, 7, 0};
    static const axis_row negative = {"axis below 0", 2, {3, 5}, -1, 0};
    static const axis_row none = {"rank 0 has no axis", 0, {0}, 0, 0};
    static const axis_row wrong = {"refused dtype", 1, {3}, 0, 0};
    static const axis_row nothing = {"axis of size 0", 2, {3, 0}, 1, 0};
    static const axis_row *const rows[] = {&range, &negative, &none, &wrong, &nothing};
    if (i >= 5) {
        return BURN_E_END;
    }
    axis_sample(s, rows[i], BURN_FILL_NORMAL, is_arg);
    if (i == 3) {
        s->in[0].dtype = BURN_BOOL;
        burni_sample_error(s, BURN_E_DTYPE);
    } else if (i == 4 && is_arg) {
        burni_sample_error(s, BURN_E_SHAPE);
    } else if (i < 3) {
        burni_sample_error(s, BURN_E_INVALID);
    }
    return BURN_OK;
}

static int32_t samples_cumsum(uint32_t i, burn_sample *s)
{
    if (i < N_AXIS_ROWS) {
        axis_sample(s, &axis_rows[i], BURN_FILL_NORMAL, 0);
        return BURN_OK;
    }
    return axis_errors(i - N_AXIS_ROWS, s, 0);
}

static const burni_special cumsum_special[] = {
    {"middle axis", "special values", 0, 1},
    {"rank 4", "special values, short lines", 0, 1},
};

static int32_t cumsum_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, samples_cumsum, cumsum_special,
                                 BURNI_N_SPECIAL(cumsum_special));
}

/* Integers of NORMAL fill tie often; special values have NaN in several places. */
static int32_t samples_arg(uint32_t i, burn_sample *s)
{
    if (i < 2 * N_AXIS_ROWS) {
        uint8_t fill = i % 2 == 0 ? BURN_FILL_NORMAL : BURN_FILL_SPECIAL;
        axis_sample(s, &axis_rows[i / 2], fill, 1);
        s->flags = BURN_SAMPLE_NO_GRAD;
        return BURN_OK;
    }
    return axis_errors(i - 2 * N_AXIS_ROWS, s, 1);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const burn_role roles_cumsum[2] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                          BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_NUMERIC)};
static const burn_role roles_arg[2] = {BURNI_ROLE("x", 0, BURN_SET_NUMERIC),
                                       BURNI_ROLE("index", BURN_ROLE_NO_GRAD, BURN_BIT(I64))};
static const uint32_t save_none[1] = {0};
static const char no_vjp_index[] = "the result is an index, which carries no gradient";

#define AXIS_DEF(NAME, name_)                                                                      \
    BURNI_DEF(NAME, name_), .n_in = 1, .n_out = 1, .attrs = burni_attrs_axis_rows,                 \
        .n_attrs = BURNI_N_ATTRS_AXIS, .attrs_size = (uint32_t)sizeof(burn_attrs_axis)

const burn_op_def burn_op_def_cumsum = {
    AXIS_DEF(CUMSUM, cumsum),
    .flags = BURN_OP_PRIMITIVE,
    .summary = "running sum along an axis; integers wrap",
    .roles = roles_cumsum,
    .infer = infer_cumsum,
    .vjp = vjp_cumsum,
    .vjp_saves = save_none,
    .eval = eval_cumsum,
    .samples = cumsum_all_samples,
};

const burn_op_def burn_op_def_argmax = {
    AXIS_DEF(ARGMAX, argmax),
    .flags = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE,
    .summary = "index of the largest element; the first NaN, else the lowest index among ties",
    .roles = roles_arg,
    .infer = infer_argmax,
    .no_vjp = no_vjp_index,
    .eval = eval_argmax,
    .samples = samples_arg,
};

const burn_op_def burn_op_def_argmin = {
    AXIS_DEF(ARGMIN, argmin),
    .summary = "index of the smallest element; the first NaN, else the lowest index among ties",
    .roles = roles_arg,
    .infer = infer_argmin,
    .no_vjp = no_vjp_index,
    .decompose = expand_argmin,
    .eval = eval_argmin,
    .samples = samples_arg,
};
