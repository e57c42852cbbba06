/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * eval_builder.c - see eval_builder.h.
 */
#include "eval_builder.h"

#include "base/error.h"
#include "ops/registry.h"
#include "ops/rules.h"

#include <burn/call.h>
#include <burn/fused.h>
#include <burn_sdk/half.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct eval_builder {
    eval_value *values;
};

/* ---- numbers --------------------------------------------------------------------------------- */

double eval_round(uint8_t dtype, double number)
{
    switch (dtype) {
    case BURN_F16:
        return (double)burn_half_to_float(burn_float_to_half((float)number));
    case BURN_BF16:
        return (double)burn_bfloat_to_float(burn_float_to_bfloat((float)number));
    case BURN_F32:
        return (double)(float)number;
    default:
        return number;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

eval_builder *eval_builder_new(void)
{
    return calloc(1, sizeof(eval_builder));
}

void eval_builder_free(eval_builder *e)
{
    while (e->values != NULL) {
        eval_value *v = e->values;
        e->values = v->next;
        free(v->x.f);
        free(v->x.i);
        free(v->x.u);
        free(v);
    }
    free(e);
}

eval_value *eval_of(const burn_value *value)
{
    return (eval_value *)(uintptr_t)value;
}

static burn_value *handle_of(eval_value *v)
{
    return (burn_value *)(void *)v;
}

double eval_at(const burn_value *value, uint64_t k)
{
    return burni_eval_get(&eval_of(value)->x, k);
}

static eval_value *new_value(eval_builder *e, const burn_meta *meta)
{
    eval_value *v = calloc(1, sizeof(*v));
    v->next = e->values;
    e->values = v;
    v->x.meta = *meta;
    int64_t n = burni_numel(meta->rank, meta->dims);
    v->x.n = n > 0 ? (uint64_t)n : 0;
    uint32_t klass = burn_dtype_class(meta->dtype);
    if (klass == BURN_CLASS_FLOAT) {
        v->x.f = calloc(v->x.n + 1, sizeof(double));
    } else if (klass == BURN_CLASS_UINT) {
        v->x.u = calloc(v->x.n + 1, sizeof(uint64_t));
    } else {
        v->x.i = calloc(v->x.n + 1, sizeof(int64_t));
    }
    return v;
}

static void round_value(eval_value *v)
{
    for (uint64_t k = 0; v->x.f != NULL && k < v->x.n; k++) {
        v->x.f[k] = eval_round(v->x.meta.dtype, v->x.f[k]);
    }
    uint32_t unused = 64u - 8u * burn_dtype_size(v->x.meta.dtype);
    int wraps = v->x.meta.dtype != BURN_BOOL && burn_dtype_size(v->x.meta.dtype) != 0;
    for (uint64_t k = 0; wraps && v->x.i != NULL && k < v->x.n; k++) {
        v->x.i[k] = (int64_t)((uint64_t)v->x.i[k] << unused) >> unused;
    }
    for (uint64_t k = 0; wraps && v->x.u != NULL && k < v->x.n; k++) {
        v->x.u[k] = v->x.u[k] << unused >> unused;
    }
}

burn_value *eval_tensor(eval_builder *e, uint8_t dtype, uint32_t rank, const int64_t *dims,
                        const double *numbers)
{
    burn_meta meta = {0, BURN_TENSOR, dtype, (uint8_t)rank, 0, {0}};
    for (uint32_t i = 0; i < rank; i++) {
        meta.dims[i] = dims[i];
    }
    eval_value *v = new_value(e, &meta);
    for (uint64_t k = 0; k < v->x.n; k++) {
        burni_eval_set(&v->x, k, numbers[k]);
    }
    round_value(v);
    return handle_of(v);
}

burn_value *eval_scalar(eval_builder *e, uint8_t dtype, double number)
{
    burn_value *v = eval_tensor(e, dtype, 0, NULL, &number);
    burn_meta *meta = &eval_of(v)->x.meta;
    meta->kind = BURN_IMMEDIATE;
    meta->dims[0] = burn_dtype_class(dtype) != BURN_CLASS_FLOAT ? (int64_t)number : 0;
    return v;
}

static burn_value *failed(eval_builder *e, int32_t code, const char *text)
{
    burn_meta meta = {0, BURN_TENSOR, BURN_DTYPE_NONE, 0, 0, {0}};
    eval_value *v = new_value(e, &meta);
    v->code = code;
    (void)snprintf(v->text, sizeof(v->text), "%s", text);
    return handle_of(v);
}

/* ---- one op ---------------------------------------------------------------------------------- */

static const burn_role *role_of(const burn_op_def *def, uint32_t i)
{
    return &def->roles[i < def->n_in ? i : def->n_in - 1u];
}

/* An immediate takes the dtype of the tensor it is tied to, else its role's only one. */
static uint8_t immediate_dtype(const burn_op_def *def, burn_value *const *in, uint32_t n_in,
                               uint32_t i)
{
    const burn_role *role = role_of(def, i);
    if (role->same_dtype_as != 0 && in[role->same_dtype_as - 1] != NULL &&
        eval_of(in[role->same_dtype_as - 1])->x.meta.kind == BURN_TENSOR) {
        return eval_of(in[role->same_dtype_as - 1])->x.meta.dtype;
    }
    for (uint32_t k = 0; k < n_in; k++) {
        if (role_of(def, k)->same_dtype_as == i + 1 && in[k] != NULL &&
            eval_of(in[k])->x.meta.kind == BURN_TENSOR) {
            return eval_of(in[k])->x.meta.dtype;
        }
    }
    uint64_t set = role->dtypes[0];
    if (set != 0 && (set & (set - 1)) == 0) {
        return (uint8_t)__builtin_ctzll(set);
    }
    return eval_of(in[i])->x.meta.dtype;
}

static burn_value *converted(eval_builder *e, const eval_value *v, uint8_t dtype)
{
    if (v->x.meta.dtype == dtype) {
        return (burn_value *)(uintptr_t)v;
    }
    return eval_scalar(e, dtype, burni_eval_get(&v->x, 0));
}

static void default_output(const burn_op_def *def, burn_value *const *in, uint32_t j,
                           burn_meta *out)
{
    uint32_t last = def->n_out - 1u;
    const burn_role *role = &def->roles[def->n_in + (j < last ? j : last)];
    memset(out, 0, sizeof(*out));
    out->kind = BURN_TENSOR;
    uint64_t set = role->dtypes[0];
    if (role->same_dtype_as != 0 && in[role->same_dtype_as - 1] != NULL) {
        out->dtype = eval_of(in[role->same_dtype_as - 1])->x.meta.dtype;
    } else if (set != 0 && (set & (set - 1)) == 0) {
        out->dtype = (uint8_t)__builtin_ctzll(set);
    }
}

static int32_t infer_pointwise(const burn_op_def *def, const burn_meta *const *in, uint32_t n_in,
                               burn_meta *out, burn_err *err)
{
    int32_t code = BURN_OK;
    for (uint32_t i = 0; i < n_in && code == BURN_OK; i++) {
        if (in[i]->kind == BURN_TENSOR) {
            code = burni_broadcast(def->name, out, in[i], out, err);
        }
    }
    return code;
}

uint32_t eval_outputs(const burn_op_def *def, const void *attrs)
{
    const burn_fused_program *p = attrs;
    int is_program = def->id == BURN_OP_FUSED && p != NULL && p->n_out > 0 && p->n_out <= 16;
    return is_program ? p->n_out : def->n_out;
}

static int32_t fail_all(eval_builder *e, uint32_t n_out, int32_t code, const char *text,
                        burn_value **out)
{
    for (uint32_t j = 0; j < n_out; j++) {
        out[j] = failed(e, code, text);
    }
    return code;
}

static const burn_eval_operand absent_operand;

/* What the core checks before it infers: each dtype against its role. */
static int32_t check_dtypes(const burn_op_def *def, const burn_meta *const *metas, uint32_t n_in,
                            burn_err *err)
{
    for (uint32_t i = 0; i < n_in; i++) {
        const burn_role *role = role_of(def, i);
        uint8_t dtype = metas[i]->dtype;
        if (metas[i]->kind == BURN_ABSENT) {
            continue;
        }
        uint32_t like = role->same_dtype_as;
        int tied = like == 0 || metas[like - 1]->kind == BURN_ABSENT ||
                   metas[like - 1]->dtype == dtype;
        int known = role->dtypes[0] == 0 || (role->dtypes[dtype / 64] >> (dtype % 64) & 1) != 0;
        if (!tied || !known) {
            return burni_fail(err, BURN_E_DTYPE, "%s: operand %s has dtype %s", def->name,
                              role->name, burn_dtype_name(dtype));
        }
    }
    return BURN_OK;
}

int32_t eval_run(eval_builder *e, const burn_op_def *def, const void *attrs, uint32_t attrs_size,
                 burn_value *const *in, uint32_t n_in, burn_value **out)
{
    burn_eval_operand operands[BURN_MAX_OPERANDS];
    burn_eval_operand results[BURN_MAX_OPERANDS];
    const burn_meta *metas[BURN_MAX_OPERANDS];
    burn_meta out_metas[BURN_MAX_OPERANDS];
    burn_err err = BURN_ERR_INIT;
    uint32_t n_out = eval_outputs(def, attrs);
    for (uint32_t i = 0; i < n_in; i++) {
        operands[i] = absent_operand;
        if (in[i] != NULL && eval_of(in[i])->code != BURN_OK) {
            return fail_all(e, n_out, eval_of(in[i])->code, eval_of(in[i])->text, out);
        }
        if (in[i] != NULL && eval_of(in[i])->x.meta.kind == BURN_IMMEDIATE) {
            uint8_t dtype = immediate_dtype(def, in, n_in, i);
            operands[i] = eval_of(converted(e, eval_of(in[i]), dtype))->x;
        } else if (in[i] != NULL) {
            operands[i] = eval_of(in[i])->x;
        }
        metas[i] = &operands[i].meta;
    }
    for (uint32_t j = 0; j < n_out; j++) {
        default_output(def, in, j, &out_metas[j]);
    }
    burn_infer a = {sizeof(a), n_in, n_out, attrs_size, metas, out_metas, attrs, &err};
    int32_t code = check_dtypes(def, metas, n_in, &err);
    if (code == BURN_OK) {
        code = def->infer != NULL ? def->infer(&a)
                                  : infer_pointwise(def, metas, n_in, out_metas, &err);
    }
    if (code != BURN_OK) {
        return fail_all(e, n_out, code, err.text, out);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        eval_value *v = new_value(e, &out_metas[j]);
        out[j] = handle_of(v);
        results[j] = v->x;
    }
    burn_eval b = {sizeof(b), n_in, n_out, attrs_size, operands, results, attrs, &err};
    code = def->eval(&b);
    if (code != BURN_OK) {
        return fail_all(e, n_out, code, err.text, out);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        round_value(eval_of(out[j]));
    }
    return BURN_OK;
}

int32_t eval_expand(eval_builder *e, const burn_op_def *def, const void *attrs,
                    uint32_t attrs_size, burn_value *const *in, uint32_t n_in, burn_value **out)
{
    burn_meta metas[BURN_MAX_OPERANDS];
    burn_builder b = eval_builder_of(e);
    for (uint32_t i = 0; i < n_in; i++) {
        metas[i] = in[i] != NULL ? eval_of(in[i])->x.meta : absent_operand.meta;
    }
    burn_expand a = {sizeof(a), n_in, eval_outputs(def, attrs), attrs_size, in, metas, out, attrs};
    return def->decompose(&b, &a);
}

/* ---- the builder ----------------------------------------------------------------------------- */

static int32_t emit(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                    burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    const burni_op *found = burni_op_find(op);
    if (found == NULL || n_out != found->def.n_out) {
        for (uint32_t j = 0; j < n_out; j++) {
            out[j] = failed(ctx, BURN_E_INTERNAL, "no such op, or another number of outputs");
        }
        return BURN_E_INTERNAL;
    }
    return eval_run(ctx, &found->def, attrs, attrs_size, in, n_in, out);
}

static void meta_of(void *ctx, const burn_value *value, burn_meta *out)
{
    (void)ctx;
    *out = eval_of(value)->x.meta;
}

static burn_value *immediate(void *ctx, uint8_t dtype, double number)
{
    return eval_scalar(ctx, dtype, number);
}

static burn_value *immediate_int(void *ctx, uint8_t dtype, int64_t number)
{
    return eval_scalar(ctx, dtype, (double)number);
}

static burn_value *constant(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                            const void *bytes)
{
    (void)dtype;
    (void)rank;
    (void)dims;
    (void)bytes;
    return failed(ctx, BURN_E_UNSUPPORTED, "this builder makes no constants");
}

static burn_value *fail(void *ctx, int32_t code, const char *text)
{
    return failed(ctx, code, text);
}

burn_builder eval_builder_of(eval_builder *e)
{
    burn_builder b;
    memset(&b, 0, sizeof(b));
    b.struct_size = sizeof(b);
    b.ctx = e;
    b.emit = emit;
    b.meta = meta_of;
    b.immediate = immediate;
    b.immediate_int = immediate_int;
    b.constant = constant;
    b.fail = fail;
    return b;
}
