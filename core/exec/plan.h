/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plan.h - how a sequence of records is run: what is left out, what is fused, in which order.
 *
 * A plan speaks of records and operands by number and of no size or address, so it serves each
 * time the sequence comes again with the same values wanted. Plans are kept per stream, the ones
 * used last; all are forgotten when the device gets other rows. Making one never fails a program:
 * without memory or without a row for `burn.fused` records run one by one. Under the stream's lock.
 */
#ifndef BURN_CORE_EXEC_PLAN_H
#define BURN_CORE_EXEC_PLAN_H

#include "base/printer.h"
#include "exec/record.h"

struct burn_plan_info;
struct burn_plan_totals;

typedef struct burni_plan burni_plan;

/* The plan for these records, made when there is none and `may_make`; NULL: none. `alive` and
 * `needed` as burni_records_needed says. */
burni_plan *burni_plan_for(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                           const uint8_t *needed, int may_make);
/* The plan that there is for these records, if it needs all of them; NULL: none. */
burni_plan *burni_plan_of_all(burni_stream *stream, const burni_batch *batch,
                              const uint8_t *alive);
/* Runs them and lets go of all that is not needed any more, step by step. 1: kernels refused
 * groups, which are single steps from now on. */
int burni_plan_run(burni_stream *stream, const burni_batch *batch, burni_plan *plan);

/* A plan of one's own, not kept with the stream's; NULL: no memory. To be freed before the device
 * gets other rows, or not run after that (burni_plan_is_stale). With `groups` (of each record, see
 * tune/kept_plan.h) it has exactly these, or is NULL where they are not allowed. */
burni_plan *burni_plan_make(burni_stream *stream, const burni_batch *batch, const uint8_t *alive,
                            const uint8_t *needed, const uint16_t *groups);
/* The stream's sequence knows from here on what the environment has plans for. */
void burni_plans_learn(burni_stream *stream);
int burni_plan_is_stale(const burni_stream *stream, const burni_plan *plan);
void burni_plan_free(burni_plan *plan);
/* Plan i of those that the stream keeps; 0: there is none. Fills all but the struct's size. */
int burni_plan_describe(const burni_stream *stream, uint32_t i, struct burn_plan_info *out);
/* Counts what was made, used again, found and refused; the number of the one used last. */
uint32_t burni_plans_count(const burni_stream *stream, struct burn_plan_totals *out);
/* All of what the stream keeps, as lines of text: sizes, groups and their programs. */
void burni_plans_print(const burni_stream *stream, burni_printer *p);
/* Tells which records' results a run writes: not those of a group that nobody else needs. */
void burni_plan_writes(const burni_plan *plan, uint8_t *written);
/* 1: all its groups have run as one, the last time that they did. */
int burni_plan_is_bound(const burni_plan *plan);
/* Marks slots of results that never leave a group, among zeros. */
void burni_plan_inner(const burni_plan *plan, uint8_t *slots);
/* How many launches it makes. */
uint32_t burni_plan_size(const burni_plan *plan);

#endif /* BURN_CORE_EXEC_PLAN_H */
