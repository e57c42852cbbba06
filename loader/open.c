/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * open.c - maps a plugin's library into the process and finds its query function.
 *
 * The file is checked before its code may run (regular, ours or root's, not writable by everybody,
 * a whole ELF file of this machine) and mapped by its real path, which $ORIGIN and dladdr need.
 * What was mapped is compared with what was checked; but constructors of a file that was swapped in
 * between have run by then. Only the owner and mode of its folder, checked as well, keep others
 * from that. Nothing is ever unmapped: threads and destructors of a plugin outlive any reference
 * that we could count. Runs without the loader's lock. [init]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/alloc.h"
#include "base/log.h"
#include "loader/entry.h"
#include "loader/links.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#else
#define HOST_MACHINE EM_NONE /* not known: left to the dynamic linker */
#endif

#if UINTPTR_MAX > 0xffffffffu
#define HOST_CLASS ELFCLASS64
#else
#define HOST_CLASS ELFCLASS32
#endif

int32_t burni_entry_fail(burni_entry *e, int32_t code, const char *remedy, const char *format, ...)
{
    char text[sizeof(e->reason)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    burni_text_clean(e->reason, sizeof(e->reason), text);
    burni_text_clean(e->remedy, sizeof(e->remedy), remedy != NULL ? remedy : "");
    return code;
}

/* A file that was cut off, by a full disk or an interrupted copy, would be mapped, and the first
 * look behind its end would end the process. */
static int32_t check_length(burni_entry *e, int fd, const char *path, uint64_t size)
{
    ElfW(Ehdr) head;
    uint64_t needed = sizeof(head);
    int whole = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head);
    for (uint32_t i = 0; whole && i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        uint64_t at = (uint64_t)head.e_phoff + (uint64_t)i * sizeof(part);
        whole = head.e_phentsize == sizeof(part) &&
                pread(fd, &part, sizeof(part), (off_t)at) == (ssize_t)sizeof(part);
        needed = whole ? (uint64_t)part.p_offset + part.p_filesz : at + sizeof(part);
        whole = whole && needed <= size && needed >= part.p_offset;
    }
    if (!whole) {
        return burni_entry_fail(e, BURN_E_FORMAT, "install the plugin again",
                                "%s is damaged or cut off (%" PRIu64 " bytes, %" PRIu64
                                " are needed)",
                                path, size, needed);
    }
    return BURN_OK;
}

static int32_t check_header(burni_entry *e, int fd, const char *path, uint64_t size)
{
    unsigned char head[EI_NIDENT + 4];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    if (n == 0) {
        return burni_entry_fail(e, BURN_E_FORMAT, "install the plugin again", "%s is empty", path);
    }
    if (n < (ssize_t)sizeof(head) || memcmp(head, ELFMAG, SELFMAG) != 0) {
        return burni_entry_fail(e, BURN_E_FORMAT, "install the plugin again",
                                "%s is not a shared library", path);
    }
    uint16_t machine = 0;
    memcpy(&machine, head + EI_NIDENT + 2, sizeof(machine));
    if (head[EI_CLASS] != HOST_CLASS || (HOST_MACHINE != EM_NONE && machine != HOST_MACHINE)) {
        return burni_entry_fail(e, BURN_E_FORMAT, "install the plugin built for this machine",
                                "%s was built for another machine (ELF class %u, machine %u; this "
                                "process has class %d, machine %d)",
                                path, head[EI_CLASS], machine, HOST_CLASS, HOST_MACHINE);
    }
    return check_length(e, fd, path, size);
}

static int32_t check_folder(burni_entry *e, const char *real)
{
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", real);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    struct stat st;
    if (stat(folder, &st) != 0) {
        return burni_entry_fail(e, BURN_E_IO, NULL, "cannot look at %s: %s", folder,
                                strerror(errno));
    }
    burn_err why = BURN_ERR_INIT;
    int32_t code = burni_check_owner(&st, "the folder", &why);
    if (code != BURN_OK) {
        return burni_entry_fail(e, code, "correct the folder's owner and mode",
                                "the library is in %s: %s", folder, why.text);
    }
    return BURN_OK;
}

/* Checks the file behind the descriptor; `out` tells which file that was. */
static int32_t check_file(burni_entry *e, int fd, const char *real, struct stat *out)
{
    if (fstat(fd, out) != 0) {
        return burni_entry_fail(e, BURN_E_IO, NULL, "cannot look at %s: %s", real, strerror(errno));
    }
    if (!S_ISREG(out->st_mode)) {
        return burni_entry_fail(e, BURN_E_FORMAT, "correct \"file\" in the manifest",
                                "%s is %s, not a shared library", real,
                                S_ISDIR(out->st_mode) ? "a directory" : "no regular file");
    }
    burn_err why = BURN_ERR_INIT;
    int32_t code = burni_check_owner(out, "the library", &why);
    if (code != BURN_OK) {
        return burni_entry_fail(e, code, "correct the file's owner and mode", "%s: %s", real,
                                why.text);
    }
    code = check_folder(e, real);
    return code == BURN_OK ? check_header(e, fd, real, (uint64_t)out->st_size) : code;
}

