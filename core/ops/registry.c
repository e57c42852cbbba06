/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * registry.c - id -> definition, made from the id list: a row of op_list.h without a definition
 * does not link. Extensions' definitions are copied in behind the core's.
 */
#include "ops/registry.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/def_check.h"

#include <burn/fused.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define DECLARE(id, NAME, name) extern const burn_op_def burn_op_def_##name;
BURN_FOREACH_OP(DECLARE)
#undef DECLARE

static const burn_op_def *const core_defs[] = {
#define ADDRESS(id, NAME, name) &burn_op_def_##name,
    BURN_FOREACH_OP(ADDRESS)
#undef ADDRESS
};

#define N_CORE    (sizeof(core_defs) / sizeof(core_defs[0]))
#define N_SLOTS   (2u * BURNI_MAX_OPS) /* of the table by hash: never more than half full */

static burni_op *entries[BURNI_MAX_OPS];
static _Atomic(burni_op *) by_hash[N_SLOTS]; /* the ops of extensions */
static burni_op core_entries[N_CORE];
burni_op *_Atomic burni_op_small[BURNI_SMALL_IDS];
static _Atomic uint32_t n_entries;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const burn_role *burni_op_role_in(const burni_op *op, uint32_t i)
{
    uint32_t last = op->def.n_in > 0 ? op->def.n_in - 1u : 0;
    return &op->def.roles[i < last ? i : last];
}

const burn_role *burni_op_role_out(const burni_op *op, uint32_t j)
{
    uint32_t last = op->def.n_out > 0 ? op->def.n_out - 1u : 0;
    return &op->def.roles[op->def.n_in + (j < last ? j : last)];
}

int burni_op_may_give(const burni_op *op, uint32_t n_out)
{
    return op->variadic_out ? n_out >= op->def.n_out : n_out == op->def.n_out;
}

static int plain_tensor_role(const burn_role *role)
{
    const uint32_t special =
        BURN_ROLE_OPTIONAL | BURN_ROLE_VARIADIC | BURN_ROLE_STATE | BURN_ROLE_ONLY_IMMEDIATE;
    return (role->flags & special) == 0;
}

static void derive(burni_op *op)
{
    const burn_op_def *d = &op->def;
    op->variadic = d->n_in > 0 && (d->roles[d->n_in - 1].flags & BURN_ROLE_VARIADIC) != 0;
    op->variadic_out =
        d->n_out > 0 && (d->roles[d->n_in + d->n_out - 1].flags & BURN_ROLE_VARIADIC) != 0;
    /* Attributes are small structs, but for those that are a program. */
    op->max_attrs = d->id == BURN_OP_FUSED ? BURN_FUSED_MAX_BYTES : BURN_MAX_ATTRS;
    op->pointwise = d->fuse == BURN_FUSE_POINTWISE;
    op->view = d->fuse == BURN_FUSE_VIEW;
    for (uint32_t j = 0; j < d->n_out; j++) {
        const burn_role *role = burni_op_role_out(op, j);
        int floats = (role->dtypes[0] & BURN_SET_FLOAT) != 0 || role->dtypes[0] == 0;
        if (floats && (role->flags & BURN_ROLE_NO_GRAD) == 0) {
            op->differentiable = 1;
        }
    }
    op->simple = op->pointwise && d->n_out == 1 && d->infer == NULL && d->attrs_size == 0;
    for (uint32_t i = 0; i < d->n_in; i++) {
        op->simple = op->simple && plain_tensor_role(&d->roles[i]);
    }
    for (uint32_t a = 0; a < d->n_attrs; a++) {
        op->has_dims |= d->attrs[a].klass == BURN_ATTR_DIM;
    }
}

static void add_core_ops(void)
{
    for (uint32_t i = 0; i < N_CORE; i++) {
        burni_op *op = &core_entries[i];
        op->def = *core_defs[i];
        op->index = i;
        derive(op);
        entries[i] = op;
        if (op->def.id < BURNI_SMALL_IDS) {
            atomic_store_explicit(&burni_op_small[op->def.id], op, memory_order_release);
        }
    }
    atomic_store(&n_entries, N_CORE);
}

static void ready(void)
{
    if (__builtin_expect(atomic_load_explicit(&n_entries, memory_order_acquire) == 0, 0)) {
        (void)pthread_once(&once, add_core_ops);
    }
}

const burni_op *burni_op_find(uint64_t id)
{
    ready();
    if (id < BURNI_SMALL_IDS) {
        return atomic_load_explicit(&burni_op_small[id], memory_order_acquire);
    }
    /* Ids are hashes already. */
    for (uint32_t slot = (uint32_t)id % N_SLOTS;; slot = (slot + 1) % N_SLOTS) {
        const burni_op *op = atomic_load_explicit(&by_hash[slot], memory_order_acquire);
        if (op == NULL || op->def.id == id) {
            return op;
        }
    }
}

