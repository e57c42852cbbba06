/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.c - the op `fused`: several small ops done in one pass, as its attributes say.
 *
 * The format of the attributes is burn/fused.h. Everything here follows from the definitions of the
 * steps: shapes from the spaces, the decomposition from the steps as they are. It has no gradient
 * as a whole: what is recorded is decomposed. Its meaning is in fused_eval.c, samples in
 * fused_samples.c. Pure.
 */
#include "ops/fused.h"

#include "ops/ask.h"
#include "ops/parts.h"
#include "ops/registry.h"

#include <string.h>

int burni_fused_has_producer(const burn_fused_program *p)
{
    const burni_op *op = burni_op_find(burn_fused_steps(p)[0].op);
    return p->head.revision >= BURN_FUSED_VERSION_PRODUCER && op != NULL &&
           op->def.fuse == BURN_FUSE_EPILOGUE_HOST;
}

int burni_fused_takes_line(const burn_fused_step *step, uint32_t i)
{
    const burni_op *op = burni_op_find(step->op);
    return op != NULL && op->def.fuse == BURN_FUSE_LINES && i < op->def.n_in &&
           (burni_op_role_in(op, i)->flags & BURN_ROLE_LINE) != 0;
}

int burni_fused_is_line(const burn_fused_program *p, uint32_t i)
{
    int found = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const burn_fused_step *step = &burn_fused_steps(p)[s];
        for (uint32_t k = 0; k < step->n_args; k++) {
            found |= step->args[k] == i && burni_fused_takes_line(step, k);
        }
    }
    return found;
}

/* ---- operands -------------------------------------------------------------------------------- */

static int32_t check_operand(const burni_fused_frame *f, uint32_t i, const burn_meta *x,
                             burn_err *err)
{
    const burn_fused_input *in = &burn_fused_inputs(f->program)[i];
    int immediate = x->kind == BURN_IMMEDIATE;
    if (immediate != (in->immediate != 0)) {
        return burni_fail(err, BURN_E_INVALID, "fused: operand %u is a %s, the program takes a %s",
                          i, immediate ? "scalar" : "tensor", immediate ? "tensor" : "scalar");
    }
    if (x->dtype != in->dtype) {
        return burni_fail(err, BURN_E_DTYPE, "fused: operand %u is %s, the program takes %s", i,
                          burn_dtype_name(x->dtype), burn_dtype_name(in->dtype));
    }
    int is_line = in->space == BURN_FUSED_WHOLE && f->length > 0 &&
                  burni_fused_is_line(f->program, i);
    if (in->space == BURN_FUSED_WHOLE && !is_line) {
        return BURN_OK; /* the producer's own rule has seen it */
    }
    int64_t n = immediate ? 1 : burni_numel(x->rank, x->dims);
    int64_t wanted = in->space == BURN_FUSED_FULL  ? f->n
                     : in->space == BURN_FUSED_ROW ? f->rows
                     : is_line                     ? f->length
                                                   : 1;
    if (n != wanted) {
        char shape[192];
        return burni_fail(err, BURN_E_SHAPE,
                          "fused: operand %u of shape %s has %lld elements, the program takes "
                          "%lld; expand it first",
                          i, burni_shape_text(shape, sizeof(shape), x->rank, x->dims), (long long)n,
                          (long long)wanted);
    }
    return BURN_OK;
}

/* A loss is one number of all positions. */
static int has_loss(const burn_fused_program *p)
{
    int found = 0;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        found |= burni_is_loss(&burni_op_find(burn_fused_steps(p)[s].op)->def);
    }
    return found;
}