const char *burni_entry_hint(const burni_entry *e, const char *text)
{
    for (uint32_t i = 0; i < e->manifest.n_needs; i++) {
        if (strstr(text, e->manifest.needs[i].library) != NULL) {
            return e->manifest.needs[i].hint;
        }
    }
    return NULL;
}

/* 1 when the symbol's code comes from the file that was checked. Its constructors have run. */
static int is_same_file(void *symbol, const struct stat *checked)
{
    Dl_info info;
    struct stat st;
    if (dladdr(symbol, &info) == 0 || info.dli_fname == NULL || stat(info.dli_fname, &st) != 0) {
        return 0;
    }
    return st.st_dev == checked->st_dev && st.st_ino == checked->st_ino;
}

static int32_t map_library(burni_entry *e, const char *real, const struct stat *checked,
                           burn_plugin_query_fn *out)
{
    void *library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *text = dlerror();
        text = text != NULL ? text : "the dynamic linker gave no reason";
        const char *hint = burni_entry_hint(e, text);
        return burni_entry_fail(e, BURN_E_IO, hint != NULL ? hint : "install what it needs", "%s",
                                text);
    }
    void *symbol = dlsym(library, BURN_PLUGIN_SYMBOL);
    if (symbol == NULL) {
        return burni_entry_fail(e, BURN_E_FORMAT, "it is no plugin, or lost its entry in linking",
                                "%s has no symbol %s", real, BURN_PLUGIN_SYMBOL);
    }
    if (!is_same_file(symbol, checked)) {
        return burni_entry_fail(e, BURN_E_DENIED, "make sure that nothing else changes the file",
                                "%s was replaced while it was loaded, or its %s comes from another "
                                "library",
                                real, BURN_PLUGIN_SYMBOL);
    }
    memcpy(out, &symbol, sizeof(*out));
    return BURN_OK;
}

/* Symbols beside the entry, and libraries of ours: told, not refused (rule 17). */
static void look_at_links(burni_entry *e, int fd)
{
    burni_links links;
    burni_links_look(fd, &links);
    burni_text_clean(e->build_id, sizeof(e->build_id), links.build_id);
    char text[sizeof(e->warning)];
    burni_text t;
    burni_text_init(&t, text, sizeof(text));
    if (links.needed[0] != '\0') {
        burni_text_add(&t, "its library is linked with %s, which a plugin must not need",
                       links.needed);
    }
    for (uint32_t i = 0; i < links.n_exports && i < BURNI_LINK_NAMES; i++) {
        if (i == 0) {
            burni_text_add(&t, "%sit exports %u symbol%s beside " BURN_PLUGIN_SYMBOL ": ",
                           t.used > 0 ? "; " : "", links.n_exports,
                           links.n_exports == 1 ? "" : "s");
        }
        burni_text_add(&t, "%s%.40s", i > 0 ? ", " : "", links.exports[i]);
    }
    if (t.used == 0) {
        return;
    }
    burni_text_add(&t, "%s", links.n_exports > BURNI_LINK_NAMES ? ", ..." : "");
    burni_text_clean(e->warning, sizeof(e->warning), text);
    burni_text_clean(e->warning_remedy, sizeof(e->warning_remedy),
                     links.n_exports > 0
                         ? "its vendor should link it with hidden visibility and a version script"
                         : "its vendor should link it without libraries of this project");
    burni_log(BURN_LOG_WARN, "loader", "%s: %s; %s", e->manifest.id, e->warning,
              e->warning_remedy);
}

int32_t burni_open_library(burni_entry *e, burn_plugin_query_fn *out)
{
    char real[PATH_MAX];
    if (e->manifest.file[0] == '\0' || e->library_path == NULL || e->library_path[0] != '/') {
        /* dlopen("") would hand back the program itself. */
        return burni_entry_fail(e, BURN_E_FORMAT, NULL, "the manifest names no file");
    }
    if (realpath(e->library_path, real) == NULL) {
        return burni_entry_fail(e, BURN_E_IO, "install the plugin again, or remove its manifest",
                                "cannot find %s: %s", e->library_path, strerror(errno));
    }
    int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return burni_entry_fail(e, BURN_E_IO, "correct the file's owner and mode",
                                "cannot open %s: %s", real, strerror(errno));
    }
    struct stat st;
    int32_t code = check_file(e, fd, real, &st);
    if (code == BURN_OK) {
        look_at_links(e, fd);
        code = map_library(e, real, &st, out);
    }
    /* Kept open until here: while it is, its inode number cannot be used again. */
    (void)close(fd);
    return code;
}
