/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_plans.c - `burn plans -- PROGRAM ARGS...`: runs a program and shows the plans of its calls:
 * how often each was used, what runs as one and by which program, what memory it needs.
 *
 * The program is told a folder of its own (BURN_PLANS); the library in it writes a text there at
 * the end of each process, which is passed on, clean of control characters. See program.h.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { MAX_TEXT = 16 << 20 };

typedef struct found {
    json_t *processes; /* NULL: they are printed */
    uint32_t n;
} found;

/* The whole file, NULL when it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(MAX_TEXT + 1) : NULL;
    if (text != NULL) {
        text[fread(text, 1, MAX_TEXT, file)] = '\0';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

static void print_text(const char *text)
{
    char line[512];
    char clean[sizeof(line)];
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        (void)snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line)),
                       text);
        printf("%s\n", cli_clean(clean, sizeof(clean), line));
        text += n + (text[n] == '\n');
    }
}

static void take(void *user, const char *path)
{
    found *f = user;
    char *text = read_text(path);
    const char *slash = strrchr(path, '/');
    long pid = slash != NULL ? strtol(slash + 1, NULL, 10) : 0;
    if (text != NULL && f->processes != NULL) {
        (void)json_array_append_new(f->processes, json_pack("{s:I, s:o}", "pid", (json_int_t)pid,
                                                            "text", cli_json_text(text)));
    } else if (text != NULL) {
        printf("process %ld\n", pid);
        print_text(text);
    }
    f->n += text != NULL;
    free(text);
}

int cli_plans(cli *c)
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
    found f = {c->json ? json_array() : NULL, 0};
    status = cli_program_watch(c, program, "BURN_PLANS", take, &f, &end);
    if (status >= 0) {
        json_decref(f.processes);
        return status;
    }
    status = cli_program_status(end);
    if (c->json) {
        json_t *o = json_pack("{s:o, s:i}", "processes", f.processes, "status", status);
        return cli_print_json(o, status);
    }
    if (WIFSIGNALED(end) && f.n == 0) {
        printf("\nThe program was ended by signal %d; plans are written at the end of a process.\n",
               WTERMSIG(end));
    } else {
        cli_program_end(end, f.n);
    }
    return status;
}
