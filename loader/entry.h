/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * entry.h - what the files of the loader share: the manifest, the entry of one plugin, and the
 * stages that an entry goes through. Private to loader/ and its tests.
 *
 * An entry is made by listing and lives as long as the process. While `busy` is set, exactly one
 * thread works on it without the lock; every field but `busy` is then that thread's. What callers
 * see are the two `views`: one from listing, one from opening. A view never changes once it is
 * published, so a caller may read it without a lock.
 */
#ifndef BURN_LOADER_ENTRY_H
#define BURN_LOADER_ENTRY_H

#include "loader/loader.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Text in a fixed buffer: what does not fit is cut. */
typedef struct burni_text {
    char *at;
    size_t cap;
    size_t used;
} burni_text;

void burni_text_init(burni_text *t, char *buffer, size_t cap);
void burni_text_add(burni_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Copies text that others wrote: control bytes become '?', what does not fit is cut. */
void burni_text_clean(char *out, size_t cap, const char *text);
/* 1 when `n` bytes are a name: [a-z][a-z0-9_-]*, at most 63 bytes. */
int burni_is_name(const char *text, size_t n);
/* Edit distance (insert, delete, replace, swap of neighbours); names longer than 63 are far. */
uint32_t burni_distance(const char *a, const char *b);

/* A list of strings that it owns. */
typedef struct burni_strings {
    char **at;
    uint32_t n;
    uint32_t cap;
} burni_strings;

int32_t burni_strings_add(burni_strings *list, const char *text);
void burni_strings_sort(burni_strings *list);
void burni_strings_free(burni_strings *list);

#define BURNI_MANIFEST_BYTES 65536
#define BURNI_MANIFEST_NEEDS 8

typedef struct burni_need {
    char library[96];
    char hint[160];
} burni_need;

/* A manifest that was read and checked. */
typedef struct burni_manifest {
    char id[64];
    char name[96];
    char kind[16];
    char file[256];
    char version[64];
    char license[128];
    char devices[32];
    uint32_t abi_oldest;
    uint32_t abi_newest;
    int32_t priority;
    uint32_t n_needs;
    int is_foreign; /* some other JSON file: no object with "format", "id" or "kind" */
    burni_need needs[BURNI_MANIFEST_NEEDS];
} burni_manifest;

/*
 * Reads a manifest from memory. After a failure `out->id` is set if that much could be read, and
 * `is_foreign` when the file is no manifest at all.
 */
int32_t burni_manifest_parse(const char *bytes, size_t n, burni_manifest *out, burn_err *err);
int32_t burni_manifest_read(const char *path, burni_manifest *out, burn_err *err);

/* Folders in order of search, with a note behind those that were not read, and manifests. */
typedef struct burni_search {
    burni_strings folders;
    burni_strings manifests;
} burni_search;

int32_t burni_search_run(burni_search *out, burn_err *err);
void burni_search_free(burni_search *s);
/*
 * Refuses what everybody may write to, and what belongs to another user than root or this one. What
 * its group may write passes: with a group per user (umask 002) that is how files are made.
 */
int32_t burni_check_owner(const struct stat *st, const char *path, burn_err *err);

typedef struct burni_block burni_block; /* memory of a table's copy */

typedef struct burni_entry {
    burni_plugin views[2];
    uint32_t view; /* the one that callers get */
    int busy;
    pthread_t busy_thread;
    burni_manifest manifest;
    int id_is_guess; /* the manifest is broken: the id is its file's name */
    int is_hidden;   /* an earlier one has its id: nobody finds it by that */
    struct burni_entry *rival; /* the first that this one hides, or NULL */
    char *manifest_path;
    char *library_path;
    int has_file;
    dev_t dev;
    ino_t ino;
    const burn_plugin *raw; /* what query returned; query is called once */
    uint32_t negotiated;
    burn_host host;
    burni_block *blocks;
    uint32_t opened_as; /* n-th plugin that was opened, from 1 */
    pid_t opened_by;    /* its threads are in that process, not in a child that was forked */
    int is_shut;
    char reason[640];
    char remedy[256];
    char build_id[72];
    char warning[320]; /* it works, but was linked as it should not be */
    char warning_remedy[168];
    int counted; /* devices were counted: count_code and count_text hold the answer */
    int32_t count_code;
    char count_text[232];
    uint32_t n_devices;
    burn_device_info *devices;
    unsigned char *probed;
} burni_entry;

/* Writes reason and remedy (NULL: none) of an entry that is busy; returns the code. */
int32_t burni_entry_fail(burni_entry *e, int32_t code, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says in the remedy of an entry that failed that another manifest has its id, if one has. */
void burni_entry_name_rival(burni_entry *e);

/* The hint of the needed library that the text speaks of, or NULL. */
const char *burni_entry_hint(const burni_entry *e, const char *text);

/* What listing found. */
typedef struct burni_listing {
    burni_entry **entries;
    uint32_t n;
    uint32_t cap;
    burni_strings folders;
} burni_listing;

/* Searches, reads the manifests and hides duplicates. Runs without the lock. */
int32_t burni_listing_build(burni_listing *out, burn_err *err);
void burni_listing_free(burni_listing *list);
/* Fills view `i` from the manifest, with that state. */
void burni_entry_view(burni_entry *e, uint32_t i, int32_t state, int32_t code);

/* Makes the entry this thread's, waiting for another one's turn to end; and ends the turn. */
int32_t burni_entry_claim(burni_entry *e, burn_err *err);
void burni_entry_done(burni_entry *e);
/* Opens the plugin if that was not tried yet; the answer names reason and remedy. */
int32_t burni_entry_open(burni_entry *e, burn_err *err);

/* The entry at place i in order of listing, or NULL. Lists first. */
burni_entry *burni_loader_entry(uint32_t i);
/* The entry of an id, or NULL. Lists first. */
burni_entry *burni_loader_entry_find(const char *id);
/* The same, or the failure of listing, or "no plugin ...". */
int32_t burni_loader_entry_need(const char *id, burni_entry **out, burn_err *err);
/* The devices that are known without opening anything: -1 when they were not counted. */
int64_t burni_loader_known_devices(burni_entry *e);
/* Appends "installed: ...; not usable: ...; searched: ...". */
void burni_loader_describe(burni_text *t);
/* Fails with "no plugin ...", the nearest name and the above. */
int32_t burni_loader_unknown(const char *id, burn_err *err);

/* Stages of opening, in order. All run without the lock; the entry is busy. */
int32_t burni_open_library(burni_entry *e, burn_plugin_query_fn *out);
int32_t burni_query(burni_entry *e, burn_plugin_query_fn query);
int32_t burni_check_range(burni_entry *e, const char *where, uint32_t oldest, uint32_t newest);
int32_t burni_check_magic(burni_entry *e, const burn_magic *theirs);
/* Whether the plugin lays structs out like the host for that version, whose hash is `ours`. */
int32_t burni_check_layout(burni_entry *e, const burn_plugin *theirs, uint32_t version,
                           uint64_t ours);
int32_t burni_copy_table(burni_entry *e, const burn_plugin **out);
int32_t burni_copy_row_sets(burni_entry *e, const burn_plugin *raw, burn_plugin *copy);
int32_t burni_copy_ops(burni_entry *e, const burn_plugin *raw, burn_plugin *copy);

/* Zeroed memory that lives as long as the entry's table; NULL (and a reason) when there is none. */
void *burni_entry_alloc(burni_entry *e, size_t count, size_t bytes);
void burni_entry_release(burni_entry *e);
/* Checks address, count and stride of an array that a plugin hands in. */
int32_t burni_check_array(burni_entry *e, const char *what, const void *at, uint64_t count,
                          uint64_t max_count, uint64_t stride, uint64_t floor);
/* Checks the size that a struct states: between `floor` and `ceiling`. */
int32_t burni_check_size(burni_entry *e, const char *what, uint64_t size, uint64_t floor,
                         uint64_t ceiling);

/* The host's services, with `abi` set. */
void burni_host_init(burn_host *host, uint32_t abi);
/* Drops the options that were set. Tests only. */
void burni_host_forget(void);

/* A device string's parts. `column` is the position (from 1) of what an error speaks of. */
typedef struct burni_device_term {
    char id[64];
    uint32_t is_auto;
    uint32_t has_ordinal;
    uint32_t ordinal;
    uint32_t autodiff;
    uint32_t column;
    char options[192];
} burni_device_term;

#define BURNI_DEVICE_TERMS 16
#define BURNI_DEVICE_BYTES 512

/* Parses one device, or with `list` several. Nothing is looked up. */
int32_t burni_device_parse(const char *text, uint32_t list, burni_device_term *out, uint32_t *n_out,
                           burn_err *err);

/* Forgets every entry; libraries stay mapped. Tests only, with no other thread about. */
void burni_loader_forget(void);

#endif /* BURN_LOADER_ENTRY_H */
