/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * plugins.h - what is installed and why something is not usable: plugins, their devices, and what a
 * device string would pick. For `burn doctor`, settings dialogs and bug reports.
 *
 * Known, loadable and usable are three questions: a manifest was read; its library was opened and
 * fits this host; it has a device (or it is an extension). Nothing here opens a device. Strings
 * behind pointers live as long as the process. [any]
 */
#ifndef BURN_PLUGINS_H
#define BURN_PLUGINS_H

#include <burn/backend.h>

BURN_BEGIN_DECLS

/* How far a plugin got. */
enum {
    BURN_PLUGIN_KNOWN = 1,    /* its manifest was read; the library was not opened yet */
    BURN_PLUGIN_LOADABLE = 2, /* the library is open and fits; it has no device here */
    BURN_PLUGIN_USABLE = 3,
    BURN_PLUGIN_BROKEN = 4,  /* `reason` says why */
    BURN_PLUGIN_DISABLED = 5, /* left out by BURN_BACKENDS */
    BURN_PLUGIN_HIDDEN = 6    /* an earlier manifest has the same id; `reason` names it */
};

typedef struct burn_plugin_info {
    uint32_t struct_size;
    int32_t state; /* BURN_PLUGIN_* */
    const char *id;
    const char *name; /* for people */
    const char *kind; /* "backend" or "extension" */
    const char *version;
    const char *license;
    const char *manifest;
    const char *library;
    int64_t priority;
    double open_ms;     /* what opening took, 0 when it is not open */
    uint32_t n_devices; /* 0 unless usable */
    int32_t code;       /* status of the failure */
    char reason[640];   /* "" when nothing is wrong */
    char remedy[256];   /* "" when nothing is known */
    char build_id[72];  /* of its library, in hex; "" when that has none or is not open */
    char warning[320];  /* what its vendor should mend though it works, "" when nothing */
    char warning_remedy[168];
} burn_plugin_info;

/* Plugins in order of their folders and names, broken ones among them. */
BURN_API uint32_t burn_plugins_count(void);
/*
 * Describes plugin i. With `open` = 1 the library is opened and devices are counted, if that was
 * not done before; with 0 only what is known already is told. A plugin that is not usable is no
 * failure; BURN_E_NOT_FOUND after the last. Set out->struct_size first (BURN_INIT).
 */
BURN_API int32_t burn_plugins_at(uint32_t i, int32_t open, burn_plugin_info *out, burn_err *err);
/* Folders in order of search, with a note behind those that were not read; NULL after the last. */
BURN_API const char *burn_plugins_searched(uint32_t i);

/* Describes device `ordinal` of a backend without opening it. */
BURN_API int32_t burn_plugins_device(const char *id, uint32_t ordinal, burn_device_info *out,
                                     burn_err *err);

/* What a device string picks. */
typedef struct burn_device_choice {
    uint32_t struct_size;
    uint32_t ordinal;
    uint32_t autodiff; /* +autodiff was there */
    uint32_t zero;
    char id[64];
    char options[192];  /* "key=value&..." or "" */
    char canonical[96]; /* "flex:0" */
    char why[160];      /* for auto and lists: why this one */
} burn_device_choice;

/* Resolves a device string (NULL: as in burn_device_open) without opening the device. */
BURN_API int32_t burn_device_resolve(const char *string, burn_device_choice *out, burn_err *err);

/* Who reads a variable; those of a plugin have its name in front. */
enum { BURN_VARIABLE_LIBRARY = 1, BURN_VARIABLE_PLUGIN = 2 };

typedef struct burn_variable_info {
    uint32_t struct_size;
    int32_t known; /* BURN_VARIABLE_*, 0: nobody reads it */
    const char *value;
    char name[64];
    char owner[64];    /* the plugin's id, "" for the library */
    char hint[64];     /* the name that was meant, maybe */
    char problem[208]; /* what is wrong with the value, "" when nothing is known */
} burn_variable_info;

/* The i-th BURN_* variable of the environment; BURN_E_NOT_FOUND after the last. */
BURN_API int32_t burn_environment_at(uint32_t i, burn_variable_info *out, burn_err *err);

/* How many threads a CPU backend may use: BURN_THREADS, else the cores it may run on. */
BURN_API uint32_t burn_thread_budget(void);

BURN_END_DECLS

#endif /* BURN_PLUGINS_H */
