/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * replay.h - one step of a loop, written down once and run again: its kernels and nothing else.
 *
 * Between begin and end everything that the calling thread launches on the device runs as ever and
 * is also kept: forward, backward and updates alike. A run does the same work again, planned and
 * fused as a whole, with other inputs (ports), other scalars where they have a name, new random
 * numbers, and the variables as they are then. Everything else is as it was when it was written
 * down: shapes, attributes, scalars without a name, which branch the program took. So a step that
 * reads values to decide something can't be kept, and what must be made once (variables, the state
 * of an optimizer) is made before: run the step once, then keep it.
 *
 * A replay belongs to the thread that made it: begin, end, runs and the rest are for that thread
 * only. Outputs of runs carry no history for gradients, and a run is no part of a graph that is
 * being captured. [owner]
 */
#ifndef BURN_REPLAY_H
#define BURN_REPLAY_H

#include <burn/device.h>
#include <burn/tensor.h>

BURN_BEGIN_DECLS

typedef struct burn_replay burn_replay;

/* Starts to keep what this thread launches on the device, one step at a time. BURN_E_STATE when it
 * does so already. */
BURN_API int32_t burn_replay_begin(burn_device *device, burn_err *err);
/* Declares a dense tensor, made before it is used, an input of the step. Returns t. Outside of
 * begin and end it does nothing. */
BURN_API burn_tensor *burn_replay_port(burn_tensor *t);
/*
 * Gives a scalar (burn_scalar and its kin) a name of at most 31 bytes under which runs set it
 * (burn_replay_set); at each run it grows by `step` on its own, the first time from the value that
 * it has here. With the name "" it only grows. Returns the scalar. Outside of begin and end it does
 * nothing.
 */
BURN_API burn_tensor *burn_replay_scalar(burn_tensor *scalar, const char *name, double step);
/* Says that what goes on can't be done again, and why (a static text): the step's end will fail. */
BURN_API void burn_replay_refuse(const char *why);
/*
 * Ends it. `outputs` are what each run will give, n_outputs <= 64 of them. NULL when the step can't
 * be kept, and why: a call of it failed, it read a tensor, uploaded one, made a variable, used
 * values of other threads, was longer than 4,096 launches. The step itself has been done in any
 * case.
 */
BURN_API burn_replay *burn_replay_end(burn_tensor *const *outputs, uint32_t n_outputs,
                                      burn_err *err);
/*
 * Does the step again. `inputs` take the places of the ports in the order of their declaration,
 * with the same dtypes and shapes. Writes n_outputs fresh tensors of the innermost scope, failed
 * ones on failure; `outputs` may be the array of the inputs. Errors of kernels are those of the
 * step's calls.
 */
BURN_API int32_t burn_replay_run(burn_replay *replay, burn_tensor *const *inputs, uint32_t n_inputs,
                                 burn_tensor **outputs, uint32_t n_outputs, burn_err *err);
/* Sets a named scalar for the next run and, with its steps, those after it; BURN_E_NOT_FOUND names
 * those that there are. */
BURN_API int32_t burn_replay_set(burn_replay *replay, const char *name, double value,
                                 burn_err *err);
/* Launches that were kept, and how many a run makes: what is needed, in how many kernels. Either
 * may be NULL. */
BURN_API void burn_replay_size(const burn_replay *replay, uint32_t *out_kept, uint32_t *out_runs);
/* NULL is fine. */
BURN_API void burn_replay_free(burn_replay *replay);

BURN_END_DECLS

#endif /* BURN_REPLAY_H */
