/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * capture.c - from called ops to a window.
 *
 * Values are told apart by handle; a fresh handle that shows the same elements as an earlier value
 * (an alias, the same variable read twice) is that value. Ops that no output needs are left out,
 * unless they have an effect.
 */
#include "graph/capture.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

typedef struct captured_value {
    burn_tensor *t; /* a reference */
    uint32_t flags;
    uint32_t needed;
    uint32_t number; /* 1 + which input, or which output; 0: neither */
    char name[128];
} captured_value;

typedef struct captured_node {
    const burni_op *op;
    void *attrs;
    uint32_t attrs_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t first_use;
    uint32_t needed;
} captured_node;

struct burni_capture {
    captured_value *values;
    captured_node *nodes;
    uint32_t *uses; /* value index, or BURN_USE_ABSENT */
    uint32_t n_values, cap_values;
    uint32_t n_nodes, cap_nodes;
    uint32_t n_uses, cap_uses;
    uint32_t n_inputs;
    int32_t failed;
};

burni_capture *burni_capture_new(void)
{
    return burni_calloc(1, sizeof(burni_capture));
}

void burni_capture_free(burni_capture *c)
{
    if (c == NULL) {
        return;
    }
    for (uint32_t i = 0; i < c->n_values; i++) {
        burni_handle_unref(c->values[i].t);
    }
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        burni_free(c->nodes[i].attrs);
    }
    burni_free(c->values);
    burni_free(c->nodes);
    burni_free(c->uses);
    burni_free(c);
}

/* Room for one more element of an array; 0 when memory is short. */
static int reserve(void **array, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return 1;
    }
    uint32_t grown = *cap > 0 ? 2 * *cap : 64;
    void *p = burni_realloc(*array, grown * size);
    if (p == NULL) {
        return 0;
    }
    *array = p;
    *cap = grown;
    return 1;
}

static int same_elements(const burn_tensor *a, const burn_tensor *b)
{
    if (a == b) {
        return 1;
    }
    if (a->kind != BURN_TENSOR || b->kind != BURN_TENSOR || a->storage != b->storage ||
        a->offset != b->offset || a->rank != b->rank || a->dtype != b->dtype) {
        return 0;
    }
    return memcmp(a->dims, b->dims, a->rank * sizeof(int64_t)) == 0 &&
           memcmp(a->strides, b->strides, a->rank * sizeof(int64_t)) == 0;
}

static uint32_t value_of(burni_capture *c, burn_tensor *t, uint32_t flags)
{
    for (uint32_t i = c->n_values; i-- > 0;) {
        if (same_elements(c->values[i].t, t)) {
            return i;
        }
    }
    if (!reserve((void **)&c->values, c->n_values, &c->cap_values, sizeof(captured_value))) {
        c->failed = 1;
        return 0;
    }
    captured_value *v = &c->values[c->n_values];
    memset(v, 0, sizeof(*v));
    v->t = burni_handle_ref(t);
    v->flags = flags;
    if (t->kind == BURN_IMMEDIATE) {
        v->flags = BURN_VALUE_VOLATILE;
    } else if (flags == 0) {
        v->flags = t->storage->is_var ? BURN_VALUE_STATE : BURN_VALUE_CONST;
    }
    return c->n_values++;
}

static void add_use(burni_capture *c, uint32_t value)
{
    if (!reserve((void **)&c->uses, c->n_uses, &c->cap_uses, sizeof(uint32_t))) {
        c->failed = 1;
        return;
    }
    c->uses[c->n_uses++] = value;
}

void burni_capture_op(burni_capture *c, const burni_op *op, const void *attrs, uint32_t attrs_size,
                      burn_tensor *const *in, uint32_t n_in, burn_tensor *const *out,
                      uint32_t n_out)
{
    if (c->failed ||
        !reserve((void **)&c->nodes, c->n_nodes, &c->cap_nodes, sizeof(captured_node))) {
        c->failed = 1;
        return;
    }
    captured_node *node = &c->nodes[c->n_nodes];
    memset(node, 0, sizeof(*node));
    node->op = op;
    node->n_in = n_in;
    node->n_out = n_out;
    node->first_use = c->n_uses;
    node->attrs_size = attrs_size;
    if (attrs_size > 0) {
        node->attrs = burni_alloc(attrs_size);
        if (node->attrs == NULL) {
            c->failed = 1;
            return;
        }
        memcpy(node->attrs, attrs, attrs_size);
    }
    c->n_nodes++;
    for (uint32_t i = 0; i < n_in; i++) {
        add_use(c, in[i] != NULL ? value_of(c, in[i], 0) : BURN_USE_ABSENT);
    }
    for (uint32_t j = 0; j < n_out; j++) {
        add_use(c, value_of(c, out[j], BURN_VALUE_TEMP));
    }
}

