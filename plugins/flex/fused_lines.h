/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_lines.h - ops that go over lines (softmax, layer_norm) as steps of fused programs.
 *
 * The function that makes one line of an op's row makes it in a tile too, so the bits are the same.
 * Owns the list of them; the functions are beside their rows. Pure: constant tables. To add one: a
 * flex_line_fn that its row calls as well, BURN_ROW_LINES on the row, an entry in fused_lines.c.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_LINES_H
#define BURN_PLUGINS_FLEX_FUSED_LINES_H

#include "nn_lines.h"

#include <stdint.h>

/* One line of the result from those of the operands (in the op's order; NULL: absent), all dense
 * and of the table's dtype. */
typedef void (*flex_line_fn)(const flex_lines *t, const void *attrs, void *out,
                             const void *const *in, int64_t n);

typedef struct flex_line_op {
    uint64_t op;
    flex_line_fn run;
    uint8_t n_full;   /* operands that have all lines: the first ones */
    uint8_t in_place; /* the result may be one of them */
    uint8_t weight;   /* one element costs about as much as so many cheap maps */
} flex_line_op;

/* The op's, or NULL. */
const flex_line_op *flex_line_op_of(uint64_t op);

/* Functions of softmax.c and norm.c. */
void flex_softmax_line(const flex_lines *t, const void *attrs, void *out, const void *const *in,
                       int64_t n);
void flex_log_softmax_line(const flex_lines *t, const void *attrs, void *out,
                           const void *const *in, int64_t n);
void flex_softmax_grad_line(const flex_lines *t, const void *attrs, void *out,
                            const void *const *in, int64_t n);
void flex_log_softmax_grad_line(const flex_lines *t, const void *attrs, void *out,
                                const void *const *in, int64_t n);
void flex_layer_norm_line(const flex_lines *t, const void *attrs, void *out,
                          const void *const *in, int64_t n);

#endif /* BURN_PLUGINS_FLEX_FUSED_LINES_H */
