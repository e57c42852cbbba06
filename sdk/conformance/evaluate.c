/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * evaluate.c - runs a definition by itself: roles, infer, eval. What every device is compared with.
 *
 * Operands are checked as the core would check them, so that samples that must fail can be tried
 * without a device. An extension's infer may answer anything: its answer is checked before memory
 * is made by it. Outputs are rounded to their dtype; differences of functions take the exact form,
 * which stays in double.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <burn_sdk/plugin.h>
#include <stdarg.h>

const burn_op_def *conf_find(uint64_t id)
{
    return burn_op_find_id(id);
}

const burn_op_def *conf_named(const char *name)
{
    static const burn_op_def unknown = {.name = "(unknown op)"};
    const burn_op_def *def = burn_op_find(name);
    return def != NULL ? def : &unknown;
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
        return burn_plugin_fail(err, BURN_E_INVALID, "%s: %s must be a tensor, not a scalar",
                                def->name, role->name);
    }
    if (in[i].meta.kind == BURN_TENSOR && (role->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0) {
        return burn_plugin_fail(err, BURN_E_INVALID, "%s: %s must be a scalar, not a tensor",
                                def->name, role->name);
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
                char text[220];
                (void)conf_meta_text(text, sizeof(text), &in[i].meta);
                return burn_plugin_fail(err, BURN_E_SHAPE,
                                        "%s: sizes %lld and %lld do not fit (%s)", def->name,
                                        (long long)*to, (long long)size, text);
            }
            *to = size != 1 ? size : *to;
        }
    }
    return BURN_OK;
}

/* More bytes than any sample or sweep makes; a shape beyond it is a wrong shape. */
#define MAX_BYTES (UINT64_C(1) << 34)

/* What infer answered for output j, with the role and what it answered, as a failure. */
static int32_t __attribute__((format(printf, 5, 6)))
wrong_answer(int32_t code, const burn_op_def *def, uint32_t j, burn_err *err, const char *format,
             ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return burn_plugin_fail(err, code, "infer of %s answered for %s: %s", def->name,
                            conf_role_out(def, j)->name, what);
}

static int32_t check_shape(const burn_op_def *def, const burn_meta *out, uint32_t j, burn_err *err)
{
    if (out->rank > BURN_MAX_RANK) {
        return wrong_answer(BURN_E_INTERNAL, def, j, err, "rank %u; the most is %d",
                            (unsigned)out->rank, BURN_MAX_RANK);
    }
    uint64_t count = 1;
    int is_empty = 0;
    for (uint32_t d = 0; d < out->rank; d++) {
        if (out->dims[d] < 0) {
            return wrong_answer(BURN_E_INTERNAL, def, j, err,
                                "dim %u of size %lld; sizes are 0 or more", (unsigned)d,
                                (long long)out->dims[d]);
        }
        is_empty |= out->dims[d] == 0;
    }
    for (uint32_t d = 0; d < out->rank && !is_empty; d++) {
        uint64_t size = (uint64_t)out->dims[d];
        if (size > MAX_BYTES / 8 / count) {
            char shape[220];
            return wrong_answer(BURN_E_LIMIT, def, j, err, "%s, which is too large for its inputs",
                                conf_meta_text(shape, sizeof(shape), out));
        }
        count *= size;
    }
    return BURN_OK;
}

