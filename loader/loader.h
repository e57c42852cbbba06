/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loader.h - finds, checks and opens plugins, and resolves device strings. Knows nothing of
 * tensors.
 *
 * Three stages: list (manifests only, no dlopen), open (dlopen, negotiation, table checks), probe
 * (the backend counts and describes its devices; no context). What was tried and why it failed is
 * kept per plugin. Entries live as long as the process and nothing is ever dlclosed. All functions
 * are thread-safe; no loader lock is held while a plugin runs. [any]
 */
#ifndef BURN_LOADER_H
#define BURN_LOADER_H

#include <burn/plugin.h>

/* How far a plugin got. */
enum {
    BURNI_PLUGIN_KNOWN = 1,   /* manifest read, not opened yet */
    BURNI_PLUGIN_OPEN = 2,    /* table checked, usable */
    BURNI_PLUGIN_BROKEN = 3,  /* `reason` says why */
    BURNI_PLUGIN_DISABLED = 4, /* not on the BURN_BACKENDS allow list */
    BURNI_PLUGIN_HIDDEN = 5    /* an earlier manifest has its id; never opened */
};

typedef struct burni_plugin {
    const char *id;
    const char *display_name;
    const char *version;
    const char *license;
    const char *kind; /* "backend" or "extension" */
    const char *manifest_path;
    const char *library_path;
    int64_t priority;
    int32_t state;
    int32_t code;       /* status of the failure */
    const char *reason; /* "" unless broken, disabled or hidden */
    const char *remedy; /* what to do about it, "" when nothing is known */
    const burn_plugin *table; /* NULL unless open: a full-size copy owned by the loader */
    double open_ms;     /* what opening took */
    const char *build_id; /* of its library, in hex; "" until that was looked at */
    const char *warning;  /* what its vendor should mend though it works, "" when nothing */
    const char *warning_remedy;
} burni_plugin;

/* Reads the manifests once; later calls return at once. Fails only when memory is short. */
int32_t burni_loader_list(burn_err *err);
uint32_t burni_loader_count(void);
const burni_plugin *burni_loader_at(uint32_t i);
const burni_plugin *burni_loader_find(const char *id);

/* Folders that were searched, in order; "" ends. Broken manifests are plugins in state BROKEN. */
const char *burni_loader_searched(uint32_t i);

/* Opens a plugin by id, once; the error names cause and remedy. */
int32_t burni_loader_open(const char *id, const burni_plugin **out, burn_err *err);

/* Number of devices of a backend, and what is known of one. Opens the plugin; cached. */
int32_t burni_loader_device_count(const char *id, uint32_t *out, burn_err *err);
int32_t burni_loader_device_info(const char *id, uint32_t ordinal, burn_device_info *out,
                                 burn_err *err);

/* What a device string picks. */
typedef struct burni_device_choice {
    char id[64];
    uint32_t ordinal;
    uint32_t autodiff;  /* +autodiff was there */
    char options[192];  /* "key=value&..." or "" */
    char canonical[96]; /* "flex:0" */
    char why[160];      /* for auto and lists: why this one */
} burni_device_choice;

/*
 * Resolves a device string; NULL means BURN_DEVICE, and auto when that is unset. A name that is
 * asked for is that device or an error, never another one. Errors give position, nearest name,
 * what is installed, what is unusable and why, and where was searched.
 */
int32_t burni_loader_resolve(const char *device, burni_device_choice *out, burn_err *err);

/* Ends all open plugins (their shutdown entry), but for those that are a parent's: a child of fork
 * has none of their threads. Idempotent. */
void burni_loader_shutdown(void);

/* Options that plugins may look up through the host, besides the environment. */
int32_t burni_loader_set_option(const char *name, const char *value, burn_err *err);
/* Whether name and value (NULL: none) are well-formed; it says nothing about what they mean. */
int32_t burni_loader_check_option(const char *name, const char *value, burn_err *err);

/* Value of an option as set, else of BURN_<name>; NULL when neither is. */
const char *burni_loader_option(const char *name);

/* How many threads a CPU backend may use: option THREADS, else the cores it may run on. */
uint32_t burni_thread_budget(void);
/* What is wrong with BURN_THREADS, if anything. */
int32_t burni_loader_check_threads(burn_err *err);
/* That BURN_PLUGIN_PATH is not empty; what is wrong with its folders stands in the list. */
int32_t burni_loader_check_path(burn_err *err);

#endif /* BURN_LOADER_H */
