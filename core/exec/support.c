/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * support.c - a dry run: which rows would a call take, all the way down its decomposition?
 *
 * Values are metas only; nothing is allocated on a device and nothing runs. A sample of the op
 * gives operands and attributes. So the support matrix follows from rows and decompositions, and is
 * never a second list.
 */
#include "exec/support.h"

#include "base/alloc.h"
#include "base/error.h"
#include "exec/emit_private.h"
#include "exec/rows.h"
#include "exec/match.h"
#include "ops/ask.h"
#include "ops/rules.h"

#include <burn/registry.h>
#include <string.h>

#define MAX_DEPTH 12

typedef struct dry_value {
    burn_meta meta;
    struct dry_value *next;
} dry_value;

typedef struct dry_run {
    burni_device *device;
    dry_value *values; /* all of them, to be freed at the end */
    uint32_t depth;
    int failed;
} dry_run;

static burn_value *value_new(dry_run *run, const burn_meta *meta)
{
    dry_value *v = burni_calloc(1, sizeof(*v));
    if (v == NULL) {
        run->failed = 1;
        return NULL;
    }
    v->meta = *meta;
    v->next = run->values;
    run->values = v;
    return (burn_value *)(void *)v;
}

static const burn_meta *meta_of(const burn_value *value)
{
    return &((const dry_value *)(const void *)value)->meta;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int slot_takes(const burn_slot *slot, const burn_meta *meta)
{
    if (meta->kind == BURN_ABSENT) {
        return slot->may_be_absent;
    }
    int dtype = (int)(slot->dtypes[meta->dtype / 64] >> (meta->dtype % 64) & 1);
    return dtype && (meta->kind != BURN_IMMEDIATE || slot->immediate_ok);
}

static int row_takes(const burn_row *row, const burni_emission *e)
{
    uint32_t slots_out = burni_slots_out(e->op, e->n_out);
    uint32_t slots_in = row->n_slots > slots_out ? row->n_slots - slots_out : 0;
    if (slots_in == 0 && e->n_in > 0) {
        return 0;
    }
    for (uint32_t i = 0; i < e->n_in + e->n_out; i++) {
        const burn_slot *slot = burni_row_slot(e->op, row, i, e->n_in, e->n_out);
        const burn_meta *meta = i < e->n_in ? &e->meta[i] : &e->out_meta[i - e->n_in];
        if (!slot_takes(slot, meta)) {
            return 0;
        }
    }
    return 1;
}

static int has_row(const burni_device *device, const burni_emission *e)
{
    const burni_rows *rows = burni_rows_of(device, e->op);
    for (uint32_t i = 0; i < rows->count; i++) {
        if (row_takes(rows->rows[i], e)) {
            return 1;
        }
    }
    return 0;
}

/* ---- the builder ----------------------------------------------------------------------------- */

static int32_t dry_call(dry_run *run, burni_emission *e, int *native);

/* An immediate takes the dtype of the tensor that it is tied to. */
static void convert_immediates(burni_emission *e)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_role *role = burni_op_role_in(e->op, i);
        if (e->meta[i].kind != BURN_IMMEDIATE) {
            continue;
        }
        uint64_t set = role->dtypes[0];
        if (set != 0 && (set & (set - 1)) == 0) {
            e->meta[i].dtype = (uint8_t)__builtin_ctzll(set);
        }
        for (uint32_t k = 0; k < e->n_in; k++) {
            int tied = role->same_dtype_as == k + 1 ||
                       burni_op_role_in(e->op, k)->same_dtype_as == i + 1;
            if (tied && e->meta[k].kind == BURN_TENSOR) {
                e->meta[i].dtype = e->meta[k].dtype;
            }
        }
    }
}

static int32_t dry_emit(void *ctx, uint64_t op, const void *attrs, uint32_t attrs_size,
                        burn_value *const *in, uint32_t n_in, burn_value **out, uint32_t n_out)
{
    dry_run *run = ctx;
    burni_emission *e = burni_calloc(1, sizeof(*e));
    const burni_op *found = burni_op_find(op);
    const burn_meta none = {0};
    int ok = e != NULL && found != NULL && n_in <= BURN_MAX_OPERANDS && !run->failed;
    if (ok) {
        e->op = found;
        e->attrs = attrs;
        e->attrs_size = attrs_size;
        e->n_in = n_in;
        e->n_out = n_out;
        for (uint32_t i = 0; i < n_in; i++) {
            e->meta[i] = in[i] != NULL ? *meta_of(in[i]) : none;
        }
        int native = 0;
        ok = dry_call(run, e, &native) == BURN_OK;
    }
    run->failed |= !ok;
    for (uint32_t j = 0; j < n_out; j++) {
        out[j] = value_new(run, ok ? &e->out_meta[j] : &none);
    }
    burni_free(e);
    return ok ? BURN_OK : BURN_E_UNSUPPORTED;
}

static void dry_meta(void *ctx, const burn_value *value, burn_meta *out)
{
    static const burn_meta none = {0};
    (void)ctx;
    *out = value != NULL ? *meta_of(value) : none;
}

static burn_value *dry_immediate(void *ctx, uint8_t dtype, double number)
{
    (void)number;
    const burn_meta meta = {.kind = BURN_IMMEDIATE, .dtype = dtype};
    return value_new(ctx, &meta);
}

static burn_value *dry_immediate_int(void *ctx, uint8_t dtype, int64_t number)
{
    (void)number;
    return dry_immediate(ctx, dtype, 0.0);
}

