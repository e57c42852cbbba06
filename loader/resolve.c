/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * resolve.c - which device a device string picks, and the messages when it picks none.
 *
 * A name is that device or an error. A list (BURN_DEVICE only) takes the first that is usable, but
 * every name in it must be known. `auto` ranks devices: discrete, integrated, CPU, virtual, remote,
 * and last a CPU that pretends to be a GPU; within a rank the backend's priority decides, then its
 * place in the list. Backends with a negative priority are taken only by name. Messages begin with
 * what matters, since a caller's sink may be short. Keeps no state. [any]
 */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE 1024

enum { RANK_NONE = 0, RANK_EMULATED = 1, RANK_REMOTE = 2, RANK_VIRTUAL = 3, RANK_CPU = 4,
       RANK_INTEGRATED = 5, RANK_DISCRETE = 6 };

static const char *const rank_names[] = {"no",      "emulated CPU", "remote",  "virtual",
                                         "CPU",     "integrated",   "discrete"};

static int is_cpu_backend(const burni_entry *e)
{
    return strcmp(e->manifest.devices, "cpu") == 0;
}

/* The name that was meant, of a backend or of a plugin of any kind; NULL when none is near. */
static const char *nearest_of(const char *id, int any_kind)
{
    const char *best = NULL;
    uint32_t best_distance = 3;
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        const burni_plugin *p = burni_loader_at(i);
        int fits = p != NULL && (any_kind || strcmp(p->kind, "extension") != 0);
        uint32_t d = fits ? burni_distance(id, p->id) : UINT32_MAX;
        if (d < best_distance) {
            best_distance = d;
            best = p->id;
        }
    }
    return best;
}

/* A backend whose devices are of the kind that was asked for, where a name of one is needed. */
static const char *backend_of_kind(const char *kind)
{
    for (uint32_t i = 0; i < burni_loader_count(); i++) {
        const burni_entry *e = burni_loader_entry(i);
        const burni_plugin *p = burni_loader_at(i);
        int fine = p != NULL && (p->state == BURNI_PLUGIN_KNOWN || p->state == BURNI_PLUGIN_OPEN);
        if (fine && e != NULL && kind[0] != '\0' && strcmp(e->manifest.devices, kind) == 0) {
            return p->id;
        }
    }
    return NULL;
}

static void describe_devices(burni_text *t, int64_t n)
{
    if (n >= 0) {
        burni_text_add(t, " (%lld device%s)", (long long)n, n == 1 ? "" : "s");
    }
}

/* 0: there is none. */
static int describe_installed(burni_text *t)
{
    const char *before = "installed: ";
    int unusable = 0;
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        burni_entry *e = burni_loader_entry(i);
        const burni_plugin *p = burni_loader_at(i);
        int fine = p != NULL && (p->state == BURNI_PLUGIN_KNOWN || p->state == BURNI_PLUGIN_OPEN);
        int backend = p != NULL && strcmp(p->kind, "backend") == 0;
        unusable |= backend && !fine;
        if (fine && backend) {
            burni_text_add(t, "%s%s", before, p->id);
            describe_devices(t, burni_loader_known_devices(e));
            before = ", ";
        }
    }
    if (before[0] == 'i') {
        burni_text_add(t, "no backend is %s", unusable ? "usable" : "installed");
    }
    return before[0] != 'i';
}

/* Is it one that auto tries? */
static int is_for_auto(const burni_plugin *p)
{
    return strcmp(p->kind, "backend") == 0 && p->priority >= 0;
}

/* How many there are; `told`: those that auto tries were told of before. */
static uint32_t describe_unusable(burni_text *t, int told)
{
    const char *before = "; not usable: ";
    uint32_t found = 0;
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        const burni_plugin *p = burni_loader_at(i);
        if (p != NULL && p->reason[0] != '\0' && p->state != BURNI_PLUGIN_HIDDEN &&
            strcmp(p->kind, "extension") != 0 &&
            !(told && burni_loader_entry(i) != NULL && is_for_auto(p))) {
            burni_text_add(t, "%s%s (%.120s)", before, p->id, p->reason);
            before = ", ";
            found++;
        }
    }
    return found;
}

