/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * def_check.c - the rules of def_check.h, one function per part of a definition.
 *
 * Each reads the definition only and stops at the first broken rule. The numbers are those that
 * emit, tape and backward rely on: 16 bits per mask of saved operands, 8 dims, 64 operands.
 */
#include "ops/def_check.h"

#include "base/error.h"
#include "ops/ask.h"
#include "ops/rules.h"

#include <burn/call.h>
#include <burn/op_list.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME  63
#define MAX_SAVED 16

typedef struct check {
    const char *plugin; /* "core" for the core's */
    const char *owner;  /* NULL for the core's */
    const burn_op_def *def;
    burn_err *err;
} check;

static int32_t wrong(const check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int32_t wrong(const check *c, const char *format, ...)
{
    char rule[160];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(rule, sizeof(rule), format, args);
    va_end(args);
    return burni_fail(c->err, BURN_E_ABI, "%s: op %s: %s", c->plugin,
                      c->def->name != NULL && c->def->name[0] != '\0' ? c->def->name : "(unnamed)",
                      rule);
}

static const burn_role *role_at(const burn_op_def *d, uint32_t i)
{
    return (const burn_role *)(const void *)((const char *)d->roles + (size_t)i * d->role_stride);
}

static const burn_attr *attr_at(const burn_op_def *d, uint32_t i)
{
    return (const burn_attr *)(const void *)((const char *)d->attrs + (size_t)i * d->attr_stride);
}

static const burn_alias *alias_at(const burn_op_def *d, uint32_t i)
{
    return (const burn_alias *)(const void *)((const char *)d->aliases +
                                              (size_t)i * d->alias_stride);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int32_t check_name(const check *c)
{
    const char *name = c->def->name;
    size_t n = name != NULL ? strnlen(name, MAX_NAME + 1) : 0;
    if (n == 0 || n > MAX_NAME) {
        return wrong(c, "its name must have 1 to %d bytes", MAX_NAME);
    }
    for (size_t i = 0; i < n; i++) {
        char k = name[i];
        int fine = (k >= 'a' && k <= 'z') || (i > 0 && k >= '0' && k <= '9') ||
                   (i > 0 && (k == '_' || k == '.' || k == '-'));
        if (!fine) {
            return wrong(c, "its name must be [a-z][a-z0-9_.-]*");
        }
    }
    return BURN_OK;
}

/* Names of two plugins cannot meet, and a name says whom to ask about it. */
static int32_t check_prefix(const check *c)
{
    size_t n = strlen(c->plugin);
    if (strncmp(c->def->name, c->plugin, n) != 0 || c->def->name[n] != '.' ||
        c->def->name[n + 1] == '\0') {
        return wrong(c,
                     "its name must begin with its plugin's id and a dot, \"%s.\"; other names "
                     "are the core's or another plugin's",
                     c->plugin);
    }
    return BURN_OK;
}

static int32_t check_id(const check *c)
{
    uint64_t id = burn_op_id_from_name(c->def->name);
    if (c->def->id >> 63 == 0) {
        return wrong(c,
                     "id %llu is in the range of the core; it is to be "
                     "burn_op_id_from_name(its name)",
                     (unsigned long long)c->def->id);
    }
    if (c->def->id != id) {
        return wrong(c, "id 0x%llx is not burn_op_id_from_name(its name), 0x%llx",
                     (unsigned long long)c->def->id, (unsigned long long)id);
    }
    return BURN_OK;
}

static int32_t check_counts(const check *c)
{
    const burn_op_def *d = c->def;
    uint32_t n = (uint32_t)d->n_in + d->n_out;
    if (d->n_out == 0 || n > BURN_MAX_OPERANDS || d->n_in > MAX_SAVED || d->n_out > MAX_SAVED) {
        return wrong(c, "%u inputs and %u outputs: at least one output, at most %d of each",
                     d->n_in, d->n_out, MAX_SAVED);
    }
    if (d->roles == NULL || d->role_stride < sizeof(burn_role)) {
        return wrong(c, "no roles, or a stride of %u below the %zu bytes of one", d->role_stride,
                     sizeof(burn_role));
    }
    if (d->revision == 0) {
        return wrong(c, "revision 0; the first is 1");
    }
    const uint32_t known = BURN_OP_MINIMAL | BURN_OP_PRIMITIVE | BURN_OP_INTERNAL |
                           BURN_OP_LIGHT;
    if ((d->flags & ~known) != 0 || d->effect > BURN_EFFECT_HOST ||
        d->fuse > BURN_FUSE_LINES) {
        return wrong(c, "flags 0x%x, effect %u or fuse %u are not known", d->flags, d->effect,
                     d->fuse);
    }
    return BURN_OK;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static int32_t check_role(const check *c, uint32_t i)
{
    const burn_op_def *d = c->def;
    const burn_role *role = role_at(d, i);
    const uint32_t for_inputs = BURN_ROLE_STATE | BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE;
    const uint32_t known =
        for_inputs | BURN_ROLE_VARIADIC | BURN_ROLE_OPTIONAL | BURN_ROLE_NO_GRAD | BURN_ROLE_LINE;
    if (role->name == NULL || role->name[0] == '\0' || strnlen(role->name, 32) == 32) {
        return wrong(c, "role %u has no name of 1 to 31 bytes", i);
    }
    if ((role->flags & ~known) != 0) {
        return wrong(c, "role %s has the unknown flags 0x%x", role->name, role->flags & ~known);
    }
    if (role->same_dtype_as > d->n_in) {
        return wrong(c, "role %s has the dtype of operand %u; there are %u inputs", role->name,
                     role->same_dtype_as - 1u, d->n_in);
    }
    if (i >= d->n_in && (role->flags & for_inputs) != 0) {
        return wrong(c, "output %s is a state or a scalar", role->name);
    }
    if ((role->flags & BURN_ROLE_LINE) != 0 && (d->fuse != BURN_FUSE_LINES || i >= d->n_in)) {
        return wrong(c, "role %s is one line: inputs of ops that go over lines may be that",
                     role->name);
    }
    int variadic = (role->flags & BURN_ROLE_VARIADIC) != 0;
    if (variadic && i + 1u != d->n_in && i + 1u != (uint32_t)d->n_in + d->n_out) {
        return wrong(c, "role %s is variadic, but not the last input or output", role->name);
    }
    /* What a gradient saves is a bit per output. */
    if (variadic && i >= d->n_in && d->vjp != NULL) {
        return wrong(c, "output %s is variadic; such an op has a decomposition and no vjp",
                     role->name);
    }
    int scalar = (role->flags & (BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE)) != 0;
    if ((role->flags & BURN_ROLE_STATE) != 0 && (scalar || d->effect != BURN_EFFECT_STATE)) {
        return wrong(c, "role %s is a state: the op's effect must be STATE, and it is no scalar",
                     role->name);
    }
    return BURN_OK;
}

static int32_t check_roles(const check *c)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; rc == BURN_OK && i < (uint32_t)c->def->n_in + c->def->n_out; i++) {
        rc = check_role(c, i);
    }
    return rc;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const uint16_t attr_sizes[] = {
    [BURN_ATTR_I64] = 8,   [BURN_ATTR_U32] = 4,  [BURN_ATTR_F64] = 8,
    [BURN_ATTR_DTYPE] = 4, [BURN_ATTR_BOOL] = 4, [BURN_ATTR_I64_LIST] = 8 * BURN_MAX_RANK,
};

/* Lists of one length may share the field that holds it. */
static int has_length(const burn_op_def *d)
{
    for (uint32_t i = 0; i < d->n_attrs; i++) {
        const burn_attr *a = attr_at(d, i);
        if (a->name != NULL && strncmp(a->name, "n_", 2) == 0 && a->type == BURN_ATTR_U32) {
            return 1;
        }
    }
    return 0;
}

static int32_t check_attr(const check *c, uint32_t i)
{
    const burn_op_def *d = c->def;
    const burn_attr *a = attr_at(d, i);
    if (a->name == NULL || a->name[0] == '\0') {
        return wrong(c, "attribute %u has no name", i);
    }
    if (a->type < BURN_ATTR_I64 || a->type > BURN_ATTR_BOOL || a->size != attr_sizes[a->type]) {
        return wrong(c, "attribute %s has type %u and %u bytes, which do not fit", a->name, a->type,
                     a->size);
    }
    uint32_t align = a->size < 8 ? a->size : 8;
    if (a->offset < sizeof(burn_attrs_head) || a->offset % align != 0 ||
        (uint32_t)a->offset + a->size > d->attrs_size) {
        return wrong(c,
                     "attribute %s lies at %u to %u; the struct has %u bytes, %zu of them the "
                     "head",
                     a->name, a->offset, (uint32_t)a->offset + a->size, d->attrs_size,
                     sizeof(burn_attrs_head));
    }
    for (uint32_t k = 0; k < i; k++) {
        const burn_attr *other = attr_at(d, k);
        if (a->offset < other->offset + other->size && other->offset < a->offset + a->size) {
            return wrong(c, "attributes %s and %s overlap", other->name, a->name);
        }
    }
    if (a->type == BURN_ATTR_I64_LIST && !has_length(d)) {
        return wrong(c, "the list %s has no length (an n_... beside it)", a->name);
    }
    return BURN_OK;
}

static int32_t check_attrs(const check *c)
{
    const burn_op_def *d = c->def;
    if (d->attrs_size > BURN_MAX_ATTRS ||
        (d->attrs_size > 0 && d->attrs_size < sizeof(burn_attrs_head))) {
        return wrong(c, "%u bytes of attributes; 0, or %zu to %d, are possible", d->attrs_size,
                     sizeof(burn_attrs_head), BURN_MAX_ATTRS);
    }
    if (d->n_attrs > 0 && (d->attrs == NULL || d->attr_stride < sizeof(burn_attr))) {
        return wrong(c, "no attributes, or a stride of %u below the %zu bytes of one",
                     d->attr_stride, sizeof(burn_attr));
    }
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; rc == BURN_OK && i < d->n_attrs; i++) {
        rc = check_attr(c, i);
    }
    return rc;
}

/* ---- aliases --------------------------------------------------------------------------------- */

static int32_t check_alias(const check *c, uint32_t i)
{
    const burn_op_def *d = c->def;
    const burn_alias *a = alias_at(d, i);
    if (a->in >= d->n_in || a->out >= d->n_out ||
        (a->kind != BURN_ALIAS_MAY && a->kind != BURN_ALIAS_MUST)) {
        return wrong(c, "alias %u is {%u, %u, %u}; there are %u inputs and %u outputs", i, a->in,
                     a->out, a->kind, d->n_in, d->n_out);
    }
    const burn_role *in = role_at(d, a->in);
    const burn_role *out = role_at(d, d->n_in + (uint32_t)a->out);
    if (a->kind == BURN_ALIAS_MUST &&
        ((in->flags & BURN_ROLE_STATE) == 0 ||
         (out->same_dtype_as != a->in + 1u &&
          (in->same_dtype_as == 0 || out->same_dtype_as != in->same_dtype_as)))) {
        return wrong(c,
                     "output %s must share the storage of %s, which must be a state, with the "
                     "same dtype",
                     out->name, in->name);
    }
    for (uint32_t k = 0; k < i; k++) {
        if (alias_at(d, k)->in == a->in || alias_at(d, k)->out == a->out) {
            return wrong(c, "alias %u speaks of an operand that alias %u has", i, k);
        }
    }
    return BURN_OK;
}

static int32_t check_aliases(const check *c)
{
    const burn_op_def *d = c->def;
    if (d->n_aliases > 0 && (d->aliases == NULL || d->alias_stride < sizeof(burn_alias))) {
        return wrong(c, "no aliases, or a stride of %u below the %zu bytes of one", d->alias_stride,
                     sizeof(burn_alias));
    }
    int32_t rc = BURN_OK;
    uint32_t must = 0;
    for (uint32_t i = 0; rc == BURN_OK && i < d->n_aliases; i++) {
        rc = check_alias(c, i);
        must |=
            rc == BURN_OK && alias_at(d, i)->kind == BURN_ALIAS_MUST ? 1u << alias_at(d, i)->in : 0;
    }
    for (uint32_t i = 0; rc == BURN_OK && i < d->n_in; i++) {
        if ((role_at(d, i)->flags & BURN_ROLE_STATE) != 0 && (must >> i & 1) == 0) {
            rc = wrong(c, "state %s has no output that is its new value (a MUST alias)",
                       role_at(d, i)->name);
        }
    }
    return rc;
}

/* ---- functions ------------------------------------------------------------------------------- */

static int32_t check_functions(const check *c)
{
    const burn_op_def *d = c->def;
    if (d->eval == NULL || d->samples == NULL) {
        return wrong(c, "eval and samples are required");
    }
    if (d->fuse == BURN_FUSE_POINTWISE && d->n_out != 1) {
        return wrong(c, "it is pointwise and has %u outputs; 1 is possible", d->n_out);
    }
    if (d->fuse == BURN_FUSE_GENERATE && (d->n_out != 1 || d->effect > BURN_EFFECT_RANDOM)) {
        return wrong(c, "it generates elements by their place and has %u outputs and effect %u; 1, "
                        "and pure or random, are possible",
                     d->n_out, d->effect);
    }
    if (d->fuse == BURN_FUSE_LINES && !burni_goes_over_lines(d)) {
        return wrong(c, "it goes over lines: one output, pure, and one attribute `axis` (I64) or "
                        "`n_axes` (U32) that says what a line is");
    }
    if (d->infer == NULL && d->fuse != BURN_FUSE_POINTWISE) {
        return wrong(c, "infer is required unless the op is pointwise");
    }
    if (d->vjp == NULL && d->decompose == NULL && d->no_vjp == NULL) {
        return wrong(c, "neither vjp nor decompose, and no reason for it (no_vjp)");
    }
    return BURN_OK;
}

/* A view is of input 0; what else it takes are whole numbers. */
static int32_t check_view(const check *c)
{
    const burn_op_def *d = c->def;
    if ((d->fuse == BURN_FUSE_VIEW) != (d->view != NULL)) {
        return wrong(c, "fuse %u and %s view function; BURN_FUSE_VIEW and view go together",
                     d->fuse, d->view != NULL ? "a" : "no");
    }
    if (d->view == NULL) {
        return BURN_OK;
    }
    const uint32_t not_first = BURN_ROLE_OPTIONAL | BURN_ROLE_VARIADIC | BURN_ROLE_STATE |
                               BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE;
    if (d->n_in == 0 || d->n_in > 1 + BURN_MAX_RANK || d->n_out != 1 ||
        (role_at(d, 0)->flags & not_first) != 0 || role_at(d, d->n_in)->same_dtype_as != 1) {
        return wrong(c,
                     "a view takes a tensor and up to %d numbers, and gives one output of the "
                     "tensor's dtype",
                     BURN_MAX_RANK);
    }
    for (uint32_t i = 1; i < d->n_in; i++) {
        const burn_role *role = role_at(d, i);
        if ((role->flags & BURN_ROLE_ONLY_IMMEDIATE) == 0 || role->dtypes[0] == 0 ||
            (role->dtypes[0] & ~(uint64_t)BURN_SET_INT) != 0) {
            return wrong(c, "%s of a view must be a whole number (ONLY_IMMEDIATE)", role->name);
        }
        if ((role->flags & (BURN_ROLE_OPTIONAL | BURN_ROLE_VARIADIC)) != 0) {
            return wrong(c, "%s of a view is OPTIONAL or VARIADIC; a view needs all its numbers",
                         role->name);
        }
    }
    return BURN_OK;
}

static int32_t check_saves(const check *c)
{
    const burn_op_def *d = c->def;
    if (d->vjp == NULL || d->n_in == 0) {
        return BURN_OK;
    }
    if (d->vjp_saves == NULL) {
        return wrong(c, "it has vjp, but does not say what that needs (vjp_saves)");
    }
    int variadic = (role_at(d, d->n_in - 1u)->flags & BURN_ROLE_VARIADIC) != 0;
    uint32_t in = variadic ? 0xffffu : (1u << d->n_in) - 1u;
    uint32_t out = (1u << d->n_out) - 1u;
    for (uint32_t i = 0; i < d->n_in; i++) {
        uint32_t more = d->vjp_saves[i] & ~(in | out << 16);
        if (more != 0) {
            return wrong(c, "vjp_saves of %s has bits 0x%x beyond its %u inputs and %u outputs",
                         role_at(d, i)->name, more, d->n_in, d->n_out);
        }
    }
    return BURN_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int32_t check_sample(const check *c, uint32_t i, const burn_sample *s)
{
    uint32_t most = (uint32_t)(sizeof(s->in) / sizeof(s->in[0]));
    if (s->n_in > most || s->attrs_size > BURN_MAX_ATTRS) {
        return wrong(c,
                     "sample %u has %u operands and %u bytes of attributes; %u and %d are the "
                     "most",
                     i, s->n_in, s->attrs_size, most, BURN_MAX_ATTRS);
    }
    for (uint32_t k = 0; k < s->n_in; k++) {
        const burn_sample_operand *o = &s->in[k];
        if (o->kind > BURN_IMMEDIATE || o->rank > BURN_MAX_RANK || o->fill > BURN_FILL_NONZERO ||
            (o->n_values > 0 && o->values == NULL)) {
            return wrong(c,
                         "sample %u, operand %u: kind %u, rank %u, fill %u or its values are "
                         "not possible",
                         i, k, o->kind, o->rank, o->fill);
        }
        for (uint32_t d = 0; d < o->rank; d++) {
            if (o->dims[d] < 0) {
                return wrong(c, "sample %u, operand %u: dim %u is %lld", i, k, d,
                             (long long)o->dims[d]);
            }
        }
    }
    return BURN_OK;
}

static int32_t check_samples(const check *c)
{
    burn_sample s;
    for (uint32_t i = 0; i < BURNI_MAX_SAMPLES; i++) {
        int32_t rc = burni_ask_sample(c->owner, c->def, i, &s, c->err);
        if (rc == BURN_E_ABI) {
            return rc;
        }
        if (rc != BURN_OK) {
            return i > 0 ? BURN_OK : wrong(c, "it has no sample");
        }
        rc = check_sample(c, i, &s);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return wrong(c, "its samples do not end: %d are the most", BURNI_MAX_SAMPLES);
}

static int32_t (*const rules[])(const check *c) = {
    check_counts,    check_roles, check_attrs, check_aliases,
    check_functions, check_view,  check_saves, check_samples,
};

int32_t burni_def_check(const char *plugin, const burn_op_def *def, burn_err *err)
{
    const check c = {plugin != NULL ? plugin : "core", plugin, def, err};
    int32_t rc = check_name(&c);
    if (rc == BURN_OK && plugin != NULL) {
        rc = check_prefix(&c);
    }
    for (size_t i = 0; rc == BURN_OK && i < sizeof(rules) / sizeof(rules[0]); i++) {
        rc = rules[i](&c);
    }
    return rc == BURN_OK && plugin != NULL ? check_id(&c) : rc;
}
