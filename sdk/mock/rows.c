/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.c - what mock claims: one row for each minimal op, for all dtypes of the op.
 *
 * Pointwise ops take every layout; the others take dense inputs only, so that the host makes copies
 * for them. No kernel works in place (in_place_mask 0). Rows whose kernels may write the fault word
 * say so with FAULTS; the host gives them one. To claim one more op: its slots and a row.
 */
#include "mock.h"
#include "mock_kernels.h"

#define ANY BURN_LAYOUT_ANY
#define DENSE BURN_LAYOUT_CONTIGUOUS
#ifdef MOCK_INJECT
/* Any launch may be told to fail. */
#define FLAGS                                                                                      \
    (BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS | BURN_ROW_INDEX64 | BURN_ROW_FAULTS)
#else
#define FLAGS (BURN_ROW_DETERMINISTIC | BURN_ROW_ANY_DIMS | BURN_ROW_INDEX64)
#endif /* MOCK_INJECT */
#define FAULTS (FLAGS | BURN_ROW_FAULTS)

static const burn_slot unary_slots[] = {
    BURN_SLOT(BURN_SET_FLOAT, ANY),
    BURN_SLOT_LIKE(BURN_SET_FLOAT, ANY, 0),
};

static const burn_slot binary_slots[] = {
    BURN_SLOT_OR_NUMBER(BURN_SET_NUMERIC, ANY),
    BURN_SLOT_OR_NUMBER_LIKE(BURN_SET_NUMERIC, ANY, 0),
    BURN_SLOT_LIKE(BURN_SET_NUMERIC, ANY, 0),
};

static const burn_slot compare_slots[] = {
    BURN_SLOT_OR_NUMBER(BURN_SET_ANY, ANY),
    BURN_SLOT_OR_NUMBER_LIKE(BURN_SET_ANY, ANY, 0),
    BURN_SLOT(BURN_BIT(BOOL), ANY),
};

static const burn_slot where_slots[] = {
    BURN_SLOT(BURN_BIT(BOOL), ANY),
    BURN_SLOT_OR_NUMBER(BURN_SET_ANY, ANY),
    BURN_SLOT_OR_NUMBER_LIKE(BURN_SET_ANY, ANY, 1),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 1),
};

static const burn_slot cast_slots[] = {
    BURN_SLOT(BURN_SET_ANY, ANY),
    BURN_SLOT(BURN_SET_ANY, ANY),
};

