/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * layout.c - the same values in other layouts, made with view ops on the runner itself.
 *
 * transposed: all axes reversed in storage, permuted back. sliced: a window of a wider last axis,
 * at an offset. negative: stored backwards, flipped. mixed: one of these for each operand, in turn.
 * stride 0: one row, expanded (so the values repeat along the first axis). To add a layout: its
 * name here, a number in the header, a case in each function of this file.
 */
#include "conformance.h"

const char *const conf_layout_names[CONF_LAYOUTS] = {"contiguous", "transposed", "sliced",
                                                     "negative",   "mixed",      "stride 0"};

#define SLICE_BEFORE 2
#define SLICE_AFTER 1

static int applies_to(const conf_value *value, uint32_t layout)
{
    uint32_t least = layout == CONF_TRANSPOSED ? 2 : 1;
    return value->meta.kind == BURN_TENSOR && value->meta.rank >= least && value->n > 1;
}

int conf_layout_applies(const conf_case *c, uint32_t layout)
{
    if (layout == CONF_CONTIGUOUS) {
        return 1;
    }
    uint32_t least = layout == CONF_MIXED ? 2 : 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_in; i++) {
        n += (uint32_t)applies_to(&c->in[i], layout);
    }
    return n >= least;
}

const char *conf_layout_detail(const conf_case *c)
{
    return c->layout != CONF_CONTIGUOUS ? conf_layout_names[c->layout] : "";
}

/* The layout of one operand: of a mixed case, each takes the next one that it can have. */
static uint32_t layout_of(const conf_value *value, uint32_t layout, uint32_t i)
{
    static const uint8_t turns[] = {CONF_TRANSPOSED, CONF_SLICED, CONF_NEGATIVE};
    if (layout != CONF_MIXED) {
        return layout;
    }
    uint32_t turn = turns[i % sizeof(turns)];
    return applies_to(value, turn) ? turn : CONF_SLICED;
}

void conf_layout_values(conf_case *c, uint32_t layout)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        conf_value *value = &c->in[i];
        if (layout == CONF_STRIDE0 && applies_to(value, layout)) {
            uint64_t row = value->n / (uint64_t)value->meta.dims[0];
            for (uint64_t k = row; k < value->n; k++) {
                conf_move(value, k, value, k % row);
            }
        }
    }
}

/* Copies `from` into `to` at element offset `first`, stepping `to` by `strides`. */
static void place(conf_value *to, const conf_value *from, int64_t first, const int64_t *strides)
{
    const int64_t *lists[1] = {strides};
    burn_loop loop;
    for (burn_loop_begin(&loop, from->meta.rank, from->meta.dims, 1, lists); burn_loop_more(&loop);
         burn_loop_next(&loop)) {
        conf_move(to, (uint64_t)(first + loop.offset[0]), from, (uint64_t)loop.position);
    }
}

static burn_value *emit1(conf_runner *runner, uint64_t op, const void *attrs, burn_value **in,
                         uint32_t n_in)
{
    burn_value *out = NULL;
    (void)runner->builder.emit(runner->builder.ctx, op, attrs,
                               ((const burn_attrs_head *)attrs)->size, in, n_in, &out, 1);
    return out;
}

static void begin_attrs(void *attrs, uint32_t size)
{
    memset(attrs, 0, size);
    ((burn_attrs_head *)attrs)->size = size;
    ((burn_attrs_head *)attrs)->revision = 1;
}

static burn_value *transposed(conf_runner *runner, const conf_value *value)
{
    burn_attrs_permute attrs;
    int64_t dense[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    conf_value stored = *value;
    uint32_t rank = value->meta.rank;
    begin_attrs(&attrs, (uint32_t)sizeof(attrs));
    attrs.n_axes = rank;
    for (uint32_t i = 0; i < rank; i++) {
        stored.meta.dims[i] = value->meta.dims[rank - 1 - i];
        attrs.perm[i] = (int64_t)(rank - 1 - i);
    }
    burn_dims_strides(rank, stored.meta.dims, dense);
    for (uint32_t i = 0; i < rank; i++) {
        strides[i] = dense[rank - 1 - i];
    }
    conf_value_alloc(&runner->arena, &stored);
    place(&stored, value, 0, strides);
    burn_value *made = runner->make(runner, &stored);
    return emit1(runner, BURN_OP_PERMUTE, &attrs, &made, 1);
}

static burn_value *sliced(conf_runner *runner, const conf_value *value)
{
    burn_attrs_slice attrs;
    int64_t strides[BURN_MAX_RANK];
    conf_value stored = *value;
    uint32_t last = value->meta.rank - 1u;
    begin_attrs(&attrs, (uint32_t)sizeof(attrs));
    attrs.axis = (int64_t)last;
    attrs.size = value->meta.dims[last];
    attrs.step = 1;
    stored.meta.dims[last] += SLICE_BEFORE + SLICE_AFTER;
    burn_dims_strides(stored.meta.rank, stored.meta.dims, strides);
    conf_value_alloc(&runner->arena, &stored);
    for (uint64_t k = 0; k < stored.n; k++) {
        conf_set(&stored, k, 77.0); /* what nobody may read */
    }
    place(&stored, value, SLICE_BEFORE, strides);
    burn_value *in[2] = {runner->make(runner, &stored), NULL};
    in[1] = runner->builder.immediate_int(runner->builder.ctx, BURN_I64, SLICE_BEFORE);
    return emit1(runner, BURN_OP_SLICE, &attrs, in, 2);
}

static burn_value *flipped(conf_runner *runner, const conf_value *value)
{
    burn_attrs_axes attrs;
    conf_value stored = *value;
    begin_attrs(&attrs, (uint32_t)sizeof(attrs));
    attrs.n_axes = value->meta.rank;
    for (uint32_t i = 0; i < value->meta.rank; i++) {
        attrs.axes[i] = (int64_t)i;
    }
    conf_value_alloc(&runner->arena, &stored);
    for (uint64_t k = 0; k < value->n; k++) {
        conf_move(&stored, k, value, value->n - 1 - k);
    }
    burn_value *made = runner->make(runner, &stored);
    return emit1(runner, BURN_OP_FLIP, &attrs, &made, 1);
}

static burn_value *expanded(conf_runner *runner, const conf_value *value)
{
    burn_attrs_shape attrs;
    conf_value stored = *value;
    begin_attrs(&attrs, (uint32_t)sizeof(attrs));
    attrs.n_dims = value->meta.rank;
    for (uint32_t i = 0; i < value->meta.rank; i++) {
        attrs.dims[i] = value->meta.dims[i];
    }
    stored.meta.dims[0] = 1;
    conf_value_alloc(&runner->arena, &stored);
    for (uint64_t k = 0; k < stored.n; k++) {
        conf_move(&stored, k, value, k);
    }
    burn_value *made = runner->make(runner, &stored);
    return emit1(runner, BURN_OP_EXPAND, &attrs, &made, 1);
}

burn_value *conf_make_in(conf_runner *runner, const conf_value *value, uint32_t layout, uint32_t i)
{
    if (value->meta.kind == BURN_ABSENT) {
        return NULL;
    }
    if (!applies_to(value, layout)) {
        return runner->make(runner, value);
    }
    switch (layout_of(value, layout, i)) {
    case CONF_TRANSPOSED:
        return transposed(runner, value);
    case CONF_SLICED:
        return sliced(runner, value);
    case CONF_NEGATIVE:
        return flipped(runner, value);
    case CONF_STRIDE0:
        return expanded(runner, value);
    default:
        return runner->make(runner, value);
    }
}
