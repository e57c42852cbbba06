/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * value.c - memory of a case, and operands on the host in the form that `eval` reads.
 *
 * Owns conversions between elements (double, int64_t, uint64_t by class) and stored bytes; the
 * rules are those of <burn_sdk/element.h>. Everything in an arena is freed at once.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>

struct conf_block {
    struct conf_block *next;
    uint64_t align;
};

void *conf_alloc(conf_arena *arena, uint64_t bytes)
{
    struct conf_block *block = (struct conf_block *)calloc(1, sizeof(*block) + (size_t)bytes + 8);
    if (block == NULL) {
        (void)fprintf(stderr, "burn-conformance: no memory for %llu bytes\n",
                      (unsigned long long)bytes);
        exit(2);
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block + 1;
}

void conf_arena_free(conf_arena *arena)
{
    while (arena->blocks != NULL) {
        struct conf_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}

int64_t conf_count(const burn_meta *meta)
{
    return burn_dims_count(meta->rank, meta->dims);
}

int conf_is_float(uint8_t dtype)
{
    return burn_element_class(dtype) == BURN_CLASS_FLOAT;
}

/* Behind the elements of each value: what writes past them is a fault of its own. */
static void put_guard(void *memory, uint64_t n)
{
    memset((unsigned char *)memory + n * 8, 0xa5, CONF_GUARD);
}

uint32_t conf_value_overrun(const conf_value *value)
{
    const void *memory = value->f != NULL ? (const void *)value->f
                         : value->u != NULL ? (const void *)value->u
                                            : (const void *)value->i;
    const unsigned char *guard = (const unsigned char *)memory + value->n * 8;
    uint32_t n = memory != NULL ? CONF_GUARD : 0;
    while (n > 0 && guard[n - 1] == 0xa5) {
        n--;
    }
    return n;
}

void conf_value_alloc(conf_arena *arena, conf_value *value)
{
    value->n = (uint64_t)conf_count(&value->meta);
    value->f = NULL;
    value->i = NULL;
    value->u = NULL;
    void *memory = conf_alloc(arena, value->n * 8 + CONF_GUARD);
    put_guard(memory, value->n);
    switch (burn_element_class(value->meta.dtype)) {
    case BURN_CLASS_FLOAT:
        value->f = (double *)memory;
        break;
    case BURN_CLASS_UINT:
        value->u = (uint64_t *)memory;
        break;
    default:
        value->i = (int64_t *)memory;
        break;
    }
}

/* One element into 8 bytes of storage, and back. */
static void store(const conf_value *value, uint64_t k, unsigned char *bytes)
{
    uint8_t dtype = value->meta.dtype;
    if (value->f != NULL) {
        burn_store_f64(bytes, dtype, value->f[k]);
    } else if (value->u != NULL) {
        burn_store_u64(bytes, dtype, value->u[k]);
    } else {
        burn_store_i64(bytes, dtype, value->i[k]);
    }
}

static void load(conf_value *value, uint64_t k, const unsigned char *bytes)
{
    uint8_t dtype = value->meta.dtype;
    if (value->f != NULL) {
        value->f[k] = burn_load_f64(bytes, dtype);
    } else if (value->u != NULL) {
        value->u[k] = burn_load_u64(bytes, dtype);
    } else {
        value->i[k] = burn_load_i64(bytes, dtype);
    }
}

void conf_value_round(conf_value *value)
{
    unsigned char bytes[8] = {0};
    for (uint64_t k = 0; k < value->n; k++) {
        store(value, k, bytes);
        load(value, k, bytes);
    }
}

void conf_tell_number(conf_value *value)
{
    if (value->meta.kind == BURN_IMMEDIATE && value->f == NULL) {
        value->meta.dims[0] = value->u != NULL ? (int64_t)value->u[0] : value->i[0];
    }
}

double conf_get(const conf_value *value, uint64_t k)
{
    if (value->f != NULL) {
        return value->f[k];
    }
    return value->u != NULL ? (double)value->u[k] : (double)value->i[k];
}

void conf_set(conf_value *value, uint64_t k, double number)
{
    unsigned char bytes[8] = {0};
    burn_store_f64(bytes, value->meta.dtype, number);
    load(value, k, bytes);
}

unsigned char *conf_bytes(conf_arena *arena, const conf_value *value)
{
    uint64_t size = burn_element_size(value->meta.dtype);
    unsigned char *bytes = (unsigned char *)conf_alloc(arena, value->n * size);
    for (uint64_t k = 0; k < value->n; k++) {
        store(value, k, bytes + k * size);
    }
    return bytes;
}

void conf_from_bytes(conf_value *value, const unsigned char *bytes)
{
    uint64_t size = burn_element_size(value->meta.dtype);
    for (uint64_t k = 0; k < value->n; k++) {
        load(value, k, bytes + k * size);
    }
}

int conf_same_bits(conf_arena *arena, const conf_value *a, const conf_value *b)
{
    if (a->meta.kind == BURN_ABSENT || b->meta.kind == BURN_ABSENT) {
        return a->meta.kind == b->meta.kind;
    }
    size_t size = (size_t)a->n * burn_element_size(a->meta.dtype);
    return a->n == b->n && a->meta.dtype == b->meta.dtype &&
           (size == 0 || memcmp(conf_bytes(arena, a), conf_bytes(arena, b), size) == 0);
}

void conf_move(conf_value *to, uint64_t k, const conf_value *from, uint64_t j)
{
    if (to->f != NULL) {
        to->f[k] = from->f[j];
    } else if (to->u != NULL) {
        to->u[k] = from->u[j];
    } else {
        to->i[k] = from->i[j];
    }
}

int conf_same_shape(const burn_meta *a, const burn_meta *b)
{
    if (a->rank != b->rank) {
        return 0;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) {
            return 0;
        }
    }
    return 1;
}

const char *conf_meta_text(char *out, size_t size, const burn_meta *meta)
{
    int used = snprintf(out, size, "%s[", burn_element_name(meta->dtype));
    for (uint32_t i = 0; i < meta->rank && used > 0 && (size_t)used < size; i++) {
        used += snprintf(out + used, size - (size_t)used, "%s%lld", i > 0 ? "," : "",
                         (long long)meta->dims[i]);
    }
    if (used > 0 && (size_t)used < size) {
        (void)snprintf(out + used, size - (size_t)used, "]");
    }
    return out;
}
