/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_lines.c - steps over lines of fused programs have the bits of their ops' own rows.
 *
 * Each op is put between chains of maps, with lines of all sorts of lengths, several in a program,
 * beside reductions, in place, on far memory and with any number of threads; the rig runs the ops
 * one by one and compares. To add an op: a row of `ops`.
 */
#include "fused_rig.h"

#include <string.h>

enum { NONE = BURN_FUSED_NONE };

typedef struct shape {
    int64_t n_rows;
    int64_t length;
} shape;

typedef struct line_op {
    uint64_t op;
    uint8_t n_full;
    uint8_t n_lines;
} line_op;

static const line_op ops[] = {
    {BURN_OP_SOFTMAX, 1, 0},      {BURN_OP_LOG_SOFTMAX, 1, 0},      {BURN_OP_LAYER_NORM, 1, 2},
    {BURN_OP_SOFTMAX_GRAD, 2, 0}, {BURN_OP_LOG_SOFTMAX_GRAD, 2, 0},
};

static const shape shapes[] = {{24, 5}, {300, 1},  {16, 31},  {9, 33},   {130, 64}, {6, 1000},
                               {2, 4096}, {3, 8192}, {5, 1025}, {1, 2500}, {40, 256}};

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t pick(uint32_t n)
{
    return (uint32_t)next_random(0.0, (double)n) % n;
}

static int is_half(uint8_t dtype)
{
    return dtype == BURN_F16 || dtype == BURN_BF16;
}

/* x and y as maps leave them. */
static uint16_t some_maps(rig *r, uint16_t x, uint16_t y, uint32_t n)
{
    static const uint64_t unary[] = {BURN_OP_NEG, BURN_OP_ABS, BURN_OP_TANH, BURN_OP_SIGMOID};
    static const uint64_t binary[] = {BURN_OP_ADD, BURN_OP_SUB, BURN_OP_MUL, BURN_OP_MAXIMUM};
    uint8_t dtype = r->values[x].dtype;
    for (uint32_t k = 0; k < n; k++) {
        const uint16_t args[2] = {x, y};
        int two = pick(3) != 0;
        uint64_t op = two ? binary[pick(COUNT(binary))] : unary[pick(COUNT(unary))];
        x = rig_step(r, op, dtype, args, two ? 2 : 1, NULL, 0);
    }
    return x;
}

static uint16_t over_lines(rig *r, const line_op *op, uint16_t x, uint16_t y, const uint16_t *line)
{
    uint16_t others[2] = {NONE, NONE};
    for (uint32_t k = 0; k < op->n_lines; k++) {
        others[k] = pick(3) != 0 ? line[k] : NONE;
    }
    others[0] = op->n_full > 1 ? y : others[0];
    return rig_lines(r, op->op, x, others);
}

/* Maps, lines, maps, and by chance a reduction and lines again. Returns whether it ran. */
static int check_one(const line_op *op, uint8_t dtype, const shape *s, int in_place)
{
    rig r;
    rig_begin(&r, s->n_rows, s->length);
    uint16_t x = rig_input(&r, dtype, BURN_FUSED_FULL, RIG_DENSE);
    uint16_t y = rig_input(&r, dtype, BURN_FUSED_FULL, in_place ? RIG_DENSE : RIG_LINE);
    uint16_t line[2] = {NONE, NONE};
    for (uint32_t k = 0; k < 2 && op->n_lines > 0 && !is_half(dtype); k++) {
        line[k] = rig_input(&r, dtype, BURN_FUSED_WHOLE, RIG_DENSE);
    }
    uint16_t first = x;
    uint16_t other = pick(2) == 0 && op->n_full > 1 ? some_maps(&r, y, first, 1) : y;
    other = r.values[other].layout != RIG_DENSE ? some_maps(&r, y, first, 1) : other;
    x = over_lines(&r, op, some_maps(&r, x, y, pick(3)), other, line);
    x = some_maps(&r, x, first, pick(3));
    if (pick(3) == 0) {
        uint16_t best = rig_fold(&r, pick(2) ? BURN_OP_MAX : BURN_OP_SUM, x);
        x = some_maps(&r, over_lines(&r, op, x, other, line), best, 1);
    }
    rig_outputs(&r, in_place ? 0 : pick(3));
    r.in_place = in_place ? 1 : NONE; /* behind the length */
    int ran = rig_check(&r);
    rig_end(&r);
    return ran;
}

