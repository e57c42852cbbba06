/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_fused_program.c - the format of `burn.fused`: each rule of burn_fused_check broken once, the
 * printed text, and that the builder writes what the check takes.
 *
 * No device. A breaker changes one thing of a good program; the message must name step and operand.
 * To add a rule's test: a function that breaks it, a row of `breakers` with the words to expect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/fused.h"

#include <burn/build.h>
#include <burn/op_list.h>
#include <burn/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL   BURN_FUSED_FULL
#define ROW    BURN_FUSED_ROW
#define ONE    BURN_FUSED_ONE
#define WHOLE  BURN_FUSED_WHOLE
#define COLUMN BURN_FUSED_COLUMN
#define NONE   BURN_FUSED_NONE

typedef struct program {
    size_t size;
    union {
        burn_fused_program head;
        unsigned char bytes[BURN_FUSED_MAX_BYTES + 16];
        uint64_t aligned;
    } at;
} program;

/* ---- a good program -------------------------------------------------------------------------- */

enum { IN_X, IN_Y, IN_LENGTH, IN_HALF, IN_BIAS, N_IN };
enum { S_MUL, S_SUM, S_SUB, S_CLAMP, S_CAST, S_MEAN, N_STEPS };

static uint16_t unary(burni_fused_builder *b, uint64_t op, uint8_t dtype, uint8_t space, uint16_t x,
                      const void *attrs, uint32_t size)
{
    return burni_fused_add_step(b, op, dtype, space, &x, 1, attrs, size);
}

/* x, y: f32; length; a scalar; one value per row. A product, its sum per row taken off, limits, a
 * cast, a mean per row. */
static void build(burni_fused_builder *b)
{
    burn_attrs_axes axes;
    burn_attrs_cast cast;
    burni_fused_axes(&axes, ROW, 0);
    burn_attrs_init(&cast, (uint32_t)sizeof(cast));
    cast.dtype = BURN_F16;
    burni_fused_begin(b);
    uint16_t x = burni_fused_add_input(b, BURN_F32, FULL, 0);
    uint16_t product = burni_fused_add_step(b, BURN_OP_MUL, BURN_F32, FULL,
                                            (uint16_t[]){x, (uint16_t)(x + 1)}, 2, NULL, 0);
    (void)burni_fused_add_input(b, BURN_F32, FULL, 0);
    burni_fused_set_row_input(b, burni_fused_add_input(b, BURN_I64, ONE, 1));
    uint16_t half = burni_fused_add_input(b, BURN_F32, ONE, 1);
    uint16_t bias = burni_fused_add_input(b, BURN_F32, ROW, 0);
    uint16_t sum = unary(b, BURN_OP_SUM, BURN_F32, ROW, product, &axes, sizeof(axes));
    uint16_t rest = burni_fused_add_step(b, BURN_OP_SUB, BURN_F32, FULL,
                                         (uint16_t[]){product, sum}, 2, NULL, 0);
    uint16_t low = burni_fused_add_step(b, BURN_OP_CLAMP, BURN_F32, ROW,
                                        (uint16_t[]){bias, NONE, half}, 3, NULL, 0);
    uint16_t narrow = unary(b, BURN_OP_CAST, BURN_F16, FULL, rest, &cast, sizeof(cast));
    uint16_t mean = unary(b, BURN_OP_MEAN, BURN_F32, ROW, rest, &axes, sizeof(axes));
    (void)burni_fused_add_output(b, narrow);
    (void)burni_fused_add_output(b, mean);
    (void)burni_fused_add_output(b, low);
}

static void good(program *p)
{
    static burni_fused_builder b; /* large */
    build(&b);
    memset(p, 0xee, sizeof(*p));
    p->size = burni_fused_finish(&b, p->at.bytes, sizeof(p->at.bytes));
    assert_int_equal(p->size, burni_fused_size(&b));
}

static burn_fused_input *input(program *p, uint32_t i)
{
    return (burn_fused_input *)(uintptr_t)burn_fused_inputs(&p->at.head) + i;
}

static burn_fused_step *step(program *p, uint32_t s)
{
    return (burn_fused_step *)(uintptr_t)burn_fused_steps(&p->at.head) + s;
}

static uint16_t *output(program *p, uint32_t j)
{
    return (uint16_t *)(uintptr_t)burn_fused_outputs(&p->at.head) + j;
}

static unsigned char *attrs_of(program *p, uint32_t s)
{
    return p->at.bytes + step(p, s)->attrs_offset;
}

/* ---- breaking it ----------------------------------------------------------------------------- */

#define SET(name, target, value)                                                                   \
    static void name(program *p)                                                                   \
    {                                                                                              \
        target = value;                                                                            \
    }

