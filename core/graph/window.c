/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * window.c - reading a window: checks first, then plain access; and its printer.
 *
 * A window may come from a file or a socket: nothing is read before its offset was compared with
 * the real size, counts are multiplied in 64 bits, and no index is trusted.
 */
#include "graph/capture.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/printer.h"
#include "ops/rules.h"

#include <inttypes.h>
#include <string.h>

static const void *element(const burn_window *w, uint32_t offset, uint32_t stride, uint32_t i)
{
    return (const char *)w + offset + (uint64_t)i * stride;
}

const burn_window_value *burni_window_value(const burn_window *w, uint32_t i)
{
    return element(w, w->values_offset, w->value_stride, i);
}

const burn_window_node *burni_window_node(const burn_window *w, uint32_t i)
{
    return element(w, w->nodes_offset, w->node_stride, i);
}

const burn_window_use *burni_window_use(const burn_window *w, uint32_t i)
{
    return element(w, w->uses_offset, w->use_stride, i);
}

const burn_window_dim *burni_window_dim(const burn_window *w, uint32_t i)
{
    return element(w, w->dims_offset, w->dim_stride, i);
}

const char *burni_window_bytes(const burn_window *w, uint32_t offset)
{
    return (const char *)w + w->bytes_offset + offset;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int array_fits(const burn_window *w, uint32_t n, uint32_t stride, uint32_t offset,
                      size_t least)
{
    return stride >= least && stride % 8 == 0 && offset % 8 == 0 && offset >= sizeof(*w) &&
           (uint64_t)offset + (uint64_t)n * stride <= w->total_size;
}

static int32_t check_value(const burn_window *w, uint32_t i, burn_err *err)
{
    const burn_window_value *v = burni_window_value(w, i);
    if ((v->kind != BURN_TENSOR && v->kind != BURN_IMMEDIATE) || v->rank > BURN_MAX_RANK ||
        burn_dtype_size(v->dtype) == 0) {
        return burni_fail(err, BURN_E_FORMAT, "window: value %u has kind %u, dtype %u, rank %u", i,
                          v->kind, v->dtype, v->rank);
    }
    if ((uint64_t)v->first_dim + v->rank > w->n_dims ||
        (uint64_t)v->name_offset + v->name_size > w->bytes_size) {
        return burni_fail(err, BURN_E_FORMAT, "window: value %u points outside", i);
    }
    int64_t n = 1;
    for (uint32_t d = 0; d < v->rank; d++) {
        int64_t size = burni_window_dim(w, v->first_dim + d)->size;
        if (size < 0 || __builtin_mul_overflow(n, size, &n)) {
            return burni_fail(err, BURN_E_FORMAT, "window: value %u has a bad size", i);
        }
    }
    if ((v->flags & BURN_VALUE_CONST) != 0 &&
        (n > INT64_MAX / 16 ||
         (uint64_t)n * burn_dtype_size(v->dtype) != (uint64_t)v->name_size)) {
        return burni_fail(err, BURN_E_FORMAT, "window: constant %u has %u bytes", i, v->name_size);
    }
    return BURN_OK;
}

static int32_t check_node(const burn_window *w, uint32_t k, unsigned char *defined, burn_err *err)
{
    const burn_window_node *node = burni_window_node(w, k);
    const burni_op *op = burni_op_find(node->op);
    if (op == NULL) {
        return burni_fail(err, BURN_E_UNSUPPORTED,
                          "window: node %u is op %" PRIu64
                          ", which is not here; load its extension",
                          k, node->op);
    }
    if (node->n_in > BURN_MAX_OPERANDS || node->n_out > BURN_MAX_OPERANDS ||
        (uint64_t)node->first_use + node->n_in + node->n_out > w->n_uses ||
        (uint64_t)node->attrs_offset + node->attrs_size > w->bytes_size ||
        node->attrs_offset % 8 != 0 || !burni_op_may_give(op, node->n_out)) {
        return burni_fail(err, BURN_E_FORMAT, "window: node %u (%s) points outside", k,
                          op->def.name);
    }
    for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
        uint32_t value = burni_window_use(w, node->first_use + i)->value;
        int is_output = i >= node->n_in;
        if (value == BURN_USE_ABSENT && !is_output) {
            continue;
        }
        if (value >= w->n_values) {
            return burni_fail(err, BURN_E_FORMAT, "window: node %u uses value %u of %u", k, value,
                              w->n_values);
        }
        if (!is_output && !defined[value]) {
            return burni_fail(err, BURN_E_FORMAT, "window: node %u uses value %u before it is made",
                              k, value);
        }
        defined[value] = 1;
    }
    return BURN_OK;
}

static int32_t check_values(const burn_window *w, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < w->n_values && rc == BURN_OK; i++) {
        rc = check_value(w, i, err);
    }
    return rc;
}

#define MAX_WINDOW_VALUES 100000u

