/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * model.h - what saving, loading and looking into model files share.
 *
 * Between the container (burnpack.h: bytes) and tensors. A tensor's bytes in a file may be written
 * in another form than they have in memory; only the functions below know both.
 */
#ifndef BURN_CORE_STORE_MODEL_H
#define BURN_CORE_STORE_MODEL_H

#include "store/burnpack.h"

#include <burn/graph.h>

/* Metadata key of the tuning environment that the values were computed with, its name. */
#define BURNI_ENVIRONMENT_KEY "burn.environment"
/* Metadata key of the graph, base64. */
#define BURNI_GRAPH_KEY "burn.window"

/* dtype of a stored tensor in memory; BURN_DTYPE_NONE when nothing here can hold it. */
uint8_t burni_stored_dtype(const burni_bpk_tensor *t);
/* Reads a stored tensor onto a device, into the innermost scope; a failed tensor on failure. */
burn_tensor *burni_stored_tensor(const burni_bpk_reader *reader, const burni_bpk_tensor *t,
                                 burn_device *device);
/* The graph of a file, checked; the caller's. NULL with BURN_E_NOT_FOUND when there is none. */
burn_graph *burni_stored_graph(const burni_bpk_reader *reader, burn_err *err);
/* "f32[2,3]", cut to fit. */
const char *burni_type_text(char *out, size_t size, uint8_t dtype, uint32_t rank,
                            const int64_t *dims);

#endif /* BURN_CORE_STORE_MODEL_H */
