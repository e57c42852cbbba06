/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_eval.c - the meaning of `fused`: the meanings of its steps, one after the other.
 *
 * Each result is rounded to its step's dtype, as the single op's output would be, before the next
 * step reads it. Slow and obvious; memory for all results is held until the end.
 */
#include "ops/fused.h"

#include "base/alloc.h"
#include "ops/ask.h"
#include "ops/registry.h"

#include <burn_sdk/half.h>
#include <string.h>

typedef struct run {
    const burn_eval *a;
    burni_fused_frame frame;
    burn_eval_operand values[BURN_MAX_OPERANDS + BURN_FUSED_MAX_STEPS];
    void *memory[2 * BURN_FUSED_MAX_STEPS];
    uint32_t n_memory;
} run;

/* ---- one value ------------------------------------------------------------------------------- */

static double round_float(double x, uint8_t dtype)
{
    if (dtype == BURN_F16) {
        return (double)burn_half_to_float(burn_double_to_half(x));
    }
    if (dtype == BURN_BF16) {
        return (double)burn_bfloat_to_float(burn_double_to_bfloat(x));
    }
    return dtype == BURN_F32 ? (double)(float)x : x;
}

static void round_value(burn_eval_operand *x)
{
    uint8_t dtype = x->meta.dtype;
    uint32_t unused = 64u - 8u * burn_dtype_size(dtype);
    for (uint64_t k = 0; k < x->n; k++) {
        if (x->f != NULL) {
            x->f[k] = round_float(x->f[k], dtype);
        } else if (x->u != NULL) {
            x->u[k] = x->u[k] << unused >> unused;
        } else if (dtype == BURN_BOOL) {
            x->i[k] = x->i[k] != 0;
        } else {
            x->i[k] = (int64_t)((uint64_t)x->i[k] << unused) >> unused;
        }
    }
}

/* Elements for a value whose meta is set. */
static int32_t make(run *r, burn_eval_operand *x)
{
    uint32_t klass = burn_dtype_class(x->meta.dtype);
    x->n = (uint64_t)burni_numel(x->meta.rank, x->meta.dims);
    void *memory = burni_calloc(x->n + 1, sizeof(uint64_t));
    if (memory == NULL) {
        return burni_fail(r->a->err, BURN_E_NO_MEMORY, "fused: out of host memory");
    }
    r->memory[r->n_memory++] = memory;
    x->f = klass == BURN_CLASS_FLOAT ? memory : NULL;
    x->u = klass == BURN_CLASS_UINT ? memory : NULL;
    x->i = x->f == NULL && x->u == NULL ? memory : NULL;
    return BURN_OK;
}

/* x repeated along the dims that it lacks. */
static void spread(burn_eval_operand *to, const burn_eval_operand *x)
{
    int64_t strides[BURN_MAX_RANK];
    int64_t index[BURN_MAX_RANK] = {0};
    burni_broadcast_strides(&x->meta, &to->meta, strides);
    for (uint64_t k = 0; k < to->n; k++) {
        burni_eval_move(to, k, x, (uint64_t)burni_offset(to->meta.rank, index, strides));
        (void)burni_next_index(to->meta.rank, to->meta.dims, index);
    }
}

/* ---- one step -------------------------------------------------------------------------------- */

/* The shape that the op itself gives: that of the space, or less where all operands are smaller. */
static int32_t own_shape(const run *r, const burni_op *op, const burn_fused_step *step,
                         const burn_eval_operand *in, burn_meta *out)
{
    int32_t rc = BURN_OK;
    if (op->def.fuse == BURN_FUSE_REDUCE || op->def.fuse == BURN_FUSE_GENERATE ||
        op->def.fuse == BURN_FUSE_LINES) {
        burni_fused_inner(&r->frame, step->space, out);
        return rc;
    }
    if (op->def.fuse == BURN_FUSE_EPILOGUE_HOST) {
        *out = r->frame.made;
        return rc;
    }
    out->rank = 0;
    for (uint32_t i = 0; i < step->n_args && rc == BURN_OK; i++) {
        rc = in[i].meta.kind != BURN_ABSENT
                 ? burni_broadcast(op->def.name, out, &in[i].meta, out, r->a->err)
                 : BURN_OK;
    }
    return rc;
}

