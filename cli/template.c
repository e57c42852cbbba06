/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * template.c - copies a template's files under other names.
 *
 * The files are written to a folder beside the wanted one, which gets its name when all is done, so
 * nothing half-written is ever there. In a text, the template's word is replaced where a word
 * begins: followed by `_` and in capitals as a C identifier, else as the id. Two more rules: what
 * stands between `#ifdef <WORD>_INJECT` and the `#endif` that names it is left out, and a line
 * `@SOURCES@` becomes the list of the C files. To add a rule: a function beside write_line.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "template.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 512, FILES_MAX = 64 };

/* Where templates are, seen from the program, and where they are without a better answer. */
#ifndef BURN_CLI_TEMPLATES
#define BURN_CLI_TEMPLATES "/usr/local/share/burn/templates"
#endif
#ifndef BURN_CLI_TEMPLATES_NEAR
#define BURN_CLI_TEMPLATES_NEAR "../share/burn/templates"
#endif

/* ---- finding --------------------------------------------------------------------------------- */

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An installed tree may have been moved: the folder beside this program goes first. */
static void default_templates(char *out, size_t size)
{
    char self[PATH_MAX / 2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash = NULL;
    if (n > 0) {
        self[n] = '\0';
        slash = strrchr(self, '/');
    }
    if (slash != NULL) {
        *slash = '\0';
        (void)snprintf(out, size, "%s/%s", self, BURN_CLI_TEMPLATES_NEAR);
        if (is_folder(out)) {
            return;
        }
    }
    (void)snprintf(out, size, "%s", BURN_CLI_TEMPLATES);
}

static void make_names(const char *id, cli_template *out)
{
    size_t n = strlen(id);
    for (size_t i = 0; i <= n && i <= CLI_NAME_MAX; i++) {
        char letter = id[i] == '-' ? '_' : id[i];
        out->ident[i] = letter;
        out->upper[i] = (char)toupper((unsigned char)letter);
        out->title[i] = i == 0 ? (char)toupper((unsigned char)id[0]) : id[i];
    }
}

int cli_template_open(cli *c, const char *templates, const char *kind, const char *word,
                      const char *id, cli_template *out)
{
    static char folder[PATH_MAX];
    char text[PATH_MAX - 64];
    if (templates == NULL) {
        default_templates(text, sizeof(text));
        templates = text;
    }
    int n = snprintf(folder, sizeof(folder), "%s/%s", templates, kind);
    if (n < 0 || (size_t)n >= sizeof(folder) || !is_folder(folder)) {
        return cli_error(c, BURN_E_NOT_FOUND,
                         "no template in %s; install Burn-C, or say --templates FOLDER", templates);
    }
    out->folder = folder;
    out->word = word;
    out->id = id;
    make_names(id, out);
    return -1;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int is_word_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* The word in one of its three spellings at `text`; 0: none. */
static size_t spelling_at(const char *text, const char *word, char *out_first)
{
    size_t n = strlen(word);
    int upper = 1;
    for (size_t i = 0; i < n; i++) {
        if (tolower((unsigned char)text[i]) != word[i]) {
            return 0;
        }
        upper = upper && isupper((unsigned char)text[i]);
    }
    int title = !upper && isupper((unsigned char)text[0]);
    *out_first = upper ? 'U' : (char)(title ? 'T' : 'l');
    return n;
}

static const char *replacement(const cli_template *t, char spelling, char next)
{
    if (spelling == 'U') {
        return t->upper;
    }
    if (spelling == 'T') {
        return t->title;
    }
    return next == '_' ? t->ident : t->id;
}

/* In a guard, "BURN_SDK_..._" before the word: where the file was in Burn-C. */
static size_t guard_prefix(const char *text, const char *upper_word)
{
    if (strncmp(text, "BURN_SDK_", 9) != 0) {
        return 0;
    }
    const char *found = strstr(text, upper_word);
    return found != NULL ? (size_t)(found - text) : 0;
}

/* One line, or a file's name, with the new name in it. 0: it is too long. */
static int rename_text(const cli_template *t, const char *in, char *out, size_t size)
{
    char upper_word[32];
    size_t used = 0;
    char previous = ' ';
    size_t w = 0;
    for (; t->word[w] != '\0' && w + 1 < sizeof(upper_word); w++) {
        upper_word[w] = (char)toupper((unsigned char)t->word[w]);
    }
    upper_word[w] = '\0';
    while (*in != '\0') {
        char spelling = ' ';
        int begins = !is_word_byte(previous);
        in += begins ? guard_prefix(in, upper_word) : 0;
        /* MOCK_MOCK_H: the word may also follow itself. */
        size_t n = begins || previous == '_' ? spelling_at(in, t->word, &spelling) : 0;
        const char *more = n > 0 ? replacement(t, spelling, in[n]) : NULL;
        size_t length = n > 0 ? strlen(more) : 1;
        if (used + length + 1 > size) {
            return 0;
        }
        memcpy(out + used, n > 0 ? more : in, length);
        used += length;
        in += n > 0 ? n : 1;
        previous = in[-1];
    }
    out[used] = '\0';
    return 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The template's files, sorted. */
typedef struct file_list {
    unsigned n;
    char names[FILES_MAX][64];
} file_list;

static int compare_names(const void *a, const void *b)
{
    return strcmp((const char *)a, (const char *)b);
}

static int read_names(cli *c, const cli_template *t, file_list *list)
{
    DIR *dir = opendir(t->folder);
    list->n = 0;
    if (dir == NULL) {
        return cli_error(c, BURN_E_IO, "%s: %s", t->folder, strerror(errno));
    }
    for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        if (d->d_name[0] == '.') {
            continue;
        }
        if (list->n == FILES_MAX || strlen(d->d_name) >= sizeof(list->names[0])) {
            (void)closedir(dir);
            return cli_error(c, BURN_E_LIMIT, "%s has too many files, or one with a long name",
                             t->folder);
        }
        memcpy(list->names[list->n], d->d_name, strlen(d->d_name) + 1);
        list->n++;
    }
    (void)closedir(dir);
    qsort(list->names, list->n, sizeof(list->names[0]), compare_names);
    if (list->n == 0) {
        return cli_error(c, BURN_E_NOT_FOUND, "the template %s is empty", t->folder);
    }
    return CLI_FINE;
}

/* A copy in progress. `part` follows the lines of an #ifdef that is resolved. */
typedef struct file_copy {
    const cli_template *t;
    const file_list *list;
    FILE *in;
    FILE *out;
    enum { PART_NONE, PART_DROPPED, PART_KEPT } part;
} file_copy;

static int write_sources(const file_copy *f)
{
    char name[LINE_MAX_BYTES];
    int fine = 1;
    for (unsigned i = 0; i < f->list->n && fine; i++) {
        const char *end = strrchr(f->list->names[i], '.');
        if (end != NULL && strcmp(end, ".c") == 0) {
            fine = rename_text(f->t, f->list->names[i], name, sizeof(name)) &&
                   fprintf(f->out, "  '%s',\n", name) > 0;
        }
    }
    return fine;
}

/* 1 when the line belongs to an #ifdef that is resolved and is not written. */
static int is_left_out(file_copy *f, const char *line)
{
    char mark[48];
    int n = snprintf(mark, sizeof(mark), "#ifdef %s_INJECT", f->t->word);
    for (int i = 7; i < n && i < (int)sizeof(mark); i++) {
        mark[i] = (char)toupper((unsigned char)mark[i]);
    }
    if (f->part == PART_NONE && strncmp(line, mark, (size_t)n) == 0) {
        f->part = PART_DROPPED;
        return 1;
    }
    if (f->part == PART_DROPPED && strncmp(line, "#else", 5) == 0) {
        f->part = PART_KEPT;
        return 1;
    }
    if (f->part != PART_NONE && strncmp(line, "#endif", 6) == 0) {
        f->part = PART_NONE;
        return 1;
    }
    return f->part == PART_DROPPED;
}

static int write_line(const file_copy *f, const char *line)
{
    char text[2 * LINE_MAX_BYTES];
    if (strncmp(line, "@SOURCES@", 9) == 0) {
        return write_sources(f);
    }
    return rename_text(f->t, line, text, sizeof(text)) && fputs(text, f->out) >= 0;
}

static int copy_lines(file_copy *f)
{
    char line[LINE_MAX_BYTES];
    int after_empty = 0;
    while (fgets(line, sizeof(line), f->in) != NULL) {
        int empty = line[0] == '\n';
        if (strchr(line, '\n') == NULL && !feof(f->in)) {
            return 0; /* longer than any line should be */
        }
        /* What was left out between two empty lines leaves one of them. */
        if (is_left_out(f, line) || (empty && after_empty)) {
            continue;
        }
        if (!write_line(f, line)) {
            return 0;
        }
        after_empty = empty;
    }
    return !ferror(f->in);
}

/* "gitignore" is ".gitignore" in the project: hidden files do not hide in the template. */
static int new_path(const cli_template *t, const char *folder, const char *name, char *out,
                    size_t size)
{
    char renamed[LINE_MAX_BYTES];
    int hidden = strcmp(name, "gitignore") == 0 || strcmp(name, "clang-format") == 0;
    if (!rename_text(t, name, renamed, sizeof(renamed))) {
        return 0;
    }
    int n = snprintf(out, size, "%s/%s%s", folder, hidden ? "." : "", renamed);
    return n > 0 && (size_t)n < size;
}

static int copy_file(cli *c, const cli_template *t, const file_list *list, const char *name,
                     const char *folder)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    int n = snprintf(from, sizeof(from), "%s/%s", t->folder, name);
    if (n < 0 || (size_t)n >= sizeof(from) || !new_path(t, folder, name, to, sizeof(to))) {
        return cli_error(c, BURN_E_LIMIT, "%s: the path is too long", name);
    }
    file_copy f = {t, list, fopen(from, "r"), fopen(to, "wx"), PART_NONE};
    errno = 0;
    int fine = f.in != NULL && f.out != NULL && copy_lines(&f);
    if (f.in != NULL) {
        (void)fclose(f.in);
    }
    if (f.out != NULL) {
        fine = fclose(f.out) == 0 && fine;
    }
    if (!fine) {
        return cli_error(c, BURN_E_IO, "%s cannot be written: %s", to,
                         errno != 0 ? strerror(errno) : "a line is too long");
    }
    return CLI_FINE;
}

/* ---- the project ----------------------------------------------------------------------------- */

/* Projects have no folders below, so this ends. */
static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir != NULL) {
        for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
            (void)unlinkat(dirfd(dir), d->d_name, 0);
        }
        (void)closedir(dir);
    }
    (void)rmdir(folder);
}

