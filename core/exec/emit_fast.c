/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emit_fast.c - the short way of pointwise ops: dense operands of one shape, or scalars.
 *
 * It makes the same launch as emit.c would, from an exact key of dtypes and layouts, without metas,
 * callbacks or copies of dims. Whatever is unusual (a failure, another shape or layout, a kernel
 * that is not known yet) makes it answer 0 before anything was changed, and emit.c does the call.
 */
#include "exec/emit_private.h"
#include "exec/follow.h"
#include "exec/launch.h"
#include "exec/rows.h"

#include <string.h>

static const int64_t unit_stride[1] = {1};
static const int64_t no_stride[1] = {0};

/* Same dims? */
static inline int same_shape(const burn_tensor *a, const burn_tensor *b)
{
    if (a->rank != b->rank) {
        return 0;
    }
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d]) {
            return 0;
        }
    }
    return 1;
}

/*
 * Looks at the inputs once: the one that has the shape of the output, the key of their dtypes and
 * kinds, and which of them are tracked. NULL when the short way does not apply.
 */
static inline const burn_tensor *look(burn_tensor *const *in, uint32_t n_in, uint64_t *out_key,
                                      uint32_t *out_tracked)
{
    const burn_tensor *lead = NULL;
    uint64_t key = 1;
    uint32_t tracked = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        const burn_tensor *t = in[i];
        if (t == NULL || t->cause != NULL || (t->flags & BURNI_MOVED) != 0) {
            return NULL;
        }
        key = key << 8 | t->dtype;
        if (t->kind == BURN_IMMEDIATE) {
            key |= 0x80u;
            continue;
        }
        if ((t->flags & BURNI_CONTIGUOUS) == 0) {
            return NULL;
        }
        tracked |= (uint32_t)(t->node != NULL) << i;
        if (lead == NULL) {
            lead = t;
        } else if (t->device->core != lead->device->core || !same_shape(t, lead)) {
            return NULL;
        }
    }
    *out_key = key;
    *out_tracked = tracked;
    return lead;
}

static void describe(burn_operand *o, uint8_t kind, uint8_t dtype, int one)
{
    memset(o, 0, sizeof(*o));
    o->strides = kind == BURN_IMMEDIATE ? no_stride : unit_stride;
    o->kind = kind;
    o->dtype = dtype;
    /* One element is rank 0 after coalescing, as in describe.c. */
    o->rank = !one;
    o->layout = kind == BURN_IMMEDIATE && !one ? BURN_LAYOUT_SCALAR : BURN_LAYOUT_CONTIGUOUS;
}

/* Same rules as take_operands in emit.c, for dtypes that need no conversion or a plain scalar. */
static int check_roles(const burni_op *op, burn_tensor *const *in, uint32_t n_in, uint8_t *dtypes,
                       const burn_tensor *lead)
{
    for (uint32_t i = 0; i < n_in; i++) {
        const burn_role *role = &op->def.roles[i];
        uint8_t dtype = in[i]->dtype;
        if (in[i]->kind == BURN_IMMEDIATE) {
            uint64_t set = role->dtypes[0];
            int tied = role->same_dtype_as != 0 || (set & (set - 1)) != 0;
            dtype = lead->dtype;
            if ((role->flags & BURN_ROLE_IMMEDIATE) == 0 || !tied) {
                return 0;
            }
        } else if (role->same_dtype_as != 0 && in[role->same_dtype_as - 1u]->kind == BURN_TENSOR &&
                   in[role->same_dtype_as - 1u]->dtype != dtype) {
            return 0;
        }
        if (role->dtypes[0] != 0 && (role->dtypes[0] >> dtype & 1) == 0) {
            return 0;
        }
        dtypes[i] = dtype;
    }
    return 1;
}

static uint8_t output_dtype(const burni_op *op, const uint8_t *dtypes)
{
    const burn_role *role = &op->def.roles[op->def.n_in];
    if (role->same_dtype_as != 0) {
        return dtypes[role->same_dtype_as - 1u];
    }
    uint64_t set = role->dtypes[0];
    return set != 0 && (set & (set - 1)) == 0 ? (uint8_t)__builtin_ctzll(set) : BURN_DTYPE_NONE;
}

