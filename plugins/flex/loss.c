/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loss.c - rows of cross_entropy, its gradient and mse_loss.
 *
 * Owns targets (classes or probabilities), class weights, smoothing, reductions. Class targets are
 * checked before anything is computed: one that is neither a class nor the ignore index is an
 * error. Losses per position go to the workspace in f64 and are added up in order, so the sum does
 * not depend on threads. Ignored positions have loss and gradient exactly 0; a mean of none is NaN.
 */
#include "nn.h"
#include "nn_lines.h"
#include "pair_fold.h"
#include "pointwise.h"
#include "rows.h"

#include <math.h>
#include <string.h>

typedef struct entropy {
    const burn_attrs_loss *attrs;
    const flex_lines *table;
    const burn_operand *logits;
    const burn_operand *target;
    const burn_operand *weight; /* NULL: all 1 */
    const burn_operand *g;      /* gradient only */
    const burn_operand *out;
    flex_axis axis;
    int64_t positions;
    int probabilities;
    double total_weight;
    double divisor; /* of the mean */
    double *loss;   /* of each position */
    char *scratch;
} entropy;

enum { LINES = 3 }; /* logits, probabilities of the target, result */

static void make_entropy(const burn_call *call, entropy *e)
{
    memset(e, 0, sizeof(*e));
    e->attrs = call->attrs;
    e->logits = flex_in(call, 0);
    e->target = flex_in(call, 1);
    e->weight = call->n_in > 2 && !flex_absent(flex_in(call, 2)) ? flex_in(call, 2) : NULL;
    e->g = call->n_in > 3 ? flex_in(call, 3) : NULL;
    e->out = flex_out(call, 0);
    e->table = flex_lines_of(e->logits->dtype);
    e->axis = flex_axis_of(e->logits, 1);
    e->positions = e->axis.outer * e->axis.inner;
    e->probabilities = e->target->dtype != BURN_I64 && e->target->dtype != BURN_I32;
}

static uint64_t slot_bytes(const entropy *e)
{
    return LINES * flex_line_bytes(e->axis.n);
}

static int32_t prepare_entropy(const burn_call *call, burn_prepared *out)
{
    entropy e;
    make_entropy(call, &e);
    uint64_t bytes = slot_bytes(&e) * flex_thread_count();
    return flex_want_workspace(out, bytes + flex_line_bytes(e.positions));
}

static void cut_workspace(const burn_call *call, entropy *e)
{
    e->scratch = flex_workspace(call);
    if (e->scratch != NULL) {
        char *rest = e->scratch + slot_bytes(e) * flex_thread_count();
        e->loss = (double *)(void *)rest;
    }
}

static int64_t class_of(const entropy *e, int64_t position)
{
    if (e->target->dtype == BURN_I32) {
        return ((const int32_t *)e->target->data)[position];
    }
    return ((const int64_t *)e->target->data)[position];
}

static int is_ignored(const entropy *e, int64_t class)
{
    return e->attrs->ignore_index != INT64_MIN && class == e->attrs->ignore_index;
}

static double weight_of(const entropy *e, int64_t class)
{
    return e->weight == NULL ? 1.0
                             : flex_load_f64(e->weight->data, class, e->weight->dtype);
}

/* Every class target must be a class or the ignore index. */
static int32_t check_targets(const burn_call *call, const char *op, const entropy *e)
{
    for (int64_t i = 0; !e->probabilities && i < e->positions; i++) {
        int64_t class = class_of(e, i);
        if ((class < 0 || class >= e->axis.n) && !is_ignored(e, class)) {
            return flex_fail(call->err, BURN_E_DATA,
                             "%s: target %lld at position %lld is not a class: with %lld classes "
                             "targets are 0 to %lld, or the ignore index",
                             op, (long long)class, (long long)i, (long long)e->axis.n,
                             (long long)(e->axis.n - 1));
        }
    }
    return BURN_OK;
}

/* How much a position weighs in the mean; 0 when it is ignored. */
static double counted_weight(const entropy *e, int64_t position)
{
    if (e->probabilities) {
        return 1.0;
    }
    int64_t class = class_of(e, position);
    return is_ignored(e, class) ? 0.0 : weight_of(e, class);
}

static void sum_weights(entropy *e)
{
    e->total_weight = 0;
    for (int64_t c = 0; c < e->axis.n; c++) {
        e->total_weight += weight_of(e, c);
    }
    e->divisor = 1.0;
    if (e->attrs->reduction == BURN_REDUCTION_MEAN) {
        e->divisor = 0;
        for (int64_t i = 0; i < e->positions; i++) {
            e->divisor += counted_weight(e, i);
        }
    }
}

