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
/* Says so when a signal ended it, or when it left nothing. */
void cli_program_end(int wait_status, uint32_t found);

#endif /* BURN_CLI_PROGRAM_H */
