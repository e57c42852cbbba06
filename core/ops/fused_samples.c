/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fused_samples.c - samples of `fused`: small programs, as tables, with operands.
 *
 * A sample's attributes have 256 bytes, room for about eight steps or for four and a reduction. The
 * tables are laid out here, apart from the core's own builder, so each tries the other. To add one:
 * a row of `table`, its operands' shapes and its steps.
 */
#include "ops/fused.h"

#include <burn/build.h>
#include <string.h>

#define NONE   BURN_FUSED_NONE
#define FULL   BURN_FUSED_FULL
#define ROW    BURN_FUSED_ROW
#define ONE    BURN_FUSED_ONE
#define WHOLE  BURN_FUSED_WHOLE
#define COLUMN BURN_FUSED_COLUMN

enum { MAX_IN = 5, MAX_STEPS = 7, MAX_OUTPUTS = 3 };

typedef struct operand {
    uint8_t dtype;
    uint8_t space;
    uint8_t immediate;
    uint8_t rank;
    int64_t dims[4];
    double number; /* of an immediate */
} operand;

typedef struct step {
    uint64_t op;
    uint8_t dtype;
    uint8_t space;
    uint16_t args[BURN_FUSED_MAX_ARGS]; /* values; 0 and up, as many as the op has */
    uint8_t n_args;
} step;

typedef struct row {
    const char *name;
    double tolerance;
    uint32_t grad; /* tried with a gradient: smooth, floats */
    uint16_t length; /* which operand is the length of a row */
    uint16_t n_in;
    uint16_t n_steps;
    uint16_t n_out;
    uint16_t outputs[MAX_OUTPUTS];
    operand in[MAX_IN];
    step steps[MAX_STEPS];
    int32_t error;
    uint32_t version;
} row;

#define TENSOR(dtype, space, rank, ...) { BURN_##dtype, space, 0, rank, {__VA_ARGS__}, 0.0 }
#define NUMBER(dtype, number)           { BURN_##dtype, ONE, 1, 0, {0}, number }
#define STEP1(NAME, dtype, space, x)       { BURN_OP_##NAME, BURN_##dtype, space, {x}, 1 }
#define STEP2(NAME, dtype, space, x, y)    { BURN_OP_##NAME, BURN_##dtype, space, {x, y}, 2 }
#define STEP3(NAME, dtype, space, x, y, z) { BURN_OP_##NAME, BURN_##dtype, space, {x, y, z}, 3 }

