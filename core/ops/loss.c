/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loss.c - cross_entropy and its gradient.
 *
 * Owns the two definitions. Cross entropy takes classes or probabilities; class weights, ignored
 * targets and label smoothing follow PyTorch's formulas: the smoothing term is weighted per class,
 * the mean divides by the weights of the counted targets (probabilities: by their number). Ignored
 * rows give exactly 0, whatever their logits hold. Half precision is computed in f32. A new loss
 * is a file like mse.c; most need no definition, they are written from other ops in train/.
 */
#include "ops/loss.h"

#include <math.h>
#include <string.h>

/* ---- cross_entropy: shapes ------------------------------------------------------------------- */

enum { LOGITS = 0, TARGET = 1, WEIGHT = 2, GRAD = 3 };

#define TARGET_DTYPES (BURN_SET_INDEX | BURN_SET_FLOAT)

static const burn_role cross_entropy_roles[] = {
    BURNI_ROLE("logits", 0, BURN_SET_FLOAT),
    BURNI_ROLE("target", 0, TARGET_DTYPES),
    BURNI_ROLE_LIKE("weight", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, LOGITS, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("loss", 0, LOGITS, BURN_SET_FLOAT),
};

static const burn_role cross_entropy_grad_roles[] = {
    BURNI_ROLE("logits", 0, BURN_SET_FLOAT),
    BURNI_ROLE("target", 0, TARGET_DTYPES),
    BURNI_ROLE_LIKE("weight", BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD, LOGITS, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("g", 0, LOGITS, BURN_SET_FLOAT),
    BURNI_ROLE_LIKE("glogits", 0, LOGITS, BURN_SET_FLOAT),
};

static int has_probabilities(const burn_meta *target)
{
    return burn_dtype_class(target->dtype) == BURN_CLASS_FLOAT;
}

/* The logits' shape without the class axis. */
static burn_meta rows_meta(const burn_meta *logits)
{
    burn_meta rows = *logits;
    rows.rank = (uint8_t)(logits->rank - 1u);
    memset(rows.dims, 0, sizeof(rows.dims));
    rows.dims[0] = logits->dims[0];
    for (uint32_t i = 2; i < logits->rank; i++) {
        rows.dims[i - 1] = logits->dims[i];
    }
    return rows;
}

/* The same with the class axis of size 1. */
static burn_meta column_meta(const burn_meta *logits)
{
    burn_meta column = *logits;
    column.dims[1] = 1;
    return column;
}

static int32_t check_target(const char *op, const burn_infer *a, const burn_attrs_loss *attrs)
{
    const burn_meta *logits = a->in[LOGITS];
    const burn_meta *target = a->in[TARGET];
    if (!has_probabilities(target)) {
        burn_meta rows = rows_meta(logits);
        return burni_nn_check_shape(op, "logits without their class axis", &rows, "target", target,
                                    a->err);
    }
    if (target->dtype != logits->dtype) {
        return burni_fail(a->err, BURN_E_DTYPE,
                          "%s: target is %s, logits are %s; probabilities must have the logits' "
                          "dtype (cast), classes i64 or i32",
                          op, burn_dtype_name(target->dtype), burn_dtype_name(logits->dtype));
    }
    if (attrs->ignore_index >= 0) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "%s: ignore_index is %lld, but the target holds probabilities (%s); "
                          "give weights of 0 instead",
                          op, (long long)attrs->ignore_index, burn_dtype_name(target->dtype));
    }
    return burni_nn_check_shape(op, "logits", logits, "target", target, a->err);
}

static int32_t check_cross_entropy(const char *op, const burn_infer *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    const burn_meta *logits = a->in[LOGITS];
    char text[192];
    if (attrs == NULL) {
        return burni_no_attrs(op, a->err);
    }
    int32_t code = check_reduction(op, attrs, a->err);
    if (code != BURN_OK) {
        return code;
    }
    if (!(attrs->label_smoothing >= 0.0 && attrs->label_smoothing <= 1.0)) {
        return burni_fail(a->err, BURN_E_INVALID, "%s: label_smoothing is %g; use 0 to 1", op,
                          attrs->label_smoothing);
    }
    if (logits->rank < 2) {
        return burni_fail(a->err, BURN_E_SHAPE, "%s: logits have shape %s; they need [n,c,...]", op,
                          burni_shape_text(text, sizeof(text), logits->rank, logits->dims));
    }
    if (logits->dims[1] == 0) {
        return burni_fail(a->err, BURN_E_SHAPE, "%s: logits %s have no classes (axis 1 is empty)",
                          op,
                          burni_shape_text(text, sizeof(text), logits->rank, logits->dims));
    }
    if (a->n_in > WEIGHT && burni_nn_present(a->in[WEIGHT])) {
        burn_meta classes = {0, BURN_TENSOR, logits->dtype, 1, 0, {logits->dims[1]}};
        code = burni_nn_check_shape(op, "the class axis of logits", &classes, "weight",
                                    a->in[WEIGHT], a->err);
    }
    return code != BURN_OK ? code : check_target(op, a, attrs);
}

