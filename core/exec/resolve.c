/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * resolve.c - matching rows and caching the answer. See resolve.h for the key.
 */
#include "exec/resolve.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "exec/match.h"
#include "exec/row_notes.h"
#include "exec/rows.h"
#include "exec/tuner.h"
#include "loader/lent.h"
#include "tune/environment.h"

#include <burn/plugin.h>
#include <stdio.h>
#include <string.h>

uint8_t burni_layout_of(uint32_t rank, const int64_t *dims, const int64_t *strides)
{
    if (burni_is_dense(rank, dims, strides)) {
        return BURN_LAYOUT_CONTIGUOUS;
    }
    uint32_t outer = 0;
    while (outer < rank && (strides[outer] == 0 || dims[outer] == 1)) {
        outer++;
    }
    if (outer == rank) {
        return BURN_LAYOUT_SCALAR;
    }
    if (outer > 0 && burni_is_dense(rank - outer, dims + outer, strides + outer)) {
        return BURN_LAYOUT_VECTOR;
    }
    return strides[rank - 1] == 1 ? BURN_LAYOUT_ROWS : BURN_LAYOUT_STRIDED;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, uint32_t size)
{
    const unsigned char *p = bytes;
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = burni_mix(hash, word);
        hash ^= hash >> 29;
        p += 8;
        size -= 8;
    }
    for (uint32_t i = 0; i < size; i++) {
        hash = burni_mix(hash, p[i]);
    }
    return hash ^ (hash >> 32);
}

static uint64_t layout_code(uint8_t layout)
{
    return (uint64_t)__builtin_ctz(layout | 32u) + 1;
}

/* What answers are found by. */
typedef struct call_key {
    uint64_t key;
    uint64_t facts;
    uint64_t more;
} call_key;

static call_key make_key(const burni_rows *rows, const burn_call *call)
{
    uint64_t key = 0;
    uint64_t ranks = 0;
    uint32_t n = call->n_in + call->n_out;
    uint64_t more = n;
    for (uint32_t i = 0; i < n; i++) {
        const burn_operand *o = &call->operands[i];
        uint64_t layout = o->kind == BURN_TENSOR ? layout_code(o->layout) : 8u + o->kind;
        if (i < 8) {
            key |= ((o->dtype & 15u) | layout << 4) << (8 * i);
            ranks |= (uint64_t)(o->rank & 15u) << (4 * i);
        }
        if (i >= 8 || o->dtype > 15) {
            more = burni_mix(more, o->dtype | layout << 8 | (uint64_t)o->rank << 16 |
                                       (uint64_t)i << 24);
            more ^= more >> 32;
        }
        if (rows->key_dims && o->kind == BURN_TENSOR) {
            more = hash_bytes(more, o->dims, (uint32_t)(o->rank * sizeof(int64_t)));
        }
    }
    call_key k = {key, ranks | (uint64_t)call->flags << 32, more};
    return k;
}

/* ---- filling the cache ----------------------------------------------------------------------- */

typedef BURNI_LENT(burn_prepared) lent_prepared;

static char preferred[96]; /* the name of a row, or "" */

int32_t burni_resolve_prefer(const char *row, burn_err *err)
{
    if (row != NULL && strlen(row) >= sizeof(preferred)) {
        return burni_fail(err, BURN_E_INVALID, "row \"%.40s...\": no row has a name of %zu bytes",
                          row, strlen(row));
    }
    (void)snprintf(preferred, sizeof(preferred), "%s", row != NULL ? row : "");
    for (uint32_t d = 0; burni_device_at(d) != NULL; d++) {
        (void)atomic_fetch_add(&burni_device_at(d)->rows_version, 1); /* no answer holds */
    }
    return BURN_OK;
}

static int32_t prepare_row(const burn_row *row, burn_call *probe, burni_sink *sink,
                           lent_prepared *out, burn_err *err)
{
    burni_lend(out->guard);
    BURN_INIT(&out->it, burn_prepared);
    out->it.in_place_mask = row->in_place_mask;
    if (row->prepare == NULL) {
        return BURN_OK;
    }
    int32_t rc = row->prepare(probe, &out->it);
    rc = burni_sink_end(sink, row->name, "prepare", rc, err);
    if (rc == BURN_OK) {
        rc = burni_lent_check(out->guard, row->name, "prepare", "burn_prepared", err);
    }
    return rc;
}

static int32_t check_row(const burn_row *row, const burn_call *probe, burni_sink *sink,
                         burn_err *err)
{
    burn_err said = BURN_ERR_INIT;
    int32_t rc = burni_sink_end(sink, row->name, "check", row->check(probe), &said);
    if (rc == BURN_E_STATE) {
        burni_row_note_off(row, said.text);
    }
    return rc == BURN_OK ? BURN_OK : burni_fail(err, rc, "%s", said.text);
}