/* clang-format off */
static const row table[] = {
    {"a chain of maps, f32", 8.0, 0, NONE, 3, 4, 1, {6},
     {TENSOR(F32, FULL, 2, 5, 7), TENSOR(F32, FULL, 2, 5, 7), NUMBER(F32, 0.5)},
     {STEP2(MUL, F32, FULL, 0, 1), STEP2(ADD, F32, FULL, 3, 2), STEP1(TANH, F32, FULL, 4),
      STEP2(SUB, F32, FULL, 5, 0)}, 0, 0},
    {"a chain of maps, f64", 8.0, 1, NONE, 3, 4, 1, {6},
     {TENSOR(F64, FULL, 2, 5, 7), TENSOR(F64, FULL, 2, 5, 7), NUMBER(F64, 0.5)},
     {STEP2(MUL, F64, FULL, 0, 1), STEP2(ADD, F64, FULL, 3, 2), STEP1(TANH, F64, FULL, 4),
      STEP2(SUB, F64, FULL, 5, 0)}, 0, 0},
    {"each step rounds, f16", 1.0, 0, NONE, 3, 4, 2, {5, 6},
     {TENSOR(F16, FULL, 1, 129), TENSOR(F16, FULL, 1, 129), NUMBER(F16, 3.0)},
     {STEP2(MUL, F16, FULL, 0, 1), STEP2(ADD, F16, FULL, 3, 2), STEP2(SUB, F16, FULL, 4, 2),
      STEP1(NEG, F16, FULL, 5)}, 0, 0},
    {"each step rounds, bf16", 1.0, 0, NONE, 2, 3, 1, {4},
     {TENSOR(BF16, FULL, 1, 65), TENSOR(BF16, FULL, 1, 65)},
     {STEP2(MUL, BF16, FULL, 0, 1), STEP2(ADD, BF16, FULL, 2, 1), STEP1(ABS, BF16, FULL, 3)}, 0, 0},
    {"integers wrap", 0.0, 0, NONE, 3, 4, 1, {6},
     {TENSOR(I8, FULL, 1, 67), TENSOR(I8, FULL, 1, 67), NUMBER(I8, 100.0)},
     {STEP2(MUL, I8, FULL, 0, 2), STEP2(ADD, I8, FULL, 3, 1), STEP2(MUL, I8, FULL, 4, 2),
      STEP2(MAXIMUM, I8, FULL, 5, 0)}, 0, 0},
    {"and, or, bool", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(BOOL, FULL, 1, 35), TENSOR(BOOL, FULL, 1, 35), TENSOR(BOOL, FULL, 1, 35)},
     {STEP2(LOGICAL_AND, BOOL, FULL, 0, 1), STEP2(LOGICAL_OR, BOOL, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, u8", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(U8, FULL, 1, 35), TENSOR(U8, FULL, 1, 35), TENSOR(U8, FULL, 1, 35)},
     {STEP2(MAXIMUM, U8, FULL, 0, 1), STEP2(MINIMUM, U8, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, u16", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(U16, FULL, 1, 35), TENSOR(U16, FULL, 1, 35), TENSOR(U16, FULL, 1, 35)},
     {STEP2(MAXIMUM, U16, FULL, 0, 1), STEP2(MINIMUM, U16, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, i16", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(I16, FULL, 1, 35), TENSOR(I16, FULL, 1, 35), TENSOR(I16, FULL, 1, 35)},
     {STEP2(MAXIMUM, I16, FULL, 0, 1), STEP2(MINIMUM, I16, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, u32", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(U32, FULL, 1, 35), TENSOR(U32, FULL, 1, 35), TENSOR(U32, FULL, 1, 35)},
     {STEP2(MAXIMUM, U32, FULL, 0, 1), STEP2(MINIMUM, U32, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, u64", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(U64, FULL, 1, 35), TENSOR(U64, FULL, 1, 35), TENSOR(U64, FULL, 1, 35)},
     {STEP2(MAXIMUM, U64, FULL, 0, 1), STEP2(MINIMUM, U64, FULL, 3, 2)}, 0, 0},
    {"maximum and minimum, i64", 0.0, 0, NONE, 3, 2, 2, {3, 4},
     {TENSOR(I64, FULL, 1, 35), TENSOR(I64, FULL, 1, 35), TENSOR(I64, FULL, 1, 35)},
     {STEP2(MAXIMUM, I64, FULL, 0, 1), STEP2(MINIMUM, I64, FULL, 3, 2)}, 0, 0},
    {"where of a compare, both given out", 0.0, 0, NONE, 2, 3, 3, {2, 3, 4},
     {TENSOR(I32, FULL, 2, 3, 17), TENSOR(I32, FULL, 2, 3, 17)},
     {STEP2(LESS, BOOL, FULL, 0, 1), STEP3(WHERE, I32, FULL, 2, 0, 1),
      STEP2(SUB, I32, FULL, 3, 1)}, 0, 0},
    {"a choice between two scalars", 0.0, 0, NONE, 4, 2, 1, {5},
     {TENSOR(F32, FULL, 2, 3, 17), NUMBER(F32, 0.25), NUMBER(F16, 1.5), NUMBER(F16, -2.0)},
     {STEP2(LESS, BOOL, FULL, 0, 1), STEP3(WHERE, F16, FULL, 4, 2, 3)}, 0, 0},
    {"casts", 1.0, 0, NONE, 2, 4, 2, {4, 5},
     {TENSOR(I32, FULL, 3, 2, 3, 5), NUMBER(F32, 0.125)},
     {STEP1(CAST, F32, FULL, 0), STEP2(MUL, F32, FULL, 2, 1), STEP1(CAST, F16, FULL, 3),
      STEP1(CAST, I32, FULL, 3)}, 0, 0},
    {"limits by value, one of them absent", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 1, 129), NUMBER(F32, 0.5)},
     {STEP3(CLAMP, F32, FULL, 0, NONE, 1), STEP1(NEG, F32, FULL, 2)}, 0, 0},
    {"a row's maximum used again", 8.0, 0, 1, 2, 3, 2, {2, 4},
     {TENSOR(F32, FULL, 2, 5, 7), NUMBER(I64, 7.0)},
     {STEP1(MAX, F32, ROW, 0), STEP2(SUB, F32, FULL, 0, 2), STEP1(EXP, F32, FULL, 3)}, 0, 0},
    {"softmax of rows", 16.0, 0, 1, 2, 5, 1, {6},
     {TENSOR(F32, FULL, 3, 2, 3, 17), NUMBER(I64, 17.0)},
     {STEP1(MAX, F32, ROW, 0), STEP2(SUB, F32, FULL, 0, 2), STEP1(EXP, F32, FULL, 3),
      STEP1(SUM, F32, ROW, 4), STEP2(DIV, F32, FULL, 4, 5)}, 0, 0},
    {"softmax of long rows", 64.0, 0, 1, 2, 5, 1, {6},
     {TENSOR(F32, FULL, 2, 3, 300), NUMBER(I64, 300.0)},
     {STEP1(MAX, F32, ROW, 0), STEP2(SUB, F32, FULL, 0, 2), STEP1(EXP, F32, FULL, 3),
      STEP1(SUM, F32, ROW, 4), STEP2(DIV, F32, FULL, 4, 5)}, 0, 0},
    {"maps of rows, with an operand per row", 16.0, 1, 2, 3, 3, 2, {4, 5},
     {TENSOR(F64, FULL, 2, 9, 4), TENSOR(F64, ROW, 1, 9), NUMBER(I64, 4.0)},
     {STEP1(MEAN, F64, ROW, 0), STEP2(MUL, F64, ROW, 3, 1), STEP2(SUB, F64, FULL, 0, 4)}, 0, 0},
    {"rows that are no dim", 8.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 1, 12), NUMBER(I64, 4.0)},
     {STEP1(SUM, F32, ROW, 0), STEP1(NEG, F32, ROW, 2)}, 0, 0},
    {"a value per row for all positions", 0.0, 0, 2, 3, 2, 1, {4},
     {TENSOR(I32, ROW, 2, 3, 1), TENSOR(I32, FULL, 2, 3, 5), NUMBER(I64, 5.0)},
     {STEP1(NEG, I32, FULL, 0), STEP2(MINIMUM, I32, FULL, 3, 1)}, 0, 0},
    {"an operand of one element", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 2, 65, 3), TENSOR(F32, ONE, 1, 1)},
     {STEP2(SUB, F32, FULL, 0, 1), STEP2(MAXIMUM, F32, FULL, 2, 1)}, 0, 0},
    {"numbers by their place, dropped by one scalar", 0.0, 0, NONE, 4, 3, 2, {5, 6},
     {TENSOR(F32, FULL, 2, 5, 7), NUMBER(U64, 7.0), NUMBER(U64, 3.0), NUMBER(F32, 0.25)},
     {STEP2(RANDOM_UNIFORM, F32, FULL, 1, 2), STEP2(LESS, BOOL, FULL, 4, 3),
      STEP3(WHERE, F32, FULL, 5, 0, 3)}, 0, 0},
    {"dropout among maps, f16", 4.0, 0, NONE, 4, 3, 1, {6},
     {TENSOR(F16, FULL, 2, 5, 7), NUMBER(F64, 0.5), NUMBER(U64, 7.0), NUMBER(U64, 3.0)},
     {STEP1(ABS, F16, FULL, 0), {BURN_OP_DROPOUT, BURN_F16, FULL, {4, 1, 2, 3}, 4},
      STEP2(SUB, F16, FULL, 5, 0)}, 0, 0},
    {"normal numbers in rows", 16.0, 0, 1, 4, 2, 2, {4, 5},
     {TENSOR(F32, FULL, 3, 2, 3, 17), NUMBER(I64, 17.0), NUMBER(U64, 9.0), NUMBER(U64, 0.0)},
     {STEP2(RANDOM_NORMAL, F32, FULL, 2, 3), STEP2(ADD, F32, FULL, 4, 0)}, 0, 0},
    {"bits and chances, sums of rows", 0.0, 0, 4, 5, 2, 2, {5, 6},
     {TENSOR(I32, FULL, 2, 3, 9), NUMBER(F64, 0.3), NUMBER(U64, 9.0), NUMBER(U64, 1.0),
      NUMBER(I64, 9.0)},
     {STEP3(BERNOULLI, I32, FULL, 1, 2, 3), STEP2(MUL, I32, FULL, 5, 0)}, 0, 0},
    {"numbers of a row that are no tensor's", 0.0, 0, 1, 4, 1, 1, {4},
     {TENSOR(F32, FULL, 2, 3, 5), NUMBER(I64, 5.0), NUMBER(U64, 9.0), NUMBER(U64, 0.0)},
     {STEP2(RANDOM_UNIFORM, F32, ROW, 2, 3)}, BURN_E_FORMAT, 0},
    {"one element", 0.0, 0, NONE, 1, 2, 1, {2}, {TENSOR(F32, FULL, 0, 0)},
     {STEP1(NEG, F32, FULL, 0), STEP2(ADD, F32, FULL, 1, 0)}, 0, 0},
    {"empty", 0.0, 0, NONE, 1, 2, 2, {1, 2}, {TENSOR(F32, FULL, 2, 0, 4)},
     {STEP1(NEG, F32, FULL, 0), STEP2(MUL, F32, FULL, 1, 0)}, 0, 0},
    {"empty rows", 0.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 2, 0, 4), NUMBER(I64, 4.0)},
     {STEP1(SUM, F32, ROW, 0), STEP2(SUB, F32, FULL, 0, 2)}, 0, 0},
    {"sizes that differ", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 1, 6), TENSOR(F32, FULL, 1, 5)},
     {STEP2(ADD, F32, FULL, 0, 1), STEP1(NEG, F32, FULL, 2)}, BURN_E_SHAPE, 0},
    {"no whole number of rows", 0.0, 0, 1, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 1, 10), NUMBER(I64, 4.0)},
     {STEP1(SUM, F32, ROW, 0), STEP1(NEG, F32, ROW, 2)}, BURN_E_SHAPE, 0},
    {"rows of no length", 0.0, 0, 1, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 1, 10), NUMBER(I64, 0.0)},
     {STEP1(SUM, F32, ROW, 0), STEP1(NEG, F32, ROW, 2)}, BURN_E_SHAPE, 0},
    {"a step that says a wrong dtype", 0.0, 0, NONE, 2, 1, 1, {2},
     {TENSOR(F32, FULL, 1, 6), TENSOR(F32, FULL, 1, 6)},
     {STEP2(LESS, F32, FULL, 0, 1)}, BURN_E_FORMAT, 0},
    {"a step that uses what comes later", 0.0, 0, NONE, 1, 2, 1, {2}, {TENSOR(F32, FULL, 1, 6)},
     {STEP1(NEG, F32, FULL, 2), STEP1(NEG, F32, FULL, 1)}, BURN_E_FORMAT, 0},
    {"a later version", 0.0, 0, NONE, 1, 1, 1, {1}, {TENSOR(F32, FULL, 1, 6)},
     {STEP1(NEG, F32, FULL, 0)}, BURN_E_FORMAT, BURN_FUSED_VERSION + 1},
    {"a product and its activation", 64.0, 0, NONE, 3, 3, 1, {5},
     {TENSOR(F32, WHOLE, 2, 5, 7), TENSOR(F32, WHOLE, 2, 7, 9), TENSOR(F32, FULL, 2, 5, 9)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP1(RELU, F32, FULL, 3),
      STEP2(ADD, F32, FULL, 4, 2)}, 0, 2},
    {"a product that is given out", 64.0, 1, NONE, 2, 2, 2, {2, 3},
     {TENSOR(F64, WHOLE, 2, 3, 4), TENSOR(F64, WHOLE, 2, 4, 5)},
     {STEP2(MATMUL, F64, FULL, 0, 1), STEP1(TANH, F64, FULL, 2)}, 0, 2},
    {"batches stretch, read in another shape", 64.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F32, WHOLE, 3, 2, 3, 4), TENSOR(F32, WHOLE, 2, 4, 5), TENSOR(F32, FULL, 2, 6, 5)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP2(MUL, F32, FULL, 3, 2)}, 0, 2},
    {"a product of halves", 16.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F16, WHOLE, 2, 5, 3), TENSOR(F16, WHOLE, 2, 3, 17), NUMBER(F16, 0.5)},
     {STEP2(MATMUL, F16, FULL, 0, 1), STEP2(MUL, F16, FULL, 3, 2)}, 0, 2},
    {"a product of integers, compared", 0.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(I32, WHOLE, 2, 5, 3), TENSOR(I32, WHOLE, 2, 3, 17), NUMBER(I32, 4.0)},
     {STEP2(MATMUL, I32, FULL, 0, 1), STEP2(LESS, BOOL, FULL, 3, 2)}, 0, 2},
    {"an inner size of 0", 0.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F32, WHOLE, 2, 3, 0), TENSOR(F32, WHOLE, 2, 0, 5), TENSOR(F32, FULL, 2, 3, 5)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP2(ADD, F32, FULL, 3, 2)}, 0, 2},
    {"a product without rows", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, WHOLE, 2, 0, 3), TENSOR(F32, WHOLE, 2, 3, 5)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP1(NEG, F32, FULL, 2)}, 0, 2},
    {"linear without a bias, narrowed", 64.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, WHOLE, 3, 2, 3, 5), TENSOR(F32, WHOLE, 2, 5, 7)},
     {STEP3(LINEAR, F32, FULL, 0, 1, NONE), STEP1(CAST, F16, FULL, 2)}, 0, 2},
    {"linear of a vector, with a bias", 64.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F32, WHOLE, 1, 5), TENSOR(F32, WHOLE, 2, 5, 7), TENSOR(F32, WHOLE, 1, 7)},
     {STEP3(LINEAR, F32, FULL, 0, 1, 2), STEP1(RELU, F32, FULL, 3)}, 0, 2},
    {"rows of a product", 64.0, 0, 2, 3, 3, 1, {5},
     {TENSOR(F32, WHOLE, 2, 5, 7), TENSOR(F32, WHOLE, 2, 7, 9), NUMBER(I64, 9.0)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP1(MAX, F32, ROW, 3), STEP2(SUB, F32, FULL, 3, 4)}, 0, 2},
    {"a convolution and its activation", 64.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F32, WHOLE, 4, 2, 1, 6, 5), TENSOR(F32, WHOLE, 4, 3, 1, 3, 2),
      TENSOR(F32, WHOLE, 1, 3)},
     {STEP3(CONV2D, F32, FULL, 0, 1, 2), STEP1(RELU, F32, FULL, 3)}, 0, 2},
    {"inner sizes that differ", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, WHOLE, 2, 5, 3), TENSOR(F32, WHOLE, 2, 4, 5)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP1(NEG, F32, FULL, 2)}, BURN_E_SHAPE, 2},
    {"an operand of another size than the product", 0.0, 0, NONE, 3, 2, 1, {4},
     {TENSOR(F32, WHOLE, 2, 5, 3), TENSOR(F32, WHOLE, 2, 3, 5), TENSOR(F32, FULL, 1, 24)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP2(ADD, F32, FULL, 3, 2)}, BURN_E_SHAPE, 2},
    {"a product in version 1", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, WHOLE, 2, 5, 3), TENSOR(F32, WHOLE, 2, 3, 5)},
     {STEP2(MATMUL, F32, FULL, 0, 1), STEP1(NEG, F32, FULL, 2)}, BURN_E_FORMAT, 1},
    {"softmax as one step, between maps", 32.0, 0, 1, 2, 3, 1, {4},
     {TENSOR(F32, FULL, 3, 2, 3, 17), NUMBER(I64, 17.0)},
     {STEP1(NEG, F32, FULL, 0), STEP1(SOFTMAX, F32, FULL, 2), STEP2(MUL, F32, FULL, 3, 0)},
     0, BURN_FUSED_VERSION_LINES},
    {"softmax as one step, f64, with its gradient", 32.0, 1, 1, 2, 2, 1, {3},
     {TENSOR(F64, FULL, 2, 3, 5), NUMBER(I64, 5.0)},
     {STEP1(TANH, F64, FULL, 0), STEP1(SOFTMAX, F64, FULL, 2)}, 0, BURN_FUSED_VERSION_LINES},
    {"log_softmax of halves, and a row's sum", 64.0, 0, 1, 2, 3, 2, {3, 4},
     {TENSOR(BF16, FULL, 2, 3, 5), NUMBER(I64, 5.0)},
     {STEP1(NEG, BF16, FULL, 0), STEP1(LOG_SOFTMAX, BF16, FULL, 2), STEP1(MAX, BF16, ROW, 3)},
     0, BURN_FUSED_VERSION_LINES},
    {"layer_norm of a sum, with a line for its scale", 64.0, 0, 2, 4, 3, 1, {6},
     {TENSOR(F32, FULL, 2, 4, 12), TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 12.0),
      TENSOR(F32, WHOLE, 2, 3, 4)},
     {STEP2(ADD, F32, FULL, 0, 1), STEP3(LAYER_NORM, F32, FULL, 4, 3, NONE),
      STEP2(SUB, F32, FULL, 5, 0)}, 0, BURN_FUSED_VERSION_LINES},
    {"a loss of what a map makes", 32.0, 0, 2, 3, 2, 1, {4},
     {TENSOR(F32, FULL, 2, 4, 12), TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 48.0)},
     {STEP1(TANH, F32, FULL, 0), STEP2(MSE_LOSS, F32, ROW, 3, 1)}, 0, BURN_FUSED_VERSION_LINES},
    {"a loss of several rows", 0.0, 0, 2, 3, 2, 1, {4},
     {TENSOR(F32, FULL, 2, 4, 12), TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 12.0)},
     {STEP1(TANH, F32, FULL, 0), STEP2(MSE_LOSS, F32, ROW, 3, 1)}, BURN_E_SHAPE,
     BURN_FUSED_VERSION_LINES},
    {"a loss in version 2", 0.0, 0, 2, 3, 1, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 12), TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 48.0)},
     {STEP2(MSE_LOSS, F32, ROW, 0, 1)}, BURN_E_FORMAT, BURN_FUSED_VERSION_PRODUCER},
    {"a loss that is full", 0.0, 0, 2, 3, 1, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 12), TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 48.0)},
     {STEP2(MSE_LOSS, F32, FULL, 0, 1)}, BURN_E_FORMAT, BURN_FUSED_VERSION_LINES},
    {"a line of another length", 0.0, 0, 1, 3, 1, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 12), NUMBER(I64, 12.0), TENSOR(F32, WHOLE, 1, 11)},
     {STEP3(LAYER_NORM, F32, FULL, 0, 2, NONE)}, BURN_E_SHAPE, BURN_FUSED_VERSION_LINES},
    {"lines in version 2", 0.0, 0, 1, 2, 1, 1, {2},
     {TENSOR(F32, FULL, 2, 4, 5), NUMBER(I64, 5.0)},
     {STEP1(SOFTMAX, F32, FULL, 0)}, BURN_E_FORMAT, BURN_FUSED_VERSION_PRODUCER},
    {"lines without rows", 0.0, 0, NONE, 1, 1, 1, {1},
     {TENSOR(F32, FULL, 2, 4, 5)},
     {STEP1(SOFTMAX, F32, FULL, 0)}, BURN_E_FORMAT, BURN_FUSED_VERSION_LINES},
    {"lines of a row's value", 0.0, 0, 1, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 5), NUMBER(I64, 5.0)},
     {STEP1(MAX, F32, ROW, 0), STEP1(SOFTMAX, F32, FULL, 2)}, BURN_E_FORMAT,
     BURN_FUSED_VERSION_LINES},
    {"a scale that is no line", 0.0, 0, 1, 3, 1, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 5), NUMBER(I64, 5.0), TENSOR(F32, FULL, 2, 4, 5)},
     {STEP3(LAYER_NORM, F32, FULL, 0, 2, NONE)}, BURN_E_FORMAT, BURN_FUSED_VERSION_LINES},
    {"sums of columns beside their values", 16.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 2, 5, 9), NUMBER(I64, 9.0)},
     {STEP1(ABS, F32, FULL, 0), STEP1(SUM, F32, COLUMN, 2)}, 0, 3},
    {"columns of several rows at once, f64", 16.0, 1, 1, 2, 2, 1, {3},
     {TENSOR(F64, FULL, 3, 3, 2, 4), NUMBER(I64, 4.0)},
     {STEP1(TANH, F64, FULL, 0), STEP1(MEAN, F64, COLUMN, 2)}, 0, 3},
    {"sums of columns of halves", 8.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F16, FULL, 2, 70, 17), NUMBER(I64, 17.0)},
     {STEP1(NEG, F16, FULL, 0), STEP1(SUM, F16, COLUMN, 2)}, 0, 3},
    {"sums of columns in blocks", 512.0, 0, 1, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 2, 900, 33), NUMBER(I64, 33.0)},
     {STEP1(ABS, F32, FULL, 0), STEP1(SUM, F32, COLUMN, 2)}, 0, 3},
    {"columns of no rows", 0.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 2, 0, 9), NUMBER(I64, 9.0)},
     {STEP1(ABS, F32, FULL, 0), STEP1(SUM, F32, COLUMN, 2)}, 0, 3},
    {"a column that a step takes", 0.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 2, 5, 9), NUMBER(I64, 9.0)},
     {STEP1(SUM, F32, COLUMN, 0), STEP2(ADD, F32, FULL, 0, 2)}, BURN_E_FORMAT, 3},
    {"a column in version 2", 0.0, 0, 1, 2, 2, 2, {2, 3},
     {TENSOR(F32, FULL, 2, 5, 9), NUMBER(I64, 9.0)},
     {STEP1(ABS, F32, FULL, 0), STEP1(SUM, F32, COLUMN, 2)}, BURN_E_FORMAT, 2},
    {"a product that is not first", 0.0, 0, NONE, 2, 2, 1, {3},
     {TENSOR(F32, FULL, 2, 4, 4), TENSOR(F32, FULL, 2, 4, 4)},
     {STEP1(NEG, F32, FULL, 0), STEP2(MATMUL, F32, FULL, 2, 1)}, BURN_E_FORMAT, 2},
};
/* clang-format on */

