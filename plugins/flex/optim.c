/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * optim.c - rows of sgd_step and adam_step.
 *
 * Owns the walk over a parameter, or over many, in pieces; the update is in the line tables. State
 * operands are overwritten: outputs share their storage, and are filled first where they do not.
 * f16 and bf16 are updated in f32. To add an optimizer: a start and a piece function, and a row.
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

static void start_sgd(step_job *job, const burn_call *call)
{
    const burn_attrs_sgd *attrs = call->attrs;
    const burn_operand *velocity = flex_in(call, 2);
    const burn_operand *lr = flex_in(call, 3);
    memset(job, 0, sizeof(*job));
    job->grad = flex_in(call, 1);
    job->n_state = 1;
    job->from[0] = flex_in(call, 0);
    job->to[0] = flex_out(call, 0);
    if (!flex_absent(velocity)) {
        job->from[1] = velocity;
        job->to[1] = flex_out(call, 1);
        job->n_state = 2;
    }
    job->sgd.lr = flex_read_f64(lr->data, lr->dtype);
    job->sgd.momentum = attrs->momentum;
    job->sgd.keep = 1.0 - attrs->dampening;
    job->sgd.decay = attrs->weight_decay;
    job->sgd.first = attrs->first != 0;
    job->sgd.nesterov = attrs->nesterov != 0;
}

static void start_adam(step_job *job, const burn_call *call)
{
    const burn_attrs_adam *attrs = call->attrs;
    const burn_operand *lr_operand = flex_in(call, 4);
    const burn_operand *t_operand = flex_in(call, 5);
    double lr = flex_read_f64(lr_operand->data, lr_operand->dtype);
    double t = flex_read_f64(t_operand->data, t_operand->dtype);
    memset(job, 0, sizeof(*job));
    job->grad = flex_in(call, 1);
    job->n_state = 3;
    job->is_adam = 1;
    for (uint32_t i = 0; i < 3; i++) {
        job->from[i] = flex_in(call, i == 0 ? 0 : i + 1);
        job->to[i] = flex_out(call, i);
    }
    job->adam.beta1 = attrs->beta1;
    job->adam.beta2 = attrs->beta2;
    job->adam.decay = attrs->decoupled ? 0.0 : attrs->weight_decay;
    job->adam.shrink = attrs->decoupled ? 1.0 - lr * attrs->weight_decay : 1.0;
    job->adam.step = lr / (1.0 - pow(attrs->beta1, t));
    job->adam.bias2 = 1.0 - pow(attrs->beta2, t);
    job->adam.eps = attrs->eps;
}

static int32_t launch_sgd(const burn_call *call)
{
    step_job job;
    start_sgd(&job, call);
    run_step(&job);
    return BURN_OK;
}

static int32_t launch_adam(const burn_call *call)
{
    step_job job;
    start_adam(&job, call);
    run_step(&job);
    return BURN_OK;
}

/* ---- many parameters ------------------------------------------------------------------------- */

enum { MANY = 32 };

/* Pieces of all parameters, one behind the other: threads share them out, whoever's they are. */
typedef struct many_job {
    uint32_t n;
    uint32_t zero;
    int64_t end[MANY]; /* of each parameter's pieces */
    int64_t sizes[MANY];
    step_job jobs[MANY];
} many_job;

static void many_range(void *ctx, int64_t begin, int64_t end)
{
    const many_job *m = ctx;
    uint32_t k = 0;
    for (int64_t at = begin; at < end; at++) {
        while (at >= m->end[k]) {
            k++;
        }
        int64_t first = (at - (k > 0 ? m->end[k - 1] : 0)) * PIECE;
        one_piece(&m->jobs[k], first, flex_min(PIECE, m->sizes[k] - first));
    }
}

static void run_some(const burn_call *calls, uint32_t n, uint32_t stride,
                     void (*begin)(step_job *job, const burn_call *call))
{
    many_job m;
    int64_t pieces = 0;
    int64_t elements = 0;
    for (uint32_t k = 0; k < n; k++) {
        begin(&m.jobs[k], burn_call_at(calls, k, stride));
        m.jobs[k].table = flex_lines_of(m.jobs[k].from[0]->dtype);
        m.sizes[k] = flex_numel(m.jobs[k].from[0]);
        pieces += (m.sizes[k] + PIECE - 1) / PIECE;
        elements += m.sizes[k];
        m.end[k] = pieces;
    }
    m.n = n;
    if (elements <= GRAIN) {
        many_range(&m, 0, pieces);
        return;
    }
    /* Small parameters are pieces that are not full. */
    uint64_t grain = (uint64_t)(pieces * GRAIN / elements);
    grain = grain > 0 ? grain : 1;
    flex_ranges(pieces, (int64_t)flex_even_grain((uint64_t)pieces, grain, 1), many_range, &m);
}

static int32_t launch_all(const burn_call *calls, uint32_t n, uint32_t stride,
                          void (*begin)(step_job *job, const burn_call *call))
{
    for (uint32_t k = 0; k < n; k += MANY) {
        run_some(burn_call_at(calls, k, stride), n - k < MANY ? n - k : MANY, stride, begin);
    }
    return BURN_OK;
}

static int32_t launch_many_sgd(const burn_call *calls, uint32_t n, uint32_t stride)
{
    return launch_all(calls, n, stride, start_sgd);
}

static int32_t launch_many_adam(const burn_call *calls, uint32_t n, uint32_t stride)
{
    return launch_all(calls, n, stride, start_adam);
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

static const burn_many_kernel many_kernels[] = {
    {launch_sgd, launch_many_sgd},
    {launch_adam, launch_many_adam},
};
const burn_many flex_many = {
    (uint32_t)sizeof(burn_many), FLEX_COUNT(many_kernels), (uint32_t)sizeof(burn_many_kernel), 0,
    many_kernels,
};
