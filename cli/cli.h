/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cli.h - what the commands of `burn` share: options, output, errors.
 *
 * The program uses the public API only. A command is one row in main.c and one function in a file
 * cmd_<name>.c. It prints text for people, or with --json one JSON object, and returns an exit
 * status: 0 fine, 1 what was asked for is wrong, 2 used wrongly. Text from files and plugins goes
 * through cli_clean, so that it cannot steer a terminal.
 */
#ifndef BURN_CLI_CLI_H
#define BURN_CLI_CLI_H

#include <burn/backend.h>
#include <burn/status.h>
#include <jansson.h>

enum { CLI_FINE = 0, CLI_WRONG = 1, CLI_USAGE = 2 };

typedef struct cli_command cli_command;

/* One call of the program. */
typedef struct cli {
    const cli_command *command;
    int argc; /* what follows the command's name */
    char **argv;
    int json;
} cli;

struct cli_command {
    const char *name;
    const char *summary;
    const char *usage; /* options, one a line */
    const char *examples;
    int (*run)(cli *c);
};

int cli_devices(cli *c);
int cli_plugins(cli *c);
int cli_ops(cli *c);
int cli_doctor(cli *c);
int cli_env(cli *c);
int cli_explain(cli *c);
int cli_plans(cli *c);
int cli_profile(cli *c);
int cli_inspect(cli *c);
int cli_predict(cli *c);
int cli_new(cli *c);

/* ---- options ---- */

/* An option: with `value` it takes one; `flag` is set to 1 when it is there. Either may be NULL. */
typedef struct cli_option {
    const char *name; /* "--device" */
    const char **value;
    int *flag;
    int value_optional; /* the value is taken when the next word is no option */
} cli_option;

/*
 * Reads the options, --json and --help among them, and at most one word that is no option. Returns
 * -1 to go on, else the exit status.
 */
int cli_parse(cli *c, const cli_option *options, size_t n, const char **word);
/* A number from `low` to `high`; 0 and a message when it is none. */
int cli_number(const cli *c, const char *option, const char *text, int64_t low, int64_t high,
               int64_t *out);
void cli_help(const cli_command *command);

/* ---- names (nearest.c) ---- */

/* Starts as {wanted, NULL, 0}; `best` is the candidate that was meant, or NULL. */
typedef struct cli_nearest {
    const char *wanted;
    const char *best;
    size_t distance;
} cli_nearest;

void cli_nearest_try(cli_nearest *n, const char *candidate);

/* ---- output (json_out.c) ---- */

/* Prints what is wrong with the call and how help is reached; returns CLI_USAGE. */
int cli_usage(const cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints an error of the library; returns CLI_WRONG. */
int cli_fail(const cli *c, const burn_err *err);
/* Prints an error found here; returns CLI_WRONG. */
int cli_error(const cli *c, int32_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints a JSON object and gives it up; returns `status`, or CLI_WRONG when memory is short. */
int cli_print_json(json_t *object, int status);
/* A JSON string; bytes that are no UTF-8 become '?'. */
json_t *cli_json_text(const char *text);
json_t *cli_json_error(const burn_err *err);
json_t *cli_json_dims(uint32_t rank, const int64_t *dims);
/* Copies text with control bytes as '?'; returns `out`. */
const char *cli_clean(char *out, size_t size, const char *text);
/* The end of a noun that is counted: "%u plan%s". */
static inline const char *cli_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}
/* "1.5 GiB". */
const char *cli_bytes(char *out, size_t size, uint64_t bytes);
/* "[2,3]". */
const char *cli_dims(char *out, size_t size, uint32_t rank, const int64_t *dims);

/* ---- devices and plugins, shared by several commands (cmd_devices.c, cmd_plugins.c) ---- */

const char *cli_device_kind(uint32_t kind);
/* All devices of all backends; prints them when `json` is NULL, else appends to that array. Returns
 * how many are usable. */
uint32_t cli_list_devices(json_t *json);
/* What BURN_DEVICE, or auto, picks: printed when `json` is NULL. 1 when there is one. */
int cli_default_device(json_t *json);
/* All plugins, opened or not. Returns how many are usable; `crashed`: how many ended the child that
 * opened them first. This process must not open these. */
uint32_t cli_list_plugins(json_t *json, int open, uint32_t *crashed);
void cli_list_folders(json_t *json);
json_t *cli_plugins_json(int open, uint32_t *crashed);

#endif /* BURN_CLI_CLI_H */