int32_t burni_capture_input(burni_capture *c, burn_tensor *t, const char *name)
{
    uint32_t i = value_of(c, t, BURN_VALUE_INPUT);
    if (c->failed) {
        return BURN_E_NO_MEMORY;
    }
    c->values[i].flags = BURN_VALUE_INPUT;
    c->values[i].needed = 1;
    if (c->values[i].number == 0) {
        c->values[i].number = ++c->n_inputs;
    }
    (void)snprintf(c->values[i].name, sizeof(c->values[i].name), "%s", name);
    return BURN_OK;
}

uint32_t burni_capture_made(const burni_capture *c, const burn_tensor *t)
{
    for (uint32_t i = c->n_values; i-- > 0;) {
        if (same_elements(c->values[i].t, t)) {
            return c->values[i].flags == BURN_VALUE_TEMP ? i + 1 : 0;
        }
    }
    return 0;
}

/* ---- to a window ----------------------------------------------------------------------------- */

/* From the outputs backwards: which nodes and values are needed. */
static void mark(burni_capture *c)
{
    for (uint32_t k = c->n_nodes; k-- > 0;) {
        captured_node *node = &c->nodes[k];
        const uint32_t *use = &c->uses[node->first_use];
        node->needed = node->op->def.effect > BURN_EFFECT_RANDOM;
        for (uint32_t j = 0; j < node->n_out; j++) {
            node->needed |= c->values[use[node->n_in + j]].needed;
        }
        for (uint32_t i = 0; node->needed && i < node->n_in + node->n_out; i++) {
            if (use[i] != BURN_USE_ABSENT) {
                c->values[use[i]].needed = 1;
            }
        }
    }
}

/* Bytes that are laid out in two passes: the first counts, the second writes. */
typedef struct writer {
    char *base; /* NULL while counting */
    burn_window *w;
    uint32_t n_values, n_nodes, n_uses, n_dims, bytes;
    uint32_t *renumbered;
    uint32_t *order; /* which captured value comes next */
    uint32_t n_order;
} writer;

/* Inputs in the order of their declaration, then what is between, then outputs as they were listed:
 * whoever runs the window counts inputs and outputs in the order of values. */
static void put_in_order(writer *p, const burni_capture *c)
{
    p->n_order = 0;
    for (uint32_t pass = 0; pass < 3; pass++) {
        uint32_t first = p->n_order;
        for (uint32_t i = 0; i < c->n_values; i++) {
            const captured_value *v = &c->values[i];
            uint32_t kind = (v->flags & BURN_VALUE_INPUT) != 0    ? 0
                            : (v->flags & BURN_VALUE_OUTPUT) != 0 ? 2
                                                                  : 1;
            if (!v->needed || kind != pass) {
                continue;
            }
            uint32_t at = p->n_order++;
            while (at > first && v->number < c->values[p->order[at - 1]].number) {
                p->order[at] = p->order[at - 1];
                at--;
            }
            p->order[at] = i;
        }
    }
}

static uint32_t put_bytes(writer *p, const void *bytes, uint32_t size)
{
    uint32_t at = p->bytes;
    if (p->base != NULL && size > 0) {
        memcpy(p->base + p->w->bytes_offset + at, bytes, size);
    }
    p->bytes += (size + 7u) & ~7u;
    return at;
}

/* Offsets in a window have 32 bits; this leaves room for everything else. */
#define MAX_CONSTANT_BYTES (UINT64_C(1) << 30)

