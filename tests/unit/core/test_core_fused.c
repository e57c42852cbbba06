/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_fused.c - calls of the op `fused` as any other: values, several outputs, programs that
 * are longer than other ops' attributes, gradients, captures; and what a call of it must not be.
 *
 * The programs are built here; what groups of ops the core puts together by itself is tested
 * elsewhere. To add a test: a program, its operands, a row in the array.
 */
#include "core_test.h"

#include "graph/fused.h"

#include <burn/build.h>
#include <string.h>

#define FULL BURN_FUSED_FULL
#define ROW  BURN_FUSED_ROW
#define ONE  BURN_FUSED_ONE

static burni_fused_builder builder; /* large */
static uint64_t bytes[BURN_FUSED_MAX_BYTES / sizeof(uint64_t)];

static uint16_t add1(uint64_t op, uint8_t space, uint16_t x)
{
    burn_attrs_axes axes;
    burni_fused_axes(&axes, ROW, 0);
    int reduces = space == ROW;
    return burni_fused_add_step(&builder, op, BURN_F32, space, &x, 1, reduces ? &axes : NULL,
                                reduces ? (uint32_t)sizeof(axes) : 0);
}

static uint16_t add2(uint64_t op, uint8_t space, uint16_t x, uint16_t y)
{
    const uint16_t args[2] = {x, y};
    return burni_fused_add_step(&builder, op, BURN_F32, space, args, 2, NULL, 0);
}

