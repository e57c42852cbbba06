/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_flex_fused.c - fused programs have, to the last bit, the results of their ops one by one.
 *
 * Programs are made at random from the rows of the backend: ops, dtypes, spaces, layouts, shapes.
 * Each op then runs as its own row on dense tensors, and every output of the program is compared.
 * NaNs are equal to one another: which of two NaNs an addition keeps is not defined. Shapes cover
 * tails, short rows, rows of one tile, rows in passes and in parts; threads, in-place results and
 * faults have tests of their own.
 */
#include "fused_rig.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t dtypes[] = {BURN_BOOL, BURN_U8,  BURN_I8,  BURN_U16,  BURN_I16,
                                 BURN_U32,  BURN_I32, BURN_U64, BURN_I64,  BURN_F16,
                                 BURN_BF16, BURN_F32, BURN_F64};

static uint32_t pick(uint32_t n)
{
    return (uint32_t)next_random(0.0, (double)n) % n;
}

/* ---- programs at random ---------------------------------------------------------------------- */

static uint8_t pick_dtype(void)
{
    return pick(2) == 0 ? (uint8_t)BURN_F32 : dtypes[pick((uint32_t)sizeof(dtypes))];
}

static void add_random_input(rig *r, uint8_t dtype)
{
    uint32_t kind = pick(8);
    if (kind == 0) {
        rig_immediate(r, dtype, (double)pick(5) - 1.0);
    } else if (kind == 1) {
        rig_input(r, dtype, BURN_FUSED_ONE, RIG_DENSE);
    } else if (kind == 2 && r->length > 0) {
        rig_input(r, dtype, BURN_FUSED_ROW, (rig_layout)pick(RIG_LAYOUTS));
    } else {
        rig_input(r, dtype, BURN_FUSED_FULL, kind < 5 ? (rig_layout)pick(RIG_LAYOUTS) : RIG_DENSE);
    }
}

/* A value of that dtype, made now if there is none or by chance. */
static uint16_t value_like(rig *r, uint8_t dtype)
{
    uint16_t found = BURN_FUSED_NONE;
    uint32_t seen = 0;
    for (uint16_t v = 0; v < r->n_values; v++) {
        if (r->values[v].dtype == dtype && !r->values[v].is_length) {
            seen++;
            found = pick(seen) == 0 ? v : found;
        }
    }
    if (found == BURN_FUSED_NONE || (r->n_steps == 0 && pick(3) == 0)) {
        if (r->n_steps > 0) {
            return BURN_FUSED_NONE; /* inputs come first */
        }
        add_random_input(r, dtype);
        found = (uint16_t)(r->n_values - 1);
    }
    return found;
}

#define OP_ID(id, NAME, name) BURN_OP_##NAME,
static const uint64_t unary_ops[] = {BURN_FOREACH_UNARY_OP(OP_ID) BURN_OP_GELU};
static const uint64_t binary_ops[] = {BURN_FOREACH_BINARY_OP(OP_ID) BURN_OP_GELU_GRAD,
                                      BURN_OP_RELU_GRAD};
static const uint64_t folds[] = {BURN_OP_SUM, BURN_OP_PROD, BURN_OP_MAX, BURN_OP_MIN,
                                 BURN_OP_MEAN, BURN_OP_ANY, BURN_OP_ALL};

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int takes(uint64_t op, uint8_t dtype)
{
    const burn_row *row = rig_row(op, 0);
    return row != NULL && (row->slots[0].dtypes[0] >> dtype & 1) != 0;
}

static uint8_t result_of(uint64_t op, uint8_t dtype)
{
    const burn_row *row = rig_row(op, 0);
    const burn_slot *out = &row->slots[row->n_slots - 1];
    return out->same_dtype_as != 0 ? dtype : (uint8_t)BURN_BOOL;
}

static void add_gelu_form(rig *r, burn_attrs_gelu *a, uint64_t op, const void **attrs)
{
    (void)r;
    memset(a, 0, sizeof(*a));
    a->head.size = (uint32_t)sizeof(*a);
    a->head.revision = 1;
    a->tanh_form = pick(2);
    *attrs = op == BURN_OP_GELU || op == BURN_OP_GELU_GRAD ? a : NULL;
}

