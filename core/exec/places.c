/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * places.c - which values of a plan share one piece of memory, and where. See places.h.
 *
 * Looking at a plan goes once over its steps: when each slot is used first and last, who may take
 * over whose memory, what others hold meanwhile. The same rules decide at a launch (launch.c), so
 * the two ways can be compared: the piece is used where the most memory at once is no more. A run
 * with the same sizes takes the piece, and writes its places into the storages, nothing else.
 */
#include "exec/places.h"

#include "base/alloc.h"
#include "exec/guard.h"
#include "exec/launch.h"
#include "memory/arena.h"

#include <string.h>

#define NONE UINT32_MAX

/* A piece smaller than this gains nothing. */
#define SMALL_PIECE 4096
/* Sizes that changed so often without coming again are not packed any more. */
#define MAX_CHANGES 16

/* A value that has a place, or the workspace of a step. */
typedef struct value {
    uint64_t bytes;
    uint32_t slot; /* NONE: a workspace */
    uint32_t uses; /* operands of the plan's records */
    uint32_t item;
    uint32_t step; /* of a workspace */
} value;

/* An operand that must be dense from its storage's first byte on, so that it may be overwritten. */
typedef struct condition {
    uint32_t record;
    uint32_t operand;
    uint32_t own_row; /* and its record's row must allow it */
} condition;

struct burni_places {
    uint32_t n;            /* values, those with slots first */
    uint32_t n_slots;      /* of them */
    uint32_t n_conditions;
    uint32_t last_step;    /* that uses the piece */
    uint32_t next;         /* workspace of a step to come */
    uint32_t is_off;       /* for these sizes */
    uint32_t changes;
    uint32_t is_known;     /* has been looked at */
    burni_block *piece;    /* while a run uses it */
    burni_page *page;      /* that the blocks speak of */
    value *values;
    burni_block *blocks; /* of each value */
    condition *conditions;
    burni_places_size size;
};

/* ---- looking at a plan ----------------------------------------------------------------------- */

typedef struct use {
    uint32_t first;
    uint32_t last;
    uint32_t uses;
    uint32_t lender; /* the slot whose memory it takes over */
    uint32_t item;
    uint8_t made;   /* here */
    uint8_t inner;  /* it never leaves a fused call */
    uint8_t dies;   /* here */
    uint8_t pooled; /* it gets a block of its own */
    uint8_t lends;
    uint8_t zero[3];
    uint64_t held; /* bytes of the block that it has or would have */
} use;

typedef struct look {
    burni_stream *stream;
    const burni_batch *batch;
    const burni_step *steps;
    uint32_t n_steps;
    use *uses; /* of each slot */
    burni_arena_item *items;
    int64_t *live; /* changes from step to step */
    int64_t *pool;
    int64_t *others; /* what has no place */
    burni_places *places;
} look;

static const burni_record *record_at(const look *l, uint32_t i)
{
    return l->batch->records[i];
}

static burni_storage *storage_at(const look *l, uint32_t slot)
{
    return l->batch->slots[slot].storage;
}

static void touch_record(look *l, uint32_t k, uint32_t record)
{
    const burni_record *r = record_at(l, record);
    for (uint32_t i = 0; i < r->launch.n_in + r->launch.n_out; i++) {
        if (r->slots[i] == BURNI_SLOT_NONE) {
            continue;
        }
        use *u = &l->uses[r->slots[i]];
        if (u->uses++ == 0) {
            u->first = k;
            u->made = i >= r->launch.n_in && storage_at(l, r->slots[i])->block == NULL;
        }
        u->last = k;
    }
}

static void touch_group(look *l, uint32_t k, const burni_group *g)
{
    for (uint32_t m = 0; m < g->n_members; m++) {
        const burni_record *r = record_at(l, g->members[m].record);
        touch_record(l, k, g->members[m].record);
        if (!g->members[m].written) {
            l->uses[r->slots[r->launch.n_in]].inner = 1;
        }
    }
}

static int dies(const burni_slot *slot, uint32_t uses)
{
    return burni_slot_dies(slot, uses) && !burni_is_var(slot->storage);
}

