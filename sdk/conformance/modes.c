/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * modes.c - the same bits, however work is deferred and whatever the number of threads.
 *
 * These are settings of a process, so the tool runs itself: once for each mode, with --bits, which
 * only runs ops and writes a line with a hash for each. The lines of all modes must be equal. To
 * add a mode: a row in `modes`.
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

enum { N_MODES = sizeof(modes) / sizeof(modes[0]), MAX_ARGUMENTS = 64, ROUNDS = 3 };

/* ---- the child's side ------------------------------------------------------------------------ */

static uint64_t hash_outputs(const conf_case *c, const conf_value *out)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t j = 0; j < c->n_out; j++) {
        if (out[j].meta.kind == BURN_ABSENT) {
            continue;
        }
        const unsigned char *bytes = conf_bytes(c->arena, &out[j]);
        uint64_t size = out[j].n * burn_element_size(out[j].meta.dtype);
        for (uint64_t i = 0; i < size; i++) {
            hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
        }
    }
    return hash;
}

void conf_write_bits(FILE *file, conf_runner *runner, conf_case *c)
{
    conf_value out[CONF_MAX_OUT];
    burn_err err = BURN_ERR_INIT;
    int32_t code = BURN_OK;
    /* With window auto the first round learns, the second waits, the third has a plan. */
    for (int round = 0; round < ROUNDS; round++) {
        memset(out, 0, sizeof(out));
        code = conf_run(runner, c, CONF_CONTIGUOUS, out, &err);
        runner->reset(runner);
    }
    (void)fprintf(file, "%s %s %u %u %d %016llx\n", c->def->name, burn_element_name(c->dtype),
                  (unsigned)c->sample_index, (unsigned)c->variant, (int)code,
                  code == BURN_OK ? (unsigned long long)hash_outputs(c, out) : 0ULL);
}

/* ---- the parent's side ----------------------------------------------------------------------- */

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

/* Runs this program again with further arguments, in that mode; 1 when it ended well. */
static int run_mode(int argc, char **argv, const mode *m, const char *path)
{
    char *arguments[MAX_ARGUMENTS + 3];
    pid_t child = 0;
    int status = 0;
    int n = argc < MAX_ARGUMENTS ? argc : MAX_ARGUMENTS;
    char bits[] = "--bits";
    char file[64];
    char setting[64];
    (void)snprintf(file, sizeof(file), "%s", path);
    (void)snprintf(setting, sizeof(setting), "%s=%s", m->variable, m->value);
    for (int i = 0; i < n; i++) {
        arguments[i] = argv[i];
    }
    arguments[n] = bits;
    arguments[n + 1] = file;
    arguments[n + 2] = NULL;
    char **environment = environment_with(m->variable, setting);
    int ok = environment != NULL &&
             posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environment) == 0 &&
             waitpid(child, &status, 0) == child;
    free(environment);
    return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A case that stands for one line of such a file. */
static void case_of_line(conf_case *c, const char *line)
{
    char name[64] = "";
    char dtype[16] = "";
    unsigned sample = 0;
    memset(c, 0, sizeof(*c));
    int n = sscanf(line, "%63s %15s %u", name, dtype, &sample);
    c->def = conf_named(n == 3 ? name : "");
    if (burn_op_find(c->def->name) != NULL) {
        c->dtype = burn_dtype_from_name(dtype);
        c->sample_index = sample;
    }
}

static void compare_files(conf_report *report, const mode *m, const char *base, const char *path)
{
    static conf_case c; /* large */
    char expected[160];
    char got[160];
    FILE *a = fopen(base, "r");
    FILE *b = fopen(path, "r");
    while (a != NULL && b != NULL && fgets(expected, sizeof(expected), a) != NULL) {
        int same = fgets(got, sizeof(got), b) != NULL && strcmp(expected, got) == 0;
        case_of_line(&c, expected);
        conf_result(report, &c, "same bits", m->name, same ? CONF_PASS : CONF_FAIL, "%s%s",
                    same ? "" : "not as with ", same ? "" : modes[0].name);
    }
    if (a != NULL) {
        (void)fclose(a);
    }
    if (b != NULL) {
        (void)fclose(b);
    }
}

/* A run that ended badly is a failure of its own. */
static void report_broken(conf_report *report, const mode *m)
{
    static conf_case c; /* large */
    memset(&c, 0, sizeof(c));
    c.def = burn_op_at(0);
    conf_result(report, &c, "same bits", m->name, CONF_FAIL, "the run with %s=%s failed",
                m->variable, m->value);
}

static int make_file(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/burn-bits-XXXXXX", P_tmpdir);
    int fd = mkstemp(path);
    if (fd < 0) {
        return 0;
    }
    (void)close(fd);
    return 1;
}

void conf_check_modes(conf_report *report, int argc, char **argv)
{
    char paths[N_MODES][64];
    int made[N_MODES] = {0};
    for (uint32_t i = 0; i < N_MODES; i++) {
        made[i] = make_file(paths[i], sizeof(paths[i]));
        if (!made[i] || !run_mode(argc, argv, &modes[i], paths[i])) {
            report_broken(report, &modes[i]);
        } else if (i > 0) {
            compare_files(report, &modes[i], paths[0], paths[i]);
        }
    }
    for (uint32_t i = 0; i < N_MODES; i++) {
        if (made[i]) {
            (void)unlink(paths[i]);
        }
    }
}
