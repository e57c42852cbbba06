/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_explain.c - `burn explain -- PROGRAM ARGS...`: runs a program and tells which kernel each of
 * its ops got, what was copied or decomposed, and why.
 *
 * The program is told a folder of its own (BURN_EXPLAIN); the library in it keeps its table there,
 * in a mapped file for each process, so that a crash loses nothing. The exit status is the
 * program's. Here the files are only read; they may be cut, since a process can end at any time.
 */
#include "program.h"

#include <burn/explain.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading tables -------------------------------------------------------------------------- */

static void end_texts(burn_explain_entry *e)
{
    e->op[sizeof(e->op) - 1] = '\0';
    e->within[sizeof(e->within) - 1] = '\0';
    e->operands[sizeof(e->operands) - 1] = '\0';
    e->served[sizeof(e->served) - 1] = '\0';
    e->why[sizeof(e->why) - 1] = '\0';
    e->tag[sizeof(e->tag) - 1] = '\0';
}

/* A whole table in fresh memory; NULL when the file is none. */
static burn_explain_head *read_table(const char *path)
{
    burn_explain_head head;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    burn_explain_head *table = NULL;
    if (fd >= 0 && fstat(fd, &info) == 0 && read(fd, &head, sizeof(head)) == sizeof(head) &&
        head.magic == BURN_EXPLAIN_MAGIC && head.entry_size == sizeof(burn_explain_entry) &&
        head.n_entries <= head.capacity && head.capacity <= 1u << 20) {
        size_t bytes = (size_t)head.n_entries * sizeof(burn_explain_entry);
        table = malloc(sizeof(head) + bytes);
        if (table != NULL) {
            *table = head;
            ssize_t n = read(fd, table + 1, bytes);
            table->n_entries = n > 0 ? (uint32_t)((size_t)n / sizeof(burn_explain_entry)) : 0;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    burn_explain_entry *entries = (burn_explain_entry *)(void *)(table + 1);
    for (uint32_t i = 0; table != NULL && i < table->n_entries; i++) {
        end_texts(&entries[i]);
    }
    return table;
}

/* ---- telling --------------------------------------------------------------------------------- */

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"?", "row", "decomposed", "view", "failed", "fused"};
    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

static json_t *entry_json(const burn_explain_entry *e)
{
    json_t *o = json_pack("{s:I, s:o, s:s, s:o, s:o, s:o, s:o}", "calls", (json_int_t)e->calls,
                          "op", cli_json_text(e->op), "kind", kind_name(e->kind), "within",
                          cli_json_text(e->within), "operands", cli_json_text(e->operands),
                          "served", cli_json_text(e->served), "why", cli_json_text(e->why));
    (void)json_object_set_new(o, "copies", json_integer((json_int_t)e->copies));
    (void)json_object_set_new(o, "copy_bytes", json_integer((json_int_t)e->copy_bytes));
    (void)json_object_set_new(o, "tag", cli_json_text(e->tag));
    return o;
}

static json_t *table_json(const burn_explain_head *t)
{
    json_t *entries = json_array();
    for (uint32_t i = 0; i < t->n_entries; i++) {
        (void)json_array_append_new(entries, entry_json(burn_explain_at(t, i)));
    }
    json_t *totals =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "calls", (json_int_t)t->calls,
                  "rows", (json_int_t)t->rows, "decomposed", (json_int_t)t->decomposed, "views",
                  (json_int_t)t->views, "failed", (json_int_t)t->failed, "layout_copies",
                  (json_int_t)t->copies, "layout_copy_bytes", (json_int_t)t->copy_bytes, "not_kept",
                  (json_int_t)t->lost, "host_fallbacks", 0);
    return json_pack("{s:I, s:o, s:o}", "pid", (json_int_t)t->pid, "totals", totals, "ops",
                     entries);
}

/* What became of it, in a few words. */
static void print_served(const burn_explain_entry *e)
{
    char text[sizeof(e->why)];
    const char *served = cli_clean(text, sizeof(text), e->served);
    switch (e->kind) {
    case BURN_EXPLAIN_ROW:
        printf("%s\n", served);
        break;
    case BURN_EXPLAIN_DECOMPOSED:
        printf("made of %s\n", served);
        break;
    case BURN_EXPLAIN_VIEW:
        printf("a view\n");
        break;
    case BURN_EXPLAIN_FUSED:
        printf("%s\n", e->served[0] != '\0' ? served : "one by one");
        break;
    default:
        printf("failed\n");
        break;
    }
}

static void print_entry(const burn_explain_entry *e, int width)
{
    char text[sizeof(e->why)];
    char more[sizeof(e->why)];
    char bytes[32];
    (void)snprintf(text, sizeof(text), "%s(%s)", e->op, e->operands);
    (void)cli_clean(more, sizeof(more), text);
    printf("%9llu  %-*s  ", (unsigned long long)e->calls, width, more);
    print_served(e);
    if (e->within[0] != '\0') {
        printf("           in: %s\n", cli_clean(text, sizeof(text), e->within));
    }
    if (e->tag[0] != '\0') {
        printf("           at: %s\n", cli_clean(text, sizeof(text), e->tag));
    }
    if (e->copies > 0) {
        printf("           copies: %llu, %s\n", (unsigned long long)e->copies,
               cli_bytes(bytes, sizeof(bytes), e->copy_bytes));
    }
    if (e->why[0] != '\0') {
        printf("           why: %s\n", cli_clean(text, sizeof(text), e->why));
    }
}

static void print_table(const burn_explain_head *t)
{
    size_t width = 20;
    char bytes[32];
    for (uint32_t i = 0; i < t->n_entries; i++) {
        const burn_explain_entry *e = burn_explain_at(t, i);
        size_t n = strlen(e->op) + strlen(e->operands) + 2;
        width = n > width && n <= 60 ? n : width;
    }
    printf("\n    calls  %-*s  served by\n", (int)width, "op(operands)");
    for (uint32_t i = 0; i < t->n_entries; i++) {
        print_entry(burn_explain_at(t, i), (int)width);
    }
    printf("\nprocess %u: %llu call%s: %llu by rows, %llu decomposed, %llu view%s, %llu failed\n",
           t->pid, (unsigned long long)t->calls, cli_s(t->calls), (unsigned long long)t->rows,
           (unsigned long long)t->decomposed, (unsigned long long)t->views, cli_s(t->views),
           (unsigned long long)t->failed);
    printf("layout copies: %llu, %s; host fallbacks: none, the library has none\n",
           (unsigned long long)t->copies, cli_bytes(bytes, sizeof(bytes), t->copy_bytes));
    if (t->lost > 0) {
        printf("%llu call%s found no room in the table\n", (unsigned long long)t->lost,
               cli_s(t->lost));
    }
}

static int tell(const char *path, json_t *list)
{
    burn_explain_head *table = read_table(path);
    if (table == NULL) {
        return 0;
    }
    if (list != NULL) {
        (void)json_array_append_new(list, table_json(table));
    } else {
        print_table(table);
    }
    free(table);
    return 1;
}

int cli_explain(cli *c)
{
    return cli_program_tell(c, "BURN_EXPLAIN", tell, NULL);
}
