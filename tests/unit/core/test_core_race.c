/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_core_race.c - the tuner's policy, with times that are made up: no clock is read, so each
 * race has one right end. The device and the window of the command line do not matter here.
 */
#include "core_test.h"

#include "core/tune/race.h"

#include <string.h>

typedef struct made_up {
    double seconds[BURNI_RACE_MAX];
    uint32_t runs[BURNI_RACE_MAX];
    double noise;
} made_up;

static double run_made_up(void *user, uint32_t candidate, uint32_t repeats)
{
    made_up *m = user;
    m->runs[candidate] += repeats;
    /* Every fifth sample is disturbed. */
    double factor = m->noise > 0.0 && m->runs[candidate] % 5 == 0 ? m->noise : 1.0;
    return m->seconds[candidate] < 0.0 ? -1.0 : m->seconds[candidate] * repeats * factor;
}

static burni_race race_of(made_up *m, uint32_t n, double bound)
{
    burni_race race;
    memset(&race, 0, sizeof(race));
    race.n = n;
    race.bound = bound;
    race.budget = 0.1;
    race.run = run_made_up;
    race.user = m;
    assert_int_equal(burni_race_run(&race), 1);
    return race;
}

static void a_race__is_won_by_the_fastest(void **state)
{
    (void)state;
    made_up m = {{1e-3, 4e-4, 9e-4, 5e-2}, {0}, 3.0};
    burni_race race = race_of(&m, 4, 0.0);
    assert_int_equal(race.winner, 1);
    assert_int_equal(race.rival, 0);
    assert_int_equal(race.at_roof, 0);
    assert_true(race.seconds[0] == 1e-3 && race.seconds[1] == 4e-4);
    assert_true(m.runs[3] <= 2); /* a clear loser is dropped at once */
}

static void a_race__keeps_the_first_unless_it_pays(void **state)
{
    (void)state;
    made_up m = {{1e-3, 9.8e-4}, {0}, 0.0};
    assert_int_equal(race_of(&m, 2, 0.0).winner, 0);
    made_up clear = {{1e-3, 9.5e-4}, {0}, 0.0};
    burni_race race = race_of(&clear, 2, 0.0);
    assert_int_equal(race.winner, 1);
}

static void a_race__ends_where_nothing_better_is_possible(void **state)
{
    (void)state;
    made_up m = {{1e-3, 1e-4}, {0}, 0.0};
    burni_race race = race_of(&m, 2, 9.9e-4);
    assert_int_equal(race.winner, 0);
    assert_int_equal(race.at_roof, 1);
    assert_int_equal(race.rival, 2); /* nobody else ran */
    assert_int_equal(m.runs[1], 0);
    made_up far = {{1e-3, 1e-4}, {0}, 0.0};
    assert_int_equal(race_of(&far, 2, 5e-5).winner, 1);
}

static void a_race__goes_on_without_those_that_fail(void **state)
{
    (void)state;
    made_up m = {{-1.0, 2e-3, -1.0}, {0}, 0.0};
    burni_race race = race_of(&m, 3, 0.0);
    assert_int_equal(race.winner, 1);
    assert_int_equal(race.rival, 3);
    made_up none = {{-1.0, -1.0}, {0}, 0.0};
    burni_race all_fail;
    memset(&all_fail, 0, sizeof(all_fail));
    all_fail.n = 2;
    all_fail.budget = 0.1;
    all_fail.run = run_made_up;
    all_fail.user = &none;
    assert_int_equal(burni_race_run(&all_fail), 0);
    assert_int_equal(all_fail.winner, 0);
}

static void a_slow_race__keeps_to_its_budget(void **state)
{
    (void)state;
    made_up m = {{0.2, 0.1, 0.3}, {0}, 0.0};
    burni_race race = race_of(&m, 3, 0.0);
    assert_int_equal(race.winner, 1);
    assert_true(m.runs[0] + m.runs[1] + m.runs[2] <= 9);
}

/* Candidate 0 is disturbed at first, when it runs alone. */
static double run_disturbed(void *user, uint32_t candidate, uint32_t repeats)
{
    made_up *m = user;
    m->runs[candidate]++;
    double factor = candidate == 0 && m->runs[0] <= 3 ? 10.0 : 1.0;
    return m->seconds[candidate] * repeats * factor;
}