/* ---- cross_entropy: decomposition ------------------------------------------------------------ */

/* The operands in the dtype computed in, and what forward and gradient share. */
typedef struct entropy_parts {
    const burn_attrs_loss *attrs;
    const burn_meta *logits_meta;
    burn_meta rows;
    burn_meta column;
    uint8_t wide;
    int64_t classes;
    burn_value *logits;
    burn_value *probabilities; /* NULL: classes */
    burn_value *class_weight;  /* [c, 1, ...]: lines up with the logits; NULL: all 1 */
    burn_value *flat_weight;   /* [c] */
    burn_value *ignored;       /* bool, rows' shape; NULL: none can be */
    burn_value *safe;          /* the classes with 0 where ignored; NULL: probabilities */
} entropy_parts;

static int can_ignore(const burn_attrs_loss *attrs, const burn_meta *target)
{
    if (has_probabilities(target) || attrs->ignore_index == INT64_MIN) {
        return 0;
    }
    return target->dtype == BURN_I64 ||
           (attrs->ignore_index >= INT32_MIN && attrs->ignore_index <= INT32_MAX);
}

static entropy_parts parts_of(const burn_builder *b, burn_value *const *in, const burn_meta *meta,
                              const burn_attrs_loss *attrs)
{
    entropy_parts p;
    memset(&p, 0, sizeof(p));
    p.attrs = attrs;
    p.logits_meta = &meta[LOGITS];
    p.rows = rows_meta(&meta[LOGITS]);
    p.column = column_meta(&meta[LOGITS]);
    p.wide = burni_nn_acc_dtype(meta[LOGITS].dtype);
    p.classes = meta[LOGITS].dims[1];
    p.logits = burni_nn_widen(b, in[LOGITS]);
    p.flat_weight = burni_nn_widen(b, in[WEIGHT]);
    if (p.flat_weight != NULL) {
        int64_t dims[BURN_MAX_RANK] = {p.classes, 1, 1, 1, 1, 1, 1, 1};
        p.class_weight = burn_b_reshape(b, p.flat_weight, meta[LOGITS].rank - 1u, dims);
    }
    if (has_probabilities(&meta[TARGET])) {
        p.probabilities = burni_nn_widen(b, in[TARGET]);
        return p;
    }
    p.safe = in[TARGET];
    if (can_ignore(attrs, &meta[TARGET])) {
        uint8_t dtype = meta[TARGET].dtype;
        burn_value *ignore = b->immediate_int(b->ctx, dtype, attrs->ignore_index);
        p.ignored = burn_b_equal(b, in[TARGET], ignore);
        p.safe = burn_b_where(b, p.ignored, b->immediate_int(b->ctx, dtype, 0), in[TARGET]);
    }
    return p;
}

static burn_value *zero_ignored(const burn_builder *b, const entropy_parts *p, burn_value *x)
{
    return p->ignored == NULL ? x : burn_b_where(b, p->ignored, burn_b_num(b, x, 0.0), x);
}

/* x times the weight of each class, x of the logits' shape. */
static burn_value *class_weighted(const burn_builder *b, const entropy_parts *p, burn_value *x)
{
    return p->class_weight == NULL ? x : burn_b_mul(b, x, p->class_weight);
}

/* What each row counts, rows' shape: its target's weight, 0 when ignored; NULL: 1 each. */
static burn_value *row_weights(const burn_builder *b, const entropy_parts *p)
{
    if (p->flat_weight != NULL) {
        int64_t n = burni_nn_numel(&p->rows);
        burn_value *flat = burn_b_select(b, p->flat_weight, burn_b_reshape(b, p->safe, 1, &n), 0);
        return zero_ignored(b, p, burn_b_reshape(b, flat, p->rows.rank, p->rows.dims));
    }
    if (p->ignored != NULL) {
        return burn_b_cast(b, burn_b_logical_not(b, p->ignored), p->wide);
    }
    return NULL;
}

