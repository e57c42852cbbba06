/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emit.c - one call of one op, from operands to outputs. See emit.h.
 *
 * Order: check operands, infer, resolve, reserve (handles, storages, tape node), launch. Nothing is
 * changed before everything is reserved. Pointwise ops on dense tensors of one shape take a short
 * way (emit_fast.c) to the same launch.
 */
#include "exec/emit.h"

#include "base/error.h"
#include "base/tag.h"
#include "exec/check.h"
#include "exec/emit_private.h"
#include "exec/explain.h"
#include "exec/origin.h"
#include "exec/recording.h"
#include "exec/trust.h"
#include "graph/capture.h"
#include "ops/ask.h"
#include "ops/fused.h"
#include "ops/rules.h"

#include <burn/build.h>
#include <stdio.h>
#include <string.h>

/* ---- failures ------------------------------------------------------------------------------- */

static void latch(const burni_emission *e, burni_cause *cause)
{
    burni_device *device = e->device->core;
    burni_stream *stream = e->thread->streams[device->index];
    int locked = stream != NULL ? burni_stream_lock(stream) : 0;
    burni_device_latch(device, cause, stream, stream != NULL ? burni_stream_age(stream) : 0);
    if (stream != NULL) {
        burni_stream_unlock(stream, locked);
    }
}

int32_t burni_emit_fail(const burni_emission *e, burn_err *err)
{
    err->op = e->op->def.id;
    burni_origin_tell(e->thread->origin, err);
    burni_tag_append(e->thread->tag, err);
    burni_cause *cause = burni_cause_new(err);
    burni_recording_refuse(e->thread, "a call of it failed: %s", err->text);
    for (uint32_t j = 0; j < e->n_out; j++) {
        e->out[j] = burni_handle_failed(e->thread, cause);
    }
    if (e->device != NULL && e->thread->depth == 0) {
        latch(e, cause);
    }
    burni_cause_unref(cause);
    return err->code;
}

static int32_t pass_cause(const burni_emission *e, burni_cause *cause)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        e->out[j] = burni_handle_failed(e->thread, cause);
    }
    return cause->code;
}

/* ---- operands -------------------------------------------------------------------------------- */

static int32_t check_count(const burni_emission *e, burn_err *err)
{
    const burn_op_def *d = &e->op->def;
    int ok = e->op->variadic ? e->n_in >= d->n_in : e->n_in == d->n_in;
    if (!ok || e->n_in + e->n_out > BURN_MAX_OPERANDS) {
        return burni_fail(err, BURN_E_INVALID, "%s: %u operands given, %s%u expected", d->name,
                          e->n_in, e->op->variadic ? "at least " : "", d->n_in);
    }
    if (!burni_op_may_give(e->op, e->n_out)) {
        return burni_fail(err, BURN_E_INVALID, "%s: room for %u outputs, it has %s%u", d->name,
                          e->n_out, e->op->variadic_out ? "at least " : "", d->n_out);
    }
    if (e->attrs_size < d->attrs_size || e->attrs_size > e->op->max_attrs ||
        (d->attrs_size > 0 && e->attrs == NULL)) {
        return burni_fail(err, BURN_E_INVALID, "%s: %u bytes of attributes given, %u expected",
                          d->name, e->attrs_size, d->attrs_size);
    }
    return BURN_OK;
}

static int32_t find_device(burni_emission *e, burn_err *err)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_tensor *t = e->in[i];
        if (t == NULL || t->kind != BURN_TENSOR) {
            continue;
        }
        if (e->device == NULL) {
            e->device = t->device;
        } else if (e->device->core != t->device->core) {
            return burni_fail(err, BURN_E_DEVICE,
                              "%s: operands on different devices (%s and %s); copy one with "
                              "burn_to_device",
                              e->op->def.name, e->device->core->name, t->device->core->name);
        }
    }
    if (e->device == NULL) {
        return burni_fail(err, BURN_E_DEVICE,
                          "%s: all operands are scalars, which have no device; make one of them a "
                          "tensor (burn_full)",
                          e->op->def.name);
    }
    return BURN_OK;
}

enum { NAME_SIZE = 64 };