/* The smoothed target probability of class c, without the class weight. */
static double smoothed(const entropy *e, const void *target_line, int64_t c)
{
    double s = e->attrs->label_smoothing;
    double p = flex_load_f64(target_line, c, e->table->dtype);
    return p * (1.0 - s) + s / (double)e->axis.n;
}

/* log of the sum of exp of a line; `spare` is overwritten. */
static double log_sum_exp(const entropy *e, const void *line, void *spare)
{
    double top = e->table->max(line, e->axis.n);
    return top + log(e->table->exp(spare, line, top, e->axis.n));
}

/* Loss of one position from its line of logits. */
static double position_loss(const entropy *e, int64_t position, const void *line,
                            const void *target_line, double lse)
{
    uint8_t dtype = e->table->dtype;
    double s = e->attrs->label_smoothing;
    double loss = 0;
    if (e->probabilities) {
        for (int64_t c = 0; c < e->axis.n; c++) {
            double minus_log = lse - flex_load_f64(line, c, dtype);
            loss += weight_of(e, c) * smoothed(e, target_line, c) * minus_log;
        }
        return loss;
    }
    int64_t class = class_of(e, position);
    loss = weight_of(e, class) * (lse - flex_load_f64(line, class, dtype));
    if (s > 0.0) {
        double even = 0;
        for (int64_t c = 0; c < e->axis.n; c++) {
            even += weight_of(e, c) * (lse - flex_load_f64(line, c, dtype));
        }
        loss = (1.0 - s) * loss + s / (double)e->axis.n * even;
    }
    return loss;
}

static void loss_item(void *ctx, int64_t position, uint32_t slot)
{
    const entropy *e = ctx;
    if (!e->probabilities && is_ignored(e, class_of(e, position))) {
        e->loss[position] = 0;
        return;
    }
    uint8_t dtype = e->table->dtype;
    int64_t start = flex_axis_start(&e->axis, position);
    uint64_t bytes = flex_line_bytes(e->axis.n);
    char *scratch = e->scratch + slot * slot_bytes(e);
    const void *line = flex_line_get(dtype, e->logits, start, e->axis.inner, e->axis.n, scratch);
    const void *target = NULL;
    if (e->probabilities) {
        target = flex_line_get(dtype, e->target, start, e->axis.inner, e->axis.n, scratch + bytes);
    }
    double lse = log_sum_exp(e, line, scratch + 2 * bytes);
    e->loss[position] = position_loss(e, position, line, target, lse);
}

static uint32_t slots_for(const entropy *e)
{
    return e->positions * e->axis.n < FLEX_GRAIN / 2 ? 1 : flex_slots(e->positions);
}

static int32_t launch_entropy(const burn_call *call)
{
    entropy e;
    make_entropy(call, &e);
    cut_workspace(call, &e);
    int32_t code = check_targets(call, "cross_entropy", &e);
    if (code != BURN_OK) {
        return code;
    }
    if (e.scratch == NULL && e.positions > 0) {
        return flex_fail(call->err, BURN_E_INTERNAL, "cross_entropy: the call has no workspace");
    }
    sum_weights(&e);
    flex_share(e.positions, slots_for(&e), loss_item, &e);
    double sum = 0;
    for (int64_t i = 0; i < e.positions; i++) {
        if (e.attrs->reduction == BURN_REDUCTION_NONE) {
            flex_store_f64(e.out->data, i, e.out->dtype, e.loss[i]);
        }
        sum += e.loss[i];
    }
    if (e.attrs->reduction != BURN_REDUCTION_NONE) {
        flex_store_f64(e.out->data, 0, e.out->dtype, sum / e.divisor);
    }
    return BURN_OK;
}

/* What flows back into one position. */
static double incoming(const entropy *e, int64_t position)
{
    int each = e->attrs->reduction == BURN_REDUCTION_NONE;
    return flex_load_f64(e->g->data, each ? position : 0, e->g->dtype) / e->divisor;
}

