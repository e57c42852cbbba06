/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.c - the rows of `burn.fused`: whole programs in one pass over memory (fused.h).
 *
 * Three rows: programs in which an element may have no answer (integer division) come second, since
 * only they cost a fault word; those that begin with a product last. The state is the compiled
 * program; it serves every shape of the same dtypes, layouts and ranks, but with a product one,
 * whose workspace depends on it. What flex does not do is refused: the core runs the ops as single
 * ones.
 */
#include "fused.h"

#include "fused_producer.h"
#include "rows.h"

static int32_t prepare(const burn_call *call, int may_stop, int has_product, burn_prepared *out)
{
    const int begins = flex_producer_begins(call->attrs);
    if (begins && !has_product) {
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: it begins with a product");
    }
    /* The row for products is the last one, whose reason is told: so without one as well. */
    const flex_fused *f = flex_fused_compile(call);
    if (f == NULL) {
        return BURN_E_UNSUPPORTED;
    }
    if (has_product && !begins) {
        flex_fused_free(f);
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: it begins without a product");
    }
    if (f->stops && !may_stop) {
        flex_fused_free(f);
        return flex_fail(call->err, BURN_E_UNSUPPORTED, "fused: integers may have no quotient");
    }
    out->state = f;
    out->in_place_mask = f->in_place_mask;
    out->workspace_bytes = f->workspace_bytes;
    out->workspace_align = f->workspace_bytes > 0 ? 64 : 0;
    return BURN_OK;
}

static int32_t prepare_sure(const burn_call *call, burn_prepared *out)
{
    return prepare(call, 0, 0, out);
}

static int32_t prepare_any(const burn_call *call, burn_prepared *out)
{
    return prepare(call, 1, 0, out);
}

static int32_t prepare_product(const burn_call *call, burn_prepared *out)
{
    return prepare(call, 0, 1, out);
}

static void release(const void *state)
{
    flex_fused_free(state);
}

static int32_t launch(const burn_call *call)
{
    return flex_fused_run(call->state, call);
}

/* clang-format off */
/* As many slots as a call has operands: a variadic op's outputs may be many too. */
#define ANY FLEX_SLOT(BURN_SET_ANY, BURN_LAYOUT_ANY, 0, FLEX_IMM)
#define FOUR ANY, ANY, ANY, ANY
#define SIXTEEN FOUR, FOUR, FOUR, FOUR
static const burn_slot slots[] = {SIXTEEN, SIXTEEN, SIXTEEN, SIXTEEN};
_Static_assert(FLEX_COUNT(slots) == BURN_MAX_OPERANDS, "a slot for each operand");

#define ROW(flags, facts, priority, name, prepare) \
    { (uint32_t)sizeof(burn_row), (flags), BURN_OP_FUSED, 1, 1, (priority), \
      (uint16_t)FLEX_COUNT(slots), (uint32_t)sizeof(burn_slot), 0, slots, (name), 1, 0, NULL, \
      (uint32_t)sizeof(burn_guard), 0, (facts), NULL, (prepare), release, NULL, launch }
#define ONE_SHAPE (FLEX_ROW_FLAGS & ~(uint32_t)BURN_ROW_ANY_DIMS)
const burn_row flex_rows_fused[] = {
    ROW(FLEX_ROW_FLAGS, 0, 2, "flex.fused", prepare_sure),
    ROW(FLEX_ROW_FLAGS | BURN_ROW_FAULTS, 0, 1, "flex.fused.faults", prepare_any),
    ROW(ONE_SHAPE, BURN_FACT_DIMS, 0, "flex.fused.product", prepare_product),
};
/* clang-format on */
const uint32_t flex_rows_fused_count = FLEX_COUNT(flex_rows_fused);
