/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sequence.c - relative hashes of calls, and the set of those that are known. See sequence.h.
 *
 * Runs for each call that is not in window 1, so everything is in tables that stay in the caches
 * and nothing is cleared at a cut: entries of an earlier epoch count as empty. The set of known
 * chains is emptied when it is full; loops are then learnt again, which costs them one round.
 */
#include "exec/sequence.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "exec/stream.h"

#include <string.h>

/* Links start from this, so that no chain is 0, which marks an empty entry. */
#define FIRST_LINK UINT64_C(0x5bd1e9955bd1e995)

burni_sequence *burni_sequence_new(const struct burni_thread *home)
{
    burni_sequence *q = burni_calloc(1, sizeof(*q));
    if (q != NULL) {
        q->home = home;
        burni_sequence_cut(q);
    }
    return q;
}

void burni_sequence_cut(burni_sequence *q)
{
    q->chain = FIRST_LINK;
    q->length = 0;
    q->n_slots = 0;
    q->n_symbols = 0;
    q->epoch++;
    if (q->epoch == 0) {
        memset(q->table, 0, sizeof(q->table));
        memset(q->symbols, 0, sizeof(q->symbols));
        q->epoch = 1;
    }
}

int burni_sequence_is_full(const burni_sequence *q, const burni_launch *launch)
{
    return q->n_slots + launch->n_in + launch->n_out > BURNI_SLOTS;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static inline uint32_t place_of(const burni_storage *s)
{
    return (uint32_t)(burni_mix((uintptr_t)s, 0) >> 40) % BURNI_SLOT_TABLE;
}

static uint32_t put_slot(burni_sequence *q, burni_storage *s, uint32_t at)
{
    uint32_t slot = q->n_slots++;
    q->slots[slot].storage = s;
    q->slots[slot].serial = s->serial;
    q->slots[slot].uses = 0;
    q->slots[slot].held = 0;
    q->table[at].epoch = q->epoch;
    q->table[at].slot = slot;
    return slot;
}

/* The table is never more than half full. */
uint32_t burni_sequence_foreign_slot(burni_sequence *q, burni_storage *s)
{
    uint32_t at = place_of(s);
    while (q->table[at].epoch == q->epoch) {
        burni_slot *slot = &q->slots[q->table[at].slot];
        if (slot->storage == s) {
            /* Another storage at the address of one that is gone takes its entry over. */
            return slot->serial == s->serial ? q->table[at].slot : put_slot(q, s, at);
        }
        at = (at + 1) % BURNI_SLOT_TABLE;
    }
    return put_slot(q, s, at);
}

uint32_t burni_sequence_slot(burni_sequence *q, burni_storage *storage)
{
    return q->n_slots < BURNI_SLOTS ? burni_sequence_slot_of(q, storage) : BURNI_SLOT_NONE;
}

uint32_t burni_sequence_find(const burni_sequence *q, const burni_storage *s)
{
    if (s->home == q->home) {
        return burni_sequence_has(q, s) ? s->slot : BURNI_SLOT_NONE;
    }
    uint32_t at = place_of(s);
    while (q->table[at].epoch == q->epoch) {
        const burni_slot *slot = &q->slots[q->table[at].slot];
        if (slot->storage == s) {
            return slot->serial == s->serial ? q->table[at].slot : BURNI_SLOT_NONE;
        }
        at = (at + 1) % BURNI_SLOT_TABLE;
    }
    return BURNI_SLOT_NONE;
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Equal sizes have equal symbols; 0, 1 and negative ones mean themselves. */
static uint64_t symbol_of(burni_sequence *q, int64_t size)
{
    if (size <= 1) {
        return (uint64_t)size;
    }
    uint32_t at = (uint32_t)(burni_mix((uint64_t)size, 0) >> 40) % BURNI_SYMBOLS;
    while (q->symbols[at].epoch == q->epoch) {
        if (q->symbols[at].size == size) {
            return q->symbols[at].symbol;
        }
        at = (at + 1) % BURNI_SYMBOLS;
    }
    if (q->n_symbols >= BURNI_SYMBOLS / 2) {
        return ~(uint64_t)size;
    }
    q->symbols[at].size = size;
    q->symbols[at].epoch = q->epoch;
    q->symbols[at].symbol = 2 + q->n_symbols++;
    if (q->n_fresh < BURNI_FRESH) {
        q->fresh[q->n_fresh] = size;
    }
    q->n_fresh++;
    return q->symbols[at].symbol;
}

void burni_sequence_add_size(burni_sequence *q, int64_t size)
{
    (void)symbol_of(q, size);
}

/* ---- links ----------------------------------------------------------------------------------- */

static inline uint64_t link(uint64_t chain, uint64_t word)
{
    chain = burni_mix(chain, word);
    return chain ^ chain >> 32;
}

static uint64_t link_bytes(uint64_t chain, const void *bytes, uint32_t size)
{
    const char *p = bytes;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        chain = link(chain, word);
    }
    if (size > 0) {
        uint64_t word = 0;
        memcpy(&word, p, size);
        chain = link(chain, word);
    }
    return chain;
}

/* Attributes without those that are sizes of outputs. */
static uint64_t link_attrs(uint64_t chain, const burni_launch *launch)
{
    const burn_op_def *d = &launch->op->def;
    unsigned char bytes[BURN_MAX_ATTRS];
    if (!launch->op->has_dims || launch->attrs_size > sizeof(bytes)) {
        return link_bytes(chain, launch->attrs, launch->attrs_size);
    }
    memcpy(bytes, launch->attrs, launch->attrs_size);
    for (uint32_t a = 0; a < d->n_attrs; a++) {
        const burn_attr *attr = &d->attrs[a];
        if (attr->klass == BURN_ATTR_DIM &&
            (uint32_t)attr->offset + attr->size <= launch->attrs_size) {
            memset(bytes + attr->offset, 0, attr->size);
        }
    }
    return link_bytes(chain, bytes, launch->attrs_size);
}

static uint64_t link_sizes(burni_sequence *q, uint64_t chain, uint32_t rank, const int64_t *sizes)
{
    for (uint32_t d = 0; d < rank; d++) {
        chain = link(chain, symbol_of(q, sizes[d]));
    }
    return chain;
}

/* The slot of an output that nobody has seen before: no storage of the sequence is the same. */
static inline uint32_t fresh_slot(burni_sequence *q, burni_storage *s)
{
    if (s->home == q->home) {
        return burni_sequence_own_slot(q, s);
    }
    uint32_t at = place_of(s);
    while (q->table[at].epoch == q->epoch && q->slots[q->table[at].slot].storage != s) {
        at = (at + 1) % BURNI_SLOT_TABLE;
    }
    return put_slot(q, s, at);
}

/* The operand whose dims were linked last. */
typedef struct linked {
    const int64_t *dims;
    uint32_t rank;
} linked;

/* Whether two operands share an array of dims or have two that are equal is nobody's business. */
static inline int same_dims(const linked *last, const burn_operand *o)
{
    if (o->dims == last->dims) {
        return 1;
    }
    return last->dims != NULL && o->rank == last->rank &&
           memcmp(o->dims, last->dims, o->rank * sizeof(int64_t)) == 0;
}

static inline uint64_t link_operand(burni_sequence *q, uint64_t chain, const burn_operand *o,
                                    uint32_t slot, linked *last)
{
    uint32_t head;
    memcpy(&head, &o->kind, sizeof(head)); /* kind, dtype, rank, layout */
    chain = burni_mix(chain, head | (uint64_t)slot << 32);
    if (o->kind != BURN_TENSOR) {
        return chain;
    }
    /* One without dims may point where those of the next one begin. */
    if (o->rank > 0 && !same_dims(last, o)) {
        chain = link_sizes(q, chain, o->rank, o->dims);
        last->dims = o->dims;
        last->rank = o->rank;
    }
    if ((o->layout & (BURN_LAYOUT_CONTIGUOUS | BURN_LAYOUT_SCALAR)) == 0) {
        chain = link_sizes(q, chain, o->rank, o->strides);
    }
    return chain ^ chain >> 29;
}

void burni_sequence_add(burni_sequence *q, const burni_launch *launch, uint32_t *slots)
{
    uint32_t n_in = launch->n_in;
    int fresh = launch->op->def.n_aliases == 0;
    uint64_t chain = link(q->chain, launch->op->index | (uint64_t)n_in << 16 |
                                        (uint64_t)launch->n_out << 24 |
                                        (uint64_t)launch->math << 32);
    if (launch->attrs_size > 0) {
        chain = link_attrs(chain, launch);
    }
    linked last = {NULL, 0};
    q->n_fresh = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        burni_storage *s = launch->storages[i];
        slots[i] = s != NULL ? burni_sequence_slot_of(q, s) : BURNI_SLOT_NONE;
        chain = link_operand(q, chain, &launch->operands[i], slots[i], &last);
    }
    for (uint32_t i = n_in; i < n_in + launch->n_out; i++) {
        burni_storage *s = launch->storages[i];
        slots[i] = BURNI_SLOT_NONE;
        if (s != NULL) {
            slots[i] = fresh ? fresh_slot(q, s) : burni_sequence_slot_of(q, s);
        }
        chain = link_operand(q, chain, &launch->operands[i], slots[i], &last);
    }
    q->chain = chain ^ chain >> 32;
    q->length++;
}

