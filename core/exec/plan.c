/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan.c - from records to steps: dependencies, groups, order. See plan.h.
 *
 * Groups grow greedily, in the order of the records: a record joins the groups of those that made
 * its operands when it walks over the same positions, and when nothing that depends on the group
 * and that the record depends on would be left between them. Then the groups are put in an order
 * that keeps dependencies, those first that the program would have completed first.
 * Reductions over the last dims are members too, and what is computed per row from their results.
 * A group may begin with one product, which nothing of the group may come before.
 */
#include "exec/plan_private.h"

#include "base/alloc.h"
#include "exec/explain.h"
#include "exec/group.h"
#include "exec/launch.h"
#include "exec/many.h"
#include "exec/sequence.h"
#include "exec/walk.h"
#include "graph/fused.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

/* ---- the graph of records -------------------------------------------------------------------- */

typedef struct edge {
    uint32_t from; /* the earlier record */
    uint32_t next; /* of the later record's list */
} edge;

/* A record while it is planned; those of a group are a ring-free list from its first member on. */
typedef struct node {
    uint32_t edges; /* list of what must run before it */
    uint32_t group; /* its group's first member */
    uint32_t next;  /* member of the group */
    /* Of a group, in its first member: */
    uint32_t last;
    uint32_t n_members;
    uint32_t n_operands;
    uint32_t visited;
    int64_t positions; /* FULL elements; 0: it cannot be fused */
    int64_t length;    /* of rows; 0: it has none */
    burni_turn turn;   /* of operands; those from outside, since others end the group */
    const char *why;   /* the first reader of a member did not join, and who it is */
    uint32_t ender;
    uint8_t space;
    uint8_t reduces;
    uint8_t generates;
    uint8_t produces; /* it is a product, which a group may begin with */
    uint8_t lines;    /* it goes over lines */
    uint8_t has_product; /* of a group: a member is one */
    uint8_t has_rows;    /* likewise: rows must be whole; a member gives a value per column */
    uint8_t has_columns;
    uint8_t needed;
    uint8_t alive;
} node;

typedef struct graph {
    burni_stream *stream;
    const burni_batch *batch;
    uint32_t n;
    uint32_t n_edges;
    uint32_t cap_edges;
    uint32_t stamp;
    uint32_t failed;
    uint32_t ordered; /* the last record whose effect must keep its place among others */
    node *nodes;
    edge *edges;
    uint32_t *writers; /* per slot: the record that wrote it last */
    uint8_t *barred;        /* records over lines or first dims that could not be in a group */
    uint32_t again;         /* one more was barred: other groups are to be found */
    const uint16_t *wanted; /* the groups that it shall have (tune/kept_plan.h), NULL: the best */
} graph;

static const burni_record *record_at(const graph *g, uint32_t i)
{
    return g->batch->records[i];
}

static void add_edge(graph *g, uint32_t from, uint32_t to)
{
    if (from == NONE || from == to) {
        return;
    }
    if (g->n_edges == g->cap_edges) {
        uint32_t cap = 2 * g->cap_edges;
        edge *grown = burni_realloc(g->edges, cap * sizeof(*grown));
        if (grown == NULL) {
            g->failed = 1;
            return;
        }
        g->edges = grown;
        g->cap_edges = cap;
    }
    g->edges[g->n_edges].from = from;
    g->edges[g->n_edges].next = g->nodes[to].edges;
    g->nodes[to].edges = g->n_edges++;
}

/* Whoever writes what is there already (a variable) comes after all that used it. */
static void add_rewrite(graph *g, uint32_t i, uint32_t slot)
{
    for (uint32_t k = 0; k < i; k++) {
        if (g->nodes[k].needed && burni_record_touches(record_at(g, k), slot)) {
            add_edge(g, k, i);
        }
    }
}

