/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * eval_runner.c - the runner "eval": a builder whose emit evaluates at once, on the host.
 *
 * It tries definitions by themselves: decompositions against eval, vjps against differences, errors
 * against their samples. No core, no device, no kernel takes part, so a fault that shows here is
 * one of a definition. Each op's result is rounded to its dtype, as a device would store it.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <burn_sdk/plugin.h>

/* What a burn_value is here. A failed value carries its cause. */
typedef struct eval_value {
    conf_value value;
    int32_t code;
    char text[232];
} eval_value;

static eval_value *as_value(burn_value *value)
{
    return (eval_value *)value;
}

static eval_value *new_value(conf_runner *runner)
{
    return (eval_value *)conf_alloc(&runner->arena, sizeof(eval_value));
}

static burn_value *failed(conf_runner *runner, int32_t code, const char *text)
{
    eval_value *value = new_value(runner);
    value->code = code;
    (void)snprintf(value->text, sizeof(value->text), "%s", text);
    value->value.meta.kind = BURN_TENSOR;
    return (burn_value *)value;
}

/* The first failed input, or NULL. */
static eval_value *first_failed(burn_value *const *in, uint32_t n_in)
{
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i] != NULL && as_value(in[i])->code != BURN_OK) {
            return as_value(in[i]);
        }
    }
    return NULL;
}

/* An immediate takes the dtype that its role is tied to, else the role's only one. */
static conf_value convert_immediate(conf_runner *runner, const burn_op_def *def,
                                    const conf_value *in, uint32_t n_in, uint32_t i)
{
    const burn_role *role = conf_role_in(def, i);
    uint8_t dtype = in[i].meta.dtype;
    uint32_t tie = role->same_dtype_as;
    if (tie != 0 && tie <= n_in && in[tie - 1].meta.kind == BURN_TENSOR) {
        dtype = in[tie - 1].meta.dtype;
    }
    for (uint32_t k = 0; k < n_in; k++) {
        const burn_role *other = conf_role_in(def, k);
        int tied = other->same_dtype_as == i + 1 || (tie != 0 && other->same_dtype_as == tie);
        if (tied && in[k].meta.kind == BURN_TENSOR) {
            dtype = in[k].meta.dtype;
        }
    }
    if ((role->dtypes[0] >> dtype & 1) == 0 &&
        (role->dtypes[0] & (role->dtypes[0] - 1)) == 0) {
        dtype = 0;
        while ((role->dtypes[0] >> dtype & 1) == 0) {
            dtype++;
        }
    }
    conf_value out = in[i];
    out.meta.dtype = dtype;
    conf_value_alloc(&runner->arena, &out);
    if (in[i].i != NULL && out.i != NULL) {
        out.i[0] = in[i].i[0];
    } else if (in[i].u != NULL && out.u != NULL) {
        out.u[0] = in[i].u[0];
    } else {
        conf_set(&out, 0, conf_get(&in[i], 0));
    }
    conf_tell_number(&out);
    return out;
}

static int32_t emit(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                    burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    conf_runner *runner = (conf_runner *)ctx;
    const burn_op_def *def = conf_find(op);
    const eval_value *bad = first_failed(in, n_in);
    burn_err err = BURN_ERR_INIT;
    conf_value values[CONF_MAX_IN];
    conf_value results[CONF_MAX_OUT];
    int32_t code = BURN_OK;
    if (bad != NULL) {
        code = burn_plugin_fail(&err, bad->code, "%s", bad->text);
    } else if (def == NULL || n_in > CONF_MAX_IN || n_out > CONF_MAX_OUT) {
        code = burn_plugin_fail(&err, BURN_E_NOT_FOUND, "op %llu with %u operands",
                                (unsigned long long)op, (unsigned)n_in);
    } else {
        memset(values, 0, sizeof(values));
        for (uint32_t i = 0; i < n_in; i++) {
            if (in[i] != NULL) {
                values[i] = as_value(in[i])->value;
            }
        }
        for (uint32_t i = 0; i < n_in; i++) {
            if (values[i].meta.kind == BURN_IMMEDIATE) {
                values[i] = convert_immediate(runner, def, values, n_in, i);
            }
        }
        code = conf_evaluate(&runner->arena, def, attrs, attrs_size, values, n_in, results, n_out,
                             &err);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        if (code != BURN_OK) {
            out[j] = failed(runner, code, err.text);
        } else {
            eval_value *value = new_value(runner);
            value->value = results[j];
            out[j] = (burn_value *)value;
        }
    }
    return code;
}

static void meta_of(void *ctx, const burn_value *value, burn_meta *out)
{
    (void)ctx;
    const eval_value *v = (const eval_value *)value;
    memset(out, 0, sizeof(*out));
    if (v != NULL && v->code == BURN_OK) {
        *out = v->value.meta;
    }
}

static eval_value *new_immediate(conf_runner *runner, uint8_t dtype)
{
    eval_value *value = new_value(runner);
    value->value.meta.kind = BURN_IMMEDIATE;
    value->value.meta.dtype = dtype;
    conf_value_alloc(&runner->arena, &value->value);
    return value;
}