SET(no_bytes, p->size, 8)
SET(says_less, p->at.head.head.size, 64)
SET(version, p->at.head.head.revision, BURN_FUSED_VERSION + 1)
SET(head_padding, p->at.head.zero, 1)
SET(no_inputs, p->at.head.n_in, 0)
SET(no_outputs, p->at.head.n_out, 0)
SET(many_inputs, p->at.head.n_in, 65)
SET(no_steps, p->at.head.n_steps, 0)
SET(many_steps, p->at.head.n_steps, 65)
SET(steps_elsewhere, p->at.head.steps_offset, 8)
SET(inputs_elsewhere, p->at.head.inputs_offset, 28)
SET(steps_past, p->at.head.n_steps, 60)
SET(output_padding, p->at.bytes[p->at.head.outputs_offset + 7], 1)

SET(input_dtype, input(p, IN_Y)->dtype, 200)
SET(input_reserved_dtype, input(p, IN_Y)->dtype, BURN_C64)
SET(input_space, input(p, IN_Y)->space, 4)
SET(input_padding, input(p, IN_Y)->zero, 1)
SET(scalar_is_full, input(p, IN_HALF)->space, FULL)
SET(row_without_length, p->at.head.row_input, NONE)
SET(length_beyond, p->at.head.row_input, N_IN)
SET(length_is_no_scalar, p->at.head.row_input, IN_X)

SET(op_unknown, step(p, S_SUB)->op, 12345)
SET(op_of_an_extension, step(p, S_SUB)->op, burn_op_id_from_name("acme.add"))
SET(op_of_another_kind, step(p, S_SUB)->op, BURN_OP_MATMUL)
SET(op_that_is_random, step(p, S_SUB)->op, BURN_OP_DROPOUT)
SET(op_itself, step(p, S_SUB)->op, BURN_OP_FUSED)
SET(operand_count, step(p, S_SUB)->n_args, 1)
SET(step_space, step(p, S_SUB)->space, ONE)
SET(step_dtype, step(p, S_SUB)->dtype, 0)
SET(step_padding, step(p, S_SUB)->zero, 1)
SET(operand_missing, step(p, S_SUB)->args[1], NONE)
SET(operand_later, step(p, S_SUB)->args[1], N_IN + S_SUB)
SET(operand_beyond, step(p, S_SUB)->args[1], 1000)
SET(operand_unused, step(p, S_SUB)->args[2], 0)
SET(operand_scalar, step(p, S_CAST)->args[0], IN_HALF)
SET(operand_no_scalar, step(p, S_CLAMP)->args[2], IN_X)
SET(operand_dtype, input(p, IN_HALF)->dtype, BURN_F64)
SET(result_dtype, step(p, S_MUL)->dtype, BURN_F64)
SET(cast_result, step(p, S_CAST)->dtype, BURN_F32)
SET(reduction_is_full, step(p, S_SUM)->space, FULL)
SET(reduction_of_a_row, step(p, S_SUM)->args[0], IN_BIAS)
SET(result_is_smaller, step(p, S_SUB)->space, ROW)

SET(attrs_none, step(p, S_CAST)->attrs_size, 0)
SET(attrs_too_many, step(p, S_SUB)->attrs_size, 16)
SET(attrs_at_0, step(p, S_CAST)->attrs_offset, 0)
SET(attrs_elsewhere, step(p, S_CAST)->attrs_offset, 24)
SET(attrs_behind_the_end, step(p, S_CAST)->attrs_offset, 4000)
SET(attrs_head_size, attrs_of(p, S_CAST)[0], 8)
SET(attrs_revision, attrs_of(p, S_CAST)[4], 9)
SET(attrs_padding, attrs_of(p, S_CAST)[12], 1)
SET(attrs_dtype, attrs_of(p, S_CAST)[8], 250)

SET(output_of_an_input, *output(p, 0), IN_X)
SET(output_beyond, *output(p, 1), N_IN + N_STEPS)
SET(output_twice, *output(p, 1), *output(p, 0))

static void other_axes(program *p)
{
    burn_attrs_axes axes;
    memcpy(&axes, attrs_of(p, S_SUM), sizeof(axes));
    axes.axes[0] = 0;
    memcpy(attrs_of(p, S_SUM), &axes, sizeof(axes));
}

static void more_behind(program *p)
{
    memset(p->at.bytes + p->size, 0, 8);
    p->size += 8;
    p->at.head.head.size += 8;
}

static void cut(program *p)
{
    p->size -= 8;
    p->at.head.head.size -= 8;
}

static void too_large(program *p)
{
    p->size = BURN_FUSED_MAX_BYTES + 8;
    p->at.head.head.size = BURN_FUSED_MAX_BYTES + 8;
}

