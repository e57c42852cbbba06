/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * main.c - burn-bench: options, the peers that are there, the loop over the rows.
 *
 * The program plays three parts: the one that measures; with --worker the one that is measured (in
 * a process of its own, since threads and window are fixed at a process's start); and with
 * --first-result, --list10 or --load-flex a process whose start is timed, with --peak=CASE one
 * whose memory is measured. README.md explains the numbers.
 */
#include "budget.h"
#include "child.h"
#include "machine.h"
#include "measure.h"
#include "report.h"
#include "rows.h"
#include "worker.h"

#include <fnmatch.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *only;
    const char *json;
    const char *record;
    const char *revision;
    double seconds;
    int rounds;
    int quick;
    int no_peer;
    int list;
    int budgets;
};

static const char USAGE[] =
    "usage: burn-bench [options]\n"
    "  --quick            few short rounds: a few minutes without a peer\n"
    "  --only PATTERN     rows whose name matches, e.g. 'sgemm.*'; commas separate several\n"
    "  --no-peer          do not run PyTorch beside it\n"
    "  --rounds N         rounds per row (15; quick: 5; at most 101)\n"
    "  --seconds S        length of a round (0.1; quick: 0.03)\n"
    "  --json FILE        write the rows as JSON; - is standard output, the table then goes to\n"
    "                     standard error\n"
    "  --record[=FILE]    append the rows to a history (bench/history.jsonl)\n"
    "  --revision TEXT    revision of the sources, for the record\n"
    "  --budgets          count the budgets at the end; status 3 when one is missed, 4 when\n"
    "                     none could be judged\n"
    "  --list             names of the rows\n"
    "PyTorch is looked for in .venv below the current folder, or with the Python that\n"
    "BURN_BENCH_TORCH names; the C++ peer is built when it is first needed.\n";

/* ---- options ----------------------------------------------------------------------------- */

static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"quick", no_argument, NULL, 'q'},         {"only", required_argument, NULL, 'o'},
        {"no-peer", no_argument, NULL, 'n'},       {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'}, {"json", required_argument, NULL, 'j'},
        {"record", optional_argument, NULL, 'a'},  {"revision", required_argument, NULL, 'v'},
        {"list", no_argument, NULL, 'l'},          {"budgets", no_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    int option = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'q':
            options->quick = 1;
            break;
        case 'o':
            options->only = optarg;
            break;
        case 'n':
            options->no_peer = 1;
            break;
        case 'r':
            options->rounds = atoi(optarg);
            break;
        case 's':
            options->seconds = atof(optarg);
            break;
        case 'j':
            options->json = optarg;
            break;
        case 'a':
            options->record = optarg != NULL ? optarg : "bench/history.jsonl";
            break;
        case 'v':
            options->revision = optarg;
            break;
        case 'l':
            options->list = 1;
            break;
        case 'b':
            options->budgets = 1;
            break;
        default:
            return -1;
        }
    }
    if (optind != argc) {
        return -1;
    }
    options->rounds = options->rounds > 0 ? options->rounds : options->quick ? 5 : 15;
    options->seconds = options->seconds > 0 ? options->seconds : options->quick ? 0.03 : 0.1;
    return 0;
}

/* True when the name matches one of the patterns, or when there are none. */
static int is_wanted(const char *name, const char *patterns)
{
    if (patterns == NULL) {
        return 1;
    }
    while (*patterns != '\0') {
        char pattern[128];
        size_t length = strcspn(patterns, ",");
        (void)snprintf(pattern, sizeof(pattern), "%.*s", (int)length, patterns);
        if (fnmatch(pattern, name, 0) == 0) {
            return 1;
        }
        patterns += length + (patterns[length] == ',');
    }
    return 0;
}

/* ---- peers ------------------------------------------------------------------------------- */

struct paths {
    char self[PATH_MAX];
    char torch_peer[PATH_MAX + 16];
    char python[PATH_MAX];
    char build[PATH_MAX];
    char compiled[PATH_MAX];
};

static int find_self(struct paths *paths)
{
    ssize_t n = readlink("/proc/self/exe", paths->self, sizeof(paths->self) - 1);
    if (n <= 0) {
        return -1;
    }
    paths->self[n] = '\0';
    return 0;
}

/* Finds PyTorch and has the C++ peer built; says on standard error what is absent and why. */
static void find_peers(struct paths *paths, struct bench_setup *setup)
{
    const char *wanted = getenv("BURN_BENCH_TORCH");
    const char *python = wanted != NULL ? wanted : ".venv/bin/python";
    if (access(python, X_OK) != 0) {
        fprintf(stderr, "burn-bench: no PyTorch beside it: %s is no program\n", python);
        return;
    }
    (void)snprintf(paths->python, sizeof(paths->python), "%s", python);
    (void)snprintf(paths->build, sizeof(paths->build), "%s/peer/build.sh", BENCH_SOURCE);
    (void)snprintf(paths->compiled, sizeof(paths->compiled), "%s/peer/compiled.py", BENCH_SOURCE);
    const char *slash = strrchr(paths->self, '/');
    (void)snprintf(paths->torch_peer, sizeof(paths->torch_peer), "%.*s/torch-peer",
                   (int)(slash - paths->self), paths->self);
    const char *const build[] = {paths->build, paths->python, paths->torch_peer, NULL};
    int status = bench_child_run(build);
    if (status != 0) {
        fprintf(stderr, "burn-bench: no PyTorch C++ peer: %s ended with %d\n", paths->build,
                status);
    } else {
        setup->torch_peer = paths->torch_peer;
    }
    if (status != 3) {
        setup->python = paths->python;
        setup->compiled_script = paths->compiled;
    }
}

