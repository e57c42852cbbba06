/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * registry.c - id -> definition, made from the id list: a row of op_list.h without a definition
 * does not link. Extensions' definitions are copied in behind the core's.
 */
#include "ops/registry.h"

#include "base/alloc.h"
#include "base/error.h"

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

#define N_CORE (sizeof(core_defs) / sizeof(core_defs[0]))
#define SMALL_IDS 256u

static burni_op *entries[BURNI_MAX_OPS];
static burni_op core_entries[N_CORE];
static burni_op *by_small_id[SMALL_IDS];
static _Atomic uint32_t n_entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const burn_role *burni_op_role_in(const burni_op *op, uint32_t i)
{
    uint32_t last = op->def.n_in > 0 ? op->def.n_in - 1u : 0;
    return &op->def.roles[i < last ? i : last];
}

const burn_role *burni_op_role_out(const burni_op *op, uint32_t j)
{
    return &op->def.roles[op->def.n_in + j];
}

static int plain_tensor_role(const burn_role *role)
{
    const uint32_t special = BURN_ROLE_OPTIONAL | BURN_ROLE_VARIADIC | BURN_ROLE_STATE |
                             BURN_ROLE_ONLY_IMMEDIATE;
    return (role->flags & special) == 0;
}

static void derive(burni_op *op)
{
    const burn_op_def *d = &op->def;
    op->variadic = d->n_in > 0 && (d->roles[d->n_in - 1].flags & BURN_ROLE_VARIADIC) != 0;
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
}

static void add_core_ops(void)
{
    for (uint32_t i = 0; i < N_CORE; i++) {
        burni_op *op = &core_entries[i];
        op->def = *core_defs[i];
        op->index = i;
        derive(op);
        entries[i] = op;
        if (op->def.id < SMALL_IDS) {
            by_small_id[op->def.id] = op;
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
    if (id < SMALL_IDS) {
        return by_small_id[id];
    }
    uint32_t n = atomic_load_explicit(&n_entries, memory_order_acquire);
    for (uint32_t i = N_CORE; i < n; i++) {
        if (entries[i]->def.id == id) {
            return entries[i];
        }
    }
    return NULL;
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

static int32_t check_def(const burn_op_def *def, burn_err *err)
{
    if (def->name == NULL || def->name[0] == '\0') {
        return burni_fail(err, BURN_E_ABI, "op definition without a name");
    }
    if (def->id != burn_op_id_from_name(def->name)) {
        return burni_fail(err, BURN_E_ABI, "op %s: its id is not burn_op_id_from_name(\"%s\")",
                          def->name, def->name);
    }
    if (burni_op_find(def->id) != NULL || burni_op_find_name(def->name) != NULL) {
        return burni_fail(err, BURN_E_ABI, "op %s: an op of this name or id exists already",
                          def->name);
    }
    if (def->roles == NULL || def->role_stride < sizeof(burn_role) || def->n_out == 0 ||
        def->n_in + (uint32_t)def->n_out > BURN_MAX_OPERANDS) {
        return burni_fail(err, BURN_E_ABI, "op %s: roles missing, or too many", def->name);
    }
    if (def->eval == NULL || def->samples == NULL || def->attrs_size > BURN_MAX_ATTRS) {
        return burni_fail(err, BURN_E_ABI,
                          "op %s: eval and samples are required, attributes at most %d bytes",
                          def->name, BURN_MAX_ATTRS);
    }
    if (def->infer == NULL && def->fuse != BURN_FUSE_POINTWISE) {
        return burni_fail(err, BURN_E_ABI, "op %s: infer is required unless it is pointwise",
                          def->name);
    }
    if (def->vjp == NULL && def->decompose == NULL && def->no_vjp == NULL) {
        return burni_fail(err, BURN_E_ABI,
                          "op %s: neither vjp nor decomposition, and no reason (no_vjp)",
                          def->name);
    }
    return BURN_OK;
}

/* Copies an array whose elements lie `stride` apart into a dense one. */
static void *copy_array(const void *from, uint32_t n, uint32_t stride, size_t size)
{
    char *to = burni_alloc(n * size);
    for (uint32_t i = 0; to != NULL && i < n; i++) {
        memcpy(to + i * size, (const char *)from + (size_t)i * stride, size);
    }
    return to;
}

int32_t burni_op_register(const burn_op_def *def, const burni_op **out, burn_err *err)
{
    ready();
    (void)pthread_mutex_lock(&lock);
    int32_t rc = check_def(def, err);
    uint32_t index = atomic_load(&n_entries);
    burni_op *op = NULL;
    if (rc == BURN_OK && index == BURNI_MAX_OPS) {
        rc = burni_fail(err, BURN_E_LIMIT, "op %s: more than %d ops", def->name, BURNI_MAX_OPS);
    }
    if (rc == BURN_OK) {
        op = burni_calloc(1, sizeof(*op));
        void *roles = copy_array(def->roles, (uint32_t)def->n_in + def->n_out, def->role_stride,
                                 sizeof(burn_role));
        if (op == NULL || roles == NULL) {
            burni_free(op);
            burni_free(roles);
            rc = burni_fail(err, BURN_E_NO_MEMORY, "op %s: out of memory", def->name);
        } else {
            size_t size = def->struct_size < sizeof(*def) ? def->struct_size : sizeof(*def);
            memcpy(&op->def, def, size);
            op->def.roles = roles;
            op->def.role_stride = sizeof(burn_role);
            op->index = index;
            derive(op);
            entries[index] = op;
            atomic_store_explicit(&n_entries, index + 1, memory_order_release);
            *out = op;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}
