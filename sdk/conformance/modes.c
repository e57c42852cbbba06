/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * modes.c - the same bits, however work is deferred and whatever the number of threads.
 *
 * These are settings of a process, so the tool runs itself: once for each mode, with --bits, which
 * only runs ops and writes lines with hashes (bits.c). The lines of all modes must be the same ones
 * and as many as there are cases; what failed with one code everywhere is a skip, since there are
 * no bits to compare. To add a mode: a row in `modes`.
 */
#include "conformance.h"

#include <burn/registry.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct mode {
    const char *name;
    const char *variable;
    const char *value;
} mode;

static const mode modes[] = {
    {"window 1", "BURN_WINDOW", "1"},
    {"window 64", "BURN_WINDOW", "64"},
    {"window auto", "BURN_WINDOW", "auto"},
    {"1 thread", "BURN_THREADS", "1"},
    {"3 threads", "BURN_THREADS", "3"},
};

enum { N_MODES = sizeof(modes) / sizeof(modes[0]), MAX_ARGUMENTS = 64, AT_A_TIME = 2 };

extern char **environ;

/* The environment of this process with one variable set; freed by the caller, NULL: no memory. */
static char **environment_with(const char *variable, char *setting)
{
    size_t length = strlen(variable);
    size_t n = 0;
    size_t kept = 0;
    while (environ[n] != NULL) {
        n++;
    }
    char **copy = calloc(n + 2, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        if (strncmp(environ[i], variable, length) != 0 || environ[i][length] != '=') {
            copy[kept++] = environ[i];
        }
    }
    if (copy != NULL) {
        copy[kept] = setting;
    }
    return copy;
}

/* A run of this program in one mode, and where its lines are. */
typedef struct run {
    char path[64];
    pid_t child; /* 0: it could not be started, or has ended */
    uint8_t has_file;
    uint8_t ended_well;
    uint8_t zero[2];
} run;

/* Starts this program with further arguments, in that mode. */
static void start_mode(int argc, char **argv, const mode *m, run *r)
{
    char *arguments[MAX_ARGUMENTS + 3];
    int n = argc < MAX_ARGUMENTS ? argc : MAX_ARGUMENTS;
    char bits[] = "--bits";
    char setting[64];
    (void)snprintf(setting, sizeof(setting), "%s=%s", m->variable, m->value);
    for (int i = 0; i < n; i++) {
        arguments[i] = argv[i];
    }
    arguments[n] = bits;
    arguments[n + 1] = r->path;
    arguments[n + 2] = NULL;
    char **environment = environment_with(m->variable, setting);
    if (environment == NULL ||
        posix_spawn(&r->child, "/proc/self/exe", NULL, NULL, arguments, environment) != 0) {
        r->child = 0;
    }
    free(environment);
}

static void await(run *r)
{
    int status = 0;
    if (r->child != 0) {
        r->ended_well = waitpid(r->child, &status, 0) == r->child && WIFEXITED(status) &&
                        WEXITSTATUS(status) == 0;
        r->child = 0;
    }
}

/* One line of such a file. */
typedef struct entry {
    char text[160];
    char name[64];
    char dtype[16];
    char what[32];
    unsigned sample;
    int code;
} entry;

/* 0: there is no further line, or it is the last one, which counts the cases. */
static int next_entry(FILE *file, entry *out)
{
    memset(out, 0, sizeof(*out));
    return fgets(out->text, sizeof(out->text), file) != NULL &&
           sscanf(out->text, "%63s %15s %u %*u %31s %d", out->name, out->dtype, &out->sample,
                  out->what, &out->code) == 5;
}

/* A case that stands for a line. */
static void case_of(conf_case *c, const entry *e)
{
    memset(c, 0, sizeof(*c));
    c->def = conf_named(e->name);
    if (burn_op_find(e->name) != NULL) {
        c->dtype = burn_dtype_from_name(e->dtype);
        c->sample_index = e->sample;
    }
}

/* Something that concerns no single case. */
static void report_broken(conf_report *report, const mode *m, const char *what)
{
    conf_device_result(report, "same bits", m->name, CONF_FAIL, "%s (%s=%s)", what, m->variable,
                       m->value);
}

static void compare_lines(conf_report *report, const mode *m, const entry *expected,
                          const entry *got)
{
    static conf_case c; /* large */
    case_of(&c, expected);
    if (strcmp(expected->text, got->text) != 0) {
        conf_result(report, &c, "same bits", m->name, CONF_FAIL, "%s: not as with %s",
                    expected->what, modes[0].name);
    } else if (expected->code != BURN_OK) {
        conf_result(report, &c, "same bits", m->name, CONF_SKIP, "%s: there are none, %s",
                    expected->what, burn_status_name(expected->code));
    } else {
        conf_result(report, &c, "same bits", m->name, CONF_PASS, "%s: as with %s", expected->what,
                    modes[0].name);
    }
}

static void compare_files(conf_report *report, const mode *m, FILE *base, FILE *file)
{
    entry expected;
    entry got;
    uint64_t n = 0;
    int more = next_entry(base, &expected);
    while (more && next_entry(file, &got)) {
        compare_lines(report, m, &expected, &got);
        n += strcmp(expected.what, "alone") == 0;
        more = next_entry(base, &expected);
    }
    if (!more) {
        (void)next_entry(file, &got); /* the last line of both */
    }
    unsigned long long cases = 0;
    if (more || strcmp(expected.text, got.text) != 0 ||
        sscanf(got.text, "end %llu", &cases) != 1 || cases != report->n_cases || n != cases) {
        report_broken(report, m, "another number of results than in the first run, or than cases");
    }
}

static void compare_paths(conf_report *report, const mode *m, const char *base, const char *path)
{
    FILE *a = fopen(base, "r");
    FILE *b = fopen(path, "r");
    if (a != NULL && b != NULL) {
        compare_files(report, m, a, b);
    } else {
        report_broken(report, m, "its results cannot be read");
    }
    if (a != NULL) {
        (void)fclose(a);
    }
    if (b != NULL) {
        (void)fclose(b);
    }
}

static uint8_t make_file(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/burn-bits-XXXXXX", P_tmpdir);
    int fd = mkstemp(path);
    if (fd < 0) {
        return 0;
    }
    (void)close(fd);
    return 1;
}

/* All modes, some at a time. */
static void run_modes(int argc, char **argv, run *runs)
{
    for (uint32_t i = 0; i < N_MODES; i++) {
        runs[i].has_file = make_file(runs[i].path, sizeof(runs[i].path));
        if (i >= AT_A_TIME) {
            await(&runs[i - AT_A_TIME]);
        }
        if (runs[i].has_file) {
            start_mode(argc, argv, &modes[i], &runs[i]);
        }
    }
    for (uint32_t i = 0; i < N_MODES; i++) {
        await(&runs[i]);
    }
}

void conf_check_modes(conf_report *report, int argc, char **argv)
{
    run runs[N_MODES];
    memset(runs, 0, sizeof(runs));
    run_modes(argc, argv, runs);
    for (uint32_t i = 0; i < N_MODES; i++) {
        if (!runs[i].ended_well) {
            report_broken(report, &modes[i], "the run failed");
        } else if (i > 0) {
            compare_paths(report, &modes[i], runs[0].path, runs[i].path);
        }
    }
    for (uint32_t i = 0; i < N_MODES; i++) {
        if (runs[i].has_file) {
            (void)unlink(runs[i].path);
        }
    }
}