static void add_record(graph *g, uint32_t i)
{
    const burni_record *r = record_at(g, i);
    if (r->launch.op->def.effect >= BURN_EFFECT_ORDERED) {
        add_edge(g, g->ordered, i);
        g->ordered = i;
    }
    for (uint32_t k = 0; k < r->launch.n_in; k++) {
        if (r->slots[k] != BURNI_SLOT_NONE) {
            add_edge(g, g->writers[r->slots[k]], i);
        }
    }
    for (uint32_t k = r->launch.n_in; k < r->launch.n_in + r->launch.n_out; k++) {
        if (r->slots[k] == BURNI_SLOT_NONE) {
            continue;
        }
        if (r->launch.op->def.n_aliases > 0) {
            add_rewrite(g, i, r->slots[k]);
        }
        g->writers[r->slots[k]] = i;
    }
}

/* ---- who may be fused ------------------------------------------------------------------------ */

static int is_plain_result(const burni_launch *launch)
{
    const burn_operand *z = &launch->operands[launch->n_in];
    return z->offset == 0 && z->layout == BURN_LAYOUT_CONTIGUOUS &&
           burni_fused_takes(launch->op, launch->op->def.fuse);
}

/* All its operands are turned alike, or not at all. */
static int has_one_turn(const burni_launch *launch, burni_turn *turn)
{
    int fits = 1;
    for (uint32_t k = 0; k < launch->n_in && fits; k++) {
        burni_turn own = burni_turn_of(&launch->operands[k]);
        fits = burni_turns_agree(turn, &own, turn);
    }
    return fits;
}

/* Over the last dims or over the first ones. */
static void look_at_reduction(node *self, const burni_launch *launch, int64_t made, int barred)
{
    int64_t taken = burni_operand_numel(&launch->operands[0]);
    int by_rows = burni_reduces_rows(launch);
    if (made == 0 || taken / made <= 1 ||
        (!by_rows && (barred || !burni_reduces_columns(launch)))) {
        return;
    }
    self->positions = taken;
    self->length = by_rows ? taken / made : made;
    self->space = by_rows ? BURN_FUSED_ROW : BURN_FUSED_COLUMN;
    self->has_rows = by_rows != 0;
    self->has_columns = !by_rows;
    self->reduces = 1;
}

