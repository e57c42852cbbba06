/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * search.c - where plugins are looked for, in this order: the folders of BURN_PLUGIN_PATH, then
 * burn/<major>/ beside the library's own file, then the folder fixed when the library was built.
 *
 * Only absolute folders count and the current folder is never one of them. A folder that everybody
 * may write to, or that belongs to somebody else, is not read. Whatever is passed over stays in the
 * list of folders with the reason behind it. Manifests are sorted within their folder, so that the
 * order does not depend on the file system. Keeps no state. [any]
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER_FILES 512     /* manifests read from one folder: the first by name */
#define FOLDER_NAMES 20000   /* manifests at which a folder is refused */
#define PATH_FOLDERS 64      /* folders taken from BURN_PLUGIN_PATH */

typedef struct seen_folder {
    dev_t dev;
    ino_t ino;
} seen_folder;

typedef struct search {
    burni_search *out;
    seen_folder seen[PATH_FOLDERS + 2];
    uint32_t n_seen;
} search;

int32_t burni_check_owner(const struct stat *st, const char *path, burn_err *err)
{
    if ((st->st_mode & S_IWOTH) != 0) {
        return burni_fail(err, BURN_E_DENIED,
                          "%s can be written by every user (mode %04o); run chmod o-w on it", path,
                          (unsigned)(st->st_mode & 07777));
    }
    if (st->st_uid != 0 && st->st_uid != geteuid()) {
        return burni_fail(err, BURN_E_DENIED,
                          "%s belongs to user %u, not to root or to the current user (%u)", path,
                          (unsigned)st->st_uid, (unsigned)geteuid());
    }
    return BURN_OK;
}

static int32_t add_folder(search *s, const char *folder, const char *note)
{
    char text[PATH_MAX + 256];
    burni_text t;
    burni_text_init(&t, text, sizeof(text));
    burni_text_add(&t, "%s", folder);
    if (note[0] != '\0') {
        burni_text_add(&t, " (%s)", note);
        burni_log(BURN_LOG_INFO, "loader", "folder %s", text);
    }
    return burni_strings_add(&s->out->folders, text);
}

static int is_manifest(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/*
 * All names are taken before any is left out: which ones are read must not depend on the order in
 * which the file system tells them. FOLDER_NAMES of them are too many: then none is read.
 */
static int32_t list_names(DIR *dir, const char *folder, burni_strings *names)
{
    for (const struct dirent *d = readdir(dir); d != NULL && names->n < FOLDER_NAMES;
         d = readdir(dir)) {
        int32_t code = is_manifest(d->d_name) ? burni_strings_add(names, d->d_name) : BURN_OK;
        if (code != BURN_OK) {
            return code;
        }
    }
    burni_strings_sort(names);
    if (names->n > FOLDER_FILES && names->n < FOLDER_NAMES) {
        burni_log(BURN_LOG_WARN, "loader",
                  "%s holds %u manifests; the first %d by name are read, the rest is ignored",
                  folder, names->n, FOLDER_FILES);
    }
    return BURN_OK;
}

/* Adds the folder, and what is in it. */
static int32_t add_manifests(search *s, const char *folder, DIR *dir)
{
    burni_strings names = {NULL, 0, 0};
    int32_t code = list_names(dir, folder, &names);
    if (code == BURN_OK) {
        code = add_folder(s, folder,
                          names.n < FOLDER_NAMES ? "" : "refused: holds 20000 manifests or more");
    }
    if (names.n == FOLDER_NAMES) {
        burni_strings_free(&names);
    }
    for (uint32_t i = 0; code == BURN_OK && i < names.n && i < FOLDER_FILES; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", folder, names.at[i]);
        if (n > 0 && (size_t)n < sizeof(path)) {
            code = burni_strings_add(&s->out->manifests, path);
        }
    }
    burni_strings_free(&names);
    return code;
}

/* 1 when the folder was searched before under this or another name. */
static int was_seen(search *s, const struct stat *st)
{
    for (uint32_t i = 0; i < s->n_seen; i++) {
        if (s->seen[i].dev == st->st_dev && s->seen[i].ino == st->st_ino) {
            return 1;
        }
    }
    if (s->n_seen < sizeof(s->seen) / sizeof(s->seen[0])) {
        s->seen[s->n_seen].dev = st->st_dev;
        s->seen[s->n_seen].ino = st->st_ino;
        s->n_seen++;
    }
    return 0;
}

static int32_t search_folder(search *s, const char *folder)
{
    if (folder[0] != '/') {
        return add_folder(s, folder, "refused: not an absolute path");
    }
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return add_folder(s, folder, errno == ENOENT ? "not there" : strerror(errno));
    }
    /* The descriptor is asked, not the name: what is checked is what is read. */
    struct stat st;
    int32_t code = BURN_OK;
    burn_err why = BURN_ERR_INIT;
    if (fstat(dirfd(dir), &st) != 0) {
        code = add_folder(s, folder, strerror(errno));
    } else if (was_seen(s, &st)) {
        code = BURN_OK;
    } else if (burni_check_owner(&st, "the folder", &why) != BURN_OK) {
        char note[sizeof(why.text) + 16];
        (void)snprintf(note, sizeof(note), "refused: %s", why.text);
        code = add_folder(s, folder, note);
    } else {
        code = add_manifests(s, folder, dir);
    }
    (void)closedir(dir);
    return code;
}

