/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_keep.c - plans that are kept: by the stream, and in the file of a named environment.
 *
 * The stream keeps the plans used last. With an environment (tune/environment.h) one that was used
 * again is kept there too, as its groups and the chains of its records. The next process knows
 * these chains from its start, so its calls wait in the first round, and finds the groups there:
 * each is put together anew from the records by the planner's own rules, and where they do not
 * allow it the plan is refused and made as ever.
 */
#include "exec/plan_private.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "exec/many.h"
#include "exec/tuner.h"
#include "tune/environment.h"

#include <burn/plans.h>
#include <string.h>

/* Plans that a stream keeps; a program with more loops than that plans some of them again. */
#define MAX_PLANS 64

/* Chains from a file take so many places of those that a stream knows: its own have room. */
#define MAX_LEARNT (BURNI_KNOWN / 2)

struct burni_plans {
    burni_plan *plans[MAX_PLANS];
    uint32_t n;
    uint32_t last; /* the one found last, the likely next */
    uint64_t clock;
    uint64_t made;
    uint64_t hits;
    uint64_t found;   /* in the environment */
    uint64_t refused; /* of what was there */
};

/* ---- in the stream --------------------------------------------------------------------------- */

static void forget_all(burni_stream *stream)
{
    struct burni_plans *p = stream->plans;
    for (uint32_t k = 0; p != NULL && k < p->n; k++) {
        burni_plan_free(p->plans[k]);
    }
    if (p != NULL) {
        p->n = 0;
        p->last = 0;
    }
}

const burni_plan *burni_plan_kept(const burni_stream *stream, uint32_t i)
{
    const struct burni_plans *p = stream->plans;
    return p != NULL && i < p->n ? p->plans[i] : NULL;
}

int burni_plan_describe(const burni_stream *stream, uint32_t i, burn_plan_info *out)
{
    const burni_plan *plan = burni_plan_kept(stream, i);
    if (plan == NULL) {
        return 0;
    }
    const burni_places_size *size = burni_places_measure(plan->places);
    out->n_calls = plan->n_records;
    out->n_launches = burni_many_count(plan->steps, plan->n_steps);
    out->hits = plan->hits;
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const burni_group *g = plan->steps[k].group;
        out->n_groups += g != NULL;
        out->n_fused += g != NULL ? g->n_members : 0;
    }
    if (size != NULL) {
        out->live_bytes = size->live;
        out->peak_bytes = size->total;
        out->apart_bytes = size->pool;
        out->piece_bytes = size->packed;
        out->piece_bound = size->bound;
        out->largest = size->largest;
        out->n_places = size->packed > 0 ? size->n_values : 0;
        out->n_reused = size->packed > 0 ? size->n_shared : 0;
    }
    return 1;
}

uint32_t burni_plans_count(const burni_stream *stream, burn_plan_totals *out)
{
    const struct burni_plans *p = stream->plans;
    uint32_t last = 0;
    for (uint32_t k = 0; p != NULL && k < p->n; k++) {
        last = p->plans[k]->used > p->plans[last]->used ? k : last;
    }
    out->made = p != NULL ? p->made : 0;
    out->hits = p != NULL ? p->hits : 0;
    out->found = p != NULL ? p->found : 0;
    out->refused = p != NULL ? p->refused : 0;
    return last;
}

/* Which values are wanted is part of what a plan is for. */
static uint64_t key_of(const burni_batch *batch, const uint8_t *alive)
{
    /* Chains begin at the last cut: what ran since then is no part of the plan. */
    uint64_t key = burni_mix(batch->records[batch->n - 1]->chain, batch->records[0]->chain);
    for (uint32_t i = 0; i < batch->n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, alive + i, batch->n - i < 8 ? batch->n - i : 8);
        key = burni_mix(key, word);
        key ^= key >> 32;
    }
    return burni_mix(key, batch->n);
}

static burni_plan *find(struct burni_plans *p, uint64_t key)
{
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t at = (p->last + k) % p->n;
        if (p->plans[at]->key == key) {
            p->last = at + 1 < p->n ? at + 1 : 0;
            return p->plans[at];
        }
    }
    return NULL;
}

static void keep(struct burni_plans *p, burni_plan *plan)
{
    uint32_t at = p->n;
    if (p->n == MAX_PLANS) {
        at = 0;
        for (uint32_t k = 1; k < p->n; k++) {
            at = p->plans[k]->used < p->plans[at]->used ? k : at;
        }
        burni_plan_free(p->plans[at]);
    } else {
        p->n++;
    }
    p->plans[at] = plan;
}

/* ---- in an environment ----------------------------------------------------------------------- */

/* Who the device is has been told, so that its plans can be asked for. */
static int has_environment(const burni_stream *stream)
{
    if (__builtin_expect(burni_environment_on() == 0, 1)) {
        return 0;
    }
    burni_tuner_know(stream->device);
    return 1;
}

static void fill_groups(burni_kept_plan *kept, const burni_plan *plan)
{
    for (uint32_t i = 0; i < kept->n; i++) {
        kept->groups[i] = BURNI_KEPT_UNUSED;
    }
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const burni_group *g = plan->steps[k].group;
        kept->groups[plan->steps[k].record] = (uint16_t)plan->steps[k].record;
        for (uint32_t m = 0; g != NULL && m < g->n_members; m++) {
            kept->groups[g->members[m].record] = (uint16_t)plan->steps[k].record;
        }
    }
}

