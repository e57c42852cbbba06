/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_explain.c - the table behind `burn explain`: rows, decompositions, copies, reasons.
 * Rule 20 of the ABI is held here: no operand is copied, and no kernel replaced, without a trace.
 *
 * The table is a file in a folder of this process, as the program gets it.
 */
#include "core_test.h"

#include <burn/explain.h>
#include <burn/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The newest entry of an op with that text in `within` and `operands`; NULL when there is none. */
static const burn_explain_entry *entry_of(const char *op, const char *within, const char *operands)
{
    const burn_explain_head *t = burn_explain_table();
    const burn_explain_entry *found = NULL;
    for (uint32_t i = 0; t != NULL && i < t->n_entries; i++) {
        const burn_explain_entry *e = burn_explain_at(t, i);
        if (strcmp(e->op, op) == 0 && strcmp(e->within, within) == 0 &&
            strstr(e->operands, operands) != NULL) {
            found = e;
        }
    }
    return found;
}

static void check_text(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("\"%s\" does not have \"%s\"", text, wanted);
    }
}

static void rows__are_named_and_counted(void **state)
{
    (void)state;
    burn_explain_head before = *burn_explain_table();
    burn_tensor *x = VEC(1, 2, 3);
    for (int i = 0; i < 5; i++) {
        CHECK(burn_add(x, x), 2, 4, 6);
    }
    const burn_explain_entry *e = entry_of("add", "", "f32[3], f32[3]");
    assert_non_null(e);
    assert_int_equal(e->kind, BURN_EXPLAIN_ROW);
    assert_int_equal(e->calls, 5);
    assert_int_equal(e->copies, 0);
    check_text(e->served, on_mock ? "mock.add" : "flex.add");
    const burn_explain_head *after = burn_explain_table();
    assert_int_equal(after->calls, before.calls + 5);
    assert_int_equal(after->rows, before.rows + 5);
    assert_int_equal(after->copies, before.copies);
}

static void rule_20__a_layout_copy_shows_with_its_bytes_and_reason(void **state)
{
    (void)state;
    burn_explain_head before = *burn_explain_table();
    const float values[6] = {1, 2, 3, 4, 5, 6};
    /* A view of strides that cannot be seen as one dim: copied on every device. */
    burn_tensor *t = burn_transpose(mat(2, 3, values), 0, 1);
    CHECK(burn_reshape(t, 1, DIMS(6)), 1, 4, 2, 5, 3, 6);
    const burn_explain_entry *e = entry_of("reshape", "", "f32[3,2] strided");
    assert_non_null(e);
    assert_int_equal(e->copies, 1);
    assert_int_equal(e->copy_bytes, 24);
    check_text(e->why, "copied first");
    assert_non_null(entry_of("copy", "layout copy for reshape", "f32[3,2] strided"));
    assert_int_equal(burn_explain_table()->copies, before.copies + 1);
    assert_int_equal(burn_explain_table()->copy_bytes, before.copy_bytes + 24);
    if (on_mock) {
        /* Its rows take dense operands only. */
        CHECK(burn_matmul(t, mat(2, 1, values)), 9, 12, 15);
        e = entry_of("matmul", "", "f32[3,2] strided, f32[2,1]");
        assert_non_null(e);
        assert_int_equal(e->kind, BURN_EXPLAIN_ROW);
        assert_int_equal(e->copy_bytes, 24);
        check_text(e->why, "copied first: x is strided, it takes contiguous");
        assert_int_equal(burn_explain_table()->copies, before.copies + 2);
    }
}

static void rule_20__a_read_that_copies_shows(void **state)
{
    (void)state;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    burn_tensor *t = burn_transpose(mat(2, 3, values), 0, 1);
    burn_explain_head before = *burn_explain_table();
    CHECK(t, 1, 4, 2, 5, 3, 6);
    assert_int_equal(burn_explain_table()->copies, before.copies + 1);
    assert_non_null(entry_of("copy", "layout copy for a read", "f32[3,2] strided"));
}

static void rule_20__a_decomposition_names_its_parts_and_the_reason(void **state)
{
    (void)state;
    assert_int_equal(burn_option_set("DECOMPOSE", "1", NULL), BURN_OK);
    burn_tensor *y = burn_softmax(VEC(1, 1), 0);
    assert_int_equal(burn_option_set("DECOMPOSE", "0", NULL), BURN_OK);
    CHECK_NEAR(y, 1e-6, 0.5, 0.5);
    const burn_explain_entry *e = entry_of("softmax", "", "f32[2]");
    assert_non_null(e);
    assert_int_equal(e->kind, BURN_EXPLAIN_DECOMPOSED);
    check_text(e->why, "DECOMPOSE");
    check_text(e->served, "exp");
    check_text(e->served, "sum");
    assert_non_null(entry_of("exp", "softmax", "f32[2]"));
    if (on_mock) {
        CHECK_NEAR(burn_gelu(VEC(0, 0, 0), 0), 1e-6, 0, 0, 0);
        e = entry_of("gelu", "", "f32[3]");
        assert_non_null(e);
        check_text(e->why, "mock:0 has no row for it");
    }
}