const burni_op *burni_op_find_name(const char *name)
{
    ready();
    uint32_t n = atomic_load_explicit(&n_entries, memory_order_acquire);
    for (uint32_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(entries[i]->def.name, name) == 0) {
            return entries[i];
        }
    }
    return NULL;
}

uint32_t burni_op_count(void)
{
    ready();
    return atomic_load_explicit(&n_entries, memory_order_acquire);
}

const burni_op *burni_op_at(uint32_t index)
{
    return index < burni_op_count() ? entries[index] : NULL;
}

/* ---- extensions --------------------------------------------------------------------------- */

static const char *owner_of(const burni_op *op)
{
    return op->plugin != NULL ? op->plugin : "the core";
}

/* Neither the core nor another extension may have that name or id. */
static int32_t check_clash(const char *plugin, const burn_op_def *def, burn_err *err)
{
    const burni_op *other = burni_op_find_name(def->name);
    const char *what = "the name";
    if (other == NULL) {
        other = burni_op_find(def->id);
        what = "the id";
    }
    if (other == NULL) {
        return BURN_OK;
    }
    return burni_fail(err, BURN_E_ABI,
                      "%s: op %s has %s of op %s of %s; give it a name of its own, such as %s.%s",
                      plugin, def->name, what, other->def.name, owner_of(other), plugin, def->name);
}

static int32_t copy_def(const char *plugin, const burn_op_def *def, uint32_t index, burni_op *op,
                        burn_err *err)
{
    uint32_t n_roles = (uint32_t)def->n_in + def->n_out;
    burn_role *roles = burni_calloc(n_roles, sizeof(*roles));
    if (roles == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: op %s: out of host memory", plugin,
                          def->name);
    }
    for (uint32_t i = 0; i < n_roles; i++) {
        memcpy(&roles[i], (const char *)def->roles + (size_t)i * def->role_stride, sizeof(*roles));
    }
    op->def = *def;
    op->def.struct_size = (uint32_t)sizeof(op->def);
    op->def.roles = roles;
    op->def.role_stride = (uint32_t)sizeof(*roles);
    op->plugin = plugin;
    op->index = index;
    derive(op);
    return BURN_OK;
}

static int32_t stage_one(const char *plugin, const burn_op_def *def, burni_op_batch *batch,
                         burn_err *err)
{
    int32_t rc = check_clash(plugin, def, err);
    for (uint32_t i = 0; rc == BURN_OK && i < batch->n; i++) {
        if (batch->ops[i].def.id == def->id) {
            rc = burni_fail(err, BURN_E_ABI, "%s: op %s is defined twice", plugin, def->name);
        }
    }
    if (rc == BURN_OK) {
        rc = copy_def(plugin, def, burni_op_count() + batch->n, &batch->ops[batch->n], err);
    }
    return rc;
}

int32_t burni_ops_check(const char *plugin, const burn_op_def *defs, uint32_t n, burn_err *err)
{
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < n && rc == BURN_OK; i++) {
        rc = burni_def_check(plugin, &defs[i], err);
    }
    return rc;
}

int32_t burni_ops_stage(const char *plugin, const burn_op_def *defs, uint32_t n,
                        burni_op_batch *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    if (n == 0) {
        return BURN_OK;
    }
    if (n > BURNI_MAX_OPS - burni_op_count()) {
        return burni_fail(err, BURN_E_LIMIT, "%s: with its %u ops there are more than %d", plugin,
                          n, BURNI_MAX_OPS);
    }
    out->ops = burni_calloc(n, sizeof(*out->ops));
    if (out->ops == NULL) {
        return burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", plugin);
    }
    int32_t rc = BURN_OK;
    for (uint32_t i = 0; i < n && rc == BURN_OK; i++) {
        rc = stage_one(plugin, &defs[i], out, err);
        out->n += rc == BURN_OK;
    }
    if (rc != BURN_OK) {
        burni_ops_discard(out);
    }
    return rc;
}

void burni_ops_publish(burni_op_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        burni_op *op = &batch->ops[i];
        entries[op->index] = op;
        uint32_t slot = (uint32_t)op->def.id % N_SLOTS;
        while (atomic_load_explicit(&by_hash[slot], memory_order_relaxed) != NULL) {
            slot = (slot + 1) % N_SLOTS;
        }
        atomic_store_explicit(&by_hash[slot], op, memory_order_release);
    }
    (void)atomic_fetch_add_explicit(&n_entries, batch->n, memory_order_release);
    batch->n = 0; /* the array is the registry's now */
}

void burni_ops_discard(burni_op_batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++) {
        burni_free((void *)(uintptr_t)batch->ops[i].def.roles);
    }
    burni_free(batch->ops);
    memset(batch, 0, sizeof(*batch));
}

const burni_op *burni_op_find_staged(const burni_op_batch *batch, uint64_t id)
{
    for (uint32_t i = 0; batch != NULL && i < batch->n; i++) {
        if (batch->ops[i].def.id == id) {
            return &batch->ops[i];
        }
    }
    return burni_op_find(id);
}
