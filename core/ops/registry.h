/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * registry.h - id -> definition. Core ops are there from the start; extensions add theirs.
 *
 * Each op gets a small dense index that caches use. Entries never move and live as long as the
 * process. Lookup is lock-free; adding takes a lock. [any]
 */
#ifndef BURN_CORE_OPS_REGISTRY_H
#define BURN_CORE_OPS_REGISTRY_H

#include <burn/op_def.h>
#include <burn/op_list.h>

#define BURNI_MAX_OPS 1024

typedef struct burni_op {
    burn_op_def def; /* a full-size copy */
    uint32_t index;
    uint32_t variadic; /* the last input role repeats */
    uint32_t pointwise;
    uint32_t view;
    uint32_t differentiable; /* some output may carry a gradient */
    uint32_t simple;         /* two plain tensor inputs of one dtype, one output: the short way */
} burni_op;

/* NULL when there is none. */
const burni_op *burni_op_find(uint64_t id);
const burni_op *burni_op_find_name(const char *name);
uint32_t burni_op_count(void);
const burni_op *burni_op_at(uint32_t index);

/* Copies a definition, stepping its arrays by the declared strides. The error says what is wrong
 * with it (clash of id or name, missing parts). */
int32_t burni_op_register(const burn_op_def *def, const burni_op **out, burn_err *err);

/* Role of input i (a variadic op's last role repeats) and of output j. */
const burn_role *burni_op_role_in(const burni_op *op, uint32_t i);
const burn_role *burni_op_role_out(const burni_op *op, uint32_t j);

#endif /* BURN_CORE_OPS_REGISTRY_H */