static void look_at(graph *g, uint32_t i)
{
    node *self = &g->nodes[i];
    const burni_launch *launch = &record_at(g, i)->launch;
    uint32_t fuse = launch->op->def.fuse;
    if (!is_plain_result(launch)) {
        return;
    }
    int64_t made = burni_operand_numel(&launch->operands[launch->n_in]);
    if (fuse == BURN_FUSE_EPILOGUE_HOST && burni_may_produce(launch)) {
        self->positions = made;
        self->produces = 1;
        self->has_product = 1;
    } else if (fuse == BURN_FUSE_POINTWISE || fuse == BURN_FUSE_GENERATE) {
        if (!has_one_turn(launch, &self->turn)) {
            return;
        }
        self->positions = made;
        self->generates = fuse == BURN_FUSE_GENERATE;
    } else if (fuse == BURN_FUSE_LINES && made > 0 && !g->barred[i] && burni_line_of(launch) > 0) {
        self->positions = made;
        self->length = burni_line_of(launch);
        self->lines = 1;
        self->has_rows = 1;
    } else if (fuse == BURN_FUSE_REDUCE) {
        look_at_reduction(self, launch, made, g->barred[i]);
    }
    self->n_operands = launch->n_in + launch->n_out;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Does operand k of record i, which member p of the group makes, read it position by position? */
static int reads_in_place(const graph *g, uint32_t i, uint32_t k, uint32_t p, uint8_t space,
                          int64_t positions, int64_t length)
{
    const burn_operand *o = &record_at(g, i)->launch.operands[k];
    int64_t n = burni_operand_numel(o);
    if (o->offset != 0) {
        return 0;
    }
    if (g->nodes[p].space == BURN_FUSED_ROW && space == BURN_FUSED_FULL) {
        return length > 0 && burni_reads_its_row(o, positions, length);
    }
    int64_t made = space == BURN_FUSED_ROW ? positions / length : positions;
    return g->nodes[p].space == space && o->layout == BURN_LAYOUT_CONTIGUOUS && n == made;
}

/* Two groups, by their first members, that walk the same way. */
static int same_walk(const node *x, const node *y)
{
    return x->positions == y->positions &&
           (x->length == 0 || y->length == 0 || x->length == y->length);
}

/* The space that record i would have in a group, or 255 when it has no place there. */
static uint8_t place_in(const graph *g, uint32_t i, uint32_t group)
{
    const node *self = &g->nodes[i];
    const node *to = &g->nodes[group];
    if (self->reduces) {
        return same_walk(self, to) ? self->space : 255;
    }
    if (self->positions == to->positions) {
        return same_walk(self, to) ? (uint8_t)BURN_FUSED_FULL : 255;
    }
    int is_row = to->length > 0 && !self->generates && !self->lines &&
                 self->positions == to->positions / to->length;
    return is_row ? (uint8_t)BURN_FUSED_ROW : 255;
}

/* Are all operands of record i that the group makes read position by position? */
static int operands_fit(const graph *g, uint32_t i, uint32_t group, uint8_t space,
                        int64_t positions, int64_t length)
{
    const burni_record *r = record_at(g, i);
    for (uint32_t k = 0; k < r->launch.n_in; k++) {
        uint32_t p = r->slots[k] != BURNI_SLOT_NONE ? g->writers[r->slots[k]] : NONE;
        if (p == NONE || p >= i || g->nodes[p].group != group) {
            continue;
        }
        if (g->nodes[i].produces || burni_is_one_line(&r->launch, k)) {
            return 0; /* they are there before the pass begins */
        }
        uint8_t reads = g->nodes[i].reduces ? (uint8_t)BURN_FUSED_FULL : space;
        if (!reads_in_place(g, i, k, p, reads, positions, length)) {
            return 0;
        }
    }
    return 1;
}

/* The same for what the members of two groups read of each other. Record i, which is alone in its
 * group, would be of that space. */
static int groups_fit(const graph *g, uint32_t group, uint32_t mine, uint32_t i, uint8_t space)
{
    int64_t positions = g->nodes[group].positions;
    int64_t length = g->nodes[group].length > 0 ? g->nodes[group].length : g->nodes[mine].length;
    int fit = 1;
    for (uint32_t m = mine; m != NONE && fit; m = g->nodes[m].next) {
        uint8_t own = m == i ? space : g->nodes[m].space;
        fit = operands_fit(g, m, group, own, positions, length);
    }
    for (uint32_t m = group; m != NONE && fit; m = g->nodes[m].next) {
        fit = operands_fit(g, m, mine, g->nodes[m].space, positions, length);
    }
    return fit;
}

/* Is there a way back from `group` to `target`, other than straight from a member? */
static int reaches(graph *g, uint32_t group, uint32_t target, int direct)
{
    g->nodes[group].visited = g->stamp;
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        for (uint32_t e = g->nodes[m].edges; e != NONE; e = g->edges[e].next) {
            uint32_t from = g->nodes[g->edges[e].from].group;
            if (from == target) {
                if (!direct) {
                    return 1;
                }
            } else if (from != group && g->nodes[from].visited != g->stamp &&
                       reaches(g, from, target, 0)) {
                return 1;
            }
        }
    }
    return 0;
}

static int would_cycle(graph *g, uint32_t a, uint32_t b)
{
    g->stamp++;
    if (reaches(g, a, b, 1)) {
        return 1;
    }
    g->stamp++;
    return reaches(g, b, a, 1);
}

enum { MAX_MEMBERS = 48, MAX_GROUP_OPERANDS = 100 };

static int has_room(const graph *g, uint32_t a, uint32_t b)
{
    return g->nodes[a].n_members + g->nodes[b].n_members <= MAX_MEMBERS &&
           g->nodes[a].n_operands + g->nodes[b].n_operands <= MAX_GROUP_OPERANDS;
}

