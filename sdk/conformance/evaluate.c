/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * evaluate.c - runs a definition by itself: roles, infer, eval. What every device is compared with.
 *
 * Operands are checked as the core would check them, so that samples that must fail can be tried
 * without a device. Outputs are rounded to their dtype; differences of functions take the exact
 * form, which stays in double.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <burn_sdk/plugin.h>

const burn_op_def *conf_find(uint64_t id)
{
    return burn_op_find_id(id);
}

static int has_dtype(const burn_role *role, uint8_t dtype)
{
    return (role->dtypes[dtype / 64] >> (dtype % 64) & 1) != 0;
}

static int32_t check_operand(const burn_op_def *def, const conf_value *in, uint32_t n_in,
                             uint32_t i, burn_err *err)
{
    const burn_role *role = conf_role_in(def, i);
    uint8_t dtype = in[i].meta.dtype;
    if (in[i].meta.kind == BURN_ABSENT) {
        if ((role->flags & BURN_ROLE_OPTIONAL) != 0) {
            return BURN_OK;
        }
        return burn_plugin_fail(err, BURN_E_INVALID, "%s: %s is missing", def->name, role->name);
    }
    if (in[i].meta.kind == BURN_IMMEDIATE &&
        (role->flags & (BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE)) == 0) {
        return burn_plugin_fail(err, BURN_E_INVALID, "%s: %s must be a tensor", def->name,
                                role->name);
    }
    if (!has_dtype(role, dtype)) {
        return burn_plugin_fail(err, BURN_E_DTYPE, "%s: %s cannot be %s", def->name, role->name,
                                burn_element_name(dtype));
    }
    uint32_t tie = role->same_dtype_as;
    if (tie != 0 && tie <= n_in && in[tie - 1].meta.kind != BURN_ABSENT &&
        in[tie - 1].meta.dtype != dtype) {
        return burn_plugin_fail(err, BURN_E_DTYPE, "%s: %s is %s, %s is %s; cast one of them",
                                def->name, role->name, burn_element_name(dtype),
                                conf_role_in(def, tie - 1)->name,
                                burn_element_name(in[tie - 1].meta.dtype));
    }
    return BURN_OK;
}

static int32_t check_operands(const burn_op_def *def, const conf_value *in, uint32_t n_in,
                              burn_err *err)
{
    int variadic = def->n_in > 0 &&
                   (conf_role_in(def, def->n_in - 1u)->flags & BURN_ROLE_VARIADIC) != 0;
    if (n_in > def->n_in && !variadic) {
        return burn_plugin_fail(err, BURN_E_INVALID, "%s takes %u operands, not %u", def->name,
                                (unsigned)def->n_in, (unsigned)n_in);
    }
    for (uint32_t i = n_in; i < def->n_in; i++) {
        const burn_role *role = conf_role_in(def, i);
        if ((role->flags & BURN_ROLE_OPTIONAL) == 0) {
            return burn_plugin_fail(err, BURN_E_INVALID, "%s: %s is missing", def->name,
                                    role->name);
        }
    }
    for (uint32_t i = 0; i < n_in; i++) {
        int32_t code = check_operand(def, in, n_in, i, err);
        if (code != BURN_OK) {
            return code;
        }
    }
    return BURN_OK;
}

/* The only dtype of a role's set, or none. */
static uint8_t only_dtype(const burn_role *role)
{
    uint8_t found = BURN_DTYPE_NONE;
    for (uint32_t bit = 1; bit < 64; bit++) {
        if ((role->dtypes[0] >> bit & 1) != 0) {
            if (found != BURN_DTYPE_NONE) {
                return BURN_DTYPE_NONE;
            }
            found = (uint8_t)bit;
        }
    }
    return found;
}