static void nothing_full(program *p)
{
    input(p, IN_X)->space = ROW;
    input(p, IN_Y)->space = ROW;
}

static void negated_bool(program *p)
{
    input(p, IN_X)->dtype = BURN_BOOL;
    input(p, IN_Y)->dtype = BURN_BOOL;
}

static void step_row_without_length(program *p)
{
    p->at.head.row_input = NONE;
    input(p, IN_BIAS)->space = ONE;
}

/* ---- breaking one with a product ------------------------------------------------------------- */

enum { P_X, P_WEIGHT, P_BIAS, P_REST, P_N_IN };
enum { P_LINEAR, P_RELU, P_ADD };

/* relu(linear(x, weight, bias)) + rest */
static void build_product(burni_fused_builder *b)
{
    burni_fused_begin(b);
    uint16_t args[3];
    for (uint32_t i = 0; i < 3; i++) {
        args[i] = burni_fused_add_input(b, BURN_F32, WHOLE, 0);
    }
    uint16_t rest = burni_fused_add_input(b, BURN_F32, FULL, 0);
    uint16_t y = burni_fused_add_step(b, BURN_OP_LINEAR, BURN_F32, FULL, args, 3, NULL, 0);
    uint16_t z = unary(b, BURN_OP_RELU, BURN_F32, FULL, y, NULL, 0);
    z = burni_fused_add_step(b, BURN_OP_ADD, BURN_F32, FULL, (uint16_t[]){z, rest}, 2, NULL, 0);
    (void)burni_fused_add_output(b, z);
}

static void good_product(program *p)
{
    static burni_fused_builder b;
    build_product(&b);
    memset(p, 0xee, sizeof(*p));
    p->size = burni_fused_finish(&b, p->at.bytes, sizeof(p->at.bytes));
    assert_int_equal(p->at.head.head.revision, BURN_FUSED_VERSION_PRODUCER);
}

SET(product_of_version_1, p->at.head.head.revision, 1)
SET(product_later, step(p, P_ADD)->op, BURN_OP_MATMUL)
SET(product_of_an_immediate, input(p, P_WEIGHT)->immediate, 1)
SET(product_of_elements, input(p, P_WEIGHT)->space, FULL)
SET(product_is_a_row, step(p, P_LINEAR)->space, ROW)
SET(product_of_itself, step(p, P_LINEAR)->args[1], P_N_IN)
SET(product_gives_another_dtype, step(p, P_LINEAR)->dtype, BURN_F64)
SET(product_of_two_dtypes, input(p, P_WEIGHT)->dtype, BURN_F64)
SET(product_of_integers, input(p, P_X)->dtype, BURN_I32)
SET(product_without_a_weight, step(p, P_LINEAR)->args[1], NONE)
SET(whole_elsewhere, step(p, P_ADD)->args[1], P_BIAS)
SET(whole_of_nobody, input(p, P_REST)->space, WHOLE)
SET(no_product, step(p, P_LINEAR)->op, BURN_OP_WHERE)

static void row_product(program *p)
{
    step(p, P_LINEAR)->space = ROW;
    input(p, P_REST)->dtype = BURN_I64;
    input(p, P_REST)->space = ONE;
    input(p, P_REST)->immediate = 1;
    p->at.head.row_input = P_REST;
}

typedef struct breaker {
    const char *name;
    void (*broken)(program *p);
    const char *words[3];
} breaker;

#define ROW_OF(name, ...) {#name, name, {__VA_ARGS__}}

