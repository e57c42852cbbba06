/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * window.h - a window: a sequence of ops as flat data. It says what, never where.
 *
 * One block of bytes: this head, then arrays of values, nodes, uses and dims, then attribute bytes
 * and names. Offsets only, no addresses, little-endian, zero padding, each array 8-aligned. So it
 * can be hashed, written to a file or sent to another machine as it is. Readers step arrays by the
 * declared strides and must check it first (`burn_window_check`): a window may come from a file.
 */
#ifndef BURN_WINDOW_H
#define BURN_WINDOW_H

#include <burn/base.h>

BURN_BEGIN_DECLS

#define BURN_WINDOW_MAGIC UINT32_C(0x574e5242) /* "BRNW" */
#define BURN_WINDOW_VERSION 1

/* burn_window_value.flags */
enum {
    BURN_VALUE_INPUT = 1,
    BURN_VALUE_OUTPUT = 2,
    BURN_VALUE_STATE = 4, /* a variable; `name` is its path */
    BURN_VALUE_CONST = 8, /* a tensor that the window was captured with: `name` are its bytes */
    BURN_VALUE_TEMP = 16,
    BURN_VALUE_VIEW = 32,
    BURN_VALUE_VOLATILE = 64, /* an immediate that may differ in each run */
    BURN_VALUE_NO_DONATE = 128
};

/* A dim: its size, its symbol (equal symbols are equal sizes; 0 = fixed) and an upper bound. */
typedef struct burn_window_dim {
    int64_t size;
    int64_t stride;
    uint32_t symbol;
    uint32_t zero;
    int64_t bound;
} burn_window_dim;

typedef struct burn_window_value {
    uint8_t kind; /* BURN_TENSOR or BURN_IMMEDIATE */
    uint8_t dtype;
    uint8_t rank;
    uint8_t layout;
    uint32_t flags;
    uint32_t first_dim;
    uint32_t device;
    uint32_t view_base; /* value index + 1, 0 = not a view */
    uint32_t name_offset;
    uint32_t name_size;
    uint32_t companion;
    uint64_t view_offset;
    uint64_t immediate[2];
} burn_window_value;

typedef struct burn_window_node {
    uint64_t op;
    uint16_t revision;
    uint16_t math_mode;
    uint32_t first_use; /* inputs, then outputs */
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_offset;
    uint32_t attrs_size;
    uint64_t tag;
    uint32_t location;
    uint32_t region; /* reserved for control flow, 0 */
} burn_window_node;

#define BURN_USE_ABSENT UINT32_MAX
enum { BURN_USE_LAST = 1, BURN_USE_MUST_ALIAS = 2 };

typedef struct burn_window_use {
    uint32_t value;
    uint32_t flags;
} burn_window_use;

typedef struct burn_window {
    uint32_t magic;
    uint32_t version;
    uint64_t total_size;
    uint32_t n_values, value_stride, values_offset;
    uint32_t n_nodes, node_stride, nodes_offset;
    uint32_t n_uses, use_stride, uses_offset;
    uint32_t n_dims, dim_stride, dims_offset;
    uint32_t bytes_offset, bytes_size; /* attributes and names */
    uint64_t hash_absolute;
    uint64_t hash_relative; /* immediates and sizes abstracted */
} burn_window;

BURN_END_DECLS

#endif /* BURN_WINDOW_H */
