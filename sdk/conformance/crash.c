/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * crash.c - when a kernel or a definition kills the process: which case ran, and how to rerun it.
 *
 * The text is written before each check into a static buffer, so that the handler only calls
 * write(2). It then restores what was there and lets the signal end the process as it would have
 * without it. It runs on the thread that crashed, which may be one of a device. Where somebody else
 * has a handler already (a sanitizer), that one stays.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "conformance.h"

#include <signal.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static char running[1024];
static volatile sig_atomic_t length;
/* A stack of its own, for a stack that overflowed. */
static char stack[64 * 1024];

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    struct sigaction plain;
    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    ssize_t written = write(STDERR_FILENO, running, (size_t)length);
    (void)written;
    (void)sigaction(number, &plain, NULL);
    if (info->si_code <= 0 || number == SIGABRT) {
        (void)raise(number); /* a fault comes again by itself, and keeps its place in a core file */
    }
}

void conf_crash_install(void)
{
    stack_t own;
    memset(&own, 0, sizeof(own));
    own.ss_sp = stack;
    own.ss_size = sizeof(stack);
    (void)sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction old;
        struct sigaction mine;
        memset(&mine, 0, sizeof(mine));
        mine.sa_sigaction = on_crash;
        mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
        (void)sigemptyset(&mine.sa_mask);
        if (sigaction(signals[i], NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
            old.sa_handler == SIG_DFL) {
            (void)sigaction(signals[i], &mine, NULL);
        }
    }
}

void conf_crash_case(const conf_report *report, const conf_case *c, const char *check,
                     const char *detail)
{
    char rerun[640];
    length = 0;
    if (c == NULL) {
        return;
    }
    const char *dtype = burn_element_name(c->dtype);
    conf_rerun_text(rerun, sizeof(rerun), report, check, c->def->name, dtype,
                    c->sample.struct_size != 0 ? c->sample_index : CONF_NO_SAMPLE);
    int n = snprintf(running, sizeof(running),
                     "CRASH %s %s %s%s%s, sample %u (%s), on %s\n     rerun: %s\n", c->def->name,
                     dtype, check, detail[0] != '\0' ? " " : "", detail,
                     (unsigned)c->sample_index, c->sample.name != NULL ? c->sample.name : "?",
                     report->device, rerun);
    if (n > 0) {
        length = (size_t)n < sizeof(running) ? n : (int)sizeof(running) - 1;
    }
}
