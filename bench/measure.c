/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * measure.c - the rounds.
 */
#include "measure.h"

#include "clock.h"
#include "openblas.h"
#include "roof.h"
#include "sleef.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ROUNDS = 101 };

static const double PREPARE_TIMEOUT = 600; /* a compiler may run */
static const double ROUND_TIMEOUT = 120;

/* ---- numbers ----------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *numbers, int n)
{
    if (n == 0) {
        return (double)NAN;
    }
    qsort(numbers, (size_t)n, sizeof(*numbers), compare_numbers);
    return n % 2 == 1 ? numbers[n / 2] : 0.5 * (numbers[n / 2 - 1] + numbers[n / 2]);
}

/* Expects what bench_median has sorted. */
static double relative_spread(const double *sorted, int n)
{
    if (n < 4) {
        return (double)NAN;
    }
    return 0.5 * (sorted[n - 1 - n / 4] - sorted[n / 4]) / sorted[n / 2];
}

/* ---- sides ------------------------------------------------------------------------------- */

static int row_threads(const struct bench_setup *setup, const struct bench_row *row)
{
    return row->threads > 0 ? row->threads : setup->machine->cpus;
}

/* Has `side` run with these settings, starting it anew when it runs with others. */
static int ensure_side(struct bench_side *side, const char *const *argv, const char *const *set)
{
    char settings[sizeof(side->settings)];
    (void)snprintf(settings, sizeof(settings), "%s %s", set[0], set[1] != NULL ? set[1] : "");
    if (side->note[0] != '\0') {
        return -1;
    }
    if (side->child.pid != 0 && strcmp(settings, side->settings) == 0) {
        return 0;
    }
    (void)bench_child_stop(&side->child);
    memcpy(side->settings, settings, sizeof(settings));
    if (bench_child_start(&side->child, argv, set) != 0) {
        (void)snprintf(side->note, sizeof(side->note), "could not start %.200s", argv[0]);
        return -1;
    }
    return 0;
}

static int ensure_ours(struct bench_setup *setup, struct bench_side *side,
                       const struct bench_row *row, const char *window)
{
    char threads[32];
    char set[32];
    (void)snprintf(threads, sizeof(threads), "BURN_THREADS=%d", row_threads(setup, row));
    (void)snprintf(set, sizeof(set), "BURN_WINDOW=%.16s", window);
    return ensure_side(side, (const char *[]){setup->self, "--worker", NULL},
                       (const char *[]){threads, set, NULL});
}

static struct bench_side *ensure_peer(struct bench_setup *setup, const struct bench_row *row)
{
    char omp[32];
    char mkl[32];
    (void)snprintf(omp, sizeof(omp), "OMP_NUM_THREADS=%d", row_threads(setup, row));
    (void)snprintf(mkl, sizeof(mkl), "MKL_NUM_THREADS=%d", row_threads(setup, row));
    const char *const set[] = {omp, mkl, NULL};
    struct bench_side *side = NULL;
    if (row->peer == BENCH_TORCH && setup->torch_peer != NULL) {
        side = &setup->torch;
        (void)ensure_side(side, (const char *[]){setup->torch_peer, NULL}, set);
    } else if (row->peer == BENCH_COMPILED && setup->python != NULL) {
        side = &setup->compiled;
        (void)ensure_side(side, (const char *[]){setup->python, setup->compiled_script, NULL}, set);
    } else if (row->peer == BENCH_OWN) {
        side = &setup->own;
        (void)ensure_ours(setup, side, row,
                          row->peer_window != NULL ? row->peer_window : row->window);
    }
    return side;
}

/* Sends a request; 0 when the answer is "ok". */
static int ask(struct bench_side *side, const char *line, double timeout, char *reply, size_t size,
               char *note, size_t note_size)
{
    if (bench_child_ask(&side->child, line, reply, size, timeout) != 0) {
        (void)snprintf(note, note_size, "the process ended or did not answer: %.40s", line);
        return -1;
    }
    if (strncmp(reply, "ok", 2) != 0) {
        const char *reason = strncmp(reply, "no ", 3) == 0 ? reply + 3 : reply;
        (void)snprintf(note, note_size, "%.200s", reason);
        return -1;
    }
    return 0;
}

/* The same, where a number follows "ok" when `out` is not NULL. */
static int request(struct bench_side *side, const char *line, double timeout, double *out,
                   char *note, size_t note_size)
{
    char reply[512];
    if (ask(side, line, timeout, reply, sizeof(reply), note, note_size) != 0) {
        return -1;
    }
    if (out != NULL && sscanf(reply, "ok %lf", out) != 1) {
        (void)snprintf(note, note_size, "an answer without a number: %.200s", reply);
        return -1;
    }
    return 0;
}

