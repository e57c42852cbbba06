/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * attention.c - rows of attention and attention_grad.
 *
 * Owns how a call becomes a flex_attention: q, k, v and g are read with their strides (f16 and bf16
 * are widened to f32 in the workspace, results narrowed), the mask is broadcast by strides. The
 * causal mask is aligned at the bottom right. To add a kernel: a row whose launch fills the same
 * description.
 */
#include "attention.h"

#include "nn.h"
#include "rows.h"

#include <math.h>
#include <string.h>

enum { MAX_ARRAYS = 8 };

/* The arrays of a call, in the order in which the workspace holds widened copies. */
typedef struct arrays {
    uint32_t n;
    uint32_t n_read;
    const burn_operand *operand[MAX_ARRAYS];
    flex_heads *heads[MAX_ARRAYS];
} arrays;

double flex_attention_masked(const flex_attention *a, int64_t item, int64_t i, int64_t j,
                             double score)
{
    const int64_t *s = a->mask_strides;
    int64_t at = item / a->h * s[0] + item % a->h * s[1] + i * s[2] + j * s[3];
    if (a->mask->dtype == BURN_BOOL) {
        return ((const uint8_t *)a->mask->data)[at] != 0 ? score : -(double)INFINITY;
    }
    return score + flex_load_f64(a->mask->data, at, a->mask->dtype);
}

static int heads_finite(const flex_heads *x, int64_t at, int64_t rows, int64_t columns,
                        const flex_lines *table)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = at + r * x->strides[2];
        if (x->strides[3] == 1) {
            const char *line = (const char *)x->data + first * (int64_t)flex_size(table->dtype);
            if (!isfinite(table->sum(line, columns))) {
                return 0;
            }
            continue;
        }
        for (int64_t c = 0; c < columns; c++) {
            if (!isfinite(flex_load_f64(x->data, first + c * x->strides[3], table->dtype))) {
                return 0;
            }
        }
    }
    return 1;
}

int flex_attention_finite(const flex_attention *a, const flex_lines *table, int64_t item,
                          int gradient)
{
    const flex_heads *x[4] = {&a->v, &a->q, &a->k, &a->g};
    const int64_t rows[4] = {a->t, a->s, a->t, a->s};
    const int64_t columns[4] = {a->e, a->d, a->d, a->e};
    if (gradient && !isfinite(a->scale)) {
        return 0;
    }
    for (int i = 0; i < (gradient ? 4 : 1); i++) {
        int64_t at = item / a->h * x[i]->strides[0] + item % a->h * x[i]->strides[1];
        if (!heads_finite(x[i], at, rows[i], columns[i], table)) {
            return 0;
        }
    }
    return 1;
}

static void read_mask(const burn_call *call, flex_attention *a)
{
    const burn_operand *mask = flex_in(call, 3);
    if (flex_absent(mask)) {
        return;
    }
    a->mask = mask;
    for (uint32_t i = 0; i < mask->rank; i++) {
        uint32_t axis = 4u - mask->rank + i;
        a->mask_strides[axis] = mask->dims[i] == 1 ? 0 : mask->strides[i];
    }
}

static void add_array(arrays *list, const burn_operand *x, flex_heads *heads)
{
    list->operand[list->n] = x;
    list->heads[list->n] = heads;
    list->n++;
    heads->data = x->data;
    for (uint32_t i = 0; i < 4; i++) {
        heads->strides[i] = x->strides[i];
    }
}

static void make_attention(const burn_call *call, int gradient, flex_attention *a, arrays *list)
{
    const burn_attrs_attention *attrs = call->attrs;
    const burn_operand *q = flex_in(call, 0);
    const burn_operand *v = flex_in(call, 2);
    memset(a, 0, sizeof(*a));
    memset(list, 0, sizeof(*list));
    a->b = q->dims[0];
    a->h = q->dims[1];
    a->s = q->dims[2];
    a->d = q->dims[3];
    a->t = v->dims[2];
    a->e = v->dims[3];
    double by_size = a->d > 0 ? 1.0 / sqrt((double)a->d) : 1.0;
    a->scale = attrs->scale != 0.0 ? attrs->scale : by_size;
    a->causal = attrs->causal != 0;
    read_mask(call, a);
    add_array(list, q, &a->q);
    add_array(list, flex_in(call, 1), &a->k);
    add_array(list, v, &a->v);
    if (!gradient) {
        list->n_read = list->n;
        add_array(list, flex_out(call, 0), &a->y);
        return;
    }
    add_array(list, flex_in(call, 4), &a->g);
    list->n_read = list->n;
    add_array(list, flex_out(call, 0), &a->gq);
    add_array(list, flex_out(call, 1), &a->gk);
    add_array(list, flex_out(call, 2), &a->gv);
}

