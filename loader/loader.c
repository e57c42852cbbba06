/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loader.c - the list of plugins of this process and the state of each: known, open, broken.
 *
 * One mutex guards the list and the `busy` marks. It is never held while a plugin's code runs, nor
 * while a manifest is read or a line is logged: whoever has work to do on an entry marks it busy,
 * lets go of the mutex, and others wait for the mark to go. A thread that comes back to an entry on
 * which it is busy itself (a plugin or a log callback that calls into the library) gets an error.
 */
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Opening is not interrupted; from here on it is worth a line that everybody sees. `burn doctor`
 * has the same limit. */
#define SLOW_MS 100.0

enum { LIST_NONE = 0, LIST_BUSY = 1, LIST_DONE = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int list_state;
static pthread_t lister;
static burni_listing plugins;
static uint32_t n_opened;
static int ended;

static void enter(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void leave(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* With the lock. 1: this thread is to build the list. 0: it is there. */
static int32_t begin_list(int *mine, burn_err *err)
{
    *mine = 0;
    while (list_state == LIST_BUSY) {
        if (pthread_equal(lister, pthread_self())) {
            return burni_fail(err, BURN_E_STATE,
                              "the list of plugins is being made by this thread");
        }
        (void)pthread_cond_wait(&changed, &lock);
    }
    if (list_state == LIST_NONE) {
        list_state = LIST_BUSY;
        lister = pthread_self();
        *mine = 1;
    }
    return BURN_OK;
}

int32_t burni_loader_list(burn_err *err)
{
    int mine = 0;
    enter();
    int32_t code = begin_list(&mine, err);
    leave();
    if (code != BURN_OK || !mine) {
        return code;
    }
    burni_listing built;
    code = burni_listing_build(&built, err);
    enter();
    if (code == BURN_OK) {
        plugins = built;
    }
    list_state = code == BURN_OK ? LIST_DONE : LIST_NONE;
    (void)pthread_cond_broadcast(&changed);
    leave();
    return code;
}

uint32_t burni_loader_count(void)
{
    if (burni_loader_list(NULL) != BURN_OK) {
        return 0;
    }
    enter();
    uint32_t n = plugins.n;
    leave();
    return n;
}

burni_entry *burni_loader_entry(uint32_t i)
{
    if (burni_loader_list(NULL) != BURN_OK) {
        return NULL;
    }
    enter();
    burni_entry *e = i < plugins.n ? plugins.entries[i] : NULL;
    leave();
    return e;
}

/* An id that a manifest states goes before one that was guessed from a file's name. */
burni_entry *burni_loader_entry_find(const char *id)
{
    burni_entry *guessed = NULL;
    uint32_t n = id != NULL ? burni_loader_count() : 0;
    for (uint32_t i = 0; i < n; i++) {
        burni_entry *e = burni_loader_entry(i);
        if (e == NULL || e->is_hidden || strcmp(e->manifest.id, id) != 0) {
            continue;
        }
        if (!e->id_is_guess) {
            return e;
        }
        guessed = guessed != NULL ? guessed : e;
    }
    return guessed;
}

static const burni_plugin *view_of(burni_entry *e)
{
    if (e == NULL) {
        return NULL;
    }
    enter();
    const burni_plugin *v = &e->views[e->view];
    leave();
    return v;
}

const burni_plugin *burni_loader_at(uint32_t i)
{
    return view_of(burni_loader_entry(i));
}

const burni_plugin *burni_loader_find(const char *id)
{
    return view_of(burni_loader_entry_find(id));
}

const char *burni_loader_searched(uint32_t i)
{
    if (burni_loader_list(NULL) != BURN_OK) {
        return "";
    }
    enter();
    const char *folder = i < plugins.folders.n ? plugins.folders.at[i] : "";
    leave();
    return folder;
}

int32_t burni_entry_claim(burni_entry *e, burn_err *err)
{
    int32_t code = BURN_OK;
    enter();
    while (code == BURN_OK && e->busy) {
        if (pthread_equal(e->busy_thread, pthread_self())) {
            code = burni_fail(err, BURN_E_STATE,
                              "%s: this thread is opening it; do not call back from a plugin's "
                              "entry or a log callback",
                              e->manifest.id);
        } else {
            (void)pthread_cond_wait(&changed, &lock);
        }
    }
    if (code == BURN_OK && ended) {
        code = burni_fail(err, BURN_E_STATE, "%s: plugins were shut down", e->manifest.id);
    }
    if (code == BURN_OK) {
        e->busy = 1;
        e->busy_thread = pthread_self();
    }
    leave();
    return code;
}

void burni_entry_done(burni_entry *e)
{
    enter();
    e->busy = 0;
    (void)pthread_cond_broadcast(&changed);
    leave();
}

static double now_ms(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Query is called once per process; copying the table may be tried again after lack of memory. */
static int32_t attempt(burni_entry *e, const burn_plugin **out)
{
    int32_t code = BURN_OK;
    if (e->raw == NULL) {
        burn_plugin_query_fn query = NULL;
        code = burni_open_library(e, &query);
        if (code == BURN_OK) {
            code = burni_query(e, query);
        }
    }
    return code == BURN_OK ? burni_copy_table(e, out) : code;
}

static void publish(burni_entry *e, int32_t code, const burn_plugin *table, double ms)
{
    enter();
    int again = code == BURN_E_NO_MEMORY && e->raw != NULL;
    if (!again) {
        burni_entry_view(e, 1, code == BURN_OK ? BURNI_PLUGIN_OPEN : BURNI_PLUGIN_BROKEN, code);
        e->views[1].open_ms = ms;
        e->views[1].table = code == BURN_OK ? table : NULL;
        e->view = 1;
    }
    if (code == BURN_OK) {
        n_opened++;
        e->opened_as = n_opened;
        e->opened_by = getpid();
    }
    leave();
}

static int32_t report(const burni_entry *e, int32_t code, burn_err *err)
{
    return burni_fail(err, code, "%s: %s%s%s", e->manifest.id, e->reason,
                      e->remedy[0] != '\0' ? "; " : "", e->remedy);
}

int32_t burni_entry_open(burni_entry *e, burn_err *err)
{
    int32_t code = burni_entry_claim(e, err);
    if (code != BURN_OK) {
        return code;
    }
    const burni_plugin *view = &e->views[e->view];
    code = view->code;
    if (view->state == BURNI_PLUGIN_KNOWN) {
        const burn_plugin *table = NULL;
        double start = now_ms();
        code = attempt(e, &table);
        double ms = now_ms() - start;
        if (code != BURN_OK) {
            burni_entry_name_rival(e);
        }
        publish(e, code, table, ms);
        burni_log(BURN_LOG_DEBUG, "loader", "%s: %s after %.3f ms%s%s", e->manifest.id,
                  code == BURN_OK ? "open" : "not usable", ms, code == BURN_OK ? "" : ": ",
                  code == BURN_OK ? "" : e->reason);
        if (ms >= SLOW_MS) {
            burni_log(BURN_LOG_WARN, "loader",
                      "%s: opening the plugin took %.0f ms; ask its vendor to do less in "
                      BURN_PLUGIN_SYMBOL, e->manifest.id, ms);
        }
    }
    if (code != BURN_OK) {
        (void)report(e, code, err);
    }
    burni_entry_done(e);
    return code;
}

int32_t burni_loader_entry_need(const char *id, burni_entry **out, burn_err *err)
{
    int32_t code = burni_loader_list(err);
    if (code != BURN_OK) {
        return code;
    }
    *out = burni_loader_entry_find(id);
    return *out != NULL ? BURN_OK : burni_loader_unknown(id, err);
}

int32_t burni_loader_open(const char *id, const burni_plugin **out, burn_err *err)
{
    burni_entry *e = NULL;
    int32_t code = burni_loader_entry_need(id, &e, err);
    if (code != BURN_OK) {
        return code;
    }
    code = burni_entry_open(e, err);
    if (code == BURN_OK && out != NULL) {
        *out = view_of(e);
    }
    return code;
}

/* With the lock: the plugin that was opened last and is not shut yet. */
static burni_entry *last_open(void)
{
    burni_entry *last = NULL;
    for (uint32_t i = 0; i < plugins.n; i++) {
        burni_entry *e = plugins.entries[i];
        if (e->opened_as > 0 && !e->is_shut && (last == NULL || e->opened_as > last->opened_as)) {
            last = e;
        }
    }
    return last;
}

/* With the lock: waits until no other thread is busy with a plugin. */
static void wait_idle(void)
{
    for (uint32_t i = 0; i < plugins.n; i++) {
        const burni_entry *e = plugins.entries[i];
        while (e->busy && !pthread_equal(e->busy_thread, pthread_self())) {
            (void)pthread_cond_wait(&changed, &lock);
        }
    }
}

void burni_loader_shutdown(void)
{
    enter();
    ended = 1;
    while (list_state == LIST_BUSY && !pthread_equal(lister, pthread_self())) {
        (void)pthread_cond_wait(&changed, &lock);
    }
    wait_idle();
    for (burni_entry *e = last_open(); e != NULL; e = last_open()) {
        /* Marked first: another thread that shuts down at the same time goes on with the next. */
        e->is_shut = 1;
        const burn_plugin *table = e->views[1].table;
        leave();
        if (table->shutdown != NULL && e->opened_by == getpid()) {
            table->shutdown();
        }
        enter();
    }
    leave();
}

int64_t burni_loader_known_devices(burni_entry *e)
{
    enter();
    int known = !e->busy && e->counted && e->count_code == BURN_OK;
    int64_t n = known ? (int64_t)e->n_devices : -1;
    leave();
    return n;
}

void burni_loader_forget(void)
{
    enter();
    burni_listing_free(&plugins);
    list_state = LIST_NONE;
    n_opened = 0;
    ended = 0;
    leave();
    burni_host_forget();
}