static int32_t measure_rows(burni_fused_frame *f, const burn_meta *const *in, burn_err *err)
{
    if (f->program->row_input == BURN_FUSED_NONE) {
        return BURN_OK;
    }
    f->length = in[f->program->row_input]->dims[0];
    if (f->length < 1 || f->n % f->length != 0) {
        char shape[192];
        return burni_fail(err, BURN_E_SHAPE,
                          "fused: shape %s, %lld elements, is no whole number of rows of %lld",
                          burni_shape_text(shape, sizeof(shape), f->full->rank, f->full->dims),
                          (long long)f->n, (long long)f->length);
    }
    f->rows = f->n / f->length;
    if (f->rows != 1 && has_loss(f->program)) {
        return burni_fail(err, BURN_E_SHAPE, "fused: a loss of %lld rows of %lld; one is possible",
                          (long long)f->rows, (long long)f->length);
    }
    return BURN_OK;
}

/* What the producer's rule is asked with. */
typedef struct producer_call {
    const burni_op *op;
    const burn_meta *args[BURN_FUSED_MAX_ARGS];
    burn_infer infer;
} producer_call;

static void ask_producer(const burn_fused_program *program, const burn_meta *const *in,
                         burn_meta *made, burn_err *why, producer_call *out)
{
    static const burn_meta absent = {.kind = BURN_ABSENT};
    const burn_fused_step *step = burn_fused_steps(program);
    const void *attrs = (const char *)program + step->attrs_offset;
    out->op = burni_op_find(step->op);
    for (uint32_t i = 0; i < step->n_args; i++) {
        out->args[i] = step->args[i] == BURN_FUSED_NONE ? &absent : in[step->args[i]];
    }
    made->kind = BURN_TENSOR;
    made->dtype = step->dtype;
    out->infer = (burn_infer){sizeof(out->infer), step->n_args, 1, step->attrs_size, out->args,
                              made, step->attrs_size > 0 ? attrs : NULL, why};
}