static void begin_outputs(const burn_op_def *def, const conf_value *in, uint32_t n_in,
                          burn_meta *out, uint32_t n_out)
{
    for (uint32_t j = 0; j < n_out; j++) {
        const burn_role *role = conf_role_out(def, j);
        uint32_t tie = role->same_dtype_as;
        memset(&out[j], 0, sizeof(out[j]));
        out[j].kind = BURN_TENSOR;
        out[j].dtype = tie != 0 && tie <= n_in ? in[tie - 1].meta.dtype : only_dtype(role);
    }
}

/* NumPy broadcasting of all operands into out. */
static int32_t broadcast(const burn_op_def *def, const conf_value *in, uint32_t n_in,
                         burn_meta *out, burn_err *err)
{
    for (uint32_t i = 0; i < n_in; i++) {
        out->rank = in[i].meta.rank > out->rank ? in[i].meta.rank : out->rank;
    }
    for (uint32_t d = 0; d < out->rank; d++) {
        out->dims[d] = 1;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t shift = (uint32_t)(out->rank - in[i].meta.rank);
        for (uint32_t d = 0; d < in[i].meta.rank; d++) {
            int64_t size = in[i].meta.dims[d];
            int64_t *to = &out->dims[d + shift];
            if (size != 1 && *to != 1 && size != *to) {
                return burn_plugin_fail(err, BURN_E_SHAPE, "%s: sizes %lld and %lld do not fit",
                                        def->name, (long long)*to, (long long)size);
            }
            *to = size != 1 ? size : *to;
        }
    }
    return BURN_OK;
}

static int32_t infer(const burn_op_def *def, const void *attrs, uint32_t attrs_size,
                     const conf_value *in, uint32_t n_in, burn_meta *out, uint32_t n_out,
                     burn_err *err)
{
    const burn_meta *metas[CONF_MAX_IN];
    for (uint32_t i = 0; i < n_in; i++) {
        metas[i] = &in[i].meta;
    }
    begin_outputs(def, in, n_in, out, n_out);
    if (def->infer == NULL) {
        return broadcast(def, in, n_in, &out[0], err);
    }
    burn_infer a;
    BURN_INIT(&a, burn_infer);
    a.n_in = n_in;
    a.n_out = n_out;
    a.attrs_size = attrs_size;
    a.in = metas;
    a.out = out;
    a.attrs = attrs;
    a.err = err;
    return def->infer(&a);
}

int32_t conf_evaluate_exact(conf_arena *arena, const burn_op_def *def, const void *attrs,
                            uint32_t attrs_size, const conf_value *in, uint32_t n_in,
                            conf_value *out, uint32_t n_out, burn_err *err)
{
    burn_meta metas[CONF_MAX_OUT];
    int32_t code = check_operands(def, in, n_in, err);
    if (code == BURN_OK) {
        code = infer(def, attrs, attrs_size, in, n_in, metas, n_out, err);
    }
    if (code != BURN_OK) {
        return code;
    }
    for (uint32_t j = 0; j < n_out; j++) {
        memset(&out[j], 0, sizeof(out[j]));
        out[j].meta = metas[j];
        conf_value_alloc(arena, &out[j]);
    }
    if (def->eval == NULL) {
        return burn_plugin_fail(err, BURN_E_UNSUPPORTED, "%s has no eval", def->name);
    }
    burn_eval a;
    BURN_INIT(&a, burn_eval);
    a.n_in = n_in;
    a.n_out = n_out;
    a.attrs_size = attrs_size;
    a.in = in;
    a.out = out;
    a.attrs = attrs;
    a.err = err;
    return def->eval(&a);
}

int32_t conf_evaluate(conf_arena *arena, const burn_op_def *def, const void *attrs,
                      uint32_t attrs_size, const conf_value *in, uint32_t n_in, conf_value *out,
                      uint32_t n_out, burn_err *err)
{
    int32_t code = conf_evaluate_exact(arena, def, attrs, attrs_size, in, n_in, out, n_out, err);
    for (uint32_t j = 0; j < n_out && code == BURN_OK; j++) {
        conf_value_round(&out[j]);
    }
    return code;
}
