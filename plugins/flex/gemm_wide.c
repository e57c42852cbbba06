/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gemm_wide.c - plain matrix products for the integers.
 *
 * Owns a loop over rows of the output: each row is summed in a wide scratch row. The right operand
 * is widened once per matrix. To add a dtype: a line in FOREACH_INT.
 */
#include "gemm_wide.h"

#include "nn.h"

#include <string.h>

/* One call: where each output row's operands lie. */
typedef struct wide {
    const burn_operand *x;
    const burn_operand *y;
    const burn_operand *bias; /* NULL: none */
    const burn_operand *z;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t y_offset; /* of the current right matrix */
    int64_t row0;     /* first output row of the current matrix */
    int64_t x_offset;
    char *copy;  /* the right matrix, wide and dense */
    char *lines; /* one wide row per slot */
} wide;

static void make_wide(const burn_call *call, wide *w)
{
    memset(w, 0, sizeof(*w));
    w->x = flex_in(call, 0);
    w->y = flex_in(call, 1);
    w->z = flex_out(call, 0);
    const burn_operand *bias = call->n_in > 2 ? flex_in(call, 2) : NULL;
    w->bias = bias != NULL && !flex_absent(bias) ? bias : NULL;
    w->m = w->x->rank > 1 ? w->x->dims[w->x->rank - 2] : 1;
    w->k = w->x->dims[w->x->rank - 1];
    w->n = w->y->dims[w->y->rank - 1];
}

static uint64_t line_bytes(const wide *w)
{
    return (uint64_t)flex_round_up(w->n, 8) * 8;
}

int32_t flex_wide_prepare(const burn_call *call, burn_prepared *out)
{
    wide w;
    make_wide(call, &w);
    return flex_want_workspace(out, line_bytes(&w) * ((uint64_t)w.k + flex_thread_count()));
}

/* X(NAME, type): how an integer of that dtype is widened, sign kept. */
#define FOREACH_INT(X)                                                                             \
    X(U8, uint8_t)                                                                                 \
    X(I8, int8_t)                                                                                  \
    X(U16, uint16_t)                                                                               \
    X(I16, int16_t)                                                                                \
    X(U32, uint32_t)                                                                               \
    X(I32, int32_t)                                                                                \
    X(U64, uint64_t)                                                                               \
    X(I64, int64_t)

static uint64_t widen_u64(const void *data, int64_t i, uint8_t dtype)
{
    switch (dtype) {
#define WIDEN_CASE(NAME, type)                                                                     \
    case BURN_##NAME:                                                                              \
        return (uint64_t)((const type *)data)[i];
        FOREACH_INT(WIDEN_CASE)
#undef WIDEN_CASE
    default:
        return 0;
    }
}

static void narrow_u64(void *data, int64_t i, uint8_t dtype, uint64_t value)
{
    switch (dtype) {
#define NARROW_CASE(NAME, type)                                                                    \
    case BURN_##NAME:                                                                              \
        ((type *)data)[i] = (type)value;                                                           \
        break;
        FOREACH_INT(NARROW_CASE)
#undef NARROW_CASE
    default:
        break;
    }
}

static void copy_right(const wide *w)
{
    const burn_operand *y = w->y;
    int64_t rs = y->strides[y->rank - 2];
    int64_t cs = y->strides[y->rank - 1];
    int64_t ld = flex_round_up(w->n, 8);
    for (int64_t k = 0; k < w->k; k++) {
        for (int64_t j = 0; j < w->n; j++) {
            int64_t from = w->y_offset + k * rs + j * cs;
            ((uint64_t *)(void *)w->copy)[k * ld + j] = widen_u64(y->data, from, y->dtype);
        }
    }
}

static void row_u64(const wide *w, int64_t x0, int64_t xs, uint64_t *line, int64_t out0)
{
    uint8_t dtype = w->z->dtype;
    const uint64_t *right = (const uint64_t *)(const void *)w->copy;
    int64_t ld = flex_round_up(w->n, 8);
    for (int64_t j = 0; j < w->n; j++) {
        line[j] = w->bias != NULL ? widen_u64(w->bias->data, j, dtype) : 0;
    }
    for (int64_t k = 0; k < w->k; k++) {
        uint64_t a = widen_u64(w->x->data, x0 + k * xs, dtype);
        const uint64_t *b = right + k * ld;
        for (int64_t j = 0; j < w->n; j++) {
            line[j] += a * b[j];
        }
    }
    for (int64_t j = 0; j < w->n; j++) {
        narrow_u64(w->z->data, out0 + j, dtype, line[j]);
    }
}

static void one_row(void *ctx, int64_t i, uint32_t slot)
{
    const wide *w = ctx;
    const burn_operand *x = w->x;
    int64_t x0 = w->x_offset + (x->rank > 1 ? i * x->strides[x->rank - 2] : 0);
    int64_t xs = x->strides[x->rank - 1];
    uint64_t *line = (uint64_t *)(void *)(w->lines + slot * line_bytes(w));
    int64_t out0 = (w->row0 + i) * w->n;
    row_u64(w, x0, xs, line, out0);
}

/* Strides of an operand over the output's batch axes. */
static void outer_strides(const burn_operand *x, uint32_t z_rank, int64_t *strides)
{
    for (uint32_t i = 0; i + 2 < z_rank; i++) {
        int64_t own = (int64_t)i - ((int64_t)z_rank - (int64_t)x->rank);
        strides[i] = own < 0 || x->dims[own] == 1 ? 0 : x->strides[own];
    }
}

int32_t flex_wide_launch(const burn_call *call)
{
    wide w;
    make_wide(call, &w);
    if (flex_numel(w.z) == 0) {
        return BURN_OK;
    }
    w.lines = flex_workspace(call);
    if (w.lines == NULL) {
        return flex_fail(call->err, BURN_E_INTERNAL, "matmul: the call has no workspace");
    }
    w.copy = w.lines + line_bytes(&w) * flex_thread_count();
    int64_t x_strides[BURN_MAX_RANK] = {0};
    int64_t y_strides[BURN_MAX_RANK] = {0};
    outer_strides(w.x, w.z->rank, x_strides);
    outer_strides(w.y, w.z->rank, y_strides);
    const int64_t *strides[2] = {x_strides, y_strides};
    int64_t offsets[2] = {0, 0};
    int64_t index[BURN_MAX_RANK] = {0};
    uint32_t outer = w.z->rank > 1 ? w.z->rank - 2u : 0;
    int64_t copied = -1;
    do {
        w.x_offset = offsets[0];
        w.y_offset = offsets[1];
        if (copied != w.y_offset) {
            copy_right(&w);
            copied = w.y_offset;
        }
        uint32_t slots = w.m * w.n * w.k < FLEX_GRAIN ? 1 : flex_slots(w.m);
        flex_share(w.m, slots, one_row, &w);
        w.row0 += w.m;
    } while (flex_step(outer, w.z->dims, index, 2, strides, offsets));
    return BURN_OK;
}
