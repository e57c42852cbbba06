/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pointwise.c - what the pointwise families share: broadcast walks, builder helpers, sample sets.
 *
 * Owns no op and no state. A sample set is a table of shapes; the domain of the op says what fills
 * them. To add a sample to every unary or binary op: one more row of the table here.
 */
#include "ops/pointwise.h"

#include <math.h>
#include <string.h>

/* ---- eval ------------------------------------------------------------------------------------ */

static void walk_place(burni_walk *w)
{
    const burn_eval *a = w->a;
    uint32_t rank = a->out[0].meta.rank;
    for (uint32_t i = 0; i < a->n_in && i < 3; i++) {
        w->at[i] = (uint64_t)burni_offset(rank, w->index, w->strides[i]);
    }
}

int burni_walk_begin(burni_walk *w, const burn_eval *a)
{
    memset(w, 0, sizeof(*w));
    w->a = a;
    for (uint32_t i = 0; i < a->n_in && i < 3; i++) {
        if (a->in[i].meta.kind != BURN_ABSENT) {
            burni_broadcast_strides(&a->in[i].meta, &a->out[0].meta, w->strides[i]);
        }
    }
    walk_place(w);
    return a->out[0].n > 0;
}

int burni_walk_next(burni_walk *w)
{
    const burn_meta *out = &w->a->out[0].meta;
    w->k++;
    if (!burni_next_index(out->rank, out->dims, w->index)) {
        return 0;
    }
    walk_place(w);
    return 1;
}

static int32_t no_class(const burn_eval *a)
{
    return burni_fail(a->err, BURN_E_DTYPE, "eval: dtype %s has no meaning for this op",
                      burn_dtype_name(a->in[0].meta.dtype));
}

int32_t burni_map1(const burn_eval *a, burni_f1 f, burni_i1 i, burni_u1 u)
{
    const burn_eval_operand *x = &a->in[0];
    burn_eval_operand *y = &a->out[0];
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    for (uint64_t k = 0; k < y->n; k++) {
        if (klass == BURN_CLASS_FLOAT && f != NULL) {
            y->f[k] = f(x->f[k]);
        } else if (klass == BURN_CLASS_UINT && u != NULL) {
            y->u[k] = u(x->u[k]);
        } else if ((klass == BURN_CLASS_INT || klass == BURN_CLASS_BOOL) && i != NULL) {
            y->i[k] = i(x->i[k]);
        } else {
            return no_class(a);
        }
    }
    return BURN_OK;
}

int32_t burni_map2(const burn_eval *a, burni_f2 f, burni_i2 i, burni_u2 u)
{
    const burn_eval_operand *x = &a->in[0];
    const burn_eval_operand *y = &a->in[1];
    burn_eval_operand *z = &a->out[0];
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    burni_walk w;
    for (int more = burni_walk_begin(&w, a); more; more = burni_walk_next(&w)) {
        if (klass == BURN_CLASS_FLOAT && f != NULL) {
            z->f[w.k] = f(x->f[w.at[0]], y->f[w.at[1]]);
        } else if (klass == BURN_CLASS_UINT && u != NULL) {
            z->u[w.k] = u(x->u[w.at[0]], y->u[w.at[1]]);
        } else if ((klass == BURN_CLASS_INT || klass == BURN_CLASS_BOOL) && i != NULL) {
            z->i[w.k] = i(x->i[w.at[0]], y->i[w.at[1]]);
        } else {
            return no_class(a);
        }
    }
    return BURN_OK;
}

int burni_prefer(const burn_eval_operand *x, uint64_t at, uint64_t best, int larger)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    if (klass == BURN_CLASS_FLOAT) {
        double v = x->f[at];
        double w = x->f[best];
        if (isnan(v) || isnan(w)) {
            return isnan(v) && !isnan(w);
        }
        return larger ? v > w : v < w;
    }
    if (klass == BURN_CLASS_UINT) {
        return larger ? x->u[at] > x->u[best] : x->u[at] < x->u[best];
    }
    return larger ? x->i[at] > x->i[best] : x->i[at] < x->i[best];
}

/* ---- builder --------------------------------------------------------------------------------- */

int burni_is_float(uint8_t dtype)
{
    return burn_dtype_class(dtype) == BURN_CLASS_FLOAT;
}

burn_value *burni_b_tensor(const burn_builder *b, burn_value *v)
{
    burn_meta meta = burn_b_meta(b, v);
    if (meta.kind != BURN_IMMEDIATE) {
        return v;
    }
    burn_attrs_shape a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.dtype = meta.dtype;
    return burn_b_emit(b, BURN_OP_FILL, &a, &v, 1);
}