int32_t burni_window_check(const void *bytes, size_t size, burn_err *err)
{
    const burn_window *w = bytes;
    if (size < sizeof(*w) || (uintptr_t)bytes % 8 != 0 || w->magic != BURN_WINDOW_MAGIC) {
        return burni_fail(err, BURN_E_FORMAT, "window: these %zu bytes are no window", size);
    }
    if (w->version != BURN_WINDOW_VERSION || w->total_size != size) {
        return burni_fail(err, BURN_E_FORMAT,
                          "window: version %u of %" PRIu64 " bytes; expected version %u of %zu",
                          w->version, w->total_size, BURN_WINDOW_VERSION, size);
    }
    if (!array_fits(w, w->n_values, w->value_stride, w->values_offset, sizeof(burn_window_value)) ||
        !array_fits(w, w->n_nodes, w->node_stride, w->nodes_offset, sizeof(burn_window_node)) ||
        !array_fits(w, w->n_uses, w->use_stride, w->uses_offset, sizeof(burn_window_use)) ||
        !array_fits(w, w->n_dims, w->dim_stride, w->dims_offset, sizeof(burn_window_dim)) ||
        (uint64_t)w->bytes_offset + w->bytes_size > w->total_size || w->bytes_offset % 8 != 0) {
        return burni_fail(err, BURN_E_FORMAT, "window: an array lies outside of its %zu bytes",
                          size);
    }
    if (w->n_values > MAX_WINDOW_VALUES) {
        return burni_fail(err, BURN_E_LIMIT, "window: %u values, more than %u", w->n_values,
                          MAX_WINDOW_VALUES);
    }
    int32_t rc = check_values(w, err);
    unsigned char *defined = rc == BURN_OK ? burni_alloc(w->n_values) : NULL;
    if (rc == BURN_OK && defined == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "window: out of host memory");
    }
    for (uint32_t i = 0; rc == BURN_OK && i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        defined[i] = v->kind == BURN_IMMEDIATE ||
                     (v->flags & (BURN_VALUE_INPUT | BURN_VALUE_STATE | BURN_VALUE_CONST)) != 0;
    }
    for (uint32_t k = 0; k < w->n_nodes && rc == BURN_OK; k++) {
        rc = check_node(w, k, defined, err);
    }
    for (uint32_t i = 0; rc == BURN_OK && i < w->n_values; i++) {
        if ((burni_window_value(w, i)->flags & BURN_VALUE_OUTPUT) != 0 && !defined[i]) {
            rc = burni_fail(err, BURN_E_FORMAT, "window: output value %u is never made", i);
        }
    }
    burni_free(defined);
    if (rc == BURN_OK && burni_window_hash(w) != w->hash_absolute) {
        rc = burni_fail(err, BURN_E_FORMAT,
                        "window: its bytes do not give its hash; it was altered");
    }
    return rc;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_immediate(burni_printer *p, const burn_window_value *v)
{
    double d;
    memcpy(&d, &v->immediate[0], sizeof(d));
    if (v->dtype == BURN_F64) {
        burni_print(p, "%g", d);
    } else {
        burni_print(p, "%" PRId64, (int64_t)v->immediate[0]);
    }
}

static void print_use(burni_printer *p, const burn_window *w, uint32_t use)
{
    uint32_t index = burni_window_use(w, use)->value;
    if (index == BURN_USE_ABSENT) {
        burni_print(p, "-");
        return;
    }
    const burn_window_value *v = burni_window_value(w, index);
    const char *name = burni_window_bytes(w, v->name_offset);
    if (v->kind == BURN_IMMEDIATE) {
        print_immediate(p, v);
    } else if ((v->flags & BURN_VALUE_STATE) != 0) {
        burni_print(p, "@%.*s", (int)v->name_size, name);
    } else if ((v->flags & BURN_VALUE_INPUT) != 0) {
        burni_print(p, "%%%.*s", (int)v->name_size, name);
    } else {
        burni_print(p, "%s%u", (v->flags & BURN_VALUE_CONST) != 0 ? "c" : "v", index);
    }
}

static void print_type(burni_printer *p, const burn_window *w, uint32_t use)
{
    const burn_window_value *v = burni_window_value(w, burni_window_use(w, use)->value);
    burni_print(p, " %s[", burn_dtype_name(v->dtype));
    for (uint32_t d = 0; d < v->rank; d++) {
        burni_print(p, "%s%" PRId64, d > 0 ? "," : "", burni_window_dim(w, v->first_dim + d)->size);
    }
    burni_print(p, "]%s", (v->flags & BURN_VALUE_OUTPUT) != 0 ? " output" : "");
}

size_t burni_window_text(const burn_window *w, char *out, size_t size)
{
    burni_printer p = {out, size, 0};
    burni_print(&p, "%s", ""); /* a window without nodes is an empty text, not none */
    for (uint32_t k = 0; k < w->n_nodes; k++) {
        const burn_window_node *node = burni_window_node(w, k);
        const burni_op *op = burni_op_find(node->op);
        for (uint32_t j = 0; j < node->n_out; j++) {
            burni_print(&p, "%s", j > 0 ? ", " : "");
            print_use(&p, w, node->first_use + node->n_in + j);
        }
        burni_print(&p, " = %s(", op != NULL ? op->def.name : "?");
        for (uint32_t i = 0; i < node->n_in; i++) {
            burni_print(&p, "%s", i > 0 ? ", " : "");
            print_use(&p, w, node->first_use + i);
        }
        burni_print(&p, ")");
        for (uint32_t j = 0; j < node->n_out; j++) {
            print_type(&p, w, node->first_use + node->n_in + j);
        }
        burni_print(&p, "\n");
    }
    return p.used;
}
