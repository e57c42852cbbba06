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

enum { MAX_TEXT = 16 << 20 };

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

static int tell(const char *path, json_t *list)
{
    char *text = read_text(path);
    const char *slash = strrchr(path, '/');
    long pid = slash != NULL ? strtol(slash + 1, NULL, 10) : 0;
    if (text == NULL) {
        return 0;
    }
    if (list != NULL) {
        (void)json_array_append_new(
            list, json_pack("{s:I, s:o}", "pid", (json_int_t)pid, "text", cli_json_text(text)));
    } else {
        printf("process %ld\n", pid);
        print_text(text);
    }
    free(text);
    return 1;
}

int cli_plans(cli *c)
{
    return cli_program_tell(c, "BURN_PLANS", tell, "plans are written at the end of a process");
}
