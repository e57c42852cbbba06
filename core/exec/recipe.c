/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recipe.c - which results are made again in backward instead of kept, and the recipe they get.
 *
 * Two ways lead to one. On a device with BURN_RECOMPUTE_BALANCED: recorded ops that are one pass
 * over memory by their definition (pointwise, views, BURN_OP_LIGHT), where that keeps less than the
 * result is. Between burn_recompute_begin and burn_recompute_end: all that is pure or random,
 * recorded or not. What has a recipe is the same call again, so random counters, being operands,
 * give the same numbers, and work with effects is never repeated. A recipe that can't be had for
 * want of memory is no failure: the value is kept. To let another op in: BURN_OP_LIGHT in its
 * definition.
 */
#include "tensor/recipe.h"

#include "exec/emit_private.h"

#include <string.h>

/*
 * So many calls lead from values that are kept to one that is not, at most (views do not count). A
 * chain of n calls then keeps n / 9 values and makes 8 at a time, and each call runs once more.
 */
#define MAX_DEPTH 8u

static int is_light(const burni_op *op)
{
    return op->pointwise || (op->def.flags & BURN_OP_LIGHT) != 0;
}

/* Parameters and leaves are there anyway. */
static int stays(const burn_tensor *t)
{
    return (t->storage != NULL &&
            atomic_load_explicit(&t->storage->is_var, memory_order_relaxed) != 0) ||
           (t->node != NULL && t->node->op == NULL);
}

static uint64_t bytes_of(const burn_tensor *t)
{
    return (uint64_t)t->numel * burn_dtype_size(t->dtype);
}

/* Keeping the inputs instead of the results must not keep more; a small one beside is fine. */
static int keeps_less(const burni_emission *e)
{
    uint64_t in = 0;
    uint64_t out = 0;
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_tensor *t = e->in[i];
        if (t != NULL && t->kind == BURN_TENSOR && !burni_has_recipe(t) && !stays(t)) {
            in += bytes_of(t);
        }
    }
    for (uint32_t j = 0; j < e->n_out; j++) {
        out += bytes_of(e->out[j]);
    }
    return in < 2 * out;
}

static uint32_t depth_of(const burni_emission *e)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->in[i] != NULL && burni_has_recipe(e->in[i])) {
            depth = e->in[i]->recipe->depth > depth ? e->in[i]->recipe->depth : depth;
        }
    }
    return depth + !e->op->view;
}

static int wanted(const burni_emission *e)
{
    int scope = (e->thread->watch & BURNI_WATCH_RECOMPUTE) != 0;
    uint32_t strategy = atomic_load_explicit(&e->device->core->recompute, memory_order_relaxed);
    if ((!scope && strategy != BURN_RECOMPUTE_BALANCED) || e->thread->no_grad != 0) {
        return 0;
    }
    uint32_t effect = e->op->def.effect;
    if ((effect != BURN_EFFECT_PURE && effect != BURN_EFFECT_RANDOM) || (!scope && !e->taped)) {
        return 0;
    }
    if (scope) {
        return 1;
    }
    if (e->op->view) {
        /* It has no numbers of its own: keeping it is keeping what it looks at. */
        return burni_has_recipe(e->in[0]);
    }
    return is_light(e->op) && depth_of(e) <= MAX_DEPTH && keeps_less(e);
}

static burn_tensor *keep_input(const burni_emission *e, uint32_t i)
{
    burn_tensor *t = e->in[i];
    return burni_has_recipe(t) ? burni_ghost_new(e->thread, t, 0)
                               : burni_saved_input(e->thread, t, e->meta[i].dtype,
                                                   e->immediates[i]);
}

void burni_recipe_record(burni_emission *e)
{
    if (!wanted(e)) {
        return;
    }
    burni_recipe *recipe = burni_recipe_new(e->op, e->n_in, e->n_out, e->attrs_size);
    if (recipe == NULL) {
        return;
    }
    recipe->depth = depth_of(e);
    recipe->math = e->thread->math;
    recipe->light = is_light(e->op) != 0;
    recipe->tag = e->thread->tag;
    recipe->device = e->device;
    if (e->attrs_size > 0) {
        memcpy(recipe->attrs, e->attrs, e->attrs_size);
    }
    int complete = 1;
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->in[i] != NULL) {
            recipe->in[i] = keep_input(e, i);
            complete = complete && recipe->in[i] != NULL;
        }
    }
    for (uint32_t j = 0; complete && j < e->n_out; j++) {
        burni_recipe_attach(e->out[j], j, recipe);
    }
    burni_recipe_unref(recipe);
}