static void a_race__is_decided_by_what_ran_side_by_side(void **state)
{
    (void)state;
    made_up m = {{4e-3, 6e-3}, {0}, 0.0};
    burni_race race;
    memset(&race, 0, sizeof(race));
    race.n = 2;
    race.budget = 0.1;
    race.run = run_disturbed;
    race.user = &m;
    assert_int_equal(burni_race_run(&race), 1);
    assert_int_equal(race.winner, 0);
    assert_true(race.seconds[0] == 4e-3 && race.seconds[1] == 6e-3);
}

/* ---- scripts --------------------------------------------------------------------------------- */

/* A clock that follows a script: how long run number `n` of a candidate takes. */
typedef struct script {
    double (*seconds)(uint64_t *random, uint32_t candidate, uint32_t n);
    uint64_t random;
    uint32_t calls[BURNI_RACE_MAX];
} script;

static double run_script(void *user, uint32_t candidate, uint32_t repeats)
{
    script *s = user;
    return s->seconds(&s->random, candidate, s->calls[candidate]++) * repeats;
}

static burni_race race_by(script *s, uint32_t n)
{
    burni_race race;
    memset(&race, 0, sizeof(race));
    race.n = n;
    race.budget = 0.1;
    race.run = run_script;
    race.user = s;
    assert_int_equal(burni_race_run(&race), 1);
    return race;
}

/* Candidate 0 is fast as long as it runs alone, when candidate 1 is put aside for good reasons. */
static double slower_later(uint64_t *random, uint32_t candidate, uint32_t n)
{
    (void)random;
    return candidate == 1 ? 0.03 : n < 3 ? 0.01 : 0.1;
}

static void a_race__takes_those_back_that_were_put_aside_too_early(void **state)
{
    (void)state;
    script s = {slower_later, 0, {0}};
    burni_race race = race_by(&s, 2);
    assert_int_equal(race.winner, 1);
    assert_true(race.seconds[0] == 0.1 && race.seconds[1] == 0.03);
}

/* The faster one meets its neighbours more often: seven of nine samples take three times longer. */
static double mostly_disturbed(uint64_t *random, uint32_t candidate, uint32_t n)
{
    (void)random;
    return candidate == 0 ? 1e-3 : n % 9 < 7 ? 2.4e-3 : 0.8e-3;
}

static void a_race__is_decided_by_the_best_samples(void **state)
{
    (void)state;
    script s = {mostly_disturbed, 0, {0}};
    /* Five samples decide who goes on: one of these is quiet. */
    s.calls[1] = 3;
    burni_race race = race_by(&s, 2);
    assert_int_equal(race.winner, 1);
    assert_true(race.seconds[1] == 0.8e-3);
}

/* Half of all runs take up to eight times as long, cold ones four times more. */
static double busy(uint64_t *random, uint32_t candidate, uint32_t n)
{
    static const double quiet[4] = {2e-5, 1.4e-5, 3e-5, 1.9e-5};
    uint32_t dice = next_random(random);
    double factor = dice % 2 == 0 ? 1.0 : 1.0 + (double)(dice / 2 % 700) / 100.0;
    return quiet[candidate] * factor * (n == 0 ? 4.0 : 1.0);
}

static void a_race__on_a_busy_machine_is_won_by_the_fastest(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        script s = {busy, seed * 7919, {0}};
        burni_race race = race_by(&s, 4);
        for (uint32_t i = 0; i < 4; i++) {
            double least = race.winner == 0 ? 0.97 : 1.0;
            assert_true(race.seconds[i] >= least * race.seconds[race.winner]);
        }
        wrong += race.winner != 1;
    }
    assert_in_range(wrong, 0, 16);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_race__is_won_by_the_fastest),
        CORE_TEST(a_race__keeps_the_first_unless_it_pays),
        CORE_TEST(a_race__ends_where_nothing_better_is_possible),
        CORE_TEST(a_race__goes_on_without_those_that_fail),
        CORE_TEST(a_slow_race__keeps_to_its_budget),
        CORE_TEST(a_race__is_decided_by_what_ran_side_by_side),
        CORE_TEST(a_race__takes_those_back_that_were_put_aside_too_early),
        CORE_TEST(a_race__is_decided_by_the_best_samples),
        CORE_TEST(a_race__on_a_busy_machine_is_won_by_the_fastest),
    };
    return core_test_main(argc, argv, tests, COUNT(tests));
}
