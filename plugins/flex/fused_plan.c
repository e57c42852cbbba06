/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_plan.c - where a compiled program's results go: stores, buffers, passes (fused.h).
 *
 * Results are stored once no operand is read any more, since a result may lie in the memory of a
 * dead operand; where that is no danger, a run writes them in place and the store does nothing.
 * Buffers are reused as soon as their value is dead, the result of a loop taking that of an
 * argument where it can. Rows longer than a tile are walked in passes, one per chain of reductions.
 */
#include "fused_draft.h"

#include <string.h>

enum { NONE = BURN_FUSED_NONE };

static const flex_fused *refuse(const draft *d, const char *what)
{
    (void)flex_fail(d->call->err, BURN_E_UNSUPPORTED, "fused: %s", what);
    return NULL;
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* The last step that reads an operand's own memory, for each value; 0 where none does. */
static void find_last_reads(const draft *d, uint16_t *last)
{
    memset(last, 0, sizeof(uint16_t) * FLEX_FUSED_OPERANDS);
    for (uint16_t s = 0; s < d->n_steps; s++) {
        const flex_fused_step *step = &d->steps[s];
        for (uint32_t k = 0; k < step->n_in; k++) {
            const flex_fused_value *v = &d->values[step->in[k]];
            if (v->in_place && v->space != BURN_FUSED_ONE) {
                last[v->slot] = s;
            }
        }
        if (step->exec == flex_fused_load) {
            last[step->index] = s;
        }
    }
}

/* It makes a result anew, wherever that lies. */
static int is_map(const flex_fused_step *s)
{
    return s->exec == flex_fused_map || s->exec == flex_fused_map_rows ||
           s->exec == flex_fused_generate || s->exec == flex_fused_lines;
}

static uint16_t defined_at(const draft *d, uint16_t value)
{
    for (uint16_t s = 0; s < d->n_steps; s++) {
        if (d->steps[s].out == value && d->steps[s].exec != flex_fused_store) {
            return s;
        }
    }
    return 0;
}

static flex_fused_step store_of(const draft *d, uint16_t j)
{
    flex_fused_step s;
    memset(&s, 0, sizeof(s));
    s.exec = flex_fused_store;
    s.space = d->outs[j].space;
    s.out = j;
    s.in[0] = d->outs[j].value;
    s.n_in = 1;
    return s;
}

/* Puts the stores among the steps. Results of rows at once, others behind all reads of operands. */
static void insert_stores(draft *d)
{
    uint16_t last[FLEX_FUSED_OPERANDS];
    uint16_t after[BURN_MAX_OPERANDS];
    uint16_t reads = 0;
    find_last_reads(d, last);
    for (uint32_t i = 0; i < FLEX_FUSED_OPERANDS; i++) {
        reads = last[i] > reads ? last[i] : reads;
    }
    uint16_t n_stores = 0;
    for (uint16_t j = 0; j < d->call->n_out; j++) {
        after[j] = defined_at(d, d->outs[j].value);
        n_stores += d->outs[j].space != BURN_FUSED_COLUMN;
        if (d->outs[j].space == BURN_FUSED_FULL && after[j] < reads) {
            after[j] = reads;
        } else if (d->outs[j].space == BURN_FUSED_COLUMN) {
            after[j] = FLEX_FUSED_STEPS; /* it is written when all tiles have run */
        }
    }
    flex_fused_step *steps = d->steps;
    uint16_t to = (uint16_t)(d->n_steps + n_stores);
    /* Copies of operands only: there is nothing to stand behind. */
    for (uint16_t j = 0; j < d->call->n_out && d->n_steps == 0; j++) {
        steps[j] = store_of(d, j);
    }
    /* From behind, so that they can be moved where they are. */
    for (uint16_t s = d->n_steps; s-- > 0;) {
        for (uint16_t j = (uint16_t)d->call->n_out; j-- > 0;) {
            if (after[j] == s) {
                steps[--to] = store_of(d, j);
            }
        }
        steps[--to] = steps[s];
    }
    d->n_steps = (uint16_t)(d->n_steps + n_stores);
}

/* A result that a loop makes can be made where it belongs. */
static void find_definitions(draft *d)
{
    for (uint32_t j = 0; j < d->call->n_out; j++) {
        flex_fused_out *o = &d->outs[j];
        uint16_t at = defined_at(d, o->value);
        o->def = FLEX_FUSED_STEPS;
        if (o->space == BURN_FUSED_FULL && d->steps[at].out == o->value && is_map(&d->steps[at])) {
            o->def = at;
            o->apart = d->steps[at].exec == flex_fused_lines && !d->steps[at].reuse;
        }
        for (uint32_t k = 0; k < j; k++) {
            if (d->outs[k].value == o->value) {
                o->def = FLEX_FUSED_STEPS;
            }
        }
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Which pass each value can be had in: that of its arguments, one more behind a reduction. */
static void find_levels(draft *d, uint8_t *level)
{
    memset(level, 0, FLEX_FUSED_VALUES);
    for (uint16_t s = 0; s < d->n_steps; s++) {
        flex_fused_step *step = &d->steps[s];
        uint8_t most = 0;
        for (uint32_t k = 0; k < step->n_in; k++) {
            uint8_t l = level[step->in[k]];
            most = l > most ? l : most;
        }
        step->level = most;
        if (step->exec == flex_fused_reduce) {
            d->folds[step->index].level = most;
            level[step->out] = (uint8_t)(most + 1);
        } else if (step->exec != flex_fused_store) {
            level[step->out] = most;
        }
    }
}

typedef struct pass_plan {
    uint32_t n_passes;
    uint32_t n_levels;
} pass_plan;

/* The last pass is the one that stores, or feeds the last reduction. */
static pass_plan count_passes(const draft *d)
{
    pass_plan p = {1, 1};
    for (uint16_t s = 0; s < d->n_steps; s++) {
        const flex_fused_step *step = &d->steps[s];
        uint32_t levels = step->level + (step->exec == flex_fused_reduce ? 2u : 1u);
        p.n_levels = levels > p.n_levels ? levels : p.n_levels;
        if (step->space == BURN_FUSED_FULL && step->level + 1u > p.n_passes) {
            p.n_passes = step->level + 1u;
        }
    }
    return p;
}

/* Which passes do a FULL step: those of the reductions and stores that it feeds. */
static void mark_passes(draft *d, uint32_t n_passes)
{
    uint32_t need[FLEX_FUSED_VALUES] = {0};
    for (uint16_t s = d->n_steps; s-- > 0;) {
        flex_fused_step *step = &d->steps[s];
        if (step->space != BURN_FUSED_FULL) {
            continue;
        }
        if (step->exec == flex_fused_reduce) {
            step->passes = 1u << step->level;
        } else if (step->exec == flex_fused_store) {
            step->passes = 1u << (n_passes - 1);
        } else {
            step->passes = need[step->out] != 0 ? need[step->out] : 1u << step->level;
        }
        for (uint32_t k = 0; k < step->n_in; k++) {
            need[step->in[k]] |= step->passes;
        }
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

typedef struct buffers {
    uint16_t last_use[FLEX_FUSED_VALUES];
    uint8_t taken[FLEX_FUSED_VALUES];
    uint16_t n_full;
    uint16_t n_rows;
    uint16_t n_ones;
    uint8_t size; /* of the largest element */
} buffers;

static int is_buffered(const draft *d, uint16_t v)
{
    const flex_fused_value *value = &d->values[v];
    return value->space == BURN_FUSED_FULL && !value->in_place;
}

static uint16_t free_slot(buffers *b)
{
    uint16_t slot = 0;
    while (b->taken[slot]) {
        slot++;
    }
    b->taken[slot] = 1;
    b->n_full = slot + 1u > b->n_full ? (uint16_t)(slot + 1) : b->n_full;
    return slot;
}

/* An argument that dies here and is of the result's size, or NONE. */
static uint16_t dying(const draft *d, const buffers *b, uint16_t s)
{
    const flex_fused_step *step = &d->steps[s];
    for (uint32_t k = 0; k < step->n_in && step->reuse; k++) {
        uint16_t v = step->in[k];
        if (is_buffered(d, v) && b->last_use[v] == s &&
            d->values[v].size == d->values[step->out].size) {
            return v;
        }
    }
    return NONE;
}

static void place_result(draft *d, buffers *b, uint16_t s)
{
    const flex_fused_step *step = &d->steps[s];
    flex_fused_value *out = &d->values[step->out];
    uint16_t from = NONE;
    if (out->space == BURN_FUSED_ROW) {
        out->slot = b->n_rows++;
        return;
    }
    if (out->space == BURN_FUSED_COLUMN) {
        return;
    }
    b->size = out->size > b->size ? out->size : b->size;
    from = dying(d, b, s);
    if (from != NONE) {
        out->slot = d->values[from].slot;
        d->values[from].slot = FLEX_FUSED_NO_SLOT;
        return;
    }
    out->slot = free_slot(b);
}

/*
 * The slots of values that die at step s are free from then on. A slot that was handed over has
 * left its old value's record, which only serves this planning: `slots` keeps the true ones.
 */
static void free_dead(draft *d, buffers *b, uint16_t s)
{
    const flex_fused_step *step = &d->steps[s];
    for (uint32_t k = 0; k < step->n_in; k++) {
        uint16_t v = step->in[k];
        if (is_buffered(d, v) && b->last_use[v] == s &&
            d->values[v].slot != FLEX_FUSED_NO_SLOT) {
            b->taken[d->values[v].slot] = 0;
        }
    }
    if (step->exec != flex_fused_store && is_buffered(d, step->out) &&
        b->last_use[step->out] == 0) {
        b->taken[d->values[step->out].slot] = 0;
    }
}

static void place_all(draft *d, buffers *b)
{
    uint16_t slots[FLEX_FUSED_VALUES];
    memset(b, 0, sizeof(*b));
    b->size = 1;
    for (uint16_t s = 0; s < d->n_steps; s++) {
        for (uint32_t k = 0; k < d->steps[s].n_in; k++) {
            b->last_use[d->steps[s].in[k]] = s;
        }
    }
    for (uint16_t s = 0; s < d->n_ones; s++) {
        d->values[d->ones[s].out].slot = b->n_ones++;
    }
    for (uint16_t v = 0; v < d->n_values; v++) {
        slots[v] = d->values[v].slot;
    }
    for (uint16_t s = 0; s < d->n_steps; s++) {
        const flex_fused_step *step = &d->steps[s];
        if (step->exec != flex_fused_store) {
            place_result(d, b, s);
            slots[step->out] = d->values[step->out].slot;
        }
        free_dead(d, b, s);
    }
    for (uint16_t v = 0; v < d->n_values; v++) {
        d->values[v].slot = slots[v];
    }
}

/* Of the longest line of f32. */
enum { LINE_ELEMENTS = BURN_FUSED_LINE_BYTES / 4 };

/* ---- the whole ------------------------------------------------------------------------------- */

/* Inputs whose memory the only result may have: its own position is read before it is written.
 * Those of a product are none of them: each of its blocks needs whole rows. */
static uint32_t in_place_mask(const draft *d)
{
    uint32_t mask = 0;
    if (d->call->n_out != 1 || d->outs[0].space != BURN_FUSED_FULL || d->stops) {
        return 0;
    }
    uint8_t size = d->values[d->outs[0].value].size;
    if (d->product != NULL && !d->passes_on && d->values[d->reg[d->call->n_in]].size == size) {
        return 0; /* it is made where the result will be, so nothing else may lie there */
    }
    for (uint16_t v = 0; v < d->n_values; v++) {
        const flex_fused_value *value = &d->values[v];
        if (value->in_place && value->space == BURN_FUSED_FULL && value->size == size &&
            value->slot < d->call->n_in && value->slot < 32) {
            mask |= 1u << value->slot;
        }
    }
    return mask;
}

static uint32_t task_grain(const draft *d)
{
    uint32_t grain = 2 * FLEX_GRAIN / (d->weight + 1);
    return grain < FLEX_FUSED_TILE ? FLEX_FUSED_TILE : grain;
}

static uint32_t free_tile(const buffers *b)
{
    uint32_t room = FLEX_FUSED_CACHE / ((b->n_full > 0 ? b->n_full : 1u) * b->size);
    uint32_t tile = FLEX_FUSED_MOST_TILE;
    while (tile > room && tile > FLEX_FUSED_LEAST_TILE) {
        tile /= 2;
    }
    return tile;
}

static uint32_t group_of(const flex_fused_value *v)
{
    if (v->space == BURN_FUSED_ONE) {
        return v->in_place ? FLEX_FUSED_IN_SCALARS : FLEX_FUSED_IN_ONES;
    }
    if (v->in_place) {
        return FLEX_FUSED_IN_OPERANDS;
    }
    if (v->inner) {
        return FLEX_FUSED_IN_STRANDS;
    }
    return v->space == BURN_FUSED_FULL ? FLEX_FUSED_IN_TILES : FLEX_FUSED_IN_ROWS;
}

static void list_places(const draft *d, flex_fused *f, flex_fused_place *places)
{
    uint16_t n = 0;
    for (uint32_t group = 0; group < FLEX_FUSED_N_GROUPS; group++) {
        for (uint16_t v = 0; v < d->n_values; v++) {
            const flex_fused_value *value = &f->values[v];
            int is_made = d->product != NULL && v == d->reg[d->call->n_in];
            int is_placed = !is_made && value->space != BURN_FUSED_COLUMN;
            if (group_of(value) == group && is_placed) {
                flex_fused_place p = {v, value->slot, value->space == BURN_FUSED_ROW, {0}};
                places[n++] = p;
            }
        }
        f->group_end[group] = n;
    }
    const uint32_t extra = d->call->n_in + d->call->n_out;
    for (uint32_t i = 0; i < extra; i++) {
        f->size[i] = (uint8_t)flex_size(flex_in(d->call, i)->dtype);
    }
    if (d->product != NULL) {
        f->size[extra] = d->values[d->reg[d->call->n_in]].size;
    }
}

static flex_fused *pack(const draft *d)
{
    const uint64_t head = (sizeof(flex_fused) + 63) / 64 * 64;
    const uint64_t n_steps = (uint64_t)d->n_ones + d->n_steps;
    const uint64_t bytes = head + (n_steps + d->n_steps) * sizeof(flex_fused_step) +
                           d->n_steps / 2u * sizeof(flex_fused_strand) +
                           d->n_steps * 3u * sizeof(flex_fused_link) +
                           d->n_folds * sizeof(flex_fused_fold) +
                           d->call->n_out * sizeof(flex_fused_out) +
                           d->n_values * (sizeof(flex_fused_value) + sizeof(flex_fused_place)) +
                           FLEX_FUSED_OPERANDS * sizeof(uint16_t);
    char *memory = flex_host->alloc(bytes);
    if (memory == NULL) {
        (void)flex_fail(d->call->err, BURN_E_NO_MEMORY, "fused: out of host memory");
        return NULL;
    }
    memset(memory, 0, bytes);
    flex_fused *f = (flex_fused *)(void *)memory;
    flex_fused_step *steps = (flex_fused_step *)(void *)(memory + head);
    flex_fused_step *walk = steps + n_steps;
    flex_fused_link *links = (flex_fused_link *)(void *)(walk + d->n_steps);
    flex_fused_strand *strands = (flex_fused_strand *)(void *)(links + d->n_steps * 3u);
    flex_fused_fold *folds = (flex_fused_fold *)(void *)(strands + d->n_steps / 2u);
    flex_fused_out *outs = (flex_fused_out *)(void *)(folds + d->n_folds);
    flex_fused_place *places = (flex_fused_place *)(void *)(outs + d->call->n_out);
    flex_fused_value *values = (flex_fused_value *)(void *)(places + d->n_values);
    memcpy(steps, d->ones, d->n_ones * sizeof(*steps));
    memcpy(steps + d->n_ones, d->steps, d->n_steps * sizeof(*steps));
    memcpy(folds, d->folds, d->n_folds * sizeof(*folds));
    memcpy(outs, d->outs, d->call->n_out * sizeof(*outs));
    memcpy(values, d->values, d->n_values * sizeof(*values));
    uint16_t *last = (uint16_t *)(void *)(values + d->n_values);
    find_last_reads(d, last);
    f->steps = steps;
    f->folds = folds;
    f->outs = outs;
    f->values = values;
    f->last_use = last;
    f->places = places;
    f->n_steps = (uint16_t)n_steps;
    f->n_ones = d->n_ones;
    flex_fused_find_strands(f, walk, strands, links, values);
    list_places(d, f, places);
    return f;
}

/* What a run needs besides operands: the product's own memory, and a place for its result where no
 * output has elements of that size. */
static void plan_product(const draft *d, flex_fused *f)
{
    f->product = d->product;
    if (d->product == NULL) {
        return;
    }
    uint8_t size = f->size[flex_fused_extra(f)];
    f->made = d->reg[d->call->n_in];
    f->hot = (uint8_t)(d->hot != 0);
    f->passes_on = (uint8_t)(d->passes_on != 0);
    f->scratch = !f->passes_on;
    for (uint32_t j = 0; j < d->call->n_out; j++) {
        if (d->outs[j].space == BURN_FUSED_FULL && f->size[d->call->n_in + j] == size) {
            f->scratch = 0;
        }
    }
    f->product_bytes = (d->product_bytes + 63) / 64 * 64;
    f->workspace_bytes = f->product_bytes + (f->scratch ? d->result_bytes : 0);
}

const flex_fused *flex_fused_plan(draft *d)
{
    uint8_t level[FLEX_FUSED_VALUES];
    buffers b;
    insert_stores(d);
    find_definitions(d);
    find_levels(d, level);
    pass_plan passes = count_passes(d);
    if (passes.n_passes > FLEX_FUSED_PASSES) {
        return refuse(d, "too many reductions that need one another");
    }
    mark_passes(d, passes.n_passes);
    place_all(d, &b);
    if (b.n_rows > FLEX_FUSED_ROW_SLOTS || b.n_ones > BURN_MAX_OPERANDS) {
        return refuse(d, "too many values of rows");
    }
    uint64_t run = (uint64_t)b.n_full * b.size * (d->n_folds > 0 ? FLEX_FUSED_TILE : 256);
    uint64_t lines = d->has_lines ? (uint64_t)b.n_full * b.size * LINE_ELEMENTS : 0;
    if (run > FLEX_FUSED_BYTES || lines > FLEX_FUSED_BYTES) {
        return refuse(d, "too many values that are alive at a time");
    }
    flex_fused *f = pack(d);
    if (f == NULL) {
        return NULL;
    }
    f->n_in = (uint16_t)d->call->n_in;
    f->n_out = (uint16_t)d->call->n_out;
    f->n_values = d->n_values;
    f->n_folds = d->n_folds;
    f->n_columns = d->n_columns;
    memcpy(f->columns, d->columns, sizeof(f->columns));
    f->has_rows = d->has_lines;
    for (uint16_t v = 0; v < d->n_values; v++) {
        f->has_rows |= d->values[v].space == BURN_FUSED_ROW;
    }
    f->n_slots = b.n_full;
    f->n_row_slots = b.n_rows;
    f->n_one_slots = b.n_ones;
    f->n_passes = (uint16_t)passes.n_passes;
    f->n_levels = (uint16_t)passes.n_levels;
    f->row_input = d->program->row_input;
    f->full = d->operand_full;
    f->cut = d->cut;
    f->slot_size = b.size;
    f->looks_twice = d->looks_twice;
    f->has_lines = d->has_lines;
    f->stops = d->stops;
    f->in_place_mask = in_place_mask(d);
    f->grain = task_grain(d);
    f->tile = free_tile(&b);
    plan_product(d, f);
    return f;
}