static void describe_searched(burni_text *t)
{
    burni_text_add(t, "; searched: ");
    for (uint32_t i = 0; burni_loader_searched(i)[0] != '\0'; i++) {
        burni_text_add(t, "%s%s", i > 0 ? ", " : "", burni_loader_searched(i));
    }
}

/* Callers' texts are cut, so what to do stands before where was looked. */
void burni_loader_describe(burni_text *t)
{
    int any = describe_installed(t);
    if (describe_unusable(t, 0) == 0 && !any) {
        burni_text_add(t, "; install one, or set BURN_PLUGIN_PATH to its absolute folder");
    }
    describe_searched(t);
}

/* A list of the extensions, for those who look for a plugin of any kind. */
static void describe_extensions(burni_text *t)
{
    const char *before = "extensions: ";
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        const burni_plugin *p = burni_loader_at(i);
        if (p != NULL && p->state != BURNI_PLUGIN_HIDDEN && strcmp(p->kind, "extension") == 0) {
            burni_text_add(t, "%s%s", before, p->id);
            before = ", ";
        }
    }
    burni_text_add(t, "%s", before[0] == ',' ? "; " : "");
}

static void add_unknown(burni_text *t, const char *what, const char *id, int any_kind)
{
    char shown[64];
    burni_text_clean(shown, sizeof(shown), id != NULL ? id : "");
    const char *nearest = backend_of_kind(shown);
    int is_kind = nearest != NULL;
    nearest = is_kind ? nearest : nearest_of(shown, any_kind);
    burni_text_add(t, "no %s \"%s\"", what, shown);
    if (nearest != NULL) {
        burni_text_add(t, is_kind ? "; \"%s\" has devices of that kind;" : "; did you mean \"%s\"?",
                       nearest);
    }
    burni_text_add(t, nearest != NULL ? " " : "; ");
    if (any_kind) {
        describe_extensions(t);
    }
    burni_loader_describe(t);
}

int32_t burni_loader_unknown(const char *id, burn_err *err)
{
    char text[MESSAGE];
    burni_text t;
    burni_text_init(&t, text, sizeof(text));
    add_unknown(&t, "plugin", id, 1);
    return burni_fail(err, BURN_E_NOT_FOUND, "%s", text);
}

/* Begins a message: the string, the position, and in the log the whole of what follows. */
static void begin_message(burni_text *t, char *buffer, const char *device, uint32_t column)
{
    char shown[72];
    burni_text_clean(shown, sizeof(shown), device);
    burni_text_init(t, buffer, MESSAGE);
    burni_text_add(t, "device \"%s\", position %u: ", shown, column);
}

static int32_t end_message(burn_err *err, int32_t code, const char *text)
{
    burni_log(BURN_LOG_DEBUG, "loader", "%s", text);
    return burni_fail(err, code, "%s", text);
}

/* Every name of the string must be known before any of them is tried. */
static int32_t check_known(const char *device, const burni_device_term *term, burn_err *err)
{
    const burni_entry *e = term->is_auto ? NULL : burni_loader_entry_find(term->id);
    int is_extension = e != NULL && strcmp(e->manifest.kind, "extension") == 0;
    if (term->is_auto || (e != NULL && !is_extension)) {
        return BURN_OK;
    }
    char text[MESSAGE];
    burni_text t;
    begin_message(&t, text, device, term->column);
    if (is_extension) {
        burni_text_add(&t, "\"%s\" is an extension, not a backend; ", term->id);
        burni_loader_describe(&t);
        return end_message(err, BURN_E_INVALID, text);
    }
    add_unknown(&t, "backend", term->id, 0);
    return end_message(err, BURN_E_NOT_FOUND, text);
}

static void choose(burni_device_choice *out, const char *id, uint32_t ordinal,
                   const burni_device_term *term)
{
    memset(out, 0, sizeof(*out));
    (void)snprintf(out->id, sizeof(out->id), "%.63s", id);
    out->ordinal = ordinal;
    out->autodiff = term->autodiff;
    memcpy(out->options, term->options, sizeof(out->options));
    (void)snprintf(out->canonical, sizeof(out->canonical), "%.63s:%u", out->id, ordinal);
}

