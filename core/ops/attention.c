/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attention.c - scaled dot-product attention over [b, h, s, d], and its gradient.
 *
 * Owns the two definitions. A bool mask says who may attend, a float mask is added to the scores;
 * the causal mask is aligned bottom right: row i sees keys 0 .. i + t - s. A row that sees no key
 * gives exactly 0, and gradients of 0. Half precision is computed in f32. attention_grad has no
 * vjp: higher orders differentiate its decomposition. To add a variant (softcap, grouped heads):
 * change the scores in one place each of decomposition and eval.
 */
#include "base/alloc.h"
#include "ops/nn.h"

#include <math.h>
#include <string.h>

enum { Q = 0, K = 1, V = 2, MASK = 3, G = 4 };

static const burn_attr attention_attrs[] = {
    BURNI_ATTR(burn_attrs_attention, scale, BURN_ATTR_F64, BURN_ATTR_KEY,
               "times the scores; 0: 1 / sqrt(head size)"),
    BURNI_ATTR(burn_attrs_attention, causal, BURN_ATTR_BOOL, BURN_ATTR_KEY,
               "1: row i sees keys 0 .. i + t - s"),
};
enum { N_ATTENTION_ATTRS = 2 };

#define MASK_DTYPES (BURN_SET_FLOAT | BURN_BIT(BOOL))

