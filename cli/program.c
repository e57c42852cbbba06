/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * program.c - see program.h. The exit status is the program's; an interrupt is for the program, and
 * what it did until then is told.
 */
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 127, NOT_EXECUTABLE = 126, BY_SIGNAL = 128 };

char **cli_program(cli *c)
{
    int n = 0;
    while (n < c->argc && strcmp(c->argv[n], "--") != 0) {
        n++;
    }
    char **program = n < c->argc ? c->argv + n + 1 : NULL;
    c->argc = n;
    return program != NULL && program[0] != NULL ? program : NULL;
}

static _Noreturn void become(const cli *c, char **program, const char *variable, const char *folder)
{
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    if (c->json) {
        /* Standard output is for the JSON alone. */
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    if (setenv(variable, folder, 1) == 0) {
        (void)execvp(program[0], program);
    }
    int status = errno == ENOENT ? NOT_STARTED : NOT_EXECUTABLE;
    (void)fprintf(stderr, "burn %s: %s: %s\n", c->command->name, program[0], strerror(errno));
    _exit(status);
}

int cli_program_run(const cli *c, char **program, const char *variable, const char *value)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        become(c, program, variable, value);
    }
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 ? status : -1;
}

int cli_program_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? BY_SIGNAL + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

static void take_files(const char *folder, void (*take)(void *user, const char *path), void *user)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, versionsort);
    for (int i = 0; i < n; i++) {
        char path[512];
        int size = snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && size > 0 && (size_t)size < sizeof(path)) {
            take(user, path);
            (void)unlink(path);
        }
        free(names[i]);
    }
    free(names);
    (void)rmdir(folder);
}

int cli_program_watch(cli *c, char **program, const char *variable,
                      void (*take)(void *user, const char *path), void *user, int *out_end)
{
    char folder[64];
    (void)snprintf(folder, sizeof(folder), "/tmp/burn-%s-XXXXXX", c->command->name);
    if (mkdtemp(folder) == NULL) {
        return cli_error(c, BURN_E_IO, "no folder can be made in /tmp: %s", strerror(errno));
    }
    *out_end = cli_program_run(c, program, variable, folder);
    take_files(folder, take, user);
    return *out_end != -1 ? -1
                          : cli_error(c, BURN_E_NO_MEMORY, "the program could not be started");
}

static void say_end(int wait_status, uint32_t found, const char *killed)
{
    int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    if (signal != 0 && found == 0 && killed != NULL) {
        printf("\nThe program was ended by signal %d; %s.\n", signal, killed);
        return;
    }
    if (signal != 0) {
        printf("\nThe program was ended by signal %d (%s); this is what it had done.\n", signal,
               strsignal(signal));
    }
    if (found == 0) {
        printf("\nThe program opened no device of libburn-core.\n");
    }
}

int cli_program_finish(const cli *c, int wait_status, uint32_t found, json_t *processes,
                       const char *killed)
{
    int status = cli_program_status(wait_status);
    if (c->json) {
        return cli_print_json(json_pack("{s:i, s:i, s:o}", "status", status, "signal",
                                        WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0,
                                        "processes", processes),
                              status);
    }
    say_end(wait_status, found, killed);
    return status;
}

/* Where the files of a program go while they are read. */
typedef struct telling {
    cli_tell_fn tell;
    json_t *list;
    uint32_t n;
} telling;

static void tell_one(void *user, const char *path)
{
    telling *to = user;
    to->n += to->tell(path, to->list) != 0;
}

int cli_program_tell(cli *c, const char *variable, cli_tell_fn tell, const char *killed)
{
    char **program = cli_program(c);
    int status = cli_parse(c, NULL, 0, NULL);
    if (status >= 0) {
        return status;
    }
    if (program == NULL) {
        return cli_usage(c, "which program? Write it behind --");
    }
    int end = 0;
    telling to = {tell, c->json ? json_array() : NULL, 0};
    status = cli_program_watch(c, program, variable, tell_one, &to, &end);
    if (status >= 0) {
        json_decref(to.list);
        return status;
    }
    return cli_program_finish(c, end, to.n, to.list, killed);
}
