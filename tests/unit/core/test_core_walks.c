/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_walks.c - groups over operands that lie in another order than they are walked in, and
 * groups that reduce over the rows.
 *
 * Each test runs a step with window 1 and some times over with the window of the command line, and
 * compares bits; on flex it also counts the calls of the last plan's groups. On mock there is no
 * row, so the plan has no group. Sizes change from round to round, for a plan serves all. To add
 * one: a step_fn and a call of `same_values`, with the number of calls that should be in groups.
 */
#include "core_steps.h"

#include "exec/rows.h"

/* Every step must succeed and give something, in each mode. */
static void same_values(step_fn step, uint32_t fused)
{
    static outcome first;
    set_window(1);
    for (int k = 0; k < STEP_ROUNDS; k++) {
        run_step(step, k, &first);
        if (first.code != BURN_OK) {
            fail_msg("%s", first.text);
        }
        assert_true(first.bytes >= sizeof(float));
    }
    same_as_eager(step, fused);
}

/* ---- from outside ---------------------------------------------------------------------------- */

/* Lines that are no multiple of a block's, strips that are none of a tile's; once all is small. */
static burn_tensor *turned(int round)
{
    static const int64_t rows[STEP_ROUNDS] = {5, 300, 77};
    static const int64_t columns[STEP_ROUNDS] = {7, 641, 1030};
    int64_t r = rows[round];
    int64_t c = columns[round];
    burn_tensor *b = burn_transpose(random_of(2, DIMS(c, r)), 0, 1);
    return burn_mul(burn_relu(burn_add(random_of(2, DIMS(r, c)), b)), random_of(2, DIMS(r, c)));
}

static void walks__a_transposed_operand_joins(void **state)
{
    (void)state;
    same_values(turned, 3);
}

/* Channels last, seen as channels first; halves in between; the last operand is dense by lines. */
static burn_tensor *permuted(int round)
{
    int64_t w = 19 + 40 * round;
    burn_tensor *x = burn_permute(random_of(4, DIMS(3, 11, w, 20)), 4, DIMS(0, 3, 1, 2));
    burn_tensor *half = burn_cast(x, BURN_F16);
    burn_tensor *y = burn_mul(half, burn_cast(random_of(4, DIMS(3, 20, 11, w)), BURN_F16));
    return burn_add(burn_cast(burn_neg(y), BURN_F32), random_of(1, DIMS(w)));
}

static void walks__a_permuted_operand_joins(void **state)
{
    (void)state;
    same_values(permuted, 6);
}

/* Not dense along any axis; dense along one but backwards along the other; in a larger matrix. */
static burn_tensor *odd(int round)
{
    int64_t n = 40 + 100 * round;
    burn_tensor *x = burn_transpose(random_of(2, DIMS(2 * n, 34)), 0, 1);
    burn_tensor *y = burn_flip(burn_transpose(random_of(2, DIMS(n, 40)), 0, 1), 1, DIMS(1));
    burn_tensor *z = burn_slice(random_of(2, DIMS(34, 2 * n)), 1, 0, 2 * n, 2);
    y = burn_slice(y, 0, 3, 37, 1);
    return burn_abs(burn_mul(burn_add(burn_slice(x, 1, 0, 2 * n, 2), y), z));
}

static void walks__sliced_and_turned_operands_join(void **state)
{
    (void)state;
    same_values(odd, 3);
}

/* What the group made is read transposed: that needs a value of another position. */
static burn_tensor *own_result(int round)
{
    int64_t n = 60 + 90 * round;
    burn_tensor *x = burn_transpose(random_of(2, DIMS(n, 130)), 0, 1);
    burn_tensor *y = burn_transpose(random_of(2, DIMS(n, 131)), 0, 1);
    burn_tensor *z = burn_mul(x, burn_slice(y, 0, 1, 131, 1));
    return burn_add(burn_transpose(z, 0, 1), random_of(2, DIMS(n, 130)));
}

static void walks__its_own_result_transposed_ends_a_group(void **state)
{
    (void)state;
    same_values(own_result, 0);
}

/* One walk serves both. */
static burn_tensor *both(int round)
{
    int64_t n = 60 + 90 * round;
    burn_tensor *x = burn_transpose(random_of(2, DIMS(n, 130)), 0, 1);
    burn_tensor *y = burn_transpose(burn_add(random_of(2, DIMS(n, 130)), burn_scalar(1.0)), 0, 1);
    (void)burn_sync(dev, NULL);
    return burn_sub(burn_exp(burn_mul(x, y)), burn_neg(y));
}

static void walks__operands_that_are_turned_alike_join(void **state)
{
    (void)state;
    same_values(both, 4);
}