static const breaker breakers[] = {
    ROW_OF(no_bytes, "8 bytes", "24 to 4096"),
    ROW_OF(too_large, "4104 bytes", "4096"),
    ROW_OF(says_less, "the head says 64 bytes"),
    ROW_OF(version, "version 4", "knows 1 to 3"),
    ROW_OF(head_padding, "the head's padding is 1"),
    ROW_OF(no_inputs, "0 inputs and 3 outputs"),
    ROW_OF(no_outputs, "5 inputs and 0 outputs"),
    ROW_OF(many_inputs, "65 inputs", "64 together"),
    ROW_OF(no_steps, "0 steps", "1 to 64"),
    ROW_OF(many_steps, "65 steps", "1 to 64"),
    ROW_OF(steps_elsewhere, "inputs, outputs and steps at 24, 44, 8", "24, 44, 56"),
    ROW_OF(inputs_elsewhere, "inputs, outputs and steps at 28", "24, 44, 56"),
    ROW_OF(steps_past, "the steps end at byte 1496"),
    ROW_OF(output_padding, "padding behind the outputs"),
    ROW_OF(input_dtype, "input 1", "unknown dtype 200"),
    ROW_OF(input_reserved_dtype, "input 1", "unknown dtype 16"),
    ROW_OF(input_space, "input 1 has space 4"),
    ROW_OF(input_padding, "input 1", "padding 1"),
    ROW_OF(scalar_is_full, "input 3 is an immediate of space full"),
    ROW_OF(row_without_length, "input 4 is per row", "no input is the length"),
    ROW_OF(length_beyond, "the length of a row is input 5 of 5"),
    ROW_OF(length_is_no_scalar, "the length of a row, input 0", "immediate i64"),
    ROW_OF(nothing_full, "no input is full"),
    ROW_OF(op_unknown, "step 2 is op 12345", "none of the core's"),
    ROW_OF(op_of_an_extension, "step 2 is op", "none of the core's"),
    ROW_OF(op_of_another_kind, "step 2 (matmul): only the first step may be a producer"),
    ROW_OF(op_that_is_random, "step 2 (dropout): 2 operands; 4 expected"),
    ROW_OF(op_itself, "step 2 (fused)", "neither maps"),
    ROW_OF(operand_count, "step 2 (sub): 1 operands; 2 expected"),
    ROW_OF(step_space, "step 2 (sub): space 2"),
    ROW_OF(step_dtype, "step 2 (sub)", "dtype 0"),
    ROW_OF(step_padding, "step 2 (sub)", "padding 1"),
    ROW_OF(step_row_without_length, "step 1 (sum): per row", "no input is the length"),
    ROW_OF(operand_missing, "step 2 (sub): operand y is missing"),
    ROW_OF(operand_later, "step 2 (sub): operand y is value 7; 7 are there"),
    ROW_OF(operand_beyond, "step 2 (sub): operand y is value 1000"),
    ROW_OF(operand_unused, "step 2 (sub): operand 2 of 2 is value 0"),
    ROW_OF(operand_scalar, "step 4 (cast): operand x must be a tensor"),
    ROW_OF(operand_no_scalar, "step 3 (clamp): operand hi must be a scalar"),
    ROW_OF(operand_dtype, "step 3 (clamp): operand hi is f64, x is f32"),
    ROW_OF(negated_bool, "step 0 (mul): operand x is bool, which the op does not take"),
    ROW_OF(result_dtype, "step 0 (mul): says it gives f64; the op gives f32"),
    ROW_OF(cast_result, "step 4 (cast): says it gives f32; the op gives f16"),
    ROW_OF(reduction_is_full, "step 1 (sum): a reduction gives one value per row or column, not"),
    ROW_OF(reduction_of_a_row, "step 1 (sum): reduces a value of space row"),
    ROW_OF(result_is_smaller, "step 2 (sub): operand 0 is full, larger", "row"),
    ROW_OF(attrs_none, "step 4 (cast): 0 bytes of attributes", "the op has 16"),
    ROW_OF(attrs_too_many, "step 2 (sub): 16 bytes of attributes", "the op has 0"),
    ROW_OF(attrs_at_0, "step 4 (cast): 16 bytes of attributes at 0"),
    ROW_OF(attrs_elsewhere, "step 4 (cast): its attributes are bytes 24 to 40", "begin at 288"),
    ROW_OF(attrs_behind_the_end, "step 4 (cast): its attributes are bytes 4000 to 4016"),
    ROW_OF(attrs_head_size, "step 4 (cast): its attributes say size 8", "16 and up to 1"),
    ROW_OF(attrs_revision, "step 4 (cast): its attributes say size 16 and revision 9"),
    ROW_OF(attrs_padding, "step 4 (cast): byte 12 of its attributes is padding"),
    ROW_OF(attrs_dtype, "step 4: cast: there is no dtype with code 250"),
    ROW_OF(other_axes, "step 1 (sum): reduces other axes"),
    ROW_OF(more_behind, "8 bytes behind the last section"),
    ROW_OF(cut, "step 4 (cast): its attributes are bytes 288 to 304 of 296"),
    ROW_OF(output_of_an_input, "output 0 is value 0", "the steps give 5 to 10"),
    ROW_OF(output_beyond, "output 1 is value 11"),
    ROW_OF(output_twice, "outputs 0 and 1 are both value 9"),
};

static const breaker product_breakers[] = {
    ROW_OF(product_of_version_1, "input 0 is whole, but no operand of a producer"),
    ROW_OF(product_later, "step 2 (matmul): only the first step may be a producer"),
    ROW_OF(product_of_an_immediate, "input 1 is an immediate of space whole"),
    ROW_OF(product_of_elements, "step 0 (linear): operand weight is full", "must be a whole input"),
    ROW_OF(product_is_a_row, "step 0 (linear): per row, but no input"),
    ROW_OF(row_product, "step 0 (linear): what it gives is full, not row"),
    ROW_OF(product_of_itself, "input 1 is whole, but no operand of a producer"),
    ROW_OF(product_gives_another_dtype, "step 0 (linear): says it gives f64; the op gives f32"),
    ROW_OF(product_of_two_dtypes, "step 0 (linear): operand weight is f64, x is f32"),
    ROW_OF(product_of_integers, "step 0 (linear): operand x is i32"),
    ROW_OF(product_without_a_weight, "input 1 is whole, but no operand of a producer"),
    ROW_OF(whole_elsewhere, "step 2 (add): operand y is whole; only a producer takes that"),
    ROW_OF(whole_of_nobody, "input 3 is whole, but no operand of a producer"),
    ROW_OF(no_product, "input 0 is whole, but no operand of a producer"),
};