static void gradients__tell_whose_they_are_and_from_where(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    burn_tensor *x = burn_require_grad(ad, VEC(1, 2));
    burn_tag_begin("encoder");
    burn_tag_begin("0");
    burn_tensor *y = burn_mul(x, x);
    burn_tag_end();
    burn_tag_end();
    burn_grads *grads = burn_backward(burn_sum(y, 0, NULL, 0), NULL, 0, &err);
    CHECK(burn_grads_get(grads, x), 2, 4);
    burn_grads_free(grads);
    const burn_explain_entry *e = entry_of("mul", "", "f32[2], f32[2]");
    assert_non_null(e);
    assert_string_equal(e->tag, "encoder.0");
    e = entry_of("mul", "gradient of mul", "f32[2]");
    assert_non_null(e);
    assert_string_equal(e->tag, "encoder.0");
}

static void failures__are_counted_with_their_text(void **state)
{
    (void)state;
    burn_explain_head before = *burn_explain_table();
    const float values[6] = {1, 2, 3, 4, 5, 6};
    burn_tensor *bad = burn_matmul(mat(2, 3, values), mat(2, 3, values));
    assert_false(burn_ok(bad));
    assert_false(burn_ok(burn_relu(bad)));
    assert_int_equal(burn_explain_table()->failed, before.failed + 1);
    const burn_explain_entry *e = entry_of("matmul", "", "");
    assert_non_null(e);
    assert_int_equal(e->kind, BURN_EXPLAIN_FAILED);
    check_text(e->why, "inner sizes differ");
}

/* flex sums no columns of f64 in a group, so the sum is left out of it, and called so. */
static void groups__tell_which_call_a_kernel_refused(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        burn_scope_begin();
        burn_tensor *x = burn_ones(dev, BURN_F64, 2, DIMS(40, 32));
        burn_tensor *y = burn_relu(burn_abs(x));
        double sums[32];
        double values[40 * 32];
        burn_tensor *sum = burn_sum(y, 1, DIMS(0), 0);
        assert_int_equal(burn_read_f64(sum, sums, 32, NULL), BURN_OK);
        assert_int_equal(burn_read_f64(y, values, 40 * 32, NULL), BURN_OK);
        assert_true(sums[31] == 40.0);
        burn_scope_end();
    }
    const burn_explain_entry *e = entry_of("burn.fused", "", "abs relu");
    assert_int_equal(e != NULL, !on_mock && window != 1);
    if (e != NULL) {
        check_text(e->why, "ends at sum, which the kernel refused in a larger group");
        e = entry_of("burn.fused", "", "abs relu sum");
        assert_non_null(e);
        check_text(e->why, "fused: a sum over first dims that it has no columns for");
    }
}

static void counts__of_all_entries_are_those_of_the_head(void **state)
{
    (void)state;
    const burn_explain_head *t = burn_explain_table();
    uint64_t calls = 0;
    uint64_t copies = 0;
    for (uint32_t i = 0; i < t->n_entries; i++) {
        /* Calls that ran as one were counted before, each as its own. */
        int fused = burn_explain_at(t, i)->kind == BURN_EXPLAIN_FUSED;
        calls += fused ? 0 : burn_explain_at(t, i)->calls;
        copies += burn_explain_at(t, i)->copies;
    }
    assert_int_equal(calls + t->lost, t->calls);
    assert_int_equal(t->rows + t->decomposed + t->views + t->failed, t->calls);
    assert_true(copies <= t->copies); /* reads have no entry of their own */
    assert_int_equal(t->magic, BURN_EXPLAIN_MAGIC);
}

/* The file is what another process would read: the head at its start. */
static void file__is_the_table(void **state)
{
    (void)state;
    char path[128];
    burn_explain_head head;
    (void)snprintf(path, sizeof(path), "%s/%ld.burn", getenv("BURN_EXPLAIN"), (long)getpid());
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(&head, sizeof(head), 1, f), 1);
    (void)fclose(f);
    assert_memory_equal(&head, burn_explain_table(), sizeof(head));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(rows__are_named_and_counted),
        CORE_TEST(rule_20__a_layout_copy_shows_with_its_bytes_and_reason),
        CORE_TEST(rule_20__a_read_that_copies_shows),
        CORE_TEST(rule_20__a_decomposition_names_its_parts_and_the_reason),
        CORE_TEST(gradients__tell_whose_they_are_and_from_where),
        CORE_TEST(failures__are_counted_with_their_text),
        CORE_TEST(groups__tell_which_call_a_kernel_refused),
        CORE_TEST(counts__of_all_entries_are_those_of_the_head),
        CORE_TEST(file__is_the_table),
    };
    return core_test_main_explained(argc, argv, tests, COUNT(tests));
}