static int is_division(uint64_t op)
{
    return op == BURN_OP_DIV || op == BURN_OP_REMAINDER || op == BURN_OP_FMOD ||
           op == BURN_OP_POW;
}

static void add_elementwise(rig *r, uint16_t x)
{
    uint8_t dtype = r->values[x].dtype;
    int two = pick(2) == 0;
    uint64_t op = two ? binary_ops[pick(COUNT(binary_ops))] : unary_ops[pick(COUNT(unary_ops))];
    uint16_t args[2] = {x, BURN_FUSED_NONE};
    burn_attrs_gelu form;
    const void *attrs;
    if (!takes(op, dtype) || (is_division(op) && dtype < BURN_F16 && !r->divides)) {
        return;
    }
    if (two) {
        args[1] = value_like(r, dtype);
        if (args[1] == BURN_FUSED_NONE) {
            return;
        }
        if (pick(2) == 0) {
            args[0] = args[1];
            args[1] = x;
        }
    }
    add_gelu_form(r, &form, op, &attrs);
    rig_step(r, op, result_of(op, dtype), args, two ? 2 : 1, attrs, sizeof(form));
}

static void add_other(rig *r, uint16_t x)
{
    uint8_t dtype = r->values[x].dtype;
    uint32_t kind = pick(4);
    burn_attrs_cast cast;
    uint16_t args[3] = {x, BURN_FUSED_NONE, BURN_FUSED_NONE};
    memset(&cast, 0, sizeof(cast));
    if (kind == 0) {
        rig_step(r, BURN_OP_COPY, dtype, args, 1, NULL, 0);
    } else if (kind == 1) {
        cast.head.size = (uint32_t)sizeof(cast);
        cast.head.revision = 1;
        cast.dtype = pick_dtype();
        rig_step(r, BURN_OP_CAST, (uint8_t)cast.dtype, args, 1, &cast, sizeof(cast));
    } else if (kind == 2) {
        args[0] = value_like(r, BURN_BOOL);
        args[1] = x;
        args[2] = value_like(r, dtype);
        if (args[0] != BURN_FUSED_NONE && args[2] != BURN_FUSED_NONE) {
            rig_step(r, BURN_OP_WHERE, dtype, args, 3, NULL, 0);
        }
    } else if (dtype != BURN_BOOL) {
        for (uint16_t v = 0; v < r->n_values; v++) {
            if (r->values[v].dtype == dtype && r->values[v].is_immediate) {
                args[1 + pick(2)] = v;
            }
        }
        rig_step(r, BURN_OP_CLAMP, dtype, args, 3, NULL, 0);
    }
}

static void add_fold(rig *r, uint16_t x)
{
    uint64_t op = folds[pick(COUNT(folds))];
    burn_attrs_axes axes;
    if (r->length == 0 || r->n_folds == 8 || r->values[x].space != BURN_FUSED_FULL ||
        (r->values[x].is_input && r->values[x].layout != RIG_DENSE)) {
        return;
    }
    if (op == BURN_OP_MEAN && r->values[x].dtype == BURN_BOOL) {
        return;
    }
    memset(&axes, 0, sizeof(axes));
    axes.head.size = (uint32_t)sizeof(axes);
    axes.head.revision = 1;
    axes.n_axes = 1;
    axes.keepdims = 1;
    axes.axes[0] = 1;
    r->n_folds++;
    rig_step(r, op, result_of(op, r->values[x].dtype), &x, 1, &axes, sizeof(axes));
}

/* Scalars of the generators: two seeds, a chance. */
static void add_seeds(rig *r)
{
    r->seed = rig_immediate(r, BURN_U64, (double)pick(1000));
    r->counter = rig_immediate(r, BURN_U64, pick(2) == 0 ? 4294967290.0 : (double)pick(1000));
    r->chance = rig_immediate(r, BURN_F64, 0.1 * (double)pick(11));
}

