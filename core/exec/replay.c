/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * replay.c - from a window back to called ops: each node is emitted again with other inputs.
 */
#include "exec/replay.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/emit.h"
#include "exec/transfer.h"

#include <stdio.h>
#include <string.h>

/* A state's name as a C string. */
static void copy_name(const burn_window *w, const burn_window_value *v, char *out, size_t size)
{
    (void)snprintf(out, size, "%.*s", (int)v->name_size, burni_window_bytes(w, v->name_offset));
}

static burn_tensor *constant(burni_thread *thread, burn_device *device, const burn_window *w,
                             const burn_window_value *v)
{
    int64_t dims[BURN_MAX_RANK];
    for (uint32_t d = 0; d < v->rank; d++) {
        dims[d] = burni_window_dim(w, v->first_dim + d)->size;
    }
    return burni_upload(thread, device, v->dtype, v->rank, dims,
                        burni_window_bytes(w, v->name_offset));
}

static burn_tensor *immediate(burni_thread *thread, const burn_window_value *v)
{
    burn_tensor *t = burni_handle_new(thread, 1);
    if (t == NULL) {
        return burni_handle_failed(NULL, &burni_cause_no_memory);
    }
    t->kind = BURN_IMMEDIATE;
    t->dtype = v->dtype;
    t->rank = 0;
    t->numel = 1;
    t->immediate[0] = v->immediate[0];
    t->immediate[1] = v->immediate[1];
    return t;
}

static burn_tensor *state_value(const burni_replay *r, const burn_window *w,
                                const burn_window_value *v)
{
    char name[512];
    copy_name(w, v, name, sizeof(name));
    burn_tensor *t = r->state != NULL ? r->state(r->user, name) : NULL;
    if (t == NULL) {
        return burni_handle_fail(r->thread, BURN_E_NOT_FOUND, 0,
                                 "graph: it needs a state \"%s\", which nobody has", name);
    }
    return t;
}

/* A run gets the values of variables, not the variables: it could only overwrite memory that others
 * read. So a graph that writes is refused. */
static int32_t refuse_writes(const burn_window *w, burn_err *err)
{
    for (uint32_t k = 0; k < w->n_nodes; k++) {
        const burni_op *op = burni_op_find(burni_window_node(w, k)->op);
        if (op != NULL && op->def.effect >= BURN_EFFECT_STATE) {
            return burni_fail(
                err, BURN_E_UNSUPPORTED,
                "graph: node %u (%s) writes a variable, which a run cannot do; capture "
                "in evaluation mode, without the update",
                k, op->def.name);
        }
    }
    return BURN_OK;
}

static void bind_values(const burni_replay *r, const burn_window *w, burn_tensor **values)
{
    uint32_t n_inputs = 0;
    for (uint32_t i = 0; i < w->n_values; i++) {
        const burn_window_value *v = burni_window_value(w, i);
        if (v->kind == BURN_IMMEDIATE) {
            values[i] = immediate(r->thread, v);
        } else if ((v->flags & BURN_VALUE_CONST) != 0) {
            values[i] = constant(r->thread, r->device, w, v);
        } else if ((v->flags & BURN_VALUE_STATE) != 0) {
            values[i] = state_value(r, w, v);
        } else if ((v->flags & BURN_VALUE_INPUT) != 0) {
            if (n_inputs < r->n_inputs) {
                values[i] = r->inputs[n_inputs];
            }
            n_inputs++;
        }
    }
}

static void run_node(const burni_replay *r, const burn_window *w, const burn_window_node *node,
                     burn_tensor **values)
{
    burn_tensor *in[BURN_MAX_OPERANDS];
    burn_tensor *out[BURN_MAX_OPERANDS];
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t value = burni_window_use(w, node->first_use + i)->value;
        in[i] = value == BURN_USE_ABSENT ? NULL : values[value];
    }
    const void *attrs = node->attrs_size > 0 ? burni_window_bytes(w, node->attrs_offset) : NULL;
    (void)burni_emit(r->thread, r->device, burni_op_find(node->op), attrs, node->attrs_size, in,
                     node->n_in, out, node->n_out);
    for (uint32_t j = 0; j < node->n_out; j++) {
        values[burni_window_use(w, node->first_use + node->n_in + j)->value] = out[j];
    }
}

/* The results of a run are handles of its own, also where a window passes an input through. */
static burn_tensor *own_handle(const burni_replay *r, burn_tensor *t)
{
    burn_tensor *alias = t != NULL && t->kind == BURN_TENSOR && t->cause == NULL
                             ? burni_handle_alias(r->thread, t, 1)
                             : NULL;
    if (alias == NULL) {
        return t != NULL && t->cause != NULL
                   ? burni_handle_failed(r->thread, t->cause)
                   : burni_handle_fail(r->thread, BURN_E_INVALID, 0,
                                       "graph: an output is no tensor, or out of host memory");
    }
    if (t->node != NULL && r->thread->no_grad == 0) {
        alias->node = burni_node_ref(t->node);
        alias->out_index = t->out_index;
    }
    return alias;
}

int32_t burni_window_run(const burni_replay *r, const burn_window *w, burn_tensor **outputs,
                         uint32_t n_outputs, burn_err *err)
{
    burn_tensor **values = burni_calloc(w->n_values + 1u, sizeof(*values));
    if (values == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "graph: out of host memory");
    }
    burn_scope_begin();
    int32_t rc = refuse_writes(w, err);
    if (rc == BURN_OK) {
        bind_values(r, w, values);
    }
    for (uint32_t k = 0; k < w->n_nodes && rc == BURN_OK; k++) {
        run_node(r, w, burni_window_node(w, k), values);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_values && rc == BURN_OK; i++) {
        if ((burni_window_value(w, i)->flags & BURN_VALUE_OUTPUT) != 0) {
            if (n < n_outputs) {
                outputs[n] = own_handle(r, values[i]);
                rc = burn_tensor_error(outputs[n], err);
            }
            n++;
        }
    }
    if (rc == BURN_OK && n != n_outputs) {
        rc = burni_fail(err, BURN_E_INVALID, "graph: %u outputs wanted, it has %u", n_outputs, n);
    }
    burni_scope_end_inside(outputs, rc == BURN_OK ? n_outputs : 0);
    burni_free(values);
    return rc;
}
