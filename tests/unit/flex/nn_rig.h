/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * nn_rig.h - runs rows of the CPU plugin without the core: a fake host, hand-made calls.
 *
 * Owns the plugin instances (one per thread count, each its own copy of the file), tensors on the
 * heap, the search for a row that takes given operands, and one call with its workspace. A tensor's
 * memory is filled with NaN (or 0xA5 bytes) beforehand, so that a kernel that reads its output
 * shows. To test one more op: fill a rig_call and rig_run it.
 */
#ifndef BURN_TESTS_UNIT_FLEX_NN_RIG_H
#define BURN_TESTS_UNIT_FLEX_NN_RIG_H

#include <burn/call.h>
#include <burn/op_attrs.h>
#include <burn/op_list.h>
#include <burn/plugin.h>
#include <burn/row.h>

#define RIG_MAX 12

typedef struct rig_tensor {
    uint8_t dtype; /* BURN_DTYPE_NONE: absent */
    uint8_t rank;
    int64_t dims[BURN_MAX_RANK];
    int64_t strides[BURN_MAX_RANK];
    void *memory; /* owned, NULL for views and immediates */
    void *data;
    uint8_t immediate;
    uint64_t bits[2];
} rig_tensor;

/* Loads an instance with that many threads; NULL on failure (printed). Kept until the end. */
const burn_plugin *rig_plugin(const char *path, uint32_t threads);

/* The instruction set of what is loaded from now on: what the host answers for FLEX_ISA. */
void rig_isa_option(const char *name);
/* Was the last one not loaded because this CPU has not that instruction set? */
int rig_lacks_isa(void);

/* What the host answers for FLEX_GEMM from now on; read by the plugin on first need. */
void rig_gemm_option(const char *value);

/* Dense tensors. Values are small, fixed and not symmetric; `seed` varies them. */
rig_tensor rig_new(uint8_t dtype, uint32_t rank, const int64_t *dims);
rig_tensor rig_random(uint8_t dtype, uint32_t rank, const int64_t *dims, uint32_t seed);
rig_tensor rig_values(uint32_t rank, const int64_t *dims, const float *values);
rig_tensor rig_absent(void);
rig_tensor rig_f64(double value);
void rig_free(rig_tensor *t);

/* The same memory with two axes exchanged. */
rig_tensor rig_swapped(const rig_tensor *t, uint32_t a, uint32_t b);

int64_t rig_numel(const rig_tensor *t);
/* Element by row-major position, as a double. */
double rig_at(const rig_tensor *t, int64_t position);
void rig_set(rig_tensor *t, int64_t position, double value);

typedef struct rig_call {
    uint64_t op;
    rig_tensor *in[RIG_MAX];
    rig_tensor *out[RIG_MAX];
    uint32_t n_in;
    uint32_t n_out;
    const void *attrs;
    uint32_t attrs_size;
} rig_call;

/* Finds the row, prepares, launches. `err` gets the message. */
int32_t rig_run(const burn_plugin *plugin, const rig_call *c, burn_err *err);

#endif /* BURN_TESTS_UNIT_FLEX_NN_RIG_H */