/* The members of `b` become members of `a`. Lists stay in the order of records. */
static void merge(graph *g, uint32_t a, uint32_t b)
{
    uint32_t first = a < b ? a : b;
    node head = g->nodes[a];
    uint32_t tail = NONE;
    uint32_t x = a;
    uint32_t y = b;
    while (x != NONE || y != NONE) {
        uint32_t *from = x != NONE && (y == NONE || x < y) ? &x : &y;
        uint32_t m = *from;
        *from = g->nodes[m].next;
        g->nodes[m].group = first;
        if (tail != NONE) {
            g->nodes[tail].next = m;
        }
        tail = m;
    }
    g->nodes[tail].next = NONE;
    node *to = &g->nodes[first];
    const node *other = &g->nodes[b];
    uint32_t n_members = head.n_members + other->n_members;
    uint32_t n_operands = head.n_operands + other->n_operands;
    const node *ended = head.why != NULL ? &head : other;
    to->ender = ended->ender;
    to->why = ended->why;
    to->length = head.length > 0 ? head.length : other->length;
    to->positions = head.positions;
    (void)burni_turns_agree(&head.turn, &other->turn, &to->turn);
    to->has_product = head.has_product | other->has_product;
    to->has_rows = head.has_rows | other->has_rows;
    to->has_columns = head.has_columns | other->has_columns;
    to->n_members = n_members;
    to->n_operands = n_operands;
    to->last = tail;
}

/* Why one walk over the positions does not serve both; NULL: it does. */
static const char *walks_apart(const graph *g, uint32_t a, uint32_t b)
{
    const node *x = &g->nodes[a];
    const node *y = &g->nodes[b];
    burni_turn turn;
    int64_t length = x->length > 0 ? x->length : y->length;
    int has_columns = x->has_columns | y->has_columns;
    int has_product = x->has_product | y->has_product;
    if (has_columns && has_product) {
        return "sums columns, beside a product";
    }
    if (has_columns && (x->has_rows | y->has_rows) != 0 && !burni_rows_meet_columns(length)) {
        return "goes by columns, beside rows that are long";
    }
    int agree = burni_turns_agree(&x->turn, &y->turn, &turn) &&
                burni_turn_has_rows(&turn, length) &&
                (turn.inner == 0 || !(has_product || has_columns));
    return agree ? NULL : "reads in another shape or order";
}

/* Why record i does not join the group of one that made its operand; NULL: it joins, as `space`. */
static const char *refuses(graph *g, uint32_t i, uint32_t group, uint8_t *space)
{
    uint32_t mine = g->nodes[i].group;
    int alone = g->nodes[mine].n_members == 1;
    *space = alone ? place_in(g, i, group) : g->nodes[i].space;
    if (g->nodes[i].positions == 0) {
        return g->barred[i] ? "the kernel refused in a larger group"
                            : "is no step of a pass over elements";
    }
    if (g->nodes[i].produces) {
        return "begins a pass of its own";
    }
    if (g->nodes[group].has_product && g->nodes[mine].has_product) {
        return "has a product already";
    }
    if (!has_room(g, group, mine)) {
        return "would make it too long";
    }
    if (*space == 255 || (!alone && !same_walk(&g->nodes[group], &g->nodes[mine]))) {
        return "goes over another number of elements";
    }
    if (!groups_fit(g, group, mine, i, *space)) {
        return "reads in another shape or order";
    }
    const char *apart = walks_apart(g, group, mine);
    if (apart != NULL) {
        return apart;
    }
    return would_cycle(g, group, mine) ? "needs what must run in between" : NULL;
}

/* What is made again to save memory would live from the forward pass on in a group of it. */
static int comes_too_early(const graph *g, uint32_t i, uint32_t group)
{
    return record_at(g, i)->launch.remade && !record_at(g, group)->launch.remade;
}

