/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * node.c - tape nodes: a DAG that hangs from handles, with no central list.
 *
 * A node is one piece of memory: the struct, then edges, saved values, metas and attributes. It is
 * released with a work list, so a chain of any length needs no stack. Saved inputs are handles;
 * saved outputs are detached aliases (a handle would hold its own node: a cycle).
 */
#include "tensor/tensor.h"

#include "base/alloc.h"

#include <string.h>

/* Nodes up to this size are recycled by the thread; an add of two rank-8 tensors fits. */
#define SMALL_NODE 640u

burni_node *burni_node_memory(size_t size)
{
    burni_thread *thread = burni_thread_current;
    burni_node *node;
    if (size <= SMALL_NODE && thread != NULL && thread->free_nodes != NULL) {
        node = thread->free_nodes;
        thread->free_nodes = node->next;
        return node;
    }
    node = burni_alloc(size <= SMALL_NODE ? SMALL_NODE : size);
    if (node != NULL) {
        node->size_class = size <= SMALL_NODE;
    }
    return node;
}

burni_node *burni_node_new(const struct burni_op *op, uint32_t n_in, uint32_t n_out,
                           uint32_t attrs_size)
{
    burni_node *node = burni_node_memory(burni_node_size(n_in, n_out, attrs_size));
    if (node != NULL) {
        burni_node_begin(node, op, n_in, n_out, attrs_size);
    }
    return node;
}

burni_node *burni_node_ref(burni_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

static int drop_ref(burni_node *node)
{
    return atomic_load_explicit(&node->refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1;
}

static void give_back(burni_node *node)
{
    burni_thread *thread = burni_thread_current;
    if (!node->size_class || thread == NULL) {
        burni_free(node);
        return;
    }
    node->next = thread->free_nodes;
    thread->free_nodes = node;
}

/* Moves the history of a dying saved value to the work list instead of recursing into it. */
static burni_node *unref_saved(burn_tensor *t, burni_node *work)
{
    if (t == NULL) {
        return work;
    }
    if (atomic_load_explicit(&t->refs, memory_order_acquire) != 1) {
        if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) {
            return work;
        }
    }
    burni_node *node = t->node;
    t->node = NULL;
    burni_handle_free(t);
    if (node != NULL && drop_ref(node)) {
        node->next = work;
        return node;
    }
    return work;
}

void burni_node_unref(burni_node *node)
{
    if (node == NULL || !drop_ref(node)) {
        return;
    }
    burni_node *work = node;
    work->next = NULL;
    while (work != NULL) {
        burni_node *n = work;
        work = n->next;
        for (uint32_t i = 0; i < n->n_in; i++) {
            if (n->saved_in[i] != NULL) {
                work = unref_saved(n->saved_in[i], work);
            }
            burni_node *parent = n->edges[i].node;
            if (parent != NULL && drop_ref(parent)) {
                parent->next = work;
                work = parent;
            }
        }
        for (uint32_t j = 0; j < n->n_out; j++) {
            work = unref_saved(n->saved_out[j], work);
        }
        give_back(n);
    }
}

void burni_node_drop_saved(burni_node *node)
{
    for (uint32_t i = 0; i < node->n_in; i++) {
        burn_tensor *t = node->saved_in[i];
        node->saved_in[i] = NULL;
        burni_handle_unref(t);
    }
    for (uint32_t j = 0; j < node->n_out; j++) {
        burn_tensor *t = node->saved_out[j];
        node->saved_out[j] = NULL;
        burni_handle_unref(t);
    }
}