/* Smoothed targets as one number per row and class: t (1 - s) + s / c. */
static burn_value *smoothed(const burn_builder *b, const entropy_parts *p, burn_value *t)
{
    double s = p->attrs->label_smoothing;
    if (s == 0.0) {
        return t;
    }
    return burn_b_add_num(b, burn_b_mul_num(b, t, 1.0 - s), s / (double)p->classes);
}

static burn_value *probability_losses(const burn_builder *b, const entropy_parts *p, burn_value *lp)
{
    burn_value *products = burn_b_mul(b, lp, smoothed(b, p, p->probabilities));
    products = class_weighted(b, p, products);
    return burn_b_neg(b, burn_b_reduce1(b, BURN_OP_SUM, products, 1, 0));
}

static burn_value *class_losses(const burn_builder *b, const entropy_parts *p, burn_value *lp,
                                burn_value *weights)
{
    double s = p->attrs->label_smoothing;
    burn_value *index = burn_b_reshape(b, p->safe, p->column.rank, p->column.dims);
    burn_value *picked = burn_b_gather(b, lp, index, 1); /* faults on a class out of range */
    burn_value *losses = burn_b_neg(b, burn_b_reshape(b, picked, p->rows.rank, p->rows.dims));
    if (weights != NULL && p->flat_weight != NULL) {
        losses = burn_b_mul(b, losses, weights);
    }
    if (s != 0.0) {
        burn_value *all = burn_b_reduce1(b, BURN_OP_SUM, class_weighted(b, p, lp), 1, 0);
        all = burn_b_mul_num(b, all, -s / (double)p->classes);
        losses = burn_b_add(b, burn_b_mul_num(b, losses, 1.0 - s), all);
    }
    return zero_ignored(b, p, losses);
}

static burn_value *log_probabilities(const burn_builder *b, const entropy_parts *p)
{
    return burn_b_axis(b, BURN_OP_LOG_SOFTMAX, p->logits, 1, 0);
}

static int32_t cross_entropy_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    entropy_parts p = parts_of(b, a->in, a->in_meta, attrs);
    burn_value *lp = log_probabilities(b, &p);
    burn_value *losses;
    burn_value *weights = NULL;
    if (p.probabilities != NULL) {
        losses = probability_losses(b, &p, lp);
    } else {
        weights = row_weights(b, &p);
        losses = class_losses(b, &p, lp, weights);
    }
    burn_value *loss;
    if (weights != NULL && attrs->reduction == BURN_REDUCTION_MEAN) {
        burn_value *sum = burn_b_reduce(b, BURN_OP_SUM, losses, 0, NULL, 0);
        loss = burn_b_div(b, sum, burn_b_reduce(b, BURN_OP_SUM, weights, 0, NULL, 0));
    } else {
        loss = reduce_loss(b, losses, attrs->reduction);
    }
    a->out[0] = burni_nn_narrow(b, loss, a->in_meta[LOGITS].dtype);
    return BURN_OK;
}

/* 1 at each row's class, 0 elsewhere, logits' shape; ignored rows are 0. */
static burn_value *one_hot_targets(const burn_builder *b, const entropy_parts *p,
                                   const burn_meta *target)
{
    int64_t dims[BURN_MAX_RANK] = {p->classes, 1, 1, 1, 1, 1, 1, 1};
    burn_value *classes = burn_b_arange(b, target->dtype, p->classes, 0.0, 1.0);
    classes = burn_b_reshape(b, classes, p->column.rank - 1u, dims);
    burn_value *index = burn_b_reshape(b, p->safe, p->column.rank, p->column.dims);
    return burn_b_cast(b, burn_b_equal(b, index, classes), p->wide);
}

/* What the mean divides by, rank 0; NULL: nothing to divide by. */
static burn_value *gradient_divisor(const burn_builder *b, const entropy_parts *p)
{
    const int64_t *none = NULL;
    if (p->attrs->reduction != BURN_REDUCTION_MEAN) {
        return NULL;
    }
    burn_value *weights = p->probabilities == NULL ? row_weights(b, p) : NULL;
    if (weights != NULL) {
        return burn_b_reduce(b, BURN_OP_SUM, weights, 0, NULL, 0);
    }
    return burn_b_fill(b, p->wide, 0, none, (double)burni_nn_numel(&p->rows));
}

