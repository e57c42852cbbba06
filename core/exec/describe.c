/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * describe.c - operands as a row will see them.
 *
 * Pointwise operands are broadcast to the output's dims, then neighbouring dims that lie one behind
 * the other in every operand are joined, so that no backend has to do either. Other ops get the
 * tensors' own dims and strides.
 */
#include "exec/emit_private.h"

#include <string.h>

static void head(burn_operand *o, uint8_t kind, uint8_t dtype)
{
    o->data = NULL;
    o->buffer = NULL;
    o->offset = 0;
    o->flags = 0;
    o->kind = kind;
    o->dtype = dtype;
    o->rank = 0;
    o->layout = BURN_LAYOUT_CONTIGUOUS;
    o->companion = 0;
    o->zero[0] = 0;
    o->zero[1] = 0;
    o->zero[2] = 0;
    o->reserved = 0;
}

/* Strides of a tensor seen through broadcasting to `rank` dims. */
static void spread(const burn_tensor *t, uint32_t rank, int64_t *strides)
{
    uint32_t lead = rank - t->rank;
    for (uint32_t d = 0; d < rank; d++) {
        int stretched = d < lead || t->dims[d - lead] == 1;
        strides[d] = stretched ? 0 : t->strides[d - lead];
    }
}

/* Joins dim d with d + 1 where every operand allows it. Returns the new rank. */
static uint32_t coalesce(burni_operands *ops, uint32_t n, uint32_t rank, int64_t *dims)
{
    uint32_t out = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] == 1) {
            continue;
        }
        int joins = out > 0;
        for (uint32_t i = 0; i < n && joins; i++) {
            joins = (uint64_t)ops->strides[i][out - 1] ==
                    (uint64_t)ops->strides[i][d] * (uint64_t)dims[d];
        }
        if (joins) {
            dims[out - 1] = (int64_t)((uint64_t)dims[out - 1] * (uint64_t)dims[d]);
        } else {
            dims[out++] = dims[d];
        }
        for (uint32_t i = 0; i < n; i++) {
            ops->strides[i][out - 1] = ops->strides[i][d];
        }
    }
    return out;
}

static void describe_pointwise(burni_emission *e, burni_operands *ops)
{
    const burn_meta *shape = &e->out_meta[0];
    uint32_t n = e->n_in + e->n_out;
    int64_t *dims = ops->dims[0];
    memcpy(dims, shape->dims, sizeof(dims[0]) * shape->rank);
    for (uint32_t i = 0; i < n; i++) {
        int is_tensor = i < e->n_in && e->meta[i].kind == BURN_TENSOR;
        if (is_tensor) {
            spread(e->used[i], shape->rank, ops->strides[i]);
        } else if (i < e->n_in) {
            memset(ops->strides[i], 0, sizeof(ops->strides[i]));
        } else {
            uint64_t stride = 1;
            for (uint32_t d = shape->rank; d-- > 0;) {
                ops->strides[i][d] = (int64_t)stride;
                stride *= (uint64_t)dims[d];
            }
        }
    }
    uint32_t rank = coalesce(ops, n, shape->rank, dims);
    for (uint32_t i = 0; i < n; i++) {
        burn_operand *o = &ops->operands[i];
        o->dims = dims;
        o->strides = ops->strides[i];
        o->rank = (uint8_t)rank;
        o->layout = burni_layout_of(rank, dims, ops->strides[i]);
    }
}

static void describe_plain(burni_emission *e, burni_operands *ops)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        burn_operand *o = &ops->operands[i];
        const burn_tensor *t = e->used[i];
        o->dims = ops->dims[i];
        o->strides = ops->strides[i];
        if (e->meta[i].kind != BURN_TENSOR) {
            ops->dims[i][0] = 1;
            ops->strides[i][0] = 0;
            continue;
        }
        o->dims = t->dims;
        o->strides = t->strides;
        o->rank = t->rank;
        o->layout = (t->flags & BURNI_CONTIGUOUS) != 0
                        ? BURN_LAYOUT_CONTIGUOUS
                        : burni_layout_of(t->rank, t->dims, t->strides);
    }
    for (uint32_t j = 0; j < e->n_out; j++) {
        burn_operand *o = &ops->operands[e->n_in + j];
        const burn_meta *meta = &e->out_meta[j];
        uint64_t stride = 1;
        for (uint32_t d = meta->rank; d-- > 0;) {
            ops->strides[e->n_in + j][d] = (int64_t)stride;
            stride *= (uint64_t)meta->dims[d];
        }
        o->dims = meta->dims;
        o->strides = ops->strides[e->n_in + j];
        o->rank = meta->rank;
        o->layout = BURN_LAYOUT_CONTIGUOUS;
    }
}

void burni_describe(burni_emission *e, burni_operands *ops)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        burn_operand *o = &ops->operands[i];
        head(o, e->meta[i].kind, e->meta[i].dtype);
        ops->storages[i] = NULL;
        if (e->meta[i].kind == BURN_IMMEDIATE) {
            o->data = e->immediates[i];
            o->reserved = (uint64_t)e->in[i]->offset; /* its name, while a step is kept */
        } else if (e->meta[i].kind == BURN_TENSOR) {
            const burn_tensor *t = e->used[i];
            ops->storages[i] = t->storage;
            o->offset = (uint64_t)(t->offset * (int64_t)burn_dtype_size(t->dtype));
        }
    }
    for (uint32_t j = 0; j < e->n_out; j++) {
        head(&ops->operands[e->n_in + j], BURN_TENSOR, e->out_meta[j].dtype);
        ops->storages[e->n_in + j] = NULL;
    }
    if (e->op->pointwise) {
        describe_pointwise(e, ops);
    } else {
        describe_plain(e, ops);
    }
}
