/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan_private.h - what plan.c (making plans), plan_run.c (running them) and plan_keep.c (keeping
 * them, in the stream and in an environment's file) share. Nobody else includes it. Under the
 * stream's lock.
 */
#ifndef BURN_CORE_EXEC_PLAN_PRIVATE_H
#define BURN_CORE_EXEC_PLAN_PRIVATE_H

#include "exec/places.h"
#include "exec/plan.h"
#include "tune/kept_plan.h"

#include <stdio.h>
#include <string.h>

struct burni_plan {
    uint64_t key;
    uint64_t used; /* when: the clock of the plans */
    uint64_t hits;
    uint32_t n_records;
    uint32_t n_steps;
    uint32_t rows_version;
    uint32_t needs_all;
    uint32_t zero;
    uint32_t refusals; /* how often another plan from a file did not fit where this one does */
    burni_places *places;
    burni_group *refused; /* by their kernels at a launch: a list, for whoever prints the plan */
    burni_step steps[];
};

/* Behind the names of the other members of a group: that of the record's op. */
static inline void burni_plan_append_name(char *text, size_t size, const burni_record *r)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", r->launch.op->def.name);
}

/* Plan i of those that the stream keeps, or NULL. */
const burni_plan *burni_plan_kept(const burni_stream *stream, uint32_t i);

#endif /* BURN_CORE_EXEC_PLAN_PRIVATE_H */