burn_value *burni_b_widen(const burn_builder *b, burn_value *x)
{
    burn_meta meta = burn_b_meta(b, x);
    if (meta.dtype == BURN_F16 || meta.dtype == BURN_BF16) {
        return burn_b_cast(b, x, BURN_F32);
    }
    return x;
}

burn_value *burni_b_narrow(const burn_builder *b, burn_value *x, uint8_t dtype)
{
    burn_meta meta = burn_b_meta(b, x);
    return meta.dtype == dtype ? x : burn_b_cast(b, x, dtype);
}

burn_value *burni_b_reverse(const burn_builder *b, burn_value *x)
{
    burn_meta meta = burn_b_meta(b, x);
    if (burni_is_float(meta.dtype)) {
        return burn_b_mul_num(b, x, -1.0);
    }
    return burn_b_sub_num(b, burn_b_sub(b, burn_b_num(b, x, 0.0), x), 1.0);
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct shape_row {
    const char *name;
    uint32_t rank_x;
    uint32_t rank_y;
    int64_t x[4];
    int64_t y[4];
} shape_row;

static const shape_row unary_shapes[] = {
    {"one element", 1, 0, {1}, {0}},    {"odd", 1, 0, {17}, {0}},
    {"long", 1, 0, {129}, {0}},         {"matrix", 2, 0, {65, 3}, {0}},
    {"rank 0", 0, 0, {0}, {0}},         {"empty", 2, 0, {0, 4}, {0}},
    {"rank 4", 4, 0, {2, 3, 1, 5}, {0}},
};

static const shape_row binary_shapes[] = {
    {"one element", 1, 1, {1}, {1}},
    {"odd", 1, 1, {17}, {17}},
    {"long", 1, 1, {129}, {129}},
    {"matrix", 2, 2, {65, 3}, {65, 3}},
    {"rank 0", 0, 0, {0}, {0}},
    {"broadcast both", 3, 2, {3, 1, 5}, {4, 1}},
    {"broadcast a row", 2, 1, {5, 7}, {7}},
    {"broadcast a column", 2, 2, {5, 1}, {5, 17}},
    {"rank 0 with a matrix", 0, 2, {0}, {3, 5}},
    {"empty", 2, 2, {0, 4}, {0, 4}},
    {"empty against one", 2, 2, {2, 0}, {2, 1}},
    {"one against empty", 2, 2, {1, 3}, {0, 3}},
};

enum {
    N_UNARY_SHAPES = sizeof(unary_shapes) / sizeof(unary_shapes[0]),
    N_BINARY_SHAPES = sizeof(binary_shapes) / sizeof(binary_shapes[0])
};

static void begin(burn_sample *s, const char *name, const burni_domain *d)
{
    burni_sample_begin(s, name, d->tolerance, d->grad_tolerance);
    s->flags = d->flags;
}

static void put(burn_sample *s, uint32_t i, uint8_t fill, double lo, double hi, uint32_t rank,
                const int64_t *dims)
{
    burni_sample_tensor(s, i, 0, fill, rank, dims);
    burni_sample_range(s, i, lo, hi);
}

/* Samples without a gradient: special values, chosen points, refused dtypes. */
static int32_t unary_extra(uint32_t i, burn_sample *s, const burni_domain *d)
{
    static const int64_t special[] = {67};
    static const int64_t small[] = {3};
    int64_t points[] = {(int64_t)d->n_points};
    if (i == 0) {
        int odd = d->special == 0;
        begin(s, odd ? "more values" : "special values", d);
        put(s, 0, odd ? d->fill : BURN_FILL_SPECIAL, d->lo, d->hi, 1, special);
        s->dtypes = d->special;
        s->flags |= BURN_SAMPLE_NO_GRAD;
        return BURN_OK;
    }
    if (i == 1 && d->n_points > 0) {
        begin(s, "chosen points", d);
        burni_sample_tensor(s, 0, 0, BURN_FILL_VALUES, 1, points);
        burni_sample_values(s, 0, d->n_points, d->points);
        s->dtypes = d->signed_points;
        s->flags |= BURN_SAMPLE_NO_GRAD;
        return BURN_OK;
    }
    if (i == (d->n_points > 0 ? 2u : 1u) && d->wrong != 0) {
        burni_sample_begin(s, "refused dtype", 0.0, 0.0);
        burni_sample_tensor(s, 0, d->wrong, BURN_FILL_NORMAL, 1, small);
        burni_sample_error(s, BURN_E_DTYPE);
        return BURN_OK;
    }
    return BURN_E_END;
}

int32_t burni_samples_unary(uint32_t i, burn_sample *s, const burni_domain *d)
{
    if (i >= N_UNARY_SHAPES) {
        return unary_extra(i - N_UNARY_SHAPES, s, d);
    }
    const shape_row *row = &unary_shapes[i];
    begin(s, row->name, d);
    put(s, 0, d->fill, d->lo, d->hi, row->rank_x, row->x);
    return BURN_OK;
}

static int32_t binary_errors(uint32_t i, burn_sample *s, const burni_domain *d)
{
    static const int64_t three[] = {3};
    static const int64_t four[] = {4};
    uint8_t wrong = d->wrong != 0 ? d->wrong : BURN_BOOL;
    uint8_t other = wrong == BURN_F32 ? BURN_I64 : BURN_F64;
    uint8_t first = wrong == BURN_F32 ? BURN_I32 : BURN_F32;
    if (i == 0) {
        burni_sample_begin(s, "shapes that do not fit", 0.0, 0.0);
        put(s, 0, d->fill, d->lo, d->hi, 1, three);
        put(s, 1, d->fill_y, d->lo_y, d->hi_y, 1, four);
        burni_sample_error(s, BURN_E_SHAPE);
        return BURN_OK;
    }
    if (i == 1) {
        burni_sample_begin(s, "two dtypes", 0.0, 0.0);
        burni_sample_tensor(s, 0, first, BURN_FILL_NORMAL, 1, three);
        burni_sample_tensor(s, 1, other, BURN_FILL_NORMAL, 1, three);
        burni_sample_error(s, BURN_E_DTYPE);
        return BURN_OK;
    }
    if (i == 2 && d->wrong != 0) {
        burni_sample_begin(s, "refused dtype", 0.0, 0.0);
        burni_sample_tensor(s, 0, wrong, BURN_FILL_NORMAL, 1, three);
        burni_sample_tensor(s, 1, wrong, BURN_FILL_NORMAL, 1, three);
        burni_sample_error(s, BURN_E_DTYPE);
        return BURN_OK;
    }
    return BURN_E_END;
}

static int32_t binary_extra(uint32_t i, burn_sample *s, const burni_domain *d)
{
    static const int64_t dims[] = {3, 17};
    int64_t points[] = {(int64_t)d->n_points};
    if (i > 3) {
        return binary_errors(i - 4, s, d);
    }
    static const char *const names[] = {"immediate on the right", "immediate on the left",
                                        "special values", "chosen points"};
    begin(s, i == 2 && d->special == 0 ? "more values" : names[i], d);
    if (i == 0) {
        put(s, 0, d->fill, d->lo, d->hi, 2, dims);
        burni_sample_immediate(s, 1, 0, d->number);
    } else if (i == 1) {
        burni_sample_immediate(s, 0, 0, d->number);
        put(s, 1, d->fill_y, d->lo_y, d->hi_y, 2, dims);
    } else if (i == 2) {
        /* So many that each special value of x meets each of y. */
        static const int64_t pairs[] = {15, 64};
        int odd = d->special == 0;
        put(s, 0, odd ? d->fill : BURN_FILL_SPECIAL, d->lo, d->hi, 2, pairs);
        put(s, 1, odd ? d->fill_y : BURN_FILL_SPECIAL, d->lo_y, d->hi_y, 2, pairs);
        s->dtypes = d->special;
        s->flags |= BURN_SAMPLE_NO_GRAD;
    } else {
        burni_sample_tensor(s, 0, 0, BURN_FILL_VALUES, 1, points);
        burni_sample_values(s, 0, d->n_points, d->points);
        burni_sample_tensor(s, 1, 0, BURN_FILL_VALUES, 1, points);
        burni_sample_values(s, 1, d->n_points, d->points_y);
        s->dtypes = d->signed_points;
        s->flags |= BURN_SAMPLE_NO_GRAD;
    }
    return BURN_OK;
}

int32_t burni_samples_binary(uint32_t i, burn_sample *s, const burni_domain *d)
{
    if (i >= N_BINARY_SHAPES) {
        return binary_extra(i - N_BINARY_SHAPES, s, d);
    }
    const shape_row *row = &binary_shapes[i];
    begin(s, row->name, d);
    put(s, 0, d->fill, d->lo, d->hi, row->rank_x, row->x);
    put(s, 1, d->fill_y, d->lo_y, d->hi_y, row->rank_y, row->y);
    return BURN_OK;
}
