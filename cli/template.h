/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * template.h - a project from a template: a folder of files is copied under other names.
 *
 * A template is written about one word ("mock", "starter"), so that it builds as it stands. The
 * copy has the new name in its place, in the texts and in the names of the files.
 */
#ifndef BURN_CLI_TEMPLATE_H
#define BURN_CLI_TEMPLATE_H

#include "cli.h"

enum { CLI_NAME_MAX = 24 };

/* The name in the forms that occur in a text. */
typedef struct cli_template {
    const char *folder;            /* of the template */
    const char *word;              /* what is replaced: "mock" */
    const char *id;                /* "acme-2": in device strings and file names */
    char ident[CLI_NAME_MAX + 1];  /* "acme_2": in C */
    char upper[CLI_NAME_MAX + 1];  /* "ACME_2" */
    char title[CLI_NAME_MAX + 1];  /* "Acme-2": for people */
} cli_template;

/* Finds the template of that kind and makes the forms of `id`. -1 to go on, else an exit status. */
int cli_template_open(cli *c, const char *templates, const char *kind, const char *word,
                      const char *id, cli_template *out);
/* Writes the project to `folder`, which must not be there; all of it or nothing. An exit status. */
int cli_template_write(cli *c, const cli_template *t, const char *folder, unsigned *out_files);

#endif /* BURN_CLI_TEMPLATE_H */
