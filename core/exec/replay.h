/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * replay.h - running a checked window with other inputs.
 */
#ifndef BURN_CORE_EXEC_REPLAY_H
#define BURN_CORE_EXEC_REPLAY_H

#include "graph/capture.h"

#include <burn/graph.h>

typedef struct burni_replay {
    burni_thread *thread;
    burn_device *device;
    burn_tensor *const *inputs;
    uint32_t n_inputs;
    uint32_t zero;
    burn_state_fn state;
    void *user;
} burni_replay;

/* There are as many inputs as the window has. Outputs go to the innermost scope, and are written
 * on success only. `err` must not be NULL. */
int32_t burni_window_run(const burni_replay *replay, const burn_window *window,
                         burn_tensor **outputs, uint32_t n_outputs, burn_err *err);

#endif /* BURN_CORE_EXEC_REPLAY_H */
