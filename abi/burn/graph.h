/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * graph.h - capturing a computation as a window: data to read, print, save and run again.
 *
 * Between begin and end, every op that this thread calls is also written down; composites stay
 * whole. Tensors that come from outside and were not declared inputs are constants, variables are
 * states, told apart by the path that they have in a module. A graph is immutable. [any]
 */
#ifndef BURN_GRAPH_H
#define BURN_GRAPH_H

#include <burn/nn.h>
#include <burn/window.h>

BURN_BEGIN_DECLS

typedef struct burn_graph burn_graph;

/* Starts a capture on this thread; captures do not nest. */
BURN_API int32_t burn_capture_begin(burn_err *err);
/* Declares a tensor an input of that name. Returns t. */
BURN_API burn_tensor *burn_capture_input(burn_tensor *t, const char *name);
/* Ends the capture. `states` names the variables (NULL when there are none). NULL on failure; the
 * capture is over in any case. */
BURN_API burn_graph *burn_capture_end(burn_tensor *const *outputs, uint32_t n_outputs,
                                      burn_module *states, burn_err *err);
BURN_API void burn_graph_free(burn_graph *graph);

/* The window, `*out_size` bytes; lives as long as the graph. */
BURN_API const burn_window *burn_graph_window(const burn_graph *graph, size_t *out_size);
/* A graph from bytes, which are checked and copied. */
BURN_API burn_graph *burn_graph_from_bytes(const void *bytes, size_t size, burn_err *err);
/* Checks bytes that claim to be a window: every offset, index and size. */
BURN_API int32_t burn_window_check(const void *bytes, size_t size, burn_err *err);

/* Readable text, one line per node, cut to `size`; returns the needed length. */
BURN_API size_t burn_graph_text(const burn_graph *graph, char *out, size_t size);

/* Inputs and outputs: how many, and what they are (name may be ""). */
BURN_API uint32_t burn_graph_n_inputs(const burn_graph *graph);
BURN_API uint32_t burn_graph_n_outputs(const burn_graph *graph);
BURN_API const char *burn_graph_input(const burn_graph *graph, uint32_t i, uint8_t *out_dtype,
                                      uint32_t *out_rank, int64_t out_dims[BURN_MAX_RANK]);

/* Finds a state by name; NULL when there is none. [callback] */
typedef burn_tensor *(BURN_CALL *burn_state_fn)(void *user, const char *name);
/* Runs a graph with other inputs. Writes n_outputs tensors, failed ones on failure. */
BURN_API int32_t burn_graph_run(const burn_graph *graph, burn_device *device,
                                burn_tensor *const *inputs, uint32_t n_inputs, burn_state_fn state,
                                void *user, burn_tensor **outputs, uint32_t n_outputs,
                                burn_err *err);

BURN_END_DECLS

#endif /* BURN_GRAPH_H */