/* Turned in two ways: the second one stands alone. */
static burn_tensor *differently(int round)
{
    int64_t n = 40 + 3 * round;
    burn_tensor *x = burn_permute(random_of(3, DIMS(n, 31, 30)), 3, DIMS(1, 2, 0));
    burn_tensor *y = burn_permute(random_of(3, DIMS(30, n, 31)), 3, DIMS(2, 0, 1));
    burn_tensor *z = burn_relu(burn_neg(x));
    return burn_abs(burn_mul(z, y));
}

static void walks__operands_turned_in_two_ways_are_two_groups(void **state)
{
    (void)state;
    same_values(differently, 4);
}

/* Whole rows in each block. */
static burn_tensor *rows(int round)
{
    int64_t n = 70 + 400 * round;
    int64_t last[1] = {1};
    burn_tensor *x = burn_transpose(random_of(2, DIMS(n, 90)), 0, 1);
    burn_tensor *y = burn_exp(burn_mul(x, random_of(2, DIMS(90, n))));
    return burn_div(y, burn_sum(y, 1, last, 1));
}

static void walks__rows_of_a_transposed_operand_are_reduced(void **state)
{
    (void)state;
    same_values(rows, 4);
}

/* Rows that the blocks do not hold: both dims at once. */
static burn_tensor *all(int round)
{
    int64_t n = 50 + 10 * round;
    burn_tensor *x = burn_transpose(random_of(2, DIMS(n, 90)), 0, 1);
    return burn_sum(burn_exp(burn_mul(x, random_of(2, DIMS(90, n)))), 0, NULL, 0);
}

