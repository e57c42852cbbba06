/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recompute.c - running recipes for a pass. See recompute.h.
 *
 * What a value needs is found with an explicit stack, so a scope of any length needs no deep C
 * stack. Calls run again under the math mode and the tag of the first time, with "recomputed"
 * behind the tag: that is how profiles and the texts of late failures tell them apart.
 */
#include "grad/recompute.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/tag.h"
#include "exec/emit.h"

/* ---- what the pass has run ------------------------------------------------------------------- */

/* The recipe itself, or this pass's copy of it, when it has run. */
static burni_recipe *find(const burni_rerun *rerun, burni_recipe *recipe)
{
    if (atomic_load_explicit(&recipe->owner, memory_order_acquire) == rerun) {
        return recipe;
    }
    /* Another pass has it, or had it when a copy was made here. */
    for (burni_recipe *r = rerun->copies > 0 ? rerun->first : NULL; r != NULL; r = r->next) {
        if (r->of == recipe) {
            return r;
        }
    }
    return NULL;
}

static burni_recipe *copy_of(burni_recipe *recipe)
{
    burni_recipe *copy = burni_recipe_new(recipe->op, recipe->n_in, recipe->n_out, 0);
    if (copy == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < recipe->n_in; i++) {
        copy->in[i] = recipe->in[i] != NULL ? burni_handle_ref(recipe->in[i]) : NULL;
    }
    atomic_store_explicit(&copy->asked, 1, memory_order_relaxed);
    copy->attrs = recipe->attrs;
    copy->attrs_size = recipe->attrs_size;
    copy->math = recipe->math;
    copy->tag = recipe->tag;
    copy->device = recipe->device;
    copy->of = burni_recipe_ref(recipe); /* and with it the attributes */
    return copy;
}

/* Takes the recipe for this pass, or a copy where another one has it. NULL: no memory. */
static burni_recipe *claim(burni_rerun *rerun, burni_recipe *recipe)
{
    const void *nobody = NULL;
    burni_recipe *mine = recipe;
    if (atomic_compare_exchange_strong(&recipe->owner, &nobody, rerun)) {
        (void)burni_recipe_ref(recipe);
    } else {
        mine = copy_of(recipe);
        if (mine == NULL) {
            return NULL;
        }
        atomic_store(&mine->owner, rerun);
        rerun->copies++;
    }
    mine->previous = NULL;
    mine->next = rerun->first;
    if (rerun->first != NULL) {
        rerun->first->previous = mine;
    }
    rerun->first = mine;
    return mine;
}

/* Gives a recipe up, and the values it has. */
static void drop(burni_rerun *rerun, burni_recipe *recipe)
{
    if (recipe->previous != NULL) {
        recipe->previous->next = recipe->next;
    } else {
        rerun->first = recipe->next;
    }
    if (recipe->next != NULL) {
        recipe->next->previous = recipe->previous;
    }
    if (rerun->settled == recipe) {
        rerun->settled = recipe->next;
    }
    for (uint32_t j = 0; j < recipe->n_out; j++) {
        burn_tensor *value = recipe->out[j];
        recipe->out[j] = NULL;
        burni_handle_unref(value);
    }
    atomic_store_explicit(&recipe->owner, NULL, memory_order_release);
    burni_recipe_unref(recipe);
}

/* ---- running --------------------------------------------------------------------------------- */

static int push(burni_rerun *rerun, burni_recipe *recipe)
{
    if (rerun->n == rerun->cap) {
        uint32_t cap = rerun->cap > 0 ? 2 * rerun->cap : 32;
        burni_recipe **stack = burni_realloc(rerun->stack, cap * sizeof(burni_recipe *));
        if (stack == NULL) {
            return 0;
        }
        rerun->stack = stack;
        rerun->cap = cap;
    }
    rerun->stack[rerun->n++] = recipe;
    return 1;
}

/* An input whose value has to be made first, or NULL. */
static burni_recipe *missing(const burni_rerun *rerun, const burni_recipe *recipe)
{
    for (uint32_t i = 0; i < recipe->n_in; i++) {
        if (burni_is_ghost(recipe->in[i]) && find(rerun, recipe->in[i]->recipe) == NULL) {
            return recipe->in[i]->recipe;
        }
    }
    return NULL;
}

static int32_t emit_again(burni_rerun *rerun, burni_recipe *recipe, burn_err *err)
{
    burni_thread *thread = rerun->thread;
    burn_tensor *in[BURN_MAX_OPERANDS];
    burn_tensor *out[BURN_MAX_OPERANDS];
    for (uint32_t i = 0; i < recipe->n_in; i++) {
        const burn_tensor *t = recipe->in[i];
        in[i] = burni_is_ghost(t) ? find(rerun, t->recipe)->out[t->out_index] : recipe->in[i];
    }
    uint32_t math = thread->math;
    uint64_t tag = thread->tag;
    thread->math = recipe->math;
    thread->tag = burni_tag_child(recipe->tag, "recomputed");
    thread->no_grad++;
    thread->remaking++;
    burn_scope_begin();
    int32_t rc = burni_emit(thread, recipe->device, recipe->op, recipe->attrs, recipe->attrs_size,
                            in, recipe->n_in, out, recipe->n_out);
    for (uint32_t j = 0; j < recipe->n_out && rc == BURN_OK; j++) {
        recipe->out[j] = burni_handle_ref(out[j]);
    }
    if (rc != BURN_OK) {
        (void)burn_tensor_error(out[0], err);
    }
    burni_scope_end_inside(NULL, 0);
    thread->remaking--;
    thread->no_grad--;
    thread->tag = tag;
    thread->math = math;
    return rc;
}

