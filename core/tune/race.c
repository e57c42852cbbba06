/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * race.c - see race.h. A sample is as many runs as take about SAMPLE seconds, so that the clock's
 * grain does not decide; a candidate's time is its best sample. What disturbs a machine only ever
 * adds time, and on a busy one most samples are disturbed: medians then tell of the neighbours.
 *
 * Who is put aside was clearly slower in samples taken side by side. The leader's best sample can
 * only get better in these rounds, so that stays true; what was compared with samples of another
 * time (a slow candidate's first runs) comes back when the leader turns out slower than it.
 */
#include "tune/race.h"

#include <string.h>

#define SAMPLE    2e-4
#define MAX_RUNS  2000u
#define N_SAMPLES 9
/* Each has so many samples beside the others', also where that takes longer than the budget; but
 * not longer than PATIENCE budgets. */
#define N_LEAST  3
#define PATIENCE 10.0
/* Slower than the best by more than this: out after so many samples, since fewer may all have been
 * disturbed. */
#define SLOWER 1.15
#define N_SURE 5
/* Out after the first runs: slower by more than this, and each sample would cost that part of the
 * budget. */
#define CLEARLY 2.0
#define COSTLY  (1.0 / 12)
/* So often may some come back. */
#define COMEBACKS 3
/* Candidate 0 goes unless the winner needs less than this part of its time. */
#define WORTH 0.97
/* So near to the bound that nothing better is possible. */
#define AT_BOUND 1.03

typedef struct lane {
    uint32_t n; /* samples; the best one is the race's `seconds` */
    uint32_t repeats;
    int out;
} lane;

typedef struct course {
    burni_race *race;
    double spent;
    lane lanes[BURNI_RACE_MAX];
} course;

static double run_some(course *c, uint32_t i, uint32_t repeats)
{
    double seconds = c->race->run(c->race->user, i, repeats);
    c->race->runs += repeats;
    if (seconds < 0.0) {
        c->lanes[i].out = 1;
        c->lanes[i].n = 0;
        c->race->seconds[i] = -1.0;
        return -1.0;
    }
    c->spent += seconds;
    return seconds / repeats;
}

/* The first runs touch memory and code for the first time: the better of two says how many runs
 * make a sample. */
static double warm_up(course *c, uint32_t i)
{
    double first = run_some(c, i, 1);
    double second = first >= 0.0 && first < c->race->budget / 4 ? run_some(c, i, 1) : first;
    if (c->lanes[i].out) {
        return -1.0;
    }
    double best = second < first ? second : first;
    double repeats = best > 0.0 ? SAMPLE / best : MAX_RUNS;
    c->lanes[i].repeats = repeats < 1.0 ? 1u : repeats > MAX_RUNS ? MAX_RUNS : (uint32_t)repeats;
    if (best > c->race->budget / 8) {
        /* So slow that this was a sample. */
        c->lanes[i].n = 1;
        c->race->seconds[i] = best;
    }
    return best;
}

static void sample(course *c, uint32_t i)
{
    lane *l = &c->lanes[i];
    double seconds = run_some(c, i, l->repeats);
    if (!l->out) {
        double best = c->race->seconds[i];
        c->race->seconds[i] = l->n > 0 && best < seconds ? best : seconds;
        l->n++;
    }
}

static int is_at_bound(const course *c, uint32_t i)
{
    const burni_race *race = c->race;
    return race->bound > 0.0 && c->lanes[i].n > 0 && !c->lanes[i].out &&
           race->seconds[i] <= race->bound * AT_BOUND;
}

static int is_over(const course *c)
{
    return c->spent > c->race->budget;
}

/* The best of those still in it; `n` when there is none. */
static uint32_t leader(const course *c)
{
    uint32_t best = c->race->n;
    for (uint32_t i = 0; i < c->race->n; i++) {
        if (c->lanes[i].n > 0 && !c->lanes[i].out &&
            (best == c->race->n || c->race->seconds[i] < c->race->seconds[best])) {
            best = i;
        }
    }
    return best;
}

/* Candidate 0 runs alone first: often it is as fast as the device can be. */
static int defender_is_enough(course *c)
{
    if (warm_up(c, 0) < 0.0) {
        return 0;
    }
    for (int k = 0; k < N_LEAST && !c->lanes[0].out && (c->lanes[0].n == 0 || !is_over(c)); k++) {
        sample(c, 0);
    }
    return is_at_bound(c, 0);
}

static void look_at_others(course *c)
{
    for (uint32_t i = 1; i < c->race->n; i++) {
        double seconds = warm_up(c, i);
        uint32_t best = leader(c);
        if (seconds > COSTLY * c->race->budget && best < c->race->n && best != i &&
            seconds > CLEARLY * c->race->seconds[best]) {
            c->lanes[i].out = 1;
            c->race->seconds[i] = seconds;
        }
    }
}

static uint32_t drop_slow_ones(course *c, uint32_t best)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < c->race->n; i++) {
        lane *l = &c->lanes[i];
        if (i != best && l->n >= N_SURE &&
            c->race->seconds[i] > SLOWER * c->race->seconds[best]) {
            l->out = 1;
        }
        left += !l->out;
    }
    return left;
}