static void check_breakers(const breaker *rows, size_t n, void (*make)(program *p))
{
    static program p;
    for (size_t i = 0; i < n; i++) {
        burn_err err = BURN_ERR_INIT;
        make(&p);
        assert_int_equal(burn_fused_check(p.at.bytes, p.size, &err), BURN_OK);
        rows[i].broken(&p);
        int32_t code = burn_fused_check(p.at.bytes, p.size, &err);
        int fine = code == BURN_E_FORMAT && strncmp(err.text, "fused: ", 7) == 0;
        for (size_t w = 0; w < 3 && rows[i].words[w] != NULL; w++) {
            fine = fine && strstr(err.text, rows[i].words[w]) != NULL;
        }
        if (!fine) {
            print_error("%s: code %d, \"%s\"\n", rows[i].name, (int)code, err.text);
        }
        assert_true(fine);
    }
}

static void check__each_rule_broken_once(void **state)
{
    (void)state;
    check_breakers(breakers, sizeof(breakers) / sizeof(breakers[0]), good);
    check_breakers(product_breakers, sizeof(product_breakers) / sizeof(breaker), good_product);
}

/* ---- generators ------------------------------------------------------------------------------ */

enum { G_X, G_ROW, G_SEED, G_COUNTER, G_P, G_LENGTH };
enum { G_UNIFORM, G_DROPOUT };

/* x + u, dropped: with a value per row that nobody needs. */
static void good_generators(program *p)
{
    static burni_fused_builder b; /* large */
    static const burn_fused_input inputs[] = {
        {BURN_F32, FULL, 0, 0}, {BURN_F32, ROW, 0, 0}, {BURN_U64, ONE, 1, 0},
        {BURN_U64, ONE, 1, 0},  {BURN_F64, ONE, 1, 0}, {BURN_I64, ONE, 1, 0}};
    burn_attrs_shape shape;
    burn_attrs_init(&shape, (uint32_t)sizeof(shape));
    shape.dtype = BURN_F32;
    burni_fused_begin(&b);
    for (uint32_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        (void)burni_fused_add_input(&b, inputs[i].dtype, inputs[i].space, inputs[i].immediate);
    }
    burni_fused_set_row_input(&b, G_LENGTH);
    (void)burni_fused_add_step(&b, BURN_OP_RANDOM_UNIFORM, BURN_F32, FULL,
                               (uint16_t[]){G_SEED, G_COUNTER}, 2, &shape, sizeof(shape));
    uint16_t y = burni_fused_add_step(&b, BURN_OP_DROPOUT, BURN_F32, FULL,
                                      (uint16_t[]){G_X, G_P, G_SEED, G_COUNTER}, 4, NULL, 0);
    (void)burni_fused_add_output(&b, y);
    memset(p, 0xee, sizeof(*p));
    p->size = burni_fused_finish(&b, p->at.bytes, sizeof(p->at.bytes));
}

SET(generator_of_rows, step(p, G_UNIFORM)->space, ROW)
SET(generator_takes_a_row, step(p, G_DROPOUT)->args[0], G_ROW)
SET(generator_takes_one, input(p, G_X)->space, ONE)
SET(seed_is_a_tensor, input(p, G_SEED)->immediate, 0)
SET(generator_dtype, attrs_of(p, G_UNIFORM)[12], BURN_I32)

static void set_shape(program *p, uint32_t rank, int64_t dim)
{
    burn_attrs_shape shape;
    memcpy(&shape, attrs_of(p, G_UNIFORM), sizeof(shape));
    shape.n_dims = rank;
    shape.dims[0] = dim;
    memcpy(attrs_of(p, G_UNIFORM), &shape, sizeof(shape));
}

static void generator_of_a_shape(program *p)
{
    set_shape(p, 1, 6);
}

static void generator_of_hidden_dims(program *p)
{
    set_shape(p, 0, 6);
}