/* "lhs"; of operands that share a role, "x[2]". */
static const char *operand_name(const burni_emission *e, uint32_t i, char room[NAME_SIZE])
{
    const burn_role *role = burni_op_role_in(e->op, i);
    if ((role->flags & BURN_ROLE_VARIADIC) == 0) {
        return role->name;
    }
    (void)snprintf(room, NAME_SIZE, "%.40s[%u]", role->name, i + 1u - e->op->def.n_in);
    return room;
}

static int32_t wrong_dtype(const burni_emission *e, uint32_t i, const char *why, burn_err *err)
{
    char room[NAME_SIZE];
    return burni_fail(err, BURN_E_DTYPE, "%s: operand %s has dtype %s, %s (burn_cast)",
                      e->op->def.name, operand_name(e, i, room), burn_dtype_name(e->meta[i].dtype),
                      why);
}

/* The dtype that an immediate must take: that of the operand it is tied to, or its role's only. */
static uint8_t immediate_dtype(const burni_emission *e, uint32_t i)
{
    const burn_role *role = burni_op_role_in(e->op, i);
    if (role->same_dtype_as != 0) {
        const burn_tensor *other = e->in[role->same_dtype_as - 1u];
        if (other != NULL && other->kind == BURN_TENSOR) {
            return other->dtype;
        }
    }
    for (uint32_t k = 0; k < e->n_in; k++) {
        const burn_role *tied = burni_op_role_in(e->op, k);
        if (tied->same_dtype_as == i + 1 && e->in[k] != NULL && e->in[k]->kind == BURN_TENSOR) {
            return e->in[k]->dtype;
        }
    }
    uint64_t set = role->dtypes[0];
    if (set != 0 && (set & (set - 1)) == 0) {
        return (uint8_t)__builtin_ctzll(set);
    }
    return BURN_DTYPE_NONE;
}

/* Where an op makes its output of an attribute's dtype, the first output role has no set. A
 * program says which dtype each of its operands has. */
static uint8_t attribute_dtype(const burni_emission *e, uint32_t i)
{
    if (e->op->def.id == BURN_OP_FUSED) {
        return burni_fused_input_dtype(e->attrs, e->attrs_size, i);
    }
    for (uint32_t a = 0; a < e->op->def.n_attrs; a++) {
        const burn_attr *attr = &e->op->def.attrs[a];
        if (attr->type == BURN_ATTR_DTYPE && attr->offset + 4u <= e->attrs_size) {
            uint32_t value;
            memcpy(&value, (const char *)e->attrs + attr->offset, sizeof(value));
            return (uint8_t)value;
        }
    }
    return BURN_DTYPE_NONE;
}

static int32_t take_immediate(burni_emission *e, uint32_t i, burn_err *err)
{
    const burn_role *role = burni_op_role_in(e->op, i);
    if ((role->flags & (BURN_ROLE_IMMEDIATE | BURN_ROLE_ONLY_IMMEDIATE)) == 0) {
        return burni_fail(err, BURN_E_INVALID, "%s: operand %s must be a tensor, not a scalar",
                          e->op->def.name, role->name);
    }
    uint8_t dtype = immediate_dtype(e, i);
    if (dtype == BURN_DTYPE_NONE) {
        dtype = attribute_dtype(e, i);
    }
    if (dtype == BURN_DTYPE_NONE) {
        dtype = e->in[i]->dtype;
    }
    e->meta[i].kind = BURN_IMMEDIATE;
    e->meta[i].dtype = dtype;
    e->meta[i].rank = 0;
    e->meta[i].flags = 0;
    int32_t rc = burni_scalar_convert(e->in[i]->dtype, e->in[i]->immediate, dtype,
                                      e->immediates[i], "", NULL);
    if (rc != BURN_OK) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%s: operand %s", e->op->def.name, role->name);
        (void)burni_scalar_convert(e->in[i]->dtype, e->in[i]->immediate, dtype, e->immediates[i],
                                   what, err);
    }
    e->meta[i].dims[0] = burni_scalar_whole(dtype, e->immediates[i]);
    return rc;
}