/* Never onto something that came there meanwhile; some file systems cannot promise that. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    struct stat st;
    if ((errno == EINVAL || errno == ENOSYS) && lstat(to, &st) != 0) {
        return rename(from, to);
    }
    return -1;
}

/* "<folder>.XXXXXX", made. */
static int make_folder(cli *c, const char *folder, char *out, size_t size)
{
    struct stat st;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    if (lstat(folder, &st) == 0) {
        return cli_error(c, BURN_E_STATE,
                         "%s is there already; choose another name, or --dir FOLDER", folder);
    }
    int n = snprintf(out, size, "%.*s.XXXXXX", (int)length, folder);
    if (n < 0 || (size_t)n >= size) {
        return cli_error(c, BURN_E_LIMIT, "%s: the path is too long", folder);
    }
    if (mkdtemp(out) == NULL) {
        return cli_error(c, BURN_E_IO, "a folder beside %s cannot be made: %s", folder,
                         strerror(errno));
    }
    mode_t mask = umask(0);
    (void)umask(mask);
    /* The loader refuses folders that everybody may write to. */
    (void)chmod(out, 0777 & ~(mask | S_IWOTH));
    return CLI_FINE;
}

int cli_template_write(cli *c, const cli_template *t, const char *folder, unsigned *out_files)
{
    static file_list list;
    char work[PATH_MAX];
    int status = read_names(c, t, &list);
    if (status == CLI_FINE) {
        status = make_folder(c, folder, work, sizeof(work));
    }
    if (status != CLI_FINE) {
        return status;
    }
    for (unsigned i = 0; i < list.n && status == CLI_FINE; i++) {
        status = copy_file(c, t, &list, list.names[i], work);
    }
    if (status == CLI_FINE && rename_new(work, folder) != 0) {
        status = cli_error(c, BURN_E_IO, "%s cannot be made: %s", folder, strerror(errno));
    }
    if (status != CLI_FINE) {
        remove_folder(work);
        return status;
    }
    *out_files = list.n;
    return CLI_FINE;
}