static const breaker generator_breakers[] = {
    ROW_OF(generator_of_rows, "step 0 (random_uniform): gives one element per position, not row"),
    ROW_OF(generator_takes_a_row, "step 1 (dropout): operand 0 is row; it must be full"),
    ROW_OF(generator_takes_one, "no input is full"),
    ROW_OF(seed_is_a_tensor, "step 0 (random_uniform): operand seed must be a scalar"),
    ROW_OF(generator_dtype, "step 0: random_uniform: cannot make a tensor of dtype i32"),
    ROW_OF(generator_of_a_shape, "step 0 (random_uniform): has a shape of its own, rank 1"),
    ROW_OF(generator_of_hidden_dims, "step 0 (random_uniform): has a shape of its own, rank 0"),
};

static void check__generators_have_no_shape_and_no_smaller_operands(void **state)
{
    (void)state;
    static program p;
    good_generators(&p);
    assert_int_equal(burn_fused_check(p.at.bytes, p.size, NULL), BURN_OK);
    check_breakers(generator_breakers, sizeof(generator_breakers) / sizeof(breaker),
                   good_generators);
}

/* ---- columns --------------------------------------------------------------------------------- */

enum { C_X, C_LENGTH, C_N_IN };
enum { C_ABS, C_SUM, C_NEG };

/* |x|, its sum over the rows, and -|x|. */
static void good_columns(program *p)
{
    static burni_fused_builder b; /* large */
    burn_attrs_axes axes;
    burni_fused_axes(&axes, COLUMN, 0);
    burni_fused_begin(&b);
    uint16_t x = burni_fused_add_input(&b, BURN_F32, FULL, 0);
    burni_fused_set_row_input(&b, burni_fused_add_input(&b, BURN_I64, ONE, 1));
    uint16_t y = unary(&b, BURN_OP_ABS, BURN_F32, FULL, x, NULL, 0);
    (void)burni_fused_add_output(
        &b, unary(&b, BURN_OP_SUM, BURN_F32, COLUMN, y, &axes, sizeof(axes)));
    (void)burni_fused_add_output(&b, unary(&b, BURN_OP_NEG, BURN_F32, FULL, y, NULL, 0));
    memset(p, 0xee, sizeof(*p));
    p->size = burni_fused_finish(&b, p->at.bytes, sizeof(p->at.bytes));
    assert_int_equal(p->at.head.head.revision, BURN_FUSED_VERSION_COLUMN);
}

SET(column_of_version_2, p->at.head.head.revision, 2)
SET(column_of_a_map, step(p, C_NEG)->space, COLUMN)
SET(column_with_axes_of_a_row, step(p, C_SUM)->space, ROW)
SET(column_is_read, step(p, C_NEG)->args[0], C_N_IN + C_SUM)
SET(column_is_an_input, input(p, C_X)->space, COLUMN)
SET(column_is_kept, *output(p, 0), C_N_IN + C_ABS)

static void column_without_length(program *p)
{
    p->at.head.row_input = NONE;
}

static const breaker column_breakers[] = {
    ROW_OF(column_of_version_2, "step 1 (sum): per column", "in version 3"),
    ROW_OF(column_of_a_map, "step 2 (neg): per column, which only a reduction gives"),
    ROW_OF(column_with_axes_of_a_row, "step 1 (sum): reduces other axes than a row", "axes {1}"),
    ROW_OF(column_is_read, "step 2 (neg): operand", "per column", "only be given out"),
    ROW_OF(column_is_an_input, "input 0 has space 4"),
    ROW_OF(column_is_kept, "step 1 is per column and not given out"),
    ROW_OF(column_without_length, "step 1 (sum): per column, but no input is the length"),
};

static void check__columns_are_given_out_and_read_by_nobody(void **state)
{
    (void)state;
    static program p;
    char text[256];
    good_columns(&p);
    assert_int_equal(burn_fused_check(p.at.bytes, p.size, NULL), BURN_OK);
    check_breakers(column_breakers, sizeof(column_breakers) / sizeof(breaker), good_columns);
    good_columns(&p);
    (void)burn_fused_text(&p.at.head, text, sizeof(text));
    assert_non_null(strstr(text, "v3 f32 column = sum v2\n"));
}