static int32_t check_dtype(const burni_emission *e, uint32_t i, burn_err *err)
{
    const burn_role *role = burni_op_role_in(e->op, i);
    uint8_t dtype = e->meta[i].dtype;
    if (role->dtypes[0] != 0 && (role->dtypes[dtype / 64] >> (dtype % 64) & 1) == 0) {
        char why[160];
        char taken[96];
        (void)snprintf(why, sizeof(why), "which this op does not take; cast it to one of %s",
                       burni_dtypes_text(taken, sizeof(taken), role->dtypes[0]));
        return wrong_dtype(e, i, why, err);
    }
    return BURN_OK;
}

static int32_t check_tie(const burni_emission *e, uint32_t i, burn_err *err)
{
    const burn_role *role = burni_op_role_in(e->op, i);
    uint8_t dtype = e->meta[i].dtype;
    if (role->same_dtype_as != 0 && e->meta[i].kind == BURN_TENSOR) {
        const burn_meta *other = &e->meta[role->same_dtype_as - 1u];
        if (other->kind == BURN_TENSOR && other->dtype != dtype) {
            char why[NAME_SIZE + 48];
            char room[NAME_SIZE];
            (void)snprintf(why, sizeof(why), "%s has %s; cast one of them",
                           operand_name(e, role->same_dtype_as - 1u, room),
                           burn_dtype_name(other->dtype));
            return wrong_dtype(e, i, why, err);
        }
    }
    return BURN_OK;
}

static int32_t take_operands(burni_emission *e, burn_err *err)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_tensor *t = e->in[i];
        const burn_role *role = burni_op_role_in(e->op, i);
        if (t == NULL) {
            e->meta[i].kind = BURN_ABSENT;
            e->meta[i].dtype = 0;
            e->meta[i].rank = 0;
            if ((role->flags & BURN_ROLE_OPTIONAL) == 0) {
                char room[NAME_SIZE];
                return burni_fail(err, BURN_E_INVALID, "%s: operand %s is missing",
                                  e->op->def.name, operand_name(e, i, room));
            }
            continue;
        }
        int32_t rc = BURN_OK;
        if (t->kind == BURN_IMMEDIATE) {
            rc = take_immediate(e, i, err);
        } else {
            burni_handle_meta(t, &e->meta[i]);
            if ((role->flags & BURN_ROLE_ONLY_IMMEDIATE) != 0) {
                rc = burni_fail(err, BURN_E_INVALID,
                                "%s: operand %s must be a scalar (burn_scalar), not a tensor",
                                e->op->def.name, role->name);
            }
            if (rc == BURN_OK) {
                rc = check_dtype(e, i, err);
            }
            if (rc == BURN_OK && (role->flags & BURN_ROLE_STATE) != 0 &&
                (t->storage == NULL || !t->storage->is_var)) {
                rc = burni_fail(err, BURN_E_INVALID,
                                "%s: operand %s must be a variable; use burn_var_update",
                                e->op->def.name, role->name);
            }
        }
        if (rc != BURN_OK) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind != BURN_ABSENT) {
            int32_t rc = e->meta[i].kind == BURN_IMMEDIATE ? check_dtype(e, i, err) : BURN_OK;
            rc = rc == BURN_OK ? check_tie(e, i, err) : rc;
            if (rc != BURN_OK) {
                return rc;
            }
        }
    }
    return BURN_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int32_t infer_pointwise(burni_emission *e, burn_err *err)
{
    burn_meta *out = &e->out_meta[0];
    int first = 1;
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->meta[i].kind != BURN_TENSOR) {
            continue;
        }
        if (first) {
            uint8_t dtype = out->dtype;
            *out = e->meta[i];
            out->dtype = dtype;
            first = 0;
            continue;
        }
        int32_t rc = burni_broadcast(e->op->def.name, out, &e->meta[i], out, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    out->kind = BURN_TENSOR;
    if (first) {
        out->rank = 0;
    }
    return BURN_OK;
}

