/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cases.c - from a sample to operands: which dtypes it is tried with, and its values.
 *
 * An operand without a dtype of its own takes each dtype of its role in turn, together with all
 * operands that are tied to it. Where several are free, they step together, so every dtype of every
 * role occurs without all combinations.
 */
#include "conformance.h"

const burn_role *conf_role_in(const burn_op_def *def, uint32_t i)
{
    uint32_t index = i < def->n_in ? i : def->n_in - 1u;
    const char *base = (const char *)def->roles;
    return (const burn_role *)(const void *)(base + (size_t)index * def->role_stride);
}

const burn_role *conf_role_out(const burn_op_def *def, uint32_t j)
{
    uint32_t index = j < def->n_out ? j : def->n_out - 1u;
    const char *base = (const char *)def->roles;
    return (const burn_role *)(const void *)(base + (size_t)(def->n_in + index) * def->role_stride);
}

uint32_t conf_dim_attr(const burn_op_def *def, uint32_t a, uint32_t k)
{
    const char *rows = (const char *)def->attrs;
    const burn_attr *attr = (const burn_attr *)(const void *)(rows + (size_t)a * def->attr_stride);
    uint32_t n = attr->type == BURN_ATTR_I64_LIST ? BURN_MAX_RANK : attr->type == BURN_ATTR_I64;
    return attr->klass == BURN_ATTR_DIM && k < n ? attr->offset + k * (uint32_t)sizeof(int64_t) : 0;
}

static uint32_t count_bits(uint64_t set)
{
    uint32_t n = 0;
    while (set != 0) {
        set &= set - 1;
        n++;
    }
    return n;
}

/* The n-th dtype of a set; n wraps. */
static uint8_t pick(uint64_t set, uint32_t n)
{
    uint32_t size = count_bits(set);
    if (size == 0) {
        return BURN_DTYPE_NONE;
    }
    n %= size;
    for (uint32_t bit = 0; bit < 64; bit++) {
        if ((set >> bit & 1) != 0) {
            if (n == 0) {
                return (uint8_t)bit;
            }
            n--;
        }
    }
    return BURN_DTYPE_NONE;
}

/* The set that operand i steps through; 0 when its dtype is given or tied to another operand. */
static uint64_t free_set(const burn_op_def *def, const burn_sample *sample, uint32_t i)
{
    const burn_sample_operand *operand = &sample->in[i];
    const burn_role *role = conf_role_in(def, i);
    if (operand->kind == BURN_ABSENT || operand->dtype != 0) {
        return 0;
    }
    uint32_t tie = role->same_dtype_as;
    if (tie != 0 && tie - 1 != i && tie <= sample->n_in &&
        sample->in[tie - 1].kind != BURN_ABSENT) {
        return 0;
    }
    uint64_t set = role->dtypes[0] & BURN_SET_ANY;
    uint64_t wanted = set & sample->dtypes;
    return wanted != 0 ? wanted : set;
}

uint32_t conf_variants(const burn_op_def *def, const burn_sample *sample)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < sample->n_in && i < CONF_MAX_IN && def->n_in > 0; i++) {
        uint32_t size = count_bits(free_set(def, sample, i));
        most = size > most ? size : most;
    }
    return most;
}

static uint8_t dtype_of(const conf_case *c, uint32_t i, uint32_t depth)
{
    const burn_sample_operand *operand = &c->sample.in[i];
    if (operand->kind == BURN_ABSENT) {
        return BURN_DTYPE_NONE;
    }
    if (operand->dtype != 0) {
        return operand->dtype;
    }
    uint64_t set = free_set(c->def, &c->sample, i);
    if (set != 0 || depth > CONF_MAX_IN) {
        return pick(set, c->variant);
    }
    return dtype_of(c, conf_role_in(c->def, i)->same_dtype_as - 1u, depth + 1);
}

/* The dtype that stands in the report: of the first operand that steps, else of the first. */
static uint8_t label_of(const conf_case *c)
{
    uint8_t first = BURN_DTYPE_NONE;
    for (uint32_t i = 0; i < c->n_in; i++) {
        uint8_t dtype = c->in[i].meta.dtype;
        if (count_bits(free_set(c->def, &c->sample, i)) > 1) {
            return dtype;
        }
        first = first == BURN_DTYPE_NONE ? dtype : first;
    }
    return first;
}

void conf_case_dtypes(conf_case *c, uint32_t variant)
{
    c->variant = variant;
    c->n_in = c->sample.n_in < CONF_MAX_IN ? c->sample.n_in : CONF_MAX_IN;
    uint32_t n_out = c->sample.n_out != 0 ? c->sample.n_out : c->def->n_out;
    c->n_out = n_out < CONF_MAX_OUT ? n_out : CONF_MAX_OUT;
    for (uint32_t i = 0; i < c->n_in; i++) {
        const burn_sample_operand *operand = &c->sample.in[i];
        burn_meta *meta = &c->in[i].meta;
        memset(&c->in[i], 0, sizeof(c->in[i]));
        meta->kind = operand->kind;
        meta->dtype = c->def->n_in > 0 ? dtype_of(c, i, 0) : operand->dtype;
        meta->rank = operand->kind == BURN_TENSOR ? operand->rank : 0;
        for (uint32_t d = 0; d < meta->rank; d++) {
            meta->dims[d] = operand->dims[d];
        }
    }
    c->dtype = label_of(c);
}

void conf_case_inputs(conf_case *c)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].meta.kind != BURN_ABSENT) {
            conf_value_alloc(c->arena, &c->in[i]);
            uint64_t counter = (uint64_t)(i + 1) << 40 | (uint64_t)c->sample_index << 24;
            conf_fill(&c->in[i], &c->sample.in[i], c->seed ^ c->def->id << 8, counter);
            conf_tell_number(&c->in[i]);
        }
    }
}
