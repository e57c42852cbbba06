/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * origin.c - calls that were decomposed, as errors of their parts tell them. See origin.h.
 *
 * "embedding (table f32[3,2], index i64[3]): in its decomposition: gather: ...". Operands that find
 * no room are left out: what the part says is worth more than the last shape.
 */
#include "exec/origin.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>

/* Of 232 bytes of an error's text. */
#define MAX_CALL_TEXT 96

#define INSIDE "in its decomposition"

burni_origin *burni_origin_new(const burni_op *op, const burn_meta *in, uint32_t n_in)
{
    burni_origin *origin = burni_alloc(sizeof(*origin) + n_in * sizeof(in[0]));
    if (origin == NULL) {
        return NULL;
    }
    atomic_init(&origin->refs, 1);
    origin->op = op;
    origin->n_in = n_in;
    memcpy(origin->in, in, n_in * sizeof(in[0]));
    return origin;
}

void burni_origin_unref(burni_origin *origin)
{
    if (origin != NULL &&
        atomic_fetch_sub_explicit(&origin->refs, 1, memory_order_acq_rel) == 1) {
        burni_free(origin);
    }
}

/* "index i64[3]", "lr f64"; the length that it would need. */
static int operand_text(const burni_origin *origin, uint32_t i, char *out, size_t size)
{
    const burn_meta *meta = &origin->in[i];
    const char *name = burni_op_role_in(origin->op, i)->name;
    char dims[192] = "";
    if (meta->kind == BURN_TENSOR) {
        (void)burni_shape_text(dims, sizeof(dims), meta->rank, meta->dims);
    }
    return snprintf(out, size, "%s %s%s", name, burn_dtype_name(meta->dtype), dims);
}

static void call_text(const burni_origin *origin, char *out, size_t size)
{
    const size_t end = sizeof(", ...)"); /* with its zero */
    size_t used = (size_t)snprintf(out, size - end, "%s", origin->op->def.name);
    const char *separator = " (";
    if (used >= size - end) {
        return;
    }
    for (uint32_t i = 0; i < origin->n_in; i++) {
        char text[MAX_CALL_TEXT];
        if (origin->in[i].kind == BURN_ABSENT) {
            continue;
        }
        int n = operand_text(origin, i, text, sizeof(text));
        if (n < 0 || used + strlen(separator) + (size_t)n + end > size) {
            (void)snprintf(out + used, size - used, "%s...)", separator);
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", separator, text);
        separator = ", ";
    }
    if (separator[0] == ',') {
        (void)snprintf(out + used, size - used, ")");
    }
}

void burni_origin_tell(const burni_origin *origin, burn_err *err)
{
    if (origin == NULL || strstr(err->text, INSIDE) != NULL) {
        return;
    }
    char call[MAX_CALL_TEXT];
    call_text(origin, call, sizeof(call));
    burni_prefix(err, "%s: %s", call, INSIDE);
    err->op = origin->op->def.id;
}
