/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * many.h - updates that run as one launch: steps of a plan whose row takes many calls at once.
 *
 * A model has tens of parameters, and each has its update. Steps that only overwrite variables and
 * that do not touch each other's are put behind each other and run together where the backend has a
 * kernel for that (burn_many, burn/row.h). Each fails alone, with its own cause. Nothing is made by
 * them, so places of values stay as they are. Under the stream's lock.
 */
#ifndef BURN_CORE_EXEC_MANY_H
#define BURN_CORE_EXEC_MANY_H

#include "exec/places.h"

/* Moves steps behind what lies between them and others of their row, where nobody can tell, and
 * notes how many are one launch. */
void burni_many_gather(const burni_stream *stream, const burni_batch *batch, burni_step *steps,
                       uint32_t n);
/* Runs the steps that are one launch, as many as the first says. */
void burni_many_run(burni_stream *stream, const burni_batch *batch, const burni_step *steps);
/* How many launches the steps are. */
uint32_t burni_many_count(const burni_step *steps, uint32_t n);

#endif /* BURN_CORE_EXEC_MANY_H */
