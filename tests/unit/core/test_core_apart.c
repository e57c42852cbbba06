/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_apart.c - a group that its kernel refuses at a launch: the calls run one by one, it is
 * said so with the kernel's reason, and the plan goes on without the group.
 *
 * flex looks twice at the rows of a logsumexp, so it refuses rows that are longer than its tile;
 * that depends on sizes, which are no part of a plan. On mock nothing is fused, so only values are
 * looked at. The table of `burn explain` is a file of this process. To add a test: a function, a
 * row in the array.
 */
#include "core_test.h"

#include <burn/explain.h>
#include <burn/plans.h>
#include <burn/replay.h>
#include <string.h>

enum { ROUNDS = 5, ROWS = 2, SHORT_ROW = 512, LONG_ROW = 5000 };

static burn_tensor *x[2]; /* of short rows, of long ones */

static burn_tensor *ramp(int64_t length)
{
    static float values[ROWS * LONG_ROW];
    for (int64_t i = 0; i < ROWS * length; i++) {
        values[i] = (float)((i * 37) % 101) / 101.0F - 0.5F;
    }
    return mat(ROWS, length, values);
}

/* Four calls, of which flex makes one; two values live at once in between. */
static burn_tensor *step(burn_tensor *of)
{
    burn_scope_begin();
    burn_tensor *y = burn_mul(of, of);
    burn_tensor *z = burn_add(burn_exp(y), y);
    return burn_scope_return(burn_logsumexp(z, 1, DIMS(1), 0));
}

static void read_step(burn_tensor *of, float *out)
{
    burn_err err = BURN_ERR_INIT;
    burn_scope_begin();
    if (burn_read(step(of), out, ROWS * sizeof(float), &err) != BURN_OK) {
        fail_msg("%s", err.text);
    }
    burn_scope_end();
    (void)burn_sync(dev, NULL);
}

static burn_plan_info last_plan(void)
{
    burn_plan_totals t;
    BURN_INIT(&t, burn_plan_totals);
    assert_int_equal(burn_plan_report(dev, &t, NULL), BURN_OK);
    return t.last;
}

/* Entries of groups that ran (`ran`), or did not; the last one's reason. */
static uint64_t count_groups(int ran, const char **why)
{
    const burn_explain_head *t = burn_explain_table();
    uint64_t calls = 0;
    for (uint32_t i = 0; i < t->n_entries; i++) {
        const burn_explain_entry *e = burn_explain_at(t, i);
        if (e->kind == BURN_EXPLAIN_FUSED && (e->served[0] != '\0') == ran) {
            calls += e->calls;
            *why = e->why;
        }
    }
    return calls;
}

static void check_text(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("\"%s\" does not have \"%s\"", text, wanted);
    }
}

static int setup(void **state)
{
    x[0] = ramp(SHORT_ROW);
    x[1] = ramp(LONG_ROW);
    return core_setup(state);
}

/* The rows that fit, some that do not, and the first again: one plan, which lost its group. */
static void a_group__that_was_refused_is_given_up(void **state)
{
    (void)state;
    static const int lengths[ROUNDS + 2] = {0, 0, 0, 1, 1, 1, 0};
    float eager[2][ROWS];
    float waited[ROWS];
    const char *why = "";
    set_window(1);
    read_step(x[0], eager[0]);
    read_step(x[1], eager[1]);
    set_window(window);
    for (int k = 0; k < ROUNDS + 2; k++) {
        uint64_t tried = count_groups(0, &why);
        uint64_t ran = count_groups(1, &why);
        read_step(x[lengths[k]], waited);
        assert_memory_equal(waited, eager[lengths[k]], sizeof(waited));
        if (on_mock || window == 1) {
            continue;
        }
        assert_int_equal(count_groups(0, &why) - tried, k == 3);
        if (k == 3) {
            check_text(why, "ran apart: flex.fused refuses it: ");
            check_text(why, "rows longer than");
        }
        if (k != 0) { /* in window auto the first round does not wait */
            assert_int_equal(count_groups(1, &why) - ran, k < 3);
            assert_int_equal(last_plan().n_groups, k < 3);
            assert_int_equal(last_plan().n_launches, k < 3 ? 1 : 4);
        }
    }
}

/* Values between the calls have places in the next run, and the text tells of the group. */
static void a_plan__without_its_group_has_places_for_what_was_in_it(void **state)
{
    (void)state;
    static char text[32768];
    float out[ROWS];
    set_window(1);
    set_window(window);
    for (int k = 0; k < ROUNDS; k++) {
        read_step(x[1], out);
    }
    if (on_mock || window == 1) {
        return;
    }
    burn_plan_info plan = last_plan();
    assert_int_equal(plan.n_groups, 0);
    assert_int_equal(plan.n_places, 2);
    assert_int_equal(plan.n_reused, 1);
    (void)burn_plan_text(dev, text, sizeof(text));
    check_text(text, "4 calls one by one, not by flex.fused, ran apart: ");
    check_text(text, "= logsumexp");
}

/* A replay has the plan for itself; what it prepared for the group goes with it. */
static void a_replay__goes_on_without_the_group(void **state)
{
    (void)state;
    burn_err err = BURN_ERR_INIT;
    float eager[ROWS];
    float again[ROWS];
    const char *why = "";
    uint32_t kept = 0;
    uint32_t runs = 0;
    set_window(1);
    read_step(x[1], eager);
    set_window(window);
    burn_scope_begin();
    assert_int_equal(burn_replay_begin(dev, &err), BURN_OK);
    burn_tensor *out = step(burn_replay_port(x[1]));
    burn_replay *replay = burn_replay_end(&out, 1, &err);
    assert_non_null(replay);
    (void)burn_sync(dev, NULL);
    uint64_t tried = count_groups(0, &why);
    for (int k = 0; k < ROUNDS; k++) {
        burn_scope_begin();
        assert_int_equal(burn_replay_run(replay, &x[1], 1, &out, 1, &err), BURN_OK);
        assert_int_equal(burn_read(out, again, sizeof(again), &err), BURN_OK);
        assert_memory_equal(again, eager, sizeof(eager));
        burn_scope_end();
    }
    assert_true(on_mock || count_groups(0, &why) - tried == 1);
    burn_replay_size(replay, &kept, &runs);
    assert_true(kept >= 4);
    assert_int_equal(runs, kept); /* no group */
    burn_replay_free(replay);
    burn_scope_end();
}

#define APART_TEST(f) cmocka_unit_test_setup_teardown(f, setup, restore_window)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        APART_TEST(a_group__that_was_refused_is_given_up),
        APART_TEST(a_plan__without_its_group_has_places_for_what_was_in_it),
        APART_TEST(a_replay__goes_on_without_the_group),
    };
    return core_test_main_explained(argc, argv, tests, COUNT(tests));
}
