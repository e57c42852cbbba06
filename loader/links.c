/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * links.c - what a plugin's file tells about how it was linked: its build id, what it exports
 * beside its entry, and whether it needs a library of ours.
 *
 * Read from the file, before its code may run. None of it decides whether the plugin is opened, so
 * a file without sections, or with sections that make no sense, just tells nothing: every offset
 * and size is taken from the file and reads that miss end the look. The number of reads is bounded.
 * To look at one more kind of section: a row in `kinds`. Keeps no state. [any]
 */
#include "loader/links.h"

#include <burn/plugin.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So much is looked at; real plugins have about 40 sections and one symbol of their own. */
#define MOST_SECTIONS 256u
#define MOST_SYMBOLS  65536u
#define MOST_NEEDED   256u
#define MOST_NOTES    4096u
#define AT_ONCE       64u

typedef ElfW(Shdr) section;
typedef ElfW(Sym) symbol;

typedef struct look {
    int fd;
    ElfW(Ehdr) head;
    burni_links *out;
} look;

static int read_at(int fd, uint64_t at, void *out, size_t n)
{
    return at <= INT64_MAX && pread(fd, out, n, (off_t)at) == (ssize_t)n;
}

static int read_section(const look *l, uint32_t index, section *out)
{
    uint64_t at = (uint64_t)l->head.e_shoff + (uint64_t)index * sizeof(*out);
    return index < l->head.e_shnum && read_at(l->fd, at, out, sizeof(*out));
}

/* A name of a string table, cut to fit; "" when it cannot be read. */
static void read_name(const look *l, const section *names, uint64_t at, char *out, size_t cap)
{
    out[0] = '\0';
    if (at < names->sh_size) {
        ssize_t n = pread(l->fd, out, cap - 1, (off_t)(names->sh_offset + at));
        out[n > 0 ? n : 0] = '\0';
    }
}

/* Made by linkers and sanitizers for every shared object. */
static int is_of_tools(const char *name)
{
    static const char *const tools[] = {"_init", "_fini", "_edata", "_end"};
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (strcmp(name, tools[i]) == 0) {
            return 1;
        }
    }
    return name[0] == '\0' || strncmp(name, "__", 2) == 0;
}

static void add_export(burni_links *out, const char *name)
{
    if (strcmp(name, BURN_PLUGIN_SYMBOL) == 0 || is_of_tools(name)) {
        return;
    }
    if (out->n_exports < BURNI_LINK_NAMES) {
        (void)snprintf(out->exports[out->n_exports], sizeof(out->exports[0]), "%s", name);
    }
    out->n_exports++;
}

static int is_exported(const symbol *s)
{
    unsigned bind = s->st_info >> 4;
    return s->st_shndx != SHN_UNDEF && s->st_shndx != SHN_ABS &&
           (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE);
}

static void look_at_symbols(look *l, const section *s)
{
    section names;
    symbol symbols[AT_ONCE];
    uint64_t n = s->sh_size / sizeof(symbol);
    n = n < MOST_SYMBOLS ? n : MOST_SYMBOLS;
    if (s->sh_entsize != sizeof(symbol) || !read_section(l, s->sh_link, &names)) {
        return;
    }
    for (uint64_t first = 0; first < n; first += AT_ONCE) {
        uint64_t k = n - first < AT_ONCE ? n - first : AT_ONCE;
        if (!read_at(l->fd, s->sh_offset + first * sizeof(symbol), symbols,
                     (size_t)k * sizeof(symbol))) {
            return;
        }
        for (uint64_t i = 0; i < k; i++) {
            char name[BURNI_LINK_NAME];
            if (is_exported(&symbols[i])) {
                read_name(l, &names, symbols[i].st_name, name, sizeof(name));
                add_export(l->out, name);
            }
        }
    }
}

static void look_at_needed(look *l, const section *s)
{
    section names;
    ElfW(Dyn) entry;
    if (s->sh_entsize != sizeof(entry) || !read_section(l, s->sh_link, &names)) {
        return;
    }
    for (uint32_t i = 0; i < MOST_NEEDED; i++) {
        uint64_t at = s->sh_offset + (uint64_t)i * sizeof(entry);
        if ((uint64_t)i * sizeof(entry) >= s->sh_size ||
            !read_at(l->fd, at, &entry, sizeof(entry)) || entry.d_tag == DT_NULL) {
            return;
        }
        char name[BURNI_LINK_NAME];
        if (entry.d_tag == DT_NEEDED) {
            read_name(l, &names, entry.d_un.d_val, name, sizeof(name));
            if (strncmp(name, "libburn-", 8) == 0) {
                memcpy(l->out->needed, name, sizeof(name));
            }
        }
    }
}

static void look_at_note(look *l, const section *s)
{
    unsigned char bytes[MOST_NOTES];
    size_t n = s->sh_size < sizeof(bytes) ? (size_t)s->sh_size : sizeof(bytes);
    if (!read_at(l->fd, s->sh_offset, bytes, n)) {
        return;
    }
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= n;) {
        ElfW(Nhdr) note;
        memcpy(&note, bytes + at, sizeof(note));
        size_t name = at + sizeof(note);
        if (note.n_namesz > n || note.n_descsz > n) {
            return;
        }
        size_t id = name + (note.n_namesz + 3u) / 4u * 4u;
        if (id + note.n_descsz > n) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(bytes + name, "GNU", 4) == 0) {
            size_t most = (sizeof(l->out->build_id) - 1) / 2;
            for (size_t i = 0; i < note.n_descsz && i < most; i++) {
                (void)snprintf(l->out->build_id + 2 * i, 3, "%02x", bytes[id + i]);
            }
            return;
        }
        at = id + (note.n_descsz + 3u) / 4u * 4u;
    }
}

static const struct {
    uint32_t type;
    void (*look)(look *l, const section *s);
} kinds[] = {
    {SHT_DYNSYM, look_at_symbols},
    {SHT_DYNAMIC, look_at_needed},
    {SHT_NOTE, look_at_note},
};

void burni_links_look(int fd, burni_links *out)
{
    look l = {.fd = fd, .out = out};
    memset(out, 0, sizeof(*out));
    if (!read_at(fd, 0, &l.head, sizeof(l.head)) || l.head.e_shentsize != sizeof(section)) {
        return;
    }
    for (uint32_t i = 0; i < l.head.e_shnum && i < MOST_SECTIONS; i++) {
        section s;
        if (!read_section(&l, i, &s)) {
            return;
        }
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            if (kinds[k].type == s.sh_type) {
                kinds[k].look(&l, &s);
            }
        }
    }
}