/* Numbers of a dtype that one of the random ops takes, from x or from nothing. */
static void add_generator(rig *r, uint16_t x)
{
    static const uint64_t ops[] = {BURN_OP_RANDOM_BITS, BURN_OP_RANDOM_UNIFORM,
                                   BURN_OP_RANDOM_NORMAL, BURN_OP_BERNOULLI};
    uint8_t dtype = r->values[x].dtype;
    burn_attrs_shape shape;
    if (r->seed == BURN_FUSED_NONE) {
        return;
    }
    uint16_t drop[4] = {x, r->chance, r->seed, r->counter};
    if (pick(2) == 0 && dtype >= BURN_F16 && r->values[x].space == BURN_FUSED_FULL) {
        rig_step(r, BURN_OP_DROPOUT, dtype, drop, 4, NULL, 0);
        return;
    }
    uint64_t op = ops[pick(COUNT(ops))];
    const burn_slot *out = &rig_row(op, 0)->slots[rig_row(op, 0)->n_slots - 1u];
    dtype = op == BURN_OP_RANDOM_BITS ? (uint8_t)(pick(2) ? BURN_U32 : BURN_U64) : dtype;
    if ((out->dtypes[0] >> dtype & 1) == 0) {
        dtype = BURN_F32;
    }
    memset(&shape, 0, sizeof(shape));
    shape.head.size = (uint32_t)sizeof(shape);
    shape.head.revision = 1;
    shape.dtype = dtype;
    int takes_chance = op == BURN_OP_BERNOULLI;
    rig_step(r, op, dtype, drop + (takes_chance ? 1 : 2), takes_chance ? 3 : 2, &shape,
             sizeof(shape));
}

static void fill_random(rig *r, uint32_t n_steps)
{
    uint8_t dtype = pick_dtype();
    rig_input(r, dtype, BURN_FUSED_FULL, RIG_DENSE);
    r->seed = BURN_FUSED_NONE;
    if (pick(3) == 0) {
        add_seeds(r);
    }
    for (uint32_t k = pick(4); k > 0; k--) {
        add_random_input(r, pick(3) == 0 ? pick_dtype() : dtype);
    }
    for (uint32_t tries = 0; tries < 200 && r->n_steps < n_steps; tries++) {
        uint16_t x = pick(3) == 0 ? (uint16_t)pick(r->n_values) : (uint16_t)(r->n_values - 1);
        uint32_t kind = pick(9);
        if (r->values[x].is_length) {
            continue;
        }
        if (kind == 8) {
            add_generator(r, x);
        } else if (kind < 5) {
            add_elementwise(r, x);
        } else if (kind < 7) {
            add_other(r, x);
        } else {
            add_fold(r, x);
        }
    }
    rig_outputs(r, pick(3));
}

typedef struct shape {
    int64_t n_rows;
    int64_t length; /* 0: no rows, n_rows positions */
} shape;

static void check_programs(const shape *shapes, uint32_t n_shapes, uint32_t rounds)
{
    uint32_t ran = 0;
    for (uint32_t k = 0; k < rounds; k++) {
        const shape *s = &shapes[k % n_shapes];
        rig r;
        rig_begin(&r, s->n_rows, s->length);
        r.divides = pick(8) == 0;
        fill_random(&r, 1 + pick(12));
        if (r.n_steps > 0) {
            ran += (uint32_t)rig_check(&r);
        }
        rig_end(&r);
    }
    assert_true(ran > rounds / 2);
}

static void programs__equal_their_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{1, 0},  {7, 0},    {64, 0},    {511, 0}, {2049, 0},
                                   {24, 5}, {300, 1},  {16, 31},   {9, 33},  {6, 1000},
                                   {2, 4096}, {130, 2}, {12345, 0}, {60, 64}};
    check_programs(shapes, COUNT(shapes), 1400);
}

static void programs_of_long_rows__equal_their_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{3, 4097}, {2, 9000}, {1, 140000}, {1, 270001}};
    check_programs(shapes, COUNT(shapes), 120);
}

static void large_programs__equal_their_ops_with_any_threads(void **state)
{
    (void)state;
    static const shape shapes[] = {{70001, 0}, {150, 700}, {2000, 40}, {9, 20000}};
    static const uint32_t threads[] = {1, 2, 4};
    for (uint32_t k = 0; k < COUNT(threads); k++) {
        fixture_threads(threads[k]);
        check_programs(shapes, COUNT(shapes), 60);
    }
}

