/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optim.c - rows of sgd_step and adam_step.
 *
 * Owns the walk over a parameter in pieces; the update is in the line tables. State operands are
 * overwritten: outputs share their storage, and are filled first where they do not. f16 and bf16
 * are updated in f32. To add an optimizer: a piece function and a row.
 */
#include "nn.h"
#include "nn_lines.h"
#include "rows.h"
#include "tiles.h"

#include <math.h>
#include <string.h>

/* Elements of a task, and of a widened piece. */
enum { GRAIN = 16384, PIECE = 1024, MAX_STATE = 3 };

typedef struct step_job {
    const flex_lines *table;
    const burn_operand *grad;
    const burn_operand *from[MAX_STATE]; /* parameter and its state */
    const burn_operand *to[MAX_STATE];   /* the same, as outputs */
    uint32_t n_state;
    int is_adam;
    flex_adam adam;
    flex_sgd sgd;
} step_job;

static void one_piece(const step_job *job, int64_t begin, int64_t n)
{
    uint8_t dtype = job->table->dtype;
    double wide[MAX_STATE][PIECE];
    double wide_grad[PIECE];
    void *line[MAX_STATE] = {NULL, NULL, NULL};
    const void *grad = flex_line_get(dtype, job->grad, begin, 1, n, wide_grad);
    for (uint32_t i = 0; i < job->n_state; i++) {
        line[i] = flex_line_open(dtype, job->to[i], begin, 1, wide[i]);
        const void *old = flex_line_get(dtype, job->from[i], begin, 1, n, wide[i]);
        if (old != line[i]) {
            memcpy(line[i], old, (size_t)n * flex_size(dtype));
        }
    }
    if (job->is_adam) {
        job->table->adam(line[0], line[1], line[2], grad, &job->adam, n);
    } else {
        job->table->sgd(line[0], line[1], grad, &job->sgd, n);
    }
    for (uint32_t i = 0; i < job->n_state; i++) {
        flex_line_put(dtype, job->to[i], begin, 1, n, line[i]);
    }
}

static void piece_range(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += PIECE) {
        one_piece(ctx, i, flex_min(PIECE, end - i));
    }
}

static void run_step(step_job *job)
{
    job->table = flex_lines_of(job->from[0]->dtype);
    int64_t n = flex_numel(job->from[0]);
    flex_ranges(n, (int64_t)flex_even_grain((uint64_t)n, GRAIN, PIECE), piece_range, job);
}

static int32_t launch_sgd(const burn_call *call)
{
    const burn_attrs_sgd *attrs = call->attrs;
    const burn_operand *velocity = flex_in(call, 2);
    const burn_operand *lr = flex_in(call, 3);
    step_job job = {.grad = flex_in(call, 1), .n_state = 1};
    job.from[0] = flex_in(call, 0);
    job.to[0] = flex_out(call, 0);
    if (!flex_absent(velocity)) {
        job.from[1] = velocity;
        job.to[1] = flex_out(call, 1);
        job.n_state = 2;
    }
    job.sgd.lr = flex_read_f64(lr->data, lr->dtype);
    job.sgd.momentum = attrs->momentum;
    job.sgd.keep = 1.0 - attrs->dampening;
    job.sgd.decay = attrs->weight_decay;
    job.sgd.first = attrs->first != 0;
    job.sgd.nesterov = attrs->nesterov != 0;
    run_step(&job);
    return BURN_OK;
}

static int32_t launch_adam(const burn_call *call)
{
    const burn_attrs_adam *attrs = call->attrs;
    const burn_operand *lr_operand = flex_in(call, 4);
    const burn_operand *t_operand = flex_in(call, 5);
    double lr = flex_read_f64(lr_operand->data, lr_operand->dtype);
    double t = flex_read_f64(t_operand->data, t_operand->dtype);
    step_job job = {.grad = flex_in(call, 1), .n_state = 3, .is_adam = 1};
    for (uint32_t i = 0; i < 3; i++) {
        job.from[i] = flex_in(call, i == 0 ? 0 : i + 1);
        job.to[i] = flex_out(call, i);
    }
    job.adam.beta1 = attrs->beta1;
    job.adam.beta2 = attrs->beta2;
    job.adam.decay = attrs->decoupled ? 0.0 : attrs->weight_decay;
    job.adam.shrink = attrs->decoupled ? 1.0 - lr * attrs->weight_decay : 1.0;
    job.adam.step = lr / (1.0 - pow(attrs->beta1, t));
    job.adam.bias2 = 1.0 - pow(attrs->beta2, t);
    job.adam.eps = attrs->eps;
    run_step(&job);
    return BURN_OK;
}

#define DENSE BURN_LAYOUT_CONTIGUOUS
#define NUMBER FLEX_SLOT(BURN_BIT(F64), BURN_LAYOUT_ANY, 0, FLEX_IMM)
static const burn_slot sgd_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0), /* parameter */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0), /* gradient */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, FLEX_OPT), /* velocity */
    NUMBER,                                        /* learning rate */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, FLEX_OPT),
};
static const burn_slot adam_slots[] = {
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 0, 0), /* parameter */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0), /* gradient */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0), /* m */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0), /* v */
    NUMBER,                                 /* learning rate */
    NUMBER,                                 /* step, from 1 */
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
    FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0),
};

/* clang-format off */
const burn_row flex_rows_optim[] = {
    FLEX_ROW(BURN_OP_SGD_STEP, sgd_slots, 0, 0, "flex.sgd_step", launch_sgd),
    FLEX_ROW(BURN_OP_ADAM_STEP, adam_slots, 0, 0, "flex.adam_step", launch_adam),
};
/* clang-format on */
const uint32_t flex_rows_optim_count = FLEX_COUNT(flex_rows_optim);