enum { N_ROWS = sizeof(table) / sizeof(table[0]) };

/* ---- bytes ----------------------------------------------------------------------------------- */

static int generates(uint64_t op)
{
    return op == BURN_OP_RANDOM_UNIFORM || op == BURN_OP_RANDOM_NORMAL || op == BURN_OP_BERNOULLI;
}

static int reduces(uint64_t op)
{
    return op == BURN_OP_MAX || op == BURN_OP_SUM || op == BURN_OP_MEAN;
}

/* Attributes of a step; returns their size. Casts and random numbers take theirs from the step's
 * dtype. */
static uint32_t step_attrs(const step *s, void *out)
{
    if (generates(s->op)) {
        burn_attrs_shape *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->dtype = s->dtype;
        return (uint32_t)sizeof(*a);
    }
    if (s->op == BURN_OP_SOFTMAX || s->op == BURN_OP_LOG_SOFTMAX) {
        burn_attrs_axis *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->axis = 1;
        return (uint32_t)sizeof(*a);
    }
    if (s->op == BURN_OP_MSE_LOSS) {
        burn_attrs_loss *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->reduction = BURN_REDUCTION_MEAN;
        return (uint32_t)sizeof(*a);
    }
    if (s->op == BURN_OP_LAYER_NORM) {
        burn_attrs_norm *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->eps = 1e-5;
        a->n_axes = 1;
        return (uint32_t)sizeof(*a);
    }
    if (s->op == BURN_OP_CAST) {
        burn_attrs_cast *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->dtype = s->dtype;
        return (uint32_t)sizeof(*a);
    }
    if (reduces(s->op)) {
        burn_attrs_axes *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->n_axes = 1;
        a->keepdims = 1;
        a->axes[0] = s->space == COLUMN ? 0 : 1;
        return (uint32_t)sizeof(*a);
    }
    if (s->op == BURN_OP_CONV2D) {
        burn_attrs_conv *a = out;
        burn_attrs_init(a, (uint32_t)sizeof(*a));
        a->stride[0] = 1;
        a->stride[1] = 2;
        a->padding[1] = 1;
        a->dilation[0] = 1;
        a->dilation[1] = 1;
        a->groups = 1;
        return (uint32_t)sizeof(*a);
    }
    return 0;
}