static const burn_role attention_roles[] = {
    BURNI_ROLE("q", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("k", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("v", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE("mask", BURN_ROLE_OPTIONAL, MASK_DTYPES),
    BURNI_ROLE_LIKE("y", 0, 0, BURN_SET_FLOAT),
};

static const burn_role attention_grad_roles[] = {
    BURNI_ROLE("q", 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("k", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("v", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE("mask", BURN_ROLE_OPTIONAL, MASK_DTYPES),
    BURNI_ROLE_LIKE("g", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gq", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gk", 0, 0, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("gv", 0, 0, BURN_SET_FLOAT),
};

/* ---- shapes ---------------------------------------------------------------------------------- */

static int32_t shape_error(const char *op, const char *what, const burn_meta *x,
                           const char *peer, const burn_meta *y, burn_err *err)
{
    char x_text[192];
    char y_text[192];
    return burni_fail(err, BURN_E_SHAPE, "%s: %s has shape %s, %s has %s; wanted are %s", op, what,
                      burni_shape_text(x_text, sizeof(x_text), x->rank, x->dims), peer,
                      burni_shape_text(y_text, sizeof(y_text), y->rank, y->dims),
                      "q [b,h,s,d], k [b,h,t,d], v [b,h,t,e]");
}

static burn_meta scores_meta(const burn_meta *q, const burn_meta *k)
{
    burn_meta scores = *q;
    scores.dims[3] = k->rank == 4 ? k->dims[2] : 0;
    return scores;
}

static int32_t check_mask(const char *op, const burn_meta *q, const burn_meta *k,
                          const burn_meta *mask, burn_err *err)
{
    burn_meta scores = scores_meta(q, k);
    burn_meta both = scores;
    char mask_text[192];
    char text[192];
    if (mask->dtype != BURN_BOOL && mask->dtype != q->dtype) {
        return burni_fail(err, BURN_E_DTYPE, "%s: mask is %s; it must be bool, or %s like q", op,
                          burn_dtype_name(mask->dtype), burn_dtype_name(q->dtype));
    }
    int32_t code = burni_broadcast(op, mask, &scores, &both, NULL);
    if (code == BURN_OK && burni_nn_same_shape(&both, &scores)) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_SHAPE,
                      "%s: mask %s does not broadcast to the scores [b,h,s,t] %s", op,
                      burni_shape_text(mask_text, sizeof(mask_text), mask->rank, mask->dims),
                      burni_shape_text(text, sizeof(text), scores.rank, scores.dims));
}

static int32_t check_operands(const char *op, const burn_infer *a)
{
    const burn_meta *q = a->in[Q];
    const burn_meta *k = a->in[K];
    const burn_meta *v = a->in[V];
    if (a->attrs == NULL || a->attrs_size < sizeof(burn_attrs_attention)) {
        return burni_no_attrs(op, a->err);
    }
    if (q->rank != 4) {
        return shape_error(op, "q", q, "k", k, a->err);
    }
    if (k->rank != 4 || k->dims[0] != q->dims[0] || k->dims[1] != q->dims[1] ||
        k->dims[3] != q->dims[3]) {
        return shape_error(op, "k", k, "q", q, a->err);
    }
    if (v->rank != 4 || v->dims[0] != k->dims[0] || v->dims[1] != k->dims[1] ||
        v->dims[2] != k->dims[2]) {
        return shape_error(op, "v", v, "k", k, a->err);
    }
    if (a->n_in > MASK && burni_nn_present(a->in[MASK])) {
        return check_mask(op, q, k, a->in[MASK], a->err);
    }
    return BURN_OK;
}

static burn_meta output_meta(const burn_meta *q, const burn_meta *v)
{
    burn_meta y = *q;
    y.dims[3] = v->dims[3];
    return y;
}

static double scale_of(const burn_attrs_attention *attrs, const burn_meta *q)
{
    if (attrs->scale != 0.0) {
        return attrs->scale;
    }
    return q->dims[3] > 0 ? 1.0 / sqrt((double)q->dims[3]) : 1.0;
}

/* ---- decomposition --------------------------------------------------------------------------- */

/* The operands in the dtype computed in, and what both directions need. */
typedef struct attention_parts {
    const burn_attrs_attention *attrs;
    const burn_meta *meta; /* of the inputs */
    double scale;
    burn_value *q; /* scaled */
    burn_value *k;
    burn_value *v;
    burn_value *weights; /* [b, h, s, t] */
} attention_parts;

/* bool [s, t]: may row i see key j? */
static burn_value *causal_keep(const burn_builder *b, int64_t s, int64_t t)
{
    const int64_t column[2] = {s, 1};
    const int64_t row[2] = {1, t};
    burn_value *last = burn_b_arange(b, BURN_I64, s, (double)(t - s), 1.0);
    burn_value *key = burn_b_arange(b, BURN_I64, t, 0.0, 1.0);
    last = burn_b_reshape(b, last, 2, column);
    key = burn_b_reshape(b, key, 2, row);
    return burn_b_less_equal(b, key, last);
}

static burn_value *masked_scores(const burn_builder *b, const attention_parts *p, burn_value *mask)
{
    burn_value *scores = burn_b_matmul(b, p->q, burn_b_transpose(b, p->k, 2, 3));
    burn_value *never = burn_b_num(b, scores, -HUGE_VAL);
    if (mask != NULL && p->meta[MASK].dtype == BURN_BOOL) {
        scores = burn_b_where(b, mask, scores, never);
    } else if (mask != NULL) {
        scores = burn_b_add(b, scores, burni_nn_widen(b, mask));
    }
    if (p->attrs->causal) {
        burn_value *keep = causal_keep(b, p->meta[Q].dims[2], p->meta[K].dims[2]);
        scores = burn_b_where(b, keep, scores, never);
    }
    return scores;
}

/* Softmax over the last axis in which a row of -inf gives 0 (and no NaN on the way). */
static burn_value *masked_softmax(const burn_builder *b, burn_value *scores)
{
    burn_value *max = burn_b_reduce1(b, BURN_OP_MAX, scores, 3, 1);
    burn_value *dead = burn_b_equal_num(b, max, -HUGE_VAL);
    burn_value *shift = burn_b_where(b, dead, burn_b_num(b, max, 0.0), max);
    burn_value *e = burn_b_exp(b, burn_b_sub(b, scores, shift));
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, e, 3, 1);
    burn_value *divisor = burn_b_where(b, dead, burn_b_num(b, sum, 1.0), sum);
    return burn_b_div(b, e, divisor);
}

static attention_parts forward_parts(const burn_builder *b, burn_value *const *in,
                                     const burn_meta *meta, const burn_attrs_attention *attrs)
{
    attention_parts p;
    p.attrs = attrs;
    p.meta = meta;
    p.scale = scale_of(attrs, &meta[Q]);
    p.q = burn_b_mul_num(b, burni_nn_widen(b, in[Q]), p.scale);
    p.k = burni_nn_widen(b, in[K]);
    p.v = burni_nn_widen(b, in[V]);
    p.weights = masked_softmax(b, masked_scores(b, &p, in[MASK]));
    return p;
}

static int32_t attention_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_attention *attrs = BURNI_ATTRS(a, burn_attrs_attention);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    const burn_meta *q = &a->in_meta[Q];
    burn_meta y = output_meta(q, &a->in_meta[V]);
    if (a->in_meta[K].dims[2] == 0 || burni_nn_numel(&y) == 0) {
        a->out[0] = burn_b_fill(b, q->dtype, y.rank, y.dims, 0.0); /* no key: rows of 0 */
        return BURN_OK;
    }
    attention_parts p = forward_parts(b, a->in, a->in_meta, attrs);
    a->out[0] = burni_nn_narrow(b, burn_b_matmul(b, p.weights, p.v), q->dtype);
    return BURN_OK;
}

/* Gradient of the masked scores: weights * (gw - sum(weights * gw)), gw = g v^T. */
static burn_value *scores_gradient(const burn_builder *b, const attention_parts *p, burn_value *g)
{
    burn_value *gw = burn_b_matmul(b, g, burn_b_transpose(b, p->v, 2, 3));
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, burn_b_mul(b, p->weights, gw), 3, 1);
    return burn_b_mul(b, p->weights, burn_b_sub(b, gw, sum));
}

static int32_t attention_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_attention *attrs = BURNI_ATTRS(a, burn_attrs_attention);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    uint8_t dtype = a->in_meta[Q].dtype;
    burn_meta scores = scores_meta(&a->in_meta[Q], &a->in_meta[K]);
    if (burni_nn_numel(&scores) == 0) {
        for (uint32_t i = 0; i < 3; i++) {
            const burn_meta *x = &a->in_meta[i];
            a->out[i] = burn_b_fill(b, dtype, x->rank, x->dims, 0.0);
        }
        return BURN_OK;
    }
    attention_parts p = forward_parts(b, a->in, a->in_meta, attrs);
    burn_value *g = burni_nn_widen(b, a->in[G]);
    burn_value *gs = scores_gradient(b, &p, g);
    burn_value *gq = burn_b_mul_num(b, burn_b_matmul(b, gs, p.k), p.scale);
    burn_value *gk = burn_b_matmul(b, burn_b_transpose(b, gs, 2, 3), p.q);
    burn_value *gv = burn_b_matmul(b, burn_b_transpose(b, p.weights, 2, 3), g);
    a->out[0] = burni_nn_narrow(b, gq, dtype);
    a->out[1] = burni_nn_narrow(b, gk, dtype);
    a->out[2] = burni_nn_narrow(b, gv, dtype);
    return BURN_OK;
}

/* Sums x (of shape `from`) over the axes along which `to` is broadcast, and gives it to's shape. */
static burn_value *sum_back(const burn_builder *b, burn_value *x, const burn_meta *from,
                            const burn_meta *to)
{
    int64_t axes[BURN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        uint32_t skip = (uint32_t)from->rank - to->rank;
        if (i < skip || (to->dims[i - skip] == 1 && from->dims[i] != 1)) {
            axes[n++] = (int64_t)i;
        }
    }
    burn_value *sum = n > 0 ? burn_b_reduce(b, BURN_OP_SUM, x, n, axes, 1) : x;
    return burn_b_reshape(b, sum, to->rank, to->dims);
}

/* ---- vjp ------------------------------------------------------------------------------------- */

static burn_value *bias_gradient(const burn_builder *b, const burn_vjp *a,
                                 const burn_attrs_attention *attrs)
{
    const burn_meta *mask = &a->in_meta[MASK];
    burn_meta scores = scores_meta(&a->in_meta[Q], &a->in_meta[K]);
    if (burni_nn_numel(&scores) == 0) {
        return NULL;
    }
    attention_parts p = forward_parts(b, a->in, a->in_meta, attrs);
    burn_value *gs = scores_gradient(b, &p, burni_nn_widen(b, a->grad_out[0]));
    return burni_nn_narrow(b, sum_back(b, gs, &scores, mask), mask->dtype);
}

static int32_t attention_vjp(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_attention *attrs = BURNI_ATTRS(a, burn_attrs_attention);
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = NULL;
    }
    if (attrs == NULL || a->grad_out[0] == NULL) {
        return attrs == NULL ? BURN_E_INVALID : BURN_OK;
    }
    if (a->wanted[Q] || a->wanted[K] || a->wanted[V]) {
        burn_value *in[5] = {a->in[Q], a->in[K], a->in[V], a->in[MASK], a->grad_out[0]};
        burn_value *out[3] = {NULL, NULL, NULL};
        (void)b->emit(b->ctx, BURN_OP_ATTENTION_GRAD, a->attrs, a->attrs_size, in, 5, out, 3);
        for (uint32_t i = 0; i < 3; i++) {
            a->grad_in[i] = a->wanted[i] ? out[i] : NULL;
        }
    }
    if (a->wanted[MASK] && a->in_meta[MASK].dtype != BURN_BOOL) {
        a->grad_in[MASK] = bias_gradient(b, a, attrs);
    }
    return BURN_OK;
}

#define SAVE_INPUTS (BURN_SAVE_IN(Q) | BURN_SAVE_IN(K) | BURN_SAVE_IN(V) | BURN_SAVE_IN(MASK))

static const uint32_t attention_saves[] = {SAVE_INPUTS, SAVE_INPUTS, SAVE_INPUTS, SAVE_INPUTS};

/* ---- eval ------------------------------------------------------------------------------------ */

typedef struct eval_state {
    const burn_eval *a;
    const burn_attrs_attention *attrs;
    double scale;
    int64_t heads; /* b * h */
    int64_t s;
    int64_t t;
    int64_t d;
    int64_t e;
    int64_t mask_strides[4];
    double *weights; /* one row of t */
    double *gw;      /* one row of t */
} eval_state;

/* The masked score of a row and a key; -inf when it may not attend. */
static double score_at(const eval_state *st, int64_t head, int64_t i, int64_t j)
{
    const burn_eval_operand *mask = &st->a->in[MASK];
    const double *q = st->a->in[Q].f + (head * st->s + i) * st->d;
    const double *k = st->a->in[K].f + (head * st->t + j) * st->d;
    double score = 0.0;
    if (st->attrs->causal && j > i + st->t - st->s) {
        return -HUGE_VAL;
    }
    for (int64_t x = 0; x < st->d; x++) {
        score += q[x] * k[x];
    }
    score *= st->scale;
    if (!burni_nn_present(&mask->meta)) {
        return score;
    }
    int64_t h = st->a->in[Q].meta.dims[1];
    int64_t at = head / h * st->mask_strides[0] + head % h * st->mask_strides[1] +
                 i * st->mask_strides[2] + j * st->mask_strides[3];
    if (mask->meta.dtype == BURN_BOOL) {
        return mask->i[at] ? score : -HUGE_VAL;
    }
    return score + mask->f[at];
}

static void eval_weights(const eval_state *st, int64_t head, int64_t i)
{
    double max = -HUGE_VAL;
    double sum = 0.0;
    for (int64_t j = 0; j < st->t; j++) {
        double score = score_at(st, head, i, j);
        st->weights[j] = score;
        if (isnan(score) || score > max) {
            max = score;
        }
    }
    int dead = isinf(max) && max < 0.0;
    for (int64_t j = 0; j < st->t; j++) {
        st->weights[j] = dead ? 0.0 : exp(st->weights[j] - max);
        sum += st->weights[j];
    }
    for (int64_t j = 0; j < st->t && !dead; j++) {
        st->weights[j] /= sum;
    }
}

static int32_t begin_eval(const char *op, const burn_eval *a, eval_state *st)
{
    memset(st, 0, sizeof(*st));
    st->a = a;
    st->attrs = BURNI_ATTRS(a, burn_attrs_attention);
    if (st->attrs == NULL) {
        return burni_no_attrs(op, a->err);
    }
    const burn_meta *q = &a->in[Q].meta;
    burn_meta scores = scores_meta(q, &a->in[K].meta);
    st->scale = scale_of(st->attrs, q);
    st->heads = q->dims[0] * q->dims[1];
    st->s = q->dims[2];
    st->t = a->in[K].meta.dims[2];
    st->d = q->dims[3];
    st->e = a->in[V].meta.dims[3];
    if (burni_nn_present(&a->in[MASK].meta)) {
        burni_broadcast_strides(&a->in[MASK].meta, &scores, st->mask_strides);
    }
    st->weights = burni_calloc((size_t)st->t * 2 + 1, sizeof(double));
    if (st->weights == NULL) {
        return burni_fail(a->err, BURN_E_NO_MEMORY, "%s: no memory for a row of %lld scores", op,
                          (long long)st->t);
    }
    st->gw = st->weights + st->t;
    return BURN_OK;
}

static int32_t attention_eval(const burn_eval *a)
{
    eval_state st;
    int32_t code = begin_eval("attention", a, &st);
    if (code != BURN_OK) {
        return code;
    }
    for (int64_t row = 0; row < st.heads * st.s; row++) {
        const double *v = a->in[V].f + row / st.s * st.t * st.e;
        eval_weights(&st, row / st.s, row % st.s);
        for (int64_t x = 0; x < st.e; x++) {
            double y = 0.0;
            for (int64_t j = 0; j < st.t; j++) {
                y += st.weights[j] * v[j * st.e + x];
            }
            a->out[0].f[row * st.e + x] = y;
        }
    }
    burni_free(st.weights);
    return BURN_OK;
}

/* Adds what one row sends back; its weights are in the state. */
static void eval_grad_row(const eval_state *st, int64_t row)
{
    const burn_eval *a = st->a;
    int64_t head = row / st->s;
    const double *g = a->in[G].f + row * st->e;
    const double *q = a->in[Q].f + row * st->d;
    const double *k = a->in[K].f + head * st->t * st->d;
    const double *v = a->in[V].f + head * st->t * st->e;
    double *gq = a->out[0].f + row * st->d;
    double *gk = a->out[1].f + head * st->t * st->d;
    double *gv = a->out[2].f + head * st->t * st->e;
    double sum = 0.0;
    for (int64_t j = 0; j < st->t; j++) {
        st->gw[j] = 0.0;
        for (int64_t x = 0; x < st->e; x++) {
            st->gw[j] += g[x] * v[j * st->e + x];
            gv[j * st->e + x] += st->weights[j] * g[x];
        }
        sum += st->weights[j] * st->gw[j];
    }
    for (int64_t j = 0; j < st->t; j++) {
        double gs = st->weights[j] * (st->gw[j] - sum) * st->scale;
        for (int64_t x = 0; x < st->d; x++) {
            gq[x] += gs * k[j * st->d + x];
            gk[j * st->d + x] += gs * q[x];
        }
    }
}

static int32_t attention_grad_eval(const burn_eval *a)
{
    eval_state st;
    int32_t code = begin_eval("attention_grad", a, &st);
    if (code != BURN_OK) {
        return code;
    }
    for (uint32_t j = 0; j < 3; j++) {
        for (uint64_t k = 0; k < a->out[j].n; k++) {
            a->out[j].f[k] = 0.0;
        }
    }
    for (int64_t row = 0; row < st.heads * st.s; row++) {
        eval_weights(&st, row / st.s, row % st.s);
        eval_grad_row(&st, row);
    }
    burni_free(st.weights);
    return BURN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A bias must have q's dtype, so its samples name one. */
enum { MASK_NONE = 0, MASK_BOOL = 1, MASK_BIAS = 2, MASK_BIAS_F64 = 3 };

typedef struct attention_sample {
    const char *name;
    int64_t b, h, s, t, d, e;
    uint32_t mask;
    uint32_t mask_rank;
    int64_t mask_dims[4];
    uint32_t causal;
    double scale;
    int32_t error;
    uint32_t n_values;
    const double *values;
} attention_sample;

/* Row 1 of four sees nothing. */
static const double row_mask[] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1};
/* Nobody sees key 0: with the causal mask, row 0 sees nothing. */
static const double key_mask[] = {0, 1, 1, 1};
static const double row_bias[] = {0.5, -HUGE_VAL, 1.0, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL};

static const attention_sample attention_table[] = {
    {"plain", 2, 2, 3, 5, 4, 3, MASK_NONE, 0, {0}, 0, 0, 0, 0, NULL},
    {"causal", 1, 2, 4, 4, 8, 8, MASK_NONE, 0, {0}, 1, 0, 0, 0, NULL},
    {"causal, more keys", 1, 1, 3, 7, 5, 2, MASK_NONE, 0, {0}, 1, 0.3, 0, 0, NULL},
    {"causal, more rows", 1, 1, 5, 3, 4, 4, MASK_NONE, 0, {0}, 1, 0, 0, 0, NULL},
    {"bool mask", 2, 2, 3, 5, 4, 3, MASK_BOOL, 4, {2, 1, 3, 5}, 0, 0, 0, 0, NULL},
    {"masked row", 1, 1, 4, 4, 8, 8, MASK_BOOL, 2, {4, 4}, 0, 0, 0, 16, row_mask},
    {"key mask and causal", 1, 1, 4, 4, 8, 8, MASK_BOOL, 1, {4}, 1, 0, 0, 4, key_mask},
    {"bias", 2, 3, 3, 5, 4, 3, MASK_BIAS_F64, 3, {3, 3, 5}, 0, 0, 0, 0, NULL},
    {"bias per key", 2, 1, 3, 5, 4, 3, MASK_BIAS, 4, {2, 1, 1, 5}, 1, 0, 0, 0, NULL},
    {"no keys", 1, 2, 3, 0, 4, 5, MASK_NONE, 0, {0}, 0, 0, 0, 0, NULL},
    {"no rows", 1, 2, 0, 3, 4, 5, MASK_NONE, 0, {0}, 1, 0, 0, 0, NULL},
    {"no batch", 0, 2, 3, 3, 4, 5, MASK_NONE, 0, {0}, 0, 0, 0, 0, NULL},
    {"head size 0", 1, 1, 2, 3, 0, 2, MASK_NONE, 0, {0}, 0, 0, 0, 0, NULL},
    {"bias of -inf", 1, 1, 2, 3, 4, 4, MASK_BIAS, 2, {2, 3}, 0, 0, 0, 6, row_bias},
    {"mask of a wrong shape", 1, 1, 4, 4, 4, 4, MASK_BOOL, 2, {4, 3}, 0, 0, BURN_E_SHAPE, 0, NULL},
    {"mask larger than scores", 1, 1, 4, 4, 4, 4, MASK_BOOL, 3, {2, 4, 4}, 0, 0, BURN_E_SHAPE, 0,
     NULL},
};
enum { N_GOOD_SAMPLES = 14, BIAS_OF_INF = 13 };

static void mask_operand(burn_sample *out, const attention_sample *s)
{
    if (s->mask == MASK_NONE) {
        burni_sample_absent(out, MASK);
    } else if (s->mask == MASK_BOOL) {
        burni_sample_tensor(out, MASK, BURN_BOOL, BURN_FILL_BOOL, s->mask_rank, s->mask_dims);
    } else {
        uint8_t dtype = s->mask == MASK_BIAS ? BURN_F32 : BURN_F64;
        burni_sample_tensor(out, MASK, dtype, BURN_FILL_NORMAL, s->mask_rank, s->mask_dims);
        out->dtypes = UINT64_C(1) << dtype;
    }
    if (s->n_values > 0) {
        burni_sample_values(out, MASK, s->n_values, s->values);
    }
}

/*
 * What is no number, in q, k, v or g: 4 queries of 5 keys, or 70 of 70, which an implementation may
 * cut into tiles. Heads have 3 elements (1 in the long ones). Operands that are not named are made
 * of small positive numbers, so that the sign of an inf decides.
 */
#define NOT (double)NAN
#define INF HUGE_VAL
static const double positive[] = {0.5, 1.0, 0.25, 0.75, 1.5, 1.25, 0.375};
static const double nan_in_row_1[] = {0.5, 1, 0.25, 1, NOT, 0.5, 1, 0.5, 2, 0.5, 1, 1};
static const double up_row_1[] = {0.5, 1, 0.25, INF, INF, INF, 1, 0.5, 2, 0.5, 1, 1};
static const double down_row_1[] = {0.5, 1, 0.25, -INF, -INF, -INF, 1, 0.5, 2, 0.5, 1, 1};
static const double both_row_1[] = {0.5, 1, 0.25, INF, -INF, 1, 1, 0.5, 2, 0.5, 1, 1};
static const double nan_in_row_3[] = {0.5, 1, 0.25, 1, 2, 0.5, 1, 0.5, 2, 0.5, NOT, 1};
static const double nan_at_0[70] = {[0] = NOT};
static const double nan_at_69[70] = {[69] = NOT};
static const double nan_bias[] = {0, 1, 0, 0, 0, NOT, 0, 1, 0, INF, 0, 0, -INF, 0, 0, 0};
static const double sees_first[] = {1, 0, 1, 1};

typedef struct special_sample {
    const char *name;
    uint32_t operand; /* that `values` are for */
    uint32_t n_values;
    const double *values;
    int64_t s, t, d;
    uint32_t causal;
    uint32_t mask;
    uint32_t mask_rank; /* of one or two axes of 4 */
    uint32_t n_mask;
    const double *mask_values;
    double scale;
} special_sample;

static const special_sample special_table[] = {
    {"NaN in q", Q, 12, nan_in_row_1, 4, 5, 3, 0, 0, 0, 0, NULL, 0},
    {"NaN in k", K, 12, nan_in_row_3, 4, 4, 3, 0, 0, 0, 0, NULL, 0},
    {"NaN in k, causal", K, 12, nan_in_row_3, 4, 4, 3, 1, 0, 0, 0, NULL, 0},
    {"NaN in v", V, 12, nan_in_row_1, 4, 4, 3, 0, 0, 0, 0, NULL, 0},
    {"NaN in v, causal", V, 12, nan_in_row_3, 4, 4, 3, 1, 0, 0, 0, NULL, 0},
    {"+inf in q", Q, 12, up_row_1, 4, 5, 3, 0, 0, 0, 0, NULL, 0},
    {"-inf in q", Q, 12, down_row_1, 4, 5, 3, 0, 0, 0, 0, NULL, 0},
    {"both inf in q", Q, 12, both_row_1, 4, 5, 3, 1, 0, 0, 0, NULL, 0},
    {"+inf in k", K, 12, up_row_1, 4, 4, 3, 1, 0, 0, 0, NULL, 0},
    {"-inf in k", K, 12, down_row_1, 4, 4, 3, 0, 0, 0, 0, NULL, 0},
    {"both inf in v", V, 12, both_row_1, 4, 4, 3, 0, 0, 0, 0, NULL, 0},
    {"scale NaN", Q, 7, positive, 4, 5, 3, 0, 0, 0, 0, NULL, NOT},
    {"scale NaN, rows that see no key", Q, 7, positive, 5, 3, 3, 1, 0, 0, 0, NULL, NOT},
    {"scale inf", Q, 7, positive, 4, 5, 3, 0, 0, 0, 0, NULL, INF},
    {"scale -inf", Q, 7, positive, 4, 5, 3, 0, 0, 0, 0, NULL, -INF},
    {"NaN in a masked key", K, 12, nan_in_row_1, 4, 4, 3, 0, MASK_BOOL, 1, 4, sees_first, 0},
    {"+inf in a masked key", K, 12, up_row_1, 4, 4, 3, 1, MASK_BOOL, 1, 4, sees_first, 0},
    {"NaN in a masked row", Q, 12, nan_in_row_1, 4, 4, 3, 0, MASK_BOOL, 2, 16, row_mask, 0},
    {"NaN in a row that sees no key", Q, 12, nan_in_row_1, 5, 3, 3, 1, 0, 0, 0, NULL, 0},
    {"bias of NaN and inf", Q, 7, positive, 4, 4, 3, 1, MASK_BIAS, 2, 16, nan_bias, 0},
    {"bias of NaN and inf, f64", Q, 7, positive, 4, 4, 3, 0, MASK_BIAS_F64, 2, 16, nan_bias, 0},
    {"NaN in the first of many q", Q, 70, nan_at_0, 70, 70, 1, 1, 0, 0, 0, NULL, 0},
    {"NaN in the last of many v", V, 70, nan_at_69, 70, 70, 1, 1, 0, 0, 0, NULL, 0},
    {"NaN in g", G, 12, nan_in_row_1, 4, 4, 3, 0, 0, 0, 0, NULL, 0},
    {"NaN in the first of many g", G, 70, nan_at_0, 70, 70, 1, 1, 0, 0, 0, NULL, 0},
};
enum {
    N_SPECIAL = sizeof(special_table) / sizeof(special_table[0]),
    N_SPECIAL_FORWARD = N_SPECIAL - 2 /* the last two are about g */
};
#undef NOT
#undef INF

static void special_sample_of(const special_sample *row, burn_sample *out, uint32_t n_operands)
{
    static const uint32_t operands[] = {Q, K, V, G};
    attention_sample s = {.mask = row->mask, .mask_rank = row->mask_rank, .mask_dims = {4, 4}};
    s.n_values = row->n_mask;
    s.values = row->mask_values;
    burn_attrs_attention attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.scale = row->scale;
    attrs.causal = row->causal;
    burni_sample_begin(out, row->name, 32.0, 512.0);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    mask_operand(out, &s);
    for (uint32_t k = 0; k < n_operands; k++) {
        uint32_t i = operands[k];
        int64_t dims[4] = {1, 2, i == Q || i == G ? row->s : row->t, row->d};
        int own = i == row->operand;
        burni_sample_tensor(out, i, 0, BURN_FILL_VALUES, 4, dims);
        burni_sample_values(out, i, own ? row->n_values : 7, own ? row->values : positive);
    }
    out->flags |= BURN_SAMPLE_NO_GRAD;
    if (row->s == 70) {
        out->dtypes = BURN_BIT(F32); /* halves are computed in it, too; f64 has the short ones */
    }
}

static int32_t attention_samples(uint32_t i, burn_sample *out)
{
    const uint32_t n = sizeof(attention_table) / sizeof(attention_table[0]);
    if (i > n) {
        i -= n + 1;
        if (i < N_SPECIAL_FORWARD) {
            special_sample_of(&special_table[i], out, 3);
        }
        return i < N_SPECIAL_FORWARD ? BURN_OK : BURN_E_END;
    }
    const attention_sample *s = &attention_table[i < n ? i : 0];
    int64_t q_dims[4] = {s->b, s->h, s->s, s->d};
    int64_t k_dims[4] = {s->b, s->h, s->t, i < n ? s->d : s->d + 1};
    int64_t v_dims[4] = {s->b, s->h, s->t, s->e};
    burn_attrs_attention attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.scale = s->scale;
    attrs.causal = s->causal;
    burni_sample_begin(out, i < n ? s->name : "head sizes differ", 32.0, 512.0);
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    burni_sample_tensor(out, Q, 0, BURN_FILL_NORMAL, 4, q_dims);
    burni_sample_tensor(out, K, 0, BURN_FILL_NORMAL, 4, k_dims);
    burni_sample_tensor(out, V, 0, BURN_FILL_NORMAL, 4, v_dims);
    mask_operand(out, s);
    if (i == BIAS_OF_INF) {
        out->flags |= BURN_SAMPLE_NO_GRAD; /* no difference quotient at -inf */
    }
    if (i >= N_GOOD_SAMPLES) {
        burni_sample_error(out, i < n ? s->error : BURN_E_SHAPE);
    }
    return BURN_OK;
}

static int32_t attention_grad_samples(uint32_t i, burn_sample *out)
{
    if (i >= N_GOOD_SAMPLES + N_SPECIAL) {
        return BURN_E_END;
    }
    if (i >= N_GOOD_SAMPLES) {
        special_sample_of(&special_table[i - N_GOOD_SAMPLES], out, 4);
        return BURN_OK;
    }
    int32_t code = attention_samples(i, out);
    const attention_sample *s = &attention_table[i];
    int64_t g_dims[4] = {s->b, s->h, s->s, s->e};
    burni_sample_tensor(out, G, 0, BURN_FILL_NORMAL, 4, g_dims);
    return code;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static int32_t attention_infer(const burn_infer *a)
{
    int32_t code = check_operands("attention", a);
    if (code == BURN_OK) {
        burn_meta y = output_meta(a->in[Q], a->in[V]);
        burni_nn_copy_shape(&a->out[0], &y);
    }
    return code;
}

static int32_t attention_grad_infer(const burn_infer *a)
{
    int32_t code = check_operands("attention_grad", a);
    if (code != BURN_OK) {
        return code;
    }
    burn_meta y = output_meta(a->in[Q], a->in[V]);
    for (uint32_t i = 0; i < 3; i++) {
        burni_nn_copy_shape(&a->out[i], a->in[i]);
    }
    return burni_nn_check_shape("attention_grad", "the output", &y, "g", a->in[G], a->err);
}

static uint64_t attention_flops(const burn_infer *a)
{
    burn_meta scores = scores_meta(a->in[Q], a->in[K]);
    int64_t n = burni_nn_numel(&scores);
    return n > 0 ? 2u * (uint64_t)n * (uint64_t)(a->in[Q]->dims[3] + a->in[V]->dims[3]) : 0;
}

const burn_op_def burn_op_def_attention = {
    BURNI_DEF(ATTENTION, attention),
    .summary = "softmax(q k^T * scale + mask) v; a row that may see no key gives 0",
    .n_in = 4,
    .n_out = 1,
    .roles = attention_roles,
    .attrs = attention_attrs,
    .n_attrs = N_ATTENTION_ATTRS,
    .attrs_size = sizeof(burn_attrs_attention),
    .infer = attention_infer,
    .vjp = attention_vjp,
    .vjp_saves = attention_saves,
    .decompose = attention_decompose,
    .eval = attention_eval,
    .samples = attention_samples,
    .flops = attention_flops,
};

const burn_op_def burn_op_def_attention_grad = {
    BURNI_DEF(ATTENTION_GRAD, attention_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradients of attention: of q, k and v",
    .n_in = 5,
    .n_out = 3,
    .roles = attention_grad_roles,
    .attrs = attention_attrs,
    .n_attrs = N_ATTENTION_ATTRS,
    .attrs_size = sizeof(burn_attrs_attention),
    .infer = attention_grad_infer,
    .decompose = attention_grad_decompose,
    .eval = attention_grad_eval,
    .samples = attention_grad_samples,
};