/* `why_not` gets the reason alone, for lists. */
static int32_t resolve_named(const burni_device_term *term, burni_device_choice *out,
                             burn_err *why_not)
{
    uint32_t n = 0;
    int32_t code = burni_loader_device_count(term->id, &n, why_not);
    if (code != BURN_OK) {
        return code;
    }
    if (n == 0) {
        return burni_fail(why_not, BURN_E_NOT_FOUND, "%s: it is installed but finds no device",
                          term->id);
    }
    if (term->ordinal >= n) {
        return burni_fail(why_not, BURN_E_NOT_FOUND,
                          "%s: there is no device %u; it has %u device%s, so 0 to %u are valid",
                          term->id, term->ordinal, n, n == 1 ? "" : "s", n - 1);
    }
    choose(out, term->id, term->ordinal, term);
    (void)snprintf(out->why, sizeof(out->why), "asked for by name");
    return BURN_OK;
}

static int rank_of(const burni_entry *e, uint32_t kind)
{
    switch (kind) {
    case BURN_DEVICE_DISCRETE:
        return RANK_DISCRETE;
    case BURN_DEVICE_INTEGRATED:
        return RANK_INTEGRATED;
    case BURN_DEVICE_CPU:
        return is_cpu_backend(e) ? RANK_CPU : RANK_EMULATED;
    case BURN_DEVICE_VIRTUAL:
        return RANK_VIRTUAL;
    case BURN_DEVICE_REMOTE:
        return RANK_REMOTE;
    default:
        return RANK_EMULATED;
    }
}

typedef struct auto_pick {
    burni_entry *entry;
    uint32_t ordinal;
    int rank;
    burni_text passed; /* who was passed over, and why */
} auto_pick;

/* Whether a device of this rank and backend goes before what was picked so far. */
static int is_better(const auto_pick *pick, const burni_entry *e, int rank)
{
    if (rank != pick->rank) {
        return rank > pick->rank;
    }
    return pick->entry != e && e->manifest.priority > pick->entry->manifest.priority;
}

static void pass_over(auto_pick *pick, const burni_entry *e, const char *why)
{
    size_t skip = strlen(e->manifest.id);
    int named = strncmp(why, e->manifest.id, skip) == 0 && why[skip] == ':';
    burni_text_add(&pick->passed, "%s%s%s%.160s", pick->passed.used > 0 ? ", " : "",
                   named ? "" : e->manifest.id, named ? "" : ": ", why);
}

static void try_backend(auto_pick *pick, burni_entry *e)
{
    uint32_t n = 0;
    burn_err why = BURN_ERR_INIT;
    if (burni_loader_device_count(e->manifest.id, &n, &why) != BURN_OK) {
        pass_over(pick, e, why.text);
        return;
    }
    if (n == 0) {
        pass_over(pick, e, "no device");
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        burn_device_info info;
        if (burni_loader_device_info(e->manifest.id, i, &info, &why) != BURN_OK) {
            pass_over(pick, e, why.text);
            continue;
        }
        int rank = rank_of(e, info.kind);
        if (is_better(pick, e, rank)) {
            pick->entry = e;
            pick->ordinal = i;
            pick->rank = rank;
        }
    }
}

/* Backends that only have CPUs are opened only when nothing better was found. */
static void try_backends(auto_pick *pick, int cpu_backends)
{
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        burni_entry *e = burni_loader_entry(i);
        const burni_plugin *p = burni_loader_at(i);
        if (e == NULL || e->is_hidden || strcmp(e->manifest.kind, "backend") != 0 ||
            e->manifest.priority < 0 || is_cpu_backend(e) != cpu_backends) {
            continue;
        }
        if (p->state == BURNI_PLUGIN_DISABLED || p->state == BURNI_PLUGIN_BROKEN) {
            pass_over(pick, e, p->reason);
        } else {
            try_backend(pick, e);
        }
    }
}

/* Backends that auto leaves alone, only said when nothing else was found: how many. */
static uint32_t describe_by_name(burni_text *t)
{
    uint32_t found = 0;
    uint32_t n = burni_loader_count();
    for (uint32_t i = 0; i < n; i++) {
        const burni_plugin *p = burni_loader_at(i);
        if (p != NULL && p->state != BURNI_PLUGIN_HIDDEN && p->priority < 0 &&
            strcmp(p->kind, "backend") == 0) {
            burni_text_add(t, "%s%s", found == 0 ? "; only by name: " : ", ", p->id);
            found++;
        }
    }
    return found;
}

