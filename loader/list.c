/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * list.c - makes the list of plugins from their manifests, without opening any of them.
 *
 * The first manifest of an id wins, in order of search, and the others stay in the list as hidden;
 * so does the first of two that name one file (same device and inode). A broken manifest stays with
 * its reason, under its file's name. BURN_BACKENDS, when set, names the backends that may be used;
 * the others stay in the list as disabled. Both variables are read here, once per process. Runs
 * without the loader's lock.
 */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void burni_entry_view(burni_entry *e, uint32_t i, int32_t state, int32_t code)
{
    int failed = state != BURNI_PLUGIN_KNOWN && state != BURNI_PLUGIN_OPEN;
    burni_plugin *v = &e->views[i];
    memset(v, 0, sizeof(*v));
    v->id = e->manifest.id;
    v->display_name = e->manifest.name[0] != '\0' ? e->manifest.name : e->manifest.id;
    v->version = e->manifest.version;
    v->license = e->manifest.license;
    v->kind = e->manifest.kind;
    v->manifest_path = e->manifest_path;
    v->library_path = e->library_path != NULL ? e->library_path : "";
    v->priority = e->manifest.priority;
    v->state = state;
    v->code = code;
    v->reason = failed ? e->reason : "";
    v->remedy = failed ? e->remedy : "";
    v->build_id = e->build_id;
    v->warning = e->warning;
    v->warning_remedy = e->warning_remedy;
}

/* The file's name without folder and ".json", for manifests that do not tell their id. */
static void guess_id(burni_entry *e)
{
    const char *slash = strrchr(e->manifest_path, '/');
    const char *name = slash != NULL ? slash + 1 : e->manifest_path;
    char stem[64];
    (void)snprintf(stem, sizeof(stem), "%s", name);
    char *dot = strstr(stem, ".json");
    if (dot != NULL && dot != stem) {
        *dot = '\0';
    }
    burni_text_clean(e->manifest.id, sizeof(e->manifest.id), stem);
    e->id_is_guess = 1;
}

static int32_t set_library(burni_entry *e)
{
    char path[PATH_MAX + 512];
    const char *slash = strrchr(e->manifest_path, '/');
    int folder = slash != NULL ? (int)(slash - e->manifest_path) : 0;
    (void)snprintf(path, sizeof(path), "%.*s/%s", folder, e->manifest_path, e->manifest.file);
    e->library_path = burni_strdup(path);
    if (e->library_path == NULL) {
        return BURN_E_NO_MEMORY;
    }
    struct stat st;
    if (stat(path, &st) == 0) {
        e->has_file = 1;
        e->dev = st.st_dev;
        e->ino = st.st_ino;
    }
    return BURN_OK;
}

static void entry_free(burni_entry *e)
{
    if (e == NULL) {
        return;
    }
    burni_entry_release(e);
    burni_free(e->manifest_path);
    burni_free(e->library_path);
    burni_free(e->devices);
    burni_free(e->probed);
    burni_free(e);
}

/* An entry of one manifest, in state KNOWN or BROKEN; NULL without memory. */
static burni_entry *make_entry(const char *path)
{
    burni_entry *e = burni_calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->manifest_path = burni_strdup(path);
    burn_err why = BURN_ERR_INIT;
    int32_t code = BURN_E_NO_MEMORY;
    if (e->manifest_path != NULL) {
        code = burni_manifest_read(path, &e->manifest, &why);
    }
    if (code == BURN_OK) {
        code = set_library(e);
    } else if (code != BURN_E_NO_MEMORY) {
        (void)burni_entry_fail(e, code, "correct the manifest or remove it", "%s: %s", path,
                               why.text);
    }
    if (code == BURN_E_NO_MEMORY) {
        entry_free(e);
        return NULL;
    }
    if (e->manifest.id[0] == '\0') {
        guess_id(e);
    }
    if (code == BURN_OK) {
        code = burni_check_range(e, "the manifest", e->manifest.abi_oldest, e->manifest.abi_newest);
    }
    burni_entry_view(e, 0, code == BURN_OK ? BURNI_PLUGIN_KNOWN : BURNI_PLUGIN_BROKEN, code);
    return e;
}

void burni_entry_name_rival(burni_entry *e)
{
    size_t used = strlen(e->remedy);
    if (e->rival != NULL) {
        (void)snprintf(e->remedy + used, sizeof(e->remedy) - used, "%sor remove %s: it hides %s",
                       used > 0 ? "; " : "", e->manifest_path, e->rival->manifest_path);
    }
}

/* Of two manifests with one id the first is taken, also when it is broken: which one that is must
 * not depend on what works. Guessed ids hide nothing and are hidden by nothing. */
static void check_hidden(const burni_listing *list, burni_entry *e)
{
    for (uint32_t i = 0; i < list->n; i++) {
        burni_entry *first = list->entries[i];
        if (e->id_is_guess || first->id_is_guess || first->is_hidden ||
            strcmp(first->manifest.id, e->manifest.id) != 0) {
            continue;
        }
        e->is_hidden = 1;
        int32_t code = burni_entry_fail(
            e, BURN_E_DENIED, "remove one of the two manifests, or change BURN_PLUGIN_PATH",
            "%s hides it: it has the same id and comes first", first->manifest_path);
        burni_entry_view(e, 0, BURNI_PLUGIN_HIDDEN, code);
        if (first->rival == NULL) {
            first->rival = e;
            if (first->views[0].state == BURNI_PLUGIN_BROKEN) {
                burni_entry_name_rival(first);
            }
        }
        return;
    }
}

