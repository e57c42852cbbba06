/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * program.h - running a program for `burn explain`, `plans` and `profile`, and what it left behind.
 *
 * The program is told a folder of its own in a variable; the library in it keeps mapped files
 * there. Afterwards each file is handed over once, and removed with the folder.
 */
#ifndef BURN_CLI_PROGRAM_H
#define BURN_CLI_PROGRAM_H

#include "cli.h"

/* Cuts the call at "--": what stands before it stays in `c`, the rest is the program; NULL when
 * there is none. */
char **cli_program(cli *c);
/* Runs it to its end with variable = value; the wait status, -1 when it could not be started. With
 * --json its standard output goes to standard error. */
int cli_program_run(const cli *c, char **program, const char *variable, const char *value);
/*
 * The same with a folder of its own as the value; then calls `take` with the path of each file
 * there, in the order of names, and removes them and the folder. -1, and its wait status; else the
 * command's exit status after an error that was told.
 */
int cli_program_watch(cli *c, char **program, const char *variable,
                      void (*take)(void *user, const char *path), void *user, int *out_end);
/* The exit status to pass on: 128 + n for signal n. */
int cli_program_status(int wait_status);
/*
 * How a command that ran a program ends: with --json its answer, which takes `processes`; else a
 * word when a signal ended the program or it left nothing. `killed` (may be NULL) is said when both
 * are so. The exit status.
 */
int cli_program_finish(const cli *c, int wait_status, uint32_t found, json_t *processes,
                       const char *killed);
/* Adds what a file holds to `list`, or prints it when that is NULL; 1 when there was something. */
typedef int (*cli_tell_fn)(const char *path, json_t *list);
/* A whole command: the program behind "--" runs and is watched, every file is told. */
int cli_program_tell(cli *c, const char *variable, cli_tell_fn tell, const char *killed);

#endif /* BURN_CLI_PROGRAM_H */