static int is_half(const burn_operand *x)
{
    return x->dtype == BURN_F16 || x->dtype == BURN_BF16;
}

static int32_t prepare(const burn_call *call, int gradient, burn_prepared *out)
{
    flex_attention a;
    arrays list;
    make_attention(call, gradient, &a, &list);
    uint64_t bytes = flex_in(call, 0)->dtype == BURN_F64 ? flex_attention_f64_bytes(&a)
                                                         : flex_attention_f32_bytes(&a, gradient);
    for (uint32_t i = 0; i < list.n; i++) {
        bytes += is_half(list.operand[i]) ? flex_float_bytes(flex_numel(list.operand[i])) : 0;
    }
    return flex_want_workspace(out, bytes);
}

/* Replaces half-precision arrays by f32 copies; returns what is left of the memory. */
static char *widen_arrays(arrays *list, char *memory)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const burn_operand *x = list->operand[i];
        if (!is_half(x)) {
            continue;
        }
        flex_heads *heads = list->heads[i];
        heads->data = memory;
        int64_t step = 1;
        for (uint32_t axis = 4; axis-- > 0;) {
            heads->strides[axis] = step;
            step *= x->dims[axis];
        }
        if (i < list->n_read) {
            flex_gather_f32(heads->data, x);
        }
        memory += flex_float_bytes(step);
    }
    return memory;
}

static int32_t launch(const burn_call *call, int gradient)
{
    flex_attention a;
    arrays list;
    make_attention(call, gradient, &a, &list);
    char *memory = flex_workspace(call);
    if (memory == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "attention: the call has no workspace");
    }
    memory = widen_arrays(&list, memory);
    if (flex_in(call, 0)->dtype == BURN_F64) {
        flex_attention_f64(&a, gradient, memory);
    } else {
        flex_attention_f32(&a, gradient, memory);
    }
    for (uint32_t i = list.n_read; i < list.n; i++) {
        const burn_operand *x = list.operand[i];
        if (is_half(x)) {
            flex_narrow(x->data, x->dtype, list.heads[i]->data, flex_numel(x));
        }
    }
    return BURN_OK;
}

static int32_t prepare_forward(const burn_call *call, burn_prepared *out)
{
    return prepare(call, 0, out);
}

static int32_t prepare_backward(const burn_call *call, burn_prepared *out)
{
    return prepare(call, 1, out);
}

static int32_t launch_forward(const burn_call *call)
{
    return launch(call, 0);
}

static int32_t launch_backward(const burn_call *call)
{
    return launch(call, 1);
}

#define DENSE BURN_LAYOUT_CONTIGUOUS
#define MASK_SET (BURN_SET_FLOAT | BURN_BIT(BOOL))
#define FIRST FLEX_SLOT(BURN_SET_FLOAT, BURN_LAYOUT_ANY, 0, 0)
#define INPUT FLEX_SLOT(BURN_SET_FLOAT, BURN_LAYOUT_ANY, 1, 0)
#define MASK FLEX_SLOT(MASK_SET, BURN_LAYOUT_ANY, 0, FLEX_OPT)
#define OUTPUT FLEX_SLOT(BURN_SET_FLOAT, DENSE, 1, 0)
static const burn_slot forward_slots[] = {FIRST, INPUT, INPUT, MASK, OUTPUT};
static const burn_slot backward_slots[] = {FIRST, INPUT,  INPUT,  MASK,
                                           INPUT, OUTPUT, OUTPUT, OUTPUT};

/* clang-format off */
const burn_row flex_rows_attention[] = {
    FLEX_ROW_PREPARED(BURN_OP_ATTENTION, forward_slots, 0, "flex.attention",
                      prepare_forward, launch_forward),
    FLEX_ROW_PREPARED(BURN_OP_ATTENTION_GRAD, backward_slots, 0, "flex.attention_grad",
                      prepare_backward, launch_backward),
};
/* clang-format on */
const uint32_t flex_rows_attention_count = FLEX_COUNT(flex_rows_attention);