static int32_t put_data(writer *p, const captured_value *v, const burni_capture_names *names,
                        burn_window_value *out, burn_err *err)
{
    const burn_tensor *t = v->t;
    uint64_t size = (uint64_t)t->numel * burn_dtype_size(t->dtype);
    if (size + p->bytes > MAX_CONSTANT_BYTES) {
        return burni_fail(
            err, BURN_E_LIMIT,
            "capture: constants of more than %llu bytes, the last has %llu; make it a "
            "variable of the module",
            (unsigned long long)MAX_CONSTANT_BYTES, (unsigned long long)size);
    }
    out->name_offset = p->bytes;
    out->name_size = (uint32_t)size;
    if (p->base != NULL) {
        int32_t rc =
            names->bytes(names->user, t, p->base + p->w->bytes_offset + p->bytes, size, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    p->bytes += ((uint32_t)size + 7u) & ~7u;
    return BURN_OK;
}

static int32_t put_name(writer *p, const captured_value *v, const burni_capture_names *names,
                        burn_window_value *out, burn_err *err)
{
    const char *name = v->name;
    if ((v->flags & BURN_VALUE_STATE) != 0) {
        name = names->state != NULL ? names->state(names->user, v->t->storage) : NULL;
        if (name == NULL) {
            return burni_fail(err, BURN_E_NOT_FOUND,
                              "capture: a variable is used that the module does not hold, or was "
                              "written meanwhile; capture in evaluation mode "
                              "(burn_module_set_training)");
        }
    }
    out->name_size = (uint32_t)strlen(name);
    out->name_offset = put_bytes(p, name, out->name_size);
    return BURN_OK;
}

static int32_t put_value(writer *p, const captured_value *v, const burni_capture_names *names,
                         burn_err *err)
{
    burn_window_value out;
    memset(&out, 0, sizeof(out));
    const burn_tensor *t = v->t;
    out.kind = t->kind;
    out.dtype = t->dtype;
    out.rank = t->rank;
    out.layout = BURN_LAYOUT_CONTIGUOUS;
    out.flags = v->flags;
    out.first_dim = p->n_dims;
    int32_t rc = BURN_OK;
    if (t->kind == BURN_IMMEDIATE) {
        out.immediate[0] = t->immediate[0];
        out.immediate[1] = t->immediate[1];
    } else if ((v->flags & BURN_VALUE_CONST) != 0) {
        rc = put_data(p, v, names, &out, err);
    } else {
        rc = put_name(p, v, names, &out, err);
    }
    int64_t stride = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        if (p->base != NULL) {
            burn_window_dim *dim = (burn_window_dim *)(void *)(p->base + p->w->dims_offset);
            dim[p->n_dims + d].size = t->dims[d];
            dim[p->n_dims + d].stride = stride;
            dim[p->n_dims + d].bound = t->dims[d];
        }
        stride *= t->dims[d];
    }
    p->n_dims += t->rank;
    if (p->base != NULL) {
        memcpy(p->base + p->w->values_offset + p->n_values * sizeof(out), &out, sizeof(out));
    }
    p->n_values++;
    return rc;
}

static void put_node(writer *p, const burni_capture *c, const captured_node *node)
{
    burn_window_node out;
    memset(&out, 0, sizeof(out));
    out.op = node->op->def.id;
    out.revision = node->op->def.revision;
    out.first_use = p->n_uses;
    out.n_in = node->n_in;
    out.n_out = node->n_out;
    out.attrs_size = node->attrs_size;
    out.attrs_offset = put_bytes(p, node->attrs, node->attrs_size);
    for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
        if (p->base != NULL) {
            uint32_t value = c->uses[node->first_use + i];
            burn_window_use *use = (burn_window_use *)(void *)(p->base + p->w->uses_offset);
            use[p->n_uses].value =
                value == BURN_USE_ABSENT ? BURN_USE_ABSENT : p->renumbered[value];
        }
        p->n_uses++;
    }
    if (p->base != NULL) {
        memcpy(p->base + p->w->nodes_offset + p->n_nodes * sizeof(out), &out, sizeof(out));
    }
    p->n_nodes++;
}

static int32_t write_all(writer *p, burni_capture *c, const burni_capture_names *names,
                         burn_err *err)
{
    p->n_values = 0;
    p->n_nodes = 0;
    p->n_uses = 0;
    p->n_dims = 0;
    p->bytes = 0;
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < p->n_order && rc == BURN_OK; i++) {
        p->renumbered[p->order[i]] = p->n_values;
        rc = put_value(p, &c->values[p->order[i]], names, err);
    }
    for (uint32_t k = 0; k < c->n_nodes && rc == BURN_OK; k++) {
        if (c->nodes[k].needed) {
            put_node(p, c, &c->nodes[k]);
        }
    }
    return rc;
}

