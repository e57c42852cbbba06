/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * places.h - memory of a plan's values: one piece, cut by lifetimes.
 *
 * What is made and dies within a run of a plan gets a place in one block of the pool
 * (memory/arena.h), and so do the workspaces of its kernels. An output that may overwrite a dying
 * input has its place. The places are remembered with the plan, for the sizes that they were made
 * for. What lives on, and what would take over the memory of something from outside, is given
 * memory one by one as ever; so is everything where one piece would need more. A value with a
 * place has a block of class BURNI_PLACE, which is nobody's to give back or away. Under the
 * stream's lock.
 */
#ifndef BURN_CORE_EXEC_PLACES_H
#define BURN_CORE_EXEC_PLACES_H

#include "exec/group.h"

typedef struct burni_step {
    burni_group *group; /* NULL: one record */
    uint32_t record;
    uint32_t many; /* so many steps from this one on are one launch (many.h); 0: it alone */
} burni_step;

/* What a run of a plan needs, in bytes. */
typedef struct burni_places_size {
    uint64_t live;    /* the most that is alive in one step, of all that the plan uses */
    uint64_t pool;    /* the most when each value has a block of its own */
    uint64_t total;   /* the most as it is done */
    uint64_t packed;  /* the piece; 0: there is none */
    uint64_t bound;   /* the most of it that is alive in one step */
    uint64_t largest; /* value */
    uint32_t n_values; /* that have places, and workspaces */
    uint32_t n_shared; /* of them, in the place of an input */
} burni_places_size;

typedef struct burni_places burni_places;

/* Gives places to all values of a run that is about to begin. `places` is the plan's own, NULL
 * before the first time. Tells the step before which burni_places_step is to be called, UINT32_MAX:
 * none. */
uint32_t burni_places_begin(burni_stream *stream, const burni_batch *batch,
                            const burni_step *steps, uint32_t n_steps, burni_places **places);
/* Step k is next. The answer is the next one to be called before. */
uint32_t burni_places_step(burni_stream *stream, burni_places *places, uint32_t k);
/* All steps have run: nothing uses the piece any more. */
void burni_places_end(burni_stream *stream, burni_places *places);
void burni_places_free(burni_places *places);
/* Of the last sizes; NULL when there are none. */
const burni_places_size *burni_places_measure(const burni_places *places);

/* An output that has an input's place, while both must be kept apart: it gets memory of its own. */
static inline void burni_place_leave(burni_storage *s)
{
    if (s->block != NULL && s->block->klass == BURNI_PLACE && s->block->shared) {
        s->block = NULL;
    }
}

#endif /* BURN_CORE_EXEC_PLACES_H */