static int32_t search_path(search *s, const char *path)
{
    uint32_t n = 0;
    for (const char *at = path;; at++) {
        size_t length = strcspn(at, ":");
        char folder[PATH_MAX];
        int32_t code = BURN_OK;
        if (n == PATH_FOLDERS) {
            return add_folder(s, "BURN_PLUGIN_PATH", "refused: names more than 64 folders");
        }
        if (length == 0) {
            code = add_folder(s, "BURN_PLUGIN_PATH", "refused: an empty entry");
        } else if (length >= sizeof(folder)) {
            code = add_folder(s, "BURN_PLUGIN_PATH", "refused: an entry is too long");
        } else {
            memcpy(folder, at, length);
            folder[length] = '\0';
            code = search_folder(s, folder);
        }
        n++;
        at += length;
        if (code != BURN_OK || *at == '\0') {
            return code;
        }
    }
}

/*
 * The file that this code was loaded from; 0 when that is not known for sure. A relative name says
 * nothing: the current folder may be another one by now.
 */
static int own_file(char *out)
{
    Dl_info info;
    void *map = NULL;
    /* An object pointer of this file stands for its code, so that no function pointer is cast. */
    static const char here = 0;
    if (dladdr1(&here, &info, &map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        return 0;
    }
    const struct link_map *link = map;
    if (link->l_name == NULL || link->l_name[0] == '\0') {
        /* Linked into the program, whose dli_fname is argv[0]: whatever the caller wrote. */
        return realpath("/proc/self/exe", out) != NULL;
    }
    if (link->l_name[0] != '/') {
        burni_log(BURN_LOG_WARN, "loader",
                  "the library was loaded by the relative path %s; no plugins are looked for "
                  "beside it",
                  link->l_name);
        return 0;
    }
    return realpath(link->l_name, out) != NULL;
}

static int32_t search_beside(search *s)
{
    char file[PATH_MAX];
    if (!own_file(file)) {
        return add_folder(s, "burn/ beside the library", "refused: its absolute path is not known");
    }
    char *slash = strrchr(file, '/');
    if (slash == NULL) {
        return BURN_OK;
    }
    *slash = '\0';
    char folder[PATH_MAX + 32];
    (void)snprintf(folder, sizeof(folder), "%s/burn/%d", file, BURN_ABI_MAJOR);
    return search_folder(s, folder);
}

int32_t burni_search_run(burni_search *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    search s;
    memset(&s, 0, sizeof(s));
    s.out = out;
    int32_t code = BURN_OK;
    const char *path = burni_env("PLUGIN_PATH");
    if (path != NULL) {
        code = search_path(&s, path);
    }
    if (code == BURN_OK) {
        code = search_beside(&s);
    }
#ifdef BURN_PLUGIN_DIR
    if (code == BURN_OK) {
        code = search_folder(&s, BURN_PLUGIN_DIR);
    }
#endif
    if (code != BURN_OK) {
        burni_search_free(out);
        return burni_fail(err, code, "no memory for the list of plugins");
    }
    return BURN_OK;
}

void burni_search_free(burni_search *s)
{
    burni_strings_free(&s->folders);
    burni_strings_free(&s->manifests);
}
