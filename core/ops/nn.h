/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn.h - helpers of the composite definitions: softmax, norm, attention, dropout, loss, optim.
 *
 * Half precision is storage: a composite on f16 or bf16 widens its inputs, works in f32 and narrows
 * its results once. Everything here is inline and pure. A helper belongs here when two of those
 * files need it; what every op needs is in rules.h.
 */
#ifndef BURN_CORE_OPS_NN_H
#define BURN_CORE_OPS_NN_H

#include "ops/rules.h"

#include <burn/build.h>

static inline uint8_t burni_nn_acc_dtype(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16 ? (uint8_t)BURN_F32 : dtype;
}

static inline burn_value *burni_nn_cast(const burn_builder *b, burn_value *x, uint8_t from,
                                        uint8_t to)
{
    return x == NULL || from == to ? x : burn_b_cast(b, x, to);
}

/* The value in the dtype that is computed in; NULL stays NULL. */
static inline burn_value *burni_nn_widen(const burn_builder *b, burn_value *x)
{
    if (x == NULL) {
        return NULL;
    }
    uint8_t dtype = burn_b_meta(b, x).dtype;
    return burni_nn_cast(b, x, dtype, burni_nn_acc_dtype(dtype));
}

/* Back to the storage dtype. */
static inline burn_value *burni_nn_narrow(const burn_builder *b, burn_value *x, uint8_t dtype)
{
    return burni_nn_cast(b, x, burni_nn_acc_dtype(dtype), dtype);
}

/* An immediate as a tensor of rank 0: so a decomposition computes with a value it can't know. */
static inline burn_value *burni_nn_scalar(const burn_builder *b, burn_value *immediate,
                                          uint8_t dtype)
{
    burn_attrs_shape attrs;
    burn_attrs_init(&attrs, (uint32_t)sizeof(attrs));
    attrs.dtype = dtype;
    return burn_b_emit(b, BURN_OP_FILL, &attrs, &immediate, 1);
}

static inline int64_t burni_nn_numel(const burn_meta *meta)
{
    return burni_numel(meta->rank, meta->dims);
}

static inline int burni_nn_present(const burn_meta *meta)
{
    return meta->kind != BURN_ABSENT;
}

static inline int burni_nn_same_shape(const burn_meta *x, const burn_meta *y)
{
    if (x->rank != y->rank) {
        return 0;
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dims[i] != y->dims[i]) {
            return 0;
        }
    }
    return 1;
}

static inline void burni_nn_copy_shape(burn_meta *to, const burn_meta *from)
{
    to->rank = from->rank;
    for (uint32_t i = 0; i < BURN_MAX_RANK; i++) {
        to->dims[i] = i < from->rank ? from->dims[i] : 0;
    }
}

/* An error unless operand `y` has the shape of operand `x`. */
static inline int32_t burni_nn_check_shape(const char *op, const char *x_name, const burn_meta *x,
                                           const char *y_name, const burn_meta *y, burn_err *err)
{
    if (burni_nn_same_shape(x, y)) {
        return BURN_OK;
    }
    char x_text[192];
    char y_text[192];
    burni_shape_text(x_text, sizeof(x_text), x->rank, x->dims);
    burni_shape_text(y_text, sizeof(y_text), y->rank, y->dims);
    return burni_fail(err, BURN_E_SHAPE, "%s: %s has shape %s, %s has %s; they must be equal", op,
                      y_name, y_text, x_name, x_text);
}

#endif /* BURN_CORE_OPS_NN_H */