/* Bytes of the block that a storage has or would have. Whoever overwrites a variable may exchange
 * its block meanwhile (guard.h), for one of the same size. */
static uint64_t held_by(const burni_storage *s)
{
    if (!burni_is_var(s) && s->block != NULL) {
        return s->block->bytes;
    }
    return burni_pool_class_bytes(burni_pool_class_of(s->bytes));
}

static void find_uses(look *l)
{
    for (uint32_t k = 0; k < l->n_steps; k++) {
        if (l->steps[k].group != NULL) {
            touch_group(l, k, l->steps[k].group);
        } else {
            touch_record(l, k, l->steps[k].record);
        }
    }
    for (uint32_t s = 0; s < l->batch->n_slots; s++) {
        use *u = &l->uses[s];
        u->lender = NONE;
        u->item = NONE;
        if (u->uses > 0) {
            u->dies = (uint8_t)dies(&l->batch->slots[s], u->uses);
            u->held = held_by(storage_at(l, s));
        }
    }
}

/* ---- who takes over whose memory ------------------------------------------------------------- */

static void pool_chain(look *l, uint32_t slot)
{
    for (; slot != NONE; slot = l->uses[slot].lender) {
        l->uses[slot].pooled = 1;
    }
}

/* Output `out` of step k may take input `in`'s memory, as far as lifetimes and sizes go. */
static int could_lend(const look *l, uint32_t k, uint32_t in, uint32_t out)
{
    if (in == BURNI_SLOT_NONE) {
        return 0;
    }
    const use *u = &l->uses[in];
    return u->dies && u->last == k && !u->inner && !u->lends &&
           u->held >= storage_at(l, out)->bytes;
}

static void take_over(look *l, uint32_t in, uint32_t out)
{
    l->uses[in].lends = 1;
    l->uses[out].lender = in;
    l->uses[out].held = l->uses[in].held;
    int stays = l->uses[in].made && !l->uses[in].pooled && l->uses[out].dies;
    if (!stays) {
        pool_chain(l, out);
    }
}

static void lend_in_record(look *l, uint32_t k, uint32_t record)
{
    const burni_record *r = record_at(l, record);
    uint32_t out = r->slots[r->launch.n_in];
    if (r->launch.n_out != 1 || out == BURNI_SLOT_NONE || !l->uses[out].made) {
        return;
    }
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (could_lend(l, k, r->slots[i], out) &&
            burni_launch_may_share(&r->launch, i, (int)r->launch.op->pointwise)) {
            take_over(l, r->slots[i], out);
            return;
        }
    }
}

static void lend_in_group(look *l, uint32_t k, burni_group *g)
{
    burni_group_call call;
    if (g->may_stop || !burni_group_bind(l->batch, g, &call)) {
        return;
    }
    /* A row's mask speaks of its output 0. */
    uint32_t out = record_at(l, g->outputs[0])->slots[record_at(l, g->outputs[0])->launch.n_in];
    for (uint32_t i = 0; i < g->n_in && l->uses[out].lender == NONE; i++) {
        uint32_t in = record_at(l, g->inputs[i].record)->slots[g->inputs[i].operand];
        if (could_lend(l, k, in, out) &&
            burni_launch_same_size(&call.launch, i, call.launch.n_in) &&
            burni_launch_may_share(&call.launch, i, 1)) {
            take_over(l, in, out);
        }
    }
}

