/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tape.c - recording a call: when, and what the node keeps.
 *
 * Recording follows the operands. Gradient i names the inputs and outputs that it needs; the node
 * keeps the union over the gradients that are wanted, so multiplying by a constant keeps one
 * operand. Saved outputs are detached aliases. Of values that can be made again it keeps ghosts.
 */
#include "base/error.h"
#include "exec/emit_private.h"
#include "tensor/recipe.h"

#include <string.h>

static burn_tensor *ghost_of(burni_thread *thread, const burn_tensor *t, int tracked)
{
    burn_tensor *ghost = burni_ghost_new(thread, t, tracked);
    if (ghost != NULL) {
        atomic_fetch_add_explicit(&t->recipe->asked, 1, memory_order_relaxed);
    }
    return ghost;
}

burn_tensor *burni_saved_input(burni_thread *thread, burn_tensor *t, uint8_t dtype,
                               const uint64_t bits[2])
{
    if (__builtin_expect(burni_has_recipe(t), 0)) {
        return ghost_of(thread, t, 1);
    }
    if (t->kind != BURN_IMMEDIATE || t->dtype == dtype) {
        return burni_handle_ref(t);
    }
    burn_tensor *saved = burni_handle_new(thread, 0);
    if (saved != NULL) {
        saved->kind = BURN_IMMEDIATE;
        saved->dtype = dtype;
        saved->rank = 0;
        saved->numel = 1;
        saved->immediate[0] = bits[0];
        saved->immediate[1] = bits[1];
        saved->offset = t->offset; /* its name, while a step is kept */
    }
    return saved;
}

static int wanted(const burni_emission *e, uint32_t i)
{
    return e->meta[i].kind == BURN_TENSOR && e->in[i]->node != NULL &&
           (burni_op_role_in(e->op, i)->flags & BURN_ROLE_NO_GRAD) == 0;
}

int burni_wants_tape(const burni_emission *e)
{
    if (e->thread->no_grad != 0 || !e->op->differentiable) {
        return 0;
    }
    int float_out = 0;
    for (uint32_t j = 0; j < e->n_out; j++) {
        float_out |= burn_dtype_class(e->out_meta[j].dtype) == BURN_CLASS_FLOAT &&
                     (burni_op_role_out(e->op, j)->flags & BURN_ROLE_NO_GRAD) == 0;
    }
    for (uint32_t i = 0; float_out && i < e->n_in; i++) {
        if (wanted(e, i)) {
            return 1;
        }
    }
    return 0;
}

static int save(burni_emission *e, burni_node *node, uint32_t saves)
{
    for (uint32_t i = 0; i < e->n_in && i < 16; i++) {
        if ((saves & BURN_SAVE_IN(i)) != 0 && e->in[i] != NULL) {
            node->saved_in[i] = burni_saved_input(e->thread, e->in[i], e->meta[i].dtype,
                                                  e->immediates[i]);
            if (node->saved_in[i] == NULL) {
                return 0;
            }
        }
    }
    for (uint32_t j = 0; j < e->n_out && j < 16; j++) {
        if ((saves & BURN_SAVE_OUT(j)) == 0) {
            continue;
        }
        node->saved_out[j] = burni_has_recipe(e->out[j])
                                 ? ghost_of(e->thread, e->out[j], 0)
                                 : burni_handle_alias(e->thread, e->out[j], 0);
        if (node->saved_out[j] == NULL) {
            return 0;
        }
    }
    return 1;
}

int32_t burni_tape(burni_emission *e, burn_err *err)
{
    burni_node *node = burni_node_new(e->op, e->n_in, e->n_out, e->attrs_size);
    if (node == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", e->op->def.name);
    }
    uint32_t depth = 0;
    uint32_t saves = 0;
    for (uint32_t i = 0; i < e->n_in; i++) {
        node->in_meta[i] = e->meta[i];
        if (!wanted(e, i)) {
            continue;
        }
        burni_node *parent = e->in[i]->node;
        node->edges[i].node = burni_node_ref(parent);
        node->edges[i].out_index = e->in[i]->out_index;
        depth = parent->depth > depth ? parent->depth : depth;
        uint32_t role = i < e->op->def.n_in ? i : e->op->def.n_in - 1u;
        saves |= e->op->def.vjp_saves != NULL ? e->op->def.vjp_saves[role] : 0;
    }
    node->depth = depth + 1;
    node->tag = e->thread->tag;
    if (e->attrs_size > 0) {
        memcpy(node->attrs, e->attrs, e->attrs_size);
    }
    memcpy(node->out_meta, e->out_meta, e->n_out * sizeof(burn_meta));
    burni_recipe_record(e);
    if (!save(e, node, saves)) {
        burni_node_unref(node);
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", e->op->def.name);
    }
    for (uint32_t j = 0; j < e->n_out; j++) {
        int carries = burn_dtype_class(e->out_meta[j].dtype) == BURN_CLASS_FLOAT &&
                      (burni_op_role_out(e->op, j)->flags & BURN_ROLE_NO_GRAD) == 0;
        if (carries) {
            e->out[j]->node = burni_node_ref(node);
            e->out[j]->out_index = j;
        }
    }
    burni_node_unref(node);
    return BURN_OK;
}