static burn_value *immediate(void *ctx, uint8_t dtype, double number)
{
    eval_value *value = new_immediate((conf_runner *)ctx, dtype);
    conf_set(&value->value, 0, number);
    return (burn_value *)value;
}

static burn_value *immediate_int(void *ctx, uint8_t dtype, int64_t number)
{
    eval_value *value = new_immediate((conf_runner *)ctx, dtype);
    if (value->value.u != NULL) {
        value->value.u[0] = (uint64_t)number;
    } else if (value->value.i != NULL) {
        value->value.i[0] = number;
    } else {
        value->value.f[0] = (double)number;
    }
    conf_value_round(&value->value);
    return (burn_value *)value;
}

static burn_value *constant(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                            const void *bytes)
{
    conf_runner *runner = (conf_runner *)ctx;
    eval_value *value = new_value(runner);
    value->value.meta.kind = BURN_TENSOR;
    value->value.meta.dtype = dtype;
    value->value.meta.rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        value->value.meta.dims[i] = dims[i];
    }
    conf_value_alloc(&runner->arena, &value->value);
    conf_from_bytes(&value->value, (const unsigned char *)bytes);
    return (burn_value *)value;
}

static burn_value *fail(void *ctx, int32_t code, const char *text)
{
    conf_runner *runner = (conf_runner *)ctx;
    if (runner->said.code == BURN_OK) {
        (void)burn_plugin_fail(&runner->said, code, "%s", text != NULL ? text : "");
    }
    return failed(runner, code, text);
}

static burn_value *make(conf_runner *runner, const conf_value *value)
{
    eval_value *made = new_value(runner);
    made->value = *value;
    return (burn_value *)made;
}

static int32_t read_value(conf_runner *runner, burn_value *value, conf_arena *arena,
                          conf_value *out, burn_err *err)
{
    (void)runner;
    (void)arena;
    const eval_value *v = as_value(value);
    if (v == NULL) {
        return burn_plugin_fail(err, BURN_E_INTERNAL, "no value was set");
    }
    if (v->code != BURN_OK) {
        return burn_plugin_fail(err, v->code, "%s", v->text);
    }
    *out = v->value;
    return BURN_OK;
}

/* Strides over the elements of `small` for a walk over `large`; 0 when small does not broadcast. */
static int broadcast_strides(const burn_meta *small, const burn_meta *large, int64_t *along)
{
    int64_t strides[BURN_MAX_RANK];
    if (small->rank > large->rank) {
        return 0;
    }
    uint32_t shift = (uint32_t)(large->rank - small->rank);
    memset(along, 0, BURN_MAX_RANK * sizeof(*along));
    burn_dims_strides(small->rank, small->dims, strides);
    for (uint32_t d = 0; d < small->rank; d++) {
        if (small->dims[d] != 1 && small->dims[d] != large->dims[d + shift]) {
            return 0;
        }
        along[d + shift] = small->dims[d] == 1 ? 0 : strides[d];
    }
    return 1;
}

/* Sums a gradient over the dims that its input was broadcast along. */
static void sum_to(const conf_value *grad, const int64_t *along, conf_value *out)
{
    burn_loop loop;
    for (burn_loop_begin(&loop, grad->meta.rank, grad->meta.dims, 1, &along);
         burn_loop_more(&loop); burn_loop_next(&loop)) {
        out->f[loop.offset[0]] += grad->f[loop.position];
    }
    conf_value_round(out);
}

/* The reverse: a gradient that is smaller than its input stands for all it broadcasts to. */
static void spread_to(const conf_value *grad, const int64_t *along, conf_value *out)
{
    burn_loop loop;
    for (burn_loop_begin(&loop, out->meta.rank, out->meta.dims, 1, &along); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        out->f[loop.position] = grad->f[loop.offset[0]];
    }
}

/* A pointwise op's gradient in its input's shape; 0 when neither broadcasts to the other. */
static int fit_gradient(conf_arena *arena, const conf_value *raw, const burn_meta *meta,
                        conf_value *out)
{
    int64_t along[BURN_MAX_RANK];
    int is_larger = broadcast_strides(meta, &raw->meta, along);
    if (!is_larger && !broadcast_strides(&raw->meta, meta, along)) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    out->meta = *meta;
    out->meta.dtype = raw->meta.dtype;
    conf_value_alloc(arena, out);
    if (is_larger) {
        sum_to(raw, along, out);
    } else {
        spread_to(raw, along, out);
    }
    return 1;
}

static int32_t wrong_shape(const conf_case *c, uint32_t i, const burn_meta *got, burn_err *err)
{
    char a[100];
    char b[100];
    return burn_plugin_fail(err, BURN_E_SHAPE, "gradient of %s is %s, expected %s",
                            conf_role_in(c->def, i)->name, conf_meta_text(a, sizeof(a), got),
                            conf_meta_text(b, sizeof(b), &c->in[i].meta));
}

