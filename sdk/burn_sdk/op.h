/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op.h - what definitions of ops are written with outside of the core: rows of roles and
 * attributes, errors of shape rules, samples.
 *
 * Owns no state and exports nothing; all is inline. What builds gradients and decompositions is in
 * <burn/build.h>. Sample helpers fill operand i and raise n_in; tolerances count epsilons of the
 * dtype. To add a helper: it must be of use to definitions of any op. Plain C11 and C++17. [any]
 */
#ifndef BURN_SDK_OP_H
#define BURN_SDK_OP_H

#include <burn/build.h>
#include <burn/op_def.h>
#include <burn_sdk/plugin.h>
#include <string.h>

/* clang-format off */
/* One role; LIKE: the dtype of operand `operand`. */
#define BURN_ROLE(name, flags, set) { (name), (flags), 0, {0, 0, 0}, {(set), 0, 0, 0} }
#define BURN_ROLE_LIKE(name, flags, operand, set) \
    { (name), (flags), (operand) + 1, {0, 0, 0}, {(set), 0, 0, 0} }
/* One attribute: a field of a struct that begins with burn_attrs_head. */
#define BURN_ATTR_ROW(type, field, kind, klass, doc) \
    { #field, (doc), (kind), (uint16_t)offsetof(type, field), \
      (uint16_t)sizeof(((const type *)0)->field), 1, (klass), 0 }
/* clang-format on */

/* Attribute struct of an infer, vjp, expand or eval argument; NULL when it is missing or short. */
#define BURN_ATTRS_OF(a, type)                                                                     \
    ((const type *)((a)->attrs != NULL && (a)->attrs_size >= sizeof(type) ? (a)->attrs : NULL))

/* Strides and size of a definition, and its id from its name: once, in the query. [init] */
static inline void burn_op_finish(burn_op_def *def)
{
    def->struct_size = (uint32_t)sizeof(*def);
    def->id = burn_op_id_from_name(def->name);
    def->revision = def->revision > 0 ? def->revision : 1;
    def->role_stride = (uint32_t)sizeof(burn_role);
    def->attr_stride = (uint32_t)sizeof(burn_attr);
    def->alias_stride = (uint32_t)sizeof(burn_alias);
}

/* ---- shape rules ----------------------------------------------------------------------------- */

static inline int burn_meta_same_shape(const burn_meta *a, const burn_meta *b)
{
    int same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->dims[d] == b->dims[d];
    }
    return same;
}

/* Copies rank and dims, not the dtype. */
static inline void burn_meta_copy_shape(burn_meta *to, const burn_meta *from)
{
    to->rank = from->rank;
    memcpy(to->dims, from->dims, sizeof(to->dims));
}

/* "[2,3]" into `out`, cut to fit; returns `out`. */
static inline const char *burn_shape_text(char *out, size_t cap, const burn_meta *meta)
{
    size_t used = 0;
    for (uint32_t d = 0; d <= meta->rank && used + 1 < cap; d++) {
        int n = d < meta->rank ? snprintf(out + used, cap - used, "%c%lld", d > 0 ? ',' : '[',
                                          (long long)meta->dims[d])
                               : snprintf(out + used, cap - used, "%s", d > 0 ? "]" : "[]");
        used += n > 0 ? (size_t)n : 0;
    }
    return out;
}

/* BURN_E_SHAPE with both shapes unless they are the same. */
static inline int32_t burn_check_same_shape(const char *op, const char *name_a, const burn_meta *a,
                                            const char *name_b, const burn_meta *b, burn_err *err)
{
    char first[64];
    char second[64];
    if (burn_meta_same_shape(a, b)) {
        return BURN_OK;
    }
    return burn_plugin_fail(err, BURN_E_SHAPE, "%s: %s has shape %s, %s has %s; they must be equal",
                            op, name_a, burn_shape_text(first, sizeof(first), a), name_b,
                            burn_shape_text(second, sizeof(second), b));
}

/* ---- samples --------------------------------------------------------------------------------- */

static inline void burn_sample_begin(burn_sample *s, const char *name, double tolerance,
                                     double grad_tolerance)
{
    BURN_INIT(s, burn_sample);
    s->name = name;
    s->tolerance = tolerance;
    s->grad_tolerance = grad_tolerance;
}

static inline burn_sample_operand *burn_sample_operand_at(burn_sample *s, uint32_t i)
{
    s->n_in = s->n_in > i + 1 ? s->n_in : i + 1;
    return &s->in[i];
}

/* A tensor; dtype 0: each dtype of the role in turn. `fill` is BURN_FILL_*. */
static inline burn_sample_operand *burn_sample_tensor(burn_sample *s, uint32_t i, uint8_t dtype,
                                                      uint8_t fill, uint32_t rank,
                                                      const int64_t *dims)
{
    burn_sample_operand *o = burn_sample_operand_at(s, i);
    o->kind = BURN_TENSOR;
    o->dtype = dtype;
    o->fill = fill;
    o->rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++) {
        o->dims[d] = dims[d];
    }
    return o;
}

static inline void burn_sample_number(burn_sample *s, uint32_t i, uint8_t dtype, double value)
{
    burn_sample_operand *o = burn_sample_operand_at(s, i);
    o->kind = BURN_IMMEDIATE;
    o->dtype = dtype;
    o->lo = value;
}

static inline void burn_sample_absent(burn_sample *s, uint32_t i)
{
    burn_sample_operand_at(s, i)->kind = BURN_ABSENT;
}

static inline void burn_sample_attrs(burn_sample *s, const void *attrs, uint32_t size)
{
    s->attrs_size = size;
    memcpy(s->attrs, attrs, size);
}

/* The call must fail with that code. */
static inline void burn_sample_error(burn_sample *s, int32_t code)
{
    s->flags |= BURN_SAMPLE_ERROR;
    s->error = code;
}

#endif /* BURN_SDK_OP_H */
