/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused.h - the program of `burn.fused`: several small ops done in one pass over memory. The ops of
 * the extension "fused" are in <burn/ext/fused.h>.
 * A group of ops that the planner puts together is itself an op, BURN_OP_FUSED; its attributes are
 * a program: this head, then inputs, outputs, steps, and the attributes of steps, without gaps. No
 * addresses, little-endian, zero padding. A backend runs it through an ordinary row, or has none:
 * then the core runs the steps as the ops that they are. Results are, to the last bit, those of the
 * ops called one by one: each step rounds to its dtype, nothing is contracted across steps, and a
 * reduction adds in the order of the single op. A program may come from a file: `burn_fused_check`
 * looks at every index, offset and dtype; whoever runs one may rely on that.
 */
#ifndef BURN_FUSED_H
#define BURN_FUSED_H

#include <burn/base.h>
#include <burn/op_def.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

#define BURN_FUSED_VERSION 3          /* the newest that is known */
#define BURN_FUSED_VERSION_PRODUCER 2 /* from here on the first step may be a producer */
#define BURN_FUSED_VERSION_LINES 3    /* from here on steps may go over lines */
#define BURN_FUSED_VERSION_COLUMN 3   /* from here on reductions may give COLUMN values */
#define BURN_FUSED_MAX_BYTES 4096
#define BURN_FUSED_MAX_STEPS 64
#define BURN_FUSED_MAX_ARGS 4
#define BURN_FUSED_NONE UINT16_MAX /* an absent operand of a step */
/* Bytes of the longest line that the core asks a step over lines for: the first cache of a CPU, the
 * shared memory of a GPU. A row of BURN_OP_FUSED may refuse longer ones when it is launched. */
#define BURN_FUSED_LINE_BYTES 32768

/*
 * How many elements a value has. The program runs over `n` positions, the row-major elements of
 * its largest operands; where it has rows, row r is the positions from r * length to
 * (r + 1) * length - 1 and `length` is input `row_input`, an immediate i64. Every FULL operand has
 * n elements in its own dims and strides, every ROW operand n / length; which dims is the operand's
 * own business.
 */
enum {
    BURN_FUSED_FULL = 0, /* one per position */
    BURN_FUSED_ROW = 1,  /* one per row, seen by all positions of it */
    BURN_FUSED_ONE = 2,  /* one: an immediate or a tensor of one element */
    /* As many as its dims say: an operand of a producer, or one line for a step over lines. */
    BURN_FUSED_WHOLE = 3,
    BURN_FUSED_COLUMN = 4 /* one per position of a row: a reduction's result, which is given out */
};

typedef struct burn_fused_input {
    uint8_t dtype;
    uint8_t space;
    uint8_t immediate; /* 1: a scalar by value */
    uint8_t zero;
} burn_fused_input;

/*
 * One op. Value v is input v, or the result of step v - n_in; a step uses inputs and results of
 * earlier steps only. The op is a core op that maps elements (BURN_FUSE_POINTWISE), one that
 * reduces (BURN_FUSE_REDUCE): that takes a FULL value and gives a ROW value, or one that generates
 * them by their place (BURN_FUSE_GENERATE): its result is FULL, element i is that of position i,
 * and so are its operands that are no immediates. A map's result is FULL or ROW and no smaller than
 * its arguments. `dtype` is that of the result, as the op's rule gives it. Attributes are those of
 * the op, head included; a reduction's are over axis 1 of [rows, length] with keepdims 1; a
 * generator's shape has n_dims 0 and dims 0, since the positions say it. Steps may share them.
 *
 * The first step may instead be a producer (BURN_FUSE_EPILOGUE_HOST: a product, a convolution). Its
 * operands are WHOLE inputs, in the dims, strides and attributes that the op takes alone; its
 * result, in the shape that the op's rule gives, is the FULL value that says what n is. Such a
 * program is of version 2 or later.
 *
 * From version 3 on a step may go over lines (BURN_FUSE_LINES: softmax, layer_norm): row by row it
 * takes FULL values and gives a FULL one, as the op does of [rows, length] along axis 1. Its
 * attributes say so: axis 1, or n_axes 1. Operands of role BURN_ROLE_LINE are WHOLE inputs of
 * `length` elements.
 *
 * From version 3 on a reduction may also give a COLUMN value, over axis 0 of [rows, length]:
 * `length` elements, which are there only when all rows have been seen. So no step takes it, and it
 * is an output. A loss (BURN_FUSE_REDUCE with an attribute `reduction`) takes FULL values and gives
 * the ROW value of the only row. A program of none of this may be of version 1.
 */
typedef struct burn_fused_step {
    uint64_t op;
    uint8_t n_args;
    uint8_t dtype;
    uint8_t space;
    uint8_t zero;
    uint16_t attrs_offset; /* from the program's first byte, a multiple of 8; 0: none */
    uint16_t attrs_size;
    uint16_t args[BURN_FUSED_MAX_ARGS]; /* values; BURN_FUSED_NONE where absent or unused */
} burn_fused_step;

typedef struct burn_fused_program {
    burn_attrs_head head; /* size: all bytes of the program; revision: the version, 1 to 3 */
    uint16_t n_in;
    uint16_t n_out;
    uint16_t n_steps;
    uint16_t row_input;      /* which input is the length of a row, or BURN_FUSED_NONE */
    uint16_t inputs_offset;  /* burn_fused_input[n_in] */
    uint16_t outputs_offset; /* uint16_t[n_out]: the value of each output, a step's, each once */
    uint16_t steps_offset;   /* burn_fused_step[n_steps], 8-aligned */
    uint16_t zero;
} burn_fused_program;

static inline const burn_fused_input *burn_fused_inputs(const burn_fused_program *p)
{
    return (const burn_fused_input *)(const void *)((const char *)p + p->inputs_offset);
}

static inline const uint16_t *burn_fused_outputs(const burn_fused_program *p)
{
    return (const uint16_t *)(const void *)((const char *)p + p->outputs_offset);
}

static inline const burn_fused_step *burn_fused_steps(const burn_fused_program *p)
{
    return (const burn_fused_step *)(const void *)((const char *)p + p->steps_offset);
}

/* Checks bytes that claim to be a program; they must be 8-aligned. BURN_E_FORMAT with what is wrong
 * where. [any] */
BURN_API int32_t burn_fused_check(const void *bytes, size_t size, burn_err *err);
/* Readable text of a checked program, one line per step, cut to `size`; returns the needed length.
 * [any] */
BURN_API size_t burn_fused_text(const burn_fused_program *program, char *out, size_t size);

BURN_END_DECLS

#endif /* BURN_FUSED_H */