static void find_lenders(look *l)
{
    for (uint32_t k = 0; k < l->n_steps; k++) {
        if (l->steps[k].group != NULL) {
            lend_in_group(l, k, l->steps[k].group);
        } else {
            lend_in_record(l, k, l->steps[k].record);
        }
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_span(int64_t *changes, uint32_t from, uint32_t to, uint64_t bytes)
{
    if (from < to) {
        changes[from] += (int64_t)bytes;
        changes[to] -= (int64_t)bytes;
    }
}

static int has_place(const use *u)
{
    return u->made && !u->inner && u->dies && !u->pooled;
}

static void sum_up(look *l)
{
    for (uint32_t s = 0; s < l->batch->n_slots; s++) {
        const use *u = &l->uses[s];
        if (u->uses == 0 || u->inner) {
            continue;
        }
        /* What it takes over is counted as its lender's in the step of both. */
        uint32_t from = !u->made ? 0 : u->lender != NONE ? u->first + 1 : u->first;
        uint32_t to = u->dies ? u->last + 1 : l->n_steps;
        uint64_t bytes = storage_at(l, s)->bytes;
        add_span(l->live, from, to, bytes);
        add_span(l->pool, from, to, u->held);
        if (!has_place(u)) {
            add_span(l->others, from, to, u->held);
        }
        burni_places_size *size = &l->places->size;
        size->largest = bytes > size->largest ? bytes : size->largest;
    }
}

static uint64_t most(const int64_t *changes, uint32_t from, uint32_t to)
{
    int64_t now = 0;
    int64_t best = 0;
    for (uint32_t k = 0; k < to; k++) {
        now += changes[k];
        best = k >= from && now > best ? now : best;
    }
    return (uint64_t)best;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A value whose memory it takes over comes first, whatever its slot. */
static void add_value(look *l, uint32_t slot)
{
    burni_places *p = l->places;
    use *u = &l->uses[slot];
    if (u->lender != NONE && l->uses[u->lender].item == NONE) {
        add_value(l, u->lender);
    }
    value *v = &p->values[p->n];
    v->slot = slot;
    v->uses = u->uses;
    v->bytes = storage_at(l, slot)->bytes;
    burni_arena_item *item = &l->items[p->size.n_values];
    p->blocks[p->n].shared = u->lender != NONE;
    if (u->lender != NONE) {
        u->item = l->uses[u->lender].item;
        item = &l->items[u->item];
        p->size.n_shared++;
    } else {
        u->item = p->size.n_values++;
        item->first = u->first;
        item->bytes = v->bytes;
    }
    item->last = u->last;
    v->item = u->item;
    p->n++;
}

static uint64_t workspace_of(const burni_batch *batch, const burni_step *step)
{
    return step->group != NULL
               ? burni_group_workspace(batch, step->group)
               : batch->records[step->record]->launch.resolved->workspace_bytes;
}

static void add_workspace(look *l, uint32_t k)
{
    burni_places *p = l->places;
    uint64_t bytes = workspace_of(l->batch, &l->steps[k]);
    if (bytes == 0) {
        return;
    }
    value *v = &p->values[p->n];
    v->slot = NONE;
    v->uses = 1;
    v->bytes = bytes;
    v->step = k;
    v->item = p->size.n_values++;
    burni_arena_item *item = &l->items[v->item];
    item->bytes = bytes;
    item->first = k;
    item->last = k;
    p->n++;
    add_span(l->live, k, k + 1, bytes);
    add_span(l->pool, k, k + 1, burni_pool_class_bytes(burni_pool_class_of(bytes)));
}

static void add_condition(look *l, uint32_t slot, uint32_t record, uint32_t own_row)
{
    burni_places *p = l->places;
    const burni_record *r = record_at(l, record);
    for (uint32_t i = 0; i < r->launch.n_in; i++) {
        if (r->slots[i] == slot) {
            condition *c = &p->conditions[p->n_conditions++];
            c->record = record;
            c->operand = i;
            c->own_row = own_row;
            own_row = 0; /* the first is the one that was looked at */
        }
    }
}

/* What must hold the next time as well, so that outputs may lie on their inputs. */
static void add_conditions(look *l)
{
    for (uint32_t s = 0; s < l->batch->n_slots; s++) {
        const use *u = &l->uses[s];
        if (!u->lends || !has_place(u)) {
            continue;
        }
        const burni_group *g = l->steps[u->last].group;
        for (uint32_t m = 0; g != NULL && m < g->n_members; m++) {
            add_condition(l, s, g->members[m].record, 0);
        }
        if (g == NULL) {
            add_condition(l, s, l->steps[u->last].record, 1);
        }
    }
}

/* At least what a binding must be aligned to. */
static uint64_t alignment(const burni_stream *stream)
{
    uint64_t align = stream->device->pool.limits.suballoc_align;
    return align > 64 ? align : 64;
}

static void pack(look *l)
{
    burni_places *p = l->places;
    burni_arena_size size;
    const burn_limits *limits = &l->stream->device->pool.limits;
    p->is_off = 1;
    p->size.live = most(l->live, 0, l->n_steps);
    p->size.pool = most(l->pool, 0, l->n_steps);
    p->size.total = p->size.pool;
    if (p->size.n_values < 2 || limits->suballoc_align == 0 ||
        !burni_arena_pack(l->items, p->size.n_values, alignment(l->stream), &size)) {
        return;
    }
    for (uint32_t i = 0; i < p->size.n_values; i++) {
        p->last_step = l->items[i].last > p->last_step ? l->items[i].last : p->last_step;
    }
    uint64_t total = most(l->others, 0, p->last_step + 1) + size.peak;
    uint64_t after = most(l->others, p->last_step + 1, l->n_steps);
    total = after > total ? after : total;
    if (size.peak < SMALL_PIECE || size.peak > limits->max_binding || total > p->size.pool) {
        return;
    }
    p->is_off = 0;
    p->size.total = total;
    p->size.packed = size.peak;
    p->size.bound = size.bound;
    for (uint32_t i = 0; i < p->n; i++) {
        p->blocks[i].klass = BURNI_PLACE;
        p->blocks[i].bytes = l->items[p->values[i].item].bytes;
        p->blocks[i].ready = l->items[p->values[i].item].offset; /* from the piece's begin */
    }
}

static void fill(look *l)
{
    burni_places *p = l->places;
    find_uses(l);
    find_lenders(l);
    sum_up(l);
    for (uint32_t s = 0; s < l->batch->n_slots; s++) {
        if (l->uses[s].uses > 0 && has_place(&l->uses[s]) && l->uses[s].item == NONE) {
            add_value(l, s);
        }
    }
    p->n_slots = p->n;
    for (uint32_t k = 0; k < l->n_steps; k++) {
        add_workspace(l, k);
    }
    add_conditions(l);
    pack(l);
    p->is_known = 1;
}

/* Room for what there may be at most; what was there is forgotten. 0: no memory. */
static int make_room(burni_places *p, const burni_batch *batch, uint32_t n_steps, uint32_t n_uses)
{
    size_t n = (size_t)batch->n_slots + n_steps;
    burni_free(p->values);
    burni_free(p->blocks);
    burni_free(p->conditions);
    p->values = burni_calloc(n, sizeof(*p->values));
    p->blocks = burni_calloc(n, sizeof(*p->blocks));
    p->conditions = burni_calloc((size_t)n_uses + 1, sizeof(*p->conditions));
    memset(&p->size, 0, sizeof(p->size));
    p->n = 0;
    p->n_slots = 0;
    p->n_conditions = 0;
    p->last_step = 0;
    p->page = NULL;
    p->is_known = 0;
    return p->values != NULL && p->blocks != NULL && p->conditions != NULL;
}

static uint32_t count_operands(const burni_batch *batch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        n += batch->records[i]->launch.n_in;
    }
    return n;
}

static void look_at_plan(burni_stream *stream, const burni_batch *batch, const burni_step *steps,
                         uint32_t n_steps, burni_places *p)
{
    look l = {stream, batch, steps, n_steps, NULL, NULL, NULL, NULL, NULL, p};
    size_t n_sums = (size_t)n_steps + 1;
    l.uses = burni_calloc((size_t)batch->n_slots + 1, sizeof(*l.uses));
    l.items = burni_calloc((size_t)batch->n_slots + n_steps, sizeof(*l.items));
    l.live = burni_calloc(3 * n_sums, sizeof(*l.live));
    if (make_room(p, batch, n_steps, count_operands(batch)) && l.uses != NULL &&
        l.items != NULL && l.live != NULL) {
        l.pool = l.live + n_sums;
        l.others = l.pool + n_sums;
        fill(&l);
    } else {
        p->is_off = 1;
    }
    burni_free(l.uses);
    burni_free(l.items);
    burni_free(l.live);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Are the sizes and the views those that the places were made for? `*out_die`: all values die
 * within the run, by construction; a batch that is only a part of what waits is the exception. */
static int fits(const burni_batch *batch, const burni_step *steps, const burni_places *p,
                int *out_die)
{
    int die = 1;
    int same = 1;
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const value *v = &p->values[i];
        const burni_slot *slot = &batch->slots[v->slot];
        const burni_storage *s = slot->storage;
        same &= s->bytes == v->bytes;
        die &= burni_slot_dies(slot, v->uses) && s->block == NULL;
    }
    *out_die = die;
    if (!same) {
        return 0;
    }
    for (uint32_t i = p->n_slots; i < p->n; i++) {
        const value *v = &p->values[i];
        if (workspace_of(batch, &steps[v->step]) != v->bytes) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < p->n_conditions; i++) {
        const condition *c = &p->conditions[i];
        const burni_launch *launch = &batch->records[c->record]->launch;
        const burn_operand *o = &launch->operands[c->operand];
        int plain = o->offset == 0 && o->layout == BURN_LAYOUT_CONTIGUOUS;
        if (!plain || (c->own_row && (launch->resolved->in_place_mask >> c->operand & 1) == 0)) {
            return 0;
        }
    }
    return 1;
}

static void place_values(const burni_batch *batch, burni_places *p)
{
    burni_page *page = p->piece->page;
    if (p->page != page) {
        for (uint32_t i = 0; i < p->n; i++) {
            p->blocks[i].page = page;
            p->blocks[i].offset = p->piece->offset + p->blocks[i].ready;
        }
        p->page = page;
    }
    for (uint32_t i = 0; i < p->n_slots; i++) {
        burni_storage *s = batch->slots[p->values[i].slot].storage;
        burni_block *block = &p->blocks[i];
        s->block = block;
        s->buffer = page->buffer;
        s->buffer_offset = block->offset;
        s->host = page->host != NULL ? page->host + block->offset : NULL;
    }
}

/* The step before which something is to be done: a workspace begins, or nothing is needed more. */
static uint32_t next_step(const burni_places *p)
{
    return p->next < p->n ? p->values[p->next].step : p->last_step + 1;
}

uint32_t burni_places_begin(burni_stream *stream, const burni_batch *batch,
                            const burni_step *steps, uint32_t n_steps, burni_places **places)
{
    if (*places == NULL) {
        *places = burni_calloc(1, sizeof(**places));
        if (*places == NULL) {
            return NONE;
        }
    }
    burni_places *p = *places;
    int die = 1;
    if (p->changes > MAX_CHANGES) {
        return NONE;
    }
    if (!p->is_known || !fits(batch, steps, p, &die)) {
        p->changes += p->is_known;
        look_at_plan(stream, batch, steps, n_steps, p);
        die = 1; /* what does not has no place */
    } else {
        p->changes = 0;
    }
    if (p->is_off || !die) {
        return NONE;
    }
    p->piece = burni_pool_take_piece(&stream->device->pool, &stream->cache, p->size.packed,
                                     p->size.bound);
    if (p->piece == NULL) {
        p->is_off = 1;
        p->size.total = p->size.pool;
        p->size.packed = 0;
        return NONE;
    }
    p->next = p->n_slots;
    place_values(batch, p);
    return next_step(p);
}

uint32_t burni_places_step(burni_stream *stream, burni_places *p, uint32_t k)
{
    stream->cache.workspace = NULL;
    if (k > p->last_step) {
        burni_places_end(stream, p);
        return NONE;
    }
    if (p->next < p->n && p->values[p->next].step == k) {
        stream->cache.workspace = &p->blocks[p->next++];
        return k + 1;
    }
    return next_step(p);
}

void burni_places_end(burni_stream *stream, burni_places *p)
{
    if (p != NULL && p->piece != NULL) {
        burni_pool_give_piece(&stream->device->pool, &stream->cache, p->piece);
        p->piece = NULL;
        stream->cache.workspace = NULL;
    }
}

void burni_places_free(burni_places *p)
{
    if (p != NULL) {
        burni_free(p->values);
        burni_free(p->blocks);
        burni_free(p->conditions);
        burni_free(p);
    }
}

const burni_places_size *burni_places_measure(const burni_places *p)
{
    return p != NULL && p->is_known ? &p->size : NULL;
}
