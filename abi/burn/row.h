/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * row.h - a kernel row: what a backend claims, as data, and the kernel that does it.
 *
 * The core matches rows by dtype, layout, rank and presence of each operand, takes the first in
 * order of priority that fits, and caches the answer under a key, so nothing here is on the hot
 * path. An operand that a row takes only in another layout is copied first. To claim one more
 * (op, dtype, layout), write one more row.
 */
#ifndef BURN_ROW_H
#define BURN_ROW_H

#include <burn/base.h>
#include <burn/call.h>

BURN_BEGIN_DECLS

/* burn_row.flags */
enum {
    BURN_ROW_DETERMINISTIC = 1, /* same bits every time, for any thread count */
    BURN_ROW_CAPTURE_SAFE = 2,
    BURN_ROW_ANY_DIMS = 4, /* the prepared state serves every shape of the same ranks and layouts */
    BURN_ROW_INDEX64 = 8,
    BURN_ROW_FAULTS = 16, /* may write the fault word, or return BURN_E_DATA */
    /* The backend's row of BURN_OP_FUSED computes programs that begin with this op (fused.h), to
     * the bits of this row. */
    BURN_ROW_EPILOGUE = 32,
    /* It may run against other rows with this flag that fit the same call, on memory of its own, to
     * find the fastest; that happens only when an environment is named (environment.h). */
    BURN_ROW_TUNABLE = 64,
    /* Taken only when it won such a race: its bits differ from those of the row that is taken
     * otherwise, or it is seldom the better one. */
    BURN_ROW_TUNED_ONLY = 128,
    /* The backend's row of BURN_OP_FUSED has this op as a step over lines (fused.h), to the bits of
     * this row. */
    BURN_ROW_LINES = 256,
    /* Likewise for this reduction as a step that gives a value per column, where that is f32; of
     * other dtypes the row of BURN_OP_FUSED refuses it, or has these bits, too. */
    BURN_ROW_COLUMNS = 512
};

/* One operand's constraints. `same_dtype_as` is 1 + the operand's index, 0 = free. */
typedef struct burn_slot {
    uint64_t dtypes[4];
    uint32_t layouts; /* set of BURN_LAYOUT_* */
    uint8_t rank_min;
    uint8_t rank_max;
    uint8_t align_log2;
    uint8_t same_dtype_as;
    uint8_t immediate_ok;
    uint8_t may_be_absent;
    uint8_t zero[6];
} burn_slot;

/* A condition on a size, evaluated by the core at each call: dims[dim] of the operand. */
typedef struct burn_guard {
    uint16_t operand;
    int16_t dim; /* negative counts from the last */
    uint32_t zero;
    int64_t multiple_of; /* 0: no condition */
    int64_t min;
    int64_t max; /* 0: no condition */
} burn_guard;

/* What prepare answers; zeroed by the core. */
typedef struct burn_prepared {
    uint32_t struct_size;
    uint32_t in_place_mask; /* bit i: output 0 may take the storage of input i when it is dead */
    const void *state;
    uint64_t workspace_bytes;
    uint32_t workspace_align;
    uint32_t zero;
    uint64_t flops;
    uint64_t bytes;
} burn_prepared;

typedef struct burn_row {
    uint32_t struct_size;
    uint32_t flags;
    uint64_t op;
    uint16_t revision_min;
    uint16_t revision_max;
    int16_t priority; /* larger is tried first */
    uint16_t n_slots; /* inputs, then outputs; a variadic op's last slot serves all further ones */
    uint32_t slot_stride;
    uint32_t in_place_mask; /* as in burn_prepared, for rows without prepare */
    const burn_slot *slots;
    const char *name; /* stable: tuner and cache key, shown by explain */
    uint32_t name_revision;
    uint32_t n_guards;
    const burn_guard *guards;
    uint32_t guard_stride;
    uint32_t zero;
    uint64_t key_facts; /* extra facts that the prepared state depends on: BURN_FACT_* */
    /*
     * Pure and optional; sees only what is in the key and says in call->err why not. BURN_E_STATE:
     * no call can go to the row in this process, since nobody asked for it or the machine lacks
     * what it needs; nobody then misses it. Other codes: this call cannot. [any]
     */
    int32_t(BURN_CALL *check)(const burn_call *call);
    /* Once per key: state, workspace, in-place mask. Optional. [any] */
    int32_t(BURN_CALL *prepare)(const burn_call *call, burn_prepared *out);
    void(BURN_CALL *release)(const void *state);
    int32_t(BURN_CALL *prepack)(const burn_call *call, uint32_t operand, void *out);
    burn_launch_fn launch;
} burn_row;

/*
 * What a backend may offer as the option BURN_MANY of its plugin (burn_plugin.extension): kernels
 * that take several calls of one row in one go, such as the updates of a model's parameters. They
 * are found by the row's launch function. The calls come in an array, `stride` bytes apart; none
 * writes what another one touches, and each has its own operands, attributes, state and, with
 * BURN_ROW_FAULTS, fault word. Does what `launch` would do for each, or nothing: after another
 * answer than BURN_OK the core launches them one by one. Not asked where a workspace is wanted.
 */
#define BURN_MANY "burn.many/1"
typedef struct burn_many_kernel {
    burn_launch_fn launch; /* of the rows that it serves */
    int32_t(BURN_CALL *launch_many)(const burn_call *calls, uint32_t n_calls,
                                    uint32_t stride); /* [queue] */
} burn_many_kernel;

typedef struct burn_many {
    uint32_t struct_size;
    uint32_t n_kernels;
    uint32_t kernel_stride;
    uint32_t zero;
    const burn_many_kernel *kernels;
} burn_many;

/* Facts beside dtypes, layouts, ranks, presence, math mode and attributes, which are always in. */
enum { BURN_FACT_DIMS = 1 };

BURN_END_DECLS

#endif /* BURN_ROW_H */
