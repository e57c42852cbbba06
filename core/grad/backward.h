/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * backward.h - the container of gradients.
 */
#ifndef BURN_CORE_GRAD_BACKWARD_H
#define BURN_CORE_GRAD_BACKWARD_H

#include "tensor/tensor.h"

typedef struct burni_grad_entry {
    burni_node *leaf;
    burn_tensor *grad;
} burni_grad_entry;

struct burn_grads {
    burni_grad_entry *entries;
    uint32_t n;
    uint32_t cap;
};

#endif /* BURN_CORE_GRAD_BACKWARD_H */