static void walks__rows_over_several_lines_are_a_reduction_alone(void **state)
{
    (void)state;
    same_values(all, 2);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Both results behind one another, since a step has one. */
static burn_tensor *joined(burn_tensor *x, burn_tensor *y)
{
    burn_tensor *const both[2] = {burn_reshape(x, 1, DIMS(-1)), burn_reshape(y, 1, DIMS(-1))};
    return burn_cat(both, 2, 0);
}

/* The gradients of relu(x + b): blocks, strips, and what has neither. */
static burn_tensor *bias_and_relu(int round)
{
    static const int64_t n_rows[STEP_ROUNDS] = {6, 1000, 70};
    static const int64_t n_columns[STEP_ROUNDS] = {8, 130, 2500};
    int64_t r = n_rows[round];
    int64_t c = n_columns[round];
    int64_t first[1] = {0};
    burn_tensor *y = random_of(2, DIMS(r, c));
    burn_tensor *dy = burn_neg(random_of(2, DIMS(r, c)));
    burn_tensor *dx = burn_where(burn_greater(y, burn_scalar(0.0)), dy, burn_scalar(0.0));
    return joined(dx, burn_sum(dx, 1, first, 0));
}

static void columns__a_bias_and_its_activation_are_one_pass(void **state)
{
    (void)state;
    same_values(bias_and_relu, 4);
}

/* Several first dims; the value that is summed is not written. */
static burn_tensor *several_dims(int round)
{
    int64_t n = 5 + 20 * round;
    burn_tensor *x = burn_mul(random_of(3, DIMS(n, 9, 33)), random_of(3, DIMS(n, 9, 33)));
    burn_tensor *y = burn_abs(x);
    return joined(burn_max(y, 2, DIMS(0, 1), 1), burn_mean(y, 2, DIMS(-2, 0), 0));
}

static void columns__over_several_dims_without_the_value(void **state)
{
    (void)state;
    same_values(several_dims, 4);
}

/* What a layer norm's gradient is made of: sums of rows go back in, sums of columns come out. */
static burn_tensor *rows_and_columns(int round)
{
    int64_t c = 40 + 300 * round;
    int64_t last[1] = {1};
    int64_t first[1] = {0};
    burn_tensor *x = burn_exp(random_of(2, DIMS(90, c)));
    burn_tensor *y = burn_div(x, burn_sum(x, 1, last, 1));
    return joined(burn_min(y, 1, first, 0), burn_sum(burn_mul(y, x), 1, first, 0));
}

static void columns__beside_rows_of_the_same_length(void **state)
{
    (void)state;
    same_values(rows_and_columns, 6);
}

/* Lines are whole rows, with a transposed operand or with sums over them. */
static burn_tensor *lines_and_columns(int round)
{
    int64_t c = 40 + 300 * round;
    burn_tensor *x = burn_softmax(burn_neg(random_of(2, DIMS(90, c))), 1);
    return joined(burn_sum(burn_mul(x, x), 1, DIMS(0), 0), x);
}

static void columns__beside_lines(void **state)
{
    (void)state;
    same_values(lines_and_columns, 4);
}

static burn_tensor *lines_and_turned(int round)
{
    int64_t c = 40 + 300 * round;
    burn_tensor *x = burn_transpose(random_of(2, DIMS(c, 90)), 0, 1);
    return burn_softmax(burn_mul(x, random_of(2, DIMS(90, c))), 1);
}

static void walks__lines_of_a_transposed_operand(void **state)
{
    (void)state;
    same_values(lines_and_turned, 2);
}

/* A later step reads what is only complete at the end: it comes later. */
static burn_tensor *read_again(int round)
{
    int64_t n = 30 + 50 * round;
    burn_tensor *x = burn_mul(random_of(2, DIMS(n, 60)), random_of(2, DIMS(n, 60)));
    burn_tensor *y = burn_sub(x, burn_sum(x, 1, DIMS(0), 1));
    return burn_add(burn_exp(y), y);
}

static void columns__are_read_by_another_group(void **state)
{
    (void)state;
    same_values(read_again, 5);
}

/* Kinds and dtypes that are reduced in another order alone: they run behind the group. */
static burn_tensor *other_kinds(int round)
{
    int64_t n = 30 + 50 * round;
    burn_tensor *x = burn_abs(burn_neg(random_of(2, DIMS(n, 60))));
    return joined(burn_exp(x), burn_var_of(x, 1, DIMS(0), 0, 0));
}

static void columns__that_are_variances_run_behind_the_group(void **state)
{
    (void)state;
    same_values(other_kinds, 3);
}

static burn_tensor *other_dtypes(int round)
{
    int64_t n = 30 + 50 * round;
    burn_tensor *x = burn_abs(burn_cast(random_of(2, DIMS(n, 60)), BURN_F64));
    burn_tensor *sum = burn_cast(burn_sum(x, 1, DIMS(0), 0), BURN_F32);
    return joined(burn_cast(x, BURN_F32), sum);
}

static void columns__of_another_dtype_run_behind_the_group(void **state)
{
    (void)state;
    same_values(other_dtypes, 3);
}

static void put_rows(const burni_op *op, burni_rows *list)
{
    atomic_store(&dev->core->rows[op->index], list);
    atomic_fetch_add(&dev->core->rows_version, 1);
}

/* The row of a backend that is older than such steps: its row of BURN_OP_FUSED knows none. */
static void columns__that_the_row_does_not_promise_are_not_asked_for(void **state)
{
    (void)state;
    burn_row older;
    const burn_row *rows[1] = {&older};
    const burni_op *op = burni_op_find(BURN_OP_SUM);
    burni_rows *own = atomic_load(&dev->core->rows[op->index]);
    burni_rows list = *own;
    older = *own->rows[0];
    older.flags &= ~(uint32_t)BURN_ROW_COLUMNS;
    list.rows = rows;
    list.count = 1;
    put_rows(op, &list);
    same_values(bias_and_relu, 3);
    put_rows(op, own);
    same_values(bias_and_relu, 4);
}

/* Too few of them, and a product: neither is for columns. */
static burn_tensor *few(int round)
{
    burn_tensor *x = burn_abs(burn_neg(random_of(2, DIMS(300 + round, 7))));
    return joined(x, burn_sum(x, 1, DIMS(0), 0));
}

static void columns__that_are_few_are_reduced_alone(void **state)
{
    (void)state;
    same_values(few, 2);
}

static burn_tensor *behind_a_product(int round)
{
    burn_tensor *x = burn_matmul(random_of(2, DIMS(40 + round, 30)), random_of(2, DIMS(30, 50)));
    burn_tensor *y = burn_relu(burn_neg(x));
    return joined(y, burn_sum(y, 1, DIMS(0), 0));
}

static void columns__behind_a_product_are_reduced_alone(void **state)
{
    (void)state;
    same_values(behind_a_product, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(walks__a_transposed_operand_joins),
        WINDOW_TEST(walks__a_permuted_operand_joins),
        WINDOW_TEST(walks__sliced_and_turned_operands_join),
        WINDOW_TEST(walks__its_own_result_transposed_ends_a_group),
        WINDOW_TEST(walks__operands_that_are_turned_alike_join),
        WINDOW_TEST(walks__operands_turned_in_two_ways_are_two_groups),
        WINDOW_TEST(walks__rows_of_a_transposed_operand_are_reduced),
        WINDOW_TEST(walks__rows_over_several_lines_are_a_reduction_alone),
        WINDOW_TEST(columns__a_bias_and_its_activation_are_one_pass),
        WINDOW_TEST(columns__over_several_dims_without_the_value),
        WINDOW_TEST(columns__beside_rows_of_the_same_length),
        WINDOW_TEST(columns__beside_lines),
        WINDOW_TEST(walks__lines_of_a_transposed_operand),
        WINDOW_TEST(columns__are_read_by_another_group),
        WINDOW_TEST(columns__that_are_variances_run_behind_the_group),
        WINDOW_TEST(columns__of_another_dtype_run_behind_the_group),
        WINDOW_TEST(columns__that_the_row_does_not_promise_are_not_asked_for),
        WINDOW_TEST(columns__that_are_few_are_reduced_alone),
        WINDOW_TEST(columns__behind_a_product_are_reduced_alone),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
