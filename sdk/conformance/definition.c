/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * definition.c - what every definition must have, whatever the device: a meaning, samples that can
 * succeed, a way to run on a device without a kernel, and a gradient or the reason why not.
 *
 * Runs once per op, on the runner "eval" and on devices alike; extensions are held to the same.
 */
#include "conformance.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static int may_carry_gradient(const burn_role *role)
{
    const uint32_t none = BURN_ROLE_NO_GRAD | BURN_ROLE_STATE | BURN_ROLE_ONLY_IMMEDIATE;
    return (role->flags & none) == 0 && (role->dtypes[0] & BURN_SET_FLOAT) != 0;
}

/* 1 when a float can go in and come out again. */
static int is_differentiable(const burn_op_def *def)
{
    int in = 0;
    int out = 0;
    for (uint32_t i = 0; i < def->n_in; i++) {
        in |= may_carry_gradient(conf_role_in(def, i));
    }
    for (uint32_t j = 0; j < def->n_out; j++) {
        out |= may_carry_gradient(conf_role_out(def, j));
    }
    return in && out;
}

/* Names of attributes are there, and fields lie inside of the struct. */
static const char *attributes_fault(const burn_op_def *def)
{
    if (def->attrs_size > BURN_MAX_ATTRS) {
        return "its attributes have more than 256 bytes";
    }
    for (uint32_t i = 0; i < def->n_attrs; i++) {
        const char *base = (const char *)def->attrs;
        const burn_attr *attr =
            (const burn_attr *)(const void *)(base + (size_t)i * def->attr_stride);
        if (attr->name == NULL || attr->name[0] == '\0' || attr->doc == NULL) {
            return "an attribute has no name or no text";
        }
        if (attr->offset < sizeof(burn_attrs_head) ||
            (uint32_t)attr->offset + attr->size > def->attrs_size) {
            return "an attribute lies outside of the struct";
        }
    }
    return NULL;
}

/* 1 when the operand's values are, or may be, NaN or infinite in some float dtype. */
static int holds_special(const burn_op_def *def, const burn_sample *sample, uint32_t i)
{
    const burn_sample_operand *operand = &sample->in[i];
    uint64_t dtypes = conf_role_in(def, i)->dtypes[0];
    if (operand->dtype != 0) {
        dtypes = UINT64_C(1) << operand->dtype;
    } else if (sample->dtypes != 0) {
        dtypes &= sample->dtypes;
    }
    if (operand->kind != BURN_TENSOR || (dtypes & BURN_SET_FLOAT) == 0) {
        return 0;
    }
    uint64_t n = (uint64_t)burn_dims_count(operand->rank, operand->dims);
    int special = operand->fill == BURN_FILL_SPECIAL && n > 2;
    uint64_t n_values = operand->fill == BURN_FILL_VALUES ? operand->n_values : 0;
    for (uint64_t k = 0; k < n_values && k < n; k++) {
        special |= !isfinite(operand->values[k]);
    }
    return special;
}

static int takes_floats(const burn_op_def *def)
{
    int floats = 0;
    for (uint32_t i = 0; i < def->n_in; i++) {
        const burn_role *role = conf_role_in(def, i);
        floats |= (role->flags & BURN_ROLE_ONLY_IMMEDIATE) == 0 &&
                  (role->dtypes[0] & BURN_SET_FLOAT) != 0;
    }
    return floats;
}

/*
 * Floats are tried with what is no number, too. Operands of pointwise ops with ordinary numbers
 * are, by sweep.c; others must have a sample, since only they know where it has one right answer.
 * What is called special is.
 */
static const char *special_fault(const burn_op_def *def)
{
    static burn_sample sample; /* large */
    int found = !takes_floats(def);
    for (uint32_t k = 0;; k++) {
        memset(&sample, 0, sizeof(sample));
        sample.struct_size = (uint32_t)sizeof(sample);
        if (def->samples(k, &sample) != BURN_OK) {
            break;
        }
        int special = 0;
        int any = 0;
        int swept = 0;
        for (uint32_t i = 0; i < sample.n_in && i < CONF_MAX_IN; i++) {
            special |= holds_special(def, &sample, i);
            any |= sample.in[i].fill == BURN_FILL_SPECIAL;
            swept |= sample.in[i].fill == BURN_FILL_NORMAL;
        }
        int tried = special || (swept && def->fuse == BURN_FUSE_POINTWISE);
        found |= tried && (sample.flags & BURN_SAMPLE_ERROR) == 0;
        if (!special && !any && sample.name != NULL && strstr(sample.name, "special") != NULL) {
            return "a sample is called special and holds neither NaN nor infinities";
        }
    }
    return found ? NULL
                 : "it takes floats, and no sample has NaN or infinities: add one with "
                   "BURN_FILL_SPECIAL, or with values whose result does not depend on the order "
                   "of sums (BURN_SAMPLE_NO_GRAD)";
}