int32_t burni_accept_row(const burn_row *row, const burn_call *call, burn_prepared *out,
                         burn_err *err)
{
    burni_sink sink;
    lent_prepared prepared;
    burn_call probe = *call;
    burni_sink_begin(&sink);
    probe.err = &sink.err;
    int32_t rc = row->check != NULL ? check_row(row, &probe, &sink, err) : BURN_OK;
    if (rc == BURN_OK) {
        rc = prepare_row(row, &probe, &sink, &prepared, err);
    }
    if (rc == BURN_OK) {
        *out = prepared.it;
    }
    return rc;
}

static int accept_row(burni_resolved *r, const burn_row *row, const burn_call *call)
{
    burn_prepared prepared;
    burn_err err = BURN_ERR_INIT;
    if (burni_accept_row(row, call, &prepared, &err) != BURN_OK) {
        (void)snprintf(r->why, sizeof(r->why), "%.24s: %.64s", row->name, err.text);
        return 0;
    }
    r->row = row;
    r->state = prepared.state;
    r->workspace_bytes = prepared.workspace_bytes;
    r->in_place_mask = prepared.in_place_mask;
    return 1;
}

/* May the row be taken: by its name where one is preferred, else because it is no rival only. */
static int may_choose(const burn_row *row, const char *name)
{
    return name != NULL ? strcmp(row->name, name) == 0
                        : (row->flags & BURN_ROW_TUNED_ONLY) == 0;
}

static void choose_of(burni_resolved *r, const burni_rows *rows, const burn_call *call,
                      const char *name)
{
    uint32_t copies[2] = {0, 0};
    /* First the rows that take the operands as they are, then those that want copies. */
    for (int with_copies = 0; with_copies < 2 && r->row == NULL; with_copies++) {
        for (uint32_t i = 0; i < rows->count && r->row == NULL; i++) {
            uint32_t mask = 0;
            if (may_choose(rows->rows[i], name) &&
                burni_match_row(r->op, rows->rows[i], call, &mask, NULL) &&
                (mask != 0) == with_copies && accept_row(r, rows->rows[i], call)) {
                copies[with_copies] = mask;
            }
        }
    }
    r->copy_mask = copies[0] | copies[1];
}

static void choose(burni_resolved *r, const burni_rows *rows, const burn_call *call)
{
    if (preferred[0] != '\0') {
        choose_of(r, rows, call, preferred);
    }
    if (r->row == NULL) {
        choose_of(r, rows, call, NULL);
    }
    if (r->row == NULL && r->why[0] == '\0') {
        (void)snprintf(r->why, sizeof(r->why), "%u rows, none takes these dtypes and layouts",
                       rows->count);
    }
}