static const uint64_t plain_unary[] = {BURN_OP_NEG,  BURN_OP_ABS,   BURN_OP_RELU,
                                       BURN_OP_SQRT, BURN_OP_RSQRT, BURN_OP_RECIP};
static const uint64_t plain_binary[] = {BURN_OP_ADD,     BURN_OP_SUB,     BURN_OP_MUL,
                                        BURN_OP_DIV,     BURN_OP_MAXIMUM, BURN_OP_MINIMUM,
                                        BURN_OP_RELU_GRAD};

/* Each step takes the result of the one before it, on either side or on both. */
static void fill_chain(rig *r, uint32_t n_steps)
{
    uint16_t x = rig_input(r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    rig_input(r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    rig_input(r, BURN_F32, BURN_FUSED_FULL, (rig_layout)pick(RIG_LAYOUTS));
    rig_input(r, BURN_F32, BURN_FUSED_ONE, RIG_DENSE);
    rig_immediate(r, BURN_F32, 1.5);
    if (r->length > 0) {
        rig_input(r, BURN_F32, BURN_FUSED_ROW, RIG_DENSE);
    }
    for (uint32_t k = 0; k < n_steps; k++) {
        uint16_t args[2] = {x, (uint16_t)pick(r->n_values)};
        uint64_t op = plain_unary[pick(COUNT(plain_unary))];
        int two = pick(3) != 0 && !r->values[args[1]].is_length;
        if (two) {
            op = plain_binary[pick(COUNT(plain_binary))];
        }
        if (two && pick(2) == 0) {
            args[0] = args[1];
            args[1] = x;
        }
        x = rig_step(r, op, BURN_F32, args, two ? 2 : 1, NULL, 0);
    }
    rig_outputs(r, pick(3));
}

/* Blocks of all sizes that there are, one element less and one more. */
static void chains_of_plain_ops__equal_their_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{1, 0},    {31, 0},   {32, 0},    {63, 0},   {65, 0},
                                   {127, 0},  {128, 0},  {129, 0},   {1000, 0}, {1024, 0},
                                   {1025, 0}, {4099, 0}, {70001, 0}, {9, 33},   {12, 128},
                                   {7, 129},  {5, 1000}, {3, 4097},  {40, 7},   {2, 70000}};
    uint32_t ran = 0;
    for (uint32_t k = 0; k < 40 * COUNT(shapes); k++) {
        const shape *s = &shapes[k % COUNT(shapes)];
        rig r;
        rig_begin(&r, s->n_rows, s->length);
        fill_chain(&r, 2 + pick(k % 8 == 0 ? 50 : 12));
        if (pick(2) == 0) {
            r.in_place = s->length > 0; /* x, behind the length */
        }
        ran += (uint32_t)rig_check(&r);
        rig_end(&r);
    }
    assert_true(ran > 36 * COUNT(shapes));
}

/* ---- columns --------------------------------------------------------------------------------- */

static const uint64_t column_ops[] = {BURN_OP_SUM, BURN_OP_MAX, BURN_OP_MEAN, BURN_OP_MIN};

/* What an activation and a bias give back: the value itself, and some reductions over its rows.
 * With `by_rows` a sum of each row as well, which goes back in. */
static void check_columns(const shape *s, uint32_t n_columns, int by_rows)
{
    rig r;
    rig_begin(&r, s->n_rows, s->length);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    uint16_t y = rig_input(&r, BURN_F32, BURN_FUSED_FULL, pick(2) == 0 ? RIG_DENSE : RIG_LINE);
    uint16_t two[2] = {x, y};
    uint16_t z = rig_step(&r, BURN_OP_MUL, BURN_F32, two, 2, NULL, 0);
    if (by_rows) {
        uint16_t back[2] = {z, rig_fold(&r, BURN_OP_SUM, z)};
        z = rig_step(&r, BURN_OP_SUB, BURN_F32, back, 2, NULL, 0);
    }
    for (uint32_t k = 0; k < n_columns; k++) {
        (void)rig_column(&r, column_ops[k], k % 2 == 0 ? z : x);
    }
    (void)rig_step(&r, BURN_OP_RELU, BURN_F32, &z, 1, NULL, 0);
    rig_outputs(&r, pick(2));
    assert_int_equal(rig_check(&r), 1);
    rig_end(&r);
}

