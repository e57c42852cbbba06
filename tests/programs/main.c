/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * main.c - programs [SEED [COUNT]]: makes, runs and compares; shrinks what fails.
 *
 * Each batch of seeds runs in a child, which tells the seed it is at in shared memory: so a crash,
 * a sanitizer's report or a hang is found like a wrong value, and the next batch starts clean. A
 * program that fails is run again with steps left out for as long as it still fails, printed, with
 * the command that repeats it. How much was compared with eval, and how much could not be, is told
 * and has limits. With --lie an op lies, and the run fails unless that is found (check.c, judge.c).
 */
#include "program.h"

#include <burn_sdk/plugin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH               50
#define SECONDS_PER_PROGRAM 180 /* one takes a second with sanitizers, on a machine with time */
#define MAX_TRIALS          400
#define MAX_SECONDS         120
#define NO_DEVICE           2
/* Of more gradients than FEW, those that cannot be compared are at most that many percent. */
#define FEW                 500
#define MOST_LEFT_OUT       6

typedef struct shared {
    uint64_t seed;
    uint64_t runs;
    uint64_t ops;
    uint64_t kept; /* stretches of steps, and those that could not be */
    uint64_t refused;
    tally count;
    char where[80]; /* the run that it is at */
    char failure[800];
} shared;

static const char *const device_names[] = {"flex", "mock:0"};
/* Window 0 is auto: the first time round it learns, then it waits, then it has plans. */
static const struct {
    uint32_t window;
    int how;
} modes[] = {
    {1, RUN_PLAIN}, {2, RUN_PLAIN}, {7, RUN_PLAIN}, {64, RUN_PLAIN},  {64, RUN_PLAIN},
    {0, RUN_PLAIN}, {0, RUN_PLAIN}, {0, RUN_PLAIN}, {0, RUN_REPLAY}, {0, RUN_REPLAY},
    {1, RUN_REPLAY}, {64, RUN_REPLAY},
};

static void begin(shared *to, const char *device, uint32_t window, int how)
{
    static const char *const ways[] = {"", " checked", " replayed"};
    (void)snprintf(to->where, sizeof(to->where), "%s, window %u%s", device, window, ways[how]);
}

static void tell(shared *to, const char *text)
{
    (void)snprintf(to->failure, sizeof(to->failure), "%s: %s", to->where, text);
}

static void add_tally(tally *to, const tally *t)
{
    to->values += t->values;
    to->decided += t->decided;
    to->gradients += t->gradients;
    to->zero += t->zero;
    to->no_pass += t->no_pass;
    to->at_kinks += t->at_kinks;
    to->infinite += t->infinite;
    to->too_wide += t->too_wide;
    for (uint32_t k = 0; k < COUNT_OF(t->through); k++) {
        to->through[k] |= t->through[k];
    }
}

/* 1 when everything agrees. */
static int try_on(const program *p, burn_device *device, const char *name, shared *to)
{
    static run checked;
    static run plain;
    char text[600];
    begin(to, name, 1, RUN_CHECK);
    run_program(&checked, p, device, 1, RUN_CHECK);
    if (checked.failure[0] != '\0') {
        tell(to, checked.failure);
        return 0;
    }
    add_tally(&to->count, &checked.count);
    for (uint32_t k = 0; k < COUNT_OF(modes); k++) {
        begin(to, name, modes[k].window, modes[k].how);
        run_program(&plain, p, device, modes[k].window, modes[k].how);
        to->runs++;
        to->kept += plain.n_kept;
        to->refused += plain.n_refused;
        if (plain.failure[0] != '\0') {
            tell(to, plain.failure);
            return 0;
        }
        if (!runs_agree(&checked, &plain, text, sizeof(text))) {
            tell(to, text);
            return 0;
        }
    }
    run_free(&checked);
    run_free(&plain);
    return 1;
}