/* The loss's gradient lined up with the logits: rank 0, or [n, 1, ...]; ignored rows are 0. */
static burn_value *row_gradient(const burn_builder *b, const entropy_parts *p, burn_value *g)
{
    burn_value *divisor = gradient_divisor(b, p);
    g = burni_nn_widen(b, g);
    if (divisor != NULL) {
        g = burn_b_div(b, g, divisor);
    }
    if (p->attrs->reduction == BURN_REDUCTION_NONE) {
        g = burn_b_reshape(b, g, p->column.rank, p->column.dims);
    }
    return g;
}

/* g (softmax * sum(q) - q), q = weight * smoothed target. */
static int32_t cross_entropy_grad_decompose(const burn_builder *b, const burn_expand *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return BURN_E_INVALID;
    }
    entropy_parts p = parts_of(b, a->in, a->in_meta, attrs);
    burn_value *t = p.probabilities;
    if (t == NULL) {
        t = one_hot_targets(b, &p, &a->in_meta[TARGET]);
    }
    burn_value *q = class_weighted(b, &p, smoothed(b, &p, t));
    burn_value *sum = burn_b_reduce1(b, BURN_OP_SUM, q, 1, 1);
    burn_value *softmax = burn_b_axis(b, BURN_OP_SOFTMAX, p.logits, 1, 0);
    burn_value *d = burn_b_sub(b, burn_b_mul(b, softmax, sum), q);
    burn_value *gx = burn_b_mul(b, d, row_gradient(b, &p, a->in[GRAD]));
    if (p.ignored != NULL) {
        burn_value *ignored = burn_b_reshape(b, p.ignored, p.column.rank, p.column.dims);
        gx = burn_b_where(b, ignored, burn_b_num(b, gx, 0.0), gx);
    }
    a->out[0] = burni_nn_narrow(b, gx, a->in_meta[LOGITS].dtype);
    return BURN_OK;
}

/* ---- cross_entropy: vjp ---------------------------------------------------------------------- */

/* Gradient of probabilities: -weight * log_softmax * (1 - s) * g. */
static burn_value *target_gradient(const burn_builder *b, const burn_vjp *a,
                                   const burn_attrs_loss *attrs)
{
    entropy_parts p = parts_of(b, a->in, a->in_meta, attrs);
    burn_value *lp = class_weighted(b, &p, log_probabilities(b, &p));
    lp = burn_b_mul_num(b, lp, attrs->label_smoothing - 1.0);
    burn_value *gt = burn_b_mul(b, lp, row_gradient(b, &p, a->grad_out[0]));
    return burni_nn_narrow(b, gt, a->in_meta[TARGET].dtype);
}

static int32_t cross_entropy_vjp(const burn_builder *b, const burn_vjp *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    for (uint32_t i = 0; i < a->n_in; i++) {
        a->grad_in[i] = NULL;
    }
    if (attrs == NULL || a->grad_out[0] == NULL) {
        return attrs == NULL ? BURN_E_INVALID : BURN_OK;
    }
    if (a->wanted[LOGITS]) {
        burn_value *in[4] = {a->in[LOGITS], a->in[TARGET], a->in[WEIGHT], a->grad_out[0]};
        a->grad_in[LOGITS] = burn_b_emit(b, BURN_OP_CROSS_ENTROPY_GRAD, a->attrs, in, 4);
    }
    if (a->wanted[TARGET] && has_probabilities(&a->in_meta[TARGET])) {
        a->grad_in[TARGET] = target_gradient(b, a, attrs);
    }
    return BURN_OK;
}

#define SAVE_ALL (BURN_SAVE_IN(LOGITS) | BURN_SAVE_IN(TARGET) | BURN_SAVE_IN(WEIGHT))

static const uint32_t cross_entropy_saves[] = {SAVE_ALL, SAVE_ALL, 0};

/* ---- cross_entropy: eval --------------------------------------------------------------------- */

typedef struct entropy_eval {
    const burn_eval *a;
    const burn_attrs_loss *attrs;
    int64_t batch;
    int64_t classes;
    int64_t inner;
    int64_t rows;
} entropy_eval;

