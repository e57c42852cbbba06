/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * worker.c - the line protocol by which the benchmark asks a process for work; peers speak it too.
 *
 *   prepare CASE ARG  ->  ok                    data made, warm, speed known
 *                         no TEXT               this case cannot run here, and why
 *   round SECONDS     ->  ok SECONDS_PER_ITERATION ITERATIONS
 *                         no TEXT
 *   done              ->  ok                    data freed
 *   check CASE ARG    ->  ok DIGEST             a few iterations of a case, and a number for what
 *                         ok -                  they computed; - when the case has none
 *                         no TEXT
 *   reference CASE ARG -> as check              the same of the case that it must be equal to
 *
 * Peers have the first three. One case is prepared at a time. Threads and window are set by the
 * environment of the process, so another setting is another process. The time of a round is wall
 * time of all its iterations, after a fifth as many that do not count.
 */
#include "worker.h"

#include "cases.h"
#include "clock.h"

#include <burn/ops.h>
#include <burn/tensor.h>
#include <stdio.h>
#include <string.h>

static const struct bench_case *current;
static double estimate; /* seconds per iteration */

static void answer_error(const char *where, const burn_err *err)
{
    printf("no %s: %.400s\n", where, err->text[0] != '\0' ? err->text : "failed without a text");
}

/* Runs n iterations; seconds of all, negative on failure. */
static double timed(int64_t n, burn_err *err)
{
    double start = bench_now();
    int32_t code = current->run(n, err);
    double seconds = bench_now() - start;
    return code == BURN_OK ? seconds : -1.0;
}

static void finish_case(void)
{
    if (current != NULL) {
        current->teardown();
        current = NULL;
    }
}

/* Doubles the iterations until they take long enough to know the speed. */
static int32_t warm_up(burn_err *err)
{
    if (timed(1, err) < 0) {
        return err->code;
    }
    for (int64_t n = 1;; n *= 2) {
        double seconds = timed(n, err);
        if (seconds < 0) {
            return err->code;
        }
        if (seconds > 0.02) {
            estimate = seconds / (double)n;
            return BURN_OK;
        }
    }
}

static void answer_prepare(burn_device *device, const char *name, int64_t arg)
{
    finish_case();
    const struct bench_case *found = bench_case_find(name);
    if (found == NULL) {
        printf("no such case: %.60s\n", name);
        return;
    }
    current = found;
    burn_err err = BURN_ERR_INIT;
    if (found->setup(device, arg, &err) != BURN_OK) {
        answer_error("setup", &err);
        finish_case();
        return;
    }
    if (warm_up(&err) != BURN_OK) {
        answer_error("first iterations", &err);
        finish_case();
        return;
    }
    printf("ok\n");
}

/* One iteration in so many comes before those that count: in the caches is what ran before. */
enum { WARM_UP = 5 };

static void answer_round(double seconds)
{
    if (current == NULL) {
        printf("no case is prepared\n");
        return;
    }
    int64_t n = (int64_t)(seconds / estimate);
    n = n < 1 ? 1 : n;
    burn_err err = BURN_ERR_INIT;
    double took = timed(n / WARM_UP, &err);
    took = took < 0 ? took : timed(n, &err);
    if (took < 0) {
        answer_error("round", &err);
        return;
    }
    estimate = took / (double)n;
    printf("ok %.9e %lld\n", estimate, (long long)n);
}

/* Enough iterations for a sequence of calls to be new, known, and run from the kept plan. */
enum { CHECK_RUNS = 6 };

static void answer_check(burn_device *device, const struct bench_case *found, int64_t arg)
{
    burn_err err = BURN_ERR_INIT;
    uint64_t digest = 0;
    if (found == NULL) {
        printf("no such case\n");
        return;
    }
    if (found->digest == NULL) {
        printf("ok -\n");
        return;
    }
    finish_case();
    current = found;
    if (found->setup(device, arg, &err) != BURN_OK || found->run(CHECK_RUNS, &err) != BURN_OK ||
        found->digest(&digest, &err) != BURN_OK) {
        answer_error("check", &err);
    } else {
        printf("ok %016llx\n", (unsigned long long)digest);
    }
    finish_case();
}

static const struct bench_case *find_reference(const char *name)
{
    const struct bench_case *found = bench_case_find(name);
    return found != NULL && found->reference != NULL ? bench_case_find(found->reference) : found;
}

static void answer(burn_device *device, const char *line)
{
    char name[64];
    long long arg = 0;
    double seconds = 0;
    if (sscanf(line, "prepare %63s %lld", name, &arg) == 2) {
        answer_prepare(device, name, arg);
    } else if (sscanf(line, "check %63s %lld", name, &arg) == 2) {
        answer_check(device, bench_case_find(name), arg);
    } else if (sscanf(line, "reference %63s %lld", name, &arg) == 2) {
        answer_check(device, find_reference(name), arg);
    } else if (sscanf(line, "round %lf", &seconds) == 1) {
        answer_round(seconds);
    } else if (strncmp(line, "done", 4) == 0) {
        finish_case();
        printf("ok\n");
    } else {
        printf("no such request\n");
    }
    fflush(stdout);
}

int bench_worker(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    if (device == NULL) {
        fprintf(stderr, "burn-bench: %s\n", err.text);
        return 1;
    }
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        answer(device, line);
    }
    finish_case();
    burn_shutdown();
    return 0;
}

int bench_first_result(void)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *device = burn_device_open(NULL, &err);
    const float ones[4] = {1, 1, 1, 1};
    float sums[4] = {0, 0, 0, 0};
    int64_t four = 4;
    if (device == NULL) {
        fprintf(stderr, "burn-bench: %s\n", err.text);
        return 1;
    }
    burn_tensor *a = burn_tensor_from_data(device, BURN_F32, 1, &four, ones);
    if (burn_read(burn_add(a, a), sums, sizeof(sums), &err) != BURN_OK) {
        fprintf(stderr, "burn-bench: %s\n", err.text);
        return 1;
    }
    printf("%g\n", (double)sums[0]);
    fflush(stdout);
    return 0;
}

int bench_peak_memory(const char *case_name)
{
    burn_err err = BURN_ERR_INIT;
    burn_memory memory;
    BURN_INIT(&memory, burn_memory);
    burn_device *device = burn_device_open(NULL, &err);
    const struct bench_case *found = bench_case_find(case_name);
    if (device == NULL || found == NULL || found->setup(device, 8, &err) != BURN_OK ||
        found->run(3, &err) != BURN_OK || burn_memory_report(device, &memory, &err) != BURN_OK) {
        fprintf(stderr, "burn-bench: %.40s: %s\n", case_name,
                found != NULL ? err.text : "no such case");
        return 1;
    }
    found->teardown();
    printf("took %.0f\n", (double)memory.peak_in_use);
    fflush(stdout);
    burn_shutdown();
    return 0;
}