/* Record i joins the groups of those that made its operands, where it can. */
static void join(graph *g, uint32_t i)
{
    const burni_record *r = record_at(g, i);
    for (uint32_t k = 0; k < r->launch.n_in; k++) {
        uint32_t p = r->slots[k] != BURNI_SLOT_NONE ? g->writers[r->slots[k]] : NONE;
        if (p == NONE || p >= i || g->nodes[p].positions == 0 || !g->nodes[p].needed ||
            g->nodes[p].group == g->nodes[i].group || comes_too_early(g, i, g->nodes[p].group) ||
            (g->wanted != NULL && g->wanted[p] != g->wanted[i])) {
            continue;
        }
        uint8_t space = 0;
        node *head = &g->nodes[g->nodes[p].group];
        const char *why = refuses(g, i, g->nodes[p].group, &space);
        if (why == NULL) {
            g->nodes[i].space = space;
            merge(g, g->nodes[p].group, g->nodes[i].group);
        } else if (head->why == NULL) {
            head->why = why;
            head->ender = i;
        }
    }
}

/* ---- the whole graph ------------------------------------------------------------------------- */

static void graph_free(graph *g)
{
    burni_free(g->nodes);
    burni_free(g->edges);
    burni_free(g->writers);
}

/* Are these the groups that were wanted? */
static int is_as_wanted(const graph *g)
{
    for (uint32_t i = 0; i < g->n && g->wanted != NULL; i++) {
        uint32_t is = g->nodes[i].needed ? g->nodes[i].group : BURNI_KEPT_UNUSED;
        if (is != g->wanted[i]) {
            return 0;
        }
    }
    return 1;
}

static int graph_new(graph *g, burni_stream *stream, const burni_batch *batch,
                     const uint8_t *alive, const uint8_t *needed, const uint16_t *wanted,
                     uint8_t *barred)
{
    uint32_t n = batch->n;
    memset(g, 0, sizeof(*g));
    g->stream = stream;
    g->batch = batch;
    g->n = n;
    g->wanted = wanted;
    g->barred = barred;
    g->cap_edges = 4 * n + 16;
    g->nodes = burni_calloc(n, sizeof(*g->nodes));
    g->edges = burni_alloc(g->cap_edges * sizeof(*g->edges));
    g->writers = burni_alloc((batch->n_slots + 1) * sizeof(*g->writers));
    if (g->nodes == NULL || g->edges == NULL || g->writers == NULL) {
        return 0;
    }
    g->ordered = NONE;
    memset(g->writers, 0xff, (batch->n_slots + 1) * sizeof(*g->writers));
    for (uint32_t i = 0; i < n; i++) {
        node *self = &g->nodes[i];
        self->edges = NONE;
        self->group = i;
        self->next = NONE;
        self->last = i;
        self->n_members = 1;
        self->needed = needed[i];
        self->alive = alive[i];
        if (needed[i]) {
            add_record(g, i);
            look_at(g, i);
        }
        if (needed[i]) {
            join(g, i);
        }
    }
    return !g->failed && is_as_wanted(g);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Is any of a group's operands made by a group that has not run? */
static int is_ready(const graph *g, uint32_t group, const uint8_t *ran)
{
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        for (uint32_t e = g->nodes[m].edges; e != NONE; e = g->edges[e].next) {
            uint32_t from = g->nodes[g->edges[e].from].group;
            if (from != group && !ran[from]) {
                return 0;
            }
        }
    }
    return 1;
}

/* The first members of groups in the order in which they run; how many there are, 0 when some
 * would wait for each other. */