static void default_dtypes(burni_emission *e)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        const burn_role *role = burni_op_role_out(e->op, j);
        burn_meta *out = &e->out_meta[j];
        out->flags = 0;
        out->kind = BURN_TENSOR;
        out->rank = 0;
        out->zero = 0;
        out->dtype = BURN_DTYPE_NONE;
        uint64_t set = role->dtypes[0];
        uint32_t like = role->same_dtype_as;
        if (like != 0 && like - 1 < e->n_in) {
            out->dtype = e->meta[like - 1].dtype;
        } else if (set != 0 && (set & (set - 1)) == 0) {
            out->dtype = (uint8_t)__builtin_ctzll(set);
        }
    }
}

int32_t burni_emit_infer(burni_emission *e, burn_err *err)
{
    default_dtypes(e);
    if (e->op->def.infer == NULL) {
        return infer_pointwise(e, err);
    }
    const burn_meta *in[BURN_MAX_OPERANDS];
    for (uint32_t i = 0; i < e->n_in; i++) {
        in[i] = &e->meta[i];
    }
    burn_infer a = {sizeof(a), e->n_in, e->n_out, e->attrs_size, in, e->out_meta, e->attrs, err};
    return burni_ask_infer(e->op, &a);
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Handles and storages of the outputs; a state op's outputs are its variables' storages. */
static int reserve_outputs(burni_emission *e)
{
    for (uint32_t j = 0; j < e->n_out; j++) {
        burn_tensor *t = burni_handle_new(e->thread, 1);
        if (t == NULL) {
            return 0;
        }
        e->out[j] = t;
        const burn_meta *meta = &e->out_meta[j];
        t->dtype = meta->dtype;
        t->rank = meta->rank;
        t->device = e->device;
        memcpy(t->dims, meta->dims, sizeof(t->dims[0]) * meta->rank);
        burni_handle_dense(t);
        burni_storage *shared = burni_emit_alias_of(e, j);
        if (shared != NULL) {
            burni_storage_ref(shared, 1);
            t->storage = shared;
            continue;
        }
        t->storage = burni_storage_new(e->thread, e->device->core,
                                       (uint64_t)t->numel * burn_dtype_size(t->dtype));
        if (t->storage == NULL) {
            return 0;
        }
    }
    return 1;
}

static void drop_outputs(burni_emission *e, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        if (e->out[j] != NULL) {
            burn_release(e->out[j]);
            e->out[j] = NULL;
        }
    }
}

