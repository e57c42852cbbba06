/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * child.c - starting, asking and ending child processes.
 */
#include "child.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* True when `entry` sets a variable that one of `set` sets too. */
static int is_overridden(const char *entry, const char *const *set)
{
    const char *equals = strchr(entry, '=');
    if (equals == NULL) {
        return 0;
    }
    size_t length = (size_t)(equals - entry) + 1;
    for (; *set != NULL; set++) {
        if (strncmp(entry, *set, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A copy of the environment's list with `set` in it; the strings are shared. */
static const char **merge_environment(const char *const *set)
{
    size_t n_set = 0;
    size_t n_old = 0;
    while (set[n_set] != NULL) {
        n_set++;
    }
    while (environ[n_old] != NULL) {
        n_old++;
    }
    const char **merged = calloc(n_set + n_old + 1, sizeof(*merged));
    if (merged == NULL) {
        return NULL;
    }
    memcpy(merged, set, n_set * sizeof(*merged));
    size_t n = n_set;
    for (size_t i = 0; i < n_old; i++) {
        if (!is_overridden(environ[i], set)) {
            merged[n] = environ[i];
            n++;
        }
    }
    return merged;
}

/* posix_spawn takes lists of char * that it does not write to. */
static char *const *as_list(const char *const *list)
{
    union {
        const char *const *in;
        char *const *out;
    } cast = {list};
    return cast.out;
}

static int spawn_with_pipes(struct bench_child *child, const char *const *argv,
                            const char *const *set, int in_fd, int out_fd)
{
    posix_spawn_file_actions_t actions;
    const char **merged = merge_environment(set);
    if (merged == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(merged);
        return -1;
    }
    int failed =
        posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO) != 0 ||
        posix_spawn(&child->pid, argv[0], &actions, NULL, as_list(argv), as_list(merged)) != 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    free(merged);
    if (failed) {
        child->pid = 0;
        return -1;
    }
    return 0;
}

int bench_child_start(struct bench_child *child, const char *const *argv, const char *const *set)
{
    int in[2];
    int out[2];
    memset(child, 0, sizeof(*child));
    if (pipe2(in, O_CLOEXEC) != 0) {
        return -1;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return -1;
    }
    int result = spawn_with_pipes(child, argv, set, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    if (result != 0) {
        close(in[1]);
        close(out[0]);
        return -1;
    }
    child->to = in[1];
    child->from = out[0];
    return 0;
}

/* Moves the first line of the buffer to `reply`; 0 when there is no whole line. */
static int take_line(struct bench_child *child, char *reply, size_t size)
{
    char *end = memchr(child->buffer, '\n', child->held);
    if (end == NULL) {
        return 0;
    }
    size_t length = (size_t)(end - child->buffer);
    size_t kept = length < size - 1 ? length : size - 1;
    memcpy(reply, child->buffer, kept);
    reply[kept] = '\0';
    child->held -= length + 1;
    memmove(child->buffer, end + 1, child->held);
    return 1;
}

/* Reads what there is; -1 at the end, on an error, on a line that is too long or at the deadline.
 */
static int read_more(struct bench_child *child, double deadline)
{
    double left = deadline - bench_now();
    struct pollfd fd = {.fd = child->from, .events = POLLIN};
    int ready = left > 0 ? poll(&fd, 1, (int)(left * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) {
        return 0;
    }
    if (ready <= 0 || child->held == sizeof(child->buffer)) {
        return -1;
    }
    size_t room = sizeof(child->buffer) - child->held;
    ssize_t n = read(child->from, child->buffer + child->held, room);
    if (n <= 0) {
        return -1;
    }
    child->held += (size_t)n;
    return 0;
}

int bench_child_listen(struct bench_child *child, char *reply, size_t size, double timeout)
{
    if (child->pid == 0) {
        return -1;
    }
    double deadline = bench_now() + timeout;
    while (!take_line(child, reply, size)) {
        if (read_more(child, deadline) != 0) {
            (void)kill(child->pid, SIGKILL);
            (void)bench_child_stop(child);
            return -1;
        }
    }
    return 0;
}

int bench_child_ask(struct bench_child *child, const char *line, char *reply, size_t size,
                    double timeout)
{
    if (child->pid == 0) {
        return -1;
    }
    char text[256];
    size_t length = strlen(line);
    if (length + 1 > sizeof(text)) {
        return -1;
    }
    memcpy(text, line, length);
    text[length] = '\n';
    if (write(child->to, text, length + 1) != (ssize_t)(length + 1)) {
        (void)bench_child_stop(child);
        return -1;
    }
    return bench_child_listen(child, reply, size, timeout);
}

int bench_child_stop(struct bench_child *child)
{
    if (child->pid == 0) {
        return -1;
    }
    close(child->to);
    close(child->from);
    int status = -1;
    double deadline = bench_now() + 5;
    pid_t ended = 0;
    while (ended == 0 && bench_now() < deadline) {
        ended = waitpid(child->pid, &status, WNOHANG);
        if (ended == 0) {
            (void)usleep(500);
        }
    }
    if (ended == 0) {
        (void)kill(child->pid, SIGKILL);
        ended = waitpid(child->pid, &status, 0);
    }
    memset(child, 0, sizeof(*child));
    return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int bench_child_run(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    int failed = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) != 0 ||
                 posix_spawn(&pid, argv[0], &actions, NULL, as_list(argv), environ) != 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed || waitpid(pid, &status, 0) < 0) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
