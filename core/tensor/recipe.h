/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recipe.h - how a value is made again: the call that gave it, kept instead of its numbers.
 *
 * A handle with the flag BURNI_RECIPE holds a reference to the recipe of the call that made it.
 * What the tape saves of such a handle is a ghost: a handle of the same shape and history without a
 * storage, which names the recipe. A recipe holds the call's inputs the way the tape does: handles,
 * or ghosts of what has a recipe itself. It goes with the last handle or ghost that names it, and
 * its inputs with it. Who makes recipes: exec/recipe.c; who runs them: grad/recompute.c. Counts are
 * atomic; what a pass keeps in one belongs to the pass that is its `owner`.
 */
#ifndef BURN_CORE_TENSOR_RECIPE_H
#define BURN_CORE_TENSOR_RECIPE_H

#include "tensor/tensor.h"

typedef struct burni_recipe burni_recipe;

struct burni_recipe {
    _Atomic uint32_t refs;
    _Atomic uint32_t asked; /* nodes of the tape that kept a ghost of a result */
    const struct burni_op *op;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    uint32_t depth; /* how many calls that compute something run to make it, at most */
    uint32_t math;
    uint32_t light; /* one pass over memory gives new numbers: not worth keeping for long */
    uint64_t tag;
    burn_device *device;
    burn_tensor **in; /* n_in; NULL: absent */
    void *attrs;
    _Atomic(const void *) owner; /* the pass that has run it, or NULL: then it keeps in `out` */
    burn_tensor **out;           /* n_out */
    burni_recipe *of;            /* a copy's original, kept: another pass owns that */
    burni_recipe *next;          /* of those the pass has run; work list of the release */
    burni_recipe *previous;
};

/* One with room for those counts, inputs NULL; NULL when memory is short. refs is 1. */
burni_recipe *burni_recipe_new(const struct burni_op *op, uint32_t n_in, uint32_t n_out,
                               uint32_t attrs_size);

static inline burni_recipe *burni_recipe_ref(burni_recipe *recipe)
{
    atomic_fetch_add_explicit(&recipe->refs, 1, memory_order_relaxed);
    return recipe;
}

/* Releases without recursion, however long the chain. */
void burni_recipe_unref(burni_recipe *recipe);

/* From here on `t`, output `j` of the call, can be made again. */
void burni_recipe_attach(burn_tensor *t, uint32_t j, burni_recipe *recipe);
/* From here on it can't: it is kept where it is needed. */
void burni_recipe_detach(burn_tensor *t);
/* Stands for `t`, which has a recipe, with its history (`tracked`) or without. NULL: no memory. */
burn_tensor *burni_ghost_new(burni_thread *thread, const burn_tensor *t, int tracked);

static inline int burni_has_recipe(const burn_tensor *t)
{
    return (t->flags & BURNI_RECIPE) != 0;
}

/* What the tape kept names numbers that are not there. */
static inline int burni_is_ghost(const burn_tensor *t)
{
    return t != NULL && t->kind == BURN_TENSOR && t->storage == NULL && burni_has_recipe(t);
}

#endif /* BURN_CORE_TENSOR_RECIPE_H */
