/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * child.h - a child process with which lines are exchanged.
 *
 * Its standard error stays this process's. A child that does not answer in time, or ends, is
 * stopped and counts as gone; every later request to it fails at once.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct bench_child {
    pid_t pid; /* 0: not running */
    int to;
    int from;
    size_t held; /* bytes in `buffer` */
    char buffer[1024];
};

/* Starts argv[0] (a path). `set` holds "NAME=value" entries that come before the environment, NULL
 * at the end. Returns 0, or -1 with `child` not running. */
int bench_child_start(struct bench_child *child, const char *const *argv, const char *const *set);

/* Sends a line (without its end) and waits for one. Returns 0, or -1 when the child is gone. */
int bench_child_ask(struct bench_child *child, const char *line, char *reply, size_t size,
                    double timeout);

/* Waits for one line. */
int bench_child_listen(struct bench_child *child, char *reply, size_t size, double timeout);

/* Closes its input, waits a little for its end, then stops it. Returns its exit status or -1. */
int bench_child_stop(struct bench_child *child);

/* Runs a program to its end with this process's input and output (its output goes to standard
 * error). Returns its exit status, -1 when it could not be started. */
int bench_child_run(const char *const *argv);

#endif /* BENCH_CHILD_H */