void burni_sequence_spoil(burni_sequence *q)
{
    static _Atomic uint64_t times;
    q->chain = link(q->chain, ~atomic_fetch_add(&times, 1));
}

/* ---- what is known --------------------------------------------------------------------------- */

static inline uint32_t known_place(uint64_t chain)
{
    return (uint32_t)(chain >> 20) % BURNI_KNOWN;
}

int burni_sequence_is_known(const burni_sequence *q)
{
    uint32_t at = known_place(q->chain);
    while (q->known[at] != 0) {
        if (q->known[at] == q->chain) {
            return 1;
        }
        at = (at + 1) % BURNI_KNOWN;
    }
    return 0;
}

void burni_sequence_learn_chain(burni_sequence *q, uint64_t chain)
{
    if (chain == 0) {
        return; /* an empty entry; it comes from a file */
    }
    if (q->n_known >= BURNI_KNOWN / 4 * 3) {
        memset(q->known, 0, sizeof(q->known));
        q->n_known = 0;
    }
    uint32_t at = known_place(chain);
    while (q->known[at] != 0 && q->known[at] != chain) {
        at = (at + 1) % BURNI_KNOWN;
    }
    if (q->known[at] == 0) {
        q->known[at] = chain;
        q->n_known++;
    }
}

void burni_sequence_learn(burni_sequence *q)
{
    burni_sequence_learn_chain(q, q->chain);
}