static uint32_t order_groups(const graph *g, uint32_t *order)
{
    uint8_t ran[BURNI_MAX_WINDOW] = {0};
    uint32_t n = 0;
    uint32_t from = 0; /* whatever ends before this record has run */
    while (from < g->n) {
        uint32_t best = NONE;
        int all_ran = 1;
        for (uint32_t i = from; i < g->n && best == NONE; i++) {
            uint32_t group = g->nodes[i].group;
            int open = g->nodes[i].needed && !ran[group];
            all_ran &= !open;
            if (all_ran) {
                from = i + 1;
            }
            if (open && g->nodes[group].last == i && is_ready(g, group, ran)) {
                best = group;
            }
        }
        if (best == NONE) {
            return from < g->n ? 0 : n;
        }
        ran[best] = 1;
        order[n++] = best;
    }
    return n;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Does a needed record outside of the group, or somebody outside of the records, see the result? */
static int is_written(const graph *g, uint32_t m)
{
    if (g->nodes[m].alive) {
        return 1;
    }
    uint32_t slot = record_at(g, m)->slots[record_at(g, m)->launch.n_in];
    for (uint32_t i = m + 1; i < g->n; i++) {
        if (g->nodes[i].needed && g->nodes[i].group != g->nodes[m].group &&
            burni_record_touches(record_at(g, i), slot)) {
            return 1;
        }
    }
    return 0;
}

/* The product's node, or NONE. */
static uint32_t product_of(const graph *g, uint32_t group)
{
    uint32_t m = g->nodes[group].has_product ? group : NONE;
    while (m != NONE && !g->nodes[m].produces) {
        m = g->nodes[m].next;
    }
    return m;
}

static burni_member member_of(const graph *g, uint32_t m)
{
    burni_member out = {.record = m};
    out.space = g->nodes[m].space;
    out.reduces = g->nodes[m].reduces;
    out.produces = g->nodes[m].produces;
    out.lines = g->nodes[m].lines;
    out.written = (uint8_t)is_written(g, m);
    return out;
}

/* A product comes first: nothing that it needs is made in the group. `alone`: it is left out. */
static burni_group *make_group(const graph *g, uint32_t group, int alone, char *why)
{
    burni_member members[MAX_MEMBERS];
    uint32_t product = product_of(g, group);
    uint32_t n = 0;
    if (product != NONE && !alone) {
        members[n++] = member_of(g, product);
    }
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        if (m != product) {
            members[n++] = member_of(g, m);
        }
    }
    burni_group *made = burni_group_make(g->stream, g->batch, members, n, why);
    const node *head = &g->nodes[group];
    if (made != NULL && head->why != NULL) {
        (void)snprintf(made->end, sizeof(made->end), "ends at %.40s, which %s",
                       record_at(g, head->ender)->launch.op->def.name, head->why);
    }
    return made;
}

/* For whoever watches: these would have been one pass. */
static void tell_why_not(const graph *g, uint32_t group, const char *why)
{
    char names[224] = "";
    burni_thread *thread = burni_thread_current;
    if (thread == NULL || (thread->watch & BURNI_WATCH_DISPATCH) == 0) {
        return;
    }
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        burni_plan_append_name(names, sizeof(names), record_at(g, m));
    }
    burni_explain_fused(thread, "burn.fused", names, "", why);
}

static void add_step(burni_plan *plan, uint32_t record, burni_group *group)
{
    plan->steps[plan->n_steps].group = group;
    plan->steps[plan->n_steps++].record = record;
}

/* The group cannot be: what is per column stays out of groups, or else what goes over lines. Is
 * there such a member? */
static int bar_members(graph *g, uint32_t group)
{
    int found = 0;
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        int is_cause = g->nodes[group].has_columns ? g->nodes[m].space == BURN_FUSED_COLUMN
                                                   : g->nodes[m].lines;
        g->barred[m] |= (uint8_t)is_cause;
        found |= is_cause;
    }
    g->again |= (uint32_t)found;
    return found;
}

