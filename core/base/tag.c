/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tag.c - the table of tags. See tag.h.
 *
 * Each entry has a list of what was found below it. Lists only grow, at their heads, so that they
 * are walked without the lock; it is taken to add. A place that is entered again is usually near
 * the head of a short list.
 */
#include "base/tag.h"

#include "base/alloc.h"
#include "base/printer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MAX_TAGS 16384u
#define MAX_PATH 192u
#define MAX_NAME 64u

typedef struct tag_entry {
    _Atomic uint32_t first_child; /* 0: none */
    uint32_t next;                /* among the children of one parent */
    uint32_t plain;               /* the same path without a location */
    uint32_t line;                /* of a location, else 0 */
    char path[MAX_PATH];
    char name[MAX_NAME]; /* last part of the path, or the file */
    char file[MAX_NAME]; /* "": no location */
    uint32_t file_line;
    uint32_t zero;
} tag_entry;

static tag_entry root;
static _Atomic(tag_entry *) entries[MAX_TAGS];
static _Atomic uint32_t n_entries = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static tag_entry *entry_of(uint64_t tag)
{
    tag_entry *e = NULL;
    if (tag > 0 && tag < MAX_TAGS) {
        e = atomic_load_explicit(&entries[tag], memory_order_acquire);
    }
    return e != NULL ? e : &root;
}

static uint32_t find(const tag_entry *parent, const char *name, uint32_t line)
{
    uint32_t at = atomic_load_explicit(&parent->first_child, memory_order_acquire);
    while (at != 0) {
        const tag_entry *e = entry_of(at);
        if (e->line == line && strcmp(e->name, name) == 0) {
            break;
        }
        at = e->next;
    }
    return at;
}

/* Adds a child; the lock is held. 0 when there is no room. */
static uint32_t add(uint32_t parent, const char *name, uint32_t line, uint32_t plain)
{
    uint32_t tag = atomic_load(&n_entries);
    tag_entry *e = tag < MAX_TAGS ? burni_calloc(1, sizeof(*e)) : NULL;
    if (e == NULL) {
        return 0;
    }
    tag_entry *p = entry_of(parent);
    burni_printer path = {e->path, sizeof(e->path), 0};
    burni_print(&path, "%s", p->path);
    if (line == 0) {
        burni_print(&path, "%s%s", p->path[0] != '\0' ? "." : "", name);
    }
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    (void)snprintf(e->file, sizeof(e->file), "%s", line > 0 ? name : p->file);
    e->line = line;
    e->file_line = line > 0 ? line : p->file_line;
    e->plain = plain != 0 || line > 0 ? plain : tag;
    e->next = atomic_load(&p->first_child);
    atomic_store_explicit(&entries[tag], e, memory_order_release);
    atomic_store(&n_entries, tag + 1);
    atomic_store_explicit(&p->first_child, tag, memory_order_release);
    return tag;
}

static uint32_t find_or_add(uint32_t parent, const char *name, uint32_t line, uint32_t plain)
{
    uint32_t tag = find(entry_of(parent), name, line);
    if (tag == 0) {
        (void)pthread_mutex_lock(&lock);
        tag = find(entry_of(parent), name, line);
        tag = tag != 0 ? tag : add(parent, name, line, plain);
        (void)pthread_mutex_unlock(&lock);
    }
    return tag;
}

/* A name that fits an entry and cannot steer a terminal. */
static void clean(char *out, const char *name)
{
    size_t n = 0;
    for (; name != NULL && name[n] != '\0' && n + 1 < MAX_NAME; n++) {
        unsigned char c = (unsigned char)name[n];
        out[n] = c < 0x20 || c == 0x7f ? '?' : name[n];
    }
    out[n] = '\0';
}

uint64_t burni_tag_child(uint64_t parent, const char *name)
{
    char plain_name[MAX_NAME];
    clean(plain_name, name);
    uint32_t above = parent < MAX_TAGS ? (uint32_t)parent : 0;
    uint32_t plain = 0;
    if (plain_name[0] == '\0') {
        return above;
    }
    if (entry_of(above)->plain != above) {
        plain = find_or_add(entry_of(above)->plain, plain_name, 0, 0);
    }
    uint32_t tag = find_or_add(above, plain_name, 0, plain);
    return tag != 0 ? tag : above;
}

uint64_t burni_tag_at(uint64_t tag, const char *file, uint32_t line)
{
    char name[MAX_NAME];
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    clean(name, slash != NULL ? slash + 1 : file);
    uint32_t plain = entry_of(tag)->plain;
    if (name[0] == '\0' || line == 0) {
        return tag;
    }
    uint32_t made = find_or_add(plain, name, line, plain);
    return made != 0 ? made : plain;
}

size_t burni_tag_text(uint64_t tag, char *out, size_t size)
{
    const tag_entry *e = entry_of(tag);
    burni_printer p = {out, size, 0};
    if (size > 0) {
        out[0] = '\0';
    }
    if (e->path[0] != '\0') {
        burni_print(&p, "%s", e->path);
    }
    if (e->file[0] != '\0') {
        burni_print(&p, e->path[0] != '\0' ? " (%s:%u)" : "%s:%u", e->file, e->file_line);
    }
    return p.used;
}

void burni_tag_append(uint64_t tag, burn_err *err)
{
    char place[112];
    char suffix[sizeof(place) + 8];
    if (tag == 0 || err == NULL || burni_tag_text(tag, place, sizeof(place)) == 0) {
        return;
    }
    size_t n = (size_t)snprintf(suffix, sizeof(suffix), " [at %s]", place);
    size_t used = strlen(err->text);
    size_t cap = err->cap < sizeof(err->text) ? err->cap : sizeof(err->text);
    if (strstr(err->text, suffix) != NULL || n + 1 > cap) {
        return;
    }
    used = used + n + 1 > cap ? cap - n - 1 : used;
    memcpy(err->text + used, suffix, n + 1);
}