static int child(uint64_t first, uint64_t count, const uint8_t *dropped, shared *to)
{
    static program p;
    burn_err err = BURN_ERR_INIT;
    burn_device *devices[COUNT_OF(device_names)];
    /* Some values are large enough for several threads, also where there is one core. */
    if (getenv("BURN_THREADS") == NULL) {
        (void)burn_option_set("THREADS", "3", &err);
    }
    for (uint32_t d = 0; d < COUNT_OF(device_names); d++) {
        devices[d] = burn_device_open(device_names[d], &err);
        if (devices[d] == NULL) {
            (void)snprintf(to->failure, sizeof(to->failure), "%s", err.text);
            return NO_DEVICE;
        }
    }
    int good = 1;
    for (uint64_t seed = first; seed < first + count && good; seed++) {
        (void)alarm(SECONDS_PER_PROGRAM);
        to->seed = seed;
        program_make(&p, seed);
        for (uint32_t i = 0; dropped != NULL && i < p.n_steps; i++) {
            if (dropped[i]) {
                program_drop(&p, i);
            }
        }
        program_order(&p);
        to->ops += p.n_steps;
        for (uint32_t d = 0; d < COUNT_OF(devices) && good; d++) {
            good = try_on(&p, devices[d], device_names[d], to);
        }
        program_free(&p);
    }
    burn_shutdown();
    return !good;
}