static int32_t run_step(run *r, uint32_t s)
{
    const burn_fused_program *p = r->frame.program;
    const burn_fused_step *step = &burn_fused_steps(p)[s];
    const burni_op *op = burni_op_find(step->op);
    const void *attrs = step->attrs_size > 0 ? (const char *)p + step->attrs_offset : NULL;
    burn_attrs_shape sized;
    burn_eval_operand in[BURN_FUSED_MAX_ARGS];
    burn_eval_operand own = {.meta = {.kind = BURN_TENSOR, .dtype = step->dtype}};
    burn_eval_operand *out = &r->values[p->n_in + s];
    memset(in, 0, sizeof(in));
    for (uint32_t i = 0; i < step->n_args; i++) {
        if (step->args[i] != BURN_FUSED_NONE) {
            in[i] = r->values[step->args[i]];
        }
        if (burni_fused_takes_line(step, i) && step->args[i] != BURN_FUSED_NONE) {
            burni_fused_inner(&r->frame, BURN_FUSED_WHOLE, &in[i].meta);
        }
    }
    if (op->def.fuse == BURN_FUSE_GENERATE && attrs != NULL) {
        attrs = burni_fused_sized(&r->frame, attrs, &sized);
    }
    int32_t rc = own_shape(r, op, step, in, &own.meta);
    rc = rc == BURN_OK ? make(r, &own) : rc;
    if (rc == BURN_OK) {
        burn_eval a = {sizeof(a), step->n_args, 1, step->attrs_size, in, &own, attrs, r->a->err};
        rc = burni_ask_eval(op, &a);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    round_value(&own);
    *out = own;
    burni_fused_inner(&r->frame, step->space, &out->meta);
    if (op->def.fuse == BURN_FUSE_EPILOGUE_HOST) {
        return BURN_OK; /* the same elements, seen in the program's shape */
    }
    if (own.meta.rank != out->meta.rank ||
        memcmp(own.meta.dims, out->meta.dims, own.meta.rank * sizeof(own.meta.dims[0])) != 0) {
        rc = make(r, out);
        if (rc == BURN_OK) {
            spread(out, &own);
        }
    }
    return rc;
}

/* ---- all steps ------------------------------------------------------------------------------- */

static int32_t run_all(run *r)
{
    const burn_eval *a = r->a;
    const burn_meta *metas[BURN_MAX_OPERANDS];
    for (uint32_t i = 0; i < a->n_in && i < BURN_MAX_OPERANDS; i++) {
        metas[i] = &a->in[i].meta;
    }
    int32_t rc = burni_fused_measure(a->attrs, a->attrs_size, metas, a->n_in, &r->frame, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    const burn_fused_program *p = r->frame.program;
    for (uint32_t i = 0; i < a->n_in; i++) {
        uint8_t space = burn_fused_inputs(p)[i].space;
        r->values[i] = a->in[i];
        if (space != BURN_FUSED_WHOLE) {
            burni_fused_inner(&r->frame, space, &r->values[i].meta);
        }
    }
    for (uint32_t s = 0; s < p->n_steps && rc == BURN_OK; s++) {
        rc = run_step(r, s);
    }
    for (uint32_t j = 0; j < a->n_out && rc == BURN_OK; j++) {
        const burn_eval_operand *from = &r->values[burn_fused_outputs(p)[j]];
        for (uint64_t k = 0; k < a->out[j].n; k++) {
            burni_eval_move(&a->out[j], k, from, k);
        }
    }
    return rc;
}

int32_t burni_fused_eval(const burn_eval *a)
{
    run *r = burni_calloc(1, sizeof(*r));
    if (r == NULL) {
        return burni_fail(a->err, BURN_E_NO_MEMORY, "fused: out of host memory");
    }
    r->a = a;
    int32_t rc = run_all(r);
    for (uint32_t m = 0; m < r->n_memory; m++) {
        burni_free(r->memory[m]);
    }
    burni_free(r);
    return rc;
}