/* Inputs whose roles carry a gradient. */
static uint32_t carriers(const burni_op *op, uint32_t n_in)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n_in && op->differentiable; i++) {
        mask |= (uint32_t)((op->def.roles[i].flags & BURN_ROLE_NO_GRAD) == 0) << i;
    }
    return mask;
}

/* Finds out what a new key means; 0 when it is not for the short way. Apart, for it is rare and the
 * registers are few. */
__attribute__((noinline)) static int learn(burni_stream *stream, const burni_op *op,
                                           burn_tensor *const *in, uint32_t n_in,
                                           const burn_tensor *lead, uint64_t key)
{
    burni_fast *fast = &stream->resolver.fast[op->index];
    uint8_t dtypes[BURNI_FAST_IN + 1];
    burn_operand operands[BURNI_FAST_IN + 1];
    uint64_t immediates[2] = {0, 0};
    uint32_t mask = 0;
    int64_t n = lead->numel;
    if (!check_roles(op, in, n_in, dtypes, lead)) {
        return 0;
    }
    dtypes[n_in] = output_dtype(op, dtypes);
    if (dtypes[n_in] == BURN_DTYPE_NONE) {
        return 0;
    }
    for (uint32_t i = 0; i <= n_in; i++) {
        uint8_t kind = i < n_in ? in[i]->kind : BURN_TENSOR;
        describe(&operands[i], kind, dtypes[i], n == 1);
        operands[i].dims = &n;
        operands[i].data = kind == BURN_IMMEDIATE ? immediates : NULL;
        mask |= (uint32_t)(kind == BURN_IMMEDIATE) << i;
    }
    burn_call call;
    memset(&call, 0, sizeof(call));
    call.struct_size = sizeof(call);
    call.operand_stride = sizeof(burn_operand);
    call.n_in = n_in;
    call.n_out = 1;
    call.operands = operands;
    const burni_resolved *r = burni_resolve(&stream->resolver, stream->device, op, &call, NULL);
    /* Only rows without conditions beyond the key may be remembered this way. */
    if (r == NULL || r->row == NULL || r->copy_mask != 0 || r->row->n_guards != 0 ||
        burni_rows_of(stream->device, op)->key_dims) {
        return 0;
    }
    fast->key = key;
    fast->tapes = op->def.vjp != NULL && burn_dtype_class(dtypes[n_in]) == BURN_CLASS_FLOAT &&
                  atomic_load_explicit(&stream->device->recompute, memory_order_relaxed) ==
                      BURN_RECOMPUTE_NONE;
    fast->resolved = r;
    fast->immediates = mask;
    fast->grads = carriers(op, n_in) & ~mask;
    for (uint32_t i = 0; i <= n_in; i++) {
        fast->operands[i] = operands[i];
        fast->operands[i].dims = &fast->extent;
        fast->sizes[i] = (uint8_t)burn_dtype_size(dtypes[i]);
    }
    burni_ready_make(&fast->ready, r, fast->operands, n_in, NULL, 0, 0);
    return 1;
}

/* The meta of a tensor of the output's shape, or of a scalar, in the dtype that the op takes. */
static inline void write_meta(burn_meta *meta, const burn_tensor *t, uint8_t dtype)
{
    uint32_t head = burni_handle_head(t);
    memcpy(&meta->kind, &head, sizeof(head));
    meta->flags = 0;
    meta->dtype = dtype;
    meta->zero = 0;
    meta->dims[0] = t->dims[0]; /* nearly always all of them */
    for (uint32_t d = 1; d < t->rank; d++) {
        meta->dims[d] = t->dims[d];
    }
}

/* Tape node for the common case: every tensor has the output's shape. Inlined where the number of
 * inputs is known, so that no loop over them is left. */