/* What run_child tells, of one child, whose stderr is `said`. */
static int run_once(uint64_t first, uint64_t count, const uint8_t *dropped, FILE *said, shared *to)
{
    to->failure[0] = '\0';
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(fileno(said), STDERR_FILENO) < 0) {
            exit(1);
        }
        exit(child(first, count, dropped, to));
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        (void)snprintf(to->failure, sizeof(to->failure), "no child could be made");
        return 1;
    }
    if (WIFSIGNALED(status) && to->failure[0] == '\0') {
        tell(to, WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
    } else if (status != 0 && to->failure[0] == '\0') {
        (void)snprintf(to->failure, sizeof(to->failure), "%s: it ended with status %d", to->where,
                       WEXITSTATUS(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == NO_DEVICE ? NO_DEVICE : status != 0;
}

/*
 * Passes on what a child said. 1 when a sanitizer's own memory failed: gcc 12's was seen to ask for
 * 542 TB, once in many runs of the same programs, and then ends with the status of a race.
 */
static int hear(FILE *said, int quiet)
{
    char line[512];
    int failed = 0;
    rewind(said);
    while (fgets(line, (int)sizeof(line), said) != NULL) {
        failed |= strstr(line, "ThreadSanitizer failed to allocate") != NULL;
        if (!quiet) {
            (void)fputs(line, stderr);
        }
    }
    return failed;
}

/* 0: all is well; else what the child's end tells stands in to->failure. NO_DEVICE: none ran. */
static int run_child(uint64_t first, uint64_t count, const uint8_t *dropped, int quiet, shared *to)
{
    int code = 1;
    int again = 0;
    for (int turn = 0; turn == 0 || (turn == 1 && again); turn++) {
        FILE *said = tmpfile();
        if (said == NULL) {
            (void)snprintf(to->failure, sizeof(to->failure), "no room for what a child says");
            return 1;
        }
        code = run_once(first, count, dropped, said, to);
        again = hear(said, quiet) && code != 0;
        (void)fclose(said);
    }
    return code;
}

static int may_drop(const step *s)
{
    return !s->dropped && s->kind != STEP_KEEP && s->kind != STEP_END;
}

/* Leaves out whatever can be left out while it still fails. Races may need luck: three tries. */
static void shrink(program *p, shared *to)
{
    static program trial;
    uint8_t dropped[MAX_STEPS];
    uint32_t trials = 0;
    time_t end = time(NULL) + MAX_SECONDS;
    for (uint32_t i = p->n_steps; i-- > 0 && trials < MAX_TRIALS && time(NULL) < end;) {
        if (!may_drop(&p->steps[i])) {
            continue;
        }
        trial = *p;
        program_drop(&trial, i);
        for (uint32_t k = 0; k < p->n_steps; k++) {
            dropped[k] = trial.steps[k].dropped;
        }
        int fails = 0;
        for (int again = 0; again < 3 && !fails; again++) {
            fails = run_child(p->seed, 1, dropped, 1, to);
            trials++;
        }
        if (fails) {
            *p = trial;
        }
    }
}

static void report(uint64_t seed, shared *to)
{
    static program p;
    (void)printf("seed %llu fails: %s\n", (unsigned long long)seed, to->failure);
    (void)fflush(stdout);
    program_make(&p, seed);
    shrink(&p, to);
    (void)printf("seed %llu, shrunk:\n", (unsigned long long)seed);
    program_print(&p);
    (void)printf("repeat it: ./dev programs %llu 1\n", (unsigned long long)seed);
    program_free(&p);
}

/* What a lie must be found by; NULL: there is no such lie. */
static const char *seen_by(const char *name)
{
    static const struct {
        const char *name;
        int lie;
        const char *text;
    } lies[] = {{"--lie=kernel", LIE_KERNEL, "output 0 element"},
                {"--lie=vjp", LIE_VJP, "(backward): its gradient gives"}};
    for (uint32_t k = 0; k < COUNT_OF(lies); k++) {
        if (strcmp(name, lies[k].name) == 0) {
            execute_lie = lies[k].lie;
            return lies[k].text;
        }
    }
    return NULL;
}

/* 0 when the lie is found, and by what must find it. */
static int try_lie(const char *name, uint64_t seed, uint64_t count, shared *to)
{
    const char *text = seen_by(name);
    if (text == NULL) {
        (void)fprintf(stderr, "no lie \"%s\"; there are --lie=kernel and --lie=vjp\n", name);
        return 2;
    }
    int ended = run_child(seed, count, NULL, 0, to);
    int found = ended == 1 && strstr(to->failure, text) != NULL;
    (void)printf("%s: %s (%s)\n", name, found ? "seen" : "NOT SEEN",
                 ended == 0 ? "all agreed" : to->failure);
    return !found;
}

/* 1 when enough was compared, and little was not. */
static int compared_enough(const tally *t, uint64_t count)
{
    uint64_t left_out = t->at_kinks + t->infinite + t->too_wide;
    (void)printf("values of ops: %llu compared, of which %llu differ where rounding decides\n",
                 (unsigned long long)t->values, (unsigned long long)t->decided);
    uint32_t ops = 0;
    for (uint32_t k = 0; k < COUNT_OF(t->through); k++) {
        ops += (uint32_t)__builtin_popcountll(t->through[k]);
    }
    (void)printf("gradients, each along a direction: %llu compared (%llu are zero), through %u "
                 "ops; not: %llu at kinks, %llu infinite, %llu beyond their dtype, %llu whose pass "
                 "failed\n",
                 (unsigned long long)t->gradients, (unsigned long long)t->zero, ops,
                 (unsigned long long)t->at_kinks, (unsigned long long)t->infinite,
                 (unsigned long long)t->too_wide, (unsigned long long)t->no_pass);
    if (count >= BATCH && (t->values == 0 || t->gradients == t->zero)) {
        (void)printf("nothing was compared\n");
        return 0;
    }
    /* A few programs may consist of odd ones. */
    if (t->gradients > FEW && (left_out * 100 > t->gradients * MOST_LEFT_OUT ||
                               t->decided * 1000 > t->values)) {
        (void)printf("too little was compared\n");
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;
    if (argc > 4 || count == 0) {
        (void)fprintf(stderr, "usage: %s [SEED [COUNT [--lie=kernel|--lie=vjp]]]\n", argv[0]);
        return 2;
    }
    shared *to = mmap(NULL, sizeof(*to), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) {
        return 2;
    }
    if (argc > 3) {
        return try_lie(argv[3], seed, count, to);
    }
    uint64_t failures = 0;
    for (uint64_t at = seed; at < seed + count && failures < 5;) {
        uint64_t n = seed + count - at < BATCH ? seed + count - at : BATCH;
        int ended = run_child(at, n, NULL, 0, to);
        if (ended == 0) {
            at += n;
            continue;
        }
        if (ended == NO_DEVICE) {
            (void)fprintf(stderr, "%s\n", to->failure);
            return NO_DEVICE;
        }
        failures++;
        at = to->seed + 1;
        report(to->seed, to);
    }
    (void)printf("%llu programs, %llu steps, %llu runs, %llu failures; %llu stretches run again, "
                 "%llu could not be kept\n",
                 (unsigned long long)count, (unsigned long long)to->ops,
                 (unsigned long long)to->runs, (unsigned long long)failures,
                 (unsigned long long)to->kept, (unsigned long long)to->refused);
    int compared = failures > 0 || compared_enough(&to->count, count);
    return failures > 0 || !compared || to->runs == 0 || (count >= BATCH && to->kept == 0);
}
