/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_run.c - runs a plan, step by step. See plan.h.
 *
 * Owns the order of what happens around a step: its values get their places first, and whoever
 * watches is told afterwards. A group that its kernel refuses is given up: its members are steps
 * from then on. Under the stream's lock. To add a sort of step: burni_step, and its branch here.
 */
#include "exec/plan_private.h"

#include "exec/explain.h"
#include "exec/group.h"
#include "exec/many.h"

static void tell_fused(const burni_batch *batch, const burni_group *group, int ran_as_one)
{
    char names[224] = "";
    burni_thread *thread = burni_thread_current;
    if (__builtin_expect(thread == NULL || (thread->watch & BURNI_WATCH_DISPATCH) == 0, 1)) {
        return;
    }
    for (uint32_t k = 0; k < group->n_members; k++) {
        burni_plan_append_name(names, sizeof(names), batch->records[group->members[k].record]);
    }
    burni_explain_fused(thread, "burn.fused", names,
                        ran_as_one ? group->resolved->row->name : "",
                        ran_as_one ? group->end : group->apart);
}

static int run_group(burni_stream *stream, const burni_batch *batch, burni_group *group)
{
    int how = burni_group_run(stream, batch, group);
    tell_fused(batch, group, how == BURNI_RAN_AS_ONE);
    group->is_refused = how == BURNI_REFUSED;
    return how == BURNI_REFUSED;
}

/* The members of refused groups become steps, so that their results get places, too. */
static void give_up_refused(burni_plan *plan)
{
    burni_step steps[BURNI_MAX_WINDOW];
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        burni_group *g = plan->steps[k].group;
        if (g == NULL || !g->is_refused) {
            steps[n++] = plan->steps[k];
            continue;
        }
        for (uint32_t m = 0; m < g->n_members; m++) {
            steps[n++] = (burni_step){NULL, g->members[m].record, 0};
        }
        g->next = plan->refused;
        plan->refused = g;
    }
    memcpy(plan->steps, steps, n * sizeof(steps[0]));
    plan->n_steps = n;
    burni_places_free(plan->places);
    plan->places = NULL;
}

int burni_plan_run(burni_stream *stream, const burni_batch *batch, burni_plan *plan)
{
    int refused = 0;
    uint32_t next = UINT32_MAX;
    uint32_t until = 0; /* steps before this one have run with an earlier one */
    if (__builtin_expect(!batch->checks, 1)) {
        next = burni_places_begin(stream, batch, plan->steps, plan->n_steps, &plan->places);
    }
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        const burni_step *step = &plan->steps[k];
        burni_stream_runs(stream, step->record);
        if (k >= next) {
            next = burni_places_step(stream, plan->places, k);
        }
        if (step->group != NULL) {
            refused |= run_group(stream, batch, step->group);
        } else if (step->many > 0) {
            burni_many_run(stream, batch, step);
            until = k + step->many;
        } else if (k >= until) {
            burni_record_run(stream, batch->slots, batch->records[step->record]);
        }
    }
    if (!batch->checks) {
        burni_places_end(stream, plan->places);
    }
    if (__builtin_expect(refused, 0)) {
        give_up_refused(plan);
    }
    return refused;
}