burni_storage *burni_emit_alias_of(const burni_emission *e, uint32_t j)
{
    for (uint32_t a = 0; a < e->op->def.n_aliases; a++) {
        const burn_alias *alias = &e->op->def.aliases[a];
        if (alias->out == j && alias->kind == BURN_ALIAS_MUST && alias->in < e->n_in &&
            e->in[alias->in] != NULL) {
            return e->in[alias->in]->storage;
        }
    }
    return NULL;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A dense copy of an operand, which is no part of the history. */
static int32_t copy_operand(burni_emission *e, burn_tensor *t, burn_tensor **dense, burn_err *err)
{
    burni_thread *thread = e->thread;
    burni_frame frame;
    int watched = thread->watch != 0;
    if (watched) {
        burni_explain_copy(e, t);
        burni_frame_open(thread, &frame, "layout copy for ", e->op->def.name);
    }
    *dense = NULL;
    thread->no_grad++;
    thread->depth++;
    int32_t rc = burni_emit(thread, e->device, burni_op_find(BURN_OP_COPY), NULL, 0, &t, 1, dense,
                            1);
    thread->depth--;
    thread->no_grad--;
    if (watched) {
        burni_frame_close(thread, &frame);
    }
    e->temporaries[e->n_temporaries++] = *dense;
    if (rc != BURN_OK) {
        (void)burn_tensor_error(*dense, err);
    }
    return rc;
}

/* ---- views ----------------------------------------------------------------------------------- */

static int32_t emit_view(burni_emission *e, burn_err *err)
{
    const burn_tensor *x = e->in[0];
    int64_t immediates[BURN_MAX_RANK];
    for (uint32_t i = 1; i < e->n_in && i <= BURN_MAX_RANK; i++) {
        immediates[i - 1] = (int64_t)e->immediates[i][0];
    }
    int64_t strides[BURN_MAX_RANK] = {0};
    int64_t offset = x->offset;
    burn_view a;
    BURN_INIT(&a, burn_view);
    a.n_immediates = e->n_in > 0 ? e->n_in - 1 : 0;
    a.in = &e->meta[0];
    a.in_strides = x->strides;
    a.in_offset = x->offset;
    a.immediates = immediates;
    a.attrs = e->attrs;
    a.out = &e->out_meta[0];
    a.out_strides = strides;
    a.out_offset = &offset;
    a.err = err;
    int32_t rc = burni_ask_view(e->op, &a);
    if (rc == BURN_E_UNSUPPORTED && (x->flags & BURNI_CONTIGUOUS) == 0) {
        burn_tensor *dense = NULL;
        rc = copy_operand(e, e->in[0], &dense, err);
        if (rc != BURN_OK) {
            return rc;
        }
        x = dense;
        a.in_strides = dense->strides;
        a.in_offset = 0;
        offset = 0;
        rc = burni_ask_view(e->op, &a);
    }
    if (rc == BURN_OK) {
        rc = burni_trust_view(e, x->storage, strides, offset, err);
    }
    if (rc != BURN_OK) {
        return rc;
    }
    burn_tensor *t = burni_handle_new(e->thread, 1);
    if (t == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", e->op->def.name);
    }
    t->dtype = x->dtype;
    t->rank = e->out_meta[0].rank;
    t->device = e->device;
    t->offset = offset;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->dims[i] = e->out_meta[0].dims[i];
        t->strides[i] = strides[i];
    }
    t->numel = burni_numel(t->rank, t->dims);
    if (burni_is_dense(t->rank, t->dims, t->strides)) {
        t->flags |= BURNI_CONTIGUOUS;
    }
    t->storage = x->storage;
    burni_storage_ref(t->storage, 1);
    e->out[0] = t;
    return BURN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* An operand of a pointwise op as the row sees it: a broadcast one is dense only in full size. */
static burn_tensor *spread(burni_emission *e, uint32_t i)
{
    const burn_meta *shape = &e->out_meta[0];
    burn_attrs_shape attrs;
    burn_attrs_init(&attrs, sizeof(attrs));
    attrs.n_dims = shape->rank;
    memcpy(attrs.dims, shape->dims, shape->rank * sizeof(shape->dims[0]));
    burn_tensor *t = e->in[i];
    if (t->rank == shape->rank &&
        memcmp(t->dims, shape->dims, t->rank * sizeof(t->dims[0])) == 0) {
        return t;
    }
    burn_tensor *spread_out = NULL;
    e->thread->no_grad++;
    e->thread->depth++;
    (void)burni_emit(e->thread, e->device, burni_op_find(BURN_OP_EXPAND), &attrs, sizeof(attrs),
                     &e->in[i], 1, &spread_out, 1);
    e->thread->depth--;
    e->thread->no_grad--;
    return spread_out; /* if it failed, the copy of it passes the cause on */
}

/* Makes inputs dense that the row does not take as they are. */
static int32_t copy_inputs(burni_emission *e, const burni_resolved *resolved, burn_err *err)
{
    for (uint32_t i = 0; i < e->n_in && i < 32; i++) {
        if ((resolved->copy_mask >> i & 1) == 0) {
            continue;
        }
        burn_tensor *source = e->op->pointwise ? spread(e, i) : e->in[i];
        int32_t rc = copy_operand(e, source, &e->used[i], err);
        if (source != e->in[i]) {
            burn_release(source);
        }
        if (rc != BURN_OK) {
            return rc;
        }
    }
    return BURN_OK;
}

static int32_t no_row(const burni_emission *e, const burni_resolved *resolved, burn_err *err)
{
    return burni_fail(err, BURN_E_UNSUPPORTED,
                      "%s: %s has no kernel for it (dtype %s; %s) and it has no decomposition; "
                      "cast the operands or choose another device",
                      e->op->def.name, e->device->core->name, burn_dtype_name(e->meta[0].dtype),
                      resolved->why);
}

/* Which inputs the kernel may overwrite: handed over, seen by nobody else, not kept by the tape nor
 * by a capture, which may have to write them down as constants at its end. */
static uint32_t overwritable(const burni_emission *e)
{
    uint32_t moved = 0;
    /* A check tells what the inputs were; a recipe runs the call on them again. */
    int kept = e->taped || e->thread->capture != NULL || burni_checks(e->thread) ||
               (e->thread->watch & BURNI_WATCH_RECOMPUTE) != 0;
    for (uint32_t i = 0; i < e->n_in && i < 32 && !kept; i++) {
        const burn_tensor *t = e->in[i];
        if ((e->moved >> i & 1) != 0 && e->used[i] == t &&
            atomic_load_explicit(&t->refs, memory_order_acquire) == 1) {
            moved |= 1u << i;
        }
    }
    return moved;
}

/* Pointwise ops have no products to reduce: their rows and the short way see no mode. */
static uint32_t math_of(const burni_emission *e)
{
    return e->op->pointwise ? 0 : e->thread->math;
}

/* A launch was not taken; its stream may have said why. */
static int32_t refused(const burni_emission *e, int32_t rc, burn_err *err)
{
    if (err->code == BURN_OK || err->text[0] == '\0') {
        return burni_fail(err, rc, "%s: %s", e->op->def.name, burn_status_text(rc));
    }
    burni_prefix(err, "%s", e->op->def.name);
    return rc;
}

/* The caller lets go of its note. */
static void fill_launch(const burni_emission *e, const burni_resolved *resolved,
                        burni_operands *ops, burni_launch *launch)
{
    memset(launch, 0, sizeof(*launch));
    launch->op = e->op;
    launch->resolved = resolved;
    launch->attrs = e->attrs;
    launch->attrs_size = e->attrs_size;
    launch->n_in = e->n_in;
    launch->n_out = e->n_out;
    launch->math = math_of(e);
    launch->tag = e->thread->tag;
    launch->origin = e->thread->origin;
    launch->remade = e->thread->remaking;
    launch->operands = ops->operands;
    launch->storages = ops->storages;
    launch->moved = overwritable(e);
    launch->overwrite = e->op->def.id == BURN_OP_ASSIGN ? 1u : 0u;
    launch->check = e->thread->watch != 0 ? burni_note_of(e) : NULL;
}

static int32_t emit_kernel(burni_emission *e, burn_err *err, int *expanded)
{
    burni_stream *stream = burni_stream_get(e->thread, e->device->core, err);
    if (stream == NULL) {
        return err->code;
    }
    burni_operands ops;
    const burni_resolved *resolved = NULL;
    for (int attempt = 0; attempt < 2; attempt++) {
        burni_describe(e, &ops);
        burn_call call;
        memset(&call, 0, sizeof(call));
        call.struct_size = sizeof(call);
        call.operand_stride = sizeof(burn_operand);
        call.n_in = e->n_in;
        call.n_out = e->n_out;
        call.operands = ops.operands;
        call.attrs = e->attrs;
        call.attrs_size = e->attrs_size;
        call.flags = math_of(e);
        resolved = burni_resolve(burni_stream_resolver(stream), e->device->core, e->op, &call, err);
        if (resolved == NULL) {
            return err->code;
        }
        int force = (e->thread->watch & BURNI_WATCH_DECOMPOSE) != 0 &&
                    e->op->def.decompose != NULL && e->thread->depth == 0;
        if (__builtin_expect(e->thread->watch != 0, 0) && attempt == 0) {
            if (force) {
                burni_explain_decomposed(e, "the option DECOMPOSE asks for it");
            } else {
                burni_explain_kernel(e, &call, resolved);
            }
        }
        if (resolved->row == NULL || force) {
            *expanded = e->op->def.decompose != NULL;
            return *expanded ? BURN_OK : no_row(e, resolved, err);
        }
        if (resolved->copy_mask == 0) {
            break;
        }
        if (attempt > 0) {
            return burni_fail(err, BURN_E_INTERNAL,
                              "%s: %s asks for dense copies of dense operands", e->op->def.name,
                              resolved->row->name);
        }
        int32_t rc = copy_inputs(e, resolved, err);
        if (rc != BURN_OK) {
            return rc;
        }
    }
    if (!reserve_outputs(e)) {
        drop_outputs(e, e->n_out);
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", e->op->def.name);
    }
    for (uint32_t j = 0; j < e->n_out; j++) {
        ops.storages[e->n_in + j] = e->out[j]->storage;
    }
    burni_launch launch;
    fill_launch(e, resolved, &ops, &launch);
    int32_t rc = burni_stream_append(stream, &launch, err);
    burni_note_unref(launch.check);
    if (rc == BURN_OK && e->n_temporaries == 0 && e->thread->watch == 0 &&
        e->thread->direct == NULL) {
        burni_again_learn(stream, e, &ops, resolved, launch.math);
    }
    if (rc != BURN_OK) {
        drop_outputs(e, e->n_out);
        *expanded = rc == BURN_E_UNSUPPORTED && e->op->def.decompose != NULL;
        if (*expanded && e->thread->watch != 0) {
            burni_explain_decomposed(e, "its kernel refused at the launch");
        }
        return *expanded ? BURN_OK : refused(e, rc, err);
    }
    return BURN_OK;
}

/* ---- the whole call -------------------------------------------------------------------------- */

static int32_t decompose(burni_emission *e, burn_err *err)
{
    burni_thread *thread = e->thread;
    burni_frame frame;
    int watched = thread->watch != 0;
    burni_check *check = watched ? burni_check_begin(e) : NULL;
    if (watched) {
        burni_frame_open(thread, &frame, "", e->op->def.name);
        frame.entry = e->entry_is_new ? e->entry : NULL;
    }
    int32_t rc = burni_expand(thread, e->device, e->op, e->attrs, e->attrs_size, e->in, e->n_in,
                              e->out, e->n_out);
    if (watched) {
        burni_frame_close(thread, &frame);
    }
    int expanded = rc == BURN_OK;
    rc = expanded ? burni_trust_expand(e, err) : rc;
    burni_check_end(check, e, rc);
    if (expanded && rc != BURN_OK) {
        drop_outputs(e, e->n_out);
    }
    return rc;
}

static int32_t run_op(burni_emission *e, int taped, burn_err *err)
{
    int expanded = 0;
    int32_t rc = BURN_OK;
    if (taped && e->op->def.vjp == NULL) {
        if (e->op->def.decompose == NULL) {
            return burni_fail(err, BURN_E_UNSUPPORTED, "%s: has no gradient: %s", e->op->def.name,
                              e->op->def.no_vjp != NULL ? e->op->def.no_vjp : "no reason given");
        }
        if (e->thread->watch != 0) {
            burni_explain_decomposed(e, "it is recorded, and has no gradient as a whole");
        }
        return decompose(e, err);
    }
    rc = e->op->view ? emit_view(e, err) : emit_kernel(e, err, &expanded);
    if (rc != BURN_OK) {
        return rc;
    }
    if (expanded) {
        e->thread->no_grad++;
        rc = decompose(e, err);
        e->thread->no_grad--;
        if (rc != BURN_OK) {
            for (uint32_t j = e->n_out; j-- > 0 && e->out[j] != NULL;) {
                (void)burn_tensor_error(e->out[j], err);
            }
            drop_outputs(e, e->n_out);
            return rc;
        }
    }
    rc = taped ? burni_tape(e, err) : BURN_OK;
    if (rc != BURN_OK) {
        drop_outputs(e, e->n_out);
    }
    return rc;
}

/* The same for a thread whose calls are looked at. */
static int32_t run_watched(burni_emission *e, burn_err *err)
{
    e->entry = NULL;
    e->entry_is_new = 0;
    burni_explain_part(e->thread, e->op);
    int32_t rc = run_op(e, (int)e->taped, err);
    if (rc == BURN_OK && e->op->view) {
        burni_explain_view(e);
    }
    if (rc == BURN_OK && !e->taped) {
        burni_recipe_record(e); /* else the tape has done it */
    }
    return rc;
}

/* Takes note of the inputs that were handed over, each once. The flag goes, so that calls made on
 * behalf of this one (copies, a decomposition) do not consume them as well. */
static void take_moved(burni_emission *e)
{
    e->moved = 0;
    for (uint32_t i = 0; i < e->n_in && i < 32; i++) {
        burn_tensor *t = e->in[i];
        if (t != NULL && (t->flags & BURNI_MOVED) != 0) {
            t->flags &= (uint8_t)~BURNI_MOVED;
            e->moved |= 1u << i;
        }
    }
}

static void consume_moved(const burni_emission *e)
{
    for (uint32_t i = 0; e->moved != 0 && i < e->n_in && i < 32; i++) {
        if ((e->moved >> i & 1) != 0) {
            burn_release(e->in[i]);
        }
    }
}

static int32_t check_and_run(burni_emission *e, burn_err *err)
{
    int32_t rc = find_device(e, err);
    if (rc == BURN_OK || e->device == NULL) {
        /* A missing operand, or a scalar in its place, tells more than a missing device. */
        int32_t taken = take_operands(e, err);
        rc = taken != BURN_OK ? taken : rc;
    }
    if (rc == BURN_OK) {
        rc = burni_emit_infer(e, err);
    }
    if (rc == BURN_OK) {
        rc = burni_trust_infer(e, err);
    }
    if (rc == BURN_OK) {
        e->taped = (uint32_t)burni_wants_tape(e);
        rc = __builtin_expect(e->thread->watch != 0, 0) ? run_watched(e, err)
                                                        : run_op(e, (int)e->taped, err);
    }
    for (uint32_t k = 0; k < e->n_temporaries; k++) {
        burn_release(e->temporaries[k]);
    }
    if (rc != BURN_OK && e->out[0] == NULL) {
        err->code = rc;
        if (e->thread->watch != 0) {
            e->entry = NULL;
            burni_explain_failed(e, err);
        }
        return burni_emit_fail(e, err);
    }
    return rc;
}

/* The call with all that may have to be asked and said. */
static int32_t emit_long(burni_emission *e)
{
    take_moved(e);
    burn_err err = BURN_ERR_INIT;
    burni_cause *cause = NULL;
    for (uint32_t i = 0; i < e->n_in && i < BURN_MAX_OPERANDS; i++) {
        e->used[i] = e->in[i];
        cause = cause == NULL && e->in[i] != NULL ? e->in[i]->cause : cause;
    }
    int32_t rc = check_count(e, &err);
    if (rc != BURN_OK) {
        rc = burni_emit_fail(e, &err);
    } else if (cause != NULL) {
        rc = pass_cause(e, cause);
    } else {
        rc = check_and_run(e, &err);
    }
    return rc;
}

/* The way of all calls but the plainest. Apart, since it needs much room. */
__attribute__((noinline)) static int32_t
emit_any(burni_thread *thread, burn_device *device, const burni_op *op, const void *attrs,
         uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in, burn_tensor **out,
         uint32_t n_out)
{
    burni_emission e;
    e.thread = thread;
    e.device = device;
    e.op = op;
    e.attrs = attrs_size > 0 ? attrs : NULL;
    e.attrs_size = attrs_size;
    e.in = in;
    e.n_in = n_in;
    e.out = out;
    e.n_out = n_out;
    e.n_temporaries = 0;
    e.taped = 0;
    e.moved = 0;
    if (n_out > 0) {
        out[0] = NULL; /* nearly always all of them */
    }
    for (uint32_t j = 1; j < n_out; j++) {
        out[j] = NULL;
    }
    int32_t rc = !op->view && burni_emit_again(&e) ? BURN_OK : emit_long(&e);
    if (rc == BURN_OK && thread->capture != NULL && thread->depth == 0) {
        burni_capture_op(thread->capture, op, attrs, attrs_size, in, n_in, out, n_out);
    }
    consume_moved(&e);
    return rc;
}

int32_t burni_emit(burni_thread *thread, burn_device *device, const burni_op *op,
                   const void *attrs, uint32_t attrs_size, burn_tensor *const *in, uint32_t n_in,
                   burn_tensor **out, uint32_t n_out)
{
    /* A caller that asks for another number of outputs goes the long way, which says so. */
    if (op->simple && n_out == 1 && burni_emit_fast(thread, op, in, n_in, out)) {
        if (__builtin_expect(thread->capture != NULL && thread->depth == 0, 0)) {
            burni_capture_op(thread->capture, op, attrs, attrs_size, in, n_in, out, n_out);
        }
        return BURN_OK;
    }
    return emit_any(thread, device, op, attrs, attrs_size, in, n_in, out, n_out);
}
