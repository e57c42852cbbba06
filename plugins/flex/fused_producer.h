/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_producer.h - the product or convolution that a fused program may begin with.
 *
 * A product is the call that its op alone would be, made from the operands of the fused one: same
 * row, same bits. Its result goes to memory of the caller's choice, whole, or piece by piece as the
 * kernel finishes it. A product is plain memory that points into itself and into the fused call; it
 * is not copied and does not outlive the call.
 */
#ifndef BURN_PLUGINS_FLEX_FUSED_PRODUCER_H
#define BURN_PLUGINS_FLEX_FUSED_PRODUCER_H

#include "epilogue.h"
#include "flex.h"

#include <burn/fused.h>

typedef struct flex_producer {
    const struct flex_producer_kind *kind; /* which op (fused_producer.c) */
    burn_call call;
    burn_operand operands[BURN_FUSED_MAX_ARGS + 1]; /* the last one of the call is the result */
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
} flex_producer;

/* Does the program begin with one? */
int flex_producer_begins(const burn_fused_program *program);

/* Makes it; the result has no memory yet. 0: flex has no such op. */
int flex_producer_make(flex_producer *p, const burn_call *fused);

static inline burn_operand *flex_producer_result(flex_producer *p)
{
    return &p->operands[p->call.n_in];
}

/* The row of the op alone that says BURN_ROW_EPILOGUE and takes these operands, or NULL. */
const burn_row *flex_producer_row(const flex_producer *p);

/*
 * Computes it, and hands each piece to `finish` while it is in the cache: see epilogue.h. The
 * result's memory may stay as it is. BURN_E_UNSUPPORTED, with nothing done, where
 * pieces would be so short that a pass over the whole result is better.
 */
int32_t flex_producer_run_hot(const flex_producer *p, const flex_epilogue *finish);

/* Will it do so and not touch the result's memory, for these dims? */
int flex_producer_passes_on(const flex_producer *p);

#endif /* BURN_PLUGINS_FLEX_FUSED_PRODUCER_H */