/* Each cause once: what was tried stands with its reason, the rest is told without it. */
static void describe_no_device(burni_text *t, const burni_text *passed)
{
    char names[200];
    burni_text by_name;
    burni_text_init(&by_name, names, sizeof(names));
    if (describe_by_name(&by_name) == 0 && passed->used == 0) {
        burni_loader_describe(t);
        return;
    }
    burni_text_add(t, "no backend has a usable device");
    if (passed->used > 0) {
        burni_text_add(t, " (`burn doctor` tells more); tried: %.600s", passed->at);
    }
    burni_text_add(t, "%s", names);
    (void)describe_unusable(t, 1);
    describe_searched(t);
}

static int32_t resolve_auto(const burni_device_term *term, burni_device_choice *out,
                            burn_err *why_not)
{
    char passed[MESSAGE];
    auto_pick pick = {NULL, 0, RANK_NONE, {NULL, 0, 0}};
    burni_text_init(&pick.passed, passed, sizeof(passed));
    try_backends(&pick, 0);
    if (pick.rank < RANK_INTEGRATED) {
        try_backends(&pick, 1);
    }
    if (pick.entry != NULL) {
        choose(out, pick.entry->manifest.id, pick.ordinal, term);
        (void)snprintf(out->why, sizeof(out->why), "auto: first %s device by priority%s%.90s",
                       rank_names[pick.rank], pick.passed.used > 0 ? "; passed over: " : "",
                       passed);
        burni_log(BURN_LOG_INFO, "loader", "device auto is %s (%s)", out->canonical, out->why);
        return BURN_OK;
    }
    char text[MESSAGE];
    burni_text t;
    burni_text_init(&t, text, sizeof(text));
    describe_no_device(&t, &pick.passed);
    return burni_fail(why_not, BURN_E_NOT_FOUND, "%s", text);
}

static int32_t resolve_term(const burni_device_term *term, burni_device_choice *out,
                            burn_err *why_not)
{
    return term->is_auto ? resolve_auto(term, out, why_not) : resolve_named(term, out, why_not);
}

/* A sink for a reason of any length: its text goes on in `more`. */
typedef struct long_err {
    burn_err err;
    char more[MESSAGE];
} long_err;

static int32_t resolve_list(const char *device, const burni_device_term *terms, uint32_t n,
                            burni_device_choice *out, burn_err *err)
{
    char text[MESSAGE];
    burni_text t;
    begin_message(&t, text, device, terms[0].column);
    if (n > 1) {
        burni_text_add(&t, "none of the %u is usable: ", n);
    }
    size_t start = t.used;
    int32_t code = BURN_OK;
    for (uint32_t i = 0; i < n; i++) {
        long_err why_not;
        memset(&why_not, 0, sizeof(why_not));
        why_not.err.struct_size = (uint32_t)sizeof(why_not);
        why_not.err.cap = (uint32_t)(sizeof(why_not) - offsetof(burn_err, text));
        int32_t failed = resolve_term(&terms[i], out, &why_not.err);
        if (failed == BURN_OK && i > 0) {
            burni_text why;
            burni_text_init(&why, out->why, sizeof(out->why));
            burni_text_add(&why, "%u. of BURN_DEVICE=%.40s; before: %s", i + 1, device,
                           text + start);
            burni_log(BURN_LOG_WARN, "loader", "%s: %s", out->canonical, out->why);
        }
        if (failed == BURN_OK) {
            return BURN_OK;
        }
        code = i == 0 ? failed : code;
        burni_text_add(&t, "%s%s", i > 0 ? "; " : "", why_not.err.text);
    }
    return end_message(err, code, text);
}

int32_t burni_loader_resolve(const char *device, burni_device_choice *out, burn_err *err)
{
    uint32_t list = device == NULL;
    if (list) {
        device = burni_env("DEVICE");
        device = device != NULL ? device : "auto";
    }
    burni_device_term terms[BURNI_DEVICE_TERMS];
    uint32_t n = 0;
    int32_t code = burni_device_parse(device, list, terms, &n, err);
    if (code == BURN_OK) {
        code = burni_loader_list(err);
    }
    for (uint32_t i = 0; code == BURN_OK && i < n; i++) {
        code = check_known(device, &terms[i], err);
    }
    return code == BURN_OK ? resolve_list(device, terms, n, out, err) : code;
}
