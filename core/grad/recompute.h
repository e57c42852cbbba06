/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recompute.h - making values again for a pass of backward: what the tape kept ghosts of.
 *
 * Each call runs once per pass, when its first result is asked for; the results stay in its recipe,
 * which the pass owns meanwhile, until nothing on the tape can ask for them any more. Two passes
 * may walk one history at the same time: the second works on a copy of the recipe. One pass belongs
 * to one thread.
 */
#ifndef BURN_CORE_GRAD_RECOMPUTE_H
#define BURN_CORE_GRAD_RECOMPUTE_H

#include "tensor/recipe.h"

typedef struct burni_rerun {
    burni_thread *thread;
    burni_recipe *first; /* that have run, the latest first */
    burni_recipe *settled;
    burni_recipe **stack;
    uint32_t n;
    uint32_t cap;
    uint32_t copies; /* made, since another pass had the recipe */
    uint32_t zero;
} burni_rerun;

/*
 * The value that a ghost stands for, owned by the pass; it stays until the ghost is dropped or the
 * pass ends. `wanted_by` is the op whose gradient asks. NULL and an error that names both on
 * failure.
 */
burn_tensor *burni_rerun_value(burni_rerun *rerun, const burn_tensor *ghost, const char *wanted_by,
                               burn_err *err);
/* Drops what was made on the way only and is cheap to make again: after each node's gradient. */
void burni_rerun_settle(burni_rerun *rerun);
/* Drops a node's saved values, and what was made for them alone. */
void burni_rerun_drop_saved(burni_rerun *rerun, burni_node *node);
void burni_rerun_end(burni_rerun *rerun);

#endif /* BURN_CORE_GRAD_RECOMPUTE_H */