/* One step at `at`; its attributes at `*end`, unless the step before has the same. */
static void put_step(burn_sample *s, const step *from, size_t at, uint16_t *row_attrs, size_t *end)
{
    union {
        burn_attrs_cast cast;
        burn_attrs_axes axes;
        burn_attrs_shape shape;
        burn_attrs_conv conv;
        burn_attrs_axis axis;
        burn_attrs_norm norm;
        burn_attrs_loss loss;
    } attrs;
    burn_fused_step to = {0};
    to.op = from->op;
    to.n_args = from->n_args;
    to.dtype = from->dtype;
    to.space = from->space;
    to.attrs_size = (uint16_t)step_attrs(from, &attrs);
    for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
        to.args[i] = i < from->n_args ? from->args[i] : (uint16_t)NONE;
    }
    int shared = reduces(from->op) && *row_attrs != 0;
    if (to.attrs_size > 0 && shared) {
        to.attrs_offset = *row_attrs;
    } else if (to.attrs_size > 0 && *end + to.attrs_size <= sizeof(s->attrs)) {
        to.attrs_offset = (uint16_t)*end;
        memcpy(s->attrs + *end, &attrs, to.attrs_size);
        *end += to.attrs_size;
        *row_attrs = reduces(from->op) ? to.attrs_offset : *row_attrs;
    }
    memcpy(s->attrs + at, &to, sizeof(to));
}

