/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * call.h - a call: one kernel launch. It says where: buffers, offsets, dims, strides, attributes.
 *
 * The core owns everything in a call; a kernel may keep none of it after it returns, except that
 * work put on the queue may still use the buffers. Outputs are allocated by the core. Dims and
 * strides come broadcast and coalesced for pointwise ops (every operand has the same dims), and as
 * the tensor has them for all other ops.
 */
#ifndef BURN_CALL_H
#define BURN_CALL_H

#include <burn/base.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

typedef struct burn_buffer burn_buffer; /* the backend's own */
typedef struct burn_queue burn_queue;   /* the backend's own */

enum { BURN_ABSENT = 0, BURN_TENSOR = 1, BURN_IMMEDIATE = 2, BURN_RESOURCE = 3 };

/* burn_operand.flags */
enum { BURN_OPERAND_DEAD = 1 /* nobody reads it after this call */ };

/* Layout classes, as bits, so that a row can name a set of them. */
enum {
    BURN_LAYOUT_CONTIGUOUS = 1, /* row-major and dense */
    BURN_LAYOUT_SCALAR = 2,     /* all strides 0 */
    BURN_LAYOUT_VECTOR = 4,     /* dense in the inner dims, broadcast over the outer ones */
    BURN_LAYOUT_ROWS = 8,       /* innermost stride 1 */
    BURN_LAYOUT_STRIDED = 16,   /* anything else */
    BURN_LAYOUT_ANY = 31
};

/*
 * One operand. Arrays of it carry a stride (burn_call.operand_stride). `data` is the address of
 * element [0,...,0], or NULL on devices whose memory the host cannot reach: there it is
 * `buffer` + `offset` bytes. Strides count elements and may be 0 or negative. An immediate's `data`
 * points at 16 bytes of host memory, its dims are 1 and its strides 0. `layout` is one layout
 * class.
 */
typedef struct burn_operand {
    void *data;
    burn_buffer *buffer;
    uint64_t offset;
    const int64_t *dims;
    const int64_t *strides;
    uint32_t flags;
    uint8_t kind;
    uint8_t dtype;
    uint8_t rank;
    uint8_t layout;
    uint16_t companion; /* index of the first companion operand, 0 = none */
    uint16_t zero[3];
    uint64_t reserved;
} burn_operand;

/* Math modes (burn_call.flags). */
enum {
    BURN_MATH_REDUCED = 1 /* reduced-precision products were asked for on this device */
};

typedef struct burn_call {
    uint32_t struct_size;
    uint32_t operand_stride;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_companion;
    uint32_t flags;
    burn_queue *queue;
    const void *state; /* what the row's prepare returned */
    const burn_operand *operands; /* inputs, then outputs, then companions */
    const void *attrs;            /* the op's attribute struct, NULL when it has none */
    uint32_t attrs_size;
    uint32_t attrs_revision;
    const burn_operand *workspace; /* NULL: none */
    const burn_operand *fault;     /* NULL: none; else one burn_fault in device memory */
    uint64_t tag;
    burn_err *err;
} burn_call;

/*
 * The fault word: how a kernel reports what only the data show. It writes once: code first seen
 * wins, `value` is the offending value and `position` its place in the operand, counted row-major.
 */
typedef struct burn_fault {
    int32_t code; /* 0: no fault; else BURN_E_DATA or another status */
    uint32_t operand;
    int64_t value;
    int64_t position;
    int64_t bound; /* what the value had to be below, 0 when that says nothing */
} burn_fault;

/*
 * A kernel. It allocates nothing and blocks on nothing; on failure it fills `err` and returns a
 * code. BURN_E_UNSUPPORTED makes the core take the op's decomposition instead. [queue]
 */
typedef int32_t(BURN_CALL *burn_launch_fn)(const burn_call *call);

/* Call `i` of an array of calls. */
static inline const burn_call *burn_call_at(const burn_call *calls, uint32_t i, uint32_t stride)
{
    return (const burn_call *)(const void *)((const char *)calls + (size_t)i * stride);
}

/* Operand `i` of a call, whatever the stride. */
static inline const burn_operand *burn_call_operand(const burn_call *call, uint32_t i)
{
    const char *base = (const char *)call->operands;
    return (const burn_operand *)(const void *)(base + (size_t)i * call->operand_stride);
}

BURN_END_DECLS

#endif /* BURN_CALL_H */