static entropy_eval begin_entropy(const burn_eval *a, const burn_attrs_loss *attrs)
{
    const burn_meta *x = &a->in[LOGITS].meta;
    entropy_eval e = {a, attrs, x->dims[0], x->dims[1], 1, 0};
    for (uint32_t i = 2; i < x->rank; i++) {
        e.inner *= x->dims[i];
    }
    e.rows = e.batch * e.inner;
    return e;
}

/* Where class 0 of a row lies; classes are `inner` apart. */
static int64_t row_start(const entropy_eval *e, int64_t row)
{
    return row / e->inner * e->classes * e->inner + row % e->inner;
}

static double weight_of(const entropy_eval *e, int64_t c)
{
    const burn_eval_operand *w = &e->a->in[WEIGHT];
    return burni_nn_present(&w->meta) ? w->f[c] : 1.0;
}

/* The log of the sum of exponentials in two parts: log p = x - max - log_sum. */
static double row_log_sum(const entropy_eval *e, int64_t row, double *max)
{
    const double *x = e->a->in[LOGITS].f + row_start(e, row);
    double sum = 0.0;
    *max = -HUGE_VAL;
    for (int64_t c = 0; c < e->classes; c++) {
        *max = x[c * e->inner] > *max ? x[c * e->inner] : *max;
    }
    for (int64_t c = 0; c < e->classes; c++) {
        sum += exp(x[c * e->inner] - *max);
    }
    return log(sum);
}

static int is_ignored(const entropy_eval *e, int64_t row)
{
    const burn_eval_operand *target = &e->a->in[TARGET];
    return can_ignore(e->attrs, &target->meta) && target->i[row] == e->attrs->ignore_index;
}

/* One probability of the target before smoothing and weights. */
static double target_at(const entropy_eval *e, int64_t row, int64_t c)
{
    if (has_probabilities(&e->a->in[TARGET].meta)) {
        return e->a->in[TARGET].f[row_start(e, row) + c * e->inner];
    }
    return c == e->a->in[TARGET].i[row] ? 1.0 : 0.0;
}

static int32_t check_class(const char *op, const entropy_eval *e, int64_t row, burn_err *err)
{
    int64_t c = e->a->in[TARGET].i[row];
    if (c >= 0 && c < e->classes) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_DATA,
                      "%s: target %lld at position %lld is not a class; use 0 to %lld, "
                      "or ignore_index (%lld) for targets that do not count",
                      op, (long long)c, (long long)row, (long long)e->classes - 1,
                      (long long)e->attrs->ignore_index);
}

/* The loss of a row that counts. A product with a plain 0 is left out only for classes. */
static double row_loss(const entropy_eval *e, int64_t row)
{
    const double *x = e->a->in[LOGITS].f + row_start(e, row);
    int probabilities = has_probabilities(&e->a->in[TARGET].meta);
    double s = e->attrs->label_smoothing;
    double max;
    double log_sum = row_log_sum(e, row, &max);
    double loss = 0.0;
    for (int64_t c = 0; c < e->classes; c++) {
        double t = target_at(e, row, c) * (1.0 - s) + s / (double)e->classes;
        if (t != 0.0 || probabilities) {
            loss -= weight_of(e, c) * t * (x[c * e->inner] - max - log_sum);
        }
    }
    return loss;
}

static int32_t cross_entropy_eval(const burn_eval *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return burni_no_attrs("cross_entropy", a->err);
    }
    entropy_eval e = begin_entropy(a, attrs);
    int probabilities = has_probabilities(&a->in[TARGET].meta);
    double sum = 0.0;
    double count = 0.0;
    for (int64_t row = 0; row < e.rows; row++) {
        int ignored = is_ignored(&e, row);
        if (!probabilities && !ignored &&
            check_class("cross_entropy", &e, row, a->err) != BURN_OK) {
            return BURN_E_DATA;
        }
        double loss = ignored ? 0.0 : row_loss(&e, row);
        sum += loss;
        if (probabilities) {
            count += 1.0;
        } else if (!ignored) {
            count += weight_of(&e, a->in[TARGET].i[row]);
        }
        if (attrs->reduction == BURN_REDUCTION_NONE) {
            a->out[0].f[row] = loss;
        }
    }
    if (attrs->reduction != BURN_REDUCTION_NONE) {
        a->out[0].f[0] = attrs->reduction == BURN_REDUCTION_MEAN ? sum / count : sum;
    }
    return BURN_OK;
}

