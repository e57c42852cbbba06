/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recipe.c - the life of recipes and ghosts. See recipe.h.
 *
 * A recipe is one piece of memory: the struct, then inputs, results and attributes. The release of
 * one may end others, by way of handles and nodes: a thread that is releasing puts them on a list
 * instead of going deeper.
 */
#include "tensor/recipe.h"

#include "base/alloc.h"

#include <string.h>

burni_recipe *burni_recipe_new(const struct burni_op *op, uint32_t n_in, uint32_t n_out,
                               uint32_t attrs_size)
{
    size_t pointers = ((size_t)n_in + n_out) * sizeof(burn_tensor *);
    burni_recipe *recipe = burni_calloc(1, sizeof(*recipe) + pointers + attrs_size);
    if (recipe == NULL) {
        return NULL;
    }
    atomic_init(&recipe->refs, 1);
    recipe->op = op;
    recipe->n_in = n_in;
    recipe->n_out = n_out;
    recipe->attrs_size = attrs_size;
    recipe->in = (burn_tensor **)(void *)(recipe + 1);
    recipe->out = recipe->in + n_in;
    recipe->attrs = attrs_size > 0 ? recipe->out + n_out : NULL;
    return recipe;
}

static _Thread_local burni_recipe *dying;
static _Thread_local int releasing;

void burni_recipe_unref(burni_recipe *recipe)
{
    if (recipe == NULL ||
        atomic_fetch_sub_explicit(&recipe->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    recipe->next = dying;
    dying = recipe;
    if (releasing) {
        return;
    }
    releasing = 1;
    while (dying != NULL) {
        burni_recipe *r = dying;
        dying = r->next;
        for (uint32_t i = 0; i < r->n_in; i++) {
            burni_handle_unref(r->in[i]);
        }
        burni_recipe_unref(r->of);
        burni_free(r);
    }
    releasing = 0;
}

void burni_recipe_detach(burn_tensor *t)
{
    if (burni_has_recipe(t)) {
        t->flags &= (uint8_t)~BURNI_RECIPE;
        burni_recipe_unref(t->recipe);
    }
}

void burni_recipe_attach(burn_tensor *t, uint32_t j, burni_recipe *recipe)
{
    burni_recipe_detach(t);
    t->flags |= BURNI_RECIPE;
    t->out_index = j;
    t->recipe = burni_recipe_ref(recipe);
}

burn_tensor *burni_ghost_new(burni_thread *thread, const burn_tensor *t, int tracked)
{
    burn_tensor *ghost = burni_handle_new(thread, 0);
    if (ghost == NULL) {
        return NULL;
    }
    ghost->dtype = t->dtype;
    ghost->rank = t->rank;
    ghost->device = t->device;
    ghost->numel = t->numel;
    memcpy(ghost->dims, t->dims, t->rank * sizeof(t->dims[0]));
    burni_recipe_attach(ghost, t->out_index, t->recipe);
    if (tracked && t->node != NULL) {
        ghost->node = burni_node_ref(t->node);
    }
    return ghost;
}