/* A plan that has come again will come in the next process, too. */
static void keep_in_environment(const burni_stream *stream, const burni_batch *batch,
                                const burni_plan *plan)
{
    burni_kept_plan *kept = burni_alloc(sizeof(*kept) + BURNI_KEPT_BYTES);
    if (kept == NULL || batch->n > BURNI_KEPT_RECORDS) {
        burni_free(kept);
        return;
    }
    unsigned char *bytes = (unsigned char *)(kept + 1);
    kept->n = batch->n;
    kept->refusals = plan->refusals;
    for (uint32_t i = 0; i < batch->n; i++) {
        kept->chains[i] = batch->records[i]->chain;
    }
    fill_groups(kept, plan);
    uint32_t size = burni_kept_plan_encode(kept, bytes);
    burni_environment_plan_put(stream->device->name, plan->key, bytes, size);
    burni_free(kept);
}

/* Are these the records that the plan was kept for? */
static int is_for(const burni_kept_plan *kept, const burni_batch *batch)
{
    uint32_t i = 0;
    while (kept->n == batch->n && i < batch->n &&
           kept->chains[i] == batch->records[i]->chain) {
        i++;
    }
    return i == batch->n;
}

/* The plan that the environment has for these records; NULL: none, or it was refused, as `refusals`
 * says then. */
static burni_plan *take_kept(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                             const uint8_t *needed, uint64_t key, uint32_t *refusals)
{
    size_t size = 0;
    burni_plan *plan = NULL;
    unsigned char *bytes = burni_environment_plan_get(stream->device->name, key, &size);
    burni_kept_plan *kept = bytes != NULL ? burni_alloc(sizeof(*kept)) : NULL;
    *refusals = 0;
    if (kept != NULL) {
        int is_plan = burni_kept_plan_decode(bytes, size, kept) == BURN_OK;
        *refusals = is_plan ? kept->refusals : 0;
        if (is_plan && is_for(kept, batch)) {
            plan = burni_plan_make(stream, batch, alive, needed, kept->groups);
        }
        *refusals += plan == NULL && *refusals < UINT32_MAX;
    }
    burni_free(kept);
    burni_free(bytes);
    return plan;
}

static void learn(void *user, const void *bytes, size_t size)
{
    burni_sequence *q = user;
    burni_kept_plan *kept = burni_alloc(sizeof(*kept));
    if (kept != NULL && burni_kept_plan_decode(bytes, size, kept) == BURN_OK) {
        for (uint32_t i = 0; i < kept->n && q->n_known < MAX_LEARNT; i++) {
            burni_sequence_learn_chain(q, kept->chains[i]);
        }
    }
    burni_free(kept);
}

void burni_plans_learn(burni_stream *stream)
{
    stream->sequence->environment = burni_environment_on();
    if (has_environment(stream)) {
        burni_environment_plans(stream->device->name, learn, stream->sequence);
    }
}

/* ---- asking for one -------------------------------------------------------------------------- */

static burni_plan *get_new(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                           const uint8_t *needed, uint64_t key)
{
    struct burni_plans *p = stream->plans;
    uint32_t refusals = 0;
    burni_plan *plan = has_environment(stream)
                           ? take_kept(stream, batch, alive, needed, key, &refusals)
                           : NULL;
    p->found += plan != NULL;
    p->refused += plan == NULL && refusals > 0;
    if (plan == NULL) {
        plan = burni_plan_make(stream, batch, alive, needed, NULL);
        p->made += plan != NULL;
    }
    if (plan != NULL) {
        plan->key = key;
        plan->refusals = refusals;
        plan->used = ++p->clock;
        keep(p, plan);
    }
    return plan;
}

static burni_plan *note_hit(const burni_stream *stream, const burni_batch *batch,
                            burni_plan *plan)
{
    struct burni_plans *p = stream->plans;
    plan->hits++;
    p->hits++;
    plan->used = ++p->clock;
    if (__builtin_expect(plan->hits == 1, 0) && has_environment(stream)) {
        keep_in_environment(stream, batch, plan);
    }
    return plan;
}

burni_plan *burni_plan_of_all(burni_stream *stream, const burni_batch *batch, const uint8_t *alive)
{
    struct burni_plans *p = stream->plans;
    burni_plan *plan = p != NULL ? find(p, key_of(batch, alive)) : NULL;
    int serves = plan != NULL && plan->needs_all && !burni_plan_is_stale(stream, plan);
    return serves ? note_hit(stream, batch, plan) : NULL;
}

burni_plan *burni_plan_for(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                           const uint8_t *needed, int may_make)
{
    if (stream->plans == NULL) {
        stream->plans = burni_calloc(1, sizeof(*stream->plans));
    }
    struct burni_plans *p = stream->plans;
    if (p == NULL) {
        return NULL;
    }
    uint64_t key = key_of(batch, alive);
    burni_plan *plan = find(p, key);
    if (plan != NULL && burni_plan_is_stale(stream, plan)) {
        forget_all(stream);
        plan = NULL;
    }
    if (plan != NULL) {
        return note_hit(stream, batch, plan);
    }
    return may_make ? get_new(stream, batch, alive, needed, key) : NULL;
}