static void check_same_file(const burni_listing *list, burni_entry *e)
{
    if (e->views[0].state != BURNI_PLUGIN_KNOWN || !e->has_file) {
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        const burni_entry *first = list->entries[i];
        if (!first->is_hidden && first->has_file && first->dev == e->dev && first->ino == e->ino) {
            int32_t code = burni_entry_fail(e, BURN_E_INVALID, "remove one of the two manifests",
                                            "its library is the same file as that of \"%s\" (%s)",
                                            first->manifest.id, first->manifest_path);
            burni_entry_view(e, 0, BURNI_PLUGIN_BROKEN, code);
            return;
        }
    }
}

/* 1 when `id` is on the list; `bad` gets the position of what is malformed, 0 when nothing is. */
static int is_allowed(const char *allowed, const char *id, size_t *bad)
{
    int found = 0;
    *bad = 0;
    for (const char *at = allowed;; at++) {
        size_t n = strcspn(at, ",");
        if (!burni_is_name(at, n)) {
            *bad = (size_t)(at - allowed) + 1;
            return 0;
        }
        found |= strlen(id) == n && strncmp(at, id, n) == 0;
        at += n;
        if (*at == '\0') {
            return found;
        }
    }
}

static void check_allowed(burni_entry *e, const char *allowed)
{
    if (allowed == NULL || strcmp(e->manifest.kind, "backend") != 0 ||
        e->views[0].state != BURNI_PLUGIN_KNOWN) {
        return;
    }
    size_t bad = 0;
    if (is_allowed(allowed, e->manifest.id, &bad)) {
        return;
    }
    if (bad > 0) {
        (void)burni_entry_fail(e, BURN_E_DENIED,
                               "unset BURN_BACKENDS, or name backends separated by commas",
                               "BURN_BACKENDS is \"%.100s\", which names no backend at position "
                               "%zu, so none may be used",
                               allowed, bad);
    } else {
        (void)burni_entry_fail(e, BURN_E_DENIED, "add it to BURN_BACKENDS, or unset that",
                               "BURN_BACKENDS is \"%.100s\", which leaves it out", allowed);
    }
    burni_entry_view(e, 0, BURNI_PLUGIN_DISABLED, BURN_E_DENIED);
}

static int32_t append(burni_listing *list, burni_entry *e)
{
    if (list->n == list->cap) {
        uint32_t cap = list->cap > 0 ? list->cap * 2 : 8;
        burni_entry **grown = burni_realloc(list->entries, cap * sizeof(burni_entry *));
        if (grown == NULL) {
            return BURN_E_NO_MEMORY;
        }
        list->entries = grown;
        list->cap = cap;
    }
    list->entries[list->n] = e;
    list->n++;
    return BURN_OK;
}

static int32_t add_manifest(burni_listing *list, const char *path, const char *allowed)
{
    burni_entry *e = make_entry(path);
    if (e == NULL) {
        return BURN_E_NO_MEMORY;
    }
    if (e->manifest.is_foreign) {
        burni_log(BURN_LOG_DEBUG, "loader",
                  "%s is passed over: it is no object with \"format\", \"id\" or \"kind\", so it "
                  "is no manifest",
                  path);
        entry_free(e);
        return BURN_OK;
    }
    check_hidden(list, e);
    check_same_file(list, e);
    check_allowed(e, allowed);
    if (e->views[0].state == BURNI_PLUGIN_BROKEN) {
        burni_log(BURN_LOG_INFO, "loader", "%s: %s", e->manifest.id, e->reason);
    } else if (e->is_hidden) {
        burni_log(BURN_LOG_INFO, "loader", "%s: %s is not used: %s; %s", e->manifest.id,
                  e->manifest_path, e->reason, e->remedy);
    }
    int32_t code = append(list, e);
    if (code != BURN_OK) {
        entry_free(e);
    }
    return code;
}

int32_t burni_listing_build(burni_listing *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    burni_search found;
    int32_t code = burni_search_run(&found, err);
    if (code != BURN_OK) {
        return code;
    }
    const char *allowed = burni_env("BACKENDS");
    for (uint32_t i = 0; code == BURN_OK && i < found.manifests.n; i++) {
        code = add_manifest(out, found.manifests.at[i], allowed);
    }
    out->folders = found.folders;
    memset(&found.folders, 0, sizeof(found.folders));
    burni_search_free(&found);
    if (code != BURN_OK) {
        burni_listing_free(out);
        return burni_fail(err, code, "no memory for the list of plugins");
    }
    return BURN_OK;
}

void burni_listing_free(burni_listing *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        entry_free(list->entries[i]);
    }
    burni_free(list->entries);
    burni_strings_free(&list->folders);
    memset(list, 0, sizeof(*list));
}