static inline __attribute__((always_inline)) burni_node *
make_node(burni_thread *thread, const burni_op *op, burn_tensor *const *in, uint32_t n_in,
          const burn_tensor *out, const burni_fast *fast, uint64_t (*immediates)[2])
{
    burni_node *node = burni_node_memory(burni_node_size(n_in, 1, 0));
    if (node == NULL) {
        return NULL;
    }
    burni_node_begin(node, op, n_in, 1, 0);
    uint32_t depth = 0;
    uint32_t saves = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        burn_tensor *t = in[i];
        if (t->kind == BURN_TENSOR && t->node != NULL) {
            node->edges[i].node = burni_node_ref(t->node);
            node->edges[i].out_index = t->out_index;
            depth = t->node->depth > depth ? t->node->depth : depth;
            saves |= op->def.vjp_saves != NULL ? op->def.vjp_saves[i] : 0;
        }
        write_meta(&node->in_meta[i], t, fast->operands[i].dtype);
    }
    write_meta(&node->out_meta[0], out, out->dtype);
    node->depth = depth + 1;
    node->tag = thread->tag;
    if (saves != 0) {
        for (uint32_t i = 0; i < n_in; i++) {
            if ((saves & BURN_SAVE_IN(i)) != 0) {
                node->saved_in[i] =
                    burni_saved_input(thread, in[i], fast->operands[i].dtype, immediates[i]);
                if (node->saved_in[i] == NULL) {
                    burni_node_unref(node);
                    return NULL;
                }
            }
        }
        if ((saves & BURN_SAVE_OUT(0)) != 0) {
            node->saved_out[0] = burni_handle_alias(thread, out, 0);
            if (node->saved_out[0] == NULL) {
                burni_node_unref(node);
                return NULL;
            }
        }
    }
    return node;
}

/* Apart, since most calls are not recorded. */
__attribute__((noinline)) static burni_node *
fast_node(burni_thread *thread, const burni_op *op, burn_tensor *const *in, uint32_t n_in,
          const burn_tensor *out, const burni_fast *fast, uint64_t (*immediates)[2])
{
    return n_in == 2 ? make_node(thread, op, in, 2, out, fast, immediates)
                     : make_node(thread, op, in, n_in, out, fast, immediates);
}

static inline burn_tensor *make_output(burni_thread *thread, const burn_tensor *lead,
                                       const burni_fast *fast, uint32_t n_in)
{
    burn_tensor *t = burni_result_new(thread, lead->device, lead->device->core,
                                      (uint64_t)lead->numel * fast->sizes[n_in]);
    if (t == NULL) {
        return NULL;
    }
    t->dtype = fast->operands[n_in].dtype;
    t->rank = lead->rank;
    t->flags = BURNI_CONTIGUOUS;
    t->numel = lead->numel;
    for (uint32_t d = 0; d < lead->rank; d++) {
        t->dims[d] = lead->dims[d];
        t->strides[d] = lead->strides[d];
    }
    return t;
}

/* Scalars in the dtype that the op computes in; 0 when one does not fit. */
static int convert(const burni_op *op, const burni_fast *fast, burn_tensor *const *in,
                   uint32_t n_in, uint64_t (*immediates)[2])
{
    for (uint32_t i = 0; i < n_in; i++) {
        if ((fast->immediates >> i & 1) != 0 &&
            burni_scalar_convert(in[i]->dtype, in[i]->immediate, fast->operands[i].dtype,
                                 immediates[i], op->def.name, NULL) != BURN_OK) {
            return 0;
        }
    }
    return 1;
}

/* What is remembered of the key; NULL when the short way does not apply. */
static inline burni_fast *recall(burni_stream *stream, const burni_op *op,
                                       burn_tensor *const *in, uint32_t n_in,
                                       const burn_tensor *lead, uint64_t key)
{
    burni_fast *fast = &stream->resolver.fast[op->index];
    uint32_t version = atomic_load_explicit(&stream->device->rows_version, memory_order_relaxed);
    if (__builtin_expect(fast->key == key && version == stream->resolver.rows_version, 1)) {
        return fast;
    }
    return learn(stream, op, in, n_in, lead, key) ? fast : NULL;
}

/* `operands` are those that are remembered, or copies. */
static inline void fill_operands(const burni_fast *fast, burn_tensor *const *in, uint32_t n_in,
                                 uint64_t (*immediates)[2], burn_operand *operands,
                                 burni_storage **storages)
{
    for (uint32_t i = 0; i < n_in; i++) {
        storages[i] = NULL;
        if ((fast->immediates >> i & 1) != 0) {
            operands[i].data = immediates[i];
            operands[i].reserved = (uint64_t)in[i]->offset;
        } else {
            storages[i] = in[i]->storage;
            operands[i].offset = (uint64_t)in[i]->offset * fast->sizes[i];
        }
    }
    operands[n_in].offset = 0;
}