/* One group of a sum and several, blocks, one strip and several, rows longer than a tile. */
static void columns__equal_their_ops_with_any_threads(void **state)
{
    (void)state;
    static const shape shapes[] = {{2, 8},     {65, 8},     {64, 1000}, {129, 130}, {200, 300},
                                   {3000, 40}, {130, 5000}, {70, 9000}, {9000, 16}, {40, 2500},
                                   {4100, 64}, {3, 70000}};
    static const uint32_t threads[] = {1, 2, 4};
    for (uint32_t t = 0; t < COUNT(threads); t++) {
        fixture_threads(threads[t]);
        for (uint32_t k = 0; k < COUNT(shapes); k++) {
            check_columns(&shapes[k], 1 + k % 4, 0);
            if (shapes[k].length <= 1024) {
                check_columns(&shapes[k], 1 + k % 4, 1);
            }
        }
    }
}

/* What the single op adds in another order, or not by columns. */
static void columns__that_no_pass_gives_are_refused(void **state)
{
    (void)state;
    static const uint64_t ops[] = {BURN_OP_SUM, BURN_OP_PROD, BURN_OP_VAR, BURN_OP_SUM};
    static const uint8_t kinds[] = {BURN_F64, BURN_F32, BURN_F32, BURN_F32};
    for (uint32_t k = 0; k < COUNT(ops); k++) {
        rig r;
        rig_begin(&r, 20, k == 3 ? 7 : 40);
        uint16_t x = rig_input(&r, kinds[k], BURN_FUSED_FULL, RIG_DENSE);
        x = rig_step(&r, BURN_OP_NEG, kinds[k], &x, 1, NULL, 0);
        (void)rig_column(&r, ops[k], x);
        rig_outputs(&r, 1);
        assert_int_equal(rig_check(&r), 0);
        rig_end(&r);
    }
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* x - max, exp, sum, divide: what a softmax decomposes into. */
static void softmax_in_one_program__equals_its_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{40, 5}, {33, 1000}, {3, 5000}, {1, 200000}};
    for (uint32_t k = 0; k < COUNT(shapes); k++) {
        rig r;
        rig_begin(&r, shapes[k].n_rows, shapes[k].length);
        uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t m = rig_fold(&r, BURN_OP_MAX, x);
        uint16_t c[2] = {x, m};
        uint16_t d = rig_step(&r, BURN_OP_SUB, BURN_F32, c, 2, NULL, 0);
        uint16_t e = rig_step(&r, BURN_OP_EXP, BURN_F32, &d, 1, NULL, 0);
        uint16_t s = rig_fold(&r, BURN_OP_SUM, e);
        uint16_t q[2] = {e, s};
        (void)rig_step(&r, BURN_OP_DIV, BURN_F32, q, 2, NULL, 0);
        rig_outputs(&r, 0);
        assert_int_equal(rig_check(&r), 1);
        rig_end(&r);
    }
}

/* var and logsumexp look at each row twice. */
static void var_and_logsumexp__equal_their_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{40, 5}, {33, 1000}, {3, 4096}};
    for (uint32_t k = 0; k < COUNT(shapes); k++) {
        rig r;
        rig_begin(&r, shapes[k].n_rows, shapes[k].length);
        uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t v = rig_fold(&r, BURN_OP_VAR, x);
        uint16_t l = rig_fold(&r, BURN_OP_LOGSUMEXP, x);
        uint16_t both[2] = {v, l};
        uint16_t b = rig_step(&r, BURN_OP_ADD, BURN_F32, both, 2, NULL, 0);
        uint16_t all[2] = {x, b};
        (void)rig_step(&r, BURN_OP_MUL, BURN_F32, all, 2, NULL, 0);
        rig_outputs(&r, 3);
        assert_int_equal(rig_check(&r), 1);
        rig_end(&r);
    }
}