/* The shape of what the producer gives, by its own rule; its operands must be what it takes. */
static int32_t measure_product(burni_fused_frame *f, const burn_meta *const *in, burn_err *err)
{
    const burn_fused_step *step = burn_fused_steps(f->program);
    burn_err why = BURN_ERR_INIT;
    producer_call call;
    ask_producer(f->program, in, &f->made, &why, &call);
    for (uint32_t i = 0; i < step->n_args; i++) {
        int32_t rc = step->args[i] == BURN_FUSED_NONE
                         ? BURN_OK
                         : check_operand(f, step->args[i], call.args[i], err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    f->full = &f->made;
    int32_t rc = burni_ask_infer(call.op, &call.infer);
    return rc == BURN_OK ? rc : burni_fail(err, rc, "fused: %s", why.text);
}

static int32_t find_full(burni_fused_frame *f, const burn_meta *const *in, uint32_t n_in,
                         burn_err *err)
{
    const burn_fused_input *inputs = burn_fused_inputs(f->program);
    int32_t rc = BURN_OK;
    if (burni_fused_has_producer(f->program)) {
        rc = measure_product(f, in, err);
    }
    for (uint32_t i = 0; i < n_in && f->full == NULL; i++) {
        f->full = inputs[i].space == BURN_FUSED_FULL ? in[i] : NULL;
    }
    f->n = rc == BURN_OK ? burni_numel(f->full->rank, f->full->dims) : 0;
    return rc;
}

int32_t burni_fused_measure(const void *attrs, uint32_t attrs_size, const burn_meta *const *in,
                            uint32_t n_in, burni_fused_frame *out, burn_err *err)
{
    int32_t rc = burn_fused_check(attrs, attrs_size, err);
    if (rc != BURN_OK) {
        return rc;
    }
    memset(out, 0, sizeof(*out));
    out->program = attrs;
    if (n_in != out->program->n_in) {
        return burni_fail(err, BURN_E_INVALID,
                          "fused: %u operands given, the program has %u inputs", n_in,
                          out->program->n_in);
    }
    rc = find_full(out, in, n_in, err);
    /* The length of a row has its kind and dtype before its value counts. */
    for (uint32_t pass = 0; pass < 2 && rc == BURN_OK; pass++) {
        for (uint32_t i = 0; i < n_in && rc == BURN_OK; i++) {
            int is_length = i == out->program->row_input;
            rc = is_length == (pass == 0) ? check_operand(out, i, in[i], err) : BURN_OK;
        }
        rc = rc == BURN_OK && pass == 0 ? measure_rows(out, in, err) : rc;
    }
    return rc;
}

uint8_t burni_fused_input_dtype(const void *attrs, uint32_t size, uint32_t i)
{
    const burn_fused_program *p = attrs;
    if (burn_fused_check(attrs, size, NULL) != BURN_OK || i >= p->n_in) {
        return BURN_DTYPE_NONE;
    }
    return burn_fused_inputs(p)[i].dtype;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void burni_fused_inner(const burni_fused_frame *f, uint8_t space, burn_meta *out)
{
    memset(out->dims, 0, sizeof(out->dims));
    out->rank = 0;
    if (space == BURN_FUSED_WHOLE) {
        out->rank = 1; /* a line */
        out->dims[0] = f->length;
    } else if (space == BURN_FUSED_FULL && f->length == 0) {
        out->rank = f->full->rank;
        memcpy(out->dims, f->full->dims, f->full->rank * sizeof(out->dims[0]));
    } else if (space != BURN_FUSED_ONE) {
        out->rank = 2;
        out->dims[0] = space == BURN_FUSED_COLUMN ? 1 : f->rows;
        out->dims[1] = space == BURN_FUSED_ROW ? 1 : f->length;
    }
}

void burni_fused_outer(const burni_fused_frame *f, uint8_t space, burn_meta *out)
{
    uint32_t rank = f->full->rank;
    memset(out->dims, 0, sizeof(out->dims));
    if (space == BURN_FUSED_ROW) {
        int last = rank > 0 && f->full->dims[rank - 1] == f->length;
        out->rank = last ? (uint8_t)(rank - 1) : 1;
        out->dims[0] = f->rows;
        if (last) {
            memcpy(out->dims, f->full->dims, out->rank * sizeof(out->dims[0]));
        }
    } else if (space == BURN_FUSED_COLUMN) {
        out->rank = 1;
        out->dims[0] = f->length;
    } else {
        out->rank = (uint8_t)rank;
        memcpy(out->dims, f->full->dims, rank * sizeof(out->dims[0]));
    }
}

const burn_attrs_shape *burni_fused_sized(const burni_fused_frame *f, const void *attrs,
                                          burn_attrs_shape *out)
{
    burn_meta shape = {0};
    burni_fused_inner(f, BURN_FUSED_FULL, &shape);
    memcpy(out, attrs, sizeof(*out));
    out->n_dims = shape.rank;
    memcpy(out->dims, shape.dims, shape.rank * sizeof(shape.dims[0]));
    return out;
}

const burn_fused_step *burni_fused_giver(const burn_fused_program *p, uint32_t j)
{
    return &burn_fused_steps(p)[burn_fused_outputs(p)[j] - p->n_in];
}

static int32_t infer_fused(const burn_infer *a)
{
    burni_fused_frame f;
    int32_t rc = burni_fused_measure(a->attrs, a->attrs_size, a->in, a->n_in, &f, a->err);
    if (rc != BURN_OK) {
        return rc;
    }
    if (a->n_out != f.program->n_out) {
        return burni_fail(a->err, BURN_E_INVALID,
                          "fused: room for %u outputs, the program has %u", a->n_out,
                          f.program->n_out);
    }
    for (uint32_t j = 0; j < a->n_out; j++) {
        const burn_fused_step *step = burni_fused_giver(f.program, j);
        a->out[j].dtype = step->dtype;
        burni_fused_outer(&f, step->space, &a->out[j]);
    }
    return BURN_OK;
}

/* ---- decomposition --------------------------------------------------------------------------- */

/* x in that shape (same number of elements); a failed value passes. */
static burn_value *shaped(const burn_builder *b, burn_value *x, const burn_meta *to)
{
    burn_meta meta = burn_b_meta(b, x);
    if (meta.dtype == BURN_DTYPE_NONE || meta.kind != BURN_TENSOR ||
        (meta.rank == to->rank &&
         memcmp(meta.dims, to->dims, to->rank * sizeof(to->dims[0])) == 0)) {
        return x;
    }
    return burni_b_reshape_to(b, x, to);
}

/* A step's result may be smaller than its space, when its operands all are. */
static burn_value *spread(const burn_builder *b, burn_value *x, const burn_meta *to)
{
    burn_meta meta = burn_b_meta(b, x);
    if (meta.dtype == BURN_DTYPE_NONE ||
        (meta.rank == to->rank &&
         memcmp(meta.dims, to->dims, to->rank * sizeof(to->dims[0])) == 0)) {
        return x;
    }
    return burn_b_expand(b, x, to->rank, to->dims);
}

/* Operands of one dtype: those that are tied to the same one. */
static uint32_t tie_of(const burni_op *op, uint32_t i)
{
    uint32_t like = burni_op_role_in(op, i)->same_dtype_as;
    return like != 0 ? like - 1 : i;
}

/* Does a tensor among the operands say which dtype the scalar i takes? */
static int is_tied(const burni_fused_frame *f, const burni_op *op, const burn_fused_step *step,
                   uint32_t i)
{
    const burn_fused_input *inputs = burn_fused_inputs(f->program);
    for (uint32_t k = 0; k < step->n_args; k++) {
        uint16_t v = step->args[k];
        int is_tensor = v != BURN_FUSED_NONE &&
                        (v >= f->program->n_in || inputs[v].immediate == 0);
        if (is_tensor && tie_of(op, k) == tie_of(op, i)) {
            return 1;
        }
    }
    return 0;
}

/* Operand i of a step. A scalar that no tensor gives its dtype becomes a tensor of that dtype. */
static burn_value *operand(const burn_builder *b, const burni_fused_frame *f, const burni_op *op,
                           const burn_fused_step *step, uint32_t i, burn_value *const *values)
{
    uint16_t v = step->args[i];
    if (v == BURN_FUSED_NONE) {
        return NULL;
    }
    int by_value = v < f->program->n_in && burn_fused_inputs(f->program)[v].immediate != 0;
    int only_scalar = (burni_op_role_in(op, i)->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0;
    if (!by_value || only_scalar || is_tied(f, op, step, i)) {
        return values[v];
    }
    burn_attrs_shape a;
    burn_attrs_init(&a, (uint32_t)sizeof(a));
    a.dtype = burn_fused_inputs(f->program)[v].dtype;
    return burn_b_emit(b, BURN_OP_FILL, &a, &values[v], 1);
}

static burn_value *emit_step(const burn_builder *b, const burni_fused_frame *f, uint32_t s,
                             burn_value *const *values)
{
    const burn_fused_step *step = &burn_fused_steps(f->program)[s];
    const char *bytes = (const char *)f->program;
    burn_value *in[BURN_FUSED_MAX_ARGS] = {NULL};
    burn_value *out = NULL;
    burn_meta shape = {0};
    const burni_op *op = burni_op_find(step->op);
    burn_attrs_shape sized;
    for (uint32_t i = 0; i < step->n_args; i++) {
        in[i] = operand(b, f, op, step, i, values);
        if (in[i] != NULL && burni_fused_takes_line(step, i)) {
            in[i] = shaped(b, in[i], &(burn_meta){.rank = 1, .dims = {f->length}});
        }
    }
    const void *attrs = step->attrs_size > 0 ? bytes + step->attrs_offset : NULL;
    if (op->def.fuse == BURN_FUSE_GENERATE && attrs != NULL) {
        attrs = burni_fused_sized(f, attrs, &sized);
    }
    (void)b->emit(b->ctx, step->op, attrs, step->attrs_size, in, step->n_args, &out, 1);
    burni_fused_inner(f, step->space, &shape);
    return op->def.fuse == BURN_FUSE_EPILOGUE_HOST ? shaped(b, out, &shape)
                                                   : spread(b, out, &shape);
}

static int32_t expand_fused(const burn_builder *b, const burn_expand *a)
{
    const burn_meta *pointers[BURN_MAX_OPERANDS];
    burn_meta metas[BURN_MAX_OPERANDS];
    burn_value *values[BURN_MAX_OPERANDS + BURN_FUSED_MAX_STEPS];
    burn_err err = BURN_ERR_INIT;
    burni_fused_frame f;
    for (uint32_t i = 0; i < a->n_in && i < BURN_MAX_OPERANDS; i++) {
        metas[i] = a->in_meta[i];
        /* The value of a scalar may have any dtype yet; who takes it converts it. */
        metas[i].dtype = metas[i].kind == BURN_IMMEDIATE
                             ? burni_fused_input_dtype(a->attrs, a->attrs_size, i)
                             : metas[i].dtype;
        pointers[i] = &metas[i];
    }
    int32_t rc = burni_fused_measure(a->attrs, a->attrs_size, pointers, a->n_in, &f, &err);
    if (rc != BURN_OK || a->n_out != f.program->n_out) {
        for (uint32_t j = 0; j < a->n_out; j++) {
            a->out[j] = b->fail(b->ctx, rc != BURN_OK ? rc : BURN_E_INVALID, err.text);
        }
        return BURN_OK;
    }
    for (uint32_t i = 0; i < a->n_in; i++) {
        uint8_t space = burn_fused_inputs(f.program)[i].space;
        burn_meta shape = {0};
        burni_fused_inner(&f, space, &shape);
        values[i] = space == BURN_FUSED_WHOLE ? a->in[i] : shaped(b, a->in[i], &shape);
    }
    for (uint32_t s = 0; s < f.program->n_steps; s++) {
        values[a->n_in + s] = emit_step(b, &f, s, values);
    }
    for (uint32_t j = 0; j < a->n_out; j++) {
        burn_meta shape = {0};
        burni_fused_outer(&f, burni_fused_giver(f.program, j)->space, &shape);
        a->out[j] = shaped(b, values[burn_fused_outputs(f.program)[j]], &shape);
    }
    return BURN_OK;
}

/* Those of the product that it begins with: what counts. */
static uint64_t flops_fused(const burn_infer *a)
{
    burn_err why = BURN_ERR_INIT;
    burn_meta made = {0};
    producer_call call;
    if (!burni_fused_has_producer(a->attrs)) {
        return 0;
    }
    ask_producer(a->attrs, a->in, &made, &why, &call);
    int known = call.op->def.flops != NULL && burni_ask_infer(call.op, &call.infer) == BURN_OK;
    return known ? call.op->def.flops(&call.infer) : 0;
}

/* ---- definition ------------------------------------------------------------------------------ */

static const burn_role roles[2] = {
    BURNI_ROLE("x", BURN_ROLE_VARIADIC | BURN_ROLE_IMMEDIATE, BURN_SET_ANY),
    BURNI_ROLE("y", BURN_ROLE_VARIADIC, BURN_SET_ANY),
};

const burn_op_def burn_op_def_fused = {
    BURNI_DEF(FUSED, fused),
    .n_in = 1,
    .n_out = 1,
    .summary = "several small ops in one pass, behind a product or not, as a program says",
    .roles = roles,
    .attrs_size = (uint32_t)sizeof(burn_fused_program),
    .infer = infer_fused,
    .decompose = expand_fused,
    .eval = burni_fused_eval,
    .samples = burni_fused_samples,
    .flops = flops_fused,
};