static double counted_weight(const entropy_eval *e)
{
    double count = 0.0;
    for (int64_t row = 0; row < e->rows; row++) {
        if (has_probabilities(&e->a->in[TARGET].meta)) {
            count += 1.0;
        } else if (!is_ignored(e, row) && check_class("cross_entropy", e, row, NULL) == BURN_OK) {
            count += weight_of(e, e->a->in[TARGET].i[row]);
        }
    }
    return count;
}

static void eval_row_gradient(const entropy_eval *e, int64_t row, double g)
{
    int64_t start = row_start(e, row);
    const double *x = e->a->in[LOGITS].f + start;
    double *gx = e->a->out[0].f + start;
    double s = e->attrs->label_smoothing;
    double max;
    double log_sum = row_log_sum(e, row, &max);
    double total = 0.0;
    for (int64_t c = 0; c < e->classes; c++) {
        double t = target_at(e, row, c) * (1.0 - s) + s / (double)e->classes;
        total += weight_of(e, c) * t;
    }
    for (int64_t c = 0; c < e->classes; c++) {
        double t = target_at(e, row, c) * (1.0 - s) + s / (double)e->classes;
        double softmax = exp(x[c * e->inner] - max - log_sum);
        gx[c * e->inner] = g * (softmax * total - weight_of(e, c) * t);
    }
}

static int32_t cross_entropy_grad_eval(const burn_eval *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    if (attrs == NULL) {
        return burni_no_attrs("cross_entropy_grad", a->err);
    }
    entropy_eval e = begin_entropy(a, attrs);
    int probabilities = has_probabilities(&a->in[TARGET].meta);
    double divisor = attrs->reduction == BURN_REDUCTION_MEAN ? counted_weight(&e) : 1.0;
    for (int64_t row = 0; row < e.rows; row++) {
        double g = attrs->reduction == BURN_REDUCTION_NONE ? a->in[GRAD].f[row] : a->in[GRAD].f[0];
        if (is_ignored(&e, row)) {
            for (int64_t c = 0; c < e.classes; c++) {
                a->out[0].f[row_start(&e, row) + c * e.inner] = 0.0;
            }
        } else if (!probabilities &&
                   check_class("cross_entropy_grad", &e, row, a->err) != BURN_OK) {
            return BURN_E_DATA;
        } else {
            eval_row_gradient(&e, row, g / divisor);
        }
    }
    return BURN_OK;
}

/* ---- cross_entropy: samples ------------------------------------------------------------------ */

typedef struct entropy_sample {
    const char *name;
    uint32_t rank;
    int64_t dims[4];
    uint8_t target; /* dtype; a float: probabilities */
    uint32_t weighted;
    uint32_t reduction;
    int64_t ignore_index;
    double label_smoothing;
    uint32_t n_values;
    const double *values;
    int32_t error;
} entropy_sample;

#define NONE INT64_MIN

static const double ignored_values[] = {-100, 1, 0, 2, -100, 1, 2, 0};
static const double all_ignored_values[] = {-100};
static const double low_values[] = {0, -1, 1};
static const double high_values[] = {0, 3, 1};