/*
 * The mean and the variance of one value share their sums, whichever comes first; those of another
 * value do not.
 */
static void means_and_variances__equal_their_ops(void **state)
{
    (void)state;
    static const shape shapes[] = {{40, 5}, {33, 1000}, {3, 4096}, {300, 1}};
    static const uint8_t floats[] = {BURN_F32, BURN_F64, BURN_BF16};
    static const uint64_t orders[][2] = {{BURN_OP_MEAN, BURN_OP_VAR}, {BURN_OP_VAR, BURN_OP_MEAN}};
    for (uint32_t k = 0; k < 2 * COUNT(shapes) * COUNT(floats); k++) {
        const shape *at = &shapes[k / 2 % COUNT(shapes)];
        const uint8_t dtype = floats[k / 2 / COUNT(shapes)];
        rig r;
        rig_begin(&r, at->n_rows, at->length);
        uint16_t x = rig_input(&r, dtype, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t y = rig_input(&r, dtype, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t z = x;
        for (uint32_t f = 0; f < 4; f++) {
            uint16_t next[2] = {z, rig_fold(&r, orders[k % 2][f / 2], f % 2 == 0 ? y : x)};
            z = rig_step(&r, BURN_OP_ADD, dtype, next, 2, NULL, 0);
        }
        rig_outputs(&r, 0);
        assert_int_equal(rig_check(&r), 1);
        rig_end(&r);
    }
}

/* The result has the memory of an operand that is read again after the result is known. */
static void result_in_an_operands_memory__equals_a_result_elsewhere(void **state)
{
    (void)state;
    static const shape shapes[] = {{5, 0}, {5000, 0}, {100000, 0}, {20, 100}, {2, 9000}};
    for (uint32_t k = 0; k < COUNT(shapes); k++) {
        for (uint32_t late = 0; late < 2; late++) {
            rig r;
            rig_begin(&r, shapes[k].n_rows, shapes[k].length);
            uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
            uint16_t y = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
            uint16_t a[2] = {x, y};
            uint16_t s = rig_step(&r, BURN_OP_ADD, BURN_F32, a, 2, NULL, 0);
            uint16_t b[2] = {s, shapes[k].length > 0 ? rig_fold(&r, BURN_OP_SUM, s) : x};
            uint16_t z = rig_step(&r, BURN_OP_MUL, BURN_F32, b, 2, NULL, 0);
            uint16_t c[2] = {late ? y : z, z};
            (void)rig_step(&r, BURN_OP_SUB, BURN_F32, c, 2, NULL, 0);
            rig_outputs(&r, 0);
            r.in_place = late ? y : x;
            assert_int_equal(rig_check(&r), 1);
            rig_end(&r);
        }
    }
}

/* The first result lies where an operand of the second one is. */
static void result_over_an_operand_that_is_still_read__comes_later(void **state)
{
    (void)state;
    static const shape shapes[] = {{5, 0}, {5000, 0}, {100000, 0}};
    for (uint32_t k = 0; k < COUNT(shapes); k++) {
        rig r;
        rig_begin(&r, shapes[k].n_rows, 0);
        uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t y = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
        uint16_t a[2] = {x, y};
        uint16_t s = rig_step(&r, BURN_OP_ADD, BURN_F32, a, 2, NULL, 0);
        uint16_t b[2] = {s, y};
        uint16_t t = rig_step(&r, BURN_OP_MUL, BURN_F32, b, 2, NULL, 0);
        r.outputs[0] = s;
        r.outputs[1] = t;
        r.n_out = 2;
        r.in_place = y;
        assert_int_equal(rig_check(&r), 1);
        rig_end(&r);
    }
}

/* So large that results go past the caches. */
static void streamed_results__equal_their_ops(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 7000001, 0);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    uint16_t a[2] = {x, x};
    uint16_t y = rig_step(&r, BURN_OP_MUL, BURN_F32, a, 2, NULL, 0);
    uint16_t b[2] = {y, x};
    (void)rig_step(&r, BURN_OP_SUB, BURN_F32, b, 2, NULL, 0);
    rig_outputs(&r, 0);
    assert_int_equal(rig_check(&r), 1);
    rig_end(&r);
}

static void division_by_zero__is_a_fault_of_the_second_row(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 5000, 0);
    r.divides = 1;
    uint16_t x = rig_input(&r, BURN_I32, BURN_FUSED_FULL, RIG_DENSE);
    uint16_t y = rig_input(&r, BURN_I32, BURN_FUSED_FULL, RIG_DENSE);
    uint16_t a[2] = {x, y};
    (void)rig_step(&r, BURN_OP_DIV, BURN_I32, a, 2, NULL, 0);
    rig_outputs(&r, 0);
    for (int64_t i = 0; i < 5000; i++) {
        put(&r.values[y].operand, i, 3.0);
    }
    assert_int_equal(rig_run(&r, 0), BURN_E_UNSUPPORTED);
    assert_int_equal(rig_run(&r, 1), BURN_OK);
    put(&r.values[y].operand, 4321, 0.0);
    assert_int_equal(rig_run(&r, 1), BURN_E_DATA);
    rig_end(&r);
}