static void put_program(burn_sample *s, const row *r)
{
    burn_fused_program p = {0};
    size_t at = sizeof(p);
    p.head.revision = r->version != 0 ? r->version : 1;
    p.n_in = r->n_in;
    p.n_out = r->n_out;
    p.n_steps = r->n_steps;
    p.row_input = r->length;
    p.inputs_offset = (uint16_t)at;
    for (uint32_t i = 0; i < r->n_in; i++) {
        const burn_fused_input in = {r->in[i].dtype, r->in[i].space, r->in[i].immediate, 0};
        memcpy(s->attrs + at, &in, sizeof(in));
        at += sizeof(in);
    }
    p.outputs_offset = (uint16_t)at;
    memcpy(s->attrs + at, r->outputs, r->n_out * sizeof(r->outputs[0]));
    at = (at + r->n_out * sizeof(r->outputs[0]) + 7) & ~(size_t)7;
    p.steps_offset = (uint16_t)at;
    size_t end = at + r->n_steps * sizeof(burn_fused_step);
    uint16_t row_attrs = 0;
    for (uint32_t k = 0; k < r->n_steps; k++) {
        put_step(s, &r->steps[k], at + k * sizeof(burn_fused_step), &row_attrs, &end);
    }
    p.head.size = (uint32_t)end;
    memcpy(s->attrs, &p, sizeof(p));
    s->attrs_size = (uint32_t)end;
}