static void check__bytes_that_are_not_aligned(void **state)
{
    (void)state;
    static program p;
    burn_err err = BURN_ERR_INIT;
    good(&p);
    memmove(p.at.bytes + 4, p.at.bytes, p.size);
    assert_int_equal(burn_fused_check(p.at.bytes + 4, p.size, &err), BURN_E_FORMAT);
    assert_non_null(strstr(err.text, "multiple of 8"));
    assert_int_equal(burn_fused_check(NULL, 0, &err), BURN_E_FORMAT);
    assert_int_equal(burn_fused_check(NULL, 0, NULL), BURN_E_FORMAT);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char wanted_text[] =
    "in0 f32, in1 f32, in2 i64 by value, the length of a row, in3 f32 by value, in4 f32 row\n"
    "v5 f32 = mul in0, in1\n"
    "v6 f32 row = sum v5\n"
    "v7 f32 = sub v5, v6\n"
    "v8 f32 row = clamp in4, -, in3\n"
    "v9 f16 = cast v7\n"
    "v10 f32 row = mean v7\n"
    "out v9, v10, v8\n";

static void text__one_line_per_step(void **state)
{
    (void)state;
    static program p;
    char text[sizeof(wanted_text) + 8];
    good(&p);
    assert_int_equal(burn_fused_text(&p.at.head, text, sizeof(text)), sizeof(wanted_text) - 1);
    assert_string_equal(text, wanted_text);
    char cut_text[20];
    assert_int_equal(burn_fused_text(&p.at.head, cut_text, sizeof(cut_text)),
                     sizeof(wanted_text) - 1);
    assert_int_equal(strlen(cut_text), sizeof(cut_text) - 1);
    assert_memory_equal(cut_text, wanted_text, sizeof(cut_text) - 1);
}

static void text__a_product(void **state)
{
    (void)state;
    static program p;
    char text[256];
    good_product(&p);
    (void)burn_fused_text(&p.at.head, text, sizeof(text));
    assert_string_equal(text, "in0 f32 whole, in1 f32 whole, in2 f32 whole, in3 f32\n"
                              "v4 f32 = linear in0, in1, in2\n"
                              "v5 f32 = relu v4\n"
                              "v6 f32 = add v5, in3\n"
                              "out v6\n");
}

/* ---- the builder ----------------------------------------------------------------------------- */

static void builder__attributes_are_shared_and_values_numbered(void **state)
{
    (void)state;
    static program p;
    good(&p);
    assert_int_equal(p.at.head.n_in, N_IN);
    assert_int_equal(p.at.head.n_steps, N_STEPS);
    assert_int_equal(p.at.head.n_out, 3);
    assert_int_equal(step(&p, S_SUM)->attrs_offset, step(&p, S_MEAN)->attrs_offset);
    assert_int_equal(p.size, 56 + 6 * 24 + sizeof(burn_attrs_axes) + sizeof(burn_attrs_cast));
    assert_int_equal(step(&p, S_SUB)->args[0], N_IN + S_MUL);
    assert_int_equal(step(&p, S_CLAMP)->args[1], NONE);
    assert_int_equal(*output(&p, 0), N_IN + S_CAST);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(p.at.bytes[p.size + i], 0xee); /* nothing is written behind it */
    }
}

static void builder__an_output_is_given_once(void **state)
{
    (void)state;
    static burni_fused_builder b;
    burni_fused_begin(&b);
    uint16_t x = burni_fused_add_input(&b, BURN_F32, FULL, 0);
    uint16_t y = unary(&b, BURN_OP_NEG, BURN_F32, FULL, x, NULL, 0);
    uint16_t z = unary(&b, BURN_OP_NEG, BURN_F32, FULL, y, NULL, 0);
    assert_int_equal(burni_fused_add_output(&b, z), 0);
    assert_int_equal(burni_fused_add_output(&b, y), 1);
    assert_int_equal(burni_fused_add_output(&b, z), 0);
    assert_int_equal(b.n_out, 2);
}

static void builder__says_when_there_is_no_room(void **state)
{
    (void)state;
    static burni_fused_builder b;
    static program p;
    uint16_t x = 0;
    burni_fused_begin(&b);
    for (uint32_t i = 0; i < BURN_MAX_OPERANDS; i++) {
        x = burni_fused_add_input(&b, BURN_F32, FULL, 0);
        assert_int_equal(x, i);
    }
    assert_int_equal(burni_fused_add_input(&b, BURN_F32, FULL, 0), NONE);
    assert_int_equal(burni_fused_finish(&b, p.at.bytes, sizeof(p.at.bytes)), 0);
    burni_fused_begin(&b);
    x = burni_fused_add_input(&b, BURN_F32, FULL, 0);
    for (uint32_t s = 0; s < BURN_FUSED_MAX_STEPS; s++) {
        x = unary(&b, BURN_OP_NEG, BURN_F32, FULL, x, NULL, 0);
        assert_int_equal(x, BURNI_FUSED_STEP | s);
    }
    (void)burni_fused_add_output(&b, x);
    uint32_t size = burni_fused_size(&b);
    assert_int_equal(burni_fused_finish(&b, p.at.bytes, size - 1), 0);
    assert_int_equal(burni_fused_finish(&b, p.at.bytes, size), size);
    assert_int_equal(burn_fused_check(p.at.bytes, size, NULL), BURN_OK);
    assert_int_equal(unary(&b, BURN_OP_NEG, BURN_F32, FULL, x, NULL, 0), NONE);
    assert_int_equal(burni_fused_finish(&b, p.at.bytes, sizeof(p.at.bytes)), 0);
}