/* What is wrong with a definition, or NULL. */
static const char *definition_fault(const burn_op_def *def)
{
    int primitive = (def->flags & BURN_OP_PRIMITIVE) != 0;
    int view = def->fuse == BURN_FUSE_VIEW;
    if (def->summary == NULL || def->summary[0] == '\0') {
        return "it has no summary";
    }
    if (def->eval == NULL) {
        return "it has no eval";
    }
    if (def->samples == NULL) {
        return "it has no samples";
    }
    if (view != (def->view != NULL)) {
        return "BURN_FUSE_VIEW and `view` do not go together";
    }
    if (!view && primitive == (def->decompose != NULL)) {
        return "BURN_OP_PRIMITIVE is for ops without a decomposition, and only for those";
    }
    if (is_differentiable(def) && def->vjp == NULL && def->decompose == NULL &&
        def->no_vjp == NULL) {
        return "it has no vjp, no decomposition and no reason (no_vjp)";
    }
    if (def->vjp != NULL && def->vjp_saves == NULL) {
        return "it has a vjp but does not say what that needs (vjp_saves)";
    }
    const char *fault = attributes_fault(def);
    return fault != NULL ? fault : special_fault(def);
}

uint32_t conf_first_good_sample(const burn_op_def *def)
{
    static burn_sample sample; /* large */
    for (uint32_t i = 0; def->samples != NULL; i++) {
        memset(&sample, 0, sizeof(sample));
        sample.struct_size = (uint32_t)sizeof(sample);
        if (def->samples(i, &sample) != BURN_OK) {
            return UINT32_MAX;
        }
        if ((sample.flags & BURN_SAMPLE_ERROR) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* How many sizes above 1 its attributes ask for. */
static uint32_t count_sizes(const burn_op_def *def, const burn_sample *sample)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < def->n_attrs; a++) {
        uint32_t offset = 0;
        for (uint32_t k = 0; (offset = conf_dim_attr(def, a, k)) != 0; k++) {
            int64_t size = 0;
            memcpy(&size, sample->attrs + offset, sizeof(size));
            n += size > 1;
        }
    }
    return n;
}

/* How many dims above 1 its tensors have; those that can't be differentiated or are large: few. */
static uint32_t worth_of(const burn_op_def *def, const burn_sample *sample)
{
    uint32_t worth = 1 + count_sizes(def, sample);
    int64_t most = 0;
    for (uint32_t i = 0; i < sample->n_in && i < CONF_MAX_IN; i++) {
        const burn_sample_operand *operand = &sample->in[i];
        int is_tensor = operand->kind == BURN_TENSOR;
        int64_t n = is_tensor ? burn_dims_count(operand->rank, operand->dims) : 0;
        for (uint32_t d = 0; n > 0 && d < operand->rank; d++) {
            worth += 2 * (operand->dims[d] > 1);
        }
        worth += n > 1;
        most = n > most ? n : most;
    }
    int is_handy = most <= 4096 && (sample->flags & BURN_SAMPLE_NO_GRAD) == 0;
    return is_handy ? 1000 + worth : worth;
}

uint32_t conf_main_sample(const burn_op_def *def)
{
    static const burn_op_def *last;
    static uint32_t chosen;
    static burn_sample sample; /* large */
    uint32_t most = 0;
    if (last == def) {
        return chosen;
    }
    last = def;
    chosen = UINT32_MAX;
    for (uint32_t i = 0; def->samples != NULL; i++) {
        memset(&sample, 0, sizeof(sample));
        sample.struct_size = (uint32_t)sizeof(sample);
        if (def->samples(i, &sample) != BURN_OK) {
            break;
        }
        uint32_t worth = worth_of(def, &sample);
        if ((sample.flags & BURN_SAMPLE_ERROR) == 0 && worth > most) {
            most = worth;
            chosen = i;
        }
    }
    return chosen;
}

void conf_check_definition(conf_report *report, conf_case *c)
{
    const char *fault = definition_fault(c->def);
    if (fault == NULL && conf_first_good_sample(c->def) == UINT32_MAX) {
        fault = "no sample can succeed";
    }
    c->sample.name = "definition";
    conf_result(report, c, "definition", "", fault == NULL ? CONF_PASS : CONF_FAIL, "%s",
                fault == NULL ? "" : fault);
}