/* The rules that the core holds an answer to; a wrong one must not reach memory or eval. */
static int32_t check_answer(const burn_op_def *def, const conf_value *in, uint32_t n_in,
                            const burn_meta *out, uint32_t j, burn_err *err)
{
    const burn_role *role = conf_role_out(def, j);
    if (out->kind == BURN_ABSENT && (role->flags & BURN_ROLE_OPTIONAL) != 0) {
        return BURN_OK;
    }
    if (out->kind != BURN_TENSOR) {
        return wrong_answer(BURN_E_INTERNAL, def, j, err, "kind %u; outputs are tensors",
                            (unsigned)out->kind);
    }
    if (out->dtype >= 128 || burn_element_size(out->dtype) == 0) {
        return wrong_answer(BURN_E_INTERNAL, def, j, err, "dtype %u, which is none",
                            (unsigned)out->dtype);
    }
    if (!has_dtype(role, out->dtype)) {
        return wrong_answer(BURN_E_INTERNAL, def, j, err, "dtype %s, which its role excludes",
                            burn_element_name(out->dtype));
    }
    uint32_t tie = role->same_dtype_as;
    if (tie != 0 && tie <= n_in && in[tie - 1].meta.kind != BURN_ABSENT &&
        in[tie - 1].meta.dtype != out->dtype) {
        return wrong_answer(BURN_E_INTERNAL, def, j, err, "dtype %s; it is tied to %s, which is %s",
                            burn_element_name(out->dtype), conf_role_in(def, tie - 1)->name,
                            burn_element_name(in[tie - 1].meta.dtype));
    }
    return check_shape(def, out, j, err);
}

/* The shape rule, on metas with a guard behind them. */
static int32_t ask(const burn_op_def *def, const burn_infer *a)
{
    burn_meta out[CONF_MAX_OUT + 4];
    burn_meta guard[4];
    burn_infer lent = *a;
    memset(guard, 0xa5, sizeof(guard));
    memcpy(out, a->out, a->n_out * sizeof(out[0]));
    memcpy(&out[a->n_out], guard, sizeof(guard));
    lent.out = out;
    int32_t code = def->infer(&lent);
    if (memcmp(&out[a->n_out], guard, sizeof(guard)) != 0) {
        return burn_plugin_fail(a->err, BURN_E_ABI,
                                "infer of %s wrote past the metas of its %u outputs", def->name,
                                (unsigned)a->n_out);
    }
    memcpy(a->out, out, a->n_out * sizeof(out[0]));
    return code;
}

int32_t conf_infer(const burn_op_def *def, const void *attrs, uint32_t attrs_size,
                   const conf_value *in, uint32_t n_in, burn_meta *out, uint32_t n_out,
                   burn_err *err)
{
    const burn_meta *metas[CONF_MAX_IN];
    for (uint32_t i = 0; i < n_in; i++) {
        metas[i] = &in[i].meta;
    }
    begin_outputs(def, in, n_in, out, n_out);
    int32_t code = BURN_OK;
    if (def->infer == NULL) {
        code = broadcast(def, in, n_in, &out[0], err);
    } else {
        burn_infer a;
        BURN_INIT(&a, burn_infer);
        a.n_in = n_in;
        a.n_out = n_out;
        a.attrs_size = attrs_size;
        a.in = metas;
        a.out = out;
        a.attrs = attrs;
        a.err = err;
        code = ask(def, &a);
    }
    for (uint32_t j = 0; j < n_out && code == BURN_OK; j++) {
        code = check_answer(def, in, n_in, &out[j], j, err);
    }
    return code;
}

int32_t conf_evaluate_exact(conf_arena *arena, const burn_op_def *def, const void *attrs,
                            uint32_t attrs_size, const conf_value *in, uint32_t n_in,
                            conf_value *out, uint32_t n_out, burn_err *err)
{
    burn_meta metas[CONF_MAX_OUT];
    int32_t code = check_operands(def, in, n_in, err);
    if (code == BURN_OK) {
        code = conf_infer(def, attrs, attrs_size, in, n_in, metas, n_out, err);
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
    code = def->eval(&a);
    for (uint32_t j = 0; j < n_out; j++) {
        uint32_t n = out[j].meta.kind != BURN_ABSENT ? conf_value_overrun(&out[j]) : 0;
        if (n > 0) {
            return burn_plugin_fail(err, BURN_E_ABI, "eval of %s wrote %u bytes past output %s",
                                    def->name, (unsigned)n, conf_role_out(def, j)->name);
        }
    }
    return code;
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