static void check_all(const shape *at, uint32_t n_shapes, uint32_t rounds, int in_place)
{
    static const uint8_t floats[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16};
    uint32_t ran = 0;
    for (uint32_t k = 0; k < rounds; k++) {
        ran += (uint32_t)check_one(&ops[k % COUNT(ops)], floats[pick(in_place ? 2 : 4)],
                                   &at[k % n_shapes], in_place);
    }
    if (ran < rounds * 9 / 10) {
        fail_msg("%u of %u programs ran", ran, rounds);
    }
}

static void lines_between_maps__equal_their_ops(void **state)
{
    (void)state;
    check_all(shapes, COUNT(shapes), 60 * COUNT(shapes), 0);
}

/* The result takes the memory of the first operand, which the op may read after it wrote. */
static void lines_in_place__equal_their_ops(void **state)
{
    (void)state;
    check_all(shapes, COUNT(shapes), 20 * COUNT(shapes), 1);
}

static void many_lines__equal_their_ops_with_any_threads(void **state)
{
    (void)state;
    static const shape large[] = {{3000, 64}, {700, 301}, {40, 8000}, {20001, 5}};
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        fixture_threads(threads);
        check_all(large, COUNT(large), 10 * COUNT(large), 0);
    }
}

/* Results that no cache holds go past them, and kernels have a way of their own for that. */
static void far_lines__equal_their_ops(void **state)
{
    (void)state;
    static const shape far[] = {{1 << 15, 256}, {4000, 2048}};
    for (uint32_t k = 0; k < COUNT(ops); k++) {
        assert_int_equal(check_one(&ops[k], BURN_F32, &far[k % COUNT(far)], 0), 1);
    }
}

/* One number of all positions: in tiles, in runs and in parts, as the row alone goes. */
static void losses__equal_their_ops(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 100, 4095, 4096, 4097, 9000, 131072, 270001};
    static const uint8_t floats[] = {BURN_F32, BURN_F64, BURN_F16, BURN_BF16};
    for (uint32_t k = 0; k < 2 * COUNT(lengths) * COUNT(floats); k++) {
        rig r;
        burn_attrs_loss a;
        memset(&a, 0, sizeof(a));
        a.head.size = (uint32_t)sizeof(a);
        a.head.revision = 1;
        a.reduction = k % 2 == 0 ? BURN_REDUCTION_MEAN : BURN_REDUCTION_SUM;
        uint8_t dtype = floats[k / 2 % COUNT(floats)];
        rig_begin(&r, 1, lengths[k / 2 / COUNT(floats)]);
        fixture_threads(1 + k % 3);
        uint16_t x = rig_input(&r, dtype, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t y = rig_input(&r, dtype, BURN_FUSED_FULL, RIG_DENSE);
        x = some_maps(&r, x, y, 1 + pick(3));
        const uint16_t args[2] = {k % 5 == 0 ? y : x, k % 5 == 0 ? x : y};
        (void)rig_step(&r, BURN_OP_MSE_LOSS, dtype, args, 2, &a, sizeof(a));
        rig_outputs(&r, k % 2);
        assert_int_equal(rig_check(&r), 1);
        rig_end(&r);
    }
}

/* No task has so much room: the program is refused before anything is written. */
static void lines_that_are_too_long__are_refused(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 2, 80000);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    x = rig_step(&r, BURN_OP_NEG, BURN_F32, &x, 1, NULL, 0);
    x = rig_lines(&r, BURN_OP_SOFTMAX, x, (const uint16_t[]){NONE, NONE});
    (void)rig_step(&r, BURN_OP_NEG, BURN_F32, &x, 1, NULL, 0);
    rig_outputs(&r, 0);
    r.in_place = 1;
    double before = get(&r.values[1].operand, 79999);
    assert_int_equal(rig_run(&r, 0), BURN_E_UNSUPPORTED);
    assert_non_null(strstr(fixture_error.text, "lines of 80000 elements"));
    assert_true(get(&r.values[1].operand, 79999) == before || before != before);
    rig_end(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_between_maps__equal_their_ops),
        cmocka_unit_test(lines_in_place__equal_their_ops),
        cmocka_unit_test(many_lines__equal_their_ops_with_any_threads),
        cmocka_unit_test(far_lines__equal_their_ops),
        cmocka_unit_test(losses__equal_their_ops),
        cmocka_unit_test(lines_that_are_too_long__are_refused),
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