static const burn_slot copy_slots[] = {
    BURN_SLOT(BURN_SET_ANY, ANY),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

static const burn_slot assign_slots[] = {
    BURN_SLOT(BURN_SET_ANY, ANY),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

static const burn_slot fill_slots[] = {
    BURN_SLOT_OR_NUMBER(BURN_SET_ANY, ANY),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

static const burn_slot arange_slots[] = {
    BURN_SLOT_OR_NUMBER(BURN_SET_NUMERIC, ANY),
    BURN_SLOT_OR_NUMBER_LIKE(BURN_SET_NUMERIC, ANY, 0),
    BURN_SLOT_LIKE(BURN_SET_NUMERIC, ANY, 0),
};

static const burn_slot random_bits_slots[] = {
    BURN_SLOT_OR_NUMBER(BURN_BIT(U64), ANY),
    BURN_SLOT_OR_NUMBER(BURN_BIT(U64), ANY),
    BURN_SLOT(BURN_BIT(U32) | BURN_BIT(U64), ANY),
};

static const burn_slot reduce_slots[] = {
    BURN_SLOT(BURN_SET_NUMERIC, DENSE),
    BURN_SLOT_LIKE(BURN_SET_NUMERIC, ANY, 0),
};

static const burn_slot argmax_slots[] = {
    BURN_SLOT(BURN_SET_NUMERIC, DENSE),
    BURN_SLOT(BURN_BIT(I64), ANY),
};

static const burn_slot matmul_slots[] = {
    BURN_SLOT(BURN_SET_NUMERIC, DENSE),
    BURN_SLOT_LIKE(BURN_SET_NUMERIC, DENSE, 0),
    BURN_SLOT_LIKE(BURN_SET_NUMERIC, ANY, 0),
};

static const burn_slot gather_slots[] = {
    BURN_SLOT(BURN_SET_ANY, DENSE),
    BURN_SLOT(BURN_SET_INDEX, DENSE),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

static const burn_slot scatter_slots[] = {
    BURN_SLOT(BURN_SET_ANY, DENSE),
    BURN_SLOT(BURN_SET_INDEX, DENSE),
    BURN_SLOT_LIKE(BURN_SET_ANY, DENSE, 0),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

static const burn_slot slice_assign_slots[] = {
    BURN_SLOT(BURN_SET_ANY, DENSE),
    BURN_SLOT_LIKE(BURN_SET_ANY, DENSE, 0),
    BURN_SLOT_OR_NUMBER(BURN_BIT(I64), ANY),
    BURN_SLOT_LIKE(BURN_SET_ANY, ANY, 0),
};

const burn_row mock_rows[] = {
    BURN_ROW(BURN_OP_EXP, "mock.exp", FLAGS, unary_slots, mock_launch_exp),
    BURN_ROW(BURN_OP_LOG, "mock.log", FLAGS, unary_slots, mock_launch_log),
    BURN_ROW(BURN_OP_SQRT, "mock.sqrt", FLAGS, unary_slots, mock_launch_sqrt),
    BURN_ROW(BURN_OP_FLOOR, "mock.floor", FLAGS, unary_slots, mock_launch_floor),
    BURN_ROW(BURN_OP_SIN, "mock.sin", FLAGS, unary_slots, mock_launch_sin),
    BURN_ROW(BURN_OP_COS, "mock.cos", FLAGS, unary_slots, mock_launch_cos),
    BURN_ROW(BURN_OP_TANH, "mock.tanh", FLAGS, unary_slots, mock_launch_tanh),
    BURN_ROW(BURN_OP_ERF, "mock.erf", FLAGS, unary_slots, mock_launch_erf),
    BURN_ROW(BURN_OP_ADD, "mock.add", FLAGS, binary_slots, mock_launch_add),
    BURN_ROW(BURN_OP_SUB, "mock.sub", FLAGS, binary_slots, mock_launch_sub),
    BURN_ROW(BURN_OP_MUL, "mock.mul", FLAGS, binary_slots, mock_launch_mul),
    BURN_ROW(BURN_OP_DIV, "mock.div", FAULTS, binary_slots, mock_launch_div),
    BURN_ROW(BURN_OP_MAXIMUM, "mock.maximum", FLAGS, binary_slots, mock_launch_maximum),
    BURN_ROW(BURN_OP_EQUAL, "mock.equal", FLAGS, compare_slots, mock_launch_equal),
    BURN_ROW(BURN_OP_LESS, "mock.less", FLAGS, compare_slots, mock_launch_less),
    BURN_ROW(BURN_OP_WHERE, "mock.where", FLAGS, where_slots, mock_launch_where),
    BURN_ROW(BURN_OP_CAST, "mock.cast", FLAGS, cast_slots, mock_launch_cast),
    BURN_ROW(BURN_OP_COPY, "mock.copy", FLAGS, copy_slots, mock_launch_copy),
    BURN_ROW(BURN_OP_ASSIGN, "mock.assign", FLAGS, assign_slots, mock_launch_assign),
    BURN_ROW(BURN_OP_FILL, "mock.fill", FLAGS, fill_slots, mock_launch_fill),
    BURN_ROW(BURN_OP_ARANGE, "mock.arange", FLAGS, arange_slots, mock_launch_arange),
    BURN_ROW(BURN_OP_RANDOM_BITS, "mock.random_bits", FLAGS, random_bits_slots,
             mock_launch_random_bits),
    BURN_ROW(BURN_OP_SUM, "mock.sum", FLAGS, reduce_slots, mock_launch_sum),
    BURN_ROW(BURN_OP_MAX, "mock.max", FLAGS, reduce_slots, mock_launch_max),
    BURN_ROW(BURN_OP_ARGMAX, "mock.argmax", FLAGS, argmax_slots, mock_launch_argmax),
    BURN_ROW(BURN_OP_MATMUL, "mock.matmul", FLAGS, matmul_slots, mock_launch_matmul),
    BURN_ROW(BURN_OP_GATHER, "mock.gather", FAULTS, gather_slots, mock_launch_gather),
    BURN_ROW(BURN_OP_SCATTER, "mock.scatter", FAULTS, scatter_slots, mock_launch_scatter),
    BURN_ROW(BURN_OP_SLICE_ASSIGN, "mock.slice_assign", FAULTS, slice_assign_slots,
             mock_launch_slice_assign),
};

const uint32_t mock_n_rows = (uint32_t)BURN_COUNT(mock_rows);

static const burn_many_kernel many_kernels[] = {{mock_launch_assign, mock_launch_many_assign}};
const burn_many mock_many = {
    (uint32_t)sizeof(burn_many), (uint32_t)BURN_COUNT(many_kernels),
    (uint32_t)sizeof(burn_many_kernel), 0, many_kernels,
};