/* line = by * (softmax * mass - target), where mass is the target's sum; softmax is in `line`. */
static void finish_gradient(const entropy *e, int64_t position, void *line,
                            const void *target_line, double by, double exp_sum)
{
    uint8_t dtype = e->table->dtype;
    double s = e->attrs->label_smoothing;
    int64_t n = e->axis.n;
    double even = s / (double)n;
    if (!isfinite(by)) { /* a difference of two infinities would be NaN */
        finish_gradient(e, position, line, target_line, 1.0, exp_sum);
        e->table->scale(line, line, by, n);
        return;
    }
    if (e->probabilities) {
        double mass = 0;
        for (int64_t c = 0; c < n; c++) {
            mass += weight_of(e, c) * smoothed(e, target_line, c);
        }
        e->table->scale(line, line, by * mass / exp_sum, n);
        for (int64_t c = 0; c < n; c++) {
            double take = by * weight_of(e, c) * smoothed(e, target_line, c);
            flex_store_f64(line, c, dtype, flex_load_f64(line, c, dtype) - take);
        }
        return;
    }
    int64_t class = class_of(e, position);
    double main_part = (1.0 - s) * weight_of(e, class);
    e->table->scale(line, line, by * (main_part + even * e->total_weight) / exp_sum, n);
    for (int64_t c = 0; s > 0.0 && c < n; c++) {
        double take = by * even * weight_of(e, c);
        flex_store_f64(line, c, dtype, flex_load_f64(line, c, dtype) - take);
    }
    flex_store_f64(line, class, dtype, flex_load_f64(line, class, dtype) - by * main_part);
}

static void gradient_item(void *ctx, int64_t position, uint32_t slot)
{
    const entropy *e = ctx;
    uint8_t dtype = e->table->dtype;
    int64_t n = e->axis.n;
    int64_t step = e->axis.inner;
    int64_t start = flex_axis_start(&e->axis, position);
    uint64_t bytes = flex_line_bytes(n);
    char *scratch = e->scratch + slot * slot_bytes(e);
    void *out = flex_line_open(dtype, e->out, start, step, scratch + 2 * bytes);
    if (!e->probabilities && is_ignored(e, class_of(e, position))) {
        memset(out, 0, (size_t)n * flex_size(dtype));
    } else {
        const void *line = flex_line_get(dtype, e->logits, start, step, n, scratch);
        const void *target = NULL;
        if (e->probabilities) {
            target = flex_line_get(dtype, e->target, start, step, n, scratch + bytes);
        }
        double sum = e->table->exp(out, line, e->table->max(line, n), n);
        finish_gradient(e, position, out, target, incoming(e, position), sum);
    }
    flex_line_put(dtype, e->out, start, step, n, out);
}

static int32_t launch_entropy_grad(const burn_call *call)
{
    entropy e;
    make_entropy(call, &e);
    cut_workspace(call, &e);
    int32_t code = check_targets(call, "cross_entropy_grad", &e);
    if (code != BURN_OK) {
        return code;
    }
    if (e.scratch == NULL && e.positions > 0) {
        return flex_fail(call->err, BURN_E_INTERNAL,
                         "cross_entropy_grad: the call has no workspace");
    }
    sum_weights(&e);
    flex_share(e.positions, slots_for(&e), gradient_item, &e);
    return BURN_OK;
}

/* ---- mse_loss -------------------------------------------------------------------------------- */

static const flex_pair_fold pair_folds[] = {
    {BURN_OP_MSE_LOSS, FLEX_B_SUB, FLEX_R_SQUARES},
};

const flex_pair_fold *flex_pair_fold_of(uint64_t op)
{
    for (uint32_t i = 0; i < FLEX_COUNT(pair_folds); i++) {
        if (pair_folds[i].op == op) {
            return &pair_folds[i];
        }
    }
    return NULL;
}

enum { RUN = FLEX_REDUCE_RUN, PART = FLEX_REDUCE_PART };

typedef struct squares {
    const flex_lines *table;
    const burn_operand *x;
    const burn_operand *y;
    const burn_operand *out;
    int each; /* all elements are given out, not their sum */
    flex_binary_fn map;
    flex_fold_fn fold;
    flex_reducer how;
    flex_acc *sums; /* of each part */
    int64_t n;
} squares;

static int64_t parts_of(const burn_call *call)
{
    return (flex_numel(flex_in(call, 0)) + PART - 1) / PART;
}

static int32_t prepare_squares(const burn_call *call, burn_prepared *out)
{
    return flex_want_workspace(out, (uint64_t)parts_of(call) * sizeof(flex_acc));
}