/* Casts to all dtypes in turn: their attributes differ, so that bytes run out before steps do. */
static void builder__no_program_has_more_bytes_than_may_be(void **state)
{
    (void)state;
    static burni_fused_builder b;
    static program p;
    burn_attrs_axes axes;
    burni_fused_begin(&b);
    uint16_t x = burni_fused_add_input(&b, BURN_F32, FULL, 0);
    burni_fused_set_row_input(&b, burni_fused_add_input(&b, BURN_I64, ONE, 1));
    uint32_t n = 0;
    uint32_t size = 0;
    for (uint16_t v = 0; v != NONE && n < BURN_FUSED_MAX_STEPS; n++) {
        size = burni_fused_size(&b);
        burni_fused_axes(&axes, ROW, (int64_t)n);
        v = unary(&b, BURN_OP_SUM, BURN_F32, ROW, x, &axes, sizeof(axes));
    }
    assert_true(n < BURN_FUSED_MAX_STEPS);
    assert_true(size <= BURN_FUSED_MAX_BYTES && size + 112 > BURN_FUSED_MAX_BYTES - 8);
    assert_int_equal(burni_fused_finish(&b, p.at.bytes, sizeof(p.at.bytes)), 0);
}

/* A program that was read, built again value by value, has the same bytes. */
static void builder__a_round_trip_gives_the_same_bytes(void **state)
{
    (void)state;
    static burni_fused_builder b;
    static program p;
    static program q;
    good(&p);
    burni_fused_begin(&b);
    for (uint32_t i = 0; i < N_IN; i++) {
        const burn_fused_input *in = input(&p, i);
        (void)burni_fused_add_input(&b, in->dtype, in->space, in->immediate);
    }
    burni_fused_set_row_input(&b, p.at.head.row_input);
    for (uint32_t s = 0; s < N_STEPS; s++) {
        const burn_fused_step *from = step(&p, s);
        uint16_t args[BURN_FUSED_MAX_ARGS];
        for (uint32_t i = 0; i < BURN_FUSED_MAX_ARGS; i++) {
            int is_step = from->args[i] != NONE && from->args[i] >= N_IN;
            args[i] = is_step ? (uint16_t)(BURNI_FUSED_STEP + from->args[i] - N_IN) : from->args[i];
        }
        (void)burni_fused_add_step(&b, from->op, from->dtype, from->space, args, from->n_args,
                                   attrs_of(&p, s), from->attrs_size);
    }
    for (uint32_t j = 0; j < p.at.head.n_out; j++) {
        (void)burni_fused_add_output(&b, (uint16_t)(BURNI_FUSED_STEP + *output(&p, j) - N_IN));
    }
    memset(&q, 0, sizeof(q));
    q.size = burni_fused_finish(&b, q.at.bytes, sizeof(q.at.bytes));
    assert_int_equal(q.size, p.size);
    assert_memory_equal(q.at.bytes, p.at.bytes, p.size);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* What the samples lay out by themselves, the check takes or refuses as they say. */
static void samples__are_programs(void **state)
{
    (void)state;
    const burn_op_def *def = burn_op_find("fused");
    uint32_t n_good = 0;
    static burn_sample s; /* large */
    assert_non_null(def);
    for (uint32_t i = 0; def->samples(i, &s) == BURN_OK; i++) {
        burn_err err = BURN_ERR_INIT;
        int32_t code = burn_fused_check(s.attrs, s.attrs_size, &err);
        int bad = (s.flags & BURN_SAMPLE_ERROR) != 0 && s.error == BURN_E_FORMAT;
        if ((code == BURN_OK) == bad) {
            print_error("%s: %d, %s\n", s.name, (int)code, err.text);
        }
        assert_int_equal(code, bad ? BURN_E_FORMAT : BURN_OK);
        n_good += code == BURN_OK;
    }
    assert_true(n_good >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__each_rule_broken_once),
        cmocka_unit_test(check__generators_have_no_shape_and_no_smaller_operands),
        cmocka_unit_test(check__columns_are_given_out_and_read_by_nobody),
        cmocka_unit_test(check__bytes_that_are_not_aligned),
        cmocka_unit_test(text__one_line_per_step),
        cmocka_unit_test(text__a_product),
        cmocka_unit_test(builder__attributes_are_shared_and_values_numbered),
        cmocka_unit_test(builder__an_output_is_given_once),
        cmocka_unit_test(builder__says_when_there_is_no_room),
        cmocka_unit_test(builder__no_program_has_more_bytes_than_may_be),
        cmocka_unit_test(builder__a_round_trip_gives_the_same_bytes),
        cmocka_unit_test(samples__are_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