static const entropy_sample entropy_table[] = {
    {"mean", 2, {5, 7}, BURN_I64, 0, 0, NONE, 0, 0, NULL, 0},
    {"i32 classes", 2, {3, 4}, BURN_I32, 0, 0, NONE, 0, 0, NULL, 0},
    {"sum", 2, {5, 3}, BURN_I64, 1, 1, NONE, 0, 0, NULL, 0},
    {"none", 4, {2, 3, 2, 2}, BURN_I64, 0, 2, NONE, 0, 0, NULL, 0},
    {"weights", 2, {5, 3}, BURN_I64, 1, 0, NONE, 0, 0, NULL, 0},
    {"ignored targets", 2, {8, 3}, BURN_I64, 0, 0, -100, 0, 8, ignored_values, 0},
    {"ignored, weights, smoothing", 2, {8, 3}, BURN_I64, 1, 0, -100, 0.1, 8, ignored_values, 0},
    {"ignored, none", 3, {2, 3, 4}, BURN_I64, 1, 2, -100, 0.2, 8, ignored_values, 0},
    {"smoothing", 2, {5, 7}, BURN_I64, 0, 0, NONE, 0.1, 0, NULL, 0},
    {"probabilities", 2, {4, 5}, BURN_F32, 0, 0, NONE, 0, 0, NULL, 0},
    {"probabilities, all options", 3, {2, 3, 3}, BURN_F64, 1, 0, NONE, 0.2, 0, NULL, 0},
    {"probabilities, none", 2, {4, 5}, BURN_F32, 1, 2, -100, 0, 0, NULL, 0},
    {"one class", 2, {3, 1}, BURN_I64, 0, 0, NONE, 0, 0, NULL, 0},
    {"no rows, sum", 2, {0, 3}, BURN_I64, 0, 1, NONE, 0, 0, NULL, 0},
    {"no rows, mean", 2, {0, 3}, BURN_I64, 0, 0, NONE, 0, 0, NULL, 0},
    {"everything ignored", 2, {3, 2}, BURN_I64, 0, 0, -100, 0, 1, all_ignored_values, 0},
    {"negative target", 2, {3, 3}, BURN_I64, 0, 0, -100, 0, 3, low_values, BURN_E_DATA},
    {"target too large", 2, {3, 3}, BURN_I64, 1, 0, NONE, 0.1, 3, high_values, BURN_E_DATA},
    {"ignored probabilities", 2, {3, 3}, BURN_F32, 0, 0, 1, 0, 0, NULL, BURN_E_INVALID},
    {"smoothing above 1", 2, {3, 3}, BURN_I64, 0, 0, NONE, 1.5, 0, NULL, BURN_E_INVALID},
    {"no classes", 2, {3, 0}, BURN_I64, 0, 0, NONE, 0, 0, NULL, BURN_E_SHAPE},
    {"no class axis", 1, {3}, BURN_I64, 0, 0, NONE, 0, 0, NULL, BURN_E_SHAPE},
    {"unknown reduction", 2, {3, 3}, BURN_I64, 0, 3, NONE, 0, 0, NULL, BURN_E_INVALID},
};
enum { N_ENTROPY_GRAD_SAMPLES = 14, NO_ROWS_MEAN = 14, EVERYTHING_IGNORED = 15 };

static void target_operand(burn_sample *out, const entropy_sample *s)
{
    burn_meta logits = {0, BURN_TENSOR, 0, (uint8_t)s->rank, 0, {0}};
    memcpy(logits.dims, s->dims, sizeof(s->dims));
    burn_meta rows = rows_meta(&logits);
    if (burn_dtype_class(s->target) == BURN_CLASS_FLOAT) {
        burni_sample_tensor(out, TARGET, s->target, BURN_FILL_UNIFORM, s->rank, s->dims);
        burni_sample_range(out, TARGET, 0.05, 0.9);
        out->dtypes = UINT64_C(1) << s->target; /* the logits must have the same */
        return;
    }
    burni_sample_tensor(out, TARGET, s->target, BURN_FILL_INDEX, rows.rank, rows.dims);
    burni_sample_range(out, TARGET, 0.0, (double)s->dims[1]);
    if (s->n_values > 0) {
        burni_sample_values(out, TARGET, s->n_values, s->values);
    }
}

static int32_t cross_entropy_samples(uint32_t i, burn_sample *out)
{
    if (i >= sizeof(entropy_table) / sizeof(entropy_table[0])) {
        return BURN_E_END;
    }
    const entropy_sample *s = &entropy_table[i];
    burn_attrs_loss attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.reduction = s->reduction;
    attrs.ignore_index = s->ignore_index;
    attrs.label_smoothing = s->label_smoothing;
    burni_sample_begin(out, s->name, 64.0, 512.0);
    if (s->error != BURN_OK) {
        burni_sample_error(out, s->error);
    }
    if (i == NO_ROWS_MEAN || i == EVERYTHING_IGNORED) {
        out->flags |= BURN_SAMPLE_NO_GRAD; /* the loss is NaN */
    }
    burni_sample_attrs(out, &attrs, (uint32_t)sizeof(attrs));
    burni_sample_tensor(out, LOGITS, 0, BURN_FILL_NORMAL, s->rank, s->dims);
    target_operand(out, s);
    burni_sample_absent(out, WEIGHT);
    if (s->weighted) {
        burni_sample_tensor(out, WEIGHT, 0, BURN_FILL_UNIFORM, 1, &s->dims[1]);
        burni_sample_range(out, WEIGHT, 0.25, 2.0);
    }
    return BURN_OK;
}

