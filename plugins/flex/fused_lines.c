/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_lines.c - the list of ops that go over lines, and what such a step does with a tile.
 *
 * A tile has whole rows, each a line. See fused_lines.h. To add an op: an entry of `ops`.
 */
#include "fused_lines.h"

#include "fused_tile.h"

#include <burn/op_list.h>

static const flex_line_op ops[] = {
    {BURN_OP_SOFTMAX, flex_softmax_line, 1, 1, 6},
    {BURN_OP_LOG_SOFTMAX, flex_log_softmax_line, 1, 0, 6},
    {BURN_OP_SOFTMAX_GRAD, flex_softmax_grad_line, 2, 1, 2},
    {BURN_OP_LOG_SOFTMAX_GRAD, flex_log_softmax_grad_line, 2, 1, 5},
    {BURN_OP_LAYER_NORM, flex_layer_norm_line, 1, 1, 4},
};

const flex_line_op *flex_line_op_of(uint64_t op)
{
    for (uint32_t i = 0; i < FLEX_COUNT(ops); i++) {
        if (ops[i].op == op) {
            return &ops[i];
        }
    }
    return NULL;
}

int flex_fused_lines(const flex_fused_step *s, flex_fused_tile *t)
{
    const flex_line_op *op = s->fn.line;
    const flex_fused_value *value = &t->job->f->values[s->out];
    const flex_lines *table = flex_lines_of(value->dtype);
    const char *attrs = (const char *)t->job->program + s->attrs;
    const uint64_t bytes = t->length * value->size;
    for (uint64_t r = 0; r < t->n_rows; r++) {
        const void *in[3] = {NULL, NULL, NULL};
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t skip = i < op->n_full ? r * bytes : 0;
            in[i] = (s->index >> i & 1) != 0 ? t->ptr[s->in[i]] + skip : NULL;
        }
        op->run(table, attrs, t->ptr[s->out] + r * bytes, in, (int64_t)t->length);
    }
    return 1;
}
