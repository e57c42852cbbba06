/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * expand.c - decompositions, and the builder that runs them at once.
 *
 * A decomposition runs in an inner scope; its outputs become fresh handles of the outer one, also
 * when it passes an input through. A state op's new values are assigned to its variables last, so
 * that a decomposition that fails half-way changes nothing.
 */
#include "base/error.h"
#include "exec/origin.h"
#include "exec/trust.h"
#include "ops/ask.h"

#include <stdlib.h>
#include <string.h>

#define MAX_VALUES BURN_MAX_OPERANDS

/* ---- the eager builder ----------------------------------------------------------------------- */

static burn_tensor *handle(const burn_value *value)
{
    return (burn_tensor *)(uintptr_t)value;
}

static burn_value *value_of(burn_tensor *t)
{
    return (burn_value *)(void *)t;
}

static int32_t eager_emit(void *ctx, uint64_t op_id, const void *attrs, uint32_t attrs_size,
                          burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    burni_eager *eager = ctx;
    const burni_op *op = burni_op_find(op_id);
    burn_tensor *ins[MAX_VALUES];
    burn_tensor *outs[MAX_VALUES];
    if (eager->thread->endless != NULL) {
        for (uint32_t j = 0; j < n_out; j++) {
            out[j] = value_of(burni_handle_failed(eager->thread, eager->thread->endless));
        }
        return eager->thread->endless->code;
    }
    if (op == NULL || n_in > MAX_VALUES || n_out > MAX_VALUES) {
        for (uint32_t j = 0; j < n_out; j++) {
            out[j] = value_of(burni_handle_fail(eager->thread, BURN_E_NOT_FOUND, op_id,
                                                "there is no op with id %llu",
                                                (unsigned long long)op_id));
        }
        return BURN_E_NOT_FOUND;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        ins[i] = handle(in[i]);
    }
    int32_t rc = burni_emit(eager->thread, eager->device, op, attrs, attrs_size, ins, n_in, outs,
                            n_out);
    for (uint32_t j = 0; j < n_out; j++) {
        out[j] = value_of(outs[j]);
    }
    return rc;
}

static void eager_meta(void *ctx, const burn_value *value, burn_meta *out)
{
    (void)ctx;
    if (value == NULL) {
        memset(out, 0, sizeof(*out));
        return;
    }
    /* Dims beyond the rank are zero: definitions copy whole arrays into attributes, and keys. */
    memset(out->dims, 0, sizeof(out->dims));
    burni_handle_meta(handle(value), out);
    if (out->kind == BURN_IMMEDIATE) {
        out->rank = 0;
    }
}

static burn_value *eager_fail(void *ctx, int32_t code, const char *text)
{
    burni_eager *eager = ctx;
    return value_of(burni_handle_fail(eager->thread, code, 0, "%s", text));
}

static burn_value *immediate_bits(burni_eager *eager, uint8_t from, uint64_t bits, uint8_t dtype)
{
    burn_err err = BURN_ERR_INIT;
    uint64_t wide[2] = {bits, 0};
    uint64_t out[2] = {0, 0};
    if (burn_dtype_size(dtype) == 0) {
        /* A failed operand has no dtype; the op that it enters passes the cause on. */
        dtype = from;
    }
    if (burni_scalar_convert(from, wide, dtype, out, "immediate", &err) != BURN_OK) {
        return eager_fail(eager, err.code, err.text);
    }
    burn_tensor *t = burni_handle_new(eager->thread, 1);
    if (t == NULL) {
        return value_of(burni_handle_failed(NULL, &burni_cause_no_memory));
    }
    t->kind = BURN_IMMEDIATE;
    t->dtype = dtype;
    t->rank = 0;
    t->numel = 1;
    t->immediate[0] = out[0];
    t->immediate[1] = out[1];
    return value_of(t);
}

static burn_value *eager_immediate(void *ctx, uint8_t dtype, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return immediate_bits(ctx, BURN_F64, bits, dtype);
}

static burn_value *eager_immediate_int(void *ctx, uint8_t dtype, int64_t number)
{
    return immediate_bits(ctx, BURN_I64, (uint64_t)number, dtype);
}

static burn_value *eager_constant(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                                  const void *bytes)
{
    burni_eager *eager = ctx;
    return value_of(burn_tensor_from_data(eager->device, dtype, rank, dims, bytes));
}

void burni_eager_builder(burni_eager *ctx, burni_thread *thread, burn_device *device,
                         burn_builder *out)
{
    ctx->thread = thread;
    ctx->device = device;
    memset(out, 0, sizeof(*out));
    out->struct_size = sizeof(*out);
    out->ctx = ctx;
    out->emit = eager_emit;
    out->meta = eager_meta;
    out->immediate = eager_immediate;
    out->immediate_int = eager_immediate_int;
    out->constant = eager_constant;
    out->fail = eager_fail;
}

/* ---- decompositions -------------------------------------------------------------------------- */