static const burni_special cross_entropy_special[] = {
    {"none", "special values", 0, 1},
    {"mean", "special values, mean", 0, 1},
    {"probabilities, none", "special values, probabilities", 0, 1},
};

static int32_t cross_entropy_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, cross_entropy_samples, cross_entropy_special,
                                 BURNI_N_SPECIAL(cross_entropy_special));
}

static int32_t cross_entropy_grad_samples(uint32_t i, burn_sample *out)
{
    if (i >= N_ENTROPY_GRAD_SAMPLES) {
        return BURN_E_END;
    }
    const entropy_sample *s = &entropy_table[i];
    burn_meta logits = {0, BURN_TENSOR, 0, (uint8_t)s->rank, 0, {0}};
    burn_meta g = logits;
    int32_t code = cross_entropy_samples(i, out);
    memcpy(logits.dims, s->dims, sizeof(s->dims));
    burn_meta rows = rows_meta(&logits);
    loss_shape(&g, &rows, s->reduction);
    burni_sample_tensor(out, GRAD, 0, BURN_FILL_NORMAL, g.rank, g.dims);
    return code;
}

static const burni_special cross_entropy_grad_special[] = {
    {"none", "special values", 0, 1},
    {"none", "special values, g", 0, 8},
    {"weights", "special values, weights", 0, 1},
};

static int32_t cross_entropy_grad_all_samples(uint32_t i, burn_sample *out)
{
    return burni_samples_special(i, out, cross_entropy_grad_samples, cross_entropy_grad_special,
                                 BURNI_N_SPECIAL(cross_entropy_grad_special));
}

/* ---- cross_entropy: definitions -------------------------------------------------------------- */

static int32_t cross_entropy_infer(const burn_infer *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    int32_t code = check_cross_entropy("cross_entropy", a);
    if (code == BURN_OK && attrs != NULL) {
        burn_meta rows = rows_meta(a->in[LOGITS]);
        loss_shape(&a->out[0], &rows, attrs->reduction);
    }
    return code;
}

static int32_t cross_entropy_grad_infer(const burn_infer *a)
{
    const burn_attrs_loss *attrs = BURNI_ATTRS(a, burn_attrs_loss);
    int32_t code = check_cross_entropy("cross_entropy_grad", a);
    if (code != BURN_OK || attrs == NULL) {
        return code;
    }
    burn_meta rows = rows_meta(a->in[LOGITS]);
    burn_meta loss = rows;
    loss_shape(&loss, &rows, attrs->reduction);
    burni_nn_copy_shape(&a->out[0], a->in[LOGITS]);
    return burni_nn_check_shape("cross_entropy_grad", "the loss", &loss, "g", a->in[GRAD], a->err);
}

const burn_op_def burn_op_def_cross_entropy = {
    BURNI_DEF(CROSS_ENTROPY, cross_entropy),
    .summary = "-sum(weight * target * log_softmax(logits)) along axis 1, reduced",
    .n_in = 3,
    .n_out = 1,
    .roles = cross_entropy_roles,
    .attrs = loss_attrs,
    .n_attrs = N_LOSS_ATTRS,
    .attrs_size = sizeof(burn_attrs_loss),
    .infer = cross_entropy_infer,
    .vjp = cross_entropy_vjp,
    .vjp_saves = cross_entropy_saves,
    .decompose = cross_entropy_decompose,
    .eval = cross_entropy_eval,
    .samples = cross_entropy_all_samples,
};

const burn_op_def burn_op_def_cross_entropy_grad = {
    BURNI_DEF(CROSS_ENTROPY_GRAD, cross_entropy_grad),
    .flags = BURN_OP_INTERNAL,
    .summary = "gradient of cross_entropy: of the logits",
    .n_in = 4,
    .n_out = 1,
    .roles = cross_entropy_grad_roles,
    .attrs = loss_attrs,
    .n_attrs = N_LOSS_ATTRS,
    .attrs_size = sizeof(burn_attrs_loss),
    .infer = cross_entropy_grad_infer,
    .decompose = cross_entropy_grad_decompose,
    .eval = cross_entropy_grad_eval,
    .samples = cross_entropy_grad_all_samples,
};
