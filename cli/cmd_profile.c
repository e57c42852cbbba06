/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_profile.c - `burn profile -- PROGRAM ARGS...`: runs a program and tells what its kernels, its
 * places and its threads spent their time on; --trace writes a file that trace viewers open.
 *
 * The program is told a folder of its own (BURN_PROFILE); see program.h and <burn/profile.h>.
 */
#include "profile.h"
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct settings {
    const char *trace; /* NULL: none */
    int64_t top;
    int shapes;
} settings;

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Units per ns are giga-units per second. */
static double rate(double amount, uint64_t ns)
{
    return ns > 0 ? amount / (double)ns : 0.0;
}

/* What a lane of launches says of its time. */
typedef struct span {
    uint64_t launches;
    uint64_t wall_ns; /* from its first launch to the end of its last */
    uint64_t outside_ns;
} span;

static span span_of(const burn_profile_lane *lane)
{
    span s = {lane->n_events + lane->homeless, 0, 0};
    s.wall_ns = lane->last_ns > lane->first_ns ? lane->last_ns - lane->first_ns : 0;
    s.outside_ns = s.wall_ns > lane->busy_ns ? s.wall_ns - lane->busy_ns : 0;
    return s;
}

static const char *clock_text(uint32_t clock)
{
    return clock == BURN_PROFILE_HOST     ? "host clock"
           : clock == BURN_PROFILE_DEVICE ? "device clock"
                                          : "submission to completion, at least what it took";
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_rate(double value)
{
    if (value > 0.0) {
        printf("  %8.2f", value);
    } else {
        printf("  %8s", "-");
    }
}

static void print_ops(const cli_sums *ops, uint64_t total, const settings *how)
{
    uint64_t rest_ns = 0;
    uint64_t rest_calls = 0;
    printf("\n    calls    total ms     mean us  share   GFLOP/s      GB/s  op, kernel\n");
    for (uint32_t i = 0; i < ops->n; i++) {
        const cli_sum *s = &ops->sums[i];
        if (i >= how->top) {
            rest_ns += s->ns;
            rest_calls += s->calls;
            continue;
        }
        printf("%9llu  %10.3f  %10.2f  %4.1f%%", (unsigned long long)s->calls, ms(s->ns),
               (double)s->ns / (double)s->calls / 1e3, share(s->ns, total));
        print_rate(rate(s->flops, s->flops_ns));
        print_rate(rate(s->bytes, s->ns));
        printf("  %s  %s%s%s\n", s->op, s->row, s->shapes != NULL ? "  " : "",
               s->shapes != NULL ? s->shapes : "");
    }
    if (rest_calls > 0) {
        printf("%9llu  %10.3f  %10s  %4.1f%%  %8s  %8s  %u more; --top N shows N\n",
               (unsigned long long)rest_calls, ms(rest_ns), "", share(rest_ns, total), "", "",
               (unsigned)(ops->n - (uint32_t)how->top));
    }
}

static void print_places(const cli_sums *places, uint64_t total)
{
    if (places->n == 0 || (places->n == 1 && places->sums[0].place[0] == '\0')) {
        return;
    }
    printf("\n launches  kernels ms  with parts  share    times     wall ms  place\n");
    for (uint32_t i = 0; i < places->n; i++) {
        const cli_sum *s = &places->sums[i];
        printf("%9llu  %10.3f  %10.3f  %4.1f%%", (unsigned long long)s->calls, ms(s->ns),
               ms(s->inner_ns), share(s->inner_ns, total));
        if (s->times > 0) {
            printf("  %7llu  %10.3f", (unsigned long long)s->times, ms(s->wall_ns));
        } else {
            printf("  %7s  %10s", "-", "-");
        }
        printf("  %s\n", s->place[0] != '\0' ? s->place : "(none)");
    }
}

static void print_lane(const burn_profile_lane *lane)
{
    span s = span_of(lane);
    printf("thread %u on %s: %llu launch%s, %.3f ms in kernels of %.3f ms (%.1f%%), %.3f ms "
           "outside; %s\n",
           lane->thread, lane->device, (unsigned long long)s.launches,
           s.launches == 1 ? "" : "es", ms(lane->busy_ns), ms(s.wall_ns),
           share(lane->busy_ns, s.wall_ns), ms(s.outside_ns), clock_text(lane->clock));
    if (lane->untimed + lane->homeless > 0) {
        printf("  %llu more without a time, %llu without a line above\n",
               (unsigned long long)lane->untimed, (unsigned long long)lane->homeless);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *ops_json(const cli_sums *ops, uint64_t total)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < ops->n; i++) {
        const cli_sum *s = &ops->sums[i];
        json_t *o = json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "op",
                              cli_json_text(s->op), "kernel", cli_json_text(s->row), "shapes",
                              cli_json_text(s->shapes), "calls", (json_int_t)s->calls, "ns",
                              (json_int_t)s->ns, "min_ns", (json_int_t)s->min_ns, "max_ns",
                              (json_int_t)s->max_ns, "share", share(s->ns, total) / 100.0,
                              "gflops", rate(s->flops, s->flops_ns), "gbytes",
                              rate(s->bytes, s->ns));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *places_json(const cli_sums *places)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < places->n; i++) {
        const cli_sum *s = &places->sums[i];
        json_t *o = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "place", cli_json_text(s->place),
                              "launches", (json_int_t)s->calls, "ns", (json_int_t)s->ns,
                              "with_parts_ns", (json_int_t)s->inner_ns, "times",
                              (json_int_t)s->times, "wall_ns", (json_int_t)s->wall_ns);
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *lane_json(const burn_profile_lane *lane)
{
    span s = span_of(lane);
    const char *clock = lane->clock == BURN_PROFILE_HOST     ? "host"
                        : lane->clock == BURN_PROFILE_DEVICE ? "device"
                                                             : "points";
    uint64_t kept = lane->n_events < lane->cap_events ? lane->n_events : lane->cap_events;
    return json_pack("{s:I, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "thread",
                     (json_int_t)lane->thread, "device", cli_json_text(lane->device), "clock",
                     clock, "launches", (json_int_t)s.launches, "kernel_ns",
                     (json_int_t)lane->busy_ns, "wall_ns", (json_int_t)s.wall_ns, "outside_ns",
                     (json_int_t)s.outside_ns, "untimed", (json_int_t)lane->untimed, "not_kept",
                     (json_int_t)lane->homeless, "events_dropped",
                     (json_int_t)(lane->n_events - kept));
}

/* ---- a process ------------------------------------------------------------------------------- */

static uint64_t kernel_time(const cli_lanes *lanes, uint32_t from, uint32_t to)
{
    uint64_t total = 0;
    for (uint32_t l = from; l < to; l++) {
        total += lanes->lanes[l]->kind == BURN_PROFILE_LAUNCHES ? lanes->lanes[l]->busy_ns : 0;
    }
    return total;
}

static void print_process(const cli_lanes *lanes, uint32_t from, uint32_t to, const cli_sums *ops,
                          const cli_sums *places, const settings *how)
{
    uint64_t total = kernel_time(lanes, from, to);
    printf("\nprocess %u (%s)\n", lanes->lanes[from]->pid, lanes->lanes[from]->program);
    print_ops(ops, total, how);
    print_places(places, total);
    printf("\n");
    for (uint32_t l = from; l < to; l++) {
        if (lanes->lanes[l]->kind == BURN_PROFILE_LAUNCHES) {
            print_lane(lanes->lanes[l]);
        }
    }
}

static json_t *process_json(const cli_lanes *lanes, uint32_t from, uint32_t to,
                            const cli_sums *ops, const cli_sums *places)
{
    json_t *threads = json_array();
    for (uint32_t l = from; l < to; l++) {
        if (lanes->lanes[l]->kind == BURN_PROFILE_LAUNCHES) {
            (void)json_array_append_new(threads, lane_json(lanes->lanes[l]));
        }
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "pid", (json_int_t)lanes->lanes[from]->pid,
                     "program", cli_json_text(lanes->lanes[from]->program), "ops",
                     ops_json(ops, kernel_time(lanes, from, to)), "places", places_json(places),
                     "threads", threads);
}

/* Tells of each process; how many there were. With `list` it goes there. */
static uint32_t tell(cli_lanes *lanes, json_t *list, const settings *how)
{
    uint32_t n = 0;
    uint32_t to = 0;
    for (uint32_t from = 0; from < lanes->n; from = to) {
        cli_sums ops = {NULL, 0};
        cli_sums places = {NULL, 0};
        for (to = from; to < lanes->n && lanes->lanes[to]->pid == lanes->lanes[from]->pid;) {
            to++;
        }
        int by = how->shapes || list != NULL ? CLI_BY_SHAPES : CLI_BY_ROW;
        if (!cli_sum_ops(lanes, from, to, by, &ops) || !cli_sum_places(lanes, from, to, &places)) {
            lanes->failed = 1;
        } else if (list != NULL) {
            (void)json_array_append_new(list, process_json(lanes, from, to, &ops, &places));
        } else {
            print_process(lanes, from, to, &ops, &places, how);
        }
        free(ops.sums);
        free(places.sums);
        n++;
    }
    return n;
}

static int finish(cli *c, cli_lanes *lanes, int end, const settings *how)
{
    json_t *list = c->json ? json_array() : NULL;
    uint32_t n = tell(lanes, list, how);
    int traced = how->trace == NULL || cli_profile_trace(lanes, how->trace);
    if (lanes->failed || !traced) {
        json_decref(list);
        return traced ? cli_error(c, BURN_E_NO_MEMORY, "not enough memory for all that there is")
                      : cli_error(c, BURN_E_IO, "%s cannot be written: %s", how->trace,
                                  strerror(errno));
    }
    return cli_program_finish(c, end, n, list, NULL);
}

int cli_profile(cli *c)
{
    settings how = {NULL, 20, 0};
    const char *top = NULL;
    const cli_option options[] = {
        {"--trace", &how.trace, NULL, 0},
        {"--top", &top, NULL, 0},
        {"--shapes", NULL, &how.shapes, 0},
    };
    char **program = cli_program(c);
    int status = cli_parse(c, options, sizeof(options) / sizeof(options[0]), NULL);
    if (status >= 0) {
        return status;
    }
    if (top != NULL && !cli_number(c, "--top", top, 1, 1000000, &how.top)) {
        return CLI_USAGE;
    }
    if (program == NULL) {
        return cli_usage(c, "which program? Write it behind --");
    }
    /* Asked before the program runs, not after it. */
    FILE *trace = how.trace != NULL ? fopen(how.trace, "we") : NULL;
    if (how.trace != NULL && (trace == NULL || fclose(trace) != 0)) {
        return cli_error(c, BURN_E_IO, "--trace %s cannot be written: %s", how.trace,
                         strerror(errno));
    }
    int end = 0;
    cli_lanes lanes = {NULL, 0, 0};
    status = cli_program_watch(c, program, "BURN_PROFILE", cli_lanes_read, &lanes, &end);
    status = status >= 0 ? status : finish(c, &lanes, end, &how);
    cli_lanes_free(&lanes);
    return status;
}