static int prepare(struct bench_side *side, const char *case_name, int64_t arg, char *note,
                   size_t note_size)
{
    char line[128];
    (void)snprintf(line, sizeof(line), "prepare %.60s %lld", case_name, (long long)arg);
    return request(side, line, PREPARE_TIMEOUT, NULL, note, note_size);
}

/* Compares what the case computes with what it, or its reference, computes in an eager process. */
static int check_work(struct bench_setup *setup, const struct bench_row *row, char *note,
                      size_t note_size)
{
    char line[128];
    char found[512];
    char wanted[512];
    (void)snprintf(line, sizeof(line), "check %.60s %lld", row->case_name, (long long)row->arg);
    if (ask(&setup->ours, line, PREPARE_TIMEOUT, found, sizeof(found), note, note_size) != 0) {
        return -1;
    }
    if (strcmp(found, "ok -") == 0) {
        return 0;
    }
    (void)snprintf(line, sizeof(line), "reference %.60s %lld", row->case_name,
                   (long long)row->arg);
    if (ensure_ours(setup, &setup->eager, row, "1") != 0) {
        (void)snprintf(note, note_size, "%.250s", setup->eager.note);
        return -1;
    }
    if (ask(&setup->eager, line, PREPARE_TIMEOUT, wanted, sizeof(wanted), note, note_size) != 0) {
        return -1;
    }
    if (strcmp(found, wanted) != 0) {
        (void)snprintf(note, note_size, "it computes %.20s, eagerly it is %.20s", found + 3,
                       wanted + 3);
        return -1;
    }
    return 0;
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* Seconds per iteration, of each round; NaN where a side failed. */
struct samples {
    double ours[MAX_ROUNDS];
    double peer[MAX_ROUNDS];
    double limit[MAX_ROUNDS];
    int n;
};

/* Seconds from before the start of a process until its first line, or what that line says. */
static double time_first_line(const char *path, const char *part, char *note, size_t note_size)
{
    struct bench_child child;
    char reply[64];
    double start = bench_now();
    if (bench_child_start(&child, (const char *[]){path, part, NULL},
                          (const char *[]){NULL}) != 0 ||
        bench_child_listen(&child, reply, sizeof(reply), ROUND_TIMEOUT) != 0) {
        (void)snprintf(note, note_size, "%.200s %.40s failed", path, part);
        return (double)NAN;
    }
    double seconds = bench_now() - start;
    (void)sscanf(reply, "took %lf", &seconds);
    (void)bench_child_stop(&child);
    return seconds;
}

static double time_round(struct bench_side *side, double seconds, char *note, size_t note_size)
{
    char line[64];
    double per_iteration = (double)NAN;
    (void)snprintf(line, sizeof(line), "round %.6f", seconds);
    (void)request(side, line, ROUND_TIMEOUT, &per_iteration, note, note_size);
    return per_iteration;
}

/* The least time that one iteration can take on this machine, measured now, for as long as the
 * sides run: a shorter look would be disturbed less often. */
static double time_limit(struct bench_setup *setup, const struct bench_row *row)
{
    int threads = row_threads(setup, row);
    double seconds = setup->seconds;
    if (row->limit == BENCH_NO_LIMIT) {
        return (double)NAN;
    }
    if (row->flops > 0 && row->bytes > 0) {
        seconds /= 2;
    }
    double limit = 0;
    if (row->flops > 0) {
        limit += row->flops / bench_peak_flops(threads, seconds);
    }
    if (row->bytes > 0) {
        int64_t elements =
            row->limit == BENCH_LIMIT_BANDWIDTH ? row->arg : bench_elements_l3(setup->machine);
        double bandwidth = bench_bandwidth(row->traffic, elements, threads, seconds);
        limit += bandwidth > 0 ? row->bytes / bandwidth : (double)NAN;
        limit += threads > 1 ? bench_round_trip() * 1e-9 : 0; /* docs/adr/047 */
    }
    return limit;
}

/* Threads of the side that has just finished may still spin while they wait for more work, some for
 * more than 5 ms. */
static void let_settle(void)
{
    const struct timespec pause = {0, 30000000};
    (void)nanosleep(&pause, NULL);
}

/* One round. Odd rounds let the peer begin, so that neither always follows the other. */
static void add_round(struct bench_setup *setup, const struct bench_row *row,
                      struct bench_side *peer, struct samples *samples, char *note,
                      size_t note_size)
{
    int i = samples->n;
    samples->peer[i] = (double)NAN;
    for (int turn = 0; turn < 2; turn++) {
        let_settle();
        int is_ours = (turn + i) % 2 == 0;
        if (row->case_name == NULL) {
            const char *other = row->peer == BENCH_TORCH ? setup->torch_peer : NULL;
            const char *path = is_ours ? setup->self : other;
            double *out = is_ours ? &samples->ours[i] : &samples->peer[i];
            *out = path != NULL ? time_first_line(path, row->part, note, note_size) : (double)NAN;
        } else if (is_ours) {
            samples->ours[i] = time_round(&setup->ours, setup->seconds, note, note_size);
        } else if (row->peer == BENCH_SLEEF) {
            samples->peer[i] = bench_sleef(row->case_name, row->arg, setup->seconds);
        } else if (row->peer == BENCH_OPENBLAS) {
            samples->peer[i] = row->per * bench_openblas(row->arg, setup->seconds);
        } else if (peer != NULL) {
            samples->peer[i] = time_round(peer, setup->seconds, note, note_size);
        }
    }
    let_settle();
    samples->limit[i] = time_limit(setup, row);
    samples->n++;
}

/* Median of `a` (b NULL) or of a / b, over rounds where all are known. */
static double median_of(const double *a, const double *b, int n, double *spread)
{
    double kept[MAX_ROUNDS];
    int n_kept = 0;
    for (int i = 0; i < n; i++) {
        double number = b != NULL ? a[i] / b[i] : a[i];
        if (!isnan(number)) {
            kept[n_kept] = number;
            n_kept++;
        }
    }
    double median = bench_median(kept, n_kept);
    if (spread != NULL) {
        *spread = relative_spread(kept, n_kept);
    }
    return median;
}

static void evaluate(const struct bench_row *row, const struct samples *samples,
                     struct bench_result *result)
{
    int n = samples->n;
    double ours = median_of(samples->ours, NULL, n, &result->spread);
    result->value = bench_row_value(row, ours);
    result->peer_value = bench_row_value(row, median_of(samples->peer, NULL, n, NULL));
    result->ratio = median_of(samples->peer, samples->ours, n, NULL);
    result->limit = bench_row_value(row, median_of(samples->limit, NULL, n, NULL));
    result->fraction = median_of(samples->limit, samples->ours, n, NULL);
    result->rounds = n;
}

/* Ours ready to be asked; the peer too, or NULL with a note. */
static int prepare_sides(struct bench_setup *setup, const struct bench_row *row,
                         struct bench_side **peer, char *note, size_t note_size)
{
    if (ensure_ours(setup, &setup->ours, row, row->window) != 0) {
        (void)snprintf(note, note_size, "%.250s", setup->ours.note);
        return -1;
    }
    if (check_work(setup, row, note, note_size) != 0 ||
        prepare(&setup->ours, row->case_name, row->arg, note, note_size) != 0) {
        return -1;
    }
    *peer = ensure_peer(setup, row);
    if (*peer == NULL) {
        return 0;
    }
    const char *name = row->peer_case != NULL ? row->peer_case : row->case_name;
    char reason[256] = "";
    if ((*peer)->note[0] != '\0' || prepare(*peer, name, row->arg, reason, sizeof(reason)) != 0) {
        (void)snprintf(note, note_size, "no peer: %.250s",
                       (*peer)->note[0] != '\0' ? (*peer)->note : reason);
        *peer = NULL;
    }
    return 0;
}

void bench_measure(struct bench_setup *setup, const struct bench_row *row,
                   struct bench_result *result)
{
    struct samples samples;
    struct bench_side *peer = NULL;
    samples.n = 0;
    memset(result, 0, sizeof(*result));
    if (row_threads(setup, row) > setup->machine->cpus) {
        (void)snprintf(result->note, sizeof(result->note), "this machine has fewer cores");
    } else if (row->case_name == NULL ||
               prepare_sides(setup, row, &peer, result->note, sizeof(result->note)) == 0) {
        for (int i = 0; i < setup->rounds && i < MAX_ROUNDS; i++) {
            add_round(setup, row, peer, &samples, result->note, sizeof(result->note));
        }
        if (row->case_name != NULL) {
            char unused[256];
            (void)request(&setup->ours, "done", ROUND_TIMEOUT, NULL, unused, sizeof(unused));
        }
        if (peer != NULL) {
            char unused[256];
            (void)request(peer, "done", ROUND_TIMEOUT, NULL, unused, sizeof(unused));
        }
    }
    bench_bandwidth_free();
    evaluate(row, &samples, result);
}

void bench_measure_end(struct bench_setup *setup)
{
    (void)bench_child_stop(&setup->ours.child);
    (void)bench_child_stop(&setup->torch.child);
    (void)bench_child_stop(&setup->compiled.child);
    (void)bench_child_stop(&setup->own.child);
    (void)bench_child_stop(&setup->eager.child);
}