/* What somebody did before was at another time: a machine that was busy then would decide. */
static void begin_rounds(course *c)
{
    c->spent = 0.0;
    for (uint32_t i = 0; i < c->race->n; i++) {
        c->lanes[i].n = 0;
    }
}

static int has_time(const course *c, int round)
{
    return !is_over(c) || (round < N_LEAST && c->spent <= PATIENCE * c->race->budget);
}

static void rounds(course *c)
{
    begin_rounds(c);
    for (int k = 0; k < N_SAMPLES; k++) {
        for (uint32_t i = 0; i < c->race->n; i++) {
            /* Each is sampled once, however late it is. */
            if (!c->lanes[i].out && (c->lanes[i].n == 0 || has_time(c, k))) {
                sample(c, i);
            }
        }
        uint32_t best = leader(c);
        if (best == c->race->n || drop_slow_ones(c, best) < 2 || !has_time(c, k + 1)) {
            return;
        }
        if (k >= 1 && is_at_bound(c, best)) {
            return;
        }
    }
}

/* Those that were put aside and whose time is below the leader's run again, side by side with all
 * that are still in it. 0: there are none. */
static int bring_back(course *c)
{
    uint32_t best = leader(c);
    int any = 0;
    for (uint32_t i = 0; i < c->race->n && best < c->race->n; i++) {
        double seconds = c->race->seconds[i];
        if (c->lanes[i].out && seconds > 0.0 && seconds < c->race->seconds[best]) {
            c->lanes[i].out = 0;
            any = 1;
        }
    }
    return any;
}

/* The lowest time of all, whenever it was seen; `n` when there is none. */
static uint32_t fastest(const burni_race *race)
{
    uint32_t best = race->n;
    for (uint32_t i = 0; i < race->n; i++) {
        if (race->seconds[i] > 0.0 && (best == race->n || race->seconds[i] < race->seconds[best])) {
            best = i;
        }
    }
    return best;
}

static uint32_t find_rival(const burni_race *race)
{
    uint32_t rival = race->n;
    if (race->winner != 0 && race->seconds[0] > 0.0) {
        return 0;
    }
    for (uint32_t i = 0; i < race->n; i++) {
        if (i != race->winner && race->seconds[i] > 0.0 &&
            (rival == race->n || race->seconds[i] < race->seconds[rival])) {
            rival = i;
        }
    }
    return rival;
}

int burni_race_run(burni_race *race)
{
    course c;
    memset(&c, 0, sizeof(c));
    c.race = race;
    memset(race->seconds, 0, sizeof(race->seconds));
    race->winner = 0;
    race->at_roof = 0;
    race->runs = 0;
    if (!defender_is_enough(&c)) {
        look_at_others(&c);
        rounds(&c);
        for (int k = 0; k < COMEBACKS && bring_back(&c); k++) {
            rounds(&c);
        }
    }
    uint32_t best = fastest(race);
    if (best == race->n) {
        race->rival = race->n;
        return 0;
    }
    double defender = race->seconds[0];
    int keeps = best != 0 && defender > 0.0 && race->seconds[best] > WORTH * defender;
    race->winner = keeps ? 0 : best;
    race->at_roof = (uint32_t)is_at_bound(&c, race->winner);
    race->rival = find_rival(race);
    return 1;
}