static burni_resolved *make_entry(burni_device *device, const burni_rows *rows, const burni_op *op,
                                  const burn_call *call, const call_key *key)
{
    burni_resolved *r = burni_calloc(1, sizeof(*r) + call->attrs_size);
    if (r == NULL) {
        return NULL;
    }
    r->key = key->key;
    r->facts = key->facts;
    r->more = key->more;
    r->op = op;
    r->attrs_size = call->attrs_size;
    if (call->attrs_size > 0) {
        memcpy(r->attrs, call->attrs, call->attrs_size);
    }
    choose(r, rows, call);
    int may_race = r->row != NULL && (r->row->flags & BURN_ROW_TUNABLE) != 0;
    if (burni_environment_on() != 0 && preferred[0] == '\0' && may_race) {
        burni_tuner_choose(r, device, rows, call);
    }
    if (burni_log_wants(BURN_LOG_DEBUG)) {
        burni_log(BURN_LOG_DEBUG, "dispatch", "%s on %s: %s%s%s", op->def.name, device->name,
                  r->row != NULL ? r->row->name : "no row", r->row != NULL ? "" : ", ",
                  r->row != NULL ? "" : r->why);
    }
    return r;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static burni_resolved *mutable_of(const burni_resolved *r)
{
    return (burni_resolved *)(uintptr_t)r;
}

void burni_resolved_hold(const burni_resolved *r)
{
    (void)atomic_fetch_add_explicit(&mutable_of(r)->users, 1, memory_order_relaxed);
}

void burni_resolved_let_go(const burni_resolved *r)
{
    (void)atomic_fetch_sub_explicit(&mutable_of(r)->users, 1, memory_order_release);
}

static int is_held(const burni_resolved *r)
{
    return atomic_load_explicit(&r->users, memory_order_acquire) != 0;
}

static int has_release(const burni_resolved *r)
{
    return r->row != NULL && r->row->release != NULL && r->state != NULL;
}

/* Work that was launched may still use the states. */
static void wait_for_queue(const burni_resolver *resolver, const burni_device *device)
{
    uint64_t point = resolver->submitted != NULL
                         ? atomic_load_explicit(resolver->submitted, memory_order_acquire)
                         : 0;
    if (!device->synchronous && point > 0 && !atomic_load(&device->closed) &&
        !atomic_load(&device->forked)) {
        burni_sink sink;
        burni_sink_begin(&sink);
        int32_t rc = device->api->host_wait(resolver->queue, point, UINT64_MAX, &sink.err);
        (void)burni_sink_end(&sink, device->backend, "host_wait", rc, NULL);
    }
}

/* Frees a chain of entries that nothing refers to. */
static void free_chain(const burni_resolver *resolver, const burni_device *device,
                       burni_resolved *chain)
{
    int waited = 0;
    while (chain != NULL) {
        burni_resolved *r = chain;
        chain = r->next;
        if (has_release(r)) {
            if (!waited) {
                wait_for_queue(resolver, device);
                waited = 1;
            }
            r->row->release(r->state);
        }
        burni_free(r);
    }
}

/* Takes the entries behind the first `keep` of a list out of it, but for those that are held. */
static void take_tail(burni_resolver *resolver, uint32_t op, uint32_t keep, burni_resolved **chain)
{
    burni_resolved **link = &resolver->recent[op];
    for (uint32_t i = 0; *link != NULL && i < keep; i++) {
        link = &(*link)->next;
    }
    while (*link != NULL) {
        burni_resolved *r = *link;
        if (is_held(r)) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        r->next = *chain;
        *chain = r;
        resolver->counts[op]--;
        if (resolver->fast[op].resolved == r) {
            resolver->fast[op].key = 0;
            resolver->fast[op].resolved = NULL;
        }
    }
}

/* The rows are others now: no answer holds. Those that records hold wait apart. */
static void forget_all(burni_resolver *resolver, const burni_device *device)
{
    burni_resolved *free_ones = NULL;
    burni_resolved **link = &resolver->retired;
    while (*link != NULL) {
        burni_resolved *r = *link;
        if (is_held(r)) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        r->next = free_ones;
        free_ones = r;
    }
    for (uint32_t op = 0; op < BURNI_MAX_OPS; op++) {
        take_tail(resolver, op, 0, &free_ones);
        while (resolver->recent[op] != NULL) {
            burni_resolved *r = resolver->recent[op];
            resolver->recent[op] = r->next;
            r->next = resolver->retired;
            resolver->retired = r;
        }
        resolver->counts[op] = 0;
        resolver->fast[op].key = 0;
        resolver->fast[op].resolved = NULL;
    }
    free_chain(resolver, device, free_ones);
}

void burni_resolver_clear(burni_resolver *resolver, burni_device *device)
{
    forget_all(resolver, device);
}

static void make_room(burni_resolver *resolver, const burni_device *device, uint32_t op)
{
    if (resolver->counts[op] >= BURNI_MAX_RESOLVED) {
        burni_resolved *free_ones = NULL;
        take_tail(resolver, op, BURNI_MAX_RESOLVED / 2, &free_ones);
        free_chain(resolver, device, free_ones);
    }
}

/* ---- looking up ------------------------------------------------------------------------------ */

static int same(const burni_resolved *r, const call_key *key, const burn_call *call)
{
    return r->key == key->key && r->facts == key->facts && r->more == key->more &&
           r->attrs_size == call->attrs_size &&
           (call->attrs_size == 0 || memcmp(r->attrs, call->attrs, call->attrs_size) == 0);
}

static burni_resolved *look_up(burni_resolver *resolver, uint32_t op, const call_key *key,
                               const burn_call *call)
{
    burni_resolved **head = &resolver->recent[op];
    uint32_t depth = 0;
    for (burni_resolved **link = head; *link != NULL; link = &(*link)->next) {
        burni_resolved *r = *link;
        if (same(r, key, call) && (r->row == NULL || burni_guards_hold(r->row, call))) {
            if (depth > 2) {
                *link = r->next;
                r->next = *head;
                *head = r;
            }
            return r;
        }
        depth++;
    }
    return NULL;
}

const burni_resolved *burni_resolve(burni_resolver *resolver, burni_device *device,
                                    const burni_op *op, const burn_call *call, burn_err *err)
{
    /* The version is read before the rows: rows that come in between are seen by the next call. */
    uint32_t version = atomic_load_explicit(&device->rows_version, memory_order_acquire);
    if (__builtin_expect(version != resolver->rows_version, 0)) {
        forget_all(resolver, device);
        resolver->rows_version = version;
    }
    const burni_rows *rows = burni_rows_of(device, op);
    call_key key = make_key(rows, call);
    burni_resolved *r = look_up(resolver, op->index, &key, call);
    if (r != NULL) {
        return r;
    }
    make_room(resolver, device, op->index);
    r = make_entry(device, rows, op, call, &key);
    if (r == NULL) {
        (void)burni_fail(err, BURN_E_NO_MEMORY, "%s: out of host memory", op->def.name);
        return NULL;
    }
    r->next = resolver->recent[op->index];
    resolver->recent[op->index] = r;
    resolver->counts[op->index]++;
    return r;
}
