/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * trust.c - see trust.h. The same checks for core ops and others: they cost a few comparisons.
 */
#include "exec/trust.h"

#include "base/error.h"
#include "ops/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* "acme: op acme.square: its shape rule ...", without the plugin for the core's. */
static int32_t broken(const burni_op *op, burn_err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int32_t broken(const burni_op *op, burn_err *err, const char *format, ...)
{
    char rule[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(rule, sizeof(rule), format, args);
    va_end(args);
    if (op->plugin != NULL) {
        return burni_fail(err, BURN_E_INTERNAL, "%s: op %s: %s", op->plugin, op->def.name, rule);
    }
    return burni_fail(err, BURN_E_INTERNAL, "%s: %s", op->def.name, rule);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int32_t check_size(const burni_emission *e, uint32_t j, burn_err *err)
{
    const burn_meta *out = &e->out_meta[j];
    uint32_t size = burn_dtype_size(out->dtype);
    int64_t n = burni_numel(out->rank, out->dims);
    if (n < 0 || n > INT64_MAX / (int64_t)size / 2) {
        char shape[192];
        return burni_fail(err, BURN_E_LIMIT, "%s: an output of shape %s is too large",
                          e->op->def.name,
                          burni_shape_text(shape, sizeof(shape), out->rank, out->dims));
    }
    if ((uint64_t)n > e->device->core->limits.max_elements) {
        return burni_fail(err, BURN_E_LIMIT, "%s: %lld elements are more than %s indexes",
                          e->op->def.name, (long long)n, e->device->core->name);
    }
    return BURN_OK;
}

/* An output that is tied to an operand has that operand's dtype: kernels and views build on it. */
static int32_t check_tied(const burni_emission *e, uint32_t j, burn_err *err)
{
    const burn_role *role = burni_op_role_out(e->op, j);
    uint32_t like = role->same_dtype_as;
    if (like == 0 || like > e->n_in || e->meta[like - 1].kind == BURN_ABSENT ||
        e->meta[like - 1].dtype == e->out_meta[j].dtype) {
        return BURN_OK;
    }
    return broken(e->op, err,
                  "its shape rule gave output %s dtype %s, which is tied to %s and must be %s",
                  role->name, burn_dtype_name(e->out_meta[j].dtype),
                  burni_op_role_in(e->op, like - 1)->name,
                  burn_dtype_name(e->meta[like - 1].dtype));
}

static int32_t check_output(const burni_emission *e, uint32_t j, burn_err *err)
{
    const burn_meta *out = &e->out_meta[j];
    const burn_role *role = burni_op_role_out(e->op, j);
    if (burn_dtype_size(out->dtype) == 0) {
        return broken(e->op, err, "its shape rule gave output %s no dtype (%u)", role->name,
                      out->dtype);
    }
    if (role->dtypes[0] != 0 && (role->dtypes[out->dtype / 64] >> (out->dtype % 64) & 1) == 0) {
        return broken(e->op, err, "its shape rule gave output %s dtype %s, which its role excludes",
                      role->name, burn_dtype_name(out->dtype));
    }
    if (out->rank > BURN_MAX_RANK || out->kind != BURN_TENSOR) {
        return broken(e->op, err,
                      "its shape rule gave output %s rank %u and kind %u; %d is the "
                      "highest rank",
                      role->name, out->rank, out->kind, BURN_MAX_RANK);
    }
    for (uint32_t d = 0; d < out->rank; d++) {
        if (out->dims[d] < 0) {
            return broken(e->op, err, "its shape rule gave output %s dim %u of size %lld",
                          role->name, d, (long long)out->dims[d]);
        }
    }
    int32_t rc = check_tied(e, j, err);
    return rc == BURN_OK ? check_size(e, j, err) : rc;
}

/* A pointwise op's output has the shape that its inputs broadcast to: kernels step by it. */
static int32_t check_pointwise(const burni_emission *e, burn_err *err)
{
    const burn_meta *out = &e->out_meta[0];
    burn_meta shape = {.kind = BURN_TENSOR};
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind == BURN_TENSOR) {
            int32_t rc = burni_broadcast(e->op->def.name, &shape, &e->meta[i], &shape, err);
            if (rc != BURN_OK) {
                return rc;
            }
        }
    }
    if (shape.rank != out->rank ||
        memcmp(shape.dims, out->dims, shape.rank * sizeof(shape.dims[0])) != 0) {
        char given[96];
        char wanted[96];
        return broken(e->op, err,
                      "it is pointwise, its shape rule gave %s where its inputs make %s",
                      burni_shape_text(given, sizeof(given), out->rank, out->dims),
                      burni_shape_text(wanted, sizeof(wanted), shape.rank, shape.dims));
    }
    return BURN_OK;
}

/* An output that takes a variable's storage fits into it exactly. */
static int32_t check_state(const burni_emission *e, burn_err *err)
{
    for (uint32_t a = 0; a < e->op->def.n_aliases; a++) {
        const burn_alias *alias = &e->op->def.aliases[a];
        const burn_meta *in = &e->meta[alias->in];
        const burn_meta *out = &e->out_meta[alias->out];
        if (alias->kind != BURN_ALIAS_MUST || in->kind != BURN_TENSOR) {
            continue;
        }
        if (in->dtype != out->dtype || in->rank != out->rank ||
            memcmp(in->dims, out->dims, in->rank * sizeof(in->dims[0])) != 0) {
            return broken(e->op, err,
                          "its shape rule gave output %s another shape or dtype than "
                          "its variable %s has",
                          burni_op_role_out(e->op, alias->out)->name,
                          burni_op_role_in(e->op, alias->in)->name);
        }
    }
    return BURN_OK;
}

int32_t burni_trust_infer(const burni_emission *e, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t j = 0; rc == BURN_OK && j < e->n_out; j++) {
        rc = check_output(e, j, err);
    }
    if (rc == BURN_OK && e->op->pointwise && e->op->def.infer != NULL) {
        rc = check_pointwise(e, err);
    }
    return rc == BURN_OK && e->op->def.n_aliases > 0 ? check_state(e, err) : rc;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* First and last element that an output reaches; 0 when that overflows. */
static int reach(const burn_meta *out, const int64_t *strides, int64_t *first, int64_t *last)
{
    for (uint32_t d = 0; d < out->rank; d++) {
        int64_t step = 0;
        int64_t *end = strides[d] < 0 ? first : last;
        if (__builtin_mul_overflow(out->dims[d] - 1, strides[d], &step) ||
            __builtin_add_overflow(*end, step, end)) {
            return 0;
        }
    }
    return 1;
}

int32_t burni_trust_view(const burni_emission *e, const burni_storage *storage,
                         const int64_t *strides, int64_t offset, burn_err *err)
{
    const burn_meta *out = &e->out_meta[0];
    /* The view's elements are those of its operand. */
    int64_t elements = (int64_t)(storage->bytes / burn_dtype_size(e->meta[0].dtype));
    int64_t first = offset;
    int64_t last = offset;
    int empty = burni_numel(out->rank, out->dims) == 0;
    int inside = empty ? offset >= 0 && offset <= elements
                       : reach(out, strides, &first, &last) && first >= 0 && last < elements;
    if (!inside) {
        return broken(e->op, err,
                      "its view rule reaches from element %lld to %lld of a storage of "
                      "%lld",
                      (long long)first, (long long)last, (long long)elements);
    }
    return BURN_OK;
}

/* ---- decompositions -------------------------------------------------------------------------- */

int32_t burni_trust_expand(const burni_emission *e, burn_err *err)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        const burn_tensor *t = e->out[j];
        const burn_meta *out = &e->out_meta[j];
        if (t->kind == BURN_TENSOR && t->dtype == out->dtype && t->rank == out->rank &&
            memcmp(t->dims, out->dims, t->rank * sizeof(t->dims[0])) == 0) {
            continue;
        }
        char made[96];
        char wanted[96];
        return broken(
            e->op, err,
            "its decomposition made output %s %s %s, its shape rule says %s "
            "%s",
            burni_op_role_out(e->op, j)->name, burn_dtype_name(t->dtype),
            burni_shape_text(made, sizeof(made), t->kind == BURN_TENSOR ? t->rank : 0, t->dims),
            burn_dtype_name(out->dtype),
            burni_shape_text(wanted, sizeof(wanted), out->rank, out->dims));
    }
    return BURN_OK;
}