/* Parts and runs are those of a reduction over all elements. */
static void square_part(void *ctx, uint32_t part)
{
    const squares *q = ctx;
    const uint8_t dtype = q->table->dtype;
    _Alignas(64) char room[3][RUN * sizeof(double)];
    int64_t begin = (int64_t)part * PART;
    int64_t end = flex_min(begin + PART, q->n);
    flex_acc acc;
    flex_acc_start(&acc, q->how.kind, 0.0);
    for (int64_t at = begin; at < end; at += RUN) {
        int64_t n = flex_min(RUN, end - at);
        const void *x = flex_line_get(dtype, q->x, at, 1, n, room[0]);
        const void *y = flex_line_get(dtype, q->y, at, 1, n, room[1]);
        if (q->each) {
            void *out = flex_line_open(dtype, q->out, at, 1, room[2]);
            q->table->square_differences(out, x, y, n);
            flex_line_put(dtype, q->out, at, 1, n, out);
        } else {
            (void)q->map(room[2], x, y, (uint64_t)n, 0);
            q->fold(&acc, room[2], (uint64_t)n);
        }
    }
    if (!q->each) {
        q->sums[part] = acc;
    }
}

static int32_t launch_squares(const burn_call *call)
{
    const burn_attrs_loss *attrs = call->attrs;
    const flex_pair_fold *pair = flex_pair_fold_of(BURN_OP_MSE_LOSS);
    squares q = {.x = flex_in(call, 0), .y = flex_in(call, 1), .out = flex_out(call, 0)};
    q.table = flex_lines_of(q.x->dtype);
    q.each = attrs->reduction == BURN_REDUCTION_NONE;
    q.how = flex_pair_reducer(pair, q.table->dtype, q.out->dtype,
                              attrs->reduction == BURN_REDUCTION_MEAN);
    q.map = flex_pointwise[q.table->dtype]->binary[pair->map];
    q.fold = flex_fold_of(q.table->dtype, q.how.kind);
    q.n = flex_numel(q.x);
    q.sums = flex_workspace(call);
    if (q.sums == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "mse_loss: the call has no workspace");
    }
    const uint32_t parts = (uint32_t)parts_of(call);
    flex_acc all;
    flex_parallel(parts, square_part, &q);
    flex_acc_start(&all, q.how.kind, 0.0);
    for (uint32_t i = 0; i < parts && !q.each; i++) {
        flex_acc_merge(&q.how, q.how.kind, &all, &q.sums[i]);
    }
    if (!q.each) {
        flex_acc_finish(&q.how, q.n, &all, q.out->data);
    }
    return BURN_OK;
}

#define DENSE BURN_LAYOUT_CONTIGUOUS
#define LIKE_X FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0)
#define WEIGHT FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, FLEX_OPT)
static const burn_slot class_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_INDEX, DENSE, 0, 0),
    WEIGHT,
    LIKE_X,
};
static const burn_slot probability_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    LIKE_X,
    WEIGHT,
    LIKE_X,
};
static const burn_slot class_grad_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    FLEX_SLOT(BURN_SET_INDEX, DENSE, 0, 0),
    WEIGHT,
    LIKE_X,
    LIKE_X,
};
static const burn_slot probability_grad_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    LIKE_X,
    WEIGHT,
    LIKE_X,
    LIKE_X,
};
static const burn_slot square_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0),
    LIKE_X,
    LIKE_X,
};

/* clang-format off */
const burn_row flex_rows_loss[] = {
    FLEX_ROW_PREPARED(BURN_OP_CROSS_ENTROPY, class_slots, BURN_ROW_FAULTS, "flex.cross_entropy",
                      prepare_entropy, launch_entropy),
    FLEX_ROW_PREPARED(BURN_OP_CROSS_ENTROPY, probability_slots, 0, "flex.cross_entropy.prob",
                      prepare_entropy, launch_entropy),
    FLEX_ROW_PREPARED(BURN_OP_CROSS_ENTROPY_GRAD, class_grad_slots, BURN_ROW_FAULTS,
                      "flex.cross_entropy_grad", prepare_entropy, launch_entropy_grad),
    FLEX_ROW_PREPARED(BURN_OP_CROSS_ENTROPY_GRAD, probability_grad_slots, 0,
                      "flex.cross_entropy_grad.prob", prepare_entropy, launch_entropy_grad),
    FLEX_ROW_PREPARED(BURN_OP_MSE_LOSS, square_slots, BURN_ROW_LINES, "flex.mse_loss",
                      prepare_squares, launch_squares),
};
/* clang-format on */
const uint32_t flex_rows_loss_count = FLEX_COUNT(flex_rows_loss);