static int32_t row_samples(uint32_t i, burn_sample *s)
{
    if (i >= N_ROWS) {
        return BURN_E_END;
    }
    const row *r = &table[i];
    burni_sample_begin(s, r->name, r->tolerance, 64.0);
    for (uint32_t k = 0; k < r->n_in; k++) {
        const operand *x = &r->in[k];
        if (x->immediate) {
            burni_sample_immediate(s, k, x->dtype, x->number);
        } else {
            burni_sample_tensor(s, k, x->dtype, BURN_FILL_NORMAL, x->rank, x->dims);
        }
    }
    put_program(s, r);
    s->n_out = r->n_out;
    s->flags = r->grad ? 0 : BURN_SAMPLE_NO_GRAD;
    if (r->error != 0) {
        burni_sample_error(s, r->error);
    }
    return BURN_OK;
}

int32_t burni_fused_samples(uint32_t i, burn_sample *s)
{
    static const burni_special special[] = {
        {"an operand of one element", "special values", 1, 0},
        {"a row's maximum used again", "special values, rows", 0, 1},
        {"maps of rows, with an operand per row", "special values, means", 0, 3},
        {"sums of columns beside their values", "special values, columns", 0, 1},
    };
    return burni_samples_special(i, s, row_samples, special, BURNI_N_SPECIAL(special));
}