static uint32_t finish(void)
{
    uint32_t size = burni_fused_finish(&builder, bytes, (uint32_t)sizeof(bytes));
    burn_err err = BURN_ERR_INIT;
    if (burn_fused_check(bytes, size, &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    return size;
}

/* x - its row's sum, and that sum: inputs x and the length of a row. */
static uint32_t rest_and_sum(void)
{
    burni_fused_begin(&builder);
    uint16_t x = burni_fused_add_input(&builder, BURN_F32, FULL, 0);
    burni_fused_set_row_input(&builder, burni_fused_add_input(&builder, BURN_I64, ONE, 1));
    uint16_t sum = add1(BURN_OP_SUM, ROW, x);
    (void)burni_fused_add_output(&builder, add2(BURN_OP_SUB, FULL, x, sum));
    (void)burni_fused_add_output(&builder, sum);
    return finish();
}

static int32_t call(uint32_t size, burn_tensor **in, uint32_t n_in, burn_tensor **out,
                    uint32_t n_out)
{
    return burn_op_call(dev, BURN_OP_FUSED, bytes, size, in, n_in, out, n_out);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void fused__two_outputs_of_two_shapes(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_tensor *in[2] = {mat(2, 3, (const float[]){1, 2, 3, 10, 20, 30}), burn_scalar_int(3)};
    burn_tensor *out[2] = {NULL, NULL};
    assert_int_equal(call(size, in, 2, out, 2), BURN_OK);
    check_shape(out[0], 2, DIMS(2, 3));
    check_shape(out[1], 1, DIMS(2));
    CHECK(out[0], -5, -4, -3, -50, -40, -30);
    CHECK(out[1], 6, 60);
}

/* The same program on rows that are no dim, and on a turned view. */
static void fused__rows_follow_their_length_not_the_dims(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_tensor *in[2] = {mat(2, 3, (const float[]){1, 2, 3, 10, 20, 30}), burn_scalar_int(2)};
    burn_tensor *out[2] = {NULL, NULL};
    assert_int_equal(call(size, in, 2, out, 2), BURN_OK);
    CHECK(out[1], 3, 13, 50);
    in[0] = burn_transpose(in[0], 0, 1); /* 1 10, 2 20, 3 30 */
    assert_int_equal(call(size, in, 2, out, 2), BURN_OK);
    check_shape(out[1], 1, DIMS(3));
    CHECK(out[1], 11, 22, 33);
    CHECK(out[0], -10, -1, -20, -2, -30, -3);
}

static void fused__a_program_of_64_steps(void **state)
{
    (void)state;
    burni_fused_begin(&builder);
    uint16_t x = burni_fused_add_input(&builder, BURN_F32, FULL, 0);
    uint16_t v = x;
    for (uint32_t s = 0; s < BURN_FUSED_MAX_STEPS; s++) {
        v = add2(BURN_OP_ADD, FULL, v, x);
        if (s % 16 == 15) {
            (void)burni_fused_add_output(&builder, v);
        }
    }
    uint32_t size = finish();
    assert_true(size > BURN_MAX_ATTRS);
    burn_tensor *in[1] = {VEC(1, -2, 0.5F)};
    burn_tensor *out[4] = {NULL, NULL, NULL, NULL};
    assert_int_equal(call(size, in, 1, out, 4), BURN_OK);
    CHECK(out[0], 17, -34, 8.5);
    CHECK(out[3], 65, -130, 32.5);
}

/* ---- as other ops ---------------------------------------------------------------------------- */

static void fused__its_gradient_is_that_of_its_steps(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_tensor *x = burn_require_grad(ad, mat(2, 3, (const float[]){1, 2, 3, 10, 20, 30}));
    burn_tensor *in[2] = {x, burn_scalar_int(3)};
    burn_tensor *out[2] = {NULL, NULL};
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burn_op_call(ad, BURN_OP_FUSED, bytes, size, in, 2, out, 2), BURN_OK);
    burn_tensor *loss = burn_sum(burn_mul(out[0], out[0]), 0, NULL, 0);
    burn_grads *grads = burn_backward(loss, NULL, 0, &err);
    assert_non_null(grads);
    /* d/dx of sum (x - s)^2 per row: 2 (x - s) - 2 sum (x - s) */
    CHECK_NEAR(burn_grads_get(grads, x), 1e-6, 14, 16, 18, 140, 160, 180);
    burn_grads_free(grads);
}

static void fused__a_capture_holds_its_program(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    uint32_t size = rest_and_sum();
    assert_int_equal(burn_capture_begin(NULL), BURN_OK);
    burn_tensor *x = burn_capture_input(mat(2, 3, (const float[]){1, 2, 3, 4, 5, 6}), "x");
    burn_tensor *in[2] = {x, burn_scalar_int(3)};
    burn_tensor *out[2] = {NULL, NULL};
    assert_int_equal(call(size, in, 2, out, 2), BURN_OK);
    burn_graph *graph = burn_capture_end(out, 2, NULL, &err);
    if (graph == NULL) {
        fail_msg("%s", err.text);
    }
    burn_tensor *other = mat(2, 3, (const float[]){1, 1, 1, 2, 2, 2});
    assert_int_equal(burn_graph_run(graph, dev, &other, 1, NULL, NULL, out, 2, &err), BURN_OK);
    CHECK(out[0], -2, -2, -2, -4, -4, -4);
    CHECK(out[1], 3, 6);
    burn_graph_free(graph);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void fused__counts_are_those_of_the_program(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_tensor *in[3] = {VEC(1, 2, 3), burn_scalar_int(3), VEC(1, 2, 3)};
    burn_tensor *out[3] = {NULL, NULL, NULL};
    assert_int_equal(call(size, in, 1, out, 2), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "1 operands given, the program has 2 inputs", NULL);
    assert_int_equal(call(size, in, 3, out, 2), BURN_E_INVALID);
    assert_int_equal(call(size, in, 2, out, 1), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "room for 1 outputs, the program has 2", NULL);
    assert_int_equal(call(size, in, 2, out, 3), BURN_E_INVALID);
    assert_int_equal(call(size, in, 2, out, 0), BURN_E_INVALID);
}

static void fused__operands_are_those_of_the_program(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_tensor *in[2] = {VEC(1, 2, 3), burn_scalar_int(2)};
    burn_tensor *out[2] = {NULL, NULL};
    (void)call(size, in, 2, out, 2);
    check_failed(out[0], BURN_E_SHAPE, "shape [3]", "rows of 2", NULL);
    in[1] = burn_scalar_int(0);
    (void)call(size, in, 2, out, 2);
    check_failed(out[0], BURN_E_SHAPE, "rows of 0", NULL);
    in[1] = burn_scalar_int(-3);
    (void)call(size, in, 2, out, 2);
    check_failed(out[0], BURN_E_SHAPE, "rows of -3", NULL);
    in[1] = index_vec(1, (const int64_t[]){3});
    (void)call(size, in, 2, out, 2);
    check_failed(out[0], BURN_E_INVALID, "operand 1 is a tensor, the program takes a scalar", NULL);
    in[0] = index_vec(3, (const int64_t[]){1, 2, 3});
    in[1] = burn_scalar_int(3);
    (void)call(size, in, 2, out, 2);
    check_failed(out[0], BURN_E_DTYPE, "operand 0 is i64, the program takes f32", NULL);
}

static void fused__a_bad_program_is_told_with_its_step(void **state)
{
    (void)state;
    uint32_t size = rest_and_sum();
    burn_fused_program *p = (burn_fused_program *)(void *)bytes;
    ((burn_fused_step *)(uintptr_t)burn_fused_steps(p))[1].args[1] = 9;
    burn_tensor *in[2] = {VEC(1, 2, 3), burn_scalar_int(3)};
    burn_tensor *out[2] = {NULL, NULL};
    assert_int_equal(call(size, in, 2, out, 2), BURN_E_FORMAT);
    check_failed(out[1], BURN_E_FORMAT, "step 1 (sub): operand y is value 9", NULL);
    assert_int_equal(call(8, in, 2, out, 2), BURN_E_INVALID);
}

/* Programs may be long; the attributes of other ops have the limit that they had. */
static void attributes__of_other_ops_have_256_bytes(void **state)
{
    (void)state;
    burn_tensor *in[2] = {VEC(1, 2, 3), VEC(1, 2, 3)};
    burn_tensor *out[1] = {NULL};
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(burn_op_call(dev, BURN_OP_SUM, bytes, 264, in, 1, out, 1), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "264 bytes of attributes", NULL);
    assert_int_equal(call(BURN_FUSED_MAX_BYTES + 8, in, 2, out, 1), BURN_E_INVALID);
    check_failed(out[0], BURN_E_INVALID, "4104 bytes of attributes", NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(fused__two_outputs_of_two_shapes),
        CORE_TEST(fused__rows_follow_their_length_not_the_dims),
        CORE_TEST(fused__a_program_of_64_steps),
        CORE_TEST(fused__its_gradient_is_that_of_its_steps),
        CORE_TEST(fused__a_capture_holds_its_program),
        CORE_TEST(fused__counts_are_those_of_the_program),
        CORE_TEST(fused__operands_are_those_of_the_program),
        CORE_TEST(fused__a_bad_program_is_told_with_its_step),
        CORE_TEST(attributes__of_other_ops_have_256_bytes),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
