/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sequence.h - the calls of a stream since the last cut, in a form that tells loops again.
 *
 * Each call adds one link to a chain of hashes. What goes in is relative: the op, its attributes
 * (but for sizes), dtypes, ranks, layouts and math mode; which operands are the same storage, by
 * the order of first use; which sizes are equal, by symbols. Addresses, scalars and sizes do not,
 * so that a loop gives the same chain each time round, with another batch size too. A chain that
 * was seen before is known. Storages are told apart exactly (slots), sequences by 64 bits.
 * One per stream: of its owner while nothing waits, under the stream's lock otherwise.
 */
#ifndef BURN_CORE_EXEC_SEQUENCE_H
#define BURN_CORE_EXEC_SEQUENCE_H

#include "tensor/tensor.h"

struct burni_launch;

#define BURNI_SLOTS       4096
#define BURNI_SLOT_TABLE  8192
#define BURNI_SYMBOLS     256
#define BURNI_KNOWN       8192
#define BURNI_SLOT_NONE   UINT32_MAX
#define BURNI_FRESH       2

/* A storage that the sequence uses. */
typedef struct burni_slot {
    burni_storage *storage;
    uint32_t serial; /* of the storage: its address may serve again */
    uint32_t uses;   /* operands of waiting records */
    uint32_t held;   /* a reference on behalf of all of them; 0: others hold it for so long */
    uint32_t zero;
} burni_slot;

typedef struct burni_sequence {
    uint64_t chain;  /* of what was added since the cut */
    uint32_t length; /* calls since the cut */
    uint32_t epoch;  /* of the tables' valid entries */
    uint32_t n_slots;
    uint32_t n_symbols;
    uint32_t n_known;
    uint32_t n_fresh;   /* sizes that the last call was the first to have */
    int64_t fresh[BURNI_FRESH]; /* the first of them */
    const struct burni_thread *home; /* storages that it made know their slot; NULL: none do */
    uint32_t environment; /* whose plans are known (tune/environment.h), 0: none's */
    uint32_t zero;
    burni_slot slots[BURNI_SLOTS];
    struct {
        uint32_t epoch;
        uint32_t slot;
    } table[BURNI_SLOT_TABLE];
    struct {
        int64_t size;
        uint32_t epoch;
        uint32_t symbol;
    } symbols[BURNI_SYMBOLS];
    uint64_t known[BURNI_KNOWN];
} burni_sequence;

/* Of the calls of a thread, or of none in particular (NULL). NULL when memory is short. */
burni_sequence *burni_sequence_new(const struct burni_thread *home);
/* A cut: the next call is the first of a sequence. What records hold must have been let go. */
void burni_sequence_cut(burni_sequence *q);
/* 1 when the launch may not be added any more: there are no slots left. */
int burni_sequence_is_full(const burni_sequence *q, const struct burni_launch *launch);
/* Adds the symbol of a size, where there is none: as a call does that has it. */
void burni_sequence_add_size(burni_sequence *q, int64_t size);
/* Adds a call. `slots[i]` becomes the slot of operand i's storage, BURNI_SLOT_NONE without one. */
void burni_sequence_add(burni_sequence *q, const struct burni_launch *launch, uint32_t *slots);
/* The slot of a storage, made if need be; BURNI_SLOT_NONE when there are too many. */
uint32_t burni_sequence_slot(burni_sequence *q, burni_storage *storage);
/* The slot of a storage that has one, or BURNI_SLOT_NONE. */
uint32_t burni_sequence_find(const burni_sequence *q, const burni_storage *storage);
/* The same for a storage that has none yet, of the sequence's home. There must be room. */
static inline uint32_t burni_sequence_own_slot(burni_sequence *q, burni_storage *s)
{
    uint32_t slot = q->n_slots++;
    s->slot = slot;
    q->slots[slot].storage = s;
    q->slots[slot].serial = s->serial;
    q->slots[slot].uses = 0;
    q->slots[slot].held = 0;
    return slot;
}
/* A storage that another thread made does not know its slot: a table does. */
uint32_t burni_sequence_foreign_slot(burni_sequence *q, burni_storage *s);

/* Only its home writes a storage's own note of its slot, so it is right, or there is none. */
static inline int burni_sequence_has(const burni_sequence *q, const burni_storage *s)
{
    return s->slot < q->n_slots && q->slots[s->slot].storage == s;
}

/* burni_sequence_slot, where there is room. */
static inline uint32_t burni_sequence_slot_of(burni_sequence *q, burni_storage *s)
{
    if (__builtin_expect(s->home != q->home, 0)) {
        return burni_sequence_foreign_slot(q, s);
    }
    return burni_sequence_has(q, s) ? s->slot : burni_sequence_own_slot(q, s);
}
/* A call was added that will not be made: no sequence goes on from here. */
void burni_sequence_spoil(burni_sequence *q);
/* 1 when the chain was learnt before. */
int burni_sequence_is_known(const burni_sequence *q);
void burni_sequence_learn(burni_sequence *q);
void burni_sequence_learn_chain(burni_sequence *q, uint64_t chain);

#endif /* BURN_CORE_EXEC_SEQUENCE_H */
