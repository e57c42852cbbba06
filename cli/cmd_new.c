/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmd_new.c - `burn new backend NAME` and `burn new extension NAME`: a plugin project that builds.
 *
 * Owns the checks of the name and what is said at the end; template.c writes the files. The
 * templates are installed with the program. To add a kind: a row in `kinds` and its folder; a word
 * that cannot be a name: one more in `taken`.
 */
#include "template.h"

#include <burn/plugins.h>
#include <stdio.h>
#include <string.h>

typedef struct kind {
    const char *name;
    const char *word; /* that the template is about */
    const char *what;
} kind;

static const kind kinds[] = {
    {"backend", "mock", "a backend with kernels for the minimal ops, on a simulated device"},
    {"extension", "starter", "an extension with one op, its kernel and a demo"},
};

static const kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

typedef struct taken_words {
    const char *why;
    const char *words; /* each between spaces */
} taken_words;

/*
 * A project has a header NAME.h in its folder, which comes before the system's, and meson targets
 * of its name. The headers are those of C and POSIX, and what glibc's include in turn.
 */
static const taken_words taken[] = {
    {"that word has a meaning of its own", " auto burn burni eval mock starter "},
    {"NAME.h would hide a C header of that name",
     " aio alloca arpa assert complex cpio ctype dirent dlfcn elf endian err errno error fcntl "
     "features features-time64 fenv float fmtmsg fnmatch ftw getopt glob grp iconv inttypes "
     "iso646 langinfo libgen libintl limits link locale malloc math memory monetary mqueue "
     "ndbm netdb nl_types poll printf pthread pwd regex regexp resolv sched search semaphore "
     "setjmp signal spawn stdalign stdarg stdatomic stdbit stdbool stdc-predef stdckdint "
     "stddef stdint stdio stdlib stdnoreturn string strings stropts syscall syslog tar termios "
     "tgmath threads time trace uchar ucontext ulimit unistd utime utmpx values wait wchar "
     "wctype wordexp "},
    {"it is a keyword of C or C++",
     " alignas alignof and asm bitand bitor bool break case catch char class compl concept const "
     "constexpr continue decltype default delete do double else enum explicit export extern false "
     "for friend goto if inline int long mutable namespace new noexcept not nullptr operator or "
     "private protected public register requires restrict return short signed sizeof static "
     "static_assert struct switch template this thread_local throw true try typedef typeid "
     "typename union unsigned using virtual void volatile while xor "},
    {"a file or a target of the project has that name",
     " all benchmark clean clean-ctlist clean-gcda clean-gcno coverage coverage-html coverage-text "
     "coverage-xml demo dist distcheck install kernels phony plugin reconfigure scan-build test "
     "uninstall "},
};

static int is_among(const char *words, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(words, name); at != NULL; at = strstr(at + 1, name)) {
        if (at[-1] == ' ' && at[n] == ' ') {
            return 1;
        }
    }
    return 0;
}

/* The rule of manifests, and what would not do as a file's, a target's or a C name. NULL: fine. */
static const char *name_fault(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > CLI_NAME_MAX) {
        return "it needs 1 to 24 characters";
    }
    if (name[0] < 'a' || name[0] > 'z') {
        return "it must begin with a letter from a to z";
    }
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n) {
        return "it may have the letters a to z, digits, _ and - only";
    }
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (is_among(taken[i].words, name)) {
            return taken[i].why;
        }
    }
    return NULL;
}

/* Two plugins of one id: only the first would ever be used. */
static int check_installed(cli *c, const char *name)
{
    for (uint32_t i = 0; i < burn_plugins_count(); i++) {
        burn_plugin_info info;
        burn_err err = BURN_ERR_INIT;
        BURN_INIT(&info, burn_plugin_info);
        if (burn_plugins_at(i, 0, &info, &err) == BURN_OK && strcmp(info.id, name) == 0) {
            char path[160];
            return cli_error(c, BURN_E_STATE,
                             "there is a plugin '%s' already (%s); choose another name", name,
                             cli_clean(path, sizeof(path), info.manifest));
        }
    }
    return CLI_FINE;
}

static int report(cli *c, const kind *k, const char *name, const char *folder, unsigned n_files)
{
    if (c->json) {
        return cli_print_json(json_pack("{s:s, s:s, s:o, s:i}", "kind", k->name, "name", name,
                                        "folder", cli_json_text(folder), "files", (int)n_files),
                              CLI_FINE);
    }
    printf("%s: %s, %u file%s\n\nnext:\n  cd '%s'\n  meson setup build\n"
           "  meson test -C build\n\nREADME.md there says what is where.\n",
           folder, k->what, n_files, cli_s(n_files), folder);
    return CLI_FINE;
}

/* The kind is the first word; what follows is read like the options of other commands. */
int cli_new(cli *c)
{
    const char *name = NULL;
    const char *folder = NULL;
    const char *templates = NULL;
    const cli_option options[] = {{"--dir", &folder, NULL, 0},
                                  {"--templates", &templates, NULL, 0}};
    const char *kind_name = c->argc > 0 && c->argv[0][0] != '-' ? c->argv[0] : NULL;
    if (kind_name != NULL) {
        c->argc--;
        c->argv++;
    }
    int status = cli_parse(c, options, sizeof(options) / sizeof(options[0]), &name);
    if (status >= 0) {
        return status;
    }
    const kind *k = kind_name != NULL ? find_kind(kind_name) : NULL;
    if (k == NULL || name == NULL) {
        return cli_usage(c, "say what and its name: burn new backend NAME, or burn new "
                            "extension NAME");
    }
    const char *fault = name_fault(name);
    if (fault != NULL) {
        return cli_error(c, BURN_E_INVALID, "'%.40s' cannot be the name of a plugin: %s", name,
                         fault);
    }
    status = check_installed(c, name);
    cli_template t;
    memset(&t, 0, sizeof(t));
    if (status == CLI_FINE) {
        status = cli_template_open(c, templates, k->name, k->word, name, &t);
    }
    if (status >= 0) {
        return status;
    }
    unsigned n_files = 0;
    folder = folder != NULL ? folder : name;
    status = cli_template_write(c, &t, folder, &n_files);
    return status == CLI_FINE ? report(c, k, name, folder, n_files) : status;
}
