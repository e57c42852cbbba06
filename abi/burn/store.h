/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * store.h - model files: burnpack (.bpk), the byte format of Burn 0.22.
 *
 * Saving writes a temporary file, syncs it, renames it and syncs the folder, so the old file stays
 * whole whatever happens; one tensor at a time is in memory. Loading checks everything first and
 * then overwrites: a module is never half loaded. A file is hostile until checked: one that is cut
 * short, or goes on behind its last tensor, is refused. The format has no checksum: a number that
 * was altered in place is not noticed. [any]
 */
#ifndef BURN_STORE_H
#define BURN_STORE_H

#include <burn/graph.h>
#include <burn/nn.h>

BURN_BEGIN_DECLS

/* ---- saving ---------------------------------------------------------------------------------- */

/* Zeroed fields: no metadata, no graph. */
typedef struct burn_save_opts {
    uint32_t struct_size;
    uint32_t n_metadata;
    const char *const *keys; /* n_metadata of each */
    const char *const *values;
    const burn_graph *graph; /* stored under the key "burn.window", base64 */
} burn_save_opts;

/* Writes all parameters and buffers below `module` under their paths. */
BURN_API int32_t burn_save(burn_module *module, const char *path, const burn_save_opts *opts,
                           burn_err *err);

/* ---- loading --------------------------------------------------------------------------------- */

/* What loading found; names are cut to the first few. */
typedef struct burn_load_report {
    uint32_t struct_size;
    uint32_t applied;
    uint32_t missing; /* in the module, not in the file */
    uint32_t unused;  /* in the file, not in the module */
    uint32_t wrong_shape;
    uint32_t wrong_dtype;
    char text[1024]; /* one line per finding */
} burn_load_report;

enum { BURN_LOAD_PARTIAL = 1 /* missing and unused names are no error */ };

/* Overwrites the module's parameters with those of the file. On any error nothing is changed. */
BURN_API int32_t burn_load(burn_module *module, const char *path, uint32_t flags,
                           burn_load_report *report, burn_err *err);

/* ---- looking into a file --------------------------------------------------------------------- */

typedef struct burn_file burn_file;

BURN_API burn_file *burn_file_open(const char *path, burn_err *err);
BURN_API void burn_file_close(burn_file *file);
BURN_API uint64_t burn_file_size(const burn_file *file);
BURN_API uint32_t burn_file_n_tensors(const burn_file *file);
/* Name (lives as long as the file), dtype, shape of tensor i in order of names; NULL after the
 * last. */
BURN_API const char *burn_file_tensor(const burn_file *file, uint32_t i, uint8_t *out_dtype,
                                      uint32_t *out_rank, int64_t out_dims[BURN_MAX_RANK]);
/* The tensor of that name on a device; a failed one when there is none. */
BURN_API burn_tensor *burn_file_read(burn_file *file, const char *name, burn_device *device);
BURN_API uint32_t burn_file_n_metadata(const burn_file *file);
/* Key of entry i and its value; NULL after the last. Live as long as the file. */
BURN_API const char *burn_file_metadata(const burn_file *file, uint32_t i, const char **out_value);
/* The graph stored with the model, which the caller frees; NULL and BURN_E_NOT_FOUND when there is
 * none. */
BURN_API burn_graph *burn_file_graph(burn_file *file, burn_err *err);
/* Runs that graph: its states are the file's tensors, read once and kept on the device. */
BURN_API int32_t burn_file_run(burn_file *file, burn_device *device, burn_tensor *const *inputs,
                               uint32_t n_inputs, burn_tensor **outputs, uint32_t n_outputs,
                               burn_err *err);

BURN_END_DECLS

#endif /* BURN_STORE_H */