/* A launch that waits, or has something in its way. Apart, for its room on the stack. */
__attribute__((noinline)) static int32_t append(burni_stream *stream, const burni_op *op,
                                                const burni_fast *fast, burn_tensor *const *in,
                                                uint32_t n_in, uint64_t (*immediates)[2],
                                                const burn_tensor *t, burn_err *refused)
{
    const burni_thread *thread = burni_thread_current;
    burn_operand copies[BURNI_FAST_IN + 1];
    burni_storage *storages[BURNI_FAST_IN + 1];
    int64_t n = t->numel;
    for (uint32_t i = 0; i <= n_in; i++) {
        copies[i] = fast->operands[i];
        copies[i].dims = &n;
    }
    fill_operands(fast, in, n_in, immediates, copies, storages);
    storages[n_in] = t->storage;
    burni_launch launch = {.op = op,
                           .resolved = fast->resolved,
                           .n_in = n_in,
                           .n_out = 1,
                           .tag = thread->tag,
                           .origin = thread->origin,
                           .remade = thread->remaking,
                           .form = fast->key,
                           .extent = n,
                           .operands = copies,
                           .storages = storages};
    if (refused != NULL) {
        return burni_launch_refused(stream, &launch, refused->code, refused);
    }
    return burni_launches_now(stream) ? burni_launch_run(stream, &launch, copies)
                                      : burni_stream_append(stream, &launch, NULL);
}

/* Hands the launch over: at once where that can be. */
static int32_t launch(burni_stream *stream, const burni_op *op, burni_fast *fast,
                      burn_tensor *const *in, uint32_t n_in, uint64_t (*immediates)[2],
                      const burn_tensor *t)
{
    burni_storage *storages[BURNI_FAST_IN + 1];
    burn_err err;
    int how = BURNI_READY_NOT;
    if (burni_launches_now(stream)) {
        fast->extent = t->numel;
        fill_operands(fast, in, n_in, immediates, fast->operands, storages);
        storages[n_in] = t->storage;
        how = burni_launch_ready(stream, &fast->ready, fast->operands, storages, &err);
        if (__builtin_expect(how == BURNI_READY_DONE, 1)) {
            return BURN_OK;
        }
    }
    return append(stream, op, fast, in, n_in, immediates, t,
                  how == BURNI_READY_ERROR ? &err : NULL);
}

int burni_emit_dense(burni_thread *thread, const burni_op *op, burn_tensor *const *in,
                     uint32_t n_in, burn_tensor **out)
{
    uint64_t key = 0;
    uint32_t tracked = 0;
    if (n_in > BURNI_FAST_IN || n_in != op->def.n_in || thread->watch != 0 ||
        thread->direct != NULL) {
        return 0;
    }
    const burn_tensor *lead = look(in, n_in, &key, &tracked);
    if (lead == NULL || lead->numel < 1 ||
        (uint64_t)lead->numel > lead->device->core->limits.max_elements) {
        return 0;
    }
    burni_stream *stream = burni_stream_get(thread, lead->device->core, NULL);
    if (stream == NULL) {
        return 0;
    }
    int64_t n = lead->numel;
    /* One element coalesces to rank 0, so it has a key of its own. */
    burni_fast *fast = recall(stream, op, in, n_in, lead, key << 1 | (n == 1));
    uint64_t immediates[BURNI_FAST_IN][2];
    if (fast == NULL || (fast->immediates != 0 && !convert(op, fast, in, n_in, immediates))) {
        return 0;
    }
    int taped = (tracked & fast->grads) != 0 && thread->no_grad == 0;
    if (taped && !fast->tapes) {
        return 0;
    }
    burn_tensor *t = make_output(thread, lead, fast, n_in);
    if (t == NULL) {
        return 0;
    }
    if (taped) {
        t->node = fast_node(thread, op, in, n_in, t, fast, immediates);
        if (t->node == NULL) {
            burn_release(t);
            return 0;
        }
    }
    if (burni_follows(stream)) {
        burni_form form = {op, fast->resolved, fast->key, n, n_in, 1, in, &t, immediates,
                           fast->immediates == 0 && n_in <= 2, 0};
        if (burni_follow(stream, &form)) {
            out[0] = t;
            return 1;
        }
    }
    if (launch(stream, op, fast, in, n_in, immediates, t) != BURN_OK) {
        burn_release(t);
        return 0;
    }
    out[0] = t;
    return 1;
}