/* One step, or the product and the rest, or the members one by one. */
static void add_steps(graph *g, burni_plan *plan, uint32_t group)
{
    char why[BURNI_WHY_BYTES] = "";
    uint32_t product = product_of(g, group);
    uint32_t n = g->nodes[group].n_members;
    uint32_t first = group; /* of the step's records */
    burni_group *fused = n > 1 ? make_group(g, group, 0, why) : NULL;
    if (n > 1 && fused == NULL) {
        tell_why_not(g, group, why);
        if (bar_members(g, group)) {
            return;
        }
    }
    if (n > 2 && fused == NULL && product != NONE) {
        fused = make_group(g, group, 1, why);
        if (fused != NULL) {
            add_step(plan, product, NULL);
            first = group != product ? group : g->nodes[group].next;
        }
    }
    if (fused != NULL) {
        add_step(plan, first, fused);
        return;
    }
    for (uint32_t m = group; m != NONE; m = g->nodes[m].next) {
        add_step(plan, m, NULL);
    }
}

static uint32_t version_of(const burni_stream *stream)
{
    return atomic_load_explicit(&stream->device->rows_version, memory_order_acquire);
}

/* NULL: no memory, not the groups that were wanted, or, with `again`, something was barred. */
static burni_plan *try_plan(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                            const uint8_t *needed, const uint16_t *groups, uint8_t *barred,
                            uint32_t *again)
{
    graph g;
    uint32_t order[BURNI_MAX_WINDOW];
    uint32_t n_groups = 0;
    uint32_t version = version_of(stream);
    burni_plan *plan = burni_calloc(1, sizeof(*plan) + batch->n * sizeof(plan->steps[0]));
    if (graph_new(&g, stream, batch, alive, needed, groups, barred) && plan != NULL) {
        n_groups = order_groups(&g, order);
        for (uint32_t k = 0; k < n_groups; k++) {
            add_steps(&g, plan, order[k]);
        }
        burni_many_gather(stream, batch, plan->steps, plan->n_steps);
        plan->n_records = batch->n;
        plan->rows_version = version;
        plan->needs_all = memchr(needed, 0, batch->n) == NULL;
    }
    graph_free(&g);
    *again = g.again;
    if (n_groups == 0 || g.again) {
        burni_plan_free(plan);
        plan = NULL;
    }
    return plan;
}

burni_plan *burni_plan_make(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                            const uint8_t *needed, const uint16_t *groups)
{
    uint8_t barred[BURNI_MAX_WINDOW] = {0};
    uint32_t again = 0;
    burni_plan *plan = NULL;
    do {
        plan = try_plan(stream, batch, alive, needed, groups, barred, &again);
    } while (again);
    return plan;
}

int burni_plan_is_stale(const burni_stream *stream, const burni_plan *plan)
{
    return plan->rows_version != version_of(stream);
}

void burni_plan_writes(const burni_plan *plan, uint8_t *written)
{
    memset(written, 0, plan->n_records);
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const burni_group *g = plan->steps[k].group;
        if (g == NULL) {
            written[plan->steps[k].record] = 1;
        }
        for (uint32_t m = 0; g != NULL && m < g->n_members; m++) {
            written[g->members[m].record] = g->members[m].written;
        }
    }
}

int burni_plan_is_bound(const burni_plan *plan)
{
    int bound = 1;
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        bound &= plan->steps[k].group == NULL || plan->steps[k].group->is_bound;
    }
    return bound;
}

void burni_plan_inner(const burni_plan *plan, uint8_t *slots)
{
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const burni_group *g = plan->steps[k].group;
        for (uint32_t i = 0; g != NULL && i < g->n_uses; i++) {
            slots[g->uses[i].slot] |= (uint8_t)(g->uses[i].inner != 0);
        }
    }
}

uint32_t burni_plan_size(const burni_plan *plan)
{
    return burni_many_count(plan->steps, plan->n_steps);
}

void burni_plan_free(burni_plan *plan)
{
    for (uint32_t k = 0; plan != NULL && k < plan->n_steps; k++) {
        burni_group_free(plan->steps[k].group);
    }
    while (plan != NULL && plan->refused != NULL) {
        burni_group *next = plan->refused->next;
        burni_group_free(plan->refused);
        plan->refused = next;
    }
    if (plan != NULL) {
        burni_places_free(plan->places);
    }
    burni_free(plan);
}
