/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_producer.c - from the first step of a fused program to the call of its op alone. See
 * fused_producer.h.
 *
 * Owns the shapes of results, which the fused call does not tell when only later steps are given
 * out. Kernels are those of gemm.c and conv.c. To add an op: a row of `kinds`, and the flag
 * BURN_ROW_EPILOGUE on its kernel row.
 */
#include "fused_producer.h"

#include "conv.h"
#include "gemm.h"
#include "rows.h"

#include <string.h>

enum { NONE = BURN_FUSED_NONE };

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The dims of a product: batches stretch; a rank-1 x of linear is one row. */
static void product_dims(flex_producer *p)
{
    const burn_operand *x = &p->operands[0];
    const burn_operand *y = &p->operands[1];
    burn_operand *z = flex_producer_result(p);
    z->rank = x->rank > y->rank ? x->rank : y->rank;
    if (x->rank == 1) {
        z->rank = 1;
    }
    for (uint32_t i = 0; i + 2 < z->rank; i++) {
        uint32_t from_x = i + x->rank >= z->rank ? i + x->rank - z->rank : BURN_MAX_RANK;
        uint32_t from_y = i + y->rank >= z->rank ? i + y->rank - z->rank : BURN_MAX_RANK;
        int64_t dx = from_x < BURN_MAX_RANK ? x->dims[from_x] : 1;
        int64_t dy = from_y < BURN_MAX_RANK ? y->dims[from_y] : 1;
        p->dims[i] = dx != 1 ? dx : dy;
    }
    if (z->rank > 1) {
        p->dims[z->rank - 2] = x->dims[x->rank - 2];
    }
    p->dims[z->rank - 1] = y->dims[y->rank - 1];
}

/* Of one dim or two. */
static void conv_dims(flex_producer *p)
{
    const burn_attrs_conv *a = p->call.attrs;
    const burn_operand *x = &p->operands[0];
    const burn_operand *w = &p->operands[1];
    flex_producer_result(p)->rank = x->rank;
    p->dims[0] = x->dims[0];
    p->dims[1] = w->dims[0];
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        int64_t reach = (w->dims[2 + i] - 1) * a->dilation[i] + 1;
        p->dims[2 + i] = (x->dims[2 + i] + 2 * a->padding[i] - reach) / a->stride[i] + 1;
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

typedef struct flex_producer_kind {
    uint64_t op;
    void (*dims)(flex_producer *p);
    int32_t (*run_hot)(const burn_call *call, const flex_epilogue *finish);
    int (*passes_on)(const burn_call *call);
    const burn_row *rows;
    const uint32_t *n_rows;
} flex_producer_kind;

static const flex_producer_kind kinds[] = {
    {BURN_OP_MATMUL, product_dims, flex_gemm_run_hot, flex_gemm_passes_on, flex_rows_gemm,
     &flex_rows_gemm_count},
    {BURN_OP_LINEAR, product_dims, flex_gemm_run_hot, flex_gemm_passes_on, flex_rows_gemm,
     &flex_rows_gemm_count},
    {BURN_OP_CONV1D, conv_dims, flex_conv_run_hot, flex_conv_passes_on, flex_rows_conv,
     &flex_rows_conv_count},
    {BURN_OP_CONV2D, conv_dims, flex_conv_run_hot, flex_conv_passes_on, flex_rows_conv,
     &flex_rows_conv_count},
};

static const burn_fused_step *step_of(const burn_fused_program *program)
{
    return burn_fused_steps(program);
}

static const flex_producer_kind *kind_of(const burn_call *fused)
{
    for (uint32_t i = 0; i < FLEX_COUNT(kinds); i++) {
        if (kinds[i].op == step_of(fused->attrs)->op) {
            return &kinds[i];
        }
    }
    return NULL;
}

int flex_producer_begins(const burn_fused_program *program)
{
    uint16_t x = step_of(program)->args[0];
    return x < program->n_in && burn_fused_inputs(program)[x].space == BURN_FUSED_WHOLE;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void make_result(flex_producer *p, const burn_fused_step *step)
{
    burn_operand *z = flex_producer_result(p);
    int64_t step_size = 1;
    z->kind = BURN_TENSOR;
    z->dtype = step->dtype;
    z->layout = BURN_LAYOUT_CONTIGUOUS;
    z->dims = p->dims;
    z->strides = p->strides;
    for (uint32_t i = z->rank; i-- > 0;) {
        p->strides[i] = step_size;
        step_size *= p->dims[i];
    }
}

int flex_producer_make(flex_producer *p, const burn_call *fused)
{
    const burn_fused_program *program = fused->attrs;
    const burn_fused_step *step = step_of(program);
    const flex_producer_kind *k = kind_of(fused);
    if (k == NULL) {
        return 0;
    }
    p->kind = k;
    p->call = *fused;
    p->call.n_in = step->n_args;
    p->call.n_out = 1;
    p->call.state = NULL;
    p->call.operands = p->operands;
    p->call.operand_stride = (uint32_t)sizeof(burn_operand);
    p->call.attrs = step->attrs_size > 0 ? (const char *)program + step->attrs_offset : NULL;
    p->call.attrs_size = step->attrs_size;
    memset(p->operands, 0, sizeof(p->operands));
    for (uint32_t i = 0; i < step->n_args; i++) {
        if (step->args[i] != NONE) {
            p->operands[i] = *flex_in(fused, step->args[i]);
        }
    }
    k->dims(p);
    make_result(p, step);
    return 1;
}

/* Does the row take the operands as they are? The core has checked dtypes that depend on others. */
static int takes(const burn_row *row, const burn_call *call)
{
    for (uint32_t i = 0; i < row->n_slots && i < call->n_in + call->n_out; i++) {
        const burn_operand *o = flex_in(call, i);
        const burn_slot *slot = &row->slots[i];
        int fits = (slot->dtypes[0] >> o->dtype & 1) != 0 && (slot->layouts & o->layout) != 0;
        if (flex_absent(o) ? !slot->may_be_absent : !fits) {
            return 0;
        }
    }
    return 1;
}

const burn_row *flex_producer_row(const flex_producer *p)
{
    for (uint32_t r = 0; r < *p->kind->n_rows; r++) {
        const burn_row *row = &p->kind->rows[r];
        if (row->op == p->kind->op && (row->flags & BURN_ROW_EPILOGUE) != 0 &&
            takes(row, &p->call)) {
            return row;
        }
    }
    return NULL;
}

int32_t flex_producer_run_hot(const flex_producer *p, const flex_epilogue *finish)
{
    return p->kind->run_hot(&p->call, finish);
}

int flex_producer_passes_on(const flex_producer *p)
{
    return p->kind->passes_on(&p->call);
}