static int32_t read_gradient(conf_runner *runner, const conf_case *c, uint32_t i,
                             burn_value *value, conf_value *grad, burn_err *err)
{
    conf_value raw;
    int32_t code = read_value(runner, value, c->arena, &raw, err);
    if (code != BURN_OK) {
        return code;
    }
    if (raw.meta.dtype != c->in[i].meta.dtype) {
        return burn_plugin_fail(err, BURN_E_DTYPE, "gradient of %s is %s, the operand %s",
                                conf_role_in(c->def, i)->name, burn_element_name(raw.meta.dtype),
                                burn_element_name(c->in[i].meta.dtype));
    }
    if (conf_same_shape(&raw.meta, &c->in[i].meta)) {
        *grad = raw;
    } else if (c->def->fuse != BURN_FUSE_POINTWISE ||
               !fit_gradient(c->arena, &raw, &c->in[i].meta, grad)) {
        return wrong_shape(c, i, &raw.meta, err);
    }
    return BURN_OK;
}

/* What the wanted gradients save, as the definition says. */
static uint32_t saved_mask(const conf_case *c, const uint8_t *wanted)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        uint32_t role = i < c->def->n_in ? i : c->def->n_in - 1u;
        if (wanted[i] != 0 && c->def->vjp_saves != NULL) {
            mask |= c->def->vjp_saves[role];
        }
    }
    return mask;
}

static int32_t gradient(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                        const uint8_t *wanted, conf_value *grads, burn_err *err)
{
    burn_value *in[CONF_MAX_IN] = {NULL};
    burn_value *out[CONF_MAX_OUT] = {NULL};
    burn_value *grad_out[CONF_MAX_OUT] = {NULL};
    burn_value *grad_in[CONF_MAX_IN] = {NULL};
    burn_meta metas[CONF_MAX_IN];
    uint32_t saved = saved_mask(c, wanted);
    if (c->def->vjp == NULL) {
        return BURN_E_END;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        metas[i] = c->in[i].meta;
        int kept = (saved & BURN_SAVE_IN(i < c->def->n_in ? i : c->def->n_in - 1u)) != 0 ||
                   c->in[i].meta.kind == BURN_IMMEDIATE;
        in[i] = kept && metas[i].kind != BURN_ABSENT ? make(runner, &c->in[i]) : NULL;
    }
    for (uint32_t j = 0; j < c->n_out; j++) {
        out[j] = (saved & BURN_SAVE_OUT(j)) != 0 ? make(runner, &c->out[j]) : NULL;
        int flows = cotangents[j].meta.kind == BURN_TENSOR;
        grad_out[j] = flows ? make(runner, &cotangents[j]) : NULL;
    }
    burn_vjp a;
    BURN_INIT(&a, burn_vjp);
    a.n_in = c->n_in;
    a.n_out = c->n_out;
    a.attrs_size = c->sample.attrs_size;
    a.in = in;
    a.out = out;
    a.grad_out = grad_out;
    a.wanted = wanted;
    a.in_meta = metas;
    a.grad_in = grad_in;
    a.attrs = c->sample.attrs;
    int32_t code = c->def->vjp(&runner->builder, &a);
    if (code != BURN_OK) {
        return burn_plugin_fail(err, code, "vjp of %s returned %d (%s)", c->def->name, (int)code,
                                burn_status_name(code));
    }
    for (uint32_t i = 0; i < c->n_in && code == BURN_OK; i++) {
        if (wanted[i] != 0 && grad_in[i] != NULL) {
            code = read_gradient(runner, c, i, grad_in[i], &grads[i], err);
        }
    }
    return code;
}

static int32_t update(conf_runner *runner, const conf_case *c, uint32_t times, conf_value *out,
                      burn_err *err)
{
    (void)runner;
    (void)times; /* the definitions are called once */
    return conf_evaluate(c->arena, c->def, c->sample.attrs, c->sample.attrs_size, c->in, c->n_in,
                         out, c->n_out, err);
}

static uint32_t supports(conf_runner *runner, const burn_op_def *def, uint8_t dtype)
{
    (void)runner;
    (void)def;
    (void)dtype;
    return BURN_SUPPORT_NATIVE;
}

static void reset(conf_runner *runner)
{
    conf_arena_free(&runner->arena);
    runner->said = (burn_err)BURN_ERR_INIT;
}

int32_t conf_eval_runner(conf_runner *out, burn_err *err)
{
    (void)err;
    memset(out, 0, sizeof(*out));
    out->name = "eval";
    out->said = (burn_err)BURN_ERR_INIT;
    out->builder.struct_size = (uint32_t)sizeof(burn_builder);
    out->builder.ctx = out;
    out->builder.emit = emit;
    out->builder.meta = meta_of;
    out->builder.immediate = immediate;
    out->builder.immediate_int = immediate_int;
    out->builder.constant = constant;
    out->builder.fail = fail;
    out->make = make;
    out->read = read_value;
    out->gradient = gradient;
    out->update = update;
    out->supports = supports;
    out->reset = reset;
    return BURN_OK;
}
