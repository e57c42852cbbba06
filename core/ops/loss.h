/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loss.h - what the losses share: the attribute table, and the reduction to a mean, a sum or none.
 *
 * Everything is inline and pure. A loss of its own file includes this and adds its formula.
 */
#ifndef BURN_CORE_OPS_LOSS_H
#define BURN_CORE_OPS_LOSS_H

#include "ops/nn.h"

static const burn_attr loss_attrs[] = {
    BURNI_ATTR(burn_attrs_loss, reduction, BURN_ATTR_U32, BURN_ATTR_KEY,
               "0 mean, 1 sum, 2 none"),
    BURNI_ATTR(burn_attrs_loss, ignore_index, BURN_ATTR_I64, BURN_ATTR_KEY,
               "cross_entropy: targets of this value do not count; INT64_MIN: none"),
    BURNI_ATTR(burn_attrs_loss, label_smoothing, BURN_ATTR_F64, BURN_ATTR_KEY,
               "cross_entropy: 0 to 1, how much goes to all classes evenly"),
};
enum { N_LOSS_ATTRS = 3 };

static inline int32_t check_reduction(const char *op, const burn_attrs_loss *attrs, burn_err *err)
{
    if (attrs->reduction <= BURN_REDUCTION_NONE) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_INVALID, "%s: reduction is %u; use 0 (mean), 1 (sum) or 2 (none)",
                      op, (unsigned)attrs->reduction);
}

/* Mean or sum over everything, or the losses themselves. */
static inline burn_value *reduce_loss(const burn_builder *b, burn_value *losses, uint32_t reduction)
{
    if (reduction == BURN_REDUCTION_NONE) {
        return losses;
    }
    uint64_t op = reduction == BURN_REDUCTION_MEAN ? BURN_OP_MEAN : BURN_OP_SUM;
    return burn_b_reduce(b, op, losses, 0, NULL, 0);
}

static inline void loss_shape(burn_meta *out, const burn_meta *rows, uint32_t reduction)
{
    burn_meta none = {0, BURN_TENSOR, 0, 0, 0, {0}};
    burni_nn_copy_shape(out, reduction == BURN_REDUCTION_NONE ? rows : &none);
}

#endif /* BURN_CORE_OPS_LOSS_H */