/* ---- the loop ---------------------------------------------------------------------------- */

static int select_rows(const struct bench_machine *machine, const struct options *options,
                       struct bench_row *out)
{
    struct bench_row all[BENCH_MAX_ROWS];
    int n_all = bench_rows(machine, all);
    int n = 0;
    for (int i = 0; i < n_all; i++) {
        if (is_wanted(all[i].name, options->only)) {
            out[n] = all[i];
            n++;
        }
    }
    return n;
}

/* Rows whose only purpose is a peer that is absent are left out. */
static int is_pointless(const struct bench_row *row, const struct bench_setup *setup)
{
    return row->peer == BENCH_COMPILED && setup->python == NULL;
}

static int drop_pointless(struct bench_row *rows, int n, const struct bench_setup *setup)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (!is_pointless(&rows[i], setup)) {
            rows[kept] = rows[i];
            kept++;
        }
    }
    return kept;
}

static int write_file(const char *path, const char *mode, const struct bench_report *report,
                      int one_line)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, mode);
    int result = file != NULL ? bench_write_json(file, report, one_line) : -1;
    if (file != NULL && file != stdout && fclose(file) != 0) {
        result = -1;
    }
    if (result != 0) {
        fprintf(stderr, "burn-bench: could not write %s\n", path);
    }
    return result;
}

static int write_report(const struct options *options, const struct bench_report *report)
{
    int result = 0;
    if (options->json != NULL) {
        result |= write_file(options->json, "w", report, 0);
    }
    if (options->record != NULL) {
        result |= write_file(options->record, "a", report, 1);
    }
    return result;
}

/* Says how many budgets were met; returns the exit status. */
static int count_budgets(FILE *out, const struct bench_row *rows,
                         const struct bench_result *results, int n)
{
    int count[3] = {0};
    for (int i = 0; i < n; i++) {
        const struct bench_budget *budget = NULL;
        while ((budget = bench_budget_next(&rows[i], budget)) != NULL) {
            count[bench_judge(budget, &results[i])]++;
        }
    }
    fprintf(out, "budgets: %d met, %d missed, %d not judged (what they compare with is not here)\n",
            count[BENCH_MET], count[BENCH_MISSED], count[BENCH_UNKNOWN]);
    return count[BENCH_MISSED] > 0 ? 3 : count[BENCH_MET] == 0 ? 4 : 0;
}

/* Measures the rows. Returns the exit status: 1 when a row of ours has no value. */
static int measure_rows(const struct options *options, struct bench_setup *setup,
                        struct bench_row *rows, int n)
{
    static struct bench_result results[BENCH_MAX_ROWS];
    int to_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
    FILE *table = to_stdout ? stderr : stdout;
    int status = 0;
    double others = bench_machine_others();
    bench_table_head(table, setup->machine, others);
    for (int i = 0; i < n; i++) {
        bench_measure(setup, &rows[i], &results[i]);
        bench_table_row(table, &rows[i], &results[i]);
        int can_run = rows[i].threads <= setup->machine->cpus;
        status |= can_run && isnan(results[i].value);
    }
    bench_measure_end(setup);
    double others_at_end = bench_machine_others();
    struct bench_report report = {
        .machine = setup->machine,
        .revision = options->revision,
        .device = getenv("BURN_DEVICE"),
        .others = others > others_at_end ? others : others_at_end,
        .quick = options->quick,
        .has_torch = setup->torch_peer != NULL,
        .n_rows = n,
        .rows = rows,
        .results = results,
    };
    if (write_report(options, &report) != 0) {
        return 1;
    }
    int missed = options->budgets ? count_budgets(table, rows, results, n) : 0;
    return status != 0 ? status : missed;
}

static int run_bench(const struct options *options)
{
    static struct paths paths;
    static struct bench_setup setup;
    struct bench_machine machine;
    struct bench_row rows[BENCH_MAX_ROWS];
    bench_machine_read(&machine);
    int n = select_rows(&machine, options, rows);
    if (options->list) {
        for (int i = 0; i < n; i++) {
            printf("%s\n", rows[i].name);
        }
        return 0;
    }
    if (n == 0) {
        fprintf(stderr, "burn-bench: no row matches \"%s\"; --list names them\n", options->only);
        return 2;
    }
    if (find_self(&paths) != 0) {
        fprintf(stderr, "burn-bench: /proc/self/exe cannot be read\n");
        return 2;
    }
    setup.machine = &machine;
    setup.self = paths.self;
    setup.rounds = options->rounds;
    setup.seconds = options->seconds;
    if (!options->no_peer) {
        find_peers(&paths, &setup);
    }
    n = drop_pointless(rows, n, &setup);
    machine.round_trip = bench_round_trip();
    return measure_rows(options, &setup, rows, n);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (argc == 2 && strcmp(argv[1], "--worker") == 0) {
        return bench_worker();
    }
    if (argc == 2 && strcmp(argv[1], "--first-result") == 0) {
        return bench_first_result();
    }
    if (argc == 2 && strcmp(argv[1], "--list10") == 0) {
        return bench_list10();
    }
    if (argc == 2 && strcmp(argv[1], "--load-flex") == 0) {
        return bench_load_flex();
    }
    if (argc == 2 && strncmp(argv[1], "--peak=", 7) == 0) {
        return bench_peak_memory(argv[1] + 7);
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(USAGE, stdout);
        return 0;
    }
    if (parse_options(argc, argv, &options) != 0) {
        fputs(USAGE, stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return run_bench(&options);
}
