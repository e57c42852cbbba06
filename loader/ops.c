/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops.c - checks and copies the op definitions of an extension, with roles, attributes, aliases.
 *
 * An extension's op is known by the hash of its name, so the id must be that hash, and no two ops
 * of a plugin may share one. Whose a name is and what an op means is checked where ops are
 * registered, not here: a plugin that is refused there keeps no name from its owner. Runs without
 * the loader's lock. [init]
 */
#include "loader/entry.h"

#include <burn/op_list.h>
#include <stdio.h>
#include <string.h>

#define MAX_OPS 4096
#define MAX_ALIASES 64
#define MAX_ATTR_FIELDS 64

#define OP_FLOOR (offsetof(burn_op_def, reserved_batch) + sizeof(void *))
#define ROLE_FLOOR (offsetof(burn_role, dtypes) + sizeof(((burn_role *)0)->dtypes))
#define ATTR_FLOOR (offsetof(burn_attr, zero) + sizeof(uint32_t))
#define ALIAS_FLOOR (offsetof(burn_alias, kind) + sizeof(uint32_t))

#define REMEDY "correct the plugin's op definitions"

/* One array of an op: where it is, how many items it has, and what they are. */
typedef struct op_array {
    const char *what;
    const void **at;
    uint32_t n;
    uint32_t max;
    uint32_t *stride;
    size_t floor;
    size_t size;
} op_array;

static int32_t copy_array(burni_entry *e, const char *op, const op_array *a)
{
    char what[128];
    (void)snprintf(what, sizeof(what), "op \"%s\": %s", op, a->what);
    int32_t code = burni_check_array(e, what, *a->at, a->n, a->max, *a->stride, a->floor);
    if (code != BURN_OK || a->n == 0) {
        return code;
    }
    unsigned char *copy = burni_entry_alloc(e, a->n, a->size);
    if (copy == NULL) {
        return BURN_E_NO_MEMORY;
    }
    size_t take = *a->stride < a->size ? *a->stride : a->size;
    for (uint32_t i = 0; i < a->n; i++) {
        memcpy(copy + i * a->size, (const unsigned char *)*a->at + (size_t)i * *a->stride, take);
    }
    *a->at = copy;
    *a->stride = (uint32_t)a->size;
    return BURN_OK;
}

static int32_t copy_arrays(burni_entry *e, const char *name, burn_op_def *op)
{
    const void *roles = op->roles;
    const void *attrs = op->attrs;
    const void *aliases = op->aliases;
    const op_array arrays[] = {
        {"roles", &roles, (uint32_t)op->n_in + op->n_out, BURN_MAX_OPERANDS, &op->role_stride,
         ROLE_FLOOR, sizeof(burn_role)},
        {"attributes", &attrs, op->n_attrs, MAX_ATTR_FIELDS, &op->attr_stride, ATTR_FLOOR,
         sizeof(burn_attr)},
        {"aliases", &aliases, op->n_aliases, MAX_ALIASES, &op->alias_stride, ALIAS_FLOOR,
         sizeof(burn_alias)},
    };
    int32_t code = BURN_OK;
    for (size_t i = 0; code == BURN_OK && i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        code = copy_array(e, name, &arrays[i]);
    }
    op->roles = roles;
    op->attrs = attrs;
    op->aliases = aliases;
    return code;
}

static int32_t check_attrs(burni_entry *e, const char *name, const burn_op_def *op)
{
    if (op->attrs_size > BURN_MAX_ATTRS) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                "op \"%s\" has %u bytes of attributes; %d is the most", name,
                                op->attrs_size, BURN_MAX_ATTRS);
    }
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const burn_attr *a = &op->attrs[i];
        uint32_t end = (uint32_t)a->offset + a->size;
        if (a->name == NULL || end > op->attrs_size || a->offset < sizeof(burn_attrs_head)) {
            return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                    "op \"%s\": attribute %u has no name, or lies outside of the "
                                    "%u bytes (offset %u, size %u)",
                                    name, i, op->attrs_size, a->offset, a->size);
        }
    }
    return BURN_OK;
}

static int32_t check_op(burni_entry *e, const burn_op_def *op, uint32_t index, char name[96])
{
    burni_text_clean(name, 96, op->name != NULL ? op->name : "");
    if (name[0] == '\0' || strlen(op->name) > 95) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY, "op %u has no name of 1 to 95 bytes", index);
    }
    uint64_t id = burn_op_id_from_name(op->name);
    if (op->id != id) {
        return burni_entry_fail(e, BURN_E_ABI, "use burn_op_id_from_name",
                                "op \"%s\" has the id 0x%llx; that of its name is 0x%llx", name,
                                (unsigned long long)op->id, (unsigned long long)id);
    }
    if (op->infer == NULL && op->fuse != BURN_FUSE_POINTWISE) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                "op \"%s\" has no infer function and is not pointwise", name);
    }
    if (op->vjp != NULL && op->n_in > 0 && op->vjp_saves == NULL) {
        return burni_entry_fail(e, BURN_E_ABI, REMEDY,
                                "op \"%s\" has a gradient but does not say what it saves", name);
    }
    return BURN_OK;
}

static int32_t check_twice(burni_entry *e, const burn_op_def *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].id == ops[n].id) {
            return burni_entry_fail(e, BURN_E_ABI, REMEDY, "ops %u and %u are both \"%.80s\"", i, n,
                                    ops[n].name);
        }
    }
    return BURN_OK;
}

static int32_t copy_op(burni_entry *e, const burn_plugin *raw, uint32_t i, burn_op_def *ops)
{
    const unsigned char *at = (const unsigned char *)raw->ops + (size_t)i * raw->op_stride;
    uint32_t size = ((const burn_op_def *)(const void *)at)->struct_size;
    char what[32];
    (void)snprintf(what, sizeof(what), "op %u", i);
    int32_t code = burni_check_size(e, what, size, OP_FLOOR, raw->op_stride);
    if (code != BURN_OK) {
        return code;
    }
    memcpy(&ops[i], at, size < sizeof(ops[i]) ? size : sizeof(ops[i]));
    ops[i].struct_size = (uint32_t)sizeof(ops[i]);
    char name[96];
    code = check_op(e, &ops[i], i, name);
    if (code == BURN_OK) {
        code = check_twice(e, ops, i);
    }
    if (code == BURN_OK) {
        code = copy_arrays(e, name, &ops[i]);
    }
    return code == BURN_OK ? check_attrs(e, name, &ops[i]) : code;
}

int32_t burni_copy_ops(burni_entry *e, const burn_plugin *raw, burn_plugin *copy)
{
    int32_t code = burni_check_array(e, "its list of ops", raw->ops, raw->n_ops, MAX_OPS,
                                     raw->op_stride, OP_FLOOR);
    if (code != BURN_OK || raw->n_ops == 0) {
        return code;
    }
    burn_op_def *ops = burni_entry_alloc(e, raw->n_ops, sizeof(*ops));
    if (ops == NULL) {
        return BURN_E_NO_MEMORY;
    }
    for (uint32_t i = 0; code == BURN_OK && i < raw->n_ops; i++) {
        code = copy_op(e, raw, i, ops);
    }
    copy->ops = ops;
    copy->op_stride = (uint32_t)sizeof(*ops);
    return code;
}