/* Nothing to do, and rows of no length. */
static void empty_programs__write_nothing(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 0, 0);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    (void)rig_step(&r, BURN_OP_EXP, BURN_F32, &x, 1, NULL, 0);
    rig_outputs(&r, 0);
    assert_int_equal(rig_check(&r), 1);
    rig_end(&r);
    rig_begin(&r, 0, 8);
    x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    (void)rig_fold(&r, BURN_OP_SUM, x);
    rig_outputs(&r, 0);
    assert_int_equal(rig_check(&r), 1);
    rig_end(&r);
}

/* A sum of an operand that is not dense would be cut in other places than the single op's. */
static void sum_of_a_strided_operand__is_refused(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 10, 10);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_TURNED);
    (void)rig_fold(&r, BURN_OP_SUM, x);
    rig_outputs(&r, 0);
    assert_int_equal(rig_run(&r, 0), BURN_E_UNSUPPORTED);
    assert_non_null(strstr(fixture_error.text, "not dense"));
    rig_end(&r);
}

/* A core that is newer than the plugin may give it what did not mean anything then. */
static void programs_of_a_later_version__are_refused(void **state)
{
    (void)state;
    rig r;
    rig_begin(&r, 10, 0);
    uint16_t x = rig_input(&r, BURN_F32, BURN_FUSED_FULL, RIG_DENSE);
    (void)rig_step(&r, BURN_OP_EXP, BURN_F32, &x, 1, NULL, 0);
    rig_outputs(&r, 0);
    assert_int_equal(rig_run(&r, 0), BURN_OK);
    r.versions_ahead = 1;
    assert_int_equal(rig_run(&r, 0), BURN_E_UNSUPPORTED);
    assert_non_null(strstr(fixture_error.text, "version"));
    rig_end(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns__equal_their_ops_with_any_threads),
        cmocka_unit_test(columns__that_no_pass_gives_are_refused),
        cmocka_unit_test(softmax_in_one_program__equals_its_ops),
        cmocka_unit_test(var_and_logsumexp__equal_their_ops),
        cmocka_unit_test(means_and_variances__equal_their_ops),
        cmocka_unit_test(result_in_an_operands_memory__equals_a_result_elsewhere),
        cmocka_unit_test(result_over_an_operand_that_is_still_read__comes_later),
        cmocka_unit_test(streamed_results__equal_their_ops),
        cmocka_unit_test(division_by_zero__is_a_fault_of_the_second_row),
        cmocka_unit_test(empty_programs__write_nothing),
        cmocka_unit_test(sum_of_a_strided_operand__is_refused),
        cmocka_unit_test(programs_of_a_later_version__are_refused),
        cmocka_unit_test(chains_of_plain_ops__equal_their_ops),
        cmocka_unit_test(programs__equal_their_ops),
        cmocka_unit_test(programs_of_long_rows__equal_their_ops),
        cmocka_unit_test(large_programs__equal_their_ops_with_any_threads),
    };
    return fixture_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