static burn_value *dry_constant(void *ctx, uint8_t dtype, uint32_t rank, const int64_t *dims,
                                const void *bytes)
{
    (void)bytes;
    burn_meta meta = {.kind = BURN_TENSOR, .dtype = dtype, .rank = (uint8_t)rank};
    memcpy(meta.dims, dims, rank * sizeof(dims[0]));
    return value_new(ctx, &meta);
}

static burn_value *dry_fail(void *ctx, int32_t code, const char *text)
{
    dry_run *run = ctx;
    const burn_meta none = {0};
    (void)code;
    (void)text;
    run->failed = 1;
    return value_new(run, &none);
}

static int32_t expand(dry_run *run, burni_emission *e)
{
    burn_builder b = {.struct_size = sizeof(b),
                      .ctx = run,
                      .emit = dry_emit,
                      .meta = dry_meta,
                      .immediate = dry_immediate,
                      .immediate_int = dry_immediate_int,
                      .constant = dry_constant,
                      .fail = dry_fail};
    burn_value *in[BURN_MAX_OPERANDS];
    burn_value *out[BURN_MAX_OPERANDS] = {NULL};
    for (uint32_t i = 0; i < e->n_in; i++) {
        in[i] = e->meta[i].kind == BURN_ABSENT ? NULL : value_new(run, &e->meta[i]);
    }
    burn_expand a = {sizeof(a), e->n_in, e->n_out, e->attrs_size, in, e->meta, out, e->attrs};
    run->depth++;
    int32_t rc = burni_ask_decompose(e->op, &b, &a, NULL);
    run->depth--;
    return rc == BURN_OK && !run->failed ? BURN_OK : BURN_E_UNSUPPORTED;
}

/* Infers, then looks for a row, then goes down the decomposition. */
static int32_t dry_call(dry_run *run, burni_emission *e, int *native)
{
    burn_err err = BURN_ERR_INIT;
    convert_immediates(e);
    if (run->depth > MAX_DEPTH || burni_emit_infer(e, &err) != BURN_OK) {
        return BURN_E_UNSUPPORTED;
    }
    *native = e->op->view || has_row(run->device, e);
    if (*native) {
        return BURN_OK;
    }
    return e->op->def.decompose != NULL ? expand(run, e) : BURN_E_UNSUPPORTED;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void take_sample(burni_emission *e, const burni_op *op, const burn_sample *s, uint8_t dtype)
{
    e->op = op;
    e->attrs = s->attrs_size > 0 ? s->attrs : NULL;
    e->attrs_size = s->attrs_size;
    e->n_in = s->n_in;
    e->n_out = s->n_out != 0 ? s->n_out : op->def.n_out;
    for (uint32_t i = 0; i < s->n_in && i < 16; i++) {
        const burn_sample_operand *o = &s->in[i];
        const burn_role *role = burni_op_role_in(op, i);
        uint64_t set = role->dtypes[0];
        int single = set != 0 && (set & (set - 1)) == 0;
        e->meta[i].kind = o->kind;
        e->meta[i].rank = o->rank;
        e->meta[i].dtype = o->dtype != 0 ? o->dtype
                           : single      ? (uint8_t)__builtin_ctzll(set)
                                         : dtype;
        memcpy(e->meta[i].dims, o->dims, sizeof(o->dims));
        if (o->kind == BURN_IMMEDIATE) {
            e->meta[i].dims[0] = (int64_t)o->lo;
        }
    }
}

/* 1 when some operand of the sample takes the dtype that is asked about. */
static int concerns(const burni_emission *e, uint8_t dtype)
{
    int concerned = e->n_in == 0;
    for (uint32_t i = 0; i < e->n_in; i++) {
        const burn_role *role = burni_op_role_in(e->op, i);
        if (e->meta[i].kind == BURN_ABSENT) {
            continue;
        }
        if (role->dtypes[0] != 0 && (role->dtypes[0] >> e->meta[i].dtype & 1) == 0) {
            return 0;
        }
        concerned |= e->meta[i].dtype == dtype || e->meta[i].kind == BURN_IMMEDIATE;
    }
    return concerned;
}

int32_t burni_support(burni_device *device, const burni_op *op, uint8_t dtype)
{
    burn_sample *s = burni_calloc(1, sizeof(*s));
    burni_emission *e = burni_calloc(1, sizeof(*e));
    int32_t best = BURN_SUPPORT_NONE;
    for (uint32_t i = 0; s != NULL && e != NULL && best != BURN_SUPPORT_NATIVE; i++) {
        memset(e, 0, sizeof(*e));
        if (op->def.samples == NULL ||
            burni_ask_sample(op->plugin, &op->def, i, s, NULL) != BURN_OK) {
            break;
        }
        take_sample(e, op, s, dtype);
        int other = s->dtypes != 0 && (s->dtypes >> dtype & 1) == 0;
        if ((s->flags & BURN_SAMPLE_ERROR) != 0 || other || !concerns(e, dtype)) {
            continue;
        }
        dry_run run = {.device = device};
        int native = 0;
        if (dry_call(&run, e, &native) == BURN_OK) {
            int32_t kind = native ? BURN_SUPPORT_NATIVE : BURN_SUPPORT_DECOMPOSED;
            kind = op->view ? BURN_SUPPORT_VIEW : kind;
            best = kind > best ? kind : best;
        }
        while (run.values != NULL) {
            dry_value *next = run.values->next;
            burni_free(run.values);
            run.values = next;
        }
        if (best == BURN_SUPPORT_VIEW || (best == BURN_SUPPORT_DECOMPOSED && i > 8)) {
            break;
        }
    }
    burni_free(s);
    burni_free(e);
    return best;
}
