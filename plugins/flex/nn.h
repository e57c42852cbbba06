/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn.h - what the neural-network kernel files share: rows that need a workspace, a shared-out loop
 * whose tasks own a piece of it, and widening of small floats.
 *
 * Owns no kernel. A row with `prepare` says its workspace for one set of dims; its launch cuts that
 * memory in the same order. Tasks are cut by data; slots only own scratch, never results.
 */
#ifndef BURN_PLUGINS_FLEX_NN_H
#define BURN_PLUGINS_FLEX_NN_H

#include "flex.h"
#include "threads.h"

#include <burn_sdk/half.h>
#include <stdatomic.h>

/* clang-format off */
/* A row whose prepare depends on dims. */
#define FLEX_ROW_PREPARED(op_id, slot_table, extra, row_name, prepare_fn, launch_fn) \
    { (uint32_t)sizeof(burn_row), (FLEX_ROW_FLAGS & ~(uint32_t)BURN_ROW_ANY_DIMS) | (extra), \
      (op_id), 1, 1, 0, (uint16_t)FLEX_COUNT(slot_table), (uint32_t)sizeof(burn_slot), 0, \
      (slot_table), (row_name), 1, 0, NULL, (uint32_t)sizeof(burn_guard), 0, BURN_FACT_DIMS, \
      NULL, (prepare_fn), \
      NULL, NULL, (launch_fn) }
/* The same for a candidate: it is taken only when the tuner found it faster. */
#define FLEX_ROW_CANDIDATE(op_id, slot_table, row_name, check_fn, prepare_fn, launch_fn) \
    { (uint32_t)sizeof(burn_row), (FLEX_ROW_FLAGS & ~(uint32_t)BURN_ROW_ANY_DIMS) | \
      BURN_ROW_TUNABLE | BURN_ROW_TUNED_ONLY, \
      (op_id), 1, 1, -10, (uint16_t)FLEX_COUNT(slot_table), (uint32_t)sizeof(burn_slot), 0, \
      (slot_table), (row_name), 1, 0, NULL, (uint32_t)sizeof(burn_guard), 0, BURN_FACT_DIMS, \
      (check_fn), (prepare_fn), \
      NULL, NULL, (launch_fn) }
/* clang-format on */

static inline int64_t flex_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t flex_round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* Bytes of `floats` floats, rounded up so that the next piece is 64-byte aligned. */
static inline uint64_t flex_float_bytes(int64_t floats)
{
    return (uint64_t)flex_round_up(floats, 16) * sizeof(float);
}

/* Says in `out` how much workspace a launch needs. */
static inline int32_t flex_want_workspace(burn_prepared *out, uint64_t bytes)
{
    /* Never none: an empty call then differs in no way from others. */
    out->workspace_bytes = bytes > 0 ? bytes : 64;
    out->workspace_align = 64;
    return BURN_OK;
}

/* The workspace of a call; NULL when the host gave none. */
static inline void *flex_workspace(const burn_call *call)
{
    return call->workspace != NULL ? call->workspace->data : NULL;
}

/* Work shared out to so many slots, or as there are items: fn(ctx, item, slot) for every item, each
 * once. */
typedef void (*flex_item_fn)(void *ctx, int64_t item, uint32_t slot);

void flex_share(int64_t n_items, uint32_t slots, flex_item_fn fn, void *ctx);

/* fn(ctx, begin, end) over [0, n) in pieces of `grain`, in parallel. */
typedef void (*flex_range_fn)(void *ctx, int64_t begin, int64_t end);

void flex_ranges(int64_t n, int64_t grain, flex_range_fn fn, void *ctx);

/* How many slots are worth having for n items. */
static inline uint32_t flex_slots(int64_t n_items)
{
    uint32_t threads = flex_thread_count();
    return n_items < (int64_t)threads ? (uint32_t)(n_items > 0 ? n_items : 1) : threads;
}

/* n elements of a float dtype, `stride` apart, as f32; and the reverse, dense. */
void flex_widen(float *dst, const void *src, uint8_t dtype, int64_t stride, int64_t n);
void flex_narrow(void *dst, uint8_t dtype, const float *src, int64_t n);

/* Element i of a float array, widened; and the reverse, rounded to nearest. */
static inline double flex_load_f64(const void *data, int64_t i, uint8_t dtype)
{
    if (dtype == BURN_F32) {
        return (double)((const float *)data)[i];
    }
    if (dtype == BURN_F64) {
        return ((const double *)data)[i];
    }
    uint16_t half = ((const uint16_t *)data)[i];
    return (double)(dtype == BURN_F16 ? burn_half_to_float(half) : burn_bfloat_to_float(half));
}

static inline void flex_store_f64(void *data, int64_t i, uint8_t dtype, double value)
{
    if (dtype == BURN_F32) {
        ((float *)data)[i] = (float)value;
    } else if (dtype == BURN_F64) {
        ((double *)data)[i] = value;
    } else if (dtype == BURN_F16) {
        ((uint16_t *)data)[i] = burn_float_to_half((float)value);
    } else {
        ((uint16_t *)data)[i] = burn_float_to_bfloat((float)value);
    }
}

/* A whole operand of a float dtype, any strides, as dense f32. */
void flex_gather_f32(float *dst, const burn_operand *x);

/*
 * Lines of operands, as the line tables want them: n elements `step` apart from `offset` on. An
 * operand of the table's dtype with step 1 is used where it lies; others go through `scratch`,
 * which holds flex_line_bytes(n). What was got for writing must be put.
 */
static inline uint64_t flex_line_bytes(int64_t n)
{
    return (uint64_t)flex_round_up(n, 8) * sizeof(double);
}

const void *flex_line_get(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step,
                          int64_t n, void *scratch);
void *flex_line_open(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step,
                     void *scratch);
void flex_line_put(uint8_t dtype, const burn_operand *x, int64_t offset, int64_t step, int64_t n,
                   const void *line);

/* A dense operand seen along one axis: item (outer, inner) starts at flex_axis_start. */
typedef struct flex_axis {
    int64_t outer;
    int64_t n;
    int64_t inner;
} flex_axis;

static inline flex_axis flex_axis_of(const burn_operand *x, int64_t axis)
{
    flex_axis a = {1, x->rank > 0 ? x->dims[axis] : 1, 1};
    for (int64_t i = 0; i < (int64_t)x->rank; i++) {
        a.outer *= i < axis ? x->dims[i] : 1;
        a.inner *= i > axis ? x->dims[i] : 1;
    }
    return a;
}

static inline int64_t flex_axis_start(const flex_axis *a, int64_t item)
{
    return item / a->inner * a->n * a->inner + item % a->inner;
}

#endif /* BURN_PLUGINS_FLEX_NN_H */