/* Writes new values into the variables of a state op; the outputs become views of them. */
static int32_t assign_states(burni_thread *thread, const burni_op *op, burn_tensor *const *in,
                             uint32_t n_in, burn_tensor **out, uint32_t n_out)
{
    for (uint32_t a = 0; a < op->def.n_aliases; a++) {
        const burn_alias *alias = &op->def.aliases[a];
        if (alias->kind != BURN_ALIAS_MUST || alias->in >= n_in || alias->out >= n_out ||
            in[alias->in] == NULL || out[alias->out] == NULL || out[alias->out] == in[alias->in]) {
            continue;
        }
        burn_tensor *const operands[2] = {in[alias->in], out[alias->out]};
        burn_tensor *result = NULL;
        int32_t rc = burni_emit(thread, NULL, burni_op_find(BURN_OP_ASSIGN), NULL, 0, operands, 2,
                                &result, 1);
        out[alias->out] = result;
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return BURN_OK;
}

/* An output that is an input (or another output) gets a handle of its own. */
static burn_tensor *fresh(burni_thread *thread, burn_tensor *t, burn_tensor *const *in,
                          uint32_t n_in, burn_tensor *const *out, uint32_t n_before)
{
    int taken = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        taken |= in[i] == t;
    }
    for (uint32_t j = 0; j < n_before; j++) {
        taken |= out[j] == t;
    }
    if (!taken) {
        return t;
    }
    burn_tensor *alias = burni_handle_alias(thread, t, 1);
    if (alias != NULL && t->node != NULL && thread->no_grad == 0) {
        alias->node = burni_node_ref(t->node);
        alias->out_index = t->out_index;
    }
    return alias != NULL ? alias : burni_handle_failed(NULL, &burni_cause_no_memory);
}

static burn_tensor *checked(burni_thread *thread, const burni_op *op, burn_tensor *t, uint32_t j)
{
    if (t != NULL) {
        return t;
    }
    return burni_handle_fail(thread, BURN_E_INTERNAL, op->def.id,
                             "%s: its decomposition gave no output %u", op->def.name, j);
}

/*
 * A decomposition that ends up in itself is stopped here. Until the outermost one has returned,
 * whatever is emitted fails at once: one with two such calls would else go down each way there is.
 */
static int32_t stop_endless(burni_thread *thread, const burni_op *op, burn_tensor **out,
                            uint32_t n_out)
{
    burn_err err = BURN_ERR_INIT;
    (void)burni_fail(&err, BURN_E_INTERNAL,
                     "%s%s%s: decompositions are nested deeper than %d: does it end up in itself?",
                     op->plugin != NULL ? op->plugin : "", op->plugin != NULL ? ": op " : "",
                     op->def.name, BURNI_MAX_NESTED);
    err.op = op->def.id;
    if (thread->endless == NULL) {
        thread->endless = burni_cause_new(&err);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        out[j] = burni_handle_failed(thread, thread->endless);
    }
    return thread->endless->code;
}

static void leave_nested(burni_thread *thread)
{
    thread->nested--;
    if (thread->nested == 0 && thread->endless != NULL) {
        burni_cause_unref(thread->endless);
        thread->endless = NULL;
    }
}

int32_t burni_expand(burni_thread *thread, burn_device *device, const burni_op *op,
                     const void *attrs, uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                     burn_tensor **out, uint32_t n_out)
{
    if (thread->nested >= BURNI_MAX_NESTED) {
        return stop_endless(thread, op, out, n_out);
    }
    burni_eager eager;
    burn_builder builder;
    burni_eager_builder(&eager, thread, device, &builder);
    burn_value *ins[MAX_VALUES];
    burn_value *outs[MAX_VALUES] = {NULL};
    burn_meta metas[MAX_VALUES];
    for (uint32_t i = 0; i < n_in; i++) {
        ins[i] = value_of(in[i]);
        eager_meta(&eager, ins[i], &metas[i]);
        metas[i].kind = in[i] == NULL ? BURN_ABSENT : in[i]->kind;
        if (metas[i].kind == BURN_IMMEDIATE) {
            metas[i].dims[0] = burni_scalar_whole(in[i]->dtype, in[i]->immediate);
        }
    }
    burn_expand a = {sizeof(a), n_in, n_out, attrs_size, ins, metas, outs, attrs};
    burni_origin *own = NULL;
    if (thread->origin == NULL) {
        own = burni_origin_new(op, metas, n_in);
        thread->origin = own;
    }
    burn_scope_begin();
    thread->depth++;
    thread->nested++;
    burn_err why = BURN_ERR_INIT;
    int32_t rc = burni_ask_decompose(op, &builder, &a, &why);
    for (uint32_t j = 0; j < n_out; j++) {
        burn_tensor *t = handle(outs[j]);
        if (rc != BURN_OK && (t == NULL || t->cause == NULL)) {
            t = burni_handle_fail(thread, rc, op->def.id, "%s", why.text);
        }
        t = checked(thread, op, t, j);
        out[j] = fresh(thread, t, in, n_in, out, j);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        rc = rc == BURN_OK && out[j]->cause != NULL ? out[j]->cause->code : rc;
    }
    if (rc == BURN_OK && op->def.effect == BURN_EFFECT_STATE) {
        rc = assign_states(thread, op, in, n_in, out, n_out);
    }
    thread->depth--;
    leave_nested(thread);
    if (own != NULL) {
        thread->origin = NULL;
        burni_origin_unref(own);
    }
    burni_scope_end_inside(out, n_out);
    return rc;
}