uint64_t burni_window_hash(const burn_window *w)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const unsigned char *p = (const unsigned char *)(w + 1);
    for (uint64_t i = 0; i < w->total_size - sizeof(*w); i++) {
        hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

/* Ids, dtypes, ranks, uses and attributes only: equal for other sizes and immediates. */
static uint64_t relative_hash(const burni_capture *c)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t k = 0; k < c->n_nodes; k++) {
        const captured_node *node = &c->nodes[k];
        if (!node->needed) {
            continue;
        }
        hash = (hash ^ node->op->def.id) * UINT64_C(1099511628211);
        for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
            uint32_t value = c->uses[node->first_use + i];
            uint64_t what = value == BURN_USE_ABSENT
                                ? 0
                                : (uint64_t)(node->first_use + i - value) << 16 |
                                      (uint64_t)c->values[value].t->dtype << 8 |
                                      c->values[value].t->rank;
            hash = (hash ^ what) * UINT64_C(1099511628211);
        }
    }
    return hash;
}

static burn_window *lay_out(writer *p, burn_err *err)
{
    burn_window head;
    memset(&head, 0, sizeof(head));
    head.magic = BURN_WINDOW_MAGIC;
    head.version = BURN_WINDOW_VERSION;
    head.n_values = p->n_values;
    head.value_stride = sizeof(burn_window_value);
    head.n_nodes = p->n_nodes;
    head.node_stride = sizeof(burn_window_node);
    head.n_uses = p->n_uses;
    head.use_stride = sizeof(burn_window_use);
    head.n_dims = p->n_dims;
    head.dim_stride = sizeof(burn_window_dim);
    uint64_t at = sizeof(burn_window);
    head.values_offset = (uint32_t)at;
    at += (uint64_t)p->n_values * sizeof(burn_window_value);
    head.nodes_offset = (uint32_t)at;
    at += (uint64_t)p->n_nodes * sizeof(burn_window_node);
    head.uses_offset = (uint32_t)at;
    at += (uint64_t)p->n_uses * sizeof(burn_window_use);
    head.dims_offset = (uint32_t)at;
    at += (uint64_t)p->n_dims * sizeof(burn_window_dim);
    head.bytes_offset = (uint32_t)at;
    head.bytes_size = p->bytes;
    head.total_size = at + p->bytes;
    burn_window *w = head.total_size <= UINT32_MAX ? burni_calloc(1, head.total_size) : NULL;
    if (w == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "capture: no memory for a window of %llu bytes",
                         (unsigned long long)head.total_size);
        return NULL;
    }
    *w = head;
    return w;
}

burn_window *burni_capture_finish(burni_capture *c, burn_tensor *const *outputs, uint32_t n,
                                  const burni_capture_names *names, burn_err *err)
{
    for (uint32_t j = 0; j < n; j++) {
        if (outputs[j] == NULL || outputs[j]->cause != NULL || outputs[j]->kind != BURN_TENSOR) {
            if (outputs[j] != NULL && outputs[j]->cause != NULL) {
                burni_cause_write(outputs[j]->cause, err);
            } else {
                (void)burni_fail(err, BURN_E_INVALID, "capture: output %u is no tensor", j);
            }
            return NULL;
        }
        uint32_t i = value_of(c, outputs[j], 0);
        if (c->failed) {
            break;
        }
        c->values[i].needed = 1;
        c->values[i].flags |= BURN_VALUE_OUTPUT;
        c->values[i].number = j + 1;
        if (c->values[i].name[0] == '\0') {
            (void)snprintf(c->values[i].name, sizeof(c->values[i].name), "%u", j);
        }
    }
    writer p;
    memset(&p, 0, sizeof(p));
    p.renumbered = burni_calloc(c->n_values + 1u, 2 * sizeof(uint32_t));
    if (c->failed || p.renumbered == NULL) {
        burni_free(p.renumbered);
        (void)burni_fail(err, BURN_E_NO_MEMORY, "capture: out of host memory");
        return NULL;
    }
    p.order = p.renumbered + c->n_values;
    mark(c);
    put_in_order(&p, c);
    burn_window *w = NULL;
    if (write_all(&p, c, names, err) == BURN_OK) {
        w = lay_out(&p, err);
    }
    if (w != NULL) {
        p.base = (char *)w;
        p.w = w;
        if (write_all(&p, c, names, err) != BURN_OK) {
            burni_free(w);
            w = NULL;
        } else {
            w->hash_relative = relative_hash(c);
            w->hash_absolute = burni_window_hash(w);
        }
    }
    burni_free(p.renumbered);
    return w;
}
