/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * registry.h - id -> definition. Core ops are there from the start; extensions add theirs.
 *
 * Each op gets a small dense index that caches use. Entries never move and live as long as the
 * process. Lookup is lock-free [any]. The ops of a plugin are added together, in two steps, so that
 * nothing is half there: staging checks and copies them, publishing cannot fail. Both are serial:
 * under the lock of exec/extension.c.
 */
#ifndef BURN_CORE_OPS_REGISTRY_H
#define BURN_CORE_OPS_REGISTRY_H

#include <burn/op_def.h>
#include <burn/op_list.h>
#include <stdatomic.h>
#include <stddef.h>

#define BURNI_MAX_OPS 1024

typedef struct burni_op {
    burn_op_def def;    /* a full-size copy */
    const char *plugin; /* who defines it; NULL: the core */
    uint32_t index;
    uint32_t variadic;     /* the last input role repeats */
    uint32_t variadic_out; /* the last output role repeats */
    uint32_t max_attrs;    /* bytes of attributes that a call may have */
    uint32_t pointwise;
    uint32_t view;
    uint32_t differentiable; /* some output may carry a gradient */
    uint32_t simple;         /* two plain tensor inputs of one dtype, one output: the short way */
    uint32_t has_dims;       /* some attribute is a size of an output */
    uint32_t zero;
} burni_op;

/* NULL when there is none. */
const burni_op *burni_op_find(uint64_t id);
/* The core's ops by their ids, which are small; all NULL until somebody asked for one. */
#define BURNI_SMALL_IDS 256u
extern burni_op *_Atomic burni_op_small[BURNI_SMALL_IDS];
/* The same as burni_op_find, for a path that each call takes. */
static inline const burni_op *burni_op_find_quick(uint64_t id)
{
    const burni_op *op = id < BURNI_SMALL_IDS ? atomic_load_explicit(&burni_op_small[id],
                                                                     memory_order_acquire)
                                              : NULL;
    return __builtin_expect(op != NULL, 1) ? op : burni_op_find(id);
}
const burni_op *burni_op_find_name(const char *name);
uint32_t burni_op_count(void);
const burni_op *burni_op_at(uint32_t index);

/* The ops of one plugin before they are visible. */
typedef struct burni_op_batch {
    burni_op *ops;
    uint32_t n;
} burni_op_batch;

/* Checks the definitions (def_check.h), which runs code of the plugin: under no lock. [any] */
int32_t burni_ops_check(const char *plugin, const burn_op_def *defs, uint32_t n, burn_err *err);
/* Copies definitions that were checked, unless they clash with others; `plugin` and what they point
 * at live as long as the process. On failure nothing is left, and the error names both ops. */
int32_t burni_ops_stage(const char *plugin, const burn_op_def *defs, uint32_t n,
                        burni_op_batch *out, burn_err *err);
void burni_ops_publish(burni_op_batch *batch);
void burni_ops_discard(burni_op_batch *batch);
/* As burni_op_find, with the ops of a batch (NULL: none) besides those that are visible. */
const burni_op *burni_op_find_staged(const burni_op_batch *batch, uint64_t id);

/* How many outputs may a call have: as many as roles, or more of the last. */
int burni_op_may_give(const burni_op *op, uint32_t n_out);

/* Role of input i and of output j; a variadic op's last role repeats. */
const burn_role *burni_op_role_in(const burni_op *op, uint32_t i);
const burn_role *burni_op_role_out(const burni_op *op, uint32_t j);

#endif /* BURN_CORE_OPS_REGISTRY_H */