/* `run` stays as long as anybody can ask for it: what only it needed has served. */
static void drop_served(burni_rerun *rerun, burni_recipe *run)
{
    uint32_t base = rerun->n;
    burni_recipe *r = run;
    while (r != NULL) {
        for (uint32_t i = 0; i < r->n_in; i++) {
            burni_recipe *q = burni_is_ghost(r->in[i]) ? r->in[i]->recipe : NULL;
            if (q != NULL && atomic_load(&q->owner) == rerun && atomic_load(&q->asked) == 0 &&
                atomic_load(&q->refs) == 2 && push(rerun, q)) {
                drop(rerun, q);
            }
        }
        r = rerun->n > base ? rerun->stack[--rerun->n] : NULL;
    }
}

static int32_t run(burni_rerun *rerun, burni_recipe *recipe, const char *wanted_by, burn_err *err)
{
    burni_recipe *mine = claim(rerun, recipe);
    if (mine == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "backward: out of host memory");
    }
    burni_frame frame;
    int watched = rerun->thread->watch != 0;
    if (watched) {
        burni_frame_open(rerun->thread, &frame, "recomputed for the gradient of ", wanted_by);
    }
    int32_t rc = emit_again(rerun, mine, err);
    if (watched) {
        burni_frame_close(rerun->thread, &frame);
    }
    if (rc != BURN_OK) {
        burni_prefix(err, "recomputing %s for the gradient of %s", mine->op->def.name, wanted_by);
        drop(rerun, mine);
    } else if (!mine->light || atomic_load(&mine->asked) != 0) {
        drop_served(rerun, mine);
    }
    return rc;
}

burn_tensor *burni_rerun_value(burni_rerun *rerun, const burn_tensor *ghost, const char *wanted_by,
                               burn_err *err)
{
    rerun->n = 0;
    int room = find(rerun, ghost->recipe) != NULL || push(rerun, ghost->recipe);
    int32_t rc = BURN_OK;
    while (rerun->n > 0 && room && rc == BURN_OK) {
        burni_recipe *recipe = rerun->stack[rerun->n - 1];
        burni_recipe *first = find(rerun, recipe) != NULL ? NULL : missing(rerun, recipe);
        if (first != NULL) {
            room = push(rerun, first);
            continue;
        }
        rerun->n--;
        if (find(rerun, recipe) == NULL) {
            rc = run(rerun, recipe, wanted_by, err);
        }
    }
    if (!room) {
        rc = burni_fail(err, BURN_E_NO_MEMORY, "backward: out of host memory");
    }
    return rc == BURN_OK ? find(rerun, ghost->recipe)->out[ghost->out_index] : NULL;
}

/* ---- dropping -------------------------------------------------------------------------------- */

void burni_rerun_settle(burni_rerun *rerun)
{
    burni_recipe *next = NULL;
    for (burni_recipe *r = rerun->first; r != rerun->settled; r = next) {
        next = r->next;
        if (r->light && atomic_load_explicit(&r->asked, memory_order_relaxed) == 0) {
            drop(rerun, r);
        }
    }
    rerun->settled = rerun->first;
}

/* Unrefs what is on the stack, and gives up what only this pass still holds. */
static void release_stacked(burni_rerun *rerun)
{
    while (rerun->n > 0) {
        burni_recipe *r = rerun->stack[--rerun->n];
        int mine = atomic_load(&r->owner) == rerun;
        int alone = atomic_load(&r->refs) == 1u + (uint32_t)mine;
        for (uint32_t i = 0; alone && i < r->n_in; i++) {
            burn_tensor *t = r->in[i];
            if (burni_is_ghost(t) && push(rerun, t->recipe)) {
                (void)burni_recipe_ref(t->recipe);
                r->in[i] = NULL;
                burni_handle_unref(t);
            }
        }
        if (alone && mine) {
            drop(rerun, r);
        }
        burni_recipe_unref(r);
    }
}

static void drop_ghost(burni_rerun *rerun, burn_tensor **slot)
{
    burn_tensor *t = *slot;
    if (!push(rerun, t->recipe)) {
        return;
    }
    (void)burni_recipe_ref(t->recipe);
    *slot = NULL;
    burni_handle_unref(t);
    release_stacked(rerun);
}

void burni_rerun_drop_saved(burni_rerun *rerun, burni_node *node)
{
    rerun->n = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (burni_is_ghost(node->saved_in[i])) {
            drop_ghost(rerun, &node->saved_in[i]);
        }
    }
    for (uint32_t j = 0; j < node->n_out; j++) {
        if (burni_is_ghost(node->saved_out[j])) {
            drop_ghost(rerun, &node->saved_out[j]);
        }
    }
    burni_node_drop_saved(node);
}

void burni_rerun_end(burni_rerun *rerun)
{
    while (rerun->first != NULL) {
        drop(rerun, rerun->first);
    }
    burni_free(rerun->stack);
}
